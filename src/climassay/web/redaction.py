"""Redaction of private paths and addresses from responses to visitors without an account.

Paths of this machine, and addresses of model servers and of the database, can occur in configurations of runs, error
messages and file names. They are redacted from all responses. Stored data are unchanged, and signed-in users see them
in full.
"""

import os
import re
from pathlib import Path

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from climassay.web.app_state import AppState
from climassay.workspace import CACHE_VARIABLE, COLLECTIONS_VARIABLE

FOLDER, SERVER = b"(a folder of the server)", b"(a server)"
"""Texts that replace private paths and private addresses."""
_TEXT_TYPES = ("text/", "application/json", "application/ld+json", "application/x-ndjson")
_MAX_WORD_BYTES = 4096
"""Maximum number of bytes at the end of a chunk that are held back because they may be an incomplete word."""
# A backslash belongs to the next character: in JSON, the backslash before a quotation mark is not part of a path.
_ESCAPED_CHARACTER = rb"\\[^\s\"]"
_PATH_REST = rb"(?:[^\s\"'<>,;()\[\]{}|\\]|" + _ESCAPED_CHARACTER + rb")*"
_PATHS = re.compile(
    rb"(?<![\w./:~-])(?:/(?:home|root|Users|srv|var|opt|mnt|media|tmp|usr|private|etc)/|~/|[A-Za-z]:\\{1,2}(?=\w))"
    + _PATH_REST
)
_MODEL_API = re.compile(rb"/v\d+(?:beta\d*)?/?(?:chat/completions|completions|embeddings|models|responses)?/?$")
_BASE_URL = re.compile(
    rb"(base_url(?:\"|&#34;)?\s*(?::|=|</(?:dt|th|td)>\s*<(?:dd|td)[^>]*>)\s*(?:\"|&#34;)?)(?:[^\s\"<&,\\]|"
    + _ESCAPED_CHARACTER
    + rb")+"
)
_ADDRESSES = re.compile(
    rb"\b(?:https?|postgres(?:ql)?(?:\+\w+)?|sqlite|s3|gs|az)://(?:[^\s\"'<>@/]*@)?"
    rb"(?P<host>\[[0-9a-f:.]+\]|[^\s\"'<>/:?#,;)\\]*)(?P<port>:\d+)?(?:[^\s\"'<>,;)\\]|" + _ESCAPED_CHARACTER + rb")*",
    re.IGNORECASE,
)
_PUBLIC_HOST = re.compile(rb"(?!(?:127|10|0)\.|192\.168\.|169\.254\.|172\.(?:1[6-9]|2\d|3[01])\.)[\w.-]+\.[\w-]+", re.I)
_PRIVATE_DOMAINS = (b".local", b".internal", b".lan", b".localdomain", b".home", b".corp", b".intranet")


class Redactor:
    """Redactor that replaces a server's private paths and addresses in texts."""

    def __init__(self, state: AppState) -> None:
        self._root = state.settings.root.encode()
        folders = [state.workspace.root, Path.home(), Path.cwd(), os.environ.get(CACHE_VARIABLE)]
        # Longest first, because a workspace often lies in a home folder.
        names = sorted({str(folder) for folder in folders if folder and len(str(folder)) > 1}, key=len, reverse=True)
        alternatives = b"|".join(re.escape(name.encode()) for name in names)
        self._folders = re.compile(rb"(?<![\w./:~-])(?:" + alternatives + rb")(?![\w-])" + _PATH_REST)
        variables = [os.environ.get(COLLECTIONS_VARIABLE), os.environ.get("OPENAI_BASE_URL")]
        urls = sorted({url.rstrip("/") for url in variables if url}, key=len, reverse=True)
        self._servers = re.compile(b"|".join(re.escape(url.encode()) for url in urls) or rb"(?!)")

    def redact(self, text: bytes) -> bytes:
        """Return a UTF-8 text with private paths and addresses replaced."""
        text = _ADDRESSES.sub(self._redact_address, self._servers.sub(SERVER, text))
        text = _BASE_URL.sub(lambda match: match[1] + SERVER, text)
        return _PATHS.sub(FOLDER, self._folders.sub(FOLDER, text))

    def _redact_address(self, match: re.Match[bytes]) -> bytes:
        host = match["host"].lower()
        is_public = _PUBLIC_HOST.fullmatch(host) and not match["port"] and not host.endswith(_PRIVATE_DOMAINS)
        is_page = match[0][:4].lower() == b"http" and b"@" not in match[0] and not _MODEL_API.search(match[0])
        return match[0] if match[0].startswith(self._root) or (is_public and is_page) else SERVER


class RedactedResponses:
    """Middleware that redacts private paths and addresses in text responses to visitors without an account."""

    def __init__(self, app: ASGIApp, state: AppState) -> None:
        self._app = app
        self._redactor = Redactor(state)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request and redact its response."""
        state = scope.get("state", {})
        if scope["type"] != "http" or "user" not in state or state["user"] is not None:
            await self._app(scope, receive, send)
            return
        start_message: Message | None = None
        is_text, held_bytes = False, b""

        async def send_redacted(message: Message) -> None:
            nonlocal start_message, is_text, held_bytes
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                is_text = headers.get("content-type", "").startswith(_TEXT_TYPES) and "content-encoding" not in headers
                start_message = message if is_text else None
            if not is_text:
                await send(message)
            if message["type"] == "http.response.start" or not is_text:
                return
            text, more_body = held_bytes + message.get("body", b""), message.get("more_body", False)
            end = len(text)
            if more_body:  # The last word may continue in the next chunk.
                end = max(text.rfind(b" "), text.rfind(b"\n"), len(text) - _MAX_WORD_BYTES) + 1
            body, held_bytes = self._redactor.redact(text[:end]), text[end:]
            if start_message is not None:
                headers = MutableHeaders(scope=start_message)
                if more_body:
                    del headers["content-length"]
                elif "content-length" in headers:
                    headers["content-length"] = str(len(body))
                await send(start_message)
                start_message = None
            await send({**message, "body": body})

        await self._app(scope, receive, send_redacted)
