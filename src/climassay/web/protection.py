"""What every answer carries and every request must keep to: headers, hosts, sizes."""

import asyncio
import contextlib
import re
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from climassay.web.access import SESSION_COOKIE
from climassay.web.failures import refuse
from climassay.web.place import Place

UPLOADS = re.compile(r"/(?:api/v1/)?(?:library|annotate)/(?:.*/)?(?:upload|import|documents)|/confidence/file")
"""Paths that take large bodies, from people with an account only."""
SILENCE_SECONDS = 20.0
"""Bodies may come in at their slowest pace for so long before a byte of them is there."""
SLOWEST = 1000
"""Bytes a second that a body must bring on the whole."""
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


class SafeHeaders:
    """Adds the headers that browsers need to protect a page; what a page sets itself stays."""

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


class Frontage:
    """Turns what comes from outside into what the pages know: paths without the prefix, and HEAD as GET.

    A proxy may take the prefix away or leave it; what leads a browser elsewhere gets it back.
    """

    def __init__(self, app: ASGIApp, prefix: str) -> None:
        self._app = app
        self._prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path, prefix, head = scope["path"], self._prefix, scope["method"] == "HEAD"
        if prefix and (path == prefix or path.startswith(f"{prefix}/")):
            path = path[len(prefix) :] or "/"
            raw = quote(path, safe="/:@!$&'()*+,;=~").encode()
            scope = {**scope, "path": path, "raw_path": raw}
        if head:
            scope = {**scope, "method": "GET"}

        async def outwards(message: Message) -> None:
            if message["type"] == "http.response.start" and prefix:
                headers = MutableHeaders(scope=message)
                if (place := headers.get("location", "")).startswith("/") and not place.startswith("//"):
                    headers["location"] = prefix + place
            if head and message["type"] == "http.response.body":
                await send({"type": "http.response.body", "body": b""})
                # What would have followed, perhaps for hours, nobody waits for.
                raise _Told
            await send(message)

        with contextlib.suppress(_Told):
            await self._app(scope, receive, outwards)


class _Told(Exception):
    """The head of an answer was sent, which was all that was asked for."""


class _TooMuch(Exception):
    """The body grew over its limit."""


class _TooSlow(Exception):
    """The body does not come in."""


class BodyLimit:
    """Refuses bodies that are too large or too slow, by their announced length and while they come in.

    A short one is taken in whole before anything else is done, so that nobody holds a turn by sending slowly.
    """

    def __init__(self, app: ASGIApp, place: Place) -> None:
        self._app = app
        self._place = place

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        limit = await self._limit(scope["path"], headers)
        too_much = f"Too large: at most {limit / 2**20:.3g} MB are taken here."
        announced = headers.get("content-length", "")
        if announced.isdigit() and int(announced) > limit:
            await refuse(scope, receive, send, 413, too_much)
            return
        taken, begun, waited, ended = 0, False, 0.0, False
        clock = asyncio.get_running_loop().time

        async def counted() -> Message:
            nonlocal taken, waited, ended
            if ended:
                return await receive()
            since = clock()
            try:
                message = await asyncio.wait_for(receive(), SILENCE_SECONDS + taken / SLOWEST - waited)
            except TimeoutError:
                raise _TooSlow from None
            waited += clock() - since
            ended = not message.get("more_body", False)
            taken += len(message.get("body", b""))
            if taken > limit:
                raise _TooMuch
            return message

        async def watched(message: Message) -> None:
            nonlocal begun
            if taken > limit and not begun:
                # Whatever the application makes of the cut body, the reason is its size.
                raise _TooMuch
            begun = True
            await send(message)

        try:
            if limit <= self._place.settings.form_bytes:
                await self._app(scope, await _whole(counted, receive), send)
            else:
                await self._app(scope, counted, watched)
        except _TooMuch:
            if not begun:
                await refuse(scope, receive, send, 413, too_much)
        except _TooSlow:
            if not begun:
                await refuse(scope, receive, send, 408, "The request came in too slowly.")

    async def _limit(self, path: str, headers: Headers) -> int:
        settings = self._place.settings
        if not UPLOADS.fullmatch(path):
            return settings.form_bytes
        from starlette.concurrency import run_in_threadpool
        from starlette.requests import cookie_parser

        scheme, _, token = headers.get("authorization", "").partition(" ")
        session = cookie_parser(headers.get("cookie", "")).get(SESSION_COOKIE)
        accounts = self._place.accounts
        known = None
        if scheme.lower() == "bearer" and path.startswith("/api/"):
            known = await run_in_threadpool(accounts.token_user, token.strip())
        elif session:
            known = await run_in_threadpool(accounts.session_user, session)
        return settings.upload_bytes if known is not None else settings.form_bytes


async def _whole(body: Receive, receive: Receive) -> Receive:
    """What gives a body that has come in already, and afterwards whatever else comes."""
    parts, more = [], True
    while more:
        message = await body()
        if message["type"] != "http.request":
            break
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    first: list[Message] = [{"type": "http.request", "body": b"".join(parts), "more_body": False}]

    async def given() -> Message:
        return first.pop() if first else await receive()

    return given
