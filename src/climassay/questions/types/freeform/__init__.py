"""Questions that are answered in one or two sentences."""

import re

from climassay.questions.types import QuestionType

SENTENCES = 2
_HEADING = re.compile(
    r"\A(?:#+[^\S\n][^\n]*|[*_]*(?:here\s+is\s+|here['’]s\s+)?(?:(?:the|my|an?|short|brief|concise|final)\s+)*answer"
    r"(?:\s+in\s+[\w\s-]{1,30}?)?[*_]*:?[*_]*)[^\S\n]*\n\s*(?=\S)",
    re.IGNORECASE,
)
"""A heading, or a line that only says that the answer comes; the answer follows."""


class Freeform(QuestionType):
    """A question with a reference answer of one or two sentences."""

    name = "freeform"
    place = 1
    title = "Free answer"
    climaqa = True

    def answer(self, text: str) -> str:
        """The first paragraph of what a model wrote, white space made single; a heading before it is no part of it."""
        return " ".join(_HEADING.sub("", text.strip()).partition("\n\n")[0].split())

    def violations(self, text: str, sentences: int) -> tuple[str, ...]:
        """An empty answer, or one of too many sentences."""
        if not text:
            return ("empty",)
        return ("more than two sentences",) if sentences > SENTENCES else ()


TYPE = Freeform()
