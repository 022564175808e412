"""Comparison of several runs by model and setting, with paired tests on the questions that two runs share.

Two questions are the same if their words are the same, even if their ids and benchmarks differ.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from climassay.evaluation.results import Cell, Experiment, Outcome
from climassay.evaluation.scores import (
    OVERALL,
    answered_cells,
    common_scores,
    is_right_or_wrong,
    metric_estimates,
    score_constants,
    score_of,
)
from climassay.evaluation.tables import TEST_HEADINGS, format_estimate, format_score, heading, metric_plot, paired_cells
from climassay.metrics.registry import METRICS
from climassay.reporting import Dot, DotPlot, Table
from climassay.statistics import Estimate, PairedComparison, paired_tests

MAX_TESTS = 60
"""Maximum number of pairs of cells to test, where a cell is a model in a setting. If there are more pairs, only cells
that share a model or a setting are tested."""


@dataclass(frozen=True, slots=True)
class RunScore:
    """Mean score of a model in one setting of a run."""

    run: str
    name: str
    """Name of the experiment."""
    cell: Cell
    estimate: Estimate
    """Mean, with Wilson's interval for binary metrics and a bootstrap interval over questions for others."""
    constant: float | None
    """Score of the most frequent answer on all questions of the benchmark; None if the metric has no such baseline."""


@dataclass(frozen=True, slots=True)
class RunTest:
    """Paired test of two models or settings of different runs on their common questions."""

    first: RunScore
    second: RunScore
    result: PairedComparison
    """Difference, second minus first, with p-values of McNemar's exact test (binary metrics) or of sign flips. Holm's
    correction covers all tests of the comparison."""


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Scores of several runs in one metric, with paired tests between the runs."""

    metric: str
    level: str
    scores: tuple[RunScore, ...]
    tests: tuple[RunTest, ...]


def metrics_in(experiments: Sequence[Experiment]) -> list[str]:
    """Return the names of the metrics for which any outcome has a score, in the order used by tables."""
    metric_names = dict.fromkeys(
        name for experiment in experiments for outcome in experiment.outcomes for name in outcome.scores
    )
    return [metric.name for metric in METRICS.ordered(metric_names)]


def compare_runs(
    experiments: Sequence[Experiment], metric: str, *, level: str = OVERALL, seed: int = 0
) -> RunComparison:
    """Compare the models and settings of several runs by one metric.

    Args:
        experiments: Experiments of the runs, in the order of the table.
        metric: Name of the metric in :data:`~climassay.metrics.METRICS`.
        level: Level of the questions, or ``overall``.
        seed: Seed of the bootstrap and the sign flips.

    Raises:
        InputError: The metric does not exist.
    """
    METRICS.find(metric)
    cells = [
        (experiment, cell, outcomes)
        for experiment in experiments
        for cell, outcomes in _select_cells(experiment, metric, level)
    ]
    columns = [
        [value for outcome in outcomes if (value := score_of(outcome, metric)) is not None] for _, _, outcomes in cells
    ]
    estimates = metric_estimates([(METRICS[metric], column) for column in columns], seed)
    constants = {
        (experiment.run, constant.benchmark, constant.task): constant.value
        for experiment in experiments
        for constant in score_constants(experiment)
        if (constant.metric, constant.level) == (metric, level)
    }
    scores = [
        RunScore(
            experiment.run,
            experiment.name,
            cell,
            estimate,
            constants.get((experiment.run, cell.benchmark, cell.task)),
        )
        for (experiment, cell, _), estimate in zip(cells, estimates, strict=True)
    ]
    outcomes_by_score = {score: outcomes for score, (_, _, outcomes) in zip(scores, cells, strict=True)}
    pairs = [(first, second) for first, second in combinations(scores, 2) if first.run != second.run]
    if len(pairs) > MAX_TESTS:
        pairs = [
            (first, second)
            for first, second in pairs
            if first.cell.model == second.cell.model or first.cell.setting == second.cell.setting
        ]
    comparisons = [
        (first, second, common_scores(outcomes_by_score[first], outcomes_by_score[second], metric))
        for first, second in pairs
    ]
    comparisons = [comparison for comparison in comparisons if comparison[2][0]]
    is_binary = [is_right_or_wrong(METRICS[metric], *score_pair) for _, _, score_pair in comparisons]
    tests = paired_tests([score_pair for _, _, score_pair in comparisons], is_binary, seed)
    return RunComparison(
        metric,
        level,
        tuple(scores),
        tuple(RunTest(first, second, test) for (first, second, _), test in zip(comparisons, tests, strict=True)),
    )


def _select_cells(experiment: Experiment, metric: str, level: str) -> Iterator[tuple[Cell, tuple[Outcome, ...]]]:
    """Yield (cell, outcomes at the level) for each cell that has scores in the metric.

    The ids of questions are replaced by their texts, so that equal questions of different runs match.
    """
    text_by_question = {
        (name, question.id): "\n".join((question.question, *question.options, question.answer))
        for name, questions in experiment.questions.items()
        for question in questions
    }
    for cell, outcomes in answered_cells(experiment).items():
        level_outcomes = [outcome for outcome in outcomes if level in (OVERALL, outcome.level)]
        if METRICS[metric].scores(cell.task) and any(
            score_of(outcome, metric) is not None for outcome in level_outcomes
        ):
            yield (
                cell,
                tuple(
                    replace(
                        outcome, question=text_by_question.get((cell.benchmark, outcome.question), outcome.question)
                    )
                    for outcome in level_outcomes
                ),
            )


def comparison_table(comparison: RunComparison) -> Table:
    """Return a table of scores with a row for each model, setting and task of each run."""
    names = _run_names(comparison)
    rows = [
        (
            score.cell.benchmark,
            score.cell.model,
            score.cell.setting,
            names[score.run],
            str(score.estimate.n),
            format_estimate(comparison.metric, score.estimate),
            "-" if score.constant is None else format_score(comparison.metric, score.constant),
        )
        for score in comparison.scores
    ]
    metric = METRICS[comparison.metric]
    return Table.of(
        f"{heading(metric)}, {comparison.level}",
        ["benchmark", "model", "setting", "run", "n", metric.label, "constant"],
        rows,
        left_columns=4,
        note="In brackets: 95% intervals. constant: the most frequent answer to all questions of the benchmark."
        + _format_unit(comparison.metric),
    )


def comparison_test_table(comparison: RunComparison) -> Table | None:
    """Return a table of the paired tests between runs; None if no two runs have a question in common."""
    if not comparison.tests:
        return None
    names = _run_names(comparison)
    rows = [
        (
            _format_label(test.first, names),
            _format_label(test.second, names),
            *paired_cells(test.result, comparison.metric),
        )
        for test in comparison.tests
    ]
    kinds = dict.fromkeys("sign flip" if test.result.exact is None else "McNemar, exact" for test in comparison.tests)
    return Table.of(
        "Compared on the questions that both runs asked",
        ["first", "second", "n", "second -\nfirst", *TEST_HEADINGS],
        rows,
        left_columns=2,
        strong=[index for index, test in enumerate(comparison.tests) if test.result.p_holm < 0.05],
        note=f"Paired test: {' and '.join(kinds)}. Interval: differences that sign flips do not reject. gained / lost: "
        "questions that only the second, or only the first, got right. Holm: corrected for all tests of this table; "
        "rows below 0.05 are set off." + _format_unit(comparison.metric),
    )


def comparison_figure(comparison: RunComparison) -> DotPlot | None:
    """Return a forest plot of all scores, with a colour for each run; None if there are no scores."""
    if not comparison.scores:
        return None
    names = _run_names(comparison)
    dots = [
        Dot(
            _format_label(score, names),
            names[score.run],
            score.estimate.value,
            *score.estimate.interval,
            score.constant,
        )
        for score in comparison.scores
    ]
    return metric_plot(
        METRICS[comparison.metric],
        dots,
        [score.estimate.n for score in comparison.scores],
        note=" Dashed tick: the best constant answer." if any(dot.reference is not None for dot in dots) else "",
    )


def _format_label(score: RunScore, names: Mapping[str, str]) -> str:
    return f"{score.cell.model}, {score.cell.setting} ({names[score.run]})"


def _run_names(comparison: RunComparison) -> dict[str, str]:
    """Return the name of each run in tables: its experiment's name, with the run's id if the name is not unique."""
    names = {score.run: score.name or score.run for score in comparison.scores}
    shared_names = [name for name, runs in Counter(names.values()).items() if runs > 1]
    return {run: f"{name}, {run}" if name in shared_names and name != run else name for run, name in names.items()}


def _format_unit(metric: str) -> str:
    return " In per cent." if METRICS[metric].percent else ""
