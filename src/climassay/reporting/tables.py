"""A table that knows nothing of what it shows, and its forms for Markdown, CSV, LaTeX and the terminal."""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from climassay.io import safe_cell

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.text import Text


Align = Literal["left", "right"]
Mark = Literal["best", "top"]
"""``best``: best of its group of rows, shown bold. ``top``: best of its column, shown underlined or with a sign."""
TOP_SIGN = "\N{BLACK UP-POINTING TRIANGLE}"
"""Stands behind a ``top`` cell where nothing can be underlined."""


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
    marks: Mapping[tuple[int, int], frozenset[Mark]] = field(default_factory=dict)
    """Cells that are set off, by the numbers of row and column."""

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
        marks: Mapping[tuple[int, int], frozenset[Mark]] | None = None,
    ) -> "Table":
        """A table whose first ``left`` columns are words and whose other columns are numbers."""
        columns = tuple(Column(heading, "left" if index < left else "right") for index, heading in enumerate(headings))
        return cls(title, columns, tuple(tuple(row) for row in rows), note, frozenset(strong), grouped, marks or {})

    def is_marked(self, row: int, column: int, mark: Mark) -> bool:
        """Whether a cell has a mark."""
        return mark in self.marks.get((row, column), ())

    def explained(self, best: str, top: str) -> str:
        """The note, with a sentence on the marks that occur.

        Args:
            best: How the form at hand shows ``best``, for example ``Bold``.
            top: How it shows ``top``.
        """
        used = {mark for marks in self.marks.values() for mark in marks}
        words = [f"{best}: best of its group."] * ("best" in used) + [f"{top}: best of its column."] * ("top" in used)
        return " ".join([*words, self.note] if self.note else words)

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> Iterator["RenderableType"]:
        """What rich prints: the table in the form that fits the screen.

        Where its columns find no room, headings take several lines; where that is not enough, every row appears below
        the other with a line for each cell.
        """
        for folded in (False, True):
            widths = _widths(self, folded, options.max_width)
            if widths is not None:
                from rich import box
                from rich.table import Table as RichTable
                from rich.text import Text

                note = self.explained("Bold", "Underlined")
                shown = RichTable(
                    title=Text(self.title) if self.title else None,
                    caption=Text(note) if note else None,
                    title_justify="left",
                    caption_justify="left",
                    box=box.SIMPLE_HEAD,
                    pad_edge=False,
                    padding=(0, 1),
                    collapse_padding=True,
                )
                for column, width in zip(self.columns[self.grouped :], widths, strict=True):
                    shown.add_column(Text(column.heading), justify=column.align, width=width, overflow="fold")
                for group, number, cells in _rows(self):
                    if group:
                        shown.add_row(Text(group, style="bold", justify="left"))
                    if self.grouped:
                        cells[0].pad_left(2)
                    for cell, width in zip(cells, widths, strict=True):
                        if cell.cell_len > width:
                            cell.plain = _interval_below(cell.plain)
                    shown.add_row(*cells, style="bold" if number in self.strong else None)
                yield shown
                return
        yield from _row_by_row(self)


def counted(number: int, noun: str) -> str:
    """A number with its noun, for example ``1 claim`` or ``1,200 claims``; the noun is regular, in the singular."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def skipped_note(skipped: Sequence[str], what: str = "row") -> tuple[str, ...]:
    """The sentence that tells how many rows were left out, and the first reason; none where none was."""
    return (f"{counted(len(skipped), what)} left out, the first: {skipped[0].rstrip('.')}.",) if skipped else ()


def percent(share: float) -> str:
    """A share as per cent with one decimal, without the sign."""
    return f"{100 * share:.1f}"


def percent_interval(ends: tuple[float, float]) -> str:
    """An interval of shares as per cent, for example ``52.0-69.4``."""
    return "-".join(map(percent, ends))


def shown_p_value(value: float) -> str:
    """A p-value with three decimals."""
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def split_columns(table: Table, leading: int, at_most: int) -> list[Table]:
    """Tables of at most so many columns beside the leading ones, for screens that are too narrow for all of them.

    Args:
        table: Any table.
        leading: Columns that every part repeats.
        at_most: Further columns of a part, 1 or more.
    """
    further = range(leading, len(table.columns))
    if len(further) <= at_most:
        return [table]
    parts = []
    for start in range(0, len(further), at_most):
        places = [*range(leading), *further[start : start + at_most]]
        parts.append(
            replace(
                table,
                columns=tuple(table.columns[place] for place in places),
                rows=tuple(tuple(row[place] for place in places) for row in table.rows),
                marks={(row, places.index(at)): marks for (row, at), marks in table.marks.items() if at in places},
            )
        )
    return parts


def as_markdown(table: Table) -> str:
    """GitHub-flavoured Markdown, with title and note."""

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    rule = ["---:" if column.align == "right" else "---" for column in table.columns]
    lines = [f"### {table.title}", "", line([column.label for column in table.columns]), line(rule)]
    for number, row in enumerate(table.rows):
        cells = [f"**{cell}**" if table.is_marked(number, place, "best") else cell for place, cell in enumerate(row)]
        lines.append(
            line([cell + TOP_SIGN * table.is_marked(number, place, "top") for place, cell in enumerate(cells)])
        )
    note = table.explained("Bold", TOP_SIGN)
    if note:
        lines += ["", note]
    return "\n".join(lines) + "\n"


def as_csv(table: Table) -> str:
    """Comma-separated values with a heading row, no title.

    Marks appear in columns ``best`` and ``top`` of their own, as the headings of the marked cells, so that cells stay
    what they are, but for those that a spreadsheet would run (:func:`climassay.io.safe_cell`).
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    headings, rows = headed_cells(table)
    writer.writerows([safe_cell(cell) for cell in row] for row in (headings, *rows))
    return out.getvalue()


def headed_cells(table: Table) -> tuple[list[str], list[list[str]]]:
    """Headings, no two of them the same, and rows as a spreadsheet has them, with marks in columns of their own."""
    marks: list[Mark] = ["best", "top"] if table.marks else []
    labels: list[str] = []
    for label in (*(column.label for column in table.columns), *marks):
        name, number = label, 1
        while name in labels:
            number += 1
            name = f"{label} ({number})"
        labels.append(name)
    rows = [list(row) for row in table.rows]
    for number, row in enumerate(rows):
        places = range(len(row))
        row += ["; ".join(labels[n] for n in places if table.is_marked(number, n, mark)) for mark in marks]
    return labels, rows


_SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "\N{PLUS-MINUS SIGN}": r"$\pm$",
    "\N{MINUS SIGN}": r"$-$",
    "\N{GREATER-THAN OR EQUAL TO}": r"$\geq$",
    "\N{LESS-THAN OR EQUAL TO}": r"$\leq$",
}


def escape_latex(text: str) -> str:
    """Text with every character that LaTeX would take for a command or that its fonts may lack written out."""
    return "".join(_SPECIAL.get(character, character) for character in " ".join(text.split()))


def as_latex(table: Table) -> str:
    r"""A ``table`` environment with ``booktabs`` rules; the preamble needs ``\usepackage{booktabs}``.

    The best cell of a group is bold, the best of a column underlined. A group's name appears in its first row only, and
    a thin rule parts groups.
    """

    def cell(row: int, column: int) -> str:
        text = escape_latex(table.rows[row][column])
        if table.is_marked(row, column, "top"):
            text = rf"\underline{{{text}}}"
        return rf"\textbf{{{text}}}" if table.is_marked(row, column, "best") or row in table.strong else text

    columns = "".join("r" if column.align == "right" else "l" for column in table.columns)
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape_latex(table.title)}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        " & ".join(escape_latex(column.label) for column in table.columns) + r" \\",
        r"\midrule",
    ]
    before: tuple[str, ...] | None = None
    for number, row in enumerate(table.rows):
        group = row[: table.grouped]
        repeated = table.grouped > 0 and group == before
        if table.grouped and before is not None and not repeated:
            lines.append(r"\midrule")
        cells = ["" if repeated and place < table.grouped else cell(number, place) for place in range(len(row))]
        lines.append(" & ".join(cells) + r" \\")
        before = group
    lines += [r"\bottomrule", r"\end{tabular}"]
    note = table.explained("Bold", "Underlined")
    if note:
        lines += [r"\par\smallskip", rf"{{\footnotesize {escape_latex(note)}}}"]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


_WORDS = 16
"""Characters that a column of words has at least, where it needs so many."""
_STYLES: dict[Mark, str] = {"best": "bold", "top": "underline"}


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
    cells = [
        line for row in table.rows for line in (_interval_below(row[place]) if wrapped else row[place]).split("\n")
    ]
    widest = _widest(cells, wrapped and column.align == "left") + (2 if first else 0)
    groups = [", ".join(row[: table.grouped]) for row in table.rows] if first else []
    heading = column.label.split() if folded else column.heading.split("\n")
    return max([widest, _widest(groups, wrapped), *map(cell_len, heading)])


def _interval_below(cell: str) -> str:
    """A cell with the interval behind its value on a line of its own."""
    return re.sub(r"(?<=\d) (?=\[[^][]*\]$)", "\n", cell)


def _widest(texts: list[str], wrapped: bool) -> int:
    from rich.cells import cell_len

    whole = max(map(cell_len, texts), default=0)
    if not wrapped:
        return whole
    return min(whole, max([_WORDS, *(cell_len(word) for text in texts for word in text.split())]))


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
            Text.assemble(
                (cell, " ".join(style for mark, style in _STYLES.items() if table.is_marked(number, place, mark)))
            )
            for place, cell in enumerate(row[table.grouped :], start=table.grouped)
        ]
        yield ("" if group == last else ", ".join(group)), number, cells
        last = group
