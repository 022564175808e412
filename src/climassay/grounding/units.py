"""Units of measurement and magnitude words after numbers, in English and four other languages.

Units of one kind are convertible. A mass is that of the named substance, or of any substance if none is named. German,
French, Spanish and Portuguese names are those used in reports of national agencies.
"""

import re
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Unit:
    """Unit of measurement with its conversion factor."""

    kind: str
    """Kind of unit; units of one kind can be converted. ``mass:CO2`` is a special case of ``mass``."""
    factor: float
    """Value of one unit, in base units of its kind."""
    rate: str = ""
    """Denominator of a rate: ``yr`` (also for decades and centuries), ``d`` or ``K``; empty if the unit is not a rate.
    """

    @property
    def is_money(self) -> bool:
        """Whether the unit is a currency."""
        return self.kind.startswith("money")

    def is_kind_of(self, other: "Unit") -> bool:
        """Return whether two units are comparable.

        Units are comparable if they are of the same kind, if one is a special case of the other, or if both are
        temperature scales.
        """
        first, second = sorted((self.kind, other.kind), key=len)
        return first == second or second.startswith(first + ":") or {first, second} <= set(TEMPERATURE_SCALES)


TEMPERATURE_SCALES = {
    "temperature:C": (1.0, 0.0), "temperature:F": (5 / 9, 32.0), "temperature:K": (1.0, 273.15)
}  # fmt: skip
"""Size of a degree in kelvins and value at 0 °C, by temperature scale."""
MAGNITUDES = {
    "thousand": 1e3, "million": 1e6, "millions": 1e6, "billion": 1e9, "trillion": 1e12, "mn": 1e6, "bn": 1e9,
    "tn": 1e12, "tausend": 1e3, "millionen": 1e6, "mio": 1e6, "milliarde": 1e9, "milliarden": 1e9, "mrd": 1e9,
    "billionen": 1e12,
    "mille": 1e3, "milliard": 1e9, "milliards": 1e9, "mil": 1e3, "millón": 1e6, "millones": 1e6, "mil millones": 1e9,
    "billones": 1e12, "milhão": 1e6, "milhões": 1e6, "mil milhões": 1e9, "bilhão": 1e9, "bilhões": 1e9,
    "trilhões": 1e12,
}  # fmt: skip
"""Factors of magnitude words. "Billion" is read as English (1e9); in German and Spanish, only plurals tell it apart."""
_MONEY_LETTERS = {"k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}
_MAGNITUDE = re.compile(
    rf"\s*-?\s*(?P<word>{'|'.join(sorted(MAGNITUDES, key=len, reverse=True))})\b(?:(?<=mio)\.|(?<=mrd)\.)?"
    r"|\s*[×x]\s*10(?:\s*\^\s*|\s+|(?=[-⁰¹²³⁴⁵⁶⁷⁸⁹]))(?P<power>[-−–]?[\d⁰¹²³⁴⁵⁶⁷⁸⁹]{1,2})(?!\.?\d)"
    r"|(?<=\d)e(?P<exponent>[-+−–]?\d{1,2})(?![.,]?\d|[^\W\d_])",
    re.IGNORECASE,
)
_EXPONENT = re.compile(r"(?:\^\s*|(?=[-−–]?[⁰¹²³⁴⁵⁶⁷⁸⁹]))(?P<power>[-−–]?[\d⁰¹²³⁴⁵⁶⁷⁸⁹]{1,2})(?!\.?\d)")
_PLAIN_DIGITS = str.maketrans("−–⁰¹²³⁴⁵⁶⁷⁸⁹", "--0123456789")
_MONEY_LETTER = re.compile(r"\s?([kmbt])\b", re.IGNORECASE)
_CURRENCIES = {"$": "USD", "us$": "USD", "usd": "USD", "€": "EUR", "eur": "EUR", "£": "GBP", "gbp": "GBP"}
_CURRENCY = re.compile(r"(US\$|USD|EUR|GBP|[$€£])\s?$", re.IGNORECASE)

CLOSING_BRACKET = re.compile(r"\s*[\])]")
_GAP = r"\s*-?\s*(?:(?i:de\s+|d['’])(?=[^\W\d_]))?"
_SQUARE = r"(?:\s?\^?[2²](?!\.?\d))"
_CUBE = r"(?:\s?\^?[3³](?!\.?\d))"
_SQUARE_METRE = (
    rf"(?:\s?m\s?\^?\s?[-−–]\s?[2²]|\s?/\s?m{_SQUARE}"
    rf"|(?i:\s*(?:per|an?|each|every)\s+(?:square\s+met(?:re|er)|met(?:re|er)\s+squared|m{_SQUARE}))"
    r"|(?i:\s*(?:pro\s+quadratmeter|par\s+mètre\s+carré|por\s+metro\s+[cq]uadrado)))"
)


def _unit(kind: str, factor: float, pattern: str) -> tuple[re.Pattern[str], Unit]:
    return re.compile(rf"{_GAP}(?:{pattern})"), Unit(kind, factor)


# Tried in this order: longer spellings before their beginnings ("W m-2" before "W", "m2" before "m").
_UNITS = (
    _unit(
        "points",
        1,
        r"%[ -]?(?:points?|pts?)\b|pp\b(?!\.)|p\.\s?p\.|(?i:(?:per ?cent(?:age)?|pct\.?)[ -](?:points?|pts?)"
        r"|prozentpunkte?n?|points?\s+de\s+pourcentage|p[ou]ntos?\s+p[eo]rcentua(?:l|les|is))\b",
    ),
    _unit(
        "share",
        1,
        r"%|(?i:per ?cent|pct|prozent|pour\s?cent|por\s?cien(?:to)?|por\s?cento)\b",
    ),
    _unit(
        "temperature:F", 1, r"(?:°|º)\s?F\b|(?i:deg(?:ree)?s?\s*|°\s?|º\s?)(?i:fahrenheit)\b|(?i:degrees?)\s+F\b|F\b"
    ),
    _unit(
        "temperature:C",
        1,
        r"(?:°|º|\bo )\s?C\b|℃|(?i:deg(?:ree)?s?\s*|°\s?|º\s?|grad\s+|degrés?\s+|grados?\s+|graus?\s+)"
        r"(?i:celsius|cent[ií]grad\w*)\b|(?i:degrees?)\s+C\b|degC\b|(?i:celsius)\b|C\b(?!\.\w)",
    ),
    _unit(
        "temperature:K",
        1,
        r"(?i:deg(?:ree)?s?\s*|°\s?|º\s?|grad\s+|degrés?\s+|grados?\s+|graus?\s+)(?i:kelvin)\b|(?i:degrees?)\s+K\b"
        r"|(?i:kelvins?)\b|K\b(?!\.\w)",
    ),
    _unit(
        "angle",
        1,
        r"(?:°|º|(?i:degrees?|grad|degrés?|grados?|graus?))\s?"
        r"(?:[NSEW]\b|(?i:de\s+)?(?i:north|south|east|west|latitud\w*|longitud\w*|nord|süd|ost|sud|norte|sur)\b)",
    ),
    _unit("temperature", 1, r"°|º|(?i:degrees?|degrés?|grados?|graus?)\b|Grad\b"),
    _unit("flux", 1, rf"W{_SQUARE_METRE}|(?i:watts?|vatios?){_SQUARE_METRE}"),
    _unit("flux", 1e-3, rf"mW{_SQUARE_METRE}"),
    _unit("mixing", 1, r"(?i:ppmv?)\b|(?i:parts\s+per\s+million)\b"),
    _unit("mixing", 1e-3, r"(?i:ppbv?)\b|(?i:parts\s+per\s+billion)\b"),
    _unit("mixing", 1e-6, r"(?i:pptv?)\b|(?i:parts\s+per\s+trillion)\b"),
    _unit("area", 1e12, rf"Mkm{_SQUARE}"),
    _unit(
        "area",
        1e6,
        rf"km{_SQUARE}|(?i:square\s+kilomet(?:re|er)s?|sq\.?\s?km|quadratkilometern?"
        r"|kilomètres?\s+carrés?|(?:kil|quil)[oóô]metros?\s+[cq]uadrados?)\b",
    ),
    _unit("area", 2589988.110336, r"(?i:square\s+miles?|sq\.?\s?mi)\b"),
    _unit("area", 1e10, r"Mha\b|(?i:million\s+hectares?|millionen\s+hektar)\b"),
    _unit("area", 1e4, r"ha\b|(?i:hectares?|hektar|hectáreas?)\b"),
    _unit("area", 4046.8564224, r"(?i:acres?)\b"),
    _unit(
        "area",
        1,
        rf"m{_SQUARE}|(?i:square\s+met(?:re|er)s?|quadratmetern?|mètres?\s+carrés?|metros?\s+[cq]uadrados?)\b",
    ),
    _unit("volume", 1e9, rf"km{_CUBE}|(?i:cubic\s+kilomet(?:re|er)s?|kubikkilometern?|kilomètres?\s+cubes?)\b"),
    _unit("volume", 4168181825.44, r"(?i:cubic\s+miles?|cu\.?\s?mi)\b"),
    _unit("volume", 1, rf"m{_CUBE}|(?i:cubic\s+met(?:re|er)s?|kubikmetern?|mètres?\s+cubes?|metros?\s+cúbicos?)\b"),
    _unit("length", 1e-3, r"mm\b|(?i:millimet(?:re|er)[sn]?|millimètres?|milímetros?)\b"),
    _unit("length", 1e-2, r"cm\b|(?i:centimet(?:re|er)s?|zentimetern?|centimètres?|centímetros?)\b"),
    _unit("length", 1e-9, r"nm\b|(?i:nanomet(?:re|er)s?)\b"),
    _unit("length", 1e-6, r"[µμ]m\b|(?i:micromet(?:re|er)s?|microns?)\b"),
    _unit("length", 1e3, r"km\b(?!/h)|(?i:kilomet(?:re|er)[sn]?|kilomètres?|(?:kil|quil)[oóô]metros?)\b"),
    _unit("length", 1, r"m\b(?!\s?/\s?s)|(?i:met(?:re|er)[sn]?|mètres?|metros?)\b"),
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
    _unit("mass", 1e9, r"(?:Gt|Pg)(?![a-z])|(?i:gigaton(?:ne)?[sn]?|gigatoneladas?|petagrams?)\b"),
    _unit("mass", 1e6, r"(?:Mt|Tg)(?![a-z])|(?i:megaton(?:ne)?[sn]?|megatoneladas?|teragrams?)\b"),
    _unit("mass", 1e3, r"kt(?=CO|C\b|\b)|(?i:kiloton(?:ne)?[sn]?)\b"),
    _unit("mass", 1e-3, r"kg\b|(?i:kilogramm?e?s?|kilogramos?|kilos?)\b"),
    _unit("mass", 1, r"t(?=CO|C\b|\b)|(?i:(?:metric\s+)?ton(?:ne)?[sn]?|toneladas?)\b"),
    _unit("energy", 1e21, r"ZJ\b|(?i:zettajoules?)\b"),
    _unit("energy", 1e18, r"EJ\b|(?i:exajoules?)\b"),
    _unit("energy", 3.6e15, r"TWh\b|(?i:terawatt[ -]?hours?|terawattstunden?|térawattheures?)\b"),
    _unit("energy", 3.6e12, r"GWh\b|(?i:gigawatt[ -]?hours?|gigawattstunden?|gigawattheures?)\b"),
    _unit("energy", 3.6e9, r"MWh\b|(?i:megawatt[ -]?hours?)\b"),
    _unit("energy", 3.6e6, r"kWh\b|(?i:kilowatt[ -]?hours?)\b"),
    _unit("energy", 1, r"J\b|(?i:joules?)\b"),
    _unit("power", 1e12, r"TW\b|(?i:terawatts?)\b"),
    _unit("power", 1e9, r"GW\b|(?i:gigawatts?)\b"),
    _unit("power", 1e6, r"MW\b|(?i:megawatts?)\b"),
    _unit("power", 1e3, r"kW\b|(?i:kilowatts?)\b"),
    _unit("power", 1, r"W\b|(?i:watts?)\b"),
    _unit("power", 1e-3, r"mW\b|(?i:milliwatts?)\b"),
    _unit("pressure", 100, r"(?:hPa|mbar)\b|(?i:hectopascals?|millibars?)\b"),
    _unit("pressure", 1, r"Pa\b|(?i:pascals?)\b"),
    _unit("time", 1e6, r"(?:Myr|My|Ma|Mya|mya)\b|(?i:million[ -]years?)\b"),
    _unit("time", 1e3, r"(?:kyr|ky|ka|kya)\b|(?i:millenni(?:a|um))\b"),
    _unit("time", 100, r"(?i:centur(?:y|ies)|jahrhunderte?n?|siècles?|siglos?|séculos?)\b"),
    _unit("time", 10, r"(?i:decades?|jahrzehnte?n?|décennies?|décadas?)\b"),
    _unit("time", 1, r"(?:yr|yrs|y)\b(?!\s?[-−–]\s?[1¹])|(?i:years?|jahre?n?|ans|années?|años?|anos)\b"),
    _unit("time", 1 / 12, r"(?i:months?|monate?n?|mois|meses)\b"),
    _unit("days", 7, r"(?i:weeks?|wochen?|semaines?|semanas?)\b"),
    _unit("days", 1, r"d\b|(?i:days?|tage?n?|jours?|d[ií]as?)\b"),
    _unit("days", 1 / 24, r"(?<![12]\d{3})h\b|(?i:hours?|hrs?|stunden?|heures?|horas?)\b"),
    _unit("money:USD", 1, r"(?:USD|US\s?\$)|(?i:(?:US[ -])?dollars?|dólares)\b"),
    _unit("money:EUR", 1, r"(?:EUR\b|€)|(?i:euros?)\b"),
    _unit("ordinal", 1, r"(?:st|nd|rd|th)\b(?:[\s-]+(?i:centur(?:y|ies))\b)?"),
    _unit("span", 1, r"(?<=\d)(?:'?s|er)\b"),
)
_SUBSTANCES = (
    (
        "CO2e",
        r"(?i:[ée]quivalent\s+(?:en\s+)?)CO\s?2\b|CO\s?2[\s-]*(?i:[äée]q(?:uivalent\w*)?|e)\b"
        r"|(?i:carbon\s+dioxide[\s-]+equivalents?)\b",
    ),
    ("CO2", r"CO\s?2\b|(?i:carbon\s+dioxide|kohlen(?:stoff)?dioxid|dioxyde\s+de\s+carbone|dióxido\s+de\s+carbono)\b"),
    ("CH4", r"CH\s?4\b|(?i:methane?|méthane|metano)\b"),
    ("N2O", r"N\s?2\s?O\b|(?i:nitrous\s+oxide)\b"),
    ("C", r"C\b|(?i:carbon|kohlenstoff|carbone|carbono)\b"),
)
_SUBSTANCE = tuple(
    (name, re.compile(rf"\s*(?i:of\s+|de\s+|d['’]|en\s+)?(?:{pattern})")) for name, pattern in _SUBSTANCES
)
_PER = r"\s*(?:/\s?|(?i:(?:per|a|each|every|pro|par|por|al)\s+))"
_POWER = r"\s?[-−–]\s?[1¹](?!\.?\d)"
_RATES = (
    (
        re.compile(
            rf"{_PER}(?:(?i:years?|jahr|an|année|año|ano)|yr|y|a)\b|\s*(?:yr|y|a){_POWER}|\s*(?i:annually|yearly|jährlich)\b"
        ),
        "yr",
        1.0,
    ),
    (re.compile(rf"{_PER}(?:(?i:months?|monat|mois|mes|mês))\b|\s*(?i:monthly|monatlich)\b"), "yr", 12.0),
    (re.compile(rf"{_PER}(?i:week|woche|semaine|semana)\b|\s*(?i:weekly|wöchentlich)\b"), "yr", 365.25 / 7),
    (re.compile(rf"{_PER}(?i:decade|dec|jahrzehnt|décennie|década)\b|\s*(?i:decade){_POWER}"), "yr", 0.1),
    (re.compile(rf"{_PER}(?i:century|jahrhundert|siècle|siglo|século)\b|\s*(?i:century){_POWER}"), "yr", 0.01),
    (re.compile(rf"{_PER}(?:(?i:day|tag|jour|día|dia)|d)\b|\s*(?:d|(?i:day)){_POWER}"), "d", 1.0),
    (re.compile(rf"{_PER}(?:°\s?C|K|(?i:degrees?(?:\s+celsius)?))|\s*(?:°\s?C|K){_POWER}"), "K", 1.0),
)


def read_magnitude(text: str, position: int, *, money: bool) -> tuple[float, int]:
    """Return the factor of the magnitude word at ``position`` (1 if there is none), and the end of the word.

    If ``money`` is True, abbreviations are read as well: "5m" is five million.
    """
    if match := _MAGNITUDE.match(text, position):
        word, power = match["word"], match["power"] or match["exponent"]
        return (
            MAGNITUDES[" ".join(word.lower().split())] if word else 10.0 ** int(power.translate(_PLAIN_DIGITS))
        ), match.end()
    if money and (match := _MONEY_LETTER.match(text, position)):
        return _MONEY_LETTERS[match[1].lower()], match.end()
    return 1.0, position


def read_power_of_ten(text: str, position: int) -> tuple[float, int] | None:
    """Return the power of ten whose exponent is at ``position``, behind the number 10, and the end of the exponent."""
    match = _EXPONENT.match(text, position)
    return (10.0 ** int(match["power"].translate(_PLAIN_DIGITS)), match.end()) if match else None


def read_currency_before(text: str, position: int) -> tuple[Unit | None, int]:
    """Return the currency before the number at ``position``, and the start of the currency.

    If there is no currency, return None and ``position``.
    """
    match = _CURRENCY.search(text, max(0, position - 4), position)
    return (Unit(f"money:{_CURRENCIES[match[1].lower()]}", 1.0), match.start()) if match else (None, position)


def read_unit(text: str, position: int, *, bracketed: bool) -> tuple[Unit | None, int]:
    """Return the unit at ``position``, with substance and rate, and its end; None and ``position`` if there is none.

    If ``bracketed`` is True, a closing bracket may precede the unit, as in ``[0.95 to 1.20] °C``.
    """
    closing_bracket = CLOSING_BRACKET.match(text, position) if bracketed else None
    start = closing_bracket.end() if closing_bracket else position
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
        return read_rate(unit, text, end)
    return None, position


def read_rate(unit: Unit, text: str, position: int) -> tuple[Unit, int]:
    """Return a unit with the denominator at ``position`` ("per year"), and its end; unchanged if there is none."""
    for pattern, rate, factor in _RATES:
        if match := pattern.match(text, position):
            return replace(unit, factor=unit.factor * factor, rate=rate), match.end()
    return unit, position
