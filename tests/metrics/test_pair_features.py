"""Features of two texts: what rules see of directions, negations and numbers."""

import pytest

from climassay.metrics.pair_features import NAMES, pair_features, resolve_negations
from word_encoder import WordEncoder


def test_resolved_directions():
    assert resolve_negations("It did not decrease.").words >= {"increase"}
    assert not resolve_negations("It did not decrease.").negated
    assert resolve_negations("It isn't here.").negated
    assert not resolve_negations("It is not false.").negated
    assert "decrease" in resolve_negations("No one was there when the sea began to decrease.").words


def test_features_of_a_pair():
    features = pair_features(
        [("Ice did not shrink by 3 m.", "Ice did shrink by 4 m."), ("A b.", "A b.")],
        WordEncoder("local:words", width=24),
    )
    found = dict(zip(NAMES, features.named[0], strict=True))
    assert (found["opposite direction"], found["same direction"], found["new numbers"]) == (1, 0, 1)
    assert features.vectors.shape == (2, 4 * 24)
    same = dict(zip(NAMES, features.named[1], strict=True))
    assert (same["cosine"], same["same words"], same["opposite direction"]) == (pytest.approx(1), 1, 0)
    none = pair_features([], WordEncoder("local:words", width=24))
    assert [block.shape for block in none] == [(0, len(NAMES)), (0, 4 * 24)]
