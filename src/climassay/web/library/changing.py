"""Adding documents, watching how far that is, and taking documents and collections away."""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Form, Query, Request
from starlette.datastructures import FormData, UploadFile
from starlette.responses import JSONResponse, Response

from climassay.corpus.collection import remove_collection
from climassay.errors import InputError
from climassay.web.access import Adjudicator, Admin
from climassay.web.failures import Missing
from climassay.web.jobs import Job
from climassay.web.library.adding import KIND, Addition, outcomes_of, receive_addition, submit
from climassay.web.library.names import ALLOWED_SUFFIXES
from climassay.web.library.shelf import shelf_of
from climassay.web.library.uploads import MOST_FILES, SentFile
from climassay.web.pages import back_to, page
from climassay.web.place import Place, PlaceHere

router = APIRouter(prefix="/library", include_in_schema=False)


async def sent_form(request: Request) -> AsyncIterator[FormData]:
    """The form of a request; its files lie in nameless temporary files, which vanish with whoever holds them."""
    form = await request.form()
    try:
        yield form
    finally:
        await form.close()


@router.get("/upload")
def show_form(
    request: Request, place: PlaceHere, user: Adjudicator, collection: Annotated[str, Query()] = ""
) -> Response:
    """The form to add documents with."""
    return _form(request, place, {"collection": collection})


@router.post("/upload")
def upload(
    request: Request, place: PlaceHere, user: Adjudicator, form: Annotated[FormData, Depends(sent_form)]
) -> Response:
    """Keep the files that were sent, and queue the work of adding them."""
    given = {name: _text(form, name) for name in ("collection", "new_collection", "title", "licence", "url")}
    from_script = request.headers.get("accept", "").startswith("application/json")
    try:
        job = submit(place, _addition(place, form, given), user.name)
    except InputError as error:
        if from_script:
            return JSONResponse({"error": str(error)}, 400)
        return _form(request, place, given, error=str(error), status=400)
    address = f"/library/uploads/{job}"
    return JSONResponse({"page": address}) if from_script else back_to(address)


@router.get("/uploads/{job_id}")
def show_upload(request: Request, place: PlaceHere, user: Adjudicator, job_id: str) -> Response:
    """How far an upload is, and what became of each file."""
    job = _job(place, job_id)
    addition = Addition.of(job.payload)
    return page(
        request,
        "library/upload_job.html.j2",
        job=job,
        collection=addition.collection,
        files=len(addition.upload.files) + len(addition.upload.refused),
        outcomes=outcomes_of(place, job),
        there=shelf_of(place).has(addition.collection),
        may_stop=not job.ended and (job.by == user.name or user.may("admin")),
    )


@router.post("/{collection}/documents/{document_id}/remove")
def remove_document(place: PlaceHere, user: Admin, collection: str, document_id: str) -> Response:
    """Take a document out of a collection."""
    shelf = shelf_of(place)
    shelf.contents(collection).document(document_id)
    shelf.browse(collection).remove(document_id)
    return back_to(f"/library/{collection}")


@router.post("/{collection}/remove")
def remove(
    request: Request, place: PlaceHere, user: Admin, collection: str, confirmed: Annotated[str, Form()] = ""
) -> Response:
    """Delete a collection, if its name was typed to confirm that."""
    shelf_of(place).browse(collection)
    if confirmed.strip() != collection:
        raise InputError(f"The collection {collection} was not removed: type its name to confirm.")
    remove_collection(place.workspace, collection)
    return back_to("/library")


def _addition(place: Place, form: FormData, given: dict[str, str]) -> Addition:
    """What the form asks for, its files received.

    Raises:
        InputError: Something in it makes no sense, or no file can be taken.
        Missing: The chosen collection is not there any more.
    """
    collection = given["new_collection"].strip()
    if not collection:
        collection = given["collection"]
        if not collection:
            raise InputError("Choose a collection, or name a new one.")
        shelf_of(place).browse(collection)
    files = [part for part in form.getlist("files") if isinstance(part, UploadFile) and part.filename]
    sent = [SentFile(file.filename or "", file.file) for file in files]
    told = {name: given[name] for name in ("title", "licence", "url")}
    return receive_addition(place, sent, collection=collection, **told)


def _form(request: Request, place: Place, given: dict[str, str], *, error: str = "", status: int = 200) -> Response:
    return page(
        request,
        "library/upload.html.j2",
        status=status,
        given={"new_collection": "", "title": "", "licence": "", "url": "", **given},
        error=error,
        collections=[contents.name for contents in shelf_of(place).all_contents()],
        suffixes=ALLOWED_SUFFIXES,
        most_files=MOST_FILES,
        most_bytes=place.settings.upload_bytes,
    )


def _job(place: Place, job_id: str) -> Job:
    try:
        job = place.jobs.get(job_id)
    except InputError as error:
        raise Missing(str(error)) from None
    if job.kind != KIND:
        raise Missing(f"The job {job_id!r} is no upload.")
    return job


def _text(form: FormData, name: str) -> str:
    value = form.get(name, "")
    return value if isinstance(value, str) else ""
