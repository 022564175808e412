"""What taggers read of a statement: its words, its vector, the states of a language model, and those of its context.

Every source gives a block of numbers for each statement. Taggers are linear in the blocks, so that what they learned
fits into a small file and can be looked at.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from climassay.confidence.tagging.items import TaggingItem
from climassay.confidence.tagging.linear import Block
from climassay.confidence.tagging.states import read_states
from climassay.errors import InputError
from climassay.models.contract import Encoder, OpenWeights
from climassay.models.kept_vectors import kept_vectors

if TYPE_CHECKING:
    from scipy.sparse import csr_array

FloatArray = NDArray[np.float64]

Source = Literal["words", "vectors", "context words", "context vectors", "mean states", "last states"]
"""``words``: n-grams of the statement. ``vectors``: the encoder's vector of it. ``context ...``: the same of the
sentences around it. ``mean states``: a generator's hidden states, mean over the statement's tokens. ``last states``: at
the opening bracket put behind the statement, in which a report would give the level."""
SOURCES: tuple[Source, ...] = get_args(Source)
_MANY = 256
"""Texts from which their vectors are kept in the cache, so that work that takes minutes goes on where it stopped."""
_WORD = re.compile(r"[^\W\d_](?:[\w-]*\w)?")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """n-grams that are counted, and how much each weighs."""

    terms: tuple[str, ...]
    weights: tuple[float, ...]
    """Inverse document frequency of each: ``log((1 + n) / (1 + n_t)) + 1``."""
    longest: int
    """Words of the longest n-grams."""

    @classmethod
    def learn(cls, texts: Sequence[str], *, longest: int = 2, least: int = 3) -> "Vocabulary":
        """n-grams that occur in at least ``least`` texts."""
        counts = Counter(term for text in texts for term in set(ngrams(text, longest)))
        terms = sorted(term for term, count in counts.items() if count >= least)
        weights = (math.log((1 + len(texts)) / (1 + counts[term])) + 1 for term in terms)
        return cls(tuple(terms), tuple(weights), longest)

    def read(self, texts: Sequence[str]) -> "csr_array":
        """Unit vectors of ``(1 + log count) * weight``, shape [texts, terms]; zeros where no term is known."""
        from scipy.sparse import csr_array

        places = {term: place for place, term in enumerate(self.terms)}
        rows: list[int] = []
        columns: list[int] = []
        values: list[float] = []
        for row, text in enumerate(texts):
            counts = {
                places[term]: count for term, count in Counter(ngrams(text, self.longest)).items() if term in places
            }
            own = np.array([(1 + math.log(count)) * self.weights[place] for place, count in counts.items()])
            rows += [row] * len(counts)
            columns += counts
            values += (own / np.linalg.norm(own)).tolist() if len(own) else []
        return csr_array((values, (rows, columns)), shape=(len(texts), len(self.terms)), dtype=np.float64)


def ngrams(text: str, longest: int) -> list[str]:
    """Runs of one to ``longest`` words in lower case; numbers are left out, for a finding's numbers are its own."""
    words = _WORD.findall(text.lower())
    return [
        " ".join(words[start : start + size])
        for size in range(1, longest + 1)
        for start in range(len(words) - size + 1)
    ]


@dataclass(frozen=True, slots=True)
class Readers:
    """The models behind the sources; those that no source needs may be missing."""

    encoder: Encoder | None = None
    model: OpenWeights | None = None
    layer: int = 20
    """Of the generator, for its states."""

    def need_encoder(self) -> Encoder:
        """The encoder.

        Raises:
            InputError: There is none.
        """
        if self.encoder is None:
            raise InputError("This tagger reads an encoder's vectors: give it the encoder it was trained with.")
        return self.encoder

    def need_model(self) -> OpenWeights:
        """The model whose states are read.

        Raises:
            InputError: There is none.
        """
        if self.model is None:
            raise InputError("This tagger reads hidden states: give it a local: model, for example local:smollm2.")
        return self.model


def read_block(
    source: Source,
    items: Sequence[TaggingItem],
    readers: Readers,
    vocabulary: Vocabulary | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> Block:
    """The numbers of one source, shape [items, features].

    Args:
        source: What is read.
        items: Statements.
        readers: Models.
        vocabulary: Of the sources that read words.
        on_progress: Called with the number of statements read since the last call.

    Raises:
        InputError: The source needs a model or a vocabulary that is not there.
    """
    if source.endswith("states"):
        pooling: Literal["mean", "last"] = "mean" if source == "mean states" else "last"
        texts = [item.text for item in items]
        return read_states(readers.need_model(), texts, readers.layer, pooling, on_progress=on_progress)
    texts = [item.surroundings() if source.startswith("context") else item.text for item in items]
    if source.endswith("words"):
        if vocabulary is None:
            raise InputError("Words are read with a vocabulary, which is learned from training texts.")
        return vocabulary.read(texts)
    return _vectors(texts, readers.need_encoder(), on_progress)


def _vectors(texts: Sequence[str], encoder: Encoder, on_progress: Callable[[int], None] | None) -> FloatArray:
    """Vectors; zeros, which say nothing, where there is no text."""
    found = np.zeros((len(texts), encoder.width))
    places = [place for place, text in enumerate(texts) if text]
    said = [texts[place] for place in places]
    if len(said) >= _MANY:
        found[places] = kept_vectors(said, encoder, "tagging_vectors", on_progress=on_progress)
    elif said:
        found[places] = encoder.encode(said, on_progress=on_progress)
    return found


def needs_encoder(sources: Sequence[Source]) -> bool:
    """Whether some source reads vectors."""
    return any(source.endswith("vectors") for source in sources)


def needs_model(sources: Sequence[Source]) -> bool:
    """Whether some source reads hidden states."""
    return any(source.endswith("states") for source in sources)


def check_sources(sources: Sequence[str]) -> tuple[Source, ...]:
    """Sources by name.

    Raises:
        InputError: There is none, one twice, or an unknown one.
    """
    known: Mapping[str, Source] = {source: source for source in SOURCES}
    unknown = [name for name in sources if name not in known]
    if unknown or not sources or len(set(sources)) < len(sources):
        raise InputError(f"A tagger reads one or several of {', '.join(SOURCES)}, each once; got {list(sources)}.")
    return tuple(known[name] for name in sources)
