"""From text to passages: sentences, bounds, overlap, and the names of reports."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.corpus import Block, Document, Passage, split_passages
from climassay.corpus.documents import (
    MAX_STRETCH,
    count_repeated_characters,
    excerpt,
    expand_report_name,
    full_title,
    join_passages,
)
from climassay.corpus.sentences import sentence_spans, split_sentences
from climassay.errors import InputError


def sentence(number: int, length: int) -> str:
    """A sentence of so many characters that says its number."""
    return f"Sentence {number} ".ljust(length - 1, "x") + "."


def document(*blocks: Block, **fields: str) -> Document:
    return Document(id="d1", title="Ice", source="ice.md", blocks=blocks, **fields)


class TestCutting:
    def test_hand_worked(self) -> None:
        sentences = [sentence(number, 40) for number in range(7)]
        assert {len(text) for text in sentences} == {40}
        passages = split_passages(document(Block(" ".join(sentences))), size=130, overlap=45)
        # Three sentences and two spaces are 122 characters; each next passage begins with the last sentence before.
        assert [passage.text for passage in passages] == [
            " ".join(sentences[0:3]),
            " ".join(sentences[2:5]),
            " ".join(sentences[4:7]),
        ]
        assert [passage.id for passage in passages] == ["d1-0", "d1-1", "d1-2"]
        assert [passage.position for passage in passages] == [0, 1, 2]

    def test_a_short_tail_joins_the_passage_before(self) -> None:
        text = " ".join([*(sentence(number, 60) for number in range(3)), "That is all."])
        passages = split_passages(document(Block(text)), size=190, overlap=20)
        assert [passage.text for passage in passages] == [text]
        assert 190 < len(text) <= MAX_STRETCH * 190

    def test_a_sentence_longer_than_the_size_is_cut_between_words(self) -> None:
        text = "ice " * 200 + "end."
        passages = split_passages(document(Block(text)), size=100, overlap=0)
        assert " ".join(passage.text for passage in passages) == text
        assert all(len(passage.text) <= MAX_STRETCH * 100 for passage in passages)

    def test_no_text_gives_no_passages(self) -> None:
        assert split_passages(document()) == []
        assert split_passages(document(Block("  "))) == []

    @pytest.mark.parametrize(("size", "overlap"), [(10, 0), (1000, -1), (1000, 501)])
    def test_unfit_sizes_are_refused(self, size: int, overlap: int) -> None:
        with pytest.raises(InputError, match="use"):
            split_passages(document(Block("Text.")), size=size, overlap=overlap)


class TestBorders:
    def test_a_new_section_begins_a_passage_once_the_last_is_half_full(self) -> None:
        half = " ".join(sentence(number, 50) for number in range(2))
        blocks = (Block(half, headings=("A", "x")), Block(half, headings=("A", "y")))
        assert len(split_passages(document(*blocks), size=210, overlap=0)) == 1
        assert len(split_passages(document(*blocks), size=200, overlap=0)) == 2


class TestWhatTheyCarry:
    def test_place_and_document(self) -> None:
        blocks = (
            Block("First.", page=3, paragraph_id="p1", headings=("A", "x"), chapter="Chapter 1"),
            Block("Second.", page=3, last_page=4, paragraph_id="p2", headings=("A", "x", "deep"), chapter="Chapter 1"),
        )
        fields = {"url": "https://e.org", "report": "AR6 WG1", "date": "2021", "edition": "2", "licence": "CC0"}
        assert split_passages(document(*blocks, **fields)) == [
            Passage(
                id="d1-0", text="First.\nSecond.", document_id="d1", document="Ice", source="ice.md", position=0,
                headings=("A", "x"), first_page=3, last_page=4, url="https://e.org", report="AR6 WG1",
                chapter="Chapter 1", paragraph_ids=("p1", "p2"), date="2021", edition="2", licence="CC0",
            )
        ]  # fmt: skip

    def test_the_paragraphs_own_address_goes_before_the_documents(self) -> None:
        blocks = (Block("First.", url="https://e.org/1"), Block("Second.", url="https://e.org/1"))
        assert split_passages(document(*blocks, url="https://e.org"))[0].url == "https://e.org/1"
        mixed = (blocks[0], Block("Second.", url="https://e.org/2"))
        assert split_passages(document(*mixed, url="https://e.org"))[0].url == "https://e.org"


WORDS = st.sampled_from(
    ["ice", "melts", "et al.", "Fig.", "rises", "1.5", "°C", "cloud", "(high", "confidence).", "x" * 70]
)
SENTENCES = st.lists(WORDS, min_size=1, max_size=40).map(lambda words: "The " + " ".join(words) + ".")
BLOCKS = st.lists(
    st.builds(
        Block,
        text=st.lists(SENTENCES, min_size=1, max_size=6).map(" ".join),
        headings=st.sampled_from([(), ("A",), ("A", "x"), ("B",)]),
        chapter=st.sampled_from([None, "1"]),
    ),
    max_size=6,
).map(lambda blocks: [dataclasses.replace(block, paragraph_id=str(n)) for n, block in enumerate(blocks)])


@given(BLOCKS, st.integers(100, 600), st.floats(0, 0.5))
def test_bounds_coverage_and_borders(blocks: list[Block], size: int, share: float) -> None:
    work = document(*blocks)
    passages = split_passages(work, size=size, overlap=int(share * size))
    assert passages == split_passages(work, size=size, overlap=int(share * size))
    assert len({passage.id for passage in passages}) == len(passages)
    assert all(0 < len(passage.text) <= MAX_STRETCH * size for passage in passages)
    sentences = [text for block in blocks for text in split_sentences(block.text)]
    for block in blocks:
        carrying = [passage.text for passage in passages if str(block.paragraph_id) in passage.paragraph_ids]
        for text in split_sentences(block.text):
            assert len(text) > size or any(text in passage for passage in carrying)
    for passage in passages:
        carried = [blocks[int(number)] for number in passage.paragraph_ids]
        assert {(block.chapter, block.headings[:1]) for block in carried} == {
            (passage.chapter, carried[0].headings[:1])
        }
        assert all(block.headings[: len(passage.headings)] == passage.headings for block in carried)
        if all(len(text) <= size for text in sentences):
            assert any(passage.text.endswith(text) for text in sentences)


class TestJoining:
    def test_what_neighbours_share_stands_once(self) -> None:
        texts = [
            "The sea rises. It will go on rising for centuries.",
            "It will go on rising for centuries. Ice melts.",
            "A new section begins.",
        ]
        joined = "The sea rises. It will go on rising for centuries. Ice melts.\n\nA new section begins."
        assert join_passages(texts) == joined
        assert join_passages([]) == ""

    @pytest.mark.parametrize(
        ("before", "passage", "shared"),
        [
            ("Ice melts in the warm sea. Ice melts in the", "Ice melts in the warm sea. Ice melts in the end.", 43),
            ("Ice melts. Snow falls on the mountains.", "Snow falls on the mountains. Rain too.", 28),
            ("Ice melts. Snow falls.", "Snow falls. Rain falls, too.", 0),  # too short to be told from chance
            ("Snow falls on the mountains", "Snow falls on the mountain tops", 0),
            ("", "Snow falls on the mountains.", 0),
        ],
    )
    def test_the_longest_overlap_is_found(self, before: str, passage: str, shared: int) -> None:
        assert count_repeated_characters(before, passage) == shared

    @given(st.text("ab ", max_size=80), st.text("ab ", max_size=80))
    def test_it_is_as_looking_at_every_length(self, before: str, passage: str) -> None:
        lengths = range(20, min(len(before), len(passage)) + 1)
        longest = max((size for size in lengths if before.endswith(passage[:size])), default=0)
        assert count_repeated_characters(before, passage) == longest

    @given(st.lists(st.integers(30, 90), min_size=1, max_size=12), st.integers(0, 100))
    def test_a_section_comes_back_as_it_was(self, lengths: list[int], overlap: int) -> None:
        text = " ".join(sentence(number, length) for number, length in enumerate(lengths))
        passages = split_passages(document(Block(text)), size=200, overlap=overlap)
        assert join_passages([one.text for one in passages]).replace("\n\n", " ") == text


def test_worked_example_of_an_excerpt() -> None:
    sentences = ["The ice melts.", "Cows graze here.", "The ice is thin.", "Nobody knows."]
    nearness = np.array([0.9, 0.1, 0.8, 0.7])
    assert excerpt(sentences, nearness, 7) == "The ice melts. ... The ice is thin."
    assert excerpt(sentences, nearness, 9) == "The ice melts. ... The ice is thin. Nobody knows."
    assert excerpt(sentences, nearness, 5) == "The ice melts. ... Nobody knows."
    assert excerpt(sentences, nearness, 2) == "The ice ..."
    assert excerpt(sentences, nearness, 0) == "The ice melts. Cows graze here. The ice is thin. Nobody knows."


def test_a_nearest_sentence_that_is_too_long_is_cut_and_not_passed_over() -> None:
    assert excerpt(["The ice of the Arctic melts.", "No."], np.array([0.9, 0.0]), 3) == "The ice of ..."


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
    from climassay.corpus.sentences import _BEFORE_NUMBER, _MAYBE_BEFORE_END, _NEVER_BEFORE_END

    abbreviations = _NEVER_BEFORE_END | _MAYBE_BEFORE_END | _BEFORE_NUMBER
    if not any(sentence.split()[-1].rstrip(".?!") in abbreviations for sentence in sentences):
        assert split_sentences(" ".join(sentences)) == sentences


SPM = "Summary for Policymakers"


@pytest.mark.parametrize(
    ("hints", "title"),
    [
        (["", "ipcc_sr15_spm"], "IPCC SR15 (2018), "),
        (["IPCC AR6 Working Group I", "x"], "IPCC AR6 WG1 (2021), "),
        (["", "IPCC_AR6_WGII_SummaryForPolicymakers"], "IPCC AR6 WG2 (2022), "),
        (["", "AR5-SYR-SPM"], "IPCC AR5 SYR (2014), "),
        (["", "ar4_wg1_spm"], "IPCC AR4 WG1 (2007), "),
        (["", "SROCC_SPM_HeadlineStatements"], "IPCC SROCC (2019), "),
        (["", "spm", "should be cited as: IPCC, 2018: Summary. In: Global Warming of 1.5°C"], "IPCC SR15 (2018), "),
        (["", "spm", "This summary should be cited as: WMO, 2024: Summary."], "WMO (2024), "),
        (["", "download(3)"], ""),
    ],
)
def test_a_summary_is_named_by_its_report(hints, title):
    assert full_title(SPM, hints) == title + SPM


@pytest.mark.parametrize(
    ("title", "hints", "full"),
    [
        ("SYNTHESIS REPORT Summary for Policymakers", ["", "IPCC_AR6_SYR_SPM"], f"IPCC AR6 SYR (2023), {SPM}"),
        ("SYNTHESIS REPORT SUMMARY FOR POLICYMAKERS", ["IPCC AR6"], f"IPCC AR6 SYR (2023), {SPM}"),
        (
            "Synthesis Report, Summary for Policymakers",
            ["", "download", "Contribution of Working Groups I, II and III to the Sixth Assessment Report of the IPCC"],
            f"IPCC AR6 SYR (2023), {SPM}",
        ),
        ("Synthesis Report: Longer Report", ["", "AR6-SYR"], "IPCC AR6 SYR (2023), Longer Report"),
        ("SYNTHESIS REPORT", ["", "ar5_syr"], "IPCC AR5 SYR (2014)"),
        (f"Technical Summary {SPM}", ["ipcc wg1 ar6"], f"IPCC AR6 WG1 (2021), Technical Summary, {SPM}"),
        (f"{SPM} of the Fifth Assessment", ["AR5"], f"{SPM} of the Fifth Assessment"),
    ],
)
def test_titles_of_general_parts_alone_are_named_by_their_report(title, hints, full):
    assert full_title(title, hints) == full


@pytest.mark.parametrize("title", ["Global Carbon Budget 2023", "Summary of the state of the climate", "Oceans"])
def test_titles_of_their_own_stay(title):
    assert full_title(title, ["", "ipcc_sr15_spm"]) == title


@pytest.mark.parametrize(
    ("name", "source", "full"),
    [
        ("wg1", "ipcc_ar6_paragraphs.jsonl.gz", "IPCC AR6 WG1 (2021)"),
        ("syr", "ipcc_ar6_paragraphs.jsonl.gz", "IPCC AR6 SYR (2023)"),
        ("SR1.5", "table.csv", "IPCC SR15 (2018)"),
        ("AR5 WGIII", "table.csv", "IPCC AR5 WG3 (2014)"),
        ("wg1", "paragraphs.jsonl", "wg1"),
        ("Global Carbon Budget 2023", "ar6_wg1.csv", "Global Carbon Budget 2023"),
        ("WG1 and the sceptics", "ar6.csv", "WG1 and the sceptics"),
    ],
)
def test_an_abbreviated_report_is_named_in_full_where_its_cycle_is_known(name, source, full):
    assert expand_report_name(name, source) == full
