"""Statements with a masked scientific term."""

import random
import re
from collections.abc import Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from climassay.errors import InputError
from climassay.questions.types import GAP, Content, QuestionType

if TYPE_CHECKING:
    from climassay.questions.types import Question

GAPS = re.compile(r"<\s*(?:mask|blank)\s*>|\[\s*(?:mask|blank)\s*\]|_{4,}", re.IGNORECASE)
_ENCLOSING_CHARACTERS = "*_`\"'“”‘’ "

_FENCE = re.compile(r"^\s*```\w*[^\S\n]*$", re.MULTILINE)
_LATEX_BOX = re.compile(r"\\boxed\s*\{\s*(?:\\text\w*\{)?([^{}\n]+)")
_LIST_MARK = re.compile(r"\A(?:[-•*+]|1[.)])\s+")
_INTRODUCTION = re.compile(
    r"\A[\s*_#\"'“]*(?:(?:the|my|single|one|scientific|missing|masked|final|correct)\s+)*(?:answer|word|term)"
    r"(?:\s+(?:missing|masked|that|which|fills|completes|in|for|the|statement|sentence|gap|blank))*"
    r"(?:[\s*_]*:|(?<=answer)[\s*_]*\n|\s+is\b(?!\s+(?:not|missing|unclear|unknown)\b)\s*:?)[\s*_]*",
    re.IGNORECASE,
)


class Cloze(QuestionType):
    """Question type of statements with one gap, whose answer is the masked term."""

    name = "cloze"
    rank = 2
    title = "Cloze statement"
    plural = "fill-in-the-gap statements"
    category = "fill-mask"
    in_climaqa = True
    has_gap = True
    is_statement = True
    is_prose = False
    has_levels = False
    max_tokens = 12
    """Maximum number of tokens in an answer, enough for one scientific word and to detect a longer answer."""
    draft_tokens = 50
    metrics = ("exact_match", "exact_match_normalised", "phrase_similarity")
    text_fields = MappingProxyType({"statement": 1000, "term": 60})

    def parse(self, question: str, answer: str, options: Sequence[str], correct: int | None = None) -> Content:
        """Return the statement with its gap written as ``<MASK>``.

        Raises:
            InputError: The statement does not have exactly one gap.
        """
        gaps = GAPS.findall(question)
        if len(gaps) != 1:
            raise InputError(f"a cloze statement needs exactly one gap {GAP}, this one has {len(gaps)}")
        return Content(GAPS.sub(GAP, question), answer)

    def parse_answer(self, text: str) -> str:
        r"""Return the first line of a model's text, without introduction and markup.

        Code fences, ``\boxed``, list marks, introductions ("Missing word:", "The missing word is"), quotation marks,
        emphasis and a final full stop are removed.
        """
        box = _LATEX_BOX.search(text)
        content = (box[1] if box else _FENCE.sub("", text)).strip()
        line = _INTRODUCTION.sub("", _LIST_MARK.sub("", content)).strip() or content
        return line.partition("\n")[0].strip(_ENCLOSING_CHARACTERS).removesuffix(".").strip(_ENCLOSING_CHARACTERS)

    def violations(self, text: str, sentences: int) -> tuple[str, ...]:
        """Return a violation if the answer is empty or consists of several words."""
        if not text:
            return ("empty",)
        return ("more than one word",) if len(re.findall(r"\S+", text)) > 1 else ()

    def example_fields(self, question: "Question") -> dict[str, Any]:
        """Return the statement with its gap filled, and the term."""
        return {"statement": question.question.replace(GAP, question.answer), "term": question.answer}

    def assemble(self, fields: dict[str, Any], position: int, generator: random.Random) -> Content:
        """Create a question from a statement that is not masked yet and the term to mask, which may be empty."""
        return Content(fields["statement"], fields.get("term", ""))

    def supporting_text(self, content: Content) -> str:
        """Return the statement."""
        return content.question

    def visible_texts(self, content: Content) -> tuple[str, ...]:
        """Return the statement."""
        return (content.question,)

    def validate_edit(self, content: Content) -> Content:
        """Check that the statement and the term are not empty.

        Raises:
            InputError: The statement or the term is empty.
        """
        if not content.question:
            raise InputError("The edited statement is empty.")
        if not content.answer:
            raise InputError("Choose the term of the statement that is masked.")
        return Content(content.question, content.answer)


TYPE = Cloze()
