"""The three tasks of ClimaQA for Inspect: ``inspect eval climassay/mcq -T file=questions.jsonl -T examples=5``."""

from collections.abc import Sequence
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.model import GenerateConfig
from inspect_ai.scorer import Scorer
from inspect_ai.solver import generate

from climassay.errors import InputError
from climassay.integrations.asking import MAX_TOKENS, PosedQuestion
from climassay.integrations.benchmark import open_benchmark
from climassay.integrations.inspect.samples import as_samples
from climassay.integrations.inspect.scorers import answer_letter, cloze_scores, freeform_scores
from climassay.integrations.rows import read_prompt_rows
from climassay.integrations.scoring import BUNDLED_JUDGE
from climassay.primer import PRIMER
from climassay.questions import Kind


@task
def mcq(
    file: str = PRIMER,
    level: str | None = None,
    examples: int = 0,
    pool: str = PRIMER,
    seed: int = 0,
    prompts: str | None = None,
    prefix: bool = True,
) -> Task:
    """Multiple choice, scored by the option letter that the model writes.

    Args:
        file: A question file, or ``primer``.
        level: Only questions of this level: base, reasoning or hypothetical.
        examples: Worked examples before every question.
        pool: Question file of the examples, or ``primer``.
        seed: Of the draw of examples.
        prompts: Folder of your own templates (see ``climassay prompts export``).
        prefix: Begin the answer with ``Answer:``; false for providers that refuse a chat ending with the assistant.
    """
    return _task("mcq", file, level, examples, pool, seed, prompts, prefix, answer_letter())


@task
def freeform(
    file: str = PRIMER,
    level: str | None = None,
    examples: int = 0,
    pool: str = PRIMER,
    seed: int = 0,
    prompts: str | None = None,
    prefix: bool = True,
    entailment: str = BUNDLED_JUDGE,
) -> Task:
    """Freeform questions, answered in at most two sentences; see :func:`mcq` for the parameters.

    Args:
        file: As for mcq.
        level: As for mcq.
        examples: As for mcq.
        pool: As for mcq.
        seed: As for mcq.
        prompts: As for mcq.
        prefix: As for mcq.
        entailment: Judge of factual accuracy; ``none`` leaves the score out.
    """
    return _task("freeform", file, level, examples, pool, seed, prompts, prefix, freeform_scores(entailment))


@task
def cloze(
    file: str = PRIMER,
    level: str | None = None,
    examples: int = 0,
    pool: str = PRIMER,
    seed: int = 0,
    prompts: str | None = None,
    prefix: bool = True,
    encoder: str | None = None,
) -> Task:
    """Cloze statements, filled with one scientific word; see :func:`mcq` for the parameters.

    Args:
        file: As for mcq.
        level: As for mcq.
        examples: As for mcq.
        pool: As for mcq.
        seed: As for mcq.
        prompts: As for mcq.
        prefix: As for mcq.
        encoder: Of phrase similarity; the bundled one by default.
    """
    return _task("cloze", file, level, examples, pool, seed, prompts, prefix, cloze_scores(encoder))


def published_task(kind: Kind, files: Sequence[str | Path], *, prefix: bool = True) -> Task:
    """A task of a benchmark that ``climassay generate publish`` wrote, with the very prompts that it wrote.

    Args:
        kind: Of its questions.
        files: Files of prompts.
        prefix: As for :func:`mcq`.

    Raises:
        InputError: A file cannot be read, or is not a file of prompts.
    """
    rows = [row for file in files for row in read_prompt_rows(Path(file))]
    scorer = {"mcq": answer_letter, "freeform": freeform_scores, "cloze": cloze_scores}[kind]
    return _as_task(kind, rows, prefix, scorer(), {})


def _task(
    kind: Kind,
    file: str,
    level: str | None,
    examples: int,
    pool: str,
    seed: int,
    prompts: str | None,
    prefix: bool,
    scorer: Scorer,
) -> Task:
    overrides = Path(prompts) if prompts else None
    benchmark = open_benchmark(file, kinds=(kind,), examples=examples, pool=pool, seed=seed, prompts=overrides)
    rows = [row for row in benchmark.posed(kind) if level is None or row.question.level == level]
    if not rows:
        raise InputError(f"{file} has no {kind} question of the level {level!r}.")
    told = {"benchmark": benchmark.name, "prompt_sha256": benchmark.prompts.of(kind).sha256}
    return _as_task(kind, rows, prefix, scorer, told)


def _as_task(kind: Kind, rows: Sequence[PosedQuestion], prefix: bool, scorer: Scorer, metadata: dict[str, str]) -> Task:
    return Task(
        dataset=as_samples(rows, prefix=prefix),
        solver=generate(),
        scorer=scorer,
        config=GenerateConfig(max_tokens=MAX_TOKENS[kind], temperature=0.0),
        version=1,
        metadata=metadata,
    )
