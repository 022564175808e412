"""Read tables whose rows are paragraphs: CSV, TSV, workbooks (.xlsx), JSON, JSON lines and Parquet."""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import PurePath
from typing import Any, NamedTuple

from climassay.corpus.documents import Block, Document, ReadOptions, ReadResult, Skipped, TableColumns
from climassay.corpus.readers.cleaning import clean, document_id
from climassay.corpus.readers.file_types import reader
from climassay.corpus.readers.markdown import markdown_blocks
from climassay.corpus.readers.text import decode, split_paragraphs
from climassay.errors import DocumentError
from climassay.io import find_column, format_names, parse_json, read_parquet
from climassay.io.delimited import DelimitedTable, read_delimited
from climassay.io.workbooks import read_workbook

# Usual names, best first; compared without case, spaces and punctuation.
_USUAL_NAMES: dict[str, tuple[str, ...]] = {
    "text": (
        *("text", "paragraph", "passage", "content", "body", "abstract", "pagecontent", "documenttext"),
        *("paragraphtext", "chunk", "sentence", "article"),
    ),
    "title": ("chaptertitle", "documenttitle", "doctitle", "booktitle", "title", "book", "textbook", "document"),
    "report": ("report", "series", "collection"),
    "chapter": ("chapter", "chapterid", "chapternumber", "file"),
    "headings": ("headings", "heading", "section", "sectiontitle", "sectionpath", "header", "headers"),
    "paragraph_id": ("paraid", "paragraphid", "passageid", "chunkid", "id"),
    "page": ("pageno", "page", "pagenumber", "pagenum", "pages"),
    "url": ("url", "link", "uri", "href", "sourceurl", "doi"),
    "date": ("date", "published", "publicationdate", "year", "publicationyear"),
    "edition": ("edition", "version"),
    "licence": ("licence", "license", "rights"),
    "author": ("author", "authors", "creator"),
}
_MAX_TITLE = 100
"""Maximum length of a title built from the values that identify a document, in characters."""
_DOCUMENT_NAMES = ("docid", "documentid", "document", "doc", "book", "textbook", "bookid", "articleid", "filename")
_NON_ALPHANUMERIC = re.compile(r"[^a-z0-9]+")


def find_columns(names: Sequence[str], requested_columns: TableColumns, source: str) -> TableColumns:
    """Return the columns of a table. Columns that the user did not choose are found by common names.

    Raises:
        DocumentError: A chosen column does not exist, or no column seems to contain text; the message lists the
            columns.
    """
    listed_columns = format_names(names)

    def find_chosen(name: str) -> str:
        column = find_column(names, name)
        if column is None:
            raise DocumentError(f"{source} has no column {name!r}; its columns are: {listed_columns}.")
        return column

    chosen_names = {field: getattr(requested_columns, field) for field in _USUAL_NAMES}
    fields = {field: None if name is None else find_chosen(name) for field, name in chosen_names.items()}
    document_columns = tuple(map(find_chosen, requested_columns.document))
    names_by_key = {_NON_ALPHANUMERIC.sub("", name.lower()): name for name in reversed(names)}
    used_columns = {name for name in fields.values() if name}
    for field, usual_names in _USUAL_NAMES.items():
        if fields[field] is None:
            candidates = (names_by_key[key] for key in usual_names if key in names_by_key)
            column = next((name for name in candidates if name not in used_columns), None)
            if column is not None:
                fields[field] = column
                used_columns.add(column)
    if fields["text"] is None:
        raise DocumentError(
            f"{source} has no column that looks like text; choose one of its columns: {listed_columns}."
        )
    if not document_columns:
        document_columns = tuple(names_by_key[key] for key in _DOCUMENT_NAMES if key in names_by_key)[:1]
    if not document_columns and fields["title"]:
        document_columns = (fields["title"],)
    return TableColumns(document=document_columns, **fields)


Row = Mapping[str, Any]
MAX_LISTED_LINES = 5
"""Maximum number of invalid lines listed in a message; for the others, the message has only the number."""
MAX_QUOTED_CHARACTERS = 60
"""Maximum number of characters of a line quoted in a message."""
_MARKDOWN = re.compile(r"\]\((?:[^\s\])]|\](?!\())+\)|^#{1,6} |^```|\$\$", re.MULTILINE)
_NAME_SUFFIXES = (".pdf", ".ipynb", ".html", ".htm", ".md", ".txt", ".docx")


class TableRows(NamedTuple):
    """Rows of a table with column names, and descriptions of the problems found while reading it."""

    names: list[str]
    rows: list[Row]
    problems: list[str]


def read_table(data: bytes, source: str, options: ReadOptions, *, kind: str) -> ReadResult:
    """Read a table into documents. Rows with equal values in the document columns form one document.

    Raises:
        DocumentError: The file is not a table of this kind, or has no rows or no text column.
    """
    table = _READERS[kind][1](data, source)
    if not table.rows:
        raise DocumentError(f"{source} has no rows." if not table.problems else table.problems[0])
    columns = find_columns(table.names, options.columns, source)
    groups: dict[tuple[str, ...], list[Row]] = {}
    n_empty_rows = 0
    for row in table.rows:
        if read_cell(row, columns.text):
            groups.setdefault(tuple(read_cell(row, name) for name in columns.document), []).append(row)
        else:
            n_empty_rows += 1
    if not groups:
        raise DocumentError(f"{source} has no text in its column {columns.text!r}.")
    problems = list(table.problems)
    if n_empty_rows:
        problems.append(f"{n_empty_rows} rows of {source} have no text in column {columns.text!r} and were left out.")
    documents = tuple(_build_document(key, rows, columns, source, options) for key, rows in groups.items())
    return ReadResult(source, documents, tuple(Skipped(source, problem) for problem in problems))


def read_cell(row: Row, name: str | None) -> str:
    """Return the value of a cell as a string without surrounding white space; empty if it is missing."""
    value = row.get(name) if name else None
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, list | tuple):
        value = "\n\n".join(str(part) for part in value if part is not None)
    # JSON may contain a lone surrogate, which cannot be stored.
    return str(value).encode("utf-8", "ignore").decode().strip()


def _build_document(
    key: tuple[str, ...], rows: Sequence[Row], columns: TableColumns, source: str, options: ReadOptions
) -> Document:
    blocks = tuple(block for row in rows for block in _build_row_blocks(row, columns))
    first_row = rows[0]
    title = clean(read_cell(first_row, columns.title))
    if not title:
        title_parts = [read_cell(first_row, columns.report), read_cell(first_row, columns.chapter)]
        title = clean(" ".join(part for part in title_parts if part))
    if not title and len(title := clean(" ".join(key))) > _MAX_TITLE:  # identified by a whole text, as an abstract
        title = f"{title[:_MAX_TITLE].rsplit(' ', 1)[0]} ..."
    if title.lower().endswith(_NAME_SUFFIXES):
        title = PurePath(title).stem.replace("_", " ")
    urls = {read_cell(row, columns.url) for row in rows}
    return Document(
        id=document_id("\x1f".join(key), *(block.text for block in blocks)),
        title=options.title or title or PurePath(source).stem,
        source=source,
        blocks=blocks,
        url=urls.pop() if len(urls) == 1 and "" not in urls else None,
        report=read_cell(first_row, columns.report) or None,
        date=_find_common_value(rows, columns.date),
        edition=_find_common_value(rows, columns.edition),
        licence=_find_common_value(rows, columns.licence),
        author=_find_common_value(rows, columns.author),
        media="table",
    )


def _find_common_value(rows: Sequence[Row], name: str | None) -> str | None:
    """Return the value of a column if it is equal in all rows; otherwise None."""
    values = {read_cell(row, name) for row in rows}
    return (values.pop() or None) if len(values) == 1 else None


def _build_row_blocks(row: Row, columns: TableColumns) -> Iterator[Block]:
    text = read_cell(row, columns.text)
    value = row.get(columns.headings) if columns.headings else None
    levels = [str(part) for part in value if part] if isinstance(value, list | tuple) else []
    levels = re.split(r"\s+>\s+", value) if isinstance(value, str) else levels
    headings = tuple(heading for level in levels if (heading := clean(level)))
    url = read_cell(row, columns.url) or None
    paragraph_id = read_cell(row, columns.paragraph_id) or None
    if url is None and paragraph_id and paragraph_id.startswith(("http://", "https://")):
        url, paragraph_id = paragraph_id, None
    page = read_cell(row, columns.page)
    markdown = markdown_blocks(text) if _MARKDOWN.search(text) else []
    parts = [(block.text, block.headings) for block in markdown] or [(part, ()) for part in split_paragraphs(text)]
    for part, inner_headings in parts:
        yield Block(
            text=part,
            page=int(page) if page.isdigit() else None,
            headings=headings + inner_headings,
            paragraph_id=paragraph_id,
            chapter=read_cell(row, columns.chapter) or None,
            url=url,
        )


def _read_workbook(data: bytes, source: str) -> TableRows:
    try:
        table = read_workbook(data)
    except ValueError as error:
        raise DocumentError(f"{source} is not a readable workbook: {error}.") from None
    return _add_problems(table, source)


def _read_csv(data: bytes, source: str, delimiter: str | None = None) -> TableRows:
    try:
        table = read_delimited(decode(data, source), delimiter)
    except ValueError as error:
        raise DocumentError(f"{source} is not a readable table ({error}).") from None
    return _add_problems(table, source)


def _add_problems(table: DelimitedTable, source: str) -> TableRows:
    """Return the rows of a table, with problems for lines above the header and for rows with too many cells."""
    problems = []
    if table.lines_above:
        first_line = table.lines_above[0][:MAX_QUOTED_CHARACTERS]
        problems.append(
            f"{len(table.lines_above)} lines above the header of {source} were left out, the first is {first_line!r}."
        )
    if table.overlong:
        problems.append(f"{source}, {table.overlong_sentence()} These rows were left out.")
    return TableRows(table.names, table.rows, problems)


def _read_jsonl(data: bytes, source: str) -> TableRows:
    rows: list[Row] = []
    invalid_lines: list[int] = []
    for number, line in enumerate(decode(data, source).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value = parse_json(line)
        except ValueError:
            value = None
        if isinstance(value, dict):
            rows.append(value)
        else:
            invalid_lines.append(number)
    problems = []
    if invalid_lines:
        more = f" and {len(invalid_lines) - MAX_LISTED_LINES} more" if len(invalid_lines) > MAX_LISTED_LINES else ""
        problems.append(
            f"{source}: not a JSON object in line {', '.join(map(str, invalid_lines[:MAX_LISTED_LINES]))}{more}."
        )
    return TableRows(list(dict.fromkeys(name for row in rows for name in row)), rows, problems)


def _read_json(data: bytes, source: str) -> TableRows:
    try:
        value = parse_json(decode(data, source))
    except ValueError as error:
        location = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        raise DocumentError(
            f"{source} is not valid JSON{location}; a file of one object per line ends in .jsonl."
        ) from None
    if isinstance(value, dict):
        lists = [part for part in value.values() if isinstance(part, list) and part and isinstance(part[0], dict)]
        value = lists[0] if len(lists) == 1 else [value]
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        raise DocumentError(f"{source} is not a list of JSON objects.")
    return TableRows(list(dict.fromkeys(name for row in value for name in row)), value, [])


def _read_parquet(data: bytes, source: str) -> TableRows:
    try:
        table = read_parquet(data)
    except ValueError as error:
        raise DocumentError(f"{source} is not a readable Parquet file: {error}.") from None
    return TableRows(table.names, table.rows, [])


_READERS: dict[str, tuple[tuple[str, ...], Callable[[bytes, str], TableRows]]] = {
    "csv": ((".csv",), _read_csv),
    "tsv": ((".tsv", ".tab"), partial(_read_csv, delimiter="\t")),
    "json": ((".json",), _read_json),
    "jsonl": ((".jsonl", ".ndjson"), _read_jsonl),
    "parquet": ((".parquet", ".pq"), _read_parquet),
    "xlsx": ((".xlsx", ".xlsm"), _read_workbook),
}


for _kind, (_endings, _) in _READERS.items():
    reader(_kind, *_endings, is_compressed=_kind in ("parquet", "xlsx"))(partial(read_table, kind=_kind))
