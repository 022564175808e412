"""Linear probes that turn a model's activations into preferences, and how they are fitted.

A contrast probe reads two activations of each ordered pair (i, j): one where the model's answer says i, one where it
says j. A pointwise probe reads one activation per item. Both answer with natural log-odds that i has more of the
quality than j, so that ``P = 1 / (1 + exp(-log_odds))``.

Features far outnumber what a few labelled items can tell (576 a layer and more), so everything rests on the L2 penalty
and on how it is chosen: by cross-validation whose folds share no item (and no group, where there are several). A split
by pair would put (i, j) into training and (j, i), or i's other pairs, into the test: random labels then look learnable.

Every fit is exact in fewer dimensions: the penalised solution lies in the span of the data, so rows are rotated into an
orthonormal basis of that span once, and all folds and penalties are solved there.

Units: features are scaled so that the mean squared norm of a pair's row is 1. With standard normal weights times
sqrt(C) as the prior, C is then the prior variance of a pair's log-odds, whatever the model's width or scale.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climassay.errors import InputError
from climassay.judging.preferences import FloatArray, IntArray
from climassay.learning import ModelFormat, Provenance, checked_array
from climassay.learning.calibration import fit_scale, fit_tie_band
from climassay.learning.pairwise import (
    HeldOut,
    Problem,
    RegularisationPath,
    Solved,
    Ties,
    choose_and_solve,
    item_folds,
    mirror_rows,
    pair_sums,
    reduce_rows,
)
from climassay.models.contract import OpenWeights

FORMAT = ModelFormat("climassay-probe", 1, "probe", "climassay judge train")


@dataclass(frozen=True, slots=True, eq=False)
class Contrast:
    """Activations of ordered pairs (i, j), one row per pair; several layers lie side by side in one row."""

    plus: NDArray[np.float32]
    """Shape [pairs, features]: the state when the answer says i (``1``); features = layers * width."""
    minus: NDArray[np.float32]
    """Shape [pairs, features]: the state when the answer says j (``2``)."""

    def __post_init__(self) -> None:
        if self.plus.ndim != 2 or self.plus.shape != self.minus.shape:
            raise InputError(
                f"Both sides of a contrast need one shape [pairs, features], got {self.plus.shape} and"
                f" {self.minus.shape}."
            )

    def __len__(self) -> int:
        return int(self.plus.shape[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeProvenance(Provenance):
    """Where a probe comes from: how it was fitted, and on whose activations."""

    method: str
    """``supervised``, ``principal`` (first principal component) or ``pointwise``."""
    pairs: int
    """Training pairs that decided the weights."""
    ties: str = "drop"
    converged: bool = True
    quality: str = ""


def three_way(log_odds: ArrayLike, band: float) -> IntArray:
    """1 where i is judged greater, -1 where j is, 0 within the band (ends included); shape [pairs], as the log-odds."""
    given = np.asarray(log_odds, dtype=np.float64)
    return np.where(np.abs(given) <= band, 0, np.sign(given)).astype(np.int64)


def log_length_differences(lengths: ArrayLike, pairs: IntArray) -> FloatArray:
    """``log(length_i / length_j)`` of pairs [pairs, 2] of items, shape [pairs]; lengths [items] are all above 0."""
    logs = _log_lengths(lengths)
    return logs[pairs[:, 0]] - logs[pairs[:, 1]]


@dataclass(frozen=True, slots=True, eq=False)
class PairProbe:
    """A linear probe on contrast pairs (PPairS).

    ``log_odds = scale * w . [(plus - mean_plus) - (minus - mean_minus) - length_slope * log(length_i / length_j)]``

    The two means, taken on training pairs, remove what the answer token alone does to the state.

    References:
        Maiya (2024), section 3; Burns et al. (2023), arXiv 2212.03827, for the centring of each side.
    """

    weights: FloatArray
    """Shape [features]."""
    mean_plus: FloatArray
    mean_minus: FloatArray
    scale: float
    """Log-odds multiplier that calibrates the probabilities (an inverse temperature)."""
    length_slope: FloatArray | None
    """Shape [features]: change of the difference per unit of log length ratio, or None (length not regressed out)."""
    tie_band: float
    """Half-width, in log-odds, within which two items count as equal."""
    provenance: ProbeProvenance

    def log_odds(self, contrast: Contrast, length_difference: ArrayLike | None = None) -> FloatArray:
        """Log-odds that i has more of the quality than j, in this one order; see :func:`both_orders`.

        Args:
            contrast: Activations of the pairs.
            length_difference: Shape [pairs], log(length_i / length_j); needed where length was regressed out.

        Returns:
            Shape [pairs].

        Raises:
            InputError: Another number of features than the probe's, states that are not finite, or lengths missing.
        """
        raw = _project(contrast.plus, self.weights) - _project(contrast.minus, self.weights)
        raw -= (self.mean_plus - self.mean_minus) @ self.weights
        if self.length_slope is not None:
            raw -= _given_lengths(length_difference, len(raw)) * float(self.length_slope @ self.weights)
        return _finite(self.scale * raw)


@dataclass(frozen=True, slots=True, eq=False)
class PointProbe:
    """A linear probe on one activation per item: n passes instead of n squared.

    ``score = scale * w . [state - mean - length_slope * log(length)]``; the log-odds of a pair is the difference of two
    scores (Bradley-Terry), so only differences carry meaning.

    References:
        Bradley and Terry (1952), Biometrika 39, 324-345.
    """

    weights: FloatArray
    mean: FloatArray
    scale: float
    length_slope: FloatArray | None
    tie_band: float
    provenance: ProbeProvenance

    def scores(self, states: NDArray[np.float32], lengths: ArrayLike | None = None) -> FloatArray:
        """One score per item; higher has more of the quality.

        Args:
            states: Shape [items, features].
            lengths: Shape [items], text lengths; needed where length was regressed out.

        Raises:
            InputError: As :meth:`PairProbe.log_odds`.
        """
        raw = _project(states, self.weights) - self.mean @ self.weights
        if self.length_slope is not None:
            logs = _log_lengths(_given_lengths(lengths, len(raw)))
            raw -= logs * float(self.length_slope @ self.weights)
        return _finite(self.scale * raw)


def _project(states: NDArray[np.float32], weights: FloatArray) -> FloatArray:
    """``states @ weights`` in float64, in blocks, so that the states are never copied whole."""
    if states.ndim != 2 or states.shape[1] != weights.size:
        raise InputError(
            f"This probe reads {weights.size} features a row, but the activations have shape {states.shape}; harvest"
            " the layers the probe was trained on."
        )
    blocks = [states[at : at + 4096].astype(np.float64) @ weights for at in range(0, len(states), 4096)]
    return np.concatenate(blocks) if blocks else np.zeros(0)


def _given_lengths(lengths: ArrayLike | None, rows: int) -> FloatArray:
    if lengths is None:
        raise InputError("This probe was fitted with length regressed out, so it needs the text lengths too.")
    given = np.asarray(lengths, dtype=np.float64)
    if given.shape != (rows,):
        raise InputError(f"{rows} activations need as many lengths, got {given.size}.")
    return given


def _log_lengths(lengths: ArrayLike) -> FloatArray:
    given = np.asarray(lengths, dtype=np.float64)
    if given.ndim != 1 or not (given > 0).all() or not np.isfinite(given).all():
        raise InputError("Text lengths must be finite and above 0; an empty text cannot be judged.")
    return np.log(given)


def _finite(values: FloatArray) -> FloatArray:
    # A single bad feature makes its row's sum bad, so that looking at the sums is enough.
    bad = int(np.count_nonzero(~np.isfinite(values)))
    if bad:
        raise InputError(
            f"{bad} of {values.size} activations are not finite; leave them out and count them as failures."
        )
    return values


_ARRAYS = {
    "pair": (("weights", "mean_plus", "mean_minus"), ("length_slope",)),
    "point": (("weights", "mean"), ("length_slope",)),
}
_CLASSES: dict[str, type[PairProbe] | type[PointProbe]] = {"pair": PairProbe, "point": PointProbe}


def save_probe(probe: PairProbe | PointProbe, path: Path) -> None:
    """Write a probe to a file, by custom named ``.safetensors``; an existing one is replaced at once.

    Raises:
        InputError: The file cannot be written.
        MissingExtraError: safetensors is not installed.
    """
    kind = "pair" if isinstance(probe, PairProbe) else "point"
    needed, optional = _ARRAYS[kind]
    arrays = {name: getattr(probe, name) for name in needed}
    arrays |= {name: value for name in optional if (value := getattr(probe, name)) is not None}
    facts = {"probe": kind, "scale": probe.scale, "tie_band": probe.tie_band, "provenance": probe.provenance.facts()}
    FORMAT.save(path, arrays, facts)


def load_probe(path: Path) -> PairProbe | PointProbe:
    """Read a probe exactly as it was saved.

    Raises:
        InputError: The file is missing, damaged, not a probe, or written by a newer climassay.
        MissingExtraError: safetensors is not installed.
    """
    return FORMAT.load(path, _build)


def check_compatible(probe: PairProbe | PointProbe, model: OpenWeights, layers: Sequence[int]) -> None:
    """Make sure that a probe reads the activations it was trained on; one without a fingerprint fits any model.

    Raises:
        InputError: Another model, or other layers.
    """
    source = probe.provenance
    source.check(FORMAT.thing, model=model)
    if source.layers and tuple(layers) != source.layers:
        listed = [", ".join(map(str, given)) for given in (source.layers, layers)]
        raise InputError(f"This probe reads layers {listed[0]} and not {listed[1]}; harvest the probe's layers.")


def _build(facts: dict[str, Any], arrays: dict[str, FloatArray]) -> PairProbe | PointProbe:
    kind = facts["probe"]
    needed, optional = _ARRAYS[kind]
    given: dict[str, Any] = {name: arrays[name] for name in needed} | {name: arrays.get(name) for name in optional}
    for name, array in given.items():
        if array is not None:
            checked_array(name, array, (len(arrays["weights"]),))
    scale, band = float(facts["scale"]), float(facts["tie_band"])
    if not np.isfinite([scale, band]).all() or band < 0:
        raise ValueError("scale or tie band is not a number it can be")
    rest: dict[str, Any] = {"scale": scale, "tie_band": band, "provenance": ProbeProvenance.read(facts["provenance"])}
    return _CLASSES[kind](**given, **rest)


ProbeType = TypeVar("ProbeType", PairProbe, PointProbe)


@dataclass(frozen=True, slots=True, eq=False)
class Fit(Generic[ProbeType]):
    """A probe and the evidence behind its settings."""

    probe: ProbeType
    path: RegularisationPath | None
    """None for the principal component, and where C was given and the items are too few to hold any out."""
    held_out: HeldOut


def fit_contrast(
    contrast: Contrast,
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
) -> Fit[PairProbe]:
    """Fit a supervised contrast probe: centred per side, logistic, without intercept.

    Minimises ``|w|^2 / 2 + C * sum(weight * loss)``. With ``balanced`` the two answers get equal total weight.

    Args:
        contrast: Activations of the ordered pairs, best with every pair's mirror among them.
        pairs: Shape [pairs, 2], item indices (i, j).
        labels: Shape [items], finite for items in pairs; higher has more of the quality.
        groups: Shape [items], what must not be split between training and test (article, topic).
        regularisation: C; None chooses it from 0.01 to 3162 in half decades by cross-validated log-loss.
        ties: Pairs of equal labels are left out (``drop``); count as "not greater" in both orders (``keep``, as in the
            thesis); or are a third outcome (``three-way``) of Davidson's model, whose three probabilities are
            proportional to exp(eta/2), exp(-eta/2) and exp(delta). It is convex, and unlike an ordered logit's its
            ``eta`` is exactly the log-odds that i is greater given that the two differ.
        balanced: Give both answers the same total weight.
        standardise: Scale each feature to unit variance over the pairs given, otherwise all by one factor. For
            one layer it makes little difference; of several, differing tenfold in size, the larger drown the smaller.
        lengths: Shape [items], text lengths: regress each feature's difference on the log length ratio over the
            training pairs (least squares through the origin) and use what is left. None: no.
        seed: Decides the folds.
        max_iter: Bound on iterations of each fit; reaching it warns and is kept in ``provenance.converged``.

    Returns:
        The probe, calibrated: ``scale`` and ``tie_band`` are fitted on held-out log-odds (1 and 0 where the items are
        too few to hold any out). Both orders are averaged for this where both are given.

    Raises:
        InputError: Shapes or labels that do not fit, one answer only, or too few items to choose C.

    References:
        Maiya (2024), section 3; Davidson (1970), J. Am. Stat. Assoc. 65, 317-328; Platt (1999) for the scale.
    """
    outcomes = _outcomes(pairs, labels, groups)
    rows = _centred_difference(contrast, pairs)
    stretch = log_length_differences(lengths, pairs) if lengths is not None else None
    problem = Problem(reduce_rows(rows, standardise), pairs, outcomes, stretch, False, ties, balanced, max_iter)
    solved = _solve(problem, groups, regularisation, seed)
    slope = _slope(rows, stretch) if stretch is not None else None
    used = int(np.count_nonzero(outcomes)) if ties == "drop" else len(pairs)
    probe = PairProbe(
        weights=problem.basis.expand(solved.solution),
        mean_plus=contrast.plus.mean(axis=0, dtype=np.float64),
        mean_minus=contrast.minus.mean(axis=0, dtype=np.float64),
        scale=solved.scale,
        length_slope=slope,
        tie_band=solved.tie_band,
        provenance=ProbeProvenance(
            method="supervised",
            items=len(np.unique(pairs)),
            pairs=used,
            ties=ties,
            regularisation=solved.chosen,
            converged=solved.converged,
            seed=seed,
        ),
    )
    return Fit(probe, solved.path, solved.held_out)


def fit_principal(
    contrast: Contrast,
    pairs: IntArray,
    labels: ArrayLike,
    *,
    groups: ArrayLike,
    standardise: bool = True,
    lengths: ArrayLike | None = None,
) -> Fit[PairProbe]:
    """Take the first principal component of the centred differences; labels decide only its sign, scale and tie band.

    Where a pair's mirror is given, half the difference of the two rows is used: what both orders share (the effect of
    the item that comes first, say) would otherwise often be the largest component.

    Arguments and errors as in :func:`fit_contrast`. ``held_out`` is empty, for the component saw every pair.

    References:
        Burns et al. (2023), arXiv 2212.03827 (CRC); Maiya (2024), section 3.
    """
    outcomes = _outcomes(pairs, labels, groups)
    rows = _centred_difference(contrast, pairs)
    mirror = mirror_rows(pairs)
    rows = np.where((mirror >= 0)[:, None], (rows - rows[mirror]) / 2, rows)
    slope = None
    if lengths is not None:
        stretch = log_length_differences(lengths, pairs)
        slope = _slope(rows, stretch)
        rows -= stretch[:, None] * slope
    basis = reduce_rows(rows, standardise)
    first = np.zeros(basis.coordinates.shape[1])
    first[0] = 1.0
    projected = basis.coordinates[:, 0]
    sign = 1.0 if float(projected @ outcomes) >= 0 else -1.0
    differ = outcomes != 0
    items = len(np.unique(pairs))
    scale = fit_scale(sign * projected[differ], outcomes[differ], independent=items)
    probe = PairProbe(
        weights=sign * basis.expand(first),
        mean_plus=contrast.plus.mean(axis=0, dtype=np.float64),
        mean_minus=contrast.minus.mean(axis=0, dtype=np.float64),
        scale=scale,
        length_slope=slope,
        tie_band=fit_tie_band(sign * scale * projected, outcomes),
        provenance=ProbeProvenance(method="principal", items=items, pairs=len(pairs)),
    )
    nothing = np.zeros(0, dtype=np.int64)
    return Fit(probe, None, HeldOut(nothing, np.zeros(0), nothing))


def fit_pointwise(
    states: NDArray[np.float32],
    labels: ArrayLike,
    *,
    groups: ArrayLike,
    pairs: IntArray,
    regularisation: float | None = None,
    standardise: bool = True,
    lengths: ArrayLike | None = None,
    seed: int = 0,
    max_iter: int = 1000,
) -> Fit[PointProbe]:
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
    stretch = log_length_differences(lengths, pairs) if lengths is not None else None
    problem = Problem(reduce_rows(rows, standardise, pairs), pairs, outcomes, stretch, True, "drop", False, max_iter)
    solved = _solve(problem, groups, regularisation, seed)
    slope = _slope(rows, stretch, pairs) if stretch is not None else None
    used = int(np.count_nonzero(outcomes))
    probe = PointProbe(
        weights=problem.basis.expand(solved.solution),
        mean=mean,
        scale=solved.scale,
        length_slope=slope,
        tie_band=solved.tie_band,
        provenance=ProbeProvenance(
            method="pointwise",
            items=len(present),
            pairs=used,
            regularisation=solved.chosen,
            converged=solved.converged,
            seed=seed,
        ),
    )
    return Fit(probe, solved.path, solved.held_out)


def _solve(problem: Problem, groups: ArrayLike, regularisation: float | None, seed: int) -> Solved:
    solved = choose_and_solve(problem, item_folds(problem.pairs, groups, seed=seed), regularisation)
    if not solved.converged:
        said = f"The probe's fit did not converge in {problem.max_iter} iterations; allow more, or a smaller C."
        warnings.warn(said, RuntimeWarning, stacklevel=3)
    return solved


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
    found = np.sign(values[pairs[:, 0]] - values[pairs[:, 1]]).astype(np.int64)
    if not found.any():
        raise InputError("All training pairs are ties, so that no probe can be fitted; label items that differ.")
    return found


def _check_finite(rows: NDArray[np.floating[Any]]) -> None:
    bad = int(np.count_nonzero(~np.isfinite(rows).all(axis=1)))
    if bad:
        raise InputError(f"{bad} of {len(rows)} activations are not finite; leave them out and count them as failures.")


def _centred_difference(contrast: Contrast, pairs: IntArray) -> FloatArray:
    """Shape [pairs, features]; each side minus its own mean over the pairs, then plus minus minus."""
    if len(contrast) != len(pairs):
        raise InputError(f"{len(pairs)} pairs need as many rows of activations, got {len(contrast)}.")
    rows = contrast.plus.astype(np.float64)
    rows -= contrast.minus
    _check_finite(rows)
    rows -= rows.mean(axis=0)
    return rows


def _slope(rows: FloatArray, stretch: FloatArray, pairs: IntArray | None = None) -> FloatArray:
    """Least-squares slope through the origin of each feature of a pair on its log length ratio; shape [features]."""
    total = float(stretch @ stretch)
    values = stretch if pairs is None else pair_sums(stretch, pairs, len(rows))
    return np.asarray(values @ rows / total if total > 0 else np.zeros(rows.shape[1]), dtype=np.float64)
