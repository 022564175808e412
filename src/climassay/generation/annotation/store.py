"""The annotations of a records database: asking for items, and labelling them."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import sqlalchemy as sa

from climassay.errors import InputError
from climassay.generation.annotation import acts, item_queue
from climassay.generation.annotation.checking import check_name, check_verdict
from climassay.generation.annotation.labels import AnnotationSettings, Item
from climassay.generation.annotation.looking import items_with_labels
from climassay.generation.annotation.reader import AnnotationReader
from climassay.generation.annotation.rows import settings_from, settings_text
from climassay.generation.annotation.tables import annotations, items, leases, queues
from climassay.generation.annotation.taking_in import GivenLabel, GivenSkip, TakenIn, take_in
from climassay.generation.dataset_store import drafts_before_experts
from climassay.generation.draft import Draft, Wording
from climassay.records import Records

T = TypeVar("T")


class AnnotationStore(AnnotationReader):
    """What experts say about the drafts of the datasets in one records database.

    One store may be used by many threads at once, and a database by many processes.

    Args:
        records: The open records.
    """

    def __init__(self, records: Records) -> None:
        super().__init__(records)
        # SQLite has one writer at a time and lets the others poll; within a process waiting in a row is fairer.
        self._turn: AbstractContextManager[Any] = threading.Lock() if self._database.is_sqlite else nullcontext()

    def configure(self, dataset: str, settings: AnnotationSettings) -> None:
        """Set how a dataset is annotated; states, outcomes and order of its items follow at once.

        Raises:
            InputError: There is no such dataset.
        """
        item_queue.look_at_new_drafts(self._database, dataset)

        def work(connection: sa.Connection) -> None:
            queue = item_queue.lock_queue(self._database, connection, dataset)
            ours = queues.c.dataset == dataset
            connection.execute(queues.update().where(ours).values(settings=settings_text(settings)))
            if settings.overlap < settings_from(queue.settings).overlap:
                connection.execute(leases.delete().where(leases.c.dataset == dataset))
            acts.settle_all(connection, dataset, settings, item_queue.take_number(connection, queue))
            item_queue.order_items(connection, dataset, settings)

        self._write(work)

    def next(self, dataset: str, annotator: str, after: str | None = None) -> Item | None:
        """The item that an annotator should label now: the least certain one that still wants a label.

        It is kept for them for :attr:`AnnotationSettings.lease_seconds`, and comes again until they label or skip it;
        no more than ``overlap`` people have it or have labelled it at once.

        Args:
            dataset: Name of the dataset.
            annotator: Who asks.
            after: An item to pass over: the one on the screen, to have the following one ready.

        Returns:
            None where nothing is left for this annotator.

        Raises:
            InputError: There is no such dataset.
        """
        check_name(annotator, "The name of an annotator")
        item_queue.look_at_new_drafts(self._database, dataset)

        def work(connection: sa.Connection) -> str | None:
            queue = item_queue.lock_queue(self._database, connection, dataset)
            settings, now = settings_from(queue.settings), time.time()
            found = item_queue.item_before(connection, dataset, annotator, after, now)
            if found is None:
                found = item_queue.free_item(connection, dataset, annotator, settings.overlap, after, now)
            if found is not None:
                item_queue.keep_for(connection, dataset, found, annotator, now + settings.lease_seconds)
            return found

        draft = self._write(work)
        if draft is None:
            return None
        with self._database.read() as connection:
            return items_with_labels(connection, dataset, [draft])[0]

    def label(
        self,
        dataset: str,
        draft: str,
        annotator: str,
        *,
        accepted: bool,
        reasons: Sequence[str] = (),
        remark: str = "",
        wording: Wording | None = None,
        seconds: float | None = None,
        key: str,
    ) -> bool:
        """Store what an annotator says about an item, once for each key, and settle the item where labels suffice.

        A later label of the same annotator takes the place of the earlier one. All of it is one transaction.

        Args:
            dataset: Name of the dataset.
            draft: Id of the item's draft.
            annotator: Who says it.
            accepted: Whether the question is valid, after the edit if there is one.
            reasons: Why it is not, the main one first: names of :data:`ANNOTATION_REASONS`.
            remark: Any text; needed with the reason ``other``.
            wording: The whole wording after an edit; of a cloze statement with the chosen term. Only where accepted.
            seconds: Time spent.
            key: Made by who sends the label, and the same whenever it is sent again.

        Returns:
            Whether it was stored now; False where the key was stored before.

        Raises:
            InputError: There is no such item, it is in other hands, or this cannot be said about it.
        """
        said = {"accepted": accepted, "reasons": reasons, "remark": remark, "wording": wording, "seconds": seconds}
        return self._label(dataset, draft, annotator, said, key, adjudicates=False)

    def adjudicate(
        self,
        dataset: str,
        draft: str,
        annotator: str,
        *,
        accepted: bool,
        reasons: Sequence[str] = (),
        remark: str = "",
        wording: Wording | None = None,
        key: str,
    ) -> bool:
        """Decide an item over its labels: a conflict, or one that is settled wrongly.

        Arguments, result and errors as :meth:`label`; the latest adjudication stands. An item that still waits for
        labels is refused.
        """
        said = {"accepted": accepted, "reasons": reasons, "remark": remark, "wording": wording}
        return self._label(dataset, draft, annotator, said, key, adjudicates=True)

    def _label(
        self, dataset: str, draft: str, annotator: str, said: dict[str, Any], key: str, *, adjudicates: bool
    ) -> bool:
        check_name(annotator, "The name of an annotator")
        check_name(key, "The key of a label")

        def work(connection: sa.Connection, before: Mapping[str, Draft]) -> bool:
            queue = item_queue.lock_queue(self._database, connection, dataset)
            known = acts.stored_label(connection, dataset, key)
            if known is not None:
                if (known.draft, known.annotator, known.adjudicates) != (draft, annotator, adjudicates):
                    raise InputError(f"The key {key} belongs to another label: make a new one for each label.")
                return False
            item = acts.waiting_item(connection, dataset, draft)
            verdict = check_verdict(before[draft], **said)
            if not adjudicates:
                overlap = settings_from(queue.settings).overlap
                acts.check_turn(connection, dataset, item, annotator, overlap)
            elif item.state == "open":
                raise InputError(f"The item {draft} still waits for labels: there is nothing to decide yet.")
            label = acts.make_label(dataset, draft, annotator, verdict, key, adjudicates=adjudicates)
            acts.add_label(connection, queue, label, item, before[draft])
            return True

        def attempt() -> bool:
            # What waits never changes its words: it can be read before others have to wait.
            with self._database.read() as connection:
                before = drafts_before_experts(connection, dataset, [draft])
            return self._write(lambda connection: work(connection, before))

        return self._looking_twice(dataset, attempt)

    def add_all(self, dataset: str, given: Sequence[GivenLabel], passed: Sequence[GivenSkip] = ()) -> TakenIn:
        """Take in labels from elsewhere, all in one transaction; doing it again changes nothing.

        Of two labels of one annotator about a draft the later one counts. Nobody has to be asked first.

        Args:
            dataset: Name of the dataset.
            given: Labels, each with a key that is the same whenever the label is given again.
            passed: Items that were skipped.

        Raises:
            InputError: There is no such dataset. Labels that cannot be stored are told in the result.
        """
        item_queue.look_at_new_drafts(self._database, dataset)

        def work(connection: sa.Connection) -> TakenIn:
            queue = item_queue.lock_queue(self._database, connection, dataset)
            return take_in(self._database, connection, queue, given, passed)

        return self._write(work)

    def skip(self, dataset: str, draft: str, annotator: str) -> None:
        """Pass an item over; it does not come to this annotator again until :meth:`unskip` or :meth:`undo`.

        Raises:
            InputError: There is no such item, or the annotator has labelled it.
        """
        check_name(annotator, "The name of an annotator")

        def work(connection: sa.Connection) -> None:
            queue = item_queue.lock_queue(self._database, connection, dataset)
            acts.waiting_item(connection, dataset, draft)
            said = sa.select(annotations.c.key).where(
                annotations.c.dataset == dataset,
                annotations.c.draft == draft,
                annotations.c.annotator == annotator,
                annotations.c.withdrawn_at.is_(None),
            )
            if connection.execute(said.limit(1)).first() is not None:
                raise InputError(f"You have labelled the item {draft}: change the label, or undo it.")
            acts.skip_item(connection, queue, draft, annotator)

        self._looking_twice(dataset, lambda: self._write(work))

    def unskip(self, dataset: str, annotator: str) -> int:
        """Put everything that an annotator skipped back before them; how many items."""

        def work(connection: sa.Connection) -> int:
            item_queue.lock_queue(self._database, connection, dataset)
            return acts.unskip(connection, dataset, annotator)

        return self._write(work)

    def undo(self, dataset: str, annotator: str) -> str | None:
        """Take back an annotator's last label or skip that still counts.

        Returns:
            Id of its draft, kept for the annotator again where there is room; None where there is nothing to undo.
        """

        def work(connection: sa.Connection) -> str | None:
            queue = item_queue.lock_queue(self._database, connection, dataset)
            return acts.undo_last(connection, queue, annotator)

        return self._write(work)

    def reorder(self, dataset: str, probabilities: Mapping[str, float] | None) -> None:
        """Put open items into a new order.

        Args:
            dataset: Name of the dataset.
            probabilities: Draft -> the validator's P(valid), kept with the items; others keep theirs. None forgets all
                of them, and the order is chance.

        Raises:
            InputError: There is no such dataset, or a number is no probability.
        """
        wrong = [name for name, value in (probabilities or {}).items() if not 0 <= value <= 1]
        if wrong:
            raise InputError(f"P(valid) of {wrong[0]} lies outside 0 to 1.")
        item_queue.look_at_new_drafts(self._database, dataset)

        def work(connection: sa.Connection) -> None:
            queue = item_queue.lock_queue(self._database, connection, dataset)
            change = items.update().where(items.c.dataset == dataset)
            if probabilities is None:
                connection.execute(change.values(p_valid=None, judged_by=None))
            elif probabilities:
                judged = change.where(items.c.draft == sa.bindparam("judged")).values(p_valid=sa.bindparam("given"))
                rows = [{"judged": name, "given": float(value)} for name, value in probabilities.items()]
                connection.execute(judged, rows)
            item_queue.order_items(connection, dataset, settings_from(queue.settings))

        self._write(work)

    def _write(self, work: Callable[[sa.Connection], T]) -> T:
        with self._turn:
            return self._database.write(work)
