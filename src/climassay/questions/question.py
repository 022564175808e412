"""One benchmark question."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from climassay.questions.types import TYPES, QuestionType
from climassay.questions.types.base import GAP, LETTERS, option_letter
from climassay.questions.types.longform.rubric import Criterion

__all__ = ["GAP", "KINDS", "LETTERS", "LEVELS", "Criterion", "Kind", "Level", "Question", "option_letter"]

KINDS: tuple[str, ...] = tuple(TYPES)
"""Names of the types of questions, in the order of tables."""
if TYPE_CHECKING:
    Kind = str
else:
    # What checks values while the program runs (settings, the JSON API) knows the names.
    Kind = Literal[KINDS]
Level = Literal["base", "reasoning", "hypothetical"]
LEVELS: tuple[Level, ...] = get_args(Level)
"""From plain to complex."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its reference answer and what it rests on."""

    id: str
    kind: Kind
    question: str
    """The question, or a cloze statement with one ``<MASK>``."""
    answer: str
    """Reference answer: the text of the correct option (mcq), one or two sentences (freeform), a term (cloze), or
    paragraphs or nothing (longform)."""
    level: Level | None = None
    options: tuple[str, ...] = ()
    """Options without their letters, in the order of the file (mcq only)."""
    correct: int | None = None
    """Index of the correct option (mcq only)."""
    context: str | None = None
    """Text the question was made from, where the file has it."""
    document: str | None = None
    section: str | None = None
    audience: str = ""
    """For whom the answer is written (longform); empty where nobody is named."""
    rubric: tuple[Criterion, ...] = ()
    """What a good answer says (longform)."""

    @property
    def type(self) -> QuestionType:
        """What is particular to its kind."""
        return TYPES[self.kind]

    def arranged(self, order: tuple[int, ...]) -> tuple[str, ...]:
        """The options in another order: position p shows option ``order[p]``."""
        return tuple(self.options[index] for index in order)
