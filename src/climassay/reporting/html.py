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
    """An option of a multiple-choice question."""

    letter: str
    text: str
    correct: bool


Tone = Literal["right", "middle", "wrong", "outside"]
"""Colour of a text part: correct, partly correct, wrong, or not assessed."""


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
    """Part of a text with the colour of its verdict."""

    text: str
    tone: Tone | None = None
    """Tone of the part's verdict; None without a verdict."""
    note: str = ""
    """Tooltip of the part."""


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """Answer to a question, as one row of a table."""

    group: str
    """Name of the model."""
    label: str
    """Name of the setting."""
    text: str
    """Answer, or the error message of a failed request."""
    scores: tuple[str, ...]
    """Formatted scores, one for each of :attr:`AnsweredQuestion.metrics`."""
    wrong: bool
    failed: bool = False
    remarks: tuple[str, ...] = ()
    """Short remarks, for example violated constraints or the model's confidence."""
    sources: tuple[int, ...] = ()
    """Indices into :attr:`AnswerTables.sources` of the texts in the prompt."""
    parts: tuple[ColouredText, ...] = ()
    """Coloured parts whose texts join to ``text``; empty if the answer is not coloured."""
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    """Question with its reference and its answers."""

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
    """Index into :attr:`AnswerTables.sources` of the text that the question was generated from."""

    @property
    def wrong(self) -> int:
        """Number of wrong answers."""
        return sum(answer.wrong for answer in self.answers)


@dataclass(frozen=True, slots=True)
class SourceText:
    """Text that a prompt or a question was made from; stored once for all its uses."""

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class AnswerTables:
    """List of collapsible questions with a filter above them.

    The page works without JavaScript, except for the filter.
    """

    title: str
    questions: tuple[AnsweredQuestion, ...]
    sources: tuple[SourceText, ...] = ()
    note: str = ""
    collection_word: str = "benchmark"
    """Label of the filter by :attr:`AnsweredQuestion.collection`."""
    wrong_word: str = "wrong"
    """Word for rows marked wrong in "2 of 3 wrong"."""
    some_wrong: str = "some answer wrong"
    """Label of the filter for questions that have a row marked wrong."""
    total: int = 0
    """Number of all questions if ``questions`` holds only the first ones; else 0."""

    def choices(self, field: str) -> tuple[str, ...]:
        """Return the distinct values of ``kind``, ``level`` or ``collection`` in order of first occurrence."""
        values = (str(getattr(question, field)) for question in self.questions)
        return tuple(dict.fromkeys(value for value in values if value))


@dataclass(frozen=True, slots=True)
class Prose:
    """Paragraph of text, with a command to type below it."""

    text: str
    command: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """Names with their values, for example a run's configuration."""

    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class AnswerCard:
    """Question with its answer in cited sentences and the numbered sources."""

    question: str
    sentences: tuple[tuple[str, tuple[int, ...], bool], ...]
    """Text of each sentence, the numbers of its sources, and whether it is in-house knowledge."""
    sources: tuple[tuple[int, str, str], ...]
    """Number, citation and passage text of each source."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """Example that a report shows in detail."""

    heading: str
    facts: tuple[tuple[str, str], ...]
    """Names with values, also shown in the list of links."""
    text: str = ""
    href: str = ""
    """Link to more details, relative to the report; empty for no link."""


@dataclass(frozen=True, slots=True)
class Cases:
    """List of links to cases, followed by the cases."""

    title: str
    cases: tuple[Case, ...]
    note: str = ""


Block = (
    Prose | Facts | AnswerCard | AnswerTables | Cases | Table | DotPlot | LinePlot | ScatterPlot | HeatMap | StackedBars
)


@dataclass(frozen=True, slots=True)
class Section:
    """Heading with the blocks below it."""

    heading: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """Report of several sections."""

    title: str
    lead: str
    """Summary in one or two sentences."""
    sections: tuple[Section, ...]
    facts: tuple[tuple[str, str], ...] = field(default=())
    """Versions, fingerprints and run ids, in small print at the end."""

    def has(self, kind: str) -> bool:
        """Return whether a section has a block of the class with this name."""
        return any(type(block).__name__ == kind for section in self.sections for block in section.blocks)

    def to_html(self) -> str:
        """Return the HTML page."""
        return render_page("report.html.j2", report=self, kind=lambda block: type(block).__name__)

    def write(self, path: Path) -> Path:
        """Write the HTML page to a file atomically and return the path."""
        write_file(path, self.to_html())
        return path


def render_page(template: str, **values: Any) -> str:
    """Render a template of this package, with every value escaped."""
    return str(_environment().get_template(template).render(version=__version__, **values))


def render_block(block: Block, section: str, number: int) -> Any:
    """Render one block for a page of another application, which must include :func:`block_style`.

    Ids in the HTML start with the section's id and the block's number in the section.

    Returns:
        Escaped ``markupsafe.Markup`` without any inline style or script.
    """
    return _environment().get_template("blocks.html.j2").module.show(block, type(block).__name__, section, number)


def render_answer(row: AnswerRow) -> Any:
    """Render the text and findings of one answer as escaped ``markupsafe.Markup``."""
    return _environment().get_template("answers.html.j2").module.said(row)


_NAME_END = re.compile(r"(?<=[/:])(?=\w)")


def breakable(text: str) -> "Markup":
    """Return a text as escaped HTML in which lines may break after the slashes and colons of long names."""
    from markupsafe import Markup, escape

    return Markup("<wbr>").join(map(escape, _NAME_END.split(text)))


@cache
def block_style() -> str:
    """Return the CSS of all blocks, for pages of another application.

    All rules are nested in ``.blocks``. Text and background use the application's colours ``--ink``, ``--soft``,
    ``--card``, ``--line`` and ``--mark``.
    """
    rules = "".join(_render(name) for name in ("blocks.css.j2", "answers.css.j2"))
    return f"{_render('colours.css.j2')}.blocks {{\n{rules}}}\n"


@cache
def block_script() -> str:
    """Return the JavaScript of the filter above answers; the page works without it."""
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
    return render_page("figure.svg.j2", figure=figure, kind=type(figure).__name__, shades=_shades(figure))


def _shades(figure: Figure) -> dict[str, str]:
    """Return the fill colour by name of category or cloud, since most SVG viewers do not support CSS ``color-mix``."""
    if isinstance(figure, ScatterPlot):
        return {cloud.name: _colour(cloud.position, _DEEP) for cloud in figure.clouds} if figure.small else {}
    categories = [category for _, category in figure.used_categories] if isinstance(figure, StackedBars) else []
    return {
        category.name: "url(#hatching)" if category.hatched else _colour(category.position, _PALE)
        for category in categories
    }


_OUTSIDE = "#c3ccd4"
_PALE = ((227, 139, 116), (240, 223, 166), (127, 186, 210))
"""RGB values of ``--wrong``, ``--middle`` and ``--right`` in the style sheet of reports."""
_DEEP = ((178, 24, 43), (220, 168, 0), (18, 63, 158))
"""RGB values of small points, ``--least``, ``--mid`` and ``--most`` in the style sheet: pale points are invisible, and
colour-blind readers must be able to tell five levels apart."""


def _colour(position: float | None, colours: tuple[tuple[int, int, int], ...]) -> str:
    """Interpolate between three RGB colours at 0, 0.5 and 1 and return ``#rrggbb``; grey if position is None."""
    if position is None:
        return _OUTSIDE
    first, middle, last = colours
    low, high, share = (first, middle, 2 * position) if position <= 0.5 else (middle, last, 2 * position - 1)
    mixed = (round(a + (b - a) * share) for a, b in zip(low, high, strict=True))
    return "#" + "".join(f"{value:02x}" for value in mixed)


def report_data(report: Report) -> dict[str, Any]:
    """Return a report as JSON-serialisable dictionaries, lists, strings and numbers."""
    data: dict[str, Any] = _report_adapter().dump_python(report, mode="json")
    return data


def report_from_data(data: Any) -> Report:
    """Return the report that :func:`report_data` serialised.

    Raises:
        InputError: The data do not describe a report.
    """
    try:
        return _report_adapter().validate_python(data)
    except ValidationError as error:
        fault = error.errors()[0]
        location = ".".join(map(str, fault["loc"]))
        raise InputError(f"The stored report is damaged ({location}: {fault['msg']}).") from None


@cache
def _report_adapter() -> TypeAdapter[Report]:
    return TypeAdapter(Report)
