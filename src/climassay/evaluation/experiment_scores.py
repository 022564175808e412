"""From the outcomes of an experiment to its numbers: means with intervals, constant answers, counts, paired tests."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, get_args

from climassay.errors import InputError
from climassay.evaluation.outcome import METRICS, Cell, Experiment, Metric, Outcome
from climassay.questions import LEVELS, Kind, Question
from climassay.statistics import (
    Estimate,
    constant_baseline,
    holm,
    mcnemar,
    mean_estimates,
    paired_differences,
    proportion,
)

OVERALL = "overall"
TESTED = ("accuracy", "judged_accuracy", "factual_accuracy", "fact_f1", "exact_match", "phrase_similarity")
"""Metrics that cells are compared in: one or two a task, because every further test costs all others power."""
Family = Literal["settings", "models"]


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
class ConstantScore:
    """What one and the same answer to every question would get."""

    benchmark: str
    metric: str
    level: str
    answer: str
    """The best constant answer at that level: a letter (mcq) or the most frequent term (cloze)."""
    value: float


@dataclass(frozen=True, slots=True)
class CellCounts:
    """What went wrong in a cell."""

    cell: Cell
    n: int
    failed: int
    """Answers that failed; they score 0."""
    unparsed: int
    """Answers that name no option (mcq); they score 0."""
    violations: int
    """Answers that break a constraint, for example more than two sentences; they are scored all the same."""
    kinds: tuple[tuple[str, int], ...]
    """Constraints broken, the most frequent first."""
    unscored: tuple[tuple[str, int], ...]
    """Metrics that could not be computed for some answers, with how many."""


@dataclass(frozen=True, slots=True)
class PairedTest:
    """Two cells compared on the same questions."""

    benchmark: str
    family: Family
    """What differs between the two."""
    fixed: str
    """What they share: the model's name (settings) or the setting's (models)."""
    first: str
    second: str
    metric: str
    difference: Estimate
    """Mean of second - first over the questions that both have a score for, with a bootstrap interval."""
    first_only: int | None
    """Questions only the first got right (binary metrics)."""
    second_only: int | None
    test: Literal["McNemar, exact", "sign flip"]
    p_value: float
    p_holm: float
    """Adjusted over all tests of the family on the benchmark (Holm)."""


@dataclass(frozen=True, slots=True)
class ExperimentScores:
    """All numbers of an experiment."""

    scores: tuple[Score, ...]
    constants: tuple[ConstantScore, ...]
    counts: tuple[CellCounts, ...]
    tests: tuple[PairedTest, ...]

    def get(self, cell: Cell, metric: str, level: str = OVERALL) -> Score | None:
        """One score, or None where the cell has none."""
        found = (s for s in self.scores if s.cell == cell and s.metric == metric and s.level == level)
        return next(found, None)


def outcomes_by_cell(experiment: Experiment) -> dict[Cell, list[Outcome]]:
    """Outcomes of each cell, cells in the order of the file."""
    found: dict[Cell, list[Outcome]] = {record.cell: [] for record in experiment.cells}
    for outcome in experiment.outcomes:
        found.setdefault(outcome.cell, []).append(outcome)
    return found


def metrics_of(outcomes: Sequence[Outcome]) -> list[Metric]:
    """Metrics that some of these outcomes have a score in, or were to have one, in the order of tables."""
    present = {name for outcome in outcomes for name in outcome.scores}
    if any(outcome.judgement is not None for outcome in outcomes):
        present.add("judged_accuracy")  # also where every judgement failed, so that this is counted
    tasks = {outcome.cell.task for outcome in outcomes}
    return [metric for metric in METRICS.values() if metric.name in present and metric.task in tasks]


def score_experiment(experiment: Experiment, *, tested: Sequence[str] = TESTED, seed: int = 0) -> ExperimentScores:
    """All numbers of an experiment.

    Args:
        experiment: The matrix with its outcomes.
        tested: Metrics of the paired tests.
        seed: Seed of bootstrap and sign flips.

    Raises:
        InputError: There is no such metric.
    """
    unknown = sorted(set(tested) - set(METRICS))
    if unknown:
        raise InputError(f"There is no metric {unknown[0]}: there are {', '.join(METRICS)}.")
    cells = outcomes_by_cell(experiment)
    return ExperimentScores(
        scores=tuple(_scores(cells, seed)),
        constants=tuple(
            constant for name, questions in experiment.questions.items() for constant in _constants(name, questions)
        ),
        counts=tuple(_counts(cell, outcomes) for cell, outcomes in cells.items()),
        tests=tuple(
            test
            for benchmark in dict.fromkeys(cell.benchmark for cell in cells)
            for family in get_args(Family)
            for test in _tests(list(_pairs(benchmark, family, cells, tested)), benchmark, family, seed)
        ),
    )


def score_of(outcome: Outcome, metric: str) -> float | None:
    """An outcome's score; a failed answer has 0 in every metric of its task, also where nothing was written down."""
    value = outcome.scores.get(metric)
    return 0.0 if value is None and outcome.error is not None else value


def _scores(cells: Mapping[Cell, Sequence[Outcome]], seed: int) -> Iterator[Score]:
    keys: list[tuple[Cell, Metric, str, int]] = []
    columns: list[list[float]] = []
    for cell, outcomes in cells.items():
        levels = [level for level in LEVELS if any(outcome.level == level for outcome in outcomes)]
        for metric in metrics_of(outcomes):
            for level in [*levels, OVERALL]:
                given = [score_of(o, metric.name) for o in outcomes if level in (OVERALL, o.level)]
                values = [value for value in given if value is not None]
                if values:
                    keys.append((cell, metric, level, len(given) - len(values)))
                    columns.append(values)
    resampled = [place for place, (_, metric, _, _) in enumerate(keys) if not metric.binary]
    means = dict(zip(resampled, mean_estimates([columns[place] for place in resampled], seed=seed), strict=True))
    for place, (cell, metric, level, unscored) in enumerate(keys):
        values = columns[place]
        estimate = means.get(place) or proportion(round(sum(values)), len(values))
        yield Score(cell, metric.name, level, estimate, unscored)


def _constants(benchmark: str, questions: Sequence[Question]) -> Iterator[ConstantScore]:
    for task, metric in (("mcq", "accuracy"), ("cloze", "exact_match")):
        asked = [question for question in questions if question.kind == task]
        present = [level for level in LEVELS if any(question.level == level for question in asked)]
        for level in [*present, OVERALL] if asked else []:
            answers = [_constant_answer(question) for question in asked if level in (OVERALL, question.level)]
            best = constant_baseline(answers)
            yield ConstantScore(benchmark, metric, level, str(best.label), best.accuracy)


def _constant_answer(question: Question) -> str:
    return question.answer if question.correct is None else chr(ord("a") + question.correct)


def _counts(cell: Cell, outcomes: Sequence[Outcome]) -> CellCounts:
    kinds = Counter(violation for outcome in outcomes for violation in set(outcome.violations))
    unscored = {
        metric.name: sum(score_of(outcome, metric.name) is None for outcome in outcomes)
        for metric in metrics_of(outcomes)
    }
    return CellCounts(
        cell,
        len(outcomes),
        failed=sum(outcome.error is not None for outcome in outcomes),
        unparsed=sum(cell.task == "mcq" and outcome.chosen is None and outcome.error is None for outcome in outcomes),
        violations=sum(bool(outcome.violations) for outcome in outcomes),
        kinds=tuple(kinds.most_common()),
        unscored=tuple((name, count) for name, count in unscored.items() if count),
    )


@dataclass(frozen=True, slots=True)
class _Pair:
    fixed: str
    first: str
    second: str
    metric: Metric
    values: tuple[list[float], list[float]]


def _tests(pairs: Sequence[_Pair], benchmark: str, family: Family, seed: int) -> Iterator[PairedTest]:
    gaps = paired_differences([pair.values for pair in pairs], seed=seed)
    exact = [mcnemar(*pair.values) if pair.metric.binary else None for pair in pairs]
    p_values = [gap.p_value if test is None else test.p_value for gap, test in zip(gaps, exact, strict=True)]
    for pair, gap, test, p_value, adjusted in zip(pairs, gaps, exact, p_values, holm(p_values), strict=True):
        yield PairedTest(
            benchmark,
            family,
            pair.fixed,
            pair.first,
            pair.second,
            pair.metric.name,
            gap.difference,
            None if test is None else test.first_only,
            None if test is None else test.second_only,
            "sign flip" if test is None else "McNemar, exact",
            p_value,
            adjusted,
        )


def _pairs(
    benchmark: str, family: Family, cells: Mapping[Cell, Sequence[Outcome]], tested: Collection[str]
) -> Iterator[_Pair]:
    """Pairs of cells that differ in one thing only, with the scores of their common questions."""
    groups: dict[tuple[Kind, str], list[Cell]] = defaultdict(list)
    for cell in cells:
        if cell.benchmark == benchmark:
            groups[cell.task, cell.model if family == "settings" else cell.setting].append(cell)
    for (_, fixed), group in groups.items():
        for first, second in combinations(group, 2):
            names = (first.setting, second.setting) if family == "settings" else (first.model, second.model)
            for metric in metrics_of([*cells[first], *cells[second]]):
                values = common_scores(cells[first], cells[second], metric.name)
                if metric.name in tested and values[0]:
                    yield _Pair(fixed, *names, metric, values)


def common_scores(first: Sequence[Outcome], second: Sequence[Outcome], metric: str) -> tuple[list[float], list[float]]:
    """Scores of the questions that both cells have a score for, in the first one's order."""
    other = {outcome.question: score_of(outcome, metric) for outcome in second}
    both = [(score_of(outcome, metric), other.get(outcome.question)) for outcome in first]
    scored = [(a, b) for a, b in both if a is not None and b is not None]
    return [a for a, _ in scored], [b for _, b in scored]
