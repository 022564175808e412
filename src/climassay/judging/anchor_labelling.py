"""Label new items by comparing them with labelled anchors, in a binary search on an ordered scale (PPAIRS_INSERT).

At each label, the new item is compared with anchors of that label. If it is judged higher, the search continues above
the label; if lower, below it; if equal, the label is the result. In the printed algorithm (Maiya 2024, algorithm 1),
equality requires a mean preference of exactly 0.5, and the search returns the label that it compared with last. Real
means are never exactly 0.5, so a label at which the search does not end cannot be returned: of five labels, never the
middle one. Two changes were made:

- An item is equal if its mean preference is in a band around 0.5 or, as the thesis suggests in a footnote, if this is
  the most frequent of three-way predictions.
- When the search ends between two neighbouring labels, the one whose mean preference is nearer to 0.5 is returned, not
  the last. Every label can then be returned, even if no item is ever judged equal.

The printed rule is available as the mode ``printed``, for comparison with published figures.

References:
    Maiya 2024, appendix D (algorithm 1) and C.6 (10 sampled of 100 anchors).
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError
from climassay.judging.preferences import Ask, Item, Method, Preferences, Progress
from climassay.judging.settings import InsertMode
from climassay.learning.evaluation import HeldOutScores, evaluate
from climassay.learning.linear import logistic
from climassay.reporting.results import AssembledResult, Result
from climassay.reporting.tables import Table

TIE_BAND = 0.4
"""Maximum absolute log-odds at which a comparison counts as equal; a probe with a fitted tie band uses that band.

The default corresponds to probabilities of 0.40 to 0.60.
"""
Verdict = Literal["higher", "lower", "equal"]


@dataclass(frozen=True, slots=True)
class InsertionStep:
    """Comparison of a new item with the anchors of one label."""

    label: str
    """Label of the anchors."""
    preference: float
    """Mean probability that the item has more of the quality than an anchor of this label."""
    verdict: Verdict
    """Outcome of the comparison."""
    comparisons: int
    """Number of anchors that the item was compared with."""


@dataclass(frozen=True, slots=True)
class Insertion:
    """Label of a new item, with the comparisons that led to it."""

    label: str
    comparisons: int
    path: tuple[InsertionStep, ...]
    """Steps of the search in order; each compares the item with the anchors of one label."""


@dataclass(slots=True)
class _LabelSearch:
    """Binary search for the label of one item; the possible labels have the indices ``low`` to ``high``."""

    item: int
    low: int
    high: int
    takes_last: bool
    """Whether a search that ends between two labels returns the label compared last instead of the nearer label."""
    steps: dict[int, InsertionStep] = field(default_factory=dict)
    label: int | None = None

    @property
    def middle(self) -> int:
        return (self.low + self.high) // 2

    def record_step(self, step: InsertionStep) -> None:
        """Store the comparison with the middle label; narrow the search, or set its label."""
        middle = self.middle
        self.steps[middle] = step
        if step.verdict == "equal":
            self.label = middle
        elif step.verdict == "higher":
            self.low = middle + 1
        else:
            self.high = middle - 1
        if self.label is None and self.low > self.high and self.takes_last:
            self.label = middle
        elif self.label is None and self.low > self.high:
            # The item is above the label at high and below the label at low = high + 1, as far as these exist. If both
            # are equally near, the label compared last is returned.
            neighbours = sorted(
                (neighbour for neighbour in (self.high, self.low) if neighbour in self.steps),
                key=lambda neighbour: neighbour != middle,
            )
            self.label = min(neighbours, key=lambda neighbour: abs(self.steps[neighbour].preference - 0.5))


def insert_indices(
    ask: Ask,
    items: Sequence[int],
    labels: Sequence[str],
    anchors: Mapping[str, Sequence[int]],
    *,
    samples: int = 10,
    mode: InsertMode = "band",
    band: float = 0.05,
    tie_band: float = TIE_BAND,
    seed: int = 0,
) -> tuple[Insertion, ...]:
    """Find the label of each item by binary search; each call of ``ask`` advances all searches by one step.

    Args:
        ask: Function from pairs (item, anchor) to log-odds that the item has more of the quality.
        items: Indices of the new items, which ``ask`` accepts; none may be an anchor.
        labels: The scale, lowest first.
        anchors: Indices of the items of each label.
        samples: Number of anchors drawn per label, without replacement and anew for each item and label; if a label
            has fewer anchors, all are used.
        mode: "band" counts an item as equal if its mean probability is within ``band`` of 0.5. "three-way" takes the
            most frequent outcome of the comparisons (higher, lower, or equal within ``tie_band``); if two are equally
            frequent, the item counts as equal. "printed" follows the thesis's algorithm exactly.
        band: Maximum difference of the mean probability from 0.5 that counts as equal; from 0 to below 0.5.
        tie_band: Absolute log-odds in nats up to which one comparison counts as equal (0.4: probabilities 0.40 to
            0.60).
        seed: Seed of the draws; an item's draws depend on the seed, the item and the label, not on the other items.

    Returns:
        One insertion per item, each after comparisons with at most floor(log2(n_labels)) + 1 labels.

    Raises:
        InputError: The scale is empty or names a label twice, a label has no anchors, an unknown label has anchors, an
            item is an anchor itself, or an option is out of range.
    """
    anchor_items = {int(anchor) for label in labels for anchor in anchors.get(label, ())}
    leaked_item = next((item for item in items if item in anchor_items), None)
    if leaked_item is not None:
        raise InputError(f"Item {leaked_item} is one of the anchors, so its label is known; leave it out of either.")
    if not labels or len(set(labels)) < len(labels):
        raise InputError("A scale needs at least one label, and each label only once.")
    for label in labels:
        if not len(anchors.get(label, ())):
            raise InputError(f"The label {label!r} has no anchors; give it labelled items or take it off the scale.")
    unknown_label = next((label for label in anchors if label not in labels), None)
    if unknown_label is not None:
        raise InputError(f"There are anchors for {unknown_label!r}, which is not on the scale ({', '.join(labels)}).")
    if any(item < 0 for item in items):
        raise InputError("Items are indices starting at 0.")
    if samples < 1:
        raise InputError(f"At least 1 anchor must be drawn per label, got {samples}.")
    if mode not in get_args(InsertMode):
        raise InputError(f"There is no mode {mode!r}; choose one of {', '.join(get_args(InsertMode))}.")
    if not 0 <= band < 0.5 or not tie_band >= 0:
        raise InputError(f"band must be at least 0 and below 0.5, and tie_band at least 0, got {band} and {tie_band}.")

    def determine_verdict(log_odds: NDArray[np.float64], preference: float) -> Verdict:
        if mode != "three-way":
            return (
                "equal"
                if abs(preference - 0.5) <= (band if mode == "band" else 0.0)
                else "higher"
                if preference > 0.5
                else "lower"
            )
        n_higher, n_lower = int((log_odds > tie_band).sum()), int((log_odds < -tie_band).sum())
        n_equal = len(log_odds) - n_higher - n_lower
        if n_higher > max(n_lower, n_equal):
            return "higher"
        return "lower" if n_lower > max(n_higher, n_equal) else "equal"

    searches = [_LabelSearch(int(item), 0, len(labels) - 1, mode == "printed") for item in items]
    while open_searches := [search for search in searches if search.label is None]:
        draws = []
        for search in open_searches:
            label_anchors = [int(anchor) for anchor in anchors[labels[search.middle]]]
            generator = np.random.default_rng((seed, search.item, search.middle))
            is_complete = len(label_anchors) <= samples
            draws.append(
                label_anchors
                if is_complete
                else [label_anchors[index] for index in generator.choice(len(label_anchors), samples, replace=False)]
            )
        pairs = [
            (search.item, anchor)
            for search, drawn_anchors in zip(open_searches, draws, strict=True)
            for anchor in drawn_anchors
        ]
        log_odds = np.asarray(ask(np.array(pairs, dtype=np.int64)), dtype=np.float64)
        if log_odds.shape != (len(pairs),) or np.isnan(log_odds).any():
            raise InputError(f"{len(pairs)} comparisons with anchors need as many log-odds, and none of them NaN.")
        log_odds_parts = np.split(log_odds, np.cumsum([len(drawn_anchors) for drawn_anchors in draws])[:-1])
        for search, part in zip(open_searches, log_odds_parts, strict=True):
            preference = float(np.mean(logistic(part)))
            search.record_step(
                InsertionStep(labels[search.middle], preference, determine_verdict(part, preference), len(part))
            )
    return tuple(
        Insertion(
            labels[search.label or 0],
            sum(step.comparisons for step in search.steps.values()),
            (*search.steps.values(),),
        )
        for search in searches
    )


@dataclass(frozen=True, slots=True)
class InsertionResult(Result):
    """New items with their labels."""

    items: tuple[Item, ...]
    insertions: tuple[Insertion, ...]
    comparisons: int
    failed: int
    """Number of comparisons without an answer."""
    scores: HeldOutScores | None
    """Agreement with the items' own labels; None if no item has one."""
    levels: tuple[str, ...] = ()
    """Names of the labels, lowest first."""
    run: str = ""
    """Id of the run that compared the items."""
    quality: str = ""
    method: str = ""
    messages: tuple[str, ...] = ()
    """Notes on skipped rows and on the probe."""

    def labels(self) -> list[dict[str, Any]]:
        """Return a row per item, with its label and the steps of its search."""
        pairs = zip(self.items, self.insertions, strict=True)
        return [{"item": item.id, "text": item.text, **asdict(insertion)} for item, insertion in pairs]

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return a row per item with its full text, its label and the steps of its search as one text."""
        from climassay.judging.report import insertion_table

        return AssembledResult("", (insertion_table(self.labels(), words=None),)).rows()

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON-serialisable values."""
        names = ("run", "quality", "method", "levels", "comparisons", "failed")
        scores = None if self.scores is None else self.scores.to_dict()
        return {**{name: getattr(self, name) for name in names}, "scores": scores, "items": self.labels()}

    def notes(self) -> tuple[str, ...]:
        """Return notes on skipped rows, on the probe and on the number of comparisons."""
        return (*self.messages, f"{self.comparisons} comparisons, {self.failed} without an answer.")

    def tables(self) -> list[Table]:
        """Return the items with their labels, and the scores if true labels are known."""
        from climassay.judging.report import insertion_table

        return [insertion_table(self.labels()), *([] if self.scores is None else self.scores.tables())]


def insert_items(
    items: Sequence[Item],
    anchors: Sequence[Item],
    levels: Sequence[str],
    method: Method,
    *,
    samples: int = 10,
    mode: InsertMode = "band",
    tie_band: float = TIE_BAND,
    seed: int = 0,
    on_progress: Progress | None = None,
) -> InsertionResult:
    """Label each new item by comparing it with labelled anchors (algorithm PPAIRS_INSERT of Maiya 2024, amended).

    Args:
        items: New items; their own labels, if any, are only used to score the result.
        anchors: Labelled items; a label is an index into ``levels``. Anchors are compared across groups.
        levels: Names of the labels, lowest first.
        method: Judge that compares two items.
        samples: Number of anchors drawn per label for each item.
        mode: Rule for equality; see :func:`insert_indices`.
        tie_band: Absolute log-odds up to which one comparison counts as equal, for ``three-way``; for a probe, pass the
            one it has fitted.
        seed: Seed of the draws.
        on_progress: Called with the number of requests answered since the last call.

    Raises:
        InputError: A label has no anchors, an item's text is among the anchors, or there are no items.
    """
    if not items:
        raise InputError("There is nothing to insert: the table has no items.")
    anchor_texts = {item.text for item in anchors}
    leaked_id = next((item.id for item in items if item.text in anchor_texts), None)
    if leaked_id is not None:
        raise InputError(
            f"The item {leaked_id!r} is one of the anchors, so its label is known: leave it out of either."
        )
    anchors_by_label: dict[str, list[int]] = {level: [] for level in levels}
    for index, anchor in enumerate(anchors, start=len(items)):
        if anchor.label is None:
            raise InputError(f"The anchor {anchor.id!r} has no label: name the column with --label.")
        anchors_by_label[levels[int(anchor.label)]].append(index)
    all_items = (*items, *anchors)
    preferences = Preferences(method, all_items, on_progress=on_progress)
    result = insert_indices(
        preferences.ask,
        range(len(items)),
        levels,
        anchors_by_label,
        samples=samples,
        mode=mode,
        tie_band=tie_band,
        seed=seed,
    )
    label_pairs = [
        (int(item.label), insertion.label)
        for item, insertion in zip(items, result, strict=True)
        if item.label is not None
    ]
    scores = None
    if label_pairs:
        answers = [list(levels).index(label) for _, label in label_pairs]
        truth = [label for label, _ in label_pairs]
        scores = evaluate(truth, np.eye(len(levels))[answers], tuple(levels), seed=seed)
    return InsertionResult(tuple(items), result, preferences.n_pairs, preferences.failed, scores, tuple(levels))
