"""Labels out of the API and into it, withdrawn ones included, so that a dataset's annotations can be moved."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, Field, FiniteFloat

from climassay.generation.annotation import GivenLabel, GivenSkip
from climassay.web.access import Adjudicator, Admin
from climassay.web.annotate.queue import queue_of
from climassay.web.api.annotation_data import (
    LabelData,
    SettingsData,
    WordingData,
    label_data,
    settings_data,
    wording_of,
)
from climassay.web.api.fields import Data, Moment, Name, Text, moment, named
from climassay.web.api.routing import area
from climassay.web.place import PlaceHere

router = area("/annotate", "annotation")
MOST_LABELS = 100_000
DatasetName = Annotated[str, named("Name of the dataset.", "clouds")]
_EARLIEST, _LATEST = datetime(1970, 1, 2, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)


def _likely(when: datetime) -> datetime:
    if not _EARLIEST <= when <= _LATEST:
        raise ValueError("a label was made between 1970 and 2200")
    return when


Time = Annotated[Moment, AfterValidator(_likely)]


class SkipData(Data):
    """An item that an annotator passed over."""

    draft: Name = Field(examples=["q0123456789ab"])
    annotator: Name = Field(examples=["ada"])
    made_at: Time


class ExportData(Data):
    """Everything that was said about a dataset."""

    dataset: str = Field(examples=["clouds"])
    settings: SettingsData
    labels: list[LabelData]
    """In the order in which they were made, withdrawn ones included."""
    skips: list[SkipData]


class LabelToTakeIn(Data):
    """A label from elsewhere."""

    key: Name = Field(examples=["7f3c-1"])
    """Unique in the dataset, and the same whenever the label is given again."""
    draft: Name = Field(examples=["q0123456789ab"])
    annotator: Name = Field(examples=["ada"])
    accepted: bool = Field(examples=[True])
    reasons: list[Name] = Field(default=[], max_length=20, examples=[[]])
    remark: Text = Field(default="", examples=[""])
    wording: WordingData | None = Field(default=None, examples=[None])
    seconds: FiniteFloat | None = Field(default=None, ge=0, examples=[24.5])
    made_at: Time | None = Field(default=None, examples=["2026-05-31T12:00:00+00:00"])
    """By default now."""
    withdrawn_at: Time | None = Field(default=None, examples=[None])
    adjudicates: bool = Field(default=False, examples=[False])


class Import(Data):
    """Labels and skips from elsewhere, as an export has them."""

    labels: list[LabelToTakeIn] = Field(max_length=MOST_LABELS)
    skips: list[SkipData] = Field(default=[], max_length=MOST_LABELS, examples=[[]])


class TakenInData(Data):
    """What became of labels from elsewhere."""

    stored: int = Field(examples=[12])
    """New ones."""
    known: int = Field(examples=[0])
    """There already, by their keys."""
    withdrawn: int = Field(examples=[0])
    """There already, and withdrawn elsewhere meanwhile: now here too."""
    refused: list[str] = Field(examples=[[]])
    """One sentence for each that cannot be stored."""


@router.get("/datasets/{dataset}/export")
def export_labels(place: PlaceHere, user: Adjudicator, dataset: DatasetName) -> ExportData:
    """Everything that was said, in one answer.

    CSV, JSON Lines and the files of Label Studio and Argilla come from `/annotate/{dataset}/export` and from
    `climassay annotate export`.
    """
    store = queue_of(place, dataset)
    return ExportData(
        dataset=dataset,
        settings=settings_data(store.settings(dataset)),
        labels=[label_data(one) for one in store.labels(dataset, current=False)],
        skips=[
            SkipData(draft=one.draft, annotator=one.annotator, made_at=moment(one.made_at))
            for one in store.skipped(dataset)
        ],
    )


@router.post("/datasets/{dataset}/import")
def import_labels(place: PlaceHere, user: Admin, dataset: DatasetName, given: Import) -> TakenInData:
    """Take in labels, all in one transaction; doing it again changes nothing."""
    labels = [
        GivenLabel(
            draft=one.draft,
            annotator=one.annotator,
            accepted=one.accepted,
            reasons=tuple(one.reasons),
            remark=one.remark,
            wording=wording_of(one.wording),
            seconds=one.seconds,
            made_at=None if one.made_at is None else one.made_at.timestamp(),
            withdrawn_at=None if one.withdrawn_at is None else one.withdrawn_at.timestamp(),
            adjudicates=one.adjudicates,
            key=one.key,
        )
        for one in given.labels
    ]
    skips = [GivenSkip(one.draft, one.annotator, one.made_at.timestamp()) for one in given.skips]
    taken = queue_of(place, dataset).add_all(dataset, labels, skips)
    return TakenInData(stored=taken.stored, known=taken.known, withdrawn=taken.withdrawn, refused=list(taken.refused))
