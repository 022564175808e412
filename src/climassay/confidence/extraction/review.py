"""Review an extraction: other calibrated terms, counts by report, a page beside the report."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, get_args

from climassay.confidence.extraction.cleaning import paragraph_label
from climassay.confidence.extraction.extracting import explains_terms, identify, split_report_sentences
from climassay.confidence.marks import find_likelihoods, find_tags
from climassay.confidence.statement import Statement
from climassay.confidence.vocabulary import AGREEMENT, EVIDENCE, LIKELIHOODS, TAGS
from climassay.corpus.documents import Document
from climassay.reporting import render_page
from climassay.reporting.tables import Table

TermKind = Literal["likelihood", "evidence", "agreement"]
_TERMS = {"likelihood": LIKELIHOODS, "evidence": EVIDENCE, "agreement": AGREEMENT}
_RANGE = re.compile(r"[\s*_]*(?:ranges?|intervals?)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CertaintyTerm:
    """A calibrated term other than a level of confidence, where it appears in a report."""

    id: str
    """Document, paragraph, sentence and number of the term: stable for the same document."""
    kind: TermKind
    term: str
    names_range: bool
    """Whether it names an interval: "very likely range"."""
    report: str
    document: str
    sentence: str
    start: int
    end: int
    """``sentence[start:end]`` are the words of the term, of evidence and agreement with what appears between them."""
    page: int | None = None
    headings: tuple[str, ...] = ()
    label: str | None = None
    """Number of the paragraph, for example ``A.1.3``, where it begins with one."""
    paragraph_id: str | None = None


def extract_terms(documents: Iterable[Document], report: str | None = None) -> list[CertaintyTerm]:
    """The terms of documents in reading order; sentences that explain the vocabulary and footnotes have none.

    Args:
        documents: As for :func:`climassay.confidence.extraction.extract`.
        report: Name of the report, in place of what the documents say.
    """
    results: list[CertaintyTerm] = []
    for document in documents:
        name = identify(document, report).name or document.report or document.title
        for place, block in enumerate(document.blocks):
            for number, sentence in enumerate(split_report_sentences(block.text)):
                if block.footnote or explains_terms(sentence):
                    continue
                terms: list[tuple[int, int, TermKind, str]] = [
                    (one.start, one.end, "likelihood", one.term) for one in find_likelihoods(sentence)
                ]
                for mark in find_tags(sentence):
                    start, end = mark.whole if mark.levels else (mark.start, mark.end)
                    terms += [(start, end, "evidence", mark.evidence)] if mark.evidence else []
                    terms += [(start, end, "agreement", mark.agreement)] if mark.agreement else []
                results += [
                    CertaintyTerm(
                        id=f"{document.id}-{place}.{number}.{which}",
                        kind=kind,
                        term=term,
                        names_range=kind == "likelihood" and _RANGE.match(sentence, end) is not None,
                        report=name,
                        document=document.title,
                        sentence=sentence,
                        start=start,
                        end=end,
                        page=block.page,
                        headings=block.headings,
                        label=paragraph_label(block.text),
                        paragraph_id=block.paragraph_id,
                    )
                    for which, (start, end, kind, term) in enumerate(sorted(terms))
                ]
    return results


def term_table(terms: Sequence[CertaintyTerm]) -> Table:
    """How often each term appears in each report."""
    counts = Counter((one.kind, one.term, one.report) for one in terms)
    reports = list(dict.fromkeys(one.report for one in terms))
    rows = []
    for kind in get_args(TermKind):
        for term in _TERMS[kind]:
            numbers = [counts[kind, term, one] for one in reports]
            if any(numbers):
                rows.append([kind, term, *map(str, numbers), str(sum(numbers))])
    ranges = sum(one.names_range for one in terms)
    note = f"{ranges} of the terms of likelihood name a range (“very likely range”)." if ranges else ""
    return Table.of(f"{len(terms)} other terms", ["kind", "term", *reports, "all reports"], rows, note=note, left=2)


def summary_table(statements: Sequence[Statement]) -> Table:
    """Statements by report and level, duplicates counted apart."""
    counts = Counter((one.report, one.tag) for one in statements if one.duplicate_of is None)
    repeated = Counter(one.report for one in statements if one.duplicate_of is not None)
    reports = list(dict.fromkeys(one.report for one in statements))
    untagged = any(one.tag is None for one in statements)
    levels = [*TAGS, *([None] if untagged else [])]
    rows = [[report, *(str(counts[report, level]) for level in levels), str(repeated[report])] for report in reports]
    if len(reports) > 1:
        sums = [sum(counts[report, level] for report in reports) for level in levels]
        rows.append(["all", *map(str, sums), str(sum(repeated.values()))])
    headings = ["report", *(level or "no level" for level in levels), "repeated"]
    return Table.of(
        f"{len(statements)} statements",
        headings,
        rows,
        note=(
            "Repeated: statements of the same words and level as an earlier one; they are in no other column. "
            "A sentence with several levels counts once for each."
        ),
    )


def review_page(statements: Sequence[Statement], terms: Sequence[CertaintyTerm] = ()) -> str:
    """Every statement with its level, page, the report's own words, and the sentences before and after.

    Returns:
        A whole HTML page: one file that asks nothing of any server; it can be read without its script, which only
        filters. All text is escaped.
    """
    counts = Counter(statement.tag for statement in statements)
    groups = [
        (place, list(group))
        for place, group in groupby(statements, key=lambda one: (one.report, one.document, one.headings))
    ]
    return render_page(
        "confidence_review.html.j2",
        groups=groups,
        total=len(statements),
        levels=[(tag, counts[tag]) for tag in (*TAGS, None) if counts[tag]],
        terms=Counter(
            f"{one.term} {one.kind}" if one.kind != "likelihood" else one.term for one in terms
        ).most_common(),
        shares={tag: place / (len(TAGS) - 1) for place, tag in enumerate(TAGS)},
    )
