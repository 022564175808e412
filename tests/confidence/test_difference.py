"""Two extractions are compared sentence by sentence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.confidence.difference import STATUSES, compare_statements
from climassay.confidence.extraction import ExtractOptions, extract
from climassay.confidence.vocabulary import LEVELS
from climassay.corpus import Block, Document

OLD = (
    "Glaciers in the Andes lost a third of their mass since 1970 (high confidence).",
    "Seas rise for ages (low confidence).",
    "Heat grows in cities (high confidence), and rain moves north (low confidence).",
    "Permafrost has warmed in all Arctic regions since 1980 (high confidence).",
)
NEW = (
    "Heat grows in cities (high confidence), and rain moves north (medium confidence).",
    "Glaciers in the Andes lost a third of their mass since 1970 (medium confidence).",
    "Permafrost has warmed in nearly all Arctic regions since 1980 (high confidence).",
    "Coral reefs bleach more often (very high confidence).",
)


def statements(*paragraphs):
    document = Document(str(hash(paragraphs)), "R", "r", tuple(Block(text) for text in paragraphs))
    return extract([document], ExtractOptions(context=0))


def told(old, new):
    return [
        (row["status"], row["old_levels"], row["new_levels"])
        for row in (change.row() for change in compare_statements(statements(*old), statements(*new)))
    ]


def test_every_sentence_has_its_status_in_the_order_of_the_later_text():
    assert told(OLD, NEW) == [
        ("level changed", ["high", "low"], ["high", "medium"]),
        ("level changed", ["high"], ["medium"]),
        ("reworded", ["high"], ["high"]),
        ("added", [], ["very high"]),
        ("removed", ["low"], []),
    ]


@pytest.mark.parametrize(("old", "new", "status"), [(OLD, (), "removed"), ((), NEW, "added"), (OLD, OLD, "unchanged")])
def test_one_side_alone_and_the_same_twice(old, new, status):
    assert {row[0] for row in told(old, new)} == {status}


def test_the_same_sentence_twice_is_matched_once_each():
    twice = ("Seas rise (high confidence).", "Seas rise (low confidence).")
    assert told(twice, twice[:1]) == [("unchanged", ["high"], ["high"]), ("removed", ["low"], [])]


words = st.lists(st.sampled_from(["seas", "rise", "ice", "melts", "rain", "falls"]), min_size=1, max_size=5)
texts = st.lists(
    st.tuples(words, st.sampled_from(LEVELS)).map(lambda pair: f"{' '.join(pair[0])} ({pair[1]} confidence)."),
    max_size=6,
)


@given(texts, texts)
def test_no_statement_is_lost_or_counted_twice(old, new):
    before, after = statements(*old), statements(*new)
    changes = compare_statements(before, after)
    assert sorted(one.id for change in changes for one in change.old) == sorted(one.id for one in before)
    assert [one.id for change in changes for one in change.new] == [one.id for one in after]
    assert {change.status for change in changes} <= set(STATUSES)
