from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.errors import InputError
from climassay.learning.splits import split_groups
from climassay.tuning import ChatData, ContinuedPretrainingData, split_documents
from climassay.tuning.data import check_data
from tuning_parts import book, library, parity

ICE, SEA, AIR, SOIL = (
    book(name, words) for name, words in (("ice", "glacier"), ("sea", "current"), ("air", "wind"), ("soil", "carbon"))
)
LONG = " and so on for long enough that nobody would write this sentence by chance into another book"


def long_book(name: str, words: str):
    plain = book(name, words)
    return replace(plain, paragraphs=tuple(paragraph + LONG for paragraph in plain.paragraphs))


def test_three_disjoint_sets_need_no_warning() -> None:
    data = ContinuedPretrainingData.assemble(
        library(ICE, SEA), source=library(AIR, name="books"), validation=library(SOIL, name="third")
    )
    assert (data.train.documents, data.validation.documents, data.warnings) == ((ICE, SEA), (SOIL,), ())


def test_validating_on_the_source_reproduces_the_paper_and_warns() -> None:
    data = ContinuedPretrainingData.assemble(library(ICE), source=library(AIR, name="books"), validate_on="source")
    assert data.validation.documents == (AIR,)
    assert "Leakage" in data.warnings[0]
    assert "books" in data.warnings[0]


def test_a_source_that_nobody_named_is_warned_of() -> None:
    data = ContinuedPretrainingData.assemble(library(ICE), source=None, validation=library(SOIL))
    assert "nobody has checked" in data.warnings[0]


@pytest.mark.parametrize(
    ("train", "source", "validation", "message"),
    [
        pytest.param(
            (ICE, AIR), (AIR,), (SOIL,), "'air' is in the training documents .*questions come from", id="read"
        ),
        pytest.param((ICE,), (AIR,), (AIR,), "'air' is in the validation documents .*questions come", id="validated"),
        pytest.param((ICE, SOIL), (AIR,), (SOIL,), "'soil' is in the training documents .*validation", id="both"),
        pytest.param((ICE,), (AIR,), None, "nothing to validate on", id="missing"),
    ],
)
def test_overlap_is_refused(train, source, validation, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ContinuedPretrainingData.assemble(
            library(*train),
            source=library(*source),
            validation=None if validation is None else library(*validation),
        )


def test_the_same_book_under_another_name_is_found() -> None:
    """Another edition: other id and title, a third of the text the same but for case and spaces."""
    original = long_book("original", "cloud")
    others = long_book("other", "storm").paragraphs
    copied = tuple(paragraph.upper().replace(" ", "  ") for paragraph in original.paragraphs[:4])
    edition = replace(original, id="new", title="Second edition", paragraphs=copied + others[:8])
    with pytest.raises(InputError, match=r"'Second edition' is in .* and, as 'original', in"):
        ContinuedPretrainingData.assemble(library(edition), source=library(original), validation=library(SOIL))
    quoting = replace(edition, paragraphs=copied[:1] + others)
    data = ContinuedPretrainingData.assemble(library(quoting), source=library(original), validation=library(SOIL))
    assert not data.warnings


def test_what_goes_with_the_source_only() -> None:
    with pytest.raises(InputError, match="its documents are needed"):
        ContinuedPretrainingData.assemble(library(ICE), source=None, validate_on="source")
    with pytest.raises(InputError, match="leaves no use"):
        ContinuedPretrainingData.assemble(
            library(ICE), source=library(AIR), validation=library(SOIL), validate_on="source"
        )


def test_documents_are_split_whole() -> None:
    books = library(*(book(str(number), f"word{number}") for number in range(10)))
    kept, held_out = split_documents(books, 0.3, seed=1)
    assert len(held_out.documents) == 3
    assert set(kept.documents) | set(held_out.documents) == set(books.documents)
    assert (kept, held_out) == split_documents(books, 0.3, seed=1)
    assert held_out != split_documents(books, 0.3, seed=2)[1]
    with pytest.raises(InputError, match="between 0 and 1"):
        split_documents(books, 1.0)
    with pytest.raises(InputError, match="comes from one text"):
        split_documents(library(ICE), 0.5)


@given(st.lists(st.integers(0, 12), min_size=2, max_size=80), st.floats(0.01, 0.99), st.integers(0, 3))
def test_no_group_stands_on_both_sides(groups: list[int], share: float, seed: int) -> None:
    items = list(range(len(groups)))
    if len(set(groups)) < 2:
        with pytest.raises(InputError):
            split_groups(items, groups, share, seed=seed)
        return
    kept, held_out = split_groups(items, groups, share, seed=seed)
    assert sorted([*kept, *held_out]) == items
    assert kept
    assert held_out
    assert not {groups[item] for item in kept} & {groups[item] for item in held_out}
    assert list(kept) == sorted(kept)
    largest = max(groups.count(group) for group in set(groups))
    assert len(held_out) <= max(share * len(items) + largest / 2, largest)


def test_data_that_nothing_can_be_learned_from() -> None:
    with pytest.raises(InputError, match="of different kinds"):
        check_data(parity(0, 2), library(ICE))
    with pytest.raises(InputError, match="The training data 'none' is empty"):
        check_data(ChatData("none", ()), parity(0, 2))
    with pytest.raises(InputError, match="The validation data 'library' is empty"):
        check_data(library(ICE), library(replace(SEA, paragraphs=())))
    with pytest.raises(InputError, match="2 examples stand in the training data 'parity' and in"):
        check_data(parity(0, 6), parity(4, 9))
    with pytest.raises(InputError, match="1 documents stand in"):
        check_data(library(ICE, SEA), library(SEA))
