"""What the commands share: options, JSON output, progress bars. Results go to stdout, everything else to stderr."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from climassay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from rich.console import Console
    from rich.progress import Progress

    from climassay.cli.model_options import RayOptions
    from climassay.progress import Progress as ShownProgress
    from climassay.reporting.results import Result
    from climassay.session import ModelOptions, Session

WorkspaceOption = Annotated[
    Path | None,
    typer.Option("--workspace", "-w", help="Folder of collections and records.", envvar="CLIMASSAY_WORKSPACE"),
]
WIDE = 160
"""Columns of tables that go to a file or a pipe."""
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]


def check_files(files: list[Path] | None) -> list[Path]:
    """Refuse files that a result cannot be saved in, before any work is done.

    Raises:
        InputError: One has another ending, or is a folder.
    """
    for file in files or ():
        from climassay.reporting.results import RESULT_SUFFIXES, unknown_suffix

        if file.is_dir():
            raise InputError(f"{file} is a folder: name a file.")
        if file.suffix.lower() not in RESULT_SUFFIXES:
            raise unknown_suffix(file)
    return files or []


FilesOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--output",
        "-o",
        "--html",
        "--csv",
        "--markdown",
        metavar="FILE",
        callback=check_files,
        help="Save the result too, as the ending says: .csv, .xlsx, .jsonl, .json, .md or .html; repeat.",
    ),
]


def stdout_console() -> "Console":
    """Console for results; wide where nobody's screen limits it, so that tables in files and pipes are whole."""
    from rich.console import Console

    unlimited = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    width = WIDE if unlimited else None
    # Documents and names may have brackets and colons, which are not markup of ours.
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
    from climassay.reporting.results import json_text

    # Names of files are bytes: one that is not UTF-8 is written with JSON's own escapes.
    sys.stdout.write(json_text(data).encode("utf-8", "backslashreplace").decode() + "\n")


def emit(
    result: "Result",
    as_json: bool = False,
    files: "Sequence[Path] | Path | None" = None,
    written: "Sequence[Path]" = (),
) -> None:
    """Give out what a job gave back: files first, then one JSON document, or lines and tables with notes on stderr.

    Args:
        result: What the job gave back.
        as_json: Print JSON.
        files: Files to save it in, each as its ending says.
        written: Files that hold parts of it already.

    Raises:
        InputError: A file cannot be written.
    """
    from climassay.reporting import as_rich

    saved = [result.save(file) for file in ([files] if isinstance(files, Path) else files or ())]
    if as_json:
        print_json(result.to_dict())
        return
    console, note = stdout_console(), stderr_console()
    for line in result.lines():
        console.print(line, highlight=False, soft_wrap=True if isinstance(line, str) else None)
    for table in result.terminal_tables(console.width):
        console.print(as_rich(table))
    for sentence in (*result.notes(), *(f"{file} written." for file in (*saved, *written))):
        note.print(sentence, highlight=False, soft_wrap=True)


@dataclass(frozen=True)
class WorkspaceOptions:
    """The workspace of a command, and how its result is told."""

    workspace: WorkspaceOption = None
    as_json: JsonOption = False

    def session(self, options: "ModelOptions | None" = None, **more: Any) -> "AbstractContextManager[Session]":
        """The session of the command, see :func:`opened_session`."""
        return opened_session(self.workspace, options, as_json=self.as_json, **more)

    def emit(
        self, result: "Result", files: "Sequence[Path] | Path | None" = None, written: "Sequence[Path]" = ()
    ) -> None:
        """Give out what the command's job gave back, see :func:`emit`."""
        emit(result, self.as_json, files or getattr(self, "output", None), written)


@dataclass(frozen=True)
class ResultOptions(WorkspaceOptions):
    """The same, and where the result is saved too."""

    output: FilesOption = None


def done(data: Any, *said: str, notes: "Sequence[str]" = (), as_json: bool = False) -> None:
    """Say what a command did: as JSON, or in a sentence on stdout with notes on stderr."""
    from climassay.reporting.results import Shown

    emit(Shown(data, said=said, noted=notes), as_json)


def write_text(path: Path, text: str) -> None:
    """Write a file the user asked for, making its folder; an earlier one stays as it is until the new one is whole.

    Raises:
        InputError: The place cannot be written to.
    """
    from climassay.io import write_file

    # A name that is not UTF-8 may appear in a text; it is written as the bytes that it is.
    write_file(path, text.encode("utf-8", "surrogateescape"))


def add_init(app: typer.Typer, name: str, what: str, module: str, command: str) -> None:
    """Give a group the command ``init``, which writes a configuration with every entry explained.

    Args:
        app: The group.
        name: Name of the file where the user gives none.
        what: What is written, in words.
        module: Where ``COMMENTED``, the text, is, within this package.
        command: What runs the file, between ``climassay`` and its name.
    """

    @app.command(help=f"Write {what} with every entry explained.")
    def init(
        file: Annotated[Path, typer.Argument(help="File to write.")] = Path(name), as_json: JsonOption = False
    ) -> None:
        if file.exists():
            raise InputError(f"{file} is there already: name another file.")
        write_text(file, import_module(f"climassay.{module}").COMMENTED)
        done({"file": file}, f"Wrote {file}; run it with: climassay {command} {file}", as_json=as_json)


@contextmanager
def progress_bar(quiet: bool = False) -> Iterator["Progress"]:
    """A rich progress display on stderr with count, rate-aware time left and time spent.

    Args:
        quiet: Show nothing (the tasks can be updated all the same).
    """
    from climassay.progress import bars

    with bars(stderr_console(), hidden=quiet) as progress:
        yield progress


def shown_progress(as_json: bool) -> "ShownProgress":
    """How a command tells how far it is: bars on stderr, nothing beside JSON."""
    from climassay.progress import Bars
    from climassay.progress import Progress as Silent

    return Silent() if as_json else Bars(stderr_console())


@contextmanager
def opened_session(
    workspace: Path | None,
    options: "ModelOptions | None" = None,
    *,
    as_json: bool = False,
    where: "RayOptions | None" = None,
    records_url: str | None = None,
) -> Iterator["Session"]:
    """The session of a command.

    Args:
        workspace: As the user named it.
        options: How models are loaded and asked.
        as_json: Tell no progress.
        where: Workers of a cluster.
        records_url: Database of the records; by default the workspace's.

    Raises:
        InputError: The workspace cannot be made, or the cluster cannot be joined.
    """
    from contextlib import nullcontext

    from climassay.session import Session

    progress = shown_progress(as_json)
    with (
        where.opened(quiet=as_json) if where is not None else nullcontext() as pool,
        Session.opened(workspace, options, progress=progress, pool=pool, records_url=records_url) as session,
    ):
        yield session
