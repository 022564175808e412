"""Statements as trends count them: topic, column and section of each, duplicates left out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from climassay.confidence.statement import Statement
from climassay.confidence.topics import OUTSIDE, TopicModel
from climassay.confidence.vocabulary import Tag, score
from climassay.errors import InputError

ColumnKind = Literal["cycle", "working group", "report"]
"""What scores are compared between."""


@dataclass(frozen=True, slots=True)
class Case:
    """A statement with all that trends ask of it."""

    id: str
    topic: int
    """Number of its topic; -1 for none."""
    column: str
    """Its cycle, or its working group."""
    section: tuple[str, str]
    """Document and section: statements of one section are not independent of each other."""
    tag: Tag | None
    report: str

    @property
    def score(self) -> int:
        """-2 to 2; of tagged statements only."""
        assert self.tag is not None
        return score(self.tag)


@dataclass(frozen=True, slots=True)
class Cases:
    """What is compared, and the statements for it."""

    kind: ColumnKind
    columns: tuple[str, ...]
    """In order."""
    tagged: tuple[Case, ...]
    untagged: tuple[Case, ...]
    unknown: int
    """Tagged statements that the topics do not know, and that are left out."""


def cases_of(statements: Sequence[Statement], model: TopicModel, by: ColumnKind | None = None) -> Cases:
    """Statements for trends.

    Args:
        statements: Any; duplicates and those without topic in ``model`` are left out.
        model: Topics of the same statements.
        by: What to compare; by default cycles where there are several, else working groups, else reports.

    Raises:
        InputError: No tagged statement has a topic: the files do not belong together.
    """
    counted = [one for one in statements if one.duplicate_of is None]
    kind = by or _kind(counted)
    known = [(one, topic) for one in counted if (topic := model.topic_of(one.id)) is not None]
    cases = [
        Case(one.id, topic, _column(one, kind), _section(one), one.tag, one.report)
        for one, topic in known
        if topic != OUTSIDE or one.tag is not None
    ]
    tagged = tuple(case for case in cases if case.tag is not None)
    if not tagged:
        raise InputError("No tagged statement has a topic: make the topics from this file of statements.")
    columns = tuple(sorted({case.column for case in cases}, key=_order))
    untagged = tuple(case for case in cases if case.tag is None)
    return Cases(kind, columns, tagged, untagged, sum(one.tag is not None for one in counted) - len(tagged))


def _kind(statements: Sequence[Statement]) -> ColumnKind:
    if len({one.cycle for one in statements if one.cycle}) > 1:
        return "cycle"
    return "working group" if any(one.working_group for one in statements) else "report"


def _column(statement: Statement, kind: ColumnKind) -> str:
    named = {"cycle": statement.cycle, "working group": statement.working_group, "report": statement.report}
    return named[kind] or "other"


def _section(statement: Statement) -> tuple[str, str]:
    """A numbered section or one with headings; where there is neither, the paragraph, else the statement by itself."""
    return statement.document_id, statement.group or statement.paragraph_id or statement.id


def _order(column: str) -> tuple[int, str]:
    """Working groups first, then the synthesis and special reports."""
    return (0 if column.startswith(("WG", "AR")) else 1 if column == "SYR" else 3 if column == "other" else 2, column)
