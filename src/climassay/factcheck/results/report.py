"""Fact-checks of many claims as results: a run over a file of claims, and scores; in tables and reports."""

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

SHOWN_DISAGREEMENTS = 200
"""More would make the report too long to read."""
ENOUGH_OTHERS = 20
"""Claims outside the most frequent class from which a verdict is compared with the constant answer in words."""


def factcheck_report(
    analysis: RunAnalysis, *, file: str, facts: Sequence[tuple[str, str]] = (), pages: Mapping[str, str] | None = None
) -> Report:
    """A run as a report.

    Args:
        analysis: What came out.
        file: Name of the claims' file, for the title.
        facts: Run id, models and what else belongs at the end.
        pages: Address of each claim's own page by the claim's id, relative to the report; claims may be missing.
    """
    advocates = [one.party for one in analysis.distributions if one.party not in ("published", MEDIATOR)]
    published = f"{analysis.with_truth} of them with a published verdict, " if analysis.with_truth else ""
    who = f"debated by {', '.join(advocates)}" if advocates else "none of them debated"
    classes = analysis.scale.classes(analysis.shown)
    places = {name: number / (len(classes) - 1) for number, name in enumerate(classes)}
    names = [name for name, _ in analysis.distributions[0].counts]
    bars = StackedBars(
        f"Distribution of verdicts, {analysis.shown} classes",
        tuple(Category(name, places.get(name), hatched=name == NO_VERDICT) for name in names),
        tuple(StackedBar(one.party, tuple(count for _, count in one.counts)) for one in analysis.distributions),
        "From wrong (left) to right; grey: not enough information; hatched: no verdict.",
    )
    given = (bars, distribution_table(analysis), nei_table(analysis))
    sections: dict[str, Sequence[Block]] = {
        # Without published verdicts, what was found comes first.
        **({} if analysis.scores else {"Verdicts given": given}),
        "Verdicts against the published ones": _score_blocks(analysis),
        "Verdicts given": given,
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
        lead=f"{counted(analysis.claims, 'claim')}, {published}{who}; "
        "verdicts by language models, not reviewed by a person."
        + (f" {DEMONSTRATION}" if analysis.demonstration else ""),
        sections=tuple(Section(heading, blocks) for heading, blocks in filled.items() if blocks),
        facts=(("Scale", analysis.scale.name), *facts),
    )


def _score_blocks(analysis: RunAnalysis) -> Sequence[Block]:
    """Whether the mediator is better than a constant answer, in words, figures and tables."""
    if not analysis.scores:
        return (Prose("No claim has a published verdict, so there is nothing to compare these verdicts with."),)
    mediator = analysis.scores[0].levels
    lines = []
    for scores in mediator:
        figures = scores.rows.figures
        constant = figures.constant_accuracy.value
        low, high = figures.accuracy.interval
        others = round(figures.n * (1 - constant))
        versus = "more than" if low > constant else "less than" if high < constant else "not clearly other than"
        if others < ENOUGH_OTHERS:
            versus = f"too few other claims ({others}) to compare with"
        words = (
            f"{percent(figures.accuracy.value)}% right ({percent(low)} to {percent(high)}), {versus} the "
            f"{percent(constant)}% of always answering '{figures.constant}'"
        )
        lines.append((f"Mediator, {len(scores.classes)} classes", words))
    dots = [
        Dot(f"{party}, {classes}", party, one.accuracy.value, *one.accuracy.interval, one.constant_accuracy.value)
        for classes, party, scores in _by_level(analysis)
        for one in [scores.rows.figures]
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
    """The mediator's confusion matrix; columns that nobody chose are there only where they are classes."""
    confusion = scores.rows.confusion
    kept = [
        place
        for place, name in enumerate(confusion.predicted)
        if name in confusion.truth or any(row[place] for row in confusion.counts)
    ]
    return HeatMap(
        f"Mediator, {len(scores.classes)} classes",
        confusion.truth,
        tuple(confusion.predicted[place] for place in kept),
        tuple(tuple(row[place] for place in kept) for row in confusion.counts),
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
    shown = analysis.disagreements[:SHOWN_DISAGREEMENTS]
    left = len(analysis.disagreements) - len(shown)
    cases = []
    for result in shown:
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
            f"{len(analysis.disagreements)} verdicts other than the published ones, {analysis.shown} classes",
            tuple(cases),
            note + (f" {left} more are left out here." if left else ""),
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
    """Every table of a run that has something to show, in the order of the report."""
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
    """How the fact-checks ended, and what they took."""
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
    """The claims whose fact-check failed, and why."""
    return Table.of(
        "Fact-checks that failed",
        ["claim", "reason"],
        [(one.text, one.error) for one in analysis.failed],
        left=2,
        note='They have no verdict, not even "not enough information". The same command checks them again.',
    )


def score_table(analysis: RunAnalysis) -> Table:
    """Accuracy and macro-F1 of everybody on every level, beside the constant answer; NEI is wrong."""
    rows = [
        (classes, party, *_figure_cells(scores.rows.figures), str(scores.rows.nei), str(scores.rows.missing))
        for classes, party, scores in _by_level(analysis)
    ]
    mediator = analysis.scores[0].levels if analysis.scores else ()
    named = "; ".join(f"{len(one.classes)}: {one.rows.figures.constant!r}" for one in mediator)
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
    """The same on the claims where a participant had enough information; empty where that makes no difference."""
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
    """Number of classes in words, participant and scores, by level."""
    for levels in zip(*(one.levels for one in analysis.scores), strict=True):
        for one, scores in zip(analysis.scores, levels, strict=True):
            yield f"{len(scores.classes)} classes", one.party, scores


def _share_cells(share: Estimate) -> tuple[str, str, str]:
    """n, value and interval."""
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
    """Where everybody stood after each round."""
    rows = [
        (
            one.party,
            str(one.round),
            str(one.still_open),
            *_figure_cells(one.scores.rows.figures),
            str(one.scores.rows.nei),
        )
        for one in analysis.by_round
    ]
    return Table.of(
        f"After each round, {analysis.shown} classes (%)",
        ["participant", "round", "open", *_FIGURE_HEADINGS, "NEI"],
        rows,
        grouped=1,
        left=1,
        note="open: debates that went on after the round. Debates that had closed count as they closed.",
    )


def distribution_table(analysis: RunAnalysis) -> Table:
    """How often each class was given."""
    names = [name for name, _ in analysis.distributions[0].counts]
    kept = [name for name in names if any(dict(one.counts)[name] for one in analysis.distributions)]
    rows = [(name, *(str(dict(one.counts)[name]) for one in analysis.distributions)) for name in kept]
    return Table.of(
        f"Verdicts given, {analysis.shown} classes",
        ["class", *(one.party for one in analysis.distributions)],
        rows,
        note="Published verdicts are those of claims that have one." if analysis.with_truth else "",
    )


def nei_table(analysis: RunAnalysis) -> Table:
    """How often everybody had not enough information."""
    rows = [(one.party, *_share_cells(one.share)) for one in analysis.nei]
    return Table.of(
        "Not enough information (%)",
        ["participant", "debates", "share", "95% interval"],
        rows,
        note="At the end of the debates. Intervals: Wilson.",
    )


def round_table(analysis: RunAnalysis) -> Table:
    """How many rounds it took, and why."""
    rounds = analysis.rounds
    rows = [("rounds needed", str(number), str(count)) for number, count in rounds.needed]
    rows += [("closed because", reason, str(count)) for reason, count in rounds.closed]
    rows += [("went on because", reason, str(count)) for reason, count in rounds.opened]
    rows += [("opinions", "changed from one round to the next", str(rounds.changed))] if rounds.debates else []
    return Table.of(f"Rounds of {counted(rounds.debates, 'debate')}", ["what", "", "number"], rows, left=2)


def agreement_table(analysis: RunAnalysis) -> Table:
    """Alpha between advocates."""
    rows = []
    for one in analysis.agreement:
        cells = [one.stage, str(one.claims)]
        for alpha in (one.ordinal, one.sides):
            shown = (_NONE, _NONE)
            if alpha is not None:
                ends = alpha.interval
                shown = (f"{alpha.value:.2f}", _NONE if ends is None else " to ".join(f"{end:.2f}" for end in ends))
            cells += shown
        rows.append(cells)
    return Table.of(
        "Agreement between the advocates (Krippendorff's alpha)",
        ["when", "claims", "ordinal", "95% interval", "two sides", "95% interval"],
        rows,
        note="1: full agreement, 0: that of chance. Only claims on which at least two advocates were informed.",
    )


def left_out_table(analysis: RunAnalysis) -> Table:
    """What drove the verdicts."""
    rows: list[tuple[str, ...]] = []
    for one in analysis.left_out:
        for level in one.levels:
            gained: tuple[str, ...] = (_NONE,) * 4
            if level.gain is not None:
                gain = level.gain.difference
                reach = " to ".join(f"{100 * end:+.1f}" for end in gain.interval)
                gained = (str(gain.n), f"{100 * gain.value:+.1f}", reach, shown_p_value(level.gain.p_value))
            changed = _share_cells(level.changed)[1:]
            rows.append((one.advocate, str(one.claims), str(one.failed), str(level.classes), *changed, *gained))
    rows += [(one.advocate, "0", str(one.failed), *(_NONE,) * 7) for one in analysis.left_out if not one.levels]
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
    """What explanations rest on."""
    rows = []
    for one in analysis.citations if any(one.sentences or one.removed for one in analysis.citations) else ():
        shares = (one.cited, one.attributed, one.in_house, one.with_foreign_numbers)
        entailed = (_NONE, _NONE) if one.entailed is None else (percent(one.entailed.value), str(one.entailed.n))
        parts = [percent(count / one.sentences) if one.sentences else _NONE for count in shares]
        rows.append((one.party, str(one.explanations), str(one.sentences), *parts, str(one.removed), *entailed))
    return Table.of(
        "What the explanations rest on (% of sentences)",
        ["participant", "texts", "sentences", "cited", "attributed", "in-house", "foreign\nnumbers", "removed",
         "entailed", "of"],
        rows,
        note="cited: by the model; attributed: by comparison with the passages; in-house: by nothing; foreign numbers: "
        "a number that the cited passages do not have; removed: citations of passages that were not retrieved "
        "(a count); entailed: % of so many citations whose passage seems to entail the sentence."
        + (f" {MARKS_RIGHT}" if any(one.entailed is not None for one in analysis.citations) else ""),
    )  # fmt: skip


def contradiction_table(analysis: RunAnalysis) -> Table:
    """Explanations against verdicts."""
    rows = [
        (one.party, *((_NONE,) * 3 if one.share is None else _share_cells(one.share)), str(one.unknown))
        for one in analysis.contradictions
        if one.share is not None or one.unknown
    ]
    return Table.of(
        "Explanations that contradict their verdict (%)",
        ["participant", "n", "share", "95% interval", "unknown"],
        rows,
        note="An explanation contradicts where it argues for the other side of the scale. unknown: not determined.",
    )


def risk_table(analysis: RunAnalysis) -> Table:
    """Accuracy of the surest verdicts."""
    risk = analysis.risk
    if risk is None:
        return Table.of("Accuracy of the surest verdicts", [], [])
    rows = [
        (name, percent(point.coverage), *_share_cells(point.accuracy))
        for name, share in (("surest quarter", 0.25), ("surest half", 0.5), ("all verdicts", 1.0))
        for point in [min(risk.points, key=lambda one: abs(one.coverage - share * risk.points[-1].coverage))]
    ]
    return Table.of(
        f"Accuracy of the surest verdicts, {analysis.shown} classes (%)",
        ["kept", "coverage", "n", "right", "95% interval"],
        rows,
        note=f"Ordered by {risk.ordered_by}; equally sure verdicts are kept together. Mean accuracy over all "
        f"coverages: {percent(risk.area)}; {percent(risk.unordered)} where the order says nothing. Always "
        f"{risk.constant!r}: {percent(risk.constant_accuracy)}.",
    )


def published_table() -> Table:
    """The paper's figures, on the scale of Climate Feedback."""
    return Table.of(
        "Published: accuracy / macro F1 (%) on 170 claims of Climate Feedback",
        ["system", "7 classes", "5 classes", "2 classes"],
        _PUBLISHED,
        note="Leippold et al. (2024), table 1. Other claims and other models than in this run, so that the figures are "
        "a frame and no comparison. The constant answer is right more often than the system on 7 and 5 classes.",
    )


MOST_LISTED = 30
"""Claims whose verdicts a terminal lists; more would push the scores out of sight."""


@dataclass(frozen=True, slots=True)
class CheckedClaims(Result):
    """A run over the claims of a file."""

    file: str
    transcripts: tuple[CheckedClaim, ...]
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
        """What was left out, asked and spent."""
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
        """All tables, and the warning where a very small model took part."""
        tables = [as_markdown(one) for one in self.tables()]
        return "\n".join([*tables, *([f"{DEMONSTRATION}\n"] if self.analysis.demonstration else [])])

    def report(self) -> Report:
        """Scores, figures and single disagreements."""
        return factcheck_report(self.analysis, file=self.file, facts=self.facts, pages=self.pages)

    def write_pages(self, folder: Path, report: Path | None = None) -> "CheckedClaims":
        """Write a page about each claim; the run with links to them from where the report will be.

        Raises:
            InputError: A page cannot be written.
        """
        for one in self.transcripts:
            write_file(folder / f"{one.claim.id}.html", factcheck_page(one, self.analysis.scale))
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
