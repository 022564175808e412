"""Recognise lists of references, whose titles are evidence of nothing, by their heading and by the look of entries."""

import re
from collections.abc import Sequence

from climassay.corpus.documents import Block, LeftOut

KIND = "references"
MIN_ENTRIES = 3
"""Entries one after the other that make a list without a heading."""
_NUMBERING = r"(?:(?:\d+|[A-Z])(?:\.\d+)*[.):]?\s+|[IVX]+\.\s+)?"
_NAMES = (
    "references?|bibliograph(?:y|ies)|works? cited|literature(?: cited)?|cited literature|reference list|list of "
    "references|references (?:and|&) notes|notes (?:and|&) references|references cited|cited references|"
    "references (?:and|&) further reading|further reading|selected (?:references|bibliography)|sources cited|"
    "supplementary references|methods references|online references|citations|endnotes|"
    "literatur(?:verzeichnis|angaben|hinweise)?|quellen(?:verzeichnis|angaben)?|einzelnachweise|referenzen|"
    "références(?: bibliographiques)?|bibliographie|ouvrages cités|referencias(?: bibliográficas)?|bibliografía|"
    "referências(?: bibliográficas)?|bibliografia|riferimenti(?: bibliografici)?|referenties|literatuur(?:lijst)?|"
    "referenser|litteratur|referanser|список литературы|литература|参考文献|參考文獻|참고문헌"
)
_HEADING = re.compile(rf"{_NUMBERING}(?:{_NAMES})\s*[:.]?(?:\s*\[\w+\])?", re.IGNORECASE)
_YEAR = r"(?:1[5-9]|20)\d\d[a-z]?"
_ANY_YEAR = re.compile(rf"(?<![\d.,]){_YEAR}(?![\d.,]*\d)|\bn\.d\.|\bin press\b|\bforthcoming\b", re.IGNORECASE)
_LABEL = r"(?:\[\d{1,4}\]|\(\d{1,4}\)|\d{1,4}\.?|\[[A-Z][\w+]{1,12}\]|[•*^↑‐–-]+)?\s*"
_BRACKETED = re.compile(r"\[\d{1,4}\]\s")
_PARTICLE = r"(?:(?:van|von|de|der|den|del|della|di|da|du|la|le|el|al|ter|ten|dos|bin)[\s-])*"
_CAPITAL = r"[^\W\d_a-zà-ÿ]"
_SURNAME = rf"{_PARTICLE}{_CAPITAL}[^\W\d_]*(?:[\s'’‐-][^\W\d_]+){{0,3}}"
_INITIALS = rf"(?:{_CAPITAL}(?:\.|(?=[\s,;:&(.‐-]|$))[\s‐-]?){{1,4}}"
_AUTHOR = re.compile(
    rf"{_LABEL}(?:{_SURNAME},?\s+{_INITIALS}"  # Smith, J. A.; Smith J
    rf"|{_INITIALS}\s*{_SURNAME}\s*(?:,|and\b|&|et al|\(|:)"  # J. A. Smith and
    rf"|{_SURNAME},\s+{_CAPITAL}[^\W\d_]+(?:\s+{_CAPITAL}\.?)?\s*[,;&(.]"  # Smith, John A.
    rf"|{_SURNAME}\s*(?:,\s*{_SURNAME}\s*)?(?:and|&|et al)\b)"  # Smith et al
)
_CORPORATE_AUTHOR = re.compile(rf"{_LABEL}{_CAPITAL}[^.:;]{{1,90}}?[,.]?\s\(?{_YEAR}\)?\s*[:.,]")
_YEAR_OF_ENTRY = re.compile(rf"\(\s*{_YEAR}(?:,[^()]{{1,20}})?\s*\)|(?:^|[\s,;.]){_YEAR}\s*(?:[.:;,)]|$|doi)")
_PUBLICATION = (
    re.compile(r"\bdoi\b|10\.\d{4,9}/\S", re.IGNORECASE),
    re.compile(r"https?://|\bwww\.|\barXiv\b|\bISBN\b|\bISSN\b|\bPMID\b|\bPMCID\b", re.IGNORECASE),
    re.compile(r"\b\d{1,4}\s*\(\s*[\w–-]{1,9}\s*\)|\b\d{1,4}\s*[,:]\s*[A-Z]?\d+(?:\s*[–‐-]\s*[A-Z]?\d+)?"),
    re.compile(r"\b[A-Z]?\d{1,6}\s?[–‐-]\s?[A-Z]?\d{1,6}\b|\bpp?\.\s?\d|\b\d+\s?pp\b"),
    re.compile(r"\b(?:[Vv]ol|[Nn]o|[Ee]ds?)\.|\b[Ii]n:|\(eds?\.?\)|\bet al\b"),
    re.compile(
        r"\b(?:Journal|J\.|Nature|Science|Proc(?:eedings)?|Rev(?:iews?)?|Lett(?:ers)?|Geophys|Clim(?:ate|\.)?|Press|University|"
        r"Publish\w*|Springer|Elsevier|Wiley|Routledge|Thesis|Dissertation|Report|Trans(?:actions|\.)|Bull(?:etin|\.)|"
        r"Zeitschrift|Verlag|Revue|Revista)\b"
    ),
)
_PROSE_VERB = re.compile(
    r"\)\s+(?:found|showed?|shows|reported|estimated?|suggest\w*|argued?|concluded?|and\s+\w+\s+(?:et al\.?\s+)?\()"
)
MIN_MARKS = 2
MAX_ENTRY = 1500
"""Characters; a longer paragraph is no entry of a list."""


def is_references_heading(text: str) -> bool:
    """Return whether a heading or a line of its own announces a list of references."""
    return len(text) < 60 and _HEADING.fullmatch(text.strip(" *_#")) is not None


def looks_like_entry(text: str) -> bool:
    """Return whether a paragraph looks like an entry of a list of references: authors, year, and where it appeared."""
    if len(text) > MAX_ENTRY or _PROSE_VERB.search(text[:200]):
        return False
    has_author = _AUTHOR.match(text) is not None
    if not has_author and not _CORPORATE_AUTHOR.match(text):
        return False
    marks = sum(pattern.search(text) is not None for pattern in _PUBLICATION)
    if marks >= MIN_MARKS:
        return _ANY_YEAR.search(text) is not None
    return has_author and marks == 1 and _YEAR_OF_ENTRY.search(text) is not None


def begins_like_entry(text: str) -> bool:
    """Return whether a line begins as entries of a list of references do: with a number in brackets or an author."""
    return _BRACKETED.match(text) is not None or _AUTHOR.match(text) is not None


def leave_out_references(blocks: Sequence[Block]) -> tuple[list[Block], tuple[LeftOut, ...]]:
    """Return the blocks that are no entries of lists of references, and the number of entries with their pages.

    A list is what stands under a heading such as "References" up to its last entry (text after it is kept), or at
    least :data:`MIN_ENTRIES` entries one after the other.

    Args:
        blocks: Blocks of one document in reading order.
    """
    entries = [_is_listed(block) for block in blocks]
    looks = [looks_like_entry(block.text) for block in blocks]
    start = 0
    while start < len(blocks):
        end = start
        while end < len(blocks) and entries[end] == entries[start]:
            end += 1
        if entries[start]:
            _keep_text_after_last_entry(blocks, looks, entries, start, end)
        else:
            _mark_runs(looks, entries, start, end)
        start = end
    kept = [block for block, is_entry in zip(blocks, entries, strict=True) if not is_entry]
    left = [block for block, is_entry in zip(blocks, entries, strict=True) if is_entry]
    pages = tuple(sorted({block.page for block in left if block.page is not None}))
    return kept, (LeftOut(KIND, len(left), pages),) if left else ()


def _is_listed(block: Block) -> bool:
    return any(is_references_heading(heading) for heading in block.headings)


def _keep_text_after_last_entry(
    blocks: Sequence[Block], looks: Sequence[bool], entries: list[bool], start: int, end: int
) -> None:
    """Unmark the blocks under a heading after the last that can be an entry, and all if none can be."""
    section = range(start, end)
    if not any(looks[index] for index in section):
        for index in section:
            entries[index] = _may_be_entry(blocks[index].text)
        return
    last = max(index for index in section if looks[index])
    for index in range(last + 1, end):
        entries[index] = _may_be_entry(blocks[index].text)


def _may_be_entry(text: str) -> bool:
    """Return whether a block under a heading of references has any mark of an entry and does not read like prose."""
    marks = sum(pattern.search(text) is not None for pattern in _PUBLICATION)
    return len(text) <= MAX_ENTRY and (
        (marks >= 1 and (_ANY_YEAR.search(text) is not None or marks >= MIN_MARKS))
        or (_AUTHOR.match(text) is not None and _ANY_YEAR.search(text) is not None)
    )


def _mark_runs(looks: Sequence[bool], entries: list[bool], start: int, end: int) -> None:
    """Mark entries that follow one another without a heading; a single block between two entries joins them."""
    index = start
    while index < end:
        if not looks[index]:
            index += 1
            continue
        stop = index + 1
        while stop < end and (looks[stop] or (stop + 1 < end and looks[stop + 1] and looks[stop - 1])):
            stop += 1
        if sum(looks[index:stop]) >= MIN_ENTRIES:
            entries[index:stop] = [True] * (stop - index)
        index = stop
