"""Read Markdown: front matter, headings, and the text behind the markup."""

import datetime
import re
from functools import cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from climassay.corpus.documents import Block, Document, ReadOptions
from climassay.corpus.readers.cleaning import clean, document_id
from climassay.corpus.readers.file_types import reader
from climassay.corpus.readers.text import decode
from climassay.errors import DocumentError

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
# The bounds on lengths below keep a stray mark from costing more than linear time.
_MATH = re.compile(r"\$\$[^$]+\$\$|\$(?=\S)[^$\n]{1,500}(?<=\S)\$(?!\d)")
_KEPT = re.compile("\x01(\\d+)\x02")
_QUOTED = re.compile(r"^(?: {0,3}> ?)+", re.MULTILINE)
_LEFT_OUT = re.compile(r"^[ \t]*:{3,}.*$|^ {0,3}\[(?!\^)[^\]\n]+\]:\s+\S+.*$|\[\^[^\[\]]{1,100}\](?!:)", re.MULTILINE)
"""Directives, references of links, and marks of footnotes."""
_NOTE = re.compile(r"^ {0,3}\[\^[^\]]+\]:\s*", re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[([^\[\]]{1,500})\](?:\[[^\[\]]{0,200}\]|\([^()\n]{0,500} [^()\n]{0,500}\))")
"""Links that CommonMark knows only where their reference is defined, or not at all: addresses with blanks."""
_TASK = re.compile(r"^\[[ xX]\][ \t]+")
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


_SPACES = {"text": "", "code_inline": "", "softbreak": " ", "hardbreak": " "}
"""Parts of a line that are text, or stand for a space; markup and images are not."""


@cache
def markdown_parser() -> "MarkdownIt":
    """CommonMark with tables and text struck out; indented lines are text, as in books, and HTML is part of a line."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable(["code", "html_block"])


def markdown_blocks(text: str) -> list[Block]:
    """Paragraphs, list items, table rows and displayed mathematics of Markdown text, each with the headings above it.

    Fenced code, comments, images and directives are left out; mathematics stays as written.
    """
    kept: list[str] = []

    def keep(match: re.Match[str]) -> str:
        kept.append(match.group().replace("\n", " "))
        return f"\x01{len(kept) - 1}\x02"

    parts: list[str] = []
    place = 0
    while (begin := text.find("<!--", place)) >= 0 and (end := text.find("-->", begin)) >= 0:
        parts.append(text[place:begin])
        place = end + len("-->")
    # The characters 1 and 2 mark the places of mathematics, and belong into no text.
    whole = "".join((*parts, text[place:])).replace("\x01", "").replace("\x02", "")
    plain = _NOTE.sub("\n", _LEFT_OUT.sub("", _QUOTED.sub("", _MATH.sub(keep, whole))))
    blocks: list[Block] = []
    headings: list[tuple[int, str]] = []
    row: list[str] | None = None
    level = 0

    def add(words: str) -> None:
        if any(char.isalnum() for char in words):
            blocks.append(Block(text=words, headings=tuple(title for _, title in headings)))

    for token in markdown_parser().parse(_LINK.sub(r"\1", plain)):
        match token.type:
            case "heading_open":
                level = int(token.tag[1])
            case "heading_close":
                level = 0
            case "tr_open":
                row = []
            case "tr_close" if row is not None:
                # A row of a table is a block: its filled cells with a bar between them.
                add(" | ".join(cell for cell in row if cell))
                row = None
            case "inline":
                inline = (part for part in token.children or () if part.type in _SPACES)
                shown = "".join(part.content or _SPACES[part.type] for part in inline)
                words = clean(_KEPT.sub(lambda match: kept[int(match[1])], shown))
                if level:
                    while headings and headings[-1][0] >= level:
                        headings.pop()
                    headings += [(level, words)] if words else []
                elif row is not None:
                    row.append(words)
                else:
                    add(_TASK.sub("", words))
    return blocks
