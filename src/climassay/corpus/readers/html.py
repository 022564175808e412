"""Read web pages: the text of the article, its headings, and the page's metadata."""

import json
import re
from collections import Counter
from functools import lru_cache
from html import escape
from pathlib import PurePath
from typing import Any, NamedTuple
from xml.parsers import expat

from selectolax.lexbor import LexborHTMLParser

from climassay.corpus.documents import Block, Document, OmittedParts, ReadOptions
from climassay.corpus.readers.cleaning import clean, document_id
from climassay.corpus.readers.file_types import reader
from climassay.corpus.readers.html_blocks import extract_blocks, extract_heading
from climassay.corpus.readers.text import decode_markup
from climassay.errors import DocumentError

_TAG = re.compile(r"<(/?)([a-zA-Z][^\s/>]*)")
_NOT_NESTED_TAGS = frozenset(
    [
        *("a", "p", "li", "dt", "dd", "tr", "td", "th", "thead", "tbody", "tfoot"),
        *("option", "optgroup", "rp", "rt", "html"),
        *("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr", "body"),
    ]
)
"""Tags that need no end tag, or whose element ends at the next tag of the same kind. Such elements do not count as
nested."""
_VOID_TAGS = frozenset(
    [
        *("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source"),
        *("track", "wbr"),
    ]
)
_RAW_IN_HTML = frozenset({"xmp", "iframe", "noembed", "noframes", "plaintext", "listing", "noscript"})
"""Elements whose content HTML parsers treat as raw text, not as markup."""
_LOOKS_LIKE_XML = re.compile(
    r"\A\s*<\?xml\b|http://www\.w3\.org/1999/xhtml|<(?!(?:area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr)\b)"
    r"[a-zA-Z][\w:.-]*(?:\s[^<>]*)?/>"
)
_SELF_CLOSED_RAW = re.compile(r"<(script|style|title|iframe|textarea|noscript|template)\b([^<>]*)/>", re.IGNORECASE)
_NOSCRIPT = re.compile(r"<(/?)noscript\b[^<>]*>", re.IGNORECASE)
_MIN_NOSCRIPT_CHARACTERS = 500
_DATE = re.compile(r"\d{4}(?:-\d{2}(?:-\d{2})?)?")
MAX_DEPTH = 10_000
"""Maximum nesting depth of elements. Parsing time is quadratic in the depth; real pages have a few dozen levels."""


@reader("html", ".html", ".htm", ".xhtml")
def read_html(data: bytes, source: str, options: ReadOptions) -> Document:
    """Read a web page.

    Raises:
        DocumentError: The file is not HTML, has no text, or is nested too deeply.
    """
    text = decode_markup(data, source)
    if "<" not in text:
        raise DocumentError(f"{source} is not an HTML file (it has no tags).")
    page = parse_markup(text, source)
    metadata = _read_metadata(page)
    first_heading = page.css_first("h1")
    heading = extract_heading(first_heading) if first_heading else ""
    blocks, omitted_parts = _extract_blocks_or_fallback(page, text, source, references=options.references)
    if not blocks:
        raise DocumentError(f"{source} has no text (perhaps a script draws the page); save the page from a browser.")
    top_headings = {block.headings[:1] for block in blocks}
    title = options.title or metadata.title or heading or PurePath(source).stem
    if len(top_headings) <= 2 and heading in title and (heading,) in top_headings:
        # One heading above everything is the title of the page, not a chapter, unless the title is the site's name.
        blocks = [
            Block(block.text, headings=block.headings[1:] if block.headings[:1] == (heading,) else block.headings)
            for block in blocks
        ]
    return Document(
        id=document_id(data),
        title=title,
        source=source,
        blocks=tuple(blocks),
        url=metadata.url,
        date=metadata.date,
        licence=metadata.licence,
        media="html",
        omitted_parts=omitted_parts,
    )


def check_depth(text: str, source: str) -> None:
    """Reject a page whose elements are nested more than :data:`MAX_DEPTH` deep, without parsing it.

    Raises:
        DocumentError: The page is nested too deeply.
    """
    open_tags: list[str] = []
    counts: Counter[str] = Counter()
    for match in _TAG.finditer(text):
        tag = match[2].lower()
        if tag in _NOT_NESTED_TAGS:
            continue
        if not match[1]:
            open_tags.append(tag)
            counts[tag] += 1
        elif counts[tag]:
            while (open_tag := open_tags.pop()) != tag:
                counts[open_tag] -= 1
            counts[tag] -= 1
        if len(open_tags) > MAX_DEPTH:
            raise DocumentError(f"{source} was not read: more than {MAX_DEPTH:,} nested elements look like an attack.")


def read_html_text(
    markup: str, source: str, *, references: bool = False
) -> tuple[list[Block], tuple[OmittedParts, ...]]:
    """Return the text blocks of HTML or XHTML in reading order, and the number of omitted parts by kind.

    Web pages, chapters of EPUB books and Word files (converted to HTML) are read by this function.

    Args:
        markup: A whole page or a fragment.
        source: Name of the file in error messages.
        references: Whether to include lists of references.

    Returns:
        Blocks with the headings above them, and the number of omitted blocks by kind.

    Raises:
        DocumentError: The elements are nested more than :data:`MAX_DEPTH` deep.
    """
    return _extract_blocks_or_fallback(parse_markup(markup, source), markup, source, references=references)


def _extract_blocks_or_fallback(
    page: LexborHTMLParser, markup: str, source: str, *, references: bool
) -> tuple[list[Block], tuple[OmittedParts, ...]]:
    blocks, omitted_parts = extract_blocks(page, references=references)
    if not blocks and (closed_markup := _SELF_CLOSED_RAW.sub(r"<\1\2></\1>", markup)) != markup:
        # An HTML parser takes the rest of the page for the content of <script/>.
        blocks, omitted_parts = extract_blocks(parse_markup(closed_markup, source), references=references)
    if not blocks and (unhidden_markup := _NOSCRIPT.sub(r"<\1div>", markup)) != markup:
        # A page drawn by a script may bring its text for readers without one; a mere request to enable it is no text.
        fallback, fallback_omitted_parts = extract_blocks(parse_markup(unhidden_markup, source), references=references)
        if sum(len(block.text) for block in fallback) >= _MIN_NOSCRIPT_CHARACTERS:
            return fallback, fallback_omitted_parts
    return blocks, omitted_parts


def parse_markup(markup: str, source: str) -> LexborHTMLParser:
    """Parse a page as XML if it is well-formed XML, otherwise as HTML.

    Raises:
        DocumentError: The elements are nested more than :data:`MAX_DEPTH` deep.
    """
    html = xml_to_html(markup) if _LOOKS_LIKE_XML.search(markup) else None
    html = markup if html is None else html
    check_depth(html, source)
    return LexborHTMLParser(html)


def xml_to_html(markup: str) -> str | None:
    """Convert well-formed XML to HTML, with an end tag for each element; return None for other text.

    External files are not loaded. A text that defines entities also returns None, since HTML parsers do not expand
    them.
    """
    writer = _HtmlWriter()
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    # Names such as &nbsp; are known to readers of XHTML without its definition, which is not fetched.
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_ALWAYS)
    parser.UseForeignDTD(True)
    parser.ExternalEntityRefHandler = lambda *_: 1
    parser.EntityDeclHandler = _reject_entity
    parser.StartElementHandler = writer.start
    parser.EndElementHandler = writer.end
    parser.CharacterDataHandler = writer.text
    parser.SkippedEntityHandler = writer.entity
    try:
        parser.Parse(markup.lstrip("\ufeff \t\r\n"), True)
    except (expat.ExpatError, _EntityDefinedError, UnicodeEncodeError):
        return None
    return "".join(writer.pieces)


class _EntityDefinedError(Exception):
    """Error for an XML text that defines an entity."""


def _reject_entity(*_: object) -> None:
    raise _EntityDefinedError


class _HtmlWriter:
    """Converter from the events of an XML parser to HTML."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self._raw = ""
        """Name of the open element that contains a script or style; empty outside such elements."""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        tag = _remove_namespace(name)
        self._raw = tag if tag in ("script", "style") else ""
        attribute_text = "".join(
            f' {"epub:type" if name.endswith("/ops type") else _remove_namespace(name)}="{escape(value)}"'
            for name, value in attributes.items()
        )
        self.pieces.append(f"<{tag}{attribute_text}>")

    def end(self, name: str) -> None:
        """Write an end tag, unless the element is void in HTML."""
        tag = _remove_namespace(name)
        self._raw = ""
        if tag not in _VOID_TAGS:
            self.pieces.append(f"</{tag}>")

    def text(self, data: str) -> None:
        self.pieces.append(data.replace("</", "<\\/") if self._raw else escape(data, quote=False))

    def entity(self, name: str, is_parameter: bool) -> None:
        """Write an entity reference, which the HTML parser will resolve."""
        if not is_parameter:
            self.pieces.append(f"&{name};")


@lru_cache(1024)
def _remove_namespace(name: str) -> str:
    """Return the name of an element or attribute without its namespace, in lower case."""
    local_name = name.rpartition(" ")[2].lower()
    return "div" if local_name in _RAW_IN_HTML else local_name


class _Metadata(NamedTuple):
    title: str | None
    url: str | None
    date: str | None
    licence: str | None


def _read_metadata(page: LexborHTMLParser) -> _Metadata:
    """Read a page's metadata: Open Graph, Dublin Core, Highwire and JSON-LD."""
    values_by_name: dict[str, str] = {}
    for node in page.css("meta[content]"):
        name = node.attributes.get("property") or node.attributes.get("name") or node.attributes.get("itemprop")
        if name and (content := clean(node.attributes.get("content") or "")):
            values_by_name.setdefault(name.lower(), content)
    json_ld = _read_json_ld(page)
    title_node = page.css_first("title")
    title = _find_first_value(values_by_name, "citation_title", "og:title", "dc.title", "dcterms.title") or (
        clean(title_node.text()) if title_node else None
    )
    canonical_link = page.css_first("link[rel=canonical]")
    url = (canonical_link.attributes.get("href") if canonical_link else None) or _find_first_value(
        values_by_name, "og:url", "citation_public_url"
    )
    date = _find_first_value(
        values_by_name, "article:published_time", "citation_publication_date", "citation_date", "dcterms.issued",
        "dc.date", "dcterms.date", "datepublished", "date", "dcterms.created",
    ) or json_ld.get("datePublished")  # fmt: skip
    licence_link = page.css_first("link[rel=license], a[rel~=license]")
    rights = ("dcterms.license", "dcterms.rights", "dc.rights", "license", "licence")
    licence = _find_first_value(values_by_name, *rights) or json_ld.get("license")
    if licence_link is not None and not licence:
        licence = clean(licence_link.text()) or licence_link.attributes.get("href")
    date_match = _DATE.match((date or "").replace("/", "-"))
    absolute_url = url if url and url.startswith("http") else None
    return _Metadata(title or None, absolute_url, date_match.group() if date_match else None, licence or None)


def _find_first_value(values_by_name: dict[str, str], *names: str) -> str | None:
    return next((values_by_name[name] for name in names if name in values_by_name), None)


def _read_json_ld(page: LexborHTMLParser) -> dict[str, str]:
    """Return the publication date and licence stated in JSON-LD, by property name."""
    properties: dict[str, str] = {}
    for node in page.css("script[type='application/ld+json']"):
        try:
            value: Any = json.loads(node.text())
        except (ValueError, RecursionError):
            continue
        items = value if isinstance(value, list) else [value]
        for item in items:
            if isinstance(item, dict):
                properties.update(
                    {k: text for k in ("datePublished", "license") if isinstance(text := item.get(k), str)}
                )
    return properties
