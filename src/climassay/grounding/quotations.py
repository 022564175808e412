"""Quotations and their positions in a text."""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable
from itertools import pairwise

from climassay.reporting.marking import Piece, highlight_spans, letters

MIN_QUOTED_WORDS = 3
"""Minimum number of words of a valid quotation."""
_SIGNS = str.maketrans(
    {
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033", '"'),
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4`", "'"),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        "\u00ad": "",
    }
)
OMISSION = re.compile(r"[\[(]?\s*\.{3,}\s*[\])]?")
"""Pattern of an omission in a quotation: ``...`` or ``[...]``."""


def is_quoted(quotation: str, text: str) -> bool:
    """Return whether all parts of a quotation occur in a text in the same order."""
    return bool(_find_parts(quotation, _normalise_source(text)))


def find_quoted_spans(quotation: str, text: str) -> tuple[tuple[int, int], ...]:
    """Return start and end of each part of a quotation in a text; empty if :func:`is_quoted` returns False."""
    normalised_text = _normalise_source(text)
    normalised_spans = _find_parts(quotation, normalised_text)
    (normalised_letters, normalised_indices), (text_letters, text_indices) = letters(normalised_text), letters(text)
    if not normalised_spans or normalised_letters != text_letters:
        return ()
    spans = []
    for start, end in normalised_spans:
        first_index, last_index = bisect_left(normalised_indices, start), bisect_left(normalised_indices, end) - 1
        span_start, opening_signs = text_indices[first_index], normalised_text[start : normalised_indices[first_index]]
        span_end, closing_signs = (
            text_indices[last_index] + 1,
            normalised_text[normalised_indices[last_index] + 1 : end],
        )
        span_start -= len(opening_signs) * text.endswith(opening_signs, 0, span_start)
        spans.append((span_start, span_end + len(closing_signs) * text.startswith(closing_signs, span_end)))
    return tuple(spans)


def mark_quotations(text: str, quotations: Iterable[str]) -> tuple[Piece, ...]:
    """Split a text into pieces and mark the quoted pieces. Quotations that do not occur in the text are ignored."""
    return highlight_spans(text, [span for quotation in quotations for span in find_quoted_spans(quotation, text)])


def _normalise_source(text: str) -> str:
    """Normalise a text to be searched for quotations, and remove the dots that mark omissions in the text itself."""
    return " ".join(OMISSION.sub(" ", _normalise(text)).split())


def _find_parts(quotation: str, normalised_text: str) -> list[tuple[int, int]]:
    """Return the span of each part of a quotation in a normalised text; empty unless all parts occur in order."""
    plain_quotation = _normalise(quotation)
    parts = [part for piece in OMISSION.split(plain_quotation) if re.search(r"\w", part := piece.strip(" \"'.,;:"))]
    if sum(len(re.findall(r"\w+", part)) for part in parts) < MIN_QUOTED_WORDS:
        return []
    spans: list[tuple[int, int]] = []
    for part in parts:
        match = _build_part_pattern(part).search(normalised_text, spans[-1][1] if spans else 0)
        if match is None:
            return []
        spans.append(match.span())
    return spans


def _normalise(text: str) -> str:
    """Normalise punctuation and join hyphenated words."""
    normalised_text = unicodedata.normalize("NFKC", text).translate(_SIGNS)
    joined_text = re.sub(r"(?<=[^\W\d_])-\s*(?=[^\W\d_])", "", normalised_text)
    return " ".join(joined_text.split())


def _build_part_pattern(part: str) -> re.Pattern[str]:
    """Build a pattern that matches a part of a quotation as whole words and as numbers with their signs."""
    # "-0.5" and "10.5" do not hold "0.5"; in "1901-2018" the dash is not a sign.
    preceding_pattern = r"(?<!\w)(?<!\d[.,])" + (r"(?<!^-)(?<![^\w]-)" if part[0].isdigit() else "")
    following_pattern = r"(?!\w)" + (r"(?![.,]\d)(?!\s?%)" if part[-1].isdigit() else "")
    pieces = re.findall(r"[^\W\d_]+|\d+|[^\w\s]|_", part)
    first_pattern = f"(?i:{re.escape(pieces[0][0])})" + re.escape(pieces[0][1:])
    patterns = [first_pattern]
    for piece, next_piece in pairwise(pieces):
        # Readers of PDFs set spaces around signs and subscripts: "yr –1", "CO 2". Between two words there is one.
        is_separated = (piece.isalpha() and next_piece.isalpha()) or (piece.isdigit() and next_piece.isdigit())
        patterns.append((r"\s+" if is_separated else r"\s*") + re.escape(next_piece))
    return re.compile(preceding_pattern + "".join(patterns) + following_pattern)
