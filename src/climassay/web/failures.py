"""Why a request is not answered with what was asked for: one sentence and the right status."""

from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from climassay.errors import ClimassayError

API = "/api/"


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


async def refuse(
    scope: Scope, receive: Receive, send: Send, status: int, sentence: str, headers: dict[str, str] | None = None
) -> None:
    """Answer with a sentence before anything is known of who asks."""
    given = {"Connection": "close", **(headers or {})}
    answer: Response = PlainTextResponse(sentence, status, given)
    if scope["path"].startswith(API):
        answer = JSONResponse({"error": sentence}, status, given)
    await answer(scope, receive, send)
