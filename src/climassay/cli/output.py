"""Output of commands: results go to stdout, as text or one JSON document; progress and notes go to stderr."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from climassay.errors import InputError
from climassay.reporting.results import RESULT_SUFFIXES, AssembledResult, json_text, unknown_suffix

if TYPE_CHECKING:
    from rich.console import Console

    from climassay.progress import Progress
    from climassay.reporting.results import Result
    from climassay.session import Session

REDIRECTED_WIDTH = 160
"""Width in characters of tables that are printed to a file or a pipe."""


def stdout_console() -> "Console":
    """Return the console that prints results to stdout. Lines are wrapped only if stdout is a terminal."""
    from climassay.terminal import TerminalConsole

    is_redirected = not sys.stdout.isatty()
    width = REDIRECTED_WIDTH if is_redirected and "COLUMNS" not in os.environ else None
    return TerminalConsole(soft_wrap=is_redirected, width=width)


def stderr_console() -> "Console":
    """Return the console that prints progress and notes to stderr."""
    from climassay.terminal import TerminalConsole

    return TerminalConsole(stderr=True)


def progress_bars() -> "Progress":
    """Return a display of progress bars on stderr, which leaves stdout to the result, as text or JSON."""
    from climassay.progress import Bars

    return Bars(stderr_console())


def print_json(data: Any) -> None:
    """Print data as one JSON document on stdout.

    Dataclasses, paths and numpy numbers are converted; NaN becomes null.
    """
    from climassay.terminal import visible_json

    sys.stdout.write(visible_json(json_text(data)) + "\n")


def print_note(sentence: str) -> None:
    """Print one sentence on stderr."""
    stderr_console().print(sentence, highlight=False, soft_wrap=True)


def check_output_files(files: Sequence[Path]) -> None:
    """Check that a result can be saved in files with these names.

    Raises:
        InputError: A file is a folder, or its suffix is not one of ``RESULT_SUFFIXES``.
    """
    for file in files:
        if file.is_dir():
            raise InputError(f"{file} is a folder: name a file.")
        if file.suffix.lower() not in RESULT_SUFFIXES:
            raise unknown_suffix(file)


def emit(
    result: "Result",
    as_json: bool = False,
    files: Sequence[Path] = (),
    *,
    written_files: Sequence[Path] = (),
    session: "Session | None" = None,
) -> None:
    """Save a result to files and print it.

    It is printed as one JSON document, or as text and tables on stdout with notes on stderr.

    Args:
        result: Result of a command.
        as_json: Whether to print JSON.
        files: Files to which the result is saved; the suffix decides the format.
        written_files: Files that the command has already written, which are listed in the notes.
        session: Session of the command; notes about its failed model calls are added to the result.

    Raises:
        InputError: A file cannot be written.
        ClimassayError: The command failed (see :meth:`Result.failure`), or no model call was answered.
    """
    if session is not None and (records := session.records_of_runs) is not None:
        from climassay.api.records import with_failed_calls

        result = with_failed_calls(result, records)
    saved_files = [result.save(file) for file in files]
    if as_json:
        print_json(result.to_dict())
    else:
        console = stdout_console()
        for line in result.lines():
            console.print(line, highlight=False, soft_wrap=True if isinstance(line, str) else None)
        for table in result.terminal_tables(console.width):
            console.print(table)
        for sentence in (*result.notes(), *(f"{file} written." for file in (*saved_files, *written_files))):
            print_note(sentence)
    if (error := result.failure()) is not None:
        raise error


def report_done(data: Any, *sentences: str, notes: Sequence[str] = (), as_json: bool = False) -> None:
    """Print the outcome of a command: either ``data`` as JSON, or sentences on stdout and notes on stderr."""
    emit(AssembledResult(data, printed_lines=sentences, noted=notes), as_json)
