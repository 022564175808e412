"""Self-contained HTML reports: one file, no request to anywhere, light and dark, made for reading and printing."""

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from climassay import __version__
from climassay.reporting.figures import DotPlot, LinePlot, ScatterPlot
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


Block = Prose | Facts | AnswerCard | Table | DotPlot | LinePlot | ScatterPlot


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

    def to_html(self) -> str:
        """The page as text."""
        return str(_template().render(report=self, version=__version__, kind=_kind))

    def write(self, path: Path) -> Path:
        """Write the page, through a temporary file so that a reader never sees half of it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(path.name + ".part")
        part.write_text(self.to_html(), encoding="utf-8")
        part.replace(path)
        return path


def _kind(block: Block) -> str:
    return type(block).__name__


@cache
def _template() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("climassay.reporting", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html.j2")
