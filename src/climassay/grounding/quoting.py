"""Whether a quotation stands in a passage, word for word.

What differs without changing what is said is looked over: spaces, also those that readers of PDFs set around signs and
subscripts, and line breaks; the forms of quotation marks and dashes; a word divided at the end of a line; the case of
the first letter; punctuation at the ends. Words that are left out are shown by ``...`` or ``[...]``; the parts between
have to follow one another in the passage. Numbers are matched whole, with their sign and a percent sign behind them.
"""

import re
import unicodedata
from itertools import pairwise

FEWEST_WORDS = 3
"""A quotation of fewer words shows nothing."""

_SIGNS = str.maketrans(
    {
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033", '"'),
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4`", "'"),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        "\u00ad": "",
    }
)
LEFT_OUT = re.compile(r"[\[(]?\s*\.{3,}\s*[\])]?")
"""What shows that words are left out."""


def is_quoted(quotation: str, text: str) -> bool:
    """Whether all parts of a quotation stand in a text, in order.

    Args:
        quotation: As a model wrote it.
        text: Of the passage.
    """
    given = _plain(quotation)
    # What the text itself leaves out is no border of a quotation's parts.
    within = LEFT_OUT.sub(" ", _plain(text))
    within = " ".join(within.split())
    parts = [part for piece in LEFT_OUT.split(given) if re.search(r"\w", part := piece.strip(" \"'.,;:"))]
    if sum(len(re.findall(r"\w+", part)) for part in parts) < FEWEST_WORDS:
        return False
    place = 0
    for part in parts:
        found = _pattern(part).search(within, place)
        if found is None:
            return False
        place = found.end()
    return True


def _plain(text: str) -> str:
    """The text in one form of signs; words divided by a hyphen are joined, so that both are the same."""
    plain = unicodedata.normalize("NFKC", text).translate(_SIGNS)
    joined = re.sub(r"(?<=[^\W\d_])-\s*(?=[^\W\d_])", "", plain)
    return " ".join(joined.split())


def _pattern(part: str) -> re.Pattern[str]:
    """The part as whole words: neither in the middle of one nor of a number, nor a number without its sign."""
    # "-0.5" and "10.5" do not hold "0.5"; in "1901-2018" the dash is no sign.
    before = r"(?<!\w)(?<!\d[.,])" + (r"(?<!^-)(?<![^\w]-)" if part[0].isdigit() else "")
    behind = r"(?!\w)" + (r"(?![.,]\d)(?!\s?%)" if part[-1].isdigit() else "")
    pieces = re.findall(r"[^\W\d_]+|\d+|[^\w\s]|_", part)
    first = f"(?i:{re.escape(pieces[0][0])})" + re.escape(pieces[0][1:])
    found = [first]
    for one, other in pairwise(pieces):
        # Readers of PDFs set spaces around signs and subscripts: "yr –1", "CO 2". Between two words there is one.
        apart = (one.isalpha() and other.isalpha()) or (one.isdigit() and other.isdigit())
        found.append((r"\s+" if apart else r"\s*") + re.escape(other))
    return re.compile(before + "".join(found) + behind)
