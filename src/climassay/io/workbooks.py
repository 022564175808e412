"""Read tables from spreadsheet workbooks (.xlsx), with the cells that a spreadsheet program would export."""

import io
import re
import zipfile
from collections.abc import Iterator
from datetime import date, datetime, time
from typing import Any

from climassay.io.delimited import DelimitedTable, arrange_rows
from climassay.io.reading import MAX_TABLE_BYTES, join_surrogates

MAX_CELLS = 5_000_000
"""Maximum number of cells of a workbook."""
_LITERAL = re.compile(r'"[^"]*"|\\.')
"""Pattern of text that a number format shows as it is."""
MAX_ROWS = 1_048_576
"""Maximum number of rows of a sheet, which spreadsheet programs have too."""
MAX_CELL_FORMATS = 65_490
"""Maximum number of cell formats of a workbook, which spreadsheet programs have too."""
MAX_STYLES_BYTES = 64 << 20
"""Maximum size of a workbook's style sheet, in bytes."""
_CONTENT = "xl/workbook.xml"
"""Member of the archive that only workbooks have."""
_STYLES = "xl/styles.xml"


def is_workbook(data: bytes) -> bool:
    """Return whether an archive is an .xlsx workbook."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return _CONTENT in archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError):
        return False


def read_workbook(data: bytes) -> DelimitedTable:
    """Read the only table of a workbook; hidden sheets are ignored.

    Numbers have at most 15 significant digits, as in spreadsheet programs. Percentages keep the per cent sign, codes
    formatted as 0000 their zeros, and dates become ISO 8601.

    Raises:
        ValueError: The workbook is damaged or too large, the number of sheets with several rows is not 1, or a formula
            has no stored result. The message does not contain the file's name.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            sizes = {member.filename: member.file_size for member in archive.infolist()}
            if sum(sizes.values()) > MAX_TABLE_BYTES:
                raise ValueError(f"it unpacks to more than the limit of {MAX_TABLE_BYTES >> 20} MB")
            if sizes.get(_STYLES, 0) > MAX_STYLES_BYTES:
                raise ValueError(f"its style sheet is larger than {MAX_STYLES_BYTES >> 20} MB")
            styles = _keep_number_formats(archive.read(_STYLES) if _STYLES in sizes else b"<styleSheet/>")
        results, formulas = (_load_workbook(data, styles, data_only=data_only) for data_only in (True, False))
        names = [sheet.title for sheet in results.worksheets if sheet.sheet_state == "visible"]
        tables = {name: list(_iterate_rows(results[name], formulas[name])) for name in names}
    except ValueError as error:  # openpyxl's messages have several lines
        raise ValueError(str(error).splitlines()[0].rstrip(".")) from None
    except Exception as error:  # openpyxl raises errors of many kinds
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ValueError(f"it is damaged ({reason})") from None
    filled_names = [name for name, rows in tables.items() if len(rows) > 1]
    if len(filled_names) != 1:
        sheet_list = ", ".join(filled_names) or "none"
        raise ValueError(
            f"exactly one visible sheet must have several rows (here: {sheet_list}); save that sheet as CSV"
        )
    return arrange_rows(tables[filled_names[0]])


class _Archive(zipfile.ZipFile):
    """Archive of a workbook with another style sheet."""

    styles = b""

    def read(self, name: str | zipfile.ZipInfo, pwd: bytes | None = None) -> bytes:
        return self.styles if name == _STYLES else super().read(name, pwd)


def _load_workbook(data: bytes, styles: bytes, *, data_only: bool) -> Any:
    from openpyxl.reader.excel import ExcelReader

    archive = _Archive(io.BytesIO(data))
    archive.styles = styles
    reader = ExcelReader(archive.fp, read_only=True, data_only=data_only)
    reader.archive = archive
    reader.read()
    return reader.wb


def _keep_number_formats(styles: bytes) -> bytes:
    """Return a style sheet with nothing but the number formats of cells, and the parts without which none is valid.

    From fonts, borders and named styles, which decide no cell's value, openpyxl would build objects for minutes if a
    workbook has collected many of them.
    """
    from openpyxl.xml.constants import SHEET_MAIN_NS
    from openpyxl.xml.functions import Element, SubElement, fromstring, tostring

    def tag(name: str) -> str:
        return f"{{{SHEET_MAIN_NS}}}{name}"

    sheet = fromstring(styles)
    cell_formats = sheet.findall(f"{tag('cellXfs')}/{tag('xf')}")
    if len(cell_formats) > MAX_CELL_FORMATS:
        raise ValueError(f"it has more than {MAX_CELL_FORMATS:,} cell formats")
    reduced = Element(tag("styleSheet"))
    number_formats = SubElement(reduced, tag("numFmts"))
    for number_format in sheet.findall(f"{tag('numFmts')}/{tag('numFmt')}"):
        SubElement(number_formats, tag("numFmt"), dict(number_format.attrib))
    for path in ("fonts/font", "fills/fill/patternFill", "borders/border", "cellStyleXfs/xf"):
        parent = reduced
        for name in path.split("/"):
            parent = SubElement(parent, tag(name))
    cells = SubElement(reduced, tag("cellXfs"))
    for cell_format in cell_formats or [Element("xf")]:
        SubElement(cells, tag("xf"), {"numFmtId": cell_format.get("numFmtId", "0")})
    named_styles = SubElement(reduced, tag("cellStyles"))
    SubElement(named_styles, tag("cellStyle"), {"name": "Normal", "xfId": "0"})
    return bytes(tostring(reduced))


def _iterate_rows(results: Any, formulas: Any) -> Iterator[list[str]]:
    """Yield the rows of a sheet that are not empty, given the sheet with stored results and with formulas."""
    for sheet in (results, formulas):
        sheet.reset_dimensions()  # openpyxl would leave out what lies outside the dimensions that the file states
    n_cells = 0
    for n_rows, (result_cells, formula_cells) in enumerate(
        zip(results.iter_rows(), formulas.iter_rows(), strict=True), start=1
    ):
        n_cells += len(result_cells)
        if n_cells > MAX_CELLS or n_rows > MAX_ROWS:
            raise ValueError(f"it has more than {MAX_CELLS:,} cells or {MAX_ROWS:,} rows")
        for result, formula in zip(result_cells, formula_cells, strict=True):
            if result.value is None and formula.value is not None:
                raise ValueError(
                    f"cell {formula.coordinate} has a formula without a stored result; open and save the workbook in a "
                    "spreadsheet program"
                )
        texts = [_format_value(cell.value, cell.number_format) for cell in result_cells]
        if any(texts):
            yield texts


def _format_value(value: Any, number_format: str | None) -> str:
    from openpyxl.utils.escape import unescape

    match value:
        case None:
            return ""
        case bool():
            return str(value).upper()
        case int() | float():
            shown_format = _LITERAL.sub("", number_format or "")
            if re.fullmatch("00+", shown_format) and value == int(value):
                return f"{value:0{len(shown_format)}.0f}"
            return f"{100 * value:.15g}%" if "%" in shown_format else f"{value:.15g}"
        case datetime() if value.time() == time():
            return value.date().isoformat()
        case datetime() | date() | time():
            return value.isoformat()
        case _:
            # Spreadsheet programs write a carriage return as _x000D_, which openpyxl does not decode.
            return join_surrogates(unescape(str(value)))
