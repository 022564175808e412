"""Many debates side by side, each going on as soon as what it asked is answered.

Requests to a model that takes several calls at a time (one behind a server) leave at once, each debate's from a thread.
Searches have threads as well. Beside them the calling thread advances debates and asks the models of this
machine, which get in one call whatever waits for them, so that their batches are full. No debate waits for another.
"""

import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from climassay.factcheck.exchange import Exchange
from climassay.factcheck.steps import Ask, AskPassages, Steps

T = TypeVar("T")
Watch = Callable[[Sequence[Ask]], None]
MOST_THREADS = 256
"""Most calls under way at a time, each with any number of requests."""
SEARCHES = 2
"""Most searches under way at a time while requests are, each of one debate."""


@dataclass(slots=True)
class _Asked:
    """An ask under way, and who waits for it."""

    ask: Ask
    places: list[tuple[int, int]]
    """Numbers of debates, and of the ask within what each asks: equal requests of several debates are asked once."""


@dataclass(frozen=True, slots=True)
class _Call:
    """What is asked in one go."""

    asked: Sequence[_Asked]
    answers: Sequence[Any] = ()
    error: BaseException | None = None


@dataclass(slots=True)
class _Waiting:
    """A debate that waits."""

    asks: int
    answers: dict[int, Any] = field(default_factory=dict)


class Scheduler(Generic[T]):
    """Advances debates over an exchange; used once.

    Args:
        steps: The debates.
        exchange: Answers what they ask.
        at_once: Most debates under way at a time; as one ends the next begins.
        on_result: Called with each result as it comes, in order of completion.
        watch: Called before anything is asked, with what will be; an exception of its own ends the debates there.
    """

    def __init__(
        self,
        steps: Sequence[Steps[T]],
        exchange: Exchange,
        at_once: int,
        on_result: Callable[[T], None] | None = None,
        watch: Watch | None = None,
    ) -> None:
        self._steps = steps
        self._exchange = exchange
        self._at_once = at_once
        self._on_result = on_result
        self._watch = watch
        self._results: dict[int, T] = {}
        self._begun = 0
        self._ready: deque[tuple[int, list[Any] | None]] = deque()
        """Debates that can go on, with what they were waiting for."""
        self._waiting: dict[int, _Waiting] = {}
        self._here: list[_Asked] = []
        """For the calling thread."""
        self._searches: list[_Asked] = []
        """For the threads that search."""
        self._searching = 0
        self._requests: dict[str, _Asked] = {}
        """Under way in threads."""
        self._ended: queue.SimpleQueue[_Call] = queue.SimpleQueue()

    def run(self) -> list[T]:
        """Results of all debates, in order.

        Whatever ends this early (Ctrl-C, an error of a call or a callback) cancels the requests that are under way.
        """
        threads: set[int] = set()
        most = min(2 * self._at_once, MOST_THREADS) + SEARCHES
        pool = ThreadPoolExecutor(most, initializer=lambda: threads.add(threading.get_ident()))
        try:
            while len(self._results) < len(self._steps):
                self._go_on(pool)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            self._exchange.cancel(threads)
            raise
        finally:
            pool.shutdown()
        return [self._results[place] for place in range(len(self._steps))]

    def _go_on(self, pool: ThreadPoolExecutor) -> None:
        """Do what is most urgent: advance a debate, so that requests leave; search; ask; with nothing to do, wait."""
        while self._begun < len(self._steps) and len(self._waiting) + len(self._ready) < self._at_once:
            self._ready.append((self._begun, None))
            self._begun += 1
        if self._ready:
            self._advance(pool, *self._ready.popleft())
            return
        while self._searches and self._searching < (SEARCHES if self._requests else 1):
            # While requests are under way one debate's searches in a call, so that its requests leave soon.
            debate = self._searches[0].places[0][0] if self._requests else None
            chosen = [one for one in self._searches if debate is None or one.places[0][0] == debate]
            self._searches = self._searches[len(chosen) :]
            self._searching += 1
            self._send(pool, chosen)
        if self._here and not self._searching:
            here, self._here = self._here, []
            self._tell([one.ask for one in here])
            self._deliver(self._answered(here))
        else:
            self._deliver(self._ended.get())

    def _advance(self, pool: ThreadPoolExecutor, debate: int, answers: list[Any] | None) -> None:
        """Send a debate its answers; note or send what it asks next, or its result."""
        step = self._steps[debate]
        try:
            asks = next(step) if answers is None else step.send(answers)
        except StopIteration as end:
            self._results[debate] = end.value
            if self._on_result is not None:
                self._on_result(end.value)
            return
        if not asks:
            self._ready.append((debate, []))
            return
        self._waiting[debate] = _Waiting(len(asks))
        calls: dict[tuple[type[Ask], str], list[_Asked]] = {}
        for number, ask in enumerate(asks):
            model = self._exchange.concurrent_model(ask)
            if model is None:
                (self._searches if isinstance(ask, AskPassages) else self._here).append(_Asked(ask, [(debate, number)]))
            elif (known := self._requests.get(repr(ask))) is not None:
                known.places.append((debate, number))
            else:
                asked = self._requests[repr(ask)] = _Asked(ask, [(debate, number)])
                calls.setdefault((type(ask), model), []).append(asked)
        for call in calls.values():
            self._send(pool, call)

    def _send(self, pool: ThreadPoolExecutor, asked: Sequence[_Asked]) -> None:
        self._tell([one.ask for one in asked])
        pool.submit(lambda: self._ended.put(self._answered(asked)))

    def _answered(self, asked: Sequence[_Asked]) -> _Call:
        try:
            return _Call(asked, self._exchange.answer([one.ask for one in asked]))
        except BaseException as error:
            # Raised in the calling thread, where it is delivered.
            return _Call(asked, error=error)

    def _deliver(self, call: _Call) -> None:
        """Give answers to those who wait for them.

        Raises:
            BaseException: What ended the call.
        """
        if call.error is not None:
            raise call.error
        self._searching -= isinstance(call.asked[0].ask, AskPassages)
        for one, answer in zip(call.asked, call.answers, strict=True):
            self._requests.pop(repr(one.ask), None)
            for debate, number in one.places:
                waiting = self._waiting[debate]
                waiting.answers[number] = answer
                if len(waiting.answers) == waiting.asks:
                    del self._waiting[debate]
                    self._ready.append((debate, [waiting.answers[place] for place in range(waiting.asks)]))

    def _tell(self, asks: Sequence[Ask]) -> None:
        if self._watch is not None:
            self._watch(asks)
