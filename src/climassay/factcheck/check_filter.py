"""Which past fact-checks a list shows: one set of filters for pages, the JSON API, Python and commands."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from climassay.settings import Flag

Reviewed = Literal["agreed", "disagreed", "divided", "commented", "unreviewed"]
"""What most of those who reviewed a check hold of it: more agree, more disagree, as many of both, only comments."""


@dataclass(frozen=True, slots=True)
class CheckFilter:
    """Which checks a list shows; an empty text leaves a filter out."""

    words: Annotated[
        str, Field(description="Words that all stand in the claim or its source, in any case."), Flag()
    ] = ""
    verdict: Annotated[
        str, Field(description="Label of the verdict, or the outcome of a check without one."), Flag()
    ] = ""
    review: Annotated[
        str,
        Field(description="Opinion of most reviewers: agreed, disagreed, divided, commented or unreviewed."),
        Flag(),
    ] = ""
    topic: Annotated[
        str, Field(description="Contrarian claim of CARDS that the claim makes (2.1), or group of them (2)."), Flag()
    ] = ""
    collection: Annotated[str, Field(description="Name of a collection that an advocate read."), Flag()] = ""
    source: Annotated[str, Field(description="Words of who says it, or where it stands, in any case."), Flag()] = ""
    since: Annotated[
        str, Field(description="First day on which a check was asked for, such as 2024-05-31 (UTC)."), Flag()
    ] = ""
    until: Annotated[str, Field(description="Last such day."), Flag()] = ""
    reviewer: Annotated[str, Field(description="Name of an account that has reviewed the check."), Flag()] = ""
