"""Records that readers return and searches find: documents, their blocks and passages, and citations."""

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
"""Pattern of generic words in titles of reports; a title of only such words does not identify a report."""
_SEPARATORS = " ,.;:|/()-\N{EN DASH}\N{EM DASH}"
_SPECIAL_REPORTS = (
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
"""Publication year of each part of the fifth and sixth assessment reports, by assessment and part."""
_SINGLE_YEARS = {"4": 2007, "3": 2001}
_ABBREVIATION = re.compile(
    r"(?:ipcc\W*)?(?:ar[3-6]\W*)?(?:wg\W?(?:iii|ii|i|[1-3])|syr|sr\W?1\W?5|srccl|srocc|srex|srren)", re.I
)
"""Pattern of abbreviated report names in tables and file names, for example ``wg1``, ``AR6-SYR``, ``sr15``."""
_CITED_AS = re.compile(r"cited\s+as:?\s*(?P<who>[A-Z][A-Za-z]+),\s*(?P<year>(?:19|20)\d\d)\b")


@dataclass(frozen=True, slots=True)
class Block:
    """Paragraph of a document with its location in the source."""

    text: str
    """Cleaned plain text of the paragraph, without line breaks."""
    page: int | None = None
    """Page on which the paragraph begins, numbered from 1."""
    last_page: int | None = None
    """Page on which the paragraph ends, if it differs from ``page``."""
    headings: tuple[str, ...] = ()
    """Headings above the paragraph, outermost first."""
    paragraph_id: str | None = None
    """Id of the paragraph in the source, if it has one."""
    chapter: str | None = None
    """Name or number of the chapter, if the source states it outside the headings."""
    url: str | None = None
    """URL of this paragraph; None if only the document has a URL."""
    footnote: bool = False
    """Whether the block is a footnote of a PDF or Word file. A footnote follows the paragraph that refers to it."""


@dataclass(frozen=True, slots=True)
class OmittedParts:
    """Number of parts of one kind that a reader omitted from a document, with their pages."""

    kind: str
    """Plural noun for the kind of part, for example ``references`` or ``navigation blocks``."""
    count: int
    pages: tuple[int, ...] = ()
    """Pages in ascending order, from 1; empty for formats without pages."""

    def __str__(self) -> str:
        """Return count, kind and pages, for example ``2 references (pages 7 to 9)``."""
        kind = re.sub("s$", "", re.sub("^(blocks|parts|rows|lines) ", lambda match: f"{match[1][:-1]} ", self.kind))
        words = f"{self.count:,} {kind if self.count == 1 else self.kind}"
        return f"{words} (page{'s' * (len(self.pages) > 1)} {_format_page_ranges(self.pages)})" if self.pages else words


def _format_page_ranges(pages: Sequence[int]) -> str:
    """Format ascending page numbers, joining consecutive ones, for example ``3, 7 to 9``."""
    ranges: list[list[int]] = []
    for page in pages:
        if ranges and page == ranges[-1][-1] + 1:
            ranges[-1][1:] = [page]
        else:
            ranges.append([page])
    return ", ".join(" to ".join(map(str, ends)) for ends in ranges)


def merge_omitted_parts(groups: Iterable[Iterable[OmittedParts]]) -> tuple[OmittedParts, ...]:
    """Merge several lists of omitted parts into one entry per kind, with the total count and all pages."""
    counts: dict[str, int] = {}
    pages: dict[str, set[int]] = {}
    for entry in (entry for group in groups for entry in group):
        counts[entry.kind] = counts.get(entry.kind, 0) + entry.count
        pages.setdefault(entry.kind, set()).update(entry.pages)
    return tuple(OmittedParts(kind, count, tuple(sorted(pages[kind]))) for kind, count in counts.items() if count)


@dataclass(frozen=True, slots=True)
class Document:
    """Document read from a file: a PDF, a web page, a book, or the table rows of one work."""

    id: str
    """Hash of the content, 16 hexadecimal digits; does not depend on machine or folder."""
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
    omitted_parts: tuple[OmittedParts, ...] = field(default=(), compare=False)
    """Parts that the reader omitted, with one entry per kind."""
    author: str | None = None
    """Person or organisation that wrote the document."""
    path: str | None = field(default=None, compare=False, repr=False)
    """Path of the file; None if the file contains several documents."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """File, page or row that could not be read."""

    source: str
    reason: str
    """Reason in one sentence."""

    def __str__(self) -> str:
        """Return the reason, preceded by the source unless the reason begins with it or contains its path."""
        is_named = self.reason.startswith(f"{self.source} ") or f"/{self.source}" in self.reason
        return self.reason if is_named else f"{self.source}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Passage:
    """Part of a document, about 2000 characters long, that ends at a sentence; the unit of search and citation."""

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
        """Citation built from author, report, title, chapter, headings, pages, paragraph ids and URL, if known."""
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
    """Score by which hits are sorted. Depending on the search mode, it is the cosine (dense), the BM25 score (bm25),
    the weighted sum of both (hybrid), or the reciprocal rank fusion of both (rrf)."""
    cosine: float | None = None
    """Cosine similarity of query and passage; None if it was not computed."""


MEBIBYTE = 1 << 20

PageCallback = Callable[[int, int], None]
"""Function called before each page is read, with the page number (from 1) and the number of pages."""


@dataclass(frozen=True, slots=True)
class TableColumns:
    """Names of the table columns that hold each field; columns whose name is None are found by common names."""

    text: str | None = None
    """Column with the text of the paragraphs."""
    document: tuple[str, ...] = ()
    """Columns whose values identify a document; if empty, the whole table is one document."""
    title: str | None = None
    """Column with the title of the document."""
    report: str | None = None
    chapter: str | None = None
    headings: str | None = None
    """Column with the headings above the paragraph, as a list, or as a string with ``>`` between levels."""
    paragraph_id: str | None = None
    page: str | None = None
    url: str | None = None
    date: str | None = None
    edition: str | None = None
    licence: str | None = None
    author: str | None = None


@settings(subject="The options of reading")
class ReadOptions:
    """Options for reading files; metadata set here override those in the file."""

    columns: TableColumns = field(default_factory=TableColumns)
    """Column names of tables (CSV, TSV, JSON, JSONL and Parquet files)."""
    title: str | None = None
    """Title given to all documents."""
    report: str | None = None
    """Report or series to which the documents belong."""
    url: str | None = None
    """Web address given to all documents."""
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
        """Metadata set by the user, by field of :class:`Document`."""
        names = ("title", "report", "url", "date", "edition", "licence", "author")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


@dataclass(frozen=True, slots=True)
class ReadResult:
    """Documents read from one file, and the parts of the file that could not be read."""

    source: str
    """File name without folder."""
    documents: tuple[Document, ...] = ()
    skipped: tuple[Skipped, ...] = ()


_DATE = re.compile(r"\d{4}(?:-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01]))?)?")


def check_date(date: str) -> str:
    """Check a date and return it unchanged.

    Raises:
        InputError: The date is not a year, a month or a day in ISO 8601.
    """
    if not _DATE.fullmatch(date):
        raise InputError(f"A date is a year, or looks like 2023-03 or 2023-03-20; this one is {date!r}.")
    return date


def full_title(title: str, hints: Sequence[str]) -> str:
    """Put report and year before a generic title such as "Summary for Policymakers".

    Args:
        title: Title of the document.
        hints: Texts that may name the report (metadata, file name, first pages), the most reliable first.

    Returns:
        Title such as ``IPCC SR15 (2018), Summary for Policymakers``; unchanged if it is already specific or if no hint
            names a report.
    """
    parts = _GENERIC_PARTS.findall(" ".join(title.split()))
    if not parts or _GENERIC_PARTS.sub("", title).strip(_SEPARATORS):
        return title
    # "Synthesis Report" names the part of an assessment, and another text the assessment.
    hints = [f"{title} {hint}" for hint in hints]
    citation = next((match for hint in hints if (match := _CITED_AS.search(hint))), None)
    if report := _find_ipcc_name(hints, citation["year"] if citation else None):
        # The name of a synthesis report says already what it is.
        other_parts = [part for part in parts if not (" SYR" in report and part.lower() == "synthesis report")]
        return ", ".join([report, *dict.fromkeys(_to_title_case(part) for part in other_parts)])
    return f"{citation['who']} ({citation['year']}), {title}" if citation else title


def _to_title_case(part: str) -> str:
    return part.title().replace(" For ", " for ") if part.isupper() and " " in part else part


def expand_report_name(name: str, source: str) -> str:
    """Expand an abbreviated IPCC report name and add its year; other names are returned unchanged.

    If the abbreviation does not include the assessment, it is taken from the file name ``source``: ``wg1`` in
    ``ipcc_ar6_paragraphs.jsonl`` becomes ``IPCC AR6 WG1 (2021)``.
    """
    if not _ABBREVIATION.fullmatch(name.strip()):
        return name
    return _find_ipcc_name((name, f"{name} {source}"), None) or name


def _find_ipcc_name(hints: Sequence[str], year: str | None) -> str | None:
    result = next((result for hint in hints if (result := _find_report(re.sub(r"[_\-]+", " ", hint)))), None)
    if result is None:
        return None
    name, default_year = result
    return f"IPCC {name} ({year or default_year})" if year or default_year else f"IPCC {name}"


def _find_report(text: str) -> tuple[str, int | None] | None:
    for pattern, name, year in _SPECIAL_REPORTS:
        if pattern.search(text):
            return name, year
    if assessment := _ASSESSMENT.search(text):
        group = _GROUP.search(text)
        assessment_number = assessment[1] or _ORDINALS[assessment[2].lower()]
        if group is None:
            return f"AR{assessment_number}", _SINGLE_YEARS.get(assessment_number)
        number = (group[1] or "").lower()
        part = "SYR" if group[2] else f"WG{_NUMERALS.get(number, number)}"
        return f"AR{assessment_number} {part}", _YEARS.get(
            (assessment_number, part), _SINGLE_YEARS.get(assessment_number)
        )
    return None


MIN_PASSAGE_SIZE = 100
"""Minimum passage size in characters."""
MAX_TAIL_SHARE = 0.2
"""A section's last passage is merged with the previous one if it is shorter than this fraction of the passage size."""
MAX_STRETCH = 1.2
"""Maximum length of a merged passage, as a multiple of the passage size."""
MIN_OVERLAP = 20
"""Minimum number of characters that two consecutive passages have in common if they overlap."""


@dataclass(frozen=True, slots=True)
class _SentencePart:
    """Sentence, or part of a sentence that is longer than a passage."""

    text: str
    block: int


def split_passages(document: Document, *, size: int = 2000, overlap: int = 200) -> list[Passage]:
    """Split a document into passages of about ``size`` characters that end at sentences.

    A passage never crosses a chapter, and ends early at a new section if it is at least half full. Within a section,
    each passage starts with the last sentences of the previous one, up to ``overlap`` characters.

    Args:
        document: Document to split.
        size: Target length in characters; no passage is longer than 1.2 times this. A longer sentence is split between
            words.
        overlap: Maximum number of characters that consecutive passages share.

    Returns:
        Passages in reading order. The same document and settings always give the same passages and ids.

    Raises:
        InputError: The size is below 100, or the overlap is negative or more than half the size.
    """
    if size < MIN_PASSAGE_SIZE:
        raise InputError(f"A passage size of {size} characters is too small: use at least {MIN_PASSAGE_SIZE}.")
    if not 0 <= overlap <= size // 2:
        raise InputError(f"An overlap of {overlap} characters does not fit passages of {size}: use 0 to {size // 2}.")
    passages: list[Passage] = []
    for group in _group_by_section(document, size):
        for parts in _distribute_over_passages(group, size, overlap):
            passages.append(_build_passage(document, parts, len(passages)))
    return passages


def _group_by_section(document: Document, size: int) -> Iterator[list[_SentencePart]]:
    """Yield groups of sentence parts: a new chapter starts a group, as does a new section after half a passage."""
    group: list[_SentencePart] = []
    length = 0
    last_block: Block | None = None
    for block_index, block in enumerate(document.blocks):
        parts = [_SentencePart(text, block_index) for text in _split_sentences(block.text, size)]
        if not parts:
            continue
        is_new_chapter = last_block is not None and (last_block.chapter, last_block.headings[:1]) != (
            block.chapter,
            block.headings[:1],
        )
        is_new_section = last_block is not None and last_block.headings != block.headings and length >= size // 2
        if group and (is_new_chapter or is_new_section):
            yield group
            group, length = [], 0
        group.extend(parts)
        length += len(block.text) + 1
        last_block = block
    if group:
        yield group


def _split_sentences(text: str, size: int) -> Iterator[str]:
    """Yield the sentences of a paragraph. Sentences longer than ``size`` are split between words."""
    for start, end in sentence_spans(text):
        sentence = text[start:end].strip()
        while len(sentence) > size:
            split_index = sentence.rfind(" ", size // 2, size + 1)
            split_index = split_index if split_index > 0 else size
            yield sentence[:split_index].rstrip()
            sentence = sentence[split_index:].lstrip()
        if sentence:
            yield sentence


def _distribute_over_passages(group: list[_SentencePart], size: int, overlap: int) -> list[list[_SentencePart]]:
    passages: list[list[_SentencePart]] = []
    last_passage: list[_SentencePart] = []
    length = 0
    n_new = 0  # parts of `last_passage` that no earlier passage has
    for part in group:
        if last_passage and length + 1 + len(part.text) > size:
            passages.append(last_passage)
            last_passage = _select_overlap(last_passage, min(overlap, size - len(part.text) - 1))
            length = _count_characters(last_passage)
            n_new = 0
        last_passage = [*last_passage, part]
        length += len(part.text) + (len(last_passage) > 1)
        n_new += 1
    tail = last_passage[-n_new:]
    if (
        passages
        and _count_characters(tail) < MAX_TAIL_SHARE * size
        and _count_characters(passages[-1]) + 1 + _count_characters(tail) <= MAX_STRETCH * size
    ):
        passages[-1] = passages[-1] + tail
    else:
        passages.append(last_passage)
    return passages


def _count_characters(parts: list[_SentencePart]) -> int:
    return sum(len(part.text) for part in parts) + max(0, len(parts) - 1)


def _select_overlap(parts: list[_SentencePart], max_characters: int) -> list[_SentencePart]:
    """Return the last sentence parts that together fit into ``max_characters``; the first part is never included."""
    n_parts = n_characters = 0
    for part in reversed(parts[1:]):
        n_characters += len(part.text) + (n_parts > 0)
        if n_characters > max_characters:
            break
        n_parts += 1
    return parts[len(parts) - n_parts :]


def _build_passage(document: Document, parts: list[_SentencePart], position: int) -> Passage:
    block_indices = dict.fromkeys(part.block for part in parts)
    blocks = [document.blocks[block_index] for block_index in block_indices]
    texts = [parts[0].text]
    for previous_part, next_part in pairwise(parts):
        texts += (" " if previous_part.block == next_part.block else "\n", next_part.text)
    pages = [page for block in blocks for page in (block.page, block.last_page) if page is not None]
    urls = {block.url for block in blocks}
    levels = zip(*(block.headings for block in blocks), strict=False)
    return Passage(
        id=f"{document.id}-{position}",
        text="".join(texts),
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


def count_repeated_characters(preceding_text: str, passage: str) -> int:
    """Return how many characters at the start of a passage repeat the end of the preceding text.

    The result is 0 if the overlap is shorter than :data:`MIN_OVERLAP`.
    """
    start = passage[:MIN_OVERLAP]
    if len(start) < MIN_OVERLAP:
        return 0
    # The first index from which the preceding text, up to its end, begins the passage gives the longest overlap.
    index = preceding_text.find(start, max(0, len(preceding_text) - len(passage)))
    while index >= 0:
        if passage.startswith(preceding_text[index:]):
            return len(preceding_text) - index
        index = preceding_text.find(start, index + 1)
    return 0


def join_passages(texts: Sequence[str]) -> str:
    """Join consecutive passages without repeating overlaps; passages without overlap are separated by an empty line."""
    text = ""
    for passage in texts:
        n_shared = count_repeated_characters(text, passage)
        text += passage[n_shared:] if n_shared or not text else "\n\n" + passage
    return text


def excerpt(sentences: Sequence[str], similarities: "NDArray[np.float64]", max_words: int) -> str:
    """Return the sentences most similar to a query, within a word limit and in their original order.

    Omitted sentences are replaced by dots.

    Args:
        sentences: Sentences of one passage, in order.
        similarities: Similarity of each sentence to the query, shape [sentences].
        max_words: Maximum number of words; 0 returns all sentences. The most similar sentence is always included; if it
            has more words, it is truncated.
    """
    if not max_words:
        return " ".join(sentences)
    best_sentence = sentences[int(similarities.argmax())].split()
    if len(best_sentence) > max_words:
        return " ".join(best_sentence[:max_words]) + " ..."
    indices: set[int] = set()
    n_words_left = max_words
    for index in (-similarities).argsort(kind="stable"):
        n_words = len(sentences[index].split())
        if n_words <= n_words_left:
            indices.add(int(index))
            n_words_left -= n_words
    sorted_indices = sorted(indices)
    pieces = [sentences[sorted_indices[0]]]
    for previous_index, index in pairwise(sorted_indices):
        pieces.append(("... " if index > previous_index + 1 else "") + sentences[index])
    return " ".join(pieces)
