"""When two texts are one claim, and when they merely share their words.

A claim is its text but for spaces, case of letters and quotation marks. Everything else may turn it into another one: a
sign, a comparator, a number, a unit, a negation, a full stop. What looks alike is one character: a hyphen and a minus
sign, subscript digits and digits (CO₂, CO2). Superscripts are not, for 10² is not 102.

What belongs on one side of a split into training and test is a coarser matter, for a claim and its copy without
punctuation must not stand on both: :func:`words_id`.
"""

import hashlib
import re
import unicodedata

_ALIKE = str.maketrans(
    dict.fromkeys("‐‑‒–−⁃﹣－", "-")
    | dict.fromkeys("“”„‟«»", '"')
    | dict.fromkeys("‘’‚‛`´ʼ‹›", "'")
    | dict(zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True))
)
_DOUBLE_QUOTE = re.compile(r'(?<!\d)"|"(?=\w)')
_SINGLE_QUOTE = re.compile(r"(?<!\w)'+|(?<!\d)'+(?!\w)")
_QUOTED_NUMBER = re.compile(r"""(?<!\w)(["'])((?:(?!\1).)*\d)\1(?!\w)""")
"""Quotation marks around a text that ends with a digit; elsewhere a mark behind a digit means feet or inches."""
_CASED_UNIT = re.compile(r"(?<![^\W\d_])[mp](?=(?:wh?|g|j|pa|hz|t)\b)|(?<=\d)[ -]?[gkmt](?!\w)", re.IGNORECASE)
"""Letters whose case tells units apart: milli or mega, pico or peta; behind a number also k or K, m or M."""


def claim_key(text: str) -> str:
    """What all spellings of a claim have in common; empty for a text without any.

    Spaces, quotation marks and the case of letters are levelled; apostrophes within a word and marks of feet and inches
    stay. The case of a unit that would be another one in the other case stays too: 5 mW is not 5 MW.

    Examples:
        ``CO₂  isn’t “the” cause`` and ``co2 isn't the cause`` have one key; ``+0.5 K`` and ``-0.5 K`` have two.
    """
    plain = unicodedata.normalize("NFC", text).translate(_ALIKE)
    plain = " ".join("".join(one for one in plain if unicodedata.category(one) != "Cf").split())
    for quotes, instead in ((_QUOTED_NUMBER, r" \2 "), (_DOUBLE_QUOTE, " "), (_SINGLE_QUOTE, " ")):
        plain = quotes.sub(instead, plain)
    plain = " ".join(plain.split())
    return folded_case(plain)


def folded_case(text: str) -> str:
    """A text in lower case, but for letters whose case tells units apart (5 mW, 5 MW)."""
    folded, position = [], 0
    for unit in _CASED_UNIT.finditer(text):
        folded += [text[position : unit.start()].casefold(), unit[0]]
        position = unit.end()
    return "".join(folded) + text[position:].casefold()


def claim_id(text: str) -> str:
    """Hash of a claim's :func:`claim_key`, 12 hexadecimal digits: the same claim has the same id everywhere."""
    return _hash(claim_key(text))


def words_id(text: str) -> str:
    """Hash of a text's words in lower case, 12 hexadecimal digits, whatever appears between them.

    Coarser than :func:`claim_id`: opposite claims may have one, so that nothing is to be looked up by it. It keeps a
    text and its near copies on one side of a split, and tells a trained head which texts it has learnt from.
    """
    return _hash(bare_words(text))


def bare_words(text: str) -> str:
    """A text's words in lower case, one space between them, without punctuation, signs and comparators."""
    return " ".join(re.findall(r"\w+", text.casefold()))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:12]
