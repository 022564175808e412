"""The rows of a published benchmark, as JSON lines."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from climassay.errors import InputError
from climassay.integrations.asking import PosedQuestion
from climassay.models.contract import Message
from climassay.questions import Question, option_letter
from climassay.questions.rows import parse_rows, read_bytes

_DASHES = "-" * 20


def prompt_row(row: PosedQuestion) -> dict[str, Any]:
    """A question with its prompt, filled in: what lm-evaluation-harness and Inspect's ``eval.yaml`` read.

    Raises:
        InputError: The template is more than one system and one user message.
    """
    question = row.question
    turns = [*row.messages, *([Message("assistant", row.prefix)] if row.prefix else [])]
    return {
        "id": question.id,
        "kind": question.kind,
        "level": question.level,
        "question": question.question,
        "options": list(question.options),
        "correct": question.correct,
        "answer": question.answer,
        "system": row.system,
        "user": row.user,
        "prefix": row.prefix,
        "choices": list(row.choices),
        "target": row.target,
        "messages": [{"role": turn.role, "content": turn.content} for turn in turns],
    }


def posed_from_row(row: Mapping[str, Any]) -> PosedQuestion:
    """The question and prompt of a row that :func:`prompt_row` made."""
    turns = [Message(turn["role"], turn["content"]) for turn in row["messages"]]
    messages = turns[:-1] if row["prefix"] else turns
    return PosedQuestion(question_from_row(row), tuple(messages), row["prefix"])


def question_from_row(row: Mapping[str, Any]) -> Question:
    """The question of a row that :func:`prompt_row` made, without what it was made from."""
    fields = {name: row[name] for name in ("id", "kind", "question", "answer", "level", "correct")}
    return Question(**fields, options=tuple(row["options"]))


def read_prompt_rows(file: Path) -> list[PosedQuestion]:
    """Questions and prompts of a published file.

    Raises:
        InputError: The file is missing, damaged or not such a file.
    """
    rows = parse_rows(file, read_bytes(file))
    try:
        return [posed_from_row(row) for row in rows]
    except (KeyError, TypeError) as error:
        raise InputError(f"{file} is not a file of prompts that climassay published: {error}.") from error


def question_row(question: Question) -> dict[str, Any]:
    """A question in climassay's own format; fields that it does not have are left out."""
    fields = {
        "id": question.id,
        "kind": question.kind,
        "level": question.level,
        "question": question.question,
        "options": list(question.options) or None,
        "answer": question.answer if question.correct is None else option_letter(question.correct),
        "passage": question.context,
        "document": question.document,
        "section": question.section,
    }
    return {name: value for name, value in fields.items() if value is not None}


def climaqa_row(question: Question) -> dict[str, str]:
    """A question as a row of the published ClimaQA tables; cloze has neither level nor validation there."""
    asked = {"Question": question.question}
    answer = {"Answer": question.answer, "Context": question.context or ""}
    if question.kind == "cloze":
        return asked | answer
    labels = {"Complexity": (question.level or "").upper(), "Validation": ""}
    if question.kind == "freeform":
        return asked | answer | labels
    assert question.correct is not None
    lettered = [f"{option_letter(place)}) {text}" for place, text in enumerate(question.options)]
    options = {"Options": f"\n{_DASHES}\n".join(lettered)}
    return asked | options | answer | {"Answer": option_letter(question.correct)} | labels


def as_json_lines(rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows as JSON lines."""
    return "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)
