"""Claims, passages and comments from people who mean harm stay text."""

import json

import pytest

from check_parts import add_collection, ask, ended, furnish, scripted, write_settings
from html_pages import Page
from web_parts import post

pytestmark = pytest.mark.faults

BREAKOUT = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'<!-- ${7*7} {{ 7*7 }} The Sun warms the Earth"
)
OVERRIDE = "\u202eThe Sun warms\u2066 the Earth\u202c."


@pytest.fixture
def place_settings(tmp_path, monkeypatch):
    monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path / "cache"))
    return {"debates": (write_settings(tmp_path),), "publisher": "Example </script> Observatory"}


def test_a_claim_cannot_end_the_data_of_its_claimreview(client_of, place):
    furnish(place, scripted())
    client = client_of("annotator")
    check = ask(client, BREAKOUT)
    ended(place, check)
    post(client_of("adjudicator"), f"/checks/{check}/review", {"opinion": "agree"})
    answer = client.get(f"/checks/{check}")
    [data] = [text for text in Page(answer.text).scripts if text.strip()]
    assert json.loads(data)["claimReviewed"] == BREAKOUT
    assert json.loads(data)["author"]["name"] == "Example </script> Observatory"
    assert "script-src 'self'" in answer.headers["content-security-policy"]


ADDRESSES = (
    "javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "https://ipcc.ch@example.org/",
    "//example.org",
    "\\example.org",
)


def test_only_plain_web_addresses_of_passages_become_links(client_of, place):
    furnish(place, scripted(plans={}), texts={})
    for name, addresses in (("physical", ADDRESSES[:3]), ("pamphlet", (*ADDRESSES[3:], "https://example.org/book"))):
        for number, address in enumerate(addresses):
            add_collection(place, name, f"The Sun has caused warming number {number}.", url=address, id=f"d{number}")
    client = client_of("annotator")
    check = ask(client)
    ended(place, check)
    for page in (f"/checks/{check}", f"/checks/{check}/debate"):
        seen = Page(client.get(page).text)
        foreign = {link["href"] for link in seen.every("a") if not link["href"].startswith(("/", "#"))}
        assert foreign - {f"{place.settings.root}/checks/{check}"} == {"https://example.org/book"}
        assert not any(link["href"].startswith("//") for link in seen.every("a"))
        assert seen.text.count("not made a link") == len(ADDRESSES)


def test_characters_that_turn_a_line_are_taken_out_of_claims_and_kept_inside_of_everything_else(client_of, place):
    furnish(place, scripted(), texts={"physical": (OVERRIDE,), "pamphlet": (OVERRIDE,)})
    client = client_of("annotator")
    check = ask(client, OVERRIDE + "\x00\x07")
    assert ended(place, check).about.claim.text == "The Sun warms the Earth."
    page = client.get(f"/checks/{check}").text
    title = page[page.index("<title>") : page.index("</title>")]
    assert not set(title) & set("\u202e\u2066\u202c")
    # A block whose direction is isolated ends what an override inside of it began.
    assert f"<blockquote>{OVERRIDE}</blockquote>" in page
    css = client.get("/static/checks.css").text
    assert "main blockquote" in css[: css.index("unicode-bidi: isolate; overflow-wrap")].rpartition("}")[2]
