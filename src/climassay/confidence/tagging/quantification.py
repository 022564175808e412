"""Estimate the proportions of levels among statements that a tagger has labelled.

The intervals include the tagger's error. Counts of a tagger's answers are biased towards its frequent answers. Two
corrections are available.

*By expectation*: the proportions are the means of calibrated probabilities. The errors of such means are measured in
documents that the tagger was not trained on (:func:`compute_share_residuals`), and their spread between documents
widens the interval. A weak tagger thus gives wide intervals around the proportions in the training data.

*Adjusted*: if ``C[t, p]`` is the rate at which a statement of level t is tagged p, the proportions q of answers and s
of true levels satisfy ``q = s @ C``; expectation-maximisation finds the s that explains q best. This is correct if
documents differ only in the proportions of their levels. If their wording differs too, the C of a weak tagger does not
apply to other documents: on 40 chapters of AR6, the mean absolute error of the mean score was 0.62 (0.10 by
expectation), and only 35% of the intervals contained the true value (docs/results/confidence.md). Use residuals if they
are available.

References:
    Forman 2008, Quantifying counts and costs via classification (adjusted count); Saerens, Latinne and Decaestecker
    2002, Adjusting the outputs of a classifier to new a priori probabilities (expectation-maximisation).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climassay.errors import InputError

FloatArray = NDArray[np.float64]
_MAX_ITERATIONS = 2000
_TOLERANCE = 1e-9
_MIN_DOCUMENTS = 5


@dataclass(frozen=True, slots=True)
class Shares:
    """Estimated proportions of the levels among statements, lowest level first, with confidence intervals."""

    values: tuple[float, ...]
    """Proportions of the levels, lowest level first, summing to 1."""
    low: tuple[float, ...]
    high: tuple[float, ...]
    score: float
    """Mean score: the sum of the levels' scores, weighted by the proportions."""
    score_low: float
    score_high: float
    n: int
    """Number of statements."""


def estimate_shares(
    probabilities: ArrayLike,
    confusion: ArrayLike | None = None,
    *,
    residuals: ArrayLike | None = None,
    scores: Sequence[float] | None = None,
    groups: Sequence[object] | None = None,
    samples: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> Shares:
    """Estimate the proportions of the true levels among statements that a tagger has labelled.

    There are two methods. With ``residuals``, the mean probabilities are corrected by the mean residuals, and each
    bootstrap sample adds the residuals of a random document. With ``confusion``, the counts of most probable levels are
    corrected for the tagger's errors (:func:`adjust_shares`).

    Args:
        probabilities: Probabilities of the levels, shape [n, k], calibrated for the class frequencies in the data from
            which the residuals or the confusion matrix were computed.
        confusion: Number of held-out statements by true level (rows) and most probable level (columns), shape [k, k].
            For each bootstrap sample, error rates are drawn from Dirichlet distributions with these counts plus 1/2.
            Ignored if there are ``residuals``.
        residuals: Residuals from :func:`compute_share_residuals`, shape [documents, k].
        scores: Scores of the levels; by default the highest k numbers of -2 to 2 (for four levels, -1 to 2).
        groups: Paragraph or section of each statement, shape [n]; groups are resampled. None resamples statements.
        samples: Number of bootstrap samples.
        seed: Seed of the bootstrap.
        level: Confidence level of the intervals.

    Raises:
        InputError: There are no statements, or the shapes do not match.
    """
    probs = np.asarray(probabilities, dtype=np.float64)
    if probs.ndim != 2 or not len(probs) or not np.isfinite(probs).all():
        raise InputError("Shares are estimated from probabilities of shape [statements, levels], at least one of them.")
    if groups is not None and len(groups) != len(probs):
        raise InputError(f"{len(probs)} statements have {len(groups)} groups.")
    k = probs.shape[1]
    level_scores = np.arange(3 - k, 3, dtype=np.float64) if scores is None else np.asarray(scores, dtype=np.float64)
    if level_scores.shape != (k,):
        raise InputError(f"{k} levels need as many scores, got {level_scores.size}.")
    weights = np.eye(k)[probs.argmax(axis=1)] if residuals is None else probs
    group_names = list(range(len(probs))) if groups is None else list(groups)
    group_index = {group: index for index, group in enumerate(dict.fromkeys(group_names))}
    group_sums = np.zeros((len(group_index), k))
    np.add.at(group_sums, [group_index[name] for name in group_names], weights)
    generator = np.random.default_rng(seed)
    draws = np.empty((samples, k))
    if residuals is not None:
        residual_rows = np.asarray(residuals, dtype=np.float64)
        if (
            residual_rows.ndim != 2
            or residual_rows.shape[1] != k
            or len(residual_rows) < _MIN_DOCUMENTS
            or not np.isfinite(residual_rows).all()
        ):
            raise InputError(f"Residuals of {k} levels have shape [documents, {k}] and at least five rows.")
        for sample in range(samples):
            resampled_sums = group_sums[generator.integers(0, len(group_sums), len(group_sums))].sum(axis=0)
            draws[sample] = _project_to_simplex(
                resampled_sums / resampled_sums.sum() + residual_rows[generator.integers(0, len(residual_rows))]
            )
        point_estimate = _project_to_simplex(group_sums.sum(axis=0) / group_sums.sum() + residual_rows.mean(axis=0))
    else:
        if confusion is None:
            raise InputError("Shares are corrected by residuals or by a table of errors: give one of them.")
        errors = np.asarray(confusion, dtype=np.float64)
        if errors.shape != (k, k) or not np.isfinite(errors).all() or (errors < 0).any():
            raise InputError(f"A table of errors of {k} levels has {k} rows and columns of counts, got {errors.shape}.")
        if (errors.sum(axis=1) == 0).any():
            raise InputError("The table of errors has no statements of some level: shares cannot be corrected for it.")
        for sample in range(samples):
            resampled_sums = group_sums[generator.integers(0, len(group_sums), len(group_sums))].sum(axis=0)
            draws[sample] = adjust_shares(resampled_sums, np.stack([generator.dirichlet(row + 0.5) for row in errors]))
        # Mean of the Dirichlet draws.
        point_estimate = adjust_shares(
            group_sums.sum(axis=0), (errors + 0.5) / (errors + 0.5).sum(axis=1, keepdims=True)
        )
    quantiles = [(1 - level) / 2, (1 + level) / 2]
    low, high = np.quantile(draws, quantiles, axis=0)
    score_low, score_high = np.quantile(draws @ level_scores, quantiles)
    return Shares(
        tuple(point_estimate.tolist()),
        tuple(low.tolist()),
        tuple(high.tolist()),
        float(point_estimate @ level_scores),
        float(score_low),
        float(score_high),
        len(probs),
    )


def compute_share_residuals(
    truth: ArrayLike, probabilities: ArrayLike, documents: Sequence[object], *, min_statements: int = 60
) -> FloatArray:
    """Return the true proportions of the levels minus their mean probabilities, for each held-out document.

    Args:
        truth: Indices of the true levels, shape [n].
        probabilities: Probabilities from cross-validation over documents, shape [n, k].
        documents: Document of each statement.
        min_statements: Minimum number of statements of a document; proportions in smaller ones are mostly due to
            chance.

    Returns:
        Residuals of shape [documents, k]; each row sums to 0.

    Raises:
        InputError: Fewer than five documents are large enough.
    """
    true_levels, probs = np.asarray(truth), np.asarray(probabilities, dtype=np.float64)
    indices_by_document: dict[object, list[int]] = {}
    for index, document in enumerate(documents):
        indices_by_document.setdefault(document, []).append(index)
    differences = np.eye(probs.shape[1])[true_levels] - probs
    residuals = [
        differences[indices].mean(axis=0) for indices in indices_by_document.values() if len(indices) >= min_statements
    ]
    if len(residuals) < _MIN_DOCUMENTS:
        raise InputError(
            f"{len(residuals)} documents have {min_statements} statements or more; the error of a tagger in a document "
            f"needs at least {_MIN_DOCUMENTS}."
        )
    return np.array(residuals)


def adjust_shares(counts: ArrayLike, rates: ArrayLike) -> FloatArray:
    """Return the maximum-likelihood estimate of the true proportions of the levels, given a tagger's answers.

    Args:
        counts: Number of answers by level, shape [k].
        rates: Probability of each answer (columns) by true level (rows), shape [k, k]; rows sum to 1.

    Returns:
        Proportions of shape [k], not negative, summing to 1.
    """
    n_answers, rate_matrix = np.asarray(counts, dtype=np.float64), np.asarray(rates, dtype=np.float64)
    observed_shares = n_answers / n_answers.sum()
    shares = np.full(len(n_answers), 1 / len(n_answers))
    for _ in range(_MAX_ITERATIONS):
        expected_shares = np.maximum(shares @ rate_matrix, 1e-300)
        next_shares = shares * (rate_matrix @ (observed_shares / expected_shares))
        if np.abs(next_shares - shares).max() < _TOLERANCE:
            return np.asarray(next_shares / next_shares.sum())
        shares = next_shares
    return np.asarray(shares / shares.sum())


def _project_to_simplex(shares: FloatArray) -> FloatArray:
    clipped_shares = np.maximum(shares, 0.0)
    return np.asarray(clipped_shares / clipped_shares.sum())
