"""The metrics of answers, each under its name, and what computes them for a batch of answers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from climassay.errors import InputError
from climassay.models.contract import Encoder, Generator
from climassay.models.encoders import BUNDLED_ENCODER
from climassay.questions import TYPES, Criterion
from climassay.registry import Registry

if TYPE_CHECKING:
    from climassay.metrics.entailment import Entailment


References = str | Sequence[str | Sequence[str]]
"""One reference per item, or several; a single string is the reference of a single item."""
Candidates = str | Sequence[str]
"""One candidate per item; a single string is a single item."""
Pair = tuple[tuple[str, ...], str]


def answer_pairs(references: References, candidates: Candidates) -> list[Pair]:
    """References and candidates, item by item: of several references the best match counts; a candidate may be empty.

    Raises:
        InputError: Their numbers differ, there are none, or an item has no reference or an empty one.
    """
    wanted = [references] if isinstance(references, str) else list(references)
    given = [candidates] if isinstance(candidates, str) else list(candidates)
    if len(wanted) != len(given):
        raise InputError(f"{len(wanted)} references cannot be compared with {len(given)} candidates.")
    if not wanted:
        raise InputError("A metric needs at least one reference and candidate.")
    pairs = [
        ((each,) if isinstance(each, str) else tuple(each), candidate)
        for each, candidate in zip(wanted, given, strict=True)
    ]
    for number, (several, _) in enumerate(pairs, start=1):
        if not several or not all(reference.strip() for reference in several):
            raise InputError(f"Item {number} has an empty reference: nothing can be compared with it.")
    return pairs


Scores = dict[str, float]
Needed = Literal["", "entailment", "facts", "judge"]


class Answered(NamedTuple):
    """A question with its reference answer and an answer to be judged."""

    question: str
    """The question, or a cloze statement with its gap."""
    reference: str
    answer: str


class LongAnswer(NamedTuple):
    """A question with its rubric and an answer at length to be assessed."""

    question: str
    answer: str
    rubric: tuple[Criterion, ...] = ()
    audience: str = ""
    reference: str = ""


@dataclass(frozen=True, slots=True)
class Metric:
    """How answers are scored, shown and compared in one respect."""

    name: str
    label: str
    kinds: tuple[str, ...] = ()
    """Kinds of questions whose answers it scores."""
    score: "Callable[[Batch], Sequence[float | None]] | None" = None
    """Score of each answer of a batch, 1 being best; None in the place of an answer that it could not score. A metric
    without this function is computed where the answers are read (accuracy) or judged (accuracy as judged)."""
    binary: bool = False
    """Right or wrong: Wilson intervals, exact McNemar tests. Else: bootstrap, sign flips."""
    external: bool = False
    """Computed by another framework: shown as that framework shows it, and binary where all scores are 0 or 1."""
    published: str = ""
    """Name of the column in the published tables; empty for our additions."""
    short: str = ""
    """Heading in tables of many columns; by default the label."""
    tested: bool = False
    """Whether cells of an experiment are compared in it unless asked otherwise; every test costs the others power."""
    needs: Needed = ""
    """Tool without which it is left out."""
    source: "Callable[[Scorer], str]" = lambda _: ""
    """Model or implementation that computes it, for the notes of tables."""
    pooled: Callable[[list[str], list[str]], float] | None = None
    """Score of all answers taken together, from references and answers, where that is not the mean."""

    @property
    def percent(self) -> bool:
        """Whether tables show it as per cent: right or wrong as published. All others, from 0 to 1, share tables."""
        return self.binary and bool(self.published)

    @property
    def lower(self) -> bool:
        """Whether a lower value is better, as for a perplexity; only other frameworks have such metrics."""
        return self.external and LOWER in self.name

    def scores(self, kind: str) -> bool:
        """Whether it scores answers to a kind of question: one that it names, or whose type names it."""
        return self.external or kind in self.kinds or (kind in TYPES and self.name in TYPES[kind].metrics)


LOWER = "↓"
"""Stands behind the name of an external metric of which lower values are better."""


class Metrics(Registry[Metric]):
    """climassay's metrics and those of packages; a name with a comma is one of another framework.

    lm-evaluation-harness calls a score by metric and filter, ``exact_match,strict``, and Inspect's are called by metric
    and scorer, ``accuracy,choice``. Every task may bring metrics of its own, so
    they are made when they are looked up, and appear in no list.
    """

    def __getitem__(self, name: str) -> Metric:
        metric, comma, chosen = name.partition(",")
        if not comma:
            return super().__getitem__(name)
        label = metric if chosen == "none" else f"{metric} ({chosen})"
        return Metric(name, label, binary=True, external=True, tested=True)

    def ordered(self, names: Iterable[str]) -> list[Metric]:
        """The metrics of these names in the order of tables, external ones last."""
        given = dict.fromkeys(names)
        return [self[name] for name in (*(one for one in self if one in given), *(one for one in given if "," in one))]


METRICS = Metrics(
    "metric",
    "climassay.metrics",
    [
        f"climassay.metrics.{name}"
        for name in (
            "registry",
            "overlap",
            "factual_accuracy",
            "facts",
            "cloze",
            "long_answers",
        )
    ],
)
"""Every metric, in the order of tables; all are means over questions."""

Function = Callable[["Batch"], Sequence[float | None]]


def metric(name: str, label: str, *, kinds: Sequence[str], **more: Any) -> Callable[[Function], Function]:
    """Add a function as a metric; ``more`` are fields of :class:`Metric`.

    Example:
        >>> @metric("brevity", "brevity", kinds=["freeform"])
        ... def brevity(batch):
        ...     return [min(1.0, len(one.reference) / len(one.answer)) for one in batch.items]
    """

    def add(function: Function) -> Function:
        METRICS.add(name, Metric(name, label, tuple(kinds), function, **more), function.__module__)
        return function

    return add


def metrics_for(kind: str) -> list[Metric]:
    """Metrics of the answers to a kind of question, in the order of tables."""
    return [one for one in METRICS.values() if one.scores(kind)]


class FactComparer(Protocol):
    """Holds each statement of answer and reference against the other side; see :mod:`climassay.metrics.facts`."""

    def score(self, items: Sequence[Answered]) -> Sequence[Any]:
        """Scores of each item, in order; None where a statement could not be judged."""


@dataclass(frozen=True, slots=True)
class Scorer:
    """The tools that score answers in words; a metric whose tool is not there is left out."""

    encoder: Encoder | str = BUNDLED_ENCODER
    """For phrase similarity and relevance."""
    bert_model: str = BUNDLED_ENCODER
    """For BERTScore, see :func:`climassay.metrics.bert_score`."""
    entailment: "Entailment | None" = None
    """For factual accuracy."""
    facts: "FactComparer | None" = None
    """Compares statement by statement."""
    window: int | None = 4
    """Words on each side of the gap; None takes the whole statement."""
    temperature: float = 5.0
    """Smoothing of factual accuracy."""
    judge: Generator | None = None
    """A strong model that sees the question."""
    names: Sequence[str] = ()
    """Metrics that are wanted; all where none is named."""

    def metrics(self, kind: str) -> list[Metric]:
        """Metrics of a kind of question that are wanted and for which the tools are there."""
        return [one for one in metrics_for(kind) if self.can(one)]

    def can(self, one: Metric) -> bool:
        """Whether a metric is wanted and the tool that it needs is there."""
        wanted = not self.names or one.name in self.names
        return wanted and (not one.needs or getattr(self, one.needs) is not None)

    @property
    def sources(self) -> Mapping[str, str]:
        """What computes each metric, for the notes of tables."""
        return {one.name: source for one in METRICS.values() if self.can(one) and (source := one.source(self))}

    def score(self, kind: str, items: Sequence[Answered]) -> list[Scores]:
        """Scores of every answer, by the names of :data:`METRICS`; what a judge says is computed apart.

        An empty answer, such as that of a failed request, has 0 in every metric; a metric whose own model call failed
        is missing.
        """
        wanted = [one for one in self.metrics(kind) if one.score is not None]
        results: list[Scores] = [{one.name: 0.0 for one in wanted} if not item.answer else {} for item in items]
        places = [place for place, item in enumerate(items) if item.answer]
        batch = Batch([items[place] for place in places], self)
        for one in wanted if places else ():
            for place, value in zip(places, batch.scores(one), strict=True):
                if value is not None:
                    results[place][one.name] = value
        return results


class Batch:
    """Answers that are scored together, none of them empty."""

    def __init__(self, items: Sequence[Answered], scorer: Scorer) -> None:
        self.items = tuple(items)
        self.scorer = scorer
        self._known: dict[str, Any] = {}

    @property
    def references(self) -> list[str]:
        """The reference answers."""
        return [item.reference for item in self.items]

    @property
    def answers(self) -> list[str]:
        """The answers."""
        return [item.answer for item in self.items]

    def once(self, name: str, compute: Callable[[], Any]) -> Any:
        """What several metrics share, computed for the first of them."""
        if name not in self._known:
            self._known[name] = compute()
        return self._known[name]

    def scores(self, one: Metric) -> Sequence[float | None]:
        """Scores of the answers in a metric.

        Raises:
            InputError: The metric gave another number of scores.
        """
        assert one.score is not None
        result = one.score(self)
        if len(result) != len(self.items):
            raise InputError(f"The metric {one.name!r} gave {len(result)} scores for {len(self.items)} answers.")
        return result


METRICS.add(
    "accuracy",
    Metric("accuracy", "accuracy", ("mcq",), binary=True, published="accuracy", short="MCQ", tested=True),
    __name__,
)
