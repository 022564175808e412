"""Registry of metrics, and the tools that compute them for a batch of answers."""

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
"""One or several references per item; a single string is the reference of a single item."""
Candidates = str | Sequence[str]
"""One candidate per item; a single string is a single item."""
Pair = tuple[tuple[str, ...], str]


def answer_pairs(references: References, candidates: Candidates) -> list[Pair]:
    """Pair references with candidates, item by item; a candidate may be empty.

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
    for number, (item_references, _) in enumerate(pairs, start=1):
        if not item_references or not all(reference.strip() for reference in item_references):
            raise InputError(f"Item {number} has an empty reference: nothing can be compared with it.")
    return pairs


Scores = dict[str, float]
Needed = Literal["", "entailment", "facts", "judge"]


class Answered(NamedTuple):
    """A question with its reference answer and an answer to score."""

    question: str
    """Question, or cloze statement with its gap."""
    reference: str
    answer: str


class LongAnswer(NamedTuple):
    """A question with its rubric and a long answer to assess."""

    question: str
    answer: str
    rubric: tuple[Criterion, ...] = ()
    audience: str = ""
    reference: str = ""


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of answers: its function, its label and its statistics."""

    name: str
    label: str
    kinds: tuple[str, ...] = ()
    """Kinds of questions whose answers it scores, in addition to those that name it in their type's ``metrics``."""
    score: "Callable[[Batch], Sequence[float | None]] | None" = None
    """Function that scores each answer of a batch, 1 being best, None for an answer that cannot be scored.

    Metrics without a function are computed elsewhere: accuracy from choices, judged accuracy from judgements.
    """
    binary: bool = False
    """True for scores of 0 and 1, with Wilson intervals and exact McNemar tests; else bootstrap and sign flips."""
    external: bool = False
    """True for metrics of another framework, which are binary if all scores are 0 or 1."""
    published: str = ""
    """Name of the column in the published tables; empty for metrics of our own."""
    short: str = ""
    """Heading in tables of many columns; by default the label."""
    tested: bool = False
    """True if experiments test differences in it by default; every test reduces the power of the others."""
    needs: Needed = ""
    """Tool of :class:`Scorer` without which the metric is left out."""
    source: "Callable[[Scorer], str]" = lambda _: ""
    """Returns the model or implementation that computes it, for the notes of tables."""
    pooled: Callable[[list[str], list[str]], float] | None = None
    """Scores all answers together, from references and answers, if that differs from the mean."""

    @property
    def percent(self) -> bool:
        """Whether tables show the metric in per cent: True for published binary metrics."""
        return self.binary and bool(self.published)

    @property
    def lower(self) -> bool:
        """Whether lower is better, for example for a perplexity; only other frameworks have such metrics."""
        return self.external and LOWER in self.name

    def scores(self, kind: str) -> bool:
        """Return whether the metric scores answers to a kind of question."""
        return self.external or kind in self.kinds or (kind in TYPES and self.name in TYPES[kind].metrics)

    @property
    def has_levels(self) -> bool:
        """Whether any kind of question that the metric scores has levels of difficulty."""
        return any(question_type.has_levels for kind, question_type in TYPES.items() if self.scores(kind))

    @property
    def scores_prose(self) -> bool:
        """Whether the metric scores answers in sentences."""
        return any(question_type.is_prose for kind, question_type in TYPES.items() if self.scores(kind))


LOWER = "↓"
"""Suffix of an external metric's name if lower is better."""


class Metrics(Registry[Metric]):
    """Metrics of climassay and of installed packages; a name with a comma belongs to another framework.

    lm-evaluation-harness names a score by metric and filter, ``exact_match,strict``; Inspect by metric and scorer,
    ``accuracy,choice``. Every task may bring metrics of its own, so that they are made on look-up and not listed.
    """

    def __getitem__(self, name: str) -> Metric:
        metric, comma, filter_name = name.partition(",")
        if not comma:
            return super().__getitem__(name)
        label = metric if filter_name == "none" else f"{metric} ({filter_name})"
        return Metric(name, label, binary=True, external=True, tested=True)

    def ordered(self, names: Iterable[str]) -> list[Metric]:
        """Return the metrics of these names in the order of tables, external ones last."""
        unique = dict.fromkeys(names)
        internal = [name for name in self if name in unique]
        return [self[name] for name in (*internal, *(name for name in unique if "," in name))]


METRICS = Metrics(
    "metric",
    "climassay.metrics",
    [
        f"climassay.metrics.{module}"
        for module in ("registry", "overlap", "factual_accuracy", "facts", "cloze", "long_answers")
    ],
)
"""Metrics in the order of tables; all are means over questions."""

Function = Callable[["Batch"], Sequence[float | None]]


def metric(name: str, label: str, *, kinds: Sequence[str] = (), **fields: Any) -> Callable[[Function], Function]:
    """Return a decorator that registers a function as a metric, with further fields of :class:`Metric`.

    Example:
        >>> @metric("brevity", "brevity", kinds=["freeform"])
        ... def brevity(batch):
        ...     return [min(1.0, len(item.reference) / len(item.answer)) for item in batch.items]
    """

    def add(function: Function) -> Function:
        METRICS.add(name, Metric(name, label, tuple(kinds), function, **fields), function.__module__)
        return function

    return add


def metrics_for(kind: str) -> list[Metric]:
    """Return the metrics of a kind of question, in the order of tables."""
    return [metric for metric in METRICS.values() if metric.scores(kind)]


class FactComparer(Protocol):
    """Compares the statements of answers with those of references; see :mod:`climassay.metrics.facts`."""

    def score(self, items: Sequence[Answered]) -> Sequence[Any]:
        """Return the scores of each item, in order; None if a statement could not be judged."""


@dataclass(frozen=True, slots=True)
class Scorer:
    """Tools with which metrics score generated answers; a metric whose tool is None is left out."""

    encoder: Encoder | str = BUNDLED_ENCODER
    """Encoder of phrase similarity and relevance."""
    bert_model: str = BUNDLED_ENCODER
    """Model of BERTScore, see :func:`climassay.metrics.bert_score`."""
    entailment: "Entailment | None" = None
    """Entailment scorer of factual accuracy."""
    facts: "FactComparer | None" = None
    """Comparer of statements."""
    window: int | None = 4
    """Number of words on each side of the gap; None for the complete statement."""
    temperature: float = 5.0
    """Temperature of factual accuracy."""
    judge: Generator | None = None
    """Strong model that sees the question."""
    names: Sequence[str] = ()
    """Names of metrics to compute; empty for all."""

    def metrics(self, kind: str) -> list[Metric]:
        """Return the computable metrics of a kind of question."""
        return [metric for metric in metrics_for(kind) if self.can_compute(metric)]

    def can_compute(self, metric: Metric) -> bool:
        """Return whether a metric is among :attr:`names` (or these are empty) and its tool is not None."""
        is_named = not self.names or metric.name in self.names
        return is_named and (not metric.needs or getattr(self, metric.needs) is not None)

    @property
    def sources(self) -> Mapping[str, str]:
        """Model or implementation of each computable metric, for the notes of tables."""
        computable = [metric for metric in METRICS.values() if self.can_compute(metric)]
        return {metric.name: source for metric in computable if (source := metric.source(self))}

    def score(self, kind: str, items: Sequence[Answered]) -> list[Scores]:
        """Return the scores of every answer by metric, without those of a judge.

        An empty answer, such as that of a failed request, has 0 in every metric. If a metric's own model call fails for
        an answer, its scores lack that metric.
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
    """Non-empty answers that are scored together."""

    def __init__(self, items: Sequence[Answered], scorer: Scorer) -> None:
        self.items = tuple(items)
        self.scorer = scorer
        self._cache: dict[str, Any] = {}

    @property
    def references(self) -> list[str]:
        """Reference answers."""
        return [item.reference for item in self.items]

    @property
    def answers(self) -> list[str]:
        """Answers."""
        return [item.answer for item in self.items]

    def once(self, name: str, compute: Callable[[], Any]) -> Any:
        """Return a result that several metrics share: compute it on the first call and cache it."""
        if name not in self._cache:
            self._cache[name] = compute()
        return self._cache[name]

    def scores(self, metric: Metric) -> Sequence[float | None]:
        """Return the scores of the answers in a metric.

        Raises:
            InputError: The metric returned another number of scores.
        """
        assert metric.score is not None
        scores = metric.score(self)
        if len(scores) != len(self.items):
            raise InputError(f"The metric {metric.name!r} gave {len(scores)} scores for {len(self.items)} answers.")
        return scores


METRICS.add(
    "accuracy",
    Metric("accuracy", "accuracy", binary=True, published="accuracy", short="MCQ", tested=True),
    __name__,
)
