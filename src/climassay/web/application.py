"""The web application over one workspace, and its error responses."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from climassay import __version__
from climassay.errors import ClimassayError, InputError, RecordsError
from climassay.web.access import check_csrf
from climassay.web.accounts import TooManyAttempts
from climassay.web.app_state import AppState
from climassay.web.failures import API, Failure, SignInRequired, describe_outage
from climassay.web.limits import RETRY_SECONDS
from climassay.web.middleware import SECURITY_HEADERS, BodyLimit, Compression, PathPrefix, SecurityHeaders, VisitorSlots
from climassay.web.pages import page
from climassay.web.redaction import RedactedResponses

AREAS = (
    "annotate.pages", "api.annotation", "api.checks", "api.library", "api.results", "ask", "checks.pages",
    "checks.moderation", "confidence", "library.pages", "library.evidence", "results.blocks", "results.pages",
    "results.questions", "server",
)  # fmt: skip
"""Modules below ``climassay.web`` that have a ``router`` and may have a function ``register(app_state)``.

The order matters: routes with fixed paths must precede routes such as ``/results/{run}``, which match any word.
"""
API_DESCRIPTION = """\
The data of the web application for programs, as JSON. Times are ISO 8601 in UTC.

Send `Authorization: Bearer TOKEN`; tokens are made on the page `/account`, and have the permissions of their user.
Reading needs no account if the server is open for reading (`climassay serve --public read`). A signed-in browser can
use its session, with the header `X-CSRF-Token` for every request that is not a GET.

Errors are answered as `{"error": "One sentence."}`; `details` names invalid fields (status 422).

Lists with the parameters `limit` and `after` are read part by part: repeat the request with `after` set to `next` until
`next` is null.
"""
TITLES = {
    400: "That did not work",
    401: "Please sign in",
    403: "Not allowed",
    404: "Not found",
    405: "Not possible here",
    413: "Too large",
    429: "Too many attempts",
    500: "Something went wrong",
    503: "Not possible at the moment",
}


class _Assets(StaticFiles):
    """Static files, cached by browsers if the address contains a hash of the content (``?v=``)."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        answer = await super().get_response(path, scope)
        if scope["query_string"].startswith(b"v="):
            answer.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return answer


def create_app(state: AppState) -> FastAPI:
    """Create the web application for a server's state, which the caller must close."""

    @asynccontextmanager
    async def lifespan(_application: FastAPI) -> AsyncIterator[None]:
        state.jobs.start(state)
        yield
        state.jobs.close()

    app = FastAPI(
        title="climassay",
        version=__version__,
        lifespan=lifespan,
        description=API_DESCRIPTION,
        openapi_url="/api/openapi.json",
        servers=[{"url": state.settings.root}],
        docs_url=None,
        redoc_url=None,
        routes=_routes(),
    )
    app.state.climassay = state
    for name in AREAS:
        module = import_module(f"climassay.web.{name}")
        if hasattr(module, "register"):
            module.register(state)
    app.mount("/static", _Assets(directory=Path(str(files("climassay.web") / "static"))), name="static")
    app.add_exception_handler(ClimassayError, _handle_known_error)
    app.add_exception_handler(OSError, _handle_os_error)
    app.add_exception_handler(HTTPException, _handle_http_error)
    app.add_exception_handler(RequestValidationError, _handle_validation_error)
    app.add_exception_handler(Exception, _handle_unexpected_error)
    app.add_middleware(RedactedResponses, state=state)
    app.add_middleware(VisitorSlots, state=state)
    app.add_middleware(BodyLimit, state=state)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(state.settings.hosts))
    app.add_middleware(Compression, minimum_size=1024, compresslevel=6)
    app.add_middleware(PathPrefix, prefix=state.settings.prefix)
    app.add_middleware(SecurityHeaders, https=state.settings.https)
    return app


@cache
def _routes() -> list[BaseRoute]:
    """Return the routes of all areas; they are cached because creating them takes 0.3 s."""
    router = APIRouter(dependencies=[Depends(check_csrf)])
    for name in AREAS:
        router.include_router(import_module(f"climassay.web.{name}").router)
    return router.routes


async def _handle_known_error(request: Request, error: Exception) -> Response:
    status = error.status if isinstance(error, Failure) else 400
    if isinstance(error, TooManyAttempts):
        status = 429
    elif not isinstance(error, Failure | InputError):
        status = 500
    if isinstance(error, SignInRequired) and not request.url.path.startswith(API):
        path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        query = f"?next={quote(path, safe='')}" if request.method in ("GET", "HEAD") else ""
        return RedirectResponse(f"/sign-in{query}", status_code=303)
    if outage := describe_outage(error):
        return _outage_response(request, error, outage)
    if status == 500:
        logging.getLogger("climassay.web").error("%s", error)
        if getattr(request.state, "user", None) is None:
            return _error_response(request, status, "The server cannot do this at the moment; its log says why.")
    return _error_response(request, status, str(error))


async def _handle_os_error(request: Request, error: Exception) -> Response:
    if outage := describe_outage(error):
        return _outage_response(request, error, outage)
    raise error


def _outage_response(request: Request, error: Exception, sentence: str) -> Response:
    logging.getLogger("climassay.web").error("%s", error)
    answer = _error_response(request, 503, sentence)
    answer.headers["Retry-After"] = str(RETRY_SECONDS)
    return answer


async def _handle_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    sentences = {404: "There is no such page.", 405: "This address does not accept requests of this kind."}
    answer = _error_response(
        request, error.status_code, sentences.get(error.status_code, f"{str(error.detail).rstrip('.')}.")
    )
    answer.headers.update(error.headers or {})
    return answer


async def _handle_validation_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first_problem = error.errors()[0]
    field = ".".join(str(part) for part in first_problem["loc"][1:]) or "the request"
    sentence = f"{field}: {first_problem['msg']}."
    if first_problem["type"] == "json_invalid":
        sentence = f"The body is not JSON: {first_problem.get('ctx', {}).get('error', 'it cannot be read')}."
    details = [{"at": ".".join(map(str, problem["loc"])), "says": str(problem["msg"])} for problem in error.errors()]
    return _error_response(request, 422, sentence, details)


async def _handle_unexpected_error(request: Request, error: Exception) -> Response:
    answer = _error_response(
        request, 500, f"Something went wrong on the server ({type(error).__name__}); its log says more."
    )
    # Starlette sends this response outside of all middleware, so nothing else adds the security headers.
    answer.headers.update(SECURITY_HEADERS)
    return answer


def _error_response(
    request: Request, status: int, sentence: str, details: list[dict[str, Any]] | None = None
) -> Response:
    """Return an error response: JSON for paths below ``/api/``, a page for all others."""
    if request.url.path.startswith(API):
        optional_details = {"details": details} if details else {}
        headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
        return JSONResponse({"error": sentence, **optional_details}, status, headers)
    title = TITLES.get(status, TITLES[400])
    try:
        return page(request, "failure.html.j2", status=status, title=title, sentence=sentence)
    except RecordsError:
        # Every page looks up the user in the database, which may be what failed.
        return PlainTextResponse(sentence, status)
