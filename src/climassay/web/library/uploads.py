"""Documents that people send: named, checked, kept below the workspace, and added to a collection by a job.

An upload is a folder of its own, so that two of them never share a file, and it is there as a whole or not at all. It
stays until the job that reads it has ended. The job reads each file in a process of its own and adds it alone: what is
wrong with one does not stop the others. A job that was cut goes on with the first file whose end it has not reported;
within that file, the collection knows which of its passages are stored.
"""

import codecs
import hashlib
import re
import secrets
import shutil
import time
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Literal

from pydantic import TypeAdapter
from starlette.datastructures import UploadFile

from climassay.corpus.collection_storage import check_name
from climassay.corpus.documents import ReadOptions, Skipped, merge_left_out
from climassay.corpus.presentation import AddProgress
from climassay.corpus.readers.file_types import file_endings
from climassay.corpus.readers.sandboxed_reader import read_sandboxed
from climassay.corpus.readers.text import decode
from climassay.errors import DocumentError, InputError
from climassay.web.app_state import AppState
from climassay.web.failures import TooLarge
from climassay.web.jobs import Job, JobReport
from climassay.web.library.cache import library_of
from climassay.web.pages import is_web_address
from climassay.workspace import Workspace

LONGEST_NAME = 120
"""Characters of a file's name that are shown."""
LONGEST_TEXT = 300
"""Characters of a title, licence or address."""
RESERVED = frozenset({"search", "upload", "uploads"})
"""Addresses of the library that are not collections."""
ALLOWED_SUFFIXES = (".pdf", ".html", ".htm", ".md", ".txt", ".docx", ".epub", ".csv", ".jsonl")
_SPACES = re.compile(r"\s+")
_SEPARATORS = re.compile(r"[/\\]")
MOST_FILES = 50
"""Files of one upload."""
ABANDONED_SECONDS = 86_400.0
"""After so long a folder that no job names is left over from a kill between receiving and queueing."""
_STEP = 1 << 20
SAMPLE = 1 << 16
"""Bytes from the beginning of a file that are looked at."""
_PDF_WITHIN = 1024
_ZIP, _GZIP, _PDF = b"PK\x03\x04", b"\x1f\x8b", b"%PDF-"
_WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_PAGE_START = re.compile(
    r"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html)\b", re.IGNORECASE | re.DOTALL
)
_TAG = re.compile(r"<(?:html|head|body|title|meta|main|article|section|div|p|h[1-6]|ul|ol|table|span)\b", re.IGNORECASE)
_WORDS = {
    "pdf": "a PDF file",
    "epub": "an EPUB book",
    "docx": "a Word file",
    "html": "a web page",
    "jsonl": "a file of one JSON object a line",
}
KIND = "add-documents"
MOST_NOTES = 20
"""Things that a reader left out of a file which are listed one by one."""
_MAX_JOBS = 10_000

Outcome = Literal["added", "already there", "refused"]


def plain_text(text: str) -> str:
    """A text in one line without control and format characters, which can hide or turn around what follows them."""
    spaced = _SPACES.sub(" ", unicodedata.normalize("NFC", text))
    return "".join(char for char in spaced if unicodedata.category(char)[0] != "C").strip()


def shown_name(given: str) -> str:
    """The name of an uploaded file as people see it and documents cite it: its last part, cleaned, never a path."""
    last = _SEPARATORS.split(plain_text(given))[-1].strip(" .")
    suffix = PurePosixPath(last).suffix
    if len(last) > LONGEST_NAME:
        last = last[: LONGEST_NAME - len(suffix) - 1].rstrip() + "…" + suffix
    return last or "file"


def allowed_suffix(name: str) -> str:
    """The ending of a file's name, in lower case.

    Raises:
        InputError: It is none that is read here.
    """
    suffix = PurePosixPath(name).suffix.lower()
    if suffix not in ALLOWED_SUFFIXES:
        raise InputError(f"{name} is not a kind of file that can be added; these can: {', '.join(ALLOWED_SUFFIXES)}.")
    return suffix


def optional_text(given: str, what: str) -> str | None:
    """A title, licence or the like that somebody has typed, or None where the field was left empty.

    Raises:
        InputError: It is too long.
    """
    text = plain_text(given)
    if len(text) > LONGEST_TEXT:
        raise InputError(f"The {what} is longer than {LONGEST_TEXT} characters.")
    return text or None


def optional_address(given: str) -> str | None:
    """An address that somebody has typed, or None where the field was left empty.

    Raises:
        InputError: It is too long, or leads elsewhere than to the web.
    """
    text = optional_text(given, "address")
    if text is not None and not is_web_address(text):
        raise InputError("The address must begin with http:// or https://.")
    return text


def check_content(path: Path, kind: str, shown: str) -> None:
    """Look at the beginning of a file, whether it is of the kind that its name claims.

    Raises:
        DocumentError: It is empty, or something else.
    """
    with path.open("rb") as file:
        start = file.read(SAMPLE)
    if not start.strip():
        raise DocumentError(f"{shown} is empty.")
    if kind == "pdf":
        fits = _PDF in start[:_PDF_WITHIN]
    elif kind == "epub":
        fits = start.startswith(_ZIP) and (b"application/epub+zip" in start[:SAMPLE] or b"META-INF/" in start)
    elif kind == "docx":
        fits = start.startswith(_ZIP)  # its reader tells other zips apart
    else:
        fits = _is_text_of(kind, start, shown)
    if not fits:
        raise DocumentError(f"{shown} is not {_WORDS.get(kind, 'a text file')} by its content.")


def _is_text_of(kind: str, start: bytes, shown: str) -> bool:
    if start.startswith((_ZIP, _GZIP, _PDF)):
        return False
    # Characters of two or four bytes may be cut at the end of the sample, which says nothing about the file.
    text = "" if start.startswith(_WIDE_MARKS) else decode(start, shown)
    if not text:
        return True
    if kind == "html":
        return _TAG.search(text) is not None or _PAGE_START.match(text) is not None
    if kind == "jsonl":
        return text.lstrip().startswith("{")
    if _PAGE_START.match(text):
        raise DocumentError(f"{shown} is a web page by its content: give it a name that ends in .html.")
    return True


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


def receive(folder: Path, sent: Sequence[UploadFile], most_bytes: int) -> Upload:
    """Keep the files that are what they claim to be; the others are reported and do not stop them.

    Raises:
        InputError: No file, too many, or none that can be taken; nothing stays behind.
        TooLarge: A file has more than so many bytes; nothing stays behind.
    """
    if not sent:
        raise InputError("Choose at least one file.")
    if len(sent) > MOST_FILES:
        raise InputError(f"At most {MOST_FILES} files can be sent at once, but there are {len(sent)}.")
    upload = secrets.token_hex(8)
    here = folder / upload
    here.mkdir(parents=True)
    try:
        files: dict[str, KeptFile] = {}
        refused = []
        for one in sent:
            shown = shown_name(one.filename or "")
            try:
                kept = _keep(here, one.file, shown, most_bytes)
                if kept.stored in files:
                    raise InputError(f"{shown} is the same file as {files[kept.stored].shown}.")
                files[kept.stored] = kept
            except InputError as error:
                refused.append(RefusedFile(shown, str(error)))
        if not files:
            raise InputError(" ".join(item.reason for item in refused))
    except BaseException:
        shutil.rmtree(here, ignore_errors=True)
        raise
    return Upload(upload, tuple(files.values()), tuple(refused))


def _keep(folder: Path, content: BinaryIO, shown: str, most_bytes: int) -> KeptFile:
    suffix = allowed_suffix(shown)
    coming = folder / "coming"
    digest = hashlib.sha256()
    taken = 0
    with coming.open("wb") as file:
        while part := content.read(_STEP):
            taken += len(part)
            if taken > most_bytes:
                raise TooLarge(f"{shown} is larger than {most_bytes / 2**20:.3g} MB, the limit here.")
            digest.update(part)
            file.write(part)
    check_content(coming, file_endings()[suffix], shown)
    stored = digest.hexdigest()[:40] + suffix
    coming.replace(folder / stored)
    return KeptFile(stored, shown)


def sweep(folder: Path, ended: Collection[str], waiting: Collection[str], now: float | None = None) -> None:
    """Delete the uploads whose jobs have ended, and those that no job names any more after a day."""
    if not folder.is_dir():
        return
    moment = time.time() if now is None else now
    for one in folder.iterdir():
        if one.name in waiting or not one.is_dir():
            continue
        if one.name in ended or moment - one.stat().st_mtime > ABANDONED_SECONDS:
            shutil.rmtree(one, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Addition:
    """What somebody wants to have added."""

    collection: str
    upload: Upload
    title: str | None = None
    licence: str | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class FileOutcome:
    """What became of one file."""

    shown: str
    outcome: Outcome
    documents: tuple[tuple[str, str], ...] = ()
    """Id and title of each document in it."""
    passages: int = 0
    """That were embedded for it."""
    notes: tuple[str, ...] = ()
    """What was left out, or why all of it was, a sentence each."""


_ADDITION, _OUTCOME = TypeAdapter(Addition), TypeAdapter(FileOutcome)


def addition_of(job: Job) -> Addition:
    """What a job adds."""
    return _ADDITION.validate_python(job.payload)


def receive_addition(
    app: AppState, sent: Sequence[UploadFile], *, collection: str, title: str = "", licence: str = "", url: str = ""
) -> Addition:
    """Keep files that somebody sends, for a job to add to a collection, which need not be there yet.

    Files that cannot be taken do not stop the others. A title goes with a single file; what is left empty is taken from
    the files.

    Raises:
        InputError: Something makes no sense, or no file can be taken; nothing is kept then.
        TooLarge: A file is larger than the server takes; likewise.
    """
    check_name(collection)
    if collection.lower() in RESERVED and not library_of(app).has(collection):
        raise InputError(f"A collection cannot be called {collection}: choose another name.")
    told = optional_text(title, "title"), optional_text(licence, "licence"), optional_address(url)
    if told[0] is not None and len(sent) > 1:
        raise InputError("A title can be given to one file only: leave it empty, or send the files one by one.")
    return Addition(collection, receive(uploads_folder(app.workspace), sent, app.settings.upload_bytes), *told)


def submit(app: AppState, addition: Addition, by: str) -> str:
    """Queue the adding of an upload; gives the id of the job."""
    count = len(addition.upload.files)
    title = f"Add {count} file{'' if count == 1 else 's'} to {addition.collection}"
    job = app.jobs.submit(KIND, title, asdict(addition), by)
    tidy(app)
    return job


def tidy(app: AppState) -> None:
    """Delete the files of uploads whose jobs have ended."""
    ended: set[str] = set()
    waiting: set[str] = set()
    for job in app.jobs.list(KIND, limit=_MAX_JOBS):
        (ended if job.ended else waiting).add(job.payload["upload"]["id"])
    sweep(uploads_folder(app.workspace), ended, waiting)


def add_documents(app: AppState, payload: dict[str, Any], report: JobReport) -> dict[str, Any]:
    """Do the job; gives how many documents and passages came in, and how many files were refused."""
    addition = _ADDITION.validate_python(payload)
    told = len(_reported(app, report.job))
    for number, file in enumerate(addition.upload.files[told:], start=told + 1):
        where = f"of {file.shown}" + (f" (file {number} of {len(addition.upload.files)})" if number > 1 else "")
        outcome = _add_file(app, addition, file, where, report)
        report.event("file", asdict(outcome))
    outcomes = _reported(app, report.job)
    return {
        "page": f"/library/uploads/{report.job}",
        "collection": addition.collection,
        "documents": sum(len(one.documents) for one in outcomes if one.outcome == "added"),
        "passages": sum(one.passages for one in outcomes),
        "refused": len(addition.upload.refused) + sum(one.outcome == "refused" for one in outcomes),
    }


def outcomes_of(app: AppState, job: Job) -> tuple[FileOutcome, ...]:
    """What became of the files of a job so far, those that were refused at once first."""
    refused = addition_of(job).upload.refused
    return (*(FileOutcome(one.shown, "refused", notes=(one.reason,)) for one in refused), *_reported(app, job.id))


def _reported(app: AppState, job: str) -> tuple[FileOutcome, ...]:
    return tuple(_OUTCOME.validate_python(event.body) for event in app.jobs.events(job) if event.kind == "file")


def _add_file(app: AppState, addition: Addition, file: KeptFile, where: str, report: JobReport) -> FileOutcome:
    report.progress(0, 0, f"reading {where.removeprefix('of ')}")

    def on_page(page: int, of: int) -> None:
        report.progress(page, of, f"pages {where}")

    def on_progress(state: AddProgress) -> None:
        report.progress(state.passages_done, state.passages_known, f"passages {where}")

    path = uploads_folder(app.workspace) / addition.upload.id / file.stored
    options = ReadOptions(title=addition.title, licence=addition.licence, url=addition.url)
    read = read_sandboxed(path, options, source=file.shown, on_page=on_page)
    outcome: Outcome = "refused"
    documents: tuple[tuple[str, str], ...] = ()
    passages, skipped = 0, list(read.skipped)
    if read.documents:
        try:
            collection = library_of(app).search_or_make(addition.collection)
            added = collection.add(read.documents, keep_originals=app.settings.originals, on_progress=on_progress)
        except InputError as error:
            return FileOutcome(file.shown, "refused", notes=(str(error),))
        documents = tuple((stored.id, stored.title) for stored in (*added.added, *added.already_there))
        skipped += added.skipped
        skipped += [
            Skipped(one.source, f"The same file is already there as {one.document.source}.") for one in added.copies
        ]
        if documents:
            outcome, passages = "added" if added.added else "already there", added.passages
    left_out = merge_left_out(document.left_out for document in read.documents)
    notes = tuple(item.reason for item in skipped[:MOST_NOTES])
    notes = notes if len(skipped) <= MOST_NOTES else (*notes, f"And {len(skipped) - MOST_NOTES:,} more.")
    if left_out:
        notes = (*notes, f"Left out: {', '.join(map(str, left_out))}.")
    return FileOutcome(file.shown, outcome, documents, passages, notes)
