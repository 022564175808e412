"""What a job gives back: tables, data, rows, a report, a view for notebooks, and files of them."""

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
_WIDTH = 120
"""Columns of a result in a Python console."""
_MOST_ROWS = 40
"""Rows of each table that it shows."""
_LONGEST_CELL = 32_767
"""Characters that Excel takes in a cell."""
_NUMBER = re.compile(r"[-+]?(\d+(\.\d+)?|\d{1,3}(,\d{3})+(\.\d+)?)")


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]], otherwise: str = ".jsonl") -> None:
    """Write rows; numbers stay numbers.

    In CSV and workbooks a mapping becomes a column for each of its keys (``probabilities.high``), a list of fractions
    one for each place, another list a text divided by semicolons.

    Args:
        path: Its ending tells the kind.
        rows: The columns are the keys of all rows, in the order in which they come.
        otherwise: The kind of a file whose ending is not one of ``ROW_SUFFIXES``.

    Raises:
        InputError: The file cannot be written.
    """
    data: str | bytes
    suffix = path.suffix.lower()
    match suffix if suffix in ROW_SUFFIXES else otherwise:
        case ".csv":
            flat = [_flat(row) for row in rows]
            data = "".join(csv_lines(_columns(flat), flat))
        case ".xlsx":
            flat, out = [_flat(row) for row in rows], io.BytesIO()
            write_workbook(out, _columns(flat), flat)
            data = out.getvalue()
        case _:
            lines = (json.dumps(dict(row), ensure_ascii=False, allow_nan=False) + "\n" for row in rows)
            data = "".join(lines)
    write_file(path, data)


def write_table(path: Path, table: Table) -> None:
    """Write a table: a workbook or JSON lines where the name ends so, CSV otherwise; cells of digits are numbers.

    Raises:
        InputError: The file cannot be written.
    """
    headings, cells = headed_cells(table)
    if path.suffix.lower() in (".xlsx", ".jsonl"):
        write_rows(path, [dict(zip(headings, map(_as_number, row), strict=True)) for row in cells])
    else:
        write_file(path, as_csv(table))


def _as_number(cell: str) -> str | int | float:
    text = cell.replace("\N{MINUS SIGN}", "-")
    if not _NUMBER.fullmatch(text):
        return cell
    value = float(text.replace(",", ""))
    return int(value) if "." not in text and abs(value) < 1e15 else value


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row without mappings in it."""
    results: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, Mapping):
            results.update({f"{name}.{key}": cell for key, cell in _flat(value).items()})
        elif isinstance(value, list | tuple) and value and all(isinstance(one, float) for one in value):
            results.update({f"{name}.{place}": one for place, one in enumerate(value, start=1)})
        else:
            results[name] = value
    return results


def _columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The keys of all rows in the order in which they come."""
    return list(dict.fromkeys(name for row in rows for name in row))


def _plain_cell(value: Any) -> Any:
    if isinstance(value, list | tuple):
        plain = not any(isinstance(one, list | tuple | dict) for one in value)
        return "; ".join(map(str, value)) if plain else json.dumps(value, ensure_ascii=False)
    return str(value).lower() if isinstance(value, bool) else value


def csv_lines(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Lines of a CSV file with a line of headings, made one by one; no cell runs as a formula."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for line in itertools.chain([columns], ([row.get(name) for name in columns] for row in rows)):
        writer.writerow([safe_cell(_plain_cell(cell)) for cell in line])
        yield out.getvalue()
        out.seek(0)
        out.truncate()


def write_workbook(file: IO[bytes], columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write an .xlsx workbook with a line of headings, row by row; no text becomes a formula, a number or a link."""
    import xlsxwriter

    options = {"constant_memory": True, "strings_to_urls": False, "strings_to_formulas": False}
    with xlsxwriter.Workbook(file, options) as workbook:
        sheet = workbook.add_worksheet("rows")
        lines = itertools.chain([columns], ([row.get(name) for name in columns] for row in rows))
        for row_index, line in enumerate(lines):
            for column_index, value in enumerate(map(_plain_cell, line)):
                if isinstance(value, int | float) and math.isfinite(value):
                    sheet.write_number(row_index, column_index, value)
                elif value is not None:
                    # A lone half of a character cannot be encoded.
                    text = str(value).encode("utf-8", "replace").decode()
                    cut = f"{text[: _LONGEST_CELL - 1]}…" if len(text) > _LONGEST_CELL else text
                    sheet.write_string(row_index, column_index, cut)


RESULT_SUFFIXES = (*ROW_SUFFIXES, ".json", ".md", ".html")
"""Endings of the files that a result can be saved in."""


class Result:
    """What a job gives back.

    A record of a room inherits from it and says what is its own: at least :meth:`tables`. Everything else follows.
    """

    __slots__ = ()

    rests_on_calls: ClassVar[bool] = True
    """Whether it says nothing where models were asked and no call was answered; False where they only add to it."""

    def tables(self) -> Sequence[Table]:
        """All tables, ready to be read; figures with their n and interval."""
        return ()

    def __init_subclass__(cls, **more: Any) -> None:
        """Keep dataclasses from showing all of their fields, which may be megabytes."""
        super().__init_subclass__(**more)
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = Result.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        """What a terminal shows: lines and tables, long ones from their beginning."""
        from rich.console import Console

        console = Console(file=io.StringIO(), width=_WIDTH, markup=False, emoji=False, color_system=None)
        parts: list[Any] = [*self.lines()]
        for table in self.terminal_tables(_WIDTH):
            kept = replace(table, rows=table.rows[:_MOST_ROWS], strong=table.strong & {*range(_MOST_ROWS)})
            parts += [kept] if table.rows else []
            parts += [f"... of {len(table.rows):,} rows"] if len(table.rows) > _MOST_ROWS else []
        with console.capture() as shown:
            for part in parts or self.notes():
                console.print(part, highlight=False)
        return "\n".join(line.rstrip() for line in shown.get().splitlines()) or f"<{type(self).__name__}>"

    def terminal_tables(self, width: int) -> Sequence[Table]:  # noqa: ARG002
        """The tables that a terminal of so many columns shows after the lines."""
        return self.tables()

    def to_dict(self) -> Any:
        """Everything as JSON can write it: what ``--json`` prints."""
        return as_json_data(self)

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """The single records, or the lines of the first table: what CSV files, workbooks and data frames hold."""
        first = next(iter(self.tables()), None)
        if first is None:
            return []
        labels = [column.label for column in first.columns]
        return [dict(zip(labels, row, strict=True)) for row in first.rows]

    def lines(self) -> "Iterable[str | Text]":
        """Sentences shown before the tables on a terminal."""
        return ()

    def notes(self) -> Iterable[str]:
        """What a reader should know beside the result, for example what was left out."""
        return ()

    def failure(self) -> ClimassayError | None:
        """What a command fails with after it has shown the result; None where the job did what was asked."""
        return None

    def title(self) -> str:
        """Heading of the report."""
        first = next(iter(self.tables()), None)
        return (first.title if first else "") or "Result"

    def report(self) -> Report:
        """All tables on a self-contained page."""
        shown = [table for table in self.tables() if table.rows]
        return Report(
            self.title(), " ".join(self.notes()), tuple(Section(one.title or self.title(), (one,)) for one in shown)
        )

    def markdown(self) -> str:
        """All tables as Markdown."""
        return "\n".join(map(as_markdown, self.tables()))

    def page(self) -> str:
        """The report as HTML."""
        return self.report().to_html()

    def to_pandas(self) -> Any:
        """The rows as a data frame.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        try:
            pandas = import_module("pandas")
        except ModuleNotFoundError:
            raise MissingExtraError("Data frames need pandas: pip install pandas.") from None
        return pandas.DataFrame([dict(row) for row in self.rows()])

    def save(self, file: Path | str) -> Path:
        """Write it to a file as the ending says.

        Rows go to .csv, .xlsx and .jsonl, tables to .md, a page to .html, everything to .json.

        Raises:
            InputError: The ending is another one, or the file cannot be written.
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
        """How a notebook shows it: lines and tables."""
        from html import escape

        blocks: list[Block] = [table for table in self.tables() if table.rows]
        said = [*self.lines(), *(() if blocks else self.notes())]
        lines = "".join(f"<p>{escape(str(line))}</p>" for line in said)
        shown = "".join(str(render_block(block, "result", number)) for number, block in enumerate(blocks))
        return f'<style>{block_style()}</style><div class="blocks">{lines}{shown}</div>'


def unknown_suffix(path: Path) -> InputError:
    """What is said of a file whose ending names no form of a result."""
    return InputError(f"{path} must end in {', '.join(RESULT_SUFFIXES[:-1])} or {RESULT_SUFFIXES[-1]}.")


@dataclass(frozen=True, slots=True)
class Shown(Result):
    """A result put together from parts, where a room's record does not show itself."""

    data: Any
    """What JSON holds, or a function that makes it."""
    shown: Sequence[Table] | Callable[[], Sequence[Table]] = ()
    records: Sequence[Mapping[str, Any]] | None = None
    """The rows; by default those of the first table."""
    said: "Sequence[str | Text]" = ()
    noted: Sequence[str] = ()
    reported: Callable[[], Report] | None = None
    failed: ClimassayError | None = None
    headline: str = field(default="", kw_only=True)

    def tables(self) -> Sequence[Table]:
        """All tables."""
        return self.shown() if callable(self.shown) else self.shown

    def to_dict(self) -> Any:
        """The data."""
        return self.data() if callable(self.data) else self.data

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """The records, or the lines of the first table."""
        return Result.rows(self) if self.records is None else self.records

    def lines(self) -> "Iterable[str | Text]":
        """Sentences before the tables."""
        return self.said

    def notes(self) -> Iterable[str]:
        """What a reader should know."""
        return self.noted

    def failure(self) -> ClimassayError | None:
        """What a command fails with after it has shown the result."""
        return self.failed

    def title(self) -> str:
        """Heading of the report."""
        return self.headline or Result.title(self)

    def report(self) -> Report:
        """The report, by default all tables."""
        return Result.report(self) if self.reported is None else self.reported()


def listing(
    title: str, records: Iterable[Mapping[str, Any]], columns: Mapping[str, str], *, left: int = 1, **others: Any
) -> Shown:
    """Records as a result: all of their fields as data and rows, some as columns of a table.

    Args:
        title: Heading of the table.
        records: Fields by name.
        columns: Names of the fields shown, with their headings.
        left: Number of leading columns that are words.
        **others: Further parts of :class:`Shown`.
    """
    listed = [dict(one) for one in records]
    cells = [["" if (value := one.get(name)) is None else str(value) for name in columns] for one in listed]
    table = Table.of(title, tuple(columns.values()), cells, left=left)
    return Shown(listed, (table,) if listed or title else (), listed, **others)


def as_json_data(value: Any) -> Any:
    """A record as JSON can write it; what it inherits from :class:`Result` is left out."""
    return json.loads(json_text(asdict(value) if is_dataclass(value) and not isinstance(value, type) else value))


def json_text(data: Any) -> str:
    """One JSON document; dataclasses, paths and numpy numbers are understood; never NaN."""

    def default(value: Any) -> Any:
        if is_dataclass(value) and not isinstance(value, type):
            return asdict(value)
        if isinstance(value, Path):
            return str(value)
        if hasattr(value, "tolist"):
            return value.tolist()
        raise TypeError(f"{type(value).__name__} cannot be written as JSON")

    return json.dumps(data, default=default, ensure_ascii=False, indent=2, allow_nan=False)
