"""What may be shown of a fact-check, however it came about."""

from dataclasses import replace

import pytest
from hypothesis import given

from climassay.factcheck.results.view import as_shown
from climassay.factcheck.scales import ACCURACY, CLIMATE_FEEDBACK
from climassay.factcheck.transcript import Quotation, cited_numbers
from factcheck_transcripts import SURE, checked, full_transcript, sentence, transcripts, unchecked

UNBORNE = checked("It warms.", ({"IPCC": "correct"}, "correct"), share=0.86, explanation=(sentence("I know."),))


@given(transcripts())
def test_whatever_is_shown_as_a_verdict_rests_on_a_passage_and_contradicts_no_likelihood(transcript):
    shown = as_shown(transcript, CLIMATE_FEEDBACK)
    verdict, numbers = shown.verdict, {source.number for source in shown.sources}
    if verdict.outcome == "verdict" and verdict.label is not None:
        assert numbers & set(cited_numbers(verdict.explanation, verdict.quotations))
    for held in shown.rounds:
        for one in (verdict, held.decision, *held.opinions, *held.parts):
            label = one.label if one is verdict else one.verdict
            if label in CLIMATE_FEEDBACK.labels and one.levels and one.levels.likelihood:
                low, high = "unlikely" in one.levels.likelihood, one.levels.likelihood == "about as likely as not"
                assert high or low != CLIMATE_FEEDBACK.is_correct(label)
    assert as_shown(shown, CLIMATE_FEEDBACK) == shown


def test_a_verdict_that_nothing_bears_is_told_as_withheld():
    verdict = as_shown(UNBORNE, CLIMATE_FEEDBACK).verdict
    assert (verdict.outcome, verdict.label, verdict.withheld) == (
        "not enough information",
        CLIMATE_FEEDBACK.nei,
        "correct",
    )
    assert (verdict.levels, verdict.probabilities) == (None, ())
    assert "correct" in verdict.caveats[0]
    assert verdict.explanation == UNBORNE.verdict.explanation


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({"explanation": (sentence("It does.", 2),)}, "verdict"),
        ({"quotations": (Quotation(1, "Text of passage 1.", "for"),)}, "verdict"),
        # A passage that the debate does not have bears nothing.
        ({"quotations": (Quotation(7, "Text of passage 7.", "for"),)}, "not enough information"),
        ({"explanation": ()}, "not enough information"),
    ],
)
def test_one_citation_or_quotation_of_a_passage_that_is_there_bears_a_verdict(changes, outcome):
    changed = replace(UNBORNE, verdict=replace(UNBORNE.verdict, **changes))
    assert as_shown(changed, CLIMATE_FEEDBACK).verdict.outcome == outcome


def test_a_fact_check_without_fault_stays_what_it_is():
    strong = {"mediator": "expert, openai:m", "advocates": ()}
    good = replace(checked("It warms.", ({"IPCC": "correct"}, "correct"), levels=SURE), **strong)
    assert as_shown(good, CLIMATE_FEEDBACK) == good
    for outcome in ("not checkable", "not about climate", "failed"):
        assert as_shown(unchecked("Hello.", outcome), CLIMATE_FEEDBACK) == unchecked("Hello.", outcome)


@pytest.mark.parametrize(("label", "kept"), [("false", False), ("misleading", False), ("true", True)])
def test_no_likelihood_stands_beside_a_verdict_that_it_contradicts(label, kept):
    levels = replace(SURE, likelihood="extremely likely")
    made = checked("It warms.", ({"IPCC": label}, label), scale=ACCURACY, levels=levels)
    shown = as_shown(made, ACCURACY)
    assert shown.verdict.levels == (levels if kept else replace(levels, likelihood=None))
    opposite = replace(levels, likelihood="exceptionally unlikely")
    against = replace(made, verdict=replace(made.verdict, levels=opposite))
    assert (as_shown(against, ACCURACY).verdict.levels.likelihood is None) == kept


def test_the_debate_of_a_bundled_model_is_a_demonstration_even_where_it_does_not_say_so():
    assert as_shown(full_transcript(), CLIMATE_FEEDBACK).demonstration
    assert not full_transcript().demonstration
    assert not as_shown(unchecked("Hello.", "not checkable"), CLIMATE_FEEDBACK).demonstration
