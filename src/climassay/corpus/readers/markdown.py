"""Read Markdown: front matter, headings, and the text behind the markup."""

import datetime
import html
import re
from pathlib import PurePath
from typing import Any

from climassay.corpus.documents import Block, Document, ReadOptions
from climassay.corpus.readers.cleaning import clean, document_id
from climassay.corpus.readers.file_types import reader
from climassay.corpus.readers.text import decode
from climassay.errors import DocumentError

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_ATX = re.compile(r"^ {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_SETEXT = re.compile(r"^ {0,3}(=+|-+)[ \t]*$")
_RULE = re.compile(r"^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|_{3,}|(?:_[ \t]+){3,})$")
_ITEM = re.compile(r"^\s*(?:[*+-]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")
_TABLE_RULE = re.compile(r"^\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?\s*$")
_DIRECTIVE = re.compile(r"^\s*:{3,}.*$")
_REFERENCE = re.compile(r"^ {0,3}\[(?!\^)[^\]]+\]:\s+\S+.*$")
_NOTE = re.compile(r"^ {0,3}\[\^[^\]]+\]:\s*")
_MATH_BLOCK = re.compile(r"\$\$[^$]+\$\$")
# The bounds on lengths below keep a stray mark from costing more than linear time.
# What must not be touched inside a line: mathematics and code.
_PROTECTED = re.compile(
    r"(\$\$[^$]+\$\$|\$(?=\S)[^$\n]{1,500}(?<=\S)\$(?!\d)|(?<!`)(`{1,3})(?!`)(?P<code>.{1,500}?)(?<!`)\2(?!`))",
    re.DOTALL,
)
_MARKUP = (
    (re.compile(r"!\[[^\[\]]{0,500}\](?:\((?:[^()]|\([^()]{0,300}\)){0,500}\)|\[[^\[\]]{0,200}\])"), ""),  # images
    (re.compile(r"\[((?:[^\[\]]|\[[^\[\]]{0,200}\]){0,500})\]\((?:[^()]|\([^()]{0,300}\)){0,500}\)"), r"\1"),  # links
    (re.compile(r"\[\^[^\[\]]{1,100}\]"), ""),  # footnote marks
    (re.compile(r"\[([^\[\]]{1,500})\]\[[^\[\]]{0,200}\]"), r"\1"),  # reference links
    (re.compile(r"<((?:https?|mailto):[^>\s]+)>"), r"\1"),
    (re.compile(r"</?[A-Za-z][^<>]{0,1000}>"), ""),  # HTML tags
)

_ESCAPE = (re.compile(r"\\([!\"#$%&'()*+,\-./:;<=>?@\[\]\\^_`{|}~])"), r"\1")  # of a mark that is meant
_EMPHASIS = (
    (re.compile(r"(?<![\\*])(\*{1,3})(?=\S)(.{1,500}?)(?<=[^\s\\])\1(?!\*)", re.DOTALL), r"\2"),
    (re.compile(r"(?<![\\\w])(_{1,3})(?=\S)(.{1,500}?)(?<=[^\s\\])\1(?!\w)", re.DOTALL), r"\2"),
    (re.compile(r"~~(?=\S)(.{1,500}?)(?<=\S)~~", re.DOTALL), r"\1"),
)
MOST_NESTED_EMPHASIS = 3
MOST_LISTS = 500
"""In brackets, in the front matter; a reader's time grows with the square of those within each other."""


@reader("markdown", ".md", ".markdown", ".mdown")
def read_markdown(data: bytes, source: str, options: ReadOptions) -> Document:
    """Read a Markdown file; title, date, edition, licence and URL come from its YAML front matter where it has one.

    Raises:
        DocumentError: Not text, empty, or the front matter is not YAML.
    """
    text = decode(data, source).replace("\r\n", "\n").replace("\r", "\n")
    meta, body = _front_matter(text, source)
    blocks = markdown_blocks(body)
    title = meta.get("title")
    tops = {block.headings[0] for block in blocks if block.headings}
    if len(tops) == 1 and all(block.headings for block in blocks) and (title is None or tops == {title}):
        # The one heading above everything is the title, not a chapter.
        title = title or tops.pop()
        blocks = [Block(text=block.text, headings=block.headings[1:]) for block in blocks]
    if not blocks:
        raise DocumentError(f"{source} is empty.")
    return Document(
        id=document_id(source, data),
        title=options.title or title or PurePath(source).stem,
        source=source,
        blocks=tuple(blocks),
        url=meta.get("url"),
        report=meta.get("report"),
        date=meta.get("date"),
        edition=meta.get("edition"),
        licence=meta.get("licence") or meta.get("license"),
        media="markdown",
    )


def _front_matter(text: str, source: str) -> tuple[dict[str, str], str]:
    """The scalar fields of the front matter, and the text after it."""
    match = _FRONT_MATTER.match(text)
    if match is None:
        return {}, text
    import yaml

    try:
        _check_front_matter(match.group(1), source)
        fields: Any = yaml.safe_load(match.group(1))
    except (yaml.YAMLError, ValueError, RecursionError):
        # Dates that do not exist and numbers of thousands of digits are not a YAMLError.
        raise DocumentError(f"The front matter of {source} (between the --- lines) is not valid YAML.") from None
    if not isinstance(fields, dict):
        return {}, text
    # YAML reads 2026-11-21 as a date.
    scalars = {name: value for name, value in fields.items() if isinstance(value, str | int | float | datetime.date)}
    return {str(name).lower(): clean(str(value)) for name, value in scalars.items()}, text[match.end() :]


def _check_front_matter(text: str, source: str) -> None:
    """Refuse what a description of a document does not need and an attack does.

    A few lines that refer to their own parts again and again fill any memory when they are merged.
    """
    import yaml

    lists = 0
    for token in yaml.scan(text, Loader=yaml.SafeLoader):
        if isinstance(token, yaml.AliasToken):
            raise DocumentError(f"The front matter of {source} was not read: it refers to its own parts (aliases).")
        lists += isinstance(token, yaml.FlowSequenceStartToken | yaml.FlowMappingStartToken)
        if lists > MOST_LISTS:
            raise DocumentError(f"The front matter of {source} was not read: it has more than {MOST_LISTS} lists.")


def markdown_blocks(text: str) -> list[Block]:
    """Paragraphs, list items, table rows and displayed mathematics of Markdown text, each with the headings above it.

    Fenced code, comments, images and directives are left out.
    """
    reader = _Reader()
    parts: list[str] = []
    place = 0
    while (begin := text.find("<!--", place)) >= 0 and (end := text.find("-->", begin)) >= 0:
        parts.append(text[place:begin])
        place = end + len("-->")
    masked = _MATH_BLOCK.sub(lambda match: match.group().replace("\n", " "), "".join((*parts, text[place:])))
    for line in masked.split("\n"):
        reader.feed(line)
    reader.flush()
    return reader.blocks


class _Reader:
    """Collects lines into blocks."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._lines: list[str] = []
        self._headings: list[tuple[int, str]] = []
        self._fence: str | None = None

    def feed(self, line: str) -> None:
        """Take one line."""
        fence = _FENCE.match(line)
        if self._fence:
            if fence and fence.group(1).startswith(self._fence):
                self._fence = None
            return
        if fence:
            self.flush()
            self._fence = fence.group(1)
            return
        line = re.sub(r"^(?: {0,3}> ?)+", "", line)
        if self._structure(line):
            return
        item = _ITEM.match(line) or _NOTE.match(line)
        if item:
            self.flush()
            line = line[item.end() :]
        if line.lstrip().startswith("|"):
            # A row of a table is a block: its filled cells with a bar between them.
            self.flush()
            cells = [plain(cell) for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
            self._append(" | ".join(cell for cell in cells if cell))
        else:
            self._lines.append(line)

    def _structure(self, line: str) -> bool:
        """Handle a line that is not text of a paragraph; say whether it was one."""
        atx = _ATX.match(line)
        if atx:
            self.flush()
            self._heading(len(atx.group(1)), atx.group(2) or "")
            return True
        setext = _SETEXT.match(line)
        if setext and self._lines:
            title = " ".join(self._lines)
            self._lines = []
            self._heading(1 if setext.group(1)[0] == "=" else 2, title)
            return True
        if not line.strip() or _RULE.match(line) or _TABLE_RULE.match(line):
            self.flush()
            return True
        return bool(_DIRECTIVE.match(line) or _REFERENCE.match(line))

    def _heading(self, level: int, title: str) -> None:
        while self._headings and self._headings[-1][0] >= level:
            self._headings.pop()
        if title := plain(title):
            self._headings.append((level, title))

    def flush(self) -> None:
        """End the paragraph."""
        # Two spaces or a backslash at the end of a line are a line break, here a space.
        text = plain("\n".join(line.removesuffix("\\") for line in self._lines))
        self._lines = []
        self._append(text)

    def _append(self, text: str) -> None:
        if any(char.isalnum() for char in text):
            self.blocks.append(Block(text=text, headings=tuple(title for _, title in self._headings)))


def plain(text: str) -> str:
    """The text of a piece of inline Markdown, its markup taken off; mathematics stays as written."""
    parts: list[str] = []
    kept: list[str] = []

    def keep(match: re.Match[str]) -> str:
        kept.append(match["code"].strip() if match["code"] is not None else match.group())
        return f"\x00{len(kept) - 1}\x00"

    # The character 0 marks the places of what is kept, and belongs into no text.
    text = _PROTECTED.sub(keep, text.replace("\x00", ""))
    for pattern, replacement in (*_MARKUP, *_EMPHASIS * MOST_NESTED_EMPHASIS, _ESCAPE):
        text = pattern.sub(replacement, text)
    for number, part in enumerate(html.unescape(text).split("\x00")):
        parts.append(kept[int(part)] if number % 2 else part)
    return clean("".join(parts))
