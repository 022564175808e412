"""How good a validator is on questions it was not trained on, and the threshold from which it may be trusted."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climassay.errors import InputError
from climassay.learning import Calibration, Evaluation, Threshold, calibration, evaluate, threshold_for
from climassay.reporting import Table
from climassay.statistics import Estimate, proportion

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

CLASSES = ("invalid", "valid")
KEPT_SHARES = (0.5, 0.8)
"""Of which precision is reported, since precision alone can be had by keeping little."""
RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class KeptShare:
    """Precision of a share of the questions."""

    name: str
    """Which are kept, in words."""
    share: float
    precision: Estimate
    """Share of valid ones among them, with its Wilson interval."""


@dataclass(frozen=True, slots=True)
class ValidatorScores:
    """Probabilities of labelled questions against their labels."""

    evaluation: Evaluation
    """Figures of the classes invalid and valid; intervals resample main passages."""
    kept: tuple[KeptShare, ...]
    """Everything, as a constant answer keeps it; those with P(valid) of at least one half, where there are some; and
    the likeliest :data:`KEPT_SHARES`."""
    calibration: Calibration

    @property
    def figures(self) -> dict[str, float]:
        """Those that are kept with a validator."""
        return {**self.evaluation.figures, "brier_constant": self.calibration.brier_constant}

    def tables(self) -> list[Table]:
        """The figures beside the constant's, and what is kept at which precision."""
        judged = self.calibration
        note = f"95% Wilson intervals. Brier score {judged.brier:.3f}, of a constant {judged.brier_constant:.3f}."
        shown = [(one.name, f"{one.share:.0%}", share_words(one.precision)) for one in self.kept]
        kept = Table.of("Questions kept", ("", "kept", "precision"), shown, note=note)
        return [*self.evaluation.tables(), kept]


def score_validator(
    valid: ArrayLike,
    probabilities: ArrayLike,
    groups: ArrayLike,
    *,
    folds: ArrayLike | None = None,
    seed: int = 0,
) -> ValidatorScores:
    """Score probabilities of questions that were not trained on.

    Args:
        valid: Shape [items], 0 or 1; both must occur.
        probabilities: P(valid), shape [items]; NaN where a question could not be judged.
        groups: Shape [items], the main passage of each.
        folds: Shape [items]: who was predicted by the same fit, see :func:`climassay.learning.evaluate`.
        seed: Of the resampling.

    Raises:
        InputError: All questions that were judged have the same label, or shapes differ.
    """
    labels, given = np.asarray(valid, dtype=np.int64), np.asarray(probabilities, dtype=np.float64)
    if labels.shape != given.shape:
        raise InputError("Validators are scored with one probability for each label.")
    known = np.isfinite(given)
    if not 0 < labels[known].sum() < known.sum():
        raise InputError("All questions judged are of one kind, so that nothing can be said about a validator.")
    at_half = given >= 0.5
    # What is as likely as not is kept.
    answers = np.where(known, at_half, -1)
    options: dict[str, Any] = {"groups": groups, "folds": folds, "resamples": RESAMPLES, "seed": seed}
    both = np.stack([1 - given, given], axis=1)
    judged, sure = labels[known], given[known]
    kept = [KeptShare("everything (constant)", 1.0, proportion(int(judged.sum()), len(judged)))]
    if at_half.any():
        precision = proportion(int(labels[at_half].sum()), int(at_half.sum()))
        kept.append(KeptShare("P(valid) of at least 1/2", float(at_half.sum() / known.sum()), precision))
    kept += [precision_at(share, judged, sure) for share in KEPT_SHARES]
    evaluation = evaluate(labels, both, CLASSES, answers=answers, **options)
    return ValidatorScores(evaluation, tuple(kept), calibration(sure, judged))


def precision_at(share: float, valid: IntArray, probabilities: FloatArray) -> KeptShare:
    """Precision of the likeliest share of questions (shape [questions]), at least one; equal ones in their order."""
    kept = max(1, round(share * len(valid)))
    chosen = np.argsort(-probabilities, kind="stable")[:kept]
    return KeptShare(f"likeliest {share:.0%}", share, proportion(int(valid[chosen].sum()), kept))


def chosen_threshold(
    precision: float | None, valid: IntArray, probabilities: FloatArray
) -> tuple[Threshold | None, str | None]:
    """A threshold for a precision, or why there is none; neither where none is wanted.

    Args:
        precision: Wanted share of valid items among those kept, above 0 to 1; None wants no threshold.
        valid: Shape [items], 0 or 1.
        probabilities: P(valid) by a validator that did not see the item, shape [items].

    Raises:
        InputError: The precision is no share.
    """
    if precision is None:
        return None, None
    try:
        return threshold_for(precision, valid, probabilities), None
    except InputError as error:
        if not 0 < precision <= 1:
            raise
        return None, str(error)


def threshold_table(threshold: Threshold) -> Table:
    """A threshold and what may be expected of it."""
    rows = [
        ("P(valid) of at least", f"{threshold.value:.3f}"),
        ("precision wanted", f"{threshold.wanted:.1%}"),
        ("precision on labels", share_words(threshold.precision)),
        ("share kept", f"{threshold.yield_.value:.1%}"),
    ]
    return Table.of("Threshold", ("", ""), rows, note="Chosen on these labels: new questions may do a little worse.")


def share_words(one: Estimate) -> str:
    """A share in percent with its interval."""
    return f"{one.value:.1%} ({one.interval.low:.1%} to {one.interval.high:.1%})"
