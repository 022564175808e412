"""Read Markdown: front matter, headings, and the text without markup."""

import datetime
import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from climassay.corpus.documents import Block, Document, OmittedParts, ReadOptions, merge_left_out
from climassay.corpus.readers.cleaning import clean, document_id
from climassay.corpus.readers.file_types import reader
from climassay.corpus.readers.html import read_html_text
from climassay.corpus.readers.html_blocks import CODE, FIGURES, NOTE_MARKS
from climassay.corpus.readers.raised_text import Script, TextPart, join_parts
from climassay.corpus.readers.references import leave_out_references
from climassay.corpus.readers.table_rows import row_texts
from climassay.corpus.readers.text import decode
from climassay.errors import DocumentError

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
# The bounds on lengths below keep a stray mark from costing more than linear time.
_MATH = re.compile(r"\$\$[^$]+\$\$|\$(?=\S)[^$\n]{1,500}(?<=\S)\$(?!\d)")
_MARKED = re.compile("\x01(\\d+)\x02")
_TABLE_START = re.compile(r"<table(?=[\s>])", re.IGNORECASE)
_TABLE_END = re.compile(r"</table\s*>", re.IGNORECASE)
_SCRIPT_MARKS = re.compile(r"(?<=\S)\^([^\s^]{1,20})\^|(?<=[^\W\d_])~([^\s~]{1,10})~")
_SCRIPT_OF_MARK = {"^": Script.RAISED, "~": Script.LOWERED}
_QUOTED = re.compile(r"^(?: {0,3}> ?)+", re.MULTILINE)
_LEFT_OUT = re.compile(r"^[ \t]*:{3,}.*$|^ {0,3}\[(?!\^)[^\]\n]+\]:\s+\S+.*$|\[\^[^\[\]]{1,100}\](?!:)", re.MULTILINE)
"""Directives, link references, and footnote marks."""
_NOTE = re.compile(r"^ {0,3}\[\^[^\]]+\]:\s*", re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[([^\[\]]{1,500})\](?:\[[^\[\]]{0,200}\]|\([^()\n]{0,500} [^()\n]{0,500}\))")
"""Links that CommonMark does not recognise without their reference, or with spaces in the address."""
_TASK = re.compile(r"^\[[ xX]\][ \t]+")
MAX_LISTS = 500
"""Maximum number of bracketed lists in front matter; parsing time is quadratic in their nesting."""


@reader("markdown", ".md", ".markdown", ".mdown")
def read_markdown(data: bytes, source: str, options: ReadOptions) -> Document:
    """Read a Markdown file; metadata comes from YAML front matter, if present.

    Raises:
        DocumentError: The file is not text, is empty, or its front matter is not valid YAML.
    """
    text = decode(data, source).replace("\r\n", "\n").replace("\r", "\n")
    meta, body = _front_matter(text, source)
    blocks, left_out = read_markdown_text(body, source, references=options.references)
    title = meta.get("title")
    tops = {block.headings[0] for block in blocks if block.headings}
    if len(tops) == 1 and all(block.headings for block in blocks) and (title is None or tops == {title}):
        # The one heading above everything is the title, not a chapter.
        title = title or tops.pop()
        blocks = [Block(text=block.text, headings=block.headings[1:]) for block in blocks]
    if not blocks:
        raise DocumentError(f"{source} is empty.")
    return Document(
        id=document_id(data),
        title=options.title or title or PurePath(source).stem,
        source=source,
        blocks=tuple(blocks),
        url=meta.get("url"),
        report=meta.get("report"),
        date=meta.get("date"),
        edition=meta.get("edition"),
        licence=meta.get("licence") or meta.get("license"),
        author=meta.get("author"),
        media="markdown",
        left_out=left_out,
    )


def _front_matter(text: str, source: str) -> tuple[dict[str, str], str]:
    """Return the scalar fields of the front matter, and the text after it."""
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
    """Reject front matter with aliases, or with more than :data:`MAX_LISTS` lists.

    Aliases can expand a few lines beyond any memory.
    """
    import yaml

    lists = 0
    for token in yaml.scan(text, Loader=yaml.SafeLoader):
        if isinstance(token, yaml.AliasToken):
            raise DocumentError(f"The front matter of {source} was not read: it refers to its own parts (aliases).")
        lists += isinstance(token, yaml.FlowSequenceStartToken | yaml.FlowMappingStartToken)
        if lists > MAX_LISTS:
            raise DocumentError(f"The front matter of {source} was not read: it has more than {MAX_LISTS} lists.")


_SPACES = {"text": "", "code_inline": "", "softbreak": " ", "hardbreak": " "}
"""Types of inline tokens read as text, with the text of those without content; other types are ignored."""
_SCRIPT_TAGS = {"sup": Script.RAISED, "sub": Script.LOWERED}
_INLINE_TAG = re.compile(r"<(/?)([a-zA-Z][\w-]*)")
_JOINED_TAGS = frozenset(
    [
        *("a", "abbr", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins", "kbd"),
        *("mark", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr"),
    ]
)
"""HTML tags that do not separate words; others, such as ``<br>`` and ``<td>``, do."""


@cache
def markdown_parser() -> "MarkdownIt":
    """Return a cached CommonMark parser with tables, strikethrough and inline HTML, without indented code."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable(["code", "html_block"])


def markdown_blocks(text: str) -> list[Block]:
    """Return the blocks of Markdown text, including lists of references; see :func:`read_markdown_text`."""
    return read_markdown_text(text, "text", references=True)[0]


def read_markdown_text(
    text: str, source: str, *, references: bool = False
) -> tuple[list[Block], tuple[OmittedParts, ...]]:
    """Return the blocks of Markdown text with their headings, and the number of parts left out by kind.

    Blocks are paragraphs, list items, rows of Markdown and HTML tables, and displayed mathematics in its source form.
    Fenced code, comments, images and directives are left out.

    Args:
        text: Text without front matter.
        source: Name of the file, for error messages.
        references: Include lists of references.

    Raises:
        DocumentError: An HTML table is nested too deeply.
    """
    reader = _MarkdownReader(source)
    reader.read(text)
    counts = tuple(OmittedParts(kind, count) for kind, count in sorted(reader.left_out.items()) if count)
    groups = (counts, *reader.left_out_of_tables)
    if references:
        return reader.blocks, merge_left_out(groups)
    blocks, left_out = leave_out_references(reader.blocks)
    return blocks, merge_left_out((left_out, *groups))


class _MarkdownReader:
    """Splits Markdown text into blocks."""

    def __init__(self, source: str) -> None:
        self.blocks: list[Block] = []
        self.left_out: Counter[str] = Counter()
        self.left_out_of_tables: list[tuple[OmittedParts, ...]] = []
        self._source = source
        self._headings: list[tuple[int, str]] = []
        self._verbatim: list[str] = []
        """Mathematics and HTML tables that placeholders in the text refer to."""

    def read(self, text: str) -> None:
        """Add the blocks of a text."""
        # The characters 1 and 2 mark the places of what is not Markdown, and belong into no text.
        without_tables = self._replace_tables(_remove_comments(text).replace("\x01", "").replace("\x02", ""))
        marked = _QUOTED.sub(
            "", _MATH.sub(lambda match: self._add_placeholder(match.group().replace("\n", " ")), without_tables)
        )
        self.left_out[NOTE_MARKS] += sum(match.group().startswith("[^") for match in _LEFT_OUT.finditer(marked))
        plain = _NOTE.sub("\n", _LEFT_OUT.sub("", marked))
        level = 0
        rows: list[list[str]] | None = None
        n_header_rows = 0
        for token in markdown_parser().parse(_LINK.sub(r"\1", plain)):
            match token.type:
                case "heading_open":
                    level = int(token.tag[1])
                case "heading_close":
                    level = 0
                case "fence":
                    self.left_out[CODE] += 1
                case "table_open":
                    rows, n_header_rows = [], 0
                case "thead_close" if rows is not None:
                    n_header_rows = len(rows)
                case "tr_open" if rows is not None:
                    rows.append([])
                case "table_close" if rows is not None:
                    for row in row_texts(rows, n_header_rows if any(rows[0]) else 0):
                        self._add_block(row)
                    rows = None
                case "inline":
                    words = self._line(token.children or ())
                    table = _MARKED.fullmatch(words)
                    if table and self._verbatim[int(table[1])].startswith("<"):
                        self._add_table(self._verbatim[int(table[1])])
                        continue
                    words = self._with_verbatim(words)
                    if level:
                        while self._headings and self._headings[-1][0] >= level:
                            self._headings.pop()
                        self._headings += [(level, words)] if words else []
                    elif rows is not None:
                        rows[-1].append(words)
                    else:
                        self._add_block(_TASK.sub("", words))

    def _add_placeholder(self, part: str) -> str:
        self._verbatim.append(part)
        return f"\x01{len(self._verbatim) - 1}\x02"

    def _with_verbatim(self, words: str) -> str:
        return clean(_MARKED.sub(lambda match: self._verbatim[int(match[1])], words))

    def _replace_tables(self, text: str) -> str:
        """Replace each HTML table by a placeholder paragraph."""
        parts: list[str] = []
        position = 0
        while (begin := _TABLE_START.search(text, position)) and (end := _TABLE_END.search(text, begin.end())):
            parts += (
                text[position : begin.start()],
                "\n\n",
                self._add_placeholder(text[begin.start() : end.end()]),
                "\n\n",
            )
            position = end.end()
        return "".join((*parts, text[position:]))

    def _add_table(self, markup: str) -> None:
        blocks, left_out = read_html_text(markup, self._source, references=True)
        self.left_out_of_tables.append(left_out)
        for block in blocks:
            self._add_block(block.text)

    def _line(self, tokens: "Sequence[Token]") -> str:
        """Return the text of a line, resolving raised and lowered text from HTML tags and ``^`` or ``~``."""
        parts: list[TextPart] = []
        script = Script.NORMAL
        for token in tokens:
            if token.type in _SPACES:
                text = token.content or _SPACES[token.type]
                is_plain = script is Script.NORMAL and token.type == "text"
                parts += _split_scripts(text) if is_plain else [TextPart(text, script)]
            elif token.type in ("s_open", "s_close"):
                parts.append(TextPart(" "))  # figures before and after are not one
            elif token.type == "image":
                self.left_out[FIGURES] += 1
            elif token.type == "html_inline" and (tag := _INLINE_TAG.match(token.content)):
                name = tag[2].lower()
                if name in _SCRIPT_TAGS:
                    script = Script.NORMAL if tag[1] else _SCRIPT_TAGS[name]
                elif name not in _JOINED_TAGS:
                    parts.append(TextPart(" "))
        joined = join_parts(parts)
        self.left_out[NOTE_MARKS] += joined.note_marks
        return joined.text.strip()

    def _add_block(self, words: str) -> None:
        if any(char.isalnum() for char in words):
            self.blocks.append(Block(text=words, headings=tuple(title for _, title in self._headings)))


def _remove_comments(text: str) -> str:
    parts: list[str] = []
    position = 0
    while (begin := text.find("<!--", position)) >= 0 and (end := text.find("-->", begin)) >= 0:
        parts.append(text[position:begin])
        position = end + len("-->")
    return "".join((*parts, text[position:]))


def _split_scripts(text: str) -> list[TextPart]:
    """Split text at superscripts (``^``) and subscripts (``~``), as pandoc reads them."""
    parts: list[TextPart] = []
    position = 0
    for match in _SCRIPT_MARKS.finditer(text):
        parts += (
            TextPart(text[position : match.start()]),
            TextPart(match[1] or match[2], _SCRIPT_OF_MARK[match.group()[0]]),
        )
        position = match.end()
    return [*parts, TextPart(text[position:])]
