"""Taking labels out of a dataset and into it, in climassay's own format and in those of other tools."""

import io
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import BinaryIO

from climassay.errors import InputError
from climassay.generation import Draft
from climassay.generation.annotation import AnnotationFile, AnnotationStore, TakenIn

SUFFIXES = (".csv", ".tsv", ".json", ".jsonl", ".parquet")
"""Of files that are taken in; the table readers go by them."""
BLOCK = 2**20
"""Bytes of an upload that are held at once."""


@dataclass(frozen=True, slots=True)
class Format:
    """How labels are written down."""

    words: str
    write: Callable[[AnnotationStore, str, Path], None]
    """Writes the labels of a dataset into an empty folder."""
    read: Callable[[Path, Callable[[], Mapping[str, Draft]]], AnnotationFile]
    """Reads a file of labels; the second argument gives the dataset's drafts by id."""


@dataclass(frozen=True, slots=True)
class Download:
    """A file for a browser to keep."""

    name: str
    content: bytes
    media_type: str


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of a file of labels."""

    taken: TakenIn
    unreadable: tuple[str, ...]
    """One sentence for each row that makes no label."""


def format_of(name: str) -> Format:
    """A format by its name.

    Raises:
        InputError: There is none of that name.
    """
    if name not in FORMATS:
        raise InputError(f"There is no format {name!r}: there are {', '.join(FORMATS)}.")
    return FORMATS[name]


def export_labels(store: AnnotationStore, dataset: str, name: str) -> Download:
    """The labels of a dataset as one file: what the format writes, or an archive of it where that is several files.

    Args:
        store: The annotations.
        dataset: Its name.
        name: Of the format.

    Raises:
        InputError: There is no such format.
    """
    chosen = format_of(name)
    with TemporaryDirectory() as made:
        folder = Path(made)
        chosen.write(store, dataset, folder)
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

    Args:
        store: The annotations.
        dataset: Its name.
        name: Of the format.
        given: The file's content, read in blocks.
        file_name: As who sent it calls it; only its ending counts.

    Raises:
        InputError: There is no such format, or the file is not of it.
    """
    chosen = format_of(name)
    suffix = PurePosixPath(file_name).suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"A file of labels ends in {', '.join(SUFFIXES)}; this one does not.")
    with TemporaryDirectory() as made:
        path = Path(made) / f"labels{suffix}"
        with path.open("wb") as kept:
            while block := given.read(BLOCK):
                kept.write(block)
        try:
            found = chosen.read(path, lambda: {item.draft.id: item.draft for item in store.items(dataset)})
        except InputError as error:
            # Where the file lies here is nobody's business.
            raise InputError(str(error).replace(str(path), "The file")) from None
    return Imported(store.add_all(dataset, found.labels, found.skips), found.unreadable)


def _write_own(store: AnnotationStore, dataset: str, folder: Path) -> None:
    from climassay.generation.annotation import write_annotations

    labels = store.labels(dataset, current=False)
    write_annotations(folder / "labels.jsonl", dataset, store.settings(dataset), labels, store.skipped(dataset))


def _read_own(path: Path, _drafts: Callable[[], Mapping[str, Draft]]) -> AnnotationFile:
    from climassay.generation.annotation import read_annotations

    return read_annotations(path)


def _write_table(store: AnnotationStore, dataset: str, folder: Path) -> None:
    from climassay.generation.annotation import write_table

    write_table(folder / "labels.csv", store.items(dataset))


def _read_table(path: Path, drafts: Callable[[], Mapping[str, Draft]]) -> AnnotationFile:
    from climassay.generation.annotation import read_table

    return read_table(path, drafts())


def _write_label_studio(store: AnnotationStore, dataset: str, folder: Path) -> None:
    from climassay.integrations.label_studio import write_label_studio

    confidence = not store.settings(dataset).hide_confidence
    write_label_studio(folder, store.items(dataset), confidence=confidence)


def _read_label_studio(path: Path, drafts: Callable[[], Mapping[str, Draft]]) -> AnnotationFile:
    from climassay.integrations.label_studio import read_label_studio

    return read_label_studio(path, drafts())


def _write_argilla(store: AnnotationStore, dataset: str, folder: Path) -> None:
    from climassay.integrations.argilla import write_argilla

    # Whose user there is whose here is not known, so it gets the questions to be answered, and no answers.
    write_argilla(folder, dataset, store.items(dataset), overlap=store.settings(dataset).overlap)


def _read_argilla(path: Path, drafts: Callable[[], Mapping[str, Draft]]) -> AnnotationFile:
    from climassay.integrations.argilla import read_argilla

    return read_argilla(path, drafts())


FORMATS: Mapping[str, Format] = {
    "jsonl": Format("climassay, with everything", _write_own, _read_own),
    "csv": Format("CSV table", _write_table, _read_table),
    "label-studio": Format("Label Studio", _write_label_studio, _read_label_studio),
    "argilla": Format("Argilla, the questions", _write_argilla, _read_argilla),
}
