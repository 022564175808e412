"""What every answer carries and every request must keep to: headers, hosts, sizes."""

import re

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from climassay.web.access import SESSION_COOKIE
from climassay.web.failures import API
from climassay.web.place import Place

UPLOADS = re.compile(r"/(?:api/v1/)?(?:library|annotate)/(?:.*/)?(?:upload|import|documents)")
"""Paths that take large bodies, from people with an account only."""
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


class _TooMuch(Exception):
    """The body grew over its limit."""


class BodyLimit:
    """Refuses bodies that are too large, by their announced length and while they come in."""

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
        announced = headers.get("content-length", "")
        if announced.isdigit() and int(announced) > limit:
            await self._refuse(scope, receive, send, limit)
            return
        taken, begun = 0, False

        async def counted() -> Message:
            nonlocal taken
            message = await receive()
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
            await self._app(scope, counted, watched)
        except _TooMuch:
            if not begun:
                await self._refuse(scope, receive, send, limit)

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

    @staticmethod
    async def _refuse(scope: Scope, receive: Receive, send: Send, limit: int) -> None:
        said = f"Too large: at most {limit / 2**20:.3g} MB are taken here."
        headers = {"Connection": "close"}
        answer: Response = PlainTextResponse(said, 413, headers)
        if scope["path"].startswith(API):
            answer = JSONResponse({"error": said}, 413, headers)
        await answer(scope, receive, send)
