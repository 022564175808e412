"""Taking labels out of a dataset and into it, in climassay's own format and in those of other tools."""

import io
import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import BinaryIO

from climassay.errors import InputError
from climassay.generation import Draft
from climassay.generation.annotation import AnnotationFile, AnnotationStore, ImportReport
from climassay.generation.annotation.long_answers import finished_rubrics
from climassay.questions import question_row


@dataclass(frozen=True, slots=True)
class FormatWords:
    """A format of files of labels, for people."""

    title: str
    holds: str
    """What an export has."""


FORMATS = {
    "jsonl": FormatWords(
        "climassay", "Everything: all labels, also those withdrawn, skips, comments and settings. Import it elsewhere."
    ),
    "csv": FormatWords("CSV table", "The labels that count, one a row, for a spreadsheet; questions without any, too."),
    "label-studio": FormatWords(
        "Label Studio", "The questions with their labels as tasks, and the labelling interface."
    ),
    "argilla": FormatWords("Argilla", "The questions, to be answered there; without the labels given here."),
}
RUBRICS = "rubrics"
RUBRIC_WORDS = FormatWords("Rubrics", "The questions whose rubric is decided, with it: climassay evaluate reads them.")
"""The format of what people wrote in a dataset of rubrics; it is not taken in."""
SUFFIXES = (".csv", ".tsv", ".json", ".jsonl", ".parquet")
"""Endings of files that are taken in; the table readers go by them."""
BLOCK = 2**20
"""Bytes of an upload that are held at once."""


@dataclass(frozen=True, slots=True)
class Download:
    """A file for a browser to keep."""

    name: str
    content: bytes
    media_type: str


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of a file of labels."""

    taken: ImportReport
    unreadable: tuple[str, ...]
    """One sentence for each row that makes no label."""


def export_labels(store: AnnotationStore, dataset: str, name: str) -> Download:
    """The labels of a dataset as one file: what the format writes, or an archive of it where that is several files.

    Raises:
        InputError: There is no such format.
    """
    if name == RUBRICS:
        lines = (json.dumps(question_row(one), ensure_ascii=False) for one in finished_rubrics(store.items(dataset)))
        return Download(f"{dataset}.jsonl", "".join(f"{line}\n" for line in lines).encode(), "application/jsonl")
    _check_format(name)
    with TemporaryDirectory() as made:
        folder = Path(made)
        _write(name, store, dataset, folder)
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        if len(files) == 1:
            kind = {".csv": "text/csv; charset=utf-8", ".jsonl": "application/jsonl"}
            media_type = kind.get(files[0].suffix, "application/octet-stream")
            return Download(f"{dataset}-labels{files[0].suffix}", files[0].read_bytes(), media_type)
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
            for path in files:
                packed.write(path, path.relative_to(folder))
        return Download(f"{dataset}-{name}.zip", archive.getvalue(), "application/zip")


def import_labels(store: AnnotationStore, dataset: str, name: str, given: BinaryIO, file_name: str) -> Imported:
    """Take the labels of a file into a dataset; those that are there already stay as they are.

    Raises:
        InputError: There is no such format, or the file is not of it.
    """
    _check_format(name)
    suffix = PurePosixPath(file_name).suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"The name of a file of labels ends in {', '.join(SUFFIXES)}; this one does not.")
    with TemporaryDirectory() as made:
        path = Path(made) / f"labels{suffix}"
        with path.open("wb") as kept:
            while block := given.read(BLOCK):
                kept.write(block)
        try:
            found = _read(name, path, lambda: {item.draft.id: item.draft for item in store.items(dataset)})
        except InputError as error:
            # Where the file lies here is nobody's business.
            raise InputError(str(error).replace(str(path), "The file")) from None
    return Imported(store.import_labels(dataset, found.labels, found.skips, found.comments), found.unreadable)


def _check_format(name: str) -> None:
    if name not in FORMATS:
        raise InputError(f"There is no format {name!r}: there are {', '.join(FORMATS)}.")


def _write(name: str, store: AnnotationStore, dataset: str, folder: Path) -> None:
    from climassay.generation.annotation import write_annotations, write_table

    settings = store.settings(dataset)
    if name == "jsonl":
        labels = store.labels(dataset, current=False)
        write_annotations(
            folder / "labels.jsonl", dataset, settings, labels, store.skipped(dataset), store.comments(dataset)
        )
    elif name == "csv":
        write_table(folder / "labels.csv", store.items(dataset))
    elif name == "label-studio":
        from climassay.integrations.labelling_tools import write_label_studio

        write_label_studio(folder, store.items(dataset), confidence=not settings.hide_confidence)
    else:
        from climassay.integrations.labelling_tools import write_argilla

        # Whose user there is whose here is not known, so it gets the questions to be answered, and no answers.
        write_argilla(folder, dataset, store.items(dataset), overlap=settings.overlap)


def _read(name: str, path: Path, drafts: Callable[[], Mapping[str, Draft]]) -> AnnotationFile:
    from climassay.generation.annotation import read_annotations, read_table

    if name == "jsonl":
        return read_annotations(path)
    if name == "csv":
        return read_table(path, drafts())
    if name == "label-studio":
        from climassay.integrations.labelling_tools import read_label_studio

        return read_label_studio(path, drafts())
    from climassay.integrations.labelling_tools import read_argilla

    return read_argilla(path, drafts())
