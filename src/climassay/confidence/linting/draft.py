"""Drafts to check, with the paragraphs and sentences of a file, and the records of rules and findings.

Headings, code, comments and link targets are not part of the text, as in a collection.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Literal

from climassay.confidence.extraction.extracting import explains_terms
from climassay.confidence.tags import LikelihoodTerm, Tag, find_likelihoods, find_tags
from climassay.corpus.documents import Block, ReadOptions
from climassay.corpus.sentences import sentence_spans
from climassay.errors import DocumentError, InputError


@dataclass(frozen=True, slots=True)
class Location:
    """Location of a character in a draft."""

    paragraph: int
    """Paragraph number, from 1. If the file has pages, paragraphs are counted per page."""
    column: int
    """Position of the character (code point) in the paragraph, from 1."""
    page: int | None = None

    def __str__(self) -> str:
        page = "" if self.page is None else f"page {self.page}, "
        return f"{page}paragraph {self.paragraph}, character {self.column}"


@dataclass(frozen=True, slots=True)
class ManuscriptSentence:
    """Sentence of a paragraph, with its calibrated terms."""

    text: str
    start: int
    """Offset of the sentence in the draft's text."""
    tags: tuple[Tag, ...] = field(repr=False)
    likelihoods: tuple[LikelihoodTerm, ...] = field(repr=False)


@dataclass(frozen=True)
class Manuscript:
    """Draft to check."""

    name: str
    blocks: tuple[Block, ...]

    @cached_property
    def text(self) -> str:
        """All paragraphs, separated by empty lines."""
        return "\n\n".join(block.text for block in self.blocks)

    @cached_property
    def paragraphs(self) -> tuple[tuple[int, str], ...]:
        """Pairs of each paragraph's offset in the text and the paragraph."""
        offsets = accumulate((len(block.text) + 2 for block in self.blocks), initial=0)
        return tuple(zip(offsets, (block.text for block in self.blocks), strict=False))

    def location(self, offset: int) -> Location:
        """Return the location of the character at an offset in the text."""
        index = bisect_right(self.paragraphs, offset, key=lambda paragraph: paragraph[0]) - 1
        page = self.blocks[index].page
        first_index = next(i for i, block in enumerate(self.blocks) if block.page == page)
        return Location(index - first_index + 1, offset - self.paragraphs[index][0] + 1, page)

    @cached_property
    def sentences(self) -> tuple[ManuscriptSentence, ...]:
        """All sentences, in order."""
        results = []
        for offset, paragraph in self.paragraphs:
            for start, end in sentence_spans(paragraph):
                text = paragraph[start:end]
                if words := text.strip():
                    begin = offset + start + len(text) - len(text.lstrip())
                    results.append(
                        ManuscriptSentence(words, begin, tuple(find_tags(words)), tuple(find_likelihoods(words)))
                    )
        return tuple(results)

    @cached_property
    def words(self) -> int:
        """Number of words."""
        return len(self.text.split())


Severity = Literal["error", "warning", "note"]
"""Severity of a finding. ``error``: contradicts the definition of the vocabulary. ``warning``: departs from the IPCC's
guidance. ``note``: may need a change."""


@dataclass(frozen=True, slots=True)
class Remark:
    """Objection of a rule to the words ``text[start:end]`` of a sentence or draft."""

    start: int
    end: int
    message: str
    suggestion: str = ""
    """Replacement for the words; empty if the replacement requires knowledge that only the author has."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Check of drafts against the IPCC's guidance on uncertainty."""

    name: str
    severity: Severity
    summary: str
    """Short name of the problem."""
    reason: str
    examples: tuple[tuple[str, str], ...]
    """Pairs (rejected text, accepted text) that illustrate the rule."""
    check: Callable[[Manuscript], Iterable[Remark]]


def rule(
    name: str, severity: Severity, summary: str, reason: str, *examples: tuple[str, str]
) -> Callable[[Callable[[ManuscriptSentence], Iterable[Remark]]], Rule]:
    """Return a decorator that makes a :class:`Rule` with these fields from a function that checks one sentence.

    The rule skips words in quotation marks and sentences that explain the vocabulary.
    """

    def decorate(check: Callable[[ManuscriptSentence], Iterable[Remark]]) -> Rule:
        def check_draft(draft: Manuscript) -> Iterator[Remark]:
            for sentence in draft.sentences:
                if explains_terms(sentence.text):
                    continue
                for remark in check(sentence):
                    if not _is_quoted(sentence.text, remark.start, remark.end):
                        start, end = sentence.start + remark.start, sentence.start + remark.end
                        yield Remark(start, end, remark.message, remark.suggestion)

        return Rule(name, severity, summary, reason, examples, check_draft)

    return decorate


def _is_quoted(text: str, start: int, end: int) -> bool:
    preceding_text, following_text = text[:start], text[end:]
    if preceding_text.count('"') % 2 or preceding_text.count("“") > preceding_text.count("”"):
        return True
    quote_start = max(preceding_text.rfind(f"{blank}{mark}") for blank in (" ", "(") for mark in "'‘")
    quote_start = 0 if quote_start < 0 and preceding_text[:1] in ("'", "‘") else quote_start
    return (
        quote_start >= 0
        and not any(f"{mark} " in preceding_text[quote_start:] for mark in "'’")
        and any(mark in following_text for mark in "'’")
    )


@dataclass(frozen=True, slots=True)
class LintFinding:
    """Objection of a rule with its location in a draft."""

    rule: str
    severity: Severity
    location: Location
    start: int
    end: int
    """Index after the last character of the words ``draft.text[start:end]``."""
    words: str
    message: str
    suggestion: str = ""


def draft_of(text: str, kind: str = "markdown") -> Manuscript:
    """Create a draft from a text of the kind ``markdown``, ``text`` or ``html``.

    Raises:
        InputError: The kind is unknown, or the text cannot be read.
    """
    from climassay.corpus.readers.file_types import READERS

    if kind not in ("markdown", "text", "html"):
        raise InputError(f"The kind of a text is markdown, text or html, not {kind!r}.")
    try:
        document = READERS[kind].read(text.encode("utf-8", "replace"), "text", ReadOptions())
    except DocumentError:
        return Manuscript("text", ())  # without a word
    return Manuscript("text", document.blocks)  # type: ignore[union-attr]


def read_draft(path: Path) -> Manuscript:
    """Read a draft from a file of any format that collections accept.

    Raises:
        InputError: The file is missing or damaged, its format is not supported, or it has no text.
    """
    from climassay.corpus.readers.file_types import read

    result = read(path)
    blocks = tuple(block for document in result.documents for block in document.blocks if not block.footnote)
    if not blocks:
        raise InputError(result.skipped[0].reason if result.skipped else f"{path} has no text to check.")
    return Manuscript(str(path), blocks)
