"""How results are shown: one table for screen, Markdown, CSV and HTML, and self-contained HTML reports."""

from climassay.reporting.figures import Axis, Cloud, Dot, DotPlot, LinePlot, Point, ScatterPlot, Series
from climassay.reporting.html import AnswerCard, Facts, Prose, Report, Section
from climassay.reporting.tables import Table, as_csv, as_markdown, as_rich

__all__ = [
    "AnswerCard",
    "Axis",
    "Cloud",
    "Dot",
    "DotPlot",
    "Facts",
    "LinePlot",
    "Point",
    "Prose",
    "Report",
    "ScatterPlot",
    "Section",
    "Series",
    "Table",
    "as_csv",
    "as_markdown",
    "as_rich",
]
