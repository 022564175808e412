"""Active learning simulated on known labels: what each strategy would have saved.

Drafts are labelled, a validator fitted and the next ones chosen. Every strategy starts from the same labelled drafts of
a split, and is measured on the same passages that it never sees. The seed decides everything that is random, and each
split is stored as soon as it is done.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climassay.errors import InputError
from climassay.generation.screening.catalogue import format_proportion
from climassay.generation.validation.active_learning import STRATEGIES, Acquisition, choose_next
from climassay.generation.validation.labels import (
    RESAMPLES,
    LabelledDraft,
    LabelSet,
    check_labels,
    labels_array,
    precision_at,
    reason_figure,
    source_groups,
)
from climassay.generation.validation.readers import TextReader, draft_vectors
from climassay.generation.validation.validators import Validator
from climassay.io import parse_json, read_text, write_file
from climassay.learning import auroc, fit_path
from climassay.learning.linear import Scaling, project_to_span
from climassay.reporting import Axis, LinePlot, Point, Prose, Report, Section, Series, Table
from climassay.statistics import Estimate, Interval, mean_estimates, proportion

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Measure = Literal["precision", "kept", "precision_at_share", "auroc"]
MEASURES: tuple[Measure, ...] = ("precision", "kept", "precision_at_share", "auroc")
_COMPARED: tuple[Measure, ...] = ("precision", "precision_at_share", "auroc")
_BASE: Acquisition = "random"
_SHOWN = 6
"""Label counts of the table of the screen."""


@dataclass(frozen=True, slots=True, eq=False)
class SimulationItems:
    """Labelled drafts as arrays."""

    name: str
    blocks: tuple[FloatArray, ...]
    """Features, [items, features] each."""
    vectors: NDArray[np.float32]
    """For clusters, [items, width]."""
    valid: IntArray
    """[items], 0 or 1."""
    groups: IntArray
    """[items], the main passage of each."""
    zero_shot: FloatArray | None = None
    """[items], P(valid) by a model that was not trained; None where none was asked."""

    @classmethod
    def read(cls, labels: LabelSet, reader: TextReader, *, zero_shot: Validator | None = None) -> "SimulationItems":
        """Labels as a reader sees them.

        Args:
            labels: What experts said.
            reader: Turns drafts into features; its encoder gives the vectors.
            zero_shot: A model that was not trained; what it cannot judge is as likely as not.
        """
        drafts = [one.draft for one in labels.drafts]
        judged = None
        if zero_shot is not None:
            judged = np.array([0.5 if value is None else value for value in zero_shot.judge(drafts)])
        blocks, vectors = reader.read(drafts).blocks, draft_vectors(drafts, reader.encoder)
        return cls(labels.name, blocks, vectors, labels_array(labels.drafts), source_groups(drafts), judged)

    @property
    def sha256(self) -> str:
        """Over all of it."""
        digest = hashlib.sha256()
        parts: list[NDArray[Any]] = [*self.blocks, self.vectors, self.valid, self.groups]
        for part in parts if self.zero_shot is None else [*parts, self.zero_shot]:
            digest.update(str((part.dtype, part.shape)).encode() + np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class SimulationSettings:
    """How the labelling is played through."""

    strategies: tuple[Acquisition, ...] = STRATEGIES
    splits: int = 100
    test_share: float = 0.25
    """Share of the items, by whole passages (the paper's test sets have about 40)."""
    start: int = 20
    """Labels before the first choice, drawn at random."""
    batch: int = 10
    """Number of labels per round."""
    rounds: int | None = None
    """Choices made; None: until all training items are labelled."""
    regularisation: float = 10.0
    """C of the regression: one for all rounds, since few labels cannot choose it. Weak, so that a validator without
    skill rejects something too; a strong penalty has it keep everything."""
    kept_share: float = 0.8
    """Share of the test items that is kept for the precision at a fixed share."""
    seed: int = 0

    def __post_init__(self) -> None:
        unknown = [one for one in self.strategies if one not in STRATEGIES]
        if unknown or not self.strategies or len(set(self.strategies)) < len(self.strategies):
            raise InputError(f"The strategies must be different ones of {', '.join(STRATEGIES)}.")
        for name in ("splits", "start", "batch"):
            if getattr(self, name) < 1:
                raise InputError(f"A simulation needs at least one of {name}, not {getattr(self, name)}.")
        for name in ("test_share", "kept_share"):
            if not 0 < getattr(self, name) < 1:
                raise InputError(f"The {name.replace('_', ' ')} is {getattr(self, name)}: give a share such as 0.25.")
        if self.rounds is not None and self.rounds < 0:
            raise InputError(f"A simulation cannot have {self.rounds} rounds.")


class RoundScores(NamedTuple):
    """A validator after some labels, on the test passages of its split."""

    labels: int
    precision: float
    """Share of valid ones among those with P(valid) of at least one half; the base rate where there are none."""
    kept: float
    """Share of the test items that were kept so."""
    precision_at_share: float
    """When the likeliest ones are kept, a fixed share of the test items."""
    auroc: float
    """One half where the test passages have items of one kind only."""


@dataclass(frozen=True, slots=True)
class SplitResult:
    """All strategies on one split."""

    split: int
    test: int
    """Test items."""
    train: int
    none: RoundScores
    """Without a validator: everything is kept."""
    zero_shot: RoundScores | None
    rounds: tuple[tuple[Acquisition, tuple[RoundScores, ...]], ...]


def simulate(
    items: SimulationItems,
    settings: SimulationSettings | None = None,
    *,
    store: Path | None = None,
    on_split: Callable[[int], None] | None = None,
) -> list[SplitResult]:
    """Play the labelling through on many splits; one result per split, in order.

    Args:
        items: Labelled drafts.
        settings: By default those of :class:`SimulationSettings`.
        store: A file that keeps the splits that are done: the same call again goes on where it stopped.
        on_split: Called with the number of splits done since the last call.

    Raises:
        InputError: Too few labels for the settings, or the file belongs to another simulation.
    """
    from pydantic import TypeAdapter

    chosen = settings or SimulationSettings()
    check_labels(items.valid)
    # More splits go on with those that are there.
    decisive = {name: value for name, value in asdict(chosen).items() if name != "splits"}
    fingerprint = hashlib.sha256(json.dumps([1, items.sha256, decisive], sort_keys=True).encode()).hexdigest()
    done: dict[int, SplitResult] = {}
    if store is not None and store.is_file():
        read = TypeAdapter(SplitResult).validate_python
        try:
            # The last line may have been cut off when its process was killed.
            for line in filter(None, read_text(store).split("\n")[:-1]):
                row = parse_json(line)
                if row["simulation"] != fingerprint:
                    raise InputError(f"{store} holds a simulation with other labels or settings: name another file.")
                result = read(row["result"])
                done[result.split] = result
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"{store} is not a file of a simulation ({error}): name another one.") from error
    if on_split is not None and done:
        on_split(len(done))
    for split in (one for one in range(chosen.splits) if one not in done):
        done[split] = _one_split(items, chosen, split)
        if store is not None:
            lines = (json.dumps({"simulation": fingerprint, "result": asdict(one)}) for one in done.values())
            write_file(store, "".join(f"{line}\n" for line in lines).encode())
        if on_split is not None:
            on_split(1)
    return [done[split] for split in range(chosen.splits)]


def _random_split(groups: ArrayLike, share: float, *, seed: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Split items at random by whole groups.

    Groups are added to the test set until it has a proportion ``share`` of the items. At least one group remains for
    training. ``groups`` has the group of each item, shape [items].
    """
    group_ids = np.asarray(groups)
    order = np.random.default_rng(seed).permutation(np.unique(group_ids))
    min_size, test_groups, size = share * len(group_ids), [], 0
    for group in order[:-1]:
        if size >= min_size:
            break
        test_groups.append(group)
        size += int((group_ids == group).sum())
    is_test = np.isin(group_ids, test_groups)
    return np.flatnonzero(~is_test), np.flatnonzero(is_test)


def _one_split(items: SimulationItems, settings: SimulationSettings, split: int) -> SplitResult:
    pool, test = _random_split(items.groups, settings.test_share, seed=[settings.seed, split])
    if len(pool) < settings.start:
        raise InputError(
            f"A simulation that starts with {settings.start} labels needs more than the {len(pool)} training items "
            f"that {len(items.valid)} labels leave."
        )
    valid = items.valid[test]
    base = float(valid.mean())
    none = RoundScores(0, base, 1.0, base, 0.5)
    zero = None if items.zero_shot is None else _score(0, valid, items.zero_shot[test], settings.kept_share)
    # Unlabelled drafts are at hand before any label is: scale and span may come from all of the pool.
    scaling = Scaling.fit([block[pool] for block in items.blocks])
    rows = (np.concatenate(items.blocks, axis=1) - scaling.mean) * scaling.factor
    turned, axes = project_to_span(rows[pool])
    outside = rows[test] @ axes
    as_they_are = Scaling(np.zeros(turned.shape[1]), np.ones(turned.shape[1]))
    start = np.random.default_rng([settings.seed, split, 1]).permutation(len(pool))[: settings.start]

    def play(strategy: Acquisition) -> Iterator[RoundScores]:
        """Fit, measure, choose, label."""
        labelled = np.zeros(len(pool), dtype=bool)
        labelled[start] = True
        rounds = len(pool) if settings.rounds is None else settings.rounds
        for number in range(rounds + 1):
            known = turned[labelled], items.valid[pool[labelled]]
            path = [settings.regularisation / len(items.blocks)]
            model = fit_path([known[0]], known[1], 2, path, scaling=as_they_are)[0]
            yield _score(int(labelled.sum()), valid, model.probabilities([outside])[:, 1], settings.kept_share)
            rest = np.flatnonzero(~labelled)
            if number == rounds or not len(rest):
                return
            chances = model.probabilities([turned[rest]])[:, 1]
            seed = int(np.random.default_rng([settings.seed, split, 2, number]).integers(2**31))
            labelled[rest[choose_next(rest, chances, items.vectors[pool[rest]], settings.batch, strategy, seed)]] = True

    results = tuple((strategy, tuple(play(strategy))) for strategy in settings.strategies)
    return SplitResult(split, len(test), len(pool), none, zero, results)


def _score(labels: int, valid: IntArray, given: FloatArray, share: float) -> RoundScores:
    kept = given >= 0.5
    precision = float(valid[kept].mean()) if kept.any() else float(valid.mean())
    at_share = precision_at(share, valid, given).precision.value
    return RoundScores(labels, precision, float(kept.mean()), at_share, auroc(given, valid))


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A strategy after some labels: means over splits with bootstrap intervals."""

    labels: int
    precision: Estimate
    kept: Estimate
    precision_at_share: Estimate
    auroc: Estimate


@dataclass(frozen=True, slots=True)
class Curve:
    """One strategy."""

    strategy: Acquisition
    points: tuple[CurvePoint, ...]


@dataclass(frozen=True, slots=True)
class Gain:
    """What a strategy gains over random choice, averaged over the rounds in which they differ."""

    strategy: Acquisition
    measure: Measure
    over_splits: Estimate
    """Bootstrap over splits: how sure the mean over further splits of these same labels is."""
    over_items: Interval
    """Corrected for overlapping splits: what may be expected with other labels; see :func:`corrected_interval`."""


@dataclass(frozen=True, slots=True)
class SimulationSummary:
    """All of a simulation in numbers."""

    name: str
    items: int
    valid: Estimate
    """Share of valid ones among all items, with its Wilson interval: what 100% precision would have to be seen from."""
    splits: int
    test: float
    """Mean number of test items."""
    train: float
    none: CurvePoint
    zero_shot: CurvePoint | None
    curves: tuple[Curve, ...]
    gains: tuple[Gain, ...]
    """Empty where random choice is not among the strategies."""


def summarise(items: SimulationItems, results: Sequence[SplitResult], *, seed: int = 0) -> SimulationSummary:
    """Means over splits, and paired differences to random choice.

    Raises:
        InputError: No results.
    """
    if not results:
        raise InputError("The simulation has no finished split to summarise.")
    zero = [result.zero_shot for result in results if result.zero_shot is not None]
    curves = []
    for place, (strategy, _) in enumerate(results[0].rounds):
        played = [result.rounds[place][1] for result in results]
        # Training sets differ by a few items between splits: the last rounds are those that all splits have.
        length = min(map(len, played))
        points = tuple(_point([one[number] for one in played], seed) for number in range(length))
        curves.append(Curve(strategy, points))
    names = [strategy for strategy, _ in results[0].rounds]
    ratio = float(np.mean([result.test / result.train for result in results]))
    gains = []
    for place, strategy in enumerate(names if _BASE in names else []):
        for measure in _COMPARED if strategy != _BASE else ():
            gaps = []
            for result in results:
                pairs = list(zip(result.rounds[place][1], result.rounds[names.index(_BASE)][1], strict=True))
                # Between the common start and the end, where everything is labelled.
                between = [pair for pair in pairs[1:] if pair[0].labels < result.train] or pairs
                gaps.append(float(np.mean([getattr(a, measure) - getattr(b, measure) for a, b in between])))
            (estimate,) = mean_estimates([gaps], resamples=RESAMPLES, seed=seed)
            gains.append(Gain(strategy, measure, estimate, corrected_interval(gaps, ratio)))
    return SimulationSummary(
        name=items.name,
        items=len(items.valid),
        valid=proportion(int(items.valid.sum()), len(items.valid)),
        splits=len(results),
        test=float(np.mean([result.test for result in results])),
        train=float(np.mean([result.train for result in results])),
        none=_point([result.none for result in results], seed),
        zero_shot=_point(zero, seed) if zero else None,
        curves=tuple(curves),
        gains=tuple(gains),
    )


def _point(scores: Sequence[RoundScores], seed: int) -> CurvePoint:
    columns = [[getattr(score, measure) for score in scores] for measure in MEASURES]
    labels = round(float(np.mean([score.labels for score in scores])))
    return CurvePoint(labels, *mean_estimates(columns, resamples=RESAMPLES, seed=seed))


def corrected_interval(values: ArrayLike, test_to_train: float) -> Interval:
    """95% interval of a mean over random train-test splits of the same items, shape [splits], which overlap.

    Splits of the same items are not independent: the plain interval shrinks to nothing with their number although no
    item is added. Here the variance of the mean is ``(1/k + n_test/n_train) s^2``.

    References:
        Nadeau and Bengio (2003), Inference for the Generalization Error, Machine Learning 52, 239-281, section 3.
    """
    from scipy.stats import t

    given = np.asarray(values, dtype=np.float64)
    middle = float(given.mean())
    if len(given) < 2:
        return Interval(-np.inf, np.inf)
    spread = float(given.var(ddof=1) * (1 / len(given) + test_to_train)) ** 0.5
    half = float(t.ppf(0.975, len(given) - 1)) * spread
    return Interval(middle - half, middle + half)


def simulation_tables(summary: SimulationSummary, settings: SimulationSettings) -> list[Table]:
    """The curve in some places, and the gains over random choice."""
    share = f"{settings.kept_share:.0%}"
    rows = [_row("no validation", "", summary.none)]
    if summary.zero_shot is not None:
        rows.append(_row("zero-shot", "", summary.zero_shot))
    for curve in summary.curves:
        places = sorted({round(at) for at in np.linspace(0, len(curve.points) - 1, _SHOWN)})
        rows += [_row(curve.strategy, str(curve.points[at].labels), curve.points[at]) for at in places]
    columns = ("labels chosen by", "labels", "precision at 1/2", "kept", f"precision, {share} kept", "AUROC")
    note = (
        f"Means over {summary.splits} splits with about {summary.test:.0f} test and {summary.train:.0f} training "
        "items; in brackets 95% bootstrap intervals over splits, which speak of further splits of the same "
        f"{summary.items} items and not of other items."
    )
    tables = [Table.of("Precision over the number of labels", columns, rows, note=note)]
    if summary.gains:
        words = {"precision": "precision at 1/2", "precision_at_share": f"precision, {share} kept", "auroc": "AUROC"}
        gained = [
            (
                gain.strategy,
                words[gain.measure],
                f"{gain.over_splits.value:+.4f}",
                f"{gain.over_splits.interval.low:+.4f} to {gain.over_splits.interval.high:+.4f}",
                f"{gain.over_items.low:+.3f} to {gain.over_items.high:+.3f}",
            )
            for gain in summary.gains
        ]
        headings = ("strategy", "measure", "gain", "over splits of these items", "over other items")
        note = (
            "Paired by split, mean over all rounds between the common start and the end. The last column corrects for "
            "splits that share their items (Nadeau and Bengio 2003): a strategy is better only where it leaves out 0."
        )
        tables.append(Table.of("Gain over random choice", headings, gained, note=note, left_columns=2))
    return tables


def _row(name: str, labels: str, point: CurvePoint) -> tuple[str, ...]:
    area = f"{point.auroc.value:.3f} ({point.auroc.interval.low:.3f} to {point.auroc.interval.high:.3f})"
    shares = format_proportion(point.precision), f"{point.kept.value:.0%}", format_proportion(point.precision_at_share)
    return (name, labels, *shares, area)


def simulation_figure(summary: SimulationSummary, measure: Measure, title: str) -> LinePlot:
    """Curves of the strategies over the number of labels, with the lines of no validation and of zero-shot."""
    percent = measure != "auroc"
    counts = [point.labels for curve in summary.curves for point in curve.points]
    first, last = float(min(counts)), float(max(counts))
    lines = []
    for curve in summary.curves:
        points = []
        for point in curve.points:
            estimate: Estimate = getattr(point, measure)
            points.append(Point(point.labels, estimate.value, *estimate.interval, f"{curve.strategy}, {point.labels}"))
        lines.append(Series(curve.strategy, tuple(points)))
    flat = [("no validation" if percent else "chance", getattr(summary.none, measure).value)]
    if summary.zero_shot is not None:
        flat.append(("zero-shot", getattr(summary.zero_shot, measure).value))
    lines += [Series(name, (Point(first, level), Point(last, level)), reference=True) for name, level in flat]
    ends = [value for line in lines for p in line.points for value in (p.low, p.high, p.y) if value is not None]
    return LinePlot(
        title,
        tuple(lines),
        Axis.over("labels", (first, last)),
        Axis.over("precision" if percent else "AUROC", ends, percent=percent),
        note=f"Means over {summary.splits} splits of the same {summary.items} items. Bars: 95% bootstrap over splits; "
        "other items would move all curves together by far more.",
    )


def simulation_report(
    summary: SimulationSummary, settings: SimulationSettings, labelled: Sequence[LabelledDraft]
) -> Report:
    """A self-contained report."""
    low, high = summary.valid.interval
    words = (
        f"{summary.items} labelled questions of {summary.name}, {summary.valid.value:.1%} of them valid (95% interval "
        f"of this share: {low:.1%} to {high:.1%}). A validator is trained on labels that each strategy chooses, and "
        "its precision is measured on passages that it has not seen."
    )
    figures = (
        simulation_figure(summary, "precision", "Precision of what the validator keeps"),
        simulation_figure(
            summary, "precision_at_share", f"Precision when the likeliest {settings.kept_share:.0%} are kept"
        ),
        simulation_figure(summary, "auroc", "Telling valid from invalid (AUROC)"),
    )
    sections = [
        Section("Precision over labels", figures),
        Section("Numbers", tuple(simulation_tables(summary, settings))),
    ]
    reasons = reason_figure([(summary.name, labelled)])
    if reasons is not None:
        sections.append(Section("Why questions were rejected", (reasons,)))
    separated = [
        f"{gain.strategy} in {gain.measure}"
        for gain in summary.gains
        if gain.over_items.low > 0 or gain.over_items.high < 0
    ]
    if not summary.gains:
        caution = "Random choice was not simulated, so that no strategy can be compared with it."
    elif separated:
        caution = (
            f"Apart from random choice by more than other items would explain: {', '.join(separated)}. Of several "
            "comparisons one in twenty comes out so by chance."
        )
    else:
        caution = (
            f"No strategy is apart from random choice by more than other items would explain: {summary.items} labels "
            "cannot separate them."
        )
    sections.append(Section("What this can show", (Prose(caution),)))
    return Report("Which questions to have labelled", words, tuple(sections))
