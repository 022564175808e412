"""Methods under test, and probes trained for use, with the evidence behind them. Folds share no group, and no item."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, get_args

import numpy as np

from climassay.claim_identity import words_id
from climassay.errors import InputError
from climassay.judging.fitting import (
    HeldOut,
    ProbeFit,
    RegularisationPath,
    average_orders,
    fit_contrast,
    fit_pointwise,
    fit_principal,
    item_folds,
    pair_splits,
)
from climassay.judging.judges import (
    JUDGES,
    ContrastProbe,
    Cost,
    Figure,
    Harvester,
    JudgedPairs,
    JudgeName,
    PairedFigure,
    PointwiseProbe,
    StateTable,
    Units,
    correctness,
    layers_of,
    pair_calibration,
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
from climassay.judging.probe import Probe, States, log_length_differences, three_way
from climassay.judging.settings import ProbeSettings
from climassay.learning.calibration import fit_tie_band
from climassay.learning.evaluation import Calibration, reliability_plot
from climassay.learning.model_file import Provenance
from climassay.learning.splits import group_folds, held_out
from climassay.models.contract import OptionScorer
from climassay.reporting import (
    Axis,
    Cloud,
    LinePlot,
    Point,
    Prose,
    Report,
    ScatterPlot,
    Section,
    Series,
    Table,
    counted,
)
from climassay.reporting.html import Block
from climassay.reporting.results import Result

ProbeMethod = Literal["ppairs", "ppairs-length", "principal", "pointwise", "pointwise-length"]
"""``-length``: with length regressed out of the activations."""
PROBE_METHODS: tuple[ProbeMethod, ...] = get_args(ProbeMethod)
MethodName: TypeAlias = JudgeName | ProbeMethod
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
    results: list[tuple[int, int]] = []
    for group in by_group(groups, members).values():
        n = len(group)
        if per_item is None or per_item >= n - 1:
            results += [(a, b) for place, a in enumerate(group) for b in group[place + 1 :]]
            continue
        # Neighbours on a shuffled ring: every item meets as many others, and all are connected.
        ring = generator.permutation(group).tolist()
        steps = range(1, (per_item + 1) // 2 + 1)
        met = [(ring[place], ring[(place + step) % n]) for step in steps for place in range(n)]
        results += [(min(pair), max(pair)) for pair in met]
    return np.array(sorted(set(results)), dtype=np.int64).reshape(-1, 2)


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
        result = self._take(pairs)
        kept = ~result.failed
        return Learned(self._take, fit_tie_band(result.log_odds[kept], outcomes_of(self._labels, pairs[kept])))


class ProbeCandidate:
    """A probe: on contrast pairs, supervised or the first principal component, or pointwise."""

    def __init__(self, method: ProbeMethod, states: StateTable, items: Sequence[Item], settings: ProbeSettings) -> None:
        self._method, self._states, self._items, self._settings = method, states, items, settings
        self._labels = labels_of(items)
        self._groups = [item.group for item in items]
        self._lengths = np.array(word_counts(items)) if method.endswith("-length") else None

    def prepare(self, folds: Sequence[Fold]) -> None:
        """See :class:`Candidate`."""
        if self._method.startswith("pointwise"):
            self._states.points(self._items[:1], layers=self._settings.layers[0])
        else:
            self._states.contrasts(self._items, both_ways(pairs_of_folds(folds)), layers=self._settings.layers[0])

    def learn(self, fold: Fold, train_pairs: IntArray | None = None) -> Learned:
        """See :class:`Candidate`."""
        probe = self.fit(fold.train_pairs if train_pairs is None else train_pairs).probe
        layers = probe.provenance.layers
        kind: Any = ContrastProbe if probe.kind == "pair" else PointwiseProbe
        judge: Method = kind(self._states, probe, layers=layers)
        return Learned(
            lambda pairs: judge.compare(self._items, pairs), probe.tie_band, layers, probe.provenance.regularisation
        )

    def fit(self, train_pairs: IntArray) -> ProbeFit:
        """Fit on unordered pairs [pairs, 2]; of several sets of layers, take the one with the lowest held-out loss."""

        def loss(fit: ProbeFit) -> float:
            return 0.0 if fit.path is None else min(fit.path.losses)

        return min((self._fit(train_pairs, layers) for layers in self._settings.layers), key=loss)

    def _fit(self, train_pairs: IntArray, layers: tuple[int, ...]) -> ProbeFit:
        pointwise = self._method.startswith("pointwise")
        pairs = train_pairs if pointwise else both_ways(train_pairs)
        if pointwise:
            states, items_failed = self._states.points(self._items, layers=layers)
            failed = np.asarray(items_failed[pairs].any(axis=1), dtype=bool)
        else:
            contrasts = self._states.contrasts(self._items, pairs, layers=layers)
            states, failed = contrasts.states[~contrasts.failed], contrasts.failed
        if failed.all():
            unit = "pairs" if pointwise else "comparisons"
            raise InputError(
                f"The model gave no activations for any of the {len(failed)} training {unit}: the texts may be longer "
                "than it takes (shorten their contexts with --context-words)."
            )
        pairs = pairs[~failed]
        data: dict[str, Any] = {"groups": self._groups, "lengths": self._lengths}
        options: dict[str, Any] = {"regularisation": self._settings.regularisation, "seed": self._settings.seed}
        if pointwise:
            fit = fit_pointwise(states, self._labels, pairs=pairs, **data, **options)
        elif self._method == "principal":
            fit = fit_principal(states, pairs, self._labels, **data)
        else:
            fit = fit_contrast(states, pairs, self._labels, ties=self._settings.ties, **data, **options)
        probe = replace(fit.probe, provenance=replace(fit.probe.provenance, layers=layers))
        return replace(fit, probe=probe, n_failed=int(failed.sum()))


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
        return Untrained(JUDGES.find(name)(model, questions, table), items, on_progress=on_progress)
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
            f"Trained on {counted(self.n_items, 'item')} ({counted(self.n_pairs, 'pair')}, "
            f"{counted(self.failed, 'request')} failed): "
            f"{self.cost.stored} requests from disk, {self.cost.computed} computed.{saved}"
        )

    def report(self) -> Report:
        """Evidence and picture on a page."""
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
    from sklearn.decomposition import PCA

    if method not in PROBE_METHODS:
        raise InputError(f"No probe is trained for the method {method!r}: there are {', '.join(PROBE_METHODS)}.")
    unlabelled = sum(item.label is None for item in items)
    if unlabelled:
        raise InputError(f"{unlabelled} of {len(items)} items have no label to train on: name the column with --label.")
    settings = settings or ProbeSettings((harvester.layers,))
    unread = next((layer for layer in layers_of(settings.layers) if layer not in harvester.layers), None)
    if unread is not None:
        raise InputError(
            f"Layer {unread} was not requested when harvesting; the layers are {', '.join(map(str, harvester.layers))}."
        )
    groups = [item.group for item in items]
    labels = labels_of(items)
    if pairs is None:
        pairs = pairs_within(groups, np.arange(len(items)), pairs_per_item, np.random.default_rng(seed))
    if not len(pairs):
        raise InputError("No two of the items can be compared: each is the only one of its group.")
    if not outcomes_of(labels, pairs).any():  # before any hidden state is computed
        raise InputError("All items that are compared have equal labels: a probe learns from items that differ.")
    state_table = StateTable(harvester, items, on_progress)
    fit = ProbeCandidate(method, state_table, items, settings).fit(pairs)
    layers, picture_pairs, evidence = fit.probe.provenance.layers, fit.pairs, fit.held_out
    if method.startswith("pointwise"):
        states, picture_pairs = state_table.points(items, layers=layers)[0].astype(np.float64), both_ways(fit.pairs)
        differences = states[picture_pairs[:, 0]] - states[picture_pairs[:, 1]]
    else:
        contrasts = state_table.contrasts(items, fit.pairs, layers=layers).states
        differences = contrasts - contrasts.mean(axis=0, dtype=np.float64)
        if method == "principal":
            evidence = _hold_out_principal(contrasts, fit.pairs, labels, groups, settings.seed)
    # Each held-out pair in one order only, for both orders were averaged.
    is_ascending = fit.pairs[evidence.rows, 0] < fit.pairs[evidence.rows, 1]
    log_odds, truth = evidence.log_odds[is_ascending], evidence.outcomes[is_ascending].astype(np.float64)
    test = JudgedPairs(fit.pairs[evidence.rows[is_ascending]], truth, log_odds, three_way(log_odds, fit.probe.tie_band))
    test = test.take(test.truth != 0)
    ratios = log_length_differences(np.array(word_counts(items)), test.pairs)
    longer = replace(test, log_odds=ratios, predicted=three_way(ratios, 0.0))
    units = Units.of(groups, seed=seed)
    analysis = PCA(min(COMPONENTS, *differences.shape), svd_solver="randomized", random_state=seed)
    coordinates = np.asarray(analysis.fit_transform(differences), dtype=np.float64)
    directions = outcomes_of(labels, picture_pairs)
    if coordinates[:, 0] @ directions < 0:
        coordinates[:, 0] *= -1
    prompt = harvester.questions.prompt("point" if method.startswith("pointwise") else "contrast")
    source = fit.probe.provenance.reading(model=harvester.model)
    source = replace(
        source,
        settings={**source.settings, "quality": asdict(harvester.questions.quality)},
        template=prompt.name,
        template_sha256=prompt.sha256,
        trained_on=tuple(dict.fromkeys(words_id(items[index].text) for index in np.unique(pairs))),
    )
    return TrainedProbe(
        replace(fit.probe, provenance=source),
        fit.path,
        units.share(correctness(test), test.pairs),
        units.share(correctness(longer), test.pairs),
        units.difference(correctness(longer), correctness(test), test.pairs),
        pair_calibration(test),
        Picture(coordinates, directions, tuple(float(share) for share in analysis.explained_variance_ratio_)),
        harvester.cost,
        n_items=len(np.unique(pairs)),
        n_groups=len({groups[index] for index in np.unique(pairs)}),
        n_pairs=len(pairs),
        failed=fit.n_failed,
    )


def quality_of(provenance: Provenance) -> Quality:
    """The quality that a probe was trained for.

    Raises:
        InputError: The probe does not say.
    """
    try:
        values = provenance.settings["quality"]
        return Quality(**{**values, "scale": tuple(values["scale"])})
    except (ValueError, TypeError, KeyError):
        raise InputError(
            "The probe does not record which quality it was trained for: name one with --kind, --aspect or --quality."
        ) from None


def _hold_out_principal(
    states: States, pairs: IntArray, labels: FloatArray, groups: Sequence[str], seed: int
) -> HeldOut:
    """Return held-out log-odds of the principal component, recomputed without the items of each fold."""
    splits = pair_splits(pairs, item_folds(pairs, groups, seed=seed))
    odds = held_out(
        (split for split in splits if outcomes_of(labels, pairs[split.train]).any()),
        lambda train: fit_principal(states[train], pairs[train], labels, groups=groups).probe,
        lambda probe, test: average_orders(probe.log_odds(states[test]), pairs[test]),
        len(pairs),
    )
    rows = np.flatnonzero(np.isfinite(odds))
    return HeldOut(rows, odds[rows], outcomes_of(labels, pairs[rows]))


def evidence_table(trained: TrainedProbe) -> Table:
    """A probe's accuracy on held-out items beside the baseline."""
    rows = [
        ("probe", str(trained.accuracy.n), trained.accuracy.share, trained.accuracy.interval),
        ("longer text", str(trained.longer.n), trained.longer.share, trained.longer.interval),
        ("difference", str(trained.accuracy.n), *trained.versus_longer.gain[:2]),
    ]
    return Table.of(
        "Accuracy on pairs of held-out items that differ (%)",
        ["judge", "n", "right", "95% interval"],
        rows,
        note="By probes that did not see the items. Layer and regularisation were chosen on the same pairs, which "
        "flatters the probe a little: judge benchmark tests on items that chose nothing. Intervals: bootstrap over "
        "groups.",
    )


MOST_POINTS = 1500
"""Points drawn in one picture; more only make the file large."""


def picture_blocks(picture: Picture) -> tuple[Block, ...]:
    """Contrast differences on their principal components, from two sides (thesis, Figure C.1)."""
    lead = (
        "Each point is one ordered pair of training items: the difference between the model's state after the answer "
        "that names the first item and after the one that names the second, on its first principal components. Labels "
        "did not make the components; they only decide that right on component 1 speaks for the first item."
    )
    blocks: list[Block] = [Prose(lead)]
    points = picture.coordinates
    chosen, drawn = np.arange(len(points)), ""
    if len(points) > MOST_POINTS:
        chosen = np.sort(np.random.default_rng(0).permutation(len(points))[:MOST_POINTS])
        drawn = f"{len(chosen):,} of {counted(len(points), 'pair')}, drawn at random."
    kinds = ((1, "first has the higher label"), (-1, "second has the higher label"), (0, "equal labels"))
    for other in range(1, points.shape[1]):
        shown = points[chosen][:, [0, other]]
        clouds = [
            Cloud(name, tuple((float(x), float(y)) for x, y in shown[picture.truth[chosen] == sign].round(4)))
            for sign, name in kinds
        ]
        axes = [
            Axis.over(f"component {number + 1} ({picture.explained[number]:.0%} of the variance)", values.tolist())
            for number, values in zip((0, other), shown.T, strict=True)
        ]
        present = tuple(cloud for cloud in clouds if cloud.points)
        blocks.append(ScatterPlot(f"Components 1 and {other + 1}", present, axes[0], axes[1], note=drawn))
    return tuple(blocks)


def path_plot(trained: TrainedProbe) -> LinePlot:
    """Held-out loss for each regularisation; the probe must have been fitted with a choice of them."""
    assert trained.path is not None
    points = tuple(Point(c, loss) for c, loss in zip(trained.path.values, trained.path.losses, strict=True))
    decades = [c for c in trained.path.values if abs(np.log10(c) - round(np.log10(c))) < 1e-6] or trained.path.values
    reach = (min(trained.path.values), max(trained.path.values))
    x = Axis("regularisation C, larger is looser", reach[0] / 1.5, reach[1] * 1.5, tuple(decades), logarithmic=True)
    capped, chance = tuple(Point(p.x, min(p.y, 3.0)) for p in points), float(np.log(2))
    y = Axis.over("held-out log-loss (nats)", [0.0, chance, *(point.y for point in capped)])
    guess = Series("a coin", (Point(reach[0], chance), Point(reach[1], chance)), reference=True)
    note = f"Chosen: C = {trained.path.chosen:.4g}."
    return LinePlot("Choice of the regularisation", (Series("probe", capped), guess), x, y, note=note)


def training_report(trained: TrainedProbe, items_from: str) -> Report:
    """A trained probe and its evidence as a report."""
    source = trained.probe.provenance
    quality = quality_of(source)
    blocks: list[Block] = [evidence_table(trained)]
    if trained.calibration is not None:
        blocks.append(reliability_plot("Reliability on held-out pairs", (("probe", trained.calibration),)))
    if trained.path is not None:
        blocks.append(path_plot(trained))
    return Report(
        title=f"A probe for {f'“{quality.definition}”' if quality.kind == 'own' else quality.name}",
        lead=f"Trained on {counted(trained.n_items, 'labelled item')} in {counted(trained.n_groups, 'group')} of "
        f"{items_from} ({counted(trained.n_pairs, 'pair')}), on {source.model}.",
        sections=(
            Section("Held-out evidence", tuple(blocks)),
            Section("What the probe sees", picture_blocks(trained.picture)),
        ),
        facts=(
            ("Method", source.settings["method"]),
            ("Layers", ", ".join(map(str, source.layers))),
            ("Regularisation C", "-" if source.regularisation is None else f"{source.regularisation:.4g}"),
            ("Template", f"{source.template} {source.template_sha256}"),
            ("Model fingerprint", source.fingerprint),
            ("Number format", source.dtype or "-"),
            ("Failed requests", str(trained.failed)),
        ),
    )
