"""Classify misleading texts by their fallacy, or by the contrarian claim that they make.

Both classifiers are configurations of :class:`climassay.learning.TextClassifier`, trained on the FLICC data; see
docs/results/fallacies.md for their accuracy. They have only seen misleading texts and assign a class to every text, so
a check applies them to refuted claims only.

References:
    Cook et al. (2018), "Deconstructing climate misinformation to identify reasoning errors", Environ. Res. Lett. 13,
    024018, for the fallacies (FLICC); Zanartu et al. (2024), arXiv 2405.08254, for the labelled texts; Coan et al.
    (2021), Sci. Rep. 11, 22320, for the claims (CARDS).
"""

import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from climassay.errors import ClimassayError, InputError
from climassay.factcheck.scales import Scale
from climassay.factcheck.transcript import Fallacy, Transcript, is_against
from climassay.learning import (
    ClassifierSpec,
    HeldOutScores,
    ModelFormat,
    PartSpec,
    Provenance,
    TextClassifier,
    Threshold,
    evaluate,
    find_threshold,
)
from climassay.learning.features import FeatureModels, Progress
from climassay.learning.text_classifier import CONSTANT, TrainedClassifier, TrainingTexts, train_text_classifier
from climassay.models.contract import Encoder

_CLASSES = tomllib.loads(Path(__file__).with_name("fallacies.toml").read_text(encoding="utf-8"))
FALLACIES: Mapping[str, str] = _CLASSES["fallacies"]
"""Definition of each fallacy."""
CLAIMS: Mapping[str, str] = _CLASSES["claims"]
"""Contrarian claims by their CARDS code."""
GROUPS: Mapping[str, str] = _CLASSES["groups"]
"""Groups of contrarian claims by the first digit of their codes."""

_JOINT_FEATURES = PartSpec(("words", "vectors"), regularisation=10.0)
SPECS = (
    CONSTANT,
    ClassifierSpec("words", (PartSpec(("words",), regularisation=10.0),)),
    ClassifierSpec("vectors", (PartSpec(("vectors",), regularisation=3.0),)),
    ClassifierSpec("pooled", tuple(PartSpec((source,), regularisation=10.0) for source in ("words", "vectors"))),
    ClassifierSpec("words and vectors", (_JOINT_FEATURES,)),
    ClassifierSpec("words and vectors, balanced", (_JOINT_FEATURES,), min_texts=3, balanced=True),
)
"""Configurations of the classifier that training compares."""


class FallacyClassifier(TextClassifier):
    """Text classifier of fallacies or of contrarian claims."""

    FORMAT = ModelFormat("climassay-fallacies", 1, "classifier of fallacies", "climassay factcheck fallacies train")

    @property
    def subject(self) -> "ClassSet":
        """Set of classes that the classifier predicts: fallacies or claims."""
        return SUBJECTS[self.provenance.settings["subject"]]

    @property
    def threshold(self) -> Threshold | None:
        """Probability threshold for the precision requested in training; None if no threshold reaches it."""
        return TypeAdapter(Threshold | None).validate_python(self.provenance.settings.get("threshold"))


@dataclass(frozen=True, slots=True)
class ClassSet:
    """A set of classes: ``fallacies`` or ``claims``."""

    name: str
    meanings: Mapping[str, str]
    """Meaning of each class."""
    column: str
    """Column of the labels in a FLICC table."""

    @property
    def bundled(self) -> Path:
        """File of the classifier bundled with climassay."""
        return Path(__file__).with_name(f"{self.name}.safetensors")

    def label(self, text: str) -> str | None:
        """Return the class named by a table cell, for example ``2.1`` for the code ``2.1.4``; None if it names none."""
        name = " ".join(text.split()).lower()
        return next((label for label in (name, ".".join(name.split(".")[:2])) if label in self.meanings), None)

    def select(self, texts: Sequence[str], labels: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return the texts whose label names a class, and their classes."""
        pairs = [(text, name) for text, label in zip(texts, labels, strict=True) if (name := self.label(label))]
        return [text for text, _ in pairs], [name for _, name in pairs]


SUBJECTS: Mapping[str, ClassSet] = {
    "fallacies": ClassSet("fallacies", FALLACIES, "fallacy"),
    "claims": ClassSet("claims", CLAIMS, "cards_claim"),
}


@dataclass(frozen=True, slots=True)
class FoundFallacy:
    """Most probable fallacy or contrarian claim of a text."""

    name: str
    meaning: str
    probability: float
    likely: bool
    """Whether the probability reaches the classifier's threshold."""
    probabilities: Mapping[str, float]
    """Probability of each class."""


def find_fallacies(
    texts: Sequence[str],
    *,
    subject: str = "fallacies",
    classifier: FallacyClassifier | None = None,
    on_progress: Progress | None = None,
) -> list[FoundFallacy]:
    """Return the most probable fallacy, or contrarian claim, of each text.

    Args:
        texts: Misleading texts, each between a sentence and a paragraph long.
        subject: ``fallacies`` or ``claims``.
        classifier: Classifier to use instead of the bundled one.
        on_progress: Callback that receives the number of texts read since its last call.

    Raises:
        InputError: A text has no words.
        ModelError: The encoder is not installed.

    Example:
        >>> [found] = find_fallacies(["Climate has always changed naturally, so today's warming must be natural."])
        >>> found.name
        'single cause'
    """
    classifier = classifier or load_fallacy_classifier(subject)
    threshold, meanings = classifier.threshold, classifier.subject.meanings
    results = []
    for row in classifier.predict_proba(texts, on_progress=on_progress).tolist():
        probabilities = dict(zip(classifier.classes, row, strict=True))
        name = max(probabilities, key=lambda label: probabilities[label])
        is_likely = threshold is not None and probabilities[name] >= threshold.value
        results.append(FoundFallacy(name, meanings.get(name, ""), probabilities[name], is_likely, probabilities))
    return results


@lru_cache
def _load_bundled(subject: str) -> FallacyClassifier:
    return FallacyClassifier.load(SUBJECTS[subject].bundled)


def load_fallacy_classifier(source: str | Path = "fallacies") -> FallacyClassifier:
    """Load a bundled classifier by its subject (``fallacies`` or ``claims``), or a trained one from a file.

    Raises:
        InputError: The file is missing, damaged or of another kind.
    """
    if str(source) in SUBJECTS:
        return _load_bundled(str(source))
    path = Path(source)
    classifier = FallacyClassifier.load(path)
    if classifier.provenance.settings.get("subject") not in SUBJECTS:
        raise InputError(f"{path} does not name the subject of its classes: train it again.")
    return classifier


def add_fallacy(transcript: Transcript, scale: Scale, encoder: Encoder | None = None) -> Transcript:
    """Return a transcript with the claim's fallacy added if the claim was refuted and the fallacy is likely.

    ``encoder`` is only used if the classifier was trained with it. If the encoder that the classifier needs is not
    installed, the transcript is returned unchanged, so that the check does not fail.
    """
    if (match := _find_likely_class(transcript, scale, encoder, "fallacies")) is None:
        return transcript
    fallacy, precision = match
    return replace(transcript, fallacy=Fallacy(fallacy.name, fallacy.meaning, fallacy.probability, precision))


def find_contrarian_claim(transcript: Transcript, scale: Scale, encoder: Encoder | None = None) -> str | None:
    """Return the CARDS code (:data:`CLAIMS`) of a refuted claim; None if it is not refuted or no code is likely."""
    match = _find_likely_class(transcript, scale, encoder, "claims")
    return None if match is None else match[0].name


def _find_likely_class(
    transcript: Transcript, scale: Scale, encoder: Encoder | None, subject: str
) -> tuple[FoundFallacy, float] | None:
    """Return the likely class of a refuted claim and the classifier's precision; None if no class is likely."""
    if not is_against(transcript.verdict, scale):
        return None
    try:
        classifier = load_fallacy_classifier(subject)
        if encoder is not None and encoder.fingerprint == classifier.provenance.encoder_fingerprint:
            classifier = classifier.with_models(encoder)
        [fallacy] = find_fallacies([transcript.claim.text], classifier=classifier)
    except ClimassayError:
        return None
    return (fallacy, classifier.threshold.precision.value) if fallacy.likely and classifier.threshold else None


def score_fallacies(
    classifier: FallacyClassifier, texts: Sequence[str], labels: Sequence[str], *, seed: int = 0
) -> dict[str, HeldOutScores]:
    """Score a classifier on held-out texts.

    A classifier of claims is also scored with its classes merged into the five groups of the taxonomy.

    Raises:
        InputError: No label names one of its classes.
    """
    subject = classifier.subject
    known_texts, classes = subject.select(texts, labels)
    if not classes:
        raise InputError(f"No label names one of the {subject.name}: {', '.join(subject.meanings)}.")
    results = {subject.name: classifier.score(known_texts, classes, seed=seed)}
    if subject.name == "claims":
        pairs = [(text, label.strip()[:1]) for text, label in zip(texts, labels, strict=True)]
        pairs = [(text, group) for text, group in pairs if group in GROUPS]
        # A group's probability is the sum of its claims' probabilities.
        is_in_group = np.array([[claim.startswith(group) for group in GROUPS] for claim in classifier.classes])
        probabilities = classifier.predict_proba([text for text, _ in pairs]) @ is_in_group.astype(np.float64)
        truth = [tuple(GROUPS).index(group) for _, group in pairs]
        results["groups"] = evaluate(truth, probabilities, tuple(GROUPS), seed=seed)
    return results


def train_fallacies(
    texts: Sequence[str],
    labels: Sequence[str],
    subject: ClassSet,
    *,
    encoder: Encoder,
    folds: int = 5,
    seed: int = 0,
    precision: float = 0.8,
    provenance: Provenance | None = None,
    on_progress: Progress | None = None,
) -> TrainedClassifier[FallacyClassifier]:
    """Select a configuration by cross-validated log loss, fit it on all texts and set its threshold.

    Near-duplicates share a fold. Texts whose label names no class of the subject are left out.

    Args:
        texts: Misleading texts.
        labels: Label of each text.
        subject: Classes to learn.
        encoder: Encoder whose vectors are features.
        folds: Number of folds.
        seed: Seed of folds and resampling.
        precision: Minimum precision above the threshold, measured by the lower end of its 95% interval.
        provenance: Description of the training data.
        on_progress: Callback that receives the number of texts read since its last call.

    Raises:
        InputError: There are too few texts, or a class has none.
    """
    known_texts, classes = subject.select(texts, labels)
    if missing_classes := [name for name in subject.meanings if name not in classes]:
        raise InputError(f"There is no text for {', '.join(missing_classes)}: a classifier needs some of each class.")
    models = FeatureModels(encoder)
    training_texts = TrainingTexts(
        known_texts, classes, tuple(subject.meanings), models=models, on_progress=on_progress
    )
    trained_classifier = train_text_classifier(
        training_texts, specs=SPECS, folds=folds, seed=seed, provenance=provenance, kind=FallacyClassifier
    )
    probabilities = trained_classifier.chosen.probabilities
    settings: dict[str, Any] = {"subject": subject.name}
    with suppress(InputError):  # no threshold reaches the precision
        is_right = probabilities.argmax(axis=1) == training_texts.truth
        settings["threshold"] = asdict(
            find_threshold(precision, is_right, probabilities.max(axis=1), use_lower_bound=True)
        )
    classifier = trained_classifier.classifier
    new_provenance = replace(classifier.provenance, settings={**classifier.provenance.settings, **settings})
    return replace(trained_classifier, classifier=replace(classifier, provenance=new_provenance))
