"""Penalised linear models on blocks of features: nominal, ordinal, and a choice among alternatives.

Features of one source are a block. Blocks are scaled before they are fitted, so that a vector of hundreds of features
does not drown a dozen numbers, and the scaling is folded into the weights, so that a model reads features as they are.
The penalty is a normal prior on the weights of scaled features: C is its variance.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError
from climassay.learning.model_file import checked_array

if TYPE_CHECKING:
    from scipy.sparse import csr_array

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Block: TypeAlias = "FloatArray | csr_array"
"""Features of one source, shape [items, features of the block]; counts of words are sparse."""
Link = Literal["nominal", "ordinal"]
LINKS: tuple[Link, ...] = get_args(Link)
Loss = Callable[[FloatArray, FloatArray], tuple[float, FloatArray, FloatArray]]
"""From scores [rows] and a loss's own parameters [m] to the summed loss and its gradients by both."""

MAX_ITERATIONS = 300
_ABSENT = -30.0
"""Logit of a class that the training data do not have: finite, so that it can be stored and explained."""


def softmax(logits: FloatArray) -> FloatArray:
    """Return probabilities along the last axis, in the shape of the logits."""
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True, initial=-np.inf))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True), dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Scaling:
    """``(features - mean) * factor``, for features side by side."""

    mean: FloatArray
    """Shape [features]; 0 for sparse blocks, which centring would fill."""
    factor: FloatArray
    """Shape [features]; 0 for a feature that never varies."""

    @classmethod
    def of(cls, blocks: Sequence[Block], *, standardise: bool = True) -> "Scaling":
        """Bring each block to mean squared norm 1.

        Args:
            blocks: Each of shape [items, features of the block].
            standardise: Bring each feature of a dense block to unit variance first; otherwise features keep their
                proportions, so that rare words and dimensions of little spread stay small.
        """
        from scipy.sparse import issparse

        means, factors = [], []
        for features in blocks:
            block: Any = features
            width = block.shape[1]
            if issparse(block):
                norm = float(np.sqrt(block.multiply(block).sum() / max(block.shape[0], 1)))
                means.append(np.zeros(width))
                factors.append(np.full(width, 1 / norm if norm > 1e-9 else 0.0))
                continue
            dense = np.asarray(block)
            means.append(dense.mean(axis=0))
            if standardise:
                spread = dense.std(axis=0)
                # Rounding gives a constant feature a spread of about 1e-17, which must not be blown up.
                varied = spread > 1e-9 * np.maximum(1.0, np.abs(dense).max(axis=0, initial=0.0))
                share = np.sqrt(max(1, int(varied.sum())))
                factors.append(np.where(varied, 1 / (np.where(varied, spread, 1.0) * share), 0.0))
            else:
                norm = float(np.sqrt(((dense - means[-1]) ** 2).sum(axis=1).mean()))
                factors.append(np.full(width, 1 / norm if norm > 1e-9 else 0.0))
        return cls(np.concatenate(means), np.concatenate(factors))


@dataclass(frozen=True, slots=True, eq=False)
class LinearModel:
    """A linear model of class probabilities.

    Nominal: ``softmax(features @ weights + bias)``. Ordinal (proportional odds, McCullagh 1980): weights have one
    column s, and ``P(class > j) = logistic(s - bias[j])`` for ascending biases, one fewer than there are classes.
    """

    link: Link
    weights: FloatArray
    """Shape [features, classes]; [features, 1] for ordinal models. For raw features."""
    bias: FloatArray
    """Shape [classes]; [classes - 1] for ordinal models."""

    @property
    def classes(self) -> int:
        """Number of classes."""
        return len(self.bias) + (self.link == "ordinal")

    def arrays(self, name: str = "{}") -> dict[str, FloatArray]:
        """Return the arrays for a file, in their shapes; ``name`` distinguishes several models, as ``step_{}``."""
        return {name.format("weights"): self.weights, name.format("bias"): self.bias}

    @classmethod
    def read(
        cls,
        arrays: Mapping[str, NDArray[Any]],
        classes: int,
        *,
        name: str = "{}",
        link: Link = "nominal",
        features: int | None = None,
    ) -> "LinearModel":
        """Return the model of the arrays of a file, see :meth:`arrays`; weights have the shape [features, classes].

        Raises:
            ValueError: The arrays have other shapes.
        """
        if link not in LINKS:
            raise ValueError(f"a model is {link!r}")
        columns, biases = (classes, classes) if link == "nominal" else (1, classes - 1)
        weights = checked_array("weights", arrays[name.format("weights")], (features, columns))
        return cls(link, weights, checked_array("bias", arrays[name.format("bias")], (biases,)))

    def probabilities(self, blocks: Sequence[Block]) -> FloatArray:
        """Return probabilities, shape [items, classes], of blocks with as many features as there are weights.

        Raises:
            InputError: Another number of features.
        """
        scores = _product(blocks, self.weights)
        if self.link == "nominal":
            return softmax(scores + self.bias)
        above = _logistic(scores - self.bias)
        ends = np.ones((len(above), 1))
        return np.asarray(-np.diff(np.concatenate([ends, above, 0 * ends], axis=1), axis=1))

    def log_odds(self, blocks: Sequence[Block]) -> FloatArray:
        """Return log-odds of the second of two nominal classes, shape [items].

        Raises:
            InputError: Another number of features.
        """
        return np.asarray(_product(blocks, self.weights[:, 1:] - self.weights[:, :1])[:, 0] + np.diff(self.bias)[0])


def fit_linear(
    blocks: Sequence[Block],
    truth: IntArray,
    classes: int,
    *,
    link: Link = "nominal",
    regularisation: float = 1.0,
    standardise: bool = True,
    balanced: bool = False,
) -> LinearModel:
    """Fit one model; see :func:`fit_path`."""
    return fit_path(
        blocks, truth, classes, [regularisation], link=link, standardise=standardise, balanced=balanced
    )[0]  # fmt: skip


def fit_path(
    blocks: Sequence[Block],
    truth: IntArray,
    classes: int,
    regularisations: Sequence[float],
    *,
    link: Link = "nominal",
    standardise: bool = True,
    balanced: bool = False,
    scaling: Scaling | None = None,
) -> list[LinearModel]:
    """Fit one model for each C on the same scaled features.

    If there are more features than items, the model is fitted in an orthonormal basis of the items' span, which
    contains the penalised solution.

    Args:
        blocks: Raw features, each of shape [items, features of the block].
        truth: Classes, shape [items], 0 to ``classes - 1``; a class that does not occur gets almost no probability.
        classes: Number of classes.
        regularisations: Values of C, the prior variance of what a block adds to a logit.
        link: Nominal or ordinal.
        standardise: See :meth:`Scaling.of`.
        balanced: Give all classes the same total weight (nominal models only).
        scaling: Scaling of the features, for example from more items; by default computed from these items.

    Raises:
        InputError: The link does not exist, or an ordinal model is fitted to items of one class.
    """
    from scipy.sparse import csr_array, hstack, issparse
    from threadpoolctl import threadpool_limits

    if link not in LINKS:
        raise InputError(f"There is no link {link!r}; choose one of {', '.join(LINKS)}.")
    scaling = scaling or Scaling.of(blocks, standardise=standardise)
    if any(issparse(block) for block in blocks):
        ends = np.cumsum([block.shape[1] for block in blocks])[:-1]
        parts = zip(blocks, np.split(scaling.mean, ends), np.split(scaling.factor, ends), strict=True)
        rows: Any = hstack(
            [csr_array(block if issparse(block) else block - mean) * factor for block, mean, factor in parts],
            format="csr",
        )
        axes = None
    else:
        rows = (np.concatenate([np.asarray(block) for block in blocks], axis=1) - scaling.mean) * scaling.factor
        rows, axes = in_span(rows) if rows.shape[1] > rows.shape[0] else (rows, None)
    results = []
    # On products this small a second thread only waits for the first, and takes the core from other work.
    with threadpool_limits(limits=1, user_api="blas"):
        for regularisation in regularisations:
            if link == "nominal":
                weights, bias = _nominal(rows, truth, classes, regularisation, balanced)
            else:
                if len(np.unique(truth)) < 2:
                    raise InputError("An ordinal model learns from items of at least two classes.")
                share = np.clip((truth[:, None] > np.arange(classes - 1)).mean(axis=0), 1e-4, 1 - 1e-4)
                first = np.sort(-np.log(share / (1 - share)))
                start = [first[0], *np.log(np.maximum(np.diff(first), 1e-2))]
                weights, parameters, _ = minimise(rows, ordinal_loss(truth, classes), regularisation, parameters=start)
                weights, bias = weights[:, None], thresholds(parameters)
            weights = (weights if axes is None else axes @ weights) * scaling.factor[:, None]
            shift = scaling.mean @ weights
            results.append(LinearModel(link, weights, bias - shift if link == "nominal" else bias + shift))
    return results


def in_span(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return rows in an orthonormal basis of their span, [items, rank], and the basis, [features, rank]."""
    left, sizes, right = np.linalg.svd(rows, full_matrices=False)
    is_in_rank = sizes > 1e-10 * max(1e-300, float(sizes.max(initial=0.0)))
    return left[:, is_in_rank] * sizes[is_in_rank], right[is_in_rank].T


def minimise(
    rows: Any,
    loss: Loss,
    regularisation: float,
    *,
    parameters: Sequence[float] = (),
    start: FloatArray | None = None,
    curvature: FloatArray | None = None,
    parameter_curvature: float = 0.0,
    tolerance: float = 1e-6,
    max_iterations: int = MAX_ITERATIONS,
) -> tuple[FloatArray, FloatArray, bool]:
    """Fit a loss that no library has: ``C * loss(rows @ weights, own) + |weights|^2 / 2``, by L-BFGS.

    Args:
        rows: Scaled features, shape [rows, features]: dense, sparse, or a linear operator.
        loss: Summed over rows, with its gradients.
        regularisation: C.
        parameters: Initial values of the loss's own parameters, which are not penalised.
        start: Initial weights, shape [features]; 0 by default.
        curvature: Approximate second derivative of the loss by each weight, shape [features], for preconditioning.
        parameter_curvature: Approximate second derivative by the loss's own parameters.
        tolerance: Gradient at which to stop, as a share of the gradient at zero.
        max_iterations: Maximum number of iterations.

    Returns:
        Weights, shape [features], for the given rows; the loss's own parameters; whether the fit converged.
    """
    from scipy.optimize import minimize

    width = rows.shape[1]
    step = np.ones(width) if curvature is None else 1 / np.sqrt(1 + regularisation * curvature)
    parameter_step = 1 / np.sqrt(1 + regularisation * parameter_curvature)

    def objective(point: FloatArray) -> tuple[float, FloatArray]:
        weights = point[:width] * step
        value, by_score, by_own = loss(np.asarray(rows @ weights), point[width:] * parameter_step)
        gradient = (weights + regularisation * (rows.T @ by_score)) * step
        return (
            float(weights @ weights / 2 + regularisation * value),
            np.concatenate([gradient, regularisation * by_own * parameter_step]),
        )

    first = np.zeros(width) if start is None else start / step
    begin = np.concatenate([first, np.asarray(parameters, dtype=np.float64) / parameter_step])
    at_zero = float(np.abs(objective(np.concatenate([np.zeros(width), begin[width:]]))[1]).max())
    options = {
        "maxiter": max_iterations,
        "maxfun": 4 * max_iterations,
        "maxcor": 20,
        "gtol": tolerance * at_zero,
        "ftol": 1e-7 * tolerance,
    }
    result = minimize(objective, begin, jac=True, method="L-BFGS-B", options=options)
    # A line search that gives up where rounding hides any further descent has converged.
    converged = bool(result.success) or float(np.abs(result.jac).max()) <= 1e-4 * at_zero
    return np.asarray(result.x[:width] * step), np.asarray(result.x[width:] * parameter_step), converged


def ordinal_loss(truth: IntArray, classes: int) -> Loss:
    """Return the negative log-likelihood of proportional odds for true classes of shape [rows].

    Its own parameters are the first threshold and the logarithms of the gaps between thresholds, shape [classes - 1],
    so that thresholds ascend.
    """
    rows = np.arange(len(truth))
    low, high = truth > 0, truth < classes - 1

    def loss(scores: FloatArray, parameters: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        over = _logistic(scores[:, None] - thresholds(parameters))
        ends = np.ones((len(over), 1))
        edges = np.concatenate([ends, over, 0 * ends], axis=1)
        chance = np.maximum(edges[rows, truth] - edges[rows, truth + 1], 1e-12)
        slopes = edges * (1 - edges)
        pull = np.zeros((len(truth), classes - 1))
        pull[rows[low], truth[low] - 1] = slopes[rows[low], truth[low]] / chance[low]
        pull[rows[high], truth[high]] -= slopes[rows[high], truth[high] + 1] / chance[high]
        tail = np.cumsum(pull.sum(axis=0)[::-1])[::-1]
        by_own = np.concatenate([tail[:1], tail[1:] * np.exp(parameters[1:])])
        return float(-np.log(chance).sum()), -pull.sum(axis=1), by_own

    return loss


def thresholds(parameters: FloatArray) -> FloatArray:
    """Return ascending thresholds from the parameters of :func:`ordinal_loss`, shape [classes - 1]."""
    return np.asarray(parameters[0] + np.concatenate([[0.0], np.cumsum(np.exp(parameters[1:]))]))


def davidson_loss(outcomes: IntArray, weight: FloatArray, with_ties: bool) -> Loss:
    """Return the negative log-likelihood of comparisons (Davidson 1970); the logistic loss if ties are no outcome.

    The loss of a pair is ``log(exp(eta/2) + exp(-eta/2) + exp(delta))`` minus the exponent of its outcome, where delta,
    the loss's own parameter, is minus infinity without ties. It is convex, and ``eta`` is the log-odds that i is
    greater given that the two differ.

    Args:
        outcomes: Shape [pairs], 1, 0 (tie) or -1.
        weight: Shape [pairs].
        with_ties: Whether ties are an outcome.
    """
    tied = (outcomes == 0).astype(np.float64)

    def loss(eta: FloatArray, parameters: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        half = np.abs(eta) / 2
        delta = parameters[0] if with_ties else -np.inf
        total = np.logaddexp(half + np.log1p(np.exp(-2 * half)), delta)
        value = weight @ (total - outcomes * eta / 2 - (tied * delta if with_ties else 0.0))
        slope = (np.exp(eta / 2 - total) - np.exp(-eta / 2 - total) - outcomes) / 2
        by_own = np.array([weight @ (np.exp(delta - total) - tied)]) if with_ties else np.zeros(0)
        return float(value), weight * slope, by_own

    return loss


def _product(blocks: Sequence[Block], weights: FloatArray) -> FloatArray:
    """Return ``features @ weights`` of blocks side by side, shape [items, columns]."""
    widths = [block.shape[1] for block in blocks]
    if sum(widths) != len(weights):
        raise InputError(
            f"This model reads {len(weights)} features, but there are {sum(widths)}: it was trained on others, or by"
            " another version of climassay; train it again."
        )
    parts = np.split(weights, np.cumsum(widths)[:-1])
    total = np.zeros((blocks[0].shape[0], weights.shape[1]))
    for block, part in zip(blocks, parts, strict=True):
        total = total + np.asarray(block @ part)
    return total


def _nominal(
    rows: Any, truth: IntArray, classes: int, regularisation: float, balanced: bool
) -> tuple[FloatArray, FloatArray]:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    weights, bias = np.zeros((rows.shape[1], classes)), np.full(classes, _ABSENT)
    present = np.unique(truth)
    if len(present) == 1 or not rows.shape[1]:
        bias[present] = np.log(np.bincount(truth)[present] / len(truth))
        return weights, bias
    with warnings.catch_warnings():
        # Iterations are bounded for speed; what they reach is judged on held-out items like everything else.
        warnings.simplefilter("ignore", ConvergenceWarning)
        regression = LogisticRegression(
            C=regularisation, max_iter=MAX_ITERATIONS, class_weight="balanced" if balanced else None
        ).fit(rows, truth)
    coefficients, intercepts = regression.coef_, regression.intercept_
    if len(present) == 2:
        # Of two classes one set of weights is given: half of it for one, half against it for the other.
        coefficients, intercepts = np.concatenate([-coefficients, coefficients]) / 2, np.array([-1, 1]) * intercepts / 2
    weights[:, present], bias[present] = coefficients.T, intercepts
    return weights, bias


def _logistic(values: FloatArray) -> FloatArray:
    # By way of tanh, which does not overflow.
    return np.asarray(0.5 + 0.5 * np.tanh(values / 2))
