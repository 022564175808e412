"""Does a model, given the passages, answer a question as it is marked, however the options are ordered?

The paper's generator answered about 25% of its own multiple-choice questions wrongly although it was given the
contexts, often because the pair of question and answer was inaccurate (ClimaQA, section 4.2).
"""

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from climassay.errors import InputError
from climassay.evaluation import Prediction, Prepared, Scoring, Setting, TaskPrompts, ask_mcq
from climassay.generation.draft import Decision, Draft
from climassay.generation.screening.options import OPTIONS
from climassay.models.contract import Generator, OptionScorer
from climassay.questions import Question

REASON = "self-inconsistency"
NARROW = "second right answer"
"""Reason where another option is nearly as probable as the marked one."""


class SelfConsistency:
    """Asks multiple-choice drafts in several orders of their options.

    With four orders every option stands at every position once, so that a model that always says *b* is right in a
    quarter of them, whatever the key.
    """

    def __init__(
        self,
        model: Generator,
        *,
        orders: int = OPTIONS,
        needed: float = 1.0,
        margin: float = 0.0,
        with_passages: bool = True,
        prompts: TaskPrompts | None = None,
        seed: int = 0,
    ) -> None:
        """Prepare; nothing is asked yet.

        Args:
            model: Its option letters are weighed where it gives log-probabilities, else it writes a letter.
            orders: Option orders a question; the first four are rotations.
            needed: Least share of orders answered as marked, above 0 to 1.
            margin: Least lead of the marked option over the next one, as a difference of probabilities averaged over
                the orders, for models that give log-probabilities; 0 asks for none. A small lead means that a second
                option is about as right.
            with_passages: Whether the model is given the draft's passages.
            prompts: Templates of the evaluation; the built-in ones by default.
            seed: Of the orders beyond the rotations.

        Raises:
            InputError: No orders, or a share or margin out of its range.
        """
        if not 0 <= margin < 1:
            raise InputError(f"The margin is at least 0 and below 1: not {margin}.")
        if orders < 1:
            raise InputError(f"At least one option order is needed, not {orders}.")
        if not 0 < needed <= 1:
            raise InputError(f"The share of orders that are needed lies above 0 and is at most 1: not {needed}.")
        self.name = model.name
        self._model = model
        self._orders = orders
        self._needed = needed
        self._margin = margin
        self._with_passages = with_passages
        self._prompts = prompts
        self._seed = seed

    def check(self, drafts: Sequence[Draft], on_progress: Callable[[int], None] | None = None) -> list[Draft]:
        """The drafts, each question with options with a decision.

        The decision's score is the share of orders answered as marked. Where a call failed it is undecided, unless
        the orders that were answered already decide. Drafts of other kinds, failures and what is rejected already pass
        through unasked.

        Args:
            drafts: Of any kind.
            on_progress: Called with the number of answers that came in.
        """
        askable = {place: draft for place, draft in enumerate(drafts) if _askable(draft)}
        predictions = self._ask(askable, on_progress)
        return [
            draft.decided(self._decision(predictions[place])) if place in askable else draft
            for place, draft in enumerate(drafts)
        ]

    def _ask(self, askable: dict[int, Draft], on_progress: Callable[[int], None] | None) -> dict[int, list[Prediction]]:
        if not askable:
            return {}
        # Ids of drafts need not be unique here, places are.
        questions = [_question(draft, str(place)) for place, draft in askable.items()]
        setting = Setting("passages" if self._with_passages else "default", self._prepare(askable))
        scoring: Scoring = "likelihood" if isinstance(self._model, OptionScorer) else "letter"
        found: dict[int, list[Prediction]] = defaultdict(list)
        for kind in dict.fromkeys(question.kind for question in questions):
            for prediction in ask_mcq(
                [question for question in questions if question.kind == kind],
                self._model,
                [setting],
                self._prompts or TaskPrompts.load(),
                scorings=[scoring],
                orders=self._orders,
                seed=self._seed,
                on_progress=on_progress,
            ):
                found[int(prediction.question)].append(prediction)
        return found

    def _prepare(self, askable: dict[int, Draft]) -> Callable[[Sequence[Question], Generator], list[Prepared]]:
        def prepare(questions: Sequence[Question], _model: Generator) -> list[Prepared]:
            given = [askable[int(question.id)].passages if self._with_passages else () for question in questions]
            return [Prepared(tuple(one.text for one in own), tuple(one.id for one in own)) for own in given]

        return prepare

    def _decision(self, predictions: Sequence[Prediction]) -> Decision:
        total = len(predictions)
        right = sum(one.correct for one in predictions)
        failures = [one.error for one in predictions if one.error is not None]
        if right + len(failures) < self._needed * total - 1e-9:
            detail = f"It chose the marked option in {right} of {total} option orders."
            return Decision("consistency", self.name, False, REASON, detail, right / total)
        if right < self._needed * total - 1e-9:
            detail = f"{len(failures)} of {total} requests failed, the first one because: {failures[0]}"
            return Decision("consistency", self.name, None, "failed call", detail)
        lead = _lead(predictions)
        if self._margin and lead is not None and lead < self._margin:
            detail = f"The marked option leads the next one by a probability of {lead:.2f} only."
            return Decision("consistency", self.name, False, NARROW, detail, lead)
        return Decision("consistency", self.name, True, score=right / total)


def _lead(predictions: Sequence[Prediction]) -> float | None:
    """P(marked option) less the greatest of the others, each averaged over the orders; None without probabilities."""
    given = [one for one in predictions if one.logprobs and one.error is None]
    if not given:
        return None
    mean: dict[int, float] = defaultdict(float)
    for one in given:
        shares = np.exp(np.array(one.logprobs) - np.logaddexp.reduce(one.logprobs))
        for option, share in zip(one.order, shares, strict=True):
            mean[option] += float(share) / len(given)
    marked = given[0].order[given[0].correct_position]
    return mean.pop(marked) - max(mean.values())


def _askable(draft: Draft) -> bool:
    wording = draft.wording
    marked = wording.correct is not None and 0 <= wording.correct < len(wording.options)
    return draft.usable and draft.type.options and marked and len(wording.options) >= 2


def _question(draft: Draft, name: str) -> Question:
    wording = draft.wording
    return Question(
        id=name,
        kind=draft.kind,
        question=wording.question,
        answer=wording.answer,
        level=draft.level,
        options=wording.options,
        correct=wording.correct,
    )
