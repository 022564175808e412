"""Join the parts of a line of text, interpreting raised and lowered parts by content and neighbours.

A raised figure is an exponent, a charge, an isotope's mass number, an ordinal ending, or a note mark. Exponents,
charges and mass numbers become Unicode superscripts (``W m⁻²``, ``10²²``, ``SO4²⁻``), since plain digits would change
the number before them. Note marks are left out and counted.
"""

import re
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple


class Script(Enum):
    """Vertical position of a part of a line."""

    NORMAL = "normal"
    RAISED = "raised"
    LOWERED = "lowered"
    POWER = "power"
    """Raised text marked as an exponent, as in MathML."""
    NOTE = "note"
    """Text on the line marked as a note mark."""


class TextPart(NamedTuple):
    """Text with one vertical position."""

    text: str
    script: Script = Script.NORMAL
    is_note_like: bool = False
    """True if a link within the page or a class name suggests a note mark; decides if nothing else does."""


class JoinedText(NamedTuple):
    """Text of a line before cleaning."""

    text: str
    note_marks: int
    """Number of note marks left out."""


_RAISED = str.maketrans("0123456789+-−–‑‐=()ni", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻⁻⁻⁼⁽⁾ⁿⁱ")
_LOWERED = str.maketrans("0123456789+-−–‑‐=()", "₀₁₂₃₄₅₆₇₈₉₊₋₋₋₋₋₌₍₎")
_RAISED_ONLY = re.compile(r"[0-9+\-−–‑‐=()ni]+")
_SIGN = "[+\\-−–‑‐±]"
_SIGN_ALONE = re.compile(rf"\s*{_SIGN}\s*")
_SIGNED = re.compile(rf"{_SIGN}\s?\d+(?:[.,]\d+)?")
_CHARGE = re.compile(rf"\d{{0,2}}{_SIGN}{{1,3}}")
_FIGURES = re.compile(r"\d{1,4}")
_SEVERAL_FIGURES = re.compile(r"\d{1,3}(?:\s*[,;–‑-]\s*\d{1,3})+")
_FRACTION = re.compile(r"\d+\s*[/⁄]\s*\d+")
_NOTE_MARK = re.compile(
    r"[*†‡§¶#]+|\[[\w\s.,;–-]{1,30}\]|\(\w{1,3}\)|\d{1,3}\)|[a-z](?:\s*,\s*[a-z])+|note\s?\d+|\d{1,3}[a-z]?\*+"
)
_NOTE_LIST = re.compile(r"(?:(?:\d{1,3}|[a-z]|[*†‡§¶#]+)\s*[,;]\s*)+[*†‡§¶#]+")
_NOTE_LETTER = re.compile(r"[a-hA-H]")
_ORDINAL = re.compile(r"(?:st|nd|rd|th|er|re|ère|e|ème|eme|nde|ter|te|rs)", re.IGNORECASE)
_CIRCLES = {"o": "º", "O": "º", "a": "ª", "°": "°", "º": "º", "ª": "ª"}
_POWER_OF_TEN = re.compile(r"(?<![\d.,])10$")
_SMALL_BASE = re.compile(r"(?<![\d.,])[2-9]$")
_NUMBER_END = re.compile(r"\d$")
_LETTERS = "[^\\W\\d_⁰¹²³⁴-⁹⁺⁻ⁿⁱ₀-₉]"
_WORD_END = re.compile(rf"({_LETTERS}+)([\d₀-₉]*)$")
_BRACKET_END = re.compile(r"\(([^()]*)\)$|\[([^\[\]]*)\]$|\{[^{}]*\}$")
_PROSE_WORD = re.compile(r"[^\W\d_]{3,}")
_PROSE_END = re.compile(r"[^\W\d_]{4,}$|(?<!\d)\d{4}$|\)$|[A-Z]{2}\d{1,2}$")
_ISOTOPE = re.compile(
    r"(?:[123] ?H|[34] ?He|[67] ?Li|(?:7|9|10) ?Be|(?:[89]|[1-9]\d|[12]\d\d) ?(?:B|C|N|O|F|Ne|Na|Mg|Al|Si|P|S|Cl|Ar|"
    r"K|Ca|Fe|Co|Ni|Cu|Zn|Kr|Sr|Y|Zr|Tc|Ru|Ag|Sn|I|Xe|Cs|Ba|Nd|Sm|Os|Hg|Tl|Pb|Bi|Po|Rn|Ra|Ac|Th|Pa|U|Np|Pu|Am))"
    r"(?![a-z])"
)
_UNITS = frozenset(
    [
        *("m", "km", "cm", "mm", "dm", "nm", "µm", "μm", "µ", "ft", "in", "mi", "yd", "ha", "a", "s", "h"),
        *("d", "yr", "min", "sec", "g", "kg", "mg", "µg", "μg", "t", "Mt", "Gt", "Tg", "Pg", "K", "W"),
        *("kW", "MW", "GW", "TW", "J", "kJ", "MJ", "EJ", "ZJ", "PW", "N", "Pa", "kPa", "hPa", "V", "A"),
        *("Hz", "mol", "L", "l", "rad", "sr", "bp", "px", "deg", "°"),
    ]
)
_WORDS = frozenset({"a", "in", "A", "min", "sec"})
"""Unit symbols that are also English words."""
_FUNCTIONS = frozenset(
    [
        *("sin", "cos", "tan", "cot", "sinh", "cosh", "tanh", "log", "ln", "exp", "det", "dx", "dy", "dz"),
        *("dt", "dr"),
    ]
)
MAX_UNIT_EXPONENT = 9
MAX_FORMULA = 9
"""Maximum number of characters of a raised formula, written as ``^(...)``; longer text is not an exponent."""
_SHORT_WORD = 2
"""Maximum number of letters of an unknown unit that an exponent may follow."""


def join_parts(parts: Sequence[TextPart]) -> JoinedText:
    """Return the text of a line with exponents as superscripts and without note marks.

    Args:
        parts: Parts in reading order.
    """
    if all(part.script is Script.NORMAL for part in parts):
        return JoinedText("".join(part.text for part in parts), 0)
    line = _LineJoiner()
    parts = _merge_split_exponents(parts)
    for index, part in enumerate(parts):
        following = "".join(other.text for other in parts[index + 1 : index + 3])
        match part.script:
            case Script.NORMAL:
                line.add(part.text)
            case Script.NOTE:
                line.leave_out_note(part.text)
            case Script.LOWERED:
                is_before_normal = index + 1 < len(parts) and parts[index + 1].script is Script.NORMAL
                line.add_lowered(part.text.strip(), following if is_before_normal else "")
            case Script.POWER:
                line.add_power(part.text.strip())
            case Script.RAISED:
                is_fraction = following.lstrip()[:1] in ("/", "⁄") and following.lstrip()[1:2].isdigit()
                lowered = parts[index + 1] if index + 1 < len(parts) else None
                has_lower_bound = (
                    lowered is not None and lowered.script is Script.LOWERED and _SIGNED.fullmatch(lowered.text.strip())
                )
                line.add_raised(part, following, is_fraction=is_fraction, is_bound=bool(has_lower_bound))
    return JoinedText("".join(line.pieces), line.note_marks)


def _merge_split_exponents(parts: Sequence[TextPart]) -> list[TextPart]:
    """Join a raised sign with the raised figure after it, and adjacent parts on the line."""
    merged: list[TextPart] = []
    for part in parts:
        last = merged[-1] if merged else None
        if last and last.script is part.script is Script.RAISED and _is_continued(last.text, part.text):
            merged[-1] = last._replace(text=last.text.strip() + part.text.strip())
        elif last and last.script is part.script is Script.NORMAL:
            merged[-1] = last._replace(text=last.text + part.text)
        elif part.text:
            merged.append(part)
    return merged


def _is_continued(text: str, following: str) -> bool:
    """Return whether two raised texts form one: a sign and its figure, or several note marks."""
    return _SIGN_ALONE.fullmatch(text) is not None or text.strip()[-1:] in (",", ";") or following.strip() in (",", ";")


class _LineJoiner:
    """Builds the text of a line."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.note_marks = 0
        self._tail = ""
        """Last characters of the line."""
        self._has_gap = False
        """True if text was left out after the last character, so that digits must not join."""
        self._is_lowered = False
        """True if the last characters were lowered."""

    def add(self, text: str) -> None:
        """Append text, with a space between digits that were not adjacent in the source."""
        if not text:
            return
        if self._has_gap and self._tail[-1:].isalnum() and text[0].isalnum():
            self.pieces.append(" ")
        self._has_gap = self._is_lowered = False
        self.pieces.append(text)
        self._tail = (self._tail + text)[-60:]

    def leave_out_note(self, text: str) -> None:
        """Count a note mark."""
        if text.strip():
            self.note_marks += 1
            self._has_gap = True

    def add_lowered(self, text: str, following: str) -> None:
        """Append lowered text: plain after letters (``CO2``), as subscripts beside other digits (``log₁₀5``)."""
        if not text:
            return
        before = self._tail[-1:]
        if _SIGNED.fullmatch(text) and (before.isdigit() or before in "⁰¹²³⁴⁵⁶⁷⁸⁹"):
            self.add(f" {text}")  # lower bound of an interval: 1.2 +0.3 −0.2
        elif text[0].isdigit() and before.isdigit() and not text.isdigit():
            self.add(f"_{text}")
        elif text.isdigit() and (before.isdigit() or following[:1].isdigit()) and before not in ("/", "⁄"):
            self.add(text.translate(_LOWERED))
        else:
            self.add(text)
            self._has_gap = text[-1].isdigit() and following[:1].isdigit()
        self._is_lowered = True

    def add_raised(self, part: TextPart, following: str, *, is_fraction: bool, is_bound: bool) -> None:
        """Append raised text by its meaning, or count it as a note mark."""
        text = part.text.strip()
        before = self._tail
        if not text:
            self.add(part.text)
        elif text in (",", ";"):
            self._has_gap = True  # between the marks of two notes
        elif is_fraction and text.isdigit():
            self.add(f" {text}" if before[-1:].isalnum() else text)
        elif is_bound and _SIGNED.fullmatch(text) and before[-1:].isdigit() and not _POWER_OF_TEN.search(before):
            self.add(f" {text}")
        elif self._is_note(text, before, following, part.is_note_like):
            self.leave_out_note(text)
        else:
            self.add_power(text)

    def add_power(self, text: str) -> None:
        """Append an exponent, charge, mass number or ordinal ending."""
        before = self._tail
        compact = "".join(text.split())
        if before[-1:].isdigit() and _ORDINAL.fullmatch(text):
            self.add(text)
        elif text in _CIRCLES and before[-1:].isalnum():
            self.add(_CIRCLES[text])
        elif _RAISED_ONLY.fullmatch(compact):
            self.add(compact.translate(_RAISED))
        elif len(compact) == 1 and compact.isalnum():
            self.add(f"^{compact}")
        elif len(compact) <= MAX_FORMULA and any(char in "+-−–=/·×.,⁄" or char.isdigit() for char in compact):
            self.add(f"^({compact})")
        else:
            self.add(f" {text}" if before[-1:].isdigit() and text[0].isdigit() else text)

    def _is_note(self, text: str, before: str, following: str, is_note_like: bool) -> bool:
        """Return whether raised text is a note mark, by its content, then neighbours, then markup."""
        if _NOTE_MARK.fullmatch(text):
            return True
        text = text.rstrip(",;")
        if _NOTE_LIST.fullmatch(text):
            return True
        if _SIGNED.fullmatch(text) or _CHARGE.fullmatch(text) or _FRACTION.fullmatch(text):
            return False
        if _SEVERAL_FIGURES.fullmatch(text):
            return not _POWER_OF_TEN.search(before)
        if _NOTE_LETTER.fullmatch(text):
            is_note = _letter_is_note(before)
        elif _FIGURES.fullmatch(text):
            is_note = self._figure_is_note(text, before, following)
        else:
            return is_note_like and not (before[-1:].isdigit() and _ORDINAL.fullmatch(text))
        return is_note_like if is_note is None else is_note

    def _figure_is_note(self, text: str, before: str, following: str) -> bool | None:
        """Return whether a raised unsigned figure is a note mark; None if the neighbouring text does not decide."""
        if _ISOTOPE.match(text + following):
            return False
        if not before or before[-1].isspace():
            return _figure_after_space_is_note(text, before.rstrip())
        if following[:1].isalpha():  # a note's mark ends a word, but pages forget the space after it
            return None if _PROSE_END.search(before) else False
        if _NUMBER_END.search(before) and not self._is_lowered and not _letters_before_digits(before):
            return _figure_after_number_is_note(text, before)
        if match := _BRACKET_END.search(before):
            inside = match[1] or match[2] or ""
            return (_PROSE_WORD.search(inside) is not None and inside.strip("% ") not in _UNITS) or None
        if match := _WORD_END.search(before):
            return _figure_after_word_is_note(text, match[1], bool(match[2]), before[: match.start()])
        if before[-1] in "/⁄·×^√∂∇Δ∑′|}":
            return None
        return True


def _letters_before_digits(before: str) -> bool:
    match = _WORD_END.search(before)
    return match is not None and bool(match[2])


def _figure_after_space_is_note(text: str, before: str) -> bool:
    word = _WORD_END.search(before)
    is_unit = word is not None and not word[2] and len(word[1]) > 1 and word[1] in _UNITS - _WORDS
    return not (_POWER_OF_TEN.search(before) or (text in ("2", "3") and is_unit))


def _figure_after_number_is_note(text: str, before: str) -> bool | None:
    if _POWER_OF_TEN.search(before):
        return False
    return None if _SMALL_BASE.search(before) and text != "1" else True


def _figure_after_word_is_note(text: str, word: str, has_digits: bool, before: str) -> bool | None:
    is_small = int(text) <= MAX_UNIT_EXPONENT
    if has_digits:
        return not (len(word) == 1 and text in ("2", "3"))  # CO2 with a note, but x1²
    if word in _FUNCTIONS:
        return False
    if word in _UNITS and not before.endswith("°"):
        # "the area in m²", but "as shown in³".
        return True if text == "1" or not is_small else (None if word in _WORDS else False)
    if len(word) == 1:
        return text != "2" if before.endswith("°") else (False if text in ("2", "3") else None)
    return None if len(word) <= _SHORT_WORD and text in ("2", "3") else True


def _letter_is_note(before: str) -> bool | None:
    """Return whether a raised letter is a note mark; None after a possible variable."""
    if not before or before[-1].isspace():
        return True
    if _POWER_OF_TEN.search(before) or before[-1] in "/⁄·×^√∂∇Δ∑′|}":
        return False
    match = _WORD_END.search(before)
    return None if match and not match[2] and len(match[1]) <= _SHORT_WORD else True
