"""Fact-checks as results: one claim with its debate, and a run over a file of claims."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from climassay.factcheck.results import page_words
from climassay.factcheck.results.analysis import RunAnalysis, analysis_data, probability_of
from climassay.factcheck.results.page import factcheck_page, notices, quoted_passages
from climassay.factcheck.results.past_checks import PastCheck
from climassay.factcheck.results.report import analysis_tables, factcheck_report
from climassay.factcheck.results.scoring import VerdictScores, verdict_data, verdict_report, verdict_tables
from climassay.factcheck.results.view import reader_view
from climassay.factcheck.scales import Scale
from climassay.factcheck.transcript import Levels, Transcript, as_data
from climassay.grounding import written
from climassay.records import RequestCounts
from climassay.reporting import Report, Table, as_markdown, counted, write_page
from climassay.reporting.results import Result

if TYPE_CHECKING:
    from climassay.grounding import AnswerSentence


MOST_LISTED = 30
"""Claims whose verdicts a terminal lists; more would push the scores out of sight."""


@dataclass(frozen=True, slots=True)
class CheckedClaim(Result):
    """A claim that was debated."""

    transcript: Transcript
    scale: Scale
    past: tuple[PastCheck, ...] = ()
    """Earlier checks of the same claim or of similar ones."""

    def to_dict(self) -> dict[str, Any]:
        """Every word of the debate, and the earlier checks."""
        return {**as_data(self.transcript), "past": [asdict(check) for check in self.past]}

    def rows(self) -> list[dict[str, Any]]:
        """A row per opinion, in the order of the debate."""
        return [
            {"round": one.round, "advocate": one.advocate, "verdict": one.verdict, "changed": one.changed,
             "explanation": _written(one.explanation), "error": one.error}
            for held in self.transcript.rounds for one in held.opinions
        ]  # fmt: skip

    def tables(self) -> tuple[Table, ...]:
        """The verdict, and what each advocate held in each round."""
        names = ("round", "advocate", "verdict", "explanation")
        cells = [tuple(str(row[name] or "") for name in names) for row in self.rows()]
        outcome = verdict_row(self.transcript)
        ended = (str(outcome["label"] or outcome["outcome"]), str(outcome["confidence"] or "-"))
        return (
            Table.of(str(outcome["claim"]), ("verdict", "confidence"), [ended], left=2),
            Table.of("Debate", names, cells, left=4),
        )

    def terminal_tables(self, width: int) -> tuple[Table, ...]:  # noqa: ARG002
        """None: the debate was shown as it went, and the lines have the verdict."""
        return ()

    def lines(self) -> Iterator[Any]:
        """The verdict with its reasons and sources."""
        return verdict_lines(self.transcript, self.scale)

    def page(self) -> str:
        """The page of the fact-check."""
        return factcheck_page(self.transcript, self.scale)


def verdict_row(transcript: Transcript) -> dict[str, str | None]:
    """The outcome of a debate in one row."""
    verdict = transcript.verdict
    return {
        "id": transcript.claim.id,
        "claim": transcript.claim.text,
        "outcome": verdict.outcome,
        "label": verdict.label,
        "confidence": verdict.levels.confidence if verdict.levels else None,
    }


@dataclass(frozen=True, slots=True)
class CheckedClaims(Result):
    """A run over the claims of a file."""

    file: str
    transcripts: tuple[Transcript, ...]
    analysis: RunAnalysis
    run: str
    tallies: Mapping[str, RequestCounts]
    """By model: answers from the records, asked, failed, and their usage."""
    skipped: tuple[str, ...] = ()
    """Why rows of the file were left out."""
    facts: tuple[tuple[str, str], ...] = ()
    pages: Mapping[str, str] = field(default_factory=dict)
    """Addresses of the claims' own pages, relative to the report."""

    def to_dict(self) -> dict[str, Any]:
        """The run, the verdicts and everything that was counted."""
        told = {"run": self.run, "skipped": self.skipped, "tallies": self.tallies}
        return {**told, "verdicts": self.rows(), **analysis_data(self.analysis)}

    def rows(self) -> list[dict[str, str | None]]:
        """A row per claim."""
        return [verdict_row(one) for one in self.transcripts]

    def tables(self) -> list[Table]:
        """Everything that was counted."""
        return list(analysis_tables(self.analysis))

    def terminal_tables(self, width: int) -> list[Table]:  # noqa: ARG002
        """The verdicts, where they are not too many, before what was counted."""
        if len(self.transcripts) > MOST_LISTED:
            return self.tables()
        rows = [
            (str(row["claim"]), row["label"] or str(row["outcome"]), row["confidence"] or "-", str(len(one.rounds)))
            for row, one in zip(self.rows(), self.transcripts, strict=True)
        ]
        return [Table.of("Verdicts", ("claim", "verdict", "confidence", "rounds"), rows, left=3), *self.tables()]

    def notes(self) -> Iterator[str]:
        """What was left out, asked, spent and failed."""
        if self.analysis.demonstration:
            yield page_words.DEMONSTRATION
        if self.skipped:
            yield f"{counted(len(self.skipped), 'row')} left out, the first: {self.skipped[0]}."
        for name, tally in self.tallies.items():
            cost = "" if tally.usage.cost is None else f", ${tally.usage.cost:.4f}"
            yield (
                f"Run {self.run}, {name}: {tally.hits} answers from the records, {tally.asked} asked "
                f"({tally.failed} failed), {tally.usage.tokens}{cost}."
            )
        if self.analysis.failures:
            yield f"{self.analysis.failures} model calls failed; run the same command again to ask them anew."

    def markdown(self) -> str:
        """All tables, and the warning where a very small model took part."""
        tables = [as_markdown(one) for one in self.tables()]
        return "\n".join([*tables, *([f"{page_words.DEMONSTRATION}\n"] if self.analysis.demonstration else [])])

    def report(self) -> Report:
        """Scores, figures and single disagreements."""
        return factcheck_report(self.analysis, file=self.file, facts=self.facts, pages=self.pages)

    def write_pages(self, folder: Path, report: Path | None = None) -> "CheckedClaims":
        """Write a page about each claim; the run with links to them from where the report will be.

        Raises:
            InputError: A page cannot be written.
        """
        for one in self.transcripts:
            write_page(factcheck_page(one, self.analysis.scale), folder / f"{one.claim.id}.html")
        if report is None:
            return self
        start = os.path.relpath(folder, report.parent)
        return replace(self, pages={one.claim.id: f"{start}/{one.claim.id}.html" for one in self.transcripts})


@dataclass(frozen=True, slots=True)
class ScoredVerdicts(Result):
    """Predicted verdicts of a file, scored."""

    scores: VerdictScores
    subject: str
    facts: tuple[tuple[str, str], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """All figures."""
        return verdict_data(self.scores)

    def tables(self) -> list[Table]:
        """Figures beside those of the constant answer, and the confusion matrix."""
        return verdict_tables(self.scores)

    def terminal_tables(self, width: int) -> list[Table]:
        """The same, fitted to the screen."""
        return verdict_tables(self.scores, width=width)

    def report(self) -> Report:
        """Figures on a page."""
        return verdict_report(self.scores, self.subject, self.facts)


def format_levels(levels: Levels) -> str:
    """Levels on one line, after the verdict that they belong to."""
    likelihood = f", {levels.likelihood} to be true" if levels.likelihood else ""
    return f"evidence {levels.evidence}, agreement {levels.agreement}, confidence {levels.confidence}{likelihood}"


def _written(sentences: "Sequence[AnswerSentence]") -> str:
    return " ".join(written(sentence) for sentence in sentences)


def verdict_lines(transcript: Transcript, scale: Scale) -> Iterator[Any]:
    """The verdict as a terminal shows it: with its reasons, what speaks for and against it, and its sources."""
    from rich.padding import Padding
    from rich.text import Text

    transcript = reader_view(transcript, scale)
    verdict = transcript.verdict
    if verdict.outcome == "verdict" and verdict.label is not None:
        yield Text.assemble(("Verdict: ", "bold"), (verdict.label, "bold cyan"))
        chance = probability_of(verdict, scale)
        probability = "" if chance is None else f" The model gives this verdict a probability of {100 * chance:.0f}%."
        yield Text(f"The claim {scale.meaning(verdict.label)}.{probability}")
    else:
        yield Text.assemble(("Result: ", "bold"), (page_words.OUTCOME[verdict.outcome], "bold cyan"))
        yield Text(page_words.ENDING[verdict.outcome])
    if verdict.explanation:
        heading = "Why" if verdict.outcome == "verdict" else "What the model wrote"
        yield Text(f"\n{heading}", style="bold")
        yield Text(_written(verdict.explanation))
    if transcript.fallacy is not None:
        one = transcript.fallacy
        yield Text("\nHow it misleads", style="bold")
        yield Text(f"{one.name.capitalize()} ({one.probability:.0%}). {one.definition}")
        yield Text(page_words.fallacy_note(one), style="dim")
    for side, pairs in quoted_passages(transcript).items():
        yield Text(f"\n{page_words.SIDE[side]}", style="bold")
        for quotation, source in pairs:
            yield Padding(Text(f"\u201c{quotation.text}\u201d [{source.number}]"), (0, 0, 0, 2))
    if verdict.levels is not None:
        yield Text("\nHow certain it is", style="bold")
        for name, value, meaning in page_words.level_lines(verdict.levels):
            yield Text.assemble(f"{name}: ", (value, "bold"), (f" ({meaning})", "dim"))
    known = notices(transcript)
    if known:
        yield Text("\nBefore you rely on this", style="bold")
    for note in known:
        yield Text(f"! {note}", style="yellow")
    if transcript.stability is not None:
        stable = transcript.stability
        yield Text(f"{stable.share:.0%} of {stable.samples} debates ended with the same verdict.", style="dim")
    if transcript.sources:
        heading = "Passages" if transcript.cited else f"Passages found: {len(transcript.sources)}, none of them cited"
        yield Text(f"\n{heading}", style="bold")
    for source in transcript.cited or transcript.sources:
        yield Text(f"[{source.number}] {source.citation}  ({source.collection})", style="dim")
    yield Text("\nWritten by a language model: have a person review it before you rely on it.", style="dim")
