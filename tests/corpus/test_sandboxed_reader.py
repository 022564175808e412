"""Reading in another process: the same documents, and nothing that a file does there reaches us."""

from pathlib import Path

import pytest

from climassay.corpus.documents import ReadOptions, TableColumns
from climassay.corpus.readers.file_types import read
from climassay.corpus.readers.sandboxed_reader import read_sandboxed
from pdf_building import Text, build_pdf

TABLE = 'words,work\n"Ice melts.",Ice\n"Snow – “falls”.",Snow\n'


def place(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def test_documents_come_back_as_they_were_read(tmp_path: Path) -> None:
    table = place(tmp_path, "t.csv", TABLE.encode())
    options = ReadOptions(columns=TableColumns(text="words", document=("work",)), licence="CC0")
    result = read_sandboxed(table, options, source="table.csv")
    assert [document.title for document in result.documents] == ["Ice", "Snow"]
    assert result == read(table, options, source="table.csv")


def test_pages_are_told_and_what_the_listener_raises_ends_the_reading(tmp_path: Path) -> None:
    pages = [[Text(72, 700, f"Page {number} is about the carbon cycle.")] for number in range(3)]
    pdf = place(tmp_path, "p.pdf", build_pdf(pages))
    seen = []
    result = read_sandboxed(pdf, ReadOptions(), source="p.pdf", on_page=lambda page, of: seen.append((page, of)))
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert result == read(pdf)

    class Enough(Exception):
        pass

    def stop(page: int, of: int) -> None:
        raise Enough

    with pytest.raises(Enough):
        read_sandboxed(pdf, ReadOptions(), source="p.pdf", on_page=stop)


@pytest.mark.parametrize("limit", [{"memory": 1 << 20}, {"silence": 0.0}], ids=["no-memory", "no-patience"])
def test_a_reader_that_dies_or_hangs_is_a_sentence(tmp_path: Path, limit: dict[str, float]) -> None:
    text = place(tmp_path, "ab12.txt", b"The ocean stores heat. " * 100)
    result = read_sandboxed(text, ReadOptions(), source="seas.txt", **limit)
    assert result.documents == ()
    assert result.skipped[0].reason.startswith("seas.txt cannot be read: the reader broke off")
