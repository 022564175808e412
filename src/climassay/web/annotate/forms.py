"""What an annotator sends, as it comes from the page's forms, and what it says."""

import math
import secrets
from dataclasses import dataclass

from pydantic import BaseModel

from climassay.errors import InputError
from climassay.generation import Draft, Wording

LONGEST_TEXT = 10_000
"""Characters of one field."""
LONGEST_TIME = 86_400.0
"""Seconds; a page that was open longer says nothing about the time spent on a question."""


class LabelForm(BaseModel):
    """The fields of an item's forms; each form sends those that it has."""

    key: str = ""
    """Made with the page, so that what is sent twice is stored once."""
    verdict: str = ""
    """``valid``, ``invalid`` or ``edit``."""
    reason: list[str] = []
    remark: str = ""
    seconds: str = ""
    """Empty where the browser runs no scripts."""
    term: str = ""
    question: str = ""
    answer: str = ""
    option: list[str] = []
    correct: str = ""


@dataclass(frozen=True, slots=True)
class Said:
    """What a form says about a draft, as the annotation store takes it."""

    accepted: bool
    reasons: tuple[str, ...]
    remark: str
    wording: Wording | None
    seconds: float | None
    key: str


def new_key() -> str:
    """A key that nobody guesses, for the forms of one page."""
    return secrets.token_urlsafe(12)


def read_form(form: LabelForm, draft: Draft) -> Said:
    """What a form says about a draft.

    Args:
        form: As it was sent.
        draft: What is labelled.

    Returns:
        The label. Its wording is None where the words stay as they are, also after an edit that changed nothing.

    Raises:
        InputError: There is no verdict or no key, a text is too long, or a number is none.
    """
    if not form.key:
        raise InputError("The form has no key: load the page again, and send it once more.")
    if form.verdict not in ("valid", "invalid", "edit"):
        raise InputError(f"The verdict is valid, invalid or edit, not {form.verdict!r}.")
    for text in (form.remark, form.term, form.question, form.answer, *form.option):
        if len(text) > LONGEST_TEXT:
            raise InputError(f"A text has {len(text)} characters; at most {LONGEST_TEXT} are taken.")
    accepted = form.verdict != "invalid"
    wording = _wording(form, draft) if accepted else None
    return Said(
        accepted=accepted,
        reasons=() if accepted else tuple(dict.fromkeys(form.reason)),
        remark=_plain(form.remark),
        wording=None if wording == draft.wording else wording,
        seconds=_seconds(form.seconds),
        key=form.key,
    )


def _wording(form: LabelForm, draft: Draft) -> Wording:
    """The words that an accepting form stands for."""
    if form.verdict == "valid":
        if not draft.type.gap:
            return draft.wording
        if not form.term:
            raise InputError("Choose the word that is left out, or edit the statement.")
        return Wording(draft.wording.question, form.term)
    question = _plain(form.question)
    if not draft.type.options:
        return Wording(question, _plain(form.answer))
    options = tuple(map(_plain, form.option))
    if not form.correct.isdecimal() or int(form.correct) >= len(options):
        raise InputError("Mark the option that is correct.")
    correct = int(form.correct)
    return Wording(question, options[correct], options, correct)


def _plain(text: str) -> str:
    """A field's text with this system's line ends, and nothing around it."""
    return text.replace("\r\n", "\n").strip()


def _seconds(text: str) -> float | None:
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds) or seconds < 0:
        raise InputError(f"The time spent is a number of seconds, not {text[:40]!r}.")
    return min(seconds, LONGEST_TIME)
