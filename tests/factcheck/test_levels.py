"""Evidence, agreement and the confidence that they allow."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.confidence import vocabulary
from climassay.factcheck.transcript import (
    AGREEMENT,
    ALL_LEVELS,
    CONFIDENCES,
    EVIDENCE,
    LIKELIHOODS,
    QUANTIFIABLE,
    UNCERTAIN,
    Levels,
    allowed_confidences,
    coherent,
    weakest,
)

ASSESSMENTS = st.sampled_from(ALL_LEVELS)


@pytest.mark.parametrize(
    ("evidence", "agreement", "allowed"),
    [
        ("limited", "low", ("very low", "low")),
        ("limited", "medium", ("very low", "low", "medium")),
        ("limited", "high", ("low", "medium", "high")),
        ("medium", "low", ("very low", "low", "medium")),
        ("medium", "medium", ("low", "medium", "high")),
        ("medium", "high", ("medium", "high", "very high")),
        ("robust", "low", ("low", "medium", "high")),
        ("robust", "medium", ("medium", "high", "very high")),
        ("robust", "high", ("high", "very high")),
    ],
)
def test_confidence_increases_towards_the_corner_of_high_evidence_and_agreement(evidence, agreement, allowed):
    # Mastrandrea et al. (2010), figure 1: the levels lie on the diagonals of the table.
    assert allowed_confidences(evidence, agreement) == allowed


def test_words_stand_in_order():
    # The words of the IPCC stand in one place more, where reports and drafts are read for them.
    assert (EVIDENCE, AGREEMENT, CONFIDENCES) == (vocabulary.EVIDENCE, vocabulary.AGREEMENT, vocabulary.TAGS)
    assert CONFIDENCES == ("very low", "low", "medium", "high", "very high")
    middles = [sum(vocabulary.LIKELIHOOD_RANGES[term]) for term in LIKELIHOODS]
    assert middles == sorted(middles)
    assert len(LIKELIHOODS) == 10
    assert set(CONFIDENCES) - QUANTIFIABLE - UNCERTAIN == {"medium"}


def test_every_coherent_assessment_is_listed_once():
    assert len(set(ALL_LEVELS)) == len(ALL_LEVELS) == 25
    assert all(one.confidence in allowed_confidences(one.evidence, one.agreement) for one in ALL_LEVELS)
    assert {one.confidence for one in ALL_LEVELS} == set(CONFIDENCES)


@given(st.sampled_from(EVIDENCE), st.sampled_from(AGREEMENT), st.sampled_from(CONFIDENCES))
def test_an_incoherent_confidence_becomes_the_nearest_one_allowed(evidence, agreement, confidence):
    allowed = allowed_confidences(evidence, agreement)
    found = coherent(evidence, agreement, confidence)
    assert found in allowed
    place = CONFIDENCES.index(confidence)
    steps = [abs(CONFIDENCES.index(level) - place) for level in allowed]
    assert abs(CONFIDENCES.index(found) - place) == min(steps)
    assert coherent(evidence, agreement, found) == found


def test_very_low_confidence_with_the_best_evidence_is_raised_no_further_than_needed():
    assert coherent("robust", "high", "very low") == "high"
    assert coherent("limited", "low", "very high") == "low"


@given(st.lists(ASSESSMENTS, min_size=1, max_size=6), st.sampled_from(LIKELIHOODS))
def test_several_statements_hold_no_better_than_the_weakest(assessments, likelihood):
    found = weakest([Levels(one.evidence, one.agreement, one.confidence, likelihood) for one in assessments])
    assert Levels(found.evidence, found.agreement, found.confidence) in ALL_LEVELS
    assert found.likelihood is None
    for one in assessments:
        assert EVIDENCE.index(found.evidence) <= EVIDENCE.index(one.evidence)
        assert AGREEMENT.index(found.agreement) <= AGREEMENT.index(one.agreement)
        assert CONFIDENCES.index(found.confidence) <= CONFIDENCES.index(one.confidence)


@given(ASSESSMENTS)
def test_one_statement_stays_what_it_is(assessment):
    assert weakest([assessment]) == assessment
