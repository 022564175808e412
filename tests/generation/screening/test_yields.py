"""The table counts first faults and all faults, by kind."""

import pytest

from climassay.generation import Decision
from climassay.generation.screening import check_counts, screen, table
from climassay.statistics import wilson_interval
from screened_drafts import OPTIONS, cloze, freeform, mcq

DRAFTS = [
    mcq(id="a"),
    mcq(id="b", options=(*OPTIONS[:3], "All of the above")),
    mcq("According to the text, when do droplets freeze?", (*OPTIONS[:3], "None of the above"), id="c"),
    freeform("According to the text, why do droplets not freeze?", id="d"),
    cloze(id="e"),
    cloze(id="f", error="It was cut off."),
]


def test_first_and_any_faults_are_counted_with_intervals():
    counts = {(one.reason, one.kind): one for one in check_counts(screen(DRAFTS))}
    gathering, context = counts["gathering option", None], counts["context reference", None]
    assert (gathering.first, gathering.found) == (1, 2)
    assert (context.first, context.found) == (2, 2)
    assert context.share.n == 5
    assert context.share.interval == pytest.approx(wilson_interval(2, 5))
    assert (counts["context reference", "mcq"].found, counts["context reference", "freeform"].found) == (1, 1)
    assert sum(one.first for (_, kind), one in counts.items() if kind is None) == 3


def test_the_table_adds_up_and_says_what_it_leaves_out():
    shown = table(screen(DRAFTS))
    assert [column.label for column in shown.columns][:4] == ["fault", "mcq", "freeform", "cloze"]
    assert shown.rows[-1][:6] == ("stopped by any", "2 of 3", "1 of 1", "0 of 1", "3", "3")
    assert "never written: 1 draft." in shown.note
    undecided = freeform().decided(Decision("consistency", "m", None, "failed call"))
    assert "because a call failed: 1 draft." in table([undecided]).note


def test_an_empty_file_gives_an_empty_table():
    assert table([]).rows == ()


def test_only_screening_counts():
    judged = freeform().decided(Decision("expert", "ann", False, "wrong answer"))
    assert check_counts([judged]) == ()
