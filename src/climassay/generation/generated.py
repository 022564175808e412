"""Datasets of generated questions as results: what was made of them, screened, and found."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from climassay.generation.dataset_stats import DatasetStats, dataset_report, dataset_stats, stats_tables
from climassay.generation.dataset_store import DatasetStore, Placed
from climassay.generation.draft import Draft
from climassay.generation.line import LineReport
from climassay.generation.recipe import Stream
from climassay.generation.screening import check_counts, table
from climassay.reporting import Report, Table
from climassay.reporting.results import Result


@dataclass(frozen=True, slots=True)
class Dataset(Result):
    """The drafts of a dataset, and what was counted over them; its items are the accepted drafts, in their order."""

    stats: DatasetStats
    placed: tuple[Placed, ...]

    @classmethod
    def of(cls, store: DatasetStore, name: str, **more: Any) -> Self:
        """A dataset of a workspace.

        Raises:
            InputError: There is none of that name.
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
            "streams": by_stream({stream: asdict(one) for stream, one in stats.streams.items()}),
            "rejected": [
                {"step": step, "reason": reason, "by_kind": dict(counts)}
                for (step, reason), counts in stats.reasons.items()
            ],
            "failures": dict(stats.failures),
            "sources": {book: by_stream(dict(counts)) for book, counts in stats.books.items()},
        }

    def rows(self) -> list[dict[str, Any]]:
        """A row an accepted question."""
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

    line: LineReport
    run: str

    def streams(self) -> list[dict[str, Any]]:
        """A row a kind and level: what was wanted, and what came of it."""
        counts = self.line.counts
        return [
            {
                "stream": stream.name,
                "wanted": wanted,
                "drafts": counts[stream].asked,
                "failed": counts[stream].failed,
                "accepted": counts[stream].accepted,
                "rejected": dict(+counts[stream].rejected),
                "ended": self.line.ended.get(stream),
            }
            for stream, wanted in self.line.wanted.items()
        ]

    def to_dict(self) -> dict[str, Any]:
        """What the run came to."""
        return {
            "run": self.run,
            "dataset": self.line.dataset,
            "complete": self.line.complete,
            "streams": self.streams(),
            "usage": self.line.usage,
            "sources": {book: counts.total() for book, counts in self.stats.books.items()},
        }

    def notes(self) -> Iterator[str]:
        """What ended early, and what was spent."""
        for stream, reason in self.line.ended.items():
            yield f"{stream.name} ended early: {reason}."
        usage = self.line.usage
        cost = "" if usage.cost is None else f", ${usage.cost:.4f}"
        yield (
            f"Run {self.run}: {usage.requests} requests, {usage.tokens}{cost}. "
            f"Look at it: climassay generate stats {self.line.dataset} -o report.html"
        )


@dataclass(frozen=True, slots=True)
class ScreenedDrafts(Result):
    """Drafts with the marks of the screening."""

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
        """A row a draft: its question, and why it was stopped."""
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
        """A row a check."""
        return (table(self.drafts),)

    def notes(self) -> Iterator[str]:
        """Rows that were left out."""
        for sentence in self.skipped:
            yield f"Left out: {sentence}"
