"""Annotation in the API: the queue of an annotator, labels, conflicts, agreement, and labels out and in."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Query
from pydantic import AfterValidator, AliasPath, BeforeValidator, Field, FiniteFloat

from climassay.errors import InputError
from climassay.generation import Draft, Wording
from climassay.generation.annotation import (
    ANNOTATION_REASONS,
    Agreement,
    AnnotationSettings,
    AnnotationStore,
    Comment,
    ImportedLabel,
    ImportedSkip,
    ImportReport,
    Item,
    ItemFilter,
    Label,
)
from climassay.generation.annotation.labels import ItemFilterState, ItemState
from climassay.generation.annotation.long_answers import finished_rubrics
from climassay.questions import Kind, Level
from climassay.web.access import Adjudicator, Admin, Annotator
from climassay.web.accounts import User
from climassay.web.annotate.views import (
    LONGEST_TIME,
    agreement_of,
    item_of,
    own_item,
    queue_of,
    shown_names,
    store_of,
    train,
    visible_comments,
)
from climassay.web.api.base import (
    PRINTABLE,
    AfterName,
    AfterNumber,
    CriterionData,
    Data,
    Extended,
    Figure,
    Limit,
    Listed,
    Moment,
    Name,
    Share,
    Text,
    area,
    field,
    first_of,
    named,
    part_of,
    whole,
)
from climassay.web.api.server import JobData, job_data
from climassay.web.app_state import App
from climassay.web.failures import Refused

router = area("/annotate", "annotation")
DATASETS = "/datasets/{dataset}"
ITEMS = DATASETS + "/items/{draft}"
DatasetName = Annotated[str, named("Name of the dataset.", "clouds")]
DraftId = Annotated[str, named("Id of the question.", "q0123456789ab")]
ASKED = "Why do pure droplets not freeze at −10 °C?"
ANSWERED = "An ice embryo of critical size hardly ever forms by chance."


class ReasonData(Data):
    """Why a question may be rejected."""

    name: str = field("wrong answer")
    meaning: str = field("The marked answer is wrong")


class QueueData(Data):
    """A dataset of generated questions."""

    dataset: str = field("clouds")
    items: int = field(60)
    open: int = field(40, "Labels are still wanted.")
    settled: int = field(18, "There is an outcome.")
    conflicts: int = field(2, "The labels do not agree.")
    overlap: int = field(2, "Labels that an item needs.")


class WordingData(Data):
    """The words of a question."""

    question: Text = field(ASKED, "The question; for cloze the whole statement, nothing masked.")
    answer: Text = field(ANSWERED, default="")
    """Freeform: one or two sentences; cloze: the masked term; mcq: follows from the correct option."""
    options: list[Text] = field([], "Multiple choice only, without letters.", default=[], max_length=26)
    correct: int | None = field(None, default=None, ge=0, le=25)
    """Multiple choice only: index of the correct option, from 0."""


def _as_stored(given: Any) -> Any:
    """Stored words as they are answered, however long they were written."""
    if not isinstance(given, Wording):
        return given
    return WordingData.model_construct(
        question=given.question, answer=given.answer, options=list(given.options), correct=given.correct
    )


StoredWording = Annotated[WordingData, BeforeValidator(_as_stored)]


class SourcePassageData(Data):
    """A passage that a question was written from."""

    id: str = field("3f2a9c1d-4")
    text: str = field("Pure cloud droplets freeze by themselves only near −38 °C.")
    document: str = field("Clouds and Climate")
    place: str = field("Clouds and Climate, Ice > Nucleation, pp. 41-42", "The whole citation, in words.")
    url: str | None = field("https://example.org/clouds")
    licence: str | None = field("CC BY 4.0")
    similarity: Figure = field(0.71, "Cosine to the main passage; null for that one itself.")


class LabelData(Data):
    """What somebody said about an item."""

    key: str = field("7f3c-1")
    draft: str = field("q0123456789ab")
    annotator: str = field("ada")
    accepted: bool = field(False)
    reasons: list[str] = field(["wrong answer"], "Why it is rejected, the main reason first.")
    remark: str = field("The passage says −38 °C.")
    wording: StoredWording | None
    """The words after an edit, the chosen cloze term included; null where they stay as they are."""
    seconds: float | None = field(24.5, "Time spent on the item.")
    made_at: Moment
    withdrawn_at: Moment | None
    """When it was undone or replaced; null while it counts."""
    adjudicates: bool = field(False, "Whether it decides a conflict.")


class ItemData(Data):
    """A question that waits for labels or has some."""

    dataset: str = field("clouds")
    draft: str = field("q0123456789ab", "Id of the question.", validation_alias=AliasPath("draft", "id"))
    kind: Kind = field("freeform", validation_alias=AliasPath("draft", "kind"))
    level: Level = field("base", validation_alias=AliasPath("draft", "level"))
    wording: StoredWording = Field(validation_alias=AliasPath("draft", "wording"))
    passages: list[SourcePassageData] = Field(validation_alias=AliasPath("draft", "passages"))
    """What it was written from, the main passage first."""
    state: ItemState = field("open")
    suggested_term: str | None = field(None, "Cloze: the masker's choice.")
    term_candidates: list[str] = field([], "Cloze: words that can be masked, in the order of the statement.")
    preselected: list[str] = field([], "Reasons for rejection that the automatic checks found.")
    p_valid: Figure = field(None)
    """The validator's probability that it is valid; null where there is none, or where it is not to be seen."""
    labels: list[LabelData]
    """Those that count: one's own, for adjudicators everybody's, with names once the item is decided."""


class NextItem(Data):
    """What is to be labelled now."""

    item: ItemData | None
    """Null where nothing is left."""


def _words(given: WordingData | None) -> Wording | None:
    """Words as they were sent; the answer of a multiple-choice question is its correct option."""
    if given is None:
        return None
    answer, correct = given.answer, given.correct
    if given.options and correct is not None and correct < len(given.options):
        answer = given.options[correct]
    return Wording(given.question, answer, tuple(given.options), correct)


class Judgement(Data):
    """What one says about an item."""

    key: Name = field("7f3c-1")
    """Made by who sends it, new for every label and the same whenever that label is sent again: it is stored once."""
    accepted: bool = field(False, "Whether the question is valid, after the edit if there is one.")
    reasons: list[Name] = field(["wrong answer"], default=[], max_length=20)
    """Why it is not, the main reason first; names that `GET /api/v1/annotate/reasons` lists."""
    remark: Text = field("The passage says −38 °C.", "Needed with the reason `other`.", default="")
    wording: WordingData | None = field(None, default=None)
    """The whole wording after an edit; of a cloze statement with the chosen term. Only where accepted."""
    seconds: FiniteFloat | None = field(24.5, "Time spent on the item.", default=None, ge=0, le=LONGEST_TIME)

    def for_store(self, draft: Draft) -> dict[str, Any]:
        """What the store is given about a draft."""
        wording = _words(self.wording)
        plain = self.model_dump(include={"key", "accepted", "reasons", "remark"})
        return plain | {"wording": None if wording == draft.wording else wording}


class UndoneData(Data):
    """What was taken back."""

    draft: str | None = field("q0123456789ab", "Whose label or skip it was; null where there was nothing to take back.")


class CountData(Data):
    """How many."""

    items: int = field(3)


class ProgressData(Data):
    """How far a dataset has come, and oneself in it."""

    items: int = field(60)
    left_out: int = field(4, "Drafts that nobody is asked about: rejected by the automatic steps, failed, or decided.")
    settled: int = field(18)
    conflicts: int = field(2)
    mine: int = field(12, "Items that one has labelled.")
    adjudicated: int = field(0, "Items that one has adjudicated.")
    skipped: int = field(1)
    left_for_me: int = field(27, "Open items that one neither labelled nor skipped.")
    seconds: float = field(432.5, "Time that one spent on labels.")
    labelled_by: dict[str, int] | None = field(None, "Labels by annotator, for adjudicators; else null.")


class PairData(Data):
    """Two annotators on the items that both labelled."""

    first: str = field("ada")
    second: str = field("bob")
    kappa: Share
    """Cohen's."""
    raw: Share
    """Share of items with the same label."""


class AgreementData(Data):
    """How far annotators agree on what is valid, before any adjudication; null where no item has two labels."""

    items: int = field(20, "Labelled by two annotators or more.")
    raw: Share | None
    """Share of agreeing pairs of labels, averaged over items."""
    pairs: list[PairData]
    fleiss: Share | None
    """Fleiss' kappa."""
    krippendorff: Share | None
    """Krippendorff's nominal alpha."""


class RubricQuestionData(Data):
    """A long-form question with the rubric that people wrote."""

    id: str = field("q00001", "As in the file of questions.")
    question: str = field("Why does the stratosphere cool?")
    audience: str = field("a student")
    answer: str = field("", "The reference answer; empty where there is none.")
    context: str | None = field(None, "The text that the question rests on.")
    document: str | None = field(None)
    section: str | None = field(None)
    rubric: list[CriterionData]


class AnnotatorData(Data):
    """What one annotator did."""

    annotator: str = field("ada")
    labels: int = field(12)
    accepted: Share | None
    """Share of the labels that accept."""
    reasons: dict[str, int] = field({"wrong answer": 3}, "Reason for rejection and labels that name it.")
    median_seconds: Figure = field(24.5)
    agreement: Share | None
    """Share of labels that the outcome confirms, among settled items that somebody else spoke about too."""
    skips: int = field(1)
    edits: int = field(2)
    adjudications: int = field(0)


MOST_LABELS = 100_000
_EARLIEST, _LATEST = datetime(1970, 1, 2, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)


def _likely(when: datetime) -> datetime:
    if not _EARLIEST <= when <= _LATEST:
        raise ValueError("a label was made between 1970 and 2200")
    return when


Time = Annotated[Moment, AfterValidator(_likely)]


class SkipData(Data):
    """An item that an annotator passed over."""

    draft: Name = field("q0123456789ab")
    annotator: Name = field("ada")
    made_at: Time


class FoundItemData(Data):
    """An item in a list."""

    draft: str = field("q0123456789ab", "Id of the question.", validation_alias=AliasPath("draft", "id"))
    kind: Kind = field("freeform", validation_alias=AliasPath("draft", "kind"))
    level: Level = field("base", validation_alias=AliasPath("draft", "level"))
    question: str = field(ASKED, validation_alias=AliasPath("draft", "wording", "question"))
    state: ItemState = field("open")
    own: LabelData | None
    """What one said about it oneself."""
    skipped: bool = field(False, "Whether one skipped it.")
    comments: int = field(2, "Comments of everybody.")


class CommentData(Data):
    """A contribution to the discussion of an item."""

    draft: str = field("q0123456789ab")
    author: str = field("Annotator 1")
    """Oneself by name, others by number; adjudicators see all names once the item is decided."""
    text: str = field("The passage gives 0.41 for sea ice only.")
    made_at: Moment
    adjudicates: bool = field(False, "Whether it was written by an adjudicator at work on a conflict.")


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


class ExportData(Data):
    """Everything that was said about a dataset."""

    dataset: str = field("clouds")
    settings: AnnotationSettings
    labels: list[LabelData]
    """In the order in which they were made, withdrawn ones included."""
    skips: list[SkipData]
    comments: list[WholeComment]


class LabelToImport(Data):
    """A label from elsewhere."""

    key: Name = field("7f3c-1", "Unique in the dataset, and the same whenever the label is given again.")
    draft: Name = field("q0123456789ab")
    annotator: Name = field("ada")
    accepted: bool = field(True)
    reasons: list[Name] = field([], default=[], max_length=20)
    remark: Text = field("", default="")
    wording: WordingData | None = field(None, default=None)
    seconds: FiniteFloat | None = field(24.5, default=None, ge=0)
    made_at: Time | None = field("2026-05-31T12:00:00+00:00", "By default now.", default=None)
    withdrawn_at: Time | None = field(None, default=None)
    adjudicates: bool = field(False, default=False)

    def given(self) -> ImportedLabel:
        """The label as the store takes it."""
        when = {"made_at": self.made_at, "withdrawn_at": self.withdrawn_at}
        moments = {name: None if one is None else one.timestamp() for name, one in when.items()}
        plain = self.model_dump(exclude={"wording"}) | {"reasons": tuple(self.reasons)} | moments
        return ImportedLabel(**plain, wording=_words(self.wording))


class Import(Data):
    """Labels, skips and comments from elsewhere, as an export has them."""

    labels: list[LabelToImport] = Field(max_length=MOST_LABELS)
    skips: list[SkipData] = field([], default=[], max_length=MOST_LABELS)
    comments: list[WholeComment] = field([], default=[], max_length=MOST_LABELS)


class ImportedData(Data):
    """What became of labels from elsewhere."""

    stored: int = field(12, "New ones.")
    known: int = field(0, "There already, by their keys.")
    withdrawn: int = field(0, "There already, and withdrawn elsewhere meanwhile: now here too.")
    refused: list[str] = field([], "One sentence for each that cannot be stored.")
    comments: int = field(0, "New comments.")


@router.get("/reasons", response_model=Listed[ReasonData])
def list_reasons(user: Annotator) -> dict[str, Any]:
    """Why a question may be rejected."""
    return whole([{"name": one.name, "meaning": one.words} for one in ANNOTATION_REASONS])


@router.get("/datasets", response_model=Listed[QueueData])
def list_queues(app: App, user: Annotator, limit: Limit = 50, after: AfterName = None) -> dict[str, Any]:
    """Datasets by name, with how many questions to annotate each has."""
    return part_of(store_of(app).queues(), limit, lambda one: one.dataset, after)


@router.get(DATASETS + "/settings", response_model=AnnotationSettings)
def get_settings(app: App, user: Annotator, dataset: DatasetName) -> AnnotationSettings:
    """How a dataset is annotated."""
    return queue_of(app, dataset).settings(dataset)


@router.put(DATASETS + "/settings", response_model=AnnotationSettings)
def change_settings(app: App, user: Admin, dataset: DatasetName, settings: AnnotationSettings) -> AnnotationSettings:
    """Set how a dataset is annotated; states, outcomes and order of its items follow at once."""
    store = queue_of(app, dataset)
    store.configure(dataset, settings)
    return store.settings(dataset)


@router.post(DATASETS + "/retrain", status_code=202)
def retrain_validator(app: App, user: Admin, dataset: DatasetName) -> JobData:
    """Train a validator on the settled items, and put the queue into the order of its doubts; a job does it.

    Where such a job waits or runs already, it is the answer. It fails where there are too few labels of either kind.
    """
    return job_data(app.jobs.get(train(app, dataset, user)), user)


@router.get(DATASETS + "/next", response_model=NextItem)
def get_next_item(
    app: App,
    user: Annotator,
    dataset: DatasetName,
    after: Annotated[
        str | None, Query(description="An item to pass over this time.", pattern=PRINTABLE, max_length=40)
    ] = None,
) -> dict[str, Any]:
    """The item to label now: the least certain one first. It is kept for a while for who gets it."""
    store = queue_of(app, dataset)
    item = store.next(dataset, user.name, after)
    return {"item": item and _item(store, dataset, item, user)}


@router.get(DATASETS + "/items", response_model=Listed[FoundItemData])
def list_items(
    app: App,
    user: Annotator,
    dataset: DatasetName,
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
) -> dict[str, Any]:
    """Items that fit, in the order in which they were generated, numbered from 0."""
    found, total = queue_of(app, dataset).find(
        dataset, user.name, ItemFilter(q, kind or "", state), limit, start=after + 1
    )
    end = after + len(found)
    return {"items": found, "next": end if found and end + 1 < total else None}


@router.get(ITEMS, response_model=ItemData)
def get_item(app: App, user: Annotator, dataset: DatasetName, draft: DraftId) -> Extended:
    """One item: one that one has labelled, or that wants a label of one's own, which is kept for a while from now on.

    For adjudicators any item.
    """
    store = queue_of(app, dataset)
    return _item(store, dataset, own_item(store, dataset, draft, user), user)


@router.post(ITEMS + "/label", response_model=LabelData)
def label_item(app: App, user: Annotator, dataset: DatasetName, draft: DraftId, judgement: Judgement) -> Label:
    """Say whether a question is valid.

    A later label of the same annotator takes the place of the earlier one. Sending a label again with its key stores
    nothing, and is answered with the label as it is stored.
    """
    store = queue_of(app, dataset)
    known = _stored(store, dataset, draft, user.name, judgement.key)
    if known is None:
        item = own_item(store, dataset, draft, user)
        store.label(dataset, draft, user.name, **judgement.for_store(item.draft), seconds=judgement.seconds)
        known = _stored(store, dataset, draft, user.name, judgement.key)
    return _still_there(known)


@router.post(ITEMS + "/skip")
def skip_item(app: App, user: Annotator, dataset: DatasetName, draft: DraftId) -> ProgressData:
    """Leave an item to others; it does not come again until it is asked for."""
    store = queue_of(app, dataset)
    own_item(store, dataset, draft, user)
    store.skip(dataset, draft, user.name)
    return _progress(store, dataset, user)


@router.post(ITEMS + "/adjudicate", response_model=LabelData)
def adjudicate_item(app: App, user: Adjudicator, dataset: DatasetName, draft: DraftId, judgement: Judgement) -> Label:
    """Decide an item over its labels: a conflict, or one that is settled wrongly. The time spent is not kept."""
    store = queue_of(app, dataset)
    item = item_of(store, dataset, draft)
    store.adjudicate(dataset, draft, user.name, **judgement.for_store(item.draft))
    return _still_there(_stored(store, dataset, draft, user.name, judgement.key))


@router.get(ITEMS + "/comments", response_model=Listed[CommentData])
def list_comments(app: App, user: Annotator, dataset: DatasetName, draft: DraftId) -> dict[str, Any]:
    """The discussion of an item, oldest first: one's own comments, and everybody's once one has labelled it.

    Adjudicators see all comments.
    """
    store = queue_of(app, dataset)
    item = own_item(store, dataset, draft, user)
    everything = user.may("adjudicator")
    comments = store.comments(dataset, draft) if everything else visible_comments(store, dataset, item, user)
    names = shown_names(item, comments, user)
    return whole([replace(one, author=names[one.author, one.adjudicates]) for one in comments])


@router.post(ITEMS + "/comments")
def add_comment(app: App, user: Annotator, dataset: DatasetName, draft: DraftId, comment: CommentToAdd) -> CountData:
    """Add to the discussion of an item that one may label; gives how many comments were stored now, 1 or 0."""
    if comment.adjudicates and not user.may("adjudicator"):
        raise Refused("Adjudicators alone write as such.")
    store = queue_of(app, dataset)
    own_item(store, dataset, draft, user)
    return CountData(items=int(store.comment(dataset, draft, user.name, **comment.model_dump())))


@router.post(DATASETS + "/undo")
def undo_last(app: App, user: Annotator, dataset: DatasetName) -> UndoneData:
    """Take back one's last label or skip."""
    return UndoneData(draft=queue_of(app, dataset).undo(dataset, user.name))


@router.post(DATASETS + "/unskip")
def take_up_skipped(app: App, user: Annotator, dataset: DatasetName) -> CountData:
    """Put everything that one has skipped back before oneself."""
    return CountData(items=queue_of(app, dataset).unskip(dataset, user.name))


@router.get(DATASETS + "/progress")
def get_progress(app: App, user: Annotator, dataset: DatasetName) -> ProgressData:
    """How far a dataset has come, and oneself in it."""
    return _progress(queue_of(app, dataset), dataset, user)


@router.get(DATASETS + "/history", response_model=Listed[LabelData])
def list_history(
    app: App,
    user: Annotator,
    dataset: DatasetName,
    annotator: Annotated[
        Name | None, Query(description="Whose; by default one's own. Others' history is for adjudicators.")
    ] = None,
    limit: Limit = 50,
    after: AfterName = None,
) -> dict[str, Any]:
    """The last labels of somebody that still count, the newest first; of others those on items that are decided."""
    name = annotator or user.name
    if name != user.name and not user.may("adjudicator"):
        raise Refused("What others said is for adjudicators.")
    found = queue_of(app, dataset).history(dataset, name, limit + 1, after=after, decided=name != user.name)
    return first_of(found, limit, lambda label: label.key)


@router.get(DATASETS + "/conflicts", response_model=Listed[ItemData])
def list_conflicts(
    app: App, user: Adjudicator, dataset: DatasetName, limit: Limit = 50, after: AfterName = None
) -> dict[str, Any]:
    """Items whose labels do not agree, by id, with all their labels, whose annotators go by numbers."""
    store = queue_of(app, dataset)
    part = part_of(store.conflicts(dataset), limit, lambda one: one.draft.id, after)
    return part | {"items": [_item(store, dataset, one, user) for one in part["items"]]}


@router.get(DATASETS + "/agreement", response_model=AgreementData)
def get_agreement(app: App, user: Adjudicator, dataset: DatasetName) -> Agreement:
    """How far annotators agree: raw, Cohen's and Fleiss' kappa, Krippendorff's alpha, with 95% intervals."""
    return agreement_of(app, dataset)


@router.get(DATASETS + "/rubrics", response_model=Listed[RubricQuestionData])
def list_rubrics(
    app: App, user: Adjudicator, dataset: DatasetName, limit: Limit = 50, after: AfterName = None
) -> dict[str, Any]:
    """Long-form questions whose rubric people have written and decided, by id."""
    return part_of(finished_rubrics(queue_of(app, dataset).items(dataset)), limit, lambda one: one.id, after)


@router.get(DATASETS + "/annotators", response_model=Listed[AnnotatorData])
def list_annotators(app: App, user: Adjudicator, dataset: DatasetName) -> dict[str, Any]:
    """What each annotator did, the busiest first."""
    return whole(queue_of(app, dataset).annotators(dataset))


@router.get(DATASETS + "/export", response_model=ExportData)
def export_labels(app: App, user: Adjudicator, dataset: DatasetName) -> dict[str, Any]:
    """Everything that was said, in one answer.

    CSV, JSON Lines and the files of Label Studio and Argilla come from `/annotate/{dataset}/export` and from
    `climassay annotate export`.
    """
    store = queue_of(app, dataset)
    return {
        "dataset": dataset,
        "settings": store.settings(dataset),
        "labels": store.labels(dataset, current=False),
        "skips": store.skipped(dataset),
        "comments": store.comments(dataset),
    }


@router.post(DATASETS + "/import", response_model=ImportedData)
def import_labels(app: App, user: Admin, dataset: DatasetName, given: Import) -> ImportReport:
    """Take in labels and comments, all in one transaction; doing it again changes nothing."""
    skips = [ImportedSkip(one.draft, one.annotator, one.made_at.timestamp()) for one in given.skips]
    comments = [Comment(**one.model_dump() | {"made_at": one.made_at.timestamp()}) for one in given.comments]
    return queue_of(app, dataset).import_labels(dataset, [one.given() for one in given.labels], skips, comments)


def _progress(store: AnnotationStore, dataset: str, user: User) -> ProgressData:
    progress = ProgressData.model_validate(store.progress(dataset, user.name))
    return progress if user.may("adjudicator") else progress.model_copy(update={"labelled_by": None})


def _item(store: AnnotationStore, dataset: str, item: Item, user: User) -> Extended:
    names = shown_names(item, (), user)
    labels = [
        replace(one, annotator=names[one.annotator, one.adjudicates]) if one.annotator != user.name else one
        for one in item.labels
        if user.may("adjudicator") or one.annotator == user.name
    ]
    p_valid = None if store.settings(dataset).hide_confidence else item.p_valid
    return Extended(item, dataset=dataset, labels=labels, p_valid=p_valid)


def _stored(store: AnnotationStore, dataset: str, draft: str, annotator: str, key: str) -> Label | None:
    labels = store.labels(dataset, draft=draft, annotator=annotator, current=False)
    return next((one for one in labels if one.key == key), None)


def _still_there(label: Label | None) -> Label:
    if label is None:
        raise InputError("The label was taken back a moment ago: ask for the next item.")
    return label
