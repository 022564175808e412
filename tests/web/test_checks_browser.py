"""A debate seen in a real browser: it arrives live, opens its passages, and ends in the verdict."""

import pytest

from browser import arriving, sideways
from check_parts import SUN, Gate, ended, furnish, scripted, write_settings
from climassay.factcheck.session_debates import open_session_checker
from climassay.web.jobs import WORKERS
from patience import job_at_its_end, reached, until


@pytest.fixture
def server_settings(tmp_path, monkeypatch):
    monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path / "cache"))
    return {"debates": (write_settings(tmp_path),), "publisher": "Example Observatory"}


def send(page, claim=SUN):
    page.goto("/check")
    page.get_by_label("The claim").fill(claim)
    with arriving(page):
        page.get_by_role("button", name="Check it").click()
    page.wait_for_url("**/checks/c*")
    return page.url.rpartition("/")[2]


def test_a_debate_arrives_live_and_ends_in_a_verdict_that_can_be_reviewed(running_server, visit):
    gate = Gate()
    furnish(running_server.place, scripted(gate))
    page = visit("annotator")
    check = send(page)
    try:
        # No reload until the end: what appears was brought by the stream.
        page.evaluate("window.same = true")
        page.get_by_role("heading", name="Round 1").wait_for()
        page.locator("#debate + div .view").nth(1).wait_for()
        page.get_by_text("The mediator is weighing").wait_for()
        progress = page.locator("[data-progress]")
        assert "Step 5 of at most 14: round 1 of at most 3" in progress.inner_text()
        assert progress.get_by_text("has given its view").count() == 2
        before = page.locator("[data-clock]").inner_text()
        page.wait_for_function("before => document.querySelector('[data-clock]').textContent !== before", arg=before)
        assert page.get_by_role("heading", name="Round 2").count() == 0
        page.locator(".cite").first.click()
        dialog = page.get_by_role("dialog", name="Passage")
        assert "The book" in dialog.inner_text()
        page.keyboard.press("Escape")
        assert not dialog.is_visible()
        assert page.evaluate("window.same") is True
        assert sideways(page) == 0
    finally:
        gate.open.set()
    page.locator(".result").first.wait_for()
    page.get_by_role("heading", name="How this was made").wait_for()
    assert page.locator(".result").inner_text() == "incorrect"
    assert ended(running_server.place, check).about.label == "incorrect"
    page.get_by_label("I agree").check()
    page.get_by_role("textbox", name="Comment").fill("The passages say so.")
    with arriving(page):
        page.get_by_role("button", name="Save the review").click()
    page.get_by_text("1 agrees, 0 disagree.").wait_for()
    assert sideways(page) == 0
    page.goto("/checks")
    assert sideways(page) == 0


def test_a_claim_that_is_too_long_is_said_and_not_cut(running_server, visit):
    furnish(running_server.place, scripted())
    page = visit("annotator")
    page.goto("/check")
    claim = page.get_by_label("The claim")
    claim.fill("𝔸" + "a" * 2004)
    assert page.get_by_text("Too long by 5 of 2,000 characters").is_visible()
    page.get_by_role("button", name="Check it").click()
    assert page.url.endswith("/check")
    claim.fill("𝔸" + "a" * 1999)
    assert page.get_by_text("Too long").count() == 0
    assert claim.evaluate("field => field.validity.valid")


def test_a_waiting_check_and_question_show_their_place_and_what_is_done_first(running_server, visit, monkeypatch):
    place = running_server.place
    loading, hanging = Gate(), Gate()
    furnish(place, scripted())

    def slow(*arguments):
        reached(loading.open)
        return open_session_checker(*arguments)

    monkeypatch.setattr("climassay.web.checks.debate.open_session_checker", slow)
    page = visit("annotator")
    try:
        check = send(page)
        # The first step shows itself before a model is loaded.
        page.get_by_text("loading models and collections").wait_for()
        page.get_by_text("reading the claim").wait_for()
    finally:
        loading.open.set()
    ended(place, check)
    page = visit("annotator")  # The first page may just be loading the result.
    place.jobs.register("check", lambda *_: reached(hanging.open), "checks")
    running = [place.jobs.submit("check", "x", {}, by=f"other{number}") for number in range(WORKERS["checks"])]
    until(lambda: all(place.jobs.get(job).state == "running" for job in running))
    try:
        send(page, "The oceans are cooling.")
        page.get_by_text("It is the next one").wait_for()
        send(page, "The oceans are warming.")
        page.get_by_text("1 other is before it").wait_for()
        # A question does not wait for the checks that hang.
        page.goto("/ask")
        page.get_by_label("The question").fill("How much has the brightness of the Sun changed?")
        with arriving(page):
            page.get_by_role("button", name="Ask").click()
        page.get_by_role("heading", name="Ask a follow-up question").wait_for()
    finally:
        hanging.open.set()
        for job in running:
            job_at_its_end(place.jobs, job)


def test_a_page_that_loses_its_server_says_so_and_goes_on(running_server, visit):
    gate = Gate()
    furnish(running_server.place, scripted(gate))
    page = visit("annotator", expected="503")

    def refuse(route):
        # What stands between the browser and the server answers in its place.
        if "/events" in route.request.url or route.request.method == "HEAD":
            route.fulfill(status=503)
        else:
            route.continue_()

    page.route("**/*", refuse)
    check = send(page)
    try:
        page.get_by_text("The server cannot be reached").wait_for()
        page.unroute("**/*")
        page.get_by_text("The mediator is weighing").wait_for()
        assert not page.get_by_text("The server cannot be reached").is_visible()
    finally:
        gate.open.set()
    page.get_by_role("heading", name="How this was made").wait_for()
    ended(running_server.place, check)


def test_on_a_phone_the_header_leaves_the_question_its_place_and_no_keys_are_offered(running_server, visit):
    furnish(running_server.place, scripted())
    page = visit("annotator", phone=True)
    page.goto("/check")
    assert page.locator("h1").bounding_box()["y"] < 844 / 5
    assert page.evaluate("matchMedia('(hover: none) and (pointer: coarse)').matches")
    page.evaluate("document.querySelector('form .primary').innerHTML = 'Check <kbd>V</kbd>'")
    assert not page.locator("kbd").is_visible()


def test_a_check_is_cited_by_a_button_and_printed_with_its_origin_and_its_marks(running_server, visit):
    furnish(running_server.place, scripted())
    page = visit("annotator")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    check = send(page)
    ended(running_server.place, check)
    page.goto(f"/checks/{check}")
    page.get_by_role("button", name="Copy", exact=True).click()
    page.get_by_role("button", name="Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("Example Observatory (")
    assert copied.endswith(f"/checks/{check}")
    page.emulate_media(media="print")
    assert page.locator(".byline").first.is_visible()
    assert not page.locator("header.top").is_visible()
    made = "document.body.appendChild(document.createElement('mark'))"
    assert page.evaluate(f"getComputedStyle({made}).printColorAdjust") == "exact"
