"""Topics of statements: the records, and their file."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from climassay.errors import InputError
from climassay.io import cannot_write, parse_json, read_text

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
    """Of UMAP, which all chance lies in."""
    least: int = 10
    """Statements of the smallest cluster before clusters are joined."""
    outliers: OutlierRule = "assign"
    """``assign`` gives statements outside every cluster to the nearest one, ``leave`` to no topic."""
    reduction: Reduction = "embeddings"
    """What clusters are joined by: their mean vectors, or their words (c-TF-IDF)."""
    neighbours: int = 15
    """Of a point in UMAP's graph."""
    components: int = 5
    """Dimensions that clusters are looked for in."""
    words: int = 10
    """Words of a topic, unigrams and bigrams."""
    diversity: float = 0.2
    """Of maximal marginal relevance: 0 takes the most typical words, 1 the most different ones."""


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
    """Clusters that were joined to it."""
    examples: tuple[str, ...]
    """Ids of the statements nearest its middle."""
    named_by: NameSource = "words"
    """Who gave the name; ``earlier``: a proposal of an earlier run that still fits."""
    report: str | None = None
    """The report that nine in ten of its statements come from, where there are several: its subject is that report's,
    or only its wording."""


@dataclass(frozen=True, slots=True)
class PlacedStatement:
    """Where a statement belongs."""

    id: str
    topic: int
    """Number of its topic, or :data:`OUTSIDE`."""
    outlier: bool = False
    """It lay outside every cluster."""
    x: float | None = None
    """On the map of all tagged statements; None for those that were placed afterwards."""
    y: float | None = None


@dataclass(frozen=True)
class TopicModel:
    """All topics of a file of statements."""

    topics: tuple[Topic, ...]
    statements: tuple[PlacedStatement, ...]
    """Tagged ones that are no duplicates, and untagged ones, each with its topic."""
    clusters: int
    """Found before any were joined."""
    outliers: int
    """Tagged statements outside every cluster, whether or not they were assigned."""
    encoder: str
    """Its fingerprint."""
    settings: TopicSettings = field(default_factory=TopicSettings)

    @cached_property
    def by_id(self) -> Mapping[str, PlacedStatement]:
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
    """Write topics as JSON, through a temporary file.

    Raises:
        InputError: The file cannot be written.
    """
    data = {"format": _FORMAT, **asdict(model)}
    data["statements"] = [[one.id, one.topic, int(one.outlier), one.x, one.y] for one in model.statements]
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise cannot_write(path, error) from None


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
        raise InputError(f"{path} is no JSON file.") from None
    if not isinstance(data, dict) or data.get("format") != _FORMAT:
        raise InputError(f"{path} is no file of topics: make one with climassay confidence topics.")
    try:
        model = _model(data)
        if any(not OUTSIDE <= one.topic < len(model.topics) for one in model.statements):
            raise ValueError("a statement has a topic that does not exist")
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} is damaged ({error}): make it anew with climassay confidence topics.") from None
    return model


def _model(data: Mapping[str, Any]) -> TopicModel:
    lists = ("words", "examples")
    return TopicModel(
        tuple(Topic(**{**row, **{name: tuple(row[name]) for name in lists}}) for row in data["topics"]),
        tuple(PlacedStatement(str(id), topic, bool(outlier), x, y) for id, topic, outlier, x, y in data["statements"]),
        data["clusters"],
        data["outliers"],
        data["encoder"],
        TopicSettings(**data["settings"]),
    )
