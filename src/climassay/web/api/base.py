"""Types, lists, authentication and errors shared by all operations of the API.

Requests with unknown fields are refused, so that misspelt fields are not ignored. Texts with characters that databases
cannot store are refused, too.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Generic, TypeVar

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.security import HTTPBearer
from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

from climassay.web.access import bearer_token, current_user
from climassay.web.app_state import App
from climassay.web.failures import SignInRequired

PREFIX = "/api/v1"
MAX_LIMIT = 200
"""Maximum number of entries in one response."""
MAX_NAME_LENGTH = 120
PRINTABLE = r"^[^\x00-\x1f\x7f]+$"
"""Regular expression for names and ids, which must not contain control characters."""
NO_NUL = r"^[^\x00]*$"
ERROR_STATUSES = {
    400: "The request cannot be carried out; the sentence says why.",
    401: "Nobody is signed in, or the token is not valid.",
    403: "The user's role does not allow this, or the request carries no CSRF token.",
    404: "It does not exist.",
    413: "The body is too large.",
    422: "A parameter or a field is invalid; `details` names it.",
    429: "Too many claims, questions or texts of this user are waiting.",
    503: "Too many claims and questions are waiting.",
}


class Data(BaseModel):
    """Base class of the JSON bodies of requests and responses."""

    model_config = ConfigDict(extra="forbid", frozen=True, from_attributes=True, use_attribute_docstrings=True)


def _datetime_of(value: Any) -> Any:
    return datetime.fromtimestamp(value, UTC) if isinstance(value, float) and 0 <= value < 2e10 else value


Moment = Annotated[
    AwareDatetime,
    BeforeValidator(_datetime_of),
    PlainSerializer(lambda moment: moment.astimezone(UTC).isoformat(timespec="microseconds"), when_used="json"),
    Field(examples=["2026-05-31T12:00:00.000000+00:00"]),
]
"""Time, serialised as ISO 8601 in UTC; numbers are accepted as seconds since 1970-01-01 UTC."""
Text = Annotated[str, Field(pattern=NO_NUL, max_length=10_000)]
ShortText = Annotated[str, Field(pattern=NO_NUL, max_length=500)]
Name = Annotated[str, Field(pattern=PRINTABLE, min_length=1, max_length=MAX_NAME_LENGTH)]
Limit = Annotated[int, Query(description="Maximum number of entries in the answer.", ge=1, le=MAX_LIMIT, examples=[20])]
After = Annotated[
    str | None,
    Query(
        description="Id of the last entry of the previous answer: its `next`.",
        pattern=PRINTABLE,
        max_length=MAX_NAME_LENGTH,
    ),
]


def path_name(description: str, example: str) -> Any:
    """Return the declaration of a path parameter that is a name or an id."""
    return Path(description=description, pattern=PRINTABLE, max_length=MAX_NAME_LENGTH, examples=[example])


DatasetName = Annotated[str, path_name("Name of the dataset.", "clouds")]


class ErrorDetail(Data):
    """Error in one field of a request."""

    at: str = Field(examples=["body.claim"])
    """Path of the field."""
    says: str = Field(examples=["Input should be a valid string"])
    """Description of the error."""


class ErrorData(Data):
    """Response to a request that was refused."""

    error: str = Field(examples=["There is no check 'c0'."])
    """Reason in one sentence."""
    details: list[ErrorDetail] = []
    """Errors in fields of the request, if any."""


Entry = TypeVar("Entry")
Source = TypeVar("Source")


class Page(Data, Generic[Entry]):
    """Part of a list whose order does not change."""

    # pydantic would search every loaded module for the source of each parametrised class.
    model_config = ConfigDict(use_attribute_docstrings=False)
    items: list[Entry]
    next: str | None = Field(default=None, description="Value of `after` for the next part; null at the end.")


def make_page(entries: Sequence[Source], limit: int, data_of: Callable[[Source], Any]) -> dict[str, Any]:
    """Build the response with one part of a list.

    Args:
        entries: Up to ``limit + 1`` entries from the database; the last shows whether more entries follow.
        limit: Maximum number of entries in the response.
        data_of: Function that converts an entry to its response data.
    """
    items = [data_of(entry) for entry in entries[:limit]]
    return {"items": items, "next": items[-1].id if len(entries) > limit else None}


def require_valid_token(request: Request, app: App) -> None:
    """Raise an error if a request has an invalid token, even if the operation needs no account.

    Raises:
        SignInRequired: The request has an ``Authorization`` header without a valid bearer token.
    """
    if current_user(request, app) is None and "authorization" in request.headers:
        if bearer_token(request) is None:
            raise SignInRequired("Send the token as `Authorization: Bearer TOKEN`.")
        raise SignInRequired("This token is not valid: it is wrong, or it has been revoked.")


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return an operation's error responses for OpenAPI: the responses of all operations and the given statuses."""
    codes = sorted({400, 401, 403, 404, 413, 422, *statuses})
    return {status: {"model": ErrorData, "description": ERROR_STATUSES[status]} for status in codes}


_TOKEN = HTTPBearer(auto_error=False, description="A token made on the page /account.")


def api_router(path: str, tag: str) -> APIRouter:
    """Return a router for the API operations below a path; all of them check the token of the request."""
    dependencies = [Depends(_TOKEN), Depends(require_valid_token)]
    return APIRouter(prefix=PREFIX + path, tags=[tag], responses=error_responses(), dependencies=dependencies)
