"""Model wrapper that answers requests from the records and stores every new answer before returning it."""

import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar, cast

from climassay.errors import ModelError, RecordsError
from climassay.models.contract import (
    Completion,
    CompletionCallback,
    GenerationRequest,
    Generator,
    Message,
    OptionRequest,
    OptionScorer,
    OptionScores,
    ScoresCallback,
    StreamingGenerator,
    TextCallback,
    Usage,
    number_format,
)
from climassay.records.answer_writer import Submission
from climassay.records.identity import (
    AnsweredRequest,
    Identity,
    generation_identity,
    scoring_identity,
    storable_answer,
)
from climassay.records.store import Records, Run, StoredAnswer

PATIENCE_SECONDS = 120.0
"""Seconds to wait for a request that another run has in flight before sending it again."""
MIN_POLL_SECONDS, MAX_POLL_SECONDS = 0.02, 0.5
"""Shortest and longest interval between checks of other runs' requests; it doubles with each check."""

A = TypeVar("A", Completion, OptionScores)
R = TypeVar("R", GenerationRequest, OptionRequest)


@dataclass(frozen=True, slots=True)
class RequestCounts:
    """Numbers of distinct requests that a recorded model has answered."""

    hits: int = 0
    """Number of requests answered from the records."""
    sent: int = 0
    """Number of requests sent to the model, including failed ones."""
    failed: int = 0
    """Number of sent requests that failed; a later run sends them again."""
    usage: Usage = field(default_factory=Usage)
    """Tokens and cost of the sent requests."""

    def __add__(self, other: "RequestCounts") -> "RequestCounts":
        hits, sent, failed = self.hits + other.hits, self.sent + other.sent, self.failed + other.failed
        return RequestCounts(hits, sent, failed, self.usage + other.usage)


class RecordedModel:
    """Generator and option scorer that sends only requests without a stored answer and stores every answer.

    An answer reaches the caller, as return value or through ``on_result``, only after its transaction has been
    committed, so that every answer in use is stored even if the process is killed. Equal requests of a call are sent
    once. If another living run has a request in flight, its answer is awaited. Failed requests are stored too and sent
    again by the next run. A stored answer has the usage of its original request.
    """

    def __init__(self, model: Generator, store: Records, run: Run, use_cache: bool = True) -> None:
        self.wrapped = model
        """The wrapped model, for access to its context window and weights."""
        self._store = store
        self._run = run
        self._use_cache = use_cache
        self.tally = RequestCounts()
        """Counts of all requests so far."""
        self._counting = threading.Lock()

    @property
    def name(self) -> str:
        """Name of the wrapped model."""
        return self.wrapped.name

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the wrapped model."""
        return self.wrapped.fingerprint

    @property
    def dtype(self) -> str:
        """Number format of the wrapped model; empty if unknown."""
        return number_format(self.wrapped)

    def render(self, messages: Sequence[Message], assistant_prefix: str = "") -> str:
        """Return the prompt as the wrapped model receives it."""
        return self.wrapped.render(messages, assistant_prefix)

    def generate(
        self, requests: Sequence[GenerationRequest], *, on_result: CompletionCallback | None = None
    ) -> list[Completion]:
        """Generate texts as :meth:`climassay.models.contract.Generator.generate`, using the records.

        Raises:
            RecordsError: An answer could not be stored.
        """
        return self._generate(requests, on_result, self.wrapped.generate)

    def generate_stream(
        self,
        requests: Sequence[GenerationRequest],
        *,
        on_text: TextCallback,
        on_result: CompletionCallback | None = None,
    ) -> list[Completion]:
        """Generate texts with a preview of partial answers, using the records.

        There is no preview of stored answers and of requests that another run has in flight, or if the wrapped model
        does not stream. See :meth:`climassay.models.contract.StreamingGenerator.generate_stream`.

        Raises:
            RecordsError: An answer could not be stored.
        """
        if not isinstance(self.wrapped, StreamingGenerator):
            return self.generate(requests, on_result=on_result)
        return self._generate(requests, on_result, self.wrapped.generate_stream, on_text)

    def option_logprobs(
        self, requests: Sequence[OptionRequest], *, on_result: ScoresCallback | None = None
    ) -> list[OptionScores]:
        """Score options as :meth:`climassay.models.contract.OptionScorer.option_logprobs`, using the records.

        Raises:
            ModelError: The wrapped model cannot score options.
            RecordsError: An answer could not be stored.
        """
        if not isinstance(self.wrapped, OptionScorer):
            raise ModelError(f"The model {self.name} only generates text and cannot score options: use another one.")
        identities = [scoring_identity(self.wrapped, request) for request in requests]
        call: _Call[OptionScores] = _Call(self._store, self._run, identities, on_result, self._count)
        return self._answer(call, requests, self.wrapped.option_logprobs)

    def close(self) -> None:
        """Close the wrapped model but not the records."""
        self.wrapped.close()

    def _generate(
        self,
        requests: Sequence[GenerationRequest],
        on_result: CompletionCallback | None,
        request_answers: Callable[..., list[Completion]],
        on_text: TextCallback | None = None,
    ) -> list[Completion]:
        identities = [generation_identity(self.wrapped, request) for request in requests]
        call: _Call[Completion] = _Call(self._store, self._run, identities, on_result, self._count, on_text)
        return self._answer(call, requests, request_answers)

    def _answer(self, call: "_Call[A]", requests: Sequence[R], request_answers: Callable[..., list[A]]) -> list[A]:
        if self._use_cache:
            call.deliver_stored()
        sent: set[int] = set()
        while missing := [index for index in call.missing() if index not in sent]:
            marked = call.mark(missing) if self._use_cache else missing
            sent.update(marked)
            if marked:
                self._send(call, marked, requests, request_answers)
            call.await_others(sent)
        return call.answers()

    def _send(
        self, call: "_Call[A]", indices: Sequence[int], requests: Sequence[R], request_answers: Callable[..., list[A]]
    ) -> None:
        def store(position: int, answer: A) -> None:
            self._count(sent=1, failed=int(answer.error is not None), usage=answer.usage)
            call.store(indices[position], answer)

        try:
            with call.storing():
                request_answers(
                    [requests[index] for index in indices], on_result=store, **call.preview_options(indices)
                )
        except BaseException:
            call.unmark(indices)
            raise

    def _count(self, hits: int = 0, sent: int = 0, failed: int = 0, usage: Usage | None = None) -> None:
        with self._counting:
            tally = self.tally
            self.tally = replace(
                tally,
                hits=tally.hits + hits,
                sent=tally.sent + sent,
                failed=tally.failed + failed,
                usage=tally.usage + usage if usage else tally.usage,
            )


@dataclass(eq=False)
class _Call(Generic[A]):
    """State of one call: its answers, the number of uncommitted answers, and its callbacks."""

    _store: Records
    _run: Run
    _identities: Sequence[Identity]
    _on_result: Callable[[int, A], None] | None
    _count_hits: Callable[[int], None]
    _on_text: TextCallback | None = None
    _answers: dict[int, A] = field(default_factory=dict)
    _n_uncommitted: int = 0
    _ignores_others: bool = False
    _committed: queue.SimpleQueue[tuple[int, A]] = field(default_factory=queue.SimpleQueue)

    def __post_init__(self) -> None:
        self._indices_by_key: dict[bytes, list[int]] = {}
        for index, identity in enumerate(self._identities):
            self._indices_by_key.setdefault(identity.key, []).append(index)

    def deliver_stored(self) -> None:
        """Return stored answers to the caller."""
        self._deliver_stored_answers(self._store.look_up(list(self._indices_by_key)))

    def mark(self, missing: Sequence[int]) -> list[int]:
        """Claim the missing requests that no other run has in flight or has just answered; return their indices."""
        keys = {self._identities[index].key: index for index in missing}
        marked, is_alone = self._run.in_flight.mark(list(keys), ignore_others=self._ignores_others)
        if not is_alone:
            stored = self._store.look_up(marked)
            self._deliver_stored_answers(stored)
            self._run.in_flight.unmark(list(stored))
        return [keys[key] for key in marked if keys[key] not in self._answers]

    def unmark(self, indices: Sequence[int]) -> None:
        """Delete the marks of unanswered requests, so that other runs can send them."""
        with suppress(RecordsError):
            self._run.in_flight.unmark([self._identities[index].key for index in indices if index not in self._answers])

    def await_others(self, sent: set[int]) -> None:
        """Wait for answers to requests that other runs have in flight and return them to the caller.

        Returns when all are answered, when no run has one of the unanswered requests in flight, or after
        :data:`PATIENCE_SECONDS` without a new answer; :meth:`mark` then marks the unanswered requests.
        """
        last_answer, interval = time.monotonic(), MIN_POLL_SECONDS
        while pending := [self._identities[index].key for index in self.missing() if index not in sent]:
            marked = self._run.in_flight.marked_by_others()
            unmarked = [key for key in pending if key not in marked]
            if unmarked:
                stored = self._store.look_up(unmarked)
                self._deliver_stored_answers(stored)
                if len(stored) < len(unmarked):
                    return
                last_answer, interval = time.monotonic(), MIN_POLL_SECONDS
            elif time.monotonic() - last_answer > PATIENCE_SECONDS:
                self._ignores_others = True
                return
            else:
                time.sleep(interval)
                interval = min(2 * interval, MAX_POLL_SECONDS)

    def missing(self) -> list[int]:
        """Return the indices of unanswered requests, one for each distinct request."""
        return [indices[0] for indices in self._indices_by_key.values() if indices[0] not in self._answers]

    def _deliver_stored_answers(self, stored: Mapping[bytes, StoredAnswer]) -> None:
        self._count_hits(len(stored))
        self._run.note_uses(answer.id for answer in stored.values())
        for key, answer in stored.items():
            self._deliver(self._indices_by_key[key][0], cast(A, answer.answer))

    def store(self, index: int, answer: A) -> None:
        """Queue an answer for the next transaction and return committed answers to the caller."""
        stored = cast(A, storable_answer(answer))
        answered = AnsweredRequest(self._identities[index], stored, time.time())
        self._run.writer.submit(Submission(answered, lambda: self._committed.put((index, stored))))
        self._n_uncommitted += 1
        while self._n_uncommitted and not self._committed.empty():
            self._deliver_committed()

    def preview_options(self, sent: Sequence[int]) -> dict[str, TextCallback]:
        """Return the keyword argument ``on_text`` for the sent requests; empty without a preview."""
        on_text = self._on_text
        if on_text is None:
            return {}

        def show(position: int, text: str) -> None:
            for index in self._indices_by_key[self._identities[sent[position]].key]:
                on_text(index, text)

        return {"on_text": show}

    @contextmanager
    def storing(self) -> Iterator[None]:
        """Wait at the end of the block until every answer is stored and returned to the caller.

        If the block is interrupted, answers are stored at the end of the run but not returned.
        """
        yield
        self._run.writer.set_urgent(True)
        try:
            while self._n_uncommitted:
                self._deliver_committed()
        finally:
            self._run.writer.set_urgent(False)

    def answers(self) -> list[A]:
        """Return all answers in the order of the requests.

        Raises:
            ModelError: The model did not answer a request.
        """
        n_missing = sum(index not in self._answers for index in range(len(self._identities)))
        if n_missing:
            raise ModelError(f"The model did not answer {n_missing} of {len(self._identities)} requests.")
        return [self._answers[index] for index in range(len(self._identities))]

    def _deliver_committed(self) -> None:
        index, answer = self._committed.get()
        self._n_uncommitted -= 1
        self._run.writer.check()
        self._deliver(index, answer)

    def _deliver(self, index: int, answer: A) -> None:
        for equal_index in self._indices_by_key[self._identities[index].key]:
            self._answers[equal_index] = answer
            if self._on_result is not None:
                self._on_result(equal_index, cast(Any, answer))
