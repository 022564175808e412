"""The pages of annotation: of annotators, of adjudicators, of admins."""

from dataclasses import replace
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Form, Request, UploadFile
from pydantic import BaseModel
from starlette.responses import Response

from climassay.errors import InputError
from climassay.generation.annotation import ANNOTATION_REASONS, AnnotationSettings, AnnotationStore, Item
from climassay.generation.annotation.labels import Order
from climassay.generation.annotation.rating import rating_agreement
from climassay.settings import entries
from climassay.web.access import Adjudicator, Admin, Annotator
from climassay.web.accounts import User
from climassay.web.annotate.exchange import FORMATS, Imported, export_labels, import_labels
from climassay.web.annotate.queue import (
    agreement_of,
    item_of,
    own_item,
    own_label,
    queue_of,
    store_of,
    total_of,
    train,
    training_offered,
    trainings,
)
from climassay.web.annotate.views import LabelForm, LabelInput, address, item_view, label_view, new_key, read_form
from climassay.web.app_state import App, AppState
from climassay.web.failures import Missing, Refused
from climassay.web.pages import back_to, page

router = APIRouter(prefix="/annotate", include_in_schema=False)
MOST_HISTORY = 50
DONE = {
    "": "",
    "label": "Saved.",
    "skip": "Skipped.",
    "undo": "Taken back.",
    "nothing": "There was nothing to take back.",
    "decided": "Decided.",
    "settings": "Settings saved.",
    "skipped": "What you skipped is back in your queue.",
}
"""What a page says about what was done before it was shown, by the word in its address."""
ORDERS = {
    "margin": "what the validator is least sure of first",
    "paper": "as in the paper: what the validator is sure of mostly left for last",
    "random": "by chance",
}
"""The orders of a queue, in words."""


class SettingsForm(BaseModel):
    """How a dataset is annotated, as the form sends it."""

    overlap: int
    show_confidence: bool = False
    include_rejected: bool = False
    minutes: float
    retrain_every: int
    order: Order


def _page(request: Request, template: str, dataset: str, *, done: str = "", error: str = "", **values: Any) -> Response:
    """A page about a dataset; ``done`` is the word of what was done before, which says nothing if tampered with."""
    status = 400 if error else 200
    shown = {"dataset": dataset, "base": address(dataset), "done": DONE.get(done, ""), "error": error, **values}
    return page(request, f"annotate/{template}.html.j2", status=status, **shown)


def _standing(store: AnnotationStore, dataset: str, user: User, done: str) -> dict[str, Any]:
    """How far an annotator is, and the key of their newest label."""
    progress = store.progress(dataset, user.name)
    total = total_of(progress)
    last = store.history(dataset, user.name, most=1)
    said = " ".join(filter(None, (DONE.get(done, ""), f"{progress.mine} of {total}.")))
    return {"progress": progress, "total": total, "said": said, "last": last[0].key if last else ""}


def _item_page(
    request: Request,
    app: AppState,
    user: User,
    dataset: str,
    item: Item,
    *,
    done: str = "",
    form: LabelForm | None = None,
    error: str = "",
) -> Response:
    """The page on which an item is labelled; a form that could not be stored keeps its words."""
    store = store_of(app)
    own, confidence = own_label(item, user), not store.settings(dataset).hide_confidence
    return _page(
        request,
        "item",
        dataset,
        done=done,
        error=error,
        item=item_view(item, confidence=confidence, own=own, form=form),
        own=own,
        key=new_key(),
        action=address(dataset, item.draft.id),
        **_standing(store, dataset, user, done),
    )


@router.get("/{dataset}/settings")
def settings(request: Request, app: App, user: Admin, dataset: str, done: str = "") -> Response:
    """How a dataset is annotated."""
    return _settings_page(request, app, dataset, done=done)


@router.post("/{dataset}/settings")
def configure(request: Request, app: App, user: Admin, dataset: str, form: Annotated[SettingsForm, Form()]) -> Response:
    """Annotate a dataset in another way from now on."""
    store = queue_of(app, dataset)
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
        return _settings_page(request, app, dataset, error=str(error))
    return back_to(f"{address(dataset, 'settings')}?done=settings")


@router.post("/{dataset}/retrain")
def retrain(request: Request, app: App, user: Admin, dataset: str) -> Response:
    """Train a validator on the labels, in the background."""
    return back_to(f"/jobs/{train(app, dataset, user)}")


@router.post("/{dataset}/import")
def take_in(
    request: Request, app: App, user: Admin, dataset: str, file: UploadFile, format: Annotated[str, Form()] = "jsonl"
) -> Response:
    """Take labels from a file; sent twice it changes nothing."""
    store = queue_of(app, dataset)
    try:
        imported = import_labels(store, dataset, format, file.file, file.filename or "")
    except InputError as error:
        return _settings_page(request, app, dataset, error=str(error))
    return _settings_page(request, app, dataset, imported=imported)


def _settings_page(
    request: Request, app: AppState, dataset: str, *, done: str = "", error: str = "", imported: Imported | None = None
) -> Response:
    store = queue_of(app, dataset)
    return _page(
        request,
        "settings",
        dataset,
        done=done,
        error=error,
        settings=store.settings(dataset),
        limits={one.name: one for one in entries(AnnotationSettings)},
        orders=ORDERS,
        progress=store.progress(dataset),
        new_labels=store.new_labels(dataset),
        offered=training_offered(store, dataset),
        trainings=trainings(app, dataset),
        formats=FORMATS,
        imported=imported,
    )


class DecisionForm(LabelForm):
    """A decision: in one's own words, or like one of the labels."""

    like: str = ""
    """Key of the label that is right."""


@router.get("/{dataset}/conflicts")
def conflicts(request: Request, app: App, user: Adjudicator, dataset: str, done: str = "") -> Response:
    """Items whose labels do not agree."""
    items = queue_of(app, dataset).conflicts(dataset)
    return _page(
        request,
        "conflicts",
        dataset,
        items=[(item, address(dataset, "conflicts", item.draft.id)) for item in items],
        done=done,
    )


@router.get("/{dataset}/conflicts/{draft}")
def conflict(request: Request, app: App, user: Adjudicator, dataset: str, draft: str) -> Response:
    """One item with what everybody said about it."""
    return _conflict_page(request, app, dataset, item_of(queue_of(app, dataset), dataset, draft))


@router.post("/{dataset}/conflicts/{draft}")
def decide(
    request: Request, app: App, user: Adjudicator, dataset: str, draft: str, form: Annotated[DecisionForm, Form()]
) -> Response:
    """Store the outcome of an item, over its labels."""
    store = queue_of(app, dataset)
    item = item_of(store, dataset, draft)
    try:
        said = _like(form, item) if form.like else read_form(form, item.draft)
        told = said._asdict()
        del told["seconds"]  # The time that a decision takes is not kept.
        store.adjudicate(dataset, draft, user.name, **told)
    except InputError as error:
        return _conflict_page(request, app, dataset, item, form=form, error=str(error))
    return back_to(f"{address(dataset, 'conflicts')}?done=decided")


def _like(form: DecisionForm, item: Item) -> LabelInput:
    """What one of the labels says."""
    label = next((label for label in item.labels if label.key == form.like), None)
    if label is None:
        raise Missing("This label was withdrawn in the meantime.")
    return LabelInput(label.accepted, label.reasons, label.remark, label.wording, None, form.key)


def _conflict_page(
    request: Request, app: AppState, dataset: str, item: Item, *, form: LabelForm | None = None, error: str = ""
) -> Response:
    settings = queue_of(app, dataset).settings(dataset)
    return _page(
        request,
        "conflict",
        dataset,
        action=address(dataset, "conflicts", item.draft.id),
        item=item_view(item, confidence=not settings.hide_confidence, form=form),
        labels=[label_view(label, item) for label in item.labels],
        state=item.state,
        error=error,
        key=new_key(),
    )


@router.get("/{dataset}/agreement")
def agreement(request: Request, app: App, user: Adjudicator, dataset: str) -> Response:
    """How far annotators agree, and what each of them did."""
    store = queue_of(app, dataset)
    return _page(
        request,
        "agreement",
        dataset,
        agreement=agreement_of(app, dataset),
        ratings=app.computed.get(
            ("ratings", dataset, store.revision(dataset)), lambda: rating_agreement(store.items(dataset))
        ),
        annotators=app.computed.get(
            ("annotators", dataset, store.revision(dataset)), lambda: store.annotators(dataset)
        ),
        formats=FORMATS,
    )


@router.get("/{dataset}/export")
def export(app: App, user: Adjudicator, dataset: str, format: str = "jsonl") -> Response:
    """The labels of everybody, as a file."""
    found = export_labels(queue_of(app, dataset), dataset, format)
    # The name goes into a header: a dataset may be called anything.
    kept = f"attachment; filename*=UTF-8''{quote(found.name, safe='')}"
    return Response(found.content, media_type=found.media_type, headers={"Content-Disposition": kept})


@router.get("")
def queues(request: Request, app: App, user: Annotator) -> Response:
    """All datasets that can be annotated, with how far they and the reader are."""
    store = store_of(app)
    found = [
        {
            "queue": queue,
            "base": address(queue.dataset),
            "progress": (progress := store.progress(queue.dataset, user.name)),
            "total": total_of(progress),
            "training": user.may("admin") and training_offered(store, queue.dataset),
        }
        for queue in store.queues()
    ]
    return page(request, "annotate/queues.html.j2", queues=found)


@router.get("/{dataset}")
def next_item(request: Request, app: App, user: Annotator, dataset: str, done: str = "") -> Response:
    """The item that the reader should label now."""
    store = queue_of(app, dataset)
    item = store.next(dataset, user.name)
    if item is not None:
        return _item_page(request, app, user, dataset, item, done=done)
    return _page(request, "nothing", dataset, done=done, **_standing(store, dataset, user, done))


@router.get("/{dataset}/guidelines")
def guidelines(request: Request, app: App, user: Annotator, dataset: str) -> Response:
    """How to judge."""
    queue_of(app, dataset)
    return _page(request, "guidelines", dataset, reasons=ANNOTATION_REASONS)


@router.get("/{dataset}/history")
def history(request: Request, app: App, user: Annotator, dataset: str, annotator: str = "") -> Response:
    """What somebody said, the newest first: oneself, or for adjudicators anybody."""
    name = annotator or user.name
    if name != user.name and not user.may("adjudicator"):
        raise Refused("What others said is for adjudicators.")
    store = queue_of(app, dataset)
    labels = store.history(dataset, name, most=MOST_HISTORY)
    return _page(
        request,
        "history",
        dataset,
        annotator=name,
        own=name == user.name,
        labels=[
            (label_view(label, item_of(store, dataset, label.draft)), address(dataset, label.draft)) for label in labels
        ],
        progress=store.progress(dataset, name),
        most=MOST_HISTORY,
    )


@router.post("/{dataset}/undo")
def undo(app: App, user: Annotator, dataset: str, last: Annotated[str, Form()] = "") -> Response:
    """Take back what the reader did last, and show it again.

    ``last`` is the key of the newest label when the page was shown: a second click takes nothing more back.
    """
    store = queue_of(app, dataset)
    newest = store.history(dataset, user.name, most=1)
    taken = store.undo(dataset, user.name) if last == (newest[0].key if newest else "") else None
    if taken is None:
        return back_to(f"{address(dataset)}?done=nothing")
    try:
        own_item(store, dataset, taken, user)
    except Refused:
        # A skip that others took up in the meantime, or that lies before the reader beside another item.
        return back_to(f"{address(dataset)}?done=undo")
    return back_to(f"{address(dataset, taken)}?done=undo")


@router.post("/{dataset}/unskip")
def unskip(app: App, user: Annotator, dataset: str) -> Response:
    """Put what the reader skipped back into their queue."""
    queue_of(app, dataset).unskip(dataset, user.name)
    return back_to(f"{address(dataset)}?done=skipped")


@router.get("/{dataset}/{draft}")
def one_item(request: Request, app: App, user: Annotator, dataset: str, draft: str, done: str = "") -> Response:
    """One item, to label it or to change what one said."""
    item = own_item(store_of(app), dataset, draft, user)
    return _item_page(request, app, user, dataset, item, done=done)


@router.post("/{dataset}/{draft}")
def label(
    request: Request, app: App, user: Annotator, dataset: str, draft: str, form: Annotated[LabelForm, Form()]
) -> Response:
    """Store what the reader says, and go on to the next item."""
    store = store_of(app)
    item = item_of(store, dataset, draft)
    try:
        said = read_form(form, item.draft)
        store.label(dataset, draft, user.name, **said._asdict())
    except InputError as error:
        own_item(store, dataset, draft, user)
        return _item_page(request, app, user, dataset, item, form=form, error=str(error))
    return back_to(f"{address(dataset)}?done=label")


@router.post("/{dataset}/{draft}/skip")
def skip(app: App, user: Annotator, dataset: str, draft: str) -> Response:
    """Leave an item for later."""
    store = store_of(app)
    own_item(store, dataset, draft, user)
    store.skip(dataset, draft, user.name)
    return back_to(f"{address(dataset)}?done=skip")
