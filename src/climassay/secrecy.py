"""What must not be written down or handed on: API keys and passwords, wherever a text may have picked them up."""

import os
import re
from collections.abc import Mapping
from functools import cache

SECRET_VARIABLES = ("CLIMASSAY_API_KEY", "OPENAI_API_KEY")
"""Variables of the environment whose values are blanked in everything that is kept or shown."""
SHORTEST_SECRET = 8
"""A shorter key is a placeholder ("none", "EMPTY"), and blanking it would garble what is kept."""
BLANK = "***"

_PASSWORD_IN_URL = re.compile(r"(?<=://)[^\s/?#\"'<>:@]*:[^\s/\"'<>]*@(?=[\w\[])")
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|_URL\b|_PAT\b|AUTH", re.IGNORECASE)


def without_secrets(text: str) -> str:
    """A text with API keys of the environment, and names with passwords in addresses, blanked.

    Args:
        text: For example ``https://user:word@host/v1`` becomes ``https://***@host/v1``; a name alone stays.
    """
    for variable in SECRET_VARIABLES:
        secret = os.environ.get(variable, "").strip()
        if len(secret) >= SHORTEST_SECRET:
            text = text.replace(secret, BLANK)
    return _PASSWORD_IN_URL.sub(f"{BLANK}@", text) if "://" in text else text


def without_key(body: bytes, key: str | None) -> bytes:
    r"""The body of an answer with a key blanked, also where JSON spells its characters ``\u0041`` or ``\/``.

    Args:
        body: As it came from a server, which may echo what it was sent.
        key: ASCII; None or empty where none was sent.
    """
    if not key:
        return body
    plain = body.replace(key.encode(), BLANK.encode())
    return _spellings(key).sub(BLANK.encode(), plain) if b"\\" in plain else plain


def environment_without_secrets() -> Mapping[str, str]:
    """The environment for a process that has no business with keys and passwords, such as one that reads a document."""
    return {name: value for name, value in os.environ.items() if not _SECRET_NAME.search(name)}


@cache
def _spellings(key: str) -> re.Pattern[bytes]:
    r"""A pattern for every way in which a JSON text can spell a key.

    An answer that is itself JSON has its backslashes doubled in the body that brings it: ``\\\"``. Seven of them are a
    text of JSON in one of JSON in a third; without a bound a body of backslashes would take the square of its length.
    """
    ways = []
    for character in key:
        spelled = [re.escape(character), rf"\\{{1,7}}u00(?i:{ord(character):02x})"]
        if character in '"\\/':
            spelled.append(rf"\\{{1,7}}{re.escape(character)}")
        ways.append(f"(?:{'|'.join(reversed(spelled))})")
    return re.compile("".join(ways).encode())
