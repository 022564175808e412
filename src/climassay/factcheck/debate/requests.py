"""Debates as coroutines: generators that yield requests and are sent the answers.

A generator yields a tuple of :data:`Request` and is sent the answers in the same order; its return value is its result.
:func:`gather` advances several generators together. Many debates run concurrently in a
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
RequestGenerator = Generator[tuple[Request, ...], list[Any], T]
"""Coroutine that yields requests, receives their answers and returns a result of type ``T``."""


def request_text(model: str, request: GenerationRequest) -> RequestGenerator[Completion]:
    """Request one completion from a model."""
    [answer] = yield (TextRequest(model, request),)
    assert isinstance(answer, Completion)
    return answer


def gather(generators: Sequence[RequestGenerator[T]]) -> RequestGenerator[list[T]]:
    """Advance several generators together, combining their requests, and return their results in order."""
    results: dict[int, T] = {}
    answers: dict[int, list[Any] | None] = dict.fromkeys(range(len(generators)))
    while True:
        pending_requests: dict[int, tuple[Request, ...]] = {}
        for index, own_answers in answers.items():
            try:
                pending_requests[index] = send_answers(generators[index], own_answers)
            except StopIteration as end:
                results[index] = end.value
        if not pending_requests:
            return [results[index] for index in range(len(generators))]
        flat_answers = iter((yield tuple(request for requests in pending_requests.values() for request in requests)))
        answers = {index: list(islice(flat_answers, len(requests))) for index, requests in pending_requests.items()}


def send_answers(generator: RequestGenerator[T], answers: list[Any] | None) -> tuple[Request, ...]:
    """Send a generator its answers, or start it if ``answers`` is None, and return its next requests.

    Raises:
        StopIteration: The generator has ended; the exception's ``value`` is its result.
    """
    return next(generator) if answers is None else generator.send(answers)


@dataclass(slots=True)
class UsageTotals:
    """Token usage and failures of the requests of a debate so far."""

    usage: Usage = field(default_factory=Usage)
    failures: int = 0
    """Number of failed requests."""


def count_usage(generator: RequestGenerator[T], totals: UsageTotals) -> RequestGenerator[T]:
    """Run a generator and add the token usage and failures of its requests to ``totals``."""
    try:
        requests = next(generator)
        while True:
            answers = yield requests
            for answer in answers:
                if isinstance(answer, Completion):
                    totals.failures += answer.error is not None
                    totals.usage += answer.usage
                else:
                    totals.failures += answer is None
            requests = generator.send(answers)
    except StopIteration as end:
        result: T = end.value
        return result
