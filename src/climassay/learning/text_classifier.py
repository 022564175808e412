"""A classifier of texts: linear models on sources of features, chosen by cross-validation and kept as one small file.

Everything in climassay that sorts a text into classes is a configuration of this: levels of confidence, fallacies,
claims, texts that cannot be checked.

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
from climassay.learning.calibration import class_shares, reweighted
from climassay.learning.evaluation import RESAMPLES, HeldOutScores, evaluate
from climassay.learning.features import (
    FeatureModels,
    Progress,
    ReadingModel,
    Source,
    Text,
    Vocabulary,
    check_sources,
    needs_encoder,
    needs_model,
    read_source,
)
from climassay.learning.linear import Block, LinearModel, Link, fit_linear, softmax
from climassay.learning.model_file import ModelFormat, Provenance, checked_array
from climassay.learning.splits import (
    FOLDS,
    IntArray,
    NearDuplicates,
    Split,
    group_folds,
    held_out,
    splits_of,
)

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PartSpec:
    """One linear model to fit."""

    sources: tuple[Source, ...]
    link: Link = "nominal"
    regularisation: float = 3.0


@dataclass(frozen=True, slots=True)
class ClassifierSpec:
    """A classifier to be trained: linear models whose probabilities are pooled; without any, the constant."""

    name: str
    parts: tuple[PartSpec, ...]
    longest: int = 2
    """Maximum number of words of an n-gram."""
    min_texts: int = 4
    """Minimum number of texts in which an n-gram occurs."""
    balanced: bool = False
    """Whether all classes get the same total weight in training."""

    @property
    def sources(self) -> tuple[Source, ...]:
        """Sources that it reads, each once."""
        return tuple(dict.fromkeys(source for part in self.parts for source in part.sources))


CONSTANT = ClassifierSpec("constant", ())
WORDS = ClassifierSpec("words", (PartSpec(("words",), regularisation=1.0),))
VECTORS = ClassifierSpec("vectors", (PartSpec(("vectors",), regularisation=1.0),))
BOTH = ClassifierSpec("words and vectors", (PartSpec(("words",)), PartSpec(("vectors",))))
SPECS = (CONSTANT, VECTORS, WORDS, BOTH)
"""Configurations compared by default; none of them needs a language model."""


@dataclass(frozen=True, slots=True, eq=False)
class FittedPart:
    """A linear model and its sources."""

    sources: tuple[Source, ...]
    model: LinearModel


@dataclass(frozen=True, eq=False)
class TextClassifier(ReadingModel):
    """Classifier of texts by linear models; if there are several, the geometric mean of their probabilities.

    Attributes:
        classes: Names of the classes, from low to high if they are ordered.
        parts: The models; none gives every text the shares of the training data.
        shares: Shares of the classes in the training data, all above 0.
        vocabularies: n-grams, by the source that counts them.
        provenance: Training data and held-out scores.
        mix: Shares of the classes that probabilities assume; None for those of the training data.
        models: Encoder and language model.
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
        """Sources that it reads, each once."""
        return tuple(dict.fromkeys(source for part in self.parts for source in part.sources))

    def for_mix(self, mix: Sequence[float] | None) -> Self:
        """Return a copy for another mix of classes, for example ``(1, 1, 1, 1)`` for equally frequent ones.

        Raises:
            InputError: Not one share per class.
        """
        if mix is not None and (len(mix) != len(self.classes) or min(mix) < 0 or not sum(mix)):
            raise InputError(
                f"A mix needs {len(self.classes)} shares that are not negative ({', '.join(self.classes)})."
            )
        return replace(self, mix=None if mix is None else tuple(mix))

    @cached_property
    def reader(self) -> FeatureModels:
        """Encoder and model, loaded."""
        return self.models.complete(self.provenance, self.FORMAT.thing, states=needs_model(self.sources))

    def predict_proba(self, texts: Sequence[str | Text], *, on_progress: Progress | None = None) -> FloatArray:
        """Return probabilities of the classes, shape [texts, classes], rows sum to 1.

        Args:
            texts: Texts, or texts with their contexts.
            on_progress: Called with the number of texts read since the last call, for slow sources.

        Raises:
            InputError: A text has no words.
        """
        pairs: list[Text] = [(text, "") if isinstance(text, str) else text for text in texts]
        empty = next((index for index, (text, _) in enumerate(pairs) if not any(map(str.isalpha, text))), None)
        if empty is not None:
            raise InputError(f"Text {empty + 1} contains no words.")
        result = self.pooled(
            len(pairs), lambda source, words: read_source(source, pairs, self.reader, words, on_progress=on_progress)
        )
        return result if self.mix is None else reweighted(result, self.shares, self.mix)

    def probabilities(self, training: "TrainingTexts", indices: IntArray) -> FloatArray:
        """Return the pooled probabilities of some texts of a training set, shape [indices, classes]."""
        return self.pooled(len(indices), lambda source, words: training.block(source, indices, words))

    def pooled(self, texts: int, block: Callable[[Source, Vocabulary | None], Block]) -> FloatArray:
        """Return the normalised geometric mean of the parts' probabilities on the training mix; shape [texts, classes].

        ``texts`` is the number of texts; ``block`` returns the features of a source, given its vocabulary.
        """
        if not texts or not self.parts:
            return np.tile(np.array(self.shares), (texts, 1))
        blocks = {source: block(source, self.vocabularies.get(source)) for source in self.sources}
        by_part = [part.model.probabilities([blocks[source] for source in part.sources]) for part in self.parts]
        return softmax(
            np.mean([np.log(np.maximum(part_probabilities, 1e-12)) for part_probabilities in by_part], axis=0)
        )

    def predict(self, texts: Sequence[str | Text]) -> list[str]:
        """Return the most probable class of each text."""
        return (
            [self.classes[class_index] for class_index in self.predict_proba(texts).argmax(axis=1)]
            if len(texts)
            else []
        )

    def score(
        self, texts: Sequence[str | Text], labels: Sequence[str], *, groups: Sequence[Any] | None = None, seed: int = 0
    ) -> HeldOutScores:
        """Evaluate the classifier on labelled texts that it was not trained on.

        Args:
            texts: Texts, as in :meth:`predict_proba`.
            labels: Label of each text, one of :attr:`classes`.
            groups: Groups that the intervals resample; by default each text is a group.
            seed: Seed of the resampling.

        Raises:
            InputError: A label is not one of the classes.
        """
        truth = class_places(labels, self.classes)
        return evaluate(
            truth, self.predict_proba(texts), self.classes, groups=groups, mix=self.mix, seed=seed
        )  # fmt: skip

    def contents(self) -> tuple[dict[str, FloatArray], dict[str, Any]]:
        """Return arrays and facts to write; see :meth:`SavedModel.contents`."""
        arrays: dict[str, FloatArray] = {}
        for number, part in enumerate(self.parts):
            arrays |= part.model.arrays(f"{{}}{number}")
        for source, vocabulary in self.vocabularies.items():
            arrays[f"{source} weights"] = np.array(vocabulary.weights)
        facts = {
            "classes": list(self.classes),
            "shares": list(self.shares),
            "parts": [{"sources": list(part.sources), "link": part.model.link} for part in self.parts],
            "vocabularies": {
                source: {"terms": "\n".join(vocabulary.terms), "longest": vocabulary.longest}
                for source, vocabulary in self.vocabularies.items()
            },
            "provenance": self.provenance.facts(),
            "mix": self.mix,
        }
        return arrays, facts

    @classmethod
    def build(cls, facts: dict[str, Any], arrays: dict[str, FloatArray]) -> Self:
        """Return the classifier of a file's facts and arrays; see :meth:`SavedModel.build`."""
        classes, shares = tuple(facts["classes"]), tuple(float(share) for share in facts["shares"])
        if len(classes) < 2 or len(set(classes)) < len(classes) or len(shares) != len(classes) or min(shares) <= 0:
            raise ValueError("its classes or shares are not what they can be")
        vocabularies: dict[Source, Vocabulary] = {}
        for name, entry in facts["vocabularies"].items():
            terms = tuple(entry["terms"].split("\n"))
            weights = checked_array("vocabulary", arrays[f"{name} weights"], (len(terms),))
            vocabularies[check_sources([name])[0]] = Vocabulary(terms, tuple(weights.tolist()), int(entry["longest"]))
        parts = []
        for number, entry in enumerate(facts["parts"]):
            model = LinearModel.read(arrays, len(classes), name=f"{{}}{number}", link=entry["link"])
            parts.append(FittedPart(check_sources(entry["sources"]), model))
        mix = None if facts["mix"] is None else tuple(facts["mix"])
        return cls(classes, tuple(parts), shares, vocabularies, Provenance.read(facts["provenance"]), mix)


class TrainingTexts:
    """Labelled texts with their features; blocks that do not depend on the training part are read once."""

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
            groups: Group of each text, which folds never split; by default near duplicates form groups.
            models: Encoder and language model.
            on_progress: Called with the number of texts read since the last call.

        Raises:
            InputError: A label is not one of the classes, or there are not as many labels as texts.
        """
        if len(texts) != len(labels):
            raise InputError(f"{len(texts)} texts have {len(labels)} labels.")
        self.texts: list[Text] = [(text, "") if isinstance(text, str) else text for text in texts]
        self.classes = tuple(classes)
        self.truth = class_places(labels, classes)
        self.models = models or FeatureModels()
        self._groups = groups
        self._on_progress = on_progress
        self._blocks: dict[Source, FloatArray] = {}

    def give(self, source: Source, block: FloatArray) -> None:
        """Set the block of a source, shape [texts, features]."""
        self._blocks[source] = block

    @cached_property
    def duplicates(self) -> NearDuplicates:
        """Near duplicates: by vectors if there is an encoder, else by words."""
        plain = [text for text, _ in self.texts]
        if self.models.encoder is None and "vectors" not in self._blocks:
            return NearDuplicates(plain)
        vectors = self.block("vectors", np.arange(len(plain)), None)
        return NearDuplicates(plain, vectors=np.asarray(vectors, dtype=np.float32))

    @cached_property
    def groups(self) -> IntArray:
        """Group index of each text, shape [texts]."""
        if self._groups is None:
            return self.duplicates.groups()
        return np.unique(np.asarray(self._groups), return_inverse=True)[1].astype(np.int64)

    def splits(self, folds: int = FOLDS, *, seed: int = 0, groups: IntArray | None = None) -> list[Split]:
        """Return splits of whole groups [texts] into like sizes; near duplicates of test texts are not trained on."""
        dealt = group_folds(self.groups if groups is None else groups, folds, seed=seed, even=True)
        return list(splits_of(dealt, self.duplicates))

    def block(self, source: Source, indices: IntArray, vocabulary: Vocabulary | None) -> Block:
        """Return features of some of the texts, shape [indices, features], sparse for words."""
        if vocabulary is not None:
            return read_source(source, [self.texts[index] for index in indices], self.models, vocabulary)
        if source not in self._blocks:
            block = read_source(source, self.texts, self.models, None, on_progress=self._on_progress)
            self._blocks[source] = np.asarray(block)
        return self._blocks[source][indices]


def fit_classifier(spec: ClassifierSpec, training: TrainingTexts, indices: IntArray) -> TextClassifier:
    """Fit a classifier's linear models, and its vocabularies, on some of the texts [indices]."""
    vocabularies: dict[Source, Vocabulary] = {}
    for source in spec.sources:
        if source.endswith("words"):
            side = int(source.startswith("context"))
            selected = [training.texts[index][side] for index in indices]
            vocabularies[source] = Vocabulary.learn(selected, max_words=spec.longest, min_texts=spec.min_texts)
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
    """Classifier of a comparison, with its scores on items that it was not fitted on."""

    spec: ClassifierSpec
    probabilities: FloatArray
    """Held-out probabilities, shape [items, classes]."""
    evaluation: HeldOutScores


@dataclass(frozen=True, eq=False)
class TrainedClassifier(Generic[C]):
    """Trained classifier, with the held-out scores of all candidates."""

    classifier: C
    candidates: tuple[ComparedClassifier, ...]
    """Classifiers that were compared on the same folds, in the order of the specs."""
    chosen: ComparedClassifier
    """Candidate with the lowest held-out log loss; because it was chosen on the same folds, scores on new texts may be
    slightly worse."""


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
    """Cross-validate classifiers on the same folds, in the order of ``specs``.

    Args:
        specs: Classifiers to compare.
        training: Labelled texts; the intervals resample their groups.
        fold_groups: Group of each text, shape [texts]; no group is divided between folds. Default: ``training.groups``.
        folds: Number of folds.
        seed: Seed of folds and bootstrap.
        resamples: Number of bootstrap samples of the intervals.
        on_fit: Called after each classifier.
    """
    splits = training.splits(folds, seed=seed, groups=fold_groups)
    candidates = []
    for spec in specs:
        result = held_out(
            splits,
            partial(fit_classifier, spec, training),
            lambda fitted, test: fitted.probabilities(training, test),
            len(training.texts),
        )
        scores = evaluate(
            training.truth, result, training.classes, groups=training.groups, resamples=resamples, seed=seed
        )  # fmt: skip
        candidates.append(ComparedClassifier(spec, result, scores))
        if on_fit is not None:
            on_fit()
    return candidates


def best_of(candidates_and_baseline: Sequence[ComparedClassifier]) -> ComparedClassifier:
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
    alternatives: Sequence[tuple[ClassifierSpec, TrainingTexts]] = (),
    folds: int = FOLDS,
    seed: int = 0,
    resamples: int = RESAMPLES,
    provenance: Provenance | None = None,
    kind: type[C] = TextClassifier,  # type: ignore[assignment]
    on_fit: Callable[[], None] | None = None,
) -> TrainedClassifier[C]:
    """Choose a classifier by held-out log loss, and fit it on all texts.

    Args:
        training: Labelled texts.
        specs: Classifiers to compare.
        alternatives: Further classifiers, each with the same texts and features of other models.
        folds: Number of folds.
        seed: Seed of folds and bootstrap.
        resamples: Number of bootstrap samples of the intervals.
        provenance: Facts about the data, to which the measured scores are added.
        kind: Class of the resulting classifier.
        on_fit: Called after each fitted classifier.

    Raises:
        InputError: There are too few texts or groups, or a source lacks its model.
    """
    options: Any = {"folds": folds, "seed": seed, "resamples": resamples, "on_fit": on_fit}
    compared = compare_classifiers(specs, training, **options)
    compared += [compare_classifiers([spec], other, **options)[0] for spec, other in alternatives]
    best, base_provenance = best_of(compared), provenance or Provenance()
    position = compared.index(best) - len(specs)
    texts_read = training if position < 0 else alternatives[position][1]
    fitted = fit_classifier(best.spec, texts_read, np.arange(len(texts_read.texts)))
    encoder = texts_read.models.need_encoder() if needs_encoder(best.spec.sources) else None
    model = texts_read.models.need_model() if needs_model(best.spec.sources) else None
    source = replace(
        base_provenance.reading(encoder, model),
        seed=seed,
        measured={**base_provenance.measured, **best.evaluation.figures},
        items=len(texts_read.texts),
        groups=len(np.unique(texts_read.groups)),
        layers=(texts_read.models.layer,) if model else (),
        regularisation=best.spec.parts[0].regularisation,
    )
    fields = fitted.classes, fitted.parts, fitted.shares, fitted.vocabularies
    return TrainedClassifier(kind(*fields, source, None, texts_read.models), tuple(compared), best)


def class_places(labels: Sequence[str], classes: Sequence[str]) -> IntArray:
    """Return the class index of each label, shape [labels].

    Raises:
        InputError: A label is not one of the classes.
    """
    index_of = {name: index for index, name in enumerate(classes)}
    unknown = next((label for label in labels if label not in index_of), None)
    if unknown is not None:
        raise InputError(f"The label {unknown!r} is not one of {', '.join(classes)}.")
    return np.array([index_of[label] for label in labels], dtype=np.int64)
