"""Every route of the web application, and visitors who ask for it: what tests of attacks share."""

import re
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

from selectolax.lexbor import LexborHTMLParser
from starlette.testclient import TestClient

from climassay.web import AppState, ServerSettings, create_app
from climassay.web.access import SAFE_METHODS, SESSION_COOKIE, VISITOR_COOKIE, Guard
from climassay.workspace import Workspace
from web_parts import ORIGIN, event_loop

ROLES = ("annotator", "adjudicator", "admin")
PARAMETER = re.compile(r"\{[^}]*\}")
CSRF = re.compile(r'<meta name="csrf" content="([0-9a-f]+)">')


@dataclass(frozen=True, order=True)
class Route:
    """One method of one path."""

    path: str
    method: str

    def __str__(self):
        return f"{self.method} {self.path}"

    @property
    def address(self) -> str:
        """The path with its parameters filled in; what they name is not there."""
        return PARAMETER.sub("1", self.path)

    @property
    def unsafe(self) -> bool:
        """Whether it may change something."""
        return self.method not in SAFE_METHODS


def routes_of(app) -> list[Route]:
    """All routes of an application, mounted folders of files apart; sorted."""
    from fastapi.routing import iter_route_contexts

    return sorted(
        Route(route.path, method)
        for route in iter_route_contexts(app.routes)
        if getattr(route, "methods", None)
        for method in route.methods
        if method not in ("HEAD", "OPTIONS")
    )


def actions_of(app) -> dict[str, str]:
    """The action that the guard of a route asks for, by route; routes without such a guard are left out."""
    from fastapi.routing import iter_route_contexts

    def guards(dependant):
        for one in dependant.dependencies:
            if isinstance(one.call, Guard):
                yield one.call
            yield from guards(one)

    found = {}
    for route in iter_route_contexts(app.routes):
        actions = {guard.action for guard in guards(route.dependant)} if getattr(route, "dependant", None) else set()
        assert len(actions) <= 1, route.path
        for action in actions:
            found |= {f"{method} {route.path}": action for method in route.methods - {"HEAD", "OPTIONS"}}
    return found


class Site:
    """An application over a fresh workspace, and visitors of it."""

    def __init__(self, folder, *, database_url=None, **settings):
        self.place = AppState(Workspace.open(folder), ServerSettings(**settings), database_url)
        self.app = create_app(self.place)
        self._clients = {}

    def account(self, name, role="annotator", password=None):
        accounts = self.place.accounts
        if name not in [user.name for user in accounts.users()]:
            accounts.add(name, role)
        if password:
            accounts.set_password(name, password)
        return name

    def visitor(self, role=None, *, name=None, token=True, **options) -> TestClient:
        """Somebody of a role, in a session of their own; None: nobody signed in."""
        options = {"raise_server_exceptions": False, "follow_redirects": False, "base_url": ORIGIN, **options}
        client = TestClient(self.app, **options)
        client.portal = event_loop()
        if role is not None:
            user = self.account(name or role, role)
            client.cookies.set(SESSION_COOKIE, self.place.accounts.begin_session(user, days=1))
        if token:
            client.headers["x-csrf-token"] = csrf_of(client)
        return client

    def ask(self, route, role=None, *, token=True, **options):
        """Ask for a route as somebody of a role; the clients are kept, because loading their pages takes time."""
        client = self._clients.get((role, token))
        if client is None:
            client = self._clients[role, token] = self.visitor(role, token=token)
        answer = client.request(route.method, route.address, **options)
        if answer.headers.get("set-cookie"):
            del self._clients[role, token]  # signed out, or given another cookie
        return answer

    def close(self):
        self.place.close()


def csrf_of(client) -> str:
    """The token in the forms of this client's pages."""
    if SESSION_COOKIE not in client.cookies and VISITOR_COOKIE not in client.cookies:
        client.get("/sign-in")
    return CSRF.search(client.get("/").text).group(1)


def turned_away(answer) -> bool:
    """Whether an answer says that this visitor may not do this."""
    if answer.status_code == 401 and answer.request.url.path == "/sign-in":
        return False  # the form is there; the password was wrong
    to_sign_in = answer.status_code == 303 and answer.headers["location"].startswith("/sign-in")
    return to_sign_in or answer.status_code in (401, 403)


def crawl(client, starts, most):
    """The pages that links lead to, from some on: address and answer, at most so many."""
    waiting, seen = list(starts), set()
    while waiting and len(seen) < most:
        address = waiting.pop(0)
        if address in seen:
            continue
        seen.add(address)
        answer = client.get(address)
        yield address, answer
        if answer.headers.get("content-type", "").startswith("text/html"):
            targets = [
                urljoin(address, one.attributes["href"] or "") for one in LexborHTMLParser(answer.text).css("a[href]")
            ]
            waiting += [
                one.partition("#")[0] for one in targets if not urlsplit(one).scheme and not urlsplit(one).netloc
            ]
