"""Consoles that show text of models, documents and servers with its control characters as escapes.

A terminal would obey these characters: they can change its title, clear the screen or fill the clipboard. Stored text
and files keep them.
"""

import re
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

_CONTROL_CHARACTERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 except tab and line feed, and C1
    "\u202a-\u202e\u2066-\u2069"  # bidirectional controls
    "\ud800-\udfff]"  # surrogates, which cannot be encoded
)


def visible(text: str) -> str:
    r"""Escape the control characters in a text, which a terminal would obey.

    Example:
        >>> visible("\x1b]0;title\x07")
        '\\x1b]0;title\\x07'
    """
    return _CONTROL_CHARACTERS.sub(_escape, text.replace("\r\n", "\n"))


def visible_json(text: str) -> str:
    """Escape the control characters in a JSON document by JSON's own escapes, which do not change its values."""
    return _CONTROL_CHARACTERS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


class TerminalConsole(Console):
    """Rich console that interprets no markup or emoji codes, and shows control characters as escapes."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of a renderable, with the control characters in their text escaped."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(visible(text), style)
