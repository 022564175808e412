"""Layout of ``--help``: names in one column, wrapped descriptions in another, in plain text."""

import textwrap
from typing import Any

from cyclopts.help import HelpEntry, HelpPanel, PlainFormatter
from rich.console import Console

MAX_LABEL_WIDTH = 26
"""Maximum width of a label in characters; the description of a longer label begins on the next line."""


class AlignedFormatter(PlainFormatter):
    """Formatter that prints the commands, arguments and options of a help page in two columns."""

    def __call__(self, console: Any, options: Any, panel: HelpPanel) -> None:  # noqa: ARG002
        """Print one section of a help page."""
        if not panel.entries:
            return
        lines = [f"{panel.title}:"]
        labels = [", ".join(entry.display_labels_with_metavar) for entry in panel.entries]
        column = 4 + max((len(label) for label in labels if len(label) <= MAX_LABEL_WIDTH), default=MAX_LABEL_WIDTH)
        for label, entry in zip(labels, panel.entries, strict=True):
            description = textwrap.wrap(_describe(entry), max(console.width - column, 30)) or [""]
            if len(label) > column - 4:
                lines.append(f"  {label}")
            else:
                lines.append(f"  {label:<{column - 2}}{description.pop(0)}".rstrip())
            lines += [" " * column + line for line in description]
        console.print("\n".join(lines) + "\n", highlight=False, markup=False, soft_wrap=True)


def _describe(entry: HelpEntry) -> str:
    """Return an entry's description, followed by its choices, environment variables, default and [required]."""
    parts = [_plain_text(entry.description)]
    if entry.choices:
        parts.append(f"[choices: {', '.join(entry.choices)}]")
    if entry.env_var:
        parts.append(f"[env: {', '.join(entry.env_var)}]")
    if entry.default not in (None, "False", "()", "", "''", '""'):
        parts.append(f"[default: {entry.default}]")
    if entry.required:
        parts.append("[required]")
    return " ".join(part for part in parts if part)


def _plain_text(description: Any) -> str:
    console = Console(width=100_000, color_system=None, markup=False, emoji=False, highlight=False)
    with console.capture() as capture:
        console.print(description or "")
    return " ".join(capture.get().split())
