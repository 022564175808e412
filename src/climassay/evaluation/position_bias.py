"""Position bias of multiple-choice answers, measured over several option orders."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from climassay.evaluation.tasks import Prediction
from climassay.statistics import Estimate, proportion


@dataclass(frozen=True, slots=True)
class PositionRow:
    """Position bias of a model: the distribution of its choices over positions, over several orders of the options."""

    model: str
    setting: str
    scoring: str
    orders: int
    picked: tuple[float, ...]
    """Proportion of the choices at each position."""
    right: tuple[float, ...]
    """Proportion of correct answers to questions whose correct option was at each position."""
    recall_spread: float
    """Standard deviation of ``right`` over positions; 0 without position bias (RStd of Zheng et al. 2024)."""
    p_value: float | None
    """P-value of a chi-squared test of the hypothesis that choices are distributed over positions like the correct
    options.

    None with fewer orders than options, because the positions of correct options are then random too: the test would
    find a bias in every fifth model that guesses.
    """
    consistent: float
    """Proportion of questions with the same choice in every order."""
    averaged: Estimate | None
    """Accuracy if the log-probabilities of each option are averaged over the orders; None without log-probabilities.

    With at least as many orders as options, averaging removes position bias.
    """


def position_row(variant: tuple[str, str, str], rows: Sequence[Prediction]) -> PositionRow:
    """Compute position bias from the predictions ``rows`` of one variant (model, setting and scoring)."""
    from scipy.special import chdtrc  # scipy.stats takes a second to import.

    n_positions = max(len(row.order) for row in rows)
    n_picked = np.bincount([row.position for row in rows if row.position is not None], minlength=n_positions)
    n_right = np.bincount([row.correct_position for row in rows if row.correct], minlength=n_positions)
    n_correct = np.bincount([row.correct_position for row in rows], minlength=n_positions)
    recall = n_right / np.maximum(n_correct, 1)
    n_answered = np.bincount([row.correct_position for row in rows if row.position is not None], minlength=n_positions)
    is_used = n_answered > 0
    total = n_picked.sum()
    is_testable = is_used.sum() > 1 and n_picked[is_used].sum() == total and total > 0
    # Pearson's chi-squared test.
    chi_squared_terms = (n_picked[is_used] - n_answered[is_used]) ** 2 / n_answered[is_used]
    p_value = float(chdtrc(is_used.sum() - 1, chi_squared_terms.sum())) if is_testable else 1.0
    orders = max(row.permutation for row in rows) + 1
    choices: dict[str, set[int | None]] = defaultdict(set)
    for row in rows:
        choices[row.question].add(row.chosen)
    return PositionRow(
        *variant,
        orders=orders,
        picked=tuple(float(share) for share in n_picked / max(total, 1)),
        right=tuple(float(share) for share in recall),
        recall_spread=float(recall[n_correct > 0].std()),
        p_value=p_value if orders >= n_positions else None,
        consistent=float(np.mean([len(options) == 1 and None not in options for options in choices.values()])),
        averaged=_compute_averaged_accuracy(rows),
    )


def _compute_averaged_accuracy(rows: Sequence[Prediction]) -> Estimate | None:
    """Return the accuracy of choosing the option with the highest mean log-probability over the orders.

    A question with a failed order counts as wrong.
    """
    if not any(row.logprobs for row in rows):
        return None
    totals: dict[str, NDArray[np.float64] | None] = {}
    correct_option_by_question: dict[str, int] = {}
    for row in rows:
        correct_option_by_question[row.question] = row.order[row.correct_position]
        total = totals.get(row.question, np.zeros(len(row.order)))
        if total is None or not row.logprobs:
            totals[row.question] = None
            continue
        # Normalised over the options first, so that an order with a confident model weighs no more than another.
        logprobs = np.array(row.logprobs) - np.logaddexp.reduce(row.logprobs)
        logprobs_by_option = np.zeros(len(row.order))
        logprobs_by_option[list(row.order)] = logprobs
        totals[row.question] = total + logprobs_by_option
    n_right = sum(
        total is not None and int(total.argmax()) == correct_option_by_question[question]
        for question, total in totals.items()
    )
    return proportion(n_right, len(totals))
