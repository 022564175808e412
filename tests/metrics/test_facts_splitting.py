import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.metrics import ModelSplitter, split_facts
from climassay.models.contract import Completion


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        pytest.param("The sea rises.", ["The sea rises."], id="one"),
        pytest.param("The sea rises; ice melts.", ["The sea rises.", "Ice melts."], id="semicolon"),
        pytest.param(
            "The sea rises because warm water expands.", ["The sea rises.", "Warm water expands."], id="because"
        ),
        pytest.param(
            "The air warms the ocean, which in turn releases carbon.",
            ["The air warms the ocean.", "The ocean in turn releases carbon."],
            id="which",
        ),
        pytest.param(
            "Black carbon absorbs sunlight and warms the air.",
            ["Black carbon absorbs sunlight.", "Black carbon warms the air."],
            id="two verbs, one subject",
        ),
        pytest.param(
            "Emissions fell, but concentrations increased.",
            ["Emissions fell.", "Concentrations increased."],
            id="but",
        ),
        pytest.param(
            "Ice reflects sunlight, cooling the surface below.",
            ["Ice reflects sunlight, cooling the surface below."],
            id="a noun that ends like a participle is left",
        ),
        pytest.param(
            "Mars is far from the sun, receiving less sunlight.",
            ["Mars is far from the sun.", "Mars is receiving less sunlight."],
            id="participle",
        ),
        pytest.param(
            "However, the ocean absorbs heat. It releases carbon.",
            ["The ocean absorbs heat.", "The ocean releases carbon."],
            id="link and pronoun",
        ),
    ],
)
def test_rules(text, facts):
    assert list(split_facts(text)) == facts


@pytest.mark.parametrize(
    "whole",
    [
        "The distance does not change the pressure or affect the wind.",
        "Without the treaty, emissions would have increased.",
        "If emissions stop, the warming may continue for decades.",
        "Carbon dioxide, methane and nitrous oxide are greenhouse gases.",
        "Aerosols do not warm the surface and change the rainfall.",
    ],
)
def test_conditions_negations_and_lists_are_not_torn_apart(whole):
    assert split_facts(whole) == (whole,)


def test_repeated_statements_count_once_and_nothing_has_no_facts():
    assert split_facts("Ice melts fast. Ice melts fast.") == ("Ice melts fast.",)
    assert split_facts("  \n ") == ()


@given(st.text(max_size=200))
def test_any_text_is_split_and_no_statement_is_empty(text):
    assert all(fact.strip(" .") or not text.strip(" .!?,;") for fact in split_facts(text))


class Writer:
    name = "local:writer"

    def __init__(self, *texts):
        self.texts, self.asked = list(texts), []

    def generate(self, requests, *, on_result=None):
        self.asked += requests
        return [
            Completion.failed("No answer.") if text is None else Completion(text, "stop")
            for text in self.texts[: len(requests)]
        ]


def test_a_model_may_split_and_the_rules_stand_in_for_it():
    writer = Writer('["Seas rise.", " Ice  melts. ", "Seas rise."]', "no list", None)
    found = ModelSplitter(writer)(["a; b", "Seas rise; ice melts.", "Ice melts.", " ", "a; b"])
    assert found == [
        ("Seas rise.", "Ice melts."),
        ("Seas rise.", "Ice melts."),
        ("Ice melts.",),
        (),
        ("Seas rise.", "Ice melts."),
    ]
    assert len(writer.asked) == 3
    assert writer.asked[0].schema["maxItems"] == 12
