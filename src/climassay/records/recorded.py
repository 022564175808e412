"""A model whose every answer is stored before anyone sees it, and asked for only once."""

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
from climassay.records.store import (
    AnsweredRequest,
    Identity,
    Records,
    Run,
    StoredAnswer,
    Submission,
    generation_identity,
    scoring_identity,
    storable_answer,
)

PATIENCE_SECONDS = 120.0
"""So long without an answer, a request that another run is asking is waited for; then it is asked here, too."""
FIRST_LOOK, LAST_LOOK = 0.02, 0.5
"""Seconds between two looks at what others are asking, growing from the first to the last."""

A = TypeVar("A", Completion, OptionScores)
R = TypeVar("R", GenerationRequest, OptionRequest)


@dataclass(frozen=True, slots=True)
class RequestCounts:
    """What a recorded model has done so far; counts distinct requests of each call."""

    hits: int = 0
    """Served from the records."""
    asked: int = 0
    """Put to the model, failed ones included."""
    failed: int = 0
    """How many of those asked ended with an error; a later run asks them again."""
    usage: Usage = field(default_factory=Usage)
    """Tokens and cost of what was asked, without what the records served."""

    def __add__(self, other: "RequestCounts") -> "RequestCounts":
        """Both together."""
        hits, asked, failed = self.hits + other.hits, self.asked + other.asked, self.failed + other.failed
        return RequestCounts(hits, asked, failed, self.usage + other.usage)


class RecordedModel:
    """A generator and option scorer that looks up first, asks only what is missing and stores before handing on.

    An answer reaches the caller (as a return value or through ``on_result``) only after the transaction that holds it
    has been committed; so whatever was used can be looked up, even if the process is killed at that moment. Equal
    requests of one call are asked once, and the answer to what another living run is asking is waited for. Failed
    requests are stored too, and are asked again by the next run. A stored answer carries the usage of its asking.
    """

    def __init__(self, model: Generator, store: Records, run: Run, use_cache: bool = True) -> None:
        self.wrapped = model
        """The model that is asked, for what is not a question to it: its window, its weights."""
        self._store = store
        self._run = run
        self._use_cache = use_cache
        self.tally = RequestCounts()
        """Hits, requests asked, failures and usage so far."""
        self._counting = threading.Lock()

    @property
    def name(self) -> str:
        """The wrapped model's name."""
        return self.wrapped.name

    @property
    def fingerprint(self) -> str:
        """The wrapped model's fingerprint."""
        return self.wrapped.fingerprint

    @property
    def dtype(self) -> str:
        """The wrapped model's number format; empty where it is not known."""
        return number_format(self.wrapped)

    def render(self, messages: Sequence[Message], assistant_prefix: str = "") -> str:
        """The prompt as the wrapped model receives it."""
        return self.wrapped.render(messages, assistant_prefix)

    def generate(
        self, requests: Sequence[GenerationRequest], *, on_result: CompletionCallback | None = None
    ) -> list[Completion]:
        """As :meth:`climassay.models.contract.Generator.generate`, with records.

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
        """As :meth:`climassay.models.contract.StreamingGenerator.generate_stream`, with records.

        What is stored and counted is the same as without a preview. There is no preview of answers that are recorded
        already or requested by another run, nor where the wrapped model does not stream.

        Raises:
            RecordsError: An answer could not be stored.
        """
        if not isinstance(self.wrapped, StreamingGenerator):
            return self.generate(requests, on_result=on_result)
        return self._generate(requests, on_result, self.wrapped.generate_stream, on_text)

    def option_logprobs(
        self, requests: Sequence[OptionRequest], *, on_result: ScoresCallback | None = None
    ) -> list[OptionScores]:
        """As :meth:`climassay.models.contract.OptionScorer.option_logprobs`, with records.

        Raises:
            ModelError: The wrapped model cannot weigh options.
            RecordsError: An answer could not be stored.
        """
        if not isinstance(self.wrapped, OptionScorer):
            raise ModelError(f"The model {self.name} only generates text and cannot score options: use another one.")
        identities = [scoring_identity(self.wrapped, request) for request in requests]
        call: _Call[OptionScores] = _Call(self._store, self._run, identities, on_result, self._count)
        return self._answer(call, requests, self.wrapped.option_logprobs)

    def close(self) -> None:
        """Close the wrapped model; the records stay open."""
        self.wrapped.close()

    def _generate(
        self,
        requests: Sequence[GenerationRequest],
        on_result: CompletionCallback | None,
        ask: Callable[..., list[Completion]],
        on_text: TextCallback | None = None,
    ) -> list[Completion]:
        identities = [generation_identity(self.wrapped, request) for request in requests]
        call: _Call[Completion] = _Call(self._store, self._run, identities, on_result, self._count, on_text)
        return self._answer(call, requests, ask)

    def _answer(self, call: "_Call[A]", requests: Sequence[R], ask: Callable[..., list[A]]) -> list[A]:
        if self._use_cache:
            call.serve_stored()
        asked: set[int] = set()
        while missing := [index for index in call.missing() if index not in asked]:
            mine = call.mark(missing) if self._use_cache else missing
            asked.update(mine)
            if mine:
                self._ask(call, mine, requests, ask)
            call.serve_others(asked)
        return call.answers()

    def _ask(self, call: "_Call[A]", places: Sequence[int], requests: Sequence[R], ask: Callable[..., list[A]]) -> None:
        def store(position: int, answer: A) -> None:
            self._count(asked=1, failed=int(answer.error is not None), usage=answer.usage)
            call.store(places[position], answer)

        try:
            with call.storing():
                ask([requests[place] for place in places], on_result=store, **call.previewing(places))
        except BaseException:
            call.unmark(places)
            raise

    def _count(self, hits: int = 0, asked: int = 0, failed: int = 0, usage: Usage | None = None) -> None:
        with self._counting:
            tally = self.tally
            self.tally = replace(
                tally,
                hits=tally.hits + hits,
                asked=tally.asked + asked,
                failed=tally.failed + failed,
                usage=tally.usage + usage if usage else tally.usage,
            )


@dataclass(eq=False)
class _Call(Generic[A]):
    """The state of one call: which answers are known, which wait for their commit, and which callback to call."""

    _store: Records
    _run: Run
    _identities: Sequence[Identity]
    _on_result: Callable[[int, A], None] | None
    _count_hits: Callable[[int], None]
    _on_text: TextCallback | None = None
    _known: dict[int, A] = field(default_factory=dict)
    _waiting: int = 0
    _impatient: bool = False
    _committed: queue.SimpleQueue[tuple[int, A]] = field(default_factory=queue.SimpleQueue)

    def __post_init__(self) -> None:
        self._places: dict[bytes, list[int]] = {}
        for index, identity in enumerate(self._identities):
            self._places.setdefault(identity.key, []).append(index)

    def serve_stored(self) -> None:
        """Hand on what the records have."""
        self._serve(self._store.look_up(list(self._places)))

    def mark(self, missing: Sequence[int]) -> list[int]:
        """Those of the missing requests that are ours to ask: no other run is asking them or has just been answered."""
        keys = {self._identities[index].key: index for index in missing}
        taken, alone = self._run.in_flight.take(list(keys), all_of_them=self._impatient)
        if not alone:
            answered = self._store.look_up(taken)
            self._serve(answered)
            self._run.in_flight.drop(list(answered))
        return [keys[key] for key in taken if keys[key] not in self._known]

    def unmark(self, asked: Sequence[int]) -> None:
        """Let others ask what was to be asked and was not answered."""
        with suppress(RecordsError):
            self._run.in_flight.drop([self._identities[index].key for index in asked if index not in self._known])

    def serve_others(self, asked: set[int]) -> None:
        """Hand on what other runs are asking, as they store it.

        It ends when all is served, when a request is left that nobody asks any more, or after :data:`PATIENCE_SECONDS`
        without an answer of the others; then :meth:`mark` takes what is left.
        """
        since, pause = time.monotonic(), FIRST_LOOK
        while waiting := [self._identities[index].key for index in self.missing() if index not in asked]:
            held = self._run.in_flight.held_by_others()
            free = [key for key in waiting if key not in held]
            if free:
                result = self._store.look_up(free)
                self._serve(result)
                if len(result) < len(free):
                    return
                since, pause = time.monotonic(), FIRST_LOOK
            elif time.monotonic() - since > PATIENCE_SECONDS:
                self._impatient = True
                return
            else:
                time.sleep(pause)
                pause = min(2 * pause, LAST_LOOK)

    def missing(self) -> list[int]:
        """Indices of the requests to ask, the first of equals only."""
        return [places[0] for places in self._places.values() if places[0] not in self._known]

    def _serve(self, stored: Mapping[bytes, StoredAnswer]) -> None:
        self._count_hits(len(stored))
        self._run.note_uses(answer.id for answer in stored.values())
        for key, answer in stored.items():
            self._hand_on(self._places[key][0], cast(A, answer.answer))

    def store(self, index: int, answer: A) -> None:
        """Queue an answer for the next transaction, and hand on those that have been committed since."""
        stored = cast(A, storable_answer(answer))
        answered = AnsweredRequest(self._identities[index], stored, time.time())
        self._run.writer.submit(Submission(answered, lambda: self._committed.put((index, stored))))
        self._waiting += 1
        while self._waiting and not self._committed.empty():
            self._hand_on_committed()

    def previewing(self, asked: Sequence[int]) -> dict[str, TextCallback]:
        """The argument with which a model shows what it writes for what is asked; none where nobody looks."""
        on_text = self._on_text
        if on_text is None:
            return {}

        def show(position: int, text: str) -> None:
            for place in self._places[self._identities[asked[position]].key]:
                on_text(place, text)

        return {"on_text": show}

    @contextmanager
    def storing(self) -> Iterator[None]:
        """Around the asking: at its end, wait until every answer is stored and hand it on.

        Where asking is interrupted, nothing is handed on any more; the end of the run stores what was answered.
        """
        yield
        self._run.writer.set_urgent(True)
        try:
            while self._waiting:
                self._hand_on_committed()
        finally:
            self._run.writer.set_urgent(False)

    def answers(self) -> list[A]:
        """All answers, in the order of the requests.

        Raises:
            ModelError: The model left a request without an answer.
        """
        forgotten = sum(index not in self._known for index in range(len(self._identities)))
        if forgotten:
            raise ModelError(f"The model did not answer {forgotten} of {len(self._identities)} requests.")
        return [self._known[index] for index in range(len(self._identities))]

    def _hand_on_committed(self) -> None:
        index, answer = self._committed.get()
        self._waiting -= 1
        self._run.writer.check()
        self._hand_on(index, answer)

    def _hand_on(self, index: int, answer: A) -> None:
        for place in self._places[self._identities[index].key]:
            self._known[place] = answer
            if self._on_result is not None:
                self._on_result(place, cast(Any, answer))
