"""Questions that are answered at length, with references, and scored against a rubric."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from climassay.questions.types.base import Content, Lengths, QuestionType
from climassay.questions.types.longform.ratings import read_written, written_ratings
from climassay.questions.types.longform.rubric import read_rubric

if TYPE_CHECKING:
    from climassay.questions.question import Question


class LongForm(QuestionType):
    """A question that is answered in paragraphs; it may have a rubric, an audience and a reference answer."""

    name = "longform"
    title = "Long answer"
    answered = False
    judged = True
    levels = False
    tokens = 700
    metrics = (
        "rubric_score", "rubric_must", "rubric_uncontradicted", "presentation", "epistemics",
        "points_supported", "references_found",
    )  # fmt: skip

    def fields(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Audience and rubric of a row (``rubric`` or ``criteria``).

        Raises:
            InputError: A criterion cannot be read.
        """
        audience = " ".join(str(row.get("audience") or "").split())
        return {"audience": audience, "rubric": read_rubric(row.get("rubric") or row.get("criteria"))}

    def values(self, question: "Question") -> dict[str, Any]:
        """For whom the answer is."""
        return {"audience": question.audience}

    def edited(self, content: Content) -> Content:
        """An expert's words, checked; of an item with options, what they said of each of these.

        Raises:
            InputError: Question or answer is missing, or what was said is no rating.
        """
        if not content.options:
            return super().edited(content)
        ratings = read_written(content.answer, content.options)
        return Content(content.question, written_ratings(ratings), content.options)

    def texts(self, bounds: Lengths) -> dict[str, int]:
        """Question and reference answer, which has room for a paragraph."""
        return {"question": bounds.question, "answer": 3 * bounds.answer}


TYPE = LongForm()
