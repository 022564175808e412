"""Comma-separated values that a spreadsheet may open: what models and strangers wrote must not run as a formula."""

import re
from typing import Any

_FORMULA = ("=", "+", "-", "@", "\t", "\n")
_ONLY_NUMBERS = re.compile(r"[+-](?:[\d\s.,;:%()\[\]–−±+-]|[eE](?=[+-]?\d)|(?<= )to(?= ))*")
"""Numbers, intervals and dashes, which a spreadsheet may well compute with."""


def safe_cell(value: Any) -> Any:
    """A cell of a CSV file.

    Spreadsheets run what begins like a formula, as ``=HYPERLINK(...)`` or ``-1+cmd|...``. Such a text gets an
    apostrophe before it, which they take for *this is text*. Numbers, and other formats than CSV, stay as they are.

    Args:
        value: Anything that the csv module writes.
    """
    if not isinstance(value, str):
        return value
    # The csv module leaves a lone carriage return unquoted where lines end in \n, and readers begin a row there.
    text = value.replace("\r\n", "\n").replace("\r", "\n")
    return "'" + text if text.startswith(_FORMULA) and not _ONLY_NUMBERS.fullmatch(text) else text
