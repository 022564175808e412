"""What became of stated certainty: levels, statements dropped and added, and the words side by side."""

import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.confidence.comparison import STATUSES, change_row, compare, word_pieces, write_comparison
from climassay.confidence.extraction import ExtractOptions, extract
from climassay.corpus.documents import Block, Document
from climassay.errors import InputError
from word_counts import WordCounts

OLD = [
    "A.1 Glaciers in the Andes lost mass since 1970 (high confidence). {2.1}",
    "A.2 Heavy rain increased over most land areas (medium confidence). {2.2} Storm surges damage ports and roads.",
    "A.3 Coral reefs decline at 2 °C of warming (very high confidence). {2.3}",
    "A.4 Permafrost soils release methane when they thaw (low confidence). {2.4}",
    "A.5 Fire seasons are very likely longer in boreal forests.",
]
NEW = [
    "A.1 Glaciers in the Andes lost mass since 1970 (very high confidence). {2.1}",
    "A.2 Heavy rain has increased over most of the land areas (medium confidence). {2.2} Storm surges damage ports and "
    "roads (high confidence).",
    "A.3 Coral reefs decline at 2 °C of warming. {2.3}",
    "A.5 Fire seasons are likely longer in boreal forests.",
    "A.6 Urban trees cool streets by day (medium confidence). {2.6}",
]


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path / "cache"))


def statements(paragraphs, headings=()):
    blocks = tuple(Block(text, headings=headings) for text in paragraphs)
    return extract([Document("d", "Report", "d", blocks)], ExtractOptions(untagged=True, context=0))


def changes(old, new, **options):
    return compare(statements(old), statements(new), WordCounts(), **options)


def told(comparison):
    return {
        (one.status, one.old.tag if one.old else "-", one.new.tag if one.new else "-") for one in comparison.changes
    }


def test_every_kind_of_change_is_found_once():
    comparison = changes(OLD, NEW)
    assert told(comparison) == {
        ("level changed", "high", "very high"), ("reworded", "medium", "medium"), ("level added", None, "high"),
        ("level removed", "very high", None), ("dropped", "low", "-"), ("terms changed", None, None),
        ("added", "-", "medium"),
    }  # fmt: skip
    assert sum(comparison.counts.values()) == len(comparison.changes) == 7
    (raised,) = [one for one in comparison.changes if one.status == "level changed"]
    assert raised.step == 1


def test_changes_stand_in_the_order_of_the_new_text_and_what_is_dropped_at_its_place():
    assert [one.status for one in changes(OLD, NEW).changes] == [
        "level changed", "reworded", "level added", "level removed", "dropped", "terms changed", "added",
    ]  # fmt: skip


def test_the_same_text_is_unchanged_and_turned_round_adds_what_was_dropped():
    assert set(changes(OLD, OLD).counts.values()) == {0, 5}
    there, back = changes(OLD, NEW).counts, changes(NEW, OLD).counts
    assert (there["dropped"], there["added"]) == (back["added"], back["dropped"])
    assert there["level added"] == back["level removed"] == 1


def test_moved_paragraphs_are_matched():
    assert changes(OLD, OLD[::-1]).counts["unchanged"] == 5


def test_joined_and_split_sentences_are_not_dropped():
    apart = [
        "Glaciers in the Andes lost mass since 1970 (high confidence). Snow cover fell in spring (low confidence)."
    ]
    joined = [
        "Glaciers in the Andes lost mass since 1970 (high confidence), and snow cover fell in spring (low confidence)."
    ]
    for old, new in ((apart, joined), (joined, apart)):
        counts = changes(old, new).counts
        assert counts["dropped"] == counts["added"] == counts["level changed"] == 0


def test_levels_that_change_places_in_a_sentence_are_both_told():
    old = ["Glaciers in the Andes lose mass (high confidence) and lowland rivers run dry in summer (low confidence)."]
    new = ["Glaciers in the Andes lose mass (low confidence) and lowland rivers run dry in summer (high confidence)."]
    assert sorted(one.step for one in changes(old, new).changes) == [-2, 2]


def test_references_decide_between_the_same_words():
    old = ["B.1 Risks rise with warming (high confidence). {3.1}"]
    new = [
        "C.1 Risks rise with warming (low confidence). {9.1}",
        "C.2 Risks rise with warming (medium confidence). {3.1}",
    ]
    (change,) = [one for one in changes(old, new).changes if one.old]
    assert change.new.label == "C.2"


def test_a_summary_is_looked_for_in_its_chapter():
    chapter = [*NEW, "Glaciers in the Andes lost much mass (low confidence).", "Rivers dry up (high confidence)."]
    comparison = changes([OLD[0], "Lake levels sank (high confidence)."], chapter, kind="summary")
    assert [(one.status, one.new.tag if one.new else None) for one in comparison.changes] == [
        ("level changed", "very high"),
        ("dropped", None),
    ]


@pytest.mark.parametrize("least", [0, 1, -0.5, 2])
def test_a_similarity_that_is_none_is_refused(least):
    with pytest.raises(InputError):
        changes(OLD, NEW, least_similar=least)


def test_a_text_without_statements_is_refused():
    with pytest.raises(InputError, match="second"):
        compare(statements(OLD), [], WordCounts())
    with pytest.raises(InputError, match="calibrated"):
        changes(["Rivers dry up in most summers."], NEW, kind="summary")


@given(st.text("ab ", max_size=30), st.text("ab ", max_size=30))
def test_pieces_are_the_texts_and_equal_pieces_are_equal(old, new):
    left, right = word_pieces(old, new)
    assert "".join(text for text, _ in left) == old.lstrip()
    assert "".join(text for text, _ in right) == new.lstrip()
    same = [[word for text, differs in side if not differs for word in text.split()] for side in (left, right)]
    assert same[0] == same[1]


@pytest.mark.parametrize("suffix", [".csv", ".xlsx", ".jsonl", ".html"])
def test_files_by_suffix(tmp_path, suffix):
    comparison = changes(OLD, NEW)
    path = tmp_path / f"out{suffix}"
    write_comparison(comparison, path, ("first <draft>", "second"))
    if suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert [row["status"] for row in rows] == [one.status for one in comparison.changes]
        assert rows[0]["step"] == "1"
    elif suffix == ".html":
        page = path.read_text(encoding="utf-8")
        assert "first &lt;draft&gt;" in page
        assert all(status in page for status in STATUSES if comparison.counts[status])
        assert "Urban trees cool streets by day" in page
    else:
        assert path.stat().st_size > 0


def test_rows_have_the_words_of_both_sides():
    rows = [change_row(one) for one in changes(OLD, NEW).changes]
    assert len({tuple(row) for row in rows}) == 1
    assert rows[0]["old_words"].startswith("A.1 Glaciers")
    assert rows[-1]["old_words"] is None
