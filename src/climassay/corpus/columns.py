"""Find out which column of a table holds what."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from climassay.corpus.options import TableColumns
from climassay.errors import DocumentError

# Usual names, best first; compared without case, spaces and punctuation.
_USUAL_NAMES: dict[str, tuple[str, ...]] = {
    "text": (
        "text",
        "paragraph",
        "passage",
        "content",
        "body",
        "abstract",
        "pagecontent",
        "documenttext",
        "paragraphtext",
        "chunk",
        "sentence",
        "article",
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
}
_DOCUMENT_NAMES = ("docid", "documentid", "document", "doc", "book", "textbook", "bookid", "articleid", "filename")
_PLAIN = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of one table, each by its name in the table or None."""

    text: str
    document: tuple[str, ...]
    title: str | None
    report: str | None
    chapter: str | None
    headings: str | None
    paragraph_id: str | None
    page: str | None
    url: str | None
    date: str | None
    edition: str | None
    licence: str | None


def find_layout(names: Sequence[str], chosen: TableColumns, source: str) -> Layout:
    """Match the columns of a table with what the user has chosen, and the rest with their usual names.

    Raises:
        DocumentError: A chosen column does not exist, or no column looks like the text; the sentence names those
            there are.
    """
    listed = ", ".join(names) or "none"
    fields = {field: getattr(chosen, field) for field in _USUAL_NAMES}
    for name in (*fields.values(), *chosen.document):
        if name is not None and name not in names:
            raise DocumentError(f"{source} has no column {name!r}; its columns are: {listed}.")
    known = {_PLAIN.sub("", name.lower()): name for name in reversed(names)}
    taken = {name for name in fields.values() if name}
    for field, usual in _USUAL_NAMES.items():
        if fields[field] is None:
            free = (known[plain] for plain in usual if plain in known and known[plain] not in taken)
            fields[field] = next(free, None)
            if fields[field] is not None:
                taken.add(fields[field])
    if fields["text"] is None:
        raise DocumentError(f"{source} has no column that looks like text; choose one of its columns: {listed}.")
    document = chosen.document or tuple(known[plain] for plain in _DOCUMENT_NAMES if plain in known)[:1]
    if not document and fields["title"]:
        document = (fields["title"],)
    return Layout(document=document, **fields)
