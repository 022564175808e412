"""Statements in which a scientific term is masked."""

import random
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from climassay.errors import InputError
from climassay.questions.types import GAP, Content, Lengths, QuestionType

if TYPE_CHECKING:
    from climassay.questions.types import Question

GAPS = re.compile(r"<\s*(?:mask|blank)\s*>|\[\s*(?:mask|blank)\s*\]|_{4,}", re.IGNORECASE)
_WRAPPING = "*_`\"'“”‘’ "

_FENCE = re.compile(r"^\s*```\w*[^\S\n]*$", re.MULTILINE)
_BOXED = re.compile(r"\\boxed\s*\{\s*(?:\\text\w*\{)?([^{}\n]+)")
_LIST_MARK = re.compile(r"\A(?:[-•*+]|1[.)])\s+")
_SAYING = re.compile(
    r"\A[\s*_#\"'“]*(?:(?:the|my|single|one|scientific|missing|masked|final|correct)\s+)*(?:answer|word|term)"
    r"(?:\s+(?:missing|masked|that|which|fills|completes|in|for|the|statement|sentence|gap|blank))*"
    r"(?:[\s*_]*:|(?<=answer)[\s*_]*\n|\s+is\b(?!\s+(?:not|missing|unclear|unknown)\b)\s*:?)[\s*_]*",
    re.IGNORECASE,
)


class Cloze(QuestionType):
    """A statement with one gap, and the term that stood there."""

    name = "cloze"
    place = 2
    title = "Cloze statement"
    category = "fill-mask"
    climaqa = True
    gap = True
    states = True
    prose = False
    levels = False
    tokens = 12
    """Room for one scientific word, and for seeing that it was not one."""

    def read(self, question: str, answer: str, options: Sequence[str], correct: int | None = None) -> Content:
        """The statement with its gap in one form.

        Raises:
            InputError: It has no gap, or several.
        """
        results = GAPS.findall(question)
        if len(results) != 1:
            raise InputError(f"a cloze statement needs exactly one gap {GAP}, this one has {len(results)}")
        return Content(GAPS.sub(GAP, question), answer)

    def answer(self, text: str) -> str:
        """The first line of what a model wrote, without what is written around the word.

        That is a fence, a box, a list's mark, words that say that the word comes ("Missing word:", "The missing word
        is"), quotation marks, emphasis and a final full stop.
        """
        boxed = _BOXED.search(text)
        rest = boxed[1] if boxed else _FENCE.sub("", text)
        line = _SAYING.sub("", _LIST_MARK.sub("", rest.strip())).strip() or rest.strip()
        return line.partition("\n")[0].strip(_WRAPPING).removesuffix(".").strip(_WRAPPING)

    def violations(self, text: str, sentences: int) -> tuple[str, ...]:
        """An empty answer, or one of several words; a hyphen or a formula's subscript makes no second word."""
        if not text:
            return ("empty",)
        return ("more than one word",) if len(re.findall(r"\S+", text)) > 1 else ()

    def texts(self, bounds: Lengths) -> dict[str, int]:
        """The whole statement, and perhaps the term that its writer wants masked."""
        return {"statement": bounds.statement} | ({"term": bounds.term} if bounds.term else {})

    def written(self, question: "Question") -> dict[str, Any]:
        """The statement with its gap filled, and the term."""
        return {"statement": question.question.replace(GAP, question.answer), "term": question.answer}

    def worded(self, given: dict[str, Any], position: int, draw: random.Random) -> Content:
        """The statement, nothing masked yet."""
        return Content(given["statement"], given.get("term", ""))

    def support(self, content: Content) -> str:
        """The whole statement."""
        return content.question

    def shown(self, content: Content) -> tuple[str, ...]:
        """The statement."""
        return (content.question,)

    def edited(self, content: Content) -> Content:
        """A statement with one of its words as the term.

        Raises:
            InputError: Either is empty.
        """
        if not content.question:
            raise InputError("The edited statement is empty.")
        if not content.answer:
            raise InputError("Choose the term of the statement that is masked.")
        return Content(content.question, content.answer)


TYPE = Cloze()
