"""Findings as lines for people, annotations for GitHub, SARIF for tools, plain data, and a page with the text.

Findings as review comments in a copy of a Word file.

The copy differs from the file in what the comments need and in nothing else: marks are put between the bytes of its
main part, which is not parsed and rewritten, since programs that do so lose what they do not know. A comment appears at
the runs of text that hold its words, and quotes them.
"""

import io
import re
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote
from xml.parsers import expat
from xml.sax.saxutils import escape

from climassay import __version__
from climassay.confidence.linting.checking import UNKNOWN_IGNORE, Checked
from climassay.confidence.linting.draft import Finding, Severity
from climassay.corpus.documents import ReadOptions
from climassay.corpus.readers.cleaning import clean
from climassay.errors import InputError
from climassay.io import write_file
from climassay.reporting.html import render_page

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
    result = [_result(checked, one, index) for checked in results for one in checked.findings]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": result}
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
    results, first = [], 0
    for start, end in pairwise(cuts):
        # Findings are in order: those that ended before this piece are not looked at again.
        while first < len(findings) and findings[first].end_offset <= start:
            first += 1
        here = tuple(
            number
            for number, one in enumerate(findings[first:], start=first)
            if one.start_offset <= start and end <= one.end_offset
        )
        results.append(Piece(text[start:end], here, tuple(one for one in here if findings[one].start_offset == start)))
    return tuple(results)


@dataclass(frozen=True, slots=True)
class FindingView:
    """A finding with its number on a page and the words for its place."""

    number: int
    finding: Finding
    place: str


def finding_views(checked: Checked) -> tuple[FindingView, ...]:
    """The findings of a text, numbered from 0, as pieces name them."""
    return tuple(FindingView(number, one, place_of(one)) for number, one in enumerate(checked.findings))


def lint_page(results: Sequence[Checked], accuracy: str = "", read_by: str = "") -> str:
    """A self-contained page: counts, a list with links, and the texts with their findings marked.

    Args:
        results: One for each file.
        accuracy: Accuracy of the tagger that took part, in words; empty where none did.
        read_by: What a language model read, in words; empty where none did.
    """
    names = list(dict.fromkeys(name for checked in results for name in checked.by_rule))
    rules = {rule.name: rule for checked in results for rule in checked.rules}
    counts = {name: sum(checked.by_rule.get(name, 0) for checked in results) for name in names}
    files = [(checked, pieces(checked), finding_views(checked)) for checked in results]
    return render_page("lint.html.j2", files=files, rules=rules, counts=counts, accuracy=accuracy, read_by=read_by)


AUTHOR = "climassay"
_MAIN, _COMMENTS = "word/document.xml", "word/comments.xml"
_RELATIONS, _TYPES = "word/_rels/document.xml.rels", "[Content_Types].xml"
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_COMMENTS_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.comments+xml"
_RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/comments"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_COMMENT_ID = re.compile(r'<\w+:comment\b[^>]*?\w+:id="(\d+)"')


@dataclass
class _Run:
    start: int
    """Where its tag begins in the part, in bytes."""
    text: str = ""
    end: int = 0


@dataclass
class _Paragraph:
    runs: list[_Run] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(run.text for run in self.runs)

    def around(self, words: str, before: int) -> tuple[_Run, _Run] | None:
        """First and last run that hold words, after so many earlier occurrences of them.

        Where they are not found, all runs of the paragraph; None where it has no text.
        """
        filled = [run for run in self.runs if run.text.strip()]
        if not filled:
            return None
        pattern = r"\s*".join(re.escape(char) for char in words if not char.isspace())
        places = list(re.finditer(pattern, self.text))
        if not pattern or before >= len(places):
            return filled[0], filled[-1]
        start, end = places[before].span()
        held, place = [], 0
        for run in self.runs:
            if run.text and place < end and place + len(run.text) > start:
                held.append(run)
            place += len(run.text)
        return held[0], held[-1]


def write_comments(source: Path, checked: Checked, target: Path) -> int:
    """Write a copy of a Word file with each finding as a comment, and one at its beginning on what was looked at.

    A copy without findings would otherwise look like an approved text.

    Args:
        source: The file that was checked; it stays as it is.
        checked: What was found in it.
        target: The copy; an earlier one is replaced.

    Returns:
        How many findings have a comment.

    Raises:
        InputError: The file is not a Word file, has changed since it was checked, or the copy cannot be written.
    """
    try:
        with zipfile.ZipFile(source) as file:
            if sum(entry.file_size for entry in file.infolist()) > ReadOptions().max_bytes:
                raise InputError(f"{source} unpacks to more than the size limit.")
            parts = {entry: file.read(entry) for entry in file.infolist() if not entry.is_dir()}
        known = {entry.filename: data for entry, data in parts.items()}
        prefix, paragraphs = _paragraphs(known[_MAIN])
        placed = list(_placed(checked, paragraphs))
        if not placed and checked.findings:
            raise InputError(f"{source} is not the text that was checked.")
        opening = next((run for paragraph in paragraphs for run in paragraph.runs if run.text.strip()), None)
        comments = [(_said(finding), first, last) for finding, first, last in placed]
        if opening is not None:
            limits = f"Not looked at: {'; '.join(checked.examined.not_looked_at)}."
            comments.insert(0, ([checked.conclusion, checked.examined.looked_at, limits], opening, opening))
        changed = _with_comments(known, prefix, comments)
    except (zipfile.BadZipFile, KeyError, expat.ExpatError, OSError, UnicodeDecodeError) as error:
        raise InputError(f"{source} cannot be given comments: it is not a readable Word file.") from error
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as copy:
        for entry in parts:
            copy.writestr(entry, changed.pop(entry.filename, parts[entry]), zipfile.ZIP_DEFLATED)
        for name, data in changed.items():
            copy.writestr(name, data)
    write_file(target, out.getvalue())
    return len(placed)


def _paragraphs(data: bytes) -> tuple[str, list[_Paragraph]]:
    """The prefix of Word's names, and all paragraphs in the order of their beginnings with the runs of their own."""
    match = re.search(rb"xmlns:(\w+)=[\"']" + re.escape(_WORD.encode()) + rb"[\"']", data[:20_000])
    if match is None or data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise KeyError("the main part names no Word vocabulary in UTF-8")
    prefix = match[1].decode()
    paragraph, run, text = (f"{prefix}:{name}" for name in ("p", "r", "t"))
    blanks = {f"{prefix}:{name}" for name in ("tab", "br", "cr")}
    parser = expat.ParserCreate()
    paragraphs: list[_Paragraph] = []
    open_paragraphs: list[_Paragraph] = []
    open_runs: list[_Run] = []
    within = [False]

    def start(name: str, _attributes: dict[str, str]) -> None:
        if name == paragraph:
            paragraphs.append(_Paragraph())
            open_paragraphs.append(paragraphs[-1])
        elif name == run and open_paragraphs:
            open_runs.append(_Run(parser.CurrentByteIndex))
            open_paragraphs[-1].runs.append(open_runs[-1])
        elif name in blanks and open_runs:
            open_runs[-1].text += " "
        within[0] = name == text

    def said(words: str) -> None:
        if within[0] and open_runs:
            open_runs[-1].text += words

    def end(name: str) -> None:
        within[0] = False
        if name == paragraph:
            open_paragraphs.pop()
        elif name == run and open_runs:
            open_runs.pop().end = data.index(b">", parser.CurrentByteIndex) + 1

    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, said
    parser.Parse(data, True)
    return prefix, paragraphs


def _placed(checked: Checked, paragraphs: list[_Paragraph]) -> Iterator[tuple[Finding, _Run, _Run]]:
    """Findings with the first and the last run that they appear at, in the order of the text."""
    number = 0
    places: list[_Paragraph | None] = []
    for block in checked.draft.blocks:
        said = checked.draft.text[block.start : block.end]
        here = next((n for n in range(number, len(paragraphs)) if clean(paragraphs[n].text) == said), None)
        places.append(None if here is None else paragraphs[here])
        number = number if here is None else here + 1
    for finding in checked.findings:
        for block, place in zip(checked.draft.blocks, places, strict=True):
            if place is not None and block.start <= finding.start_offset < block.end:
                earlier = checked.draft.text[block.start : finding.start_offset].count(finding.words)
                if (ends := place.around(finding.words, earlier)) is not None:
                    yield finding, *ends


def _with_comments(
    known: dict[str, bytes], prefix: str, placed: list[tuple[list[str], _Run, _Run]]
) -> dict[str, bytes]:
    """The parts that comments change or add."""
    if not placed:
        return {}
    before = known.get(_COMMENTS, b"").decode("utf-8")
    first = 1 + max(map(int, _COMMENT_ID.findall(before)), default=-1)
    marks: list[tuple[int, int, str]] = []
    comments = []
    for number, (lines, opening, closing) in enumerate(placed, start=first):
        marks.append((opening.start, 1, f'<{prefix}:commentRangeStart {prefix}:id="{number}"/>'))
        reference = f'<{prefix}:commentRangeEnd {prefix}:id="{number}"/><{prefix}:r><{prefix}:commentReference '
        marks.append((closing.end, 0, f'{reference}{prefix}:id="{number}"/></{prefix}:r>'))
        comments.append(_comment(number, lines))
    main, pieces, last = known[_MAIN], [], 0
    for place, _, mark in sorted(marks, key=lambda one: one[:2]):
        pieces += [main[last:place], mark.encode()]
        last = place
    changed = {_MAIN: b"".join([*pieces, main[last:]])}
    if before:
        written = before[: before.rindex("</")] + "".join(comments) + before[before.rindex("</") :]
        return {**changed, _COMMENTS: written.encode()}
    head = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
    changed[_COMMENTS] = f'{head}<w:comments xmlns:w="{_WORD}">{"".join(comments)}</w:comments>'.encode()
    changed[_TYPES] = _extended(
        known[_TYPES], f'<Override PartName="/{_COMMENTS}" ContentType="{_COMMENTS_TYPE}"/>', "Types"
    )
    relations = known.get(
        _RELATIONS, f'{head}<Relationships xmlns="{_PACKAGE}/relationships"></Relationships>'.encode()
    )
    relation = f'<Relationship Id="climassayComments" Type="{_RELATION}" Target="comments.xml"/>'
    changed[_RELATIONS] = _extended(relations, relation, "Relationships")
    return changed


def _extended(part: bytes, element: str, root: str) -> bytes:
    """A part with one more element at its end.

    Raises:
        KeyError: Its root is not what it should be.
    """
    text = part.decode("utf-8-sig")
    if f"</{root}>" not in text:
        if not re.search(rf"<{root}\b[^>]*/>\s*$", text):
            raise KeyError(root)
        return re.sub(rf"(<{root}\b[^>]*)/>\s*$", lambda m: f"{m[1]}>{element}</{root}>", text).encode()
    return text.replace(f"</{root}>", f"{element}</{root}>").encode()


def _said(finding: Finding) -> list[str]:
    lines = [f"{finding.severity} [{finding.rule}]: {finding.message}", f"About: {finding.words}"]
    return [*lines, f"Instead: {finding.suggestion}"] if finding.suggestion else lines


def _comment(number: int, lines: list[str]) -> str:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    said = "".join(
        f'<w:p><w:r><w:t xml:space="preserve">{escape("".join(char for char in line if char >= " "))}</w:t></w:r></w:p>'
        for line in lines
    )
    # A part of its own may use another prefix for Word's names: this one is declared here.
    return f'<w:comment xmlns:w="{_WORD}" w:id="{number}" w:author="{AUTHOR}" w:date="{now}">{said}</w:comment>'
