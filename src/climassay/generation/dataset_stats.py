"""A dataset in numbers: yield by kind and level, what removed drafts, and how questions spread over the sources."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from climassay.generation.dataset_store import Placed
from climassay.generation.recipe import Stream
from climassay.questions import KINDS, LEVELS
from climassay.reporting import (
    AnsweredQuestion,
    AnswerRow,
    AnswerTables,
    Category,
    Dot,
    DotPlot,
    Facts,
    Option,
    Report,
    Section,
    SourceText,
    StackedBar,
    StackedBars,
    Table,
)
from climassay.statistics import proportion

STEP_WORDS = {
    "write": "writing",
    "evolve": "evolving",
    "screen": "screening",
    "consistency": "self-consistency",
    "expert": "expert",
    "validate": "validator",
    "mask": "masking",
    "deduplicate": "repetition",
}
SHOWN = 400
"""Most drafts that a report lists one by one."""


@dataclass(slots=True)
class StreamStats:
    """One kind and level."""

    asked: int = 0
    accepted: int = 0
    failed: int = 0


@dataclass(slots=True)
class DatasetStats:
    """Everything counted once over the drafts of a dataset."""

    name: str
    streams: dict[Stream, StreamStats] = field(default_factory=dict)
    reasons: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)
    """(step, reason) -> drafts rejected for it, by kind."""
    failures: Counter[str] = field(default_factory=Counter)
    """Drafts that were never written, by what went wrong."""
    books: dict[str, Counter[Stream]] = field(default_factory=dict)
    """Title of the source -> accepted questions."""
    sections: dict[str, set[str]] = field(default_factory=dict)
    """Title of the source -> sections with an accepted question."""

    @property
    def accepted(self) -> int:
        """Accepted questions of all kinds."""
        return sum(one.accepted for one in self.streams.values())


def dataset_stats(name: str, placed: Iterable[Placed]) -> DatasetStats:
    """Count the drafts of a dataset in one pass.

    Args:
        name: Of the dataset.
        placed: As :meth:`climassay.generation.dataset_store.DatasetStore.placed` gives them.
    """
    stats = DatasetStats(name)
    for one in placed:
        counts = stats.streams.setdefault(one.stream, StreamStats())
        counts.asked += 1
        draft, rejection = one.draft, one.draft.rejection
        if draft.error is not None:
            counts.failed += 1
            stats.failures[draft.error] += 1
        elif rejection is not None:
            reason = (rejection.step, rejection.reason)
            stats.reasons.setdefault(reason, Counter())[draft.kind] += 1
        else:
            counts.accepted += 1
            stats.books.setdefault(draft.main.document, Counter())[one.stream] += 1
            stats.sections.setdefault(draft.main.document, set()).add(draft.main.section)
    return stats


def stats_tables(stats: DatasetStats) -> list[Table]:
    """Yield, reasons and sources as tables; those without a row are left out."""
    tables = [_yield_table(stats), _reason_table(stats), _source_table(stats)]
    return [table for table in tables if table.rows]


def _ordered(stats: DatasetStats) -> list[Stream]:
    return sorted(stats.streams, key=lambda one: (KINDS.index(one.kind), LEVELS.index(one.level)))


def _yield_table(stats: DatasetStats) -> Table:
    rows = [(stream.kind, stream.level, *_yield_cells(stats.streams[stream])) for stream in _ordered(stats)]
    total = StreamStats(
        sum(one.asked for one in stats.streams.values()),
        stats.accepted,
        sum(one.failed for one in stats.streams.values()),
    )
    rows.append(("all", "", *_yield_cells(total)))
    return Table.of(
        f"{stats.name}: yield",
        ("kind", "level", "drafts", "failed", "rejected", "accepted", "yield", "95% interval"),
        rows,
        left=2,
        strong=(len(rows) - 1,),
        note="Yield: accepted share of all drafts, with its Wilson interval. The next run makes failed drafts again.",
    )


def _yield_cells(counts: StreamStats) -> tuple[str, ...]:
    numbers = (counts.asked, counts.failed, counts.asked - counts.failed - counts.accepted, counts.accepted)
    cells = tuple(map(str, numbers))
    if not counts.asked:
        return (*cells, "-", "-")
    share = proportion(counts.accepted, counts.asked)
    low, high = share.interval
    return (*cells, f"{100 * share.value:.1f}%", f"{100 * low:.1f} to {100 * high:.1f}")


def _reason_table(stats: DatasetStats) -> Table:
    kinds = [kind for kind in KINDS if any(stream.kind == kind for stream in stats.streams)]
    ordered = sorted(stats.reasons.items(), key=lambda entry: (-entry[1].total(), entry[0]))
    rows = [
        (STEP_WORDS.get(step, step), reason, *(str(counts[kind]) for kind in kinds), str(counts.total()))
        for (step, reason), counts in ordered
    ]
    return Table.of(
        f"{stats.name}: why drafts were rejected",
        ("step", "reason", *kinds, "all"),
        rows,
        left=2,
        note="Each draft counts once, under the first decision against it; an expert's word stands above all others.",
    )


def _source_table(stats: DatasetStats) -> Table:
    streams = [stream for stream in _ordered(stats) if stats.streams[stream].accepted]
    rows = [
        (book, *(str(counts[stream]) for stream in streams), str(counts.total()), str(len(stats.sections[book])))
        for book, counts in sorted(stats.books.items(), key=lambda entry: (-entry[1].total(), entry[0]))
    ]
    headings = ("source", *(stream.name for stream in streams), "all", "sections")
    return Table.of(f"{stats.name}: accepted questions by source", headings, rows)


def stats_figures(stats: DatasetStats) -> list[StackedBars | DotPlot]:
    """Accepted questions by source and kind, by level, and rejections by reason (the paper's Figure 7)."""
    figures: list[StackedBars | DotPlot] = []
    kinds = [kind for kind in KINDS if any(stream.kind == kind for stream in stats.streams)]
    colours = tuple(
        Category(kind, 1.0 - 0.5 * min(1.0, place / 2)) for place, kind in enumerate(KINDS) if kind in kinds
    )
    by_book = [
        StackedBar(book, tuple(_of_kind(counts, kind) for kind in kinds))
        for book, counts in sorted(stats.books.items())
    ]
    if by_book:
        note = "Each bar is one source; its parts are the kinds of its accepted questions."
        figures.append(StackedBars("Accepted questions by source", colours, tuple(by_book), note))
    levels = tuple(Category(level, place) for level, place in zip(LEVELS, (1.0, 0.75, 0.5), strict=True))
    by_kind = [
        StackedBar(kind, tuple(stats.streams.get(Stream(kind, level), StreamStats()).accepted for level in LEVELS))
        for kind in kinds
    ]
    if stats.accepted:
        figures.append(StackedBars("Accepted questions by level", levels, tuple(by_kind)))
    if stats.reasons:
        figures.append(_reason_figure(stats))
    return figures


def _reason_figure(stats: DatasetStats) -> DotPlot:
    """Share of the drafts that each reason removed (the paper's Figure 7, with intervals)."""
    written = sum(one.asked - one.failed for one in stats.streams.values())
    dots = []
    for (step, reason), counts in sorted(stats.reasons.items(), key=lambda entry: (-entry[1].total(), entry[0])):
        share = proportion(counts.total(), written)
        dots.append(Dot(reason, STEP_WORDS.get(step, step), share.value, *share.interval))
    note = f"Of {written} drafts that were written; each is counted under the first decision against it."
    return DotPlot("Why drafts were rejected", tuple(dots), "share of the drafts", note)


def _of_kind(counts: Counter[Stream], kind: str) -> int:
    return sum(count for stream, count in counts.items() if stream.kind == kind)


def dataset_report(stats: DatasetStats, placed: Sequence[Placed], facts: Sequence[tuple[str, str]] = ()) -> Report:
    """A page with the numbers and with every draft: its words, its passages and what was decided about it.

    Args:
        stats: Of these drafts.
        placed: The drafts; the first :data:`SHOWN` are listed.
        facts: What the reader should know of how they were made.
    """
    lead = f"{stats.accepted} accepted questions of {sum(one.asked for one in stats.streams.values())} drafts."
    shown = placed[:SHOWN]
    note = f"The first {SHOWN} of {len(placed)} drafts." if len(placed) > SHOWN else ""
    sections = [
        Section("Yield", (*stats_tables(stats), *stats_figures(stats))),
        Section("Drafts", (_answers(shown, note),)),
    ]
    if facts:
        sections.insert(1, Section("How they were made", (Facts(tuple(facts)),)))
    return Report(f"Dataset {stats.name}", lead, tuple(sections))


def _answers(placed: Sequence[Placed], note: str) -> AnswerTables:
    passages = {one.draft.main.id: one.draft.main for one in placed}
    places = {name: place for place, name in enumerate(passages)}
    questions = tuple(_answered(one, places[one.draft.main.id]) for one in placed)
    sources = tuple(SourceText(one.place, one.text) for one in passages.values())
    return AnswerTables(
        "Drafts and the decisions on them",
        questions,
        sources,
        note,
        collection_word="state",
        wrong_word="against it",
        some_wrong="some decision against it",
    )


def _answered(one: Placed, place: int) -> AnsweredQuestion:
    draft, wording = one.draft, one.draft.wording
    letters = "abcdefghijklmnopqrstuvwxyz"
    failure = () if draft.error is None else (AnswerRow("writing", draft.origin.model, draft.error, ("",), True, True),)
    rows = failure + tuple(
        AnswerRow(
            group=STEP_WORDS.get(decision.step, decision.step),
            label=decision.by,
            text=_decision_words(decision.accepted, decision.reason, decision.detail),
            scores=("" if decision.score is None else f"{decision.score:.2f}",),
            wrong=decision.accepted is False,
            failed=decision.accepted is None,
        )
        for decision in draft.decisions
    )
    return AnsweredQuestion(
        id=draft.id,
        kind=draft.kind,
        level=draft.level,
        collection=one.state,
        text=wording.question or "(not written)",
        reference=wording.answer,
        metrics=("score",),
        answers=rows,
        options=tuple(
            Option(letters[number], text, number == wording.correct) for number, text in enumerate(wording.options)
        ),
        source=place,
    )


def _decision_words(accepted: bool | None, reason: str, detail: str) -> str:
    verdict = {True: "accepted", False: "rejected", None: "undecided"}[accepted]
    return ". ".join(part for part in (f"{verdict}: {reason}" if reason else verdict, detail) if part)
