"""Checks that ask a model: their thresholds, their failures, and the bundled encoder on the primer."""

import pytest

from climassay.generation.screening import screen
from climassay.metrics.entailment import Relations
from screened_drafts import PASSAGE, cloze, faults, freeform, mcq


class Scorer:
    """Tells contradictions by what the statement says of temperatures."""

    name = "scripted"

    def __init__(self, found):
        self.found = found
        self.pairs = []

    def score(self, pairs):
        return [None if one is None else one.confirms for one in self.relations(pairs)]

    def relations(self, pairs):
        self.pairs += pairs
        return [self.found for _ in pairs]


class OneProbability:
    name = "two classes"

    def __init__(self, probability):
        self.probability = probability

    def score(self, pairs):
        return [self.probability for _ in pairs]


def test_a_contradiction_stops_and_an_open_question_does_not():
    assert faults(mcq(), entailment=Scorer(Relations(0.1, 0.8, 0.1))) == ["not entailed"]
    assert faults(mcq(), entailment=Scorer(Relations(0.1, 0.1, 0.8))) == []
    assert faults(mcq(), entailment=Scorer(Relations(0.1, 0.8, 0.1)), without=["not entailed"]) == []


def test_a_scorer_of_two_classes_stops_what_is_not_entailed():
    assert faults(cloze(), entailment=OneProbability(0.4)) == ["not entailed"]
    assert faults(cloze(), entailment=OneProbability(0.6)) == []


@pytest.mark.parametrize("scorer", [Scorer(None), OneProbability(None)], ids=["relations", "score"])
def test_a_failed_call_decides_nothing(scorer):
    first, last = screen([freeform()], entailment=scorer)[0].decisions
    assert (first.accepted, first.reason, first.by) == (None, "failed call", "not entailed")
    assert (last.by, last.accepted) == ("screen", True)


def test_the_bundled_encoder_tells_a_question_of_another_subject():
    from climassay.models.encoders import load_encoder

    encoder = load_encoder()
    other = freeform(
        "Why do shells of snails dissolve in sour seawater?", "Carbonate ions become scarce.", passage=PASSAGE
    )
    marked = screen([mcq(), freeform(), other, freeform(error="cut off")], encoder=encoder, only=["off topic"])
    assert [[one.reason for one in draft.decisions] for draft in marked] == [[""], [""], ["off topic"], []]
    assert marked[2].decisions[0].score < 0.45
