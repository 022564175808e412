"""Penalised linear models on blocks of features: nominal, ordinal, and paired comparisons.

The features of one source form a block. Blocks are scaled before fitting, so that a block of hundreds of features does
not dominate a block of a dozen. The scaling is then folded into the weights, so that a fitted model takes raw features.
The penalty is a normal prior on the weights of the scaled features, whose variance is C.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError
from climassay.learning.model_file import check_array

if TYPE_CHECKING:
    from scipy.sparse import csr_array

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Block: TypeAlias = "FloatArray | csr_array"
"""Features from one source, shape [items, features of the block]. Word counts are a sparse array."""
Link = Literal["nominal", "ordinal"]
LINKS: tuple[Link, ...] = get_args(Link)
Loss = Callable[[FloatArray, FloatArray], tuple[float, FloatArray, FloatArray]]
"""Loss function. Its arguments are scores, shape [rows], and parameters of its own, shape [m]; it returns the loss
summed over the rows, and the gradients with respect to both."""

MAX_ITERATIONS = 300
_ABSENT_CLASS_LOGIT = -30.0
"""Logit of a class that does not occur in the training data: finite, because files must contain finite numbers."""


def softmax(logits: FloatArray) -> FloatArray:
    """Return the softmax of logits over the last axis, in an array of the same shape."""
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True, initial=-np.inf))
    return np.asarray(exponentials / exponentials.sum(axis=-1, keepdims=True), dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Scaling:
    """Linear scaling ``(features - mean) * factor`` of the concatenated features of all blocks."""

    mean: FloatArray
    """Mean of each feature, shape [features]; 0 in sparse blocks, which centring would make dense."""
    factor: FloatArray
    """Factor of each feature, shape [features]; 0 for constant features."""

    @classmethod
    def fit(cls, blocks: Sequence[Block], *, standardise: bool = True) -> "Scaling":
        """Compute the scaling that gives each block a mean squared norm of 1.

        Args:
            blocks: Blocks of features, each of shape [items, features of the block].
            standardise: Give all features of a dense block the same variance. Otherwise one factor scales the whole
                block, so that features of small variance stay small.
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
                deviation = dense.std(axis=0)
                # Rounding gives constant features a deviation of about 1e-17, which must not be scaled up.
                is_varied = deviation > 1e-9 * np.maximum(1.0, np.abs(dense).max(axis=0, initial=0.0))
                norm = np.sqrt(max(1, int(is_varied.sum())))
                factors.append(np.where(is_varied, 1 / (np.where(is_varied, deviation, 1.0) * norm), 0.0))
            else:
                norm = float(np.sqrt(((dense - means[-1]) ** 2).sum(axis=1).mean()))
                factors.append(np.full(width, 1 / norm if norm > 1e-9 else 0.0))
        return cls(np.concatenate(means), np.concatenate(factors))


@dataclass(frozen=True, slots=True, eq=False)
class LinearModel:
    """Linear model of class probabilities.

    Nominal: the probabilities are ``softmax(features @ weights + bias)``. Ordinal (proportional odds, McCullagh 1980):
    ``P(class > j) = logistic(features @ weights - bias[j])``, with ascending biases.
    """

    link: Link
    weights: FloatArray
    """Weights of the raw features, shape [features, classes]; [features, 1] for ordinal models."""
    bias: FloatArray
    """Biases, shape [classes]; [classes - 1] for ordinal models."""

    @property
    def classes(self) -> int:
        """Number of classes."""
        return len(self.bias) + (self.link == "ordinal")

    def to_arrays(self, name: str = "{}") -> dict[str, FloatArray]:
        """Return the arrays :attr:`weights` and :attr:`bias` by name, for saving; their shapes are unchanged.

        ``name`` is the pattern of the names, for example ``step_{}``, if a file holds several models.
        """
        return {name.format("weights"): self.weights, name.format("bias"): self.bias}

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], classes: int, *, name: str = "{}", link: Link = "nominal"
    ) -> "LinearModel":
        """Restore a model from the arrays of :meth:`to_arrays`.

        Args:
            arrays: Arrays by name.
            classes: Number of classes.
            name: Pattern of the names, as in :meth:`to_arrays`.
            link: Nominal or ordinal.

        Raises:
            ValueError: An array has another shape, or the link is unknown.
        """
        if link not in LINKS:
            raise ValueError(f"a model is {link!r}")
        n_columns, n_biases = (classes, classes) if link == "nominal" else (1, classes - 1)
        weights = check_array("weights", arrays[name.format("weights")], (None, n_columns))
        return cls(link, weights, check_array("bias", arrays[name.format("bias")], (n_biases,)))

    def probabilities(self, blocks: Sequence[Block]) -> FloatArray:
        """Return the probabilities of the classes, shape [items, classes].

        Raises:
            InputError: The blocks have another number of features than the model.
        """
        scores = _multiply(blocks, self.weights)
        if self.link == "nominal":
            return softmax(scores + self.bias)
        return np.asarray(-np.diff(_compute_exceedance(scores, self.bias), axis=1))

    def log_odds(self, blocks: Sequence[Block]) -> FloatArray:
        """Return the log-odds of the second of two nominal classes, shape [items].

        Raises:
            InputError: The blocks have another number of features than the model.
        """
        return np.asarray(_multiply(blocks, self.weights[:, 1:] - self.weights[:, :1])[:, 0] + np.diff(self.bias)[0])


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
    """Fit a model with one value of C; see :func:`fit_path` for the arguments and errors."""
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
    """Fit one model for each value of C to the same scaled features.

    If there are more features than items, the model is fitted in an orthonormal basis of the items' span, which
    contains the penalised solution.

    Args:
        blocks: Blocks of raw features, each of shape [items, features of the block].
        truth: Classes 0 to ``classes - 1``, shape [items]. A class that does not occur gets a probability of almost 0.
        classes: Number of classes.
        regularisations: Values of C, the prior variance of the contribution of a block to a logit.
        link: Nominal or ordinal.
        standardise: See :meth:`Scaling.fit`.
        balanced: Give all classes the same total weight (nominal models only).
        scaling: Scaling of the features, for example fitted to more items; by default it is fitted to these items.

    Raises:
        InputError: The link is unknown, or all items of an ordinal model are of one class.
    """
    from scipy.sparse import csr_array, hstack, issparse
    from threadpoolctl import threadpool_limits

    if link not in LINKS:
        raise InputError(f"There is no link {link!r}; choose one of {', '.join(LINKS)}.")
    scaling = scaling or Scaling.fit(blocks, standardise=standardise)
    if any(issparse(block) for block in blocks):
        block_ends = np.cumsum([block.shape[1] for block in blocks])[:-1]
        scaled_blocks = zip(
            blocks, np.split(scaling.mean, block_ends), np.split(scaling.factor, block_ends), strict=True
        )
        scaled_features: Any = hstack(
            [csr_array(block if issparse(block) else block - mean) * factor for block, mean, factor in scaled_blocks],
            format="csr",
        )
        basis = None
    else:
        scaled_features = (
            np.concatenate([np.asarray(block) for block in blocks], axis=1) - scaling.mean
        ) * scaling.factor
        scaled_features, basis = (
            project_to_span(scaled_features)
            if scaled_features.shape[1] > scaled_features.shape[0]
            else (scaled_features, None)
        )
    results = []
    # On products this small, a second thread only waits for the first and keeps a core from other work.
    with threadpool_limits(limits=1, user_api="blas"):
        for regularisation in regularisations:
            if link == "nominal":
                weights, bias = _fit_nominal(scaled_features, truth, classes, regularisation, balanced)
            else:
                if len(np.unique(truth)) < 2:
                    raise InputError("An ordinal model learns from items of at least two classes.")
                frequencies = np.clip((truth[:, None] > np.arange(classes - 1)).mean(axis=0), 1e-4, 1 - 1e-4)
                initial_bias = np.sort(-np.log(frequencies / (1 - frequencies)))
                start = [initial_bias[0], *np.log(np.maximum(np.diff(initial_bias), 1e-2))]
                weights, parameters, _ = minimise(
                    scaled_features, ordinal_loss(truth, classes), regularisation, parameters=start
                )
                weights, bias = weights[:, None], thresholds(parameters)
            weights = (weights if basis is None else basis @ weights) * scaling.factor[:, None]
            shift = scaling.mean @ weights
            results.append(LinearModel(link, weights, bias - shift if link == "nominal" else bias + shift))
    return results


def project_to_span(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Express rows in an orthonormal basis of their span.

    Returns:
        Coordinates of the rows, shape [rows, rank], and the basis, shape [features, rank].
    """
    left_vectors, singular_values, right_vectors = np.linalg.svd(rows, full_matrices=False)
    is_nonzero = singular_values > 1e-10 * max(1e-300, float(singular_values.max(initial=0.0)))
    return left_vectors[:, is_nonzero] * singular_values[is_nonzero], right_vectors[is_nonzero].T


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
    """Minimise ``C * loss(rows @ weights, parameters) + |weights|^2 / 2`` by L-BFGS, for losses that no library has.

    Args:
        rows: Scaled features, shape [rows, features]: dense, sparse, or a linear operator.
        loss: Loss function; see :data:`Loss`.
        regularisation: Value of C.
        parameters: Initial values of the loss's own parameters, which are not penalised.
        start: Initial weights, shape [features]; 0 by default.
        curvature: Approximate second derivative of the loss with respect to each weight, shape [features], for
            preconditioning.
        parameter_curvature: Approximate second derivative with respect to the loss's own parameters.
        tolerance: Maximum gradient at which to stop, relative to the gradient at weights of 0.
        max_iterations: Maximum number of iterations.

    Returns:
        The weights, shape [features]; the loss's own parameters; whether the fit converged.
    """
    from scipy.optimize import minimize

    width = rows.shape[1]
    step = np.ones(width) if curvature is None else 1 / np.sqrt(1 + regularisation * curvature)
    parameter_step = 1 / np.sqrt(1 + regularisation * parameter_curvature)

    def objective(point: FloatArray) -> tuple[float, FloatArray]:
        weights = point[:width] * step
        value, score_gradient, parameter_gradient = loss(np.asarray(rows @ weights), point[width:] * parameter_step)
        gradient = (weights + regularisation * (rows.T @ score_gradient)) * step
        return (
            float(weights @ weights / 2 + regularisation * value),
            np.concatenate([gradient, regularisation * parameter_gradient * parameter_step]),
        )

    initial_weights = np.zeros(width) if start is None else start / step
    initial_point = np.concatenate([initial_weights, np.asarray(parameters, dtype=np.float64) / parameter_step])
    zero_gradient = float(np.abs(objective(np.concatenate([np.zeros(width), initial_point[width:]]))[1]).max())
    options = {
        "maxiter": max_iterations,
        "maxfun": 4 * max_iterations,
        "maxcor": 20,
        "gtol": tolerance * zero_gradient,
        "ftol": 1e-7 * tolerance,
    }
    result = minimize(objective, initial_point, jac=True, method="L-BFGS-B", options=options)
    # A line search that fails because rounding hides any further descent has converged.
    has_converged = bool(result.success) or float(np.abs(result.jac).max()) <= 1e-4 * zero_gradient
    return np.asarray(result.x[:width] * step), np.asarray(result.x[width:] * parameter_step), has_converged


def ordinal_loss(truth: IntArray, classes: int) -> Loss:
    """Return a loss function: the negative log-likelihood of the proportional odds model.

    ``truth`` has the classes 0 to ``classes - 1``, shape [rows]. The loss's own parameters, shape [classes - 1], are
    the first threshold and the logarithms of the differences between successive thresholds, so that thresholds always
    ascend.
    """
    rows = np.arange(len(truth))
    has_lower, has_higher = truth > 0, truth < classes - 1

    def loss(scores: FloatArray, parameters: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        exceedance = _compute_exceedance(scores[:, None], thresholds(parameters))
        likelihood = np.maximum(exceedance[rows, truth] - exceedance[rows, truth + 1], 1e-12)
        slopes = exceedance * (1 - exceedance)
        # Derivative of the log-likelihood of each row with respect to the score minus each threshold.
        gradient = np.zeros((len(truth), classes - 1))
        lower_rows, higher_rows = rows[has_lower], rows[has_higher]
        gradient[lower_rows, truth[lower_rows] - 1] = slopes[lower_rows, truth[lower_rows]] / likelihood[lower_rows]
        gradient[higher_rows, truth[higher_rows]] -= (
            slopes[higher_rows, truth[higher_rows] + 1] / likelihood[higher_rows]
        )
        threshold_gradient = np.cumsum(gradient.sum(axis=0)[::-1])[::-1]
        parameter_gradient = np.concatenate([threshold_gradient[:1], threshold_gradient[1:] * np.exp(parameters[1:])])
        return float(-np.log(likelihood).sum()), -gradient.sum(axis=1), parameter_gradient

    return loss


def thresholds(parameters: FloatArray) -> FloatArray:
    """Return the ascending thresholds, shape [classes - 1], that the parameters of :func:`ordinal_loss` stand for."""
    return np.asarray(parameters[0] + np.concatenate([[0.0], np.cumsum(np.exp(parameters[1:]))]))


def davidson_loss(outcomes: IntArray, weight: FloatArray, with_ties: bool) -> Loss:
    """Return a loss function: the negative log-likelihood of paired comparisons (Davidson 1970).

    The score ``eta`` of a pair is the log-odds that its first item is greater, given that the pair is not a tie. The
    loss of a pair is ``log(exp(eta/2) + exp(-eta/2) + exp(delta))`` minus the term of its outcome: ``eta/2``,
    ``-eta/2``, or ``delta`` for a tie. The loss's own parameter ``delta`` is minus infinity without ties, which gives
    the logistic loss. The loss is convex.

    Args:
        outcomes: Outcomes of the pairs: 1, -1, or 0 for a tie; shape [pairs].
        weight: Weights of the pairs, shape [pairs].
        with_ties: Whether a tie is a possible outcome.
    """
    is_tie = (outcomes == 0).astype(np.float64)

    def loss(eta: FloatArray, parameters: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        half = np.abs(eta) / 2
        delta = parameters[0] if with_ties else -np.inf
        log_total = np.logaddexp(half + np.log1p(np.exp(-2 * half)), delta)
        value = weight @ (log_total - outcomes * eta / 2 - (is_tie * delta if with_ties else 0.0))
        slope = (np.exp(eta / 2 - log_total) - np.exp(-eta / 2 - log_total) - outcomes) / 2
        delta_gradient = np.array([weight @ (np.exp(delta - log_total) - is_tie)]) if with_ties else np.zeros(0)
        return float(value), weight * slope, delta_gradient

    return loss


def _multiply(blocks: Sequence[Block], weights: FloatArray) -> FloatArray:
    """Return ``features @ weights`` for the concatenated features of all blocks, shape [items, columns]."""
    widths = [block.shape[1] for block in blocks]
    if sum(widths) != len(weights):
        raise InputError(
            f"This model reads {len(weights)} features, but there are {sum(widths)}: it was trained on others, or by"
            " another version of climassay; train it again."
        )
    block_weights = np.split(weights, np.cumsum(widths)[:-1])
    products = [np.asarray(block @ part) for block, part in zip(blocks, block_weights, strict=True)]
    return np.asarray(np.sum(products, axis=0))


def _compute_exceedance(scores: FloatArray, bias: FloatArray) -> FloatArray:
    """Return P(class >= j) of an ordinal model for j from 0 to the number of classes; scores have shape [items, 1]."""
    probabilities = logistic(scores - bias)
    bounds = np.ones((len(probabilities), 1))
    return np.concatenate([bounds, probabilities, 0 * bounds], axis=1)


def _fit_nominal(
    scaled_features: Any, truth: IntArray, classes: int, regularisation: float, balanced: bool
) -> tuple[FloatArray, FloatArray]:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    weights, bias = np.zeros((scaled_features.shape[1], classes)), np.full(classes, _ABSENT_CLASS_LOGIT)
    present_classes = np.unique(truth)
    if len(present_classes) == 1 or not scaled_features.shape[1]:
        bias[present_classes] = np.log(np.bincount(truth)[present_classes] / len(truth))
        return weights, bias
    with warnings.catch_warnings():
        # Iterations are bounded for speed; an early stop shows in the scores on held-out items.
        warnings.simplefilter("ignore", ConvergenceWarning)
        regression = LogisticRegression(
            C=regularisation, max_iter=MAX_ITERATIONS, class_weight="balanced" if balanced else None
        ).fit(scaled_features, truth)
    coefficients, intercepts = regression.coef_, regression.intercept_
    if len(present_classes) == 2:
        # scikit-learn returns one set of weights for two classes: it is split between them.
        coefficients, intercepts = np.concatenate([-coefficients, coefficients]) / 2, np.array([-1, 1]) * intercepts / 2
    weights[:, present_classes], bias[present_classes] = coefficients.T, intercepts
    return weights, bias


def logistic(values: FloatArray) -> FloatArray:
    """Return ``1 / (1 + exp(-values))`` in an array of the same shape."""
    # Computed by tanh, which does not overflow.
    return np.asarray(0.5 + 0.5 * np.tanh(values / 2))
