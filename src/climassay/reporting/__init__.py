"""Tables, figures, self-contained HTML reports, and results that are saved as files."""

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
    thinned,
)
from climassay.reporting.html import (
    AnswerCard,
    AnsweredQuestion,
    AnswerRow,
    AnswerTables,
    Case,
    Cases,
    Facts,
    Option,
    Prose,
    Report,
    Section,
    SourceText,
    render_page,
)
from climassay.reporting.tables import (
    Mark,
    Table,
    as_csv,
    as_latex,
    as_markdown,
    counted,
    percent,
    percent_interval,
    shown_p_value,
)

__all__ = [
    "AnswerCard", "AnswerRow", "AnswerTables", "AnsweredQuestion", "Axis", "Case", "Cases", "Category", "Cloud",
    "Dot", "DotPlot", "Facts", "HeatMap", "Label", "LinePlot", "Mark", "Option", "Point", "Prose", "Report",
    "ScatterPlot", "Section", "Series", "SourceText", "StackedBar", "StackedBars", "Table", "as_csv", "as_latex",
    "as_markdown", "counted", "percent", "percent_interval", "render_page", "shown_p_value", "thinned",
]  # fmt: skip
