"""Word files written piece by piece, for tests: functions return the XML of a part."""

import io
import re
import zipfile

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
MATH = "http://schemas.openxmlformats.org/officeDocument/2006/math"
COMPATIBILITY = "http://schemas.openxmlformats.org/markup-compatibility/2006"
NAMESPACES = (
    f'xmlns:w="{WORD}" xmlns:m="{MATH}" xmlns:mc="{COMPATIBILITY}" xmlns:v="urn:schemas-microsoft-com:vml" '
    'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape" '
    'xmlns:o="urn:schemas-microsoft-com:office:office" '
    'xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart"'
)


def t(text: str) -> str:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;")
    return f'<w:t xml:space="preserve">{escaped}</w:t>'


def r(text: str, properties: str = "") -> str:
    return f"<w:r><w:rPr>{properties}</w:rPr>{t(text)}</w:r>"


def p(*content: str, properties: str = "") -> str:
    runs = "".join(part if part.startswith("<") else r(part) for part in content)
    return f"<w:p><w:pPr>{properties}</w:pPr>{runs}</w:p>"


def raised(text: str) -> str:
    return r(text, '<w:vertAlign w:val="superscript"/>')


def lowered(text: str) -> str:
    return r(text, '<w:vertAlign w:val="subscript"/>')


def field(code: str, result: str) -> str:
    begin, separate, end = (f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>' for kind in ("begin", "separate", "end"))
    return f"{begin}<w:r><w:instrText>{code}</w:instrText></w:r>{separate}{result}{end}"


def table(*rows: list[str], header: bool = False) -> str:
    written = ""
    for index, row in enumerate(rows):
        mark = "<w:trPr><w:tblHeader/></w:trPr>" if header and not index else ""
        cells = "".join(cell if cell.startswith("<w:tc>") else f"<w:tc>{p(cell)}</w:tc>" for cell in row)
        written += f"<w:tr>{mark}{cells}</w:tr>"
    grid = '<w:gridCol w:w="900"/>' * len(rows[0])
    return f"<w:tbl><w:tblPr/><w:tblGrid>{grid}</w:tblGrid>{written}</w:tbl>"


def word_file(*body: str, main: str = "word/document.xml", strict: bool = False, **parts: str) -> bytes:
    """A Word file; further parts by name, such as ``footnotes``, with their content."""
    folder = main.rpartition("/")[0]
    roots = {"document": f"<w:body>{''.join(body)}</w:body>", **parts}
    relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    types = "http://schemas.openxmlformats.org/package/2006/relationships"
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in roots.items():
            tag = re.sub(r"\d+$", "", {"footnotes": "footnotes", "header1": "hdr"}.get(name, name))
            xml = f"<w:{tag} {NAMESPACES}>{content}</w:{tag}>"
            if strict:
                xml = re.sub(r"http://schemas.openxmlformats.org/(\w+)/2006/", r"http://purl.oclc.org/ooxml/\1/", xml)
            archive.writestr(main if name == "document" else f"{folder}/{name}.xml", xml)
        archive.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{types}"><Relationship Id="a" Type="{relations}/officeDocument" Target="{main}"/>'
            "</Relationships>",
        )
        related = "".join(
            f'<Relationship Id="{name}" Type="{relations}/{name.rstrip("1")}" Target="{name}.xml"/>' for name in parts
        )
        rels = f"{folder}/_rels/{main.rpartition('/')[2]}.rels"
        archive.writestr(rels, f'<Relationships xmlns="{types}">{related}</Relationships>')
    return file.getvalue()


def style(style_id: str, name: str, properties: str = "", kind: str = "paragraph") -> str:
    return f'<w:style w:type="{kind}" w:styleId="{style_id}"><w:name w:val="{name}"/>{properties}</w:style>'


def merged(text: str, properties: str) -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{p(text)}</w:tc>"


def note(number: int, mark: str = "") -> str:
    custom = 'w:customMarkFollows="1" ' if mark else ""
    return f'<w:r><w:footnoteReference {custom}w:id="{number}"/>{t(mark)}</w:r>'
