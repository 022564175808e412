"""The annotation pages in a real browser."""

import re

import pytest

from annotated_dataset import DATASET, draft, fill
from browser import arriving
from climassay.generation.annotation.long_answers import rubric_drafts
from climassay.questions import Question
from climassay.questions.types.longform.rubric import read_rubric

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


def test_a_label_that_was_on_its_way_when_the_session_ended_is_sent_after_signing_in(visit, queue, running_server):
    page = visit("annotator")
    page.goto(HOME)
    first = shown(page)
    running_server.place.accounts.end_session(running_server.session("annotator"))
    page.keyboard.press("v")
    page.wait_for_url("**/sign-in*")
    assert queue.labels(DATASET) == []
    del running_server.sessions["annotator"]
    from climassay.web.access import SESSION_COOKIE

    cookie = {"name": SESSION_COOKIE, "value": running_server.session("annotator"), "url": running_server.url}
    page.context.add_cookies([cookie])
    page.goto(HOME)
    follows(page, first)
    assert [label.draft for label in queue.labels(DATASET)] == [first]
