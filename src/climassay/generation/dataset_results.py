"""A dataset in numbers: yield by kind and level, what removed drafts, and how questions spread over the sources."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from climassay.errors import NoAnswerError
from climassay.generation.dataset_store import DatasetStore, StoredDraft
from climassay.generation.draft import Draft
from climassay.generation.pipeline import PipelineResult, StreamCounts
from climassay.generation.recipe import Stream
from climassay.generation.screening import check_counts, table
from climassay.questions import KINDS, LEVELS, Kind, option_letter
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
    counted,
)
from climassay.reporting.results import Result
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
"""Maximum number of drafts that a report lists one by one."""


@dataclass(slots=True)
class DatasetStats:
    """Everything counted once over the drafts of a dataset."""

    name: str
    streams: dict[Stream, StreamCounts] = field(default_factory=dict)
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


def dataset_stats(name: str, placed: Iterable[StoredDraft]) -> DatasetStats:
    """Count the drafts of a dataset in one pass."""
    stats = DatasetStats(name)
    for one in placed:
        counts = stats.streams.setdefault(one.stream, StreamCounts())
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
    streams = sorted(stats.streams, key=lambda one: (KINDS.index(one.kind), LEVELS.index(one.level)))
    counts = stats.streams.values()
    total = StreamCounts(sum(one.asked for one in counts), stats.accepted, sum(one.failed for one in counts))
    rows: list[tuple[str, ...]] = []
    for kind, level, one in (*((one.kind, one.level, stats.streams[one]) for one in streams), ("all", "", total)):
        numbers = (one.asked, one.failed, one.asked - one.failed - one.accepted, one.accepted)
        share = ("-", "-")
        if one.asked:
            estimate = proportion(one.accepted, one.asked)
            low, high = estimate.interval
            share = (f"{100 * estimate.value:.1f}%", f"{100 * low:.1f} to {100 * high:.1f}")
        rows.append((kind, level, *map(str, numbers), *share))
    yields = Table.of(
        f"{stats.name}: yield",
        ("kind", "level", "drafts", "failed", "rejected", "accepted", "yield", "95% interval"),
        rows,
        left=2,
        strong=(len(rows) - 1,),
        note="Yield: accepted share of all drafts, with its Wilson interval. The next run makes failed drafts again.",
    )
    kinds = _kinds(stats)
    reasons = Table.of(
        f"{stats.name}: why drafts were rejected",
        ("step", "reason", *kinds, "all"),
        [
            (STEP_WORDS.get(step, step), reason, *(str(counts[kind]) for kind in kinds), str(counts.total()))
            for (step, reason), counts in _reasons(stats)
        ],
        left=2,
        note="Each draft counts once, under the first decision against it; an expert's word stands above all others.",
    )
    filled = [stream for stream in streams if stats.streams[stream].accepted]
    sources = Table.of(
        f"{stats.name}: accepted questions by source",
        ("source", *(stream.name for stream in filled), "all", "sections"),
        [
            (book, *(str(counts[stream]) for stream in filled), str(counts.total()), str(len(stats.sections[book])))
            for book, counts in sorted(stats.books.items(), key=lambda entry: (-entry[1].total(), entry[0]))
        ],
    )
    return [table for table in (yields, reasons, sources) if table.rows]


def _kinds(stats: DatasetStats) -> list[Kind]:
    return [kind for kind in KINDS if any(stream.kind == kind for stream in stats.streams)]


def _reasons(stats: DatasetStats) -> list[tuple[tuple[str, str], Counter[str]]]:
    """Reasons for rejection with the drafts they hit, the commonest first."""
    return sorted(stats.reasons.items(), key=lambda entry: (-entry[1].total(), entry[0]))


def stats_figures(stats: DatasetStats) -> list[StackedBars | DotPlot]:
    """Accepted questions by source and kind, by level, and rejections by reason (the paper's Figure 7)."""
    figures: list[StackedBars | DotPlot] = []
    kinds = _kinds(stats)
    if stats.books:
        shades = {kind: 1.0 - 0.5 * min(1.0, place / 2) for place, kind in enumerate(KINDS)}
        bars = []
        for book, counts in sorted(stats.books.items()):
            of_kind = [sum(count for stream, count in counts.items() if stream.kind == kind) for kind in kinds]
            bars.append(StackedBar(book, tuple(of_kind)))
        parts = tuple(Category(kind, shades[kind]) for kind in kinds)
        note = "Each bar is one source; its parts are the kinds of its accepted questions."
        figures.append(StackedBars("Accepted questions by source", parts, tuple(bars), note))
    if stats.accepted:
        parts = tuple(Category(level, shade) for level, shade in zip(LEVELS, (1.0, 0.75, 0.5), strict=True))
        bars = [
            StackedBar(kind, tuple(stats.streams.get(Stream(kind, level), StreamCounts()).accepted for level in LEVELS))
            for kind in kinds
        ]
        figures.append(StackedBars("Accepted questions by level", parts, tuple(bars)))
    if stats.reasons:
        written = sum(one.asked - one.failed for one in stats.streams.values())
        dots = []
        for (step, reason), removed in _reasons(stats):
            share = proportion(removed.total(), written)
            dots.append(Dot(reason, STEP_WORDS.get(step, step), share.value, *share.interval))
        note = f"Of {written} drafts that were written; each is counted under the first decision against it."
        figures.append(DotPlot("Why drafts were rejected", tuple(dots), "share of the drafts", note))
    return figures


def dataset_report(
    stats: DatasetStats, placed: Sequence[StoredDraft], facts: Sequence[tuple[str, str]] = (), *, most: int = SHOWN
) -> Report:
    """A page with the numbers and with the first drafts: words, passages and what was decided about each."""
    asked = sum(one.asked for one in stats.streams.values())
    lead = f"{counted(stats.accepted, 'accepted question')} of {counted(asked, 'draft')}."
    shown = placed[:most]
    passages = {one.draft.main.id: one.draft.main for one in shown}
    places = {name: place for place, name in enumerate(passages)}
    answers = AnswerTables(
        "Drafts and the decisions on them",
        tuple(_answered(one, places[one.draft.main.id]) for one in shown),
        tuple(SourceText(one.place, one.text) for one in passages.values()),
        f"The first {most} of {len(placed):,} drafts." if len(placed) > most else "",
        total=len(placed),
        collection_word="state",
        wrong_word="against it",
        some_wrong="some decision against it",
    )
    made = (Section("How they were made", (Facts(tuple(facts)),)),) if facts else ()
    yields = Section("Yield", (*stats_tables(stats), *stats_figures(stats)))
    return Report(f"Dataset {stats.name}", lead, (yields, *made, Section("Drafts", (answers,))))


def _answered(one: StoredDraft, place: int) -> AnsweredQuestion:
    draft, wording = one.draft, one.draft.wording
    rows = []
    if draft.error is not None:
        rows.append(AnswerRow("writing", draft.origin.model, draft.error, ("",), True, True))
    for decision in draft.decisions:
        verdict = {True: "accepted", False: "rejected", None: "undecided"}[decision.accepted]
        verdict = f"{verdict}: {decision.reason}" if decision.reason else verdict
        rows.append(
            AnswerRow(
                group=STEP_WORDS.get(decision.step, decision.step),
                label=decision.by,
                text=f"{verdict}. {decision.detail}" if decision.detail else verdict,
                scores=("" if decision.score is None else f"{decision.score:.2f}",),
                wrong=decision.accepted is False,
                failed=decision.accepted is None,
            )
        )
    return AnsweredQuestion(
        id=draft.id,
        kind=draft.kind,
        level=draft.level,
        collection=one.state,
        text=wording.question or "(not written)",
        reference=wording.answer,
        metrics=("score",),
        answers=tuple(rows),
        options=tuple(
            Option(option_letter(number), text, number == wording.correct)
            for number, text in enumerate(wording.options)
        ),
        source=place,
    )


@dataclass(frozen=True, slots=True)
class Dataset(Result):
    """The drafts of a dataset, and what was counted over them; its items are the accepted drafts, in their order."""

    rests_on_calls = False

    stats: DatasetStats
    placed: tuple[StoredDraft, ...]

    @classmethod
    def of(cls, store: DatasetStore, name: str, **more: Any) -> Self:
        """A dataset of a workspace.

        Raises:
            InputError: There is none with that name.
        """
        placed = tuple(store.placed(name))
        return cls(dataset_stats(name, placed), placed, **more)

    @property
    def drafts(self) -> tuple[Draft, ...]:
        """The accepted drafts."""
        return tuple(one.draft for one in self.placed if one.draft.usable)

    def __len__(self) -> int:
        return len(self.drafts)

    def __iter__(self) -> Iterator[Draft]:
        return iter(self.drafts)

    def __getitem__(self, place: int) -> Draft:
        return self.drafts[place]

    def to_dict(self) -> dict[str, Any]:
        """Yield, reasons for rejection, and sources."""
        stats = self.stats

        def by_stream(counts: Mapping[Stream, Any]) -> dict[str, Any]:
            return {stream.name: value for stream, value in counts.items()}

        return {
            "dataset": stats.name,
            "accepted": stats.accepted,
            "streams": by_stream(
                {
                    stream: {"asked": one.asked, "accepted": one.accepted, "failed": one.failed}
                    for stream, one in stats.streams.items()
                }
            ),
            "rejected": [
                {"step": step, "reason": reason, "by_kind": dict(counts)}
                for (step, reason), counts in stats.reasons.items()
            ],
            "failures": dict(stats.failures),
            "sources": {book: by_stream(dict(counts)) for book, counts in stats.books.items()},
        }

    def rows(self) -> list[dict[str, Any]]:
        """A row per accepted question."""
        return [{key: value for key, value in asdict(one.as_question()).items() if value} for one in self.drafts]

    def tables(self) -> list[Table]:
        """Yield, reasons and sources."""
        return stats_tables(self.stats)

    def report(self) -> Report:
        """The numbers, and every draft."""
        origins = [one.draft.origin for one in self.placed]
        made = {(one.model, f"fingerprint {one.fingerprint[:12]}", one.dtype) for one in origins}
        facts = [("model", ", ".join(filter(None, one))) for one in sorted(made)]
        return dataset_report(self.stats, self.placed, facts)


@dataclass(frozen=True, slots=True)
class GeneratedDataset(Dataset):
    """A dataset after a run of its recipe."""

    pipeline: PipelineResult
    run: str

    def streams(self) -> list[dict[str, Any]]:
        """A row per kind and level: what was wanted, and what came of it."""
        counts = self.pipeline.counts
        return [
            {
                "stream": stream.name,
                "wanted": wanted,
                "drafts": counts[stream].asked,
                "failed": counts[stream].failed,
                "accepted": counts[stream].accepted,
                "rejected": dict(+counts[stream].rejected),
                "ended": self.pipeline.ended.get(stream),
            }
            for stream, wanted in self.pipeline.wanted.items()
        ]

    def to_dict(self) -> dict[str, Any]:
        """What the run came to."""
        return {
            "run": self.run,
            "dataset": self.pipeline.dataset,
            "complete": self.pipeline.complete,
            "streams": self.streams(),
            "usage": self.pipeline.usage,
            "sources": {book: counts.total() for book, counts in self.stats.books.items()},
        }

    def notes(self) -> Iterator[str]:
        """What ended early, and what was spent."""
        for reason in dict.fromkeys(self.pipeline.ended.values()):
            streams = ", ".join(one.name for one, why in self.pipeline.ended.items() if why == reason)
            yield f"{streams} ended early: {reason.rstrip('.')}."
        usage = self.pipeline.usage
        cost = "" if usage.cost is None else f", ${usage.cost:.4f}"
        yield (
            f"Run {self.run}: {usage.requests} requests, {usage.tokens}{cost}. "
            f"Look at it: climassay generate stats {self.pipeline.dataset} -o report.html"
        )

    def failure(self) -> NoAnswerError | None:
        """No draft was ever written, because the calls failed."""
        counts = self.pipeline.counts.values()
        if any(one.asked > one.failed for one in counts) or not any(one.failed for one in counts):
            return None
        why = next(iter(self.stats.failures.most_common(1)), ("", 0))[0].rstrip(".")
        return NoAnswerError(f"No question was written, because every model call failed: {why}.")


@dataclass(frozen=True, slots=True)
class ScreenedDrafts(Result):
    """Drafts with the marks of the screening."""

    rests_on_calls = False

    file: str
    drafts: Sequence[Draft]
    skipped: tuple[str, ...] = ()
    """Rows of the file that were left out, with the reason."""

    def to_dict(self) -> dict[str, Any]:
        """How many drafts each check stopped."""
        written = [draft for draft in self.drafts if draft.error is None]
        return {
            "file": self.file,
            "drafts": len(self.drafts),
            "failed": len(self.drafts) - len(written),
            "stopped": sum(draft.rejection is not None for draft in written),
            "checks": check_counts(self.drafts),
        }

    def rows(self) -> list[dict[str, Any]]:
        """A row per draft: its question, and why it was stopped."""
        return [
            {
                "id": one.id,
                "kind": one.kind,
                "question": one.wording.question,
                "stopped": None if one.rejection is None else one.rejection.reason,
            }
            for one in self.drafts
        ]

    def tables(self) -> tuple[Table, ...]:
        """A row per check."""
        return (table(self.drafts),)

    def notes(self) -> Iterator[str]:
        """Rows that were left out."""
        for sentence in self.skipped:
            yield f"Left out: {sentence}"
