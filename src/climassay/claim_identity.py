"""Identifiers of claims that ignore differences in spelling.

Two texts are the same claim if they differ only in spaces, case or quotation marks. Any other difference may change the
meaning: a sign, a comparator, a number, a unit, a negation. Characters that look alike are equal, such as hyphen and
minus or subscripts and digits (CO₂, CO2), but not superscripts, since 10² is not 102.

:func:`words_id` is coarser; it keeps near-duplicates in the same part of a split into training and test data.
"""

import hashlib
import re
import unicodedata

_LOOKALIKES = str.maketrans(
    dict.fromkeys("‐‑‒–−⁃﹣－", "-")
    | dict.fromkeys("“”„‟«»", '"')
    | dict.fromkeys("‘’‚‛`´ʼ‹›", "'")
    | dict(zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True))
    | dict.fromkeys("º˚", "°")
)
_SPACE_BEFORE_SIGN = re.compile(r"(?<=\d) (?=[%‰°])")
_DOUBLE_QUOTE = re.compile(r'(?<!\d)"|"(?=\w)')
_SINGLE_QUOTE = re.compile(r"(?<!\w)'+|(?<!\d)'+(?!\w)")
_QUOTED_NUMBER = re.compile(r"""(?<!\w)(["'])((?:(?!\1).)*\d)\1(?!\w)""")
"""Pattern of quoted text that ends with a digit. Other quotation marks after a digit mean feet or inches."""
_CASED_UNIT = re.compile(r"(?<![^\W\d_])[mp](?=(?:wh?|g|j|pa|hz|t)\b)|(?<=\d)[ -]?[gkmt](?!\w)", re.IGNORECASE)
"""Pattern of letters whose case distinguishes units: m and p before a unit (milli or mega) and, after a number, also g,
k, m and t."""


def claim_key(text: str) -> str:
    """Return the normal form of a claim, which is the same for all its spellings.

    Spaces, quotation marks and case are normalised. Apostrophes within words, the signs of feet and inches, and the
    case of letters that distinguishes units (5 mW, 5 MW) are preserved.

    Examples:
        ``CO₂  isn’t “the” cause`` and ``co2 isn't the cause`` have the same key; ``+0.5 K`` and ``-0.5 K`` do not.
    """
    normalised_text = unicodedata.normalize("NFC", text).translate(_LOOKALIKES)
    normalised_text = " ".join("".join(char for char in normalised_text if unicodedata.category(char) != "Cf").split())
    for quotes, replacement in ((_QUOTED_NUMBER, r" \2 "), (_DOUBLE_QUOTE, " "), (_SINGLE_QUOTE, " ")):
        normalised_text = quotes.sub(replacement, normalised_text)
    normalised_text = _SPACE_BEFORE_SIGN.sub("", " ".join(normalised_text.split()))
    return fold_case(normalised_text)


def fold_case(text: str) -> str:
    """Return a text in lower case, except for letters whose case distinguishes units (5 mW, 5 MW)."""
    text_parts, position = [], 0
    for unit in _CASED_UNIT.finditer(text):
        text_parts += [text[position : unit.start()].casefold(), unit[0]]
        position = unit.end()
    return "".join(text_parts) + text[position:].casefold()


def claim_id(text: str) -> str:
    """Return the id of a claim: a hash of its :func:`claim_key`, 12 hexadecimal digits."""
    return _hash(claim_key(text))


def words_id(text: str) -> str:
    """Return a hash of the text's words in lower case without punctuation, 12 hexadecimal digits.

    Opposite claims, such as +0.5 K and -0.5 K, may have the same hash: never use it to look up claims. It is used to
    keep near-duplicates in the same part of a split, and to identify a model's training texts.
    """
    return _hash(bare_words(text))


def bare_words(text: str) -> str:
    """Return the words and numbers of a text in lower case, separated by spaces, without punctuation and signs."""
    return " ".join(re.findall(r"\w+", text.casefold()))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:12]
