"""Who may do what through the API, by table; what a token, a session and a page of another site may do."""

from dataclasses import replace

import pytest

from annotated_dataset import DATASET, fill
from api_parts import API, bearer, operations, settings_of
from climassay.generation.annotation import Label
from web_parts import application_over
from web_permissions import LISTED, OPEN_TO_NOBODY
from web_routes import ROLES

LEAST = {name: least for name, least in LISTED.items() if f" {API}/" in name}
"""Operation and who may call it at least."""
VISITORS = (None, *ROLES)


@pytest.fixture
def place_settings(tmp_path):
    return settings_of(tmp_path)


def turned_away(role, least, public="nothing"):
    """The status with which somebody is turned away; None where they may pass."""
    if least not in ROLES:
        return None if role is not None or least in OPEN_TO_NOBODY[public] else 401
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
    said = {f"{method} {path}": operation["x-role"].removesuffix("s") for method, path, operation in operations()}
    assert said == LEAST


@pytest.mark.parametrize("role", VISITORS)
def test_a_token_may_do_what_its_user_may_do(client_of, place, role):
    client = client_of()
    client.headers.update(bearer(place, role))
    seen = {name: call(client, name).status_code for name in sorted(LEAST)}
    expected = {name: turned_away(role, least) for name, least in LEAST.items()}
    assert {name: status if status in (401, 403) else None for name, status in seen.items()} == expected
    assert all(status < 500 for status in seen.values())


def test_a_bad_token_is_told_even_where_everybody_may_read(place_on, place_settings):
    place_settings["public"] = "read"
    with application_over(place_on()) as client_of:
        client = client_of()
        assert client.get(f"{API}/runs").status_code == 200
        for sent in ("Bearer climassay_wrong", "Bearer", "Basic YTpi", "Bearer \u00e9"):
            answer = client.get(f"{API}/runs", headers={"Authorization": sent.encode()})
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer"), sent


def test_an_annotator_sees_neither_the_labels_of_others_nor_the_validator_s_confidence(client_of, place):
    store = fill(place, overlap=2)
    store.reorder(DATASET, {f"q{number}": number / 10 for number in range(1, 7)})
    first = store.next(DATASET, "somebody").draft.id
    store.label(DATASET, Label(first, "somebody", accepted=True, key="k", wording=_words(store, first)))
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
