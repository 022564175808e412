"""How results are shown: one table for screen, Markdown, CSV and HTML, and self-contained HTML reports."""

from climassay.reporting.answers import AnsweredQuestion, AnswerRow, AnswerTables, Option, SourceText
from climassay.reporting.figures import (
    Axis,
    Category,
    Cloud,
    Dot,
    DotPlot,
    HeatMap,
    Label,
    LinePlot,
    Point,
    ScatterPlot,
    Series,
    StackedBar,
    StackedBars,
)
from climassay.reporting.html import AnswerCard, Case, Cases, Facts, Prose, Report, Section, render_page, write_page
from climassay.reporting.latex import as_latex
from climassay.reporting.tables import Mark, Table, as_csv, as_markdown
from climassay.reporting.terminal import as_rich

__all__ = [
    "AnswerCard",
    "AnswerRow",
    "AnswerTables",
    "AnsweredQuestion",
    "Axis",
    "Case",
    "Cases",
    "Category",
    "Cloud",
    "Dot",
    "DotPlot",
    "Facts",
    "HeatMap",
    "Label",
    "LinePlot",
    "Mark",
    "Option",
    "Point",
    "Prose",
    "Report",
    "ScatterPlot",
    "Section",
    "Series",
    "SourceText",
    "StackedBar",
    "StackedBars",
    "Table",
    "as_csv",
    "as_latex",
    "as_markdown",
    "as_rich",
    "render_page",
    "write_page",
]
