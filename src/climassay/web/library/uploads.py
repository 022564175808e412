"""Uploaded documents: checked, stored below the workspace, and added to a collection by a job.

An upload is a folder of its own, which exists completely or not at all and is deleted once its job has ended. The job
reads each file in a process of its own and adds it separately, so that a bad file does not stop the others. A job that
was interrupted resumes with the first file that it has not reported; within that file, the collection knows which
passages are stored.
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
from climassay.corpus.documents import ReadOptions, Skipped, check_date, merge_omitted_parts
from climassay.corpus.presentation import AddProgress
from climassay.corpus.readers.file_types import list_file_endings
from climassay.corpus.readers.sandboxed_reader import read_sandboxed
from climassay.corpus.readers.text import decode
from climassay.errors import DocumentError, InputError
from climassay.web.app_state import AppState
from climassay.web.failures import TooLarge
from climassay.web.jobs import Job, JobReport
from climassay.web.library.cache import collection_cache
from climassay.web.pages import is_web_address
from climassay.workspace import Workspace

MAX_NAME_LENGTH = 120
"""Maximum number of characters of a displayed file name."""
MAX_TEXT_LENGTH = 300
"""Maximum number of characters of a title, licence or address."""
RESERVED = frozenset({"search", "upload", "uploads"})
"""Paths of the library that cannot be names of collections."""
ALLOWED_SUFFIXES = (".pdf", ".html", ".htm", ".md", ".txt", ".docx", ".epub", ".csv", ".jsonl")
_SPACES = re.compile(r"\s+")
_SEPARATORS = re.compile(r"[/\\]")
MAX_FILES = 50
"""Maximum number of files of an upload."""
ABANDONED_SECONDS = 86_400.0
"""Age after which an upload without a job is deleted; a kill between storing and queueing leaves one."""
_CHUNK_BYTES = 1 << 20
SAMPLE_BYTES = 1 << 16
"""Number of bytes at the start of a file that its type is checked by."""
_PDF_MAGIC_RANGE = 1024
_ZIP, _GZIP, _PDF = b"PK\x03\x04", b"\x1f\x8b", b"%PDF-"
_WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_PAGE_START = re.compile(
    r"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html)\b", re.IGNORECASE | re.DOTALL
)
_TAG = re.compile(r"<(?:html|head|body|title|meta|main|article|section|div|p|h[1-6]|ul|ol|table|span)\b", re.IGNORECASE)
_TYPE_NAMES = {
    "pdf": "a PDF file",
    "epub": "an EPUB book",
    "docx": "a Word file",
    "html": "a web page",
    "jsonl": "a file of one JSON object a line",
}
DETAILS = ("title", "author", "date", "licence", "url")
"""Fields about documents that can be filled in when they are uploaded."""
KIND = "add-documents"
MAX_NOTES = 20
"""Maximum number of notes on a file that are listed."""
_MAX_JOBS = 10_000

Outcome = Literal["added", "already there", "refused"]


def single_line(text: str) -> str:
    """Return a text in one line, without control and format characters, which can hide or reverse other text."""
    visible = "".join(char for char in text if char.isspace() or unicodedata.category(char)[0] != "C")
    return _SPACES.sub(" ", unicodedata.normalize("NFC", visible)).strip()


def safe_file_name(sent_name: str) -> str:
    """Return the last part of an uploaded file name, cleaned and shortened for display."""
    file_name = _SEPARATORS.split(single_line(sent_name))[-1].strip(" .")
    suffix = PurePosixPath(file_name).suffix
    if len(file_name) > MAX_NAME_LENGTH:
        file_name = file_name[: MAX_NAME_LENGTH - len(suffix) - 1].rstrip() + "…" + suffix
    return file_name or "file"


def allowed_suffix(name: str) -> str:
    """Return the suffix of a file name in lower case.

    Raises:
        InputError: Files with this suffix cannot be added.
    """
    suffix = PurePosixPath(name).suffix.lower()
    if suffix not in ALLOWED_SUFFIXES:
        raise InputError(f"{name} is not a kind of file that can be added; these can: {', '.join(ALLOWED_SUFFIXES)}.")
    return suffix


def optional_text(text_sent: str, label: str) -> str | None:
    """Return a submitted title or licence, or None if it is empty.

    Raises:
        InputError: It is too long.
    """
    text = single_line(text_sent)
    if len(text) > MAX_TEXT_LENGTH:
        raise InputError(f"The {label} is longer than {MAX_TEXT_LENGTH} characters.")
    return text or None


def optional_address(address_sent: str) -> str | None:
    """Return a submitted address, or None if it is empty.

    Raises:
        InputError: It is too long, or not an HTTP address.
    """
    text = optional_text(address_sent, "address")
    if text is not None and not is_web_address(text):
        raise InputError("The address must begin with http:// or https://.")
    return text


def check_content(path: Path, kind: str, name: str) -> None:
    """Check by its first bytes that a file is of a type.

    Raises:
        DocumentError: The file is empty or of another type.
    """
    with path.open("rb") as file:
        start = file.read(SAMPLE_BYTES)
    if not start.strip():
        raise DocumentError(f"{name} is empty.")
    if kind == "pdf":
        fits = _PDF in start[:_PDF_MAGIC_RANGE]
    elif kind == "epub":
        fits = start.startswith(_ZIP) and (b"application/epub+zip" in start[:SAMPLE_BYTES] or b"META-INF/" in start)
    elif kind == "docx":
        fits = start.startswith(_ZIP)  # its reader tells other zips apart
    else:
        fits = _is_text_of(kind, start, name)
    if not fits:
        raise DocumentError(f"{name} is not {_TYPE_NAMES.get(kind, 'a text file')} by its content.")


def _is_text_of(kind: str, start: bytes, name: str) -> bool:
    if start.startswith((_ZIP, _GZIP, _PDF)):
        return False
    # Characters of two or four bytes may be cut at the end of the sample, which says nothing about the file.
    text = "" if start.startswith(_WIDE_MARKS) else decode(start, name)
    if not text:
        return True
    if kind == "html":
        return _TAG.search(text) is not None or _PAGE_START.match(text) is not None
    if kind == "jsonl":
        return text.lstrip().startswith("{")
    if _PAGE_START.match(text):
        raise DocumentError(f"{name} is a web page by its content: give it a name that ends in .html.")
    return True


@dataclass(frozen=True, slots=True)
class ReceivedFile:
    """A stored file of an upload."""

    stored: str
    """Name in the folder of the upload: hash of the content, and suffix."""
    name: str
    """Name for display."""


@dataclass(frozen=True, slots=True)
class RefusedFile:
    """A refused file, with the reason in one sentence."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Upload:
    """Files that were sent together."""

    id: str
    files: tuple[ReceivedFile, ...]
    refused: tuple[RefusedFile, ...]


def uploads_folder(workspace: Workspace) -> Path:
    """Return the folder of all uploads."""
    return workspace.root / "uploads"


def receive(folder: Path, sent: Sequence[UploadFile], max_bytes: int) -> Upload:
    """Store the files that are of the type of their suffix; others are reported as refused.

    Args:
        folder: Folder of all uploads.
        sent: Submitted files.
        max_bytes: Maximum size of a file.

    Raises:
        InputError: There is no file, too many, or none that can be added; nothing remains stored.
        TooLarge: A file is too large; nothing remains stored.
    """
    if not sent:
        raise InputError("Choose at least one file.")
    if len(sent) > MAX_FILES:
        raise InputError(f"At most {MAX_FILES} files can be sent at once, but there are {len(sent)}.")
    upload = secrets.token_hex(8)
    upload_folder = folder / upload
    upload_folder.mkdir(parents=True)
    try:
        files: dict[str, ReceivedFile] = {}
        refused = []
        for sent_file in sent:
            name = safe_file_name(sent_file.filename or "")
            try:
                file = _receive_file(upload_folder, sent_file.file, name, max_bytes)
                if file.stored in files:
                    raise InputError(f"{name} is the same file as {files[file.stored].name}.")
                files[file.stored] = file
            except InputError as error:
                refused.append(RefusedFile(name, str(error)))
        if not files:
            raise InputError(" ".join(item.reason for item in refused))
    except BaseException:
        shutil.rmtree(upload_folder, ignore_errors=True)
        raise
    return Upload(upload, tuple(files.values()), tuple(refused))


def _receive_file(folder: Path, content: BinaryIO, name: str, max_bytes: int) -> ReceivedFile:
    suffix = allowed_suffix(name)
    temporary = folder / "coming"
    digest = hashlib.sha256()
    n_bytes = 0
    with temporary.open("wb") as file:
        while chunk := content.read(_CHUNK_BYTES):
            n_bytes += len(chunk)
            if n_bytes > max_bytes:
                raise TooLarge(f"{name} is larger than {max_bytes / 2**20:.3g} MB, the limit here.")
            digest.update(chunk)
            file.write(chunk)
    check_content(temporary, list_file_endings()[suffix], name)
    stored = digest.hexdigest()[:40] + suffix
    temporary.replace(folder / stored)
    return ReceivedFile(stored, name)


def sweep(folder: Path, ended_ids: Collection[str], waiting_ids: Collection[str], now: float | None = None) -> None:
    """Delete uploads whose jobs have ended, and those older than a day that no job names."""
    if not folder.is_dir():
        return
    current_time = time.time() if now is None else now
    for upload in folder.iterdir():
        if upload.name in waiting_ids or not upload.is_dir():
            continue
        if upload.name in ended_ids or current_time - upload.stat().st_mtime > ABANDONED_SECONDS:
            shutil.rmtree(upload, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Addition:
    """An upload and where to add it."""

    collection: str
    upload: Upload
    title: str | None = None
    licence: str | None = None
    url: str | None = None
    author: str | None = None
    date: str | None = None

    @property
    def details(self) -> dict[str, Any]:
        """Fields that the sender filled in about the documents, by name."""
        return {name: getattr(self, name) for name in DETAILS}


@dataclass(frozen=True, slots=True)
class FileOutcome:
    """Outcome of one file."""

    name: str
    outcome: Outcome
    documents: tuple[tuple[str, str], ...] = ()
    """Id and title of each document in the file."""
    passages: int = 0
    """Number of passages that were embedded."""
    notes: tuple[str, ...] = ()
    """Sentences on what was left out of the file, or why it was refused."""


_ADDITION, _OUTCOME = TypeAdapter(Addition), TypeAdapter(FileOutcome)


def parse_addition(job: Job) -> Addition:
    """Return the addition in the payload of a job."""
    return _ADDITION.validate_python(job.payload)


def receive_addition(
    app: AppState,
    sent: Sequence[UploadFile],
    *,
    collection: str,
    title: str = "",
    author: str = "",
    date: str = "",
    licence: str = "",
    url: str = "",
) -> Addition:
    """Store uploaded files that a job will add to a collection, which may be new.

    Files that cannot be added are reported and do not stop the others. A title is allowed for a single file only; empty
    details are taken from the files.

    Raises:
        InputError: A detail is invalid, or no file can be added; nothing remains stored.
        TooLarge: A file is too large; nothing remains stored.
    """
    check_name(collection)
    if collection.lower() in RESERVED and not collection_cache(app).has(collection):
        raise InputError(f"A collection cannot be called {collection}: choose another name.")
    named = {"title": title, "author": author, "date": date, "licence": licence}
    details = {name: optional_text(text, name) for name, text in named.items()}
    if details["date"] is not None:
        check_date(details["date"])
    address = optional_address(url)
    if details["title"] is not None and len(sent) > 1:
        raise InputError("A title can be given to one file only: leave it empty, or send the files one by one.")
    return Addition(
        collection, receive(uploads_folder(app.workspace), sent, app.settings.upload_bytes), url=address, **details
    )


def submit(app: AppState, addition: Addition, by: str) -> str:
    """Queue the job that adds an upload, and return its id."""
    count = len(addition.upload.files)
    title = f"Add {count} file{'' if count == 1 else 's'} to {addition.collection}"
    job = app.jobs.submit(KIND, title, asdict(addition), by)
    tidy(app)
    return job


def tidy(app: AppState) -> None:
    """Delete the files of uploads whose jobs have ended."""
    ended_ids: set[str] = set()
    waiting_ids: set[str] = set()
    for job in app.jobs.list(KIND, limit=_MAX_JOBS):
        (ended_ids if job.ended else waiting_ids).add(job.payload["upload"]["id"])
    sweep(uploads_folder(app.workspace), ended_ids, waiting_ids)


def add_documents(app: AppState, payload: dict[str, Any], report: JobReport) -> dict[str, Any]:
    """Add the files of an upload; return the number of documents, passages and refused files."""
    addition = _ADDITION.validate_python(payload)
    n_reported = len(_reported(app, report.job))
    for number, file in enumerate(addition.upload.files[n_reported:], start=n_reported + 1):
        description = f"of {file.name}" + (f" (file {number} of {len(addition.upload.files)})" if number > 1 else "")
        outcome = _add_file(app, addition, file, description, report)
        report.event("file", asdict(outcome))
    outcomes = _reported(app, report.job)
    return {
        "page": f"/library/uploads/{report.job}",
        "collection": addition.collection,
        "documents": sum(len(outcome.documents) for outcome in outcomes if outcome.outcome == "added"),
        "passages": sum(outcome.passages for outcome in outcomes),
        "refused": len(addition.upload.refused) + sum(outcome.outcome == "refused" for outcome in outcomes),
    }


def outcomes_of(app: AppState, job: Job) -> tuple[FileOutcome, ...]:
    """Return the outcomes of the files of a job so far, refused ones first."""
    refused = parse_addition(job).upload.refused
    return (
        *(FileOutcome(refused_file.name, "refused", notes=(refused_file.reason,)) for refused_file in refused),
        *_reported(app, job.id),
    )


def _reported(app: AppState, job: str) -> tuple[FileOutcome, ...]:
    return tuple(_OUTCOME.validate_python(event.body) for event in app.jobs.events(job) if event.kind == "file")


def _add_file(
    app: AppState, addition: Addition, file: ReceivedFile, description: str, report: JobReport
) -> FileOutcome:
    report.progress(0, 0, f"reading {description.removeprefix('of ')}")

    def on_page(page: int, of: int) -> None:
        report.progress(page, of, f"pages {description}")

    def on_progress(state: AddProgress) -> None:
        report.progress(state.passages_done, state.passages_known, f"passages {description}")

    path = uploads_folder(app.workspace) / addition.upload.id / file.stored
    options = ReadOptions(**addition.details)
    read = read_sandboxed(path, options, source=file.name, on_page=on_page)
    outcome: Outcome = "refused"
    documents: tuple[tuple[str, str], ...] = ()
    passages, skipped = 0, list(read.skipped)
    if read.documents:
        try:
            collection = collection_cache(app).search_or_make(addition.collection)
            added = collection.add(read.documents, keep_originals=app.settings.originals, on_progress=on_progress)
        except InputError as error:
            return FileOutcome(file.name, "refused", notes=(str(error),))
        documents = tuple((stored.id, stored.title) for stored in (*added.added, *added.already_there))
        skipped += added.skipped
        skipped += [
            Skipped(copy.source, f"Already there as {copy.document.title} ({copy.document.source}).")
            for copy in added.copies
        ]
        copied = {copy.document.id for copy in added.copies}
        for stored in added.already_there:
            if stored.id not in copied:
                skipped.append(Skipped(file.name, f"Already there as {stored.title} ({stored.source})."))
            # What was said of it is not lost in silence.
            differing = [name for name, text in addition.details.items() if text and text != getattr(stored, name)]
            if differing:
                names = " and ".join(filter(None, (", ".join(differing[:-1]), differing[-1])))
                was, it = ("was", "it") if len(differing) == 1 else ("were", "them")
                unused = f"The {names} that you gave {was} not used: change {it} on the document's page."
                skipped.append(Skipped(file.name, unused))
        if documents:
            outcome, passages = "added" if added.added else "already there", added.passages
    omitted_parts = merge_omitted_parts(document.omitted_parts for document in read.documents)
    notes = tuple(item.reason for item in skipped[:MAX_NOTES])
    notes = notes if len(skipped) <= MAX_NOTES else (*notes, f"And {len(skipped) - MAX_NOTES:,} more.")
    if omitted_parts:
        notes = (*notes, f"Left out: {', '.join(map(str, omitted_parts))}.")
    return FileOutcome(file.name, outcome, documents, passages, notes)
