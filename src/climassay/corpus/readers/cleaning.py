"""Normalise extracted text, join words split by line breaks, and hash content into document ids."""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable

LINE_END_HYPHEN = "\ufffe"
"""Placeholder for a line-end hyphen, which may or may not belong to the word."""

_LIGATURES = {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"}
# Fonts of TeX keep ligatures at these control codes; a file without a Unicode map shows them bare, between letters.
_TEX_LIGATURES = {"\x0b": "ff", "\x0c": "fi", "\x0d": "fl", "\x0e": "ffi", "\x0f": "ffl"}
_TEX_LIGATURE = re.compile(r"(?<=[A-Za-z])[\x0b-\x0f](?=[A-Za-z])")
_INVISIBLE = "\u00ad\u200b\u200c\u200d\u2060\ufeff\u200e\u200f\u202a\u202b\u202c\u202d\u202e"
_CONTROL = "\ufffd\ufff9-\ufffb\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f"
_PRIVATE_USE = "\ue000-\uf8ff"
_LONE_SURROGATES = "\ud800-\udfff"
"""Range of surrogate code points, which cannot be stored; JSON may contain unpaired ones."""
_STYLED_CHARACTERS = "\U0001d400-\U0001d7ff"
"""Range of mathematical letters and digits, for example in italics. They are replaced by ordinary letters and digits.
"""
_WINDOWS_1252 = {chr(byte): bytes([byte]).decode("cp1252", "ignore") for byte in range(0x80, 0xA0) if byte != 0x85}
"""Windows-1252 character for each control character that results from decoding its byte as Latin-1."""
_SOFT_HYPHEN = "\u00ad"
_UNUSUAL = re.compile(
    f"[{''.join(_LIGATURES)}{_INVISIBLE}{_CONTROL}{_PRIVATE_USE}{_LONE_SURROGATES}{_STYLED_CHARACTERS}]+"
)
_REPLACEMENTS = _LIGATURES | _WINDOWS_1252 | dict.fromkeys("\uf0b7\uf0a7\uf0d8\uf076\uf0fc", "•")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_LETTERS_AT_END = re.compile(r"[^\W\d_]*\Z")
_WORD_AT_START = re.compile(r"\s*((?:[^\W_]|-(?=[^\W_]))*)")
_DIGITS = re.compile(r"\d+")
MAX_WORD_CHARACTERS = 60
MIN_COMPOUND_PART_LETTERS = 3


def clean(text: str) -> str:
    """Normalise text to one line: NFC, single spaces, ligatures spelled out, no control characters.

    Latin-1 control characters become windows-1252 characters (``1850–1900``), letters and digits in a mathematical
    style become ordinary ones (``𝑇`` becomes ``T``), and surrogate pairs are joined. If a character is removed between
    two digits, it is replaced by a hyphen (soft hyphens) or a space (others).

    Superscripts, subscripts and mathematical signs are kept: ``W m⁻²`` does not become ``W m-2``, as with NFKC.
    """
    if not (text.isascii() and text.isprintable()):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        text = _TEX_LIGATURE.sub(lambda match: _TEX_LIGATURES[match.group()], text)
        text = _UNUSUAL.sub(_replace_unusual, unicodedata.normalize("NFC", text))
    return " ".join(text.split())


def _replace_unusual(match: re.Match[str]) -> str:
    """Return the replacement for a sequence of unusual characters. Digits before and after it remain separated."""
    characters = match.group()
    replacement = "".join(_REPLACEMENTS.get(char) or _to_plain(char) for char in characters)
    previous_character, next_character = (
        match.string[match.start() - 1 : match.start()],
        match.string[match.end() : match.end() + 1],
    )
    if replacement or not (previous_character.isdigit() and next_character.isdigit()):
        return replacement
    return "-" if _SOFT_HYPHEN in characters else " "


def _to_plain(char: str) -> str:
    """Return the ordinary form of a styled letter or digit; an empty string for other unusual characters."""
    return unicodedata.normalize("NFKC", char) if char >= _STYLED_CHARACTERS[0] else ""


def count_words(texts: Iterable[str]) -> Counter[str]:
    """Count lower-cased words; a hyphenated compound is counted, and so is each of its parts."""
    joined_text = "\n".join(texts).lower().replace("‐", "-")
    if LINE_END_HYPHEN in joined_text:
        joined_text = _replace_broken_words(joined_text, lambda _left, _right: " ")  # halves of words are not words
    counts = Counter(_WORD.findall(joined_text))
    for word, count in list(counts.items()):
        if "-" in word:
            for part in word.split("-"):
                counts[part] += count
    return counts


def join_hyphens(text: str, vocabulary: Counter[str]) -> str:
    """Replace each :data:`LINE_END_HYPHEN` by a hyphen or nothing.

    For example, ``prob￾lems`` becomes problems, and ``short￾lived`` short-lived. ``vocabulary`` has the word counts of
    the whole document (:func:`count_words`), which decide between the two spellings.
    """
    if LINE_END_HYPHEN not in text:
        return text
    return _replace_broken_words(text, lambda left, right: _join_word_parts(left, right, vocabulary))


def _replace_broken_words(text: str, resolve: Callable[[str, str], str]) -> str:
    """Replace each placeholder and the word parts on both sides by ``resolve(left_part, right_part)``."""
    first_part, *other_parts = text.split(LINE_END_HYPHEN)
    result = first_part
    for part in other_parts:
        left_match = _LETTERS_AT_END.search(result, max(0, len(result) - MAX_WORD_CHARACTERS))
        left_part = left_match.group() if left_match else ""
        right_match = _WORD_AT_START.match(part)
        right_part = right_match.group(1) if right_match else ""
        remaining_text = part[right_match.end() if right_match else 0 :]
        result = f"{result[: len(result) - len(left_part)]}{resolve(left_part, right_part)}{remaining_text}"
    return result


def _join_word_parts(left_part: str, right_part: str, vocabulary: Counter[str]) -> str:
    is_upper_case = left_part.isupper() and right_part.isupper() and len(left_part) > 1
    if not left_part or not right_part or not (right_part[0].islower() or is_upper_case):
        return f"{left_part}-{right_part}"
    lower_case_left, lower_case_right = left_part.lower(), right_part.lower()
    n_joined, n_compound = (
        vocabulary[lower_case_left + lower_case_right],
        vocabulary[f"{lower_case_left}-{lower_case_right}"],
    )
    if n_joined != n_compound:
        return left_part + right_part if n_joined > n_compound else f"{left_part}-{right_part}"
    are_words = vocabulary[lower_case_left] > 0 and vocabulary[lower_case_right.split("-")[0]] > 0
    if are_words and min(len(left_part), len(right_part)) >= MIN_COMPOUND_PART_LETTERS:
        return f"{left_part}-{right_part}"
    return left_part + right_part


def mask_digits(text: str) -> str:
    """Replace each run of digits by ``#``, which makes ``Chapter 7 | 12`` and ``Chapter 7 | 13`` equal."""
    return _DIGITS.sub("#", text)


def document_id(*contents: str | bytes) -> str:
    """Hash contents to an id of 16 hexadecimal digits.

    Args:
        contents: Bytes of a file, or texts if the document is only a part of a file.
    """
    digest = hashlib.sha256()
    for content in contents:
        data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        digest.update(str(len(data)).encode() + b"\0")
        digest.update(data)
    return digest.hexdigest()[:16]
