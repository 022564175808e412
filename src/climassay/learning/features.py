"""Features of texts: counts of words, an encoder's vectors, hidden states of a language model.

Each source gives a block of numbers, one row per text. Models are linear in the blocks, so that what they learned fits
into a small file and can be looked at.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, Self, cast, get_args

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError, ModelError
from climassay.learning.linear import Block
from climassay.learning.model_file import Provenance, SavedModel
from climassay.models.contract import Encoder, Generator, OpenWeights
from climassay.models.encoders import cached_vectors

if TYPE_CHECKING:
    from scipy.sparse import csr_array

FloatArray = NDArray[np.float64]
Progress = Callable[[int], None]
Text = tuple[str, str]
"""A text and its context, which may be empty."""
Source = Literal["words", "vectors", "context words", "context vectors", "mean states", "last states"]
"""``words``: n-grams of the text. ``vectors``: the encoder's vector of it. ``context ...``: the same for its context.
``mean states``: a language model's hidden states, averaged over the text's tokens. ``last states``: its hidden states
at :data:`OPENING`, which is appended to the text."""
SOURCES: tuple[Source, ...] = get_args(Source)
Pooling = Literal["mean", "last"]
POOLINGS: tuple[Pooling, ...] = get_args(Pooling)

OPENING = " ("
"""Suffix of a text, after which the next words would comment on the text; the state at its end is the feature."""
_FILLER = "<|endoftext|>"
_MAX_TOKENS = 200
"""Maximum number of tokens of a text that a language model reads."""
_MIN_TEXTS_TO_CACHE = 256
"""Minimum number of texts for which vectors are cached, so that interrupted work resumes."""
_WORD = re.compile(r"[^\W\d_](?:[\w-]*\w)?")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """n-grams and their weights."""

    terms: tuple[str, ...]
    weights: tuple[float, ...]
    """Inverse document frequency of each: ``log((1 + n) / (1 + n_t)) + 1``."""
    longest: int
    """Maximum number of words of an n-gram."""

    @classmethod
    def learn(cls, texts: Sequence[str], *, max_words: int = 2, min_texts: int = 3) -> "Vocabulary":
        """Return the n-grams that occur in at least ``min_texts`` texts."""
        counts = Counter(term for text in texts for term in set(ngrams(text, max_words)))
        terms = sorted(term for term, count in counts.items() if count >= min_texts)
        weights = (math.log((1 + len(texts)) / (1 + counts[term])) + 1 for term in terms)
        return cls(tuple(terms), tuple(weights), max_words)

    def read(self, texts: Sequence[str]) -> "csr_array":
        """Return unit vectors of ``(1 + log count) * weight``, shape [texts, terms]; zeros if no term is known."""
        from scipy.sparse import csr_array
        from sklearn.feature_extraction.text import TfidfVectorizer

        if not self.terms or not texts:
            return csr_array((len(texts), len(self.terms)), dtype=np.float64)
        analyzer = partial(ngrams, max_words=self.longest)
        counter = TfidfVectorizer(analyzer=analyzer, vocabulary=self.terms, sublinear_tf=True)
        counter.idf_ = np.array(self.weights)
        return csr_array(counter.transform(texts))


def ngrams(text: str, max_words: int) -> list[str]:
    """Return runs of one to ``max_words`` words in lower case, without numbers."""
    words = _WORD.findall(text.lower())
    return [
        " ".join(words[start : start + size])
        for size in range(1, max_words + 1)
        for start in range(len(words) - size + 1)
    ]


@dataclass(frozen=True, slots=True)
class FeatureModels:
    """Models that the sources need; unneeded ones may be missing."""

    encoder: Encoder | None = None
    model: Generator | None = None
    layer: int = 20
    """Layer of the language model whose states are read."""

    def complete(self, source: Provenance, thing: str, *, states: bool = True) -> "FeatureModels":
        """Return a copy in which missing models of the provenance are loaded by name.

        Without ``states`` no language model is loaded.

        Raises:
            InputError: A present encoder or model is another one.
            ModelError: A missing one cannot be loaded.
        """
        encoder, model = self.encoder, self.model
        if encoder is None and source.encoder:
            from climassay.models.encoders import load_encoder

            encoder = load_encoder(source.encoder)
        if model is None and source.model and states:
            from climassay.models.provider import load_local

            model = load_local(source.model.removeprefix("local:"), dtype=source.dtype or None)
        source.check(thing, encoder=encoder, model=model)
        return FeatureModels(encoder, model, source.layers[0] if source.layers else self.layer)

    def need_encoder(self) -> Encoder:
        """Return the encoder.

        Raises:
            InputError: There is none.
        """
        if self.encoder is None:
            raise InputError("This model reads an encoder's vectors: give it the encoder it was trained with.")
        return self.encoder

    def need_model(self) -> OpenWeights:
        """Return the language model whose states are read.

        Raises:
            InputError: There is none, or it does not expose its states.
        """
        if not isinstance(self.model, OpenWeights):
            raise InputError(
                "Hidden states are read from a local: model, not a wrapper around one, for example local:smollm2."
            )
        return self.model


class ReadingModel(SavedModel):
    """A trained model that reads an encoder's vectors or a language model's states."""

    provenance: Provenance
    models: FeatureModels
    """Encoder and language model of the features; a missing one is loaded by its name."""

    def with_models(self, encoder: Encoder | None = None, model: Generator | None = None) -> Self:
        """Return a copy with loaded models; those that it does not read are ignored.

        Raises:
            InputError: A model is not the one of the training.
        """
        source = self.provenance
        models = FeatureModels(encoder if source.encoder else None, model if source.model else None)
        source.check(self.FORMAT.thing, encoder=models.encoder, model=models.model)
        return cast(Self, replace(cast(Any, self), models=models))

    @cached_property
    def reader(self) -> FeatureModels:
        """Encoder and model, loaded by name if missing."""
        return self.models.complete(self.provenance, self.FORMAT.thing)


def read_source(
    source: Source,
    texts: Sequence[Text],
    models: FeatureModels,
    vocabulary: Vocabulary | None = None,
    *,
    on_progress: Progress | None = None,
) -> Block:
    """Return the block of one source, shape [texts, features]; words need a vocabulary from training texts.

    Raises:
        InputError: The model or the vocabulary of the source is missing.
    """
    selected = [context if source.startswith("context") else text for text, context in texts]
    if source == "mean states" or source == "last states":
        pooling: Pooling = "mean" if source == "mean states" else "last"
        result = text_states(models.need_model(), selected, [models.layer], on_progress=on_progress)
        return result[:, 0, POOLINGS.index(pooling)].astype(np.float64)
    if source.endswith("words"):
        if vocabulary is None:
            raise InputError("Word features need a vocabulary, which is learned from training texts.")
        return vocabulary.read(selected)
    return text_vectors(selected, models.need_encoder(), on_progress=on_progress)


def text_vectors(texts: Sequence[str], encoder: Encoder, *, on_progress: Progress | None = None) -> FloatArray:
    """Return unit vectors, shape [texts, width]; zeros if a text is empty."""
    results = np.zeros((len(texts), encoder.width))
    indices = [index for index, text in enumerate(texts) if text]
    nonempty = [texts[index] for index in indices]
    if len(nonempty) >= _MIN_TEXTS_TO_CACHE:
        results[indices] = cached_vectors(nonempty, encoder, "text_vectors", on_progress=on_progress)
    elif nonempty:
        results[indices] = encoder.encode(nonempty, on_progress=on_progress)
    return results


def text_states(
    model: OpenWeights, texts: Sequence[str], layers: Sequence[int], *, on_progress: Progress | None = None
) -> NDArray[np.float32]:
    """Return hidden states of texts without chat template; shape [texts, layers, 2, width].

    The first of the two is the mean over the text's tokens, of which at most 200 are read, the second the state at
    :data:`OPENING` behind it. The model is a local one; layers are numbered as in transformers.

    Raises:
        InputError: The model does not expose the states of all tokens.
        ModelError: It has no such layer.
    """
    from climassay.models.local.network import StateRequest
    from climassay.models.provider import loaded_model

    if (local := loaded_model(model)) is None:
        raise InputError(f"The states of {getattr(model, 'name', 'this model')} cannot be read: give a local: model.")
    missing = next((layer for layer in layers if not -local.layers - 1 <= layer <= local.layers), None)
    if missing is not None:
        raise ModelError(f"{local.name} has no layer {missing}: its hidden states are 0 to {local.layers}.")
    opening = local.prompts.encode(OPENING)
    results = []
    for text in texts:
        # The first token's state is the same whatever follows and far larger than all others: a token before the
        # text takes its place, and is not read.
        tokens = [*local.prompts.encode(_FILLER)[:1], *(local.prompts.encode(text)[:_MAX_TOKENS] or opening), *opening]
        output = local.network.compute_sequence(
            tokens, [len(tokens) - 1], StateRequest(range(1, len(tokens)), list(layers))
        )
        if output.states is None:
            raise ModelError(f"{local.name} gave no hidden states.")
        states = output.states.cpu().float().numpy()
        results.append(np.stack([states[: -len(opening)].mean(axis=0), states[-1]], axis=1))
        if on_progress is not None:
            on_progress(1)
    return np.array(results, dtype=np.float32)


def needs_encoder(sources: Sequence[Source]) -> bool:
    """Return whether a source reads vectors."""
    return any(source.endswith("vectors") for source in sources)


def needs_model(sources: Sequence[Source]) -> bool:
    """Return whether a source reads hidden states."""
    return any(source.endswith("states") for source in sources)


def check_sources(sources: Sequence[str]) -> tuple[Source, ...]:
    """Validate the names of sources and return them.

    Raises:
        InputError: No source, a repeated or an unknown one.
    """
    source_of: dict[str, Source] = {source: source for source in SOURCES}
    if not sources or len(set(sources)) < len(sources) or not set(sources) <= set(source_of):
        raise InputError(f"A model reads one or several of {', '.join(SOURCES)}, each once; got {list(sources)}.")
    return tuple(source_of[name] for name in sources)
