"""Looking at the annotations of a records database."""

from collections.abc import Callable, Iterator
from typing import TypeVar

import sqlalchemy as sa

from climassay.generation.annotation import item_queue
from climassay.generation.annotation.acts import NotWaitingError, waiting_item
from climassay.generation.annotation.agreement import Agreement, AnnotatorStatistics, agreement_of, statistics_of
from climassay.generation.annotation.labels import AnnotationSettings, Item, Label, Progress, QueueSummary
from climassay.generation.annotation.looking import (
    conflict_names,
    count_items,
    item_names,
    items_with_labels,
    progress_of,
)
from climassay.generation.annotation.rows import label_from, settings_from
from climassay.generation.annotation.tables import annotations, items, metadata, queues, skips
from climassay.generation.annotation.taking_in import GivenSkip
from climassay.generation.dataset_store import DRAFTS_PER_QUERY, DatasetStore
from climassay.records import Records

T = TypeVar("T")


class AnnotationReader:
    """The part of :class:`AnnotationStore` that changes nothing but the list of what waits.

    Args:
        records: The open records.
    """

    def __init__(self, records: Records) -> None:
        self._database = records.database
        self._datasets = DatasetStore(records)
        self._database.create_tables(metadata)

    def settings(self, dataset: str) -> AnnotationSettings:
        """How a dataset is annotated; the defaults where nothing was set.

        Raises:
            InputError: There is no such dataset.
        """
        with self._database.read() as connection:
            query = sa.select(queues.c.settings).where(queues.c.dataset == dataset)
            text = connection.execute(query).scalar_one_or_none()
        if text is not None:
            return settings_from(text)
        self._datasets.deciding(dataset)
        return AnnotationSettings()

    def queues(self) -> list[QueueSummary]:
        """The datasets that have items to annotate, the newest first."""
        found = []
        for one in self._datasets.list():
            settings, counts = self.settings(one.name), self._counts(one.name)
            if counts:
                open_, settled, conflicts = (counts.get(state, 0) for state in ("open", "settled", "conflict"))
                total = open_ + settled + conflicts
                found.append(QueueSummary(one.name, total, open_, settled, conflicts, settings.overlap))
        return found

    def _counts(self, dataset: str) -> dict[str, int]:
        item_queue.look_at_new_drafts(self._database, dataset)
        with self._database.read() as connection:
            return count_items(connection, dataset)

    def item(self, dataset: str, draft: str) -> Item:
        """One item with its labels.

        Raises:
            InputError: The dataset has no such item.
        """

        def look() -> Item:
            with self._database.read() as connection:
                waiting_item(connection, dataset, draft)
                return items_with_labels(connection, dataset, [draft])[0]

        return self._looking_twice(dataset, look)

    def _looking_twice(self, dataset: str, work: Callable[[], T]) -> T:
        """Do what needs an item; where it is missing, look first whether the line has written it meanwhile."""
        try:
            return work()
        except NotWaitingError:
            item_queue.look_at_new_drafts(self._database, dataset)
            return work()

    def items(self, dataset: str) -> Iterator[Item]:
        """Everything that is annotated or waits for it, in the order of the queue."""
        item_queue.look_at_new_drafts(self._database, dataset)
        with self._database.read() as connection:
            names = item_names(connection, dataset)
        for start in range(0, len(names), DRAFTS_PER_QUERY):
            with self._database.read() as connection:
                yield from items_with_labels(connection, dataset, names[start : start + DRAFTS_PER_QUERY])

    def labels(
        self, dataset: str, *, draft: str | None = None, annotator: str | None = None, current: bool = True
    ) -> list[Label]:
        """Labels in the order in which they were made.

        Args:
            dataset: Name of the dataset.
            draft: Of this draft only.
            annotator: Of this annotator only.
            current: Leave out withdrawn ones.
        """
        query = sa.select(annotations).where(annotations.c.dataset == dataset).order_by(annotations.c.number)
        if draft is not None:
            query = query.where(annotations.c.draft == draft)
        if annotator is not None:
            query = query.where(annotations.c.annotator == annotator)
        if current:
            query = query.where(annotations.c.withdrawn_at.is_(None))
        with self._database.read() as connection:
            return [label_from(row) for row in connection.execute(query)]

    def history(self, dataset: str, annotator: str, most: int = 20) -> list[Label]:
        """The last labels of an annotator that still count, the newest first."""
        query = (
            sa.select(annotations)
            .where(annotations.c.dataset == dataset, annotations.c.annotator == annotator)
            .where(annotations.c.withdrawn_at.is_(None))
            .order_by(annotations.c.number.desc())
            .limit(most)
        )
        with self._database.read() as connection:
            return [label_from(row) for row in connection.execute(query)]

    def skipped(self, dataset: str) -> list[GivenSkip]:
        """Items that annotators skipped, in the order in which they did."""
        query = sa.select(skips).where(skips.c.dataset == dataset).order_by(skips.c.number)
        with self._database.read() as connection:
            return [GivenSkip(row.draft, row.annotator, row.made_at) for row in connection.execute(query)]

    def progress(self, dataset: str, annotator: str | None = None) -> Progress:
        """How far a dataset has come, and one annotator in it.

        Raises:
            InputError: There is no such dataset.
        """
        item_queue.look_at_new_drafts(self._database, dataset)
        with self._database.read() as connection:
            return progress_of(connection, dataset, annotator)

    def conflicts(self, dataset: str) -> list[Item]:
        """Items whose labels do not agree, in the queue's order."""
        with self._database.read() as connection:
            return items_with_labels(connection, dataset, conflict_names(connection, dataset))

    def revision(self, dataset: str) -> tuple[object, ...]:
        """Another value once a label, a skip or an outcome has come, changed or gone."""
        said, passed, decided = annotations.c, skips.c, items.c
        counted = sa.func.count
        asked = (
            sa.select(counted(), counted(said.withdrawn_at), sa.func.max(said.number)).where(said.dataset == dataset),
            sa.select(counted(), sa.func.max(passed.number)).where(passed.dataset == dataset),
            sa.select(counted(), sa.func.max(decided.settled_at)).where(
                decided.dataset == dataset, decided.state == "settled"
            ),
        )
        with self._database.read() as connection:
            return tuple(value for query in asked for value in connection.execute(query).one())

    def agreement(self, dataset: str) -> Agreement:
        """How far annotators agree on what is valid, before any adjudication."""
        return agreement_of(self.labels(dataset))

    def annotators(self, dataset: str) -> list[AnnotatorStatistics]:
        """What each annotator did, the busiest first."""
        decided = sa.select(items.c.draft).where(items.c.dataset == dataset, items.c.state == "settled")
        passed = sa.select(skips.c.annotator).where(skips.c.dataset == dataset)
        with self._database.read() as connection:
            settled = set(connection.execute(decided).scalars())
            skipped = list(connection.execute(passed).scalars())
        return statistics_of(self.labels(dataset), settled, skipped)

    def validator(self, dataset: str) -> str | None:
        """File name of the validator that was last trained on the labels, in the workspace's folder ``validators``."""
        query = sa.select(queues.c.validator).where(queues.c.dataset == dataset)
        with self._database.read() as connection:
            return connection.execute(query).scalar()

    def new_labels(self, dataset: str) -> int:
        """Items that were settled, or settled otherwise, since a validator was last trained."""
        query = (
            sa.select(sa.func.count())
            .select_from(items.join(queues, queues.c.dataset == items.c.dataset))
            .where(items.c.dataset == dataset, items.c.state == "settled", items.c.settled_at > queues.c.trained_at)
        )
        with self._database.read() as connection:
            return int(connection.execute(query).scalar_one())
