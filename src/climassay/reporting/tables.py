"""A table that knows nothing of what it shows, and its four forms."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from rich.table import Table as RichTable

Align = Literal["left", "right"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its heading and how its cells stand."""

    heading: str
    """May have a line break, which only the terminal shows."""
    align: Align = "left"

    @property
    def label(self) -> str:
        """The heading on one line."""
        return self.heading.replace("\n", " ")


@dataclass(frozen=True, slots=True)
class Table:
    """Cells as text, ready to be read."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    """What a reader must know to read the table, in one or two sentences."""
    strong: frozenset[int] = field(default_factory=frozenset)
    """Numbers of rows to be set off, for example totals."""
    grouped: int = 0
    """So many leading columns name a group; the terminal shows them once, above the group's rows."""

    @classmethod
    def of(
        cls,
        title: str,
        headings: Sequence[str],
        rows: Sequence[Sequence[str]],
        *,
        note: str = "",
        left: int = 1,
        strong: Sequence[int] = (),
        grouped: int = 0,
    ) -> "Table":
        """A table whose first ``left`` columns are words and whose other columns are numbers."""
        columns = tuple(Column(heading, "left" if index < left else "right") for index, heading in enumerate(headings))
        return cls(title, columns, tuple(tuple(row) for row in rows), note, frozenset(strong), grouped)


def as_markdown(table: Table) -> str:
    """GitHub-flavoured Markdown, with title and note."""

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    rule = ["---:" if column.align == "right" else "---" for column in table.columns]
    lines = [f"### {table.title}", "", line([column.label for column in table.columns]), line(rule)]
    lines += [line(row) for row in table.rows]
    if table.note:
        lines += ["", table.note]
    return "\n".join(lines) + "\n"


def as_csv(table: Table) -> str:
    """Comma-separated values with a heading row, no title."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([column.label for column in table.columns])
    writer.writerows(table.rows)
    return out.getvalue()


def as_rich(table: Table) -> "RichTable":
    """A table for the terminal."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    shown = RichTable(
        title=Text(table.title),
        caption=Text(table.note) if table.note else None,
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1),
        collapse_padding=True,
    )
    for place, column in enumerate(table.columns[table.grouped :]):
        # Numbers stay whole; words, and the names of groups above the first column, may take several lines.
        whole = column.align == "right" and not (table.grouped and place == 0)
        shown.add_column(Text(column.heading), justify=column.align, no_wrap=whole, overflow="fold")
    group: tuple[str, ...] = ()
    for number, row in enumerate(table.rows):
        if row[: table.grouped] != group:
            group = row[: table.grouped]
            shown.add_row(Text(", ".join(group), style="bold", justify="left"))
        cells = [Text(cell) for cell in row[table.grouped :]]
        if table.grouped:
            cells[0].pad_left(2)
        shown.add_row(*cells, style="bold" if number in table.strong else None)
    return shown
