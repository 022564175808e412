"""The library in a real browser: a file is sent, its progress seen, its passage found, read and cited."""

import re
import threading
from urllib.parse import urlencode

from browser import arriving, sideways
from climassay.corpus import Collection, read
from library_parts import OCEAN, TellingEncoder, pdf_of, teach
from patience import reached

WARMING = (
    "The global ocean has taken up about nine tenths of the heat that greenhouse gases have added. "
    "It warms from the surface downwards, and the warming of the deep ocean goes on for centuries."
)
RISE = (
    "Sea level rises because warmer water needs more room and because glaciers and ice sheets lose mass. "
    "A glacier that ends in the ocean also loses ice where warm water melts its front from below."
)


class HeldEncoder(TellingEncoder):
    """Encodes passages when it is let go, so that a page can be looked at meanwhile."""

    def __init__(self):
        self.go = threading.Event()

    def encode(self, texts, *, role="passage", on_progress=None):
        if role == "passage":
            reached(self.go)
        return super().encode(texts, role=role, on_progress=on_progress)


def test_a_pdf_is_sent_followed_found_and_read(running_server, visit, tmp_path):
    encoder = HeldEncoder()
    teach(running_server.place, encoder)
    file = tmp_path / "sea level.pdf"
    file.write_bytes(pdf_of(WARMING, RISE, title="Sea Level"))
    page = visit("adjudicator")
    page.goto("/library")
    with arriving(page):
        page.get_by_role("link", name="Add documents").click()
    page.get_by_label("Files").set_input_files(file)
    page.get_by_label("Into a new collection, named").fill("seas")
    page.get_by_role("button", name="Add", exact=True).click()
    page.wait_for_url("**/library/uploads/*")
    page.locator("[data-job-state]", has_text="running").wait_for()
    page.locator("[data-job-message]", has_text="sea level.pdf").wait_for()
    encoder.go.set()
    page.get_by_text("added", exact=True).wait_for()
    assert page.get_by_role("link", name="Sea Level").is_visible()
    assert sideways(page) == 0
    with arriving(page):
        page.get_by_role("link", name="To the collection").click()
    page.get_by_label("Look for").fill("glaciers melting")
    with arriving(page):
        page.get_by_label("Look for").press("Enter")
    page.locator("mark", has_text="glaciers").first.wait_for()
    with arriving(page):
        page.locator(".library-hits a").first.click()
    page.wait_for_url(re.compile("/library/seas/passages/"))
    assert page.locator(".library-passage mark").count() > 1
    assert "sea level.pdf" in page.locator("#reference").text_content()
    assert sideways(page) == 0


def test_what_cannot_be_taken_is_told_on_the_spot(running_server, visit, tmp_path):
    teach(running_server.place)
    file = tmp_path / "wrong.pdf"
    file.write_bytes(b"This is not a PDF file.")
    page = visit("adjudicator", expected="400")
    page.goto("/library/upload")
    page.get_by_label("Files").set_input_files(file)
    page.get_by_label("Into a new collection, named").fill("seas")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("alert").get_by_text("wrong.pdf is not a PDF file by its content.").wait_for()
    assert page.url.endswith("/library/upload")
    assert page.get_by_role("button", name="Add", exact=True).is_enabled()


def test_from_a_passage_to_the_printed_page_with_the_words_marked(running_server, visit, tmp_path):
    file = tmp_path / "sea level.pdf"
    file.write_bytes(pdf_of(WARMING, RISE, OCEAN, title="Sea Level"))
    made = Collection.create(running_server.place.workspace, "seas", teach(running_server.place))
    made.add(read(file).documents)
    quoted = "glaciers and ice sheets lose mass"
    [passage] = [one for one in made.iterate_passages() if quoted in one.text]
    page = visit("adjudicator")
    page.goto(f"/library/seas/passages/{passage.id}?" + urlencode({"quote": quoted}))
    assert page.locator("#passage mark").all_inner_texts() == [quoted]
    with arriving(page):
        page.get_by_role("link", name="of the PDF").click()
    picture = page.get_by_role("img", name="Page 2 of Sea Level as it is printed, with the quoted words marked")
    picture.wait_for()
    assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") > 1000
    assert sideways(page) == 0
    around, marks = picture.bounding_box(), [one.bounding_box() for one in page.locator("rect").all()]
    assert marks
    for mark in marks:
        assert around["x"] <= mark["x"] <= mark["x"] + mark["width"] <= around["x"] + around["width"]
        assert around["y"] <= mark["y"] <= mark["y"] + mark["height"] <= around["y"] + around["height"] / 4
    assert "".join(page.locator("mark").all_inner_texts()).split() == quoted.split()
