"""What tokens cost. An unknown price is None, never 0."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from climassay.errors import InputError
from climassay.io import parse_json, read_text, reason
from climassay.models.servers import OPENAI, configuration_file, is_served, providers
from climassay.settings import load_toml

PRICE_FILES = ("prices.toml", "prices.json")


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens."""

    prompt: float
    completion: float

    def __post_init__(self) -> None:
        for name, value in (("prompt", self.prompt), ("completion", self.completion)):
            if not 0 <= value < float("inf"):
                raise InputError(
                    f"The price of {name} tokens is {value}: give US dollars per million tokens, 0 or more."
                )

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """US dollars for so many tokens."""
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1e6


def price_from_options(prompt: float | None, completion: float | None) -> Price | None:
    """The price given on the command line.

    Returns:
        None where neither is given.

    Raises:
        InputError: Only one of them is given.
    """
    if prompt is None and completion is None:
        return None
    if prompt is None or completion is None:
        raise InputError("Only one of --price-in and --price-out is given: the cost needs both.")
    return Price(prompt, completion)


def model_price(model: str, prompt: float | None, completion: float | None, folder: Path) -> Price | None:
    """What a model's tokens cost: as given, else, for models of a server, as :func:`find_price` finds it.

    Args:
        model: As the user wrote it, for example ``openai:gpt-4o-mini``.
        prompt: US dollars per million prompt tokens, where given.
        completion: The same of completion tokens.
        folder: Where a price file may be (the workspace).

    Raises:
        InputError: Only one of the two prices is given, or the file cannot be read.
    """
    price = price_from_options(prompt, completion)
    return find_price(model, folder) if price is None and is_served(model) else price


def find_price(model: str, folder: Path) -> Price | None:
    """The price of a model from ``prices.toml`` or ``prices.json`` in a folder, else from the user's configuration.

    Args:
        model: With its provider, or the name of an ``openai:`` model alone.
        folder: Where the file may be (the workspace). There a model of another provider is named with its provider.

    Returns:
        None where neither names the model.

    Raises:
        InputError: A file cannot be read.

    Example:
        ``prices.toml``, in US dollars per million tokens::

            ["gpt-4o-mini"]
            prompt = 0.15
            completion = 0.60

        The user's configuration holds the same in a table ``[providers.NAME.prices]``.
    """
    for name in PRICE_FILES:
        path = folder / name
        if not path.is_file():
            continue
        table = _read(path)
        entry = table.get(model, table.get(model.removeprefix(f"{OPENAI}:")))
        if entry is not None:
            return _price(entry, model, path)
        break
    provider, separator, name = model.partition(":")
    known = providers().get(provider if separator else OPENAI)
    entry = None if known is None else known.prices.get(name if separator else model)
    return None if entry is None else _price(entry, model, configuration_file())


def _price(entry: Any, model: str, path: Path) -> Price:
    try:
        return Price(float(entry["prompt"]), float(entry["completion"]))
    except (KeyError, TypeError, ValueError, OverflowError):
        raise InputError(
            f"The price of {model} in {path} cannot be read: it needs numbers named prompt and completion."
        ) from None


def _read(path: Path) -> dict[str, Any]:
    try:
        table = load_toml(path) if path.suffix == ".toml" else parse_json(read_text(path))
    except OSError as error:
        raise InputError(f"The price table {path} cannot be read: {reason(error)}.") from None
    except (InputError, ValueError) as error:
        raise InputError(f"The price table {path} cannot be read: {str(error).rstrip('.')}.") from None
    if not isinstance(table, dict):
        raise InputError(f"The price table {path} cannot be read: it needs one entry for each model.")
    return table
