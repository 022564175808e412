import pytest
from hypothesis import given
from hypothesis import strategies as st

from climaqa_cases import CASES, QUESTIONS
from climassay.errors import InputError
from climassay.metrics import (
    Answered,
    FactMetric,
    Relations,
    fact_scores,
    split_facts,
)
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
    (found,) = metric(known).score([Answered(QUESTION, REFERENCE, answer)])
    assert [fact.standing for fact in found.answer_facts] == ["supported", "contradicted", "irrelevant"]
    assert [fact.standing for fact in found.reference_facts] == ["supported", "contradicted"]
    # Precision (0.9 + 0.1 + 0) / 3 times 1 - 0.6 / 3; the irrelevant fact's 0.3 does not count. Recall (0.9 + 0.2) / 2.
    assert found.contradicted == pytest.approx(0.2)
    assert found.precision == pytest.approx(1 / 3 * 0.8)
    assert found.recall == pytest.approx(0.55)
    assert found.f1 == pytest.approx(2 * found.precision * 0.55 / (found.precision + 0.55))
    assert found.irrelevant == pytest.approx(1 / 3)


def test_an_answer_without_facts_scores_nothing_and_many_items_are_one_call():
    scorer = scripted({("The ocean absorbs heat.", "The ocean absorbs heat."): Relations(1.0, 0.0, 0.0)})
    items = [Answered(QUESTION, REFERENCE, text) for text in ("", "The ocean absorbs heat.", " . ")]
    empty, one, dot = FactMetric(scorer, Near()).score(items)
    assert scorer.calls == 1
    assert (empty.precision, empty.recall, empty.f1, empty.answer_facts) == (0.0, 0.0, 0.0, ())
    assert (one.precision, one.recall) == (1.0, 0.5)
    assert dot.f1 == 0
    assert len(dot.reference_facts) == 2


def test_a_failure_stays_in_its_place():
    known = {("The ocean absorbs heat.", "The ocean is wet."): None}
    items = [Answered(QUESTION, REFERENCE, text) for text in ("The ocean is wet.", "The ocean is deep.")]
    failed, whole = metric(known).score(items)
    assert failed is None
    assert whole.f1 == 0


def test_what_is_needed():
    with pytest.raises(InputError, match="reference answer"):
        metric({}).score([Answered(QUESTION, " ", "The ocean is deep.")])

    class Plain:
        name = "plain"

        def score(self, pairs):
            return [0.0 for _ in pairs]

    with pytest.raises(InputError, match="contradictions"):
        FactMetric(Plain(), Near())


@pytest.fixture(scope="module")
def mars():
    cases = [case for case in CASES if case.topic == "Mars"]
    found = fact_scores([Answered(QUESTIONS["Mars"], case.reference, case.answer) for case in cases])
    return {case.model: scores for case, scores in zip(cases, found, strict=True)}


def test_mars_answers_are_ordered_as_the_authors_say(mars):
    """Appendix A.2.3: gpt-4o is right, gpt-3.5-turbo and mixtral contradict, gemma is true and beside the point."""
    right, wrong = ("gpt-4o", "llama3-70b"), ("gpt-3.5-turbo", "mixtral-8x22b")
    assert min(mars[name].f1 for name in right) > mars["gemma-27b"].f1 > max(mars[name].f1 for name in wrong)
    assert min(mars[name].contradicted for name in wrong) > max(
        mars[name].contradicted for name in (*right, "gemma-27b")
    )


def test_of_the_emission_answers_the_bundled_scorer_puts_a_right_one_before_the_one_that_suggests_a_decline():
    """The authors put gemma-27b last; the bundled scorer takes other conditionals for contradictions."""
    cases = [case for case in CASES if case.topic == "emission"]
    found = fact_scores([Answered(QUESTIONS["emission"], case.reference, case.answer) for case in cases])
    scores = {case.model: one for case, one in zip(cases, found, strict=True)}
    assert max(scores, key=lambda name: scores[name].f1) == "gpt-4o"
    assert scores["gpt-4o"].contradicted < 0.1 < scores["gemma-27b"].contradicted
    standings = [fact.standing for fact in scores["gemma-27b"].answer_facts]
    assert standings == ["supported", "contradicted"]


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
