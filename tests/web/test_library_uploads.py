"""Files on their way in: what they are called, what they are, how much of them is taken, what is left behind."""

import io
import time
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import UploadFile

from climassay.errors import InputError
from climassay.web.failures import TooLarge
from climassay.web.library.uploads import (
    ABANDONED_SECONDS,
    MAX_FILES,
    MAX_NAME_LENGTH,
    delete_unused_uploads,
    is_web_address,
    parse_optional_address,
    require_allowed_suffix,
    safe_file_name,
    store_upload,
)
from faults.samples import docx
from library_parts import OCEAN, pdf_of

PAGE = f"<!doctype html><title>Seas</title><p>{OCEAN}</p>".encode()


def book():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("mimetype", "application/epub+zip")
        file.writestr("META-INF/container.xml", "<container/>")
    return buffer.getvalue()


def other_zip():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("word/document.xml", "<w/>")
    return buffer.getvalue()


def sent(*files):
    return [UploadFile(io.BytesIO(content), filename=name) for name, content in files]


def left(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    ("given_name", "shown"),
    [
        ("report.pdf", "report.pdf"),
        ("../../etc/passwd.txt", "passwd.txt"),
        ("C:\\Users\\me\\report.pdf", "report.pdf"),
        ("..", "file"),
        ("", "file"),
        (".hidden.txt", "hidden.txt"),
        ("a\x00b\x1b[31m\nc.pdf", "ab[31m c.pdf"),
        ("invoice\u202efdp.html", "invoicefdp.html"),
        ("zero\u200bwidth.md", "zerowidth.md"),
        ("Cafe\u0301.txt", "Café.txt"),
        ("<script>.txt", "<script>.txt"),
        ("n" * 300 + ".pdf", "n" * (MAX_NAME_LENGTH - 5) + "….pdf"),
    ],
)
def test_shown_names_are_no_paths_and_hide_nothing(given_name, shown):
    assert safe_file_name(given_name) == shown


@given(st.text(max_size=400))
def test_any_name_becomes_one_that_is_safe_and_stays_as_it_is(name):
    shown = safe_file_name(name)
    assert 0 < len(shown) <= MAX_NAME_LENGTH
    assert shown not in (".", "..")
    assert not set(shown) & set("/\\\0\n\r")
    assert shown.isprintable() or " " in shown or "…" in shown or not shown.isascii()
    assert safe_file_name(shown) == shown


@pytest.mark.parametrize("name", ["x.exe", "x", "x.pdf.js", "x.PDF ", "x.gz", "x.parquet", "x.svg"])
def test_other_kinds_are_refused_by_name(name):
    with pytest.raises(InputError, match="not a kind of file that can be added"):
        require_allowed_suffix(name)


def test_addresses_lead_to_the_web():
    assert parse_optional_address(" https://example.org/a ") == "https://example.org/a"
    assert parse_optional_address("  ") is None
    for wrong in ("javascript:alert(1)", "data:text/html,x", "//evil.example", "https:", "http:///x", "ftp://x"):
        assert not is_web_address(wrong)
        with pytest.raises(InputError, match="must begin with http"):
            parse_optional_address(wrong)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.pdf", pdf_of(OCEAN)),
        ("a.epub", book()),
        ("a.docx", docx()),
        ("a.html", PAGE),
        ("a.htm", b"<div>" + OCEAN.encode() + b"</div>"),
        ("a.md", b"# Seas\n\n" + OCEAN.encode()),
        ("a.txt", OCEAN.encode("utf-16")),
        ("a.csv", b"text\n" + OCEAN.encode()),
        ("a.jsonl", b'\n{"text": "x"}\n'),
    ],
    ids=["pdf", "epub", "docx", "html", "fragment", "markdown", "utf-16", "csv", "jsonl"],
)
def test_what_is_what_it_claims_is_kept_under_a_name_of_ours(tmp_path, name, content):
    upload = store_upload(tmp_path, sent((name, content)), 10**6)
    (kept,) = upload.files
    assert kept.name == name
    assert left(tmp_path) == [tmp_path / upload.id / kept.stored]
    assert (tmp_path / upload.id / kept.stored).read_bytes() == content
    assert kept.stored[:40].isalnum()
    assert kept.stored[40:] == Path(name).suffix


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.pdf", PAGE, "a.pdf is not a PDF file"),
        ("a.pdf", b"MZ\x90\0" * 50, "a.pdf is not a PDF file"),
        ("a.epub", other_zip(), "a.epub is not an EPUB book"),
        ("a.epub", pdf_of(OCEAN), "a.epub is not an EPUB book"),
        ("a.docx", pdf_of(OCEAN), "a.docx is not a Word file"),
        ("a.html", OCEAN.encode(), "a.html is not a web page"),
        ("a.html", pdf_of(OCEAN), "a.html is not a web page"),
        ("a.txt", pdf_of(OCEAN), "a.txt is not a text file"),
        ("a.txt", b"\x1f\x8b\x08" + b"x" * 50, "a.txt is not a text file"),
        ("a.md", other_zip(), "a.md is not a text file"),
        ("a.csv", b"\x7fELF\0\0\0\0" * 20, "a.csv is not a text file"),
        ("a.txt", PAGE, "a.txt is a web page by its content"),
        ("a.jsonl", b"[1, 2]", "a.jsonl is not a file of one JSON object a line"),
        ("a.txt", b"", "a.txt is empty"),
        ("a.txt", b" \n\t ", "a.txt is empty"),
        ("a.exe", b"MZ", "not a kind of file that can be added"),
    ],
)
def test_what_is_something_else_is_refused_and_leaves_nothing(tmp_path, name, content, sentence):
    with pytest.raises(InputError, match=sentence):
        store_upload(tmp_path, sent((name, content)), 10**6)
    assert left(tmp_path) == []


def test_bad_files_do_not_stop_the_good_ones(tmp_path):
    files = (("bad.pdf", b"no"), ("good.txt", b"The sea."), ("again.txt", b"The sea."), ("other.txt", b"The ice."))
    upload = store_upload(tmp_path, sent(*files), 10**6)
    assert [file.name for file in upload.files] == ["good.txt", "other.txt"]
    assert [one.name for one in upload.refused] == ["bad.pdf", "again.txt"]
    assert upload.refused[1].reason == "again.txt is the same file as good.txt."
    assert len(left(tmp_path)) == len(upload.files)


def test_a_file_over_the_limit_ends_the_upload_and_leaves_nothing(tmp_path):
    class Endless(io.RawIOBase):
        taken = 0

        def read(self, size=-1):
            self.taken += size
            assert self.taken < 50 << 20, "The whole of an endless file would have been taken."
            return b"x" * size

    endless = Endless()
    with pytest.raises(TooLarge, match=r"big\.txt is larger than 3 MB"):
        store_upload(tmp_path, [*sent(("a.txt", b"The sea.")), UploadFile(endless, filename="big.txt")], 3 << 20)
    assert endless.taken <= 5 << 20
    assert left(tmp_path) == []


def test_a_connection_that_breaks_leaves_nothing(tmp_path):
    class Broken(io.BytesIO):
        def read(self, size=-1):
            if self.tell():
                raise ConnectionResetError
            return super().read(5)

    with pytest.raises(ConnectionResetError):
        store_upload(
            tmp_path, [*sent(("a.txt", b"The sea.")), UploadFile(Broken(b"The ice."), filename="broken.txt")], 10**6
        )
    assert list(tmp_path.iterdir()) == []


def test_none_and_too_many_files_are_told(tmp_path):
    with pytest.raises(InputError, match="at least one"):
        store_upload(tmp_path, [], 10)
    with pytest.raises(InputError, match=f"At most {MAX_FILES}"):
        store_upload(tmp_path, sent(*[("a.txt", b"x")] * (MAX_FILES + 1)), 10)


def test_what_nobody_waits_for_is_swept_after_a_day(tmp_path):
    waiting, lost = (store_upload(tmp_path, sent(("a.txt", b"The sea.")), 100).id for _ in range(2))
    delete_unused_uploads(tmp_path, ended_ids=set(), waiting_ids={waiting})
    assert {path.name for path in tmp_path.iterdir()} == {waiting, lost}
    delete_unused_uploads(tmp_path, ended_ids=set(), waiting_ids={waiting}, now=time.time() + ABANDONED_SECONDS + 60)
    assert {path.name for path in tmp_path.iterdir()} == {waiting}
