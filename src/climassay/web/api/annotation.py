"""Annotation in the API: the queue of an annotator, labels, conflicts, agreement."""

from typing import Annotated

from fastapi import Query

from climassay.errors import InputError
from climassay.generation.annotation import ANNOTATION_REASONS, AnnotationSettings, AnnotationStore, Item
from climassay.web.access import Adjudicator, Admin, Annotator
from climassay.web.accounts import User
from climassay.web.annotate.queue import agreement_of, item_of, own_item, queue_of, store_of
from climassay.web.annotate.retraining import KIND, open_training
from climassay.web.api.annotation_data import (
    AgreementData,
    AnnotatorData,
    CountData,
    ItemData,
    Judgement,
    LabelData,
    NextItem,
    ProgressData,
    QueueData,
    ReasonData,
    SettingsData,
    UndoneData,
    agreement_data,
    annotator_data,
    item_data,
    label_data,
    progress_data,
    queue_data,
    settings_data,
    wording_of,
)
from climassay.web.api.fields import PRINTABLE, AfterName, Limit, Listed, Name, named, part_of
from climassay.web.api.jobs import JobData, job_data
from climassay.web.api.routing import area
from climassay.web.failures import Refused
from climassay.web.place import PlaceHere

router = area("/annotate", "annotation")
DATASETS = "/datasets/{dataset}"
ITEMS = DATASETS + "/items/{draft}"
DatasetName = Annotated[str, named("Name of the dataset.", "clouds")]
DraftId = Annotated[str, named("Id of the question.", "q0123456789ab")]


@router.get("/reasons")
def list_reasons(user: Annotator) -> Listed[ReasonData]:
    """Why a question may be rejected."""
    reasons = [ReasonData(name=one.name, meaning=one.words) for one in ANNOTATION_REASONS]
    return Listed(items=reasons, next=None)


@router.get("/datasets")
def list_queues(place: PlaceHere, user: Annotator, limit: Limit = 50, after: AfterName = None) -> Listed[QueueData]:
    """Datasets that have something to annotate, by name."""
    queues = sorted(store_of(place).queues(), key=lambda one: one.dataset)
    shown, following = part_of(queues, limit, lambda one: one.dataset, after)
    return Listed(items=[queue_data(one) for one in shown], next=following)


@router.get(DATASETS + "/settings")
def get_settings(place: PlaceHere, user: Annotator, dataset: DatasetName) -> SettingsData:
    """How a dataset is annotated."""
    return settings_data(queue_of(place, dataset).settings(dataset))


@router.put(DATASETS + "/settings")
def change_settings(place: PlaceHere, user: Admin, dataset: DatasetName, settings: SettingsData) -> SettingsData:
    """Set how a dataset is annotated; states, outcomes and order of its items follow at once."""
    store = queue_of(place, dataset)
    store.configure(dataset, AnnotationSettings(**settings.model_dump()))
    return settings_data(store.settings(dataset))


@router.post(DATASETS + "/retrain", status_code=202)
def retrain_validator(place: PlaceHere, user: Admin, dataset: DatasetName) -> JobData:
    """Train a validator on the settled items, and put the queue into the order of its doubts; a job does it.

    Where such a job waits or runs already, it is the answer. It fails where there are too few labels of either kind.
    """
    queue_of(place, dataset)
    job = open_training(place, dataset)
    if job is None:
        job = place.jobs.submit(KIND, f"Train the validator of {dataset}", {"dataset": dataset}, by=user.name)
    return job_data(place.jobs.get(job), user)


@router.get(DATASETS + "/next")
def get_next_item(
    place: PlaceHere,
    user: Annotator,
    dataset: DatasetName,
    after: Annotated[
        str | None, Query(description="An item to pass over this time.", pattern=PRINTABLE, max_length=40)
    ] = None,
) -> NextItem:
    """The item to label now: the least certain one first. It is kept for a while for who gets it."""
    store = queue_of(place, dataset)
    item = store.next(dataset, user.name, after)
    return NextItem(item=None if item is None else _shown(store, dataset, item, user))


@router.get(ITEMS)
def get_item(place: PlaceHere, user: Annotator, dataset: DatasetName, draft: DraftId) -> ItemData:
    """One item: one that lies before oneself or that one has labelled; for adjudicators any."""
    store = queue_of(place, dataset)
    return _shown(store, dataset, own_item(store, dataset, draft, user), user)


@router.post(ITEMS + "/label")
def label_item(
    place: PlaceHere, user: Annotator, dataset: DatasetName, draft: DraftId, judgement: Judgement
) -> LabelData:
    """Say whether a question is valid.

    A later label of the same annotator takes the place of the earlier one. Sending a label again with its key stores
    nothing, and is answered with the label as it is stored.
    """
    store = queue_of(place, dataset)
    known = _stored(store, dataset, draft, user.name, judgement.key)
    if known is None:
        item = own_item(store, dataset, draft, user)
        store.label(
            dataset,
            draft,
            user.name,
            accepted=judgement.accepted,
            reasons=judgement.reasons,
            remark=judgement.remark,
            wording=wording_of(judgement.wording, item.draft),
            seconds=judgement.seconds,
            key=judgement.key,
        )
        known = _stored(store, dataset, draft, user.name, judgement.key)
    return _answered(known)


@router.post(ITEMS + "/skip")
def skip_item(place: PlaceHere, user: Annotator, dataset: DatasetName, draft: DraftId) -> ProgressData:
    """Leave an item to others; it does not come again until it is asked for."""
    store = queue_of(place, dataset)
    own_item(store, dataset, draft, user)
    store.skip(dataset, draft, user.name)
    return progress_data(store.progress(dataset, user.name), everybody=user.may("adjudicator"))


@router.post(ITEMS + "/adjudicate")
def adjudicate_item(
    place: PlaceHere, user: Adjudicator, dataset: DatasetName, draft: DraftId, judgement: Judgement
) -> LabelData:
    """Decide an item over its labels: a conflict, or one that is settled wrongly. The time spent is not kept."""
    store = queue_of(place, dataset)
    item = item_of(store, dataset, draft)
    store.adjudicate(
        dataset,
        draft,
        user.name,
        accepted=judgement.accepted,
        reasons=judgement.reasons,
        remark=judgement.remark,
        wording=wording_of(judgement.wording, item.draft),
        key=judgement.key,
    )
    return _answered(_stored(store, dataset, draft, user.name, judgement.key))


@router.post(DATASETS + "/undo")
def undo_last(place: PlaceHere, user: Annotator, dataset: DatasetName) -> UndoneData:
    """Take back one's last label or skip."""
    return UndoneData(draft=queue_of(place, dataset).undo(dataset, user.name))


@router.post(DATASETS + "/unskip")
def take_up_skipped(place: PlaceHere, user: Annotator, dataset: DatasetName) -> CountData:
    """Put everything that one has skipped back before oneself."""
    return CountData(items=queue_of(place, dataset).unskip(dataset, user.name))


@router.get(DATASETS + "/progress")
def get_progress(place: PlaceHere, user: Annotator, dataset: DatasetName) -> ProgressData:
    """How far a dataset has come, and oneself in it."""
    progress = queue_of(place, dataset).progress(dataset, user.name)
    return progress_data(progress, everybody=user.may("adjudicator"))


@router.get(DATASETS + "/history")
def list_history(
    place: PlaceHere,
    user: Annotator,
    dataset: DatasetName,
    annotator: Annotated[
        Name | None, Query(description="Whose; by default one's own. Others' history is for adjudicators.")
    ] = None,
    limit: Limit = 50,
) -> Listed[LabelData]:
    """The last labels of somebody that still count, the newest first."""
    name = annotator or user.name
    if name != user.name and not user.may("adjudicator"):
        raise Refused("What others said is for adjudicators.")
    labels = queue_of(place, dataset).history(dataset, name, most=limit)
    return Listed(items=[label_data(one) for one in labels], next=None)


@router.get(DATASETS + "/conflicts")
def list_conflicts(
    place: PlaceHere, user: Adjudicator, dataset: DatasetName, limit: Limit = 50, after: AfterName = None
) -> Listed[ItemData]:
    """Items whose labels do not agree, by id, with all their labels."""
    store = queue_of(place, dataset)
    items = sorted(store.conflicts(dataset), key=lambda one: one.draft.id)
    shown, following = part_of(items, limit, lambda one: one.draft.id, after)
    return Listed(items=[_shown(store, dataset, one, user) for one in shown], next=following)


@router.get(DATASETS + "/agreement")
def get_agreement(place: PlaceHere, user: Adjudicator, dataset: DatasetName) -> AgreementData:
    """How far annotators agree: raw, Cohen's and Fleiss' kappa, Krippendorff's alpha, with 95% intervals."""
    return agreement_data(agreement_of(place, dataset))


@router.get(DATASETS + "/annotators")
def list_annotators(place: PlaceHere, user: Adjudicator, dataset: DatasetName) -> Listed[AnnotatorData]:
    """What each annotator did, the busiest first."""
    return Listed(items=[annotator_data(one) for one in queue_of(place, dataset).annotators(dataset)], next=None)


def _shown(store: AnnotationStore, dataset: str, item: Item, user: User) -> ItemData:
    confidence = not store.settings(dataset).hide_confidence
    return item_data(dataset, item, confidence=confidence, seen_by=None if user.may("adjudicator") else user.name)


def _stored(store: AnnotationStore, dataset: str, draft: str, annotator: str, key: str) -> LabelData | None:
    labels = store.labels(dataset, draft=draft, annotator=annotator, current=False)
    return next((label_data(one) for one in labels if one.key == key), None)


def _answered(label: LabelData | None) -> LabelData:
    if label is None:
        raise InputError("The label was taken back a moment ago: ask for the next item.")
    return label
