"""The API on both databases: lists that go on behind an entry, labels stored once, and what no database can hold."""

import pytest
from starlette.testclient import TestClient

from api_parts import API, bearer, finished_check, settings_of
from climassay.web import AppState, ServerSettings, create_app
from climassay.workspace import Workspace
from stored_runs import store_mcq
from web_parts import ORIGIN

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def place(tmp_path, database_url):
    made = AppState(Workspace.open(tmp_path / "workspace"), ServerSettings(**settings_of(tmp_path)), database_url)
    yield made
    made.close()


@pytest.fixture
def client(place):
    with TestClient(create_app(place), base_url=ORIGIN, follow_redirects=False) as made:
        made.headers.update(bearer(place, "admin"))
        yield made


def all_of(client, path, meanwhile):
    """Ids of a list, fetched one by one, while others come in."""
    found, after = [], None
    while True:
        answer = client.get(API + path, params={"limit": 1} | ({"after": after} if after else {}))
        assert answer.status_code == 200, answer.text
        found += [one["id"] for one in answer.json()["items"]]
        after = answer.json()["next"]
        if after is None:
            return found
        meanwhile()


def test_lists_of_what_comes_in_go_on_behind_an_entry(place, client):
    place.jobs.register("nothing", lambda *_: None, "corpus")
    makers = {
        "/checks": lambda: finished_check(place),
        "/runs": lambda: store_mcq(place.records, questions=4),
        "/jobs": lambda: place.jobs.submit("nothing", "Work", {}),
    }
    for path, make in makers.items():
        for _ in range(3):
            make()
        known = [one["id"] for one in client.get(API + path, params={"limit": 200}).json()["items"]]
        assert all_of(client, path, make) == known


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"name": "\\ud800"}', id="surrogate"),
        pytest.param(b'{"\\ud800": 1, "name": "ada"}', id="surrogate-field"),
        pytest.param(b'{"name": "a\\u0000b"}', id="nul"),
        pytest.param(b'{"name": NaN}', id="nan"),
        pytest.param(b'{"name": ' + b"9" * 5000 + b"}", id="huge-number"),
        pytest.param(b"[" * 100_000, id="deep"),
        pytest.param(b"\xff\xfe", id="no-text"),
        pytest.param(b'"ada"', id="no-object"),
        pytest.param(b"", id="empty"),
    ],
)
def test_what_cannot_be_stored_is_refused(client, body):
    answer = client.post(f"{API}/users", content=body, headers=JSON)
    assert answer.status_code in (400, 422)
    assert answer.json()["error"].endswith(".")
