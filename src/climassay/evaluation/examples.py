"""Worked examples: drawn from a pool for few-shot prompts, and whole question sets as training examples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from climassay.claim_identity import bare_words
from climassay.errors import InputError
from climassay.primer import PRIMER, named_questions
from climassay.prompts import Prompt, RenderedPrompt, load_prompt
from climassay.questions import GAP, KINDS, TYPES, Kind, Question, option_letter
from climassay.tuning.data import ChatExample

Values = dict[str, object]
PRIMER_POOL = PRIMER


@dataclass(frozen=True, slots=True)
class TaskPrompts:
    """The templates of all types of questions.

    Each gets ``question``, ``passages`` and ``examples``; those of lettered options also ``options`` (``letter``,
    ``text``), those of statements with a gap also ``gap``, its mark. Small models copy ``<MASK>`` where they see it, so
    that it is better replaced.
    """

    by_kind: Mapping[Kind, Prompt]
    mcq_text: Prompt
    """For lettered options that are scored by their texts and not shown."""

    @classmethod
    def load(cls, overrides: Path | None = None) -> "TaskPrompts":
        """The built-in templates, or the user's own of these names."""
        return cls({kind: load_prompt(kind, overrides) for kind in KINDS}, load_prompt("mcq_text", overrides))

    @property
    def mcq(self) -> Prompt:
        """That of multiple choice."""
        return self.by_kind["mcq"]

    def of(self, task: Kind, *, by_text: bool = False) -> Prompt:
        """The template in which a task's questions are put.

        Args:
            task: Kind of the questions.
            by_text: Whether options are scored by their texts, so that those with letters are not shown.
        """
        return self.mcq_text if by_text and TYPES[task].options and not TYPES[task].fixed else self.by_kind[task]

    def render(
        self, question: Question, passages: Sequence[str] = (), examples: Sequence[Values] = ()
    ) -> RenderedPrompt:
        """One question as its task's prompt, options in the file's order."""
        values: Values = {"question": question.question, "passages": passages, "examples": examples}
        if question.type.options:
            values["options"] = lettered(question.options)
        if question.type.gap:
            values["gap"] = GAP
        return self.of(question.kind).render(**values)


def lettered(options: Sequence[str]) -> list[dict[str, str]]:
    """Options as the templates read them: ``letter`` and ``text``."""
    return [{"letter": option_letter(place), "text": text} for place, text in enumerate(options)]


def expected_answer(question: Question) -> str:
    """What a perfect model writes: the option's letter, the freeform answer, the term, true or false."""
    return question.type.expected(question)


def example_values(question: Question, *, as_text: bool = False) -> Values:
    """A question with its answer as the templates read examples.

    Args:
        question: Of any kind.
        as_text: Multiple choice by the option's text instead of its letter, without the options.
    """
    if question.type.options and as_text:
        return {"question": question.question, "answer": question.answer}
    return {
        "question": question.question,
        "options": lettered(question.options),
        "answer": expected_answer(question),
    }


@dataclass(frozen=True, slots=True)
class ExamplePool:
    """Questions from which few-shot examples are drawn."""

    name: str
    questions: tuple[Question, ...]

    def draw(self, task: Kind, k: int, *, seed: int, test: Sequence[Question]) -> tuple[Question, ...]:
        """Examples of one task, the same for every question of the test.

        Questions that are in the test, by their words, are never drawn; neither are those made from a text that a
        question of the test was made from, for their answers may give it away.

        Args:
            task: Kind of the examples.
            k: How many.
            seed: Decides which, and their order.
            test: The questions that will be asked.

        Raises:
            InputError: The pool has too few.
        """
        asked = {bare_words(question.question) for question in test}
        read = {bare_words(question.context) for question in test if question.context}
        usable = [
            question
            for question in self.questions
            if question.kind == task
            and bare_words(question.question) not in asked
            and not (question.context and bare_words(question.context) in read)
        ]
        if len(usable) < k:
            raise InputError(
                f"{k} examples are wanted for {task}, but the pool {self.name} has {len(usable)} that are neither in"
                " the test nor made from its texts."
            )
        order = np.random.default_rng(seed).permutation(len(usable))[:k]
        return tuple(usable[int(place)] for place in order)


def open_pool(name: str) -> ExamplePool:
    """The pool of a name: ``primer``, or the path of a question file.

    Raises:
        InputError: The file cannot be read.
    """
    question_set = named_questions(name)
    return ExamplePool(question_set.name, question_set.questions)


def chat_examples(
    questions: Sequence[Question], prompts: TaskPrompts | None = None, *, contexts: Mapping[str, str] | None = None
) -> list[ChatExample]:
    """Questions of all kinds as training examples, in the very prompts of the evaluation.

    Args:
        questions: Any kinds.
        prompts: Templates; the built-in ones by default.
        contexts: A passage for the prompt, by question id; by default none, as in the paper's fine-tuning.
    """
    templates = prompts or TaskPrompts.load()
    given = contexts or {}
    examples = []
    for question in questions:
        passages = (given[question.id],) if question.id in given else ()
        rendered = templates.render(question, passages)
        gap = after_prefix(rendered.assistant_prefix)
        examples.append(ChatExample(rendered.messages, rendered.assistant_prefix, gap + expected_answer(question)))
    return examples


def after_prefix(prefix: str) -> str:
    """What stands between the start of an answer and the answer: ``Answer:`` is followed by a space."""
    return " " if prefix and not prefix[-1].isspace() else ""
