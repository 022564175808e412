"""The numbers of files that the tests make, as climassay reads them and as pandoc and pdftotext do."""

import importlib.util
import io
import shutil
import zipfile
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from pdf_building import Text, build_pdf
from word_building import lowered, note, p, raised, table, word_file

pytestmark = pytest.mark.faults

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "figures_kept.py"
SENTENCES = (
    "The forcing rose by 2.72 W m<sup>−2</sup> between 1750–2019, a change of −1.5 to +3.25 percent.",
    "About 10<sup>22</sup> J were stored; CO<sub>2</sub> reached 409.9 ppm and 1,200 stations reported it.",
    "Values of 0.5, 1.0 and 1.5 were used for 21 models on 3 continents.",
)
ROWS = (("Year", "CO2", "CH4"), ("1990", "354.4", "1714"), ("2000", "", "1773"), ("2019", "409.9", "1866"))


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    specification = importlib.util.spec_from_file_location("figures_kept", SCRIPT)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def needs(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")


def html_page() -> str:
    rows = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in ROWS)
    paragraphs = "".join(f"<p>{sentence}</p>" for sentence in SENTENCES)
    return (
        f"<html><head><title>Levels</title></head><body><h1>Levels</h1>{paragraphs}<table>{rows}</table></body></html>"
    )


def epub() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as book:
        book.writestr("mimetype", "application/epub+zip")
        book.writestr(
            "META-INF/container.xml",
            '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container" version="1.0"><rootfiles><rootfile '
            'full-path="book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>',
        )
        book.writestr(
            "book.opf",
            '<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="i"><metadata '
            'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Levels</dc:title><dc:language>en</dc:language>'
            '<dc:identifier id="i">x</dc:identifier></metadata><manifest>'
            '<item id="a" href="a.xhtml" media-type="application/xhtml+xml"/></manifest>'
            '<spine><itemref idref="a"/></spine></package>',
        )
        book.writestr("a.xhtml", html_page().replace("<html>", '<html xmlns="http://www.w3.org/1999/xhtml">'))
    return file.getvalue()


def docx() -> bytes:
    hyphen = "<w:r><w:noBreakHyphen/></w:r>"
    forcing = p("The forcing rose by 2.72 W m", raised("−"), raised("2"), " between 1750", hyphen, "2019", note(1), ".")
    heat = p("A change of −1.5 to +3.25 percent and 10", raised("22"), " J of CO", lowered("2"), ".")
    footnotes = f'<w:footnote w:id="1">{p("Since 1850: 1.09 °C.")}</w:footnote>'
    return word_file(forcing, heat, p(SENTENCES[2]), table(*map(list, ROWS)), footnotes=footnotes)


@pytest.mark.parametrize(("name", "data"), [("a.html", html_page), ("a.epub", epub), ("a.docx", docx)])
def test_no_number_is_lost_or_invented_beside_pandoc(benchmark, name, data, tmp_path):
    needs("pandoc")
    content = data()
    (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    row = benchmark.compare(tmp_path / name)
    assert row.in_reference > 20
    assert row.missing == {}
    assert row.invented == {}


def test_no_number_is_lost_or_invented_beside_pdftotext(benchmark, tmp_path):
    needs("pdftotext")
    words = [
        Text(72, 700, "The forcing rose by 2.72 units between 1750 and 2019 on all continents."),
        Text(72, 686, "Values of 0.5, 1.0 and 1.5 were used for 21 models of the last report."),
    ]
    (tmp_path / "a.pdf").write_bytes(build_pdf([words]))
    row = benchmark.compare(tmp_path / "a.pdf")
    assert row.kept == row.in_reference == 7
    assert row.invented == {}


def test_a_changed_number_is_seen(benchmark):
    reference = benchmark.Reference(["From 1990 to 2020, 10 J and 320 ppm."])
    row = benchmark.compare_texts("a", "From 19902020, 10 J and 3201 ppm.", reference)
    assert set(row.missing) == {"1990", "2020", "320"}
    assert set(row.invented) == {"19902020", "3201"}


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("1990–2020", ["1990", "2020"]),
        ("1990‑2020 (−1.5 to +3)", ["1990", "2020", "-1.5", "+3"]),
        ("10²² J, W m⁻²", ["10^22", "^-2"]),
        ("1,200 and CO₂", ["1,200", "2"]),
    ],
)
def test_tokens_have_signs_and_exponents(benchmark, text, tokens):
    assert benchmark.number_tokens(text) == Counter(tokens)
