from collections import Counter
from dataclasses import replace

from climassay.generation import Decision
from climassay.generation.dataset_results import dataset_report, dataset_stats, stats_figures, stats_tables
from climassay.generation.dataset_store import StoredDraft
from climassay.generation.recipe import Stream
from drafts import PASSAGE, make_draft, rejected

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
    assert (cloze.asked, cloze.accepted, cloze.failed) == (4, 1, 1)
    assert stats.reasons == {
        ("screen", "figure"): Counter({"mcq": 1, "cloze": 1}),
        ("expert", "wrong answer"): Counter({"cloze": 1}),
    }
    assert stats.failures == {"The request failed.": 1}
    assert stats.books["A book"] == {Stream("mcq", "base"): 1, Stream("cloze", "base"): 1}
    assert stats.sections == {"A book": {"Aerosols"}, "The sea": {"Currents"}}


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
