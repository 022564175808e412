"""What requests and answers of the API are made of: bounded texts and names, moments, estimates, pages of lists.

Every model forbids what it does not know, so that a misspelt field is told and not passed over; every text forbids what
no database can hold.
"""

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Path, Query
from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

from climassay.errors import InputError
from climassay.statistics import Estimate

MOST = 200
"""Entries of one page of a list."""
USUAL = 50
LONGEST_NAME = 120
PRINTABLE = r"^[^\x00-\x1f\x7f]+$"
"""Names and ids: no control character, which addresses and databases stumble over."""
NO_NUL = r"^[^\x00]*$"


class Data(BaseModel):
    """What is sent or answered; its fields are described by the text below each."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


def _no_nan(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


Figure = Annotated[float | None, BeforeValidator(_no_nan)]
"""A computed number; null where it is not defined."""
Moment = Annotated[
    AwareDatetime,
    PlainSerializer(lambda moment: moment.astimezone(UTC).isoformat(timespec="microseconds"), when_used="json"),
    Field(description="ISO 8601, UTC.", examples=["2026-05-31T12:00:00.000000+00:00"]),
]
Text = Annotated[str, Field(pattern=NO_NUL, max_length=10_000)]
ShortText = Annotated[str, Field(pattern=NO_NUL, max_length=500)]
Name = Annotated[str, Field(pattern=PRINTABLE, min_length=1, max_length=LONGEST_NAME)]


def named(description: str, example: str) -> Any:
    """A name or id in an address."""
    return Path(description=description, pattern=PRINTABLE, max_length=LONGEST_NAME, examples=[example])


Limit = Annotated[int, Query(description="Most entries of the answer.", ge=1, le=MOST, examples=[20])]
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

    error: str = Field(examples=["There is no collection 'seas'."])
    """One sentence."""
    details: list["Detail"] = []
    """Fields of the request that do not fit, where that is the reason."""


class Detail(Data):
    """What is wrong with one field."""

    at: str = Field(examples=["body.accepted"])
    """Where it stands."""
    says: str = Field(examples=["Input should be a valid boolean"])


class Share(Data):
    """A mean, share or coefficient, with its confidence interval."""

    value: Figure = Field(examples=[0.82])
    """The mean, or the share from 0 to 1."""
    low: Figure = Field(examples=[0.71])
    """Lower end of the interval."""
    high: Figure = Field(examples=[0.9])
    """Upper end of the interval."""
    n: int = Field(examples=[60])
    """Independent items behind it."""
    level: float = Field(examples=[0.95])
    """Of the interval."""


def share(estimate: Estimate) -> Share:
    """An estimate as it is answered."""
    low, high = estimate.interval
    return Share(value=estimate.value, low=low, high=high, n=estimate.n, level=estimate.level)


def some_share(estimate: Estimate | None) -> Share | None:
    """An estimate as it is answered; None where there is none."""
    return None if estimate is None else share(estimate)


def moment(seconds: float) -> datetime:
    """Seconds since 1970-01-01 as a moment."""
    return datetime.fromtimestamp(seconds, UTC)


def some_moment(seconds: float | None) -> datetime | None:
    """Seconds since 1970-01-01 as a moment; None where there are none."""
    return None if seconds is None else moment(seconds)


Entry = TypeVar("Entry")
Source = TypeVar("Source")


class Listed(Data, Generic[Entry]):
    """A part of a list, in an order that stays."""

    # Of each list's own class pydantic would look for the source in vain, through every module that is loaded.
    model_config = ConfigDict(use_attribute_docstrings=False)
    items: list[Entry]
    next: str | int | None = Field(
        description="Value of `after` for the entries behind these; null where there are none.", examples=[None]
    )


def part_of(
    entries: Sequence[Source], limit: int, name: Callable[[Source], str], after: str | None
) -> tuple[Sequence[Source], str | None]:
    """A part of a list that is sorted by name; entries may come and go between two requests.

    Returns:
        The entries, and the name behind which the next ones come, None where there are none.
    """
    rest = entries if after is None else [entry for entry in entries if name(entry) > after]
    shown = rest[:limit]
    return shown, name(shown[-1]) if len(rest) > limit else None


def known_place(found: int | None, after: str) -> int:
    """Where a list goes on.

    Raises:
        InputError: The entry is not in it.
    """
    if found is None:
        raise InputError(f"The list has no entry {after!r} to go on behind: take `next` of the answer before.")
    return found
