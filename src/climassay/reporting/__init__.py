"""How results are shown: one table for screen, Markdown, CSV and HTML, and self-contained HTML reports."""

from climassay.reporting.figures import Dot, DotPlot
from climassay.reporting.html import AnswerCard, Facts, Prose, Report, Section
from climassay.reporting.tables import Table, as_csv, as_markdown, as_rich

__all__ = [
    "AnswerCard",
    "Dot",
    "DotPlot",
    "Facts",
    "Prose",
    "Report",
    "Section",
    "Table",
    "as_csv",
    "as_markdown",
    "as_rich",
]
