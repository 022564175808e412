"""Base class of results of jobs: tables, data, rows, a report, a view in notebooks, and files of all of these."""

import csv
import io
import itertools
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar

from climassay.errors import ClimassayError, InputError, MissingExtraError
from climassay.io import safe_cell, write_file
from climassay.reporting.html import Block, Report, Section, block_style, render_block
from climassay.reporting.tables import Table, as_csv, as_markdown, headed_cells

if TYPE_CHECKING:
    from rich.text import Text


ROW_SUFFIXES = (".csv", ".xlsx", ".jsonl")
_CONSOLE_WIDTH = 120
"""Width in characters of a result that a Python console shows."""
_MAX_CONSOLE_ROWS = 40
"""Maximum number of rows of a table that a Python console shows."""
_MAX_CELL_LENGTH = 32_767
"""Maximum number of characters in an Excel cell."""
_NUMBER = re.compile(r"[-+]?(\d+(\.\d+)?|\d{1,3}(,\d{3})+(\.\d+)?)")


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows to a CSV file or a workbook, as the path's suffix demands, or else as JSON lines.

    In CSV files and workbooks, a mapping becomes a column per key (``probabilities.high``), a list of floats a column
    per entry, and any other list a cell with its entries joined by semicolons.

    Args:
        path: Path of the file.
        rows: Rows; the columns are the keys of all rows in order of first occurrence.

    Raises:
        InputError: The file cannot be written.
    """
    data: str | bytes
    match path.suffix.lower():
        case ".csv":
            flat_rows = [_flatten_row(row) for row in rows]
            data = "".join(csv_lines(_columns(flat_rows), flat_rows))
        case ".xlsx":
            flat_rows, buffer = [_flatten_row(row) for row in rows], io.BytesIO()
            write_workbook(buffer, _columns(flat_rows), flat_rows)
            data = buffer.getvalue()
        case _:
            lines = (json.dumps(dict(row), ensure_ascii=False, allow_nan=False) + "\n" for row in rows)
            data = "".join(lines)
    write_file(path, data)


def write_table(path: Path, table: Table) -> None:
    """Write a table to a workbook (.xlsx) or JSON lines (.jsonl) with numbers for numeric cells, or else as CSV.

    Raises:
        InputError: The file cannot be written.
    """
    headings, cells = headed_cells(table)
    if path.suffix.lower() in (".xlsx", ".jsonl"):
        write_rows(path, [dict(zip(headings, map(_parse_number, row), strict=True)) for row in cells])
    else:
        write_file(path, as_csv(table))


def _parse_number(cell: str) -> str | int | float:
    text = cell.replace("\N{MINUS SIGN}", "-")
    if not _NUMBER.fullmatch(text):
        return cell
    value = float(text.replace(",", ""))
    return int(value) if "." not in text and abs(value) < 1e15 else value


def _flatten_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Flatten a row: each value of a nested mapping, and each float in a list, becomes a separate column."""
    cells: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, Mapping):
            cells.update({f"{name}.{key}": cell for key, cell in _flatten_row(value).items()})
        elif isinstance(value, list | tuple) and value and all(isinstance(entry, float) for entry in value):
            cells.update({f"{name}.{number}": entry for number, entry in enumerate(value, start=1)})
        else:
            cells[name] = value
    return cells


def _columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _format_cell(cell_value: Any) -> Any:
    if isinstance(cell_value, list | tuple):
        is_flat = not any(isinstance(entry, list | tuple | dict) for entry in cell_value)
        return "; ".join(map(str, cell_value)) if is_flat else json.dumps(cell_value, ensure_ascii=False)
    return str(cell_value).lower() if isinstance(cell_value, bool) else cell_value


def csv_lines(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of a CSV file, headings first; cells that spreadsheets would run as formulas are escaped."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    for cells in itertools.chain([columns], ([row.get(name) for name in columns] for row in rows)):
        writer.writerow([safe_cell(_format_cell(cell)) for cell in cells])
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()


def write_workbook(file: IO[bytes], columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write headings and rows to an .xlsx workbook; text is never converted to a formula, number or link."""
    import xlsxwriter

    options = {"constant_memory": True, "strings_to_urls": False, "strings_to_formulas": False}
    with xlsxwriter.Workbook(file, options) as workbook:
        sheet = workbook.add_worksheet("rows")
        all_cells = itertools.chain([columns], ([row.get(name) for name in columns] for row in rows))
        for row_index, cells in enumerate(all_cells):
            for column_index, value in enumerate(map(_format_cell, cells)):
                if isinstance(value, int | float) and math.isfinite(value):
                    sheet.write_number(row_index, column_index, value)
                elif value is not None:
                    # A lone surrogate cannot be encoded.
                    text = str(value).encode("utf-8", "replace").decode()
                    cell_text = f"{text[: _MAX_CELL_LENGTH - 1]}…" if len(text) > _MAX_CELL_LENGTH else text
                    sheet.write_string(row_index, column_index, cell_text)


RESULT_SUFFIXES = (*ROW_SUFFIXES, ".json", ".md", ".html")
"""Suffixes of the files to which a result can be saved."""


class Result:
    """Base class of results.

    Subclasses must override :meth:`tables`. By default, the other methods return these tables in other formats.
    """

    __slots__ = ()

    rests_on_calls: ClassVar[bool] = True
    """Whether the result is worthless if every call to a model failed."""

    def tables(self) -> Sequence[Table]:
        """Return the tables of the result, in which estimates have an interval and n."""
        return ()

    def __init_subclass__(cls, **more: Any) -> None:
        """Give subclasses this class's ``__repr__``, because that of a dataclass could be megabytes long."""
        super().__init_subclass__(**more)
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = Result.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        """Return the result's lines and tables as text; tables are truncated to 40 rows."""
        from climassay.terminal import TerminalConsole

        console = TerminalConsole(file=io.StringIO(), width=_CONSOLE_WIDTH, color_system=None)
        parts: list[Any] = [*self.lines()]
        for table in self.terminal_tables(_CONSOLE_WIDTH):
            n_rows = min(len(table.rows), _MAX_CONSOLE_ROWS)
            parts += (
                [replace(table, rows=table.rows[:n_rows], strong=table.strong & {*range(n_rows)})] if n_rows else []
            )
            parts += [f"... of {len(table.rows):,} rows"] if n_rows < len(table.rows) else []
        with console.capture() as capture:
            for part in parts or self.notes():
                console.print(part, highlight=False)
        return "\n".join(line.rstrip() for line in capture.get().splitlines()) or f"<{type(self).__name__}>"

    def terminal_tables(self, width: int) -> Sequence[Table]:  # noqa: ARG002
        """Return the tables to print in a terminal that is ``width`` characters wide; by default all tables."""
        return self.tables()

    def to_dict(self) -> Any:
        """Return all data of the result as JSON-serialisable values, as ``--json`` prints them."""
        return as_json_data(self)

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return records for CSV files, workbooks and data frames; by default the rows of the first table."""
        table = next(iter(self.tables()), None)
        if table is None:
            return []
        labels = [column.label for column in table.columns]
        return [dict(zip(labels, row, strict=True)) for row in table.rows]

    def lines(self) -> "Iterable[str | Text]":
        """Return the sentences to print before the tables."""
        return ()

    def notes(self) -> Iterable[str]:
        """Return remarks about the result, for example about skipped rows."""
        return ()

    def failure(self) -> ClimassayError | None:
        """Return the error with which a command exits after printing the result; None for success."""
        return None

    def title(self) -> str:
        """Return the heading of the report."""
        table = next(iter(self.tables()), None)
        return (table.title if table else "") or "Result"

    def report(self) -> Report:
        """Return a report of all tables."""
        sections = (Section(table.title or self.title(), (table,)) for table in self.tables() if table.rows)
        return Report(self.title(), " ".join(self.notes()), tuple(sections))

    def markdown(self) -> str:
        """Return all tables as Markdown."""
        return "\n".join(map(as_markdown, self.tables()))

    def page(self) -> str:
        """Return the report as HTML."""
        return self.report().to_html()

    def to_pandas(self) -> Any:
        """Return the rows as a pandas ``DataFrame``.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        try:
            pandas = import_module("pandas")
        except ModuleNotFoundError:
            raise MissingExtraError("Data frames need pandas: pip install pandas.") from None
        return pandas.DataFrame([dict(row) for row in self.rows()])

    def save(self, file: Path | str) -> Path:
        """Write the result to a file and return its path.

        The suffix determines what is written: the rows (.csv, .xlsx, .jsonl), the tables (.md), the report (.html) or
        all data (.json).

        Raises:
            InputError: The suffix is unknown, or the file cannot be written.
        """
        path = Path(file)
        match path.suffix.lower():
            case ".json":
                write_file(path, (json_text(self.to_dict()) + "\n").encode("utf-8", "backslashreplace"))
            case ".html" | ".htm":
                write_file(path, self.page())
            case ".md":
                write_file(path, self.markdown())
            case suffix if suffix in ROW_SUFFIXES:
                write_rows(path, self.rows())
            case _:
                raise unknown_suffix(path)
        return path

    def _repr_html_(self) -> str:
        """Return the lines and the tables as HTML for notebooks."""
        from html import escape

        blocks: list[Block] = [table for table in self.tables() if table.rows]
        lines = [*self.lines(), *(() if blocks else self.notes())]
        paragraphs = "".join(f"<p>{escape(str(line))}</p>" for line in lines)
        tables = "".join(str(render_block(block, "result", index)) for index, block in enumerate(blocks))
        return f'<style>{block_style()}</style><div class="blocks">{paragraphs}{tables}</div>'


def unknown_suffix(path: Path) -> InputError:
    """Return the error to raise for a file whose suffix is not one of ``RESULT_SUFFIXES``."""
    return InputError(f"{path} must end in {', '.join(RESULT_SUFFIXES[:-1])} or {RESULT_SUFFIXES[-1]}.")


@dataclass(frozen=True, slots=True)
class AssembledResult(Result):
    """Result that is assembled from data, tables and sentences."""

    data: Any
    """Data that :meth:`to_dict` returns, or a function that returns them."""
    result_tables: Sequence[Table] | Callable[[], Sequence[Table]] = ()
    records: Sequence[Mapping[str, Any]] | None = None
    """Records that :meth:`rows` returns; None for the rows of the first table."""
    printed_lines: "Sequence[str | Text]" = ()
    noted: Sequence[str] = ()
    reported: Callable[[], Report] | None = None
    failed: ClimassayError | None = None
    headline: str = field(default="", kw_only=True)

    def tables(self) -> Sequence[Table]:
        """Return the tables."""
        return self.result_tables() if callable(self.result_tables) else self.result_tables

    def to_dict(self) -> Any:
        """Return the data."""
        return self.data() if callable(self.data) else self.data

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return the records; by default the rows of the first table."""
        return Result.rows(self) if self.records is None else self.records

    def lines(self) -> "Iterable[str | Text]":
        """Return the sentences to print before the tables."""
        return self.printed_lines

    def notes(self) -> Iterable[str]:
        """Return remarks about the result."""
        return self.noted

    def failure(self) -> ClimassayError | None:
        """Return the error with which the command exits; None for success."""
        return self.failed

    def title(self) -> str:
        """Return the heading of the report."""
        return self.headline or Result.title(self)

    def report(self) -> Report:
        """Return the report; by default a report of all tables."""
        return Result.report(self) if self.reported is None else self.reported()


def listing(
    title: str,
    records: Iterable[Mapping[str, Any]],
    columns: Mapping[str, str],
    *,
    left_columns: int = 1,
    **options: Any,
) -> AssembledResult:
    """Return a result that lists records: all fields as data and rows, and some of them as columns of a table.

    Args:
        title: Title of the table.
        records: Records, as mappings from field to value.
        columns: Headings of the table's columns by field.
        left_columns: Number of leading columns that are aligned left.
        **options: Further fields of :class:`AssembledResult`.
    """
    rows = [dict(record) for record in records]
    cells = [["" if (value := row.get(name)) is None else str(value) for name in columns] for row in rows]
    table = Table.of(title, tuple(columns.values()), cells, left_columns=left_columns)
    return AssembledResult(rows, (table,) if rows or title else (), rows, **options)


def as_json_data(value: Any) -> Any:
    """Return a value as JSON-serialisable data; dataclasses become dictionaries."""
    return json.loads(json_text(asdict(value) if is_dataclass(value) and not isinstance(value, type) else value))


def json_text(data: Any) -> str:
    """Serialise data, which may contain dataclasses, paths and numpy numbers, to JSON.

    Raises:
        ValueError: The data contain NaN or infinity.
    """

    def default(value: Any) -> Any:
        if is_dataclass(value) and not isinstance(value, type):
            return asdict(value)
        if isinstance(value, Path):
            return str(value)
        if hasattr(value, "tolist"):
            return value.tolist()
        raise TypeError(f"{type(value).__name__} cannot be written as JSON")

    return json.dumps(data, default=default, ensure_ascii=False, indent=2, allow_nan=False)
