"""Scores of an experiment: means with intervals, constant answers, counts and paired tests."""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Literal, TypeVar, get_args

import numpy as np

from climassay.evaluation.long_answers import SideBySide, side_by_side
from climassay.evaluation.position_bias import PositionRow, position_row
from climassay.evaluation.results import Cell, ConstantScore, Experiment, Outcome, Preference, TaskGroup
from climassay.evaluation.tasks import ASKED_AGAIN, Prediction, ReadingMethod
from climassay.metrics.long_answers import HIGHEST, LOWEST, DimensionRating
from climassay.metrics.registry import METRICS, Metric
from climassay.questions import LEVELS, PROSE_KIND, TYPES, Kind, Question
from climassay.statistics import (
    Estimate,
    Interval,
    PairedComparison,
    constant_baseline,
    mcnemar,
    mean_estimates,
    paired_tests,
    proportion,
    wilson_interval,
)

OVERALL = "overall"
Family = Literal["settings", "models"]
P = TypeVar("P", bound="PairedScores")
_Variant = tuple[str, str, str]
"""Label of the model, label of the setting, and scoring."""


@dataclass(frozen=True, slots=True)
class Score:
    """Mean score of one cell (a model in a setting on a task) by one metric, at one level."""

    cell: Cell
    metric: str
    level: str
    """Level in :data:`LEVELS`, or ``overall``."""
    estimate: Estimate
    """Mean over the questions with a score, with Wilson's interval for binary metrics and a bootstrap interval for
    others."""
    unscored: int
    """Number of questions without a score, which are excluded from the mean."""


@dataclass(frozen=True, slots=True)
class CellCounts:
    """Counts of a model's answers in one setting: failed, not parsed, not scored, or violating a constraint."""

    cell: Cell
    n: int
    failed: int
    """Number of failed answers, which have the score 0."""
    unparsed: int
    violations: int
    """Number of answers that violate a constraint, such as more than two sentences; they are scored unchanged."""
    kinds: tuple[tuple[str, int], ...]
    """Violated constraints, each with its number of answers, the most frequent first."""
    unscored: tuple[tuple[str, int], ...]
    """Metrics, each with the number of answers for which it could not be computed."""
    readings: tuple[tuple[ReadingMethod, int], ...] = ()
    """Reading methods, each with its number of choices, the most frequent first."""


@dataclass(frozen=True, slots=True)
class PairedScores:
    """Paired comparison of two settings of a model, or of two models in a setting, on the same questions."""

    family: Family
    """Property in which the two differ: the setting or the model."""
    fixed: str
    """Label of the property that both share: the model for ``settings``, the setting for ``models``."""
    first: str
    second: str
    difference: Estimate
    """Mean difference, second minus first, over the questions with both scores, with the interval of the test."""
    first_only: int | None
    """Number of questions that only the first answered correctly in the file's option order; None unless the metric is
    binary."""
    second_only: int | None
    test: str
    """Name of the test: ``McNemar, exact``, ``sign flip``, or ``sign flip over questions`` if scores are means over
    several option orders."""
    p_value: float
    p_holm: float
    """P-value with Holm's correction for all tests of the family on the benchmark."""


@dataclass(frozen=True, slots=True)
class PairedTest(PairedScores):
    """Paired comparison of two models or settings of an experiment by one metric."""

    benchmark: str
    metric: str


@dataclass(frozen=True, slots=True)
class PairedRow(PairedScores):
    """Paired comparison of two models or settings of a multiple-choice evaluation by accuracy."""

    scoring: str


@dataclass(frozen=True, slots=True)
class DimensionScore:
    """Mean rating of a model's long answers in one setting, in one dimension of adequacy."""

    cell: Cell
    dimension: str
    estimate: Estimate
    """Mean over the rated answers, from 1 to 5."""
    issues: tuple[tuple[str, int], ...]
    """Faults that the judge named, each with its number of answers, the most frequent first."""


@dataclass(frozen=True, slots=True)
class PointCounts:
    """Numbers of sentences and references in a model's long answers in one setting, by the result of checking them."""

    cell: Cell
    sentences: Mapping[str, int]
    """Number of sentences by status."""
    references: Mapping[str, int]
    """Number of references by status."""


@dataclass(frozen=True, slots=True)
class ExperimentScores:
    """Scores, baselines, counts and tests of an experiment."""

    scores: tuple[Score, ...]
    constants: tuple[ConstantScore, ...]
    counts: tuple[CellCounts, ...]
    tests: tuple[PairedTest, ...]
    positions: Mapping[Cell, "PositionRow"] = field(default_factory=dict)
    """Position bias by cell (a model in a setting on a task), if its questions were asked in several option orders."""
    side_by_side: Mapping[str, Mapping[str, SideBySide]] = field(default_factory=dict)
    """Side-by-side comparisons of long answers, by benchmark and name of the trained judge (empty for the plan's
    judge)."""
    dimensions: tuple[DimensionScore, ...] = ()
    points: tuple[PointCounts, ...] = ()

    def get(self, cell: Cell, metric: str, level: str = OVERALL) -> Score | None:
        """Return the score of a cell in a metric at a level; None if there is none."""
        results = (
            score for score in self.scores if score.cell == cell and score.metric == metric and score.level == level
        )
        return next(results, None)


def outcomes_by_cell(experiment: Experiment) -> dict[Cell, list[Outcome]]:
    """Return the outcomes of each cell (a model in a setting on a task), in the order of the experiment file."""
    results: dict[Cell, list[Outcome]] = {record.cell: [] for record in experiment.cells}
    for outcome in experiment.outcomes:
        results.setdefault(outcome.cell, []).append(outcome)
    return results


def all_failed(answers: Sequence[Outcome | Prediction]) -> bool:
    """Return whether all answers failed."""
    return all(answer.error is not None for answer in answers)


def answered_cells(experiment: Experiment) -> dict[Cell, list[Outcome]]:
    """Return the outcomes of each cell (a model in a setting on a task) with at least one answered request.

    Only these cells have scores.
    """
    return {cell: outcomes for cell, outcomes in outcomes_by_cell(experiment).items() if not all_failed(outcomes)}


def _compute_weights(group: TaskGroup, sizes: Mapping[str, int]) -> dict[str, float]:
    """Return the weight of each question of a benchmark in a group's mean, by benchmark.

    ``sizes`` are the numbers of questions by benchmark.
    """
    total = sum(sizes.values())
    return {name: 1.0 if group.by_size else total / (len(sizes) * size) for name, size in sizes.items()}


def _select_group_scores(group: TaskGroup, scores_by_benchmark: Mapping[str, Collection[str]]) -> list[str]:
    """Return the names of the scores that a group averages, given the scores of its benchmarks."""
    names = dict.fromkeys(score for scores in scores_by_benchmark.values() for score in scores)
    if not group.metric:
        return [score for score in names if all(score in scores for scores in scores_by_benchmark.values())]
    return [score for score in names if group.includes(score)]


def _pool_cells(experiment: Experiment, cells: Mapping[Cell, Sequence[Outcome]]) -> dict[Cell, list[Outcome]]:
    """Return a pooled cell for each group, model and setting, with the outcomes of all benchmarks of the group.

    Scores are weighted so that their mean is the score of the group.
    """
    outcomes_by_pooled_cell: dict[Cell, list[Outcome]] = {}
    for name, groups in experiment.groups.items():
        member_names = {member for group in groups for member in group.members}
        variants: dict[tuple[str, str], dict[str, Cell]] = defaultdict(dict)
        for cell in cells:
            if cell.benchmark in member_names:
                variants[cell.model, cell.setting][cell.benchmark] = cell
        for (model, setting), cell_by_benchmark in variants.items():
            outcomes = {benchmark: cells[cell] for benchmark, cell in cell_by_benchmark.items()}
            scores: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
            for group in groups:
                names = {
                    benchmark: dict.fromkeys(score for outcome in outcomes[benchmark] for score in outcome.scores)
                    for benchmark in group.members
                    if benchmark in outcomes
                }
                for score in _select_group_scores(group, names):
                    sizes = {benchmark: len(outcomes[benchmark]) for benchmark in names if score in names[benchmark]}
                    for benchmark, weight in _compute_weights(group, sizes).items():
                        for outcome in outcomes[benchmark]:
                            if (value := score_of(outcome, score)) is not None:
                                scores[benchmark, outcome.question][score] = weight * value
            kinds = [cell.task for cell in cell_by_benchmark.values()]
            pooled_cell = Cell(name, model, setting, _find_shared_kind(kinds))
            outcomes_by_pooled_cell[pooled_cell] = [
                replace(
                    outcome,
                    cell=pooled_cell,
                    question=f"{benchmark}/{outcome.question}",
                    scores=scores.get((benchmark, outcome.question), {}),
                )
                for benchmark in outcomes
                for outcome in outcomes[benchmark]
            ]
    return {
        cell: outcomes
        for cell, outcomes in outcomes_by_pooled_cell.items()
        if any(outcome.scores for outcome in outcomes)
    }


def _pool_constants(experiment: Experiment) -> Iterator[ConstantScore]:
    values: dict[str, dict[str, float]] = defaultdict(dict)
    for constant in experiment.constants:
        values[constant.benchmark][constant.metric] = constant.value
    for name, groups in experiment.groups.items():
        for group in groups:
            values_by_member = {member: values[member] for member in group.members if member in experiment.questions}
            for score in _select_group_scores(group, values_by_member):
                sizes = {
                    member: len(experiment.questions[member])
                    for member in values_by_member
                    if score in values_by_member[member]
                }
                weights = _compute_weights(group, sizes)
                total = sum(weights[member] * size * values_by_member[member][score] for member, size in sizes.items())
                kinds = [constant.task for constant in experiment.constants if constant.benchmark in values_by_member]
                mean = total / sum(sizes.values())
                yield ConstantScore(name, score, OVERALL, "each task's own", mean, _find_shared_kind(kinds))


def _find_shared_kind(kinds: Sequence[Kind]) -> Kind:
    """Return the common kind of a group's questions, or freeform if they are of several kinds."""
    return kinds[0] if len(set(kinds)) == 1 else PROSE_KIND


def metrics_of(outcomes: Sequence[Outcome]) -> list[Metric]:
    """Return the metrics of outcomes in the tables' order, with the judge's metrics even if all judgements failed."""
    metric_names = dict.fromkeys(name for outcome in outcomes for name in outcome.scores)
    if any(outcome.judgement is not None for outcome in outcomes):
        metric_names["judged_accuracy"] = None  # even if every judgement failed, so that the failures are counted
    if any(outcome.assessment is not None and outcome.assessment.errors for outcome in outcomes):
        metric_names |= dict.fromkeys(("rubric_score", "presentation", "epistemics"))  # likewise
    tasks = {outcome.cell.task for outcome in outcomes}
    return [metric for metric in METRICS.ordered(metric_names) if any(map(metric.scores, tasks))]


def score_experiment(experiment: Experiment, *, tested: Sequence[str] | None = None, seed: int = 0) -> ExperimentScores:
    """Compute all scores, counts and tests of an experiment.

    Args:
        experiment: Experiment with its outcomes.
        tested: Names of the metrics to compute and test; by default those that the experiment names. If it names none,
            all metrics are computed, and one or two per task tested.
        seed: Seed of the bootstrap and the sign flips.

    Raises:
        InputError: A metric does not exist.
    """
    settings = experiment.config.get("metrics")
    tested = tested or (settings.get("names") if isinstance(settings, Mapping) else None)
    names_present = {name for outcome in experiment.outcomes for name in outcome.scores}
    metrics = [METRICS.find(name) for name in tested] if tested else METRICS.ordered({*METRICS, *names_present})
    names = [metric.name for metric in metrics if tested or metric.tested]
    cells = outcomes_by_cell(experiment)
    cells |= _pool_cells(experiment, cells)
    answered_by_cell = {cell: outcomes for cell, outcomes in cells.items() if not all_failed(outcomes)}
    return ExperimentScores(
        scores=tuple(_score_metrics(answered_by_cell, seed)),
        constants=score_constants(experiment),
        counts=tuple(_count_answers(cell, outcomes) for cell, outcomes in cells.items()),
        tests=tuple(
            test
            for benchmark in dict.fromkeys(cell.benchmark for cell in cells)
            for family in get_args(Family)
            for test in _test_cell_pairs(benchmark, family, answered_by_cell, names, seed)
        ),
        positions={
            cell: position_row((cell.model, predictions[0].setting, predictions[0].scoring), predictions)
            for cell, predictions in experiment.predictions.items()
            if any(prediction.permutation > 0 for prediction in predictions) and not all_failed(predictions)
        },
        side_by_side={
            name: result for name in experiment.questions if (result := _compare_side_by_side(experiment, name, seed))
        },
        dimensions=tuple(
            score for cell, outcomes in cells.items() for score in _score_dimensions(cell, outcomes, seed)
        ),
        points=tuple(
            _count_points(cell, outcomes)
            for cell, outcomes in cells.items()
            if any(outcome.points for outcome in outcomes)
        ),
    )


def _count_points(cell: Cell, outcomes: Sequence[Outcome]) -> PointCounts:
    points = [point for outcome in outcomes for point in outcome.points]
    references: Counter[str] = Counter(reference.status for point in points for reference in point.references)
    return PointCounts(cell, Counter(point.status for point in points), references)


def _compare_side_by_side(experiment: Experiment, benchmark: str, seed: int) -> dict[str, SideBySide]:
    by_judge: dict[str, list[Preference]] = defaultdict(list)
    for preference in experiment.preferences:
        if preference.first.benchmark == benchmark:
            by_judge[preference.judge].append(preference)
    results = {judge: side_by_side(preferences, seed=seed) for judge, preferences in by_judge.items()}
    return {judge: result for judge, result in results.items() if result is not None}


def _score_dimensions(cell: Cell, outcomes: Sequence[Outcome], seed: int) -> Iterator[DimensionScore]:
    by_dimension: dict[str, list[DimensionRating]] = defaultdict(list)
    for outcome in outcomes:
        for rating in outcome.assessment.ratings if outcome.assessment is not None else ():
            by_dimension[rating.dimension].append(rating)
    for name, ratings in by_dimension.items():
        issues = Counter(issue for rating in ratings for issue in rating.issues)
        [estimate] = mean_estimates([[rating.rating for rating in ratings]], seed=seed)
        if estimate.interval.low == estimate.interval.high:
            # Equal ratings have a bootstrap interval without width; Wilson's for the share of the scale is wider.
            width, n = HIGHEST - LOWEST, estimate.n
            bounds = wilson_interval((estimate.value - LOWEST) / width * n, n)
            estimate = replace(estimate, interval=Interval(*(LOWEST + width * bound for bound in bounds)))
        yield DimensionScore(cell, name, estimate, tuple(issues.most_common()))


def score_of(outcome: Outcome, metric: str) -> float | None:
    """Return an outcome's score in a metric: 0 for a failed answer, None if the metric could not be computed."""
    value = outcome.scores.get(metric)
    return 0.0 if value is None and outcome.error is not None else value


def is_right_or_wrong(metric: Metric, *columns: Sequence[float]) -> bool:
    """Return whether a metric is binary and all scores in the columns are 0 or 1, not means over option orders."""
    return metric.binary and all(value in (0.0, 1.0) for column in columns for value in column)


def _score_metrics(cells: Mapping[Cell, Sequence[Outcome]], seed: int) -> Iterator[Score]:
    results: list[tuple[Cell, Metric, str, int, list[float]]] = []
    for cell, outcomes in cells.items():
        levels = [level for level in LEVELS if any(outcome.level == level for outcome in outcomes)]
        for metric in metrics_of(outcomes):
            for level in [*levels, OVERALL]:
                scores = [score_of(outcome, metric.name) for outcome in outcomes if level in (OVERALL, outcome.level)]
                values = [value for value in scores if value is not None]
                if values:
                    results.append((cell, metric, level, len(scores) - len(values), values))
    estimates = metric_estimates([(metric, values) for _, metric, _, _, values in results], seed)
    for (cell, metric, level, n_unscored, _), estimate in zip(results, estimates, strict=True):
        yield Score(cell, metric.name, level, estimate, n_unscored)


def metric_estimates(columns: Sequence[tuple[Metric, Sequence[float]]], seed: int) -> Iterator[Estimate]:
    """Yield the mean of each column of scores, with Wilson's interval if all are 0 or 1, else a bootstrap one.

    Columns of equal scores from 0 to 1 get Wilson's interval too, because their bootstrap interval has no width.
    """
    is_binary = [
        is_right_or_wrong(metric, values) or (len(set(values)) == 1 and 0 <= values[0] <= 1)
        for metric, values in columns
    ]
    columns_to_resample = [values for (_, values), binary in zip(columns, is_binary, strict=True) if not binary]
    means = iter(mean_estimates(columns_to_resample, seed=seed))
    for (_, values), binary in zip(columns, is_binary, strict=True):
        yield proportion(math.fsum(values), len(values)) if binary else next(means)


def score_constants(experiment: Experiment) -> tuple[ConstantScore, ...]:
    """Return the scores of the majority-class baseline on each benchmark, by metric and level."""
    external_benchmarks = {constant.benchmark for constant in experiment.constants}
    return (
        *(
            constant
            for name, questions in experiment.questions.items()
            if name not in external_benchmarks
            for constant in _score_benchmark_constants(name, questions)
        ),
        *experiment.constants,
        *_pool_constants(experiment),
    )


def _score_benchmark_constants(benchmark: str, questions: Sequence[Question]) -> Iterator[ConstantScore]:
    for task, kind in TYPES.items():
        if not (kind.has_options or kind.has_gap):
            continue
        metric = "accuracy" if kind.has_options else "exact_match"
        task_questions = [question for question in questions if question.kind == task]
        levels_present = [level for level in LEVELS if any(question.level == level for question in task_questions)]
        for level in [*levels_present, OVERALL] if task_questions else []:
            answers = [
                question.type.expected_answer(question)
                for question in task_questions
                if level in (OVERALL, question.level)
            ]
            baseline = constant_baseline(answers)
            yield ConstantScore(benchmark, metric, level, str(baseline.label), baseline.accuracy, task)


def _count_answers(cell: Cell, outcomes: Sequence[Outcome]) -> CellCounts:
    n_answers_by_violation = Counter(violation for outcome in outcomes for violation in set(outcome.violations))
    n_unscored_by_metric = {
        metric.name: sum(score_of(outcome, metric.name) is None for outcome in outcomes)
        for metric in metrics_of(outcomes)
    }
    return CellCounts(
        cell,
        len(outcomes),
        failed=sum(outcome.error is not None for outcome in outcomes),
        unparsed=sum(outcome.chosen is None and outcome.error is None for outcome in outcomes)
        if TYPES[cell.task].has_options
        else 0,
        violations=sum(bool(outcome.violations) for outcome in outcomes),
        kinds=tuple(n_answers_by_violation.most_common()),
        unscored=tuple((name, count) for name, count in n_unscored_by_metric.items() if count),
        readings=count_reading_methods(outcomes),
    )


def count_reading_methods(answers: Iterable[Outcome | Prediction]) -> tuple[tuple[ReadingMethod, int], ...]:
    """Count the methods by which choices were determined, most frequent first; answers without a method are ignored."""
    return tuple(Counter(answer.reading for answer in answers if answer.reading is not None).most_common())


def _test_cell_pairs(
    benchmark: str, family: Family, cells: Mapping[Cell, Sequence[Outcome]], metric_names: Collection[str], seed: int
) -> Iterator[PairedTest]:
    """Yield paired tests, on common questions, of every two settings of a model or of every two models in a setting."""
    groups: dict[tuple[Kind, str, str], list[Cell]] = defaultdict(list)
    for cell in cells:
        if cell.benchmark == benchmark:
            shared_label = cell.model if family == "settings" else cell.setting
            groups[cell.task, shared_label, cell.scoring].append(cell)
    pairs: list[dict[str, Any]] = []
    values: list[tuple[list[float], list[float]]] = []
    for (_, shared_label, _), group in groups.items():
        for first, second in combinations(group, 2):
            labels = (first.setting, second.setting) if family == "settings" else (first.model, second.model)
            for metric in metrics_of([*cells[first], *cells[second]]):
                score_pair = common_scores(cells[first], cells[second], metric.name)
                if metric.name in metric_names and score_pair[0]:
                    pairs.append(
                        {"fixed": shared_label, "first": labels[0], "second": labels[1], "metric": metric.name}
                    )
                    values.append(score_pair)
    is_binary = [
        is_right_or_wrong(METRICS[pair["metric"]], *score_pair) for pair, score_pair in zip(pairs, values, strict=True)
    ]
    for pair, result in zip(pairs, paired_tests(values, is_binary, seed), strict=True):
        yield _build_comparison(PairedTest, result, benchmark=benchmark, family=family, **pair)


def _build_comparison(kind: type[P], result: PairedComparison, **names: Any) -> P:
    test = "sign flip" if result.exact is None else "McNemar, exact"
    return kind(
        difference=result.difference,
        first_only=result.first_only,
        second_only=result.second_only,
        test=test,
        p_value=result.p_value,
        p_holm=result.p_holm,
        **names,
    )


def common_scores(first: Sequence[Outcome], second: Sequence[Outcome], metric: str) -> tuple[list[float], list[float]]:
    """Return the scores of questions scored in both sequences of outcomes, in the order of ``first``."""
    second_scores = {outcome.question: score_of(outcome, metric) for outcome in second}
    pairs = [(score_of(outcome, metric), second_scores.get(outcome.question)) for outcome in first]
    complete_pairs = [
        (first_score, second_score)
        for first_score, second_score in pairs
        if first_score is not None and second_score is not None
    ]
    return [first_score for first_score, _ in complete_pairs], [second_score for _, second_score in complete_pairs]


@dataclass(frozen=True, slots=True)
class AccuracyRow:
    """Accuracy of a model in one setting by one scoring method, at one level."""

    model: str
    """Label of the model; empty if the predictions have none."""
    setting: str
    scoring: str
    level: str
    accuracy: Estimate | None
    """Mean over questions of the proportion of option orders with a correct answer; n is the number of questions.

    None if all requests failed.
    """
    baseline: float
    """Accuracy of the majority-class baseline, which always gives the same letter."""
    chance: float
    """Expected accuracy of guessing: the mean of 1 / number of options."""
    unparsed: int
    """Number of answers that name no option. These answers count as wrong."""
    failed: int
    """Number of failed requests, which count as wrong."""
    asked_again: int = 0
    """Number of answers that named no option. For each of these, the model was then asked which option it had
    chosen."""
    readings: tuple[tuple[ReadingMethod, int], ...] = ()
    """Reading methods, each with its number of choices, the most frequent first."""


@dataclass(frozen=True, slots=True)
class McqScores:
    """Scores of a multiple-choice evaluation."""

    accuracy: tuple[AccuracyRow, ...]
    paired: tuple[PairedRow, ...]
    position: tuple[PositionRow, ...]


def score_mcq(predictions: Sequence[Prediction], *, seed: int = 0) -> McqScores:
    """Compute accuracies, paired tests and position bias of a multiple-choice evaluation.

    Args:
        predictions: Predictions of :func:`~climassay.evaluation.tasks.ask_mcq`.
        seed: Seed of the bootstrap and the sign flips.
    """
    groups: dict[_Variant, list[Prediction]] = defaultdict(list)
    for prediction in predictions:
        groups[prediction.model, prediction.setting, prediction.scoring].append(prediction)
    rows = tuple(row for variant, group in groups.items() for row in _make_accuracy_rows(variant, group, seed))
    answered_groups = {variant: group for variant, group in groups.items() if not all_failed(group)}
    permuted_groups = [
        (variant, group) for variant, group in answered_groups.items() if any(row.permutation > 0 for row in group)
    ]
    paired_rows = tuple(row for family in get_args(Family) for row in _make_paired_rows(family, answered_groups, seed))
    return McqScores(rows, paired_rows, tuple(position_row(variant, group) for variant, group in permuted_groups))


def _make_accuracy_rows(variant: _Variant, group: Sequence[Prediction], seed: int) -> Iterator[AccuracyRow]:
    sizes = {row.question: len(row.order) for row in group}
    levels_present = [level for level in LEVELS if any(row.level == level for row in group)]
    for level in [*levels_present, OVERALL]:
        rows = [row for row in group if level in (OVERALL, row.level)]
        means = _average_correctness(rows)
        accuracy = next(metric_estimates([(METRICS["accuracy"], list(means.values()))], seed))
        yield AccuracyRow(
            *variant,
            level,
            None if all_failed(group) else accuracy,
            baseline=max(Counter(row.correct_position for row in rows).values()) / len(rows),
            chance=float(np.mean([1 / sizes[question] for question in means])),
            unparsed=sum(row.chosen is None and row.error is None for row in rows),
            failed=sum(row.error is not None for row in rows),
            asked_again=sum(row.method == ASKED_AGAIN for row in rows),
            readings=count_reading_methods(rows),
        )


def _average_correctness(rows: Iterable[Prediction]) -> dict[str, float]:
    """Return the proportion of option orders with a correct answer, by question."""
    correctness: dict[str, list[bool]] = defaultdict(list)
    for row in rows:
        correctness[row.question].append(row.correct)
    return {question: float(np.mean(values)) for question, values in correctness.items()}


def _make_paired_rows(
    family: Family, groups: Mapping[_Variant, Sequence[Prediction]], seed: int
) -> Iterator[PairedRow]:
    differing_index, shared_index = (1, 0) if family == "settings" else (0, 1)
    pairs = [
        (first, second)
        for first, second in combinations(groups, 2)
        if first[shared_index] == second[shared_index] and first[2] == second[2]
    ]
    has_one_order_by_pair = [all(row.permutation == 0 for row in groups[first]) for first, _ in pairs]
    values = []
    for first, second in pairs:
        first_means, second_means = _average_correctness(groups[first]), _average_correctness(groups[second])
        values.append((list(first_means.values()), [second_means[question] for question in first_means]))
    for (first, second), has_one_order, result in zip(
        pairs, has_one_order_by_pair, paired_tests(values, has_one_order_by_pair, seed), strict=True
    ):
        # Gained and lost questions are counted in the file's option order.
        exact_test = mcnemar(
            *([row.correct for row in groups[variant] if row.permutation == 0] for variant in (first, second))
        )
        names = {"first": first[differing_index], "second": second[differing_index], "scoring": first[2]}
        row = _build_comparison(PairedRow, result, family=family, fixed=first[shared_index], **names)
        test = row.test if has_one_order else "sign flip over questions"
        yield replace(row, first_only=exact_test.first_only, second_only=exact_test.second_only, test=test)
