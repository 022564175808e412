"""Questions that are answered at length, with references, and scored against a rubric."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from climassay.errors import InputError
from climassay.questions.types import Content, Lengths, QuestionType
from climassay.questions.types.longform.rubric import read_written, written_ratings
from climassay.questions.types.longform.rubric import RUBRIC, read_rubric, written_rubric

if TYPE_CHECKING:
    from climassay.questions.types import Question


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
        """An expert's words, checked: ratings of an item's options, or the rubric of a question where one is asked for.

        Raises:
            InputError: Question or answer is missing, or what was said is no rating or no rubric.
        """
        if not content.options:
            return super().edited(content)
        if content.options == (RUBRIC,):
            try:
                rubric = read_rubric(content.answer)
            except InputError as error:
                raise InputError(f"The rubric cannot be taken: {error}.") from None
            if not rubric:
                raise InputError("Write at least one criterion, or skip the question.")
            return Content(content.question, written_rubric(rubric), content.options)
        ratings = read_written(content.answer, content.options)
        return Content(content.question, written_ratings(ratings), content.options)

    def texts(self, bounds: Lengths) -> dict[str, int]:
        """Question and reference answer, which has room for a paragraph."""
        return {"question": bounds.question, "answer": 3 * bounds.answer}


TYPE = LongForm()
