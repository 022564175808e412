"""What the commands share: options, JSON output, progress bars. Results go to stdout, everything else to stderr."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from climassay.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

WorkspaceOption = Annotated[
    Path | None,
    typer.Option("--workspace", "-w", help="Folder of collections and records.", envvar="CLIMASSAY_WORKSPACE"),
]
WIDE = 160
"""Columns of tables that go to a file or a pipe."""
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]


def stdout_console() -> "Console":
    """Console for results; wide where nobody's screen limits it, so that tables in files and pipes are whole."""
    from rich.console import Console

    unlimited = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    width = WIDE if unlimited else None
    # Documents and names may have brackets and colons, which are no markup of ours.
    return Console(soft_wrap=not sys.stdout.isatty(), width=width, markup=False, emoji=False)


def stderr_console() -> "Console":
    """Console for progress and notes."""
    from rich.console import Console

    return Console(stderr=True, markup=False, emoji=False)


@contextmanager
def waiting(words: str, *, quiet: bool = False) -> Iterator[None]:
    """Say on stderr what is waited for, until it is there.

    Args:
        words: Shown as they are.
        quiet: Show nothing.
    """
    if quiet:
        yield
        return
    from rich.text import Text

    with stderr_console().status(Text(words)):
        yield


def print_json(data: Any) -> None:
    """Print one JSON document on stdout; dataclasses, paths and numpy numbers are understood; never NaN."""

    def default(value: Any) -> Any:
        if is_dataclass(value) and not isinstance(value, type):
            return asdict(value)
        if isinstance(value, Path):
            return str(value)
        if hasattr(value, "tolist"):
            return value.tolist()
        raise TypeError(f"{type(value).__name__} cannot be written as JSON")

    text = json.dumps(data, default=default, ensure_ascii=False, indent=2, allow_nan=False)
    # Names of files are bytes: one that is no UTF-8 is written with JSON's own escapes.
    sys.stdout.write(text.encode("utf-8", "backslashreplace").decode() + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a file the user asked for, making its folder; an earlier one stays as it is until the new one is whole.

    Raises:
        InputError: The place cannot be written to.
    """
    from climassay.folder_files import write_file

    # A name that is no UTF-8 may stand in a text; it is written as the bytes that it is.
    write_file(path, text.encode("utf-8", "surrogateescape"))


def write_commented(file: Path, text: str, said: str, as_json: bool) -> None:
    """Write a configuration with every entry explained, and say what comes next.

    Args:
        file: Not there yet.
        text: Of the configuration.
        said: What the user is told.
        as_json: Tell it as JSON.

    Raises:
        InputError: The file is there already, or cannot be written.
    """
    if file.exists():
        raise InputError(f"{file} is there already: name another file.")
    write_text(file, text)
    if as_json:
        print_json({"file": file})
    else:
        stdout_console().print(said, highlight=False)


@contextmanager
def progress_bar(quiet: bool = False) -> Iterator["Progress"]:
    """A rich progress display on stderr with count, rate-aware time left and time spent.

    Args:
        quiet: Show nothing (the tasks can be updated all the same).
    """
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=stderr_console(), disable=quiet) as progress:
        yield progress
