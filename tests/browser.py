"""A real Chromium for tests, driven through Playwright, and a real server for it to visit.

``running_server``   the application on a free port, over an empty workspace
``visit(role)``      a page of a browser in which a user of that role is signed in (None: nobody)
``arriving(page)``   around what leads to another page: waits until that page is there with its scripts

Whatever a visited page logs as an error, throws, or asks of another host fails the test at its end.

``CLIMASSAY_SLOW_BROWSER=4`` leaves pages a quarter of the processor and brings them 0.2 s late and in pieces: a test
that looks at a page before it is there, which on a quick machine goes well nearly always, fails then.
"""

import asyncio
import os
import re
import shutil
import socket
import threading
from asyncio import events
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from urllib.parse import urlsplit

import pytest

from patience import PATIENCE, reached
from required_programs import missing

PROGRAMS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
SLOW_VARIABLE = "CLIMASSAY_SLOW_BROWSER"
PIECES = 4
"""Parts in which a page arrives where pages are slow."""
WIDE = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
NARROWEST = {"width": 360, "height": 740}


@contextmanager
def inside(loop):
    """Give this thread Playwright's event loop for a while.

    Playwright leaves its loop marked as running in the thread that uses it, and ``asyncio.run`` in any later test would
    refuse to work there.
    """
    events._set_running_loop(loop)
    try:
        yield
    finally:
        events._set_running_loop(None)


@contextmanager
def started_chromium():
    """A browser and its event loop."""
    if find_spec("playwright") is None:
        missing("browser", "playwright is not installed")
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        missing("browser", "chromium is not installed")
    from playwright.sync_api import sync_playwright

    arguments = ["--disable-dev-shm-usage", *(["--no-sandbox"] if os.getuid() == 0 else [])]
    driver = sync_playwright().start()
    loop = events._get_running_loop()
    with inside(loop):
        browser = driver.chromium.launch(executable_path=program, args=arguments)
    try:
        yield browser, loop
    finally:
        with inside(loop):
            browser.close()
            driver.stop()


@pytest.fixture(scope="session")
def chromium():
    """The browser and its event loop, started once a test process."""
    with started_chromium() as started:
        yield started


@dataclass
class RunningServer:
    """A server that answers; ``place`` is what it has open."""

    place: object
    url: str
    sessions: dict = field(default_factory=dict)

    def session(self, role: str) -> str:
        """Token of a session of the user who is called as their role."""
        if role not in self.sessions:
            accounts = self.place.accounts
            if role not in [user.name for user in accounts.users()]:
                accounts.add(role, role)
            self.sessions[role] = accounts.begin_session(role, days=1)
        return self.sessions[role]


@contextmanager
def serving(place, sock):
    """Serve a place on a bound socket, in a thread."""
    import uvicorn

    from climassay.web import create_app

    begun = threading.Event()

    class Server(uvicorn.Server):
        async def startup(self, sockets=None):
            await super().startup(sockets)
            begun.set()

    server = Server(uvicorn.Config(in_pieces(create_app(place)), log_level="warning", timeout_graceful_shutdown=5))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
    thread.start()
    reached(begun)
    try:
        yield RunningServer(place, place.settings.root)
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        place.close()


@pytest.fixture
def server_settings():
    """Settings of ``running_server`` beside its port; a module that needs others has a fixture of this name."""
    return {}


@contextmanager
def server_over(folder, **server_settings):
    """The application over the workspace in a folder, in a thread of this process, on a port of its own."""
    from climassay.web import AppState, ServerSettings
    from climassay.workspace import Workspace

    with socket.create_server(("127.0.0.1", 0)) as sock:
        settings = ServerSettings(port=sock.getsockname()[1], **server_settings)
        with serving(AppState(Workspace.open(folder), settings), sock) as server:
            yield server


@pytest.fixture
def running_server(tmp_path, server_settings):
    """The application over an empty workspace."""
    with server_over(tmp_path / "workspace", **server_settings) as server:
        yield server


@dataclass
class Watch:
    """What went wrong in the pages of one browser context."""

    host: str
    expected: str | None
    found: list = field(default_factory=list)

    def over(self, context) -> None:
        """Watch a context's pages."""
        context.on("console", self._heard)
        context.on("weberror", lambda error: self.found.append(f"thrown: {error.error}"))
        context.on("request", self._asked)

    def _heard(self, message) -> None:
        if message.type == "error" and not (self.expected and re.search(self.expected, message.text)):
            self.found.append(f"console: {message.text}")

    def _asked(self, request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob", "about") and parts.netloc != self.host:
            self.found.append(f"asked of another host: {request.url}")


@contextmanager
def visiting(chromium, server):
    """What the fixture ``visit`` gives, for any server."""
    browser, loop = chromium
    visits = []

    def open_page(role=None, *, phone=False, javascript=True, expected=None):
        context = browser.new_context(
            base_url=server.url,
            viewport=PHONE if phone else WIDE,
            has_touch=phone,
            java_script_enabled=javascript,
            reduced_motion="reduce",
            locale="en-GB",
            timezone_id="UTC",
        )
        context.set_default_timeout(PATIENCE * 1000)
        watch = Watch(urlsplit(server.url).netloc, expected)
        watch.over(context)
        visits.append((context, watch))
        if role is not None:
            from climassay.web.access import SESSION_COOKIE

            cookie = {"name": SESSION_COOKIE, "value": server.session(role), "url": server.url}
            context.add_cookies([{**cookie, "httpOnly": True, "sameSite": "Lax"}])
        page = context.new_page()
        slow_down(page)
        return page

    with inside(loop):
        yield open_page
        for context, _ in visits:
            context.close()
    assert [complaint for _, watch in visits for complaint in watch.found] == []


@pytest.fixture
def visit(chromium, running_server):
    """``visit(role)``: a page in a browser of its own, at the server's address.

    Further arguments: ``phone`` (its width, and touch), ``javascript`` (False: a browser without), ``expected`` (a
    regular expression: console errors that the test provokes on purpose).
    """
    with visiting(chromium, running_server) as open_page:
        yield open_page


def slowness() -> float:
    """How many times slower than it is the browser is to be."""
    return max(1.0, float(os.environ.get(SLOW_VARIABLE) or 1))


def in_pieces(app):
    """An application whose answers come late and whose pages arrive in pieces, as ``$CLIMASSAY_SLOW_BROWSER`` says."""

    async def slow(scope, receive, send):
        html = False

        async def send_slowly(message):
            nonlocal html
            if message["type"] == "http.response.start":
                await asyncio.sleep(0.05 * slowness())
                html = any(
                    key == b"content-type" and value.startswith(b"text/html") for key, value in message["headers"]
                )
            body = message.get("body", b"")
            if not html or not body:
                await send(message)
                return
            piece = -(-len(body) // PIECES)
            for start in range(0, len(body), piece):
                more = start + piece < len(body) or message.get("more_body", False)
                await send({**message, "body": body[start : start + piece], "more_body": more})
                await asyncio.sleep(0.05 * slowness())

        await app(scope, receive, send_slowly)

    return slow if slowness() > 1 else app


def slow_down(page) -> None:
    """Make a page as slow as ``$CLIMASSAY_SLOW_BROWSER`` says."""
    times = slowness()
    if times == 1:
        return
    session = page.context.new_cdp_session(page)
    session.send("Emulation.setCPUThrottlingRate", {"rate": times})


@contextmanager
def arriving(page):
    """Wait for the page to which something done within leads, until it is loaded."""
    with page.expect_navigation():
        yield


def sideways(page) -> int:
    """How many pixels a page is too wide for the narrowest phone (360 pixels); 0 where it fits."""
    before = page.viewport_size
    page.set_viewport_size(NARROWEST)
    wider = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    page.set_viewport_size(before)
    return int(wider)


def barriers(page) -> list[str]:
    """What axe-core finds on a page, in a wide light window and on a dark phone: empty where nothing is wrong."""
    from axe_playwright_python.sync_playwright import Axe

    before, found = page.viewport_size, []
    for look, size, scheme in (("wide, light", WIDE, "light"), ("phone, dark", PHONE, "dark")):
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=scheme)
        # Fading colours are none of the page's own.
        page.evaluate(
            "Promise.all(document.getAnimations().filter((one) => one.timeline === document.timeline)"
            ".map((one) => one.finished))"
        )
        for fault in Axe().run(page).response["violations"]:
            node = fault["nodes"][0]
            said = "; ".join(one["message"] for one in (*node["any"], *node["all"], *node["none"]))
            found.append(f"{look}, {len(fault['nodes'])} times: {fault['help']}. {said}: {node['html'][:200]}")
    page.set_viewport_size(before)
    page.emulate_media(color_scheme="light")
    return found
