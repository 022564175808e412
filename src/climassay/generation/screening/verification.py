"""A strong model reads each finished question once, as an examiner would, and says what is wrong with it.

One request a question takes the place of several: whether it stands on its own is judged from the question, which comes
before the passages in the prompt; then which answer is right by the passages, whether a second one is right as well,
and whether the wording spoils it. Models whose answers are read off option probabilities, which are too small for this,
are asked by :class:`~climassay.generation.screening.consistency.SelfConsistency`.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from climassay.evaluation import TaskPrompts
from climassay.generation.draft import Decision, Draft, Subject, gapped, has_term, nothing
from climassay.generation.screening.check import right_answer
from climassay.generation.screening.consistency import NARROW, REASON, SelfConsistency
from climassay.models.contract import Completion, GenerationRequest, Generator, Sampling
from climassay.models.profiles import Profile, profile_of
from climassay.prompts import load_prompt
from climassay.questions import GAP, Kind

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

        Args:
            model: Answers under a JSON schema.
            subject: The science that questions are about.
            prompts: Folder of templates that replace built-in ones (``verify``).
            max_tokens: Room for an answer.
            seed: Of the sampling.

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

        Args:
            drafts: Of any kind.
            on_progress: Called with 1 whenever an answer came in.
        """
        places = [place for place, draft in enumerate(drafts) if _complete(draft)]
        if not places:
            return list(drafts)
        answers = self._model.generate(
            [self.request(drafts[place]) for place in places],
            on_result=None if on_progress is None else (lambda _index, _answer: on_progress(1)),
        )
        checked = list(drafts)
        for place, answer in zip(places, answers, strict=True):
            checked[place] = drafts[place].decided(*self._decisions(drafts[place], answer))
        return checked

    def request(self, draft: Draft) -> GenerationRequest:
        """What is asked about a complete draft."""
        wording = draft.wording
        rendered = self._prompt.render(
            kind=_form(draft),
            level=draft.level,
            question=_asked(draft),
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

    Args:
        model: Is asked.
        profile: How; by default as the model's size suggests.
        orders: Option orders, for small models.
        needed: Share of them that must be answered as marked, for small models.
        margin: Least lead of the marked option, for small models that give probabilities.
        prompts: Folder of the user's own templates.
        subject: The science, for the verification.
        seed: Of orders and sampling.

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


def _asked(draft: Draft) -> str:
    wording = draft.wording
    if draft.type.gap:
        return gapped(wording.question, wording.answer).replace(GAP, "____")
    return f"{draft.type.title}? {wording.question}" if draft.type.fixed else wording.question


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
    found = {}
    answer, marked = fields["answer"], draft.wording.correct
    if draft.type.options:
        right = LETTERS[marked or 0]
        others = [letter for letter in fields["also_right"] if letter not in (answer, right)]
        if answer != right:
            found[REASON] = f"It chose {answer} instead of {right}."
            others = [letter for letter in fields["also_right"] if letter == right]
        if others:
            found[NARROW] = f"It takes {', '.join(others)} for right as well."
    elif answer != "right":
        found[_REASONS.get(answer, str(answer))] = ""
    if draft.type.gap:
        term = draft.wording.answer.casefold()
        others = [word for word in fields["also_right"] if not nothing(word) and word.casefold() != term]
        if others:
            found[NARROW] = f"These words fit as well: {', '.join(others)}."
        if not fields["is_term"]:
            found["term trivial"] = f"It takes “{draft.wording.answer}” for no scientific term."
    if not nothing(fields["missing"]):
        found["not self-contained"] = f"It misses: {fields['missing']}."
    if reason := FLAWS[fields["flaw"]]:
        found[reason] = ""
    return found
