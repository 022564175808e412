"""Several runs side by side: one metric, cell by cell, with paired tests where the same questions were asked.

Questions are the same where their words are, whatever the benchmark or the id is called in either run.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from climassay.errors import InputError
from climassay.evaluation.experiment_scores import OVERALL, common_scores, outcomes_by_cell, score_of
from climassay.evaluation.experiment_tables import shown_estimate, shown_p_value
from climassay.evaluation.outcome import METRICS, Cell, Experiment, Outcome
from climassay.questions import Question
from climassay.reporting import Dot, DotPlot, Table
from climassay.statistics import Estimate, holm, mcnemar, mean_estimates, paired_differences, proportion

MOST_TESTS = 60
"""Pairs of cells that are all tested; above it only cells that share model or setting are."""


@dataclass(frozen=True, slots=True)
class RunScore:
    """A cell's score, and the run that it is from."""

    run: str
    name: str
    """Of the experiment."""
    cell: Cell
    estimate: Estimate
    """Wilson's interval for binary metrics, else bootstrap over questions."""


@dataclass(frozen=True, slots=True)
class RunTest:
    """Cells of two runs on the questions that both were asked."""

    first: RunScore
    second: RunScore
    difference: Estimate
    """Mean of second - first, with a bootstrap interval."""
    first_only: int | None
    """Questions only the first got right (binary metrics)."""
    second_only: int | None
    p_value: float
    """Of McNemar's exact test (binary metrics), else of sign flips."""
    p_holm: float
    """Adjusted over all tests of the comparison (Holm)."""


@dataclass(frozen=True, slots=True)
class RunComparison:
    """One metric in several runs."""

    metric: str
    level: str
    scores: tuple[RunScore, ...]
    tests: tuple[RunTest, ...]


@dataclass(frozen=True, slots=True)
class _Column:
    """A cell's outcomes, each under the words of its question."""

    score: RunScore
    outcomes: tuple[Outcome, ...]


def metrics_in(experiments: Sequence[Experiment]) -> list[str]:
    """Metrics that some outcome has a score in, in the order of tables."""
    present = {name for one in experiments for outcome in one.outcomes for name in outcome.scores}
    return [name for name in METRICS if name in present]


def compare_runs(
    experiments: Sequence[Experiment], metric: str, *, level: str = OVERALL, seed: int = 0
) -> RunComparison:
    """One metric of several runs, cell by cell.

    Args:
        experiments: In the order in which they are shown; none twice.
        metric: A name of :data:`~climassay.evaluation.outcome.METRICS`.
        level: A level of questions, or ``overall``.
        seed: Of bootstrap and sign flips.

    Raises:
        InputError: There is no such metric.
    """
    if metric not in METRICS:
        raise InputError(f"There is no metric {metric}: there are {', '.join(METRICS)}.")
    columns = list(_columns(experiments, metric, level, seed))
    pairs = [pair for pair in combinations(columns, 2) if pair[0].score.run != pair[1].score.run]
    if len(pairs) > MOST_TESTS:
        pairs = [(a, b) for a, b in pairs if _alike(a.score.cell, b.score.cell)]
    tests = _tests(pairs, metric, seed)
    return RunComparison(metric, level, tuple(column.score for column in columns), tuple(tests))


def _alike(first: Cell, second: Cell) -> bool:
    return first.model == second.model or first.setting == second.setting


def _columns(experiments: Sequence[Experiment], metric: str, level: str, seed: int) -> Iterator[_Column]:
    found = [
        (experiment, cell, chosen)
        for experiment in experiments
        for cell, chosen in _chosen_outcomes(experiment, metric, level)
    ]
    values = [[v for outcome in chosen if (v := score_of(outcome, metric)) is not None] for _, _, chosen in found]
    if METRICS[metric].binary:
        estimates = [proportion(round(sum(column)), len(column)) for column in values]
    else:
        estimates = mean_estimates(values, seed=seed)
    for (experiment, cell, chosen), estimate in zip(found, estimates, strict=True):
        yield _Column(RunScore(experiment.run, experiment.name, cell, estimate), chosen)


def _chosen_outcomes(experiment: Experiment, metric: str, level: str) -> Iterator[tuple[Cell, tuple[Outcome, ...]]]:
    """Outcomes of the level by cell, under the words of their questions; cells without any score are left out."""
    words = {(name, one.id): _words(one) for name, asked in experiment.questions.items() for one in asked}
    for cell, outcomes in outcomes_by_cell(experiment).items():
        chosen = [outcome for outcome in outcomes if level in (OVERALL, outcome.level)]
        if cell.task == METRICS[metric].task and any(score_of(outcome, metric) is not None for outcome in chosen):
            named = ((words.get((cell.benchmark, one.question), one.question), one) for one in chosen)
            yield cell, tuple(replace(one, question=text) for text, one in named)


def _words(question: Question) -> str:
    return "\n".join((question.question, *question.options, question.answer))


def _tests(pairs: Sequence[tuple[_Column, _Column]], metric: str, seed: int) -> Iterator[RunTest]:
    values = [common_scores(first.outcomes, second.outcomes, metric) for first, second in pairs]
    shared = [(pair, found) for pair, found in zip(pairs, values, strict=True) if found[0]]
    gaps = paired_differences([found for _, found in shared], seed=seed)
    exact = [mcnemar(*found) if METRICS[metric].binary else None for _, found in shared]
    p_values = [gap.p_value if test is None else test.p_value for gap, test in zip(gaps, exact, strict=True)]
    for ((first, second), _), gap, test, p_value, adjusted in zip(
        shared, gaps, exact, p_values, holm(p_values), strict=True
    ):
        yield RunTest(
            first.score,
            second.score,
            gap.difference,
            None if test is None else test.first_only,
            None if test is None else test.second_only,
            p_value,
            adjusted,
        )


def comparison_table(found: RunComparison) -> Table:
    """Every cell of every run on a line of its own."""
    rows = [
        (one.cell.benchmark, one.cell.model, one.cell.setting, one.run, str(one.estimate.n), _shown(found, one))
        for one in found.scores
    ]
    label = METRICS[found.metric].label
    return Table.of(
        f"{label[0].upper()}{label[1:]}, {found.level}",
        ["benchmark", "model", "setting", "run", "n", label],
        rows,
        left=4,
        note="Behind ±: how far the farther end of the 95% interval lies." + _unit(found.metric),
    )


def comparison_test_table(found: RunComparison) -> Table | None:
    """Paired tests between the runs; None where no two of them asked the same question."""
    if not found.tests:
        return None
    rows = [
        (
            _named(test.first),
            _named(test.second),
            str(test.difference.n),
            _points(found.metric, test.difference.value),
            " to ".join(_points(found.metric, end) for end in test.difference.interval),
            "-" if test.first_only is None else f"{test.second_only} / {test.first_only}",
            shown_p_value(test.p_value),
            shown_p_value(test.p_holm),
        )
        for test in found.tests
    ]
    kind = "McNemar, exact" if METRICS[found.metric].binary else "sign flip"
    return Table.of(
        "Compared on the questions that both runs asked",
        ["first", "second", "n", "second -\nfirst", "95% interval", "gained /\nlost", "p", "p\n(Holm)"],
        rows,
        left=2,
        strong=[number for number, test in enumerate(found.tests) if test.p_holm < 0.05],
        note=f"Paired test: {kind}. Interval: bootstrap over questions. gained / lost: questions that only the second, "
        f"or only the first, got right. Holm: corrected for all tests of this table; rows below 0.05 are set off."
        + _unit(found.metric),
    )


def comparison_figure(found: RunComparison) -> DotPlot | None:
    """Every cell with its interval, a colour a run; None where there is none."""
    if not found.scores:
        return None
    label = METRICS[found.metric].label
    dots = []
    for one in found.scores:
        value, low, high = (min(1.0, max(0.0, end)) for end in (one.estimate.value, *one.estimate.interval))
        dots.append(Dot(f"{one.cell.model}, {one.cell.setting} ({one.run})", one.run, value, low, high))
    return DotPlot(label[0].upper() + label[1:], tuple(dots), label, "Dots: mean over questions. Bars: 95% interval.")


def _shown(found: RunComparison, one: RunScore) -> str:
    return shown_estimate(found.metric, one.estimate)


def _named(one: RunScore) -> str:
    return f"{one.cell.model}, {one.cell.setting} ({one.run})"


def _points(metric: str, value: float) -> str:
    return f"{100 * value:+.1f}" if METRICS[metric].binary else f"{value:+.3f}"


def _unit(metric: str) -> str:
    return " In per cent." if METRICS[metric].binary else ""
