"""Checking a text in a real browser: from the form to a finding in its place, and a statement's level."""

import pytest

from browser import arriving, sideways
from climassay.confidence.linting.checking import MeasuredAccuracy, OpenedTagger
from climassay.web.confidence import TAGGER

DRAFT = """# Sea level (high confidence)

Global mean sea level will *very likely* rise by 0.5 m until 2100 (*low confidence*). There is moderate confidence
that ice sheets contribute more than before (strong evidence, high agreement).

- Coasts will flood more often than in the last century.
- It is *likely* (90–100%) that storms move north (low to high confidence).
"""


class FixedTagger:
    """Gives every statement the same probabilities."""

    levels = ("low", "medium", "high", "very high")

    def predict_proba(self, items):
        return [[0.08, 0.24, 0.53, 0.15] for _ in items]


@pytest.mark.core
def test_a_draft_is_checked_and_a_statement_estimated(running_server, visit, shoot):
    accuracy = MeasuredAccuracy(0.47, 0.42, 0.52, 300, "held-out statements")
    running_server.place.shared(TAGGER, lambda: OpenedTagger(FixedTagger(), accuracy))
    page = visit("annotator")
    page.goto("/")
    with arriving(page):
        page.get_by_role("link", name="Confidence language").first.click()
    page.get_by_label("The draft").fill(DRAFT)
    with arriving(page):
        page.get_by_role("button", name="Check the text").click()
    page.get_by_role("heading", name="7 findings").wait_for()
    assert page.locator("mark", has_text="moderate confidence").is_visible()
    page.get_by_role("link", name="Line 3, column 96").click()
    assert page.locator(".place:target").inner_text() == "3"
    page.evaluate("scrollTo(0, 0)")
    shoot(page, "confidence-check", whole=True)
    assert sideways(page) == 0
    page.get_by_label("How confident would the IPCC sound about this statement?").fill("Glaciers lose mass.")
    with arriving(page):
        page.get_by_role("button", name="Estimate the level").click()
    page.get_by_text("The reports would most probably sound: high confidence.").wait_for()
    assert page.get_by_text("47% [42% to 52%] of 300 statements").is_visible()
    shoot(page, "confidence-statement", whole=True, dark=True)
    assert sideways(page) == 0
