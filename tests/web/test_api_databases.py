"""The API on both databases: lists that go on behind an entry, labels stored once, and what no database can hold."""

import pytest
from starlette.testclient import TestClient

from annotated_dataset import DATASET, fill
from api_parts import API, bearer, finished_check, settings_of
from climassay.web import AppState, ServerSettings, create_app
from climassay.workspace import Workspace
from stored_runs import store_mcq
from web_parts import ORIGIN

JSON = {"Content-Type": "application/json"}
STRANGE = ("%00", "%FF", "a%2Fb", "..%2f..", "'", '"', "9" * 400, "%F0%9F%98%80", "%E2%80%AE", "%ED%A0%80")
PATHS = ("/runs/{}", "/checks/{}", "/library/collections/{}", "/users/{}", "/jobs/{}", "/datasets/{}",
         "/annotate/datasets/{}/next", "/annotate/datasets/clouds/items/{}", "/runs?after={}", "/checks?after={}",
         "/jobs?after={}", "/runs?text={}", "/checks?q={}", "/checks?verdict={}")  # fmt: skip


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


def test_a_label_is_stored_once_and_answered_alike(place, client):
    store = fill(place)
    path = f"{API}/annotate/datasets/{DATASET}/items/q2/label"
    first, second = (client.post(path, json={"key": "k", "accepted": accepted}) for accepted in (True, True))
    assert first.status_code == 200
    assert first.json() == second.json()
    assert len(store.labels(DATASET, current=False)) == 1


def test_strange_names_are_not_there(place, client):
    fill(place)
    for name in STRANGE:
        for path in PATHS:
            answer = client.get(API + path.format(name))
            listed = answer.status_code == 200 and answer.json()["items"] == []
            assert listed or (answer.status_code in (400, 404, 422) and answer.json()["error"]), (path, name)


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


def test_of_two_fields_of_one_name_the_last_counts(client):
    answer = client.post(f"{API}/users", content=b'{"name": "ada", "name": "grace"}',
                         headers=JSON)  # fmt: skip
    assert answer.json()["user"]["name"] == "grace"
