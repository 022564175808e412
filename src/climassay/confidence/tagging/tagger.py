"""Taggers, which estimate the probability of each level of confidence that a report would give to a statement.

A tagger is a classifier of texts (:mod:`climassay.learning.text_classifier`) whose classes are levels. Its input is
statements without tags. It is evaluated for three class frequencies, and stores its errors in held-out documents.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from climassay.claim_identity import words_id
from climassay.confidence.tagging.labelled import TAGGER_LEVELS, LabelledItem, Taggable, TaggingItem
from climassay.confidence.tagging.quantification import compute_share_residuals
from climassay.confidence.vocabulary import LEVELS, Level
from climassay.errors import InputError
from climassay.learning import (
    ClassifierSpec,
    HeldOutScores,
    ModelFormat,
    PartSpec,
    Provenance,
    TextClassifier,
    evaluate,
    reweight,
)
from climassay.learning.calibration import class_shares
from climassay.learning.evaluation import RESAMPLES
from climassay.learning.features import FeatureModels, Progress
from climassay.learning.splits import FOLDS
from climassay.learning.text_classifier import (
    BOTH,
    CONSTANT,
    VECTORS,
    WORDS,
    TrainedClassifier,
    TrainingTexts,
    compare_classifiers,
    train_text_classifier,
)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

BUNDLED_TAGGER = Path(__file__).with_name("tagger.safetensors")
"""Bundled tagger; see docs/results/confidence.md."""

EQUAL = (1.0,) * len(TAGGER_LEVELS)
CLIMATEX_MIX = (50.0, 100.0, 100.0, 50.0)
"""Number of statements of low, medium, high and very high confidence in ClimateX's test set."""
MIXES: Mapping[str, tuple[float, ...] | None] = MappingProxyType({
    "natural": None, "equal": EQUAL, "climatex": CLIMATEX_MIX,
})  # fmt: skip
"""Class frequencies for which taggers are evaluated; ``natural`` (None) means those in the evaluated statements."""
PUBLISHED: Mapping[str, float] = MappingProxyType({
    "constant": 1 / 3, "people who are not experts": 0.363, "GPT-4, zero-shot": 0.443, "GPT-4, few-shot": 0.470,
})  # fmt: skip
"""Published accuracies on ClimateX's 300 test statements, in which levels have the frequencies ``climatex`` (Lacombe et
al. 2023, table 2)."""

ORDINAL = ClassifierSpec("vectors, ordinal", (PartSpec(("vectors",), "ordinal"),))
IN_CONTEXT = ClassifierSpec(
    "words and vectors, in context",
    (PartSpec(("words",)), PartSpec(("vectors",)), PartSpec(("context vectors",), regularisation=1.0)),
)
SPECS = (CONSTANT, VECTORS, ORDINAL, WORDS, BOTH, IN_CONTEXT)
"""Classifiers that are compared by default; none needs a language model."""
STATES = (
    ClassifierSpec("mean states", (PartSpec(("mean states",), regularisation=1.0),)),
    ClassifierSpec("last states", (PartSpec(("last states",), regularisation=1.0),)),
)
"""Pointwise probes of a local model's hidden states; they are only compared on request."""


def find_specs(names: Sequence[str]) -> tuple[ClassifierSpec, ...]:
    """Return the classifiers with these names; without names, those that need no language model.

    Raises:
        InputError: There is no classifier with one of the names.
    """
    specs_by_name = {spec.name: spec for spec in (*SPECS, *STATES)}
    unknown_name = next((name for name in names if name not in specs_by_name), None)
    if unknown_name is not None:
        raise InputError(f"There is no tagger {unknown_name!r} to try: there are {'; '.join(specs_by_name)}.")
    return tuple(specs_by_name[name] for name in names) if names else SPECS


class Tagger(TextClassifier):
    """Classifier of statements into levels of confidence.

    The scores in :attr:`provenance` were measured on held-out sections. ``equal_accuracy`` applies to equally frequent
    levels, ``climatex_accuracy`` and ``climatex_ordinal_error`` to the class frequencies of ClimateX's test set, and
    the other scores to the natural frequencies. Each has a 95% interval, ``_low`` and ``_high``.
    """

    FORMAT = ModelFormat("climassay-confidence-tagger", 1, "confidence tagger", "climassay confidence tag train")

    @property
    def levels(self) -> tuple[Level, ...]:
        """Levels from the lowest to the highest."""
        return cast("tuple[Level, ...]", self.classes)

    @property
    def confusion(self) -> FloatArray | None:
        """Confusion matrix of held-out statements by true level (rows) and answer (columns); None if unknown.

        The shape is [levels, levels]. The answers are those for equally frequent levels. Use it in
        :func:`~climassay.confidence.tagging.quantification.estimate_shares` with probabilities of ``for_mix((1, 1, 1,
        1))``.
        """
        return _to_float_array(self.provenance.settings.get("confusion"))

    @property
    def residuals(self) -> FloatArray | None:
        """Errors of the levels' proportions in held-out documents, shape [documents, levels]; None if unknown.

        Use them in :func:`~climassay.confidence.tagging.quantification.estimate_shares` with probabilities for the
        natural class frequencies.
        """
        return _to_float_array(self.provenance.settings.get("residuals"))

    def predict_proba(self, texts: Sequence[Taggable], *, on_progress: Progress | None = None) -> FloatArray:
        """Return probabilities of the levels, shape [statements, levels]; tags in statements are removed.

        Args:
            texts: Statements, texts, or texts with their contexts.
            on_progress: Callback that receives the number of texts encoded since its last call, once for each feature
                source.

        Raises:
            InputError: A statement has no words.
        """
        return super().predict_proba([TaggingItem.convert(item).read() for item in texts], on_progress=on_progress)

    @classmethod
    def load(cls, path: Path | str = BUNDLED_TAGGER) -> Self:
        """Load a tagger from a file, by default the bundled one; raises the errors of :meth:`SavedModel.load`."""
        return super().load(Path(path))

    @classmethod
    def build(cls, metadata: dict[str, Any], arrays: dict[str, FloatArray]) -> Self:
        """Restore a tagger from saved metadata and arrays; see :meth:`TextClassifier.build`."""
        tagger = super().build(metadata, arrays)
        if [tag for tag in LEVELS if tag in tagger.classes] != list(tagger.classes):
            raise ValueError("its levels are others")
        return tagger


def _to_float_array(rows: Any) -> FloatArray | None:
    return np.array(rows, dtype=np.float64) if rows else None


load_tagger = Tagger.load


def make_training_texts(
    items: Sequence[LabelledItem], models: FeatureModels | None = None, *, on_progress: Progress | None = None
) -> TrainingTexts:
    """Return labelled statements as training texts, grouped by their sections."""
    return TrainingTexts(
        [item.item.read() for item in items], [item.tag for item in items], TAGGER_LEVELS,
        groups=[item.section for item in items], models=models, on_progress=on_progress,
    )  # fmt: skip


def evaluate_on_mixes(
    truth: IntArray,
    probabilities: FloatArray,
    groups: Sequence[Any] | IntArray,
    *,
    shares: Sequence[float] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> dict[str, HeldOutScores]:
    """Evaluate probabilities for each of the class frequencies in :data:`MIXES`, for which they are reweighted.

    Only the natural frequencies are evaluated if one of the levels does not occur.

    Args:
        truth: Indices of the true levels, shape [statements].
        probabilities: Held-out probabilities, shape [statements, levels], calibrated for the class frequencies in
            training.
        groups: Group of each statement, shape [statements]; the bootstrap resamples groups.
        shares: Proportions of the levels in training; by default those in ``truth``.
        resamples: Number of bootstrap samples.
        seed: Seed of the bootstrap.
    """
    counts = np.bincount(truth, minlength=len(TAGGER_LEVELS))
    training_shares = class_shares(counts) if shares is None else shares
    return {
        name: evaluate(
            truth, probabilities if mix is None else reweight(probabilities, training_shares, mix), TAGGER_LEVELS,
            groups=groups, mix=mix, resamples=resamples, seed=seed,
        )
        for name, mix in MIXES.items()
        if mix is None or counts.all()
    }  # fmt: skip


def train_tagger(
    items: Sequence[LabelledItem],
    training: TrainingTexts | None = None,
    *,
    specs: Sequence[ClassifierSpec] = SPECS,
    folds: int = FOLDS,
    document_folds: int | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
    provenance: Provenance | None = None,
    on_fit: Callable[[], None] | None = None,
) -> TrainedClassifier[Tagger]:
    """Select a tagger by held-out log loss over folds that share no section, and fit it on all statements.

    The selected tagger is also cross-validated over documents, if enough of them have enough statements. This yields
    the residuals with which proportions of levels are estimated.

    Args:
        items: Labelled statements.
        training: Texts of the same items, with the models that compute features (:func:`make_training_texts`); None
            if no models are needed.
        specs: Classifiers to compare.
        folds: Number of folds over sections.
        document_folds: Number of folds over documents, by default ``folds``.
        seed: Seed of folds and bootstrap.
        resamples: Number of bootstrap samples.
        provenance: Origin of the training data.
        on_fit: Callback that is called after every fit.

    Raises:
        InputError: There are too few statements or sections, or a feature source lacks its model.
    """
    training = training or make_training_texts(items)
    trained_classifier = train_text_classifier(
        training, specs=specs, folds=folds, seed=seed, resamples=resamples, provenance=provenance,
        kind=Tagger, on_fit=on_fit,
    )  # fmt: skip
    candidate, new_provenance = trained_classifier.chosen, trained_classifier.classifier.provenance
    evaluations = evaluate_on_mixes(
        training.truth, candidate.probabilities, training.groups, resamples=resamples, seed=seed
    )
    measured_scores, settings = new_provenance.measured, dict[str, Any]()
    if "equal" in evaluations:
        settings["confusion"] = evaluations["equal"].confusion
        for name, estimate in (
            ("equal_accuracy", evaluations["equal"].accuracy),
            ("climatex_accuracy", evaluations["climatex"].accuracy),
            ("climatex_ordinal_error", evaluations["climatex"].ordinal_error),
        ):
            measured_scores |= {
                name: estimate.value,
                f"{name}_low": estimate.interval.low,
                f"{name}_high": estimate.interval.high,
            }
    documents = np.unique([item.document for item in items], return_inverse=True)[1]
    if documents.max() > 0:
        document_evaluation = compare_classifiers(
            [candidate.spec], training, fold_groups=documents, folds=document_folds or folds, seed=seed, resamples=1
        )[0]  # fmt: skip
        with suppress(InputError):  # too few documents are large enough
            settings["residuals"] = compute_share_residuals(
                training.truth, document_evaluation.probabilities, documents.tolist()
            ).tolist()
    text_ids = tuple(dict.fromkeys(words_id(item.item.text) for item in items))
    new_provenance = replace(new_provenance, measured=measured_scores, settings=settings, trained_on=text_ids)
    return replace(trained_classifier, classifier=replace(trained_classifier.classifier, provenance=new_provenance))
