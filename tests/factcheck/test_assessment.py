"""Assessments: the fields of an answer in their order, and verdicts that are legal whatever a model answers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.factcheck import SCALES
from climassay.factcheck.certainty import (
    AGREEMENT,
    CONFIDENCES,
    EVIDENCE,
    LIKELIHOODS,
    QUANTIFIABLE,
    allowed_confidences,
)
from climassay.factcheck.debate.assessment import PLACEMENTS, UNPLACED, AssessmentPrompt, answer_schema, parse_answer
from climassay.factcheck.scales import CLIMATE_FEEDBACK
from climassay.models import Message
from climassay.prompts import STRONG

GIVEN = {
    "quotations": [], "reasoning": "It weighs.", "verdict": "misleading", "evidence": "robust", "agreement": "high",
    "confidence": "very high", "likelihood": "very likely", "placement": "outlier", "explanation": "So it is.",
    "questions": [],
}  # fmt: skip


def prompt(**changes):
    known = {"passages": (1, 2), "statements": (), "recipients": ("Ice",), "is_advocate": True}
    return AssessmentPrompt((Message("user", "Claim: the Sun did it."),), **{**known, **changes})


def parsed(scale=CLIMATE_FEEDBACK, asked=None, **changes):
    return parse_answer({**GIVEN, **changes}, asked or prompt(), scale, STRONG)


def fields(**changes):
    return list(answer_schema(prompt(**changes), CLIMATE_FEEDBACK, STRONG)["properties"])


def test_evidence_comes_first_then_reasons_verdict_certainty_and_explanation():
    judged = ["quotations", "reasoning", "verdict", "evidence", "agreement", "confidence", "likelihood"]
    assert fields() == [*judged, "placement", "explanation", "questions"]
    assert fields(n_replies=1, recipients=()) == ["replies", *judged, "placement", "explanation"]
    assert fields(statements=(1, 2)) == ["statements", *judged[1:], "placement", "explanation", "questions"]
    # The mediator judges the whole; its quotations name the statements.
    assert fields(statements=(1, 2), is_advocate=False) == [*judged, "explanation", "questions"]
    assert fields(passages=(), recipients=()) == [*judged[1:], "placement", "explanation"]


@pytest.mark.parametrize("evidence", EVIDENCE)
@pytest.mark.parametrize("agreement", AGREEMENT)
@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_confidence_is_moved_to_what_evidence_and_agreement_allow_and_bears_a_likelihood_if_high(
    evidence, agreement, confidence
):
    levels = parsed(evidence=evidence, agreement=agreement, confidence=confidence).levels
    allowed = allowed_confidences(evidence, agreement)
    assert levels.confidence in allowed
    assert levels.confidence == confidence or confidence not in allowed
    assert levels.likelihood == ("very likely" if levels.confidence in QUANTIFIABLE else None)


def test_without_information_there_are_no_levels_and_no_placement():
    found = parsed(verdict=CLIMATE_FEEDBACK.nei)
    assert (found.verdict, found.levels, found.placement) == (CLIMATE_FEEDBACK.nei, None, None)
    assert (found.reasoning, found.explanation) == ("It weighs.", "So it is.")


def test_a_placement_that_cannot_be_told_is_none():
    assert parsed(placement=UNPLACED).placement is None
    assert parsed().placement == "outlier"


def test_questions_go_to_those_who_are_there_with_a_limited_number_of_queries():
    asked = [
        {"to": "Ice", "question": " Which\nrecord? ", "queries": ["ice", "", "snow", "sea", "rain"]},
        {"to": "Nobody", "question": "Why?", "queries": []},
        {"to": "Ice", "question": " ", "queries": []},
    ]
    [question] = parsed(questions=asked).questions
    assert (question.to, question.text, question.queries) == ("Ice", "Which record?", ("ice", "snow", "sea"))
    assert len(parsed(questions=asked[:1] * 5).questions) == 3


@pytest.mark.parametrize(
    "changes",
    [
        {"verdict": "TRUE"}, {"evidence": "some"}, {"quotations": [{"passage": "1", "quotation": "q", "side": "for"}]},
        {"quotations": [{"passage": 1, "quotation": "q", "side": "neither"}]}, {"quotations": ["q"]},
    ],
)  # fmt: skip
def test_an_answer_beyond_the_schema_is_refused(changes):
    with pytest.raises((ValueError, KeyError, TypeError, AttributeError)):
        parsed(**changes)


@st.composite
def answers(draw, schema):
    """Any value of the schema."""
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    if schema["type"] == "object":
        return {name: draw(answers(part)) for name, part in schema["properties"].items()}
    if schema["type"] == "array":
        return [draw(answers(schema["items"])) for _ in range(draw(st.integers(0, schema["maxItems"])))]
    if schema["type"] == "integer":
        return draw(st.integers(schema["minimum"], schema["maximum"]))
    return draw(st.text(max_size=min(20, schema["maxLength"])))


@given(st.data(), st.sampled_from(list(SCALES.values())), st.booleans(), st.sampled_from([(), (1, 2)]))
def test_any_answer_under_the_schema_is_a_legal_assessment(data, scale, is_advocate, statements):
    asked = prompt(is_advocate=is_advocate, statements=statements, n_replies=1)
    found = parse_answer(data.draw(answers(answer_schema(asked, scale, STRONG))), asked, scale, STRONG)
    assert len(found.statements) == (len(statements) if is_advocate else 0)
    for one in (found, *found.statements):
        assert one.verdict in (*scale.labels, scale.nei)
        assert (one.levels is None) == (one.verdict == scale.nei)
        if one.levels is not None:
            assert one.levels.confidence in allowed_confidences(one.levels.evidence, one.levels.agreement)
            assert one.levels.likelihood in (None, *LIKELIHOODS)
        assert {quotation.passage for quotation in one.quotations} <= {1, 2}
    assert found.placement in (None, *PLACEMENTS)
