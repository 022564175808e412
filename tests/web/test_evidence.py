"""From a citation to the passage and to the printed page, for whom, with what marked; and documents under new names."""

import html
import re
from urllib.parse import urlencode

import pytest

from check_parts import ask, ended, furnish, scripted, write_settings
from climassay.corpus import Collection, read
from climassay.web.library.cache import collection_cache
from climassay.web.library.evidence import CitationLinks, nearest_sentence
from html_pages import Page
from library_parts import CLOUD, GLACIER, OCEAN, TellingEncoder, pdf_of, teach
from web_parts import post

QUOTED = "Its albedo drops when the ice is dark."


@pytest.fixture
def place_settings(tmp_path):
    return {"public": "read"}


@pytest.fixture
def printed(place, tmp_path):
    """Adds a PDF file to a collection; gives its document's id."""

    def add(collection="seas", *pages, title="Seas", name="seas.pdf", **how):
        file = tmp_path / name
        file.write_bytes(pdf_of(*(pages or (OCEAN, GLACIER, CLOUD)), title=title))
        made = Collection.create(place.workspace, collection, teach(place, TellingEncoder()))
        report = made.add(read(file).documents, **how)
        return (*report.added, *report.already_there)[0].id

    return add


def passage_of(place, document, collection="seas", words="albedo"):
    passages = Collection.open(place.workspace, collection).document_passages(document)
    return next(one for one in passages if words in one.text)


def marks_in(page):
    return [html.unescape(text) for text in re.findall(r"<mark>(.*?)</mark>", page.text, re.DOTALL)]


def rectangles_in(page):
    return re.findall(r'<rect x="(-?\d+)" y="(\d+)" width="(\d+)" height="(\d+)"', page.text)


def linked(page, words):
    """Address of the link of these words."""
    [address] = re.findall(rf'<a[^>]* href="([^"]*)">{words}</a>', page.text)
    return html.unescape(address)


def test_a_quotation_is_marked_in_its_passage_and_on_its_page(place, client_of, printed):
    document, reader = printed(), client_of(None)
    passage = passage_of(place, document)
    page = reader.get(f"/library/seas/passages/{passage.id}?" + urlencode({"quote": QUOTED}))
    assert marks_in(page) == [QUOTED.rstrip(".")]
    first, last = passage.first_page, passage.last_page or passage.first_page
    words = f"Page {first} of the PDF" if first == last else f"Pages {first} to {last} of the PDF"
    answer = reader.get(linked(page, words), follow_redirects=True)
    assert answer.status_code == 200
    assert answer.request.url.path == f"/library/seas/documents/{document}/pages/2"
    assert "Page 2 of the PDF" in answer.text
    assert " ".join("".join(marks_in(answer)).split()) == QUOTED.rstrip(".")
    assert rectangles_in(answer)
    assert OCEAN.split()[-1] not in answer.text.partition("Text of the page")[2]
    picture = reader.get(f"{answer.request.url.path}.png")
    assert f'<img src="{answer.request.url.path}.png"' in answer.text
    assert (picture.headers["content-type"], picture.content[:8]) == ("image/png", b"\x89PNG\r\n\x1a\n")
    assert re.search(r'<img [^>]*alt="Page 2 of Seas[^"]+marked', answer.text)


def test_words_that_the_passage_does_not_have_are_not_marked(place, client_of, printed):
    document, reader = printed(), client_of(None)
    passage = passage_of(place, document)
    for quote in ("Its albedo rises when the ice is dark.", "<script>alert(1)</script> is here"):
        query = urlencode({"passage": passage.id, "quote": quote})
        page = reader.get(f"/library/seas/documents/{document}/pages/2?{query}")
        assert page.status_code == 200
        assert not rectangles_in(page)
        assert "<script>alert" not in page.text


@pytest.mark.parametrize("number", ["0", "4", "999999999", "-1"])
def test_a_page_that_is_not_there_is_not_found(client_of, printed, number):
    document = printed()
    for ending in ("", ".png"):
        assert client_of(None).get(f"/library/seas/documents/{document}/pages/{number}{ending}").status_code == 404


def test_without_the_file_the_text_is_shown_and_one_sentence_says_why(place, client_of, printed):
    document = printed(keep_originals=False)
    passage, reader = passage_of(place, document), client_of(None)
    page = reader.get(f"/library/seas/passages/{passage.id}")
    assert "The PDF itself was not kept" in page.text
    assert "/pages/" not in page.text
    assert reader.get(f"/library/seas/documents/{document}/pages/1").status_code == 404
    printed()
    again = reader.get(f"/library/seas/passages/{passage.id}")
    assert "The PDF itself was not kept" not in again.text
    assert "/pages/" in again.text


def test_the_file_itself_is_for_people_with_an_account(client_of, printed, tmp_path):
    address = f"/library/seas/documents/{printed()}/original"
    assert client_of(None).get(address).status_code == 303
    answer = client_of("annotator").get(address)
    assert answer.content == (tmp_path / "seas.pdf").read_bytes()
    assert answer.headers["content-disposition"].startswith("attachment")
    assert "seas.pdf" in answer.headers["content-disposition"]


def test_a_document_is_renamed_by_whom_may_and_cited_so(place, client_of, printed):
    document = printed()
    address = f"/library/seas/documents/{document}"
    passage = passage_of(place, document)
    assert "Change title, author or date" not in client_of("annotator").get(address).text
    assert post(client_of("annotator"), f"{address}/edit", {"title": "Mine"}).status_code == 403
    editor = client_of("adjudicator")
    assert post(editor, f"{address}/edit", {"title": " What <the> Seas Do "}).headers["location"] == address
    assert "<h1>What &lt;the&gt; Seas Do</h1>" in editor.get(address).text
    shown = client_of(None).get(f"/library/seas/passages/{passage.id}").text
    assert "What &lt;the&gt; Seas Do (seas.pdf), " in shown
    assert post(editor, f"{address}/edit", {"title": " "}).status_code == 400
    assert post(editor, "/library/seas/documents/none/edit", {"title": "New"}).status_code == 404


def test_equal_titles_are_told_apart_wherever_they_stand(place, client_of, printed):
    first, second = printed(), printed("land", GLACIER, name="land.pdf")
    reader = client_of(None)
    found = reader.get("/library/search?q=albedo&mode=bm25").text
    for collection, document, name in (("seas", first, "seas.pdf"), ("land", second, "land.pdf")):
        shown = f"Seas ({name})"
        passage = passage_of(place, document, collection)
        assert f"<h1>{shown}</h1>" in reader.get(f"/library/{collection}/documents/{document}").text
        page = reader.get(f"/library/{collection}/passages/{passage.id}").text
        assert f"<h1>{shown}</h1>" in page
        assert f"{shown}, " in page  # the reference, which names the file once
        assert f"{shown} ({name})" not in page
        assert f">{shown}</a>" in found
    assert (
        post(client_of("adjudicator"), f"/library/land/documents/{second}/edit", {"title": "Land"}).status_code == 303
    )
    assert "<h1>Seas</h1>" in reader.get(f"/library/seas/documents/{first}").text


def test_a_check_of_before_shows_the_new_title_and_marks_what_was_quoted(place, client_of, tmp_path):
    place.settings = type(place.settings)(public="read", debates=(write_settings(tmp_path),))
    furnish(place, scripted())
    client = client_of("adjudicator")
    check = ask(client)
    ended(place, check)
    before = Page(client.get(f"/checks/{check}").text)
    assert "The book physical" in before.text
    renamed = post(client, "/library/physical/documents/physical-document/edit", {"title": "Physics of the Climate"})
    assert renamed.status_code == 303
    page = client.get(f"/checks/{check}")
    assert "Physics of the Climate" in page.text
    assert "The book physical" not in page.text
    links = {found["href"] for found in Page(page.text).every("a") if "/library/physical/passages/" in found["href"]}
    assert links
    assert {client.get(link).status_code for link in links} == {200}
    assert "Physics of the Climate" in client.get(f"/checks/{check}/page.html").text


def test_a_passage_whose_document_is_gone_is_linked_to_nothing(place, printed):
    document = printed()
    passage = passage_of(place, document)
    assert CitationLinks(collection_cache(place)).evidence("seas", passage).page
    Collection.open(place.workspace, "seas").remove(document)
    links = CitationLinks(collection_cache(place))
    assert links.evidence("seas", passage) is None
    assert links.evidence("nowhere", passage) is None


def test_the_sentence_that_an_answer_rests_on_is_the_nearest_in_words():
    text = f"{OCEAN} {GLACIER} {CLOUD}"
    assert nearest_sentence(text, "Glaciers lose mass when melting is faster than snowfall.") in GLACIER
    assert nearest_sentence(text, "Volcanoes on Mars are purple.") == ""
    assert nearest_sentence("", "Anything at all.") == ""
