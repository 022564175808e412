"""Recognise lists of references, which are not evidence, by their heading and by the form of their entries."""

import re
from collections.abc import Sequence

from climassay.corpus.documents import Block, OmittedParts

KIND = "references"
MIN_ENTRIES = 3
"""Minimum number of consecutive entries of a reference list without a heading."""
_NUMBERING = r"(?:(?:\d+|[A-Z])(?:\.\d+)*[.):]?\s+|[IVX]+\.\s+)?"
_UNAMBIGUOUS_TITLES = (
    "references?|bibliograph(?:y|ies)|works? cited|literature cited|cited literature|reference list|list of references|"
    "references (?:and|&) notes|notes (?:and|&) references|references cited|cited references|"
    "references (?:and|&) further reading|selected (?:references|bibliography)|sources cited|supplementary references|"
    "methods references|online references|literaturverzeichnis|literaturangaben|literaturhinweise|quellenverzeichnis|"
    "quellenangaben|einzelnachweise|referenzen|références(?: bibliographiques)?|bibliographie|ouvrages cités|"
    "referencias(?: bibliográficas)?|bibliografía|referências(?: bibliográficas)?|bibliografia|"
    "riferimenti(?: bibliografici)?|referenties|literatuurlijst|referenser|referanser|"
    "список литературы|参考文献|參考文獻|참고문헌"
)
_AMBIGUOUS_TITLES = (
    "literature|literatur|literatuur|litteratur|литература|citations|endnotes|further reading|sources|quellen"
)
"""Headings of reference lists that sections of other kinds may also have."""
_UNAMBIGUOUS_HEADING = re.compile(rf"{_NUMBERING}(?:{_UNAMBIGUOUS_TITLES})\s*[:.]?(?:\s*\[\w+\])?", re.IGNORECASE)
_HEADING = re.compile(
    rf"{_NUMBERING}(?:{_UNAMBIGUOUS_TITLES}|{_AMBIGUOUS_TITLES})\s*[:.]?(?:\s*\[\w+\])?", re.IGNORECASE
)
_YEAR = r"(?:1[5-9]|20)\d\d[a-z]?"
_ANY_YEAR = re.compile(rf"(?<![\d.,]){_YEAR}(?![\d.,]*\d)|\bn\.d\.|\bin press\b|\bforthcoming\b", re.IGNORECASE)
_LABEL = r"(?:\[\d{1,4}\]|\(\d{1,4}\)|\d{1,4}\.?|\[[A-Z][\w+]{1,12}\]|[•*^↑‐–-]+)?\s*"
_BRACKETED_NUMBER = re.compile(r"\[\d{1,4}\]\s")
_PARTICLE = r"(?:(?:van|von|de|der|den|del|della|di|da|du|la|le|el|al|ter|ten|dos|bin)[\s-])*"
_CAPITAL = r"[^\W\d_a-zà-ÿ]"
_SURNAME = rf"{_PARTICLE}{_CAPITAL}[^\W\d_]*(?:[\s'’‐-]{_CAPITAL}[^\W\d_]*){{0,3}}"
_INITIALS = rf"(?:{_CAPITAL}(?:\.|(?=[\s,;:&(.‐-]|{_CAPITAL}|$))[\s‐-]?){{1,3}}(?![^\W\d_])"
_AUTHOR_END = rf"(?:(?<=\.)|(?<=\.\s)|(?=\s*[,;:&])|(?=\s*\({_YEAR})|(?=\s*and\b))"
_AUTHOR = re.compile(
    rf"{_LABEL}(?:{_SURNAME},?\s+{_INITIALS}{_AUTHOR_END}"  # Smith, J. A.; Smith J,
    rf"|{_INITIALS}\s*{_SURNAME}\s*(?:,|and\b|&|et al|\(|:)"  # J. A. Smith and
    rf"|{_SURNAME},\s+{_CAPITAL}[^\W\d_]+(?:\s+{_CAPITAL}\.?)?\s*[,;&(.])"  # Smith, John A.
)
_AUTHORS_WITHOUT_INITIALS = re.compile(
    rf"{_LABEL}{_SURNAME}\s*(?:,\s*{_SURNAME}\s*)?(?:(?:and|&)\s+{_CAPITAL}|et al\b)"
)
_CORPORATE_AUTHOR = re.compile(
    rf"{_LABEL}{_CAPITAL}[\w&’'./-]*(?:\s(?:{_CAPITAL}[\w&’'./-]*|of|the|for|and|on|de|des|für)){{0,9}}(?:,|\s\()\s?{_YEAR}\)?\s*[:.]"
)
_YEAR_OF_ENTRY = re.compile(rf"\(\s*{_YEAR}(?:,[^()]{{1,20}})?\s*\)|(?:^|[\s,;.]){_YEAR}\s*(?:[.:;,)]|$|doi)")
_IDENTIFIER_PATTERNS = (
    re.compile(r"\bdoi\b|10\.\d{4,9}/\S", re.IGNORECASE),
    re.compile(r"https?://|\bwww\.|\barXiv\b|\bISBN\b|\bISSN\b|\bPMID\b|\bPMCID\b", re.IGNORECASE),
)
_PUBLICATION_PATTERNS = (
    *_IDENTIFIER_PATTERNS,
    re.compile(r"\b\d{1,4}\s*\(\s*[\w–-]{1,9}\s*\)|\b\d{1,4}\s*[,:]\s*[A-Z]?\d+(?:\s*[–‐-]\s*[A-Z]?\d+)?"),
    re.compile(r"\b[A-Z]?\d{1,6}\s?[–‐-]\s?[A-Z]?\d{1,6}\b|\bpp?\.\s?\d|\b\d+\s?pp\b"),
    re.compile(r"\b(?:[Vv]ol|[Nn]o|[Ee]ds?)\.|\b[Ii]n:|\(eds?\.?\)|\bet al\b"),
    re.compile(
        r"\b(?:Journal|J\.|Nature|Science|Proc(?:eedings)?|Rev(?:iews?)?|Lett(?:ers)?|Geophys|Clim(?:ate|\.)?|Press|University|"
        r"Publish\w*|Springer|Elsevier|Wiley|Routledge|Thesis|Dissertation|Report|Trans(?:actions|\.)|Bull(?:etin|\.)|"
        r"Zeitschrift|Verlag|Revue|Revista)\b"
    ),
)
_CAPTION = re.compile(r"(?:Figures?|Fig\.|Tables?|Box|FAQ|Section|Chapter|Panel|Appendix|Annex|Plate|Map)\b")
_WORD = re.compile(r"[^\W\d_]+")
_PROSE_START = re.compile(rf".{{0,140}}?\(?\b{_YEAR}\)?,?\s+(?!doi|and\b|available|online|accessed)[a-z]{{3}}")
"""Pattern of a sentence that begins with an author, a year and a lower-case word ("Smith et al. (2012) found")."""
_CITATION = re.compile(rf"\([^()]*\b{_YEAR}[^()]*\)")
MIN_PUBLICATION_SIGNS = 2
MAX_CITATIONS = 2
"""Maximum number of bracketed citations in an entry; a paragraph with more is running text."""
MIN_PROSE_WORDS = 8
MIN_LOWER_CASE_SHARE = 0.6
"""A paragraph below the heading is running text if at least this fraction of its words is in lower case."""
MAX_BLOCKS_BETWEEN = 2
_TITLE = re.compile(r"[^\W\d_a-z][^\d.,;:]{2,60}")
"""Pattern of a short line without digits or punctuation, which may be the title of the section after the references."""
MAX_ENTRY_CHARACTERS = 1500
"""Maximum length of an entry in characters."""


def is_references_heading(text: str) -> bool:
    """Return whether a heading or line introduces a list of references."""
    return len(text) < 60 and _HEADING.fullmatch(text.strip(" *_#")) is not None


def looks_like_entry(text: str) -> bool:
    """Return whether a paragraph looks like a reference, with authors, a year and a publication."""
    if len(text) > MAX_ENTRY_CHARACTERS or _PROSE_START.match(text) or len(_CITATION.findall(text)) > MAX_CITATIONS:
        return False
    if _CAPTION.match(text):
        return False
    has_author = _AUTHOR.match(text) is not None
    if not (has_author or _CORPORATE_AUTHOR.match(text) or _AUTHORS_WITHOUT_INITIALS.match(text)):
        return False
    n_publication_signs = sum(pattern.search(text) is not None for pattern in _PUBLICATION_PATTERNS)
    if n_publication_signs >= MIN_PUBLICATION_SIGNS:
        return _ANY_YEAR.search(text) is not None
    if has_author:
        return n_publication_signs > 0 and _YEAR_OF_ENTRY.search(text) is not None
    return _has_identifier(text) and _CORPORATE_AUTHOR.match(text) is not None


def _has_identifier(text: str) -> bool:
    return any(pattern.search(text) for pattern in _IDENTIFIER_PATTERNS)


def begins_like_entry(text: str) -> bool:
    """Return whether a line begins like a reference, with a number in brackets or an author."""
    return any(pattern.match(text) for pattern in (_BRACKETED_NUMBER, _AUTHOR, _AUTHORS_WITHOUT_INITIALS))


def omit_references(blocks: Sequence[Block]) -> tuple[list[Block], tuple[OmittedParts, ...]]:
    """Return the blocks without references, and the number of references with their pages.

    Three kinds of blocks are references: blocks below a heading such as "References", except running text after the
    last entry; entries after a paragraph that consists of such a title; and sequences of at least :data:`MIN_ENTRIES`
    entries without a heading.
    """
    is_reference = [any(map(is_references_heading, block.headings)) for block in blocks]
    looks_like_entries = [looks_like_entry(block.text) for block in blocks]
    titles = {
        index for index, block in enumerate(blocks) if not is_reference[index] and is_references_heading(block.text)
    }
    start = 0
    while start < len(blocks):
        end = start
        while end < len(blocks) and is_reference[end] == is_reference[start]:
            end += 1
        if is_reference[start]:
            _unmark_prose(blocks, looks_like_entries, is_reference, start, end)
        else:
            _mark_runs(looks_like_entries, is_reference, start, end)
        start = end
    for title_index in titles:
        _mark_after_title(blocks, looks_like_entries, is_reference, title_index)
    omitted_titles = {
        title_index for title_index in titles if title_index + 1 < len(blocks) and is_reference[title_index + 1]
    }
    remaining_blocks = [
        block for index, block in enumerate(blocks) if not is_reference[index] and index not in omitted_titles
    ]
    pages = {
        block.page for block, is_entry in zip(blocks, is_reference, strict=True) if is_entry and block.page is not None
    }
    n_entries = sum(is_reference)
    return remaining_blocks, (OmittedParts(KIND, n_entries, tuple(sorted(pages))),) if n_entries else ()


def _unmark_prose(
    blocks: Sequence[Block], looks_like_entries: Sequence[bool], is_reference: list[bool], start: int, end: int
) -> None:
    """Clear ``is_reference`` for running text after the last entry of a section, or for a section without entries.

    In a section without entries, everything is cleared if the heading is ambiguous, otherwise only running text.
    """
    is_unambiguous = any(_UNAMBIGUOUS_HEADING.fullmatch(heading.strip(" *_#")) for heading in blocks[start].headings)
    entry_indices = [index for index in range(start, end) if looks_like_entries[index]]
    for index in range(entry_indices[-1] + 1 if entry_indices else start, end):
        is_reference[index] = (is_unambiguous or bool(entry_indices)) and not _is_prose(blocks[index].text)


def _is_prose(text: str) -> bool:
    words = _WORD.findall(text)
    n_lower = sum(word[0].islower() for word in words)
    is_text = len(words) >= MIN_PROSE_WORDS and n_lower >= MIN_LOWER_CASE_SHARE * len(words) and text[-1] in ".!?:)"
    begins_like_list = begins_like_entry(text) or not text[0].isalnum()
    return len(text) > MAX_ENTRY_CHARACTERS or (is_text and not begins_like_list and not _has_identifier(text))


def _mark_after_title(
    blocks: Sequence[Block], looks_like_entries: Sequence[bool], is_reference: list[bool], title_index: int
) -> None:
    """Set ``is_reference`` for the entries after a paragraph such as "References".

    At most two other blocks may separate consecutive entries.
    """
    last_index = title_index
    for index in range(title_index + 1, len(blocks)):
        is_other_section = blocks[index].headings != blocks[title_index].headings or _TITLE.fullmatch(
            blocks[index].text
        )
        if is_other_section or index - last_index > MAX_BLOCKS_BETWEEN + 1:
            break
        last_index = index if looks_like_entries[index] else last_index
    is_reference[title_index + 1 : last_index + 1] = [True] * (last_index - title_index)


def _mark_runs(looks_like_entries: Sequence[bool], is_reference: list[bool], start: int, end: int) -> None:
    """Set ``is_reference`` for entries without a heading; one block of another kind does not end a sequence."""
    index = start
    while index < end:
        if not looks_like_entries[index]:
            index += 1
            continue
        run_end = index + 1
        while run_end < end and (
            looks_like_entries[run_end]
            or (run_end + 1 < end and looks_like_entries[run_end + 1] and looks_like_entries[run_end - 1])
        ):
            run_end += 1
        if sum(looks_like_entries[index:run_end]) >= MIN_ENTRIES:
            is_reference[index:run_end] = [True] * (run_end - index)
        index = run_end
