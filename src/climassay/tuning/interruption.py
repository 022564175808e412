"""Ctrl-C during a training: noticed between two passes, so that no step is ever half taken."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interruption:
    """Whether somebody wants the training to end."""

    def __init__(self) -> None:
        self.wanted = False
        self.at_once = False
        """Wanted again: the step under way may be half taken, and must not be saved."""

    def check(self) -> None:
        """End here, if that is wanted.

        Raises:
            KeyboardInterrupt: It is.
        """
        if self.wanted:
            raise KeyboardInterrupt


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Note the first Ctrl-C instead of stopping in the middle of a step; a second one stops at once.

    Only the main thread is told of signals: in any other one nothing is changed.
    """
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return

    def note(_number: int, _frame: FrameType | None) -> None:
        if interruption.wanted:
            interruption.at_once = True
            raise KeyboardInterrupt
        interruption.wanted = True

    before = signal.signal(signal.SIGINT, note)
    try:
        yield interruption
    finally:
        signal.signal(signal.SIGINT, before)
