"""Labels of a dataset as files for a browser to keep, and files of labels that a browser sends.

What is written and read is what ``climassay annotate export`` and ``import`` do.
"""

import io
import zipfile
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, NamedTuple, cast

from climassay.api import annotation
from climassay.errors import InputError
from climassay.web.app_state import AppState

FORMATS = {
    "jsonl": (
        "climassay",
        "Everything: all labels, also those withdrawn, skips, comments and settings. Import it elsewhere.",
    ),
    "csv": ("CSV table", "The labels that count, one a row, for a spreadsheet; questions without any, too."),
    "label-studio": ("Label Studio", "The questions with their labels as tasks, and the labelling interface."),
    # Whose user there is whose here is not known, so it gets the questions to be answered, and no answers.
    "argilla": ("Argilla", "The questions, to be answered there; without the labels given here."),
}
"""Formats of labels: the title for people, and what an export has."""
RUBRICS = {"rubrics": ("Rubrics", "The questions whose rubric is decided, with it: climassay evaluate reads them.")}
"""The format of what people wrote in a dataset of rubrics; it is not imported."""
SUFFIXES = (".csv", ".tsv", ".json", ".jsonl", ".parquet")
"""Endings of files that are imported; the table readers go by them."""
BLOCK = 2**20
"""Bytes of an upload that are held at once."""
_FILES = {"jsonl": "labels.jsonl", "csv": "labels.csv", "rubrics": "rubrics.jsonl"}
_MEDIA_TYPES = {".csv": "text/csv; charset=utf-8", ".jsonl": "application/jsonl"}


class Download(NamedTuple):
    """A file for a browser to keep."""

    name: str
    content: bytes
    media_type: str


def export_labels(app: AppState, dataset: str, name: str) -> Download:
    """The labels of a dataset as one file: what the format writes, or an archive of it where that is several files.

    Raises:
        InputError: There is no such format, or nothing to write in it.
    """
    _check_format(name, FORMATS | RUBRICS)
    with TemporaryDirectory() as made:
        folder = Path(made)
        annotation.export_labels(dataset, folder / _FILES.get(name, ""), cast(Any, name), workspace=app)
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        if len(files) == 1:
            ending = "" if name in RUBRICS else "-labels"
            suffix = files[0].suffix
            media_type = _MEDIA_TYPES.get(suffix, "application/octet-stream")
            return Download(f"{dataset}{ending}{suffix}", files[0].read_bytes(), media_type)
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
            for path in files:
                packed.write(path, path.relative_to(folder))
        return Download(f"{dataset}-{name}.zip", archive.getvalue(), "application/zip")


def import_labels(app: AppState, dataset: str, name: str, given: BinaryIO, file_name: str) -> dict[str, Any]:
    """Import the labels of a file into a dataset; those that are there already stay as they are.

    Returns:
        Labels ``stored``, ``known`` and ``withdrawn``, ``comments``, and a sentence for each row that was ``refused``.

    Raises:
        InputError: There is no such format, or the file is not of it.
    """
    _check_format(name, FORMATS)
    suffix = PurePosixPath(file_name).suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"The name of a file of labels ends in {', '.join(SUFFIXES)}; this one does not.")
    with TemporaryDirectory() as made:
        path = Path(made) / f"labels{suffix}"
        with path.open("wb") as kept:
            while block := given.read(BLOCK):
                kept.write(block)
        try:
            found: dict[str, Any] = annotation.import_labels(dataset, path, cast(Any, name), workspace=app).to_dict()
        except InputError as error:
            # Where the file lies here is nobody's business.
            raise InputError(str(error).replace(str(path), "The file")) from None
    return found


def _check_format(name: str, known: dict[str, tuple[str, str]]) -> None:
    if name not in known:
        raise InputError(f"There is no format {name!r}: there are {', '.join(known)}.")
