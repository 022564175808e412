"""Where a sentence differs from its source: figures, words of direction, negations, places and names.

Encoders lay "the Arctic warms" and "the Antarctic warms", "rises" and "falls" close together. Told apart are figures of
the same thing, words that exclude each other, negations, regions, and names that the source does not have.

A figure is compared with those of its kind of unit that the sources have, of the same measured thing: the one whose
sentence is near to the whole, and that has the same words and years close by. A figure of that kind elsewhere bears
nothing. A change by a figure has a direction ("fell by 5%", "5% less"), which belongs to it. A source may name both
sides ("the troposphere warms and the stratosphere cools"): what decides is which of them has the same words around it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from climassay.grounding.numerals import language_of_figures
from climassay.grounding.quantities import Quantity, backs, split_at_quantities
from climassay.metrics.pair_features import OPPOSITES, content_words


def _groups(*lines: str) -> tuple[tuple[frozenset[str], ...], ...]:
    return tuple(tuple(frozenset(side.split()) for side in line.split("|")) for line in lines)


_UP = (
    "increase increases increased increasing rise rises rose risen rising grow grows grew grown growing climb climbs"
    " climbed climbing gain gains gained gaining strengthen strengthens strengthened strengthening accelerate"
    " accelerates accelerated speed speeds sped intensify intensifies intensified expand expands expanded widen widens"
    " widened ascend ascends raise raises raised raising"
    " steigt steigen stieg stiegen gestiegen anstieg wächst wuchs wuchsen gewachsen zunahme zunahmen zugenommen erhöhte"
    " augmente augmentent augmenté augmentation hausse élevé progressé"
    " aumenta aumentan aumentó aumentaron aumentado aumento sube suben subió subieron subido creció crecieron crecido"
    " subida incremento"
    " aumentou aumentaram subiu subiram cresceu cresceram"
)
_DOWN = (
    "decrease decreases decreased decreasing fall falls fell fallen falling drop drops dropped shrink shrinks shrank"
    " shrunk shrinking decline declines declined declining reduce reduces reduced weaken weakens weakened weakening"
    " slow slows slowed contract contracts contracted narrow narrows narrowed sinks sinking descend descends diminish"
    " diminishes lose loses lost losing lowered lowering"
    " sinkt sinken sank sanken gesunken fällt fallen fiel fielen gefallen rückgang abnahme abgenommen verringerte"
    " baisse baissent baissé diminue diminuent diminué diminution chuté"
    " baja bajan bajó bajaron bajado disminuye disminuyó disminuyeron disminuido cae cayó cayeron caído descendió"
    " descenso disminución reducción caída bajada redujo"
    " diminuiu diminuíram caiu caíram baixou baixaram reduziu"
)
RIVALS = _groups(
    f"{_UP}|{_DOWN} lower", "warm warms warmed warming|cool cools cooled cooling",
    "warmer warmest hotter|cooler colder coldest", "fresher freshens freshened|saltier salinifies",
    "wetter moistens|drier dries dried", "brighter|darker", "polewards poleward|equatorwards equatorward",
    "earlier|later", "always|never", "more mehr|less fewer weniger", "strong stronger intense|weak weaker",
    "all most every many majority|few none hardly minority",
    "approve approves approved adopt adopts adopted accept accepts accepted endorse endorsed|reject rejects rejected"
    " refuse refuses refused veto vetoed",
    "angenommen beschlossen verabschiedet gebilligt|abgelehnt verworfen", "adopté approuvé voté|rejeté refusé",
    "aprobó aprobado aprobaron aprovou|rechazó rechazado rechazaron rejeitou",
    "raise raises raising|lower lowers cut cuts",
    "advance advances advanced advancing|retreat retreats retreated retreating recede recedes receded receding",
    "overestimate overestimates overestimated exaggerate exaggerates|underestimate underestimates underestimated",
    "amplify amplifies amplified reinforce reinforces|dampen dampens dampened damp damps",
    "phase-in|phase-out",
    "allow allows allowed permit permits permitted|ban bans banned forbid forbids prohibit prohibits",
    "support supports supported|oppose opposes opposed",
    "join joins joined|leave leaves left withdraw withdraws withdrew",
)  # fmt: skip
"""Words and their contraries, which a negation turns round; on one side they say nearly the same."""
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
_PLACE = {word: index for index, (words,) in enumerate(PLACES) for word in words}
_DIRECTIONS = dict.fromkeys(_UP.split(), 1) | dict.fromkeys(_DOWN.split(), -1)
_BEHIND = {
    word: sign
    for words, sign in (
        ("more higher larger greater increase rise growth mehr höher hausse más mais superior", 1),
        ("less fewer lower smaller decrease decline reduction fall drop loss weniger niedriger menos inferior", -1),
    )
    for word in words.split()
}
"""Words behind a figure that give it a direction: "5% less"."""
_DIRECTION_REACH = 5
_REACH = 6
"""Words to either side that say what a word is about."""
_NEAR = 3
_TOKEN = re.compile(r"n['’]t\b|[^\W\d_]+?(?=n['’]t\b)|[^\W\d_]+(?:-[^\W\d_]+)*")
_PHASE = re.compile(r"\b(phas)(?:e|es|ed|ing)[\s-](in|out)\b", re.IGNORECASE)
((_NEGATIONS,),) = _groups(
    "no not never none nor neither without cannot hardly n't n’t nicht kein keine keinen keiner nie ne jamais nunca sin"
    " não sem"
)
_NAME = re.compile(r"(?<![.!?:]\s)(?<!^)(?<=[\s(])(?:[A-Z][a-z]{2,}|[A-Z]{2,}[a-z]?)(?:-[A-Z]?[a-z]+)?\b")
_CAPITAL = re.compile(r"\b[A-ZÄÖÜÉ][^\W\d_]{2,}\b")
_NO_NAMES = frozenset(
    (
        "the", "this", "that", "these", "those", "january", "february", "march", "april", "may", "june", "july",
        "august", "september", "october", "november", "december", "chapter", "section", "figure", "table", "earth",
        "sun", "celsius", "kelvin", "report", "according", "however",
    )
)  # fmt: skip
_SAME_THING = 2.0
"""Weight of the words close to a figure beside the nearness of its whole sentence."""
_CLEARLY_NEARER = 0.3
"""How much nearer another figure must be than one that bears it; from the seen half of docs/results/check_text.md."""
_SAME_STATEMENT = 1.15
"""Minimum nearness of a sentence whose figures can speak against those of another; chosen on the seen half of the pairs
and every other claim of Climate-FEVER in docs/results/check_text.md."""
_MIN_ALIKE = 0.2
"""Minimum share of the words around a figure in words that stand around one that speaks against it."""
_ROUNDING = 0.01
_HALF = 3.0
"""Words away at which a word counts for half."""
_APART = 6
"""Words for which a sign, a conjunction or a figure between counts."""
_WORD_OR_SIGN = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*|[,;:()]")
_SEPARATORS = frozenset([*",;:()", "and", "but", "while", "whereas", "or", "against", "versus", "und", "et", "y"])
_FIRST_YEAR, _LAST_YEAR = 1500, 2300


class Difference(NamedTuple):
    """Words of a sentence and those that its source has instead."""

    text: str
    source: str
    """Empty if the source has nothing of the kind."""


class Source(NamedTuple):
    """A sentence of a source."""

    text: str
    nearness: float
    """To the sentence that is compared with it: cosine plus the share of its words."""
    context: str = ""
    """The passage that it is from."""


class DifferingFigure(NamedTuple):
    """A figure that no source has for the same thing, or that another figure of the same thing speaks against."""

    text: str
    source: str
    """The nearest figure of its kind; empty if no source that says nearly the same has one."""
    source_index: int | None
    """Index of the sentence that has this figure among the sources."""


class _Figure(NamedTuple):
    """A figure of a text with what stands around it."""

    quantity: Quantity
    around: Mapping[str, float]
    """Words and years near it with their weights, 1 beside it."""
    direction: int
    """1 or -1 for a change upwards or downwards, 0 for none."""
    wording: str
    """As written, with its word of direction."""


def differing_figures(sentence: str, sources: Sequence[Source], context: str = "") -> tuple[DifferingFigure, ...]:
    """Return the figures of a sentence that the sources do not have, or have otherwise for the same thing.

    A year that a source has, and a share, multiple, month or rank of which the sources have none, never differ.

    Args:
        sentence: The sentence that is compared.
        sources: Sentences that may bear it.
        context: The text that the sentence is from.
    """
    own = _figures(sentence, context)
    # Where one sentence says all of it, other years nearby are of something else.
    whole = len(own) > 1 and any(_has_in_order(source, [figure.quantity for figure in own]) for source in sources)
    known = [(index, source, other) for index, source in enumerate(sources)
             for other in _figures(source.text, source.context)]  # fmt: skip

    def is_near(index: int) -> bool:
        return sources[index].nearness >= _SAME_STATEMENT

    results = []
    for number, figure in enumerate(own):
        quantity = figure.quantity
        if whole and quantity.unit is None:
            continue
        bearing, others = [], []
        for index, source, other in known:
            alike = _alike(figure.around, other.around)
            score = source.nearness + _SAME_THING * alike
            if backs(other.quantity, quantity):
                bearing.append((score, index, other))
            elif alike > _MIN_ALIKE * quantity.worded and _same_kind(quantity, other.quantity) and not any(
                # It belongs to another figure of the sentence, such as the other end of a range.
                backs(other.quantity, neighbour.quantity) and _alike(neighbour.around, other.around) >= alike
                for position, neighbour in enumerate(own)
                if position != number
            ):  # fmt: skip
                others.append((score, index, other))
        nearest = max(others, key=lambda candidate: candidate[0], default=None)
        best = max(bearing, key=lambda candidate: candidate[0], default=None)
        if best is not None and is_near(best[1]) and figure.direction * best[2].direction < 0:
            results.append(DifferingFigure(figure.wording, best[2].wording, best[1]))
            continue
        if best is not None and (
            _is_year(quantity)
            or nearest is None
            or nearest[0] <= best[0] + _CLEARLY_NEARER
            or _rounded(quantity, nearest[2].quantity)
        ):
            continue
        if nearest is not None and is_near(nearest[1]):
            results.append(DifferingFigure(_as_written(quantity), _as_written(nearest[2].quantity), nearest[1]))
        elif not quantity.worded:
            results.append(DifferingFigure(_as_written(quantity), "", None))
    return tuple(dict.fromkeys(results))


def _as_written(quantity: Quantity) -> str:
    return quantity.bounded or quantity.text


def _has_in_order(source: Source, figures: Sequence[Quantity]) -> bool:
    """Whether a text has all of these figures, one after the other."""
    known = iter(split_at_quantities(source.text, source.context)[1])
    return all(any(backs(other, figure) for other in known) for figure in figures)


def _figures(text: str, context: str) -> list[_Figure]:
    pieces, figures = split_at_quantities(text, context)
    words = [_WORD_OR_SIGN.findall(piece.lower()) for piece in pieces]
    results = []
    for number, quantity in enumerate(figures):
        weights: dict[str, float] = {}
        before = [piece[::-1] for piece in reversed(words[: number + 1])]
        if before[0][:1] in (["("], ["["]):
            before[0] = before[0][1:]  # the figure of what stands before the bracket: "methane (15%)"
        years = [f"{figure.value:.0f}" if _is_year(figure) else "" for figure in figures]
        for side, beyond in ((before, years[:number][::-1]), (words[number + 1 :], years[number + 1 :])):
            away = 0
            for index, piece in enumerate(side):
                if index > 0:
                    away += _APART
                    if year := beyond[index - 1]:
                        weights[year] = max(weights.get(year, 0.0), 1 / (1 + away / _HALF))
                for word in piece:
                    if word in _SEPARATORS:
                        away += _APART
                        continue
                    away += 1
                    for stem in content_words(word):
                        weights[stem] = max(weights.get(stem, 0.0), 1 / (1 + away / _HALF))
        word, direction = ("", 0) if _is_year(quantity) else _direction(before, words[number + 1])
        if not direction and quantity.value < 0:
            direction = -1
        results.append(_Figure(quantity, weights, direction, f"{word} {_as_written(quantity)}".strip()))
    return results


def _direction(before: Sequence[Sequence[str]], behind: Sequence[str]) -> tuple[str, int]:
    """The word that gives a change its direction, and 1 or -1; ("", 0) without one.

    Args:
        before: The pieces between figures before it, nearest first, each from its end to its beginning.
        behind: The words up to the next figure.
    """
    for word in behind[:2]:
        if word in _BEHIND:
            return word, _BEHIND[word]
    words = [word for piece in before for word in piece][: _DIRECTION_REACH + 1]
    for index, word in enumerate(words[:_DIRECTION_REACH]):
        if word in _SEPARATORS or word in ("from", "to", "at", "von", "auf", "de", "à", "hasta", "a"):
            break
        if word in _DIRECTIONS:
            return ("", 0) if _NEGATIONS & set(words[index + 1 : index + 3]) else (word, _DIRECTIONS[word])
    return "", 0


def _alike(first: Mapping[str, float], second: Mapping[str, float]) -> float:
    """Return how far the words around a figure stand around another one, 0 to 1."""
    shared = sum(weight * second[word] for word, weight in first.items() if word in second)
    return shared / max(sum(first.values()), 1e-9)


def _is_year(quantity: Quantity) -> bool:
    return quantity.unit is None and quantity.whole and _FIRST_YEAR <= quantity.value <= _LAST_YEAR


def _same_kind(first: Quantity, second: Quantity) -> bool:
    """Whether two figures may be two values of one thing: of one kind of unit, both years, or both bare numbers."""
    if first.unit is None or second.unit is None:
        return first.unit is second.unit and _is_year(first) == _is_year(second)
    rates = {first.unit.rate, second.unit.rate}
    same_rate = len(rates) == 1 or (rates == {"", "yr"} and first.yearly and second.yearly)
    return second.unit.is_kind_of(first.unit) and same_rate


def _rounded(figure: Quantity, other: Quantity) -> bool:
    """Whether two figures with units are so close that they may be one, rounded: 340 and 342."""
    if figure.unit is None or figure.worded:
        return False
    first, second = (each.value * each.unit.factor if each.unit else 0.0 for each in (figure, other))
    return abs(first - second) <= _ROUNDING * abs(second)


def opposed_words(sentence: str, source: str) -> tuple[Difference, ...]:
    """Return the words of a sentence in whose place the source has one that excludes them, or that it negates.

    Args:
        sentence: The sentence that is compared.
        source: One or a few sentences about the same.
    """
    own, other = _tokens(sentence), _tokens(source)
    results = []
    for index, word in enumerate(own):
        alternatives = _ALTERNATIVES.get(word)
        if not alternatives:
            continue
        turned = _turned(own, index)
        alike = _SAME.get(word, frozenset()) | {word}
        # Where both sides are named, only words close by tell which is which.
        reach = _NEAR if alternatives & set(own) and alike & set(other) else _REACH
        around = _around(own, index, reach)

        def nearest(
            words: frozenset[str], *, negated: bool, around: frozenset[str] = around, reach: int = reach
        ) -> tuple[int, str]:
            """Return the most words in common around one of the words, and that word; (0, "") without one."""
            found = [at for at, token in enumerate(other) if token in words and _turned(other, at) == negated]
            return max(((len(around & _around(other, at, reach)) + 1, other[at]) for at in found), default=(0, ""))

        same = max(nearest(alike, negated=turned), nearest(alternatives, negated=not turned))
        against = max(nearest(alternatives, negated=turned), nearest(alike, negated=not turned))
        if against[0] > max(1 if reach == _REACH else 2, same[0]):
            source_word = against[1] if against[1] not in alike else f"{'' if turned else 'not '}{against[1]}"
            results.append(Difference(f"not {word}" if turned else word, source_word))
    return tuple(dict.fromkeys((*results, *_negated_words(own, other))))


class _Negations(NamedTuple):
    """The words of content of a text by their stems, without those of :data:`RIVALS` and their like."""

    denied: dict[str, str]
    """The first behind each negation."""
    affirmed: dict[str, str]
    """Those that stand outside the reach of any negation."""
    reached: frozenset[str]
    """Stems of all that a negation may reach."""


def _negated_words(own: Sequence[str], other: Sequence[str]) -> Iterator[Difference]:
    """Yield the words without a contrary that one of two texts negates and the other has without a negation."""
    here, there = _negations(own), _negations(other)
    if here.reached & there.reached or len(content_words(" ".join(own)) & content_words(" ".join(other))) < 2:
        return
    for stem, word in here.denied.items():
        if stem in there.affirmed and stem not in here.affirmed:
            yield Difference(f"not {word}", there.affirmed[stem])
    for stem, word in there.denied.items():
        if stem in here.affirmed and stem not in there.affirmed:
            yield Difference(here.affirmed[stem], f"not {word}")


def _negations(tokens: Sequence[str]) -> _Negations:
    """Find what a text denies and what it affirms.

    A negation denies the next word of content, and may reach the two words behind it ("without causing runaway").
    What a contrast leaves out ("and not at the equator") is neither denied nor affirmed.
    """
    denied: dict[str, str] = {}
    affirmed: dict[str, str] = {}
    reached: set[str] = set()
    reach, denies = 0, False
    for index, token in enumerate(tokens):
        reach -= 1
        stems = content_words(token)
        if token in _NEGATIONS:
            reach, denies = _NEAR + 1, tokens[index - 1 : index] not in (["and"], ["but"])
        elif token == "only":
            reach = 0
        elif stems:
            if reach > 0:
                reached |= stems
            if token not in _ALTERNATIVES and reach <= 0:
                affirmed.update(dict.fromkeys(stems, token))
            elif token not in _ALTERNATIVES and denies:
                denied.update(dict.fromkeys(stems, token))
            denies = False
    return _Negations(denied, affirmed, frozenset(reached))


def other_places(sentence: str, source: str) -> tuple[Difference, ...]:
    """Return the places that a sentence names in whose stead the source, which does not name them, has others."""
    own, other = _tokens(sentence), _tokens(source)
    here, there = ({_PLACE[word]: word for word in words if word in _PLACE} for words in (own, other))
    missing = ", ".join(word for region, word in there.items() if region not in here)
    return tuple(Difference(word, missing) for region, word in here.items() if missing and region not in there)


def foreign_names(sentence: str, sources: Sequence[str]) -> tuple[str, ...]:
    """Return the names inside a sentence that none of the sources has: places, people, models, acronyms.

    German writes all nouns with capitals, so that none is returned for German sentences.
    """
    if language_of_figures(sentence) == "de":
        return ()
    names = dict.fromkeys(match[0] for match in _NAME.finditer(sentence))
    return tuple(name for name in names if name.casefold() not in _NO_NAMES and not _is_known(name, sources))


def _is_known(name: str, sources: Sequence[str]) -> bool:
    return any(name.casefold().rstrip("s")[: max(4, len(name) - 3)] in source.casefold() for source in sources)


def swapped_names(sentence: str, source: str, texts: Sequence[str] = ()) -> tuple[Difference, ...]:
    """Return the names of a sentence, its first word included, in whose stead the source has another one.

    Both must stand before or behind the same word of content ("Spain emitted", "Germany emitted"), in German between
    the same two, because all nouns have capitals there.

    Args:
        sentence: The sentence that is compared.
        source: One or a few sentences about the same.
        texts: Longer texts; what has a small letter in one of them is no name.
    """
    common = {word for text in (sentence, source, *texts) for word in _WORD_OR_SIGN.findall(text)}
    here, there = (
        {
            name: beside
            for name, beside in _capitals(text).items()
            if not _is_known(name, [against]) and name.lower() not in common and name.casefold() not in _NO_NAMES
        }
        for text, against in ((sentence, source), (source, sentence))
    )
    german = language_of_figures(sentence) == "de"
    return tuple(
        Difference(name, other)
        for name, beside in here.items()
        for other, neighbours in there.items()
        if (beside == neighbours if german else beside & neighbours)
    )


def _capitals(text: str) -> dict[str, frozenset[tuple[int, str]]]:
    """Return the capitalised words of a text with the side and stem of the words of content beside them."""
    contents = [word for word in _WORD_OR_SIGN.findall(text) if len(word) > _NEAR and content_words(word)]
    results: dict[str, frozenset[tuple[int, str]]] = {}
    for index, word in enumerate(contents):
        if _CAPITAL.fullmatch(word):
            beside = [(side, contents[index + side]) for side in (-1, 1) if 0 <= index + side < len(contents)]
            results[word] = frozenset((side, stem) for side, other in beside for stem in content_words(other))
    return results


def _tokens(text: str) -> list[str]:
    joined = _PHASE.sub(r"\1e-\2", text.lower())
    tokens = _TOKEN.findall(joined)
    # In Portuguese, "no" is "in the".
    return [token for token in tokens if token != "no"] if language_of_figures(text) == "pt" else tokens


def _turned(tokens: Sequence[str], index: int) -> bool:
    """Whether a negation stands right before a word: "did not increase", "no decrease"."""
    return tokens[index] not in _NEVER_TURNED and any(
        token in _NEGATIONS for token in tokens[max(0, index - 3) : index]
    )


def _around(tokens: Sequence[str], index: int, reach: int) -> frozenset[str]:
    near = [*tokens[max(0, index - reach) : index], *tokens[index + 1 : index + 1 + reach]]
    return content_words(" ".join(near))
