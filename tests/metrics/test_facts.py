import pytest
from hypothesis import given
from hypothesis import strategies as st

from climaqa_cases import CASES, QUESTIONS
from climassay.errors import InputError
from climassay.metrics import (
    AnswerItem,
    FactMetric,
    Relations,
    split_facts,
)
from climassay.models.encoders import load_encoder
from scripted_entailment import ScriptedEntailment


class Near:
    """Texts with the word ocean are near each other, others to nothing."""

    name, fingerprint, width = "local:near", "0" * 64, 2

    def encode(self, texts, *, role="passage", on_progress=None):
        import numpy as np

        return np.array([[1.0, 0.0] if "ocean" in text.lower() else [0.0, 1.0] for text in texts], dtype=np.float32)


REFERENCE = "The ocean absorbs heat. The ocean absorbs carbon."
QUESTION = "What does the ocean absorb?"


def scripted(known):
    """Relations by the pair; what is not scripted is open."""
    return ScriptedEntailment(lambda *pair: known.get(pair, Relations(0.0, 0.0, 1.0)))


def metric(known):
    return FactMetric(scripted(known), Near())


def test_a_worked_example():
    answer = "The ocean absorbs heat. The ocean releases carbon. Volcanoes emit ash."
    known = {
        ("The ocean absorbs heat.", "The ocean absorbs heat."): Relations(0.9, 0.0, 0.1),
        ("The ocean absorbs carbon.", "The ocean releases carbon."): Relations(0.1, 0.6, 0.3),
        (REFERENCE, "Volcanoes emit ash."): Relations(0.3, 0.0, 0.7),
        ("The ocean releases carbon.", "The ocean absorbs carbon."): Relations(0.2, 0.7, 0.1),
    }
    (found,) = metric(known).score([AnswerItem(QUESTION, REFERENCE, answer)])
    assert [fact.status for fact in found.answer_facts] == ["supported", "contradicted", "irrelevant"]
    assert [fact.status for fact in found.reference_facts] == ["supported", "contradicted"]
    # Precision (0.9 + 0.1 + 0) / 3 times 1 - 0.6 / 3; the irrelevant fact's 0.3 does not count. Recall (0.9 + 0.2) / 2.
    assert found.contradicted == pytest.approx(0.2)
    assert found.precision == pytest.approx(1 / 3 * 0.8)
    assert found.recall == pytest.approx(0.55)
    assert found.f1 == pytest.approx(2 * found.precision * 0.55 / (found.precision + 0.55))
    assert found.irrelevant == pytest.approx(1 / 3)


def test_an_answer_without_facts_scores_nothing_and_many_items_are_one_call():
    scorer = scripted({("The ocean absorbs heat.", "The ocean absorbs heat."): Relations(1.0, 0.0, 0.0)})
    items = [AnswerItem(QUESTION, REFERENCE, text) for text in ("", "The ocean absorbs heat.", " . ")]
    empty, one, dot = FactMetric(scorer, Near()).score(items)
    assert scorer.calls == 1
    assert (empty.precision, empty.recall, empty.f1, empty.answer_facts) == (0.0, 0.0, 0.0, ())
    assert (one.precision, one.recall) == (1.0, 0.5)
    assert dot.f1 == 0
    assert len(dot.reference_facts) == 2


def test_a_failure_stays_in_its_place():
    known = {("The ocean absorbs heat.", "The ocean is wet."): None}
    items = [AnswerItem(QUESTION, REFERENCE, text) for text in ("The ocean is wet.", "The ocean is deep.")]
    failed, whole = metric(known).score(items)
    assert failed is None
    assert whole.f1 == 0


def test_what_is_needed():
    with pytest.raises(InputError, match="reference answer"):
        metric({}).score([AnswerItem(QUESTION, " ", "The ocean is deep.")])

    class Plain:
        name = "plain"

        def score(self, pairs):
            return [0.0 for _ in pairs]

    with pytest.raises(InputError, match="contradictions"):
        FactMetric(Plain(), Near())


def test_the_answer_about_mars_that_misses_the_point_is_on_the_topic():
    """Appendix A.2.3: gemma's answer is true and beside the point; relevance, by the bundled encoder, tells topics."""
    case = next(case for case in CASES if (case.topic, case.model) == ("Mars", "gemma-27b"))
    scorer = ScriptedEntailment(lambda *_: Relations(0.5, 0.0, 0.5))
    off_topic = "Penguins eat krill."
    answers = [case.answer, off_topic]
    items = [AnswerItem(QUESTIONS["Mars"], case.reference, text) for text in answers]
    found, other = FactMetric(scorer, load_encoder()).score(items)
    assert min(fact.relevance for fact in found.answer_facts) > 0.5
    assert (found.irrelevant, other.irrelevant) == (0.0, 1.0)
    assert found.precision == pytest.approx(0.5)
    assert other.precision == 0.0


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("The sea rises.", ["The sea rises."]),
        ("The sea rises; ice melts.", ["The sea rises.", "Ice melts."]),
        ("The sea rises because warm water expands.", ["The sea rises.", "Warm water expands."]),
        ("The air warms the ocean, which in turn releases carbon.",
         ["The air warms the ocean.", "The ocean in turn releases carbon."]),
        ("Black carbon absorbs sunlight and warms the air.",
         ["Black carbon absorbs sunlight.", "Black carbon warms the air."]),
        ("Emissions fell, but concentrations increased.", ["Emissions fell.", "Concentrations increased."]),
        # A noun that ends like a participle is left.
        ("Ice reflects sunlight, cooling the surface below.", ["Ice reflects sunlight, cooling the surface below."]),
        ("Mars is far from the sun, receiving less sunlight.",
         ["Mars is far from the sun.", "Mars is receiving less sunlight."]),
        ("However, the ocean absorbs heat. It releases carbon.",
         ["The ocean absorbs heat.", "The ocean releases carbon."]),
    ],
)  # fmt: skip
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


@given(st.text(max_size=200))
def test_any_text_is_split_and_no_statement_is_empty(text):
    assert all(fact.strip(" .") or not text.strip(" .!?,;") for fact in split_facts(text))
