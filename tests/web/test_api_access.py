"""Who may do what through the API, by table; what a token, a session and a page of another site may do."""

from dataclasses import replace

import pytest

from annotated_dataset import DATASET, fill
from api_parts import API, bearer, operations, settings_of
from web_parts import application_over, csrf_of
from web_routes import ROLES

ANNOTATOR = {
    "GET /me",
    "POST /checks/{check}/reviews",
    "POST /checks/{check}/stop",
    "GET /annotate/reasons",
    "GET /annotate/datasets",
    "GET /annotate/datasets/{dataset}/settings",
    "GET /annotate/datasets/{dataset}/next",
    "GET /annotate/datasets/{dataset}/items",
    "GET /annotate/datasets/{dataset}/items/{draft}",
    "GET /annotate/datasets/{dataset}/items/{draft}/comments",
    "POST /annotate/datasets/{dataset}/items/{draft}/comments",
    "POST /annotate/datasets/{dataset}/items/{draft}/label",
    "POST /annotate/datasets/{dataset}/items/{draft}/skip",
    "POST /annotate/datasets/{dataset}/undo",
    "POST /annotate/datasets/{dataset}/unskip",
    "GET /annotate/datasets/{dataset}/progress",
    "GET /annotate/datasets/{dataset}/history",
    "POST /jobs/{job}/stop",
    "GET /usage",
}
ADJUDICATOR = {
    "POST /library/collections/{collection}/documents",
    "PATCH /library/collections/{collection}/documents/{document}",
    "POST /annotate/datasets/{dataset}/items/{draft}/adjudicate",
    "GET /annotate/datasets/{dataset}/conflicts",
    "GET /annotate/datasets/{dataset}/agreement",
    "GET /annotate/datasets/{dataset}/annotators",
    "GET /annotate/datasets/{dataset}/export",
    "GET /annotate/datasets/{dataset}/rubrics",
    "GET /datasets/{dataset}/drafts",
}
ADMIN = {
    "GET /users",
    "POST /users",
    "GET /users/{name}",
    "PATCH /users/{name}",
    "POST /users/{name}/link",
    "DELETE /library/collections/{collection}",
    "DELETE /library/collections/{collection}/documents/{document}",
    "PUT /annotate/datasets/{dataset}/settings",
    "POST /annotate/datasets/{dataset}/import",
    "POST /annotate/datasets/{dataset}/retrain",
    "GET /jobs",
}
ASKERS = {"POST /checks", "GET /checks/set-ups", "POST /checks/{check}/again"}
READERS = {
    "GET /jobs/{job}",
    "GET /jobs/{job}/events",
    "GET /library/collections",
    "GET /library/collections/{collection}",
    "GET /library/collections/{collection}/documents",
    "GET /library/collections/{collection}/documents/{document}",
    "GET /library/collections/{collection}/documents/{document}/passages",
    "GET /library/collections/{collection}/passages/{passage}",
    "GET /library/collections/{collection}/search",
    "GET /library/search",
    "GET /checks",
    "GET /checks/agreement",
    "GET /checks/{check}",
    "GET /checks/{check}/transcript",
    "GET /checks/{check}/claimreview",
    "GET /checks/{check}/reviews",
    "GET /runs",
    "GET /runs/compare",
    "GET /runs/{run}",
    "GET /runs/{run}/tables",
    "GET /runs/{run}/grid",
    "GET /runs/{run}/questions",
    "GET /runs/{run}/questions/{number}",
    "GET /datasets",
    "GET /datasets/{dataset}",
}
LEAST = {
    f"{name.partition(' ')[0]} {API}{name.partition(' ')[2]}": role
    for role, names in (
        ("annotator", ANNOTATOR),
        ("adjudicator", ADJUDICATOR),
        ("admin", ADMIN),
        ("askers", ASKERS),
        ("readers", READERS),
    )
    for name in names
}
"""Operation and who may call it at least; an operation that is not here fails the first test."""
VISITORS = (None, *ROLES)


@pytest.fixture
def place_settings(tmp_path):
    return settings_of(tmp_path)


def turned_away(role, least, public="nothing"):
    """The status with which somebody is turned away; None where they may pass."""
    if least in ("readers", "askers"):
        open_to_all = public == "check" or (public == "read" and least == "readers")
        return None if role is not None or open_to_all else 401
    if role is None:
        return 401
    return None if ROLES.index(role) >= ROLES.index(least) else 403


def call(client, name, **options):
    """Ask for an operation on what is not there."""
    method, path = name.split(" ")
    for word in ("collection", "document", "passage", "dataset", "draft", "check", "job", "run", "name", "number"):
        path = path.replace(f"{{{word}}}", "1")
    return client.request(method, path, **options)


def test_every_operation_is_listed_and_the_document_says_the_same():
    assert {f"{method} {path}": operation["x-role"] for method, path, operation in operations()} == LEAST


@pytest.mark.parametrize("role", VISITORS)
def test_a_token_may_do_what_its_user_may_do(client_of, place, role):
    client = client_of()
    client.headers.update(bearer(place, role))
    seen = {name: call(client, name).status_code for name in sorted(LEAST)}
    expected = {name: turned_away(role, least) for name, least in LEAST.items()}
    assert {name: status if status in (401, 403) else None for name, status in seen.items()} == expected
    assert all(status < 500 for status in seen.values())


def test_a_session_may_do_the_same_with_the_token_of_its_pages(client_of):
    role = "adjudicator"
    client = client_of(role)
    client.headers["X-CSRF-Token"] = csrf_of(client)
    seen = {name: call(client, name).status_code for name in sorted(LEAST)}
    expected = {name: turned_away(role, least) for name, least in LEAST.items()}
    assert {name: status if status in (401, 403) else None for name, status in seen.items()} == expected


def test_a_session_changes_nothing_without_the_token_of_its_pages(client_of):
    client = client_of("admin")
    for name in sorted(LEAST):
        answer = call(client, name)
        if name.startswith("GET"):
            assert answer.status_code != 403, name
        else:
            assert (answer.status_code, "out of date" in answer.json()["error"]) == (403, True), name


@pytest.mark.parametrize("public", ["read", "check"])
def test_an_open_server_is_open_as_far_as_it_was_set_up(place_on, place_settings, public):
    place_settings["public"] = public
    with application_over(place_on()) as client_of:
        client = client_of()
        refused = {name for name in LEAST if call(client, name).status_code == 401}
    assert refused == {name for name, least in LEAST.items() if turned_away(None, least, public)}


def test_what_a_page_of_another_site_sends_is_refused(place_on, place_settings):
    place_settings["public"] = "check"
    with application_over(place_on()) as client_of:
        answer = client_of().post(
            f"{API}/checks", json={"claim": "Ice melts."}, headers={"Sec-Fetch-Site": "cross-site"}
        )
        assert (answer.status_code, "another site" in answer.json()["error"]) == (403, True)


def test_a_bad_token_is_told_even_where_everybody_may_read(place_on, place_settings):
    place_settings["public"] = "read"
    with application_over(place_on()) as client_of:
        client = client_of()
        assert client.get(f"{API}/runs").status_code == 200
        for sent in ("Bearer climassay_wrong", "Bearer", "Basic YTpi", "Bearer \u00e9"):
            answer = client.get(f"{API}/runs", headers={"Authorization": sent.encode()})
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer"), sent


def test_a_revoked_token_and_one_of_somebody_shut_out_are_not_good_any_more(client_of, place):
    client = client_of()
    client.headers.update(bearer(place, "annotator"))
    assert client.get(f"{API}/me").json()["user"]["name"] == "annotator"
    [token] = place.accounts.tokens("annotator")
    place.accounts.revoke_token("annotator", token.id)
    assert client.get(f"{API}/me").status_code == 401
    client.headers.update(bearer(place, "annotator"))
    place.accounts.change("annotator", active=False)
    assert client.get(f"{API}/me").status_code == 401


def test_a_token_is_not_taken_outside_of_the_api(client_of, place):
    client = client_of()
    client.headers.update(bearer(place, "admin"))
    assert client.get("/users").status_code == 303
    assert client.post("/users", data={"name": "eve", "role": "admin"}).status_code == 403


def test_an_annotator_sees_neither_the_labels_of_others_nor_the_validator_s_confidence(client_of, place):
    store = fill(place, overlap=2)
    store.reorder(DATASET, {f"q{number}": number / 10 for number in range(1, 7)})
    first = store.next(DATASET, "somebody").draft.id
    store.label(DATASET, first, "somebody", accepted=True, key="k", wording=_words(store, first))
    path = f"{API}/annotate/datasets/{DATASET}"
    seen = client_of("annotator").get(f"{path}/next").json()["item"]
    assert (seen["draft"], seen["labels"], seen["p_valid"]) == (first, [], None)
    assert client_of("annotator").get(f"{path}/progress").json()["labelled_by"] is None
    shown = client_of("adjudicator").get(f"{path}/items/{first}").json()
    assert [label["annotator"] for label in shown["labels"]] == ["Annotator 1"], "no names before there is an outcome"
    assert client_of("adjudicator").get(f"{path}/progress").json()["labelled_by"] == {"somebody": 1}


def _words(store, draft):
    """A wording that accepts whatever kind of draft it is."""
    item = store.item(DATASET, draft)
    return replace(item.draft.wording, answer=item.suggested_term) if item.draft.kind == "cloze" else None


def test_nobody_labels_what_lies_before_others_or_reads_their_history(client_of, place):
    store = fill(place)
    client = client_of()
    client.headers.update(bearer(place, "annotator"))
    path = f"{API}/annotate/datasets/{DATASET}"
    mine = client.get(f"{path}/next").json()["item"]["draft"]
    other = store.next(DATASET, "somebody").draft.id
    assert client.get(f"{path}/items/{other}").status_code == 403
    sent = {"key": "k1", "accepted": False, "reasons": ["wrong answer"]}
    assert client.post(f"{path}/items/{other}/label", json=sent).status_code == 403
    assert client.get(f"{path}/history", params={"annotator": "somebody"}).status_code == 403
    assert client.post(f"{path}/items/{mine}/label", json=sent).status_code == 200
