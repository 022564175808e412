"""Identifiers of claims that ignore differences in spelling.

Two texts are the same claim if they differ only in spaces, case or quotation marks. Any other difference may change the
meaning: a sign, a comparator, a number, a unit, a negation. Characters that look alike are equal, such as hyphen and
minus or subscripts and digits (CO₂, CO2), but not superscripts, since 10² is not 102.

:func:`words_id` is coarser and serves to keep near-duplicates on one side of a split into training and test data.
"""

import hashlib
import re
import unicodedata

_LOOKALIKES = str.maketrans(
    dict.fromkeys("‐‑‒–−⁃﹣－", "-")
    | dict.fromkeys("“”„‟«»", '"')
    | dict.fromkeys("‘’‚‛`´ʼ‹›", "'")
    | dict(zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True))
)
_DOUBLE_QUOTE = re.compile(r'(?<!\d)"|"(?=\w)')
_SINGLE_QUOTE = re.compile(r"(?<!\w)'+|(?<!\d)'+(?!\w)")
_QUOTED_NUMBER = re.compile(r"""(?<!\w)(["'])((?:(?!\1).)*\d)\1(?!\w)""")
"""Quotation marks around a text that ends with a digit; other marks after a digit mean feet or inches."""
_CASED_UNIT = re.compile(r"(?<![^\W\d_])[mp](?=(?:wh?|g|j|pa|hz|t)\b)|(?<=\d)[ -]?[gkmt](?!\w)", re.IGNORECASE)
"""Letters whose case distinguishes units: milli or mega, pico or peta; after a number also k or K, m or M."""


def claim_key(text: str) -> str:
    """Return a normal form that all spellings of a claim share.

    Spaces, quotation marks and case are normalised. Apostrophes within a word, marks of feet and inches, and the case
    of units that have another meaning in the other case (5 mW, 5 MW) are preserved.

    Examples:
        ``CO₂  isn’t “the” cause`` and ``co2 isn't the cause`` have one key; ``+0.5 K`` and ``-0.5 K`` have two.
    """
    plain = unicodedata.normalize("NFC", text).translate(_LOOKALIKES)
    plain = " ".join("".join(char for char in plain if unicodedata.category(char) != "Cf").split())
    for quotes, replacement in ((_QUOTED_NUMBER, r" \2 "), (_DOUBLE_QUOTE, " "), (_SINGLE_QUOTE, " ")):
        plain = quotes.sub(replacement, plain)
    plain = " ".join(plain.split())
    return folded_case(plain)


def folded_case(text: str) -> str:
    """Return a text in lower case, except letters whose case distinguishes units (5 mW, 5 MW)."""
    folded, position = [], 0
    for unit in _CASED_UNIT.finditer(text):
        folded += [text[position : unit.start()].casefold(), unit[0]]
        position = unit.end()
    return "".join(folded) + text[position:].casefold()


def claim_id(text: str) -> str:
    """Return a hash of the claim's :func:`claim_key`, 12 hexadecimal digits."""
    return _hash(claim_key(text))


def words_id(text: str) -> str:
    """Return a hash of the text's words in lower case without punctuation, 12 hexadecimal digits.

    Opposite claims may have the same hash, so that it must not be used to look up claims. It keeps near-duplicates on
    one side of a split and identifies the training texts of a model.
    """
    return _hash(bare_words(text))


def bare_words(text: str) -> str:
    """Return a text's words in lower case, separated by spaces, without punctuation, signs and comparators."""
    return " ".join(re.findall(r"\w+", text.casefold()))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:12]
