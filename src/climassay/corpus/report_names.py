"""Which report a document called "Summary for Policymakers" belongs to: by its metadata, first pages and file name."""

import re
from collections.abc import Sequence

_GENERIC = re.compile(
    r"(?:(?:draft|approved|final|full)\s+)?(?:summary\s+for\s+policy\s?makers|spm|technical\s+summary|ts|"
    r"executive\s+summary|synthesis\s+report|longer\s+report|headline\s+statements|frequently\s+asked\s+questions|"
    r"faqs?|annex(?:es)?|glossary|foreword|preface|introduction|references|index)",
    re.IGNORECASE,
)
"""Titles that every report of a series has."""
_SPECIAL = (
    (re.compile(r"\bsr\s?1\.?5\b|global\s+warming\s+of\s+1\.5", re.IGNORECASE), "SR15", 2018),
    (re.compile(r"\bsrccl\b|special\s+report\W+climate\s+change\s+and\s+land", re.IGNORECASE), "SRCCL", 2019),
    (re.compile(r"\bsrocc\b|ocean\s+and\s+cryosphere\s+in\s+a\s+changing", re.IGNORECASE), "SROCC", 2019),
    (re.compile(r"\bsrex\b|managing\s+the\s+risks\s+of\s+extreme\s+events", re.IGNORECASE), "SREX", 2012),
    (re.compile(r"\bsrren\b|renewable\s+energy\s+sources\s+and\s+climate", re.IGNORECASE), "SRREN", 2011),
)
_ASSESSMENT = re.compile(r"\bar\s?([3-6])\b", re.IGNORECASE)
_GROUP = re.compile(r"\b(?:wg|working\s+group)\s?(iii|ii|i|[1-3])\b|\b(syr|synthesis\s+report)\b", re.IGNORECASE)
_NUMERALS = {"i": "1", "ii": "2", "iii": "3"}
_YEARS = {
    ("6", "WG1"): 2021, ("6", "WG2"): 2022, ("6", "WG3"): 2022, ("6", "SYR"): 2023,
    ("5", "WG1"): 2013, ("5", "WG2"): 2014, ("5", "WG3"): 2014, ("5", "SYR"): 2014,
}  # fmt: skip
"""Where publication years of an assessment differ; the fourth and third are of one year each."""
_ONE_YEAR = {"4": 2007, "3": 2001}
_CITED_AS = re.compile(r"cited\s+as:?\s*(?P<who>[A-Z][A-Za-z]+),\s*(?P<year>(?:19|20)\d\d)\b")


def full_title(title: str, hints: Sequence[str]) -> str:
    """A title with report and year before it, where it is one that every report has.

    Args:
        title: As the file or its first page gives it.
        hints: What may tell the report, the most telling first: metadata, file name, text of the first pages.

    Returns:
        For example ``IPCC SR15 (2018), Summary for Policymakers``; the title as it is where it says more than the kind
        of document, or where nothing tells the report.
    """
    if not _GENERIC.fullmatch(" ".join(title.split())):
        return title
    cited = next((match for hint in hints if (match := _CITED_AS.search(hint))), None)
    named = next((found for hint in hints if (found := _report(re.sub(r"[_\-]+", " ", hint)))), None)
    if named is not None:
        name, known = named
        year = cited["year"] if cited else known
        return f"IPCC {name} ({year}), {title}" if year else f"IPCC {name}, {title}"
    return f"{cited['who']} ({cited['year']}), {title}" if cited else title


def _report(text: str) -> tuple[str, int | None] | None:
    for pattern, name, year in _SPECIAL:
        if pattern.search(text):
            return name, year
    if assessment := _ASSESSMENT.search(text):
        group = _GROUP.search(text)
        if group is None:
            return f"AR{assessment[1]}", _ONE_YEAR.get(assessment[1])
        number = (group[1] or "").lower()
        part = "SYR" if group[2] else f"WG{_NUMERALS.get(number, number)}"
        return f"AR{assessment[1]} {part}", _YEARS.get((assessment[1], part), _ONE_YEAR.get(assessment[1]))
    return None
