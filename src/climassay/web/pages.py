"""Render pages from templates, and provide downloads, redirects, cookies, and lists that are split into pages."""

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
from climassay.reporting.html import breakable
from climassay.web.access import (
    CSRF_FIELD,
    DEVICE_COOKIE,
    SESSION_COOKIE,
    VISITOR_COOKIE,
    csrf_token,
    current_user,
    may_read,
)
from climassay.web.app_state import AppState
from climassay.web.failures import TooLarge, explain, plain_message

T = TypeVar("T")
PageNumber = Annotated[int, Query(alias="page", ge=1, le=10**6)]
Search = Annotated[str, Query(max_length=200)]
_ROOT_LINK = re.compile(r'(\s(?:href|action|formaction|src|data-load)=")/(?!/)')

_BADGE_STYLES = {"done": "good", "failed": "bad", "interrupted": "warn", "stopped": "warn"}
"""CSS class of the badge for each state of a job or run; ``info`` for other states."""
_STYLE_SHEETS = {area: f"{area}.css" for area in ("annotate", "checks", "confidence", "library")}
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
    """Render a template as a response.

    Args:
        request: Request to answer.
        template: Path of the template below ``climassay/web/templates``; the style sheet of its folder is included.
        status: HTTP status.
        **values: Values for the template, which escapes them.
    """
    app: AppState = request.app.state.climassay
    user = current_user(request, app)
    token = csrf_token(request)
    field = Markup('<input type="hidden" name="{}" value="{}">').format(CSRF_FIELD, token)
    html = (
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
            style=_STYLE_SHEETS.get(template.partition("/")[0]),
            **values,
        )
    )
    if app.settings.prefix:
        # Values are escaped, so only links in our templates can match.
        html = _ROOT_LINK.sub(rf"\1{app.settings.prefix}/", html)
    response = HTMLResponse(html, status, {"Cache-Control": "no-store"})
    new_visitor = getattr(request.state, "new_visitor", None)
    if new_visitor is not None:
        set_private_cookie(response, app, VISITOR_COOKIE, new_visitor)
    return response


def clean_text(text: str, max_length: int, name: str) -> str:
    """Return a submitted text with LF line ends and with spaces in place of control characters.

    ``name`` names the text in the error message.

    Raises:
        TooLarge: The text is longer than ``max_length``.
    """
    if len(text) > max_length + text.count("\r\n"):
        raise TooLarge(f"The {name} has {len(text):,} characters, and the limit is {max_length:,}: send it in parts.")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(char if char in "\n\t" or unicodedata.category(char) != "Cc" else " " for char in text)


def as_file(content: str | Iterable[str | bytes], name: str, media_type: str = "") -> Response:
    """Return a response that the browser saves as a file.

    Args:
        content: Content, or an iterable of its parts, which are sent as they are produced.
        name: File name with a suffix of :data:`MEDIA_TYPES`; characters that are unsafe in headers are replaced.
        media_type: Media type; if empty, the media type of the suffix.
    """
    safe_name = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[-100:]
    headers = {"Content-Disposition": f'attachment; filename="{safe_name}"', "Cache-Control": "no-store"}
    content_type = media_type or MEDIA_TYPES[name.rpartition(".")[2]]
    if isinstance(content, str):
        return Response(content, media_type=content_type, headers=headers)
    chunks = (chunk if isinstance(chunk, bytes) else chunk.encode("utf-8", "replace") for chunk in content)
    return StreamingResponse(chunks, media_type=content_type, headers=headers)


def redirect_to(url: str) -> RedirectResponse:
    """Return a redirect (303) to the page to show after a form was submitted."""
    return RedirectResponse(url, status_code=303)


def safe_next(path: str | None) -> str:
    """Return a path if it is a path of this server, else ``/``, so that links cannot redirect to other sites."""
    if (
        not path
        or not path.startswith("/")
        or path[1:2] in ("/", "\\")
        or any(ord(character) < 33 for character in path)
    ):
        return "/"
    return path


def set_private_cookie(response: Response, app: AppState, name: str, value: str) -> None:
    """Set a cookie that scripts cannot read and browsers do not send with requests from other sites."""
    days = {SESSION_COOKIE: app.settings.session_days, DEVICE_COOKIE: 365.0}.get(name)
    age = None if days is None else int(days * 86400)
    response.set_cookie(name, value, max_age=age, httponly=True, samesite="lax", secure=app.settings.https, path="/")


@cache
def asset_address(name: str) -> str:
    """Return the address of a file below ``static``; the address contains a hash of the file's content."""
    content = files("climassay.web").joinpath("static", *name.split("/")).read_bytes()
    return f"/static/{name}?v={hashlib.sha256(content).hexdigest()[:12]}"


def is_web_address(text: str | None) -> bool:
    """Return whether a text is an HTTP or HTTPS address, so that it can be shown as a link."""
    return text is not None and re.match(r"https?://[^\s/]", text, re.IGNORECASE) is not None


def format_time(moment: float | str | None) -> str:
    """Format a time, given in seconds since 1970 or in ISO 8601, like ``6 Nov 2026, 11:39 UTC``; None as a dash."""
    if moment is None:
        return "–"
    moment_utc = datetime.fromisoformat(moment) if isinstance(moment, str) else datetime.fromtimestamp(moment, UTC)
    return f"{moment_utc.day} {moment_utc:%b %Y, %H:%M} UTC"


def format_duration(seconds: float) -> str:
    """Format a duration like ``40 s``, ``1 min 5 s`` or ``2 h 10 min``."""
    total = int(seconds)
    if total < 60:
        return f"{total} s"
    if total < 3600:
        return f"{total // 60} min {total % 60} s"
    return f"{total // 3600} h {total % 3600 // 60} min"


def format_rough_duration(seconds: float) -> str:
    """Format an estimated duration like ``about 40 seconds`` or ``about 3 minutes``."""
    if seconds < 55:
        number, unit = max(10, 10 * math.ceil(seconds / 10)), "second"
    elif seconds < 3600:
        number, unit = round(seconds / 60), "minute"
    else:
        number, unit = round(seconds / 3600), "hour"
    return f"about {number} {unit}{'' if number == 1 else 's'}"


def format_json(text: str | None) -> str:
    """Indent the JSON of an object or array; return any other text unchanged and None as an empty text."""
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
    """Number of the page, from 1."""
    pages: int
    total: int
    """Number of entries of the complete list."""
    first: int
    """Number of the page's first entry in the complete list, from 1; 0 if the page is empty."""
    address: str
    """Address of the list with its filters, to which a parameter like ``page=2`` can be appended."""

    @property
    def last(self) -> int:
        """Number of the page's last entry in the complete list; 0 if the page is empty."""
        return self.first + len(self.entries) - 1 if self.entries else 0

    def at(self, number: int) -> str:
        """Return the address of the page with the given number."""
        return f"{self.address}page={number}"


def clamp_page(number: int, n_entries: int, size: int) -> int:
    """Return the page number nearest to ``number`` that exists in a list with ``size`` entries per page."""
    return max(1, min(number, -(-n_entries // size)))


def make_part(
    entries: Sequence[T], number: int, n_entries: int, size: int, path: str, filters: Mapping[str, object]
) -> Part[T]:
    """Build one page of a list.

    Args:
        entries: Entries on the page.
        number: Number of the page, from 1.
        n_entries: Number of entries of the complete list.
        size: Maximum number of entries per page.
        path: Path of the list.
        filters: Query parameters of the list; empty ones are left out of the address.
    """
    query = urlencode([(name, str(value)) for name, value in filters.items() if value not in ("", False, None)])
    address = f"{path}?{query}&" if query else f"{path}?"
    first = (number - 1) * size + 1 if entries else 0
    return Part(entries, number, max(1, -(-n_entries // size)), n_entries, first, address)


def slice_page(
    entries: Sequence[T], requested_number: int, size: int, path: str, filters: Mapping[str, object]
) -> Part[T]:
    """Return the requested page of a list (or the nearest existing page); see :func:`make_part`."""
    number = clamp_page(requested_number, len(entries), size)
    return make_part(entries[(number - 1) * size : number * size], number, len(entries), size, path, filters)


@cache
def environment() -> Any:
    """Return the Jinja environment of all pages, with their filters and functions."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    jinja = Environment(
        # Fact-checks are shown with the templates of their self-contained pages, which are in reporting.
        loader=ChoiceLoader(
            [PackageLoader(f"climassay.{subpackage}", "templates") for subpackage in ("web", "reporting")]
        ),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    jinja.globals |= {"asset": asset_address, "counted": counted, "is_web_address": is_web_address}
    jinja.globals |= {"explain": explain, "plain_message": plain_message, "letter": option_letter}
    jinja.globals["state_style"] = lambda state: _BADGE_STYLES.get(state, "info")
    jinja.filters["format_time"] = format_time
    jinja.filters |= {
        "duration": format_duration,
        "format_rough_duration": format_rough_duration,
        "plain_message": plain_message,
    }
    jinja.filters |= {"format_json": format_json, "breakable": breakable}
    return jinja
