"""Checks by a model that answers a question from its passages and compares the answer with the marked one.

The generator of ClimaQA answered about 25% of its own multiple-choice questions wrongly with their contexts, often
because the pair of question and answer was inaccurate (section 4.2).
"""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from climassay.errors import InputError
from climassay.evaluation import Prediction, Prepared, Setting, TaskPrompts, ask_mcq
from climassay.generation.draft import Decision, Draft, Subject, apply_where, has_term, is_blank, mask_term
from climassay.generation.screening.check import right_answer
from climassay.models.contract import Completion, GenerationRequest, Generator, OptionScorer, Sampling
from climassay.prompts import Profile, load_prompt, profile_of
from climassay.questions import GAP, Question
from climassay.questions.types.multiple_choice import N_OPTIONS

REASON = "self-inconsistency"
SECOND_ANSWER = "second right answer"
"""Reason for rejection if another option is also right, or nearly as probable as the marked one."""


@dataclass(frozen=True)
class SelfConsistency:
    """Check that a model chooses the marked option of multiple-choice drafts, in several orders of the options.

    With four orders every option appears once at every position. A model that always answers *b* is then right in only
    a quarter of them.

    Raises:
        InputError: ``orders``, ``min_agreement`` or ``margin`` is out of range.
    """

    model: Generator
    """Model that answers the questions: by the probabilities of the option letters if it gives them, else in text."""
    orders: int = N_OPTIONS
    """Number of option orders per question; the first four are rotations."""
    min_agreement: float = 1.0
    """Minimum proportion of orders in which the model must choose the marked option, in (0, 1]."""
    margin: float = 0.0
    """Minimum difference between the mean probabilities of the marked option and the next most probable option, for
    models that give log-probabilities; 0 for no minimum. Below it, a second option is nearly as good."""
    prompts: TaskPrompts | None = None
    """Prompt templates of evaluations; the built-in templates by default."""
    seed: int = 0
    """Seed of the random orders that follow the rotations."""

    def __post_init__(self) -> None:
        if not 0 <= self.margin < 1:
            raise InputError(f"The margin must be at least 0 and below 1, not {self.margin}.")
        if self.orders < 1:
            raise InputError(f"At least one option order is needed, not {self.orders}.")
        if not 0 < self.min_agreement <= 1:
            raise InputError(f"The required share of orders must be above 0 and at most 1, not {self.min_agreement}.")

    def check(self, drafts: Sequence[Draft], on_progress: Callable[[int], None] | None = None) -> list[Draft]:
        """Add a decision to each usable multiple-choice draft, and return all drafts.

        The score of the decision is the proportion of orders in which the model chose the marked option. If calls
        failed and the remaining orders do not suffice to decide, the draft is undecided.

        Args:
            drafts: Drafts of any kind; those that cannot be checked are unchanged.
            on_progress: Called with the number of new answers.
        """
        answerable_drafts = {}
        for index, draft in enumerate(drafts):
            wording = draft.wording
            is_marked = wording.correct is not None and 0 <= wording.correct < len(wording.options)
            if draft.usable and draft.type.has_options and is_marked and len(wording.options) >= 2:
                answerable_drafts[index] = draft
        predictions: dict[int, list[Prediction]] = defaultdict(list)
        # Questions are identified by index, since ids of drafts may be repeated.
        questions = [
            Question(str(index), draft.kind, *draft.content[:2], draft.level, *draft.content[2:])
            for index, draft in answerable_drafts.items()
        ]

        def prepare(questions: Sequence[Question], _model: Generator) -> list[Prepared]:
            contexts = [answerable_drafts[int(question.id)].passages for question in questions]
            return [
                Prepared(tuple(passage.text for passage in passages), tuple(passage.id for passage in passages))
                for passages in contexts
            ]

        for kind in dict.fromkeys(question.kind for question in questions):
            for prediction in ask_mcq(
                [question for question in questions if question.kind == kind],
                self.model,
                [Setting("passages", prepare)],
                self.prompts or TaskPrompts.load(),
                scorings=["likelihood" if isinstance(self.model, OptionScorer) else "letter"],
                orders=self.orders,
                seed=self.seed,
                on_progress=on_progress,
            ):
                predictions[int(prediction.question)].append(prediction)
        return [
            draft.with_decisions(self._decide(predictions[index])) if index in answerable_drafts else draft
            for index, draft in enumerate(drafts)
        ]

    def _decide(self, predictions: Sequence[Prediction]) -> Decision:
        n_orders = len(predictions)
        n_correct = sum(prediction.correct for prediction in predictions)
        errors = [prediction.error for prediction in predictions if prediction.error is not None]
        if n_correct + len(errors) < self.min_agreement * n_orders - 1e-9:
            detail = f"It chose the marked option in {n_correct} of {n_orders} option orders."
            return Decision("consistency", self.model.name, False, REASON, detail, n_correct / n_orders)
        if n_correct < self.min_agreement * n_orders - 1e-9:
            detail = f"{len(errors)} of {n_orders} requests failed, the first one because: {errors[0]}"
            return Decision("consistency", self.model.name, None, "failed call", detail)
        margin = _probability_margin(predictions)
        if self.margin and margin is not None and margin < self.margin:
            detail = f"The marked option leads the next one only by a probability of {margin:.2f}."
            return Decision("consistency", self.model.name, False, SECOND_ANSWER, detail, margin)
        return Decision("consistency", self.model.name, True, score=n_correct / n_orders)


def _probability_margin(predictions: Sequence[Prediction]) -> float | None:
    """Return the mean probability of the marked option minus the highest mean probability of another option.

    None if no prediction has probabilities.
    """
    scored_predictions = [prediction for prediction in predictions if prediction.logprobs and prediction.error is None]
    if not scored_predictions:
        return None
    means: dict[int, float] = defaultdict(float)
    for prediction in scored_predictions:
        probabilities = np.exp(np.array(prediction.logprobs) - np.logaddexp.reduce(prediction.logprobs))
        for option, probability in zip(prediction.order, probabilities, strict=True):
            means[option] += float(probability) / len(scored_predictions)
    marked_option = scored_predictions[0].order[scored_predictions[0].correct_position]
    return means.pop(marked_option) - max(means.values())


REPLACED_CHECKS = ("off topic", "unsupported answer")
"""Names of checks by words and embeddings that are skipped if a model verifies the drafts."""
FLAWS = {
    "none": "",
    "gives the answer away": "answer given away",
    "hard to read": "hard to read",
    "not about the subject": "not about the subject",
}
"""Reason for rejection for each flaw of the wording that a model can name; empty for no flaw."""
VERDICTS = ("right", "wrong", "not in the passages", "beside the question")
LETTERS = "abcd"
_REASONS = {"wrong": "wrong answer", "not in the passages": "not in the passages"}
_MAX_TEXT_LENGTH = 2000


class Verification:
    """Check by a strong model, using the prompt ``verify``, that drafts of all kinds are correct and clear."""

    def __init__(
        self,
        model: Generator,
        *,
        subject: Subject | None = None,
        prompts: Path | None = None,
        max_tokens: int = 400,
        seed: int = 0,
    ) -> None:
        """Load the prompt template ``verify``.

        Raises:
            InputError: The template is invalid.
        """
        self.name = model.name
        self._model = model
        self._subject = subject or Subject()
        self._prompt = load_prompt("verify", prompts)
        self._sampling = Sampling(max_tokens, 0.0, seed=seed)

    def check(self, drafts: Sequence[Draft], on_progress: Callable[[int], None] | None = None) -> list[Draft]:
        """Add to each complete draft a rejection for every fault, or one acceptance, and return all drafts.

        If the call failed, the draft is undecided. Rejected drafts, drafts without an answer or term, and drafts that
        were verified before are unchanged.
        """
        on_result = None if on_progress is None else (lambda _index, _answer: on_progress(1))

        def verify(complete_drafts: Sequence[Draft]) -> list[Draft]:
            answers = self._model.generate([self.request(draft) for draft in complete_drafts], on_result=on_result)
            pairs = zip(complete_drafts, answers, strict=True)
            return [draft.with_decisions(*self._decide(draft, answer)) for draft, answer in pairs]

        return apply_where(_is_complete, verify, drafts)

    def request(self, draft: Draft) -> GenerationRequest:
        """Build the request to verify a complete draft."""
        wording, question = draft.wording, draft.wording.question
        if draft.type.has_gap:
            question = mask_term(question, wording.answer).replace(GAP, "____")
        elif draft.type.fixed_options:
            question = f"{draft.type.title}? {question}"
        rendered_prompt = self._prompt.render(
            has_options=draft.type.has_options,
            has_gap=draft.type.has_gap,
            level=draft.level,
            question=question,
            options=[{"letter": letter, "text": text} for letter, text in zip(LETTERS, wording.options, strict=False)],
            answer=right_answer(draft),
            passages=[{"source": passage.source, "text": passage.text} for passage in draft.passages],
            subject=self._subject,
        )
        return GenerationRequest(
            rendered_prompt.messages, self._sampling, _answer_schema(draft), rendered_prompt.assistant_prefix
        )

    def _decide(self, draft: Draft, answer: Completion) -> list[Decision]:
        fields: Mapping[str, Any] = {}
        error = answer.error
        if error is None:
            try:
                fields = json.loads(answer.text)
                faults = _find_faults(draft, fields)
            except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
                error = "The reply does not have the requested format."
        if error is not None:
            return [Decision("consistency", self.name, None, "failed call", error)]
        explanation = " ".join(str(fields["reasoning"]).split())
        if not faults:
            return [Decision("consistency", self.name, True, detail=explanation)]
        return [
            Decision("consistency", self.name, False, reason, f"{detail} {explanation}".strip())
            for reason, detail in faults.items()
        ]


def answer_check(
    model: Generator,
    profile: Profile | None = None,
    *,
    orders: int = len(LETTERS),
    min_agreement: float = 1.0,
    margin: float = 0.2,
    prompts: Path | None = None,
    subject: Subject | None = None,
    seed: int = 0,
) -> SelfConsistency | Verification:
    """Return the check that suits a model: :class:`SelfConsistency` for small models, else :class:`Verification`.

    Args:
        model: Model that answers the questions of the drafts.
        profile: Profile of the model; with ``scored`` the model counts as small. By default the model's own profile.
        orders: See :class:`SelfConsistency`.
        min_agreement: See :class:`SelfConsistency`.
        margin: See :class:`SelfConsistency`.
        prompts: Folder of the user's own prompts.
        subject: Field and audience of the questions.
        seed: Seed of the option orders and of sampling.

    Raises:
        InputError: A number is out of range, or a prompt is invalid.
    """
    profile = profile or profile_of(model)
    if not profile.scored:
        return Verification(model, subject=subject, prompts=prompts, max_tokens=profile.text_tokens, seed=seed)
    templates = TaskPrompts.load(prompts)
    return SelfConsistency(
        model, orders=orders, min_agreement=min_agreement, margin=margin, prompts=templates, seed=seed
    )


def _is_complete(draft: Draft) -> bool:
    is_verified = any(decision.step == "consistency" for decision in draft.decisions)
    if not draft.usable or not draft.wording.answer or is_verified:
        return False
    if draft.type.has_gap:
        return has_term(draft.wording.question, draft.wording.answer)
    marked_index = draft.wording.correct
    return not draft.type.has_options or (
        marked_index is not None and 0 <= marked_index < len(draft.wording.options) <= len(LETTERS)
    )


def _answer_schema(draft: Draft) -> dict[str, Any]:
    text = {"type": "string", "maxLength": _MAX_TEXT_LENGTH}
    letters = list(LETTERS[: len(draft.wording.options)])
    answer: dict[str, Any] = {"answer": {"type": "string", "enum": list(VERDICTS)}}
    if draft.type.has_options:
        answer = {
            "answer": {"type": "string", "enum": [*letters, "none"]},
            "also_right": {"type": "array", "items": {"type": "string", "enum": letters}, "maxItems": len(LETTERS)},
        }
    elif draft.type.has_gap:
        answer = {
            "answer": {"type": "string", "enum": list(VERDICTS[:3])},
            "also_right": {"type": "array", "items": text, "maxItems": 5},
            "is_term": {"type": "boolean"},
        }
    flaw = {"type": "string", "enum": list(FLAWS)}
    properties = {"missing": text, "reasoning": text, **answer, "flaw": flaw}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _find_faults(draft: Draft, fields: Mapping[str, Any]) -> dict[str, str]:
    """Return the faults in a model's verification: a sentence for each reason, the gravest first."""
    results = {}
    answer = fields["answer"]
    if draft.type.has_options:
        marked_letter = LETTERS[draft.wording.correct or 0]
        alternatives = [letter for letter in fields["also_right"] if letter not in (answer, marked_letter)]
        if answer != marked_letter:
            results[REASON] = f"It chose {answer} instead of {marked_letter}."
            alternatives = [letter for letter in fields["also_right"] if letter == marked_letter]
        if alternatives:
            results[SECOND_ANSWER] = f"It also considers {', '.join(alternatives)} correct."
    elif answer != "right":
        results[_REASONS.get(answer, str(answer))] = ""
    if draft.type.has_gap:
        term = draft.wording.answer.casefold()
        alternatives = [word for word in fields["also_right"] if not is_blank(word) and word.casefold() != term]
        if alternatives:
            results[SECOND_ANSWER] = f"These words fit as well: {', '.join(alternatives)}."
        if not fields["is_term"]:
            results["term trivial"] = f"It does not consider “{draft.wording.answer}” a scientific term."
    if not is_blank(fields["missing"]):
        results["not self-contained"] = f"It lacks: {fields['missing']}."
    if reason := FLAWS[fields["flaw"]]:
        results[reason] = ""
    return results
