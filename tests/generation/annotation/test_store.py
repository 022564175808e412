"""What annotators see and do, on SQLite and on PostgreSQL."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from annotated_drafts import DATASET, VALID, WRONG, begin, judged, plain
from climassay.errors import InputError
from climassay.generation import DatasetStore, Decision, Wording
from climassay.generation.annotation import AnnotationSettings, AnnotationStore, ItemFilter, Label
from climassay.generation.dataset_store import StoredDraft
from climassay.records import Records
from generated_drafts import draft, rejected


@pytest.fixture
def records(database_url):
    with Records(database_url) as store:
        yield store


@pytest.fixture
def sqlite(tmp_path):
    with Records(f"sqlite:///{tmp_path / 'records.sqlite'}") as store:
        yield store


def opened(records, drafts, **settings):
    begin(records, drafts)
    store = AnnotationStore(records)
    store.configure(DATASET, AnnotationSettings(**settings))
    return store


def now(records, name):
    return next(one for one in DatasetStore(records).drafts(DATASET) if one.id == name)


def test_a_label_settles_its_draft_and_an_undo_takes_the_outcome_back(records):
    store = opened(records, plain(2))
    item = store.next(DATASET, "ann")
    name = item.draft.id
    assert store.label(DATASET, Label(name, "ann", key="k1", seconds=4.0, **WRONG))
    assert not store.label(DATASET, Label(name, "ann", key="k1", **VALID))
    decision = now(records, name).rejection
    assert decision == Decision("expert", "ann", False, "wrong answer", "wrong answer")
    assert store.progress(DATASET, "ann").settled == 1
    assert store.next(DATASET, "ann").draft.id != name
    assert store.undo(DATASET, "ann") == name
    assert now(records, name) == item.draft
    assert store.next(DATASET, "ann").draft.id == name
    [label] = store.labels(DATASET, current=False)
    assert label.withdrawn_at >= label.made_at


def test_the_term_of_a_cloze_statement_is_chosen(records):
    made = replace(draft(3, "cloze"), wording=Wording("The albedo of snow is high.", ""))
    store = opened(records, [made])
    item = store.next(DATASET, "ann")
    assert item.suggested_term in item.term_candidates
    assert item.term_candidates == ("albedo", "snow", "high")
    with pytest.raises(InputError, match="Choose the term"):
        store.label(DATASET, Label(made.id, "ann", key="k", **VALID))
    store.label(DATASET, Label(made.id, "ann", key="k", accepted=True, wording=replace(made.wording, answer="snow")))
    assert now(records, made.id).as_question().question == "The albedo of <MASK> is high."


def test_overlap_settles_agreement_and_finds_conflicts(records):
    store = opened(records, plain(2), overlap=2)
    for who in ("ann", "bob"):
        store.label(DATASET, Label("q0000", who, key=f"{who}-0", **WRONG))
    store.label(DATASET, Label("q0001", "ann", key="ann-1", **VALID))
    assert now(records, "q0001").decisions == ()
    store.label(
        DATASET, Label("q0001", "bob", key="bob-1", accepted=False, reasons=["bad context"], remark="Torn apart.")
    )
    assert now(records, "q0000").rejection.by == "ann, bob"
    [conflict] = store.conflicts(DATASET)
    assert [label.annotator for label in conflict.labels] == ["ann", "bob"]
    assert now(records, "q0001").decisions == ()
    progress = store.progress(DATASET, "ann")
    assert (progress.items, progress.settled, progress.conflicts, progress.mine, progress.left_for_me) == (
        2, 1, 1, 2, 0,
    )  # fmt: skip
    assert store.label(DATASET, Label("q0001", "eve", key="eve-1", accepted=True, adjudicates=True))
    assert store.conflicts(DATASET) == []
    assert now(records, "q0001").decisions == (Decision("expert", "eve", True),)
    assert store.undo(DATASET, "eve") == "q0001"
    assert len(store.conflicts(DATASET)) == 1
    store.label(DATASET, Label("q0001", "bob", key="bob-2", **VALID))
    assert now(records, "q0001").decisions == (Decision("expert", "ann, bob", True),)


def test_an_item_goes_to_no_more_people_than_it_needs(records):
    store = opened(records, plain(3), overlap=2)
    given = {who: store.next(DATASET, who).draft.id for who in ("ann", "bob", "cid")}
    assert given["ann"] == given["bob"] != given["cid"]
    assert store.next(DATASET, "ann").draft.id == given["ann"], "until it is labelled, the same comes again"
    with pytest.raises(InputError, match="reserved for others"):
        store.label(DATASET, Label(given["ann"], "cid", key="c", **VALID))
    store.label(DATASET, Label(given["ann"], "ann", key="a", **VALID))
    assert store.next(DATASET, "cid").draft.id == given["cid"]
    store.skip(DATASET, given["bob"], "bob")
    store.skip(DATASET, given["cid"], "cid")
    assert store.next(DATASET, "cid").draft.id == given["ann"], "bob's place is free"


def test_a_lease_that_ran_out_frees_the_item_and_still_lets_the_answer_in(records, monkeypatch):
    store = opened(records, plain(1), lease_seconds=60)
    clock = [1000.0]
    monkeypatch.setattr("time.time", lambda: clock[0])
    assert store.next(DATASET, "ann") is not None
    assert store.next(DATASET, "bob") is None
    clock[0] += 61
    assert store.next(DATASET, "bob") is not None
    assert store.label(DATASET, Label("q0000", "ann", key="too early", **VALID))
    assert store.undo(DATASET, "ann") == "q0000"
    assert store.next(DATASET, "ann") is None, "bob has it"
    clock[0] += 61
    assert store.next(DATASET, "ann") is not None, "what was taken back waits again"
    assert store.label(DATASET, Label("q0000", "ann", key="late", **VALID))
    assert store.label(DATASET, Label("q0000", "bob", key="in time", **VALID))
    assert now(records, "q0000").decisions == (Decision("expert", "ann, bob", True),)


def test_what_is_skipped_stays_away_until_it_is_wanted_again(records):
    store = opened(records, plain(1))
    store.next(DATASET, "ann")
    store.skip(DATASET, "q0000", "ann")
    assert store.next(DATASET, "ann") is None
    assert store.progress(DATASET, "ann").skipped == 1
    assert store.next(DATASET, "bob") is not None
    assert store.unskip(DATASET, "ann") == 1
    assert store.next(DATASET, "ann") is None, "bob has it"
    store.skip(DATASET, "q0000", "bob")
    assert store.next(DATASET, "ann") is not None
    store.label(DATASET, Label("q0000", "ann", key="k", **VALID))
    with pytest.raises(InputError, match="have labelled"):
        store.skip(DATASET, "q0000", "ann")


def test_the_least_certain_come_first(records):
    chances = [0.9, 0.45, 0.05, 0.7]
    store = opened(records, [judged(number, chance) for number, chance in enumerate(chances)])
    assert [item.p_valid for item in store.items(DATASET)] == [0.45, 0.7, 0.9, 0.05]


def test_what_waits_and_what_does_not(records):
    made = [
        draft(0),
        rejected(draft(1), "context reference"),
        rejected(draft(2), "self-inconsistency", "consistency"),
        judged(3, 0.2, accepted=False),
        rejected(draft(4), "near-duplicate", "deduplicate"),
        rejected(draft(5), "no reply", "write"),
        draft(6, error="cut off", wording=Wording("")),
        draft(7).with_decisions(Decision("expert", "zoe", True)),
    ]
    store = opened(records, made)
    assert [item.draft.id for item in store.items(DATASET)] == ["q0000"]
    with pytest.raises(InputError, match="no item 'q0001'"):
        store.label(DATASET, Label("q0001", "ann", key="k", **VALID))
    store.configure(DATASET, AnnotationSettings(include_rejected=True))
    waiting = {item.draft.id: item.preselected for item in store.items(DATASET)}
    assert waiting == {"q0000": (), "q0001": ("context reference",), "q0002": ("self-inconsistency",), "q0003": ()}
    store.label(DATASET, Label("q0001", "ann", key="k", **VALID))
    assert now(records, "q0001").usable, "an expert's word stands above the screening"
    store.configure(DATASET, AnnotationSettings())
    assert {item.draft.id for item in store.items(DATASET)} == {"q0000", "q0001"}, "what has a label stays"


def test_drafts_that_come_later_and_failures_made_again_join_the_queue(records):
    store = opened(records, [draft(0), draft(1, error="cut off", wording=Wording(""))])
    assert store.progress(DATASET).items == 1
    DatasetStore(records).save(DATASET, [StoredDraft(draft(1), "book", 1), StoredDraft(draft(2), "book", 2)])
    assert store.progress(DATASET).items == 3
    DatasetStore(records).save(DATASET, [StoredDraft(draft(3), "book", 3)])
    assert store.label(DATASET, Label("q0003", "ann", key="k", **VALID))


def test_an_unknown_dataset_and_a_key_of_another_label_are_told(records):
    store = opened(records, plain(2))
    for ask in (store.progress, store.settings, lambda name: store.next(name, "ann")):
        with pytest.raises(InputError, match=r"no dataset 'gold'.*silver"):
            ask("gold")
    store.label(DATASET, Label("q0000", "ann", key="k", **VALID))
    with pytest.raises(InputError, match="belongs to another label"):
        store.label(DATASET, Label("q0001", "ann", key="k", **VALID))
    assert [label.draft for label in store.labels(DATASET)] == ["q0000"]


def test_history_is_the_newest_first_and_knows_no_withdrawn_labels(records):
    store = opened(records, plain(3))
    for number in range(3):
        store.label(DATASET, Label(f"q000{number}", "ann", key=str(number), **VALID))
    store.label(DATASET, Label("q0000", "ann", key="again", **WRONG))
    assert [label.key for label in store.history(DATASET, "ann", limit=2)] == ["again", "2"]
    assert [label.key for label in store.labels(DATASET, annotator="ann")] == ["1", "2", "again"]


def test_hostile_text_is_stored_as_it_is_and_what_no_database_holds_is_replaced(records):
    store = opened(records, plain(1))
    remark = "<script>alert(1)</script> '; DROP TABLE annotations; -- \x00 \ud83d"
    store.label(DATASET, Label("q0000", "ann", key="k", accepted=False, reasons=["other"], remark=remark))
    [label] = store.labels(DATASET)
    assert label.remark == "<script>alert(1)</script> '; DROP TABLE annotations; -- � �"


def test_many_people_at_once_lose_nothing_and_double_nothing(records):
    store = opened(records, plain(12), overlap=2)

    def annotate(who):
        stored = []
        while (item := store.next(DATASET, who)) is not None:
            key = f"{who}-{item.draft.id}"
            assert store.label(DATASET, Label(item.draft.id, who, key=key, **VALID))
            stored.append(key)
        return stored

    with ThreadPoolExecutor(4) as pool:
        acknowledged = [key for keys in pool.map(annotate, [f"p{number}" for number in range(4)]) for key in keys]
    labels = store.labels(DATASET, current=False)
    assert sorted(label.key for label in labels) == sorted(acknowledged)
    assert len(labels) == 24, "two labels an item, not one more"
    assert store.progress(DATASET).settled == 12


def divided(records, count=4, conflicts=(0, 1, 3)):
    """Items on which ann and bob disagree, and others on which they agree."""
    store = opened(records, plain(count), overlap=2)
    for number in range(count):
        store.label(DATASET, Label(f"q{number:04d}", "ann", key=f"a{number}", **VALID))
        store.label(
            DATASET, Label(f"q{number:04d}", "bob", key=f"b{number}", **(WRONG if number in conflicts else VALID))
        )
    return store


def test_what_is_looked_for_is_found_by_state_type_and_words(records):
    drafts = [draft(0), draft(1, "mcq"), draft(2, "cloze"), draft(3), draft(4, error="cut off", wording=Wording(""))]
    store = opened(records, drafts, overlap=2)
    store.label(DATASET, Label("q0000", "ann", key="a0", **VALID))
    store.label(DATASET, Label("q0001", "ann", key="a1", **VALID))
    store.label(DATASET, Label("q0001", "bob", key="b1", **WRONG))
    store.label(DATASET, Label("q0003", "bob", key="b3", **WRONG))
    store.label(DATASET, Label("q0003", "eve", key="e3", **WRONG))
    store.skip(DATASET, "q0002", "ann")
    store.comment(DATASET, "q0001", "ann", "Why?", key="c")

    def found(annotator="ann", **wanted):
        items, total = store.find(DATASET, annotator, ItemFilter(**wanted))
        assert total == len(items)
        return [one.draft.id for one in items]

    assert found() == ["q0000", "q0001", "q0002", "q0003"]
    states = {state: found(state=state) for state in ("todo", "done", "skipped", "conflict", "decided")}
    assert states == {
        "todo": [],
        "done": ["q0000", "q0001"],
        "skipped": ["q0002"],
        "conflict": ["q0001"],
        "decided": ["q0003"],
    }
    progress = store.progress(DATASET, "ann")
    assert [len(states[name]) for name in ("todo", "done", "skipped", "conflict", "decided")] == [
        progress.left_for_me, progress.mine, progress.skipped, progress.conflicts, progress.settled
    ]  # fmt: skip
    assert found("bob", state="todo") == ["q0000", "q0002"]
    assert found(kind="cloze") == ["q0002"]
    assert (found(text="EMISSIVITY"), found(text="it grows", state="done")) == (["q0001"], ["q0000"])
    assert found(text="incoming sunlight") == [], "passages are not looked through"
    assert found(text="100%_") == []
    assert store.kinds(DATASET) == ["mcq", "freeform", "cloze"]
    [first], total = store.find(DATASET, "ann", ItemFilter(), limit=1, offset=1)
    assert (first.draft.id, first.state, first.own_label.key, first.comments, total) == (
        "q0001",
        "conflict",
        "a1",
        1,
        4,
    )


def test_a_chosen_item_is_kept_from_others_until_another_is_chosen(records):
    store = opened(records, plain(3))
    assert store.claim(DATASET, "q0001", "ann")
    assert store.claim(DATASET, "q0001", "ann")
    assert not store.claim(DATASET, "q0001", "bob")
    assert store.next(DATASET, "ann").draft.id == "q0001"
    assert store.claim(DATASET, "q0002", "ann")
    assert store.claim(DATASET, "q0001", "bob")
    store.label(DATASET, Label("q0001", "bob", key="b", **VALID))
    assert not store.claim(DATASET, "q0001", "eve")


def test_a_comment_is_stored_once_and_decides_nothing(records):
    store = divided(records, 1, (0,))
    for _ in range(2):
        stored = store.comment(DATASET, "q0000", "ann", " See the second\r\nparagraph. ", key="c1")
    assert not stored
    store.comment(DATASET, "q0000", "eve", "Which?", key="c2", adjudicates=True)
    said = [(one.author, one.text, one.adjudicates) for one in store.comments(DATASET, "q0000")]
    assert said == [("ann", "See the second\nparagraph.", False), ("eve", "Which?", True)]
    assert store.item(DATASET, "q0000").state == "conflict"
    for draft_id, text, sentence in (("q0000", " ", "empty"), ("q0000", "x" * 10_001, "10001"), ("q9", "x", "no item")):
        with pytest.raises(InputError, match=sentence):
            store.comment(DATASET, draft_id, "ann", text, key="c3")
    assert len(store.comments(DATASET)) == 2
