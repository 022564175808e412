"""How a text misleads: twelve fallacies of climate misinformation, and which contrarian claim it makes.

Both are linear models on a text's words and on an encoder's vector of it (:mod:`climassay.learning`), learned from the
FLICC data; see docs/results/fallacies.md for how far to trust them. They know texts that mislead: one that does not
gets a fallacy all the same, so that only what was refuted is to be read with them.

References:
    Cook et al. (2018), "Deconstructing climate misinformation to identify reasoning errors", Environ. Res. Lett. 13,
    024018, for the fallacies (FLICC); Zanartu et al. (2024), arXiv 2405.08254, for the labelled texts; Coan et al.
    (2021), Sci. Rep. 11, 22320, for the claims (CARDS).
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from climassay.errors import ClimassayError, InputError
from climassay.factcheck.scales import Scale
from climassay.factcheck.transcript import Fallacy, Transcript, is_against
from climassay.learning import (
    ClassifierSpec,
    Evaluation,
    ModelFormat,
    NearDuplicates,
    PartSpec,
    Provenance,
    TextClassifier,
    Threshold,
    evaluate,
    threshold_for,
)
from climassay.learning.features import FeatureModels, Progress, text_states
from climassay.learning.text_classifier import (
    CONSTANT,
    TrainedClassifier,
    TrainingTexts,
    train_text_classifier,
)
from climassay.models.contract import Encoder, OpenWeights

FloatArray = NDArray[np.float64]

FALLACIES: Mapping[str, str] = {
    "ad hominem": "It attacks those who hold a view, their character or their motives, and leaves the view itself "
    "unanswered.",
    "anecdote": "It puts one experience or a single case in the place of evidence that covers many.",
    "cherry picking": "It shows the data that suit its conclusion and passes over those that do not.",
    "conspiracy theory": "It explains what experts agree on by a secret plan to deceive, for which it has no evidence.",
    "fake experts": "It calls as experts people who do no research in the field they speak about.",
    "false choice": "It offers two possibilities as if they excluded each other and as if there were no third.",
    "false equivalence": "It treats two things as alike because they share something, although they differ in what "
    "matters.",
    "impossible expectations": "It asks for more certainty or more effect than anything could give before it would "
    "accept a finding or a measure.",
    "misrepresentation": "It distorts what somebody said or how something is, so that it becomes easier to attack.",
    "oversimplification": "It leaves out so much of how something works that the conclusion no longer follows.",
    "single cause": "It names one cause as if there could not be others beside it.",
    "slothful induction": "It ignores evidence at hand and draws a conclusion that goes against it.",
}  # fmt: skip
"""Each fallacy and what a text does that commits it."""

CLAIMS: Mapping[str, str] = {
    "1.1": "Ice, snow and permafrost are not melting.",
    "1.2": "It is getting colder, or an ice age is coming.",
    "1.3": "Weather is cold, or was cold somewhere.",
    "1.4": "Warming has paused.",
    "1.6": "Sea level is not rising, or no faster than before.",
    "1.7": "Extreme weather has not become worse, or has nothing to do with the climate.",
    "1.8": "What is called climate change is named differently whenever it suits.",
    "2.1": "Nature does it: the sun, cycles, volcanoes, the oceans.",
    "2.3": "Carbon dioxide does not warm, or not by much.",
    "3.1": "The climate reacts little to greenhouse gases.",
    "3.2": "Species and ecosystems are not threatened, or profit.",
    "3.3": "Carbon dioxide is good for plants and no pollutant.",
    "4.1": "Climate policies do harm.",
    "4.2": "Climate policies have no effect.",
    "5.1": "Climate science is uncertain, its models and data are unreliable.",
    "5.2": "Scientists, activists, media and politicians are alarmist, biased or corrupt.",
    "5.3": "Climate change is a conspiracy or a hoax.",
}
"""The claims of CARDS with at least 25 texts in FLICC's training data, in our words."""

GROUPS: Mapping[str, str] = {
    "1": "It is not happening.",
    "2": "People do not cause it.",
    "3": "It is not bad.",
    "4": "Solutions will not work.",
    "5": "The science and the scientists cannot be relied on.",
}
"""The five groups that the first digits of the claims name."""

PRECISION = 0.8
"""Share of held-out texts from the threshold on that is right, by the low end of its 95% interval."""


class FallacyClassifier(TextClassifier):
    """A classifier of texts into fallacies, or into contrarian claims, as its settings say."""

    FORMAT = ModelFormat("climassay-fallacies", 1, "classifier of fallacies", "climassay factcheck fallacies train")


@dataclass(frozen=True, slots=True)
class Subject:
    """What is classified of a text."""

    name: str
    meanings: Mapping[str, str]
    """What each class means, by its name."""
    column: str
    """Where a table of FLICC has it."""

    @property
    def bundled(self) -> Path:
        """The classifier that comes with climassay."""
        return Path(__file__).with_name(f"{self.name}.safetensors")

    def label(self, given: str) -> str | None:
        """The class that a table's word names, ``2.1`` for the code ``2.1.4``; None where it names none."""
        said = " ".join(given.split()).lower()
        return next((name for name in (said, ".".join(said.split(".")[:2])) if name in self.meanings), None)


SUBJECTS: Mapping[str, Subject] = {
    "fallacies": Subject("fallacies", FALLACIES, "fallacy"),
    "claims": Subject("claims", CLAIMS, "cards_claim"),
}


@dataclass(frozen=True, slots=True)
class FoundFallacy:
    """The class of a text that is most probable."""

    name: str
    meaning: str
    probability: float
    sure: bool
    """Whether the probability reaches the classifier's threshold."""
    probabilities: Mapping[str, float]
    """Probabilities of all classes."""


def find_fallacies(
    texts: Sequence[str],
    *,
    subject: str = "fallacies",
    classifier: TextClassifier | None = None,
    on_progress: Progress | None = None,
) -> list[FoundFallacy]:
    """The most probable fallacy, or contrarian claim, of each text.

    Args:
        texts: Texts that mislead, a sentence to a paragraph each.
        subject: ``fallacies`` or ``claims``.
        classifier: Instead of the bundled one.
        on_progress: Called with the number of texts read since the last call.

    Raises:
        InputError: A text has no words.
        ModelError: The encoder is not installed.

    Example:
        >>> [found] = find_fallacies(["Climate has always changed naturally, so today's warming must be natural."])
        >>> found.name
        'single cause'
    """
    reader = classifier or load_fallacies(subject)
    limit, meanings = threshold_of(reader), subject_of(reader).meanings
    results = []
    for row in reader.predict_proba(texts, on_progress=on_progress).tolist():
        chances = dict(zip(reader.classes, row, strict=True))
        name = max(chances, key=lambda one: chances[one])
        sure = limit is not None and chances[name] >= limit.value
        results.append(FoundFallacy(name, meanings.get(name, ""), chances[name], sure, chances))
    return results


def load_fallacies(source: str | Path = "fallacies") -> TextClassifier:
    """A classifier: a bundled one by its subject (``fallacies``, ``claims``), or one that was trained, by its file.

    Raises:
        InputError: The file is missing, damaged or of another kind.
    """
    if str(source) in SUBJECTS:
        return _bundled(str(source))
    path = Path(source)
    loaded = FallacyClassifier.load(path)
    if loaded.provenance.settings.get("subject") not in SUBJECTS:
        raise InputError(f"{path} does not say what it tells of a text: train it again.")
    return loaded


@lru_cache
def _bundled(subject: str) -> TextClassifier:
    return load_fallacies(SUBJECTS[subject].bundled)


def subject_of(classifier: TextClassifier) -> Subject:
    """What a classifier tells."""
    return SUBJECTS[classifier.provenance.settings["subject"]]


def threshold_of(classifier: TextClassifier) -> Threshold | None:
    """The probability from which on its answers are as precise as it says; None where it has none."""
    from pydantic import TypeAdapter

    held = classifier.provenance.settings.get("threshold")
    return None if held is None else TypeAdapter(Threshold).validate_python(held)


def with_fallacy(transcript: Transcript, scale: Scale, encoder: Encoder | None = None) -> Transcript:
    """A finished check with the fallacy of its claim, where the verdict is on the wrong side and a fallacy is likely.

    An encoder that is loaded already is taken if it is the classifier's. Without that encoder nothing is added: a check
    is not to fail for it.
    """
    told = _told(transcript, scale, encoder, "fallacies")
    if told is None:
        return transcript
    result, limit = told
    return replace(transcript, fallacy=Fallacy(result.name, result.meaning, result.probability, limit.precision.value))


def contrarian_claim(transcript: Transcript, scale: Scale, encoder: Encoder | None = None) -> str | None:
    """Which of :data:`CLAIMS` a refuted claim makes; None where it is not refuted, or none of them is likely."""
    told = _told(transcript, scale, encoder, "claims")
    return None if told is None else told[0].name


def _told(
    transcript: Transcript, scale: Scale, encoder: Encoder | None, subject: str
) -> tuple[FoundFallacy, Threshold] | None:
    """What a bundled classifier says of a refuted claim, where it is sure."""
    if not is_against(transcript.verdict, scale):
        return None
    try:
        reader = load_fallacies(subject)
        if encoder is not None and encoder.fingerprint == reader.provenance.encoder_fingerprint:
            reader = reader.with_models(encoder)
        [result] = find_fallacies([transcript.claim.text], classifier=reader)
    except ClimassayError:
        return None
    limit = threshold_of(reader)
    return (result, limit) if limit is not None and result.sure else None


@dataclass(frozen=True, slots=True)
class LabelledTexts:
    """Texts whose class is known."""

    texts: tuple[str, ...]
    labels: tuple[str, ...]
    """As the table has them: fallacies, or codes of CARDS."""

    def without(self, others: Sequence[str], encoder: Encoder | None) -> "LabelledTexts":
        """Those that are not nearly the same as one of other texts."""
        alike = NearDuplicates([*self.texts, *others], encoder).of(np.arange(len(self), len(self) + len(others)))
        return self.at([place for place in range(len(self)) if place not in set(alike.tolist())])

    def at(self, places: Sequence[int]) -> "LabelledTexts":
        """Some of them."""
        return LabelledTexts(tuple(self.texts[one] for one in places), tuple(self.labels[one] for one in places))

    def drawn(self, limit: int | None, seed: int = 0) -> "LabelledTexts":
        """So many of them at random; all without a limit."""
        places = np.random.default_rng(seed).permutation(len(self))[:limit].tolist()
        return self if limit is None else self.at(places)

    def of_subject(self, subject: Subject) -> "LabelledTexts":
        """Those whose label names a class of a subject, by its name."""
        named = [subject.label(label) for label in self.labels]
        kept = self.at([place for place, name in enumerate(named) if name is not None])
        return LabelledTexts(kept.texts, tuple(name for name in named if name is not None))

    def __len__(self) -> int:
        """Texts."""
        return len(self.texts)


def score_fallacies(classifier: TextClassifier, given: LabelledTexts, *, seed: int = 0) -> dict[str, Evaluation]:
    """Figures on texts that the classifier was not trained on; of claims those of the five groups, too.

    Raises:
        InputError: No label names one of its classes.
    """
    subject = subject_of(classifier)
    known = given.of_subject(subject)
    if not known:
        raise InputError(f"No label names one of the {subject.name}: {', '.join(subject.meanings)}.")
    results = {subject.name: classifier.score(known.texts, known.labels, seed=seed)}
    if subject.name == "claims":
        coded = given.at([place for place, label in enumerate(given.labels) if label.strip()[:1] in GROUPS])
        results["groups"] = evaluate(
            [tuple(GROUPS).index(label.strip()[0]) for label in coded.labels],
            in_groups(classifier.predict_proba(coded.texts), classifier.classes),
            tuple(GROUPS),
            seed=seed,
        )
    return results


def in_groups(probabilities: FloatArray, claims: Sequence[str]) -> FloatArray:
    """Probabilities of the five groups, shape [texts, 5], from those of the claims, shape [texts, claims]."""
    inside = np.array([[claim.startswith(group) for group in GROUPS] for claim in claims], dtype=np.float64)
    return np.asarray(probabilities @ inside)


_WORDS, _VECTORS = PartSpec(("words",), regularisation=10.0), PartSpec(("vectors",), regularisation=10.0)
_JOINT = PartSpec(("words", "vectors"), regularisation=10.0)
SPECS = (
    CONSTANT,
    ClassifierSpec("words", (_WORDS,)),
    ClassifierSpec("vectors", (replace(_VECTORS, regularisation=3.0),)),
    ClassifierSpec("words and vectors, pooled", (_WORDS, _VECTORS)),
    ClassifierSpec("words and vectors, side by side", (_JOINT,)),
    ClassifierSpec("the same, balanced", (_JOINT,), least=3, balanced=True),
)
"""What is tried; none of them needs a language model."""
_STATES = PartSpec(("mean states",), regularisation=3.0)
STATES = (
    ClassifierSpec("states", (_STATES,)),
    ClassifierSpec("words, vectors and states, balanced", (_JOINT, _STATES), least=3, balanced=True),
)
"""What is tried for each layer of a language model."""


def train_fallacies(
    given: LabelledTexts,
    subject: Subject,
    *,
    encoder: Encoder,
    model: OpenWeights | None = None,
    layers: Sequence[int] = (),
    folds: int = 5,
    seed: int = 0,
    precision: float = PRECISION,
    provenance: Provenance | None = None,
    on_progress: Progress | None = None,
) -> TrainedClassifier[FallacyClassifier]:
    """Choose a classifier by held-out log loss on folds that share no near copies, fit it on all, set its threshold.

    Texts whose label names no class of the subject are left out. Layers of a local model are tried one by one;
    ``precision`` is the share of right answers from the threshold on; progress counts the texts read.

    Raises:
        InputError: Too few texts, or a class without any.
    """
    known = given.of_subject(subject)
    missing = [name for name in subject.meanings if name not in known.labels]
    if missing:
        raise InputError(f"There is no text for {', '.join(missing)}: a classifier needs some of each class.")
    classes = tuple(subject.meanings)
    plain = TrainingTexts(
        known.texts, known.labels, classes, models=FeatureModels(encoder), on_progress=on_progress
    )  # fmt: skip
    others = []
    if model is not None:
        states = text_states(model, known.texts, layers, on_progress=on_progress)
        for place, layer in enumerate(layers):
            training = TrainingTexts(known.texts, known.labels, classes, models=FeatureModels(encoder, model, layer))
            training.give("vectors", np.asarray(plain.block("vectors", np.arange(len(known)), None)))
            training.give("mean states", states[:, place, 0].astype(np.float64))
            others += [(replace(spec, name=f"{spec.name}, layer {layer}"), training) for spec in STATES]
    trained = train_text_classifier(
        plain, specs=SPECS, others=others, folds=folds, seed=seed, provenance=provenance, kind=FallacyClassifier
    )
    likely = trained.chosen.probabilities
    settings: dict[str, Any] = {"subject": subject.name}
    with suppress(InputError):  # where no threshold reaches the precision, there is none
        limit = threshold_for(precision, likely.argmax(axis=1) == plain.truth, likely.max(axis=1), surely=True)
        settings["threshold"] = asdict(limit)
    source = trained.classifier.provenance
    source = replace(source, settings={**source.settings, **settings})
    return replace(trained, classifier=replace(trained.classifier, provenance=source))
