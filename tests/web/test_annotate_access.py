"""Who may see and do what on the annotation pages."""

import pytest

from annotated_dataset import DATASET, draft, fill
from web_parts import post

HOME = f"/annotate/{DATASET}"


@pytest.fixture
def queue(place):
    """Six items; ann has labelled the first one, and the second one lies before her."""
    store = fill(place, [draft("q1"), draft("q2")])
    store.label(DATASET, "q1", "ann", accepted=True, key="a1")
    store.next(DATASET, "ann")
    return store


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
