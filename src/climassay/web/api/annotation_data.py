"""Annotation in the API's words: items, labels, progress, agreement."""

from typing import Any

from pydantic import Field, FiniteFloat

from climassay.generation import Draft, SourcePassage, Wording
from climassay.generation.annotation import (
    Agreement,
    AnnotationSettings,
    AnnotatorStatistics,
    Item,
    Label,
    Progress,
    QueueSummary,
)
from climassay.generation.annotation.labels import ItemState, Order
from climassay.questions import Kind, Level
from climassay.web.annotate.forms import LONGEST_TIME
from climassay.web.api.fields import (
    Data,
    Figure,
    Moment,
    Name,
    Share,
    Text,
    moment,
    share,
    some_moment,
    some_share,
)

ASKED = "Why do pure droplets not freeze at −10 °C?"
ANSWERED = "An ice embryo of critical size hardly ever forms by chance."


class ReasonData(Data):
    """Why a question may be rejected."""

    name: str = Field(examples=["wrong answer"])
    meaning: str = Field(examples=["The marked answer is wrong"])


class QueueData(Data):
    """A dataset that can be annotated."""

    dataset: str = Field(examples=["clouds"])
    items: int = Field(examples=[60])
    open: int = Field(examples=[40])
    """Labels are still wanted."""
    settled: int = Field(examples=[18])
    """There is an outcome."""
    conflicts: int = Field(examples=[2])
    """The labels do not agree."""
    overlap: int = Field(examples=[2])
    """Labels that an item needs."""


class SettingsData(Data):
    """How a dataset is annotated."""

    overlap: int = Field(default=1, ge=1, le=20, examples=[2])
    """Labels that an item needs."""
    hide_confidence: bool = Field(default=True, examples=[True])
    """Whether annotators do not see the validator's confidence."""
    lease_seconds: FiniteFloat = Field(default=1800, ge=1, le=604_800, examples=[1800])
    """How long an item is kept for who got it."""
    retrain_every: int = Field(default=50, ge=1, le=1_000_000, examples=[50])
    """Newly settled items after which a new training of the validator is offered."""
    include_rejected: bool = Field(default=False, examples=[False])
    """Whether drafts wait too that only screening, self-consistency or the validator rejected."""
    order: Order = Field(default="margin", examples=["margin"])
    """`margin` (least certain first), `paper`, `random`."""
    seed: int = Field(default=0, ge=0, le=2**31 - 1, examples=[0])


class WordingData(Data):
    """The words of a question."""

    question: Text = Field(examples=[ASKED])
    """The question; for cloze the whole statement, nothing masked."""
    answer: Text = Field(default="", examples=[ANSWERED])
    """Freeform: one or two sentences; cloze: the masked term; mcq: follows from the correct option."""
    options: list[Text] = Field(default=[], max_length=26, examples=[[]])
    """Multiple choice only, without letters."""
    correct: int | None = Field(default=None, ge=0, le=25, examples=[None])
    """Multiple choice only: index of the correct option, from 0."""


class SourcePassageData(Data):
    """A passage that a question was written from."""

    id: str = Field(examples=["3f2a9c1d-4"])
    text: str = Field(examples=["Pure cloud droplets freeze by themselves only near −38 °C."])
    document: str = Field(examples=["Clouds and Climate"])
    place: str = Field(examples=["Clouds and Climate, Ice > Nucleation, pp. 41-42"])
    """The whole citation, in words."""
    url: str | None = Field(examples=["https://example.org/clouds"])
    licence: str | None = Field(examples=["CC BY 4.0"])
    similarity: Figure = Field(examples=[0.71])
    """Cosine to the main passage; null for that one itself."""


class LabelData(Data):
    """What somebody said about an item."""

    key: str = Field(examples=["7f3c-1"])
    draft: str = Field(examples=["q0123456789ab"])
    annotator: str = Field(examples=["ada"])
    accepted: bool = Field(examples=[False])
    reasons: list[str] = Field(examples=[["wrong answer"]])
    """Why it is rejected, the main reason first."""
    remark: str = Field(examples=["The passage says −38 °C."])
    wording: WordingData | None
    """The words after an edit, the chosen cloze term included; null where they stay as they are."""
    seconds: float | None = Field(examples=[24.5])
    """Time spent on the item."""
    made_at: Moment
    withdrawn_at: Moment | None
    """When it was undone or replaced; null while it counts."""
    adjudicates: bool = Field(examples=[False])
    """Whether it decides a conflict."""


class ItemData(Data):
    """A question that waits for labels or has some."""

    dataset: str = Field(examples=["clouds"])
    draft: str = Field(examples=["q0123456789ab"])
    """Id of the question."""
    kind: Kind = Field(examples=["freeform"])
    level: Level = Field(examples=["base"])
    wording: WordingData
    passages: list[SourcePassageData]
    """What it was written from, the main passage first."""
    state: ItemState = Field(examples=["open"])
    suggested_term: str | None = Field(examples=[None])
    """Cloze: the masker's choice."""
    term_candidates: list[str] = Field(examples=[[]])
    """Cloze: words that can be masked, in the order of the statement."""
    preselected: list[str] = Field(examples=[[]])
    """Reasons for rejection that the automatic checks found."""
    p_valid: Figure = Field(examples=[None])
    """The validator's probability that it is valid; null where there is none, or where it is not to be seen."""
    labels: list[LabelData]
    """Those that count: one's own, for adjudicators everybody's."""


class NextItem(Data):
    """What is to be labelled now."""

    item: ItemData | None
    """Null where nothing is left."""


class Judgement(Data):
    """What one says about an item."""

    key: Name = Field(examples=["7f3c-1"])
    """Made by who sends it, new for every label and the same whenever that label is sent again: it is stored once."""
    accepted: bool = Field(examples=[False])
    """Whether the question is valid, after the edit if there is one."""
    reasons: list[Name] = Field(default=[], max_length=20, examples=[["wrong answer"]])
    """Why it is not, the main reason first; names that `GET /api/v1/annotate/reasons` lists."""
    remark: Text = Field(default="", examples=["The passage says −38 °C."])
    """Needed with the reason `other`."""
    wording: WordingData | None = Field(default=None, examples=[None])
    """The whole wording after an edit; of a cloze statement with the chosen term. Only where accepted."""
    seconds: FiniteFloat | None = Field(default=None, ge=0, le=LONGEST_TIME, examples=[24.5])
    """Time spent on the item."""


class UndoneData(Data):
    """What was taken back."""

    draft: str | None = Field(examples=["q0123456789ab"])
    """Whose label or skip it was; null where there was nothing to take back."""


class CountData(Data):
    """How many."""

    items: int = Field(examples=[3])


class ProgressData(Data):
    """How far a dataset has come, and oneself in it."""

    items: int = Field(examples=[60])
    settled: int = Field(examples=[18])
    conflicts: int = Field(examples=[2])
    mine: int = Field(examples=[12])
    """Items that one has labelled."""
    skipped: int = Field(examples=[1])
    left_for_me: int = Field(examples=[27])
    """Open items that one neither labelled nor skipped."""
    seconds: float = Field(examples=[432.5])
    """Time that one spent on labels."""
    labelled_by: dict[str, int] | None = Field(examples=[None])
    """Labels by annotator, for adjudicators; else null."""


class PairData(Data):
    """Two annotators on the items that both labelled."""

    first: str = Field(examples=["ada"])
    second: str = Field(examples=["bob"])
    kappa: Share
    """Cohen's."""
    raw: Share
    """Share of items with the same label."""


class AgreementData(Data):
    """How far annotators agree on what is valid, before any adjudication; null where no item has two labels."""

    items: int = Field(examples=[20])
    """Labelled by two annotators or more."""
    raw: Share | None
    """Share of agreeing pairs of labels, averaged over items."""
    pairs: list[PairData]
    fleiss: Share | None
    """Fleiss' kappa."""
    krippendorff: Share | None
    """Krippendorff's nominal alpha."""


class AnnotatorData(Data):
    """What one annotator did."""

    annotator: str = Field(examples=["ada"])
    labels: int = Field(examples=[12])
    accepted: Share | None
    """Share of the labels that accept."""
    reasons: dict[str, int] = Field(examples=[{"wrong answer": 3}])
    """Reason for rejection and labels that name it."""
    median_seconds: Figure = Field(examples=[24.5])
    agreement: Share | None
    """Share of labels that the outcome confirms, among settled items that somebody else spoke about too."""
    skips: int = Field(examples=[1])
    edits: int = Field(examples=[2])
    adjudications: int = Field(examples=[0])


def queue_data(queue: QueueSummary) -> QueueData:
    """A queue as it is answered."""
    return QueueData(**{name: getattr(queue, name) for name in QueueData.model_fields})


def settings_data(settings: AnnotationSettings) -> SettingsData:
    """Settings as they are answered."""
    return SettingsData(**{name: getattr(settings, name) for name in SettingsData.model_fields})


def wording_data(wording: Wording) -> WordingData:
    """Words as they are answered, however long they were written."""
    return WordingData.model_construct(
        question=wording.question, answer=wording.answer, options=list(wording.options), correct=wording.correct
    )


def wording_of(given: WordingData | None, draft: Draft | None = None) -> Wording | None:
    """Words as they were sent; the answer of a multiple-choice question is its correct option."""
    if given is None:
        return None
    answer, correct = given.answer, given.correct
    if given.options and correct is not None and correct < len(given.options):
        answer = given.options[correct]
    wording = Wording(given.question, answer, tuple(given.options), correct)
    return None if draft is not None and wording == draft.wording else wording


def label_data(label: Label) -> LabelData:
    """A label as it is answered."""
    names = ("key", "draft", "annotator", "accepted", "remark", "seconds", "adjudicates")
    values: dict[str, Any] = {name: getattr(label, name) for name in names}
    return LabelData(
        **values,
        reasons=list(label.reasons),
        wording=None if label.wording is None else wording_data(label.wording),
        made_at=moment(label.made_at),
        withdrawn_at=some_moment(label.withdrawn_at),
    )


def item_data(dataset: str, item: Item, *, confidence: bool, seen_by: str | None) -> ItemData:
    """An item as it is answered.

    Args:
        dataset: Its name.
        item: From the store.
        confidence: Whether the validator's confidence is to be seen.
        seen_by: Whose labels are to be seen; None for everybody's.
    """
    draft = item.draft
    return ItemData(
        dataset=dataset,
        draft=draft.id,
        kind=draft.kind,
        level=draft.level,
        wording=wording_data(draft.wording),
        passages=[_passage(one) for one in draft.passages],
        state=item.state,
        suggested_term=item.suggested_term,
        term_candidates=list(item.term_candidates),
        preselected=list(item.preselected),
        p_valid=item.p_valid if confidence else None,
        labels=[label_data(one) for one in item.labels if seen_by in (None, one.annotator)],
    )


def _passage(passage: SourcePassage) -> SourcePassageData:
    return SourcePassageData(**{name: getattr(passage, name) for name in SourcePassageData.model_fields})


def progress_data(progress: Progress, *, everybody: bool) -> ProgressData:
    """Progress as it is answered; ``everybody`` says whether others' counts are to be seen."""
    values = {name: getattr(progress, name) for name in ProgressData.model_fields if name != "labelled_by"}
    return ProgressData(**values, labelled_by=dict(progress.labelled_by) if everybody else None)


def agreement_data(found: Agreement) -> AgreementData:
    """Agreement as it is answered."""
    return AgreementData(
        items=found.items,
        raw=some_share(found.raw),
        pairs=[
            PairData(first=one.first, second=one.second, kappa=share(one.kappa), raw=share(one.raw))
            for one in found.pairs
        ],
        fleiss=some_share(found.fleiss),
        krippendorff=some_share(found.krippendorff),
    )


def annotator_data(one: AnnotatorStatistics) -> AnnotatorData:
    """What an annotator did, as it is answered."""
    return AnnotatorData(
        annotator=one.annotator,
        labels=one.labels,
        accepted=some_share(one.accepted),
        reasons=dict(one.reasons),
        median_seconds=one.median_seconds,
        agreement=some_share(one.agreement),
        skips=one.skips,
        edits=one.edits,
        adjudications=one.adjudications,
    )
