"""Two benchmarks, one set of models: do they rank alike, and does a metric favour the model that wrote the questions?

The first question is that of the paper's appendix A.2.2 (silver against gold), the second that of its section 5.2. Both
are answered from few models, five to eight in the paper, and from published means there is no more than those. What
that can and cannot show is said by the numbers that go with every result: exact p-values over all orders of the models,
and places instead of differences.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from math import factorial

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError
from climassay.evaluation.experiment_scores import OVERALL, score_of
from climassay.evaluation.outcome import METRICS, Experiment
from climassay.evaluation.published import Dataset, published_scores
from climassay.statistics import Correlation, Interval, kendall, spearman

FEWEST_MODELS = 3
_EXACT_UP_TO = 8
"""Models whose orders are all tried: 40,320 of eight."""


@dataclass(frozen=True, slots=True)
class ModelMeans:
    """How models score on one benchmark in one setting."""

    name: str
    setting: str
    means: Mapping[str, Mapping[str, float]]
    """By metric, then model; over all levels."""
    items: Mapping[str, Mapping[str, NDArray[np.float64]]] = field(default_factory=dict)
    """Scores of single questions, the same questions in the same order for every model; empty where only means are
    known."""

    def models(self, *metrics: str) -> list[str]:
        """Models that have all of the metrics."""
        first, *others = (self.means.get(metric, {}) for metric in metrics)
        return [model for model in first if all(model in other for other in others)]


def published_means(dataset: Dataset, setting: str = "default") -> ModelMeans:
    """The paper's models in one setting; see :mod:`climassay.evaluation.published`.

    Raises:
        InputError: The tables have no such setting.
    """
    means: dict[str, dict[str, float]] = {}
    for score in published_scores(dataset):
        if score.setting == setting and score.level == OVERALL:
            means.setdefault(score.metric, {})[score.model] = score.value
    if not means:
        known = ", ".join(dict.fromkeys(score.setting for score in published_scores(dataset)))
        raise InputError(f"The published {dataset} tables have no setting {setting!r}: they have {known}.")
    return ModelMeans(f"published {dataset}", setting, means)


def experiment_means(experiment: Experiment, setting: str = "default", benchmark: str | None = None) -> ModelMeans:
    """The models of an experiment in one setting.

    Args:
        experiment: The matrix.
        setting: Label of the setting.
        benchmark: Whose questions; needed where there are several.

    Raises:
        InputError: No such benchmark or setting, or several benchmarks and none named.
    """
    if benchmark is None and len(experiment.questions) > 1:
        raise InputError(
            f"{experiment.run} has several benchmarks, {', '.join(experiment.questions)}: name one of them."
        )
    name = benchmark or next(iter(experiment.questions), "")
    found: dict[str, dict[str, dict[str, float]]] = {}
    for outcome in experiment.outcomes:
        if (outcome.cell.benchmark, outcome.cell.setting) == (name, setting):
            for metric in METRICS.values():
                value = score_of(outcome, metric.name)
                if metric.task == outcome.cell.task and value is not None:
                    found.setdefault(metric.name, {}).setdefault(outcome.cell.model, {})[outcome.question] = value
    if not found:
        settings = ", ".join(dict.fromkeys(record.cell.setting for record in experiment.cells))
        raise InputError(f"{experiment.run} has no answers on {name!r} in the setting {setting!r}: it has {settings}.")
    means, items = {}, {}
    for metric_name, models in found.items():
        common = [q for q in next(iter(models.values())) if all(q in scores for scores in models.values())]
        if common:
            items[metric_name] = {m: np.array([scores[q] for q in common]) for m, scores in models.items()}
            means[metric_name] = {m: float(values.mean()) for m, values in items[metric_name].items()}
    return ModelMeans(f"{name} ({experiment.run})", setting, means, items)


@dataclass(frozen=True, slots=True)
class RankAgreement:
    """How alike two benchmarks rank the same models by one metric."""

    metric: str
    models: tuple[str, ...]
    first: tuple[float, ...]
    second: tuple[float, ...]
    spearman: Correlation
    """Its interval resamples models: what other models of this kind might show."""
    kendall: Correlation
    p_value: float | None
    """Share of all orders of the models with so high a Spearman correlation or a higher one (one-sided, exact); None
    for more than eight models."""
    over_questions: Interval | None
    """95% interval of Spearman's correlation when questions are resampled on both sides; None from means only."""


def rank_agreement(
    first: ModelMeans, second: ModelMeans, *, resamples: int = 500, seed: int = 0
) -> list[RankAgreement]:
    """Rank correlation of the models by every metric that both benchmarks have, in the order of tables.

    Metrics in which fewer than three models have scores on both sides, or all have the same one, are left out.

    Args:
        first: For example gold.
        second: For example silver.
        resamples: Bootstrap samples, over models and over questions.
        seed: Seed of both.

    Raises:
        InputError: No metric is left.
    """
    found = []
    for metric in METRICS:
        models = [model for model in first.means.get(metric, {}) if model in second.means.get(metric, {})]
        a, b = ([side.means[metric][model] for model in models] for side in (first, second))
        if len(models) >= FEWEST_MODELS and min(len(set(a)), len(set(b))) > 1:
            found.append(
                RankAgreement(
                    metric,
                    tuple(models),
                    tuple(a),
                    tuple(b),
                    spearman(a, b, resamples=resamples, seed=seed),
                    kendall(a, b, resamples=resamples, seed=seed),
                    _exact_p_value(a, b),
                    _over_questions(first, second, metric, models, resamples, seed),
                )
            )
    if not found:
        raise InputError(
            f"{first.name} and {second.name} have no metric with scores of the same {FEWEST_MODELS} models or more."
        )
    return found


def _ranks(values: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks along the last axis, equals with their mean rank."""
    from scipy.stats import rankdata

    ranks: NDArray[np.float64] = rankdata(values, axis=-1)
    return ranks


def _exact_p_value(first: Sequence[float], second: Sequence[float]) -> float | None:
    if len(first) > _EXACT_UP_TO:
        return None
    a, b = _ranks(first), _ranks(second)
    # For fixed ranks the correlation grows with the sum of products alone.
    orders = np.array(list(permutations(range(len(a)))))
    return float((b[orders] @ a >= a @ b - 1e-9).sum() / factorial(len(a)))


def _over_questions(
    first: ModelMeans, second: ModelMeans, metric: str, models: Sequence[str], resamples: int, seed: int
) -> Interval | None:
    if metric not in first.items or metric not in second.items:
        return None
    generator = np.random.default_rng(seed)
    a, b = (_ranks(_resampled(side, metric, models, resamples, generator)) for side in (first, second))
    a, b = a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True)
    spread = np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))
    # Where all models tie in a resample there is no order to compare.
    kept = spread > 0
    return _interval((a * b).sum(axis=1)[kept] / spread[kept])


def _interval(values: NDArray[np.float64]) -> Interval | None:
    if not len(values):
        return None
    low, high = np.quantile(values, [0.025, 0.975])
    return Interval(float(low), float(high))


def _resampled(
    side: ModelMeans, metric: str, models: Sequence[str], resamples: int, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Means of the models over resampled questions, shape [resamples, models]; one draw serves all models."""
    table = np.stack([side.items[metric][model] for model in models], axis=1)
    weights = generator.multinomial(len(table), np.full(len(table), 1 / len(table)), size=resamples)
    means: NDArray[np.float64] = weights @ table / len(table)
    return means


@dataclass(frozen=True, slots=True)
class Favour:
    """How a metric treats the generating model, compared with a metric that does not read its words."""

    metric: str
    anchor: str
    generator: str
    models: int
    value: float
    """The generator's mean."""
    expected: float
    """What the other models' line from the anchor to the metric gives for it."""
    studentised: float
    """(value - expected) in units of its standard error: a t statistic with ``models - 3`` degrees of freedom."""
    p_value: float
    """One-sided: of so large an excess."""
    place: int
    """Of the generator's excess among all models', each measured against the line of the others; 1 is the largest."""
    rank: int
    """The generator's place by the metric, 1 best; equals share the better place."""
    anchor_rank: int
    over_questions: Interval | None
    """95% interval of the excess when questions are resampled; None from means only."""

    @property
    def excess(self) -> float:
        """What the generator has beyond what is expected of it."""
        return self.value - self.expected

    @property
    def places_gained(self) -> int:
        """Places by which the metric ranks the generator above the anchor's rank."""
        return self.anchor_rank - self.rank


def generator_favour(
    means: ModelMeans, generator: str, anchor: str = "accuracy", *, resamples: int = 1000, seed: int = 0
) -> list[Favour]:
    """Whether metrics favour the model that wrote the questions.

    Each metric is regressed on the anchor over the *other* models; the generator's distance from that line, in units of
    its standard error (the externally studentised residual), is the excess that its general ability does not explain.
    The same is computed with every other model in the generator's part, which tells whether the generator stands out.

    Limits: with m models the line rests on m - 1 points, so that only large excesses can be seen, and ``place`` is
    first by chance once in m. The anchor must not depend on the wording of an answer (MCQ accuracy; factual accuracy
    reads words, but is made not to). An excess can also mean that the generator is better at that task than at the
    anchor's: it is evidence of favour only where metrics of the same answers disagree about it.

    Args:
        means: Models in one setting.
        generator: Name of the model that wrote the questions.
        anchor: Metric that is taken for ability.
        resamples: Bootstrap samples over questions, where single scores are known.
        seed: Their seed.

    Returns:
        One entry a metric with at least four models that have the anchor too.

    Raises:
        InputError: The generator or the anchor has no scores, or there are fewer than four models.

    References:
        Cook and Weisberg (1982), Residuals and Influence in Regression, section 2.2, for the residual.
    """
    if generator not in means.means.get(anchor, {}):
        raise InputError(f"{means.name} has no {anchor} of a model {generator!r} in the setting {means.setting!r}.")
    found = []
    for metric in METRICS:
        models = means.models(anchor, metric) if metric != anchor else []
        if generator in models and len(models) >= FEWEST_MODELS + 1:
            found.append(_favour(means, generator, anchor, metric, models, resamples, seed))
    if not found:
        raise InputError(f"{means.name} has fewer than {FEWEST_MODELS + 1} models to compare {generator} with.")
    return found


def _favour(
    means: ModelMeans, generator: str, anchor: str, metric: str, models: list[str], resamples: int, seed: int
) -> Favour:
    from scipy.stats import t

    x = np.array([means.means[anchor][model] for model in models])
    y = np.array([means.means[metric][model] for model in models])
    own = models.index(generator)
    excesses, errors = np.array([_excess(x, y, place) for place in range(len(models))]).T
    # Points exactly on one line leave no scale; the sign is all that is known then.
    studentised = excesses / np.maximum(errors, 1e-12)
    return Favour(
        metric,
        anchor,
        generator,
        len(models),
        float(y[own]),
        float(y[own] - excesses[own]),
        float(studentised[own]),
        float(t.sf(studentised[own], len(models) - 3)),
        place=1 + int((studentised > studentised[own]).sum()),
        rank=1 + int((y > y[own]).sum()),
        anchor_rank=1 + int((x > x[own]).sum()),
        over_questions=_excess_interval(means, (anchor, metric), models, own, resamples, seed),
    )


def _excess(
    x: NDArray[np.float64], y: NDArray[np.float64], place: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Distance of one point from the line through the others, and its standard error.

    Args:
        x: Shape [..., models].
        y: Shape [..., models].
        place: Number of the point.

    Returns:
        Two arrays of shape [...].
    """
    a, b = np.delete(x, place, axis=-1), np.delete(y, place, axis=-1)
    middle, height = a.mean(axis=-1, keepdims=True), b.mean(axis=-1, keepdims=True)
    spread = ((a - middle) ** 2).sum(axis=-1, keepdims=True)
    # Models that are all alike by the anchor have a level line.
    scale = np.where(spread == 0, np.inf, spread)
    slope = ((a - middle) * b).sum(axis=-1, keepdims=True) / scale
    residuals = b - height - slope * (a - middle)
    away = x[..., place, None] - middle
    distance = y[..., place, None] - height - slope * away
    size = a.shape[-1]
    variance = (residuals**2).sum(axis=-1, keepdims=True) / (size - 2)
    error = np.sqrt(variance * (1 + 1 / size + away**2 / scale))
    return distance[..., 0], error[..., 0]


def _excess_interval(
    means: ModelMeans, metrics: tuple[str, str], models: Sequence[str], own: int, resamples: int, seed: int
) -> Interval | None:
    if any(metric not in means.items for metric in metrics):
        return None
    # One generator a task with the same seed: metrics of the same answers see the same resampled questions.
    x, y = (_resampled(means, metric, models, resamples, np.random.default_rng(seed)) for metric in metrics)
    return _interval(_excess(x, y, own)[0])
