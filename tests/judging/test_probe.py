"""Probes find what was planted, on items they have not seen, and are kept in files."""

import dataclasses
import json
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from scipy.optimize import minimize

from climassay.errors import InputError
from climassay.judging import Probe, fit_contrast, fitting, load_probe
from climassay.judging.fitting import (
    TrainingPairs,
    average_orders,
    fit_pointwise,
    fit_principal,
    item_folds,
    reduce_rows,
)
from climassay.judging.probe import log_length_differences, three_way
from climassay.judging.training import pairs_within
from climassay.learning import Provenance

WIDTH = 40


def within_groups(groups, keep=None):
    """All unordered pairs of items of one group, of those kept."""
    members = np.arange(len(groups)) if keep is None else np.flatnonzero(keep)
    return pairs_within(np.asarray(groups).tolist(), members, None, np.random.default_rng(0))


def _ordered(n):
    return np.array([(i, j) for i in range(n) for j in range(n) if i != j])


def _planted(n=24, seed=0, noise=0.3, offset=20.0, pairs=None):
    """Contrasts whose difference carries the label difference along one direction, the answer's own effect along
    that direction and others, and much noise elsewhere."""
    rng = np.random.default_rng(seed)
    direction = np.zeros(WIDTH)
    direction[3], direction[7] = 0.6, 0.8
    labels = rng.normal(size=n)
    pairs = _ordered(n) if pairs is None else pairs
    quality = (labels[pairs[:, 0]] - labels[pairs[:, 1]])[:, None] * direction
    syntax = offset * (direction + rng.normal(size=WIDTH))
    spread = np.linspace(0.1, 3, WIDTH) * (1 - direction)
    shared = rng.normal(size=(len(pairs), WIDTH)) * spread
    own = noise * rng.normal(size=(2, len(pairs), WIDTH))
    plus, minus = shared + quality / 2 + syntax + own[0], shared - quality / 2 + own[1]
    return (plus - minus).astype(np.float32), pairs, labels, direction


def _right(odds, pairs, labels):
    truth = np.sign(labels[pairs[:, 0]] - labels[pairs[:, 1]])
    return float(np.mean(np.sign(odds)[truth != 0] == truth[truth != 0]))


def _cosine(a, b):
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_planted_direction_is_recovered_and_transfers_to_new_items():
    contrast, pairs, labels, direction = _planted(n=40, noise=0.7)
    fit = fit_contrast(contrast, pairs, labels, groups=np.zeros(40), standardise=False)
    assert _cosine(fit.probe.weights, direction) > 0.9
    rng = np.random.default_rng(9)
    labels = rng.normal(size=10)
    new = _ordered(10)
    quality = (labels[new[:, 0]] - labels[new[:, 1]])[:, None] * direction
    states = (fit.probe.mean + quality).astype(np.float32)
    assert _right(fit.probe.log_odds(states), new, labels) == 1


def test_without_centring_each_side_the_same_data_cannot_be_fitted():
    from sklearn.linear_model import LogisticRegression

    contrast, pairs, labels, direction = _planted()
    contrast += (1e4 * direction).astype(np.float32)
    answer = labels[pairs[:, 0]] > labels[pairs[:, 1]]
    raw = contrast.astype(np.float64)
    first = np.linalg.svd(raw, full_matrices=False)[2][0]
    assert np.mean((raw @ first > 0) == answer) == pytest.approx(0.5)
    assert LogisticRegression(C=1.0, fit_intercept=False, max_iter=1000).fit(raw, answer).score(raw, answer) < 0.7
    for fit in (fit_contrast, fit_principal):
        probe = fit(contrast, pairs, labels, groups=np.zeros(24), standardise=False).probe
        assert _right(probe.log_odds(contrast), pairs, labels) > 0.85


def test_both_orders_average_is_antisymmetric():
    contrast, pairs, labels, _ = _planted()
    odds = fit_contrast(contrast, pairs, labels, groups=np.zeros(24), regularisation=1.0).probe.log_odds(contrast)
    mirror = [int(np.flatnonzero((pairs == pair[::-1]).all(axis=1))[0]) for pair in pairs]
    averaged = average_orders(odds, pairs)
    assert np.array_equal(averaged, (odds - odds[mirror]) / 2)
    assert np.abs(odds + odds[mirror]).max() > 0.01
    alone = np.array([[0, 1], [1, 0], [2, 1]])
    assert average_orders(np.array([1.0, -3.0, 5.0]), alone).tolist() == [2.0, -2.0, 5.0]


@pytest.mark.parametrize("features", [12, 300], ids=["fewer-features", "more-features"])
def test_reduced_fit_equals_the_full_one(features):
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(1)
    pairs = _ordered(10)
    labels = rng.normal(size=10)
    plus, minus = rng.normal(size=(2, len(pairs), features)).astype(np.float32)
    rows = (plus - minus).astype(np.float64)
    rows -= rows.mean(axis=0)
    rows /= np.sqrt((rows**2).sum(axis=1).mean())
    answer = labels[pairs[:, 0]] > labels[pairs[:, 1]]
    full = LogisticRegression(C=7.0, fit_intercept=False, class_weight="balanced", tol=1e-10, max_iter=5000)
    expected = rows @ full.fit(rows, answer).coef_[0]
    fit = fit_contrast(plus - minus, pairs, labels, groups=np.zeros(10), regularisation=7.0, standardise=False)
    got = fit.probe.log_odds(plus - minus) / fit.probe.scale
    assert got == pytest.approx(expected, abs=2e-4)
    assert fit.probe.provenance.settings["converged"]


def test_balanced_answers_weigh_the_same():
    outcomes, everything = np.array([1, 1, 1, -1, 0, 0]), np.ones(6, dtype=bool)
    basis = reduce_rows(np.eye(6), standardise=False)

    def weights(ties, balanced, training=everything):
        return TrainingPairs(basis, np.zeros((6, 2), int), outcomes, ties=ties, balanced=balanced).weights(training)

    assert weights("drop", True) == pytest.approx([2 / 3, 2 / 3, 2 / 3, 2, 0, 0])
    assert weights("three-way", True) == pytest.approx([2 / 3, 2 / 3, 2 / 3, 2, 1, 1])
    assert weights("drop", False).tolist() == [1, 1, 1, 1, 0, 0]
    assert not weights("drop", True, outcomes == 1).any()


def _tied(ties, seed=0):
    contrast, pairs, labels, _ = _planted(n=24, seed=seed)
    return fit_contrast(contrast, pairs, np.round(labels), groups=np.zeros(24), ties=ties), contrast, pairs, labels


@pytest.mark.parametrize("ties", ["drop", "keep", "three-way"])
def test_every_way_with_ties_learns_the_quality_and_a_band(ties):
    fit, contrast, pairs, labels = _tied(ties)
    odds = average_orders(fit.probe.log_odds(contrast), pairs)
    coarse = np.round(labels)
    outcomes = np.sign(coarse[pairs[:, 0]] - coarse[pairs[:, 1]])
    assert _right(odds, pairs, coarse) > 0.9
    assert fit.probe.tie_band > 0
    chances, predicted = fit.probe.predict_proba(contrast), fit.probe.predict(contrast)
    assert np.log(chances / (1 - chances)) == pytest.approx(fit.probe.log_odds(contrast))
    assert set(predicted.tolist()) == {-1, 0, 1}
    assert (np.sign(chances - 0.5)[predicted != 0] == predicted[predicted != 0]).all()
    figures = fit.probe.score(contrast, outcomes)
    assert figures.n == np.count_nonzero(outcomes)
    assert figures.accuracy.value > 0.9 > figures.constant.value
    assert np.mean(three_way(odds, fit.probe.tie_band) == outcomes) > np.mean(three_way(odds, 0.0) == outcomes)


def test_three_way_loss_is_davidsons():
    # One feature, no centring left to do: compare with an independent search over weight and tie parameter.
    labels = np.array([0.0, 0.0, 1.0, 2.0])
    pairs = _ordered(4)
    rng = np.random.default_rng(4)
    value = np.sign(labels[pairs[:, 0]] - labels[pairs[:, 1]]) + rng.normal(size=len(pairs))
    value -= value.mean()
    value /= np.sqrt((value**2).mean())
    outcome = np.sign(labels[pairs[:, 0]] - labels[pairs[:, 1]])

    def loss(parameters):
        weight, delta = parameters
        exponents = np.stack([weight * value / 2, np.full(len(value), delta), -weight * value / 2])
        shares = np.exp(exponents) / np.exp(exponents).sum(axis=0)
        row = (1 - outcome).astype(int)
        return weight**2 / 2 - 5.0 * np.log(shares[row, np.arange(len(value))]).sum()

    best = minimize(loss, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12}).x[0]
    contrast = value[:, None].astype(np.float32)
    fit = fit_contrast(contrast, pairs, labels, groups=np.zeros(4), regularisation=5.0, ties="three-way")
    assert fit.probe.weights[0] == pytest.approx(best, rel=1e-4)


def test_length_regressed_out_leaves_no_correlation_with_length():
    contrast, pairs, labels, _ = _planted()
    lengths = np.exp(0.5 * labels + np.random.default_rng(5).normal(size=24)) * 100
    stretch = log_length_differences(lengths, pairs)
    plain = fit_contrast(contrast, pairs, labels, groups=np.zeros(24)).probe.log_odds(contrast)
    probe = fit_contrast(contrast, pairs, labels, groups=np.zeros(24), lengths=lengths).probe
    assert abs(np.corrcoef(plain, stretch)[0, 1]) > 0.2
    assert abs(np.corrcoef(probe.log_odds(contrast, stretch), stretch)[0, 1]) < 1e-6
    with pytest.raises(InputError, match="lengths"):
        probe.log_odds(contrast)


def test_first_principal_component_finds_the_dominant_direction_and_its_sign():
    contrast, pairs, labels, direction = _planted(noise=0.1)
    for sign in (1, -1):
        probe = fit_principal(contrast, pairs, sign * labels, groups=np.zeros(24), standardise=False).probe
        assert sign * _cosine(probe.weights, direction) > 0.99
        assert _right(probe.log_odds(contrast), pairs, sign * labels) > 0.95
    assert probe.provenance.regularisation is None


def test_pointwise_equals_an_independent_bradley_terry_solution():
    # States that are unit vectors give every item a strength of its own.
    rng = np.random.default_rng(7)
    states = np.eye(6)
    pairs = rng.integers(0, 6, size=(80, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    labels = np.array([0.0, 1, 2, 3, 4, 5])
    answer = np.sign(labels[pairs[:, 0]] - labels[pairs[:, 1]])
    fit = fit_pointwise(
        states.astype(np.float32), labels, groups=np.zeros(6), pairs=pairs, regularisation=4.0, standardise=False
    )

    def negative(strength):
        # A pair's row has squared norm 2 here, so that unit-sized rows are unit vectors over root 2.
        margin = answer * (strength[pairs[:, 0]] - strength[pairs[:, 1]]) / np.sqrt(2)
        return strength @ strength / 2 + 4.0 * np.logaddexp(0, -margin).sum()

    expected = minimize(negative, np.zeros(6), method="BFGS", options={"gtol": 1e-9}).x / np.sqrt(2)
    got = fit.probe.log_odds(states.astype(np.float32)) / fit.probe.scale
    assert got - got.mean() == pytest.approx(expected - expected.mean(), abs=1e-4)


def test_pointwise_recovers_planted_scores_within_groups_and_ignores_group_effects():
    rng = np.random.default_rng(8)
    groups = np.repeat(np.arange(20), 6)
    quality, direction = rng.normal(size=120), rng.normal(size=WIDTH)
    states = quality[:, None] * direction + rng.normal(size=(120, WIDTH)) + 10 * rng.normal(size=(20, WIDTH))[groups]
    train, test = groups < 14, groups >= 14
    fit = fit_pointwise(
        states.astype(np.float32), np.where(train, quality, np.nan), groups=groups, pairs=within_groups(groups, train)
    )
    pairs = within_groups(groups, test)
    scores = fit.probe.log_odds(states.astype(np.float32))
    assert _right(scores[pairs[:, 0]] - scores[pairs[:, 1]], pairs, quality) > 0.9
    assert fit.probe.provenance.items == 84
    assert fit.probe.provenance.settings["pairs"] == 14 * 15


def test_pointwise_length_regressed_out():
    rng = np.random.default_rng(9)
    labels, states = rng.normal(size=20), rng.normal(size=(20, WIDTH))
    lengths = np.exp(labels + rng.normal(size=20)) * 50
    states[:, 0] += np.log(lengths)
    pairs = within_groups(np.zeros(20))
    probe = fit_pointwise(states.astype(np.float32), labels, groups=np.zeros(20), pairs=pairs, lengths=lengths).probe
    scores = probe.log_odds(states.astype(np.float32), np.log(lengths))
    odds = scores[pairs[:, 0]] - scores[pairs[:, 1]]
    assert abs(float(odds @ log_length_differences(lengths, pairs))) < 1e-6 * np.linalg.norm(odds)


@pytest.mark.parametrize("groups", [np.zeros(24), np.repeat(np.arange(6), 4)], ids=["one-group", "six-groups"])
def test_folds_never_share_an_item_or_a_group(monkeypatch, groups):
    seen = []
    real = fitting.solve

    def spy(problem, training, *others):
        solution = real(problem, training, *others)
        seen.append((problem, training))
        return solution

    monkeypatch.setattr(fitting, "solve", spy)
    contrast, pairs, labels, _ = _planted()
    fit = fit_contrast(contrast, pairs, labels, groups=groups)
    folds = item_folds(pairs, groups)
    units = groups if groups.any() else np.arange(24)
    trained = [set(units[pairs[mask]].ravel()) for _, mask in seen[:-1]]
    held = [set(units[folds == fold]) for fold in range(5)]
    assert len(trained) == 5 * len(fit.path.values)
    for position, used in enumerate(trained):
        assert used
        assert not used & held[position // len(fit.path.values)]
    assert {tuple(folds[pair]) for pair in pairs[fit.held_out.rows]} == {(fold, fold) for fold in range(5)}


def test_random_labels_teach_nothing_unless_pairs_are_split_instead_of_items():
    rng = np.random.default_rng(10)
    pairs = _ordered(40)
    items = rng.normal(size=(40, 60))
    rows = items[pairs[:, 0]] - items[pairs[:, 1]] + 0.1 * rng.normal(size=(len(pairs), 60))
    contrast = rows.astype(np.float32)
    honest, leaky = [], []
    for _ in range(6):
        labels = rng.permutation(40).astype(float)
        fit = fit_contrast(contrast, pairs, labels, groups=np.zeros(40), regularisation=100.0)
        honest.append(fit.path.accuracies[0])
        train = rng.random(len(pairs)) < 0.8
        probe = fit_contrast(contrast[train], pairs[train], labels, groups=np.zeros(40), regularisation=100.0).probe
        leaky.append(_right(probe.log_odds(contrast[~train]), pairs[~train], labels))
    assert np.mean(honest) == pytest.approx(0.5, abs=0.12)
    assert min(leaky) > 0.9


def test_fit_that_runs_out_of_iterations_says_so():
    contrast, pairs, labels, _ = _planted()
    with pytest.warns(RuntimeWarning, match="did not converge in 2"):
        fit = fit_contrast(contrast, pairs, labels, groups=np.zeros(24), regularisation=1e4, max_iter=2)
    assert not fit.probe.provenance.settings["converged"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fit_contrast(contrast, pairs, labels, groups=np.zeros(24)).probe.provenance.settings["converged"]


def test_given_regularisation_needs_no_folds():
    contrast, pairs, labels, _ = _planted(n=3)
    fit = fit_contrast(contrast, pairs, labels, groups=np.zeros(3), regularisation=1.0)
    assert (fit.path, fit.probe.scale, fit.probe.tie_band, len(fit.held_out.rows)) == (None, 1.0, 0.0, 0)
    with pytest.raises(InputError, match="Too few labelled items"):
        fit_contrast(contrast, pairs, labels, groups=np.zeros(3))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": np.zeros(24)}, "ties"),
        ({"labels": np.full(24, np.nan)}, "no label"),
        ({"labels": np.zeros(23)}, "groups"),
        ({"pairs": np.full((552, 2), 24)}, "item 24 of 24"),
        ({"pairs": np.zeros((3, 2), dtype=int)}, "ties"),
        ({"regularisation": 0.0}, "positive"),
        ({"lengths": np.zeros(24)}, "above 0"),
    ],
    ids=["all-tied", "unlabelled", "sizes", "no-such-item", "self", "penalty", "empty-text"],
)
def test_impossible_input_is_refused(change, message):
    contrast, pairs, labels, _ = _planted()
    given = {"pairs": pairs, "labels": labels, "groups": np.zeros(24)} | change
    with pytest.raises(InputError, match=message):
        fit_contrast(contrast, given.pop("pairs"), given.pop("labels"), **given)


def test_one_sided_answers_and_states_that_are_not_finite_are_refused():
    contrast, pairs, labels, _ = _planted()
    ahead = labels[pairs[:, 0]] > labels[pairs[:, 1]]
    with pytest.raises(InputError, match="mirror"):
        fit_contrast(contrast[ahead], pairs[ahead], labels, groups=np.zeros(24))
    probe = fit_contrast(contrast, pairs, labels, groups=np.zeros(24), regularisation=1.0).probe
    contrast[5, 2] = np.inf
    with pytest.raises(InputError, match="1 of 552"):
        fit_contrast(contrast, pairs, labels, groups=np.zeros(24))
    with pytest.raises(InputError, match="1 of 552"):
        probe.log_odds(contrast)
    with pytest.raises(InputError, match="40 features"):
        probe.log_odds(contrast[:, :3])


def kept_probe(kind="pair", slope=True):
    rng = np.random.default_rng(0)
    source = Provenance(
        items=100, model="local:smollm2", fingerprint="a" * 64, layers=(12, -1), settings={"method": "supervised"}
    )
    length = rng.normal(size=6) if slope else None
    return Probe(kind, rng.normal(size=6), rng.normal(size=6), 1 / 3, 0.1 + 0.2, source, length)


@pytest.mark.parametrize("probe", [kept_probe(), kept_probe("point", slope=False)], ids=["pair", "point"])
def test_round_trip_is_exact(tmp_path, probe):
    probe.save(tmp_path / "probe.safetensors")
    again = load_probe(tmp_path / "probe.safetensors")
    for field in dataclasses.fields(probe):
        before, after = getattr(probe, field.name), getattr(again, field.name)
        assert np.array_equal(before, after) if isinstance(before, np.ndarray) else before == after


@pytest.mark.parametrize(
    "changes",
    [{"probe": ["pair"]}, {"scale": "much"}, {"provenance": {"layers": [1]}}, {"tie_band": -1}],
    ids=["kind", "scale", "provenance", "band"],
)
def test_header_that_contradicts_itself_is_refused(tmp_path, changes):
    path = tmp_path / "probe.safetensors"
    kept_probe().save(path)
    with safe_open(path, framework="numpy") as file:
        header = file.metadata()
    save_file(load_file(path), path, header | {key: json.dumps(value) for key, value in changes.items()})
    with pytest.raises(InputError, match="damaged"):
        load_probe(path)


def test_another_model_or_other_layers_are_refused():
    def model(fingerprint):
        return SimpleNamespace(fingerprint=fingerprint * 64, name="local:other")

    kept_probe().check(model("a"), (12, -1))
    with pytest.raises(InputError, match=r"local:smollm2 \(a{12}\).*local:other \(c{12}\)"):
        kept_probe().check(model("c"), (12, -1))
    with pytest.raises(InputError, match="12, -1"):
        kept_probe().check(model("a"), (-1,))
    dataclasses.replace(kept_probe(), provenance=Provenance()).check(model("c"), (-1,))
