"""Features of texts: word counts, an encoder's embeddings, and hidden states of a language model.

Each source gives a block of features, with one row per text. Models are linear in the features, so that they fit into a
small file and can be inspected.
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
"""Text and its context, which may be empty."""
Source = Literal["words", "vectors", "context words", "context vectors", "mean states", "last states"]
"""Source of features. ``words``: n-grams of the text. ``vectors``: an encoder's embedding of the text. ``context
words`` and ``context vectors``: the same features of the text's context. ``mean states``: a language model's hidden
states, averaged over the tokens of the text. ``last states``: its hidden states at :data:`OPENING`, which is appended
to the text."""
SOURCES: tuple[Source, ...] = get_args(Source)
Pooling = Literal["mean", "last"]
POOLINGS: tuple[Pooling, ...] = get_args(Pooling)

OPENING = " ("
"""Suffix appended to a text to elicit the model's comment on it; the hidden state at the suffix is the feature."""
_FILLER = "<|endoftext|>"
_MAX_TOKENS = 200
"""Maximum number of tokens of a text; a language model gets longer texts truncated."""
_MIN_TEXTS_TO_CACHE = 256
"""Minimum number of texts for which embeddings are cached, so that interrupted work can be resumed."""
_WORD = re.compile(r"[^\W\d_](?:[\w-]*\w)?")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """N-grams of a set of training texts, with their weights."""

    terms: tuple[str, ...]
    weights: tuple[float, ...]
    """Inverse document frequency of each term: ``log((1 + n_texts) / (1 + n_texts_with_the_term)) + 1``."""
    max_words: int
    """Maximum number of words in an n-gram."""

    @classmethod
    def fit(cls, texts: Sequence[str], *, max_words: int = 2, min_texts: int = 3) -> "Vocabulary":
        """Create a vocabulary of the n-grams of 1 to ``max_words`` words that occur in ``min_texts`` texts or more."""
        counts = Counter(term for text in texts for term in set(ngrams(text, max_words)))
        terms = sorted(term for term, count in counts.items() if count >= min_texts)
        weights = (math.log((1 + len(texts)) / (1 + counts[term])) + 1 for term in terms)
        return cls(tuple(terms), tuple(weights), max_words)

    def transform(self, texts: Sequence[str]) -> "csr_array":
        """Return tf-idf features with sublinear term frequency: sparse unit vectors, shape [texts, terms].

        A text without any term of the vocabulary has a zero vector.
        """
        from scipy.sparse import csr_array
        from sklearn.feature_extraction.text import TfidfVectorizer

        if not self.terms or not texts:
            return csr_array((len(texts), len(self.terms)), dtype=np.float64)
        analyzer = partial(ngrams, max_words=self.max_words)
        counter = TfidfVectorizer(analyzer=analyzer, vocabulary=self.terms, sublinear_tf=True)
        counter.idf_ = np.array(self.weights)
        return csr_array(counter.transform(texts))


def ngrams(text: str, max_words: int) -> list[str]:
    """Return all n-grams of one to ``max_words`` words, in lower case, from the text without its numbers."""
    words = _WORD.findall(text.lower())
    return [
        " ".join(words[start : start + n_words])
        for n_words in range(1, max_words + 1)
        for start in range(len(words) - n_words + 1)
    ]


@dataclass(frozen=True, slots=True)
class FeatureModels:
    """Encoder and language model that compute features; None for models that no source needs."""

    encoder: Encoder | None = None
    model: Generator | None = None
    layer: int = 20
    """Layer of the language model whose hidden states are used."""

    def complete(self, source: Provenance, display_name: str, *, states: bool = True) -> "FeatureModels":
        """Return a copy with the encoder and the language model that a trained model needs for its features.

        Args:
            source: Provenance of the trained model, with the names of both.
            display_name: Name of the trained model in error messages.
            states: Whether to load the language model.

        Raises:
            InputError: The encoder or language model differs from that in training.
            ModelError: The encoder or language model cannot be loaded.
        """
        encoder, model = self.encoder, self.model
        if encoder is None and source.encoder:
            from climassay.models.encoders import load_encoder

            encoder = load_encoder(source.encoder)
        if model is None and source.model and states:
            from climassay.models.provider import load_local

            model = load_local(source.model.removeprefix("local:"), dtype=source.dtype or None)
        source.check(display_name, encoder=encoder, model=model)
        return FeatureModels(encoder, model, source.layers[0] if source.layers else self.layer)

    def require_encoder(self) -> Encoder:
        """Return the encoder, or raise an error.

        Raises:
            InputError: There is no encoder.
        """
        if self.encoder is None:
            raise InputError("This model reads an encoder's vectors: give it the encoder it was trained with.")
        return self.encoder

    def require_model(self) -> OpenWeights:
        """Return the language model, or raise an error.

        Raises:
            InputError: There is no model, or it does not expose its hidden states.
        """
        if not isinstance(self.model, OpenWeights):
            raise InputError(
                "Hidden states are read from a local: model, not a wrapper around one, for example local:smollm2."
            )
        return self.model


class FeatureBasedModel(SavedModel):
    """Trained model whose features are an encoder's embeddings or a language model's hidden states."""

    provenance: Provenance
    models: FeatureModels
    """Encoder and language model that compute the features. A missing model is loaded by name on first use."""

    def with_models(self, encoder: Encoder | None = None, model: Generator | None = None) -> Self:
        """Return a copy that uses the given encoder and language model. A model that is not needed is ignored.

        Raises:
            InputError: The encoder or language model differs from that in training.
        """
        source = self.provenance
        models = FeatureModels(encoder if source.encoder else None, model if source.model else None)
        source.check(self.FORMAT.display_name, encoder=models.encoder, model=models.model)
        return cast(Self, replace(cast(Any, self), models=models))

    @cached_property
    def feature_models(self) -> FeatureModels:
        """Encoder and language model that compute the features, loaded by name if missing."""
        return self.models.complete(self.provenance, self.FORMAT.display_name)


def compute_block(
    source: Source,
    texts: Sequence[Text],
    models: FeatureModels,
    vocabulary: Vocabulary | None = None,
    *,
    on_progress: Progress | None = None,
) -> Block:
    """Compute the block of features of one source, shape [texts, features].

    Args:
        source: Source of the features.
        texts: Texts with their contexts.
        models: Encoder and language model.
        vocabulary: Vocabulary of the training texts, for the sources ``words`` and ``context words``.
        on_progress: Called with the number of texts done since the last call.

    Raises:
        InputError: The model or the vocabulary for the source is missing.
    """
    selected_texts = [context if source.startswith("context") else text for text, context in texts]
    if source == "mean states" or source == "last states":
        pooling: Pooling = "mean" if source == "mean states" else "last"
        states = text_states(models.require_model(), selected_texts, [models.layer], on_progress=on_progress)
        return states[:, 0, POOLINGS.index(pooling)].astype(np.float64)
    if source.endswith("words"):
        if vocabulary is None:
            raise InputError("Word features need a vocabulary, which is learned from training texts.")
        return vocabulary.transform(selected_texts)
    return text_vectors(selected_texts, models.require_encoder(), on_progress=on_progress)


def text_vectors(texts: Sequence[str], encoder: Encoder, *, on_progress: Progress | None = None) -> FloatArray:
    """Return the embeddings of texts: unit vectors, shape [texts, width]; zeros for empty texts."""
    results = np.zeros((len(texts), encoder.width))
    indices = [index for index, text in enumerate(texts) if text]
    nonempty_texts = [texts[index] for index in indices]
    if len(nonempty_texts) >= _MIN_TEXTS_TO_CACHE:
        results[indices] = cached_vectors(nonempty_texts, encoder, "text_vectors", on_progress=on_progress)
    elif nonempty_texts:
        results[indices] = encoder.encode(nonempty_texts, on_progress=on_progress)
    return results


def text_states(
    model: OpenWeights, texts: Sequence[str], layers: Sequence[int], *, on_progress: Progress | None = None
) -> NDArray[np.float32]:
    """Return hidden states of texts, computed without a chat template; shape [texts, layers, 2, width].

    On the third axis, the first state is the mean over the tokens of the text, and the second is the state at
    :data:`OPENING`, which is appended to the text. Texts are truncated at 200 tokens.

    Args:
        model: Local model.
        texts: Texts to process.
        layers: Layers, numbered as in transformers.
        on_progress: Called with 1 after each text.

    Raises:
        InputError: The model does not expose the states of all tokens.
        ModelError: The model lacks one of the layers.
    """
    from climassay.models.local.network import StateRequest
    from climassay.models.provider import loaded_model

    if (local_model := loaded_model(model)) is None:
        raise InputError(f"The states of {getattr(model, 'name', 'this model')} cannot be read: give a local: model.")
    missing_layer = next(
        (layer for layer in layers if not -local_model.layers - 1 <= layer <= local_model.layers), None
    )
    if missing_layer is not None:
        raise ModelError(
            f"{local_model.name} has no layer {missing_layer}: its hidden states are 0 to {local_model.layers}."
        )
    suffix_tokens = local_model.prompts.encode(OPENING)
    results = []
    for text in texts:
        # The state of the first token does not depend on the text and is far larger than all others. A filler token
        # takes this position, and its state is not used.
        tokens = [
            *local_model.prompts.encode(_FILLER)[:1],
            *(local_model.prompts.encode(text)[:_MAX_TOKENS] or suffix_tokens),
            *suffix_tokens,
        ]
        output = local_model.network.compute_sequence(
            tokens, [len(tokens) - 1], StateRequest(range(1, len(tokens)), list(layers))
        )
        if output.states is None:
            raise ModelError(f"{local_model.name} gave no hidden states.")
        states = output.states.cpu().float().numpy()
        results.append(np.stack([states[: -len(suffix_tokens)].mean(axis=0), states[-1]], axis=1))
        if on_progress is not None:
            on_progress(1)
    return np.array(results, dtype=np.float32)


def needs_encoder(sources: Sequence[Source]) -> bool:
    """Return whether any of the sources needs an encoder."""
    return any(source.endswith("vectors") for source in sources)


def needs_model(sources: Sequence[Source]) -> bool:
    """Return whether any of the sources needs a language model."""
    return any(source.endswith("states") for source in sources)


def check_sources(sources: Sequence[str]) -> tuple[Source, ...]:
    """Validate the names of sources and return them.

    Raises:
        InputError: There is no source, or a source is repeated or unknown.
    """
    if not sources or len(set(sources)) < len(sources) or not set(sources) <= set(SOURCES):
        raise InputError(f"A model reads one or several of {', '.join(SOURCES)}, each once; got {list(sources)}.")
    return cast(tuple[Source, ...], tuple(sources))
