"""Questions with lettered options, one of which is correct."""

import random
from collections import Counter
from collections.abc import Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from climassay.errors import InputError
from climassay.questions.types import LETTERS, Content, QuestionType
from climassay.questions.types.multiple_choice.answers import find_chosen_option
from climassay.questions.types.multiple_choice.keys import LabelledOptions, find_option, strip_labels

if TYPE_CHECKING:
    from climassay.questions.types import Question

N_DISTRACTORS = 3
N_OPTIONS = N_DISTRACTORS + 1


class MultipleChoice(QuestionType):
    """Question type with two or more options, one of which is correct."""

    name = "mcq"
    rank = 0
    title = "Multiple choice"
    plural = "multiple-choice questions"
    category = "multiple-choice"
    in_climaqa = True
    has_options = True
    is_prose = False
    max_tokens = 8
    """Maximum number of tokens in an answer, enough for ``The answer is (c)``."""
    draft_tokens = 130
    metrics = ("accuracy",)
    text_fields = MappingProxyType({"question": 2000, "answer": 1000})
    list_fields = MappingProxyType({"distractors": (N_DISTRACTORS, 1000)})

    def parse(self, question: str, answer: str, options: Sequence[str], correct: int | None = None) -> Content:
        """Return the question with its options.

        ``correct`` or, if it is None, ``answer`` names the correct option.

        Raises:
            InputError: There are too few or too many options, an option is empty, two are equal, or the answer does not
                name exactly one option.
        """
        texts = tuple(options)
        if len(texts) < 2:
            raise InputError(f"a multiple-choice question needs at least two options, this one has {len(texts)}")
        if len(texts) > len(LETTERS):
            raise InputError(f"at most {len(LETTERS)} options can be lettered, this question has {len(texts)}")
        if any(not option for option in texts):
            raise InputError("an option is empty")
        duplicates = [option for option, count in Counter(texts).items() if count > 1]
        if duplicates:
            raise InputError(f"the option {duplicates[0]!r} appears twice")
        if correct is None:
            correct = find_option(answer, LabelledOptions(texts, tuple(LETTERS[: len(texts)])))
        return Content(question, texts[correct], texts, correct)

    def parse_choice(self, text: str, options: int, texts: Sequence[str] = ()) -> int | None:
        """Return the index of the option that an answer chooses; see :func:`.answers.find_chosen_option`."""
        return find_chosen_option(text, options, texts)

    def example_fields(self, question: "Question") -> dict[str, Any]:
        """Return the question, its correct option and its distractors.

        Raises:
            InputError: The question does not have four options, one of them correct.
        """
        if question.correct is None or len(question.options) != N_OPTIONS:
            raise InputError(
                f"The question {question.id} cannot be an example: it does not have four options, one of them correct."
            )
        distractors = [option for index, option in enumerate(question.options) if index != question.correct]
        answer = question.options[question.correct]
        return {"question": question.question, "answer": answer, "distractors": distractors}

    def assemble(self, fields: dict[str, Any], position: int, generator: random.Random) -> Content:
        """Create a question with the correct option at index ``position`` and the distractors in random order."""
        answer, *distractors = strip_labels([fields["answer"], *fields["distractors"]], ordered=False).texts
        generator.shuffle(distractors)
        return Content(fields["question"], answer, (*distractors[:position], answer, *distractors[position:]), position)

    def supporting_text(self, content: Content) -> str:
        """Return the correct option."""
        has_correct = content.correct is not None and 0 <= content.correct < len(content.options)
        return content.options[content.correct or 0] if has_correct else content.answer

    def visible_texts(self, content: Content) -> tuple[str, ...]:
        """Return the question and its options."""
        return (content.question, *content.options)

    def validate_edit(self, content: Content) -> Content:
        """Check that the options are distinct and that one of them is marked as correct.

        Raises:
            InputError: A text is empty, two options are equal, or no option is marked as correct.
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
