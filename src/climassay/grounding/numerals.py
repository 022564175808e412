"""Notation of numbers, with decimal points or commas and in words, in English and six other languages.

"1,250" is more than a thousand in English, and one and a quarter in German, French, Spanish, Portuguese, Italian and
Dutch; for "1.250", it is the reverse. The form of the numbers decides if it is unambiguous ("1.234,5", "0,20"), and
otherwise the language, which is detected by function words. Spaces and apostrophes separate thousands in all languages.

Numbers in words: counts, shares ("two-thirds", "half of", "nine out of ten", "1 in 5"), multiples ("doubled", "three
times"), months with the day before or after them, and ranks ("the second warmest").
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from climassay.corpus.languages import count_function_words

_GERMAN_LETTER, _SPANISH_LETTER = re.compile("[äöüß]"), re.compile("[áíóúñ]")
_WORD = re.compile(r"[^\W\d_]+")
_COMMA = re.compile(r"(?<![\d.,])(?:\d{1,3}(?:\.\d{3})+,\d+|0,\d+|\d+,\d{1,2})(?![.,]?\d)")
_POINT = re.compile(r"(?<![\d.,])(?:\d{1,3}(?:,\d{3})+\.\d+|0\.\d+|\d+\.\d{1,2}|\d{1,3}(?:,\d{3}){2,})(?![.,]?\d)")
_MIN_COMMAS_IN_ENGLISH = 2
"""Minimum number of commas that look decimal ("1,5"); with fewer, commas in an English text separate thousands."""


class NumberFormat(NamedTuple):
    """Meaning of commas and points between the digits of a text."""

    decimal_comma: bool
    """Whether "1,250" is one and a quarter."""
    point_groups: bool
    """Whether "1.250" is one thousand two hundred and fifty."""


def detect_number_language(text: str) -> str | None:
    """Return the code of the language with the most function words.

    The result is None if there are no function words, or if English and another language have equally many.
    """
    words = _WORD.findall(text.lower())
    hits = count_function_words(text).by_language
    for code, letter in (("de", _GERMAN_LETTER), ("es", _SPANISH_LETTER)):
        hits[code] += sum(bool(letter.search(word)) for word in words)
    n_hits, language = max((count, code) for code, count in hits.items())
    is_shared = hits["en"] == n_hits and sum(count == n_hits for count in hits.values()) > 1
    return None if not n_hits or is_shared else language


@lru_cache(maxsize=512)
def detect_number_format(text: str, context: str = "") -> NumberFormat:
    """Detect whether commas and points between digits separate decimals or thousands.

    Args:
        text: Text with numbers. Its language and its numbers decide first.
        context: Longer text that contains ``text``; it decides if ``text`` does not.
    """
    n_decimal_commas, n_decimal_points = (len(pattern.findall(text)) for pattern in (_COMMA, _POINT))
    language = detect_number_language(text)
    if language is None and not n_decimal_commas and not n_decimal_points and context:
        return detect_number_format(context)
    if language is None and context:
        language = detect_number_language(context)
    if language is None:
        is_comma_decimal = n_decimal_commas > n_decimal_points
    elif language == "en":
        is_comma_decimal = n_decimal_commas >= _MIN_COMMAS_IN_ENGLISH and not n_decimal_points
    else:
        is_comma_decimal = n_decimal_commas > 0 or not n_decimal_points
    return NumberFormat(is_comma_decimal, is_comma_decimal or language in ("de", "es", "it", "nl", "pt"))


_NUMBERS_TO_TWELVE = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_TEENS = ("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
NUMBER_WORDS = {word: float(number) for number, word in enumerate((*_NUMBERS_TO_TWELVE, *_TEENS), start=1)}
NUMBER_WORDS |= {ten: 10.0 * number for number, ten in enumerate(_TENS, start=2)}
NUMBER_WORDS |= {
    f"{ten}-{unit}": NUMBER_WORDS[ten] + NUMBER_WORDS[unit] for ten in _TENS for unit in _NUMBERS_TO_TWELVE[:9]
}
for _line in (
    "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
    "deux trois quatre cinq six sept huit neuf dix onze douze",
    "dos tres cuatro cinco seis siete ocho nueve diez - doce",
    "dois três quatro cinco seis sete oito nove dez onze doze",
):
    NUMBER_WORDS |= {word: float(number) for number, word in enumerate(_line.split(), start=2) if word != "-"}
"""Value of each number word; the words are quantities only if a unit or magnitude follows."""

_NUMBER_WORD = "|".join(sorted(NUMBER_WORDS, key=len, reverse=True))
NUMBER = re.compile(
    r"\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:,\d{3})+\.\d+|\d{1,3}(?:\.\d{3}){2,}(?![.,]?\d)|\d{1,3}(?:,\d{3}){2,}(?![.,]?\d)"
    r"|\d{1,3}(?:['’]\d{3})+(?!\d)(?:[.,]\d+)?|\d{1,3}(?: \d{3})+(?:[.,]\d+)?(?![.,]?\d)"
    r"|\d+[.,]\d+(?![.,]?\d)|\d+(?:\.\d+)?|(?<![\w.])\.\d+"
    rf"|\b(?:{_NUMBER_WORD})\b",
    re.IGNORECASE,
)
_GROUPED_BY_COMMA, _GROUPED_BY_POINT = (re.compile(rf"\d{{1,3}}(?:{mark}\d{{3}})+") for mark in (",", r"\."))


class Numeral(NamedTuple):
    """Number read from a text."""

    value: float
    decimals: int
    end: int
    """Index after the number in the text."""


def read_numeral(match: re.Match[str], number_format: NumberFormat, *, has_unit: bool) -> Numeral:
    """Read a number found by :data:`NUMBER`.

    In a text with decimal points, "2,3" is a list of two numbers, of which only the first is read.

    Args:
        match: Match of the number in its text.
        number_format: Meaning of commas and points in the text.
        has_unit: Whether a unit follows the number; "1,5 °C" is then one number even in a text with decimal points.
    """
    numeral = match[0].lower()
    if numeral in NUMBER_WORDS:
        return Numeral(NUMBER_WORDS[numeral], 0, match.end())
    digits = re.sub(r"[ '’]", "", numeral)
    comma, point = digits.rfind(","), digits.rfind(".")
    if comma >= 0 and point >= 0:
        separator_index = max(comma, point)
    elif comma >= 0:
        has_thousands = _GROUPED_BY_COMMA.fullmatch(digits) and not digits.startswith("0")
        if digits.count(",") > 1 or (has_thousands and not number_format.decimal_comma):
            separator_index = -1
        elif number_format.decimal_comma or digits.startswith("0,") or (has_unit and len(digits) - comma <= 3):
            separator_index = comma
        else:
            comma_index = numeral.index(",")
            return Numeral(float(digits[:comma]), 0, match.start() + comma_index)
    elif point >= 0:
        has_thousands = _GROUPED_BY_POINT.fullmatch(digits) and not digits.startswith("0")
        separator_index = -1 if digits.count(".") > 1 or (has_thousands and number_format.point_groups) else point
    else:
        separator_index = -1
    if separator_index < 0:
        return Numeral(float(re.sub(r"[.,]", "", digits)), 0, match.end())
    integer_part, fraction = re.sub(r"[.,]", "", digits[:separator_index]), digits[separator_index + 1 :]
    return Numeral(float(f"{integer_part or 0}.{fraction}"), len(fraction), match.end())


class WordedQuantity(NamedTuple):
    """Quantity expressed in words."""

    start: int
    end: int
    value: float
    kind: str
    """Kind of quantity: ``share``, ``times``, ``month``, ``day`` (of the month), or ``rank:`` with the superlative."""
    step: float
    """Width of the interval of values that the words may express."""


_SHARE_STEP = 3.0
"""Width, in percentage points, of the interval that a fraction in words may mean: 65.2% to 68.1% for "two-thirds"."""
_HEDGED_STEP = 10.0
"""Width, in percentage points, of the interval that a hedged fraction such as "nearly a third" may mean."""
_HEDGE_WORDS = re.compile(
    r"\b(?:nearly|almost|just|slightly|a\s+little|close\s+to|about|around|roughly|fast|knapp|rund|etwa|près|presque|casi"
    r"|quase|environ)\b[^,;.]{0,12}$",
    re.IGNORECASE,
)
_EXACT = 1e-6
_NOT_PART = r"(?<!first )(?<!second )(?<!latter )(?<!other )(?<!northern )(?<!southern )(?<!eastern )(?<!western )"
_SHARES = tuple(
    (re.compile(pattern, re.IGNORECASE), 100 * share)
    for pattern, share in (
        (r"\b(?:two|2)[\s-]thirds\b|\b(?:zwei|2)\s+drittel\b|\bdeux\s+tiers\b|\bdos\s+tercios\b"
         r"|\bdois\s+terços\b", 2 / 3),
        (r"\bthree[\s-]quarters\b|\bdrei\s*viertel\b|\btrois\s+quarts\b"
         r"|\btres\s+cuart[oa]s\b|\btrês\s+quartos\b", 3 / 4),
        (r"\b(?:a|one)[\s-]third\b(?=\s+(?:of|to|less|more|lower|higher|since|by|as)\b|[.,;)])"
         r"|(?<!zwei )(?<!2 )\bdrittel\b|(?<!deux )\btiers\s+(?=d)|\bun\s+tercio\b|\bum\s+terço\b", 1 / 3),
        (r"\b(?:a|one)[\s-]quarter\b(?=\s+of\b(?!\s+(?:a\s+)?(?:century|\d))|[.,;)])"
         r"|\bein(?:em)?\s+viertel\b|\bun\s+quart\b|\bun\s+cuarto\s+de\b|\bum\s+quarto\s+d", 1 / 4),
        (rf"{_NOT_PART}\bhalf\s+(?:of\b|the\b|all\b)|\bby\s+half\b|\bhälfte\b(?!\s+de[sr]\s+(?:\w*jahr|monat))"
         r"|\b(?:la|à)\s+moitié\b|\bla\s+mitad\s+de|\bmetade\s+d", 1 / 2),
        (r"\b(?:a|one)[\s-]fifth\s+of\b|\bein(?:em)?\s+fünftel\b|\bun\s+cinquième\b"
         r"|\buna?\s+quint[oa]\s+(?:parte\s+)?d", 1 / 5),
        (r"\b(?:a|one)[\s-]tenth\s+of\b|\bein(?:em)?\s+zehntel\b|\bun\s+dixième\b", 1 / 10),
    )
)  # fmt: skip
_DIGITS = r"\d{1,3}(?:[, ]\d{3}){1,3}|\d+"
_PART_OF = re.compile(
    rf"(?<![\w.,/$€£-])(?:(?P<part>{_NUMBER_WORD}|{_DIGITS})"
    r"[\s-]{1,3}(?:out\s+of|in(?:\s+every)?|von|sur|em\s+cada|de\s+cada)[\s-]{1,3}"
    rf"(?P<all>{_NUMBER_WORD}|{_DIGITS})\b"
    rf"|(?P<few>{_NUMBER_WORD})\s+of(?:\s+(?:the|all))?\s+(?P<many>{_NUMBER_WORD})\b"
    r"|(?P<numerator>\d{1,3})/(?P<denominator>\d{1,3})(?=\s+(?:of|der|des|de)\b))"
    r"(?![.,/:]?\d|\s?[%°]|[\s-]{1,3}(?:hundred|thousand|million|billion|trillion|per\s?cent|degrees?|[mck]?m|metres?|feet"
    r"|miles?|years?|yrs?|days?|months?|decades?|weeks?|hours?|minutes?|jahren?|jahre|tagen?|ans|mois|jours|años|meses"
    r"|anos)\b)",
    re.IGNORECASE,
)
_YEARS_AS_TOTAL = range(1500, 2301)
"""Range of the numbers that are years after "in" ("3 in 2019"), not totals ("3 in 10")."""
_MULTIPLES = tuple(
    (re.compile(pattern, re.IGNORECASE), factor)
    for pattern, factor in (
        (r"\bdoubl(?:ed|es)\b(?!\s+(?:CO|carbon|atmospheric))|\btwice\b|\b(?:two|2)-?fold\b|\b(?:two|2)\s+times\b|\ba\s+factor\s+of\s+(?:two|2)\b"
         r"|\bverdoppel\w*|\bdoppelt\b|\bdoubl(?:é|ée|ent)\b|\b(?:se\s+)?duplic(?:ó|a|aron|ado|ou|aram)\b|\bdobr(?:ou|aram|ado)\b",
         2.0),
        (r"\btripl(?:ed|es)\b|\b(?:three|3)-?fold\b|\b(?:three|3)\s+times\b|\ba\s+factor\s+of\s+(?:three|3)\b"
         r"|\bverdreifach\w*|\bdreimal\b|\btripl(?:é|ée|ent)\b|\btriplic(?:ó|a|aron|ado|ou|aram)\b", 3.0),
        (r"\bquadrupl(?:ed|es)\b|\b(?:four|4)-?fold\b|\b(?:four|4)\s+times\b|\ba\s+factor\s+of\s+(?:four|4)\b"
         r"|\bvervierfach\w*|\bquadruplé\w*|\bcuadruplic\w+", 4.0),
        (r"\b(?:five|5)\s+times\b|\b(?:five|5)-?fold\b|\bverfünffach\w*", 5.0),
        (r"\b(?:ten|10)\s+times\b|\b(?:ten|10)-?fold\b|\bverzehnfach\w*", 10.0),
        (r"\bhalv(?:ed|es)\b|\bhalbier\w*|\bhalf\s+as\s+(?:much|many|large|high|big|long|strong|fast)\b", 0.5),
    )
)  # fmt: skip
_MONTHS = {
    word: number
    for words in (
        "january february march april may june july august september october november december",
        "januar februar märz april mai juni juli august september oktober november dezember",
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
        "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    )
    for number, word in enumerate(words.split(), start=1)
}
_MONTH = re.compile(
    rf"(?:(?P<before>\b[0-3]?\d)(?:st|nd|rd|th|er|\.|º)?\s+(?:of\s+|de\s+)?)?\b(?P<month>{'|'.join(_MONTHS)})\b"
    r"(?:\s+(?P<behind>[0-3]?\d)(?:st|nd|rd|th)?\b(?!\s?%|[.,]?\d))?",
    re.IGNORECASE,
)
_DATE_BEFORE = re.compile(
    r"\b(?:in|since|until|by|of|from|to|and|between|early|late|mid|im|seit|bis|ab|en|de|depuis|desde|em|le|el)[\s-]+$",
    re.IGNORECASE,
)
_MAX_DATE_WORD = 20
"""Maximum length of the text before a month that is searched for a preposition such as "since", in characters."""
_YEAR_AFTER = re.compile(r",?\s+(?:de\s+)?[12]\d{3}\b")
_AMBIGUOUS_MONTHS = frozenset(["may", "march", "mars", "mai", "mayo", "maio", "august", "agosto"])
_SUPERLATIVE = (
    r"(?P<what>(?:warm|hott|cold|cool|wett|dri|larg|small|high|low|bigg|great|strong|weak|fast|slow|long|short|deep|thick"
    r"|thinn|heavi|old|young|rich|poor)est|worst|wärmste\w*|heißeste\w*|kälteste\w*|größte\w*|höchste\w*|niedrigste\w*)"
)
_RANKS = {
    "first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9,
    "tenth": 10, "zweit": 2, "dritt": 3, "viert": 4, "fünft": 5, "sechst": 6, "siebt": 7, "acht": 8, "neunt": 9,
    "zehnt": 10,
}  # fmt: skip
_RANK = re.compile(
    rf"\b(?:the|its|their|das|der|die|am)\s+(?:(?P<rank>{'|'.join(_RANKS)}|\d{{1,2}}(?=st|nd|rd|th))(?:st|nd|rd|th)?[\s-]*)?"
    rf"{_SUPERLATIVE}\b",
    re.IGNORECASE,
)


def _is_after_date_word(text: str, position: int) -> bool:
    return bool(_DATE_BEFORE.search(text, max(0, position - _MAX_DATE_WORD), position))


def _parse_count(number: str) -> float:
    """Return the value of a count in words or digits."""
    return NUMBER_WORDS.get(number.lower()) or float(re.sub(r"[, ]", "", number))


def find_worded_quantities(text: str) -> Iterator[WordedQuantity]:
    """Yield the fractions, multiples, months and ranks that a text expresses in words, kind by kind."""
    for pattern, share in _SHARES:
        for match in pattern.finditer(text):
            is_hedged = _HEDGE_WORDS.search(text, max(0, match.start() - 30), match.start())
            yield WordedQuantity(*match.span(), share, "share", _HEDGED_STEP if is_hedged else _SHARE_STEP)
    for match in _PART_OF.finditer(text):
        part, total = (_parse_count(number) for number in match.groups() if number)
        if 0 < part < total and total not in _YEARS_AS_TOTAL:
            share = 100 * part / total
            yield WordedQuantity(*match.span(), share, "share", min(_SHARE_STEP, 0.3 * share, 0.3 * (100 - share)))
    for pattern, factor in _MULTIPLES:
        for match in pattern.finditer(text):
            yield WordedQuantity(*match.span(), factor, "times", _EXACT)
    for match in _MONTH.finditer(text):
        word = match["month"]
        has_date = match["before"] or match["behind"] or _YEAR_AFTER.match(text, match.end())
        if word.lower() in _AMBIGUOUS_MONTHS and not has_date and not _is_after_date_word(text, match.start("month")):
            continue
        for group in ("before", "behind"):
            if match[group]:
                yield WordedQuantity(*match.span(group), float(match[group]), "day", _EXACT)
        yield WordedQuantity(*match.span("month"), float(_MONTHS[word.lower()]), "month", _EXACT)
    for match in _RANK.finditer(text):
        rank = (match["rank"] or "1").lower()
        yield WordedQuantity(*match.span(), float(_RANKS.get(rank) or rank), f"rank:{match['what'].lower()}", _EXACT)
