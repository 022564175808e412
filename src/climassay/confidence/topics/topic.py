"""Topics of statements: the records, their file, and tables of them."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from climassay.confidence.statement import Statement
from climassay.errors import InputError
from climassay.io import parse_json, read_text, write_file
from climassay.reporting import Table

OUTSIDE = -1
"""Number of no topic: statements that were left as outliers."""
OutlierRule = Literal["assign", "leave"]
Reduction = Literal["embeddings", "words"]
NameSource = Literal["hand", "model", "words", "earlier"]
_FORMAT = "climassay topics 1"


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """Everything that decides which topics are found."""

    topics: int = 30
    """Topics wanted; fewer where the statements have fewer clusters."""
    seed: int = 0
    """Seed of UMAP, which all chance lies in."""
    least: int = 10
    """Statements of the smallest cluster before clusters are joined."""
    outliers: OutlierRule = "assign"
    """``assign`` gives statements outside every cluster to the nearest one, ``leave`` to no topic."""
    reduction: Reduction = "embeddings"
    """What clusters are joined by: their mean vectors, or their words (c-TF-IDF)."""
    neighbours: int = 15
    components: int = 5
    """Dimensions that clusters are looked for in."""
    words: int = 10
    """Words of a topic, unigrams and bigrams."""
    diversity: float = 0.2
    """Diversity of maximal marginal relevance: 0 takes the most typical words, 1 the most different ones."""


@dataclass(frozen=True, slots=True)
class Topic:
    """What a group of statements is about."""

    number: int
    """From 0, the largest first."""
    name: str
    words: tuple[str, ...]
    """Most typical first."""
    size: int
    """Tagged statements of it."""
    outliers: int
    """Those of them that lay outside every cluster and were given to the nearest."""
    clusters: int
    examples: tuple[str, ...]
    """Ids of the statements nearest its middle."""
    named_by: NameSource = "words"
    """Who gave the name; ``earlier``: a proposal of an earlier run that still fits."""
    report: str | None = None
    """The report that nine in ten of its statements come from, where there are several: its subject is that report's,
    or only its wording."""


@dataclass(frozen=True, slots=True)
class AssignedStatement:
    """Where a statement belongs."""

    id: str
    topic: int
    """Number of its topic, or :data:`OUTSIDE`."""
    outlier: bool = False
    x: float | None = None
    """On the map of all tagged statements; None for those that were placed afterwards."""
    y: float | None = None


@dataclass(frozen=True)
class TopicModel:
    """All topics of a file of statements."""

    topics: tuple[Topic, ...]
    statements: tuple[AssignedStatement, ...]
    """Tagged ones that are not duplicates, and untagged ones, each with its topic."""
    clusters: int
    outliers: int
    """Tagged statements outside every cluster, whether or not they were assigned."""
    encoder: str
    """Its fingerprint."""
    settings: TopicSettings = field(default_factory=TopicSettings)

    @cached_property
    def by_id(self) -> Mapping[str, AssignedStatement]:
        """Statements by their ids."""
        return {one.id: one for one in self.statements}

    def topic_of(self, statement: str) -> int | None:
        """Number of a statement's topic; None for one that the topics do not know."""
        placed = self.by_id.get(statement)
        return None if placed is None else placed.topic

    def name(self, number: int) -> str:
        """A topic's name; that of no topic for :data:`OUTSIDE`."""
        return "no topic" if number == OUTSIDE else self.topics[number].name

    def counts(self, statements: Iterable[str]) -> Counter[int]:
        """How many of some statements each topic has; unknown ones are not counted."""
        return Counter(placed.topic for one in statements if (placed := self.by_id.get(one)) is not None)


def write_topics(model: TopicModel, path: Path) -> None:
    """Write topics as JSON; a reader never sees half of the file.

    Raises:
        InputError: The file cannot be written.
    """
    data = {"format": _FORMAT, **asdict(model)}
    data["statements"] = [[one.id, one.topic, int(one.outlier), one.x, one.y] for one in model.statements]
    write_file(path, (json.dumps(data, ensure_ascii=False, indent=1) + "\n").encode())


def read_topics(path: Path) -> TopicModel:
    """The topics that :func:`write_topics` wrote.

    Raises:
        InputError: The file is missing or damaged, or is another file.
    """
    try:
        data = parse_json(read_text(path))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None
    except ValueError:
        raise InputError(f"{path} is not a JSON file.") from None
    if not isinstance(data, dict) or data.get("format") != _FORMAT:
        raise InputError(f"{path} is not a file of topics: make one with climassay confidence topics.")
    try:
        lists = ("words", "examples")
        model = TopicModel(
            topics=tuple(Topic(**{**row, **{name: tuple(row[name]) for name in lists}}) for row in data["topics"]),
            statements=tuple(
                AssignedStatement(str(id), topic, bool(outlier), x, y)
                for id, topic, outlier, x, y in data["statements"]
            ),
            clusters=data["clusters"],
            outliers=data["outliers"],
            encoder=data["encoder"],
            settings=TopicSettings(**data["settings"]),
        )
        if any(not OUTSIDE <= one.topic < len(model.topics) for one in model.statements):
            raise ValueError("a statement has a topic that does not exist")
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} is damaged ({error}): create it again with climassay confidence topics.") from None
    return model


_SOURCES = {"hand": "by hand", "model": "model", "words": "its words", "earlier": "earlier run"}


def topic_table(model: TopicModel) -> Table:
    """Every topic with its size and words."""
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
    tagged = sum(one.x is not None for one in model.statements)
    what = "were given to the nearest topic" if model.settings.outliers == "assign" else "belong to no topic"
    note = (
        f"{tagged} tagged statements in {model.clusters} clusters, joined to {len(model.topics)} topics. "
        f"{model.outliers} of them ({model.outliers / max(1, tagged):.0%}) lay outside every cluster and {what}."
    )
    if any(topic.report for topic in model.topics):
        note += (
            " Only in: nine in ten of its statements are that report's, so that it may be a subject that no other "
            "report has, or one report's way of writing."
        )
    headings = ["topic", "words", "named by", "statements", "outliers", "clusters", "only in"]
    return Table.of("Topics", headings, rows, note=note, left=3)


def report_table(model: TopicModel, statements: Sequence[Statement]) -> Table:
    """Tagged statements by topic and report."""
    reports, counts = counts_by_report(model, statements)
    numbers = [*range(len(model.topics)), *([OUTSIDE] if any(row == OUTSIDE for row, _ in counts) else [])]
    rows = [
        (
            model.name(number),
            *(str(counts[number, one]) for one in reports),
            str(sum(counts[number, o] for o in reports)),
        )
        for number in numbers
    ]
    sums = [sum(counts[number, one] for number in numbers) for one in reports]
    rows.append(("all", *map(str, sums), str(sum(sums))))
    note = "Tagged statements; one that is repeated counts where it stands first."
    return Table.of("Topics by report", ["topic", *reports, "all"], rows, note=note, strong=[len(rows) - 1])


def counts_by_report(
    model: TopicModel, statements: Sequence[Statement]
) -> tuple[tuple[str, ...], Counter[tuple[int, str]]]:
    """Reports in order, and tagged statements by topic and report."""
    counts: Counter[tuple[int, str]] = Counter()
    for one in statements:
        topic = model.topic_of(one.id) if one.tag is not None else None
        if topic is not None:
            counts[topic, one.report] += 1
    return tuple(sorted({report for _, report in counts})), counts
