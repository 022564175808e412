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
- A bound ("more than 3 K", "at most 2 °C") needs a figure on its side and near enough to be summed up by it, or the
  same bound; never the opposite one. "Below" and "above" also take the figure itself: thresholds are named so. "Over"
  is a bound but for years, times, lengths and areas, over which something may happen or extend.
- Years take no unit from what follows: "from 1.3 mm in 1901 to 1971 to 3.7 mm". A period may name its last year by two
  digits (2006–18). A century ("the 19th century") is also that of a period or decade within it.
- Digits that the reader of a PDF has torn apart ("201 0–2019", "1. 5 °C") are joined first.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Unit:
    """What a number counts."""

    kind: str
    """Units of one kind convert into each other; ``mass:CO2`` is a special ``mass``."""
    factor: float
    """Value of 1 in the kind's own unit."""
    rate: str = ""
    """``yr`` (per year, per decade and per century convert), ``d``, ``K`` or nothing."""

    @property
    def is_money(self) -> bool:
        """Whether it is a currency."""
        return self.kind.startswith("money")

    def is_kind_of(self, other: "Unit") -> bool:
        """Whether the two may be compared: the same kind, or one a special case of the other."""
        first, second = sorted((self.kind, other.kind), key=len)
        return first == second or second.startswith(first + ":")


MAGNITUDES = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "mn": 1e6, "bn": 1e9, "tn": 1e12}
_MONEY_LETTERS = {"k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}
_MAGNITUDE = re.compile(
    rf"\s*-?\s*(?P<word>{'|'.join(MAGNITUDES)})\b"
    r"|\s*[×x]\s*10(?:\s*\^\s*|\s+|(?=[-⁰¹²³⁴⁵⁶⁷⁸⁹]))(?P<power>[-−–]?[\d⁰¹²³⁴⁵⁶⁷⁸⁹]{1,2})(?!\.?\d)",
    re.IGNORECASE,
)
_PLAIN_DIGITS = str.maketrans("−–⁰¹²³⁴⁵⁶⁷⁸⁹", "--0123456789")
_MONEY_LETTER = re.compile(r"\s?([kmbt])\b", re.IGNORECASE)
_CURRENCIES = {"$": "USD", "us$": "USD", "usd": "USD", "€": "EUR", "eur": "EUR", "£": "GBP", "gbp": "GBP"}
_CURRENCY = re.compile(r"(US\$|USD|EUR|GBP|[$€£])\s?$", re.IGNORECASE)

CLOSING_BRACKET = re.compile(r"\s*[\])]")
_GAP = r"\s*-?\s*"
_SQUARE = r"(?:\s?\^?[2²](?!\.?\d))"
_CUBE = r"(?:\s?\^?[3³](?!\.?\d))"
_SQUARE_METRE = (
    rf"(?:\s?m\s?\^?\s?[-−–]\s?[2²]|\s?/\s?m{_SQUARE}"
    rf"|(?i:\s*(?:per|an?|each|every)\s+(?:square\s+met(?:re|er)|met(?:re|er)\s+squared|m{_SQUARE})))"
)


def _unit(kind: str, factor: float, pattern: str) -> tuple[re.Pattern[str], Unit]:
    return re.compile(rf"{_GAP}(?:{pattern})"), Unit(kind, factor)


# Tried in this order: longer spellings before their beginnings ("W m-2" before "W", "m2" before "m").
_UNITS = (
    _unit("share", 1, r"%(?:[ -]points?\b)?|(?i:per ?cent|percentage points?|pct)\b"),
    _unit(
        "temperature:F", 1, r"(?:°|º)\s?F\b|(?i:deg(?:ree)?s?\s*|°\s?|º\s?)(?i:fahrenheit)\b|(?i:degrees?)\s+F\b|F\b"
    ),
    _unit(
        "temperature:C",
        1,
        r"(?:°|º|\bo )\s?C\b|℃|(?i:deg(?:ree)?s?\s*|°\s?|º\s?)(?i:celsius|centigrade|kelvin)\b|(?i:degrees?)\s+[CK]\b"
        r"|degC\b|(?i:celsius|kelvins?)\b|[CK]\b(?!\.\w)",
    ),
    _unit("angle", 1, r"(?:°|º|(?i:degrees?))\s?(?:[NSEW]\b|(?i:north|south|east|west|latitude|longitude)\b)"),
    _unit("temperature", 1, r"°|º|(?i:degrees?)\b"),
    _unit("flux", 1, rf"W{_SQUARE_METRE}|(?i:watts?){_SQUARE_METRE}"),
    _unit("flux", 1e-3, rf"mW{_SQUARE_METRE}"),
    _unit("mixing", 1, r"(?i:ppmv?)\b|(?i:parts\s+per\s+million)\b"),
    _unit("mixing", 1e-3, r"(?i:ppbv?)\b|(?i:parts\s+per\s+billion)\b"),
    _unit("mixing", 1e-6, r"(?i:pptv?)\b|(?i:parts\s+per\s+trillion)\b"),
    _unit("area", 1e12, rf"Mkm{_SQUARE}"),
    _unit("area", 1e6, rf"km{_SQUARE}|(?i:square\s+kilomet(?:re|er)s?|sq\.?\s?km)\b"),
    _unit("area", 2589988.110336, r"(?i:square\s+miles?|sq\.?\s?mi)\b"),
    _unit("area", 1e10, r"Mha\b|(?i:million\s+hectares?)\b"),
    _unit("area", 1e4, r"ha\b|(?i:hectares?)\b"),
    _unit("area", 4046.8564224, r"(?i:acres?)\b"),
    _unit("area", 1, rf"m{_SQUARE}|(?i:square\s+met(?:re|er)s?)\b"),
    _unit("volume", 1e9, rf"km{_CUBE}|(?i:cubic\s+kilomet(?:re|er)s?)\b"),
    _unit("volume", 4168181825.44, r"(?i:cubic\s+miles?|cu\.?\s?mi)\b"),
    _unit("volume", 1, rf"m{_CUBE}|(?i:cubic\s+met(?:re|er)s?)\b"),
    _unit("length", 1e-3, r"mm\b|(?i:millimet(?:re|er)s?)\b"),
    _unit("length", 1e-2, r"cm\b|(?i:centimet(?:re|er)s?)\b"),
    _unit("length", 1e-9, r"nm\b|(?i:nanomet(?:re|er)s?)\b"),
    _unit("length", 1e-6, r"[µμ]m\b|(?i:micromet(?:re|er)s?|microns?)\b"),
    _unit("length", 1e3, r"km\b(?!/h)|(?i:kilomet(?:re|er)s?)\b"),
    _unit("length", 1, r"m\b(?!\s?/\s?s)|(?i:met(?:re|er)s?)\b"),
    _unit("length", 0.0254, r"in\b(?=[.)])|(?i:inch(?:es)?)\b"),
    _unit("length", 0.3048, r"ft\b|(?i:feet|foot)\b"),
    _unit("length", 1609.344, r"(?i:miles?)\b(?!\s+(?:per\s+hour|an\s+hour))"),
    _unit("speed", 1, r"m\s?/\s?s\b|m\s?s\s?[-−–]\s?[1¹]|(?i:met(?:re|er)s?\s+(?:per|a)\s+second)\b"),
    _unit(
        "speed",
        1 / 3.6,
        r"(?i:km\s?/\s?h|kph|kmh)\b|km\s?h\s?[-−–]\s?[1¹]|(?i:kilomet(?:re|er)s?\s+(?:per|an)\s+hour)\b",
    ),
    _unit("speed", 0.44704, r"(?i:mph|miles?\s+(?:per|an)\s+hour)\b"),
    _unit("mass", 1e9, r"(?:Gt|Pg)(?![a-z])|(?i:gigaton(?:ne)?s?|petagrams?)\b"),
    _unit("mass", 1e6, r"(?:Mt|Tg)(?![a-z])|(?i:megaton(?:ne)?s?|teragrams?)\b"),
    _unit("mass", 1e3, r"kt(?=CO|C\b|\b)|(?i:kiloton(?:ne)?s?)\b"),
    _unit("mass", 1e-3, r"kg\b|(?i:kilograms?|kilos?)\b"),
    _unit("mass", 1, r"t(?=CO|C\b|\b)|(?i:(?:metric\s+)?ton(?:ne)?s?)\b"),
    _unit("energy", 1e21, r"ZJ\b|(?i:zettajoules?)\b"),
    _unit("energy", 1e18, r"EJ\b|(?i:exajoules?)\b"),
    _unit("energy", 3.6e15, r"TWh\b|(?i:terawatt[ -]?hours?)\b"),
    _unit("energy", 3.6e12, r"GWh\b|(?i:gigawatt[ -]?hours?)\b"),
    _unit("energy", 3.6e9, r"MWh\b|(?i:megawatt[ -]?hours?)\b"),
    _unit("energy", 3.6e6, r"kWh\b|(?i:kilowatt[ -]?hours?)\b"),
    _unit("energy", 1, r"J\b|(?i:joules?)\b"),
    _unit("power", 1e12, r"TW\b|(?i:terawatts?)\b"),
    _unit("power", 1e9, r"GW\b|(?i:gigawatts?)\b"),
    _unit("power", 1e6, r"MW\b|(?i:megawatts?)\b"),
    _unit("power", 1e3, r"kW\b|(?i:kilowatts?)\b"),
    _unit("power", 1, r"W\b|(?i:watts?)\b"),
    _unit("pressure", 100, r"(?:hPa|mbar)\b|(?i:hectopascals?|millibars?)\b"),
    _unit("pressure", 1, r"Pa\b|(?i:pascals?)\b"),
    _unit("time", 1e6, r"(?:Myr|My|Ma|Mya|mya)\b|(?i:million[ -]years?)\b"),
    _unit("time", 1e3, r"(?:kyr|ky|ka|kya)\b|(?i:millenni(?:a|um))\b"),
    _unit("time", 100, r"(?i:centur(?:y|ies))\b"),
    _unit("time", 10, r"(?i:decades?)\b"),
    _unit("time", 1, r"(?:yr|yrs|y)\b(?!\s?[-−–]\s?[1¹])|(?i:years?)\b"),
    _unit("time", 1 / 12, r"(?i:months?)\b"),
    _unit("days", 7, r"(?i:weeks?)\b"),
    _unit("days", 1, r"d\b|(?i:days?)\b"),
    _unit("days", 1 / 24, r"(?<![12]\d{3})h\b|(?i:hours?|hrs?)\b"),
    _unit("money:USD", 1, r"(?:USD|US\s?\$)|(?i:(?:US )?dollars?)\b"),
    _unit("money:EUR", 1, r"(?:EUR\b|€)|(?i:euros?)\b"),
    _unit("ordinal", 1, r"(?:st|nd|rd|th)\b(?:[\s-]+(?i:centur(?:y|ies))\b)?"),
    _unit("span", 1, r"(?<=\d)'?s\b"),
)
_SUBSTANCES = (
    ("CO2e", r"CO\s?2[\s-]*(?:eq(?:uivalents?)?|e)\b|(?i:carbon\s+dioxide[\s-]+equivalents?)\b"),
    ("CO2", r"CO\s?2\b|(?i:carbon\s+dioxide)\b"),
    ("CH4", r"CH\s?4\b|(?i:methane)\b"),
    ("N2O", r"N\s?2\s?O\b|(?i:nitrous\s+oxide)\b"),
    ("C", r"C\b|(?i:carbon)\b"),
)
_SUBSTANCE = tuple((name, re.compile(rf"\s*(?i:of\s+)?(?:{pattern})")) for name, pattern in _SUBSTANCES)
_PER = r"\s*(?:/\s?|(?i:(?:per|a|each|every)\s+))"
_POWER = r"\s?[-−–]\s?[1¹](?!\.?\d)"
_RATES = (
    (re.compile(rf"{_PER}(?:(?i:years?)|yr|y|a)\b|\s*(?:yr|y|a){_POWER}|\s*(?i:annually|yearly)\b"), "yr", 1.0),
    (re.compile(rf"{_PER}(?i:decade|dec)\b|\s*(?i:decade){_POWER}"), "yr", 0.1),
    (re.compile(rf"{_PER}(?i:century)\b|\s*(?i:century){_POWER}"), "yr", 0.01),
    (re.compile(rf"{_PER}(?:(?i:day)|d)\b|\s*(?:d|(?i:day)){_POWER}"), "d", 1.0),
    (re.compile(rf"{_PER}(?:°\s?C|K|(?i:degrees?(?:\s+celsius)?))|\s*(?:°\s?C|K){_POWER}"), "K", 1.0),
)


def read_magnitude(text: str, position: int, *, money: bool) -> tuple[float, int]:
    """Magnitude behind a number, and where it ends; 1 where there is none. After a currency "5m" are five million."""
    if match := _MAGNITUDE.match(text, position):
        word, power = match["word"], match["power"]
        return (MAGNITUDES[word.lower()] if word else 10.0 ** int(power.translate(_PLAIN_DIGITS))), match.end()
    if money and (match := _MONEY_LETTER.match(text, position)):
        return _MONEY_LETTERS[match[1].lower()], match.end()
    return 1.0, position


def money_before(text: str, position: int) -> tuple[Unit | None, int]:
    """The currency that comes before a number, as a unit, and where it begins; None and ``position`` without one."""
    match = _CURRENCY.search(text, max(0, position - 4), position)
    return (Unit(f"money:{_CURRENCIES[match[1].lower()]}", 1.0), match.start()) if match else (None, position)


def read_unit(text: str, position: int, *, bracketed: bool) -> tuple[Unit | None, int]:
    """The unit behind a number, with its substance and rate, and where it ends; None where there is none.

    ``bracketed``: a closing bracket may come before the unit, as in ``[0.95 to 1.20] °C``.
    """
    closing = CLOSING_BRACKET.match(text, position) if bracketed else None
    start = closing.end() if closing else position
    for pattern, unit in _UNITS:
        match = pattern.match(text, start)
        if match is None:
            continue
        end = match.end()
        if unit.kind == "mass":
            for name, substance in _SUBSTANCE:
                if match := substance.match(text, end):
                    unit, end = replace(unit, kind=f"mass:{name}"), match.end()
                    break
        for per, rate, factor in _RATES:
            if match := per.match(text, end):
                return replace(unit, factor=unit.factor * factor, rate=rate), match.end()
        return unit, end
    return None, position


_COUNTING = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_TEENS = ("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_WORDS = {word: float(number) for number, word in enumerate((*_COUNTING, *_TEENS), start=1)}
_WORDS |= {ten: 10.0 * number for number, ten in enumerate(_TENS, start=2)}
_WORDS = {f"{ten}-{one}": _WORDS[ten] + _WORDS[one] for ten in _TENS for one in _COUNTING[:9]} | _WORDS
_NUMBER = re.compile(
    r"\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d{1,3}(?: \d{3})+(?![\d.,]?\d)|\d+(?:\.\d+)?|(?<![\w.])\.\d+"
    rf"|\b(?:{'|'.join(_WORDS)})\b",
    re.IGNORECASE,
)
_UNDER = r"less|fewer|lower|smaller|below|under"
_OVER = r"more|greater|higher|larger|above|over"
_BOUNDS = tuple(
    (
        re.compile(rf"(?:{before})(?:\s*(?:about|around|roughly|approximately|some|an estimated))?\s*$", re.IGNORECASE),
        bound,
    )
    for before, bound in (
        (r"≥|>=|\bat\s+least|\b(?:no|not)\s+(?:less|fewer|lower)\s+than|\ba\s+minimum\s+of", (1, True)),
        (r"≤|<=|\bat\s+most|\bup\s+to|\b(?:no|not)\s+(?:more|greater|higher)\s+than|\ba\s+maximum\s+of", (-1, True)),
        (rf">|\b(?:{_OVER})\s+than|\bover", (1, False)),
        (rf"<|\b(?:{_UNDER})\s+than", (-1, False)),
        (r"\b(?:above|exceed(?:s|ed|ing)?)", (1, True)),
        (r"\b(?:below|under)", (-1, True)),
    )
)
"""Words before a number that make it a bound: its side (1: up, -1: down), and whether it takes the figure itself."""
_BOUND_BEHIND = re.compile(rf"\s*(?:(?P<over>or\s+(?:{_OVER}))|or\s+(?:{_UNDER}))\b(?!\s+than)", re.IGNORECASE)
_WORD_SIGN = re.compile(r"\b(?:minus|negative)\s+$", re.IGNORECASE)
_YEAR_LIKE = re.compile(r"[12]\d{3}")
_IN_YEAR = re.compile(r"\b(?:in|since|until|years?)\s+$", re.IGNORECASE)
_BETWEEN = re.compile(r"\bbetween\s+$", re.IGNORECASE)
_EXTENTS = ("time", "days", "span", "length", "area", "angle")
"""Kinds of unit over which something may happen or extend."""
_SIGN = re.compile(r"(?:^|(?<=[\s(\[~≈<>=]))[-−–]$")
_YEARLY = re.compile(r"\b(?:annual(?:ly)?|yearly|(?:per|a|each|every) year)\b|\byr\b|/yr", re.IGNORECASE)
_NEAR = 80
"""Characters on either side in which a word for "every year" belongs to a number."""

# Spans whose digits are not quantities.
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
_TORN_POINT = re.compile(r"(?<=[ (\[–-])(\d{1,2}\.) (\d{1,2})(?![\d.,])")
_TORN_YEAR = r"[12](?: ?\d){3}"
_TORN_PERIOD = re.compile(rf"(?<![\w.,])({_TORN_YEAR})(\s?[-–—]\s?|\s?to\s)({_TORN_YEAR})(?![.,]?\d)")
_SHORT_PERIOD = re.compile(r"(?<![\w.,–-])((?:1[5-9]|20)\d\d)([-–])(\d\d)(?![\w.,]?\d|[-–]\d)")
_EARLIEST, _LATEST = 1500, 2300
"""Years of periods whose digits are joined or completed."""
_CENTURY = re.compile(r"\bcentur(?:y|ies)$", re.IGNORECASE)
_HEDGE = (
    r"(?:about|around|roughly|nearly|almost|from|between|likely|very likely|likely range(?: of)?|range(?: of)?|~|≈)"
)
_RANGE = re.compile(r"\s*(?:–|—|-|−|to|through|±|\+/-)\s*[+\-−–]?\s*")
_MARGIN = re.compile(r"\s*(?:±|\+/-)\s*")
_LIST = re.compile(rf"\s*(?:,|,?\s*(?:and|or|versus|vs\.?)|[\[(]|;)\s*{_HEDGE}?:?\s*[+\-−–]?\s*", re.IGNORECASE)
_BRACKET = re.compile(rf"\s*[\[(]\s*{_HEDGE}?:?\s*[+\-−–]?\s*", re.IGNORECASE)
_CHARACTERS = str.maketrans("⁻₂₃₄₆\u00a0\u2009\u202f", "-2346   ")
"""One character for one, so that places stay what they are."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its unit, as it appears in a text."""

    text: str
    """As written, the unit included where it follows this number."""
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
    bound: tuple[int, bool] | None = None
    """The side that it bounds (1: more, -1: less) and whether the value itself is meant too; None for a plain one."""
    bounded: str = ""
    """As written with what makes it a bound; empty for a plain figure."""
    positive: bool = False
    """Whether a plus sign comes before it."""
    dated: bool = False
    """Whether it is a year for sure, as those of a period are."""


def quantities(text: str) -> tuple[Quantity, ...]:
    """Quantities of a text, in order.

    Number words below a hundred are quantities where a unit or magnitude follows them ("two degrees").
    """
    return split_at_quantities(text)[1]


def split_at_quantities(text: str) -> tuple[tuple[str, ...], tuple[Quantity, ...]]:
    """The words before, between and behind the quantities of a text, and the quantities: one piece more than those."""
    plain, places = _located(text)
    kept = [one for one in places if one.quantity.unit or one.quantity.text.lower() not in _WORDS]
    starts, ends = [one.start for one in kept], [one.end for one in kept]
    pieces = tuple(plain[low:high] for low, high in zip([0, *ends], [*starts, len(plain)], strict=True))
    return pieces, tuple(one.quantity for one in kept)


def foreign_quantities(sentence: str, passages: Sequence[str]) -> tuple[str, ...]:
    """Quantities of a sentence, as written, that none of the passages has; see the module for what that means.

    Args:
        sentence: What was written, citations included or not.
        passages: The texts it rests on; also those that it answers, such as the claim, whose figures may be repeated.
    """
    known = [place.quantity for text in passages for place in _located(text)[1]]
    foreign = (quantity for quantity in quantities(sentence) if not any(backs(other, quantity) for other in known))
    return tuple(dict.fromkeys(quantity.bounded or quantity.text for quantity in foreign))


def backs(known: Quantity, wanted: Quantity) -> bool:
    """Whether the quantity ``known`` of a passage backs the quantity ``wanted`` of a sentence."""
    if wanted.value < 0 <= known.value or (wanted.positive and known.value < 0):
        return False
    if wanted.bound is not None and known.bound is not None and wanted.bound[0] != known.bound[0]:
        return False
    decade = known.unit is not None and known.unit.kind == "span"
    if _CENTURY.search(wanted.text) and (decade or known.dated):
        century = int((known.value if decade else known.value - 1) // 100) + 1
        if century == wanted.value:
            return True
    value = known.value
    if wanted.unit is not None:
        if known.unit is None or not known.unit.is_kind_of(wanted.unit):
            return False
        rates = {known.unit.rate, wanted.unit.rate}
        if len(rates) > 1 and not (rates == {"", "yr"} and known.yearly and wanted.yearly):
            return False
        value *= known.unit.factor / wanted.unit.factor
    if wanted.bound is not None and known.bound is None:
        return _within(value, wanted, *wanted.bound)
    if wanted.unit is None and (known.unit is not None or wanted.whole):
        return abs(value) == abs(wanted.value)
    return _rounds_to(value, wanted)


def _within(value: float, wanted: Quantity, side: int, inclusive: bool) -> bool:
    """Whether a figure lies on the side of a bound, less than one unit of the bound's last digit that is no 0 away."""
    bound = wanted.value
    if bound >= 0:
        value = abs(value)  # "fell by more than 3 K" may stand for -3.4 K
    step = wanted.step
    while bound and wanted.whole and bound % (10 * step) == 0:
        step *= 10
    beyond = side * (value - bound)
    return 1e-9 * step < beyond <= step * (1 + 1e-9) or (inclusive and _rounds_to(value, wanted))


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
def _located(text: str) -> tuple[str, tuple[_Place, ...]]:
    """The text with torn numbers made whole, and all quantities in it, number words without a unit included."""
    text = _mended(text)
    plain = text.translate(_CHARACTERS)
    places = list(_places(text, plain))
    years = _years(plain, places)
    for left in range(len(places) - 2, -1, -1):
        if left not in years:
            places[left] = _from_the_right(plain, places[left], places[left + 1])
    for year in years:
        places[year] = replace(places[year], quantity=replace(places[year].quantity, dated=True))
    passed_on = False
    for right in range(1, len(places)):
        before, places[right] = (
            places[right],
            _from_the_left(plain, places[right - 1], places[right], passed_on=passed_on),
        )
        passed_on = places[right] is not before
    return plain, tuple(replace(place, quantity=_without_extent(place)) for place in places)


def _mended(text: str) -> str:
    """The text with torn numbers made whole, and with all four digits of a period's last year."""

    def point(torn: re.Match[str]) -> str:
        return torn[1] + torn[2] if _is_measured(torn.string, torn.end()) else torn[0]

    def period(torn: re.Match[str]) -> str:
        first, last = (torn[group].replace(" ", "") for group in (1, 3))
        return first + torn[2] + last if _EARLIEST <= int(first) < int(last) <= _LATEST else torn[0]

    def short(shortened: re.Match[str]) -> str:
        first, dash, last = shortened.groups()
        is_year = last > first[2:] and not _is_measured(shortened.string, shortened.end())
        return first + dash + first[:2] + last if is_year else shortened[0]

    return _SHORT_PERIOD.sub(short, _TORN_PERIOD.sub(period, _TORN_POINT.sub(point, text)))


def _is_measured(text: str, position: int) -> bool:
    """Whether a unit or magnitude follows the number that ends here."""
    plain = text.translate(_CHARACTERS)
    _, end = read_magnitude(plain, position, money=False)
    return end > position or read_unit(plain, position, bracketed=False)[0] is not None


def _years(plain: str, places: Sequence[_Place]) -> set[int]:
    """Which places are years for sure: two that make a period, and one that something happened in."""
    results: set[int] = set()
    for number, (left, right) in enumerate(pairwise(places)):
        if not left.year_like:
            continue
        gap, before = plain[left.end : right.start], plain[max(0, left.start - 12) : left.start]
        joined = bool(_RANGE.fullmatch(gap) or (gap.strip() == "and" and _BETWEEN.search(before)))
        if not joined and gap.strip() in (",", "and", ", and") and number + 2 < len(places):
            behind = places[number + 2]  # "1901, 1990 to 330 Gt"
            joined = abs(behind.quantity.value) < 1000 and bool(_RANGE.fullmatch(plain[right.end : behind.start]))
        if joined and right.year_like and left.quantity.value < right.quantity.value:
            results |= {number, number + 1}
        elif _IN_YEAR.search(before) and abs(right.quantity.value) < 1000:
            results.add(number)  # but "in 1500 to 2500 mm"
    return results


def _without_extent(place: _Place) -> Quantity:
    """A place's quantity; one that something happens or extends over is not a bound."""
    quantity = place.quantity
    extent = place.year_like or (
        quantity.unit is not None and quantity.unit.kind in _EXTENTS and not quantity.unit.rate
    )
    if extent and quantity.bounded[:4].lower() == "over":
        return replace(quantity, bound=None, bounded="")
    return quantity


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
    positive = plain[start - 1 : start] == "+" and not plain[: start - 1].endswith(tuple("0123456789"))
    start -= negative or positive
    if not negative and (spelled := _WORD_SIGN.search(plain[max(0, start - 10) : start])):
        negative, start = True, start - len(spelled[0])
    bound, first, last = _bound(plain, start, end)
    decimals = len(number.partition(".")[2])
    value = _WORDS.get(number) or float(number.replace(",", "").replace(" ", ""))
    quantity = Quantity(
        text=CLOSING_BRACKET.sub("", text[start:end]).strip(),
        value=(-value if negative else value) * magnitude,
        step=10.0**-decimals * magnitude,
        unit=unit,
        whole=not decimals and magnitude == 1,
        yearly=bool(_YEARLY.search(plain[max(0, start - _NEAR) : end + _NEAR])),
        bound=bound,
        bounded=text[first:last].strip() if bound else "",
        positive=positive,
    )
    return _Place(start, end, quantity, magnitude, year_like and unit is None and magnitude == 1)


def _bound(plain: str, start: int, end: int) -> tuple[tuple[int, bool] | None, int, int]:
    """What the words around a number make it a bound of, and where number and words begin and end."""
    before = plain[max(0, start - 40) : start]
    for pattern, bound in _BOUNDS:
        if match := pattern.search(before):
            return bound, start - len(match[0]), end
    if behind := _BOUND_BEHIND.match(plain, end):
        return (1 if behind["over"] else -1, True), start, behind.end()
    return None, start, end


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
    larger = abs(left.quantity.value) * right.magnitude > abs(right.quantity.value)
    if right.magnitude != 1 and larger and not _MARGIN.fullmatch(gap):
        return left  # "from 200 to 3 million", but "12 ± 3 million"
    return _with_unit(left, given or own, right.magnitude)


def _from_the_left(plain: str, left: _Place, right: _Place, *, passed_on: bool) -> _Place:
    """The right number with the unit of the left one: in a bracket behind it (``1.1 °C [0.8 to 1.3]``), or money.

    ``passed_on``: the left one has its unit from its own left, so that the bracket goes on.
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
