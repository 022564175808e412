"""How tests wait for what other threads and processes do.

A test waits for what it is about to look at, never for a time in which that ought to have happened: what takes
milliseconds on an idle machine has taken half a minute on a busy one. The time given here only ends a test that would
wait for ever.
"""

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 300.0
"""Seconds until something that should have happened has failed to."""
LOOK_EVERY = 0.005
"""Seconds between two looks: well below the time in which a killed command does one thing."""


def until(happened: Callable[[], T], pause: Callable[[], object] | None = None) -> T:
    """Wait until something is true, and give what it was."""
    nap = pause or partial(threading.Event().wait, LOOK_EVERY)
    ends = time.monotonic() + PATIENCE
    while not (found := happened()):
        assert time.monotonic() < ends, f"It has not happened within {PATIENCE:.0f} s."
        nap()
    return found


def reached(event: threading.Event) -> None:
    assert event.wait(PATIENCE), f"It has not happened within {PATIENCE:.0f} s."


def job_at_its_end(jobs, job):
    """A job of the server once it has ended."""
    return until(lambda: (found := jobs.get(job)).has_ended and found, lambda: jobs.wait_for_change(0.1))
