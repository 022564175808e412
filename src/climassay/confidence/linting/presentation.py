"""Present findings as lines for a terminal, as data, and as a page with the text."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from climassay.confidence.linting.checking import CheckedDraft
from climassay.reporting.html import render_page


def format_findings(checked_draft: CheckedDraft) -> list[str]:
    """Return a line per finding: file, location, severity, rule, message and words."""
    name = checked_draft.draft.name
    return [
        f"{name}: {finding.location}: {finding.severity} [{finding.rule}] {finding.message} | {finding.words}"
        for finding in checked_draft.findings
    ]


def findings_data(checked_draft: CheckedDraft) -> dict[str, Any]:
    """Return file, counts by rule and all findings as JSON-serialisable values."""
    return {
        "file": checked_draft.draft.name,
        "words": checked_draft.draft.words,
        "sentences": len(checked_draft.draft.sentences),
        "sentences_with_terms": checked_draft.sentences_with_terms,
        "language": checked_draft.language,
        "conclusion": checked_draft.conclusion,
        "by_rule": checked_draft.by_rule,
        "findings": [
            {
                "rule": finding.rule,
                "severity": finding.severity,
                "page": finding.location.page,
                "paragraph": finding.location.paragraph,
                "column": finding.location.column,
                "words": finding.words,
                "message": finding.message,
                "suggestion": finding.suggestion,
            }
            for finding in checked_draft.findings
        ],
    }


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a draft, with the indices of the findings that contain it, and of the findings that start at it."""

    text: str
    findings: tuple[int, ...] = ()
    starts: tuple[int, ...] = ()


def split_at_findings(checked_draft: CheckedDraft) -> tuple[Piece, ...]:
    """Split a draft's text at the start and end of every finding."""
    text, findings = checked_draft.draft.text, checked_draft.findings
    offsets = sorted({0, len(text), *(offset for finding in findings for offset in (finding.start, finding.end))})
    results, first_index = [], 0
    for start, end in pairwise(offsets):
        # Findings are sorted: skip those that ended before this piece.
        while first_index < len(findings) and findings[first_index].end <= start:
            first_index += 1
        last_index = bisect_right(findings, start, lo=first_index, key=lambda finding: finding.start)
        covering_indices = tuple(index for index in range(first_index, last_index) if end <= findings[index].end)
        starting_indices = tuple(index for index in covering_indices if findings[index].start == start)
        results.append(Piece(text[start:end], covering_indices, starting_indices))
    return tuple(results)


def lint_page(results: Sequence[CheckedDraft], read_by: str = "") -> str:
    """Return a self-contained HTML page with counts, a list of findings, and the texts with the findings highlighted.

    Args:
        results: One checked draft per file.
        read_by: Sentence that states which passages a language model read; empty if no model was used.
    """
    rules = {rule.name: rule for checked_draft in results for rule in checked_draft.rules}
    counts = {name: sum(checked_draft.by_rule.get(name, 0) for checked_draft in results) for name in rules}
    files = [(checked_draft, split_at_findings(checked_draft)) for checked_draft in results]
    return render_page("lint.html.j2", files=files, rules=rules, counts=counts, read_by=read_by)
