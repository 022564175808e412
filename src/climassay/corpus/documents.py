"""What is read, split, stored and found: documents made of blocks, and the passages cut from them."""

from dataclasses import dataclass


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
        parts = [self.document if self.first_page is None else f"{self.document} ({self.source})"]
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
