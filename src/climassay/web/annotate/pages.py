"""The pages of annotation: of annotators, of adjudicators, of admins."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Form, Request, UploadFile
from pydantic import BaseModel
from starlette.responses import Response

from climassay.errors import InputError
from climassay.generation.annotation import (
    ANNOTATION_REASONS,
    AnnotationSettings,
    AnnotationStore,
    Comment,
    FoundItem,
    Item,
    ItemFilter,
    Label,
)
from climassay.generation.annotation.labels import ItemFilterState, Order, is_rubric
from climassay.generation.annotation.long_answers import rating_agreement, rubric_agreement
from climassay.questions import TYPES
from climassay.settings import entries
from climassay.web.access import Adjudicator, Admin, Annotator
from climassay.web.accounts import User
from climassay.web.annotate.exchange import (
    FORMATS,
    RUBRIC_WORDS,
    RUBRICS,
    Imported,
    export_labels,
    import_labels,
)
from climassay.web.annotate.queue import (
    KIND,
    agreement_of,
    holds_rubrics,
    item_of,
    own_item,
    own_label,
    queue_of,
    retrain_work,
    store_of,
    total_of,
    train,
    training_offered,
    trainings,
    visible_comments,
)
from climassay.web.annotate.views import (
    LabelForm,
    LabelInput,
    Participant,
    address,
    item_view,
    label_view,
    new_key,
    read_form,
    shown_names,
)
from climassay.web.app_state import App, AppState
from climassay.web.failures import Missing, Refused
from climassay.web.pages import back_to, page
from climassay.web.results.blocks import PageNumber, Search, part_of, within

router = APIRouter(prefix="/annotate", include_in_schema=False)
MOST_HISTORY = 50
MOST_FOUND = 25
DONE = {
    "": "",
    "label": "Saved.",
    "skip": "Skipped.",
    "undo": "Taken back.",
    "nothing": "There was nothing to take back.",
    "decided": "Decided.",
    "comment": "Comment added.",
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
STATES: dict[ItemFilterState, str] = {
    "todo": "for me to label",
    "done": "labelled by me",
    "skipped": "skipped by me",
    "conflict": "in conflict",
    "decided": "decided",
}
"""The states that a list of questions can be filtered by, in words."""


class SettingsForm(BaseModel):
    """How a dataset is annotated, as the form sends it."""

    overlap: int
    show_confidence: bool = False
    include_rejected: bool = False
    minutes: float
    retrain_every: int
    order: Order


def register(app: AppState) -> None:
    """Say how a validator is trained in the background."""
    app.jobs.register(KIND, retrain_work, "models")


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
    comments = visible_comments(store, dataset, item, user)
    return _page(
        request,
        "item",
        dataset,
        done=done,
        error=error,
        item=item_view(item, confidence=confidence, own=own, form=form),
        own=None if own is None else label_view(own, item),
        state=item.state,
        comments=_comment_views(comments, shown_names(item, comments, user)),
        key=new_key(),
        action=address(dataset, item.draft.id),
        **_standing(store, dataset, user, done),
    )


def _comment_views(comments: Sequence[Comment], names: dict[Participant, str]) -> list[tuple[str, Comment]]:
    """Comments, each with what its author is called."""
    return [(names[one.author, one.adjudicates], one) for one in comments]


class CommentForm(BaseModel):
    """A contribution to the discussion of an item."""

    key: str = ""
    comment: str = ""


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
def conflicts(
    request: Request, app: App, user: Adjudicator, dataset: str, done: str = "", number: PageNumber = 1
) -> Response:
    """Items whose labels do not agree, a part of them on each page; who gave them is said once they are decided."""
    store = queue_of(app, dataset)
    total, path = store.progress(dataset).conflicts, address(dataset, "conflicts")
    number = within(number, total, MOST_FOUND)
    items = store.conflicts(dataset, MOST_FOUND, start=(number - 1) * MOST_FOUND)
    found = [(item, address(dataset, "conflicts", item.draft.id), _votes(item, (), user)) for item in items]
    return _page(
        request,
        "conflicts",
        dataset,
        part=part_of(found, number, total, MOST_FOUND, path, {}),
        done=done,
    )


def _votes(item: Item, comments: Sequence[Comment], user: User) -> list[dict[str, Any]]:
    """What everybody said about an item, in the order of what they are called; what decided it comes last."""
    names = shown_names(item, comments, user)
    views = [label_view(label, item, names[label.annotator, label.adjudicates]) for label in item.labels]
    return sorted(views, key=lambda view: (view["label"].adjudicates, view["by"]))


@router.get("/{dataset}/conflicts/{draft}")
def conflict(request: Request, app: App, user: Adjudicator, dataset: str, draft: str, done: str = "") -> Response:
    """One item with what everybody said about it."""
    return _conflict_page(request, app, user, dataset, item_of(queue_of(app, dataset), dataset, draft), done=done)


@router.post("/{dataset}/conflicts/{draft}")
def decide(
    request: Request, app: App, user: Adjudicator, dataset: str, draft: str, form: Annotated[DecisionForm, Form()]
) -> Response:
    """Store the outcome of an item, over its labels, and go on to the next conflict."""
    store = queue_of(app, dataset)
    item = item_of(store, dataset, draft)
    if is_rubric(item.draft.wording):
        form = form.with_taken(item)
        if form.act:
            return _conflict_page(request, app, user, dataset, item, form=form)
    try:
        said = _like(form, item) if form.like else read_form(form, item.draft)
        told = said._asdict()
        del told["seconds"]  # The time that a decision takes is not kept.
        store.adjudicate(dataset, draft, user.name, **told)
    except InputError as error:
        return _conflict_page(request, app, user, dataset, item, form=form, error=str(error))
    following = store.next_conflict(dataset, draft)
    return back_to(f"{address(dataset, 'conflicts', *filter(None, [following]))}?done=decided")


@router.post("/{dataset}/conflicts/{draft}/comment")
def comment_on_conflict(
    request: Request, app: App, user: Adjudicator, dataset: str, draft: str, form: Annotated[CommentForm, Form()]
) -> Response:
    """Add to the discussion of an item as an adjudicator."""
    store = queue_of(app, dataset)
    item = item_of(store, dataset, draft)
    try:
        store.comment(dataset, draft, user.name, form.comment, key=form.key, adjudicates=True)
    except InputError as error:
        return _conflict_page(request, app, user, dataset, item, error=str(error))
    return back_to(f"{address(dataset, 'conflicts', draft)}?done=comment#discussion")


def _like(form: DecisionForm, item: Item) -> LabelInput:
    """What one of the labels says."""
    label = next((label for label in item.labels if label.key == form.like), None)
    if label is None:
        raise Missing("This label was withdrawn in the meantime.")
    return LabelInput(label.accepted, label.reasons, label.remark, label.wording, None, form.key)


def _conflict_page(
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
    store = queue_of(app, dataset)
    settings, comments = store.settings(dataset), store.comments(dataset, item.draft.id)
    following = store.next_conflict(dataset, item.draft.id)
    decided = next((label for label in reversed(item.labels) if label.adjudicates), None)
    if form is None and decided is None and is_rubric(item.draft.wording):
        form = LabelForm()  # A decision begins with what is taken from the labels.
    return _page(
        request,
        "conflict",
        dataset,
        done=done,
        action=address(dataset, "conflicts", item.draft.id),
        item=item_view(item, confidence=not settings.hide_confidence, own=decided, form=form),
        labels=_votes(item, comments, user),
        comments=_comment_views(comments, shown_names(item, comments, user)),
        state=item.state,
        following=following and address(dataset, "conflicts", following),
        conflicts=store.progress(dataset).conflicts,
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
        rubrics=app.computed.get(
            ("rubrics", dataset, store.revision(dataset)), lambda: rubric_agreement(store.items(dataset), app.encoder())
        )
        if holds_rubrics(store, dataset)
        else None,
        written=holds_rubrics(store, dataset),
        annotators=app.computed.get(
            ("annotators", dataset, store.revision(dataset)), lambda: store.annotators(dataset)
        ),
    )


@router.get("/{dataset}/export")
def export(request: Request, app: App, user: Adjudicator, dataset: str, format: str = "") -> Response:
    """What can be exported; with a format, the labels of everybody as a file."""
    if not format:
        store = queue_of(app, dataset)
        said, progress = store.labels(dataset), store.progress(dataset)
        decisions = sum(label.adjudicates for label in said)
        counts = {"label": len(said) - decisions, "decision": decisions, "comment": len(store.comments(dataset))}
        formats = {RUBRICS: RUBRIC_WORDS} | FORMATS if holds_rubrics(store, dataset) else FORMATS
        return _page(request, "export", dataset, formats=formats, progress=progress, counts=counts)
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


@router.get("/{dataset}/questions")
def questions(
    request: Request,
    app: App,
    user: Annotator,
    dataset: str,
    q: Search = "",
    kind: Search = "",
    state: ItemFilterState = "",
    number: PageNumber = 1,
) -> Response:
    """The questions of a dataset that fit, a part of them on each page."""
    store = queue_of(app, dataset)
    found, total = store.find(
        dataset, user.name, ItemFilter(q, kind, state), MOST_FOUND, start=(number - 1) * MOST_FOUND
    )
    given = {"q": q, "kind": kind, "state": state}
    path = address(dataset, "questions")
    return _page(
        request,
        "questions",
        dataset,
        part=part_of([(one, _place(one, dataset, user)) for one in found], number, total, MOST_FOUND, path, given),
        given=given,
        kinds={kind: TYPES[kind].title for kind in store.kinds(dataset)},
        states=STATES,
    )


def _place(found: FoundItem, dataset: str, user: User) -> str:
    """Address of the page on which the reader may do something about an item; empty where there is none."""
    draft = found.draft.id
    if user.may("adjudicator") and found.state != "open":
        return address(dataset, "conflicts", draft)
    return address(dataset, draft) if found.own is not None or found.state == "open" else ""


@router.get("/{dataset}/history")
def history(
    request: Request, app: App, user: Annotator, dataset: str, annotator: str = "", after: str = ""
) -> Response:
    """What somebody said, the newest first: oneself, or for adjudicators anybody, on what is decided."""
    name = annotator or user.name
    if name != user.name and not user.may("adjudicator"):
        raise Refused("What others said is for adjudicators.")
    store = queue_of(app, dataset)
    labels = store.history(dataset, name, MOST_HISTORY + 1, after=after or None, decided=name != user.name)
    here = address(dataset, "history")
    whose = {"annotator": annotator} if annotator else {}
    older = {**whose, "after": labels[MOST_HISTORY - 1].key} if len(labels) > MOST_HISTORY else {}
    return _page(
        request,
        "history",
        dataset,
        annotator=name,
        own=name == user.name,
        labels=[
            (label_view(label, item_of(store, dataset, label.draft)), _change_page(dataset, label))
            for label in labels[:MOST_HISTORY]
        ],
        progress=store.progress(dataset, name),
        newest=f"{here}?{urlencode(whose)}" if after else "",
        older=f"{here}?{urlencode(older)}" if older else "",
    )


def _change_page(dataset: str, label: Label) -> str:
    return address(dataset, *(["conflicts"] if label.adjudicates else []), label.draft)


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
    if form.act and is_rubric(item.draft.wording):
        item = own_item(store, dataset, draft, user)
        return _item_page(request, app, user, dataset, item, form=form)
    try:
        said = read_form(form, item.draft)
        store.label(dataset, draft, user.name, **said._asdict())
    except InputError as error:
        own_item(store, dataset, draft, user)
        return _item_page(request, app, user, dataset, item, form=form, error=str(error))
    return back_to(f"{address(dataset)}?done=label")


@router.post("/{dataset}/{draft}/comment")
def comment(
    request: Request, app: App, user: Annotator, dataset: str, draft: str, form: Annotated[CommentForm, Form()]
) -> Response:
    """Add to the discussion of an item, as one of its annotators."""
    store = store_of(app)
    item = own_item(store, dataset, draft, user)
    try:
        store.comment(dataset, draft, user.name, form.comment, key=form.key)
    except InputError as error:
        return _item_page(request, app, user, dataset, item, error=str(error))
    return back_to(f"{address(dataset, draft)}?done=comment#discussion")


@router.post("/{dataset}/{draft}/skip")
def skip(app: App, user: Annotator, dataset: str, draft: str) -> Response:
    """Leave an item for later."""
    store = store_of(app)
    own_item(store, dataset, draft, user)
    store.skip(dataset, draft, user.name)
    return back_to(f"{address(dataset)}?done=skip")
