"""Edits as people write them into tables and forms of other tools: texts, of which empty ones change nothing."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from climassay.errors import InputError
from climassay.generation.annotation.taking_in import GivenLabel
from climassay.generation.draft import Draft, Wording
from climassay.questions import option_letter
from climassay.records.requests import canonical_json

_ACCEPTING = frozenset({"valid", "true", "1", "yes", "accepted"})
_REJECTING = frozenset({"invalid", "false", "0", "no", "rejected"})


@dataclass(frozen=True, slots=True)
class EditTexts:
    """What an edit says, part by part; empty where nothing is said."""

    question: str = ""
    answer: str = ""
    """Freeform: the reference answer; cloze: the term that is masked; mcq: nothing, the option says it."""
    options: tuple[str, ...] = ()
    correct: str = ""
    """Letter of the correct option."""


def edit_texts(draft: Draft, wording: Wording | None) -> EditTexts:
    """An edit in parts, all of them; nothing where the words stay as they are."""
    if wording is None:
        return EditTexts()
    if not draft.type.options:
        return EditTexts(wording.question, wording.answer)
    letter = "" if wording.correct is None else option_letter(wording.correct)
    return EditTexts(wording.question, "", wording.options, letter)


def edited_wording(draft: Draft, texts: EditTexts) -> Wording | None:
    """The words of a draft with an edit in them; None where nothing is said.

    Raises:
        InputError: The letter of the correct option names none.
    """
    if texts == EditTexts():
        return None
    before = draft.wording
    wording = replace(before, question=texts.question or before.question)
    if not draft.type.options:
        return replace(wording, answer=texts.answer or before.answer)
    options = texts.options or before.options
    correct = before.correct
    if texts.correct:
        letters = [option_letter(place) for place in range(len(options))]
        if texts.correct.strip().lower() not in letters:
            raise InputError(f"There is no option {texts.correct!r}: there are {', '.join(letters)}.")
        correct = letters.index(texts.correct.strip().lower())
    answer = options[correct] if correct is not None and correct < len(options) else before.answer
    return replace(wording, options=options, correct=correct, answer=answer)


def accepted_from(word: object) -> bool:
    """Whether a word says valid.

    Raises:
        InputError: It says neither valid nor invalid.
    """
    text = str(word).strip().casefold()
    if text not in _ACCEPTING | _REJECTING:
        raise InputError(f"{word!r} is neither valid nor invalid")
    return text in _ACCEPTING


def content_key(source: str, label: GivenLabel, *more: object) -> str:
    """A key for a label that came without one: the same content gives the same key.

    Args:
        source: Name of the tool.
        label: With any key.
        more: What else tells it from others, such as the tool's own id and time of change.
    """
    content = {**asdict(label), "key": "", "more": [str(one) for one in more]}
    return f"{source}:{hashlib.sha256(canonical_json(content).encode()).hexdigest()[:32]}"


def split_reasons(text: str | Sequence[str]) -> tuple[str, ...]:
    """Reasons from one text with semicolons between them, or from a list."""
    parts = text.split(";") if isinstance(text, str) else text
    return tuple(part.strip() for part in parts if part.strip())
