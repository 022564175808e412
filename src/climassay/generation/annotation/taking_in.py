"""Labels from elsewhere, taken in as a whole and as often as one likes."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import sqlalchemy as sa

from climassay.errors import InputError
from climassay.generation.annotation.acts import settle
from climassay.generation.annotation.checking import check_name, check_verdict
from climassay.generation.annotation.item_queue import items_of, take_number
from climassay.generation.annotation.labels import Label
from climassay.generation.annotation.rows import label_row, labels_by_draft, settings_from
from climassay.generation.annotation.tables import annotations, skips
from climassay.generation.dataset_store import DRAFTS_PER_QUERY, drafts_before_experts
from climassay.generation.draft import Draft, Wording
from climassay.records.database import Database

Slot = tuple[str, str, bool]
"""Draft, annotator, whether it adjudicates: of these only one label counts."""


@dataclass(frozen=True, slots=True)
class GivenLabel:
    """A label from elsewhere; its fields are those of :class:`Label`."""

    draft: str
    annotator: str
    accepted: bool
    reasons: tuple[str, ...] = ()
    remark: str = ""
    wording: Wording | None = None
    seconds: float | None = None
    made_at: float | None = None
    """Now, where it is not known."""
    withdrawn_at: float | None = None
    adjudicates: bool = False
    key: str = ""


@dataclass(frozen=True, slots=True)
class GivenSkip:
    """An item that an annotator passed over elsewhere."""

    draft: str
    annotator: str
    made_at: float


@dataclass(frozen=True, slots=True)
class TakenIn:
    """What became of labels from elsewhere."""

    stored: int
    """New ones."""
    known: int
    """There already, by their keys."""
    withdrawn: int
    """There already, and withdrawn elsewhere meanwhile: now here too."""
    refused: tuple[str, ...]
    """One sentence for each that cannot be stored."""


def take_in(
    database: Database,
    connection: sa.Connection,
    queue: Any,
    given: Sequence[GivenLabel],
    passed: Sequence[GivenSkip] = (),
) -> TakenIn:
    """Store labels that are not there yet, and settle their drafts; the queue is locked.

    Of two labels of one annotator about a draft the later one counts, whatever the order in which they come. A label
    without a time that says what the annotator's current one says is known.
    """
    names = list(dict.fromkeys(one.draft for one in given))
    drafts = drafts_before_experts(connection, queue.dataset, names)
    current = {
        (label.draft, label.annotator, label.adjudicates): label
        for own in labels_by_draft(connection, queue.dataset, names).values()
        for label in own
    }
    sorting = _Sorting(queue.dataset, drafts, _known(connection, queue.dataset, [one.key for one in given]), current)
    for one in sorted(given, key=lambda one: one.made_at or time.time()):
        sorting.add(one)
    _store(connection, queue, list(sorting.new.values()), sorting.ended)
    _store_skips(database, connection, queue, passed)
    number = take_number(connection, queue)
    affected = list(items_of(connection, queue.dataset, names))
    for start in range(0, len(affected), DRAFTS_PER_QUERY):
        chunk = affected[start : start + DRAFTS_PER_QUERY]
        settle(connection, queue.dataset, chunk, settings_from(queue.settings), number)
    withdrawn = len(sorting.withdrawn)
    return TakenIn(len(sorting.new), sorting.again - withdrawn, withdrawn, tuple(sorting.refused))


@dataclass(slots=True)
class _Sorting:
    """Labels from elsewhere beside those that are there: what is new, and what no longer counts."""

    dataset: str
    drafts: Mapping[str, Draft]
    known: Mapping[str, float | None]
    """Keys that are there, with the time of their withdrawal."""
    current: dict[Slot, Label]
    new: dict[str, Label] = field(default_factory=dict)
    ended: dict[str, float] = field(default_factory=dict)
    """Keys of stored labels that count no more, and since when."""
    withdrawn: set[str] = field(default_factory=set)
    """Those of them that were withdrawn elsewhere."""
    refused: list[str] = field(default_factory=list)
    again: int = 0

    def add(self, one: GivenLabel) -> None:
        """Sort in one label; they come in the order of their times."""
        if one.key in self.known or one.key in self.new:
            self.again += 1
            if one.withdrawn_at is not None and self.known.get(one.key, 0.0) is None:
                self.ended[one.key] = one.withdrawn_at
                self.withdrawn.add(one.key)
            return
        try:
            label = _label(self.dataset, one, self.drafts)
        except InputError as error:
            self.refused.append(f"The label of {one.annotator} on {one.draft}: {error}")
            return
        earlier = self.current.get((label.draft, label.annotator, label.adjudicates))
        if one.made_at is None and earlier is not None and _same(earlier, label):
            self.again += 1
        elif label.withdrawn_at is not None:
            self.new[label.key] = label
        elif earlier is not None and earlier.made_at > label.made_at:
            self.new[label.key] = replace(label, withdrawn_at=earlier.made_at)
        else:
            self._replace(earlier, label)

    def _replace(self, earlier: Label | None, label: Label) -> None:
        if earlier is not None and earlier.key in self.new:
            self.new[earlier.key] = replace(earlier, withdrawn_at=label.made_at)
        elif earlier is not None:
            self.ended[earlier.key] = label.made_at
        self.new[label.key] = label
        self.current[label.draft, label.annotator, label.adjudicates] = label


def _known(connection: sa.Connection, dataset: str, keys: Sequence[str]) -> dict[str, float | None]:
    """Keys that are there, with the time of their withdrawal."""
    found: dict[str, float | None] = {}
    for start in range(0, len(keys), DRAFTS_PER_QUERY):
        query = sa.select(annotations.c.key, annotations.c.withdrawn_at).where(
            annotations.c.dataset == dataset, annotations.c.key.in_(keys[start : start + DRAFTS_PER_QUERY])
        )
        found |= {row.key: row.withdrawn_at for row in connection.execute(query)}
    return found


def _label(dataset: str, one: GivenLabel, drafts: Mapping[str, Draft]) -> Label:
    check_name(one.annotator, "The name of an annotator")
    check_name(one.key, "The key of a label")
    draft = drafts.get(one.draft)
    if draft is None or not draft.written:
        raise InputError(f"The dataset {dataset} has no draft {one.draft!r} to annotate.")
    verdict = check_verdict(
        draft,
        accepted=one.accepted,
        reasons=one.reasons,
        remark=one.remark,
        wording=one.wording,
        seconds=one.seconds,
    )
    return Label(
        one.key,
        dataset,
        one.draft,
        one.annotator,
        verdict.accepted,
        verdict.reasons,
        verdict.remark,
        verdict.wording,
        verdict.seconds,
        made_at=time.time() if one.made_at is None else one.made_at,
        withdrawn_at=one.withdrawn_at,
        adjudicates=one.adjudicates,
    )


def _same(first: Label, second: Label) -> bool:
    """Whether two labels say the same; the order of reasons is lost in some tools."""
    said = [(one.accepted, set(one.reasons), one.remark, one.wording) for one in (first, second)]
    return said[0] == said[1]


def _store(connection: sa.Connection, queue: Any, labels: Sequence[Label], ended: Mapping[str, float]) -> None:
    if ended:
        at_key = annotations.update().where(
            annotations.c.dataset == queue.dataset,
            annotations.c.key == sa.bindparam("ended"),
            annotations.c.withdrawn_at.is_(None),
        )
        rows = [{"ended": key, "at": at} for key, at in ended.items()]
        connection.execute(at_key.values(withdrawn_at=sa.bindparam("at")), rows)
    if labels:
        connection.execute(annotations.insert(), [label_row(label, take_number(connection, queue)) for label in labels])


def _store_skips(database: Database, connection: sa.Connection, queue: Any, passed: Sequence[GivenSkip]) -> None:
    labels = labels_by_draft(connection, queue.dataset, [one.draft for one in passed])
    there = items_of(connection, queue.dataset, [one.draft for one in passed])
    rows = [
        {"dataset": queue.dataset, "annotator": one.annotator, "draft": one.draft, "made_at": one.made_at}
        | {"number": take_number(connection, queue)}
        for one in passed
        if one.draft in there and one.annotator not in {label.annotator for label in labels.get(one.draft, ())}
    ]
    database.insert_new(connection, skips, rows)
