"""One benchmark question."""

from dataclasses import dataclass
from typing import Literal, get_args

Kind = Literal["mcq", "freeform", "cloze"]
Level = Literal["base", "reasoning", "hypothetical"]
KINDS: tuple[Kind, ...] = get_args(Kind)
LEVELS: tuple[Level, ...] = get_args(Level)
"""From plain to complex."""

LETTERS = "abcdefghijklmnopqrstuvwxyz"
GAP = "<MASK>"


def option_letter(index: int) -> str:
    """Letter of an option: 0 gives ``a``."""
    return LETTERS[index]


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its reference answer and what it rests on."""

    id: str
    kind: Kind
    question: str
    """The question, or a cloze statement with one ``<MASK>``."""
    answer: str
    """Reference answer: the text of the correct option (mcq), one or two sentences (freeform), a term (cloze)."""
    level: Level | None = None
    options: tuple[str, ...] = ()
    """Options without their letters, in the order of the file (mcq only)."""
    correct: int | None = None
    """Index of the correct option (mcq only)."""
    context: str | None = None
    """Text the question was made from, where the file has it."""
    document: str | None = None
    section: str | None = None

    def arranged(self, order: tuple[int, ...]) -> tuple[str, ...]:
        """The options in another order: position p shows option ``order[p]``."""
        return tuple(self.options[index] for index in order)
