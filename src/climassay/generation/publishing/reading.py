"""Reading a published dataset back."""

import hashlib
from pathlib import Path
from typing import Any

from climassay.errors import InputError
from climassay.generation.draft import Draft
from climassay.generation.draft_files import read_drafts
from climassay.generation.publishing.dataset import DRAFTS, MANIFEST, read_manifest
from climassay.generation.publishing.splitting import SPLITS, Split
from climassay.io import MOST_BYTES, read_whole
from climassay.questions import QuestionSet, join_questions, read_questions


def read_dataset(folder: Path) -> list[Draft]:
    """The drafts of a published dataset, exactly as they were when it was written, the rejected ones included.

    Raises:
        InputError: The folder holds no dataset of drafts, or its drafts are not what was written.
    """
    manifest = _manifest(folder)
    digest = manifest["sha256"].get(DRAFTS)
    if digest is None:
        raise InputError(f"The dataset {folder} was published from questions and has no drafts: read its tables.")
    file = folder / DRAFTS
    try:
        found = hashlib.sha256(read_whole(file, MOST_BYTES)).hexdigest()
    except OSError as error:
        raise InputError(f"The drafts {file} cannot be read: {error.strerror}.") from None
    if found != digest:
        raise InputError(f"{file} is not what was published: it has changed since, or was cut off.")
    return list(read_drafts(file))


def read_dataset_questions(folder: Path, split: Split | None = None) -> QuestionSet:
    """The published questions of a dataset, those of one split where it is named.

    Raises:
        InputError: The folder holds no dataset, or it has no such question.
    """
    manifest = _manifest(folder)
    wanted = SPLITS if split is None else (split,)
    files = [
        folder / f"data/{kind}/{own}.parquet"
        for kind, counts in manifest["questions"].items()
        for own in counts
        if own in wanted
    ]
    if not files:
        raise InputError(f"The dataset {folder} has no question in the split {split}.")
    return join_questions(manifest["name"], [read_questions(file) for file in files])


def _manifest(folder: Path) -> dict[str, Any]:
    found = read_manifest(folder)
    if found is None:
        raise InputError(f"{folder} is no dataset that climassay published: it has no {MANIFEST}.")
    return found
