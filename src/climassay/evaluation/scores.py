"""From what an experiment keeps to its numbers: means with intervals, constants, counts, tests, position bias.

The published results of ClimaQA are Tables 3 and 5 (gold), 6 and 7 (silver) of the paper. They appear beside ours for
orientation only: questions, prompts and books are others, so that no item and no paired test can be compared.
"""

import csv
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, get_args

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError
from climassay.evaluation.long_answers import SideBySide, side_by_side
from climassay.evaluation.results import Cell, ConstantScore, Experiment, Outcome, TaskGroup
from climassay.evaluation.tasks import ASKED_AGAIN, Prediction, ReadingMethod
from climassay.metrics.long_answers import HIGHEST, LOWEST
from climassay.metrics.registry import METRICS, Metric
from climassay.questions import LEVELS, TYPES, Kind, Question
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
"""A model's label, a setting and a scoring."""


@dataclass(frozen=True, slots=True)
class Score:
    """One metric of one cell at one level."""

    cell: Cell
    metric: str
    level: str
    """One of :data:`LEVELS` or ``overall``."""
    estimate: Estimate
    """Mean over the questions that have a score; Wilson's interval for binary metrics, else bootstrap."""
    unscored: int
    """Questions whose score could not be computed; they are in no mean."""


@dataclass(frozen=True, slots=True)
class CellCounts:
    """What went wrong in a cell."""

    cell: Cell
    n: int
    failed: int
    """Answers that failed; they score 0."""
    unparsed: int
    violations: int
    """Answers that break a constraint, for example more than two sentences; they are scored all the same."""
    kinds: tuple[tuple[str, int], ...]
    """Constraints broken, the most frequent first."""
    unscored: tuple[tuple[str, int], ...]
    """Metrics that could not be computed for some answers, with how many."""
    readings: tuple[tuple[ReadingMethod, int], ...] = ()
    """How choices were read from the model, with how many, the most frequent first."""


@dataclass(frozen=True, slots=True)
class PairedScores:
    """Two settings of a model, or two models in a setting, compared on the same questions."""

    family: Family
    """What differs between the two."""
    fixed: str
    """What they share: the model's label (settings) or the setting's (models)."""
    first: str
    second: str
    difference: Estimate
    """Mean of second - first over the questions that both have a score for, with the interval of the test."""
    first_only: int | None
    """Questions only the first got right (binary metrics, in the option order of the file)."""
    second_only: int | None
    test: str
    """``McNemar, exact``, ``sign flip``, or ``sign flip over questions`` for means over several option orders."""
    p_value: float
    p_holm: float
    """Adjusted over all tests of the family on the benchmark (Holm)."""


@dataclass(frozen=True, slots=True)
class PairedTest(PairedScores):
    """Two cells of an experiment compared by one metric."""

    benchmark: str
    metric: str


@dataclass(frozen=True, slots=True)
class PairedRow(PairedScores):
    """Two cells of an evaluation of choices compared by accuracy."""

    scoring: str


@dataclass(frozen=True, slots=True)
class DimensionScore:
    """One dimension of adequacy of the long answers of a cell."""

    cell: Cell
    dimension: str
    estimate: Estimate
    """Mean rating from 1 to 5 over the answers that were rated."""
    issues: tuple[tuple[str, int], ...]
    """What the judge found fault with, in how many answers, the most frequent first."""


@dataclass(frozen=True, slots=True)
class PointCounts:
    """What the collections said of the long answers of a cell."""

    cell: Cell
    sentences: Mapping[str, int]
    """Sentences by status."""
    references: Mapping[str, int]
    """References by status."""


@dataclass(frozen=True, slots=True)
class ExperimentScores:
    """All numbers of an experiment."""

    scores: tuple[Score, ...]
    constants: tuple[ConstantScore, ...]
    counts: tuple[CellCounts, ...]
    tests: tuple[PairedTest, ...]
    positions: Mapping[Cell, "PositionRow"] = field(default_factory=dict)
    """How choices spread over positions, in cells whose options were permuted."""
    side_by_side: Mapping[str, Mapping[str, SideBySide]] = field(default_factory=dict)
    """Long answers compared, by benchmark and name of the trained judge, which is empty for the judge of the plan."""
    dimensions: tuple[DimensionScore, ...] = ()
    points: tuple[PointCounts, ...] = ()

    def get(self, cell: Cell, metric: str, level: str = OVERALL) -> Score | None:
        """One score, or None where the cell has none."""
        results = (s for s in self.scores if s.cell == cell and s.metric == metric and s.level == level)
        return next(results, None)


def outcomes_by_cell(experiment: Experiment) -> dict[Cell, list[Outcome]]:
    """Outcomes of each cell, cells in the order of the file."""
    results: dict[Cell, list[Outcome]] = {record.cell: [] for record in experiment.cells}
    for outcome in experiment.outcomes:
        results.setdefault(outcome.cell, []).append(outcome)
    return results


def all_failed(answers: Sequence[Outcome | Prediction]) -> bool:
    """Whether no call was answered, so that nothing but the number of failures is known."""
    return all(one.error is not None for one in answers)


def answered_cells(experiment: Experiment) -> dict[Cell, list[Outcome]]:
    """Outcomes of each cell in which a call was answered; only these have figures."""
    return {cell: outcomes for cell, outcomes in outcomes_by_cell(experiment).items() if not all_failed(outcomes)}


def _weights(group: TaskGroup, sizes: Mapping[str, int]) -> dict[str, float]:
    """What a question of each benchmark weighs in the mean over all of them."""
    whole = sum(sizes.values())
    return {name: 1.0 if group.by_size else whole / (len(sizes) * size) for name, size in sizes.items()}


def _scores_of_group(group: TaskGroup, names: Mapping[str, Collection[str]]) -> list[str]:
    """Scores that a group takes, from those of each benchmark."""
    every = dict.fromkeys(score for scores in names.values() for score in scores)
    if not group.metric:
        return [score for score in every if all(score in scores for scores in names.values())]
    return [score for score in every if group.includes(score)]


def _pooled_cells(experiment: Experiment, cells: Mapping[Cell, Sequence[Outcome]]) -> dict[Cell, list[Outcome]]:
    """Cells of whole groups: the outcomes of their benchmarks, weighted so that their mean is that of the group."""
    pooled: dict[Cell, list[Outcome]] = {}
    for name, groups in experiment.groups.items():
        members = {member for group in groups for member in group.members}
        variants = {(cell.model, cell.setting): cell for cell in cells if cell.benchmark in members}
        for model, setting in variants:
            own = {c.benchmark: c for c in cells if (c.model, c.setting) == (model, setting) and c.benchmark in members}
            scores: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
            for group in groups:
                given = {
                    b: dict.fromkeys(s for one in cells[own[b]] for s in one.scores) for b in group.members if b in own
                }
                for score in _scores_of_group(group, given):
                    having = {b: len(cells[own[b]]) for b, names in given.items() if score in names}
                    for benchmark, weight in _weights(group, having).items():
                        for one in cells[own[benchmark]]:
                            if (value := score_of(one, score)) is not None:
                                scores[benchmark, one.question][score] = weight * value
            place = Cell(name, model, setting, _shared_kind([cell.task for cell in own.values()]))
            pooled[place] = [
                replace(one, cell=place, question=f"{b}/{one.question}", scores=scores.get((b, one.question), {}))
                for b, cell in own.items()
                for one in cells[cell]
            ]
    return {cell: outcomes for cell, outcomes in pooled.items() if any(one.scores for one in outcomes)}


def _pooled_constants(experiment: Experiment) -> Iterator[ConstantScore]:
    known: dict[str, dict[str, float]] = defaultdict(dict)
    for one in experiment.constants:
        known[one.benchmark][one.metric] = one.value
    for name, groups in experiment.groups.items():
        for group in groups:
            given = {member: known[member] for member in group.members if member in experiment.questions}
            for score in _scores_of_group(group, given):
                having = {b: len(experiment.questions[b]) for b, values in given.items() if score in values}
                weights = _weights(group, having)
                total = sum(weights[b] * size * given[b][score] for b, size in having.items()) / sum(having.values())
                kind = _shared_kind([one.task for one in experiment.constants if one.benchmark in given])
                yield ConstantScore(name, score, OVERALL, "each task's own", total, kind)


def _shared_kind(kinds: Sequence[Kind]) -> Kind:
    """The kind of a group's questions; freeform where there are several."""
    return kinds[0] if len(set(kinds)) == 1 else "freeform"


def metrics_of(outcomes: Sequence[Outcome]) -> list[Metric]:
    """Metrics that some of these outcomes have a score in, or were to have one, in the order of tables."""
    present = dict.fromkeys(name for outcome in outcomes for name in outcome.scores)
    if any(outcome.judgement is not None for outcome in outcomes):
        present["judged_accuracy"] = None  # also where every judgement failed, so that this is counted
    if any(one.assessment is not None and one.assessment.errors for one in outcomes):
        present |= dict.fromkeys(("rubric_score", "presentation", "epistemics"))  # likewise
    tasks = {outcome.cell.task for outcome in outcomes}
    return [metric for metric in METRICS.ordered(present) if any(map(metric.scores, tasks))]


def score_experiment(experiment: Experiment, *, tested: Sequence[str] | None = None, seed: int = 0) -> ExperimentScores:
    """All numbers of an experiment.

    Args:
        experiment: The matrix with its outcomes.
        tested: Metrics of the paired tests; by default those that the experiment names, or one or two a task.
        seed: Seed of bootstrap and sign flips.

    Raises:
        InputError: There is no such metric.
    """
    metrics = experiment.config.get("metrics")
    tested = tested or (metrics.get("names") if isinstance(metrics, Mapping) else None)
    present = {name for outcome in experiment.outcomes for name in outcome.scores}
    compared = [METRICS.find(name) for name in tested] if tested else METRICS.ordered({*METRICS, *present})
    names = [one.name for one in compared if tested or one.tested]
    cells = outcomes_by_cell(experiment)
    cells |= _pooled_cells(experiment, cells)
    answered = {cell: outcomes for cell, outcomes in cells.items() if not all_failed(outcomes)}
    return ExperimentScores(
        scores=tuple(_scores(answered, seed)),
        constants=(
            *(
                constant
                for name, questions in experiment.questions.items()
                if not any(one.benchmark == name for one in experiment.constants)
                for constant in _constants(name, questions)
            ),
            *experiment.constants,
            *_pooled_constants(experiment),
        ),
        counts=tuple(_counts(cell, outcomes) for cell, outcomes in cells.items()),
        tests=tuple(
            test
            for benchmark in dict.fromkeys(cell.benchmark for cell in cells)
            for family in get_args(Family)
            for test in _tests(benchmark, family, answered, names, seed)
        ),
        positions={
            cell: _position_row((cell.model, ones[0].setting, ones[0].scoring), ones)
            for cell, ones in experiment.predictions.items()
            if any(one.permutation > 0 for one in ones) and not all_failed(ones)
        },
        side_by_side={
            name: result for name in experiment.questions if (result := _side_by_side(experiment, name, seed))
        },
        dimensions=tuple(one for cell, outcomes in cells.items() for one in _dimensions(cell, outcomes, seed)),
        points=tuple(
            PointCounts(
                cell,
                Counter(point.status for one in outcomes for point in one.points),
                Counter(result.status for one in outcomes for point in one.points for result in point.references),
            )
            for cell, outcomes in cells.items()
            if any(one.points for one in outcomes)
        ),
    )


def _side_by_side(experiment: Experiment, benchmark: str, seed: int) -> dict[str, SideBySide]:
    ours = [one for one in experiment.preferences if one.first.benchmark == benchmark]
    judges = dict.fromkeys(one.judge for one in ours)
    compared = {judge: side_by_side([one for one in ours if one.judge == judge], seed=seed) for judge in judges}
    return {judge: result for judge, result in compared.items() if result is not None}


def _dimensions(cell: Cell, outcomes: Sequence[Outcome], seed: int) -> Iterator[DimensionScore]:
    ratings = [rated for one in outcomes if one.assessment is not None for rated in one.assessment.ratings]
    for name in dict.fromkeys(rated.dimension for rated in ratings):
        ours = [rated for rated in ratings if rated.dimension == name]
        issues = Counter(issue for rated in ours for issue in rated.issues)
        [estimate] = mean_estimates([[rated.rating for rated in ours]], seed=seed)
        if estimate.interval.low == estimate.interval.high:
            # Ratings that are all alike are not known exactly: as a share of the scale.
            width, n = HIGHEST - LOWEST, estimate.n
            ends = wilson_interval((estimate.value - LOWEST) / width * n, n)
            estimate = replace(estimate, interval=Interval(*(LOWEST + width * end for end in ends)))
        yield DimensionScore(cell, name, estimate, tuple(issues.most_common()))


def score_of(outcome: Outcome, metric: str) -> float | None:
    """An outcome's score; a failed answer has 0 in every metric of its task, also where nothing was written down."""
    value = outcome.scores.get(metric)
    return 0.0 if value is None and outcome.error is not None else value


def is_right_or_wrong(metric: Metric, *columns: Sequence[float]) -> bool:
    """Whether scores are 0 or 1: those of a binary metric are, unless they are means over option orders."""
    return metric.binary and all(value in (0.0, 1.0) for column in columns for value in column)


def _scores(cells: Mapping[Cell, Sequence[Outcome]], seed: int) -> Iterator[Score]:
    results: list[tuple[Cell, Metric, str, int, list[float]]] = []
    for cell, outcomes in cells.items():
        levels = [level for level in LEVELS if any(outcome.level == level for outcome in outcomes)]
        for metric in metrics_of(outcomes):
            for level in [*levels, OVERALL]:
                given = [score_of(o, metric.name) for o in outcomes if level in (OVERALL, o.level)]
                values = [value for value in given if value is not None]
                if values:
                    results.append((cell, metric, level, len(given) - len(values), values))
    estimates = metric_estimates([(metric, values) for _, metric, _, _, values in results], seed)
    for (cell, metric, level, unscored, _), estimate in zip(results, estimates, strict=True):
        yield Score(cell, metric.name, level, estimate, unscored)


def metric_estimates(columns: Sequence[tuple[Metric, Sequence[float]]], seed: int) -> Iterator[Estimate]:
    """The mean of each column of scores: with Wilson's interval where they are right or wrong, else bootstrap.

    Values from 0 to 1 that are all the same have Wilson's too: resampled, they would claim to be known without error.
    """
    whole = [
        is_right_or_wrong(metric, values) or (len(set(values)) == 1 and 0 <= values[0] <= 1)
        for metric, values in columns
    ]
    means = iter(mean_estimates([v for (_, v), binary in zip(columns, whole, strict=True) if not binary], seed=seed))
    for (_, values), binary in zip(columns, whole, strict=True):
        yield proportion(math.fsum(values), len(values)) if binary else next(means)


def _constants(benchmark: str, questions: Sequence[Question]) -> Iterator[ConstantScore]:
    for task, one in TYPES.items():
        if not (one.options or one.gap):
            continue
        metric = "accuracy" if one.options else "exact_match"
        asked = [question for question in questions if question.kind == task]
        present = [level for level in LEVELS if any(question.level == level for question in asked)]
        for level in [*present, OVERALL] if asked else []:
            answers = [question.type.expected(question) for question in asked if level in (OVERALL, question.level)]
            best = constant_baseline(answers)
            yield ConstantScore(benchmark, metric, level, str(best.label), best.accuracy, task)


def _counts(cell: Cell, outcomes: Sequence[Outcome]) -> CellCounts:
    broken = Counter(violation for outcome in outcomes for violation in set(outcome.violations))
    unscored = {
        one.name: sum(score_of(outcome, one.name) is None for outcome in outcomes) for one in metrics_of(outcomes)
    }
    return CellCounts(
        cell,
        len(outcomes),
        failed=sum(outcome.error is not None for outcome in outcomes),
        unparsed=sum(one.chosen is None and one.error is None for one in outcomes) if TYPES[cell.task].options else 0,
        violations=sum(bool(outcome.violations) for outcome in outcomes),
        kinds=tuple(broken.most_common()),
        unscored=tuple((name, count) for name, count in unscored.items() if count),
        readings=count_readings(outcomes),
    )


def count_readings(answers: Iterable[Outcome | Prediction]) -> tuple[tuple[ReadingMethod, int], ...]:
    """Count how choices were read, the most frequent first; answers without a reading are left out."""
    return tuple(Counter(answer.reading for answer in answers if answer.reading is not None).most_common())


def _tests(
    benchmark: str, family: Family, cells: Mapping[Cell, Sequence[Outcome]], tested: Collection[str], seed: int
) -> Iterator[PairedTest]:
    """Tests of the cells that differ in one thing only, on their common questions."""
    groups: dict[tuple[Kind, str, str], list[Cell]] = defaultdict(list)
    for cell in cells:
        if cell.benchmark == benchmark:
            fixed = cell.model if family == "settings" else cell.setting
            groups[cell.task, fixed, cell.scoring].append(cell)
    named: list[dict[str, Any]] = []
    values: list[tuple[list[float], list[float]]] = []
    for (_, fixed, _), group in groups.items():
        for first, second in combinations(group, 2):
            one, other = (first.setting, second.setting) if family == "settings" else (first.model, second.model)
            for metric in metrics_of([*cells[first], *cells[second]]):
                common = common_scores(cells[first], cells[second], metric.name)
                if metric.name in tested and common[0]:
                    named.append({"fixed": fixed, "first": one, "second": other, "metric": metric.name})
                    values.append(common)
    binary = [is_right_or_wrong(METRICS[one["metric"]], *common) for one, common in zip(named, values, strict=True)]
    for names, result in zip(named, paired_tests(values, binary, seed), strict=True):
        yield _paired(PairedTest, result, benchmark=benchmark, family=family, **names)


def _paired(kind: type[P], result: PairedComparison, **names: Any) -> P:
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
    """Scores of the questions that both cells have a score for, in the first one's order."""
    other = {outcome.question: score_of(outcome, metric) for outcome in second}
    both = [(score_of(outcome, metric), other.get(outcome.question)) for outcome in first]
    scored = [(a, b) for a, b in both if a is not None and b is not None]
    return [a for a, _ in scored], [b for _, b in scored]


@dataclass(frozen=True, slots=True)
class AccuracyRow:
    """Accuracy of one model, setting and scoring at one level."""

    model: str
    """Its label; empty where predictions name none."""
    setting: str
    scoring: str
    level: str
    accuracy: Estimate | None
    """n counts questions; with several option orders each question weighs its mean over them. None where no call of
    the model, setting and scoring was answered."""
    baseline: float
    """Accuracy of the best constant answer: always the same letter."""
    chance: float
    """Mean of 1 / number of options."""
    unparsed: int
    """Answers without an option letter; counted wrong."""
    failed: int
    """Requests that failed; counted wrong."""
    asked_again: int = 0
    """Answers that were not read, after which the model said which option it had chosen."""
    readings: tuple[tuple[ReadingMethod, int], ...] = ()
    """How choices were read from the model, with how many, the most frequent first."""


@dataclass(frozen=True, slots=True)
class PositionRow:
    """How the choices spread over positions, where options were permuted."""

    model: str
    setting: str
    scoring: str
    orders: int
    picked: tuple[float, ...]
    """Share of choices at each position."""
    right: tuple[float, ...]
    """Share of questions answered right when the correct option stood at each position."""
    recall_spread: float
    """Standard deviation of ``right`` over positions: 0 without position bias (RStd of Zheng et al. 2024)."""
    p_value: float | None
    """Chi-square test that choices spread over positions as the correct options do. None for fewer orders than options:
    where the correct options stood is chance then, too, and the test would find a bias in one of five guessers."""
    consistent: float
    """Share of questions with the same choice in every order."""
    averaged: Estimate | None
    """Accuracy when each option's log-probability is averaged over the orders, which takes the position's own share
    out where every option stood everywhere (orders >= options); None without log-probabilities."""


@dataclass(frozen=True, slots=True)
class McqScores:
    """All tables of one evaluation."""

    accuracy: tuple[AccuracyRow, ...]
    paired: tuple[PairedRow, ...]
    position: tuple[PositionRow, ...]


def score_mcq(predictions: Sequence[Prediction], *, seed: int = 0) -> McqScores:
    """Tables of an evaluation.

    Args:
        predictions: What :func:`~climassay.evaluation.tasks.ask_mcq` gave.
        seed: Seed of bootstrap and sign flips.
    """
    groups: dict[_Variant, list[Prediction]] = defaultdict(list)
    for prediction in predictions:
        groups[prediction.model, prediction.setting, prediction.scoring].append(prediction)
    rows = tuple(row for key, group in groups.items() for row in _accuracy_rows(key, group, seed))
    answered = {key: group for key, group in groups.items() if not all_failed(group)}
    permuted = [(key, group) for key, group in answered.items() if any(row.permutation > 0 for row in group)]
    paired = tuple(row for family in get_args(Family) for row in _paired_rows(family, answered, seed))
    return McqScores(rows, paired, tuple(_position_row(*one) for one in permuted))


def _accuracy_rows(key: _Variant, group: Sequence[Prediction], seed: int) -> Iterator[AccuracyRow]:
    sizes = {row.question: len(row.order) for row in group}
    present = [level for level in LEVELS if any(row.level == level for row in group)]
    for level in [*present, OVERALL]:
        rows = [row for row in group if level in (OVERALL, row.level)]
        means = _by_question(rows)
        accuracy = next(metric_estimates([(METRICS["accuracy"], list(means.values()))], seed))
        yield AccuracyRow(
            *key,
            level,
            None if all_failed(group) else accuracy,
            baseline=max(Counter(row.correct_position for row in rows).values()) / len(rows),
            chance=float(np.mean([1 / sizes[question] for question in means])),
            unparsed=sum(row.chosen is None and row.error is None for row in rows),
            failed=sum(row.error is not None for row in rows),
            asked_again=sum(row.method == ASKED_AGAIN for row in rows),
            readings=count_readings(rows),
        )


def _by_question(rows: Iterable[Prediction]) -> dict[str, float]:
    """Mean correctness of each question over its option orders, in order of first appearance."""
    values: dict[str, list[bool]] = defaultdict(list)
    for row in rows:
        values[row.question].append(row.correct)
    return {question: float(np.mean(correct)) for question, correct in values.items()}


def _paired_rows(family: Family, groups: Mapping[_Variant, Sequence[Prediction]], seed: int) -> Iterator[PairedRow]:
    differs, shared = (1, 0) if family == "settings" else (0, 1)
    pairs = [(a, b) for a, b in combinations(groups, 2) if a[shared] == b[shared] and a[2] == b[2]]
    single = [all(row.permutation == 0 for row in groups[first]) for first, _ in pairs]
    values = []
    for first, second in pairs:
        a, b = _by_question(groups[first]), _by_question(groups[second])
        values.append((list(a.values()), [b[question] for question in a]))
    for (first, second), whole, result in zip(pairs, single, paired_tests(values, single, seed), strict=True):
        # Gained and lost are questions in the order of the file.
        exact = mcnemar(*([row.correct for row in groups[key] if row.permutation == 0] for key in (first, second)))
        names = {"first": first[differs], "second": second[differs], "scoring": first[2]}
        row = _paired(PairedRow, result, family=family, fixed=first[shared], **names)
        test = row.test if whole else "sign flip over questions"
        yield replace(row, first_only=exact.first_only, second_only=exact.second_only, test=test)


def _position_row(key: _Variant, rows: Sequence[Prediction]) -> PositionRow:
    from scipy.special import chdtrc  # scipy.stats takes a second to import.

    places = max(len(row.order) for row in rows)
    picked = np.bincount([row.position for row in rows if row.position is not None], minlength=places)
    right = np.bincount([row.correct_position for row in rows if row.correct], minlength=places)
    stood = np.bincount([row.correct_position for row in rows], minlength=places)
    recall = right / np.maximum(stood, 1)
    answered = np.bincount([row.correct_position for row in rows if row.position is not None], minlength=places)
    used = answered > 0
    total = picked.sum()
    testable = used.sum() > 1 and picked[used].sum() == total and total > 0
    # Pearson's chi-squared test.
    squares = (picked[used] - answered[used]) ** 2 / answered[used]
    p_value = float(chdtrc(used.sum() - 1, squares.sum())) if testable else 1.0
    orders = max(row.permutation for row in rows) + 1
    choices: dict[str, set[int | None]] = defaultdict(set)
    for row in rows:
        choices[row.question].add(row.chosen)
    return PositionRow(
        *key,
        orders=orders,
        picked=tuple(float(share) for share in picked / max(total, 1)),
        right=tuple(float(share) for share in recall),
        recall_spread=float(recall[stood > 0].std()),
        p_value=p_value if orders >= places else None,
        consistent=float(np.mean([len(chosen) == 1 and None not in chosen for chosen in choices.values()])),
        averaged=_averaged(rows),
    )


def _averaged(rows: Sequence[Prediction]) -> Estimate | None:
    """Accuracy of the option with the highest log-probability, averaged over orders; a failed order counts as wrong."""
    if not any(row.logprobs for row in rows):
        return None
    totals: dict[str, NDArray[np.float64] | None] = {}
    correct: dict[str, int] = {}
    for row in rows:
        correct[row.question] = row.order[row.correct_position]
        before = totals.get(row.question, np.zeros(len(row.order)))
        if before is None or not row.logprobs:
            totals[row.question] = None
            continue
        # Normalised over the options first, so that an order with a confident model weighs no more than another.
        shares = np.array(row.logprobs) - np.logaddexp.reduce(row.logprobs)
        placed = np.zeros(len(row.order))
        placed[list(row.order)] = shares
        totals[row.question] = before + placed
    right = sum(total is not None and int(total.argmax()) == correct[question] for question, total in totals.items())
    return proportion(right, len(totals))


Dataset = Literal["gold", "silver"]

PUBLISHED_QUESTIONS: Mapping[tuple[Dataset, Kind], Mapping[str, int]] = {
    ("gold", "mcq"): {"base": 126, "reasoning": 72, "hypothetical": 47, OVERALL: 245},
    ("gold", "freeform"): {"base": 54, "reasoning": 52, "hypothetical": 55, OVERALL: 161},
    ("gold", "cloze"): {OVERALL: 160},
    ("silver", "mcq"): {OVERALL: 200},
    ("silver", "freeform"): {OVERALL: 200},
    ("silver", "cloze"): {OVERALL: 200},
}
"""Questions behind each column: Table 2, and for silver the 200 a task of appendix A.2.2.

The paper does not print the levels of the silver sample.
"""
_TABLE = Path(__file__).parent / "published" / "climaqa.csv"


@dataclass(frozen=True, slots=True)
class PublishedScore:
    """One number of the paper's tables."""

    dataset: Dataset
    model: str
    setting: str
    """``default``, ``few-shot``, ``rag-source``, ``rag-held-out``, ``continued-pretraining``, ``fine-tuned``,
    ``long-context-source``, ``long-context-held-out``."""
    task: Kind
    metric: str
    """Key of :data:`~climassay.evaluation.results.METRICS`; the paper's BLEU counts characters, hence ``bleu_char``."""
    level: str
    """``base``, ``reasoning``, ``hypothetical`` or ``overall``."""
    value: float
    """Shares from 0 to 1 for accuracy and exact match (printed as per cent), else as printed."""

    @property
    def n(self) -> int | None:
        """Questions behind it, where the paper says."""
        return PUBLISHED_QUESTIONS[self.dataset, self.task].get(self.level)


@cache
def _all_scores() -> tuple[PublishedScore, ...]:
    with _TABLE.open(encoding="utf-8", newline="") as lines:
        return tuple(
            PublishedScore(
                cast(Dataset, row["dataset"]),
                row["model"],
                row["setting"],
                row["task"],
                row["metric"],
                row["level"],
                float(row["value"]) / (100.0 if METRICS[row["metric"]].binary else 1.0),
            )
            for row in csv.DictReader(lines)
        )


def published_models() -> tuple[str, ...]:
    """Names of all models of the published tables, in their order."""
    return tuple(dict.fromkeys(score.model for score in _all_scores()))


def published_scores(dataset: Dataset = "gold", models: Collection[str] = ()) -> tuple[PublishedScore, ...]:
    """The published numbers, in the order of the paper's tables.

    Args:
        dataset: ``gold`` (Tables 3 and 5) or ``silver`` (Tables 6 and 7).
        models: Only these models; all where none is named.

    Raises:
        InputError: A model that the paper does not have.
    """
    unknown = sorted(set(models) - set(published_models()))
    if unknown:
        raise InputError(
            f"The published tables have no model {', '.join(unknown)}: they have {', '.join(published_models())}."
        )
    return tuple(score for score in _all_scores() if score.dataset == dataset and (not models or score.model in models))
