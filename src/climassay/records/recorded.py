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
    identify_generation,
    identify_scoring,
    make_storable_answer,
)
from climassay.records.store import Records, Run, StoredAnswer

MAX_WAIT_SECONDS = 120.0
"""Maximum time to wait for a request that another run has in flight before sending it again, in seconds."""
MIN_POLL_SECONDS, MAX_POLL_SECONDS = 0.02, 0.5
"""Shortest and longest interval, in seconds, between checks of other runs' requests. The interval doubles with each
check."""

A = TypeVar("A", Completion, OptionScores)
R = TypeVar("R", GenerationRequest, OptionRequest)


@dataclass(frozen=True, slots=True)
class RequestCounts:
    """Numbers of distinct requests to a recorded model."""

    hits: int = 0
    """Number of requests answered from the records."""
    sent: int = 0
    """Number of requests sent to the model, including failed ones."""
    failed: int = 0
    """Number of sent requests that failed; a later run sends these again."""
    usage: Usage = field(default_factory=Usage)
    """Tokens and cost of the sent requests."""

    def __add__(self, other: "RequestCounts") -> "RequestCounts":
        hits, sent, failed = self.hits + other.hits, self.sent + other.sent, self.failed + other.failed
        return RequestCounts(hits, sent, failed, self.usage + other.usage)


class RecordedModel:
    """Generator and option scorer that stores every answer, and sends only requests without a stored answer.

    An answer is returned, or passed to ``on_result``, only after the transaction that stores it was committed. Thus
    every answer in use is stored even if the process is killed. Equal requests in one call are sent once. If another
    living run has a request in flight, its answer is awaited. Failures are stored as well, but the next run sends their
    requests again. A stored answer has the usage of the original request.
    """

    def __init__(self, model: Generator, store: Records, run: Run, use_cache: bool = True) -> None:
        self.wrapped = model
        """The wrapped model, for access to its context window and weights."""
        self._store = store
        self._run = run
        self._use_cache = use_cache
        self.tally = RequestCounts()
        """Counts of all requests so far."""
        self._tally_lock = threading.Lock()

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
        """Floating-point format of the wrapped model's weights; empty if unknown."""
        return number_format(self.wrapped)

    def render(self, messages: Sequence[Message], assistant_prefix: str = "") -> str:
        """Return the prompt as the wrapped model receives it."""
        return self.wrapped.render(messages, assistant_prefix)

    def generate(
        self, requests: Sequence[GenerationRequest], *, on_result: CompletionCallback | None = None
    ) -> list[Completion]:
        """Generate texts, using the records; see :meth:`climassay.models.contract.Generator.generate`.

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
        """Generate texts with a preview of partial texts, using the records.

        Stored answers, requests that another run has in flight, and models that do not stream have no preview.
        See :meth:`climassay.models.contract.StreamingGenerator.generate_stream`.

        Raises:
            RecordsError: An answer could not be stored.
        """
        if not isinstance(self.wrapped, StreamingGenerator):
            return self.generate(requests, on_result=on_result)
        return self._generate(requests, on_result, self.wrapped.generate_stream, on_text)

    def option_logprobs(
        self, requests: Sequence[OptionRequest], *, on_result: ScoresCallback | None = None
    ) -> list[OptionScores]:
        """Score options, using the records; see :meth:`climassay.models.contract.OptionScorer.option_logprobs`.

        Raises:
            ModelError: The wrapped model cannot score options.
            RecordsError: An answer could not be stored.
        """
        if not isinstance(self.wrapped, OptionScorer):
            raise ModelError(f"The model {self.name} only generates text and cannot score options: use another one.")
        identities = [identify_scoring(self.wrapped, request) for request in requests]
        call: _Call[OptionScores] = _Call(self._store, self._run, identities, on_result, self._count)
        return self._answer_requests(call, requests, self.wrapped.option_logprobs)

    def close(self) -> None:
        """Close the wrapped model, but not the records."""
        self.wrapped.close()

    def _generate(
        self,
        requests: Sequence[GenerationRequest],
        on_result: CompletionCallback | None,
        request_answers: Callable[..., list[Completion]],
        on_text: TextCallback | None = None,
    ) -> list[Completion]:
        identities = [identify_generation(self.wrapped, request) for request in requests]
        call: _Call[Completion] = _Call(self._store, self._run, identities, on_result, self._count, on_text)
        return self._answer_requests(call, requests, request_answers)

    def _answer_requests(
        self, call: "_Call[A]", requests: Sequence[R], request_answers: Callable[..., list[A]]
    ) -> list[A]:
        if self._use_cache:
            call.deliver_stored()
        sent_indices: set[int] = set()
        while missing_indices := [index for index in call.find_missing() if index not in sent_indices]:
            marked_indices = call.mark(missing_indices) if self._use_cache else missing_indices
            sent_indices.update(marked_indices)
            if marked_indices:
                self._send(call, marked_indices, requests, request_answers)
            call.await_other_runs(sent_indices)
        return call.answers()

    def _send(
        self, call: "_Call[A]", indices: Sequence[int], requests: Sequence[R], request_answers: Callable[..., list[A]]
    ) -> None:
        def store(position: int, answer: A) -> None:
            self._count(sent=1, failed=int(answer.error is not None), usage=answer.usage)
            call.store(indices[position], answer)

        try:
            with call.wait_until_delivered():
                request_answers(
                    [requests[index] for index in indices], on_result=store, **call.preview_options(indices)
                )
        except BaseException:
            call.unmark(indices)
            raise

    def _count(self, hits: int = 0, sent: int = 0, failed: int = 0, usage: Usage | None = None) -> None:
        with self._tally_lock:
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
    _ignore_others: bool = False
    _committed: queue.SimpleQueue[tuple[int, A]] = field(default_factory=queue.SimpleQueue)

    def __post_init__(self) -> None:
        self._indices_by_key: dict[bytes, list[int]] = {}
        for index, identity in enumerate(self._identities):
            self._indices_by_key.setdefault(identity.key, []).append(index)

    def deliver_stored(self) -> None:
        """Look up the stored answers to the call's requests, and deliver them to the caller."""
        self._deliver_stored_answers(self._store.look_up(list(self._indices_by_key)))

    def mark(self, missing_indices: Sequence[int]) -> list[int]:
        """Mark the missing requests as in flight, except those that another run has in flight or has just answered.

        Returns:
            Indices of the requests to be sent.
        """
        indices_by_key = {self._identities[index].key: index for index in missing_indices}
        marked_keys, is_alone = self._run.in_flight.mark(list(indices_by_key), ignore_others=self._ignore_others)
        if not is_alone:
            stored_answers = self._store.look_up(marked_keys)
            self._deliver_stored_answers(stored_answers)
            self._run.in_flight.unmark(list(stored_answers))
        return [indices_by_key[key] for key in marked_keys if indices_by_key[key] not in self._answers]

    def unmark(self, indices: Sequence[int]) -> None:
        """Delete the in-flight marks of unanswered requests, so that other runs can send them."""
        with suppress(RecordsError):
            self._run.in_flight.unmark([self._identities[index].key for index in indices if index not in self._answers])

    def await_other_runs(self, sent_indices: set[int]) -> None:
        """Wait for the answers to requests that other runs have in flight, and deliver them to the caller.

        The method returns when all requests are answered, when an unanswered request is not in flight in any run, or
        after :data:`MAX_WAIT_SECONDS` without a new answer. After that, :meth:`mark` marks the unanswered requests for
        this run.
        """
        last_answer_time, interval = time.monotonic(), MIN_POLL_SECONDS
        while pending_keys := [
            self._identities[index].key for index in self.find_missing() if index not in sent_indices
        ]:
            marked_keys = self._run.in_flight.find_marks_of_others()
            unmarked_keys = [key for key in pending_keys if key not in marked_keys]
            if unmarked_keys:
                stored_answers = self._store.look_up(unmarked_keys)
                self._deliver_stored_answers(stored_answers)
                if len(stored_answers) < len(unmarked_keys):
                    return
                last_answer_time, interval = time.monotonic(), MIN_POLL_SECONDS
            elif time.monotonic() - last_answer_time > MAX_WAIT_SECONDS:
                self._ignore_others = True
                return
            else:
                time.sleep(interval)
                interval = min(2 * interval, MAX_POLL_SECONDS)

    def find_missing(self) -> list[int]:
        """Return the indices of unanswered requests, one for each distinct request."""
        return [indices[0] for indices in self._indices_by_key.values() if indices[0] not in self._answers]

    def _deliver_stored_answers(self, stored_answers: Mapping[bytes, StoredAnswer]) -> None:
        self._count_hits(len(stored_answers))
        self._run.record_reuse(answer.id for answer in stored_answers.values())
        for key, answer in stored_answers.items():
            self._deliver(self._indices_by_key[key][0], cast(A, answer.answer))

    def store(self, index: int, answer: A) -> None:
        """Queue an answer for the next transaction, and deliver all answers committed so far to the caller."""
        storable_answer = cast(A, make_storable_answer(answer))
        answered_request = AnsweredRequest(self._identities[index], storable_answer, time.time())
        self._run.writer.submit(Submission(answered_request, lambda: self._committed.put((index, storable_answer))))
        self._n_uncommitted += 1
        while self._n_uncommitted and not self._committed.empty():
            self._deliver_committed()

    def preview_options(self, sent_indices: Sequence[int]) -> dict[str, TextCallback]:
        """Return the keyword argument ``on_text`` for the sent requests; empty if no preview was requested."""
        on_text = self._on_text
        if on_text is None:
            return {}

        def forward_text(position: int, text: str) -> None:
            for index in self._indices_by_key[self._identities[sent_indices[position]].key]:
                on_text(index, text)

        return {"on_text": forward_text}

    @contextmanager
    def wait_until_delivered(self) -> Iterator[None]:
        """Wait, at the end of the block, until every answer is stored and delivered to the caller.

        If the block is interrupted, answers are stored at the end of the run but not delivered.
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
