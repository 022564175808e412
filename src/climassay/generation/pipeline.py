"""The pipeline: drafts of all kinds and levels, batch by batch, until enough of each are accepted.

Every batch is planned from what is stored, made, decided upon and stored as a whole. What a killed run had asked is
served from the records, so the same batch comes out again; a longer run is the continuation of a shorter one.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from climassay.corpus import Passage
from climassay.errors import InputError
from climassay.generation.dataset_store import DatasetStore, StoredDraft
from climassay.generation.draft import Decision, Draft, SourcePassage, draft_id
from climassay.generation.recipe import Recipe, Stream
from climassay.generation.writing import Assignment
from climassay.models.contract import Usage
from climassay.questions import Level
from climassay.reporting import counted

GRACE = 10
"""Drafts that a book may give before its yield is looked at."""
POOR = 0.25
"""A book that yields less than this part of what the stream yields on average is poor ..."""
POOR_SHARE = 0.5
"""... and is asked at most this part as often as the books on average."""


@dataclass(slots=True)
class BookCounts:
    """Drafts of one stream from one book."""

    accepted: int = 0
    following: int = 0
    """Number of its next seed passage; how many were tried."""


@dataclass(slots=True)
class StreamCounts:
    """Drafts of one kind and level."""

    asked: int = 0
    accepted: int = 0
    failed: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    """By the reason of the decision that stands."""
    books: dict[str, BookCounts] = field(default_factory=dict)

    def book(self, name: str) -> BookCounts:
        """What came from one book."""
        return self.books.setdefault(name, BookCounts())

    def needed(self, missing: int, most: int) -> int:
        """Drafts to be written for so many more accepted ones, going by the yield so far."""
        share = (self.accepted + 2) / (self.asked + 2)
        return min(most, math.ceil(missing / share))

    def next_book(self, books: Sequence[str], pending: Mapping[str, int]) -> str:
        """The book with the fewest accepted questions, those under way counted as accepted.

        A poor book, which would have to be asked without end to keep up with the others, is asked more rarely.
        """
        asked = {book: self.book(book).following + pending.get(book, 0) for book in books}
        mean = sum(asked.values()) / len(asked)

        def waits(book: str) -> bool:
            tried, accepted = self.book(book).following, self.book(book).accepted
            poor = tried >= GRACE and (accepted + 1) * self.asked < POOR * (self.accepted + 1) * tried
            return poor and asked[book] > POOR_SHARE * mean

        return min(books, key=lambda book: (waits(book), self.book(book).accepted + pending.get(book, 0), asked[book]))


class PipelineCounts(dict[Stream, StreamCounts]):
    """All drafts of a dataset, counted; a stream without any has counts of 0."""

    def __missing__(self, stream: Stream) -> StreamCounts:
        return self.setdefault(stream, StreamCounts())

    def add(self, placed: StoredDraft) -> None:
        """Count a draft."""
        self._tally(placed, 1)
        book = self[placed.stream].book(placed.book)
        book.following = max(book.following, placed.number + 1)

    def remove(self, placed: StoredDraft) -> None:
        """Take back the count of a draft that is made again; its seed passage stays used."""
        self._tally(placed, -1)

    def _tally(self, placed: StoredDraft, one: int) -> None:
        counts = self[placed.stream]
        counts.asked += one
        if placed.state == "accepted":
            counts.accepted += one
            counts.book(placed.book).accepted += one
        elif placed.state == "failed":
            counts.failed += one
        else:
            standing = placed.draft.rejection
            counts.rejected[standing.reason if standing else ""] += one


DecisionStep = Callable[[Sequence[Draft]], list[Draft]]
"""A step that adds decisions to drafts: the same drafts come back, in the same order."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What the pipeline is made of."""

    books: Callable[[], Sequence[str]]
    """Document ids to write from."""
    seed: Callable[[str, str, int], Passage | None]
    """(name of the stream, book, number) -> seed passage; None where the book has no passage fit to write from."""
    contexts: Callable[[Sequence[Passage]], list[tuple[SourcePassage, ...]]]
    """Each seed passage with what was retrieved for it."""
    write: Callable[[Sequence[Assignment]], list[Draft]]
    evolve: Callable[[Sequence[Draft], Level, Sequence[int]], list[Draft]]
    """(base drafts, level, seeds) -> evolved drafts."""
    screen: DecisionStep
    later: tuple[DecisionStep, ...]
    """Steps after screening, in their order: self-consistency, validation, masking ..."""
    repeats: Callable[[Draft], str | None]
    """Id of the accepted draft that this one repeats; one that repeats none is remembered."""
    remember: Callable[[Sequence[Draft]], None]
    """Takes in drafts that were accepted by an earlier run, for :attr:`repeats`."""
    usage: Callable[[], Usage] = Usage
    """Asked so far in this run."""


@dataclass(frozen=True, slots=True)
class PipelineResult:
    """What a run of the pipeline came to."""

    dataset: str
    counts: PipelineCounts
    """Counts of the whole dataset, earlier runs included."""
    wanted: Mapping[Stream, int]
    ended: Mapping[Stream, str]
    """Why a stream ended short of what was wanted."""
    usage: Usage
    """Usage of this run."""

    @property
    def complete(self) -> bool:
        """Whether everything wanted is there."""
        return all(self.counts[stream].accepted >= number for stream, number in self.wanted.items())


PipelineProgress = Callable[[PipelineCounts, Usage], None]


def run_pipeline(
    recipe: Recipe, parts: Pipeline, store: DatasetStore, *, on_progress: PipelineProgress | None = None
) -> PipelineResult:
    """Write, screen, validate, mask and deduplicate until each stream has what the recipe wants.

    Drafts that failed in an earlier run are made again first.

    Raises:
        InputError: The dataset was begun with another recipe, or no book has a passage to write from.
        ModelError: A model cannot work at all.
    """
    store.begin(recipe.name, recipe.deciding())
    run = _Run(recipe, parts, store, recipe.wanted())
    failed, accepted = [], []
    for placed in store.placed(recipe.name):
        run.counts.add(placed)
        if placed.state == "failed":
            failed.append(placed)
        elif placed.state == "accepted":
            accepted.append(placed.draft)
    parts.remember(accepted)
    if not parts.books():
        raise InputError(f"The collections {', '.join(recipe.collections)} have no passage fit to write from.")
    progress = on_progress or (lambda _counts, _usage: None)
    progress(run.counts, parts.usage())
    for start in range(0, len(failed), recipe.batch):
        again = failed[start : start + recipe.batch]
        for placed in again:
            run.counts.remove(placed)
        run.make([(one.stream, one.book, one.number) for one in again])
        progress(run.counts, parts.usage())
        if run.ended:
            break
    while slots := run.plan():
        run.make(slots)
        progress(run.counts, parts.usage())
    return PipelineResult(recipe.name, run.counts, run.wanted, run.ended, parts.usage())


Slot = tuple[Stream, str, int]
"""Stream, book and number of a seed passage: decides a draft altogether."""


@dataclass(slots=True)
class _Run:
    """The state of a run."""

    recipe: Recipe
    parts: Pipeline
    store: DatasetStore
    wanted: Mapping[Stream, int]
    counts: PipelineCounts = field(default_factory=PipelineCounts)
    ended: dict[Stream, str] = field(default_factory=dict)
    barren: set[str] = field(default_factory=set)
    """Books without a passage that is fit to write from."""

    def plan(self) -> list[Slot]:
        """What is to be written next: for each stream as much as its yield so far makes necessary."""
        slots: list[Slot] = []
        for stream, wanted in self.wanted.items():
            counts = self.counts[stream]
            missing = wanted - counts.accepted
            reason = None if missing <= 0 else self._why_to_end(counts)
            if reason:
                self.ended[stream] = reason
            elif missing > 0 and stream not in self.ended:
                slots += self._seats(stream, counts.needed(missing, self.recipe.batch))
        return slots

    def _why_to_end(self, counts: StreamCounts) -> str | None:
        stop, cost, asked, accepted = self.recipe.stop, self.parts.usage().cost, counts.asked, counts.accepted
        if stop.cost is not None and cost is not None and cost >= stop.cost:
            return f"the budget of ${stop.cost:g} is spent"
        if stop.asked is not None and asked >= stop.asked:
            return f"it has {counted(asked, 'draft')}, the most that the recipe allows"
        if asked >= stop.after and accepted < stop.min_yield * asked:
            return f"only {accepted} of {asked} drafts were accepted, below the least yield {stop.min_yield:g}"
        return None

    def _seats(self, stream: Stream, number: int) -> list[Slot]:
        """Seed passages of the books that have the fewest accepted questions of a stream."""
        counts = self.counts[stream]
        if self.recipe.stop.asked is not None:
            number = min(number, self.recipe.stop.asked - counts.asked)
        books = [book for book in self.parts.books() if book not in self.barren]
        pending: Counter[str] = Counter()
        slots: list[Slot] = []
        while books and len(slots) < number:
            book = counts.next_book(books, pending)
            at = counts.book(book).following + pending[book]
            if self.parts.seed(stream.name, book, at) is None:
                self.barren.add(book)
                books.remove(book)
                continue
            pending[book] += 1
            slots.append((stream, book, at))
        if not slots:
            self.ended[stream] = "no book has a passage fit to write from"
        return slots

    def make(self, slots: Sequence[Slot]) -> None:
        """Make the drafts of some slots, decide upon them, store and count them."""
        drafts = self._written(slots)
        for step in self.parts.later:
            drafts = _where_usable(step, drafts)
        for place, draft in enumerate(drafts):
            earlier = self.parts.repeats(draft) if draft.usable else None
            if earlier is not None:
                detail = f"It says the same as {earlier}."
                repeats = Decision("deduplicate", "near-duplicates", False, "near-duplicate", detail)
                drafts[place] = draft.decided(repeats)
        placed = [StoredDraft(draft, book, number) for draft, (_, book, number) in zip(drafts, slots, strict=True)]
        self.store.save(self.recipe.name, placed)
        for one in placed:
            self.counts.add(one)
        errors = [draft.error for draft in drafts if draft.error is not None]
        if drafts and len(errors) == len(drafts):
            # Nothing came out of a whole batch: the model is away, or cannot do this at all.
            for stream in {stream for stream, _, _ in slots}:
                self.ended[stream] = (
                    f"all of a batch failed ({counted(len(errors), 'draft')}), the first because: {errors[0]}"
                )

    def _written(self, slots: Sequence[Slot]) -> list[Draft]:
        """Drafts of some slots, written, screened and, where their level asks for it, evolved and screened again."""
        parts, recipe = self.parts, self.recipe
        seeds = [parts.seed(stream.name, book, number) for stream, book, number in slots]
        contexts = parts.contexts([passage for passage in seeds if passage is not None])
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
        written = zip(parts.write(assignments), assignments, strict=True)
        drafts = _where_usable(parts.screen, [replace(draft, level=asked.level) for draft, asked in written])
        for level in ("reasoning", "hypothetical"):
            places = [place for place, draft in enumerate(drafts) if draft.level == level and draft.usable]
            if places:
                sampling = [assignments[place].seed for place in places]
                evolved = parts.evolve([drafts[place] for place in places], level, sampling)
                for place, draft in zip(places, _where_usable(parts.screen, evolved), strict=True):
                    drafts[place] = draft
        return drafts


def _where_usable(step: DecisionStep, drafts: Sequence[Draft]) -> list[Draft]:
    """The drafts, with what a step decides about those that are usable so far."""
    decided = list(drafts)
    places = [place for place, draft in enumerate(drafts) if draft.usable]
    if places:
        for place, draft in zip(places, step([drafts[place] for place in places]), strict=True):
            decided[place] = draft
    return decided


def sampling_seed(*parts: object) -> int:
    """A seed below 2**31 that these parts decide, on any machine."""
    digest = hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1
