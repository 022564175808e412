"""Quantities, numbers with their units, and the comparison of a sentence's quantities with those of passages.

A quantity is a number with the following magnitude word (``million``) and unit (``mm yr⁻¹``). The unit of a range, list
or bracket applies to all its numbers (``1.09 [0.95 to 1.20] °C``). Names that contain digits (CO2, RCP8.5, SSP5-8.5,
PM2.5, AR6, COP28), references (Figure 3.2) and citations ([3]) are not quantities.

Rules for matching a quantity of a sentence with one of a passage:

- With a unit, the passage must have the same kind of unit, and the same value once both are in one unit: 0.2 m is
  20 cm. Mass is of the substance that is named (CO2, CO2 equivalents, carbon, methane), or of any. Per cent and
  percentage points are two kinds.
- Degrees of an unnamed scale are of any scale. A change of temperature ("warmed by 2 °C") is 3.6 °F and 2 K; other
  temperatures may be changes or readings of a thermometer: 30 °C is 54 °F or 86 °F.
- Values are equal if the passage's, rounded to the digits of the sentence's, equals it: 1.1 °C for 1.09 °C, but not
  1.09 °C for 1.1 °C. An integer without a unit (a year, a count) must be exactly the same.
- A number without a unit may have any unit in the passage.
- A margin ("± 2.1 days") confirms only a number that is called a margin or uncertainty.
- A number with a minus sign needs one in the passage. A number without one also matches a negative number, because
  words such as "fell by" may express the sign.
- "37 Gt" beside "annual" or "each year" equals "37 Gt per year".
- A bound ("more than 3 K", "at most 2 °C") is confirmed by a value on its side that differs from it by at most one unit
  of its last non-zero digit, or by the same bound; never by the opposite one. "Below" and "above" also match the value
  itself, because thresholds are named so. "Over" makes a bound except before years, times, lengths and areas, over
  which something may happen or extend.
- A year takes no unit from the text after it: "from 1.3 mm in 1901 to 1971 to 3.7 mm". A period may name its last year
  by two digits (2006–18). A century ("the 19th century") is confirmed by a period or decade within it.
- The text's language and its other numbers decide the meaning of commas and points
  (:mod:`climassay.grounding.numerals`). Shares ("1 in 5" for 20%), multiples, months and ranks in words confirm numbers
  ("two-thirds" for 67%); only the check of texts also searches for those in a sentence.
- Digits between which a PDF reader inserted spaces ("201 0–2019", "1. 5 °C") are joined first.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from climassay.corpus.latex import plain_latex
from climassay.grounding.numerals import (
    NUMBER,
    NUMBER_WORDS,
    NumberFormat,
    WordedQuantity,
    detect_number_format,
    find_worded_quantities,
    read_numeral,
)
from climassay.grounding.units import (
    CLOSING_BRACKET,
    TEMPERATURE_SCALES,
    Unit,
    read_currency_before,
    read_magnitude,
    read_power_of_ten,
    read_rate,
    read_unit,
)

_UNDER = r"less|fewer|lower|smaller|below|under"
_OVER = r"more|greater|higher|larger|above|over"
_ABOUT = r"about|around|roughly|approximately|some|an estimated|rund|etwa|ca\.|environ|unos|cerca de"
_BOUNDS = tuple(
    (
        re.compile(rf"(?:{before})(?:\s*(?:{_ABOUT}))?\s*$", re.IGNORECASE),
        bound,
    )
    for before, bound in (
        (
            r"≥|>=|\bat\s+least|\b(?:no|not)\s+(?:less|fewer|lower)\s+than|\ba\s+minimum\s+of"
            r"|\bmindestens|\bwenigstens|\bau\s+moins|\b(?:al|por\s+lo)\s+menos|\bpelo\s+menos",
            (1, True),
        ),
        (
            r"≤|<=|\bat\s+most|\bup\s+to|\b(?:no|not)\s+(?:more|greater|higher)\s+than|\ba\s+maximum\s+of"
            r"|\bhöchstens|\bbis\s+zu|\bau\s+(?:plus|maximum)|\bcomo\s+máximo|\bno\s+máximo",
            (-1, True),
        ),
        (rf">|\b(?:{_OVER})\s+than|\bover|\bmehr\s+als|\bplus\s+de|\bmás\s+de|\bmais\s+de", (1, False)),
        (rf"<|\b(?:{_UNDER})\s+than|\bweniger\s+als|\bmoins\s+de|\bmenos\s+de", (-1, False)),
        (r"\b(?:above|exceed(?:s|ed|ing)?)", (1, True)),
        (r"\b(?:below|under)", (-1, True)),
    )
)
"""Patterns of words that make the following number a bound, with the side (1: lower, -1: upper) and whether the bound
is included."""
_BOUND_AFTER = re.compile(rf"\s*(?:(?P<over>or\s+(?:{_OVER}))|or\s+(?:{_UNDER}))\b(?!\s+than)", re.IGNORECASE)
_WORD_SIGN = re.compile(r"\b(?:minus|negative|moins|menos)\s+$", re.IGNORECASE)
_YEAR_LIKE = re.compile(r"[12]\d{3}")
_IN_YEAR = re.compile(r"\b(?:in|since|until|years?|seit|jahr|en|depuis|desde|em)\s+$", re.IGNORECASE)
_BETWEEN = re.compile(r"\b(?:between|zwischen|entre)\s+$", re.IGNORECASE)
_AND = ("and", "und", "et", "y", "e")
_EXTENTS = ("time", "days", "span", "length", "area", "angle")
"""Kinds of units that measure an extent. Before such a quantity, "over" can mean "during" or "across" rather than "more
than" ("over ten years"), so that it does not make the number a bound."""
_SIGN = re.compile(r"(?:^|(?<=[\s(\[~≈<>=]))[-−–]$")
_YEARLY_WORDS = re.compile(
    r"\b(?:annual(?:ly)?|yearly|(?:per|a|each|every) year|jährlich\w*|pro jahr|par an|annuel\w*|anual\w*"
    r"|(?:al|por) año|por ano)\b|\byr\b|/yr",
    re.IGNORECASE,
)
_CHANGE = (
    r"(?:ris|rose|warm(?!est)|cool(?!est)|increas|decreas|(?<!climate )chang|anomal|differen|drop|fall|fell|declin"
    r"|erwärm|anstieg|gestieg|réchauff|hausse|calent|aument|aquec)\w*"
)
_CHANGE_BEFORE = re.compile(
    rf"\b(?:by|um)\s+(?:{_ABOUT})?\s*$|\b{_CHANGE}(?![^,;:]*\b(?:to|from|at|reach\w*|exceed\w*|days|auf|bei|à|hasta)\b)[^.,;:]*$",
    re.IGNORECASE,
)
_CHANGE_AFTER = re.compile(
    rf"\s*(?:of\s+(?:\w+\s+)?)?(?:{_CHANGE}|higher|lower|above(?!\s+(?:zero|freezing))|below(?!\s+(?:zero|freezing)))",
    re.IGNORECASE,
)
_MAX_UNIT_LENGTH = 100
"""Maximum length of white space, magnitude word and unit after a number, in characters."""
_MAX_WORD_DISTANCE = 80
"""Maximum distance, in characters, between a number and words such as "every year" that apply to it."""

# Spans whose digits are not quantities.
_NO_QUANTITY = re.compile(
    r"\[\d+(?:\s*[,;]\s*\d+)*\]"  # citations
    r"|\{[^{}]*\}"  # the IPCC's references
    r"|\b(?i:fig(?:ure|s)?|table|chapter|section|box|equation|annex|appendix|faq"
    r"|abb(?:ildung)?|tabelle|kapitel|abschnitt|artikel|tableau|chapitre|section|gráfico|cuadro|cap[ií]tulo|sección)"
    r"(?:s|es|\.)?\s*"
    r"[A-Z]{0,3}\.?\d+[\d.]*\d*[a-z]?\b(?:\s*(?:and|to|–|-)\s*\d+\.\d+[\d.]*)*"
    r"|\b(?:RCP|SSP|COP|CMIP|Working Group|PM(?= ?(?:2\.5|10)\b))[ -]?\d[\d.]*(?:[-–]\d[\d.]*)?"
    r"|\b(?:CO|SO|CH|N|O|H|SF|NF|NH|NO) [2-6]\b"
    r"|\b[A-Za-z]+\d\w*(?:[.\-–]\d\w*)*"  # names such as CO2, SSP5-8.5
    r"|\b[A-Z](?:\.\d+)+|\b(?!\d{1,3}(?:\.\d{3})+(?![\d.]))\d+(?:\.\d+){2,}"  # B.1.2, 9.2.2
    r"|\b(?!(?i:in|pre|post|mid|sub|non|near|over|under|mm|cm|k?m|pp[mbt]v?|[CFK]|percent|cent|degrees?)-)"
    r"[A-Za-z]+-(?![12]\d{3}\b)\d[\d.]*"  # names such as carbon-14
    r"|\b(?:W\s?m|yr|kg|ha|km)\s?[-−–]\s?[123]\b(?!\.?\d)|(?<=\bkm) 2\b"  # exponents of units
)
_SPLIT_DECIMAL = re.compile(r"(?<=[ (\[–-])(\d{1,2}\.) (\d{1,2})(?![\d.,])")
_SPLIT_YEAR = r"[12](?: ?\d){3}"
_SPLIT_PERIOD = re.compile(rf"(?<![\w.,])({_SPLIT_YEAR})(\s?[-–—]\s?|\s?to\s)({_SPLIT_YEAR})(?![.,]?\d)")
_SHORT_PERIOD = re.compile(r"(?<![\w.,–-])((?:1[5-9]|20)\d\d)([-–])(\d\d)(?![\w.,]?\d|[-–]\d)")
_EARLIEST, _LATEST = 1500, 2300
"""Earliest and latest year of a period whose split or shortened years are repaired (1951-80)."""
_CENTURY = re.compile(r"\bcentur(?:y|ies)$", re.IGNORECASE)
_HEDGE = (
    r"(?:about|around|roughly|nearly|almost|from|between|likely|very likely|likely range(?: of)?|range(?: of)?|~|≈)"
)
_RANGE = re.compile(r"\s*(?:–|—|-|−|to|through|bis|à|a|±|\+/-)\s*[+\-−–]?\s*")
_MARGIN = re.compile(r"\s*(?:±|\+/-)\s*")
_UNCERTAINTY = re.compile(
    r"(?:±|\+/-|\b(?:uncertaint\w*|margins?|errors?|deviations?|plus\s+or\s+minus|spread|within)\b[^.;]{0,40})\s*$",
    re.IGNORECASE,
)
_LIST = re.compile(
    rf"\s*(?:,|,?\s*(?:and|or|versus|vs\.?|und|oder|bzw\.|et|ou|y|e)|[\[(]|;)\s*{_HEDGE}?:?\s*[+\-−–]?\s*",
    re.IGNORECASE,
)
_BRACKET = re.compile(rf"\s*[\[(]\s*{_HEDGE}?:?\s*[+\-−–]?\s*", re.IGNORECASE)
_CHARACTERS = str.maketrans("⁻₂₃₄₆\u00a0\u2007\u2009\u202f\u2010\u2011\u2012", "-2346    ---")
"""Replacements of single characters by single characters; they preserve all positions in the text."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """Number in a text with its unit."""

    text: str
    """Quantity as written, including a unit that follows the number."""
    value: float
    """Number with its sign and magnitude, in the unit as written."""
    step: float
    """Value of one unit of the last digit: 0.01 for 1.09, 0.1 million for 3.6 million."""
    unit: Unit | None
    """Unit; None for a bare number."""
    is_integer: bool
    """Whether the number is written as an integer and without a magnitude word."""
    is_yearly: bool
    """Whether a word such as "annual" or "each year" occurs near the number."""
    bound: tuple[int, bool] | None = None
    """Side (1: lower bound, -1: upper bound) and whether the bound itself is included; None if the quantity is not a
    bound.
    """
    bounded: str = ""
    """Quantity as written with the words that make it a bound ("more than 3 K"); empty if it is not a bound."""
    has_plus_sign: bool = False
    """Whether the number has a plus sign."""
    is_year: bool = False
    """Whether the number is certainly a year, for example the end of a period (1901-2018)."""
    is_in_words: bool = False
    """Whether the quantity is a fraction, multiple, month or rank written in words without digits."""
    is_change: bool = False
    """Whether the quantity is certainly a temperature change rather than a temperature."""
    is_margin: bool = False
    """Whether the quantity is the margin of another one ("± 2.1 days") or is called its uncertainty."""

    @property
    def full_text(self) -> str:
        """Quantity as written, with the words that make it a bound if it is one."""
        return self.bounded or self.text


def find_quantities(text: str, context: str = "") -> tuple[Quantity, ...]:
    """Return the quantities in a text, in order.

    A number word counts only if it is below a hundred and a unit or magnitude follows ("two degrees"). Fractions,
    multiples, months and ranks in words ("two-thirds") are excluded.

    Args:
        text: One sentence or more.
        context: Longer text that contains ``text``; it decides the meaning of commas and points if ``text`` is
            ambiguous.
    """
    return tuple(quantity for quantity in split_at_quantities(text, context)[1] if not quantity.is_in_words)


def split_at_quantities(text: str, context: str = "") -> tuple[tuple[str, ...], tuple[Quantity, ...]]:
    """Split a text at its quantities, including fractions, multiples, months and ranks in words.

    Returns:
        Pieces of text before, between and after the quantities, and the quantities.
    """
    plain_text, located_quantities = _locate_quantities(text, context)
    selected_quantities = [
        located_quantity
        for located_quantity in located_quantities
        if located_quantity.quantity.unit or located_quantity.quantity.text.lower() not in NUMBER_WORDS
    ]
    starts, ends = (
        [located_quantity.start for located_quantity in selected_quantities],
        [located_quantity.end for located_quantity in selected_quantities],
    )
    pieces = tuple(plain_text[start:end] for start, end in zip([0, *ends], [*starts, len(plain_text)], strict=True))
    return pieces, tuple(located_quantity.quantity for located_quantity in selected_quantities)


def find_foreign_quantities(sentence: str, passages: Sequence[str]) -> tuple[str, ...]:
    """Return the quantities in a sentence, as written, that no passage confirms; see the rules of this module.

    Args:
        sentence: Sentence with or without citations.
        passages: Supporting texts, and texts whose quantities may be repeated, such as the claim or question.
    """
    source_quantities = [
        located_quantity.quantity for text in passages for located_quantity in _locate_quantities(text)[1]
    ]
    foreign_quantities = (
        quantity
        for quantity in find_quantities(sentence)
        if not any(confirms(source_quantity, quantity) for source_quantity in source_quantities)
    )
    return tuple(dict.fromkeys(quantity.full_text for quantity in foreign_quantities))


def confirms(source: Quantity, target: Quantity) -> bool:
    """Return whether the quantity ``source`` of a passage confirms ``target`` of a sentence, by the module's rules."""
    return any(
        _confirms_in_unit(converted_source, target) for converted_source in _converted_temperatures(source, target)
    )


def _converted_temperatures(source: Quantity, target: Quantity) -> Iterator[Quantity]:
    """Yield ``source`` converted to the scale of ``target``: as a temperature change, then as a temperature.

    The second is omitted if either quantity is certainly a change. Without two different temperature scales,
    ``source`` is yielded unchanged.
    """
    kinds = [quantity.unit.kind if quantity.unit else "" for quantity in (source, target)]
    if source.unit is None or target.unit is None or kinds[0] == kinds[1] or not set(kinds) <= set(TEMPERATURE_SCALES):
        yield source
        return
    (source_degree, source_zero), (target_degree, target_zero) = (TEMPERATURE_SCALES[kind] for kind in kinds)
    change = source.value * source_degree / target_degree
    unit = replace(source.unit, kind=target.unit.kind)
    yield replace(source, value=change, unit=unit)
    temperature = (source.value - source_zero) * source_degree / target_degree + target_zero
    if not (source.is_change or target.is_change or unit.rate) and temperature * target.value >= 0:
        yield replace(source, value=temperature, unit=unit)


def _confirms_in_unit(source: Quantity, target: Quantity) -> bool:
    """Return whether ``source`` confirms ``target``; temperatures must be in the same scale."""
    if target.value < 0 <= source.value or (target.has_plus_sign and source.value < 0):
        return False
    if source.is_margin and not target.is_margin:
        return False
    if target.bound is not None and source.bound is not None and target.bound[0] != source.bound[0]:
        return False
    is_decade = source.unit is not None and source.unit.kind == "span"
    if _CENTURY.search(target.text) and (is_decade or source.is_year):
        century = int((source.value if is_decade else source.value - 1) // 100) + 1
        if century == target.value:
            return True
    value = source.value
    if target.unit is not None:
        if source.unit is None:
            return target.unit.kind == "day" and source.value == target.value
        if {source.unit.kind, target.unit.kind} == {"share", "times"}:
            return _is_same_change(*((source, target) if target.unit.kind == "share" else (target, source)))
        if not source.unit.is_kind_of(target.unit):
            return False
        rates = {source.unit.rate, target.unit.rate}
        if len(rates) > 1 and not (rates == {"", "yr"} and source.is_yearly and target.is_yearly):
            return False
        value *= source.unit.factor / target.unit.factor
    if target.bound is not None and source.bound is None:
        return _is_near_bound(value, target, *target.bound)
    if target.unit is None and (source.unit is not None or target.is_integer):
        return abs(value) == abs(target.value)
    if source.is_in_words and source.step > target.step:
        target = replace(target, step=source.step)
    return _is_equal_after_rounding(value, target)


def _is_same_change(multiple: Quantity, share: Quantity) -> bool:
    """Return whether a multiple and a percentage express the same change: doubled is +100%, halved is -50%."""
    return _is_equal_after_rounding(100 * (multiple.value - 1), share)


def _is_near_bound(value: float, target: Quantity, side: int, is_inclusive: bool) -> bool:
    """Return whether a value exceeds a bound by at most one unit of the bound's last non-zero digit.

    This limit does not apply to bounds in words ("more than half", "more than doubled").
    """
    bound = target.value
    if target.is_in_words:
        return side * (value - bound) > -0.5 * target.step
    if bound >= 0:
        value = abs(value)  # "fell by more than 3 K" may stand for -3.4 K
    step = target.step
    while bound and target.is_integer and bound % (10 * step) == 0:
        step *= 10
    excess = side * (value - bound)
    return 1e-9 * step < excess <= step * (1 + 1e-9) or (is_inclusive and _is_equal_after_rounding(value, target))


def _is_equal_after_rounding(value: float, target: Quantity) -> bool:
    return abs(abs(value) - abs(target.value)) <= 0.5 * target.step * (1 + 1e-9)


@dataclass(frozen=True, slots=True)
class _LocatedQuantity:
    """Quantity with its position in the text."""

    start: int
    end: int
    quantity: Quantity
    magnitude: float
    looks_like_year: bool


@lru_cache(maxsize=512)
def _locate_quantities(text: str, context: str = "") -> tuple[str, tuple[_LocatedQuantity, ...]]:
    """Return the text with repaired numbers, and all its quantities, including number words without units."""
    text = _repair_numbers(text)
    plain_text = text.translate(_CHARACTERS)
    masked_text = _NO_QUANTITY.sub(lambda match: " " * len(match[0]), plain_text)
    located_quantities = list(
        _find_quantities(
            text, plain_text, masked_text, detect_number_format(masked_text, context.translate(_CHARACTERS))
        )
    )
    years = _find_year_indices(plain_text, located_quantities)
    for left_index in range(len(located_quantities) - 2, -1, -1):
        if left_index not in years:
            located_quantities[left_index] = _inherit_from_right(
                plain_text, located_quantities[left_index], located_quantities[left_index + 1]
            )
    for year in years:
        located_quantities[year] = replace(
            located_quantities[year], quantity=replace(located_quantities[year].quantity, is_year=True)
        )
    has_inherited_unit = False
    for right_index in range(1, len(located_quantities)):
        original_quantity, located_quantities[right_index] = (
            located_quantities[right_index],
            _inherit_from_left(
                plain_text,
                located_quantities[right_index - 1],
                located_quantities[right_index],
                has_inherited_unit=has_inherited_unit,
            ),
        )
        has_inherited_unit = located_quantities[right_index] is not original_quantity
    for index, (end, located_quantity) in enumerate(
        zip([0, *(quantity.end for quantity in located_quantities)], located_quantities, strict=False)
    ):
        gap = plain_text[end : located_quantity.start]
        if (index and _MARGIN.fullmatch(gap)) or (_UNCERTAINTY.search(gap) and not located_quantity.looks_like_year):
            quantity = replace(located_quantity.quantity, is_margin=True)
            located_quantities[index] = replace(located_quantity, quantity=quantity)
    ends = [0, *(located_quantity.end for located_quantity in located_quantities)]
    return plain_text, tuple(
        replace(
            located_quantity, quantity=_drop_misread_bound(located_quantity, plain_text[end : located_quantity.start])
        )
        for located_quantity, end in zip(located_quantities, ends, strict=False)
    )


def _repair_numbers(text: str) -> str:
    """Convert LaTeX to plain characters, join numbers that were split, and complete shortened years."""

    def join_decimal(match: re.Match[str]) -> str:
        return match[1] + match[2] if _has_unit_after(match.string, match.end()) else match[0]

    def join_period(match: re.Match[str]) -> str:
        first_year, last_year = (match[group].replace(" ", "") for group in (1, 3))
        return (
            first_year + match[2] + last_year if _EARLIEST <= int(first_year) < int(last_year) <= _LATEST else match[0]
        )

    def complete_period(match: re.Match[str]) -> str:
        first_year, dash, last_digits = match.groups()
        is_year = last_digits > first_year[2:] and not _has_unit_after(match.string, match.end())
        return first_year + dash + first_year[:2] + last_digits if is_year else match[0]

    joined_text = _SPLIT_PERIOD.sub(join_period, _SPLIT_DECIMAL.sub(join_decimal, plain_latex(text)))
    return _SHORT_PERIOD.sub(complete_period, joined_text)


def _has_unit_after(text: str, position: int) -> bool:
    """Return whether a unit or magnitude follows the number that ends at ``position``."""
    start = max(0, position - _MAX_UNIT_LENGTH)  # Some units depend on the digits before them.
    plain_text, position = text[start : position + _MAX_UNIT_LENGTH].translate(_CHARACTERS), position - start
    _, end = read_magnitude(plain_text, position, money=False)
    return end > position or read_unit(plain_text, position, bracketed=False)[0] is not None


def _find_year_indices(plain_text: str, located_quantities: Sequence[_LocatedQuantity]) -> set[int]:
    """Return the indices of quantities that are certainly years: the ends of periods, and years after "in"."""
    indices: set[int] = set()
    for index, (left, right) in enumerate(pairwise(located_quantities)):
        if not left.looks_like_year:
            continue
        gap, text_before = plain_text[left.end : right.start], plain_text[max(0, left.start - 12) : left.start]
        is_period = bool(_RANGE.fullmatch(gap) or (gap.strip() in _AND and _BETWEEN.search(text_before)))
        if not is_period and gap.strip() in (",", *_AND, ", and") and index + 2 < len(located_quantities):
            following_quantity = located_quantities[index + 2]  # "1901, 1990 to 330 Gt"
            is_period = abs(following_quantity.quantity.value) < 1000 and bool(
                _RANGE.fullmatch(plain_text[right.end : following_quantity.start])
            )
        if is_period and right.looks_like_year and left.quantity.value < right.quantity.value:
            indices |= {index, index + 1}
        elif _IN_YEAR.search(text_before) and abs(right.quantity.value) < 1000:
            indices.add(index)  # but "in 1500 to 2500 mm"
    return indices


def _drop_misread_bound(located_quantity: _LocatedQuantity, text_between: str) -> Quantity:
    """Return a quantity, dropping a bound that was misread.

    A bound is misread before extents ("over ten years") and before the year of a comparison ("6% less than 2021").
    ``text_between`` is the text between the preceding number and this one.
    """
    quantity = located_quantity.quantity
    if (
        located_quantity.looks_like_year
        and quantity.bounded
        and text_between.strip()
        and quantity.bounded.startswith(text_between.strip())
    ):
        return replace(quantity, bound=None, bounded="")
    is_extent = located_quantity.looks_like_year or (
        quantity.unit is not None and quantity.unit.kind in _EXTENTS and not quantity.unit.rate
    )
    if is_extent and quantity.bounded[:4].lower() == "over":
        return replace(quantity, bound=None, bounded="")
    return quantity


def _find_quantities(
    text: str, plain_text: str, masked_text: str, number_format: NumberFormat
) -> Iterator[_LocatedQuantity]:
    """Yield numbers with the units directly after them, and quantities expressed in words."""
    worded_quantities: list[WordedQuantity] = []
    for worded_quantity in sorted(find_worded_quantities(masked_text)):
        if not worded_quantities or worded_quantity.start >= worded_quantities[-1].end:
            worded_quantities.append(worded_quantity)
    position = 0
    while match := NUMBER.search(masked_text, position):
        while worded_quantities and worded_quantities[0].start <= match.start():
            worded_quantity = worded_quantities.pop(0)
            yield _locate_worded(text, plain_text, worded_quantity)
            position = worded_quantity.end
        if match.start() < position:
            continue
        located_quantity = _locate_number(text, plain_text, match, number_format)
        if worded_quantities and worded_quantities[0].start < located_quantity.end:
            # A number whose "unit" is the beginning of another figure ends before it.
            located_quantity = replace(located_quantity, end=worded_quantities[0].start)
        yield located_quantity
        position = located_quantity.end
    yield from (_locate_worded(text, plain_text, worded_quantity) for worded_quantity in worded_quantities)


def _locate_worded(text: str, plain_text: str, worded_quantity: WordedQuantity) -> _LocatedQuantity:
    bound, bound_start, bound_end = (None, 0, 0)
    if worded_quantity.kind in ("share", "times"):
        bound, bound_start, bound_end = _find_bound(plain_text, worded_quantity.start, worded_quantity.end)
    source_text = text[worded_quantity.start : worded_quantity.end].strip()
    quantity = Quantity(
        text=source_text,
        value=worded_quantity.value,
        step=worded_quantity.step,
        unit=Unit(worded_quantity.kind, 1.0),
        is_integer=False,
        is_yearly=False,
        is_in_words=not any(map(str.isdigit, source_text)),
        bound=bound,
        bounded=text[bound_start:bound_end].strip() if bound else "",
    )
    return _LocatedQuantity(worded_quantity.start, worded_quantity.end, quantity, 1.0, looks_like_year=False)


def _locate_number(text: str, plain_text: str, match: re.Match[str], number_format: NumberFormat) -> _LocatedQuantity:
    number = match[0].lower()
    numeral = read_numeral(match, number_format, has_unit=_has_unit_after(plain_text, match.end()))
    looks_like_year = bool(_YEAR_LIKE.fullmatch(number))
    money, start = read_currency_before(plain_text, match.start())
    value, decimals = numeral.value, numeral.decimals
    if number == "10" and (power := read_power_of_ten(plain_text, numeral.end)):
        value, magnitude, end = 1.0, *power
    else:
        magnitude, end = read_magnitude(plain_text, numeral.end, money=money is not None)
    unit, end = (
        read_rate(money, plain_text, end) if money else read_unit(plain_text, end, bracketed=not looks_like_year)
    )
    if number == "one" and unit is not None and unit.kind in ("time", "days"):
        unit, end = None, match.end()  # "one day" is seldom a measurement
    is_negative = not looks_like_year and bool(_SIGN.search(plain_text[max(0, start - 2) : start]))
    is_positive = plain_text[start - 1 : start] == "+" and not plain_text[max(0, start - 2) : start - 1].endswith(
        tuple("0123456789")
    )
    start -= is_negative or is_positive
    if not is_negative and (sign_word := _WORD_SIGN.search(plain_text[max(0, start - 10) : start])):
        is_negative, start = True, start - len(sign_word[0])
    bound, bound_start, bound_end = _find_bound(plain_text, start, end)
    quantity = Quantity(
        text=CLOSING_BRACKET.sub("", text[start:end]).strip(),
        value=(-value if is_negative else value) * magnitude,
        step=10.0**-decimals * magnitude,
        unit=unit,
        is_integer=not decimals and magnitude == 1,
        is_yearly=bool(_YEARLY_WORDS.search(plain_text[max(0, start - _MAX_WORD_DISTANCE) : end + _MAX_WORD_DISTANCE])),
        bound=bound,
        bounded=text[bound_start:bound_end].strip() if bound else "",
        has_plus_sign=is_positive,
        is_change=unit is not None and unit.kind in TEMPERATURE_SCALES and _is_change(plain_text, start, end),
    )
    return _LocatedQuantity(start, end, quantity, magnitude, looks_like_year and unit is None and magnitude == 1)


def _is_change(plain_text: str, start: int, end: int) -> bool:
    """Return whether the words around a temperature state that it is a change."""
    return bool(_CHANGE_BEFORE.search(plain_text, max(0, start - 40), start) or _CHANGE_AFTER.match(plain_text, end))


def _find_bound(plain_text: str, start: int, end: int) -> tuple[tuple[int, bool] | None, int, int]:
    """Return the bound expressed by the words around a number, and start and end of the expression."""
    text_before = plain_text[max(0, start - 40) : start]
    for pattern, bound in _BOUNDS:
        if match := pattern.search(text_before):
            return bound, start - len(match[0]), end
    if match_after := _BOUND_AFTER.match(plain_text, end):
        return (1 if match_after["over"] else -1, True), start, match_after.end()
    return None, start, end


def _inherit_from_right(plain_text: str, left: _LocatedQuantity, right: _LocatedQuantity) -> _LocatedQuantity:
    """Return the left quantity with the unit and magnitude of the right one if both belong to one range or list.

    Otherwise, return the left quantity unchanged. The magnitude is the factor of a word such as ``million``.
    """
    left_unit, right_unit = left.quantity.unit, right.quantity.unit
    if right.quantity.is_in_words or left.quantity.is_in_words:
        return left
    if left_unit is not None and (not left_unit.is_money or right_unit is not None):
        return left
    if left.magnitude != 1 or (right_unit is None and right.magnitude == 1):
        return left
    gap = plain_text[left.end : right.start]
    if not _RANGE.fullmatch(gap) and (left.looks_like_year or not _LIST.fullmatch(gap)):
        return left
    if "(" in gap and left.quantity.is_integer:
        return left  # "in rank 3 (5%)"
    is_larger = abs(left.quantity.value) * right.magnitude > abs(right.quantity.value)
    if right.magnitude != 1 and is_larger and not _MARGIN.fullmatch(gap):
        return left  # "from 200 to 3 million", but "12 ± 3 million"
    return _apply_unit(left, right_unit or left_unit, right.magnitude)


def _inherit_from_left(
    plain_text: str, left: _LocatedQuantity, right: _LocatedQuantity, *, has_inherited_unit: bool
) -> _LocatedQuantity:
    """Return the right quantity with the unit of the left one if it follows the left one in brackets.

    The same applies to the second amount of a range of money. Otherwise, the right quantity is returned unchanged. In
    ``1.1 °C [0.8 to 1.3]``, both numbers in brackets get the unit of the first number. ``has_inherited_unit`` is True
    if the left quantity got its unit in this way, in the same brackets.
    """
    left_unit = left.quantity.unit
    if left_unit is None or left.quantity.is_in_words or right.quantity.unit is not None or right.looks_like_year:
        return right
    gap = plain_text[left.end : right.start]
    if left_unit.is_money and _RANGE.fullmatch(gap):
        return _apply_unit(right, left_unit, 1.0)
    if right.magnitude == 1 and (_BRACKET.fullmatch(gap) or (has_inherited_unit and _RANGE.fullmatch(gap))):
        return _apply_unit(right, left_unit, left.magnitude)
    return right


def _apply_unit(located_quantity: _LocatedQuantity, unit: Unit | None, magnitude: float) -> _LocatedQuantity:
    quantity = replace(
        located_quantity.quantity,
        unit=unit,
        value=located_quantity.quantity.value * magnitude,
        step=located_quantity.quantity.step * magnitude,
        is_integer=located_quantity.quantity.is_integer and magnitude == 1,
    )
    return replace(located_quantity, quantity=quantity, magnitude=magnitude)
