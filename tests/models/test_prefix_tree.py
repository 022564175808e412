import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.models.local.prefix_tree import PrefixTree, Step, common_length
from climassay.models.local.reading import columns

pytestmark = pytest.mark.model

tokens = st.lists(st.integers(0, 2), min_size=1, max_size=12)


def test_shared_beginnings_of_a_worked_example_are_computed_once() -> None:
    # 1 2 3 is common to all; 4 is common to two of them.
    sequences = [[1, 2, 3, 4, 5], [1, 2, 3, 4, 6, 7], [1, 2, 3, 8]]
    (step,) = PrefixTree(sequences).steps(pack=100, longest=100)
    assert step.kept == 0
    assert step.size == 8
    runs = {segment.tokens: segment for segment in step.segments}
    assert set(runs) == {(1, 2, 3), (4,), (5,), (6, 7), (8,)}
    assert runs[1, 2, 3].sequences == (0, 1, 2)
    assert set(runs[4,].sequences) == {0, 1}
    assert step.segments[runs[6, 7].parent or 0] is runs[4,]
    assert runs[6, 7].start == 4


def test_a_long_beginning_becomes_the_path_and_branches_are_packed_after_it() -> None:
    beginning = list(range(50))
    sequences = [[*beginning, 100 + branch, 7] for branch in range(3)]
    steps = list(PrefixTree(sequences).steps(pack=4, longest=30))
    assert [(step.kept, step.size) for step in steps] == [(0, 30), (30, 20), (50, 4), (50, 2)]


def test_what_the_cache_holds_is_left_out() -> None:
    forest = PrefixTree([[1, 2, 3, 4], [1, 2, 9]], held=[1, 2, 3, 4])
    assert forest.held == 2
    (step,) = forest.steps(pack=10, longest=10)
    assert (step.kept, step.size) == (2, 3)


def test_a_chain_of_a_thousand_nested_sequences_needs_no_recursion() -> None:
    sequences = [list(range(length)) for length in range(1, 1500)]
    steps = list(PrefixTree(sequences).steps(pack=10_000, longest=10_000))
    assert sum(step.size for step in steps) == 1499


@given(st.lists(tokens, max_size=12), st.integers(1, 20), st.integers(1, 6), tokens)
def test_every_position_is_computed_once_after_the_right_tokens(
    sequences: list[list[int]], pack: int, longest: int, held: list[int]
) -> None:
    forest = PrefixTree(sequences, held=held)
    path = held
    seen: dict[tuple[int, int], int] = {}
    for step in forest.steps(pack=pack, longest=longest):
        path = path[: step.kept]
        assert len(path) == step.kept
        assert len(step.segments) == 1 or step.size <= pack
        assert len(step.segments) > 1 or step.size <= max(pack, longest)
        for segment in step.segments:
            before = path_to(step, path, columns(step, segment))
            for sequence in segment.sequences:
                assert list(sequences[sequence][: segment.end]) == before
                for position in range(segment.start, segment.end):
                    seen[sequence, position] = seen.get((sequence, position), 0) + 1
        if len(step.segments) == 1:
            path = [*path, *step.segments[0].tokens]
    expected = {(index, place) for index, row in enumerate(sequences) for place in range(forest.held, len(row))}
    assert seen == dict.fromkeys(expected, 1)


@given(st.lists(tokens, min_size=1, max_size=12), st.integers(1, 20))
def test_as_many_tokens_are_computed_as_there_are_different_beginnings(sequences: list[list[int]], pack: int) -> None:
    steps = PrefixTree(sequences).steps(pack=pack, longest=1000)
    beginnings = {tuple(row[:length]) for row in sequences for length in range(1, len(row) + 1)}
    assert sum(step.size for step in steps) == len(beginnings)


@given(tokens, tokens)
def test_common_length(first: list[int], second: list[int]) -> None:
    length = common_length(first, second)
    assert first[:length] == second[:length]
    assert first[: length + 1] != second[: length + 1] or length == min(len(first), len(second))


def path_to(step: Step, path: list[int], held_columns: list[int]) -> list[int]:
    """Tokens in the cache's columns after a step."""
    cache = [*path, *(token for segment in step.segments for token in segment.tokens)]
    return [cache[column] for column in held_columns]
