"""Registry of metrics, and the tools that compute them for a batch of answers."""

import math
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
"""References of one or more items: a string or several strings per item. A single string is a single item."""
Candidates = str | Sequence[str]
"""Candidates of one or more items: a string per item. A single string is a single item."""
Pair = tuple[tuple[str, ...], str]


def answer_pairs(references: References, candidates: Candidates) -> list[Pair]:
    """Pair the references of each item with its candidate; candidates may be empty.

    Raises:
        InputError: The numbers of references and candidates differ, there are no items, or an item has no reference or
            an empty one.
    """
    reference_list = [references] if isinstance(references, str) else list(references)
    candidate_list = [candidates] if isinstance(candidates, str) else list(candidates)
    if len(reference_list) != len(candidate_list):
        raise InputError(f"{len(reference_list)} references cannot be compared with {len(candidate_list)} candidates.")
    if not reference_list:
        raise InputError("A metric needs at least one reference and candidate.")
    pairs = [
        ((reference,) if isinstance(reference, str) else tuple(reference), candidate)
        for reference, candidate in zip(reference_list, candidate_list, strict=True)
    ]
    for position, (item_references, _) in enumerate(pairs, start=1):
        if not item_references or not all(reference.strip() for reference in item_references):
            raise InputError(f"Item {position} has an empty reference: nothing can be compared with it.")
    return pairs


Scores = dict[str, float]
RequiredField = Literal["", "entailment", "facts", "judge"]


class AnswerItem(NamedTuple):
    """Question with its reference answer and an answer to score."""

    question: str
    """Question, or cloze statement with its gap."""
    reference: str
    answer: str


class LongAnswer(NamedTuple):
    """Long answer to assess, with its question and rubric."""

    question: str
    answer: str
    rubric: tuple[Criterion, ...] = ()
    audience: str = ""
    reference: str = ""


@dataclass(frozen=True, slots=True)
class Metric:
    """Definition of a metric of answers: its name, its function and its tests."""

    name: str
    label: str
    kinds: tuple[str, ...] = ()
    """Kinds of questions whose answers the metric scores, in addition to kinds whose type lists it in ``metrics``."""
    score: "ScoreBatch | None" = None
    """Function that returns a score for each answer of a batch, where 1 is best; None for an answer without a score.

    Metrics without a function are computed elsewhere, such as accuracy from choices and judged accuracy from
    judgements.
    """
    binary: bool = False
    """Whether scores are 0 or 1. Binary metrics have Wilson intervals and exact McNemar tests; others have bootstrap
    intervals and sign-flip tests."""
    external: bool = False
    """Whether the metric belongs to another framework. Such a metric counts as binary if all its scores are 0 or 1."""
    published: str = ""
    """Name of the column in the published tables of ClimaQA; empty for other metrics."""
    short: str = ""
    """Short heading for tables with many columns; by default the label."""
    tested: bool = False
    """Whether experiments test differences in the metric by default. Each additional test reduces the power of all
    tests."""
    needs: RequiredField = ""
    """Field of :class:`Scorer` that the metric needs; the metric is left out if the field is None."""
    source: "Callable[[Scorer], str]" = lambda _: ""
    """Function that returns the name of the model or implementation that computes the metric, for the notes of
    tables."""
    pooled: Callable[[list[str], list[str]], float] | None = None
    """Function that scores all answers together, given references and answers; None if that score is the mean."""

    @property
    def percent(self) -> bool:
        """Whether tables show the metric in per cent, as they do for published binary metrics."""
        return self.binary and bool(self.published)

    @property
    def is_lower_better(self) -> bool:
        """Whether lower scores are better, as for perplexity; only metrics of other frameworks can have this."""
        return self.external and LOWER in self.name

    def scores(self, kind: str) -> bool:
        """Return whether the metric scores answers to questions of a kind."""
        return self.external or kind in self.kinds or (kind in TYPES and self.name in TYPES[kind].metrics)

    @property
    def has_levels(self) -> bool:
        """Whether the metric scores a kind of questions with levels of difficulty."""
        return any(question_type.has_levels for kind, question_type in TYPES.items() if self.scores(kind))

    @property
    def scores_prose(self) -> bool:
        """Whether the metric scores a kind of questions that is answered in sentences."""
        return any(question_type.is_prose for kind, question_type in TYPES.items() if self.scores(kind))


LOWER = "↓"
"""Suffix of the name of an external metric for which lower is better."""


class Metrics(Registry[Metric]):
    """Metrics of climassay and of installed packages by name; a name with a comma is a metric of another framework.

    lm-evaluation-harness names a score by metric and filter, such as ``exact_match,strict``, and Inspect by metric and
    scorer, such as ``accuracy,choice``. Because every task may define metrics, these are created when they are looked
    up, and never listed.
    """

    def __getitem__(self, name: str) -> Metric:
        metric, comma, filter_name = name.partition(",")
        if not comma:
            return super().__getitem__(name)
        label = metric if filter_name == "none" else f"{metric} ({filter_name})"
        return Metric(name, label, binary=True, external=True, tested=True)

    def ordered(self, names: Iterable[str]) -> list[Metric]:
        """Return the metrics with these names in the order of the tables' columns, other frameworks' metrics last."""
        distinct_names = dict.fromkeys(names)
        own_names = [name for name in self if name in distinct_names]
        return [self[name] for name in (*own_names, *(name for name in distinct_names if "," in name))]


METRICS = Metrics(
    "metric",
    "climassay.metrics",
    [
        f"climassay.metrics.{module}"
        for module in ("registry", "overlap", "factual_accuracy", "facts", "cloze", "long_answers")
    ],
)
"""All metrics by name, in the order in which tables list them."""

ScoreBatch = Callable[["Batch"], Sequence[float | None]]


def metric(name: str, label: str, *, kinds: Sequence[str] = (), **fields: Any) -> Callable[[ScoreBatch], ScoreBatch]:
    """Return a decorator that registers a function as a metric; ``fields`` are further fields of :class:`Metric`.

    Example:
        >>> @metric("brevity", "brevity", kinds=["freeform"])
        ... def brevity(batch):
        ...     return [min(1.0, len(item.reference) / len(item.answer)) for item in batch.items]
    """

    def add(function: ScoreBatch) -> ScoreBatch:
        METRICS.add(name, Metric(name, label, tuple(kinds), function, **fields), function.__module__)
        return function

    return add


def metrics_for(kind: str) -> list[Metric]:
    """Return the metrics that score questions of a kind, in the order in which tables list them."""
    return [metric for metric in METRICS.values() if metric.scores(kind)]


class FactComparer(Protocol):
    """Interface of a metric that compares the statements of answers and references (:mod:`climassay.metrics.facts`)."""

    def score(self, items: Sequence[AnswerItem]) -> Sequence[Any]:
        """Return the scores of each item, in order; None for an item with a statement that could not be scored."""


@dataclass(frozen=True, slots=True)
class Scorer:
    """Models and settings for scoring generated answers; a metric is left out if a field that it needs is None."""

    encoder: Encoder | str = BUNDLED_ENCODER
    """Encoder of phrase similarity."""
    bert_model: str = BUNDLED_ENCODER
    """Model of BERTScore (:func:`climassay.metrics.bert_score`)."""
    entailment: "Entailment | None" = None
    """Entailment scorer of factual accuracy."""
    facts: "FactComparer | None" = None
    """Metric that compares answers with references statement by statement."""
    window: int | None = 4
    """Number of words on each side of the gap that phrase similarity compares; None for the whole statement."""
    temperature: float = 5.0
    """Temperature of factual accuracy, which smooths its scores."""
    judge: Generator | None = None
    """Strong model that judges answers, given the question."""
    names: Sequence[str] = ()
    """Names of the metrics to compute; all metrics if empty."""

    def metrics(self, kind: str) -> list[Metric]:
        """Return the metrics for questions of a kind that this scorer can compute."""
        return [metric for metric in metrics_for(kind) if self.can_compute(metric)]

    def can_compute(self, metric: Metric) -> bool:
        """Return whether :attr:`names` requests a metric, and the model that the metric needs is set."""
        is_named = not self.names or metric.name in self.names
        return is_named and (not metric.needs or getattr(self, metric.needs) is not None)

    @property
    def sources(self) -> Mapping[str, str]:
        """Model or implementation of each metric that can be computed, by metric."""
        metrics = [metric for metric in METRICS.values() if self.can_compute(metric)]
        return {metric.name: source for metric in metrics if (source := metric.source(self))}

    def score(self, kind: str, items: Sequence[AnswerItem]) -> list[Scores]:
        """Return the scores of each answer by metric, except for metrics that a judge computes.

        An empty answer, such as that of a failed request, scores 0 in every metric. If a metric could not be computed
        for an answer, it is missing in the answer's scores.
        """
        metrics = [metric for metric in self.metrics(kind) if metric.score is not None]
        results: list[Scores] = [{metric.name: 0.0 for metric in metrics} if not item.answer else {} for item in items]
        indices = [index for index, item in enumerate(items) if item.answer]
        batch = Batch([items[index] for index in indices], self)
        for metric in metrics if indices else ():
            for index, value in zip(indices, batch.scores(metric), strict=True):
                if value is not None:
                    results[index][metric.name] = value
        return results


class Batch:
    """Batch of answers, none of them empty, that are scored together."""

    def __init__(self, items: Sequence[AnswerItem], scorer: Scorer) -> None:
        self.items = tuple(items)
        self.scorer = scorer
        self._cache: dict[str, Any] = {}

    @property
    def references(self) -> list[str]:
        """Reference answers, in order."""
        return [item.reference for item in self.items]

    @property
    def answers(self) -> list[str]:
        """Answers to score, in order."""
        return [item.answer for item in self.items]

    def compute_once(self, name: str, compute: Callable[[], Any]) -> Any:
        """Return the result of ``compute``, called only once per ``name``, so that metrics can share results."""
        if name not in self._cache:
            self._cache[name] = compute()
        return self._cache[name]

    def scores(self, metric: Metric) -> Sequence[float | None]:
        """Return the score of each answer in a metric; None for NaN, so that the answer counts as not scored.

        Raises:
            InputError: The metric returned a score for more or fewer answers than there are.
        """
        assert metric.score is not None
        scores = metric.score(self)
        if len(scores) != len(self.items):
            raise InputError(f"The metric {metric.name!r} gave {len(scores)} scores for {len(self.items)} answers.")
        return [None if score is None or math.isnan(score) else score for score in scores]


METRICS.add(
    "accuracy",
    Metric("accuracy", "accuracy", binary=True, published="accuracy", short="MCQ", tested=True),
    __name__,
)
