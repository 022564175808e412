"""Documents by their web addresses, from a server of this test: names, encodings, redirections, refusals."""

import gzip
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import ClassVar
from urllib.parse import urlsplit

import pytest

from climassay.api.claims import list_claims
from climassay.corpus import ReadOptions
from climassay.corpus.readers.download import download, is_address, read_address
from climassay.errors import DocumentError
from climassay.factcheck.claims import ClaimTable, read_claims
from climassay.workspace import Workspace
from command_line import json_of, refused
from debate_tables import make_collection
from scripted_model import ScriptedModel

TEXT = "Größere Dürren wurden nicht häufiger, sagt der Bericht über Österreich; die Wälder wüchsen schöner."
PAGE = f"<html><head><title>Dürren</title></head><body><article><h1>Dürren</h1><p>{TEXT}</p></article></body></html>"
META = PAGE.replace("<head>", '<head><meta charset="windows-1251">')
CYRILLIC = "<html><body><article><p>Засухи стали чаще, говорится в докладе о климате.</p></article></body></html>"
PDF_TYPE = {"Content-Type": "application/pdf"}
REPLIES = {
    "/page": ({"Content-Type": "text/html"}, PAGE.encode()),
    "/latin": ({"Content-Type": "text/html; charset=ISO-8859-1"}, PAGE.encode("cp1252")),
    "/wrong-header": ({"Content-Type": "text/html; charset=iso-8859-1"}, PAGE.encode()),
    "/cyrillic": ({"Content-Type": "text/html; charset=koi8-r"}, CYRILLIC.encode("koi8-r")),
    "/packed": ({"Content-Type": "text/html", "Content-Encoding": "gzip"}, gzip.compress(PAGE.encode())),
    "/damaged": ({"Content-Type": "text/html", "Content-Encoding": "gzip"}, gzip.compress(PAGE.encode())[:60]),
    "/bomb": ({"Content-Type": "text/html", "Content-Encoding": "gzip"}, gzip.compress(b" " * 2_000_000)),
    "/binary": ({"Content-Type": "text/html; charset=koi8-r"}, bytes(range(256)) * 9),
    "/report.pdf": ({"Content-Type": "text/html"}, PAGE.encode()),
    "/get.php": ({"Content-Type": "text/html"}, b"%PDF-1.4\n"),
    "/file": ({"Content-Type": "application/pdf", "Content-Disposition": 'x; filename="../../a b.pdf"'}, b"%PDF-1.4"),
    "/notes.md": ({"Content-Type": "text/plain"}, f"# Dürren\n\n{TEXT}".encode()),
    "/notes": ({"Content-Type": "text/plain"}, TEXT.encode()),
    "/D%C3%BCrre": ({"Content-Type": "text/html"}, PAGE.encode()),
    "/script": ({"Content-Type": "text/html"}, b"<html><body><script>draw()</script></body></html>"),
}
TARGETS = {
    "/moved": "/page",
    "/away": "file:///etc/hostname",
    "/ftp": "ftp://127.0.0.1:{port}/page",
}
"""Addresses to which others redirect."""


class _Handler(BaseHTTPRequestHandler):
    paths: ClassVar[list[str]] = []
    """Paths that were asked for."""

    def do_GET(self):
        parts = urlsplit(self.path)
        self.paths.append(parts.path)
        status = {"/refused": 403, "/absent": 404}.get(parts.path, 302 if parts.path in TARGETS else 200)
        headers, body = REPLIES.get(parts.path, ({}, b""))
        self.send_response(status)
        if status == 302:
            self.send_header("Location", TARGETS[parts.path].format(port=self.server.server_port))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture(scope="module")
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    "path", ["/page", "/latin", "/wrong-header", "/packed", "/moved", "/report.pdf", "/notes.md", "/notes", "/Dürre"]
)
def test_a_document_is_read_as_what_it_is_in_its_encoding(server, tmp_path, path):
    result = read_address(f"{server}{path}#part", tmp_path)
    assert not result.skipped
    [document] = result.documents
    assert TEXT in " ".join(block.text for block in document.blocks)
    assert document.url == f"{server}{path}#part"


def test_the_encoding_of_the_response_precedes_that_of_the_page(server, tmp_path):
    [document] = read_address(f"{server}/cyrillic", tmp_path).documents
    assert "Засухи стали чаще" in document.blocks[0].text


@pytest.mark.parametrize(
    ("path", "name"), [("/get.php?id=3", "get.php.pdf"), ("/file", "a b.pdf"), ("/page", "page.html")]
)
def test_a_file_is_named_after_what_it_holds(server, tmp_path, path, name):
    file = download(f"{server}{path}", tmp_path, 1000)
    assert file.name == name
    assert file.parent.parent == tmp_path


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("/refused", "save it"),
        ("/absent", "404"),
        ("/away", "not allowed"),
        ("/ftp", "unknown url type: ftp"),
        ("/damaged", "damaged or truncated"),
        ("/bomb", "unpacks to more than"),
        ("/binary", "binary data"),
        ("/script", "save the page from a browser"),
        ("/nothing", "is empty"),
    ],
)
def test_what_cannot_be_had_has_one_reason(server, tmp_path, path, word):
    result = read_address(f"{server}{path}", tmp_path, ReadOptions(max_bytes=1_000_000))
    assert not result.documents
    assert word in result.skipped[0].reason


@pytest.mark.parametrize(("target", "is_read"), [("on the internet", True), ("in a private network", False)])
def test_a_server_on_the_internet_leads_to_no_page_of_a_private_network(server, tmp_path, monkeypatch, target, is_read):
    n_requests = len(_Handler.paths)
    peers = iter([True, target == "on the internet"])
    monkeypatch.setattr("climassay.corpus.readers.download._is_public", lambda _address: next(peers))
    result = read_address(f"{server}/moved", tmp_path)
    assert bool(result.documents) is is_read
    assert is_read or "which is not on the internet" in result.skipped[0].reason
    assert _Handler.paths[n_requests:] == ["/moved", "/page"][: 1 + is_read]


@pytest.mark.parametrize("address", ["https://", "http://me:secret@127.0.0.1/", "http://[::1", "http://127.0.0.1:x/"])
def test_a_malformed_address_is_refused(tmp_path, address):
    with pytest.raises(DocumentError) as error:
        download(address, tmp_path, 1000)
    assert "cannot be fetched" in str(error.value)


def test_a_large_file_is_refused(server, tmp_path):
    with pytest.raises(DocumentError, match="larger than the limit"):
        download(f"{server}/page", tmp_path, 20)


def test_what_the_user_says_of_the_document_holds(server, tmp_path):
    [document] = read_address(f"{server}/page", tmp_path, ReadOptions(url="https://example.org/a", title="A")).documents
    assert (document.url, document.title) == ("https://example.org/a", "A")


def test_only_web_addresses_are_addresses():
    assert [is_address(name) for name in ("https://a.org/b", "HTTP://a.org", "file:///a", "a/http://b", "a.pdf")] == [
        True, True, False, False, False,
    ]  # fmt: skip


def test_claims_of_a_web_page_are_listed_with_its_address(server, tmp_path):
    model = ScriptedModel(
        write=lambda _, schema: json.dumps({"claims": [{"sentences": [1], "claim": "Droughts are no more frequent."}]})
    )
    listed = list_claims(f"{server}/page", model=model, workspace=tmp_path / "w")
    file = tmp_path / "claims.jsonl"
    file.write_text("".join(json.dumps({**row, "strike": ""}) + "\n" for row in listed.rows()))
    [claim] = ClaimTable.load(file).claims
    assert (claim.text, claim.appearance) == ("Droughts are no more frequent.", f"{server}/page")
    assert read_claims(file).claims[0].source == "Dürren"


def test_a_page_is_added_to_a_collection_by_its_address(server, climassay, tmp_path):
    make_collection(Workspace.open(tmp_path), "pages", ("Ice", "Ice melts."), title="Ice")
    added = json_of(climassay("corpus add pages", f"{server}/page", f"{server}/absent", "-w", tmp_path, "--json"))
    assert [document["title"] for document in added["added"]] == ["Dürren"]
    assert [skipped["source"] for skipped in added["skipped"]] == [f"{server}/absent"]
    assert "404" in refused(climassay("corpus add others", f"{server}/absent", "-w", tmp_path))
