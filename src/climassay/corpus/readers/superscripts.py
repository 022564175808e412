"""Join the parts of a line of text, interpreting superscripts and subscripts by their content and the adjacent text.

A superscript is an exponent, a charge, an isotope's mass number, an ordinal ending, or a note mark. Exponents,
charges and mass numbers become Unicode superscripts (``W m⁻²``, ``10²²``, ``SO4²⁻``), since plain digits would change
the number before them. Note marks are omitted and counted.
"""

import re
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple


class Script(Enum):
    """Vertical position of a text part."""

    NORMAL = "normal"
    SUPERSCRIPT = "raised"
    SUBSCRIPT = "lowered"
    EXPONENT = "power"
    """Superscript that the markup identifies as an exponent, as in MathML."""
    NOTE = "note"
    """Text on the baseline that the markup identifies as a note mark."""


class TextPart(NamedTuple):
    """Part of a line whose characters have the same vertical position."""

    text: str
    script: Script = Script.NORMAL
    is_note_like: bool = False
    """Whether a link within the page or a class name suggests a note mark. This is considered only if the text is
    ambiguous."""


class JoinedText(NamedTuple):
    """Joined text of a line, not cleaned yet."""

    text: str
    n_note_marks: int
    """Number of note marks that were removed."""


_SUPERSCRIPTS = str.maketrans("0123456789+-−–‑‐=()ni", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻⁻⁻⁼⁽⁾ⁿⁱ")
_SUBSCRIPTS = str.maketrans("0123456789+-−–‑‐=()", "₀₁₂₃₄₅₆₇₈₉₊₋₋₋₋₋₌₍₎")
_SUPERSCRIPT_ONLY = re.compile(r"[0-9+\-−–‑‐=()ni]+")
_SIGN = "[+\\-−–‑‐±]"
_SIGN_ALONE = re.compile(rf"\s*{_SIGN}\s*")
_SIGNED_NUMBER = re.compile(rf"{_SIGN}\s?\d+(?:[.,]\d+)?")
_CHARGE = re.compile(rf"\d{{0,2}}{_SIGN}{{1,3}}")
_DIGITS = re.compile(r"\d{1,4}")
_SEVERAL_NUMBERS = re.compile(r"\d{1,3}(?:\s*[,;–‑-]\s*\d{1,3})+")
_FRACTION = re.compile(r"\d+\s*[/⁄]\s*\d+")
_NOTE_MARK = re.compile(
    r"[*†‡§¶#]+|\[[\w\s.,;–-]{1,30}\]|\(\w{1,3}\)|\d{1,3}\)|[a-z](?:\s*,\s*[a-z])+|note\s?\d+|\d{1,3}[a-z]?\*+"
)
_NOTE_LIST = re.compile(r"(?:(?:\d{1,3}|[a-z]|[*†‡§¶#]+)\s*[,;]\s*)+[*†‡§¶#]+")
_NOTE_LETTER = re.compile(r"[a-hA-H]")
_ORDINAL = re.compile(r"(?:st|nd|rd|th|er|re|ère|e|ème|eme|nde|ter|te|rs)", re.IGNORECASE)
_ORDINAL_SIGNS = {"o": "º", "O": "º", "a": "ª", "°": "°", "º": "º", "ª": "ª"}
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
_AMBIGUOUS_UNITS = frozenset({"a", "in", "A", "min", "sec"})
"""Unit symbols that are also English words."""
_FUNCTIONS = frozenset(
    [*("sin", "cos", "tan", "cot", "sinh", "cosh", "tanh", "log", "ln", "exp", "det", "dx", "dy", "dz"), *("dt", "dr")]
)
MAX_UNIT_EXPONENT = 9
MAX_FORMULA_CHARACTERS = 9
"""Maximum length of a superscript formula, written as ``^(...)``; longer text is not an exponent."""
_MAX_UNKNOWN_UNIT_LETTERS = 2
"""Maximum length of an unknown unit that may have an exponent."""


def join_parts(parts: Sequence[TextPart]) -> JoinedText:
    """Join the parts of a line, with exponents as superscript characters and without note marks."""
    if all(part.script is Script.NORMAL for part in parts):
        return JoinedText("".join(part.text for part in parts), 0)
    line = _LineJoiner()
    parts = _merge_split_exponents(parts)
    for index, part in enumerate(parts):
        text_after = "".join(later_part.text for later_part in parts[index + 1 : index + 3])
        match part.script:
            case Script.NORMAL:
                line.add(part.text)
            case Script.NOTE:
                line.count_note(part.text)
            case Script.SUBSCRIPT:
                is_before_normal = index + 1 < len(parts) and parts[index + 1].script is Script.NORMAL
                line.add_subscript(part.text.strip(), text_after if is_before_normal else "")
            case Script.EXPONENT:
                line.add_exponent(part.text.strip())
            case Script.SUPERSCRIPT:
                is_fraction = text_after.lstrip()[:1] in ("/", "⁄") and text_after.lstrip()[1:2].isdigit()
                next_part = parts[index + 1] if index + 1 < len(parts) else None
                has_lower_bound = (
                    next_part is not None
                    and next_part.script is Script.SUBSCRIPT
                    and _SIGNED_NUMBER.fullmatch(next_part.text.strip())
                )
                line.add_superscript(part, text_after, is_fraction=is_fraction, is_bound=bool(has_lower_bound))
    return JoinedText("".join(line.pieces), line.n_note_marks)


def _merge_split_exponents(parts: Sequence[TextPart]) -> list[TextPart]:
    """Join adjacent superscripts that belong together, and adjacent normal parts."""
    merged_parts: list[TextPart] = []
    for part in parts:
        last_part = merged_parts[-1] if merged_parts else None
        if (
            last_part
            and last_part.script is part.script is Script.SUPERSCRIPT
            and _is_continued(last_part.text, part.text)
        ):
            merged_parts[-1] = last_part._replace(text=last_part.text.strip() + part.text.strip())
        elif last_part and last_part.script is part.script is Script.NORMAL:
            merged_parts[-1] = last_part._replace(text=last_part.text + part.text)
        elif part.text:
            merged_parts.append(part)
    return merged_parts


def _is_continued(text: str, next_text: str) -> bool:
    """Return whether two adjacent superscripts belong together: a sign and its digits, or parts of a list of notes."""
    return _SIGN_ALONE.fullmatch(text) is not None or text.strip()[-1:] in (",", ";") or next_text.strip() in (",", ";")


class _LineJoiner:
    """Builder of the text of a line from its parts."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.n_note_marks = 0
        self._tail = ""
        """Last characters of the line."""
        self._has_gap = False
        """True if text was omitted after the last character, so that digits must not be joined."""
        self._is_after_subscript = False
        """True if the last characters are a subscript."""

    def add(self, text: str) -> None:
        """Append text, inserting a space if the removal of text would otherwise join two words or numbers."""
        if not text:
            return
        if self._has_gap and self._tail[-1:].isalnum() and text[0].isalnum():
            self.pieces.append(" ")
        self._has_gap = self._is_after_subscript = False
        self.pieces.append(text)
        self._tail = (self._tail + text)[-60:]

    def count_note(self, text: str) -> None:
        """Count a note mark without appending it."""
        if text.strip():
            self.n_note_marks += 1
            self._has_gap = True

    def add_subscript(self, text: str, following_text: str) -> None:
        """Append a subscript: plain after letters (``CO2``), subscript characters beside digits (``log₁₀5``)."""
        if not text:
            return
        last_character = self._tail[-1:]
        if _SIGNED_NUMBER.fullmatch(text) and (last_character.isdigit() or last_character in "⁰¹²³⁴⁵⁶⁷⁸⁹"):
            self.add(f" {text}")  # lower bound of an interval: 1.2 +0.3 −0.2
        elif text[0].isdigit() and last_character.isdigit() and not text.isdigit():
            self.add(f"_{text}")
        elif (
            text.isdigit()
            and (last_character.isdigit() or following_text[:1].isdigit())
            and last_character not in ("/", "⁄")
        ):
            self.add(text.translate(_SUBSCRIPTS))
        else:
            self.add(text)
            self._has_gap = text[-1].isdigit() and following_text[:1].isdigit()
        self._is_after_subscript = True

    def add_superscript(self, part: TextPart, following_text: str, *, is_fraction: bool, is_bound: bool) -> None:
        """Append a superscript according to its meaning, or count it as a note mark."""
        text = part.text.strip()
        text_before = self._tail
        if not text:
            self.add(part.text)
        elif text in (",", ";"):
            self._has_gap = True  # between the marks of two notes
        elif is_fraction and text.isdigit():
            self.add(f" {text}" if text_before[-1:].isalnum() else text)
        elif (
            is_bound
            and _SIGNED_NUMBER.fullmatch(text)
            and text_before[-1:].isdigit()
            and not _POWER_OF_TEN.search(text_before)
        ):
            self.add(f" {text}")
        elif self._is_note(text, text_before, following_text, part.is_note_like):
            self.count_note(text)
        else:
            self.add_exponent(text)

    def add_exponent(self, text: str) -> None:
        """Append an exponent, a charge, a mass number or an ordinal suffix."""
        text_before = self._tail
        text_without_spaces = "".join(text.split())
        if text_before[-1:].isdigit() and _ORDINAL.fullmatch(text):
            self.add(text)
        elif text in _ORDINAL_SIGNS and text_before[-1:].isalnum():
            self.add(_ORDINAL_SIGNS[text])
        elif _SUPERSCRIPT_ONLY.fullmatch(text_without_spaces):
            self.add(text_without_spaces.translate(_SUPERSCRIPTS))
        elif len(text_without_spaces) == 1 and text_without_spaces.isalnum():
            self.add(f"^{text_without_spaces}")
        elif len(text_without_spaces) <= MAX_FORMULA_CHARACTERS and any(
            char in "+-−–=/·×.,⁄" or char.isdigit() for char in text_without_spaces
        ):
            self.add(f"^({text_without_spaces})")
        else:
            self.add(f" {text}" if text_before[-1:].isdigit() and text[0].isdigit() else text)

    def _is_note(self, text: str, text_before: str, text_after: str, is_note_like: bool) -> bool:
        """Return whether a superscript is a note mark.

        The superscript's own text decides. If that is ambiguous, the text around it decides and, if that is ambiguous,
        too, the markup.
        """
        if _NOTE_MARK.fullmatch(text):
            return True
        text = text.rstrip(",;")
        if _NOTE_LIST.fullmatch(text):
            return True
        if _SIGNED_NUMBER.fullmatch(text) or _CHARGE.fullmatch(text) or _FRACTION.fullmatch(text):
            return False
        if _SEVERAL_NUMBERS.fullmatch(text):
            return not _POWER_OF_TEN.search(text_before)
        if _NOTE_LETTER.fullmatch(text):
            is_note = _is_letter_note(text_before)
        elif _DIGITS.fullmatch(text):
            is_note = self._are_digits_note(text, text_before, text_after)
        else:
            return is_note_like and not (text_before[-1:].isdigit() and _ORDINAL.fullmatch(text))
        return is_note_like if is_note is None else is_note

    def _are_digits_note(self, text: str, text_before: str, text_after: str) -> bool | None:
        """Return whether superscript digits without a sign are a note mark; None if the adjacent text is ambiguous."""
        if _ISOTOPE.match(text + text_after):
            return False
        if not text_before or text_before[-1].isspace():
            return _is_note_after_space(text, text_before.rstrip())
        if text_after[:1].isalpha():  # a note mark ends a word, but the space after it may be missing
            return None if _PROSE_END.search(text_before) else False
        if (
            _NUMBER_END.search(text_before)
            and not self._is_after_subscript
            and not _has_letters_before_digits(text_before)
        ):
            return _is_note_after_number(text, text_before)
        if match := _BRACKET_END.search(text_before):
            content = match[1] or match[2] or ""
            return (_PROSE_WORD.search(content) is not None and content.strip("% ") not in _UNITS) or None
        if match := _WORD_END.search(text_before):
            return _is_note_after_word(text, match[1], bool(match[2]), text_before[: match.start()])
        if text_before[-1] in "/⁄·×^√∂∇Δ∑′|}":
            return None
        return True


def _has_letters_before_digits(text_before: str) -> bool:
    match = _WORD_END.search(text_before)
    return match is not None and bool(match[2])


def _is_note_after_space(text: str, text_before: str) -> bool:
    word = _WORD_END.search(text_before)
    is_unit = word is not None and not word[2] and len(word[1]) > 1 and word[1] in _UNITS - _AMBIGUOUS_UNITS
    return not (_POWER_OF_TEN.search(text_before) or (text in ("2", "3") and is_unit))


def _is_note_after_number(text: str, text_before: str) -> bool | None:
    if _POWER_OF_TEN.search(text_before):
        return False
    return None if _SMALL_BASE.search(text_before) and text != "1" else True


def _is_note_after_word(text: str, word: str, has_digits: bool, text_before: str) -> bool | None:
    is_possible_exponent = int(text) <= MAX_UNIT_EXPONENT
    if has_digits:
        return not (len(word) == 1 and text in ("2", "3"))  # CO2 with a note, but x1²
    if word in _FUNCTIONS:
        return False
    if word in _UNITS and not text_before.endswith("°"):
        # "the area in m²", but "as shown in³".
        return True if text == "1" or not is_possible_exponent else (None if word in _AMBIGUOUS_UNITS else False)
    if len(word) == 1:
        return text != "2" if text_before.endswith("°") else (False if text in ("2", "3") else None)
    return None if len(word) <= _MAX_UNKNOWN_UNIT_LETTERS and text in ("2", "3") else True


def _is_letter_note(text_before: str) -> bool | None:
    """Return whether a superscript letter is a note mark; None if the text before it may be a variable."""
    if not text_before or text_before[-1].isspace():
        return True
    if _POWER_OF_TEN.search(text_before) or text_before[-1] in "/⁄·×^√∂∇Δ∑′|}":
        return False
    match = _WORD_END.search(text_before)
    return None if match and not match[2] and len(match[1]) <= _MAX_UNKNOWN_UNIT_LETTERS else True
