"""The annotation pages in a real browser."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest

from annotated_dataset import DATASET, draft, fill
from browser import arriving
from climassay.generation.annotation import Label
from climassay.generation.annotation.long_answers import rubric_drafts
from climassay.questions import Question
from climassay.questions.types.longform import read_rubric
from climassay.web.access import SESSION_COOKIE

HOME = f"/annotate/{DATASET}"


@pytest.fixture
def queue(running_server):
    """The annotations of the running server, over a dataset of six."""
    return fill(running_server.place)


def shown(page):
    """Id of the item on the page."""
    return page.locator("[data-annotate]").get_attribute("data-draft")


def follows(page, before):
    """Wait until another item is shown, and give its id."""
    page.wait_for_selector(f"[data-annotate]:not([data-draft='{before}'])")
    return shown(page)


def told(page, words):
    page.wait_for_function("words => document.querySelector('.annotate-news').textContent.includes(words)", arg=words)


def test_a_rubric_is_written_row_by_row_without_losing_what_was_typed(visit, running_server):
    asked = [Question(f"r{number}", "longform", f"Why {number}?", "Because.") for number in range(2)]
    queue = fill(running_server.place, [one.draft for one in rubric_drafts(asked)], dataset="rubrics")
    page = visit("annotator", expected="400")
    page.goto("/annotate/rubrics")
    page.evaluate("window.loadedOnce = true")
    first = shown(page)
    page.get_by_label("What a good answer says").fill("Names the v and the x: not typed as keys")
    page.get_by_label("Weight").fill("2")
    page.get_by_label("Your comment").fill("Is this for experts?")
    # Enter adds a row and goes on in it.
    page.keyboard.press("Tab")
    page.get_by_label("Weight").press("Enter")
    page.wait_for_function("() => document.activeElement.id === 'criterion-2'")
    page.keyboard.type("Says why")
    page.get_by_label("Level").nth(1).select_option("should")
    page.get_by_role("button", name="Move up criterion 2").click()
    page.wait_for_function("() => document.querySelector('#criterion-1').value === 'Says why'")
    assert page.evaluate("document.activeElement.id") == "criterion-1"
    assert page.get_by_label("Level").evaluate_all("all => all.map((one) => one.value)") == ["should", "must"]
    assert not queue.labels("rubrics")
    assert page.get_by_label("Your comment").input_value() == "Is this for experts?"
    page.locator("#criterion-2").press("Control+Enter")
    second = follows(page, first)
    told(page, "Saved. 1 of 2.")
    assert page.evaluate("window.loadedOnce")
    [label] = queue.labels("rubrics")
    assert [one.text for one in read_rubric(label.wording.answer)] == [
        "Says why",
        "Names the v and the x: not typed as keys",
    ]
    assert [one.weight for one in read_rubric(label.wording.answer)] == [1, 2]
    assert [one.text for one in queue.comments("rubrics", first)] == ["Is this for experts?"]
    # What is refused stays on the page; what was said before comes back.
    page.get_by_label("Source").fill("a source alone")
    page.get_by_label("Source").press("Control+Enter")
    told(page, "criterion 1 of the rubric has no text")
    assert shown(page) == second
    assert page.get_by_label("Source").input_value() == "a source alone"
    page.goto("/annotate/rubrics/history")
    with arriving(page):
        page.get_by_role("link", name="Change it").click()
    assert page.locator("#criterion-1").input_value() == "Says why"


def test_three_items_are_labelled_by_keys_alone_and_the_last_is_taken_back(visit, running_server):
    queue = fill(running_server.place, [draft(name) for name in ("q1", "q2", "q4")])
    page = visit("annotator")
    page.goto(HOME)
    page.evaluate("window.loadedOnce = true")
    first = shown(page)
    page.keyboard.press("v")
    second = follows(page, first)
    told(page, "Saved. 1 of 3.")
    assert page.evaluate("document.activeElement.id") == "question"
    for key in ("x", "2", "6", "Enter"):
        page.keyboard.press(key)
    third = follows(page, second)
    page.keyboard.press("5")
    page.keyboard.type("v and x and 1: not typed as keys")
    page.keyboard.press("Enter")
    follows(page, third)
    told(page, "Nothing is left")
    said = {label.draft: label for label in queue.labels(DATASET)}
    assert said[first].accepted
    assert said[first].seconds > 0
    assert said[second].reasons == ("wrong answer", "context reference")
    assert (said[third].reasons, said[third].remark) == (("other",), "v and x and 1: not typed as keys")
    page.keyboard.press("u")
    follows(page, "")
    assert shown(page) == third
    told(page, "Taken back. 2 of 3.")
    assert [label.draft for label in queue.labels(DATASET)] == [first, second]
    assert page.evaluate("window.loadedOnce"), "the page was loaded anew instead of swapped"


def test_the_term_of_a_statement_is_chosen_with_tab_and_space(visit, running_server):
    queue = fill(running_server.place, [draft("q3")])
    page = visit("annotator")
    page.goto(HOME)
    suggested = page.locator("[name=term]:checked")
    assert suggested.input_value() == "dust"
    suggested.focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.value") == "leading"
    assert suggested.input_value() == "dust"
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement.value") == "Mineral"
    page.keyboard.press("Space")
    page.keyboard.press("v")
    follows(page, "q3")
    assert [label.wording.answer for label in queue.labels(DATASET)] == ["Mineral"]


def test_keys_do_nothing_with_a_modifier_or_when_they_are_switched_off(visit, queue):
    page = visit("annotator")
    page.goto(HOME)
    first = shown(page)
    page.keyboard.press("Alt+v")
    page.keyboard.press("?")
    page.get_by_label("One-key shortcuts are on").uncheck()
    page.keyboard.press("v")
    page.get_by_role("button", name="Close").click()
    page.keyboard.press("v")
    page.reload()
    page.keyboard.press("v")
    assert shown(page) == first
    assert queue.labels(DATASET) == []


def test_a_label_outlives_a_lost_connection(visit, queue):
    page = visit("annotator", expected="ERR_INTERNET_DISCONNECTED")
    page.goto(HOME)
    first = shown(page)
    page.context.set_offline(True)
    page.keyboard.press("v")
    told(page, "What you said is kept")
    page.keyboard.press("v")
    assert queue.labels(DATASET) == []
    page.context.set_offline(False)
    follows(page, first)
    assert [label.draft for label in queue.labels(DATASET)] == [first]


def test_a_label_whose_answer_was_lost_is_stored_once(visit, queue):
    page = visit("annotator", expected="ERR_FAILED")
    page.goto(HOME)
    first = shown(page)
    lost = []

    def lose_the_first_answer(route):
        if route.request.method == "POST" and not lost:
            lost.append(route.fetch(max_redirects=0).status)
            route.abort()
        else:
            route.continue_()

    page.route(re.compile(f"{HOME}/q"), lose_the_first_answer)
    page.keyboard.press("v")
    follows(page, first)
    assert lost == [303]
    assert [label.draft for label in queue.labels(DATASET, current=False)] == [first]


def signed_in_again(page, running_server):
    """Give the browser a new session, as signing in does."""
    del running_server.sessions["annotator"]
    cookie = {"name": SESSION_COOKIE, "value": running_server.session("annotator"), "url": running_server.url}
    page.context.add_cookies([cookie])


@pytest.mark.parametrize("is_cookie_gone", [False, True], ids=["ended on the server", "ended in the browser"])
def test_when_the_session_has_ended_signing_in_is_offered_and_the_label_is_kept(
    visit, queue, running_server, is_cookie_gone
):
    page = visit("annotator", expected="403")
    page.goto(HOME)
    first = shown(page)
    page.get_by_label("Your comment").fill("Seen at sea.")
    running_server.place.accounts.end_session(running_server.session("annotator"))
    if is_cookie_gone:
        page.context.clear_cookies()
    page.locator("#question").focus()
    page.keyboard.press("v")
    told(page, "Your session has ended. What you said is kept")
    assert shown(page) == first
    assert queue.labels(DATASET) == []
    with arriving(page):
        page.get_by_role("link", name="Sign in").last.click()
    assert urlsplit(page.url).path == "/sign-in"
    assert parse_qs(urlsplit(page.url).query) == {"next": [HOME]}
    signed_in_again(page, running_server)
    page.goto(HOME)
    follows(page, first)
    assert [label.draft for label in queue.labels(DATASET)] == [first]
    assert [comment.text for comment in queue.comments(DATASET, first)] == ["Seen at sea."]


def test_a_label_is_taken_after_signing_in_in_another_window(visit, queue, running_server):
    page = visit("annotator", expected="403")
    page.goto(HOME)
    first = shown(page)
    signed_in_again(page, running_server)
    page.keyboard.press("v")
    follows(page, first)
    assert [label.draft for label in queue.labels(DATASET)] == [first]


def test_valid_stores_an_edit_whose_panel_was_closed(visit, running_server):
    queue = fill(running_server.place, [draft("q1")])
    page = visit("annotator")
    page.goto(HOME)
    note = page.get_by_text("Valid saves your changed wording.")
    assert not note.is_visible()
    page.keyboard.press("e")
    page.get_by_label("Question", exact=True).fill("Where do pure droplets freeze?")
    page.keyboard.press("Escape")
    assert note.is_visible()
    page.keyboard.press("v")
    follows(page, "q1")
    told(page, "Saved with your wording.")
    assert [label.wording.question for label in queue.labels(DATASET)] == ["Where do pure droplets freeze?"]
    page.keyboard.press("u")
    follows(page, "")
    assert not page.get_by_text("What you had not sent is back.").is_visible()


def test_what_was_not_sent_outlives_a_reload_and_a_link_until_it_is_discarded(visit, running_server):
    queue = fill(running_server.place, [draft("q1")])
    page = visit("annotator")
    page.goto(HOME)
    original = page.get_by_label("Question", exact=True).input_value()
    page.keyboard.press("e")
    page.get_by_label("Question", exact=True).fill("Where?")
    page.get_by_label("Right is option d").check()
    page.get_by_label("Your comment").fill("A thought.")
    for leave in (page.reload, lambda: page.goto("/library")):
        leave()
        page.goto(HOME)
        told(page, "What you had not sent is back.")
        assert page.get_by_label("Question", exact=True).input_value() == "Where?"
        assert page.get_by_label("Right is option d").is_checked()
        assert page.get_by_label("Your comment").input_value() == "A thought."
    page.get_by_role("button", name="Discard the change").click()
    page.reload()
    assert page.get_by_label("Question", exact=True).input_value() == original
    assert page.get_by_label("Your comment").input_value() == "A thought."
    page.get_by_role("button", name="Add comment").click()
    told(page, "Comment added.")
    page.reload()
    assert page.get_by_label("Your comment").input_value() == ""
    assert [comment.text for comment in queue.comments(DATASET, "q1")] == ["A thought."]
    assert queue.labels(DATASET) == []


def test_somebody_else_at_the_same_browser_does_not_see_what_was_not_sent(visit, running_server):
    fill(running_server.place, [draft("q1")], overlap=2)
    page = visit("annotator")
    page.goto(HOME)
    page.get_by_label("Your comment").fill("A thought.")
    cookie = {"name": SESSION_COOKIE, "value": running_server.session("adjudicator"), "url": running_server.url}
    page.context.add_cookies([cookie])
    page.goto(HOME)
    assert page.get_by_label("Your comment").input_value() == ""


def test_the_rows_of_a_rubric_outlive_a_reload(visit, running_server):
    asked = [Question("r0", "longform", "Why?", "Because.")]
    queue = fill(running_server.place, [one.draft for one in rubric_drafts(asked)], dataset="rubrics")
    page = visit("annotator")
    page.goto("/annotate/rubrics")
    page.get_by_label("What a good answer says").fill("Names the cause")
    page.get_by_role("button", name="Add a criterion").last.click()
    page.wait_for_selector("#criterion-2")
    page.locator("#criterion-2").fill("Gives the figure")
    page.get_by_label("Weight").nth(1).fill("3")
    page.reload()
    page.wait_for_selector("#criterion-2")
    rows = page.get_by_label("What a good answer says").evaluate_all("all => all.map((one) => one.value)")
    assert rows == ["Names the cause", "Gives the figure"]
    page.get_by_role("button", name="Remove criterion 1").click()
    page.wait_for_selector("#criterion-2", state="detached")
    page.reload()
    assert page.locator("#criterion-1").input_value() == "Gives the figure"
    page.locator("#criterion-1").press("Control+Enter")
    told(page, "Saved. 1 of 1.")
    [label] = queue.labels("rubrics")
    assert [(one.text, one.weight) for one in read_rubric(label.wording.answer)] == [("Gives the figure", 3)]


def test_an_adjudicator_s_draft_is_kept_until_the_decision_is_stored(visit, running_server):
    queue = fill(running_server.place, [draft("q1")], overlap=2)
    for number, accepted in enumerate((True, False)):
        reasons = () if accepted else ("wrong answer",)
        queue.label(DATASET, Label("q1", f"expert{number}", accepted, reasons, key=f"k{number}"))
    page = visit("adjudicator")
    page.goto(f"{HOME}/conflicts/q1")
    page.keyboard.press("e")
    page.get_by_label("Question", exact=True).fill("Where?")
    page.reload()
    assert page.get_by_label("Question", exact=True).input_value() == "Where?"
    with arriving(page):
        page.get_by_role("button", name="Accept with these words").click()
    assert [label.wording.question for label in queue.labels(DATASET) if label.adjudicates] == ["Where?"]
    page.goto(f"{HOME}/conflicts/q1")
    assert not page.get_by_text("Valid saves your changed wording.").is_visible()


def test_a_page_with_nothing_left_works_with_its_scripts(visit, running_server):
    queue = fill(running_server.place, [draft("q1")])
    page = visit("annotator")
    page.goto(HOME)
    page.keyboard.press("v")
    told(page, "Nothing is left")
    page.reload()
    page.keyboard.press("u")
    page.wait_for_selector("[data-annotate][data-draft='q1']")
    assert queue.labels(DATASET) == []
