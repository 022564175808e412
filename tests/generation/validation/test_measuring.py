import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from climassay.errors import InputError
from climassay.generation.validation.measuring import (
    auroc,
    precision_at,
    reliability_figure,
    score_validator,
)


def test_auroc_is_sklearns():
    generator = np.random.default_rng(0)
    valid, given = generator.integers(0, 2, 200), np.round(generator.random(200), 1)
    assert auroc(valid, given) == pytest.approx(roc_auc_score(valid, given))
    scores = score_validator(valid, given, np.arange(200))
    assert scores.auroc == pytest.approx(roc_auc_score(valid, given))
    assert scores.auroc_interval.low < scores.auroc < scores.auroc_interval.high


def test_folds_without_skill_are_at_chance_and_not_below():
    """The base rate of the other folds is higher where a fold has more invalid items: pooled it misleads."""
    folds = np.repeat(np.arange(10), 20)
    valid = np.ones(200, dtype=int)
    for fold in range(10):
        valid[20 * fold : 20 * fold + fold] = 0
    given = np.array([valid[folds != fold].mean() for fold in folds])
    pooled = score_validator(valid, given, np.arange(200))
    fair = score_validator(valid, given, np.arange(200), folds=folds)
    assert pooled.auroc < 0.35
    assert fair.auroc == 0.5


def test_the_interval_resamples_passages():
    """Ten copies of an item on one passage say no more than one."""
    generator = np.random.default_rng(1)
    valid = generator.integers(0, 2, 40)
    given = valid * 0.4 + generator.random(40)
    once = score_validator(valid, np.clip(given / 2, 0, 1), np.arange(40)).auroc_interval
    often = score_validator(
        np.repeat(valid, 10), np.clip(np.repeat(given, 10) / 2, 0, 1), np.repeat(np.arange(40), 10)
    ).auroc_interval
    assert often.high - often.low == pytest.approx(once.high - once.low, rel=0.05)


def test_precision_at_a_share():
    valid, given = np.array([1, 0, 1, 0, 1]), np.array([0.9, 0.8, 0.7, 0.2, 0.1])
    assert precision_at(0.6, valid, given).precision.value == pytest.approx(2 / 3)
    assert precision_at(0.01, valid, given).precision.value == 1


def test_a_validator_that_keeps_nothing_has_no_precision():
    scores = score_validator([1, 0, 1], [0.1, 0.2, 0.3], [0, 1, 2])
    assert scores.precision is None
    assert scores.kept == 0


def test_one_kind_of_label_cannot_be_scored():
    with pytest.raises(InputError, match="of one kind"):
        score_validator([1, 1], [0.5, 0.6], [0, 1])


def test_the_reliability_figure_shows_every_bin():
    scores = score_validator([1, 0, 1, 1], [0.95, 0.05, 0.9, 0.55], [0, 1, 2, 3])
    points = reliability_figure(scores).series[0].points
    assert [round(point.y, 2) for point in points] == [0.0, 1.0, 1.0]
