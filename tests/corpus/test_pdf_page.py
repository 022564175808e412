"""Pages of PDF files as pictures, and where on them the words of a passage stand."""

import struct
import zlib

import numpy as np
import pytest

from climassay.corpus.readers.pdf import DrawnPage, draw_page, encode_png
from climassay.corpus.readers.sandboxed_reader import draw_sandboxed
from climassay.errors import DocumentError
from library_parts import GLACIER, OCEAN, pdf_of
from pdf_building import Text, build_pdf


def pixels_of(png):
    """Rows of a PNG file as :func:`encode_png` writes it: filter 2, red, green and blue."""
    width, height = struct.unpack(">II", png[16:24])
    data, place = b"", 8
    while place < len(png):
        length, kind = struct.unpack(">I4s", png[place : place + 8])
        content = png[place + 8 : place + 8 + length]
        assert zlib.crc32(kind + content) == struct.unpack(">I", png[place + 8 + length : place + 12 + length])[0]
        data += content if kind == b"IDAT" else b""
        place += 12 + length
    rows = np.frombuffer(zlib.decompress(data), np.uint8).reshape(height, -1)
    assert set(rows[:, 0]) == {2}
    return np.add.accumulate(rows[:, 1:], axis=0, dtype=np.uint8).reshape(height, width, -1)


def page_of(text):
    """A page of which only the text matters."""
    return DrawnPage(1, 1, 10, 10, b"", text, ())


def found(text, words, **around):
    return [text[start:end] for start, end in page_of(text).find(words, **around)]


def test_a_picture_survives_being_written():
    given = np.random.default_rng(0).integers(0, 256, (7, 5, 3), np.uint8)
    assert (pixels_of(encode_png(given)) == given).all()


def test_a_page_is_drawn_and_the_ink_is_where_its_words_are_said_to_be():
    drawn = draw_page(pdf_of(OCEAN, GLACIER), 2)
    assert (drawn.number, drawn.pages, max(drawn.width, drawn.height)) == (2, 2, 1500)
    pixels = pixels_of(drawn.png)
    assert pixels.shape[:2] == (drawn.height, drawn.width)
    [span] = drawn.find("Its albedo drops when the ice is dark.")
    boxes = list(drawn.rectangles(*span))
    assert len(boxes) == 2
    outside = pixels.min(axis=2) < 128
    for left, top, right, bottom in boxes:
        assert (pixels[top:bottom, left:right] < 128).any()
    for left, top, right, bottom in drawn.rectangles(0, len(drawn.text)):
        outside[top - 2 : bottom + 2, left - 2 : right + 2] = False
    assert not outside.any()


def test_words_on_a_turned_page_are_marked_where_they_are_printed():
    data = build_pdf([[Text(100, 700, "A glacier loses mass.", 14)]]).replace(b"/Contents", b"/Rotate 90 /Contents")
    drawn = draw_page(data, 1)
    assert drawn.width > drawn.height
    [span] = drawn.find("glacier loses")
    boxes = list(drawn.rectangles(*span))
    dark = pixels_of(drawn.png).min(axis=2) < 128
    inked = [dark[top:bottom, left:right].any() for left, top, right, bottom in boxes]
    assert sum(inked) >= len(boxes) - 1  # all but the space
    left, top = min(box[0] for box in boxes), min(box[1] for box in boxes)
    right, bottom = max(box[2] for box in boxes), max(box[3] for box in boxes)
    # Turned by a quarter, the line runs from top to bottom.
    assert bottom - top > 3 * (right - left)


@pytest.mark.parametrize("number", [0, 3])
def test_a_page_that_is_not_there_is_refused(number):
    with pytest.raises(DocumentError, match="2 pages"):
        draw_page(pdf_of(OCEAN, GLACIER), number)


def test_a_page_is_drawn_in_another_process_as_in_this_one(tmp_path):
    file = tmp_path / "seas.pdf"
    file.write_bytes(pdf_of(OCEAN))
    assert draw_sandboxed(file, 1) == draw_page(file.read_bytes(), 1)
    file.write_bytes(b"%PDF-1.7 and nothing more")
    with pytest.raises(DocumentError):
        draw_sandboxed(file, 1)
    file.write_bytes(pdf_of(OCEAN))
    with pytest.raises(DocumentError):
        draw_sandboxed(file, 1, max_memory=1 << 20)


@pytest.mark.parametrize(
    ("printed", "words"),
    [
        ("the tempera-\r\nture rose by 1.5 \u00b0C", "temperature rose by 1.5 \u00b0C"),
        ("the tempera\ufffe\nture rose", "temperature rose"),
        ("de\ufb01ned \ufb02ows of e\ufb03cient heat", "defined flows of efficient heat"),
        ("e\u0301te\u0301  chaud et\nlong", "\u00e9t\u00e9 chaud et long"),
        ("CO\n2\n concentrations rose", "CO2 concentrations rose"),
    ],
)
def test_hyphens_ligatures_and_line_ends_keep_no_words_from_being_found(printed, words):
    [mark] = found(printed, words)
    assert mark.startswith(printed[printed.index(mark) :][:1])
    assert mark.endswith(words[-2:])


TEXT = (
    "Observed warming is human-caused. It is large.\nThe ocean has taken up heat since 1970 without a pause\n17 and "
    "the heat will stay there for centuries to come. It is large. Sea level rises."
)


def test_the_same_words_are_told_apart_by_what_stands_around_them():
    [(first, _)] = page_of(TEXT).find("It is large.", before="Observed warming is human-caused. ")
    [(second, _)] = page_of(TEXT).find("It is large.", after=" Sea level rises.")
    assert first < second
    assert first == TEXT.index("It is large.")


def test_a_note_s_number_between_words_is_not_marked():
    words = "The ocean has taken up heat since 1970 without a pause and the heat will stay there for centuries to come."
    assert found(TEXT, words) == [
        "The ocean has taken up heat since 1970 without a pause",
        "and the heat will stay there for centuries to come.",
    ]


def test_words_that_go_on_overleaf_are_marked_as_far_as_they_are_here():
    first = "It is known that ice is lost. The sheets of Greenland will go on"
    second = "losing mass for a thousand years. Seas rise. Rivers dry up.\n8"
    words = "The sheets of Greenland will go on losing mass for a thousand years."
    around = {"before": "It is known that ice is lost. ", "after": " Seas rise. Rivers dry up."}
    assert found(first, words, **around) == ["The sheets of Greenland will go on"]
    assert found(second, words, **around) == ["losing mass for a thousand years."]


@pytest.mark.parametrize(
    "words", ["Nothing of this stands on the page at all.", "", "...", "The ocean has taken umbrage"]
)
def test_what_is_not_there_is_not_marked(words):
    assert found(TEXT, words) == []
