"""The table counts first faults and all faults, by kind."""

import pytest

from climassay.generation import Decision
from climassay.generation.screening import check_counts, screen, screening_table
from climassay.metrics import Relations
from climassay.statistics import wilson_interval
from screened_drafts import OPTIONS, PASSAGE, cloze, faults, freeform, mcq
from scripted_entailment import ScriptedEntailment

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
    assert (gathering.first, gathering.total) == (1, 2)
    assert (context.first, context.total) == (2, 2)
    assert context.share.n == 5
    assert context.share.interval == pytest.approx(wilson_interval(2, 5))
    assert (counts["context reference", "mcq"].total, counts["context reference", "freeform"].total) == (1, 1)
    assert sum(one.first for (_, kind), one in counts.items() if kind is None) == 3


def test_the_table_adds_up_and_says_what_it_leaves_out():
    shown = screening_table(screen(DRAFTS))
    assert [column.label for column in shown.columns][:4] == ["fault", "mcq", "freeform", "cloze"]
    assert shown.rows[-1][:6] == ("any fault", "2 of 3", "1 of 1", "0 of 1", "3", "3")
    assert "Never written and not counted: 1 draft." in shown.note
    undecided = freeform().with_decisions(Decision("consistency", "m", None, "failed call"))
    assert "because a call failed: 1 draft." in screening_table([undecided]).note


def test_an_empty_file_gives_an_empty_table():
    assert screening_table([]).rows == ()


def test_only_screening_counts():
    judged = freeform().with_decisions(Decision("expert", "ann", False, "wrong answer"))
    assert check_counts([judged]) == ()


def scorer(found):
    return ScriptedEntailment(lambda *_: found)


class OneProbability:
    name = "two classes"

    def __init__(self, probability):
        self.probability = probability

    def score(self, pairs):
        return [self.probability for _ in pairs]


def test_a_contradiction_stops_and_an_open_question_does_not():
    assert faults(mcq(), entailment=scorer(Relations(0.1, 0.8, 0.1))) == ["not entailed"]
    assert faults(mcq(), entailment=scorer(Relations(0.1, 0.1, 0.8))) == []
    assert faults(mcq(), entailment=scorer(Relations(0.1, 0.8, 0.1)), without=["not entailed"]) == []


def test_a_scorer_of_two_classes_stops_what_is_not_entailed():
    assert faults(cloze(), entailment=OneProbability(0.4)) == ["not entailed"]
    assert faults(cloze(), entailment=OneProbability(0.6)) == []


@pytest.mark.parametrize("scorer", [scorer(None), OneProbability(None)], ids=["relations", "score"])
def test_a_failed_call_decides_nothing(scorer):
    first, last = screen([freeform()], entailment=scorer)[0].decisions
    assert (first.accepted, first.reason, first.by) == (None, "failed call", "not entailed")
    assert (last.by, last.accepted) == ("screen", True)


def test_the_bundled_encoder_tells_a_question_of_another_subject():
    from climassay import load_encoder

    encoder = load_encoder()
    other = freeform(
        "Why do shells of snails dissolve in sour seawater?", "Carbonate ions become scarce.", passage=PASSAGE
    )
    marked = screen([mcq(), freeform(), other, freeform(error="cut off")], encoder=encoder, only=["off topic"])
    assert [[one.reason for one in draft.decisions] for draft in marked] == [[""], [""], ["off topic"], []]
    assert marked[2].decisions[0].score < 0.45
