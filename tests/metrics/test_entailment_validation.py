from dataclasses import replace

import pytest

from climassay.claim_identity import words_id
from climassay.errors import InputError
from climassay.metrics.entailment import Relations
from climassay.metrics.entailment_head import (
    EntailmentHead,
    HeadEntailment,
    LabelledPair,
    sample_statements,
    unseen_pairs,
    validate_entailment,
)

PAIRS = [
    LabelledPair("a", "one", 0),
    LabelledPair("b", "one", 0),
    LabelledPair("c", "two", 1),
    LabelledPair("d", "two", 2),
    LabelledPair("e", "three", 0),
    LabelledPair("f", "three", 1),
]


class Scripted:
    name = "scripted"

    def __init__(self, **by_premise):
        self.by_premise = by_premise

    def relations(self, pairs):
        return [self.by_premise[premise] for premise, _ in pairs]

    def score(self, pairs):
        return [None if one is None else one.confirms for one in self.relations(pairs)]


def test_figures_worked_by_hand():
    scorer = Scripted(
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
    assert two.accuracy.interval.low <= 0.4 <= two.accuracy.interval.high
    # Confidence of a .889 right, b .6 wrong, c .875 right, f .75 wrong; bins of .1: .6, .75 and the pair above .8.
    error = (0.6 + 0.75 + 2 * (1 - (0.8889 + 0.875) / 2)) / 4
    assert found.calibration.expected_calibration_error == pytest.approx(error, abs=1e-3)


def test_both_classes_are_needed():
    scorer = Scripted(a=Relations(1, 0, 0), b=Relations(1, 0, 0))
    with pytest.raises(InputError, match="some are SUPPORTS and some REFUTES"):
        validate_entailment(PAIRS[:2], scorer)


def test_progress_counts_every_pair():
    told = []
    scorer = Scripted(**{pair.premise: Relations(0.5, 0.3, 0.2) for pair in PAIRS})
    validate_entailment(PAIRS, scorer, resamples=5, on_progress=told.append)
    assert sum(told) == len(PAIRS)


def test_statements_are_sampled_whole():
    sample = sample_statements(PAIRS, 2, seed=1)
    assert len({pair.statement for pair in sample}) == 2
    assert list(sample) == [pair for pair in PAIRS if pair.statement in {one.statement for one in sample}]
    assert sample_statements(PAIRS, None) == tuple(PAIRS)


def test_pairs_a_head_was_trained_on_are_left_out():
    scorer = HeadEntailment(EntailmentHead.load())
    assert unseen_pairs(PAIRS, scorer) == tuple(PAIRS)

    known = replace(scorer.head.provenance, trained_on=(words_id(PAIRS[0].statement),))
    scorer.head = replace(scorer.head, provenance=known)
    assert [pair.statement for pair in unseen_pairs(PAIRS, scorer)] == ["two", "two", "three", "three"]
    with pytest.raises(InputError, match="every statement"):
        unseen_pairs(PAIRS[:2], scorer)
    assert unseen_pairs(PAIRS[:2], Scripted()) == tuple(PAIRS[:2])
