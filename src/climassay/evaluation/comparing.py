"""Published results, two benchmarks or several runs beside each other.

Do two benchmarks rank the same models alike (the paper's appendix A.2.2, silver against gold)? Does a metric favour the
model that wrote the questions (its section 5.2)? Both are answered from few models, five to eight in the paper; hence
exact p-values over all orders of the models, and places instead of differences.

The published results of ClimaQA are Tables 3 and 5 (gold), 6 and 7 (silver) of the paper. They appear beside ours for
orientation only: questions, prompts and books are others, so that no item and no paired test can be compared.

Several runs appear side by side cell by cell, with paired tests where the same questions were asked: questions are
the same where their words are, whatever the benchmark or the id is called in either run.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, permutations

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError
from climassay.evaluation.results import Cell, Experiment, Outcome
from climassay.evaluation.scores import (
    OVERALL,
    Dataset,
    answered_cells,
    common_scores,
    is_right_or_wrong,
    metric_estimates,
    published_scores,
    score_of,
)
from climassay.evaluation.tables import TEST_HEADINGS, heading, metric_plot, paired_cells, shown_estimate, shown_value
from climassay.metrics.registry import METRICS
from climassay.reporting import Dot, DotPlot, Table, shown_p_value
from climassay.statistics import (
    Correlation,
    Estimate,
    Interval,
    PairedComparison,
    kendall,
    paired_tests,
    percentile_interval,
    spearman,
)

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
    """The paper's models in one setting.

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
    results: dict[str, dict[str, dict[str, float]]] = {}
    for outcome in (one for outcomes in answered_cells(experiment).values() for one in outcomes):
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
    """With an interval over resampled models: what other models of this kind might show."""
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
    results = []
    for metric in (one.name for one in METRICS.ordered(first.means)):
        models = [model for model in first.means.get(metric, {}) if model in second.means.get(metric, {})]
        a, b = ([side.means[metric][model] for model in models] for side in (first, second))
        if len(models) >= FEWEST_MODELS and min(len(set(a)), len(set(b))) > 1:
            exact = None
            if len(models) <= _EXACT_UP_TO:
                places, ranks = _ranks(a), _ranks(b)
                # For fixed ranks the correlation grows with the sum of products alone.
                orders = np.array(list(permutations(range(len(models)))))
                exact = float((ranks[orders] @ places >= places @ ranks - 1e-9).mean())
            results.append(
                RankAgreement(
                    metric,
                    tuple(models),
                    tuple(a),
                    tuple(b),
                    spearman(a, b, resamples=resamples, seed=seed),
                    kendall(a, b, resamples=resamples, seed=seed),
                    exact,
                    _over_questions(first, second, metric, models, resamples, seed),
                )
            )
    if not results:
        raise InputError(
            f"{first.name} and {second.name} have no metric with scores of the same {FEWEST_MODELS} models or more, so "
            "their rankings cannot be compared. To test models or settings against each other on the same questions, "
            "put them into one experiment file: what was asked before is not asked again."
        )
    return results


def _ranks(values: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks along the last axis, equals with their mean rank."""
    from scipy.stats import rankdata

    ranks: NDArray[np.float64] = rankdata(values, axis=-1)
    return ranks


def _over_questions(
    first: ModelMeans, second: ModelMeans, metric: str, models: Sequence[str], resamples: int, seed: int
) -> Interval | None:
    if metric not in first.items or metric not in second.items:
        return None
    generator = np.random.default_rng(seed)
    a, b = (_ranks(_resampled(side, metric, models, resamples, generator)) for side in (first, second))
    a, b = a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True)
    spread = np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))
    kept = spread > 0  # where all models tie in a resample there is no order to compare
    return percentile_interval((a * b).sum(axis=1)[kept] / spread[kept]) if kept.any() else None


def _resampled(
    side: ModelMeans, metric: str, models: Sequence[str], resamples: int, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Means of the models over resampled questions, shape [resamples, models]; one draw serves all models."""
    table = np.stack([side.items[metric][model] for model in models], axis=1)
    weights = generator.multinomial(len(table), np.full(len(table), 1 / len(table)), size=resamples)
    means: NDArray[np.float64] = weights @ table / len(table)
    return means


@dataclass(frozen=True, slots=True)
class SelfPreference:
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
    """One-sided, of so large an excess."""
    place: int
    """Place of the generator's excess among all models', each measured against the line of the others; 1 is the
    largest."""
    rank: int
    """The generator's place by the metric, 1 best; equals share the better place."""
    anchor_rank: int
    over_questions: Interval | None
    """95% interval of the excess when questions are resampled; None from means only."""

    @property
    def excess(self) -> float:
        """What the generator has beyond what is expected of it."""
        return self.value - self.expected


def self_preference(
    means: ModelMeans, generator: str, anchor: str = "accuracy", *, resamples: int = 1000, seed: int = 0
) -> list[SelfPreference]:
    """Whether metrics favour the model that wrote the questions.

    Each metric is regressed on the anchor over the *other* models; the generator's distance from that line, in units of
    its standard error (the externally studentised residual), is the excess that its general ability does not explain.
    The same is computed with every other model in the generator's part, which tells whether the generator stands out.

    Args:
        means: Models in one setting.
        generator: Name of the model that wrote the questions.
        anchor: Metric that is taken for ability.
        resamples: Bootstrap samples over questions, where single scores are known.
        seed: Their seed.

    Returns:
        One entry per metric with at least four models that have the anchor too.

    Raises:
        InputError: The generator or the anchor has no scores, or there are fewer than four models.

    Notes:
        With m models the line rests on m - 1 points, so that only large excesses can be seen, and ``place`` is first by
        chance once in m. The anchor must not depend on the wording of an answer (MCQ accuracy; factual accuracy reads
        words, but is made not to). An excess can also mean that the generator is better at that task than at the
        anchor's: it is evidence of favour only where metrics of the same answers disagree about it.

    References:
        Cook and Weisberg (1982), Residuals and Influence in Regression, section 2.2, for the residual.
    """
    if generator not in means.means.get(anchor, {}):
        raise InputError(f"{means.name} has no {anchor} of a model {generator!r} in the setting {means.setting!r}.")
    results = []
    for metric in (one.name for one in METRICS.ordered(means.means)):
        models = means.models(anchor, metric) if metric != anchor else []
        if generator in models and len(models) >= FEWEST_MODELS + 1:
            results.append(_self_preference_by(means, generator, anchor, metric, models, resamples, seed))
    if not results:
        raise InputError(f"{means.name} has fewer than {FEWEST_MODELS + 1} models to compare {generator} with.")
    return results


def _self_preference_by(
    means: ModelMeans, generator: str, anchor: str, metric: str, models: list[str], resamples: int, seed: int
) -> SelfPreference:
    from scipy.stats import t

    x, y = (np.array([means.means[name][model] for model in models]) for name in (anchor, metric))
    own = models.index(generator)
    excesses, errors = np.array([_excess(x, y, place) for place in range(len(models))]).T
    # Points exactly on one line leave no scale; the sign is all that is known then.
    studentised = excesses / np.maximum(errors, 1e-12)
    over_questions = None
    if anchor in means.items and metric in means.items:
        # One generator a task with the same seed: metrics of the same answers see the same resampled questions.
        a, b = (_resampled(means, one, models, resamples, np.random.default_rng(seed)) for one in (anchor, metric))
        over_questions = percentile_interval(_excess(a, b, own)[0]) if resamples else None
    return SelfPreference(
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
        over_questions=over_questions,
    )


def _excess(
    x: NDArray[np.float64], y: NDArray[np.float64], place: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Distance of one point from the line through the others, and its standard error; both of shape [...]."""
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


MOST_TESTS = 60
"""Pairs of cells that are all tested; above it only cells that share model or setting are."""


@dataclass(frozen=True, slots=True)
class RunScore:
    """A cell's score, and the run that it is from."""

    run: str
    name: str
    """Name of the experiment."""
    cell: Cell
    estimate: Estimate
    """Wilson's interval for binary metrics, else bootstrap over questions."""


@dataclass(frozen=True, slots=True)
class RunTest:
    """Cells of two runs on the questions that both were asked."""

    first: RunScore
    second: RunScore
    result: PairedComparison
    """Second less first, by McNemar's exact test (binary metrics), else by sign flips; Holm over the comparison."""


@dataclass(frozen=True, slots=True)
class RunComparison:
    """One metric in several runs."""

    metric: str
    level: str
    scores: tuple[RunScore, ...]
    tests: tuple[RunTest, ...]


def metrics_in(experiments: Sequence[Experiment]) -> list[str]:
    """Metrics that some outcome has a score in, in the order of tables."""
    present = dict.fromkeys(name for one in experiments for outcome in one.outcomes for name in outcome.scores)
    return [one.name for one in METRICS.ordered(present)]


def compare_runs(
    experiments: Sequence[Experiment], metric: str, *, level: str = OVERALL, seed: int = 0
) -> RunComparison:
    """One metric of several runs, cell by cell.

    Args:
        experiments: In the order in which they are shown; none twice.
        metric: A name of :data:`~climassay.metrics.METRICS`.
        level: A level of questions, or ``overall``.
        seed: Seed of bootstrap and sign flips.

    Raises:
        InputError: There is no such metric.
    """
    METRICS.find(metric)
    results = [(one, cell, chosen) for one in experiments for cell, chosen in _chosen_outcomes(one, metric, level)]
    values = [[v for outcome in chosen if (v := score_of(outcome, metric)) is not None] for _, _, chosen in results]
    # As the page of each run has it.
    estimates = metric_estimates([(METRICS[metric], column) for column in values], seed)
    scores = [
        RunScore(experiment.run, experiment.name, cell, estimate)
        for (experiment, cell, _), estimate in zip(results, estimates, strict=True)
    ]
    columns = list(zip(scores, (chosen for _, _, chosen in results), strict=True))
    pairs = [(a, b) for a, b in combinations(columns, 2) if a[0].run != b[0].run]
    if len(pairs) > MOST_TESTS:
        pairs = [
            (a, b) for a, b in pairs if a[0].cell.model == b[0].cell.model or a[0].cell.setting == b[0].cell.setting
        ]
    common = [(a[0], b[0], common_scores(a[1], b[1], metric)) for a, b in pairs]
    common = [(first, second, both) for first, second, both in common if both[0]]
    binary = [is_right_or_wrong(METRICS[metric], *both) for _, _, both in common]
    tests = paired_tests([both for _, _, both in common], binary, seed)
    return RunComparison(
        metric,
        level,
        tuple(scores),
        tuple(RunTest(first, second, test) for (first, second, _), test in zip(common, tests, strict=True)),
    )


def _chosen_outcomes(experiment: Experiment, metric: str, level: str) -> Iterator[tuple[Cell, tuple[Outcome, ...]]]:
    """Outcomes of the level by cell, under the words of their questions; cells without any score are left out."""
    words = {
        (name, one.id): "\n".join((one.question, *one.options, one.answer))
        for name, asked in experiment.questions.items()
        for one in asked
    }
    for cell, outcomes in answered_cells(experiment).items():
        chosen = [outcome for outcome in outcomes if level in (OVERALL, outcome.level)]
        if METRICS[metric].scores(cell.task) and any(score_of(outcome, metric) is not None for outcome in chosen):
            named = ((words.get((cell.benchmark, one.question), one.question), one) for one in chosen)
            yield cell, tuple(replace(one, question=text) for text, one in named)


def comparison_table(found: RunComparison) -> Table:
    """Every cell of every run on a line of its own."""
    names = _run_names(found)
    rows = [
        (
            one.cell.benchmark,
            one.cell.model,
            one.cell.setting,
            names[one.run],
            str(one.estimate.n),
            shown_estimate(found.metric, one.estimate),
        )
        for one in found.scores
    ]
    metric = METRICS[found.metric]
    return Table.of(
        f"{heading(metric)}, {found.level}",
        ["benchmark", "model", "setting", "run", "n", metric.label],
        rows,
        left=4,
        note="In brackets: 95% intervals." + _unit(found.metric),
    )


def comparison_test_table(found: RunComparison) -> Table | None:
    """Paired tests between the runs; None where no two of them asked the same question."""
    if not found.tests:
        return None
    names = _run_names(found)
    rows = [
        (_named(test.first, names), _named(test.second, names), *paired_cells(test.result, found.metric))
        for test in found.tests
    ]
    kinds = dict.fromkeys("sign flip" if test.result.exact is None else "McNemar, exact" for test in found.tests)
    return Table.of(
        "Compared on the questions that both runs asked",
        ["first", "second", "n", "second -\nfirst", *TEST_HEADINGS],
        rows,
        left=2,
        strong=[number for number, test in enumerate(found.tests) if test.result.p_holm < 0.05],
        note=f"Paired test: {' and '.join(kinds)}. Interval: differences that sign flips do not reject. gained / lost: "
        "questions that only the second, or only the first, got right. Holm: corrected for all tests of this table; "
        "rows below 0.05 are set off." + _unit(found.metric),
    )


def comparison_figure(found: RunComparison) -> DotPlot | None:
    """Every cell with its interval, a colour per run; None where there is none."""
    if not found.scores:
        return None
    names = _run_names(found)
    dots = [Dot(_named(one, names), names[one.run], one.estimate.value, *one.estimate.interval) for one in found.scores]
    return metric_plot(METRICS[found.metric], dots, [one.estimate.n for one in found.scores])


def _named(one: RunScore, names: Mapping[str, str]) -> str:
    return f"{one.cell.model}, {one.cell.setting} ({names[one.run]})"


def _run_names(found: RunComparison) -> dict[str, str]:
    """What each run is called: as its experiment, with its id where another run is called so too."""
    names = {one.run: one.name or one.run for one in found.scores}
    shared = [name for name, runs in Counter(names.values()).items() if runs > 1]
    return {run: f"{name}, {run}" if name in shared and name != run else name for run, name in names.items()}


def _unit(metric: str) -> str:
    return " In per cent." if METRICS[metric].percent else ""


def agreement_table(found: Sequence[RankAgreement], first: ModelMeans, second: ModelMeans) -> Table:
    """Rank correlation of models between two benchmarks, a row per metric."""
    settings = " and ".join(dict.fromkeys((first.setting, second.setting)))
    return Table.of(
        f"Do {first.name} and {second.name} rank models alike? Setting {settings}",
        ["metric", "models", "Spearman", "95%, models", "95%, questions", "Kendall", "95%, models", "p"],
        [
            [
                METRICS[one.metric].label,
                str(len(one.models)),
                f"{one.spearman.value:.2f}",
                _shown_interval(one.spearman.interval),
                _shown_interval(one.over_questions),
                f"{one.kendall.value:.2f}",
                _shown_interval(one.kendall.interval),
                shown_p_value(one.spearman.p_value if one.p_value is None else one.p_value),
            ]
            for one in found
        ],
        note="95%, models: bootstrap over models, wide because there are few, and without width where no resample can "
        "break the order. 95%, questions: bootstrap over the questions of both (only where single scores are known). "
        "p: one-sided over all orders of the models (up to eight models, else asymptotic and two-sided).",
    )


def means_table(found: Sequence[RankAgreement], first: ModelMeans, second: ModelMeans) -> Table:
    """The means behind the rank correlations, a row per model and metric."""
    return Table.of(
        "Means behind it",
        ["metric", "model", first.name, second.name],
        [
            [METRICS[one.metric].label, model, shown_value(one.metric, a), shown_value(one.metric, b)]
            for one in found
            for model, a, b in zip(one.models, one.first, one.second, strict=True)
        ],
        left=2,
        grouped=1,
    )


def self_preference_table(found: Sequence[SelfPreference], means: ModelMeans) -> Table:
    """How metrics treat the generating model, a row per metric."""
    generator, anchor = found[0].generator, METRICS[found[0].anchor].label
    return Table.of(
        f"Do metrics favour {generator}, which wrote the questions? {means.name}, setting {means.setting}",
        [
            "metric",
            "models",
            f"place by\n{anchor}",
            "place by\nmetric",
            "value",
            "expected",
            "excess",
            "95%, questions",
            "t",
            "p",
            "excess's\nplace",
        ],
        [
            [
                METRICS[one.metric].label,
                str(one.models),
                str(one.anchor_rank),
                str(one.rank),
                f"{one.value:.3f}",
                f"{one.expected:.3f}",
                f"{one.excess:+.3f}",
                _shown_interval(one.over_questions),
                f"{one.studentised:.2f}",
                shown_p_value(one.p_value),
                f"{one.place} of {one.models}",
            ]
            for one in found
        ],
        note=f"expected: from the line between {anchor} and the metric over the other models. t: the excess in units "
        "of its standard error, with three degrees of freedom fewer than models; p: one-sided. excess's place: among "
        "the excesses of all models, each against the line of the others; the first place falls to any model by chance "
        f"once in {found[0].models}. Few models show only large favours, and a model may be better at one task than at "
        "another: read rows of the same answers against each other.",
    )


def _shown_interval(interval: Interval | None) -> str:
    return "-" if interval is None else f"{interval.low:.2f} to {interval.high:.2f}"
