"""Evidence, agreement and the confidence that they allow."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.factcheck.levels import (
    ALL_LEVELS,
    CONFIDENCES,
    LEVELS,
    LIKELIHOODS,
    QUANTIFIABLE,
    UNCERTAIN,
    allowed_confidences,
    coherent,
    weakest,
)
from climassay.factcheck.transcript import Levels

ASSESSMENTS = st.sampled_from(ALL_LEVELS)


@pytest.mark.parametrize(
    ("evidence", "agreement", "allowed"),
    [
        ("low", "low", ("very low", "low")),
        ("low", "medium", ("very low", "low", "medium")),
        ("low", "high", ("low", "medium", "high")),
        ("medium", "low", ("very low", "low", "medium")),
        ("medium", "medium", ("low", "medium", "high")),
        ("medium", "high", ("medium", "high", "very high")),
        ("high", "low", ("low", "medium", "high")),
        ("high", "medium", ("medium", "high", "very high")),
        ("high", "high", ("high", "very high")),
    ],
)
def test_confidence_increases_towards_the_corner_of_high_evidence_and_agreement(evidence, agreement, allowed):
    # Mastrandrea et al. (2010), figure 1: the levels lie on the diagonals of the table.
    assert allowed_confidences(evidence, agreement) == allowed


def test_words_stand_in_order():
    assert LEVELS == ("low", "medium", "high")
    assert CONFIDENCES == ("very low", "low", "medium", "high", "very high")
    assert LIKELIHOODS[0] == "exceptionally unlikely"
    assert LIKELIHOODS[-1] == "virtually certain"
    assert set(CONFIDENCES) - QUANTIFIABLE - UNCERTAIN == {"medium"}


def test_every_coherent_assessment_is_listed_once():
    assert len(set(ALL_LEVELS)) == len(ALL_LEVELS) == 25
    assert all(one.confidence in allowed_confidences(one.evidence, one.agreement) for one in ALL_LEVELS)
    assert {one.confidence for one in ALL_LEVELS} == set(CONFIDENCES)


@given(st.sampled_from(LEVELS), st.sampled_from(LEVELS), st.sampled_from(CONFIDENCES))
def test_an_incoherent_confidence_becomes_the_nearest_one_allowed(evidence, agreement, confidence):
    allowed = allowed_confidences(evidence, agreement)
    found = coherent(evidence, agreement, confidence)
    assert found in allowed
    place = CONFIDENCES.index(confidence)
    steps = [abs(CONFIDENCES.index(level) - place) for level in allowed]
    assert abs(CONFIDENCES.index(found) - place) == min(steps)
    assert coherent(evidence, agreement, found) == found


def test_very_low_confidence_with_the_best_evidence_is_raised_no_further_than_needed():
    assert coherent("high", "high", "very low") == "high"
    assert coherent("low", "low", "very high") == "low"


@given(st.lists(ASSESSMENTS, min_size=1, max_size=6), st.sampled_from(LIKELIHOODS))
def test_several_statements_hold_no_better_than_the_weakest(assessments, likelihood):
    found = weakest([Levels(one.evidence, one.agreement, one.confidence, likelihood) for one in assessments])
    assert Levels(found.evidence, found.agreement, found.confidence) in ALL_LEVELS
    assert found.likelihood is None
    for one in assessments:
        assert LEVELS.index(found.evidence) <= LEVELS.index(one.evidence)
        assert LEVELS.index(found.agreement) <= LEVELS.index(one.agreement)
        assert CONFIDENCES.index(found.confidence) <= CONFIDENCES.index(one.confidence)


@given(ASSESSMENTS)
def test_one_statement_stays_what_it_is(assessment):
    assert weakest([assessment]) == assessment
