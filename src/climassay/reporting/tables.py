"""Tables of text cells, and their formats: Markdown, CSV, LaTeX and the terminal."""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, PlainSerializer

from climassay.io import safe_cell

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.text import Text


Align = Literal["left", "right"]
Mark = Literal["best", "top"]
"""Mark of a cell. ``best``: best in its group of rows (bold). ``top``: best in its column (underlined or with a
sign)."""
TOP_SIGN = "\N{BLACK UP-POINTING TRIANGLE}"
"""Sign that follows ``top`` cells in formats that cannot underline."""


def _validate_marks(marks: Any) -> Any:
    return {(row, column): names for row, column, names in marks} if isinstance(marks, list) else marks


Marks = Annotated[
    Mapping[tuple[int, int], frozenset[Mark]],
    BeforeValidator(_validate_marks),
    PlainSerializer(lambda marks: [[row, column, sorted(names)] for (row, column), names in sorted(marks.items())]),
]
"""Marks by (row index, column index); serialised to JSON as a list of [row, column, marks]."""


@dataclass(frozen=True, slots=True)
class Column:
    """Column of a table, with its heading and alignment."""

    heading: str
    """Heading; its line breaks are only shown in terminals."""
    align: Align = "left"

    @property
    def label(self) -> str:
        """Heading on one line."""
        return self.heading.replace("\n", " ")


@dataclass(frozen=True, slots=True)
class Table:
    """Table of text cells that can be shown in terminals or converted to Markdown, CSV, LaTeX and HTML."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    """Explanation of the table in one or two sentences."""
    strong: frozenset[int] = field(default_factory=frozenset)
    """Indices of rows that are shown in bold, for example totals."""
    grouped: int = 0
    """Number of leading columns that name a row's group. Terminals show them once, above the rows of the group."""
    marks: Marks = field(default_factory=dict)
    """Marks of highlighted cells."""

    @classmethod
    def of(
        cls,
        title: str,
        headings: Sequence[str],
        rows: Sequence[Sequence[str]],
        *,
        note: str = "",
        left_columns: int = 1,
        strong: Sequence[int] = (),
        grouped: int = 0,
        marks: Mapping[tuple[int, int], frozenset[Mark]] | None = None,
    ) -> "Table":
        """Return a table from headings and rows.

        The first ``left_columns`` columns are left-aligned, the others right-aligned.
        """
        columns = tuple(
            Column(heading, "left" if index < left_columns else "right") for index, heading in enumerate(headings)
        )
        return cls(title, columns, tuple(tuple(row) for row in rows), note, frozenset(strong), grouped, marks or {})

    def is_marked(self, row: int, column: int, mark: Mark) -> bool:
        """Return whether a cell has a mark."""
        return mark in self.marks.get((row, column), ())

    def explain_marks(self, top_format: str = "Underlined") -> str:
        """Return the note, preceded by an explanation of the marks that the table contains.

        ``top_format`` is how cells with the mark ``top`` are shown; cells with the mark ``best`` are bold.
        """
        marks = frozenset().union(*self.marks.values())
        sentences = ["Bold: best of its group."] if "best" in marks else []
        sentences += [f"{top_format}: best of its column."] if "top" in marks else []
        return " ".join([*sentences, self.note] if self.note else sentences)

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> Iterator["RenderableType"]:
        """Yield the table in a layout that fits the console.

        If the columns are too wide, headings are wrapped. If they are still too wide, each row becomes a block with a
        line per cell.
        """
        for wrap_headings in (False, True):
            widths = _column_widths(self, wrap_headings, options.max_width)
            if widths is not None:
                from rich import box
                from rich.table import Table as RichTable
                from rich.text import Text

                note = self.explain_marks()
                rich_table = RichTable(
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
                    rich_table.add_column(Text(column.heading), justify=column.align, width=width, overflow="fold")
                for group, row_index, cells in _styled_rows(self):
                    if group:
                        rich_table.add_row(Text(group, style="bold", justify="left"))
                    if self.grouped:
                        cells[0].pad_left(2)
                    for cell, width in zip(cells, widths, strict=True):
                        if cell.cell_len > width:
                            cell.plain = _wrap_interval(cell.plain)
                    rich_table.add_row(*cells, style="bold" if row_index in self.strong else None)
                yield rich_table
                return
        yield from _row_blocks(self)


def counted(number: int, noun: str) -> str:
    """Return a number followed by a noun with regular plural, for example ``1 claim`` or ``1,200 claims``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def skipped_note(skipped: Sequence[str], noun: str = "row") -> tuple[str, ...]:
    """Return a sentence with the number of skipped rows and the first reason, in a tuple; () if none was skipped."""
    if not skipped:
        return ()
    numbering = " Rows are counted without the line of column names." if skipped[0].startswith("row ") else ""
    return (f"{counted(len(skipped), noun)} left out, the first: {skipped[0].rstrip('.')}.{numbering}",)


def percent(share: float) -> str:
    """Format a proportion as a percentage with one decimal, without the percent sign."""
    return f"{100 * share:.1f}"


def percent_interval(interval: tuple[float, float]) -> str:
    """Format an interval of a proportion as percentages, for example ``52.0-69.4``."""
    return "-".join(map(percent, interval))


def format_p_value(value: float) -> str:
    """Format a p-value with three decimals, or as ``<0.001``."""
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def split_columns(table: Table, n_leading: int, max_columns: int) -> list[Table]:
    """Split a wide table into several tables with some of its columns each, for narrow screens.

    Args:
        table: Table to split.
        n_leading: Number of leading columns that are repeated in every part.
        max_columns: Maximum number of other columns in a part, at least 1.
    """
    further_indices = range(n_leading, len(table.columns))
    if len(further_indices) <= max_columns:
        return [table]
    parts = []
    for start in range(0, len(further_indices), max_columns):
        indices = [*range(n_leading), *further_indices[start : start + max_columns]]
        parts.append(
            replace(
                table,
                columns=tuple(table.columns[index] for index in indices),
                rows=tuple(tuple(row[index] for index in indices) for row in table.rows),
                marks={
                    (row, indices.index(column)): marks
                    for (row, column), marks in table.marks.items()
                    if column in indices
                },
            )
        )
    return parts


def as_markdown(table: Table) -> str:
    """Return a table as GitHub-flavoured Markdown, with title and note."""

    def format_row(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    alignments = ["---:" if column.align == "right" else "---" for column in table.columns]
    lines = [f"### {table.title}", "", format_row([column.label for column in table.columns]), format_row(alignments)]
    for row_index, row in enumerate(table.rows):
        cells = [
            (f"**{cell}**" if table.is_marked(row_index, column_index, "best") else cell)
            + TOP_SIGN * table.is_marked(row_index, column_index, "top")
            for column_index, cell in enumerate(row)
        ]
        lines.append(format_row(cells))
    note = table.explain_marks(TOP_SIGN)
    if note:
        lines += ["", note]
    return "\n".join(lines) + "\n"


def as_csv(table: Table) -> str:
    """Return a table as CSV with a row of headings, without title and note.

    Values, intervals and counts get numeric columns of their own, see :func:`headed_cells`. Cells that a spreadsheet
    would run as formulas are escaped.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    headings, rows = headed_cells(table)
    writer.writerows([safe_cell(cell) for cell in row] for row in (headings, *rows))
    return buffer.getvalue()


_NUMBER = r"[+\-\N{MINUS SIGN}]?\d[\d,]*(?:\.\d+)?"
_ESTIMATE = re.compile(
    rf"({_NUMBER})%?(?: \[({_NUMBER}), ({_NUMBER})\]| \(({_NUMBER}) to ({_NUMBER})\))?(?:, n = (\d[\d,]*))?"
)
_INTERVAL = re.compile(rf"({_NUMBER}) to ({_NUMBER})")
_COUNT_HEADING = re.compile(r"(.*?),?\s*n ?= ?(\d+)")
"""Regular expression for a heading that contains the number of items of its column, as in ``accuracy, n=120``."""
_EMPTY_CELLS = ("", "-", "\N{EN DASH}")


def headed_cells(table: Table) -> tuple[list[str], list[list[str]]]:
    """Return the headings and rows of a table in a form that other programs can read.

    Headings are unique. A column ``X`` of values with intervals becomes the columns ``X``, ``X low`` and ``X high``,
    and also ``X n`` if its heading or cells contain numbers of items. A column of intervals becomes ``X low`` and
    ``X high``. If the table has marks, the last columns ``best`` and ``top`` contain the headings of marked cells.
    """
    marks: list[Mark] = ["best", "top"] if table.marks else []
    parts = [
        _numeric_columns(column.label, [row[index] for row in table.rows]) for index, column in enumerate(table.columns)
    ]
    names = [next(iter(part)) for part in parts]
    labels = _number_duplicates([*(label for part in parts for label in part), *marks])
    rows = []
    for row_index in range(len(table.rows)):
        cells = [column[row_index] for part in parts for column in part.values()]
        marked_names = [
            "; ".join(name for index, name in enumerate(names) if table.is_marked(row_index, index, mark))
            for mark in marks
        ]
        rows.append([*cells, *marked_names])
    return labels, rows


def _numeric_columns(label: str, cells: Sequence[str]) -> dict[str, list[str]]:
    """Return cells by heading: a column of estimates is split into columns of numbers, any other is unchanged."""
    filled_cells = [cell for cell in cells if cell not in _EMPTY_CELLS]
    if "interval" in label and filled_cells and all(map(_INTERVAL.fullmatch, filled_cells)):
        intervals = [_INTERVAL.fullmatch(cell) for cell in cells]
        return {
            f"{label} low": [_matched_number(match, 1) for match in intervals],
            f"{label} high": [_matched_number(match, 2) for match in intervals],
        }
    matches = [_ESTIMATE.fullmatch(cell) for cell in cells]
    has_interval = any(match and (match[2] or match[4]) for match in matches)
    if not has_interval or any(
        match is None and cell not in _EMPTY_CELLS for match, cell in zip(matches, cells, strict=True)
    ):
        return {label: list(cells)}
    heading = _COUNT_HEADING.fullmatch(label)
    name, count = (heading[1], heading[2]) if heading else (label, "")
    lows = [_matched_number(match, 2, 4) for match in matches]
    # A value without an interval is not ours, or not measured on the items of the heading.
    counts = [_matched_number(match, 6) or (count if low else "") for match, low in zip(matches, lows, strict=True)]
    columns = {
        name: [_matched_number(match, 1) or cell for match, cell in zip(matches, cells, strict=True)],
        f"{name} low": lows,
        f"{name} high": [_matched_number(match, 3, 5) for match in matches],
    }
    return columns | ({f"{name} n": counts} if any(counts) else {})


def _matched_number(match: re.Match[str] | None, *groups: int) -> str:
    """Return the text of the first group that matched, as a number without separators; empty if none matched."""
    text = next(filter(None, map(match.__getitem__, groups)), "") if match else ""
    return text.replace("\N{MINUS SIGN}", "-").replace(",", "")


def _number_duplicates(names: Sequence[str]) -> list[str]:
    """Make names unique: append a number in parentheses to repeated names."""
    labels: list[str] = []
    for label in names:
        name, suffix = label, 1
        while name in labels:
            suffix += 1
            name = f"{label} ({suffix})"
        labels.append(name)
    return labels


_LATEX_ESCAPES = {
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
    """Escape LaTeX's special characters and characters that its fonts may lack, and collapse white space."""
    return "".join(_LATEX_ESCAPES.get(character, character) for character in " ".join(text.split()))


def as_latex(table: Table) -> str:
    r"""Return a table as a LaTeX ``table`` environment; the document needs ``\usepackage{booktabs}``.

    ``best`` cells are bold, and ``top`` cells are underlined. Groups are separated by rules; a group's name is only in
    its first row.
    """

    def format_cell(row: int, column: int) -> str:
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
    previous_group: tuple[str, ...] | None = None
    for row_index, row in enumerate(table.rows):
        group = row[: table.grouped]
        is_repeated = table.grouped > 0 and group == previous_group
        if table.grouped and previous_group is not None and not is_repeated:
            lines.append(r"\midrule")
        cells = [
            "" if is_repeated and index < table.grouped else format_cell(row_index, index) for index in range(len(row))
        ]
        lines.append(" & ".join(cells) + r" \\")
        previous_group = group
    lines += [r"\bottomrule", r"\end{tabular}"]
    note = table.explain_marks()
    if note:
        lines += [r"\par\smallskip", rf"{{\footnotesize {escape_latex(note)}}}"]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


_MIN_TEXT_WIDTH = 16
"""Minimum width in characters of a column whose long texts are wrapped."""
_STYLES: dict[Mark, str] = {"best": "bold", "top": "underline"}


def _column_widths(table: Table, wrap_headings: bool, max_width: int) -> list[int] | None:
    """Return the width in characters of each column after the group columns; None if the table is too wide.

    If not all columns can have their full width, each gets its minimum width, and the remaining width is distributed
    among the columns that need more.
    """
    indices = range(table.grouped, len(table.columns))
    available_width = max_width - 2 * len(indices)  # two characters of padding for each column
    full_widths = [_column_width(table, index, wrap_headings, wrap_cells=False) for index in indices]
    if sum(full_widths) <= available_width:
        return full_widths
    widths = [_column_width(table, index, wrap_headings, wrap_cells=True) for index in indices]
    available_width -= sum(widths)
    if available_width < 0:
        return None
    positions_by_deficit = sorted(range(len(widths)), key=lambda index: full_widths[index] - widths[index])
    for rank, index in enumerate(positions_by_deficit):
        extra_width = min(full_widths[index] - widths[index], available_width // (len(positions_by_deficit) - rank))
        widths[index] += extra_width
        available_width -= extra_width
    return widths


def _column_width(table: Table, index: int, wrap_headings: bool, wrap_cells: bool) -> int:
    """Return the width in characters that a column needs.

    The first column also has to fit the names of groups, which are shown above it.
    """
    from rich.cells import cell_len

    column = table.columns[index]
    has_groups = table.grouped > 0 and index == table.grouped
    cells = [
        line for row in table.rows for line in (_wrap_interval(row[index]) if wrap_cells else row[index]).split("\n")
    ]
    cell_width = _text_width(cells, wrap_cells and column.align == "left") + (2 if has_groups else 0)
    groups = [", ".join(row[: table.grouped]) for row in table.rows] if has_groups else []
    heading = column.label.split() if wrap_headings else column.heading.split("\n")
    return max([cell_width, _text_width(groups, wrap_cells), *map(cell_len, heading)])


def _wrap_interval(cell: str) -> str:
    """Insert a line break before the interval that follows a value."""
    return re.sub(r"(?<=\d) (?=\[[^][]*\]$)", "\n", cell)


def _text_width(texts: list[str], wrap: bool) -> int:
    from rich.cells import cell_len

    width = max(map(cell_len, texts), default=0)
    if not wrap:
        return width
    return min(width, max([_MIN_TEXT_WIDTH, *(cell_len(word) for text in texts for word in text.split())]))


def _row_blocks(table: Table) -> Iterator["Text"]:
    """Yield the table with each row as a block of lines ``heading: cell``, without empty cells."""
    from rich.text import Text

    if table.title:
        yield Text(table.title, style="table.title")
    for group, row_index, cells in _styled_rows(table):
        if group:
            yield Text(group, style="bold")
        yield Text()
        for column, cell in zip(table.columns[table.grouped :], cells, strict=True):
            if cell.plain.strip():
                line = Text.assemble((f"{column.label}: " if column.label else "", "dim"), cell)
                line.stylize("bold" if row_index in table.strong else "")
                yield line
    if note := table.explain_marks():
        yield Text()
        yield Text(note, style="table.caption")
    yield Text()


def _styled_rows(table: Table) -> Iterator[tuple[str, int, list["Text"]]]:
    """Yield each row's group name (empty if the previous row has the same), index and styled cells."""
    from rich.text import Text

    previous_group: tuple[str, ...] = ()
    for row_index, row in enumerate(table.rows):
        group = row[: table.grouped]
        cells = [
            # The style applies to the text, not to the padding beside it.
            Text.assemble(
                (cell, " ".join(style for mark, style in _STYLES.items() if table.is_marked(row_index, index, mark)))
            )
            for index, cell in enumerate(row[table.grouped :], start=table.grouped)
        ]
        yield ("" if group == previous_group else ", ".join(group)), row_index, cells
        previous_group = group
