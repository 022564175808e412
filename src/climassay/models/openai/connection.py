"""One server: an event loop in its own thread, connections that are reused, and attempts until there is an answer.

How many requests are under way at once is found by trying, as TCP does (:class:`AdaptiveLimit`); a failed one is tried
again after a pause that grows (:class:`RetryPolicy`).
"""

import asyncio
import concurrent.futures
import json
import math
import queue
import random
import re
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from climassay.errors import ModelError
from climassay.models.openai.capabilities import REFUSAL_STATUSES, rejected_parameters
from climassay.models.openai.replies import (
    BadReplyError,
    ErrorReply,
    Reply,
    StreamedReply,
    parse_error_reply,
    parse_reply,
)
from climassay.models.servers import Server
from climassay.redaction import without_key

if TYPE_CHECKING:
    import httpx2


@dataclass(frozen=True, slots=True)
class Clock:
    """Time as the client sees it; tests give another one."""

    now: Callable[[], float] = time.monotonic
    """Seconds that only go forward."""
    wall: Callable[[], float] = time.time
    """Seconds since 1970, for the dates of servers."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    draw: Callable[[], float] = random.random
    """Uniform in [0, 1), for the jitter."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long and how often one request is tried. All times in seconds."""

    deadline: float = 1200.0
    """From the first attempt until the request is given up, waits included."""
    attempt_timeout: float | None = None
    """A server that says nothing for so long is asked again; None waits until the deadline, so that no slow answer is
    thrown away and paid for twice."""
    max_attempts: int = 12
    base: float = 0.5
    """The first wait is drawn between 0 and this, the next between 0 and twice this, and so on."""
    cap: float = 30.0
    """No wait of our own is longer."""

    def backoff(self, attempts: int, clock: Clock) -> float:
        """Wait after the given number of failed attempts: exponential with full jitter.

        References:
            M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
        """
        return clock.draw() * min(self.cap, self.base * 2.0 ** min(attempts - 1, 60))


def retry_policy(deadline: float | None = None, timeout: float | None = None) -> RetryPolicy | None:
    """The policy with what a user has set of it, in seconds; None where nothing is set."""
    if deadline is None and timeout is None:
        return None
    usual = RetryPolicy()
    return replace(usual, deadline=deadline or usual.deadline, attempt_timeout=timeout)


def parse_retry_after(seconds: str | None, milliseconds: str | None, wall: float) -> float | None:
    """Seconds that a server asks to wait, from its ``Retry-After`` and ``retry-after-ms`` headers.

    ``Retry-After`` is a number of seconds or an HTTP date (RFC 9110, section 10.2.3); ``retry-after-ms``, which some
    servers send with it, is preferred. ``wall`` is the present time in seconds since 1970.

    Returns:
        At least 0; None where there is no header or it cannot be read.
    """
    for text, unit in ((milliseconds, 0.001), (seconds, 1.0)):
        try:
            wait = float(text or "") * unit
        except ValueError:
            continue
        if 0 <= wait < float("inf"):
            return wait
    try:
        return max(0.0, parsedate_to_datetime(seconds or "").timestamp() - wall)
    except (ValueError, OverflowError):
        return None


START = 32
"""Requests at once before anything is known about the server."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Permission to send one request."""

    generation: int
    """Number of halvings before it was given."""


class AdaptiveLimit:
    """Additive increase, multiplicative decrease of the number of requests under way.

    The limit starts at 32 (or the ceiling) and grows by one with every success (slow start: it doubles each round
    trip) until the server is first overloaded; from then on it grows by one each round trip. Overload (429, 503, 529,
    a time-out) halves it, once for all requests that were under way at that time. A ``Retry-After`` stops all sending
    until then.

    Used from one event loop only.

    References:
        D.-M. Chiu and R. Jain, "Analysis of the increase and decrease algorithms for congestion avoidance in computer
        networks", Computer Networks and ISDN Systems 17 (1989).
    """

    def __init__(self, ceiling: int, clock: Clock) -> None:
        self.ceiling = ceiling
        self.limit = float(min(START, ceiling))
        self.in_flight = 0
        self.paused_until = 0.0
        self._clock = clock
        self._generation = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def acquire(self, patience: float = math.inf) -> Slot | None:
        """Wait for a free place and the end of a pause; None at once for a pause longer than ``patience`` seconds."""
        while True:
            pause = self.paused_until - self._clock.now()
            if pause > 0:
                if pause >= patience:
                    return None
                await self._clock.sleep(pause)
            elif self.in_flight < int(self.limit):
                self.in_flight += 1
                return Slot(self._generation)
            else:
                place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._waiting.append(place)
                try:
                    await place
                except asyncio.CancelledError:
                    if place.done() and not place.cancelled():
                        self._wake(1)
                    raise

    def release(self, slot: Slot, *, succeeded: bool, overloaded: bool) -> None:
        """Give a place back and learn from how it went."""
        self.in_flight -= 1
        if overloaded and slot.generation == self._generation:
            self._generation += 1
            self.limit = max(1.0, self.limit / 2)
        elif succeeded:
            step = 1.0 if self._generation == 0 else 1.0 / self.limit
            self.limit = min(float(self.ceiling), self.limit + step)
        self._wake(int(self.limit) - self.in_flight)

    def pause(self, seconds: float) -> None:
        """Send nothing for so long; who waits for a place learns of it at once."""
        self.paused_until = max(self.paused_until, self._clock.now() + seconds)
        self._wake(len(self._waiting))

    def _wake(self, free: int) -> None:
        while free > 0 and self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                free -= 1


OVERLOADED = frozenset({429, 503, 529})
RETRYABLE = frozenset({408, 409, 425, 429})
PAYMENT_REQUIRED = 402
USED_UP = frozenset(
    # OpenAI, which also has them with the type insufficient_quota; Azure, DashScope and Perplexity take over the latter
    {"insufficient_quota", "credit_balance_exhausted", "organization_spend_limit_exceeded", "billing_not_active"}
    | {"project_spend_limit_exceeded", "organization_usage_limit_exceeded", "billing_hard_limit_reached"}
    | {"account_deactivated", "access_terminated"}
    # Anthropic, Groq, Moonshot, DashScope, Volcengine, LiteLLM's and One API's gateways, and others
    | {"billing_error", "blocked_api_access", "exceeded_current_quota_error", "arrearage", "accountoverdueerror"}
    | {"budget_exceeded", "insufficient_user_quota", "insufficient_credits", "insufficient_balance"}
    | {"payment_required", "spend_limit_exceeded"}
)
"""Codes and types of errors that no waiting cures: the account has no credit left, or has reached its spend limit."""
RESUME = "What has been answered is stored: once the account has credit, the same command asks for the rest."
HOPELESS_STATUS = {
    401: "{key_note}",
    403: "{key_note} The model may not be open to it.",
    404: "Check the model's name and the base URL {base_url}, which usually ends in /v1.",
}
"""Wrong key, address or model: no request will do better, unless one has been answered before."""
NOT_IMPLEMENTED = 501
"""The one fault of a server that no waiting cures."""
NO_SUCH_MODEL = re.compile(
    r"model[\W_]+not[\W_]*found|deployment[\W_]*not[\W_]*found|model.{0,80}(?:not exist|not found)", re.I
)
KEY_REPEATED = "The server's answer repeats the API key, so it is not kept."
REFUSED_ATTEMPTS = 3
UNUSABLE_ATTEMPTS = 5
"""Answers under status 200 that are none or not complete, after which a request is given up."""
LONG_WAIT = 1.0
"""Seconds from which on a wait that an overloaded server states does not count as a failed attempt."""
CANCEL_SECONDS = 10.0
READ_SECONDS = 5.0
WAKE_SECONDS = 0.5
GATHER_SECONDS = 0.005
"""Results are handed to the calling thread in bundles: waking it for each one costs more than the result."""

I = TypeVar("I")  # noqa: E741
O = TypeVar("O")  # noqa: E741
ShowText = Callable[[str], None]
"""Takes an answer as far as it is written; each text replaces the one before."""
STREAMING = ("stream", "stream_options")
"""Parameters of a request whose answer is to come in pieces."""


@dataclass(frozen=True, slots=True)
class _News(Generic[O]):
    """What a calling thread is told in one go."""

    results: list[tuple[int, O]]
    texts: dict[int, str]
    """Previews by index, of items that may have results by now."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one request after all its attempts: a reply, or an error."""

    attempts: int
    reply: Reply | None = None
    error: str | None = None
    status: int | None = None
    """HTTP status of a refusal that no retry cures; None else."""
    refusal: ErrorReply | None = field(default=None, repr=False)
    """The server's own words, to decide by, where they may be about one parameter. They may hold the key, and are
    neither shown nor kept."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What became of one attempt."""

    reply: Reply | None = None
    error: str = ""
    status: int | None = None
    retryable: bool = False
    overloaded: bool = False
    retry_after: float | None = None
    """Seconds that the server asks to wait."""
    used_up: bool = False
    """The account behind the key pays for no more requests."""
    refused: bool = False
    """There was not even a connection."""
    is_unusable: bool = False
    """An answer came under status 200 that is none or is not complete; it may have to be paid for all the same."""
    broke_off: bool = False
    """A stream began and did not become an answer."""
    refusal: ErrorReply | None = field(default=None, repr=False)
    """What the server said, where it answered with an error; see :attr:`Outcome.refusal`."""


class Connection:
    """The way to one server; its key is sent as a bearer token and shown nowhere."""

    def __init__(self, server: Server, concurrency: int, policy: RetryPolicy, clock: Clock) -> None:
        self._server = server
        self._policy = policy
        self._clock = clock
        self.limit = AdaptiveLimit(concurrency, clock)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client: Any = None
        self._options: dict[str, Any] = {}
        self._proven = False
        self._starting = threading.Lock()
        self._under_way: dict[int, concurrent.futures.Future[None]] = {}
        """The work of each thread that waits for some."""

    def map(
        self,
        work: Callable[..., Awaitable[O]],
        items: Sequence[I],
        on_result: Callable[[int, O], None] | None,
        on_text: Callable[[int, str], None] | None = None,
    ) -> list[O]:
        """Results of asynchronous work on items, in their order; as many at once as the ceiling allows.

        Whatever ends the call early (Ctrl-C, an error of ``on_result``) cancels what is under way, after which what
        had been answered by then is still handed on.

        Args:
            work: Run in the event loop, once for each item; with ``on_text`` it gets a :data:`ShowText` too.
            items: What to work on.
            on_result: Called in the calling thread with (index, result), in the order of completion.
            on_text: Called in the calling thread with (index, text) for what work shows; texts that are replaced within
                milliseconds are left out.
        """
        found: dict[int, O] = {}

        def keep(index: int, result: O) -> None:
            found[index] = result
            if on_result is not None:
                on_result(index, result)

        results: queue.SimpleQueue[_News[O] | BaseException | None] = queue.SimpleQueue()
        working = self._work_all(work, items, results, preview=on_text is not None)
        future = asyncio.run_coroutine_threadsafe(working, self._running_loop())
        self._under_way[threading.get_ident()] = future
        known: deque[tuple[int, O]] = deque()
        try:
            while isinstance(bundle := _next(results, future), _News):
                known.extend(bundle.results)
                for index, text in bundle.texts.items():
                    if on_text is not None:
                        on_text(index, text)
                while known:
                    keep(*known.popleft())
        except KeyboardInterrupt:
            future.cancel()
            with suppress(queue.Empty):
                while isinstance(bundle := results.get(timeout=CANCEL_SECONDS), _News):
                    known.extend(bundle.results)
            while known:
                keep(*known.popleft())
            raise
        finally:
            del self._under_way[threading.get_ident()]
            future.cancel()
        if bundle is not None:
            raise bundle
        return [found[index] for index in range(len(items))]

    def cancel(self, threads: Collection[int]) -> None:
        """End the work that these threads wait for: their calls raise KeyboardInterrupt."""
        for thread in threads:
            if (future := self._under_way.get(thread)) is not None:
                future.cancel()

    async def ask(self, payload: dict[str, Any], show: ShowText | None = None) -> Outcome:
        """Send one request until it is answered, refused for good, out of attempts or out of time.

        Args:
            payload: The body. Where it asks for a stream and one breaks, the attempts that follow ask for whole
                answers: there are proxies that no stream gets through.
            show: Takes the text of a stream; empty again when its attempt has failed.
        """
        body = json.dumps(payload).encode()
        show = show if "stream" in payload else None
        policy, clock = self._policy, self._clock
        started: float | None = None
        attempts = failures = unusable = 0
        error = ""
        while True:
            slot = await self.limit.acquire(self._time_left(started))
            if slot is None:
                pause = self.limit.paused_until - clock.now()
                said = error or "This request was not sent."
                why = f"The server asks to wait {pause:.0f} s, longer than the deadline of a request allows. {said}"
                return Outcome(attempts, error=why)
            started = clock.now() if started is None else started
            left = self._time_left(started)
            if left <= 0:
                self.limit.release(slot, succeeded=False, overloaded=False)
                why = f"No answer within {policy.deadline:g} s and {_counted(attempts)}; the last one: {error}"
                return Outcome(attempts, error=why if attempts > 1 else error)
            attempt = Attempt(error="cancelled")
            try:
                attempt = await self._attempt(body, min(left, policy.attempt_timeout or left), show)
            finally:
                self.limit.release(slot, succeeded=attempt.reply is not None, overloaded=attempt.overloaded)
            attempts += 1
            if attempt.reply is not None:
                self._proven = True
                return Outcome(attempts, attempt.reply)
            if attempt.broke_off and show is not None:
                show("")
                payload = {name: value for name, value in payload.items() if name not in STREAMING}
                body, show = json.dumps(payload).encode(), None
            error = attempt.error
            self._raise_if_hopeless(attempt, attempts, payload)
            if not attempt.retryable:
                refusal = attempt.refusal if attempt.status in REFUSAL_STATUSES else None
                return Outcome(attempts, error=error, status=attempt.status, refusal=refusal)
            wait = attempt.retry_after or 0.0
            # A rate limit that says when it ends may have to be waited for again and again, until the deadline.
            failures += int(not attempt.overloaded or wait < LONG_WAIT)
            unusable += int(attempt.is_unusable)
            if failures >= policy.max_attempts or unusable >= UNUSABLE_ATTEMPTS:
                return Outcome(attempts, error=f"No answer after {_counted(attempts)}; the last one: {error}")
            backoff = policy.backoff(failures, clock)
            if wait:
                self.limit.pause(max(wait, backoff) if wait < LONG_WAIT else wait)
            else:
                await clock.sleep(backoff)

    async def read(self, address: str) -> bytes:
        """What lies at an address of the server; nothing where that cannot be read, for it is never needed."""
        import httpx2
        from openai import OpenAIError

        client = self._ready_client()
        with suppress(TimeoutError, OpenAIError, httpx2.HTTPError, OSError):
            async with asyncio.timeout(READ_SECONDS):
                response = await client.get(address, cast_to=httpx2.Response, options=self._options)
            return bytes(response.content)
        return b""

    def close(self) -> None:
        """Close connections and end the event loop; called again it does nothing."""
        loop, self._loop = self._loop, None
        if loop is None:
            return

        async def hang_up() -> None:
            client, self._client = self._client, None
            if client is not None:
                await client.close()
            await loop.shutdown_default_executor()

        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(hang_up(), loop).result(timeout=CANCEL_SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        self._thread.join(timeout=CANCEL_SECONDS)
        if not self._thread.is_alive():
            loop.close()

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="climassay-api", daemon=True)
                self._thread.start()
            return self._loop

    async def _work_all(
        self,
        work: Callable[..., Awaitable[O]],
        items: Sequence[I],
        results: "queue.SimpleQueue[_News[O] | BaseException | None]",
        *,
        preview: bool,
    ) -> None:
        loop = asyncio.get_running_loop()
        remaining = iter(enumerate(items))
        bundle: list[tuple[int, O]] = []
        texts: dict[int, str] = {}
        due = False

        def hand_over() -> None:
            nonlocal due
            due = False
            if bundle or texts:
                results.put(_News(bundle.copy(), texts.copy()))
                bundle.clear()
                texts.clear()

        def gather() -> None:
            nonlocal due
            if not due:
                due = True
                loop.call_later(GATHER_SECONDS, hand_over)

        async def worker() -> None:
            for index, item in remaining:

                def show(text: str, index: int = index) -> None:
                    texts[index] = text
                    gather()

                result = await (work(item, show) if preview else work(item))
                bundle.append((index, result))
                gather()

        last: BaseException | None = None
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self.limit.ceiling, len(items))):
                    group.create_task(worker())
        except ExceptionGroup as failures:
            last = failures.exceptions[0]
        except asyncio.CancelledError:
            last = KeyboardInterrupt()
            raise
        finally:
            hand_over()
            results.put(last)

    def _time_left(self, started: float | None) -> float:
        """Seconds until the deadline of a request that was first sent at that time, if it was."""
        return self._policy.deadline - (0.0 if started is None else self._clock.now() - started)

    async def _attempt(self, body: bytes, timeout: float, show: ShowText | None) -> Attempt:
        import httpx2
        from aiohttp import ClientConnectorError
        from openai import APIConnectionError, APIStatusError

        client = self._ready_client()
        stream: StreamedReply | None = None
        try:
            async with asyncio.timeout(timeout):
                # A raw response instead of the client's models, which cost more than the rest of the request.
                response = await client.post(
                    "/chat/completions",
                    cast_to=httpx2.Response,
                    content=body,
                    options=self._options,
                    stream=show is not None,
                )
                if show is None:
                    content = response.content
                elif not response.headers.get("content-type", "").startswith("text/event-stream"):
                    content = await response.aread()
                else:
                    stream = StreamedReply()
                    content = await self._follow(response, stream, show)
            shown = without_key(content, self._server.key)
            reply = parse_reply(shown) if stream is None else stream.whole()
        except TimeoutError:
            error = f"The server did not answer within {round(timeout, 1):g} s."
            return Attempt(error=error, retryable=True, overloaded=True, broke_off=stream is not None)
        except APIStatusError as failure:
            return self._status_attempt(failure.response)
        except (APIConnectionError, httpx2.HTTPError, OSError) as failure:
            causes = list(_causes(failure))
            refused = any(isinstance(cause, ClientConnectorError) for cause in causes)
            reason = " ".join(str(causes[-1]).split()).rstrip(".") or type(causes[-1]).__name__
            error = self._server.without_key(f"The connection to {self._server.base_url} failed: {reason}.")
            return Attempt(error=error, retryable=True, refused=refused, broke_off=stream is not None)
        except BadReplyError as problem:
            error, refusal = self._server.without_key(str(problem)), problem.refusal
            if refusal is None:
                return Attempt(error=error, retryable=True, is_unusable=True, broke_off=stream is not None)
            return Attempt(
                error=error,
                retryable=True,
                is_unusable=refusal.status not in OVERLOADED,
                overloaded=refusal.status in OVERLOADED,
                retry_after=refusal.wait,
                used_up=_is_used_up(refusal.status, refusal),
                broke_off=stream is not None,
            )
        # A server may also spread it over the parts of its answer.
        repeated = shown != content or self._server.without_key(reply.text) != reply.text
        return Attempt(error=KEY_REPEATED, broke_off=stream is not None) if repeated else Attempt(reply)

    async def _follow(self, response: "httpx2.Response", stream: StreamedReply, show: ShowText) -> bytes:
        """Read a stream to its end, and show its text as it grows, without what is or may become the key.

        Returns:
            Everything that was received.
        """
        received = bytearray()
        key, before = self._server.key or "", ""
        try:
            async for part in response.aiter_bytes():
                received += part
                stream.add(part)
                text = stream.text
                if text != before and self._server.without_key(text) == text:
                    begun = next((n for n in range(min(len(key), len(text)), 0, -1) if text.endswith(key[:n])), 0)
                    show(text[: len(text) - begun])
                    before = text
                if stream.done:
                    break
        finally:
            await response.aclose()
        return bytes(received)

    def _status_attempt(self, response: "httpx2.Response") -> Attempt:
        status, headers = response.status_code, response.headers
        message = parse_error_reply(without_key(response.content, self._server.key)).message or response.reason_phrase
        if response.has_redirect_location:
            message = f"it sends requests on to {headers['location']}, which is not followed: name that address"
        error = self._server.without_key(f"The server answered {status}: {message}")
        error += "" if error.endswith((".", "!", "?")) else "."
        refusal, overloaded = parse_error_reply(response.content), status in OVERLOADED
        used_up = _is_used_up(status, refusal)
        should_retry = headers.get("x-should-retry")
        retryable = (status in RETRYABLE or (status >= 500 and status != NOT_IMPLEMENTED)) and not used_up
        retryable = should_retry == "true" if should_retry in ("true", "false") else retryable
        after = parse_retry_after(headers.get("retry-after"), headers.get("retry-after-ms"), self._clock.wall())
        after = (refusal.wait if after is None else after) if retryable else None
        return Attempt(None, error, status, retryable, overloaded, after, used_up, refusal=refusal)

    def _raise_if_hopeless(self, attempt: Attempt, attempts: int, payload: Mapping[str, Any]) -> None:
        """End everything where no request can succeed, instead of failing one after the other.

        A refusal of one parameter is not one of these cases: the request may do without it.
        """
        if attempt.used_up:
            raise ModelError(f"{attempt.error} {RESUME}")
        if self._proven:
            return
        if attempt.status in HOPELESS_STATUS and attempt.refusal is not None:
            if attempt.status in REFUSAL_STATUSES and rejected_parameters(payload, attempt.refusal):
                return
            server = self._server
            advice = HOPELESS_STATUS[attempt.status].format(base_url=server.base_url, key_note=server.key_note)
            if server.withheld and attempt.status in (401, 403):
                advice = server.withheld
            elif NO_SUCH_MODEL.search(f"{attempt.refusal.message} {attempt.refusal.code}"):
                advice = f"Check the model's name: the server does not offer {payload.get('model')!r} to you."
            raise ModelError(f"{attempt.error} {advice}")
        if attempt.refused and attempts >= REFUSED_ATTEMPTS:
            raise ModelError(f"{attempt.error} Start the server, or correct --base-url.")

    def _ready_client(self) -> Any:
        if self._client is not None:
            return self._client
        import httpx2
        from openai import AsyncOpenAI, DefaultAioHttpClient, Omit

        async def keep_needed(request: httpx2.Request) -> None:
            self._server.keep_needed(request.headers)

        # The client insists on a key; a server without keys is to see none.
        self._options = {} if self._server.key else {"headers": {"Authorization": Omit()}}
        connections = self.limit.ceiling
        self._client = AsyncOpenAI(
            base_url=self._server.base_url,
            api_key=self._server.key or "none",
            max_retries=0,
            timeout=httpx2.Timeout(None, connect=30.0),
            http_client=DefaultAioHttpClient(
                limits=httpx2.Limits(max_connections=connections, max_keepalive_connections=connections),
                timeout=httpx2.Timeout(None, connect=30.0),
                # Neither the key nor a prompt goes to another server than the one that was named.
                follow_redirects=False,
                event_hooks={"request": [keep_needed]},
            ),
        )
        return self._client


def _is_used_up(status: int | None, refusal: ErrorReply) -> bool:
    """Check whether the server refuses because of the account's credit or spend limit, by its status and codes."""
    return status == PAYMENT_REQUIRED or bool(refusal.codes & USED_UP)


def _next(results: "queue.SimpleQueue[I]", work: "concurrent.futures.Future[None]") -> I | KeyboardInterrupt:
    """The next item; wakes now and then, since a Ctrl-C that comes just before a wait does not end the wait.

    Work that is cancelled before it begins gives none.
    """
    while True:
        with suppress(queue.Empty):
            return results.get(timeout=WAKE_SECONDS)
        if work.cancelled():
            return KeyboardInterrupt()


def _counted(attempts: int) -> str:
    return f"{attempts} attempt{'' if attempts == 1 else 's'}"


def _causes(failure: BaseException) -> Iterator[BaseException]:
    """An exception and what caused it, down to the first cause."""
    cause: BaseException | None = failure
    while cause is not None:
        yield cause
        cause = cause.__cause__
