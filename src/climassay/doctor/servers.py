"""The key of a model server, and whether the server answers."""

import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from urllib.parse import urlsplit

from climassay.doctor.finding import Finding

AREA = "servers"
SECONDS = 5
"""How long an answer is waited for."""


def examine_servers(*, online: bool) -> Iterator[Finding]:
    """Whether a key is set, which is never shown; with ``online`` also whether the server answers to it.

    Args:
        online: Ask the server of ``openai:`` models for its list of models. Without it no network is touched.
    """
    from climassay.models.openai_api import DEFAULT_BASE_URL, KEY_VARIABLES

    variable = next((name for name in KEY_VARIABLES if os.environ.get(name)), None)
    address = os.environ.get("OPENAI_BASE_URL") or DEFAULT_BASE_URL
    if variable is None:
        said = "no key is set; only openai: models on a server that wants one need it"
    else:
        said = f"{variable} is set (it is not shown)"
    yield Finding(AREA, "API key", "ok", said)
    if not online:
        yield Finding(AREA, "network", "ok", "not needed and not asked; --online asks the server of openai: models")
        return
    yield _answer(address, os.environ.get(variable) if variable else None)


def _answer(address: str, key: str | None) -> Finding:
    shown = _without_secrets(address)
    request = urllib.request.Request(f"{address.rstrip('/')}/models")
    if urlsplit(address).scheme not in ("http", "https"):
        return Finding(AREA, "server", "broken", f"{shown} is no web address", "Set OPENAI_BASE_URL again.")
    if key:
        # Not redirected: a key goes to the server that it is for and to no other.
        request.add_unredirected_header("Authorization", f"Bearer {key}")
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return Finding(AREA, "server", "ok", f"{shown} answers ({answer.status})")
    except urllib.error.HTTPError as error:
        if error.code in (401, 403):
            said, advice = f"{shown} refuses the key ({error.code})", "Set OPENAI_API_KEY to a key of this server."
        else:
            said, advice = f"{shown} answers {error.code} to the question for its models", "Check OPENAI_BASE_URL."
        return Finding(AREA, "server", "warning", said, advice)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        said = f"{shown} does not answer ({type(reason).__name__})"
        return Finding(AREA, "server", "warning", said, "Check OPENAI_BASE_URL and the connection.")


def _without_secrets(address: str) -> str:
    """The address without what people put into one: user, password and query."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
