"""A text as it is checked, and what rules find in it.

Nothing is cleaned away: what is not prose (code, links, comments, marks of emphasis) is only passed over, so that a
finding names the line and column that an editor shows.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from climassay.confidence.marks import LikelihoodTerm, TagMark, find_likelihoods, find_tags
from climassay.corpus.sentences import Span, sentence_spans

DROPPED = "\x00"
"""Stands in a mask for a character that is no part of the prose: the words before and behind it touch."""

BlockKind = Literal["paragraph", "heading", "item", "row", "note", "quotation"]


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a file; lines, columns and pages count from 1."""

    line: int
    """Line of a file without pages; number of the paragraph on the page in one with pages."""
    column: int
    """Characters (code points) from the beginning of the line."""
    page: int | None = None


@dataclass(frozen=True, slots=True)
class DraftBlock:
    """A paragraph, heading or the like: ``text[start:end]`` of the draft."""

    kind: BlockKind
    start: int
    end: int
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence as it reads: on one line, without what is not prose."""

    text: str
    places: tuple[int, ...]
    """Where each of its characters appears in the draft's text."""
    block: DraftBlock
    marks: tuple[TagMark, ...] = field(repr=False)
    likelihoods: tuple[LikelihoodTerm, ...] = field(repr=False)

    def at(self, start: int, end: int) -> tuple[int, int]:
        """Where ``text[start:end]`` appears in the draft."""
        return self.places[start], self.places[end - 1] + 1


@dataclass(frozen=True)
class Draft:
    """A text that is checked, with its structure."""

    name: str
    text: str
    """As it appears in the file; of a file with pages, its paragraphs with an empty line between them."""
    mask: str
    """As long as the text; what is not prose is :data:`DROPPED` or white space."""
    blocks: tuple[DraftBlock, ...]
    """In order; they do not overlap."""
    italics: tuple[Span, ...] | None = None
    """What is set in italics, in order; None where the file does not tell."""
    paged: bool = False

    def location(self, offset: int) -> Location:
        """Line and column of a character of the text."""
        if not self.paged:
            line = bisect_right(self._lines, offset)
            return Location(line, offset - self._lines[line - 1] + 1)
        number = max(bisect_right([block.start for block in self.blocks], offset) - 1, 0)
        block = self.blocks[number]
        first = next(place for place, one in enumerate(self.blocks) if one.page == block.page)
        return Location(number - first + 1, offset - block.start + 1, block.page)

    @cached_property
    def _lines(self) -> list[int]:
        """Where each line begins; only line feeds end a line, as in editors and in git."""
        return [0, *(place + 1 for place, char in enumerate(self.text) if char == "\n")]

    @cached_property
    def sentences(self) -> tuple[Sentence, ...]:
        """All sentences, in order; a heading and a cell of a table count as one each."""
        found = []
        for block in self.blocks:
            text, places = one_line(self.mask, block.start, block.end)
            whole = block.kind in ("heading", "row")
            for start, end in [Span(0, len(text))] if whole and text else sentence_spans(text):
                part = text[start:end].strip()
                if part:
                    begin = start + len(text[start:end]) - len(text[start:end].lstrip())
                    place = places[begin : begin + len(part)]
                    found.append(Sentence(part, place, block, tuple(find_tags(part)), tuple(find_likelihoods(part))))
        return tuple(found)

    @cached_property
    def words(self) -> int:
        """Words of prose."""
        return sum(len(sentence.text.split()) for sentence in self.sentences)

    def is_italic(self, start: int, end: int) -> bool:
        """Whether a part of the text appears in italics as a whole."""
        return any(one <= start and end <= other for one, other in self.italics or ())


def one_line(mask: str, start: int, end: int) -> tuple[str, tuple[int, ...]]:
    """The prose of a part of a mask on one line, and the place of each of its characters.

    White space of any length becomes one space; there is none at the beginning and at the end.
    """
    characters: list[str] = []
    places: list[int] = []
    for place in range(start, end):
        char = mask[place]
        if char == DROPPED:
            continue
        if char.isspace():
            if characters and characters[-1] != " ":
                characters.append(" ")
                places.append(place)
        else:
            characters.append(char)
            places.append(place)
    if characters and characters[-1] == " ":
        characters.pop()
        places.pop()
    return "".join(characters), tuple(places)


def masked(text: str, dropped: Sequence[tuple[int, int]], spaced: Sequence[tuple[int, int]] = ()) -> str:
    """A text of the same length without certain parts.

    Args:
        text: The whole.
        dropped: Parts in place of which stands nothing.
        spaced: Parts in place of which stands white space; line feeds stay.
    """
    characters = list(text)
    for start, end in spaced:
        for place in range(start, end):
            if characters[place] != "\n":
                characters[place] = " "
    for start, end in dropped:
        characters[start:end] = DROPPED * (end - start)
    return "".join(characters)


Severity = Literal["error", "warning", "note"]
"""An error contradicts the vocabulary's own definition; a warning departs from the guidance; a note is worth a look."""


@dataclass(frozen=True, slots=True)
class Remark:
    """What a rule has to say about a place: ``draft.text[start:end]``."""

    start: int
    end: int
    message: str
    suggestion: str = ""
    """What could appear there instead; empty where only an author can say."""


@dataclass(frozen=True, slots=True)
class Example:
    """A text that a rule complains of, and one that it lets pass."""

    bad: str
    good: str


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that is looked for."""

    name: str
    severity: Severity
    summary: str
    """What is wrong, in a few words."""
    reason: str
    examples: tuple[Example, ...]
    check: Callable[[Draft], Iterable[Remark]]
    default: bool = True
    """Whether it is on where nobody chooses."""


def rule(
    name: str, severity: Severity, summary: str, reason: str, *examples: Example, default: bool = True
) -> Callable[[Callable[[Sentence], Iterable[Remark]]], Rule]:
    """Make a :class:`Rule`, with these fields, of a function that looks at one sentence."""

    def made(check: Callable[[Sentence], Iterable[Remark]]) -> Rule:
        def check_draft(draft: Draft) -> Iterator[Remark]:
            for sentence in draft.sentences:
                yield from check(sentence)

        return Rule(name, severity, summary, reason, examples, check_draft, default)

    return made


@dataclass(frozen=True, slots=True)
class Finding:
    """A remark at its place in a file."""

    rule: str
    severity: Severity
    location: Location
    end: Location
    start_offset: int
    end_offset: int
    words: str
    """What appears there, on one line and without markup."""
    message: str
    suggestion: str = ""
