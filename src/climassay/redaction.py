"""Removal of API keys and passwords from errors, logs, reports and environments of subprocesses."""

import os
import re
from collections.abc import Mapping
from functools import cache

SECRET_VARIABLES = ("CLIMASSAY_API_KEY", "OPENAI_API_KEY")
"""Names of the environment variables whose values are redacted."""
MIN_SECRET_LENGTH = 8
"""Minimum length of a secret; shorter keys are placeholders ("none", "EMPTY"), which may occur in ordinary text."""
MAX_WORD_LENGTH = 20
"""Maximum length of a word (letters of the same case) or number (digits) in a placeholder. A key with a longer word or
number counts as a secret."""
REDACTED = "***"

_registered_secrets: set[str] = set()

_PASSWORD_IN_URL = re.compile(r"(?<=://)[^\s/?#\"'<>:@]*:[^\s/\"'<>]*@(?=[\w\[])")
_WORD = re.compile(rf"[A-Z]?[a-z]{{1,{MAX_WORD_LENGTH}}}|[A-Z]{{1,{MAX_WORD_LENGTH}}}|[0-9]{{1,{MAX_WORD_LENGTH}}}")
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|_URL\b|_PAT\b|AUTH", re.IGNORECASE)


class TrustedUrl(str):
    """URL of a server that may receive the API key, because the user named it on the command line or in a program.

    A plain ``str``, in contrast, may come from somebody else's file.
    """

    __slots__ = ()


def is_secret(key: str) -> bool:
    """Return whether a key is a secret, not a placeholder such as ``none``, ``ollama`` or ``not-needed``.

    Keys that have fewer than 8 characters, or consist of words and numbers only, are placeholders.

    Example:
        >>> is_secret("sk-no-key-required"), is_secret("12345678"), is_secret("sk-6d3f0c27b1")
        (False, False, True)
    """
    parts = [part for part in re.split(r"[\W_]+", key) if part]
    return len(key) >= MIN_SECRET_LENGTH and not all(_WORD.fullmatch(part) for part in parts)


def without_secrets(text: str) -> str:
    """Redact API keys and the user names and passwords in URLs, for example for error messages, logs and reports.

    Do not use it for requests, answers of models and stored results, which must stay unchanged.

    Args:
        text: Text to redact; ``https://user:word@host/v1`` becomes ``https://***@host/v1``.
    """
    values = (os.environ.get(variable, "").strip() for variable in SECRET_VARIABLES)
    for secret in sorted(filter(is_secret, (*values, *_registered_secrets)), key=len, reverse=True):
        text = text.replace(secret, REDACTED)
    return _PASSWORD_IN_URL.sub(f"{REDACTED}@", text) if "://" in text else text


def note_secret(key: str) -> None:
    """Register a key to be redacted that is in none of :data:`SECRET_VARIABLES`."""
    if is_secret(key):
        _registered_secrets.add(key)


def without_key(body: bytes, key: str | None) -> bytes:
    r"""Redact a key in the body of an error response, including JSON escapes such as ``\u0041`` or ``\/``.

    Args:
        body: Body of the response, which may repeat the request.
        key: ASCII key, or None. A placeholder is not redacted (:func:`is_secret`).
    """
    if key is None or not is_secret(key):
        return body
    redacted_body = body.replace(key.encode(), REDACTED.encode())
    return _make_key_pattern(key).sub(REDACTED.encode(), redacted_body) if b"\\" in redacted_body else redacted_body


def environment_without_secrets() -> Mapping[str, str]:
    """Return the environment variables that contain no key or password, for subprocesses such as document readers."""
    return {
        name: value
        for name, value in os.environ.items()
        if not _SECRET_NAME.search(name) and value not in _registered_secrets
    }


@cache
def _make_key_pattern(key: str) -> re.Pattern[bytes]:
    r"""Return a pattern that matches all spellings of a key in JSON, including nested JSON.

    Each level of nesting doubles the backslashes of an escape, so that up to seven cover three levels. The limit avoids
    quadratic time for bodies that consist of backslashes.
    """
    characters = []
    for character in key:
        spellings = [re.escape(character), rf"\\{{1,7}}u00(?i:{ord(character):02x})"]
        if character in '"\\/':
            spellings.append(rf"\\{{1,7}}{re.escape(character)}")
        characters.append(f"(?:{'|'.join(reversed(spellings))})")
    return re.compile("".join(characters).encode())
