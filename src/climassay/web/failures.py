"""What a page answers when it cannot do what was asked: one sentence, the right status, the same for programs."""

import logging
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from climassay.errors import ClimassayError, InputError, RecordsError
from climassay.web.accounts import TooManyAttempts

API = "/api/"
LOG = "climassay.web"
TITLES = {
    400: "This does not work",
    401: "Please sign in",
    403: "Not allowed",
    404: "Not found",
    405: "Not possible here",
    413: "Too large",
    429: "Too many attempts",
    500: "Something went wrong",
    503: "Busy",
}


class Failure(ClimassayError):
    """An answer that is not what was asked for."""

    status = 400


class Missing(Failure):
    """What was asked for is not there."""

    status = 404


class Refused(Failure):
    """Somebody may not do this."""

    status = 403


class TooLarge(Failure):
    """More was sent than is taken."""

    status = 413


class SignInNeeded(Failure):
    """Nobody is signed in."""

    status = 401


def add_failures(app: FastAPI) -> None:
    """Have an application answer failures in one way."""

    async def known(request: Request, error: Exception) -> Response:
        status = error.status if isinstance(error, Failure) else 400
        if isinstance(error, TooManyAttempts):
            status = 429
        elif not isinstance(error, Failure | InputError):
            status = 500
        if isinstance(error, SignInNeeded) and not _wants_data(request):
            wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            following = f"?next={quote(wanted, safe='')}" if request.method in ("GET", "HEAD") else ""
            return RedirectResponse(f"/sign-in{following}", status_code=303)
        if status == 500:
            logging.getLogger(LOG).error("%s", error)
            if getattr(request.state, "user", None) is None:
                return failure(request, status, "The server cannot do this at the moment; its log says why.")
        return failure(request, status, str(error))

    async def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        words = {404: "There is no such page.", 405: "This address does not take such requests."}
        answer = failure(request, error.status_code, words.get(error.status_code, _sentence(error.detail)))
        for name, value in (error.headers or {}).items():
            answer.headers[name] = value
        return answer

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return failure(request, 422, _in_words(error), details=_details(error))

    async def unforeseen(request: Request, error: Exception) -> Response:
        from climassay.web.protection import HEADERS

        answer = failure(request, 500, f"The server made a mistake ({type(error).__name__}); it was noted in its log.")
        # Starlette sends this answer from outside of all middleware.
        answer.headers.update(HEADERS)
        return answer

    app.add_exception_handler(ClimassayError, known)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(Exception, unforeseen)


async def refuse(
    scope: Scope, receive: Receive, send: Send, status: int, sentence: str, headers: dict[str, str] | None = None
) -> None:
    """Answer with a sentence before anything is known of who asks."""
    given = {"Connection": "close", **(headers or {})}
    answer: Response = PlainTextResponse(sentence, status, given)
    if scope["path"].startswith(API):
        answer = JSONResponse({"error": sentence}, status, given)
    await answer(scope, receive, send)


def failure(request: Request, status: int, sentence: str, details: list[dict[str, Any]] | None = None) -> Response:
    """The answer with a sentence: a page for people, JSON for programs."""
    if _wants_data(request):
        more = {"details": details} if details else {}
        headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
        return JSONResponse({"error": sentence, **more}, status, headers)
    from climassay.web.pages import page

    title = TITLES.get(status, TITLES[400])
    try:
        return page(request, "failure.html.j2", status=status, title=title, sentence=sentence)
    except RecordsError:
        # A page asks the database who is there; where that is what failed, the sentence has to do.
        return PlainTextResponse(sentence, status)


def _wants_data(request: Request) -> bool:
    return request.url.path.startswith(API)


def _sentence(detail: object) -> str:
    words = str(detail)
    return words if words.endswith(".") else f"{words}."


def _in_words(error: RequestValidationError) -> str:
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return f"The body is not JSON: {first.get('ctx', {}).get('error', 'it cannot be read')}."
    where = ".".join(str(part) for part in first["loc"][1:]) or "the request"
    return f"{where}: {first['msg']}."


def _details(error: RequestValidationError) -> list[dict[str, Any]]:
    return [{"at": ".".join(map(str, one["loc"])), "says": str(one["msg"])} for one in error.errors()]
