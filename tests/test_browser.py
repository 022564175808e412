"""The browser of the tests: what it must notice, and that it leaves no trace in other tests."""

import asyncio
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from browser import Watch, arriving, barriers, inside, sideways

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


@pytest.mark.parametrize(
    ("body", "barrier"),
    [
        ('<p style="color: #ccc; background: #fff">pale</p>', "contrast"),
        ('<img src="data:image/gif;base64,R0lGODlhAQABAAAAACw=">', "alternative text"),
        ("<p>plain</p>", None),
    ],
)
def test_what_keeps_somebody_from_reading_a_page_is_found(context, body, barrier):
    page = context.new_page()
    page.set_content(f'<!doctype html><html lang="en"><title>Page</title><main><h1>Page</h1>{body}</main></html>')
    found = barriers(page)
    assert [one.partition(", 1 times: ")[0] for one in found] == (["wide, light", "phone, dark"] if barrier else [])
    assert all(barrier in one for one in found)


def test_the_event_loop_of_the_browser_is_no_other_tests_concern(chromium):
    async def answer():
        return 42

    _, loop = chromium
    with inside(loop):
        pass
    assert asyncio.run(answer()) == 42


@pytest.fixture
def slow_rows():
    """Address of a page whose link leads to a table that arrives in two parts; the rows are in the second."""

    class TwoParts(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            if self.path != "/table":
                self.wfile.write(b'<a href="/table">Table</a>')
                return
            self.wfile.write(b"<!doctype html><h1>Table</h1><table><tbody>" + b" " * 4096)
            self.wfile.flush()
            go.wait(1)
            self.wfile.write(b"<tr><td>1</td></tr><tr><td>2</td></tr></tbody></table>")

        def log_message(self, *_):
            pass

    go = threading.Event()
    with ThreadingHTTPServer(("127.0.0.1", 0), TwoParts) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        go.set()
        server.shutdown()


def test_whoever_arrives_sees_the_whole_page(context, slow_rows):
    page = context.new_page()
    page.goto(slow_rows)
    page.get_by_role("link", name="Table").click()
    page.wait_for_url("**/table", wait_until="commit")
    assert page.locator("tr").count() == 0, "the page is read at once: this test shows nothing"
    page.goto(slow_rows)
    with arriving(page):
        page.get_by_role("link", name="Table").click()
    assert page.locator("tr").count() == 2
