"""Review an extraction: other calibrated terms, counts by report, and a page for comparison with the report."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, get_args

from climassay.confidence.extraction.cleaning import find_paragraph_label
from climassay.confidence.extraction.extracting import explains_terms, identify_report, split_report_sentences
from climassay.confidence.statement import Statement
from climassay.confidence.tags import find_likelihoods, find_tags
from climassay.confidence.vocabulary import AGREEMENT, EVIDENCE, LEVELS, LIKELIHOODS
from climassay.corpus.documents import Document
from climassay.reporting import render_page
from climassay.reporting.tables import Table

TermKind = Literal["likelihood", "evidence", "agreement"]
_TERMS = {"likelihood": LIKELIHOODS, "evidence": EVIDENCE, "agreement": AGREEMENT}
_RANGE = re.compile(r"[\s*_]*(?:ranges?|intervals?)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CertaintyTerm:
    """Calibrated term other than a level of confidence, with its location in a report."""

    id: str
    """Stable id, composed of document, paragraph, sentence and term."""
    kind: TermKind
    term: str
    names_range: bool
    """Whether the term describes an interval, as in "very likely range"."""
    report: str
    document: str
    sentence: str
    start: int
    end: int
    """Index after the term's last character; the term is ``sentence[start:end]``."""
    page: int | None = None
    headings: tuple[str, ...] = ()
    label: str | None = None
    """Number of the paragraph, for example ``A.1.3``; None if it has none."""
    paragraph_id: str | None = None


def extract_terms(documents: Iterable[Document], report: str | None = None) -> list[CertaintyTerm]:
    """Return the terms of documents in reading order, except in footnotes and explanations of the vocabulary.

    ``report`` overrides the report names that the documents state.
    """
    certainty_terms: list[CertaintyTerm] = []
    for document in documents:
        name = identify_report(document, report).name or document.report or document.title
        for block_index, block in enumerate(document.blocks):
            for sentence_index, sentence in enumerate(split_report_sentences(block.text)):
                if block.footnote or explains_terms(sentence):
                    continue
                terms: list[tuple[int, int, TermKind, str]] = [
                    (term.start, term.end, "likelihood", term.term) for term in find_likelihoods(sentence)
                ]
                for tag in find_tags(sentence):
                    start, end = tag.span_with_brackets if tag.levels else (tag.start, tag.end)
                    terms += [(start, end, "evidence", tag.evidence)] if tag.evidence else []
                    terms += [(start, end, "agreement", tag.agreement)] if tag.agreement else []
                certainty_terms += [
                    CertaintyTerm(
                        id=f"{document.id}-{block_index}.{sentence_index}.{term_index}",
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
                        label=find_paragraph_label(block.text),
                        paragraph_id=block.paragraph_id,
                    )
                    for term_index, (start, end, kind, term) in enumerate(sorted(terms))
                ]
    return certainty_terms


def term_table(terms: Sequence[CertaintyTerm]) -> Table:
    """Return the number of occurrences of each term in each report."""
    counts = Counter((occurrence.kind, occurrence.term, occurrence.report) for occurrence in terms)
    reports = list(dict.fromkeys(occurrence.report for occurrence in terms))
    rows = []
    for kind in get_args(TermKind):
        for term in _TERMS[kind]:
            report_counts = [counts[kind, term, report] for report in reports]
            if any(report_counts):
                rows.append([kind, term, *map(str, report_counts), str(sum(report_counts))])
    n_ranges = sum(occurrence.names_range for occurrence in terms)
    note = f"{n_ranges} of the terms of likelihood name a range (“very likely range”)." if n_ranges else ""
    return Table.of(
        f"{len(terms)} other terms", ["kind", "term", *reports, "all reports"], rows, note=note, left_columns=2
    )


def summary_table(statements: Sequence[Statement]) -> Table:
    """Return the number of statements by report and level; duplicates are counted in a separate column."""
    counts = Counter((statement.report, statement.tag) for statement in statements if statement.duplicate_of is None)
    duplicate_counts = Counter(statement.report for statement in statements if statement.duplicate_of is not None)
    reports = list(dict.fromkeys(statement.report for statement in statements))
    has_untagged = any(statement.tag is None for statement in statements)
    levels = [*LEVELS, *([None] if has_untagged else [])]
    rows = [
        [report, *(str(counts[report, level]) for level in levels), str(duplicate_counts[report])] for report in reports
    ]
    if len(reports) > 1:
        sums = [sum(counts[report, level] for report in reports) for level in levels]
        rows.append(["all", *map(str, sums), str(sum(duplicate_counts.values()))])
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
    """Return a self-contained HTML page of all statements with level, page, sentence and context.

    The page can be read without its script, which only filters. All text is escaped.
    """
    counts = Counter(statement.tag for statement in statements)
    groups = [
        (location, list(group))
        for location, group in groupby(statements, key=lambda s: (s.report, s.document, s.headings))
    ]
    return render_page(
        "confidence_review.html.j2",
        groups=groups,
        total=len(statements),
        levels=[(tag, counts[tag]) for tag in (*LEVELS, None) if counts[tag]],
        terms=Counter(
            f"{term.term} {term.kind}" if term.kind != "likelihood" else term.term for term in terms
        ).most_common(),
        shares={tag: rank / (len(LEVELS) - 1) for rank, tag in enumerate(LEVELS)},
    )
