"""Who may see and do what on the annotation pages."""

import pytest

from annotated_dataset import DATASET, draft, fill
from web_parts import post

HOME = f"/annotate/{DATASET}"
WAYS = (
    ("GET", "/annotate", "annotator"),
    ("GET", HOME, "annotator"),
    ("GET", f"{HOME}/guidelines", "annotator"),
    ("GET", f"{HOME}/questions?state=conflict&q=why", "annotator"),
    ("GET", f"{HOME}/history", "annotator"),
    ("GET", f"{HOME}/history?annotator=ann", "adjudicator"),
    ("POST", f"{HOME}/undo", "annotator"),
    ("POST", f"{HOME}/unskip", "annotator"),
    ("GET", f"{HOME}/conflicts", "adjudicator"),
    ("GET", f"{HOME}/conflicts/q1", "adjudicator"),
    ("POST", f"{HOME}/conflicts/q1", "adjudicator"),
    ("POST", f"{HOME}/conflicts/q1/comment", "adjudicator"),
    ("GET", f"{HOME}/agreement", "adjudicator"),
    ("GET", f"{HOME}/export", "adjudicator"),
    ("GET", f"{HOME}/settings", "admin"),
    ("POST", f"{HOME}/settings", "admin"),
    ("POST", f"{HOME}/retrain", "admin"),
    ("POST", f"{HOME}/import", "admin"),
)
ROLES = ("annotator", "adjudicator", "admin")


@pytest.fixture
def queue(place):
    """Six items; ann has labelled the first one, and the second one lies before her."""
    store = fill(place, [draft("q1"), draft("q2")])
    store.label(DATASET, "q1", "ann", accepted=True, key="a1")
    store.next(DATASET, "ann")
    return store


def test_each_page_is_for_its_role_and_those_above(queue, client_of):
    clients = {role: client_of(role) for role in (*ROLES, None)}
    for method, path, least in WAYS:
        for role, client in clients.items():
            answer = client.get(path) if method == "GET" else post(client, path)
            if role is None:
                assert (answer.status_code, answer.headers["location"][:8]) == (303, "/sign-in"), (method, path)
            else:
                refused = ROLES.index(role) < ROLES.index(least)
                assert (answer.status_code == 403) == refused, (method, path, role)


def test_the_list_of_ways_is_whole(client_of):
    from web_routes import routes_of

    plain = [(method, path.partition("?")[0]) for method, path, _ in WAYS]
    listed = {(method, path.replace(DATASET, "{dataset}").replace("q1", "{draft}")) for method, path in plain}
    item = "/annotate/{dataset}/{draft}"
    items = {("GET", item), ("POST", item), ("POST", f"{item}/skip"), ("POST", f"{item}/comment")}
    found = {(route.method, route.path) for route in routes_of(client_of().app) if route.path.startswith("/annotate")}
    assert found == listed | items


@pytest.mark.parametrize("name", ["q1", "q2"], ids=["labelled by another", "before another"])
def test_an_item_in_other_hands_is_neither_shown_nor_labelled(queue, client_of, name):
    client = client_of("annotator")
    before = queue.labels(DATASET, current=False)
    assert client.get(f"{HOME}/{name}").status_code == 403
    assert post(client, f"{HOME}/{name}", {"key": "k", "verdict": "valid"}).status_code == 403
    assert post(client, f"{HOME}/{name}/skip").status_code == 403
    assert queue.labels(DATASET, current=False) == before
    assert queue.progress(DATASET, "annotator").skipped == 0


def test_annotators_do_not_see_what_others_said(place, client_of):
    store = fill(place, [draft("q1")], overlap=2)
    store.label(DATASET, "q1", "ann", accepted=False, reasons=["other"], remark="Ann's own words", key="a1")
    page = client_of("annotator").get(HOME)
    assert page.status_code == 200
    assert "own words" not in page.text
    assert ">ann<" not in page.text
    assert "You called this" not in page.text


def test_undo_takes_back_only_ones_own(queue, client_of):
    post(client_of("annotator"), f"{HOME}/undo", {"last": "a1"})
    assert [label.key for label in queue.labels(DATASET)] == ["a1"]


def test_a_label_without_the_token_of_the_page_is_refused(queue, client_of):
    client = client_of("adjudicator")
    assert client.post(f"{HOME}/q2", data={"key": "k", "verdict": "valid"}).status_code == 403
    assert len(queue.labels(DATASET)) == 1
