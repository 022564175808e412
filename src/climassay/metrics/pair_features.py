"""Features of two texts that were not read together: nearness of their vectors, and what rules see in their words.

An encoder tells whether two texts are about the same, hardly whether they say the same: "rises" and "falls", with and
without a "not", lie close together. So its cosines appear beside words that both have, negations, words of direction
and their opposites, and numbers.

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

from climassay.corpus.documents import split_sentences
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
"""Words of opposite direction, both ways."""
for _pair in _OPPOSITES.split():
    _one, _other = _pair.split(":")
    OPPOSITES.setdefault(_one, _other)
    OPPOSITES.setdefault(_other, _one)

NAMES = (
    "cosine", "nearest sentence", "covered", "covering", "same words",
    "one negated", "both negated", "negated and near", "opposite direction", "opposite and near",
    "same direction", "new numbers", "shared numbers", "new numbers and near", "statement longer",
)  # fmt: skip
"""Names of the features of :func:`pair_features`, in order."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NEGATIONS = _words(
    """
    no not never none nor neither without cannot hardly false myth incorrect wrong contrary despite fail fails failed
    n't n’t
    """
)
_TOKEN = re.compile(r"n['’]t\b|[a-z]+?(?=n['’]t\b)|[a-z]+")
_REACH = 4
"""Words before a word of direction in which a negation turns it round ("have not shown a decrease")."""
_NUMBER = re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?")
_WORD = re.compile(r"[^\W\d_]{2,}")
_FUNCTION_WORDS = _words(
    """
    the a an of in on at by to for from with and or as is are was were be been being has have had it its this that
    these those which who than then there their they we our can could will would may might must should do does did
    not no nor so such if because while when where how what why also more most less least very into about over under
    between during after before through per
    """
)
_ENDINGS = re.compile(r"(?:ations?|ings?|ed|es|s|ly|e)$")


class PairFeatures(NamedTuple):
    """Features of pairs of a premise and a statement."""

    named: FloatArray
    """Shape [pairs, features]; see :data:`NAMES`."""
    vectors: FloatArray
    """Shape [pairs, 4 width]: u, v, |u - v| and u * v of the vectors of premise and statement."""


def pair_features(pairs: Sequence[tuple[str, str]], encoder: Encoder) -> PairFeatures:
    """Features of pairs of (premise, statement); every different text is encoded once."""
    sentences = {premise: split_sentences(premise) or [premise] for premise, _ in pairs}
    texts = dict.fromkeys(text for premise, said in pairs for text in (premise, *sentences[premise], said))
    places = {text: place for place, text in enumerate(texts)}
    vectors = encoder.encode(list(texts)).astype(np.float64) if texts else np.zeros((0, encoder.width))
    rows = np.zeros((len(pairs), len(NAMES)))
    for number, (premise, said) in enumerate(pairs):
        own = vectors[places[said]]
        each = vectors[[places[sentence] for sentence in sentences[premise]]] @ own
        nearest = sentences[premise][int(each.argmax())]
        rows[number] = _features(premise, nearest, said, float(vectors[places[premise]] @ own), float(each.max()))
    first = vectors[[places[premise] for premise, _ in pairs]]
    second = vectors[[places[said] for _, said in pairs]]
    return PairFeatures(rows, np.concatenate([first, second, np.abs(first - second), first * second], axis=1))


def _features(premise: str, nearest: str, said: str, cosine: float, near: float) -> tuple[float, ...]:
    words, given = content_words(said), content_words(premise)
    shared = len(words & given)
    covered, covering = shared / max(1, len(words)), shared / max(1, len(given))
    negated, denied = resolved(nearest).negated, resolved(said).negated
    one, both = float(negated != denied), float(negated and denied)
    # Words of direction in the statement: whether the premise has an opposite instead, and whether it has the same.
    premised = resolved(premise).words
    directed = {word for word in resolved(said).words if word in OPPOSITES}
    opposite = float(any(OPPOSITES[word] in premised and word not in premised for word in directed))
    same = float(bool(directed & premised))
    numbers, known = (set(_NUMBER.findall(text)) for text in (said, premise))
    new, alike = float(bool(numbers - known)), float(bool(numbers & known))
    longer = np.log((1 + len(words)) / (1 + len(given)))
    top = max(cosine, near)
    return (
        cosine, top, covered, covering, float(words == given),
        one, both, one * top, opposite, opposite * top,
        same, new, alike, new * top, float(longer),
    )  # fmt: skip


def content_words(text: str) -> frozenset[str]:
    """Stems of the words that carry meaning."""
    return frozenset(
        _ENDINGS.sub("", word) if len(word) > 4 else word
        for word in _WORD.findall(text.lower())
        if word not in _FUNCTION_WORDS
    )


class Resolved(NamedTuple):
    """The words of a text, those of direction turned round where a negation stands shortly before them."""

    words: frozenset[str]
    negated: bool
    """An odd number of other negations."""


def resolved(text: str) -> Resolved:
    """What "did not decrease" says in words without a negation: increase."""
    tokens = _TOKEN.findall(text.lower())
    negations = [place for place, token in enumerate(tokens) if token in _NEGATIONS]
    left, words = set(negations), set()
    for place, token in enumerate(tokens):
        before = [at for at in negations if at in left and place - _REACH <= at < place]
        if token in OPPOSITES and before:
            left.discard(before[-1])
            token = OPPOSITES[token]
        words.add(token)
    return Resolved(frozenset(words), len(left) % 2 == 1)
