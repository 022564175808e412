"""Errors with their HTTP status, and explanations of failed work in plain words."""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from climassay.errors import ClimassayError, FullDatabaseError, InputError, LostDatabaseError

API = "/api/"


class Failure(ClimassayError):
    """Base class of errors that determine the HTTP status of the response."""

    status = 400


class NotFound(Failure):
    """Error for a request whose object does not exist."""

    status = 404


@contextmanager
def not_found_if_invalid() -> Iterator[None]:
    """Convert an InputError of the ``with`` block to NotFound.

    Raises:
        NotFound: The block raised InputError.
    """
    try:
        yield
    except InputError as error:
        raise NotFound(str(error)) from None


class Forbidden(Failure):
    """Error for a request that the visitor is not allowed to make."""

    status = 403


class TooLarge(Failure):
    """Error for a request whose body or text is too large."""

    status = 413


class SignInRequired(Failure):
    """Error for a request that needs a signed-in user."""

    status = 401


class Explanation(NamedTuple):
    """Explanation of an error for users without technical knowledge."""

    what: str
    """Sentence that says what happened."""
    advice: str
    """Sentence that says what the user can do."""


_OWNER = "the person who runs this site"
_KNOWN_ERRORS = (
    (
        r"insufficient_quota|billing|exceeded your current quota|spending limit|credit balance|answered 402",
        "The account that pays for the model has reached its limit.",
        f"Tell {_OWNER}. Once there is credit again, the check can go on.",
    ),
    (
        r"answered 401|needs an API key|API key holds|No API key was sent|Check the API key\.",
        "The model’s server did not accept the key it was given.",
        f"Tell {_OWNER}. Once a valid key is set, the check can go on.",
    ),
    (
        r"answered 403",
        "This site is not allowed to use the model.",
        f"Tell {_OWNER}, who can ask the provider for access or choose another model.",
    ),
    (
        r"does not offer|answered 404|no (?:public )?model (?:at|in|named)|bundled (?:model|name)|models install",
        "The model is not available, or no longer.",
        f"Tell {_OWNER}, who can install it or choose another one.",
    ),
    (r"answered 429", "The model’s server is too busy.", "Try again in a few minutes."),
    (r"did not answer within", "The model’s server took too long to answer.", "Try again in a few minutes."),
    (
        r"connection to .{1,300} failed",
        "The model’s server cannot be reached.",
        f"Try again later. If that does not help, tell {_OWNER}.",
    ),
    (r"answered 5\d\d", "The model’s server reported a fault of its own.", "Try again in a few minutes."),
    (
        r"There is no collection",
        "Documents that this check needs are no longer in the library.",
        "Start a new check, which will use the documents that are there now.",
    ),
    (
        r"The prompt has .{1,100} tokens|context length|context window|answered 413",
        "Together, the claim and the passages are longer than the model can read.",
        f"Shorten the claim, or ask {_OWNER} for a model that reads more.",
    ),
    (
        r"memory of .{1,100} not enough|out of memory",
        "The model needs more memory than this server has.",
        f"Tell {_OWNER}, who can choose a smaller one.",
    ),
    (r"disk is full", "The server’s disk is full.", f"Tell {_OWNER}. Once there is room, the check can go on."),
    (
        r"answer (?:is not JSON|has|is an error)|answer's",
        "The model’s server sent an answer that cannot be read.",
        "Try again in a few minutes.",
    ),
)


def explain(error: str | None) -> Explanation | None:
    """Return the explanation of a known error message; None for other messages."""
    explanations = (
        Explanation(*texts) for pattern, *texts in _KNOWN_ERRORS if error and re.search(pattern, error, re.IGNORECASE)
    )
    return next(explanations, None)


def plain_message(error: str) -> str:
    """Return a plain sentence for a known error message; return other messages unchanged."""
    explanation = explain(error)
    return explanation.what if explanation else error


def describe_outage(error: Exception) -> str | None:
    """Return a sentence for users if the database cannot be reached or the disk is full; None for other errors."""
    if isinstance(error, LostDatabaseError):
        return "The server has no connection to its database at the moment. Try again in a minute."
    is_full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    if is_full or isinstance(error, FullDatabaseError):
        return f"The server’s disk is full, so nothing can be stored at the moment. Tell {_OWNER}."
    return None


async def send_error(
    scope: Scope, receive: Receive, send: Send, status: int, message: str, headers: dict[str, str] | None = None
) -> None:
    """Send an error response from a middleware: JSON for paths below ``/api/``, plain text for all others."""
    response_headers = {"Connection": "close", **(headers or {})}
    response: Response = PlainTextResponse(message, status, response_headers)
    if scope["path"].startswith(API):
        response = JSONResponse({"error": message}, status, response_headers)
    await response(scope, receive, send)
