"""Self-contained HTML reports: one file, no request to anywhere, light and dark, made for reading and printing."""

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from climassay import __version__
from climassay.io import write_file
from climassay.reporting.answers import AnswerTables
from climassay.reporting.figures import DotPlot, HeatMap, LinePlot, ScatterPlot, StackedBars
from climassay.reporting.tables import Table


@dataclass(frozen=True, slots=True)
class Prose:
    """A paragraph of text."""

    text: str


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and values, for example a run's configuration."""

    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class AnswerCard:
    """A question, its answer in sentences with marks, and the numbered sources."""

    question: str
    sentences: tuple[tuple[str, tuple[int, ...], bool], ...]
    """Text, numbers of its sources, and whether it is in-house knowledge."""
    sources: tuple[tuple[int, str, str], ...]
    """Number, citation, passage text."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """Something that a reader may want to look at by itself."""

    heading: str
    facts: tuple[tuple[str, str], ...]
    """Names and values; the list above the cases shows them in small."""
    text: str = ""
    href: str = ""
    """Where more is to be read, relative to the report; empty for nowhere."""


@dataclass(frozen=True, slots=True)
class Cases:
    """A list of links to the cases, and the cases below it."""

    title: str
    cases: tuple[Case, ...]
    note: str = ""


Block = (
    Prose | Facts | AnswerCard | AnswerTables | Cases | Table | DotPlot | LinePlot | ScatterPlot | HeatMap | StackedBars
)


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands under it."""

    heading: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """A report of several sections."""

    title: str
    lead: str
    """One or two sentences that say what the reader sees."""
    sections: tuple[Section, ...]
    facts: tuple[tuple[str, str], ...] = field(default=())
    """Shown small at the end: versions, fingerprints, run ids."""

    def has(self, kind: str) -> bool:
        """Whether a block of that kind stands anywhere."""
        return any(_kind(block) == kind for section in self.sections for block in section.blocks)

    def to_html(self) -> str:
        """The page as text."""
        return render_page("report.html.j2", report=self, kind=_kind)

    def write(self, path: Path) -> Path:
        """Write the page, through a temporary file so that a reader never sees half of it."""
        return write_page(self.to_html(), path)


def write_page(page: str, path: Path) -> Path:
    """Write a page through a temporary file, so that a reader never sees half of it; folders are made.

    Raises:
        InputError: It cannot be written.
    """
    # A file's name that is no UTF-8 may stand in a page; it is written as the bytes that it is.
    write_file(path, page.encode("utf-8", "surrogateescape"))
    return path


def render_page(template: str, **values: Any) -> str:
    """A page from one of the templates of this package; every value is escaped."""
    return str(_environment().get_template(template).render(version=__version__, **values))


def render_block(block: Block, section: str, number: int) -> Any:
    """One block as safe HTML, for a page that is made elsewhere; it needs :func:`block_style`.

    Args:
        block: What is shown.
        section: Id of the section that it stands in.
        number: Its number there; both make the ids within it unique.

    Returns:
        Escaped ``markupsafe.Markup`` without any inline style or script.
    """
    return _environment().get_template("blocks.html.j2").module.show(block, _kind(block), section, number)


@cache
def block_style() -> str:
    """The style of all blocks, for pages of an application whose own style is another.

    The rules stand within ``.blocks``, so that they touch nothing else. Text and ground take the application's colours
    ``--ink``, ``--soft``, ``--card``, ``--line`` and ``--mark``.
    """
    rules = "".join(_render(name) for name in ("blocks.css.j2", "answers.css.j2"))
    return f"{_render('colours.css.j2')}.blocks {{\n{rules}}}\n"


@cache
def block_script() -> str:
    """The script of the filter above answers; the page works without it."""
    return _render("answers.js")


def _render(template: str) -> str:
    return str(_environment().get_template(template).render())


def _kind(block: Block) -> str:
    return type(block).__name__


@cache
def _environment() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("climassay.reporting", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
