"""What must not be written down or handed on: API keys and passwords, wherever a text may have picked them up."""

import os
import re
from collections.abc import Mapping
from functools import cache

SECRET_VARIABLES = ("CLIMASSAY_API_KEY", "OPENAI_API_KEY")
"""Variables of the environment whose values are blanked in errors, logs and reports."""
SHORTEST_SECRET = 8
"""A shorter key is a placeholder ("none", "EMPTY"), and a search for it would find it in ordinary text."""
LONGEST_WORD = 20
"""Letters of one case in a row, or digits, that may still be a word or a number."""
BLANK = "***"

_noted: set[str] = set()

_PASSWORD_IN_URL = re.compile(r"(?<=://)[^\s/?#\"'<>:@]*:[^\s/\"'<>]*@(?=[\w\[])")
_WORD = re.compile(rf"[A-Z]?[a-z]{{1,{LONGEST_WORD}}}|[A-Z]{{1,{LONGEST_WORD}}}|[0-9]{{1,{LONGEST_WORD}}}")
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|_URL\b|_PAT\b|AUTH", re.IGNORECASE)


class TrustedUrl(str):
    """The address of a server that the user has named for this command, so that the API key may go there.

    An address that is a plain ``str`` may come from anywhere, a file of somebody else's included. Only what the user
    writes on a command line or into a program becomes one of these.
    """

    __slots__ = ()


def is_secret(key: str) -> bool:
    """Whether a key is worth hiding, and can be looked for without mistaking ordinary text for it.

    Servers of one's own take anything for a key: ``none``, ``EMPTY``, ``ollama``, ``not-needed``. What is shorter than
    8 characters, or made of words and numbers alone, is such a placeholder.

    Example:
        >>> is_secret("sk-no-key-required"), is_secret("12345678"), is_secret("sk-6d3f0c27b1")
        (False, False, True)
    """
    parts = [part for part in re.split(r"[\W_]+", key) if part]
    return len(key) >= SHORTEST_SECRET and not all(_WORD.fullmatch(part) for part in parts)


def without_secrets(text: str) -> str:
    """The text of an error, a log or a report with API keys, and names with passwords in addresses, blanked.

    Answers of models, requests and stored results never come here: they stay as they are.

    Args:
        text: For example ``https://user:word@host/v1`` becomes ``https://***@host/v1``; a name alone stays.
    """
    given = (os.environ.get(variable, "").strip() for variable in SECRET_VARIABLES)
    for secret in sorted(filter(is_secret, (*given, *_noted)), key=len, reverse=True):
        text = text.replace(secret, BLANK)
    return _PASSWORD_IN_URL.sub(f"{BLANK}@", text) if "://" in text else text


def note_secret(key: str) -> None:
    """Have the functions of this module know a key that appears in no variable of :data:`SECRET_VARIABLES`."""
    if is_secret(key):
        _noted.add(key)


def without_key(body: bytes, key: str | None) -> bytes:
    r"""The body of an error with a key blanked, also where JSON spells its characters ``\u0041`` or ``\/``.

    Args:
        body: As it came from a server, which may echo what it was sent. One that comes back as it was holds no key.
        key: ASCII; None where none was sent. A placeholder stays where it is: see :func:`is_secret`.
    """
    if key is None or not is_secret(key):
        return body
    plain = body.replace(key.encode(), BLANK.encode())
    return _spellings(key).sub(BLANK.encode(), plain) if b"\\" in plain else plain


def environment_without_secrets() -> Mapping[str, str]:
    """The environment for a process that has no business with keys and passwords, such as one that reads a document."""
    return {name: value for name, value in os.environ.items() if not _SECRET_NAME.search(name) and value not in _noted}


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
