"""A page on which a reader checks extracted statements against the words of the report."""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from climassay.confidence.extraction.terms import CertaintyTerm
from climassay.confidence.statement import Statement
from climassay.confidence.vocabulary import TAGS
from climassay.reporting import render_page


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
