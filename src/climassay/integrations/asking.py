"""A question as every framework puts it to a model: the same messages, the same start of the answer, the same room."""

from collections.abc import Sequence
from dataclasses import dataclass

from climassay.errors import InputError
from climassay.evaluation import (
    ExamplePool,
    TaskPrompts,
    Values,
    after_prefix,
    example_values,
    expected_answer,
)
from climassay.models.contract import Message
from climassay.questions import TYPES, Kind, Question

MAX_TOKENS: dict[Kind, int] = {kind: one.tokens for kind, one in TYPES.items()}
"""Tokens that a model may write, by kind of question; all are asked greedily."""


@dataclass(frozen=True, slots=True)
class Shots:
    """Worked examples that go before every question."""

    pool: ExamplePool
    count: int
    """Examples a prompt."""
    seed: int = 0
    """Of the draw."""


@dataclass(frozen=True, slots=True)
class PosedQuestion:
    """A question and the prompt that is put to a model."""

    question: Question
    messages: tuple[Message, ...]
    prefix: str
    """Start of the answer that the model goes on from, for example ``Answer:``."""

    @property
    def max_tokens(self) -> int:
        """Tokens that the model may write."""
        return MAX_TOKENS[self.question.kind]

    @property
    def target(self) -> str:
        """What a perfect model writes: the letter, the answer, the term."""
        return expected_answer(self.question)

    @property
    def choices(self) -> tuple[str, ...]:
        """The option letters as they follow the prefix, with the space between; empty unless multiple choice."""
        gap = after_prefix(self.prefix)
        labels = self.question.type.labels(self.question.options) if self.question.options else ()
        return tuple(gap + label for label in labels)

    @property
    def system(self) -> str:
        """The system message, empty where the template has none.

        Raises:
            InputError: The template is more than one system and one user message.
        """
        return self._alone("system")

    @property
    def user(self) -> str:
        """The user message.

        Raises:
            InputError: As for :attr:`system`.
        """
        return self._alone("user")

    def _alone(self, role: str) -> str:
        roles = [message.role for message in self.messages]
        if roles not in (["system", "user"], ["user"]):
            raise InputError(
                f"The template {self.question.kind} has the messages {', '.join(roles)}: lm-evaluation-harness takes "
                "one system and one user message; publish with a template of that form."
            )
        return "".join(message.content for message in self.messages if message.role == role)


def pose_questions(
    questions: Sequence[Question], prompts: TaskPrompts | None = None, shots: Shots | None = None
) -> list[PosedQuestion]:
    """Questions of any kinds with their prompts, options in the file's order.

    Examples are drawn for each kind with all its questions as the test, as ``climassay evaluate`` draws them: take
    parts of the result, not of the questions, or another part of the test gets other examples.

    Args:
        questions: The whole test.
        prompts: Templates; the built-in ones by default.
        shots: Worked examples; None asks without.

    Raises:
        InputError: The pool has too few examples.
    """
    templates = prompts or TaskPrompts.load()
    examples: dict[Kind, list[Values]] = {}
    if shots is not None:
        for kind in dict.fromkeys(question.kind for question in questions):
            test = [question for question in questions if question.kind == kind]
            drawn = shots.pool.draw(kind, shots.count, seed=shots.seed, test=test)
            examples[kind] = [example_values(example) for example in drawn]
    posed = []
    for question in questions:
        rendered = templates.render(question, (), examples.get(question.kind, ()))
        posed.append(PosedQuestion(question, rendered.messages, rendered.assistant_prefix))
    return posed
