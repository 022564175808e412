"""Sample sizes: the number of questions an experiment needs to show a difference."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from climassay.errors import InputError
from climassay.evaluation.results import Experiment
from climassay.evaluation.scores import answered_cells, common_scores, score_of
from climassay.metrics.registry import METRICS
from climassay.reporting import Table
from climassay.statistics import accuracy_sample_size, mcnemar_power

MAX_EXACT_QUESTIONS = 2000
"""Maximum number of questions for which the power of McNemar's test is computed exactly.

Above it, the normal approximation with continuity correction is used, which differs by about one per cent.
"""


@dataclass(frozen=True, slots=True)
class Assumptions:
    """Assumptions about the scores of two systems, from which sample sizes are computed."""

    binary: bool
    mean: float | None
    """Accuracy of the first system; None unless the metric is binary."""
    discordance: float | None
    """Proportion of questions that exactly one of two systems answers correctly; None if the metric is not binary."""
    deviation: float | None
    """Standard deviation of a system's scores over questions; None for binary metrics."""
    paired_deviation: float | None
    """Standard deviation, over questions, of the difference between the two systems' scores; None for binary
    metrics."""
    origin: str
    """Source of these assumptions, shown in the note below the table of sample sizes."""


@dataclass(frozen=True, slots=True)
class PlanRow:
    """Numbers of questions needed to detect a difference; None for a difference that is impossible."""

    difference: float
    """Difference in the unit of the score: a proportion for binary metrics."""
    paired: int | None
    """Number of questions if both systems answer the same questions (McNemar's test, or paired test of means)."""
    exact: bool
    """Whether ``paired`` is exact; otherwise it is a normal approximation."""
    unpaired: int | None
    """Number of questions per system if the systems answer different questions."""
    interval: int
    """Number of questions for which the 95% interval of a single score has the difference as its half-width."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Numbers of questions needed to detect each of several differences."""

    metric: str
    power: float
    alpha: float
    assumptions: Assumptions
    rows: tuple[PlanRow, ...]


def assume_binary(mean: float, discordance: float | None = None) -> Assumptions:
    """Return assumptions for a binary metric.

    Args:
        mean: Accuracy of the first system.
        discordance: Proportion of questions that exactly one of the two systems answers correctly. The default,
            ``2 mean (1 - mean)``, assumes unrelated systems of this accuracy; similar systems disagree less often and
            need fewer questions.

    Raises:
        InputError: A value is not between 0 and 1.
    """
    if not 0 < mean < 1:
        raise InputError(f"The assumed accuracy must be between 0 and 1, not {mean:g}.")
    if discordance is not None and not 0 < discordance <= 1:
        raise InputError(
            f"The share of questions on which systems disagree must be between 0 and 1, not {discordance:g}."
        )
    origin = "discordance of unrelated systems" if discordance is None else "given"
    return Assumptions(True, mean, 2 * mean * (1 - mean) if discordance is None else discordance, None, None, origin)


def assume_mean(deviation: float, correlation: float = 0.5) -> Assumptions:
    """Return assumptions for a metric whose scores are not binary.

    Args:
        deviation: Standard deviation of a system's scores over questions.
        correlation: Correlation of two systems' scores over questions.

    Raises:
        InputError: The deviation is not positive, or the correlation is not between -1 and 1.
    """
    if deviation <= 0:
        raise InputError(f"The standard deviation of scores must be above 0, not {deviation:g}.")
    if not -1 <= correlation < 1:
        raise InputError(f"The correlation of two systems must be between -1 and 1, not {correlation:g}.")
    return Assumptions(False, None, None, deviation, deviation * math.sqrt(2 * (1 - correlation)), "given")


def _describe_no_variation(run: str, label: str) -> str:
    return (
        f"In {run} most models and settings have the same {label}, or all questions one value, so that nothing can be "
        "estimated from it: state assumptions in place of --run."
    )


def make_assumptions(metric: str, values: Mapping[str, float]) -> Assumptions:
    """Return assumptions from those values that are known; see :func:`assume_binary` and :func:`assume_mean`.

    Args:
        metric: Name of the metric.
        values: ``accuracy`` (by default 0.8) and ``discordance`` of a binary metric; ``deviation`` (by default 0.25)
            and ``correlation`` of others.

    Raises:
        InputError: The metric does not exist, or a value does not apply to it.
    """
    is_binary = METRICS.find(metric).binary
    names = ("accuracy", "discordance") if is_binary else ("deviation", "correlation")
    for name in values:
        if name not in names:
            raise InputError(f"--{name} says nothing about {metric}: it takes --{' and --'.join(names)}.")
    if is_binary:
        return assume_binary(values.get("accuracy", 0.8), values.get("discordance"))
    return assume_mean(values.get("deviation", 0.25), values.get("correlation", 0.5))


def assume_from_run(experiment: Experiment, metric: str) -> Assumptions:
    """Estimate assumptions from an experiment, as medians over its cells (a model in a setting) and over their pairs.

    The cells of a pair share the benchmark and either the model or the setting.

    Raises:
        InputError: The metric does not exist, no two cells can be compared in it, or the scores do not vary.
    """
    metric_definition = METRICS.find(metric)
    cells = {
        cell: outcomes for cell, outcomes in answered_cells(experiment).items() if metric_definition.scores(cell.task)
    }
    columns = [[score_of(outcome, metric) for outcome in outcomes] for outcomes in cells.values()]
    scores = [[value for value in column if value is not None] for column in columns]
    pairs = [
        common_scores(cells[first_cell], cells[second_cell], metric)
        for first_cell, second_cell in combinations(cells, 2)
        if first_cell.benchmark == second_cell.benchmark
        and (first_cell.model == second_cell.model or first_cell.setting == second_cell.setting)
    ]
    differences = [
        np.subtract(second_scores, first_scores) for first_scores, second_scores in pairs if len(first_scores) > 1
    ]
    scores = [column for column in scores if len(column) > 1]
    if not differences:
        raise InputError(f"{experiment.run} has no two cells to compare in {metric_definition.label}.")
    origin = f"medians over {len(scores)} cells and {len(differences)} pairs of {experiment.run}"
    if metric_definition.binary:
        mean = float(np.median([np.mean(column) for column in scores]))
        discordance = float(np.median([np.mean(differences_of_pair != 0) for differences_of_pair in differences]))
        if not 0 < mean < 1 or discordance == 0:
            raise InputError(_describe_no_variation(experiment.run, metric_definition.label))
        return Assumptions(True, mean, discordance, None, None, origin)
    deviation = float(np.median([np.std(column, ddof=1) for column in scores]))
    paired_deviation = float(np.median([np.std(differences_of_pair, ddof=1) for differences_of_pair in differences]))
    if deviation == 0 or paired_deviation == 0:
        raise InputError(_describe_no_variation(experiment.run, metric_definition.label))
    return Assumptions(False, None, None, deviation, paired_deviation, origin)


def plan(
    differences: Sequence[float],
    assumptions: Assumptions,
    *,
    metric: str = "accuracy",
    power: float = 0.8,
    alpha: float = 0.05,
) -> Plan:
    """Compute the numbers of questions needed to detect differences in three designs (:class:`PlanRow`).

    Args:
        differences: Positive differences of two means; for binary metrics, 0.05 is five percentage points.
        assumptions: Assumptions of :func:`assume_binary`, :func:`assume_mean` or :func:`assume_from_run`.
        metric: Name of the metric in the table.
        power: Probability of a significant result if the difference exists.
        alpha: Two-sided significance level; for Bonferroni's correction, divide it by the number of tests.

    Raises:
        InputError: A difference, the power or the significance level is out of range.

    References:
        Miettinen (1968), Biometrics 24, 339-352, and Connor (1987), Biometrics 43, 207-211, for McNemar's test;
        Fleiss, Levin and Paik (2003), Statistical Methods for Rates and Proportions, section 4.2, for two proportions.
    """
    METRICS.find(metric)
    if not differences or min(differences) <= 0:
        raise InputError("A plan needs differences greater than 0.")
    if not 0 < alpha < 1 or not alpha < power < 1:
        raise InputError("The power must be between the significance level and 1, and the level between 0 and 1.")
    make_row = _make_binary_row if assumptions.binary else _make_mean_row
    rows = tuple(make_row(size, assumptions, power, alpha) for size in sorted(differences))
    return Plan(metric, power, alpha, assumptions, rows)


def _compute_quantiles(power: float, alpha: float) -> tuple[float, float]:
    from scipy.stats import norm

    return float(norm.ppf(1 - alpha / 2)), float(norm.ppf(power))


def _make_binary_row(difference: float, assumptions: Assumptions, power: float, alpha: float) -> PlanRow:
    assert assumptions.mean is not None
    assert assumptions.discordance is not None
    n_paired, is_exact = _find_paired_size(difference, assumptions.discordance, power, alpha)
    first_mean, second_mean = assumptions.mean, assumptions.mean + difference
    n_unpaired = None
    if second_mean < 1:
        z_alpha, z_power = _compute_quantiles(power, alpha)
        mean = (first_mean + second_mean) / 2
        null_deviation = math.sqrt(2 * mean * (1 - mean))
        alternative_deviation = math.sqrt(first_mean * (1 - first_mean) + second_mean * (1 - second_mean))
        n_unpaired = math.ceil(
            ((z_alpha * null_deviation + z_power * alternative_deviation) / (second_mean - first_mean)) ** 2
        )
    return PlanRow(difference, n_paired, is_exact, n_unpaired, accuracy_sample_size(assumptions.mean, difference))


def _find_paired_size(difference: float, discordance: float, power: float, alpha: float) -> tuple[int | None, bool]:
    """Return the number of questions for McNemar's test, and whether it is exact.

    The number is None if the difference is larger than the discordance, and thus impossible.
    """
    if difference > discordance:
        return None, True
    z_alpha, z_power = _compute_quantiles(power, alpha)
    difference_deviation = math.sqrt(max(0.0, discordance - difference**2))
    # 2 / difference corrects for continuity; the exact test needs more questions than the uncorrected approximation.
    estimate = math.ceil(
        ((z_alpha * math.sqrt(discordance) + z_power * difference_deviation) / difference) ** 2 + 2 / difference
    )
    if estimate > MAX_EXACT_QUESTIONS:
        return estimate, False
    second_only, first_only = (discordance + difference) / 2, (discordance - difference) / 2

    def is_sufficient(n: int) -> bool:
        return mcnemar_power(second_only, first_only, n, alpha) >= power

    lower_bound, upper_bound = max(1, estimate // 2), estimate
    while not is_sufficient(upper_bound):
        lower_bound, upper_bound = upper_bound, math.ceil(upper_bound * 1.15) + 1
    while lower_bound + 1 < upper_bound:
        midpoint = (lower_bound + upper_bound) // 2
        lower_bound, upper_bound = (lower_bound, midpoint) if is_sufficient(midpoint) else (midpoint, upper_bound)
    return upper_bound, True


def _make_mean_row(difference: float, assumptions: Assumptions, power: float, alpha: float) -> PlanRow:
    assert assumptions.deviation is not None
    assert assumptions.paired_deviation is not None
    z_alpha, z_power = _compute_quantiles(power, alpha)
    factor = (z_alpha + z_power) / difference
    z_95 = _compute_quantiles(0.5, 0.05)[0]
    return PlanRow(
        difference,
        _round_up((factor * assumptions.paired_deviation) ** 2),
        False,
        _round_up(2 * (factor * assumptions.deviation) ** 2),
        _round_up((z_95 * assumptions.deviation / difference) ** 2),
    )


def _round_up(number: float) -> int:
    return max(2, math.ceil(number - 1e-9))


def plan_table(plan: Plan) -> Table:
    """Return a table of the numbers of questions by difference and design."""
    assumptions = plan.assumptions
    if assumptions.binary:
        difference_heading, test = "points", "exact McNemar test (~: normal approximation)"
        description = (
            f"the first system is right on {100 * (assumptions.mean or 0):.1f}% and the two disagree on "
            f"{100 * (assumptions.discordance or 0):.1f}% of the questions"
        )
    else:
        difference_heading, test = "difference", "paired test of means, normal approximation (~)"
        description = (
            f"scores spread by {assumptions.deviation:.3g} over questions and differences of two systems by "
            f"{assumptions.paired_deviation:.3g} (standard deviations)"
        )
    return Table.of(
        f"Questions needed to see a difference in {METRICS[plan.metric].label}",
        [difference_heading, "same questions", "own questions,\nper system", "interval of +/-\nthe difference"],
        [
            [
                f"{100 * row.difference:g}" if assumptions.binary else f"{row.difference:g}",
                "-" if row.paired is None else f"{'' if row.exact else '~'}{row.paired:,}",
                "-" if row.unpaired is None else f"{row.unpaired:,}",
                f"{row.interval:,}",
            ]
            for row in plan.rows
        ],
        note=f"Power {100 * plan.power:g}%, two-sided level {plan.alpha:g}. Assumed: {description} "
        f"({assumptions.origin}). same questions: {test}. -: no such difference is possible.",
    )
