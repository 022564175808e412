"""Statements that are true or false, as benchmarks of claims with given verdicts have them."""

import random
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from climassay.errors import InputError
from climassay.questions.types import Content, Lengths, QuestionType, TypeCheck

if TYPE_CHECKING:
    from climassay.questions.types import Question

TRUE, FALSE = "True", "False"
_SAYINGS = {
    TRUE: {"true", "t", "yes", "1", "correct", "supports", "supported", "accurate", "right"},
    FALSE: {"false", "f", "no", "0", "incorrect", "refutes", "refuted", "inaccurate", "wrong"},
}
"""What files write for either; ``SUPPORTS`` and ``REFUTES`` are Climate-FEVER's."""
_HEDGES = re.compile(r"\b(?:may|might|could|possibly|perhaps|sometimes|probably)\b", re.IGNORECASE)


_ASKED_AGAIN = re.compile(r"\A\W*true\s*(?:or|/)\s*false\b\W*")
_CLAUSE_END = re.compile(r"[.,;:!\n–—]|\s-\s")


class TrueFalse(QuestionType):
    """A statement, and whether it is true."""

    name = "true_false"
    title = "True or false"
    category = "text-classification"
    options = True
    fixed = (TRUE, FALSE)
    states = True
    levels = False
    tokens = 8
    """Room for ``The statement is false``."""
    metrics = ("accuracy",)
    checks = (
        TypeCheck(
            "question for a statement",
            "It asks instead of stating.",
            lambda content: "It ends with a question mark." if content.question.rstrip().endswith("?") else None,
        ),
        TypeCheck(
            "hedged statement",
            "It says what may be, which is hardly ever false.",
            lambda content: f"It says “{hedge[0]}”." if (hedge := _HEDGES.search(content.question)) else None,
        ),
    )

    def read(self, question: str, answer: str, options: Sequence[str], correct: int | None = None) -> Content:
        """The statement, and which of the two the answer says, also as SUPPORTS or REFUTES.

        Raises:
            InputError: It says neither.
        """
        said = answer.strip().casefold()
        for place, option in enumerate(self.fixed):
            if said in _SAYINGS[option]:
                return Content(question, option, self.fixed, place)
        raise InputError(f"the answer {answer!r} is neither true nor false")

    def choice(self, text: str, options: int, texts: Sequence[str] = ()) -> int | None:
        """Which of the two words stands alone in an answer, or first where it begins with one; None for neither.

        A *not* speaks against either, but where the answer begins with one only in its first clause.
        """
        said = _ASKED_AGAIN.sub("", text.casefold())
        words = re.findall(r"\w+", said)
        results = [self.fixed.index(option) for word in words for option in self.fixed if word == option.casefold()]
        begins = bool(words) and words[0] in (TRUE.casefold(), FALSE.casefold())
        clause = re.findall(r"\w+", _CLAUSE_END.split(said.lstrip(), maxsplit=1)[0]) if begins else words
        return results[0] if results and (begins or len(set(results)) == 1) and "not" not in clause else None

    def texts(self, bounds: Lengths) -> dict[str, int]:
        """The statement as it is true, and with one thing changed so that it is false; code decides which is asked."""
        return {"true_statement": bounds.statement, "false_statement": bounds.statement}

    def written(self, question: "Question") -> dict[str, Any]:
        """Nothing: a question is one of the two statements that a writer gives.

        Raises:
            InputError: Always.
        """
        raise InputError(f"The question {question.id} cannot be an example: only one of its two statements is known.")

    def worded(self, given: dict[str, Any], position: int, draw: random.Random) -> Content:
        """The true statement where the position is even, else the false one."""
        correct = position % 2
        return Content(
            (given["true_statement"], given["false_statement"])[correct], self.fixed[correct], self.fixed, correct
        )

    def support(self, content: Content) -> str:
        """The statement: a false one has most of its words from the passages too."""
        return content.question

    def claim(self, content: Content) -> str:
        """The statement where it is true; the passages contradict a false one."""
        return content.question if content.correct == 0 else ""

    def shown(self, content: Content) -> tuple[str, ...]:
        """The statement."""
        return (content.question,)

    def edited(self, content: Content) -> Content:
        """A statement that is marked as true or as false.

        Raises:
            InputError: It is empty, or not marked.
        """
        if not content.question:
            raise InputError("The edited statement is empty.")
        if content.correct not in (0, 1):
            raise InputError("Say whether the edited statement is true or false.")
        return Content(content.question, self.fixed[content.correct], self.fixed, content.correct)


TYPE = TrueFalse()
