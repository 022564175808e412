"""What a check is."""

from collections.abc import Callable
from dataclasses import dataclass

from climassay.generation.draft import Draft
from climassay.questions import Kind

ASKED: tuple[Kind, ...] = ("mcq", "freeform")
"""Kinds that ask a question; a cloze statement states."""
CHOICE: tuple[Kind, ...] = ("mcq",)
STATED: tuple[Kind, ...] = ("cloze",)

Examine = Callable[[Draft], str | None]


@dataclass(frozen=True, slots=True)
class Check:
    """One named fault that a draft can have, and how it is seen."""

    name: str
    """Of the fault; the ``by`` and ``reason`` of the decisions it makes."""
    kinds: tuple[Kind, ...]
    """Kinds of questions that can have it."""
    words: str
    """What is faulty, in one sentence."""
    examine: Examine
    """From a written draft of these kinds to one sentence on what was seen; None where the draft has not the fault."""

    def fault(self, draft: Draft) -> str | None:
        """What was seen in a draft of any kind; None for kinds that the check is not for."""
        return self.examine(draft) if draft.kind in self.kinds else None


def stated_texts(draft: Draft) -> tuple[str, ...]:
    """All that a reader of the question is shown: stem and options, question and answer, or statement."""
    return draft.type.shown(draft.content)


def right_answer(draft: Draft) -> str:
    """Text of the correct option where one is marked, else the answer."""
    wording = draft.wording
    if wording.correct is not None and 0 <= wording.correct < len(wording.options):
        return wording.options[wording.correct]
    return wording.answer
