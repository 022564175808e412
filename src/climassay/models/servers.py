"""Servers of model providers: addresses, the API keys that may be sent to them, and token prices.

A key is bound to a host, so that no settings file can redirect it: ``$OPENAI_API_KEY`` to OpenAI's server, the server
of ``$OPENAI_BASE_URL`` and one that the user names for the command (``TrustedUrl``); the key of a table
``[providers.NAME]`` of the user's configuration to the server of that table. Requests to other addresses, such as one
in an experiment, a recipe or a stored fine-tuning job, are sent without a key.

The user's configuration is ``config.toml`` in the system's configuration folder, or the file named by
``$CLIMASSAY_CONFIG``::

    [providers.together]
    base_url = "https://api.together.xyz/v1"
    key_variable = "TOGETHER_API_KEY"            # of the environment; without it no key is sent
    [providers.together.prices]                  # US dollars per million tokens
    "Qwen/Qwen2.5-7B-Instruct-Turbo" = { prompt = 0.30, completion = 0.30 }

    [providers.cluster]
    base_url = "http://vllm-1.cluster:8000/v1"
    key_variable = "CLUSTER_KEY"
    allow_http = true                            # the key may travel there unencrypted

A model of such a server is named ``together:Qwen/Qwen2.5-7B-Instruct-Turbo``, wherever an ``openai:`` name is allowed.
"""

import ipaddress
import os
import re
import stat
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from climassay.errors import InputError, ModelError
from climassay.io import describe_error, parse_json, read_text
from climassay.redaction import TrustedUrl, is_secret, note_secret, without_key
from climassay.settings import load_toml, parse_table, settings

LOCAL, OPENAI = "local", "openai"
"""Providers that need no table in the configuration."""
DEFAULT_BASE_URL = "https://api.openai.com/v1"
BASE_URL_VARIABLE = "OPENAI_BASE_URL"
KEY_VARIABLES = ("CLIMASSAY_API_KEY", "OPENAI_API_KEY")
CONFIG_VARIABLE = "CLIMASSAY_CONFIG"
PRICE_FILES = ("prices.toml", "prices.json")
NEEDED_HEADER = re.compile(
    r"accept(-encoding)?|connection|content-(length|type)|host|transfer-encoding|user-agent|x-stainless-.*",
    re.IGNORECASE,
)
"""Pattern of the names of headers that HTTP requires or OpenAI's client sets itself."""

_PORTS = {"http": 80, "https": 443}
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")


@settings
class Provider:
    """Table ``[providers.NAME]`` of the user's configuration."""

    base_url: str = DEFAULT_BASE_URL
    key_variable: str | None = None
    """Environment variable with the key; without one, no key is sent."""
    allow_http: bool = False
    """Allow sending the key unencrypted to another machine."""
    prices: dict[str, Any] = field(default_factory=dict)
    """Prices by the server's model names, as in a price file (:func:`find_price`)."""


@dataclass(frozen=True, slots=True)
class Server:
    """Address of a server, with the key to send."""

    base_url: str
    """Normalised URL; see :func:`normalised_base_url`."""
    key: str | None = field(default=None, repr=False)
    withholding_reason: str = ""
    """Reason why no key is sent to the address, with advice on how to allow it; empty if a key may be sent."""
    key_note: str = ""
    """Source of the key, or how to set one, for error messages."""
    uses_openai_headers: bool = True
    """Whether environment variables of OpenAI's client (organisation, project, headers) apply."""

    def __post_init__(self) -> None:
        if self.key is not None:
            note_secret(self.key)

    def without_key(self, text: str) -> str:
        """Return a text with the key redacted."""
        return without_key(text.encode("utf-8", "surrogatepass"), self.key).decode("utf-8", "surrogatepass")

    def filter_headers(self, headers: MutableMapping[str, str]) -> None:
        """Remove headers that the environment sets for OpenAI, if the server belongs to another provider."""
        if self.uses_openai_headers:
            return
        for name in [name for name in headers if not NEEDED_HEADER.fullmatch(name)]:
            del headers[name]
        if self.key is not None:
            headers["Authorization"] = f"Bearer {self.key}"


def find_server(provider: str = OPENAI, base_url: str | None = None, api_key: str | None = None) -> Server:
    """Return the server of a provider's models, with the key that is bound to its host.

    Args:
        provider: ``openai``, or the name of a table of the user's configuration.
        base_url: Server of ``openai:`` models; by default ``$OPENAI_BASE_URL``, else OpenAI's. Unless it is a
            :class:`~climassay.redaction.TrustedUrl`, it gets a key only if one of these two or a table has the
            same host.
        api_key: Key that overrides the configured one.

    Raises:
        InputError: The provider is unknown, its table is invalid, it does not accept a base URL, or a key would be sent
            unencrypted to another machine without permission.
        ModelError: The address is invalid, or the key is missing or contains invalid characters.
    """
    tables = providers()
    if provider == OPENAI:
        default_url = os.environ.get(BASE_URL_VARIABLE) or DEFAULT_BASE_URL
        url = normalised_base_url(base_url or default_url)
        uses_openai_key = _origin(url) in (_origin(default_url), _origin(DEFAULT_BASE_URL))
        table = next(
            (
                candidate
                for name, candidate in tables.items()
                if name != OPENAI and _origin(candidate.base_url) == _origin(url)
            ),
            None,
        )
    elif provider not in tables:
        raise InputError(f"There is no provider {provider!r}: describe it in {_describe_table(provider)}.")
    elif base_url is not None:
        raise InputError(
            f"A base URL does not go with {provider}: models: their server stands in {_describe_table(provider)}."
        )
    else:
        uses_openai_key, table = False, tables[provider]
        url = normalised_base_url(table.base_url)
    variables: tuple[str, ...] = ()
    uses_general_key = uses_openai_key or (table is None and isinstance(base_url, TrustedUrl))
    if uses_general_key:
        variables = KEY_VARIABLES
    elif table is not None and table.key_variable is not None:
        variables = (table.key_variable,)
    candidates = {"": api_key, **{name: os.environ.get(name) for name in variables}}
    source, key = next(((name, key.strip()) for name, key in candidates.items() if key and key.strip()), ("", None))
    if key is None:
        if table is not None and variables and not uses_general_key:
            raise ModelError(
                f"The server {url} needs an API key: set {variables[0]}, which {configuration_file()} names."
            )
        if _origin(url) == _origin(DEFAULT_BASE_URL):
            raise ModelError("OpenAI's server needs an API key: set OPENAI_API_KEY, or give another --base-url.")
        if uses_general_key or table is not None:
            advice = (
                f"set {variables[-1]}"
                if uses_general_key
                else f"name its variable as key_variable in {configuration_file()}"
            )
            return Server(
                url,
                uses_openai_headers=uses_general_key,
                key_note=f"No API key was sent: if the server needs one, {advice}.",
            )
        withholding_reason = (
            f"No API key was sent to {url}, since neither the command line nor your own settings name it: if it may "
            f"have your key, set {BASE_URL_VARIABLE} to it, or describe it in {_describe_table('NAME')}."
        )
        return Server(url, withholding_reason=withholding_reason, uses_openai_headers=False)
    if not key.isascii() or not key.isprintable():
        raise ModelError(f"The API key contains characters that no key has: set {(*variables, 'it')[-1]} again.")
    if url.startswith("http:") and is_secret(key) and not _is_this_machine(url) and not (table and table.allow_http):
        raise InputError(
            f"The API key would travel to {url} unencrypted: use https, or allow it with allow_http = true for this "
            f"base_url in {_describe_table('NAME')}."
        )
    key_source = f"of {source}" if source else "given in the call"
    return Server(
        url, key, uses_openai_headers=uses_general_key, key_note=f"Check the API key: the one {key_source} was sent."
    )


def configuration_file() -> Path:
    """Return the path of the user's configuration, which may not exist: ``$CLIMASSAY_CONFIG`` or the default."""
    from platformdirs import user_config_path

    value = os.environ.get(CONFIG_VARIABLE)
    return Path(value).expanduser() if value else user_config_path("climassay", appauthor=False) / "config.toml"


def providers() -> Mapping[str, Provider]:
    """Return the tables ``[providers.NAME]`` of the user's configuration by name; empty without a file.

    Raises:
        InputError: The file cannot be read, or an entry is unknown or invalid.
    """
    path = configuration_file()
    if not path.is_file():
        if os.environ.get(CONFIG_VARIABLE):
            raise InputError(f"${CONFIG_VARIABLE} names {path}, but there is no such file.")
        return {}
    if os.name == "posix" and path.stat().st_mode & stat.S_IWOTH:
        raise InputError(
            f"{path} can be written by everybody on this machine, who could have your API keys sent elsewhere: "
            "remove that permission (chmod o-w)."
        )
    data = load_toml(path)
    unknown_entry = next((name for name in data if name != "providers"), None)
    if unknown_entry is not None:
        raise InputError(f"{path} has no entry {unknown_entry!r}; there are tables [providers.NAME].")
    tables = data.get("providers", {})
    if not isinstance(tables, Mapping) or not all(isinstance(table, Mapping) for table in tables.values()):
        raise InputError(f"{path}: providers are tables that begin with [providers.NAME].")
    results = {}
    for name, entries in tables.items():
        header = f"[providers.{name}]"
        if name == LOCAL or not _NAME.fullmatch(name):
            raise InputError(f"{path}: {header} is not a valid provider name: use letters and digits, and not {LOCAL}.")
        if name == OPENAI and set(entries) - {"prices"}:
            raise InputError(f"{path}: {header} may contain only prices; its server is set by {BASE_URL_VARIABLE}.")
        if name != OPENAI and "base_url" not in entries:
            raise InputError(f"{path}: {header} needs an entry 'base_url'.")
        results[name] = parse_table(Provider, entries, str(path), header)
        if _origin(results[name].base_url) is None:
            raise InputError(f"{path}: {header} has a base_url that is not an http or https address.")
    return results


def normalised_base_url(url: str) -> str:
    """Normalise a URL: lower-case the host, and remove default port, trailing slash, user, query and fragment.

    A :class:`~climassay.redaction.TrustedUrl` remains one.

    Raises:
        ModelError: The URL is not an http or https URL.
    """
    origin = _origin(url)
    if origin is None:
        raise ModelError(
            "The base URL is not an http or https address: it should look like http://localhost:8000/v1 "
            "(keys belong in OPENAI_API_KEY, not in the URL)."
        )
    scheme, host, port = origin
    parts = urlsplit(url.strip())
    host = f"[{host}]" if ":" in host else host
    netloc = host if port == _PORTS[scheme] else f"{host}:{port}"
    return type(url)(urlunsplit((scheme, netloc, parts.path.rstrip("/"), "", "")))


def _origin(url: str) -> tuple[str, str, int] | None:
    """Return scheme, host and port of an address; None if it is not an http or https address."""
    try:
        parts = urlsplit(url.strip())
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        return None
    if parts.scheme not in _PORTS or not host:
        return None
    return parts.scheme, host, _PORTS[parts.scheme] if port is None else port


def _is_this_machine(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    return address.is_loopback or address.is_unspecified


def _describe_table(provider: str) -> str:
    return f"a table [providers.{provider}] of {configuration_file()}"


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens. An unknown price is None, never 0."""

    prompt: float
    completion: float

    def __post_init__(self) -> None:
        for name, value in (("prompt", self.prompt), ("completion", self.completion)):
            if not 0 <= value < float("inf"):
                raise InputError(
                    f"The price of {name} tokens is {value}: give US dollars per million tokens, 0 or more."
                )

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the cost of token counts in US dollars."""
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1e6


def price_from_options(prompt: float | None, completion: float | None) -> Price | None:
    """Return the price that the options of the command line set, or None if they set none.

    Raises:
        InputError: Only one of the two prices (of prompt and completion tokens) is set.
    """
    if prompt is None and completion is None:
        return None
    if prompt is None or completion is None:
        raise InputError("Only one of --price-in and --price-out is given: the cost needs both.")
    return Price(prompt, completion)


def find_price(model: str, folder: Path) -> Price | None:
    """Return the price of a model from ``prices.toml`` or ``prices.json`` in a folder, or from the configuration.

    Args:
        model: Name with its provider, which is optional for ``openai:`` models.
        folder: Workspace with the price file, in which models of other providers are named with their provider.

    Returns:
        Price, or None if neither contains the model.

    Raises:
        InputError: A file cannot be read.

    Example:
        ``prices.toml``, in US dollars per million tokens::

            ["gpt-4o-mini"]
            prompt = 0.15
            completion = 0.60

        The user's configuration holds the same in a table ``[providers.NAME.prices]``.
    """
    path, table = price_table(folder)
    entry = table.get(model, table.get(model.removeprefix(f"{OPENAI}:")))
    if entry is not None:
        return _parse_price(entry, model, path)
    provider, separator, name = model.partition(":")
    provider_table = providers().get(provider if separator else OPENAI)
    entry = None if provider_table is None else provider_table.prices.get(name if separator else model)
    return None if entry is None else _parse_price(entry, model, configuration_file())


def price_table(folder: Path) -> tuple[Path, dict[str, Any]]:
    """Return the path of a folder's price file and its entries by model, or ``(folder, {})`` if there is no file.

    Raises:
        InputError: The file cannot be read.
    """
    path = next((folder / name for name in PRICE_FILES if (folder / name).is_file()), None)
    if path is None:
        return folder, {}
    try:
        table = load_toml(path) if path.suffix == ".toml" else parse_json(read_text(path))
    except OSError as error:
        raise InputError(f"The price table {path} cannot be read: {describe_error(error)}.") from None
    except (InputError, ValueError) as error:
        raise InputError(f"The price table {path} cannot be read: {str(error).rstrip('.')}.") from None
    if not isinstance(table, dict):
        raise InputError(f"The price table {path} cannot be read: it needs one entry for each model.")
    return path, table


def _parse_price(entry: Any, model: str, path: Path) -> Price:
    try:
        return Price(float(entry["prompt"]), float(entry["completion"]))
    except (KeyError, TypeError, ValueError, OverflowError):
        raise InputError(
            f"The price of {model} in {path} cannot be read: it needs numbers named prompt and completion."
        ) from None
