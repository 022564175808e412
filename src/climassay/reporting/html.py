"""Self-contained HTML reports: one file that loads nothing, in light and dark colours, for screen and print."""

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import TypeAdapter, ValidationError

from climassay import __version__
from climassay.errors import InputError
from climassay.io import write_file
from climassay.reporting.figures import DotPlot, HeatMap, LinePlot, ScatterPlot, StackedBars
from climassay.reporting.tables import Table

if TYPE_CHECKING:
    from markupsafe import Markup


@dataclass(frozen=True, slots=True)
class Option:
    """Option of a multiple-choice question."""

    letter: str
    text: str
    correct: bool


Tone = Literal["right", "middle", "wrong", "outside"]
"""Verdict that determines the colour of a part of a text; ``outside`` means that the part was not assessed."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Verdict on one aspect of an answer."""

    head: str
    """Name of the aspect, for example a criterion."""
    verdict: str
    tone: Tone
    reason: str = ""
    quotation: str = ""


@dataclass(frozen=True, slots=True)
class ColouredText:
    """Part of a text with a colour that shows its verdict."""

    text: str
    tone: Tone | None = None
    """Colour of the verdict; None if the part has no verdict."""
    note: str = ""
    """Text shown when the pointer is over the part."""


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """Answer to a question, shown as a row of a table."""

    group: str
    """Name of the model."""
    label: str
    """Name of the setting."""
    text: str
    """Text of the answer, or the error message of a failed request."""
    scores: tuple[str, ...]
    """Formatted score for each of :attr:`AnsweredQuestion.metrics`."""
    wrong: bool
    failed: bool = False
    remarks: tuple[str, ...] = ()
    """Short remarks, for example violated constraints or the model's confidence."""
    sources: tuple[int, ...] = ()
    """Texts in the prompt, as indices into :attr:`AnswerTables.sources`."""
    parts: tuple[ColouredText, ...] = ()
    """Coloured parts, whose concatenated texts are ``text``; empty if the answer is not coloured."""
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    """Question with its reference answer and the models' answers."""

    id: str
    kind: str
    level: str
    """Level of difficulty; empty if the question has none."""
    collection: str
    """Name of the benchmark or dataset that contains the question."""
    text: str
    reference: str
    metrics: tuple[str, ...]
    answers: tuple[AnswerRow, ...]
    options: tuple[Option, ...] = ()
    source: int | None = None
    """Text from which the question was generated, as an index into :attr:`AnswerTables.sources`; None if unknown."""

    @property
    def wrong(self) -> int:
        """Number of wrong answers."""
        return sum(answer.wrong for answer in self.answers)


@dataclass(frozen=True, slots=True)
class SourceText:
    """Text from which questions or prompts were made; a report contains it once."""

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class AnswerTables:
    """List of collapsible questions with a filter above them.

    Only the filter needs JavaScript.
    """

    title: str
    questions: tuple[AnsweredQuestion, ...]
    sources: tuple[SourceText, ...] = ()
    note: str = ""
    collection_word: str = "benchmark"
    """Label of the filter by :attr:`AnsweredQuestion.collection`."""
    wrong_word: str = "wrong"
    """Adjective for wrong answers, as in "2 of 3 wrong"."""
    some_wrong: str = "some answer wrong"
    """Label of the filter for questions with at least one wrong answer."""
    total: int = 0
    """Total number of questions if ``questions`` contains only the first ones; otherwise 0."""

    def choices(self, field: str) -> tuple[str, ...]:
        """Return the distinct values of ``kind``, ``level`` or ``collection`` in order of first occurrence."""
        values = (str(getattr(question, field)) for question in self.questions)
        return tuple(dict.fromkeys(value for value in values if value))


@dataclass(frozen=True, slots=True)
class Prose:
    """Paragraph of text, optionally followed by a command that the reader can run."""

    text: str
    command: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """List of names and values, for example the configuration of a run."""

    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class AnswerCard:
    """Question with an answer whose sentences cite numbered sources."""

    question: str
    sentences: tuple[tuple[str, tuple[int, ...], bool], ...]
    """Text of each sentence, numbers of its sources, and whether it states the model's own knowledge."""
    sources: tuple[tuple[int, str, str], ...]
    """Number, citation and text of each source."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """Example that a report shows in detail."""

    heading: str
    facts: tuple[tuple[str, str], ...]
    """Pairs of name and value, which are shown with the case and in the list of links."""
    text: str = ""
    href: str = ""
    """Address of a page with more details, relative to the report; empty for no link."""


@dataclass(frozen=True, slots=True)
class Cases:
    """Cases, preceded by a list of links to them."""

    title: str
    cases: tuple[Case, ...]
    note: str = ""


Block = (
    Prose | Facts | AnswerCard | AnswerTables | Cases | Table | DotPlot | LinePlot | ScatterPlot | HeatMap | StackedBars
)


@dataclass(frozen=True, slots=True)
class Section:
    """Section of a report, with a heading and blocks."""

    heading: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """Report that consists of sections and can be written as one self-contained HTML page."""

    title: str
    lead: str
    """Summary in one or two sentences."""
    sections: tuple[Section, ...]
    facts: tuple[tuple[str, str], ...] = field(default=())
    """Pairs of name and value, such as versions, fingerprints and run ids; printed small at the end."""

    def has(self, kind: str) -> bool:
        """Return whether any section contains a block of the class with this name."""
        return any(type(block).__name__ == kind for section in self.sections for block in section.blocks)

    def to_html(self) -> str:
        """Return the report as a self-contained HTML page."""
        return render_page("report.html.j2", report=self, kind=lambda block: type(block).__name__)

    def write(self, path: Path) -> Path:
        """Write the report as a self-contained HTML page, atomically, and return the path."""
        write_file(path, self.to_html())
        return path


def render_page(template: str, **values: Any) -> str:
    """Render a template of ``climassay.reporting`` with escaped values."""
    return str(_environment().get_template(template).render(version=__version__, **values))


def render_block(block: Block, section: str, number: int) -> Any:
    """Render a block as a part of another page, which must include the CSS of :func:`block_style`.

    Args:
        block: Block to render.
        section: Prefix of the HTML ids in the block.
        number: Number that follows the prefix; the two together must be unique on the page.

    Returns:
        Escaped ``markupsafe.Markup`` without any inline style or script.
    """
    return _environment().get_template("blocks.html.j2").module.show(block, type(block).__name__, section, number)


def render_answer(row: AnswerRow) -> Any:
    """Render the text and findings of an answer as escaped ``markupsafe.Markup``."""
    return _environment().get_template("answers.html.j2").module.show_answer(row)


_NAME_END = re.compile(r"(?<=[/:])(?=\w)")


def breakable(text: str) -> "Markup":
    """Return a text as escaped HTML that allows line breaks after slashes and colons, as in long names."""
    from markupsafe import Markup, escape

    return Markup("<wbr>").join(map(escape, _NAME_END.split(text)))


@cache
def block_style() -> str:
    """Return the CSS of all blocks, for pages that contain blocks from :func:`render_block`.

    All rules are nested in the class ``.blocks``. They use the page's colours ``--ink``, ``--soft``, ``--card``,
    ``--line`` and ``--mark``.
    """
    rules = "".join(_render(name) for name in ("blocks.css.j2", "answers.css.j2"))
    return f"{_render('colours.css.j2')}.blocks {{\n{rules}}}\n"


@cache
def block_script() -> str:
    """Return the JavaScript that filters the questions of :class:`AnswerTables`; pages also work without it."""
    return _render("answers.js")


def _render(template: str) -> str:
    return str(_environment().get_template(template).render())


@cache
def _environment() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("climassay.reporting", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = breakable
    return environment


Figure = DotPlot | LinePlot | ScatterPlot | HeatMap | StackedBars
FIGURES = (DotPlot, LinePlot, ScatterPlot, HeatMap, StackedBars)


def as_svg(figure: Figure) -> str:
    """Render a figure as an SVG document with title, legend and style."""
    return render_page("figure.svg.j2", figure=figure, kind=type(figure).__name__, shades=_fill_colours(figure))


def _fill_colours(figure: Figure) -> dict[str, str]:
    """Return the fill colour by name of category or cloud.

    Colours are computed here because most SVG viewers do not support the CSS function ``color-mix``.
    """
    if isinstance(figure, ScatterPlot):
        return (
            {cloud.name: _interpolate_colour(cloud.position, _DEEP_COLOURS) for cloud in figure.clouds}
            if figure.small
            else {}
        )
    categories = [category for _, category in figure.used_categories] if isinstance(figure, StackedBars) else []
    return {
        category.name: "url(#hatching)" if category.hatched else _interpolate_colour(category.position, _PALE_COLOURS)
        for category in categories
    }


_GREY = "#c3ccd4"
_PALE_COLOURS = ((227, 139, 116), (240, 223, 166), (127, 186, 210))
"""RGB values of ``--wrong``, ``--middle`` and ``--right`` in the style sheet of reports."""
_DEEP_COLOURS = ((178, 24, 43), (220, 168, 0), (18, 63, 158))
"""RGB values of ``--least``, ``--mid`` and ``--most`` in the style sheet of reports, for small points.

Small points in pale colours would be invisible. Colour-blind readers must be able to distinguish five levels.
"""


def _interpolate_colour(position: float | None, colours: tuple[tuple[int, int, int], ...]) -> str:
    """Return the colour at a position, from 0 to 1, between three RGB colours, as ``#rrggbb``; grey for None."""
    if position is None:
        return _GREY
    low_colour, middle_colour, high_colour = colours
    low, high, weight = (
        (low_colour, middle_colour, 2 * position) if position <= 0.5 else (middle_colour, high_colour, 2 * position - 1)
    )
    values = (round(a + (b - a) * weight) for a, b in zip(low, high, strict=True))
    return "#" + "".join(f"{value:02x}" for value in values)


def report_data(report: Report) -> dict[str, Any]:
    """Return a report as JSON-serialisable dictionaries, lists, strings and numbers."""
    data: dict[str, Any] = _report_adapter().dump_python(report, mode="json")
    return data


def report_from_data(data: Any) -> Report:
    """Restore a report from the data that :func:`report_data` returned.

    Raises:
        InputError: The data do not describe a report.
    """
    try:
        return _report_adapter().validate_python(data)
    except ValidationError as error:
        first_error = error.errors()[0]
        location = ".".join(map(str, first_error["loc"]))
        raise InputError(f"The stored report is damaged ({location}: {first_error['msg']}).") from None


@cache
def _report_adapter() -> TypeAdapter[Report]:
    return TypeAdapter(Report)
