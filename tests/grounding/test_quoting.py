"""Whether a quotation stands in a passage, whatever PDFs do to spaces, signs and hyphens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.grounding.citations import is_quoted, mark_quotations, quoted_spans

PASSAGE = (
    "Global mean sea level (GMSL) is rising, with acceler-\nation in recent decades (very high confidence). The rate "
    "was 1.3 [0.6 to 2.1] mm yr \u20131 between 1901\u20132018. The forcing by CO 2 fell by \u22120.5 W m\u207b\u00b2 "
    "in 10.5% of \u201call cases\u201d. That is unlikely to change soon."
)


@pytest.mark.parametrize(
    "quotation",
    [
        "global mean sea level (GMSL) is rising,",
        "Global mean sea level ... acceleration in recent decades",
        "rising [\u2026] very high confidence",
        "The rate was 1.3 [0.6 to 2.1] mm yr-1 between 1901-2018.",
        "the forcing by CO2 fell by -0.5 W m-2",
        "forcing by CO\u2082 fell",
        "10.5% of 'all cases'".replace("'", '"'),
        '"That is unlikely to change soon."',
    ],
)
def test_what_stands_there_is_found_in_spite_of_signs_spaces_and_hyphens(quotation):
    assert is_quoted(quotation, PASSAGE)


@pytest.mark.parametrize(
    "quotation",
    [
        "Global mean sea level is rising",
        "acceleration in recent decades ... sea level (GMSL)",
        "likely to change soon",
        "0.5 W m-2 in",
        "0.5% of all cases",
        "in 10.5 of \"all cases\"",
        "2.3 [0.6 to 2.1] mm yr-1",
        "is rising",
        "... . ...",
        "",
    ],
    ids=["words left out", "order", "part of a word", "sign", "part of a number", "percent", "another number",
         "too short", "nothing", "empty"],
)  # fmt: skip
def test_what_does_not_stand_there_is_not(quotation):
    assert not is_quoted(quotation, PASSAGE)


@given(st.text(max_size=40), st.text(max_size=40))
def test_no_text_breaks_it(quotation, text):
    assert is_quoted(quotation, text) in (True, False)


def test_the_places_of_a_quotation_are_those_of_its_parts():
    spans = quoted_spans("acceleration in recent decades ... CO2 fell by -0.5 W m-2", PASSAGE)
    assert [PASSAGE[start:end] for start, end in spans] == [
        "acceler-\nation in recent decades",
        "CO 2 fell by \u22120.5 W m\u207b\u00b2",
    ]
    assert quoted_spans("Global mean sea level is rising", PASSAGE) == ()


@pytest.mark.parametrize(
    "quotation", ["rising, with acceleration in recent decades (very high confidence)", "(GMSL) is rising"]
)
def test_brackets_at_the_ends_of_a_quotation_are_marked_with_it(quotation):
    [marked] = [text for text, is_marked in mark_quotations(PASSAGE, [quotation]) if is_marked]
    assert marked.count("(") == marked.count(")")


def test_marks_of_quotations_that_overlap_are_one():
    pieces = mark_quotations(
        PASSAGE, ["sea level (GMSL) is rising", "Global mean sea level (GMSL)", "not in it at all"]
    )
    assert "".join(text for text, _ in pieces) == PASSAGE
    assert [text for text, is_marked in pieces if is_marked] == ["Global mean sea level (GMSL) is rising"]
