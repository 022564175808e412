"""The adjudicators' pages: conflicts, deciding one, and how far annotators agree."""

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Form, Request
from starlette.responses import Response

from climassay.errors import InputError
from climassay.generation.annotation import Item
from climassay.web.access import Adjudicator
from climassay.web.annotate.exchange import FORMATS, export_labels
from climassay.web.annotate.forms import LabelForm, Said, new_key, read_form
from climassay.web.annotate.queue import agreement_of, done_words, item_of, queue_of
from climassay.web.annotate.shown import address, shown_item, shown_label
from climassay.web.failures import Missing
from climassay.web.pages import back_to, page
from climassay.web.place import Place, PlaceHere

router = APIRouter(prefix="/annotate")


class DecisionForm(LabelForm):
    """A decision: in one's own words, or like one of the labels."""

    like: str = ""
    """Key of the label that is right."""


@router.get("/{dataset}/conflicts")
def conflicts(request: Request, place: PlaceHere, user: Adjudicator, dataset: str, done: str = "") -> Response:
    """Items whose labels do not agree."""
    items = queue_of(place, dataset).conflicts(dataset)
    return page(
        request,
        "annotate/conflicts.html.j2",
        dataset=dataset,
        base=address(dataset),
        items=[(item, address(dataset, "conflicts", item.draft.id)) for item in items],
        done=done_words(done),
    )


@router.get("/{dataset}/conflicts/{draft}")
def conflict(request: Request, place: PlaceHere, user: Adjudicator, dataset: str, draft: str) -> Response:
    """One item with what everybody said about it."""
    return _conflict_page(request, place, dataset, item_of(queue_of(place, dataset), dataset, draft))


@router.post("/{dataset}/conflicts/{draft}")
def decide(
    request: Request,
    place: PlaceHere,
    user: Adjudicator,
    dataset: str,
    draft: str,
    form: Annotated[DecisionForm, Form()],
) -> Response:
    """Store the outcome of an item, over its labels."""
    store = queue_of(place, dataset)
    item = item_of(store, dataset, draft)
    try:
        said = _like(form, item) if form.like else read_form(form, item.draft)
        store.adjudicate(
            dataset,
            draft,
            user.name,
            accepted=said.accepted,
            reasons=said.reasons,
            remark=said.remark,
            wording=said.wording,
            key=said.key,
        )
    except InputError as error:
        return _conflict_page(request, place, dataset, item, form=form, error=str(error))
    return back_to(f"{address(dataset, 'conflicts')}?done=decided")


def _like(form: DecisionForm, item: Item) -> Said:
    """What one of the labels says."""
    label = next((label for label in item.labels if label.key == form.like), None)
    if label is None:
        raise Missing("This label was withdrawn in the meantime.")
    return Said(label.accepted, label.reasons, label.remark, label.wording, None, form.key)


def _conflict_page(
    request: Request, place: Place, dataset: str, item: Item, *, form: LabelForm | None = None, error: str = ""
) -> Response:
    settings = queue_of(place, dataset).settings(dataset)
    return page(
        request,
        "annotate/conflict.html.j2",
        status=400 if error else 200,
        dataset=dataset,
        base=address(dataset),
        action=address(dataset, "conflicts", item.draft.id),
        item=shown_item(item, confidence=not settings.hide_confidence, form=form),
        labels=[shown_label(label, item) for label in item.labels],
        state=item.state,
        error=error,
        key=new_key(),
    )


@router.get("/{dataset}/agreement")
def agreement(request: Request, place: PlaceHere, user: Adjudicator, dataset: str) -> Response:
    """How far annotators agree, and what each of them did."""
    store = queue_of(place, dataset)
    return page(
        request,
        "annotate/agreement.html.j2",
        dataset=dataset,
        base=address(dataset),
        agreement=agreement_of(place, dataset),
        annotators=place.computed.get(
            ("annotators", dataset, store.revision(dataset)), lambda: store.annotators(dataset)
        ),
        formats={name: one.words for name, one in FORMATS.items()},
    )


@router.get("/{dataset}/export")
def export(place: PlaceHere, user: Adjudicator, dataset: str, format: str = "jsonl") -> Response:
    """The labels of everybody, as a file."""
    found = export_labels(queue_of(place, dataset), dataset, format)
    # The name goes into a header: a dataset may be called anything.
    kept = f"attachment; filename*=UTF-8''{quote(found.name, safe='')}"
    return Response(found.content, media_type=found.media_type, headers={"Content-Disposition": kept})
