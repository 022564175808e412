"""Uploaded documents: checked, stored below the workspace, and added to a collection by a job.

An upload is a folder, which is created atomically and deleted when its job has ended. The job reads each file in a
separate process and adds it separately, so that an unreadable file does not affect the others. An interrupted job
resumes with the first file whose outcome it has not reported; passages of that file that are already stored are
skipped.
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
"""Maximum length of a displayed file name in characters."""
MAX_TEXT_LENGTH = 300
"""Maximum length of a title, licence or address in characters."""
RESERVED_NAMES = frozenset({"search", "upload", "uploads"})
"""Paths below ``/library`` that cannot be used as names of collections."""
ALLOWED_SUFFIXES = (".pdf", ".html", ".htm", ".md", ".txt", ".docx", ".epub", ".csv", ".jsonl")
_SPACES = re.compile(r"\s+")
_SEPARATORS = re.compile(r"[/\\]")
MAX_FILES = 50
"""Maximum number of files in an upload."""
ABANDONED_SECONDS = 86_400.0
"""An upload without a job, left behind by a killed server, is deleted when it is older than this, in seconds."""
_CHUNK_BYTES = 1 << 20
SAMPLE_BYTES = 1 << 16
"""Number of bytes at the start of a file from which its type is checked."""
_PDF_MAGIC_RANGE = 1024
_ZIP, _GZIP, _PDF = b"PK\x03\x04", b"\x1f\x8b", b"%PDF-"
_WIDE_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
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
DETAIL_FIELDS = ("title", "author", "date", "licence", "url")
"""Metadata of documents that can be entered when they are uploaded."""
UPLOAD_KIND = "add-documents"
MAX_NOTES = 20
"""Maximum number of notes that are listed for a file."""
_MAX_JOBS = 10_000

Outcome = Literal["added", "already there", "refused"]


def single_line(text: str) -> str:
    """Return a text on one line, without control and format characters. These could hide or reverse other text."""
    visible_text = "".join(char for char in text if char.isspace() or unicodedata.category(char)[0] != "C")
    return _SPACES.sub(" ", unicodedata.normalize("NFC", visible_text)).strip()


def safe_file_name(submitted_name: str) -> str:
    """Return the last part of an uploaded file's path, cleaned and shortened for display."""
    file_name = _SEPARATORS.split(single_line(submitted_name))[-1].strip(" .")
    suffix = PurePosixPath(file_name).suffix
    if len(file_name) > MAX_NAME_LENGTH:
        file_name = file_name[: MAX_NAME_LENGTH - len(suffix) - 1].rstrip() + "…" + suffix
    return file_name or "file"


def require_allowed_suffix(name: str) -> str:
    """Return the suffix of a file name in lower case.

    Raises:
        InputError: The suffix is not one of :data:`ALLOWED_SUFFIXES`.
    """
    suffix = PurePosixPath(name).suffix.lower()
    if suffix not in ALLOWED_SUFFIXES:
        raise InputError(f"{name} is not a kind of file that can be added; these can: {', '.join(ALLOWED_SUFFIXES)}.")
    return suffix


def parse_optional_text(submitted_text: str, label: str) -> str | None:
    """Return a submitted text on one line, or None if it is empty; ``label`` names the field in the error message.

    Raises:
        InputError: The text is longer than :data:`MAX_TEXT_LENGTH`.
    """
    text = single_line(submitted_text)
    if len(text) > MAX_TEXT_LENGTH:
        raise InputError(f"The {label} is longer than {MAX_TEXT_LENGTH} characters.")
    return text or None


def parse_optional_address(submitted_address: str) -> str | None:
    """Return a submitted web address, or None if it is empty.

    Raises:
        InputError: The address is too long, or does not begin with http:// or https://.
    """
    text = parse_optional_text(submitted_address, "address")
    if text is not None and not is_web_address(text):
        raise InputError("The address must begin with http:// or https://.")
    return text


def check_content(path: Path, kind: str, name: str) -> None:
    """Check that the first bytes of a file match its type, such as ``pdf``; ``name`` is used in error messages.

    Raises:
        DocumentError: The file is empty or has another type.
    """
    with path.open("rb") as file:
        sample = file.read(SAMPLE_BYTES)
    if not sample.strip():
        raise DocumentError(f"{name} is empty.")
    if kind == "pdf":
        is_valid = _PDF in sample[:_PDF_MAGIC_RANGE]
    elif kind == "epub":
        is_valid = sample.startswith(_ZIP) and (
            b"application/epub+zip" in sample[:SAMPLE_BYTES] or b"META-INF/" in sample
        )
    elif kind == "docx":
        is_valid = sample.startswith(_ZIP)  # its reader tells other zips apart
    else:
        is_valid = _is_text_type(kind, sample, name)
    if not is_valid:
        raise DocumentError(f"{name} is not {_TYPE_NAMES.get(kind, 'a text file')} by its content.")


def _is_text_type(kind: str, sample: bytes, name: str) -> bool:
    if sample.startswith((_ZIP, _GZIP, _PDF)):
        return False
    # The sample may end within a character of two or four bytes, so such text is not decoded.
    text = "" if sample.startswith(_WIDE_BOMS) else decode(sample, name)
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
    """Stored file of an upload."""

    stored: str
    """Name of the file in the upload's folder: a hash of its content with the suffix."""
    name: str
    """Displayed name."""


@dataclass(frozen=True, slots=True)
class RefusedFile:
    """File of an upload that was refused, with the reason in one sentence."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Upload:
    """Files that were submitted together."""

    id: str
    files: tuple[ReceivedFile, ...]
    refused: tuple[RefusedFile, ...]


def uploads_folder(workspace: Workspace) -> Path:
    """Return the folder of a workspace in which uploads are stored."""
    return workspace.root / "uploads"


def store_upload(folder: Path, sent_files: Sequence[UploadFile], max_bytes: int) -> Upload:
    """Store submitted files. Files that cannot be added are reported as refused.

    A file can be added if its suffix is allowed, its content matches the suffix, and it is not a copy of another one.
    If an error is raised, nothing remains stored.

    Args:
        folder: Folder of all uploads.
        sent_files: Submitted files.
        max_bytes: Maximum size of a file in bytes.

    Raises:
        InputError: There are no files or too many, or none can be added.
        TooLarge: A file is larger than ``max_bytes``.
    """
    if not sent_files:
        raise InputError("Choose at least one file.")
    if len(sent_files) > MAX_FILES:
        raise InputError(f"At most {MAX_FILES} files can be sent at once, but there are {len(sent_files)}.")
    upload = secrets.token_hex(8)
    upload_folder = folder / upload
    upload_folder.mkdir(parents=True)
    try:
        files: dict[str, ReceivedFile] = {}
        refused_files = []
        for sent_file in sent_files:
            name = safe_file_name(sent_file.filename or "")
            try:
                file = _receive_file(upload_folder, sent_file.file, name, max_bytes)
                if file.stored in files:
                    raise InputError(f"{name} is the same file as {files[file.stored].name}.")
                files[file.stored] = file
            except InputError as error:
                refused_files.append(RefusedFile(name, str(error)))
        if not files:
            raise InputError(" ".join(refused_file.reason for refused_file in refused_files))
    except BaseException:
        shutil.rmtree(upload_folder, ignore_errors=True)
        raise
    return Upload(upload, tuple(files.values()), tuple(refused_files))


def _receive_file(folder: Path, content: BinaryIO, name: str, max_bytes: int) -> ReceivedFile:
    suffix = require_allowed_suffix(name)
    temporary_file = folder / "coming"
    digest = hashlib.sha256()
    n_bytes = 0
    with temporary_file.open("wb") as file:
        while chunk := content.read(_CHUNK_BYTES):
            n_bytes += len(chunk)
            if n_bytes > max_bytes:
                raise TooLarge(f"{name} is larger than {max_bytes / 2**20:.3g} MB, the limit here.")
            digest.update(chunk)
            file.write(chunk)
    check_content(temporary_file, list_file_endings()[suffix], name)
    file_name = digest.hexdigest()[:40] + suffix
    temporary_file.replace(folder / file_name)
    return ReceivedFile(file_name, name)


def delete_unused_uploads(
    folder: Path, ended_ids: Collection[str], waiting_ids: Collection[str], now: float | None = None
) -> None:
    """Delete the folders of uploads that are no longer needed.

    Args:
        folder: Folder of all uploads.
        ended_ids: Ids of uploads whose jobs have ended. They are deleted.
        waiting_ids: Ids of uploads whose jobs have not ended. They are not deleted.
        now: Current time in seconds since 1970. Other uploads older than :data:`ABANDONED_SECONDS` are deleted.
    """
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
    """Upload, the collection to which it is added, and the metadata that the user entered."""

    collection: str
    upload: Upload
    title: str | None = None
    licence: str | None = None
    url: str | None = None
    author: str | None = None
    date: str | None = None

    @property
    def details(self) -> dict[str, Any]:
        """Metadata that the user entered, by field; None for empty fields."""
        return {name: getattr(self, name) for name in DETAIL_FIELDS}


@dataclass(frozen=True, slots=True)
class FileOutcome:
    """Outcome of adding one file of an upload."""

    name: str
    outcome: Outcome
    documents: tuple[tuple[str, str], ...] = ()
    """Id and title of each document in the file."""
    passages: int = 0
    """Number of passages that were added to the collection."""
    notes: tuple[str, ...] = ()
    """Sentences that say what was left out of the file, or why it was refused."""


_ADDITION_ADAPTER, _OUTCOME_ADAPTER = TypeAdapter(Addition), TypeAdapter(FileOutcome)


def parse_addition(job: Job) -> Addition:
    """Validate the payload of an upload's job and return its addition."""
    return _ADDITION_ADAPTER.validate_python(job.payload)


def store_addition(
    app: AppState,
    sent_files: Sequence[UploadFile],
    *,
    collection: str,
    title: str = "",
    author: str = "",
    date: str = "",
    licence: str = "",
    url: str = "",
) -> Addition:
    """Store submitted files so that a job can add them to a collection. The collection need not exist yet.

    Files that cannot be added are reported as refused. Metadata that is left empty is read from the files. If an error
    is raised, nothing remains stored.

    Raises:
        InputError: The name or a field is invalid, a title is given for several files, or no file can be added.
        TooLarge: A file is too large.
    """
    check_name(collection)
    if collection.lower() in RESERVED_NAMES and not collection_cache(app).has(collection):
        raise InputError(f"A collection cannot be called {collection}: choose another name.")
    texts_by_name = {"title": title, "author": author, "date": date, "licence": licence}
    details = {name: parse_optional_text(text, name) for name, text in texts_by_name.items()}
    if details["date"] is not None:
        check_date(details["date"])
    address = parse_optional_address(url)
    if details["title"] is not None and len(sent_files) > 1:
        raise InputError("A title can be given to one file only: leave it empty, or send the files one by one.")
    return Addition(
        collection,
        store_upload(uploads_folder(app.workspace), sent_files, app.settings.upload_bytes),
        url=address,
        **details,
    )


def submit_addition(app: AppState, addition: Addition, by: str) -> str:
    """Queue the job that adds an upload to its collection, and return the job's id; ``by`` is the user's name."""
    count = len(addition.upload.files)
    title = f"Add {count} file{'' if count == 1 else 's'} to {addition.collection}"
    job = app.jobs.submit(UPLOAD_KIND, title, asdict(addition), by)
    delete_finished_uploads(app)
    return job


def delete_finished_uploads(app: AppState) -> None:
    """Delete the files of uploads whose jobs have ended, and of old uploads without a job."""
    ended_ids: set[str] = set()
    waiting_ids: set[str] = set()
    for job in app.jobs.list(UPLOAD_KIND, limit=_MAX_JOBS):
        (ended_ids if job.has_ended else waiting_ids).add(job.payload["upload"]["id"])
    delete_unused_uploads(uploads_folder(app.workspace), ended_ids, waiting_ids)


def add_documents(app: AppState, payload: dict[str, Any], report: JobReport) -> dict[str, Any]:
    """Run a job: add the files of an upload to its collection; after an interruption, continue with the next file.

    Args:
        app: State of the server.
        payload: Payload of the job, an :class:`Addition` as a dictionary.
        report: Report of the job's progress, which gets an event with the outcome of each file.

    Returns:
        Result of the job: path of its page, name of the collection, and numbers of added documents, added passages and
        refused files.
    """
    addition = _ADDITION_ADAPTER.validate_python(payload)
    n_reported = len(_load_outcomes(app, report.job))
    for number, file in enumerate(addition.upload.files[n_reported:], start=n_reported + 1):
        description = f"of {file.name}" + (f" (file {number} of {len(addition.upload.files)})" if number > 1 else "")
        outcome = _add_file(app, addition, file, description, report)
        report.event("file", asdict(outcome))
    outcomes = _load_outcomes(app, report.job)
    return {
        "page": f"/library/uploads/{report.job}",
        "collection": addition.collection,
        "documents": sum(len(outcome.documents) for outcome in outcomes if outcome.outcome == "added"),
        "passages": sum(outcome.passages for outcome in outcomes),
        "refused": len(addition.upload.refused) + sum(outcome.outcome == "refused" for outcome in outcomes),
    }


def list_outcomes(app: AppState, job: Job) -> tuple[FileOutcome, ...]:
    """Return the outcomes of an upload's files that are known so far; files refused on submission come first."""
    refused_files = parse_addition(job).upload.refused
    return (
        *(FileOutcome(refused_file.name, "refused", notes=(refused_file.reason,)) for refused_file in refused_files),
        *_load_outcomes(app, job.id),
    )


def _load_outcomes(app: AppState, job: str) -> tuple[FileOutcome, ...]:
    return tuple(_OUTCOME_ADAPTER.validate_python(event.body) for event in app.jobs.events(job) if event.kind == "file")


def _add_file(
    app: AppState, addition: Addition, file: ReceivedFile, description: str, report: JobReport
) -> FileOutcome:
    report.progress(0, 0, f"reading {description.removeprefix('of ')}")

    def on_page(page: int, n_pages: int) -> None:
        report.progress(page, n_pages, f"pages {description}")

    def on_progress(state: AddProgress) -> None:
        report.progress(state.passages_done, state.passages_known, f"passages {description}")

    path = uploads_folder(app.workspace) / addition.upload.id / file.stored
    options = ReadOptions(**addition.details)
    result = read_sandboxed(path, options, source=file.name, on_page=on_page, is_stopped=lambda: report.stopped)
    outcome: Outcome = "refused"
    documents: tuple[tuple[str, str], ...] = ()
    passages, skipped_parts = 0, list(result.skipped)
    if result.documents:
        try:
            collection = collection_cache(app).open_or_create(addition.collection)
            additions = collection.add(result.documents, keep_originals=app.settings.originals, on_progress=on_progress)
        except InputError as error:
            return FileOutcome(file.name, "refused", notes=(str(error),))
        documents = tuple((entry.id, entry.title) for entry in (*additions.added, *additions.already_there))
        skipped_parts += additions.skipped
        skipped_parts += [
            Skipped(copy.source, f"Already there as {copy.document.title} ({copy.document.source}).")
            for copy in additions.copies
        ]
        copied_ids = {copy.document.id for copy in additions.copies}
        for entry in additions.already_there:
            if entry.id not in copied_ids:
                skipped_parts.append(Skipped(file.name, f"Already there as {entry.title} ({entry.source})."))
            unused_details = [name for name, text in addition.details.items() if text and text != getattr(entry, name)]
            if unused_details:
                names = " and ".join(filter(None, (", ".join(unused_details[:-1]), unused_details[-1])))
                was, it = ("was", "it") if len(unused_details) == 1 else ("were", "them")
                unused_note = f"The {names} that you gave {was} not used: change {it} on the document's page."
                skipped_parts.append(Skipped(file.name, unused_note))
        if documents:
            outcome, passages = "added" if additions.added else "already there", additions.passages
    omitted_parts = merge_omitted_parts(document.omitted_parts for document in result.documents)
    notes = tuple(skipped_part.reason for skipped_part in skipped_parts[:MAX_NOTES])
    notes = notes if len(skipped_parts) <= MAX_NOTES else (*notes, f"And {len(skipped_parts) - MAX_NOTES:,} more.")
    if omitted_parts:
        notes = (*notes, f"Left out: {', '.join(map(str, omitted_parts))}.")
    return FileOutcome(file.name, outcome, documents, passages, notes)
