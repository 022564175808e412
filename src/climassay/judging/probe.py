"""Linear probes that turn a model's activations into preferences.

A contrast probe reads two activations of each ordered pair (i, j): one where the model's answer says i, one where it
says j. A pointwise probe reads one activation an item. Both answer with natural log-odds that i has more of the quality
than j, so that ``P = 1 / (1 + exp(-log_odds))``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climassay.errors import InputError
from climassay.learning import ModelFormat, Provenance, checked_array
from climassay.models.contract import OpenWeights

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

FORMAT = ModelFormat("climassay-probe", 1, "probe", "climassay judge train")


@dataclass(frozen=True, slots=True, eq=False)
class Contrast:
    """Activations of ordered pairs (i, j), one row a pair; several layers lie side by side in one row."""

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
    """1 where i is judged greater, -1 where j is, 0 within the band (ends included).

    Args:
        log_odds: Shape [pairs].
        band: Half-width in log-odds, 0 or more.
    """
    given = np.asarray(log_odds, dtype=np.float64)
    return np.where(np.abs(given) <= band, 0, np.sign(given)).astype(np.int64)


def log_length_differences(lengths: ArrayLike, pairs: IntArray) -> FloatArray:
    """``log(length_i / length_j)`` of pairs of items.

    Args:
        lengths: Shape [items], text lengths in one unit of your choice, all above 0.
        pairs: Shape [pairs, 2], item indices.

    Returns:
        Shape [pairs].
    """
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
    """A linear probe on one activation an item: n passes instead of n squared.

    ``score = scale * w . [state - mean - length_slope * log(length)]``; the log-odds of a pair is the difference of two
    scores (Bradley-Terry), so only differences carry meaning.

    References:
        Bradley and Terry (1952), Biometrika 39, 324-345.
    """

    weights: FloatArray
    """Shape [features]."""
    mean: FloatArray
    scale: float
    length_slope: FloatArray | None
    tie_band: float
    provenance: ProbeProvenance

    def scores(self, states: NDArray[np.float32], lengths: ArrayLike | None = None) -> FloatArray:
        """One score an item; higher has more of the quality.

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
    """Write a probe; an existing file is replaced at once, never left half written.

    Args:
        probe: The probe.
        path: The file, by custom named ``.safetensors``.

    Raises:
        InputError: The file cannot be written.
        MissingExtraError: safetensors is not installed.
    """
    kind = "pair" if isinstance(probe, PairProbe) else "point"
    needed, optional = _ARRAYS[kind]
    arrays = {name: getattr(probe, name) for name in needed}
    arrays |= {name: value for name in optional if (value := getattr(probe, name)) is not None}
    facts = {
        "probe": kind,
        "scale": probe.scale,
        "tie_band": probe.tie_band,
        "provenance": probe.provenance.facts(),
    }
    FORMAT.save(path, arrays, facts)


def load_probe(path: Path) -> PairProbe | PointProbe:
    """Read a probe exactly as it was saved.

    Raises:
        InputError: The file is missing, damaged, not a probe, or written by a newer climassay.
        MissingExtraError: safetensors is not installed.
    """
    return FORMAT.load(path, _build)


def check_compatible(probe: PairProbe | PointProbe, model: OpenWeights, layers: Sequence[int]) -> None:
    """Make sure that a probe reads the activations it was trained on. Another domain or quality is fine.

    Args:
        probe: The probe; one without a known fingerprint fits any model.
        model: The model at hand.
        layers: Layers of the activations at hand.

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
