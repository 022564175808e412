"""Check by a model that answers a question from its passages and compares the answer with the marked one.

The generator of ClimaQA answered about 25% of its own multiple-choice questions wrongly with their contexts, often
because the pair of question and answer was inaccurate (section 4.2).
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from climassay.generation.draft import Decision, Draft, Subject, apply_where, has_term, is_blank, mask_term
from climassay.generation.screening.check import correct_answer
from climassay.models.contract import Completion, GenerationRequest, Generator, Sampling, object_schema
from climassay.prompts import load_prompt
from climassay.questions import GAP

REASON = "self-inconsistency"
SECOND_ANSWER = "second right answer"
"""Reason for rejection if another option or term is also right."""
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
_MAX_TOKENS = 400


class Verification:
    """Check by a model, using the prompt ``verify``, that drafts of all kinds are correct and clear."""

    def __init__(
        self, model: Generator, *, subject: Subject | None = None, prompts: Path | None = None, seed: int = 0
    ) -> None:
        """Load the prompt template ``verify``.

        Raises:
            InputError: The template is invalid.
        """
        self.name = model.name
        self._model = model
        self._subject = subject or Subject()
        self._prompt = load_prompt("verify", prompts)
        self._sampling = Sampling(_MAX_TOKENS, seed=seed)

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
            answer=correct_answer(draft),
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
    return object_schema({"missing": text, "reasoning": text, **answer, "flaw": flaw})


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
