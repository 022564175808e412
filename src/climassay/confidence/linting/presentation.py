"""Findings as lines for people, annotations for GitHub, SARIF for tools, plain data, and a page with the text."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote

from climassay import __version__
from climassay.confidence.linting.checking import UNKNOWN_IGNORE, Checked
from climassay.confidence.linting.draft import Finding, Severity
from climassay.reporting.html import render_page, write_page

_GITHUB: dict[Severity, str] = {"error": "error", "warning": "warning", "note": "notice"}
_SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LONGEST_WORDS = 120


def place_of(finding: Finding) -> str:
    """``12:5``: line and column; ``p4:3:10``: page, paragraph and character of a file with pages."""
    at = f"{finding.location.line}:{finding.location.column}"
    return at if finding.location.page is None else f"p{finding.location.page}:{at}"


def text_lines(checked: Checked) -> list[str]:
    """One line per finding: file, place, severity, rule, message, and what could appear there instead."""
    return [
        f"{checked.draft.name}:{place_of(one)}: {one.severity} [{one.rule}] {one.message} | "
        + (one.words if len(one.words) <= _LONGEST_WORDS else f"{one.words[: _LONGEST_WORDS - 1].rstrip()}…")
        for one in checked.findings
    ]


def github_lines(checked: Checked) -> list[str]:
    """Workflow commands that GitHub shows beside the lines of a file."""
    lines = []
    for one in checked.findings:
        fields = {"file": checked.draft.name, "title": one.rule}
        said = one.message
        if one.location.page is None:
            same_line = one.location.line == one.end.line
            fields |= {"line": str(one.location.line), "endLine": str(one.end.line)}
            fields |= {"col": str(one.location.column), "endColumn": str(one.end.column)} if same_line else {}
        else:
            said = f"Page {one.location.page}, paragraph {one.location.line}: {said}"
        told = ",".join(f"{name}={_escaped(value, ':,')}" for name, value in fields.items())
        lines.append(f"::{_GITHUB[one.severity]} {told}::{_escaped(said)}")
    return lines


def sarif(results: Sequence[Checked]) -> dict[str, Any]:
    """One SARIF 2.1.0 log of one run over all files; places in files with pages are given in words."""
    rules = {rule.name: rule for checked in results for rule in checked.rules}
    descriptors: list[dict[str, Any]] = [
        {
            "id": rule.name,
            "shortDescription": {"text": rule.summary},
            "fullDescription": {"text": rule.reason},
            "defaultConfiguration": {"level": rule.severity},
        }
        for rule in rules.values()
    ]
    if any(UNKNOWN_IGNORE in checked.by_rule for checked in results):
        descriptors.append({"id": UNKNOWN_IGNORE, "shortDescription": {"text": "comment names an unknown rule"}})
    index = {descriptor["id"]: number for number, descriptor in enumerate(descriptors)}
    driver = {"name": "climassay confidence lint", "version": __version__, "rules": descriptors}
    found = [_result(checked, one, index) for checked in results for one in checked.findings]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": found}
    return {"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def data(checked: Checked) -> dict[str, Any]:
    """What JSON can write: the file, what was looked at and what not, counts by rule, and every finding."""
    examined = checked.examined
    return {
        "file": checked.draft.name,
        "words": checked.draft.words,
        "conclusion": checked.conclusion,
        "holds_assessment": examined.holds_assessment,
        "looked_at": {
            "sentences": examined.sentences,
            "with_a_term": examined.with_terms,
            "stating_a_finding_without_a_term": examined.stating_findings,
            "language": examined.language,
        },
        "not_looked_at": list(examined.not_looked_at),
        "findings_per_1000_words": round(checked.per_thousand_words, 2),
        "by_rule": checked.by_rule,
        "silenced": checked.silenced,
        "findings": [
            {
                "rule": one.rule,
                "severity": one.severity,
                "page": one.location.page,
                "line": one.location.line,
                "column": one.location.column,
                "end_line": one.end.line,
                "end_column": one.end.column,
                "words": one.words,
                "message": one.message,
                "suggestion": one.suggestion,
            }
            for one in checked.findings
        ],
    }


def _escaped(text: str, more: str = "") -> str:
    for char in f"%\r\n{more}":
        text = text.replace(char, f"%{ord(char):02X}")
    return text


def _result(checked: Checked, one: Finding, index: dict[str, int]) -> dict[str, Any]:
    uri = quote(PurePath(checked.draft.name).as_posix(), safe="/")
    place: dict[str, Any] = {"artifactLocation": {"uri": uri}}
    location: dict[str, Any] = {"physicalLocation": place}
    if one.location.page is None:
        place["region"] = {
            "startLine": one.location.line,
            "startColumn": one.location.column,
            "endLine": one.end.line,
            "endColumn": one.end.column + 1,
            "snippet": {"text": checked.draft.text[one.start_offset : one.end_offset]},
        }
    else:
        location["message"] = {"text": f"Page {one.location.page}, paragraph {one.location.line}."}
    return {
        "ruleId": one.rule,
        "ruleIndex": index[one.rule],
        "level": one.severity,
        "message": {"text": one.message},
        "locations": [location],
    }


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
class FindingView:
    """A finding with its number on a page and the words for its place."""

    number: int
    finding: Finding
    place: str


def finding_views(checked: Checked) -> tuple[FindingView, ...]:
    """The findings of a text, numbered from 0, as pieces name them."""
    return tuple(FindingView(number, one, place_of(one)) for number, one in enumerate(checked.findings))


def lint_page(results: Sequence[Checked], accuracy: str = "") -> str:
    """A self-contained page: counts, a list with links, and the texts with their findings marked.

    Args:
        results: One for each file.
        accuracy: Accuracy of the tagger that took part, in words; empty where none did.
    """
    names = list(dict.fromkeys(name for checked in results for name in checked.by_rule))
    rules = {rule.name: rule for checked in results for rule in checked.rules}
    counts = {name: sum(checked.by_rule.get(name, 0) for checked in results) for name in names}
    files = [(checked, pieces(checked), finding_views(checked)) for checked in results]
    return render_page("lint.html.j2", files=files, rules=rules, counts=counts, accuracy=accuracy)


def write_lint_page(results: Sequence[Checked], path: Path, accuracy: str = "") -> Path:
    """Write the page."""
    return write_page(lint_page(results, accuracy), path)
