"""An evaluation as tables and as sections of a report."""

from climassay.evaluation.mcq_run import McqEvaluation
from climassay.evaluation.scores import OVERALL, McqScores
from climassay.reporting import Dot, DotPlot, Prose, Report, Section, Table
from climassay.reporting.html import Block
from climassay.statistics import Estimate


def percent(share: float) -> str:
    """A share as per cent with one decimal."""
    return f"{100 * share:.1f}"


def _interval(estimate: Estimate) -> str:
    return f"{percent(estimate.interval.low)}-{percent(estimate.interval.high)}"


def _p_value(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def mcq_tables(scores: McqScores) -> list[Table]:
    """Accuracy by level, paired tests, position bias; the last two only where there is something to show."""
    tables = [_accuracy_table(scores)]
    if scores.paired:
        tables.append(_paired_table(scores))
    if scores.position:
        tables.append(_position_table(scores))
    return tables


def _accuracy_table(scores: McqScores) -> Table:
    rows = [
        (
            row.setting,
            row.scoring,
            row.level,
            str(row.accuracy.n),
            percent(row.accuracy.value),
            _interval(row.accuracy),
            percent(row.baseline),
            percent(row.chance),
            str(row.unparsed),
            str(row.failed),
        )
        for row in scores.accuracy
    ]
    return Table.of(
        "Accuracy by level (%)",
        ["setting", "scoring", "level", "n", "accuracy", "95% interval", "const.", "chance", "unparsed", "failed"],
        rows,
        left=3,
        grouped=2,
        strong=[number for number, row in enumerate(scores.accuracy) if row.level == OVERALL],
        note="const.: always the same letter. unparsed and failed answers count as wrong.",
    )


def _paired_table(scores: McqScores) -> Table:
    rows = [
        (
            f"{row.second} - {row.first}",
            row.scoring,
            str(row.difference.n),
            f"{100 * row.difference.value:+.1f}",
            f"{100 * row.difference.interval.low:+.1f} to {100 * row.difference.interval.high:+.1f}",
            f"{row.second_only} / {row.first_only}",
            _p_value(row.p_value),
            _p_value(row.p_holm),
        )
        for row in scores.paired
    ]
    tests = " and ".join(dict.fromkeys(row.test for row in scores.paired))
    return Table.of(
        "Settings compared on the same questions (percentage points)",
        ["difference", "scoring", "n", "points", "95% interval", "gained /\nlost", "p", "p\n(Holm)"],
        rows,
        left=2,
        note=f"Paired test: {tests}. gained / lost: questions that only the setting named first, or only the one named "
        "second, got right, in the option order of the file.",
    )


def _position_table(scores: McqScores) -> Table:
    rows = [
        (
            row.setting,
            row.scoring,
            str(row.orders),
            "/".join(f"{100 * share:.0f}" for share in row.picked),
            "/".join(f"{100 * share:.0f}" for share in row.right),
            percent(row.recall_spread),
            _p_value(row.p_value),
            percent(row.consistent),
            "-" if row.averaged is None else f"{percent(row.averaged.value)} ({_interval(row.averaged)})",
        )
        for row in scores.position
    ]
    return Table.of(
        "Position bias (%)",
        [
            "setting",
            "scoring",
            "orders",
            "picked\na/b/...",
            "right at\na/b/...",
            "spread",
            "p",
            "same\nchoice",
            "averaged (95%)",
        ],
        rows,
        left=2,
        grouped=2,
        note="picked: share of choices at each position. right: share answered right when the correct option stood "
        "there; spread: its standard deviation. same choice: questions with one choice in all orders. averaged: "
        "accuracy when log-probabilities are averaged over the orders.",
    )


def mcq_report_sections(scores: McqScores, heading: str, lead: str = "") -> list[Section]:
    """Figures and tables of an evaluation as a section of a report, below a sentence or two that say what they are."""
    dots = tuple(
        Dot(
            label=f"{row.setting}, {row.scoring}, {row.level}"
            if row.level != OVERALL
            else f"{row.setting}, {row.scoring}",
            group=row.setting,
            value=row.accuracy.value,
            low=row.accuracy.interval.low,
            high=row.accuracy.interval.high,
            reference=row.baseline,
        )
        for row in scores.accuracy
    )
    overall = tuple(dot for dot, row in zip(dots, scores.accuracy, strict=True) if row.level == OVERALL)
    by_level = tuple(dot for dot, row in zip(dots, scores.accuracy, strict=True) if row.level != OVERALL)
    note = "Dots: accuracy. Bars: 95% interval. Dashed tick: the best constant answer."
    blocks: list[Block] = [Prose(lead)] if lead else []
    blocks.append(DotPlot("Overall accuracy", overall, note=note))
    if by_level:
        blocks.append(DotPlot("Accuracy by level", by_level, note=note))
    return [Section(heading, (*blocks, *mcq_tables(scores)))]


def mcq_report(result: McqEvaluation) -> Report:
    """An evaluation as a self-contained HTML report."""
    usage = result.tally.usage
    return Report(
        title=f"{result.model} on {result.questions}",
        lead=f"{result.n} multiple-choice questions in the settings {', '.join(result.settings)}; "
        f"{result.orders} option order{'s' if result.orders > 1 else ''} a question.",
        sections=tuple(mcq_report_sections(result.scores, "Accuracy")),
        facts=(
            ("Run", result.run),
            ("Model fingerprint", result.fingerprint),
            ("Number format", result.dtype or "-"),
            ("Questions (SHA-256)", result.questions_sha256),
            ("Seed", str(result.seed)),
            (
                "Answers",
                f"{result.tally.hits} from the records, {result.tally.asked} asked, {result.tally.failed} failed",
            ),
            ("Tokens", usage.tokens),
        ),
    )
