"""Linear probes that turn a model's activations into preferences.

The input of a contrast probe is the difference between two activations of each ordered pair (i, j): after the answer
that names i, and after the answer that names j. The input of a pointwise probe is one activation per item. Both return
natural log-odds that i has more of the quality than j, so that ``P = 1 / (1 + exp(-log_odds))``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climassay.errors import InputError
from climassay.judging.preferences import FloatArray, IntArray
from climassay.learning.evaluation import HeldOutScores, evaluate
from climassay.learning.linear import logistic
from climassay.learning.model_file import ModelFormat, Provenance, SavedModel, check_array
from climassay.models.contract import OpenWeights

States = NDArray[np.float32]
ProbeKind = Literal["pair", "point"]


def three_way(log_odds: ArrayLike, band: float) -> IntArray:
    """Return the outcome of each log-odds, shape [pairs]: its sign, or 0 if its absolute value is at most ``band``."""
    values = np.asarray(log_odds, dtype=np.float64)
    return np.where(np.abs(values) <= band, 0, np.sign(values)).astype(np.int64)


def log_length_differences(lengths: ArrayLike, pairs: IntArray) -> FloatArray:
    """Return ``log(length_i / length_j)`` of pairs [pairs, 2] of items, shape [pairs].

    Raises:
        InputError: A length (shape [items]) is not a finite number above 0.
    """
    values = np.asarray(lengths, dtype=np.float64)
    if values.ndim != 1 or not (values > 0).all() or not np.isfinite(values).all():
        raise InputError("Text lengths must be finite and above 0; an empty text cannot be judged.")
    return np.asarray(np.log(values[pairs[:, 0]]) - np.log(values[pairs[:, 1]]))


@dataclass(frozen=True, slots=True, eq=False)
class Probe(SavedModel):
    """Linear probe on contrast pairs (PPairS), or on one activation per item.

    The result is ``scale * weights . (state - mean - length_slope * log(length))``. For a pair, the state is the
    difference of the activations after the two answers, ``length`` is the ratio of the two text lengths, and the result
    is log-odds; subtracting the mean over the training pairs removes the effect of the answer token itself. For a
    single item, the result is a score, and the log-odds of a pair are the difference of two scores (Bradley-Terry).

    References:
        Maiya (2024), section 3; Burns et al. (2023), arXiv 2212.03827, for the centring of each side; Bradley and Terry
        (1952), Biometrika 39, 324-345.
    """

    FORMAT = ModelFormat("climassay-probe", 1, "probe", "climassay judge train")

    kind: ProbeKind
    weights: FloatArray
    """Weights, shape [features]; the features of several layers are concatenated."""
    mean: FloatArray
    """Mean state of the training pairs or items, shape [features]."""
    scale: float
    """Factor of the log-odds that calibrates the probabilities (an inverse temperature)."""
    tie_band: float
    """Absolute log-odds up to which two items count as equal."""
    provenance: Provenance
    """Origin of the probe. Its settings are ``method``, ``pairs`` (number of training pairs used for the weights),
    ``ties``, ``converged`` and ``quality``. ``method`` is ``supervised``, ``principal`` (first principal component) or
    ``pointwise``."""
    length_slope: FloatArray | None = None
    """Change of the state per unit of log length, shape [features]; None if length is not regressed out."""

    def log_odds(self, states: States, log_lengths: ArrayLike | None = None) -> FloatArray:
        """Return log-odds that item i has more of the quality than item j or, for single items, scores.

        Args:
            states: Differences of pairs, or activations of items, shape [rows, features].
            log_lengths: log(length_i / length_j) of pairs, or log(length) of items, shape [rows]; required if length
                was regressed out.

        Returns:
            Log-odds or scores, shape [rows]. They are not averaged over both orders of a pair.

        Raises:
            InputError: The number of features differs, states are not finite, or lengths are missing.
        """
        if states.ndim != 2 or states.shape[1] != self.weights.size:
            raise InputError(
                f"This probe reads {self.weights.size} features a row, but the activations have shape {states.shape};"
                " harvest the layers the probe was trained on."
            )
        # In blocks, so that the states are never copied whole.
        blocks = [
            states[start : start + 4096].astype(np.float64) @ self.weights for start in range(0, len(states), 4096)
        ]
        raw_log_odds = (np.concatenate(blocks) if blocks else np.zeros(0)) - self.mean @ self.weights
        if self.length_slope is not None:
            if log_lengths is None:
                raise InputError("This probe was fitted with length regressed out, so it needs the text lengths too.")
            raw_log_odds -= np.asarray(log_lengths, dtype=np.float64) * float(self.length_slope @ self.weights)
        check_finite(raw_log_odds)
        return np.asarray(self.scale * raw_log_odds)

    def predict_proba(self, states: States, log_lengths: ArrayLike | None = None) -> FloatArray:
        """Return the probability that i has more of the quality than j (or than the training mean), shape [rows]."""
        return logistic(self.log_odds(states, log_lengths))

    def predict(self, states: States, log_lengths: ArrayLike | None = None) -> IntArray:
        """Return 1 if a pair's first item has more of the quality, -1 if its second has, 0 for a tie; shape [rows]."""
        return three_way(self.log_odds(states, log_lengths), self.tie_band)

    def score(self, states: States, outcomes: ArrayLike, log_lengths: ArrayLike | None = None) -> HeldOutScores:
        """Score predicted probabilities against ``outcomes`` 1 or -1, shape [rows], omitting rows with ties (0)."""
        truth, positive = np.asarray(outcomes), self.predict_proba(states, log_lengths)
        probabilities = np.stack([1 - positive, positive], axis=1)[truth != 0]
        return evaluate(truth[truth != 0] > 0, probabilities, ("less", "more"))

    def check(self, model: OpenWeights, layers: Sequence[int]) -> None:
        """Validate that the activations come from the model and layers that the probe was trained on.

        A probe without a recorded fingerprint is accepted for any model.

        Raises:
            InputError: The model or the layers differ.
        """
        source = self.provenance
        source.check(self.FORMAT.display_name, model=model)
        if source.layers and tuple(layers) != source.layers:
            layer_lists = [", ".join(map(str, values)) for values in (source.layers, layers)]
            raise InputError(
                f"This probe reads layers {layer_lists[0]} and not {layer_lists[1]}; harvest the probe's layers."
            )

    def contents(self) -> tuple[dict[str, FloatArray], dict[str, Any]]:
        """Return the arrays and metadata to save; see :meth:`SavedModel.contents`."""
        arrays = {"weights": self.weights, "mean": self.mean}
        if self.length_slope is not None:
            arrays["length_slope"] = self.length_slope
        metadata = {"probe": self.kind, "scale": self.scale, "tie_band": self.tie_band}
        return arrays, {**metadata, "provenance": self.provenance.to_dict()}

    @classmethod
    def build(cls, metadata: dict[str, Any], arrays: dict[str, FloatArray]) -> Self:
        """Create a probe from the metadata and arrays of a file; see :meth:`SavedModel.build`."""
        if metadata["probe"] not in ("pair", "point"):
            raise ValueError(f"its kind of probe is {metadata['probe']!r}")
        width = (len(arrays["weights"]),)
        arrays = {name: check_array(name, array, width) for name, array in arrays.items()}
        scale, band = float(metadata["scale"]), float(metadata["tie_band"])
        if not np.isfinite([scale, band]).all() or band < 0:
            raise ValueError("the scale or the tie band has an impossible value")
        source = Provenance.read(metadata["provenance"])
        if "method" not in source.settings:
            raise ValueError("it does not say how it was fitted")
        return cls(
            metadata["probe"], arrays["weights"], arrays["mean"], scale, band, source, arrays.get("length_slope")
        )


load_probe = Probe.load


def check_finite(rows: NDArray[np.floating[Any]]) -> None:
    """Validate that all activations, shape [rows, features], are finite.

    Raises:
        InputError: Some values are not finite; the message states the number of rows with such values.
    """
    n_not_finite = int(np.count_nonzero(~np.isfinite(rows.reshape(len(rows), -1)).all(axis=1)))
    if n_not_finite:
        raise InputError(
            f"{n_not_finite} of {len(rows)} activations are not finite; leave them out and count them as failures."
        )
