"""Whether what an expert says can be said: known reasons, a remark where one is due, and words that make a question."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from climassay.errors import InputError
from climassay.generation.annotation.labels import ANNOTATION_REASONS, OTHER
from climassay.generation.draft import Draft, Wording, gapped
from climassay.questions.types.base import Content
from climassay.records.requests import storable_text

LONGEST_NAME = 120
"""Characters of a key or of an annotator's name."""
LONGEST_TEXT = 10_000
"""Characters of a remark, a question, an answer or an option."""
_NAMES = tuple(reason.name for reason in ANNOTATION_REASONS)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is said about a draft, checked."""

    accepted: bool
    reasons: tuple[str, ...] = ()
    remark: str = ""
    wording: Wording | None = None
    """None where the words stay as they are."""
    seconds: float | None = None


def check_name(text: str, what: str) -> str:
    """A key or a name that databases can hold.

    Raises:
        InputError: It is empty or too long, or holds what cannot be stored.
    """
    if not text.strip() or len(text) > LONGEST_NAME or storable_text(text) != text:
        raise InputError(f"{what} is a text of 1 to {LONGEST_NAME} characters.")
    return text


def check_verdict(
    draft: Draft,
    *,
    accepted: bool,
    reasons: Sequence[str] = (),
    remark: str = "",
    wording: Wording | None = None,
    seconds: float | None = None,
) -> Verdict:
    """What is said about a draft, in the form in which it is stored.

    Args:
        draft: As the line left it.
        accepted: Whether it is valid, after the edit if there is one.
        reasons: Why it is not, the main one first.
        remark: Any text.
        wording: The words from now on; of a cloze statement with the term that is masked.
        seconds: Spent on it.

    Raises:
        InputError: It cannot be said so; the sentence tells what to change.
    """
    chosen = tuple(dict.fromkeys(reasons))
    words = _text(remark, "The remark")
    spent = None if seconds is None or not math.isfinite(seconds) or seconds < 0 else float(seconds)
    if accepted:
        if chosen:
            raise InputError(
                "A question that is accepted has no reason for rejection: leave the reasons out, or reject it."
            )
        return Verdict(True, (), words, _changed(draft, wording), spent)
    _check_reasons(chosen, words)
    if wording is not None and _changed(draft, wording) is not None:
        raise InputError("A question is edited to be accepted: accept it with the edit, or reject it as it stands.")
    return Verdict(False, chosen, words, None, spent)


def _check_reasons(reasons: tuple[str, ...], remark: str) -> None:
    unknown = [reason for reason in reasons if reason not in _NAMES]
    if unknown:
        raise InputError(f"There is no reason {unknown[0]!r}: there are {', '.join(_NAMES)}.")
    if not reasons:
        raise InputError(f"Say why the question is rejected; there are {', '.join(_NAMES)}.")
    if OTHER in reasons and not remark:
        raise InputError("The reason other needs a remark: say in words what is wrong.")


def _changed(draft: Draft, wording: Wording | None) -> Wording | None:
    """The wording if it is another than the draft's, and makes a question."""
    before = _cleaned(draft.wording)
    after = before if wording is None else _cleaned(wording)
    if draft.type.options:
        # The answer follows from the option that is marked; nobody has to write it again.
        before, after = replace(before, answer=""), replace(after, answer="")
    if after == before and not draft.type.gap:
        return None
    checked = Wording(*draft.type.edited(Content(after.question, after.answer, after.options, after.correct)))
    if draft.type.gap:
        gapped(checked.question, checked.answer)
    return None if after == before else checked


def _cleaned(wording: Wording) -> Wording:
    return replace(
        wording,
        question=_text(wording.question, "The question"),
        answer=_text(wording.answer, "The answer"),
        options=tuple(_text(option, "An option") for option in wording.options),
    )


def _text(text: str, what: str) -> str:
    # Browsers send line ends of their own.
    cleaned = storable_text(text).replace("\r\n", "\n").strip()
    if len(cleaned) > LONGEST_TEXT:
        raise InputError(f"{what} has {len(cleaned)} characters, and {LONGEST_TEXT} are the most.")
    return cleaned
