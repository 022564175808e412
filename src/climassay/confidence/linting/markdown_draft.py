"""Markdown as a draft: checked on its own text, so that lines and columns are those of the file."""

import re

from climassay.confidence.linting.draft import BlockKind, Draft, DraftBlock, masked
from climassay.confidence.linting.plain_draft import COMMENT, joined

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
    """Markdown: headings, paragraphs, items, rows of tables, footnotes and quotations are told apart.

    Front matter, code, comments, link targets, images, citations, marks of footnotes, mathematics and struck-out words
    are passed over. Indented code counts as code only where no list is open, as in CommonMark.
    """
    reader = _Reader()
    comments = [match.span() for match in COMMENT.finditer(text)]
    visible = masked(text, (), [*comments, *(match.span() for match in _FRONT_MATTER.finditer(text))])
    for match in _LINE.finditer(visible):
        reader.feed(match.group(), match.start())
    reader.end_block()
    inline = _Inline(masked(visible, (), reader.hidden))
    for block in reader.blocks:
        inline.read(block.start, block.end)
    return Draft(name, text, inline.finished(), tuple(reader.blocks), italics=joined(inline.italics))


class _Reader:
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
        if self._fence is not None or _FENCE.match(line):
            self._feed_fence(line)
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

    def _feed_fence(self, line: str) -> None:
        fence = _FENCE.match(line)
        if self._fence is None:
            assert fence is not None
            self.end_block()
            self._fence = fence[1]
        elif fence and fence[1].startswith(self._fence):
            self._fence = None
        self._blank = True

    def _structure(self, line: str, start: int) -> bool:
        """Handle a line that is no running text; say whether it was one."""
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
            self._row(line, start)
        elif self._blank and not self._in_list and line.startswith(("    ", "\t")):
            self.end_block()
            self.hidden.append((start, start + len(line)))
            self._blank = True
            return True
        else:
            return False
        return True

    def _row(self, line: str, start: int) -> None:
        """Every cell is a block of its own."""
        self.end_block()
        begin = 0
        for end in (*(match.start() for match in _CELL_END.finditer(line)), len(line)):
            if line[begin:end].strip(" \t\n|"):
                self.blocks.append(DraftBlock("row", start + begin, start + end))
            begin = end + 1

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


class _Inline:
    """Passes over the markup inside blocks, from the first to the last."""

    def __init__(self, mask: str) -> None:
        self.italics: list[tuple[int, int]] = []
        self._mask = mask
        self._done = 0
        self._pieces: list[str] = []

    def read(self, start: int, end: int) -> None:
        """Take one block."""
        self._pieces += (self._mask[self._done : start], self._without_markup(self._mask[start:end], start))
        self._done = end

    def finished(self) -> str:
        """The mask of the whole."""
        return "".join((*self._pieces, self._mask[self._done :]))

    def _without_markup(self, part: str, start: int) -> str:
        for pattern in (_CODE_OR_MATHS, _IMAGE, _CITATION, _FOOTNOTE, _STRUCK):
            part = masked(part, [match.span() for match in pattern.finditer(part)])
        for match in _LINK.finditer(part):
            part = masked(part, [match.span("open"), match.span("target")])
        self.italics += [_moved(match.span("words"), start) for match in _HTML_ITALICS.finditer(part)]
        part = masked(part, [match.span() for match in _TAG.finditer(part)])
        for _ in range(_NESTED_EMPHASIS):
            for pattern in (_STARS, _BARS):
                part = self._without_emphasis(pattern, part, start)
        return masked(part, [match.span() for match in _ESCAPED.finditer(part)])

    def _without_emphasis(self, pattern: re.Pattern[str], part: str, start: int) -> str:
        dropped = []
        for match in pattern.finditer(part):
            if len(match["marks"]) != len("**"):
                self.italics.append(_moved(match.span("words"), start))
            dropped += [match.span("marks"), (match.end("words"), match.end())]
        return masked(part, dropped) if dropped else part


def _moved(span: tuple[int, int], by: int) -> tuple[int, int]:
    return span[0] + by, span[1] + by
