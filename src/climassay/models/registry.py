"""From the name of a model to the model."""

from pathlib import Path
from typing import TYPE_CHECKING

from climassay.errors import InputError, MissingExtraError
from climassay.models.bundled import BUNDLED
from climassay.models.contract import Generator
from climassay.models.provider import PROVIDERS, ModelProvider, provider
from climassay.models.servers import LOCAL, OPENAI, configuration_file, is_served

if TYPE_CHECKING:
    from climassay.models.openai_prices import Price
    from climassay.models.openai_retry import RetryPolicy

DEFAULT_MODEL = "local:smollm2"


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
    """Load a bundled model, or one of a folder or of the hub.

    Raises:
        MissingExtraError: The packages of ``climassay[local]`` are not installed.
    """
    try:
        from climassay.models.local.model import LocalModel
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"The local model {name} needs {error.name}: run `pip install 'climassay[local]'`."
        ) from error
    return LocalModel(
        f"{LOCAL}:{name}",
        device=device,
        dtype=dtype,
        adapter=adapter,
        concurrency=concurrency,
        max_output_tokens=max_output_tokens,
    )


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
    from climassay.models.openai_api import OpenAIModel

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
