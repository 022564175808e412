"""Passwords: which can be used, what is kept of them, and whether one fits."""

import secrets
from functools import cache
from typing import Any

from climassay.errors import InputError

SHORTEST_PASSWORD = 10
LONGEST_PASSWORD = 1000


def hashed(name: str, password: str) -> str:
    """What is kept of a new password.

    Raises:
        InputError: It is too short, too long or too easy.
    """
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        raise InputError(f"A password must have {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters.")
    if password.lower() == name or len(set(password)) < 4:
        raise InputError("This password is too easy to guess.")
    return str(hasher().hash(password))


def fits(kept: str | None, password: str) -> bool:
    """Whether a password is the one that was kept; where nothing was kept, the answer takes as long."""
    from argon2.exceptions import InvalidHashError, VerificationError

    try:
        hasher().verify(kept or _nobodys(), password[:LONGEST_PASSWORD])
    except (VerificationError, InvalidHashError):
        return False
    return bool(kept)


@cache
def hasher() -> Any:
    """Argon2id with the parameters of RFC 9106 for machines with little memory."""
    from argon2 import PasswordHasher

    return PasswordHasher()


@cache
def _nobodys() -> str:
    """What the password of nobody is compared with."""
    return str(hasher().hash(secrets.token_urlsafe(16)))
