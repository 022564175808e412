"""What the pages of results are made of: blocks of reports, each to be had as a file, and long lists page by page."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Generic, TypeVar
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from climassay.reporting import Report, Table, as_csv, as_latex, as_markdown
from climassay.reporting.html import FIGURES, as_svg, block_script, block_style, render_block
from climassay.web.failures import Missing
from climassay.web.pages import as_file

router = APIRouter(include_in_schema=False)
T = TypeVar("T")
PageNumber = Annotated[int, Query(alias="page", ge=1, le=10**6)]
Search = Annotated[str, Query(max_length=200)]
_KEEP = {"Cache-Control": "public, max-age=31536000, immutable"}


def table_json(table: Table) -> str:
    """A table as JSON: its words, and a list of rows by heading with the cells as they are shown."""
    headings = [column.label for column in table.columns]
    data = {"title": table.title, "note": table.note, "columns": headings, "rows": table.rows}
    return json.dumps(data | {"marks": marks_of(table)}, ensure_ascii=False, indent=1)


def marks_of(table: Table) -> list[dict[str, Any]]:
    """The cells of a table that are set off, in their order."""
    marks = sorted(table.marks.items())
    return [{"row": row, "column": column, "marks": sorted(found)} for (row, column), found in marks]


TABLE_FORMS: Mapping[str, Callable[[Table], str]] = {
    "csv": as_csv,
    "md": as_markdown,
    "tex": as_latex,
    "json": table_json,
}


@dataclass(frozen=True, slots=True)
class BlockView:
    """A block of a report on its way to a page."""

    html: Any
    """Escaped markup."""
    kind: str
    """``table``, ``figure`` or empty for what is neither."""
    title: str
    downloads: tuple[tuple[str, str], ...]
    """Form and address."""
    rows: int
    """Rows of a table."""


@dataclass(frozen=True, slots=True)
class SectionView:
    """A heading, its id on the page, and its blocks."""

    id: str
    heading: str
    blocks: tuple[BlockView, ...]


def section_views(report: Report, address: str, query: Mapping[str, str] | None = None) -> tuple[SectionView, ...]:
    """Sections with rendered blocks; blocks are numbered over the whole report.

    Args:
        report: What is shown.
        address: Address of the page; the files of its blocks lie below it.
        query: Passed on to these files.
    """
    end = "?" + urlencode(query, safe=",") if query else ""
    number, views = 0, []
    for place, section in enumerate(report.sections, start=1):
        blocks = []
        for block in section.blocks:
            number += 1
            html = render_block(block, f"s{place}", number)
            if isinstance(block, Table):
                files = tuple((form, f"{address}/tables/{number}.{form}{end}") for form in TABLE_FORMS)
                blocks.append(BlockView(html, "table", block.title, files, len(block.rows)))
            elif isinstance(block, FIGURES):
                file = ("svg", f"{address}/figures/{number}.svg{end}")
                blocks.append(BlockView(html, "figure", block.title, (file,), 0))
            else:
                blocks.append(BlockView(html, "", "", (), 0))
        views.append(SectionView(f"s{place}", section.heading, tuple(blocks)))
    return tuple(views)


NamedReport = tuple[Report, str]
"""A report, and what the names of its files begin with."""


def block_files(
    router: APIRouter, address: str, *, figures: bool = True
) -> Callable[[Callable[..., NamedReport]], Callable[..., NamedReport]]:
    """Send each table and figure of a report as a file of its own, below the address of its page.

    Args:
        router: Gets the routes; whoever may not have the report gets none of its blocks.
        address: Address of the page.
        figures: Whether it can have figures.
    """

    def add(report: Callable[..., NamedReport]) -> Callable[..., NamedReport]:
        def send_table(number: int, form: str, named: NamedReport = Depends(report)) -> Response:
            table = _block_at(named[0], number, Table, "table")
            if form not in TABLE_FORMS:
                raise Missing(f"Tables come as {', '.join(TABLE_FORMS)}, not as {form[:20]}.")
            return as_file(TABLE_FORMS[form](table), f"{named[1]}-{table.title}.{form}")

        def send_figure(number: int, named: NamedReport = Depends(report)) -> Response:
            figure = _block_at(named[0], number, FIGURES, "figure")
            return as_file(as_svg(figure), f"{named[1]}-{figure.title}.svg")

        router.get(f"{address}/tables/{{number}}.{{form}}")(send_table)
        if figures:
            router.get(f"{address}/figures/{{number}}.svg")(send_figure)
        return report

    return add


def _block_at(report: Report, number: int, kind: Any, name: str) -> Any:
    blocks = [block for section in report.sections for block in section.blocks]
    if not 1 <= number <= len(blocks) or not isinstance(blocks[number - 1], kind):
        raise Missing(f"There is no {name} with the number {number} here.")
    return blocks[number - 1]


@router.get("/results/blocks.css")
def show_style() -> Response:
    """The style of tables and figures, which is that of the self-contained reports."""
    return Response(block_style(), media_type="text/css", headers=_KEEP)


@router.get("/results/blocks.js")
def show_script() -> Response:
    """The filter of answers."""
    return Response(block_script(), media_type="text/javascript", headers=_KEEP)


@cache
def block_assets() -> dict[str, Any]:
    """Addresses of style and script, which change with their content."""
    files = {"blocks_css": ("blocks.css", block_style()), "blocks_js": ("blocks.js", block_script())}
    return {
        name: f"/results/{file}?v={hashlib.sha256(text.encode()).hexdigest()[:12]}"
        for name, (file, text) in files.items()
    }


@dataclass(frozen=True, slots=True)
class Part(Generic[T]):
    """One page of a list."""

    entries: Sequence[T]
    number: int
    """From 1."""
    pages: int
    total: int
    """Entries of the whole list."""
    first: int
    """Number of the first entry shown; 0 where there is none."""
    address: str
    """Address of the list, with its filters, ready for ``&page=2``."""

    @property
    def last(self) -> int:
        """Number of the last entry shown."""
        return self.first + len(self.entries) - 1 if self.entries else 0

    def at(self, number: int) -> str:
        """Address of another page."""
        return f"{self.address}page={number}"


def within(wanted: int, total: int, size: int) -> int:
    """A page that exists: the one wanted, or the last."""
    return max(1, min(wanted, -(-total // size)))


def part_of(
    entries: Sequence[T], number: int, total: int, size: int, path: str, filters: Mapping[str, object]
) -> Part[T]:
    """A page of a list, whose entries are known; filters that are empty are left out of addresses."""
    query = urlencode([(name, str(value)) for name, value in filters.items() if value not in ("", False, None)])
    address = f"{path}?{query}&" if query else f"{path}?"
    first = (number - 1) * size + 1 if entries else 0
    return Part(entries, number, max(1, -(-total // size)), total, first, address)


def cut(entries: Sequence[T], wanted: int, size: int, path: str, filters: Mapping[str, object]) -> Part[T]:
    """A page of a list that is all there."""
    number = within(wanted, len(entries), size)
    return part_of(entries[(number - 1) * size : number * size], number, len(entries), size, path, filters)
