"""Debates as coroutines: generators that yield requests and are sent the answers.

A step yields a tuple of :data:`Request` and is sent the answers in the same order; its return value is its result.
:func:`gather` advances several steps together. The steps of many debates run concurrently in a
:class:`~climassay.factcheck.debate.scheduler.DebateScheduler`.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar

from climassay.corpus.documents import Passage
from climassay.models.contract import Completion, GenerationRequest, Usage

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TextRequest:
    """Request to continue a chat; the answer is a :class:`Completion`."""

    model: str
    """Name of the model."""
    model_request: GenerationRequest


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """Request for a search in collections; the answer is a tuple of :class:`FoundPassage`, best first."""

    collections: tuple[str, ...]
    query: str
    passages: int
    """Maximum number of passages in the answer."""
    excerpt_words: int = 0
    """Maximum number of words per passage; the sentences nearest to the query are selected, and 0 keeps whole
    passages."""
    rerank: bool = False
    """Whether to retrieve four times as many passages as needed and rerank them by the similarity of their best
    sentences to the query."""
    latest_only: bool = False
    """Whether to leave out documents that have a later edition in the collection."""
    min_cosine: float | None = None
    """Minimum cosine similarity of a relevant passage; None for the threshold measured for the encoder."""


@dataclass(frozen=True, slots=True)
class EntailmentRequest:
    """Request for the probability that a premise entails a statement; the answer is None if it failed."""

    premise: str
    statement: str


RELEVANT, RELATED, UNRELATED = 2, 1, 0
"""Grades of a passage: relevant to the claim, only related to its subject, or unrelated."""


@dataclass(frozen=True, slots=True)
class FoundPassage:
    """Passage found by a search."""

    passage: Passage
    collection: str
    cosine: float | None
    excerpt: str
    """Text for the model's prompt."""
    grade: int | None = None
    """:data:`RELEVANT`, :data:`RELATED` or :data:`UNRELATED`; None if not graded."""

    @property
    def key(self) -> tuple[str, str]:
        """Pair of collection name and passage id."""
        return self.collection, self.passage.id


Request = TextRequest | SearchRequest | EntailmentRequest
"""Request of a debate, sent to a model or a search."""
Steps = Generator[tuple[Request, ...], list[Any], T]
"""Coroutine that yields requests, receives their answers and returns a result of type ``T``."""


def request_text(model: str, request: GenerationRequest) -> Steps[Completion]:
    """Request one completion from a model."""
    [answer] = yield (TextRequest(model, request),)
    assert isinstance(answer, Completion)
    return answer


def gather(steps: Sequence[Steps[T]]) -> Steps[list[T]]:
    """Advance several steps together, combining their requests.

    Returns:
        The results of the steps, in order.
    """
    results: dict[int, T] = {}
    answers: dict[int, list[Any] | None] = dict.fromkeys(range(len(steps)))
    while True:
        pending_requests: dict[int, tuple[Request, ...]] = {}
        for index, step_answers in answers.items():
            try:
                pending_requests[index] = (
                    next(steps[index]) if step_answers is None else steps[index].send(step_answers)
                )
            except StopIteration as end:
                results[index] = end.value
        if not pending_requests:
            return [results[index] for index in range(len(steps))]
        flat_answers = iter((yield tuple(request for requests in pending_requests.values() for request in requests)))
        answers = {index: list(islice(flat_answers, len(requests))) for index, requests in pending_requests.items()}


@dataclass(slots=True)
class Ledger:
    """Running totals of the requests of a debate."""

    usage: Usage = field(default_factory=Usage)
    failures: int = 0
    """Number of failed requests."""


def count_usage(steps: Steps[T], ledger: Ledger) -> Steps[T]:
    """Run steps and add the token usage and failures of their requests to a ledger."""
    try:
        requests = next(steps)
        while True:
            answers = yield requests
            for answer in answers:
                if isinstance(answer, Completion):
                    ledger.failures += answer.error is not None
                    ledger.usage += answer.usage
                else:
                    ledger.failures += answer is None
            requests = steps.send(answers)
    except StopIteration as end:
        result: T = end.value
        return result
