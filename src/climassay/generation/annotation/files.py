"""Annotations in files: climassay's own JSON Lines, which lose nothing, and tables for spreadsheets."""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from climassay.errors import InputError
from climassay.generation.annotation.labels import (
    EDITS,
    AnnotationSettings,
    Comment,
    ImportedLabel,
    ImportedSkip,
    Item,
    Label,
    accepted_from,
    content_key,
    label_from_parts,
    label_parts,
)
from climassay.generation.draft import Draft, record_from
from climassay.io import Row, first_problem, parse_json, parse_rows, read_bytes, write_file
from climassay.reporting.results import write_rows

FORMAT = "climassay-annotations"
VERSION = 2
"""Version 2 added comments; files of version 1 are read as well."""
COLUMNS = (
    "draft", "kind", "question", "annotator", "label", "reasons", "remark", "edited_question", "edited_answer",
    "edited_options", "edited_correct", "seconds", "made_at", "adjudicates", "key",
)  # fmt: skip
"""Columns of a table; an imported one needs only ``draft``, ``annotator`` and ``label``."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "'")


@dataclass(frozen=True, slots=True)
class AnnotationFile:
    """What a file of annotations holds."""

    labels: tuple[ImportedLabel, ...]
    skips: tuple[ImportedSkip, ...] = ()
    comments: tuple[Comment, ...] = ()
    settings: AnnotationSettings | None = None
    """Settings of the dataset that it was written from, where the file tells."""
    unreadable: tuple[str, ...] = ()
    """One sentence for each row that makes no label."""


def write_annotations(
    path: Path,
    dataset: str,
    settings: AnnotationSettings,
    labels: Iterable[Label],
    skips: Iterable[ImportedSkip],
    comments: Iterable[Comment] = (),
) -> int:
    """Write everything that was said about a dataset, withdrawn labels included.

    Args:
        path: Appears whole or not at all.
        dataset: Its name.
        settings: How it is annotated.
        labels: All of them, oldest first.
        skips: What all annotators passed over.
        comments: All of them, oldest first.

    Returns:
        How many labels were written.
    """
    lines: list[dict[str, Any]] = [
        {"format": FORMAT, "version": VERSION, "dataset": dataset, "settings": asdict(settings)}
    ]
    rows = [{name: value for name, value in asdict(label).items() if name != "dataset"} for label in labels]
    lines += [{"label": row} for row in rows]
    lines += [{"skip": asdict(skip)} for skip in skips]
    lines += [{"comment": asdict(comment)} for comment in comments]
    text = "".join(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n" for line in lines)
    write_file(path, text.encode())
    return len(rows)


def read_annotations(path: Path) -> AnnotationFile:
    """Read what :func:`write_annotations` wrote.

    Raises:
        InputError: It cannot be read, is no such file, or was written by a newer climassay.
    """
    data = read_bytes(path)
    labels: list[ImportedLabel] = []
    skips: list[ImportedSkip] = []
    comments: list[Comment] = []
    settings: AnnotationSettings | None = None
    number = 0
    try:
        for number, line in enumerate(data.decode("utf-8").rstrip("\n").split("\n"), start=1):
            row = parse_json(line)
            if number == 1:
                if not isinstance(row, dict) or row.get("format") != FORMAT:
                    raise InputError(f"This is not a file of annotations: its first line does not say {FORMAT}.")
                if row["version"] not in range(1, VERSION + 1):
                    raise InputError(
                        f"These annotations have version {row['version']}, this version of climassay reads "
                        f"up to {VERSION}: "
                        "update it."
                    )
                settings = AnnotationSettings(**row["settings"])
            elif "label" in row:
                labels.append(record_from(ImportedLabel, row["label"]))
            elif "skip" in row:
                skips.append(record_from(ImportedSkip, row["skip"]))
            elif "comment" in row:
                comments.append(record_from(Comment, row["comment"]))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        said = first_problem(error)
        raise InputError(f"{path}, line {max(1, number)}: this is not a climassay annotation ({said}).") from None
    if settings is None:
        raise InputError(f"{path} is empty: there are no annotations in it.")
    return AnnotationFile(tuple(labels), tuple(skips), tuple(comments), settings)


def write_table(path: Path, items: Iterable[Item]) -> int:
    """Write current labels as comma-separated values, one a row, and items without labels with empty cells.

    A cell that a spreadsheet would take for a formula gets an apostrophe before it; reading takes it off again.
    A path that ends in ``.xlsx`` gets a workbook, which is not read back.

    Returns:
        How many labels were written.
    """
    rows: list[dict[str, object]] = []
    count = 0
    for item in items:
        draft = item.draft
        about: dict[str, object] = {"draft": draft.id, "kind": draft.kind, "question": draft.wording.question}
        rows += [about] if not item.labels else []
        for label in item.labels:
            parts = label_parts(draft, label)
            cells: dict[str, object] = {
                **about,
                **{name: texts[0] for name, texts in parts.items()},
                "annotator": label.annotator,
                "label": "valid" if label.accepted else "invalid",
                "reasons": "; ".join(label.reasons),
                "seconds": "" if label.seconds is None else label.seconds,
                "made_at": datetime.fromtimestamp(label.made_at, UTC).isoformat(),
                "adjudicates": "yes" if label.adjudicates else "",
                "key": label.key,
            }
            if "edited_options" in parts:
                cells["edited_options"] = json.dumps(parts["edited_options"], ensure_ascii=False)
            rows.append({name: cells.get(name, "") for name in COLUMNS})
            count += 1
    if path.suffix.lower() == ".xlsx":
        write_rows(path, rows)
        return count
    file = io.StringIO()
    writer = csv.DictWriter(file, COLUMNS)
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _safe(str(value)) for name, value in row.items()})
    write_file(path, file.getvalue().encode())
    return count


def _safe(text: str) -> str:
    """The text as no spreadsheet runs it; unlike ``safe_cell`` it can be taken back whole."""
    return "'" + text if text.startswith(_FORMULA) else text


def read_table(path: Path, drafts: Mapping[str, Draft]) -> AnnotationFile:
    """Read labels from a table: comma- or tab-separated values, JSON Lines or Parquet, with :data:`COLUMNS`.

    Args:
        path: The table.
        drafts: Drafts of the dataset by id.

    Raises:
        InputError: It cannot be read, or has not the columns ``draft``, ``annotator`` and ``label``. Rows that make no
            label are listed in the result; rows without label and annotator are passed over.
    """
    rows = list(parse_rows(path, read_bytes(path)))
    missing = [name for name in ("draft", "annotator", "label") if rows and name not in rows[0]]
    if missing or not rows:
        wanted = "draft, annotator and label"
        raise InputError(f"{path} is not a table of labels: it needs the columns {wanted}, and rows.")
    labels: list[ImportedLabel] = []
    unreadable: list[str] = []
    for number, row in enumerate(rows, start=1):
        cells = {name: "" if row.get(name) is None else str(row[name]) for name in COLUMNS}
        for name, text in cells.items():
            safe = text.startswith("'") and text[1:].startswith(_FORMULA)
            cells[name] = (text[1:] if safe else text).strip()
        if not cells["annotator"] and not cells["label"]:
            continue
        try:
            labels.append(_from_cells(cells, row, drafts))
        except (InputError, ValueError) as error:
            unreadable.append(f"{path.name}, row {number}: {error}")
    return AnnotationFile(tuple(labels), unreadable=tuple(unreadable))


def _from_cells(cells: Mapping[str, str], row: Row, drafts: Mapping[str, Draft]) -> ImportedLabel:
    given, written = row.get("edited_options"), cells["edited_options"]
    if isinstance(given, str) or not isinstance(given, Sequence):
        given = parse_json(written) if written.startswith("[") else filter(None, map(str.strip, written.splitlines()))
    parts = {name: [cells[name]] for name in ("remark", *EDITS)} | {"edited_options": [*map(str, given)]}
    label = replace(
        label_from_parts(drafts, cells["draft"], cells["label"], (), parts, cells["annotator"]),
        reasons=tuple(part.strip() for part in cells["reasons"].split(";") if part.strip()),
        seconds=float(cells["seconds"]) if cells["seconds"] else None,
        made_at=datetime.fromisoformat(cells["made_at"]).timestamp() if cells["made_at"] else None,
        adjudicates=bool(cells["adjudicates"]) and accepted_from(cells["adjudicates"]),
    )
    return replace(label, key=cells["key"] or content_key("table", label))
