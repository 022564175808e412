"""Sentence splitting: what must not divide, what must, and the promise that spans cover the text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.corpus.documents import sentence_spans, split_sentences

UNDIVIDED = [
    "Smith et al. (2020) report the same trend as Jones et al. 2019 and Lee et al. [12] did.",
    "See Fig. 3 and Figs. 2 and 3 as well as Eq. 2, Eqs. 4 to 6, Sect. 5.1, Tab. 2, Ref. 7 and Chap. 9 of it.",
    "It has warmed by 1.5 °C (1.2 to 1.7 °C) since approx. 1850, i.e. since ca. 1850, e.g. over land vs. the ocean.",
    "J. Smith and A. B. Jones met Dr. K. L. Brown and Prof. White.",
    "The emissions of the U.S. Department of Energy fell, and those of the U.K. did not.",
    "This is point No. 5 of the list in vol. 3, pp. 4 to 6.",
    "The rate was 3.7 [3.2 to 4.2] mm yr–1 between 2006 and 2018 (high confidence). {3.1, 9.6, Box TS.4}",
    "Sea level rises (high confidence). (Figure SPM.2) {3.4.3, 3.5.2}",
    "B.1.2 Global warming of 2°C would be exceeded.", "A.1. Human activities are estimated to have caused it.",
    "1. Introduction to the theory.", "(a) First case of the kind.",
    "Measured in Jan. 2020, Feb. 2021 and on Sept. 3 of the year.", "The trend ... of the record … is robust.",
    "Version 2.0.1 of CMIP6.5 reads 10.5 W m–2.", "Ocean, cf. Johnson, heats up.",
    "The range is min. 0.31 and max. 0.57 of it.",
]  # fmt: skip

DIVIDED = [
    ("It rained. It snowed.", ["It rained.", "It snowed."]),
    ("Is it? Yes! Well.", ["Is it?", "Yes!", "Well."]),
    ("He said “Stop.” Then he left.", ["He said “Stop.”", "Then he left."]),
    ("(It is known.) Nobody asked.", ["(It is known.)", "Nobody asked."]),
    (
        "Warming is likely (medium confidence). {3.1} Rain too (low confidence). {3.2} Snow.",
        ["Warming is likely (medium confidence). {3.1}", "Rain too (low confidence). {3.2}", "Snow."],
    ),
    ("It grew in the U.S. The cause is known.", ["It grew in the U.S.", "The cause is known."]),
    ("So say Smith et al. However, others differ.", ["So say Smith et al.", "However, others differ."]),
    ("It fell in 2019. 45% rose.", ["It fell in 2019.", "45% rose."]),
    ("The value is 2.5 W. Nothing else.", ["The value is 2.5 W.", "Nothing else."]),
    ("Since then (AR6).12 Land took it up.", ["Since then (AR6).12", "Land took it up."]),
    ("It rose to 20 °C. The ice went.", ["It rose to 20 °C.", "The ice went."]),
    ("One paragraph\n\nAnother one", ["One paragraph", "Another one"]),
    ("The answer is no. Another is yes.", ["The answer is no.", "Another is yes."]),
    ("Methane, ozone, etc. These are short-lived.", ["Methane, ozone, etc.", "These are short-lived."]),
    ("温度上升了。海平面也上升了。", ["温度上升了。", "海平面也上升了。"]),
    ('"We know." "They do not."', ['"We know."', '"They do not."']),
]


@pytest.mark.parametrize("text", UNDIVIDED)
def test_stays_one_sentence(text: str) -> None:
    assert split_sentences(text) == [text]


@pytest.mark.parametrize(("text", "expected"), DIVIDED)
def test_is_divided(text: str, expected: list[str]) -> None:
    assert split_sentences(text) == expected


def test_no_text_has_no_sentences() -> None:
    assert split_sentences("") == []
    assert split_sentences(" \n\t\n ") == []


FRAGMENTS = [
    "et al. ", "Fig. 3", "1.5 °C", ". ", "? ", " ", "\n\n", "{3.1} ", "U.S. ", "The ", "ice", "(x). ", "…", "”",
]  # fmt: skip
ANY_TEXT = st.one_of(st.text(), st.lists(st.sampled_from(FRAGMENTS)).map("".join))


@given(ANY_TEXT)
def test_spans_cover_the_text_and_none_is_empty(text: str) -> None:
    spans = sentence_spans(text)
    if text.strip():
        assert "".join(text[start:end] for start, end in spans) == text
    else:
        assert spans == []
    assert all(text[start:end].strip() for start, end in spans)
    assert split_sentences(text) == [text[start:end].strip() for start, end in spans]


@given(st.lists(st.from_regex(r"\A[A-Z][a-z]{3,9}( [a-z]{2,9}){1,8}[.?!]\Z"), min_size=1, max_size=8))
def test_plain_sentences_are_found_again(sentences: list[str]) -> None:
    from climassay.corpus.documents import _BEFORE_NUMBER, _NEVER, _PERHAPS

    abbreviations = _NEVER | _PERHAPS | _BEFORE_NUMBER
    if not any(sentence.split()[-1].rstrip(".?!") in abbreviations for sentence in sentences):
        assert split_sentences(" ".join(sentences)) == sentences
