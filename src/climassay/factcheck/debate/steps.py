"""Debates as coroutines: many go on side by side, and what they ask at the same time is asked together.

A step is a generator that yields what it needs to know (a tuple of :data:`Ask`) and is sent the answers, in order. What
it returns is its result. :func:`gather` lets several steps advance as one; the debates of a run are advanced, each at
its own pace, by the :mod:`~climassay.factcheck.debate.scheduler`.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar

from climassay.corpus.documents import Passage
from climassay.models.contract import Completion, GenerationRequest, OptionRequest, OptionScores, Usage

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AskText:
    """Continue a chat; answered by a :class:`Completion`."""

    model: str
    """Name of the model."""
    request: GenerationRequest


@dataclass(frozen=True, slots=True)
class AskOptions:
    """Weigh options; answered by :class:`OptionScores`."""

    model: str
    request: OptionRequest
    blank: bool = False
    """A content-free prompt, the same for every claim: asked once a run."""


@dataclass(frozen=True, slots=True)
class AskPassages:
    """Search collections; answered by a tuple of :class:`Found`, best first."""

    collections: tuple[str, ...]
    query: str
    passages: int
    """At most so many."""
    excerpt_words: int = 0
    """Cut each passage to its sentences nearest to the query, of so many words in all; 0 keeps it whole."""
    rerank: bool = False
    """Take the best of four times as many, by their sentences nearest to the query."""
    latest_only: bool = False
    """Leave out documents of which the collection has a later edition."""
    min_cosine: float | None = None
    """Similarity below which a passage is not relevant; None takes the threshold measured for the encoder."""


BEARS, ON_SUBJECT, ELSEWHERE = 2, 1, 0
"""Grades of a passage: it bears on the claim, is only on its subject, or is about something else."""


@dataclass(frozen=True, slots=True)
class Found:
    """A passage that a search found."""

    passage: Passage
    collection: str
    cosine: float | None
    excerpt: str
    """What is put before the model."""
    grade: int | None = None
    """:data:`BEARS`, :data:`ON_SUBJECT` or :data:`ELSEWHERE`; None: it was not graded."""


@dataclass(frozen=True, slots=True)
class AskHead:
    """Judge a claim by a trained verdict head; answered by a tuple of probabilities, or None where that failed."""

    claim: str
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AskEntailment:
    """Does a premise entail a statement? Answered by a probability, or None where that failed."""

    premise: str
    statement: str


Ask = AskText | AskOptions | AskPassages | AskHead | AskEntailment
Steps = Generator[tuple[Ask, ...], list[Any], T]


def ask_text(model: str, request: GenerationRequest) -> Steps[Completion]:
    """One completion."""
    [answer] = yield (AskText(model, request),)
    assert isinstance(answer, Completion)
    return answer


def ask_options(asks: Sequence[AskOptions]) -> Steps[list[OptionScores]]:
    """Scores of several requests."""
    if not asks:
        return []
    return list((yield tuple(asks)))


def gather(steps: Sequence[Steps[T]]) -> Steps[list[T]]:
    """Advance several steps as one; what they ask at the same time is asked in one go.

    Returns:
        Their results, in order.
    """
    results: dict[int, T] = {}
    answers: dict[int, list[Any] | None] = dict.fromkeys(range(len(steps)))
    while True:
        waiting: dict[int, tuple[Ask, ...]] = {}
        for place, given in answers.items():
            try:
                waiting[place] = next(steps[place]) if given is None else steps[place].send(given)
            except StopIteration as end:
                results[place] = end.value
        if not waiting:
            return [results[place] for place in range(len(steps))]
        flat = iter((yield tuple(ask for asks in waiting.values() for ask in asks)))
        answers = {place: list(islice(flat, len(asks))) for place, asks in waiting.items()}


@dataclass(slots=True)
class Ledger:
    """What a debate has used so far."""

    usage: Usage = field(default_factory=Usage)
    failures: int = 0


def counted(steps: Steps[T], ledger: Ledger) -> Steps[T]:
    """The same steps, with usage and failures of what they ask added up.

    Tokens of content-free prompts are not counted: they are asked once a run, so that they belong to no debate.
    """
    answers: list[Any] = []
    try:
        asks = next(steps)
        while True:
            answers = yield asks
            for ask, answer in zip(asks, answers, strict=True):
                if not isinstance(answer, (Completion, OptionScores)):
                    ledger.failures += answer is None
                    continue
                ledger.failures += answer.error is not None
                if not (isinstance(ask, AskOptions) and ask.blank):
                    ledger.usage += answer.usage
            asks = steps.send(answers)
    except StopIteration as end:
        result: T = end.value
        return result
