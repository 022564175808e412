"""Answers that browsers keep as files."""

import re
from collections.abc import Iterable

from starlette.responses import Response, StreamingResponse

MEDIA_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "json": "application/json",
    "jsonl": "application/x-ndjson",
    "md": "text/markdown; charset=utf-8",
    "svg": "image/svg+xml",
    "tex": "application/x-tex; charset=utf-8",
}


def as_file(text: str, name: str) -> Response:
    """A text as a download.

    Args:
        text: Content.
        name: Of the file, with an ending of :data:`MEDIA_TYPES`; what could mislead a browser is taken out of it.
    """
    return Response(text, media_type=_media_type(name), headers=_headers(name))


def as_stream(pieces: Iterable[str], name: str) -> Response:
    """A long text as a download, sent while it is made."""
    return StreamingResponse((piece.encode() for piece in pieces), media_type=_media_type(name), headers=_headers(name))


def _media_type(name: str) -> str:
    return MEDIA_TYPES[name.rpartition(".")[2]]


def _headers(name: str) -> dict[str, str]:
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[-100:]
    return {"Content-Disposition": f'attachment; filename="{safe}"', "Cache-Control": "no-store"}
