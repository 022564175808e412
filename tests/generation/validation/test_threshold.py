import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.errors import InputError
from climassay.generation.validation.threshold import threshold_for


def test_the_lowest_threshold_that_reaches_the_precision():
    # By falling probability: 1 1 1 1 0 1 1 0 0 0; precision 6/7 at seven kept, 0.75 at eight.
    probabilities = np.linspace(1.0, 0.1, 10)
    labels = np.array([1, 1, 1, 1, 0, 1, 1, 0, 0, 0])
    found = threshold_for(0.85, labels, probabilities, least_kept=3)
    assert found.value == pytest.approx(probabilities[6])
    assert found.precision.value == pytest.approx(6 / 7)
    assert found.yield_.value == pytest.approx(0.7)
    assert found.precision.interval.low < 0.85


def test_equal_probabilities_stay_together():
    labels, probabilities = [1, 1, 0, 0], [0.9, 0.5, 0.5, 0.1]
    found = threshold_for(0.6, labels, probabilities, least_kept=1)
    assert (found.value, found.yield_.value) == (0.5, 0.75)
    with pytest.raises(InputError):
        threshold_for(0.9, labels, [0.5] * 4, least_kept=1)


def test_what_cannot_be_reached_is_refused_with_what_can():
    labels, probabilities = [1] * 15 + [0] * 15, np.tile(np.linspace(0, 1, 15), 2)
    with pytest.raises(InputError, match=r"95.0% cannot be reached .* at most 50.0%, by keeping"):
        threshold_for(0.95, labels, probabilities)


def test_too_few_labels_say_nothing():
    with pytest.raises(InputError, match="at least 20 labelled"):
        threshold_for(0.5, [1] * 5, [0.5] * 5)


def test_surely_asks_the_interval():
    labels, probabilities = np.ones(30, dtype=int), np.linspace(0, 1, 30)
    assert threshold_for(0.95, labels, probabilities).yield_.value == 1
    with pytest.raises(InputError, match="is sure of at most 88"):
        threshold_for(0.95, labels, probabilities, surely=True)


@pytest.mark.parametrize("precision", [0.0, -1.0, 1.5])
def test_a_precision_is_a_share(precision):
    with pytest.raises(InputError, match="give a share"):
        threshold_for(precision, [1] * 30, [0.5] * 30)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 10)), min_size=6, max_size=40), st.floats(0.1, 1.0))
def test_whatever_is_chosen_keeps_its_promise_on_the_labels(rows, precision):
    labels = np.array([row[0] for row in rows], dtype=int)
    probabilities = np.array([row[1] for row in rows]) / 10
    try:
        found = threshold_for(precision, labels, probabilities, least_kept=2)
    except InputError:
        shares = [labels[probabilities >= t].mean() for t in set(probabilities) if (probabilities >= t).sum() >= 2]
        assert all(share < precision for share in shares)
        return
    kept = probabilities >= found.value
    assert labels[kept].mean() == pytest.approx(found.precision.value)
    assert found.precision.value >= precision - 1e-9
    # No lower threshold would do.
    lower = [t for t in set(probabilities) if t < found.value]
    assert all(labels[probabilities >= t].mean() < precision for t in lower)
