"""Rankings of models: two benchmarks compared, and metrics that may favour the model that wrote the questions.

Do two benchmarks rank the same models alike (the paper's appendix A.2.2, silver against gold)? Does a metric favour the
model that wrote the questions (its section 5.2)? Both questions are answered from few models, five to eight in the
paper; hence exact p-values over all orders of the models, and ranks instead of differences.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import TYPE_CHECKING, cast, get_args

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError
from climassay.evaluation.paper_scores import Dataset, published_scores
from climassay.evaluation.results import Experiment, load_experiment
from climassay.evaluation.scores import (
    OVERALL,
    answered_cells,
    score_of,
)
from climassay.evaluation.tables import format_score
from climassay.metrics.registry import METRICS
from climassay.reporting import Table, format_p_value
from climassay.statistics import (
    Correlation,
    Interval,
    kendall,
    percentile_interval,
    spearman,
)

if TYPE_CHECKING:
    from climassay.records import Records

MIN_MODELS = 3
_MAX_EXACT_MODELS = 8
"""Maximum number of models for which the p-value is computed over all permutations (40,320 for eight models)."""


@dataclass(frozen=True, slots=True)
class ModelMeans:
    """Mean scores of models on one benchmark in one setting."""

    name: str
    setting: str
    means: Mapping[str, Mapping[str, float]]
    """Mean score over all levels, by metric and model."""
    items: Mapping[str, Mapping[str, NDArray[np.float64]]] = field(default_factory=dict)
    """Scores of the questions by metric and model, shape [questions], in the same order for every model. Empty if only
    means are known."""

    def models(self, *metrics: str) -> list[str]:
        """Return the names of the models that have scores in all the metrics."""
        means = [self.means.get(metric, {}) for metric in metrics]
        return [model for model in means[0] if all(model in column for column in means)]


def published_means(dataset: Dataset, setting: str = "default") -> ModelMeans:
    """Return the published mean scores of the ClimaQA paper's models in one setting.

    Raises:
        InputError: The published tables do not have the setting.
    """
    means: dict[str, dict[str, float]] = {}
    for score in published_scores(dataset):
        if score.setting == setting and score.level == OVERALL:
            means.setdefault(score.metric, {})[score.model] = score.value
    if not means:
        settings = ", ".join(dict.fromkeys(score.setting for score in published_scores(dataset)))
        raise InputError(f"The published {dataset} tables have no setting {setting!r}: they have {settings}.")
    return ModelMeans(f"published {dataset}", setting, means)


def experiment_means(experiment: Experiment, setting: str = "default", benchmark: str | None = None) -> ModelMeans:
    """Return the mean scores of an experiment's models in one setting.

    Args:
        experiment: Experiment with its outcomes.
        setting: Label of the setting.
        benchmark: Name of the benchmark; must be given if the experiment has several.

    Raises:
        InputError: The experiment has no answers for the benchmark and setting, or has several benchmarks and none is
            named.
    """
    if benchmark is None and len(experiment.questions) > 1:
        raise InputError(
            f"{experiment.run} has several benchmarks, {', '.join(experiment.questions)}: name one of them."
        )
    name = benchmark or next(iter(experiment.questions), "")
    results: dict[str, dict[str, dict[str, float]]] = {}
    for outcome in (outcome for outcomes in answered_cells(experiment).values() for outcome in outcomes):
        if (outcome.cell.benchmark, outcome.cell.setting) == (name, setting):
            for metric in METRICS.ordered({*METRICS, *outcome.scores}):
                value = score_of(outcome, metric.name)
                if metric.scores(outcome.cell.task) and value is not None:
                    results.setdefault(metric.name, {}).setdefault(outcome.cell.model, {})[outcome.question] = value
    if not results:
        settings = ", ".join(dict.fromkeys(record.cell.setting for record in experiment.cells))
        raise InputError(f"{experiment.run} has no answers on {name!r} in the setting {setting!r}: it has {settings}.")
    means, items = {}, {}
    for metric_name, models in results.items():
        common_questions = [
            question
            for question in next(iter(models.values()))
            if all(question in scores for scores in models.values())
        ]
        if common_questions:
            items[metric_name] = {
                model: np.array([scores[question] for question in common_questions]) for model, scores in models.items()
            }
            means[metric_name] = {model: float(values.mean()) for model, values in items[metric_name].items()}
    return ModelMeans(f"{name} ({experiment.run})", setting, means, items)


@dataclass(frozen=True, slots=True)
class RankAgreement:
    """Agreement between two benchmarks in how they rank the same models by one metric."""

    metric: str
    models: tuple[str, ...]
    first: tuple[float, ...]
    second: tuple[float, ...]
    spearman: Correlation
    """Spearman's correlation with an interval over resampled models."""
    kendall: Correlation
    p_value: float | None
    """Proportion of permutations of the models with at least this Spearman correlation (one-sided, exact).

    None for more than eight models.
    """
    over_questions: Interval | None
    """95% interval of Spearman's correlation from resampling the questions of both benchmarks; None if only means are
    known."""


def rank_agreement(
    first: ModelMeans, second: ModelMeans, *, resamples: int = 500, seed: int = 0
) -> list[RankAgreement]:
    """Return the rank correlation of models between two benchmarks, for each metric that both have.

    A metric is left out if fewer than three models have scores on both benchmarks, or if all models have the same score
    on one of them.

    Args:
        first: First benchmark, for example gold.
        second: Second benchmark, for example silver.
        resamples: Number of bootstrap samples, both over models and over questions.
        seed: Seed of the bootstraps.

    Raises:
        InputError: All metrics are left out.
    """
    results = []
    for metric in (metric.name for metric in METRICS.ordered(first.means)):
        models = [model for model in first.means.get(metric, {}) if model in second.means.get(metric, {})]
        first_means, second_means = (
            [benchmark.means[metric][model] for model in models] for benchmark in (first, second)
        )
        if len(models) >= MIN_MODELS and min(len(set(first_means)), len(set(second_means))) > 1:
            p_value = None
            if len(models) <= _MAX_EXACT_MODELS:
                first_ranks, second_ranks = _compute_ranks(first_means), _compute_ranks(second_means)
                # For fixed ranks the correlation grows with the sum of products alone.
                orders = np.array(list(permutations(range(len(models)))))
                p_value = float((second_ranks[orders] @ first_ranks >= first_ranks @ second_ranks - 1e-9).mean())
            results.append(
                RankAgreement(
                    metric,
                    tuple(models),
                    tuple(first_means),
                    tuple(second_means),
                    spearman(first_means, second_means, resamples=resamples, seed=seed),
                    kendall(first_means, second_means, resamples=resamples, seed=seed),
                    p_value,
                    _bootstrap_over_questions(first, second, metric, models, resamples, seed),
                )
            )
    if not results:
        raise InputError(
            f"{first.name} and {second.name} have no metric with scores of the same {MIN_MODELS} models or more, so "
            "their rankings cannot be compared. To test models or settings against each other on the same questions, "
            "put them into one experiment file: stored answers are reused."
        )
    return results


def _compute_ranks(values: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ranks along the last axis, in the shape of ``values``; equal values get their mean rank."""
    from scipy.stats import rankdata

    ranks: NDArray[np.float64] = rankdata(values, axis=-1)
    return ranks


def _bootstrap_over_questions(
    first_benchmark: ModelMeans,
    second_benchmark: ModelMeans,
    metric: str,
    models: Sequence[str],
    resamples: int,
    seed: int,
) -> Interval | None:
    if metric not in first_benchmark.items or metric not in second_benchmark.items:
        return None
    generator = np.random.default_rng(seed)
    first_ranks, second_ranks = (
        _compute_ranks(_resample_means(benchmark, metric, models, resamples, generator))
        for benchmark in (first_benchmark, second_benchmark)
    )
    first_ranks, second_ranks = (
        first_ranks - first_ranks.mean(axis=1, keepdims=True),
        second_ranks - second_ranks.mean(axis=1, keepdims=True),
    )
    denominators = np.sqrt((first_ranks**2).sum(axis=1) * (second_ranks**2).sum(axis=1))
    has_order = denominators > 0  # a resample in which all models tie has no order to compare
    return (
        percentile_interval((first_ranks * second_ranks).sum(axis=1)[has_order] / denominators[has_order])
        if has_order.any()
        else None
    )


def _resample_means(
    benchmark: ModelMeans, metric: str, models: Sequence[str], resamples: int, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Return the models' mean scores over resampled questions, shape [resamples, models].

    A resample has the same questions for all models.
    """
    scores = np.stack([benchmark.items[metric][model] for model in models], axis=1)
    weights = generator.multinomial(len(scores), np.full(len(scores), 1 / len(scores)), size=resamples)
    means: NDArray[np.float64] = weights @ scores / len(scores)
    return means


@dataclass(frozen=True, slots=True)
class SelfPreference:
    """Difference between the actual and the expected mean score of the model that wrote the questions."""

    metric: str
    anchor: str
    generator: str
    models: int
    value: float
    """Mean score of the generator, the model that wrote the questions."""
    expected: float
    """Predicted mean score of the generator, from a regression of the metric on the anchor over all other models."""
    studentised: float
    """Excess divided by its standard error: a t statistic with ``models - 3`` degrees of freedom."""
    p_value: float
    """One-sided p-value of the excess."""
    excess_rank: int
    """Rank of the generator's excess among those of all models; 1 is the largest. Each model's excess is computed from
    a regression over the other models."""
    rank: int
    """Rank of the generator by the metric; 1 is the best, and models with equal scores share the better rank."""
    anchor_rank: int
    over_questions: Interval | None
    """95% interval of the excess if the questions are resampled; None if only means are known."""

    @property
    def excess(self) -> float:
        """Mean score of the generator minus its expected mean score."""
        return self.value - self.expected


def self_preference(
    means: ModelMeans, generator: str, anchor: str = "accuracy", *, seed: int = 0
) -> list[SelfPreference]:
    """Test whether metrics favour the model that wrote the questions.

    Each metric is regressed on the anchor over the *other* models. The generator's residual from this line is the
    excess that its general ability does not explain; divided by its standard error, it is an externally studentised
    residual. The same is computed for every other model, to show whether the generator stands out.

    Args:
        means: Mean scores of models in one setting.
        generator: Name of the model that wrote the questions.
        anchor: Metric that measures ability.
        seed: Seed of the bootstrap over questions, which needs the scores of questions.

    Returns:
        One entry for each metric for which at least four models have scores in both the metric and the anchor.

    Raises:
        InputError: The generator or the anchor has no scores, or there are fewer than four models.

    Notes:
        With m models, the line is fitted to m - 1 points: only large excesses can be detected, and ``excess_rank`` is 1
        by chance with probability 1 / m. The anchor must not depend on the wording of an answer. Multiple-choice
        accuracy does not; factual accuracy is computed from words, but is designed not to. An excess can also mean that
        the generator is better at the metric's task than at the anchor's. It is evidence of favour only if metrics of
        the same answers disagree.

    References:
        Cook and Weisberg (1982), Residuals and Influence in Regression, section 2.2, for the residual.
    """
    if generator not in means.means.get(anchor, {}):
        raise InputError(f"{means.name} has no {anchor} of a model {generator!r} in the setting {means.setting!r}.")
    results = []
    for metric in (metric.name for metric in METRICS.ordered(means.means)):
        models = means.models(anchor, metric) if metric != anchor else []
        if generator in models and len(models) >= MIN_MODELS + 1:
            results.append(_compute_self_preference(means, generator, anchor, metric, models, seed))
    if not results:
        raise InputError(f"{means.name} has fewer than {MIN_MODELS + 1} models to compare {generator} with.")
    return results


def _compute_self_preference(
    means: ModelMeans, generator: str, anchor: str, metric: str, models: list[str], seed: int
) -> SelfPreference:
    from scipy.stats import t

    anchor_means, metric_means = (np.array([means.means[name][model] for model in models]) for name in (anchor, metric))
    index = models.index(generator)
    excesses, errors = np.array(
        [_compute_residual(anchor_means, metric_means, model_index) for model_index in range(len(models))]
    ).T
    # Points exactly on a line have no standard error: only the sign of the excess is known.
    studentised_excesses = excesses / np.maximum(errors, 1e-12)
    question_interval = None
    if anchor in means.items and metric in means.items:
        # The same seed for both metrics: metrics of the same answers have the same resampled questions.
        resampled_x, resampled_y = (
            _resample_means(means, name, models, 1000, np.random.default_rng(seed)) for name in (anchor, metric)
        )
        question_interval = percentile_interval(_compute_residual(resampled_x, resampled_y, index)[0])
    return SelfPreference(
        metric,
        anchor,
        generator,
        len(models),
        float(metric_means[index]),
        float(metric_means[index] - excesses[index]),
        float(studentised_excesses[index]),
        float(t.sf(studentised_excesses[index], len(models) - 3)),
        excess_rank=1 + int((studentised_excesses > studentised_excesses[index]).sum()),
        rank=1 + int((metric_means > metric_means[index]).sum()),
        anchor_rank=1 + int((anchor_means > anchor_means[index]).sum()),
        over_questions=question_interval,
    )


def _compute_residual(
    x: NDArray[np.float64], y: NDArray[np.float64], index: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the residual of a point from a line fitted to all other points, and its standard error.

    ``x`` and ``y`` have the shape [..., points], the results [...].
    """
    other_x, other_y = np.delete(x, index, axis=-1), np.delete(y, index, axis=-1)
    mean_x, mean_y = other_x.mean(axis=-1, keepdims=True), other_y.mean(axis=-1, keepdims=True)
    sum_of_squares = ((other_x - mean_x) ** 2).sum(axis=-1, keepdims=True)
    # The line is level if all models have the same anchor.
    scale = np.where(sum_of_squares == 0, np.inf, sum_of_squares)
    slope = ((other_x - mean_x) * other_y).sum(axis=-1, keepdims=True) / scale
    residuals = other_y - mean_y - slope * (other_x - mean_x)
    offset = x[..., index, None] - mean_x
    distance = y[..., index, None] - mean_y - slope * offset
    n_points = other_x.shape[-1]
    variance = (residuals**2).sum(axis=-1, keepdims=True) / (n_points - 2)
    standard_error = np.sqrt(variance * (1 + 1 / n_points + offset**2 / scale))
    return distance[..., 0], standard_error[..., 0]


_ANCHORS = ("accuracy", "factual_accuracy")


def load_means(records: "Records", name: str, setting: str) -> ModelMeans:
    """Return the means of RUN, RUN:BENCHMARK, published:gold or published:silver in a setting.

    Raises:
        InputError: The run or the published results do not exist.
    """
    run, _, dataset = name.partition(":")
    if run != "published":
        return experiment_means(load_experiment(records, run), setting, dataset or None)
    if dataset in get_args(Dataset):
        return published_means(cast("Dataset", dataset), setting)
    raise InputError(f"The published results are published:gold and published:silver, not {name!r}.")


def find_self_preferences(
    benchmarks: Sequence[ModelMeans], generator: str, seed: int
) -> list[tuple[ModelMeans, list[SelfPreference]]]:
    """Return (benchmark, preferences) for each benchmark and anchor that has enough models.

    Raises:
        InputError: No benchmark has enough models.
    """
    results, errors = [], []
    for benchmark in benchmarks:
        for anchor in _ANCHORS:
            try:
                results.append((benchmark, self_preference(benchmark, generator, anchor, seed=seed)))
            except InputError as error:
                errors.append(error)
    if not results:
        raise errors[0]
    return results


def agreement_table(agreements: Sequence[RankAgreement], first: ModelMeans, second: ModelMeans) -> Table:
    """Return a table of the rank correlations of two benchmarks, with a row per metric."""
    settings = " and ".join(dict.fromkeys((first.setting, second.setting)))
    return Table.of(
        f"Do {first.name} and {second.name} rank models alike? Setting {settings}",
        ["metric", "models", "Spearman", "95%, models", "95%, questions", "Kendall", "95%, models", "p"],
        [
            [
                METRICS[agreement.metric].label,
                str(len(agreement.models)),
                f"{agreement.spearman.value:.2f}",
                _format_interval(agreement.spearman.interval),
                _format_interval(agreement.over_questions),
                f"{agreement.kendall.value:.2f}",
                _format_interval(agreement.kendall.interval),
                format_p_value(agreement.spearman.p_value if agreement.p_value is None else agreement.p_value),
            ]
            for agreement in agreements
        ],
        note="95%, models: bootstrap over models, wide because there are few, and without width if no resample can "
        "break the order. 95%, questions: bootstrap over the questions of both (only if single scores are known). "
        "p: one-sided over all orders of the models (up to eight models, else asymptotic and two-sided).",
    )


def means_table(agreements: Sequence[RankAgreement], first: ModelMeans, second: ModelMeans) -> Table:
    """Return a table of the mean scores behind the rank correlations, with a row per metric and model."""
    return Table.of(
        "Means behind it",
        ["metric", "model", first.name, second.name],
        [
            [
                METRICS[agreement.metric].label,
                model,
                format_score(agreement.metric, first_mean),
                format_score(agreement.metric, second_mean),
            ]
            for agreement in agreements
            for model, first_mean, second_mean in zip(agreement.models, agreement.first, agreement.second, strict=True)
        ],
        left_columns=2,
        grouped=1,
    )


def self_preference_table(preferences: Sequence[SelfPreference], means: ModelMeans) -> Table:
    """Return a table of the generator's excess over its expected mean score, with a row per metric."""
    generator, anchor = preferences[0].generator, METRICS[preferences[0].anchor].label
    return Table.of(
        f"Do metrics favour {generator}, which wrote the questions? {means.name}, setting {means.setting}",
        [
            "metric",
            "models",
            f"rank by\n{anchor}",
            "rank by\nmetric",
            "value",
            "expected",
            "excess",
            "95%, questions",
            "t",
            "p",
            "excess's\nrank",
        ],
        [
            [
                METRICS[preference.metric].label,
                str(preference.models),
                str(preference.anchor_rank),
                str(preference.rank),
                f"{preference.value:.3f}",
                f"{preference.expected:.3f}",
                f"{preference.excess:+.3f}",
                _format_interval(preference.over_questions),
                f"{preference.studentised:.2f}",
                format_p_value(preference.p_value),
                f"{preference.excess_rank} of {preference.models}",
            ]
            for preference in preferences
        ],
        note=f"expected: from the line between {anchor} and the metric over the other models. t: the excess in units "
        "of its standard error, with three degrees of freedom fewer than models; p: one-sided. excess's rank: among "
        "the excesses of all models, each against the line of the others; any model is first by chance once in "
        f"{preferences[0].models}. Few models show only large favours, and a model may be better at one task than at "
        "another: compare rows of the same answers.",
    )


def _format_interval(interval: Interval | None) -> str:
    return "-" if interval is None else f"{interval.low:.2f} to {interval.high:.2f}"
