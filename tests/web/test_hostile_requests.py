"""Requests that are too large, broken or odd: each is refused with a sentence, and none breaks the server."""

import contextlib
import http.client
import socket
from urllib.parse import urlsplit

import pytest

from patience import PATIENCE
from web_routes import PARAMETER, Route, Site, routes_of

pytestmark = pytest.mark.faults

MEGABYTE = 2**20


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    opened = Site(tmp_path_factory.mktemp("site"), form_bytes=MEGABYTE, upload_bytes=3 * MEGABYTE)
    yield opened
    opened.close()


def test_a_body_that_is_announced_as_too_large_is_not_read(site):
    for route in (one for one in routes_of(site.app) if one.unsafe):
        answer = site.ask(route, "annotator", headers={"content-length": str(10**12)}, content=b"x")
        assert answer.status_code == 413, str(route)
        assert "Too large" in answer.text


def test_a_body_without_a_length_is_cut_off_while_it_comes(running_server):
    """Sixty-four megabytes in pieces, to a real server: it answers and hangs up long before the last one."""
    parts = urlsplit(running_server.url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=PATIENCE)
    connection.putrequest("POST", "/sign-in")
    connection.putheader("Transfer-Encoding", "chunked")
    connection.putheader("Content-Type", "application/x-www-form-urlencoded")
    connection.endheaders()
    piece, sent = b"x" * 65536, 0
    with contextlib.suppress(OSError):  # the server hangs up
        while sent < 64 * MEGABYTE:
            connection.send(b"%x\r\n%s\r\n" % (len(piece), piece))
            sent += len(piece)
    assert sent < 32 * MEGABYTE
    # The answer may be lost with the connection, because pieces were still on their way.
    with contextlib.suppress(http.client.HTTPException, OSError):
        assert connection.getresponse().status == 413


def test_a_body_over_the_limit_is_refused_whatever_its_length_says(site):
    def pieces():
        for _ in range(40):
            yield b"x" * 65536

    headers = {"content-type": "application/x-www-form-urlencoded"}
    assert site.visitor().post("/sign-in", content=pieces(), headers=headers).status_code == 413
    assert site.visitor(token=False).post("/sign-in", content=pieces(), headers=headers).status_code == 413
    assert site.visitor().post("/sign-in", content=b"name=x", headers=headers).status_code == 401


def test_large_files_are_taken_from_people_with_an_account_only(site):
    file = {"files": ("a.txt", b"x" * (2 * MEGABYTE))}
    assert site.visitor().post("/library/upload", files=file).status_code == 413
    forged = site.visitor()
    forged.cookies.set("climassay_session", "invented")
    assert forged.post("/library/upload", files=file).status_code == 413
    assert site.visitor("adjudicator").post("/library/upload", files=file).status_code != 413
    larger = {"files": ("a.txt", b"x" * (4 * MEGABYTE))}
    assert site.visitor("adjudicator").post("/library/upload", files=larger).status_code == 413
    for path in ("/sign-in", "/users", "/library/x/remove"):
        assert site.visitor("admin").post(path, files=file).status_code == 413


BODIES = {
    "too many fields": ("application/x-www-form-urlencoded", b"&".join(b"a%d=1" % n for n in range(20_000))),
    "too many files": (
        "multipart/form-data; boundary=b",
        b"".join(
            b'--b\r\nContent-Disposition: form-data; name="f"; filename="%d"\r\n\r\nx\r\n' % n for n in range(1500)
        )
        + b"--b--\r\n",
    ),
    "no boundary": ("multipart/form-data", b"--b\r\n\r\nx"),
    "cut off": ("multipart/form-data; boundary=b", b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\nx'),
    "no disposition": ("multipart/form-data; boundary=b", b"--b\r\n\r\nx\r\n--b--\r\n"),
    "odd names": (
        "multipart/form-data; boundary=b",
        b'--b\r\nContent-Disposition: form-data; name="\xff\xfe\x00"\r\n\r\n\xff\r\n--b--\r\n',
    ),
    "no text": ("application/x-www-form-urlencoded; charset=utf-16", b"\xff\xfe\x00=%ff%fe%00&name=%00"),
    "unknown charset": ("application/x-www-form-urlencoded; charset=klingon", b"name=x"),
    "deep": ("application/json", b"[" * 100_000),
    "numbers": ("application/json", b'{"name": 1e999999, "password": NaN}'),
    "half a character": ("application/json", b'{"name": "\\ud83d", "key": "\\u0000"}'),
    "a list": ("application/json", b"[1, 2]"),
    "nothing": ("application/json", b""),
}


@pytest.mark.parametrize("kind", list(BODIES))
def test_broken_bodies_are_refused_everywhere(kind, site):
    content_type, body = BODIES[kind]
    for route in (one for one in routes_of(site.app) if one.unsafe):
        answer = site.ask(route, "admin", content=body, headers={"content-type": content_type})
        assert answer.status_code < 500, f"{route}: {answer.text[:500]}"


ODD = {
    "nul": "%00",
    "no-utf8": "%ff%fe",
    "up": "..%2f..%2f..%2fetc%2fpasswd",
    "dots": "%2e%2e",
    "backslashes": "..%5c..%5cwindows",
    "sql": "%27%20OR%20%271%27=%271",
    "markup": "%3Cxss-marker%3E",
    "long": "a" * 3000,
    "rtl": "%e2%80%ae",
    "emoji": "%f0%9f%8c%a1",
    "large-number": "9" * 30,
    "negative": "-1",
    "wildcard": "%25",
    "line-end": "a%0d%0ax-evil:%201",
}


ALWAYS = ("nul", "large-number", "markup")
QUERY = ("q", "page", "next", "after", "sort", "name", "annotator", "format", "mode", "k", "most", "runs", "command")


def odd_addresses(number, route, names):
    """A route's addresses with odd values in the path and, where it only reads, in the query."""
    if PARAMETER.search(route.path):
        for name in names:
            yield PARAMETER.sub(lambda _, value=ODD[name]: value, route.path)
    if not route.unsafe:
        for shift in range(0, len(names), 3):
            odd = [ODD[names[(number + shift + place) % len(names)]] for place in range(len(QUERY))]
            yield route.address + "?" + "&".join(f"{key}={value}" for key, value in zip(QUERY, odd, strict=True))


def test_odd_addresses_break_nothing(tmp_path, database_url):
    """Each route with the worst values, and on SQLite with some of the others in turn."""
    site = Site(tmp_path / "workspace", database_url=database_url)
    others = [name for name in ODD if name not in ALWAYS]
    for number, route in enumerate(routes_of(site.app)):
        turn = [others[(number + step) % len(others)] for step in range(3)] if site.place.database.is_sqlite else []
        for address in odd_addresses(number, route, [*ALWAYS, *turn]):
            answer = site.ask(Route(address, route.method), "admin")
            assert answer.status_code < 500, f"{route.method} {address[:200]} answers {answer.status_code}"
            assert "x-evil" not in answer.headers
            assert "root:" not in answer.text
            assert "<xss-marker>" not in answer.text or "html" not in answer.headers["content-type"]
    site.close()


@pytest.mark.parametrize(
    "request_line",
    [
        b"GET //evil.example/ HTTP/1.1", b"GET http://evil.example/ HTTP/1.1", b"GET /\x00 HTTP/1.1",
        b"\x16\x03\x01\x02\x00", b"GET " + b"/a" * 60_000 + b" HTTP/1.1", b"GET /../../etc/passwd HTTP/1.1",
        b"GET /static/../../application.py HTTP/1.1", b"GET /static//etc/passwd HTTP/1.1",
    ],
    ids=["two-slashes", "absolute", "nul", "tls", "long", "up", "static-up", "static-root"],
)  # fmt: skip
def test_raw_requests_get_nothing(request_line, running_server):
    """What clients clean up before they send it, sent as it is."""
    parts = urlsplit(running_server.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=PATIENCE) as connection:
        connection.sendall(request_line + f"\r\nHost: {parts.netloc}\r\nConnection: close\r\n\r\n".encode())
        said = b""
        while part := connection.recv(65536):
            said += part
    assert said.startswith((b"HTTP/1.1 4", b"HTTP/1.1 307"))
    if said.startswith(b"HTTP/1.1 307"):
        place = next(line for line in said.split(b"\r\n") if line.lower().startswith(b"location:")).split(b": ")[1]
        assert not place.startswith((b"//", b"http://evil"))
    assert b"root:" not in said
    assert b"create_app" not in said
