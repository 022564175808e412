"""The three tasks of ClimaQA for Inspect: ``inspect eval climassay/mcq -T file=questions.jsonl -T examples=5``."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageSystem, ChatMessageUser, GenerateConfig
from inspect_ai.scorer import CORRECT, INCORRECT, Score, Scorer, Target, accuracy, grouped, mean, scorer, stderr
from inspect_ai.solver import TaskState, generate

from climassay.errors import InputError
from climassay.integrations.benchmark import (
    MAX_TOKENS,
    RenderedQuestion,
    extract_answer,
    open_benchmark,
    read_prompt_rows,
    score_answer,
)
from climassay.models.contract import Message
from climassay.questions import PRIMER, TYPES, Kind, Question

_MESSAGE_CLASSES = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}
LEVEL_KEY = "level"
"""Metadata key by which scores are grouped. Its value is ``none`` for questions without a level."""


def to_chat_messages(messages: Sequence[Message]) -> list[ChatMessage]:
    """Convert messages to Inspect's chat messages."""
    return [_MESSAGE_CLASSES[message.role](content=message.content) for message in messages]


def _question_and_answer(state: TaskState) -> tuple[Question, str]:
    """Return a sample's question, rebuilt from its metadata, and the model's text."""
    fields = dict(state.metadata["question"])
    return Question(**{**fields, "options": tuple(fields["options"])}), state.output.completion


@scorer(metrics=[grouped(accuracy(), LEVEL_KEY), stderr()])
def answer_letter() -> Scorer:
    """Return a scorer that marks an answer as correct if it chooses the target's option letter.

    An answer without a letter is incorrect.
    """

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001 - the protocol's name
        question, text = _question_and_answer(state)
        letter = extract_answer(question, text)
        return Score(
            value=CORRECT if score_answer(question, text)["accuracy"] == 1.0 else INCORRECT,
            answer=letter,
            explanation=text,
            reason=None if letter else "invalid_response_format",
        )

    return score


def _answer_scorer(encoder: str | None = None, judge: str | None = None) -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001 - the protocol's name
        question, text = _question_and_answer(state)
        scores = score_answer(question, text, encoder=encoder, entailment=judge)
        if judge is not None and "factual_accuracy" not in scores:
            # Inspect requires the same keys for every sample, and a failed judge must not count as a score.
            raise InputError(f"The judge {judge} gave no answer for {question.id}: run the sample again.")
        return Score(value=dict(scores), answer=extract_answer(question, text), explanation=text)

    return score


@scorer(metrics={"*": [grouped(mean(), LEVEL_KEY), stderr()]})
def cloze_scores(encoder: str | None = None) -> Scorer:
    """Return a scorer of cloze answers by raw and normalised exact match and by phrase similarity.

    Args:
        encoder: Climassay's name of the encoder for phrase similarity; by default the bundled one, ``local:minilm``.
    """
    return _answer_scorer(encoder=encoder)


@scorer(metrics={"*": [grouped(mean(), LEVEL_KEY), stderr()]})
def freeform_scores(entailment: str | None = None) -> Scorer:
    """Return a scorer of freeform answers by BLEU over characters and words, BERTScore and factual accuracy.

    Args:
        entailment: Judge of factual accuracy: ``prompted:MODEL``, ``supports:MODEL`` or ``nli:MODEL``. Without one,
            factual accuracy is omitted.
    """
    return _answer_scorer(judge=entailment)


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
    """Build the task of multiple-choice questions, scored by the option letter that the model writes.

    Args:
        file: A question file, or ``primer``.
        level: Level of the questions to include: base, reasoning or hypothetical; None includes all.
        examples: Number of worked examples before every question.
        pool: Question file of the examples, or ``primer``.
        seed: Seed for drawing the examples.
        prompts: Folder of your own templates (see ``climassay prompts export``).
        prefix: Whether to begin the answer with ``Answer:``. Set it to false for providers that refuse a chat ending
            with an assistant's message.
    """
    return _benchmark_task("mcq", file, level, examples, pool, seed, prompts, prefix, answer_letter())


@task
def freeform(
    file: str = PRIMER,
    level: str | None = None,
    examples: int = 0,
    pool: str = PRIMER,
    seed: int = 0,
    prompts: str | None = None,
    prefix: bool = True,
    entailment: str | None = None,
) -> Task:
    """Build the task of freeform questions, to be answered in at most two sentences.

    See :func:`mcq` for the other parameters and :func:`freeform_scores` for ``entailment``.
    """
    return _benchmark_task("freeform", file, level, examples, pool, seed, prompts, prefix, freeform_scores(entailment))


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
    """Build the task of cloze statements with one masked scientific term; see :func:`mcq` for the parameters."""
    return _benchmark_task("cloze", file, level, examples, pool, seed, prompts, prefix, cloze_scores(encoder))


def published_task(kind: Kind, files: Sequence[str | Path], *, entailment: str | None = None) -> Task:
    """Build a task of a benchmark from the prompts that ``climassay generate publish`` wrote.

    Args:
        kind: Kind of the questions.
        files: Files of prompts.
        entailment: Judge of freeform answers; see :func:`freeform_scores`.

    Raises:
        InputError: A file cannot be read, or is not a file of prompts.
    """
    rows = [row for file in files for row in read_prompt_rows(Path(file))]
    if TYPES[kind].has_options:
        scorer = answer_letter()
    else:
        scorer = cloze_scores() if TYPES[kind].has_gap else freeform_scores(entailment)
    return _build_task(kind, rows, True, scorer, {})


def _benchmark_task(
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
    rows = [row for row in benchmark.render(kind) if level is None or row.question.level == level]
    if not rows:
        raise InputError(f"{file} has no {kind} question of the level {level!r}.")
    metadata = {"benchmark": benchmark.name, "prompt_sha256": benchmark.prompts.for_task(kind).sha256}
    return _build_task(kind, rows, prefix, scorer, metadata)


def _build_task(
    kind: Kind, rows: Sequence[RenderedQuestion], prefix: bool, scorer: Scorer, metadata: dict[str, str]
) -> Task:
    """Build a task whose samples contain the chat, followed by the beginning of the answer if ``prefix`` is True."""
    samples = [
        Sample(
            input=to_chat_messages(
                [*row.messages, *([Message("assistant", row.prefix)] if prefix and row.prefix else [])]
            ),
            target=row.target,
            id=row.question.id,
            metadata={LEVEL_KEY: row.question.level or "none", "question": asdict(row.question)},
        )
        for row in rows
    ]
    return Task(
        dataset=samples,
        solver=generate(),
        scorer=scorer,
        config=GenerateConfig(max_tokens=MAX_TOKENS[kind], temperature=0.0),
        version=1,
        metadata=metadata,
    )
