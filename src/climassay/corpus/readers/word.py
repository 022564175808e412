"""Read Word files: simplify their XML, convert it to HTML with mammoth, and read that as a page.

As in Word, results of fields, insertions and moved text in its new position are read. Deletions, hidden text, comments
and field codes are omitted and counted.
"""

import io
import posixpath
import re
import xml.etree.ElementTree as ET
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import mammoth
from mammoth.docx.dingbats import dingbats

from climassay.corpus.documents import Block, Document, OmittedParts, ReadOptions
from climassay.corpus.readers.archives import check_decompressed_size, read_xml
from climassay.corpus.readers.cleaning import clean, document_id
from climassay.corpus.readers.file_types import reader
from climassay.corpus.readers.html import read_html_text
from climassay.corpus.readers.word_equations import MATH, format_equation
from climassay.errors import DocumentError

_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_COMPATIBILITY = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/"
_OLE_OBJECT = "{urn:schemas-microsoft-com:office:office}OLEObject"
_STRICT = re.compile(r"http://purl\.oclc\.org/ooxml/(\w+)/")
_HEADING = re.compile(
    r"(?:heading|überschrift|titre|título|titolo|kop|rubrik|overskrift|otsikko|nagłówek|заголовок|标题|見出し) ?(\d)",
    re.IGNORECASE,
)
_CONTENTS = re.compile(r"(?:toc|inhaltsverzeichnis|verzeichnis|tm|tdc|目录) ?\d|table of figures", re.IGNORECASE)
_EQUATION_FIELD = re.compile(r"\s*EQ\s", re.IGNORECASE)
_PRIVATE = range(0xE000, 0xF900)
_UNWRAPPED_TAGS = frozenset(
    _WORD + name
    for name in (
        *("hyperlink", "fldSimple", "smartTag", "customXml", "ins", "moveTo", "dir", "bdo", "sdt", "sdtContent"),
        *("ruby", "rubyBase"),
    )
)
_UNCHANGED_TAGS = frozenset(_WORD + name for name in ("t", "noBreakHyphen", "fldChar", "instrText"))
_SPACES = {_WORD + name: tag for tag, names in {"br": ("br", "cr"), "tab": ("tab", "ptab")}.items() for name in names}
_COUNTED_KINDS = {
    f"{_WORD}del": "tracked deletions",
    f"{_WORD}commentReference": "comments",
    f"{_WORD}altChunk": "embedded files",
    f"{_WORD}subDoc": "embedded files",
}
_DRAWING_KINDS = {
    f"{_DRAWING}chart}}chart": "charts",
    "{http://schemas.microsoft.com/office/drawing/2014/chartex}chart": "charts",
    f"{_DRAWING}diagram}}relIds": "diagrams",
    f"{_DRAWING}picture}}pic": "pictures",
    "{urn:schemas-microsoft-com:vml}imagedata": "pictures",
    f"{_DRAWING}main}}t": "texts in drawings",
}
_NOTE_MARK = "\ufdd0"
"""Noncharacter that marks the text of a footnote in the intermediate HTML."""
_CODE_POINT = re.compile(r"[0-9A-Fa-f]{1,4}")
_IS_JOINED = "is-joined"
_CELL_STYLE = "ClimassayCell"
_STYLE_MAP = f"p.{_CELL_STYLE} =>"
"""Style map for mammoth: the single paragraph of a cell gets no tag, because ``<p>`` in cells means a layout table."""
MAX_NESTING = 150
"""Maximum nesting depth of elements; real files stay below 80."""
MAX_COLUMNS = 1000
"""Maximum number of columns that a cell may span, as in HTML."""
MAX_HEADING_LENGTH = 250
"""Maximum length of a heading in characters; longer paragraphs in a heading style are text."""
BATCH_PARTS = 1000
"""Number of paragraphs and tables converted at a time, since mammoth needs fifty times the memory of the text."""
_MAX_BASED_ON = 20


@reader("docx", ".docx", ".docm")
def read_docx(data: bytes, source: str, options: ReadOptions) -> Document:
    """Read a Word file into paragraphs and table rows with headings.

    Footnotes follow the paragraph that refers to them. The following parts are omitted and counted: hidden text,
    tracked deletions, comments, headers and footers, the entries of a table of contents, pictures, charts, embedded
    files, and equations stored as pictures.

    Raises:
        DocumentError: The file is not a Word file, is damaged or encrypted, has no text, is nested too deeply, or is
            too large when decompressed.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            check_decompressed_size(sum(entry.file_size for entry in file.infolist()), len(data), source, options)
            package = _Package(file, source)
            simplifier = _Simplifier(package)
            body = simplifier.simplify()
            omitted_counts = simplifier.omitted_counts
            title = package.title or simplifier.title
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, RuntimeError, ValueError):
        raise DocumentError(f"{source} is not a readable Word file (damaged, truncated or encrypted).") from None
    blocks, html_omitted_parts = _read_body(body, source, references=options.references)
    if not blocks:
        raise DocumentError(f"{source} has no text in its paragraphs.")
    return Document(
        id=document_id(data),
        title=options.title or title or source.rsplit(".", 1)[0],
        source=source,
        blocks=tuple(blocks),
        media="docx",
        omitted_parts=(
            *html_omitted_parts,
            *(OmittedParts(kind, count) for kind, count in omitted_counts.items() if count),
        ),
    )


def _read_body(body: ET.Element, source: str, *, references: bool) -> tuple[list[Block], tuple[OmittedParts, ...]]:
    """Return the blocks of a simplified body, marking footnotes, and the number of omitted parts by kind."""
    parts = list(body)
    try:
        markup = "".join(_convert(parts[start : start + BATCH_PARTS]) for start in range(0, len(parts), BATCH_PARTS))
    except RecursionError:
        raise DocumentError(f"{source} was not read: its tables are nested in each other, as in attacks.") from None
    blocks, omitted_parts = read_html_text(markup, source, references=references)
    return [
        replace(block, text=block.text.replace(_NOTE_MARK, "").strip(), footnote=True)
        if block.text.startswith(_NOTE_MARK)
        else block
        for block in blocks
    ], omitted_parts


def _convert(parts: list[ET.Element]) -> str:
    document = _make_element("document", [_make_element("body", parts)])
    reduced_file = io.BytesIO()
    with zipfile.ZipFile(reduced_file, "w") as file:
        file.writestr("word/document.xml", ET.tostring(document, "utf-8"))
    return str(mammoth.convert_to_html(reduced_file, style_map=_STYLE_MAP, include_embedded_style_map=False).value)


@dataclass(frozen=True, slots=True)
class _WordStyle:
    """Properties of a paragraph or character style."""

    name: str
    based_on: str | None
    outline_level: int | None
    vertical: str | None
    """``superscript``, ``subscript``, ``baseline``, or None."""
    hidden: bool | None


class _Package:
    """Parts of a Word file, found by their relationships.

    Namespaces of files in Strict format are mapped to those of the Transitional format.
    """

    def __init__(self, file: zipfile.ZipFile, source: str) -> None:
        self.source = source
        self._file = file
        self._names = set(file.namelist())
        self._document = self._find_related_parts("", "").get("officeDocument", ["word/document.xml"])[0]
        folder, name = posixpath.split(self._document)
        self._related = self._find_related_parts(folder, name)

    def find_part(self, kind: str) -> ET.Element | None:
        """Return a related part such as ``footnotes``; None if the file has none."""
        names = [*self._related.get(kind, []), posixpath.join(posixpath.dirname(self._document), f"{kind}.xml")]
        part_name = next((name for name in names if name in self._names), None)
        return None if part_name is None else self._read(part_name)

    @cached_property
    def body(self) -> ET.Element:
        """Body element of the document."""
        element = self._read(self._document).find(f"{_WORD}body")
        return ET.Element(f"{_WORD}body") if element is None else element

    @cached_property
    def title(self) -> str:
        """Title in the document properties; empty if there is none."""
        if "docProps/core.xml" not in self._names:
            return ""
        return clean(self._read("docProps/core.xml").findtext("{http://purl.org/dc/elements/1.1/}title") or "")

    @cached_property
    def styles(self) -> dict[str, _WordStyle]:
        """Styles by id. Ids are localised; names of built-in styles are in English."""
        root = self.find_part("styles")
        elements = [] if root is None else root.findall(f"{_WORD}style")
        return {element.get(f"{_WORD}styleId", ""): _read_style(element) for element in elements}

    @property
    def n_running_texts(self) -> int:
        """Number of headers and footers that have text."""
        names = {name for kind in ("header", "footer") for name in self._related.get(kind, []) if name in self._names}
        return sum(_has_text(self._read(name)) for name in names)

    def _read(self, name: str) -> ET.Element:
        root = read_xml(self._file, name, self.source, "a Word")
        _check_nesting(root, self.source)
        if _STRICT.search(root.tag):
            for element in root.iter():
                element.tag = _to_transitional(element.tag)
                element.attrib = {_to_transitional(key): value for key, value in element.attrib.items()}
        return root

    def _find_related_parts(self, folder: str, name: str) -> dict[str, list[str]]:
        """Return the parts to which the part ``folder/name`` has relationships; empty strings stand for the whole file.

        The result has lists of part names by the last component of the relationship's type, such as ``footnotes``.
        """
        targets: dict[str, list[str]] = {}
        relationships_name = posixpath.join(folder, "_rels", f"{name}.rels")
        if relationships_name in self._names:
            for element in read_xml(self._file, relationships_name, self.source, "a Word"):
                target = posixpath.normpath(posixpath.join("/", folder, element.get("Target", ""))).lstrip("/")
                if target in self._names:
                    targets.setdefault(element.get("Type", "").rsplit("/", 1)[-1], []).append(target)
        return targets


def _to_transitional(name: str) -> str:
    return _STRICT.sub(r"http://schemas.openxmlformats.org/\1/2006/", name)


def _check_nesting(root: ET.Element, source: str) -> None:
    """Raise DocumentError if an element is nested more than :data:`MAX_NESTING` deep."""
    elements, depth = [root], 0
    while elements:
        elements, depth = [child for element in elements for child in element], depth + 1
        if depth > MAX_NESTING:
            raise DocumentError(
                f"{source} was not read: more than {MAX_NESTING} of its elements are within each other, as in attacks."
            )


def _read_style(element: ET.Element) -> _WordStyle:
    level = _read_value(element, "pPr/outlineLvl")
    return _WordStyle(
        name=_read_value(element, "name") or "",
        based_on=_read_value(element, "basedOn"),
        outline_level=int(level) if level and level.isdecimal() else None,
        vertical=_find_vertical_alignment(element.find(f"{_WORD}rPr")),
        hidden=_is_on(element.find(f"{_WORD}rPr"), "vanish"),
    )


def _read_value(element: ET.Element, path: str) -> str | None:
    element_value = element.find("/".join(_WORD + name for name in path.split("/")))
    return None if element_value is None else element_value.get(f"{_WORD}val")


def _find_vertical_alignment(properties: ET.Element | None) -> str | None:
    """Return the vertical alignment of a text run.

    A position above or below the baseline counts as superscript or subscript.
    """
    if properties is None:
        return None
    position = _read_value(properties, "position")
    if (alignment := _read_value(properties, "vertAlign")) is not None or position is None:
        return alignment
    try:
        half_points = int(position)
    except ValueError:
        return None
    return "superscript" if half_points >= 4 else "subscript" if half_points <= -4 else None


def _is_on(properties: ET.Element | None, name: str) -> bool | None:
    """Return whether a text run has a property, such as ``vanish`` for hidden text; None if they do not say."""
    element = None if properties is None else properties.find(f"{_WORD}{name}")
    return None if element is None else element.get(f"{_WORD}val") not in ("0", "false", "off")


def _has_text(element: ET.Element) -> bool:
    texts = (f"{_WORD}t", f"{MATH}t")
    return any((part.text or "").strip() for tag in texts for part in element.iter(tag))


def _make_element(tag: str, children: Iterable[ET.Element] = (), **attributes: str) -> ET.Element:
    element = ET.Element(_WORD + tag, {_WORD + name: value for name, value in attributes.items()})
    element.extend(children)
    return element


def _make_text_run(text: str) -> ET.Element:
    run = _make_element("r", [])
    ET.SubElement(run, f"{_WORD}t").text = text
    return run


def _set_style(paragraph: ET.Element, style: str) -> None:
    paragraph.insert(0, _make_element("pPr", [_make_element("pStyle", val=style)]))


class _Simplifier:
    """Converter of a document's body to elements with text; it counts the omitted parts by kind."""

    def __init__(self, package: _Package) -> None:
        self.omitted_counts: Counter[str] = Counter()
        self.title = ""
        """Text of the first paragraph with a title style."""
        self._package = package
        self._styles = package.styles
        self._notes = {
            (kind, note.get(f"{_WORD}id")): note
            for kind in ("footnote", "endnote")
            for note in (package.find_part(f"{kind}s") or ())
            if note.get(f"{_WORD}type") in (None, "normal")
        }
        self._table_depth = 0
        self._paragraph_styles: list[_WordStyle] = []
        self._pending_boxes: list[ET.Element] = []
        self._pending_notes: list[ET.Element] = []

    def simplify(self) -> ET.Element:
        """Return the simplified body, in which paragraphs keep only a style and text runs only a vertical alignment."""
        body = _make_element("body", self._rewrite_all(self._package.body))
        self._drop_field_codes(body)
        for container in (body, *body.iter(f"{_WORD}tc")):
            _join_paragraphs(container)
        for paragraph in body.findall(f"{_WORD}p"):
            if paragraph.find(f"{_WORD}pPr") is not None and len(_extract_text(paragraph)) > MAX_HEADING_LENGTH:
                del paragraph[0]
        self.omitted_counts["headers and footers"] += self._package.n_running_texts
        return body

    def _rewrite_all(self, elements: Iterable[ET.Element]) -> list[ET.Element]:
        return [part for element in elements for part in self._rewrite(element)]

    def _rewrite(self, element: ET.Element) -> list[ET.Element]:
        tag = element.tag
        if tag == f"{_WORD}r":
            return self._rewrite_run(element)
        if tag in _UNCHANGED_TAGS:
            return [element]
        if tag == f"{_WORD}p":
            return self._rewrite_paragraph(element)
        if tag == f"{_WORD}sdt" and element.find(f"{_WORD}sdtPr/{_WORD}showingPlcHdr") is not None:
            self.omitted_counts["empty form fields"] += 1
            return []
        if tag in _UNWRAPPED_TAGS:
            return self._rewrite_all(element)
        if tag in _SPACES:
            return [_make_element(_SPACES[tag])]
        if tag in (f"{MATH}oMath", f"{MATH}oMathPara"):
            return [_make_text_run(f" {format_equation(element)} ")]
        if tag == f"{_COMPATIBILITY}AlternateContent":
            return self._rewrite_all(_choose_branch(element))
        if tag == f"{_WORD}tbl":
            return self._rewrite_table(element)
        if tag in (f"{_WORD}drawing", f"{_WORD}pict", f"{_WORD}object", f"{_WORD}txbxContent"):
            self._rewrite_drawing(element)
        elif tag in _COUNTED_KINDS and (tag != f"{_WORD}del" or element.find(f".//{_WORD}delText") is not None):
            self.omitted_counts[_COUNTED_KINDS[tag]] += 1
        return []

    def _iterate_styles(self, style_id: str | None) -> Iterator[_WordStyle]:
        for _ in range(_MAX_BASED_ON):
            style = self._styles.get(style_id or "")
            if style is None:
                return
            yield style
            style_id = style.based_on

    def _rewrite_paragraph(self, element: ET.Element) -> list[ET.Element]:
        chain = list(self._iterate_styles(_read_value(element, "pPr/pStyle")))
        if any(_CONTENTS.fullmatch(style.name) for style in chain):
            self.omitted_counts["entries of the table of contents"] += 1
            return []
        n_hidden = self.omitted_counts["hidden paragraphs"]
        outer_boxes, self._pending_boxes = self._pending_boxes, []
        outer_styles, self._paragraph_styles = self._paragraph_styles, chain
        parts = self._rewrite_all(element)
        # Hidden runs were counted; at most one hidden paragraph is reported.
        self.omitted_counts["hidden paragraphs"] = min(self.omitted_counts["hidden paragraphs"], n_hidden + 1)
        paragraph = _make_element("p", parts)
        if not self.title and chain and chain[0].name.lower() == "title":
            self.title = clean(_extract_text(paragraph))
        level = _find_heading_level(element, chain)
        if level and not self._table_depth:
            _set_style(paragraph, f"Heading{level}")
        if element.find(f"{_WORD}pPr/{_WORD}rPr/{_WORD}del") is not None:
            paragraph.set(_IS_JOINED, "1")
        elements = [paragraph, *self._pending_boxes]
        self._pending_boxes, self._paragraph_styles = outer_boxes, outer_styles
        return elements + self._pop_notes()

    def _pop_notes(self) -> list[ET.Element]:
        """Return and clear the notes to insert after the current paragraph or table; return [] inside a table."""
        if self._table_depth:
            return []
        notes, self._pending_notes = self._pending_notes, []
        return notes

    def _rewrite_run(self, element: ET.Element) -> list[ET.Element]:
        properties = element.find(f"{_WORD}rPr")
        style_id = None if properties is None else _read_value(properties, "rStyle")
        chain = [*self._iterate_styles(style_id), *self._paragraph_styles]
        hidden = _is_on(properties, "vanish")
        if hidden is None:
            hidden = next((style.hidden for style in chain if style.hidden is not None), False)
        if hidden:
            self.omitted_counts["hidden paragraphs"] += _has_text(element)
            return []
        vertical = _find_vertical_alignment(properties) or next(
            (style.vertical for style in chain if style.vertical), None
        )
        fonts = None if properties is None else properties.find(f"{_WORD}rFonts")
        font = None if fonts is None else fonts.get(f"{_WORD}ascii") or fonts.get(f"{_WORD}hAnsi")
        run_properties = [_make_element("vertAlign", val=vertical)] if vertical else []
        if _is_on(properties, "strike") or _is_on(properties, "dstrike"):
            run_properties.append(_make_element("strike"))  # omitted and counted, as in web pages
        run = _make_element("r", [_make_element("rPr", run_properties)] if run_properties else [])
        for child in element:
            if child.tag == f"{_WORD}sym":
                code = child.get(f"{_WORD}char", "")
                character = chr(int(code, 16)) if _CODE_POINT.fullmatch(code) else ""
                run.append(self._decode_symbols(character, child.get(f"{_WORD}font")))
            elif child.tag == f"{_WORD}t" and font in _SYMBOL_FONTS:
                run.append(self._decode_symbols(child.text or "", font))
            elif child.tag in (f"{_WORD}footnoteReference", f"{_WORD}endnoteReference"):
                self._add_note(child)
                if child.get(f"{_WORD}customMarkFollows") in ("1", "true", "on"):
                    break
            else:
                run.extend(self._rewrite(child))
        return [run]

    def _decode_symbols(self, text: str, font: str | None) -> ET.Element:
        """Convert text in a symbol font to Unicode."""
        decoded_text = ""
        for character in text:
            code = ord(character)
            code_point = dingbats.get((font, code)) or (dingbats.get((font, code & 0xFF)) if code in _PRIVATE else None)
            if code_point:
                decoded_text += chr(code_point)
            elif code in _PRIVATE:
                self.omitted_counts["symbols without a Unicode character"] += 1
            else:
                decoded_text += character
        result = _make_element("t")
        result.text = decoded_text
        return result

    def _add_note(self, reference: ET.Element) -> None:
        kind = reference.tag.removeprefix(_WORD).removesuffix("Reference")
        note = self._notes.pop((kind, reference.get(f"{_WORD}id")), None)
        if note is None:
            return
        outer_notes, self._pending_notes = self._pending_notes, []
        depth, self._table_depth = self._table_depth, 0
        parts = self._rewrite_all(note)
        for part in parts:
            if part.tag == f"{_WORD}p":
                part.insert(0, _make_text_run(_NOTE_MARK))
        self._table_depth = depth
        self._pending_notes = [*outer_notes, *parts]

    def _rewrite_drawing(self, element: ET.Element) -> None:
        """Queue the text boxes of a drawing for insertion after its paragraph; count its other parts as omitted."""
        if element.tag == f"{_WORD}txbxContent":
            outer_boxes, self._pending_boxes = self._pending_boxes, []
            parts = self._rewrite_all(element)
            self._pending_boxes = outer_boxes + parts
            return
        is_equation = any(ole.get("ProgID", "").startswith("Equation") for ole in element.iter(_OLE_OBJECT))
        if is_equation:
            self.omitted_counts["equations stored as pictures"] += 1
            return
        for child in element:
            if child.tag in _DRAWING_KINDS:
                self.omitted_counts[_DRAWING_KINDS[child.tag]] += 1
            elif child.tag == f"{_COMPATIBILITY}AlternateContent":
                for part in _choose_branch(child):
                    self._rewrite_drawing(part)
            else:
                self._rewrite_drawing(child)

    def _rewrite_table(self, element: ET.Element) -> list[ET.Element]:
        rows = list(_iterate_children(element, f"{_WORD}tr"))
        cells = [cell for row in rows for cell in _iterate_children(row, f"{_WORD}tc")]
        if len(cells) == 1:  # a box around text
            return self._rewrite_all(cells[0])
        remaining_rows = [row for row in rows if row.find(f"{_WORD}trPr/{_WORD}del") is None]
        self.omitted_counts["tracked deletions"] += len(rows) - len(remaining_rows)
        self._table_depth += 1
        table = _make_element("tbl", map(self._rewrite_row, remaining_rows))
        self._table_depth -= 1
        return [table, *self._pop_notes()]

    def _rewrite_row(self, element: ET.Element) -> ET.Element:
        row = _make_element("tr")
        if (header := element.find(f"{_WORD}trPr/{_WORD}tblHeader")) is not None:
            row.append(_make_element("trPr", [header]))
        if n_cells_before := _parse_count(_read_value(element, "trPr/gridBefore")):
            row.append(_make_cell(n_cells_before))
        for source_cell in _iterate_children(element, f"{_WORD}tc"):
            n_columns = _parse_count(_read_value(source_cell, "tcPr/gridSpan")) or 1
            merge_element = source_cell.find(f"{_WORD}tcPr/{_WORD}vMerge")
            cell = _make_cell(n_columns, [] if merge_element is None else [merge_element])
            parts = self._rewrite_all(source_cell)
            non_empty_parts = [part for part in parts if part.tag != f"{_WORD}p" or len(part)]
            if len(non_empty_parts) == 1 and non_empty_parts[0].tag == f"{_WORD}p":
                _set_style(non_empty_parts[0], _CELL_STYLE)
            cell.extend(non_empty_parts)
            row.append(cell)
        return row

    def _drop_field_codes(self, body: ET.Element) -> None:
        """Remove field codes and keep the results of fields; fields without an end are left unchanged."""
        runs = list(body.iter(f"{_WORD}r"))
        parts = [(run, child) for run in runs for child in run]
        depth_changes = [0] * (len(parts) + 1)
        fields: list[tuple[int, int | None]] = []
        for index, (_, child) in enumerate(parts):
            kind = child.get(f"{_WORD}fldCharType") if child.tag == f"{_WORD}fldChar" else None
            if kind == "begin":
                fields.append((index, None))
            elif kind == "separate" and fields:
                fields[-1] = (fields[-1][0], index)
            elif kind == "end" and fields:
                begin, separator_index = fields.pop()
                depth_changes[begin] += 1
                depth_changes[(index if separator_index is None else separator_index) + 1] -= 1
        depth = 0
        for (run, child), change in zip(parts, depth_changes, strict=False):
            depth += change
            is_code = child.tag == f"{_WORD}instrText"
            if is_code and _EQUATION_FIELD.match(child.text or ""):
                self.omitted_counts["equations stored as fields"] += 1
            if depth > 0 or is_code or child.tag == f"{_WORD}fldChar":
                run.remove(child)


_SYMBOL_FONTS = frozenset(font for font, _ in dingbats)


def _choose_branch(alternatives: ET.Element) -> ET.Element:
    """Return the branch of alternative content to read: the fallback if it has text, or the first branch with text."""
    branches = [*alternatives.findall(f"{_COMPATIBILITY}Fallback"), *alternatives.findall(f"{_COMPATIBILITY}Choice")]
    empty_branch = ET.Element(f"{_COMPATIBILITY}Fallback")
    return next(filter(_has_text, branches), branches[-1] if branches else empty_branch)


def _iterate_children(element: ET.Element, tag: str) -> Iterator[ET.Element]:
    """Yield the rows of a table or the cells of a row, including those inside content controls and insertions."""
    for child in element:
        if child.tag == tag:
            yield child
        elif child.tag in _UNWRAPPED_TAGS:
            yield from _iterate_children(child, tag)


def _make_cell(n_columns: int, properties: Iterable[ET.Element] = ()) -> ET.Element:
    return _make_element(
        "tc", [_make_element("tcPr", [_make_element("gridSpan", val=str(min(n_columns, MAX_COLUMNS))), *properties])]
    )


def _parse_count(value: str | None) -> int:
    return int(value) if value and value.isdecimal() else 0


def _find_heading_level(paragraph: ET.Element, chain: list[_WordStyle]) -> int | None:
    """Return the level of a heading, 1 to 6, according to its style or outline level; None for other paragraphs."""
    level_value = _read_value(paragraph, "pPr/outlineLvl")
    outline = _parse_count(level_value) if level_value else None
    for style in chain:
        if match := _HEADING.fullmatch(style.name):
            return min(max(int(match[1]), 1), 6)
        outline = style.outline_level if outline is None else outline
    return min(outline + 1, 6) if outline is not None and outline < 9 else None


def _extract_text(paragraph: ET.Element) -> str:
    return "".join(text.text or "" for text in paragraph.iter(f"{_WORD}t"))


def _join_paragraphs(container: ET.Element) -> None:
    """Merge each paragraph whose paragraph mark is a tracked deletion into the next paragraph."""
    parts = list(container)
    for part, next_paragraph in pairwise(parts):
        if part.tag == next_paragraph.tag == f"{_WORD}p" and part.get(_IS_JOINED):
            content = [child for child in part if child.tag != f"{_WORD}pPr"]
            start = len(next_paragraph.findall(f"{_WORD}pPr"))
            next_paragraph[start:start] = content
            container.remove(part)
