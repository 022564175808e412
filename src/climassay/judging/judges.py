"""Judges, which compare texts by a model's answers or hidden states, and their agreement with experts.

Every judge is a :class:`~climassay.judging.preferences.Method`. Judges that use hidden states get them from a
:class:`StateExtractor`, which loads them from disk or computes them, or from a :class:`StateTable`, which also keeps
them in memory.

Agreement is accuracy on pairs and rank correlation, with intervals. The resampled units are independent: groups
(articles) if there are several, otherwise items. Pairs are never resampled by themselves, because the errors of pairs
of one article, or of one item, are correlated.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError
from climassay.judging.preferences import (
    CERTAIN_LOG_ODDS,
    FloatArray,
    IntArray,
    Item,
    Judgements,
    Method,
    Progress,
    QualityRequests,
    with_mirrors,
    word_counts,
)
from climassay.judging.probe import Probe, States, log_length_differences
from climassay.learning.evaluation import Calibration, calibration
from climassay.learning.harvest import ActivationStore, Harvest, harvest
from climassay.learning.linear import logistic
from climassay.models.contract import OpenWeights, OptionRequest, OptionScorer, OptionScores
from climassay.registry import Registry
from climassay.reporting import format_p_value, percent, percent_interval
from climassay.statistics import paired_differences, percentile_interval, wilson_interval
from climassay.statistics.agreement import kendall_of_resamples, spearman_of_resamples

JudgeName = Literal["direct", "direct-expected", "pairs", "zero-shot"]
JudgeFactory = Callable[[OptionScorer, QualityRequests, "StateSource | None"], Method]
JUDGES: Registry[JudgeFactory] = Registry("method without a probe", "climassay.judges", ["climassay.judging.judges"])


def judge(name: str) -> Callable[[JudgeFactory], JudgeFactory]:
    """Register a factory of a method that needs no labels.

    The factory is called with a recorded model, the templates of the quality, and a source of the model's hidden states
    (None if the weights are not accessible).

    Example:
        >>> @judge("longer")
        ... def longer(model, quality_requests, states):
        ...     return LongerIsBetter()
    """

    def add(function: JudgeFactory) -> JudgeFactory:
        JUDGES.add(name, function, function.__module__)
        return function

    return add


@dataclass(frozen=True)
class DirectScoring:
    """Judge that rates each item on its own and compares the ratings.

    By default, an item's rating is the most probable answer of the scale, so that preferences are 1, 0.5 or 0, as
    published (Maiya 2024, section 2.2). With ``rule="expected"``, expected ratings are compared, which are rarely
    equal.
    """

    model: OptionScorer
    quality_requests: QualityRequests
    rule: Literal["most_likely", "expected"] = field(default="most_likely", kw_only=True)
    """Rule for the rating: the ``most_likely`` answer, or the ``expected`` value of the rating under the probabilities
    of all answers."""

    @property
    def name(self) -> str:
        """Short name for tables."""
        return "direct" if self.rule == "most_likely" else "direct (expected)"

    def scores(self, items: Sequence[Item], *, on_progress: Progress | None = None) -> FloatArray:
        """Return ratings, shape [items]: 0 for the lowest answer of the scale, NaN if the model returned no answer."""
        answers = _score_options(self.model, self.quality_requests.direct(items), on_progress)
        if self.rule == "most_likely":
            return np.array([np.nan if answer.error is not None else float(answer.best or 0) for answer in answers])
        probabilities = [np.exp(np.array(answer.logprobs) - max(answer.logprobs, default=0.0)) for answer in answers]
        return np.array([p @ np.arange(len(p)) / p.sum() if p.size else np.nan for p in probabilities])

    def compare(self, items: Sequence[Item], pairs: IntArray, *, on_progress: Progress | None = None) -> Judgements:
        """Compare pairs; see :class:`climassay.judging.Method`."""
        indices = np.unique(pairs)
        ratings = np.full(len(items), np.nan)
        ratings[indices] = self.scores([items[index] for index in indices], on_progress=on_progress)
        difference = ratings[pairs[:, 0]] - ratings[pairs[:, 1]]
        failed = np.isnan(difference)
        return Judgements(CERTAIN_LOG_ODDS * np.sign(np.where(failed, 0.0, difference)), failed)


@dataclass(frozen=True)
class PairwisePrompt:
    """Judge that prompts a model with both items and a definition of the quality, to be answered by A or B (PairS).

    References:
        Liu et al. 2024, arXiv 2403.16950; Maiya 2024, section 2.2 and appendix A.1.
    """

    model: OptionScorer
    quality_requests: QualityRequests
    orders: Literal[1, 2] = field(default=2, kw_only=True)
    """Number of orders in which each pair is compared. With 2, the log-odds of both orders are averaged, which removes
    the position bias."""
    name: ClassVar[str] = "pairs"

    def compare(self, items: Sequence[Item], pairs: IntArray, *, on_progress: Progress | None = None) -> Judgements:
        """Compare pairs; see :class:`climassay.judging.Method`."""
        ordered_pairs = pairs if self.orders == 1 else with_mirrors(pairs)
        answers = _score_options(self.model, self.quality_requests.pairs(items, ordered_pairs), on_progress)
        return average_both_orders(*margins(answers), self.orders)


def margins(answers: Sequence[OptionScores]) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return log-odds of the first of two options, and whether each answer is missing; both have shape [answers].

    Log-odds are 0 for a missing answer, and plus or minus :data:`climassay.judging.preferences.CERTAIN_LOG_ODDS` for an
    answer that was generated without log-probabilities.
    """
    log_odds = []
    for answer in answers:
        margin = 0.0 if answer.error is not None else answer.logprobs[0] - answer.logprobs[1]
        log_odds.append(math.copysign(CERTAIN_LOG_ODDS, margin) if answer.is_named and margin else margin)
    return np.array(log_odds), np.array([answer.error is not None for answer in answers])


def average_both_orders(log_odds: FloatArray, failed: NDArray[np.bool_], orders: int) -> Judgements:
    """Return judgements of pairs, averaging log-odds over both orders if ``orders`` is 2.

    Inputs have the shape [orders * pairs]: the pairs (i, j), followed by the mirrored pairs (j, i) if ``orders`` is 2.
    A pair fails if either order failed.
    """
    if orders == 1:
        return Judgements(np.where(failed, 0.0, log_odds), failed)
    n_pairs = len(log_odds) // 2
    either_failed = failed[:n_pairs] | failed[n_pairs:]
    return Judgements(np.where(either_failed, 0.0, (log_odds[:n_pairs] - log_odds[n_pairs:]) / 2), either_failed)


def _score_options(
    model: OptionScorer, requests: Sequence[OptionRequest], on_progress: Progress | None
) -> list[OptionScores]:
    return model.option_logprobs(requests, on_result=None if on_progress is None else lambda _i, _s: on_progress(1))


@dataclass(frozen=True, slots=True)
class Contrasts:
    """Hidden states and log-odds of ordered pairs."""

    states: States
    """State after the answer ``1`` (item i) minus state after the answer ``2`` (item j), shape [pairs, layers * width].
    """
    margins: FloatArray
    """Log-odds of the answer ``1`` against ``2`` in the model's own probabilities, shape [pairs]."""
    failed: NDArray[np.bool_]
    """Whether the model returned no states, shape [pairs]; the states of such pairs are zeros."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of comparisons; two costs can be added with ``+``."""

    passes: int = 0
    tokens_computed: int = 0
    tokens_two_pass: int = 0
    """Number of tokens that the same requests would take with a separate forward pass for each answer."""
    computed: int = 0
    stored: int = 0
    """Number of requests whose results were loaded from disk instead."""

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(*(getattr(self, name) + getattr(other, name) for name in Cost.__dataclass_fields__))


@dataclass
class StateExtractor:
    """Source of hidden states of items and pairs, which are computed, or loaded if they are stored on disk.

    Attributes:
        cost: Cost so far.
        error: Message of the last failed request.
    """

    model: OpenWeights
    quality_requests: QualityRequests
    layers: tuple[int, ...] = (-1,)
    store: ActivationStore | None = None
    token_budget: int | None = None
    cost: Cost = field(default_factory=Cost)
    error: str = ""

    def contrasts(
        self,
        items: Sequence[Item],
        pairs: IntArray,
        *,
        layers: Sequence[int] | None = None,
        on_progress: Progress | None = None,
    ) -> Contrasts:
        """Return states and log-odds of ordered pairs [pairs, 2] of items.

        By default, the states of all layers of the extractor are returned.
        """
        result, failed = self.extract_states(self.quality_requests.contrast(items, pairs), on_progress)
        states = result.states[:, :, _find_layer_positions(self.layers, layers)].astype(np.float32, copy=False)
        log_odds = np.asarray(result.logprobs[:, 0] - result.logprobs[:, 1], dtype=np.float64)
        return Contrasts((states[:, 0] - states[:, 1]).reshape(len(pairs), -1), np.where(failed, 0.0, log_odds), failed)

    def item_states(
        self, items: Sequence[Item], *, layers: Sequence[int] | None = None, on_progress: Progress | None = None
    ) -> tuple[States, NDArray[np.bool_]]:
        """Return one state per item, shape [items, layers * width], and whether each item failed, shape [items]."""
        result, failed = self.extract_states(self.quality_requests.point(items), on_progress)
        states = result.states[:, 0, _find_layer_positions(self.layers, layers)].astype(np.float32, copy=False)
        return np.ascontiguousarray(states.reshape(len(items), -1)), failed

    def extract_states(
        self, requests: Sequence[OptionRequest], on_progress: Progress | None = None
    ) -> tuple[Harvest, NDArray[np.bool_]]:
        """Compute or load the states for requests, and add their cost.

        Also return whether each request failed, shape [requests].
        """
        result = harvest(
            self.model,
            requests,
            layers=self.layers,
            store=self.store,
            token_budget=self.token_budget,
            on_progress=on_progress,
        )
        self.cost += Cost(result.passes, result.tokens_computed, result.tokens_two_pass, result.computed, result.stored)
        self.error = next(iter(result.failed.values()), self.error)
        return result, np.isin(np.arange(len(requests)), list(result.failed))


def _find_layer_positions(available_layers: Sequence[int], layers: Sequence[int] | None) -> list[int]:
    return [available_layers.index(layer) for layer in (available_layers if layers is None else layers)]


class StateTable:
    """Hidden states of items, computed at first use and kept in memory for all folds of an experiment."""

    def __init__(self, extractor: StateExtractor, items: Sequence[Item], on_progress: Progress | None = None) -> None:
        self.layers = extractor.layers
        self._extractor = extractor
        self._items = items
        self._on_progress = on_progress
        self._index_by_id = {item.id: index for index, item in enumerate(items)}
        self._rows: dict[tuple[int, int], int] = {}
        self._contrasts: Contrasts | None = None
        self._item_states: tuple[States, NDArray[np.bool_]] | None = None

    def contrasts(
        self,
        items: Sequence[Item],
        pairs: IntArray,
        *,
        layers: Sequence[int] | None = None,
        on_progress: Progress | None = None,
    ) -> Contrasts:
        """Return states and log-odds of ordered pairs of items; see :meth:`StateExtractor.contrasts`.

        Pairs that are not in memory are computed in one call.
        """
        keys = [(self._index_by_id[items[i].id], self._index_by_id[items[j].id]) for i, j in pairs.tolist()]
        missing_keys = [key for key in dict.fromkeys(keys) if key not in self._rows]
        contrasts = self._contrasts
        if missing_keys or contrasts is None:
            missing_pairs = np.array(missing_keys, dtype=np.int64).reshape(-1, 2)
            new_contrasts = self._extractor.contrasts(
                self._items, missing_pairs, on_progress=on_progress or self._on_progress
            )
            self._rows.update((key, len(self._rows)) for key in missing_keys)
            self._contrasts = contrasts = new_contrasts if contrasts is None else _concatenate(contrasts, new_contrasts)
        rows = [self._rows[key] for key in keys]
        return Contrasts(self._select(contrasts.states, rows, layers), contrasts.margins[rows], contrasts.failed[rows])

    def item_states(
        self, items: Sequence[Item], *, layers: Sequence[int] | None = None, on_progress: Progress | None = None
    ) -> tuple[States, NDArray[np.bool_]]:
        """Return the hidden states of items, and whether each item failed; see :meth:`StateExtractor.item_states`.

        The first call computes the states of all items.
        """
        if self._item_states is None:
            self._item_states = self._extractor.item_states(self._items, on_progress=on_progress or self._on_progress)
        states, failed = self._item_states
        rows = [self._index_by_id[item.id] for item in items]
        return self._select(states, rows, layers), failed[rows]

    def _select(self, states: States, rows: Sequence[int], layers: Sequence[int] | None) -> States:
        width, columns = states.shape[1] // len(self.layers), _find_layer_positions(self.layers, layers)
        states_by_layer = states.reshape(len(states), len(self.layers), width)
        return states_by_layer[np.ix_(rows, columns)].reshape(len(rows), len(columns) * width)


def _concatenate(first: Contrasts, second: Contrasts) -> Contrasts:
    """Concatenate contrasts; if all requests of one of them failed (width 0), its states become zeros."""
    width = max(first.states.shape[1], second.states.shape[1])
    states = [
        contrasts.states if contrasts.states.shape[1] == width else np.zeros((len(contrasts.states), width), np.float32)
        for contrasts in (first, second)
    ]
    failed = np.concatenate([first.failed, second.failed])
    return Contrasts(np.concatenate(states), np.concatenate([first.margins, second.margins]), failed)


StateSource: TypeAlias = StateExtractor | StateTable


@dataclass(frozen=True)
class ZeroShotContrast:
    """Judge that uses the model's own log-odds of ``1`` against ``2`` as the answer to the prompt of the probe PPairS.

    The log-odds are computed together with the hidden states. The published zero-shot method PairS, after which PPairS
    is named, uses another prompt.
    """

    states: StateSource
    orders: int = field(default=2, kw_only=True)
    """Number of orders in which each pair is compared; 2 averages their log-odds."""
    name: ClassVar[str] = "zero-shot contrast"

    def compare(self, items: Sequence[Item], pairs: IntArray, *, on_progress: Progress | None = None) -> Judgements:
        """Compare pairs; see :class:`climassay.judging.Method`."""
        ordered_pairs = pairs if self.orders == 1 else with_mirrors(pairs)
        result = self.states.contrasts(items, ordered_pairs, layers=self.states.layers[:1], on_progress=on_progress)
        return average_both_orders(result.margins, result.failed, self.orders)


@dataclass(frozen=True)
class ContrastProbe:
    """Judge that applies a linear probe to the state after answer ``1`` minus the state after answer ``2`` (PPairS).

    References:
        Maiya 2024, chapter 3.
    """

    states: StateSource
    probe: Probe
    _: KW_ONLY
    layers: Sequence[int] | None = None
    """Layers whose states the probe uses; None for all layers of ``states``."""
    orders: int = 2
    """Number of orders in which each pair is compared; 2 averages their log-odds."""
    name: ClassVar[str] = "ppairs"

    def compare(self, items: Sequence[Item], pairs: IntArray, *, on_progress: Progress | None = None) -> Judgements:
        """Compare pairs; see :class:`climassay.judging.Method`."""
        ordered_pairs = pairs if self.orders == 1 else with_mirrors(pairs)
        result = self.states.contrasts(items, ordered_pairs, layers=self.layers, on_progress=on_progress)
        lengths = log_length_differences(np.array(word_counts(items)), ordered_pairs)
        return average_both_orders(_compute_log_odds(self.probe, result.states, lengths), result.failed, self.orders)


def _compute_log_odds(probe: Probe, states: States, lengths: FloatArray) -> FloatArray:
    return probe.log_odds(states, lengths) if states.size else np.zeros(len(states))


@dataclass(frozen=True)
class PointwiseProbe:
    """Judge that scores each item with a linear probe and compares the scores (Bradley-Terry)."""

    states: StateSource
    probe: Probe
    layers: Sequence[int] | None = field(default=None, kw_only=True)
    """Layers whose states the probe uses; None for all layers of ``states``."""
    name: ClassVar[str] = "pointwise"

    def scores(
        self, items: Sequence[Item], *, on_progress: Progress | None = None
    ) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Return scores, whose differences are log-odds, and whether each item failed; both of shape [items]."""
        states, failed = self.states.item_states(items, layers=self.layers, on_progress=on_progress)
        return _compute_log_odds(self.probe, states, np.log(word_counts(items))), failed

    def compare(self, items: Sequence[Item], pairs: IntArray, *, on_progress: Progress | None = None) -> Judgements:
        """Compare pairs; see :class:`climassay.judging.Method`."""
        indices, positions = np.unique(pairs, return_inverse=True)
        scores, failed = self.scores([items[index] for index in indices], on_progress=on_progress)
        first, second = positions.reshape(pairs.shape).T
        either_failed = failed[first] | failed[second]
        return Judgements(np.where(either_failed, 0.0, scores[first] - scores[second]), either_failed)


judge("direct")(lambda model, quality_requests, _states: DirectScoring(model, quality_requests))
judge("direct-expected")(
    lambda model, quality_requests, _states: DirectScoring(model, quality_requests, rule="expected")
)
judge("pairs")(lambda model, quality_requests, _states: PairwisePrompt(model, quality_requests))


@judge("zero-shot")
def _zero_shot(model: OptionScorer, _quality_requests: QualityRequests, states: StateSource | None) -> Method:
    if states is None:
        raise InputError(f"The method zero-shot reads hidden states: use a local: model, not {model.name}.")
    return ZeroShotContrast(states)


def probe_judge(probe: Probe, extractor: StateExtractor) -> Method:
    """Return a judge that applies a trained probe to the states of an extractor.

    Raises:
        InputError: The probe was trained on another model, or on layers that the extractor does not provide.
    """
    probe.check(extractor.model, extractor.layers)
    return ContrastProbe(extractor, probe) if probe.kind == "pair" else PointwiseProbe(extractor, probe)


def open_weights(model: object, purpose: str) -> OpenWeights:
    """Return a model unchanged if it gives access to its hidden states.

    Raises:
        InputError: The model gives no access; the message starts with ``purpose``.
    """
    if isinstance(model, OpenWeights):
        return model
    raise InputError(f"{purpose} reads hidden states: use a local: model, not {getattr(model, 'name', 'this one')}.")


def layer_choices(model: object, layers: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """Return ``layers`` or, if ``layers`` is empty, four single layers of the model's upper half, including the last.

    Cross-validation chooses among them, since the best layer differs between qualities (docs/results/judging.md).
    """
    if layers or not isinstance(model, OpenWeights):
        return tuple(map(tuple, layers)) or ((-1,),)
    inner_layers = {round(model.layers * fraction) for fraction in (8 / 15, 2 / 3, 4 / 5)} - {0, model.layers}
    return (*((layer,) for layer in sorted(inner_layers)), (-1,))


def layers_of(sets: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Return the distinct layers of several sets in ascending order, negative ones (counted from the end) last."""
    return tuple(sorted({layer for layers in sets for layer in layers}, key=lambda layer: (layer < 0, layer)))


_NONE = "-"
RESAMPLES = 2000
N_LIST_RESAMPLES = 500
NO_ANSWER = 2
"""Three-way prediction for a failed comparison. It differs from all outcomes and therefore is never correct."""


@dataclass(frozen=True, slots=True)
class JudgeScore:
    """Value with its 95% interval."""

    value: float | None
    """Measured value; None if there is no data, for example no pairs of nearly equal length."""
    low: float | None
    high: float | None
    n: int
    """Number of pairs, or of groups, over which the value is averaged."""

    @property
    def share(self) -> str:
        """Value in per cent, as text for a table; a dash if there is none."""
        return _NONE if self.value is None else percent(self.value)

    @property
    def interval(self) -> str:
        """Interval in per cent, as text for a table; a dash if there is none."""
        return _NONE if self.low is None or self.high is None else percent_interval((self.low, self.high))

    @property
    def range(self) -> str:
        """Interval in the value's own unit, as text for a table; a dash if there is none."""
        return _NONE if self.low is None or self.high is None else f"{self.low:.3f} to {self.high:.3f}"


@dataclass(frozen=True, slots=True)
class JudgedPairs:
    """Predictions for unordered pairs of test items."""

    pairs: IntArray
    """Indices of items, shape [pairs, 2]."""
    truth: FloatArray
    """Label of the first item minus label of the second, shape [pairs]."""
    log_odds: FloatArray
    """Log-odds that the first item has more of the quality, shape [pairs]. They are 0 if the comparison failed; the
    pair then counts as undecided, and therefore as half right."""
    predictions: IntArray
    """Predicted outcome, shape [pairs]: 1, 0 or -1 by the tie band of the fold; :data:`NO_ANSWER` if the comparison
    failed."""

    def take(self, mask: NDArray[np.bool_]) -> "JudgedPairs":
        """Return the pairs that a boolean mask [pairs] selects."""
        return JudgedPairs(self.pairs[mask], self.truth[mask], self.log_odds[mask], self.predictions[mask])


@dataclass(frozen=True)
class BootstrapUnits:
    """Independent units for the bootstrap, and their resamples."""

    unit_of_item: IntArray
    """Index of the unit of each item, shape [items]. A unit is a group, or an item if all items form one group."""
    counts: FloatArray
    """Number of times that each unit appears in each resample, shape [resamples, units]."""

    @classmethod
    def of(cls, groups: Sequence[str], *, resamples: int = RESAMPLES, seed: int = 0) -> "BootstrapUnits":
        """Form units from the group of each item, and draw their bootstrap resamples."""
        names = sorted(set(groups))
        unit_by_name = {name: number for number, name in enumerate(names)}
        unit_of_item = np.array([unit_by_name[name] for name in groups]) if len(names) > 1 else np.arange(len(groups))
        n_units = int(unit_of_item.max()) + 1
        draws = np.random.default_rng(seed).multinomial(n_units, np.full(n_units, 1 / n_units), size=resamples)
        return cls(unit_of_item, draws.astype(np.float64))

    def pair_weights(self, pairs: IntArray) -> FloatArray:
        """Return the weight of each pair in each resample, shape [resamples, pairs]."""
        first, second = self.unit_of_item[pairs[:, 0]], self.unit_of_item[pairs[:, 1]]
        is_within_unit = first == second
        return np.asarray(self.counts[:, first] * np.where(is_within_unit, 1.0, self.counts[:, second]))

    def mean(self, values: FloatArray, pairs: IntArray) -> JudgeScore:
        """Return the mean of ``values`` [pairs] with its interval; ``pairs`` has shape [pairs, 2]."""
        return self._bootstrap_mean(values, self.pair_weights(pairs))[0]

    def proportion(self, values: FloatArray, pairs: IntArray) -> JudgeScore:
        """Return the mean of ``values`` from 0 to 1 [pairs] with its interval; ``pairs`` has shape [pairs, 2].

        If all values are 0, or all are 1, all resamples are identical; the interval is then Wilson's over the units.
        """
        score = self.mean(values, pairs)
        if score.value not in (0.0, 1.0):
            return score
        n_units = len(np.unique(self.unit_of_item[pairs]))
        interval = wilson_interval(score.value * n_units, n_units)
        return replace(score, low=interval.low, high=interval.high)

    def paired_difference(self, first: FloatArray, second: FloatArray, pairs: IntArray) -> "PairedDifference":
        """Return the mean of ``second - first``, both [pairs], on ``pairs`` [pairs, 2], with its interval and p-value.

        If both items of each pair are in the same unit, interval and p-value come from sign flips of units, which are
        valid even for few units. (A bootstrap over five units finds differences significant three times too often.)
        Otherwise they come from the bootstrap.
        """
        differences = second - first
        score, samples = self._bootstrap_mean(differences, self.pair_weights(pairs))
        if not score.n:
            return PairedDifference(score, None)
        first_unit, second_unit = self.unit_of_item[pairs].T
        if (first_unit == second_unit).all():
            sizes = np.bincount(first_unit)
            has_pairs = sizes > 0
            means = np.bincount(first_unit, differences)[has_pairs] / sizes[has_pairs]
            [test] = paired_differences([(0 * means, means)], weights=[sizes[has_pairs]])
            return PairedDifference(JudgeScore(score.value, *test.difference.interval, score.n), test.p_value)
        tail = min(np.mean(samples <= 0), np.mean(samples >= 0))
        return PairedDifference(score, min(1.0, 2 * float(tail) + 2 / (len(samples) + 1)))

    def group_mean(self, values: FloatArray, units: IntArray) -> JudgeScore:
        """Return the mean of the groups' values with its interval. Values and unit indices have the shape [groups]."""
        return self._bootstrap_mean(values, self.counts[:, units])[0]

    def _bootstrap_mean(self, values: FloatArray, weights: FloatArray) -> tuple[JudgeScore, FloatArray]:
        """Return the mean of values [n] with its interval, and the means of resamples with weights [resamples, n]."""
        if len(values) == 0:
            return JudgeScore(None, None, None, 0), np.zeros(0)
        total = weights.sum(axis=1)
        has_weight = total > 0
        samples: FloatArray = (weights[has_weight] @ values) / total[has_weight]
        return self.make_score(float(values.mean()), samples, len(values)), samples

    @staticmethod
    def make_score(value: float, samples: FloatArray, n: int) -> JudgeScore:
        """Return a value with the 95% percentile interval of its resampled values, shape [resamples]."""
        return JudgeScore(value, *percentile_interval(samples), n)


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """Difference between two methods on the same pairs, with its interval and p-value."""

    difference: JudgeScore
    p_value: float | None
    """Two-sided p-value, above 0; None if there are no pairs."""

    @property
    def gain(self) -> tuple[str, str, str]:
        """Difference in percentage points, its interval and its p-value, as texts for a table."""
        score = self.difference
        if score.value is None or score.low is None or score.high is None or self.p_value is None:
            return _NONE, _NONE, _NONE
        interval = f"{100 * score.low:+.1f} to {100 * score.high:+.1f}"
        return f"{100 * score.value:+.1f}", interval, format_p_value(self.p_value)


def correctness(test: JudgedPairs) -> FloatArray:
    """Return 1 for correctly ordered pairs, 0 for wrongly ordered pairs and 0.5 for undecided pairs, shape [pairs]."""
    return np.where(test.log_odds == 0, 0.5, np.sign(test.log_odds) == np.sign(test.truth)).astype(np.float64)


def pair_calibration(test: JudgedPairs) -> Calibration | None:
    """Return the calibration on pairs with different labels, or None if there are none.

    Each pair counts in both orders, so that the base rate is 0.5 and the curve symmetric.
    """
    differing_pairs = test.take(test.truth != 0)
    if not len(differing_pairs.truth):
        return None
    log_odds = np.concatenate([differing_pairs.log_odds, -differing_pairs.log_odds])
    outcomes = np.concatenate([differing_pairs.truth > 0, differing_pairs.truth < 0]).astype(np.float64)
    return calibration(logistic(log_odds), outcomes)


def correlations(
    bootstrap_units: BootstrapUnits, rankings: Sequence[tuple[IntArray, FloatArray]], labels: FloatArray
) -> dict[str, JudgeScore]:
    """Return Spearman's rho and Kendall's tau-b between ranked lists and labels [items], averaged over the lists.

    Lists whose labels are all equal are omitted, because their correlation is undefined.

    Args:
        bootstrap_units: BootstrapUnits to resample.
        rankings: Ranked lists, each a pair of item indices and scores of shape [items in the list]; higher is better.
            There is one list per group and test fold.
        labels: Ratings by the experts, shape [items].

    Returns:
        Correlations by the names ``spearman`` and ``kendall``; ``n`` is the number of lists, or of items if all form
        one group.
    """
    varied_rankings = [
        (members, scores) for members, scores in rankings if np.ptp(labels[members]) > 0 and len(members) > 1
    ]
    is_grouped = all(len(set(bootstrap_units.unit_of_item[members].tolist())) == 1 for members, _ in varied_rankings)
    result = {}
    for name, measure in (("spearman", spearman_of_resamples), ("kendall", kendall_of_resamples)):
        values_by_list = [
            measure(scores, labels[members], np.arange(len(members))[None])[0] for members, scores in varied_rankings
        ]
        # A ranking with equal scores throughout has no correlation: 0, as for an undecided judge.
        values = np.nan_to_num(np.array(values_by_list))
        if is_grouped:
            result[name] = bootstrap_units.group_mean(
                values, np.array([bootstrap_units.unit_of_item[members[0]] for members, _ in varied_rankings], int)
            )
            continue
        # Mean over the folds' lists, with items resampled within each of them.
        generator = np.random.default_rng(0)
        draws = [
            [generator.integers(0, len(members), len(members)) for members, _ in varied_rankings]
            for _ in range(N_LIST_RESAMPLES)
        ]
        results = []
        for (members, scores), samples_of_list in zip(varied_rankings, zip(*draws, strict=True), strict=True):
            samples, truth = np.array(samples_of_list), labels[members]
            has_differences = np.ptp(truth[samples], axis=1) > 0
            results.append(np.where(has_differences, np.nan_to_num(measure(scores, truth, samples)), np.nan))
        resampled_correlations = np.array(results)
        means = np.nanmean(resampled_correlations[:, ~np.isnan(resampled_correlations).all(axis=0)], axis=0)
        result[name] = BootstrapUnits.make_score(
            float(values.mean()), means, sum(len(members) for members, _ in varied_rankings)
        )
    return result
