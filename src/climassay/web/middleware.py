"""Middleware of every request and response: headers, compression, path prefix, size of bodies, slots of visitors."""

import asyncio
import contextlib
import re
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from climassay.errors import ClimassayError
from climassay.web.access import SAFE_METHODS, current_user
from climassay.web.app_state import AppState
from climassay.web.failures import refuse
from climassay.web.limits import BUSY_MESSAGE, RETRY_SECONDS, Overloaded, visitor_address

UPLOAD_PATHS = re.compile(r"/library/upload|/annotate|/annotate/[^/]+/import|/api/v1/annotate/datasets/[^/]+/import")
"""Paths that accept large bodies, from signed-in users only."""
GRACE_SECONDS = 20.0
"""Seconds that a body may take in addition to the time that :data:`MIN_BYTES_PER_SECOND` allows."""
MIN_BYTES_PER_SECOND = 1000
"""Minimum average rate at which a body must arrive."""
HEADERS = {
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
"""Security headers of every response."""


class SecurityHeaders:
    """Middleware that adds security headers; headers that a page sets itself are kept."""

    def __init__(self, app: ASGIApp, https: bool = False) -> None:
        self._app = app
        self._headers = dict(HEADERS)
        if https:
            self._headers["strict-transport-security"] = "max-age=31536000"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

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
    """Starlette's compression, which also weakens ETags: a compressed file differs from the file in its bytes."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

        async def send_with_weak_etag(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if "content-encoding" in headers and headers.get("etag", "").startswith('"'):
                    headers["etag"] = f"W/{headers['etag']}"
            await send(message)

        await super().__call__(scope, receive, send_with_weak_etag)


class _HeadSent(Exception):
    """Signal that the headers of a HEAD request were sent."""


class PathPrefix:
    """Middleware that removes the path prefix from requests, adds it to redirects, and answers HEAD as GET.

    A proxy may remove the prefix itself or leave it.
    """

    def __init__(self, app: ASGIApp, prefix: str) -> None:
        self._app = app
        self._prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
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
    """A body exceeds its limit."""


class _BodyTooSlow(Exception):
    """A body arrives more slowly than :data:`MIN_BYTES_PER_SECOND`."""


class BodyLimit:
    """Middleware that refuses bodies which are too large or too slow.

    Small bodies are read before the request is passed on, so that a slow sender does not occupy a slot.
    """

    def __init__(self, app: ASGIApp, state: AppState) -> None:
        self._app = app
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["method"] in SAFE_METHODS:
            await self._app(scope, receive, send)
            return
        limit = await self._limit(scope)
        too_large = f"Too large: the limit here is {limit / 2**20:.3g} MB."
        content_length = Headers(scope=scope).get("content-length", "")
        if content_length.isdigit() and int(content_length) > limit:
            await refuse(scope, receive, send, 413, too_large)
            return
        n_bytes, waited, is_complete, is_answered = 0, 0.0, False, False
        clock = asyncio.get_running_loop().time

        async def receive_limited() -> Message:
            nonlocal n_bytes, waited, is_complete
            if is_complete:
                return await receive()
            start = clock()
            try:
                message = await asyncio.wait_for(receive(), GRACE_SECONDS + n_bytes / MIN_BYTES_PER_SECOND - waited)
            except TimeoutError:
                raise _BodyTooSlow from None
            waited += clock() - start
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
                await refuse(scope, receive, send, 413, too_large)
        except _BodyTooSlow:
            if not is_answered:
                await refuse(scope, receive, send, 408, "The request came in too slowly.")

    async def _limit(self, scope: Scope) -> int:
        settings = self._state.settings
        if not UPLOAD_PATHS.fullmatch(scope["path"]):
            return settings.form_bytes
        user = await run_in_threadpool(current_user, HTTPConnection(scope), self._state)
        return settings.form_bytes if user is None else settings.upload_bytes


async def buffer_body(receive_body: Receive, receive: Receive) -> Receive:
    """Read the whole request body and return a receive callable that replays it.

    Args:
        receive_body: Receives the messages of the body.
        receive: Receives the messages after the body.
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
    """Middleware that answers a few requests of visitors without an account at a time."""

    def __init__(self, app: ASGIApp, state: AppState) -> None:
        self._app = app
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        # Signing in waits for its slot itself, after the delay for wrong passwords.
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
                await refuse(scope, receive, send, 503, BUSY_MESSAGE, {"Retry-After": str(RETRY_SECONDS)})
                return

            async def send_without_slot(message: Message) -> None:
                # The page is rendered: a client that reads slowly must not occupy the slot.
                await slot.aclose()
                await send(message)

            await self._app(scope, receive, send_without_slot)
