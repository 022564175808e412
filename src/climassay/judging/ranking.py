"""Put items in order by any method of comparing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from climassay.errors import InputError
from climassay.judging.items import Item, by_group
from climassay.judging.judges import PointwiseProbe
from climassay.judging.preferences import FloatArray, IntArray, Judgements, Method, Preferences, Progress
from climassay.judging.settings import SortMethod
from climassay.judging.sorting import fitted_strengths, sort_groups
from climassay.reporting import Report, Section, Table
from climassay.reporting.results import Result


@dataclass(frozen=True, slots=True)
class Ranked:
    """An item in its place."""

    group: str
    place: int
    """1 for the best of the group."""
    item: Item
    strength: float
    """In log-odds, mean 0 in the group: the difference of two strengths is, as nearly as one number per item can say
    (least squares over the pairs compared), the log-odds between the two. A merge sort's places may differ from their
    order."""


@dataclass(frozen=True, slots=True)
class ItemRanking(Result):
    """Items in order, best first, group by group."""

    ranked: tuple[Ranked, ...]
    comparisons: int
    possible: int
    """All unordered pairs within the groups."""
    failed: int
    """Comparisons without an answer, which counted as even."""
    run: str = ""
    """Id of the run in which they were compared; with it the names of quality and method are known."""
    quality: str = ""
    method: str = ""
    file: str = ""
    told: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        """What the order rests on, in one sentence."""
        return f"{self.comparisons} of {self.possible} pairs compared, {self.failed} without an answer."

    def rows(self) -> list[dict[str, Any]]:
        """A row per item, best first."""
        return [
            {
                "group": one.group,
                "place": one.place,
                "item": one.item.id,
                "text": one.item.text,
                "label": one.item.label,
                "strength": one.strength,
            }
            for one in self.ranked
        ]

    def to_dict(self) -> dict[str, Any]:
        """The rows, and how many comparisons they rest on."""
        names = ("run", "quality", "method", "comparisons", "possible", "failed")
        return {**{name: getattr(self, name) for name in names}, "items": self.rows()}

    def notes(self) -> tuple[str, ...]:
        """Rows that were left out, and what is said of the probe."""
        return self.told

    def tables(self) -> tuple[Table, ...]:
        """The items in order."""
        from climassay.judging.report import ranking_table

        return (ranking_table(self.rows(), quality=self.quality, note=self.note),)

    def report(self) -> Report:
        """The items in order on a page."""
        from climassay.judging.report import ranking_table

        table = ranking_table(self.rows(), quality=self.quality, words=80, note=self.note)
        lead = f"{len(self.ranked)} items, best first, as {self.method} judges them."
        return Report(f"{self.file} by {self.quality}", lead, (Section("Ranking", (table,)),))


def rank_items(
    items: Sequence[Item],
    method: Method,
    *,
    sort: SortMethod = "fitted",
    seed: int | None = 0,
    on_progress: Progress | None = None,
) -> ItemRanking:
    """Rank the items of each group, comparing only what the sort needs.

    Args:
        items: Any items; those of one group are ranked together.
        method: How two items are compared. A pointwise probe needs no comparisons: its scores are the order.
        sort: See :func:`climassay.judging.sort_items`.
        seed: Shuffles each group before it is sorted.
        on_progress: Called with the number of requests answered since the last call.

    Raises:
        InputError: There are no items.
    """
    if not items:
        raise InputError("There is nothing to rank: the table has no items.")
    groups = by_group([item.group for item in items], range(len(items)))
    # The scores of all items in one go are all that a pointwise probe has to say.
    judge = _Scores(*method.scores(items, on_progress=on_progress)) if isinstance(method, PointwiseProbe) else method
    preferences = Preferences(judge, items, on_progress=on_progress)
    compared: list[IntArray] = []

    def ask(pairs: IntArray) -> FloatArray:
        compared.append(pairs)
        return preferences.ask(pairs)

    rankings = sort_groups(list(groups.values()), ask, method=sort, seed=seed)
    pairs = np.concatenate(compared) if compared else np.zeros((0, 2), dtype=np.int64)
    # Groups are not compared with each other, so that one fit is a fit of each of them, with mean 0.
    strengths = fitted_strengths(len(items), pairs, preferences.ask(pairs) if len(pairs) else np.zeros(0))
    rows = [
        Ranked(name, place, items[index], float(strengths[index]))
        for name, ranking in zip(groups, rankings, strict=True)
        for place, index in enumerate(ranking.order, start=1)
    ]
    possible = sum(len(members) * (len(members) - 1) // 2 for members in groups.values())
    return ItemRanking(tuple(rows), preferences.asked, possible, preferences.failed)


class _Scores:
    """Scores of all items, computed once, as a method that compares them."""

    name = "pointwise"

    def __init__(self, scores: FloatArray, failed: np.ndarray) -> None:
        self._scores, self._failed = scores, failed

    def compare(self, items: Sequence[Item], pairs: IntArray, *, on_progress: Progress | None = None) -> Judgements:  # noqa: ARG002
        first, second = pairs.T
        lost = self._failed[first] | self._failed[second]
        return Judgements(np.where(lost, 0.0, self._scores[first] - self._scores[second]), lost)
