"""Pages of annotation, for annotators, adjudicators and admins."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any, cast
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Request, UploadFile
from pydantic import BaseModel, Field
from starlette.responses import Response

from climassay.api.annotation import LabelFormat
from climassay.errors import InputError
from climassay.generation.annotation import (
    ANNOTATION_REASONS,
    AnnotationItem,
    AnnotationSettings,
    Comment,
    FoundItem,
    ItemFilter,
    is_rubric,
)
from climassay.generation.annotation.labels import ItemFilterState, Order
from climassay.generation.annotation.long_answers import rating_agreement, rubric_agreement
from climassay.questions import TYPES
from climassay.settings import field_bounds, setting_fields
from climassay.web.access import Annotator, DatasetManager
from climassay.web.accounts import User
from climassay.web.annotate.dataset_request import AdjudicatorRequest, AnnotatorRequest, DatasetRequest, ManagerRequest
from climassay.web.annotate.files import export_labels, import_labels, open_queue
from climassay.web.annotate.views import (
    JOB_KIND,
    LabelForm,
    Participant,
    agreement_of,
    annotation_store,
    count_assigned_items,
    find_own_label,
    find_work_type,
    is_reworded,
    is_training_due,
    item_view,
    label_view,
    list_trainings,
    may_annotate,
    new_key,
    page_path,
    parse_label_form,
    participant_names,
    run_training_job,
    submit_training,
)
from climassay.web.app_state import App, AppState
from climassay.web.failures import Forbidden, NotFound
from climassay.web.pages import PageNumber, Search, clamp_page, make_part, page, redirect_to

router = APIRouter(prefix="/annotate", include_in_schema=False)
_DATASET_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
MAX_HISTORY = 50
QUESTIONS_PER_PAGE = 25
ORDERS = {
    "margin": "what the validator is least sure of",
    "paper": "as in the ClimaQA paper: mostly what the validator is unsure of",
    "random": "at random",
}
"""Descriptions of the orders in which a queue offers its items."""
STATES: dict[ItemFilterState, str] = {
    "todo": "for me to label",
    "done": "labelled by me",
    "skipped": "skipped by me",
    "conflict": "in conflict",
    "decided": "decided",
}
"""Descriptions of the states by which questions can be filtered."""
FORMATS = {
    "jsonl": (
        "climassay",
        "Everything: all labels, withdrawn ones too, skips, comments and settings, to be imported elsewhere.",
    ),
    "csv": ("CSV table", "The current labels, one per row, for a spreadsheet; and questions without a label."),
    "label-studio": ("Label Studio", "The questions with their labels as tasks, and the labelling interface."),
    # Users there cannot be matched with users here, so labels are not exported.
    "argilla": ("Argilla", "The questions, to be answered there; without the labels given here."),
}
"""Title and description of each format in which labels can be exported and imported."""
QUESTIONS = {
    "questions": ("Questions", "The questions that experts accepted, in their final wording, for climassay evaluate.")
}
"""Title and description of the export of accepted questions; the export cannot be imported as labels."""
RUBRICS = {"rubrics": ("Rubrics", "The questions whose rubric is decided, with that rubric, for climassay evaluate.")}
"""Title and description of the export of decided rubrics; the export cannot be imported as labels."""


class QueueForm(BaseModel):
    """Fields of the form that opens a file of questions for annotation."""

    name: str = ""
    overlap: int = Field(default=1, ge=1, le=20)
    annotator: list[str] = []
    """Users to whom the queue is assigned; all users if empty."""

    def validate_name(self) -> str:
        """Return the name of the new dataset.

        Raises:
            InputError: The name is not valid as a part of an address.
        """
        if not _DATASET_NAME.fullmatch(self.name):
            raise InputError("Name the queue with 1 to 80 letters, digits, hyphens, dots or underscores.")
        return self.name


class SettingsForm(BaseModel):
    """Fields of the form that changes a dataset's annotation settings."""

    overlap: int
    show_confidence: bool = False
    include_rejected: bool = False
    minutes: float
    retrain_every: int
    order: Order
    annotator: list[str] = []


def register(app: AppState) -> None:
    """Register the job that trains a validator."""
    app.jobs.register(JOB_KIND, run_training_job, "training")


def _item_page(
    request: DatasetRequest, item: AnnotationItem, *, done: str = "", form: LabelForm | None = None, error: str = ""
) -> Response:
    """Render the page on which an item is labelled; ``form`` is a refused form, whose content is shown again."""
    current_label, comments = find_own_label(item, request.user), request.visible_comments(item)
    confidence = not request.store.settings(request.dataset).hide_confidence
    return request.render(
        "item",
        done=done,
        error=error,
        item=item_view(item, confidence=confidence, label=current_label, form=form),
        own=None if current_label is None else label_view(current_label, item),
        state=item.state,
        comments=_comment_views(comments, participant_names(item, comments, request.user, request.display_name)),
        key=new_key(),
        action=request.url_for(item.draft.id),
        **request.progress_values(done),
    )


def _comment_views(comments: Sequence[Comment], names: dict[Participant, str]) -> list[tuple[str, Comment]]:
    return [(names[comment.author, comment.adjudicates], comment) for comment in comments]


class CommentForm(BaseModel):
    """Fields of the form that adds a comment."""

    key: str = ""
    comment: str = ""


@router.get("/{dataset}/settings")
def show_settings(request: ManagerRequest, done: str = "") -> Response:
    """Show the annotation settings of a dataset."""
    return _settings_page(request, done=done)


@router.post("/{dataset}/settings")
def change_settings(request: ManagerRequest, form: Annotated[SettingsForm, Form()]) -> Response:
    """Change the annotation settings of a dataset."""
    values = form.model_dump(include={"overlap", "include_rejected", "retrain_every", "order"})
    try:
        new_settings = replace(
            request.store.settings(request.dataset),
            hide_confidence=not form.show_confidence,
            lease_seconds=form.minutes * 60,
            annotators=tuple(form.annotator),
            **values,
        )
        request.store.configure(request.dataset, new_settings)
    except InputError as error:
        return _settings_page(request, error=str(error))
    return request.redirect("settings", done="settings")


@router.post("/{dataset}/retrain")
def start_training(request: ManagerRequest) -> Response:
    """Submit a job that trains the dataset's validator on its labels."""
    submit_training(request.app, request.dataset, request.user)
    return redirect_to(request.url_for("settings") + "#retraining")


@router.post("/{dataset}/import")
def import_label_file(request: ManagerRequest, file: UploadFile, format: Annotated[str, Form()] = "jsonl") -> Response:
    """Import labels from an uploaded file; importing the same file again changes nothing."""
    try:
        _check_format(format, FORMATS)
        result = import_labels(request.app, request.dataset, file, cast(LabelFormat, format))
    except InputError as error:
        return _settings_page(request, error=str(error))
    return _settings_page(request, imported=result)


def _settings_page(request: DatasetRequest, **values: Any) -> Response:
    app, store, dataset = request.app, request.store, request.dataset
    return request.render(
        "settings",
        settings=store.settings(dataset),
        limits={name: field_bounds(info) for name, info in setting_fields(AnnotationSettings).items()},
        orders=ORDERS,
        work=find_work_type(store, dataset),
        progress=store.progress(dataset),
        new_labels=store.new_labels(dataset),
        is_training_due=is_training_due(store, dataset),
        trainings=list_trainings(app, dataset),
        formats=FORMATS,
        people=[person for person in app.accounts.users() if person.active],
        **{"imported": None, **values},
    )


class DecisionForm(LabelForm):
    """Fields of the form by which an adjudicator decides on an item."""

    like: str = ""
    """Key of the annotator's label that the decision adopts; empty if the form itself contains the decision."""


@router.get("/{dataset}/conflicts")
def show_conflicts(request: AdjudicatorRequest, done: str = "", number: PageNumber = 1) -> Response:
    """Show the items whose labels disagree, without the names of their annotators."""
    store, dataset = request.store, request.dataset
    total = store.progress(dataset).conflicts
    number = clamp_page(number, total, QUESTIONS_PER_PAGE)
    items = store.conflicts(dataset, QUESTIONS_PER_PAGE, offset=(number - 1) * QUESTIONS_PER_PAGE)
    entries = [(item, request.url_for("conflicts", item.draft.id), _label_views(item, (), request)) for item in items]
    part = make_part(entries, number, total, QUESTIONS_PER_PAGE, request.url_for("conflicts"), {})
    return request.render("conflicts", part=part, done=done)


def _label_views(item: AnnotationItem, comments: Sequence[Comment], request: "DatasetRequest") -> list[dict[str, Any]]:
    """Return the template values of an item's labels, sorted by displayed name; decisions come last."""
    names = participant_names(item, comments, request.user, request.display_name)
    views = [label_view(label, item, names[label.annotator, label.adjudicates]) for label in item.labels]
    return sorted(views, key=lambda view: (view["label"].adjudicates, view["by"]))


@router.get("/{dataset}/conflicts/{draft}")
def show_conflict(request: AdjudicatorRequest, draft: str, done: str = "") -> Response:
    """Show an item with conflicting labels, with all its labels and comments."""
    return _conflict_page(request, request.item(draft), done=done)


@router.post("/{dataset}/conflicts/{draft}")
def submit_decision(request: AdjudicatorRequest, draft: str, form: Annotated[DecisionForm, Form()]) -> Response:
    """Store an adjudicator's decision on an item and show the next conflict."""
    item = request.item(draft)
    if is_rubric(item.draft.wording):
        form = form.with_adopted_criteria(item)
        if form.act:
            return _conflict_page(request, item, form=form)
    try:
        if not form.like:
            label = parse_label_form(form, item.draft, request.user.name)
        elif adopted_label := next((label for label in item.labels if label.key == form.like), None):
            label = replace(adopted_label, annotator=request.user.name, key=form.key)
        else:
            raise NotFound("This label was withdrawn in the meantime.")
        # The time that a decision takes is not stored.
        request.store.label(request.dataset, replace(label, adjudicates=True, seconds=None))
    except InputError as error:
        return _conflict_page(request, item, form=form, error=str(error))
    next_conflict = request.store.next_conflict(request.dataset, draft)
    return request.redirect("conflicts", *filter(None, [next_conflict]), done="decided")


@router.post("/{dataset}/conflicts/{draft}/comment")
def submit_decision_comment(request: AdjudicatorRequest, draft: str, form: Annotated[CommentForm, Form()]) -> Response:
    """Add a comment to an item as an adjudicator."""
    item = request.item(draft)
    try:
        request.store.comment(request.dataset, draft, request.user.name, form.comment, key=form.key, adjudicates=True)
    except InputError as error:
        return _conflict_page(request, item, error=str(error))
    return request.redirect("conflicts", draft, done="comment", anchor="#discussion")


def _conflict_page(
    request: DatasetRequest, item: AnnotationItem, *, done: str = "", form: LabelForm | None = None, error: str = ""
) -> Response:
    store, dataset = request.store, request.dataset
    comments, next_conflict = store.comments(dataset, item.draft.id), store.next_conflict(dataset, item.draft.id)
    decision = next((label for label in reversed(item.labels) if label.adjudicates), None)
    if form is None and decision is None and is_rubric(item.draft.wording):
        form = LabelForm()  # A decision on a rubric starts without criteria, which are adopted from the labels.
    confidence = not store.settings(dataset).hide_confidence
    return request.render(
        "conflict",
        done=done,
        error=error,
        action=request.url_for("conflicts", item.draft.id),
        item=item_view(item, confidence=confidence, label=decision, form=form),
        labels=_label_views(item, comments, request),
        comments=_comment_views(comments, participant_names(item, comments, request.user, request.display_name)),
        state=item.state,
        next_address=next_conflict and request.url_for("conflicts", next_conflict),
        conflicts=store.progress(dataset).conflicts,
        key=new_key(),
    )


@router.get("/{dataset}/agreement")
def show_agreement(request: AdjudicatorRequest) -> Response:
    """Show the agreement between annotators, and statistics of each annotator."""
    store, dataset, app = request.store, request.dataset, request.app
    revision, work_type = store.revision(dataset), find_work_type(store, dataset)

    def compute_once(name: str, compute: Callable[[], Any]) -> Any:
        return app.computed.get((name, dataset, revision), compute)

    return request.render(
        "agreement",
        agreement=agreement_of(app, dataset),
        ratings=compute_once("ratings", lambda: rating_agreement(store.items(dataset))),
        rubrics=compute_once("rubrics", lambda: rubric_agreement(store.items(dataset), app.encoder()))
        if work_type == "rubrics"
        else None,
        work=work_type,
        annotators=compute_once("annotators", lambda: store.annotators(dataset)),
        name_of=request.display_name,
    )


@router.get("/{dataset}/export")
def export_dataset(request: AdjudicatorRequest, format: str = "") -> Response:
    """Show the export formats, or send a dataset's labels as a file if the request names a format."""
    store, dataset = request.store, request.dataset
    if not format:
        labels, progress = store.labels(dataset), store.progress(dataset)
        decisions = sum(label.adjudicates for label in labels)
        counts = {"label": len(labels) - decisions, "decision": decisions, "comment": len(store.comments(dataset))}
        formats = {"rubrics": RUBRICS, "questions": QUESTIONS}.get(find_work_type(store, dataset), {}) | FORMATS
        return request.render("export", formats=formats, progress=progress, counts=counts)
    _check_format(format, FORMATS | RUBRICS | QUESTIONS)
    return export_labels(request.app, dataset, cast(Any, format))


@router.get("")
def show_queues(request: Request, app: App, user: Annotator) -> Response:
    """Show the datasets that the user can annotate, with the user's progress in each."""
    return _queues_page(request, app, user)


@router.post("")
def create_queue(
    request: Request, app: App, user: DatasetManager, form: Annotated[QueueForm, Form()], file: UploadFile
) -> Response:
    """Create a dataset for annotation from an uploaded file of questions."""
    try:
        omissions = open_queue(app, form.validate_name(), file, form.overlap, form.annotator)
    except InputError as error:
        return _queues_page(request, app, user, form=form, error=str(error))
    return _queues_page(request, app, user, begun=form.name, left_out=omissions)


def _queues_page(request: Request, app: AppState, user: User, *, error: str = "", **values: Any) -> Response:
    store = annotation_store(app)
    queue_values = [
        {
            "queue": queue,
            "base": page_path(queue.dataset),
            "progress": (progress := store.progress(queue.dataset, user.name)),
            "total": count_assigned_items(progress),
            "training": user.may("manage datasets") and is_training_due(store, queue.dataset),
        }
        for queue in store.queues()
        if may_annotate(store, queue.dataset, user)
    ]
    people = [person for person in app.accounts.users() if person.active] if user.may("manage datasets") else []
    template_values = {"form": QueueForm(), "begun": "", "left_out": (), "error": error, **values}
    return page(
        request,
        "annotate/queues.html.j2",
        status=400 if error else 200,
        queues=queue_values,
        people=people,
        **template_values,
    )


@router.get("/{dataset}")
def show_next_item(request: AnnotatorRequest, done: str = "") -> Response:
    """Show the user's next item to label, or a page stating that none is left."""
    item = request.store.next(request.dataset, request.user.name)
    if item is not None:
        return _item_page(request, item, done=done)
    return request.render("nothing", done=done, **request.progress_values(done))


@router.get("/{dataset}/guidelines")
def show_guidelines(request: AnnotatorRequest) -> Response:
    """Show the guidelines for annotators."""
    return request.render("guidelines", reasons=ANNOTATION_REASONS)


@router.get("/{dataset}/questions")
def show_questions(
    request: AnnotatorRequest, q: Search = "", kind: Search = "", state: ItemFilterState = "", number: PageNumber = 1
) -> Response:
    """Show the questions of a dataset that match the filters."""
    store, dataset, user = request.store, request.dataset, request.user
    filters, offset = ItemFilter(q, kind, state), (number - 1) * QUESTIONS_PER_PAGE
    found_items, total = store.find(dataset, user.name, filters, QUESTIONS_PER_PAGE, offset=offset)
    items = [(item, _item_address(item, dataset, user)) for item in found_items]
    parameters = {"q": q, "kind": kind, "state": state}
    return request.render(
        "questions",
        part=make_part(items, number, total, QUESTIONS_PER_PAGE, request.url_for("questions"), parameters),
        parameters=parameters,
        kinds={kind: TYPES[kind].title for kind in store.kinds(dataset)},
        states=STATES,
    )


def _item_address(item: FoundItem, dataset: str, user: User) -> str:
    draft = item.draft.id
    if user.may("adjudicate") and item.state != "open":
        return page_path(dataset, "conflicts", draft)
    return page_path(dataset, draft) if item.own_label is not None or item.state == "open" else ""


@router.get("/{dataset}/history")
def show_history(request: AnnotatorRequest, annotator: str = "", after: str = "") -> Response:
    """Show the user's labels, or those of another annotator if the user is an adjudicator."""
    store, dataset, name = request.store, request.dataset, annotator or request.user.name
    labels = request.history(name, MAX_HISTORY + 1, after or None)
    path, parameters = request.url_for("history"), {"annotator": annotator} if annotator else {}
    older_parameters = {**parameters, "after": labels[MAX_HISTORY - 1].key} if len(labels) > MAX_HISTORY else {}
    label_entries = [
        (
            label_view(label, request.item(label.draft)),
            request.url_for(*(["conflicts"] if label.adjudicates else []), label.draft),
        )
        for label in labels[:MAX_HISTORY]
    ]
    return request.render(
        "history",
        annotator=request.display_name(name),
        own=name == request.user.name,
        labels=label_entries,
        progress=store.progress(dataset, name),
        newest=f"{path}?{urlencode(parameters)}" if after else "",
        older=f"{path}?{urlencode(older_parameters)}" if older_parameters else "",
    )


@router.post("/{dataset}/undo")
def undo_label(request: AnnotatorRequest, last: Annotated[str, Form()] = "") -> Response:
    """Undo the user's last label or skip, and show its item again.

    Nothing is undone unless ``last`` is the key of the newest label, so a second click on the same page has no effect.
    """
    latest_labels = request.store.history(request.dataset, request.user.name, limit=1)
    is_current = last == (latest_labels[0].key if latest_labels else "")
    draft = request.store.undo(request.dataset, request.user.name) if is_current else None
    if draft is None:
        return request.redirect(done="nothing")
    try:
        request.claim_item(draft)
    except Forbidden:
        # Others have labelled the skipped item in the meantime, or it is reserved for them.
        return request.redirect(done="undo")
    return request.redirect(draft, done="undo")


@router.post("/{dataset}/unskip")
def restore_skipped(request: AnnotatorRequest) -> Response:
    """Put the items that the user skipped back into the user's queue."""
    request.store.unskip(request.dataset, request.user.name)
    return request.redirect(done="skipped")


@router.get("/{dataset}/{draft}")
def show_item(request: AnnotatorRequest, draft: str, done: str = "") -> Response:
    """Show the page on which the user labels an item or changes an earlier label."""
    return _item_page(request, request.claim_item(draft), done=done)


@router.post("/{dataset}/{draft}")
def submit_label(request: AnnotatorRequest, draft: str, form: Annotated[LabelForm, Form()]) -> Response:
    """Store the user's label of an item and show the next item."""
    item = request.item(draft)
    if form.act and is_rubric(item.draft.wording):
        return _item_page(request, request.claim_item(draft), form=form)
    try:
        new_label = parse_label_form(form, item.draft, request.user.name)
        request.store.label(request.dataset, new_label)
    except InputError as error:
        request.claim_item(draft)
        return _item_page(request, item, form=form, error=str(error))
    is_edit = new_label.wording is not None and is_reworded(item.draft, new_label.wording)
    return request.redirect(done="edit" if is_edit else "label")


@router.post("/{dataset}/{draft}/comment")
def submit_comment(request: AnnotatorRequest, draft: str, form: Annotated[CommentForm, Form()]) -> Response:
    """Add a comment to an item as an annotator."""
    item = request.claim_item(draft)
    try:
        request.store.comment(request.dataset, draft, request.user.name, form.comment, key=form.key)
    except InputError as error:
        return _item_page(request, item, error=str(error))
    return request.redirect(draft, done="comment", anchor="#discussion")


@router.post("/{dataset}/{draft}/skip")
def skip_item(request: AnnotatorRequest, draft: str) -> Response:
    """Skip an item and show the next one."""
    request.claim_item(draft)
    request.store.skip(request.dataset, draft, request.user.name)
    return request.redirect(done="skip")


def _check_format(name: str, formats: dict[str, tuple[str, str]]) -> None:
    if name not in formats:
        raise InputError(f"There is no format {name!r}: there are {', '.join(formats)}.")
