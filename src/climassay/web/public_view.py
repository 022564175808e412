"""What visitors without an account are not shown: folders of this machine, the servers behind it, its database.

Such words get into pages from many sides: configurations of runs, errors of models and readers, names of files. They
are taken out of the answer, whatever made it; what is stored stays as it is, and people with an account see all of it.
"""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from climassay.workspace import CACHE_VARIABLE, COLLECTIONS_VARIABLE

if TYPE_CHECKING:
    from climassay.web.place import Place

FOLDER, SERVER = b"(a folder of the server)", b"(a server)"
_TEXTS = ("text/", "application/json", "application/ld+json", "application/x-ndjson")
_LONGEST_WORD = 4096
"""Bytes that are kept back at most where a piece of an answer ends within a word."""
_REST = rb"[^\s\"'<>,;()\[\]{}|]*"
_PATHS = re.compile(
    rb"(?<![\w./:~-])(?:/(?:home|root|Users|srv|var|opt|mnt|media|tmp|usr|private|etc)/|~/|[A-Za-z]:\\{1,2}(?=\w))"
    + _REST
)
_API = re.compile(rb"/v\d+(?:beta\d*)?/?(?:chat/completions|completions|embeddings|models|responses)?/?$")
_NAMED_SERVER = re.compile(
    rb"(base_url(?:\"|&#34;)?\s*(?::|=|</(?:dt|th|td)>\s*<(?:dd|td)[^>]*>)\s*(?:\"|&#34;)?)[^\s\"<&,]+"
)
_ADDRESSES = re.compile(
    rb"\b(?:https?|postgres(?:ql)?(?:\+\w+)?|sqlite|s3|gs|az)://(?:[^\s\"'<>@/]*@)?"
    rb"(?P<host>\[[0-9a-f:.]+\]|[^\s\"'<>/:?#,;)]*)(?P<port>:\d+)?[^\s\"'<>,;)]*",
    re.IGNORECASE,
)
_PUBLIC_HOST = re.compile(rb"(?!(?:127|10|0)\.|192\.168\.|169\.254\.|172\.(?:1[6-9]|2\d|3[01])\.)[\w.-]+\.[\w-]+", re.I)
_PRIVATE_ENDINGS = (b".local", b".internal", b".lan", b".localdomain", b".home", b".corp", b".intranet")


class PublicView:
    """Takes what is the operator's own business out of answers to visitors without an account."""

    def __init__(self, app: ASGIApp, place: "Place") -> None:
        self._app = app
        self._own = place.settings.root.encode()
        folders = [place.workspace.root, Path.home(), Path.cwd(), os.environ.get(CACHE_VARIABLE)]
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
