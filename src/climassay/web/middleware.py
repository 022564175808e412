"""Middleware for all requests and responses: headers, compression, path prefix, limits on bodies, slots of visitors."""

import asyncio
import contextlib
import re
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from climassay.errors import ClimassayError, RecordsError
from climassay.web.access import SAFE_METHODS, current_user
from climassay.web.app_state import AppState
from climassay.web.failures import describe_outage, send_error
from climassay.web.limits import BUSY_MESSAGE, RETRY_SECONDS, Overloaded, visitor_address

UPLOAD_PATH_PATTERN = re.compile(
    r"/library/upload|/annotate|/annotate/[^/]+/import|/api/v1/annotate/datasets/[^/]+/import"
)
"""Pattern of the paths to which signed-in users may send large bodies."""
GRACE_SECONDS = 20.0
"""Time allowed for a request body to arrive, in seconds. One second per :data:`MIN_BYTES_PER_SECOND` bytes is added."""
MIN_BYTES_PER_SECOND = 1000
"""Minimum average rate, in bytes per second, at which a request body must arrive after :data:`GRACE_SECONDS`."""
SECURITY_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'; manifest-src 'self'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
"""Security headers of all responses."""


class SecurityHeaders:
    """Middleware that adds security headers to responses that lack them."""

    def __init__(self, app: ASGIApp, https: bool = False) -> None:
        self._app = app
        self._headers = dict(SECURITY_HEADERS)
        if https:
            self._headers["strict-transport-security"] = "max-age=31536000"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request and add the headers to its response."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
                if not scope["path"].startswith("/static/"):
                    headers.setdefault("cache-control", "no-store")
            await send(message)

        await self._app(scope, receive, send_with_headers)


class Compression(GZipMiddleware):
    """Starlette's compression middleware; it also marks the ETags of compressed responses as weak."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request and compress its response if the client accepts that."""

        async def send_with_weak_etag(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if "content-encoding" in headers and headers.get("etag", "").startswith('"'):
                    headers["etag"] = f"W/{headers['etag']}"
            await send(message)

        await super().__call__(scope, receive, send_with_weak_etag)


class _HeadSent(Exception):
    """Signal that the response to a HEAD request is complete. No body is produced."""


class PathPrefix:
    """Middleware that removes the path prefix from requests, adds it to redirects, and handles HEAD requests.

    The prefix is only removed if the proxy has not already done so. HEAD requests are handled like GET, without a body.
    """

    def __init__(self, app: ASGIApp, prefix: str) -> None:
        self._app = app
        self._prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request without the path prefix."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path, prefix, is_head = scope["path"], self._prefix, scope["method"] == "HEAD"
        if prefix and (path == prefix or path.startswith(f"{prefix}/")):
            path = path[len(prefix) :] or "/"
            scope = {**scope, "path": path, "raw_path": quote(path, safe="/:@!$&'()*+,;=~").encode()}
        if is_head:
            scope = {**scope, "method": "GET"}

        async def send_with_prefix(message: Message) -> None:
            if message["type"] == "http.response.start" and prefix:
                headers = MutableHeaders(scope=message)
                location = headers.get("location", "")
                if location.startswith("/") and not location.startswith("//"):
                    headers["location"] = prefix + location
            if is_head and message["type"] == "http.response.body":
                await send({"type": "http.response.body", "body": b""})
                # Event streams would otherwise continue for hours.
                raise _HeadSent
            await send(message)

        with contextlib.suppress(_HeadSent):
            await self._app(scope, receive, send_with_prefix)


class _BodyTooLarge(Exception):
    """Exception for a request body that exceeds its size limit."""


class _BodyTooSlow(Exception):
    """Exception for a request body that arrives more slowly than :data:`MIN_BYTES_PER_SECOND`."""


class BodyLimit:
    """Middleware that refuses request bodies that are too large or arrive too slowly.

    Bodies other than uploads are read completely before the request is passed on, so that a slow client does not occupy
    one of the slots of :class:`VisitorSlots`.
    """

    def __init__(self, app: ASGIApp, state: AppState) -> None:
        self._app = app
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, or refuse it with status 413 (too large) or 408 (too slow)."""
        if scope["type"] != "http" or scope["method"] in SAFE_METHODS:
            await self._app(scope, receive, send)
            return
        try:
            limit = await self._limit(scope)
        except RecordsError as error:
            sentence = describe_outage(error) or "The server cannot do this at the moment; its log says why."
            await send_error(scope, receive, send, 503, sentence, {"Retry-After": str(RETRY_SECONDS)})
            return
        message_if_too_large = f"Too large: the limit here is {limit / 2**20:.3g} MB."
        content_length = Headers(scope=scope).get("content-length", "")
        if content_length.isdigit() and int(content_length) > limit:
            await send_error(scope, receive, send, 413, message_if_too_large)
            return
        n_bytes, waiting_seconds, is_complete, is_answered = 0, 0.0, False, False
        clock = asyncio.get_running_loop().time

        async def receive_limited() -> Message:
            nonlocal n_bytes, waiting_seconds, is_complete
            if is_complete:
                return await receive()
            start_seconds = clock()
            try:
                message = await asyncio.wait_for(
                    receive(), GRACE_SECONDS + n_bytes / MIN_BYTES_PER_SECOND - waiting_seconds
                )
            except TimeoutError:
                raise _BodyTooSlow from None
            waiting_seconds += clock() - start_seconds
            is_complete = not message.get("more_body", False)
            n_bytes += len(message.get("body", b""))
            if n_bytes > limit:
                raise _BodyTooLarge
            return message

        async def send_within_limit(message: Message) -> None:
            nonlocal is_answered
            if n_bytes > limit and not is_answered:
                # The application may have caught the exception of the body; the response must still be 413.
                raise _BodyTooLarge
            is_answered = True
            await send(message)

        try:
            if limit <= self._state.settings.form_bytes:
                await self._app(scope, await buffer_body(receive_limited, receive), send)
            else:
                await self._app(scope, receive_limited, send_within_limit)
        except _BodyTooLarge:
            if not is_answered:
                await send_error(scope, receive, send, 413, message_if_too_large)
        except _BodyTooSlow:
            if not is_answered:
                await send_error(scope, receive, send, 408, "The request came in too slowly.")

    async def _limit(self, scope: Scope) -> int:
        settings = self._state.settings
        if not UPLOAD_PATH_PATTERN.fullmatch(scope["path"]):
            return settings.form_bytes
        user = await run_in_threadpool(current_user, HTTPConnection(scope), self._state)
        return settings.form_bytes if user is None else settings.upload_bytes


async def buffer_body(receive_body: Receive, receive: Receive) -> Receive:
    """Read the whole request body, and return a receive callable that replays it.

    ``receive_body`` receives the messages of the body, ``receive`` later messages.
    """
    parts, more_body = [], True
    while more_body:
        message = await receive_body()
        if message["type"] != "http.request":
            break
        parts.append(message.get("body", b""))
        more_body = message.get("more_body", False)
    messages: list[Message] = [{"type": "http.request", "body": b"".join(parts), "more_body": False}]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay


class VisitorSlots:
    """Middleware that limits how many requests of visitors without an account are handled at the same time."""

    def __init__(self, app: ASGIApp, state: AppState) -> None:
        self._app = app
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request as soon as a slot is free, or refuse it if too many are waiting."""
        # Requests to sign in wait for their slot later, after the delay for wrong passwords.
        is_sign_in = scope.get("path") == "/sign-in" and scope["method"] == "POST"
        if scope["type"] != "http" or is_sign_in or scope["path"].startswith("/static/"):
            await self._app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        try:
            user = await run_in_threadpool(current_user, connection, self._state)
        except ClimassayError:
            user = None  # The database cannot be read; the page reports it.
        if user is not None:
            await self._app(scope, receive, send)
            return
        async with contextlib.AsyncExitStack() as slot:
            try:
                await slot.enter_async_context(self._state.visitors.slot(visitor_address(connection)))
            except Overloaded:
                await send_error(scope, receive, send, 503, BUSY_MESSAGE, {"Retry-After": str(RETRY_SECONDS)})
                return

            async def send_without_slot(message: Message) -> None:
                # The response is ready; a client that reads it slowly must not occupy the slot.
                await slot.aclose()
                await send(message)

            await self._app(scope, receive, send_without_slot)
