"""Write small PDF files for tests: text at given places in the standard fonts, no library between."""

from collections.abc import Sequence
from typing import NamedTuple

WIDTH, HEIGHT = 612, 792
ADVANCE = 0.6
"""Every character of Courier is this part of the type size wide, so lines can be set to measure."""


HEBREW = "".join(map(chr, range(0x5D0, 0x5EB)))


class Text(NamedTuple):
    """One line of text with its baseline at (x, y)."""

    x: float
    y: float
    text: str
    size: float = 10
    font: str = "F1"
    rise: float = 0
    angle: int = 0
    """Direction of writing on a page that is looked at like this: 0, 90 (upwards), 180 or 270 degrees."""


def wrap(text: str, width: float, size: float = 10) -> list[str]:
    """Break text into lines that fit a width."""
    room = int(width / (ADVANCE * size))
    lines: list[str] = []
    for word in text.split():
        if lines and len(lines[-1]) + 1 + len(word) <= room:
            lines[-1] += " " + word
        else:
            lines.append(word)
    return lines


def column(text: str, x: float, top: float, width: float, size: float = 10, leading: float = 12) -> list[Text]:
    """A paragraph set into a column."""
    return [Text(x, top - leading * number, line, size) for number, line in enumerate(wrap(text, width, size))]


def build_pdf(
    pages: Sequence[Sequence[Text]], title: str | None = None, image_pages: Sequence[int] = (), rotate: int = 0
) -> bytes:
    """A PDF file, its pages shown turned clockwise by some degrees.

    F1 is Courier, F2 Courier-Bold, F3 Helvetica, F4 Courier whose letters from ``A`` on are those of Hebrew, and F5
    Courier whose capital letters are the italic ones of mathematics.
    """
    objects: list[bytes] = [b"", b""]  # catalogue and page tree come last, when they are known
    fonts = []
    for name in ("Courier", "Courier-Bold", "Helvetica"):
        font = f"<< /Type /Font /Subtype /Type1 /BaseFont /{name} /Encoding /WinAnsiEncoding >>"
        objects.append(font.encode())
        fonts.append(len(objects))
    for last, target in ((chr(ord("A") + len(HEBREW) - 1), HEBREW[0]), ("Z", "\U0001d434")):
        cmap = (
            "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /Letters def /CMapType 2 def "
            f"1 begincodespacerange <00> <FF> endcodespacerange 1 beginbfrange <41> <{ord(last):02X}> "
            f"<{target.encode('utf-16-be').hex()}> endbfrange endcmap end end"
        ).encode()
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(cmap), cmap))
        objects.append(objects[fonts[0] - 1].removesuffix(b">>") + b"/ToUnicode %d 0 R >>" % len(objects))
        fonts.append(len(objects))
    objects.append(
        b"<< /Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray /BitsPerComponent 8 /Length 1 >>"
        b"\nstream\n\x80\nendstream"
    )
    image = len(objects)
    kids = []
    for number, texts in enumerate(pages):
        parts = [_show(text) for text in texts]
        if number in image_pages:
            parts.append(b"q 500 0 0 600 50 100 cm /Im Do Q")
        stream = b"\n".join(parts)
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
        content = len(objects)
        resources = " ".join(f"/F{i} {font} 0 R" for i, font in enumerate(fonts, start=1))
        page = (
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {WIDTH} {HEIGHT}] /Rotate {rotate} /Contents {content} 0 R "
            f"/Resources << /Font << {resources} >> /XObject << /Im {image} 0 R >> >> >>"
        )
        objects.append(page.encode())
        kids.append(len(objects))
    objects[0] = b"<< /Type /Catalog /Pages 2 0 R >>"
    objects[1] = f"<< /Type /Pages /Count {len(kids)} /Kids [{' '.join(f'{kid} 0 R' for kid in kids)}] >>".encode()
    info = ""
    if title is not None:
        objects.append(b"<< /Title (%s) >>" % title.encode("latin-1"))
        info = f"/Info {len(objects)} 0 R"
    return _file(objects, info)


def _show(text: Text) -> bytes:
    escaped = text.text.encode("cp1252").replace(b"\\", rb"\\").replace(b"(", rb"\(").replace(b")", rb"\)")
    x, y = text.x, text.y
    matrix = {
        0: f"1 0 0 1 {x} {y}",
        90: f"0 1 -1 0 {WIDTH - y} {x}",
        180: f"-1 0 0 -1 {WIDTH - x} {HEIGHT - y}",
        270: f"0 -1 1 0 {y} {HEIGHT - x}",
    }[text.angle]
    place = f"BT /{text.font} {text.size} Tf {text.rise} Ts {matrix} Tm ".encode()
    return place + b"(" + escaped + b") Tj ET"


def _file(objects: Sequence[bytes], info: str) -> bytes:
    data = bytearray(b"%PDF-1.4\n")
    places = []
    for number, content in enumerate(objects, start=1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = len(data)
    data += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    data += b"".join(b"%010d 00000 n \n" % place for place in places)
    data += f"trailer << /Size {len(objects) + 1} /Root 1 0 R {info} >>\nstartxref\n{table}\n%%EOF\n".encode()
    return bytes(data)
