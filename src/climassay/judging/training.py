"""Methods under test, how well they agree with the experts, and probes trained for use, with the evidence behind them.

Folds share no group, and no item. Agreement is accuracy on pairs and rank correlation, with intervals. What is
resampled are the independent units: groups (articles) where there are several, else items. Pairs are never resampled by
themselves, for pairs of one article, or of one item, go right and wrong together.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from climassay.claim_identity import words_id
from climassay.errors import InputError
from climassay.judging.judges import (
    JUDGES,
    ContrastProbe,
    Cost,
    Harvester,
    JudgeName,
    PointwiseProbe,
    StateTable,
    layers_of,
    named_judge,
)
from climassay.judging.preferences import (
    FloatArray,
    IntArray,
    Item,
    Judgements,
    Method,
    Preferences,
    Progress,
    Quality,
    Questions,
    both_ways,
    by_group,
    word_counts,
)
from climassay.judging.probe import (
    Fit,
    Probe,
    States,
    fit_contrast,
    fit_pointwise,
    fit_principal,
    log_length_differences,
    three_way,
)
from climassay.judging.settings import ProbeSettings
from climassay.learning.calibration import fit_tie_band
from climassay.learning.evaluation import Calibration, calibration
from climassay.learning.model_file import Provenance
from climassay.learning.pairwise import HeldOut, RegularisationPath, average_orders, item_folds, pair_splits
from climassay.learning.splits import group_folds, held_out
from climassay.models.contract import OptionScorer
from climassay.reporting import Report, Table
from climassay.reporting.results import Result
from climassay.statistics import percentile_interval
from climassay.statistics.agreement import kendall_of_resamples, spearman_of_resamples

RESAMPLES = 2000
LIST_RESAMPLES = 500
NO_ANSWER = 2
"""In place of a three-way prediction where a comparison failed: right for no pair."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A value with its interval."""

    value: float | None
    """None where nothing could be measured, for example no pairs of nearly equal length."""
    low: float | None
    high: float | None
    n: int
    """Pairs, or groups, behind the value."""


@dataclass(frozen=True, slots=True)
class JudgedPairs:
    """Unordered pairs of test items, gathered over all folds."""

    pairs: IntArray
    """[pairs, 2]; indices of items."""
    truth: FloatArray
    """[pairs]; label of the first item minus label of the second."""
    log_odds: FloatArray
    """[pairs]; 0 where a comparison failed, which counts as undecided and therefore as half right."""
    predicted: IntArray
    """[pairs]; 1, 0 or -1, by the tie band of the fold; :data:`NO_ANSWER` where a comparison failed."""

    def take(self, chosen: NDArray[np.bool_]) -> "JudgedPairs":
        """Some of the pairs, by a mask of shape [pairs]."""
        return JudgedPairs(self.pairs[chosen], self.truth[chosen], self.log_odds[chosen], self.predicted[chosen])


@dataclass(frozen=True)
class Units:
    """The independent units of a data set, and their bootstrap resamples."""

    of_item: IntArray
    """[items]; number of the unit to which each item belongs: its group, or itself where all items form one group."""
    counts: FloatArray
    """[resamples, units]; how often each unit appears in each resample."""

    @classmethod
    def of(cls, groups: Sequence[str], *, resamples: int = RESAMPLES, seed: int = 0) -> "Units":
        """Units of items by their groups."""
        names = sorted(set(groups))
        place = {name: number for number, name in enumerate(names)}
        of_item = np.array([place[name] for name in groups]) if len(names) > 1 else np.arange(len(groups))
        units = int(of_item.max()) + 1
        draws = np.random.default_rng(seed).multinomial(units, np.full(units, 1 / units), size=resamples)
        return cls(of_item, draws.astype(np.float64))

    def pair_weights(self, pairs: IntArray) -> FloatArray:
        """Weight of each pair in each resample, [resamples, pairs]."""
        first, second = self.of_item[pairs[:, 0]], self.of_item[pairs[:, 1]]
        same = first == second
        return np.asarray(self.counts[:, first] * np.where(same, 1.0, self.counts[:, second]))

    def mean(self, values: FloatArray, pairs: IntArray) -> Figure:
        """Mean of one value per pair [pairs], for example whether it was judged rightly; ``pairs`` [pairs, 2]."""
        return self._mean(values, self.pair_weights(pairs))[0]

    def difference(self, first: FloatArray, second: FloatArray, pairs: IntArray) -> "PairedFigure":
        """Mean of ``second - first``, both [pairs], on the same ``pairs`` [pairs, 2], with its bootstrap p-value."""
        figure, samples = self._mean(second - first, self.pair_weights(pairs))
        if not figure.n:
            return PairedFigure(figure, None)
        tail = min(np.mean(samples <= 0), np.mean(samples >= 0))
        return PairedFigure(figure, min(1.0, 2 * float(tail) + 2 / (len(samples) + 1)))

    def group_mean(self, values: FloatArray, units: IntArray) -> Figure:
        """Mean of one value per group, for example a rank correlation; values and numbers of the groups, [groups]."""
        return self._mean(values, self.counts[:, units])[0]

    def _mean(self, values: FloatArray, weights: FloatArray) -> tuple[Figure, FloatArray]:
        """Mean of values [n] and its resamples, by their weights in each of them [resamples, n]."""
        if len(values) == 0:
            return Figure(None, None, None, 0), np.zeros(0)
        total = weights.sum(axis=1)
        kept = total > 0
        samples: FloatArray = (weights[kept] @ values) / total[kept]
        return self.figure(float(values.mean()), samples, len(values)), samples

    @staticmethod
    def figure(value: float, samples: FloatArray, n: int) -> Figure:
        """A value with the 95% interval of its resamples, shape [resamples]."""
        return Figure(value, *percentile_interval(samples), n)


@dataclass(frozen=True, slots=True)
class PairedFigure:
    """A difference between two methods on the same pairs."""

    difference: Figure
    p_value: float | None
    """Two-sided, from the bootstrap distribution; never 0."""


def correctness(test: JudgedPairs) -> FloatArray:
    """1 where the order of two items that differ is judged rightly, 0 where wrongly, 0.5 where undecided. [pairs]."""
    return np.where(test.log_odds == 0, 0.5, np.sign(test.log_odds) == np.sign(test.truth)).astype(np.float64)


def three_way_correctness(test: JudgedPairs) -> FloatArray:
    """1 where greater, equal or less is judged rightly, else 0. [pairs]."""
    return np.asarray(test.predicted == np.sign(test.truth), dtype=np.float64)


def pair_calibration(test: JudgedPairs) -> Calibration | None:
    """Calibration on the pairs that differ, each in both orders, so that base rate and curve are symmetric."""
    differ = test.take(test.truth != 0)
    if not len(differ.truth):
        return None
    odds = np.concatenate([differ.log_odds, -differ.log_odds])
    outcomes = np.concatenate([differ.truth > 0, differ.truth < 0]).astype(np.float64)
    return calibration(0.5 + 0.5 * np.tanh(odds / 2), outcomes)


def correlations(
    units: Units, rankings: Sequence[tuple[IntArray, FloatArray]], labels: FloatArray
) -> dict[str, Figure]:
    """Spearman's rho and Kendall's tau-b between ranking and labels [items], averaged over groups.

    ``rankings`` gives for each ranked list its item indices and their scores, both [members], more being better; a list
    is a group of the test folds, or all test items of a fold where all items form one group. Lists with equal labels
    throughout have no correlation and are left out; ``n`` is the number of lists, or of items where all form one group.
    """
    used = [(members, scores) for members, scores in rankings if np.ptp(labels[members]) > 0 and len(members) > 1]
    grouped = all(len(set(units.of_item[members].tolist())) == 1 for members, _ in used)
    result = {}
    for name, measure in (("spearman", spearman_of_resamples), ("kendall", kendall_of_resamples)):
        once = [measure(scores, labels[members], np.arange(len(members))[None])[0] for members, scores in used]
        # A ranking that puts all items on one place goes with nothing: 0, as for a judge who says nothing.
        values = np.nan_to_num(np.array(once))
        if grouped:
            result[name] = units.group_mean(values, np.array([units.of_item[members[0]] for members, _ in used], int))
            continue
        # Mean over the folds' lists, with items resampled within each of them.
        draw = np.random.default_rng(0)
        drawn = [[draw.integers(0, len(members), len(members)) for members, _ in used] for _ in range(LIST_RESAMPLES)]
        found = []
        for (members, scores), places in zip(used, zip(*drawn, strict=True), strict=True):
            chosen, truth = np.array(places), labels[members]
            differ = np.ptp(truth[chosen], axis=1) > 0
            found.append(np.where(differ, np.nan_to_num(measure(scores, truth, chosen)), np.nan))
        table = np.array(found)
        means = np.nanmean(table[:, ~np.isnan(table).all(axis=0)], axis=0)
        result[name] = Units.figure(float(values.mean()), means, sum(len(members) for members, _ in used))
    return result


ProbeMethod = Literal["ppairs", "ppairs-length", "principal", "pointwise", "pointwise-length"]
"""``-length``: with length regressed out of the activations."""
PROBE_METHODS: tuple[ProbeMethod, ...] = get_args(ProbeMethod)
MethodName = JudgeName | ProbeMethod
METHODS: tuple[MethodName, ...] = (*get_args(JudgeName), *PROBE_METHODS)
NEEDS_WEIGHTS: frozenset[str] = frozenset({"zero-shot", *PROBE_METHODS})
"""Methods that read hidden states, or answers that come with them."""


def check_method(name: str) -> None:
    """See that there is a method of that name: one of :data:`METHODS`, or a judge that another package adds.

    Raises:
        InputError: There is none.
    """
    if name not in METHODS and name not in JUDGES:
        raise InputError(f"There is no method {name!r}: there are {', '.join(dict.fromkeys((*METHODS, *JUDGES)))}.")


@dataclass(frozen=True, slots=True)
class Fold:
    """One split into labelled items to learn from and items to be judged."""

    number: int
    train: IntArray
    """Indices of items."""
    train_pairs: IntArray
    """Unordered pairs of training items, [pairs, 2]."""
    test: IntArray
    test_pairs: IntArray


def make_folds(
    items: Sequence[Item], *, train_items: int = 100, folds: int = 3, pairs_per_item: int | None = None, seed: int = 0
) -> tuple[Fold, ...]:
    """Split items by group, or by item where all form one group.

    Every group is tested once. Of the other folds' groups, whole ones are drawn for training until they hold
    ``train_items`` items; the same seed draws the same order, so that a smaller training set is part of a larger one.

    Args:
        items: Labelled items.
        train_items: How many labels may be used; of the group that would exceed them, the first items are taken.
        folds: Number of folds.
        pairs_per_item: In one large group, compare each item with so many others instead of all.
        seed: Seed of the assignment and of the draws.

    Raises:
        InputError: Unlabelled items, too few groups or items for the folds, or a fold without two items to compare.
    """
    if any(item.label is None for item in items):
        raise InputError("A benchmark needs a label for every item: name the column with --aspect or --label.")
    groups = [item.group for item in items]
    names = sorted(set(groups))
    one = len(names) == 1
    units = np.arange(len(items)) if one else np.array([names.index(group) for group in groups])
    count = int(units.max()) + 1
    least = 2 if one else 1
    if folds < 2 or count < folds * least:
        raise InputError(
            f"{folds} folds need at least {max(2, folds) * least} {'items' if one else 'groups'}, there are {count}."
        )
    of_unit = group_folds(np.arange(count), folds, seed=seed, in_turn=True)
    made = []
    for number in range(folds):
        test = np.flatnonzero(of_unit[units] == number)
        pool = [unit for unit in np.random.default_rng([seed, number]).permutation(count) if of_unit[unit] != number]
        chosen = [index for unit in pool for index in np.flatnonzero(units == unit)][:train_items]
        train = np.sort(np.array(chosen, dtype=np.int64))
        draw = np.random.default_rng([seed, number, 1])
        made.append(
            Fold(
                number,
                train,
                pairs_within(groups, train, pairs_per_item, draw),
                test,
                pairs_within(groups, test, pairs_per_item, draw),
            )
        )
    if not any(len(fold.test_pairs) for fold in made):
        raise InputError(
            "Every item is the only one of its group, so no two can be compared: name another column with --group, or "
            "none."
        )
    empty = next((fold for fold in made if not len(fold.train_pairs)), None)
    if empty is not None:
        raise InputError(
            f"No two of the {len(empty.train)} training items of fold {empty.number + 1} belong to one group: allow "
            "more with --train-items, or fewer folds."
        )
    return tuple(made)


def pairs_within(
    groups: Sequence[str], members: IntArray, per_item: int | None, generator: np.random.Generator
) -> IntArray:
    """Unordered pairs of items of one group, all of them or about ``per_item`` for each item; [pairs, 2], sorted."""
    found: list[tuple[int, int]] = []
    for group in by_group(groups, members).values():
        n = len(group)
        if per_item is None or per_item >= n - 1:
            found += [(a, b) for place, a in enumerate(group) for b in group[place + 1 :]]
            continue
        # Neighbours on a shuffled ring: every item meets as many others, and all are connected.
        ring = generator.permutation(group).tolist()
        steps = range(1, (per_item + 1) // 2 + 1)
        met = [(ring[place], ring[(place + step) % n]) for step in steps for place in range(n)]
        found += [(min(pair), max(pair)) for pair in met]
    return np.array(sorted(set(found)), dtype=np.int64).reshape(-1, 2)


@dataclass(frozen=True, slots=True)
class Learned:
    """A method after it has seen a fold's training items."""

    judge: Callable[[IntArray], Judgements]
    """Judges unordered pairs (i, j) with i < j, shape [pairs, 2]."""
    tie_band: float
    layers: tuple[int, ...] = ()
    regularisation: float | None = None


class Candidate(Protocol):
    """A method under test."""

    def prepare(self, folds: Sequence[Fold]) -> None:
        """Compute in one go what the folds will need."""

    def learn(self, fold: Fold, train_pairs: IntArray | None = None) -> Learned:
        """Learn from a fold's training pairs, or from some of them, shape [pairs, 2]."""


class Untrained:
    """Direct scoring, PairS and zero-shot contrast: training items decide the tie band only, where none is given."""

    def __init__(
        self, method: Method, items: Sequence[Item], *, band: float | None = None, on_progress: Progress | None = None
    ) -> None:
        self._take = Preferences(method, items, on_progress=on_progress).judge
        self._labels = labels_of(items)
        self._band = band

    def prepare(self, folds: Sequence[Fold]) -> None:
        """See :class:`Candidate`."""
        self._take(pairs_of_folds(folds))

    def learn(self, fold: Fold, train_pairs: IntArray | None = None) -> Learned:
        """See :class:`Candidate`."""
        if self._band is not None:
            return Learned(self._take, self._band)
        pairs = fold.train_pairs if train_pairs is None else train_pairs
        found = self._take(pairs)
        kept = ~found.failed
        return Learned(self._take, fit_tie_band(found.log_odds[kept], outcomes_of(self._labels, pairs[kept])))


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """A probe fitted on training pairs, and what it was fitted on."""

    fit: Fit
    layers: tuple[int, ...]
    """Layers that it reads, chosen where there was a choice."""
    pairs: IntArray
    """[pairs, 2]; the pairs that had activations, in both orders for a probe on contrast pairs."""
    failed: int
    """Pairs left out because the model gave no activations."""


class ProbeCandidate:
    """A probe: on contrast pairs, supervised or the first principal component, or pointwise."""

    def __init__(self, method: ProbeMethod, table: StateTable, items: Sequence[Item], settings: ProbeSettings) -> None:
        self._method, self._table, self._items, self._settings = method, table, items, settings
        self._labels = labels_of(items)
        self._groups = [item.group for item in items]
        self._lengths = np.array(word_counts(items)) if method.endswith("-length") else None

    def prepare(self, folds: Sequence[Fold]) -> None:
        """See :class:`Candidate`."""
        if self._method.startswith("pointwise"):
            self._table.points(self._items[:1], layers=self._settings.layers[0])
        else:
            self._table.contrasts(self._items, both_ways(pairs_of_folds(folds)), layers=self._settings.layers[0])

    def learn(self, fold: Fold, train_pairs: IntArray | None = None) -> Learned:
        """See :class:`Candidate`."""
        fitted = self.fit(fold.train_pairs if train_pairs is None else train_pairs)
        probe = fitted.fit.probe
        kind: Any = ContrastProbe if probe.kind == "pair" else PointwiseProbe
        judge: Method = kind(self._table, probe, layers=fitted.layers)
        return Learned(
            lambda pairs: judge.compare(self._items, pairs),
            probe.tie_band,
            fitted.layers,
            probe.provenance.regularisation,
        )

    def fit(self, train_pairs: IntArray) -> Fitted:
        """Fit on unordered pairs [pairs, 2]; of several sets of layers, take the one with the lowest held-out loss."""

        def loss(fitted: Fitted) -> float:
            path = fitted.fit.path
            return 0.0 if path is None else path.losses[path.values.index(path.chosen)]

        return min((self._fit(train_pairs, layers) for layers in self._settings.layers), key=loss)

    def _fit(self, train_pairs: IntArray, layers: tuple[int, ...]) -> Fitted:
        pointwise = self._method.startswith("pointwise")
        pairs = train_pairs if pointwise else both_ways(train_pairs)
        if pointwise:
            states, lost = self._table.points(self._items, layers=layers)
            failed = np.asarray(lost[pairs].any(axis=1), dtype=bool)
        else:
            found = self._table.contrasts(self._items, pairs, layers=layers)
            states, failed = found.states[~found.failed], found.failed
        if failed.all():
            what = "pairs" if pointwise else "comparisons"
            raise InputError(
                f"The model gave no activations for any of the {len(failed)} training {what}: the texts may be longer "
                "than it takes (shorten their contexts with --context-words)."
            )
        kept = pairs[~failed]
        known: dict[str, Any] = {"groups": self._groups, "lengths": self._lengths}
        chosen: dict[str, Any] = {"regularisation": self._settings.regularisation, "seed": self._settings.seed}
        if pointwise:
            fit = fit_pointwise(states, self._labels, pairs=kept, **known, **chosen)
        elif self._method == "principal":
            fit = fit_principal(states, kept, self._labels, **known)
        else:
            fit = fit_contrast(states, kept, self._labels, ties=self._settings.ties, **known, **chosen)
        return Fitted(fit, layers, kept, int(failed.sum()))


def candidate_of(
    name: MethodName,
    items: Sequence[Item],
    questions: Questions,
    model: OptionScorer,
    table: StateTable | None,
    settings: ProbeSettings,
    on_progress: Progress | None = None,
) -> Candidate:
    """A method of one data set and quality; those that are given the same table share its harvest.

    Answers of direct scoring and PairS come from ``model``, with records around it; ``table`` holds hidden states and
    is None for models that give log-probabilities only.

    Raises:
        InputError: There is no such method, or the model cannot do what it needs.
    """
    check_method(name)
    if name not in PROBE_METHODS:
        return Untrained(named_judge(name, model, questions, table), items, on_progress=on_progress)
    if table is None:
        raise InputError(f"The method {name} reads hidden states: use a local: model, not {model.name}.")
    return ProbeCandidate(name, table, items, settings)


def pairs_of_folds(folds: Sequence[Fold]) -> IntArray:
    """All unordered pairs that the folds train or test on, [pairs, 2], each once."""
    return np.unique(np.concatenate([pairs for fold in folds for pairs in (fold.train_pairs, fold.test_pairs)]), axis=0)


def labels_of(items: Sequence[Item]) -> FloatArray:
    """Labels, shape [items]; NaN where nobody labelled an item."""
    return np.array([np.nan if item.label is None else item.label for item in items], dtype=np.float64)


def outcomes_of(labels: FloatArray, pairs: IntArray) -> IntArray:
    """1, 0 or -1 for each pair [pairs, 2]: whether the first item's label is higher, equal or lower."""
    return np.sign(labels[pairs[:, 0]] - labels[pairs[:, 1]]).astype(np.int64)


COMPONENTS = 3


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """Differences of training pairs on their first principal components (thesis, Figure C.1)."""

    coordinates: FloatArray
    """[pairs, 3]; the first component is turned so that positive speaks for the first item. Fewer than three where
    there are fewer dimensions."""
    truth: IntArray
    """[pairs]; 1 where the first item has the higher label, -1 the second, 0 where they are equal."""
    explained: tuple[float, ...]
    """Share of the variance that each component explains."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainedProbe(Result):
    """A probe and its evidence. What is held out, is held out by group, or by item where all form one group."""

    probe: Probe
    path: RegularisationPath | None
    accuracy: Figure
    """On differing pairs of held-out items, by probes that did not see them."""
    longer: Figure
    """Accuracy of "the longer text is better" on the same pairs."""
    versus_longer: PairedFigure
    calibration: Calibration | None
    """Calibration of the probabilities on held-out differing pairs in both orders; their scale was fitted on the same
    pairs, one number, so that it is a little rosy. None where nothing could be held out."""
    picture: Picture
    cost: Cost
    n_items: int
    n_groups: int
    n_pairs: int
    """Unordered training pairs, ties and failures included."""
    failed: int
    """Requests, of these pairs in both orders, to which the model gave no activations."""
    run: str = ""
    """Id of the run in which it was trained."""
    file: str = ""
    """Where the items come from."""
    output: str = ""
    """Where the probe is saved; empty for nowhere."""
    told: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The evidence, and where the probe comes from."""
        source, versus = self.probe.provenance, self.versus_longer
        return {
            "run": self.run,
            "probe": self.output,
            "quality": quality_of(source).name,
            "accuracy_held_out": asdict(self.accuracy),
            "longer": asdict(self.longer),
            "versus_longer": {**asdict(versus.difference), "p_value": versus.p_value},
            "calibration": None if self.calibration is None else asdict(self.calibration),
            "tie_band": self.probe.tie_band,
            "scale": self.probe.scale,
            "regularisation_path": None if self.path is None else self.path._asdict(),
            "explained_variance": list(self.picture.explained),
            **{name: getattr(self, name) for name in ("n_items", "n_groups", "n_pairs", "failed")},
            **asdict(self.cost),
            "provenance": {**source.facts(), "trained_on": len(source.trained_on)},
        }

    def tables(self) -> tuple[Table, ...]:
        """Accuracy on held-out items beside the baseline."""
        from climassay.judging.report import evidence_table

        return (evidence_table(self),)

    def notes(self) -> Iterator[str]:
        """Rows left out, how far the probabilities can be trusted, and what the probe rests on."""
        yield from self.told
        if (known := self.calibration) is not None:
            yield (
                f"Brier score {known.brier:.3f} (constant {known.brier_constant:.3f}), calibration error "
                f"{known.expected_calibration_error:.3f}."
            )
        saved = f" Saved as {self.output}." if self.output else ""
        yield (
            f"Trained on {self.n_items} items ({self.n_pairs} pairs, {self.failed} requests failed): "
            f"{self.cost.stored} requests from disk, {self.cost.computed} computed.{saved}"
        )

    def report(self) -> Report:
        """Evidence and picture on a page."""
        from climassay.judging.report import training_report

        return training_report(self, Path(self.file).name)


def train_probe(
    items: Sequence[Item],
    harvester: Harvester,
    *,
    method: ProbeMethod = "ppairs",
    settings: ProbeSettings | None = None,
    pairs: IntArray | None = None,
    pairs_per_item: int | None = None,
    seed: int = 0,
    on_progress: Progress | None = None,
) -> TrainedProbe:
    """Fit a probe on all labelled items and measure it on held-out ones.

    Args:
        items: Labelled items; pairs are made within groups.
        harvester: Reads the model with the prompts of the quality.
        method: ``ppairs`` and ``pointwise``, each with length regressed out (``-length``), or ``principal``.
        settings: How it is fitted; by default on all layers that the harvester reads, side by side, regularisation by
            cross-validation, ties dropped.
        pairs: Unordered training pairs [pairs, 2]; by default all within groups, or as many as ``pairs_per_item`` says.
        pairs_per_item: Number of others each item is compared with, instead of all of its group.
        seed: Seed of the draw of pairs and of the bootstrap.
        on_progress: Called with the number of requests answered since the last call.

    Raises:
        InputError: The method does not exist, items are not labelled, there are too few or only equal ones, or the
            settings name a layer that the harvester does not read.
    """
    if method not in PROBE_METHODS:
        raise InputError(f"No probe is trained for the method {method!r}: there are {', '.join(PROBE_METHODS)}.")
    unlabelled = sum(item.label is None for item in items)
    if unlabelled:
        raise InputError(f"{unlabelled} of {len(items)} items have no label to train on: name the column with --label.")
    chosen = settings or ProbeSettings((harvester.layers,))
    unread = next((layer for layer in layers_of(chosen.layers) if layer not in harvester.layers), None)
    if unread is not None:
        raise InputError(
            f"The harvester does not read layer {unread}: it reads {', '.join(map(str, harvester.layers))}."
        )
    groups = [item.group for item in items]
    labels = labels_of(items)
    if pairs is None:
        pairs = pairs_within(groups, np.arange(len(items)), pairs_per_item, np.random.default_rng(seed))
    if not len(pairs):
        raise InputError("No two of the items can be compared: each is the only one of its group.")
    table = StateTable(harvester, items, on_progress)
    fitted = ProbeCandidate(method, table, items, chosen).fit(pairs)
    fit, shown, evidence = fitted.fit, fitted.pairs, fitted.fit.held_out
    if method.startswith("pointwise"):
        states, shown = table.points(items, layers=fitted.layers)[0].astype(np.float64), both_ways(fitted.pairs)
        differences = states[shown[:, 0]] - states[shown[:, 1]]
    else:
        read = table.contrasts(items, fitted.pairs, layers=fitted.layers).states
        differences = read - read.mean(axis=0, dtype=np.float64)
        if method == "principal":
            evidence = _hold_out_principal(read, fitted.pairs, labels, groups, chosen.seed)
    # Each held-out pair in one order only, for both orders were averaged.
    once = fitted.pairs[evidence.rows, 0] < fitted.pairs[evidence.rows, 1]
    odds, truth = evidence.log_odds[once], evidence.outcomes[once].astype(np.float64)
    test = JudgedPairs(fitted.pairs[evidence.rows[once]], truth, odds, three_way(odds, fit.probe.tie_band))
    test = test.take(test.truth != 0)
    ratios = log_length_differences(np.array(word_counts(items)), test.pairs)
    longer = replace(test, log_odds=ratios, predicted=three_way(ratios, 0.0))
    units = Units.of(groups, seed=seed)
    prompt = harvester.questions.prompt("point" if method.startswith("pointwise") else "contrast")
    source = fit.probe.provenance.reading(model=harvester.model)
    source = replace(
        source,
        settings={**source.settings, "quality": asdict(harvester.questions.quality)},
        layers=fitted.layers,
        template=prompt.name,
        template_sha256=prompt.sha256,
        trained_on=tuple(dict.fromkeys(words_id(items[index].text) for index in np.unique(pairs))),
    )
    return TrainedProbe(
        replace(fit.probe, provenance=source),
        fit.path,
        units.mean(correctness(test), test.pairs),
        units.mean(correctness(longer), test.pairs),
        units.difference(correctness(longer), correctness(test), test.pairs),
        pair_calibration(test),
        _picture(differences, outcomes_of(labels, shown), seed),
        harvester.cost,
        n_items=len(np.unique(pairs)),
        n_groups=len({groups[index] for index in np.unique(pairs)}),
        n_pairs=len(pairs),
        failed=fitted.failed,
    )


def quality_of(provenance: Provenance) -> Quality:
    """The quality that a probe was trained for.

    Raises:
        InputError: The probe does not say.
    """
    try:
        values = provenance.settings["quality"]
        # Probes of version 1 keep it as JSON.
        values = json.loads(values) if isinstance(values, str) else values
        return Quality(**{**values, "scale": tuple(values["scale"])})
    except (ValueError, TypeError, KeyError):
        raise InputError(
            "The probe does not say which quality it was trained for: name one with --kind, --aspect or --quality."
        ) from None


def _hold_out_principal(
    states: States, pairs: IntArray, labels: FloatArray, groups: Sequence[str], seed: int
) -> HeldOut:
    """The component sees every pair, so that it is found anew without the items of each fold."""
    splits = pair_splits(pairs, item_folds(pairs, groups, seed=seed))
    odds = held_out(
        (one for one in splits if outcomes_of(labels, pairs[one.train]).any()),
        lambda train: fit_principal(states[train], pairs[train], labels, groups=groups).probe,
        lambda probe, test: average_orders(probe.log_odds(states[test]), pairs[test]),
        len(pairs),
    )
    held = np.flatnonzero(np.isfinite(odds))
    return HeldOut(held, odds[held], outcomes_of(labels, pairs[held]))


def _picture(differences: FloatArray, truth: IntArray, seed: int) -> Picture:
    from sklearn.decomposition import PCA

    count = min(COMPONENTS, *differences.shape)
    analysis = PCA(count, svd_solver="randomized", random_state=seed)
    coordinates = np.asarray(analysis.fit_transform(differences), dtype=np.float64)
    if coordinates[:, 0] @ truth < 0:
        coordinates[:, 0] *= -1
    return Picture(coordinates, truth, tuple(float(share) for share in analysis.explained_variance_ratio_))
