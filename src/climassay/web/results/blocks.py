"""Tables and figures of a report as parts of a page, and the routes by which each of them is downloaded."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import count
from typing import Any, Literal, NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter, Depends
from starlette.responses import Response

from climassay.reporting import Report, Table, as_csv, as_latex, as_markdown
from climassay.reporting.html import FIGURES, Block, as_svg, block_script, block_style, render_block
from climassay.web.failures import NotFound
from climassay.web.pages import as_file

router = APIRouter(include_in_schema=False)
_CACHE_FOREVER = {"Cache-Control": "public, max-age=31536000, immutable"}


def table_as_json(table: Table) -> str:
    """Serialise a table's title, note, headings, rows and marks to JSON."""
    headings = [column.label for column in table.columns]
    data = {"title": table.title, "note": table.note, "columns": headings, "rows": table.rows}
    return json.dumps(data | {"marks": _list_marks(table)}, ensure_ascii=False, indent=1)


def _list_marks(table: Table) -> list[dict[str, Any]]:
    """Return the marked cells of a table in order, each with its row, column and marks."""
    marks = sorted(table.marks.items())
    return [{"row": row, "column": column, "marks": sorted(names)} for (row, column), names in marks]


TABLE_FORMATS: Mapping[str, Callable[[Table], str]] = {
    "csv": as_csv,
    "md": as_markdown,
    "tex": as_latex,
    "json": table_as_json,
}


class BlockView(NamedTuple):
    """Block of a report, rendered for a page."""

    html: Any
    """Rendered block as escaped ``markupsafe.Markup``."""
    kind: Literal["table", "figure", ""] = ""
    title: str = ""
    files: Sequence[tuple[str, str]] = ()
    """Suffix and address of each file in which the content of the block can be downloaded."""
    rows: int = 0


class SectionView(NamedTuple):
    """Section of a report, rendered for a page."""

    id: str
    heading: str
    blocks: Sequence[BlockView]


def section_views(report: Report, address: str, query: Mapping[str, str] | None = None) -> list[SectionView]:
    """Return a report's sections with rendered blocks, which are numbered across sections.

    Args:
        report: Report to render.
        address: Address of the page that shows the report. Files of its tables and figures are offered below it.
        query: Query parameters for the addresses of these files.
    """
    query_string = "?" + urlencode(query, safe=",") if query else ""
    numbers = count(1)

    def render(block: Block, section: str) -> BlockView:
        number = next(numbers)
        html = render_block(block, section, number)
        if isinstance(block, Table):
            files = [(form, f"{address}/tables/{number}.{form}{query_string}") for form in TABLE_FORMATS]
            return BlockView(html, "table", block.title, files, len(block.rows))
        if isinstance(block, FIGURES):
            return BlockView(html, "figure", block.title, [("svg", f"{address}/figures/{number}.svg{query_string}")])
        return BlockView(html)

    return [
        SectionView(f"s{index}", section.heading, [render(block, f"s{index}") for block in section.blocks])
        for index, section in enumerate(report.sections, start=1)
    ]


NamedReport = tuple[Report, str]
"""Report, and the prefix for the names of files made from it."""


def block_files(
    router: APIRouter, address: str, *, figures: bool = True
) -> Callable[[Callable[..., NamedReport]], Callable[..., NamedReport]]:
    """Return a decorator that adds routes for a report's tables and figures as files, below the URL of its page.

    The decorated function is a dependency that returns the report; its access checks therefore protect the files, too.

    Args:
        router: Router to which the routes are added.
        address: Address of the page that shows the report.
        figures: Whether the report can contain figures.
    """

    def register_routes(report_dependency: Callable[..., NamedReport]) -> Callable[..., NamedReport]:
        def send_table(number: int, suffix: str, named_report: NamedReport = Depends(report_dependency)) -> Response:
            report, name = named_report
            table = _find_block(report, number, Table, "table")
            if suffix not in TABLE_FORMATS:
                raise NotFound(f"Tables are available as {', '.join(TABLE_FORMATS)}, not as {suffix[:20]}.")
            return as_file(TABLE_FORMATS[suffix](table), f"{name}-{table.title}.{suffix}")

        def send_figure(number: int, named_report: NamedReport = Depends(report_dependency)) -> Response:
            report, name = named_report
            figure = _find_block(report, number, FIGURES, "figure")
            return as_file(as_svg(figure), f"{name}-{figure.title}.svg")

        router.get(f"{address}/tables/{{number}}.{{suffix}}")(send_table)
        if figures:
            router.get(f"{address}/figures/{{number}}.svg")(send_figure)
        return report_dependency

    return register_routes


def _find_block(report: Report, number: int, block_type: Any, type_name: str) -> Any:
    blocks = [block for section in report.sections for block in section.blocks]
    if not 1 <= number <= len(blocks) or not isinstance(blocks[number - 1], block_type):
        raise NotFound(f"There is no {type_name} with the number {number} here.")
    return blocks[number - 1]


@router.get("/results/blocks.css")
def show_style() -> Response:
    """Send the CSS of tables and figures."""
    return Response(block_style(), media_type="text/css", headers=_CACHE_FOREVER)


@router.get("/results/blocks.js")
def show_script() -> Response:
    """Send the JavaScript that filters answers."""
    return Response(block_script(), media_type="text/javascript", headers=_CACHE_FOREVER)


@cache
def block_assets() -> dict[str, Any]:
    """Return the URLs of the CSS and JavaScript of blocks. Each URL contains a hash of the file's content."""
    files = {"blocks_css": ("blocks.css", block_style()), "blocks_js": ("blocks.js", block_script())}
    return {
        name: f"/results/{file}?v={hashlib.sha256(text.encode()).hexdigest()[:12]}"
        for name, (file, text) in files.items()
    }
