"""A benchmark for other frameworks: questions, how each is put to a model, their rows in its files, their scores."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from climassay import evaluation
from climassay.errors import InputError
from climassay.io import parse_rows, read_bytes
from climassay.metrics import sentence_encoder
from climassay.metrics.registry import Answered, Scorer, metrics_for
from climassay.models.contract import Message
from climassay.models.encoders import BUNDLED_ENCODER
from climassay.questions import KINDS, PRIMER, TYPES, Kind, Level, Question, read_questions

if TYPE_CHECKING:
    from climassay.metrics import Entailment

MAX_TOKENS: dict[Kind, int] = {kind: question_type.max_tokens for kind, question_type in TYPES.items()}
"""Tokens that a model may write, by kind of question; all are asked greedily."""


@dataclass(frozen=True, slots=True)
class Shots:
    """Worked examples that go before every question."""

    pool: evaluation.ExamplePool
    count: int
    """Examples a prompt."""
    seed: int = 0
    """Seed of the draw."""


@dataclass(frozen=True, slots=True)
class PosedQuestion:
    """A question and the prompt that is put to a model."""

    question: Question
    messages: tuple[Message, ...]
    prefix: str
    """Start of the answer that the model goes on from, for example ``Answer:``."""

    @property
    def target(self) -> str:
        """What a perfect model writes: the letter, the answer, the term."""
        return self.question.type.expected_answer(self.question)

    @property
    def choices(self) -> tuple[str, ...]:
        """The option letters as they follow the prefix, with the space between; empty unless multiple choice."""
        gap = evaluation.after_prefix(self.prefix)
        labels = self.question.type.labels(self.question.options) if self.question.options else ()
        return tuple(gap + label for label in labels)


def pose_questions(
    questions: Sequence[Question], prompts: evaluation.TaskPrompts | None = None, shots: Shots | None = None
) -> list[PosedQuestion]:
    """Questions of any kinds with their prompts, options in the file's order.

    Examples are drawn for each kind with all its questions as the test, as ``climassay evaluate`` draws them: take
    parts of the result, not of the questions, or another part of the test gets other examples.

    Raises:
        InputError: The pool has too few examples.
    """
    templates = prompts or evaluation.TaskPrompts.load()
    examples: dict[Kind, list[evaluation.Values]] = {}
    if shots is not None:
        for kind in dict.fromkeys(question.kind for question in questions):
            test = [question for question in questions if question.kind == kind]
            drawn = shots.pool.draw(kind, shots.count, seed=shots.seed, test=test)
            examples[kind] = [evaluation.example_values(example) for example in drawn]
    posed = []
    for question in questions:
        rendered = templates.render(question, (), examples.get(question.kind, ()))
        posed.append(PosedQuestion(question, rendered.messages, rendered.assistant_prefix))
    return posed


LEVELS: tuple[Level | None, ...] = ("base", "reasoning", "hypothetical", None)
_NAME = re.compile(r"[a-z0-9][a-z0-9_]*")
FRAMEWORK_KINDS = tuple(kind for kind, question_type in TYPES.items() if question_type.in_climaqa)
"""Types of questions that other frameworks have tasks for."""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Questions, ready to be asked by any framework."""

    name: str
    """Lower-case letters, digits and underscores; the beginning of every task's name."""
    questions: tuple[Question, ...]
    prompts: evaluation.TaskPrompts
    shots: Shots | None = None
    skipped: tuple[str, ...] = ()
    """One sentence for each row of the file that was left out."""

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Kinds of its questions, in the order mcq, freeform, cloze."""
        there = {question.kind for question in self.questions}
        return tuple(kind for kind in KINDS if kind in there)

    def levels(self, kind: Kind) -> tuple[Level | None, ...]:
        """Levels of the questions of a kind, easiest first; None for those without one."""
        there = {question.level for question in self.questions if question.kind == kind}
        return tuple(level for level in LEVELS if level in there)

    def posed(self, kind: Kind) -> list[PosedQuestion]:
        """The questions of one kind with their prompts, in the file's order."""
        return pose_questions(
            [question for question in self.questions if question.kind == kind], self.prompts, self.shots
        )

    @property
    def content_sha256(self) -> str:
        """SHA-256 over the questions and every prompt: two benchmarks with the same one ask the same.

        What a template says decides, not what file it came from.
        """
        parts = [
            [row.question.id, row.question.kind, row.question.level, row.question.context, row.target, row.prefix]
            + [[message.role, message.content] for message in row.messages]
            for kind in self.kinds
            for row in self.posed(kind)
        ]
        return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()


def open_benchmark(
    file: str | Path = PRIMER,
    *,
    name: str | None = None,
    kinds: Sequence[Kind] = FRAMEWORK_KINDS,
    examples: int = 0,
    pool: str = PRIMER,
    seed: int = 0,
    prompts: Path | None = None,
) -> Benchmark:
    """Read questions as a benchmark.

    Args:
        file: ``primer``, or a question file in any format that :func:`~climassay.questions.read_questions` knows.
        name: Begins the names of its tasks; by default ``climassay_primer`` or the file's name.
        kinds: Leave out questions of other kinds.
        examples: Worked examples before every question.
        pool: Where they are drawn from, never from the test: ``primer`` or a question file.
        seed: Seed of the draw.
        prompts: Folder of templates that replace built-in ones.

    Raises:
        InputError: The file cannot be read, holds no question of these kinds, the pool is too small, or the name has
            other characters than lower-case letters, digits and underscores.
    """
    source = read_questions(file)
    questions = tuple(question for question in source.questions if question.kind in kinds)
    if not questions:
        raise InputError(f"{source.name} has no question of the kind {' or '.join(kinds)}.")
    if examples < 0:
        raise InputError(f"The number of examples is {examples}: give 0 or more.")
    shots = Shots(evaluation.open_pool(pool), examples, seed) if examples else None
    templates = evaluation.TaskPrompts.load(prompts)
    if name is not None and not _NAME.fullmatch(name):
        raise InputError(
            f"The name {name!r} cannot begin the name of a task: use lower-case letters, digits and underscores."
        )
    return Benchmark(name or benchmark_name(source.name), questions, templates, shots, source.skipped)


def benchmark_name(source: str) -> str:
    """The name of a benchmark of a file or pattern of files, where it is given none."""
    stem = Path(source.rstrip("*")).name.partition(".")[0].lower()
    return "climassay_primer" if source == PRIMER else re.sub(r"[^a-z0-9]+", "_", stem).strip("_") or "benchmark"


def prompt_row(row: PosedQuestion) -> dict[str, Any]:
    """A question with its prompt, filled in: what lm-evaluation-harness and Inspect's ``eval.yaml`` read.

    Raises:
        InputError: The template is more than one system and one user message.
    """
    question = row.question
    texts = {message.role: message.content for message in row.messages}
    roles = [message.role for message in row.messages]
    if roles not in (["system", "user"], ["user"]):
        raise InputError(
            f"The template {question.kind} has the messages {', '.join(roles)}: lm-evaluation-harness takes "
            "one system and one user message; publish with a template of that form."
        )
    turns = [*row.messages, *([Message("assistant", row.prefix)] if row.prefix else [])]
    return {
        "id": question.id,
        "kind": question.kind,
        "level": question.level,
        "question": question.question,
        "options": list(question.options),
        "correct": question.correct,
        "answer": question.answer,
        "system": texts.get("system", ""),
        "user": texts["user"],
        "prefix": row.prefix,
        "choices": list(row.choices),
        "target": row.target,
        "messages": [{"role": turn.role, "content": turn.content} for turn in turns],
    }


def question_from_row(row: Mapping[str, Any]) -> Question:
    """The question of a row that :func:`prompt_row` made, without what it was made from."""
    fields = {name: row[name] for name in ("id", "kind", "question", "answer", "level", "correct")}
    return Question(**fields, options=tuple(row["options"]))


def read_prompt_rows(file: Path) -> list[PosedQuestion]:
    """Questions and prompts of a published file.

    Raises:
        InputError: The file is missing, damaged or not such a file.
    """
    results = []
    try:
        for row in parse_rows(file, read_bytes(file)):
            turns = [Message(turn["role"], turn["content"]) for turn in row["messages"]]
            messages = turns[:-1] if row["prefix"] else turns
            results.append(PosedQuestion(question_from_row(row), tuple(messages), row["prefix"]))
    except (KeyError, TypeError) as error:
        raise InputError(f"{file} is not a file of prompts that climassay published: {error}.") from error
    return results


SCORES: Mapping[Kind, tuple[str, ...]] = {
    kind: tuple(metric.name for metric in metrics_for(kind) if not metric.needs) for kind in KINDS
}
"""Names of the scores of each kind that need no judge, as in the tables of ``climassay evaluate``."""
JUDGED = tuple(metric.name for metric in metrics_for("freeform") if metric.needs == "entailment")
"""Scores of freeform answers that an entailment scorer gives."""


def answer_of(question: Question, text: str) -> str:
    """What of a model's text is its answer: the letter (empty where it names none), first paragraph, first line."""
    if question.type.has_options:
        option_index = question.type.parse_choice(text, len(question.options), question.options)
        return "" if option_index is None else question.type.labels(question.options)[option_index]
    return question.type.parse_answer(text)


def score_answer(
    question: Question, text: str, *, encoder: str | None = None, entailment: str | None = None
) -> dict[str, float]:
    """Scores of what a model wrote after the start of its answer.

    Args:
        question: A question of any kind.
        text: The model's text, as it came.
        encoder: For ``phrase_similarity``, as ``load_encoder`` takes it; the bundled one by default.
        entailment: For the scores of :data:`JUDGED`, as ``load_entailment`` takes it; None leaves them out.

    Returns:
        By the names of :data:`SCORES` and :data:`JUDGED`, each at most 1. An empty answer has 0 in all of
        them; a score whose own model failed is missing.
    """
    answer = answer_of(question, text)
    if question.type.has_options:
        return {"accuracy": float(bool(answer) and answer == question.type.expected_answer(question))}
    scorer = Scorer(
        sentence_encoder(encoder) if question.type.has_gap else BUNDLED_ENCODER,
        entailment=None if entailment is None or question.type.has_gap else _judge(entailment),
    )
    (scores,) = scorer.score(question.kind, [Answered(question.question, question.answer, answer)])
    return scores


@cache
def _judge(name: str) -> "Entailment":
    from climassay.metrics import load_entailment

    return load_entailment(name)
