"""An annotator's pages: queues, the item to label, what was labelled, and how to label."""

from typing import Annotated

from fastapi import APIRouter, Form, Request
from starlette.responses import Response

from climassay.errors import InputError
from climassay.generation.annotation import ANNOTATION_REASONS
from climassay.web.access import Annotator
from climassay.web.annotate.forms import LabelForm, read_form
from climassay.web.annotate.queue import (
    done_words,
    item_of,
    item_page,
    own_item,
    progress_words,
    queue_of,
    store_of,
    total_of,
    training_offered,
)
from climassay.web.annotate.shown import address, shown_label
from climassay.web.failures import Refused
from climassay.web.pages import back_to, page
from climassay.web.place import PlaceHere

MOST_HISTORY = 50

router = APIRouter(prefix="/annotate")


@router.get("")
def queues(request: Request, place: PlaceHere, user: Annotator) -> Response:
    """All datasets that can be annotated, with how far they and the reader are."""
    store = store_of(place)
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
def next_item(request: Request, place: PlaceHere, user: Annotator, dataset: str, done: str = "") -> Response:
    """The item that the reader should label now."""
    store = queue_of(place, dataset)
    item = store.next(dataset, user.name)
    if item is not None:
        return item_page(request, place, user, dataset, item, done=done)
    progress = store.progress(dataset, user.name)
    last = store.history(dataset, user.name, most=1)
    return page(
        request,
        "annotate/nothing.html.j2",
        dataset=dataset,
        base=address(dataset),
        progress=progress,
        total=total_of(progress),
        said=" ".join(filter(None, (done_words(done), f"{progress_words(progress)}."))),
        done=done_words(done),
        last=last[0].key if last else "",
    )


@router.get("/{dataset}/guidelines")
def guidelines(request: Request, place: PlaceHere, user: Annotator, dataset: str) -> Response:
    """How to judge."""
    queue_of(place, dataset)
    return page(
        request, "annotate/guidelines.html.j2", dataset=dataset, base=address(dataset), reasons=ANNOTATION_REASONS
    )


@router.get("/{dataset}/history")
def history(request: Request, place: PlaceHere, user: Annotator, dataset: str, annotator: str = "") -> Response:
    """What somebody said, the newest first: oneself, or for adjudicators anybody."""
    name = annotator or user.name
    if name != user.name and not user.may("adjudicator"):
        raise Refused("What others said is for adjudicators.")
    store = queue_of(place, dataset)
    labels = store.history(dataset, name, most=MOST_HISTORY)
    return page(
        request,
        "annotate/history.html.j2",
        dataset=dataset,
        base=address(dataset),
        annotator=name,
        own=name == user.name,
        labels=[
            (shown_label(label, item_of(store, dataset, label.draft)), address(dataset, label.draft))
            for label in labels
        ],
        progress=store.progress(dataset, name),
        most=MOST_HISTORY,
    )


@router.post("/{dataset}/undo")
def undo(place: PlaceHere, user: Annotator, dataset: str, last: Annotated[str, Form()] = "") -> Response:
    """Take back what the reader did last, and show it again.

    ``last`` is the key of the newest label when the page was shown: a second click takes nothing more back.
    """
    store = queue_of(place, dataset)
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
def unskip(place: PlaceHere, user: Annotator, dataset: str) -> Response:
    """Put what the reader skipped back into their queue."""
    queue_of(place, dataset).unskip(dataset, user.name)
    return back_to(f"{address(dataset)}?done=skipped")


@router.get("/{dataset}/{draft}")
def one_item(request: Request, place: PlaceHere, user: Annotator, dataset: str, draft: str, done: str = "") -> Response:
    """One item, to label it or to change what one said."""
    item = own_item(store_of(place), dataset, draft, user)
    return item_page(request, place, user, dataset, item, done=done)


@router.post("/{dataset}/{draft}")
def label(
    request: Request,
    place: PlaceHere,
    user: Annotator,
    dataset: str,
    draft: str,
    form: Annotated[LabelForm, Form()],
) -> Response:
    """Store what the reader says, and go on to the next item."""
    store = store_of(place)
    item = item_of(store, dataset, draft)
    try:
        said = read_form(form, item.draft)
        store.label(
            dataset,
            draft,
            user.name,
            accepted=said.accepted,
            reasons=said.reasons,
            remark=said.remark,
            wording=said.wording,
            seconds=said.seconds,
            key=said.key,
        )
    except InputError as error:
        own_item(store, dataset, draft, user)
        return item_page(request, place, user, dataset, item, form=form, error=str(error))
    return back_to(f"{address(dataset)}?done=label")


@router.post("/{dataset}/{draft}/skip")
def skip(place: PlaceHere, user: Annotator, dataset: str, draft: str) -> Response:
    """Leave an item for later."""
    store = store_of(place)
    own_item(store, dataset, draft, user)
    store.skip(dataset, draft, user.name)
    return back_to(f"{address(dataset)}?done=skip")
