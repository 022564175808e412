"""Assessments by scores: their order, verdicts that are legal whatever a model answers, and calibration."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.factcheck import SCALES
from climassay.factcheck.certainty import ALL_LEVELS, LIKELIHOODS, QUANTIFIABLE
from climassay.factcheck.debate.assessment import (
    PLACEMENTS,
    AssessmentPrompt,
    ElicitationConfig,
    assess,
    explain,
)
from climassay.factcheck.debate.steps import ScoringRequest, TextRequest
from climassay.factcheck.scales import CLIMATE_FEEDBACK
from climassay.models import Completion, Message, OptionScores
from debate_parts import drive

PROMPT = (Message("user", "Claim: the Sun did it."),)
BLANK = (Message("user", "Claim: N/A"),)
LEVELS_WORDS = " {}; agreement: {}; confidence: {}"
SURE = LEVELS_WORDS.format("robust", "high", "very high")
MEDIUM = LEVELS_WORDS.format("medium", "medium", "medium")


def interview(scale=CLIMATE_FEEDBACK, **changes):
    return AssessmentPrompt("m", PROMPT, BLANK, scale, **changes)


class Answers:
    """Prefers what is named, the first option otherwise; notes in words what it was asked, and the requests."""

    def __init__(self, *preferred, text="Sunlight has hardly changed.", fails=None, blank=None):
        self.preferred, self.text, self.fails, self.blank = preferred, text, fails, blank
        self.steps, self.asks = [], []

    def __call__(self, ask):
        self.asks.append(ask)
        prefix = ask.model_request.assistant_prefix
        kind = re.split("[:\n]", prefix.strip("\n").rpartition("\n")[2])[0] or "text"
        kind = "The claim is" if kind.startswith("The claim is") else kind
        if not (isinstance(ask, ScoringRequest) and ask.blank):
            self.steps.append(kind)
        if self.fails == (kind, getattr(ask, "blank", False)):
            return OptionScores.failed("No luck.") if isinstance(ask, ScoringRequest) else Completion.failed("No luck.")
        if isinstance(ask, TextRequest):
            return Completion(self.text, "stop")
        if ask.blank and self.blank is not None:
            return OptionScores(self.blank(ask))
        if ask.blank:
            return OptionScores((-1.0,) * len(ask.model_request.options))
        chosen = next(
            (option for option in self.preferred if option in ask.model_request.options), ask.model_request.options[0]
        )
        return OptionScores(tuple(-0.1 if option == chosen else -5.0 for option in ask.model_request.options))


def interviewed(answers, one=None, **manner):
    one, how = one or interview(), ElicitationConfig(**manner)

    def both():
        found = yield from assess(one, how)
        return (yield from explain(one, how, found))

    return drive(both(), answers)[0]


def test_certainty_then_draft_then_verdict_then_explanation():
    answers = Answers(SURE, " an outlier view", " very likely", " misleading")
    found = interviewed(answers)
    assert answers.steps == [
        "Information", "The claim is", "Evidence", "Likelihood", "Assessment", "Verdict", "Explanation"
    ]  # fmt: skip
    assert (found.verdict, found.placement, found.levels.likelihood) == ("misleading", "outlier", "very likely")
    assert (found.levels.evidence, found.levels.agreement, found.levels.confidence) == ("robust", "high", "very high")
    assert found.draft == found.explanation == "Sunlight has hardly changed."
    assert max(found.probabilities) == found.probabilities[CLIMATE_FEEDBACK.labels.index("misleading")]
    assert sum(found.probabilities) == pytest.approx(1)
    assert found.answer == (
        "Information: enough\nThe claim is an outlier view\nEvidence: robust; agreement: high; confidence: very high\n"
        "Likelihood: very likely\nAssessment: Sunlight has hardly changed.\nVerdict: misleading"
    )


def test_verdict_first_moves_the_verdict_and_nothing_else():
    preferred = (SURE, " an outlier view", " very likely", " misleading")
    last, first = Answers(*preferred), Answers(*preferred)
    interviewed(last)
    found = interviewed(first, verdict_first=True)
    assert first.steps == [
        "Information", "The claim is", "Verdict", "Evidence", "Likelihood", "Assessment", "Explanation"
    ]  # fmt: skip
    assert found.verdict == "misleading"
    assert found.answer == (
        "Information: enough\nThe claim is an outlier view\nVerdict: misleading\n"
        "Evidence: robust; agreement: high; confidence: very high\nLikelihood: very likely\n"
        "Assessment: Sunlight has hardly changed."
    )
    asked = [
        sorted((ask.model_request.options, ask.blank) for ask in one.asks if isinstance(ask, ScoringRequest))
        for one in (first, last)
    ]
    assert asked[0] == asked[1]


@pytest.mark.parametrize("levels", ALL_LEVELS, ids=lambda one: f"{one.evidence} {one.agreement} {one.confidence}")
def test_a_likelihood_is_asked_for_with_high_confidence_only(levels):
    answers = Answers(LEVELS_WORDS.format(levels.evidence, levels.agreement, levels.confidence), " unlikely")
    found = interviewed(answers)
    quantified = levels.confidence in QUANTIFIABLE
    assert ("Likelihood" in answers.steps) == quantified
    assert found.levels.likelihood == ("unlikely" if quantified else None)
    assert (found.levels.evidence, found.levels.agreement) == (levels.evidence, levels.agreement)
    assert found.levels.confidence == levels.confidence


@pytest.mark.parametrize("verdict_first", [False, True])
def test_without_information_nothing_more_is_asked(verdict_first):
    answers = Answers(" not enough")
    found = interviewed(answers, verdict_first=verdict_first)
    assert answers.steps == ["Information", "The claim is"]
    assert (found.verdict, found.levels, found.probabilities, found.explanation) == (CLIMATE_FEEDBACK.nei, None, (), "")


def test_the_mediator_is_not_asked_whether_there_is_information():
    answers = Answers(" not enough", MEDIUM)
    found = interviewed(answers, interview(asks_placement=False))
    assert answers.steps == ["Evidence", "Assessment", "Verdict", "Explanation"]
    assert found.placement is None


def test_brief_texts_begin_without_the_lines_above_them():
    answers = Answers(MEDIUM, " incorrect")
    found = interviewed(answers, brief=True)
    lead = "This is rated \u201cincorrect\u201d, because"
    assert [ask.model_request.assistant_prefix for ask in answers.asks if isinstance(ask, TextRequest)] == ["", lead]
    assert found.draft == "Sunlight has hardly changed."
    assert (found.lead, found.explanation) == (lead, "Sunlight has hardly changed.")
    assert "Assessment: Sunlight has hardly changed.\nVerdict: incorrect" in found.answer


WEIGHED = ("Information", "The claim is", "Evidence", "Likelihood", "Verdict")


@pytest.mark.parametrize(
    ("kind", "blank"), [("Assessment", False), *((kind, blank) for kind in WEIGHED for blank in (False, True))]
)
def test_a_failed_call_gives_no_verdict_but_its_reason(kind, blank):
    found = interviewed(Answers(SURE, fails=(kind, blank)))
    assert (found.verdict, found.error, found.probabilities) == (None, "No luck.", ())


LOGS = st.floats(-1e6, 0)


@given(st.data(), st.sampled_from(list(SCALES.values())), st.booleans(), st.booleans(), st.booleans())
def test_any_scores_lead_to_a_legal_verdict(data, scale, calibrated, verdict_first, gate):
    def answer(ask):
        if isinstance(ask, TextRequest):
            return Completion(data.draw(st.text(max_size=20)), "length")
        count = len(ask.model_request.options)
        return OptionScores(tuple(data.draw(st.lists(LOGS, min_size=count, max_size=count))))

    found = interviewed(
        answer, interview(scale, asks_placement=gate), calibrated=calibrated, verdict_first=verdict_first
    )
    assert found.error is None
    if found.verdict == scale.nei:
        assert gate
        return
    assert found.verdict in scale.labels
    assert len(found.probabilities) == len(scale.labels)
    assert sum(found.probabilities) == pytest.approx(1)
    assert found.probabilities[scale.labels.index(found.verdict)] == max(found.probabilities)
    levels = found.levels
    assert (levels.evidence, levels.agreement, levels.confidence) in {
        (one.evidence, one.agreement, one.confidence) for one in ALL_LEVELS
    }
    assert levels.likelihood in (None, *LIKELIHOODS)
    assert found.placement in (PLACEMENTS if gate else (None,))


def prefers_first(ask):
    """What a model answers that likes the first option whatever it reads."""
    return tuple(-0.1 if place == 0 else -9.0 for place in range(len(ask.model_request.options)))


def test_what_a_model_prefers_without_content_is_taken_off():
    def biased(ask):
        if isinstance(ask, TextRequest):
            return Completion("So.", "stop")
        scores = list(prefers_first(ask))
        if not ask.blank and " accurate" in ask.model_request.options:
            scores[ask.model_request.options.index(" accurate")] += 1.0
        return OptionScores(tuple(scores))

    assert interviewed(biased, calibrated=False).verdict == "incorrect"
    found = interviewed(biased)
    assert found.verdict == "accurate"
    others = [p for label, p in zip(CLIMATE_FEEDBACK.labels, found.probabilities, strict=True) if label != "accurate"]
    assert found.probabilities[CLIMATE_FEEDBACK.labels.index("accurate")] == pytest.approx(others[0] * math.e)
    assert others == pytest.approx([others[0]] * 11)
