"""Training validators, each with its figures on passages that it was not trained on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from climassay.errors import InputError, ModelError
from climassay.generation.draft import Subject
from climassay.generation.validation.calibrator import FloatArray, IntArray, check_labels
from climassay.generation.validation.head import HeadKind, HeadSource, ValidatorHead
from climassay.generation.validation.head_fitting import (
    REGULARISATIONS,
    RegularisationChoice,
    cross_validated,
    fit_head,
)
from climassay.generation.validation.labels import LabelledDraft, LabelSet, labels_array, source_groups
from climassay.generation.validation.measuring import ValidatorScores, score_validator
from climassay.generation.validation.prompting import validation_prompt
from climassay.generation.validation.reading import Read, StateReader, TextReader
from climassay.generation.validation.threshold import Threshold, threshold_for
from climassay.learning import ActivationStore
from climassay.models.contract import Encoder, OpenWeights
from climassay.prompts import Prompt

DEPTH = 0.6
"""Of the layer that a probe reads by default: what a model makes of a text is most legible above its middle."""
Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True, eq=False)
class TrainedHead:
    """A head with the evidence behind it."""

    head: ValidatorHead
    scores: ValidatorScores
    """Of the whole procedure by cross-validation, all its choices made anew in each fold."""
    choices: tuple[RegularisationChoice, ...]
    drafts: tuple[LabelledDraft, ...]
    """Those that could be read."""
    probabilities: FloatArray
    """Of these drafts, each by fits on other passages."""
    left_out: int
    """Labelled drafts that could not be read."""
    refusal: str | None
    """Why there is no threshold for the precision wanted."""


def train_features(
    labels: LabelSet,
    encoder: Encoder,
    *,
    precision: float | None = None,
    folds: int = 5,
    seed: int = 0,
    on_read: Progress | None = None,
    on_fold: Progress | None = None,
) -> TrainedHead:
    """Train a head on vectors and words: no language model, seconds on a CPU.

    Args:
        labels: What experts said.
        encoder: Whose vectors are read.
        precision: Wanted share of valid ones among those kept; None chooses no threshold.
        folds: Of the cross-validation.
        seed: Of the folds.
        on_read: Called with the number of drafts read since the last call.
        on_fold: Called with 1 after each fold.

    Raises:
        InputError: Too few labels.
    """
    read = TextReader(encoder).read([one.draft for one in labels.drafts], on_read=on_read)
    facts = _Facts("features", encoder.name, encoder.fingerprint)
    return _train(labels, read, facts, precision, folds, seed, on_fold)


def train_probe(
    labels: LabelSet,
    model: OpenWeights,
    *,
    layers: Sequence[int] = (),
    prompt: Prompt | None = None,
    subject: Subject | None = None,
    store: ActivationStore | None = None,
    precision: float | None = None,
    folds: int = 5,
    seed: int = 0,
    on_read: Progress | None = None,
    on_fold: Progress | None = None,
) -> TrainedHead:
    """Train a head on the hidden states of a model that is made to answer VALID and INVALID.

    A probe of the room judging has no intercept, since its pairs have no preferred side; valid questions are the many,
    so this one has.

    Args:
        labels: What experts said.
        model: Whose states are read.
        layers: Which ones, side by side; by default one at :data:`DEPTH`.
        prompt: The template; the built-in one by default.
        subject: The science.
        store: Where states are kept.
        precision: As in :func:`train_features`.
        folds: Of the cross-validation.
        seed: Of the folds.
        on_read: Called with the number of drafts read since the last call.
        on_fold: Called with 1 after each fold.

    Raises:
        InputError: Too few labels.
        ModelError: The model has no such layer, or no draft could be read.
    """
    chosen = tuple(layers) or (max(1, round(DEPTH * model.layers)),)
    template, science = prompt or validation_prompt(), subject or Subject()
    reader = StateReader(model, template, chosen, store, science)
    read = reader.read([one.draft for one in labels.drafts], on_read=on_read)
    facts = _Facts("probe", model.name, model.fingerprint, chosen, model.dtype, template.sha256, science)
    return _train(labels, read, facts, precision, folds, seed, on_fold)


@dataclass(frozen=True, slots=True)
class _Facts:
    kind: HeadKind
    model: str
    fingerprint: str
    layers: tuple[int, ...] = ()
    dtype: str = ""
    template_sha256: str = ""
    subject: Subject = field(default_factory=Subject)


def _train(
    labels: LabelSet,
    read: Read,
    facts: _Facts,
    precision: float | None,
    folds: int,
    seed: int,
    on_fold: Progress | None,
) -> TrainedHead:
    kept = read.succeeded
    if not kept.any():
        raise ModelError(f"No labelled question could be read: {next(iter(read.failed.values()))}")
    drafts = tuple(one for one, good in zip(labels.drafts, kept, strict=True) if good)
    blocks = [block[kept] for block in read.blocks]
    valid, groups = labels_array(drafts), source_groups([one.draft for one in drafts])
    given, split = cross_validated(blocks, valid, groups, folds=folds, seed=seed, on_fold=on_fold)
    scores = score_validator(valid, given, groups, folds=split, seed=seed)
    fitted = fit_head(blocks, valid, groups, regularisations=REGULARISATIONS, folds=folds, seed=seed)
    threshold, refusal = chosen_threshold(precision, valid, given)
    source = HeadSource(
        kind=facts.kind,
        model=facts.model,
        fingerprint=facts.fingerprint,
        data=labels.name,
        data_sha256=labels.sha256,
        labels=len(drafts),
        invalid=int((valid == 0).sum()),
        kinds=tuple(dict.fromkeys(one.draft.kind for one in drafts)),
        regularisation=fitted.choices[0].regularisation,
        seed=seed,
        layers=facts.layers,
        dtype=facts.dtype,
        template_sha256=facts.template_sha256,
        subject=facts.subject,
        cross_validated=figures(scores),
        trained_on=tuple(one.draft.id for one in drafts),
    )
    head = ValidatorHead(fitted.linear, fitted.calibrator, threshold, source)
    return TrainedHead(head, scores, fitted.choices, drafts, given, int((~kept).sum()), refusal)


def chosen_threshold(
    precision: float | None, valid: IntArray, probabilities: FloatArray
) -> tuple[Threshold | None, str | None]:
    """A threshold for a precision, or why there is none; neither where none is wanted.

    Args:
        precision: Wanted share of valid items among those kept, above 0 to 1; None wants no threshold.
        valid: Shape [items], 0 or 1.
        probabilities: P(valid) by a head that did not see the item, shape [items].

    Raises:
        InputError: The precision is none.
    """
    if precision is None:
        return None, None
    try:
        return threshold_for(precision, valid, probabilities), None
    except InputError as error:
        if not 0 < precision <= 1:
            raise
        return None, str(error)


def figures(scores: ValidatorScores) -> tuple[tuple[str, float], ...]:
    """The figures that are kept with a validator."""
    return (
        ("auroc", scores.auroc),
        ("auroc_low", scores.auroc_interval.low),
        ("auroc_high", scores.auroc_interval.high),
        ("constant", scores.constant.value),
        ("brier", scores.calibration.brier),
        ("brier_constant", scores.calibration.brier_constant),
    )


def split_labels(
    labels: LabelSet, hold_out: float, *, seed: int = 0
) -> tuple[tuple[LabelledDraft, ...], tuple[LabelledDraft, ...]]:
    """Labelled drafts to train on and to measure on, without a passage in common and with like shares of valid ones.

    Args:
        labels: What experts said.
        hold_out: Share that is measured on, above 0 and below 1.
        seed: Of the split.

    Raises:
        InputError: Too few labels, or one part gets labels of one kind only.
    """
    from climassay.generation.validation.calibrator import stratified_folds

    if not 0 < hold_out < 1:
        raise InputError(f"The share held out is {hold_out}: give a number between 0 and 1, for example 0.25.")
    valid, groups = labels_array(labels.drafts), source_groups([one.draft for one in labels.drafts])
    check_labels(valid)
    # Twentieths are fine enough, and dealt like folds each has its share of invalid ones.
    parts = stratified_folds(valid, groups, 20, seed=seed)
    names = np.unique(parts)
    outside = np.isin(parts, names[: min(len(names) - 1, max(1, round(hold_out * len(names))))])
    learned = tuple(one for one, out in zip(labels.drafts, outside, strict=True) if not out)
    held = tuple(one for one, out in zip(labels.drafts, outside, strict=True) if out)
    for part in (learned, held):
        check_labels(labels_array(part))
    return learned, held
