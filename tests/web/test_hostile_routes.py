"""Every route of the application: who may call it, that no foreign page can, and what its answers carry.

The routes are taken from the application, so that a new one is tested from its first day, and has to be listed here.
"""

import re
from pathlib import Path

import pytest

from climassay import web
from climassay.web.accounts import RIGHTS
from web_permissions import LISTED, OPEN_TO_NOBODY
from web_routes import ROLES, Route, Site, actions_of, csrf_of, routes_of, turned_away

pytestmark = pytest.mark.faults


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    opened = Site(tmp_path_factory.mktemp("site"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def routes(site):
    return routes_of(site.app)


@pytest.fixture(scope="module")
def listed(routes):
    """The routes but those that the first test complains of."""
    return [route for route in routes if str(route) in LISTED]


def ask(client, route: Route, **options):
    return client.request(route.method, route.address, **options)


def test_the_table_of_rights_decides_who_may_call_a_route(site):
    """The actions of the routes' guards, by the application's table, ask for the roles that are listed for them."""
    found = {name: RIGHTS[action] for name, action in actions_of(site.app).items()}
    assert found == {name: least for name, least in LISTED.items() if least in ROLES}


def test_every_right_is_used_and_no_role_is_compared_elsewhere(site):
    guarded = set(actions_of(site.app).values())
    files = [path for path in Path(web.__file__).parent.rglob("*") if path.suffix in (".py", ".j2")]
    source = "".join(path.read_text(encoding="utf-8") for path in files)
    asked = set(re.findall(r"""\.may\("([^"]*)"\)""", source))
    assert guarded | asked == set(RIGHTS)
    assert not re.search(r"user\.role [!=]= ", source)


def test_every_route_is_listed_with_who_may_call_it(routes):
    assert {str(route) for route in routes} == set(LISTED)


@pytest.mark.parametrize("role", ROLES)
def test_a_role_gets_what_it_may_and_nothing_else(role, site, listed):
    for route in listed:
        least = LISTED[str(route)]
        may = least not in ROLES or ROLES.index(role) >= ROLES.index(least)
        answer = site.ask(route, role)
        assert turned_away(answer) is (not may), f"{role}: {route} answers {answer.status_code}"
        assert answer.status_code < 500, f"{route}: {answer.text}"


@pytest.mark.parametrize("public", list(OPEN_TO_NOBODY))
def test_who_is_not_signed_in_gets_what_the_server_opens(public, tmp_path, listed):
    site = Site(tmp_path, public=public)
    for route in listed:
        answer = site.ask(route)
        may = LISTED[str(route)] in OPEN_TO_NOBODY[public]
        # Who has no account may look at the page of a job only if it is a check: here there is none.
        assert may or turned_away(answer), f"nobody: {route} answers {answer.status_code}"
        assert not may or not turned_away(answer), f"nobody: {route} is closed"
        assert answer.status_code < 500
    site.close()


FORGERIES = {
    "no token": {},
    "an empty token": {"headers": {"x-csrf-token": ""}},
    "a wrong token": {"headers": {"x-csrf-token": "0" * 64}},
    "a wrong field": {"data": {"csrf": "0" * 64}},
    "a field that is a file": {"files": {"csrf": ("token.txt", b"0" * 64)}},
    "a body that is not a form": {"json": {"csrf": "0" * 64}},
    "plain text": {"content": b"csrf=0", "headers": {"content-type": "text/plain"}},
    "the token in the address": {"params": {"csrf": "0" * 64}},
}


@pytest.mark.parametrize("forgery", list(FORGERIES))
def test_what_changes_something_needs_the_visitors_token(forgery, site, routes):
    for route in filter(lambda route: route.unsafe, routes):
        answer = site.ask(route, "admin", token=False, **FORGERIES[forgery])
        assert answer.status_code == 403, f"{route} answers {answer.status_code} to {forgery}"


def test_another_visitors_token_does_not_help(site, routes):
    for stolen in (csrf_of(site.visitor("annotator")), csrf_of(site.visitor())):
        client = site.visitor("admin", token=False)
        for route in filter(lambda route: route.unsafe, routes):
            assert ask(client, route, headers={"x-csrf-token": stolen}).status_code == 403, str(route)


@pytest.mark.core
@pytest.mark.parametrize("origin", ["cross-site", "same-site"])
def test_what_another_site_sends_is_refused_even_with_the_token(origin, site, routes):
    for route in filter(lambda route: route.unsafe, routes):
        answer = site.ask(route, "admin", headers={"sec-fetch-site": origin})
        assert answer.status_code == 403, f"{route} answers {answer.status_code}"


def test_a_bearer_token_opens_nothing_outside_the_interface_for_programs(site, listed):
    site.account("admin", "admin")
    token = site.place.accounts.make_token("admin", "test")
    for route in listed:
        if not route.path.startswith("/api/") and LISTED[str(route)] in ROLES:
            answer = site.ask(route, token=False, headers={"authorization": f"Bearer {token}"})
            assert turned_away(answer), f"{route} answers {answer.status_code}"


def test_an_invented_bearer_token_lets_nobody_use_a_session_without_the_visitors_token(site, listed):
    """A program needs no CSRF token, but then it is the program that asks, and not whose cookie the browser sends."""
    for given in ("Bearer invented", "Bearer", "bearer  "):
        client = site.visitor("admin", token=False)
        for route in (one for one in listed if one.unsafe and LISTED[str(one)] in ROLES):
            answer = ask(client, route, headers={"authorization": given})
            assert answer.status_code in (401, 403), f"{route} answers {answer.status_code}"


def test_reading_changes_nothing(site, routes):
    """A link or a picture in a foreign page makes GET requests in a visitor's name."""
    client = site.visitor("admin")
    for route in filter(lambda route: not route.unsafe, routes):
        before = state_of(site)
        ask(client, route)
        assert state_of(site) == before, str(route)


def state_of(site) -> list[tuple]:
    """The rows of all tables that have any: a table that is made when it is first looked into changes nothing."""
    import sqlalchemy as sa

    with site.place.database.read() as connection:
        tables = sa.inspect(connection).get_table_names()
        rows = {name: connection.exec_driver_sql(f'SELECT * FROM "{name}"').all() for name in sorted(tables)}
        return [(name, found) for name, found in rows.items() if found]


METHODS = ("GET", "POST", "PUT", "DELETE", "PROPFIND")


@pytest.mark.parametrize("method", METHODS)
def test_other_verbs_do_not_go_around_the_guards(method, site, routes):
    taken = {}
    for route in routes:
        taken.setdefault(route.path, set()).add(route.method)
    for path, known in taken.items():
        if method in known:
            continue
        answer = site.ask(Route(path, method), "annotator")
        assert answer.status_code in (403, 404, 405), f"{method} {path} answers {answer.status_code}"


EXPECTED_HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
NO_FOREIGN_CONTENT = ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "form-action 'self'")


def check_headers(answer, where):
    for name, value in EXPECTED_HEADERS.items():
        assert answer.headers.get(name) == value, f"{where} lacks {name}"
    policy = answer.headers.get("content-security-policy", "")
    for part in NO_FOREIGN_CONTENT:
        assert part in policy, f"{where}: {part} is not in the policy"
    assert "unsafe" not in policy
    if not where.endswith((".css", ".js")):
        assert answer.headers.get("cache-control") == "no-store", f"{where} may be kept by caches"
    assert "access-control-allow-origin" not in answer.headers


def test_every_answer_carries_the_headers_that_protect_it(site, routes):
    for role in (None, "annotator", "admin"):
        for route in routes:
            check_headers(site.ask(route, role), f"{role}: {route}")


def test_failures_carry_them_too(site, monkeypatch):
    client = site.visitor("admin")
    check_headers(client.get("/no/such/page"), "404")
    check_headers(client.put("/users"), "405")
    check_headers(client.post("/users", content=b"x" * (2 * 2**20)), "413")
    check_headers(client.post("/users", data={"display_name": "x" * 500}), "422")
    check_headers(client.get("/", headers={"host": "evil.example"}), "a foreign host")
    check_headers(site.visitor("admin", token=False).post("/users"), "403")

    def broken(self):
        raise ZeroDivisionError("secret words")

    monkeypatch.setattr("climassay.web.accounts.AccountStore.users", broken)
    answer = client.get("/users")
    assert answer.status_code == 500
    assert "secret words" not in answer.text
    check_headers(answer, "500")


def test_files_of_the_application_may_be_kept_but_are_protected(site):
    client = site.visitor()
    for name in ("style.css", "app.js", "icon.svg"):
        answer = client.get(f"/static/{name}?v=1")
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["content-security-policy"]


OUTSIDE = [
    "../application.py", "%2e%2e/application.py", "..%2fapplication.py", "..\\application.py",
    "%2e%2e%5capplication.py", "/etc/passwd", "....//application.py", "style.css/../../application.py",
    "%00", "style.css%00.png", "%2e",
]  # fmt: skip


@pytest.mark.parametrize("path", OUTSIDE)
def test_only_files_of_the_application_are_served(path, site):
    answer = site.visitor().get(f"/static/{path}")
    assert answer.status_code in (404, 405)
    assert "create_app" not in answer.text
