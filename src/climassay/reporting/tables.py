"""A table that knows nothing of what it shows, and its forms for Markdown and CSV.

On the screen it is shown by :mod:`climassay.reporting.terminal`, as HTML by :mod:`climassay.reporting.html`, as LaTeX
by :mod:`climassay.reporting.latex`.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from climassay.io import safe_cell

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


def split_columns(table: Table, leading: int, at_most: int) -> list[Table]:
    """Tables of at most so many columns beside the leading ones, for screens that are too narrow for all of them.

    Args:
        table: Any table.
        leading: Columns that every part repeats.
        at_most: Further columns of a part, 1 or more.
    """
    places = range(leading, len(table.columns))
    if len(places) <= at_most:
        return [table]
    parts = [places[start : start + at_most] for start in range(0, len(places), at_most)]
    return [_with_columns(table, [*range(leading), *part]) for part in parts]


def _with_columns(table: Table, places: Sequence[int]) -> Table:
    return replace(
        table,
        columns=tuple(table.columns[place] for place in places),
        rows=tuple(tuple(row[place] for place in places) for row in table.rows),
        marks={(row, places.index(column)): marks for (row, column), marks in table.marks.items() if column in places},
    )


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

    Marks stand in columns ``best`` and ``top`` of their own, as the headings of the marked cells, so that cells stay
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
    rows = [
        [
            *row,
            *(
                "; ".join(labels[place] for place in range(len(row)) if table.is_marked(number, place, mark))
                for mark in marks
            ),
        ]
        for number, row in enumerate(table.rows)
    ]
    return labels, rows
