"""Files of annotations: climassay's own JSON Lines, which contain everything, and tables for spreadsheets."""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter

from climassay.errors import InputError
from climassay.generation.annotation.labels import (
    EDIT_FIELDS,
    AnnotationItem,
    AnnotationSettings,
    Comment,
    Label,
    Skip,
    content_key,
    label_fields,
    label_from_fields,
    parse_verdict,
)
from climassay.generation.annotation.own_questions import source_id
from climassay.generation.draft import Draft
from climassay.io import Row, describe_first_problem, parse_json, parse_rows, read_bytes, write_file
from climassay.reporting.results import write_rows
from climassay.settings import parse_table

FORMAT = "climassay-annotations"
VERSION = 1
COLUMNS = (
    "draft", "kind", "question", "annotator", "label", "reasons", "remark", "edited_question", "edited_answer",
    "edited_options", "edited_correct", "seconds", "made_at", "adjudicates", "key", "source_id",
)  # fmt: skip
"""Columns of an exported table; an imported table needs only ``draft``, ``annotator`` and ``label``.

``source_id`` is the id of the question or answer in the file or run from which the dataset was made.
"""
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "'")


@dataclass(frozen=True, slots=True)
class AnnotationFile:
    """Content of a file of annotations."""

    labels: tuple[Label, ...]
    skips: tuple[Skip, ...] = ()
    comments: tuple[Comment, ...] = ()
    settings: AnnotationSettings | None = None
    """Settings of the exported dataset, if the file has them."""
    unreadable: tuple[str, ...] = ()
    """One sentence for each row that cannot be read as a label."""


@dataclass(frozen=True, slots=True)
class _LabelLine:
    """Line after the header, with one label, skip or comment."""

    __pydantic_config__ = ConfigDict(strict=True, extra="forbid")

    label: Label | None = None
    skip: Skip | None = None
    comment: Comment | None = None


_LINE = TypeAdapter(_LabelLine)


def write_annotations(
    path: Path,
    dataset: str,
    settings: AnnotationSettings,
    labels: Sequence[Label],
    skips: Iterable[Skip],
    comments: Iterable[Comment] = (),
) -> int:
    """Write all labels, skips and comments of a dataset atomically, including withdrawn labels.

    Args:
        path: File to write.
        dataset: Name of the dataset.
        settings: Settings of the dataset's queue.
        labels: All labels, oldest first.
        skips: All skips.
        comments: All comments, oldest first.

    Returns:
        Number of labels written.
    """
    lines: list[dict[str, object]] = [
        {"format": FORMAT, "version": VERSION, "dataset": dataset, "settings": asdict(settings)}
    ]
    lines += [{"label": asdict(label)} for label in labels]
    lines += [{"skip": asdict(skip)} for skip in skips]
    lines += [{"comment": asdict(comment)} for comment in comments]
    text = "".join(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n" for line in lines)
    write_file(path, text.encode())
    return len(labels)


def read_annotations(path: Path) -> AnnotationFile:
    """Read a file that :func:`write_annotations` wrote.

    Raises:
        InputError: The file cannot be read, is not an annotation file, or has another version.
    """
    data = read_bytes(path)
    lines: list[_LabelLine] = []
    settings: AnnotationSettings | None = None
    line_number = 0
    try:
        for line_number, text in enumerate(data.decode("utf-8").rstrip("\n").split("\n"), start=1):
            row = parse_json(text)
            if line_number > 1:
                lines.append(_LINE.validate_json(json.dumps(row)))
                continue
            if not isinstance(row, dict) or row.get("format") != FORMAT:
                raise InputError(f"This is not a file of annotations: its first line does not say {FORMAT}.")
            if row["version"] != VERSION:
                raise InputError(
                    f"These annotations have version {row['version']}, but this climassay reads version {VERSION}: "
                    "export them with the same version of climassay."
                )
            settings = parse_table(AnnotationSettings, row["settings"], f"{path}, line 1", "the settings")
    except (KeyError, TypeError, ValueError) as error:
        problem = describe_first_problem(error)
        raise InputError(
            f"{path}, line {max(1, line_number)}: this is not a climassay annotation ({problem})."
        ) from None
    if settings is None:
        raise InputError(f"{path} is empty: there are no annotations in it.")
    labels = tuple(line.label for line in lines if line.label is not None)
    skips = tuple(line.skip for line in lines if line.skip is not None)
    comments = tuple(line.comment for line in lines if line.comment is not None)
    return AnnotationFile(labels, skips, comments, settings)


def write_table(path: Path, items: Iterable[AnnotationItem]) -> int:
    """Write current labels as comma-separated values, one label per row. An item without labels also gets a row.

    If a spreadsheet would evaluate a cell as a formula, the cell gets a leading apostrophe, which :func:`read_table`
    removes. If the path ends in ``.xlsx``, a workbook is written, which cannot be imported.

    Returns:
        Number of labels written.
    """
    rows: list[dict[str, object]] = []
    n_labels = 0
    for item in items:
        draft = item.draft
        draft_cells: dict[str, object] = {"draft": draft.id, "kind": draft.kind, "question": draft.wording.question}
        draft_cells["source_id"] = source_id(draft)
        rows += [draft_cells] if not item.labels else []
        for label in item.labels:
            fields = label_fields(draft, label)
            cells: dict[str, object] = {
                **draft_cells,
                **{name: texts[0] for name, texts in fields.items()},
                "annotator": label.annotator,
                "label": "valid" if label.accepted else "invalid",
                "reasons": "; ".join(label.reasons),
                "seconds": "" if label.seconds is None else label.seconds,
                "made_at": datetime.fromtimestamp(label.made_at, UTC).isoformat(),
                "adjudicates": "yes" if label.adjudicates else "",
                "key": label.key,
            }
            if "edited_options" in fields:
                cells["edited_options"] = json.dumps(fields["edited_options"], ensure_ascii=False)
            rows.append({name: cells.get(name, "") for name in COLUMNS})
            n_labels += 1
    if path.suffix.lower() == ".xlsx":
        write_rows(path, rows)
        return n_labels
    file = io.StringIO()
    writer = csv.DictWriter(file, COLUMNS)
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _escape_formula(str(value)) for name, value in row.items()})
    write_file(path, file.getvalue().encode())
    return n_labels


def _escape_formula(text: str) -> str:
    """Escape a text that a spreadsheet would evaluate; unlike ``safe_cell``, the escape can be reversed exactly."""
    return "'" + text if text.startswith(_FORMULA_STARTS) else text


def read_table(path: Path, drafts: Mapping[str, Draft]) -> AnnotationFile:
    """Read labels from a table: comma- or tab-separated values, JSON Lines or Parquet, with :data:`COLUMNS`.

    Rows without label and annotator are skipped. Rows that cannot be read as a label are listed in ``unreadable``.

    Raises:
        InputError: The file cannot be read, or lacks the column ``draft``, ``annotator`` or ``label``.
    """
    rows = list(parse_rows(path, read_bytes(path)))
    if not rows or any(name not in rows[0] for name in ("draft", "annotator", "label")):
        raise InputError(
            f"{path} is not a table of labels: it needs the columns draft, annotator and label, and at least one row."
        )
    labels: list[Label] = []
    row_faults: list[str] = []
    for row_number, row in enumerate(rows, start=1):
        cells = {name: "" if row.get(name) is None else str(row[name]) for name in COLUMNS}
        for name, text in cells.items():
            is_escaped = text.startswith("'") and text[1:].startswith(_FORMULA_STARTS)
            cells[name] = (text[1:] if is_escaped else text).strip()
        if not cells["annotator"] and not cells["label"]:
            continue
        try:
            labels.append(_label_from_cells(cells, row, drafts))
        except (InputError, ValueError) as error:
            row_faults.append(f"{path.name}, row {row_number}: {error}")
    return AnnotationFile(tuple(labels), unreadable=tuple(row_faults))


def _label_from_cells(cells: Mapping[str, str], row: Row, drafts: Mapping[str, Draft]) -> Label:
    options, text = row.get("edited_options"), cells["edited_options"]
    if isinstance(options, str) or not isinstance(options, Sequence):
        options = parse_json(text) if text.startswith("[") else filter(None, map(str.strip, text.splitlines()))
    fields = {name: [cells[name]] for name in ("remark", *EDIT_FIELDS)} | {"edited_options": [*map(str, options)]}
    label = replace(
        label_from_fields(drafts, cells["draft"], cells["label"], (), fields, cells["annotator"]),
        reasons=tuple(reason.strip() for reason in cells["reasons"].split(";") if reason.strip()),
        seconds=float(cells["seconds"]) if cells["seconds"] else None,
        made_at=datetime.fromisoformat(cells["made_at"]).timestamp() if cells["made_at"] else 0.0,
        adjudicates=bool(cells["adjudicates"]) and parse_verdict(cells["adjudicates"]),
    )
    return replace(label, key=cells["key"] or content_key("table", label))
