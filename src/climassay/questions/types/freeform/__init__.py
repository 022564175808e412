"""Questions that are answered in one or two sentences."""

import re

from climassay.questions.types import QuestionType

_HEADING = re.compile(
    r"\A(?:#+[^\S\n][^\n]*|[*_]*(?:here\s+is\s+|here['’]s\s+)?(?:(?:the|my|an?|short|brief|concise|final)\s+)*answer"
    r"(?:\s+in\s+[\w\s-]{1,30}?)?[*_]*:?[*_]*)[^\S\n]*\n\s*(?=\S)",
    re.IGNORECASE,
)
"""Pattern of a heading or introductory line before an answer."""


class Freeform(QuestionType):
    """Question type answered in one or two sentences."""

    name = "freeform"
    rank = 1
    title = "Free answer"
    plural = "freeform questions"
    in_climaqa = True
    max_sentences = 2
    metrics = (
        "bleu_char", "bleu", "bert_score", "judged_accuracy", "factual_accuracy", "supported",
        "fact_precision", "fact_recall", "fact_f1",
    )  # fmt: skip

    def parse_answer(self, text: str) -> str:
        """Return the first paragraph of a model's text, without a heading, as one line."""
        return " ".join(_HEADING.sub("", text.strip()).partition("\n\n")[0].split())

    def violations(self, text: str, sentences: int) -> tuple[str, ...]:
        """Return a violation if the answer is empty or has more than two sentences."""
        if not text:
            return ("empty",)
        return ("more than two sentences",) if sentences > self.max_sentences else ()


TYPE = Freeform()
