"""Names that visitors give: what of them is shown, and what can name a collection."""

import re
import unicodedata
from pathlib import PurePosixPath

from climassay.corpus.readers.file_types import file_endings
from climassay.errors import InputError

LONGEST_NAME = 120
"""Characters of a file's name that are shown."""
LONGEST_TEXT = 300
"""Characters of a title, licence or address."""
RESERVED = frozenset({"search", "upload", "uploads"})
"""Addresses of the library that are no collections."""
ALLOWED_SUFFIXES = (".pdf", ".html", ".htm", ".md", ".txt", ".docx", ".epub", ".csv", ".jsonl")
_SPACES = re.compile(r"\s+")
_SEPARATORS = re.compile(r"[/\\]")


def plain_text(text: str) -> str:
    """A text in one line without control and format characters, which can hide or turn around what follows them."""
    spaced = _SPACES.sub(" ", unicodedata.normalize("NFC", text))
    return "".join(char for char in spaced if unicodedata.category(char)[0] != "C").strip()


def shown_name(given: str) -> str:
    """The name of an uploaded file as people see it and documents cite it; never a path.

    Args:
        given: As a browser, or whoever sent the request, says.

    Returns:
        Its last part, cleaned, of at most :data:`LONGEST_NAME` characters that end with the suffix.
    """
    last = _SEPARATORS.split(plain_text(given))[-1].strip(" .")
    suffix = PurePosixPath(last).suffix
    if len(last) > LONGEST_NAME:
        last = last[: LONGEST_NAME - len(suffix) - 1].rstrip() + "…" + suffix
    return last or "file"


def allowed_suffix(name: str) -> str:
    """The ending of a file's name, in lower case.

    Raises:
        InputError: It is none that is read here.
    """
    suffix = PurePosixPath(name).suffix.lower()
    if suffix not in ALLOWED_SUFFIXES:
        raise InputError(f"{name} is of no kind that is taken here: {', '.join(ALLOWED_SUFFIXES)}.")
    return suffix


def kind_of_suffix(suffix: str) -> str:
    """The kind of file that an allowed suffix claims, for example ``pdf``."""
    return file_endings()[suffix]


def told_text(given: str, what: str) -> str | None:
    """A title, licence or the like that somebody has typed, or None where the field was left empty.

    Raises:
        InputError: It is too long.
    """
    text = plain_text(given)
    if len(text) > LONGEST_TEXT:
        raise InputError(f"The {what} is longer than {LONGEST_TEXT} characters.")
    return text or None


def told_address(given: str) -> str | None:
    """An address that somebody has typed, or None where the field was left empty.

    Raises:
        InputError: It is too long, or leads elsewhere than to the web.
    """
    text = told_text(given, "address")
    if text is not None and not is_web_address(text):
        raise InputError("The address must begin with http:// or https://.")
    return text


def is_web_address(text: str | None) -> bool:
    """Whether a text from data may become a link."""
    return text is not None and re.match(r"https?://[^\s/]", text, re.IGNORECASE) is not None
