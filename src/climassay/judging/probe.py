"""Linear probes that turn a model's activations into preferences, and how they are fitted.

A contrast probe reads how two activations of each ordered pair (i, j) differ: one where the model's answer says i, one
where it says j. A pointwise probe reads one activation per item. Both answer with natural log-odds that i has more of
the quality than j, so that ``P = 1 / (1 + exp(-log_odds))``.

Features far outnumber what a few labelled items can tell (576 a layer and more), so everything rests on the L2 penalty
and on how it is chosen (:mod:`climassay.learning.pairwise`): features are scaled so that the mean squared norm of a
pair's row is 1, and C is the prior variance of a pair's log-odds, whatever the model's width or scale.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climassay.errors import InputError
from climassay.judging.preferences import FloatArray, IntArray
from climassay.learning.calibration import fit_scale, fit_tie_band
from climassay.learning.evaluation import Evaluation, evaluate
from climassay.learning.model_file import ModelFormat, Provenance, SavedModel, checked_array
from climassay.learning.pairwise import (
    Comparisons,
    HeldOut,
    RegularisationPath,
    Ties,
    fit_pairs,
    item_folds,
    mirror_rows,
    pair_sums,
    reduce_rows,
)
from climassay.models.contract import OpenWeights

States = NDArray[np.float32]
ProbeKind = Literal["pair", "point"]


def three_way(log_odds: ArrayLike, band: float) -> IntArray:
    """1 where i is judged greater, -1 where j is, 0 within the band (ends included); shape [pairs], as the log-odds."""
    given = np.asarray(log_odds, dtype=np.float64)
    return np.where(np.abs(given) <= band, 0, np.sign(given)).astype(np.int64)


def log_length_differences(lengths: ArrayLike, pairs: IntArray) -> FloatArray:
    """``log(length_i / length_j)`` of pairs [pairs, 2] of items, shape [pairs].

    Raises:
        InputError: A length, shape [items], is not above 0.
    """
    given = np.asarray(lengths, dtype=np.float64)
    if given.ndim != 1 or not (given > 0).all() or not np.isfinite(given).all():
        raise InputError("Text lengths must be finite and above 0; an empty text cannot be judged.")
    return np.asarray(np.log(given[pairs[:, 0]]) - np.log(given[pairs[:, 1]]))


@dataclass(frozen=True, slots=True, eq=False)
class Probe(SavedModel):
    """A linear probe on contrast pairs (PPairS), or on one activation per item: n passes instead of n squared.

    ``scale * w . [state - mean - length_slope * log(length)]``. Of a pair, the state is the difference between its two
    sides, whose mean over training pairs is what the answer token alone does to it; the length is the ratio of two
    lengths, and the result are log-odds. Of a single item it is a score; the log-odds of a pair is the difference of
    two scores (Bradley-Terry).

    References:
        Maiya (2024), section 3; Burns et al. (2023), arXiv 2212.03827, for the centring of each side; Bradley and Terry
        (1952), Biometrika 39, 324-345.
    """

    FORMAT = ModelFormat("climassay-probe", 2, "probe", "climassay judge train")

    kind: ProbeKind
    weights: FloatArray
    """Shape [features]; several layers lie side by side."""
    mean: FloatArray
    scale: float
    """Log-odds multiplier that calibrates the probabilities (an inverse temperature)."""
    tie_band: float
    """Half-width, in log-odds, within which two items count as equal."""
    provenance: Provenance
    """Settings are ``method`` (``supervised``, ``principal`` for the first principal component, or ``pointwise``),
    ``pairs`` (training pairs that decided the weights), ``ties``, ``converged`` and ``quality``."""
    length_slope: FloatArray | None = None
    """Shape [features]: change of the state per unit of log length, or None (length not regressed out)."""

    def log_odds(self, states: States, log_lengths: ArrayLike | None = None) -> FloatArray:
        """Log-odds that i has more of the quality than j, in this one order; of single items scores on that scale.

        Args:
            states: Shape [rows, features]: differences of pairs, or activations of items.
            log_lengths: Shape [rows], log(length_i / length_j) or log(length); needed where length was regressed out.

        Returns:
            Shape [rows].

        Raises:
            InputError: Another number of features than the probe's, states that are not finite, or lengths missing.
        """
        if states.ndim != 2 or states.shape[1] != self.weights.size:
            raise InputError(
                f"This probe reads {self.weights.size} features a row, but the activations have shape {states.shape};"
                " harvest the layers the probe was trained on."
            )
        # In blocks, so that the states are never copied whole.
        blocks = [states[at : at + 4096].astype(np.float64) @ self.weights for at in range(0, len(states), 4096)]
        raw = (np.concatenate(blocks) if blocks else np.zeros(0)) - self.mean @ self.weights
        if self.length_slope is not None:
            if log_lengths is None:
                raise InputError("This probe was fitted with length regressed out, so it needs the text lengths too.")
            raw -= np.asarray(log_lengths, dtype=np.float64) * float(self.length_slope @ self.weights)
        _check_finite(raw)
        return np.asarray(self.scale * raw)

    def predict_proba(self, states: States, log_lengths: ArrayLike | None = None) -> FloatArray:
        """P(i has more than j), shape [rows]; of single items P(more than the training items' mean)."""
        return np.asarray(0.5 + 0.5 * np.tanh(self.log_odds(states, log_lengths) / 2))

    def predict(self, states: States, log_lengths: ArrayLike | None = None) -> IntArray:
        """1 where i has more, -1 where j has, 0 where they count as equal; shape [rows]."""
        return three_way(self.log_odds(states, log_lengths), self.tie_band)

    def score(self, states: States, outcomes: ArrayLike, log_lengths: ArrayLike | None = None) -> Evaluation:
        """Figures on rows it was not fitted on whose ``outcomes`` [rows] are 1 or -1; ties (0) are left out."""
        truth, chances = np.asarray(outcomes), self.predict_proba(states, log_lengths)
        given = np.stack([1 - chances, chances], axis=1)[truth != 0]
        return evaluate(truth[truth != 0] > 0, given, ("less", "more"))

    def check(self, model: OpenWeights, layers: Sequence[int]) -> None:
        """Make sure that it reads the activations it was trained on; one without a fingerprint fits any model.

        Raises:
            InputError: Another model, or other layers.
        """
        source = self.provenance
        source.check(self.FORMAT.thing, model=model)
        if source.layers and tuple(layers) != source.layers:
            listed = [", ".join(map(str, given)) for given in (source.layers, layers)]
            raise InputError(f"This probe reads layers {listed[0]} and not {listed[1]}; harvest the probe's layers.")

    def contents(self) -> tuple[dict[str, FloatArray], dict[str, Any]]:
        """See :class:`SavedModel`."""
        arrays = {"weights": self.weights, "mean": self.mean}
        if self.length_slope is not None:
            arrays["length_slope"] = self.length_slope
        facts = {"probe": self.kind, "scale": self.scale, "tie_band": self.tie_band}
        return arrays, {**facts, "provenance": self.provenance.facts()}

    @classmethod
    def build(cls, facts: dict[str, Any], arrays: dict[str, FloatArray]) -> Self:
        """See :class:`SavedModel`; a file of version 1 holds the means of both sides of a pair."""
        if facts["probe"] not in ("pair", "point"):
            raise ValueError(f"its kind of probe is {facts['probe']!r}")
        width = (len(arrays["weights"]),)
        known = {name: checked_array(name, array, width) for name, array in arrays.items()}
        mean = known["mean_plus"] - known["mean_minus"] if "mean_plus" in known else known["mean"]
        if facts["version"] == 1 and (facts["probe"] == "pair") != ("mean_plus" in known):
            raise ValueError("its arrays are those of another kind of probe")
        scale, band = float(facts["scale"]), float(facts["tie_band"])
        if not np.isfinite([scale, band]).all() or band < 0:
            raise ValueError("the scale or the tie band has an impossible value")
        source = Provenance.read(facts["provenance"])
        if "method" not in source.settings:
            raise ValueError("it does not say how it was fitted")
        return cls(facts["probe"], known["weights"], mean, scale, band, source, known.get("length_slope"))


def save_probe(probe: Probe, path: Path) -> None:
    """Write a probe to a file; see :meth:`SavedModel.save`."""
    probe.save(path)


load_probe = Probe.load


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A probe and the evidence behind its settings."""

    probe: Probe
    path: RegularisationPath | None
    """None for the principal component, and where C was given and the items are too few to hold any out."""
    held_out: HeldOut


def fit_contrast(
    states: States,
    pairs: IntArray,
    labels: ArrayLike,
    *,
    groups: ArrayLike,
    regularisation: float | None = None,
    ties: Ties = "drop",
    balanced: bool = True,
    standardise: bool = True,
    lengths: ArrayLike | None = None,
    seed: int = 0,
    max_iter: int = 1000,
) -> Fit:
    """Fit a supervised contrast probe: centred per side, logistic, without intercept.

    Minimises ``|w|^2 / 2 + C * sum(weight * loss)``. With ``balanced`` the two answers get equal total weight.

    Args:
        states: Differences of the ordered pairs, shape [pairs, features], best with every pair's mirror among them.
        pairs: Shape [pairs, 2], item indices (i, j).
        labels: Shape [items], finite for items in pairs; higher has more of the quality.
        groups: Shape [items], what must not be split between training and test (article, topic).
        regularisation: C; None chooses it from 0.01 to 3162 in half decades by cross-validated log-loss.
        ties: Pairs of equal labels are left out (``drop``); count as "not greater" in both orders (``keep``, as in the
            thesis); or are a third outcome (``three-way``), see :func:`~climassay.learning.pairwise.davidson_loss`.
        balanced: Give both answers the same total weight.
        standardise: Scale each feature to unit variance over the pairs given, otherwise all by one factor. For
            one layer it makes little difference; of several, differing tenfold in size, the larger drown the smaller.
        lengths: Shape [items], text lengths: regress each feature's difference on the log length ratio over the
            training pairs (least squares through the origin) and use what is left. None: no.
        seed: Decides the folds.
        max_iter: Bound on iterations of each fit; reaching it warns and is kept as ``converged``.

    Returns:
        The probe, calibrated: ``scale`` and ``tie_band`` are fitted on held-out log-odds (1 and 0 where the items are
        too few to hold any out). Both orders are averaged for this where both are given.

    Raises:
        InputError: Shapes or labels that do not fit, one answer only, or too few items to choose C.

    References:
        Maiya (2024), section 3; Davidson (1970), J. Am. Stat. Assoc. 65, 317-328; Platt (1999) for the scale.
    """
    outcomes = _outcomes(pairs, labels, groups)
    rows, mean = _centred(states, pairs)
    stretch, slope = _length_slope(rows, lengths, pairs)
    basis = reduce_rows(rows, standardise)
    given = Comparisons(basis, pairs, outcomes, stretch, ties=ties, balanced=balanced, max_iter=max_iter)
    return _fit("supervised", given, mean, slope, groups, regularisation, seed)


def fit_pointwise(
    states: States,
    labels: ArrayLike,
    *,
    groups: ArrayLike,
    pairs: IntArray,
    regularisation: float | None = None,
    standardise: bool = True,
    lengths: ArrayLike | None = None,
    seed: int = 0,
    max_iter: int = 1000,
) -> Fit:
    """Fit a Bradley-Terry probe on one activation per item: logistic on the difference of two items' states.

    Every pair weighs the same, so that a group counts by its number of pairs. Arguments and errors as in
    :func:`fit_contrast`, except that ``states`` has the shape [items, features], ``pairs`` are unordered pairs within
    groups, shape [pairs, 2], whose ties decide the tie band only, ``labels`` are NaN for items in no pair, and the
    slope of ``lengths`` is fitted on differences within pairs.
    """
    values = np.asarray(labels, dtype=np.float64)
    outcomes = _outcomes(pairs, values, groups)
    if states.ndim != 2 or len(states) != len(values):
        raise InputError(f"{len(values)} labelled items need as many rows of states, got shape {states.shape}.")
    present = np.unique(pairs)
    _check_finite(states[present])
    mean = states[present].mean(axis=0, dtype=np.float64)
    # Items in no pair (no label, or kept for a test) stay at the mean and have no say in the scaling.
    rows = np.zeros(states.shape)
    rows[present] = states[present] - mean
    stretch, slope = _length_slope(rows, lengths, pairs, pointwise=True)
    given = Comparisons(reduce_rows(rows, standardise, pairs), pairs, outcomes, stretch, True, max_iter=max_iter)
    return _fit("pointwise", given, mean, slope, groups, regularisation, seed)


def fit_principal(
    states: States,
    pairs: IntArray,
    labels: ArrayLike,
    *,
    groups: ArrayLike,
    standardise: bool = True,
    lengths: ArrayLike | None = None,
) -> Fit:
    """Take the first principal component of the centred differences; labels decide only its sign, scale and tie band.

    Where a pair's mirror is given, half the difference of the two rows is used: what both orders share (the effect of
    the item that comes first, say) would otherwise often be the largest component.

    Arguments and errors as in :func:`fit_contrast`. ``held_out`` is empty, for the component saw every pair.

    References:
        Burns et al. (2023), arXiv 2212.03827 (CRC); Maiya (2024), section 3.
    """
    outcomes = _outcomes(pairs, labels, groups)
    rows, mean = _centred(states, pairs)
    mirror = mirror_rows(pairs)
    rows = np.where((mirror >= 0)[:, None], (rows - rows[mirror]) / 2, rows)
    stretch, slope = _length_slope(rows, lengths, pairs)
    if stretch is not None and slope is not None:
        rows -= stretch[:, None] * slope
    basis = reduce_rows(rows, standardise)
    projected = basis.coordinates[:, 0]
    sign = 1.0 if float(projected @ outcomes) >= 0 else -1.0
    differ, items = outcomes != 0, len(np.unique(pairs))
    scale = fit_scale(sign * projected[differ], outcomes[differ], independent=items)
    weights = sign * basis.expand(np.eye(1, basis.coordinates.shape[1])[0])
    settings = {"method": "principal", "pairs": len(pairs), "ties": "drop", "converged": True}
    source = Provenance(items=items, settings=settings)
    band = fit_tie_band(sign * scale * projected, outcomes)
    nothing = np.zeros(0, dtype=np.int64)
    return Fit(Probe("pair", weights, mean, scale, band, source, slope), None, HeldOut(nothing, np.zeros(0), nothing))


def _fit(
    method: str,
    given: Comparisons,
    mean: FloatArray,
    slope: FloatArray | None,
    groups: ArrayLike,
    regularisation: float | None,
    seed: int,
) -> Fit:
    solved = fit_pairs(given, item_folds(given.pairs, groups, seed=seed), regularisation)
    if not solved.converged:
        said = f"The probe's fit did not converge in {given.max_iter} iterations; allow more, or a smaller C."
        warnings.warn(said, RuntimeWarning, stacklevel=3)
    used = int(np.count_nonzero(given.outcomes)) if given.ties == "drop" else len(given.pairs)
    settings = {"method": method, "pairs": used, "ties": given.ties, "converged": solved.converged}
    items = len(np.unique(given.pairs))
    source = Provenance(items=items, regularisation=solved.regularisation, seed=seed, settings=settings)
    kind: ProbeKind = "point" if given.pointwise else "pair"
    probe = Probe(kind, solved.weights, mean, solved.scale, solved.tie_band, source, slope)
    return Fit(probe, solved.path, solved.held_out)


def _outcomes(pairs: IntArray, labels: ArrayLike, groups: ArrayLike) -> IntArray:
    """1, 0 or -1 for each pair, after checking that pairs, labels and groups belong together."""
    values = np.asarray(labels, dtype=np.float64)
    if values.ndim != 1 or np.asarray(groups).shape != values.shape:
        raise InputError(f"{values.size} labels need as many groups, got {np.asarray(groups).size}.")
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs):
        raise InputError(f"Pairs must have shape [pairs, 2] with at least one pair, got {pairs.shape}.")
    if pairs.min() < 0 or pairs.max() >= len(values):
        raise InputError(f"A pair names item {pairs.max() if pairs.min() >= 0 else pairs.min()} of {len(values)}.")
    if not np.isfinite(values[pairs]).all():
        raise InputError("Some items in training pairs have no label; leave those pairs out.")
    result = np.sign(values[pairs[:, 0]] - values[pairs[:, 1]]).astype(np.int64)
    if not result.any():
        raise InputError("All training pairs are ties, so no probe can be fitted; label items that differ.")
    return result


def _check_finite(rows: NDArray[np.floating[Any]]) -> None:
    bad = int(np.count_nonzero(~np.isfinite(rows.reshape(len(rows), -1)).all(axis=1)))
    if bad:
        raise InputError(f"{bad} of {len(rows)} activations are not finite; leave them out and count them as failures.")


def _centred(states: States, pairs: IntArray) -> tuple[FloatArray, FloatArray]:
    """Differences of pairs less their mean over the pairs, shape [pairs, features], and the mean."""
    if states.ndim != 2 or len(states) != len(pairs):
        raise InputError(f"{len(pairs)} pairs need as many rows of activations, got shape {states.shape}.")
    _check_finite(states)
    rows = states.astype(np.float64)
    mean = rows.mean(axis=0)
    return rows - mean, mean


def _length_slope(
    rows: FloatArray, lengths: ArrayLike | None, pairs: IntArray, *, pointwise: bool = False
) -> tuple[FloatArray | None, FloatArray | None]:
    """Log length ratios of pairs, and the least-squares slope through the origin of each feature of a pair on them."""
    if lengths is None:
        return None, None
    stretch = log_length_differences(lengths, pairs)
    total = float(stretch @ stretch)
    values = pair_sums(stretch, pairs, len(rows)) if pointwise else stretch
    return stretch, np.asarray(values @ rows / total if total > 0 else np.zeros(rows.shape[1]), dtype=np.float64)
