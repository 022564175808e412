"""What is read, split, stored and found: documents made of blocks, passages cut from them, and how they are cited."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

_GENERIC = re.compile(
    r"(?:(?:draft|approved|final|full)\s+)?(?:summary\s+for\s+policy\s?makers|spm|technical\s+summary|ts|"
    r"executive\s+summary|synthesis\s+report|longer\s+report|headline\s+statements|frequently\s+asked\s+questions|"
    r"faqs?|annex(?:es)?|glossary|foreword|preface|introduction|references|index)",
    re.IGNORECASE,
)
"""Titles that every report of a series has."""
_SPECIAL = (
    (re.compile(r"\bsr\s?1\.?5\b|global\s+warming\s+of\s+1\.5", re.IGNORECASE), "SR15", 2018),
    (re.compile(r"\bsrccl\b|special\s+report\W+climate\s+change\s+and\s+land", re.IGNORECASE), "SRCCL", 2019),
    (re.compile(r"\bsrocc\b|ocean\s+and\s+cryosphere\s+in\s+a\s+changing", re.IGNORECASE), "SROCC", 2019),
    (re.compile(r"\bsrex\b|managing\s+the\s+risks\s+of\s+extreme\s+events", re.IGNORECASE), "SREX", 2012),
    (re.compile(r"\bsrren\b|renewable\s+energy\s+sources\s+and\s+climate", re.IGNORECASE), "SRREN", 2011),
)
_ASSESSMENT = re.compile(r"\bar\s?([3-6])\b", re.IGNORECASE)
_GROUP = re.compile(r"\b(?:wg|working\s+group)\s?(iii|ii|i|[1-3])\b|\b(syr|synthesis\s+report)\b", re.IGNORECASE)
_NUMERALS = {"i": "1", "ii": "2", "iii": "3"}
_YEARS = {
    ("6", "WG1"): 2021, ("6", "WG2"): 2022, ("6", "WG3"): 2022, ("6", "SYR"): 2023,
    ("5", "WG1"): 2013, ("5", "WG2"): 2014, ("5", "WG3"): 2014, ("5", "SYR"): 2014,
}  # fmt: skip
"""Where publication years of an assessment differ; the fourth and third are of one year each."""
_ONE_YEAR = {"4": 2007, "3": 2001}
_ABBREVIATED = re.compile(
    r"(?:ipcc\W*)?(?:ar[3-6]\W*)?(?:wg\W?(?:iii|ii|i|[1-3])|syr|sr\W?1\W?5|srccl|srocc|srex|srren)", re.I
)
"""Names of reports in tables and of files, for example ``wg1``, ``AR6-SYR``, ``sr15``."""
_CITED_AS = re.compile(r"cited\s+as:?\s*(?P<who>[A-Z][A-Za-z]+),\s*(?P<year>(?:19|20)\d\d)\b")


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph of a document, with what the source says about its place."""

    text: str
    """Plain text of one paragraph, cleaned, without line breaks."""
    page: int | None = None
    """Page number in the file, from 1, on which the paragraph begins."""
    last_page: int | None = None
    """Page on which it ends, where that is another one."""
    headings: tuple[str, ...] = ()
    """Headings above the paragraph, outermost first."""
    paragraph_id: str | None = None
    """The source's own id of the paragraph."""
    chapter: str | None = None
    """Chapter name or number, where the source has it apart from the headings."""
    url: str | None = None
    """Address of this paragraph, where it has one of its own."""


@dataclass(frozen=True, slots=True)
class Document:
    """One work as it was read: a PDF, a web page, a book, or the rows of a table that belong to one work."""

    id: str
    """Stable short hash of name and content: the same file gives the same id, on any machine, from any folder."""
    title: str
    source: str
    """File name as given by the user (no folder), or URL."""
    blocks: tuple[Block, ...]
    url: str | None = None
    report: str | None = None
    """The series or report the document belongs to, for example ``AR6 WG1``."""
    date: str | None = None
    """ISO 8601 date or year."""
    edition: str | None = None
    licence: str | None = None
    media: str = "text"
    """pdf, html, markdown, text, epub, docx or table."""
    path: str | None = field(default=None, compare=False, repr=False)
    """File that it was read from; None where that holds other documents as well."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file, page or row that was not read, and why, in one sentence."""

    source: str
    reason: str


@dataclass(frozen=True, slots=True)
class Passage:
    """About 2000 characters of one document that end at a sentence: what is embedded, found and cited."""

    id: str
    """``<document id>-<number>``, unique in a collection and stable for the same document and settings."""
    text: str
    document_id: str
    document: str
    """Title of the document."""
    source: str
    position: int
    """Number of the passage in its document, from 0."""
    headings: tuple[str, ...] = ()
    first_page: int | None = None
    last_page: int | None = None
    url: str | None = None
    report: str | None = None
    chapter: str | None = None
    paragraph_ids: tuple[str, ...] = ()
    date: str | None = None
    edition: str | None = None
    licence: str | None = None

    @property
    def citation(self) -> str:
        """Where the passage stands, in words: what the source has of title, report, chapter, heading, page and URL."""
        # Many PDFs of one series share their title ("Summary for Policymakers"): the file name tells them apart.
        told_apart = self.first_page is None or f"({self.source}" in self.document
        parts = [self.document if told_apart else f"{self.document} ({self.source})"]
        if self.report and self.report.lower() not in self.document.lower():
            parts.insert(0, self.report)
        if self.chapter and self.chapter.lower() not in self.document.lower():
            parts.append(self.chapter)
        if self.headings:
            parts.append(" > ".join(self.headings[-2:]))
        if self.first_page is not None:
            same = self.last_page in (None, self.first_page)
            parts.append(f"p. {self.first_page}" if same else f"pp. {self.first_page}-{self.last_page}")
        if self.paragraph_ids:
            ids = self.paragraph_ids
            parts.append(f"para. {ids[0]}" if len(ids) == 1 else f"para. {ids[0]} to {ids[-1]}")
        if self.url:
            parts.append(self.url)
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage found by a search."""

    passage: Passage
    rank: int
    """From 1."""
    score: float
    """What the list is sorted by: cosine (dense), BM25, their weighted sum (hybrid), or fused ranks (rrf)."""
    cosine: float | None = None
    """Cosine similarity between query and passage, where it was computed."""


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
    """How files are read. What is set here overrides what the file says of itself."""

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


def full_title(title: str, hints: Sequence[str]) -> str:
    """A title with report and year before it, where it is one that every report has, else as it is.

    The hints may tell the report, the most telling first: metadata, file name, text of the first pages. An example is
    ``IPCC SR15 (2018), Summary for Policymakers``.
    """
    if not _GENERIC.fullmatch(" ".join(title.split())):
        return title
    cited = next((match for hint in hints if (match := _CITED_AS.search(hint))), None)
    if named := _named(hints, cited["year"] if cited else None):
        return f"{named}, {title}"
    return f"{cited['who']} ({cited['year']}), {title}" if cited else title


def report_name(name: str, source: str) -> str:
    """A report's name with its year, where it goes by an abbreviation; any other name as it is.

    The file's name tells the cycle where the abbreviation does not: ``wg1`` in ``ipcc_ar6_paragraphs.jsonl`` is
    ``IPCC AR6 WG1 (2021)``.
    """
    if not _ABBREVIATED.fullmatch(name.strip()):
        return name
    return _named((name, f"{name} {source}"), None) or name


def _named(hints: Sequence[str], year: str | None) -> str | None:
    found = next((found for hint in hints if (found := _report(re.sub(r"[_\-]+", " ", hint)))), None)
    if found is None:
        return None
    name, known = found
    return f"IPCC {name} ({year or known})" if year or known else f"IPCC {name}"


def _report(text: str) -> tuple[str, int | None] | None:
    for pattern, name, year in _SPECIAL:
        if pattern.search(text):
            return name, year
    if assessment := _ASSESSMENT.search(text):
        group = _GROUP.search(text)
        if group is None:
            return f"AR{assessment[1]}", _ONE_YEAR.get(assessment[1])
        number = (group[1] or "").lower()
        part = "SYR" if group[2] else f"WG{_NUMERALS.get(number, number)}"
        return f"AR{assessment[1]} {part}", _YEARS.get((assessment[1], part), _ONE_YEAR.get(assessment[1]))
    return None
