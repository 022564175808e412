"""The line: drafts of all kinds and levels, batch by batch, until enough of each are accepted.

Every batch is planned from what is stored, made, decided upon and stored as a whole. What a killed run had asked is
served from the records, so the same batch comes out again; a longer run is the continuation of a shorter one.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from climassay.corpus import Passage
from climassay.errors import InputError
from climassay.generation.dataset_store import DatasetStore, Placed
from climassay.generation.draft import Decision, Draft, SourcePassage, draft_id
from climassay.generation.line_counts import LineCounts, StreamCounts
from climassay.generation.recipe import Recipe, Stream
from climassay.generation.writing import Assignment
from climassay.models.contract import Usage
from climassay.questions import Level

Deciding = Callable[[Sequence[Draft]], list[Draft]]
"""A step that adds decisions to drafts: the same drafts come back, in the same order."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What the line is made of."""

    books: Callable[[], Sequence[str]]
    """Document ids to write from."""
    seed: Callable[[str, str, int], Passage | None]
    """(name of the stream, book, number) -> seed passage; None where the book has no passage fit to write from."""
    contexts: Callable[[Sequence[Passage]], list[tuple[SourcePassage, ...]]]
    """Each seed passage with what was retrieved for it."""
    write: Callable[[Sequence[Assignment]], list[Draft]]
    evolve: Callable[[Sequence[Draft], Level, Sequence[int]], list[Draft]]
    """(base drafts, level, seeds) -> evolved drafts."""
    screen: Deciding
    later: tuple[Deciding, ...]
    """Steps after screening, in their order: self-consistency, validation, masking ..."""
    repeats: Callable[[Draft], str | None]
    """Id of the accepted draft that this one repeats; one that repeats none is remembered."""
    remember: Callable[[Sequence[Draft]], None]
    """Takes in drafts that were accepted by an earlier run, for :attr:`repeats`."""
    usage: Callable[[], Usage] = Usage
    """Asked so far in this run."""


@dataclass(frozen=True, slots=True)
class LineReport:
    """What a run of the line came to."""

    dataset: str
    counts: LineCounts
    """Of the whole dataset, earlier runs included."""
    wanted: Mapping[Stream, int]
    ended: Mapping[Stream, str]
    """Why a stream ended short of what was wanted."""
    usage: Usage
    """Of this run."""

    @property
    def complete(self) -> bool:
        """Whether everything wanted is there."""
        return all(self.counts[stream].accepted >= number for stream, number in self.wanted.items())


@dataclass(slots=True)
class _Line:
    """The state of a run."""

    recipe: Recipe
    parts: Parts
    wanted: Mapping[Stream, int]
    counts: LineCounts = field(default_factory=LineCounts)
    ended: dict[Stream, str] = field(default_factory=dict)
    barren: set[str] = field(default_factory=set)
    """Books without a passage that is fit to write from."""


OnRound = Callable[[LineCounts, Usage], None]


def run_line(recipe: Recipe, parts: Parts, store: DatasetStore, *, on_round: OnRound | None = None) -> LineReport:
    """Write, screen, validate, mask and deduplicate until each stream has what the recipe wants.

    Drafts that failed in an earlier run are made again first.

    Args:
        recipe: What is wanted.
        parts: What makes and judges drafts.
        store: Where drafts are kept; a batch is stored before it is counted.
        on_round: Called with the counts and the usage of this run after every batch.

    Raises:
        InputError: The dataset was begun with another recipe, or no book has a passage to write from.
        ModelError: A model cannot work at all.
    """
    store.begin(recipe.name, recipe.deciding())
    line = _Line(recipe, parts, recipe.wanted())
    failed, accepted = [], []
    for placed in store.placed(recipe.name):
        line.counts.add(placed)
        if placed.state == "failed":
            failed.append(placed)
        elif placed.state == "accepted":
            accepted.append(placed.draft)
    parts.remember(accepted)
    if not parts.books():
        raise InputError(f"The collections {', '.join(recipe.collections)} have no passage fit to write from.")
    tell = on_round or (lambda _counts, _usage: None)
    tell(line.counts, parts.usage())
    for start in range(0, len(failed), recipe.batch):
        again = failed[start : start + recipe.batch]
        for placed in again:
            line.counts.remove(placed)
        _round(line, [(one.stream, one.book, one.number) for one in again], store)
        tell(line.counts, parts.usage())
        if line.ended:
            break
    while slots := _plan(line):
        _round(line, slots, store)
        tell(line.counts, parts.usage())
    return LineReport(recipe.name, line.counts, line.wanted, line.ended, parts.usage())


Slot = tuple[Stream, str, int]
"""Stream, book and number of a seed passage: decides a draft altogether."""


def _plan(line: _Line) -> list[Slot]:
    """What is to be written next: for each stream as much as its yield so far makes necessary."""
    slots: list[Slot] = []
    for stream, wanted in line.wanted.items():
        counts = line.counts[stream]
        missing = wanted - counts.accepted
        reason = None if missing <= 0 else _why_to_end(line, counts)
        if reason:
            line.ended[stream] = reason
        elif missing > 0 and stream not in line.ended:
            slots += _seats(line, stream, counts.needed(missing, line.recipe.batch))
    return slots


def _why_to_end(line: _Line, counts: StreamCounts) -> str | None:
    stop, cost = line.recipe.stop, line.parts.usage().cost
    if stop.cost is not None and cost is not None and cost >= stop.cost:
        return f"the budget of ${stop.cost:g} is spent"
    if stop.asked is not None and counts.asked >= stop.asked:
        return f"{counts.asked} drafts were written, the most that the recipe allows"
    if counts.asked >= stop.after and counts.accepted < stop.min_yield * counts.asked:
        return (
            f"only {counts.accepted} of {counts.asked} drafts were accepted, below the least yield {stop.min_yield:g}"
        )
    return None


def _seats(line: _Line, stream: Stream, number: int) -> list[Slot]:
    """Seed passages of the books that have the fewest accepted questions of a stream."""
    counts, recipe = line.counts[stream], line.recipe
    if recipe.stop.asked is not None:
        number = min(number, recipe.stop.asked - counts.asked)
    books = [book for book in line.parts.books() if book not in line.barren]
    pending: dict[str, int] = {}
    slots: list[Slot] = []
    while books and len(slots) < number:
        book = counts.neediest(books, pending)
        at = counts.book(book).following + pending.get(book, 0)
        if line.parts.seed(stream.name, book, at) is None:
            line.barren.add(book)
            books.remove(book)
            continue
        pending[book] = pending.get(book, 0) + 1
        slots.append((stream, book, at))
    if not slots:
        line.ended[stream] = "no book has a passage fit to write from"
    return slots


def _round(line: _Line, slots: Sequence[Slot], store: DatasetStore) -> None:
    """Make the drafts of some slots, decide upon them, store and count them."""
    drafts = _judged(line.parts, _written(line, slots))
    placed = [Placed(draft, book, number) for draft, (_, book, number) in zip(drafts, slots, strict=True)]
    store.save(line.recipe.name, placed)
    for one in placed:
        line.counts.add(one)
    errors = [draft.error for draft in drafts if draft.error is not None]
    if drafts and len(errors) == len(drafts):
        # Nothing came out of a whole batch: the model is away, or cannot do this at all.
        for stream in {stream for stream, _, _ in slots}:
            line.ended[stream] = f"all {len(errors)} drafts of a batch failed, the first because: {errors[0]}"


def _written(line: _Line, slots: Sequence[Slot]) -> list[Draft]:
    """Drafts of some slots, written, screened and, where their level asks for it, evolved and screened again."""
    parts, recipe = line.parts, line.recipe
    seeds = [parts.seed(stream.name, book, number) for stream, book, number in slots]
    found = parts.contexts([passage for passage in seeds if passage is not None])
    assignments = [
        Assignment(
            draft_id(recipe.name, recipe.seed, stream.name, book, number),
            stream.kind,
            stream.level,
            passages,
            sampling_seed(recipe.seed, stream.name, book, number),
        )
        for (stream, book, number), passages in zip(slots, found, strict=True)
    ]
    written = parts.write(assignments)
    drafts = _where_usable(
        parts.screen, [replace(draft, level=asked.level) for draft, asked in zip(written, assignments, strict=True)]
    )
    for level in ("reasoning", "hypothetical"):
        places = [place for place, draft in enumerate(drafts) if draft.level == level and draft.usable]
        if places:
            evolved = parts.evolve(
                [drafts[place] for place in places], level, [assignments[place].seed for place in places]
            )
            for place, draft in zip(places, _where_usable(parts.screen, evolved), strict=True):
                drafts[place] = draft
    return drafts


def _judged(parts: Parts, drafts: list[Draft]) -> list[Draft]:
    """The steps after screening, each on what is still usable, and the look for repetitions."""
    for step in parts.later:
        drafts = _where_usable(step, drafts)
    return [_without_repeats(draft, parts) if draft.usable else draft for draft in drafts]


def _where_usable(step: Deciding, drafts: Sequence[Draft]) -> list[Draft]:
    """The drafts, with what a step decides about those that are usable so far."""
    decided = list(drafts)
    places = [place for place, draft in enumerate(drafts) if draft.usable]
    if places:
        for place, draft in zip(places, step([drafts[place] for place in places]), strict=True):
            decided[place] = draft
    return decided


def _without_repeats(draft: Draft, parts: Parts) -> Draft:
    earlier = parts.repeats(draft)
    if earlier is None:
        return draft
    detail = f"It says the same as {earlier}."
    return draft.decided(Decision("deduplicate", "near-duplicates", False, "near-duplicate", detail))


def sampling_seed(*parts: object) -> int:
    """A seed below 2**31 that these parts decide, on any machine."""
    digest = hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1
