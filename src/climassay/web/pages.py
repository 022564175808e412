"""Pages from templates: everything is escaped, every form is protected, every asset is ours; lists by pages."""

import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Generic, TypeVar
from urllib.parse import urlencode

from fastapi import Query, Request
from markupsafe import Markup
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse

from climassay import __version__
from climassay.questions import option_letter
from climassay.reporting import counted
from climassay.web.access import (
    CSRF_FIELD,
    DEVICE_COOKIE,
    SESSION_COOKIE,
    VISITOR_COOKIE,
    csrf_token,
    may_read,
    visitor,
)
from climassay.web.app_state import AppState
from climassay.web.failures import TooLarge, explained, plainly

T = TypeVar("T")
PageNumber = Annotated[int, Query(alias="page", ge=1, le=10**6)]
Search = Annotated[str, Query(max_length=200)]
_LEADING = re.compile(r'(\s(?:href|action|formaction|src|data-load)=")/(?!/)')

_TONES = {"done": "good", "failed": "bad", "interrupted": "warn", "stopped": "warn"}
"""The colours of badges that say how work ended."""
_STYLES = {area: f"{area}.css" for area in ("annotate", "checks", "confidence", "library")}
MEDIA_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "json": "application/json",
    "jsonl": "application/x-ndjson",
    "md": "text/markdown; charset=utf-8",
    "svg": "image/svg+xml",
    "tex": "application/x-tex; charset=utf-8",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}


def page(request: Request, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Answer with a page.

    Args:
        request: What is answered.
        template: Below ``climassay/web/templates``; extends ``base.html.j2``, and has the style of its folder.
        status: HTTP status.
        **values: For the template, every one escaped.
    """
    app: AppState = request.app.state.climassay
    user = visitor(request, app)
    token = csrf_token(request)
    field = Markup('<input type="hidden" name="{}" value="{}">').format(CSRF_FIELD, token)
    rendered = (
        environment()
        .get_template(template)
        .render(
            request=request,
            path=request.url.path,
            user=user,
            readable=may_read(user, app),
            after_sign_in=request.url.path + (f"?{request.url.query}" if request.url.query else ""),
            csrf_token=token,
            csrf_field=field,
            version=__version__,
            root=app.settings.prefix,
            style=_STYLES.get(template.partition("/")[0]),
            **values,
        )
    )
    if app.settings.prefix:
        # Values are escaped, so that whatever leads to "/" this way appears in a template of ours.
        rendered = _LEADING.sub(rf"\1{app.settings.prefix}/", rendered)
    answer = HTMLResponse(rendered, status, {"Cache-Control": "no-store"})
    made = getattr(request.state, "new_visitor", None)
    if made is not None:
        keep_cookie(answer, app, VISITOR_COOKIE, made)
    return answer


def readable_text(text: str, most: int, what: str) -> str:
    """What somebody sent, without control characters.

    Args:
        text: As it came.
        most: Characters that are taken.
        what: It is called so in the refusal.

    Raises:
        TooLarge: It is longer than is taken.
    """
    if len(text) > most + text.count("\r\n"):
        raise TooLarge(f"The {what} has {len(text):,} characters, and the limit is {most:,}: send it in parts.")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(char if char in "\n\t" or unicodedata.category(char) != "Cc" else " " for char in text)


def as_file(content: str | Iterable[str | bytes], name: str, media_type: str = "") -> Response:
    """A file as a download; one in pieces is sent while it is made.

    Args:
        content: What is sent.
        name: Of the file, with an ending of :data:`MEDIA_TYPES`; what could mislead a browser is taken out of it.
        media_type: By default that of the ending.
    """
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[-100:]
    headers = {"Content-Disposition": f'attachment; filename="{safe}"', "Cache-Control": "no-store"}
    kind = media_type or MEDIA_TYPES[name.rpartition(".")[2]]
    if isinstance(content, str):
        return Response(content, media_type=kind, headers=headers)
    pieces = (piece if isinstance(piece, bytes) else piece.encode("utf-8", "replace") for piece in content)
    return StreamingResponse(pieces, media_type=kind, headers=headers)


def back_to(url: str) -> RedirectResponse:
    """After a form: show a page, by GET."""
    return RedirectResponse(url, status_code=303)


def safe_next(wanted: str | None) -> str:
    """Where to go after signing in: a path of this server, or the start."""
    if not wanted or not wanted.startswith("/") or wanted[1:2] in ("/", "\\") or any(ord(c) < 33 for c in wanted):
        return "/"
    return wanted


def keep_cookie(answer: Response, app: AppState, name: str, value: str) -> None:
    """Set a cookie that scripts cannot read and other sites do not send."""
    days = {SESSION_COOKIE: app.settings.session_days, DEVICE_COOKIE: 365.0}.get(name)
    age = None if days is None else int(days * 86400)
    answer.set_cookie(name, value, max_age=age, httponly=True, samesite="lax", secure=app.settings.https, path="/")


@cache
def asset(name: str) -> str:
    """Address of a file below ``static``, which changes with its content."""
    content = files("climassay.web").joinpath("static", *name.split("/")).read_bytes()
    return f"/static/{name}?v={hashlib.sha256(content).hexdigest()[:12]}"


def is_web_address(text: str | None) -> bool:
    """Whether a text from data may become a link."""
    return text is not None and re.match(r"https?://[^\s/]", text, re.IGNORECASE) is not None


def day_and_time(moment: float | str | None) -> str:
    """A moment, in seconds or as ISO 8601, in words: ``6 Nov 2026, 11:39 UTC``; a dash where there is none."""
    if moment is None:
        return "–"
    told = datetime.fromisoformat(moment) if isinstance(moment, str) else datetime.fromtimestamp(moment, UTC)
    return f"{told.day} {told:%b %Y, %H:%M} UTC"


def duration(seconds: float) -> str:
    """A duration in words: ``40 s``, ``1 min 5 s``, ``2 h 10 min``."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def rough_duration(seconds: float) -> str:
    """An estimated duration in words, no more exact than it can be: ``about 40 seconds``, ``about 3 minutes``."""
    if seconds < 55:
        number, unit = max(10, 10 * math.ceil(seconds / 10)), "second"
    elif seconds < 3600:
        number, unit = round(seconds / 60), "minute"
    else:
        number, unit = round(seconds / 3600), "hour"
    return f"about {number} {unit}{'' if number == 1 else 's'}"


def laid_out(text: str | None) -> str:
    """JSON in lines of its own for every value; any other text as it is."""
    try:
        value = json.loads(text or "")
    except (ValueError, RecursionError):
        return text or ""
    return json.dumps(value, ensure_ascii=False, indent=2) if isinstance(value, dict | list) else text or ""


@dataclass(frozen=True, slots=True)
class Part(Generic[T]):
    """One page of a list."""

    entries: Sequence[T]
    number: int
    """From 1."""
    pages: int
    total: int
    """Entries of the whole list."""
    first: int
    """Number of the first entry shown; 0 where there is none."""
    address: str
    """Address of the list, with its filters, ready for ``&page=2``."""

    @property
    def last(self) -> int:
        """Number of the last entry shown."""
        return self.first + len(self.entries) - 1 if self.entries else 0

    def at(self, number: int) -> str:
        """Address of another page."""
        return f"{self.address}page={number}"


def within(wanted: int, total: int, size: int) -> int:
    """A page that exists: the one wanted, or the last."""
    return max(1, min(wanted, -(-total // size)))


def part_of(
    entries: Sequence[T], number: int, total: int, size: int, path: str, filters: Mapping[str, object]
) -> Part[T]:
    """A page of a list, whose entries are known; filters that are empty are left out of addresses."""
    query = urlencode([(name, str(value)) for name, value in filters.items() if value not in ("", False, None)])
    address = f"{path}?{query}&" if query else f"{path}?"
    first = (number - 1) * size + 1 if entries else 0
    return Part(entries, number, max(1, -(-total // size)), total, first, address)


def cut(entries: Sequence[T], wanted: int, size: int, path: str, filters: Mapping[str, object]) -> Part[T]:
    """A page of a list that is all there."""
    number = within(wanted, len(entries), size)
    return part_of(entries[(number - 1) * size : number * size], number, len(entries), size, path, filters)


@cache
def environment() -> Any:
    """The templates of all pages, with the filters and functions that they share."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    made = Environment(
        # What fact-checks are shown with is shared with their self-contained pages.
        loader=ChoiceLoader([PackageLoader(f"climassay.{room}", "templates") for room in ("web", "reporting")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {"asset": asset, "counted": counted, "is_web_address": is_web_address}
    made.globals |= {"explain": explained, "in_words": plainly, "letter": option_letter}
    made.globals["tone"] = lambda state: _TONES.get(state, "info")
    made.filters["moment"] = day_and_time
    made.filters |= {"duration": duration, "rough_duration": rough_duration, "explained": explained, "plainly": plainly}
    made.filters["laid_out"] = laid_out
    return made
