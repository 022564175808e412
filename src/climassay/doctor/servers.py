"""The keys of model servers, and whether the servers answer."""

import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from urllib.parse import urlsplit

from climassay.doctor import Finding
from climassay.errors import InputError, ModelError
from climassay.models.servers import (
    BASE_URL_VARIABLE,
    DEFAULT_BASE_URL,
    KEY_VARIABLES,
    OPENAI,
    Provider,
    find_server,
    providers,
)

AREA = "servers"
SECONDS = 5
"""How long an answer is waited for."""


def examine_servers(*, online: bool) -> Iterator[Finding]:
    """Whether keys are set, which are never shown; with ``online`` also whether the servers answer to them."""
    variable = next((name for name in KEY_VARIABLES if os.environ.get(name)), None)
    if variable is None:
        said = "no key is set; only openai: models on a server that wants one need it"
    else:
        said = f"{variable} is set (it is not shown)"
    yield Finding(AREA, "API key", "ok", said)
    try:
        tables = {name: table for name, table in providers().items() if name != OPENAI}
    except InputError as error:
        yield Finding(AREA, "providers", "broken", str(error), "Mend the file, or take it away.")
        return
    for name, table in tables.items():
        yield _described(name, table)
    if not online:
        yield Finding(AREA, "network", "ok", "not needed and not asked; --online asks the server of openai: models")
        return
    address = os.environ.get(BASE_URL_VARIABLE) or DEFAULT_BASE_URL
    yield _asked(OPENAI, "server", address, BASE_URL_VARIABLE, KEY_VARIABLES[-1])
    for name, table in tables.items():
        yield _asked(name, f"server of {name}:", table.base_url, "base_url", table.key_variable or "key_variable")


def _described(name: str, table: Provider) -> Finding:
    shown = _without_secrets(table.base_url)
    if table.key_variable is None:
        return Finding(AREA, f"provider {name}", "ok", f"{shown}, without a key")
    if not os.environ.get(table.key_variable):
        said = f"{shown}, but its key is not set"
        return Finding(AREA, f"provider {name}", "warning", said, f"Set {table.key_variable}.")
    return Finding(AREA, f"provider {name}", "ok", f"{shown}, with the key of {table.key_variable} (it is not shown)")


def _asked(provider: str, name: str, address: str, setting: str, key_variable: str) -> Finding:
    """What a server answers to the question for its models."""
    shown, key = _without_secrets(address), None
    if urlsplit(address).scheme not in ("http", "https"):
        return Finding(AREA, name, "broken", f"{shown} is not a web address", f"Set {setting} again.")
    try:
        key = find_server(provider).key
    except InputError as error:
        return Finding(AREA, name, "broken", str(error), f"Check {setting}.")
    except ModelError:
        pass  # There is no key, which the server will say too.
    request = urllib.request.Request(f"{address.rstrip('/')}/models")
    if key is not None:
        # Not redirected: a key goes to the server that it is for and to no other.
        request.add_unredirected_header("Authorization", f"Bearer {key}")
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return Finding(AREA, name, "ok", f"{shown} answers ({answer.status})")
    except urllib.error.HTTPError as error:
        if error.code in (401, 403):
            said, advice = f"{shown} refuses the key ({error.code})", f"Set {key_variable} to a key of this server."
        else:
            said, advice = f"{shown} answers {error.code} to the question for its models", f"Check {setting}."
        return Finding(AREA, name, "warning", said, advice)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        said = f"{shown} does not answer ({type(reason).__name__})"
        return Finding(AREA, name, "warning", said, f"Check {setting} and the connection.")


def _without_secrets(address: str) -> str:
    """The address without what people put into one: user, password and query."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
