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
from climassay.learning.evaluation import RESAMPLES, Evaluation, evaluate
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
    """One linear model to be fitted."""

    sources: tuple[Source, ...]
    link: Link = "nominal"
    regularisation: float = 3.0


@dataclass(frozen=True, slots=True)
class ClassifierSpec:
    """A classifier to be trained: linear models whose probabilities are pooled; without any, the constant."""

    name: str
    parts: tuple[PartSpec, ...]
    longest: int = 2
    """Words of the longest n-grams counted."""
    least: int = 4
    """Texts in which an n-gram must occur."""
    balanced: bool = False
    """Give all classes the same total weight in training."""

    @property
    def sources(self) -> tuple[Source, ...]:
        """All that it reads, each once."""
        return tuple(dict.fromkeys(source for part in self.parts for source in part.sources))


CONSTANT = ClassifierSpec("constant", ())
WORDS = ClassifierSpec("words", (PartSpec(("words",), regularisation=1.0),))
VECTORS = ClassifierSpec("vectors", (PartSpec(("vectors",), regularisation=1.0),))
BOTH = ClassifierSpec("words and vectors", (PartSpec(("words",)), PartSpec(("vectors",))))
SPECS = (CONSTANT, VECTORS, WORDS, BOTH)
"""What is tried where nobody says otherwise; none of them needs a language model."""


@dataclass(frozen=True, slots=True, eq=False)
class FittedPart:
    """A linear model and what it reads."""

    sources: tuple[Source, ...]
    model: LinearModel


@dataclass(frozen=True, eq=False)
class TextClassifier(ReadingModel):
    """Linear models on what texts say; of several, the geometric mean of their probabilities.

    Attributes:
        classes: Names of the classes; ascending where they are in order.
        parts: The models; none gives every text the shares of the training data.
        shares: Shares of the classes in the training data, all above 0.
        vocabularies: n-grams, by the source that counts them.
        provenance: What it was learned from, and how good it is.
        mix: Shares of the classes for which probabilities are given; None: those of the training data.
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
        """All that it reads, each once."""
        return tuple(dict.fromkeys(source for part in self.parts for source in part.sources))

    def for_mix(self, mix: Sequence[float] | None) -> Self:
        """The same for another mix of classes, for example ``(1, 1, 1, 1)`` where none is more frequent than others.

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
        """Probabilities of the classes, shape [texts, classes], rows sum to 1.

        Args:
            texts: Texts, or texts with what stands around them.
            on_progress: Called with the number of texts read since the last call, for sources that take long.

        Raises:
            InputError: A text has no words.
        """
        read: list[Text] = [(one, "") if isinstance(one, str) else one for one in texts]
        empty = next((place for place, (text, _) in enumerate(read) if not any(map(str.isalpha, text))), None)
        if empty is not None:
            raise InputError(f"Text {empty + 1} contains no words.")
        result = self.pooled(
            len(read), lambda source, words: read_source(source, read, self.reader, words, on_progress=on_progress)
        )
        return result if self.mix is None else reweighted(result, self.shares, self.mix)

    def probabilities(self, training: "TrainingTexts", places: IntArray) -> FloatArray:
        """What :meth:`pooled` gives of some of the texts of a training, shape [places, classes]."""
        return self.pooled(len(places), lambda source, words: training.block(source, places, words))

    def pooled(self, texts: int, block: Callable[[Source, Vocabulary | None], Block]) -> FloatArray:
        """Geometric mean of the parts' probabilities on the training mix, normalised; shape [texts, classes].

        ``texts`` is their number; ``block`` gives the features of a source, with its vocabulary.
        """
        if not texts or not self.parts:
            return np.tile(np.array(self.shares), (texts, 1))
        blocks = {source: block(source, self.vocabularies.get(source)) for source in self.sources}
        each = [part.model.probabilities([blocks[source] for source in part.sources]) for part in self.parts]
        return softmax(np.mean([np.log(np.maximum(one, 1e-12)) for one in each], axis=0))

    def predict(self, texts: Sequence[str | Text]) -> list[str]:
        """The most probable class of each text."""
        return [self.classes[place] for place in self.predict_proba(texts).argmax(axis=1)] if len(texts) else []

    def score(
        self, texts: Sequence[str | Text], labels: Sequence[str], *, groups: Sequence[Any] | None = None, seed: int = 0
    ) -> Evaluation:
        """Figures on labelled texts; they say something only of texts that it was not trained on.

        Args:
            texts: As for :meth:`predict_proba`.
            labels: One of :attr:`classes` each.
            groups: What the intervals resample; None: each text by itself.
            seed: Seed of the resampling.

        Raises:
            InputError: A label is not one of the classes.
        """
        truth = class_places(labels, self.classes)
        return evaluate(
            truth, self.predict_proba(texts), self.classes, groups=groups, mix=self.mix, seed=seed
        )  # fmt: skip

    def contents(self) -> tuple[dict[str, FloatArray], dict[str, Any]]:
        """See :class:`SavedModel`."""
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
        """From weights of shape [features, classes] or [features, 1] and biases for each part."""
        classes, shares = tuple(facts["classes"]), tuple(float(share) for share in facts["shares"])
        if len(classes) < 2 or len(set(classes)) < len(classes) or len(shares) != len(classes) or min(shares) <= 0:
            raise ValueError("its classes or shares are not what they can be")
        vocabularies: dict[Source, Vocabulary] = {}
        for name, held in facts["vocabularies"].items():
            terms = tuple(held["terms"].split("\n"))
            weights = checked_array("vocabulary", arrays[f"{name} weights"], (len(terms),))
            vocabularies[check_sources([name])[0]] = Vocabulary(terms, tuple(weights.tolist()), int(held["longest"]))
        parts = []
        for number, held in enumerate(facts["parts"]):
            model = LinearModel.read(arrays, len(classes), name=f"{{}}{number}", link=held["link"])
            parts.append(FittedPart(check_sources(held["sources"]), model))
        mix = None if facts["mix"] is None else tuple(facts["mix"])
        return cls(classes, tuple(parts), shares, vocabularies, Provenance.read(facts["provenance"]), mix)


class TrainingTexts:
    """Labelled texts with their features; what does not depend on the training part is read once."""

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
        """Prepare; nothing is read yet.

        Args:
            texts: Texts, or texts with what stands around them.
            labels: One of the classes each.
            classes: Names; ascending where they are in order.
            groups: What is never split between folds; None: near duplicates.
            models: Encoder and language model.
            on_progress: Called with the number of texts read since the last call.

        Raises:
            InputError: A label is not one of the classes, or there are not as many labels as texts.
        """
        if len(texts) != len(labels):
            raise InputError(f"{len(texts)} texts have {len(labels)} labels.")
        self.texts: list[Text] = [(one, "") if isinstance(one, str) else one for one in texts]
        self.classes = tuple(classes)
        self.truth = class_places(labels, classes)
        self.models = models or FeatureModels()
        self._groups = groups
        self._on_progress = on_progress
        self._blocks: dict[Source, FloatArray] = {}

    def give(self, source: Source, block: FloatArray) -> None:
        """Take a block that was read before, shape [texts, features]."""
        self._blocks[source] = block

    @cached_property
    def duplicates(self) -> NearDuplicates:
        """Texts that say nearly the same: by vectors where there is an encoder, else by words."""
        plain = [text for text, _ in self.texts]
        if self.models.encoder is None and "vectors" not in self._blocks:
            return NearDuplicates(plain)
        vectors = self.block("vectors", np.arange(len(plain)), None)
        return NearDuplicates(plain, vectors=np.asarray(vectors, dtype=np.float32))

    @cached_property
    def groups(self) -> IntArray:
        """Number of each text's group, shape [texts]."""
        if self._groups is None:
            return self.duplicates.groups()
        return np.unique(np.asarray(self._groups), return_inverse=True)[1].astype(np.int64)

    def splits(self, folds: int = FOLDS, *, seed: int = 0, groups: IntArray | None = None) -> list[Split]:
        """Folds of whole groups, of shape [texts], and of like size; near copies of test texts are not trained on."""
        dealt = group_folds(self.groups if groups is None else groups, folds, seed=seed, even=True)
        return list(splits_of(dealt, self.duplicates))

    def block(self, source: Source, places: IntArray, vocabulary: Vocabulary | None) -> Block:
        """Features of some of the texts, shape [places, features], sparse for words."""
        if vocabulary is not None:
            return read_source(source, [self.texts[place] for place in places], self.models, vocabulary)
        if source not in self._blocks:
            whole = read_source(source, self.texts, self.models, None, on_progress=self._on_progress)
            self._blocks[source] = np.asarray(whole)
        return self._blocks[source][places]


def fit_classifier(spec: ClassifierSpec, training: TrainingTexts, places: IntArray) -> TextClassifier:
    """Fit a classifier's linear models on some of the texts [places]; vocabularies are learned from these alone."""
    vocabularies: dict[Source, Vocabulary] = {}
    for source in spec.sources:
        if source.endswith("words"):
            side = int(source.startswith("context"))
            read = [training.texts[place][side] for place in places]
            vocabularies[source] = Vocabulary.learn(read, longest=spec.longest, least=spec.least)
    parts = []
    for part in spec.parts:
        blocks = [training.block(source, places, vocabularies.get(source)) for source in part.sources]
        model = fit_linear(
            blocks, training.truth[places], len(training.classes), link=part.link,
            regularisation=part.regularisation, standardise=False, balanced=spec.balanced,
        )  # fmt: skip
        parts.append(FittedPart(part.sources, model))
    counts = np.bincount(training.truth[places], minlength=len(training.classes))
    return TextClassifier(training.classes, tuple(parts), tuple(class_shares(counts).tolist()), vocabularies)


C = TypeVar("C", bound=TextClassifier)


@dataclass(frozen=True, slots=True, eq=False)
class TriedClassifier:
    """A classifier that was tried, and how it did on items that it was not fitted on."""

    spec: ClassifierSpec
    probabilities: FloatArray
    """Held out, shape [items, classes]."""
    evaluation: Evaluation


@dataclass(frozen=True, eq=False)
class TrainedClassifier(Generic[C]):
    """A classifier and the evidence behind it."""

    classifier: C
    tried: tuple[TriedClassifier, ...]
    """All that were tried, on the same folds, in the order given."""
    chosen: TriedClassifier
    """The one with the lowest held-out log loss. It was chosen on the same folds, so fresh texts may come out a little
    worse."""


def compare_classifiers(
    specs: Sequence[ClassifierSpec],
    training: TrainingTexts,
    *,
    apart: IntArray | None = None,
    folds: int = FOLDS,
    seed: int = 0,
    resamples: int = RESAMPLES,
    on_fit: Callable[[], None] | None = None,
) -> list[TriedClassifier]:
    """Cross-validate classifiers on the same folds, in the order of ``specs``.

    Args:
        specs: What is tried.
        training: Labelled texts; the intervals resample their groups.
        apart: What folds do not share, shape [texts], where that is more than a group; None: their groups.
        folds: Wanted number.
        seed: Seed of folds and bootstrap.
        resamples: Bootstrap samples of the intervals.
        on_fit: Called after each.
    """
    splits = training.splits(folds, seed=seed, groups=apart)
    tried = []
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
        tried.append(TriedClassifier(spec, result, scores))
        if on_fit is not None:
            on_fit()
    return tried


def best_of(tried: Sequence[TriedClassifier]) -> TriedClassifier:
    """The one with the lowest log loss, of those that read something.

    Raises:
        InputError: None of them does.
    """
    readers = [one for one in tried if one.spec.parts]
    if not readers:
        raise InputError("There is nothing to choose from: try at least one classifier that reads texts.")
    return min(readers, key=lambda classifier: classifier.evaluation.log_loss.value)


def train_text_classifier(
    training: TrainingTexts,
    *,
    specs: Sequence[ClassifierSpec] = SPECS,
    others: Sequence[tuple[ClassifierSpec, TrainingTexts]] = (),
    folds: int = FOLDS,
    seed: int = 0,
    resamples: int = RESAMPLES,
    provenance: Provenance | None = None,
    kind: type[C] = TextClassifier,  # type: ignore[assignment]
    on_fit: Callable[[], None] | None = None,
) -> TrainedClassifier[C]:
    """Choose a classifier by held-out log loss, and fit it on all texts.

    ``others`` are tried on the same texts read with other models, and ``kind`` is the class of the classifier. Figures
    of ``provenance``, which says what is known of the data, appear beside those measured here. All else is as in
    :func:`compare_classifiers`.

    Raises:
        InputError: Too few texts or groups, or a source without its model.
    """
    options: Any = {"folds": folds, "seed": seed, "resamples": resamples, "on_fit": on_fit}
    tried = compare_classifiers(specs, training, **options)
    tried += [compare_classifiers([spec], other, **options)[0] for spec, other in others]
    chosen, known = best_of(tried), provenance or Provenance()
    place = tried.index(chosen) - len(specs)
    read = training if place < 0 else others[place][1]
    fitted = fit_classifier(chosen.spec, read, np.arange(len(read.texts)))
    encoder = read.models.need_encoder() if needs_encoder(chosen.spec.sources) else None
    model = read.models.need_model() if needs_model(chosen.spec.sources) else None
    source = replace(
        known.reading(encoder, model),
        seed=seed,
        measured={**known.measured, **chosen.evaluation.figures},
        items=len(read.texts),
        groups=len(np.unique(read.groups)),
        layers=(read.models.layer,) if model else (),
        regularisation=chosen.spec.parts[0].regularisation,
    )
    held = fitted.classes, fitted.parts, fitted.shares, fitted.vocabularies
    return TrainedClassifier(kind(*held, source, None, read.models), tuple(tried), chosen)


def class_places(labels: Sequence[str], classes: Sequence[str]) -> IntArray:
    """Place of each label among the classes, shape [labels].

    Raises:
        InputError: A label is not one of them.
    """
    places = {name: place for place, name in enumerate(classes)}
    unknown = next((label for label in labels if label not in places), None)
    if unknown is not None:
        raise InputError(f"The label {unknown!r} is not one of {', '.join(classes)}.")
    return np.array([places[label] for label in labels], dtype=np.int64)
