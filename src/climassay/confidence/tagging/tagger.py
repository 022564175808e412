"""Taggers: from a statement to probabilities of the levels of confidence that a report would give it.

A tagger is a classifier of texts (:mod:`climassay.learning.text_classifier`) whose classes are levels. It reads
statements freed of their tags, is measured on three mixes of levels, and knows how far it is off in a document.
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
from climassay.confidence.tagging.labelled import LEVELS, LabelledItem, Taggable, TaggingItem
from climassay.confidence.tagging.quantification import share_residuals
from climassay.confidence.vocabulary import TAGS, Tag
from climassay.errors import InputError
from climassay.learning import (
    ClassifierSpec,
    Evaluation,
    ModelFormat,
    PartSpec,
    Provenance,
    TextClassifier,
    evaluate,
    reweighted,
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
"""The tagger that comes with climassay; see docs/results/confidence.md."""

EQUAL = (1.0,) * len(LEVELS)
CLIMATEX_MIX = (50.0, 100.0, 100.0, 50.0)
"""Statements of low, medium, high and very high confidence in ClimateX's test set."""
MIXES: Mapping[str, tuple[float, ...] | None] = MappingProxyType({
    "natural": None, "equal": EQUAL, "climatex": CLIMATEX_MIX,
})  # fmt: skip
"""On which taggers are measured; natural: as levels come in the statements at hand."""
PUBLISHED: Mapping[str, float] = MappingProxyType({
    "constant": 1 / 3, "people who are not experts": 0.363, "GPT-4, zero-shot": 0.443, "GPT-4, few-shot": 0.470,
})  # fmt: skip
"""Accuracy on ClimateX's 300 test statements (Lacombe et al. 2023, table 2): to be compared on the mix ``climatex``."""

ORDINAL = ClassifierSpec("vectors, ordinal", (PartSpec(("vectors",), "ordinal"),))
IN_CONTEXT = ClassifierSpec(
    "words and vectors, in context",
    (PartSpec(("words",)), PartSpec(("vectors",)), PartSpec(("context vectors",), regularisation=1.0)),
)
SPECS = (CONSTANT, VECTORS, ORDINAL, WORDS, BOTH, IN_CONTEXT)
"""What is tried where nobody says otherwise; none of them needs a language model."""
STATES = (
    ClassifierSpec("mean states", (PartSpec(("mean states",), regularisation=1.0),)),
    ClassifierSpec("last states", (PartSpec(("last states",), regularisation=1.0),)),
)
"""Pointwise probes on a local model's hidden states; tried where they are named."""


class Tagger(TextClassifier):
    """A classifier of statements into levels of confidence.

    Figures that :attr:`provenance` holds are of sections not trained on: those of the natural mix by their names,
    ``equal_accuracy`` with equal shares of the levels, ``climatex_accuracy`` and ``climatex_ordinal_error`` on the mix
    of ClimateX's test set, each with ``_low`` and ``_high``.
    """

    FORMAT = ModelFormat("climassay-confidence-tagger", 2, "confidence tagger", "climassay confidence tag train")

    @property
    def levels(self) -> tuple[Tag, ...]:
        """What it gives probabilities of, from the lowest."""
        return cast("tuple[Tag, ...]", self.classes)

    @property
    def confusion(self) -> FloatArray | None:
        """Held-out statements by true level (rows) and answer for equal shares, shape [levels, levels], where it tells.

        With ``for_mix((1, 1, 1, 1))`` they serve
        :func:`~climassay.confidence.tagging.quantification.estimate_shares`.
        """
        return _table(self.provenance.settings.get("confusion"))

    @property
    def residuals(self) -> FloatArray | None:
        """True shares less mean probabilities in documents not trained on, shape [documents, levels], where it tells.

        For :func:`~climassay.confidence.tagging.quantification.estimate_shares`, with probabilities of the natural mix.
        """
        return _table(self.provenance.settings.get("residuals"))

    def predict_proba(self, texts: Sequence[Taggable], *, on_progress: Progress | None = None) -> FloatArray:
        """Probabilities of the levels, shape [statements, levels], rows sum to 1; tags in statements are not read.

        Args:
            texts: Statements, texts, or texts with their contexts.
            on_progress: Called with the number of texts read since the last call, once for each source.

        Raises:
            InputError: A statement has no words.
        """
        return super().predict_proba([TaggingItem.of(one).read() for one in texts], on_progress=on_progress)

    @classmethod
    def load(cls, path: Path | str = BUNDLED_TAGGER) -> Self:
        """Read a tagger exactly as it was saved, the bundled one by default; errors as :meth:`SavedModel.load`."""
        return super().load(Path(path))

    @classmethod
    def build(cls, facts: dict[str, Any], arrays: dict[str, FloatArray]) -> Self:
        """See :meth:`TextClassifier.build`."""
        made = super().build(_version_2(facts) if facts["version"] < 2 else facts, arrays)
        if [tag for tag in TAGS if tag in made.classes] != list(made.classes):
            raise ValueError("its levels are others")
        return made


def _table(rows: Any) -> FloatArray | None:
    return np.array(rows, dtype=np.float64) if rows else None


load_tagger = Tagger.load


def _version_2(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What a file of version 1 says, in the words of version 2."""
    card, origins = dict(facts["card"]), dict(facts["origins"])
    layer = origins.pop("layer")
    shares = card.pop("shares")
    card["measured"] = {
        name.replace("mix_", "climatex_").replace("balanced_", "equal_"): value for name, value in card["measured"]
    }
    given = {**card, **origins, "layers": [layer] if origins["model"] else []}
    return {
        "classes": facts["levels"],
        "shares": shares,
        "parts": [{"sources": part["sources"], "link": part["kind"]} for part in facts["parts"]],
        "vocabularies": facts["vocabularies"],
        "provenance": Provenance.read(given, items="statements", fingerprint="model_fingerprint").facts(),
        "mix": facts["mix"],
    }


def tagging_texts(
    items: Sequence[LabelledItem], models: FeatureModels | None = None, *, on_progress: Progress | None = None
) -> TrainingTexts:
    """Labelled statements ready to learn from, in groups of their sections."""
    return TrainingTexts(
        [one.item.read() for one in items], [one.tag for one in items], LEVELS,
        groups=[one.section for one in items], models=models, on_progress=on_progress,
    )  # fmt: skip


def on_mixes(
    truth: IntArray,
    probabilities: FloatArray,
    groups: Sequence[Any] | IntArray,
    *,
    shares: Sequence[float] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> dict[str, Evaluation]:
    """Figures on each of :data:`MIXES` that has statements of all its levels: scored on it, with probabilities for it.

    Probabilities, shape [statements, levels], are held out, for levels as frequent as they were in training: by
    ``shares``, or as in ``truth``, places of the true levels [statements], of which the training parts of folds are
    made. The intervals resample groups [statements].
    """
    counts = np.bincount(truth, minlength=len(LEVELS))
    learned = class_shares(counts) if shares is None else shares
    return {
        name: evaluate(
            truth, probabilities if mix is None else reweighted(probabilities, learned, mix), LEVELS,
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
    """Choose a tagger by held-out log loss over folds that share no section, and fit it on all statements.

    Where there are enough documents of enough statements, the chosen one is cross-validated over whole documents too,
    for the residuals by which shares of levels are estimated.

    ``training`` holds the same items with the models that are read (:func:`tagging_texts`), None without models;
    ``document_folds`` are over documents, by default as many as ``folds``. All else is as in
    :func:`~climassay.learning.text_classifier.train_text_classifier`.

    Raises:
        InputError: Too few statements or sections, or a source without its model.
    """
    training = training or tagging_texts(items)
    trained = train_text_classifier(
        training, specs=specs, folds=folds, seed=seed, resamples=resamples, provenance=provenance,
        kind=Tagger, on_fit=on_fit,
    )  # fmt: skip
    chosen, source = trained.chosen, trained.classifier.provenance
    result = on_mixes(training.truth, chosen.probabilities, training.groups, resamples=resamples, seed=seed)
    measured, settings = source.measured, dict[str, Any]()
    if "equal" in result:
        settings["confusion"] = result["equal"].confusion
        for name, one in (
            ("equal_accuracy", result["equal"].accuracy),
            ("climatex_accuracy", result["climatex"].accuracy),
            ("climatex_ordinal_error", result["climatex"].ordinal_error),
        ):
            measured |= {name: one.value, f"{name}_low": one.interval.low, f"{name}_high": one.interval.high}
    documents = np.unique([one.document for one in items], return_inverse=True)[1]
    if documents.max() > 0:
        apart = compare_classifiers(
            [chosen.spec], training, apart=documents, folds=document_folds or folds, seed=seed, resamples=1
        )[0]  # fmt: skip
        with suppress(InputError):  # where too few documents are large enough, it does without
            settings["residuals"] = share_residuals(training.truth, apart.probabilities, documents.tolist()).tolist()
    learned_from = tuple(dict.fromkeys(words_id(one.item.text) for one in items))
    source = replace(source, measured=measured, settings=settings, trained_on=learned_from)
    return replace(trained, classifier=replace(trained.classifier, provenance=source))
