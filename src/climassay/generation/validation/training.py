"""Training validators on features, with figures on passages that they were not trained on."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from climassay.errors import ModelError
from climassay.generation.validation.labels import (
    LabelSet,
    ValidatorScores,
    check_labels,
    chosen_threshold,
    labels_array,
    score_validator,
    source_groups,
)
from climassay.generation.validation.reading import Progress, Reader
from climassay.generation.validation.validators import Learned, TrainedValidator, Validator
from climassay.learning import Calibrator, LinearModel, fit_calibrator, fit_path, group_folds
from climassay.learning.splits import FOLDS

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

V = TypeVar("V", bound=Validator)

REGULARISATIONS = (0.01, 0.1, 1.0, 10.0)
"""C that are tried: the prior variance of an item's log-odds, which all blocks of features share."""


@dataclass(frozen=True, slots=True, eq=False)
class Training(Generic[V]):
    """A trained validator and the evidence behind it."""

    validator: V
    learned: Learned
    scores: ValidatorScores
    """On labels that it was not trained on."""
    probabilities: FloatArray
    """P(valid) of these, by what was not trained on them."""
    refusal: str | None
    """Why there is no threshold for the precision wanted."""
    choices: tuple[tuple[float, float], ...] = ()
    """All C tried with their log-loss on held-out items in nats, best first."""
    left_out: int = 0
    """Labelled drafts that could not be read."""

    def facts(self) -> dict[str, Any]:
        """What is known of it, for JSON, without the ids of what it was trained on."""
        return {
            "source": replace(self.learned.provenance, trained_on=()),
            **asdict(self.scores),
            "choices": [{"regularisation": C, "log_loss": loss} for C, loss in self.choices],
            "threshold": self.learned.threshold,
            "refusal": self.refusal,
            "left_out": self.left_out,
        }


def train_validator(
    labels: LabelSet,
    reader: Reader,
    *,
    precision: float | None = None,
    folds: int = FOLDS,
    seed: int = 0,
    on_read: Progress | None = None,
    on_fold: Progress | None = None,
) -> Training[TrainedValidator]:
    """Train a validator on what a reader sees of drafts: seconds on a CPU for an encoder.

    Probes of the room judging have no intercept, since their pairs have no preferred side; valid questions are the
    many, so this one has.

    Args:
        labels: What experts said.
        reader: Turns drafts into features.
        precision: Wanted share of valid ones among those kept; None chooses no threshold.
        folds: Number of cross-validation folds.
        seed: Seed of the folds.
        on_read: Called with the number of drafts read since the last call.
        on_fold: Called with 1 after each fold.

    Raises:
        InputError: Too few labels.
        ModelError: The model cannot be read, or no draft could be.
    """
    read = reader.read([one.draft for one in labels.drafts], on_read=on_read)
    kept = read.succeeded
    if not kept.any():
        raise ModelError(f"No labelled question could be read: {next(iter(read.failed.values()))}")
    drafts = tuple(one for one, good in zip(labels.drafts, kept, strict=True) if good)
    blocks = [block[kept] for block in read.blocks]
    valid, groups = labels_array(drafts), source_groups([one.draft for one in drafts])
    given, split = cross_validated(blocks, valid, groups, folds=folds, seed=seed, on_fold=on_fold)
    scores = score_validator(valid, given, groups, folds=split, seed=seed)
    model, calibrator, choices = fit_calibrated(blocks, valid, groups, folds=folds, seed=seed)
    threshold, refusal = chosen_threshold(precision, valid, given)
    source = reader.provenance
    provenance = replace(
        source,
        data=labels.name,
        data_sha256=labels.sha256,
        items=len(drafts),
        groups=len(np.unique(groups)),
        regularisation=choices[0][0],
        seed=seed,
        measured=scores.figures,
        trained_on=tuple(one.draft.id for one in drafts),
        settings={
            **source.settings,
            "invalid": int((valid == 0).sum()),
            "kinds": list(dict.fromkeys(one.draft.kind for one in drafts)),
        },
    )
    learned = Learned(provenance, calibrator, threshold)
    validator = TrainedValidator(model, learned, reader)
    return Training(validator, learned, scores, given, refusal, choices, int((~kept).sum()))


def fit_calibrated(
    blocks: Sequence[FloatArray], valid: IntArray, groups: IntArray, *, folds: int = FOLDS, seed: int = 0
) -> tuple[LinearModel, Calibrator, tuple[tuple[float, float], ...]]:
    """Choose C by log-loss on held-out passages, fit the calibrator on held-out scores, and fit on all items.

    Features have the shape [items, features] each, labels (0 or 1) and groups, which no fold parts, [items].
    """
    check_labels(valid)
    # The blocks share what a C of one block allows.
    path = [one / len(blocks) for one in REGULARISATIONS]
    held_out = np.zeros((len(path), len(valid)))
    split = group_folds(groups, folds, seed=seed, labels=valid)
    for fold in np.unique(split):
        inside = split == fold
        learned = valid[~inside]
        if 0 < learned.sum() < len(learned):
            models = fit_path([block[~inside] for block in blocks], learned, 2, path)
            held_out[:, inside] = [model.log_odds([block[inside] for block in blocks]) for model in models]
        else:
            held_out[:, inside] = np.log((learned.sum() + 1) / (len(learned) - learned.sum() + 1))
    losses = np.logaddexp(0, np.where(valid == 1, -held_out, held_out)).mean(axis=1)
    order = np.argsort(losses, kind="stable")
    model = fit_path(blocks, valid, 2, [path[order[0]]])[0]
    choices = tuple((REGULARISATIONS[place], float(losses[place])) for place in order)
    return model, fit_calibrator(held_out[order[0]], valid), choices


def cross_validated(
    blocks: Sequence[FloatArray],
    valid: IntArray,
    groups: IntArray,
    *,
    folds: int = FOLDS,
    seed: int = 0,
    on_fold: Callable[[int], None] | None = None,
) -> tuple[FloatArray, IntArray]:
    """P(valid) of each item by the whole of :func:`fit_calibrated` on the other folds, its choices included.

    Returns:
        Probabilities and folds, both of shape [items].
    """
    check_labels(valid)
    split = group_folds(groups, folds, seed=seed, labels=valid)
    found = np.zeros(len(valid))
    for fold in np.unique(split):
        inside = split == fold
        outside = [block[~inside] for block in blocks]
        model, calibrator, _ = fit_calibrated(outside, valid[~inside], groups[~inside], folds=folds, seed=seed + 1)
        found[inside] = calibrator(model.log_odds([block[inside] for block in blocks]))
        if on_fold is not None:
            on_fold(1)
    return found, split
