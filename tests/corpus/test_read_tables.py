"""Tables of paragraphs in every format, chosen and found columns, and what is wrong with them."""

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from climassay.corpus import ReadOptions, ReadResult, read
from climassay.corpus.documents import TableColumns

COLUMNS = ("doc_id", "report", "chapter", "chapter_title", "para_id", "headings", "text")
ROWS: list[dict[str, Any]] = [
    dict(zip(COLUMNS, row, strict=True))
    for row in (
        ("a", "wg1", "C1", "Ice", "a1", "Top > Low", "First."),
        ("b", "wg2", "C2", "", "b1", "", "Second."),
        ("a", "wg1", "C1", "Ice", "a2", "Top", "Third."),
    )
]


def as_csv(rows: list[dict[str, Any]], delimiter: str = ",") -> bytes:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue().encode()


def as_jsonl(rows: list[dict[str, Any]]) -> bytes:
    return "\n".join(json.dumps(row) for row in rows).encode()


def as_parquet(rows: list[dict[str, Any]]) -> bytes:
    sink = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), sink)
    return sink.getvalue()


FORMATS = {
    "t.csv": as_csv(ROWS),
    "t.tsv": as_csv(ROWS, "\t"),
    "semicolon.csv": as_csv(ROWS, ";"),
    "t.jsonl": as_jsonl(ROWS),
    "t.json": json.dumps(ROWS).encode(),
    "nested.json": json.dumps({"version": 2, "rows": ROWS}).encode(),
    "t.parquet": as_parquet(ROWS),
    "t.jsonl.gz": gzip.compress(as_jsonl(ROWS), mtime=0),
    "t.csv.gz": gzip.compress(as_csv(ROWS), mtime=0),
}


def read_bytes(tmp_path: Path, name: str, data: bytes, **columns: Any) -> ReadResult:
    path = tmp_path / name
    path.write_bytes(data)
    return read(path, ReadOptions(columns=TableColumns(**columns)))


def reason(result: ReadResult) -> str:
    assert result.documents == ()
    return result.skipped[0].reason


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_documents(tmp_path: Path, name: str) -> None:
    result = read_bytes(tmp_path, name, FORMATS[name])
    assert result.skipped == ()
    first, second = result.documents
    assert (first.title, first.report, second.title, second.report) == ("Ice", "wg1", "wg2 C2", "wg2")
    assert [(block.text, block.headings, block.paragraph_id, block.chapter) for block in first.blocks] == [
        ("First.", ("Top", "Low"), "a1", "C1"),
        ("Third.", ("Top",), "a2", "C1"),
    ]
    assert first.media == "table"


def test_chosen_columns(tmp_path: Path) -> None:
    rows = [
        {"body": "Do not take this.", "claim": "One.", "who": "x", "seite": 7, "wo": "https://e.org/1", "when": "2020"},
        {"body": "Nor this.", "claim": "Two.", "who": "y", "seite": 8, "wo": "https://e.org/2", "when": "2021"},
    ]
    columns = {"text": "claim", "document": ("who",), "title": "who", "page": "seite", "url": "wo", "date": "when"}
    documents = read_bytes(tmp_path, "claims.jsonl", as_jsonl(rows), **columns).documents
    assert [(d.title, d.date, d.blocks[0].text, d.blocks[0].page, d.blocks[0].url) for d in documents] == [
        ("x", "2020", "One.", 7, "https://e.org/1"),
        ("y", "2021", "Two.", 8, "https://e.org/2"),
    ]


def test_a_text_that_identifies_a_document_is_not_its_whole_title(tmp_path: Path) -> None:
    texts = ["Sea ice melts. " * 40, "Sea ice grows.", "x" * 300]
    path = tmp_path / "abstracts.csv"
    path.write_bytes(as_csv([{"abstract": text} for text in texts]))
    long, short, unbroken = read(path, ReadOptions(columns=TableColumns("abstract", ("abstract",)))).documents
    assert long.title.startswith("Sea ice melts. Sea ice")
    assert long.title.endswith(" ...")
    assert len(long.title) <= 104
    assert short.title == "Sea ice grows."
    assert unbroken.title.startswith("xxx")
    assert len(unbroken.title) <= 104
    assert long.blocks[0].text.count("Sea ice") == 40


def test_a_page_of_a_textbook(tmp_path: Path) -> None:
    text = "Aerosols scatter sunlight and so cool the sur-\nface of the planet below them.\nThey also act as nuclei."
    rows = [{"Textbook": "Aerosols_and_Climate.pdf", "Page No.": "374", "text": text, "link": "https://e.org/b"}]
    (document,) = read_bytes(tmp_path, "book.csv", as_csv(rows)).documents
    assert document.title == "Aerosols and Climate"
    assert document.url == "https://e.org/b"
    assert document.blocks[0].page == 374
    assert document.blocks[0].text.startswith("Aerosols scatter sunlight and so cool the surface of the planet below")


def test_markdown_in_a_cell_becomes_plain(tmp_path: Path) -> None:
    rows = [{"text": "## Part\n\nSee [the book](https://e.org) on *ice*.\n\n$$\nT = 1\n$$", "headings": "Top"}]
    (document,) = read_bytes(tmp_path, "t.jsonl", as_jsonl(rows)).documents
    assert [(block.text, block.headings) for block in document.blocks] == [
        ("See the book on ice.", ("Top", "Part")),
        ("$$ T = 1 $$", ("Top", "Part")),
    ]


def test_rows_without_text_and_bad_lines_are_told(tmp_path: Path) -> None:
    lines = [json.dumps(ROWS[0]), "{broken", json.dumps({**ROWS[1], "text": " "}), "[1]", json.dumps({"text": None})]
    result = read_bytes(tmp_path, "t.jsonl", "\n".join(lines).encode())
    assert len(result.documents) == 1
    assert [skipped.reason for skipped in result.skipped] == [
        "t.jsonl: not a JSON object in line 2, 4.",
        "2 rows of t.jsonl have no text in column 'text' and were left out.",
    ]


@pytest.mark.parametrize(
    ("name", "data", "sentence"),
    [
        ("t.csv", b"claim,verdict\nx,y\n", "no column that looks like text; choose one of its columns: claim,"),
        ("t.csv", b"text,verdict\n", "t.csv has no rows."),
        ("t.csv", b"text,verdict\n,y\n", "t.csv has no text in its column 'text'."),
        ("t.json", b'{"a": ', "is not valid JSON"),
        ("t.json", b"[1, 2]", "is not a list of JSON objects"),
        ("t.json", b"[" * 100_000, "is not valid JSON"),
        ("t.jsonl", b"{broken\n", "not a JSON object in line 1"),
        ("t.parquet", b"PAR1" + bytes(50), "is not a readable Parquet file"),
        ("t.csv", b"\x00\x01\x02" * 500, "is not a text file"),
        ("t.csv.gz", b"text\nx\n", "is not a gzip file although"),
        ("t.csv.gz", gzip.compress(b"text\n" + b"x\n" * 900, mtime=0)[:-9], "is a damaged or truncated gzip file"),
    ],
)  # fmt: skip
def test_bad_tables_give_one_sentence(tmp_path: Path, name: str, data: bytes, sentence: str) -> None:
    assert sentence in reason(read_bytes(tmp_path, name, data))


def test_a_chosen_column_that_is_not_there(tmp_path: Path) -> None:
    assert reason(read_bytes(tmp_path, "t.csv", FORMATS["t.csv"], text="words")) == (
        "t.csv has no column 'words'; its columns are: doc_id, report, chapter, chapter_title, para_id, headings, text."
    )


def test_a_gzip_bomb_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.txt.gz"
    path.write_bytes(gzip.compress(bytes(50 << 20)))
    result = read(path, ReadOptions(max_bytes=1 << 20))
    assert reason(result) == "bomb.txt.gz unpacks to more than the limit of 1 MB."


DATA = Path(__file__).parents[2] / ".." / "shared" / "data"


@pytest.mark.skipif(not DATA.exists(), reason="the shared data folder is absent")
@pytest.mark.parametrize(
    ("name", "documents", "title", "place"),
    [
        ("ipcc_ar6_paragraphs.jsonl.gz", 58, "Summary for Policymakers — Global Warming of 1.5 ºC", "sr15_SPM_1"),
        ("climate_laboratory.jsonl", 1, "The Climate Laboratory", None),
        ("climate_academy.jsonl", 1, "Climate Academy Student Book", None),
        ("climaqa_sample_textbook.csv", 1, "Aerosols and Climate", 374),
        (
            "climate_abstracts.json",
            100,
            "Climate-change–driven accelerated sea-level rise detected in the altimeter era",
            None,
        ),
    ],
)  # fmt: skip
def test_published_tables_need_no_options(name: str, documents: int, title: str, place: str | int | None) -> None:
    result = read(DATA / name)
    assert result.skipped == ()
    assert len(result.documents) == documents
    assert result.documents[0].title == title
    first = result.documents[0].blocks[0]
    assert place in (None, first.paragraph_id, first.page)


def test_half_a_character_is_told(tmp_path: Path) -> None:
    row = {"text": "Sea \ud83c level", "title": "Seas\udc0a", "licence": "CC0\ud800", "headings": "Top > Low\udfff"}
    path = tmp_path / "halves.jsonl"
    path.write_text(json.dumps(row))
    with pytest.warns(UserWarning, match="half a character"):
        (document,) = read(path).documents
    assert (document.blocks[0].text, document.title, document.licence) == ("Sea level", "Seas", "CC0\ufffd")
    assert document.blocks[0].headings == ("Top", "Low")


def test_chosen_columns_are_found_whatever_their_case(tmp_path: Path) -> None:
    file = tmp_path / "paragraphs.csv"
    file.write_text("Paragraph Text,Book\nThe sea rises.,Seas\nIce melts.,Ice\n")
    result = read(file, ReadOptions(columns=TableColumns(text="paragraph_text", document=("BOOK",))))
    assert [[block.text for block in document.blocks] for document in result.documents] == [
        ["The sea rises."],
        ["Ice melts."],
    ]
