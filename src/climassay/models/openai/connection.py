"""Connection to one server: an event loop in a thread, persistent connections, and retries."""

import asyncio
import concurrent.futures
import json
import queue
import re
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from climassay.errors import ModelError
from climassay.models.openai.capabilities import REFUSAL_STATUSES, rejected_parameters
from climassay.models.openai.pacing import AdaptiveLimit, Clock, RetryPolicy, parse_retry_after
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


OVERLOADED = frozenset({429, 503, 529})
RETRYABLE = frozenset({408, 409, 425, 429})
PAYMENT_REQUIRED = 402
NO_CREDIT_CODES = frozenset(
    # OpenAI, which also has them with the type insufficient_quota; Azure, DashScope and Perplexity take over the latter
    {"insufficient_quota", "credit_balance_exhausted", "organization_spend_limit_exceeded", "billing_not_active"}
    | {"project_spend_limit_exceeded", "organization_usage_limit_exceeded", "billing_hard_limit_reached"}
    | {"account_deactivated", "access_terminated"}
    # Anthropic, Groq, Moonshot, DashScope, Volcengine, LiteLLM's and One API's gateways, and others
    | {"billing_error", "blocked_api_access", "exceeded_current_quota_error", "arrearage", "accountoverdueerror"}
    | {"budget_exceeded", "insufficient_user_quota", "insufficient_credits", "insufficient_balance"}
    | {"payment_required", "spend_limit_exceeded"}
)
"""Error codes and types for an account without credit or over its spend limit. Such errors are not retried."""
RESUME_ADVICE = "What has been answered is stored: once the account has credit, the same command asks for the rest."
FATAL_STATUS_ADVICE = {
    401: "{key_note}",
    403: "{key_note} The model may not be open to it.",
    404: "Check the model's name and the base URL {base_url}, which usually ends in /v1.",
}
"""Advice by HTTP status, for a wrong key, address or model. These statuses end all requests, unless the server has
already answered one."""
NOT_IMPLEMENTED = 501
"""The only 5xx status that is never retried."""
NO_SUCH_MODEL = re.compile(
    r"model[\W_]+not[\W_]*found|deployment[\W_]*not[\W_]*found|model.{0,80}(?:not exist|not found)", re.I
)
REPEATED_KEY_ERROR = "The server's answer repeats the API key, so it is not kept."
MAX_REFUSED_CONNECTIONS = 3
MAX_UNUSABLE_ANSWERS = 5
"""Number of responses with status 200 but an invalid or incomplete body after which a request fails."""
MIN_RATE_LIMIT_PAUSE = 1.0
"""If an overloaded server requests a pause shorter than this number of seconds, the attempt counts as failed."""
CANCEL_SECONDS = 10.0
READ_SECONDS = 5.0
WAKE_SECONDS = 0.5
BATCH_SECONDS = 0.005
"""Seconds for which results are collected before the calling thread is woken. Waking it for every result would be
slow."""

I = TypeVar("I")  # noqa: E741
O = TypeVar("O")  # noqa: E741
ShowText = Callable[[str], None]
"""Function that is called with the partial text of an answer; each text replaces the previous one."""
STREAMING = ("stream", "stream_options")
"""Parameters that request a stream."""


@dataclass(frozen=True, slots=True)
class _ResultBatch(Generic[O]):
    """Results and previews passed to a calling thread together."""

    results: list[tuple[int, O]]
    texts: dict[int, str]
    """Partial texts by item index, including those of items that have been finished since."""


@dataclass(frozen=True, slots=True)
class RequestOutcome:
    """Result of one request after all attempts: a reply or an error."""

    attempts: int
    reply: Reply | None = None
    error: str | None = None
    status: int | None = None
    """HTTP status of a permanent rejection, otherwise None."""
    error_reply: ErrorReply | None = field(default=None, repr=False)
    """Error reply of the server if it may concern one parameter. The reply may contain the API key, so it is neither
    shown nor stored."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """Result of one attempt."""

    reply: Reply | None = None
    error: str = ""
    status: int | None = None
    is_retryable: bool = False
    is_overloaded: bool = False
    retry_after: float | None = None
    """Time in seconds that the server asks to wait."""
    has_no_credit: bool = False
    """Whether the account cannot pay for further requests."""
    is_refused: bool = False
    """Whether no connection was established."""
    is_unusable: bool = False
    """Whether the body of a response with status 200 is invalid or incomplete. The provider may charge for it all the
    same."""
    is_broken_stream: bool = False
    """Whether a stream began but was not completed."""
    error_reply: ErrorReply | None = field(default=None, repr=False)
    """Error reply of the server; see :attr:`RequestOutcome.error_reply`."""


class Connection:
    """Connection to one server, with its key as a bearer token."""

    def __init__(self, server: Server, concurrency: int, policy: RetryPolicy, clock: Clock) -> None:
        self._server = server
        self._policy = policy
        self._clock = clock
        self.limit = AdaptiveLimit(concurrency, clock)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client: Any = None
        self._options: dict[str, Any] = {}
        self._has_answered = False
        self._start_lock = threading.Lock()
        self._futures: dict[int, concurrent.futures.Future[None]] = {}
        """Running work by the id of the thread that waits for it."""

    def map_items(
        self,
        process_item: Callable[..., Awaitable[O]],
        items: Sequence[I],
        on_result: Callable[[int, O], None] | None,
        on_text: Callable[[int, str], None] | None = None,
    ) -> list[O]:
        """Run asynchronous work on items, up to the maximum number concurrently, and return the results in order.

        Ctrl-C or an error of ``on_result`` cancels the running work; results that were complete by then are still
        passed to ``on_result``.

        Args:
            process_item: Called in the event loop for each item; with ``on_text`` it gets a :data:`ShowText` too.
            items: Items to process.
            on_result: Called in the calling thread with (index, result), in the order of completion.
            on_text: Called in the calling thread with (index, text) for previews; those replaced within milliseconds
                are dropped.
        """
        results: dict[int, O] = {}

        def store(index: int, result: O) -> None:
            results[index] = result
            if on_result is not None:
                on_result(index, result)

        result_queue: queue.SimpleQueue[_ResultBatch[O] | BaseException | None] = queue.SimpleQueue()
        coroutine = self._process_all(process_item, items, result_queue, has_previews=on_text is not None)
        future = asyncio.run_coroutine_threadsafe(coroutine, self._running_loop())
        self._futures[threading.get_ident()] = future
        pending_results: deque[tuple[int, O]] = deque()
        try:
            while isinstance(queue_item := _next_batch(result_queue, future), _ResultBatch):
                pending_results.extend(queue_item.results)
                for index, text in queue_item.texts.items():
                    if on_text is not None:
                        on_text(index, text)
                while pending_results:
                    store(*pending_results.popleft())
        except KeyboardInterrupt:
            future.cancel()
            with suppress(queue.Empty):
                while isinstance(queue_item := result_queue.get(timeout=CANCEL_SECONDS), _ResultBatch):
                    pending_results.extend(queue_item.results)
            while pending_results:
                store(*pending_results.popleft())
            raise
        finally:
            del self._futures[threading.get_ident()]
            future.cancel()
        if queue_item is not None:
            raise queue_item
        return [results[index] for index in range(len(items))]

    def cancel(self, threads: Collection[int]) -> None:
        """Cancel the work of some threads, whose calls then raise KeyboardInterrupt."""
        for thread in threads:
            if (future := self._futures.get(thread)) is not None:
                future.cancel()

    async def send(self, payload: dict[str, Any], show_text: ShowText | None = None) -> RequestOutcome:
        """Send one request until it is answered, rejected, out of attempts or past the deadline.

        Args:
            payload: Request body. After a broken stream, further attempts request whole answers, since some proxies
                break all streams.
            show_text: Receives the partial text of a stream, and an empty text if its attempt fails.
        """
        body = json.dumps(payload).encode()
        show_text = show_text if "stream" in payload else None
        policy, clock = self._policy, self._clock
        start_time: float | None = None
        attempts = n_failures = n_unusable = 0
        error = ""
        while True:
            slot = await self.limit.acquire(self._seconds_left(start_time))
            if slot is None:
                pause = self.limit.paused_until - clock.now()
                last_error = error or "This request was not sent."
                message = (
                    f"The server asks to wait {pause:.0f} s, longer than the deadline of a request allows. {last_error}"
                )
                return RequestOutcome(attempts, error=message)
            start_time = clock.now() if start_time is None else start_time
            seconds_left = self._seconds_left(start_time)
            if seconds_left <= 0:
                self.limit.release(slot, has_succeeded=False, is_overloaded=False)
                message = (
                    f"No answer within {policy.deadline:g} s and {_count_attempts(attempts)}; the last one: {error}"
                )
                return RequestOutcome(attempts, error=message if attempts > 1 else error)
            attempt = Attempt(error="cancelled")
            try:
                attempt = await self._attempt(
                    body, min(seconds_left, policy.attempt_timeout or seconds_left), show_text
                )
            finally:
                self.limit.release(slot, has_succeeded=attempt.reply is not None, is_overloaded=attempt.is_overloaded)
            attempts += 1
            if attempt.reply is not None:
                self._has_answered = True
                return RequestOutcome(attempts, attempt.reply)
            if attempt.is_broken_stream and show_text is not None:
                show_text("")
                payload = {name: value for name, value in payload.items() if name not in STREAMING}
                body, show_text = json.dumps(payload).encode(), None
            error = attempt.error
            self._raise_if_fatal(attempt, attempts, payload)
            if not attempt.is_retryable:
                error_reply = attempt.error_reply if attempt.status in REFUSAL_STATUSES else None
                return RequestOutcome(attempts, error=error, status=attempt.status, error_reply=error_reply)
            requested_wait = attempt.retry_after or 0.0
            # Waits for a rate limit with a stated end are not counted as failures; only the deadline ends them.
            n_failures += int(not attempt.is_overloaded or requested_wait < MIN_RATE_LIMIT_PAUSE)
            n_unusable += int(attempt.is_unusable)
            if n_failures >= policy.max_attempts or n_unusable >= MAX_UNUSABLE_ANSWERS:
                return RequestOutcome(
                    attempts, error=f"No answer after {_count_attempts(attempts)}; the last one: {error}"
                )
            backoff = policy.backoff(n_failures, clock)
            if requested_wait:
                self.limit.pause(
                    max(requested_wait, backoff) if requested_wait < MIN_RATE_LIMIT_PAUSE else requested_wait
                )
            else:
                await clock.sleep(backoff)

    async def read(self, address: str) -> bytes:
        """Return the content at an address of the server; empty bytes if it cannot be read."""
        import httpx2
        from openai import OpenAIError

        client = self._get_client()
        with suppress(TimeoutError, OpenAIError, httpx2.HTTPError, OSError, BadReplyError):
            async with asyncio.timeout(READ_SECONDS):
                response = await client.get(address, cast_to=httpx2.Response, options=self._options)
            return bytes(response.content)
        return b""

    def close(self) -> None:
        """Close connections and the event loop; repeated calls do nothing."""
        loop, self._loop = self._loop, None
        if loop is None:
            return

        async def close_client() -> None:
            client, self._client = self._client, None
            if client is not None:
                await client.close()
            await loop.shutdown_default_executor()

        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(close_client(), loop).result(timeout=CANCEL_SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        self._thread.join(timeout=CANCEL_SECONDS)
        if not self._thread.is_alive():
            loop.close()

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._start_lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="climassay-api", daemon=True)
                self._thread.start()
            return self._loop

    async def _process_all(
        self,
        process_item: Callable[..., Awaitable[O]],
        items: Sequence[I],
        results: "queue.SimpleQueue[_ResultBatch[O] | BaseException | None]",
        *,
        has_previews: bool,
    ) -> None:
        loop = asyncio.get_running_loop()
        item_iterator = iter(enumerate(items))
        batch: list[tuple[int, O]] = []
        texts: dict[int, str] = {}
        is_scheduled = False

        def flush_batch() -> None:
            nonlocal is_scheduled
            is_scheduled = False
            if batch or texts:
                results.put(_ResultBatch(batch.copy(), texts.copy()))
                batch.clear()
                texts.clear()

        def schedule_flush() -> None:
            nonlocal is_scheduled
            if not is_scheduled:
                is_scheduled = True
                loop.call_later(BATCH_SECONDS, flush_batch)

        async def worker() -> None:
            for index, item in item_iterator:

                def show(text: str, index: int = index) -> None:
                    texts[index] = text
                    schedule_flush()

                result = await (process_item(item, show) if has_previews else process_item(item))
                batch.append((index, result))
                schedule_flush()

        error: BaseException | None = None
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self.limit.maximum, len(items))):
                    group.create_task(worker())
        except ExceptionGroup as failures:
            error = failures.exceptions[0]
        except asyncio.CancelledError:
            error = KeyboardInterrupt()
            raise
        finally:
            flush_batch()
            results.put(error)

    def _seconds_left(self, start_time: float | None) -> float:
        """Return the seconds until a request's deadline, given the start of its first attempt or None before that."""
        return self._policy.deadline - (0.0 if start_time is None else self._clock.now() - start_time)

    async def _attempt(self, body: bytes, timeout: float, show_text: ShowText | None) -> Attempt:
        import httpx2
        from aiohttp import ClientConnectorError
        from openai import APIConnectionError, APIStatusError

        client = self._get_client()
        stream: StreamedReply | None = None
        try:
            async with asyncio.timeout(timeout):
                # A raw response instead of the client's models, which cost more than the rest of the request.
                response = await client.post(
                    "/chat/completions",
                    cast_to=httpx2.Response,
                    content=body,
                    options=self._options,
                    stream=show_text is not None,
                )
                # Some servers stream even if no stream is requested.
                if response.headers.get("content-type", "").startswith("text/event-stream"):
                    stream = StreamedReply()
                    content = await self._read_stream(response, stream, show_text or (lambda _: None))
                else:
                    content = await response.aread()
            redacted_content = without_key(content, self._server.key)
            reply = parse_reply(redacted_content) if stream is None else stream.to_reply()
        except TimeoutError:
            error = f"The server did not answer within {round(timeout, 1):g} s."
            return Attempt(error=error, is_retryable=True, is_overloaded=True, is_broken_stream=stream is not None)
        except APIStatusError as failure:
            return self._status_attempt(failure.response)
        except (APIConnectionError, httpx2.HTTPError, OSError) as failure:
            causes = list(_iterate_causes(failure))
            is_refused = any(isinstance(cause, ClientConnectorError) for cause in causes)
            reason = " ".join(str(causes[-1]).split()).rstrip(".") or type(causes[-1]).__name__
            error = self._server.without_key(f"The connection to {self._server.base_url} failed: {reason}.")
            return Attempt(error=error, is_retryable=True, is_refused=is_refused, is_broken_stream=stream is not None)
        except BadReplyError as problem:
            error, error_reply = self._server.without_key(str(problem)), problem.error_reply
            if error_reply is None:
                return Attempt(error=error, is_retryable=True, is_unusable=True, is_broken_stream=stream is not None)
            return Attempt(
                error=error,
                is_retryable=True,
                is_unusable=error_reply.status not in OVERLOADED,
                is_overloaded=error_reply.status in OVERLOADED,
                retry_after=error_reply.wait,
                has_no_credit=_has_no_credit(error_reply.status, error_reply),
                is_broken_stream=stream is not None,
            )
        # The key may also be spread over several parts of the answer.
        repeats_key = redacted_content != content or self._server.without_key(reply.text) != reply.text
        return Attempt(error=REPEATED_KEY_ERROR, is_broken_stream=stream is not None) if repeats_key else Attempt(reply)

    async def _read_stream(self, response: "httpx2.Response", stream: StreamedReply, show_text: ShowText) -> bytes:
        """Read a stream to its end, show the text as it arrives, and return all bytes.

        The API key is hidden, even if only its first characters have arrived.
        """
        received_bytes = bytearray()
        key, previous_text = self._server.key or "", ""
        min_bytes = 0.0
        try:
            async for part in response.aiter_bytes():
                received_bytes += part
                stream.add(part)
                if len(received_bytes) < min_bytes and not stream.done:
                    continue
                # The text is rebuilt from its start, so a long one is shown only each time it has grown by a percent.
                min_bytes = 1.01 * len(received_bytes)
                text = stream.text
                if text != previous_text and self._server.without_key(text) == text:
                    key_prefix_length = next(
                        (n for n in range(min(len(key), len(text)), 0, -1) if text.endswith(key[:n])), 0
                    )
                    show_text(text[: len(text) - key_prefix_length])
                    previous_text = text
                if stream.done:
                    break
        finally:
            await response.aclose()
        return bytes(received_bytes)

    def _status_attempt(self, response: "httpx2.Response") -> Attempt:
        status, headers = response.status_code, response.headers
        message = parse_error_reply(without_key(response.content, self._server.key)).message or response.reason_phrase
        if response.has_redirect_location:
            message = f"it sends requests on to {headers['location']}, which is not followed: name that address"
        error = self._server.without_key(f"The server answered {status}: {message}")
        error += "" if error.endswith((".", "!", "?")) else "."
        error_reply, is_overloaded = parse_error_reply(response.content), status in OVERLOADED
        has_no_credit = _has_no_credit(status, error_reply)
        should_retry = headers.get("x-should-retry")
        is_retryable = (status in RETRYABLE or (status >= 500 and status != NOT_IMPLEMENTED)) and not has_no_credit
        is_retryable = should_retry == "true" if should_retry in ("true", "false") else is_retryable
        retry_after = parse_retry_after(
            headers.get("retry-after"), headers.get("retry-after-ms"), self._clock.wall_time()
        )
        retry_after = (error_reply.wait if retry_after is None else retry_after) if is_retryable else None
        return Attempt(
            None, error, status, is_retryable, is_overloaded, retry_after, has_no_credit, error_reply=error_reply
        )

    def _raise_if_fatal(self, attempt: Attempt, attempts: int, payload: Mapping[str, Any]) -> None:
        """Raise an error if no request can succeed, instead of failing each one.

        A rejected parameter is not fatal, since the request can be sent without it.
        """
        if attempt.has_no_credit:
            raise ModelError(f"{attempt.error} {RESUME_ADVICE}")
        if self._has_answered:
            return
        if attempt.status in FATAL_STATUS_ADVICE and attempt.error_reply is not None:
            if attempt.status in REFUSAL_STATUSES and rejected_parameters(payload, attempt.error_reply):
                return
            server = self._server
            advice = FATAL_STATUS_ADVICE[attempt.status].format(base_url=server.base_url, key_note=server.key_note)
            if server.withholding_reason and attempt.status in (401, 403):
                advice = server.withholding_reason
            elif NO_SUCH_MODEL.search(f"{attempt.error_reply.message} {attempt.error_reply.code}"):
                advice = f"Check the model's name: the server does not offer {payload.get('model')!r} to you."
            raise ModelError(f"{attempt.error} {advice}")
        if attempt.is_refused and attempts >= MAX_REFUSED_CONNECTIONS:
            raise ModelError(f"{attempt.error} Start the server, or correct --base-url.")

    def _get_client(self) -> Any:
        if self._client is not None:
            return self._client
        import httpx2
        from openai import AsyncOpenAI, DefaultAioHttpClient, Omit

        from climassay.models.openai.response_limit import REQUEST_HEADERS, limit_async_response

        async def filter_headers(request: httpx2.Request) -> None:
            self._server.filter_headers(request.headers)

        # The client requires a key, but a server without keys must not receive one.
        self._options = {} if self._server.key else {"headers": {"Authorization": Omit()}}
        max_connections = self.limit.maximum
        self._client = AsyncOpenAI(
            base_url=self._server.base_url,
            api_key=self._server.key or "none",
            max_retries=0,
            timeout=httpx2.Timeout(None, connect=30.0),
            http_client=DefaultAioHttpClient(
                limits=httpx2.Limits(max_connections=max_connections, max_keepalive_connections=max_connections),
                timeout=httpx2.Timeout(None, connect=30.0),
                # Keys and prompts are sent to the named server only.
                follow_redirects=False,
                headers=REQUEST_HEADERS,
                event_hooks={"request": [filter_headers], "response": [limit_async_response]},
            ),
        )
        return self._client


def _has_no_credit(status: int | None, error_reply: ErrorReply) -> bool:
    """Return whether the server rejects a request because of the account's credit or spend limit."""
    return status == PAYMENT_REQUIRED or bool(error_reply.codes & NO_CREDIT_CODES)


def _next_batch(results: "queue.SimpleQueue[I]", future: "concurrent.futures.Future[None]") -> I | KeyboardInterrupt:
    """Return the next item of a queue, or KeyboardInterrupt if the work was cancelled before it began.

    The queue is polled, since a Ctrl-C just before a wait would not end the wait.
    """
    while True:
        with suppress(queue.Empty):
            return results.get(timeout=WAKE_SECONDS)
        if future.cancelled():
            return KeyboardInterrupt()


def _count_attempts(attempts: int) -> str:
    return f"{attempts} attempt{'' if attempts == 1 else 's'}"


def _iterate_causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__
