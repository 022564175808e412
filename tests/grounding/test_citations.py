import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from climassay.corpus.documents import Passage
from climassay.grounding import ground_text, written
from climassay.grounding.citations import read_citations

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
    return ground_text(text, cut=False, sources=SOURCES, encoder=None, documents=documents)


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
    assert "not checked" in written(sentence)
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
