"""The library as it is read: collections, search, passages, documents, files; for whom, and with hostile content."""

import csv
import io
import json
import re

import pytest

from climassay.corpus import Collection, RelevanceRule, list_collections, remove_collection
from climassay.corpus.collection_storage import CollectionStore
from climassay.models.encoders import CachedEncoder
from library_parts import CLOUD, GLACIER, OCEAN, TellingEncoder, add_book, teach
from web_routes import Site

MARKED = re.compile(r"<mark>(.*?)</mark>")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    made = Site(tmp_path_factory.mktemp("site"))
    yield made
    made.close()


@pytest.fixture
def place(site):
    """A place without collections."""
    yield site.place
    for summary in list_collections(site.place.workspace):
        remove_collection(site.place.workspace, summary.name)


@pytest.fixture(scope="module")
def reader(site):
    return site.visitor("annotator")


@pytest.fixture(scope="module")
def stocked(tmp_path_factory):
    """A site with a collection, for tests that only read."""
    site = Site(tmp_path_factory.mktemp("stocked"))
    add_book(site.place, "oceans")
    yield site
    site.close()


@pytest.fixture(scope="module")
def admin(stocked):
    return stocked.visitor("admin")


def hits(answer):
    """Titles and places of the hits of a page."""
    return re.findall(r'<h3><a href="/library/[^"]*/passages/([^"?]+)\?', answer.text)


def test_an_empty_library_says_how_to_begin(reader):
    assert "There are no collections yet" in reader.get("/library").text


def test_a_collection_lists_its_documents(place, reader):
    add_book(place, "oceans", licence="CC BY 4.0", url="https://example.org/seas", report="AR6 WG1")
    text = reader.get("/library/oceans").text
    for told in (
        "Seas",
        "Seas.pdf",
        "CC BY 4.0",
        'href="https://example.org/seas"',
        "AR6 WG1",
        '<td class="number">3</td>',
    ):
        assert told in text


def test_a_search_marks_the_words_it_found_in_all_their_forms(admin):
    answer = admin.get("/library/oceans", params={"q": "melting glaciers"})
    assert hits(answer)[0] == "seas-oceans-1"
    assert MARKED.findall(answer.text) == ["glacier", "melts"]
    assert "Part I › Section 2, p. 2" in answer.text


def test_search_across_all_collections_fuses_their_ranks(place, reader):
    one = add_book(place, "one", texts=(OCEAN, "The ocean is deep."))
    two = add_book(place, "two", texts=(OCEAN + " It is wide.",))
    answer = reader.get("/library/search", params={"q": "ocean heat and carbon", "all": "true"})
    assert set(hits(answer)[:2]) == {f"{one}-0", f"{two}-0"}
    assert hits(answer)[2] == f"{one}-1"
    for name in ("one", "two"):
        assert f'<a href="/library/{name}">{name}</a>' in answer.text


def test_a_collection_without_its_encoder_does_not_stop_the_others(place, reader, tmp_path):
    document = add_book(place, "there")

    class Gone(type(teach(place))):
        name, fingerprint = f"local:{tmp_path}/gone", "8" * 64

    Collection.create(place.workspace, "lost", Gone())
    answer = reader.get("/library/search", params={"q": "ocean"})
    assert hits(answer)[0] == f"{document}-0"
    assert "lost was not searched:" in answer.text


def test_more_is_shown_on_request_and_nothing_twice(place, reader):
    add_book(place, "many", texts=tuple(f"Ocean fact {number}." for number in range(23)))
    answer = reader.get("/library/many", params={"q": "ocean fact"})
    assert len(hits(answer)) == 10
    address = re.search(r'href="(/library/many\?[^"]*hits=20)"', answer.text).group(1).replace("&amp;", "&")
    assert hits(reader.get(address))[:10] == hits(answer)
    assert len(set(hits(reader.get(address)))) == 20


def test_what_is_not_relevant_is_hidden_until_asked_for(place, reader, monkeypatch):
    monkeypatch.setattr("climassay.corpus.collection.RELEVANCE", {"local:topics": RelevanceRule(0.4, 0.4)})
    add_book(place, "oceans", texts=(CLOUD,))
    answer = reader.get("/library/oceans", params={"q": "glacier cloudless"})
    assert hits(answer) != []
    answer = reader.get("/library/oceans", params={"q": "glacier"})
    assert hits(answer) == []
    address = re.search(r'href="(/library/oceans\?[^"]*all=true)"', answer.text).group(1).replace("&amp;", "&")
    assert len(hits(reader.get(address))) == 1


def test_a_passage_has_its_neighbours_its_citation_and_a_lasting_address(place, reader):
    document = add_book(place, "oceans", date="2021-08-09", report="AR6 WG1", title="Seas & Ice {100%}")
    text = reader.get(f"/library/oceans/passages/{document}-1").text
    assert OCEAN in text
    assert CLOUD in text
    assert "Seas &amp; Ice {100%} (Seas &amp; Ice {100%}.pdf), Chapter 2, Part I &gt; Section 2, p. 2" in text
    assert r"title = {Seas \&amp; Ice \{100\%\}}," in text
    assert "year = {2021}," in text
    assert "pages = {2}," in text
    assert f"{place.settings.root}/library/oceans/passages/" in text


def test_a_document_is_read_in_order_a_page_at_a_time(place, reader):
    facts = tuple(f"Fact number {number} about the sea." for number in range(45))
    document = add_book(place, "facts", texts=facts)
    shown = [
        re.findall(r"Fact number (\d+) ", reader.get(f"/library/facts/documents/{document}?page={part}").text)
        for part in (1, 2, 3)
    ]
    assert [int(number) for part in shown for number in part] == list(range(45))
    assert reader.get(f"/library/facts/documents/{document}?page=4").status_code == 404


def test_all_passages_can_be_had_as_files(place, reader):
    add_book(place, "oceans", licence="CC0")
    answer = reader.get("/library/oceans/passages.jsonl")
    rows = [json.loads(line) for line in answer.text.splitlines()]
    assert [row["text"] for row in rows] == [OCEAN, GLACIER, CLOUD]
    assert rows[0]["headings"] == ["Part I", "Section 1"]
    assert rows[0]["citation"].startswith("Seas (Seas.pdf)")
    assert answer.headers["content-disposition"] == 'attachment; filename="oceans-passages.jsonl"'
    table = list(csv.DictReader(io.StringIO(reader.get("/library/oceans/passages.csv").text)))
    assert [(row["text"], row["headings"], row["licence"]) for row in table] == [
        (row["text"], " > ".join(row["headings"]), "CC0") for row in rows
    ]
    assert reader.get("/library/oceans/passages.exe").status_code == 404


def test_what_was_found_can_be_had_as_files(admin):
    params = {"q": "glacier"}
    told = admin.get("/library/oceans/search.json", params=params).json()
    table = list(csv.DictReader(io.StringIO(admin.get("/library/search.csv", params=params).text)))
    assert (told["query"], told["mode"]) == ("glacier", "hybrid")
    assert told["hits"][0]["passage"] == table[0]["passage"] == "seas-oceans-1"
    assert table[0]["text"] == GLACIER


def test_a_spreadsheet_runs_nothing_that_a_passage_says(place, reader):
    texts = ("=HYPERLINK(1)", "@SUM(1)", "-2+3 ocean", "-0.5", "Harmless = yes")
    add_book(place, "oceans", texts=texts)
    rows = list(csv.DictReader(io.StringIO(reader.get("/library/oceans/passages.csv").text)))
    assert [row["text"] for row in rows] == ["'=HYPERLINK(1)", "'@SUM(1)", "'-2+3 ocean", "-0.5", "Harmless = yes"]
    exact = [json.loads(line)["text"] for line in reader.get("/library/oceans/passages.jsonl").text.splitlines()]
    assert exact == list(texts)


def test_additions_and_removals_of_others_are_seen(place, reader):
    document = add_book(place, "oceans", texts=(OCEAN,))
    assert hits(reader.get("/library/oceans?q=ocean")) == [f"{document}-0"]
    added = add_book(place, "oceans", title="New", texts=("The ocean is blue.",))
    assert set(hits(reader.get("/library/oceans?q=ocean"))) == {f"{document}-0", f"{added}-0"}
    assert "2 documents" in reader.get("/library/oceans").text
    remove_collection(place.workspace, "oceans")
    assert reader.get("/library/oceans").status_code == 404


def test_a_collection_that_others_made_anew_is_another_one(place, reader):
    """It has the version and the number of passages of the one before, whose vectors are in memory."""
    for title in ("Before", "After"):
        document = add_book(place, "oceans", title=title, texts=(f"The ocean {title}.",))
        answer = reader.get("/library/oceans", params={"q": "ocean", "mode": "dense"})
        assert hits(answer) == [f"{document}-0"]
        assert title in reader.get("/library/oceans").text
        remove_collection(place.workspace, "oceans")


@pytest.mark.parametrize(
    "path",
    [
        "/library/none",
        "/library/..%2f..%2fetc",
        "/library/oceans/passages/none",
        "/library/oceans/documents/none",
        "/library/oceans/passages/%00",
        "/library/uploads/none",
        "/library/oceans.lance",
    ],
)
def test_what_is_not_there_is_not_found(admin, path):
    answer = admin.get(path)
    assert answer.status_code == 404
    assert "Traceback" not in answer.text


@pytest.mark.parametrize(
    ("params", "sentence"),
    [({"q": "x" * 1001}, "longer than 1000 characters"), ({"q": "x", "mode": "magic"}, "There is no search mode")],
    ids=["long", "mode"],
)
def test_nonsense_is_a_sentence(admin, params, sentence):
    answer = admin.get("/library/oceans", params=params)
    assert answer.status_code == 400
    assert sentence in answer.text


def test_a_search_of_several_collections_encodes_its_words_once(place, reader):
    class Counting(TellingEncoder):
        queries = 0

        def encode(self, texts, *, role="passage", on_progress=None):
            self.queries += role == "query"
            return super().encode(texts, role=role, on_progress=on_progress)

    encoder = Counting()
    known = teach(place, CachedEncoder(encoder))
    for name in ("seas", "ice", "sky"):
        add_book(place, name)
    for _ in range(2):
        assert hits(reader.get("/library/search?q=a+glacier+that+melts"))
    assert (known.wrapped, encoder.queries) == (encoder, 1)


def test_collections_in_an_object_store_are_listed_and_read(tmp_path, monkeypatch):
    monkeypatch.setenv("CLIMASSAY_COLLECTIONS", f"file://{tmp_path / 'store'}")
    monkeypatch.setattr("climassay.web.library.cache.NAMES_CACHE_SECONDS", 0)
    site = Site(tmp_path / "site")
    try:
        reader = site.visitor("annotator")
        assert "There are no collections yet" in reader.get("/library").text
        add_book(site.place, "oceans")
        listed = reader.get("/library").text
        assert "/library/oceans" in listed
        assert "<dt>Passages</dt><dd>3</dd>" in listed
        assert "<dt>Size</dt>" not in listed
        assert "Seas.pdf" in reader.get("/library/oceans").text
        assert hits(reader.get("/library/oceans", params={"q": "glacier"}))
        assert reader.get("/library/nowhere").status_code == 404
        assert reader.get("/library/nowhere/search.csv").status_code == 404
        monkeypatch.setattr(CollectionStore, "names", lambda _store: 1 / 0)
        refused = reader.get("/library")
        assert refused.status_code == 400
        assert "their object store does not answer" in refused.text
    finally:
        site.close()
