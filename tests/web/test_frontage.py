"""What stands between the pages and whoever asks: HEAD, a path prefix of a proxy, bodies that do not come in."""

import asyncio
import gzip
import re

import pytest
from starlette.requests import HTTPConnection

from climassay.web import ServerSettings
from climassay.web.middleware import BodyLimit
from patience import until
from web_parts import application_over, csrf_of

PAGES = ("/", "/sign-in", "/results", "/checks", "/library", "/static/app.js", "/api/v1/checks", "/nothing")


@pytest.fixture
def place_settings():
    return {"public": "read"}


@pytest.mark.parametrize("path", PAGES)
def test_head_answers_what_get_answers_without_the_body(client_of, path):
    got, head = (client_of().request(method, path) for method in ("GET", "HEAD"))
    assert head.status_code == got.status_code
    assert head.headers["content-type"] == got.headers["content-type"]
    assert head.headers.get("content-security-policy")
    assert head.content == b""


def test_the_head_of_an_endless_stream_ends(client_of, place):
    place.jobs.register("ask", lambda place, payload, report: None, "other lane")
    job = place.jobs.submit("ask", "Work that nobody does", {})
    head = client_of().request("HEAD", f"/jobs/{job}/events")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"].startswith("text/event-stream")


def raw(client, path, **headers):
    """An answer as it comes over the wire: the headers and the body before it is unpacked."""
    with client.stream("GET", path, headers=headers) as answer:
        return answer, b"".join(answer.iter_raw())


@pytest.mark.parametrize("path", ["/", "/static/style.css", "/api/openapi.json", "/results"])
def test_what_is_long_is_compressed_for_those_who_take_it(client_of, path):
    plain, body = raw(client_of(), path, **{"accept-encoding": "identity"})
    packed, less = raw(client_of(), path, **{"accept-encoding": "gzip, br"})
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert "accept-encoding" in packed.headers["vary"].lower()
    assert int(packed.headers["content-length"]) == len(less) < 0.75 * len(body)
    tokens = re.compile(rb"[0-9a-f]{128}")
    assert tokens.sub(b"", gzip.decompress(less)) == tokens.sub(b"", body)


def test_short_answers_and_streams_are_left_as_they_are(client_of, place):
    answer, _ = raw(client_of(), "/api/v1/checks")
    assert "content-encoding" not in answer.headers
    place.jobs.register("ask", lambda place, payload, report: None, "corpus")
    job = place.jobs.submit("ask", "Work that is done", {})
    until(lambda: place.jobs.get(job).has_ended)
    answer, stream = raw(client_of(), f"/jobs/{job}/events")
    assert "content-encoding" not in answer.headers
    assert b"event: end" in stream


def test_the_token_of_forms_differs_in_every_answer_and_stays_good(client_of):
    client = client_of("annotator")
    first, second = csrf_of(client), csrf_of(client)
    assert first[:64] != second[:64]
    assert first[64:] != second[64:]
    for token in (first, second):
        assert client.post("/account/tokens", data={"csrf": token, "label": "figures"}).status_code == 200
    for wrong in (first[:64] + second[64:], first[:64], first + "00", "00" * 64, "é"):
        assert client.post("/account/tokens", data={"csrf": wrong, "label": "figures"}).status_code == 403


def test_head_changes_nothing(client_of, place):
    place.accounts.add("ada")
    assert client_of("annotator").request("HEAD", "/sign-out").status_code == 405
    assert client_of().request("HEAD", "/account").status_code == 303


@pytest.fixture
def below(place_on):
    place = place_on()
    place.settings = ServerSettings(address="http://127.0.0.1:8000/tools/climassay", public="read")
    with application_over(place) as client_of:
        yield client_of


@pytest.mark.parametrize("kept", ["", "/tools/climassay"], ids=["the proxy takes the prefix away", "or leaves it"])
def test_below_a_path_every_link_leads_below_it(below, kept):
    client, followed = below("admin"), set()
    for path in ("/", "/sign-in", "/results", "/checks", "/library", "/account"):
        answer = client.get(kept + path)
        if answer.status_code == 303:
            assert answer.headers["location"].startswith("/tools/climassay/"), path
            continue
        assert answer.status_code == 200, path
        links = re.findall(r'(?:href|action|src)="(/[^"]*)"', answer.text)
        assert links, path
        assert all(link.startswith("/tools/climassay/") for link in links), links
        assert 'data-root="/tools/climassay"' in answer.text, path
        followed |= {link.partition("#")[0] for link in re.findall(r'(?:href|src)="(/[^"]*)"', answer.text)}
    assert {link for link in followed if client.get(link).status_code >= 400} == set()


def test_below_a_path_one_is_sent_to_sign_in_and_back(below):
    asked = below().get("/account")
    assert asked.headers["location"] == "/tools/climassay/sign-in?next=%2Faccount"
    assert 'value="/account"' in below().get(asked.headers["location"]).text


def test_a_body_that_does_not_come_in_is_given_up(place, monkeypatch):
    """A byte now and then keeps nobody's place; what waits is refused, and the application is never asked."""
    monkeypatch.setattr("climassay.web.middleware.GRACE_SECONDS", 0.0)
    monkeypatch.setattr("climassay.web.middleware.MIN_BYTES_PER_SECOND", 10.0**9)
    asked, said = [], []

    async def app(*given):
        asked.append(given)

    async def receive():
        await asyncio.Event().wait()

    async def send(message):
        said.append(message.get("status"))

    scope = {"type": "http", "method": "POST", "path": "/check", "headers": [], "query_string": b""}
    asyncio.run(BodyLimit(app, place)(scope, receive, send))
    assert (asked, said[0]) == ([], 408)


@pytest.mark.parametrize(
    ("proxies", "peer", "seen"),
    [
        ("127.0.0.1", "127.0.0.1", "203.0.113.9"),
        ("127.0.0.1", "198.51.100.1", "198.51.100.1"),
        ("10.0.0.0/8,192.0.2.1", "10.1.2.3", "203.0.113.9"),
        ("10.0.0.0/8,192.0.2.1", "192.0.2.1", "203.0.113.9"),
        ("10.0.0.0/8,192.0.2.1", "127.0.0.1", "127.0.0.1"),
    ],
)
def test_only_a_proxy_that_was_named_says_where_visitors_come_from(proxies, peer, seen):
    from climassay.cli.serve import server_config
    from climassay.web.limits import visitor_address

    found = []

    async def app(scope, receive, send):
        found.append(visitor_address(HTTPConnection(scope)))

    config = server_config(app, ServerSettings(proxies=proxies))
    config.load()
    headers = [(b"x-forwarded-for", b"203.0.113.9")]
    scope = {"type": "http", "method": "GET", "path": "/", "headers": headers, "client": (peer, 1), "scheme": "http"}
    asyncio.run(config.loaded_app(scope, None, None))
    assert found == [seen]
