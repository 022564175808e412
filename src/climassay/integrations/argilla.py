"""Annotations in Argilla 2: a folder that ``rg.Dataset.from_disk`` loads, and records that it wrote, to read here.

A folder holds ``dataset.json``, ``settings.json`` and ``records.json``, as ``rg.Dataset.to_disk`` writes them. Argilla
knows people by ids and takes no answers of strangers, so labels are written for those whose ids are given.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

from climassay.errors import InputError
from climassay.generation import Draft
from climassay.generation.annotation import (
    ANNOTATION_REASONS,
    AnnotationFile,
    EditTexts,
    ImportedLabel,
    Item,
    Label,
    content_key,
    edit_texts,
    label_from_texts,
)
from climassay.io import parse_json, write_file
from climassay.questions import option_letter
from climassay.questions.rows import read_bytes

GUIDELINES = (
    "Is the question scientifically right, and does the passage answer it as marked? Say valid or invalid; where it is "
    "invalid, say why. Where better words make it valid, write them and say valid."
)
_FIELDS = (
    ("question", "Question", True),
    ("options", "Options", False),
    ("answer", "Marked answer", False),
    ("passages", "Passages", False),
)
_TEXTS = (
    ("remark", "Remark"),
    ("edited_question", "Better words of the whole question or statement"),
    ("edited_answer", "A better answer; of a statement the term to mask"),
    ("edited_options", "All options, one a line"),
    ("edited_correct", "Letter of the correct option"),
)


def argilla_settings(guidelines: str = GUIDELINES, overlap: int = 1) -> dict[str, Any]:
    """The settings of a dataset, as ``rg.Settings.from_json`` reads them."""
    verdict = {"type": "label_selection", "options": [{"value": word, "text": word} for word in ("valid", "invalid")]}
    reasons = [{"value": reason.name, "text": reason.words} for reason in ANNOTATION_REASONS]
    questions = [
        {"name": "verdict", "title": "Is it valid?", "required": True, "settings": verdict},
        {
            "name": "reasons",
            "title": "Why is it invalid?",
            "required": False,
            "settings": {
                "type": "multi_label_selection",
                "options": reasons,
                "visible_options": len(reasons),
                "options_order": "natural",
            },
        },
        *(
            {"name": name, "title": title, "required": False, "settings": {"type": "text", "use_markdown": False}}
            for name, title in _TEXTS
        ),
    ]
    return {
        "guidelines": guidelines,
        "allow_extra_metadata": True,
        "distribution": {"strategy": "overlap", "min_submitted": overlap},
        "fields": [
            {"name": name, "title": title, "required": required, "settings": {"type": "text", "use_markdown": False}}
            for name, title, required in _FIELDS
        ],
        "questions": questions,
        "vectors": [],
        "metadata": [
            {
                "name": name,
                "title": name,
                "visible_for_annotators": True,
                "type": "terms",
                "settings": {"type": "terms", "visible_for_annotators": True, "values": None},
            }
            for name in ("kind", "level")
        ],
    }


def write_argilla(
    folder: Path,
    name: str,
    items: Iterable[Item],
    *,
    overlap: int = 1,
    guidelines: str = GUIDELINES,
    users: Mapping[str, str] | None = None,
) -> tuple[int, int]:
    """Write a dataset's folder.

    Args:
        folder: Made where it is missing.
        name: Name of the dataset in Argilla.
        items: What is annotated.
        overlap: Labels that an item needs.
        guidelines: Instructions for annotators.
        users: Annotator -> id of the user in Argilla; labels of others are left out.

    Returns:
        How many records and how many labels were written.

    Raises:
        InputError: An id is not a UUID, or the folder cannot be written.
    """
    known = {annotator: _user_id(annotator, text) for annotator, text in (users or {}).items()}
    records = [_record(item, known) for item in items]
    labels = sum(len(record["responses"].get("verdict", ())) for record in records)
    settings = argilla_settings(guidelines, overlap)
    dataset = {
        "id": None,
        "name": name,
        "status": "draft",
        "guidelines": guidelines,
        "allow_extra_metadata": True,
        "distribution": settings["distribution"],
    }
    for file, content in (("records", records), ("settings", settings), ("dataset", dataset)):
        write_file(folder / f"{file}.json", json.dumps(content, ensure_ascii=False, allow_nan=False).encode())
    return len(records), labels


def _user_id(annotator: str, text: str) -> str:
    try:
        return str(UUID(text))
    except (ValueError, AttributeError):
        raise InputError(f"{text!r} is not an id of a user in Argilla, as {annotator} is said to have.") from None


def _record(item: Item, users: Mapping[str, str]) -> dict[str, Any]:
    draft, wording = item.draft, item.draft.wording
    options = [f"{option_letter(place)}) {text}" for place, text in enumerate(wording.options)]
    marked = options[wording.correct] if options and wording.correct is not None else wording.answer
    fields = {
        "question": wording.question,
        "options": "\n".join(options),
        "answer": marked,
        "passages": "\n\n".join(passage.text for passage in draft.passages),
    }
    responses: dict[str, list[dict[str, Any]]] = {}
    for label in item.labels:
        if label.annotator in users and not label.adjudicates:
            for question, value in _answers(draft, label).items():
                answer = {"value": value, "user_id": users[label.annotator], "status": "submitted"}
                responses.setdefault(question, []).append(answer)
    suggestions: dict[str, Any] = {}
    if item.suggested_term is not None:
        suggestions["edited_answer"] = {"value": item.suggested_term, "score": None, "agent": "masker"}
    if item.preselected:
        suggestions["reasons"] = {"value": list(item.preselected), "score": None, "agent": "screening"}
    return {
        "id": draft.id,
        "fields": {name: text for name, text in fields.items() if text},
        "metadata": {"kind": draft.kind, "level": draft.level},
        "suggestions": suggestions,
        "responses": responses,
        "vectors": {},
    }


def _answers(draft: Draft, label: Label) -> dict[str, Any]:
    texts = edit_texts(draft, label.wording)
    answers = {
        "verdict": "valid" if label.accepted else "invalid",
        "reasons": list(label.reasons),
        "remark": label.remark,
        "edited_question": texts.question,
        "edited_answer": texts.answer,
        "edited_options": "\n".join(" ".join(option.split()) for option in texts.options),
        "edited_correct": texts.correct,
    }
    return {name: value for name, value in answers.items() if value}


def read_argilla(path: Path, drafts: Mapping[str, Draft], users: Mapping[str, str] | None = None) -> AnnotationFile:
    """Read submitted responses of records that ``to_disk`` or ``records.to_json`` wrote.

    Argilla keeps no time of an answer: a label that is read again with the same content is the same label.

    Args:
        path: The folder, or its ``records.json``.
        drafts: Drafts of the dataset by id.
        users: Annotator -> id of the user in Argilla; others are named by their ids.

    Raises:
        InputError: It cannot be read or holds no records. Answers that make no label are listed in the result.
    """
    file = path / "records.json" if path.is_dir() else path
    try:
        records = parse_json(read_bytes(file))
        if not isinstance(records, list) or not all(isinstance(one, dict) and "responses" in one for one in records):
            raise ValueError("a list of records with responses is wanted")
    except ValueError as error:
        raise InputError(f"{file} holds no records of Argilla (JSON): {error}.") from None
    names = {_user_id(annotator, text): annotator for annotator, text in (users or {}).items()}
    labels: list[ImportedLabel] = []
    unreadable: list[str] = []
    for number, record in enumerate(records, start=1):
        try:
            for user, answers in _by_user(record).items():
                labels += _given(str(record["id"]), names.get(user, f"argilla:{user}"), answers, drafts)
        except (InputError, KeyError, TypeError, ValueError, AttributeError) as error:
            unreadable.append(f"{file.name}, record {number}: {error}")
    return AnnotationFile(tuple(labels), unreadable=tuple(unreadable))


def _by_user(record: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Submitted answers of each user, by question."""
    found: dict[str, dict[str, Any]] = {}
    for question, responses in record["responses"].items():
        for one in responses:
            if str(one.get("status") or "submitted").rpartition(".")[2] == "submitted":
                found.setdefault(str(one["user_id"]), {})[question] = one["value"]
    return found


def _given(name: str, annotator: str, answers: Mapping[str, Any], drafts: Mapping[str, Draft]) -> list[ImportedLabel]:
    if not answers.get("verdict"):
        return []
    said = {question: str(answers.get(question) or "") for question, _ in _TEXTS}
    options = tuple(line.strip() for line in said["edited_options"].splitlines() if line.strip())
    texts = EditTexts(said["edited_question"], said["edited_answer"], options, said["edited_correct"])
    reasons = answers.get("reasons") or ()
    label = label_from_texts(drafts, name, answers["verdict"], texts, reasons, said["remark"], annotator)
    return [replace(label, key=content_key("argilla", label))]
