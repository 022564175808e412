"""Report of fact-checking many claims: scores, figures, disagreements and tables."""

from collections.abc import Mapping, Sequence

from climassay.factcheck.results.analysis import MEDIATOR, RiskCoverage, RunAnalysis
from climassay.factcheck.results.analysis_tables import (
    agreement_table,
    citation_table,
    distribution_table,
    failed_table,
    group_table,
    informed_score_table,
    left_out_table,
    nei_table,
    outcome_table,
    published_table,
    risk_table,
    round_score_table,
    round_table,
    score_table,
    scores_by_level,
)
from climassay.factcheck.results.scoring import (
    NO_VERDICT,
    VerdictScores,
)
from climassay.prompts import DEMONSTRATION
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
    counted,
    percent,
    thin_points,
)
from climassay.reporting.html import Block

MAX_DISAGREEMENTS = 200
"""Maximum number of disagreements listed in a report."""
MIN_MINORITY_CLAIMS = 20
"""Minimum number of claims outside the most frequent class for the report to compare scores with the majority-class
baseline."""


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
    truth_note = f"{analysis.with_truth} of them with a published verdict, " if analysis.with_truth else ""
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
        "What the explanations rest on": (citation_table(analysis),),
        "How sure the verdicts are": (_risk_plot(analysis.risk), risk_table(analysis)) if analysis.risk else (),
        "Disagreements": _disagreement_blocks(analysis, pages or {}),
    }
    blocks_by_heading = {
        heading: tuple(block for block in blocks if not isinstance(block, Table) or block.rows)
        for heading, blocks in sections.items()
    }
    return Report(
        title=f"Fact-check{'s' if analysis.claims != 1 else ''} of {file}",
        lead=f"{counted(analysis.claims, 'claim')}, {truth_note}{participants}; "
        "verdicts by language models, not reviewed by a person."
        + (f" {DEMONSTRATION}" if analysis.demonstration else ""),
        sections=tuple(Section(heading, blocks) for heading, blocks in blocks_by_heading.items() if blocks),
        facts=(("Scale", analysis.scale.name), *facts),
    )


def _score_blocks(analysis: RunAnalysis) -> Sequence[Block]:
    """Return sentences, figures and tables that compare the mediator with the majority-class baseline."""
    if not analysis.scores:
        return (Prose("No claim has a published verdict, so there is nothing to compare these verdicts with."),)
    mediator = analysis.scores[0].levels
    lines = []
    for scores in mediator:
        metrics = scores.rows.figures
        constant = metrics.constant_accuracy.value
        low, high = metrics.accuracy.interval
        n_minority = round(metrics.n * (1 - constant))
        comparison = "more than" if low > constant else "less than" if high < constant else "not clearly other than"
        if n_minority < MIN_MINORITY_CLAIMS:
            comparison = f"too few other claims ({n_minority}) to compare with"
        text = (
            f"{percent(metrics.accuracy.value)}% right ({percent(low)} to {percent(high)}), {comparison} the "
            f"{percent(constant)}% of always answering '{metrics.constant}'"
        )
        lines.append((f"Mediator, {len(scores.classes)} classes", text))
    accuracy_dots = [
        Dot(
            f"{party}, {classes}",
            party,
            metrics.accuracy.value,
            *metrics.accuracy.interval,
            metrics.constant_accuracy.value,
        )
        for classes, party, scores in scores_by_level(analysis)
        for metrics in [scores.rows.figures]
    ]
    note = "Dots: accuracy. Bars: 95% interval. Dashed tick: the best constant answer."
    return (
        Facts(tuple(lines)),
        DotPlot("Accuracy of the mediator and the advocates", tuple(accuracy_dots), note=note),
        score_table(analysis),
        informed_score_table(analysis),
        group_table(analysis.by_group),
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
            for point in thin_points(risk.points)
        ),
    )
    constant_points = (Point(0.0, risk.constant_accuracy), Point(1.0, risk.constant_accuracy))
    constant = Series(f"always '{risk.constant}'", constant_points, reference=True)
    note = (
        f"Verdicts from the surest on, by confidence. Bars: 95% interval (Wilson). 'Not enough information' and "
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
        if result.confidence is not None:
            facts.append(("Confidence", result.confidence))
        words = result.text.split()
        text = result.text if len(words) <= 60 else " ".join(words[:60]) + " ..."
        cases.append(Case(text, tuple(facts), result.explanation, pages.get(result.claim, "")))
    note = "Farthest from the published verdict first. 'Not enough information' is not listed."
    return (
        Cases(
            f"{len(analysis.disagreements)} verdicts other than the published ones, {analysis.n_classes} classes",
            tuple(cases),
            note + (f" {n_omitted} more are left out here." if n_omitted else ""),
        ),
    )
