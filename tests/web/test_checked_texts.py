"""The page on which a text is checked against collections: every sentence marked, for whom, and hostile texts."""

import html
import re

import pytest

from climassay.corpus import Block, Collection, Document, read, remove_collection
from climassay.web.checks.pages import MAX_TEXT_LENGTH
from library_parts import pdf_of
from web_parts import HOSTILE_DRAFTS
from web_routes import Site

SEA = "Global mean sea level rose by about 0.20 m from 1901 to 2018. Thermal expansion is likely to go on."
ICE = "Arctic sea ice in September has decreased by some 40 per cent since 1979, while deserts expanded."
TEXT = (
    "From 1901 to 2018 the global mean sea level rose by about 0.20 m. "
    "Antarctic sea ice in September has decreased by 40 per cent since 1979. "
    "Mozart wrote many operas for the court of Vienna. How much has the sea risen?\r\n\r\n"
    "From 1901 to 2018 the global mean sea level rose by about 0.90 m. "
    "Thermal expansion is certain to go on. Deserts expanded (doi:10.1/x)."
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    made = Site(tmp_path_factory.mktemp("site"), public="read")
    for name, text in (("seas", SEA), ("ice", ICE)):
        collection = Collection.create(made.place.workspace, name, made.place.encoder())
        collection.add([Document(f"doc-{name}", f"On <b>{name}</b>", f"{name}.md", (Block(text),))])
    yield made
    made.close()


@pytest.fixture(scope="module")
def reader(site):
    return site.visitor("annotator")


def checked(client, text=TEXT, collections=("seas", "ice"), path="/check-text"):
    return client.post(path, data={"text": text, "collection": list(collections)})


def findings(answer):
    """The list of sentences, each as its markup."""
    [listed] = re.findall(r'<ol class="findings">(.*?)</ol>', answer.text, re.DOTALL)
    return re.findall(r'<li id="s\d+">(.*?)</li>', listed, re.DOTALL)


@pytest.fixture(scope="module")
def answer(reader):
    return checked(reader)


def test_every_sentence_has_a_word_a_colour_and_its_place_in_the_text(answer):
    assert answer.status_code == 200
    found = findings(answer)
    statuses = [re.search(r'<span class="status ([a-z-]+)">([a-z ]+)</span>', one).groups() for one in found]
    assert [colour.replace("-", " ") for colour, _ in statuses] == [word for _, word in statuses]
    assert [word for _, word in statuses[:5]] == ["similar", "similar", "unsupported", "no claim", "contradicted"]
    for number in range(1, len(found) + 1):
        assert (
            f'<a href="#s{number}" class="{statuses[number - 1][0]}" title="{statuses[number - 1][1]}">' in answer.text
        )


def test_differing_regions_quantities_overstated_words_and_references_are_told(answer):
    _, region, _, _, quantity, surer, reference = findings(answer)
    assert "Antarctic" in re.search(r'class="problem">([^<]*)', region).group(1).title()
    assert "0.90 m" in re.search(r'class="problem">([^<]*)', quantity).group(1)
    assert "likely" in re.search(r'class="problem">([^<]*)', surer).group(1)
    assert re.search(r'class="(?:problem|note)">[^<]*10\.1/x[^<]*', reference)


def test_each_passage_is_quoted_and_linked_in_its_own_collection(reader, answer):
    for one, name, words in zip(findings(answer)[:2], ("seas", "ice"), ("0.20 m", "Arctic"), strict=True):
        assert words in re.search(r"<blockquote>(.*?)</blockquote>", one).group(1)
        link, citation = re.search(r'<a href="(/library/[^"]+)">([^<]+)</a>', one).groups()
        assert link.startswith(f"/library/{name}/passages/")
        assert f"On &lt;b&gt;{name}&lt;/b&gt;" in citation
        assert reader.get(link).status_code == 200


def test_evidence_of_a_pdf_opens_its_page_with_the_words_marked(site, reader, tmp_path):
    file = tmp_path / "glaciers.pdf"
    file.write_bytes(pdf_of("Heat waves are hotter than they were.", SEA, title="Seas"))
    collection = Collection.create(site.place.workspace, "printed", site.place.encoder())
    collection.add(read(file).documents)
    try:
        [shown] = findings(checked(reader, SEA.partition(". Thermal")[0] + ".", ("printed",)))
        links = dict(re.findall(r'<a href="(/library/[^"]+)">([^<]+)</a>', shown))
        [printed] = [html.unescape(link) for link, words in links.items() if "of the PDF" in words]
        page = reader.get(printed, follow_redirects=True)
        assert page.request.url.path.endswith("/pages/2")
        assert "0.20 m" in "".join(re.findall(r"<mark>(.*?)</mark>", page.text, re.DOTALL))
        [passage] = [html.unescape(link) for link, words in links.items() if "of the PDF" not in words]
        assert "0.20 m" in "".join(re.findall(r"<mark>(.*?)</mark>", reader.get(passage).text, re.DOTALL))
    finally:
        remove_collection(site.place.workspace, "printed")


def test_the_report_is_one_file_with_the_same_sentences(reader, answer):
    report = checked(reader, path="/check-text/report")
    assert report.headers["content-disposition"] == 'attachment; filename="checked-text.html"'
    assert "/library/" not in report.text
    told = [re.sub(r"</?a[^>]*>", "", one) for one in findings(answer)]
    assert findings(report) == told


@pytest.mark.parametrize(
    ("text", "collections", "status", "words"),
    [
        (" \n", ["seas"], 400, "Paste a text to check."),
        (TEXT, [], 400, "Choose at least one collection"),
        (TEXT, ["<script>"], 404, "There is no collection"),
        (TEXT, ["../seas"], 404, "There is no collection"),
        ("x" * (MAX_TEXT_LENGTH + 1), ["seas"], 413, "the limit is 10,000: send it in parts."),
    ],
    ids=["empty", "no collection", "a script", "a folder", "too long"],
)
@pytest.mark.parametrize("path", ["/check-text", "/check-text/report"])
def test_what_cannot_be_checked_is_told_in_one_sentence(reader, text, collections, status, words, path):
    answer = checked(reader, text, collections, path)
    assert answer.status_code == status
    told = html.unescape(answer.text.split("<main", 1)[1])
    assert words in told
    assert "<script" not in answer.text.split("<main", 1)[1]


@pytest.mark.faults
@pytest.mark.parametrize("name", HOSTILE_DRAFTS)
def test_hostile_texts_are_answered_and_stay_text(reader, name):
    harmful = ' {{ 7777 * 7777 }} <script>x</script> 5 m of "seas".'
    sent = HOSTILE_DRAFTS[name].encode("utf-8", "replace").decode()[: MAX_TEXT_LENGTH - len(harmful)] + harmful
    for path in ("/check-text", "/check-text/report"):
        answer = checked(reader, sent, path=path)
        assert answer.status_code == 200
        body = answer.text.split("<main", 1)[1]
        for harm in ("<script", '" onmouseover="', "\x00", "\x07", "60481729"):
            assert harm not in body


def test_texts_share_an_open_collection_and_see_what_is_added_or_made_anew(site, reader):
    place = site.place

    def create(text):
        collection = Collection.create(place.workspace, "shared", place.encoder())
        collection.add([Document("d", "On the sea", "sea.md", (Block(text),))])
        return collection

    def is_found(text):
        return 'class="status similar"' in findings(checked(reader, text, ["shared"]))[0]

    collection = create(SEA)
    try:
        [opened] = place.collections("shared").collections
        assert is_found(SEA)
        assert place.collections(["seas", "shared"]).collections[1] is opened
        collection.add([Document("e", "On the ice", "ice.md", (Block(ICE),))])
        assert is_found(ICE)
        remove_collection(place.workspace, "shared")
        create(ICE)
        assert not is_found(SEA)
    finally:
        remove_collection(place.workspace, "shared")
