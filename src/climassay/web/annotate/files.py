"""Download and upload of labels, in the formats of ``climassay annotate export`` and ``climassay annotate import``."""

import io
import shutil
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, cast
from urllib.parse import quote

from fastapi import UploadFile
from starlette.responses import Response

from climassay.api import annotation
from climassay.api.annotation import ExportFormat, LabelFormat
from climassay.errors import InputError
from climassay.web.app_state import AppState

SUFFIXES = (".csv", ".tsv", ".json", ".jsonl", ".parquet", ".xlsx")
"""Allowed suffixes of uploaded files with labels or questions."""
_FILE_NAMES = {
    "jsonl": "labels.jsonl", "csv": "labels.csv", "rubrics": "rubrics.jsonl", "questions": "questions.jsonl",
}  # fmt: skip
_MEDIA_TYPES = {".csv": "text/csv; charset=utf-8", ".jsonl": "application/jsonl", ".json": "application/json"}


def export_labels(app: AppState, dataset: str, format: ExportFormat) -> Response:
    """Return all users' labels of a dataset as a download; if a format has several files, as a ZIP archive."""
    with TemporaryDirectory() as folder_name:
        folder = Path(folder_name)
        annotation.export_labels(dataset, folder / _FILE_NAMES.get(format, ""), cast(Any, format), workspace=app)
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        if len(files) == 1:
            content, suffix = files[0].read_bytes(), files[0].suffix
            name = f"{dataset}{'' if format in ('rubrics', 'questions') else '-labels'}{suffix}"
            media_type = _MEDIA_TYPES.get(suffix, "application/octet-stream")
        else:
            archive = io.BytesIO()
            with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zip_file:
                for path in files:
                    zip_file.write(path, path.relative_to(folder))
            content, name, media_type = archive.getvalue(), f"{dataset}-{format}.zip", "application/zip"
    # A dataset's name may hold any character, so the header needs its encoded form.
    disposition = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}"}
    return Response(content, media_type=media_type, headers=disposition)


def import_labels(app: AppState, dataset: str, file: UploadFile, format: LabelFormat) -> dict[str, Any]:
    """Store the labels, skips and comments from an uploaded file.

    Returns:
        Numbers of imported labels and comments, and reasons for refusals, as ``climassay annotate import --json``
        prints them.

    Raises:
        InputError: The suffix is not allowed, or the file cannot be read.
    """
    with _stored_file(file, "labels") as path:
        result = annotation.import_labels(dataset, path, cast(Any, format), workspace=app)
    counts: dict[str, Any] = result.to_dict()
    return counts


def open_queue(app: AppState, name: str, file: UploadFile, overlap: int, annotators: Sequence[str]) -> list[str]:
    """Create a dataset for annotation from an uploaded file of questions.

    Args:
        app: State of the server.
        name: Name of the new dataset.
        file: Uploaded file.
        overlap: Number of labels that each question needs.
        annotators: Users to whom the dataset is assigned; all if empty.

    Returns:
        Notes about questions that were left out.

    Raises:
        InputError: The suffix is not allowed, the file cannot be read, or a dataset with this name exists.
    """
    with _stored_file(file, "questions") as path:
        dataset_result = annotation.annotate_questions(
            path, name, overlap=overlap, annotators=annotators, workspace=app
        )
    return [str(note) for note in dataset_result.noted if "climassay serve" not in note]


@contextmanager
def _stored_file(file: UploadFile, content: str) -> Iterator[Path]:
    """Yield the path of a temporary copy of an uploaded file, and remove this path from error messages.

    ``content`` is a noun for the content of the file, for error messages.

    Raises:
        InputError: The suffix is not allowed, or the ``with`` block raised InputError.
    """
    suffix = PurePosixPath(file.filename or "").suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"The name of a file of {content} ends in {', '.join(SUFFIXES)}; this one does not.")
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{content}{suffix}"
        with path.open("wb") as copy:
            shutil.copyfileobj(file.file, copy)
        try:
            yield path
        except InputError as error:
            raise InputError(str(error).replace(str(path), "The file")) from None
