"""The blocks of a report as pages show them: each with its number, by which it can be fetched as a file."""

from dataclasses import dataclass
from typing import Any

from climassay.reporting import Report, Table
from climassay.reporting.html import FIGURES, Block, Figure, render_block

TABLE_FORMS = ("csv", "md", "tex", "json")


@dataclass(frozen=True, slots=True)
class ShownBlock:
    """A block on its way to a page."""

    html: Any
    """Escaped markup."""
    kind: str
    """``table``, ``figure`` or empty for what is neither."""
    title: str
    downloads: tuple[tuple[str, str], ...]
    """Form and address."""
    rows: int
    """Of a table."""


@dataclass(frozen=True, slots=True)
class ShownSection:
    """A heading, its id on the page, and its blocks."""

    id: str
    heading: str
    blocks: tuple[ShownBlock, ...]


def shown_sections(report: Report, address: str, published: str = "") -> tuple[ShownSection, ...]:
    """Sections with rendered blocks; blocks are numbered over the whole report.

    Args:
        report: What is shown.
        address: Of the page; the files of its blocks lie below it.
        published: Passed on to these files.
    """
    query = f"?published={published}" if published else ""
    number, shown = 0, []
    for place, section in enumerate(report.sections, start=1):
        blocks = []
        for block in section.blocks:
            number += 1
            blocks.append(_shown(block, f"s{place}", number, address, query))
        shown.append(ShownSection(f"s{place}", section.heading, tuple(blocks)))
    return tuple(shown)


def shown_block(block: Block, address: str, number: int) -> ShownBlock:
    """One block by itself, outside of a report."""
    return _shown(block, "only", number, address, "")


def _shown(block: Block, section: str, number: int, address: str, query: str) -> ShownBlock:
    html = render_block(block, section, number)
    if isinstance(block, Table):
        files = tuple((form, f"{address}/tables/{number}.{form}{query}") for form in TABLE_FORMS)
        return ShownBlock(html, "table", block.title, files, len(block.rows))
    if isinstance(block, FIGURES):
        return ShownBlock(html, "figure", block.title, (("svg", f"{address}/figures/{number}.svg{query}"),), 0)
    return ShownBlock(html, "", "", (), 0)


def table_at(report: Report, number: int) -> Table | None:
    """The table of that number."""
    block = _block_at(report, number)
    return block if isinstance(block, Table) else None


def figure_at(report: Report, number: int) -> Figure | None:
    """The figure of that number."""
    block = _block_at(report, number)
    return block if isinstance(block, FIGURES) else None


def _block_at(report: Report, number: int) -> Block | None:
    blocks = [block for section in report.sections for block in section.blocks]
    return blocks[number - 1] if 1 <= number <= len(blocks) else None
