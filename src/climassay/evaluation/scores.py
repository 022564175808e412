"""From predictions to tables: accuracy by level with interval and baselines, paired tests, position bias."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from climassay.evaluation.mcq import Prediction
from climassay.questions import LEVELS, Question
from climassay.statistics import Estimate, holm, mcnemar, mean_estimate, paired_difference, proportion

OVERALL = "overall"


@dataclass(frozen=True, slots=True)
class AccuracyRow:
    """Accuracy of one setting and scoring at one level."""

    setting: str
    scoring: str
    level: str
    accuracy: Estimate
    """n counts questions; with several option orders each question weighs its mean over them."""
    baseline: float
    """Accuracy of the best constant answer: always the same letter."""
    chance: float
    """Mean of 1 / number of options."""
    unparsed: int
    """Answers without an option letter; counted wrong."""
    failed: int
    """Requests that failed; counted wrong."""


@dataclass(frozen=True, slots=True)
class PairedRow:
    """Two settings compared on the same questions."""

    first: str
    second: str
    scoring: str
    difference: Estimate
    """Accuracy of the second minus the first."""
    first_only: int
    """Questions only the first got right (order of the file)."""
    second_only: int
    test: str
    """``McNemar, exact`` for one option order, ``sign flip over questions`` for several."""
    p_value: float
    p_holm: float
    """Adjusted over all pairs of the table (Holm)."""


@dataclass(frozen=True, slots=True)
class PositionRow:
    """How the choices spread over positions, where options were permuted."""

    setting: str
    scoring: str
    orders: int
    picked: tuple[float, ...]
    """Share of choices at each position."""
    right: tuple[float, ...]
    """Share of questions answered right when the correct option stood at each position."""
    recall_spread: float
    """Standard deviation of ``right`` over positions: 0 without position bias (RStd of Zheng et al. 2024)."""
    p_value: float
    """Chi-square test that choices spread over positions as the correct options do."""
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


def score_mcq(questions: Sequence[Question], predictions: Sequence[Prediction], *, seed: int = 0) -> McqScores:
    """Tables of an evaluation.

    Args:
        questions: The questions that were asked.
        predictions: What :func:`~climassay.evaluation.mcq.ask_mcq` gave for them.
        seed: Seed of bootstrap and sign flips.
    """
    groups: dict[tuple[str, str], list[Prediction]] = defaultdict(list)
    for prediction in predictions:
        groups[prediction.setting, prediction.scoring].append(prediction)
    rows = [row for key, group in groups.items() for row in _accuracy_rows(key, group, questions, seed)]
    positions = [
        _position_row(key, group) for key, group in groups.items() if any(row.permutation > 0 for row in group)
    ]
    return McqScores(tuple(rows), _paired_rows(groups, seed), tuple(positions))


def _accuracy_rows(
    key: tuple[str, str], group: Sequence[Prediction], questions: Sequence[Question], seed: int
) -> Iterable[AccuracyRow]:
    sizes = {question.id: len(question.options) for question in questions}
    present = [level for level in LEVELS if any(row.level == level for row in group)]
    for level in [*present, OVERALL]:
        rows = [row for row in group if level in (OVERALL, row.level)]
        means = _by_question(rows)
        single = len(rows) == len(means)
        estimate = (
            proportion(sum(row.correct for row in rows), len(rows))
            if single
            else mean_estimate(list(means.values()), seed=seed)
        )
        letters = Counter(row.correct_position for row in rows)
        yield AccuracyRow(
            *key,
            level,
            estimate,
            baseline=max(letters.values()) / len(rows),
            chance=float(np.mean([1 / sizes[question] for question in means])),
            unparsed=sum(row.chosen is None and row.error is None for row in rows),
            failed=sum(row.error is not None for row in rows),
        )


def _by_question(rows: Iterable[Prediction]) -> dict[str, float]:
    """Mean correctness of each question over its option orders, in order of first appearance."""
    values: dict[str, list[bool]] = defaultdict(list)
    for row in rows:
        values[row.question].append(row.correct)
    return {question: float(np.mean(correct)) for question, correct in values.items()}


def _paired_rows(groups: dict[tuple[str, str], list[Prediction]], seed: int) -> tuple[PairedRow, ...]:
    pairs = [
        (first, second) for first, second in combinations(groups, 2) if first[1] == second[1] and first[0] != second[0]
    ]
    rows = []
    for first, second in pairs:
        a, b = _by_question(groups[first]), _by_question(groups[second])
        gap = paired_difference(list(a.values()), [b[question] for question in a], seed=seed)
        exact = mcnemar(_file_order(groups[first]), _file_order(groups[second]))
        single = all(row.permutation == 0 for row in groups[first])
        rows.append((first, second, gap, exact, single))
    p_values = [exact.p_value if single else gap.p_value for _, _, gap, exact, single in rows]
    return tuple(
        PairedRow(
            first=first[0],
            second=second[0],
            scoring=first[1],
            difference=gap.difference,
            first_only=exact.first_only,
            second_only=exact.second_only,
            test="McNemar, exact" if single else "sign flip over questions",
            p_value=p_value,
            p_holm=adjusted,
        )
        for (first, second, gap, exact, single), p_value, adjusted in zip(rows, p_values, holm(p_values), strict=True)
    )


def _file_order(rows: Sequence[Prediction]) -> list[bool]:
    """Right or wrong in the order of the file, by question."""
    return [row.correct for row in rows if row.permutation == 0]


def _position_row(key: tuple[str, str], rows: Sequence[Prediction]) -> PositionRow:
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
    choices: dict[str, set[int | None]] = defaultdict(set)
    for row in rows:
        choices[row.question].add(row.chosen)
    return PositionRow(
        *key,
        orders=max(row.permutation for row in rows) + 1,
        picked=tuple(float(share) for share in picked / max(total, 1)),
        right=tuple(float(share) for share in recall),
        recall_spread=float(recall[stood > 0].std()),
        p_value=p_value,
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
