"""How many of a cell's questions stand in what its model was given beside them, or was trained on."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from climassay.evaluation.contamination import contamination, question_parts
from climassay.evaluation.settings import Prepared
from climassay.questions import Question

RUN_LENGTH = 8
"""Words that make a question count, as in ``climassay evaluate contamination``."""


@dataclass(frozen=True, slots=True)
class ShownText:
    """Texts of a cell, and what they share with its questions."""

    texts: str
    """What they are, for example ``5 examples, 312 passages``; empty where the questions stood alone."""
    touched: int | None
    """Questions of which the stem, an option or the answer shares :data:`RUN_LENGTH` words with a text that the model
    had when it answered them; None where no text is known."""

    @property
    def note(self) -> str:
        """For the notes of a cell; empty where no question is touched."""
        if not self.touched:
            return ""
        return (
            f"{RUN_LENGTH} words or more of {self.touched} of the questions stand in what the model had: {self.texts}"
        )


def shown_text(
    questions: Sequence[Question], prepared: Mapping[str, Prepared], learned: Sequence[str] | None = ()
) -> ShownText:
    """Compare the questions of a cell with what the model had.

    A question is compared with its own prompt's examples and passages, not with those of others, and with all texts
    that the model was trained on. In retrieval from the books of the questions some overlap is the point; elsewhere it
    is a leak.

    Args:
        questions: Of the cell.
        prepared: What each question's prompt had beside it, by question id.
        learned: Texts of the adapter's training; None where there is an adapter of which they are not known.

    Example:
        >>> shown_text(questions, {}, ["The training's first text.", "Its second."])
        ShownText(texts='2 training texts', touched=0)
    """
    together: dict[tuple[str, ...], list[Question]] = defaultdict(list)
    for question in questions:
        together[_texts_of(prepared.get(question.id, Prepared()))].append(question)
    # Examples are the same for all questions, passages for few: each text is read once for all that had it.
    touched = {id for texts, ones in together.items() if texts for id in _touched(ones, texts)}
    if learned:
        touched |= _touched(questions, learned)
    parts = [
        _counted({one.id for given in prepared.values() for one in given.examples}, "example"),
        _counted({text for given in prepared.values() for text in given.passages}, "passage"),
        "training texts that are not known" if learned is None else _counted(learned, "training text"),
    ]
    return ShownText(", ".join(filter(None, parts)), len(touched) if any(together) or learned else None)


def question_text(question: Question) -> str:
    """All words of a question: stem and options or answer; a statement with its gap filled."""
    return "\n".join(question_parts(question).values())


def _texts_of(given: Prepared) -> tuple[str, ...]:
    return (*given.passages, *map(question_text, given.examples))


def _touched(questions: Sequence[Question], texts: Sequence[str]) -> set[str]:
    return {one.question.id for one in contamination(questions, texts, RUN_LENGTH).touched()}


def _counted(things: Sequence[str] | set[str], noun: str) -> str:
    return f"{len(things)} {noun}{'s' * (len(things) != 1)}" if things else ""
