"""Sort items by pairwise preferences of any judge, with a merge sort (:mod:`climassay.judging.merging`), best first."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError
from climassay.judging.judges import PointwiseProbe
from climassay.judging.merging import MergedRun, Run, Score, merge_all_pairs, merge_beam, merge_exact, merge_greedy
from climassay.judging.preferences import (
    CERTAIN_LOG_ODDS,
    Ask,
    Comparisons,
    FloatArray,
    IntArray,
    Item,
    Judgements,
    Method,
    Preferences,
    Progress,
    by_group,
)
from climassay.judging.settings import SortMethod
from climassay.reporting import Report, Section, Table
from climassay.reporting.results import Result

RIDGE = 0.01
"""Ridge penalty on strengths, in units of one comparison. If comparisons connect all items, it only fixes the mean of
the strengths."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Order of items by a quality, and the number of comparisons that it took."""

    order: tuple[int, ...]
    """Item indices, best first."""
    comparisons: int
    """Number of distinct unordered pairs compared."""
    batches: int
    """Number of calls of ``ask``."""
    method: SortMethod
    strengths: tuple[float, ...] | None = None
    """Strengths of the items by index, in nats with mean 0; None if the method fits none. Items between which the judge
    has no preference have equal strengths."""


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

    All merges of a level of the merge sort advance together, so that each call of ``ask`` contains comparisons for all
    of them: one per merge in a greedy sort, otherwise all that a merge needs next.

    Args:
        n: Number of items, at least 0.
        ask: Function from pairs to log-odds; it is called at most once for each unordered pair.
        method: "greedy" compares at most n * ceil(log2 n) pairs and accepts every preference. "exact" finds the best
            path of every merge by PairS's score, and "beam" is the published approximation of it. "all-pairs" compares
            all n (n - 1) / 2 pairs in ceil(log2 n) batches and finds the most likely interleaving given all of them.
            "fitted" makes the comparisons of the greedy sort, and orders the items by strengths fitted to these;
            "strengths" does the same with all pairs, in one batch. The last two use the size of the log-odds, not only
            their sign.
        beam_size: For "beam": maximum number of partial merges per merge; None keeps all.
        threshold: For "exact" and "beam": entropy in nats above which both outcomes of a comparison are followed. The
            published 0.6 corresponds to probabilities between 0.29 and 0.71; 0 always follows both outcomes.
        score: For "exact" and "beam": score of a merge, the mean log-likelihood of its comparisons (PairS) or their sum
            (PPairS).
        seed: Seed by which items are shuffled first, so that the input order has no influence; None does not shuffle.

    Raises:
        InputError: An option is out of range, or ``ask`` returned no number for a pair.

    References:
        Liu et al. 2024, arXiv 2403.16950; Maiya 2024, section 2.2.
    """
    if n < 0:
        raise InputError(f"The number of items cannot be negative, got {n}.")
    return sort_groups(
        [range(n)], ask, method=method, beam_size=beam_size, threshold=threshold, score=score, seed=seed
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
    """Sort the items of each of several groups; options are those of :func:`sort_items`.

    The merges of all groups advance together, so that one call of ``ask`` contains comparisons for all of them: forty
    articles with seven summaries each take as many calls as one article. Every group has its own seed for shuffling.

    Returns:
        A ranking for each group: ``order`` contains indices from the group, ``strengths`` follow the order of the items
        in the group, and ``comparisons`` is the number for the group. ``batches`` is the number of calls of ``ask`` for
        all groups together.

    Raises:
        InputError: An option is out of range, or ``ask`` returned no number for a pair.
    """
    if method not in get_args(SortMethod):
        raise InputError(f"There is no sorting method {method!r}; choose one of {', '.join(get_args(SortMethod))}.")
    if score not in get_args(Score):
        raise InputError(f"A merge has no score {score!r}; choose one of {', '.join(get_args(Score))}.")
    if beam_size is not None and beam_size < 1:
        raise InputError(f"A beam keeps at least 1 partial merge, got {beam_size}.")
    if math.isnan(threshold) or threshold < 0:
        raise InputError(f"The threshold is an entropy in nats, which cannot be {threshold}; 0 follows every outcome.")
    comparisons = Comparisons(ask, max((max(group, default=-1) for group in groups), default=-1) + 1)

    def merge(merges: list[tuple[Run, Run]]) -> list[MergedRun]:
        if method in ("greedy", "fitted"):
            return merge_greedy(merges, comparisons.look_up)
        if method == "all-pairs":
            return merge_all_pairs(merges, comparisons.look_up)
        if method == "beam":
            return merge_beam(merges, comparisons.look_up, beam_size=beam_size, threshold=threshold, score=score)
        # Of 200 noisy items pruning spares about 40% of the pairs at threshold 0 and 2% at 0.6, for twice the batches.
        return merge_exact(merges, comparisons.look_up, threshold=threshold, score=score, prune=threshold <= 0)

    shuffled_groups: list[Run] = []
    for number, group in enumerate(groups):
        generator = np.random.default_rng(None if seed is None else seed if number == 0 else [seed, number])
        positions = range(len(group)) if seed is None else generator.permutation(len(group)).tolist()
        shuffled_groups.append(tuple(group[position] for position in positions))
    if method == "strengths":
        comparisons.look_up(
            np.array(
                [pair for shuffled_group in shuffled_groups for pair in combinations(shuffled_group, 2)], dtype=np.int64
            ).reshape(-1, 2)
        )
        levels = [[shuffled_group] for shuffled_group in shuffled_groups]
    else:
        levels = [halve(shuffled_group) for shuffled_group in shuffled_groups]
    while any(len(runs) > 1 for runs in levels):
        unmerged_indices = [number for number, runs in enumerate(levels) if len(runs) > 1]
        pairs_by_group = {
            number: list(zip(levels[number][::2], levels[number][1::2], strict=True)) for number in unmerged_indices
        }
        merged_runs = iter(merge([pair for pairs in pairs_by_group.values() for pair in pairs]))
        for number, pairs in pairs_by_group.items():
            levels[number] = [next(merged_runs).order for _ in pairs]
    compared_pairs, log_odds = comparisons.compared_pairs()
    rankings = []
    for group, (order,) in zip(groups, levels, strict=True):
        is_of_group = np.isin(compared_pairs[:, 0], list(group))
        strengths: dict[int, float] | None = None
        if method in ("fitted", "strengths"):
            position_by_item = {item: number for number, item in enumerate(group)}
            group_pairs = np.array(
                [[position_by_item[i], position_by_item[j]] for i, j in compared_pairs[is_of_group].tolist()],
                dtype=np.int64,
            ).reshape(-1, 2)
            strengths = dict(
                zip(group, fit_strengths(len(group), group_pairs, log_odds[is_of_group]).tolist(), strict=True)
            )
            order = sorted(order, key=strengths.__getitem__, reverse=True)
        strength_values = None if strengths is None else tuple(strengths.values())
        rankings.append(Ranking(tuple(order), int(is_of_group.sum()), comparisons.batches, method, strength_values))
    return rankings


def fit_strengths(n: int, pairs: NDArray[np.int64], log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Fit one strength per item by least squares, so that differences of strengths approximate log-odds of pairs.

    A merge uses each comparison only once. Fitting strengths to all comparisons averages their noise and uses the size
    of the log-odds. With all pairs, a strength is proportional to the mean log-odds of the item against the others
    (Borda's count on log-odds).

    Args:
        n: Number of items.
        pairs: Item indices, shape [pairs, 2].
        log_odds: Natural log-odds that the first item is better, shape [pairs].

    Returns:
        Strengths in nats, shape [n], with mean 0 over connected items; an item without comparisons has strength 0.

    References:
        Thurstone's and Bradley-Terry's models in the form of least squares: Mosteller (1951), Psychometrika 16, 3-9.
    """
    from scipy.sparse import csr_matrix, identity
    from scipy.sparse.linalg import spsolve

    if n == 0:
        return np.zeros(0)
    n_pairs = len(pairs)
    rows = np.repeat(np.arange(n_pairs), 2)
    signs = np.tile([1.0, -1.0], n_pairs)
    design = csr_matrix((signs, (rows, pairs.ravel())), shape=(n_pairs, n))
    normal_matrix = (design.T @ design + RIDGE * identity(n)).tocsc()
    return np.asarray(spsolve(normal_matrix, design.T @ log_odds), dtype=np.float64).reshape(n)


def halve(items: Run) -> list[Run]:
    """Split items into 2^k lists of 0 or 1 items; at each level of merging, lengths then differ by at most 1."""
    n = len(items)
    n_runs = 1
    while n_runs < n:
        n_runs *= 2
    return [items[n * part // n_runs : n * (part + 1) // n_runs] for part in range(n_runs)]


@dataclass(frozen=True, slots=True)
class RankedItem:
    """Item with its rank in its group."""

    group: str
    rank: int
    """Rank in the group, 1 for the best; items with equal fitted strengths have the same rank."""
    item: Item
    strength: float
    """Strength on the log-odds scale, with mean 0 in the group. The difference of two strengths is the least-squares
    estimate of the log-odds between the two items. The ranks of a merge sort may differ from the order of strengths."""


MAX_SHOWN_ITEMS = 6
"""Maximum number of items that the note on cyclic preferences names."""
MAX_CHECKED_ITEMS = 8
"""Cyclic preferences are only searched for in groups of at most this size, since the search compares items that are two
ranks apart."""
CERTAIN_ONLY = "No comparison has a probability, so that strengths tell the order and not how sure it is."


@dataclass(frozen=True, slots=True)
class ItemRanking(Result):
    """Items in order, best first, group by group."""

    ranked: tuple[RankedItem, ...]
    comparisons: int
    """Number of unordered pairs compared."""
    possible: int
    """Number of unordered pairs within the groups."""
    failed: int
    """Number of comparisons without an answer; the two items count as equal."""
    run: str = ""
    """Id of the run that compared the items."""
    quality: str = ""
    method: str = ""
    file: str = ""
    messages: tuple[str, ...] = ()
    """Notes on skipped rows and on the probe."""
    certain: bool = False
    """Whether the judge gives preferences without probabilities."""
    undetermined: tuple[str, ...] = ()
    """Ids of the items in cycles of preferences, such as A over B, B over C and C over A."""

    @property
    def note(self) -> str:
        """Sentences on the number of comparisons, and on items that the comparisons do not order."""
        sentences = [f"{self.comparisons} of {self.possible} pairs compared, {self.failed} without an answer."]
        if self.undetermined:
            names = ", ".join(self.undetermined[:MAX_SHOWN_ITEMS])
            n_more = len(self.undetermined) - MAX_SHOWN_ITEMS
            sentences.append(
                f"The comparisons do not determine the order of {len(self.undetermined)} items, which they prefer to "
                f"one another in a circle: {names}{f' and {n_more} more' if n_more > 0 else ''}."
            )
        return " ".join([*sentences, *([CERTAIN_ONLY] if self.certain else [])])

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per item, best first, with group, rank, id, text, label and strength."""
        return [
            {
                "group": item.group,
                "rank": item.rank,
                "item": item.item.id,
                "text": item.item.text,
                "label": item.item.label,
                "strength": item.strength,
            }
            for item in self.ranked
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the rows and the number of comparisons as JSON-serialisable values."""
        names = ("run", "quality", "method", "comparisons", "possible", "failed", "undetermined")
        return {**{name: getattr(self, name) for name in names}, "items": self.rows()}

    def notes(self) -> tuple[str, ...]:
        """Return the notes on skipped rows and on the probe."""
        return self.messages

    def tables(self) -> tuple[Table, ...]:
        """Return a table of the items, best first."""
        return (ranking_table(self.rows(), quality=self.quality, note=self.note),)

    def report(self) -> Report:
        """Return a report on the items, best first."""
        table = ranking_table(self.rows(), quality=self.quality, words=80, note=self.note)
        introduction = f"{len(self.ranked)} items, best first, as {self.method} judges them."
        return Report(f"{self.file} by {self.quality}", introduction, (Section("Ranking", (table,)),))


def ranking_table(
    rows: Sequence[Mapping[str, Any]], *, quality: str = "", words: int | None = 30, note: str = ""
) -> Table:
    """Return a table of items, best first.

    Args:
        rows: Rows of :meth:`climassay.judging.ItemRanking.rows`.
        quality: Name of the quality; may be empty.
        words: Maximum number of words of a text; longer texts are truncated, unless this is None.
        note: Sentences to print below the table, after the explanation of the strength.
    """
    has_groups = len({row["group"] for row in rows}) > 1
    has_labels = any(row["label"] is not None for row in rows)
    cells = [
        (
            *((row["group"],) if has_groups else ()),
            str(row["rank"]),
            str(row["item"]),
            truncate_words(row["text"], words),
            *(("-" if row["label"] is None else f"{row['label']:g}",) if has_labels else ()),
            f"{round(row['strength'], 2) + 0.0:+.2f}",
        )
        for row in rows
    ]
    return Table.of(
        f"Ranking by {quality}" if quality else "Ranking",
        [*(["group"] if has_groups else []), "rank", "item", "text", *(["label"] if has_labels else []), "strength"],
        cells,
        left_columns=4 if has_groups else 3,
        grouped=int(has_groups),
        note=f"strength: log-odds, mean 0 in a group. {note}".strip(),
    )


def truncate_words(text: str, words: int | None) -> str:
    """Truncate a text after a number of words and append an ellipsis; None keeps the whole text."""
    parts = text.split()
    return text if words is None or len(parts) <= words else " ".join(parts[:words]) + " ..."


def rank_items(
    items: Sequence[Item],
    method: Method,
    *,
    sort: SortMethod = "fitted",
    seed: int | None = 0,
    on_progress: Progress | None = None,
) -> ItemRanking:
    """Rank the items of each group, making only the comparisons that the sort needs.

    Args:
        items: Items; those of each group are ranked separately.
        method: Judge that compares two items. A pointwise probe scores items instead, without comparisons.
        sort: Sorting method, see :func:`climassay.judging.sort_items`.
        seed: Seed by which each group is shuffled before it is sorted; None does not shuffle.
        on_progress: Called with the number of requests answered since the last call.

    Raises:
        InputError: There are no items.
    """
    if not items:
        raise InputError("There is nothing to rank: the table has no items.")
    groups = by_group([item.group for item in items], range(len(items)))
    # A pointwise probe scores all items in one call, and the comparisons use these scores.
    judge = (
        _ScoreMethod(*method.scores(items, on_progress=on_progress)) if isinstance(method, PointwiseProbe) else method
    )
    preferences = Preferences(judge, items, on_progress=on_progress)
    compared_batches: list[IntArray] = []

    def ask(pairs: IntArray) -> FloatArray:
        compared_batches.append(pairs)
        return preferences.ask(pairs)

    rankings = sort_groups(list(groups.values()), ask, method=sort, seed=seed)
    if not isinstance(method, PointwiseProbe):
        # A sort of a few items may never make the comparison that contradicts it.
        small_orders = (ranking.order for ranking in rankings if len(ranking.order) <= MAX_CHECKED_ITEMS)
        compared_pairs = {frozenset(pair) for batch in compared_batches for pair in batch.tolist()}
        distant_pairs = (pair for order in small_orders for pair in zip(order, order[2:], strict=False))
        unchecked_pairs = [pair for pair in distant_pairs if frozenset(pair) not in compared_pairs]
        if unchecked_pairs:
            ask(np.array(unchecked_pairs, dtype=np.int64))
    pairs = np.concatenate(compared_batches) if compared_batches else np.zeros((0, 2), dtype=np.int64)
    # Groups are not compared with each other, so that one fit is a fit of each of them, with mean 0.
    log_odds = preferences.ask(pairs) if len(pairs) else np.zeros(0)
    strengths = fit_strengths(len(items), pairs, log_odds)
    rows: list[RankedItem] = []
    for name, ranking in zip(groups, rankings, strict=True):
        for rank, index in enumerate(ranking.order, start=1):
            strength = float(strengths[index])
            is_tied = (
                rank > 1 and ranking.strengths is not None and math.isclose(strength, rows[-1].strength, abs_tol=1e-9)
            )
            rows.append(RankedItem(name, rows[-1].rank if is_tied else rank, items[index], strength))
    n_possible = sum(len(members) * (len(members) - 1) // 2 for members in groups.values())
    is_certain = bool(log_odds.any() and np.isin(np.abs(log_odds), (0.0, CERTAIN_LOG_ODDS)).all())
    cyclic_ids = tuple(items[index].id for index in find_cyclic_items(len(items), pairs, log_odds))
    return ItemRanking(
        tuple(rows), preferences.n_pairs, n_possible, preferences.failed, certain=is_certain, undetermined=cyclic_ids
    )


def find_cyclic_items(n: int, pairs: NDArray[np.int64], log_odds: NDArray[np.float64]) -> list[int]:
    """Return the ascending indices of items in cycles of preferences, such as A over B, B over C and C over A.

    Args:
        n: Number of items.
        pairs: Item indices, shape [pairs, 2].
        log_odds: Natural log-odds that the first item is better, shape [pairs]; 0 is no preference.
    """
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    preference_pairs = np.where((log_odds > 0)[:, None], pairs, pairs[:, ::-1])[log_odds != 0]
    graph = csr_matrix((np.ones(len(preference_pairs)), (preference_pairs[:, 0], preference_pairs[:, 1])), shape=(n, n))
    _, components = connected_components(graph, directed=True, connection="strong")
    sizes = np.bincount(components, minlength=1)
    return np.flatnonzero(sizes[components] > 1).tolist()


class _ScoreMethod:
    """Method that compares items by their known scores."""

    name = "pointwise"

    def __init__(self, scores: FloatArray, failed: np.ndarray) -> None:
        self._scores, self._failed = scores, failed

    def compare(self, items: Sequence[Item], pairs: IntArray, *, on_progress: Progress | None = None) -> Judgements:  # noqa: ARG002
        first, second = pairs.T
        either_failed = self._failed[first] | self._failed[second]
        return Judgements(np.where(either_failed, 0.0, self._scores[first] - self._scores[second]), either_failed)
