"""Options for reaching, loading and calling a model; commands and files pass them to the model as one object."""

from collections.abc import Iterable
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, InstanceOf

from climassay.models.servers import OPENAI, normalised_base_url
from climassay.settings import settings, with_changes


@settings(kw_only=True)
class ModelAccess:
    """Access options and prices of a model; None leaves an option to the model or its server."""

    base_url: Annotated[InstanceOf[str] | None, Field(examples=["http://localhost:8000/v1"])] = None
    """URL of an OpenAI-compatible server for openai: models. The server gets your API key only if you allow it: see
    docs/how-to/api-models.md.

    The key is sent only to a :class:`~climassay.redaction.TrustedUrl` or a host that the user has bound a key to.
    """
    dtype: Annotated[str | None, Field(examples=["bfloat16"])] = None
    """float32, bfloat16 or float16, for local: models; by default what is fastest here."""
    device: Annotated[str | None, Field(examples=["cuda"])] = None
    """Device of a local model."""
    concurrency: Annotated[int | None, Field(ge=1, examples=[16])] = None
    """Maximum number of concurrent requests to a server."""
    reasoning_effort: Annotated[str | None, Field(examples=["low"])] = None
    """Reasoning effort of an openai: model, in the provider's words, for example low, medium or high.

    The effort is part of the fingerprint.
    """
    timeout: Annotated[float | None, Field(ge=1, examples=[600])] = None
    """Seconds allowed for one attempt of a request; by default until the deadline."""
    price_in: Annotated[float | None, Field(ge=0, examples=[0.15])] = None
    """US dollars per million prompt tokens."""
    price_out: Annotated[float | None, Field(ge=0, examples=[0.6])] = None
    """US dollars per million completion tokens."""


@settings(kw_only=True)
class FileModel(ModelAccess):
    """Options for accessing a model, as listed in a configuration file; all of them are stored with each run."""

    def __post_init__(self) -> None:
        """Normalise the address, removing user name and password, since it is stored with every run."""
        if self.base_url:
            object.__setattr__(self, "base_url", normalised_base_url(self.base_url))

    def limited_by(self, options: "ModelOptions") -> Self:
        """Return the entry with those limits of answers that the options set: timeout, tokens, reasoning effort."""
        limits = {"timeout", "max_output_tokens", "reasoning_effort"} & self._shared()
        return with_changes(self, **{name: getattr(options, name) for name in limits})

    @classmethod
    def from_options(cls, options: "ModelOptions", **changes: Any) -> Self:
        """Create an entry from the options that a file can contain; ``changes`` are the other fields of the entry."""
        return cls(**{name: getattr(options, name) for name in cls._shared()}, **changes)

    def options(self, **changes: Any) -> "ModelOptions":
        """Return the options for loading the model; ``changes`` replace some of them."""
        return ModelOptions(**{name: getattr(self, name) for name in self._shared()} | changes)

    @classmethod
    def _shared(cls) -> set[str]:
        return {field.name for field in fields(cls)} & {field.name for field in fields(ModelOptions)}


@settings(kw_only=True)
class ModelOptions(ModelAccess):
    """Options for reaching, loading and calling a model; None leaves an option to the model or its server."""

    adapter: str | None = None
    """Folder of a PEFT adapter for a local model."""
    deadline: Annotated[float | None, Field(ge=1)] = None
    """Seconds after which a request to an openai: model counts as failed, retries included."""
    max_output_tokens: Annotated[int | None, Field(ge=1)] = None
    """Maximum number of tokens of each answer, not counting its reasoning.

    The limit overrides the limits of requests and is part of the fingerprint.
    """
    prompts: Path | None = None
    """Folder of your own prompt templates (see climassay prompts export)."""
    no_cache: bool = False
    """Send every request again instead of using stored answers."""

    def with_defaults(self, defaults: "ModelOptions") -> Self:
        """Return a copy with values from ``defaults`` for options that are None."""
        unset_options = [field.name for field in fields(ModelOptions) if getattr(self, field.name) is None]
        return replace(self, **{name: getattr(defaults, name) for name in unset_options})

    def fitting(self, name: str) -> Self:
        """Return only the options that apply to a model.

        Options for servers do not apply to local models, options for weights not to models behind servers, and
        ``base_url`` applies to ``openai:`` models only.
        """
        from climassay.models.provider import is_served

        if not is_served(name):
            return replace(self, base_url=None, reasoning_effort=None)
        base_url = self.base_url if name.startswith(f"{OPENAI}:") else None
        return replace(self, base_url=base_url, dtype=None, device=None, adapter=None)

    def fitting_each(self, names: Iterable[str]) -> dict[str, Self]:
        """Return the options that apply to each of several models, by name.

        If an option applies to none of the models, every model gets all options, so that loading reports the option.
        """
        results = {name: self.fitting(name) for name in names}
        for option in ("base_url", "reasoning_effort", "dtype", "device", "adapter"):
            if getattr(self, option) is not None and all(
                getattr(options, option) is None for options in results.values()
            ):
                return dict.fromkeys(results, self)
        return results
