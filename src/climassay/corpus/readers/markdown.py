"""Read Markdown: front matter, headings, and the text without markup."""

import datetime
import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from climassay.corpus.documents import Block, Document, OmittedParts, ReadOptions, merge_omitted_parts
from climassay.corpus.readers.cleaning import clean, document_id
from climassay.corpus.readers.file_types import reader
from climassay.corpus.readers.html import read_html_text
from climassay.corpus.readers.html_blocks import CODE, FIGURES, NOTE_MARKS
from climassay.corpus.readers.references import omit_references
from climassay.corpus.readers.superscripts import Script, TextPart, join_parts
from climassay.corpus.readers.table_rows import format_rows
from climassay.corpus.readers.text import decode
from climassay.errors import DocumentError

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
# The bounds on lengths below keep a stray mark from costing more than linear time.
_MATH = re.compile(r"\$\$[^$]+\$\$|\$(?=\S)[^$\n]{1,500}(?<=\S)\$(?!\d)")
_PLACEHOLDER = re.compile("\x01(\\d+)\x02")
_TABLE_START = re.compile(r"<table(?=[\s>])", re.IGNORECASE)
_TABLE_END = re.compile(r"</table\s*>", re.IGNORECASE)
_SCRIPT_MARKS = re.compile(r"(?<=\S)\^([^\s^]{1,20})\^|(?<=[^\W\d_])~([^\s~]{1,10})~")
_SCRIPT_OF_MARK = {"^": Script.SUPERSCRIPT, "~": Script.SUBSCRIPT}
_QUOTE_MARKS = re.compile(r"^(?: {0,3}> ?)+", re.MULTILINE)
_OMITTED_MARKUP = re.compile(
    r"^[ \t]*:{3,}.*$|^ {0,3}\[(?!\^)[^\]\n]+\]:\s+\S+.*$|\[\^[^\[\]]{1,100}\](?!:)", re.MULTILINE
)
"""Pattern of directives, link reference definitions and footnote marks."""
_NOTE = re.compile(r"^ {0,3}\[\^[^\]]+\]:\s*", re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[([^\[\]]{1,500})\](?:\[[^\[\]]{0,200}\]|\([^()\n]{0,500} [^()\n]{0,500}\))")
"""Pattern of links that CommonMark does not recognise: without a definition, or with spaces in the address."""
_TASK = re.compile(r"^\[[ xX]\][ \t]+")
MAX_LISTS = 500
"""Maximum number of bracketed lists in front matter; parsing time is quadratic in their nesting depth."""


@reader("markdown", ".md", ".markdown", ".mdown")
def read_markdown(data: bytes, source: str, options: ReadOptions) -> Document:
    """Read a Markdown file; metadata are taken from YAML front matter, if there is any.

    Raises:
        DocumentError: The file is not text or is empty, or its front matter is not valid YAML.
    """
    text = decode(data, source).replace("\r\n", "\n").replace("\r", "\n")
    metadata, body = _parse_front_matter(text, source)
    blocks, omitted_parts = read_markdown_text(body, source, references=options.references)
    title = metadata.get("title")
    top_headings = {block.headings[0] for block in blocks if block.headings}
    if (
        len(top_headings) == 1
        and all(block.headings for block in blocks)
        and (title is None or top_headings == {title})
    ):
        # The one heading above everything is the title, not a chapter.
        title = title or top_headings.pop()
        blocks = [Block(text=block.text, headings=block.headings[1:]) for block in blocks]
    if not blocks:
        raise DocumentError(f"{source} is empty.")
    return Document(
        id=document_id(data),
        title=options.title or title or PurePath(source).stem,
        source=source,
        blocks=tuple(blocks),
        url=metadata.get("url"),
        report=metadata.get("report"),
        date=metadata.get("date"),
        edition=metadata.get("edition"),
        licence=metadata.get("licence") or metadata.get("license"),
        author=metadata.get("author"),
        media="markdown",
        omitted_parts=omitted_parts,
    )


def _parse_front_matter(text: str, source: str) -> tuple[dict[str, str], str]:
    """Parse the front matter; return its scalar fields by name, and the text after it."""
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

    Aliases can expand a few lines to more data than fit in memory.
    """
    import yaml

    n_lists = 0
    for token in yaml.scan(text, Loader=yaml.SafeLoader):
        if isinstance(token, yaml.AliasToken):
            raise DocumentError(f"The front matter of {source} was not read: it refers to its own parts (aliases).")
        n_lists += isinstance(token, yaml.FlowSequenceStartToken | yaml.FlowMappingStartToken)
        if n_lists > MAX_LISTS:
            raise DocumentError(f"The front matter of {source} was not read: it has more than {MAX_LISTS} lists.")


_SPACES = {"text": "", "code_inline": "", "softbreak": " ", "hardbreak": " "}
"""Types of inline tokens that contain text, with the text to use if they are empty; other types are ignored."""
_SCRIPT_TAGS = {"sup": Script.SUPERSCRIPT, "sub": Script.SUBSCRIPT}
_INLINE_TAG = re.compile(r"<(/?)([a-zA-Z][\w-]*)")
_JOINED_TAGS = frozenset(
    [
        *("a", "abbr", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins", "kbd"),
        *("mark", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr"),
    ]
)
"""HTML tags that do not separate words, unlike ``<br>`` and ``<td>``."""


@cache
def markdown_parser() -> "MarkdownIt":
    """Return a cached CommonMark parser for tables, strikethrough and inline HTML, but not for indented code."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable(["code", "html_block"])


def markdown_blocks(text: str) -> list[Block]:
    """Return the blocks of Markdown text, including references; see :func:`read_markdown_text`."""
    return read_markdown_text(text, "text", references=True)[0]


def read_markdown_text(
    text: str, source: str, *, references: bool = False
) -> tuple[list[Block], tuple[OmittedParts, ...]]:
    """Return the blocks of Markdown text with their headings, and the number of omitted parts by kind.

    Blocks are paragraphs, list items, rows of Markdown and HTML tables, and displayed equations in their source form.
    Fenced code, comments, images and directives are omitted.

    Args:
        text: Text without front matter.
        source: Name of the file in error messages.
        references: Whether to include lists of references.

    Raises:
        DocumentError: An HTML table is nested too deeply.
    """
    reader = _MarkdownReader(source)
    reader.read(text)
    omitted_parts = tuple(OmittedParts(kind, count) for kind, count in sorted(reader.omitted_counts.items()) if count)
    groups = (omitted_parts, *reader.table_omitted_parts)
    if references:
        return reader.blocks, merge_omitted_parts(groups)
    blocks, omitted_references = omit_references(reader.blocks)
    return blocks, merge_omitted_parts((omitted_references, *groups))


class _MarkdownReader:
    """Reader that splits Markdown text into blocks."""

    def __init__(self, source: str) -> None:
        self.blocks: list[Block] = []
        self.omitted_counts: Counter[str] = Counter()
        self.table_omitted_parts: list[tuple[OmittedParts, ...]] = []
        self._source = source
        self._headings: list[tuple[int, str]] = []
        self._verbatim: list[str] = []
        """Formulae and HTML tables that placeholders in the text stand for."""

    def read(self, text: str) -> None:
        # The characters 1 and 2 mark the places of what is not Markdown, and belong into no text.
        text_without_tables = self._replace_tables(_remove_comments(text).replace("\x01", "").replace("\x02", ""))
        marked_text = _QUOTE_MARKS.sub(
            "", _MATH.sub(lambda match: self._add_placeholder(match.group().replace("\n", " ")), text_without_tables)
        )
        self.omitted_counts[NOTE_MARKS] += sum(
            match.group().startswith("[^") for match in _OMITTED_MARKUP.finditer(marked_text)
        )
        plain_text = _NOTE.sub("\n", _OMITTED_MARKUP.sub("", marked_text))
        level = 0
        rows: list[list[str]] | None = None
        n_header_rows = 0
        for token in markdown_parser().parse(_LINK.sub(r"\1", plain_text)):
            match token.type:
                case "heading_open":
                    level = int(token.tag[1])
                case "heading_close":
                    level = 0
                case "fence":
                    self.omitted_counts[CODE] += 1
                case "table_open":
                    rows, n_header_rows = [], 0
                case "thead_close" if rows is not None:
                    n_header_rows = len(rows)
                case "tr_open" if rows is not None:
                    rows.append([])
                case "table_close" if rows is not None:
                    for row in format_rows(rows, n_header_rows if any(rows[0]) else 0):
                        self._add_block(row)
                    rows = None
                case "inline":
                    line = self._join_tokens(token.children or ())
                    table = _PLACEHOLDER.fullmatch(line)
                    if table and self._verbatim[int(table[1])].startswith("<"):
                        self._add_table(self._verbatim[int(table[1])])
                        continue
                    line = self._insert_verbatim(line)
                    if level:
                        while self._headings and self._headings[-1][0] >= level:
                            self._headings.pop()
                        self._headings += [(level, line)] if line else []
                    elif rows is not None:
                        rows[-1].append(line)
                    else:
                        self._add_block(_TASK.sub("", line))

    def _add_placeholder(self, part: str) -> str:
        self._verbatim.append(part)
        return f"\x01{len(self._verbatim) - 1}\x02"

    def _insert_verbatim(self, line: str) -> str:
        return clean(_PLACEHOLDER.sub(lambda match: self._verbatim[int(match[1])], line))

    def _replace_tables(self, text: str) -> str:
        """Replace each HTML table by a placeholder in a separate paragraph."""
        parts: list[str] = []
        position = 0
        while (start_tag := _TABLE_START.search(text, position)) and (
            end_tag := _TABLE_END.search(text, start_tag.end())
        ):
            parts += (
                text[position : start_tag.start()],
                "\n\n",
                self._add_placeholder(text[start_tag.start() : end_tag.end()]),
                "\n\n",
            )
            position = end_tag.end()
        return "".join((*parts, text[position:]))

    def _add_table(self, markup: str) -> None:
        blocks, omitted_parts = read_html_text(markup, self._source, references=True)
        self.table_omitted_parts.append(omitted_parts)
        for block in blocks:
            self._add_block(block.text)

    def _join_tokens(self, tokens: "Sequence[Token]") -> str:
        """Return the text of a line, resolving superscripts and subscripts from HTML tags, ``^`` and ``~``."""
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
                self.omitted_counts[FIGURES] += 1
            elif token.type == "html_inline" and (tag := _INLINE_TAG.match(token.content)):
                name = tag[2].lower()
                if name in _SCRIPT_TAGS:
                    script = Script.NORMAL if tag[1] else _SCRIPT_TAGS[name]
                elif name not in _JOINED_TAGS:
                    parts.append(TextPart(" "))
        joined_text = join_parts(parts)
        self.omitted_counts[NOTE_MARKS] += joined_text.n_note_marks
        return joined_text.text.strip()

    def _add_block(self, line: str) -> None:
        if any(char.isalnum() for char in line):
            self.blocks.append(Block(text=line, headings=tuple(title for _, title in self._headings)))


def _remove_comments(text: str) -> str:
    parts: list[str] = []
    position = 0
    while (begin := text.find("<!--", position)) >= 0 and (end := text.find("-->", begin)) >= 0:
        parts.append(text[position:begin])
        position = end + len("-->")
    return "".join((*parts, text[position:]))


def _split_scripts(text: str) -> list[TextPart]:
    """Split text at superscripts (``^``) and subscripts (``~``), using pandoc's syntax."""
    parts: list[TextPart] = []
    position = 0
    for match in _SCRIPT_MARKS.finditer(text):
        parts += (
            TextPart(text[position : match.start()]),
            TextPart(match[1] or match[2], _SCRIPT_OF_MARK[match.group()[0]]),
        )
        position = match.end()
    return [*parts, TextPart(text[position:])]
