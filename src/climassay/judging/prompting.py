"""Methods that only read the model's answers: direct scoring and PairS."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from climassay.judging.asking import Questions, mirrored
from climassay.judging.items import Item
from climassay.judging.preferences import CERTAIN, FloatArray, IntArray, Judgements, Progress
from climassay.learning.pairwise import both_orders
from climassay.models.contract import OptionRequest, OptionScorer, OptionScores


class DirectScoring:
    """Rate each item by itself and compare the ratings.

    A preference is 1, 0.5 or 0, as published (thesis, section 2.2), where the rating is the most probable answer of
    the scale; with ``rule="expected"`` it is the sign of the difference of the expected ratings, which ties far less.

    Args:
        model: Any model that gives log-probabilities of answers.
        questions: Templates of the quality.
        rule: ``most_likely`` answer, or ``expected`` rating under the probabilities of all answers of the scale.
    """

    def __init__(
        self, model: OptionScorer, questions: Questions, *, rule: Literal["most_likely", "expected"] = "most_likely"
    ) -> None:
        self._model = model
        self._questions = questions
        self._rule = rule
        self.name = "direct" if rule == "most_likely" else "direct (expected)"

    def scores(self, items: Sequence[Item], *, on_progress: Progress | None = None) -> FloatArray:
        """Ratings, 0 for the lowest answer of the scale; NaN where the model gave no answer. Shape [items]."""
        answers = _weigh(self._model, self._questions.direct(items), on_progress)
        return np.array([self._rating(answer) for answer in answers], dtype=np.float64)

    def compare(self, items: Sequence[Item], pairs: IntArray, *, on_progress: Progress | None = None) -> Judgements:
        """See :class:`climassay.judging.Method`."""
        used = np.unique(pairs)
        ratings = np.full(len(items), np.nan)
        ratings[used] = self.scores([items[index] for index in used], on_progress=on_progress)
        difference = ratings[pairs[:, 0]] - ratings[pairs[:, 1]]
        failed = np.isnan(difference)
        return Judgements(CERTAIN * np.sign(np.where(failed, 0.0, difference)), failed)

    def _rating(self, answer: OptionScores) -> float:
        if answer.error is not None:
            return float("nan")
        if self._rule == "most_likely":
            return float(answer.best or 0)
        logprobs = np.array(answer.logprobs)
        shares = np.exp(logprobs - logprobs.max())
        return float(shares @ np.arange(len(shares)) / shares.sum())


class PairwisePrompt:
    """PairS: the model is shown both items with a definition of the quality and answers A or B.

    Args:
        model: Any model that gives log-probabilities of answers.
        questions: Templates of the quality.
        orders: 2 asks in both orders and averages in log-odds, which takes out the model's liking for a position.

    References:
        Liu et al. 2024, arXiv 2403.16950; thesis, section 2.2 and appendix A.1.
    """

    name = "pairs"

    def __init__(self, model: OptionScorer, questions: Questions, *, orders: Literal[1, 2] = 2) -> None:
        self._model = model
        self._questions = questions
        self._orders = orders

    def compare(self, items: Sequence[Item], pairs: IntArray, *, on_progress: Progress | None = None) -> Judgements:
        """See :class:`climassay.judging.Method`."""
        asked = pairs if self._orders == 1 else np.concatenate([pairs, mirrored(pairs)])
        answers = _weigh(self._model, self._questions.pairs(items, asked), on_progress)
        return averaged(margins(answers), np.array([answer.error is not None for answer in answers]), self._orders)


def margins(answers: Sequence[OptionScores]) -> FloatArray:
    """Log-odds of the first of two options against the second; 0 where there is no answer. Shape [answers]."""
    return np.array([0.0 if answer.error else answer.logprobs[0] - answer.logprobs[1] for answer in answers])


def averaged(log_odds: FloatArray, failed: np.ndarray, orders: int) -> Judgements:
    """Judgements from answers of pairs, or of pairs followed by the same pairs mirrored.

    Args:
        log_odds: Shape [orders * pairs], of the first item against the second.
        failed: Shape [orders * pairs], whether there is no answer.
        orders: 1 or 2.
    """
    if orders == 1:
        return Judgements(np.where(failed, 0.0, log_odds), failed)
    half = len(log_odds) // 2
    lost = failed[:half] | failed[half:]
    return Judgements(np.where(lost, 0.0, both_orders(log_odds[:half], log_odds[half:])), lost)


def _weigh(model: OptionScorer, requests: Sequence[OptionRequest], on_progress: Progress | None) -> list[OptionScores]:
    return model.option_logprobs(requests, on_result=None if on_progress is None else lambda _i, _s: on_progress(1))
