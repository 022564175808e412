"""A debate seen in a real browser: it arrives live, opens its passages, and ends in the verdict."""

import pytest

from browser import arriving, sideways
from check_parts import SUN, Gate, ended, furnish, scripted, write_settings


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
