"""Benchmarks for other frameworks: questions with prompts, rows of published files, and scores."""

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
from climassay.metrics.registry import AnswerItem, Scorer, metrics_for
from climassay.models.contract import Message
from climassay.models.encoders import BUNDLED_ENCODER
from climassay.questions import KINDS, PRIMER, TYPES, Kind, Level, Question, read_questions
from climassay.questions.thoughts import separate_thoughts

if TYPE_CHECKING:
    from climassay.metrics import Entailment

MAX_TOKENS: dict[Kind, int] = {kind: question_type.max_tokens for kind, question_type in TYPES.items()}
"""Maximum number of tokens of an answer, by kind of question."""


@dataclass(frozen=True, slots=True)
class FewShotExamples:
    """Worked examples (few-shot examples) that precede every question."""

    pool: evaluation.ExamplePool
    count: int
    """Number of examples per prompt."""
    seed: int = 0
    """Seed for drawing the examples."""


@dataclass(frozen=True, slots=True)
class RenderedQuestion:
    """Question with its rendered prompt."""

    question: Question
    messages: tuple[Message, ...]
    prefix: str
    """Start of the answer that the model continues, for example ``Answer:``; may be empty."""

    @property
    def target(self) -> str:
        """Expected answer: the letter of the correct option, the reference answer, or the masked term."""
        return self.question.type.expected_answer(self.question)

    @property
    def choices(self) -> tuple[str, ...]:
        """Option letters, each preceded by a space, as they follow ``prefix``; empty without options."""
        separator = evaluation.after_prefix(self.prefix)
        labels = self.question.type.labels(self.question.options) if self.question.options else ()
        return tuple(separator + label for label in labels)


def render_questions(
    questions: Sequence[Question], prompts: evaluation.TaskPrompts | None = None, shots: FewShotExamples | None = None
) -> list[RenderedQuestion]:
    """Render the prompts of questions of any kind; options keep the order of the file.

    As in ``climassay evaluate``, examples are drawn once for each kind, and none of ``questions`` can be an example. To
    get only some questions with the same examples, select from the result instead of from ``questions``.

    Raises:
        InputError: The pool of examples is too small.
    """
    templates = prompts or evaluation.TaskPrompts.load()
    examples: dict[Kind, list[evaluation.Values]] = {}
    if shots is not None:
        for kind in dict.fromkeys(question.kind for question in questions):
            test = [question for question in questions if question.kind == kind]
            example_questions = shots.pool.draw(kind, shots.count, seed=shots.seed, test=test)
            examples[kind] = [evaluation.example_values(example) for example in example_questions]
    rendered_questions = []
    for question in questions:
        prompt = templates.render(question, (), examples.get(question.kind, ()))
        rendered_questions.append(RenderedQuestion(question, prompt.messages, prompt.assistant_prefix))
    return rendered_questions


LEVEL_ORDER: tuple[Level | None, ...] = ("base", "reasoning", "hypothetical", None)
_TASK_NAME = re.compile(r"[a-z0-9][a-z0-9_]*")
FRAMEWORK_KINDS = tuple(kind for kind, question_type in TYPES.items() if question_type.in_climaqa)
"""Kinds of questions that can be exported as tasks of other frameworks."""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Questions with prompt templates and worked examples, from which tasks of any framework are made."""

    name: str
    """Prefix of every task's name: lower-case letters, digits and underscores."""
    questions: tuple[Question, ...]
    prompts: evaluation.TaskPrompts
    shots: FewShotExamples | None = None
    skipped: tuple[str, ...] = ()
    """Reasons for omitted rows of the file, one sentence per row."""

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Kinds of the questions, in the order mcq, freeform, cloze."""
        present_kinds = {question.kind for question in self.questions}
        return tuple(kind for kind in KINDS if kind in present_kinds)

    def levels(self, kind: Kind) -> tuple[Level | None, ...]:
        """Return the levels of the questions of a kind, easiest first; the last is None if a question has no level."""
        present_levels = {question.level for question in self.questions if question.kind == kind}
        return tuple(level for level in LEVEL_ORDER if level in present_levels)

    def render(self, kind: Kind) -> list[RenderedQuestion]:
        """Render the prompts of all questions of one kind, in the order of the file."""
        return render_questions(
            [question for question in self.questions if question.kind == kind], self.prompts, self.shots
        )

    @property
    def content_sha256(self) -> str:
        """SHA-256 of all questions and rendered prompts. It does not depend on the names of template files."""
        parts = [
            [row.question.id, row.question.kind, row.question.level, row.question.context, row.target, row.prefix]
            + [[message.role, message.content] for message in row.messages]
            for kind in self.kinds
            for row in self.render(kind)
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
    """Read the questions of a benchmark.

    Args:
        file: ``primer``, or a question file in any format that :func:`~climassay.questions.read_questions` knows.
        name: Prefix of the tasks' names; by default ``climassay_primer`` or the file's name.
        kinds: Kinds of the questions to include.
        examples: Number of worked examples before every question.
        pool: Source of the examples: ``primer`` or a question file. Questions of the benchmark are never drawn as
            examples.
        seed: Seed for drawing the examples.
        prompts: Folder of templates that override the built-in ones.

    Raises:
        InputError: The file cannot be read or has no question of these kinds, the pool is too small, or the name has
            characters other than lower-case letters, digits and underscores.
    """
    source = read_questions(file)
    questions = tuple(question for question in source.questions if question.kind in kinds)
    if not questions:
        raise InputError(f"{source.name} has no question of the kind {' or '.join(kinds)}.")
    if examples < 0:
        raise InputError(f"The number of examples is {examples}: give 0 or more.")
    shots = FewShotExamples(evaluation.open_pool(pool), examples, seed) if examples else None
    templates = evaluation.TaskPrompts.load(prompts)
    if name is not None and not _TASK_NAME.fullmatch(name):
        raise InputError(
            f"The name {name!r} cannot begin the name of a task: use lower-case letters, digits and underscores."
        )
    return Benchmark(name or benchmark_name(source.name), questions, templates, shots, source.skipped)


def benchmark_name(source: str) -> str:
    """Return the default benchmark name for a file or a file pattern."""
    stem = Path(source.rstrip("*")).name.partition(".")[0].lower()
    return "climassay_primer" if source == PRIMER else re.sub(r"[^a-z0-9]+", "_", stem).strip("_") or "benchmark"


def to_prompt_row(rendered: RenderedQuestion) -> dict[str, Any]:
    """Return a question and its rendered prompt as a row of the data for lm-evaluation-harness and Inspect.

    Raises:
        InputError: The template has messages other than one user message, optionally after a system message.
    """
    question = rendered.question
    texts = {message.role: message.content for message in rendered.messages}
    roles = [message.role for message in rendered.messages]
    if roles not in (["system", "user"], ["user"]):
        raise InputError(
            f"The template {question.kind} has the messages {', '.join(roles)}: lm-evaluation-harness takes "
            "one system and one user message; publish with a template of that form."
        )
    turns = [*rendered.messages, *([Message("assistant", rendered.prefix)] if rendered.prefix else [])]
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
        "prefix": rendered.prefix,
        "choices": list(rendered.choices),
        "target": rendered.target,
        "messages": [{"role": turn.role, "content": turn.content} for turn in turns],
    }


def question_from_row(row: Mapping[str, Any]) -> Question:
    """Return the question in a row of :func:`to_prompt_row`, without its context and document."""
    fields = {name: row[name] for name in ("id", "kind", "question", "answer", "level", "correct")}
    return Question(**fields, options=tuple(row["options"]))


def read_prompt_rows(file: Path) -> list[RenderedQuestion]:
    """Read the questions and prompts of a published file.

    Raises:
        InputError: The file is missing or damaged, or its rows lack a field of :func:`to_prompt_row`.
    """
    results = []
    try:
        for row in parse_rows(file, read_bytes(file)):
            turns = [Message(turn["role"], turn["content"]) for turn in row["messages"]]
            messages = turns[:-1] if row["prefix"] else turns
            results.append(RenderedQuestion(question_from_row(row), tuple(messages), row["prefix"]))
    except (KeyError, TypeError) as error:
        raise InputError(f"{file} is not a file of prompts that climassay published: {error}.") from error
    return results


SCORES: Mapping[Kind, tuple[str, ...]] = {
    kind: tuple(metric.name for metric in metrics_for(kind) if not metric.needs) for kind in KINDS
}
"""Names of the scores that can be computed without a second model, by kind of question, as in the tables of ``climassay
evaluate``."""
ENTAILMENT_SCORES: Mapping[Kind, tuple[str, ...]] = {
    kind: tuple(metric.name for metric in metrics_for(kind) if metric.needs == "entailment") for kind in KINDS
}
"""Names of the scores that need an entailment model, by kind of question."""


def extract_answer(question: Question, text: str) -> str:
    """Extract the answer from a model's text, without reasoning.

    The answer is the letter of the chosen option (empty if none is recognised), the first paragraph of a freeform
    answer, or the first line of a cloze answer.
    """
    if question.type.has_options:
        option_index = question.type.parse_choice(text, len(question.options), question.options)
        return "" if option_index is None else question.type.labels(question.options)[option_index]
    return question.type.parse_answer(separate_thoughts(text).answer)


def score_answer(
    question: Question, text: str, *, encoder: str | None = None, entailment: str | None = None
) -> dict[str, float]:
    """Score the text that a model wrote after the prefix.

    Args:
        question: A question of any kind.
        text: Raw text of the model.
        encoder: Name of the encoder for ``phrase_similarity``; the bundled encoder by default.
        entailment: Name of the entailment model for the scores of :data:`ENTAILMENT_SCORES`; None omits them.

    Returns:
        Scores by the names of :data:`SCORES` and :data:`ENTAILMENT_SCORES`, each at most 1. All scores of an empty
        answer are 0. Scores whose model failed are missing.
    """
    answer = extract_answer(question, text)
    if question.type.has_options:
        return {"accuracy": float(bool(answer) and answer == question.type.expected_answer(question))}
    scorer = Scorer(
        sentence_encoder(encoder) if question.type.has_gap else BUNDLED_ENCODER,
        entailment=None
        if entailment is None or not ENTAILMENT_SCORES[question.kind]
        else _load_cached_entailment(entailment),
    )
    (scores,) = scorer.score(question.kind, [AnswerItem(question.question, question.answer, answer)])
    return scores


@cache
def _load_cached_entailment(name: str) -> "Entailment":
    from climassay.metrics import load_entailment

    return load_entailment(name)
