"""Tables in a terminal: whole where they fit, else row by row; no cell is ever cut."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from climassay.reporting.tables import Mark, Table

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.table import Table as RichTable
    from rich.text import Text

_WORDS = 16
"""Characters that a column of words has at least, where it needs so many."""
_STYLES: dict[Mark, str] = {"best": "bold", "top": "underline"}


def as_rich(table: Table) -> "FittedTable":
    """A table for the terminal, to be printed by rich."""
    return FittedTable(table)


@dataclass(frozen=True, slots=True)
class FittedTable:
    """A table in the form that fits the screen.

    Where its columns find no room, headings take several lines; where that is not enough, every row stands below the
    other with a line for each cell.
    """

    table: Table

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> Iterator["RenderableType"]:
        """What rich prints."""
        for folded in (False, True):
            widths = _widths(self.table, folded, options.max_width)
            if widths is not None:
                yield _grid(self.table, widths)
                return
        yield from _row_by_row(self.table)


def _widths(table: Table, folded: bool, room: int) -> list[int] | None:
    """Characters of each shown column; None where they need more than there are.

    Columns get what they need, and those that could use more share what is left.
    """
    shown = range(table.grouped, len(table.columns))
    # An edge on either side, and two between columns.
    left = room - 2 * len(shown)
    whole = [_column_width(table, place, folded, wrapped=False) for place in shown]
    if sum(whole) <= left:
        return whole
    widths = [_column_width(table, place, folded, wrapped=True) for place in shown]
    left -= sum(widths)
    if left < 0:
        return None
    wanting = sorted(range(len(widths)), key=lambda place: whole[place] - widths[place])
    for number, place in enumerate(wanting):
        more = min(whole[place] - widths[place], left // (len(wanting) - number))
        widths[place] += more
        left -= more
    return widths


def _column_width(table: Table, place: int, folded: bool, wrapped: bool) -> int:
    """Characters that a column needs: of its cells, of its heading, and in the first one of the names of groups."""
    from rich.cells import cell_len

    column = table.columns[place]
    first = bool(table.grouped) and place == table.grouped
    cells = [line for row in table.rows for line in row[place].split("\n")]
    widest = _widest(cells, wrapped and column.align == "left") + (2 if first else 0)
    groups = [", ".join(row[: table.grouped]) for row in table.rows] if first else []
    heading = column.label.split() if folded else column.heading.split("\n")
    return max([widest, _widest(groups, wrapped), *map(cell_len, heading)])


def _widest(texts: list[str], wrapped: bool) -> int:
    from rich.cells import cell_len

    whole = max(map(cell_len, texts), default=0)
    if not wrapped:
        return whole
    return min(whole, max([_WORDS, *(cell_len(word) for text in texts for word in text.split())]))


def _grid(table: Table, widths: list[int]) -> "RichTable":
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    note = table.explained("Bold", "Underlined")
    shown = RichTable(
        title=Text(table.title) if table.title else None,
        caption=Text(note) if note else None,
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1),
        collapse_padding=True,
    )
    for column, width in zip(table.columns[table.grouped :], widths, strict=True):
        shown.add_column(Text(column.heading), justify=column.align, width=width, overflow="fold")
    for group, number, cells in _rows(table):
        if group:
            shown.add_row(Text(group, style="bold", justify="left"))
        if table.grouped:
            cells[0].pad_left(2)
        shown.add_row(*cells, style="bold" if number in table.strong else None)
    return shown


def _row_by_row(table: Table) -> Iterator["Text"]:
    """Each row as lines of heading and cell, below its group; empty cells are left out."""
    from rich.text import Text

    if table.title:
        yield Text(table.title, style="table.title")
    for group, number, cells in _rows(table):
        if group:
            yield Text(group, style="bold")
        yield Text()
        for column, cell in zip(table.columns[table.grouped :], cells, strict=True):
            if cell.plain.strip():
                line = Text.assemble((f"{column.label}: " if column.label else "", "dim"), cell)
                line.stylize("bold" if number in table.strong else "")
                yield line
    if note := table.explained("Bold", "Underlined"):
        yield Text()
        yield Text(note, style="table.caption")
    yield Text()


def _rows(table: Table) -> Iterator[tuple[str, int, list["Text"]]]:
    """For each row its group where that is another one than before, its number, and its cells with their marks."""
    from rich.text import Text

    last: tuple[str, ...] = ()
    for number, row in enumerate(table.rows):
        group = row[: table.grouped]
        cells = [
            # The style of a part, not of the whole, so that the room beside a number is not underlined.
            Text.assemble((cell, _style(table, number, place)))
            for place, cell in enumerate(row[table.grouped :], start=table.grouped)
        ]
        yield ("" if group == last else ", ".join(group)), number, cells
        last = group


def _style(table: Table, row: int, column: int) -> str:
    return " ".join(style for mark, style in _STYLES.items() if table.is_marked(row, column, mark))
