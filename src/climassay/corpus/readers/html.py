"""Read web pages: the text of the article, its headings, and what the page says of itself."""

import json
import re
from collections import Counter
from contextlib import suppress
from pathlib import PurePath
from typing import Any, NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from climassay.corpus.documents import Block, Document, LeftOut, ReadOptions
from climassay.corpus.readers.cleaning import clean, document_id
from climassay.corpus.readers.file_types import reader
from climassay.corpus.readers.text import decode
from climassay.errors import DocumentError

_UNWANTED = (
    "script, style, noscript, template, nav, footer, aside, form, button, select, svg, canvas, iframe, object, video, "
    "audio, dialog, menu, figure > img, [hidden], [aria-hidden=true], [role=navigation], [role=banner], "
    "[role=contentinfo], [role=complementary], [role=search], [role=dialog], [role=alert], .noprint, .mw-editsection, "
    ".navbox, .infobox, .toc, #toc, sup.reference, .reference-link"
)
_UNWANTED_NAME = re.compile(
    r"(?:^|[\s_-])(?:cookies?|consent|breadcrumbs?|share|sharing|social|sidebar|newsletter|subscribe|related|comments?|"
    r"advert\w*|ads?|promo|banner|masthead|site-?(?:header|footer|nav)|skip-?(?:link|to)|pagination|menu)(?:$|[\s_-])",
    re.IGNORECASE,
)
_NAMED = "div, section, ul, ol, p, header, span[class], a[class], table"
_BLOCK_TAGS = frozenset(
    [
        *("p", "div", "section", "article", "main", "header", "ul", "ol", "li", "dl", "dt", "dd", "blockquote", "pre"),
        *("figure", "figcaption", "table", "thead", "tbody", "tfoot", "tr", "td", "th", "caption", "hr", "address"),
        *("details", "summary", "body", "center", "fieldset", "h1", "h2", "h3", "h4", "h5", "h6"),
    ]
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_SUPERSCRIPTS = str.maketrans("0123456789+-−–n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻ⁿ")
_NOTE_MARKS = re.compile(r"[*†‡§¶]+|[\[(]\w{1,3}[\])]|\d{1,3}(?:\s*[,;–-]\s*\d{1,3})+|\d{1,3}\)")
_NOTE_NAME = re.compile(r"(?:^|[\s_-])(?:foot|end)?(?:note|notes|noteref|fn|fnref)(?:$|[\s_-])", re.IGNORECASE)
_NO_POWER = (re.compile(r"[.,;:!?”’]$"), re.compile(r"[A-Za-z]{2}\d?$|[.,;:!?”’]$"))
"""What comes before a raised figure, and before one of several digits, that is not a power: CO₂²⁶ has a note."""
_EXPONENT = re.compile(r"[+\-−–]?[0-9n]{1,3}")
_TAG = re.compile(r"<(/?)([a-zA-Z][^\s/>]*)")
_NEVER_DEEP = frozenset(
    [
        *("a", "p", "li", "dt", "dd", "tr", "td", "th", "thead", "tbody", "tfoot"),
        *("option", "optgroup", "rp", "rt", "html"),
        *("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr", "body"),
    ]
)
"""Tags that need no end, or end by themselves where the next one of them begins."""
_CHARSET = re.compile(rb"""<meta[^>]+charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
_DATE = re.compile(r"\d{4}(?:-\d{2}(?:-\d{2})?)?")
MOST_LINK_SHARE = 0.8
"""A short block that is links for the greater part is navigation."""
SHORT_BLOCK = 120
DEEPEST = 10_000
"""Elements within each other: a parser's time grows with their square, and pages that people write have dozens."""
SMALLEST_MAIN_SHARE = 0.3
"""``<main>`` or ``<article>`` is taken for the content when it holds this part of the page's text."""


@reader("html", ".html", ".htm", ".xhtml")
def read_html(data: bytes, source: str, options: ReadOptions) -> Document:
    """Read a web page.

    Raises:
        DocumentError: Not HTML, no text in it, or nested as no page is.
    """
    declared = _CHARSET.search(data[:4096])
    text = None
    if declared and not data.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        with suppress(LookupError, UnicodeDecodeError):  # the page may be wrong about itself
            text = data.decode(declared.group(1).decode("ascii"))
    text = decode(data, source) if text is None else text
    if "<" not in text:
        raise DocumentError(f"{source} is not an HTML file (it has no tags).")
    check_depth(text, source)
    page = LexborHTMLParser(text)
    meta = _metadata(page)
    blocks = html_blocks(page)
    if not blocks:
        raise DocumentError(f"{source} has no text (perhaps a script draws the page); save the page from a browser.")
    tops = {block.headings[:1] for block in blocks}
    first_heading = page.css_first("h1")
    heading = clean(first_heading.text()) if first_heading else ""
    title = options.title or meta.title or heading or PurePath(source).stem
    if len(tops) <= 2 and heading and (heading,) in tops:
        # One heading above everything is the title of the page, not a chapter.
        blocks = [
            Block(block.text, headings=block.headings[1:] if block.headings[:1] == (heading,) else block.headings)
            for block in blocks
        ]
    return Document(
        id=document_id(source, data),
        title=title,
        source=source,
        blocks=tuple(blocks),
        url=meta.url,
        date=meta.date,
        licence=meta.licence,
        media="html",
    )


def check_depth(text: str, source: str) -> None:
    """Refuse, before it is parsed, a page whose elements lie deeper within each other than :data:`DEEPEST`.

    Raises:
        DocumentError: It is one.
    """
    within: list[str] = []
    counts: Counter[str] = Counter()
    for match in _TAG.finditer(text):
        tag = match[2].lower()
        if tag in _NEVER_DEEP:
            continue
        if not match[1]:
            within.append(tag)
            counts[tag] += 1
        elif counts[tag]:
            while (last := within.pop()) != tag:
                counts[last] -= 1
            counts[tag] -= 1
        if len(within) > DEEPEST:
            raise DocumentError(
                f"{source} was not read: more than {DEEPEST:,} of its elements are nested in each other, as in attacks."
            )


def read_html_text(markup: str, source: str, *, references: bool = False) -> tuple[list[Block], tuple[LeftOut, ...]]:
    """Return the text blocks of an HTML or XHTML text in reading order, with what was left out.

    Web pages, chapters of EPUB books and Word files (converted to HTML) are all read by this function.

    Args:
        markup: A whole page or a fragment.
        source: Name of the file, for error messages.
        references: Keep lists of references.

    Returns:
        Blocks with the headings above them, and the number of blocks left out by kind.

    Raises:
        DocumentError: The elements are nested more than :data:`DEEPEST` deep.
    """
    check_depth(markup, source)
    return html_blocks(LexborHTMLParser(markup)), ()


def html_blocks(page: LexborHTMLParser) -> list[Block]:
    """The text blocks of a page in order, boilerplate left out. Changes the parsed page."""
    for node in page.css(_UNWANTED):
        node.decompose()
    body = page.body
    if body is None:
        return []
    root = _content_root(body)
    for node in root.css(_NAMED):
        name = f"{node.attributes.get('class') or ''} {node.attributes.get('id') or ''}"
        if name.strip() and _UNWANTED_NAME.search(name) and node.css_first("h1, main, article") is None:
            node.decompose()
    walker = _Walker()
    walker.walk(root)
    walker.flush()
    return walker.blocks


def _content_root(body: LexborNode) -> LexborNode:
    total = len(body.text(strip=True)) or 1
    for selector in ("main", "[role=main]", "article"):
        nodes = body.css(selector)
        if nodes and (best := max(nodes, key=lambda node: len(node.text()))):
            others = sum(len(node.text(strip=True)) for node in nodes) - len(best.text(strip=True))
            size = len(best.text(strip=True))
            if size >= SMALLEST_MAIN_SHARE * total and others < 0.5 * size:
                return best
    for header in body.css("header"):
        if header.css_first("h1") is None:
            header.decompose()
    return body


class _Row(NamedTuple):
    """Nodes beside each other that are still to be taken in."""

    first: LexborNode | None
    in_link: bool = False
    is_block: bool = False
    """Whether a block of text ends after the last of them."""


class _Walker:
    """Goes through the tree and cuts its text into blocks."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._headings: list[tuple[int, str]] = []
        self._parts: list[str] = []
        self._linked = 0

    def walk(self, node: LexborNode) -> None:
        """Take in all below a node; without recursion, so that no page is too deep for it."""
        waiting = [_Row(node.child)]
        while waiting:
            row = waiting.pop()
            child = row.first
            if child is not None:
                waiting.append(row._replace(first=child.next))
                below = self._visit(child, row.in_link)
                if below is not None:
                    waiting.append(below)
            elif row.is_block:
                self.flush()

    def _visit(self, node: LexborNode, in_link: bool) -> "_Row | None":
        """Take in a node; gives the nodes below it where they are to be taken in one by one."""
        tag = node.tag or ""
        if tag == "-text":
            text = node.text(deep=False) or ""
            self._parts.append(text)
            self._linked += len(text.strip()) if in_link else 0
        elif tag in _HEADINGS:
            self.flush()
            while self._headings and self._headings[-1][0] >= _HEADINGS[tag]:
                self._headings.pop()
            if title := clean(node.text()):
                self._headings.append((_HEADINGS[tag], title))
        elif tag == "table":
            return self._table(node)
        elif tag == "br":
            self._parts.append(" ")
        elif tag == "sup":
            self._superscript(node, in_link)
        elif tag == "math":
            self._parts.append(f" {node.attributes.get('alttext') or node.text()} ")
        elif tag == "pre" and node.css_first("code") is not None:
            self.flush()  # program text; other preformatted text may well be prose
        elif tag in _BLOCK_TAGS:
            self.flush()
            return _Row(node.child, in_link, is_block=True)
        elif not tag.startswith(("-", "!", "_")) and tag not in {"head", "title"}:
            return _Row(node.child, in_link or tag == "a")
        return None

    def _superscript(self, node: LexborNode, in_link: bool) -> None:
        """An exponent becomes superscript figures; the mark of a note (a link, or what is not a power) goes."""
        text = node.text().strip()
        if in_link or node.css_first("a, [role=doc-noteref]") is not None or _NOTE_MARKS.fullmatch(text):
            return
        role = node.attributes.get("role") or node.attributes.get("class") or ""
        if _NOTE_NAME.search(role) or (text.isdigit() and _NO_POWER[len(text) > 1].search("".join(self._parts[-2:]))):
            return
        self._parts.append(text.translate(_SUPERSCRIPTS) if _EXPONENT.fullmatch(text) else text)

    def _table(self, table: LexborNode) -> "_Row | None":
        """A table of data gives a block for each row with words; a table used for layout is walked through."""
        self.flush()
        if table.css_first("table, p, h1, h2, h3, h4, ul, ol") is not None and table.css_first("th") is None:
            return _Row(table.child, is_block=True)
        for row in table.css("tr"):
            cells = [clean(cell.text()) for cell in row.css("td, th")]
            self._append(" | ".join(cell for cell in cells if cell))
        return None

    def flush(self) -> None:
        """End the block."""
        text = clean("".join(self._parts))
        navigation = len(text) < SHORT_BLOCK and self._linked > MOST_LINK_SHARE * len(text)
        self._parts.clear()
        self._linked = 0
        if not navigation:
            self._append(text)

    def _append(self, text: str) -> None:
        if any(char.isalpha() for char in text):
            self.blocks.append(Block(text=text, headings=tuple(title for _, title in self._headings)))


class _Metadata(NamedTuple):
    title: str | None
    url: str | None
    date: str | None
    licence: str | None


def _metadata(page: LexborHTMLParser) -> _Metadata:
    """What the head of the page says: Open Graph, Dublin Core, Highwire and JSON-LD are understood."""
    named: dict[str, str] = {}
    for node in page.css("meta[content]"):
        name = node.attributes.get("property") or node.attributes.get("name") or node.attributes.get("itemprop")
        if name and (content := clean(node.attributes.get("content") or "")):
            named.setdefault(name.lower(), content)
    linked = _linked_data(page)
    title_node = page.css_first("title")
    title = _first(named, "citation_title", "og:title", "dc.title", "dcterms.title") or (
        clean(title_node.text()) if title_node else None
    )
    canonical = page.css_first("link[rel=canonical]")
    url = (canonical.attributes.get("href") if canonical else None) or _first(named, "og:url", "citation_public_url")
    date = _first(
        named, "article:published_time", "citation_publication_date", "citation_date", "dcterms.issued", "dc.date",
        "dcterms.date", "datepublished", "date", "dcterms.created",
    ) or linked.get("datePublished")  # fmt: skip
    licence_link = page.css_first("link[rel=license], a[rel~=license]")
    rights = ("dcterms.license", "dcterms.rights", "dc.rights", "license", "licence")
    licence = _first(named, *rights) or linked.get("license")
    if licence_link is not None and not licence:
        licence = clean(licence_link.text()) or licence_link.attributes.get("href")
    day = _DATE.match((date or "").replace("/", "-"))
    address = url if url and url.startswith("http") else None
    return _Metadata(title or None, address, day.group() if day else None, licence or None)


def _first(named: dict[str, str], *names: str) -> str | None:
    return next((named[name] for name in names if name in named), None)


def _linked_data(page: LexborHTMLParser) -> dict[str, str]:
    """Date and licence from JSON-LD."""
    results: dict[str, str] = {}
    for node in page.css("script[type='application/ld+json']"):
        try:
            value: Any = json.loads(node.text())
        except (ValueError, RecursionError):
            continue
        items = value if isinstance(value, list) else [value]
        for item in items:
            if isinstance(item, dict):
                results.update({k: v for k in ("datePublished", "license") if isinstance(v := item.get(k), str)})
    return results
