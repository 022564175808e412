"""Results of checking several claims, and of scoring verdicts."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from climassay.factcheck.results.analysis import RunAnalysis, analysis_data
from climassay.factcheck.results.analysis_tables import (
    analysis_tables,
    group_table,
)
from climassay.factcheck.results.checked_claim import (
    CheckedClaim,
    verdict_row,
)
from climassay.factcheck.results.page import factcheck_page
from climassay.factcheck.results.report import factcheck_report
from climassay.factcheck.results.scoring import (
    GroupedScores,
    VerdictScores,
    verdict_data,
    verdict_report,
    verdict_tables,
)
from climassay.io import write_file
from climassay.prompts import DEMONSTRATION
from climassay.records import RequestCounts
from climassay.reporting import (
    Report,
    Section,
    Table,
    as_markdown,
)
from climassay.reporting.results import Result
from climassay.reporting.tables import skipped_note

MAX_LISTED = 30
"""Maximum number of verdicts listed in a terminal."""


@dataclass(frozen=True, slots=True)
class CheckedClaims(Result):
    """Result of checking the claims of a file."""

    file: str
    transcripts: tuple[CheckedClaim, ...]
    analysis: RunAnalysis
    run: str
    tallies: Mapping[str, RequestCounts]
    """Counts of cached, sent and failed requests, with their token usage, by model name."""
    skipped: tuple[str, ...] = ()
    """Reasons for skipped rows of the file."""
    facts: tuple[tuple[str, str], ...] = ()
    pages: Mapping[str, str] = field(default_factory=dict)
    """Addresses of the claims' pages by claim id, relative to the report."""

    def to_dict(self) -> dict[str, Any]:
        """Return run, verdicts and analysis as JSON-serialisable values."""
        run_data = {"run": self.run, "skipped": self.skipped, "tallies": self.tallies}
        return {**run_data, "verdicts": self.rows(), **analysis_data(self.analysis)}

    def rows(self) -> list[dict[str, str | None]]:
        """Return one row per claim."""
        return [verdict_row(transcript) for transcript in self.transcripts]

    def tables(self) -> list[Table]:
        """Return all tables of the analysis."""
        return list(analysis_tables(self.analysis))

    def terminal_tables(self, width: int) -> list[Table]:  # noqa: ARG002
        """Return a table of the verdicts, unless there are too many, and all tables of the analysis."""
        if len(self.transcripts) > MAX_LISTED:
            return self.tables()
        rows = [
            (
                str(row["claim"]),
                row["label"] or str(row["outcome"]),
                row["confidence"] or "-",
                str(len(transcript.rounds)),
            )
            for row, transcript in zip(self.rows(), self.transcripts, strict=True)
        ]
        return [
            Table.of("Verdicts", ("claim", "verdict", "confidence", "rounds"), rows, left_columns=3),
            *self.tables(),
        ]

    def notes(self) -> Iterator[str]:
        """Yield notes on skipped rows, requests and costs."""
        if self.analysis.demonstration:
            yield DEMONSTRATION
        yield from skipped_note(self.skipped)
        for name, tally in self.tallies.items():
            cost = "" if tally.usage.cost is None else f", ${tally.usage.cost:.4f}"
            yield (
                f"Run {self.run}, {name}: {tally.hits} answers from the records, {tally.sent} asked "
                f"({tally.failed} failed), {tally.usage.tokens}{cost}."
            )

    def markdown(self) -> str:
        """Return all tables as Markdown, with a warning if a very small model took part."""
        tables = [as_markdown(table) for table in self.tables()]
        return "\n".join([*tables, *([f"{DEMONSTRATION}\n"] if self.analysis.demonstration else [])])

    def report(self) -> Report:
        """Return the report with scores, figures and disagreements."""
        return factcheck_report(self.analysis, file=self.file, facts=self.facts, pages=self.pages)

    def write_pages(self, folder: Path, report: Path | None = None) -> "CheckedClaims":
        """Write a page about each claim.

        Args:
            folder: Folder of the pages.
            report: Path at which the report will be written, for links back to it; None for no report.

        Returns:
            The result, with links from the report to the pages.

        Raises:
            InputError: A page cannot be written.
        """
        for transcript in self.transcripts:
            write_file(folder / f"{transcript.claim.id}.html", factcheck_page(transcript, self.analysis.scale))
        if report is None:
            return self
        relative_folder = os.path.relpath(folder, report.parent)
        return replace(
            self,
            pages={
                transcript.claim.id: f"{relative_folder}/{transcript.claim.id}.html" for transcript in self.transcripts
            },
        )


@dataclass(frozen=True, slots=True)
class ScoredVerdicts(Result):
    """Result of scoring the predicted verdicts of a file."""

    scores: VerdictScores
    subject: str
    facts: tuple[tuple[str, str], ...] = ()
    by_group: GroupedScores | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return all scores as JSON-serialisable values."""
        groups = () if self.by_group is None else self.by_group.groups
        return {**verdict_data(self.scores), "by_group": {name: verdict_data(scores) for name, scores in groups}}

    def tables(self) -> list[Table]:
        """Return the scores beside those of the majority-class baseline, the confusion matrix, and scores by group."""
        return self._tables(None)

    def terminal_tables(self, width: int) -> list[Table]:
        """Return the tables fitted to the terminal's width."""
        return self._tables(width)

    def _tables(self, width: int | None) -> list[Table]:
        grouped_table = group_table(self.by_group)
        return [*verdict_tables(self.scores, width=width), *([grouped_table] if grouped_table.rows else [])]

    def report(self) -> Report:
        """Return the report with the scores."""
        report = verdict_report(self.scores, self.subject, self.facts)
        grouped_table = group_table(self.by_group)
        sections = (Section(grouped_table.title, (grouped_table,)),) if grouped_table.rows else ()
        return replace(report, sections=(*report.sections, *sections))
