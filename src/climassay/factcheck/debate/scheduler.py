"""Concurrent debates: each advances as soon as its own requests are answered.

Requests to a model that accepts concurrent calls (a server) and searches run in threads. The calling thread advances
the debates and calls the local models, each with all pending requests at once, so that their batches are full.
"""

import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Generic

from climassay.factcheck.debate.batcher import RequestBatcher
from climassay.factcheck.debate.requests import Request, RequestGenerator, SearchRequest, T, send_answers

OnRequests = Callable[[Sequence[Request]], None]
"""Callback that receives requests before they are sent and can raise an exception to end the debates."""
MAX_THREADS = 256
"""Maximum number of concurrent calls, each with any number of requests."""
MAX_SEARCHES = 2
"""Maximum number of concurrent searches, each for one debate, while requests to models are running."""


@dataclass(slots=True)
class _QueuedRequest:
    """A request and the debates that wait for it."""

    request: Request
    waiters: list[tuple[int, int]]
    """Pairs of a debate's index and the request's index in that debate. An identical request of several debates is sent
    once."""


@dataclass(frozen=True, slots=True)
class _FinishedCall:
    """Finished call: its requests with their answers, or the error that ended it."""

    entries: Sequence[_QueuedRequest]
    answers: Sequence[Any] = ()
    error: BaseException | None = None


@dataclass(slots=True)
class _PartialAnswers:
    """Answers that a waiting debate has received so far."""

    n_requests: int
    answers: dict[int, Any] = field(default_factory=dict)


class DebateScheduler(Generic[T]):
    """Runs debates concurrently. Each instance can be used once.

    Args:
        debates: Coroutines of the debates.
        batcher: Batcher that answers the requests.
        concurrency: Maximum number of debates in progress.
        on_result: Callback that receives each result, in order of completion.
        on_requests: Callback that receives requests before they are sent; its exceptions end the debates.
    """

    def __init__(
        self,
        debates: Sequence[RequestGenerator[T]],
        batcher: RequestBatcher,
        concurrency: int,
        on_result: Callable[[T], None] | None = None,
        on_requests: OnRequests | None = None,
    ) -> None:
        self._debates = debates
        self._batcher = batcher
        self._concurrency = concurrency
        self._on_result = on_result
        self._on_requests = on_requests
        self._results: dict[int, T] = {}
        self._n_started = 0
        self._ready: deque[tuple[int, list[Any] | None]] = deque()
        """Debates that can advance, with their answers."""
        self._pending: dict[int, _PartialAnswers] = {}
        """Debates that wait for answers."""
        self._local_requests: list[_QueuedRequest] = []
        """Requests to local models, which the calling thread sends."""
        self._searches: list[_QueuedRequest] = []
        """Searches that have not started."""
        self._n_searching = 0
        self._running: dict[str, _QueuedRequest] = {}
        """Requests running in threads, by their ``repr``."""
        self._finished: queue.SimpleQueue[_FinishedCall] = queue.SimpleQueue()

    def run(self) -> list[T]:
        """Run all debates and return their results in order.

        Any exception (Ctrl-C, an error of a call or a callback) cancels the running requests.
        """
        threads: set[int] = set()
        max_workers = min(2 * self._concurrency, MAX_THREADS) + MAX_SEARCHES
        pool = ThreadPoolExecutor(max_workers, initializer=lambda: threads.add(threading.get_ident()))
        try:
            while len(self._results) < len(self._debates):
                self._do_next(pool)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            self._batcher.cancel(threads)
            raise
        finally:
            pool.shutdown()
        return [self._results[index] for index in range(len(self._debates))]

    def _do_next(self, pool: ThreadPoolExecutor) -> None:
        """Advance a debate that is ready.

        If there is none, start searches, then call local models or wait for a thread.
        """
        while self._n_started < len(self._debates) and len(self._pending) + len(self._ready) < self._concurrency:
            self._ready.append((self._n_started, None))
            self._n_started += 1
        if self._ready:
            self._advance(pool, *self._ready.popleft())
            return
        while self._searches and self._n_searching < (MAX_SEARCHES if self._running else 1):
            # While requests are running, each call has one debate's searches, so that its requests start soon.
            debate = self._searches[0].waiters[0][0] if self._running else None
            selected_searches = [search for search in self._searches if debate in (None, search.waiters[0][0])]
            self._searches = self._searches[len(selected_searches) :]
            self._n_searching += 1
            self._start(pool, selected_searches)
        if self._local_requests and not self._n_searching:
            entries, self._local_requests = self._local_requests, []
            self._announce(entries)
            self._deliver(self._call(entries))
        else:
            self._deliver(self._finished.get())

    def _advance(self, pool: ThreadPoolExecutor, debate: int, answers: list[Any] | None) -> None:
        """Send a debate its answers, then queue or start its next requests, or store its result."""
        try:
            requests = send_answers(self._debates[debate], answers)
        except StopIteration as end:
            self._results[debate] = end.value
            if self._on_result is not None:
                self._on_result(end.value)
            return
        if not requests:
            self._ready.append((debate, []))
            return
        self._pending[debate] = _PartialAnswers(len(requests))
        calls: dict[tuple[type[Request], str], list[_QueuedRequest]] = {}
        for index, request in enumerate(requests):
            model = self._batcher.concurrent_model(request)
            entry = _QueuedRequest(request, [(debate, index)])
            if model is None:
                (self._searches if isinstance(request, SearchRequest) else self._local_requests).append(entry)
            elif (running_request := self._running.get(repr(request))) is not None:
                running_request.waiters.append((debate, index))
            else:
                self._running[repr(request)] = entry
                calls.setdefault((type(request), model), []).append(entry)
        for entries in calls.values():
            self._start(pool, entries)

    def _start(self, pool: ThreadPoolExecutor, entries: Sequence[_QueuedRequest]) -> None:
        self._announce(entries)
        pool.submit(lambda: self._finished.put(self._call(entries)))

    def _announce(self, entries: Sequence[_QueuedRequest]) -> None:
        if self._on_requests is not None:
            self._on_requests([entry.request for entry in entries])

    def _call(self, entries: Sequence[_QueuedRequest]) -> _FinishedCall:
        try:
            return _FinishedCall(entries, self._batcher.answer([entry.request for entry in entries]))
        except BaseException as error:  # raised again in the calling thread by _deliver
            return _FinishedCall(entries, error=error)

    def _deliver(self, call: _FinishedCall) -> None:
        """Pass answers to the debates that wait for them, or raise the error of the call."""
        if call.error is not None:
            raise call.error
        self._n_searching -= isinstance(call.entries[0].request, SearchRequest)
        for entry, answer in zip(call.entries, call.answers, strict=True):
            self._running.pop(repr(entry.request), None)
            for debate, index in entry.waiters:
                partial_answers = self._pending[debate]
                partial_answers.answers[index] = answer
                if len(partial_answers.answers) == partial_answers.n_requests:
                    del self._pending[debate]
                    self._ready.append(
                        (debate, [partial_answers.answers[i] for i in range(partial_answers.n_requests)])
                    )
