"""The beam merge of PairS, plainly: the reference that the exact merge is tested and timed against.

Every candidate is a whole partial merge, copied when it grows, as published. The search asks only for the comparisons
its candidates stand at. Unlike the published code of PPairS, an uncertain comparison does not enter the preferred way
twice, which would fill the beam with copies; and merges go best first, where PairS goes worst first.

References:
    Liu et al. 2024, Aligning with Human Judgement, arXiv 2403.16950, algorithm 1.
    Maiya 2024, section 2.2 and appendix A: beam of 1000, threshold 0.6 nats.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Literal

import numpy as np

from climassay.judging.merge import LookUp, Merged, Run, gains


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A partial merge."""

    order: tuple[int, ...]
    i: int
    j: int
    log_likelihood: float
    comparisons: int

    def value(self, score: Literal["mean", "sum"]) -> float:
        if score == "sum":
            return self.log_likelihood
        return self.log_likelihood / max(self.comparisons, 1)


_Gains = dict[tuple[int, int], tuple[float, float]]


def _grow(candidate: _Candidate, left: Run, right: Run, known: _Gains) -> list[_Candidate]:
    """Continue a partial merge in every open way, by one item, or by the whole rest once a list is exhausted."""
    order, i, j = candidate.order, candidate.i, candidate.j
    if i == len(left) or j == len(right):
        return [_Candidate((*order, *left[i:], *right[j:]), len(left), len(right), *_made(candidate))]
    gain_left, gain_right = known[i, j]
    total, made = _made(candidate)
    ways = []
    if gain_left > -np.inf:
        ways.append(_Candidate((*order, left[i]), i + 1, j, total + gain_left, made + 1))
    if gain_right > -np.inf:
        ways.append(_Candidate((*order, right[j]), i, j + 1, total + gain_right, made + 1))
    return ways


def _made(candidate: _Candidate) -> tuple[float, int]:
    return candidate.log_likelihood, candidate.comparisons


def _look_ahead(
    beams: Sequence[Sequence[_Candidate]], merges: Sequence[tuple[Run, Run]], look_up: LookUp, threshold: float
) -> list[_Gains]:
    """Look up, in one call, the comparisons at which the candidates of all merges stand."""
    cells = [
        sorted({(c.i, c.j) for c in beam if c.i < len(left) and c.j < len(right)})
        for beam, (left, right) in zip(beams, merges, strict=True)
    ]
    pairs = [(left[i], right[j]) for at, (left, right) in zip(cells, merges, strict=True) for i, j in at]
    gain_left, gain_right = gains(look_up(np.array(pairs, dtype=np.int64).reshape(-1, 2)), threshold)
    answers = iter(zip(gain_left.tolist(), gain_right.tolist(), strict=True))
    return [{cell: next(answers) for cell in at} for at in cells]


def merge_beam(
    merges: Sequence[tuple[Run, Run]],
    look_up: LookUp,
    *,
    beam_size: int | None = 1000,
    threshold: float = 0.6,
    score: Literal["mean", "sum"] = "mean",
    deep_copies: bool = False,
) -> list[Merged]:
    """Merge pairs of lists, keeping the best partial merges of each at every step.

    Args:
        merges: Pairs of lists, each best first; a list may be empty.
        look_up: Log-odds of pairs.
        beam_size: Partial merges kept a step; None keeps all, whose number grows exponentially.
        threshold: Nats of entropy above which both outcomes are followed, see :func:`climassay.judging.merge.gains`.
        score: Partial merges are compared by their mean ("mean", PairS) or total ("sum", PPairS) log-likelihood over
            the comparisons made.
        deep_copies: Copy candidates before they grow as deeply as the published code does, for timing it.

    Returns:
        One merged list a pair.
    """
    beams = [[_Candidate((), 0, 0, 0.0, 0)] for _ in merges]
    for _ in range(max((len(left) + len(right) for left, right in merges), default=0)):
        known = _look_ahead(beams, merges, look_up, threshold)
        for index, (left, right) in enumerate(merges):
            candidates = deepcopy(beams[index]) if deep_copies else beams[index]
            grown = [way for candidate in candidates for way in _grow(candidate, left, right, known[index])]
            # Python's sort is stable: equally good candidates keep their order, left before right.
            grown.sort(key=lambda candidate: candidate.value(score), reverse=True)
            beams[index] = grown[:beam_size]
    return [Merged(beam[0].order, beam[0].log_likelihood, beam[0].comparisons) for beam in beams]
