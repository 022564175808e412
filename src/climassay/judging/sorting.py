"""Merge sort by pairwise preferences: PairS greedy, PairS beam and our exact merge, all lazy and level by level."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError
from climassay.judging.merge import Merged, Run, Score, merge_all_pairs, merge_beam, merge_exact, merge_greedy
from climassay.judging.preferences import Ask, Comparisons

SortMethod = Literal["exact", "beam", "greedy", "all-pairs", "fitted", "strengths"]
RIDGE = 0.01
"""Penalty in units of one comparison: decides nothing but the zero point where the comparisons connect all items."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Items in order of a quality."""

    order: tuple[int, ...]
    """Item indices, best first."""
    comparisons: int
    """Distinct unordered pairs asked about."""
    batches: int
    """Calls of ``ask``."""
    method: SortMethod
    strengths: tuple[float, ...] | None = None
    """Of the items by index, in nats with mean 0, where the method fits them: equal for items that it does not tell
    apart, which ``order`` has to put in some order."""


def sort_items(
    n: int,
    ask: Ask,
    *,
    method: SortMethod = "exact",
    beam_size: int | None = 1000,
    threshold: float = 0.6,
    score: Score = "mean",
    seed: int | None = 0,
) -> Ranking:
    """Sort items 0 to n - 1 by a quality, best first.

    All merges of a level of the merge sort advance together, so that each call of ``ask`` holds comparisons of all of
    them: one a merge in a greedy sort, an anti-diagonal or the candidates' comparisons of every merge otherwise.

    Args:
        n: Number of items, at least 0.
        ask: Log-odds of pairs; it is never asked about a pair twice, in either direction.
        method: "greedy" asks about at most n * ceil(log2 n) pairs and trusts every answer; "exact" finds the
            best path in every merge as PairS scores it; "beam" is the published approximation of it; "all-pairs" asks
            about all n (n - 1) / 2 pairs in ceil(log2 n) batches and finds the most likely interleaving given them;
            "fitted" makes the greedy sort's comparisons and orders by strengths fitted to all of them; "strengths"
            does so with all pairs, in one batch. The last two use how sure each comparison is, not only its sign.
        beam_size: For "beam": partial merges kept; None keeps all.
        threshold: For "exact" and "beam": nats of entropy above which both outcomes of a comparison are followed. 0.6
            as published means probabilities between 0.29 and 0.71; 0 follows all.
        score: For "exact" and "beam": what a merge is worth, the mean log-likelihood of its comparisons (PairS) or
            their sum (PPairS).
        seed: Shuffles the items first, so that the order in which they came cannot help; None keeps it.

    Raises:
        InputError: An option is out of range, or ``ask`` gave no number for a pair.

    References:
        Liu et al. 2024, arXiv 2403.16950; Maiya 2024, section 2.2.
    """
    if n < 0:
        raise InputError(f"A number of items cannot be negative, got {n}.")
    return sort_groups(
        [range(n)],
        ask,
        method=method,
        beam_size=beam_size,
        threshold=threshold,
        score=score,
        seed=seed,
    )[0]


def sort_groups(
    groups: Sequence[Sequence[int]],
    ask: Ask,
    *,
    method: SortMethod = "exact",
    beam_size: int | None = 1000,
    threshold: float = 0.6,
    score: Score = "mean",
    seed: int | None = 0,
) -> list[Ranking]:
    """Sort several groups of items at once, each by itself.

    The merges of all groups advance together, so that one call of ``ask`` holds comparisons of all of them: forty
    articles of seven summaries take as many calls as one.

    Args:
        groups: Item indices, each at most once over all groups.
        ask: Log-odds of pairs of these indices.
        method: As in :func:`sort_items`, like the other options.
        beam_size: For "beam".
        threshold: For "exact" and "beam".
        score: For "exact" and "beam".
        seed: Shuffles every group, each in a way of its own.

    Returns:
        A ranking for each group: ``order`` holds the given indices, ``comparisons`` is the group's own, ``strengths``
        are in the order in which the group's items were given, and ``batches`` are the calls of ``ask`` for all groups
        together.

    Raises:
        InputError: An option is out of range, or ``ask`` gave no number for a pair.
    """
    if method not in get_args(SortMethod):
        raise InputError(f"There is no sorting method {method!r}; choose one of {', '.join(get_args(SortMethod))}.")
    if score not in get_args(Score):
        raise InputError(f"A merge has no score {score!r}; choose one of {', '.join(get_args(Score))}.")
    if beam_size is not None and beam_size < 1:
        raise InputError(f"A beam keeps at least 1 partial merge, got {beam_size}.")
    if math.isnan(threshold) or threshold < 0:
        raise InputError(f"The threshold is an entropy in nats and cannot be {threshold}; 0 follows every outcome.")
    comparisons = Comparisons(ask, max((max(group, default=-1) for group in groups), default=-1) + 1)

    def merge(merges: list[tuple[Run, Run]]) -> list[Merged]:
        if method in ("greedy", "fitted"):
            return merge_greedy(merges, comparisons.look_up)
        if method == "all-pairs":
            return merge_all_pairs(merges, comparisons.look_up)
        if method == "beam":
            return merge_beam(merges, comparisons.look_up, beam_size=beam_size, threshold=threshold, score=score)
        # Of 200 noisy items pruning spares about 40% of the pairs at threshold 0 and 2% at 0.6, for twice the batches.
        return merge_exact(merges, comparisons.look_up, threshold=threshold, score=score, prune=threshold <= 0)

    starts: list[Run] = []
    for number, group in enumerate(groups):
        own = np.random.default_rng(None if seed is None else seed if number == 0 else [seed, number])
        places = range(len(group)) if seed is None else own.permutation(len(group)).tolist()
        starts.append(tuple(group[place] for place in places))
    if method == "strengths":
        comparisons.look_up(
            np.array([pair for start in starts for pair in combinations(start, 2)], dtype=np.int64).reshape(-1, 2)
        )
        levels = [[start] for start in starts]
    else:
        levels = [halve(start) for start in starts]
    while any(len(runs) > 1 for runs in levels):
        unmerged = [number for number, runs in enumerate(levels) if len(runs) > 1]
        pending = {number: list(zip(levels[number][::2], levels[number][1::2], strict=True)) for number in unmerged}
        done = iter(merge([pair for pairs in pending.values() for pair in pairs]))
        for number, pairs in pending.items():
            levels[number] = [next(done).order for _ in pairs]
    return [_ranking(group, runs[0], comparisons, method) for group, runs in zip(groups, levels, strict=True)]


def _ranking(group: Sequence[int], order: Run, comparisons: Comparisons, method: SortMethod) -> Ranking:
    place = {item: number for number, item in enumerate(group)}
    pairs, log_odds = comparisons.known()
    own = np.isin(pairs[:, 0], list(group))
    strengths = None
    if method in ("fitted", "strengths"):
        inside = np.array([[place[i], place[j]] for i, j in pairs[own].tolist()], dtype=np.int64).reshape(-1, 2)
        strengths = tuple(fitted_strengths(len(group), inside, log_odds[own]).tolist())
        order = sorted(order, key=lambda item: strengths[place[item]], reverse=True)
    return Ranking(tuple(order), int(own.sum()), comparisons.batches, method, strengths)


def fitted_strengths(n: int, pairs: NDArray[np.int64], log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Strengths whose differences fit the log-odds best, in the sense of least squares.

    A merge uses every comparison once and then forgets it. Comparisons are noisy, and a log-odds says more than its
    sign: fitting one strength an item to all of them averages the noise out.

    With all pairs given this is, but for a factor, an item's mean log-odds against the others (Borda's count on
    log-odds); with some of the pairs it takes into account whom an item was compared with.

    Args:
        n: Number of items.
        pairs: Item indices, shape [pairs, 2].
        log_odds: Natural log-odds that the first is better, shape [pairs].

    Returns:
        Strengths in nats, shape [n], mean 0 over connected items; an item never compared has 0.

    References:
        Thurstone's and Bradley-Terry's models in the form of least squares: Mosteller (1951), Psychometrika 16, 3-9.
    """
    from scipy.sparse import csr_matrix, identity
    from scipy.sparse.linalg import spsolve

    if n == 0:
        return np.zeros(0)
    count = len(pairs)
    rows = np.repeat(np.arange(count), 2)
    signs = np.tile([1.0, -1.0], count)
    design = csr_matrix((signs, (rows, pairs.ravel())), shape=(count, n))
    normal = (design.T @ design + RIDGE * identity(n)).tocsc()
    return np.asarray(spsolve(normal, design.T @ log_odds), dtype=np.float64).reshape(n)


def halve(items: Run) -> list[Run]:
    """Cut items into a power of two of runs of length 0 or 1, so that neighbours of a level never differ by over 1."""
    n = len(items)
    count = 1
    while count < n:
        count *= 2
    return [items[n * part // count : n * (part + 1) // count] for part in range(count)]
