"""The browser of the tests: what it must notice, and that it leaves no trace in other tests."""

import asyncio

import pytest

from browser import Watch, inside, sideways

EVIL = """<!doctype html><h1>Page</h1><div style="width: 500px">wide</div>
<img src="http://elsewhere.invalid/pixel.png" alt="">
<script>console.error("a complaint"); setTimeout(() => { throw new Error("a mistake"); });</script>"""


@pytest.fixture
def context(chromium):
    browser, loop = chromium
    with inside(loop):
        context = browser.new_context()
        yield context
        context.close()


def test_what_goes_wrong_in_a_page_is_noticed(context):
    watch = Watch("127.0.0.1:1", expected=None)
    watch.over(context)
    page = context.new_page()
    with context.expect_event("weberror"):
        page.set_content(EVIL)
    found = " | ".join(watch.found)
    for complaint in (
        "console: a complaint",
        "thrown: ",
        "a mistake",
        "asked of another host: http://elsewhere.invalid",
    ):
        assert complaint in found


def test_expected_complaints_are_none(context):
    watch = Watch("127.0.0.1:1", expected="^a complaint$")
    watch.over(context)
    with context.expect_event("console"):
        context.new_page().set_content("<script>console.error('a complaint')</script>")
    assert watch.found == []


def test_a_page_that_is_too_wide_for_a_phone_is_measured(context):
    page = context.new_page()
    page.set_content('<meta name="viewport" content="width=device-width"><style>* { margin: 0 }</style>' + EVIL)
    assert sideways(page) == 140
    page.set_content("<p>narrow</p>")
    assert sideways(page) == 0


def test_the_event_loop_of_the_browser_is_no_other_tests_concern(chromium):
    async def answer():
        return 42

    _, loop = chromium
    with inside(loop):
        pass
    assert asyncio.run(answer()) == 42
