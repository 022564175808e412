"""Differences between a sentence and its source: figures, words of direction, negations, places and names.

Vectors of "the Arctic warms" and "the Antarctic warms", or of "rises" and "falls", are similar, so rules compare
figures of the same quantity, words that exclude each other, negations, regions, and names.

A figure is compared with figures of the sources that have the same kind of unit and measure the same quantity: their
sentence is similar, and the words and years around them are the same. A change by a figure has a direction ("fell by
5%", "5% less"). If a source names both directions ("the troposphere warms and the stratosphere cools"), the one with
the same words around it is compared.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from climassay.grounding.numerals import language_of_figures
from climassay.grounding.quantities import Quantity, confirms, split_at_quantities
from climassay.grounding.units import TEMPERATURE_SCALES
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
    "raise raises raised raising|lower lowers lowered cut cuts cutting",
    "advance advances advanced advancing|retreat retreats retreated retreating recede recedes receded receding",
    "overestimate overestimates overestimated exaggerate exaggerates|underestimate underestimates underestimated",
    "amplify amplifies amplified reinforce reinforces|dampen dampens dampened damp damps",
    "phase-in|phase-out",
    "allow allows allowed permit permits permitted|ban bans banned forbid forbids prohibit prohibits",
    "support supports supported|oppose opposes opposed",
    "join joins joined|leave leaves left withdraw withdraws withdrew",
)  # fmt: skip
"""Groups of near-synonyms (rise, grow) and words with the opposite meaning (fall), which a negation reverses."""
THINGS = _groups(
    "source sources|sink sinks", "shortwave|longwave", "winter winters|summer summers|spring|autumn",
    "night nights|day days",
)  # fmt: skip
"""Groups of mutually exclusive terms, such as summer and winter, which no negation reverses."""
PLACES = _groups(
    "arctic", "antarctic antarctica", "greenland", "southern", "northern", "eastern east", "western west", "atlantic",
    "pacific", "indian", "tropics tropical equator equatorial", "subtropics subtropical", "polar pole poles",
    "midlatitude midlatitudes", "rainforest rainforests", "desert deserts", "savanna savannas", "tundra", "boreal",
    "temperate", "land continent continents", "ocean oceans oceanic sea seas marine",
    "coast coasts coastal",
    "city cities urban", "rural", "mountain mountains", "troposphere tropospheric", "stratosphere stratospheric",
    "vegetation", "soil soils", "hemisphere",
)  # fmt: skip
"""Groups of lower-case words for the same place; names of places are recognised by their capitals."""
_SYNONYMS: dict[str, frozenset[str]] = {}
_ALTERNATIVES: dict[str, frozenset[str]] = {}
for _word, _opposite in OPPOSITES.items():
    _ALTERNATIVES[_word] = frozenset({_opposite})
for _sides in (*RIVALS, *THINGS):
    for _side in _sides:
        for _word in _side:
            _SYNONYMS[_word] = _SYNONYMS.get(_word, frozenset()) | _side
            _ALTERNATIVES[_word] = (_ALTERNATIVES.get(_word, frozenset()) | frozenset().union(*_sides)) - _side
_OPPOSABLE = frozenset(_ALTERNATIVES).union(*_ALTERNATIVES.values())
_NOT_NEGATABLE = frozenset(word for sides in THINGS for side in sides for word in side)
_PLACE_BY_WORD = {word: index for index, (words,) in enumerate(PLACES) for word in words}
_DIRECTIONS = dict.fromkeys(_UP.split(), 1) | dict.fromkeys(_DOWN.split(), -1)
_DIRECTIONS_AFTER = {
    word: sign
    for words, sign in (
        ("more higher larger greater increase rise growth mehr höher hausse más mais superior", 1),
        ("less fewer lower smaller decrease decline reduction fall drop loss weniger niedriger menos inferior", -1),
    )
    for word in words.split()
}
"""Words after a figure that give it a direction: "5% less"."""
_DIRECTION_REACH = 5
_REACH = 6
"""Number of words before and after a word that form its context."""
_SCOPE = 3
_TOKEN = re.compile(r"n['’]t\b|[^\W\d_]+?(?=n['’]t\b)|[^\W\d_]+(?:-[^\W\d_]+)*")
_PHASE = re.compile(r"\b(phas)(?:e|es|ed|ing)[\s-](in|out)\b", re.IGNORECASE)
((_NEGATIONS,),) = _groups(
    "no not never none nor neither without cannot hardly n't n’t nicht kein keine keinen keiner nie ne jamais nunca sin"
    " não sem"
)
_NAME = re.compile(r"(?<![.!?:]\s)(?<!^)(?<=[\s(])(?:[A-Z][a-z]{2,}|[A-Z]{2,}[a-z]?)(?:-[A-Z]?[a-z]+)?\b")
_CAPITAL = re.compile(r"\b[A-ZÄÖÜÉ][^\W\d_]{2,}\b")
_NOT_NAMES = frozenset(
    (
        "the", "this", "that", "these", "those", "january", "february", "march", "april", "may", "june", "july",
        "august", "september", "october", "november", "december", "chapter", "section", "figure", "table", "earth",
        "sun", "celsius", "kelvin", "report", "according", "however",
    )
)  # fmt: skip
_OVERLAP_WEIGHT = 2.0
"""Weight of the overlap of the words around two figures, relative to the similarity of their sentences."""
_MIN_SCORE_GAP = 0.3
"""Minimum score difference between a differing figure and a confirming one; from docs/results/check_text.md."""
MIN_NEARNESS = 1.15
"""Minimum nearness of a source sentence that can contradict a sentence; see docs/results/check_text.md."""
_MIN_OVERLAP = 0.2
"""Minimum overlap of the words around a figure in words with those around a figure that contradicts it."""
_ROUNDING = 0.01
_HALVING_DISTANCE = 3.0
"""Distance in words at which the weight of a word is halved."""
_MAX_PIECES = 50
"""Maximum number of further figures on either side of a figure whose words are its context."""
_SEPARATOR_DISTANCE = 6
"""Distance in words that a punctuation mark, a conjunction or a figure in between adds."""
_WORD_OR_SIGN = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*|[,;:()]")
_SEPARATORS = frozenset([*",;:()", "and", "but", "while", "whereas", "or", "against", "versus", "und", "et", "y"])
_RANGE_LINKS = frozenset(["(", "to", "bis", "à", "a"])
"""Words and signs between two figures of a range, or between an estimate and its range: 20 (15 to 25) cm."""
_FIRST_YEAR, _LAST_YEAR = 1500, 2300


class Difference(NamedTuple):
    """Difference between a sentence and its source, as words of both."""

    text: str
    source: str
    """Differing words of the source; empty if it has no counterpart."""


class SourceSentence(NamedTuple):
    """Sentence of a source, with its similarity to the compared sentence."""

    text: str
    nearness: float
    """Similarity to the compared sentence: cosine plus the share of the compared sentence's words."""
    context: str = ""
    """Text of the passage that contains the sentence."""


class DifferingFigure(NamedTuple):
    """Figure of a sentence that no source confirms, or that a source contradicts."""

    text: str
    source: str
    """Contradicting figure of the source; empty if no similar source has a figure of this kind."""
    source_index: int | None
    """Index of the source with the contradicting figure; None if there is none."""


class _StatedFigure(NamedTuple):
    """A figure of a text with its context."""

    quantity: Quantity
    context_weights: Mapping[str, float]
    """Weights, up to 1, of the words and years around the figure; nearer ones have higher weights."""
    direction: int
    """Direction of the change: 1 for an increase, -1 for a decrease, 0 if there is none."""
    wording: str
    """Figure as written, with the word that gives its direction ("fell 5%")."""


def differing_figures(
    sentence: str, sources: Sequence[SourceSentence], context: str = ""
) -> tuple[DifferingFigure, ...]:
    """Return the figures of a sentence that the sources lack or contradict.

    Years that a source names never differ, nor do shares, multiples, months and ranks if the sources have none.

    Args:
        sentence: Sentence to compare.
        sources: Sentences that may support it.
        context: Text that contains the sentence.
    """
    figures = _read_figures(sentence, context)
    # If one source has all figures, other years around them belong to something else.
    is_complete = len(figures) > 1 and any(
        _has_in_order(source, [figure.quantity for figure in figures]) for source in sources
    )
    candidates = [
        (index, source, source_figure)
        for index, source in enumerate(sources)
        for source_figure in _read_figures(source.text, source.context)
    ]

    # Highest overlap of a candidate with the figures that it confirms; None if it confirms none.
    best_overlaps = [
        max(
            (
                _context_overlap(figure.context_weights, source_figure.context_weights)
                for figure in figures
                if confirms(source_figure.quantity, figure.quantity)
            ),
            default=None,
        )
        for _, _, source_figure in candidates
    ]

    def is_near(index: int) -> bool:
        return sources[index].nearness >= MIN_NEARNESS

    results = []
    for figure in figures:
        quantity = figure.quantity
        if is_complete and quantity.unit is None:
            continue
        confirming, alternatives = [], []
        for (index, source, source_figure), best_overlap in zip(candidates, best_overlaps, strict=True):
            overlap = _context_overlap(figure.context_weights, source_figure.context_weights)
            score = source.nearness + _OVERLAP_WEIGHT * overlap
            if confirms(source_figure.quantity, quantity):
                confirming.append((score, index, source_figure))
            elif (
                overlap > _MIN_OVERLAP * quantity.worded
                and _same_kind(quantity, source_figure.quantity)
                # The source's figure may belong to another figure of the sentence, such as the other end of a range.
                and (best_overlap is None or best_overlap < overlap)
            ):
                alternatives.append((score, index, source_figure))
        nearest = max(alternatives, key=lambda candidate: candidate[0], default=None)
        best = max(confirming, key=lambda candidate: candidate[0], default=None)
        if best is not None and is_near(best[1]) and figure.direction * best[2].direction < 0:
            results.append(DifferingFigure(figure.wording, best[2].wording, best[1]))
            continue
        if best is not None and (
            _is_year(quantity)
            or nearest is None
            or nearest[0] <= best[0] + _MIN_SCORE_GAP
            or _is_equal_after_rounding(quantity, nearest[2].quantity)
        ):
            continue
        if nearest is not None and is_near(nearest[1]):
            results.append(DifferingFigure(_as_written(quantity), _as_written(nearest[2].quantity), nearest[1]))
        elif not quantity.worded:
            results.append(DifferingFigure(_as_written(quantity), "", None))
    return tuple(dict.fromkeys(results))


def _as_written(quantity: Quantity) -> str:
    return quantity.bounded or quantity.text


def _has_in_order(source: SourceSentence, figures: Sequence[Quantity]) -> bool:
    """Return whether a source has all figures in this order."""
    source_quantities = iter(split_at_quantities(source.text, source.context)[1])
    return all(any(confirms(known_figure, figure) for known_figure in source_quantities) for figure in figures)


def _read_figures(text: str, context: str) -> list[_StatedFigure]:
    pieces, figures = split_at_quantities(text, context)
    words = [_WORD_OR_SIGN.findall(piece.lower()) for piece in pieces]
    years = [f"{figure.value:.0f}" if _is_year(figure) else "" for figure in figures]
    results = []
    for number, quantity in enumerate(figures):
        weights: dict[str, float] = {}
        start, end = max(0, number - _MAX_PIECES), number + _MAX_PIECES
        preceding = [piece[::-1] for piece in reversed(words[start : number + 1])]
        if preceding[0][:1] in (["("], ["["]):
            preceding[0] = preceding[0][1:]  # the figure belongs to the words before the bracket: "methane (15%)"
        following = words[number + 1 : end + 1]
        for side, side_years in ((preceding, years[start:number][::-1]), (following, years[number + 1 : end])):
            distance = 0
            for index, piece in enumerate(side):
                if index > 0:
                    distance += 0 if _RANGE_LINKS.issuperset(side[index - 1]) else _SEPARATOR_DISTANCE
                    if year := side_years[index - 1]:
                        weights[year] = max(weights.get(year, 0.0), 1 / (1 + distance / _HALVING_DISTANCE))
                is_last = index + 1 == len(side)
                for word in piece if is_last or not _RANGE_LINKS.issuperset(piece) else ():
                    if word in _SEPARATORS:
                        distance += _SEPARATOR_DISTANCE
                        continue
                    distance += 1
                    for stem in content_words(word):
                        weights[stem] = max(weights.get(stem, 0.0), 1 / (1 + distance / _HALVING_DISTANCE))
        word, direction = ("", 0) if _is_year(quantity) else _find_direction(preceding, words[number + 1])
        if not direction and quantity.value < 0:
            direction = -1
        results.append(_StatedFigure(quantity, weights, direction, f"{word} {_as_written(quantity)}".strip()))
    return results


def _find_direction(preceding: Sequence[Sequence[str]], following: Sequence[str]) -> tuple[str, int]:
    """Return the word that gives a figure its direction, and 1 or -1; ("", 0) if there is none.

    Args:
        preceding: Words of the pieces between the preceding figures, nearest piece first, each in reverse order.
        following: Words up to the next figure.
    """
    for word in following[:2]:
        if word in _DIRECTIONS_AFTER:
            return word, _DIRECTIONS_AFTER[word]
    words = [word for piece in preceding for word in piece][: _DIRECTION_REACH + 1]
    for index, word in enumerate(words[:_DIRECTION_REACH]):
        if word in _SEPARATORS or word in ("from", "to", "at", "von", "auf", "de", "à", "hasta", "a"):
            break
        if word in _DIRECTIONS:
            return ("", 0) if _NEGATIONS & set(words[index + 1 : index + 3]) else (word, _DIRECTIONS[word])
    return "", 0


def _context_overlap(first: Mapping[str, float], second: Mapping[str, float]) -> float:
    """Return the weighted share, 0 to 1, of the words around a figure that also occur around another one."""
    shared = sum(weight * second[word] for word, weight in first.items() if word in second)
    return shared / max(sum(first.values()), 1e-9)


def _is_year(quantity: Quantity) -> bool:
    return quantity.unit is None and quantity.is_integer and _FIRST_YEAR <= quantity.value <= _LAST_YEAR


def _same_kind(first: Quantity, second: Quantity) -> bool:
    """Return whether two figures are comparable: of one kind of unit, both years, or both bare numbers.

    A share and percentage points are comparable only if their numbers are equal.
    """
    if first.unit is None or second.unit is None:
        return first.unit is second.unit and _is_year(first) == _is_year(second)
    if {first.unit.kind, second.unit.kind} == {"share", "points"}:
        return first.value == second.value  # 15% is confused with 15 percentage points
    rates = {first.unit.rate, second.unit.rate}
    same_rate = len(rates) == 1 or (rates == {"", "yr"} and first.yearly and second.yearly)
    return second.unit.is_kind_of(first.unit) and same_rate


def _is_equal_after_rounding(figure: Quantity, second_figure: Quantity) -> bool:
    """Return whether two figures with units may be equal after rounding: 340 and 342."""
    if figure.unit is None or second_figure.unit is None or figure.worded:
        return False
    kinds = {figure.unit.kind, second_figure.unit.kind}
    if kinds == {"share", "points"} or (len(kinds) == 2 and kinds <= set(TEMPERATURE_SCALES)):
        return False
    first, second = (
        quantity.value * quantity.unit.factor if quantity.unit else 0.0 for quantity in (figure, second_figure)
    )
    return abs(first - second) <= _ROUNDING * abs(second)


def opposed_words(sentence: str, source: str) -> tuple[Difference, ...]:
    """Return the words of a sentence whose opposite or negation its source has.

    Args:
        sentence: Sentence to compare.
        source: Sentences about the same subject.
    """
    sentence_words, source_words = _tokens(sentence), _tokens(source)
    distinct_words, distinct_source_words = set(sentence_words), set(source_words)
    source_uses = {
        reach: {_use(source_words, index, reach) for index, word in enumerate(source_words) if word in _OPPOSABLE}
        for reach in (_SCOPE, _REACH)
    }
    compared: set[_Use] = set()
    results = []
    for index, word in enumerate(sentence_words):
        alternatives = _ALTERNATIVES.get(word)
        if not alternatives:
            continue
        synonyms = _SYNONYMS.get(word, frozenset()) | {word}
        # If both directions are named, only adjacent words are compared.
        reach = _SCOPE if alternatives & distinct_words and synonyms & distinct_source_words else _REACH
        use = _use(sentence_words, index, reach)
        if use in compared:
            continue
        compared.add(use)
        is_negated = use.is_negated

        def nearest(
            words: frozenset[str],
            *,
            negated: bool,
            context_stems: frozenset[str] = use.context_stems,
            reach: int = reach,
        ) -> tuple[int, str]:
            """Return the highest number of common context words (plus 1) of any of the words, and that word."""
            return max(
                (
                    (len(context_stems & source_use.context_stems) + 1, source_use.word)
                    for source_use in source_uses[reach]
                    if source_use.word in words and source_use.is_negated == negated
                ),
                default=(0, ""),
            )

        same = max(nearest(synonyms, negated=is_negated), nearest(alternatives, negated=not is_negated))
        opposed = max(nearest(alternatives, negated=is_negated), nearest(synonyms, negated=not is_negated))
        if opposed[0] > max(1 if reach == _REACH else 2, same[0]):
            source_word = opposed[1] if opposed[1] not in synonyms else f"{'' if is_negated else 'not '}{opposed[1]}"
            results.append(Difference(f"not {word}" if is_negated else word, source_word))
    return tuple(dict.fromkeys((*results, *_negated_words(sentence_words, source_words))))


class _Use(NamedTuple):
    """Use of a word in a text; uses with equal context are equal."""

    word: str
    is_negated: bool
    context_stems: frozenset[str]
    """Stems of the content words around it."""


def _use(tokens: Sequence[str], index: int, reach: int) -> _Use:
    return _Use(tokens[index], _is_negated(tokens, index), _context_stems(tokens, index, reach))


class _Negations(NamedTuple):
    """Content words of a text by their stems, without words that have opposites."""

    negated: dict[str, str]
    """Directly negated words by stem: the first content word after each negation."""
    affirmed: dict[str, str]
    """Stems and words outside the scope of any negation."""
    in_scope: frozenset[str]
    """Stems of all content words in the scope of a negation."""


def _negated_words(sentence_words: Sequence[str], source_words: Sequence[str]) -> Iterator[Difference]:
    """Yield the words without opposites that one text negates and the other affirms."""
    sentence_negations, source_negations = _negations(sentence_words), _negations(source_words)
    if (
        sentence_negations.in_scope & source_negations.in_scope
        or len(content_words(" ".join(sentence_words)) & content_words(" ".join(source_words))) < 2
    ):
        return
    for stem, word in sentence_negations.negated.items():
        if stem in source_negations.affirmed and stem not in sentence_negations.affirmed:
            yield Difference(f"not {word}", source_negations.affirmed[stem])
    for stem, word in source_negations.negated.items():
        if stem in sentence_negations.affirmed and stem not in source_negations.affirmed:
            yield Difference(sentence_negations.affirmed[stem], f"not {word}")


def _negations(tokens: Sequence[str]) -> _Negations:
    """Return the content words that a text negates and affirms.

    A negation applies to the next content word, and its scope may include the next two words ("without causing
    runaway"). Words excluded by a contrast ("and not at the equator") are neither negated nor affirmed.
    """
    negated: dict[str, str] = {}
    affirmed: dict[str, str] = {}
    in_scope: set[str] = set()
    reach, is_negating = 0, False
    for index, token in enumerate(tokens):
        reach -= 1
        stems = content_words(token)
        if token in _NEGATIONS:
            reach, is_negating = _SCOPE + 1, tokens[index - 1 : index] not in (["and"], ["but"])
        elif token == "only":
            reach = 0
        elif stems:
            if reach > 0:
                in_scope |= stems
            if token not in _ALTERNATIVES and reach <= 0:
                affirmed.update(dict.fromkeys(stems, token))
            elif token not in _ALTERNATIVES and is_negating:
                negated.update(dict.fromkeys(stems, token))
            is_negating = False
    return _Negations(negated, affirmed, frozenset(in_scope))


def other_places(sentence: str, source: str) -> tuple[Difference, ...]:
    """Return the places that a sentence names and its source does not, if the source names other places."""
    sentence_words, source_words = _tokens(sentence), _tokens(source)
    sentence_places, source_places = (
        {_PLACE_BY_WORD[word]: word for word in words if word in _PLACE_BY_WORD}
        for words in (sentence_words, source_words)
    )
    alternatives = ", ".join(word for region, word in source_places.items() if region not in sentence_places)
    return tuple(
        Difference(word, alternatives)
        for region, word in sentence_places.items()
        if alternatives and region not in source_places
    )


def foreign_names(sentence: str, sources: Sequence[str]) -> tuple[str, ...]:
    """Return the names (places, people, models, acronyms) in a sentence that no source contains.

    The result is empty for German sentences, because German capitalises all nouns.
    """
    if language_of_figures(sentence) == "de":
        return ()
    pieces, _ = split_at_quantities(sentence)
    names = dict.fromkeys(match[0] for match in _NAME.finditer(" 0 ".join(pieces)))
    return tuple(name for name in names if name.casefold() not in _NOT_NAMES and not _occurs_in(name, sources))


def _occurs_in(name: str, sources: Sequence[str]) -> bool:
    return any(name.casefold().rstrip("s")[: max(4, len(name) - 3)] in source.casefold() for source in sources)


def swapped_names(sentence: str, source: str, texts: Sequence[str] = ()) -> tuple[Difference, ...]:
    """Return the names of a sentence, including its first word, that its source replaces by other names.

    Both names must have the same content word before or after them ("Spain emitted", "Germany emitted"); in German,
    which capitalises all nouns, the same words on both sides.

    Args:
        sentence: Sentence to compare.
        source: Sentences about the same subject.
        texts: Longer texts; words with a lower-case spelling in them are not names.
    """
    common = {word for text in (sentence, source, *texts) for word in _WORD_OR_SIGN.findall(text)}
    sentence_names, source_names = (
        {
            name: neighbours
            for name, neighbours in _capitalised_words(text).items()
            if not _occurs_in(name, [other_text]) and name.lower() not in common and name.casefold() not in _NOT_NAMES
        }
        for text, other_text in ((sentence, source), (source, sentence))
    )
    is_german = language_of_figures(sentence) == "de"
    return tuple(
        Difference(name, source_name)
        for name, neighbours in sentence_names.items()
        for source_name, source_neighbours in source_names.items()
        if (neighbours == source_neighbours if is_german else neighbours & source_neighbours)
    )


def _capitalised_words(text: str) -> dict[str, frozenset[tuple[int, str]]]:
    """Return each capitalised word of a text with the stems of its adjacent content words and their side (-1 or 1)."""
    contents = [word for word in _WORD_OR_SIGN.findall(text) if len(word) > _SCOPE and content_words(word)]
    results: dict[str, frozenset[tuple[int, str]]] = {}
    for index, word in enumerate(contents):
        if _CAPITAL.fullmatch(word):
            neighbours = [(side, contents[index + side]) for side in (-1, 1) if 0 <= index + side < len(contents)]
            results[word] = frozenset(
                (side, stem) for side, neighbour in neighbours for stem in content_words(neighbour)
            )
    return results


def _tokens(text: str) -> list[str]:
    joined = _PHASE.sub(r"\1e-\2", text.lower())
    tokens = _TOKEN.findall(joined)
    # In Portuguese, "no" is "in the".
    return [token for token in tokens if token != "no"] if language_of_figures(text) == "pt" else tokens


def _is_negated(tokens: Sequence[str], index: int) -> bool:
    """Return whether a negation precedes a word: "did not increase", "no decrease"."""
    return tokens[index] not in _NOT_NEGATABLE and (
        any(token in _NEGATIONS for token in tokens[max(0, index - _SCOPE) : index])
        or "nor" in tokens[max(0, index - _REACH) : index]
    )


def _context_stems(tokens: Sequence[str], index: int, reach: int) -> frozenset[str]:
    neighbours = [*tokens[max(0, index - reach) : index], *tokens[index + 1 : index + 1 + reach]]
    return content_words(" ".join(neighbours))
