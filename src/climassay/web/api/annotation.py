"""Annotation in the API: the queue of an annotator, labels, conflicts, agreement, and labels out and in."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Query
from pydantic import AfterValidator, BeforeValidator, Field, FiniteFloat

from climassay.errors import InputError
from climassay.generation import Draft, SourcePassage
from climassay.generation import Wording as DraftWording
from climassay.generation.annotation import (
    ANNOTATION_REASONS,
    Agreement,
    AnnotationSettings,
    Comment,
    ImportReport,
    Item,
    ItemFilter,
    Label,
)
from climassay.generation.annotation import Skip as DraftSkip
from climassay.generation.annotation.agreement import AnnotatorStatistics, PairAgreement
from climassay.generation.annotation.labels import AnnotationProgress, FoundItem, ItemFilterState, QueueSummary
from climassay.generation.annotation.long_answers import finished_rubrics
from climassay.generation.draft import Reason
from climassay.questions import Kind, Level, Question
from climassay.web.access import Annotator
from climassay.web.annotate.pages import ByAdjudicator, ByAdmin, ByAnnotator, DatasetRequest
from climassay.web.annotate.views import LONGEST_TIME, agreement_of, shown_names, store_of, train
from climassay.web.api.answers import answer, at, many, said
from climassay.web.api.base import (
    PRINTABLE,
    AfterName,
    AfterNumber,
    Data,
    Extended,
    Limit,
    Moment,
    Name,
    Text,
    area,
    field,
    first_of,
    listed,
    named,
    part_of,
    whole,
)
from climassay.web.api.server import JobData
from climassay.web.app_state import App
from climassay.web.failures import Refused

router = area("/annotate", "annotation")
DATASETS = "/datasets/{dataset}"
ITEMS = DATASETS + "/items/{draft}"
DraftId = Annotated[str, named("Id of the question.", "q0123456789ab")]
ASKED = "Why do pure droplets not freeze at −10 °C?"
ANSWERED = "An ice embryo of critical size hardly ever forms by chance."


class Wording(Data):
    """The words of a question."""

    question: Text = field(ASKED, "The question; for cloze the whole statement, nothing masked.")
    answer: Text = field(ANSWERED, default="")
    """Freeform: one or two sentences; cloze: the masked term; mcq: follows from the correct option."""
    options: list[Text] = field([], "Multiple choice only, without letters.", default=[], max_length=26)
    correct: int | None = field(None, default=None, ge=0, le=25)
    """Multiple choice only: index of the correct option, from 0."""


def _as_stored(given: Any) -> Any:
    """Stored words as they are answered, however long they were written."""
    if not isinstance(given, DraftWording):
        return given
    return Wording.model_construct(
        question=given.question, answer=given.answer, options=list(given.options), correct=given.correct
    )


StoredWording = Annotated[Wording, BeforeValidator(_as_stored)]


ReasonData = answer("Reason", Reason, "name", meaning=at("words", str))
QueueData = answer("Queue", QueueSummary, "dataset items open settled conflicts overlap")
SourcePassageData = answer("SourcePassage", SourcePassage, "id text document citation url licence similarity")
LABEL = "key draft annotator accepted reasons remark wording seconds made_at withdrawn_at adjudicates"
LabelData = answer("Label", Label, LABEL, wording=StoredWording | None)
_OF_DRAFT = {
    "draft": at("draft.id", str, "Id of the question."),
    "kind": at("draft.kind", Kind),
    "level": at("draft.level", Level),
}
ItemData = answer(
    "Item",
    Item,
    "state suggested_term term_candidates preselected p_valid",
    dataset=str,
    **_OF_DRAFT,
    wording=at("draft.wording", StoredWording),
    passages=at("draft.passages", many(SourcePassageData), "What it was written from, the main passage first."),
    labels=said(
        many(LabelData),
        "Those that count: one's own, for adjudicators everybody's, with names once the item is decided.",
    ),
)
NextItem = answer("NextItem", "What is to be labelled now.", item=said(ItemData | None, "Null where nothing is left."))
FoundItemData = answer(
    "FoundItem", FoundItem, "state own skipped comments", **_OF_DRAFT, question=at("draft.wording.question", str)
)
UndoneData = answer(
    "Undone",
    "What was taken back.",
    draft=said(str | None, "Whose label or skip it was; null where there was nothing to take back."),
)
CountData = answer("Count", "How many.", items=int)
ProgressData = answer(
    "Progress",
    AnnotationProgress,
    "items left_out settled conflicts mine adjudicated skipped left_for_me seconds",
    labelled_by=said(dict[str, int] | None, "Labels by annotator, for adjudicators; else null."),
)
PairData = answer("Pair", PairAgreement, "first second kappa raw")
AgreementData = answer("Agreement", Agreement, "items raw pairs fleiss krippendorff")
RubricQuestionData = answer("RubricQuestion", Question, "id question audience answer context document section rubric")
AnnotatorData = answer(
    "Annotator",
    AnnotatorStatistics,
    "annotator labels accepted reasons median_seconds agreement skips edits adjudications",
)
CommentData = answer("Comment", Comment, "draft author text made_at adjudicates")
ImportedData = answer("Imported", ImportReport, "stored known withdrawn refused comments")


def _words(given: Wording | None) -> DraftWording | None:
    """Wording as they were sent; the answer of a multiple-choice question is its correct option."""
    if given is None:
        return None
    answer, correct = given.answer, given.correct
    if given.options and correct is not None and correct < len(given.options):
        answer = given.options[correct]
    return DraftWording(given.question, answer, tuple(given.options), correct)


class Judgement(Data):
    """What one says about an item."""

    key: Name = field("7f3c-1")
    """Made by who sends it, new for every label and the same whenever that label is sent again: it is stored once."""
    accepted: bool = field(False, "Whether the question is valid, after the edit if there is one.")
    reasons: list[Name] = field(["wrong answer"], default=[], max_length=20)
    """Why it is not, the main reason first; names that `GET /api/v1/annotate/reasons` lists."""
    remark: Text = field("The passage says −38 °C.", "Needed with the reason `other`.", default="")
    wording: Wording | None = field(None, default=None)
    """The whole wording after an edit; of a cloze statement with the chosen term. Only where accepted."""
    seconds: FiniteFloat | None = field(24.5, "Time spent on the item.", default=None, ge=0, le=LONGEST_TIME)

    def label(self, draft: Draft, annotator: str) -> Label:
        """Return the label of a draft; its wording is None if the draft's is unchanged."""
        wording = _words(self.wording)
        return Label(
            draft.id,
            annotator,
            self.accepted,
            tuple(self.reasons),
            self.remark,
            None if wording == draft.wording else wording,
            self.seconds,
            key=self.key,
        )


MOST_LABELS = 100_000
_EARLIEST, _LATEST = datetime(1970, 1, 2, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)


def _likely(when: datetime) -> datetime:
    if not _EARLIEST <= when <= _LATEST:
        raise ValueError("a label was made between 1970 and 2200")
    return when


Time = Annotated[Moment, AfterValidator(_likely)]


class Skip(Data):
    """An item that an annotator passed over."""

    draft: Name = field("q0123456789ab")
    annotator: Name = field("ada")
    made_at: Time


class CommentToAdd(Data):
    """A comment to be written."""

    key: Name = field("7f3c-2", "New for every comment and the same whenever it is sent again: it is stored once.")
    text: Text = field("The passage gives 0.41 for sea ice only.")
    adjudicates: bool = field(False, "Whether to write as an adjudicator, which takes that role.", default=False)


class WholeComment(Data):
    """A comment as an export has it."""

    key: Name = field("7f3c-2")
    draft: Name = field("q0123456789ab")
    author: Name = field("ada")
    text: Text = field("The passage gives 0.41 for sea ice only.")
    made_at: Time
    adjudicates: bool = field(False, default=False)


ExportData = answer(
    "Export",
    "Everything that was said about a dataset.",
    dataset=str,
    settings=AnnotationSettings,
    labels=said(many(LabelData), "In the order in which they were made, withdrawn ones included."),
    skips=list[Skip],
    comments=list[WholeComment],
)


class LabelToImport(Data):
    """A label from elsewhere."""

    key: Name = field("7f3c-1", "Unique in the dataset, and the same whenever the label is given again.")
    draft: Name = field("q0123456789ab")
    annotator: Name = field("ada")
    accepted: bool = field(True)
    reasons: list[Name] = field([], default=[], max_length=20)
    remark: Text = field("", default="")
    wording: Wording | None = field(None, default=None)
    seconds: FiniteFloat | None = field(24.5, default=None, ge=0)
    made_at: Time | None = field("2026-05-31T12:00:00+00:00", "By default now.", default=None)
    withdrawn_at: Time | None = field(None, default=None)
    adjudicates: bool = field(False, default=False)

    def label(self) -> Label:
        """Return the label as the store takes it."""
        fields = self.model_dump() | {"reasons": tuple(self.reasons), "wording": _words(self.wording)}
        fields["made_at"] = 0.0 if self.made_at is None else self.made_at.timestamp()
        fields["withdrawn_at"] = None if self.withdrawn_at is None else self.withdrawn_at.timestamp()
        return Label(**fields)


class Import(Data):
    """Labels, skips and comments from elsewhere, as an export has them."""

    labels: list[LabelToImport] = Field(max_length=MOST_LABELS)
    skips: list[Skip] = field([], default=[], max_length=MOST_LABELS)
    comments: list[WholeComment] = field([], default=[], max_length=MOST_LABELS)


@router.get("/reasons", response_model=listed(ReasonData))
def list_reasons(user: Annotator) -> Any:
    """Why a question may be rejected."""
    return whole(ANNOTATION_REASONS)


@router.get("/datasets", response_model=listed(QueueData))
def list_queues(app: App, user: Annotator, limit: Limit = 50, after: AfterName = None) -> Any:
    """Datasets by name, with how many questions to annotate each has."""
    return part_of(store_of(app).queues(), limit, lambda one: one.dataset, after)


@router.get(DATASETS + "/settings")
def get_settings(asked: ByAnnotator) -> AnnotationSettings:
    """How a dataset is annotated."""
    return asked.store.settings(asked.dataset)


@router.put(DATASETS + "/settings")
def change_settings(asked: ByAdmin, settings: AnnotationSettings) -> AnnotationSettings:
    """Set how a dataset is annotated; states, outcomes and order of its items follow at once."""
    asked.store.configure(asked.dataset, settings)
    return asked.store.settings(asked.dataset)


@router.post(DATASETS + "/retrain", status_code=202, response_model=JobData)
def retrain_validator(asked: ByAdmin) -> Any:
    """Train a validator on the settled items, and put the queue into the order of its doubts; a job does it.

    Where such a job waits or runs already, it is the answer. It fails where there are too few labels of either kind.
    """
    return asked.app.jobs.get(train(asked.app, asked.dataset, asked.user))


@router.get(DATASETS + "/next", response_model=NextItem)
def get_next_item(
    asked: ByAnnotator,
    after: Annotated[
        str | None, Query(description="An item to pass over this time.", pattern=PRINTABLE, max_length=40)
    ] = None,
) -> Any:
    """The item to label now: the least certain one first. It is kept for a while for who gets it."""
    item = asked.store.next(asked.dataset, asked.user.name, after)
    return {"item": item and _item(asked, item)}


@router.get(DATASETS + "/items", response_model=listed(FoundItemData))
def list_items(
    asked: ByAnnotator,
    q: Annotated[str, Query(description="Part of the question, the answer or an option.", max_length=200)] = "",
    kind: Annotated[Kind | None, Query(description="Only questions of this type.")] = None,
    state: Annotated[
        ItemFilterState,
        Query(
            description="`todo`, `done` or `skipped` by oneself; `conflict` or `decided` for everybody; by default all."
        ),
    ] = "",
    limit: Limit = 50,
    after: AfterNumber = -1,
) -> Any:
    """Items that fit, in the order in which they were generated, numbered from 0."""
    wanted = ItemFilter(q, kind or "", state)
    result, total = asked.store.find(asked.dataset, asked.user.name, wanted, limit, offset=after + 1)
    end = after + len(result)
    return {"items": result, "next": end if result and end + 1 < total else None}


@router.get(ITEMS, response_model=ItemData)
def get_item(asked: ByAnnotator, draft: DraftId) -> Any:
    """One item: one that one has labelled, or that wants a label of one's own, which is kept for a while from now on.

    For adjudicators any item.
    """
    return _item(asked, asked.own_item(draft))


@router.post(ITEMS + "/label", response_model=LabelData)
def label_item(asked: ByAnnotator, draft: DraftId, judgement: Judgement) -> Any:
    """Say whether a question is valid.

    A later label of the same annotator takes the place of the earlier one. Sending a label again with its key stores
    nothing, and is answered with the label as it is stored.
    """
    known = _stored(asked, draft, judgement.key)
    if known is None:
        asked.store.label(asked.dataset, judgement.label(asked.own_item(draft).draft, asked.user.name))
        known = _stored(asked, draft, judgement.key)
    return _still_there(known)


@router.post(ITEMS + "/skip", response_model=ProgressData)
def skip_item(asked: ByAnnotator, draft: DraftId) -> Any:
    """Leave an item to others; it does not come again until it is asked for."""
    asked.own_item(draft)
    asked.store.skip(asked.dataset, draft, asked.user.name)
    return get_progress(asked)


@router.post(ITEMS + "/adjudicate", response_model=LabelData)
def adjudicate_item(asked: ByAdjudicator, draft: DraftId, judgement: Judgement) -> Any:
    """Decide an item over its labels: a conflict, or one that is settled wrongly. The time spent is not kept."""
    label = judgement.label(asked.item(draft).draft, asked.user.name)
    asked.store.label(asked.dataset, replace(label, adjudicates=True, seconds=None))
    return _still_there(_stored(asked, draft, judgement.key))


@router.get(ITEMS + "/comments", response_model=listed(CommentData))
def list_comments(asked: ByAnnotator, draft: DraftId) -> Any:
    """The discussion of an item, oldest first: one's own comments, and everybody's once one has labelled it.

    Adjudicators see all comments.
    """
    item = asked.own_item(draft)
    comments = asked.visible_comments(item)
    if asked.user.may("adjudicator"):
        comments = list(asked.store.comments(asked.dataset, draft))
    names = shown_names(item, comments, asked.user)
    return whole([replace(one, author=names[one.author, one.adjudicates]) for one in comments])


@router.post(ITEMS + "/comments", response_model=CountData)
def add_comment(asked: ByAnnotator, draft: DraftId, comment: CommentToAdd) -> Any:
    """Add to the discussion of an item that one may label; gives how many comments were stored now, 1 or 0."""
    if comment.adjudicates and not asked.user.may("adjudicator"):
        raise Refused("Only adjudicators can write as adjudicators.")
    asked.own_item(draft)
    return {"items": int(asked.store.comment(asked.dataset, draft, asked.user.name, **comment.model_dump()))}


@router.post(DATASETS + "/undo", response_model=UndoneData)
def undo_last(asked: ByAnnotator) -> Any:
    """Take back one's last label or skip."""
    return {"draft": asked.store.undo(asked.dataset, asked.user.name)}


@router.post(DATASETS + "/unskip", response_model=CountData)
def take_up_skipped(asked: ByAnnotator) -> Any:
    """Put everything that one has skipped back before oneself."""
    return {"items": asked.store.unskip(asked.dataset, asked.user.name)}


@router.get(DATASETS + "/progress", response_model=ProgressData)
def get_progress(asked: ByAnnotator) -> Any:
    """How far a dataset has come, and oneself in it."""
    progress = asked.store.progress(asked.dataset, asked.user.name)
    return progress if asked.user.may("adjudicator") else Extended(progress, labelled_by=None)


@router.get(DATASETS + "/history", response_model=listed(LabelData))
def list_history(
    asked: ByAnnotator,
    annotator: Annotated[
        Name | None, Query(description="Whose; by default one's own. Others' history is for adjudicators.")
    ] = None,
    limit: Limit = 50,
    after: AfterName = None,
) -> Any:
    """The last labels of somebody that still count, the newest first; of others those on items that are decided."""
    return first_of(asked.history(annotator or "", limit + 1, after), limit, lambda label: label.key)


@router.get(DATASETS + "/conflicts", response_model=listed(ItemData))
def list_conflicts(asked: ByAdjudicator, limit: Limit = 50, after: AfterName = None) -> Any:
    """Items whose labels do not agree, by id, with all their labels, whose annotators go by numbers."""
    part = part_of(asked.store.conflicts(asked.dataset), limit, lambda one: one.draft.id, after)
    return part | {"items": [_item(asked, one) for one in part["items"]]}


@router.get(DATASETS + "/agreement", response_model=AgreementData)
def get_agreement(asked: ByAdjudicator) -> Any:
    """How far annotators agree: raw, Cohen's and Fleiss' kappa, Krippendorff's alpha, with 95% intervals."""
    return agreement_of(asked.app, asked.dataset)


@router.get(DATASETS + "/rubrics", response_model=listed(RubricQuestionData))
def list_rubrics(asked: ByAdjudicator, limit: Limit = 50, after: AfterName = None) -> Any:
    """Long-form questions whose rubric people have written and decided, by id."""
    return part_of(finished_rubrics(asked.store.items(asked.dataset)), limit, lambda one: one.id, after)


@router.get(DATASETS + "/annotators", response_model=listed(AnnotatorData))
def list_annotators(asked: ByAdjudicator) -> Any:
    """What each annotator did, the busiest first."""
    return whole(asked.store.annotators(asked.dataset))


@router.get(DATASETS + "/export", response_model=ExportData)
def export_labels(asked: ByAdjudicator) -> Any:
    """Everything that was said, in one answer.

    CSV, JSON Lines and the files of Label Studio and Argilla come from `/annotate/{dataset}/export` and from
    `climassay annotate export`.
    """
    store, dataset = asked.store, asked.dataset
    return {
        "dataset": dataset,
        "settings": store.settings(dataset),
        "labels": store.labels(dataset, current=False),
        "skips": store.skipped(dataset),
        "comments": store.comments(dataset),
    }


@router.post(DATASETS + "/import", response_model=ImportedData)
def import_labels(asked: ByAdmin, given: Import) -> Any:
    """Take in labels and comments, all in one transaction; doing it again changes nothing."""
    skips = [DraftSkip(skip.draft, skip.annotator, skip.made_at.timestamp()) for skip in given.skips]
    comments = [Comment(**one.model_dump() | {"made_at": one.made_at.timestamp()}) for one in given.comments]
    return asked.store.import_labels(asked.dataset, [label.label() for label in given.labels], skips, comments)


def _item(asked: DatasetRequest, item: Item) -> Extended:
    names, user = shown_names(item, (), asked.user), asked.user
    labels = [
        replace(one, annotator=names[one.annotator, one.adjudicates]) if one.annotator != user.name else one
        for one in item.labels
        if user.may("adjudicator") or one.annotator == user.name
    ]
    p_valid = None if asked.store.settings(asked.dataset).hide_confidence else item.p_valid
    return Extended(item, dataset=asked.dataset, labels=labels, p_valid=p_valid)


def _stored(asked: DatasetRequest, draft: str, key: str) -> Label | None:
    labels = asked.store.labels(asked.dataset, draft=draft, annotator=asked.user.name, current=False)
    return next((one for one in labels if one.key == key), None)


def _still_there(label: Label | None) -> Label:
    if label is None:
        raise InputError("The label was withdrawn a moment ago: ask for the next item.")
    return label
