"""Statements that are true or false."""

import random
import re
from collections.abc import Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from climassay.errors import InputError
from climassay.questions.types import Content, QuestionType, TypeCheck

if TYPE_CHECKING:
    from climassay.questions.types import Question

TRUE, FALSE = "True", "False"
_SYNONYMS = {
    TRUE: {
        *("true", "t", "yes", "y", "1", "1.0", "correct", "supports", "supported", "accurate", "right"),
        *("wahr", "ja", "richtig", "vrai", "oui", "verdadero", "sí", "si", "vero", "sì", "verdadeiro", "sim", "waar"),
    },
    FALSE: {
        *("false", "f", "no", "n", "0", "0.0", "incorrect", "refutes", "refuted", "inaccurate", "wrong"),
        *("falsch", "nein", "faux", "non", "falso", "não", "onwaar", "nee"),
    },
}
"""Words that stand for True and False in files, also those of spreadsheets in German, French, Spanish, Italian,
Portuguese and Dutch; ``SUPPORTS`` and ``REFUTES`` occur in Climate-FEVER."""
_HEDGES = re.compile(r"\b(?:may|might|could|possibly|perhaps|sometimes|probably)\b", re.IGNORECASE)


_REPEATED_QUESTION = re.compile(r"\A\W*true\s*(?:or|/)\s*false\b\W*")
_CLAUSE_END = re.compile(r"[.,;:!\n–—]|\s-\s")


class TrueFalse(QuestionType):
    """Question type of statements that are true or false."""

    name = "true_false"
    title = "True or false"
    plural = "true-or-false statements"
    category = "text-classification"
    has_options = True
    fixed_options = (TRUE, FALSE)
    is_statement = True
    is_prose = False
    has_levels = False
    max_tokens = 8
    """Maximum number of tokens in an answer, enough for ``The statement is false``."""
    metrics = ("accuracy",)
    text_fields = MappingProxyType({"true_statement": 1000, "false_statement": 1000})
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

    def parse(self, question: str, answer: str, options: Sequence[str], correct: int | None = None) -> Content:
        """Return the statement with the answer ``True`` or ``False``.

        Raises:
            InputError: The answer is not a synonym of true or false.
        """
        word = answer.strip().casefold()
        for index, option in enumerate(self.fixed_options):
            if word in _SYNONYMS[option]:
                return Content(question, option, self.fixed_options, index)
        raise InputError(f"the answer {answer!r} is neither true nor false")

    def parse_choice(self, text: str, options: int, texts: Sequence[str] = ()) -> int | None:
        """Return 0 if an answer says "true", 1 if it says "false", and None if it says neither or both.

        If the answer begins with one of the two words, this word counts. An answer with "not" chooses nothing; if it
        begins with one of the words, only a "not" in its first clause matters.
        """
        answer = _REPEATED_QUESTION.sub("", text.casefold())
        words = re.findall(r"\w+", answer)
        labels = [option.casefold() for option in self.fixed_options]
        indices = [labels.index(word) for word in words if word in labels]
        begins_with_label = bool(words) and words[0] in labels
        clause = _CLAUSE_END.split(answer.lstrip(), maxsplit=1)[0] if begins_with_label else answer
        is_clear = begins_with_label or len(set(indices)) == 1
        return indices[0] if indices and is_clear and "not" not in re.findall(r"\w+", clause) else None

    def example_fields(self, question: "Question") -> dict[str, Any]:
        """Raise an error: a model writes two statements, but a question contains only one of them.

        Raises:
            InputError: Always.
        """
        raise InputError(f"The question {question.id} cannot be an example: only one of its two statements is known.")

    def assemble(self, fields: dict[str, Any], position: int, generator: random.Random) -> Content:
        """Create a question with the true statement if ``position`` is even, else with the false one."""
        correct = position % 2
        return Content(
            (fields["true_statement"], fields["false_statement"])[correct],
            self.fixed_options[correct],
            self.fixed_options,
            correct,
        )

    def supporting_text(self, content: Content) -> str:
        """Return the statement. Even a false statement takes most of its words from the passages."""
        return content.question

    def claim(self, content: Content) -> str:
        """Return the statement if it is true, else an empty text, because the passages contradict it."""
        return content.question if content.correct == 0 else ""

    def visible_texts(self, content: Content) -> tuple[str, ...]:
        """Return the statement."""
        return (content.question,)

    def validate_edit(self, content: Content) -> Content:
        """Check that the statement is not empty and is marked as true or false.

        Raises:
            InputError: The statement is empty or not marked.
        """
        if not content.question:
            raise InputError("The edited statement is empty.")
        if content.correct not in (0, 1):
            raise InputError("Say whether the edited statement is true or false.")
        return Content(content.question, self.fixed_options[content.correct], self.fixed_options, content.correct)


TYPE = TrueFalse()
