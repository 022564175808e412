"""References of a text: found in every form, and looked up where that needs no guess."""

import io
import urllib.error
import urllib.request

import pytest

from climassay.corpus import StoredDocument
from climassay.grounding import references
from climassay.grounding.citations import read_citations
from climassay.grounding.references import (
    ReferenceChecker,
    ReferenceList,
    check_address,
    expand_links,
    remove_addresses,
)

BOOK = StoredDocument("a", "Principles of Physical Climate", "physical_climate.md", 3, 3, date="2026-11-21")
SPM = StoredDocument(
    "b",
    "Summary for Policymakers",
    "ar6-wg1.pdf",
    3,
    3,
    report="IPCC AR6 WG1",
    date="2021",
    pages=32,
    url="https://www.ipcc.ch/report/ar6/wg1/spm.pdf",
)


class Documents:
    def documents(self) -> list[StoredDocument]:
        return [BOOK, SPM]


def looked_up(text, *, passages=None, ask=None):
    listed = ReferenceList.split(text)
    checker = ReferenceChecker(Documents().documents(), passages or {}, listed.numbered, ask)
    sentences = read_citations(expand_links(listed.body), checker.valid_numbers)
    return {one.text: one for sentence in sentences for one in checker.check(sentence)}


@pytest.mark.parametrize(
    ("sentence", "text", "kind", "status"),
    [
        ("The sea rose (IPCC, 2021, p. 9).", "(IPCC, 2021, p. 9)", "work", "exists"),
        ("The sea rose (IPCC, 2021, p. 99).", "(IPCC, 2021, p. 99)", "work", "invented"),
        ("IPCC AR6 WG1, page 14, has the rate.", "IPCC AR6 WG1, page 14", "work", "exists"),
        ("IPCC AR6 WG 1 SPM on p. 41 has the rate.", "IPCC AR6 WG 1 SPM on p. 41", "work", "invented"),
        ("Henderson et al. (2019) found more.", "Henderson et al. (2019)", "work", "not checked"),
        ("Principles of Physical Climate says so.", "Principles of Physical Climate", "work", "exists"),
        ("See doi:10.1038/s41586-020-1234-5.", "doi:10.1038/s41586-020-1234-5", "doi", "not checked"),
        ("See https://doi.org/10.1002/(SICI)1097.", "https://doi.org/10.1002/(SICI)1097", "doi", "not checked"),
        ("See doi:10.12/short.", "doi:10.12/short", "doi", "malformed"),
        ("See https://doi.org/nature.", "https://doi.org/nature", "doi", "malformed"),
        ("See http://ipcc.ch/report/ar6/wg1/spm.pdf.", "http://ipcc.ch/report/ar6/wg1/spm.pdf", "url", "exists"),
        ("See (https://nature.com/a_(b)).", "https://nature.com/a_(b)", "url", "not checked"),
        ("See www.noaa.gov/sea.", "www.noaa.gov/sea", "url", "not checked"),
        ("See http:/broken now.", "http:/broken", "url", "malformed"),
        ("See https://climate data/x.", "https://climate", "url", "malformed"),
        ("See https://[broken/x.", "https://[broken/x", "url", "malformed"),
        ("See https://www.example.org/sea.", "https://www.example.org/sea", "url", "invented"),
    ],
)
def test_a_reference_is_found_and_looked_up(sentence, text, kind, status):
    found = looked_up(sentence)
    assert (found[text].kind, found[text].status) == (kind, status), found


def test_numbers_are_looked_up_in_the_texts_own_list():
    text = """The sea rose [1], and ever faster [2, 7]. Ice melts [3](https://nature.com/x).

## References
[1] The climassay authors. Principles of Physical Climate.
2. Smith, J. (2020). The sea. https://doi.org/none
- [3] An unknown work.
"""
    found = {name.split("]")[0]: one for name, one in looked_up(text).items() if one.kind == "number"}
    assert {name: one.status for name, one in found.items()} == {
        "[1": "exists",
        "[2": "malformed",
        "[7": "invented",
        "[3": "not checked",
    }
    assert found["[1"].document == BOOK.title
    assert "https://nature.com/x" in looked_up(text)


def test_numbers_without_a_list_are_not_checked_and_those_of_passages_exist():
    assert looked_up("The sea rose [4].")["[4]"].status == "not checked"
    found = looked_up("The sea rose [4]. It rose [5].", passages={4: "SPM, p. 3"})
    assert (found["[4]"].status, found["[5]"].status) == ("exists", "invented")


def test_a_text_without_a_list_keeps_all_its_lines():
    text = "Sources of methane are many.\n\n1. Wetlands lead.\n2. Cattle follow."
    assert ReferenceList.split(text).body == text
    assert ReferenceList.split(text + "\n\n**Sources:**\n- A book").unnumbered == ("A book",)
    assert ReferenceList.split(text + "\n[1] A book\n\n[2] Another").numbered == {1: "A book", 2: "Another"}


def test_addresses_are_asked_for_once_and_only_where_that_is_allowed():
    asked = []

    def ask(address: str) -> bool | None:
        asked.append(address)
        return {"https://doi.org/10.1038/gone": False, "https://nature.com/a": True}.get(address)

    text = "See doi:10.1038/gone, https://nature.com/a and https://nature.com/a, and https://down.org/x."
    found = looked_up(text, ask=ask)
    assert {one.text: one.status for one in found.values()} == {
        "doi:10.1038/gone": "invented",
        "https://nature.com/a": "exists",
        "https://down.org/x": "not checked",
    }
    assert asked == list(dict.fromkeys(asked))
    assert {one.status for one in looked_up(text).values()} == {"not checked"}


@pytest.mark.parametrize(
    ("code", "answers"), [(200, True), (302, True), (404, False), (410, False), (403, None), (500, None)]
)
def test_what_a_server_says_of_an_address(monkeypatch, code, answers):
    monkeypatch.setattr(references.socket, "getaddrinfo", lambda *_, **__: [(2, 1, 6, "", ("93.184.215.14", 443))])

    class Opener:
        def open(self, request, timeout):
            assert request.method == "HEAD"
            assert timeout
            if code != 200:
                raise urllib.error.HTTPError(request.full_url, code, "", {}, None)
            return io.BytesIO()

    monkeypatch.setattr(urllib.request, "build_opener", lambda *_: Opener())
    assert check_address("https://nature.com/x") is answers


@pytest.mark.parametrize("address", ["127.0.0.1", "10.1.2.3", "169.254.169.254", "::1"])
def test_addresses_of_ones_own_network_are_never_asked_for(monkeypatch, address):
    monkeypatch.setattr(references.socket, "getaddrinfo", lambda *_, **__: [(2, 1, 6, "", (address, 443))])
    monkeypatch.setattr(urllib.request, "build_opener", lambda *_: pytest.fail("asked"))
    assert check_address("https://inside.org/secret") is None


def test_a_text_without_its_addresses_says_the_same():
    text = "The sea rose ([SPM](https://ipcc.ch/x)), see https://nature.com/a (doi:10.1038/abc)."
    assert remove_addresses(text) == "The sea rose (SPM), see."


def test_a_checker_with_nothing_at_hand_invents_nothing():
    [sentence] = read_citations("The sea rose (IPCC, 2021).", ())
    assert [one.status for one in ReferenceChecker().check(sentence)] == ["not checked"]
