"""A run of fact-checks as a self-contained report."""

from collections.abc import Mapping, Sequence

from climassay.factcheck.analysis import Disagreement, RunAnalysis
from climassay.factcheck.analysis_tables import (
    agreement_table,
    analysis_tables,
    citation_table,
    contradiction_table,
    distribution_table,
    informed_score_table,
    left_out_table,
    nei_table,
    outcome_table,
    percent,
    published_table,
    risk_table,
    round_score_table,
    round_table,
    score_table,
    shortened,
)
from climassay.factcheck.page_words import DEMONSTRATION
from climassay.factcheck.parties import MEDIATOR
from climassay.factcheck.risk_coverage import CoveragePoint, RiskCoverage
from climassay.factcheck.scoring import NO_VERDICT, VerdictScores
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
)
from climassay.reporting.html import Block

SHOWN_DISAGREEMENTS = 200
"""More would make the report too long to read."""
ENOUGH_OTHERS = 20
"""Claims outside the most frequent class from which a verdict is compared with the constant answer in words."""
CURVE_POINTS = 25
"""Drawn of a risk-coverage curve; the area is over all of them."""

__all__ = ["analysis_tables", "factcheck_report"]


def factcheck_report(
    analysis: RunAnalysis,
    *,
    file: str,
    facts: Sequence[tuple[str, str]] = (),
    pages: Mapping[str, str] | None = None,
) -> Report:
    """A run as a report.

    Args:
        analysis: What came out.
        file: Name of the claims' file, for the title.
        facts: Run id, models and what else belongs at the end.
        pages: Address of each claim's own page by the claim's id, relative to the report; claims may be missing.
    """
    sections = [
        ("Verdicts against the published ones", _score_blocks(analysis)),
        ("Verdicts given", (_distribution_figure(analysis), distribution_table(analysis), nei_table(analysis))),
        ("How the debates went", (outcome_table(analysis), round_table(analysis), agreement_table(analysis))),
        ("What drove the verdicts", (left_out_table(analysis),)),
        ("What the explanations rest on", (citation_table(analysis), contradiction_table(analysis))),
        ("How sure the verdicts are", _risk_blocks(analysis)),
        ("Disagreements", _disagreement_blocks(analysis, pages or {})),
    ]
    filled = [(heading, tuple(block for block in blocks if block is not None)) for heading, blocks in sections]
    return Report(
        title=f"Fact-checks of {file}",
        lead=_lead(analysis),
        sections=tuple(Section(heading, blocks) for heading, blocks in filled if blocks),
        facts=(("Scale", analysis.scale.name), *facts),
    )


def _lead(analysis: RunAnalysis) -> str:
    advocates = [one.party for one in analysis.distributions if one.party not in ("published", MEDIATOR)]
    who = f"debated by {', '.join(advocates)}" if advocates else "none of them debated"
    return (
        f"{analysis.claims} claims, {analysis.with_truth} of them with a published verdict, {who}; verdicts by "
        "language models, not reviewed by a person." + (f" {DEMONSTRATION}" if analysis.demonstration else "")
    )


def _score_blocks(analysis: RunAnalysis) -> tuple[Block | None, ...]:
    if not analysis.scores:
        return (
            Prose("No claim has a published verdict, so that nothing can be said about how right the verdicts are."),
        )
    mediator = analysis.scores[0]
    return (
        _headline(mediator.levels),
        _dot_plot(analysis),
        score_table(analysis),
        informed_score_table(analysis),
        published_table(analysis),
        round_score_table(analysis),
        *(_heat_map(scores) for scores in mediator.levels),
    )


def _headline(levels: Sequence[VerdictScores]) -> Facts:
    """One sentence a level, which says whether the mediator is better than a constant answer."""
    lines = []
    for scores in levels:
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
    return Facts(tuple(lines))


def _dot_plot(analysis: RunAnalysis) -> DotPlot:
    dots = tuple(
        Dot(
            f"{one.party}, {len(scores.classes)} classes",
            one.party,
            scores.rows.figures.accuracy.value,
            scores.rows.figures.accuracy.interval[0],
            scores.rows.figures.accuracy.interval[1],
            scores.rows.figures.constant_accuracy.value,
        )
        for levels in zip(*(one.levels for one in analysis.scores), strict=True)
        for one, scores in zip(analysis.scores, levels, strict=True)
    )
    note = "Dots: accuracy. Bars: 95% interval, bootstrap over claims. Dashed tick: the best constant answer."
    return DotPlot("Accuracy of the mediator and the advocates", dots, note=note)


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


def _distribution_figure(analysis: RunAnalysis) -> StackedBars:
    classes = analysis.scale.classes(analysis.shown)
    places = {name: number / (len(classes) - 1) for number, name in enumerate(classes)}
    names = [name for name, _ in analysis.distributions[0].counts]
    return StackedBars(
        f"Distribution of verdicts, {analysis.shown} classes",
        tuple(Category(name, places.get(name), hatched=name == NO_VERDICT) for name in names),
        tuple(StackedBar(one.party, tuple(count for _, count in one.counts)) for one in analysis.distributions),
        "From wrong (left) to right; grey: not enough information; hatched: no verdict.",
    )


def _risk_blocks(analysis: RunAnalysis) -> tuple[Block | None, ...]:
    if analysis.risk is None:
        return ()
    return (_risk_plot(analysis.risk), risk_table(analysis))


def _risk_plot(risk: RiskCoverage) -> LinePlot:
    curve = Series(
        "the surest verdicts",
        tuple(
            Point(point.coverage, point.accuracy.value, *point.accuracy.interval, f"{point.accuracy.n} verdicts")
            for point in _thinned(risk.points)
        ),
    )
    level = (Point(0.0, risk.constant_accuracy), Point(1.0, risk.constant_accuracy))
    constant = Series(f"always '{risk.constant}'", level, reference=True)
    axes = [
        Axis(label, 0.0, 1.0, (0.0, 0.25, 0.5, 0.75, 1.0), percent=True)
        for label in ("claims covered", "accuracy on them")
    ]
    note = (
        f"Verdicts from the surest on, by {risk.ordered_by}. Bars: 95% interval (Wilson). 'Not enough information' and "
        f"failed checks cover nothing. Dashed: always '{risk.constant}' ({percent(risk.constant_accuracy)}%)."
    )
    return LinePlot("Accuracy against coverage", (curve, constant), axes[0], axes[1], note=note)


def _thinned(points: Sequence[CoveragePoint]) -> list[CoveragePoint]:
    """Points about evenly apart, first and last included."""
    if len(points) <= CURVE_POINTS:
        return list(points)
    step = (len(points) - 1) / (CURVE_POINTS - 1)
    return [points[round(number * step)] for number in range(CURVE_POINTS)]


def _disagreement_blocks(analysis: RunAnalysis, pages: Mapping[str, str]) -> tuple[Block, ...]:
    if not analysis.with_truth:
        return ()
    if not analysis.disagreements:
        return (Prose("No verdict differs from the published one."),)
    shown = analysis.disagreements[:SHOWN_DISAGREEMENTS]
    left = len(analysis.disagreements) - len(shown)
    note = "Farthest from the published verdict first, then the most probable. 'Not enough information' is not listed."
    return (
        Cases(
            f"{len(analysis.disagreements)} verdicts other than the published ones, {analysis.shown} classes",
            tuple(_case(one, pages.get(one.claim, "")) for one in shown),
            note + (f" {left} more are left out here." if left else ""),
        ),
    )


def _case(found: Disagreement, page: str) -> Case:
    facts = [("Published", found.truth), ("Given", found.verdict)]
    if found.distance is not None:
        facts.append(("Distance", f"{found.distance} step{'' if found.distance == 1 else 's'}"))
    if found.probability is not None:
        facts.append(("Probability", f"{percent(found.probability)}%"))
    if found.confidence is not None:
        facts.append(("Confidence", found.confidence))
    return Case(shortened(found.text, 60), tuple(facts), found.explanation, page)
