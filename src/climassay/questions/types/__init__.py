"""Benchmark questions and their types.

Each type is a folder with its prompts and a module that sets ``TYPE`` to an instance of a :class:`QuestionType`
subclass. A new folder needs no registration.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from climassay.errors import InputError

FOLDER = Path(__file__).parent
LETTERS = "abcdefghijklmnopqrstuvwxyz"
GAP = "<MASK>"


def option_letter(index: int) -> str:
    """Return the letter of an option: 0 gives ``a``."""
    return LETTERS[index]


class Content(NamedTuple):
    """Text of a question with its options and its correct answer."""

    question: str
    answer: str
    options: tuple[str, ...] = ()
    correct: int | None = None


class TypeCheck(NamedTuple):
    """Check for a fault that only questions of one type can have."""

    name: str
    description: str
    """Description of the fault in one sentence."""
    examine: Callable[[Content], str | None]
    """Function that describes the fault of a question in one sentence, or returns None if it has no fault."""


class QuestionType:
    """Base class of question types; the defaults suit a question answered in free text.

    The prompts of a type are in its folder: ``NAME`` asks a question, ``generate_NAME`` generates one from passages.
    """

    name: str
    """Name of the type, which is the value of ``kind`` in question files."""
    rank: int = 100
    """Sort key of the type; types are listed in ascending order of their ranks."""
    title: str
    """Display name, for example ``Multiple choice``."""
    plural: str
    """Plural name within a sentence, for example ``multiple-choice questions``."""
    has_options: bool = False
    """Whether the answer is one of several options."""
    fixed_options: tuple[str, ...] = ()
    """Options that are the same for all questions of the type; they have no letters and are never reordered."""
    has_gap: bool = False
    """Whether the question is a statement with a masked term."""
    is_statement: bool = False
    """Whether the question is a statement, with or without a masked term."""
    is_prose: bool = True
    """Whether answers are sentences rather than an option or a term."""
    max_sentences: int | None = None
    """Maximum number of sentences in an answer; None for no limit."""
    has_reference: bool = True
    """Whether every question must have a reference answer."""
    is_judged: bool = False
    """Whether a judge scores the answers by a rubric and by dimensions of quality."""
    has_levels: bool = True
    """Whether questions have levels of difficulty; they can then be evolved into harder questions."""
    max_tokens: int = 160
    """Maximum number of tokens in an answer."""
    draft_tokens: int = 90
    """Typical number of tokens of a generated question with its answer, as JSON."""
    writer_texts: Mapping[str, int] = MappingProxyType({"question": 2000, "answer": 2000})
    """Maximum number of characters of each text that a model writes for a question, by name. Models follow the lengths
    in the prompt; these limits are higher and only stop endless texts."""
    writer_lists: Mapping[str, tuple[int, int]] = MappingProxyType({})
    """Size of each list of texts that a model writes for a question, by name: the number of texts in the list, and the
    maximum number of characters of each."""
    category: str = "question-answering"
    """Task category on the Hugging Face hub."""
    in_climaqa: bool = False
    """Whether ClimaQA has questions of this type; only these have tasks for other frameworks."""
    metrics: tuple[str, ...] = ()
    """Names of climassay's metrics for this type; metrics of other packages name their types themselves."""
    checks: tuple[TypeCheck, ...] = ()
    """Checks for faults that only drafts of this type can have."""

    @property
    def has_lettered_options(self) -> bool:
        """Whether each question has its own options, which are labelled with letters and can be reordered."""
        return self.has_options and not self.fixed_options

    # Reading and asking

    def parse(self, question: str, answer: str, options: Sequence[str], correct: int | None = None) -> Content:
        """Validate a question from a file and return its content.

        Args:
            question: Question or statement.
            answer: Answer, or the letter or text of the correct option.
            options: Options without their letters.
            correct: Index of the correct option; None if the file does not contain it.

        Raises:
            InputError: The texts do not form a question of this type.
        """
        return Content(question, answer)

    def row_fields(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return fields of :class:`Question` that only this type has, from a row of a file.

        Raises:
            InputError: A field is invalid.
        """
        return {}

    def prompt_values(self, question: "Question") -> dict[str, Any]:
        """Return the variables of the prompt template other than question, passages and examples."""
        return {}

    def labels(self, options: Sequence[str]) -> tuple[str, ...]:
        """Return the labels with which a model names options: letters, or the fixed options themselves."""
        return self.fixed_options or tuple(LETTERS[: len(options)])

    def expected_answer(self, question: "Question") -> str:
        """Return the answer that a model must give to be correct."""
        return question.answer if question.correct is None else self.labels(question.options)[question.correct]

    def parse_choice(self, text: str, options: int, texts: Sequence[str] = ()) -> int | None:
        """Return the index of the option that an answer chooses; None if it chooses none.

        Args:
            text: Answer of a model.
            options: Number of options.
            texts: Texts of the options in the order of the prompt; empty if unknown.
        """
        raise NotImplementedError

    def parse_answer(self, text: str) -> str:
        """Extract the answer from the text that a model wrote."""
        return text.strip()

    def violations(self, text: str, sentences: int) -> tuple[str, ...]:
        """Return a description of each constraint that an answer violates.

        Args:
            text: Answer, as returned by :meth:`parse_answer`.
            sentences: Number of sentences in the answer.
        """
        return () if text else ("empty",)

    # Writing

    def example_fields(self, question: "Question") -> dict[str, Any]:
        """Return the texts and lists from which :meth:`assemble` would create this question.

        Raises:
            InputError: The question cannot be an example in a prompt.
        """
        return {"question": question.question, "answer": question.answer}

    def assemble(self, fields: dict[str, Any], position: int, generator: random.Random) -> Content:
        """Create a question from the texts and lists that a model wrote.

        Args:
            fields: Texts and lists by the names in :attr:`writer_texts` and :attr:`writer_lists`.
            position: Index at which to place the correct option.
            generator: Random generator, for example for the order of distractors.
        """
        return Content(fields["question"], fields["answer"])

    # Screening and annotation

    def supporting_text(self, content: Content) -> str:
        """Return the part of a question that its passages should contain."""
        return content.answer

    def claim(self, content: Content) -> str:
        """Return the statement that the passages must support; empty if they need not support any."""
        return content.question if self.is_statement else f"{content.question} {self.supporting_text(content)}"

    def visible_texts(self, content: Content) -> tuple[str, ...]:
        """Return all texts of a question that annotators see."""
        return (content.question, content.answer)

    def validate_edit(self, content: Content) -> Content:
        """Validate an expert's edit and return it in canonical form.

        Raises:
            InputError: The edit is not a valid question of this type; the message says what to change.
        """
        if not content.question or not content.answer:
            raise InputError("An edited question needs both a question and an answer.")
        return Content(content.question, content.answer)


CriterionLevel = Literal["must", "should"]


@dataclass(frozen=True, slots=True)
class Criterion:
    """Criterion of a rubric, which a good answer meets."""

    text: str
    """Requirement, for example ``Says that the stratosphere cools``."""
    weight: float = 1.0
    """Weight in the score by the rubric, above 0."""
    level: CriterionLevel = "must"
    """``must`` if an answer that fails the criterion is inadequate, else ``should``."""
    source: str = ""
    """Quotation or reference that justifies the criterion; may be empty."""


def _load_types() -> Mapping[str, QuestionType]:
    folders = [path.parent.name for path in FOLDER.glob("*/__init__.py")]
    types: list[QuestionType] = [import_module(f"{__name__}.{folder}").TYPE for folder in folders]
    return MappingProxyType({type_.name: type_ for type_ in sorted(types, key=lambda type_: (type_.rank, type_.name))})


TYPES: Mapping[str, QuestionType] = _load_types()
"""Question types by name, in the order in which tables list them."""
KINDS: tuple[str, ...] = tuple(TYPES)
"""Names of all question types, in the order in which tables list them."""
if TYPE_CHECKING:
    Kind = str
else:
    # Pydantic validates settings and requests by the literal names.
    Kind = Literal[KINDS]
Level = Literal["base", "reasoning", "hypothetical"]
LEVELS: tuple[Level, ...] = get_args(Level)
"""Levels of difficulty, the easiest first."""


def kinds_where(is_included: Callable[[QuestionType], bool]) -> tuple[Kind, ...]:
    """Return the kinds whose question type meets a condition, in the order of :data:`KINDS`."""
    return tuple(kind for kind, question_type in TYPES.items() if is_included(question_type))


CHOICE_KIND = kinds_where(lambda question_type: question_type.has_lettered_options)[0]
"""Kind of a question with its own options."""
GAP_KIND = kinds_where(lambda question_type: question_type.has_gap)[0]
"""Kind of a statement with a masked term."""
RUBRIC_KIND = kinds_where(lambda question_type: question_type.is_judged)[0]
"""Kind of a question whose answers are judged by a rubric."""
PROSE_KIND = kinds_where(lambda question_type: question_type.is_prose and not question_type.is_judged)[0]
"""Kind of a question that is answered in sentences and has a reference answer."""


@dataclass(frozen=True, slots=True)
class Question:
    """Benchmark question with its reference answer and source."""

    id: str
    kind: Kind
    question: str
    """Question or statement; a cloze statement contains one ``<MASK>``."""
    answer: str
    """Reference answer: the text of the correct option (mcq), one or two sentences (freeform), the masked term (cloze),
    or paragraphs, which may be missing (longform)."""
    level: Level | None = None
    options: tuple[str, ...] = ()
    """Options without their letters, in the order of the file (mcq only)."""
    correct: int | None = None
    """Index of the correct option (mcq only)."""
    context: str | None = None
    """Text from which the question was written; None if unknown."""
    document: str | None = None
    section: str | None = None
    audience: str = ""
    """Readers for whom the answer should be written (longform); empty if unspecified."""
    rubric: tuple[Criterion, ...] = ()
    """Criteria of a good answer (longform)."""

    @property
    def type(self) -> QuestionType:
        """Type of the question."""
        return TYPES[self.kind]

    def order_options(self, order: tuple[int, ...]) -> tuple[str, ...]:
        """Return the options in another order, in which ``options[order[i]]`` is at index i."""
        return tuple(self.options[index] for index in order)
