"""Small files that stand for more than any memory holds, or nest deeper than any stack: refused in one sentence."""

import gzip
import io
import json
import zipfile

import openpyxl
import pyarrow
import pyarrow.parquet
import pypdfium2.raw as pdfium
import pytest

from climassay import io as parquet
from climassay.corpus import ReadOptions, read
from climassay.corpus.documents import MEBIBYTE
from climassay.corpus.readers.pdf import MAX_TEXT_OBJECTS
from climassay.corpus.readers.sandboxed_reader import read_sandboxed
from climassay.errors import InputError
from climassay.io import parse_rows, read_bytes
from climassay.settings import load_toml
from pdf_building import Text, build_pdf
from traced_memory import peak_memory

pytestmark = pytest.mark.faults

CONTAINER = (
    '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="book.opf"/></rootfiles></container>'
)
PACKAGE = (
    '<package xmlns="http://www.idpf.org/2007/opf"><metadata/><manifest>'
    '<item id="a" href="page.xhtml" media-type="application/xhtml+xml"/></manifest>'
    '<spine><itemref idref="a"/></spine></package>'
)
ENTITIES = '<!ENTITY e0 "lol">' + "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 9))
BILLION_LAUGHS = f'<?xml version="1.0"?><!DOCTYPE x [{ENTITIES}]>' + PACKAGE.replace("<metadata/>", "<a>&e8;</a>")
OUTSIDE = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>' + PACKAGE.replace(
    "<metadata/>", "<a>&e;</a>"
)


def epub(package=PACKAGE, page="<p>The sea warms.</p>", name="page.xhtml", encoding="utf-8") -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("META-INF/container.xml", CONTAINER)
        book.writestr("book.opf", package.encode(encoding))
        book.writestr(name, page)
    return out.getvalue()


WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def word(body="<w:p><w:r><w:t>The sea warms.</w:t></w:r></w:p>", prologue="", styles="") -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(
            "word/document.xml", f'{prologue}<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>'
        )
        file.writestr("word/styles.xml", styles or f'<w:styles xmlns:w="{WORD}"/>')
    return out.getvalue()


SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def styles(parts: str) -> bytes:
    return f'<styleSheet xmlns="{SHEET}">{parts}</styleSheet>'.encode()


def workbook(rows="", cell="The sea warms.", prologue="", dimension="A1:A2", **members: bytes) -> bytes:
    """A workbook of openpyxl whose sheet is replaced, and members of these names as well."""
    saved, out = io.BytesIO(), io.BytesIO()
    openpyxl.Workbook().save(saved)
    text = '<row r="{}"><c r="A{}" t="inlineStr"><is><t>{}</t></is></c></row>'
    sheet = f'{prologue}<worksheet xmlns="{SHEET}"><dimension ref="{dimension}"/><sheetData>{text.format(1, 1, "text")}'
    sheet += f"{text.format(2, 2, cell)}{rows}</sheetData></worksheet>"
    replaced = {"xl/worksheets/sheet1.xml": sheet.encode()}
    replaced |= {f"xl/{name}.xml": data for name, data in members.items()}
    with zipfile.ZipFile(saved) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for name in {*old.namelist(), *replaced}:
            new.writestr(name, replaced.get(name) or old.read(name))
    return out.getvalue()


def table(texts: pyarrow.Array) -> bytes:
    out = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"text": texts}), out, compression="zstd")
    return out.getvalue()


def repeated(text: str, rows: int) -> pyarrow.Array:
    return pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * rows, pyarrow.int32()), pyarrow.array([text]))


def aliases() -> str:
    lines = ["a0: &a0 {k: v}", *(f"a{n}: &a{n}\n  <<: [{', '.join([f'*a{n - 1}'] * 20)}]" for n in range(1, 12))]
    return "\n".join(lines)


DOCUMENTS = {
    "bomb.epub": lambda: epub(page="<p>" + "x" * 40 * MEBIBYTE),
    "laughs.epub": lambda: epub(BILLION_LAUGHS),
    "laughs-16.epub": lambda: epub(BILLION_LAUGHS.replace('"1.0"', '"1.0" encoding="utf-16"'), encoding="utf-16"),
    "outside.epub": lambda: epub(OUTSIDE),
    "outside-16.epub": lambda: epub(OUTSIDE.replace('"1.0"', '"1.0" encoding="utf-16"'), encoding="utf-16"),
    "names.epub": lambda: epub(PACKAGE.replace("page.xhtml", "../../../../etc/passwd")),
    "deep.epub": lambda: epub(page="<div>" * 100_000 + "The sea warms."),
    "bomb.docx": lambda: word("<w:p><w:r><w:t>" + "x" * 40 * MEBIBYTE + "</w:t></w:r></w:p>"),
    "laughs.docx": lambda: word("<w:p><w:r><w:t>&e8;</w:t></w:r></w:p>", f"<!DOCTYPE x [{ENTITIES}]>"),
    "laughs-styles.docx": lambda: word(styles=f"<!DOCTYPE x [{ENTITIES}]><x>&e8;</x>"),
    "outside.docx": lambda: word(
        "<w:p><w:r><w:t>&e;</w:t></w:r></w:p>", '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>'
    ),
    "deep.docx": lambda: word("<w:p>" * 20_000 + "<w:r><w:t>The sea warms.</w:t></w:r>" + "</w:p>" * 20_000),
    "deep.html": lambda: b"<div>" * 100_000 + b"The sea warms.",
    "deep-closed.html": lambda: b"<DIV/><span class=x>" * 50_000 + b"The sea warms." + b"</span>" * 50_000,
    "deep.json": lambda: b"[" * 200_000,
    "deep.jsonl": lambda: b'{"text": ' * 200_000,
    "aliases.md": lambda: f"---\n{aliases()}\n---\n# Seas\n\nThe sea warms.\n".encode(),
    "deep.md": lambda: b"---\na: " + b"[" * 20_000 + b"\n---\n# Seas\n\nThe sea warms.\n",
    "number.md": lambda: b"---\na: " + b"9" * 100_000 + b"\n---\n# Seas\n\nThe sea warms.\n",
    "date.md": lambda: b"---\ndate: 2026-13-45\n---\n# Seas\n\nThe sea warms.\n",
    "laughs.xlsx": lambda: workbook(cell="&e8;", prologue=f"<!DOCTYPE x [{ENTITIES}]>"),
    "laughs-styles.xlsx": lambda: workbook(
        styles=f'<!DOCTYPE x [{ENTITIES}]><styleSheet xmlns="{SHEET}"><a b="&e8;"/></styleSheet>'.encode()
    ),
    "formats.xlsx": lambda: workbook(styles=styles(f"<cellXfs>{'<xf/>' * 70_000}</cellXfs>")),
    "outside.xlsx": lambda: workbook(cell="&e;", prologue='<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>'),
    "formula.xlsx": lambda: workbook('<row r="3"><c r="A3"><f>WEBSERVICE("http://127.0.0.1/")</f></c></row>'),
    "bomb.parquet": lambda: table(repeated("x" * 10_000_000, 1000)),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("bombs")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_that_is_an_attack_is_refused_in_one_sentence(name, folder):
    (folder / name).write_bytes(DOCUMENTS[name]())
    result = read(folder / name)
    assert result.documents == ()
    reasons = [skipped.reason for skipped in result.skipped]
    assert len(reasons) in (1, 2)
    assert all(name in reason and "\n" not in reason and reason.endswith(".") for reason in reasons)
    assert "root:" not in " ".join(reasons)


@pytest.mark.parametrize(
    "rows",
    [
        '<row r="2000000000"><c r="A2000000000"><v>1</v></c></row>',
        "".join(f'<row r="{n}"><c r="ZZZ{n}"><v>1</v></c></row>' for n in range(3, 10)),
        f"<row>{'<c><v>1</v></c>' * 20_000}</row>",
    ],
    ids=["a far row", "far columns", "many columns"],
)
def test_a_workbook_has_a_limit_of_cells_and_rows(rows, folder, monkeypatch):
    monkeypatch.setattr("climassay.io.workbooks.MAX_CELLS", 10_000)
    (folder / "cells.xlsx").write_bytes(workbook(rows))
    [skipped] = read(folder / "cells.xlsx").skipped
    assert "10,000 cells" in skipped.reason


def test_escapes_of_a_workbook_are_read_as_characters_and_half_a_character_is_replaced(folder):
    (folder / "escapes.xlsx").write_bytes(workbook(cell="Seas_x000D_\nrise_xD83D_."))
    [row] = parse_rows(folder / "escapes.xlsx", (folder / "escapes.xlsx").read_bytes())
    assert row == {"text": "Seas\r\nrise\ufffd."}


def test_a_workbook_is_unpacked_within_bounds(folder, monkeypatch):
    monkeypatch.setattr("climassay.io.workbooks.MAX_TABLE_BYTES", MEBIBYTE)
    (folder / "bomb.xlsx").write_bytes(workbook(media=bytes(MEBIBYTE)))
    [skipped] = read(folder / "bomb.xlsx").skipped
    assert "more than the limit of 1 MB" in skipped.reason


def test_the_style_sheet_of_a_workbook_has_a_limit(folder, monkeypatch):
    monkeypatch.setattr("climassay.io.workbooks.MAX_STYLES_BYTES", MEBIBYTE)
    (folder / "styles.xlsx").write_bytes(workbook(styles=styles(" " * MEBIBYTE)))
    [skipped] = read(folder / "styles.xlsx").skipped
    assert "style sheet is larger than 1 MB" in skipped.reason


@pytest.mark.parametrize(
    "parts",
    [
        "",
        "<fonts><font><sz/></font></fonts>",
        "<fills><fill/></fills>",
        '<cellStyleXfs/><cellStyles><cellStyle name="Good" xfId="7"/></cellStyles>',
        '<dxfs><dxf><fill><patternFill patternType="none of them"/></fill></dxf></dxfs>',
    ],
    ids=["none", "a font without a size", "an empty fill", "a missing style", "an unknown pattern"],
)
def test_styles_that_decide_no_value_are_not_read(parts, folder):
    formats = '<numFmts><numFmt numFmtId="200" formatCode="0.0%"/></numFmts>'
    cells = '<cellXfs><xf/><xf numFmtId="200"/><xf numFmtId="14"/></cellXfs>'
    rows = '<row r="3"><c r="A3" s="1"><v>0.125</v></c></row><row r="4"><c r="A4" s="2"><v>45000</v></c></row>'
    data = workbook(rows, styles=styles(formats + parts + cells))
    assert [row["text"] for row in parse_rows(folder / "a.xlsx", data)][1:] == ["12.5%", "2023-03-15"]


@pytest.mark.parametrize("dimension", ["A1", "A1:B2", "A1:XFD1048576"])
def test_a_workbook_that_misstates_its_size_is_read_whole(dimension, folder):
    more = "".join(
        f'<row r="{n}"><c r="A{n}" t="inlineStr"><is><t>Ice melts, {n}.</t></is></c></row>' for n in range(3, 500)
    )
    (folder / "size.xlsx").write_bytes(workbook(more, dimension=dimension))
    [document] = read(folder / "size.xlsx").documents
    assert len(document.blocks) == 498
    assert document.blocks[-1].text == "Ice melts, 499."


def test_an_upload_that_needs_too_much_memory_ends_its_reader_and_nothing_else(folder):
    file = folder / "many.html"
    file.write_bytes(b"<p>The sea warms.</p>" * 400_000)
    result = read_sandboxed(file, ReadOptions(), source="many.html", max_memory=256 * MEBIBYTE)
    assert result.documents == ()
    assert "cannot be read" in result.skipped[0].reason


def test_the_reader_of_uploads_finds_no_keys_in_its_environment(folder, monkeypatch):
    from climassay import redaction as secrecy

    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-1")
    monkeypatch.setenv("CLIMASSAY_DATABASE_URL", "postgresql://user:canary-2@host/name")
    monkeypatch.setenv("HF_TOKEN", "hf-canary-3")
    monkeypatch.setenv("CLIMASSAY_CACHE", str(folder))
    handed = secrecy.environment_without_secrets()
    assert "canary" not in json.dumps(dict(handed))
    assert handed["CLIMASSAY_CACHE"] == str(folder)
    assert handed["PATH"]
    (folder / "plain.txt").write_text("The sea warms.\n")
    assert read_sandboxed(folder / "plain.txt", ReadOptions(), source="plain.txt").documents


def test_pages_of_people_are_read_as_before(folder):
    lists = "<ul><li>Ice melts.<li>Seas rise.</ul>" * 6000
    (folder / "long.html").write_text(f"<main><h1>Seas</h1><p>The sea warms.<p>It rises.{lists}</main>")
    (document,) = read(folder / "long.html").documents
    assert [block.text for block in document.blocks[:3]] == ["The sea warms.", "It rises.", "Ice melts."]
    nested = "<div>" * 3000 + "<p>The sea warms.</p>" + "</div>" * 3000
    (folder / "nested.html").write_text(f"<p>Seas rise.</p>{nested}")
    (document,) = read(folder / "nested.html").documents
    assert [block.text for block in document.blocks] == ["Seas rise.", "The sea warms."]


def test_a_packed_question_file_is_unpacked_within_bounds(folder):
    file = folder / "questions.csv.gz"
    file.write_bytes(gzip.compress(bytes(16 * MEBIBYTE), 1) * 40)
    with pytest.raises(InputError, match="512 MB"):
        read_bytes(file)


@pytest.mark.parametrize("content", [b"[" * 200_000, b'{"a": ' * 200_000], ids=["list", "object"])
def test_a_question_file_is_nested_within_bounds(content, folder):
    with pytest.raises(InputError, match="not valid JSON"):
        list(parse_rows(folder / "questions.json", content))


@pytest.mark.parametrize(
    "texts",
    [lambda: repeated("x" * 10_000_000, 1000), lambda: repeated("x" * 100_000, 8000)],
    ids=["few-long-rows", "many-rows"],
)
def test_a_parquet_file_is_counted_before_it_is_written_out(texts, folder):
    data = table(texts())
    assert len(data) < 100_000
    with pytest.raises(InputError, match="unpacks to more than the limit of 512 MB"):
        list(parse_rows(folder / "questions.parquet", data))


def test_a_parquet_file_has_a_limit_of_cells(monkeypatch):
    monkeypatch.setattr("climassay.io.rows.MAX_CELLS", 99)
    with pytest.raises(ValueError, match="more than 99 cells"):
        parquet.read_parquet(table(pyarrow.array(["x"] * 100)))


def test_a_parquet_file_of_any_kinds_is_read_as_pyarrow_reads_it():
    columns = {
        "text": pyarrow.array(["a", None, "a", "ü"]),
        "list": pyarrow.array([["a", None], [], None, ["b"]]),
        "pairs": pyarrow.array([{"x": 1, "y": "a"}, None, {"x": None, "y": "b"}, {"x": 2, "y": None}]),
        "number": pyarrow.array([1, None, 3, 4]),
        "kind": pyarrow.array(["a", "b", None, "a"]).dictionary_encode(),
        "bytes": pyarrow.array([b"1", None, b"", b"\xff"]),
        "large": pyarrow.array(["a", "b", None, ""], pyarrow.large_string()),
    }
    made = pyarrow.table(columns)
    out = io.BytesIO()
    pyarrow.parquet.write_table(made, out)
    found = parquet.read_parquet(out.getvalue())
    assert found.names == list(columns)
    assert found.rows == pyarrow.parquet.read_table(io.BytesIO(out.getvalue())).to_pylist()


@pytest.mark.parametrize(
    "content",
    [
        "a." * 60_000 + "a = 1",
        "[" + "a." * 60_000 + "a]\nb = 1",
        "'a' . " * 20_000 + "a = 1",
        "x = { " + '"é".' * 30_000 + "a = 1 }",
        "".join(f"k{number} = 1\n" for number in range(50_000)),
        "#" * 5_000_000,
    ],
    ids=["keys", "headers", "quoted", "inline", "many", "large"],
)
def test_keys_of_settings_are_bounded_before_they_are_parsed(content, folder):
    file = folder / "recipe.toml"
    file.write_text(content)
    with pytest.raises(InputError):
        load_toml(file)
    setup = "import contextlib, pathlib\nfrom climassay import errors, settings"
    code = f"with contextlib.suppress(errors.InputError): settings.load_toml(pathlib.Path({str(file)!r}))"
    assert peak_memory(setup, code) < 50e6


def test_dots_in_the_texts_of_settings_are_no_keys(folder):
    dots = "a.b." * 100
    (folder / "recipe.toml").write_text(
        f'x = "{dots}" # {dots}\ny = """\n{dots}\n"""\nz.a.b.c = 1\n[t."a.b".\'c.d\']\n'
    )
    assert load_toml(folder / "recipe.toml") == {
        "x": dots, "y": f"{dots}\n", "z": {"a": {"b": {"c": 1}}}, "t": {"a.b": {"c.d": {}}},
    }  # fmt: skip


def test_settings_are_nested_within_bounds(folder):
    (folder / "deep.toml").write_text("a = " + "[" * 100_000)
    with pytest.raises(InputError, match="is not valid TOML"):
        load_toml(folder / "deep.toml")


def test_a_page_of_hundreds_of_thousands_of_lines_is_refused_before_any_is_read(tmp_path, monkeypatch):
    """As uploads and on the command line: what is on a page is counted first, and its text is never asked for."""

    def never(_page):
        raise AssertionError("The text of the page was asked for.")

    lines = [Text(72, 700 - number % 600, "x") for number in range(MAX_TEXT_OBJECTS + 1)]
    file = tmp_path / "crowded.pdf"
    file.write_bytes(build_pdf([lines]))
    load = pdfium.FPDFText_LoadPage
    monkeypatch.setattr(pdfium, "FPDFText_LoadPage", never)
    result = read(file)
    assert not result.documents
    assert result.skipped[0].source == "crowded.pdf"
    assert "page 1" in result.skipped[0].reason
    monkeypatch.setattr(pdfium, "FPDFText_LoadPage", load)
    usual = [Text(72, 700 - 12 * number, "The sea level rises, and the ice melts away.") for number in range(40)]
    file.write_bytes(build_pdf([lines, usual]))
    result = read(file)
    assert "ice melts" in result.documents[0].blocks[0].text
    assert "page 1" in result.skipped[0].reason


def test_a_page_of_too_many_characters_is_left_out_however_they_are_set(tmp_path, monkeypatch):
    monkeypatch.setattr("climassay.corpus.readers.pdf.MAX_CHARACTERS", 100)
    file = tmp_path / "long.pdf"
    file.write_bytes(build_pdf([[Text(72, 700, "The sea level rises. " * 6)]]))
    assert "page 1" in read(file).skipped[0].reason
