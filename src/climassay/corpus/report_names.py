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
_ABBREVIATED = re.compile(
    r"(?:ipcc\W*)?(?:ar[3-6]\W*)?(?:wg\W?(?:iii|ii|i|[1-3])|syr|sr\W?1\W?5|srccl|srocc|srex|srren)", re.I
)
"""Names of reports in tables and of files, for example ``wg1``, ``AR6-SYR``, ``sr15``."""
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
    if named := _named(hints, cited["year"] if cited else None):
        return f"{named}, {title}"
    return f"{cited['who']} ({cited['year']}), {title}" if cited else title


def report_name(name: str, source: str) -> str:
    """A report's name with its year, where it goes by an abbreviation.

    Args:
        name: Of the report.
        source: Of the file; it tells the cycle where the abbreviation does not.

    Returns:
        For example ``IPCC AR6 WG1 (2021)`` for ``wg1`` in ``ipcc_ar6_paragraphs.jsonl``; any other name, and one whose
        report nothing tells, as it is.
    """
    if not _ABBREVIATED.fullmatch(name.strip()):
        return name
    return _named((name, f"{name} {source}"), None) or name


def _named(hints: Sequence[str], year: str | None) -> str | None:
    found = next((found for hint in hints if (found := _report(re.sub(r"[_\-]+", " ", hint)))), None)
    if found is None:
        return None
    name, known = found
    return f"IPCC {name} ({year or known})" if year or known else f"IPCC {name}"


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
