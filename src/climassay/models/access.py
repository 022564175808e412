"""How a model is reached and loaded, and what it costs: the entries that commands, experiments and recipes share."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from climassay.models.servers import normalised_base_url
from climassay.settings import Flag

MaxOutputTokens = Annotated[
    int | None,
    Field(
        ge=1,
        description="Maximum number of tokens of each answer; what a model thinks before it comes on top.",
        examples=[2000],
    ),
    Flag(),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAccess:
    """How a model is reached and loaded, and what it costs; None leaves it to the model or its server."""

    base_url: Annotated[
        str | None,
        Field(
            description="Gets your API key only if you allow it: see docs/how-to/api-models.md.",
            examples=["http://localhost:8000/v1"],
        ),
    ] = None
    """Server of an ``openai:`` model."""
    dtype: Annotated[
        str | None,
        Field(
            description="float32, bfloat16 or float16, for local: models; by default what is fastest here.",
            examples=["bfloat16"],
        ),
        Flag(),
    ] = None
    device: Annotated[str | None, Field(description="Device of a local model.", examples=["cuda"])] = None
    concurrency: Annotated[
        int | None, Field(ge=1, description="Maximum number of concurrent requests to a server.", examples=[16]), Flag()
    ] = None
    reasoning_effort: Annotated[
        str | None,
        Field(
            description="Effort of an openai: model that reasons, for example low, medium or high.", examples=["low"]
        ),
        Flag(),
    ] = None
    timeout: Annotated[
        float | None,
        Field(
            ge=1,
            description="Seconds that one attempt of a request may take; by default as long as the deadline allows.",
            examples=[600],
        ),
        Flag(),
    ] = None
    price_in: Annotated[
        float | None, Field(ge=0, description="US dollars per million prompt tokens.", examples=[0.15]), Flag()
    ] = None
    price_out: Annotated[
        float | None, Field(ge=0, description="US dollars per million completion tokens.", examples=[0.6]), Flag()
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileModel(ModelAccess):
    """How a model that a file names is reached: all of it is kept with the run."""

    def __post_init__(self) -> None:
        """See that the address holds no name and password, which would be kept with every run."""
        if self.base_url:
            object.__setattr__(self, "base_url", normalised_base_url(self.base_url))
