"""Checks that are kept: from asking to the last review, on both databases."""

import json
from datetime import datetime
from itertools import chain, combinations_with_replacement
from typing import get_args

import pytest

from climassay.errors import InputError
from climassay.factcheck import (
    AdvocateSettings,
    CheckFilter,
    CheckStore,
    DebateSettings,
    MediatorSettings,
    advocates_from_names,
    check_data,
    from_data,
    make_claim,
)
from climassay.factcheck.check_records import MAX_COMMENT_LENGTH
from climassay.factcheck.check_store import Reviewed, checks
from climassay.factcheck.configuration import parse_settings, settings_tables
from climassay.records import Records
from climassay.statistics import wilson_interval
from factcheck_transcripts import checked, full_transcript, unchecked

SETTINGS = DebateSettings(advocates_from_names(["ar6", "wmo=0.5"], plain=True), rounds=2)


@pytest.fixture
def store(database_url):
    with Records(database_url) as records:
        yield CheckStore(records)


@pytest.fixture
def local(tmp_path):
    """Only on SQLite: what no database makes a difference to."""
    with Records(f"sqlite:///{tmp_path / 'records.sqlite'}") as records:
        yield CheckStore(records)


def begun(store, text="It warms.", by=None, **more):
    return store.begin(make_claim(text, **more), SETTINGS, setup="two", by=by)


def done(store, text="It warms.", label="correct", by=None):
    check = begun(store, text, by)
    store.finish(check, checked(text, ({"IPCC": label}, label)), run="r1")
    return check


def test_a_verdict_that_was_reached_is_kept_whoever_failed_meanwhile(store):
    check = begun(store)
    store.fail(check, "The other server could not load the model.")
    store.finish(check, full_transcript(), run="r1")
    store.fail(check, "Too late.")
    store.stop(check)
    kept = store.get(check).about
    assert (kept.state, kept.label, kept.error) == ("done", "incorrect", None)


def test_a_check_is_kept_from_asking_to_the_verdict(store):
    check = store.begin(make_claim("It warms.", source="Ann", date="2024"), SETTINGS, setup="two", by="bob")
    waiting = store.get(check)
    assert (waiting.about.state, waiting.about.outcome, waiting.transcript) == ("waiting", None, None)
    assert (waiting.about.claim.source, waiting.about.claim.date, waiting.about.by) == ("Ann", "2024", "bob")
    assert waiting.settings == SETTINGS
    store.assign_job(check, "j1")
    store.finish(check, full_transcript(), run="r2")
    kept = store.get(check)
    assert (kept.about.state, kept.about.outcome, kept.about.label) == ("done", "verdict", "incorrect")
    assert (kept.about.job, kept.about.run) == ("j1", "r2")
    assert kept.transcript == full_transcript()
    assert kept.about.ended_at >= kept.about.asked_at
    assert store.ids_by_run(["r2", "r9"]) == {"r2": check}
    assert check in store
    assert "c0" not in store


def test_what_has_ended_stays_as_it_is_and_what_bore_no_fruit_can_be_opened_again(store):
    check = done(store)
    store.fail(check, "Late.")
    store.stop(check)
    store.reopen(check)
    store.finish(check, checked("It warms.", ({"IPCC": "incorrect"}, "incorrect")), run="r9")
    assert (store.get(check).about.state, store.get(check).about.label) == ("done", "correct")
    broken, halted, failed = (begun(store, f"Claim {number}.") for number in range(3))
    store.fail(broken, "No luck.")
    store.stop(halted)
    store.finish(failed, unchecked("Claim 2.", "failed", error="No answer."), run="r3")
    assert store.get(broken).about.error == "No luck."
    for fruitless in (broken, halted, failed):
        store.reopen(fruitless)
        about = store.get(fruitless).about
        assert (about.state, about.error, about.outcome, about.job, about.run) == ("waiting", None, None, None, None)
    assert store.count_waiting() == 3
    assert list(store.unassigned()) == [broken, halted, failed]


def test_a_job_that_was_stopped_does_not_stop_the_one_that_took_its_place(store):
    check = begun(store)
    store.assign_job(check, "j1")
    store.stop(check)
    store.reopen(check)
    store.stop(check, "j1")
    store.assign_job(check, "j2")
    store.stop(check, "j1")
    assert store.get(check).about.state == "waiting"
    store.stop(check, "j2")
    assert store.get(check).about.state == "stopped"


def test_a_list_goes_on_behind_a_check_whatever_was_asked_meanwhile(store):
    made = [begun(store, f"Claim {number}.") for number in range(4)][::-1]
    first = [one.id for one in store.newest(limit=2)]
    begun(store, "Another claim.")
    assert first == made[:2]
    assert [one.id for one in store.newest(limit=9, after=first[-1])] == made[2:]
    assert [one.id for one in store.newest(CheckFilter("claim 1"), limit=9)] == [made[2]]
    with pytest.raises(InputError, match="no check 'c0'"):
        store.newest(limit=1, after="c0")


def test_the_same_person_finds_the_check_of_the_same_claim_that_is_under_way(store):
    first, second = begun(store, by="ann"), begun(store)
    assert store.find_waiting(make_claim("it  WARMS."), "ann", "two") == first
    assert store.find_waiting(make_claim("It warms."), None, "two") == second
    assert store.find_waiting(make_claim("It warms."), "bob", "two") is None
    assert store.find_waiting(make_claim("It warms."), "ann", "three") is None
    store.stop(first)
    assert store.find_waiting(make_claim("It warms."), "ann", "two") is None


def test_the_last_word_of_each_person_counts_and_earlier_ones_are_kept(store):
    check = done(store)
    for by, opinion, comment in (
        ("ann", "disagree", "No."), ("bob", "agree", ""), ("ann", "agree", "Well."), ("ann", "agree", " Well. "),
        ("cat", "undecided", "Hm."),
    ):  # fmt: skip
        store.review(check, by, opinion, comment)
    assert [(one.by, one.opinion, one.current) for one in store.reviews(check)] == [
        ("ann", "disagree", False), ("bob", "agree", True), ("ann", "agree", True), ("cat", "undecided", True),
    ]  # fmt: skip
    about = store.get(check).about
    assert (about.agree, about.disagree, about.undecided, about.reviewed) == (2, 0, 1, "agreed")


@pytest.mark.parametrize(
    ("opinion", "comment", "sentence"),
    [
        ("love", "", "must be agree, disagree, undecided, not 'love'"),
        ("undecided", "  ", "Say whether you agree, or write a comment."),
        ("agree", "x" * (MAX_COMMENT_LENGTH + 1), "4,001 characters"),
    ],
    ids=["unknown", "empty", "long"],
)
def test_reviews_that_say_nothing_or_too_much_are_refused(local, opinion, comment, sentence):
    check = done(local)
    with pytest.raises(InputError, match=sentence):
        local.review(check, "ann", opinion, comment)
    assert local.reviews(check) == []


def test_only_finished_checks_are_reviewed(local):
    with pytest.raises(InputError, match="once its debate has ended"):
        local.review(begun(local), "ann", "agree")
    with pytest.raises(InputError, match="There is no check 'c0'"):
        local.review("c0", "ann", "agree")
    with pytest.raises(InputError, match="There is no check 'c0'"):
        local.get("c0")


def test_the_share_of_agreement_counts_checks_by_their_majority(store):
    assert store.agreement().agreed is None
    words = {"a": "agree", "d": "disagree", "u": "undecided"}
    for pattern in ("aad", "a", "ddu", "ad", "u", ""):
        check = done(store, f"Claim {pattern}.")
        for number, letter in enumerate(pattern):
            store.review(check, f"person {number}", words[letter], "Because.")
    share = store.agreement()
    assert (share.agreed.value, share.agreed.n, share.divided) == (2 / 3, 3, 1)
    assert share.agreed.interval == wilson_interval(2, 3)


def test_lists_are_filtered_by_words_verdict_and_reviews(store):
    warm, ice, none = done(store, "It WARMS 100%."), done(store, "Ice_melts.", "incorrect"), begun(store, "Ice grows.")
    store.review(warm, "ann", "agree")
    store.review(ice, "ann", "disagree")

    def found(**wanted):
        return [one.id for one in store.list(CheckFilter(**wanted)).checks]

    assert found() == [none, ice, warm]
    assert found(words="warms 100%") == [warm]
    assert found(words="%") == [warm]
    assert found(words="_") == [ice]
    assert found(words="ice") == [none, ice]
    assert found(verdict="incorrect") == [ice]
    assert found(review="agreed") == [warm]
    assert found(review="disagreed") == [ice]
    assert found(review="unreviewed") == [none]
    assert found(review="divided") == found(review="commented") == []
    assert store.verdicts() == ["correct", "incorrect"]
    with pytest.raises(InputError, match="not 'liked'"):
        found(review="liked")


def test_lists_are_filtered_by_topic_collection_source_day_and_reviewer_all_at_once(store):
    def kept(text, day, topic=None, collection="ar6", source="", reviewer=None):
        check = store.begin(
            make_claim(text, source=source), DebateSettings(advocates_from_names([collection])), setup="x"
        )
        store.finish(check, checked(text, ({"IPCC": "incorrect"}, "incorrect")), run=f"r{day}", topic=topic)
        at = datetime.fromisoformat(f"{day}T23:59:59+00:00").timestamp()
        store._database.write(
            lambda done: done.execute(checks.update().where(checks.c.id == check).values(asked_at=at))
        )
        if reviewer:
            store.review(check, reviewer, "agree")
        return check

    cold = kept("It cools.", "2024-02-28", "1.2", source="The Daily, p. 3", reviewer="ann")
    leap = kept("It paused.", "2024-02-29", "1.4", "wmo", reviewer="bob")
    hoax = kept("A hoax.", "2024-03-01", "5.3", source="the daily")
    ten = kept("Ten.", "2024-03-02")

    def found(**wanted):
        listed = store.list(CheckFilter(**wanted))
        assert listed.total == len(listed.checks) == len(list(store.iterate(CheckFilter(**wanted), debates=False)))
        return [one.id for one in listed.checks]

    assert found(topic="1") == [leap, cold]
    assert found(topic="1.4") == [leap]
    assert found(topic="1.") == found(topic="%") == []
    assert found(collection="wmo") == [leap]
    assert found(source="DAILY") == [hoax, cold]
    assert found(since="2024-02-29") == [ten, hoax, leap]
    assert found(until="2024-02-29") == [leap, cold]
    assert found(since="2024-02-29", until="2024-02-29") == [leap]
    assert found(reviewer="ann") == [cold]
    assert found(reviewer="ann", review="disagreed") == found(reviewer="cat") == []
    assert found(words="it", topic="1", collection="ar6", since="2024-01-01", reviewer="ann", verdict="incorrect") == [
        cold
    ]
    assert store.topics() == ["1.2", "1.4", "5.3"]
    assert store.collections() == ["ar6", "wmo"]
    assert store.reviewers() == ["ann", "bob"]
    for wrong in ("2024-02-30", "yesterday"):
        with pytest.raises(InputError, match="is not a date"):
            found(since=wrong)


def test_checks_as_data_are_those_of_the_list_with_debates_or_without(store):
    made = [done(store, f"Claim {number}.", by="ann") for number in range(23)]
    waiting = begun(store, "Not yet.")
    store.review(made[3], "bob", "disagree", "No.")
    store.review(made[3], "bob", "agree")
    whole = list(store.iterate(debates=True))
    assert [one["id"] for one in whole] == [waiting, *made[::-1]]
    for one in whole:
        assert one == json.loads(json.dumps(check_data(store.get(one["id"]), store.reviews(one["id"]))))
    rows = list(store.iterate(CheckFilter(review="agreed"), debates=False))
    assert [(one["id"], one["collections"], one["agree"]) for one in rows] == [(made[3], ["ar6", "wmo"], 1)]


def test_how_long_debates_took_is_known_by_model_and_number_of_advocates(store):
    for seconds, names in ((10.0, ["a", "b"]), (20.0, ["c", "d"]), (99.0, ["a"])):
        check = store.begin(make_claim("It warms."), DebateSettings(advocates_from_names(names)), setup="x")
        store.finish(check, full_transcript(), run="r1", seconds=seconds)
    done(store)  # of which it is not known
    model = DebateSettings().model
    assert store.durations(model, 2) == [20.0, 10.0]
    assert store.durations(model, 3) == store.durations("openai:other", 2) == []


def test_what_a_summary_says_is_what_the_filter_finds(local):
    words = {"a": "agree", "d": "disagree", "u": "undecided"}
    for letters in chain.from_iterable(combinations_with_replacement("adu", size) for size in range(4)):
        check = done(local, f"Claim {letters}.")
        for number, letter in enumerate(letters):
            local.review(check, f"person {number}", words[letter], "Because.")
    summaries = {one.id: one.reviewed for one in local.list().checks}
    assert set(summaries.values()) == set(get_args(Reviewed))
    for wanted in get_args(Reviewed):
        found = {one.id for one in local.list(CheckFilter(review=wanted)).checks}
        assert found == {check for check, reviewed in summaries.items() if reviewed == wanted}


def test_texts_that_databases_cannot_hold_are_mended(store):
    check = begun(store, "It\x00 warms \ud800 now.", source="a\x00b")
    kept = store.get(check)
    assert "\x00" not in kept.about.claim.text + kept.about.claim.source
    store.finish(check, checked("It\x00 warms.", ({"IPCC": "correct"}, "correct")), run="r1")
    assert store.get(check).about.label == "correct"
    store.review(check, "ann", "agree", "Good\x00.")
    assert store.list(CheckFilter(words="\x00")).total in (0, 1)


@pytest.mark.parametrize(("text", "source"), [("x" * 2001, ""), ("x", "y" * 501)], ids=["claim", "source"])
def test_claims_that_are_too_long_are_not_kept(local, text, source):
    with pytest.raises(InputError, match="and the limit is"):
        begun(local, text, source=source)
    assert local.list().total == 0
    assert begun(local, text[:2000], source=source[:500]) in local


def test_a_check_as_data_holds_the_debate_the_settings_and_every_review(local):
    check = begun(local, full_transcript().claim.text)
    local.finish(check, full_transcript(), run="r2")
    local.review(check, "ann", "disagree", "No.")
    local.review(check, "ann", "agree")
    data = json.loads(json.dumps(check_data(local.get(check), local.reviews(check)), allow_nan=False))
    assert from_data(data["transcript"]) == full_transcript()
    assert parse_settings(data["settings"], where="it") == SETTINGS
    assert [(one["opinion"], one["current"]) for one in data["reviews"]] == [("disagree", False), ("agree", True)]
    assert (data["verdict"], data["reviewed"], data["agree"]) == ("incorrect", "agreed", 1)
    assert check_data(local.get(begun(local)), [])["transcript"] is None


@pytest.mark.parametrize(
    "settings",
    [
        DebateSettings(),
        DebateSettings(
            (AdvocateSettings("A", collections=("a", "b"), min_cosine=0.25), AdvocateSettings("m", "plain"))
        ),
        DebateSettings((AdvocateSettings("m", "plain", model="openai:x"),), MediatorSettings("neutral", "openai:y")),
    ],
    ids=["default", "collections", "models"],
)
def test_settings_come_back_from_their_tables(settings):
    tables = json.loads(json.dumps(settings_tables(settings)))
    assert parse_settings(tables, where="it") == settings
