"""Annotations in Label Studio: tasks and a labelling interface to import there, and its export to read here.

The task format is Label Studio's JSON (``data``, ``annotations``, ``predictions``), its result items are those of the
tags in :func:`interface`. Label Studio takes no annotator from a file whom it does not know, so ours appear in
``meta`` of the first result item, which it keeps as it is.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

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

TO = "question"
"""Name of the text that all answers are tied to."""
META = "climassay"
_REASONS = {reason.words: reason.name for reason in ANNOTATION_REASONS}


def interface() -> str:
    """The labelling interface, as XML: paste it into the settings of a project."""
    view = ElementTree.Element("View")
    for name, title in (
        ("question", "Question"),
        ("options", "Options"),
        ("answer", "Marked answer"),
        ("passages", "Passages"),
    ):
        ElementTree.SubElement(view, "Header", value=title, size="5")
        ElementTree.SubElement(view, "Text", name=name, value=f"${name}")
    verdict = ElementTree.SubElement(
        view, "Choices", name="verdict", toName=TO, choice="single", required="true", showInline="true"
    )
    for word in ("valid", "invalid"):
        ElementTree.SubElement(verdict, "Choice", value=word, hotkey=word[0])
    rejected = _shown_where(view, "invalid")
    reasons = ElementTree.SubElement(rejected, "Choices", name="reasons", toName=TO, choice="multiple")
    for reason in ANNOTATION_REASONS:
        ElementTree.SubElement(reasons, "Choice", value=reason.words, alias=reason.name, hotkey=reason.key)
    accepted = _shown_where(view, "valid")
    ElementTree.SubElement(accepted, "Header", value="Better words, where they are needed", size="5")
    for name, hint, rows, most in (
        ("edited_question", "The whole question or statement", "3", "1"),
        ("edited_answer", "The whole answer; of a statement the term to mask", "2", "1"),
        ("edited_options", "All options, one after the other", "1", "10"),
        ("edited_correct", "Letter of the correct option", "1", "1"),
    ):
        _text_area(accepted, name, hint, rows, most)
    _text_area(view, "remark", "Remark", "2", "1")
    ElementTree.indent(view)
    return ElementTree.tostring(view, encoding="unicode") + "\n"


def _shown_where(view: ElementTree.Element, choice: str) -> ElementTree.Element:
    return ElementTree.SubElement(
        view, "View", visibleWhen="choice-selected", whenTagName="verdict", whenChoiceValue=choice
    )


def _text_area(view: ElementTree.Element, name: str, hint: str, rows: str, most: str) -> None:
    ElementTree.SubElement(
        view, "TextArea", name=name, toName=TO, placeholder=hint, rows=rows, maxSubmissions=most, editable="true"
    )


def write_label_studio(folder: Path, items: Iterable[Item], *, confidence: bool = False) -> int:
    """Write ``tasks.json`` and ``interface.xml``.

    Returns:
        How many tasks were written.
    """
    tasks = [_task(item, confidence) for item in items]
    write_file(folder / "interface.xml", interface().encode())
    text = json.dumps(tasks, ensure_ascii=False, indent=1, allow_nan=False)
    write_file(folder / "tasks.json", text.encode())
    return len(tasks)


def _task(item: Item, confidence: bool) -> dict[str, Any]:
    wording, draft = item.draft.wording, item.draft
    options = [f"{option_letter(place)}) {text}" for place, text in enumerate(wording.options)]
    answer = wording.answer or item.suggested_term or ""
    if draft.type.options and wording.correct is not None:
        answer = options[wording.correct]
    sources = [(one.text, one.place or one.document) for one in draft.passages]
    passages = [f"{text}\n[{source}]" if source else text for text, source in sources]
    task: dict[str, Any] = {
        "data": {
            "draft": draft.id,
            "kind": draft.kind,
            "level": draft.level,
            "question": wording.question,
            "options": "\n".join(options),
            "answer": answer,
            "passages": "\n\n".join(passages),
        },
        "annotations": [_annotation(draft, label) for label in item.labels],
    }
    if confidence and item.p_valid is not None:
        guess = _choices("verdict", ["valid" if item.p_valid >= 0.5 else "invalid"])
        task["predictions"] = [{"model_version": "validator", "score": item.p_valid, "result": [guess]}]
    return task


def _annotation(draft: Draft, label: Label) -> dict[str, Any]:
    texts = edit_texts(draft, label.wording)
    verdict = "valid" if label.accepted else "invalid"
    results = [_choices("verdict", [verdict])]
    if label.reasons:
        results.append(_choices("reasons", list(label.reasons)))
    parts = (
        ("remark", [label.remark]),
        ("edited_question", [texts.question]),
        ("edited_answer", [texts.answer]),
        ("edited_options", list(texts.options)),
        ("edited_correct", [texts.correct]),
    )
    results += [
        {"id": name, "from_name": name, "to_name": TO, "type": "textarea", "value": {"text": texts}}
        for name, texts in parts
        if any(texts)
    ]
    content = label_from_texts({draft.id: draft}, draft.id, verdict, texts, label.reasons, label.remark)
    results[0]["meta"] = {
        META: {
            "key": label.key,
            "annotator": label.annotator,
            "made_at": label.made_at,
            "seconds": label.seconds,
            "adjudicates": label.adjudicates,
            "content": content_key("content", content),
        }
    }
    return {"result": results, "lead_time": label.seconds, "was_cancelled": False, "ground_truth": label.adjudicates}


def _choices(name: str, values: list[str]) -> dict[str, Any]:
    return {"id": name, "from_name": name, "to_name": TO, "type": "choices", "value": {"choices": values}}


def read_label_studio(path: Path, drafts: Mapping[str, Draft]) -> AnnotationFile:
    """Read annotations from Label Studio's export (JSON), or from tasks that were written here.

    An annotation that came from here and was not changed there keeps its key, so that it is stored once. Cancelled
    annotations, and those without a verdict, are passed over.

    Raises:
        InputError: It cannot be read or is no such export. Annotations that make no label are listed in the result.
    """
    try:
        tasks = parse_json(read_bytes(path))
        if not isinstance(tasks, list) or not all(isinstance(task, dict) and "data" in task for task in tasks):
            raise ValueError("a list of tasks with data is wanted")
        if not all(isinstance(_annotations(task), list) for task in tasks):
            raise ValueError("the annotations of a task are a list")
    except ValueError as error:
        raise InputError(f"{path} is not an export of Label Studio (JSON): {error}.") from None
    labels: list[ImportedLabel] = []
    unreadable: list[str] = []
    for number, task in enumerate(tasks, start=1):
        for annotation in _annotations(task):
            try:
                label = _given(task["data"], annotation, drafts)
            except (InputError, KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
                unreadable.append(f"{path.name}, task {number}: {error}")
                continue
            labels += [] if label is None else [label]
    return AnnotationFile(tuple(labels), unreadable=tuple(unreadable))


def _annotations(task: Mapping[str, Any]) -> Any:
    """Those of a task; old exports call them completions."""
    return task.get("annotations") or task.get("completions") or []


def _given(data: Mapping[str, Any], annotation: Mapping[str, Any], drafts: Mapping[str, Draft]) -> ImportedLabel | None:
    said: dict[str, list[str]] = {}
    for result in annotation.get("result") or ():
        value = result["value"]
        parts = value.get("choices", value.get("text", ()))
        said[result["from_name"]] = [parts] if isinstance(parts, str) else list(parts)
    if annotation.get("was_cancelled") or not said.get("verdict"):
        return None
    texts = EditTexts(
        question=_first(said, "edited_question"),
        answer=_first(said, "edited_answer"),
        options=tuple(said.get("edited_options", ())),
        correct=_first(said, "edited_correct"),
    )
    reasons = [_REASONS.get(name, name) for name in said.get("reasons", ())]
    content = label_from_texts(drafts, data.get("draft"), said["verdict"][0], texts, reasons, _first(said, "remark"))
    return _known(content, annotation) or _new(content, annotation)


def _first(said: Mapping[str, list[str]], name: str) -> str:
    return said.get(name, [""])[0] if said.get(name) else ""


def _known(content: ImportedLabel, annotation: Mapping[str, Any]) -> ImportedLabel | None:
    """The label that was written here, if it says the same as then."""
    for result in annotation["result"]:
        ours = (result.get("meta") or {}).get(META)
        if ours and ours.get("content") == content_key("content", content):
            return replace(
                content,
                key=str(ours["key"]),
                annotator=str(ours["annotator"]),
                made_at=float(ours["made_at"]),
                seconds=ours.get("seconds"),
                adjudicates=bool(ours.get("adjudicates")),
            )
    return None


def _new(content: ImportedLabel, annotation: Mapping[str, Any]) -> ImportedLabel:
    by = annotation.get("completed_by")
    name = by.get("email") or by.get("id") if isinstance(by, dict) else by
    at = annotation.get("updated_at") or annotation.get("created_at")
    spent = annotation.get("lead_time")
    label = replace(
        content,
        annotator=f"label-studio:{name}" if isinstance(name, int) else str(name or "label-studio"),
        made_at=None if at is None else datetime.fromisoformat(str(at)).timestamp(),
        seconds=None if spent is None else float(spent),
    )
    return replace(label, key=content_key("label-studio", label, annotation.get("id")))
