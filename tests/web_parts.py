"""The web application for tests, without a network: clients of people by role.

``place``            a place over a fresh workspace, on SQLite, or on PostgreSQL where $CLIMASSAY_TEST_DATABASE says so;
                     override ``place_settings`` for other settings
``client_of(role)``  a client in which the user of that name and role is signed in; None: nobody
``place_on(url)``    a place on another database
"""

import os
import re
import socket
import threading
from contextlib import ExitStack, contextmanager
from functools import cache

import pytest

DATABASE_VARIABLE = "CLIMASSAY_TEST_DATABASE"
ORIGIN = "http://127.0.0.1:8000"


@pytest.fixture(scope="session", autouse=True)
def quick_hashes():
    """Argon2 with its smallest parameters: no test tries to turn a hash back. Gives the hasher of the product."""
    from climassay.web import accounts

    ours = accounts.password_hasher
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accounts, "password_hasher", quick_hasher)
        yield ours


@cache
def quick_hasher():
    from argon2 import PasswordHasher

    return PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


@pytest.fixture
def place_settings():
    """Settings of ``place``; a module that needs others has a fixture of this name."""
    return {}


@pytest.fixture
def place_on(request, tmp_path, place_settings):
    """Makes places, all without a URL on one database; they are closed at the end."""
    from climassay.web import AppState, ServerSettings
    from climassay.workspace import Workspace

    made = []

    def make(database_url=None):
        if database_url is None and os.environ.get(DATABASE_VARIABLE) == "postgresql":
            database_url = request.getfixturevalue("postgres_url")
        place = AppState(Workspace.open(tmp_path / "workspace"), ServerSettings(**place_settings), database_url)
        made.append(place)
        return place

    yield make
    for place in made:
        place.close()


@pytest.fixture
def place(place_on):
    return place_on()


@pytest.fixture
def client_of(place):
    """Clients of one running application."""
    with application_over(place) as make:
        yield make


class application_over:
    """A running application over a place: ``with application_over(place) as client_of: ...``."""

    def __init__(self, place):
        self.place = place

    def __enter__(self):
        from starlette.testclient import TestClient

        from climassay.web import create_app

        self._client = TestClient(create_app(self.place), base_url=ORIGIN, follow_redirects=False)
        self._client.__enter__()
        return self.client_of

    def __exit__(self, *error):
        self._client.__exit__(*error)

    def client_of(self, role=None):
        """A client; the user is called as the role and made when first needed."""
        from starlette.testclient import TestClient

        from climassay.web.access import SESSION_COOKIE

        client = TestClient(self._client.app, base_url=ORIGIN, follow_redirects=False)
        client.portal = self._client.portal
        if role is not None:
            accounts = self.place.accounts
            if role not in [user.name for user in accounts.users()]:
                accounts.add(role, role)
            client.cookies.set(SESSION_COOKIE, accounts.begin_session(role, days=1))
        return client


_open = ExitStack()


@cache
def event_loop():
    """The event loop of clients that begin no application: alone, each would begin one for every request."""
    from anyio.from_thread import start_blocking_portal

    return _open.enter_context(start_blocking_portal())


def pytest_unconfigure():
    _open.close()


def csrf_of(client, path="/account"):
    """The token that a page shows to this client."""
    return re.search(r'<meta name="csrf" content="([0-9a-f]+)">', client.get(path).text).group(1)


def post(client, path, data=None, **more):
    """Send a form with the token of this client's pages."""
    return client.post(path, data={"csrf": csrf_of(client, "/"), **(data or {})}, **more)


HOSTILE_DRAFTS = {
    "script": "<script>alert(1)</script> (moderate confidence)",
    "attribute": '" onmouseover="alert(1)" (moderate confidence)',
    "controls": "a\x00b\x07c \u202e (moderate confidence) \ud83d",
    "brackets": "(" * 9000 + "moderate confidence" + ")" * 9000,
    "stars": "*" * 19_000,
    "bars": "_a" * 9_500,
    "links": "[" * 9_000 + "](" * 5_000,
    "entities": "&#0;" * 4_000,
    "tags": "(high confidence)" * 1_100,
    "comments": "<!-- climassay: ignore " * 800,
    "levels": "very high to " * 1_500,
    "ticks": "`" * 19_000,
    "words": "very " * 3_900,
    "dollars": "$a" * 9_900,
    "evidence": "limited evidence, " * 1_100,
}
"""Texts that somebody may paste to have them checked."""


@contextmanager
def serving(place):
    """A real server in a thread; yields its address."""
    import uvicorn

    from climassay.web import create_app

    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(create_app(place), ws="none", log_level="critical"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield listening.getsockname()
    finally:
        server.should_exit = True
        thread.join()
