"""Generated datasets in the API: their yield, what removed drafts, and the drafts themselves."""

import json
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import Field, JsonValue

from climassay.generation.dataset_results import dataset_stats
from climassay.generation.dataset_store import DatasetStore, DatasetSummary, Placed, State
from climassay.generation.draft import draft_row
from climassay.questions import Kind, Level
from climassay.web.access import Adjudicator, Reader
from climassay.web.api.fields import AfterName, Data, Limit, Listed, Moment, moment, named, part_of
from climassay.web.api.routing import area
from climassay.web.failures import Missing
from climassay.web.place import Place, PlaceHere

router = area("/datasets", "datasets")
DatasetName = Annotated[str, named("Name of the dataset.", "clouds")]


class DatasetData(Data):
    """A dataset of generated questions."""

    name: str = Field(examples=["clouds"])
    made_at: Moment
    drafts: dict[State, int] = Field(examples=[{"accepted": 40, "rejected": 18, "failed": 2}])
    """By what became of them, as the line left them."""
    page: str = Field(examples=["/results/datasets/clouds"])
    """Address of its page on this server."""


class YieldData(Data):
    """What came of one kind and level."""

    kind: Kind = Field(examples=["mcq"])
    level: Level = Field(examples=["base"])
    asked: int = Field(examples=[30])
    accepted: int = Field(examples=[21])
    failed: int = Field(examples=[1])
    """Never written."""


class RemovalData(Data):
    """Why drafts were rejected."""

    step: str = Field(examples=["screen"])
    reason: str = Field(examples=["off topic"])
    drafts: dict[Kind, int] = Field(examples=[{"mcq": 3}])
    """By kind."""


class DatasetStatsData(Data):
    """A dataset in numbers, experts' decisions included."""

    dataset: DatasetData
    accepted: int = Field(examples=[40])
    """Questions of all kinds."""
    streams: list[YieldData]
    removed: list[RemovalData]
    failures: dict[str, int] = Field(examples=[{"the model's answer was cut off": 2}])
    """Drafts that were never written, by what went wrong."""
    sources: dict[str, int] = Field(examples=[{"Clouds and Climate": 40}])
    """Accepted questions by title of the source."""


class DraftData(Data):
    """A generated question, with everything that was decided about it."""

    id: str = Field(examples=["q0123456789ab"])
    kind: Kind = Field(examples=["freeform"])
    level: Level = Field(examples=["base"])
    state: State = Field(examples=["accepted"])
    draft: dict[str, JsonValue] = Field(examples=[{"wording": {"question": "Why?", "answer": "Because."}}])
    """As `climassay generate export` writes it: wording, passages, origin, decisions."""


@router.get("")
def list_datasets(place: PlaceHere, user: Reader, limit: Limit = 50, after: AfterName = None) -> Listed[DatasetData]:
    """All generated datasets, by name."""
    every = sorted(_store(place).list(), key=lambda one: one.name)
    shown, following = part_of(every, limit, lambda one: one.name, after)
    return Listed(items=[_dataset(one) for one in shown], next=following)


@router.get("/{dataset}")
def get_dataset(place: PlaceHere, user: Reader, dataset: DatasetName) -> DatasetStatsData:
    """Yield by kind and level, reasons for rejection, sources."""
    store = _store(place)
    [summary] = [one for one in store.list() if one.name == dataset] or [_missing(dataset)]
    stats = dataset_stats(dataset, store.placed(dataset))
    return DatasetStatsData(
        dataset=_dataset(summary),
        accepted=stats.accepted,
        streams=[
            YieldData(kind=stream.kind, level=stream.level, asked=one.asked, accepted=one.accepted, failed=one.failed)
            for stream, one in stats.streams.items()
        ],
        removed=[
            RemovalData.model_validate({"step": step, "reason": reason, "drafts": dict(kinds)})
            for (step, reason), kinds in stats.reasons.items()
        ],
        failures=dict(stats.failures),
        sources={title: counts.total() for title, counts in stats.books.items()},
    )


@router.get("/{dataset}/drafts")
def list_drafts(
    place: PlaceHere,
    user: Adjudicator,
    dataset: DatasetName,
    state: Annotated[State | Literal[""], Query(description="Only drafts of which this became.")] = "",
    limit: Limit = 50,
    after: AfterName = None,
) -> Listed[DraftData]:
    """The drafts of a dataset by id, with what the line and the experts decided.

    Experts' words are in them, which is why they are not for annotators who have yet to judge.
    """
    store = _store(place)
    if dataset not in store:
        _missing(dataset)
    fitting = sorted((one for one in store.placed(dataset) if state in ("", one.state)), key=lambda one: one.draft.id)
    shown, following = part_of(fitting, limit, lambda one: one.draft.id, after)
    return Listed(items=[_draft(one) for one in shown], next=following)


def _store(place: Place) -> DatasetStore:
    return place.shared("api:datasets", lambda: DatasetStore(place.records))


def _missing(dataset: str) -> DatasetSummary:
    raise Missing(f"There is no dataset {dataset!r}.")


def _dataset(summary: DatasetSummary) -> DatasetData:
    values: dict[str, Any] = {"drafts": dict(summary.states), "page": f"/results/datasets/{summary.name}"}
    return DatasetData(name=summary.name, made_at=moment(summary.made_at), **values)


def _draft(placed: Placed) -> DraftData:
    draft = placed.draft
    return DraftData(
        id=draft.id, kind=draft.kind, level=draft.level, state=placed.state, draft=_plain(draft_row(draft))
    )


def _plain(row: dict[str, Any]) -> dict[str, JsonValue]:
    """A row as JSON writes it: tuples become lists."""
    made: dict[str, JsonValue] = json.loads(json.dumps(row))
    return made
