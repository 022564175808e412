"""Shared computation gives what the plain one gives: one whole sequence at a time, straight from transformers."""

import functools
import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from climassay.models.local.generation import PlainRows, SharedRows, create_rows
from climassay.models.local.model import OptionReadings, TokenisedOptions, read_options
from climassay.models.local.network import Network
from climassay.models.local.prefix_tree import ForwardStep, PrefixTree, common_length
from climassay.models.local.reader import SequenceReader, cache_columns
from tiny_models import ARCHITECTURES, tiny, tiny_recurrent

pytestmark = pytest.mark.model


LAYERS = (0, 1, -2, -1)


@functools.cache
def plain(model, request: TokenisedOptions):
    """Log-probabilities and hidden states, each sequence by itself."""
    logprobs, states = [], []
    for sequence in request.sequences:
        with torch.no_grad():
            out = model(torch.tensor([sequence]), output_hidden_states=True)
        steps = out.logits[0].log_softmax(-1)
        logprobs.append(sum(steps[i - 1, sequence[i]].item() for i in range(request.first_scored, len(sequence))))
        states.append(torch.stack([out.hidden_states[layer][0, -1] for layer in LAYERS]))
    return logprobs, torch.stack(states).numpy()


def random_requests(seed: int, count: int = 14) -> list[TokenisedOptions]:
    """Prompts of very different lengths, half of them with one of two long beginnings, options of 1 to 6 tokens."""
    chance = random.Random(seed)

    def words(least: int, most: int) -> tuple[int, ...]:
        return tuple(chance.randrange(2, 300) for _ in range(chance.randint(least, most)))

    contexts = [words(60, 90), words(30, 40), ()]
    requests = []
    for number in range(count):
        prompt = contexts[number % 3] + words(1, 25)
        common = words(0, 2)
        options = [prompt + common + words(1, 4) for _ in range(chance.randint(2, 5))]
        requests.append(TokenisedOptions(tuple(options), len(prompt)))
    return requests


def computed(reader: SequenceReader, requests: list[TokenisedOptions], layers=None) -> list[OptionReadings]:
    results = {}
    for index, readings in read_options(reader, requests, layers=layers):
        assert index not in results
        results[index] = readings
    return [results[index] for index in range(len(requests))]


@pytest.mark.parametrize("pack", [16, 64, 1000])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_shared_log_probabilities_equal_plain_ones(architecture: str, pack: int) -> None:
    model = tiny(architecture)
    requests = random_requests(seed=5)
    reader = SequenceReader(Network(model), max_packed=pack)
    assert reader.shares_prefixes
    for request, readings in zip(requests, computed(reader, requests), strict=True):
        assert readings.logprobs == pytest.approx(plain(model, request)[0], rel=1e-5, abs=1e-4)


def test_a_path_kept_from_the_call_before_changes_nothing() -> None:
    model = tiny("qwen2-sliding")
    reader = SequenceReader(Network(model), max_packed=16)
    for seed in (1, 1, 2):
        for request in random_requests(seed, count=4):
            (readings,) = computed(reader, [request])
            assert readings.logprobs == pytest.approx(plain(model, request)[0], rel=1e-5, abs=1e-4)


def test_a_model_without_attention_is_computed_plainly_and_right() -> None:
    model = tiny_recurrent()
    reader = SequenceReader(Network(model))
    assert not reader.shares_prefixes
    requests = random_requests(seed=3, count=4)
    for request, readings in zip(requests, computed(reader, requests), strict=True):
        assert readings.logprobs == pytest.approx(plain(model, request)[0], rel=1e-5, abs=1e-4)


def test_a_wrong_mask_is_noticed_by_the_check_before_sharing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("climassay.models.local.network._create_ancestor_mask", lambda segments: torch.tensor(True))
    assert not SequenceReader(Network(tiny("llama"))).shares_prefixes


SHARING = [name for name in ARCHITECTURES if "softcap" not in name]


def check(model, logits: torch.Tensor, sequences: list[list[int]]) -> None:
    """Each row's next token is that of the plain model."""
    for row, sequence in zip(logits, sequences, strict=True):
        with torch.no_grad():
            expected = model(torch.tensor([sequence])).logits[0, -1]
        torch.testing.assert_close(row.log_softmax(-1), expected.log_softmax(-1), atol=1e-4, rtol=0)


@pytest.mark.parametrize("architecture", SHARING)
def test_rows_keep_what_they_begin_with_once_and_continue_like_plain_sequences(architecture: str) -> None:
    model = tiny(architecture)
    network = Network(model)
    rows = SharedRows(network, SequenceReader(network, max_packed=32), min_saving=10)
    chance = random.Random(1)
    instruction, first, second, third = (
        [chance.randrange(2, 300) for _ in range(length)] for length in (40, 20, 12, 9)
    )
    texts: list[list[int]] = []

    def admit(prompts: list[list[int]]) -> None:
        room = rows.tokens(prompts)
        for admitted in rows.add_rows(prompts):
            texts.append(list(prompts[admitted.prompt]))
            check(model, admitted.logits[None], texts[-1:])
        assert rows.tokens() == room

    def drop(row: int) -> None:
        rows.remove_row(row)
        texts[row] = texts[-1]
        texts.pop()

    admit([[*instruction, *first], [*instruction, *first, 5], [*instruction, *second, 6], [*instruction, *first, 7, 8]])
    assert sorted(len(run.tokens) for run in rows._cache.shared_prefixes) == [20, 40]
    assert rows.tokens() == 60 + 4 * 64
    for turn in range(70):  # longer than the rows' buffers at first
        new = [chance.randrange(2, 300) for _ in texts]
        texts = [[*text, token] for text, token in zip(texts, new, strict=True)]
        logits = rows.append_tokens(new)
        if turn in (0, 3, 4, 9, 66, 69):
            check(model, logits, texts)
        if turn == 2:
            drop(0)
        if turn == 3:  # one like those that are there, two with a beginning of their own, one like nothing
            admit([[*instruction, *first, 9], [*third, *second, 3], [*third, *second, 4], [11, 12]])
        if turn == 8:
            while len(texts) > 2:
                drop(1)
            assert all(run.rows for run in rows._cache.shared_prefixes)
    # More rows than before, but shorter ones: the buffers get more rows and fewer columns.
    admit([[*third, 5]])
    drop(0)
    drop(1)
    admit([[*instruction, number, 5] for number in range(20, 29)])
    new = [chance.randrange(2, 300) for _ in texts]
    texts = [[*text, token] for text, token in zip(texts, new, strict=True)]
    check(model, rows.append_tokens(new), texts)


@pytest.mark.parametrize("architecture", ["llama", "gemma2-sliding-softcap", "recurrent"])
def test_a_model_shares_the_beginnings_of_rows_where_that_has_been_tried(architecture: str) -> None:
    network = Network(tiny_recurrent() if architecture == "recurrent" else tiny(architecture))
    rows = create_rows(network, SequenceReader(network))
    assert len(list(rows.add_rows([[*range(2, 200), last] for last in (5, 6, 7)]))) == 3
    assert (rows.tokens() < 3 * 199) == (architecture == "llama")


@pytest.mark.parametrize("architecture", [*ARCHITECTURES, "recurrent"])
def test_rows_continue_like_plain_sequences_while_others_come_and_go(architecture: str) -> None:
    model = tiny_recurrent() if architecture == "recurrent" else tiny(architecture)
    network = Network(model)
    rows = create_rows(network, SequenceReader(network, max_packed=32))
    assert isinstance(rows, PlainRows if architecture == "recurrent" else SharedRows)
    chance = random.Random(0)
    texts: list[list[int]] = []

    def admit(lengths: list[int]) -> None:
        prompts = [[chance.randrange(2, 300) for _ in range(length)] for length in lengths]
        for admitted in rows.add_rows(prompts):
            texts.append(list(prompts[admitted.prompt]))
            check(model, admitted.logits[None], texts[-1:])

    admit([9, 3, 17, 1])
    for turn in range(12):
        new = [chance.randrange(2, 300) for _ in texts]
        texts = [[*text, token] for text, token in zip(texts, new, strict=True)]
        check(model, rows.append_tokens(new), texts)
        if turn in (3, 5):
            rows.remove_row(1)
            texts[1] = texts[-1]
            texts.pop()
        if turn == 6:
            admit([4, 30])


tokens = st.lists(st.integers(0, 2), min_size=1, max_size=12)


def test_shared_beginnings_of_a_worked_example_are_computed_once() -> None:
    # 1 2 3 is common to all; 4 is common to two of them.
    sequences = [[1, 2, 3, 4, 5], [1, 2, 3, 4, 6, 7], [1, 2, 3, 8]]
    (step,) = PrefixTree(sequences).steps(max_packed=100, max_segment=100)
    assert step.n_cached == 0
    assert step.size == 8
    runs = {segment.tokens: segment for segment in step.segments}
    assert set(runs) == {(1, 2, 3), (4,), (5,), (6, 7), (8,)}
    assert runs[1, 2, 3].sequences == (0, 1, 2)
    assert set(runs[4,].sequences) == {0, 1}
    assert step.segments[runs[6, 7].parent or 0] is runs[4,]
    assert runs[6, 7].start == 4


def test_a_chain_of_a_thousand_nested_sequences_needs_no_recursion() -> None:
    sequences = [list(range(length)) for length in range(1, 1500)]
    steps = list(PrefixTree(sequences).steps(max_packed=10_000, max_segment=10_000))
    assert sum(step.size for step in steps) == 1499


@given(st.lists(tokens, max_size=12), st.integers(1, 20), st.integers(1, 6), tokens)
def test_every_position_is_computed_once_after_the_right_tokens(
    sequences: list[list[int]], pack: int, longest: int, held: list[int]
) -> None:
    tree = PrefixTree(sequences, cached=held)
    path = held
    seen: dict[tuple[int, int], int] = {}
    for step in tree.steps(max_packed=pack, max_segment=longest):
        path = path[: step.n_cached]
        assert len(path) == step.n_cached
        assert len(step.segments) == 1 or step.size <= pack
        assert len(step.segments) > 1 or step.size <= max(pack, longest)
        for segment in step.segments:
            before = path_to(step, path, cache_columns(step, segment))
            for sequence in segment.sequences:
                assert list(sequences[sequence][: segment.end]) == before
                for position in range(segment.start, segment.end):
                    seen[sequence, position] = seen.get((sequence, position), 0) + 1
        if len(step.segments) == 1:
            path = [*path, *step.segments[0].tokens]
    expected = {
        (index, place) for index, row in enumerate(sequences) for place in range(tree.n_cached_tokens, len(row))
    }
    assert seen == dict.fromkeys(expected, 1)


@given(st.lists(tokens, min_size=1, max_size=12), st.integers(1, 20))
def test_as_many_tokens_are_computed_as_there_are_different_beginnings(sequences: list[list[int]], pack: int) -> None:
    steps = PrefixTree(sequences).steps(max_packed=pack, max_segment=1000)
    beginnings = {tuple(row[:length]) for row in sequences for length in range(1, len(row) + 1)}
    assert sum(step.size for step in steps) == len(beginnings)


@given(tokens, tokens)
def test_common_length(first: list[int], second: list[int]) -> None:
    length = common_length(first, second)
    assert first[:length] == second[:length]
    assert first[: length + 1] != second[: length + 1] or length == min(len(first), len(second))


def path_to(step: ForwardStep, path: list[int], held_columns: list[int]) -> list[int]:
    """Tokens in the cache's columns after a step."""
    cache = [*path, *(token for segment in step.segments for token in segment.tokens)]
    return [cache[column] for column in held_columns]
