"""Pages of annotation, for annotators, adjudicators and admins."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, cast
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Form, Request, UploadFile
from pydantic import BaseModel, Field
from starlette.responses import Response

from climassay.api.annotation import LabelFormat
from climassay.errors import InputError
from climassay.generation.annotation import (
    ANNOTATION_REASONS,
    AnnotationItem,
    AnnotationSettings,
    AnnotationStore,
    Comment,
    FoundItem,
    ItemFilter,
    Label,
    is_rubric,
)
from climassay.generation.annotation.labels import ItemFilterState, Order
from climassay.generation.annotation.long_answers import rating_agreement, rubric_agreement
from climassay.questions import TYPES
from climassay.settings import field_bounds, setting_fields
from climassay.web.access import Adjudicator, Annotator, DatasetManager
from climassay.web.accounts import User
from climassay.web.annotate.files import begin_queue, export_labels, import_labels
from climassay.web.annotate.views import (
    KIND,
    LabelForm,
    Participant,
    address,
    agreement_of,
    is_reworded,
    item_view,
    label_view,
    may_annotate,
    new_key,
    own_label,
    queue_of,
    read_form,
    retrain_work,
    shown_names,
    store_of,
    total_of,
    train,
    training_offered,
    trainings,
    work_of,
)
from climassay.web.api.base import DatasetName
from climassay.web.app_state import App, AppState
from climassay.web.checks.pages import display_names
from climassay.web.failures import Missing, Refused, missing
from climassay.web.pages import PageNumber, Search, back_to, clamp_page, page, part_of

router = APIRouter(prefix="/annotate", include_in_schema=False)
_DATASET_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
MAX_HISTORY = 50
QUESTIONS_PER_PAGE = 25
DONE = {
    "": "",
    "label": "Saved.",
    "edit": "Saved with your wording.",
    "skip": "Skipped.",
    "undo": "Taken back.",
    "nothing": "There was nothing to take back.",
    "decided": "Decided.",
    "comment": "Comment added.",
    "settings": "Settings saved.",
    "skipped": "What you skipped is back in your queue.",
}
"""Messages about the last action, by the word in the address."""
ORDERS = {
    "margin": "what the validator is least sure of",
    "paper": "as in the ClimaQA paper: mostly what the validator is unsure of",
    "random": "at random",
}
"""Labels of the orders of a queue."""
STATES: dict[ItemFilterState, str] = {
    "todo": "for me to label",
    "done": "labelled by me",
    "skipped": "skipped by me",
    "conflict": "in conflict",
    "decided": "decided",
}
"""Labels of the states that questions are filtered by."""
FORMATS = {
    "jsonl": (
        "climassay",
        "Everything: all labels, withdrawn ones too, skips, comments and settings, to be imported elsewhere.",
    ),
    "csv": (
        "CSV table",
        "The current labels, one per row, for a spreadsheet; and questions without a label.",
    ),
    "label-studio": ("Label Studio", "The questions with their labels as tasks, and the labelling interface."),
    # Whose user there is whose here is not known, so it gets the questions to be answered, and no answers.
    "argilla": ("Argilla", "The questions, to be answered there; without the labels given here."),
}
"""Formats of labels: title and description."""
QUESTIONS = {
    "questions": ("Questions", "The questions that experts accepted, in their final wording, for climassay evaluate.")
}
"""Format of the accepted questions of a dataset, which cannot be imported."""
RUBRICS = {"rubrics": ("Rubrics", "The questions whose rubric is decided, with that rubric, for climassay evaluate.")}
"""Format of the decided rubrics of a dataset, which cannot be imported."""


class QueueForm(BaseModel):
    """Fields of the form that opens a file of questions for annotation."""

    name: str = ""
    overlap: int = Field(default=1, ge=1, le=20)
    annotator: list[str] = []
    """Users whom the queue is assigned to; everybody if empty."""

    def checked_name(self) -> str:
        """Return the name of the new dataset.

        Raises:
            InputError: It is no name that an address can hold.
        """
        if not _DATASET_NAME.fullmatch(self.name):
            raise InputError("Name the queue with 1 to 80 letters, digits, hyphens, dots or underscores.")
        return self.name


class SettingsForm(BaseModel):
    """Fields of the form of the settings of a dataset."""

    overlap: int
    show_confidence: bool = False
    include_rejected: bool = False
    minutes: float
    retrain_every: int
    order: Order
    annotator: list[str] = []


def register(app: AppState) -> None:
    """Register the job that trains a validator."""
    app.jobs.register(KIND, retrain_work, "training")


@dataclass(frozen=True, slots=True)
class DatasetRequest:
    """A request about one dataset, by a user with the required role."""

    request: Request
    app: AppState
    user: User
    dataset: str
    store: AnnotationStore

    def address(self, *parts: str) -> str:
        """Return the path of a page about the dataset."""
        return address(self.dataset, *parts)

    def back(self, *parts: str, done: str, anchor: str = "") -> Response:
        """Redirect to a page about the dataset, with a message about what was done."""
        return back_to(f"{self.address(*parts)}?done={done}{anchor}")

    def show(self, template: str, *, done: str = "", error: str = "", **values: Any) -> Response:
        """Render a page; ``done`` is a key of :data:`DONE`, and unknown keys show no message."""
        all_values = {
            "dataset": self.dataset,
            "base": self.address(),
            "done": DONE.get(done, ""),
            "error": error,
            **values,
        }
        return page(self.request, f"annotate/{template}.html.j2", status=400 if error else 200, **all_values)

    @property
    def name_of(self) -> Callable[[str], str]:
        """Return a function from a user's name to the display name."""
        return display_names(self.app, self.user)

    def item(self, draft: str) -> AnnotationItem:
        """Return an item.

        Raises:
            Missing: There is no such item.
        """
        with missing():
            return self.store.item(self.dataset, draft)

    def own_item(self, draft: str) -> AnnotationItem:
        """Return an item that the user may label, and reserve it for the user.

        Annotators may label items that they labelled before or that need further labels; adjudicators may label every
        item.

        Raises:
            Missing: There is no such item.
            Refused: It has all labels that it needs, or is reserved for others.
        """
        item, name = self.item(draft), self.user.name
        # What was taken back lies before them again, perhaps beside another one.
        if (
            self.user.may("adjudicate")
            or self.store.labels(self.dataset, draft=draft, annotator=name, current=False)
            or self.store.claim(self.dataset, draft, name)
        ):
            return item
        raise Refused("This question has all the labels it needs, or is open at other annotators.")

    def visible_comments(self, item: AnnotationItem) -> list[Comment]:
        """Return the comments of an item; others' comments only once the user has labelled it."""
        is_labelled, result = own_label(item, self.user) is not None, self.store.comments(self.dataset, item.draft.id)
        return [comment for comment in result if is_labelled or comment.author == self.user.name]

    def history(self, annotator: str, limit: int, after: str | None) -> Sequence[Label]:
        """Return the labels of an annotator, newest first; others' labels only on decided items.

        Raises:
            Refused: The user is no adjudicator and asks for others' labels.
        """
        name = annotator or self.user.name
        if name != self.user.name and not self.user.may("adjudicate"):
            raise Refused("Only adjudicators can see other annotators' labels.")
        return self.store.history(self.dataset, name, limit, after=after, decided=name != self.user.name)

    def progress_values(self, done: str) -> dict[str, Any]:
        """Return the template values of the user's progress."""
        progress = self.store.progress(self.dataset, self.user.name)
        total = total_of(progress)
        last = self.store.history(self.dataset, self.user.name, limit=1)
        status = " ".join(filter(None, (DONE.get(done, ""), f"{progress.mine} of {total}.")))
        return {"progress": progress, "total": total, "announcement": status, "last": last[0].key if last else ""}


def _request_of(role: Any) -> Any:
    """Return the dependency that creates the request of a user with a role.

    The request is refused if the dataset is assigned to others and the user is no adjudicator.
    """

    def make_request(request: Request, app: App, user: role, dataset: DatasetName) -> DatasetRequest:
        store = queue_of(app, dataset)
        if not may_annotate(store, dataset, user):
            raise Refused("This queue is assigned to others: ask whoever runs this server.")
        return DatasetRequest(request, app, user, dataset, store)

    return Depends(make_request)


ByAnnotator = Annotated[DatasetRequest, _request_of(Annotator)]
ByAdjudicator = Annotated[DatasetRequest, _request_of(Adjudicator)]
ByManager = Annotated[DatasetRequest, _request_of(DatasetManager)]


def _item_page(
    request: DatasetRequest, item: AnnotationItem, *, done: str = "", form: LabelForm | None = None, error: str = ""
) -> Response:
    """Render the page on which an item is labelled; a form that was refused keeps its content."""
    own_label_of_item, comments = own_label(item, request.user), request.visible_comments(item)
    confidence = not request.store.settings(request.dataset).hide_confidence
    return request.show(
        "item",
        done=done,
        error=error,
        item=item_view(item, confidence=confidence, own=own_label_of_item, form=form),
        own=None if own_label_of_item is None else label_view(own_label_of_item, item),
        state=item.state,
        comments=_comment_views(comments, shown_names(item, comments, request.user, request.name_of)),
        key=new_key(),
        action=request.address(item.draft.id),
        **request.progress_values(done),
    )


def _comment_views(comments: Sequence[Comment], names: dict[Participant, str]) -> list[tuple[str, Comment]]:
    """Return comments with their authors' names."""
    return [(names[comment.author, comment.adjudicates], comment) for comment in comments]


class CommentForm(BaseModel):
    """Fields of the form of a comment."""

    key: str = ""
    comment: str = ""


@router.get("/{dataset}/settings")
def settings(request: ByManager, done: str = "") -> Response:
    """Show the settings of a dataset."""
    return _settings_page(request, done=done)


@router.post("/{dataset}/settings")
def configure(request: ByManager, form: Annotated[SettingsForm, Form()]) -> Response:
    """Change the settings of a dataset."""
    plain = form.model_dump(include={"overlap", "include_rejected", "retrain_every", "order"})
    try:
        changed = replace(
            request.store.settings(request.dataset),
            hide_confidence=not form.show_confidence,
            lease_seconds=form.minutes * 60,
            annotators=tuple(form.annotator),
            **plain,
        )
        request.store.configure(request.dataset, changed)
    except InputError as error:
        return _settings_page(request, error=str(error))
    return request.back("settings", done="settings")


@router.post("/{dataset}/retrain")
def retrain(request: ByManager) -> Response:
    """Begin to train a validator on the labels."""
    train(request.app, request.dataset, request.user)
    return back_to(request.address("settings") + "#retraining")


@router.post("/{dataset}/import")
def import_file(request: ByManager, file: UploadFile, format: Annotated[str, Form()] = "jsonl") -> Response:
    """Import labels from a file; importing it again changes nothing."""
    try:
        _check_format(format, FORMATS)
        result = import_labels(request.app, request.dataset, file, cast(LabelFormat, format))
    except InputError as error:
        return _settings_page(request, error=str(error))
    return _settings_page(request, imported=result)


def _settings_page(request: DatasetRequest, **values: Any) -> Response:
    app, store, dataset = request.app, request.store, request.dataset
    return request.show(
        "settings",
        settings=store.settings(dataset),
        limits={name: field_bounds(info) for name, info in setting_fields(AnnotationSettings).items()},
        orders=ORDERS,
        work=work_of(store, dataset),
        progress=store.progress(dataset),
        new_labels=store.new_labels(dataset),
        offered=training_offered(store, dataset),
        trainings=trainings(app, dataset),
        formats=FORMATS,
        people=[person for person in app.accounts.users() if person.active],
        **{"imported": None, **values},
    )


class DecisionForm(LabelForm):
    """Fields of the form of a decision."""

    like: str = ""
    """Key of the label that is right; empty for a decision of its own."""


@router.get("/{dataset}/conflicts")
def conflicts(request: ByAdjudicator, done: str = "", number: PageNumber = 1) -> Response:
    """Show the items whose labels disagree, without the names of their annotators."""
    store, dataset = request.store, request.dataset
    total = store.progress(dataset).conflicts
    number = clamp_page(number, total, QUESTIONS_PER_PAGE)
    items = store.conflicts(dataset, QUESTIONS_PER_PAGE, offset=(number - 1) * QUESTIONS_PER_PAGE)
    results = [(item, request.address("conflicts", item.draft.id), _votes(item, (), request)) for item in items]
    part = part_of(results, number, total, QUESTIONS_PER_PAGE, request.address("conflicts"), {})
    return request.show("conflicts", part=part, done=done)


def _votes(item: AnnotationItem, comments: Sequence[Comment], request: "DatasetRequest") -> list[dict[str, Any]]:
    """Return the labels of an item by the name of the annotator; decisions come last."""
    names = shown_names(item, comments, request.user, request.name_of)
    views = [label_view(label, item, names[label.annotator, label.adjudicates]) for label in item.labels]
    return sorted(views, key=lambda view: (view["label"].adjudicates, view["by"]))


@router.get("/{dataset}/conflicts/{draft}")
def conflict(request: ByAdjudicator, draft: str, done: str = "") -> Response:
    """Show one item with all its labels."""
    return _conflict_page(request, request.item(draft), done=done)


@router.post("/{dataset}/conflicts/{draft}")
def decide(request: ByAdjudicator, draft: str, form: Annotated[DecisionForm, Form()]) -> Response:
    """Store the decision on an item and show the next conflict."""
    item = request.item(draft)
    if is_rubric(item.draft.wording):
        form = form.with_taken(item)
        if form.act:
            return _conflict_page(request, item, form=form)
    try:
        if not form.like:
            label = read_form(form, item.draft, request.user.name)
        elif same := next((label for label in item.labels if label.key == form.like), None):
            label = replace(same, annotator=request.user.name, key=form.key)
        else:
            raise Missing("This label was withdrawn in the meantime.")
        # The time that a decision takes is not stored.
        request.store.label(request.dataset, replace(label, adjudicates=True, seconds=None))
    except InputError as error:
        return _conflict_page(request, item, form=form, error=str(error))
    following = request.store.next_conflict(request.dataset, draft)
    return request.back("conflicts", *filter(None, [following]), done="decided")


@router.post("/{dataset}/conflicts/{draft}/comment")
def comment_on_conflict(request: ByAdjudicator, draft: str, form: Annotated[CommentForm, Form()]) -> Response:
    """Add a comment to an item as an adjudicator."""
    item = request.item(draft)
    try:
        request.store.comment(request.dataset, draft, request.user.name, form.comment, key=form.key, adjudicates=True)
    except InputError as error:
        return _conflict_page(request, item, error=str(error))
    return request.back("conflicts", draft, done="comment", anchor="#discussion")


def _conflict_page(
    request: DatasetRequest, item: AnnotationItem, *, done: str = "", form: LabelForm | None = None, error: str = ""
) -> Response:
    store, dataset = request.store, request.dataset
    comments, following = store.comments(dataset, item.draft.id), store.next_conflict(dataset, item.draft.id)
    decided = next((label for label in reversed(item.labels) if label.adjudicates), None)
    if form is None and decided is None and is_rubric(item.draft.wording):
        form = LabelForm()  # A decision begins with what is taken from the labels.
    confidence = not store.settings(dataset).hide_confidence
    return request.show(
        "conflict",
        done=done,
        error=error,
        action=request.address("conflicts", item.draft.id),
        item=item_view(item, confidence=confidence, own=decided, form=form),
        labels=_votes(item, comments, request),
        comments=_comment_views(comments, shown_names(item, comments, request.user, request.name_of)),
        state=item.state,
        following=following and request.address("conflicts", following),
        conflicts=store.progress(dataset).conflicts,
        key=new_key(),
    )


@router.get("/{dataset}/agreement")
def agreement(request: ByAdjudicator) -> Response:
    """Show how much annotators agree, and statistics of each annotator."""
    store, dataset, app = request.store, request.dataset, request.app
    revision, work = store.revision(dataset), work_of(store, dataset)

    def once(name: str, make: Callable[[], Any]) -> Any:
        return app.computed.get((name, dataset, revision), make)

    return request.show(
        "agreement",
        agreement=agreement_of(app, dataset),
        ratings=once("ratings", lambda: rating_agreement(store.items(dataset))),
        rubrics=once("rubrics", lambda: rubric_agreement(store.items(dataset), app.encoder()))
        if work == "rubrics"
        else None,
        work=work,
        annotators=once("annotators", lambda: store.annotators(dataset)),
        name_of=request.name_of,
    )


@router.get("/{dataset}/export")
def export(request: ByAdjudicator, format: str = "") -> Response:
    """Show the formats of labels, or with a format download all labels."""
    store, dataset = request.store, request.dataset
    if not format:
        labels, progress = store.labels(dataset), store.progress(dataset)
        decisions = sum(label.adjudicates for label in labels)
        counts = {"label": len(labels) - decisions, "decision": decisions, "comment": len(store.comments(dataset))}
        formats = {"rubrics": RUBRICS, "questions": QUESTIONS}.get(work_of(store, dataset), {}) | FORMATS
        return request.show("export", formats=formats, progress=progress, counts=counts)
    _check_format(format, FORMATS | RUBRICS | QUESTIONS)
    return export_labels(request.app, dataset, cast(Any, format))


@router.get("")
def queues(request: Request, app: App, user: Annotator) -> Response:
    """Show all datasets that the user can annotate, with the user's progress."""
    return _queues_page(request, app, user)


@router.post("")
def begin(
    request: Request, app: App, user: DatasetManager, form: Annotated[QueueForm, Form()], file: UploadFile
) -> Response:
    """Open a file of questions for annotation as a new dataset."""
    try:
        left_out = begin_queue(app, form.checked_name(), file, form.overlap, form.annotator)
    except InputError as error:
        return _queues_page(request, app, user, form=form, error=str(error))
    return _queues_page(request, app, user, begun=form.name, left_out=left_out)


def _queues_page(request: Request, app: AppState, user: User, *, error: str = "", **values: Any) -> Response:
    store = store_of(app)
    results = [
        {
            "queue": queue,
            "base": address(queue.dataset),
            "progress": (progress := store.progress(queue.dataset, user.name)),
            "total": total_of(progress),
            "training": user.may("manage datasets") and training_offered(store, queue.dataset),
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
        queues=results,
        people=people,
        **template_values,
    )


@router.get("/{dataset}")
def next_item(request: ByAnnotator, done: str = "") -> Response:
    """Show the next item to label."""
    item = request.store.next(request.dataset, request.user.name)
    if item is not None:
        return _item_page(request, item, done=done)
    return request.show("nothing", done=done, **request.progress_values(done))


@router.get("/{dataset}/guidelines")
def guidelines(request: ByAnnotator) -> Response:
    """Show the guidelines."""
    return request.show("guidelines", reasons=ANNOTATION_REASONS)


@router.get("/{dataset}/questions")
def questions(
    request: ByAnnotator, q: Search = "", kind: Search = "", state: ItemFilterState = "", number: PageNumber = 1
) -> Response:
    """Show the questions of a dataset that match the filters."""
    store, dataset, user = request.store, request.dataset, request.user
    filters, start = ItemFilter(q, kind, state), (number - 1) * QUESTIONS_PER_PAGE
    result, total = store.find(dataset, user.name, filters, QUESTIONS_PER_PAGE, offset=start)
    items = [(item, _item_address(item, dataset, user)) for item in result]
    parameters = {"q": q, "kind": kind, "state": state}
    return request.show(
        "questions",
        part=part_of(items, number, total, QUESTIONS_PER_PAGE, request.address("questions"), parameters),
        parameters=parameters,
        kinds={kind: TYPES[kind].title for kind in store.kinds(dataset)},
        states=STATES,
    )


def _item_address(item: FoundItem, dataset: str, user: User) -> str:
    """Return the address of the page on which the user can act on an item; empty if there is none."""
    draft = item.draft.id
    if user.may("adjudicate") and item.state != "open":
        return address(dataset, "conflicts", draft)
    return address(dataset, draft) if item.own_label is not None or item.state == "open" else ""


@router.get("/{dataset}/history")
def history(request: ByAnnotator, annotator: str = "", after: str = "") -> Response:
    """Show the labels of the user, or for adjudicators of any annotator."""
    store, dataset, name = request.store, request.dataset, annotator or request.user.name
    labels = request.history(name, MAX_HISTORY + 1, after or None)
    here, parameters = request.address("history"), {"annotator": annotator} if annotator else {}
    older = {**parameters, "after": labels[MAX_HISTORY - 1].key} if len(labels) > MAX_HISTORY else {}
    listed = [
        (
            label_view(label, request.item(label.draft)),
            request.address(*(["conflicts"] if label.adjudicates else []), label.draft),
        )
        for label in labels[:MAX_HISTORY]
    ]
    return request.show(
        "history",
        annotator=request.name_of(name),
        own=name == request.user.name,
        labels=listed,
        progress=store.progress(dataset, name),
        newest=f"{here}?{urlencode(parameters)}" if after else "",
        older=f"{here}?{urlencode(older)}" if older else "",
    )


@router.post("/{dataset}/undo")
def undo(request: ByAnnotator, last: Annotated[str, Form()] = "") -> Response:
    """Undo the user's last label or skip, and show its item again.

    ``last`` is the key of the newest label when the page was rendered, so that a second click undoes nothing more.
    """
    newest = request.store.history(request.dataset, request.user.name, limit=1)
    is_current = last == (newest[0].key if newest else "")
    draft = request.store.undo(request.dataset, request.user.name) if is_current else None
    if draft is None:
        return request.back(done="nothing")
    try:
        request.own_item(draft)
    except Refused:
        # A skip that others took up in the meantime, or that lies before the reader beside another item.
        return request.back(done="undo")
    return request.back(draft, done="undo")


@router.post("/{dataset}/unskip")
def unskip(request: ByAnnotator) -> Response:
    """Put skipped items back into the queue of the user."""
    request.store.unskip(request.dataset, request.user.name)
    return request.back(done="skipped")


@router.get("/{dataset}/{draft}")
def one_item(request: ByAnnotator, draft: str, done: str = "") -> Response:
    """Show one item, to label it or to change the user's label."""
    return _item_page(request, request.own_item(draft), done=done)


@router.post("/{dataset}/{draft}")
def label(request: ByAnnotator, draft: str, form: Annotated[LabelForm, Form()]) -> Response:
    """Store a label and show the next item."""
    item = request.item(draft)
    if form.act and is_rubric(item.draft.wording):
        return _item_page(request, request.own_item(draft), form=form)
    try:
        stored = read_form(form, item.draft, request.user.name)
        request.store.label(request.dataset, stored)
    except InputError as error:
        request.own_item(draft)
        return _item_page(request, item, form=form, error=str(error))
    is_edit = stored.wording is not None and is_reworded(item.draft, stored.wording)
    return request.back(done="edit" if is_edit else "label")


@router.post("/{dataset}/{draft}/comment")
def comment(request: ByAnnotator, draft: str, form: Annotated[CommentForm, Form()]) -> Response:
    """Add a comment to an item as an annotator."""
    item = request.own_item(draft)
    try:
        request.store.comment(request.dataset, draft, request.user.name, form.comment, key=form.key)
    except InputError as error:
        return _item_page(request, item, error=str(error))
    return request.back(draft, done="comment", anchor="#discussion")


@router.post("/{dataset}/{draft}/skip")
def skip(request: ByAnnotator, draft: str) -> Response:
    """Skip an item."""
    request.own_item(draft)
    request.store.skip(request.dataset, draft, request.user.name)
    return request.back(done="skip")


def _check_format(name: str, formats: dict[str, tuple[str, str]]) -> None:
    if name not in formats:
        raise InputError(f"There is no format {name!r}: there are {', '.join(formats)}.")
