"""Does a model, given the passages, answer a question as it is marked, however the options are ordered?

The paper's generator answered about 25% of its own multiple-choice questions wrongly although it was given the
contexts, often because the pair of question and answer was inaccurate (ClimaQA, section 4.2).
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
from climassay.generation.draft import Decision, Draft, Subject, gapped, has_term, is_blank, where
from climassay.generation.screening.check import right_answer
from climassay.generation.screening.checks import OPTIONS
from climassay.models.contract import Completion, GenerationRequest, Generator, OptionScorer, Sampling
from climassay.prompts import Profile, load_prompt, profile_of
from climassay.questions import GAP, Kind, Question

REASON = "self-inconsistency"
NARROW = "second right answer"
"""Reason where another option is nearly as probable as the marked one."""


@dataclass(frozen=True)
class SelfConsistency:
    """Asks multiple-choice drafts in several orders of their options, each with the draft's passages.

    With four orders every option appears at every position once, so that a model that always says *b* is right in a
    quarter of them, whatever the key.

    Raises:
        InputError: No orders, or a share or margin out of its range.
    """

    model: Generator
    """Its option letters are weighed where it gives log-probabilities, else it writes a letter."""
    orders: int = OPTIONS
    """Option orders a question; the first four are rotations."""
    needed: float = 1.0
    """Least share of orders answered as marked, above 0 to 1."""
    margin: float = 0.0
    """Least lead of the marked option over the next one, as a difference of probabilities averaged over the orders, for
    models that give log-probabilities; 0 asks for none. A small lead means that a second option is about as right."""
    prompts: TaskPrompts | None = None
    """Templates of the evaluation; the built-in ones by default."""
    seed: int = 0
    """Decides the orders beyond the rotations."""

    def __post_init__(self) -> None:
        if not 0 <= self.margin < 1:
            raise InputError(f"The margin must be at least 0 and below 1, not {self.margin}.")
        if self.orders < 1:
            raise InputError(f"At least one option order is needed, not {self.orders}.")
        if not 0 < self.needed <= 1:
            raise InputError(f"The required share of orders must be above 0 and at most 1, not {self.needed}.")

    def check(self, drafts: Sequence[Draft], on_progress: Callable[[int], None] | None = None) -> list[Draft]:
        """The drafts, each question with options with a decision.

        The decision's score is the share of orders answered as marked. Where a call failed it is undecided, unless
        the orders that were answered already decide. Drafts of other kinds, failures and what is rejected already pass
        through unasked.
        """
        askable = {}
        for place, draft in enumerate(drafts):
            wording = draft.wording
            marked = wording.correct is not None and 0 <= wording.correct < len(wording.options)
            if draft.usable and draft.type.options and marked and len(wording.options) >= 2:
                askable[place] = draft
        predictions: dict[int, list[Prediction]] = defaultdict(list)
        # Ids of drafts need not be unique here, places are.
        questions = [
            Question(str(place), draft.kind, *draft.content[:2], draft.level, *draft.content[2:])
            for place, draft in askable.items()
        ]

        def prepare(questions: Sequence[Question], _model: Generator) -> list[Prepared]:
            given = [askable[int(question.id)].passages for question in questions]
            return [Prepared(tuple(one.text for one in own), tuple(one.id for one in own)) for own in given]

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
            draft.decided(self._decision(predictions[place])) if place in askable else draft
            for place, draft in enumerate(drafts)
        ]

    def _decision(self, predictions: Sequence[Prediction]) -> Decision:
        total = len(predictions)
        right = sum(one.correct for one in predictions)
        failures = [one.error for one in predictions if one.error is not None]
        by = self.model.name
        if right + len(failures) < self.needed * total - 1e-9:
            detail = f"It chose the marked option in {right} of {total} option orders."
            return Decision("consistency", by, False, REASON, detail, right / total)
        if right < self.needed * total - 1e-9:
            detail = f"{len(failures)} of {total} requests failed, the first one because: {failures[0]}"
            return Decision("consistency", by, None, "failed call", detail)
        lead = _lead(predictions)
        if self.margin and lead is not None and lead < self.margin:
            detail = f"The marked option leads the next one by a probability of {lead:.2f} only."
            return Decision("consistency", by, False, NARROW, detail, lead)
        return Decision("consistency", by, True, score=right / total)


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


REPLACED = ("off topic", "unsupported answer")
"""Checks that count words or measure cosines because they cannot read; where a model verifies, they are left out."""
FLAWS = {
    "none": "",
    "gives the answer away": "answer given away",
    "hard to read": "hard to read",
    "not about the subject": "not about the subject",
}
"""What a model may find in the wording, and the reason it is counted under."""
VERDICTS = ("right", "wrong", "not in the passages", "beside the question")
LETTERS = "abcd"
_REASONS = {"wrong": "wrong answer", "not in the passages": "not in the passages"}
_MOST_TEXT = 2000


class Verification:
    """Asks a model whether drafts of all kinds are sound; see the prompt ``verify``."""

    def __init__(
        self,
        model: Generator,
        *,
        subject: Subject | None = None,
        prompts: Path | None = None,
        max_tokens: int = 400,
        seed: int = 0,
    ) -> None:
        """Prepare; nothing is asked yet.

        Raises:
            InputError: The prompt is not valid.
        """
        self.name = model.name
        self._model = model
        self._subject = subject or Subject()
        self._prompt = load_prompt("verify", prompts)
        self._sampling = Sampling(max_tokens, 0.0, seed=seed)

    def check(self, drafts: Sequence[Draft], on_progress: Callable[[int], None] | None = None) -> list[Draft]:
        """The drafts, each complete one with decisions: one for every fault, or one that accepts.

        What has no answer or term yet, was rejected or was looked at before passes through unasked. Where the call
        failed the draft is undecided.
        """
        heard = None if on_progress is None else (lambda _index, _answer: on_progress(1))

        def verified(complete: Sequence[Draft]) -> list[Draft]:
            answers = self._model.generate([self.request(draft) for draft in complete], on_result=heard)
            pairs = zip(complete, answers, strict=True)
            return [draft.decided(*self._decisions(draft, answer)) for draft, answer in pairs]

        return where(_complete, verified, drafts)

    def request(self, draft: Draft) -> GenerationRequest:
        """What is asked about a complete draft."""
        wording, question = draft.wording, draft.wording.question
        if draft.type.gap:
            question = gapped(question, wording.answer).replace(GAP, "____")
        elif draft.type.fixed:
            question = f"{draft.type.title}? {question}"
        rendered = self._prompt.render(
            kind=_form(draft),
            level=draft.level,
            question=question,
            options=[{"letter": letter, "text": text} for letter, text in zip(LETTERS, wording.options, strict=False)],
            answer=right_answer(draft),
            passages=[{"source": passage.source, "text": passage.text} for passage in draft.passages],
            subject=self._subject,
        )
        return GenerationRequest(rendered.messages, self._sampling, _schema(draft), rendered.assistant_prefix)

    def _decisions(self, draft: Draft, answer: Completion) -> list[Decision]:
        fields: Mapping[str, Any] = {}
        error = answer.error
        if error is None:
            try:
                fields = json.loads(answer.text)
                faults = _faults(draft, fields)
            except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
                error = "The reply is not what was asked for."
        if error is not None:
            return [Decision("consistency", self.name, None, "failed call", error)]
        said = " ".join(str(fields["reasoning"]).split())
        if not faults:
            return [Decision("consistency", self.name, True, detail=said)]
        return [
            Decision("consistency", self.name, False, reason, f"{seen} {said}".strip())
            for reason, seen in faults.items()
        ]


def answer_check(
    model: Generator,
    profile: Profile | None = None,
    *,
    orders: int = len(LETTERS),
    needed: float = 1.0,
    margin: float = 0.2,
    prompts: Path | None = None,
    subject: Subject | None = None,
    seed: int = 0,
) -> SelfConsistency | Verification:
    """What answers drafts again: one request that says everything, or option probabilities for small models.

    Raises:
        InputError: A number makes no sense, or a prompt is not valid.
    """
    profile = profile or profile_of(model)
    if not profile.scored:
        return Verification(model, subject=subject, prompts=prompts, max_tokens=profile.text_tokens, seed=seed)
    templates = TaskPrompts.load(prompts)
    return SelfConsistency(model, orders=orders, needed=needed, margin=margin, prompts=templates, seed=seed)


def _complete(draft: Draft) -> bool:
    if not draft.usable or not draft.wording.answer or any(one.step == "consistency" for one in draft.decisions):
        return False
    marked = draft.wording.correct
    if draft.type.gap:
        return has_term(draft.wording.question, draft.wording.answer)
    return not draft.type.options or (marked is not None and 0 <= marked < len(draft.wording.options) <= len(LETTERS))


def _form(draft: Draft) -> str:
    """The form in which the template and the schema have a draft's type."""
    return "mcq" if draft.type.options else "cloze" if draft.type.gap else "freeform"


def _schema(draft: Draft) -> dict[str, Any]:
    text = {"type": "string", "maxLength": _MOST_TEXT}
    letters = list(LETTERS[: len(draft.wording.options)])
    own: dict[Kind, dict[str, Any]] = {
        "mcq": {
            "answer": {"type": "string", "enum": [*letters, "none"]},
            "also_right": {"type": "array", "items": {"type": "string", "enum": letters}, "maxItems": len(LETTERS)},
        },
        "freeform": {"answer": {"type": "string", "enum": list(VERDICTS)}},
        "cloze": {
            "answer": {"type": "string", "enum": list(VERDICTS[:3])},
            "also_right": {"type": "array", "items": text, "maxItems": 5},
            "is_term": {"type": "boolean"},
        },
    }
    flaw = {"type": "string", "enum": list(FLAWS)}
    properties = {"missing": text, "reasoning": text, **own[_form(draft)], "flaw": flaw}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _faults(draft: Draft, fields: Mapping[str, Any]) -> dict[str, str]:
    """Reason of each fault that an answer names, and one sentence on it; the gravest first."""
    results = {}
    answer, marked = fields["answer"], draft.wording.correct
    if draft.type.options:
        right = LETTERS[marked or 0]
        others = [letter for letter in fields["also_right"] if letter not in (answer, right)]
        if answer != right:
            results[REASON] = f"It chose {answer} instead of {right}."
            others = [letter for letter in fields["also_right"] if letter == right]
        if others:
            results[NARROW] = f"It takes {', '.join(others)} for right as well."
    elif answer != "right":
        results[_REASONS.get(answer, str(answer))] = ""
    if draft.type.gap:
        term = draft.wording.answer.casefold()
        others = [word for word in fields["also_right"] if not is_blank(word) and word.casefold() != term]
        if others:
            results[NARROW] = f"These words fit as well: {', '.join(others)}."
        if not fields["is_term"]:
            results["term trivial"] = f"It takes “{draft.wording.answer}” for no scientific term."
    if not is_blank(fields["missing"]):
        results["not self-contained"] = f"It misses: {fields['missing']}."
    if reason := FLAWS[fields["flaw"]]:
        results[reason] = ""
    return results
