"""Findings as lines for a terminal, as plain data, and as a page with the text."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from climassay.confidence.linting.checking import Checked
from climassay.reporting.html import render_page


def text_lines(checked: Checked) -> list[str]:
    """Return a line per finding: file, place, severity, rule, message and words."""
    name = checked.draft.name
    return [
        f"{name}: {one.location}: {one.severity} [{one.rule}] {one.message} | {one.words}" for one in checked.findings
    ]


def data(checked: Checked) -> dict[str, Any]:
    """Return the file, what could be read of it, counts by rule, and every finding, as JSON-serialisable values."""
    return {
        "file": checked.draft.name,
        "words": checked.draft.words,
        "sentences": len(checked.draft.sentences),
        "sentences_with_terms": checked.sentences_with_terms,
        "language": checked.language,
        "conclusion": checked.conclusion,
        "by_rule": checked.by_rule,
        "findings": [
            {
                "rule": one.rule,
                "severity": one.severity,
                "page": one.location.page,
                "paragraph": one.location.paragraph,
                "column": one.location.column,
                "words": one.words,
                "message": one.message,
                "suggestion": one.suggestion,
            }
            for one in checked.findings
        ],
    }


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text, with the numbers of the findings that are about it and of those that start with it."""

    text: str
    findings: tuple[int, ...] = ()
    starts: tuple[int, ...] = ()


def pieces(checked: Checked) -> tuple[Piece, ...]:
    """Cut the text wherever a finding begins or ends; together the pieces are the text again."""
    text, findings = checked.draft.text, checked.findings
    cuts = sorted({0, len(text), *(offset for one in findings for offset in (one.start, one.end))})
    results, first = [], 0
    for start, end in pairwise(cuts):
        # Findings are in order: those that ended before this piece are not looked at again.
        while first < len(findings) and findings[first].end <= start:
            first += 1
        here = tuple(
            number for number, one in enumerate(findings[first:], first) if one.start <= start and end <= one.end
        )
        results.append(Piece(text[start:end], here, tuple(one for one in here if findings[one].start == start)))
    return tuple(results)


def lint_page(results: Sequence[Checked], read_by: str = "") -> str:
    """Return a self-contained page: counts, a list with links, and the texts with their findings marked.

    Args:
        results: One for each file.
        read_by: What a language model read, in words; empty if none did.
    """
    rules = {rule.name: rule for checked in results for rule in checked.rules}
    counts = {name: sum(checked.by_rule.get(name, 0) for checked in results) for name in rules}
    files = [(checked, pieces(checked)) for checked in results]
    return render_page("lint.html.j2", files=files, rules=rules, counts=counts, read_by=read_by)
