from collections import Counter

import pytest

from climassay.errors import InputError
from climassay.generation import Decision
from climassay.generation.dataset_store import DatasetStore, StoredDraft
from climassay.records import Records
from drafts import make_draft, rejected


@pytest.fixture
def records(tmp_path):
    with Records(f"sqlite:///{tmp_path / 'records.sqlite'}") as store:
        yield store


@pytest.fixture
def store(records):
    store = DatasetStore(records)
    store.begin("silver", {"seed": 0, "writer": {"model": "m"}})
    return store


def placed(name, number=0, **changes):
    return StoredDraft(make_draft(name, **changes), "book", number)


def test_a_draft_that_is_made_again_takes_its_old_place(store):
    store.save("silver", [placed("a", error="no answer"), placed("b", 1)])
    store.save("silver", [placed("a", answer="Now written."), placed("c", 2)])
    found = list(store.placed("silver"))
    assert [one.draft.id for one in found] == ["a", "b", "c"]
    assert found[0].state == "accepted"


def test_more_drafts_than_one_query_reads(store):
    store.save("silver", [placed(f"q{number:04}", number) for number in range(1203)])
    assert [one.number for one in store.placed("silver")] == list(range(1203))


def test_an_unknown_dataset_is_named_with_those_there_are(store):
    with pytest.raises(InputError, match=r"no dataset 'gold'.*silver"):
        list(store.placed("gold"))


def test_an_experts_word_is_stored_once_for_each_key(store):
    store.save("silver", [placed("a", decisions=(rejected("figure"),))])
    valid = Decision("expert", "ann", True)
    assert store.decide("silver", "a", valid, "ann-a-1")
    assert not store.decide("silver", "a", Decision("expert", "ann", False, "wrong answer"), "ann-a-1")
    [draft] = store.drafts("silver")
    assert draft.decisions == (rejected("figure"), valid)
    assert draft.usable


def test_a_decision_about_no_draft_is_refused(store):
    with pytest.raises(InputError, match="no draft 'x'"):
        store.decide("silver", "x", Decision("expert", "ann", True), "k")


def test_the_list_counts_as_the_drafts_stand_after_every_decision(store):
    store.save("silver", [placed("a"), placed("b"), placed("c", 2, error="cut off")])
    store.decide("silver", "a", Decision("expert", "ann", accepted=False, reason="other"), "k1")
    store.decide("silver", "b", Decision("expert", "ann", accepted=False, reason="other"), "k2")
    store.decide("silver", "b", Decision("expert", "eve", accepted=True), "k3")
    [summary] = store.list()
    assert summary.states == Counter(one.state for one in store.placed("silver"))
