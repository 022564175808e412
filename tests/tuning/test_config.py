"""What is trained on what: configuration, batches, splits."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.errors import InputError
from climassay.learning.splits import split_groups
from climassay.tuning import (
    PRESETS,
    ChatData,
    ContinuedPretrainingData,
    TuningConfig,
    find_preset,
    read_result,
    split_documents,
)
from climassay.tuning.data import check_data
from climassay.tuning.result import FORMAT, RESULT_FILE
from climassay.tuning.sequences import epoch_order, iterate_batches
from tuning_parts import book, library, parity


@pytest.mark.parametrize(
    ("name", "rank", "alpha", "epochs", "learning_rate"),
    [
        pytest.param("mistral-7b-pretrain", 64, 16, 1, 5e-5, id="table-8-mistral"),
        pytest.param("llama3.1-8b-pretrain", 16, 16, 2, 2e-5, id="table-8-llama"),
        pytest.param("mistral-7b-finetune", 16, 16, 3, 5e-5, id="table-9-mistral"),
        pytest.param("llama3.1-8b-finetune", 16, 16, 3, 5e-5, id="table-9-llama"),
    ],
)
def test_presets_are_those_of_the_paper(name: str, rank: int, alpha: float, epochs: int, learning_rate: float) -> None:
    config = find_preset(name).config
    assert (config.rank, config.alpha, config.epochs, config.learning_rate) == (rank, alpha, epochs, learning_rate)
    assert config.patience is None  # the paper trains for a given number of epochs
    assert f"Table {8 if name.endswith('pretrain') else 9}" in find_preset(name).source


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("rank", 0), ("alpha", 0.0), ("alpha", float("nan")), ("dropout", 1.0), ("targets", ()), ("epochs", 0),
        ("learning_rate", 0.0), ("learning_rate", 5.0), ("warmup", 1.0), ("schedule", "sine"), ("weight_decay", -0.1),
        ("batch_size", 0), ("accumulation", 0), ("max_length", 3), ("max_gradient_norm", -1.0), ("dtype", "float16"),
        ("patience", 0), ("evaluations", 0),
    ],
)  # fmt: skip
def test_settings_that_cannot_be(setting: str, value: object) -> None:
    with pytest.raises(InputError) as refused:
        TuningConfig(**{setting: value})
    assert setting in str(refused.value)


def test_values_are_put_in_and_none_changes_nothing() -> None:
    config = TuningConfig(rank=8)
    assert config.with_values({"epochs": 3, "rank": None}) == TuningConfig(rank=8, epochs=3)
    with pytest.raises(InputError, match="no tuning setting 'lr'"):
        config.with_values({"lr": 1e-3})


def test_an_adapter_of_another_format_is_refused(tmp_path):
    (tmp_path / RESULT_FILE).write_text(f'{{"format": {FORMAT + 1}}}')
    with pytest.raises(InputError, match="not written by this version of climassay"):
        read_result(tmp_path)


def test_every_preset_says_its_name_and_task() -> None:
    for name, preset in PRESETS.items():
        assert (preset.name, preset.task) == (name, name.rpartition("-")[2])
    with pytest.raises(InputError, match="There is no tuning preset 'gpt'"):
        find_preset("gpt")


LENGTHS = st.lists(st.integers(2, 300), min_size=1, max_size=200)


@given(LENGTHS, st.integers(1, 16), st.integers(0, 5), st.integers(0, 3))
def test_every_epoch_sees_every_sequence_once(lengths: list[int], size: int, seed: int, epoch: int) -> None:
    order = epoch_order(lengths, size, seed=seed, epoch=epoch)
    assert sorted(order) == list(range(len(lengths)))
    assert order == epoch_order(lengths, size, seed=seed, epoch=epoch)


def padding(steps, lengths: list[int]) -> float:
    """Share of the computed places that hold no token."""
    computed = sum(len(step) * max(lengths[index] for index in step) for step in steps)
    return 1 - sum(lengths) / computed


def test_like_lengths_come_together_but_not_in_order() -> None:
    lengths = [10 + 37 * number % 200 for number in range(256)]
    order = epoch_order(lengths, 8, seed=0, epoch=0)
    steps, at_random = ([row[start : start + 8] for start in range(0, 256, 8)] for row in (order, range(256)))
    assert padding(steps, lengths) < 0.05 < 0.3 < padding(at_random, lengths)
    longest = [max(lengths[index] for index in step) for step in steps]
    assert longest not in (sorted(longest), sorted(longest, reverse=True))


@given(LENGTHS, st.integers(1, 16))
def test_passes_cut_a_step_by_length(lengths: list[int], size: int) -> None:
    parts = list(iterate_batches(range(len(lengths)), lengths, size))
    order = [index for part in parts for index in part]
    assert sorted(order) == list(range(len(lengths)))
    assert [lengths[index] for index in order] == sorted(lengths)
    assert all(len(part) <= size for part in parts)


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
    with pytest.raises(InputError, match="needs its documents"):
        ContinuedPretrainingData.assemble(library(ICE), source=None, validate_on="source")
    with pytest.raises(InputError, match="are not used"):
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
    with pytest.raises(InputError, match="2 examples are in the training data 'parity' and in"):
        check_data(parity(0, 6), parity(4, 9))
    with pytest.raises(InputError, match="1 documents are in"):
        check_data(library(ICE, SEA), library(SEA))
