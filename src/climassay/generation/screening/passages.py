"""Is a passage fit to write a question from? References, indices, contents, equations and the like are not.

The faults are recognised by shares of the passage's words, so that running text with citations, with an equation or
with a list in it stays what it is.
"""

import re
from collections.abc import Sequence

from climassay.generation.screening.checks import LANGUAGES, check_language, other_language

FEWEST_WORDS = 20
REFERENCES = 0.05
"""Authors with initials, DOIs and page ranges for each word, from which a passage is a list of references."""
FUNCTION_SHARE = 0.14
"""Share of function words below which words do not form sentences; English prose has 0.3 to 0.5."""
NUMBERS = 0.3
"""Share of numbers among words and numbers from which a passage without sentences is mostly numbers ..."""
PROSE_SHARE = 0.2
"""... and share of function words among them from which it has sentences all the same."""
CAPITALS = 0.5
"""Share of capitals among letters from which a passage is set in capitals."""
FORMULAE = 0.6
"""Share of the characters within formulae, or of fragments of them, from which a passage is equations only."""

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
_ACKNOWLEDGING = re.compile(
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
"""Headings under which nothing of the subject is taught."""
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
_CAPTION_SHARE = 0.025
"""Words about lines, colours and panels for each word, from which a text that begins as a caption is nothing else."""
_SHORT_CAPTION = 150
"""Words up to which a text that begins as *Figure 3:* has room for nothing but the legend."""
_ROLES = re.compile(
    r"\b(?:(?:coordinating\s+)?lead|contributing|drafting|corresponding)\s+authors?\b|\breview\s+editors?\b"
    r"|\bchapter\s+scientists?\b|\bedited\s+by\b|\b(?:eds?|editors?)\b\.?\)?:?|\bshould\s+be\s+cited\b|\bISBN\b",
    re.IGNORECASE,
)
_AFFILIATED = re.compile(r"[A-Z][\w.’'-]+\s+\((?:The\s+)?[A-Z][A-Za-z ]+\)")


def passage_fault(text: str, language: str = "en", headings: Sequence[str] = ()) -> str | None:
    """Why no question should be written from a passage.

    Args:
        text: The passage.
        language: In which it is to be written; see :data:`~climassay.generation.screening.checks.LANGUAGES`.
        headings: Those that it appears under; acknowledgements, contents, references and the like are front matter.

    Returns:
        ``too short``, ``references``, ``contents``, ``index``, ``equations``, ``numbers``, ``capitals``,
        ``front matter``, ``figure legend``, ``other language``, ``no sentences``, or None for a passage that will do.

    Raises:
        InputError: The language is not known.
    """
    check_language(language)
    if any(_FRONT_HEADING.match(heading) for heading in headings):
        return "front matter"
    # Citations in running text are not references, and their names and "et al." no language.
    cited = _CITATION.sub(" ", text)
    prose = _FORMULA.sub(" ", cited)
    words = _WORD.findall(prose)
    function_words = sum(word.lower() in LANGUAGES[language] for word in words) / max(1, len(words))
    tokens = len(words) + len(_NUMBER.findall(prose))
    # Years and names must stand so close that the text has little else.
    years = len(re.findall(r"\b(?:19|20)\d\d[a-z]?\b", text))
    if len(_REFERENCE.findall(cited)) >= REFERENCES * tokens and years and (years >= 0.01 * tokens or tokens < 60):
        return "references"
    entries = len(_INDEX_ENTRY.findall(prose)) + len(_PAGE_LIST.findall(prose))
    if entries >= 5 and entries >= 0.15 * len(words) and function_words < 0.2:
        return "index"
    lines = [line for line in text.splitlines() if line.strip()]
    leaders = len(_LEADER.findall(text))
    if leaders >= 5 or (leaders >= 3 and leaders >= len(lines) / 3):
        return "contents"
    if len(lines) >= 5 and len(_LINE_WITH_PAGE.findall(text)) >= 0.6 * len(lines):
        return "contents"
    if len(_WORD.findall(cited)) < FEWEST_WORDS:
        return "too short"
    # Formulae without marks around them, as PDFs have them, are symbols and single letters instead of words.
    signs = prose.split()
    symbolic = sum((len(one) == 1 and one not in "aAI") or bool(_SYMBOLS.search(one)) for one in signs)
    if (
        len(_FORMULA.sub("", text)) <= (1 - FORMULAE) * len(text)
        or len(words) < FEWEST_WORDS
        or symbolic >= FORMULAE * max(1, len(signs))
    ):
        return "equations"
    if tokens - len(words) >= NUMBERS * tokens and function_words * len(words) < PROSE_SHARE * tokens:
        return "numbers"
    letters = [letter for letter in text if letter.isalpha()]
    if sum(letter.isupper() for letter in letters) >= CAPITALS * len(letters):
        return "capitals"
    if _is_front_matter(text, len(words)):
        return "front matter"
    if caption := _CAPTION.match(text):
        looks = len(_CAPTION_WORDS.findall(text))
        if (caption["mark"] and len(words) <= _SHORT_CAPTION) or looks >= max(2, _CAPTION_SHARE * len(words)):
            return "figure legend"
    if other_language(prose, language):
        return "other language"
    return "no sentences" if function_words < FUNCTION_SHARE else None


def _is_front_matter(text: str, words: int) -> bool:
    result = len({match.lower() for match in _FRONT_MATTER.findall(text)})
    thanks = len(_ACKNOWLEDGING.findall(text))
    roles, people = len(_ROLES.findall(text)), len(_AFFILIATED.findall(text))
    listed = roles >= 1 and people >= 3 and 4 * people >= 0.1 * words
    return (result >= 3 and words <= 250) or (thanks >= 3 and thanks >= 0.02 * words) or listed
