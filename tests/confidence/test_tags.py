"""Calibrated words are found in every form that reports write them in; trust and opinions of people are told apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.confidence.extraction import extract
from climassay.confidence.tags import find_likelihoods, find_tags, is_opinion
from climassay.confidence.vocabulary import LEVELS, LIKELIHOODS
from climassay.corpus import Block, Document

ONE_MARK = [
    ("Seas rise (high confidence).", "high confidence", ("high",)),
    ("Seas rise (very high confidence; virtually certain).", "very high confidence", ("very high",)),
    ("Seas rise (medium to high confidence).", "medium to high confidence", ("medium", "high")),
    ("Seas rise (low confidence to high confidence, by region).", "low confidence to high confidence", ("low", "high")),
    ("Seas rise (high to medium confidence).", "high to medium confidence", ("medium", "high")),
    ("Seas rise (hi gh confidence).", "hi gh confidence", ("high",)),
    ("Seas rise (medi um con fidence).", "medi um con fidence", ("medium",)),
    ("Seas rise (l ow confidence).", "l ow confidence", ("low",)),
    ("Seas rise (veryhigh confidence).", "veryhigh confidence", ("very high",)),
    ("Seas rise (lowconfidence).", "lowconfidence", ("low",)),
    ("Seas rise (high \u00adconfidence).", "high \u00adconfidence", ("high",)),
    ("Seas rise (high confi-\ndence).", "high confi-\ndence", ("high",)),
    ("Seas rise (very\nhigh\nconfidence).", "very\nhigh\nconfidence", ("very high",)),
    ("Seas rise (*very high* *confidence*).", "very high* *confidence", ("very high",)),
    ("Seas rise (high confidence12).", "high confidence12", ("high",)),
    ("Seas rise (high10 confidence).", "high10 confidence", ("high",)),
    ("Seas rise [high confidence].", "high confidence", ("high",)),
    ("Seas rise {A.1.2, Table 2} (high confidence).", "high confidence", ("high",)),
    ("Seas rise (high confidence, Figure 3).", "high confidence", ("high",)),
    ("Seas rise (as in A (high confidence)).", "high confidence", ("high",)),
    ("There is medium confidence that seas rise.", "medium confidence", ("medium",)),
    ("Seas rise with a high degree of confidence.", "high degree of confidence", ("high",)),
    ("High confidence: seas rise.", "High confidence", ("high",)),
    ("Seas rise (high confidence⁵).", "high confidence⁵", ("high",)),
    ("Seas rise (confidence: high).", "confidence: high", ("high",)),
    ("Region: NES; Confidence level: very low; Trend: up", "Confidence level: very low", ("very low",)),
    ("Seas rise [level of confidence = Medium–High].", "level of confidence = Medium–High", ("medium", "high")),
    ("Judged by high or very high confidence.", "high or very high confidence", ("high", "very high")),
]


@pytest.mark.parametrize(("text", "words", "levels"), ONE_MARK)
def test_a_mark_is_found_where_it_stands(text, words, levels):
    (mark,) = find_tags(text)
    assert text[mark.start : mark.end] == words
    assert mark.levels == levels
    assert mark.level == levels[-1]


@pytest.mark.parametrize(
    "text",
    [
        "the 95% confidence interval", "a high confidence interval", "confidence has grown, and trust is higher",
        "below confidence, at high latitudes confidence grows", "there is limited evidence that it works",
        "more likely in winter (likely range 0.1 to 0.3)", "confidence: low, medium or high", "confidence: low/medium",
        "consumer confidence: low", "confidence: high tides rise",
        "the words “high confidence” are set in italics", "this is not assessed with high confidence", "",
    ],
)  # fmt: skip
def test_ordinary_words_are_no_marks(text):
    assert find_tags(text) == []


def test_brackets_of_several_levels_give_one_mark_each_with_its_scope():
    text = "Droughts increase (NES: high confidence; WAF, CAF: medium confidence)."
    first, second = find_tags(text)
    assert (first.level, first.scope) == ("high", "NES")
    assert (second.level, second.scope) == ("medium", "WAF, CAF")
    assert first.bracket == second.bracket
    assert text[slice(*first.span_with_brackets)] == "(NES: high confidence; WAF, CAF: medium confidence)"


def test_a_further_level_without_its_noun_has_its_own_scope():
    text = "Extremes rise (high confidence for heat, medium for rain and low for hail)."
    assert [(mark.levels, mark.scope) for mark in find_tags(text)] == [
        (("high",), "for heat"),
        (("medium",), "for rain"),
        (("low",), "for hail"),
    ]
    text = "Confidence is high for heat, medium for rain, and very low for hail."
    assert [mark.level for mark in find_tags(text)] == ["high", "medium", "very low"]
    text = "Seas rise (high confidence in the Arctic, and low-lying islands)."
    assert [mark.level for mark in find_tags(text)] == ["high"]


def test_evidence_agreement_and_likelihood_of_the_same_brackets():
    (mark,) = find_tags("It works (medium confidence: low evidence, high agreement, likely).")
    assert (mark.level, mark.evidence, mark.agreement, mark.likelihood) == ("medium", "limited", "high", ("likely",))
    (mark,) = find_tags("It works (robust evidence, high agreement).")
    assert (mark.levels, mark.evidence, mark.agreement, mark.in_brackets) == ((), "robust", "high", True)
    (mark,) = find_tags("There is medium evidence and low agreement that it works.")
    assert (mark.levels, mark.evidence, mark.agreement, mark.in_brackets) == ((), "medium", "low", False)
    (mark,) = find_tags("It works (virtually certain).")
    assert (mark.levels, mark.likelihood) == ((), ("virtually certain",))


def test_a_sentence_in_brackets_has_running_marks():
    text = (
        "Storms shift (Section 4 concluded that there is low confidence in the attribution of changes in their number)."
    )
    (mark,) = find_tags(text)
    assert (mark.level, mark.in_brackets) == ("low", False)


def test_a_hyphenated_mark_before_a_noun_is_attributive():
    assert [mark.attributive for mark in find_tags("low-confidence processes; with low confidence")] == [True, False]


@pytest.mark.parametrize("term", LIKELIHOODS)
def test_every_term_of_likelihood_is_found(term):
    text = f"It is {term} that seas rise."
    assert [(text[found.start : found.end], found.term) for found in find_likelihoods(text)] == [(term, term)]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("They are not likely to run out.", []),
        ("It isn’t very likely, and it was not considered to be likely.", []),
        ("It is neither likely nor unlikely.", []),
        ("It is not certain, but likely.", ["likely"]),
        ("It is unlikely.", ["unlikely"]),
        ("It is more likely than not to likely.", ["more likely than not", "likely"]),
    ],
)
def test_negated_terms_of_likelihood_are_left_out(text, terms):
    assert [term.term for term in find_likelihoods(text)] == terms


def test_comparisons_are_no_terms_of_likelihood():
    assert find_likelihoods("Floods are more likely in winter, least likely in May; the likelihood grows.") == []
    assert [found.term for found in find_likelihoods("It is at least likely that seas rise.")] == ["likely"]


pieces = st.sampled_from(
    [*LEVELS, "confidence", " confidence", "(", ")", "[", "]", "{", "}", " to ", "; ", ", ", "-", "\n",
     "robust evidence", "high agreement", "likely", "very ", "there is ", " that ", "\u00ad", "*", "12", ". ", "é",
     "\x00"]
)  # fmt: skip


@given(st.one_of(st.text(), st.lists(pieces, max_size=40).map("".join)))
def test_marks_lie_in_the_text_in_order_and_apart(text):
    marks = find_tags(text)
    last = 0
    for mark in marks:
        assert last <= mark.start < mark.end <= len(text)
        assert mark.span_with_brackets[0] <= mark.start < mark.end <= mark.span_with_brackets[1]
        last = mark.end


@given(st.sampled_from(LEVELS), st.text(alphabet="abc xyz,.", max_size=30), st.text(alphabet="abc xyz,.", max_size=30))
def test_a_plain_mark_is_found_among_any_words(tag, before, after):
    found = find_tags(f"{before} ({tag} confidence) {after}")
    assert [mark.level for mark in found] == [tag]


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
