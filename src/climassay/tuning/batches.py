"""In which order sequences are learned: like lengths together, the same order for the same seed."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_POOL = 32
"""Batches' worth of sequences among which like lengths are looked for: enough that hardly anything is padded, few
enough that an epoch does not run from short to long."""


@dataclass(frozen=True, slots=True)
class Plan:
    """All steps of a training, each as indices of sequences."""

    epochs: tuple[tuple[tuple[int, ...], ...], ...]
    """For each epoch its steps."""

    @property
    def steps(self) -> int:
        """Steps of all epochs."""
        return sum(map(len, self.epochs))

    def step(self, number: int) -> tuple[int, ...]:
        """Sequences of a step, from 0."""
        for epoch in self.epochs:
            if number < len(epoch):
                return epoch[number]
            number -= len(epoch)
        raise IndexError(number)

    def evaluated_after(self, evaluations: int) -> frozenset[int]:
        """Numbers of steps done when the model is to be evaluated: 0, and evenly in every epoch, its end included."""
        done, places = 0, {0}
        for epoch in self.epochs:
            places |= {done + round(len(epoch) * part / evaluations) for part in range(1, evaluations + 1)}
            done += len(epoch)
        return frozenset(places)


def plan_steps(lengths: Sequence[int], *, epochs: int, step_size: int, seed: int) -> Plan:
    """Plan all steps of a training.

    Each epoch sees every sequence once, shuffled; within pools of some batches sequences are sorted by length and cut
    into steps, and the steps are shuffled. Where numbers do not divide, one step of an epoch is smaller.

    Args:
        lengths: Tokens of each sequence.
        epochs: How often each is seen.
        step_size: Sequences a step.
        seed: Decides the order, the same on any machine.
    """
    return Plan(tuple(_epoch(lengths, step_size, random.Random(f"{seed}/{epoch}")) for epoch in range(epochs)))


def _epoch(lengths: Sequence[int], step_size: int, draw: random.Random) -> tuple[tuple[int, ...], ...]:
    order = list(range(len(lengths)))
    draw.shuffle(order)
    steps = []
    for start in range(0, len(order), step_size * _POOL):
        pool = sorted(order[start : start + step_size * _POOL], key=lambda index: lengths[index])
        steps += [tuple(pool[place : place + step_size]) for place in range(0, len(pool), step_size)]
    draw.shuffle(steps)
    return tuple(steps)


def passes(indices: Sequence[int], lengths: Sequence[int], size: int) -> Iterator[tuple[int, ...]]:
    """Cut a step, or a whole validation set, into forward passes of at most ``size`` sequences of like lengths."""
    ordered = sorted(indices, key=lambda index: (lengths[index], index))
    for start in range(0, len(ordered), size):
        yield tuple(ordered[start : start + size])
