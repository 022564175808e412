"""Questions that are answered in one or two sentences."""

from climassay.questions.types import QuestionType

SENTENCES = 2


class Freeform(QuestionType):
    """A question with a reference answer of one or two sentences."""

    name = "freeform"
    place = 1
    title = "Free answer"
    climaqa = True

    def answer(self, text: str) -> str:
        """The first paragraph of what a model wrote, white space made single."""
        return " ".join(text.strip().partition("\n\n")[0].split())

    def violations(self, text: str, sentences: int) -> tuple[str, ...]:
        """An empty answer, or one of too many sentences."""
        if not text:
            return ("empty",)
        return ("more than two sentences",) if sentences > SENTENCES else ()


TYPE = Freeform()
