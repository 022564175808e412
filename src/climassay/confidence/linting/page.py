"""Findings in their text: pieces to show, and a page of its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from climassay.confidence.linting.checking import Checked
from climassay.confidence.linting.finding import Finding
from climassay.confidence.linting.presentation import place_of
from climassay.reporting.html import render_page, write_page


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text, and the numbers of the findings that speak about it."""

    text: str
    findings: tuple[int, ...] = ()
    starts: tuple[int, ...] = ()
    """Those that begin here."""


def pieces(checked: Checked) -> tuple[Piece, ...]:
    """The text in pieces, cut wherever a finding begins or ends; together they are the text again."""
    text, findings = checked.draft.text, checked.findings
    cuts = sorted({0, len(text), *(place for one in findings for place in (one.start_offset, one.end_offset))})
    found, first = [], 0
    for start, end in pairwise(cuts):
        # Findings are in order: those that ended before this piece are not looked at again.
        while first < len(findings) and findings[first].end_offset <= start:
            first += 1
        here = tuple(
            number
            for number, one in enumerate(findings[first:], start=first)
            if one.start_offset <= start and end <= one.end_offset
        )
        found.append(Piece(text[start:end], here, tuple(one for one in here if findings[one].start_offset == start)))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class ShownFinding:
    """A finding with its number on a page and the words for its place."""

    number: int
    finding: Finding
    place: str


def shown_findings(checked: Checked) -> tuple[ShownFinding, ...]:
    """The findings of a text, numbered from 0, as pieces name them."""
    return tuple(ShownFinding(number, one, place_of(one)) for number, one in enumerate(checked.findings))


def lint_page(results: Sequence[Checked], accuracy: str = "") -> str:
    """A self-contained page: counts, a list with links, and the texts with their findings marked.

    Args:
        results: One for each file.
        accuracy: Of the tagger that took part, in words; empty where none did.
    """
    names = list(dict.fromkeys(name for checked in results for name in checked.by_rule))
    rules = {rule.name: rule for checked in results for rule in checked.rules}
    counts = {name: sum(checked.by_rule.get(name, 0) for checked in results) for name in names}
    files = [(checked, pieces(checked), shown_findings(checked)) for checked in results]
    return render_page("lint.html.j2", files=files, rules=rules, counts=counts, accuracy=accuracy)


def write_lint_page(results: Sequence[Checked], path: Path, accuracy: str = "") -> Path:
    """Write the page."""
    return write_page(lint_page(results, accuracy), path)
