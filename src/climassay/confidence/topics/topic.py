"""Topics of statements: their records, their file, and tables."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from climassay.confidence.settings import TopicSettings
from climassay.confidence.statement import Statement
from climassay.errors import InputError
from climassay.io import describe_error, describe_first_problem, read_text, write_file
from climassay.reporting import Table

OUTSIDE = -1
"""Topic number of outliers, which have no topic."""
NameSource = Literal["hand", "model", "words", "earlier"]


@dataclass(frozen=True, slots=True)
class Topic:
    """Group of statements on one subject."""

    number: int
    """Number of the topic, from 0 for the largest."""
    name: str
    words: tuple[str, ...]
    """Words that describe the topic, most typical first."""
    size: int
    """Number of tagged statements."""
    outliers: int
    """Number of tagged statements that were assigned to the topic although they are outside every cluster."""
    clusters: int
    examples: tuple[str, ...]
    """Ids of the statements nearest to the topic's centre."""
    named_by: NameSource = "words"
    """Source of the name. ``earlier``: proposed in an earlier run and still valid."""
    report: str | None = None
    """Report that contains at least 90% of the topic's statements; None if there is no such report or only one report.
    Such a topic may reflect the report's wording rather than a subject."""


@dataclass(frozen=True, slots=True)
class AssignedStatement:
    """Statement with its topic."""

    id: str
    topic: int
    """Number of the statement's topic, or :data:`OUTSIDE`."""
    outlier: bool = False
    x: float | None = None
    """Coordinate on the map of all tagged statements; None for untagged statements, which the map does not show."""
    y: float | None = None


@dataclass(frozen=True)
class TopicModel:
    """Topics and the statements assigned to them."""

    topics: tuple[Topic, ...]
    statements: tuple[AssignedStatement, ...]
    """Statements with their topics: all tagged statements except duplicates, and untagged statements if they were
    included."""
    clusters: int
    outliers: int
    """Number of tagged statements outside every cluster, whether or not they were assigned to a topic."""
    encoder: str
    """Fingerprint of the encoder."""
    settings: TopicSettings = field(default_factory=TopicSettings)

    @cached_property
    def by_id(self) -> Mapping[str, AssignedStatement]:
        """Statements by id."""
        return {statement.id: statement for statement in self.statements}

    def topic_of(self, statement: str) -> int | None:
        """Return the number of a statement's topic; None if the statement is unknown."""
        assigned_statement = self.by_id.get(statement)
        return None if assigned_statement is None else assigned_statement.topic

    def name(self, number: int) -> str:
        """Return a topic's name; "no topic" for :data:`OUTSIDE`."""
        return "no topic" if number == OUTSIDE else self.topics[number].name

    def counts(self, statements: Iterable[str]) -> Counter[int]:
        """Count statements by topic, from their ids; unknown ids are ignored."""
        return Counter(
            assigned_statement.topic
            for statement in statements
            if (assigned_statement := self.by_id.get(statement)) is not None
        )


_MODEL = TypeAdapter(TopicModel)


def write_topics(model: TopicModel, path: Path) -> None:
    """Write topics as JSON, atomically.

    Raises:
        InputError: The file cannot be written.
    """
    write_file(path, _MODEL.dump_json(model) + b"\n")


def read_topics(path: Path) -> TopicModel:
    """Read topics from a file that :func:`write_topics` wrote.

    Raises:
        InputError: The file is missing or damaged, or has other contents.
    """
    try:
        model = _MODEL.validate_json(read_text(path))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {describe_error(error)}.") from None
    except ValidationError as error:
        raise InputError(
            f"{path} is not a file of topics, or damaged: {describe_first_problem(error)}. Create it with climassay "
            "confidence topics."
        ) from None
    if any(not OUTSIDE <= statement.topic < len(model.topics) for statement in model.statements):
        raise InputError(f"{path} is damaged (a statement has a topic that does not exist): create it again.")
    return model


_SOURCES = {"hand": "by hand", "model": "model", "words": "its words", "earlier": "earlier run"}


def topic_table(model: TopicModel) -> Table:
    """Return a table of topics with size and words."""
    rows = [
        (
            topic.name,
            ", ".join(topic.words),
            _SOURCES[topic.named_by],
            str(topic.size),
            str(topic.outliers),
            str(topic.clusters),
            topic.report or "",
        )
        for topic in model.topics
    ]
    n_tagged = sum(statement.x is not None for statement in model.statements)
    outlier_rule = "got the nearest topic" if model.settings.outliers == "assign" else "have no topic"
    note = (
        f"{n_tagged} tagged statements in {model.clusters} clusters, joined to {len(model.topics)} topics. "
        f"{model.outliers} of them ({model.outliers / max(1, n_tagged):.0%}) were outliers, which {outlier_rule}."
    )
    if any(topic.report for topic in model.topics):
        note += (
            " Only in: nine in ten of its statements are that report's, so that it may be a subject that no other "
            "report has, or one report's way of writing."
        )
    headings = ["topic", "words", "named by", "statements", "outliers", "clusters", "only in"]
    return Table.of("Topics", headings, rows, note=note, left_columns=3)


def report_table(model: TopicModel, statements: Sequence[Statement]) -> Table:
    """Return the number of tagged statements by topic and report."""
    reports, counts = count_by_report(model, statements)
    numbers = [*range(len(model.topics)), *([OUTSIDE] if any(row == OUTSIDE for row, _ in counts) else [])]
    rows = [
        (
            model.name(number),
            *(str(counts[number, report]) for report in reports),
            str(sum(counts[number, report] for report in reports)),
        )
        for number in numbers
    ]
    sums = [sum(counts[number, report] for number in numbers) for report in reports]
    rows.append(("all", *map(str, sums), str(sum(sums))))
    note = "Tagged statements; a repeated statement counts in the report where it occurs first."
    return Table.of("Topics by report", ["topic", *reports, "all"], rows, note=note, strong=[len(rows) - 1])


def count_by_report(
    model: TopicModel, statements: Sequence[Statement]
) -> tuple[tuple[str, ...], Counter[tuple[int, str]]]:
    """Return the sorted names of the reports, and the number of tagged statements per (topic, report)."""
    counts: Counter[tuple[int, str]] = Counter()
    for statement in statements:
        topic = model.topic_of(statement.id) if statement.tag is not None else None
        if topic is not None:
            counts[topic, statement.report] += 1
    return tuple(sorted({report for _, report in counts})), counts
