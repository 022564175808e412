"""Scores of verdicts as tables, as a report and as data for JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from climassay.factcheck.scoring import RowScores, VerdictFigures, VerdictScores
from climassay.reporting import Dot, DotPlot, Report, Section, Table
from climassay.statistics import Estimate

_ALL, _WITHOUT_NEI, _ONCE, _ONCE_WITHOUT_NEI = (
    "all rows",
    "without NEI",
    "each claim once",
    "each claim once, without NEI",
)
_PAGE = 100
"""Characters across the page of a report."""


class _Variant(NamedTuple):
    name: str
    figures: VerdictFigures


def verdict_data(scores: VerdictScores) -> dict[str, Any]:
    """Everything, for JSON; the figures of all rows stand at the top.

    Returns:
        ``n``, ``accuracy``, ``precision``, ``recall``, ``f1``, ``constant`` and its four figures, ``averaged``,
        ``one_sided``; the same under ``without_nei``; ``claims``, ``nei``, ``true_nei``, ``missing``, ``unknown``,
        ``confusion``; all of these once more under ``without_duplicates``; ``duplicates``, ``unlabelled``, ``scale``,
        ``classes``. An estimate is an object with ``value`` and ``interval`` (shares), ``n`` (claims) and ``level``.
    """
    once = scores.without_duplicates
    return {
        "scale": scores.scale,
        "classes": scores.classes,
        **_row_data(scores.rows),
        "unlabelled": scores.unlabelled,
        "duplicates": scores.duplicates,
        "without_duplicates": None if once is None else _row_data(once),
    }


def _row_data(rows: RowScores) -> dict[str, Any]:
    data = asdict(rows)
    return {**data.pop("figures"), **data}


def verdict_tables(scores: VerdictScores, *, width: int | None = None) -> list[Table]:
    """Figures beside those of the constant answer, and the confusion matrix of all rows.

    Args:
        scores: What to show.
        width: Characters of the screen; columns of a confusion matrix that does not fit are numbered, not named.
    """
    named = _confusion_table(scores, numbered=False)
    fits = width is None or _width(named) <= width
    return [_figure_table(scores), named if fits else _confusion_table(scores, numbered=True)]


def _variants(scores: VerdictScores) -> Iterator[_Variant]:
    """The sets of rows that differ, the whole one first."""
    for rows, whole, informed in (
        (scores.rows, _ALL, _WITHOUT_NEI),
        (scores.without_duplicates if scores.duplicates else None, _ONCE, _ONCE_WITHOUT_NEI),
    ):
        if rows is not None:
            yield _Variant(whole, rows.figures)
            if rows.without_nei is not None and rows.without_nei.n < rows.figures.n:
                yield _Variant(informed, rows.without_nei)


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _interval(estimate: Estimate) -> str:
    return f"{_percent(estimate.interval.low)}-{_percent(estimate.interval.high)}"


def _figure_table(scores: VerdictScores) -> Table:
    rows = [
        (
            variant.name,
            name,
            str(variant.figures.n),
            _percent(value.value),
            _interval(value),
            _percent(constant.value),
            _interval(constant),
        )
        for variant in _variants(scores)
        for name, value, constant in _lines(variant.figures)
    ]
    level = f"{100 * scores.rows.figures.accuracy.level:g}%"
    return Table.of(
        f"Verdicts against the truth: {scores.scale}, {len(scores.classes)} classes (%)",
        ["rows", "figure", "n", "value", f"{level} interval", "const.", f"const.\n{level} interval"],
        rows,
        left=2,
        grouped=1,
        note=" ".join(_constant_sentences(scores)),
    )


def _lines(figures: VerdictFigures) -> tuple[tuple[str, Estimate, Estimate], ...]:
    return (
        ("accuracy", figures.accuracy, figures.constant_accuracy),
        ("macro precision", figures.precision, figures.constant_precision),
        ("macro recall", figures.recall, figures.constant_recall),
        ("macro F1", figures.f1, figures.constant_f1),
    )


def _constant_sentences(scores: VerdictScores) -> Iterator[str]:
    figures = scores.rows.figures
    others = [f"{v.figures.constant!r} {v.name}" for v in _variants(scores) if v.figures.constant != figures.constant]
    yield f"const.: always {', '.join([repr(figures.constant), *others])}."
    if figures.constant_accuracy.value > figures.accuracy.value:
        yield "The constant answer is right more often than the verdicts scored here."
    repeated = ", each with all of its rows" if scores.duplicates else ""
    yield f"Intervals: bootstrap over {scores.rows.claims:,} claims{repeated}."


def _confusion_table(scores: VerdictScores, *, numbered: bool) -> Table:
    """Classes that occur on neither side are left out, so that fine scales fit on a screen."""
    confusion, occurring = scores.rows.confusion, set(scores.rows.figures.averaged)
    absent = [name for name in scores.classes if name not in occurring]
    columns = [place for place, name in enumerate(confusion.predicted) if name not in absent]
    numbers = [*map(str, range(1, len(columns) - 1)), "NEI", "none"]
    shown = [row for row in zip(confusion.truth, confusion.counts, strict=True) if row[0] not in absent]
    rows = [
        (f"{number} {name}" if numbered else name, *(str(counts[place]) for place in columns), str(sum(counts)))
        for number, (name, counts) in zip(numbers, shown, strict=False)
    ]
    totals = [sum(counts[place] for counts in confusion.counts) for place in columns]
    rows.append(("sum", *map(str, totals), str(scores.rows.figures.n)))
    names = [confusion.predicted[place].replace(" ", "\n") for place in columns]
    note = [*_counting_sentences(scores, absent)]
    return Table.of(
        "Confusion matrix: true verdicts in rows, predicted ones in columns",
        ["truth", *(numbers if numbered else names), "sum"],
        rows,
        strong=[len(rows) - 1],
        note=" ".join(["Columns: numbers of the rows; none: no verdict.", *note] if numbered else note),
    )


def _width(table: Table) -> int:
    """Characters that a table takes on a screen without breaking a word."""
    cells = zip(*([column.heading for column in table.columns], *table.rows), strict=True)
    return sum(2 + max(len(line) for cell in column for line in cell.split("\n")) for column in cells)


def _counting_sentences(scores: VerdictScores, absent: Sequence[str]) -> Iterator[str]:
    rows = scores.rows
    nei = rows.confusion.predicted[-2]
    unknown = f"; not of the scale: {rows.unknown:,}" if rows.unknown else ""
    right = ", except NEI where it is the truth" if rows.true_nei else ""
    yield f"Predictions of {nei!r} (NEI): {rows.nei:,}; missing: {rows.missing:,}{unknown}; all count as wrong{right}."
    if rows.figures.one_sided:
        named = ", ".join(map(repr, rows.figures.one_sided))
        yield f"On one side only, and 0 in the averages: {named}."
    if absent:
        yield f"On neither side, and not shown: {', '.join(map(repr, absent))}."
    if scores.duplicates is not None:
        yield f"Rows that repeat the claim of an earlier row: {scores.duplicates:,}."
    if scores.unlabelled:
        yield f"Rows without a true verdict, left out: {scores.unlabelled:,}."


def verdict_sections(scores: VerdictScores, heading: str) -> list[Section]:
    """Figures and confusion matrix as a section of a report."""
    dots = tuple(
        Dot(f"{name}, {variant.name}", name, value.value, value.interval.low, value.interval.high, constant.value)
        for variant in _variants(scores)
        for name, value, constant in _lines(variant.figures)
        if name in ("accuracy", "macro F1")
    )
    note = "Dots: share. Bars: bootstrap interval over claims. Dashed tick: the best constant answer."
    plot = DotPlot("Accuracy and macro F1", dots, axis="share", note=note)
    return [Section(heading, (plot, *verdict_tables(scores, width=_PAGE)))]


def verdict_report(scores: VerdictScores, subject: str, facts: Sequence[tuple[str, str]] = ()) -> Report:
    """Scores as a self-contained HTML report.

    Args:
        scores: What to show.
        subject: What was scored, for the title.
        facts: Shown small at the end, for example file and columns.
    """
    figures = scores.rows.figures
    return Report(
        title=f"Verdicts of {subject}",
        lead=f"{figures.n:,} verdicts on the scale {scores.scale} in {len(scores.classes)} classes: "
        f"{_percent(figures.accuracy.value)}% are right. Always answering {figures.constant!r} is right in "
        f"{_percent(figures.constant_accuracy.value)}%.",
        sections=tuple(verdict_sections(scores, "Figures")),
        facts=tuple(facts),
    )
