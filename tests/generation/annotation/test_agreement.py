import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from climassay.generation import Wording
from climassay.generation.annotation import Label
from climassay.generation.annotation.agreement import measure_agreement, summarise_annotators
from climassay.statistics import cohen_kappa, fleiss_kappa, krippendorff_alpha


def label(draft, who, accepted, **fields):
    plain = {"reasons": () if accepted else ("wrong answer",), "remark": "", "wording": None, "seconds": None}
    plain |= {"made_at": 1.0, "withdrawn_at": None, "adjudicates": False} | fields
    return Label(key=f"{draft}-{who}", draft=draft, annotator=who, accepted=accepted, **plain)


def table(rows):
    """Labels of annotators a, b, c ...; each row is an item, None where an annotator is silent."""
    return [
        label(f"q{number}", "abcdef"[place], said)
        for number, row in enumerate(rows)
        for place, said in enumerate(row)
        if said is not None
    ]


@settings(max_examples=15)
@given(st.lists(st.tuples(*[st.sampled_from([True, False, None])] * 3), min_size=2, max_size=12))
def test_the_figures_are_those_of_the_statistics_room(rows):
    found = measure_agreement(table(rows))
    several = [row for row in rows if sum(one is not None for one in row) >= 2]
    assert found.items == len(several)
    if not several:
        assert (found.raw, found.fleiss, found.krippendorff, found.pairs) == (None, None, None, ())
        return
    columns = list(zip(*several, strict=True))
    assert found.krippendorff.value == pytest.approx(krippendorff_alpha(columns))
    full = [row for row in several if None not in row]
    if 2 * len(full) > len(several):
        assert found.fleiss.value == pytest.approx(fleiss_kappa([[row.count(False), row.count(True)] for row in full]))
    for pair in found.pairs:
        both = [(row["abc".index(pair.first)], row["abc".index(pair.second)]) for row in several]
        both = [one for one in both if None not in one]
        assert pair.kappa.value == pytest.approx(cohen_kappa(*zip(*both, strict=True)))


def test_adjudications_are_no_evidence_of_agreement():
    labels = [label("q0", "a", True), label("q0", "eve", True, adjudicates=True)]
    assert measure_agreement(labels).items == 0


def test_what_each_annotator_did():
    labels = [
        label("q0", "ann", True, seconds=4.0),
        label("q0", "bob", True, seconds=10.0),
        label("q1", "ann", False, seconds=8.0, reasons=("wrong answer", "bad context")),
        label("q1", "bob", True, wording=Wording("What?", "That.")),
        label("q1", "eve", False, adjudicates=True),
        label("q2", "ann", False),
    ]
    ann, bob, eve, zoe = summarise_annotators(labels, ["bob", "zoe", "bob"])
    assert (ann.annotator, ann.labels, ann.accepted.value, ann.median_seconds) == ("ann", 3, pytest.approx(1 / 3), 6.0)
    assert ann.reasons == {"wrong answer": 2, "bad context": 1}
    assert (ann.agreement.value, ann.agreement.n) == (1.0, 1), "q0 and q2 were not adjudicated"
    assert (bob.agreement.value, bob.edits, bob.skips, bob.median_seconds) == (0.0, 1, 2, 10.0)
    assert (eve.labels, eve.adjudications, eve.accepted, eve.agreement) == (0, 1, None, None)
    assert (zoe.skips, zoe.labels) == (1, 0)


def test_labels_are_confirmed_by_the_last_adjudication_and_nobody_by_their_own():
    labels = [
        label("q0", "ann", True),
        label("q0", "bob", False),
        label("q0", "eve", False, adjudicates=True),
        label("q0", "ann", True, adjudicates=True),
    ]
    ann, bob, _ = summarise_annotators(labels, [])
    assert (ann.agreement, bob.agreement.value) == (None, 0.0)
    assert all(one.agreement is None for one in summarise_annotators(labels[:2], []))


def test_one_question_has_coefficients_without_an_interval():
    one = measure_agreement(table([[True, False, True]]))
    coefficients = [one.fleiss, one.krippendorff, *(pair.kappa for pair in one.pairs)]
    assert {(each.interval, each.n) for each in coefficients} == {(None, 1)}
    assert measure_agreement(table([[True, False, True], [True, True, True]])).krippendorff.interval is not None
