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
- Commas and points mean what the text's language and its other figures say (:mod:`climassay.grounding.numerals`).
  Shares, multiples, months and ranks in words back figures ("two-thirds" for 67%), and only the text check
  compares them.
- Digits that the reader of a PDF has torn apart ("201 0–2019", "1. 5 °C") are joined first.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from climassay.grounding.numerals import (
    NUMBER,
    NUMBER_WORDS,
    NumberFormat,
    WordedFigure,
    number_format,
    read_numeral,
    worded_figures,
)
from climassay.grounding.units import CLOSING_BRACKET, Unit, money_before, read_magnitude, read_unit

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
"""Words before a number that make it a bound: its side (1: up, -1: down), and whether it takes the figure itself."""
_BOUND_BEHIND = re.compile(rf"\s*(?:(?P<over>or\s+(?:{_OVER}))|or\s+(?:{_UNDER}))\b(?!\s+than)", re.IGNORECASE)
_WORD_SIGN = re.compile(r"\b(?:minus|negative|moins|menos)\s+$", re.IGNORECASE)
_YEAR_LIKE = re.compile(r"[12]\d{3}")
_IN_YEAR = re.compile(r"\b(?:in|since|until|years?|seit|jahr|en|depuis|desde|em)\s+$", re.IGNORECASE)
_BETWEEN = re.compile(r"\b(?:between|zwischen|entre)\s+$", re.IGNORECASE)
_AND = ("and", "und", "et", "y", "e")
_EXTENTS = ("time", "days", "span", "length", "area", "angle")
"""Kinds of unit over which something may happen or extend."""
_SIGN = re.compile(r"(?:^|(?<=[\s(\[~≈<>=]))[-−–]$")
_YEARLY = re.compile(
    r"\b(?:annual(?:ly)?|yearly|(?:per|a|each|every) year|jährlich\w*|pro jahr|par an|annuel\w*|anual\w*"
    r"|(?:al|por) año|por ano)\b|\byr\b|/yr",
    re.IGNORECASE,
)
_NEAR = 80
"""Characters on either side in which a word for "every year" belongs to a number."""

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
_RANGE = re.compile(r"\s*(?:–|—|-|−|to|through|bis|à|a|±|\+/-)\s*[+\-−–]?\s*")
_MARGIN = re.compile(r"\s*(?:±|\+/-)\s*")
_LIST = re.compile(
    rf"\s*(?:,|,?\s*(?:and|or|versus|vs\.?|und|oder|bzw\.|et|ou|y|e)|[\[(]|;)\s*{_HEDGE}?:?\s*[+\-−–]?\s*",
    re.IGNORECASE,
)
_BRACKET = re.compile(rf"\s*[\[(]\s*{_HEDGE}?:?\s*[+\-−–]?\s*", re.IGNORECASE)
_CHARACTERS = str.maketrans("⁻₂₃₄₆\u00a0\u2007\u2009\u202f\u2010\u2011\u2012", "-2346    ---")
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
    worded: bool = False
    """Whether words alone express it, without a digit: a share, a multiple, a month or a rank."""


def quantities(text: str, context: str = "") -> tuple[Quantity, ...]:
    """Return the quantities of a text, in order, without those that words alone express.

    Number words below a hundred are quantities if a unit or magnitude follows them ("two degrees").

    Args:
        text: A sentence or more.
        context: The longer text that it is from, which decides what commas and points mean if its own words do not.
    """
    return tuple(one for one in split_at_quantities(text, context)[1] if not one.worded)


def split_at_quantities(text: str, context: str = "") -> tuple[tuple[str, ...], tuple[Quantity, ...]]:
    """Return the words before, between and behind the quantities of a text, and the quantities: one piece more.

    Includes what words alone express: shares, multiples, months and ranks (:mod:`climassay.grounding.numerals`).
    """
    plain, places = _located(text, context)
    counted = [one for one in places if one.quantity.unit or one.quantity.text.lower() not in NUMBER_WORDS]
    starts, ends = [one.start for one in counted], [one.end for one in counted]
    pieces = tuple(plain[low:high] for low, high in zip([0, *ends], [*starts, len(plain)], strict=True))
    return pieces, tuple(one.quantity for one in counted)


def foreign_quantities(sentence: str, passages: Sequence[str]) -> tuple[str, ...]:
    """Return the quantities of a sentence, as written, that none of the passages has; see the module.

    Args:
        sentence: A sentence, with or without citations.
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
        if known.unit is None:
            return wanted.unit.kind == "day" and known.value == wanted.value
        if {known.unit.kind, wanted.unit.kind} == {"share", "times"}:
            return _is_change(*((known, wanted) if wanted.unit.kind == "share" else (wanted, known)))
        if not known.unit.is_kind_of(wanted.unit):
            return False
        rates = {known.unit.rate, wanted.unit.rate}
        if len(rates) > 1 and not (rates == {"", "yr"} and known.yearly and wanted.yearly):
            return False
        value *= known.unit.factor / wanted.unit.factor
    if wanted.bound is not None and known.bound is None:
        return _within(value, wanted, *wanted.bound)
    if wanted.unit is None and (known.unit is not None or wanted.whole):
        return abs(value) == abs(wanted.value)
    if known.worded and known.step > wanted.step:
        wanted = replace(wanted, step=known.step)
    return _rounds_to(value, wanted)


def _is_change(multiple: Quantity, share: Quantity) -> bool:
    """Return whether a multiple is a change by a share: doubled is up by 100%, halved is down by 50%."""
    return _rounds_to(100 * (multiple.value - 1), share)


def _within(value: float, wanted: Quantity, side: int, inclusive: bool) -> bool:
    """Whether a figure lies on the side of a bound, less than one unit of the bound's last digit that is no 0 away.

    Beyond one in words ("more than half", "more than doubled"), any figure does.
    """
    bound = wanted.value
    if wanted.worded:
        return side * (value - bound) > -0.5 * wanted.step
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
def _located(text: str, context: str = "") -> tuple[str, tuple[_Place, ...]]:
    """The text with torn numbers made whole, and all quantities in it, number words without a unit included."""
    text = _mended(text)
    plain = text.translate(_CHARACTERS)
    masked = _NO_QUANTITY.sub(lambda match: " " * len(match[0]), plain)
    places = list(_places(text, plain, masked, number_format(masked, context.translate(_CHARACTERS))))
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
    ends = [0, *(place.end for place in places)]
    return plain, tuple(
        replace(place, quantity=_without_extent(place, plain[end : place.start]))
        for place, end in zip(places, ends, strict=False)
    )


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
        joined = bool(_RANGE.fullmatch(gap) or (gap.strip() in _AND and _BETWEEN.search(before)))
        if not joined and gap.strip() in (",", *_AND, ", and") and number + 2 < len(places):
            behind = places[number + 2]  # "1901, 1990 to 330 Gt"
            joined = abs(behind.quantity.value) < 1000 and bool(_RANGE.fullmatch(plain[right.end : behind.start]))
        if joined and right.year_like and left.quantity.value < right.quantity.value:
            results |= {number, number + 1}
        elif _IN_YEAR.search(before) and abs(right.quantity.value) < 1000:
            results.add(number)  # but "in 1500 to 2500 mm"
    return results


def _without_extent(place: _Place, gap: str) -> Quantity:
    """A place's quantity; one that something happens or extends over is not a bound.

    Nor is a year that another figure is compared with: in "6% less than 2021", ``gap`` is all that is between the two.
    """
    quantity = place.quantity
    if place.year_like and quantity.bounded and gap.strip() and quantity.bounded.startswith(gap.strip()):
        return replace(quantity, bound=None, bounded="")
    extent = place.year_like or (
        quantity.unit is not None and quantity.unit.kind in _EXTENTS and not quantity.unit.rate
    )
    if extent and quantity.bounded[:4].lower() == "over":
        return replace(quantity, bound=None, bounded="")
    return quantity


def _places(text: str, plain: str, masked: str, numbers: NumberFormat) -> Iterator[_Place]:
    """Numbers with the units that stand right behind them, and what words alone express."""
    worded: list[WordedFigure] = []
    for figure in sorted(worded_figures(masked)):
        if not worded or figure.start >= worded[-1].end:
            worded.append(figure)
    position = 0
    while match := NUMBER.search(masked, position):
        while worded and worded[0].start <= match.start():
            figure = worded.pop(0)
            yield _worded_place(text, plain, figure)
            position = figure.end
        if match.start() < position:
            continue
        place = _place(text, plain, match, numbers)
        if worded and worded[0].start < place.end:
            # A number whose "unit" is the beginning of another figure ends before it.
            place = replace(place, end=worded[0].start)
        yield place
        position = place.end
    yield from (_worded_place(text, plain, figure) for figure in worded)


def _worded_place(text: str, plain: str, figure: WordedFigure) -> _Place:
    bound, first, last = (None, 0, 0)
    if figure.kind in ("share", "times"):
        bound, first, last = _bound(plain, figure.start, figure.end)
    written = text[figure.start : figure.end].strip()
    quantity = Quantity(
        text=written,
        value=figure.value,
        step=figure.step,
        unit=Unit(figure.kind, 1.0),
        whole=False,
        yearly=False,
        worded=not any(map(str.isdigit, written)),
        bound=bound,
        bounded=text[first:last].strip() if bound else "",
    )
    return _Place(figure.start, figure.end, quantity, 1.0, year_like=False)


def _place(text: str, plain: str, match: re.Match[str], numbers: NumberFormat) -> _Place:
    number = match[0].lower()
    numeral = read_numeral(match, numbers, measured=_is_measured(plain, match.end()))
    year_like = bool(_YEAR_LIKE.fullmatch(number))
    money, start = money_before(plain, match.start())
    magnitude, end = read_magnitude(plain, numeral.end, money=money is not None)
    unit, end = (money, end) if money else read_unit(plain, end, bracketed=not year_like)
    if number == "one" and unit is not None and unit.kind in ("time", "days"):
        unit, end = None, match.end()  # "one day" is seldom a measurement
    negative = not year_like and bool(_SIGN.search(plain[max(0, start - 2) : start]))
    positive = plain[start - 1 : start] == "+" and not plain[: start - 1].endswith(tuple("0123456789"))
    start -= negative or positive
    if not negative and (spelled := _WORD_SIGN.search(plain[max(0, start - 10) : start])):
        negative, start = True, start - len(spelled[0])
    bound, first, last = _bound(plain, start, end)
    value, decimals = numeral.value, numeral.decimals
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
    if right.quantity.worded or left.quantity.worded:
        return left
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
    if given is None or left.quantity.worded or right.quantity.unit is not None or right.year_like:
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
