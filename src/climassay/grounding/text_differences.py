"""Single words by which a sentence says something else than a sentence that it nearly repeats.

Encoders lay "the Arctic warms" and "the Antarctic warms", "rises" and "falls" close together. Told apart are words of
opposite direction (:data:`~climassay.metrics.entailment_features.OPPOSITES`), regions, seasons and layers of which one
excludes the other, and names that the source does not have. A source may name both sides ("the troposphere warms and
the stratosphere cools"): what decides is which of them stands among the words that stand around it in the sentence.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from climassay.metrics.entailment_features import OPPOSITES, content_words

RIVALS: tuple[frozenset[str], ...] = tuple(
    frozenset(group.split())
    for group in (
        "arctic antarctic", "atlantic pacific indian", "greenland antarctica", "northern southern", "north south",
        "north-eastern south-eastern north-western south-western", "eastern western", "east west",
        "troposphere stratosphere", "tropospheric stratospheric", "tropics midlatitudes poles", "tropical polar",
        "land ocean", "lands oceans", "continents oceans", "night day", "nights days", "winter summer spring autumn",
        "winters summers", "hemisphere hemispheres", "equator pole", "poleward equatorward", "polewards equatorwards",
        "shortwave longwave", "upstream downstream", "solubility biological", "glacial interglacial", "latent sensible",
        "daytime nighttime", "boreal austral", "coastal inland", "warmest coldest", "wettest driest",
    )
)  # fmt: skip
"""Regions, seasons and layers: a sentence that names one of a group does not speak about another."""
_ALTERNATIVES: dict[str, frozenset[str]] = {}
for _group in RIVALS:
    for _word in _group:
        _ALTERNATIVES[_word] = _ALTERNATIVES.get(_word, frozenset()) | (_group - {_word})
for _word, _other in OPPOSITES.items():
    _ALTERNATIVES[_word] = _ALTERNATIVES.get(_word, frozenset()) | {_other}
_REACH = 6
"""Words to either side that say what a word is about."""
_TOKEN = re.compile(r"n['’]t\b|[^\W\d_]+(?:-[^\W\d_]+)*")
_NEGATIONS = frozenset(["no", "not", "never", "none", "nor", "neither", "without", "cannot", "hardly", "n't", "n’t"])
_NAME = re.compile(r"(?<![.!?:]\s)(?<!^)(?<=[\s(])(?:[A-Z][a-z]{2,}|[A-Z]{2,}[a-z]?)(?:-[A-Z]?[a-z]+)?\b")
_NO_NAMES = frozenset(
    (
        "the", "this", "that", "these", "those", "january", "february", "march", "april", "may", "june", "july",
        "august", "september", "october", "november", "december", "chapter", "section", "figure", "table", "earth",
        "sun", "celsius", "kelvin", "report", "according", "however",
    )
)  # fmt: skip


class Difference(NamedTuple):
    """What a sentence says, and what its source says in that place."""

    said: str
    source: str


def opposed_words(sentence: str, source: str) -> tuple[Difference, ...]:
    """Words of a sentence in whose place the source has one that excludes them.

    Args:
        sentence: What was written.
        source: One or a few sentences about the same.
    """
    own, other = _tokens(sentence), _tokens(source)
    if not own or not other:
        return ()
    found = []
    for place, word in enumerate(own):
        alternatives = _ALTERNATIVES.get(word)
        if not alternatives:
            continue
        turned = _turned(own, place)
        around = _around(own, place)

        def nearest(words: frozenset[str], *, negated: bool, around: frozenset[str] = around) -> tuple[int, str]:
            """The most words in common around one of the words, and that word; (0, "") where there is none."""
            places = [at for at, token in enumerate(other) if token in words and _turned(other, at) == negated]
            return max(((len(around & _around(other, at)) + 1, other[at]) for at in places), default=(0, ""))

        opposite = frozenset({OPPOSITES[word]} if word in OPPOSITES else ())
        same = max(nearest(frozenset({word}), negated=turned), nearest(opposite, negated=not turned))
        against = max(nearest(alternatives, negated=turned), nearest(frozenset({word}), negated=not turned))
        if against[0] > max(1, same[0]):
            source = against[1] if against[1] != word else ("" if turned else "not ") + word
            found.append(Difference(f"not {word}" if turned else word, source))
    return tuple(dict.fromkeys(found))


def foreign_names(sentence: str, sources: Sequence[str]) -> tuple[str, ...]:
    """Names inside a sentence that none of the sources has: places, people, models, acronyms."""
    known = " ".join(sources).casefold()
    names = dict.fromkeys(match[0] for match in _NAME.finditer(sentence))
    return tuple(
        name
        for name in names
        if name.casefold() not in _NO_NAMES and name.casefold().rstrip("s")[: max(4, len(name) - 3)] not in known
    )


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text.lower())


def _turned(tokens: Sequence[str], place: int) -> bool:
    """Whether a negation stands right before a word: "did not increase", "no decrease"."""
    return any(token in _NEGATIONS for token in tokens[max(0, place - 3) : place])


def _around(tokens: Sequence[str], place: int) -> frozenset[str]:
    near = [*tokens[max(0, place - _REACH) : place], *tokens[place + 1 : place + 1 + _REACH]]
    return content_words(" ".join(near))
