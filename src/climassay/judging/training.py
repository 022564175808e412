"""Cross-validation of judging methods, and training of probes with their held-out evidence.

No group, and no item, belongs to two folds.
"""

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
    BootstrapUnits,
    ContrastProbe,
    Cost,
    JudgedPairs,
    JudgeName,
    JudgeScore,
    PairedDifference,
    PointwiseProbe,
    StateExtractor,
    StateTable,
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
    QualityRequests,
    by_group,
    with_mirrors,
    word_counts,
)
from climassay.judging.probe import Probe, States, log_length_differences, three_way
from climassay.judging.settings import ProbeSettings
from climassay.learning.calibration import fit_tie_band
from climassay.learning.evaluation import Calibration, reliability_plot
from climassay.learning.model_file import Provenance
from climassay.learning.splits import cross_predict, group_folds
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
"""Name of a kind of probe; ``-length`` means that text length is regressed out of the activations."""
PROBE_METHODS: tuple[ProbeMethod, ...] = get_args(ProbeMethod)
MethodName: TypeAlias = JudgeName | ProbeMethod
METHODS: tuple[MethodName, ...] = (*get_args(JudgeName), *PROBE_METHODS)
NEEDS_WEIGHTS: frozenset[str] = frozenset({"zero-shot", *PROBE_METHODS})
"""Methods that need access to the model's weights, because they use hidden states."""


def check_method(name: str) -> None:
    """Validate that a method is one of :data:`METHODS` or a judge registered by another package.

    Raises:
        InputError: The method does not exist.
    """
    if name not in METHODS and name not in JUDGES:
        raise InputError(f"There is no method {name!r}: there are {', '.join(dict.fromkeys((*METHODS, *JUDGES)))}.")


@dataclass(frozen=True, slots=True)
class Fold:
    """Fold of a cross-validation: labelled items for training, and items to judge."""

    number: int
    train: IntArray
    """Indices of training items, ascending."""
    train_pairs: IntArray
    """Unordered pairs of training items, shape [pairs, 2]."""
    test: IntArray
    """Indices of test items, ascending."""
    test_pairs: IntArray
    """Unordered pairs of test items, shape [pairs, 2]."""


def make_folds(
    items: Sequence[Item], *, train_items: int = 100, folds: int = 3, pairs_per_item: int | None = None, seed: int = 0
) -> tuple[Fold, ...]:
    """Split items into cross-validation folds by group, or by item if all form one group.

    Every group is tested once. Groups of the other folds are drawn for training until they contain ``train_items``
    items. The order of the draws depends on the seed only, so that a smaller training set is a subset of a larger one.

    Args:
        items: Labelled items.
        train_items: Maximum number of training items; the group that would exceed it is truncated.
        folds: Number of folds.
        pairs_per_item: Number of other items of its group that each item is compared with; None for all.
        seed: Seed of the assignment and of the draws.

    Raises:
        InputError: An item has no label, there are too few groups or items for the folds, or a fold has no two items to
            compare.
    """
    if any(item.label is None for item in items):
        raise InputError("A benchmark needs a label for every item: name the column with --aspect or --label.")
    groups = [item.group for item in items]
    names = sorted(set(groups))
    is_single_group = len(names) == 1
    unit_of_item = np.arange(len(items)) if is_single_group else np.array([names.index(group) for group in groups])
    n_units = int(unit_of_item.max()) + 1
    n_per_fold = 2 if is_single_group else 1
    if folds < 2 or n_units < folds * n_per_fold:
        noun = "items" if is_single_group else "groups"
        raise InputError(f"{folds} folds need at least {max(2, folds) * n_per_fold} {noun}, there are {n_units}.")
    fold_of_unit = group_folds(np.arange(n_units), folds, seed=seed, round_robin=True)
    results = []
    for number in range(folds):
        test = np.flatnonzero(fold_of_unit[unit_of_item] == number)
        pool = [
            unit for unit in np.random.default_rng([seed, number]).permutation(n_units) if fold_of_unit[unit] != number
        ]
        indices = [index for unit in pool for index in np.flatnonzero(unit_of_item == unit)][:train_items]
        train = np.sort(np.array(indices, dtype=np.int64))
        generator = np.random.default_rng([seed, number, 1])
        results.append(
            Fold(
                number,
                train,
                pairs_within(groups, train, pairs_per_item, generator),
                test,
                pairs_within(groups, test, pairs_per_item, generator),
            )
        )
    if not any(len(fold.test_pairs) for fold in results):
        raise InputError(
            "Every item is the only one of its group, so no two can be compared: name another column with --group, or "
            "none."
        )
    empty_fold = next((fold for fold in results if not len(fold.train_pairs)), None)
    if empty_fold is not None:
        raise InputError(
            f"No two of the {len(empty_fold.train)} training items of fold {empty_fold.number + 1} belong to one "
            "group: allow more with --train-items, or fewer folds."
        )
    return tuple(results)


def pairs_within(
    groups: Sequence[str], members: IntArray, per_item: int | None, generator: np.random.Generator
) -> IntArray:
    """Return sorted unordered pairs of items within groups, [pairs, 2]: all pairs, or about ``per_item`` per item."""
    results: list[tuple[int, int]] = []
    for group in by_group(groups, members).values():
        n = len(group)
        if per_item is None or per_item >= n - 1:
            results += [(a, b) for position, a in enumerate(group) for b in group[position + 1 :]]
            continue
        # Neighbours on a shuffled ring: every item meets as many others, and all are connected.
        ring = generator.permutation(group).tolist()
        steps = range(1, (per_item + 1) // 2 + 1)
        ring_pairs = [(ring[position], ring[(position + step) % n]) for step in steps for position in range(n)]
        results += [(min(pair), max(pair)) for pair in ring_pairs]
    return np.array(sorted(set(results)), dtype=np.int64).reshape(-1, 2)


@dataclass(frozen=True, slots=True)
class TrainedJudge:
    """Judge that was trained on the training items of a fold."""

    judge: Callable[[IntArray], Judgements]
    """Function that judges unordered pairs (i, j) with i < j, shape [pairs, 2]."""
    tie_band: float
    layers: tuple[int, ...] = ()
    regularisation: float | None = None


class Candidate(Protocol):
    """Interface of judging methods in cross-validation."""

    def prepare(self, folds: Sequence[Fold]) -> None:
        """Compute all comparisons of the folds in one call."""

    def fit_fold(self, fold: Fold, train_pairs: IntArray | None = None) -> TrainedJudge:
        """Train the method on ``train_pairs`` [pairs, 2], by default all training pairs of the fold."""


class UntrainedCandidate:
    """Candidate without trained weights, such as PairS. Only its tie band is fitted, unless ``band`` sets it."""

    def __init__(
        self, method: Method, items: Sequence[Item], *, band: float | None = None, on_progress: Progress | None = None
    ) -> None:
        self._judge = Preferences(method, items, on_progress=on_progress).judge
        self._labels = labels_of(items)
        self._band = band

    def prepare(self, folds: Sequence[Fold]) -> None:
        """Compute all comparisons of the folds; see :class:`Candidate`."""
        self._judge(collect_pairs(folds))

    def fit_fold(self, fold: Fold, train_pairs: IntArray | None = None) -> TrainedJudge:
        """Fit the tie band on the training pairs; see :class:`Candidate`."""
        if self._band is not None:
            return TrainedJudge(self._judge, self._band)
        pairs = fold.train_pairs if train_pairs is None else train_pairs
        judgements = self._judge(pairs)
        is_answered = ~judgements.failed
        return TrainedJudge(
            self._judge, fit_tie_band(judgements.log_odds[is_answered], pair_outcomes(self._labels, pairs[is_answered]))
        )


class ProbeCandidate:
    """Candidate that trains a probe: a supervised or principal-component contrast probe, or a pointwise probe."""

    def __init__(self, method: ProbeMethod, states: StateTable, items: Sequence[Item], settings: ProbeSettings) -> None:
        self._method, self._states, self._items, self._settings = method, states, items, settings
        self._labels = labels_of(items)
        self._groups = [item.group for item in items]
        self._lengths = np.array(word_counts(items)) if method.endswith("-length") else None

    def prepare(self, folds: Sequence[Fold]) -> None:
        """Compute all hidden states of the folds; see :class:`Candidate`."""
        if self._method.startswith("pointwise"):
            self._states.item_states(self._items[:1], layers=self._settings.layers[0])
        else:
            self._states.contrasts(self._items, with_mirrors(collect_pairs(folds)), layers=self._settings.layers[0])

    def fit_fold(self, fold: Fold, train_pairs: IntArray | None = None) -> TrainedJudge:
        """Train a probe on the training pairs; see :class:`Candidate`."""
        probe = self.fit(fold.train_pairs if train_pairs is None else train_pairs).probe
        layers = probe.provenance.layers
        judge_class: Any = ContrastProbe if probe.kind == "pair" else PointwiseProbe
        judge: Method = judge_class(self._states, probe, layers=layers)
        return TrainedJudge(
            lambda pairs: judge.compare(self._items, pairs), probe.tie_band, layers, probe.provenance.regularisation
        )

    def fit(self, train_pairs: IntArray) -> ProbeFit:
        """Fit a probe on unordered pairs [pairs, 2] for each set of layers; return the probe with the lowest loss."""

        def loss(fit: ProbeFit) -> float:
            return 0.0 if fit.path is None else min(fit.path.losses)

        return min((self._fit(train_pairs, layers) for layers in self._settings.layers), key=loss)

    def _fit(self, train_pairs: IntArray, layers: tuple[int, ...]) -> ProbeFit:
        is_pointwise = self._method.startswith("pointwise")
        pairs = train_pairs if is_pointwise else with_mirrors(train_pairs)
        if is_pointwise:
            states, items_failed = self._states.item_states(self._items, layers=layers)
            failed = np.asarray(items_failed[pairs].any(axis=1), dtype=bool)
        else:
            contrasts = self._states.contrasts(self._items, pairs, layers=layers)
            states, failed = contrasts.states[~contrasts.failed], contrasts.failed
        if failed.all():
            noun = "pairs" if is_pointwise else "comparisons"
            raise InputError(
                f"The model gave no activations for any of the {len(failed)} training {noun}: the texts may be longer "
                "than it takes (shorten their contexts with --context-words)."
            )
        pairs = pairs[~failed]
        data: dict[str, Any] = {"groups": self._groups, "lengths": self._lengths}
        options: dict[str, Any] = {"regularisation": self._settings.regularisation, "seed": self._settings.seed}
        if is_pointwise:
            fit = fit_pointwise(states, self._labels, pairs=pairs, **data, **options)
        elif self._method == "principal":
            fit = fit_principal(states, pairs, self._labels, **data)
        else:
            fit = fit_contrast(states, pairs, self._labels, ties=self._settings.ties, **data, **options)
        probe = replace(fit.probe, provenance=replace(fit.probe.provenance, layers=layers))
        return replace(fit, probe=probe, n_failed=int(failed.sum()))


def create_candidate(
    name: MethodName,
    items: Sequence[Item],
    quality_requests: QualityRequests,
    model: OptionScorer,
    table: StateTable | None,
    settings: ProbeSettings,
    on_progress: Progress | None = None,
) -> Candidate:
    """Return the candidate for a method and a quality. Candidates with the same table share its hidden states.

    Args:
        name: Name of the method.
        items: Labelled items.
        quality_requests: Prompt templates of the quality.
        model: Recorded model that answers the requests of direct scoring and PairS.
        table: Hidden states of the items; None for models without accessible weights.
        settings: Settings of probes.
        on_progress: Called with the number of requests answered since the last call.

    Raises:
        InputError: The method does not exist, or the model does not support it.
    """
    check_method(name)
    if name not in PROBE_METHODS:
        return UntrainedCandidate(JUDGES.find(name)(model, quality_requests, table), items, on_progress=on_progress)
    if table is None:
        raise InputError(f"The method {name} reads hidden states: use a local: model, not {model.name}.")
    return ProbeCandidate(name, table, items, settings)


def collect_pairs(folds: Sequence[Fold]) -> IntArray:
    """Return the distinct unordered pairs that the folds train or test on, shape [pairs, 2]."""
    return np.unique(np.concatenate([pairs for fold in folds for pairs in (fold.train_pairs, fold.test_pairs)]), axis=0)


def labels_of(items: Sequence[Item]) -> FloatArray:
    """Return the labels of items, shape [items]; NaN for items without a label."""
    return np.array([np.nan if item.label is None else item.label for item in items], dtype=np.float64)


def pair_outcomes(labels: FloatArray, pairs: IntArray) -> IntArray:
    """Return 1, 0 or -1 for each pair [pairs, 2]: the first item has a higher, equal or lower label than the second."""
    return np.sign(labels[pairs[:, 0]] - labels[pairs[:, 1]]).astype(np.int64)


N_COMPONENTS = 3


@dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """Differences between the hidden states of training pairs, projected onto their first principal components.

    References:
        Maiya 2024, Figure C.1.
    """

    coordinates: FloatArray
    """Coordinates on the components, shape [pairs, 3], with fewer columns if the differences span fewer dimensions.
    Positive values of the first component favour the first item."""
    truth: IntArray
    """Outcome of each pair, shape [pairs]: 1 if the first item has the higher label, -1 if the second, 0 if equal."""
    explained_variances: tuple[float, ...]
    """Fraction of the variance that each component explains."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainedProbe(Result):
    """Trained probe, with its accuracy on held-out groups or, if there is only one group, on held-out items."""

    probe: Probe
    regularisation_path: RegularisationPath | None
    """Held-out losses by regularisation C; see :attr:`ProbeFit.path`."""
    accuracy: JudgeScore
    """Accuracy on pairs of held-out items with different labels, predicted by probes that were trained without these
    items."""
    longer: JudgeScore
    """Accuracy of "the longer text is better" on the same pairs."""
    versus_longer: PairedDifference
    calibration: Calibration | None
    """Calibration of the probabilities on held-out pairs with different labels, in both orders. Slightly optimistic,
    because ``scale`` was fitted on the same pairs. None if there are too few items to hold any out."""
    projection: Projection
    cost: Cost
    n_items: int
    n_groups: int
    n_pairs: int
    """Number of unordered training pairs, including ties and failures."""
    failed: int
    """Number of training pairs, in both orders, for which the model returned no hidden states."""
    run: str = ""
    """Id of the training run."""
    file: str = ""
    """Path of the file of items."""
    output: str = ""
    """Path of the saved probe; empty if it is not saved."""
    messages: tuple[str, ...] = ()
    """Notes on skipped rows and on the probe."""

    def to_dict(self) -> dict[str, Any]:
        """Return the held-out scores and the provenance as JSON-serialisable values."""
        source, comparison = self.probe.provenance, self.versus_longer
        return {
            "run": self.run,
            "probe": self.output,
            "quality": load_quality(source).name,
            "accuracy_held_out": asdict(self.accuracy),
            "longer": asdict(self.longer),
            "versus_longer": {**asdict(comparison.difference), "p_value": comparison.p_value},
            "calibration": None if self.calibration is None else asdict(self.calibration),
            "tie_band": self.probe.tie_band,
            "scale": self.probe.scale,
            "regularisation_path": None if self.regularisation_path is None else self.regularisation_path._asdict(),
            "explained_variance": list(self.projection.explained_variances),
            **{name: getattr(self, name) for name in ("n_items", "n_groups", "n_pairs", "failed")},
            **asdict(self.cost),
            "provenance": {**source.to_dict(), "trained_on": len(source.trained_on)},
        }

    def tables(self) -> tuple[Table, ...]:
        """Return a table of the accuracy on held-out items and of the baseline."""
        return (evidence_table(self),)

    def notes(self) -> Iterator[str]:
        """Yield notes on skipped rows, on the calibration and on the training data."""
        yield from self.messages
        if (calibration := self.calibration) is not None:
            yield (
                f"Brier score {calibration.brier:.3f} (constant {calibration.brier_constant:.3f}), calibration error "
                f"{calibration.expected_calibration_error:.3f}."
            )
        output_note = f" Saved as {self.output}." if self.output else ""
        yield (
            f"Trained on {counted(self.n_items, 'item')} ({counted(self.n_pairs, 'pair')}, "
            f"{counted(self.failed, 'request')} failed): "
            f"{self.cost.stored} requests from disk, {self.cost.computed} computed.{output_note}"
        )

    def report(self) -> Report:
        """Return a report with the held-out scores and scatter plots."""
        return training_report(self, Path(self.file).name)


def train_probe(
    items: Sequence[Item],
    extractor: StateExtractor,
    *,
    method: ProbeMethod = "ppairs",
    settings: ProbeSettings | None = None,
    pairs: IntArray | None = None,
    pairs_per_item: int | None = None,
    seed: int = 0,
    on_progress: Progress | None = None,
) -> TrainedProbe:
    """Fit a probe on all labelled items, and measure its accuracy by cross-validation.

    Args:
        items: Labelled items; pairs are formed within groups.
        extractor: Source of the model's hidden states for the prompts of the quality.
        method: ``ppairs``, ``pointwise`` or ``principal``; the first two also with length regressed out (``-length``).
        settings: Settings of the fit; by default all layers of the extractor are concatenated, the regularisation is
            cross-validated and ties are dropped.
        pairs: Unordered training pairs [pairs, 2]; by default all pairs within groups, or ``pairs_per_item`` for each
            item.
        pairs_per_item: Number of other items of its group that each item is compared with; None for all.
        seed: Seed of the draw of pairs and of the bootstrap.
        on_progress: Called with the number of requests answered since the last call.

    Raises:
        InputError: The method does not exist, items are unlabelled or too few, all labels are equal, or the settings
            name a layer that the extractor does not provide.
    """
    from sklearn.decomposition import PCA

    if method not in PROBE_METHODS:
        raise InputError(f"No probe is trained for the method {method!r}: there are {', '.join(PROBE_METHODS)}.")
    n_unlabelled = sum(item.label is None for item in items)
    if n_unlabelled:
        raise InputError(
            f"{n_unlabelled} of {len(items)} items have no label to train on: name the column with --label."
        )
    settings = settings or ProbeSettings((extractor.layers,))
    missing_layer = next((layer for layer in layers_of(settings.layers) if layer not in extractor.layers), None)
    if missing_layer is not None:
        raise InputError(
            f"Layer {missing_layer} was not requested when harvesting; the layers are "
            f"{', '.join(map(str, extractor.layers))}."
        )
    groups = [item.group for item in items]
    labels = labels_of(items)
    if pairs is None:
        pairs = pairs_within(groups, np.arange(len(items)), pairs_per_item, np.random.default_rng(seed))
    if not len(pairs):
        raise InputError("No two of the items can be compared: each is the only one of its group.")
    if not pair_outcomes(labels, pairs).any():  # before any hidden state is computed
        raise InputError("All items that are compared have equal labels: a probe learns from items that differ.")
    state_table = StateTable(extractor, items, on_progress)
    fit = ProbeCandidate(method, state_table, items, settings).fit(pairs)
    layers, projected_pairs, held_out = fit.probe.provenance.layers, fit.pairs, fit.held_out
    if method.startswith("pointwise"):
        states, projected_pairs = (
            state_table.item_states(items, layers=layers)[0].astype(np.float64),
            with_mirrors(fit.pairs),
        )
        differences = states[projected_pairs[:, 0]] - states[projected_pairs[:, 1]]
    else:
        contrasts = state_table.contrasts(items, fit.pairs, layers=layers).states
        differences = contrasts - contrasts.mean(axis=0, dtype=np.float64)
        if method == "principal":
            held_out = _hold_out_principal(contrasts, fit.pairs, labels, groups, settings.seed)
    # Each held-out pair in one order only, for both orders were averaged.
    is_ascending = fit.pairs[held_out.rows, 0] < fit.pairs[held_out.rows, 1]
    log_odds, truth = held_out.log_odds[is_ascending], held_out.outcomes[is_ascending].astype(np.float64)
    test = JudgedPairs(fit.pairs[held_out.rows[is_ascending]], truth, log_odds, three_way(log_odds, fit.probe.tie_band))
    test = test.take(test.truth != 0)
    ratios = log_length_differences(np.array(word_counts(items)), test.pairs)
    longer_test = replace(test, log_odds=ratios, predictions=three_way(ratios, 0.0))
    bootstrap_units = BootstrapUnits.of(groups, seed=seed)
    analysis = PCA(min(N_COMPONENTS, *differences.shape), svd_solver="randomized", random_state=seed)
    coordinates = np.asarray(analysis.fit_transform(differences), dtype=np.float64)
    directions = pair_outcomes(labels, projected_pairs)
    if coordinates[:, 0] @ directions < 0:
        coordinates[:, 0] *= -1
    prompt = extractor.quality_requests.prompt("point" if method.startswith("pointwise") else "contrast")
    provenance = fit.probe.provenance.with_feature_models(model=extractor.model)
    provenance = replace(
        provenance,
        settings={**provenance.settings, "quality": asdict(extractor.quality_requests.quality)},
        template=prompt.name,
        template_sha256=prompt.sha256,
        trained_on=tuple(dict.fromkeys(words_id(items[index].text) for index in np.unique(pairs))),
    )
    return TrainedProbe(
        replace(fit.probe, provenance=provenance),
        fit.path,
        bootstrap_units.proportion(correctness(test), test.pairs),
        bootstrap_units.proportion(correctness(longer_test), test.pairs),
        bootstrap_units.paired_difference(correctness(longer_test), correctness(test), test.pairs),
        pair_calibration(test),
        Projection(coordinates, directions, tuple(float(fraction) for fraction in analysis.explained_variance_ratio_)),
        extractor.cost,
        n_items=len(np.unique(pairs)),
        n_groups=len({groups[index] for index in np.unique(pairs)}),
        n_pairs=len(pairs),
        failed=fit.n_failed,
    )


def load_quality(provenance: Provenance) -> Quality:
    """Return the quality that a probe was trained for.

    Raises:
        InputError: The probe does not record its quality.
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
    """Return held-out log-odds of the principal component, recomputed for each fold without the fold's items."""
    splits = pair_splits(pairs, item_folds(pairs, groups, seed=seed))
    log_odds = cross_predict(
        (split for split in splits if pair_outcomes(labels, pairs[split.train]).any()),
        lambda train: fit_principal(states[train], pairs[train], labels, groups=groups).probe,
        lambda probe, test: average_orders(probe.log_odds(states[test]), pairs[test]),
        len(pairs),
    )
    rows = np.flatnonzero(np.isfinite(log_odds))
    return HeldOut(rows, log_odds[rows], pair_outcomes(labels, pairs[rows]))


def evidence_table(trained: TrainedProbe) -> Table:
    """Return a table of a probe's accuracy on held-out items and of the baseline."""
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
        f"{'groups' if trained.n_groups > 1 else 'items'}.",
    )


MAX_POINTS = 1500
"""Maximum number of points in one scatter plot."""


def projection_blocks(projection: Projection, method: str) -> tuple[Block, ...]:
    """Return scatter plots of the differences of a method's training pairs (Maiya 2024, Figure C.1)."""
    state_description = (
        "the model's state on the first item and on the second"
        if method.startswith("pointwise")
        else "the model's state after the answer that names the first item and after the one that names the second"
    )
    introduction = (
        f"Each point is one ordered pair of training items: the difference between {state_description}, on its first "
        "principal components. Labels did not make the components; they only decide that positive values of "
        "component 1 favour the first item."
    )
    blocks: list[Block] = [Prose(introduction)]
    points = projection.coordinates
    rows, note = np.arange(len(points)), ""
    if len(points) > MAX_POINTS:
        rows = np.sort(np.random.default_rng(0).permutation(len(points))[:MAX_POINTS])
        note = f"{len(rows):,} of {counted(len(points), 'pair')}, drawn at random."
    signs_and_labels = ((1, "first has the higher label"), (-1, "second has the higher label"), (0, "equal labels"))
    for component in range(1, points.shape[1]):
        coordinates = points[rows][:, [0, component]]
        point_groups = [
            Cloud(name, tuple((float(x), float(y)) for x, y in coordinates[projection.truth[rows] == sign].round(4)))
            for sign, name in signs_and_labels
        ]
        axes = [
            Axis.over(
                f"component {number + 1} ({projection.explained_variances[number]:.0%} of the variance)",
                values.tolist(),
            )
            for number, values in zip((0, component), coordinates.T, strict=True)
        ]
        visible_groups = tuple(group for group in point_groups if group.points)
        blocks.append(ScatterPlot(f"Components 1 and {component + 1}", visible_groups, axes[0], axes[1], note=note))
    return tuple(blocks)


def plot_regularisation_path(trained: TrainedProbe) -> LinePlot:
    """Plot the held-out loss by regularisation C; its ``regularisation_path`` must not be None."""
    assert trained.regularisation_path is not None
    points = tuple(
        Point(c, loss)
        for c, loss in zip(trained.regularisation_path.values, trained.regularisation_path.losses, strict=True)
    )
    decades = [
        c for c in trained.regularisation_path.values if abs(np.log10(c) - round(np.log10(c))) < 1e-6
    ] or trained.regularisation_path.values
    limits = (min(trained.regularisation_path.values), max(trained.regularisation_path.values))
    x = Axis("regularisation C, larger is looser", limits[0] / 1.5, limits[1] * 1.5, tuple(decades), logarithmic=True)
    visible_points, chance_loss = tuple(Point(p.x, min(p.y, 3.0)) for p in points), float(np.log(2))
    y = Axis.over("held-out log-loss (nats)", [0.0, chance_loss, *(point.y for point in visible_points)])
    coin_series = Series("a coin", (Point(limits[0], chance_loss), Point(limits[1], chance_loss)), reference=True)
    note = f"Chosen: C = {trained.regularisation_path.chosen:.4g}."
    return LinePlot("Choice of the regularisation", (Series("probe", visible_points), coin_series), x, y, note=note)


def training_report(trained: TrainedProbe, dataset_name: str) -> Report:
    """Return a report on a trained probe and its held-out scores; ``dataset_name`` is the name of the data."""
    source = trained.probe.provenance
    quality = load_quality(source)
    blocks: list[Block] = [evidence_table(trained)]
    if trained.calibration is not None:
        blocks.append(reliability_plot("Reliability on held-out pairs", (("probe", trained.calibration),)))
    if trained.regularisation_path is not None:
        blocks.append(plot_regularisation_path(trained))
    return Report(
        title=f"A probe for {f'“{quality.definition}”' if quality.kind == 'own' else quality.name}",
        lead=f"Trained on {counted(trained.n_items, 'labelled item')} in {counted(trained.n_groups, 'group')} of "
        f"{dataset_name} ({counted(trained.n_pairs, 'pair')}), on {source.model}.",
        sections=(
            Section("Held-out evidence", tuple(blocks)),
            Section("What the probe sees", projection_blocks(trained.projection, source.settings["method"])),
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
