"""Every page of the web application through axe-core, light and dark, wide and on a phone."""

import re
import threading
from types import SimpleNamespace

import pytest

from annotated_dataset import BRIGHTNESS, DATASET, FREEZING, fill
from browser import arriving, barriers, sideways
from check_parts import SUN, Gate, ended, furnish, scripted, write_settings
from climassay.corpus import Block, Collection, Document
from climassay.generation import Wording
from climassay.generation.annotation import Label
from climassay.generation.annotation.long_answers import rubric_drafts
from climassay.questions import Question
from library_parts import GLACIER, OCEAN, add_book, pdf_of, teach
from patience import PATIENCE, job_at_its_end
from scripted_model import ScriptedModel
from stored_runs import store_experiment, store_factchecks, store_mcq
from web_permissions import LISTED

PAGES = {
    "nobody": ("/", "/sign-in", "/enter/{token}", "/nothing"),
    "people": ("/", "/account", "/users"),
    "library": (
        "/library", "/library/search", "/library/search?q=glaciers", "/library/search?q=volcano",
        "/library/{collection}", "/library/{collection}?q=glaciers",
        "/library/{collection}/documents/{document_id}", "/library/upload",
    ),
    "checks": ("/check", "/checks", "/checks?words=nowhere", "/checks/{check}"),
    "confidence": ("/confidence",),
    "annotate": (
        "/annotate", "/annotate/{dataset}", "/annotate/{dataset}/questions", "/annotate/{dataset}/{draft}",
        "/annotate/{dataset}/guidelines", "/annotate/{dataset}/history", "/annotate/{dataset}/agreement",
        "/annotate/{dataset}/conflicts", "/annotate/{dataset}/conflicts/{draft}", "/annotate/{dataset}/settings",
        "/annotate/{dataset}/export",
    ),
    "results": (
        "/results", "/results/{run}", "/results/{run}?show=tables", "/results/{run}?show=figures",
        "/results/{run}/questions", "/results/{run}/requests?question=mcq-1",
        "/results/compare?runs={run}&runs={other}",
        "/results/{claims}", "/results/{claims}/claims", "/results/{claims}/claims/1", "/results/datasets",
        "/results/datasets/{name}", "/usage",
    ),
}  # fmt: skip
"""Addresses that are looked at as they are; other pages are where a form or a link of these leads."""
REACHED = {
    "/ask", "/ask/{question}", "/check-text", "/library/{collection}/documents/{document_id}/pages/{number}",
    "/library/{collection}/passages/{passage_id}", "/library/uploads/{job_id}", "/results/{run}/claims/{number}",
    "/results/{run}/claims", "/results/{run}/questions/{question:path}", "/results/compare",
}  # fmt: skip
"""Pages to which the tests below come by other ways than their address above."""
NO_PAGE = re.compile(r"/api/v1/.*|.*\.\w+|.*\.\{\w+\}|.*/(events|debate|original|results)|/api/openapi.json")
"""Files, streams, and pieces of pages."""


@pytest.fixture
def server_settings(tmp_path):
    return {"debates": (write_settings(tmp_path),), "publisher": "Example Observatory", "public": "read"}


@pytest.fixture
def look():
    """``look(page)``: nothing is wrong with the open page; ``look.all(page, area, ids)``: nor with those of an area."""
    found = []

    def one(page, what=""):
        # Every panel is opened: what is folded away has to be readable as well.
        page.evaluate("document.querySelectorAll('details').forEach((panel) => { panel.open = true; })")
        found.extend(f"{what or page.url}: {barrier}" for barrier in barriers(page))
        if wider := sideways(page):
            found.append(f"{what or page.url}: {wider} pixels too wide for a phone")

    def several(page, area, **ids):
        for pattern in PAGES[area]:
            address = re.sub(r"\{(\w+)\}", lambda match: str(ids[match[1]]), pattern)
            assert page.goto(address).status == (404 if address == "/nothing" else 200), address
            one(page, address)

    one.all = several
    yield one
    assert found == [], "\n".join(found)


def test_no_page_is_forgotten():
    looked_at = {address.partition("?")[0] for area in PAGES.values() for address in area} | REACHED
    pages = {name.removeprefix("GET ") for name in LISTED if name.startswith("GET ")}
    assert {one for one in pages if not NO_PAGE.fullmatch(one)} - {"/results/{run}/results"} <= looked_at


def test_pages_for_nobody_in_particular(visit, running_server, look):
    accounts = running_server.place.accounts
    accounts.add("newcomer")
    page = visit(expected="404|403")
    look.all(page, "nobody", token=accounts.make_link("newcomer", "invitation"))
    page.goto("/sign-in")
    page.get_by_label("Name").fill("newcomer")
    assert page.goto("/users").status == 200, "nobody is led to the form"
    look(page)
    refused = visit("annotator", expected="403")
    assert refused.goto("/users").status == 403
    look(refused)


def test_accounts_and_jobs(visit, running_server, look):
    place = running_server.place
    place.accounts.add("somebody.with-a-very-long-name", "annotator", "Somebody with a very long name")
    released = threading.Event()
    place.jobs.register("other", lambda app, payload, report: released.wait(PATIENCE) and None, "corpus")
    job = place.jobs.submit("other", "Count the droplets of all clouds", {}, by="admin")
    page = visit("admin")
    page.goto("/account")
    page.get_by_label("What the token is for").fill("nightly figures")
    with arriving(page):
        page.get_by_role("button", name="Create a token").click()
    look(page)
    look.all(page, "people")
    page.goto("/users")
    with arriving(page):
        page.get_by_role("button", name="Stop Count the droplets").click()
    released.set()
    assert job_at_its_end(place.jobs, job).state == "stopped"
    page.get_by_text("No job is running or waiting.").wait_for()


@pytest.mark.parametrize("role", [None, "admin"])
def test_every_entry_of_the_navigation_is_on_a_phone(visit, role):
    page = visit(role, phone=True)
    for width in (390, 320):
        page.set_viewport_size({"width": width, "height": 640})
        page.goto("/" if role is None else "/account")
        links = page.locator("header nav a, header nav button")
        assert links.count() == (4 if role is None else 9)
        for link in links.all():
            box = link.bounding_box()
            assert 0 <= box["x"] <= box["x"] + box["width"] <= width, link.inner_text()
        assert page.evaluate("document.documentElement.scrollWidth") == width


def test_the_library(visit, running_server, look, tmp_path):
    place = running_server.place
    teach(place)
    book = add_book(place, "oceans", url="https://example.org/", licence="CC0", report="Primer")
    add_book(place, "oceans", title="Ice", texts=(GLACIER, OCEAN))
    page = visit("admin")
    look.all(page, "library", collection="oceans", document_id=book)
    page.goto("/library/search?q=glaciers")
    with arriving(page):
        page.locator(".library-hits a").first.click()
    look(page)
    file = tmp_path / "note.pdf"
    file.write_bytes(pdf_of(OCEAN, title="Notes"))
    page.goto("/library/upload")
    page.get_by_label("Files").set_input_files(file)
    page.get_by_label("Or into a new one, named").fill("notes")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("link", name="To the collection").wait_for()
    look(page)
    [document] = Collection.open(place.workspace, "notes").documents()
    page.goto(f"/library/notes/documents/{document.id}/pages/1")
    look(page)


def test_checks(visit, running_server, look):
    gate = Gate()
    furnish(running_server.place, scripted(gate))
    page = visit("admin")
    page.goto("/check")
    page.get_by_label("The claim").fill(SUN)
    with arriving(page):
        page.get_by_role("button", name="Check it").click()
    check = page.url.rpartition("/")[2]
    try:
        page.locator("#debate + div .view").nth(1).wait_for()
        look(page, "a debate that goes on")
    finally:
        gate.open.set()
    page.get_by_role("heading", name="How this was made").wait_for()
    ended(running_server.place, check)
    look.all(page, "checks", check=check)
    page.locator(".cite").first.click()
    look(page, "a passage of a verdict")


def test_a_checked_text(visit, running_server, look):
    place = running_server.place
    made = Collection.create(place.workspace, "clouds", place.encoder())
    made.add([Document("clouds", "Clouds and Climate", "clouds.md", (Block(FREEZING), Block(BRIGHTNESS)))])
    stranger, page = visit(), visit("annotator")
    for one in (stranger, page):
        one.goto("/check-text")
        look(one)
    page.get_by_label("The text").fill(f"{BRIGHTNESS} Mozart wrote many operas for the court of Vienna.")
    with arriving(page):
        page.get_by_role("button", name="Check the text").click()
    look(page, "a checked text")


def test_questions(visit, running_server, look):
    answer = "The brightness of the Sun shows no trend since 1978 [1]. Volcanoes on Mars are purple."
    model = ScriptedModel(write=lambda _prompt, _schema: answer, parameters=135_000_000)
    furnish(running_server.place, SimpleNamespace(model=model))
    page = visit("annotator")
    page.goto("/ask")
    look(page)
    page.get_by_label("The question").fill("Has the brightness of the Sun caused the warming?")
    with arriving(page):
        page.get_by_role("button", name="Ask").click()
    page.get_by_role("heading", name="Answer").wait_for()
    look(page, "an answer")


def test_confidence(visit, running_server, look):
    page = visit("annotator")
    for one in (visit(), page):
        look.all(one, "confidence")
    page.get_by_label("The draft").fill("Sea level will *very likely* rise (low confidence, high agreement).")
    with arriving(page):
        page.get_by_role("button", name="Check the text").click()
    look(page, "findings")


def test_annotation(visit, running_server, look):
    queue = fill(running_server.place, overlap=2)
    for annotator, accepted in (("annotator", True), ("adjudicator", False)):
        for name in ("q1", "q2"):
            reasons = () if accepted else ("wrong answer",)
            queue.label(DATASET, Label(name, annotator, accepted=accepted, reasons=reasons, key=f"{annotator}-{name}"))
    queue.label(DATASET, Label("q5", "admin", accepted=True, key="admin-q5"))
    page = visit("admin")
    look.all(page, "annotate", dataset=DATASET, draft="q1")
    page.goto(f"/annotate/{DATASET}/q3")
    look(page, "a statement")


def test_rubrics(visit, running_server, look):
    asked = Question(
        "q", "longform", "Why do droplets freeze?", "Near -38 C. " * 40, context=FREEZING, document="Clouds"
    )
    [item] = [one.draft for one in rubric_drafts([asked])]
    queue = fill(running_server.place, [item], dataset="rubrics", overlap=2)
    for annotator in ("annotator", "adjudicator"):
        rubric = Wording(
            "", f"[must] Names {annotator} (weight 2)\n- [should] Says why, {'x' * 90}", item.wording.options
        )
        queue.label("rubrics", Label(item.id, annotator, accepted=True, wording=rubric, key=annotator))
    page = visit("admin")
    look.all(page, "annotate", dataset="rubrics", draft=item.id)
    page.goto(f"/annotate/rubrics/conflicts/{item.id}")
    page.get_by_role("checkbox").first.check()
    with arriving(page):
        page.get_by_role("button", name="Take over what is ticked").click()
    look(page, "criteria that were taken over")


def test_results(visit, running_server, look):
    records = running_server.place.records
    fill(running_server.place)
    run = store_experiment(records, asked=("What about mcq?\n" * 400,))
    ids = {"run": run, "claims": store_factchecks(records), "name": DATASET, "other": store_experiment(records)}
    store_mcq(records)
    page = visit("annotator")
    look.all(page, "results", **ids)
    page.goto(f"/results/{run}/questions")
    with arriving(page):
        page.locator("table.grid th a").first.click()
    look(page, "a question")
