"""From the name of a model to the model."""

from typing import TYPE_CHECKING

from climassay.errors import InputError, MissingExtraError
from climassay.models.bundled import BUNDLED
from climassay.models.contract import Generator

if TYPE_CHECKING:
    from climassay.models.openai_prices import Price
    from climassay.models.openai_retry import RetryPolicy

PROVIDERS = ("local", "openai")
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
) -> Generator:
    """Load a local model, or make a client for a server.

    Args:
        name: ``local:`` and a bundled name, a folder or a hub id; or ``openai:`` and the server's name of a model.
            The name of a bundled model may stand alone.
        base_url: Server of an ``openai:`` model.
        device: Where a local model computes; by default a GPU when there is one.
        dtype: What a local model computes with; by default bfloat16 on a GPU and float32 on a CPU.
        adapter: Folder of a PEFT adapter for a local model.
        concurrency: Requests under way at the same time; by default the provider finds it out.
        price: What tokens of an ``openai:`` model cost; None leaves the cost unknown.
        policy: Deadlines and attempts of an ``openai:`` model.

    Returns:
        A local model also gives log-probabilities and hidden states (``OpenWeights``), a client log-probabilities
        as far as its server does (``OptionScorer``); ask with ``isinstance``.

    Raises:
        InputError: The name has no known provider, or an option does not go with the provider.
        ModelError: The model cannot be found or loaded.
        MissingExtraError: A local model without the packages of ``climassay[local]``.
    """
    provider, separator, rest = name.partition(":")
    if not separator and name in BUNDLED:
        provider, rest = "local", name
    if provider not in PROVIDERS or not rest:
        raise InputError(
            f"The model name {name!r} is not understood: write local:NAME (bundled name, folder or hub id) or "
            "openai:NAME (with --base-url for another server than OpenAI's)."
        )
    if provider == "local":
        _refuse_options("local", base_url=base_url)
        try:
            from climassay.models.local.model import LocalModel
        except ModuleNotFoundError as error:
            raise MissingExtraError(
                f"The local model {rest} needs {error.name}: run `pip install 'climassay[local]'`."
            ) from error

        return LocalModel(f"local:{rest}", device=device, dtype=dtype, adapter=adapter, concurrency=concurrency)
    _refuse_options("openai", device=device, dtype=dtype, adapter=adapter)
    from climassay.models.openai_api import OpenAIModel

    return OpenAIModel(rest, base_url=base_url, concurrency=concurrency, price=price, policy=policy)


def _refuse_options(provider: str, **options: str | None) -> None:
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise InputError(f"The option --{given[0].replace('_', '-')} does not go with {provider}: models.")
