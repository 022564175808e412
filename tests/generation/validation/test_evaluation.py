import numpy as np
import pytest

from climassay.errors import InputError
from climassay.generation.validation.labels import chosen_threshold, precision_at, score_validator


def test_precision_at_a_share():
    valid, given = np.array([1, 0, 1, 0, 1]), np.array([0.9, 0.8, 0.7, 0.2, 0.1])
    assert precision_at(0.6, valid, given).precision.value == pytest.approx(2 / 3)
    assert precision_at(0.01, valid, given).precision.value == 1


def test_a_validator_that_keeps_nothing_has_no_precision():
    scores = score_validator([1, 0, 1], [0.1, 0.2, 0.3], [0, 1, 2])
    assert [one.share for one in scores.kept] == [1.0, 0.5, 0.8]
    assert scores.kept[0].precision.value == pytest.approx(2 / 3)


def test_one_kind_of_label_cannot_be_scored():
    with pytest.raises(InputError, match="of one kind"):
        score_validator([1, 1], [0.5, 0.6], [0, 1])


def test_what_could_not_be_judged_is_neither_kept_nor_right():
    scores = score_validator([1, 0, 1, 1], [0.5, 0.2, np.nan, 0.9], [0, 1, 2, 3])
    assert (scores.evaluation.n, scores.evaluation.failed) == (4, 1)
    assert scores.evaluation.accuracy.value == pytest.approx(3 / 4)
    # One half itself is kept.
    assert scores.kept[1].share == pytest.approx(2 / 3)
    assert scores.kept[1].precision.value == 1
    assert scores.calibration.n == 3


def test_a_precision_out_of_reach_is_told_and_one_that_is_none_refused():
    valid, given = np.arange(40) % 2, np.linspace(0, 1, 40)
    assert chosen_threshold(None, valid, given) == (None, None)
    threshold, refusal = chosen_threshold(0.99, valid, given)
    assert threshold is None
    assert "cannot be reached" in refusal
    with pytest.raises(InputError, match="give a share"):
        chosen_threshold(1.5, valid, given)
