"""How many statements of each level a set of reports has."""

from collections import Counter
from collections.abc import Sequence

from climassay.confidence.statement import Statement
from climassay.confidence.vocabulary import TAGS
from climassay.reporting.tables import Table

_TOTAL = "all"


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
        rows.append([_TOTAL, *map(str, sums), str(sum(repeated.values()))])
    headings = ["report", *(level or "no level" for level in levels), "repeated"]
    return Table.of(
        f"{len(statements)} statements",
        headings,
        rows,
        note=(
            "Repeated: statements of the same words and level as an earlier one, and further levels of sentences whose "
            "division is not sure; they are in no other column."
        ),
    )
