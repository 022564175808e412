"""Numbers with their units: which quantities of a sentence its passages do not have.

A quantity is a number as written, the magnitude word behind it (``million``) and the unit behind that (``mm yr⁻¹``).
Both ends of a range carry its unit, and so do the numbers of a list and of a bracket (``1.09 [0.95 to 1.20] °C``).
Names that contain digits (CO2, RCP8.5, SSP5-8.5, PM2.5, AR6, COP28), references (Figure 3.2) and citations ([3]) are
no quantities.

When a passage has a quantity of a sentence:

- With a unit, the passage must have the same kind of unit, and the same value once both are in one unit: 0.2 m is
  20 cm. Degrees Celsius and kelvins are one kind (differences of temperature); degrees of an unnamed scale are of
  either scale. Mass is of the substance that is named (CO2, CO2 equivalents, carbon, methane), or of any.
- Values are equal when rounding the passage's to the digits of the sentence gives the sentence's: 1.1 °C for 1.09 °C,
  but not 1.09 °C for 1.1 °C. A bare whole number (a year, a count) must be exactly the same.
- A number without a unit may have any unit in the passage.
- A number with a minus sign needs one in the passage; without one, words ("fell by") may carry the sign.
- "37 Gt" beside "annual" or "each year" is as good as "37 Gt per year".
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from climassay.grounding.units import CLOSING_BRACKET, Unit, money_before, read_magnitude, read_unit

_COUNTING = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_WORDS = {word: float(number) for number, word in enumerate(_COUNTING, start=1)}
_NUMBER = re.compile(
    r"\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d{1,3}(?: \d{3})+(?![\d.,]?\d)|\d+(?:\.\d+)?|(?<![\w.])\.\d+"
    rf"|\b(?:{'|'.join(_WORDS)})\b",
    re.IGNORECASE,
)
_YEAR_LIKE = re.compile(r"[12]\d{3}")
_SIGN = re.compile(r"(?:^|(?<=[\s(\[~≈<>=]))[-−–]$")
_YEARLY = re.compile(r"\b(?:annual(?:ly)?|yearly|(?:per|a|each|every) year)\b|\byr\b|/yr", re.IGNORECASE)
_NEAR = 80
"""Characters on either side in which a word for "every year" belongs to a number."""

# Spans whose digits are no quantities.
_NO_QUANTITY = re.compile(
    r"\[\d+(?:\s*[,;]\s*\d+)*\]"  # citations
    r"|\{[^{}]*\}"  # the IPCC's references
    r"|\b(?i:fig(?:ure|s)?|table|chapter|section|box|equation|annex|appendix|faq)(?:s|es|\.)?\s*"
    r"[A-Z]{0,3}\.?\d+[\d.]*\d*[a-z]?\b(?:\s*(?:and|to|–|-)\s*\d+\.\d+[\d.]*)*"
    r"|\b(?:RCP|SSP|COP|CMIP|Working Group|PM(?= ?(?:2\.5|10)\b))[ -]?\d[\d.]*(?:[-–]\d[\d.]*)?"
    r"|\b(?:CO|SO|CH|N|O|H|SF|NF|NH|NO) [2-6]\b"
    r"|\b[A-Za-z]+\d\w*(?:[.\-–]\d\w*)*"  # names such as CO2, SSP5-8.5
    r"|\b[A-Z](?:\.\d+)+|\b\d+(?:\.\d+){2,}"  # paragraphs such as B.1.2, sections such as 9.2.2
    r"|\b(?!(?i:pre|post|mid|sub|non|near|over|under|mm|cm|k?m|pp[mbt]v?|[CFK]|percent|cent|degrees?)-)"
    r"[A-Za-z]+-(?![12]\d{3}\b)\d[\d.]*"  # names such as carbon-14
    r"|\b(?:W\s?m|yr|kg|ha|km)\s?[-−–]\s?[123]\b(?!\.?\d)|(?<=\bkm) 2\b"  # exponents of units
)
_HEDGE = (
    r"(?:about|around|roughly|nearly|almost|from|between|likely|very likely|likely range(?: of)?|range(?: of)?|~|≈)"
)
_RANGE = re.compile(r"\s*(?:–|—|-|−|to|through|±|\+/-)\s*[+\-−–]?\s*")
_LIST = re.compile(rf"\s*(?:,|,?\s*(?:and|or|versus|vs\.?)|[\[(]|;)\s*{_HEDGE}?:?\s*[+\-−–]?\s*", re.IGNORECASE)
_BRACKET = re.compile(rf"\s*[\[(]\s*{_HEDGE}?:?\s*[+\-−–]?\s*", re.IGNORECASE)
_CHARACTERS = str.maketrans("⁻₂₃₄₆\u00a0\u2009\u202f", "-2346   ")
"""One character for one, so that places stay what they are."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its unit, as it stands in a text."""

    text: str
    """As written, the unit included where it stands behind this number."""
    value: float
    """The number with its sign and magnitude, in the unit as written."""
    step: float
    """Value of one unit in its last digit: 0.01 for 1.09, 0.1 million for 3.6 million."""
    unit: Unit | None
    """None for a bare number."""
    whole: bool
    """Written as a plain whole number: no decimals, no magnitude."""
    yearly: bool
    """Whether "annual", "each year" or the like stands near."""


def quantities(text: str) -> tuple[Quantity, ...]:
    """Quantities of a text, in order.

    Number words from "one" to "twelve" are quantities where a unit or magnitude stands behind them ("two degrees").
    """
    return tuple(found for found in _read(text) if found.unit or found.text.lower() not in _WORDS)


def foreign_quantities(sentence: str, passages: Sequence[str]) -> tuple[str, ...]:
    """Quantities of a sentence, as written, that none of the passages has; see the module for what that means.

    Args:
        sentence: What was written, citations included or not.
        passages: The texts it rests on.
    """
    known = [quantity for passage in passages for quantity in _read(passage)]
    foreign = (quantity for quantity in quantities(sentence) if not any(_has(other, quantity) for other in known))
    return tuple(dict.fromkeys(quantity.text for quantity in foreign))


def _has(known: Quantity, wanted: Quantity) -> bool:
    """Whether the quantity ``known`` of a passage backs the quantity ``wanted`` of a sentence."""
    if wanted.value < 0 <= known.value:
        return False
    if wanted.unit is None:
        if known.unit is not None or wanted.whole:
            return abs(known.value) == abs(wanted.value)
        return _rounds_to(known.value, wanted)
    if known.unit is None or not _comparable(known, wanted):
        return False
    return _rounds_to(known.value * known.unit.factor / wanted.unit.factor, wanted)


def _comparable(known: Quantity, wanted: Quantity) -> bool:
    if known.unit is None or wanted.unit is None or not known.unit.is_kind_of(wanted.unit):
        return False
    rates = {known.unit.rate, wanted.unit.rate}
    return len(rates) == 1 or (rates == {"", "yr"} and known.yearly and wanted.yearly)


def _rounds_to(value: float, wanted: Quantity) -> bool:
    return abs(abs(value) - abs(wanted.value)) <= 0.5 * wanted.step * (1 + 1e-9)


@dataclass(frozen=True, slots=True)
class _Place:
    """A number found, before units are passed on to its neighbours."""

    start: int
    end: int
    quantity: Quantity
    magnitude: float
    year_like: bool


@lru_cache(maxsize=512)
def _read(text: str) -> tuple[Quantity, ...]:
    """All quantities, number words without a unit included."""
    plain = text.translate(_CHARACTERS)
    places = list(_places(text, plain))
    for left in range(len(places) - 2, -1, -1):
        places[left] = _from_the_right(plain, places[left], places[left + 1])
    passed_on = False
    for right in range(1, len(places)):
        before, places[right] = (
            places[right],
            _from_the_left(plain, places[right - 1], places[right], passed_on=passed_on),
        )
        passed_on = places[right] is not before
    return tuple(place.quantity for place in places)


def _places(text: str, plain: str) -> Iterator[_Place]:
    """Numbers with the units that stand right behind them."""
    masked = _NO_QUANTITY.sub(lambda match: " " * len(match[0]), plain)
    position = 0
    while match := _NUMBER.search(masked, position):
        yield (place := _place(text, plain, match))
        position = place.end


def _place(text: str, plain: str, match: re.Match[str]) -> _Place:
    number = match[0].lower()
    year_like = bool(_YEAR_LIKE.fullmatch(number))
    money, start = money_before(plain, match.start())
    magnitude, end = read_magnitude(plain, match.end(), money=money is not None)
    unit, end = (money, end) if money else read_unit(plain, end, bracketed=not year_like)
    if number == "one" and unit is not None and unit.kind in ("time", "days"):
        unit, end = None, match.end()  # "one day" is seldom a measurement
    negative = not year_like and bool(_SIGN.search(plain[max(0, start - 2) : start]))
    start -= negative
    decimals = len(number.partition(".")[2])
    value = _WORDS.get(number) or float(number.replace(",", "").replace(" ", ""))
    quantity = Quantity(
        text=CLOSING_BRACKET.sub("", text[start:end]).strip(),
        value=(-value if negative else value) * magnitude,
        step=10.0**-decimals * magnitude,
        unit=unit,
        whole=not decimals and magnitude == 1,
        yearly=bool(_YEARLY.search(plain[max(0, start - _NEAR) : end + _NEAR])),
    )
    return _Place(start, end, quantity, magnitude, year_like and unit is None and magnitude == 1)


def _from_the_right(plain: str, left: _Place, right: _Place) -> _Place:
    """The left number with the unit and magnitude of the right one, where both belong to one range or list."""
    own, given = left.quantity.unit, right.quantity.unit
    if own is not None and (not own.is_money or given is not None):
        return left
    if left.magnitude != 1 or (given is None and right.magnitude == 1):
        return left
    gap = plain[left.end : right.start]
    if not _RANGE.fullmatch(gap) and (left.year_like or not _LIST.fullmatch(gap)):
        return left
    if "(" in gap and left.quantity.whole:
        return left  # "in rank 3 (5%)"
    if right.magnitude != 1 and abs(left.quantity.value) * right.magnitude > abs(right.quantity.value):
        return left  # "from 200 to 3 million"
    return _with_unit(left, given or own, right.magnitude)


def _from_the_left(plain: str, left: _Place, right: _Place, *, passed_on: bool) -> _Place:
    """The right number with the unit of the left one: in a bracket behind it (``1.1 °C [0.8 to 1.3]``), or money.

    Args:
        plain: The text.
        left: A number.
        right: The next one.
        passed_on: Whether the left one has its unit from its own left, so that the bracket goes on.
    """
    given = left.quantity.unit
    if given is None or right.quantity.unit is not None or right.year_like:
        return right
    gap = plain[left.end : right.start]
    if given.is_money and _RANGE.fullmatch(gap):
        return _with_unit(right, given, 1.0)
    if right.magnitude == 1 and (_BRACKET.fullmatch(gap) or (passed_on and _RANGE.fullmatch(gap))):
        return _with_unit(right, given, left.magnitude)
    return right


def _with_unit(place: _Place, unit: Unit | None, magnitude: float) -> _Place:
    quantity = replace(
        place.quantity,
        unit=unit,
        value=place.quantity.value * magnitude,
        step=place.quantity.step * magnitude,
        whole=place.quantity.whole and magnitude == 1,
    )
    return replace(place, quantity=quantity, magnitude=magnitude)
