"""Regressions from blocks of features to levels: nominal, one set of weights a level; ordinal, one set for all."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

FloatArray = NDArray[np.float64]
Block: TypeAlias = "FloatArray | csr_array"
"""Features of one source, shape [n, features of the block]; counts of words are sparse."""
IntArray = NDArray[np.int64]
Kind = Literal["nominal", "ordinal"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_STEPS = 300


@dataclass(frozen=True, slots=True, eq=False)
class LevelModel:
    """From features to probabilities of the levels.

    Nominal: ``softmax(features @ weights + bias)``. Ordinal (proportional odds, McCullagh 1980): weights have one
    column s, and ``P(level > j) = logistic(s - bias[j])`` for ascending biases, one fewer than there are levels.
    """

    kind: Kind
    weights: FloatArray
    """Shape [features, levels]; [features, 1] for ordinal ones."""
    bias: FloatArray
    """Shape [levels]; [levels - 1] for ordinal ones."""

    @property
    def levels(self) -> int:
        """Number of levels."""
        return len(self.bias) + (self.kind == "ordinal")

    def probabilities(self, blocks: Sequence[Block]) -> FloatArray:
        """Shape [n, levels], for blocks of together as many features as there are weights.

        Raises:
            InputError: Another number of features.
        """
        width = sum(block.shape[1] for block in blocks)
        if width != len(self.weights):
            raise InputError(f"This tagger reads {len(self.weights)} features, but there are {width}.")
        ends_at = np.cumsum([block.shape[1] for block in blocks])
        parts = np.split(self.weights, ends_at[:-1])
        read = sum((np.asarray(block @ part) for block, part in zip(blocks, parts, strict=True)), start=np.zeros(1))
        if self.kind == "nominal":
            return softmax(read + self.bias)
        above = _logistic(read - self.bias)
        ends = np.ones((len(above), 1))
        return np.asarray(-np.diff(np.concatenate([ends, above, 0 * ends], axis=1), axis=1))


def fit_levels(
    blocks: Sequence[Block], truth: IntArray, levels: int, *, kind: Kind = "nominal", regularisation: float = 1.0
) -> LevelModel:
    """Fit on blocks that are each scaled to mean squared norm 1, so that a wide block does not drown a narrow one.

    Args:
        blocks: Each of shape [n, features of the block].
        truth: Levels, shape [n].
        levels: How many there are; one that does not occur gets the smallest bias there is.
        kind: Nominal or ordinal.
        regularisation: C: prior variance of the weights of scaled features, times the number of features' norm.

    Raises:
        InputError: All items have one level.
    """
    if len(np.unique(truth)) < 2:
        raise InputError("A tagger learns from statements of at least two levels.")
    if kind not in KINDS:
        raise InputError(f"There is no kind {kind!r} of tagger; choose one of {', '.join(KINDS)}.")
    from scipy.sparse import csr_array, hstack, issparse

    prepared = [_prepared(block) for block in blocks]
    sparse = any(issparse(block) for block in blocks)
    joined = (
        hstack([csr_array(part) for part, _, _ in prepared], format="csr")
        if sparse
        else np.concatenate([part for part, _, _ in prepared], axis=1)
    )
    weights, bias = (_nominal if kind == "nominal" else _ordinal)(joined, truth, levels, regularisation)
    scale = np.concatenate([np.full(part.shape[1], factor) for part, factor, _ in prepared])
    mean = np.concatenate([middle for _, _, middle in prepared])
    weights = weights * scale[:, None]
    shift = mean @ weights
    return LevelModel(kind, weights, bias - shift if kind == "nominal" else bias + shift)


def softmax(logits: FloatArray) -> FloatArray:
    """Probabilities along the last axis, of any shape [..., levels]."""
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def _prepared(block: Any) -> tuple[Any, float, FloatArray]:
    """A block of mean squared norm 1; what it was multiplied by; the mean taken off before.

    Features of a block keep their proportions: rare words stay small, and dimensions of little spread too. Only dense
    blocks are centred, for hidden states lie far off zero, and centring would fill a sparse one.
    """
    from scipy.sparse import issparse

    if issparse(block):
        norm = float(np.sqrt(block.multiply(block).sum() / max(block.shape[0], 1)))
        mean = np.zeros(block.shape[1])
    else:
        mean = np.asarray(block).mean(axis=0)
        block = np.asarray(block) - mean
        norm = float(np.sqrt((block**2).sum(axis=1).mean()))
    factor = 1 / norm if norm > 1e-9 else 0.0
    return block * factor, factor, mean


def _nominal(features: Any, truth: IntArray, levels: int, regularisation: float) -> tuple[FloatArray, FloatArray]:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    with warnings.catch_warnings():
        # Iterations are bounded; what they reach is judged on held-out statements like everything else.
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = LogisticRegression(C=regularisation, max_iter=_STEPS).fit(features, truth)
    found = fitted.classes_
    coefficients, intercepts = fitted.coef_, fitted.intercept_
    if len(found) == 2:
        # Of two classes one set of weights is given: half of it for one, half against it for the other.
        coefficients, intercepts = np.concatenate([-coefficients, coefficients]) / 2, np.array([-1, 1]) * intercepts / 2
    weights, bias = np.zeros((features.shape[1], levels)), np.full(levels, -30.0)
    weights[:, found], bias[found] = coefficients.T, intercepts
    return weights, bias


def _ordinal(features: Any, truth: IntArray, levels: int, regularisation: float) -> tuple[FloatArray, FloatArray]:
    """Maximum likelihood with a normal prior; gaps between thresholds are kept positive by their logarithms."""
    from scipy.optimize import minimize

    width = features.shape[1]
    above = truth[:, None] > np.arange(levels - 1)
    share = np.clip(above.mean(axis=0), 1e-4, 1 - 1e-4)
    first = np.sort(-np.log(share / (1 - share)))
    gaps = np.log(np.maximum(np.diff(first), 1e-2))

    def loss(given: FloatArray) -> tuple[float, FloatArray]:
        weights, steps = given[:width], np.exp(given[width + 1 :])
        bias = given[width] + np.concatenate([[0.0], np.cumsum(steps)])
        over = _logistic((features @ weights)[:, None] - bias)
        ends = np.ones((len(over), 1))
        edges = np.concatenate([ends, over, 0 * ends], axis=1)
        rows = np.arange(len(truth))
        chance = np.maximum(edges[rows, truth] - edges[rows, truth + 1], 1e-12)
        slopes = edges * (1 - edges)
        pull = np.zeros((len(truth), levels - 1))
        low, high = truth > 0, truth < levels - 1
        pull[rows[low], truth[low] - 1] = slopes[rows[low], truth[low]] / chance[low]
        pull[rows[high], truth[high]] -= slopes[rows[high], truth[high] + 1] / chance[high]
        by_bias = pull.sum(axis=0)
        tail = np.cumsum(by_bias[::-1])[::-1]
        gradient = np.concatenate([
            weights / regularisation - features.T @ pull.sum(axis=1),
            [tail[0]],
            tail[1:] * steps,
        ])  # fmt: skip
        return float(weights @ weights / (2 * regularisation) - np.log(chance).sum()), gradient

    start = np.concatenate([np.zeros(width), first[:1], gaps])
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": _STEPS}).x
    bias = found[width] + np.concatenate([[0.0], np.cumsum(np.exp(found[width + 1 :]))])
    return found[:width, None], bias


def _logistic(values: FloatArray) -> FloatArray:
    # By way of tanh, which does not overflow.
    return np.asarray(0.5 + 0.5 * np.tanh(values / 2))
