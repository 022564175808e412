"""The job that reads uploaded files and adds them to a collection.

Each file is read in a process of its own and added alone: what is wrong with one does not stop the others. A job that
was cut goes on with the first file that it has not told the end of; within that file, the collection knows which of its
passages are stored.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from climassay.corpus.collection import AddProgress, AddReport
from climassay.corpus.collection_storage import check_name
from climassay.corpus.documents import ReadOptions, ReadResult, Skipped
from climassay.corpus.readers.sandboxed_reader import read_sandboxed
from climassay.errors import InputError
from climassay.web.jobs import Job, JobReport
from climassay.web.library.names import RESERVED, told_address, told_text
from climassay.web.library.shelf import shelf_of
from climassay.web.library.uploads import KeptFile, RefusedFile, SentFile, Upload, receive, sweep, uploads_folder
from climassay.web.place import Place

KIND = "add-documents"
MOST_NOTES = 20
"""Things that a reader left out of a file which are told one by one."""
_MOST_JOBS = 10_000

Outcome = Literal["added", "already there", "refused"]


@dataclass(frozen=True, slots=True)
class Addition:
    """What somebody wants to have added."""

    collection: str
    upload: Upload
    title: str | None = None
    licence: str | None = None
    url: str | None = None

    def payload(self) -> dict[str, Any]:
        """As the job keeps it."""
        return asdict(self)

    @classmethod
    def of(cls, payload: dict[str, Any]) -> "Addition":
        """From what the job keeps."""
        told = payload["upload"]
        files = tuple(KeptFile(**file) for file in told["files"])
        upload = Upload(told["id"], files, tuple(RefusedFile(**file) for file in told["refused"]))
        return cls(**payload | {"upload": upload})


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


def receive_addition(
    place: Place,
    sent: Sequence[SentFile],
    *,
    collection: str,
    title: str = "",
    licence: str = "",
    url: str = "",
) -> Addition:
    """Keep files that somebody sends, for a job to add.

    Args:
        place: Where.
        sent: At least one file; those that cannot be taken do not stop the others.
        collection: Name of one that is there or is to be made.
        title: Of a single file; empty takes what the file says of itself, as for all that follow.
        licence: Of all files.
        url: Their address.

    Raises:
        InputError: Something makes no sense, or no file can be taken; nothing is kept then.
        TooLarge: A file is larger than the server takes; likewise.
    """
    check_name(collection)
    if collection.lower() in RESERVED and not shelf_of(place).has(collection):
        raise InputError(f"A collection cannot be called {collection}: choose another name.")
    told = told_text(title, "title"), told_text(licence, "licence"), told_address(url)
    if told[0] is not None and len(sent) > 1:
        raise InputError("A title can be given to one file only: leave it empty, or send the files one by one.")
    return Addition(collection, receive(uploads_folder(place.workspace), sent, place.settings.upload_bytes), *told)


def submit(place: Place, addition: Addition, by: str) -> str:
    """Queue the adding of an upload.

    Returns:
        Id of the job.
    """
    count = len(addition.upload.files)
    title = f"Add {count} file{'' if count == 1 else 's'} to {addition.collection}"
    job = place.jobs.submit(KIND, title, addition.payload(), by)
    tidy(place)
    return job


def tidy(place: Place) -> None:
    """Delete the files of uploads whose jobs have ended."""
    ended: set[str] = set()
    waiting: set[str] = set()
    for job in place.jobs.list(KIND, most=_MOST_JOBS):
        (ended if job.ended else waiting).add(job.payload["upload"]["id"])
    sweep(uploads_folder(place.workspace), ended, waiting)


def add_documents(place: Place, payload: dict[str, Any], report: JobReport) -> dict[str, Any]:
    """Do the job.

    Returns:
        How many documents and passages came in, and how many files were refused.
    """
    addition = Addition.of(payload)
    told = len(_told(place, report.job))
    for number, file in enumerate(addition.upload.files[told:], start=told + 1):
        where = f"of {file.shown}" + (f" (file {number} of {len(addition.upload.files)})" if number > 1 else "")
        outcome = _add_file(place, addition, file, where, report)
        report.event("file", asdict(outcome))
    outcomes = _told(place, report.job)
    return {
        "page": f"/library/uploads/{report.job}",
        "collection": addition.collection,
        "documents": sum(len(one.documents) for one in outcomes if one.outcome == "added"),
        "passages": sum(one.passages for one in outcomes),
        "refused": len(addition.upload.refused) + sum(one.outcome == "refused" for one in outcomes),
    }


def outcomes_of(place: Place, job: Job) -> tuple[FileOutcome, ...]:
    """What became of the files of a job so far, those that were refused at once first."""
    refused = Addition.of(job.payload).upload.refused
    return (*(FileOutcome(one.shown, "refused", notes=(one.reason,)) for one in refused), *_told(place, job.id))


def _told(place: Place, job: str) -> tuple[FileOutcome, ...]:
    bodies = (event.body for event in place.jobs.events(job) if event.kind == "file")
    return tuple(
        FileOutcome(
            body["shown"],
            body["outcome"],
            tuple((document, title) for document, title in body["documents"]),
            body["passages"],
            tuple(body["notes"]),
        )
        for body in bodies
    )


def _add_file(place: Place, addition: Addition, file: KeptFile, where: str, report: JobReport) -> FileOutcome:
    path = uploads_folder(place.workspace) / addition.upload.id / file.stored
    read = _read(path, file, addition, where, report)
    if not read.documents:
        return FileOutcome(file.shown, "refused", notes=_notes(read.skipped))

    def on_progress(state: AddProgress) -> None:
        report.progress(state.passages_done, state.passages_known, f"passages {where}")

    try:
        collection = shelf_of(place).search_or_make(addition.collection)
        added = collection.add(read.documents, on_progress=on_progress)
    except InputError as error:
        return FileOutcome(file.shown, "refused", notes=(str(error),))
    return _outcome(file.shown, added, read.skipped)


def _read(path: Path, file: KeptFile, addition: Addition, where: str, report: JobReport) -> ReadResult:
    options = ReadOptions(title=addition.title, licence=addition.licence, url=addition.url)
    report.progress(0, 0, f"reading {where.removeprefix('of ')}")

    def on_page(page: int, of: int) -> None:
        report.progress(page, of, f"pages {where}")

    return read_sandboxed(path, options, source=file.shown, on_page=on_page)


def _outcome(shown: str, added: AddReport, skipped: Sequence[Skipped]) -> FileOutcome:
    documents = tuple((stored.id, stored.title) for stored in (*added.added, *added.already_there))
    notes = _notes([*skipped, *added.skipped])
    if not documents:
        return FileOutcome(shown, "refused", notes=notes)
    return FileOutcome(shown, "added" if added.added else "already there", documents, added.passages, notes)


def _notes(skipped: Sequence[Skipped]) -> tuple[str, ...]:
    listed = tuple(item.reason for item in skipped[:MOST_NOTES])
    return listed if len(skipped) <= MOST_NOTES else (*listed, f"And {len(skipped) - MOST_NOTES:,} more.")
