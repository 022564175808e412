"""Trust and opinions of people are told from the certainty of an assessment."""

import pytest

from climassay.confidence.extraction import extract
from climassay.confidence.marks import find_tags, is_opinion
from climassay.corpus.documents import Block, Document

OF_PEOPLE = [
    "Farmers report high confidence in seasonal forecasts.",
    "Households with low confidence in insurers rarely buy cover.",
    "Very high confidence in science is common among teachers.",
    "Investor confidence fell, and medium confidence came back with new contracts.",
    "Most residents had high confidence in the levee.",
]
OF_AN_ASSESSMENT = [
    "There is high confidence that farmers move.",
    "The report expresses high confidence that people move.",
    "We have high confidence in the sign of the change.",
    "Projections of hail have low confidence.",
    "There is medium confidence in the ability of models to simulate people's exposure.",
    "Farmers lose income (high confidence).",
]


@pytest.mark.parametrize("text", OF_PEOPLE)
def test_trust_that_people_have_is_no_level(text):
    assert find_tags(text) == []
    assert extract([Document("d", "d", "d", (Block(text),))]) == []


@pytest.mark.parametrize("text", OF_AN_ASSESSMENT)
def test_an_assessment_that_speaks_of_people_keeps_its_level(text):
    assert len(find_tags(text)) == 1


@pytest.mark.parametrize(
    ("text", "opinion"),
    [
        ("Half of the respondents considered floods likely.", True),
        ("In the survey, engineers thought a breach likely.", True),
        ("It is likely that farmers will move.", False),
        ("Farmers will likely move.", False),
    ],
)
def test_what_people_thought_is_no_likelihood(text, opinion):
    assert is_opinion(text, text.index("likely")) is opinion
