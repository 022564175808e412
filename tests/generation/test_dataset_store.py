import json
from collections import Counter
from dataclasses import asdict, replace

import pytest
from hypothesis import given

from climassay.errors import InputError
from climassay.generation import DatasetStore, Decision, read_drafts, write_drafts
from climassay.generation.dataset_results import dataset_report, dataset_stats, stats_figures, stats_tables
from climassay.generation.dataset_store import StoredDraft, decisions
from climassay.generation.draft import draft_from_row, has_term, mask_term
from climassay.generation.recipe import Stream
from climassay.generation.terms import candidates
from climassay.records import Records
from drafts import PASSAGE, make_draft, rejected
from generated_drafts import drafts


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
    found = list(store.stored_drafts("silver"))
    assert [one.draft.id for one in found] == ["a", "b", "c"]
    assert found[0].state == "accepted"


def test_more_drafts_than_one_query_reads(store):
    store.save("silver", [placed(f"q{number:04}", number) for number in range(1203)])
    assert [one.number for one in store.stored_drafts("silver")] == list(range(1203))


def test_a_dataset_is_continued_with_its_own_recipe_even_if_an_entry_no_longer_exists(store):
    store.begin("old", {"seed": 0, "writer": {"model": "m", "brief": None}, "profile": {"name": "auto"}})
    store.begin("old", {"seed": 0, "writer": {"model": "m"}})
    with pytest.raises(InputError, match=r"differ: subject, writer\.model\."):
        store.begin("old", {"seed": 0, "writer": {"model": "n"}, "subject": {"field": "botany"}})


def test_an_unknown_dataset_is_named_with_those_there_are(store):
    with pytest.raises(InputError, match=r"no dataset 'gold'.*silver"):
        list(store.stored_drafts("gold"))


def test_the_list_counts_as_the_drafts_stand_after_every_decision(store, records):
    store.save("silver", [placed("a"), placed("b"), placed("c", 2, error="cut off")])
    other = Decision("expert", "ann", accepted=False, reason="other")
    said = [("a", other), ("b", other), ("b", Decision("expert", "eve", accepted=True))]
    rows = [
        {"dataset": "silver", "key": f"k{at}", "draft": draft, "made_at": at,
         "body": json.dumps({"decision": asdict(decision), "wording": None})}
        for at, (draft, decision) in enumerate(said)
    ]  # fmt: skip
    records.database.write(lambda connection: connection.execute(decisions.insert(), rows))
    assert {one.id: one.decisions for one in store.drafts("silver")} == {
        "a": (other,),
        "b": (other, said[2][1]),
        "c": (),
    }
    [summary] = store.list()
    assert summary.states == Counter(one.state for one in store.stored_drafts("silver"))
    assert summary.states["accepted"] == 1


@given(drafts())
def test_a_draft_comes_back_from_json_as_it_was(made):
    for one in made:
        assert draft_from_row(json.loads(json.dumps(asdict(one)))) == one


def test_drafts_come_back_from_a_file_in_their_order(tmp_path):
    made = [make_draft("b", question="Strange\u2028line\n breaks?"), make_draft("a", decisions=(rejected(),))]
    write_drafts(tmp_path / "new" / "drafts.jsonl", made)
    assert list(read_drafts(tmp_path / "new" / "drafts.jsonl")) == made


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}\n", "line 1: This is not a draft"),
        ("[1]\n", "line 1: it is not an object"),
        ("\nno\n", "line 2: Expecting value"),
    ],
)
def test_a_line_that_is_no_draft_is_named(tmp_path, text, said):
    (tmp_path / "x.jsonl").write_text(text)
    with pytest.raises(InputError, match=said):
        list(read_drafts(tmp_path / "x.jsonl"))


def test_the_first_rejection_stands_and_the_last_word_of_an_expert_stands_above_it():
    first, second = rejected("no question mark"), rejected("figure")
    draft = make_draft(decisions=(first, second))
    assert draft.rejection == first
    kept = draft.with_decisions(Decision("expert", "ann", True))
    assert kept.usable
    against = Decision("expert", "bea", False, "wrong answer")
    assert kept.with_decisions(against).rejection == against
    assert kept.with_decisions(against, Decision("expert", "ann", None)).rejection == against


def test_a_failed_draft_is_not_usable_and_no_question():
    draft = make_draft(error="The answer was cut off.")
    assert not draft.usable
    with pytest.raises(InputError, match="cut off"):
        draft.as_question()


def test_a_cloze_statement_gets_its_gap_at_the_whole_word():
    draft = make_draft(kind="cloze", question="Clouds cloud the cloud question.", answer="cloud")
    assert draft.as_question().question == "Clouds <MASK> the cloud question."
    assert mask_term("The CO2-rich air warms.", "CO2-rich") == "The <MASK> air warms."
    for term in ("", "louds", "rain"):
        with pytest.raises(InputError, match="not a word"):
            mask_term("Clouds form.", term)


def test_a_gap_takes_no_part_of_a_hyphenated_word():
    assert mask_term("The sea-level budget includes the level of lakes.", "level").endswith("the <MASK> of lakes.")
    assert mask_term("Earth's albedo rose - albedo, not ice, matters.", "Earth").startswith("<MASK>'s")
    statement = "In short- and long-term records sea-level rise follows the land–sea contrast."
    assert not has_term("The dust is PM2.5 or finer.", "PM2")
    assert not has_term("The dust is PM2.5 or finer.", "5")
    for term in ("level", "sea", "short", "term", "land"):
        assert not has_term(statement, term)
        with pytest.raises(InputError, match="not a word"):
            mask_term(statement, term)
    assert [word.term for word in candidates(statement)] == ["long-term", "records", "sea-level", "rise", "follows",
                                                             "land–sea", "contrast"]  # fmt: skip


OTHER = replace(PASSAGE, id="sea-1", document_id="sea", document="The sea", section="Currents")
PLACED = [
    StoredDraft(make_draft("a", "mcq", options=("Ice", "Rain"), correct=1, answer="Rain"), "book", 0),
    StoredDraft(make_draft("b", "mcq", level="reasoning", passages=(OTHER,)), "sea", 0),
    StoredDraft(make_draft("c", "mcq", decisions=(rejected("figure"), rejected("length"))), "book", 1),
    StoredDraft(make_draft("d", "cloze", decisions=(rejected("figure"),)), "book", 0),
    StoredDraft(make_draft("e", "cloze", decisions=(rejected("figure"), Decision("expert", "ann", True))), "book", 1),
    StoredDraft(make_draft("f", "cloze", error="The request failed."), "sea", 0),
    StoredDraft(make_draft("g", "cloze", decisions=(Decision("expert", "ann", False, "wrong answer"),)), "sea", 1),
]


def test_every_draft_is_counted_once_under_what_became_of_it():
    stats = dataset_stats("silver", PLACED)
    assert stats.accepted == 3
    cloze = stats.streams[Stream("cloze", "base")]
    assert (cloze.drafts, cloze.accepted, cloze.failed) == (4, 1, 1)
    assert stats.reasons == {
        ("screen", "figure"): Counter({"mcq": 1, "cloze": 1}),
        ("expert", "wrong answer"): Counter({"cloze": 1}),
    }
    assert stats.failures == {"The request failed.": 1}
    assert stats.books["A book"] == {Stream("mcq", "base"): 1, Stream("cloze", "base"): 1}
    assert stats.sections == {"A book": {"Aerosols"}, "The sea": {"Currents"}}


def test_questions_are_measured_by_kind_and_level():
    long = "If the ice melts, as models suggest, what happens to the albedo? And why, in 2.5 words?"
    drafts = [
        StoredDraft(make_draft("a", "mcq", question="Why does ice float?"), "book", 0),
        StoredDraft(make_draft("b", "mcq", question="Why does sea-level rise?"), "book", 1),
        StoredDraft(make_draft("c", "mcq", level="hypothetical", question=long), "book", 2),
        StoredDraft(make_draft("d", "mcq", question=long, decisions=(rejected("length"),)), "book", 3),
    ]
    stats = dataset_stats("silver", drafts)
    assert stats.complexity[Stream("mcq", "base")] == [(1, 5, 5), (1, 5, 5)]
    assert stats.complexity[Stream("mcq", "hypothetical")] == [(2, 11, 15)]
    table = stats_tables(stats)[-1]
    assert [row[:3] for row in table.rows] == [("mcq", "base", "2"), ("mcq", "hypothetical", "1")]
    assert table.rows[0][5] == "5.0"
    assert table.rows[1][4] == "-", "One question has no interval."


def test_an_empty_dataset_has_a_table_and_no_figures():
    stats = dataset_stats("none", [])
    [table] = stats_tables(stats)
    assert table.rows[0][2:6] == ("0", "0", "0", "0")
    assert stats_figures(stats) == []


def test_the_report_shows_each_draft_with_its_decisions_and_escapes_them():
    evil = make_draft("x", question="<script>alert(1)</script>?", decisions=(rejected("figure"),))
    page = dataset_report(
        dataset_stats("silver", PLACED), [*PLACED, StoredDraft(evil, "book", 9)], [("model", "m")]
    ).to_html()
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "rejected: wrong answer" in page
    assert "The request failed." in page
