"""Documents made of blocks, passages, and their citations: the records that readers return and searches find."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING

from climassay.corpus.sentences import sentence_spans
from climassay.errors import InputError
from climassay.settings import settings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_GENERIC_PARTS = re.compile(
    r"\b(?:(?:draft|approved|final|full)\s+)?(?:summary\s+for\s+policy\s?makers|spm|technical\s+summary|ts|"
    r"executive\s+summary|synthesis\s+report|longer\s+report|headline\s+statements|frequently\s+asked\s+questions|"
    r"faqs?|annex(?:es)?|glossary|foreword|preface|introduction|references|index)\b",
    re.IGNORECASE,
)
"""Parts of titles that every report of a series has; a title of such parts alone does not tell reports apart."""
_SEPARATORS = " ,.;:|/()-\N{EN DASH}\N{EM DASH}"
_SPECIAL = (
    (re.compile(r"\bsr\s?1\.?5\b|global\s+warming\s+of\s+1\.5", re.IGNORECASE), "SR15", 2018),
    (re.compile(r"\bsrccl\b|special\s+report\W+climate\s+change\s+and\s+land", re.IGNORECASE), "SRCCL", 2019),
    (re.compile(r"\bsrocc\b|ocean\s+and\s+cryosphere\s+in\s+a\s+changing", re.IGNORECASE), "SROCC", 2019),
    (re.compile(r"\bsrex\b|managing\s+the\s+risks\s+of\s+extreme\s+events", re.IGNORECASE), "SREX", 2012),
    (re.compile(r"\bsrren\b|renewable\s+energy\s+sources\s+and\s+climate", re.IGNORECASE), "SRREN", 2011),
)
_ASSESSMENT = re.compile(r"\bar\s?([3-6])\b|\b(third|fourth|fifth|sixth)\s+assessment\s+report\b", re.IGNORECASE)
_ORDINALS = {"third": "3", "fourth": "4", "fifth": "5", "sixth": "6"}
_GROUP = re.compile(r"\b(?:wg|working\s+group)\s?(iii|ii|i|[1-3])\b|\b(syr|synthesis\s+report)\b", re.IGNORECASE)
_NUMERALS = {"i": "1", "ii": "2", "iii": "3"}
_YEARS = {
    ("6", "WG1"): 2021, ("6", "WG2"): 2022, ("6", "WG3"): 2022, ("6", "SYR"): 2023,
    ("5", "WG1"): 2013, ("5", "WG2"): 2014, ("5", "WG3"): 2014, ("5", "SYR"): 2014,
}  # fmt: skip
"""Publication years by assessment and part, for assessments whose parts appeared in different years."""
_ONE_YEAR = {"4": 2007, "3": 2001}
_ABBREVIATION = re.compile(
    r"(?:ipcc\W*)?(?:ar[3-6]\W*)?(?:wg\W?(?:iii|ii|i|[1-3])|syr|sr\W?1\W?5|srccl|srocc|srex|srren)", re.I
)
"""Abbreviated report names in tables and file names, for example ``wg1``, ``AR6-SYR``, ``sr15``."""
_CITED_AS = re.compile(r"cited\s+as:?\s*(?P<who>[A-Z][A-Za-z]+),\s*(?P<year>(?:19|20)\d\d)\b")


@dataclass(frozen=True, slots=True)
class Block:
    """Paragraph of a document with its location in the source."""

    text: str
    """Plain text of one paragraph, cleaned, without line breaks."""
    page: int | None = None
    """Page number in the file, from 1, on which the paragraph begins."""
    last_page: int | None = None
    """Page on which the paragraph ends, if it differs from ``page``."""
    headings: tuple[str, ...] = ()
    """Headings above the paragraph, outermost first."""
    paragraph_id: str | None = None
    """Paragraph id that the source assigns."""
    chapter: str | None = None
    """Chapter name or number, if the source states it outside the headings."""
    url: str | None = None
    """URL of this paragraph, if it has its own."""
    footnote: bool = False
    """True for a footnote, which follows the paragraph it belongs to (PDF and Word files only)."""


@dataclass(frozen=True, slots=True)
class OmittedParts:
    """Number of parts of one kind that a reader left out of a document, with the pages they are on."""

    kind: str
    """Plural noun that follows the number in a sentence, for example ``references`` or ``navigation blocks``."""
    count: int
    pages: tuple[int, ...] = ()
    """Pages in ascending order, from 1; empty for formats without pages."""

    def __str__(self) -> str:
        """Return the count, the kind and the pages, for example ``2 references (pages 7 to 9)``."""
        kind = re.sub("s$", "", re.sub("^(blocks|parts|rows|lines) ", lambda match: f"{match[1][:-1]} ", self.kind))
        words = f"{self.count:,} {kind if self.count == 1 else self.kind}"
        return f"{words} (page{'s' * (len(self.pages) > 1)} {_page_ranges(self.pages)})" if self.pages else words


def _page_ranges(pages: Sequence[int]) -> str:
    """Return ascending page numbers with neighbours joined, for example ``3, 7 to 9``."""
    ranges: list[list[int]] = []
    for page in pages:
        if ranges and page == ranges[-1][-1] + 1:
            ranges[-1][1:] = [page]
        else:
            ranges.append([page])
    return ", ".join(" to ".join(map(str, ends)) for ends in ranges)


def merge_left_out(groups: Iterable[Iterable[OmittedParts]]) -> tuple[OmittedParts, ...]:
    """Combine counts of left-out parts into one entry per kind, with the total count and all pages."""
    counts: dict[str, int] = {}
    pages: dict[str, set[int]] = {}
    for entry in (entry for group in groups for entry in group):
        counts[entry.kind] = counts.get(entry.kind, 0) + entry.count
        pages.setdefault(entry.kind, set()).update(entry.pages)
    return tuple(OmittedParts(kind, count, tuple(sorted(pages[kind]))) for kind, count in counts.items() if count)


@dataclass(frozen=True, slots=True)
class Document:
    """Document as read from a file: a PDF, a web page, a book, or the rows of a table that belong to one work."""

    id: str
    """Hash of the content, 16 hexadecimal digits; independent of machine and folder."""
    title: str
    source: str
    """File name without folder, or URL."""
    blocks: tuple[Block, ...]
    url: str | None = None
    report: str | None = None
    """Series or report the document belongs to, for example ``AR6 WG1``."""
    date: str | None = None
    """ISO 8601 date or year."""
    edition: str | None = None
    licence: str | None = None
    media: str = "text"
    """File format: pdf, html, markdown, text, epub, docx or table."""
    left_out: tuple[OmittedParts, ...] = field(default=(), compare=False)
    """Parts that the reader left out, at most one entry per kind."""
    author: str | None = None
    """Person or organisation that wrote the document."""
    path: str | None = field(default=None, compare=False, repr=False)
    """Path of the file; None if the file contains several documents."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """File, page or row that could not be read, with the reason in one sentence."""

    source: str
    reason: str


@dataclass(frozen=True, slots=True)
class Passage:
    """Part of a document, about 2000 characters, that ends at a sentence; the unit of search and citation."""

    id: str
    """``<document id>-<index>``, unique in a collection and stable for the same document and settings."""
    text: str
    document_id: str
    document: str
    """Title of the document."""
    source: str
    position: int
    """Index of the passage in its document, from 0."""
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
    author: str | None = None

    @property
    def citation(self) -> str:
        """Citation with author, report, title, chapter, headings, pages, paragraph ids and URL, if known."""
        # Many PDFs of one series share their title ("Summary for Policymakers"): the file name tells them apart.
        is_distinct = self.first_page is None or f"({self.source}" in self.document
        parts = [self.document if is_distinct else f"{self.document} ({self.source})"]
        if self.report and self.report.lower() not in self.document.lower():
            parts.insert(0, self.report)
        if self.author and self.author.lower() not in ", ".join(parts).lower():
            parts.insert(0, self.author)
        if self.chapter and self.chapter.lower() not in self.document.lower():
            parts.append(self.chapter)
        if self.headings:
            parts.append(" > ".join(self.headings[-2:]))
        if self.first_page is not None:
            is_single_page = self.last_page in (None, self.first_page)
            parts.append(f"p. {self.first_page}" if is_single_page else f"pp. {self.first_page}-{self.last_page}")
        if self.paragraph_ids:
            ids = self.paragraph_ids
            parts.append(f"para. {ids[0]}" if len(ids) == 1 else f"para. {ids[0]} to {ids[-1]}")
        if self.url:
            parts.append(self.url)
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Hit:
    """Passage returned by a search."""

    passage: Passage
    rank: int
    """Rank, from 1."""
    score: float
    """Score that hits are sorted by: cosine (dense), BM25, their weighted sum (hybrid), or fused ranks (rrf)."""
    cosine: float | None = None
    """Cosine similarity of query and passage, if it was computed."""


MEBIBYTE = 1 << 20

PageCallback = Callable[[int, int], None]
"""Called before each page is read, with the page number from 1 and the number of pages."""


@dataclass(frozen=True, slots=True)
class TableColumns:
    """Column names of a table by their content; columns that are not named are found by common names."""

    text: str | None = None
    """Text of the paragraphs."""
    document: tuple[str, ...] = ()
    """Columns whose values identify a document; if empty, the whole table is one document."""
    title: str | None = None
    """Title of the row's document."""
    report: str | None = None
    chapter: str | None = None
    headings: str | None = None
    """Headings above the paragraph: a list, or a string with ``>`` between levels."""
    paragraph_id: str | None = None
    page: str | None = None
    url: str | None = None
    date: str | None = None
    edition: str | None = None
    licence: str | None = None
    author: str | None = None


@settings(subject="The options of reading")
class ReadOptions:
    """Options for reading files; metadata set here overrides the file's own."""

    columns: TableColumns = field(default_factory=TableColumns)
    """Columns of CSV, TSV, JSON, JSONL and Parquet files."""
    title: str | None = None
    """Title of all documents."""
    report: str | None = None
    """Report or series to which the documents belong."""
    url: str | None = None
    """Web address of the documents."""
    date: str | None = None
    """ISO date or year of the documents."""
    edition: str | None = None
    """Edition of the documents."""
    licence: str | None = None
    """Licence of the documents."""
    author: str | None = None
    """Person or organisation that wrote the documents."""
    captions: bool = False
    """Include captions of figures and tables in PDF files."""
    references: bool = False
    """Include lists of references."""
    tables: bool = True
    """Include rows of tables of PDF files."""
    max_bytes: int = 512 * MEBIBYTE
    """Maximum file size in bytes, after unpacking."""

    @property
    def overrides(self) -> Mapping[str, str]:
        """Document fields set by the user, by name."""
        names = ("title", "report", "url", "date", "edition", "licence", "author")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


@dataclass(frozen=True, slots=True)
class ReadResult:
    """Documents read from one file, and the parts that could not be read."""

    source: str
    """File name without folder."""
    documents: tuple[Document, ...] = ()
    skipped: tuple[Skipped, ...] = ()


_DATE = re.compile(r"\d{4}(?:-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01]))?)?")


def check_date(date: str) -> str:
    """Return a date unchanged if it is a year, a month or a day in ISO 8601.

    Raises:
        InputError: It is none of these.
    """
    if not _DATE.fullmatch(date):
        raise InputError(f"A date is a year, or looks like 2023-03 or 2023-03-20; this one is {date!r}.")
    return date


def full_title(title: str, hints: Sequence[str]) -> str:
    """Return a title, with report and year before it if it is generic such as "Summary for Policymakers".

    Args:
        title: Title of the document.
        hints: Texts that may name the report, the most reliable first: metadata, file name, first pages.

    Returns:
        For example ``IPCC SR15 (2018), Summary for Policymakers``; the unchanged title if it is specific or no
        hint names a report.
    """
    parts = _GENERIC_PARTS.findall(" ".join(title.split()))
    if not parts or _GENERIC_PARTS.sub("", title).strip(_SEPARATORS):
        return title
    # "Synthesis Report" names the part of an assessment, and another text the assessment.
    hints = [f"{title} {hint}" for hint in hints]
    cited = next((match for hint in hints if (match := _CITED_AS.search(hint))), None)
    if named := _ipcc_name(hints, cited["year"] if cited else None):
        # The name of a synthesis report says already what it is.
        rest = [part for part in parts if not (" SYR" in named and part.lower() == "synthesis report")]
        return ", ".join([named, *dict.fromkeys(_in_title_case(part) for part in rest)])
    return f"{cited['who']} ({cited['year']}), {title}" if cited else title


def _in_title_case(part: str) -> str:
    return part.title().replace(" For ", " for ") if part.isupper() and " " in part else part


def report_name(name: str, source: str) -> str:
    """Return the full name of an abbreviated IPCC report with its year; other names are returned unchanged.

    If the abbreviation does not include the assessment, the file name ``source`` is searched for it: ``wg1`` in
    ``ipcc_ar6_paragraphs.jsonl`` becomes ``IPCC AR6 WG1 (2021)``.
    """
    if not _ABBREVIATION.fullmatch(name.strip()):
        return name
    return _ipcc_name((name, f"{name} {source}"), None) or name


def _ipcc_name(hints: Sequence[str], year: str | None) -> str | None:
    result = next((result for hint in hints if (result := _find_report(re.sub(r"[_\-]+", " ", hint)))), None)
    if result is None:
        return None
    name, default_year = result
    return f"IPCC {name} ({year or default_year})" if year or default_year else f"IPCC {name}"


def _find_report(text: str) -> tuple[str, int | None] | None:
    for pattern, name, year in _SPECIAL:
        if pattern.search(text):
            return name, year
    if assessment := _ASSESSMENT.search(text):
        group = _GROUP.search(text)
        assessment_number = assessment[1] or _ORDINALS[assessment[2].lower()]
        if group is None:
            return f"AR{assessment_number}", _ONE_YEAR.get(assessment_number)
        number = (group[1] or "").lower()
        part = "SYR" if group[2] else f"WG{_NUMERALS.get(number, number)}"
        return f"AR{assessment_number} {part}", _YEARS.get((assessment_number, part), _ONE_YEAR.get(assessment_number))
    return None


MIN_PASSAGE_SIZE = 100
"""Minimum passage size in characters."""
MAX_TAIL_SHARE = 0.2
"""Share of the passage size below which the last piece of a section is merged into the passage before it."""
MAX_STRETCH = 1.2
"""Maximum length of a merged passage, as a multiple of the passage size."""
MIN_OVERLAP = 20
"""Minimum number of shared characters that count as an overlap of neighbouring passages."""


@dataclass(frozen=True, slots=True)
class _SentencePart:
    """Sentence, or part of a long sentence, with the index of its block."""

    text: str
    block: int


def split_passages(document: Document, *, size: int = 2000, overlap: int = 200) -> list[Passage]:
    """Split a document into passages of about ``size`` characters that end at sentences.

    A passage never crosses a chapter, and ends early at a new section if it is at least half full. Within a section,
    each passage starts with the last whole sentences of the one before, up to ``overlap`` characters.

    Args:
        document: Document to split.
        size: Target number of characters; no passage is longer than 1.2 times this. A longer sentence is cut
            between words.
        overlap: Maximum number of characters that two neighbours share.

    Returns:
        Passages in reading order. The same document and settings give the same passages with the same ids.

    Raises:
        InputError: The size is below 100, or the overlap is negative or more than half the size.
    """
    if size < MIN_PASSAGE_SIZE:
        raise InputError(f"A passage size of {size} characters is too small: use at least {MIN_PASSAGE_SIZE}.")
    if not 0 <= overlap <= size // 2:
        raise InputError(f"An overlap of {overlap} characters does not fit passages of {size}: use 0 to {size // 2}.")
    passages: list[Passage] = []
    for run in _group_by_section(document, size):
        for pieces in _distribute(run, size, overlap):
            passages.append(_build_passage(document, pieces, len(passages)))
    return passages


def _group_by_section(document: Document, size: int) -> Iterator[list[_SentencePart]]:
    """Group sentence parts by chapter; a group also ends at a new section if it fills at least half a passage."""
    run: list[_SentencePart] = []
    length = 0
    last: Block | None = None
    for number, block in enumerate(document.blocks):
        pieces = [_SentencePart(text, number) for text in _sentences(block.text, size)]
        if not pieces:
            continue
        chapter_ends = last is not None and (last.chapter, last.headings[:1]) != (block.chapter, block.headings[:1])
        section_ends = last is not None and last.headings != block.headings and length >= size // 2
        if run and (chapter_ends or section_ends):
            yield run
            run, length = [], 0
        run.extend(pieces)
        length += len(block.text) + 1
        last = block
    if run:
        yield run


def _sentences(text: str, size: int) -> Iterator[str]:
    """Yield the sentences of a paragraph, cutting sentences longer than ``size`` between words."""
    for start, end in sentence_spans(text):
        sentence = text[start:end].strip()
        while len(sentence) > size:
            limit = sentence.rfind(" ", size // 2, size + 1)
            limit = limit if limit > 0 else size
            yield sentence[:limit].rstrip()
            sentence = sentence[limit:].lstrip()
        if sentence:
            yield sentence


def _distribute(run: list[_SentencePart], size: int, overlap: int) -> list[list[_SentencePart]]:
    """Distribute the sentence parts of a group over passages; consecutive passages overlap."""
    filled: list[list[_SentencePart]] = []
    current: list[_SentencePart] = []
    length = 0
    n_new = 0  # pieces of `current` that no earlier passage has
    for piece in run:
        if current and length + 1 + len(piece.text) > size:
            filled.append(current)
            current = _overlap_pieces(current, min(overlap, size - len(piece.text) - 1))
            length = _n_characters(current)
            n_new = 0
        current = [*current, piece]
        length += len(piece.text) + (len(current) > 1)
        n_new += 1
    tail = current[-n_new:]
    if (
        filled
        and _n_characters(tail) < MAX_TAIL_SHARE * size
        and _n_characters(filled[-1]) + 1 + _n_characters(tail) <= MAX_STRETCH * size
    ):
        filled[-1] = filled[-1] + tail
    else:
        filled.append(current)
    return filled


def _n_characters(pieces: list[_SentencePart]) -> int:
    return sum(len(piece.text) for piece in pieces) + max(0, len(pieces) - 1)


def _overlap_pieces(pieces: list[_SentencePart], room: int) -> list[_SentencePart]:
    """Return the last pieces that fit into ``room`` characters, excluding the first piece."""
    n_pieces = n_characters = 0
    for piece in reversed(pieces[1:]):
        n_characters += len(piece.text) + (n_pieces > 0)
        if n_characters > room:
            break
        n_pieces += 1
    return pieces[len(pieces) - n_pieces :]


def _build_passage(document: Document, pieces: list[_SentencePart], position: int) -> Passage:
    numbers = dict.fromkeys(piece.block for piece in pieces)
    blocks = [document.blocks[number] for number in numbers]
    parts = [pieces[0].text]
    for before, after in pairwise(pieces):
        parts += (" " if before.block == after.block else "\n", after.text)
    pages = [page for block in blocks for page in (block.page, block.last_page) if page is not None]
    urls = {block.url for block in blocks}
    levels = zip(*(block.headings for block in blocks), strict=False)
    return Passage(
        id=f"{document.id}-{position}",
        text="".join(parts),
        document_id=document.id,
        document=document.title,
        source=document.source,
        position=position,
        headings=tuple(level[0] for level in takewhile(lambda level: len(set(level)) == 1, levels)),
        first_page=min(pages, default=None),
        last_page=max(pages, default=None),
        url=blocks[0].url if len(urls) == 1 and blocks[0].url else document.url or blocks[0].url,
        report=document.report,
        chapter=blocks[0].chapter,
        paragraph_ids=tuple(dict.fromkeys(block.paragraph_id for block in blocks if block.paragraph_id)),
        date=document.date,
        edition=document.edition,
        licence=document.licence,
        author=document.author,
    )


def shared_start(before: str, passage: str) -> int:
    """Return the number of characters at the start of a passage that repeat the end of the text ``before`` it.

    0 if fewer than :data:`MIN_OVERLAP`.
    """
    start = passage[:MIN_OVERLAP]
    if len(start) < MIN_OVERLAP:
        return 0
    # The first place where all the rest of the text before is the beginning of the passage is the longest overlap.
    index = before.find(start, max(0, len(before) - len(passage)))
    while index >= 0:
        if passage.startswith(before[index:]):
            return len(before) - index
        index = before.find(start, index + 1)
    return 0


def join_passages(texts: Sequence[str]) -> str:
    """Join consecutive passages without repeating overlaps; passages without overlap are separated by an empty line."""
    joined = ""
    for text in texts:
        shared = shared_start(joined, text)
        joined += text[shared:] if shared or not joined else "\n\n" + text
    return joined


def excerpt(sentences: Sequence[str], similarities: "NDArray[np.float64]", max_words: int) -> str:
    """Return the sentences most similar to a query, in text order, within a word limit; gaps are marked with dots.

    Args:
        sentences: Sentences of one passage, in order.
        similarities: Similarity of each sentence to the query, shape [sentences].
        max_words: Maximum number of words; 0 returns all sentences. The most similar sentence is always included,
            truncated if it alone is longer.
    """
    if not max_words:
        return " ".join(sentences)
    best = sentences[int(similarities.argmax())].split()
    if len(best) > max_words:
        return " ".join(best[:max_words]) + " ..."
    indices: set[int] = set()
    room = max_words
    for index in (-similarities).argsort(kind="stable"):
        length = len(sentences[index].split())
        if length <= room:
            indices.add(int(index))
            room -= length
    ordered = sorted(indices)
    pieces = [sentences[ordered[0]]]
    for before, index in pairwise(ordered):
        pieces.append(("... " if index > before + 1 else "") + sentences[index])
    return " ".join(pieces)
