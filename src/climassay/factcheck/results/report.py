"""Results of fact-checking many claims, and of scoring verdicts, as tables and reports."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from climassay.factcheck.results.analysis import MEDIATOR, RiskCoverage, RunAnalysis, analysis_data
from climassay.factcheck.results.page import (
    DEMONSTRATION,
    MARKS_RIGHT,
    CheckedClaim,
    factcheck_page,
    verdict_row,
)
from climassay.factcheck.results.scoring import (
    NO_VERDICT,
    VerdictFigures,
    VerdictScores,
    verdict_data,
    verdict_report,
    verdict_tables,
)
from climassay.io import write_file
from climassay.records import RequestCounts
from climassay.reporting import (
    Axis,
    Case,
    Cases,
    Category,
    Dot,
    DotPlot,
    Facts,
    HeatMap,
    LinePlot,
    Point,
    Prose,
    Report,
    Section,
    Series,
    StackedBar,
    StackedBars,
    Table,
    as_markdown,
    counted,
    percent,
    percent_interval,
    shown_p_value,
    thinned,
)
from climassay.reporting.html import Block
from climassay.reporting.results import Result
from climassay.reporting.tables import skipped_note
from climassay.statistics import Estimate

MAX_DISAGREEMENTS = 200
"""Maximum number of disagreements listed in a report."""
MIN_OTHERS = 20
"""Minimum number of claims outside the most frequent class for a comparison with the constant answer in words."""


def factcheck_report(
    analysis: RunAnalysis, *, file: str, facts: Sequence[tuple[str, str]] = (), pages: Mapping[str, str] | None = None
) -> Report:
    """Return the report of a run.

    Args:
        analysis: Analysis of the run.
        file: Name of the claims' file, for the title.
        facts: Facts for the end of the report, such as run id and models.
        pages: Addresses of the claims' pages by claim id, relative to the report; claims may be missing.
    """
    advocates = [
        distribution.party
        for distribution in analysis.distributions
        if distribution.party not in ("published", MEDIATOR)
    ]
    published = f"{analysis.with_truth} of them with a published verdict, " if analysis.with_truth else ""
    participants = f"debated by {', '.join(advocates)}" if advocates else "none of them debated"
    classes = analysis.scale.classes(analysis.n_classes)
    positions = {name: number / (len(classes) - 1) for number, name in enumerate(classes)}
    names = [name for name, _ in analysis.distributions[0].counts]
    bars = StackedBars(
        f"Distribution of verdicts, {analysis.n_classes} classes",
        tuple(Category(name, positions.get(name), hatched=name == NO_VERDICT) for name in names),
        tuple(
            StackedBar(distribution.party, tuple(count for _, count in distribution.counts))
            for distribution in analysis.distributions
        ),
        "From wrong (left) to right; grey: not enough information; hatched: no verdict.",
    )
    verdict_blocks = (bars, distribution_table(analysis), nei_table(analysis))
    sections: dict[str, Sequence[Block]] = {
        # Without published verdicts, the distribution comes first.
        **({} if analysis.scores else {"Verdicts given": verdict_blocks}),
        "Verdicts against the published ones": _score_blocks(analysis),
        "Verdicts given": verdict_blocks,
        "How the debates went": (
            outcome_table(analysis),
            failed_table(analysis),
            round_table(analysis),
            agreement_table(analysis),
        ),
        "What drove the verdicts": (left_out_table(analysis),),
        "What the explanations rest on": (citation_table(analysis), contradiction_table(analysis)),
        "How sure the verdicts are": (_risk_plot(analysis.risk), risk_table(analysis)) if analysis.risk else (),
        "Disagreements": _disagreement_blocks(analysis, pages or {}),
    }
    filled = {
        heading: tuple(block for block in blocks if not isinstance(block, Table) or block.rows)
        for heading, blocks in sections.items()
    }
    return Report(
        title=f"Fact-check{'s' if analysis.claims != 1 else ''} of {file}",
        lead=f"{counted(analysis.claims, 'claim')}, {published}{participants}; "
        "verdicts by language models, not reviewed by a person."
        + (f" {DEMONSTRATION}" if analysis.demonstration else ""),
        sections=tuple(Section(heading, blocks) for heading, blocks in filled.items() if blocks),
        facts=(("Scale", analysis.scale.name), *facts),
    )


def _score_blocks(analysis: RunAnalysis) -> Sequence[Block]:
    """Return the comparison of the mediator with a constant answer as sentences, figures and tables."""
    if not analysis.scores:
        return (Prose("No claim has a published verdict, so there is nothing to compare these verdicts with."),)
    mediator = analysis.scores[0].levels
    lines = []
    for scores in mediator:
        figures = scores.rows.figures
        constant = figures.constant_accuracy.value
        low, high = figures.accuracy.interval
        n_others = round(figures.n * (1 - constant))
        versus = "more than" if low > constant else "less than" if high < constant else "not clearly other than"
        if n_others < MIN_OTHERS:
            versus = f"too few other claims ({n_others}) to compare with"
        words = (
            f"{percent(figures.accuracy.value)}% right ({percent(low)} to {percent(high)}), {versus} the "
            f"{percent(constant)}% of always answering '{figures.constant}'"
        )
        lines.append((f"Mediator, {len(scores.classes)} classes", words))
    dots = [
        Dot(
            f"{party}, {classes}",
            party,
            figures.accuracy.value,
            *figures.accuracy.interval,
            figures.constant_accuracy.value,
        )
        for classes, party, scores in _by_level(analysis)
        for figures in [scores.rows.figures]
    ]
    note = "Dots: accuracy. Bars: 95% interval. Dashed tick: the best constant answer."
    return (
        Facts(tuple(lines)),
        DotPlot("Accuracy of the mediator and the advocates", tuple(dots), note=note),
        score_table(analysis),
        informed_score_table(analysis),
        *([published_table()] if analysis.scale.name == "climate-feedback" else []),
        round_score_table(analysis),
        *map(_heat_map, mediator),
    )


def _heat_map(scores: VerdictScores) -> HeatMap:
    """Return the mediator's confusion matrix, without predicted classes that do not occur."""
    confusion = scores.rows.confusion
    columns = [
        column
        for column, name in enumerate(confusion.predicted)
        if name in confusion.truth or any(row[column] for row in confusion.counts)
    ]
    return HeatMap(
        f"Mediator, {len(scores.classes)} classes",
        confusion.truth,
        tuple(confusion.predicted[column] for column in columns),
        tuple(tuple(row[column] for column in columns) for row in confusion.counts),
        "published verdict",
        "mediator's verdict",
        "The darker a cell, the larger its share of the row.",
    )


def _risk_plot(risk: RiskCoverage) -> LinePlot:
    curve = Series(
        "the surest verdicts",
        tuple(
            Point(point.coverage, point.accuracy.value, *point.accuracy.interval, f"{point.accuracy.n} verdicts")
            for point in thinned(risk.points)
        ),
    )
    level = (Point(0.0, risk.constant_accuracy), Point(1.0, risk.constant_accuracy))
    constant = Series(f"always '{risk.constant}'", level, reference=True)
    note = (
        f"Verdicts from the surest on, by {risk.ordered_by}. Bars: 95% interval (Wilson). 'Not enough information' and "
        f"failed checks cover nothing. Dashed: always '{risk.constant}' ({percent(risk.constant_accuracy)}%)."
    )
    return LinePlot(
        "Accuracy against coverage",
        (curve, constant),
        Axis.shares("claims covered"),
        Axis.shares("accuracy on them"),
        note=note,
    )


def _disagreement_blocks(analysis: RunAnalysis, pages: Mapping[str, str]) -> tuple[Block, ...]:
    if not analysis.with_truth:
        return ()
    if not analysis.disagreements:
        return (Prose("No verdict differs from the published one."),)
    disagreements = analysis.disagreements[:MAX_DISAGREEMENTS]
    n_omitted = len(analysis.disagreements) - len(disagreements)
    cases = []
    for result in disagreements:
        facts = [("Published", result.truth), ("Given", result.verdict)]
        if result.distance is not None:
            facts.append(("Distance", counted(result.distance, "step")))
        if result.probability is not None:
            facts.append(("Probability", f"{percent(result.probability)}%"))
        if result.confidence is not None:
            facts.append(("Confidence", result.confidence))
        words = result.text.split()
        text = result.text if len(words) <= 60 else " ".join(words[:60]) + " ..."
        cases.append(Case(text, tuple(facts), result.explanation, pages.get(result.claim, "")))
    note = "Farthest from the published verdict first, then the most probable. 'Not enough information' is not listed."
    return (
        Cases(
            f"{len(analysis.disagreements)} verdicts other than the published ones, {analysis.n_classes} classes",
            tuple(cases),
            note + (f" {n_omitted} more are left out here." if n_omitted else ""),
        ),
    )


_NONE = "-"

_PUBLISHED = (
    ("Climinator", "62.94 / 38.87", "64.71 / 44.27", "97.06 / 90.58"),
    ("IPCC advocate alone, NEI left out", "61.96 / 34.48", "63.80 / 38.85", "95.71 / 86.75"),
    ("GPT-4 without retrieval, NEI left out", "49.70 / 28.36", "52.10 / 35.52", "95.81 / 83.66"),
    ("always 'incorrect' (not in the paper)", "67.65", "68.82", "91.76"),
)


def analysis_tables(analysis: RunAnalysis) -> list[Table]:
    """Return all tables of a run that have rows, in the order of the report."""
    tables = [
        outcome_table(analysis),
        failed_table(analysis),
        score_table(analysis),
        informed_score_table(analysis),
        round_score_table(analysis),
        distribution_table(analysis),
        nei_table(analysis),
        round_table(analysis),
        agreement_table(analysis),
        left_out_table(analysis),
        citation_table(analysis),
        contradiction_table(analysis),
        risk_table(analysis),
    ]
    return [table for table in tables if table.rows]


def outcome_table(analysis: RunAnalysis) -> Table:
    """Return the table of outcomes, tokens and cost."""
    usage = analysis.usage
    rows = [(str(outcome), str(count)) for outcome, count in analysis.outcomes if count]
    rows += [
        ("claims", str(analysis.claims)),
        ("with a published verdict", str(analysis.with_truth)),
        ("repeated, left out", str(analysis.repeated)),
        ("with failed model calls", f"{analysis.with_failures} ({analysis.failures} calls)"),
        ("prompt tokens", f"{usage.prompt_tokens:,}"),
        ("completion tokens", f"{usage.completion_tokens:,}"),
        ("cost", _NONE if usage.cost is None else f"{usage.cost:.4f} US dollars"),
    ]
    return Table.of("Fact-checks", ["what", "number"], rows, note="Tokens: those served from the records included.")


def failed_table(analysis: RunAnalysis) -> Table:
    """Return the table of failed fact-checks with their errors."""
    return Table.of(
        "Fact-checks that failed",
        ["claim", "reason"],
        [(check.text, check.error) for check in analysis.failed],
        left=2,
        note='They have no verdict, not even "not enough information". The same command checks them again.',
    )


def score_table(analysis: RunAnalysis) -> Table:
    """Return accuracy and macro-F1 of all participants by number of classes."""
    rows = [
        (classes, party, *_figure_cells(scores.rows.figures), str(scores.rows.nei), str(scores.rows.missing))
        for classes, party, scores in _by_level(analysis)
    ]
    mediator = analysis.scores[0].levels if analysis.scores else ()
    named = "; ".join(f"{len(scores.classes)}: {scores.rows.figures.constant!r}" for scores in mediator)
    return Table.of(
        "Verdicts against the published ones (%)",
        ["classes", "participant", *_FIGURE_HEADINGS, "NEI", "none"],
        rows,
        left=2,
        grouped=1,
        strong=[number for number, row in enumerate(rows) if row[1] == MEDIATOR],
        note=f"const.: always the most frequent published class ({named}). NEI: not enough information, wrong unless "
        "it is the published verdict. none: no verdict (not debated, or failed), wrong too. Macro averages count a "
        "class that occurs on one side only with 0, as the paper does.",
    )


def informed_score_table(analysis: RunAnalysis) -> Table:
    """Return accuracy and macro-F1 without "not enough information"; empty if it never occurs."""
    levels = list(_by_level(analysis))
    differs = any(scores.rows.nei or scores.rows.true_nei for _, _, scores in levels)
    rows = [
        (classes, party, *((_NONE,) * 7 if informed is None else _figure_cells(informed)))
        for classes, party, scores in levels
        for informed in [scores.rows.without_nei]
        if differs
    ]
    return Table.of(
        "The same without 'not enough information' (%)",
        ["classes", "participant", *_FIGURE_HEADINGS],
        rows,
        left=2,
        grouped=1,
        strong=[number for number, row in enumerate(rows) if row[1] == MEDIATOR],
        note="Only claims where neither the verdict nor the published one is 'not enough information': other claims "
        "for each participant, so that participants cannot be compared with each other here.",
    )


_FIGURE_HEADINGS = ("n", "right", "95% interval", "const.", "macro F1", "95% interval", "const.")


def _by_level(analysis: RunAnalysis) -> Iterator[tuple[str, str, VerdictScores]]:
    """Yield number of classes, participant and scores, by number of classes."""
    for levels in zip(*(party_scores.levels for party_scores in analysis.scores), strict=True):
        for party_scores, scores in zip(analysis.scores, levels, strict=True):
            yield f"{len(scores.classes)} classes", party_scores.party, scores


def _share_cells(share: Estimate) -> tuple[str, str, str]:
    """Return n, value and interval as cells."""
    return str(share.n), percent(share.value), percent_interval(share.interval)


def _figure_cells(figures: VerdictFigures) -> tuple[str, ...]:
    return (
        str(figures.n),
        *_share_cells(figures.accuracy)[1:],
        percent(figures.constant_accuracy.value),
        *_share_cells(figures.f1)[1:],
        percent(figures.constant_f1.value),
    )


def round_score_table(analysis: RunAnalysis) -> Table:
    """Return the scores of all participants after each round."""
    rows = [
        (
            round_scores.party,
            str(round_scores.round),
            str(round_scores.still_open),
            *_figure_cells(round_scores.scores.rows.figures),
            str(round_scores.scores.rows.nei),
        )
        for round_scores in analysis.by_round
    ]
    return Table.of(
        f"After each round, {analysis.n_classes} classes (%)",
        ["participant", "round", "open", *_FIGURE_HEADINGS, "NEI"],
        rows,
        grouped=1,
        left=1,
        note="open: debates that went on after the round. Debates that had closed count as they closed.",
    )


def distribution_table(analysis: RunAnalysis) -> Table:
    """Return the number of verdicts of each class, by participant."""
    names = [name for name, _ in analysis.distributions[0].counts]
    occurring = [
        name for name in names if any(dict(distribution.counts)[name] for distribution in analysis.distributions)
    ]
    rows = [
        (name, *(str(dict(distribution.counts)[name]) for distribution in analysis.distributions)) for name in occurring
    ]
    return Table.of(
        f"Verdicts given, {analysis.n_classes} classes",
        ["class", *(distribution.party for distribution in analysis.distributions)],
        rows,
        note="Published verdicts are those of claims that have one." if analysis.with_truth else "",
    )


def nei_table(analysis: RunAnalysis) -> Table:
    """Return the share of "not enough information" by participant."""
    rows = [(rate.party, *_share_cells(rate.share)) for rate in analysis.nei]
    return Table.of(
        "Not enough information (%)",
        ["participant", "debates", "share", "95% interval"],
        rows,
        note="At the end of the debates. Intervals: Wilson.",
    )


def round_table(analysis: RunAnalysis) -> Table:
    """Return the numbers of rounds, and the reasons for closing debates and for further rounds."""
    rounds = analysis.rounds
    rows = [("rounds needed", str(number), str(count)) for number, count in rounds.needed]
    rows += [("closed because", reason, str(count)) for reason, count in rounds.closed]
    rows += [("went on because", reason, str(count)) for reason, count in rounds.opened]
    rows += [("opinions", "changed from one round to the next", str(rounds.changed))] if rounds.debates else []
    return Table.of(f"Rounds of {counted(rounds.debates, 'debate')}", ["what", "", "number"], rows, left=2)


def agreement_table(analysis: RunAnalysis) -> Table:
    """Return Krippendorff's alpha between the advocates."""
    rows = []
    for agreement in analysis.agreement:
        cells = [agreement.stage, str(agreement.claims)]
        for alpha in (agreement.ordinal, agreement.sides):
            alpha_cells = (_NONE, _NONE)
            if alpha is not None:
                ends = alpha.interval
                alpha_cells = (
                    f"{alpha.value:.2f}",
                    _NONE if ends is None else " to ".join(f"{end:.2f}" for end in ends),
                )
            cells += alpha_cells
        rows.append(cells)
    return Table.of(
        "Agreement between the advocates (Krippendorff's alpha)",
        ["when", "claims", "ordinal", "95% interval", "two sides", "95% interval"],
        rows,
        note="1: full agreement, 0: that of chance. Only claims on which at least two advocates were informed.",
    )


def left_out_table(analysis: RunAnalysis) -> Table:
    """Return the changes of the verdict if an advocate is left out."""
    rows: list[tuple[str, ...]] = []
    for left_out in analysis.left_out:
        for level in left_out.levels:
            gain_cells: tuple[str, ...] = (_NONE,) * 4
            if level.gain is not None:
                gain = level.gain.difference
                interval = " to ".join(f"{100 * end:+.1f}" for end in gain.interval)
                gain_cells = (str(gain.n), f"{100 * gain.value:+.1f}", interval, shown_p_value(level.gain.p_value))
            changed = _share_cells(level.changed)[1:]
            rows.append(
                (
                    left_out.advocate,
                    str(left_out.claims),
                    str(left_out.failed),
                    str(level.classes),
                    *changed,
                    *gain_cells,
                )
            )
    rows += [
        (left_out.advocate, "0", str(left_out.failed), *(_NONE,) * 7)
        for left_out in analysis.left_out
        if not left_out.levels
    ]
    return Table.of(
        "Without each advocate in turn (%)",
        ["advocate", "claims", "failed", "classes", "changed", "95% interval", "n", "gain", "95% interval", "p"],
        rows,
        grouped=1,
        note="The mediator asked again without the advocate. changed: claims whose verdict becomes another one. gain: "
        "points of accuracy that the advocate brings, on the n claims with a published verdict, with interval and "
        "p-value of a sign-flip test.",
    )


def citation_table(analysis: RunAnalysis) -> Table:
    """Return the shares of sentences by the origin of their citations."""
    rows = []
    for counts in (
        analysis.citations if any(counts.sentences or counts.removed for counts in analysis.citations) else ()
    ):
        shares = (counts.cited, counts.attributed, counts.in_house, counts.with_foreign_numbers)
        entailed = (
            (_NONE, _NONE) if counts.entailed is None else (percent(counts.entailed.value), str(counts.entailed.n))
        )
        percentages = [percent(count / counts.sentences) if counts.sentences else _NONE for count in shares]
        rows.append(
            (
                counts.party,
                str(counts.explanations),
                str(counts.sentences),
                *percentages,
                str(counts.removed),
                *entailed,
            )
        )
    return Table.of(
        "What the explanations rest on (% of sentences)",
        ["participant", "texts", "sentences", "cited", "attributed", "in-house", "foreign\nnumbers", "removed",
         "entailed", "of"],
        rows,
        note="cited: by the model; attributed: by comparison with the passages; in-house: by nothing; foreign numbers: "
        "a number that the cited passages do not have; removed: citations of passages that were not retrieved "
        "(a count); entailed: % of so many citations whose passage seems to entail the sentence."
        + (f" {MARKS_RIGHT}" if any(counts.entailed is not None for counts in analysis.citations) else ""),
    )  # fmt: skip


def contradiction_table(analysis: RunAnalysis) -> Table:
    """Return the share of explanations that contradict their verdict."""
    rows = [
        (item.party, *((_NONE,) * 3 if item.share is None else _share_cells(item.share)), str(item.unknown))
        for item in analysis.contradictions
        if item.share is not None or item.unknown
    ]
    return Table.of(
        "Explanations that contradict their verdict (%)",
        ["participant", "n", "share", "95% interval", "unknown"],
        rows,
        note="An explanation contradicts where it argues for the other side of the scale. unknown: not determined.",
    )


def risk_table(analysis: RunAnalysis) -> Table:
    """Return the accuracy of the most certain verdicts."""
    risk = analysis.risk
    if risk is None:
        return Table.of("Accuracy of the surest verdicts", [], [])
    rows = [
        (name, percent(point.coverage), *_share_cells(point.accuracy))
        for name, share in (("surest quarter", 0.25), ("surest half", 0.5), ("all verdicts", 1.0))
        for point in [
            min(risk.points, key=lambda candidate: abs(candidate.coverage - share * risk.points[-1].coverage))
        ]
    ]
    return Table.of(
        f"Accuracy of the surest verdicts, {analysis.n_classes} classes (%)",
        ["kept", "coverage", "n", "right", "95% interval"],
        rows,
        note=f"Ordered by {risk.ordered_by}; equally sure verdicts are kept together. Mean accuracy over all "
        f"coverages: {percent(risk.area)}; {percent(risk.unordered)} where the order says nothing. Always "
        f"{risk.constant!r}: {percent(risk.constant_accuracy)}.",
    )


def published_table() -> Table:
    """Return the published figures for claims of Climate Feedback."""
    return Table.of(
        "Published: accuracy / macro F1 (%) on 170 claims of Climate Feedback",
        ["system", "7 classes", "5 classes", "2 classes"],
        _PUBLISHED,
        note="Leippold et al. (2024), table 1. Other claims and other models than in this run, so that the figures are "
        "a frame and no comparison. The constant answer is right more often than the system on 7 and 5 classes.",
    )


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
    """Numbers of cached, sent and failed requests and their usage, by model."""
    skipped: tuple[str, ...] = ()
    """Reasons for skipped rows of the file."""
    facts: tuple[tuple[str, str], ...] = ()
    pages: Mapping[str, str] = field(default_factory=dict)
    """Addresses of the claims' pages, relative to the report."""

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
        """Return the verdicts, unless there are too many, and all tables of the analysis."""
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
        return [Table.of("Verdicts", ("claim", "verdict", "confidence", "rounds"), rows, left=3), *self.tables()]

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
        start = os.path.relpath(folder, report.parent)
        return replace(
            self, pages={transcript.claim.id: f"{start}/{transcript.claim.id}.html" for transcript in self.transcripts}
        )


@dataclass(frozen=True, slots=True)
class ScoredVerdicts(Result):
    """Result of scoring the predicted verdicts of a file."""

    scores: VerdictScores
    subject: str
    facts: tuple[tuple[str, str], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return all scores as JSON-serialisable values."""
        return verdict_data(self.scores)

    def tables(self) -> list[Table]:
        """Return the scores with those of the constant answer, and the confusion matrix."""
        return verdict_tables(self.scores)

    def terminal_tables(self, width: int) -> list[Table]:
        """Return the tables fitted to the terminal's width."""
        return verdict_tables(self.scores, width=width)

    def report(self) -> Report:
        """Return the report of the scores."""
        return verdict_report(self.scores, self.subject, self.facts)
