"""Progress of long tasks on a terminal or in a notebook."""

import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as RichProgress
    from rich.progress import Task as RichTask

_REDRAW_SECONDS = 0.2
"""Minimum interval between updates of the display in a notebook, in seconds."""
FIRST_LINE_SECONDS, LINE_SECONDS = 5.0, 60.0
"""Seconds until the first lines about running tasks are written to a log file, and seconds between later ones."""
_PACE_SAMPLES = 50
"""Number of the most recent updates over which the seconds per unit of work are averaged."""


class Task:
    """Task whose progress is not displayed; base class of tasks with a display."""

    def advance(self, count: int = 1) -> None:
        """Add completed units of work to the progress."""

    def update(
        self, *, description: str | None = None, completed: float | None = None, total: float | None = None
    ) -> None:
        """Change those displayed values that are not None."""


class Progress:
    """Progress display that shows nothing; base class of other displays."""

    @contextmanager
    def task(self, description: str, total: float | None = None) -> Iterator[Task]:  # noqa: ARG002
        """Yield a task whose progress is displayed until the end of the block.

        Args:
            description: Description of the task.
            total: Number of units of work; None if unknown.
        """
        yield Task()

    @contextmanager
    def status(self, message: str) -> Iterator[None]:  # noqa: ARG002
        """Display a message until the end of the block."""
        yield

    @contextmanager
    def preview(self) -> Iterator[Callable[[str], None] | None]:
        """Yield a function that displays a preview of a text, or None if previews are not displayed."""
        yield None

    def say(self, words: str) -> None:
        """Print a line."""


class Bars(Progress):
    """Progress display with bars that show counts, seconds per unit and remaining time, by default on stderr.

    A console that is not a terminal, such as a log file, gets a line per task and minute instead.
    """

    def __init__(self, console: "Console | None" = None) -> None:
        from climassay.terminal import TerminalConsole

        self._console = console or TerminalConsole(stderr=True)
        self._display: RichProgress | None = None

    @contextmanager
    def task(self, description: str, total: float | None = None) -> Iterator[Task]:
        """Yield a task with a bar until the end of the block; nested tasks share the display."""
        if self._display is not None:
            yield from _Bar(self._display, description, total).as_task()
            return
        with _make_display(self._console) as display, _lines_in_log(display):
            self._display = display
            try:
                yield from _Bar(display, description, total).as_task()
            finally:
                self._display = None

    @contextmanager
    def status(self, message: str) -> Iterator[None]:
        """Display a spinner with a message until the end of the block."""
        from rich.text import Text

        if self._display is not None:
            yield
            return
        with self._console.status(Text(message)):
            yield

    @contextmanager
    def preview(self) -> Iterator[Callable[[str], None] | None]:
        """Yield a function that displays a preview in place of the previous one."""
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
    """Progress display with bars below a notebook's cell, for any front end and without widgets."""

    def __init__(self) -> None:
        from rich.console import Console

        super().__init__(Console(quiet=True, force_jupyter=False))
        self._show: Callable[[Any], None] = lambda _: None

    @contextmanager
    def task(self, description: str, total: float | None = None) -> Iterator[Task]:
        """Yield a task with a bar until the end of the block; nested tasks share the display."""
        if self._display is not None:
            yield from _Bar(self._display, description, total, self._show).as_task()
            return
        self._display = _make_display(self._console)
        with _display_below_cell(keep=True) as self._show:
            try:
                yield from _Bar(self._display, description, total, self._show).as_task()
            finally:
                self._display = None

    @contextmanager
    def status(self, message: str) -> Iterator[None]:
        """Display a message until the end of the block."""
        from rich.text import Text

        with _display_below_cell() as show:
            if self._display is None:
                show(Text(message))
            yield

    @contextmanager
    def preview(self) -> Iterator[Callable[[str], None] | None]:
        """Yield a function that displays a preview in place of the previous one."""
        from rich.text import Text

        with _display_below_cell() as show:
            yield lambda text: show(Text(text, style="dim"))

    def say(self, words: str) -> None:
        """Print a line."""
        print(words)


@contextmanager
def _display_below_cell(*, keep: bool = False) -> Iterator[Callable[[Any], None]]:
    """Yield a function that displays an object below a notebook's cell in place of the previous one.

    The display is updated at most five times per second. If ``keep`` is True, the last object remains after the block.
    """
    from IPython.display import HTML, display

    handle: Any = None
    last, last_drawn = None, -inf

    def show(value: Any) -> None:
        nonlocal handle, last, last_drawn
        last = value
        if monotonic() - last_drawn >= _REDRAW_SECONDS:
            last_drawn = monotonic()
            if handle is None:
                handle = display(value, display_id=True)
            else:
                handle.update(value)

    try:
        yield show
    finally:
        if handle is not None:
            handle.update(last if keep else HTML(""))


def _make_display(console: "Console") -> "RichProgress":
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    description, pace = TextColumn("{task.description}", markup=False), TextColumn("{task.fields[pace]}", markup=False)
    return Progress(description, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), pace, console=console)


@contextmanager
def _lines_in_log(display: "RichProgress") -> Iterator[None]:
    """Print a line about each unfinished task from time to time if the console is a log file."""
    if display.console.is_terminal:
        yield
        return
    has_ended = Event()

    def print_lines() -> None:
        seconds = FIRST_LINE_SECONDS
        while not has_ended.wait(seconds):
            for task in display.tasks:
                if not task.finished:
                    total = "" if task.total is None else f" of {task.total:,.0f}"
                    pace = f", {task.fields['pace']}" if task.fields["pace"] else ""
                    line = f"{task.description}: {task.completed:,.0f}{total}{pace}"
                    display.console.print(line, highlight=False, soft_wrap=True, markup=False)
            seconds = LINE_SECONDS

    thread = Thread(target=print_lines, name="climassay-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        has_ended.set()
        thread.join()


def format_duration(seconds: float) -> str:
    """Format a duration, for example as ``0.4 s``, ``41 s``, ``12 min`` or ``3.4 h``."""
    if seconds < 90:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class _Bar(Task):
    def __init__(
        self,
        display: "RichProgress",
        description: str,
        total: float | None,
        show: Callable[["RichProgress"], None] = lambda _: None,
    ) -> None:
        self._display, self._show = display, show
        self._id = display.add_task(description, total=total, pace="")
        self._samples = deque([(monotonic(), 0.0)], maxlen=_PACE_SAMPLES)
        """Times of the latest advances, with the number of units completed by then."""
        show(display)

    def advance(self, count: int = 1) -> None:
        self._display.advance(self._id, count)
        self._update_pace()
        self._show(self._display)

    def update(
        self, *, description: str | None = None, completed: float | None = None, total: float | None = None
    ) -> None:
        self._display.update(self._id, description=description, completed=completed, total=total)
        self._update_pace()
        self._show(self._display)

    def _update_pace(self) -> None:
        """Show seconds per unit and remaining time."""
        task, now = self._task, monotonic()
        if task.completed > self._samples[-1][1]:
            self._samples.append((now, task.completed))
        (start, first_completed), (end, n_completed) = self._samples[0], self._samples[-1]
        if n_completed <= first_completed:
            return
        seconds = (end - start) / (n_completed - first_completed)
        n_remaining = 0 if task.total is None else task.total - task.completed
        remaining_note = f", {format_duration(seconds * n_remaining)} left" if n_remaining > 0 else ""
        self._display.update(self._id, pace=f"{format_duration(seconds)} each{remaining_note}")

    @property
    def _task(self) -> "RichTask":
        return next(task for task in self._display.tasks if task.id == self._id)

    def as_task(self) -> Iterator[Task]:
        """Yield the bar.

        Afterwards, if its total is unknown, set the total to the count, or remove a bar without progress.
        """
        yield self
        task = self._task
        if task.total is None and not task.completed:
            self._display.remove_task(self._id)
        elif task.total is None:
            self._display.update(self._id, total=task.completed)
        self._show(self._display)


def default_progress() -> Progress:
    """Return a display with progress bars in a notebook, and one that shows nothing elsewhere."""
    shell = sys.modules.get("IPython")
    kind = type(shell.get_ipython()).__name__ if shell is not None else ""
    return NotebookBars() if kind == "ZMQInteractiveShell" else Progress()
