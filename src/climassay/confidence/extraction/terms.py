"""Terms of likelihood, evidence and agreement as rows of their own, each with its sentence and counts by report."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from climassay.confidence.extraction.clutter import paragraph_label
from climassay.confidence.extraction.extracting import explains_terms, split_report_sentences
from climassay.confidence.extraction.reports import identify
from climassay.confidence.marks import find_likelihoods, find_tags
from climassay.confidence.vocabulary import AGREEMENT, EVIDENCE, LIKELIHOODS
from climassay.corpus.documents import Block, Document
from climassay.reporting.tables import Table

TermKind = Literal["likelihood", "evidence", "agreement"]
_TERMS = {"likelihood": LIKELIHOODS, "evidence": EVIDENCE, "agreement": AGREEMENT}
_RANGE = re.compile(r"[\s*_]*(?:ranges?|intervals?)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CertaintyTerm:
    """A calibrated term other than a level of confidence, where it stands in a report."""

    id: str
    """Document, paragraph, sentence and number of the term: stable for the same document."""
    kind: TermKind
    term: str
    names_range: bool
    """Whether it names an interval: "very likely range"."""
    report: str
    document: str
    sentence: str
    """As it stands in the report."""
    start: int
    end: int
    """``sentence[start:end]`` are the words of the term, of evidence and agreement with what stands between them."""
    page: int | None = None
    headings: tuple[str, ...] = ()
    label: str | None = None
    """Number of the paragraph, for example ``A.1.3``, where it begins with one."""
    paragraph_id: str | None = None


def extract_terms(documents: Iterable[Document], report: str | None = None) -> list[CertaintyTerm]:
    """The terms of documents in reading order; sentences that explain the vocabulary have none.

    Args:
        documents: As for :func:`climassay.confidence.extraction.extract`.
        report: Name of the report, in place of what the documents say.
    """
    found: list[CertaintyTerm] = []
    for document in documents:
        name = identify(document, report).name or document.report or document.title
        for place, block in enumerate(document.blocks):
            for number, sentence in enumerate(split_report_sentences(block.text)):
                terms = [] if explains_terms(sentence) else sorted(_terms_of(sentence))
                found += [
                    _row(f"{document.id}-{place}.{number}.{which}", term, name, document, block, sentence)
                    for which, term in enumerate(terms)
                ]
    return found


def term_table(terms: Sequence[CertaintyTerm]) -> Table:
    """How often each term stands in each report."""
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


def _terms_of(sentence: str) -> Iterator[tuple[int, int, TermKind, str]]:
    for one in find_likelihoods(sentence):
        yield one.start, one.end, "likelihood", one.term
    for mark in find_tags(sentence):
        start, end = mark.whole if mark.levels else (mark.start, mark.end)
        if mark.evidence:
            yield start, end, "evidence", mark.evidence
        if mark.agreement:
            yield start, end, "agreement", mark.agreement


def _row(
    id: str, term: tuple[int, int, TermKind, str], report: str, document: Document, block: Block, sentence: str
) -> CertaintyTerm:
    start, end, kind, words = term
    return CertaintyTerm(
        id,
        kind,
        words,
        kind == "likelihood" and _RANGE.match(sentence, end) is not None,
        report,
        document.title,
        sentence,
        start,
        end,
        block.page,
        block.headings,
        paragraph_label(block.text),
        block.paragraph_id,
    )
