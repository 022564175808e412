"""Read tables whose rows are paragraphs: CSV, TSV, JSON, JSON lines and Parquet."""

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
from climassay.corpus.readers.text import decode, paragraphs
from climassay.errors import DocumentError
from climassay.io import listed_names, parse_json, read_parquet
from climassay.io.delimited import read_delimited

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
"""Maximum number of characters of a title that is made of the values that identify a document."""
_DOCUMENT_NAMES = ("docid", "documentid", "document", "doc", "book", "textbook", "bookid", "articleid", "filename")
_PLAIN = re.compile(r"[^a-z0-9]+")


def find_layout(names: Sequence[str], chosen: TableColumns, source: str) -> TableColumns:
    """Find the columns of a table by the user's choice, and the others by their common names.

    Raises:
        DocumentError: A chosen column does not exist, or no column looks like text; the message lists the columns.
    """
    listed = listed_names(names)
    fields = {field: getattr(chosen, field) for field in _USUAL_NAMES}
    for name in (*fields.values(), *chosen.document):
        if name is not None and name not in names:
            raise DocumentError(f"{source} has no column {name!r}; its columns are: {listed}.")
    names_by_plain = {_PLAIN.sub("", name.lower()): name for name in reversed(names)}
    used_columns = {name for name in fields.values() if name}
    for field, usual in _USUAL_NAMES.items():
        if fields[field] is None:
            free = (
                names_by_plain[plain]
                for plain in usual
                if plain in names_by_plain and names_by_plain[plain] not in used_columns
            )
            fields[field] = next(free, None)
            if fields[field] is not None:
                used_columns.add(fields[field])
    if fields["text"] is None:
        raise DocumentError(f"{source} has no column that looks like text; choose one of its columns: {listed}.")
    document = (
        chosen.document or tuple(names_by_plain[plain] for plain in _DOCUMENT_NAMES if plain in names_by_plain)[:1]
    )
    if not document and fields["title"]:
        document = (fields["title"],)
    return TableColumns(document=document, **fields)


Row = Mapping[str, Any]
LISTED_ROWS = 5
"""Maximum number of invalid lines listed in a message; the others are counted."""
MAX_QUOTED = 60
"""Maximum number of characters of a line quoted in a message."""
_MARKDOWN = re.compile(r"\]\(\S+?\)|^#{1,6} |^```|\$\$", re.MULTILINE)
_NAME_SUFFIXES = (".pdf", ".ipynb", ".html", ".htm", ".md", ".txt", ".docx")


class TableRows(NamedTuple):
    """Rows with their column names, and problems found while reading."""

    names: list[str]
    rows: list[Row]
    problems: list[str]


def read_table(data: bytes, source: str, options: ReadOptions, *, kind: str) -> ReadResult:
    """Read a table into documents: rows with equal values in the document columns form one document.

    Raises:
        DocumentError: The file is not a table of this kind, or has no rows or no text column.
    """
    table = _READERS[kind][1](data, source)
    if not table.rows:
        raise DocumentError(f"{source} has no rows." if not table.problems else table.problems[0])
    layout = find_layout(table.names, options.columns, source)
    groups: dict[tuple[str, ...], list[Row]] = {}
    empty = 0
    for row in table.rows:
        if cell(row, layout.text):
            groups.setdefault(tuple(cell(row, name) for name in layout.document), []).append(row)
        else:
            empty += 1
    if not groups:
        raise DocumentError(f"{source} has no text in its column {layout.text!r}.")
    problems = list(table.problems)
    if empty:
        problems.append(f"{empty} rows of {source} have no text in column {layout.text!r} and were left out.")
    documents = tuple(_build_document(key, rows, layout, source, options) for key, rows in groups.items())
    return ReadResult(source, documents, tuple(Skipped(source, problem) for problem in problems))


def cell(row: Row, name: str | None) -> str:
    """Return the value of a cell as a stripped string; empty if missing."""
    value = row.get(name) if name else None
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, list | tuple):
        value = "\n\n".join(str(part) for part in value if part is not None)
    # JSON may name half a character alone, which nothing can store.
    return str(value).encode("utf-8", "ignore").decode().strip()


def _build_document(
    key: tuple[str, ...], rows: Sequence[Row], layout: TableColumns, source: str, options: ReadOptions
) -> Document:
    blocks = tuple(block for row in rows for block in _row_blocks(row, layout))
    first = rows[0]
    title = clean(cell(first, layout.title))
    if not title:
        parts = [cell(first, layout.report), cell(first, layout.chapter)]
        title = clean(" ".join(part for part in parts if part))
    if not title and len(title := clean(" ".join(key))) > _MAX_TITLE:  # identified by a whole text, as an abstract
        title = f"{title[:_MAX_TITLE].rsplit(' ', 1)[0]} ..."
    if title.lower().endswith(_NAME_SUFFIXES):
        title = PurePath(title).stem.replace("_", " ")
    urls = {cell(row, layout.url) for row in rows}
    return Document(
        id=document_id("\x1f".join(key), *(block.text for block in blocks)),
        title=options.title or title or PurePath(source).stem,
        source=source,
        blocks=blocks,
        url=urls.pop() if len(urls) == 1 and "" not in urls else None,
        report=cell(first, layout.report) or None,
        date=_common_value(rows, layout.date),
        edition=_common_value(rows, layout.edition),
        licence=_common_value(rows, layout.licence),
        author=_common_value(rows, layout.author),
        media="table",
    )


def _common_value(rows: Sequence[Row], name: str | None) -> str | None:
    """Return the value if all rows share it, otherwise None."""
    values = {cell(row, name) for row in rows}
    return (values.pop() or None) if len(values) == 1 else None


def _row_blocks(row: Row, layout: TableColumns) -> Iterator[Block]:
    """Yield the paragraphs of a row's text as blocks."""
    text = cell(row, layout.text)
    value = row.get(layout.headings) if layout.headings else None
    levels = [str(part) for part in value if part] if isinstance(value, list | tuple) else []
    levels = re.split(r"\s+>\s+", value) if isinstance(value, str) else levels
    headings = tuple(heading for level in levels if (heading := clean(level)))
    url = cell(row, layout.url) or None
    paragraph_id = cell(row, layout.paragraph_id) or None
    if url is None and paragraph_id and paragraph_id.startswith(("http://", "https://")):
        url, paragraph_id = paragraph_id, None
    page = cell(row, layout.page)
    markdown = markdown_blocks(text) if _MARKDOWN.search(text) else []
    parts = [(block.text, block.headings) for block in markdown] or [(part, ()) for part in paragraphs(text)]
    for part, inner in parts:
        yield Block(
            text=part,
            page=int(page) if page.isdigit() else None,
            headings=headings + inner,
            paragraph_id=paragraph_id,
            chapter=cell(row, layout.chapter) or None,
            url=url,
        )


def _read_csv(data: bytes, source: str, delimiter: str | None = None) -> TableRows:
    try:
        table = read_delimited(decode(data, source), delimiter)
    except ValueError as error:
        raise DocumentError(f"{source} is not a readable table ({error}).") from None
    problems = []
    if table.lines_above:
        first = table.lines_above[0][:MAX_QUOTED]
        problems.append(
            f"{len(table.lines_above)} lines above the header of {source} were left out, the first is {first!r}."
        )
    if table.overlong:
        problems.append(f"{source}, {table.overlong_sentence()} These rows were left out.")
    return TableRows(table.names, table.rows, problems)


def _read_jsonl(data: bytes, source: str) -> TableRows:
    rows: list[Row] = []
    bad: list[int] = []
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
            bad.append(number)
    problems = []
    if bad:
        more = f" and {len(bad) - LISTED_ROWS} more" if len(bad) > LISTED_ROWS else ""
        problems.append(f"{source}: not a JSON object in line {', '.join(map(str, bad[:LISTED_ROWS]))}{more}.")
    return TableRows(list(dict.fromkeys(name for row in rows for name in row)), rows, problems)


def _read_json(data: bytes, source: str) -> TableRows:
    try:
        value = parse_json(decode(data, source))
    except ValueError as error:
        where = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        raise DocumentError(
            f"{source} is not valid JSON{where}; a file of one object per line ends in .jsonl."
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
}


for _kind, (_endings, _) in _READERS.items():
    reader(_kind, *_endings, packed=_kind == "parquet")(partial(read_table, kind=_kind))
