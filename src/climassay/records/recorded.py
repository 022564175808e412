"""A model whose every answer is stored before anyone sees it, and asked for only once."""

import queue
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar, cast

from climassay.errors import ModelError
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
    Usage,
    number_format,
)
from climassay.records.answers import AnsweredRequest, storable_answer
from climassay.records.identity import Identity, generation_identity, scoring_identity
from climassay.records.runs import Run
from climassay.records.store import Records
from climassay.records.writer import Submission

A = TypeVar("A", Completion, OptionScores)
R = TypeVar("R", GenerationRequest, OptionRequest)


@dataclass(frozen=True, slots=True)
class Tally:
    """What a recorded model has done so far; counts distinct requests of each call."""

    hits: int = 0
    """Served from the records."""
    asked: int = 0
    """Put to the model, failed ones included."""
    failed: int = 0
    """Of those asked, how many ended with an error; a later run asks them again."""
    usage: Usage = field(default_factory=Usage)
    """Tokens and cost of what was asked, without what the records served."""


class RecordedModel:
    """A generator and option scorer that looks up first, asks only what is missing and stores before handing on.

    An answer reaches the caller (as a return value or through ``on_result``) only after the transaction that holds it
    has been committed; so whatever was used can be looked up, even if the process is killed at that moment. Equal
    requests of one call are asked once. Failed requests are stored too, and are asked again by the next run. A stored
    answer carries the usage of when it was asked.

    Args:
        model: The model to ask.
        store: Where answers are looked up.
        run: The open run under which new answers are stored.
        use_cache: False asks everything afresh; the new answers are stored and served from then on.
    """

    def __init__(self, model: Generator, store: Records, run: Run, use_cache: bool = True) -> None:
        self._model = model
        self._store = store
        self._run = run
        self._use_cache = use_cache
        self._tally = Tally()

    @property
    def wrapped(self) -> Generator:
        """The model that is asked, for what is no question to it: its window, its weights."""
        return self._model

    @property
    def name(self) -> str:
        """The wrapped model's name."""
        return self._model.name

    @property
    def fingerprint(self) -> str:
        """The wrapped model's fingerprint."""
        return self._model.fingerprint

    @property
    def dtype(self) -> str:
        """The wrapped model's number format; empty where it is not known."""
        return number_format(self._model)

    @property
    def tally(self) -> Tally:
        """Hits, requests asked, failures and usage so far."""
        return self._tally

    def render(self, messages: Sequence[Message], assistant_prefix: str = "") -> str:
        """The prompt as the wrapped model receives it."""
        return self._model.render(messages, assistant_prefix)

    def generate(
        self, requests: Sequence[GenerationRequest], *, on_result: CompletionCallback | None = None
    ) -> list[Completion]:
        """As :meth:`climassay.models.contract.Generator.generate`, with records.

        Raises:
            RecordsError: An answer could not be stored.
        """
        identities = [generation_identity(self._model, request) for request in requests]
        call: _Call[Completion] = _Call(self._store, self._run, identities, on_result)
        return self._answer(call, requests, self._model.generate)

    def option_logprobs(
        self, requests: Sequence[OptionRequest], *, on_result: ScoresCallback | None = None
    ) -> list[OptionScores]:
        """As :meth:`climassay.models.contract.OptionScorer.option_logprobs`, with records.

        Raises:
            ModelError: The wrapped model cannot weigh options.
            RecordsError: An answer could not be stored.
        """
        if not isinstance(self._model, OptionScorer):
            raise ModelError(f"The model {self.name} generates text only and cannot weigh options: use another one.")
        identities = [scoring_identity(self._model, request) for request in requests]
        call: _Call[OptionScores] = _Call(self._store, self._run, identities, on_result)
        return self._answer(call, requests, self._model.option_logprobs)

    def close(self) -> None:
        """Close the wrapped model; the records stay open."""
        self._model.close()

    def _answer(self, call: "_Call[A]", requests: Sequence[R], ask: Callable[..., list[A]]) -> list[A]:
        if self._use_cache:
            self._count(hits=call.serve_stored())
        missing = call.missing()
        if missing:
            with call.storing():
                ask(
                    [requests[index] for index in missing],
                    on_result=lambda position, answer: self._store_one(call, missing[position], answer),
                )
        return call.answers()

    def _store_one(self, call: "_Call[A]", index: int, answer: A) -> None:
        self._count(asked=1, failed=int(answer.error is not None), usage=answer.usage)
        call.store(index, answer)

    def _count(self, hits: int = 0, asked: int = 0, failed: int = 0, usage: Usage | None = None) -> None:
        tally = self._tally
        self._tally = replace(
            tally,
            hits=tally.hits + hits,
            asked=tally.asked + asked,
            failed=tally.failed + failed,
            usage=tally.usage + usage if usage else tally.usage,
        )


class _Call(Generic[A]):
    """The state of one call: which answers are known, which wait for their commit, and who is to be told."""

    def __init__(
        self, store: Records, run: Run, identities: Sequence[Identity], on_result: Callable[[int, A], None] | None
    ) -> None:
        self._store = store
        self._run = run
        self._identities = identities
        self._on_result: Callable[[int, A], None] | None = on_result
        self._places: dict[bytes, list[int]] = {}
        for index, identity in enumerate(identities):
            self._places.setdefault(identity.key, []).append(index)
        self._known: dict[int, A] = {}
        self._waiting = 0
        self._committed: queue.SimpleQueue[tuple[int, A]] = queue.SimpleQueue()

    def serve_stored(self) -> int:
        """Hand on what the records have; gives the number of distinct requests served."""
        stored = self._store.look_up(list(self._places))
        self._run.note_uses(answer.id for answer in stored.values())
        for key, answer in stored.items():
            self._hand_on(self._places[key][0], cast(A, answer.answer))
        return len(stored)

    def missing(self) -> list[int]:
        """Indices of the requests to ask, the first of equals only."""
        return [places[0] for places in self._places.values() if places[0] not in self._known]

    def store(self, index: int, answer: A) -> None:
        """Queue an answer for the next transaction, and hand on those that have been committed since."""
        stored = cast(A, storable_answer(answer))
        answered = AnsweredRequest(self._identities[index], stored, time.time())
        self._run.writer.submit(Submission(answered, lambda: self._committed.put((index, stored))))
        self._waiting += 1
        while self._waiting and not self._committed.empty():
            self._hand_on_committed()

    @contextmanager
    def storing(self) -> Iterator[None]:
        """Around the asking: at its end, wait until every answer is stored and hand it on.

        Where asking is interrupted, nothing is handed on any more; the end of the run stores what was answered.
        """
        yield
        self._run.writer.hurry(True)
        try:
            while self._waiting:
                self._hand_on_committed()
        finally:
            self._run.writer.hurry(False)

    def answers(self) -> list[A]:
        """All answers, in the order of the requests.

        Raises:
            ModelError: The model left a request without an answer.
        """
        forgotten = sum(index not in self._known for index in range(len(self._identities)))
        if forgotten:
            raise ModelError(f"The model gave no answer at all to {forgotten} of {len(self._identities)} requests.")
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
