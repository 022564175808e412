"""Choosing the term of a cloze statement that is left out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from climassay.generation.draft import Decision, Draft

NO_TERM = "no term to mask"
"""Reason of the decision where a statement has no word that could be masked."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The term that a masker chose, or why it could not."""

    term: str
    """As it stands in the statement; empty where ``error`` is set."""
    score: float
    """Share of the masker's belief that went to the term, among all candidates; 0 to 1."""
    ranked: tuple[tuple[str, float], ...]
    """Every candidate with its score, best first; the scores sum to 1."""
    error: str | None = None
    """Why nothing could be decided, in one sentence: a model's failed answer."""

    @classmethod
    def of(cls, ranked: Sequence[tuple[str, float]]) -> "Choice":
        """The choice of the best of one or more candidates; of equals the first given wins."""
        ordered = tuple(sorted(ranked, key=lambda pair: -pair[1]))
        return cls(*ordered[0], ordered)

    @classmethod
    def failed(cls, error: str) -> "Choice":
        """A choice that records a failure."""
        return cls("", 0.0, (), error)


class Masker(Protocol):
    """Anything that picks the scientific term of a statement."""

    @property
    def name(self) -> str:
        """As decisions name it."""

    def choose(self, statements: Sequence[str]) -> list[Choice | None]:
        """The term of each statement, in order; None where no word can be masked."""


def mask(drafts: Sequence[Draft], masker: Masker) -> list[Draft]:
    """Choose the term of every cloze statement that has none yet.

    Drafts of other kinds, failed or rejected ones, and statements whose term an expert has chosen pass through. The
    statement's words stay as they are: the gap is made where the draft becomes a question.

    Returns:
        As many drafts in the same order.
    """
    open_places = [
        place
        for place, draft in enumerate(drafts)
        if draft.kind == "cloze" and draft.usable and not draft.wording.answer
    ]
    choices = masker.choose([drafts[place].wording.question for place in open_places])
    masked = list(drafts)
    for place, choice in zip(open_places, choices, strict=True):
        masked[place] = _masked(drafts[place], choice, masker.name)
    return masked


def _masked(draft: Draft, choice: Choice | None, by: str) -> Draft:
    if choice is None:
        detail = "No word stands in the statement once that is neither a function word nor a number nor a unit."
        return draft.decided(Decision("mask", by, accepted=False, reason=NO_TERM, detail=detail))
    if choice.error is not None:
        return draft.decided(Decision("mask", by, accepted=None, detail=choice.error))
    second = f", before {choice.ranked[1][0]} ({choice.ranked[1][1]:.2f})" if len(choice.ranked) > 1 else ""
    detail = f"{choice.term} ({choice.score:.2f}) of {len(choice.ranked)} words{second}."
    decision = Decision("mask", by, accepted=True, detail=detail, score=choice.score)
    return draft.reworded(replace(draft.wording, answer=choice.term), decision)
