"""Who compares, and how well they agree with the experts.

A model compares by its answers (direct scoring, PairS), or by its hidden states (zero-shot, probes).

Every judge is a :class:`~climassay.judging.preferences.Method`. Those that read hidden states take them from a
:class:`Harvester`, which computes what is not on disk, or from a :class:`StateTable`, which keeps them in memory too.

Agreement is accuracy on pairs and rank correlation, with intervals. What is resampled are the independent units: groups
(articles) where there are several, else items. Pairs are never resampled by themselves, for pairs of one article, or of
one item, go right and wrong together.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError
from climassay.judging.preferences import (
    CERTAIN,
    FloatArray,
    IntArray,
    Item,
    Judgements,
    Method,
    Progress,
    Questions,
    both_ways,
    word_counts,
)
from climassay.judging.probe import Probe, States, log_length_differences
from climassay.learning.evaluation import Calibration, calibration
from climassay.learning.harvest import ActivationStore, Harvest, harvest
from climassay.models.contract import OpenWeights, OptionRequest, OptionScorer, OptionScores
from climassay.registry import Registry
from climassay.reporting import percent, percent_interval, shown_p_value
from climassay.statistics import paired_differences, percentile_interval, wilson_interval
from climassay.statistics.agreement import kendall_of_resamples, spearman_of_resamples

JudgeName = Literal["direct", "direct-expected", "pairs", "zero-shot"]
Make = Callable[[OptionScorer, Questions, "StateSource | None"], Method]
JUDGES: Registry[Make] = Registry("method without a probe", "climassay.judges", ["climassay.judging.judges"])
"""Methods that need no labels."""


def judge(name: str) -> Callable[[Make], Make]:
    """Add a function as a method that needs no labels.

    It is given a model with records around it, the templates of the quality, and what gives hidden states of the same
    model (None where its weights are not at hand).

    Example:
        >>> @judge("longer")
        ... def longer(model, questions, states):
        ...     return LongerIsBetter()
    """

    def add(function: Make) -> Make:
        JUDGES.add(name, function, function.__module__)
        return function

    return add


@dataclass(frozen=True)
class DirectScoring:
    """Rate each item by itself and compare the ratings.

    A preference is 1, 0.5 or 0, as published (thesis, section 2.2), where the rating is the most probable answer of
    the scale; with ``rule="expected"`` it is the sign of the difference of the expected ratings, which ties far less.

    """

    model: OptionScorer
    questions: Questions
    rule: Literal["most_likely", "expected"] = field(default="most_likely", kw_only=True)
    """``most_likely`` answer, or ``expected`` rating under the probabilities of all answers of the scale."""

    @property
    def name(self) -> str:
        """Short, for tables."""
        return "direct" if self.rule == "most_likely" else "direct (expected)"

    def scores(self, items: Sequence[Item], *, on_progress: Progress | None = None) -> FloatArray:
        """Ratings, 0 for the lowest answer of the scale; NaN where the model gave no answer. Shape [items]."""
        answers = _weigh(self.model, self.questions.direct(items), on_progress)
        if self.rule == "most_likely":
            return np.array([np.nan if one.error is not None else float(one.best or 0) for one in answers])
        shares = [np.exp(np.array(one.logprobs) - max(one.logprobs, default=0.0)) for one in answers]
        return np.array([one @ np.arange(len(one)) / one.sum() if one.size else np.nan for one in shares])

    def compare(self, items: Sequence[Item], pairs: IntArray, *, on_progress: Progress | None = None) -> Judgements:
        """See :class:`climassay.judging.Method`."""
        used = np.unique(pairs)
        ratings = np.full(len(items), np.nan)
        ratings[used] = self.scores([items[index] for index in used], on_progress=on_progress)
        difference = ratings[pairs[:, 0]] - ratings[pairs[:, 1]]
        failed = np.isnan(difference)
        return Judgements(CERTAIN * np.sign(np.where(failed, 0.0, difference)), failed)


@dataclass(frozen=True)
class PairwisePrompt:
    """PairS: the model is shown both items with a definition of the quality and answers A or B.

    References:
        Liu et al. 2024, arXiv 2403.16950; thesis, section 2.2 and appendix A.1.
    """

    model: OptionScorer
    questions: Questions
    orders: Literal[1, 2] = field(default=2, kw_only=True)
    """2 asks in both orders and averages in log-odds, which takes out the model's liking for a position."""
    name: ClassVar[str] = "pairs"

    def compare(self, items: Sequence[Item], pairs: IntArray, *, on_progress: Progress | None = None) -> Judgements:
        """See :class:`climassay.judging.Method`."""
        asked = pairs if self.orders == 1 else both_ways(pairs)
        answers = _weigh(self.model, self.questions.pairs(items, asked), on_progress)
        return averaged(*margins(answers), self.orders)


def margins(answers: Sequence[OptionScores]) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Log-odds of the first of two options against the second, and whether there is no answer, both [answers].

    Log-odds are 0 where there is no answer, and :data:`climassay.judging.preferences.CERTAIN` where the answer was
    generated without log-probabilities.
    """
    odds = [0.0 if one.error is not None else one.logprobs[0] - one.logprobs[1] for one in answers]
    odds = [
        math.copysign(CERTAIN, odd) if one.is_named and odd else odd for one, odd in zip(answers, odds, strict=True)
    ]
    return np.array(odds), np.array([one.error is not None for one in answers])


def averaged(log_odds: FloatArray, failed: NDArray[np.bool_], orders: int) -> Judgements:
    """Judgements from log-odds and failures of pairs, or of pairs and then the same mirrored; [orders * pairs]."""
    if orders == 1:
        return Judgements(np.where(failed, 0.0, log_odds), failed)
    half = len(log_odds) // 2
    lost = failed[:half] | failed[half:]
    return Judgements(np.where(lost, 0.0, (log_odds[:half] - log_odds[half:]) / 2), lost)


def _weigh(model: OptionScorer, requests: Sequence[OptionRequest], on_progress: Progress | None) -> list[OptionScores]:
    return model.option_logprobs(requests, on_result=None if on_progress is None else lambda _i, _s: on_progress(1))


@dataclass(frozen=True, slots=True)
class Contrasts:
    """What one harvest gives of ordered pairs."""

    states: States
    """[pairs, layers * width]: the state when the answer says i (``1``) less that when it says j (``2``)."""
    margins: FloatArray
    """[pairs]; log-odds of answer 1 against answer 2 by the model's own words."""
    failed: NDArray[np.bool_]
    """[pairs]; the states of these are zeros."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What harvesting took so far. Costs add up with ``+``."""

    passes: int = 0
    tokens_computed: int = 0
    tokens_two_pass: int = 0
    """Tokens that one whole pass for each answer would compute, for the same requests."""
    computed: int = 0
    stored: int = 0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(*(getattr(self, name) + getattr(other, name) for name in Cost.__dataclass_fields__))


@dataclass
class Harvester:
    """Hidden states of items and pairs, from disk where they have been computed before.

    Attributes:
        cost: What it took so far.
        error: Why a request had no states, of the last that failed.
    """

    model: OpenWeights
    questions: Questions
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
        """Activations of ordered pairs [pairs, 2] of items, of some of the harvested layers, by default of all."""
        result, failed = self.harvest(self.questions.contrast(items, pairs), on_progress)
        states = result.states[:, :, _places(self.layers, layers)].astype(np.float32, copy=False)
        odds = np.asarray(result.logprobs[:, 0] - result.logprobs[:, 1], dtype=np.float64)
        return Contrasts((states[:, 0] - states[:, 1]).reshape(len(pairs), -1), np.where(failed, 0.0, odds), failed)

    def points(
        self, items: Sequence[Item], *, layers: Sequence[int] | None = None, on_progress: Progress | None = None
    ) -> tuple[States, NDArray[np.bool_]]:
        """One activation per item, [items, layers * width], and whether it failed, [items]."""
        result, failed = self.harvest(self.questions.point(items), on_progress)
        states = result.states[:, 0, _places(self.layers, layers)].astype(np.float32, copy=False)
        return np.ascontiguousarray(states.reshape(len(items), -1)), failed

    def harvest(
        self, requests: Sequence[OptionRequest], on_progress: Progress | None = None
    ) -> tuple[Harvest, NDArray[np.bool_]]:
        """The harvest of some requests, whose cost is added, and whether each failed, shape [requests]."""
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


def _places(known: Sequence[int], wanted: Sequence[int] | None) -> list[int]:
    return [known.index(layer) for layer in (known if wanted is None else wanted)]


class StateTable:
    """States of some items, harvested when first wanted and then kept in memory, for all folds of an experiment."""

    def __init__(self, harvester: Harvester, items: Sequence[Item], on_progress: Progress | None = None) -> None:
        self.layers = harvester.layers
        self._harvester = harvester
        self._items = items
        self._on_progress = on_progress
        self._place = {item.id: place for place, item in enumerate(items)}
        self._rows: dict[tuple[int, int], int] = {}
        self._known: Contrasts | None = None
        self._points: tuple[States, NDArray[np.bool_]] | None = None

    def contrasts(
        self,
        items: Sequence[Item],
        pairs: IntArray,
        *,
        layers: Sequence[int] | None = None,
        on_progress: Progress | None = None,
    ) -> Contrasts:
        """See :meth:`Harvester.contrasts`; what is missing is harvested in one go."""
        keys = [(self._place[items[i].id], self._place[items[j].id]) for i, j in pairs.tolist()]
        missing = [key for key in dict.fromkeys(keys) if key not in self._rows]
        known = self._known
        if missing or known is None:
            new = np.array(missing, dtype=np.int64).reshape(-1, 2)
            result = self._harvester.contrasts(self._items, new, on_progress=on_progress or self._on_progress)
            self._rows.update((key, len(self._rows)) for key in missing)
            self._known = known = result if known is None else _joined(known, result)
        rows = [self._rows[key] for key in keys]
        return Contrasts(self._taken(known.states, rows, layers), known.margins[rows], known.failed[rows])

    def points(
        self, items: Sequence[Item], *, layers: Sequence[int] | None = None, on_progress: Progress | None = None
    ) -> tuple[States, NDArray[np.bool_]]:
        """See :meth:`Harvester.points`; the first call harvests all items."""
        if self._points is None:
            self._points = self._harvester.points(self._items, on_progress=on_progress or self._on_progress)
        states, failed = self._points
        rows = [self._place[item.id] for item in items]
        return self._taken(states, rows, layers), failed[rows]

    def _taken(self, states: States, rows: Sequence[int], layers: Sequence[int] | None) -> States:
        """Some rows of states [rows, layers * width], and of these some layers."""
        width, places = states.shape[1] // len(self.layers), _places(self.layers, layers)
        split = states.reshape(len(states), len(self.layers), width)
        return split[np.ix_(rows, places)].reshape(len(rows), len(places) * width)


def _joined(first: Contrasts, second: Contrasts) -> Contrasts:
    """Both, one after the other; where every request of one failed, its states have no width."""
    width = max(first.states.shape[1], second.states.shape[1])
    states = [
        one.states if one.states.shape[1] == width else np.zeros((len(one.states), width), np.float32)
        for one in (first, second)
    ]
    failed = np.concatenate([first.failed, second.failed])
    return Contrasts(np.concatenate(states), np.concatenate([first.margins, second.margins]), failed)


StateSource: TypeAlias = Harvester | StateTable


@dataclass(frozen=True)
class ZeroShotContrast:
    """PPairS's prompt, answered by the model's own words: log-odds of ``1`` against ``2``.

    It comes free with the harvest, and it is not published PairS, whose prompt is another one.
    """

    states: StateSource
    orders: int = field(default=2, kw_only=True)
    """2 averages both orders in log-odds."""
    name: ClassVar[str] = "zero-shot contrast"

    def compare(self, items: Sequence[Item], pairs: IntArray, *, on_progress: Progress | None = None) -> Judgements:
        """See :class:`climassay.judging.Method`."""
        asked = pairs if self.orders == 1 else both_ways(pairs)
        result = self.states.contrasts(items, asked, layers=self.states.layers[:1], on_progress=on_progress)
        return averaged(result.margins, result.failed, self.orders)


@dataclass(frozen=True)
class ContrastProbe:
    """PPairS: a linear probe on the difference between the states after answer ``1`` and after answer ``2``.

    References:
        Thesis, chapter 3.
    """

    states: StateSource
    probe: Probe
    _: KW_ONLY
    layers: Sequence[int] | None = None
    """Layers that the probe reads, of those harvested."""
    orders: int = 2
    """2 averages both orders in log-odds."""
    name: ClassVar[str] = "ppairs"

    def compare(self, items: Sequence[Item], pairs: IntArray, *, on_progress: Progress | None = None) -> Judgements:
        """See :class:`climassay.judging.Method`."""
        asked = pairs if self.orders == 1 else both_ways(pairs)
        result = self.states.contrasts(items, asked, layers=self.layers, on_progress=on_progress)
        lengths = log_length_differences(np.array(word_counts(items)), asked)
        return averaged(_log_odds(self.probe, result.states, lengths), result.failed, self.orders)


def _log_odds(probe: Probe, states: States, lengths: FloatArray) -> FloatArray:
    """What a probe says of states, which have no width where all requests failed."""
    return probe.log_odds(states, lengths) if states.size else np.zeros(len(states))


@dataclass(frozen=True)
class PointwiseProbe:
    """Our own addition: one activation per item, compared by the difference of scores (Bradley-Terry)."""

    states: StateSource
    probe: Probe
    layers: Sequence[int] | None = field(default=None, kw_only=True)
    """Layers that the probe reads, of those harvested."""
    name: ClassVar[str] = "pointwise"

    def scores(
        self, items: Sequence[Item], *, on_progress: Progress | None = None
    ) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Scores on the log-odds scale, up to a constant, and whether an item failed; both of shape [items]."""
        states, failed = self.states.points(items, layers=self.layers, on_progress=on_progress)
        return _log_odds(self.probe, states, np.log(word_counts(items))), failed

    def compare(self, items: Sequence[Item], pairs: IntArray, *, on_progress: Progress | None = None) -> Judgements:
        """See :class:`climassay.judging.Method`."""
        used, places = np.unique(pairs, return_inverse=True)
        scores, failed = self.scores([items[index] for index in used], on_progress=on_progress)
        first, second = places.reshape(pairs.shape).T
        lost = failed[first] | failed[second]
        return Judgements(np.where(lost, 0.0, scores[first] - scores[second]), lost)


judge("direct")(lambda model, questions, _states: DirectScoring(model, questions))
judge("direct-expected")(lambda model, questions, _states: DirectScoring(model, questions, rule="expected"))
judge("pairs")(lambda model, questions, _states: PairwisePrompt(model, questions))


@judge("zero-shot")
def _zero_shot(model: OptionScorer, _questions: Questions, states: StateSource | None) -> Method:
    if states is None:
        raise InputError(f"The method zero-shot reads hidden states: use a local: model, not {model.name}.")
    return ZeroShotContrast(states)


def probe_judge(probe: Probe, harvester: Harvester) -> Method:
    """A trained probe as a method; the harvester reads the probe's layers of the model that it was trained on.

    Raises:
        InputError: The probe belongs to another model, or to other layers.
    """
    probe.check(harvester.model, harvester.layers)
    return ContrastProbe(harvester, probe) if probe.kind == "pair" else PointwiseProbe(harvester, probe)


def open_weights(model: object, purpose: str) -> OpenWeights:
    """The model as one whose hidden states can be read.

    Raises:
        InputError: They cannot; ``purpose`` begins the sentence that says so.
    """
    if isinstance(model, OpenWeights):
        return model
    raise InputError(f"{purpose} reads hidden states: use a local: model, not {getattr(model, 'name', 'this one')}.")


def layer_choices(model: object, layers: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """Sets of layers to choose among: those named, else four over the upper half of the model, the last one included.

    Which layer tells better from worse differs from quality to quality (docs/results/judging.md), so that
    cross-validation decides.
    """
    if layers or not isinstance(model, OpenWeights):
        return tuple(map(tuple, layers)) or ((-1,),)
    inner = {round(model.layers * share) for share in (8 / 15, 2 / 3, 4 / 5)} - {0, model.layers}
    return (*((layer,) for layer in sorted(inner)), (-1,))


def layers_of(sets: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """All layers of several sets, each once, those counted from the end last: what has to be harvested."""
    return tuple(sorted({layer for layers in sets for layer in layers}, key=lambda layer: (layer < 0, layer)))


_NONE = "-"
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

    @property
    def share(self) -> str:
        """The value in per cent, as a cell of a table; a dash where there is none."""
        return _NONE if self.value is None else percent(self.value)

    @property
    def interval(self) -> str:
        """The interval in per cent, likewise."""
        return _NONE if self.low is None or self.high is None else percent_interval((self.low, self.high))

    @property
    def range(self) -> str:
        """The interval in the value's own unit, likewise."""
        return _NONE if self.low is None or self.high is None else f"{self.low:.3f} to {self.high:.3f}"


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
        """Mean of one value per pair [pairs]; ``pairs`` [pairs, 2]."""
        return self._mean(values, self.pair_weights(pairs))[0]

    def share(self, values: FloatArray, pairs: IntArray) -> Figure:
        """Mean of one value from 0 to 1 per pair [pairs], for example whether it was judged rightly; pairs [pairs, 2].

        Where all values are 0, or all 1, no resample differs, and the interval is Wilson's over the units.
        """
        figure = self.mean(values, pairs)
        if figure.value not in (0.0, 1.0):
            return figure
        units = len(np.unique(self.of_item[pairs]))
        interval = wilson_interval(figure.value * units, units)
        return replace(figure, low=interval.low, high=interval.high)

    def difference(self, first: FloatArray, second: FloatArray, pairs: IntArray) -> "PairedFigure":
        """Mean of ``second - first``, both [pairs], on the same ``pairs`` [pairs, 2], with its test.

        Where no pair joins two units, interval and p-value are those of sign flips of whole units, which hold for few
        units as well (of five, a bootstrap calls differences significant three times too often); else of the bootstrap.
        """
        gaps = second - first
        figure, samples = self._mean(gaps, self.pair_weights(pairs))
        if not figure.n:
            return PairedFigure(figure, None)
        unit, other = self.of_item[pairs].T
        if (unit == other).all():
            sizes = np.bincount(unit)
            used = sizes > 0
            means = np.bincount(unit, gaps)[used] / sizes[used]
            [test] = paired_differences([(0 * means, means)], weights=[sizes[used]])
            return PairedFigure(Figure(figure.value, *test.difference.interval, figure.n), test.p_value)
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
    """Two-sided; never 0."""

    @property
    def gain(self) -> tuple[str, str, str]:
        """The difference in points, its interval, and its p-value, as cells of a table."""
        figure = self.difference
        if figure.value is None or figure.low is None or figure.high is None or self.p_value is None:
            return _NONE, _NONE, _NONE
        ends = f"{100 * figure.low:+.1f} to {100 * figure.high:+.1f}"
        return f"{100 * figure.value:+.1f}", ends, shown_p_value(self.p_value)


def correctness(test: JudgedPairs) -> FloatArray:
    """1 where the order of two items that differ is judged rightly, 0 where wrongly, 0.5 where undecided. [pairs]."""
    return np.where(test.log_odds == 0, 0.5, np.sign(test.log_odds) == np.sign(test.truth)).astype(np.float64)


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
        results = []
        for (members, scores), places in zip(used, zip(*drawn, strict=True), strict=True):
            chosen, truth = np.array(places), labels[members]
            differ = np.ptp(truth[chosen], axis=1) > 0
            results.append(np.where(differ, np.nan_to_num(measure(scores, truth, chosen)), np.nan))
        table = np.array(results)
        means = np.nanmean(table[:, ~np.isnan(table).all(axis=0)], axis=0)
        result[name] = Units.figure(float(values.mean()), means, sum(len(members) for members, _ in used))
    return result
