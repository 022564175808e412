"""A text as it is checked, and what rules find in it.

Nothing is cleaned away: what is not prose (code, links, comments, marks of emphasis) is only passed over, so that a
finding names the line and column that an editor shows.

Read Markdown, HTML, plain text and paged documents as drafts, each on its own source.
"""

import html
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from climassay.confidence.extraction.cleaning import joined_spans
from climassay.confidence.marks import LikelihoodTerm, TagMark, find_likelihoods, find_said, find_tags
from climassay.corpus.documents import Document, Span, sentence_spans
from climassay.errors import DocumentError, InputError

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

    @property
    def said(self) -> list[TagMark]:
        """The marks with those that a predicate makes ("confidence in this is low"), in order."""
        return sorted((*self.marks, *find_said(self.text)), key=lambda mark: (mark.start, mark.end))

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
        results = []
        for block in self.blocks:
            text, places = one_line(self.mask, block.start, block.end)
            whole = block.kind in ("heading", "row")
            for start, end in [Span(0, len(text))] if whole and text else sentence_spans(text):
                part = text[start:end].strip()
                if part:
                    begin = start + len(text[start:end]) - len(text[start:end].lstrip())
                    place = places[begin : begin + len(part)]
                    results.append(Sentence(part, place, block, tuple(find_tags(part)), tuple(find_likelihoods(part))))
        return tuple(results)

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


_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_PARAGRAPH = re.compile(r"(?:[^\n]*\S[^\n]*(?:\n|\Z))+")


def plain_draft(text: str, name: str) -> Draft:
    """Plain text: paragraphs end at empty lines; comments are passed over as in Markdown."""
    comments = [match.span() for match in _COMMENT.finditer(text)]
    mask = masked(text, (), comments)
    blocks = tuple(DraftBlock("paragraph", *match.span()) for match in _PARAGRAPH.finditer(mask))
    return Draft(name, text, mask, blocks)


def paged_draft(document: Document, name: str) -> Draft:
    """A document that was read from pages: a paragraph is a line, and places are given by page and paragraph."""
    parts: list[str] = []
    blocks: list[DraftBlock] = []
    place = 0
    for block in document.blocks:
        kind: BlockKind = "note" if block.footnote else "paragraph"
        blocks.append(DraftBlock(kind, place, place + len(block.text), block.page))
        parts.append(block.text)
        place += len(block.text) + 2
    text = "\n\n".join(parts)
    return Draft(name, text, text, tuple(blocks), paged=True)


_HIDDEN = ("script", "style", "noscript", "template", "nav", "footer", "pre", "code", "svg", "math", "textarea", "head")
_TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<!\w[^>]*>|<(?P<close>/?)(?P<name>[A-Za-z][A-Za-z0-9]*)(?P<rest>[^<>]*)>", re.DOTALL
)
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_KINDS: dict[str, BlockKind] = {
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), "heading"),
    **dict.fromkeys(("td", "th"), "row"),
    **dict.fromkeys(("li", "dd", "dt"), "item"),
    **dict.fromkeys(("caption", "figcaption"), "note"),
    "blockquote": "quotation",
    "p": "paragraph",
}
_OTHER_BLOCKS = frozenset(
    (
        *("address", "article", "aside", "body", "br", "center", "details", "div", "dl", "fieldset", "figure", "form"),
        *("header", "hr", "html", "main", "ol", "section", "summary", "table", "tbody", "tfoot", "thead", "tr", "ul"),
    )
)
_ENDED_BY = {"ul": ("li", "p"), "ol": ("li", "p"), "dl": ("dt", "dd", "p"), "table": ("td", "th"), "tr": ("td", "th")}
_ITALIC = frozenset(("em", "i"))


def html_draft(text: str, name: str) -> Draft:
    """A web page: scripts, styles, navigation, code and the head of the page are passed over, entities are read."""
    reader = _HtmlReader(text)
    for match in _TOKEN.finditer(text):
        reader.feed(match)
    reader.end_block(len(text))
    mask = _with_entities(masked(text, reader.dropped, reader.spaced))
    return Draft(name, text, mask, tuple(reader.blocks), italics=joined_spans(reader.italics))


class _HtmlReader:
    def __init__(self, text: str) -> None:
        self._text = text
        self.blocks: list[DraftBlock] = []
        self.dropped: list[tuple[int, int]] = []
        self.spaced: list[tuple[int, int]] = []
        self.italics: list[tuple[int, int]] = []
        self._kinds: list[tuple[str, BlockKind]] = []
        self._start = 0
        self._hidden: tuple[str, int] | None = None
        self._italic: int | None = None

    def feed(self, match: re.Match[str]) -> None:
        """Take one tag or comment."""
        name = (match["name"] or "").lower()
        closing = match["close"] == "/"
        if self._hidden is not None:
            if closing and name == self._hidden[0]:
                self.spaced.append((self._hidden[1], match.end()))
                self._hidden = None
            return
        if not name:
            self.spaced.append(match.span())
        elif name in _HIDDEN and not closing and not match["rest"].endswith("/"):
            self._hidden = (name, match.start())
        elif name in _KINDS or name in _OTHER_BLOCKS:
            self._block_tag(name, closing, match)
        else:
            self.dropped.append(match.span())
            if name in _ITALIC and not closing:
                self._italic = match.end()
            elif name in _ITALIC and self._italic is not None:
                self.italics.append((self._italic, match.start()))
                self._italic = None

    def _block_tag(self, name: str, closing: bool, match: re.Match[str]) -> None:
        self.end_block(match.start())
        self.spaced.append(match.span())
        self._start = match.end()
        if name not in _KINDS:
            # The end tags of items and cells may be left out.
            while closing and self._kinds and self._kinds[-1][0] in _ENDED_BY.get(name, ()):
                self._kinds.pop()
            return
        if not closing:
            # A paragraph inside an item or a quotation takes their kind.
            self._kinds.append((name, _KINDS[name]))
        elif opened := [place for place, (other, _) in enumerate(self._kinds) if other == name]:
            del self._kinds[opened[-1] :]

    def end_block(self, end: int) -> None:
        """What appears between two tags of blocks is a block, where it has words."""
        hidden = self._hidden[1] if self._hidden else end
        if hidden < end:
            self.spaced.append((hidden, end))
        if self._text[self._start : hidden].strip():
            kinds = [kind for _, kind in self._kinds if kind != "paragraph"]
            self.blocks.append(DraftBlock(kinds[-1] if kinds else "paragraph", self._start, end))
        self._start = end


def _with_entities(mask: str) -> str:
    """Entities read, the rest of their places dropped; one that stands for several characters is left as it is."""

    def read(match: re.Match[str]) -> str:
        char = html.unescape(match.group())
        if char == DROPPED or len(char) != 1:
            return match.group()
        return char + DROPPED * (len(match.group()) - 1)

    return _ENTITY.sub(read, mask)


_FRONT_MATTER = re.compile(r"\A---[ \t]*\n.*?\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_LINE = re.compile(r"[^\n]*\n|[^\n]+\Z")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}(?=\s|$)")
_CLOSING_HASHES = re.compile(r"[ \t]#+[ \t]*\n?\Z")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-{2,})[ \t]*\n?\Z")
_BREAK = re.compile(r" {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})\n?\Z")
_QUOTE = re.compile(r"(?: {0,3}> ?)+")
_ITEM = re.compile(r"[ \t]*(?:[*+-]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")
_NOTE = re.compile(r" {0,3}\[\^[^\]\n]+\]:[ \t]*")
_DEFINITION = re.compile(r" {0,3}\[(?!\^)[^\]\n]+\]:\s+\S+.*\n?\Z")
_DIRECTIVE = re.compile(r"\s*:{3,}.*\n?\Z")
_TABLE_RULE = re.compile(r"\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?\s*\Z")
_CELL_END = re.compile(r"(?<!\\)\|")

# The bounds on lengths keep a stray mark from costing more than linear time.
_CODE_OR_MATHS = re.compile(
    r"(?P<tick>(?<!`)`{1,3}(?!`)).{1,500}?(?<!`)(?P=tick)(?!`)|\$\$[^$]{1,2000}\$\$|\$(?=\S)[^$\n]{1,300}(?<=\S)\$(?!\d)",
    re.DOTALL,
)
_ESCAPED = re.compile(r"\\(?=[!-/:-@\[-`{-~])")
_IMAGE = re.compile(r"!\[[^\[\]]{0,500}\](?:\((?:[^()]|\([^()]{0,300}\)){0,500}\)|\[[^\[\]]{0,200}\])")
_LINK = re.compile(
    r"(?P<open>\[)(?!\^)(?P<words>(?:[^\[\]]|\[[^\[\]]{0,200}\]){0,500})"
    r"(?P<target>\]\((?:[^()]|\([^()]{0,300}\)){0,500}\)|\]\[[^\[\]]{0,200}\])"
)
_CITATION = re.compile(r"\[(?:[^\[\]@]{0,60}[-]?@[\w:.#$%&+?<>~/-]+[^\[\]]{0,400})\]")
_FOOTNOTE = re.compile(r"\[\^[^\[\]]{1,100}\]")
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,1000}>|<(?:https?|mailto):[^>\s]{1,1000}>")
_STARS = re.compile(r"(?<![\\*])(?P<marks>\*{1,3})(?=[^\s*])(?P<words>[^*]{1,500}?)(?<=[^\s\\])(?P=marks)(?!\*)")
_BARS = re.compile(
    r"(?<![\\\w])(?P<marks>_{1,3})(?=[^\s_])(?P<words>.{1,500}?)(?<=[^\s\\_])(?P=marks)(?!\w)", re.DOTALL
)
_STRUCK = re.compile(r"~~(?=\S).{1,500}?(?<=\S)~~", re.DOTALL)
_HTML_ITALICS = re.compile(r"<(em|i)>(?P<words>[^<>]{1,500})</\1>", re.IGNORECASE)
_NESTED_EMPHASIS = 3


def markdown_draft(text: str, name: str) -> Draft:
    """Markdown: headings, paragraphs, items, rows of tables, footnotes and quotations are distinguished.

    Front matter, code, comments, link targets, images, citations, marks of footnotes, mathematics and struck-out words
    are passed over. Indented code counts as code only where no list is open, as in CommonMark.
    """
    reader = _MarkdownReader()
    comments = [match.span() for match in _COMMENT.finditer(text)]
    visible = masked(text, (), [*comments, *(match.span() for match in _FRONT_MATTER.finditer(text))])
    for match in _LINE.finditer(visible):
        reader.feed(match.group(), match.start())
    reader.end_block()
    structured = masked(visible, (), reader.hidden)
    italics: list[tuple[int, int]] = []
    pieces, done = [], 0
    for block in reader.blocks:
        pieces += [
            structured[done : block.start],
            _without_markup(structured[block.start : block.end], block.start, italics),
        ]
        done = block.end
    mask = "".join([*pieces, structured[done:]])
    return Draft(name, text, mask, tuple(reader.blocks), italics=joined_spans(italics))


class _MarkdownReader:
    """Collects lines into blocks."""

    def __init__(self) -> None:
        self.blocks: list[DraftBlock] = []
        self.hidden: list[tuple[int, int]] = []
        """Marks of structure at the beginning of lines, and lines without prose."""
        self._kind: BlockKind = "paragraph"
        self._start: int | None = None
        self._end = 0
        self._fence: str | None = None
        self._blank = True
        self._in_list = False

    def feed(self, line: str, start: int) -> None:
        """Take one line."""
        fence = _FENCE.match(line)
        if self._fence is not None or fence:
            if fence and self._fence is None:
                self.end_block()
                self._fence = fence[1]
            elif fence and self._fence is not None and fence[1].startswith(self._fence):
                self._fence = None
            self._blank = True
            return
        if not line.strip():
            self.end_block()
            self._blank = True
            return
        quote = _QUOTE.match(line)
        if quote:
            self.hidden.append((start, start + quote.end()))
        place = quote.end() if quote else 0
        if not self._structure(line[place:], start + place):
            self._prose(line[place:], start + place, quoted=quote is not None)
        self._blank = False

    def _structure(self, line: str, start: int) -> bool:
        """Handle a line that is not running text; say whether it was one."""
        heading = _HEADING.match(line)
        if heading:
            self.end_block()
            closing = _CLOSING_HASHES.search(line, heading.end())
            end = closing.start() if closing else len(line)
            self.blocks.append(DraftBlock("heading", start + heading.end(), start + end))
            self._in_list = False
        elif self._start is not None and self._kind == "paragraph" and _UNDERLINE.match(line):
            self.blocks.append(DraftBlock("heading", self._start, self._end))
            self._start = None
        elif _BREAK.match(line) or _DIRECTIVE.match(line) or _DEFINITION.match(line) or _TABLE_RULE.match(line):
            self.end_block()
        elif line.lstrip().startswith("|"):
            self.end_block()
            begin = 0
            for end in (*(match.start() for match in _CELL_END.finditer(line)), len(line)):
                if line[begin:end].strip(" \t\n|"):
                    self.blocks.append(DraftBlock("row", start + begin, start + end))
                begin = end + 1
        elif self._blank and not self._in_list and line.startswith(("    ", "\t")):
            self.end_block()
            self.hidden.append((start, start + len(line)))
            self._blank = True
            return True
        else:
            return False
        return True

    def _prose(self, line: str, start: int, *, quoted: bool) -> None:
        note, item = _NOTE.match(line), _ITEM.match(line)
        opening = note or item
        if opening:
            self.end_block()
            self._kind = "note" if note else "item"
            self._in_list = True
            start += opening.end()
            line = line[opening.end() :]
        elif self._start is None:
            if self._in_list and line[:1] in " \t":
                self._kind = "item"
            else:
                self._kind, self._in_list = ("quotation" if quoted else "paragraph"), False
        if self._start is None:
            self._start = start
        self._end = start + len(line)

    def end_block(self) -> None:
        """End the paragraph."""
        if self._start is not None:
            self.blocks.append(DraftBlock(self._kind, self._start, self._end))
        self._start = None


def _without_markup(part: str, start: int, italics: list[tuple[int, int]]) -> str:
    """A block without its inline markup, as long as before; where it begins is needed for the places of italics."""
    for pattern in (_CODE_OR_MATHS, _IMAGE, _CITATION, _FOOTNOTE, _STRUCK):
        part = masked(part, [match.span() for match in pattern.finditer(part)])
    for match in _LINK.finditer(part):
        part = masked(part, [match.span("open"), match.span("target")])
    italics += [(start + match.start("words"), start + match.end("words")) for match in _HTML_ITALICS.finditer(part)]
    part = masked(part, [match.span() for match in _TAG.finditer(part)])
    for _ in range(_NESTED_EMPHASIS):
        for pattern in (_STARS, _BARS):
            results = list(pattern.finditer(part))
            for match in results:
                if match["marks"] not in ("**", "__"):
                    italics.append((start + match.start("words"), start + match.end("words")))
            marks = [span for match in results for span in (match.span("marks"), (match.end("words"), match.end()))]
            part = masked(part, marks) if marks else part
    return masked(part, [match.span() for match in _ESCAPED.finditer(part)])


MAKERS = {"markdown": markdown_draft, "text": plain_draft, "html": html_draft}
_NOT_READ = (".doc", ".odt", ".rtf")


def draft_of(text: str, kind: str = "markdown", name: str = "text") -> Draft:
    """A draft of a text.

    Args:
        text: At most as much as fits into memory a few times.
        kind: ``markdown``, ``text`` or ``html``.
        name: Name of the file that it stands for.

    Raises:
        InputError: There is no such kind.
    """
    if kind not in MAKERS:
        raise InputError(f"The kind of a text is one of {', '.join(MAKERS)}, not {kind!r}.")
    return MAKERS[kind](text.replace("\r\n", "\n").replace("\r", "\n"), name)


def read_draft(path: Path) -> Draft:
    """Read a file: Markdown, plain text and HTML on their own text, PDF and Word files by their pages and paragraphs.

    Raises:
        InputError: The file is missing, of a kind that is not checked, damaged, or has no text.
    """
    from climassay.corpus.documents import ReadOptions
    from climassay.corpus.readers.file_types import kind_of, open_file, read
    from climassay.corpus.readers.text import decode

    if path.suffix.lower() in _NOT_READ:
        raise InputError(
            f"{path} is a word processor file that cannot be read: save it as .docx, Markdown, HTML or PDF."
        )
    if path.is_dir():
        raise InputError(f"{path} is a folder: name the files in it.")
    kind = kind_of(path) if path.exists() else None
    if kind is not None and kind not in (*MAKERS, "pdf", "docx"):
        raise InputError(f"{path} cannot be checked: give Markdown, plain text, HTML, Word (.docx) or PDF.")
    try:
        source, kind, data = open_file(path, ReadOptions().max_bytes, None)
        if kind in ("pdf", "docx"):
            result = read(path)
            if not result.documents:
                raise InputError(result.skipped[0].reason if result.skipped else f"{path} has no text to check.")
            return paged_draft(result.documents[0], str(path))
        draft = draft_of(decode(data, source), kind, str(path))
    except DocumentError as error:
        raise InputError(str(error)) from None
    if not draft.sentences:
        raise InputError(f"{path} has no text to check.")
    return draft
