"""Tell from a document's names which report of which assessment cycle it is."""

import re
from typing import NamedTuple

from climassay.corpus.documents import Document


class ReportIdentity(NamedTuple):
    """A report of the IPCC, as far as its names tell."""

    cycle: str | None
    """``AR3`` to ``AR6``."""
    working_group: str | None
    """``WG1``, ``WG2``, ``WG3``, ``SYR``, or a special report."""

    @property
    def name(self) -> str | None:
        """For example ``AR6 WG1``, ``AR5 SYR`` or ``SR15``; None where the working group is not known."""
        if self.working_group is None:
            return None
        if self.working_group in _CYCLE_OF_SPECIAL:
            return self.working_group
        return f"{self.cycle} {self.working_group}" if self.cycle else self.working_group


_CYCLE_OF_SPECIAL = {"SR15": "AR6", "SRCCL": "AR6", "SROCC": "AR6", "SREX": "AR5", "SRREN": "AR5"}
_SPECIAL = (
    ("SR15", r"sr\s?1\.?5\b|global\s+warming\s+of\s+1\.5\s*[°º]?\s*c|special report on global warming"),
    ("SRCCL", r"srccl|special report on climate change and land|^climate change and land\b"),
    ("SROCC", r"srocc|ocean and cryosphere in a changing climate"),
    ("SREX", r"srex|managing the risks of extreme events"),
    ("SRREN", r"srren|renewable energy sources and climate change mitigation"),
)
_GROUPS = (
    ("SYR", r"\bsyr\b|synthesis\s+report"),
    ("WG1", r"\bwg\s?(?:1|i)\b|working\s+group\s+(?:1|i)\b|physical\s+science\s+basis|\bthe\s+scientific\s+basis"),
    ("WG2", r"\bwg\s?(?:2|ii)\b|working\s+group\s+(?:2|ii)\b|impacts,\s+adaptation,?\s+and\s+vulnerability"),
    ("WG3", r"\bwg\s?(?:3|iii)\b|working\s+group\s+(?:3|iii)\b|climate\s+change\s+\d{4}\W+mitigation"),
)
_CYCLE = re.compile(r"\bar\s?([3-6])\b|\b(tar)\b", re.IGNORECASE)
_CYCLE_WORDS = (("third", "AR3"), ("fourth", "AR4"), ("fifth", "AR5"), ("sixth", "AR6"))
_CYCLE_OF_YEAR = {2001: "AR3", 2007: "AR4", 2013: "AR5", 2014: "AR5", 2021: "AR6", 2022: "AR6", 2023: "AR6"}
_YEAR = re.compile(r"climate\s+change\s+(20\d\d)|\bipcc,?\s+(20\d\d)", re.IGNORECASE)
_OWN_CITATION = re.compile(r"\bIn:\s+(.{0,400})", re.DOTALL)
_FIRST_BLOCKS = 8


def identify(document: Document, report: str | None = None, cycle: str | None = None) -> ReportIdentity:
    """Cycle and working group of a document, from what the user says, then its report, title and file name.

    Where these tell nothing, the way the document says it is to be cited does ("In: Climate Change 2021: The Physical
    Science Basis ..."), which stands in its first paragraphs.
    """
    sources = [report, document.report, document.title, document.source]
    names = [name for name in sources if name]
    cited = [match[1] for block in document.blocks[:_FIRST_BLOCKS] if (match := _OWN_CITATION.search(block.text))]
    group = next((found for name in [*names, *cited] if (found := _group(name))), None)
    if group in _CYCLE_OF_SPECIAL:
        return ReportIdentity(cycle or _CYCLE_OF_SPECIAL[group], group)
    found_cycle = cycle or next((found for name in [*names, *cited] if (found := _cycle(name))), None)
    return ReportIdentity(found_cycle, group)


def _group(name: str) -> str | None:
    plain = name.replace("_", " ")
    for group, pattern in (*_SPECIAL, *_GROUPS):
        if re.search(pattern, plain, re.IGNORECASE):
            return group
    return None


def _cycle(name: str) -> str | None:
    plain = name.replace("_", " ")
    if match := _CYCLE.search(plain):
        return f"AR{match[1]}" if match[1] else "AR3"
    if match := re.search(r"\b(third|fourth|fifth|sixth)\s+assessment", plain, re.IGNORECASE):
        return dict(_CYCLE_WORDS)[match[1].lower()]
    if match := _YEAR.search(plain):
        return _CYCLE_OF_YEAR.get(int(match[1] or match[2]))
    return None
