"""Labels as files: the same that ``climassay annotate export`` writes and ``climassay annotate import`` reads."""

import io
import shutil
import zipfile
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, Literal, cast
from urllib.parse import quote

from fastapi import UploadFile
from starlette.responses import Response

from climassay.api import annotation
from climassay.errors import InputError
from climassay.web.app_state import AppState

LabelFormat = Literal["jsonl", "csv", "label-studio", "argilla"]
"""Formats of labels, for export and import."""
SUFFIXES = (".csv", ".tsv", ".json", ".jsonl", ".parquet")
"""Allowed suffixes of imported files."""
_FILE_NAMES = {"jsonl": "labels.jsonl", "csv": "labels.csv", "rubrics": "rubrics.jsonl"}
_MEDIA_TYPES = {".csv": "text/csv; charset=utf-8", ".jsonl": "application/jsonl", ".json": "application/json"}


def export_labels(app: AppState, dataset: str, format: LabelFormat | Literal["rubrics"]) -> Response:
    """Return everybody's labels as a download; several files are packed into a ZIP archive."""
    with TemporaryDirectory() as folder_name:
        folder = Path(folder_name)
        annotation.export_labels(dataset, folder / _FILE_NAMES.get(format, ""), cast(Any, format), workspace=app)
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        if len(files) == 1:
            content, suffix = files[0].read_bytes(), files[0].suffix
            name = f"{dataset}{'' if format == 'rubrics' else '-labels'}{suffix}"
            media_type = _MEDIA_TYPES.get(suffix, "application/octet-stream")
        else:
            archive = io.BytesIO()
            with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
                for path in files:
                    packed.write(path, path.relative_to(folder))
            content, name, media_type = archive.getvalue(), f"{dataset}-{format}.zip", "application/zip"
    # A dataset's name may hold any character, so the header needs its encoded form.
    disposition = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}"}
    return Response(content, media_type=media_type, headers=disposition)


def import_labels(app: AppState, dataset: str, file: UploadFile, format: LabelFormat) -> dict[str, Any]:
    """Store the labels, skips and comments of an uploaded file.

    Returns:
        Counts and refusals by name, as ``climassay annotate import --json`` writes them.

    Raises:
        InputError: The suffix is not allowed, or the file cannot be read.
    """
    suffix = PurePosixPath(file.filename or "").suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"The name of a file of labels ends in {', '.join(SUFFIXES)}; this one does not.")
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"labels{suffix}"
        with path.open("wb") as copy:
            shutil.copyfileobj(file.file, copy)
        try:
            result = annotation.import_labels(dataset, path, cast(Any, format), workspace=app)
        except InputError as error:
            # The path on the server is private.
            raise InputError(str(error).replace(str(path), "The file")) from None
    counts: dict[str, Any] = result.to_dict()
    return counts
