"""The page on which a text is checked: findings at their places, the level of a statement, nothing kept."""

import html
import re

import pytest

from browser import arriving, sideways
from climassay.confidence.tagging.opened import MeasuredAccuracy, OpenedTagger
from climassay.errors import InputError, ModelError
from climassay.web.confidence import MAX_STATEMENT_LENGTH, MAX_TEXT_LENGTH, TAGGER_KEY
from web_parts import HOSTILE_DRAFTS, post

DRAFT = "Glaciers melt (moderate confidence).\n\nRain will very likely increase (low confidence)."


class FixedTagger:
    """Gives every statement the same probabilities, and remembers what it was asked."""

    levels = ("low", "medium", "high", "very high")

    def __init__(self):
        self.asked = []

    def predict_proba(self, items):
        self.asked += items
        return [[0.1, 0.2, 0.6, 0.1] for _ in items]


@pytest.fixture
def tagger(place):
    made = FixedTagger()
    accuracy = MeasuredAccuracy(0.47, 0.42, 0.52, 300, "held-out statements")
    place.shared(TAGGER_KEY, lambda: OpenedTagger(made, accuracy))
    return made


@pytest.fixture
def no_tagger(place):
    place.shared(TAGGER_KEY, lambda: "There is no tagger here.")


def test_a_text_shows_its_findings_at_their_places(client_of, no_tagger):
    page = post(client_of("annotator"), "/confidence", {"text": DRAFT}).text
    assert "2 findings in 11 words" in page
    assert "Paragraph 1, character 15" in page
    assert "Paragraph 2, character 11" in page
    assert "<mark>(moderate confidence)</mark>" in page
    assert "<mark>very likely" in page
    for number in range(2):
        assert f'href="#place-{number}"' in page
        assert f'id="place-{number}"' in page
        assert f'href="#finding-{number}"' in page
        assert f'id="finding-{number}"' in page


def test_a_text_without_an_assessment_gets_no_all_clear(client_of, no_tagger):
    page = post(client_of("annotator"), "/confidence", {"text": "Whisk the eggs. Bake the cake for an hour."}).text
    assert "nothing to check" in page
    assert "good-news" not in page


def test_the_shown_text_is_the_sent_text(client_of, no_tagger):
    sent = "A < bold claim & more (moderate confidence).\n\nSecond paragraph: 1 < 2."
    page = post(client_of("annotator"), "/confidence", {"text": sent}).text
    shown = re.search(r'<div class="card checked-text">(.*?)</div>', page, re.DOTALL).group(1)
    without_numbers = re.sub(r"<a class=\"place\".*?</a>", "", shown)
    assert html.unescape(re.sub(r"</?mark>", "", without_numbers)) == sent


def test_a_statement_gets_levels_with_the_measured_accuracy(client_of, tagger):
    sent = {"statement": "Glaciers  lose\nmass.", "context": "It is warm."}
    page = post(client_of("annotator"), "/confidence/statement", sent).text
    assert tagger.asked == [("Glaciers lose mass.", "It is warm.")]
    assert "<strong>high confidence</strong>" in page
    assert re.findall(r'<span class="number">(\d+)%', page) == ["10", "60", "20", "10"]
    assert "47% [42% to 52%] of 300 statements (held-out statements)" in page


def test_equal_shares_stand_beside_those_of_the_reports(client_of, place):
    accuracies = [MeasuredAccuracy(value, value - 0.02, value + 0.02, 300, "held-out") for value in (0.63, 0.46)]
    opened = OpenedTagger(FixedTagger(), *accuracies, (0.05, 0.3, 0.6, 0.05))
    place.shared(TAGGER_KEY, lambda: opened)
    page = post(client_of("annotator"), "/confidence/statement", {"statement": "Glaciers lose mass."}).text
    # By hand: 0.1 / 0.05, 0.2 / 0.3, 0.6 / 0.6 and 0.1 / 0.05 are 2, 0.67, 1 and 2 of 5.67.
    assert re.findall(r'<span class="number">(\d+)%', page) == ["10", "60", "20", "10", "35", "18", "12", "35"]
    assert "63% [61% to 65%]" in page
    assert "46% [44% to 48%]" in page


@pytest.mark.parametrize(("error", "status"), [(InputError, 400), (ModelError, 503)])
def test_what_a_tagger_cannot_do_is_said_on_the_page(client_of, tagger, monkeypatch, error, status):
    def fails(items):
        raise error("This cannot be tagged.")

    monkeypatch.setattr(tagger, "predict_proba", fails)
    answer = post(client_of("annotator"), "/confidence/statement", {"statement": "(high confidence)"})
    assert answer.status_code == status
    assert "This cannot be tagged." in answer.text


def test_without_a_tagger_the_page_says_why_and_texts_are_checked_all_the_same(client_of, no_tagger):
    client = client_of("annotator")
    assert "There is no tagger here." in client.get("/confidence").text
    answer = post(client, "/confidence/statement", {"statement": "Glaciers melt."})
    assert answer.status_code == 503
    assert "There is no tagger here." in answer.text
    assert post(client, "/confidence", {"text": DRAFT}).status_code == 200


@pytest.mark.parametrize("path", ["/confidence", "/confidence/statement"])
def test_empty_forms_are_refused_on_the_page(client_of, tagger, path):
    answer = post(client_of("annotator"), path, {"text": " \n", "statement": "..."})
    assert answer.status_code == 400
    assert 'role="alert"' in answer.text


def test_too_much_is_refused(client_of, tagger):
    client = client_of("annotator")
    assert post(client, "/confidence", {"text": "x" * (MAX_TEXT_LENGTH + 1)}).status_code == 413
    assert post(client, "/confidence", {"text": "x" * MAX_TEXT_LENGTH}).status_code == 200
    assert post(client, "/confidence/statement", {"statement": "x" * (MAX_STATEMENT_LENGTH + 1)}).status_code == 413
    assert tagger.asked == []


def test_line_ends_of_browsers_do_not_count_against_the_limit(client_of, no_tagger):
    lines = "\r\n".join(["x" * 99] * (MAX_TEXT_LENGTH // 100))
    assert post(client_of("annotator"), "/confidence", {"text": lines}).status_code == 200


QUICKLY_CHECKED = ("script", "attribute", "controls", "brackets", "comments")


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=() if one in QUICKLY_CHECKED else pytest.mark.faults) for one in HOSTILE_DRAFTS]
)
def test_hostile_texts_are_answered_and_stay_text(client_of, no_tagger, name):
    client = client_of("annotator")
    sent = HOSTILE_DRAFTS[name].encode("utf-8", "replace").decode()
    answer = post(client, "/confidence", {"text": sent})
    assert answer.status_code == 200
    body = answer.text.split("<main", 1)[1]
    for harm in ("<script", '" onmouseover="', "\x00", "\x07"):
        assert harm not in body


SUMMARY = """# Sea level (high confidence)

Global mean sea level will *very likely* rise by 0.5 m until 2100 (*low confidence*). There is moderate confidence
that ice sheets contribute more than before (strong evidence, high agreement).

- Coasts will flood more often than in the last century.
- It is *likely* (90–100%) that storms move north (low to high confidence).
"""


@pytest.mark.core
def test_a_draft_is_checked_and_a_statement_estimated(running_server, visit):
    accuracy = MeasuredAccuracy(0.47, 0.42, 0.52, 300, "held-out statements")
    running_server.place.shared(TAGGER_KEY, lambda: OpenedTagger(FixedTagger(), accuracy))
    page = visit("annotator")
    page.goto("/")
    with arriving(page):
        page.get_by_role("link", name="Check a text").first.click()
    with arriving(page):
        page.get_by_role("link", name="Confidence language").click()
    page.get_by_label("The draft").fill(SUMMARY)
    with arriving(page):
        page.get_by_role("button", name="Check the text").click()
    page.get_by_role("heading", name="5 findings").wait_for()
    assert page.locator("mark", has_text="moderate confidence").is_visible()
    page.get_by_role("link", name="Paragraph 1, character 92").click()
    assert page.locator(".place:target").inner_text() == "2"
    assert sideways(page) == 0
    page.get_by_label("How confident would an IPCC report sound about this statement?").fill("Glaciers lose mass.")
    with arriving(page):
        page.get_by_role("button", name="Estimate the level").click()
    result = page.get_by_text("An IPCC report would most probably say: high confidence.")
    result.wait_for()
    # The result is where the form was, without a search for it.
    assert 0 <= result.bounding_box()["y"] <= page.viewport_size["height"]
    assert page.get_by_text("47% [42% to 52%] of 300 statements").is_visible()
    assert sideways(page) == 0
