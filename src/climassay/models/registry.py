"""From the name of a model, and how it is reached, to the model; and a check of whether it works."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from pydantic import Field

from climassay.errors import InputError, MissingExtraError, ModelError
from climassay.models.bundled import BUNDLED
from climassay.models.contract import (
    GenerationRequest,
    Generator,
    Message,
    OpenWeights,
    OptionRequest,
    OptionScorer,
    Sampling,
    object_schema,
)
from climassay.models.provider import PROVIDERS, ModelProvider, provider
from climassay.models.servers import LOCAL, OPENAI, configuration_file, is_served, normalised_base_url
from climassay.settings import Flag

if TYPE_CHECKING:
    from climassay.models.openai.capabilities import Capabilities
    from climassay.models.openai.connection import RetryPolicy
    from climassay.models.servers import Price


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
        Field(description="Reasoning effort of an openai: model, for example low, medium or high.", examples=["low"]),
        Flag(),
    ] = None
    timeout: Annotated[
        float | None,
        Field(
            ge=1,
            description="Seconds allowed for one attempt of a request; by default until the deadline.",
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


DEFAULT_MODEL = "local:smollm2"
_ANSWER_TOKENS = 64
_LONG_TEXT = "The ocean takes up heat and carbon from the air above it. " * 24


def load_model(
    name: str = DEFAULT_MODEL,
    *,
    base_url: str | None = None,
    device: str | None = None,
    dtype: str | None = None,
    adapter: str | None = None,
    concurrency: int | None = None,
    price: "Price | None" = None,
    policy: "RetryPolicy | None" = None,
    max_output_tokens: int | None = None,
    reasoning_effort: str | None = None,
    folder: Path | None = None,
) -> Generator:
    """Load a local model, or make a client for a server.

    Args:
        name: ``local:`` and a bundled name, a folder or a hub id; or ``openai:``, or a provider of the user's
            configuration (:mod:`climassay.models.servers`), and the server's name of a model. The name of a bundled
            model may stand alone.
        base_url: Server of an ``openai:`` model. Without a key, unless it is a
            :class:`~climassay.redaction.TrustedUrl` or a host that the user has bound a key to.
        device: Where a local model computes; by default a GPU when there is one.
        dtype: What a local model computes with; by default bfloat16 on a GPU, and on a CPU where that is faster than
            float32.
        adapter: Folder of a PEFT adapter for a local model.
        concurrency: Requests under way at the same time; by default the provider finds it out.
        price: What tokens of a server's model cost; None leaves the cost unknown.
        policy: Deadlines and attempts of a server's model.
        max_output_tokens: Limit of every generated answer, in place of the requests' own; what a model behind a server
            thinks before it answers comes on top. Part of the fingerprint.
        reasoning_effort: How much a server's model is to think, in the provider's words. Part of the fingerprint.
        folder: The workspace, in which it is kept what a server's model can do; None finds it out each time.

    Returns:
        A local model also gives log-probabilities and hidden states (``OpenWeights``), a client log-probabilities
        as far as its server does (``OptionScorer``); ask with ``isinstance``.

    Raises:
        InputError: The name has no known provider, or an option does not go with the provider.
        ModelError: The model cannot be found or loaded.
        MissingExtraError: A local model without the packages of ``climassay[local]``.
    """
    source, separator, rest = name.partition(":")
    if not separator and name in BUNDLED:
        source, rest = LOCAL, name
    options = {
        "base_url": base_url,
        "device": device,
        "dtype": dtype,
        "adapter": adapter,
        "concurrency": concurrency,
        "price": price,
        "policy": policy,
        "max_output_tokens": max_output_tokens,
        "reasoning_effort": reasoning_effort,
        "folder": folder,
    }
    known = PROVIDERS.get(source)
    if rest and known is not None:
        return known.open(rest, **options)
    if not rest or not is_served(name):
        raise InputError(
            f"The model name {name!r} is not understood: write local:NAME (bundled name, folder or hub id), "
            "openai:NAME (with --base-url for another server than OpenAI's), or PROVIDER:NAME with a table "
            f"[providers.PROVIDER] in {configuration_file()}."
        )
    if base_url is not None:
        raise InputError(f"The option --base-url does not go with {source}: models.")
    return ModelProvider(source, load_served).open(rest, **options, provider=source)


_ENTRIES = ("base_url", "device", "dtype", "adapter", "concurrency", "max_output_tokens", "reasoning_effort")


def load_as_set(
    name: str,
    settings: ModelAccess,
    folder: Path,
    *,
    deadline: float | None = None,
    load: Callable[..., Generator] | None = None,
    **others: Any,
) -> Generator:
    """Load a model as the options of a command, or the table of a file, say.

    Args:
        name: Its name.
        settings: How it is reached and loaded; further entries with names of arguments of :func:`load_model` are
            taken too.
        folder: The workspace.
        deadline: Seconds after which a request to a server has failed, retries included.
        load: Loads it; :func:`load_model` by default.
        others: Arguments in place of entries.

    Raises:
        InputError: Its name or an option is not understood.
        ModelError: It cannot be found or loaded.
    """
    from climassay.models.openai.connection import retry_policy
    from climassay.models.servers import model_price

    return (load or load_model)(
        name,
        **{entry: getattr(settings, entry, None) for entry in _ENTRIES} | others,
        price=model_price(name, settings.price_in, settings.price_out, folder),
        policy=retry_policy(deadline, settings.timeout),
        folder=folder,
    )


@provider(LOCAL, served=False)
def load_local(
    name: str,
    *,
    device: str | None = None,
    dtype: str | None = None,
    adapter: str | None = None,
    concurrency: int | None = None,
    max_output_tokens: int | None = None,
) -> Generator:
    """A bundled model, or one of a folder or of the hub; known from before, it is loaded when it is first asked.

    Raises:
        MissingExtraError: The packages of ``climassay[local]`` are not installed.
    """
    try:
        from climassay.models.local.loading import open_local

        return open_local(
            f"{LOCAL}:{name}",
            device=device,
            dtype=dtype,
            adapter=adapter,
            concurrency=concurrency,
            max_output_tokens=max_output_tokens,
        )
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"The local model {name} needs {error.name}: run `pip install 'climassay[local]'`."
        ) from error


@provider(OPENAI)
def load_served(
    name: str,
    *,
    provider: str = OPENAI,
    base_url: str | None = None,
    concurrency: int | None = None,
    price: "Price | None" = None,
    policy: "RetryPolicy | None" = None,
    max_output_tokens: int | None = None,
    reasoning_effort: str | None = None,
    folder: Path | None = None,
) -> Generator:
    """Make a client for a model behind an OpenAI-compatible server."""
    from climassay.models.openai.client import OpenAIModel

    return OpenAIModel(
        name,
        provider=provider,
        base_url=base_url,
        concurrency=concurrency,
        price=price,
        policy=policy,
        max_output_tokens=max_output_tokens,
        reasoning_effort=reasoning_effort,
        folder=folder,
    )


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """Whether a model works, what it is and how fast it answers; None where an entry does not apply or is unknown."""

    name: str
    fingerprint: str
    licence: str | None
    abilities: tuple[str, ...]
    """Some of generate, option_logprobs and harvest."""
    device: str | None
    dtype: str | None
    threads: int | None
    load_seconds: float
    prompt: str
    answer: str
    capabilities: "Capabilities | None"
    """What the model behind a server can do."""
    prefill_tokens_per_second: float | None
    """Prompt tokens a local model reads in a second."""
    decode_tokens_per_second: float | None
    """Tokens of one answer that come in a second, a server's network and queue included."""


def check_model(name: str, *, prompt: str, again: bool = False, **options: Any) -> ModelCheck:
    """Load a model and ask it one prompt; of a model behind a server, find out what it can do by two more.

    It is asked ``prompt``; the other arguments are those of :func:`load_model`. With ``again``, what is kept in the
    workspace of the server's abilities is forgotten first.

    Raises:
        ModelError: The model cannot be loaded or does not answer.
        InputError: The name or an option cannot be used.
    """
    started = time.perf_counter()
    model = load_model(name, **options)
    loaded = time.perf_counter() - started
    try:
        server: Any = model if hasattr(model, "capabilities") else None
        if again and server is not None:
            server.forget_capabilities()
        request = GenerationRequest((Message("user", prompt),), Sampling(max_tokens=_ANSWER_TOKENS))
        if isinstance(model, OpenWeights):
            model.generate([request])  # to warm up
        started = time.perf_counter()
        (completion,) = model.generate([request])
        seconds = time.perf_counter() - started
        if completion.error is not None:
            raise ModelError(f"{model.name} was loaded but did not answer: {completion.error}")
        tokens = completion.usage.completion_tokens
        prefill_rate = None
        if isinstance(model, OpenWeights):
            started = time.perf_counter()
            (scores,) = model.option_logprobs([OptionRequest((Message("user", _LONG_TEXT),), ("a",))])
            prefill_rate = scores.usage.prompt_tokens / (time.perf_counter() - started)
        rungs = (("generate", Generator), ("option_logprobs", OptionScorer), ("harvest", OpenWeights))
        return ModelCheck(
            name=model.name,
            fingerprint=model.fingerprint,
            licence=getattr(model, "licence", None),
            abilities=tuple(ability for ability, rung in rungs if isinstance(model, rung)),
            device=getattr(model, "device", None),
            dtype=getattr(model, "dtype", None),
            threads=getattr(model, "threads", None),
            load_seconds=getattr(model, "load_seconds", loaded),
            prompt=prompt,
            answer=completion.text,
            capabilities=None if server is None else _learn_capabilities(server),
            prefill_tokens_per_second=prefill_rate,
            decode_tokens_per_second=tokens / seconds if tokens else None,
        )
    finally:
        model.close()


def _learn_capabilities(model: Any) -> "Capabilities":
    """What a model behind a server can do, after it was asked to weigh, to answer under a schema, and for its window.

    What these requests give is not needed, and neither is it a failure of the model where one of them fails.
    """
    question = (Message("user", "Is ice colder than steam? Answer with one word, yes or no."),)
    model.option_logprobs([OptionRequest(question, ("yes", "no"))])
    fields = {"answer": {"type": "string", "enum": ["yes", "no"]}, "reason": {"type": "string", "maxLength": 200}}
    asked = (Message("user", "Is ice colder than steam? Say yes or no, and why."),)
    sampling = Sampling(max_tokens=None, temperature=0.5, top_p=0.9, stop=("\n\n\n\n",))
    model.generate([GenerationRequest(asked, sampling, object_schema(fields))])
    model.ask_window()
    return cast("Capabilities", model.capabilities)
