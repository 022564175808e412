"""The two regressions of a verdict head, and what they say of claims that they were not fitted on."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from climassay.factcheck.verdict_head import VERDICT_LABELS, rule_probabilities, softmax, verdict_features
from climassay.factcheck.verdict_reading import EVIDENCE_LABELS, FloatArray, Material

IntArray = NDArray[np.int64]

_MAX_ITERATIONS = 300
_VERDICT_REGULARISATION = 1.0
"""C of the second step: it has four features, and every claim speaks for them, so that little rests on it."""


class Regression(NamedTuple):
    """``softmax(features @ weights + bias)``."""

    weights: FloatArray
    """Shape [features, labels]."""
    bias: FloatArray
    """Shape [labels]."""

    def probabilities(self, features: FloatArray) -> FloatArray:
        """Shape [rows, labels]."""
        return softmax(features @ self.weights + self.bias)


@dataclass(frozen=True, slots=True, eq=False)
class Lesson:
    """Training claims as arrays; their passages lie claim after claim."""

    material: Material
    evidence: IntArray
    """Shape [passages]: place of the true label in :data:`EVIDENCE_LABELS`."""
    owner: IntArray
    """Shape [passages]: number of the claim."""
    truth: IntArray
    """Shape [claims]: place of the true verdict in :data:`VERDICT_LABELS`."""
    folds: IntArray
    """Shape [claims]."""
    seed: int

    @property
    def shares(self) -> FloatArray:
        """How frequent each verdict is, shape [4]."""
        return np.bincount(self.truth, minlength=len(VERDICT_LABELS)) / len(self.truth)

    def splits(self) -> Iterator[IntArray]:
        """Claims of each fold, each of shape [claims of the fold]."""
        for fold in np.unique(self.folds):
            yield np.flatnonzero(self.folds == fold)


def fit_evidence(blocks: Sequence[FloatArray], labels: IntArray, regularisation: float) -> Regression:
    """First step: multinomial regression with an L2 penalty.

    Features are standardised, and each block is scaled to mean squared norm 1, so that a block of hundreds of features
    does not drown one of seven. The regression given back takes the features as they are.

    Args:
        blocks: Features of one kind each, shape [passages, features].
        labels: Shape [passages]: place in :data:`EVIDENCE_LABELS`.
        regularisation: C, the prior variance of what a block adds to a logit.
    """
    features = np.concatenate(blocks, axis=1)
    mean, deviation = features.mean(axis=0), features.std(axis=0)
    sizes = np.concatenate([np.full(block.shape[1], np.sqrt(block.shape[1])) for block in blocks])
    scale = np.where(deviation > 1e-9, 1 / (np.maximum(deviation, 1e-9) * sizes), 0.0)
    fitted = _regression((features - mean) * scale, labels, regularisation, len(EVIDENCE_LABELS))
    weights = fitted.weights * scale[:, None]
    return Regression(weights, fitted.bias - mean @ weights)


def held_out_evidence(lesson: Lesson, blocks: Sequence[FloatArray], regularisation: float) -> FloatArray:
    """What passages do by regressions fitted on the other folds; shape [passages, 3]."""
    found = np.zeros((len(lesson.evidence), len(EVIDENCE_LABELS)))
    features = np.concatenate(blocks, axis=1)
    for claims in lesson.splits():
        outside = np.isin(lesson.owner, claims)
        fitted = fit_evidence([block[~outside] for block in blocks], lesson.evidence[~outside], regularisation)
        found[outside] = fitted.probabilities(features[outside])
    return found


def fit_verdicts(lesson: Lesson, guesses: FloatArray, claims: IntArray) -> Regression:
    """Second step, on all passages of each claim and on one random set of each smaller number.

    Args:
        lesson: The training claims.
        guesses: Held-out probabilities of what passages do, shape [passages, 3].
        claims: Which claims to fit on.
    """
    features, labels = [], []
    generator = np.random.default_rng(lesson.seed)
    for claim in claims:
        places = np.flatnonzero(lesson.owner == claim)
        features.append(verdict_features(guesses[places]))
        labels.append(int(lesson.truth[claim]))
        for size in range(1, len(places)):
            some = generator.choice(places, size, replace=False)
            features.append(verdict_features(guesses[some]))
            labels.append(rule_verdict(lesson.evidence[some]))
    return _regression(np.array(features), np.array(labels), _VERDICT_REGULARISATION, len(VERDICT_LABELS))


def held_out_verdicts(lesson: Lesson, guesses: FloatArray) -> FloatArray:
    """Probabilities of the verdicts by second steps fitted on the other folds; shape [claims, 4]."""
    found = np.zeros((len(lesson.truth), len(VERDICT_LABELS)))
    for claims in lesson.splits():
        others = np.setdiff1d(np.arange(len(lesson.truth)), claims)
        features = [verdict_features(guesses[lesson.owner == claim]) for claim in claims]
        found[claims] = fit_verdicts(lesson, guesses, others).probabilities(np.array(features))
    return found


def rule_verdict(evidence: IntArray) -> int:
    """Climate-FEVER's verdict from labels of passages, shape [passages], as a place in :data:`VERDICT_LABELS`."""
    return int(rule_probabilities(np.eye(len(EVIDENCE_LABELS))[evidence]).argmax())


def log_loss(probabilities: FloatArray, labels: IntArray) -> float:
    """Mean negative log-likelihood of the labels, in nats.

    Args:
        probabilities: Shape [n, labels], rows sum to 1.
        labels: Shape [n], columns of the right ones.
    """
    given = probabilities[np.arange(len(labels)), labels]
    return float(-np.log(np.maximum(given, 1e-12)).mean())


def _regression(features: FloatArray, labels: IntArray, regularisation: float, kinds: int) -> Regression:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    present = np.unique(labels)
    weights, bias = np.zeros((features.shape[1], kinds)), np.full(kinds, -np.inf)
    if len(present) == 1:
        bias[present] = 0.0
        return Regression(weights, np.maximum(bias, _ABSENT))
    with warnings.catch_warnings():
        # Iterations are bounded for speed; what they reach is judged on held-out claims like everything else.
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = LogisticRegression(C=regularisation, max_iter=_MAX_ITERATIONS).fit(features, labels)
    if len(present) == 2:
        weights[:, present[1]], bias[present] = fitted.coef_[0], (0.0, fitted.intercept_[0])
    else:
        weights[:, present], bias[present] = fitted.coef_.T, fitted.intercept_
    return Regression(weights, np.maximum(bias, _ABSENT))


_ABSENT = -20.0
"""Logit of a label that the training data do not have: finite, so that it can be stored and explained."""
