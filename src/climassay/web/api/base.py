"""What the operations of the API share: bounded texts, moments, estimates, parts of lists, callers and failures.

Every model forbids what it does not know, so that a misspelt field is reported and not ignored; every text forbids what
no database can hold. Models of answers are made from the records themselves: FastAPI validates what an operation gives
back, attribute by attribute.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from enum import Enum
from typing import Annotated, Any, Generic, TypeVar

from fastapi import APIRouter, Depends, Path, Query, Request
from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

from climassay.web.access import Adjudicator, Admin, Annotator, Reader, bearer, visitor
from climassay.web.accounts import User
from climassay.web.app_state import App
from climassay.web.failures import SignInNeeded

MOST = 200
"""Entries of one page of a list."""
LONGEST_NAME = 120
PRINTABLE = r"^[^\x00-\x1f\x7f]+$"
"""Names and ids: no control character, which addresses and databases stumble over."""
NO_NUL = r"^[^\x00]*$"


class Data(BaseModel):
    """What is sent or answered; its fields are described by the text below each."""

    model_config = ConfigDict(extra="forbid", frozen=True, from_attributes=True, use_attribute_docstrings=True)


def field(example: Any, description: str | None = None, **more: Any) -> Any:
    """A field of a model with an example of it; a description may appear below it instead."""
    return Field(description=description, examples=[example], **more)


def _moment(value: Any) -> Any:
    """Seconds since 1970-01-01, as records have them, as a moment."""
    return datetime.fromtimestamp(value, UTC) if isinstance(value, float) and 0 <= value < 2e10 else value


Moment = Annotated[
    AwareDatetime,
    BeforeValidator(_moment),
    PlainSerializer(lambda moment: moment.astimezone(UTC).isoformat(timespec="microseconds"), when_used="json"),
    Field(description="ISO 8601, UTC.", examples=["2026-05-31T12:00:00.000000+00:00"]),
]
Text = Annotated[str, Field(pattern=NO_NUL, max_length=10_000)]
ShortText = Annotated[str, Field(pattern=NO_NUL, max_length=500)]
Name = Annotated[str, Field(pattern=PRINTABLE, min_length=1, max_length=LONGEST_NAME)]


def named(description: str, example: str) -> Any:
    """A name or id in an address."""
    return Path(description=description, pattern=PRINTABLE, max_length=LONGEST_NAME, examples=[example])


Limit = Annotated[int, Query(description="Maximum number of entries in the answer.", ge=1, le=MOST, examples=[20])]
AfterName = Annotated[
    str | None,
    Query(
        description="Go on behind this entry: `next` of the answer before.", pattern=PRINTABLE, max_length=LONGEST_NAME
    ),
]
AfterNumber = Annotated[
    int, Query(description="Go on behind this number: `next` of the answer before.", ge=-1, le=2**31 - 1)
]


class Problem(Data):
    """Why something was not done."""

    error: str = field("There is no collection 'seas'.", "One sentence.")
    details: list["Detail"] = []
    """Fields of the request that do not fit, where that is the reason."""


class Detail(Data):
    """What is wrong with one field."""

    at: str = field("body.accepted", "Where it stands.")
    says: str = field("Input should be a valid boolean")


Entry = TypeVar("Entry")
Source = TypeVar("Source")


class Listed(Data, Generic[Entry]):
    """A part of a list, in an order that stays."""

    # Of each list's own class pydantic would look for the source in vain, through every module that is loaded.
    model_config = ConfigDict(
        use_attribute_docstrings=False, json_schema_extra={"description": "A part of a list, in an order that stays."}
    )
    items: list[Entry]
    next: str | int | None = Field(
        description="Value of `after` for the entries behind these; null where there are none.", examples=[None]
    )


def listed(entry: Any) -> Any:
    """The model of lists of something."""
    return Listed[entry]


def whole(entries: Sequence[Any]) -> dict[str, Any]:
    """A list that is answered at once."""
    return {"items": entries, "next": None}


def first_of(found: Sequence[Source], limit: int, name: Callable[[Source], Any]) -> dict[str, Any]:
    """The part of a list that was read, of which one entry more than the limit was asked for."""
    return {"items": found[:limit], "next": name(found[limit - 1]) if len(found) > limit else None}


def part_of(entries: Sequence[Source], limit: int, name: Callable[[Source], str], after: str | None) -> dict[str, Any]:
    """A part of a list, by name; entries may come and go between two requests."""
    ordered = sorted(entries, key=name)
    return first_of([entry for entry in ordered if after is None or name(entry) > after], limit, name)


class Extended:
    """A record with a few attributes more, or other ones, for a model of answers to be made from."""

    def __init__(self, record: Any, **more: Any) -> None:
        self._record = record
        self.__dict__.update(more)

    def __getattr__(self, name: str) -> Any:
        """What the record has, for every attribute that was not given."""
        return getattr(self._record, name)


def named_for(record: Any, user: User | None) -> Any:
    """A record with the name that somebody signs in by, which is for those who have an account themselves."""
    return record if user is not None else Extended(record, by=None)


PREFIX = "/api/v1"
WHY = {
    400: "It cannot be done so; the sentence says why.",
    401: "Nobody is signed in, or the token is not good (any more).",
    403: "The role does not suffice, it is somebody else's, or the request carries no CSRF token.",
    404: "There is no such thing.",
    413: "More was sent than is taken.",
    422: "A parameter or a field does not fit; `details` says which.",
    429: "Too much is waiting already: try again later.",
}
"""What failures mean."""
READERS = "readers"
ROLE_OF: tuple[tuple[Any, str], ...] = (
    (Annotator, "annotator"),
    (Adjudicator, "adjudicator"),
    (Admin, "admin"),
    (Reader, READERS),
)
"""Types of the parameter ``user`` of an operation, and for whom it then is."""


def known_caller(request: Request, app: App) -> User | None:
    """Who asks.

    Raises:
        SignInNeeded: A token was sent that is not good; nobody is served as somebody else than they think.
    """
    user = visitor(request, app)
    if user is None and "authorization" in request.headers:
        if bearer(request) is None:
            raise SignInNeeded("Send the token as `Authorization: Bearer TOKEN`.")
        raise SignInNeeded("This token is not valid: it is wrong, or it has been revoked.")
    return user


def failing(*more: int) -> dict[int | str, dict[str, Any]]:
    """The failures of an operation, beside those that every operation has, for its documentation."""
    return {
        status: {"model": Problem, "description": WHY[status]} for status in sorted({400, 401, 403, 404, 422, *more})
    }


def area(path: str, tag: str) -> APIRouter:
    """A router for the operations below a path."""
    tags: list[str | Enum] = [tag]
    return APIRouter(prefix=PREFIX + path, tags=tags, responses=failing(), dependencies=[Depends(known_caller)])
