"""Merge sorted lists by the probabilities of pairwise outcomes, exactly or approximately.

The greedy merge, PairS's beam search and our exact merge compare pairs on demand, one level of the sort at a time. A
merge that has taken i items from the left list and j from the right one is at cell (i, j) of a grid. It compares
left[i] with right[j] and steps to (i + 1, j) or (i, j + 1), adding the log-probability of that outcome. If one list is
exhausted, the rest of the other follows at no cost. The score of a merge is the sum of these log-probabilities (PPairS)
or their mean over the comparisons made (PairS). The mean is not additive over paths of different length, but every path
to (i, j) has made exactly i + j comparisons, so that the path with the best sum also has the best mean of that cell.
Only the choice between the final cells, at which a list is exhausted, depends on the division. One dynamic programme
therefore finds the optimum of both scores.

Lists are best first, as in the code of PPairS; PairS merges worst first. All merges of one level advance together, one
anti-diagonal per step, so that one look-up contains an anti-diagonal of every merge.

References:
    Liu et al. 2024, Aligning with Human Judgement, arXiv 2403.16950, algorithm 1 (the beam that the exact merge
    replaces). Maiya 2024, section 2.2 and appendix A (threshold 0.6 nats).
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

LookUp: TypeAlias = Callable[[NDArray[np.int64]], NDArray[np.float64]]
"""Function that maps pairs, shape [pairs, 2], to log-odds in nats, shape [pairs]; it caches the log-odds."""
Score: TypeAlias = Literal["mean", "sum"]
"""Score of a path: mean or sum of the log-probabilities of its steps. :func:`merge_all_pairs` does not use it."""
Run: TypeAlias = Sequence[int]
"""Items in order, best first."""
_TOLERANCE = 1e-9
"""Tolerance in nats within which a path counts as good as the best path, so that rounding does not prune it."""


@dataclass(frozen=True, slots=True)
class MergedRun:
    """Merged list, with the log-likelihood of the path that produced it."""

    order: tuple[int, ...]
    log_likelihood: float
    """Log-likelihood in nats, summed over the comparisons of the path; 0 without comparisons."""
    comparisons: int
    """Number of comparisons on the path; the search may have made more."""


def step_logprobs(log_odds: NDArray[np.float64], threshold: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the log-probabilities of taking the left and the right item; -inf if the outcome is not followed.

    Args:
        log_odds: Natural log-odds that the left item is better, shape [pairs].
        threshold: Binary entropy in nats. Both outcomes are followed if the entropy of the preference exceeds it,
            otherwise only the preferred one (left if both are equally probable). At 0, both are always followed. At log
            2 = 0.693 and above, only the preferred one is followed, so that the merge is greedy.

    Returns:
        Two arrays of shape [pairs], in nats.
    """
    magnitude = np.abs(log_odds)
    unlikelier_odds = np.exp(-magnitude)
    likelier_logprob = -np.log1p(unlikelier_odds)
    unlikelier_logprob = likelier_logprob - magnitude
    left = np.where(log_odds >= 0, likelier_logprob, unlikelier_logprob)
    right = np.where(log_odds >= 0, unlikelier_logprob, likelier_logprob)
    if threshold <= 0:
        return left, right
    is_confident = magnitude * unlikelier_odds / (1 + unlikelier_odds) - likelier_logprob <= threshold
    left[is_confident & (log_odds < 0)] = -np.inf
    right[is_confident & (log_odds >= 0)] = -np.inf
    return left, right


@dataclass(frozen=True, slots=True)
class _Level:
    """Merges on one level of the sort, as arrays padded to a common shape."""

    left: NDArray[np.int64]
    """Items of the left list of each merge, padded with 0, shape [merges, length of the longest left list]."""
    right: NDArray[np.int64]
    """Items of the right list of each merge, padded with 0, shape [merges, length of the longest right list]."""
    lengths_left: NDArray[np.int64]
    lengths_right: NDArray[np.int64]


def _pad_merges(merges: Sequence[tuple[Run, Run]]) -> _Level:
    def pad_runs(runs: Sequence[Run]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        lengths = np.array([len(run) for run in runs], dtype=np.int64)
        table = np.zeros((len(runs), int(lengths.max(initial=0))), dtype=np.int64)
        for row, run in zip(table, runs, strict=True):
            row[: len(run)] = run
        return table, lengths

    left, lengths_left = pad_runs([first for first, _ in merges])
    right, lengths_right = pad_runs([second for _, second in merges])
    return _Level(left, right, lengths_left, lengths_right)


def interleave(left: Run, right: Run, from_left: Sequence[bool]) -> tuple[int, ...]:
    """Merge two lists step by step (True takes the next left item, False the next right one), then append the rest."""
    i = sum(from_left)
    j = len(from_left) - i
    left_items, right_items = iter(left), iter(right)
    steps = [next(left_items) if step else next(right_items) for step in from_left]
    return (*steps, *left[i:], *right[j:])


def merge_greedy(merges: Sequence[tuple[Run, Run]], look_up: LookUp) -> list[MergedRun]:
    """Merge pairs of lists, each best first, by taking the preferred item or, without a preference, the left item.

    All merges advance together; each call of ``look_up`` contains one comparison for every unfinished merge.
    """
    level = _pad_merges(merges)
    i, j = np.zeros(len(merges), dtype=np.int64), np.zeros(len(merges), dtype=np.int64)
    totals = np.zeros(len(merges))
    steps: list[list[bool]] = [[] for _ in merges]
    while (rows := np.flatnonzero((i < level.lengths_left) & (j < level.lengths_right))).size:
        log_odds = look_up(np.stack([level.left[rows, i[rows]], level.right[rows, j[rows]]], axis=1))
        prefers_left = log_odds >= 0
        totals[rows] -= np.log1p(np.exp(-np.abs(log_odds)))
        i[rows] += prefers_left
        j[rows] += ~prefers_left
        for row, step in zip(rows.tolist(), prefers_left.tolist(), strict=True):
            steps[row].append(step)
    return [
        MergedRun(interleave(*runs, from_left), float(total), len(from_left))
        for runs, from_left, total in zip(merges, steps, totals, strict=True)
    ]


def merge_exact(
    merges: Sequence[tuple[Run, Run]],
    look_up: LookUp,
    *,
    threshold: float = 0.0,
    score: Score = "mean",
    prune: bool = True,
) -> list[MergedRun]:
    """Merge pairs of lists into their most likely interleavings.

    A cell (i, j) is the state after i left and j right items. Only cells that some path reaches are looked up. With a
    threshold, these form a narrow band of uncertain pairs around the diagonal. At threshold 0, all L * R cells of a
    merge are reachable, and pruning saves comparisons: the greedy merge, whose comparisons are needed anyway, sets a
    minimum score. A path is abandoned if it could not reach that score even if all further log-probabilities were 0,
    their maximum. The result is still exact. Pruning needs up to twice as many calls of ``look_up``, each with fewer
    pairs.

    Args:
        merges: Pairs of lists, each best first; a list may be empty.
        look_up: Function from pairs to log-odds.
        threshold: Entropy in nats above which both outcomes of a comparison are followed, see :func:`step_logprobs`.
        score: "mean" divides the log-likelihood by the number of comparisons (PairS), "sum" does not (PPairS).
        prune: Whether paths are abandoned if they cannot beat the greedy merge or a complete path found since;
            otherwise every reachable cell is looked up.

    Returns:
        One merged list per pair of lists. Among equally good paths to a cell, the path that takes the left item wins.
        Among equally good complete paths, the path with fewer comparisons wins, then the path that exhausts the left
        list.

    Notes:
        The search takes at most L + R - 1 steps over arrays [merges, L + 1] and stores one byte per cell.
    """
    level = _pad_merges(merges)
    max_comparisons = np.maximum(level.lengths_left + level.lengths_right - 1, 1)
    min_scores = np.full(len(merges), -np.inf)
    if prune:
        for row, greedy in enumerate(merge_greedy(merges, look_up)):
            min_scores[row] = greedy.log_likelihood
            if score == "mean":
                min_scores[row] /= max(greedy.comparisons, 1)
    merge_indices = np.arange(len(merges))
    width = level.left.shape[1] + 1
    columns = np.arange(width)
    is_inside = columns < level.lengths_left[:, None]
    first_right = columns + level.lengths_right[:, None]  # the diagonal on which a column exhausts the right list
    min_length = int(np.minimum(level.lengths_left, level.lengths_right).min(initial=0))
    best_values = np.full(len(merges), -np.inf)
    ends = np.zeros((len(merges), 2), dtype=np.int64)  # the cell (i, comparisons made) where the best path ends
    totals = np.zeros(len(merges))
    sums = np.full((len(merges), width), -np.inf)  # best log-likelihood of cell (i, diagonal - i)
    sums[:, 0] = 0.0
    min_sums = _compute_min_log_likelihood(min_scores, max_comparisons, score)
    takes_left: list[NDArray[np.bool_]] = []  # for each diagonal from 1: whether the best way in takes a left item
    for diagonal in range(int(max_comparisons.max(initial=0))):
        rows, n_left = np.nonzero((sums >= min_sums) & is_inside & (diagonal < first_right))
        if not rows.size:
            break
        pairs = np.empty((rows.size, 2), dtype=np.int64)
        pairs[:, 0], pairs[:, 1] = level.left[rows, n_left], level.right[rows, diagonal - n_left]
        left_logprobs, right_logprobs = step_logprobs(look_up(pairs), threshold)
        left_sums = sums[rows, n_left]
        sums, by_right = np.full((2, len(merges), width), -np.inf)
        sums[rows, n_left + 1] = left_sums + left_logprobs
        by_right[rows, n_left] = left_sums + right_logprobs
        takes_left.append(sums >= by_right)
        np.maximum(sums, by_right, out=sums)
        n_made = diagonal + 1
        if n_made < min_length:
            continue
        # A path ends on the cell that exhausts the left list, or on the one that exhausts the right list.
        for column in (level.lengths_left, np.minimum(n_made - level.lengths_right, level.lengths_left)):
            result = np.where(column >= 0, sums[merge_indices, np.maximum(column, 0)], -np.inf)
            value = result / n_made if score == "mean" else result
            is_better = value > best_values
            best_values[is_better], totals[is_better] = value[is_better], result[is_better]
            ends[is_better, 0], ends[is_better, 1] = column[is_better], n_made
        if prune:
            min_sums = _compute_min_log_likelihood(np.maximum(best_values, min_scores), max_comparisons, score)
    merged_runs = []
    for row, (runs, (i, n_comparisons)) in enumerate(zip(merges, ends.tolist(), strict=True)):
        # The best path, followed back from its end.
        path: list[bool] = []
        for diagonal in range(n_comparisons, 0, -1):
            path.append(bool(takes_left[diagonal - 1][row, i]))
            i -= path[-1]
        merged_runs.append(MergedRun(interleave(*runs, path[::-1]), float(totals[row]), n_comparisons))
    return merged_runs


def merge_all_pairs(merges: Sequence[tuple[Run, Run]], look_up: LookUp) -> list[MergedRun]:
    """Merge pairs of lists into the interleavings most likely given *all* comparisons between their items.

    The likelihood of a path includes only the comparisons on the path. Paths are therefore scored on different
    evidence, and a wrong step can win by leading to more confident comparisons, even if preferences are transitive and
    free of noise. Including all L * R pairs avoids this. Up to a constant, the log-likelihood of an interleaving is the
    sum of the log-odds of all pairs in which it puts the left item first. Running maxima find the best interleaving
    exactly in O(L * R), and all pairs of all merges are requested in one batch. Among equally good interleavings, the
    one with the left items earliest is returned.
    """
    pairs = [np.stack(np.meshgrid(*runs, indexing="ij"), axis=-1).reshape(-1, 2).astype(np.int64) for runs in merges]
    log_odds = look_up(np.concatenate(pairs)) if pairs else np.empty(0)
    merged_runs, start = [], 0
    for (left, right), merge_pairs in zip(merges, pairs, strict=True):
        table = log_odds[start : start + len(merge_pairs)].reshape(len(left), len(right))
        start += len(merge_pairs)
        # remaining_log_odds[i, j]: sum of the log-odds of left[i] against the right items from j on.
        remaining_log_odds = np.zeros((len(left), len(right) + 1))
        remaining_log_odds[:, :-1] = np.cumsum(table[:, ::-1], axis=1)[:, ::-1]
        best_sums = np.zeros_like(remaining_log_odds)
        for i, row in enumerate(remaining_log_odds):
            best_sums[i] = row + (np.maximum.accumulate(best_sums[i - 1]) if i else 0.0)
        steps: list[bool] = []
        previous_j, j = len(right), len(right)
        for i in range(len(left) - 1, -1, -1):
            j = int(np.argmax(best_sums[i, : previous_j + 1]))
            steps += [False] * (previous_j - j) + [True]
            previous_j = j
        steps += [False] * previous_j
        likelihood = float(step_logprobs(table.ravel(), 0.0)[1].sum() + (best_sums[-1].max() if len(left) else 0.0))
        merged_runs.append(MergedRun(interleave(left, right, steps[::-1]), likelihood, len(merge_pairs)))
    return merged_runs


def _compute_min_log_likelihood(
    min_scores: NDArray[np.float64], max_comparisons: NDArray[np.int64], score: Score
) -> NDArray[np.float64]:
    """Return the log-likelihood below which a path cannot reach the minimum score; finite, shape [merges, 1]."""
    min_totals = min_scores * max_comparisons if score == "mean" else min_scores
    return np.maximum(min_totals - _TOLERANCE * max_comparisons, -np.finfo(np.float64).max)[:, None]


class _PartialMerge(NamedTuple):
    """Partial merge, in which ``i`` left and ``j`` right items have been taken."""

    order: tuple[int, ...]
    i: int
    j: int
    log_likelihood: float
    comparisons: int

    def value(self, score: Score) -> float:
        return self.log_likelihood / (max(self.comparisons, 1) if score == "mean" else 1)


_StepLogprobs = dict[tuple[int, int], tuple[float, float]]


def _extend(candidate: _PartialMerge, left: Run, right: Run, logprobs_by_cell: _StepLogprobs) -> list[_PartialMerge]:
    """Return the partial merges with each possible next item.

    If one list is exhausted, append the remaining items of the other.
    """
    order, i, j, total, n_comparisons = candidate
    if i == len(left) or j == len(right):
        return [_PartialMerge((*order, *left[i:], *right[j:]), len(left), len(right), total, n_comparisons)]
    left_logprob, right_logprob = logprobs_by_cell[i, j]
    extensions = []
    if left_logprob > -np.inf:
        extensions.append(_PartialMerge((*order, left[i]), i + 1, j, total + left_logprob, n_comparisons + 1))
    if right_logprob > -np.inf:
        extensions.append(_PartialMerge((*order, right[j]), i, j + 1, total + right_logprob, n_comparisons + 1))
    return extensions


def merge_beam(
    merges: Sequence[tuple[Run, Run]],
    look_up: LookUp,
    *,
    beam_size: int | None = 1000,
    threshold: float = 0.6,
    score: Literal["mean", "sum"] = "mean",
    deep_copies: bool = False,
) -> list[MergedRun]:
    """Merge pairs of lists by beam search, the published algorithm of PairS.

    This is the reference against which the exact merge is tested and timed. At every step, the best partial merges of
    each pair are retained. Only the next comparisons of the candidates are looked up. Unlike the published code of
    PPairS, an uncertain comparison does not add the preferred extension twice, which would fill the beam with copies.
    Lists are merged best first; in PairS, worst first.

    ``beam_size`` None keeps all partial merges, whose number grows exponentially. ``deep_copies`` copies candidates as
    the published code does, for timing it. The other options are those of :func:`merge_exact`.

    References:
        Liu et al. 2024, arXiv 2403.16950, algorithm 1; Maiya 2024, appendix A: beam of 1000, threshold 0.6 nats.
    """
    beams = [[_PartialMerge((), 0, 0, 0.0, 0)] for _ in merges]
    for _ in range(max((len(left) + len(right) for left, right in merges), default=0)):
        cells = [
            sorted({(c.i, c.j) for c in beam if c.i < len(left) and c.j < len(right)})
            for beam, (left, right) in zip(beams, merges, strict=True)
        ]
        pairs = [
            (left[i], right[j])
            for merge_cells, (left, right) in zip(cells, merges, strict=True)
            for i, j in merge_cells
        ]
        left_logprobs, right_logprobs = step_logprobs(
            look_up(np.array(pairs, dtype=np.int64).reshape(-1, 2)), threshold
        )
        answers = iter(zip(left_logprobs.tolist(), right_logprobs.tolist(), strict=True))
        logprobs_by_cell = [{cell: next(answers) for cell in merge_cells} for merge_cells in cells]
        for index, (left, right) in enumerate(merges):
            candidates = deepcopy(beams[index]) if deep_copies else beams[index]
            extensions = [
                extension
                for candidate in candidates
                for extension in _extend(candidate, left, right, logprobs_by_cell[index])
            ]
            # Python's sort is stable: equally good candidates keep their order, left before right.
            extensions.sort(key=lambda candidate: candidate.value(score), reverse=True)
            beams[index] = extensions[:beam_size]
    return [MergedRun(beam[0].order, beam[0].log_likelihood, beam[0].comparisons) for beam in beams]
