"""A benchmark question, and the types of questions: a folder each, with its prompts and what else is particular to it.

A folder holds the prompts of its type and a module that sets ``TYPE`` to an instance of a class below
:class:`QuestionType`. Nothing else has to know of a new folder.
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
    """Letter of an option: 0 gives ``a``."""
    return LETTERS[index]


class Content(NamedTuple):
    """What is particular to one question: what is asked, and what is right."""

    question: str
    answer: str
    options: tuple[str, ...] = ()
    correct: int | None = None


class TypeCheck(NamedTuple):
    """A fault that questions of one type can have."""

    name: str
    words: str
    """What is faulty, in one sentence."""
    examine: Callable[[Content], str | None]
    """From a question to one sentence on what was seen; None where it has not the fault."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """Maximum number of characters of what a model writes, and whether it has fields that ask for judgement.

    A weak model fills a text up to its bound. A strong one keeps to the lengths that the prompt names; its bounds only
    end a text that runs away, and a text that is longer than asked for is kept.
    """

    question: int
    answer: int
    """Maximum number of characters of a freeform answer."""
    option: int
    statement: int
    reason: int = 0
    """Maximum number of characters of the reason for declining a passage; 0 for models that are not asked to."""
    term: int = 0
    """Maximum number of characters of the term that the writer wants masked; 0 leaves the choice to a masker."""


class QuestionType:
    """A type of question; the defaults are those of a question with an answer in words.

    Its prompts lie beside it: the one named as the type asks a question of it, ``generate_NAME`` and
    ``generate_NAME_brief`` write one from passages.
    """

    name: str
    """The kind of its questions in files."""
    place: int = 100
    """In lists; the smallest first."""
    title: str
    """For people, for example ``Multiple choice``."""
    options: bool = False
    """Whether a question is answered by choosing one of its options."""
    fixed: tuple[str, ...] = ()
    """The options that every question of the type has; they are answered by their words and keep their order."""
    gap: bool = False
    """Whether it is a statement in which a term is masked."""
    states: bool = False
    """Whether it is a statement, and asks nothing."""
    prose: bool = True
    """Whether an answer is prose: then it is reported when one was cut at its limit."""
    answered: bool = True
    """Whether each of its questions has a reference answer."""
    judged: bool = False
    """Whether a judge scores its answers against the question's rubric and on the dimensions of a good answer."""
    levels: bool = True
    """Whether its questions are of several levels: easy ones are evolved into harder ones."""
    tokens: int = 160
    """That a model may write to answer."""
    category: str = "question-answering"
    """The task's name on a hub of data sets."""
    climaqa: bool = False
    """Whether it is one of ClimaQA's, which has a table for it, and for which other frameworks get tasks."""
    metrics: tuple[str, ...] = ()
    """Metrics of its answers beside those that name the type themselves."""
    checks: tuple[TypeCheck, ...] = ()
    """Faults that drafts of this type alone can have."""

    # Reading and asking

    def read(self, question: str, answer: str, options: Sequence[str], correct: int | None = None) -> Content:
        """Return the question of a file's row; ``correct`` is the index of the correct option, if the row has one.

        Raises:
            InputError: It is not one of this type; the sentence says why.
        """
        return Content(question, answer)

    def fields(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Fields of a question, beside its content, that a file's row has for this type.

        Raises:
            InputError: One of them cannot be read.
        """
        return {}

    def values(self, question: "Question") -> dict[str, Any]:
        """Values that its prompt gets beside question, passages and examples."""
        return {}

    def labels(self, options: Sequence[str]) -> tuple[str, ...]:
        """What a model writes, or weighs, to choose each of the options."""
        return self.fixed or tuple(LETTERS[: len(options)])

    def expected(self, question: "Question") -> str:
        """What a perfect model writes."""
        return question.answer if question.correct is None else self.labels(question.options)[question.correct]

    def choice(self, text: str, options: int, texts: Sequence[str] = ()) -> int | None:
        """Return the index of the option that an answer names, or None if it names none.

        Args:
            text: A model's answer.
            options: Number of options.
            texts: Their texts in the order shown, if they are known.
        """
        raise NotImplementedError

    def answer(self, text: str) -> str:
        """What of a model's text is its answer."""
        return text.strip()

    def violations(self, text: str, sentences: int) -> tuple[str, ...]:
        """What an answer of so many sentences does not keep to."""
        return () if text else ("empty",)

    # Writing

    def texts(self, bounds: Lengths) -> dict[str, int]:
        """The texts that a writer gives, in their order, with their most characters."""
        return {"question": bounds.question, "answer": bounds.answer}

    def lists(self, bounds: Lengths) -> dict[str, tuple[int, int]]:
        """The lists that a writer gives: how many texts, each of at most how many characters."""
        return {}

    def written(self, question: "Question") -> dict[str, Any]:
        """What a perfect writer had given for a question, by the names of :meth:`texts` and :meth:`lists`.

        Raises:
            InputError: The question cannot be an example.
        """
        return {"question": question.question, "answer": question.answer}

    def worded(self, given: dict[str, Any], position: int, draw: random.Random) -> Content:
        """The question that a writer's texts and lists make, given by the names of :meth:`texts` and :meth:`lists`.

        The correct option is to stand at ``position``; ``draw`` decides what else is left to chance.
        """
        return Content(given["question"], given["answer"])

    # Screening and annotation

    def support(self, content: Content) -> str:
        """The words whose traces a reader looks for in the passages."""
        return content.answer

    def claim(self, content: Content) -> str:
        """What the passages must bear out; empty where they need not."""
        return content.question if self.states else f"{content.question} {self.support(content)}"

    def shown(self, content: Content) -> tuple[str, ...]:
        """All that a reader of the question is shown."""
        return (content.question, content.answer)

    def edited(self, content: Content) -> Content:
        """An expert's words, checked.

        Raises:
            InputError: They make no question of this type; the sentence says what to change.
        """
        if not content.question or not content.answer:
            raise InputError("An edited question needs both a question and an answer.")
        return Content(content.question, content.answer)


CriterionLevel = Literal["must", "should"]


@dataclass(frozen=True, slots=True)
class Criterion:
    """One thing that a good answer says."""

    text: str
    """As an examiner would read it, for example ``Says that the stratosphere cools``."""
    weight: float = 1.0
    """Its share in the rubric's score, above 0."""
    level: CriterionLevel = "must"
    """``must``: an answer without it is not adequate. ``should``: it makes a good answer better."""
    source: str = ""
    """What the criterion rests on: a passage in its own words, a reference, or nothing."""


def _found() -> Mapping[str, QuestionType]:
    folders = [path.parent.name for path in FOLDER.glob("*/__init__.py")]
    types: list[QuestionType] = [import_module(f"{__name__}.{folder}").TYPE for folder in folders]
    return MappingProxyType({one.name: one for one in sorted(types, key=lambda one: (one.place, one.name))})


TYPES: Mapping[str, QuestionType] = _found()
"""By the kind of question, in the order of tables."""
KINDS: tuple[str, ...] = tuple(TYPES)
"""Names of the types of questions, in the order of tables."""
if TYPE_CHECKING:
    Kind = str
else:
    # What checks values while the program runs (settings, the JSON API) knows the names.
    Kind = Literal[KINDS]
Level = Literal["base", "reasoning", "hypothetical"]
LEVELS: tuple[Level, ...] = get_args(Level)
"""From plain to complex."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its reference answer and what it rests on."""

    id: str
    kind: Kind
    question: str
    """The question, or a cloze statement with one ``<MASK>``."""
    answer: str
    """Reference answer: the text of the correct option (mcq), one or two sentences (freeform), a term (cloze), or
    paragraphs or nothing (longform)."""
    level: Level | None = None
    options: tuple[str, ...] = ()
    """Options without their letters, in the order of the file (mcq only)."""
    correct: int | None = None
    """Index of the correct option (mcq only)."""
    context: str | None = None
    """Text the question was made from, where the file has it."""
    document: str | None = None
    section: str | None = None
    audience: str = ""
    """For whom the answer is written (longform); empty where nobody is named."""
    rubric: tuple[Criterion, ...] = ()
    """What a good answer says (longform)."""

    @property
    def type(self) -> QuestionType:
        """What is particular to its kind."""
        return TYPES[self.kind]

    def arranged(self, order: tuple[int, ...]) -> tuple[str, ...]:
        """The options in another order: position p shows option ``order[p]``."""
        return tuple(self.options[index] for index in order)
