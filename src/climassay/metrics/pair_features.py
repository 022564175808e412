"""Features of two texts that are encoded separately: cosines of their vectors, and rules on their words.

An encoder tells whether two texts have the same subject, hardly whether they agree: "rises" and "falls", with and
without a "not", lie close together. The cosines are therefore combined with the words that both texts contain,
negations, direction words and their antonyms, and numbers.

References:
    Conneau et al. (2017), Supervised Learning of Universal Sentence Representations, EMNLP, section 3 (u, v, |u - v|,
    u * v).
    MacCartney and Manning (2008), Modeling Semantic Containment and Exclusion in Natural Language Inference, COLING
    (what negations and opposites do to an entailment).
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from climassay.corpus.sentences import split_sentences
from climassay.models.contract import Encoder

FloatArray = NDArray[np.float64]

_OPPOSITES = """
increase:decrease increases:decreases increased:decreased increasing:decreasing rise:fall rises:falls rising:falling
rose:fell risen:fallen grow:shrink grows:shrinks growing:shrinking grew:shrank warm:cool warms:cools warmer:cooler
warming:cooling warmed:cooled hot:cold hotter:colder hottest:coldest higher:lower highest:lowest high:low more:less
most:least gain:loss gains:losses strengthen:weaken strengthens:weakens strengthening:weakening stronger:weaker
strong:weak expand:contract expands:contracts expanding:contracting wet:dry wetter:drier before:after faster:slower
larger:smaller largest:smallest large:small greater:lesser great:slight above:below positive:negative
accelerate:slow accelerating:slowing accelerated:slowed thicker:thinner early:late earlier:later upward:downward
melt:freeze melts:freezes melting:freezing long:short longer:shorter many:few always:never absorb:emit absorbs:emits
advance:retreat advances:retreats advancing:retreating summer:winter maximum:minimum worse:better
improve:worsen improves:worsens exacerbate:alleviate likely:unlikely possible:impossible important:unimportant
significant:insignificant natural:human natural:artificial deep:shallow deeper:shallower wider:narrower
acidic:alkaline stable:unstable dependent:independent
"""
OPPOSITES: dict[str, str] = {}
"""Antonym of each direction word, such as "decrease" for "increase", and vice versa."""
for _pair in _OPPOSITES.split():
    _first, _second = _pair.split(":")
    OPPOSITES.setdefault(_first, _second)
    OPPOSITES.setdefault(_second, _first)

NAMES = (
    "cosine", "nearest sentence", "covered", "covering", "same words",
    "one negated", "both negated", "negated and near", "opposite direction", "opposite and near",
    "same direction", "new numbers", "shared numbers", "new numbers and near", "statement longer",
)  # fmt: skip
"""Names of the rule features of :func:`pair_features`, in order."""


def word_set(text: str) -> frozenset[str]:
    """Return the distinct words of a text that are separated by white space."""
    return frozenset(text.split())


_NEGATIONS = word_set(
    """
    no not never none nor neither without cannot hardly false myth incorrect wrong contrary despite fail fails failed
    n't n’t
    """
)
_TOKEN = re.compile(r"n['’]t\b|[a-z]+?(?=n['’]t\b)|[a-z]+")
_NEGATION_WINDOW = 4
"""Number of words before a direction word within which a negation reverses it ("have not shown a decrease")."""
_NUMBER = re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?")
_WORD = re.compile(r"[^\W\d_]{2,}")
_FUNCTION_WORDS = word_set(
    """
    the a an of in on at by to for from with and or as is are was were be been being has have had it its this that
    these those which who than then there their they we our can could will would may might must should do does did
    not no nor so such if because while when where how what why also more most less least very into about over under
    between during after before through per
    """
)
_ENDINGS = re.compile(r"(?:ations?|ings?|ed|es|s|ly|e)$")


class PairFeatures(NamedTuple):
    """Features of pairs of premise and statement."""

    named: FloatArray
    """Rule features, shape [pairs, features], in the order of :data:`NAMES`."""
    vectors: FloatArray
    """Concatenated vectors u, v, |u - v| and u * v, where u and v are the embeddings of premise and statement; shape
    [pairs, 4 width]."""


def pair_features(pairs: Sequence[tuple[str, str]], encoder: Encoder) -> PairFeatures:
    """Compute the features of each (premise, statement); every distinct text is encoded once."""
    sentences = {premise: split_sentences(premise) or [premise] for premise, _ in pairs}
    texts = dict.fromkeys(text for premise, statement in pairs for text in (premise, *sentences[premise], statement))
    index = {text: index_ for index_, text in enumerate(texts)}
    vectors = encoder.encode(list(texts)).astype(np.float64) if texts else np.zeros((0, encoder.width))
    rows = np.zeros((len(pairs), len(NAMES)))
    for row, (premise, statement) in enumerate(pairs):
        vector = vectors[index[statement]]
        cosines = vectors[[index[sentence] for sentence in sentences[premise]]] @ vector
        nearest_sentence = sentences[premise][int(cosines.argmax())]
        cosine = float(vectors[index[premise]] @ vector)
        rows[row] = _compute_named_features(premise, nearest_sentence, statement, cosine, float(cosines.max()))
    premise_vectors = vectors[[index[premise] for premise, _ in pairs]]
    statement_vectors = vectors[[index[statement] for _, statement in pairs]]
    return PairFeatures(
        rows,
        np.concatenate(
            [
                premise_vectors,
                statement_vectors,
                np.abs(premise_vectors - statement_vectors),
                premise_vectors * statement_vectors,
            ],
            axis=1,
        ),
    )


def _compute_named_features(
    premise: str, nearest_sentence: str, statement: str, cosine: float, sentence_cosine: float
) -> tuple[float, ...]:
    words, premise_words = content_words(statement), content_words(premise)
    n_shared = len(words & premise_words)
    statement_coverage, premise_coverage = n_shared / max(1, len(words)), n_shared / max(1, len(premise_words))
    negations = resolve_negations(nearest_sentence).negated, resolve_negations(statement).negated
    one_negated, both_negated = float(negations[0] != negations[1]), float(all(negations))
    # Whether the premise has the opposite of a direction word in the statement, or the same word.
    resolved_premise_words = resolve_negations(premise).words
    direction_words = {word for word in resolve_negations(statement).words if word in OPPOSITES}
    opposite_direction = float(
        any(
            OPPOSITES[word] in resolved_premise_words and word not in resolved_premise_words for word in direction_words
        )
    )
    same_direction = float(bool(direction_words & resolved_premise_words))
    numbers, premise_numbers = (set(_NUMBER.findall(text)) for text in (statement, premise))
    has_new_numbers, has_shared_numbers = float(bool(numbers - premise_numbers)), float(bool(numbers & premise_numbers))
    length_ratio = np.log((1 + len(words)) / (1 + len(premise_words)))
    max_cosine = max(cosine, sentence_cosine)
    return (
        cosine, max_cosine, statement_coverage, premise_coverage, float(words == premise_words),
        one_negated, both_negated, one_negated * max_cosine,
        opposite_direction, opposite_direction * max_cosine, same_direction,
        has_new_numbers, has_shared_numbers, has_new_numbers * max_cosine, float(length_ratio),
    )  # fmt: skip


def content_words(text: str) -> frozenset[str]:
    """Return the stems of a text's content words, that is, all words but function words."""
    return frozenset(
        _ENDINGS.sub("", word) if len(word) > 4 else word
        for word in _WORD.findall(text.lower())
        if word not in _FUNCTION_WORDS
    )


class ResolvedText(NamedTuple):
    """Words of a text, in which negated direction words are replaced by their antonyms (:data:`OPPOSITES`)."""

    words: frozenset[str]
    negated: bool
    """Whether the number of negations that do not apply to a direction word is odd."""


def resolve_negations(text: str) -> ResolvedText:
    """Return the words of a text, with negated direction words replaced: "did not decrease" gives "increase"."""
    tokens = _TOKEN.findall(text.lower())
    negations: list[int] = []
    words = set()
    for index, token in enumerate(tokens):
        if token in OPPOSITES and negations and index - _NEGATION_WINDOW <= negations[-1]:
            negations.pop()
            token = OPPOSITES[token]
        elif token in _NEGATIONS:
            negations.append(index)
        words.add(token)
    return ResolvedText(frozenset(words), len(negations) % 2 == 1)
