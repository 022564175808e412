"""Words and figures by which a sentence says something else than a sentence that it nearly repeats.

Encoders lay "the Arctic warms" and "the Antarctic warms", "rises" and "falls" close together. Told apart are words of
opposite direction (:data:`~climassay.metrics.entailment_features.OPPOSITES`), regions, seasons and layers of which one
excludes the other, and names that the source does not have. A source may name both sides ("the troposphere warms and
the stratosphere cools"): what decides is which of them stands among the words that stand around it in the sentence.

A figure is compared with those of its kind of unit that the sources have, of the same measured thing: the one whose
sentence is near to the whole, and that has the same words close by. A figure of that kind elsewhere bears nothing.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from climassay.grounding.quantities import Quantity, backs, split_at_quantities
from climassay.metrics.entailment_features import OPPOSITES, content_words


def _groups(*lines: str) -> tuple[tuple[frozenset[str], ...], ...]:
    return tuple(tuple(frozenset(side.split()) for side in line.split("|")) for line in lines)


RIVALS = _groups(
    "increase increases increased increasing rise rises rose risen rising grow grows grew grown growing climb climbs"
    " climbed climbing gain gains strengthen strengthens strengthened strengthening accelerate accelerates accelerated"
    " speed speeds sped intensify intensifies intensified expand expands expanded widen widens widened ascend ascends"
    "|decrease decreases decreased decreasing fall falls fell fallen falling drop drops dropped shrink shrinks shrank"
    " shrunk decline declines declined reduce reduces reduced weaken weakens weakened weakening slow slows slowed"
    " contract contracts contracted narrow narrows narrowed sinks sinking descend descends diminish diminishes",
    "warm warms warmed warming|cool cools cooled cooling", "warmer warmest|cooler colder coldest",
    "fresher freshens freshened|saltier salinifies", "wetter moistens|drier dries dried", "brighter|darker",
    "polewards poleward|equatorwards equatorward", "earlier|later", "always|never",
)  # fmt: skip
"""Words of direction and their contraries, a negation turns them round; on one side they say nearly the same."""
THINGS = _groups(
    "source sources|sink sinks", "shortwave|longwave", "winter winters|summer summers|spring|autumn",
    "night nights|day days",
)  # fmt: skip
"""Things of which one excludes the others, and which no negation turns round."""
PLACES = _groups(
    "arctic", "antarctic antarctica", "greenland", "southern", "northern", "eastern east", "western west", "atlantic",
    "pacific", "indian", "tropics tropical equator equatorial", "subtropics subtropical", "polar pole poles",
    "midlatitude midlatitudes", "rainforest rainforests", "desert deserts", "savanna savannas", "tundra", "boreal",
    "temperate", "land continent continents", "ocean oceans oceanic sea seas marine",
    "coast coasts coastal",
    "city cities urban", "rural", "mountain mountains", "troposphere tropospheric", "stratosphere stratospheric",
    "vegetation", "soil soils", "hemisphere",
)  # fmt: skip
"""Words for places without a capital, those of one place together; names are recognised by their capitals."""
_SAME: dict[str, frozenset[str]] = {}
_ALTERNATIVES: dict[str, frozenset[str]] = {}
for _word, _other in OPPOSITES.items():
    _ALTERNATIVES[_word] = frozenset({_other})
for _sides in (*RIVALS, *THINGS):
    for _side in _sides:
        for _word in _side:
            _SAME[_word] = _SAME.get(_word, frozenset()) | _side
            _ALTERNATIVES[_word] = (_ALTERNATIVES.get(_word, frozenset()) | frozenset().union(*_sides)) - _side
_NEVER_TURNED = frozenset(word for sides in THINGS for side in sides for word in side)
_PLACE = {word: place for place, (words,) in enumerate(PLACES) for word in words}
_REACH = 6
"""Words to either side that say what a word is about."""
_NEAR = 3
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
_SAME_THING = 2.0
"""Weight of the words close to a figure beside the nearness of its whole sentence."""
_CLEARLY_NEARER = 0.4
"""How much nearer another figure must be than one that bears it; from the seen half of docs/results/check_text.md."""
_ROUNDING = 0.01
_HALF = 3.0
"""Words away at which a word counts for half."""
_APART = 6
"""Words for which a sign, a conjunction or a figure between counts."""
_WORD_OR_SIGN = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*|[,;:()]")
_SEPARATORS = frozenset([*",;:()", "and", "but", "while", "whereas", "or", "against", "versus"])
_FIRST_YEAR, _LAST_YEAR = 1500, 2300


class Difference(NamedTuple):
    """What a sentence says, and what its source says in that place."""

    said: str
    source: str


class DifferingFigure(NamedTuple):
    """A figure that no source bears, or that another figure of the same thing speaks against."""

    said: str
    source: str
    """The nearest figure of its kind; empty where the sources have none."""
    place: int | None
    """Place of that figure's sentence among the sources."""


def differing_figures(sentence: str, sources: Sequence[tuple[str, float]]) -> tuple[DifferingFigure, ...]:
    """Figures of a sentence that the sources do not have, or have otherwise for the same thing.

    Args:
        sentence: What was written.
        sources: Sentences, each with its nearness to the whole of what was written: cosine plus the share of words.
    """
    own = _figures(sentence)
    known = [
        (place, nearness, figure, around)
        for place, (text, nearness) in enumerate(sources)
        for figure, around in _figures(text)
    ]
    found = []
    for number, (figure, around) in enumerate(own):
        bearing, others = [], []
        for place, nearness, other, there in known:
            alike = _alike(around, there)
            score = nearness + _SAME_THING * alike
            if backs(other, figure):
                bearing.append(score)
            elif alike and _same_kind(figure, other) and not any(
                # It belongs to another figure of the sentence, such as the other end of a range.
                backs(other, one) and _alike(words, there) >= alike
                for at, (one, words) in enumerate(own)
                if at != number
            ):  # fmt: skip
                others.append((score, place, other))
        nearest = max(others, key=lambda one: one[0], default=None)
        if bearing and (
            nearest is None or nearest[0] <= max(bearing) + _CLEARLY_NEARER or _rounded(figure, nearest[2])
        ):
            continue
        said = figure.bounded or figure.text
        if nearest is None:
            found.append(DifferingFigure(said, "", None))
        else:
            found.append(DifferingFigure(said, nearest[2].bounded or nearest[2].text, nearest[1]))
    return tuple(dict.fromkeys(found))


def _figures(text: str) -> list[tuple[Quantity, Mapping[str, float]]]:
    """The figures of a text, each with the words around it and their weights, 1 beside it."""
    pieces, figures = split_at_quantities(text)
    words = [_WORD_OR_SIGN.findall(piece.lower()) for piece in pieces]
    found: list[tuple[Quantity, Mapping[str, float]]] = []
    for number, figure in enumerate(figures):
        weights: dict[str, float] = {}
        before = [piece[::-1] for piece in reversed(words[: number + 1])]
        for side in (before, words[number + 1 :]):
            away = 0
            for beside, piece in enumerate(side):
                away += _APART * (beside > 0)
                for word in piece:
                    if word in _SEPARATORS:
                        away += _APART
                        continue
                    away += 1
                    for stem in content_words(word):
                        weights[stem] = max(weights.get(stem, 0.0), 1 / (1 + away / _HALF))
        found.append((figure, weights))
    return found


def _alike(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """How far the words around a figure stand around another one, 0 to 1."""
    shared = sum(weight * other[word] for word, weight in one.items() if word in other)
    return shared / max(sum(one.values()), 1e-9)


def _same_kind(one: Quantity, other: Quantity) -> bool:
    """Whether two figures may be two values of one thing: of one kind of unit, both years, or both bare numbers."""
    if one.unit is None or other.unit is None:
        return one.unit is other.unit and _is_year(one) == _is_year(other)
    return other.unit.is_kind_of(one.unit) and one.unit.rate == other.unit.rate


def _rounded(one: Quantity, other: Quantity) -> bool:
    """Whether two figures with units are so close that they may be one, rounded: 340 and 342."""
    first, second = (figure.value * figure.unit.factor if figure.unit else 0.0 for figure in (one, other))
    return one.unit is not None and abs(first - second) <= _ROUNDING * abs(second)


def _is_year(figure: Quantity) -> bool:
    return figure.whole and _FIRST_YEAR <= figure.value <= _LAST_YEAR


def opposed_words(sentence: str, source: str) -> tuple[Difference, ...]:
    """Words of a sentence in whose place the source has one that excludes them.

    Args:
        sentence: What was written.
        source: One or a few sentences about the same.
    """
    own, other = _tokens(sentence), _tokens(source)
    found = []
    for place, word in enumerate(own):
        alternatives = _ALTERNATIVES.get(word)
        if not alternatives:
            continue
        turned = _turned(own, place)
        alike = _SAME.get(word, frozenset()) | {word}
        # Where both sides are named, only words close by tell which is which.
        reach = _NEAR if alternatives & set(own) and alike & set(other) else _REACH
        around = _around(own, place, reach)

        def nearest(
            words: frozenset[str], *, negated: bool, around: frozenset[str] = around, reach: int = reach
        ) -> tuple[int, str]:
            """The most words in common around one of the words, and that word; (0, "") where there is none."""
            places = [at for at, token in enumerate(other) if token in words and _turned(other, at) == negated]
            return max(((len(around & _around(other, at, reach)) + 1, other[at]) for at in places), default=(0, ""))

        same = max(nearest(alike, negated=turned), nearest(alternatives, negated=not turned))
        against = max(nearest(alternatives, negated=turned), nearest(alike, negated=not turned))
        if against[0] > max(1 if reach == _REACH else 2, same[0]):
            source_word = against[1] if against[1] not in alike else f"{'' if turned else 'not '}{against[1]}"
            found.append(Difference(f"not {word}" if turned else word, source_word))
    return tuple(dict.fromkeys(found))


def other_places(sentence: str, source: str) -> tuple[Difference, ...]:
    """Places that a sentence names in whose stead the source, which does not name them, has others."""
    own, other = _tokens(sentence), _tokens(source)
    here, there = ({_PLACE[word]: word for word in words if word in _PLACE} for words in (own, other))
    missing = ", ".join(word for place, word in there.items() if place not in here)
    return tuple(Difference(word, missing) for place, word in here.items() if missing and place not in there)


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
    return tokens[place] not in _NEVER_TURNED and any(
        token in _NEGATIONS for token in tokens[max(0, place - 3) : place]
    )


def _around(tokens: Sequence[str], place: int, reach: int) -> frozenset[str]:
    near = [*tokens[max(0, place - reach) : place], *tokens[place + 1 : place + 1 + reach]]
    return content_words(" ".join(near))
