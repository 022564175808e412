"""Differences between a sentence and its source: figures, words of direction, negations, places and names.

Vectors of "the Arctic warms" and "the Antarctic warms", or of "rises" and "falls", are similar, so rules compare
figures of the same quantity, words that exclude each other, negations, regions, and names.

A figure is compared with figures of the sources that have the same kind of unit and measure the same quantity, which
means that their sentences are similar and that the same words and years surround them. A change has a direction
("fell by 5%", "5% less"). If a source names both directions ("the troposphere warms and the stratosphere cools"), the
direction with the same surrounding words is compared.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from climassay.grounding.numerals import detect_number_language
from climassay.grounding.quantities import Quantity, confirms, split_at_quantities
from climassay.grounding.units import TEMPERATURE_SCALES
from climassay.metrics.pair_features import OPPOSITES, content_words


def _groups(*lines: str) -> tuple[tuple[frozenset[str], ...], ...]:
    return tuple(tuple(frozenset(side.split()) for side in line.split("|")) for line in lines)


_INCREASES = (
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
_DECREASES = (
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
OPPOSITE_GROUPS = _groups(
    f"{_INCREASES}|{_DECREASES} lower", "warm warms warmed warming|cool cools cooled cooling",
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
"""Pairs of word groups with opposite meanings, such as (rise, grow) and (fall).

A negation reverses the meaning.
"""
EXCLUSIVE_GROUPS = _groups(
    "source sources|sink sinks", "shortwave|longwave", "winter winters|summer summers|spring|autumn",
    "night nights|day days",
)  # fmt: skip
"""Groups of words that exclude each other but are not opposites: "not summer" may also mean autumn."""
PLACE_GROUPS = _groups(
    "arctic", "antarctic antarctica", "greenland", "southern", "northern", "eastern east", "western west", "atlantic",
    "pacific", "indian", "tropics tropical equator equatorial", "subtropics subtropical", "polar pole poles",
    "midlatitude midlatitudes", "rainforest rainforests", "desert deserts", "savanna savannas", "tundra", "boreal",
    "temperate", "land continent continents", "ocean oceans oceanic sea seas marine",
    "coast coasts coastal",
    "city cities urban", "rural", "mountain mountains", "troposphere tropospheric", "stratosphere stratospheric",
    "vegetation", "soil soils", "hemisphere",
)  # fmt: skip
"""Groups of lower-case words for the same place. Other place names are recognised by their capital letters."""
_SYNONYMS: dict[str, frozenset[str]] = {}
_ALTERNATIVES: dict[str, frozenset[str]] = {}
for _word, _opposite in OPPOSITES.items():
    _ALTERNATIVES[_word] = frozenset({_opposite})
for _sides in (*OPPOSITE_GROUPS, *EXCLUSIVE_GROUPS):
    for _side in _sides:
        for _word in _side:
            _SYNONYMS[_word] = _SYNONYMS.get(_word, frozenset()) | _side
            _ALTERNATIVES[_word] = (_ALTERNATIVES.get(_word, frozenset()) | frozenset().union(*_sides)) - _side
_OPPOSABLE = frozenset(_ALTERNATIVES).union(*_ALTERNATIVES.values())
_NOT_NEGATABLE = frozenset(word for sides in EXCLUSIVE_GROUPS for side in sides for word in side)
_PLACE_BY_WORD = {word: index for index, (words,) in enumerate(PLACE_GROUPS) for word in words}
_DIRECTIONS = dict.fromkeys(_INCREASES.split(), 1) | dict.fromkeys(_DECREASES.split(), -1)
_DIRECTIONS_AFTER = {
    word: sign
    for words, sign in (
        ("more higher larger greater increase rise growth mehr höher hausse más mais superior", 1),
        ("less fewer lower smaller decrease decline reduction fall drop loss weniger niedriger menos inferior", -1),
    )
    for word in words.split()
}
"""Words after a quantity that state the direction of a change, as in "5% less": 1 for increases, -1 for decreases."""
_DIRECTION_REACH = 5
"""Number of words before a quantity that are searched for a word of direction."""
_CONTEXT_REACH = 6
"""Number of words on each side of a word that form its context."""
_NEGATION_SCOPE = 3
"""Number of words after a negation to which it may apply."""
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
"""Weight of the word overlap around two quantities, relative to the similarity of their sentences."""
_MIN_SCORE_GAP = 0.3
"""Minimum margin between the scores of a differing and a confirming quantity. Below it, the difference is not reported.

See docs/results/check_text.md.
"""
MIN_NEARNESS = 1.15
"""Minimum nearness at which a source sentence can contradict a sentence; see docs/results/check_text.md."""
_MIN_OVERLAP = 0.2
"""Minimum overlap between the contexts of a quantity written in words and of a quantity that contradicts it."""
_ROUNDING = 0.01
_HALVING_DISTANCE = 3.0
"""Distance, in words, at which the weight of a context word is one half."""
_MAX_NEIGHBOURS = 50
"""Maximum number of other quantities between a quantity and the words that belong to its context."""
_SEPARATOR_DISTANCE = 6
"""Distance, in words, added for each punctuation mark, conjunction or quantity between a quantity and a word."""
_WORD_OR_SIGN = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*|[,;:()]")
_SEPARATORS = frozenset([*",;:()", "and", "but", "while", "whereas", "or", "against", "versus", "und", "et", "y"])
_RANGE_LINKS = frozenset(["(", "to", "bis", "à", "a"])
"""Words and signs between the numbers of a range, or between an estimate and its range: 20 (15 to 25) cm."""
_FIRST_YEAR, _LAST_YEAR = 1500, 2300


class Difference(NamedTuple):
    """Difference between a sentence and its source."""

    text: str
    source: str
    """Words of the source that differ from ``text``; empty if nothing in the source corresponds to it."""


class SourceSentence(NamedTuple):
    """Sentence of a source, with its similarity to a compared sentence."""

    text: str
    nearness: float
    """Similarity to the compared sentence: cosine plus the fraction of the compared sentence's content words that it
    contains.
    """
    context: str = ""
    """Text of the passage that contains the sentence."""


class DifferingQuantity(NamedTuple):
    """Quantity in a sentence that no source confirms or some source contradicts."""

    text: str
    source: str
    """Contradicting quantity in the source; empty if no similar source has a comparable quantity."""
    source_index: int | None
    """Index of the source with the contradicting quantity; None if there is none."""


class _QuantityInContext(NamedTuple):
    """Quantity in a text with its context."""

    quantity: Quantity
    context_weights: Mapping[str, float]
    """Weights, up to 1, of the words and years around the quantity; the nearer a word, the higher its weight."""
    direction: int
    """Direction of the change: 1 for an increase, -1 for a decrease, 0 for neither."""
    wording: str
    """Quantity as written, with the word that states the direction ("fell 5%")."""


class _Candidate(NamedTuple):
    """Quantity of a source that may confirm or contradict a quantity of the compared sentence."""

    score: float
    """Nearness of the source sentence, plus the weighted overlap of the contexts of both quantities."""
    source_index: int
    quantity: _QuantityInContext


def find_differing_quantities(
    sentence: str, sources: Sequence[SourceSentence], context: str = ""
) -> tuple[DifferingQuantity, ...]:
    """Return the quantities in a sentence that the sources lack or contradict.

    A year that any source contains is never reported. Fractions, multiples, months and ranks in words are reported only
    if a source contradicts them.

    Args:
        sentence: Sentence to compare.
        sources: Sentences that may support the compared sentence.
        context: Text that contains the compared sentence.
    """
    quantities_in_context = _read_quantities(sentence, context)
    # If one source has all figures, other years around them belong to something else.
    is_complete = len(quantities_in_context) > 1 and any(
        _confirms_in_order(source, [quantity_in_context.quantity for quantity_in_context in quantities_in_context])
        for source in sources
    )
    candidates = [
        (index, source, source_quantity)
        for index, source in enumerate(sources)
        for source_quantity in _read_quantities(source.text, source.context)
    ]

    # Highest overlap of a source's quantity with the quantities that it confirms; None if it confirms none.
    max_overlaps = [
        max(
            (
                _compute_context_overlap(quantity_in_context.context_weights, source_quantity.context_weights)
                for quantity_in_context in quantities_in_context
                if confirms(source_quantity.quantity, quantity_in_context.quantity)
            ),
            default=None,
        )
        for _, _, source_quantity in candidates
    ]

    def is_near(index: int) -> bool:
        return sources[index].nearness >= MIN_NEARNESS

    differing_quantities = []
    for quantity_in_context in quantities_in_context:
        quantity = quantity_in_context.quantity
        if is_complete and quantity.unit is None:
            continue
        confirming_candidates: list[_Candidate] = []
        differing_candidates: list[_Candidate] = []
        for (index, source, source_quantity), max_overlap in zip(candidates, max_overlaps, strict=True):
            overlap = _compute_context_overlap(quantity_in_context.context_weights, source_quantity.context_weights)
            score = source.nearness + _OVERLAP_WEIGHT * overlap
            if confirms(source_quantity.quantity, quantity):
                confirming_candidates.append(_Candidate(score, index, source_quantity))
            elif (
                overlap > _MIN_OVERLAP * quantity.is_in_words
                and _are_comparable(quantity, source_quantity.quantity)
                # The source's figure may belong to another figure of the sentence, such as the other end of a range.
                and (max_overlap is None or max_overlap < overlap)
            ):
                differing_candidates.append(_Candidate(score, index, source_quantity))
        best_difference = max(differing_candidates, key=lambda candidate: candidate.score, default=None)
        best_confirmation = max(confirming_candidates, key=lambda candidate: candidate.score, default=None)
        if (
            best_confirmation is not None
            and is_near(best_confirmation.source_index)
            and quantity_in_context.direction * best_confirmation.quantity.direction < 0
        ):
            differing_quantities.append(
                DifferingQuantity(
                    quantity_in_context.wording, best_confirmation.quantity.wording, best_confirmation.source_index
                )
            )
            continue
        if best_confirmation is not None and (
            _is_year(quantity)
            or best_difference is None
            or best_difference.score <= best_confirmation.score + _MIN_SCORE_GAP
            or _is_almost_equal(quantity, best_difference.quantity.quantity)
        ):
            continue
        if best_difference is not None and is_near(best_difference.source_index):
            differing_quantities.append(
                DifferingQuantity(
                    quantity.full_text, best_difference.quantity.quantity.full_text, best_difference.source_index
                )
            )
        elif not quantity.is_in_words:
            differing_quantities.append(DifferingQuantity(quantity.full_text, "", None))
    return tuple(dict.fromkeys(differing_quantities))


def _confirms_in_order(source: SourceSentence, quantities: Sequence[Quantity]) -> bool:
    """Return whether a source confirms all quantities in this order."""
    source_quantities = iter(split_at_quantities(source.text, source.context)[1])
    return all(
        any(confirms(source_quantity, quantity) for source_quantity in source_quantities) for quantity in quantities
    )


def _read_quantities(text: str, context: str) -> list[_QuantityInContext]:
    pieces, quantities = split_at_quantities(text, context)
    words = [_WORD_OR_SIGN.findall(piece.lower()) for piece in pieces]
    years = [f"{neighbour.value:.0f}" if _is_year(neighbour) else "" for neighbour in quantities]
    quantities_in_context = []
    for index, quantity in enumerate(quantities):
        weights: dict[str, float] = {}
        start, end = max(0, index - _MAX_NEIGHBOURS), index + _MAX_NEIGHBOURS
        preceding_pieces = [piece[::-1] for piece in reversed(words[start : index + 1])]
        if preceding_pieces[0][:1] in (["("], ["["]):
            # The figure belongs to the words before the bracket: "methane (15%)".
            preceding_pieces[0] = preceding_pieces[0][1:]
        following_pieces = words[index + 1 : end + 1]
        for side, side_years in (
            (preceding_pieces, years[start:index][::-1]),
            (following_pieces, years[index + 1 : end]),
        ):
            distance = 0
            for piece_index, piece in enumerate(side):
                if piece_index > 0:
                    distance += 0 if _RANGE_LINKS.issuperset(side[piece_index - 1]) else _SEPARATOR_DISTANCE
                    if year := side_years[piece_index - 1]:
                        weights[year] = max(weights.get(year, 0.0), 1 / (1 + distance / _HALVING_DISTANCE))
                is_last = piece_index + 1 == len(side)
                for word in piece if is_last or not _RANGE_LINKS.issuperset(piece) else ():
                    if word in _SEPARATORS:
                        distance += _SEPARATOR_DISTANCE
                        continue
                    distance += 1
                    for stem in content_words(word):
                        weights[stem] = max(weights.get(stem, 0.0), 1 / (1 + distance / _HALVING_DISTANCE))
        word, direction = ("", 0) if _is_year(quantity) else _find_direction(preceding_pieces, words[index + 1])
        if not direction and quantity.value < 0:
            direction = -1
        quantities_in_context.append(
            _QuantityInContext(quantity, weights, direction, f"{word} {quantity.full_text}".strip())
        )
    return quantities_in_context


def _find_direction(preceding_pieces: Sequence[Sequence[str]], following_words: Sequence[str]) -> tuple[str, int]:
    """Return the word that states the direction of a quantity's change, and 1 or -1; ("", 0) if there is none.

    Args:
        preceding_pieces: Words of the pieces of text between the preceding quantities. The nearest piece comes first;
            the words of each piece are in reverse order.
        following_words: Words up to the next quantity.
    """
    for word in following_words[:2]:
        if word in _DIRECTIONS_AFTER:
            return word, _DIRECTIONS_AFTER[word]
    words = [word for piece in preceding_pieces for word in piece][: _DIRECTION_REACH + 1]
    for index, word in enumerate(words[:_DIRECTION_REACH]):
        if word in _SEPARATORS or word in ("from", "to", "at", "von", "auf", "de", "à", "hasta", "a"):
            break
        if word in _DIRECTIONS:
            return ("", 0) if _NEGATIONS & set(words[index + 1 : index + 3]) else (word, _DIRECTIONS[word])
    return "", 0


def _compute_context_overlap(first_weights: Mapping[str, float], second_weights: Mapping[str, float]) -> float:
    """Return the weighted fraction, 0 to 1, of the words around quantity 1 that also occur around quantity 2."""
    shared_weight = sum(
        weight * second_weights[word] for word, weight in first_weights.items() if word in second_weights
    )
    return shared_weight / max(sum(first_weights.values()), 1e-9)


def _is_year(quantity: Quantity) -> bool:
    return quantity.unit is None and quantity.is_integer and _FIRST_YEAR <= quantity.value <= _LAST_YEAR


def _are_comparable(first_quantity: Quantity, second_quantity: Quantity) -> bool:
    """Return whether two quantities are comparable: units of the same kind, two years, or no unit in either.

    A percentage and percentage points are comparable only if their numbers are equal.
    """
    if first_quantity.unit is None or second_quantity.unit is None:
        return first_quantity.unit is second_quantity.unit and _is_year(first_quantity) == _is_year(second_quantity)
    if {first_quantity.unit.kind, second_quantity.unit.kind} == {"share", "points"}:
        return first_quantity.value == second_quantity.value  # 15% is confused with 15 percentage points
    rates = {first_quantity.unit.rate, second_quantity.unit.rate}
    is_same_rate = len(rates) == 1 or (rates == {"", "yr"} and first_quantity.is_yearly and second_quantity.is_yearly)
    return second_quantity.unit.is_kind_of(first_quantity.unit) and is_same_rate


def _is_almost_equal(first_quantity: Quantity, second_quantity: Quantity) -> bool:
    """Return whether two quantities with units differ by 1% at most, for example 340 and 342."""
    if first_quantity.unit is None or second_quantity.unit is None or first_quantity.is_in_words:
        return False
    kinds = {first_quantity.unit.kind, second_quantity.unit.kind}
    if kinds == {"share", "points"} or (len(kinds) == 2 and kinds <= set(TEMPERATURE_SCALES)):
        return False
    first_value, second_value = (
        quantity.value * quantity.unit.factor if quantity.unit else 0.0
        for quantity in (first_quantity, second_quantity)
    )
    return abs(first_value - second_value) <= _ROUNDING * abs(second_value)


def find_opposed_words(sentence: str, source: str) -> tuple[Difference, ...]:
    """Return the words of a sentence whose opposite or negation occurs in the source.

    Args:
        sentence: Sentence to compare.
        source: Sentences about the same subject.
    """
    sentence_words, source_words = _tokenise(sentence), _tokenise(source)
    distinct_words, distinct_source_words = set(sentence_words), set(source_words)
    source_uses = {
        reach: {
            _describe_use(source_words, index, reach) for index, word in enumerate(source_words) if word in _OPPOSABLE
        }
        for reach in (_NEGATION_SCOPE, _CONTEXT_REACH)
    }
    compared_uses: set[_WordUse] = set()
    differences = []
    for index, word in enumerate(sentence_words):
        alternatives = _ALTERNATIVES.get(word)
        if not alternatives:
            continue
        synonyms = _SYNONYMS.get(word, frozenset()) | {word}
        # If both directions are named, only adjacent words are compared.
        reach = (
            _NEGATION_SCOPE if alternatives & distinct_words and synonyms & distinct_source_words else _CONTEXT_REACH
        )
        use = _describe_use(sentence_words, index, reach)
        if use in compared_uses:
            continue
        compared_uses.add(use)
        is_negated = use.is_negated

        def find_nearest(
            words: frozenset[str],
            *,
            is_negated_use: bool,
            context_stems: frozenset[str] = use.context_stems,
            reach: int = reach,
        ) -> tuple[int, str]:
            """Return the number of shared context words plus 1, and the source's word, for the most similar context."""
            return max(
                (
                    (len(context_stems & source_use.context_stems) + 1, source_use.word)
                    for source_use in source_uses[reach]
                    if source_use.word in words and source_use.is_negated == is_negated_use
                ),
                default=(0, ""),
            )

        best_agreement = max(
            find_nearest(synonyms, is_negated_use=is_negated), find_nearest(alternatives, is_negated_use=not is_negated)
        )
        best_opposition = max(
            find_nearest(alternatives, is_negated_use=is_negated), find_nearest(synonyms, is_negated_use=not is_negated)
        )
        if best_opposition[0] > max(1 if reach == _CONTEXT_REACH else 2, best_agreement[0]):
            source_word = (
                best_opposition[1]
                if best_opposition[1] not in synonyms
                else f"{'' if is_negated else 'not '}{best_opposition[1]}"
            )
            differences.append(Difference(f"not {word}" if is_negated else word, source_word))
    return tuple(dict.fromkeys((*differences, *_find_negated_words(sentence_words, source_words))))


class _WordUse(NamedTuple):
    """Use of a word in a text; uses with the same context are equal."""

    word: str
    is_negated: bool
    context_stems: frozenset[str]
    """Stems of the content words around the word."""


def _describe_use(tokens: Sequence[str], index: int, reach: int) -> _WordUse:
    return _WordUse(tokens[index], _is_negated(tokens, index), _find_context_stems(tokens, index, reach))


class _Negations(NamedTuple):
    """Content words of a text that are negated or affirmed; words that have opposites are excluded."""

    negated: dict[str, str]
    """Words that a negation applies to (the first content word after it), by their stems."""
    affirmed: dict[str, str]
    """Words outside the scope of any negation, by their stems."""
    in_scope: frozenset[str]
    """Stems of all content words inside the scope of a negation."""


def _find_negated_words(sentence_words: Sequence[str], source_words: Sequence[str]) -> Iterator[Difference]:
    """Yield words that are negated in one text and affirmed in the other, excluding words with opposites."""
    sentence_negations, source_negations = _find_negations(sentence_words), _find_negations(source_words)
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


def _find_negations(tokens: Sequence[str]) -> _Negations:
    """Return the content words that a text negates or affirms.

    A negation applies to the next content word; its scope may include two more words ("without causing runaway"). Words
    excluded by a contrast ("and not at the equator") are neither negated nor affirmed.
    """
    negated_words: dict[str, str] = {}
    affirmed_words: dict[str, str] = {}
    scope_stems: set[str] = set()
    n_words_in_scope, is_negating = 0, False
    for index, token in enumerate(tokens):
        n_words_in_scope -= 1
        stems = content_words(token)
        if token in _NEGATIONS:
            n_words_in_scope, is_negating = _NEGATION_SCOPE + 1, tokens[index - 1 : index] not in (["and"], ["but"])
        elif token == "only":
            n_words_in_scope = 0
        elif stems:
            if n_words_in_scope > 0:
                scope_stems |= stems
            if token not in _ALTERNATIVES and n_words_in_scope <= 0:
                affirmed_words.update(dict.fromkeys(stems, token))
            elif token not in _ALTERNATIVES and is_negating:
                negated_words.update(dict.fromkeys(stems, token))
            is_negating = False
    return _Negations(negated_words, affirmed_words, frozenset(scope_stems))


def find_other_places(sentence: str, source: str) -> tuple[Difference, ...]:
    """Return the places that occur in a sentence but not in its source, if the source names other places."""
    sentence_words, source_words = _tokenise(sentence), _tokenise(source)
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


def find_foreign_names(sentence: str, sources: Sequence[str]) -> tuple[str, ...]:
    """Return the names (places, people, models, acronyms) in a sentence that occur in no source.

    The result is empty for German sentences, because German capitalises all nouns.
    """
    if detect_number_language(sentence) == "de":
        return ()
    pieces, _ = split_at_quantities(sentence)
    names = dict.fromkeys(match[0] for match in _NAME.finditer(" 0 ".join(pieces)))
    return tuple(name for name in names if name.casefold() not in _NOT_NAMES and not _occurs_in(name, sources))


def _occurs_in(name: str, sources: Sequence[str]) -> bool:
    return any(name.casefold().rstrip("s")[: max(4, len(name) - 3)] in source.casefold() for source in sources)


def find_swapped_names(sentence: str, source: str, texts: Sequence[str] = ()) -> tuple[Difference, ...]:
    """Return the names in a sentence, including its first word, that its source replaces by other names.

    Both names must have the same content word next to them ("Spain emitted", "Germany emitted"). In German, which
    capitalises all nouns, the words on both sides must be the same.

    Args:
        sentence: Sentence to compare.
        source: Sentences about the same subject.
        texts: Longer texts; words that occur in lower case in any of the texts are not names.
    """
    lower_case_words = {word for text in (sentence, source, *texts) for word in _WORD_OR_SIGN.findall(text)}
    sentence_names, source_names = (
        {
            name: neighbours
            for name, neighbours in _find_capitalised_words(text).items()
            if not _occurs_in(name, [other_text])
            and name.lower() not in lower_case_words
            and name.casefold() not in _NOT_NAMES
        }
        for text, other_text in ((sentence, source), (source, sentence))
    )
    is_german = detect_number_language(sentence) == "de"
    return tuple(
        Difference(name, source_name)
        for name, neighbours in sentence_names.items()
        for source_name, source_neighbours in source_names.items()
        if (neighbours == source_neighbours if is_german else neighbours & source_neighbours)
    )


def _find_capitalised_words(text: str) -> dict[str, frozenset[tuple[int, str]]]:
    """Return the capitalised words of a text with their neighbours.

    A neighbour consists of a side (-1: left, 1: right) and the stem of the adjacent content word.
    """
    words = [word for word in _WORD_OR_SIGN.findall(text) if len(word) > 3 and content_words(word)]
    neighbours_by_word: dict[str, frozenset[tuple[int, str]]] = {}
    for index, word in enumerate(words):
        if _CAPITAL.fullmatch(word):
            neighbours = [(side, words[index + side]) for side in (-1, 1) if 0 <= index + side < len(words)]
            neighbours_by_word[word] = frozenset(
                (side, stem) for side, neighbour in neighbours for stem in content_words(neighbour)
            )
    return neighbours_by_word


def _tokenise(text: str) -> list[str]:
    normalised_text = _PHASE.sub(r"\1e-\2", text.lower())
    tokens = _TOKEN.findall(normalised_text)
    # In Portuguese, "no" is "in the".
    return [token for token in tokens if token != "no"] if detect_number_language(text) == "pt" else tokens


def _is_negated(tokens: Sequence[str], index: int) -> bool:
    """Return whether a negation precedes a word: "did not increase", "no decrease"."""
    return tokens[index] not in _NOT_NEGATABLE and (
        any(token in _NEGATIONS for token in tokens[max(0, index - _NEGATION_SCOPE) : index])
        or "nor" in tokens[max(0, index - _CONTEXT_REACH) : index]
    )


def _find_context_stems(tokens: Sequence[str], index: int, reach: int) -> frozenset[str]:
    neighbours = [*tokens[max(0, index - reach) : index], *tokens[index + 1 : index + 1 + reach]]
    return content_words(" ".join(neighbours))
