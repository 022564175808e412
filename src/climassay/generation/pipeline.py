"""The pipeline: drafts of all kinds and levels, batch by batch, until enough of each are accepted.

Each batch is planned from the stored drafts, written, screened, decided and stored as a whole. The answers of a killed
run come from the records, so the same batch is written again, and a longer run continues a shorter one.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter

from climassay.corpus import Passage
from climassay.errors import InputError
from climassay.generation.dataset_store import DatasetStore, StoredDraft
from climassay.generation.draft import Decision, Draft, SourcePassage, apply_where, draft_id
from climassay.generation.recipe import Recipe, Stream
from climassay.generation.writing import Assignment
from climassay.models.contract import Usage
from climassay.questions import Level
from climassay.reporting import counted

MIN_DRAFTS_PER_BOOK = 10
"""Number of drafts that a book must have before its yield can count as poor."""
POOR_YIELD = 0.25
"""Minimum yield of a book, as a fraction of the mean yield for its kind and level; a lower yield counts as poor."""
POOR_BOOK_SHARE = 0.5
"""Maximum number of drafts from a book with poor yield, relative to the mean number of drafts per book."""


@dataclass(slots=True)
class BookCounts:
    """Counts of the drafts of one kind and level from one book."""

    accepted: int = 0
    next_number: int = 0
    """Index of the book's next seed passage, which is also the number of passages already used."""


@dataclass(slots=True)
class StreamCounts:
    """Counts of the drafts of one kind and level."""

    drafts: int = 0
    accepted: int = 0
    failed: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    """Number of rejected drafts by reason."""
    books: dict[str, BookCounts] = field(default_factory=dict)

    def book(self, name: str) -> BookCounts:
        """Return the counts of a book; a book without counts gets counts of 0."""
        return self.books.setdefault(name, BookCounts())

    def estimate_drafts(self, missing: int, limit: int) -> int:
        """Return the number of drafts, at most ``limit``, of which about ``missing`` will be accepted.

        The proportion of accepted drafts is estimated from the drafts so far, with two accepted drafts added as a
        prior.
        """
        smoothed_yield = (self.accepted + 2) / (self.drafts + 2)
        return min(limit, math.ceil(missing / smoothed_yield))

    def next_book(self, books: Sequence[str], pending: Mapping[str, int]) -> str:
        """Return the book with the fewest accepted questions, counting pending drafts as accepted.

        Books with poor yield are chosen less often, because they would need too many drafts to keep up with the others.

        Args:
            books: Document ids.
            pending: Number of drafts by book that are planned but not written yet.
        """
        n_drafts = {book: self.book(book).next_number + pending.get(book, 0) for book in books}
        mean_drafts = sum(n_drafts.values()) / len(n_drafts)

        def is_deferred(book: str) -> bool:
            n_used, n_accepted = self.book(book).next_number, self.book(book).accepted
            is_poor = (n_accepted + 1) * self.drafts < POOR_YIELD * (self.accepted + 1) * n_used
            return n_used >= MIN_DRAFTS_PER_BOOK and is_poor and n_drafts[book] > POOR_BOOK_SHARE * mean_drafts

        def rank(book: str) -> tuple[bool, int, int]:
            return is_deferred(book), self.book(book).accepted + pending.get(book, 0), n_drafts[book]

        return min(books, key=rank)


class PipelineCounts(dict[Stream, StreamCounts]):
    """Counts of all drafts of a dataset by stream (kind and level); a stream without drafts has counts of 0."""

    def __missing__(self, stream: Stream) -> StreamCounts:
        return self.setdefault(stream, StreamCounts())

    def add(self, stored_draft: StoredDraft) -> None:
        """Count a draft."""
        self._update_counts(stored_draft, 1)
        book = self[stored_draft.stream].book(stored_draft.book)
        book.next_number = max(book.next_number, stored_draft.number + 1)

    def remove(self, stored_draft: StoredDraft) -> None:
        """Subtract a draft that will be written again; its seed passage still counts as used."""
        self._update_counts(stored_draft, -1)

    def _update_counts(self, stored_draft: StoredDraft, difference: int) -> None:
        counts = self[stored_draft.stream]
        counts.drafts += difference
        if stored_draft.state == "accepted":
            counts.accepted += difference
            counts.book(stored_draft.book).accepted += difference
        elif stored_draft.state == "failed":
            counts.failed += difference
        else:
            rejection = stored_draft.draft.rejection
            counts.rejected[rejection.reason if rejection else ""] += difference


_is_usable = attrgetter("usable")
DecisionStep = Callable[[Sequence[Draft]], list[Draft]]
"""Function that adds decisions to drafts and returns all of them in the same order."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Functions that :func:`run_pipeline` calls, in the order of the steps."""

    books: Callable[[], Sequence[str]]
    """Function that returns the ids of the documents from which questions can be written."""
    seed: Callable[[str, str, int], Passage | None]
    """Function from a stream's name, a document id and an index to the seed passage; None if there is none."""
    contexts: Callable[[Sequence[Passage]], list[tuple[SourcePassage, ...]]]
    """Function that returns each seed passage followed by the passages retrieved for it."""
    write: Callable[[Sequence[Assignment]], list[Draft]]
    """Function that writes a draft of level ``base`` for each assignment."""
    evolve: Callable[[Sequence[Draft], Level, Sequence[int]], list[Draft]]
    """Function that evolves base drafts to the given level, using a sampling seed for each draft."""
    screen: DecisionStep
    later_steps: tuple[DecisionStep, ...]
    """Steps after screening: self-consistency, validation, masking."""
    find_duplicate: Callable[[Draft], str | None]
    """Function that returns the id of an accepted draft that the given draft repeats. If there is none, the function
    stores the given draft for later calls and returns None."""
    add_accepted: Callable[[Sequence[Draft]], None]
    """Function that makes the accepted drafts of earlier runs known to :attr:`find_duplicate`."""
    usage: Callable[[], Usage] = Usage
    """Function that returns the usage of this run."""


@dataclass(frozen=True, slots=True)
class PipelineResult:
    """Result of a run of the pipeline."""

    dataset: str
    counts: PipelineCounts
    """Counts of the whole dataset, including earlier runs."""
    requested: Mapping[Stream, int]
    """Number of requested questions by kind and level."""
    ended: Mapping[Stream, str]
    """Reason why the generation of a kind and level ended early. Complete kinds and levels have no entry."""
    usage: Usage
    """Usage of this run."""

    @property
    def complete(self) -> bool:
        """Whether every kind and level has its requested number of questions."""
        return all(self.counts[stream].accepted >= n_requested for stream, n_requested in self.requested.items())


PipelineProgress = Callable[[PipelineCounts, Usage], None]


def run_pipeline(
    recipe: Recipe, pipeline: Pipeline, store: DatasetStore, *, on_progress: PipelineProgress | None = None
) -> PipelineResult:
    """Write, screen, validate, mask and deduplicate drafts until each stream has its requested number of questions.

    A stream is a kind and level; it ends early if a limit of the recipe is reached. Drafts that failed in an earlier
    run are written again first.

    Raises:
        InputError: The dataset was begun with another recipe, or no book has a passage to write from.
        ModelError: A model cannot answer any request.
    """
    store.begin(recipe.name, recipe.identity())
    pipeline_run = _PipelineRun(recipe, pipeline, store, recipe.requested())
    failed_drafts, accepted_drafts = [], []
    for stored_draft in store.stored_drafts(recipe.name):
        pipeline_run.counts.add(stored_draft)
        if stored_draft.state == "failed":
            failed_drafts.append(stored_draft)
        elif stored_draft.state == "accepted":
            accepted_drafts.append(stored_draft.draft)
    pipeline.add_accepted(accepted_drafts)
    if not pipeline.books():
        raise InputError(
            f"The collections {', '.join(recipe.collections)} have no passage that questions could be written from."
        )
    report_progress = on_progress or (lambda _counts, _usage: None)
    report_progress(pipeline_run.counts, pipeline.usage())
    for start in range(0, len(failed_drafts), recipe.batch):
        batch = failed_drafts[start : start + recipe.batch]
        for stored_draft in batch:
            pipeline_run.counts.remove(stored_draft)
        pipeline_run.write_batch(
            [(stored_draft.stream, stored_draft.book, stored_draft.number) for stored_draft in batch]
        )
        report_progress(pipeline_run.counts, pipeline.usage())
        if pipeline_run.ended:
            break
    while slots := pipeline_run.plan():
        pipeline_run.write_batch(slots)
        report_progress(pipeline_run.counts, pipeline.usage())
    return PipelineResult(
        recipe.name, pipeline_run.counts, pipeline_run.requested, pipeline_run.ended, pipeline.usage()
    )


Slot = tuple[Stream, str, int]
"""Kind and level, document id, and index of a seed passage, which together determine a draft."""


@dataclass(slots=True)
class _PipelineRun:
    """State of a running pipeline: its counts, and the kinds and levels that have ended."""

    recipe: Recipe
    pipeline: Pipeline
    store: DatasetStore
    requested: Mapping[Stream, int]
    counts: PipelineCounts = field(default_factory=PipelineCounts)
    ended: dict[Stream, str] = field(default_factory=dict)
    unsuitable_books: set[str] = field(default_factory=set)
    """Ids of documents without a suitable passage."""

    def plan(self) -> list[Slot]:
        """Plan the next batch, and record the kinds and levels that have ended.

        For each other kind and level, the batch has as many drafts as are expected to supply the missing questions at
        the acceptance rate so far.
        """
        slots: list[Slot] = []
        for stream, n_requested in self.requested.items():
            counts = self.counts[stream]
            n_missing = n_requested - counts.accepted
            reason = None if n_missing <= 0 else self._stop_reason(counts)
            if reason:
                self.ended[stream] = reason
            elif n_missing > 0 and stream not in self.ended:
                slots += self._plan_stream(stream, counts.estimate_drafts(n_missing, self.recipe.batch))
        return slots

    def _stop_reason(self, counts: StreamCounts) -> str | None:
        stop, cost = self.recipe.stop, self.pipeline.usage().cost
        n_drafts, n_accepted = counts.drafts, counts.accepted
        if stop.cost is not None and cost is not None and cost >= stop.cost:
            return f"the budget of ${stop.cost:g} is spent"
        if stop.drafts is not None and n_drafts >= stop.drafts:
            return f"{counted(n_drafts, 'draft')} written, the maximum of the recipe"
        if n_drafts >= stop.after and n_accepted < stop.min_yield * n_drafts:
            return f"only {n_accepted} of {n_drafts} drafts were accepted, below the minimum yield {stop.min_yield:g}"
        return None

    def _plan_stream(self, stream: Stream, n_passages: int) -> list[Slot]:
        """Choose up to ``n_passages`` seed passages for a kind and level.

        They come from the books that have the fewest accepted questions of this kind and level.
        """
        counts = self.counts[stream]
        if self.recipe.stop.drafts is not None:
            n_passages = min(n_passages, self.recipe.stop.drafts - counts.drafts)
        books = [book for book in self.pipeline.books() if book not in self.unsuitable_books]
        n_planned: Counter[str] = Counter()
        slots: list[Slot] = []
        while books and len(slots) < n_passages:
            book = counts.next_book(books, n_planned)
            passage_number = counts.book(book).next_number + n_planned[book]
            if self.pipeline.seed(stream.name, book, passage_number) is None:
                self.unsuitable_books.add(book)
                books.remove(book)
                continue
            n_planned[book] += 1
            slots.append((stream, book, passage_number))
        if not slots:
            self.ended[stream] = "no book has a passage fit to write from"
        return slots

    def write_batch(self, slots: Sequence[Slot]) -> None:
        """Write a draft for each slot, apply all later steps, and store and count the drafts."""
        drafts = self._write_drafts(slots)
        for step in self.pipeline.later_steps:
            drafts = apply_where(_is_usable, step, drafts)
        for index, draft in enumerate(drafts):
            duplicate_id = self.pipeline.find_duplicate(draft) if draft.usable else None
            if duplicate_id is not None:
                detail = f"It says the same as {duplicate_id}."
                decision = Decision("deduplicate", "near-duplicates", False, "near-duplicate", detail)
                drafts[index] = draft.with_decisions(decision)
        batch = [StoredDraft(draft, book, number) for draft, (_, book, number) in zip(drafts, slots, strict=True)]
        self.store.save(self.recipe.name, batch)
        for stored_draft in batch:
            self.counts.add(stored_draft)
        errors = [draft.error for draft in drafts if draft.error is not None]
        if drafts and len(errors) == len(drafts):
            # A whole batch failed: the model is unreachable or unsuitable.
            reason = f"all of a batch failed ({counted(len(errors), 'draft')}), the first because: {errors[0]}"
            self.ended |= dict.fromkeys((stream for stream, _, _ in slots), reason)

    def _write_drafts(self, slots: Sequence[Slot]) -> list[Draft]:
        """Write and screen a draft for each slot. Drafts of higher levels are then evolved and screened again."""
        pipeline, recipe = self.pipeline, self.recipe
        seeds = [pipeline.seed(stream.name, book, number) for stream, book, number in slots]
        contexts = pipeline.contexts([passage for passage in seeds if passage is not None])
        assignments = [
            Assignment(
                draft_id(recipe.name, recipe.seed, stream.name, book, number),
                stream.kind,
                stream.level,
                passages,
                sampling_seed(recipe.seed, stream.name, book, number),
            )
            for (stream, book, number), passages in zip(slots, contexts, strict=True)
        ]
        pairs = zip(pipeline.write(assignments), assignments, strict=True)
        drafts = [replace(draft, level=assignment.level) for draft, assignment in pairs]
        drafts = apply_where(_is_usable, pipeline.screen, drafts)
        for level in ("reasoning", "hypothetical"):
            indices = [index for index, draft in enumerate(drafts) if draft.level == level and draft.usable]
            if indices:
                sampling_seeds = [assignments[index].seed for index in indices]
                evolved_drafts = pipeline.evolve([drafts[index] for index in indices], level, sampling_seeds)
                for index, draft in zip(indices, apply_where(_is_usable, pipeline.screen, evolved_drafts), strict=True):
                    drafts[index] = draft
        return drafts


def sampling_seed(*parts: object) -> int:
    """Return a seed below 2**31 that depends only on ``parts`` and is the same on every machine."""
    digest = hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1
