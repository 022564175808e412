"""Find passages that are unsuitable for questions: references, indices, tables of contents, equations and the like.

Faults are recognised by proportions of the passage's words, so that prose with citations, an equation or a list is
accepted.
"""

import re
from collections.abc import Sequence

from climassay.corpus.languages import FUNCTION_WORDS
from climassay.generation.screening.question_checks import check_language, detect_other_language

MIN_WORDS = 20
REFERENCE_SHARE = 0.05
"""Minimum number of bibliographic elements (names with initials, DOIs, page ranges) per word in a list of references.
"""
FUNCTION_SHARE = 0.14
"""Minimum proportion of function words in a passage that consists of sentences; English prose has 0.3 to 0.5."""
MIN_NUMBER_SHARE = 0.3
"""A passage is rejected as ``numbers`` if at least this proportion of its words and numbers are numbers."""
MIN_FUNCTION_WORD_SHARE = 0.2
"""A passage with at least this proportion of function words is prose, and is not rejected for its numbers."""
MIN_CAPITAL_SHARE = 0.5
"""A passage is rejected as ``capitals`` if at least this proportion of its letters are capitals."""
MIN_FORMULA_SHARE = 0.6
"""A passage is rejected as ``equations`` if at least this proportion of its characters are in formulae, or of its words
are symbols."""

_INITIALS = r"(?:(?:[A-Z]|Th|Ch|Yu|Sh)\.[-‐–\s]?){1,4}"
_NAME = r"(?:(?:van|von|de|del|der|den|di|da|le|la|el|al)\s)?[A-ZÀ-ÖØ-ÞŠŽČ][\w’'‐–-]+"
_REFERENCE = re.compile(
    rf"\b{_NAME},?\s{_INITIALS}(?!\w)|(?<!\w){_INITIALS}\s?{_NAME}\b"
    r"|\bdoi\s?[.:/]|\b10\.\d{4,}/|\b(?:pp?\.|vol\.|No\.|Eds?\.|eds\.)\s?"
    r"|\b\d{1,4}\s?\(\s?[\dSA-Z–-]+\s?\)\s?[,:]\s?[A-Za-z]?\d+|\b\d{1,4}\s?[,:]\s?[A-Za-z]?\d+\s?[–-]\s?[A-Za-z]?\d+\b"
    r"|\b(?:19|20)\d\d[a-z]?\s?:\s|\bavailable (?:at|from)\b|\bISBN\b|\bUniversity Press\b"
)
_INDEX_ENTRY = re.compile(r"[A-Za-z)’'],\s?\d{1,4}[a-z]?(?:\s?[–-]\s?\d{1,4}[a-z]?)?(?=\s*(?:[,;.]|\n|[A-Za-z]|$))")
_PAGE_LIST = re.compile(r"\d{1,4}[ft]?(?:[–-]\d{1,4})?,\s\d{1,4}[ft]?(?:[–-]\d{1,4})?")
_LEADER = re.compile(r"\.{4,}|(?:\.\s){4,}|…{2,}")
_LINE_WITH_PAGE = re.compile(r"^.{3,100}\D\s+(?:\d{1,4}|[ivxl]{1,6})\s*$", re.MULTILINE)
_FORMULA = re.compile(
    r"\$\$.*?\$\$|\$[^$\n]{1,300}\$|\\begin\{(\w+\*?)\}.*?\\end\{\1\}|\\\[.*?\\\]|```.*?```|\\[A-Za-z]+", re.DOTALL
)
_CITATION = re.compile(r"\([^()]{4,}\b(?:19|20)\d\d[a-z]?\b[^()]*\)|\{[^{}]*\d[^{}]*\}|\bet al\.?", re.DOTALL)
_SYMBOLS = re.compile(r"[=+×·∂∇∫∑√≈∝±<>^_{}\\|/*]")
_WORD = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*")
_NUMBER = re.compile(r"[-−–+]?\d[\d.,]*")
_FRONT_MATTER = re.compile(
    r"\ball rights reserved\b|©|\bcopyright\b|\bISBN\b|\bCreative Commons\b|\blicensed\b|\bpublished (?:in \d{4} )?by\b"
    r"|\backnowledge?ments?\b|\bcorrespond(?:ence|ing author)\b|\bgrant (?:no|number)|\bsupported by\b|\bcite as\b",
    re.IGNORECASE,
)
_ACKNOWLEDGEMENT = re.compile(
    r"\bthank(?:s|ed)?\b|\bgrateful(?:ly)?\b|\backnowledge|\bfunded by\b|\bfinancial support\b|\bsupported by\b"
    r"|\bgrants?\b|\bfellowships?\b|\bindebted\b|\bgratitude\b|\bappreciation\b|\bcomments on\b|\bcommented\b",
    re.IGNORECASE,
)
_FRONT_HEADING = re.compile(
    r"^\W*(?:[\dIVXA-Z]{1,4}[.)]?\s+)?(?:acknowledge?ments?|(?:table of )?contents|references|bibliography|works cited"
    r"|(?:further|suggested|additional) reading|(?:literature|sources)(?: cited)?|declaration"
    r"|(?:subject |author |name )?index"
    r"|list of (?:figures|tables|boxes|abbreviations|acronyms|contributors|authors|reviewers|symbols)"
    r"|(?:(?:drafting |contributing |(?:coordinating )?lead )?author|contributor|reviewer|review editor"
    r"|chapter scientist)s?(?: team| list)?|about (?:the )?authors?|contributors|copyright"
    r"|authors?['’] (?:contributions?|affiliations?|note)"
    r"|credits|licen[cs]es?|imprint|title page|dedication|foreword|preface|(?:how to )?cite(?: as)?|citation|funding"
    r"|(?:conflicts?|declaration) of (?:competing )?interests?|data availability(?: statement)?|colophon"
    r"|endnotes|figure (?:captions|legends))\W*$",
    re.IGNORECASE,
)
"""Pattern of the headings of front and back matter."""
_CAPTION = re.compile(
    r"^\W*(?:Supplementary\s+)?(?:(?:Cross-Chapter\s+)?Box\s+)?(?:Figure|Fig\.|Table)\s*[A-Z]*\.?\d[\d.\w]*\s*(?P<mark>[|:])?"
)
_CAPTION_WORDS = re.compile(
    r"\([a-h]\)|\bpanels?\b|\bshad(?:ed|ing)\b|\bhatch(?:ed|ing)\b|\bstippl(?:ed|ing)\b|\binset\b|\b[xy]-axis\b|\baxes\b"
    r"|\b(?:solid|dashed|dotted|thin|thick|grey|gray|red|blue|black|green|orange|coloured|colored)\s+(?:\w+\s+)?"
    r"(?:lines?|curves?|bars?|dots?|shading|areas?|arrows?|circles?|crosses)\b|\blegend\b|\bcolou?rs?\b|\berror bars\b"
    r"|\bwhiskers\b|\b(?:left|right|top|bottom|upper|lower)\s+(?:panel|row|column)\b",
    re.IGNORECASE,
)
_MIN_CAPTION_SHARE = 0.025
"""A passage is rejected as ``figure legend`` if at least this proportion of its words are about lines, colours or
panels."""
_MAX_CAPTION_WORDS = 150
"""A passage that begins with *Figure 3:* is assumed to contain only a legend if it has at most this number of words."""
_ROLES = re.compile(
    r"\b(?:(?:coordinating\s+)?lead|contributing|drafting|corresponding)\s+authors?\b|\breview\s+editors?\b"
    r"|\bchapter\s+scientists?\b|\bedited\s+by\b|\b(?:eds?|editors?)\b\.?\)?:?|\bshould\s+be\s+cited\b|\bISBN\b",
    re.IGNORECASE,
)
_AFFILIATED_PERSON = re.compile(r"[A-Z][\w.’'-]+\s+\((?:The\s+)?[A-Z][A-Za-z ]+\)")


def find_passage_fault(text: str, language: str = "en", headings: Sequence[str] = ()) -> str | None:
    """Return the fault that makes a passage unsuitable for writing questions; None if it is suitable.

    Args:
        text: Text of the passage.
        language: Required language; a code of :data:`~climassay.corpus.languages.FUNCTION_WORDS`.
        headings: Headings of the passage's section. Headings such as *Acknowledgements* show front or back matter.

    Returns:
        ``too short``, ``references``, ``contents``, ``index``, ``equations``, ``numbers``, ``capitals``,
        ``front matter``, ``figure legend``, ``other language``, ``no sentences``, or None for a suitable passage.

    Raises:
        InputError: The language is not supported.
    """
    check_language(language)
    if any(_FRONT_HEADING.match(heading) for heading in headings):
        return "front matter"
    # Citations in prose are not references, and their names would disturb the recognition of the language.
    text_without_citations = _CITATION.sub(" ", text)
    prose = _FORMULA.sub(" ", text_without_citations)
    words = _WORD.findall(prose)
    function_proportion = sum(word.lower() in FUNCTION_WORDS[language] for word in words) / max(1, len(words))
    n_tokens = len(words) + len(_NUMBER.findall(prose))
    n_years = len(re.findall(r"\b(?:19|20)\d\d[a-z]?\b", text))
    if (
        len(_REFERENCE.findall(text_without_citations)) >= REFERENCE_SHARE * n_tokens
        and n_years
        and (n_years >= 0.01 * n_tokens or n_tokens < 60)
    ):
        return "references"
    n_entries = len(_INDEX_ENTRY.findall(prose)) + len(_PAGE_LIST.findall(prose))
    if n_entries >= 5 and n_entries >= 0.15 * len(words) and function_proportion < 0.2:
        return "index"
    lines = [line for line in text.splitlines() if line.strip()]
    n_leaders = len(_LEADER.findall(text))
    if n_leaders >= 5 or (n_leaders >= 3 and n_leaders >= len(lines) / 3):
        return "contents"
    if len(lines) >= 5 and len(_LINE_WITH_PAGE.findall(text)) >= 0.6 * len(lines):
        return "contents"
    if len(_WORD.findall(text_without_citations)) < MIN_WORDS:
        return "too short"
    # Formulae without markup, as in PDFs, are symbols and single letters instead of words.
    tokens = prose.split()
    n_symbols = sum((len(token) == 1 and token not in "aAI") or bool(_SYMBOLS.search(token)) for token in tokens)
    if (
        len(_FORMULA.sub("", text)) <= (1 - MIN_FORMULA_SHARE) * len(text)
        or len(words) < MIN_WORDS
        or n_symbols >= MIN_FORMULA_SHARE * max(1, len(tokens))
    ):
        return "equations"
    if (
        n_tokens - len(words) >= MIN_NUMBER_SHARE * n_tokens
        and function_proportion * len(words) < MIN_FUNCTION_WORD_SHARE * n_tokens
    ):
        return "numbers"
    letters = [letter for letter in text if letter.isalpha()]
    if sum(letter.isupper() for letter in letters) >= MIN_CAPITAL_SHARE * len(letters):
        return "capitals"
    if _is_front_matter(text, len(words)):
        return "front matter"
    if caption := _CAPTION.match(text):
        n_caption_words = len(_CAPTION_WORDS.findall(text))
        is_short = caption["mark"] and len(words) <= _MAX_CAPTION_WORDS
        if is_short or n_caption_words >= max(2, _MIN_CAPTION_SHARE * len(words)):
            return "figure legend"
    if detect_other_language(prose, language):
        return "other language"
    return "no sentences" if function_proportion < FUNCTION_SHARE else None


def _is_front_matter(text: str, n_words: int) -> bool:
    n_phrases = len({match.lower() for match in _FRONT_MATTER.findall(text)})
    n_thanks = len(_ACKNOWLEDGEMENT.findall(text))
    n_roles, n_people = len(_ROLES.findall(text)), len(_AFFILIATED_PERSON.findall(text))
    is_list_of_people = n_roles >= 1 and n_people >= 3 and 4 * n_people >= 0.1 * n_words
    return (n_phrases >= 3 and n_words <= 250) or (n_thanks >= 3 and n_thanks >= 0.02 * n_words) or is_list_of_people
