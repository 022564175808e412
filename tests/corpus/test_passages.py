"""Passages: bounds, overlap, borders, and what they carry."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.corpus.documents import Block, Document, Passage
from climassay.corpus.passages import STRETCH, excerpt, join_passages, shared_start, split_passages
from climassay.corpus.sentences import split_sentences
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
        assert 190 < len(text) <= STRETCH * 190

    def test_a_sentence_longer_than_the_size_is_cut_between_words(self) -> None:
        text = "ice " * 200 + "end."
        passages = split_passages(document(Block(text)), size=100, overlap=0)
        assert " ".join(passage.text for passage in passages) == text
        assert all(len(passage.text) <= STRETCH * 100 for passage in passages)

    def test_no_text_gives_no_passages(self) -> None:
        assert split_passages(document()) == []
        assert split_passages(document(Block("  "))) == []

    @pytest.mark.parametrize(("size", "overlap"), [(10, 0), (1000, -1), (1000, 501)])
    def test_unfit_sizes_are_refused(self, size: int, overlap: int) -> None:
        with pytest.raises(InputError, match="take"):
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
    assert all(0 < len(passage.text) <= STRETCH * size for passage in passages)
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
        assert shared_start(before, passage) == shared

    @given(st.text("ab ", max_size=80), st.text("ab ", max_size=80))
    def test_it_is_as_looking_at_every_length(self, before: str, passage: str) -> None:
        lengths = range(20, min(len(before), len(passage)) + 1)
        longest = max((size for size in lengths if before.endswith(passage[:size])), default=0)
        assert shared_start(before, passage) == longest

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
