"""Split scientific text into sentences by rules, and locate quotations.

The rules need no model, and split about 100,000 sentences per second. A full stop ends a sentence unless an
abbreviation, an initial or the number of a list item comes before it, or a lower-case letter follows. References in
brackets after the full stop, as in ``(high confidence). {3.1}``, belong to the sentence before them.
"""

import re
from functools import lru_cache
from typing import NamedTuple


class Span(NamedTuple):
    """Start and end of a part of a text: ``text[start:end]``."""

    start: int
    end: int


_CLOSERS = r"[\"'”’»)\]}›]*"
_REFERENCE = (
    r"(?:\s*(?:\{[^{}]{0,600}\}|\((?:see\s+)?(?:Figures?|Tables?|Box(?:es)?|Sections?|Chapters?|Annex|FAQ)\b[^()]{0,300}\)"
    r"|\[\d[\d,;\s–-]*\])(?=\s|$|[{(\[]))*"
)
_CANDIDATE = re.compile(
    rf"(?P<mark>(?<![.!?…])[.!?…]++){_CLOSERS}(?:(?<=[^\d][.!?])\d{{1,2}}(?=\s+[A-Z]))?{_REFERENCE}(?P<space>\s+|$)"
    rf"|(?P<wide>[。！？]+{_CLOSERS})|(?P<blank>\n[^\S\n]*\n\s*)"
)
_LAST_WORD = re.compile(r"[^\s(\[{“\"'‘/—]*$")
_ENUMERATOR = re.compile(
    r"\(?(?:\d{1,3}|[A-Za-z]|[ivxIVX]{1,5}|[A-Z]?\d{0,2}(?:\.\d{1,3})+|[A-Z]{1,4}(?:\.\d{1,3})+)\)?"
)
_DOTTED_ABBREVIATION = re.compile(r"(?:[A-Za-z]\.)+[A-Za-z]")
_OPENING_PUNCTUATION = re.compile(r"[\s\"'“‘«(\[{¿¡*_]*")
_NEXT_WORD = re.compile(r"[A-Za-z’']+")
_DAY = re.compile(r"(?<![\w.,])[0-3]?\d$")
_GERMAN_MONTH = re.compile(
    r"(?:Jänner|Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember|Jahrhundert)"
)
"""Pattern of words that follow a German ordinal number, as in "am 4. November"."""


def _split_to_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


# A sentence never ends after these.
_NEVER_BEFORE_END = _split_to_set(
    """
    e.g i.e eg ie cf viz vs v fig figs eq eqs eqn eqns ref refs sect sects chap chaps suppl supp eds vols pp
    approx ca dr mr mrs prof incl excl esp spp subsp pers geophys meteorol oceanogr
    mio mrd tsd bzw vgl abb evtl ggf inkl insb sog z.b d.h u.a
    """
)
# A sentence never ends after these when a number follows.
_BEFORE_NUMBER = _split_to_set(
    """
    no nos n nr p c b art part par para sec ch tab vol ed app rev jan feb mar apr jun jul aug sep sept oct nov
    dec max min avg
    """
)
# A sentence may end after these; it does when the next word is one that often opens a sentence.
_MAYBE_BEFORE_END = _split_to_set(
    """
    al etc inc ltd co corp dept univ gov gen sen rep st mt jr sr sec ch tab vol ed rev proc trans soc natl acad
    sci res lett atmos clim phys chem environ int bull quart nat adv earth j sp var ser temp avg ph.d
    """
)
_OPENERS = _split_to_set(
    """
    a after all although an and another as at because before both but by despite during each even every few
    finally first for from further furthermore given he hence here how however if in indeed is it its later many
    more moreover most much nevertheless no not note nonetheless of on once one only or other others our over
    overall recent second several she similarly since so some such that the their then there therefore these
    they third this those though through thus to today two under until using was we were what when where whereas
    whether which while who why with within without yet you
    """
)
MAX_CACHED_TEXTS = 4096
"""Maximum number of texts whose sentence spans are cached; the least recently used text is evicted first."""
MAX_CACHED_CHARACTERS = 4000
"""Maximum length of a cached text, in characters; longer texts are usually documents, which are split only once."""


def sentence_spans(text: str) -> list[Span]:
    """Split a text into the spans of its sentences.

    Returns:
        Spans in order, which together cover the text; white space after a sentence is part of its span. No span
            consists only of white space. A text that consists only of white space has no spans.
    """
    return list(_split_to_cached_spans(text) if len(text) <= MAX_CACHED_CHARACTERS else _split_to_spans(text))


@lru_cache(MAX_CACHED_TEXTS)
def _split_to_cached_spans(text: str) -> tuple[Span, ...]:
    return tuple(_split_to_spans(text))


def _split_to_spans(text: str) -> list[Span]:
    spans: list[Span] = []
    start = 0
    for match in _CANDIDATE.finditer(text):
        if not _ends_sentence(text, start, match):
            continue
        end = match.end()
        if not text[start:end].strip():
            continue
        spans.append(Span(start, end))
        start = end
    if start < len(text):
        if text[start:].strip():
            spans.append(Span(start, len(text)))
        elif spans:
            spans[-1] = Span(spans[-1].start, len(text))
    return spans


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text without surrounding white space."""
    return [text[start:end].strip() for start, end in sentence_spans(text)]


def _ends_sentence(text: str, start: int, match: re.Match[str]) -> bool:
    """Return whether the candidate ``match`` ends the sentence that begins at ``start``."""
    end_mark = match["mark"]
    if end_mark is None or match.end() == len(text):
        return True
    if "\n\n" in match["space"]:
        return True
    opening_match = _OPENING_PUNCTUATION.match(text, match.end())
    next_index = opening_match.end() if opening_match else match.end()
    if next_index >= len(text):
        return True
    if text[next_index].islower():
        return False
    if end_mark != ".":
        return True
    return _is_sentence_full_stop(text, start, match.start(), next_index)


def _is_sentence_full_stop(text: str, start: int, stop: int, next_index: int) -> bool:
    """Return whether the full stop at ``stop`` ends a sentence; the next word begins at ``next_index``."""
    match = _LAST_WORD.search(text, max(start, stop - 40), stop)
    last_word = match.group() if match else ""
    words_before = text[max(start, stop - 40) : stop].strip()
    if stop - start <= 40 and len(words_before) <= 12 and _ENUMERATOR.fullmatch(words_before):
        return False
    lower_case_word = last_word.lower()
    if _DAY.search(words_before) and _GERMAN_MONTH.match(text, next_index):
        return False
    if lower_case_word in _NEVER_BEFORE_END:
        return False
    if lower_case_word in _BEFORE_NUMBER and text[next_index].isdigit():
        return False
    if len(last_word) == 1 and text[max(start, stop - 3) : stop - 1].strip()[-1:].isdigit():
        return True  # a unit, no initial: "2.5 W."
    is_uncertain = (
        lower_case_word in _MAYBE_BEFORE_END
        or _DOTTED_ABBREVIATION.fullmatch(last_word)
        or (len(last_word) == 1 and last_word.isupper())
    )
    if not is_uncertain:
        return True
    next_word = _NEXT_WORD.match(text, next_index)
    if next_word is None:
        # Brackets and numbers go on: "Smith et al. (2020)", "U.S. 2023".
        return lower_case_word == "etc"
    return next_word.group().lower() in _OPENERS and not (len(last_word) == 1 and len(next_word.group()) == 1)


def locate_quotation(text: str, quotation: str) -> tuple[int, int] | None:
    """Return start and end of a quotation in a text, or None if the text does not contain its words in this order.

    Case, white space and punctuation between words are ignored. Signs at the ends of the quotation (``-2``, ``50%``)
    belong to the span if the text has them.
    """
    words = re.findall(r"\w+", quotation)
    if not words:
        return None
    match = re.search(r"\b" + r"\W+".join(map(re.escape, words)) + r"\b", text, re.IGNORECASE)
    if match is None:
        return None
    start, end = match.span()
    leading_signs = quotation[: quotation.index(words[0])].strip()
    trailing_signs = quotation[quotation.rindex(words[-1]) + len(words[-1]) :].strip()
    return start - len(leading_signs) * text[:start].endswith(leading_signs), end + len(
        trailing_signs
    ) * text.startswith(trailing_signs, end)
