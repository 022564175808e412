"""How frequent each level is among statements that a tagger tagged, with the tagger's error carried through.

Counting what a tagger answers is biased towards what it answers often. There are two ways out.

*By expectation*: the shares are the mean of calibrated probabilities. How far such means are from the truth is seen in
whole documents that the tagger was not trained on (:func:`share_residuals`), and this spread between documents is part
of the interval. A weak tagger then gives wide intervals about what is usual, as it should.

*Adjusted*: where ``C[t, p]`` is how often a statement of level t is tagged p, the shares q of what is tagged and the
shares s of what is true satisfy ``q = s @ C``; the shares that explain q best are found by expectation-maximisation.
This is right where documents differ in their levels alone. Where they also differ in words, a weak tagger's table
cannot be carried over: on 40 chapters of AR6 the adjusted mean score was off by 0.62 on average, that by expectation by
0.10, and the adjusted intervals held the truth in 35% (docs/results/confidence.md). Give residuals where there are any.

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
_STEPS = 2000
_CLOSE = 1e-9
_FEWEST_DOCUMENTS = 5


@dataclass(frozen=True, slots=True)
class Shares:
    """Estimated shares of the levels, lowest level first, with intervals of 95%."""

    values: tuple[float, ...]
    """One share per level, summing to 1."""
    low: tuple[float, ...]
    high: tuple[float, ...]
    score: float
    """Mean score: the shares weighted by ``scores``."""
    score_low: float
    score_high: float
    n: int
    """Statements behind it."""


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
    """Shares of the true levels among tagged statements.

    Args:
        probabilities: Shape [n, k], of the levels, as a tagger gives them. By expectation they must be calibrated, on
            the mix of levels for which residuals were taken; adjusted, each statement counts for its most probable
            level, on the mix of the table.
        confusion: Counts, shape [k, k], of held-out statements by true level (rows) and most probable level (columns).
            Its uncertainty is carried through as well: every row is drawn anew (Dirichlet with its counts plus 1/2).
            Read only where there are no residuals.
        residuals: Shape [documents, k], of :func:`share_residuals`: shares are found by expectation, and every sample
            is off by the residuals of a document drawn at random.
        scores: Scores of the levels; by default those of the k highest of five levels that remain when the lowest is
            left out, ``3 - k`` to 2 (for four levels -1, 0, 1, 2; for five -2 to 2).
        groups: Shape [n] (paragraph or section): whole groups are resampled; None: each statement
            by itself.
        samples: Bootstrap samples.
        seed: Seed of the resampling.
        level: Level of the intervals.

    Raises:
        InputError: Nothing was tagged, or the shapes do not fit together.
    """
    given = np.asarray(probabilities, dtype=np.float64)
    if given.ndim != 2 or not len(given) or not np.isfinite(given).all():
        raise InputError("Shares are estimated from probabilities of shape [statements, levels], at least one of them.")
    if groups is not None and len(groups) != len(given):
        raise InputError(f"{len(given)} statements have {len(groups)} groups.")
    k = given.shape[1]
    values = np.arange(3 - k, 3, dtype=np.float64) if scores is None else np.asarray(scores, dtype=np.float64)
    if values.shape != (k,):
        raise InputError(f"{k} levels need as many scores, got {values.size}.")
    counted = np.eye(k)[given.argmax(axis=1)] if residuals is None else given
    names = list(range(len(given))) if groups is None else list(groups)
    places = {group: place for place, group in enumerate(dict.fromkeys(names))}
    sums = np.zeros((len(places), k))
    np.add.at(sums, [places[name] for name in names], counted)
    generator = np.random.default_rng(seed)
    drawn = np.empty((samples, k))
    if residuals is not None:
        off = np.asarray(residuals, dtype=np.float64)
        if off.ndim != 2 or off.shape[1] != k or len(off) < _FEWEST_DOCUMENTS or not np.isfinite(off).all():
            raise InputError(f"Residuals of {k} levels have shape [documents, {k}] and at least five rows.")
        for sample in range(samples):
            taken = sums[generator.integers(0, len(sums), len(sums))].sum(axis=0)
            drawn[sample] = _in_simplex(taken / taken.sum() + off[generator.integers(0, len(off))])
        point = _in_simplex(sums.sum(axis=0) / sums.sum() + off.mean(axis=0))
    else:
        if confusion is None:
            raise InputError("Shares are corrected by residuals or by a table of errors: give one of them.")
        errors = np.asarray(confusion, dtype=np.float64)
        if errors.shape != (k, k) or not np.isfinite(errors).all() or (errors < 0).any():
            raise InputError(f"A table of errors of {k} levels has {k} rows and columns of counts, got {errors.shape}.")
        if (errors.sum(axis=1) == 0).any():
            raise InputError("The table of errors has no statements of some level: shares cannot be corrected for it.")
        for sample in range(samples):
            taken = sums[generator.integers(0, len(sums), len(sums))].sum(axis=0)
            drawn[sample] = adjusted_shares(taken, np.stack([generator.dirichlet(row + 0.5) for row in errors]))
        # The mean of the tables that are drawn.
        point = adjusted_shares(sums.sum(axis=0), (errors + 0.5) / (errors + 0.5).sum(axis=1, keepdims=True))
    ends = [(1 - level) / 2, (1 + level) / 2]
    low, high = np.quantile(drawn, ends, axis=0)
    score_low, score_high = np.quantile(drawn @ values, ends)
    return Shares(
        tuple(point.tolist()),
        tuple(low.tolist()),
        tuple(high.tolist()),
        float(point @ values),
        float(score_low),
        float(score_high),
        len(given),
    )


def share_residuals(
    truth: ArrayLike, probabilities: ArrayLike, documents: Sequence[object], *, smallest: int = 60
) -> FloatArray:
    """True shares less mean probabilities, in documents that the tagger was not trained on.

    Args:
        truth: Places of the true levels, shape [n].
        probabilities: Held out by document, shape [n, k].
        documents: One a statement.
        smallest: Documents of fewer statements are left out: their shares are mostly chance.

    Returns:
        Shape [documents, k], rows sum to 0.

    Raises:
        InputError: Fewer than five documents are large enough.
    """
    levels, given = np.asarray(truth), np.asarray(probabilities, dtype=np.float64)
    places: dict[object, list[int]] = {}
    for place, document in enumerate(documents):
        places.setdefault(document, []).append(place)
    own = np.eye(given.shape[1])[levels] - given
    results = [own[members].mean(axis=0) for members in places.values() if len(members) >= smallest]
    if len(results) < _FEWEST_DOCUMENTS:
        raise InputError(
            f"{len(results)} documents have {smallest} statements or more: how far a tagger is off in a document is "
            f"seen in at least {_FEWEST_DOCUMENTS}."
        )
    return np.array(results)


def adjusted_shares(counts: ArrayLike, rates: ArrayLike) -> FloatArray:
    """True shares that explain best how often each level was given (maximum likelihood).

    Args:
        counts: How often each level was given, shape [k].
        rates: How a true level (row) is tagged, shape [k, k], rows sum to 1.

    Returns:
        Shape [k], not negative, summing to 1.
    """
    given, table = np.asarray(counts, dtype=np.float64), np.asarray(rates, dtype=np.float64)
    observed = given / given.sum()
    shares = np.full(len(given), 1 / len(given))
    for _ in range(_STEPS):
        expected = np.maximum(shares @ table, 1e-300)
        updated = shares * (table @ (observed / expected))
        if np.abs(updated - shares).max() < _CLOSE:
            return np.asarray(updated / updated.sum())
        shares = updated
    return np.asarray(shares / shares.sum())


def _in_simplex(shares: FloatArray) -> FloatArray:
    kept = np.maximum(shares, 0.0)
    return np.asarray(kept / kept.sum())
