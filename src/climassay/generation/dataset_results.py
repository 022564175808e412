"""Results of a dataset: yield by kind and level, reasons for rejection, sources, and a report of its drafts."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from climassay.errors import NoAnswerError
from climassay.generation.complexity import Complexity, complexity_table, measure_complexity
from climassay.generation.dataset_store import DatasetStore, StoredDraft
from climassay.generation.draft import Draft
from climassay.generation.pipeline import PipelineResult, StreamCounts
from climassay.generation.recipe import Stream
from climassay.generation.screening import check_counts, screening_table
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

STEP_LABELS = {
    "write": "writing",
    "evolve": "evolving",
    "screen": "screening",
    "consistency": "self-consistency",
    "expert": "expert",
    "validate": "validator",
    "mask": "masking",
    "deduplicate": "repetition",
}
MAX_REPORTED_DRAFTS = 400
"""Maximum number of drafts that a report lists one by one."""


@dataclass(slots=True)
class DatasetStats:
    """Counts over the drafts of a dataset."""

    name: str
    streams: dict[Stream, StreamCounts] = field(default_factory=dict)
    reasons: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)
    """Number of rejected drafts by kind, for each pair of step and reason for rejection."""
    failures: Counter[str] = field(default_factory=Counter)
    """Number of drafts that were not written because the model call failed, by error."""
    books: dict[str, Counter[Stream]] = field(default_factory=dict)
    """Number of accepted questions by kind and level, for the title of each source."""
    sections: dict[str, set[str]] = field(default_factory=dict)
    """Sections with an accepted question, for the title of each source."""
    complexity: dict[Stream, list[Complexity]] = field(default_factory=dict)
    """Syntactic measures of every accepted question, by kind and level."""

    @property
    def accepted(self) -> int:
        """Number of accepted questions of all kinds."""
        return sum(counts.accepted for counts in self.streams.values())


def dataset_stats(name: str, stored_drafts: Iterable[StoredDraft]) -> DatasetStats:
    """Count the drafts of a dataset in one pass."""
    stats = DatasetStats(name)
    for stored_draft in stored_drafts:
        counts = stats.streams.setdefault(stored_draft.stream, StreamCounts())
        counts.drafts += 1
        draft, rejection = stored_draft.draft, stored_draft.draft.rejection
        if draft.error is not None:
            counts.failed += 1
            stats.failures[draft.error] += 1
        elif rejection is not None:
            reason = (rejection.step, rejection.reason)
            stats.reasons.setdefault(reason, Counter())[draft.kind] += 1
        else:
            counts.accepted += 1
            stats.books.setdefault(draft.main.document, Counter())[stored_draft.stream] += 1
            stats.sections.setdefault(draft.main.document, set()).add(draft.main.section)
            stats.complexity.setdefault(stored_draft.stream, []).append(measure_complexity(draft.wording.question))
    return stats


def stats_tables(stats: DatasetStats) -> list[Table]:
    """Return tables of yield, reasons for rejection, sources and complexity; empty tables are omitted."""
    streams = sorted(stats.streams, key=lambda stream: (KINDS.index(stream.kind), LEVELS.index(stream.level)))
    all_counts = stats.streams.values()
    n_drafts, n_failed = sum(counts.drafts for counts in all_counts), sum(counts.failed for counts in all_counts)
    total = StreamCounts(n_drafts, stats.accepted, n_failed)
    rows: list[tuple[str, ...]] = []
    counts_by_level = [(stream.kind, str(stream.level), stats.streams[stream]) for stream in streams]
    for kind, level, counts in (*counts_by_level, ("all", "", total)):
        n_rejected = counts.drafts - counts.failed - counts.accepted
        yield_cells = ("-", "-")
        if counts.drafts:
            estimate = proportion(counts.accepted, counts.drafts)
            low, high = estimate.interval
            yield_cells = (f"{100 * estimate.value:.1f}%", f"{100 * low:.1f} to {100 * high:.1f}")
        rows.append((kind, level, *map(str, (counts.drafts, counts.failed, n_rejected, counts.accepted)), *yield_cells))
    yields = Table.of(
        f"{stats.name}: yield",
        ("kind", "level", "drafts", "failed", "rejected", "accepted", "yield", "95% interval"),
        rows,
        left_columns=2,
        strong=(len(rows) - 1,),
        note="Yield: proportion of accepted drafts, with its Wilson interval. The next run repeats failed drafts.",
    )
    kinds = _list_kinds(stats)
    reasons = Table.of(
        f"{stats.name}: why drafts were rejected",
        ("step", "reason", *kinds, "all"),
        [
            (STEP_LABELS.get(step, step), reason, *(str(counts[kind]) for kind in kinds), str(counts.total()))
            for (step, reason), counts in _sort_reasons(stats)
        ],
        left_columns=2,
        note="Each draft counts once, under the first rejection; an expert's decision overrides all others.",
    )
    accepted_streams = [stream for stream in streams if stats.streams[stream].accepted]
    sources = Table.of(
        f"{stats.name}: accepted questions by source",
        ("source", *(stream.name for stream in accepted_streams), "all", "sections"),
        [
            (
                book,
                *(str(counts[stream]) for stream in accepted_streams),
                str(counts.total()),
                str(len(stats.sections[book])),
            )
            for book, counts in sorted(stats.books.items(), key=lambda entry: (-entry[1].total(), entry[0]))
        ],
    )
    complexity = complexity_table(stats.name, stats.complexity)
    return [table for table in (yields, reasons, sources, complexity) if table.rows]


def _list_kinds(stats: DatasetStats) -> list[Kind]:
    return [kind for kind in KINDS if any(stream.kind == kind for stream in stats.streams)]


def _sort_reasons(stats: DatasetStats) -> list[tuple[tuple[str, str], Counter[str]]]:
    """Return the counts of ``stats.reasons``, the most frequent reason first."""
    return sorted(stats.reasons.items(), key=lambda entry: (-entry[1].total(), entry[0]))


def stats_figures(stats: DatasetStats) -> list[StackedBars | DotPlot]:
    """Return charts of accepted questions by source and by level, and of rejections by reason (ClimaQA, Figure 7)."""
    figures: list[StackedBars | DotPlot] = []
    kinds = _list_kinds(stats)
    if stats.books:
        shades = {kind: 1.0 - 0.5 * min(1.0, index / 2) for index, kind in enumerate(KINDS)}
        bars = []
        for book, counts in sorted(stats.books.items()):
            values = [sum(count for stream, count in counts.items() if stream.kind == kind) for kind in kinds]
            bars.append(StackedBar(book, tuple(values)))
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
        n_written = sum(counts.drafts - counts.failed for counts in stats.streams.values())
        dots = []
        for (step, reason), counts_by_kind in _sort_reasons(stats):
            estimate = proportion(counts_by_kind.total(), n_written)
            dots.append(Dot(reason, STEP_LABELS.get(step, step), estimate.value, *estimate.interval))
        note = f"Of {n_written} drafts that were written; each is counted under its first rejection."
        figures.append(DotPlot("Why drafts were rejected", tuple(dots), "proportion of drafts", note))
    return figures


def dataset_report(
    stats: DatasetStats,
    stored_drafts: Sequence[StoredDraft],
    facts: Sequence[tuple[str, str]] = (),
    *,
    limit: int = MAX_REPORTED_DRAFTS,
) -> Report:
    """Return a report with the counts, and with the wording, passages and decisions of the first drafts.

    Args:
        stats: Counts of the dataset.
        stored_drafts: All drafts of the dataset.
        facts: Names and values that describe how the drafts were made.
        limit: Maximum number of drafts in the report.
    """
    n_drafts = sum(counts.drafts for counts in stats.streams.values())
    introduction = f"{counted(stats.accepted, 'accepted question')} of {counted(n_drafts, 'draft')}."
    reported_drafts = stored_drafts[:limit]
    passages = {stored_draft.draft.main.id: stored_draft.draft.main for stored_draft in reported_drafts}
    indices = {passage_id: index for index, passage_id in enumerate(passages)}
    answers = AnswerTables(
        "Drafts and the decisions on them",
        tuple(_to_report_row(stored_draft, indices[stored_draft.draft.main.id]) for stored_draft in reported_drafts),
        tuple(SourceText(passage.citation, passage.text) for passage in passages.values()),
        f"The first {limit} of {len(stored_drafts):,} drafts." if len(stored_drafts) > limit else "",
        total=len(stored_drafts),
        collection_word="state",
        wrong_word="rejected",
        some_wrong="some rejection",
    )
    origin = (Section("How they were made", (Facts(tuple(facts)),)),) if facts else ()
    yields = Section("Yield", (*stats_tables(stats), *stats_figures(stats)))
    return Report(f"Dataset {stats.name}", introduction, (yields, *origin, Section("Drafts", (answers,))))


def _to_report_row(stored_draft: StoredDraft, source_index: int) -> AnsweredQuestion:
    """Convert a draft to a row of the report; ``source_index`` is the index of its main passage in the report."""
    draft, wording = stored_draft.draft, stored_draft.draft.wording
    rows = []
    if draft.error is not None:
        rows.append(AnswerRow("writing", draft.origin.model, draft.error, ("",), True, True))
    for decision in draft.decisions:
        verdict = {True: "accepted", False: "rejected", None: "undecided"}[decision.accepted]
        verdict = f"{verdict}: {decision.reason}" if decision.reason else verdict
        rows.append(
            AnswerRow(
                group=STEP_LABELS.get(decision.step, decision.step),
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
        collection=stored_draft.state,
        text=wording.question or "(not written)",
        reference=wording.answer,
        metrics=("score",),
        answers=tuple(rows),
        options=tuple(
            Option(option_letter(number), text, number == wording.correct)
            for number, text in enumerate(wording.options)
        ),
        source=source_index,
    )


@dataclass(frozen=True, slots=True)
class Dataset(Result):
    """Drafts of a dataset and their counts; iteration and indexing give the accepted drafts."""

    rests_on_calls = False

    stats: DatasetStats
    stored_drafts: tuple[StoredDraft, ...]

    @classmethod
    def of(cls, store: DatasetStore, name: str, **fields: Any) -> Self:
        """Load a dataset.

        Args:
            store: Store with the dataset.
            name: Name of the dataset.
            fields: Values of the fields that a subclass adds.

        Raises:
            InputError: The dataset does not exist.
        """
        stored_drafts = tuple(store.stored_drafts(name))
        return cls(dataset_stats(name, stored_drafts), stored_drafts, **fields)

    @property
    def drafts(self) -> tuple[Draft, ...]:
        """Accepted drafts."""
        return tuple(stored_draft.draft for stored_draft in self.stored_drafts if stored_draft.draft.usable)

    def __len__(self) -> int:
        return len(self.drafts)

    def __iter__(self) -> Iterator[Draft]:
        return iter(self.drafts)

    def __getitem__(self, index: int) -> Draft:
        return self.drafts[index]

    def to_dict(self) -> dict[str, Any]:
        """Return all counts and the measures of complexity as JSON-serialisable values."""
        stats = self.stats

        def key_by_stream_name(counts: Mapping[Stream, Any]) -> dict[str, Any]:
            return {stream.name: value for stream, value in counts.items()}

        return {
            "dataset": stats.name,
            "accepted": stats.accepted,
            "streams": key_by_stream_name(
                {
                    stream: {"drafts": counts.drafts, "accepted": counts.accepted, "failed": counts.failed}
                    for stream, counts in stats.streams.items()
                }
            ),
            "rejected": [
                {"step": step, "reason": reason, "by_kind": dict(counts)}
                for (step, reason), counts in stats.reasons.items()
            ],
            "failures": dict(stats.failures),
            "sources": {book: key_by_stream_name(dict(counts)) for book, counts in stats.books.items()},
            "complexity": key_by_stream_name(
                {
                    stream: [measures._asdict() for measures in question_measures]
                    for stream, question_measures in stats.complexity.items()
                }
            ),
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per accepted question; empty fields are omitted."""
        return [{key: value for key, value in asdict(draft.as_question()).items() if value} for draft in self.drafts]

    def tables(self) -> list[Table]:
        """Return tables of yield, reasons for rejection, sources and complexity."""
        return stats_tables(self.stats)

    def report(self) -> Report:
        """Return a report of the counts and the drafts."""
        origins = [stored_draft.draft.origin for stored_draft in self.stored_drafts]
        models = {(origin.model, f"fingerprint {origin.fingerprint[:12]}", origin.dtype) for origin in origins}
        facts = [("model", ", ".join(filter(None, model_facts))) for model_facts in sorted(models)]
        return dataset_report(self.stats, self.stored_drafts, facts)


@dataclass(frozen=True, slots=True)
class GeneratedDataset(Dataset):
    """Dataset after a run of its recipe."""

    pipeline: PipelineResult
    run: str

    def streams(self) -> list[dict[str, Any]]:
        """Return one row per kind and level: its counts, and why generation ended early, if it did."""
        counts = self.pipeline.counts
        return [
            {
                "stream": stream.name,
                "requested": n_requested,
                "drafts": counts[stream].drafts,
                "failed": counts[stream].failed,
                "accepted": counts[stream].accepted,
                "rejected": dict(+counts[stream].rejected),
                "ended": self.pipeline.ended.get(stream),
            }
            for stream, n_requested in self.pipeline.requested.items()
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the run's id, counts, usage and sources as JSON-serialisable values."""
        return {
            "run": self.run,
            "dataset": self.pipeline.dataset,
            "complete": self.pipeline.complete,
            "streams": self.streams(),
            "usage": self.pipeline.usage,
            "sources": {book: counts.total() for book, counts in self.stats.books.items()},
        }

    def notes(self) -> Iterator[str]:
        """Yield a sentence for each reason why kinds and levels ended early, and one on the usage of the run."""
        for reason in dict.fromkeys(self.pipeline.ended.values()):
            names = ", ".join(
                stream.name for stream, stream_reason in self.pipeline.ended.items() if stream_reason == reason
            )
            yield f"{names} ended early: {reason.rstrip('.')}."
        usage = self.pipeline.usage
        cost = "" if usage.cost is None else f", ${usage.cost:.4f}"
        yield (
            f"Run {self.run}: {usage.requests} requests, {usage.tokens}{cost}. "
            f"Look at it: climassay generate stats {self.pipeline.dataset} -o report.html"
        )

    def failure(self) -> NoAnswerError | None:
        """Return an error if drafts were requested and every call failed, else None."""
        all_counts = self.pipeline.counts.values()
        if any(counts.drafts > counts.failed for counts in all_counts) or not any(
            counts.failed for counts in all_counts
        ):
            return None
        error = next(iter(self.stats.failures.most_common(1)), ("", 0))[0].rstrip(".")
        return NoAnswerError(f"No question was written, because every model call failed: {error}.")


@dataclass(frozen=True, slots=True)
class ScreenedDrafts(Result):
    """Drafts of a file with the decisions of the screening checks."""

    rests_on_calls = False

    file: str
    drafts: Sequence[Draft]
    skipped: tuple[str, ...] = ()
    """One sentence for each row of the file that was skipped."""

    def to_dict(self) -> dict[str, Any]:
        """Return the number of drafts, the number of failures, and the number of drafts rejected by each check."""
        written_drafts = [draft for draft in self.drafts if draft.error is None]
        return {
            "file": self.file,
            "drafts": len(self.drafts),
            "failed": len(self.drafts) - len(written_drafts),
            "rejected": sum(draft.rejection is not None for draft in written_drafts),
            "checks": check_counts(self.drafts),
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per draft with its question and the reason for its rejection."""
        return [
            {
                "id": draft.id,
                "kind": draft.kind,
                "question": draft.wording.question,
                "rejected": None if draft.rejection is None else draft.rejection.reason,
            }
            for draft in self.drafts
        ]

    def tables(self) -> tuple[Table, ...]:
        """Return the table of :func:`~climassay.generation.screening.screening_table`."""
        return (screening_table(self.drafts),)

    def notes(self) -> Iterator[str]:
        """Yield a sentence for each row that was skipped."""
        for sentence in self.skipped:
            yield f"Skipped: {sentence}"
