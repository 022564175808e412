"""What every request must keep to and every answer carries: turns, sizes, headers, nothing private for the public."""

import asyncio
import contextlib
import os
import re
from pathlib import Path
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from climassay.errors import ClimassayError
from climassay.web.access import visitor
from climassay.web.app_state import AppState
from climassay.web.failures import refuse
from climassay.web.limits import MANY, RETRY_SECONDS, visitor_address
from climassay.workspace import CACHE_VARIABLE, COLLECTIONS_VARIABLE

UPLOADS = re.compile(r"/library/upload|/annotate/[^/]+/import|/api/v1/annotate/datasets/[^/]+/import")
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

FOLDER, SERVER = b"(a folder of the server)", b"(a server)"
_TEXTS = ("text/", "application/json", "application/ld+json", "application/x-ndjson")
_LONGEST_WORD = 4096
"""Bytes that are kept back at most where a piece of an answer ends within a word."""
# A backslash goes with what follows it: in JSON the one before a quotation mark is no part of a path or an address.
_ESCAPED = rb"\\[^\s\"]"
_REST = rb"(?:[^\s\"'<>,;()\[\]{}|\\]|" + _ESCAPED + rb")*"
_PATHS = re.compile(
    rb"(?<![\w./:~-])(?:/(?:home|root|Users|srv|var|opt|mnt|media|tmp|usr|private|etc)/|~/|[A-Za-z]:\\{1,2}(?=\w))"
    + _REST
)
_API = re.compile(rb"/v\d+(?:beta\d*)?/?(?:chat/completions|completions|embeddings|models|responses)?/?$")
_NAMED_SERVER = re.compile(
    rb"(base_url(?:\"|&#34;)?\s*(?::|=|</(?:dt|th|td)>\s*<(?:dd|td)[^>]*>)\s*(?:\"|&#34;)?)(?:[^\s\"<&,\\]|"
    + _ESCAPED
    + rb")+"
)
_ADDRESSES = re.compile(
    rb"\b(?:https?|postgres(?:ql)?(?:\+\w+)?|sqlite|s3|gs|az)://(?:[^\s\"'<>@/]*@)?"
    rb"(?P<host>\[[0-9a-f:.]+\]|[^\s\"'<>/:?#,;)\\]*)(?P<port>:\d+)?(?:[^\s\"'<>,;)\\]|" + _ESCAPED + rb")*",
    re.IGNORECASE,
)
_PUBLIC_HOST = re.compile(rb"(?!(?:127|10|0)\.|192\.168\.|169\.254\.|172\.(?:1[6-9]|2\d|3[01])\.)[\w.-]+\.[\w-]+", re.I)
_PRIVATE_ENDINGS = (b".local", b".internal", b".lan", b".localdomain", b".home", b".corp", b".intranet")


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


class Compressed(GZipMiddleware):
    """Compresses what is worth it, for who takes it: neither short answers, nor pictures, nor event streams.

    The compressed form of a file is not byte for byte the file, so that its ETag becomes a weak one.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

        async def weakened(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if "content-encoding" in headers and headers.get("etag", "").startswith('"'):
                    headers["etag"] = f"W/{headers['etag']}"
            await send(message)

        await super().__call__(scope, receive, weakened)


class PathPrefix:
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
                raise _HeadSent
            await send(message)

        with contextlib.suppress(_HeadSent):
            await self._app(scope, receive, outwards)


class _HeadSent(Exception):
    """The head of an answer was sent, which was all that was asked for."""


class _TooMuch(Exception):
    """The body grew over its limit."""


class _TooSlow(Exception):
    """The body does not come in."""


class BodyLimit:
    """Refuses bodies that are too large or too slow, by their announced length and while they come in.

    A short one is taken in whole before anything else is done, so that nobody holds a turn by sending slowly.
    """

    def __init__(self, app: ASGIApp, state: AppState) -> None:
        self._app = app
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        limit = await self._limit(scope)
        too_much = f"Too large: the limit here is {limit / 2**20:.3g} MB."
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
            if limit <= self._state.settings.form_bytes:
                await self._app(scope, await _whole(counted, receive), send)
            else:
                await self._app(scope, counted, watched)
        except _TooMuch:
            if not begun:
                await refuse(scope, receive, send, 413, too_much)
        except _TooSlow:
            if not begun:
                await refuse(scope, receive, send, 408, "The request came in too slowly.")

    async def _limit(self, scope: Scope) -> int:
        settings = self._state.settings
        if not UPLOADS.fullmatch(scope["path"]):
            return settings.form_bytes
        known = await run_in_threadpool(visitor, HTTPConnection(scope), self._state)
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


class Turns:
    """Has requests of visitors without an account answered a few at a time, so that they leave room for the others."""

    def __init__(self, app: ASGIApp, state: AppState) -> None:
        self._app = app
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        signing_in = scope.get("path") == "/sign-in" and scope["method"] == "POST"  # It takes a turn after its wait.
        if scope["type"] != "http" or signing_in or scope["path"].startswith("/static/"):
            await self._app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        address, visitors = visitor_address(connection), self._state.visitors
        try:
            user = await run_in_threadpool(visitor, connection, self._state)
        except ClimassayError:
            user = None  # The database is away; whoever answers says so.
        if user is not None:
            await self._app(scope, receive, send)
            return
        if visitors.full_for(address):
            await refuse(scope, receive, send, 503, MANY, {"Retry-After": str(RETRY_SECONDS)})
            return
        await visitors.begin(address)
        mine = True

        async def passed_on(message: Message) -> None:
            nonlocal mine
            # From here on the work is to send: who reads slowly keeps nobody waiting.
            if mine:
                mine = False
                visitors.end(address)
            await send(message)

        try:
            await self._app(scope, receive, passed_on)
        finally:
            if mine:
                visitors.end(address)


class PublicView:
    """Takes folders of this machine, the servers behind it and its database out of answers to the public.

    Such words get into pages from many sides: configurations of runs, errors of models and readers, names of files.
    They are taken out of the answer, whatever made it; what is stored stays as it is, and people with an account see
    all of it.
    """

    def __init__(self, app: ASGIApp, state: AppState) -> None:
        self._app = app
        self._own = state.settings.root.encode()
        folders = [state.workspace.root, Path.home(), Path.cwd(), os.environ.get(CACHE_VARIABLE)]
        # The longest first: a workspace lies in a home folder.
        known = sorted({str(one) for one in folders if one and len(str(one)) > 1}, key=len, reverse=True)
        self._folders = re.compile(
            rb"(?<![\w./:~-])(?:" + b"|".join(re.escape(one.encode()) for one in known) + rb")(?![\w-])" + _REST
        )
        given = [os.environ.get(COLLECTIONS_VARIABLE), os.environ.get("OPENAI_BASE_URL")]
        servers = sorted({one.rstrip("/") for one in given if one}, key=len, reverse=True)
        self._servers = re.compile(b"|".join(re.escape(one.encode()) for one in servers) or rb"(?!)")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        state = scope.get("state", {})
        if scope["type"] != "http" or "user" not in state or state["user"] is not None:
            await self._app(scope, receive, send)
            return
        start: Message | None = None
        text, rest = False, b""

        async def outwards(message: Message) -> None:
            nonlocal start, text, rest
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                text = headers.get("content-type", "").startswith(_TEXTS) and "content-encoding" not in headers
                if not text:
                    await send(message)
                start = message
                return
            if not text:
                await send(message)
                return
            whole, more = rest + message.get("body", b""), message.get("more_body", False)
            # A word may go on in the next piece.
            cut = len(whole) if not more else max(whole.rfind(b" "), whole.rfind(b"\n"), len(whole) - _LONGEST_WORD) + 1
            shown, rest = self.shown(whole[:cut]), whole[cut:]
            if start is not None:
                headers = MutableHeaders(scope=start)
                if more:
                    del headers["content-length"]
                elif "content-length" in headers:
                    headers["content-length"] = str(len(shown))
                await send(start)
                start = None
            await send({**message, "body": shown})

        await self._app(scope, receive, outwards)

    def shown(self, text: bytes) -> bytes:
        """A text without folders and addresses that are nobody else's business."""
        text = _ADDRESSES.sub(self._address, self._servers.sub(SERVER, text))
        text = _NAMED_SERVER.sub(lambda match: match[1] + SERVER, text)
        return _PATHS.sub(FOLDER, self._folders.sub(FOLDER, text))

    def _address(self, match: re.Match[bytes]) -> bytes:
        host = match["host"].lower()
        public = _PUBLIC_HOST.fullmatch(host) and not match["port"] and not host.endswith(_PRIVATE_ENDINGS)
        page = match[0][:4].lower() == b"http" and b"@" not in match[0] and not _API.search(match[0])
        return match[0] if match[0].startswith(self._own) or (public and page) else SERVER
