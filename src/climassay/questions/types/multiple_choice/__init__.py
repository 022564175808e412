"""Questions with lettered options, one of which is correct."""

import random
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from climassay.errors import InputError
from climassay.questions.types import LETTERS, Content, Lengths, QuestionType
from climassay.questions.types.multiple_choice.answers import chosen_option
from climassay.questions.types.multiple_choice.keys import LabelledOptions, find_option, without_labels

if TYPE_CHECKING:
    from climassay.questions.types import Question

DISTRACTORS = 3
OPTIONS = DISTRACTORS + 1


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

    def read(self, question: str, answer: str, options: Sequence[str], correct: int | None = None) -> Content:
        """Return the question with its options and the correct one, which ``correct`` or else the answer names.

        Raises:
            InputError: There are too few options or too many, two are the same, or the answer names none or several.
        """
        shown = tuple(options)
        if len(shown) < 2:
            raise InputError(f"a multiple-choice question needs at least two options, this one has {len(shown)}")
        if len(shown) > len(LETTERS):
            raise InputError(f"at most {len(LETTERS)} options can be lettered, this question has {len(shown)}")
        if any(not option for option in shown):
            raise InputError("an option is empty")
        doubled = [option for option, count in Counter(shown).items() if count > 1]
        if doubled:
            raise InputError(f"the option {doubled[0]!r} appears twice")
        if correct is None:
            correct = find_option(answer, LabelledOptions(shown, tuple(LETTERS[: len(shown)])))
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
        answer, *distractors = without_labels([given["answer"], *given["distractors"]], ordered=False).texts
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
        if len({" ".join(option.split()) for option in options}) < len(options):
            raise InputError("Two options of the edited question are the same.")
        if correct is None or not 0 <= correct < len(options):
            raise InputError(f"Mark one of the {len(options)} options as correct.")
        return Content(content.question, options[correct], options, correct)


TYPE = MultipleChoice()
