"""Results of extracting, comparing, checking and grouping statements: tables, rows, notes and reports."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from climassay.errors import NoAnswerError
from climassay.reporting import Report, Table, counted
from climassay.reporting.results import Result

if TYPE_CHECKING:
    from climassay.confidence.difference import SentenceChange, Status
    from climassay.confidence.extraction import CertaintyTerm
    from climassay.confidence.extraction.dividing import SentenceDivider
    from climassay.confidence.linting import CheckedDraft
    from climassay.confidence.linting.model_rule import ModelReader
    from climassay.confidence.statement import Statement
    from climassay.confidence.topics import NamedTopics
    from climassay.confidence.trends import TrendAnalysis
    from climassay.corpus import Skipped


@dataclass(frozen=True, slots=True)
class ExtractedStatements(Result):
    """Result of extracting statements and their levels of confidence from reports."""

    statements: "tuple[Statement, ...]"
    terms: "tuple[CertaintyTerm, ...]"
    """Terms of likelihood, evidence and agreement in the reports."""
    skipped: "tuple[Skipped, ...]" = ()
    silent: tuple[str, ...] = ()
    """Titles of documents in which no level of confidence was found."""
    divider: "SentenceDivider | None" = None
    """Divider of sentences with several levels; None if no model was used."""

    def to_dict(self) -> dict[str, Any]:
        """Return statements, other terms, skipped files and counts of divided sentences as values for JSON."""
        divider_counts = {} if self.divider is None else {"divided_by": self.divider.to_dict()}
        return {"statements": self.statements, "terms": self.terms, "skipped": self.skipped, **divider_counts}

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per statement, readable by :func:`~climassay.confidence.statement.read_statements`."""
        return [asdict(statement) for statement in self.statements]

    def term_rows(self) -> list[dict[str, Any]]:
        """Return a row per term of likelihood, evidence or agreement."""
        return [asdict(term) for term in self.terms]

    def tables(self) -> list[Table]:
        """Return the tables of levels by report and of other terms."""
        from climassay.confidence.extraction.review import summary_table, term_table

        levels = [summary_table(self.statements)] if self.statements else []
        return [*levels, *([term_table(self.terms)] if self.terms else [])]

    def notes(self) -> Iterator[str]:
        """Yield notes on skipped files, divided sentences, and documents without a level of confidence."""
        for file in self.skipped:
            yield f"Not read: {file.source}: {file.reason}"
        if self.divider is not None:
            yield self.divider.summary
        elif n_sentences := len(
            {
                statement.sentence_id
                for statement in self.statements
                if statement.parts > 1 and not statement.is_paragraph_level
            }
        ):
            sentences = counted(n_sentences, "sentence")
            yield f"{sentences} with several levels: each level has the whole sentence as its text."
        if all(statement.tag is None for statement in self.statements):
            yield "No level of confidence was found. Levels are read in English, French and Spanish."
        elif self.silent:
            yield f"No level of confidence was found in {', '.join(self.silent)}."

    def page(self) -> str:
        """Return an HTML page of the statements in context, for review."""
        from climassay.confidence.extraction.review import review_page

        return review_page(self.statements, self.terms)


@dataclass(frozen=True, slots=True)
class LintedDrafts(Result):
    """Result of checking draft texts against rules for the wording of confidence and likelihood."""

    drafts: "tuple[CheckedDraft, ...]"
    reader: "ModelReader | None" = None
    """Language model that checked the texts in addition to the rules; None if no model was used."""

    rests_on_calls: ClassVar[bool] = False

    def to_dict(self) -> dict[str, Any]:
        """Return all findings with their positions, by file, as JSON-serialisable values."""
        from climassay.confidence.linting.presentation import findings_data

        reader_data = {} if self.reader is None else {"read_by": self.reader.to_dict()}
        return {"files": [findings_data(draft) for draft in self.drafts], **reader_data}

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per finding."""
        return [
            {"file": file["file"], **finding_data}
            for file in self.to_dict()["files"]
            for finding_data in file["findings"]
        ]

    def tables(self) -> tuple[Table, ...]:
        """Return a table of findings: file, rule, words and message."""
        rows = [
            (draft.draft.name, issue.rule, issue.words, issue.message)
            for draft in self.drafts
            for issue in draft.findings
        ]
        return (Table.of("Findings", ("file", "rule", "words", "message"), rows, left_columns=4),)

    def notes(self) -> Iterator[str]:
        """Yield the conclusion on each draft."""
        for draft in self.drafts:
            yield f"{draft.draft.name}: {draft.conclusion}"
        if self.reader is not None:
            yield self.reader.summary

    def page(self) -> str:
        """Return an HTML page of the drafts with the findings highlighted in the text."""
        from climassay.confidence.linting.presentation import lint_page

        return lint_page(self.drafts, "" if self.reader is None else self.reader.summary)

    def failure(self) -> NoAnswerError | None:
        """Return an error if the model gave no usable answer, because an absence of findings then means nothing."""
        reader = self.reader
        if reader is None or not reader.passages or reader.unreadable < reader.passages:
            return None
        return NoAnswerError(f"{reader.name} gave no usable answer, only the rules were applied: {reader.error}")


@dataclass(frozen=True, slots=True)
class ComparedStatements(Result):
    """Result of comparing two extractions: sentences that were added, removed or changed."""

    old: str
    new: str
    changes: "tuple[SentenceChange, ...]"

    def to_dict(self) -> dict[str, Any]:
        """Return the counts by status, and every sentence with its status, as JSON-serialisable values."""
        return {"old": self.old, "new": self.new, "counts": self._count_statuses(), "changes": self.rows()}

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per sentence of either extraction."""
        return [change.row() for change in self.changes]

    def tables(self) -> list[Table]:
        """Return a table of counts, and a table of the sentences that differ."""
        counts = [[status, str(count)] for status, count in self._count_statuses().items()]
        tables = [Table.of(f"{Path(self.old).name} and {Path(self.new).name}", ["sentences", "number"], counts)]
        rows = []
        for change in self.changes:
            row = change.row()
            if change.status not in ("unchanged", "reworded"):
                levels = [", ".join(row[name]) or "-" for name in ("old_levels", "new_levels")]
                rows.append([change.status, *levels, str(row["page"] or ""), row["new_text"] or row["old_text"]])
        headings = ["what changed", "old level", "new level", "page", "statement"]
        return [*tables, Table.of("Changes", headings, rows, left_columns=5)] if rows else tables

    def _count_statuses(self) -> "dict[Status, int]":
        from climassay.confidence.difference import STATUSES

        counts = Counter(change.status for change in self.changes)
        return {status: counts[status] for status in STATUSES}


@dataclass(frozen=True)
class FoundTopics(Result):
    """Result of grouping statements into named topics."""

    rests_on_calls = False

    named: "NamedTopics"
    statements: "Sequence[Statement]"
    file: Path

    def to_dict(self) -> dict[str, Any]:
        """Return every topic with its proposed name and number of statements by report, as JSON-serialisable values."""
        from climassay.confidence.topics.topic import count_by_report

        model = self.named.model
        reports, counts = count_by_report(model, self.statements)
        rows = [
            {
                **asdict(topic),
                "proposal": asdict(proposal) if proposal else None,
                "reports": {report: counts[topic.number, report] for report in reports},
            }
            for topic, proposal in zip(model.topics, self.named.proposals, strict=True)
        ]
        results = {"clusters": model.clusters, "outliers": model.outliers, "topics": rows}
        return {"file": self.file, **results, "unused_names": [name.name for name in self.named.unused]}

    def tables(self) -> list[Table]:
        """Return a table of the topics' words, and a table of statement counts by topic and report."""
        from climassay.confidence.topics import report_table, topic_table

        return [topic_table(self.named.model), report_table(self.named.model, self.statements)]

    def notes(self) -> list[str]:
        """Return notes on unnamed topics, rejected names, and earlier names whose topics were not found in this run."""
        proposals = [proposal for proposal in self.named.proposals if proposal is not None]
        n_unnamed = sum(not proposal.name for proposal in proposals)
        n_rejected = sum(bool(proposal.name and proposal.fault) for proposal in proposals)
        sentences, n_topics = [], len(self.named.proposals)
        if n_unnamed:
            sentences.append(
                f"The model proposed no name for {n_unnamed} of {n_topics} topics; their words are shown instead."
            )
        if n_rejected:
            sentences.append(
                f"{n_rejected} of {n_topics} proposed names did not describe their topic; its words are shown instead."
            )
        return [*sentences, *(f"No topic has the statements of {name.name!r} any more." for name in self.named.unused)]


@dataclass(frozen=True)
class TopicTrends(Result):
    """Result of comparing the confidence scores of topics by cycle, working group or report."""

    analysis: "TrendAnalysis"
    page_report: Report
    run: str

    def to_dict(self) -> dict[str, Any]:
        """Return the run id and all results of the analysis."""
        from climassay.confidence.trends import trend_data

        return {"run": self.run, **trend_data(self.analysis)}

    def all_tables(self) -> dict[str, Table]:
        """Return all tables by name, including those that are not shown on screen."""
        from climassay.confidence.trends import trend_tables
        from climassay.confidence.trends.report import score_rows

        return {**trend_tables(self.analysis), "scores": score_rows(self.analysis)}

    def tables(self) -> list[Table]:
        """Return the tables for the screen: scores, deviations, changes, and untagged statements."""
        from climassay.confidence.trends import trend_tables
        from climassay.confidence.trends.report import summarise

        named_tables = trend_tables(self.analysis)
        tables = [
            named_tables[name]
            for name in ("scores", "deviations", "changes", "untagged", "tagger")
            if name in named_tables
        ]
        summary_text = " ".join(summarise(self.analysis))
        last_table = tables[-1]
        return [*tables[:-1], replace(last_table, note=" ".join(filter(None, (last_table.note, summary_text))))]

    def report(self) -> Report:
        """Return the report with tables, figures and a map."""
        return self.page_report
