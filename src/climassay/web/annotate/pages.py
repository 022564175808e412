"""The pages of annotation: of annotators, of adjudicators, of admins, with labels as files to keep and to send.

What is written to files and read from them is what ``climassay annotate export`` and ``import`` do.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, cast
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Form, Request, UploadFile
from pydantic import BaseModel
from starlette.responses import Response

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
from climassay.settings import setting_fields
from climassay.web.access import Adjudicator, Admin, Annotator
from climassay.web.accounts import User
from climassay.web.annotate.files import LabelFormat, export_labels, import_labels
from climassay.web.annotate.views import (
    KIND,
    LabelForm,
    Participant,
    address,
    agreement_of,
    item_view,
    label_view,
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
    "margin": "what the validator is least sure of",
    "paper": "as in the ClimaQA paper: mostly what the validator is unsure of",
    "random": "at random",
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
"""Formats of labels: the title for people, and what an export has."""
RUBRICS = {"rubrics": ("Rubrics", "The questions whose rubric is decided, with that rubric, for climassay evaluate.")}
"""The format of what people wrote in a dataset of rubrics; it is not imported."""


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


@dataclass(frozen=True, slots=True)
class DatasetRequest:
    """A request about one dataset, by somebody who may make it."""

    request: Request
    app: AppState
    user: User
    dataset: str
    store: AnnotationStore

    def address(self, *parts: str) -> str:
        """Path of a page about the dataset."""
        return address(self.dataset, *parts)

    def back(self, *parts: str, done: str, anchor: str = "") -> Response:
        """After a form: show a page about the dataset, which says what was done."""
        return back_to(f"{self.address(*parts)}?done={done}{anchor}")

    def show(self, template: str, *, done: str = "", error: str = "", **values: Any) -> Response:
        """A page; ``done`` is the word of what was done before, which says nothing if tampered with."""
        shown = {"dataset": self.dataset, "base": self.address(), "done": DONE.get(done, ""), "error": error, **values}
        return page(self.request, f"annotate/{template}.html.j2", status=400 if error else 200, **shown)

    @property
    def called(self) -> Callable[[str], str]:
        """Gives the names that people are shown by, as on the pages of checks."""
        return display_names(self.app, self.user)

    def item(self, draft: str) -> AnnotationItem:
        """An item; missing where there is none."""
        with missing():
            return self.store.item(self.dataset, draft)

    def own_item(self, draft: str) -> AnnotationItem:
        """An item that the visitor may label: one that they labelled before, or that wants a label of theirs.

        The latter is kept for them from now on. Adjudicators may open every item.

        Raises:
            Missing: There is no such item.
            Refused: It has the labels that it needs, or others are about to give them.
        """
        item, name = self.item(draft), self.user.name
        # What was taken back lies before them again, perhaps beside another one.
        if (
            self.user.may("adjudicator")
            or self.store.labels(self.dataset, draft=draft, annotator=name, current=False)
            or self.store.claim(self.dataset, draft, name)
        ):
            return item
        raise Refused("This question has all the labels it needs, or is open at other annotators.")

    def visible_comments(self, item: AnnotationItem) -> list[Comment]:
        """The discussion of an item for somebody who labels: others' comments once they have said what they think."""
        labelled, result = own_label(item, self.user) is not None, self.store.comments(self.dataset, item.draft.id)
        return [one for one in result if labelled or one.author == self.user.name]

    def history(self, annotator: str, most: int, after: str | None) -> Sequence[Label]:
        """What somebody said, the newest first: oneself, or for adjudicators anybody, on what is decided."""
        name = annotator or self.user.name
        if name != self.user.name and not self.user.may("adjudicator"):
            raise Refused("Only adjudicators can see other annotators' labels.")
        return self.store.history(self.dataset, name, most, after=after, decided=name != self.user.name)

    def progress_values(self, done: str) -> dict[str, Any]:
        """How far an annotator is, and the key of their newest label."""
        progress = self.store.progress(self.dataset, self.user.name)
        total = total_of(progress)
        last = self.store.history(self.dataset, self.user.name, limit=1)
        said = " ".join(filter(None, (DONE.get(done, ""), f"{progress.mine} of {total}.")))
        return {"progress": progress, "total": total, "said": said, "last": last[0].key if last else ""}


def _request_of(role: Any) -> Any:
    """What a request about one dataset depends on, by somebody of a role."""

    def made(request: Request, app: App, user: role, dataset: DatasetName) -> DatasetRequest:
        return DatasetRequest(request, app, user, dataset, queue_of(app, dataset))

    return Depends(made)


ByAnnotator = Annotated[DatasetRequest, _request_of(Annotator)]
ByAdjudicator = Annotated[DatasetRequest, _request_of(Adjudicator)]
ByAdmin = Annotated[DatasetRequest, _request_of(Admin)]


def _item_page(
    asked: DatasetRequest, item: AnnotationItem, *, done: str = "", form: LabelForm | None = None, error: str = ""
) -> Response:
    """The page on which an item is labelled; a form that could not be stored keeps its words."""
    own, comments = own_label(item, asked.user), asked.visible_comments(item)
    confidence = not asked.store.settings(asked.dataset).hide_confidence
    return asked.show(
        "item",
        done=done,
        error=error,
        item=item_view(item, confidence=confidence, own=own, form=form),
        own=None if own is None else label_view(own, item),
        state=item.state,
        comments=_comment_views(comments, shown_names(item, comments, asked.user, asked.called)),
        key=new_key(),
        action=asked.address(item.draft.id),
        **asked.progress_values(done),
    )


def _comment_views(comments: Sequence[Comment], names: dict[Participant, str]) -> list[tuple[str, Comment]]:
    """Comments, each with what its author is called."""
    return [(names[one.author, one.adjudicates], one) for one in comments]


class CommentForm(BaseModel):
    """A contribution to the discussion of an item."""

    key: str = ""
    comment: str = ""


@router.get("/{dataset}/settings")
def settings(asked: ByAdmin, done: str = "") -> Response:
    """How a dataset is annotated."""
    return _settings_page(asked, done=done)


@router.post("/{dataset}/settings")
def configure(asked: ByAdmin, form: Annotated[SettingsForm, Form()]) -> Response:
    """Annotate a dataset in another way from now on."""
    plain = form.model_dump(include={"overlap", "include_rejected", "retrain_every", "order"})
    try:
        changed = replace(
            asked.store.settings(asked.dataset),
            hide_confidence=not form.show_confidence,
            lease_seconds=form.minutes * 60,
            **plain,
        )
        asked.store.configure(asked.dataset, changed)
    except InputError as error:
        return _settings_page(asked, error=str(error))
    return asked.back("settings", done="settings")


@router.post("/{dataset}/retrain")
def retrain(asked: ByAdmin) -> Response:
    """Train a validator on the labels, in the background."""
    train(asked.app, asked.dataset, asked.user)
    return back_to(asked.address("settings") + "#retraining")


@router.post("/{dataset}/import")
def import_file(asked: ByAdmin, file: UploadFile, format: Annotated[str, Form()] = "jsonl") -> Response:
    """Take labels from a file; sent twice it changes nothing."""
    try:
        _check_format(format, FORMATS)
        result = import_labels(asked.app, asked.dataset, file, cast(LabelFormat, format))
    except InputError as error:
        return _settings_page(asked, error=str(error))
    return _settings_page(asked, imported=result)


def _settings_page(asked: DatasetRequest, **values: Any) -> Response:
    app, store, dataset = asked.app, asked.store, asked.dataset
    return asked.show(
        "settings",
        settings=store.settings(dataset),
        limits={one.name: one for one in setting_fields(AnnotationSettings)},
        orders=ORDERS,
        work=work_of(store, dataset),
        progress=store.progress(dataset),
        new_labels=store.new_labels(dataset),
        offered=training_offered(store, dataset),
        trainings=trainings(app, dataset),
        formats=FORMATS,
        **{"imported": None, **values},
    )


class DecisionForm(LabelForm):
    """A decision: in one's own words, or like one of the labels."""

    like: str = ""
    """Key of the label that is right."""


@router.get("/{dataset}/conflicts")
def conflicts(asked: ByAdjudicator, done: str = "", number: PageNumber = 1) -> Response:
    """Items whose labels do not agree, a part of them on each page; who gave them is said once they are decided."""
    store, dataset = asked.store, asked.dataset
    total = store.progress(dataset).conflicts
    number = clamp_page(number, total, MOST_FOUND)
    items = store.conflicts(dataset, MOST_FOUND, offset=(number - 1) * MOST_FOUND)
    results = [(item, asked.address("conflicts", item.draft.id), _votes(item, (), asked)) for item in items]
    part = part_of(results, number, total, MOST_FOUND, asked.address("conflicts"), {})
    return asked.show("conflicts", part=part, done=done)


def _votes(item: AnnotationItem, comments: Sequence[Comment], asked: "DatasetRequest") -> list[dict[str, Any]]:
    """What everybody said about an item, in the order of what they are called; what decided it comes last."""
    names = shown_names(item, comments, asked.user, asked.called)
    views = [label_view(label, item, names[label.annotator, label.adjudicates]) for label in item.labels]
    return sorted(views, key=lambda view: (view["label"].adjudicates, view["by"]))


@router.get("/{dataset}/conflicts/{draft}")
def conflict(asked: ByAdjudicator, draft: str, done: str = "") -> Response:
    """One item with what everybody said about it."""
    return _conflict_page(asked, asked.item(draft), done=done)


@router.post("/{dataset}/conflicts/{draft}")
def decide(asked: ByAdjudicator, draft: str, form: Annotated[DecisionForm, Form()]) -> Response:
    """Store the outcome of an item, over its labels, and go on to the next conflict."""
    item = asked.item(draft)
    if is_rubric(item.draft.wording):
        form = form.with_taken(item)
        if form.act:
            return _conflict_page(asked, item, form=form)
    try:
        if not form.like:
            label = read_form(form, item.draft, asked.user.name)
        elif same := next((label for label in item.labels if label.key == form.like), None):
            label = replace(same, annotator=asked.user.name, key=form.key)
        else:
            raise Missing("This label was withdrawn in the meantime.")
        # The time that a decision takes is not stored.
        asked.store.label(asked.dataset, replace(label, adjudicates=True, seconds=None))
    except InputError as error:
        return _conflict_page(asked, item, form=form, error=str(error))
    following = asked.store.next_conflict(asked.dataset, draft)
    return asked.back("conflicts", *filter(None, [following]), done="decided")


@router.post("/{dataset}/conflicts/{draft}/comment")
def comment_on_conflict(asked: ByAdjudicator, draft: str, form: Annotated[CommentForm, Form()]) -> Response:
    """Add to the discussion of an item as an adjudicator."""
    item = asked.item(draft)
    try:
        asked.store.comment(asked.dataset, draft, asked.user.name, form.comment, key=form.key, adjudicates=True)
    except InputError as error:
        return _conflict_page(asked, item, error=str(error))
    return asked.back("conflicts", draft, done="comment", anchor="#discussion")


def _conflict_page(
    asked: DatasetRequest, item: AnnotationItem, *, done: str = "", form: LabelForm | None = None, error: str = ""
) -> Response:
    store, dataset = asked.store, asked.dataset
    comments, following = store.comments(dataset, item.draft.id), store.next_conflict(dataset, item.draft.id)
    decided = next((label for label in reversed(item.labels) if label.adjudicates), None)
    if form is None and decided is None and is_rubric(item.draft.wording):
        form = LabelForm()  # A decision begins with what is taken from the labels.
    confidence = not store.settings(dataset).hide_confidence
    return asked.show(
        "conflict",
        done=done,
        error=error,
        action=asked.address("conflicts", item.draft.id),
        item=item_view(item, confidence=confidence, own=decided, form=form),
        labels=_votes(item, comments, asked),
        comments=_comment_views(comments, shown_names(item, comments, asked.user, asked.called)),
        state=item.state,
        following=following and asked.address("conflicts", following),
        conflicts=store.progress(dataset).conflicts,
        key=new_key(),
    )


@router.get("/{dataset}/agreement")
def agreement(asked: ByAdjudicator) -> Response:
    """How far annotators agree, and what each of them did."""
    store, dataset, app = asked.store, asked.dataset, asked.app
    revision, work = store.revision(dataset), work_of(store, dataset)

    def once(name: str, make: Callable[[], Any]) -> Any:
        return app.computed.get((name, dataset, revision), make)

    return asked.show(
        "agreement",
        agreement=agreement_of(app, dataset),
        ratings=once("ratings", lambda: rating_agreement(store.items(dataset))),
        rubrics=once("rubrics", lambda: rubric_agreement(store.items(dataset), app.encoder()))
        if work == "rubrics"
        else None,
        work=work,
        annotators=once("annotators", lambda: store.annotators(dataset)),
        called=asked.called,
    )


@router.get("/{dataset}/export")
def export(asked: ByAdjudicator, format: str = "") -> Response:
    """What can be exported; with a format, the labels of everybody as a file."""
    store, dataset = asked.store, asked.dataset
    if not format:
        said, progress = store.labels(dataset), store.progress(dataset)
        decisions = sum(label.adjudicates for label in said)
        counts = {"label": len(said) - decisions, "decision": decisions, "comment": len(store.comments(dataset))}
        formats = RUBRICS | FORMATS if work_of(store, dataset) == "rubrics" else FORMATS
        return asked.show("export", formats=formats, progress=progress, counts=counts)
    _check_format(format, FORMATS | RUBRICS)
    return export_labels(asked.app, dataset, cast(Any, format))


@router.get("")
def queues(request: Request, app: App, user: Annotator) -> Response:
    """All datasets that can be annotated, with how far they and the reader are."""
    store = store_of(app)
    results = [
        {
            "queue": queue,
            "base": address(queue.dataset),
            "progress": (progress := store.progress(queue.dataset, user.name)),
            "total": total_of(progress),
            "training": user.may("admin") and training_offered(store, queue.dataset),
        }
        for queue in store.queues()
    ]
    return page(request, "annotate/queues.html.j2", queues=results)


@router.get("/{dataset}")
def next_item(asked: ByAnnotator, done: str = "") -> Response:
    """The item that the reader should label now."""
    item = asked.store.next(asked.dataset, asked.user.name)
    if item is not None:
        return _item_page(asked, item, done=done)
    return asked.show("nothing", done=done, **asked.progress_values(done))


@router.get("/{dataset}/guidelines")
def guidelines(asked: ByAnnotator) -> Response:
    """How to judge."""
    return asked.show("guidelines", reasons=ANNOTATION_REASONS)


@router.get("/{dataset}/questions")
def questions(
    asked: ByAnnotator, q: Search = "", kind: Search = "", state: ItemFilterState = "", number: PageNumber = 1
) -> Response:
    """The questions of a dataset that fit, a part of them on each page."""
    store, dataset, user = asked.store, asked.dataset, asked.user
    wanted, start = ItemFilter(q, kind, state), (number - 1) * MOST_FOUND
    result, total = store.find(dataset, user.name, wanted, MOST_FOUND, offset=start)
    listed, given = [(one, _place(one, dataset, user)) for one in result], {"q": q, "kind": kind, "state": state}
    return asked.show(
        "questions",
        part=part_of(listed, number, total, MOST_FOUND, asked.address("questions"), given),
        given=given,
        kinds={kind: TYPES[kind].title for kind in store.kinds(dataset)},
        states=STATES,
    )


def _place(found: FoundItem, dataset: str, user: User) -> str:
    """Address of the page on which the reader may do something about an item; empty where there is none."""
    draft = found.draft.id
    if user.may("adjudicator") and found.state != "open":
        return address(dataset, "conflicts", draft)
    return address(dataset, draft) if found.own_label is not None or found.state == "open" else ""


@router.get("/{dataset}/history")
def history(asked: ByAnnotator, annotator: str = "", after: str = "") -> Response:
    """What somebody said, the newest first: oneself, or for adjudicators anybody, on what is decided."""
    store, dataset, name = asked.store, asked.dataset, annotator or asked.user.name
    labels = asked.history(name, MOST_HISTORY + 1, after or None)
    here, whose = asked.address("history"), {"annotator": annotator} if annotator else {}
    older = {**whose, "after": labels[MOST_HISTORY - 1].key} if len(labels) > MOST_HISTORY else {}
    listed = [
        (
            label_view(label, asked.item(label.draft)),
            asked.address(*(["conflicts"] if label.adjudicates else []), label.draft),
        )
        for label in labels[:MOST_HISTORY]
    ]
    return asked.show(
        "history",
        annotator=asked.called(name),
        own=name == asked.user.name,
        labels=listed,
        progress=store.progress(dataset, name),
        newest=f"{here}?{urlencode(whose)}" if after else "",
        older=f"{here}?{urlencode(older)}" if older else "",
    )


@router.post("/{dataset}/undo")
def undo(asked: ByAnnotator, last: Annotated[str, Form()] = "") -> Response:
    """Take back what the reader did last, and show it again.

    ``last`` is the key of the newest label when the page was shown: a second click takes nothing more back.
    """
    newest = asked.store.history(asked.dataset, asked.user.name, limit=1)
    shown = last == (newest[0].key if newest else "")
    taken = asked.store.undo(asked.dataset, asked.user.name) if shown else None
    if taken is None:
        return asked.back(done="nothing")
    try:
        asked.own_item(taken)
    except Refused:
        # A skip that others took up in the meantime, or that lies before the reader beside another item.
        return asked.back(done="undo")
    return asked.back(taken, done="undo")


@router.post("/{dataset}/unskip")
def unskip(asked: ByAnnotator) -> Response:
    """Put what the reader skipped back into their queue."""
    asked.store.unskip(asked.dataset, asked.user.name)
    return asked.back(done="skipped")


@router.get("/{dataset}/{draft}")
def one_item(asked: ByAnnotator, draft: str, done: str = "") -> Response:
    """One item, to label it or to change what one said."""
    return _item_page(asked, asked.own_item(draft), done=done)


@router.post("/{dataset}/{draft}")
def label(asked: ByAnnotator, draft: str, form: Annotated[LabelForm, Form()]) -> Response:
    """Store what the reader says, and go on to the next item."""
    item = asked.item(draft)
    if form.act and is_rubric(item.draft.wording):
        return _item_page(asked, asked.own_item(draft), form=form)
    try:
        asked.store.label(asked.dataset, read_form(form, item.draft, asked.user.name))
    except InputError as error:
        asked.own_item(draft)
        return _item_page(asked, item, form=form, error=str(error))
    return asked.back(done="label")


@router.post("/{dataset}/{draft}/comment")
def comment(asked: ByAnnotator, draft: str, form: Annotated[CommentForm, Form()]) -> Response:
    """Add to the discussion of an item, as one of its annotators."""
    item = asked.own_item(draft)
    try:
        asked.store.comment(asked.dataset, draft, asked.user.name, form.comment, key=form.key)
    except InputError as error:
        return _item_page(asked, item, error=str(error))
    return asked.back(draft, done="comment", anchor="#discussion")


@router.post("/{dataset}/{draft}/skip")
def skip(asked: ByAnnotator, draft: str) -> Response:
    """Leave an item for later."""
    asked.own_item(draft)
    asked.store.skip(asked.dataset, draft, asked.user.name)
    return asked.back(done="skip")


def _check_format(name: str, known: dict[str, tuple[str, str]]) -> None:
    if name not in known:
        raise InputError(f"There is no format {name!r}: there are {', '.join(known)}.")
