"""Files that people send: kept below the workspace under names of our own until they are in a collection.

An upload is a folder of its own, so that two of them never share a file, and it is there as a whole or not at all. It
stays until the job that reads it has ended: a server that is killed reads on from it.
"""

import hashlib
import secrets
import shutil
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from climassay.errors import InputError
from climassay.web.failures import TooLarge
from climassay.web.library.content import check_content
from climassay.web.library.names import allowed_suffix, kind_of_suffix, shown_name
from climassay.workspace import Workspace

MOST_FILES = 50
"""Files of one upload."""
ABANDONED_SECONDS = 86_400.0
"""After so long a folder that no job names is left over from a kill between receiving and queueing."""
_STEP = 1 << 20


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file on its way in."""

    name: str
    """As its sender calls it."""
    content: BinaryIO


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A file that was received."""

    stored: str
    """Name in the folder of the upload: a hash of the content, and the suffix."""
    shown: str
    """What its sender calls it, cleaned."""


@dataclass(frozen=True, slots=True)
class RefusedFile:
    """A file that was not taken, and why, in one sentence."""

    shown: str
    reason: str


@dataclass(frozen=True, slots=True)
class Upload:
    """Files that came together."""

    id: str
    files: tuple[KeptFile, ...]
    refused: tuple[RefusedFile, ...]


def uploads_folder(workspace: Workspace) -> Path:
    """Where uploads lie, a folder each."""
    return workspace.root / "uploads"


def receive(folder: Path, sent: Sequence[SentFile], most_bytes: int) -> Upload:
    """Keep the files that are what they claim to be; the others are told and do not stop them.

    Args:
        folder: Of all uploads.
        sent: At least one.
        most_bytes: Of one file.

    Raises:
        InputError: No file, too many, or none that can be taken; nothing stays behind.
        TooLarge: A file has more bytes; nothing stays behind.
    """
    if not sent:
        raise InputError("Choose at least one file.")
    if len(sent) > MOST_FILES:
        raise InputError(f"At most {MOST_FILES} files can be sent at once, these are {len(sent)}.")
    upload = secrets.token_hex(8)
    place = folder / upload
    place.mkdir(parents=True)
    try:
        files: dict[str, KeptFile] = {}
        refused = []
        for one in sent:
            shown = shown_name(one.name)
            try:
                kept = _keep(place, one.content, shown, most_bytes)
                if kept.stored in files:
                    raise InputError(f"{shown} is the same file as {files[kept.stored].shown}.")
                files[kept.stored] = kept
            except InputError as error:
                refused.append(RefusedFile(shown, str(error)))
        if not files:
            raise InputError(" ".join(item.reason for item in refused))
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    return Upload(upload, tuple(files.values()), tuple(refused))


def _keep(place: Path, content: BinaryIO, shown: str, most_bytes: int) -> KeptFile:
    suffix = allowed_suffix(shown)
    coming = place / "coming"
    digest = hashlib.sha256()
    taken = 0
    with coming.open("wb") as file:
        while part := content.read(_STEP):
            taken += len(part)
            if taken > most_bytes:
                raise TooLarge(f"{shown} is larger than the {most_bytes / 2**20:.3g} MB that are taken here.")
            digest.update(part)
            file.write(part)
    check_content(coming, kind_of_suffix(suffix), shown)
    stored = digest.hexdigest()[:40] + suffix
    coming.replace(place / stored)
    return KeptFile(stored, shown)


def sweep(folder: Path, ended: Collection[str], waiting: Collection[str], now: float | None = None) -> None:
    """Delete uploads that nobody will read any more.

    Args:
        folder: Of all uploads.
        ended: Ids of uploads whose jobs have ended.
        waiting: Ids of uploads whose jobs have not.
        now: Seconds since 1970, by default the clock's.
    """
    if not folder.is_dir():
        return
    moment = time.time() if now is None else now
    for place in folder.iterdir():
        if place.name in waiting or not place.is_dir():
            continue
        if place.name in ended or moment - place.stat().st_mtime > ABANDONED_SECONDS:
            shutil.rmtree(place, ignore_errors=True)
