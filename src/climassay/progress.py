"""How far long work is: shown on a terminal, in a notebook, or not at all."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as RichProgress

_REDRAWN = 0.2
"""Seconds between two drawings in a notebook."""


class Task:
    """One piece of work; this one shows nothing."""

    def advance(self, count: int = 1) -> None:
        """Say that so many more units are done."""

    def update(
        self, *, description: str | None = None, completed: float | None = None, total: float | None = None
    ) -> None:
        """Change what is shown; None leaves it as it is."""


class Progress:
    """Shows how far long work is; this one shows nothing."""

    @contextmanager
    def task(self, description: str, total: float | None = None) -> Iterator[Task]:  # noqa: ARG002
        """Show a task until it ends.

        Args:
            description: What is being done.
            total: Units of work; None where that is not known.
        """
        yield Task()

    @contextmanager
    def waiting(self, words: str) -> Iterator[None]:  # noqa: ARG002
        """Say what is waited for, until it is there."""
        yield

    @contextmanager
    def preview(self) -> Iterator[Callable[[str], None] | None]:
        """Show a text while it is written, until the whole text is there; None where nobody would see it."""
        yield None

    def say(self, words: str) -> None:
        """Tell something in passing."""


class Bars(Progress):
    """Progress bars with count and time left, by default on standard error."""

    def __init__(self, console: "Console | None" = None) -> None:
        from rich.console import Console

        self._console = console or Console(stderr=True, markup=False, emoji=False)
        self._display: RichProgress | None = None

    @contextmanager
    def task(self, description: str, total: float | None = None) -> Iterator[Task]:
        """Show a bar until the task ends; tasks within a task appear in the same display."""
        if self._display is not None:
            yield from _Bar(self._display, description, total).running()
            return
        with _bars(self._console) as display:
            self._display = display
            try:
                yield from _Bar(display, description, total).running()
            finally:
                self._display = None

    @contextmanager
    def waiting(self, words: str) -> Iterator[None]:
        """Show a spinner with the words."""
        from rich.text import Text

        if self._display is not None:
            yield
            return
        with self._console.status(Text(words)):
            yield

    @contextmanager
    def preview(self) -> Iterator[Callable[[str], None] | None]:
        """Show each text in the place of the one before."""
        from rich.live import Live
        from rich.text import Text

        if self._display is not None or not self._console.is_terminal:
            yield None
            return
        with Live(console=self._console, transient=True, auto_refresh=False) as live:
            yield lambda text: live.update(Text(text, style="dim"), refresh=True)

    def say(self, words: str) -> None:
        """Print a line above the bars."""
        self._console.print(words, highlight=False)


class NotebookBars(Bars):
    """The same below the cell of a notebook, in any front end and without widgets."""

    def __init__(self) -> None:
        from rich.console import Console

        super().__init__(Console(quiet=True, force_jupyter=False))
        self._show: Callable[[Any], None] = lambda _: None

    @contextmanager
    def task(self, description: str, total: float | None = None) -> Iterator[Task]:
        """See :class:`Bars`; a change of a task draws the display anew."""
        if self._display is not None:
            yield from _Bar(self._display, description, total, self._show).running()
            return
        self._display = _bars(self._console)
        with _below_the_cell(keep=True) as self._show:
            try:
                yield from _Bar(self._display, description, total, self._show).running()
            finally:
                self._display = None

    @contextmanager
    def waiting(self, words: str) -> Iterator[None]:
        """Show the words until it is there."""
        from rich.text import Text

        with _below_the_cell() as show:
            if self._display is None:
                show(Text(words))
            yield

    @contextmanager
    def preview(self) -> Iterator[Callable[[str], None] | None]:
        """Show each text in the place of the one before."""
        from rich.text import Text

        with _below_the_cell() as show:
            yield lambda text: show(Text(text, style="dim"))

    def say(self, words: str) -> None:
        """Print a line."""
        print(words)


@contextmanager
def _below_the_cell(*, keep: bool = False) -> Iterator[Callable[[Any], None]]:
    """Show one thing in the place of another, five times a second at most; the last one is kept, or wiped away."""
    from IPython.display import HTML, display

    handle: Any = None
    last, drawn = None, -inf

    def show(thing: Any) -> None:
        nonlocal handle, last, drawn
        last = thing
        if monotonic() - drawn >= _REDRAWN:
            drawn = monotonic()
            if handle is None:
                handle = display(thing, display_id=True)
            else:
                handle.update(thing)

    try:
        yield show
    finally:
        if handle is not None:
            handle.update(last if keep else HTML(""))


def _bars(console: "Console") -> "RichProgress":
    """A display with count, time spent and time left."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    words = TextColumn("{task.description}", markup=False)
    return Progress(
        words, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(), console=console
    )


class _Bar(Task):
    def __init__(
        self,
        display: "RichProgress",
        description: str,
        total: float | None,
        show: Callable[["RichProgress"], None] = lambda _: None,
    ) -> None:
        self._display, self._show, self._id = display, show, display.add_task(description, total=total)
        show(display)

    def advance(self, count: int = 1) -> None:
        self._display.advance(self._id, count)
        self._show(self._display)

    def update(
        self, *, description: str | None = None, completed: float | None = None, total: float | None = None
    ) -> None:
        self._display.update(self._id, description=description, completed=completed, total=total)
        self._show(self._display)

    def running(self) -> Iterator[Task]:
        """The bar until its task is done; one that counted nothing is then removed, and an unknown total is known."""
        yield self
        task = next(one for one in self._display.tasks if one.id == self._id)
        if task.total is None and not task.completed:
            self._display.remove_task(self._id)
        elif task.total is None:
            self._display.update(self._id, total=task.completed)
        self._show(self._display)


def default_progress() -> Progress:
    """Bars in a notebook; nothing elsewhere."""
    shell = sys.modules.get("IPython")
    kind = type(shell.get_ipython()).__name__ if shell is not None else ""
    return NotebookBars() if kind == "ZMQInteractiveShell" else Progress()
