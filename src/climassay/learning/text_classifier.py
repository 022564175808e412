"""Classifier of texts by linear models of several sources of features, chosen by cross-validation.

The classifiers of confidence levels, fallacies, claims and uncheckable texts are configurations of it.

Example:
    training = TrainingTexts(texts, labels, classes, groups=articles, models=FeatureModels(load_encoder()))
    trained = train_text_classifier(training)
    trained.classifier.save(Path("fallacies.safetensors"))
    TextClassifier.load(Path("fallacies.safetensors")).predict(["It has always changed."])
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError
from climassay.learning.calibration import class_shares, reweight
from climassay.learning.evaluation import RESAMPLES, HeldOutScores, evaluate
from climassay.learning.features import (
    FeatureBasedModel,
    FeatureModels,
    Progress,
    Source,
    Text,
    Vocabulary,
    check_sources,
    compute_block,
    needs_encoder,
    needs_model,
)
from climassay.learning.linear import Block, LinearModel, Link, fit_linear, softmax
from climassay.learning.model_file import ModelFormat, Provenance, check_array
from climassay.learning.splits import FOLDS, IntArray, NearDuplicates, Split, cross_predict, group_folds, iterate_splits

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PartSpec:
    """Configuration of one linear model."""

    sources: tuple[Source, ...]
    link: Link = "nominal"
    regularisation: float = 3.0


@dataclass(frozen=True, slots=True)
class ClassifierSpec:
    """Configuration of a classifier that pools the probabilities of linear models."""

    name: str
    parts: tuple[PartSpec, ...]
    """Linear models; without any, the classifier always predicts the class proportions of the training data."""
    max_words: int = 2
    """Maximum number of words in an n-gram."""
    min_texts: int = 4
    """Minimum number of training texts in which an n-gram must occur to be a feature."""
    balanced: bool = False
    """Whether all classes get the same total weight in training."""

    @property
    def sources(self) -> tuple[Source, ...]:
        """Distinct sources of features of all linear models."""
        return tuple(dict.fromkeys(source for part in self.parts for source in part.sources))


CONSTANT = ClassifierSpec("constant", ())
WORDS = ClassifierSpec("words", (PartSpec(("words",), regularisation=1.0),))
VECTORS = ClassifierSpec("vectors", (PartSpec(("vectors",), regularisation=1.0),))
BOTH = ClassifierSpec("words and vectors", (PartSpec(("words",)), PartSpec(("vectors",))))
SPECS = (CONSTANT, VECTORS, WORDS, BOTH)
"""Configurations that are compared by default; none of them needs a language model."""


@dataclass(frozen=True, slots=True, eq=False)
class FittedPart:
    """Fitted linear model and the sources of its features."""

    sources: tuple[Source, ...]
    model: LinearModel


@dataclass(frozen=True, eq=False)
class TextClassifier(FeatureBasedModel):
    """Classifier of texts by linear models, whose probabilities are pooled by their geometric mean.

    Attributes:
        classes: Names of the classes, from low to high if they are ordered.
        parts: Linear models. Without any, the probabilities of every text are ``shares``.
        shares: Class proportions in the training data, all above 0.
        vocabularies: Vocabulary of each source that counts words.
        provenance: Training data and held-out scores.
        mix: Class proportions that the probabilities assume; None for those of the training data.
        models: Encoder and language model that compute the features.
    """

    FORMAT = ModelFormat("climassay-text-classifier", 1, "text classifier", "a command that trains one")

    classes: tuple[str, ...]
    parts: tuple[FittedPart, ...]
    shares: tuple[float, ...]
    vocabularies: dict[Source, Vocabulary] = field(default_factory=dict)
    provenance: Provenance = field(default_factory=Provenance)
    mix: tuple[float, ...] | None = None
    models: FeatureModels = field(default_factory=FeatureModels)

    @property
    def sources(self) -> tuple[Source, ...]:
        """Distinct sources of features of all linear models."""
        return tuple(dict.fromkeys(source for part in self.parts for source in part.sources))

    def for_mix(self, mix: Sequence[float] | None) -> Self:
        """Return a copy that assumes the given class proportions, for example ``(1, 1, 1, 1)`` for equal proportions.

        Raises:
            InputError: There is not one proportion for each class, or a proportion is negative.
        """
        if mix is not None and (len(mix) != len(self.classes) or min(mix) < 0 or not sum(mix)):
            raise InputError(
                f"A mix needs {len(self.classes)} shares that are not negative ({', '.join(self.classes)})."
            )
        return replace(self, mix=None if mix is None else tuple(mix))

    @cached_property
    def feature_models(self) -> FeatureModels:
        """Encoder and language model that compute the features, loaded by name if missing."""
        return self.models.complete(self.provenance, self.FORMAT.display_name, states=needs_model(self.sources))

    def predict_proba(self, texts: Sequence[str | Text], *, on_progress: Progress | None = None) -> FloatArray:
        """Return the probabilities of the classes, shape [texts, classes].

        Args:
            texts: Texts, or pairs of a text and its context.
            on_progress: Called with the number of texts done since its last call, for slow sources.

        Raises:
            InputError: A text has no words.
        """
        pairs: list[Text] = [(text, "") if isinstance(text, str) else text for text in texts]
        empty_index = next((index for index, (text, _) in enumerate(pairs) if not any(map(str.isalpha, text))), None)
        if empty_index is not None:
            raise InputError(f"Text {empty_index + 1} contains no words.")
        probabilities = self._pool(
            len(pairs),
            lambda source, vocabulary: compute_block(
                source, pairs, self.feature_models, vocabulary, on_progress=on_progress
            ),
        )
        return probabilities if self.mix is None else reweight(probabilities, self.shares, self.mix)

    def probabilities(self, training: "TrainingTexts", indices: IntArray) -> FloatArray:
        """Return the class probabilities of the training texts with the given indices, shape [indices, classes].

        They assume the class proportions of the training data, whatever ``mix`` is.
        """
        return self._pool(len(indices), lambda source, vocabulary: training.block(source, indices, vocabulary))

    def _pool(self, n_texts: int, get_block: Callable[[Source, Vocabulary | None], Block]) -> FloatArray:
        """Return the normalised geometric mean of the class probabilities of all linear models, shape [texts, classes].

        ``get_block`` returns the feature matrix of one source of features, given its vocabulary.
        """
        if not n_texts or not self.parts:
            return np.tile(np.array(self.shares), (n_texts, 1))
        blocks = {source: get_block(source, self.vocabularies.get(source)) for source in self.sources}
        part_probabilities = [
            part.model.probabilities([blocks[source] for source in part.sources]) for part in self.parts
        ]
        return softmax(np.log(np.maximum(part_probabilities, 1e-12)).mean(axis=0))

    def predict(self, texts: Sequence[str | Text]) -> list[str]:
        """Return the most probable class of each text."""
        return [self.classes[index] for index in self.predict_proba(texts).argmax(axis=1)] if len(texts) else []

    def score(
        self, texts: Sequence[str | Text], labels: Sequence[str], *, groups: Sequence[Any] | None = None, seed: int = 0
    ) -> HeldOutScores:
        """Score the classifier on labelled texts on which it was not trained.

        Args:
            texts: Texts, as in :meth:`predict_proba`.
            labels: Label of each text, one of :attr:`classes`.
            groups: Group of each text, for the bootstrap intervals; by default each text is a group.
            seed: Seed of the resampling.

        Raises:
            InputError: A label is not one of the classes.
        """
        truth = class_indices(labels, self.classes)
        return evaluate(
            truth, self.predict_proba(texts), self.classes, groups=groups, mix=self.mix, seed=seed
        )  # fmt: skip

    def contents(self) -> tuple[dict[str, FloatArray], dict[str, Any]]:
        """Return the arrays and metadata to save; see :meth:`SavedModel.contents`."""
        arrays: dict[str, FloatArray] = {}
        for part_index, part in enumerate(self.parts):
            arrays |= part.model.to_arrays(f"{{}}{part_index}")
        for source, vocabulary in self.vocabularies.items():
            arrays[f"{source} weights"] = np.array(vocabulary.weights)
        metadata = {
            "classes": list(self.classes),
            "shares": list(self.shares),
            "parts": [{"sources": list(part.sources), "link": part.model.link} for part in self.parts],
            "vocabularies": {
                source: {"terms": "\n".join(vocabulary.terms), "longest": vocabulary.max_words}
                for source, vocabulary in self.vocabularies.items()
            },
            "provenance": self.provenance.to_dict(),
            "mix": self.mix,
        }
        return arrays, metadata

    @classmethod
    def build(cls, metadata: dict[str, Any], arrays: dict[str, FloatArray]) -> Self:
        """Restore a classifier from saved metadata and arrays; see :meth:`SavedModel.build`."""
        classes, shares = tuple(metadata["classes"]), tuple(float(share) for share in metadata["shares"])
        if len(classes) < 2 or len(set(classes)) < len(classes) or len(shares) != len(classes) or min(shares) <= 0:
            raise ValueError("its classes or shares are not what they can be")
        vocabularies: dict[Source, Vocabulary] = {}
        for name, entry in metadata["vocabularies"].items():
            terms = tuple(entry["terms"].split("\n"))
            weights = check_array("vocabulary", arrays[f"{name} weights"], (len(terms),))
            vocabularies[check_sources([name])[0]] = Vocabulary(terms, tuple(weights.tolist()), int(entry["longest"]))
        parts = []
        for part_index, entry in enumerate(metadata["parts"]):
            model = LinearModel.from_arrays(arrays, len(classes), name=f"{{}}{part_index}", link=entry["link"])
            parts.append(FittedPart(check_sources(entry["sources"]), model))
        mix = None if metadata["mix"] is None else tuple(metadata["mix"])
        return cls(classes, tuple(parts), shares, vocabularies, Provenance.read(metadata["provenance"]), mix)


class TrainingTexts:
    """Labelled texts with their features. Features that do not depend on a vocabulary are computed only once."""

    def __init__(
        self,
        texts: Sequence[str | Text],
        labels: Sequence[str],
        classes: Sequence[str],
        *,
        groups: Sequence[Any] | None = None,
        models: FeatureModels | None = None,
        on_progress: Progress | None = None,
    ) -> None:
        """Check the labels; features are computed on first use.

        Args:
            texts: Texts, or pairs of a text and its context.
            labels: Label of each text, one of the classes.
            classes: Names of the classes, from low to high if they are ordered.
            groups: Group of each text, which is never divided between folds; by default near duplicates form groups.
            models: Encoder and language model that compute the features.
            on_progress: Called with the number of texts done since its last call.

        Raises:
            InputError: A label is not one of the classes, or there are not as many labels as texts.
        """
        if len(texts) != len(labels):
            raise InputError(f"{len(texts)} texts have {len(labels)} labels.")
        self.texts: list[Text] = [(text, "") if isinstance(text, str) else text for text in texts]
        self.classes = tuple(classes)
        self.truth = class_indices(labels, classes)
        self.models = models or FeatureModels()
        self._groups = groups
        self._on_progress = on_progress
        self._blocks: dict[Source, FloatArray] = {}

    @cached_property
    def duplicates(self) -> NearDuplicates:
        """Near duplicates among the texts, found by words and, if there is an encoder, by embeddings."""
        texts = [text for text, _ in self.texts]
        if self.models.encoder is None and "vectors" not in self._blocks:
            return NearDuplicates(texts)
        vectors = self.block("vectors", np.arange(len(texts)), None)
        return NearDuplicates(texts, vectors=np.asarray(vectors, dtype=np.float32))

    @cached_property
    def groups(self) -> IntArray:
        """Group index of each text, shape [texts]."""
        if self._groups is None:
            return self.duplicates.groups()
        return np.unique(np.asarray(self._groups), return_inverse=True)[1].astype(np.int64)

    def splits(self, folds: int = FOLDS, *, seed: int = 0, groups: IntArray | None = None) -> list[Split]:
        """Return cross-validation splits of similar size that keep groups together.

        Near duplicates of test texts are excluded from training.

        Args:
            folds: Number of folds.
            seed: Seed of the folds.
            groups: Group of each text, shape [texts]; by default :attr:`groups`.
        """
        text_folds = group_folds(self.groups if groups is None else groups, folds, seed=seed, even=True)
        return list(iterate_splits(text_folds, self.duplicates))

    def block(self, source: Source, indices: IntArray, vocabulary: Vocabulary | None) -> Block:
        """Return the features of the texts with the given indices, shape [indices, features]; sparse for words."""
        if vocabulary is not None:
            return compute_block(source, [self.texts[index] for index in indices], self.models, vocabulary)
        if source not in self._blocks:
            block = compute_block(source, self.texts, self.models, None, on_progress=self._on_progress)
            self._blocks[source] = np.asarray(block)
        return self._blocks[source][indices]


def fit_classifier(spec: ClassifierSpec, training: TrainingTexts, indices: IntArray) -> TextClassifier:
    """Fit a classifier, including its vocabularies, to the training texts with the given indices, shape [indices]."""
    vocabularies: dict[Source, Vocabulary] = {}
    for source in spec.sources:
        if source.endswith("words"):
            pair_index = int(source.startswith("context"))
            texts = [training.texts[index][pair_index] for index in indices]
            vocabularies[source] = Vocabulary.fit(texts, max_words=spec.max_words, min_texts=spec.min_texts)
    parts = []
    for part in spec.parts:
        blocks = [training.block(source, indices, vocabularies.get(source)) for source in part.sources]
        model = fit_linear(
            blocks, training.truth[indices], len(training.classes), link=part.link,
            regularisation=part.regularisation, standardise=False, balanced=spec.balanced,
        )  # fmt: skip
        parts.append(FittedPart(part.sources, model))
    counts = np.bincount(training.truth[indices], minlength=len(training.classes))
    return TextClassifier(training.classes, tuple(parts), tuple(class_shares(counts).tolist()), vocabularies)


C = TypeVar("C", bound=TextClassifier)


@dataclass(frozen=True, slots=True, eq=False)
class ComparedClassifier:
    """Configuration of a classifier, with its cross-validated scores."""

    spec: ClassifierSpec
    probabilities: FloatArray
    """Probabilities of held-out texts, shape [texts, classes]."""
    evaluation: HeldOutScores


@dataclass(frozen=True, eq=False)
class TrainedClassifier(Generic[C]):
    """Trained classifier with the cross-validated scores of all candidates."""

    classifier: C
    candidates: tuple[ComparedClassifier, ...]
    """All classifiers that were compared on the same folds."""
    chosen: ComparedClassifier
    """Candidate with the lowest log loss. Because it was chosen by these scores, scores on new texts may be slightly
    worse."""


def compare_classifiers(
    specs: Sequence[ClassifierSpec],
    training: TrainingTexts,
    *,
    fold_groups: IntArray | None = None,
    folds: int = FOLDS,
    seed: int = 0,
    resamples: int = RESAMPLES,
    on_fit: Callable[[], None] | None = None,
) -> list[ComparedClassifier]:
    """Cross-validate classifiers on the same folds, and return their scores in the order of ``specs``.

    Args:
        specs: Classifiers to compare.
        training: Labelled texts; their groups are resampled for the intervals.
        fold_groups: Group of each text, shape [texts], which is never divided between folds; by default
            ``training.groups``.
        folds: Number of folds.
        seed: Seed of folds and bootstrap.
        resamples: Number of bootstrap samples of the intervals.
        on_fit: Called after each classifier.
    """
    splits = training.splits(folds, seed=seed, groups=fold_groups)
    candidates = []
    for spec in specs:
        probabilities = cross_predict(
            splits,
            partial(fit_classifier, spec, training),
            lambda classifier, test: classifier.probabilities(training, test),
            len(training.texts),
        )
        scores = evaluate(
            training.truth, probabilities, training.classes, groups=training.groups, resamples=resamples, seed=seed
        )  # fmt: skip
        candidates.append(ComparedClassifier(spec, probabilities, scores))
        if on_fit is not None:
            on_fit()
    return candidates


def choose_best(candidates_and_baseline: Sequence[ComparedClassifier]) -> ComparedClassifier:
    """Return the classifier with the lowest log loss, excluding the class-frequency baseline.

    Raises:
        InputError: There is no classifier besides the baseline.
    """
    candidates = [classifier for classifier in candidates_and_baseline if classifier.spec.parts]
    if not candidates:
        raise InputError("There is nothing to choose from: try at least one classifier that reads texts.")
    return min(candidates, key=lambda classifier: classifier.evaluation.log_loss.value)


def train_text_classifier(
    training: TrainingTexts,
    *,
    specs: Sequence[ClassifierSpec] = SPECS,
    folds: int = FOLDS,
    seed: int = 0,
    resamples: int = RESAMPLES,
    provenance: Provenance | None = None,
    kind: type[C] = TextClassifier,  # type: ignore[assignment]
    on_fit: Callable[[], None] | None = None,
) -> TrainedClassifier[C]:
    """Compare classifiers by cross-validated log loss, and fit the best one to all texts.

    Args:
        training: Labelled texts.
        specs: Classifiers to compare.
        folds: Number of folds.
        seed: Seed of folds and bootstrap.
        resamples: Number of bootstrap samples of the intervals.
        provenance: Provenance of the data, to which the scores are added.
        kind: Class of the resulting classifier.
        on_fit: Called after each classifier is cross-validated.

    Raises:
        InputError: There are too few texts or groups, or the encoder or language model of a source is missing.
    """
    candidates = compare_classifiers(specs, training, folds=folds, seed=seed, resamples=resamples, on_fit=on_fit)
    best_candidate, data_provenance = choose_best(candidates), provenance or Provenance()
    models = training.models
    encoder = models.require_encoder() if needs_encoder(best_candidate.spec.sources) else None
    model = models.require_model() if needs_model(best_candidate.spec.sources) else None
    full_provenance = replace(
        data_provenance.with_feature_models(encoder, model),
        seed=seed,
        measured={**data_provenance.measured, **best_candidate.evaluation.figures},
        items=len(training.texts),
        groups=len(np.unique(training.groups)),
        layers=(models.layer,) if model else (),
        regularisation=best_candidate.spec.parts[0].regularisation,
    )
    classifier = fit_classifier(best_candidate.spec, training, np.arange(len(training.texts)))
    fields = classifier.classes, classifier.parts, classifier.shares, classifier.vocabularies
    return TrainedClassifier(kind(*fields, full_provenance, None, models), tuple(candidates), best_candidate)


def class_indices(labels: Sequence[str], classes: Sequence[str]) -> IntArray:
    """Return the index of each label in ``classes``, shape [labels].

    Raises:
        InputError: A label is not one of the classes.
    """
    indices = {name: index for index, name in enumerate(classes)}
    unknown_label = next((label for label in labels if label not in indices), None)
    if unknown_label is not None:
        raise InputError(f"The label {unknown_label!r} is not one of {', '.join(classes)}.")
    return np.array([indices[label] for label in labels], dtype=np.int64)
