"""The admins' pages: how a dataset is annotated, and training a validator on its labels."""

from dataclasses import replace
from typing import Annotated, Literal

from fastapi import APIRouter, Form, Request, UploadFile
from pydantic import BaseModel
from starlette.responses import Response

from climassay.errors import InputError
from climassay.web.access import Admin
from climassay.web.annotate.exchange import FORMATS, Imported, import_labels
from climassay.web.annotate.queue import done_words, queue_of, training_offered
from climassay.web.annotate.retraining import KIND, open_training, trainings
from climassay.web.annotate.shown import address
from climassay.web.pages import back_to, page
from climassay.web.place import Place, PlaceHere

router = APIRouter(prefix="/annotate")

ORDERS = {
    "margin": "what the validator is least sure of first",
    "paper": "as in the paper: what the validator is sure of mostly left for last",
    "random": "by chance",
}
"""The orders of a queue, in words."""


class SettingsForm(BaseModel):
    """How a dataset is annotated, as the form sends it."""

    overlap: int = 1
    show_confidence: bool = False
    include_rejected: bool = False
    minutes: float = 30
    retrain_every: int = 50
    order: Literal["margin", "paper", "random"] = "margin"


@router.get("/{dataset}/settings")
def settings(request: Request, place: PlaceHere, user: Admin, dataset: str, done: str = "") -> Response:
    """How a dataset is annotated."""
    return settings_page(request, place, dataset, done=done)


@router.post("/{dataset}/settings")
def configure(
    request: Request, place: PlaceHere, user: Admin, dataset: str, form: Annotated[SettingsForm, Form()]
) -> Response:
    """Annotate a dataset in another way from now on."""
    store = queue_of(place, dataset)
    try:
        changed = replace(
            store.settings(dataset),
            overlap=form.overlap,
            hide_confidence=not form.show_confidence,
            include_rejected=form.include_rejected,
            lease_seconds=form.minutes * 60,
            retrain_every=form.retrain_every,
            order=form.order,
        )
        store.configure(dataset, changed)
    except InputError as error:
        return settings_page(request, place, dataset, error=str(error))
    return back_to(f"{address(dataset, 'settings')}?done=settings")


@router.post("/{dataset}/retrain")
def retrain(request: Request, place: PlaceHere, user: Admin, dataset: str) -> Response:
    """Train a validator on the labels, in the background."""
    queue_of(place, dataset)
    job = open_training(place, dataset)
    if job is None:
        job = place.jobs.submit(KIND, f"Train the validator of {dataset}", {"dataset": dataset}, by=user.name)
    return back_to(f"/jobs/{job}")


@router.post("/{dataset}/import")
def take_in(
    request: Request,
    place: PlaceHere,
    user: Admin,
    dataset: str,
    file: UploadFile,
    format: Annotated[str, Form()] = "jsonl",
) -> Response:
    """Take labels from a file; sent twice it changes nothing."""
    store = queue_of(place, dataset)
    try:
        imported = import_labels(store, dataset, format, file.file, file.filename or "")
    except InputError as error:
        return settings_page(request, place, dataset, error=str(error))
    return settings_page(request, place, dataset, imported=imported)


def settings_page(
    request: Request,
    place: Place,
    dataset: str,
    *,
    done: str = "",
    error: str = "",
    imported: Imported | None = None,
) -> Response:
    """The page of a dataset's settings, with what an admin can do about it.

    Args:
        request: What is answered.
        place: The server's.
        dataset: Its name.
        done: Word of what was done just before.
        error: Why something could not be done.
        imported: What became of a file that was just taken in.
    """
    store = queue_of(place, dataset)
    return page(
        request,
        "annotate/settings.html.j2",
        status=400 if error else 200,
        dataset=dataset,
        base=address(dataset),
        settings=store.settings(dataset),
        orders=ORDERS,
        progress=store.progress(dataset),
        new_labels=store.new_labels(dataset),
        offered=training_offered(store, dataset),
        trainings=trainings(place, dataset),
        formats={name: one.words for name, one in FORMATS.items()},
        imported=imported,
        done=done_words(done),
        error=error,
    )
