"""Every question with all answers to it: the part of a report in which a reader looks things up."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a multiple-choice question."""

    letter: str
    text: str
    correct: bool


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One answer to a question."""

    group: str
    """Who answered, for example the model."""
    label: str
    """How, for example the setting."""
    text: str
    """The answer, or the error where there is none."""
    scores: tuple[str, ...]
    """As shown, one for each of :attr:`AnsweredQuestion.metrics`."""
    wrong: bool
    failed: bool = False
    remarks: tuple[str, ...] = ()
    """For example constraints that were not kept, or how sure the model was."""
    sources: tuple[int, ...] = ()
    """Places of the texts it was given in :attr:`AnswerTables.sources`, from 0."""


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    """A question, its reference and its answers."""

    id: str
    kind: str
    level: str
    """Empty where there is none."""
    collection: str
    """Where the question comes from, for example the benchmark."""
    text: str
    reference: str
    metrics: tuple[str, ...]
    """Headings of the scores."""
    answers: tuple[AnswerRow, ...]
    options: tuple[Option, ...] = ()
    source: int | None = None
    """Place of the text the question was made from."""

    @property
    def wrong(self) -> int:
        """Answers that are wrong."""
        return sum(answer.wrong for answer in self.answers)


@dataclass(frozen=True, slots=True)
class SourceText:
    """A text that answers rest on; stored once however often it was given."""

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class AnswerTables:
    """Questions, each folded away under its first line, with a filter above them.

    The page works without JavaScript, except for the filter.
    """

    title: str
    questions: tuple[AnsweredQuestion, ...]
    sources: tuple[SourceText, ...] = ()
    note: str = ""
    collection_word: str = "benchmark"
    """Heading of the filter by :attr:`AnsweredQuestion.collection`."""
    wrong_word: str = "wrong"
    """What a row marked wrong is called in "2 of 3 wrong"."""
    some_wrong: str = "some answer wrong"
    """Label of the filter for questions with such a row."""

    def choices(self, field: str) -> tuple[str, ...]:
        """Values of ``kind``, ``level`` or ``collection`` that occur, in order of appearance."""
        values = (str(getattr(question, field)) for question in self.questions)
        return tuple(dict.fromkeys(value for value in values if value))
