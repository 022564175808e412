"""What is published: a named set of questions, how they are put to a model, and where it came from."""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from climassay.errors import InputError
from climassay.evaluation import TaskPrompts, open_pool
from climassay.integrations.asking import PosedQuestion, Shots, pose_questions
from climassay.primer import PRIMER, named_questions
from climassay.questions import KINDS, TYPES, Kind, Level, Question

LEVELS: tuple[Level | None, ...] = ("base", "reasoning", "hypothetical", None)
_NAME = re.compile(r"[a-z0-9][a-z0-9_]*")
FRAMEWORK_KINDS = tuple(kind for kind, one in TYPES.items() if one.climaqa)
"""Types of questions that other frameworks have tasks for."""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Questions, ready to be asked by any framework."""

    name: str
    """Lower-case letters, digits and underscores; the beginning of every task's name."""
    questions: tuple[Question, ...]
    prompts: TaskPrompts
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
        return pose_questions([one for one in self.questions if one.kind == kind], self.prompts, self.shots)

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
        seed: Of the draw.
        prompts: Folder of templates that replace built-in ones.

    Raises:
        InputError: The file cannot be read, holds no question of these kinds, the pool is too small, or the name has
            other characters than lower-case letters, digits and underscores.
    """
    source = named_questions(file)
    questions = tuple(question for question in source.questions if question.kind in kinds)
    if not questions:
        raise InputError(f"{source.name} has no question of the kind {' or '.join(kinds)}.")
    if examples < 0:
        raise InputError(f"The number of examples is {examples}: give 0 or more.")
    shots = Shots(open_pool(pool), examples, seed) if examples else None
    templates = TaskPrompts.load(prompts)
    return Benchmark(_checked_name(name, source.name), questions, templates, shots, source.skipped)


def _checked_name(name: str | None, source: str) -> str:
    if name is None:
        stem = source.partition(".")[0].lower()
        return "climassay_primer" if source == PRIMER else re.sub(r"[^a-z0-9]+", "_", stem).strip("_") or "benchmark"
    if not _NAME.fullmatch(name):
        raise InputError(
            f"The name {name!r} cannot begin the name of a task: use lower-case letters, digits and underscores."
        )
    return name
