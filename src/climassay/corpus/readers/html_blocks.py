"""Split a parsed page into text blocks with headings, tables and exponents; omit and count navigation."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from climassay.corpus.documents import Block, OmittedParts
from climassay.corpus.readers.cleaning import clean
from climassay.corpus.readers.mathml import convert_math
from climassay.corpus.readers.references import omit_references
from climassay.corpus.readers.superscripts import Script, TextPart, join_parts
from climassay.corpus.readers.table_rows import TableCell, expand_spans, format_rows

NAVIGATION = "navigation blocks"
HIDDEN = "hidden parts"
CODE = "code blocks"
STRUCK_OUT = "struck-out parts"
FIGURES = "figures"
NOTE_MARKS = "note marks"
PAGE_NUMBERS = "page numbers"
OUTSIDE = "blocks outside the article"

_INVISIBLE_TAGS = frozenset(
    [
        *("head", "title", "script", "style", "template", "noscript", "svg", "canvas", "iframe", "object"),
        *("video", "audio", "select", "textarea", "datalist", "input", "img", "picture", "source"),
        *("track", "embed", "map", "area", "col", "colgroup", "wbr", "rt", "rp", "link", "meta", "base"),
        *("param",),
    ]
)
"""Tags whose content is not visible text."""
_BLOCK_TAGS = frozenset(
    [
        *("p", "div", "section", "article", "main", "header", "footer", "nav", "aside", "form", "menu"),
        *("dialog", "ul", "ol", "li", "dl", "dt", "dd", "blockquote", "pre", "figure", "figcaption"),
        *("thead", "tbody", "tfoot", "tr", "td", "th", "caption", "hr", "address", "details", "summary"),
        *("body", "center", "fieldset", "legend", "search", "hgroup", "h1", "h2", "h3", "h4", "h5", "h6"),
        *("table",),
    ]
)
_PAGE_NUMBER = re.compile(r"\W*(?:[a-z]+\s+)?(?:\d{1,5}|[ivxlc]{1,9})\W*", re.IGNORECASE)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_NAVIGATION_TAGS = frozenset({"nav", "menu", "dialog", "footer", "aside", "form", "search", "header", "button"})
_TAGS_TO_CHECK = _NAVIGATION_TAGS | {"del", "s", "strike"}
"""Tags of elements that are checked for omission even if they have no attributes."""
_NAVIGATION_ROLES = {
    **dict.fromkeys(
        ("navigation", "search", "dialog", "alert", "alertdialog", "contentinfo", "menu", "menubar"), "nav"
    ),
    "complementary": "aside",
    "banner": "header",
}
_NAMED_TAGS = frozenset({"div", "section", "ul", "ol", "li", "p", "header", "span", "a", "aside", "table", "nav"})
_PREFIX = (
    r"(?:(?:left|right|main|top|bottom|page|post|article|site|primary|secondary|global|header|footer|entry|"
    r"js|c|m|o|u)[_-]+)*"
)
_SUFFIX = (
    r"(?:[_-]+(?:banner|bar|box|notice|popup|wrapper|wrap|container|list|nav|menu|form|section|block|widget|links?|"
    r"buttons?|btns?|icons?|area|text|inner|modal|dialog|overlay|posts?|articles?|stories|items?|news|pages|media|tools?|"
    r"signup|toggle|content|panel|group|this|count|\d+))*"
)
_NAVIGATION_NAME = re.compile(
    rf"{_PREFIX}(?:cookies?|consent|gdpr|didomi|usercentrics|trustarc|newsletter|subscribe|breadcrumbs?|skip[_-]?(?:links?|to|nav)\w*|pagination|pager|"
    r"masthead|site[_-]?(?:header|footer|nav)|ads?|advert\w*|sharing|"
    r"share[_-](?:buttons?|links?|bar|icons?|block|tools?|this)|social[_-](?:links?|media|icons?|share|bar|buttons?|nav)|"
    rf"mw-editsection|mw-jump-link|navbox|toc){_SUFFIX}",
    re.IGNORECASE,
)
"""Pattern of class names and ids that only navigation and advertising have."""
_AMBIGUOUS_NAME = re.compile(
    rf"{_PREFIX}(?:share|social|sidebar|related|comments?|promos?|banner|menu|noprint|teasers?){_SUFFIX}", re.IGNORECASE
)
"""Pattern of class names and ids that both navigation and content sections may have."""
_NOT_SHOWN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_NOTE_NAME = re.compile(
    r"(?:^|[\s_-])(?:foot|end)?(?:notes?|noteref|fn|fnref|footnotes?|endnotes?|cite|citation|xref|bibr|reference)(?:$|[\s_-])",
    re.IGNORECASE,
)
_NOTE_ROLES = frozenset({"doc-noteref", "doc-biblioref", "noteref", "biblioref"})
_HEADER_NAME = re.compile(r"(?:^|[\s_-])(?:col(?:umn)?)?head(?:er|ing)?s?(?:$|[\s_-])", re.IGNORECASE)
_BACK_LINK = re.compile(r"[↩↑⏎⬆^][\ufe0e\ufe0f]?")
_SCRIPT_TAGS = {"sup": Script.SUPERSCRIPT, "sub": Script.SUBSCRIPT}
_SCRIPT_STYLE = re.compile(r"vertical-align\s*:\s*(sup|sub)", re.IGNORECASE)
_SCRIPT_CLASS = re.compile(r"(?:^|\s)(sup|sub)(?:er)?(?:script)?(?:\s|$)", re.IGNORECASE)
_CELL_ROLES = frozenset({"cell", "gridcell", "columnheader", "rowheader"})
_SHORT_MARK = re.compile(r"\W*\w{1,4}\W*")
_SENTENCE_OR_FIGURE = re.compile(r"[.!?…。]['\"”’»)\]]*$|\d")
_SENTENCE_END = re.compile(r"[^.][.!?。]['\"”’»)\]]*$")
_SPACE = re.compile(r"\s+")
MAX_LINK_SHARE = 0.8
"""A short block that is not a sentence counts as navigation if a higher fraction of its text is links."""
MAX_SHORT_BLOCK_CHARACTERS = 120
MAX_NAVIGATION_CHARACTERS = 600
"""Maximum length of a navigation element in characters. A longer element is omitted only if it is mostly links."""
MAX_FORM_CHARACTERS = 200
MAX_SIDEBAR_CHARACTERS = 200
MIN_SENTENCE_SPACES = 3
"""An element named like a sidebar is kept if one of its sentences has at least this number of spaces."""
MIN_HEAVY_LINK_SHARE = 0.5
MIN_MAIN_SHARE = 0.3
"""``<main>`` or ``<article>`` is taken as the content if it has at least this fraction of the page's text."""
MAX_OUTSIDE_RATIO = 0.5
"""Maximum ratio of the running text outside the main content element to the text inside it. Above this value, the whole
page is read."""
MAX_DATA_CELL_CHARACTERS = 300
"""Maximum length, in characters, of a cell with paragraphs. A table with a longer cell counts as a layout table."""
MIN_DATA_ROWS = 3
MIN_DATA_COLUMNS = 3
"""Minimum number of columns of a data table with long cells. Such a table also needs :data:`MIN_DATA_ROWS` rows."""
_SCAN_FACTOR = 40
"""Maximum number of characters scanned to measure navigation elements, as a multiple of the page's length."""


def extract_blocks(page: LexborHTMLParser, *, references: bool = False) -> tuple[list[Block], tuple[OmittedParts, ...]]:
    """Return the text blocks of a parsed page in reading order, and the number of omitted parts by kind.

    Scripts and styles are removed from ``page`` in place. ``references`` includes lists of references.
    """
    for node in page.css("script, style"):
        node.decompose()
    body = page.body
    if body is None:
        return [], ()
    root = _find_content_root(body)
    walker = _Walker(len(body.text()), is_whole_page=root.mem_id == body.mem_id)
    walker.walk(root)
    if root.mem_id != body.mem_id:
        outside_walker = _Walker(len(body.text()), is_whole_page=True, skipped=root.mem_id)
        outside_walker.walk(body)
        n_prose_characters = sum(
            len(block.text) for block in outside_walker.blocks if len(block.text) >= MAX_SHORT_BLOCK_CHARACTERS
        )
        if n_prose_characters > MAX_OUTSIDE_RATIO * sum(len(block.text) for block in walker.blocks):
            walker = _Walker(len(body.text()), is_whole_page=True)
            walker.walk(body)
        else:
            walker.omitted_counts += outside_walker.omitted_counts
            walker.omitted_counts[OUTSIDE] += len(outside_walker.blocks)
    omitted_parts = tuple(OmittedParts(kind, count) for kind, count in sorted(walker.omitted_counts.items()) if count)
    if references:
        return walker.blocks, omitted_parts
    blocks, omitted_references = omit_references(walker.blocks)
    return blocks, (*omitted_references, *omitted_parts)


def extract_heading(node: LexborNode) -> str:
    """Return the text of a heading element, cleaned like the headings of blocks."""
    return _Walker(len(node.text()), is_whole_page=False).read_line(node)[0]


def _find_content_root(body: LexborNode) -> LexborNode:
    n_characters = len(body.text(strip=True)) or 1
    for selector in ("main", "[role=main]", "article"):
        nodes = body.css(selector)
        if nodes and (longest_node := max(nodes, key=lambda node: len(node.text()))):
            n_other_characters = sum(len(node.text(strip=True)) for node in nodes) - len(longest_node.text(strip=True))
            n_best_characters = len(longest_node.text(strip=True))
            if (
                n_best_characters >= MIN_MAIN_SHARE * n_characters
                and n_other_characters < MAX_OUTSIDE_RATIO * n_best_characters
            ):
                return longest_node
    return body


class _Siblings(NamedTuple):
    """Sibling nodes that have not been visited yet."""

    nodes: Iterator[LexborNode]
    in_link: bool = False
    is_note_like: bool = False
    """True inside a link to another part of the page, or inside an element whose name identifies a note."""
    is_block: bool = False
    """Whether the current text block ends after the last sibling."""


class _Walker:
    """Traversal of a page that splits its text into blocks."""

    def __init__(self, page_length: int, *, is_whole_page: bool, skipped: int | None = None) -> None:
        self.blocks: list[Block] = []
        self.omitted_counts: Counter[str] = Counter()
        self._headings: list[tuple[int, str]] = []
        self._parts: list[TextPart] = []
        self._n_linked_characters = 0
        self._page_length = page_length
        self._scans_left = _SCAN_FACTOR * (page_length + 1000)
        self._is_whole_page = is_whole_page
        self._skipped_id = skipped
        self._has_cell_roles = False

    def walk(self, node: LexborNode) -> None:
        """Add all text inside a node. The traversal is iterative, so that deep pages cannot overflow the stack."""
        self._has_cell_roles = node.css_first("[role=cell], [role=gridcell]") is not None
        stack = [_Siblings(node.iter(include_text=True))]
        while stack:
            siblings = stack[-1]
            child = next(siblings.nodes, None)
            if child is not None:
                stack += self._visit_node(child, siblings)
                continue
            stack.pop()
            if siblings.is_block:
                self.end_block()
        self.end_block()

    def _visit_node(self, node: LexborNode, siblings: _Siblings) -> "list[_Siblings]":
        """Process a node; return the children that must be visited separately."""
        tag = self._get_tag(node)
        if tag == "-text":
            text = node.text(deep=False) or ""
            self._parts.append(TextPart(text))
            self._n_linked_characters += len(text.strip()) if siblings.in_link else 0
            return []
        if not self._is_content(node, tag):
            return []
        if tag in _HEADINGS:
            self.end_block()
            while self._headings and self._headings[-1][0] >= _HEADINGS[tag]:
                self._headings.pop()
            title, tables = self.read_line(node)
            if title:
                self._headings.append((_HEADINGS[tag], title))
            return [_Siblings(iter(tables))]
        if tag == "table":
            return self._add_table(node)
        if tag == "pre" and node.css_first("code") is not None:
            self.end_block()
            self.omitted_counts[CODE] += 1  # other preformatted text may well be prose
            return []
        if tag in _BLOCK_TAGS:
            self.end_block()
            if tag == "figure" and node.css_first("img, svg, picture, object, iframe, video, canvas") is not None:
                self.omitted_counts[FIGURES] += 1
            return [_Siblings(node.iter(include_text=True), siblings.in_link, is_block=True)]
        parts = self._convert_inline_node(node, tag, siblings)
        if parts is None:
            return [_list_children(node, tag, siblings)]
        self._parts += parts
        if siblings.in_link:
            self._n_linked_characters += sum(len(part.text.strip()) for part in parts)
        return []

    def _get_tag(self, node: LexborNode) -> str:
        """Return the tag of a node, or ``td`` for any element with the role of a table cell."""
        tag = _get_tag(node)
        is_cell = self._has_cell_roles and tag in ("div", "span") and node.attributes.get("role") in _CELL_ROLES
        return "td" if is_cell else tag

    def read_line(self, root: LexborNode) -> tuple[str, list[LexborNode]]:
        """Return all text inside a node as one line, and its tables, whose text is excluded from the line."""
        parts: list[TextPart] = []
        tables: list[LexborNode] = []
        stack = [_Siblings(root.iter(include_text=True))]
        while stack:
            siblings = stack[-1]
            child = next(siblings.nodes, None)
            if child is None:
                stack.pop()
                if siblings.is_block:
                    parts.append(TextPart(" "))
                continue
            tag = self._get_tag(child)
            if not (tag == "button" or self._is_content(child, tag)):
                continue
            if tag == "table":
                tables.append(child)
            elif tag in _BLOCK_TAGS:
                parts.append(TextPart(" "))
                stack.append(_Siblings(child.iter(include_text=True), siblings.in_link, is_block=True))
            elif (inline_parts := self._convert_inline_node(child, tag, siblings)) is not None:
                parts += inline_parts
            else:
                stack.append(_list_children(child, tag, siblings))
        return self._join_parts(parts), tables

    def _join_parts(self, parts: list[TextPart]) -> str:
        joined_text = join_parts(parts)
        self.omitted_counts[NOTE_MARKS] += joined_text.n_note_marks
        return clean(joined_text.text)

    def _convert_inline_node(self, node: LexborNode, tag: str, siblings: _Siblings) -> list[TextPart] | None:
        """Return the parts of an inline node; None if its children must be visited separately."""
        if tag == "-text":
            return [TextPart(node.text(deep=False) or "")]
        if tag == "br":
            return [TextPart(" ")]
        if tag == "math":
            return convert_math(node)
        if (script := _SCRIPT_TAGS.get(tag) or (_find_styled_script(node) if tag == "span" else None)) is not None:
            is_note_like = siblings.is_note_like or _is_note_like(node) or any(map(_is_note_like, node.css("a")))
            return [TextPart(_extract_script_text(node), script, is_note_like)]
        if tag == "a":
            text = node.text().strip()
            if _get_role(node) in _NOTE_ROLES and _SHORT_MARK.fullmatch(text):
                return [TextPart(text, Script.NOTE)]
            if _BACK_LINK.fullmatch(text):
                return [TextPart(" ")]
        return None

    def _is_content(self, node: LexborNode, tag: str) -> bool:
        """Return whether a node is part of the content. A node with text that is not is counted as omitted."""
        if tag == "-text":
            return True
        if tag in _INVISIBLE_TAGS or tag.startswith(("-", "!", "_")) or node.mem_id == self._skipped_id:
            return False
        attributes = node.attributes
        if not attributes and tag not in _TAGS_TO_CHECK:
            return True
        kind = None
        if (
            "hidden" in attributes
            or attributes.get("aria-hidden") == "true"
            or ("style" in attributes and _NOT_SHOWN.search(attributes["style"] or ""))
        ):
            kind = HIDDEN
        elif tag in ("del", "s", "strike"):
            kind = STRUCK_OUT
        elif _get_role(node) in ("pagebreak", "doc-pagebreak") and _PAGE_NUMBER.fullmatch(node.text()):
            kind = PAGE_NUMBERS
        elif self._is_navigation(node, tag, attributes):
            kind = NAVIGATION
        if kind and any(char.isalnum() for char in node.text()):
            self.omitted_counts[kind] += 1
        return kind is None

    def _is_navigation(self, node: LexborNode, tag: str, attributes: dict[str, str | None]) -> bool:
        """Return whether an element is navigation or advertising, judged by its tag, role, names, length and links."""
        kind = tag if tag in _NAVIGATION_TAGS else _NAVIGATION_ROLES.get(attributes.get("role") or "", "")
        names = f"{attributes.get('class') or ''} {attributes.get('id') or ''}".split() if tag in _NAMED_TAGS else []
        has_navigation_name = any(map(_NAVIGATION_NAME.fullmatch, names))
        has_ambiguous_name = any(map(_AMBIGUOUS_NAME.fullmatch, names))
        if not (kind or has_navigation_name or has_ambiguous_name) or self._scans_left < 0:
            return False
        if kind == "button":
            return True
        if kind == "header" and not (self._is_whole_page or has_navigation_name or has_ambiguous_name):
            kind = ""
        text = _SPACE.sub(" ", node.text(separator=" ")).strip()
        self._scans_left -= len(text)
        length = len(text) or 1
        if (
            node.css_first("h1, main, article, [role=main]") is not None
            or 2 * length > self._page_length > MAX_NAVIGATION_CHARACTERS
        ):
            return False
        is_link_heavy = sum(len(link.text(strip=True)) for link in node.css("a")) > MIN_HEAVY_LINK_SHARE * length
        has_heading = node.css_first("h2, h3, h4, h5, h6") is not None
        if kind in ("nav", "menu", "dialog", "footer"):
            return is_link_heavy or length < MAX_NAVIGATION_CHARACTERS
        if kind == "form" or kind == "search":
            return is_link_heavy or (
                length < MAX_FORM_CHARACTERS and not has_heading and node.css_first("table") is None
            )
        if has_navigation_name:
            return is_link_heavy or length < MAX_NAVIGATION_CHARACTERS
        if has_ambiguous_name or kind == "header":
            is_sentence = kind != "header" and _SENTENCE_END.search(text) and text.count(" ") >= MIN_SENTENCE_SPACES
            return is_link_heavy or (length < MAX_SIDEBAR_CHARACTERS and not has_heading and not is_sentence)
        if kind == "aside":
            return is_link_heavy or (length < MAX_SHORT_BLOCK_CHARACTERS and _SENTENCE_OR_FIGURE.search(text) is None)
        return False

    def _add_table(self, table: LexborNode) -> "list[_Siblings]":
        """Add a block for each row of a data table; return the nodes that remain to be visited.

        These are the children of a layout table, or the tables nested in a data table.
        """
        self.end_block()
        rows = list(_iterate_rows(table))
        if _is_layout(table, rows):
            return [_Siblings(table.iter(include_text=True), is_block=True)]
        nested_tables: list[LexborNode] = []
        if (caption := next((child for child in table.iter() if _get_tag(child) == "caption"), None)) is not None:
            text, tables = self.read_line(caption)
            nested_tables += tables
            self._append_block(text)
        cells_by_row: list[list[TableCell]] = []
        for row in rows:
            cells = []
            for cell in (cell for cell in _find_cells(row) if self._is_content(cell, _get_tag(cell))):
                text, tables = self.read_line(cell)
                nested_tables += tables
                cells.append(TableCell(text, _parse_span(cell, "rowspan"), _parse_span(cell, "colspan")))
            cells_by_row.append(cells)
        grid = expand_spans(cells_by_row)
        n_title_rows = _count_title_rows(grid)
        for text in (
            *format_rows(grid[:n_title_rows], 0),
            *format_rows(grid[n_title_rows:], _count_header_rows(rows[n_title_rows:])),
        ):
            self._append_block(text)
        return [_Siblings(iter(nested_tables))]

    def end_block(self) -> None:
        """End the current block."""
        if not self._parts:
            return
        text = self._join_parts(self._parts)
        is_short = len(text) < MAX_SHORT_BLOCK_CHARACTERS and not _SENTENCE_END.search(text)
        is_navigation = is_short and self._n_linked_characters > MAX_LINK_SHARE * len(text)
        self._parts.clear()
        self._n_linked_characters = 0
        if not is_navigation:
            self._append_block(text)
        elif any(char.isalnum() for char in text):
            self.omitted_counts[NAVIGATION] += 1

    def _append_block(self, text: str) -> None:
        if any(char.isalnum() for char in text):
            self.blocks.append(Block(text=text, headings=tuple(title for _, title in self._headings)))


def _get_tag(node: LexborNode | None) -> str:
    tag = (node and node.tag) or ""
    return tag.rpartition(":")[2] if ":" in tag else tag


def _find_styled_script(node: LexborNode) -> Script | None:
    """Return the vertical position that the style or class of a ``<span>`` states; None if they state none."""
    attributes = node.attributes
    if not attributes:
        return None
    match = _SCRIPT_STYLE.search(attributes.get("style") or "") or _SCRIPT_CLASS.search(attributes.get("class") or "")
    return _SCRIPT_TAGS[match[1].lower()] if match else None


def _get_role(node: LexborNode) -> str:
    attributes = node.attributes
    return attributes.get("role") or attributes.get("epub:type") or ""


def _list_children(node: LexborNode, tag: str, siblings: _Siblings) -> _Siblings:
    """Return the children of an inline element, with the properties that they inherit from it."""
    nodes = node.iter(include_text=True)
    if tag != "a":
        return _Siblings(nodes, siblings.in_link, siblings.is_note_like)
    return _Siblings(nodes, siblings.in_link or "href" in node.attributes, siblings.is_note_like or _is_note_like(node))


def _is_note_like(node: LexborNode) -> bool:
    """Return whether an element is a link within a page, or has the name or role of a note."""
    attributes = node.attributes
    names = f"{attributes.get('class') or ''} {_get_role(node)}"
    return "#" in (attributes.get("href") or "") or _NOTE_NAME.search(names) is not None


def _extract_script_text(node: LexborNode) -> str:
    """Return the text of a superscript or subscript element; superscripts nested in it become exponents."""
    if node.css_first("sup sup, sup sub, sub sup, sub sub") is None:
        return node.text()
    scripts = {"sup": Script.EXPONENT, "sub": Script.SUBSCRIPT}
    children = node.iter(include_text=True)
    return join_parts([TextPart(child.text(), scripts.get(_get_tag(child), Script.NORMAL)) for child in children]).text


def _iterate_rows(table: LexborNode) -> Iterator[LexborNode]:
    """Yield the rows of a table, excluding the rows of nested tables."""
    for child in table.iter():
        tag = _get_tag(child)
        if tag == "tr":
            yield child
        elif tag in ("thead", "tbody", "tfoot"):
            yield from (row for row in child.iter() if _get_tag(row) == "tr")


def _find_cells(row: LexborNode) -> list[LexborNode]:
    return [cell for cell in row.iter() if _get_tag(cell) in ("td", "th")]


def _parse_span(cell: LexborNode, name: str) -> int:
    value = (cell.attributes.get(name) or "").strip()
    return int(value) if value.isascii() and value.isdigit() and len(value) < 6 else 1


def _is_layout(table: LexborNode, rows: list[LexborNode]) -> bool:
    """Return whether a table only arranges parts of a page instead of presenting data."""
    if table.attributes.get("role") in ("presentation", "none"):
        return True
    cells = [_find_cells(row) for row in rows]
    if any(_get_tag(cell) == "th" for row in cells for cell in row) or any(
        _get_tag(row.parent) == "thead" for row in rows
    ):
        return False
    n_columns = sorted(map(len, cells))[len(cells) // 2] if cells else 0
    has_table = any(cell.css_first("table") is not None for row in cells for cell in row)
    if n_columns <= 1 or has_table or table.css_first("article, main, h1, h2") is not None:
        return True
    if len(cells) == 1:
        return table.css_first("p, ul, ol, div") is not None or any(
            len(cell.text()) > MAX_DATA_CELL_CHARACTERS for cell in cells[0]
        )
    if len(cells) >= MIN_DATA_ROWS and n_columns >= MIN_DATA_COLUMNS:
        return False
    return any(
        len(cell.css("p, h3, h4, h5, h6")) > 1 and len(cell.text()) > MAX_DATA_CELL_CHARACTERS
        for row in cells
        for cell in row
    )


def _count_title_rows(grid: list[list[str | None]]) -> int:
    """Return the number of rows at the top that consist of a single cell spanning all columns."""
    count = 0
    while count < len(grid) - 1 and len(grid[count]) > 1 and all(cell is None for cell in grid[count][1:]):
        count += 1
    return count


def _count_header_rows(rows: list[LexborNode]) -> int | None:
    """Return the number of header rows at the top; None if the markup does not mark header rows."""
    cells = [_find_cells(row) for row in rows]
    count = 0
    for row, row_cells in zip(rows, cells, strict=True):
        if not (_get_tag(row.parent) == "thead" or (row_cells and all(_get_tag(cell) == "th" for cell in row_cells))):
            break
        count += 1
    if count or any(_get_tag(cell) == "th" for row_cells in cells for cell in row_cells):
        return count
    count = 0
    while count < len(rows) - 1 and _has_header_class(rows[count], cells[count]):
        count += 1
    if count:
        return count
    is_bold = [bool(row_cells) and all(map(_is_bold, row_cells)) for row_cells in cells[:2]]
    return 1 if is_bold == [True, False] else None


def _has_header_class(row: LexborNode, cells: list[LexborNode]) -> bool:
    """Return whether the class of a row, or of each of its cells, identifies a header."""
    if _HEADER_NAME.search(row.attributes.get("class") or ""):
        return True
    return bool(cells) and all(_HEADER_NAME.search(cell.attributes.get("class") or "") for cell in cells)


def _is_bold(cell: LexborNode) -> bool:
    text = cell.text(strip=True)
    return not text or sum(len(node.text(strip=True)) for node in cell.css("b, strong")) >= len(text)
