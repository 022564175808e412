"""The figures of a document come back in their order from every format that it is written in."""

import io
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from html import escape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from climassay.corpus import ReadOptions, ReadResult
from climassay.corpus.readers.file_types import READERS

RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
FIGURE = re.compile(r"[+⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+|\d+(?:[.,]\d+)*")


@dataclass(frozen=True)
class Piece:
    """A word or a figure with a raised or lowered part after it."""

    text: str
    raised: str = ""
    lowered: str = ""

    @property
    def figures(self) -> list[str]:
        """The figures in it, raised ones as superscripts."""
        return FIGURE.findall(self.text + self.lowered + self.raised.translate(RAISED))

    def html(self) -> str:
        lowered = f"<sub>{self.lowered}</sub>" if self.lowered else ""
        return escape(self.text) + lowered + (f"<sup>{self.raised}</sup>" if self.raised else "")

    def pandoc(self) -> str:
        return self.text + (f"~{self.lowered}~" if self.lowered else "") + (f"^{self.raised}^" if self.raised else "")


Line = list[Piece]


@dataclass(frozen=True)
class Table:
    names: list[str]
    rows: list[list[Line]]

    @property
    def figures(self) -> list[str]:
        return [figure for row in self.rows for cell in row for piece in cell for figure in piece.figures]


Part = Line | Table


def figures_of(document: list[Part]) -> list[str]:
    results: list[str] = []
    for part in document:
        results += part.figures if isinstance(part, Table) else [figure for piece in part for figure in piece.figures]
    return results


def as_html_body(document: list[Part]) -> str:
    parts = []
    for part in document:
        if isinstance(part, Table):
            head = "".join(f"<th>{name}</th>" for name in part.names)
            rows = (
                "".join(f"<td>{' '.join(piece.html() for piece in cell)}</td>" for cell in row) for row in part.rows
            )
            parts.append(f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>")
        else:
            parts.append(f"<p>{' '.join(piece.html() for piece in part)}</p>")
    return "".join(parts)


def as_html(document: list[Part]) -> str:
    return f"<html><head><title>Figures</title></head><body>{as_html_body(document)}</body></html>"


def as_markdown(document: list[Part], write: Callable[[Piece], str]) -> str:
    parts = []
    for part in document:
        if isinstance(part, Table):
            rows = [" | ".join(" ".join(map(write, cell)) for cell in row) for row in part.rows]
            lines = [" | ".join(part.names), " | ".join("---" for _ in part.names), *rows]
            parts.append("\n".join(f"| {line} |" for line in lines))
        else:
            parts.append(" ".join(map(write, part)))
    return "\n\n".join(parts)


def as_epub(document: list[Part]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as book:
        root = '<rootfile full-path="book.opf"/>'
        book.writestr("META-INF/container.xml", f"<container><rootfiles>{root}</rootfiles></container>")
        item = '<item id="a" href="a.xhtml" media-type="application/xhtml+xml"/>'
        spine = '<spine><itemref idref="a"/></spine>'
        book.writestr("book.opf", f"<package><manifest>{item}</manifest>{spine}</package>")
        page = as_html(document).replace("<title>Figures</title>", '<title/><script src="a.js"/>')
        book.writestr("a.xhtml", ('<?xml version="1.0" encoding="utf-16"?>' + page).encode("utf-16"))
    return buffer.getvalue()


WRITERS: dict[str, tuple[str, Callable[[list[Part]], bytes]]] = {
    "html": ("html", lambda document: as_html(document).encode()),
    "epub": ("epub", as_epub),
    "markdown with HTML": ("markdown", lambda document: as_markdown(document, Piece.html).encode()),
    "markdown of pandoc": ("markdown", lambda document: as_markdown(document, Piece.pandoc).encode()),
    "HTML in markdown": ("markdown", lambda document: as_html_body(document).encode()),
}
"""Kind of file and function that writes a document, by the name of the manner."""

words = st.sampled_from(["warming", "of", "the", "ocean", "while", "glaciers", "lost", "Grönland", "übrig"]).map(Piece)
integers = st.integers(0, 99_999).map(str)
decimals = st.decimals(0, 999, places=2, allow_nan=False).map(str)
ranges = st.tuples(st.integers(1000, 2100), st.integers(1000, 2100)).map("{0[0]}–{0[1]}".format)
numbers = st.one_of(integers, decimals, ranges, integers.map("{}%".format), decimals.map("−{}".format)).map(Piece)
exponents = st.integers(-30, 30).filter(bool).map(str)
powers = st.builds(Piece, st.sampled_from(["10", "× 10"]), exponents)
units = st.builds(Piece, st.sampled_from(["W m", "km", "mm yr", "kg", "s"]), st.sampled_from(["-1", "-2", "2", "3"]))
formulas = st.sampled_from(
    [Piece("CO", lowered="2"), Piece("N", lowered="2"), Piece("SO", "2-", "4"), Piece("PM", lowered="2.5")]
)
pieces = st.one_of(words, numbers, powers, units, formulas)
lines = st.lists(pieces, min_size=1, max_size=8)
cells = st.one_of(st.just([]), st.lists(st.one_of(numbers, powers, units), min_size=1, max_size=2))


@st.composite
def tables(draw: st.DrawFn) -> Table:
    names = draw(
        st.lists(st.sampled_from(["Year", "Gas", "Land", "Sea", "Trend"]), min_size=2, max_size=5, unique=True)
    )
    row = st.lists(cells, min_size=len(names), max_size=len(names))
    return Table(names, draw(st.lists(row, min_size=1, max_size=4)))


documents = st.lists(st.one_of(lines, tables()), min_size=1, max_size=5).filter(figures_of)


@pytest.mark.parametrize("manner", WRITERS)
@settings(max_examples=60, deadline=None)
@given(document=documents)
def test_figures_come_back_in_their_order(manner: str, document: list[Part]) -> None:
    kind, write = WRITERS[manner]
    result = READERS[kind].read(write(document), f"figures.{kind}", ReadOptions())
    (read,) = result.documents if isinstance(result, ReadResult) else (result,)
    assert [figure for block in read.blocks for figure in FIGURE.findall(block.text)] == figures_of(document)
    assert not read.omitted_parts
