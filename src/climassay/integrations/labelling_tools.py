"""Write files for annotation in Label Studio and Argilla 2, and read the annotations that they export.

Label Studio gets tasks as JSON (``data``, ``annotations``, ``predictions``) and a labelling interface, whose tags
determine the form of result items. It does not import annotators that it does not know, so their names are stored in
``meta`` of the first result item, which it leaves unchanged.

Argilla gets a folder that ``rg.Dataset.from_disk`` loads: ``dataset.json``, ``settings.json`` and ``records.json``, as
``rg.Dataset.to_disk`` writes them. It identifies annotators by ids and rejects answers of unknown annotators, so only
labels of annotators with a given id are written.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID
from xml.etree import ElementTree

from climassay.errors import InputError
from climassay.generation import Draft
from climassay.generation.annotation import (
    ANNOTATION_REASONS,
    AnnotationFile,
    AnnotationItem,
    Label,
    content_key,
    label_fields,
    label_from_fields,
)
from climassay.io import parse_json, read_bytes, read_text, write_file
from climassay.questions import option_letter

T = TypeVar("T")
VERDICT_CHOICES = ("valid", "invalid")
_FIELD_TITLES = {"question": "Question", "options": "Options", "answer": "Marked answer", "passages": "Passages"}
"""Headings of the texts shown to annotators, by field."""
_EDIT_HINTS = {
    "edited_question": "Better words of the whole question or statement",
    "edited_answer": "A better answer; of a statement the term to mask",
    "edited_options": "All options, one a line",
    "edited_correct": "Letter of the correct option",
}
"""Hints for the text fields in which annotators edit a question, by the name of the field."""


def _item_texts(item: AnnotationItem) -> dict[str, str]:
    """Return the item's texts for annotators by the keys of :data:`_FIELD_TITLES`; missing texts are empty."""
    wording = item.draft.wording
    options = [f"{option_letter(index)}) {text}" for index, text in enumerate(wording.options)]
    correct_answer = options[wording.correct] if options and wording.correct is not None else wording.answer
    sources = [(passage.text, passage.citation or passage.document) for passage in item.draft.passages]
    return {
        "question": wording.question,
        "options": "\n".join(options),
        "answer": correct_answer or item.suggested_term or "",
        "passages": "\n\n".join(f"{text}\n[{source}]" if source else text for text, source in sources),
    }


def _read_list(file: Path, error_prefix: str, required_field: str, noun: str) -> list[dict[str, Any]]:
    """Read a JSON list of objects.

    Raises:
        InputError: The file is not a list of objects, an object lacks the field, or its annotations are not a list.
    """
    try:
        result = parse_json(read_bytes(file))
        if not isinstance(result, list) or not all(
            isinstance(task, dict) and required_field in task for task in result
        ):
            raise ValueError(f"a list of {noun} with {required_field} is wanted")
        if not all(isinstance(_annotations(task), list) for task in result):
            raise ValueError(f"the annotations of a {noun.removesuffix('s')} are a list")
    except ValueError as error:
        raise InputError(f"{file} {error_prefix} (JSON): {error}.") from None
    return result


def _read_entries(
    entry_label: str, entries: Iterable[tuple[int, T]], read_labels: Callable[[T], list[Label]]
) -> AnnotationFile:
    """Read the labels of numbered entries.

    For each entry that cannot be read, the result has a message that begins with ``entry_label`` and the number of the
    entry.
    """
    labels: list[Label] = []
    messages: list[str] = []
    for number, entry in entries:
        try:
            labels += read_labels(entry)
        except (InputError, KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            messages.append(f"{entry_label} {number}: {error}")
    return AnnotationFile(tuple(labels), unreadable=tuple(messages))


# Label Studio

TARGET_NAME = "question"
"""Name of the text to which all answers refer."""
META_KEY = "climassay"


def labelling_interface() -> str:
    """Return Label Studio's labelling interface as XML, to paste into the settings of a project."""
    view = ElementTree.Element("View")
    for name, title in _FIELD_TITLES.items():
        ElementTree.SubElement(view, "Header", value=title, size="5")
        ElementTree.SubElement(view, "Text", name=name, value=f"${name}")

    def text_area(parent: ElementTree.Element, name: str, hint: str) -> None:
        lines, max_lines = ("1", "10") if name == "edited_options" else ("2", "1")
        options = {"placeholder": hint, "rows": lines, "maxSubmissions": max_lines, "editable": "true"}
        ElementTree.SubElement(parent, "TextArea", options, name=name, toName=TARGET_NAME)

    choices = {"choice": "single", "required": "true", "showInline": "true"}
    verdict = ElementTree.SubElement(view, "Choices", choices, name="verdict", toName=TARGET_NAME)
    view_by_verdict = {}
    for word in VERDICT_CHOICES:
        ElementTree.SubElement(verdict, "Choice", value=word, hotkey=word[0])
        visibility_options = {"visibleWhen": "choice-selected", "whenTagName": "verdict", "whenChoiceValue": word}
        view_by_verdict[word] = ElementTree.SubElement(view, "View", visibility_options)
    reasons = ElementTree.SubElement(
        view_by_verdict["invalid"], "Choices", name="reasons", toName=TARGET_NAME, choice="multiple"
    )
    for reason in ANNOTATION_REASONS:
        ElementTree.SubElement(reasons, "Choice", value=reason.words, alias=reason.name, hotkey=reason.key)
    ElementTree.SubElement(view_by_verdict["valid"], "Header", value="Better words, where they are needed", size="5")
    for name, hint in _EDIT_HINTS.items():
        text_area(view_by_verdict["valid"], name, hint)
    text_area(view, "remark", "Remark")
    ElementTree.indent(view)
    return ElementTree.tostring(view, encoding="unicode") + "\n"


def write_label_studio(folder: Path, items: Iterable[AnnotationItem], *, confidence: bool = False) -> int:
    """Write ``tasks.json`` and ``interface.xml``.

    Returns:
        Number of tasks written.
    """
    tasks = []
    for item in items:
        draft = item.draft
        task: dict[str, Any] = {
            "data": {"draft": draft.id, "kind": draft.kind, "level": draft.level, **_item_texts(item)},
            "annotations": [_to_annotation(draft, label) for label in item.labels],
        }
        if confidence and item.p_valid is not None:
            prediction = _result_item("verdict", "choices", ["valid" if item.p_valid >= 0.5 else "invalid"])
            task["predictions"] = [{"model_version": "validator", "score": item.p_valid, "result": [prediction]}]
        tasks.append(task)
    write_file(folder / "interface.xml", labelling_interface().encode())
    text = json.dumps(tasks, ensure_ascii=False, indent=1, allow_nan=False)
    write_file(folder / "tasks.json", text.encode())
    return len(tasks)


def _result_item(name: str, kind: str, values: list[str]) -> dict[str, Any]:
    value = {"choices" if kind == "choices" else "text": values}
    return {"id": name, "from_name": name, "to_name": TARGET_NAME, "type": kind, "value": value}


def _to_annotation(draft: Draft, label: Label) -> dict[str, Any]:
    verdict, fields = VERDICT_CHOICES[0 if label.accepted else 1], label_fields(draft, label)
    results = [_result_item("verdict", "choices", [verdict])]
    results += [_result_item("reasons", "choices", list(label.reasons))] if label.reasons else []
    results += [_result_item(name, "textarea", values) for name, values in fields.items()]
    content = label_from_fields({draft.id: draft}, draft.id, verdict, label.reasons, fields)
    results[0]["meta"] = {
        META_KEY: {
            "key": label.key,
            "annotator": label.annotator,
            "made_at": label.made_at,
            "seconds": label.seconds,
            "adjudicates": label.adjudicates,
            "content": content_key("content", content),
        }
    }
    return {"result": results, "lead_time": label.seconds, "was_cancelled": False, "ground_truth": label.adjudicates}


def read_label_studio(path: Path, drafts: Mapping[str, Draft]) -> AnnotationFile:
    """Read annotations from Label Studio's export (JSON), or from a task file of :func:`write_label_studio`.

    An annotation that was written by climassay and not changed in Label Studio keeps its key, so that it is not stored
    twice. Cancelled annotations, and those without a verdict, are skipped.

    Raises:
        InputError: The file cannot be read or is not such an export. Annotations that are no valid label are listed in
            the result.
    """
    tasks = _read_list(path, "is not an export of Label Studio", "data", "tasks")
    entries = (
        (number, (task["data"], annotation))
        for number, task in enumerate(tasks, start=1)
        for annotation in _annotations(task)
    )
    return _read_entries(f"{path.name}, task", entries, lambda entry: _label_studio_labels(*entry, drafts))


def _annotations(task: Mapping[str, Any]) -> Any:
    return task.get("annotations") or task.get("completions") or []


def _label_studio_labels(
    data: Mapping[str, Any], annotation: Mapping[str, Any], drafts: Mapping[str, Draft]
) -> list[Label]:
    values: dict[str, list[str]] = {}
    for result in annotation.get("result") or ():
        value = result["value"]
        parts = value.get("choices", value.get("text", ()))
        values[result["from_name"]] = [parts] if isinstance(parts, str) else list(parts)
    if annotation.get("was_cancelled") or not values.get("verdict"):
        return []
    names = {reason.words: reason.name for reason in ANNOTATION_REASONS}
    reasons = [names.get(name, name) for name in values.get("reasons", ())]
    content = label_from_fields(drafts, data.get("draft"), values["verdict"][0], reasons, values)
    for result in annotation["result"]:
        metadata = (result.get("meta") or {}).get(META_KEY)
        if metadata and metadata.get("content") == content_key(
            "content", content
        ):  # written here, and not changed there
            label = replace(
                content,
                key=str(metadata["key"]),
                annotator=str(metadata["annotator"]),
                made_at=float(metadata["made_at"]),
                seconds=metadata.get("seconds"),
                adjudicates=bool(metadata.get("adjudicates")),
            )
            return [label]
    annotator, seconds = annotation.get("completed_by"), annotation.get("lead_time")
    name = annotator.get("email") or annotator.get("id") if isinstance(annotator, dict) else annotator
    time = annotation.get("updated_at") or annotation.get("created_at")
    label = replace(
        content,
        annotator=f"label-studio:{name}" if isinstance(name, int) else str(name or "label-studio"),
        made_at=0.0 if time is None else datetime.fromisoformat(str(time)).timestamp(),
        seconds=None if seconds is None else float(seconds),
    )
    return [replace(label, key=content_key("label-studio", label, annotation.get("id")))]


# Argilla

GUIDELINES = (
    "Is the question scientifically right, and does the passage answer it as marked? Say valid or invalid; where it is "
    "invalid, say why. Where better words make it valid, write them and say valid."
)


def read_user_ids(file: Path | str | None) -> dict[str, str]:
    """Read a JSON file that maps annotators to Argilla's user ids; without a file, the mapping is empty.

    Raises:
        InputError: The file cannot be read, or is no such mapping.
    """
    if file is None:
        return {}
    try:
        user_ids = parse_json(read_text(Path(file)))
        if not isinstance(user_ids, dict) or not all(isinstance(row, str) for row in user_ids.values()):
            raise ValueError('it should look like {"anna": "6b1b3e0c-..."}')
    except (OSError, ValueError) as error:
        raise InputError(f"{file} does not map annotators to Argilla users: {error}.") from None
    return user_ids


def argilla_settings(overlap: int = 1) -> dict[str, Any]:
    """Return the settings of an Argilla dataset, for ``rg.Settings.from_json``."""
    text = {"type": "text", "use_markdown": False}
    verdict = {"type": "label_selection", "options": [{"value": word, "text": word} for word in VERDICT_CHOICES]}
    reasons = {
        "type": "multi_label_selection",
        "options": [{"value": reason.name, "text": reason.words} for reason in ANNOTATION_REASONS],
        "visible_options": len(ANNOTATION_REASONS),
        "options_order": "natural",
    }
    texts = {"remark": "Remark", **_EDIT_HINTS}
    terms = {"type": "terms", "visible_for_annotators": True, "values": None}
    return {
        "guidelines": GUIDELINES,
        "allow_extra_metadata": True,
        "distribution": {"strategy": "overlap", "min_submitted": overlap},
        "fields": [
            {"name": name, "title": title, "required": name == "question", "settings": text}
            for name, title in _FIELD_TITLES.items()
        ],
        "questions": [
            {"name": "verdict", "title": "Is it valid?", "required": True, "settings": verdict},
            {"name": "reasons", "title": "Why is it invalid?", "required": False, "settings": reasons},
            *({"name": name, "title": title, "required": False, "settings": text} for name, title in texts.items()),
        ],
        "vectors": [],
        "metadata": [
            {"name": name, "title": name, "visible_for_annotators": True, "type": "terms", "settings": terms}
            for name in ("kind", "level")
        ],
    }


def write_argilla(
    folder: Path,
    name: str,
    items: Iterable[AnnotationItem],
    *,
    overlap: int = 1,
    users: Mapping[str, str] | None = None,
) -> tuple[int, int]:
    """Write a folder that Argilla reads as a dataset.

    Args:
        folder: Folder to write; it is created if missing.
        name: Name of the dataset in Argilla.
        items: Items to annotate.
        overlap: Number of annotators who label each item.
        users: Argilla's user id of each annotator; labels of other annotators are omitted.

    Returns:
        Numbers of written records and labels.

    Raises:
        InputError: An id is not a UUID, or the folder cannot be written.
    """
    user_ids = {annotator: _user_id(annotator, text) for annotator, text in (users or {}).items()}
    records = [_to_record(item, user_ids) for item in items]
    settings = argilla_settings(overlap)
    common_settings = {part: settings[part] for part in ("guidelines", "allow_extra_metadata", "distribution")}
    dataset = {"id": None, "name": name, "status": "draft", **common_settings}
    for file, content in (("records", records), ("settings", settings), ("dataset", dataset)):
        write_file(folder / f"{file}.json", json.dumps(content, ensure_ascii=False, allow_nan=False).encode())
    return len(records), sum(len(record["responses"].get("verdict", ())) for record in records)


def _user_id(annotator: str, text: str) -> str:
    try:
        return str(UUID(text))
    except (ValueError, AttributeError):
        raise InputError(f"{text!r} is not an id of a user in Argilla, as {annotator} is mapped to.") from None


def _to_record(item: AnnotationItem, users: Mapping[str, str]) -> dict[str, Any]:
    draft = item.draft
    responses: dict[str, list[dict[str, Any]]] = {}
    for label in item.labels:
        if label.annotator in users and not label.adjudicates:
            answers: dict[str, Any] = {"verdict": VERDICT_CHOICES[0 if label.accepted else 1]}
            answers |= {"reasons": list(label.reasons)} if label.reasons else {}
            for name, values in label_fields(draft, label).items():
                lines = [" ".join(value.split()) for value in values] if name == "edited_options" else values
                answers[name] = "\n".join(lines)
            for question, value in answers.items():
                answer = {"value": value, "user_id": users[label.annotator], "status": "submitted"}
                responses.setdefault(question, []).append(answer)
    suggestions: dict[str, Any] = {}
    if item.suggested_term is not None:
        suggestions["edited_answer"] = {"value": item.suggested_term, "score": None, "agent": "masker"}
    if item.preselected:
        suggestions["reasons"] = {"value": list(item.preselected), "score": None, "agent": "screening"}
    return {
        "id": draft.id,
        "fields": {name: text for name, text in _item_texts(item).items() if text},
        "metadata": {"kind": draft.kind, "level": draft.level},
        "suggestions": suggestions,
        "responses": responses,
        "vectors": {},
    }


def read_argilla(path: Path, drafts: Mapping[str, Draft], users: Mapping[str, str] | None = None) -> AnnotationFile:
    """Read the submitted responses in records written by Argilla's ``to_disk`` or ``records.to_json``.

    Argilla stores no times of answers. Labels with the same content therefore count as one label if the file is read
    again.

    Args:
        path: Folder with ``records.json``, or that file.
        drafts: Drafts of the dataset by id.
        users: Argilla's user id of each annotator; other users are named by their ids.

    Raises:
        InputError: The file cannot be read or contains no records. Answers that are no valid label are listed in the
            result.
    """
    file = path / "records.json" if path.is_dir() else path
    records = _read_list(file, "holds no records of Argilla", "responses", "records")
    names = {_user_id(annotator, text): annotator for annotator, text in (users or {}).items()}
    entries = enumerate(records, start=1)
    return _read_entries(f"{file.name}, record", entries, lambda record: _argilla_labels(record, drafts, names))


def _argilla_labels(record: Mapping[str, Any], drafts: Mapping[str, Draft], names: Mapping[str, str]) -> list[Label]:
    by_user: dict[str, dict[str, Any]] = {}
    for question, responses in record["responses"].items():
        for response in responses:
            if str(response.get("status") or "submitted").rpartition(".")[2] == "submitted":
                by_user.setdefault(str(response["user_id"]), {})[question] = response["value"]
    labels = []
    for user, answers in by_user.items():
        if answers.get("verdict"):
            edits = {name: [str(answers[name])] for name in ("remark", *_EDIT_HINTS) if answers.get(name)}
            options = edits.get("edited_options", [""])[0].splitlines()
            edits["edited_options"] = [line.strip() for line in options if line.strip()]
            annotator = names.get(user, f"argilla:{user}")
            label = label_from_fields(
                drafts, str(record["id"]), answers["verdict"], answers.get("reasons") or (), edits, annotator
            )
            labels.append(replace(label, key=content_key("argilla", label)))
    return labels
