from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.tuning.run import learning_rate
from climassay.tuning.sequences import passes, plan_steps
from tuning_parts import small

LENGTHS = st.lists(st.integers(2, 300), min_size=1, max_size=200)


@given(LENGTHS, st.integers(1, 3), st.integers(1, 16), st.integers(0, 5))
def test_every_epoch_sees_every_sequence_once(lengths: list[int], epochs: int, size: int, seed: int) -> None:
    plan = plan_steps(lengths, epochs=epochs, step_size=size, seed=seed)
    assert plan == plan_steps(lengths, epochs=epochs, step_size=size, seed=seed)
    for epoch in plan.epochs:
        assert Counter(index for step in epoch for index in step) == Counter(range(len(lengths)))
        assert all(len(step) <= size for step in epoch)
    assert [plan.step(number) for number in range(plan.steps)] == [step for epoch in plan.epochs for step in epoch]
    with pytest.raises(IndexError):
        plan.step(plan.steps)


@given(LENGTHS, st.integers(1, 3), st.integers(1, 16), st.integers(1, 7))
def test_evaluations_are_at_the_start_and_at_every_epochs_end(
    lengths: list[int], epochs: int, size: int, evaluations: int
) -> None:
    plan = plan_steps(lengths, epochs=epochs, step_size=size, seed=0)
    places = plan.evaluated_after(evaluations)
    ends = [sum(len(epoch) for epoch in plan.epochs[:number]) for number in range(epochs + 1)]
    assert set(ends) <= places
    assert len(places) <= 1 + epochs * evaluations
    assert max(places) == plan.steps


def padding(steps, lengths: list[int]) -> float:
    """Share of the computed places that hold no token."""
    computed = sum(len(step) * max(lengths[index] for index in step) for step in steps)
    return 1 - sum(lengths) / computed


def test_like_lengths_come_together_but_not_in_order() -> None:
    lengths = [10 + 37 * number % 200 for number in range(256)]
    plan = plan_steps(lengths, epochs=1, step_size=8, seed=0)
    at_random = [tuple(range(start, start + 8)) for start in range(0, 256, 8)]
    assert padding(plan.epochs[0], lengths) < 0.05 < 0.3 < padding(at_random, lengths)
    longest = [max(lengths[index] for index in step) for step in plan.epochs[0]]
    assert longest not in (sorted(longest), sorted(longest, reverse=True))


@given(LENGTHS, st.integers(1, 16))
def test_passes_cut_a_step_by_length(lengths: list[int], size: int) -> None:
    parts = list(passes(range(len(lengths)), lengths, size))
    order = [index for part in parts for index in part]
    assert sorted(order) == list(range(len(lengths)))
    assert [lengths[index] for index in order] == sorted(lengths)
    assert all(len(part) <= size for part in parts)


def test_the_learning_rate_by_hand() -> None:
    """10 steps, 2 of them warm-up, rate 1e-2."""
    config = small(learning_rate=1e-2, warmup=0.2, schedule="linear")
    assert [learning_rate(config, step, 10) for step in (0, 1, 2, 6, 9)] == pytest.approx(
        [0.005, 0.01, 0.01, 0.005, 0.00125]
    )
    cosine = small(learning_rate=1e-2, warmup=0.2, schedule="cosine")
    assert [learning_rate(cosine, step, 10) for step in (2, 4, 6)] == pytest.approx([0.01, 0.00853553, 0.005])
    constant = small(learning_rate=1e-2, warmup=0.2, schedule="constant")
    assert [learning_rate(constant, step, 10) for step in (0, 5, 9)] == pytest.approx([0.005, 0.01, 0.01])
