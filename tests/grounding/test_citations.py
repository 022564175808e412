"""Citations and quotations: what a sentence cites, and whether it stands in the passage."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.corpus import Passage
from climassay.grounding import format_sentence, ground_text
from climassay.grounding.citations import read_citations
from climassay.grounding.quotations import (
    find_quoted_spans,
    is_quoted,
    mark_quotations,
)

CASES = json.loads((Path(__file__).parents[1] / "data" / "citations.json").read_text(encoding="utf-8"))
KNOWN = (1, 2, 3, 4)


def read(text):
    sentences = read_citations(text, KNOWN)
    return (
        " ".join(one.text for one in sentences).replace(" .", ".").replace(" ,", ","),
        [number for one in sentences for number in one.numbers],
        [reference.text for one in sentences for reference in one.references],
    )


@pytest.mark.parametrize("case", [*CASES["seen"], *CASES["unseen"]], ids=lambda case: case[0])
def test_citations_are_read_in_any_clothes_and_nothing_else_is(case):
    text, *expected = case
    assert read(text) == tuple(expected)


@dataclass(frozen=True)
class Source:
    number: int
    passage: Passage


SOURCES = [
    Source(number, Passage(f"p-{number}", "The sea rose.", "p", title, file, number, first_page=page, date=when))
    for number, title, file, page, when in (
        (1, "Summary for Policymakers", "IPCC_AR6_WGI_SPM.pdf", 9, "2021-08"),
        (2, "Summary for Policymakers", "IPCC_AR6_WGI_SPM.pdf", 5, "2021-08"),
        (3, "Sea level", "nerem_2018.pdf", None, "2018"),
    )
]


def grounded(text, documents=tuple):
    return ground_text(text, truncated=False, sources=SOURCES, encoder=None, documents=documents)


def test_numbers_of_no_passage_are_removed_and_counted_in_every_kind_of_bracket():
    for written_number, removed in (("[Passage 9]", 1), ("【9】", 1), ("[p. 9]", 1), ("[9–12]", 4), ("(9)", 1)):
        (sentence,), count = grounded(f"The sea rose {written_number}.")
        assert (sentence.text, sentence.citations, count) == ("The sea rose.", (), removed)
    (sentence,), count = grounded("The sea rose [1-9].")
    assert (sentence.citations, count) == ((1, 2, 3), 6)


def test_a_reference_to_no_document_at_hand_is_kept_and_marked():
    text = "The sea rose (Oppenheimer et al., 2019, p. 9)."
    (sentence,), removed = grounded(text)
    assert (sentence.text, removed) == (text, 0)
    assert sentence.unchecked_references == ("(Oppenheimer et al., 2019, p. 9)",)
    assert "not checked" in format_sentence(sentence)
    # Its year and page are not figures that a passage should have.
    (cited,), _ = grounded("The sea rose (Oppenheimer et al., 2019, p. 9) [1].")
    assert (cited.citations, cited.foreign_numbers) == ((1,), ())


def test_a_reference_to_the_document_of_a_passage_cites_it_on_its_page():
    (by_page,), _ = grounded("The sea rose (IPCC, 2021, p. 9).")
    assert (by_page.citations, by_page.origin, by_page.unchecked_references) == ((1,), "model", ())
    (whole,), _ = grounded("The sea rose (IPCC 2021).")
    assert whole.citations == (1, 2)
    (narrative,), _ = grounded("Nerem et al. (2018) saw the sea rise.")
    assert (narrative.text, narrative.citations) == ("Nerem et al. (2018) saw the sea rise.", (3,))
    (other_page,), _ = grounded("The sea rose (IPCC, 2021, p. 77).")
    assert other_page.citations == ()


def test_a_reference_to_another_document_of_the_collection_is_kept_without_a_mark():
    (sentence,), _ = grounded("The sea rose (WMO, 2023).", lambda: ["State of the Climate wmo_report.pdf 2023"])
    assert (sentence.citations, sentence.unchecked_references) == ((), ())


def test_documents_are_asked_for_only_where_a_work_is_named():
    def asked():
        raise AssertionError("not needed")

    grounded("The sea rose [1], as the IPCC (2021) says.", asked)


def test_a_hostile_text_takes_no_longer_than_its_length():
    """Steps of the reader are bounded, so that 60,000 characters end at all; a loop in it would take hours."""
    for piece in ("[1]", "(A ", "[1] and ", "(Aa et al., ", "[1-", "(A, B: ", "A. [1]"):
        read_citations(piece * 10_000, KNOWN)


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
        "Global mean sea level is rising", "acceleration in recent decades ... sea level (GMSL)",
        "likely to change soon", "0.5 W m-2 in", "0.5% of all cases", "in 10.5 of \"all cases\"",
        "2.3 [0.6 to 2.1] mm yr-1", "is rising", "... . ...", "",
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
    spans = find_quoted_spans("acceleration in recent decades ... CO2 fell by -0.5 W m-2", PASSAGE)
    assert [PASSAGE[start:end] for start, end in spans] == [
        "acceler-\nation in recent decades",
        "CO 2 fell by \u22120.5 W m\u207b\u00b2",
    ]
    assert find_quoted_spans("Global mean sea level is rising", PASSAGE) == ()


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
