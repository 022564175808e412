"""Questions with lettered options, one of which is correct."""

import random
import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from climassay.errors import InputError
from climassay.questions.types import LETTERS, Content, Lengths, QuestionType
from climassay.questions.types.multiple_choice.answers import chosen_option

if TYPE_CHECKING:
    from climassay.questions.types import Question

DISTRACTORS = 3
OPTIONS = DISTRACTORS + 1
OPTION_MARK = re.compile(r"^\s*\(?([A-Za-z])\s*[).:]\s*")
_LABEL = re.compile(r"\(?([A-Da-d1-4])[.):]\s+(?=\S)")


class MultipleChoice(QuestionType):
    """A question with two options or more."""

    name = "mcq"
    place = 0
    title = "Multiple choice"
    category = "multiple-choice"
    climaqa = True
    options = True
    tokens = 8
    """Room for ``The answer is (c)``."""

    def read(self, question: str, answer: str, options: Sequence[str]) -> Content:
        """The question with its options, and which of them the answer names by letter, ``letter) text`` or text.

        Raises:
            InputError: There are too few options or too many, two are the same, or the answer names none.
        """
        shown = tuple(options)
        if len(shown) < 2:
            raise InputError(f"a multiple-choice question needs at least two options, this one has {len(shown)}")
        if len(shown) > len(LETTERS):
            raise InputError(f"at most {len(LETTERS)} options can be lettered, this question has {len(shown)}")
        if any(not option for option in shown):
            raise InputError("an option is empty")
        doubled = [option for option, count in Counter(option.casefold() for option in shown).items() if count > 1]
        if doubled:
            raise InputError(f"the option {doubled[0]!r} appears twice")
        correct = _named(answer, shown)
        return Content(question, shown[correct], shown, correct)

    def choice(self, text: str, options: int, texts: Sequence[str] = ()) -> int | None:
        """Return the index of the option that an answer states last; see :func:`.answers.chosen_option`."""
        return chosen_option(text, options, texts)

    def texts(self, bounds: Lengths) -> dict[str, int]:
        """The question and the correct option: nobody can then mark a wrong letter."""
        return {"question": bounds.question, "answer": bounds.option}

    def lists(self, bounds: Lengths) -> dict[str, tuple[int, int]]:
        """The distractors; where the correct option appears among them is decided by code."""
        return {"distractors": (DISTRACTORS, bounds.option)}

    def written(self, question: "Question") -> dict[str, Any]:
        """The question, its correct option, and the others.

        Raises:
            InputError: It has not four options, one of them correct.
        """
        if question.correct is None or len(question.options) != OPTIONS:
            raise InputError(
                f"The question {question.id} cannot be an example: it does not have four options, one of them correct."
            )
        distractors = [option for place, option in enumerate(question.options) if place != question.correct]
        right = question.options[question.correct]
        return {"question": question.question, "answer": right, "distractors": distractors}

    def worded(self, given: dict[str, Any], position: int, draw: random.Random) -> Content:
        """The correct option at its place, the distractors around it in an order that is drawn."""
        answer, *distractors = _without_labels([given["answer"], *given["distractors"]])
        draw.shuffle(distractors)
        return Content(given["question"], answer, (*distractors[:position], answer, *distractors[position:]), position)

    def support(self, content: Content) -> str:
        """The option that is marked as correct."""
        marked = content.correct is not None and 0 <= content.correct < len(content.options)
        return content.options[content.correct or 0] if marked else content.answer

    def shown(self, content: Content) -> tuple[str, ...]:
        """The question and its options."""
        return (content.question, *content.options)

    def edited(self, content: Content) -> Content:
        """A question whose options differ, with one of them marked.

        Raises:
            InputError: A text is empty, two options are the same, or none is marked.
        """
        options, correct = content.options, content.correct
        if not content.question:
            raise InputError("The edited question is empty.")
        if len(options) < 2 or not all(options):
            raise InputError("A multiple-choice question needs at least two options, none of them empty.")
        if len({" ".join(option.casefold().split()) for option in options}) < len(options):
            raise InputError("Two options of the edited question are the same.")
        if correct is None or not 0 <= correct < len(options):
            raise InputError(f"Mark one of the {len(options)} options as correct.")
        return Content(content.question, options[correct], options, correct)


def _named(answer: str, options: Sequence[str]) -> int:
    """Index of the option that an answer names."""
    texts = [option.casefold() for option in options]
    if answer.casefold() in texts:
        return texts.index(answer.casefold())
    bare = answer.strip("()[]. ").lower()
    if len(bare) == 1 and bare in LETTERS[: len(options)]:
        return LETTERS.index(bare)
    marked = OPTION_MARK.match(answer)
    if marked and marked[1].lower() in LETTERS[: len(options)]:
        return LETTERS.index(marked[1].lower())
    raise InputError(f"the answer {answer!r} does not name any of the {len(options)} options")


def _without_labels(options: list[str]) -> list[str]:
    """The options without the letters or numbers before them, where all have one and no two the same."""
    labels = [_LABEL.match(option) for option in options]
    results = [label for label in labels if label is not None]
    if len(results) < len(options) or len({label[1].lower() for label in results}) < len(options):
        return options
    return [option[label.end() :] for option, label in zip(options, results, strict=True)]


TYPE = MultipleChoice()
