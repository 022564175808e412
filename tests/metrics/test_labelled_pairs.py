"""Labelled pairs: reading them, and what scorers score on them."""

import json

import pytest

from climassay.errors import InputError
from climassay.metrics import Relations
from climassay.metrics.labelled_pairs import LabelledPair, read_pairs, sample_statements, validate_entailment
from scripted_entailment import ScriptedEntailment


def test_climate_fevers_form(tmp_path):
    file = tmp_path / "fever.jsonl"
    rows = [
        {"claim": "Ice  melts.", "evidences": [
            {"evidence": "It shrinks.", "article": "Ice", "evidence_label": "SUPPORTS"},
            {"evidence": "It grows.", "article": "", "evidence_label": "REFUTES"},
            {"evidence": "It is cold.", "article": "Ice", "evidence_label": None},
        ]},
        {"claim": "Seas rise.", "evidences": [{"evidence": "Fish swim.", "evidence_label": "NOT_ENOUGH_INFO"}]},
    ]  # fmt: skip
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    table = read_pairs(file)
    assert table.pairs == (
        LabelledPair("Ice: It shrinks.", "Ice melts.", 0),
        LabelledPair("It grows.", "Ice melts.", 1),
        LabelledPair("Fish swim.", "Seas rise.", 2),
    )
    assert table.skipped == 1


def test_a_table_of_pairs_counts_the_rows_that_lack_something(tmp_path):
    file = tmp_path / "pairs.csv"
    file.write_text("premise,statement,label\nA b.,C d.,Entailment\n,E f.,neutral\nG.,H.,\n", encoding="utf-8")
    table = read_pairs(file)
    assert table.pairs == (LabelledPair("A b.", "C d.", 0),)
    assert table.skipped == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("premise,statement,label\na,b,maybe\n", "'maybe' is not a relation"),
        ("a,b\n1,2\n", "no labelled pairs"),
        ("premise,statement\na,b\n", "and label"),
        ("premise,statement,label\n,,\na,,SUPPORTS\n", "No row"),
        ("claim,evidences\na,nothing\n", "No row"),
        ("claim,evidences\na,[1]\n", "must be a text, or a list"),
    ],
    ids=["label", "columns", "no labels", "empty", "text", "numbers"],
)
def test_what_is_wrong_is_said(tmp_path, text, message):
    file = tmp_path / "pairs.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_pairs(file)


PAIRS = [
    LabelledPair("a", "one", 0),
    LabelledPair("b", "one", 0),
    LabelledPair("c", "two", 1),
    LabelledPair("d", "two", 2),
    LabelledPair("e", "three", 0),
    LabelledPair("f", "three", 1),
]


def scripted(**by_premise):
    return ScriptedEntailment(lambda premise, _: by_premise[premise])


def test_figures_worked_by_hand():
    scorer = scripted(
        a=Relations(0.8, 0.1, 0.1), b=Relations(0.2, 0.3, 0.5), c=Relations(0.1, 0.7, 0.2),
        d=Relations(0.1, 0.1, 0.8), e=None, f=Relations(0.3, 0.1, 0.6),
    )  # fmt: skip
    found = validate_entailment(PAIRS, scorer, resamples=50)
    two, three = found.two_class, found.three_class
    assert (three.n, three.groups, three.failed) == (6, 3, 1)
    # Of a, b, c, e, f: a and c are right, e failed.
    assert (two.accuracy.value, two.n, two.failed) == (pytest.approx(2 / 5), 5, 1)
    assert two.constant.value == pytest.approx(3 / 5)
    # a, c and d.
    assert three.accuracy.value == pytest.approx(3 / 6)
    # P(SUPPORTS): a .889, b .4 against c .125, f .75: three of four pairs in order.
    assert two.auroc.value == pytest.approx(3 / 4)
    # P(confirms): a .8, b .2 against c .1, d .1, f .3: five of six.
    assert found.support_auroc == pytest.approx(5 / 6)
    # P(confirms) below a half: b, c, d and f, of which b supports; of all that were answered a and b do.
    assert (found.marked.value, found.marked.n) == (pytest.approx(3 / 4), 4)
    assert (found.unsupporting.value, found.unsupporting.n) == (pytest.approx(3 / 5), 5)
    assert found.marked.interval.low == 0 < found.marked.interval.high == 1
    assert two.accuracy.interval.low <= 0.4 <= two.accuracy.interval.high
    # Confidence of a .889 right, b .6 wrong, c .875 right, f .75 wrong; bins of .1: .6, .75 and the pair above .8.
    error = (0.6 + 0.75 + 2 * (1 - (0.8889 + 0.875) / 2)) / 4
    assert found.calibration.expected_calibration_error == pytest.approx(error, abs=1e-3)


def test_both_classes_are_needed():
    scorer = scripted(a=Relations(1, 0, 0), b=Relations(1, 0, 0))
    with pytest.raises(InputError, match="both SUPPORTS and REFUTES"):
        validate_entailment(PAIRS[:2], scorer)


def test_statements_are_sampled_whole():
    sample = sample_statements(PAIRS, 2, seed=1)
    assert len({pair.statement for pair in sample}) == 2
    assert list(sample) == [pair for pair in PAIRS if pair.statement in {one.statement for one in sample}]
    assert sample_statements(PAIRS, None) == tuple(PAIRS)
