"""How many questions an experiment needs before it can show a difference."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from climassay.errors import InputError
from climassay.evaluation.results import Experiment
from climassay.evaluation.scores import answered_cells, common_scores, score_of
from climassay.metrics.registry import METRICS
from climassay.reporting import Table
from climassay.statistics import accuracy_sample_size, mcnemar_power

EXACT_UP_TO = 2000
"""Questions up to which McNemar's power is summed exactly; above, the corrected normal approximation is used, which
differs by about one per cent there."""


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What is assumed of the scores; sample sizes are only as good as this."""

    binary: bool
    mean: float | None
    """Accuracy of the first system (binary)."""
    discordance: float | None
    """Share of questions that exactly one of the two systems gets right (binary)."""
    deviation: float | None
    """Standard deviation of a score over questions (mean metrics)."""
    paired_deviation: float | None
    """Standard deviation of the difference of two systems' scores on one question (mean metrics)."""
    origin: str


@dataclass(frozen=True, slots=True)
class PlanRow:
    """Questions needed for one difference; None where it cannot be had."""

    difference: float
    """In the units of the score, shares for binary metrics."""
    paired: int | None
    """Both systems answer the same questions: exact McNemar test, or a paired test of means."""
    exact: bool
    """Whether ``paired`` is exact; else from the normal approximation."""
    unpaired: int | None
    """A system, where each answers questions of its own."""
    interval: int
    """For a 95% interval of one system's score that reaches so far on each side."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Questions needed by difference."""

    metric: str
    power: float
    alpha: float
    assumptions: Assumptions
    rows: tuple[PlanRow, ...]


def assume_binary(mean: float, discordance: float | None = None) -> Assumptions:
    """Assumptions for right or wrong.

    Args:
        mean: Accuracy of the first system.
        discordance: Share of questions on which the systems disagree; by default that of two systems of this accuracy
            that agree no more than chance makes them, ``2 mean (1 - mean)``, which asks for too many questions rather
            than too few: systems that resemble each other disagree less.

    Raises:
        InputError: A share outside of 0..1.
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
    """Assumptions for a metric that is a mean of numbers.

    Args:
        deviation: Standard deviation of a score over questions.
        correlation: Correlation of two systems' scores over questions.

    Raises:
        InputError: A deviation that is not positive, or a correlation outside of -1..1.
    """
    if deviation <= 0:
        raise InputError(f"The standard deviation of scores must be above 0, not {deviation:g}.")
    if not -1 <= correlation < 1:
        raise InputError(f"The correlation of two systems must be between -1 and 1, not {correlation:g}.")
    return Assumptions(False, None, None, deviation, deviation * math.sqrt(2 * (1 - correlation)), "given")


def _no_variation(run: str, label: str) -> str:
    return (
        f"In {run} most models and settings have the same {label}, or all questions one value, so that nothing can be "
        "estimated from it: state assumptions in place of --run."
    )


def assume_from_run(experiment: Experiment, metric: str) -> Assumptions:
    """Assumptions estimated from an experiment: medians over its cells and over its pairs of cells.

    Pairs are those that the experiment compares: settings of one model, and models in one setting.

    Raises:
        InputError: No such metric, fewer than two cells with scores in it, or no variation at all.
    """
    known = METRICS.find(metric)
    cells = {cell: outcomes for cell, outcomes in answered_cells(experiment).items() if known.scores(cell.task)}
    columns = [[score_of(outcome, metric) for outcome in outcomes] for outcomes in cells.values()]
    scores = [[value for value in column if value is not None] for column in columns]
    pairs = [
        common_scores(cells[a], cells[b], metric)
        for a, b in combinations(cells, 2)
        if a.benchmark == b.benchmark and (a.model == b.model or a.setting == b.setting)
    ]
    gaps = [np.subtract(b, a) for a, b in pairs if len(a) > 1]
    scores = [column for column in scores if len(column) > 1]
    if not gaps:
        raise InputError(f"{experiment.run} has no two cells to compare in {known.label}.")
    origin = f"medians over {len(scores)} cells and {len(gaps)} pairs of {experiment.run}"
    if known.binary:
        mean = float(np.median([np.mean(column) for column in scores]))
        discordance = float(np.median([np.mean(gap != 0) for gap in gaps]))
        if not 0 < mean < 1 or discordance == 0:
            raise InputError(_no_variation(experiment.run, known.label))
        return Assumptions(True, mean, discordance, None, None, origin)
    deviation = float(np.median([np.std(column, ddof=1) for column in scores]))
    paired = float(np.median([np.std(gap, ddof=1) for gap in gaps]))
    if deviation == 0 or paired == 0:
        raise InputError(_no_variation(experiment.run, known.label))
    return Assumptions(False, None, None, deviation, paired, origin)


def plan(
    differences: Sequence[float],
    assumptions: Assumptions,
    *,
    metric: str = "accuracy",
    power: float = 0.8,
    alpha: float = 0.05,
) -> Plan:
    """Questions needed to see each difference, in three designs.

    Args:
        differences: Differences of two means, above 0; shares for binary metrics (0.05 is five points).
        assumptions: See :func:`assume_binary`, :func:`assume_mean`, :func:`assume_from_run`.
        metric: Name for the table.
        power: Probability of seeing the difference where it is there.
        alpha: Two-sided level of significance; divide it by the number of tests for a correction (Bonferroni).

    Raises:
        InputError: A difference, power or level that makes no sense.

    References:
        Miettinen (1968), Biometrics 24, 339-352, and Connor (1987), Biometrics 43, 207-211, for McNemar's test;
        Fleiss, Levin and Paik (2003), Statistical Methods for Rates and Proportions, section 4.2, for two shares.
    """
    METRICS.find(metric)
    if not differences or min(differences) <= 0:
        raise InputError("A plan needs differences greater than 0.")
    if not 0 < alpha < 1 or not alpha < power < 1:
        raise InputError("The power must be between the significance level and 1, and the level between 0 and 1.")
    row = _binary_row if assumptions.binary else _mean_row
    rows = tuple(row(difference, assumptions, power, alpha) for difference in sorted(differences))
    return Plan(metric, power, alpha, assumptions, rows)


def _quantiles(power: float, alpha: float) -> tuple[float, float]:
    from scipy.stats import norm

    return float(norm.ppf(1 - alpha / 2)), float(norm.ppf(power))


def _binary_row(difference: float, given: Assumptions, power: float, alpha: float) -> PlanRow:
    assert given.mean is not None
    assert given.discordance is not None
    paired, exact = _paired_binary(difference, given.discordance, power, alpha)
    first, second = given.mean, given.mean + difference
    unpaired = None
    if second < 1:
        outer, inner = _quantiles(power, alpha)
        middle = (first + second) / 2
        null = math.sqrt(2 * middle * (1 - middle))
        apart = math.sqrt(first * (1 - first) + second * (1 - second))
        unpaired = math.ceil(((outer * null + inner * apart) / (second - first)) ** 2)
    return PlanRow(difference, paired, exact, unpaired, accuracy_sample_size(given.mean, difference))


def _paired_binary(difference: float, discordance: float, power: float, alpha: float) -> tuple[int | None, bool]:
    """Questions for McNemar's test; None where the systems disagree on fewer questions than the difference needs."""
    if difference > discordance:
        return None, True
    outer, inner = _quantiles(power, alpha)
    spread = math.sqrt(max(0.0, discordance - difference**2))
    # Two questions for each difference of one: the correction for continuity, without which the exact test needs more.
    about = math.ceil(((outer * math.sqrt(discordance) + inner * spread) / difference) ** 2 + 2 / difference)
    if about > EXACT_UP_TO:
        return about, False
    gain, loss = (discordance + difference) / 2, (discordance - difference) / 2

    def enough(n: int) -> bool:
        return mcnemar_power(gain, loss, n, alpha) >= power

    low, high = max(1, about // 2), about
    while not enough(high):
        low, high = high, math.ceil(high * 1.15) + 1
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high, True


def _mean_row(difference: float, given: Assumptions, power: float, alpha: float) -> PlanRow:
    assert given.deviation is not None
    assert given.paired_deviation is not None
    outer, inner = _quantiles(power, alpha)
    reach = (outer + inner) / difference
    at_95 = _quantiles(0.5, 0.05)[0]
    return PlanRow(
        difference,
        _at_least_two((reach * given.paired_deviation) ** 2),
        False,
        _at_least_two(2 * (reach * given.deviation) ** 2),
        _at_least_two((at_95 * given.deviation / difference) ** 2),
    )


def _at_least_two(number: float) -> int:
    return max(2, math.ceil(number - 1e-9))


def plan_table(plan: Plan) -> Table:
    """Questions needed by difference and design."""
    given = plan.assumptions
    if given.binary:
        unit, test = "points", "exact McNemar test (~: normal approximation)"
        assumed = (
            f"the first system is right on {100 * (given.mean or 0):.1f}% and the two disagree on "
            f"{100 * (given.discordance or 0):.1f}% of the questions"
        )
    else:
        unit, test = "difference", "paired test of means, normal approximation (~)"
        assumed = (
            f"scores spread by {given.deviation:.3g} over questions and differences of two systems by "
            f"{given.paired_deviation:.3g} (standard deviations)"
        )
    return Table.of(
        f"Questions needed to see a difference in {METRICS[plan.metric].label}",
        [unit, "same questions", "own questions,\na system", "interval so wide\neach side"],
        [
            [
                f"{100 * row.difference:g}" if given.binary else f"{row.difference:g}",
                "-" if row.paired is None else f"{'' if row.exact else '~'}{row.paired:,}",
                "-" if row.unpaired is None else f"{row.unpaired:,}",
                f"{row.interval:,}",
            ]
            for row in plan.rows
        ],
        note=f"Power {100 * plan.power:g}%, two-sided level {plan.alpha:g}. Assumed: {assumed} "
        f"({given.origin}). same questions: {test}. -: no such difference is possible.",
    )
