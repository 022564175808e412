"""Training a tagger: what it reads and how strongly it is held back is chosen by cross-validation."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from climassay.confidence.tagging.items import LEVELS, LabelledItem, level_places
from climassay.confidence.tagging.linear import Block, Kind, LevelModel, fit_levels
from climassay.confidence.tagging.measures import CLIMATEX_MIX, Tagged, TaggerScores, score_tagger
from climassay.confidence.tagging.quantification import share_residuals
from climassay.confidence.tagging.reading import Readers, Source, Vocabulary, needs_encoder, needs_model, read_block
from climassay.confidence.tagging.splits import Apart, Split, Twins, folds, units
from climassay.confidence.tagging.tagger import LinearTagger, Origins, TaggerCard, TaggerPart, pooled
from climassay.errors import InputError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

EQUAL = (1.0,) * len(LEVELS)
"""A mix in which no level is more frequent than another."""


@dataclass(frozen=True, slots=True)
class PartSpec:
    """One regression of a tagger."""

    sources: tuple[Source, ...]
    kind: Kind = "nominal"
    regularisation: float = 3.0


@dataclass(frozen=True, slots=True)
class TaggerSpec:
    """A tagger to be trained: one regression, or several whose probabilities are pooled. No part: the constant."""

    name: str
    parts: tuple[PartSpec, ...]
    longest: int = 2
    """Words of the longest n-grams counted."""
    least: int = 4
    """Texts in which an n-gram must occur."""

    @property
    def sources(self) -> tuple[Source, ...]:
        """All that it reads."""
        return tuple(dict.fromkeys(source for part in self.parts for source in part.sources))


WORDS = TaggerSpec("words", (PartSpec(("words",), regularisation=1.0),))
VECTORS = TaggerSpec("vectors", (PartSpec(("vectors",), regularisation=1.0),))
ORDINAL = TaggerSpec("vectors, ordinal", (PartSpec(("vectors",), "ordinal"),))
BOTH = TaggerSpec("words and vectors", (PartSpec(("words",)), PartSpec(("vectors",))))
IN_CONTEXT = TaggerSpec(
    "words and vectors, in context",
    (PartSpec(("words",)), PartSpec(("vectors",)), PartSpec(("context vectors",), regularisation=1.0)),
)
SPECS = (TaggerSpec("constant", ()), VECTORS, ORDINAL, WORDS, BOTH, IN_CONTEXT)
"""What is tried where nobody says otherwise; none of them needs a language model."""
STATES = (
    TaggerSpec("mean states", (PartSpec(("mean states",), regularisation=1.0),)),
    TaggerSpec("last states", (PartSpec(("last states",), regularisation=1.0),)),
)
"""Pointwise probes on a local model's hidden states; tried where they are named."""


class Lesson:
    """Labelled statements with what is read of them; what does not depend on the training set is read once."""

    def __init__(
        self, items: Sequence[LabelledItem], readers: Readers, on_progress: Callable[[int], None] | None = None
    ) -> None:
        self.items = list(items)
        self.truth: IntArray = np.array(level_places(items), dtype=np.int64)
        self.sections = units(items, "statement")
        self.readers = readers
        self._on_progress = on_progress
        self._read: dict[Source, FloatArray] = {}

    def give(self, source: Source, block: FloatArray) -> None:
        """Take a block that was read before, shape [items, features]."""
        self._read[source] = block

    def block(self, source: Source, places: IntArray, vocabulary: Vocabulary | None) -> Block:
        """Features of some of the items.

        Args:
            source: What is read.
            places: Of the items, shape [chosen].
            vocabulary: Of sources made of words.

        Returns:
            Shape [chosen, features], sparse for words.
        """
        if vocabulary is not None:
            return read_block(source, [self.items[place].item for place in places], self.readers, vocabulary)
        if source not in self._read:
            whole = read_block(source, [one.item for one in self.items], self.readers, None, self._on_progress)
            self._read[source] = np.asarray(whole)
        return self._read[source][places]

    def twins(self) -> Twins:
        """Near copies: by the encoder's vectors where there is one, else by words."""
        if self.readers.encoder is None and "vectors" not in self._read:
            return Twins.of_words(self.items)
        every = np.arange(len(self.items))
        return Twins(np.asarray(self.block("vectors", every, None), dtype=np.float32))

    def shares(self, places: IntArray) -> tuple[float, ...]:
        """Of the levels among items, places of shape [chosen]; one that does not occur counts as half a statement."""
        counts = np.maximum(np.bincount(self.truth[places], minlength=len(LEVELS)), 0.5)
        return tuple((counts / counts.sum()).tolist())


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """Regressions fitted on some statements."""

    parts: tuple[TaggerPart, ...]
    vocabularies: dict[Source, Vocabulary]
    shares: tuple[float, ...]

    def probabilities(self, lesson: Lesson, places: IntArray) -> FloatArray:
        """Of some of the lesson's statements, shape [places, levels]."""
        if not self.parts:
            return np.tile(np.array(self.shares), (len(places), 1))
        sources = dict.fromkeys(source for part in self.parts for source in part.sources)
        blocks = {source: lesson.block(source, places, self.vocabularies.get(source)) for source in sources}
        return pooled([part.model.probabilities([blocks[one] for one in part.sources]) for part in self.parts])


def fit(spec: TaggerSpec, lesson: Lesson, places: IntArray) -> Fitted:
    """Fit a tagger's regressions on some of the lesson's statements; vocabularies are learned from these alone.

    Args:
        spec: Which regressions, on which sources.
        lesson: Labelled statements.
        places: Of those that are learned from, shape [chosen].
    """
    vocabularies: dict[Source, Vocabulary] = {}
    for source in spec.sources:
        if source.endswith("words"):
            read = (lesson.items[place].item for place in places)
            texts = [item.surroundings() if source.startswith("context") else item.text for item in read]
            vocabularies[source] = Vocabulary.learn(texts, longest=spec.longest, least=spec.least)
    parts = []
    for part in spec.parts:
        blocks = [lesson.block(source, places, vocabularies.get(source)) for source in part.sources]
        model: LevelModel = fit_levels(
            blocks, lesson.truth[places], len(LEVELS), kind=part.kind, regularisation=part.regularisation
        )
        parts.append(TaggerPart(part.sources, model))
    return Fitted(tuple(parts), vocabularies, lesson.shares(places))


def cross_validated(spec: TaggerSpec, lesson: Lesson, splits: Sequence[Split]) -> Tagged:
    """Held-out probabilities of all test items, in the order of the items."""
    found = np.full((len(lesson.items), len(LEVELS)), np.nan)
    for split in splits:
        found[split.test] = fit(spec, lesson, split.train).probabilities(lesson, split.test)
    tested = np.flatnonzero(~np.isnan(found[:, 0]))
    return Tagged(lesson.truth[tested], found[tested], lesson.sections[tested])


@dataclass(frozen=True, slots=True, eq=False)
class Tried:
    """A tagger that was tried, and how it did on statements it was not fitted on."""

    spec: TaggerSpec
    natural: TaggerScores
    """On the mix of levels of the data."""
    mixed: TaggerScores
    """On the mix of ClimateX's test set, with probabilities for that mix."""
    balanced: TaggerScores
    """On equal shares of the levels, with probabilities for them."""
    tagged: Tagged


def measured(spec: TaggerSpec, tagged: Tagged, *, resamples: int = 1000, seed: int = 0) -> Tried:
    """Score held-out probabilities on the three mixes."""
    natural = score_tagger(tagged, resamples=resamples, seed=seed)
    mixed = score_tagger(tagged.on_mix(CLIMATEX_MIX), CLIMATEX_MIX, resamples=resamples, seed=seed)
    balanced = score_tagger(tagged.on_mix(EQUAL), EQUAL, resamples=resamples, seed=seed)
    return Tried(spec, natural, mixed, balanced, tagged)


def compare(
    specs: Sequence[TaggerSpec],
    lesson: Lesson,
    *,
    apart: Apart = "statement",
    count: int = 5,
    resamples: int = 1000,
    seed: int = 0,
    on_fit: Callable[[], None] | None = None,
) -> list[Tried]:
    """Cross-validate taggers on the same folds.

    Args:
        specs: Taggers to try.
        lesson: Labelled statements.
        apart: What training and test do not share.
        count: Folds.
        resamples: Bootstrap samples of the intervals.
        seed: Of folds and bootstrap.
        on_fit: Called after each tagger.

    Returns:
        In the order of ``specs``; the best is the one with the lowest ``natural.log_loss``, which needs no mix.
    """
    splits = folds(lesson.items, lesson.twins(), apart, count=count, seed=seed)
    found = []
    for spec in specs:
        found.append(measured(spec, cross_validated(spec, lesson, splits), resamples=resamples, seed=seed))
        if on_fit is not None:
            on_fit()
    return found


def best_of(tried: Sequence[Tried]) -> Tried:
    """The one with the lowest log loss on the natural mix, of those that read something.

    Raises:
        InputError: None of them does.
    """
    readers = [one for one in tried if one.spec.parts]
    if not readers:
        raise InputError("There is nothing to choose from: a tagger that reads statements has to be tried.")
    return min(readers, key=lambda one: one.natural.log_loss.value)


def finish(
    chosen: Tried,
    lesson: Lesson,
    *,
    data: str,
    data_sha256: str,
    licence: str,
    by_document: Tried | None = None,
    places: IntArray | None = None,
    seed: int = 0,
) -> LinearTagger:
    """The tagger of a choice, fitted on all statements (or on some), with what was measured on its card.

    Args:
        chosen: Of :func:`compare`, or of a held-out test.
        lesson: Labelled statements.
        data: Name of the data.
        data_sha256: Its content.
        licence: Of the data, in words.
        by_document: The same tagger, compared with ``apart="document"``: where there are enough documents, the card
            gets the residuals by which shares of levels are estimated.
        places: Of the statements to fit on, shape [chosen]; None: all.
        seed: Noted on the card.
    """
    kept = np.arange(len(lesson.items)) if places is None else places
    fitted = fit(chosen.spec, lesson, kept)
    readers, sources = lesson.readers, chosen.spec.sources
    encoder = readers.need_encoder() if needs_encoder(sources) else None
    model = readers.need_model() if needs_model(sources) else None
    origins = Origins(
        encoder.name if encoder else "",
        encoder.fingerprint if encoder else "",
        model.name if model else "",
        model.fingerprint if model else "",
        model.dtype if model else "",
        readers.layer if model else 0,
    )
    card = TaggerCard(
        data=data,
        data_sha256=data_sha256,
        licence=licence,
        statements=len(kept),
        shares=fitted.shares,
        measured=_figures(chosen),
        confusion=tuple(tuple(row) for row in chosen.tagged.on_mix(EQUAL).confusion.tolist()),
        residuals=_residuals(by_document, lesson),
        regularisation=chosen.spec.parts[0].regularisation if chosen.spec.parts else 0.0,
        seed=seed,
    )
    return LinearTagger(fitted.parts, LEVELS, fitted.vocabularies, origins, card, readers=readers)


def with_regularisation(spec: TaggerSpec, value: float) -> TaggerSpec:
    """The same with another C in all its parts."""
    return replace(spec, parts=tuple(replace(part, regularisation=value) for part in spec.parts))


def _residuals(by_document: Tried | None, lesson: Lesson) -> tuple[tuple[float, ...], ...]:
    if by_document is None or len(by_document.tagged.truth) != len(lesson.items):
        return ()
    documents = [one.document for one in lesson.items]
    try:
        found = share_residuals(by_document.tagged.truth, by_document.tagged.probabilities, documents)
    except InputError:  # too few large documents: the card does without
        return ()
    return tuple(tuple(row) for row in found.tolist())


def _figures(chosen: Tried) -> tuple[tuple[str, float], ...]:
    named = {
        "accuracy": chosen.natural.accuracy,
        "macro_f1": chosen.natural.macro_f1,
        "ordinal_error": chosen.natural.ordinal_error,
        "log_loss": chosen.natural.log_loss,
        "mix_accuracy": chosen.mixed.accuracy,
        "mix_ordinal_error": chosen.mixed.ordinal_error,
        "balanced_accuracy": chosen.balanced.accuracy,
    }
    found: list[tuple[str, float]] = []
    for name, estimate in named.items():
        found += [
            (name, estimate.value),
            (f"{name}_low", estimate.interval.low),
            (f"{name}_high", estimate.interval.high),
        ]
    return (*found, ("n", float(len(chosen.tagged.truth))))
