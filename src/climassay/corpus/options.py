"""What a user may say about the files to be read, and what reading gives back."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from climassay.corpus.documents import Document, Skipped

MEBIBYTE = 1 << 20

PageCallback = Callable[[int, int], None]
"""Called with the number of the page that is read next, from 1, and the number of pages."""


@dataclass(frozen=True, slots=True)
class TableColumns:
    """Which column of a table holds what; a column that is not named is looked for by its usual names."""

    text: str | None = None
    """The paragraphs themselves."""
    document: tuple[str, ...] = ()
    """Rows with equal values in these columns make one document; without them the whole table is one document."""
    title: str | None = None
    """Title of the document the row belongs to."""
    report: str | None = None
    chapter: str | None = None
    headings: str | None = None
    """Headings above the paragraph: a list, or one string with ``>`` between the levels."""
    paragraph_id: str | None = None
    page: str | None = None
    url: str | None = None
    date: str | None = None
    edition: str | None = None
    licence: str | None = None


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How files are read. What is set here goes before what the file says of itself."""

    columns: TableColumns = field(default_factory=TableColumns)
    """Columns of CSV, TSV, JSON, JSONL and Parquet files."""
    title: str | None = None
    report: str | None = None
    url: str | None = None
    date: str | None = None
    """ISO 8601 date or year."""
    edition: str | None = None
    licence: str | None = None
    captions: bool = False
    """Keep captions of figures and tables in PDF files."""
    references: bool = False
    """Keep lists of references in PDF files."""
    max_bytes: int = 512 * MEBIBYTE
    """Largest file, after unpacking, that is read into memory."""

    @property
    def overrides(self) -> Mapping[str, str]:
        """The fields of a document that the user has set, by name."""
        names = ("title", "report", "url", "date", "edition", "licence")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


@dataclass(frozen=True, slots=True)
class ReadResult:
    """What one file gave."""

    source: str
    """File name without folder."""
    documents: tuple[Document, ...] = ()
    skipped: tuple[Skipped, ...] = ()
