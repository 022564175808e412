"""A pytest plugin that makes threads late: a test that looks before something has happened fails under it.

After what another thread waits for has been set, put or sent, the thread that did it naps before it goes on, and a new
thread naps before it begins. On an idle machine these moments are too short for a test to fall into; on a busy one they
are not. ``make test-late-threads`` loads the plugin; ``LATE_THREADS_SEED`` draws other naps.
"""

import asyncio.selector_events
import os
import queue
import random
import threading
import time
from collections.abc import Callable
from functools import wraps
from typing import Any

NAP, LONG_NAP = 0.03, 0.4
"""Seconds: the longest usual nap, and one that is rare."""
RARE = 0.02
"""Share of the places where a nap is long."""

_draw = random.Random(os.environ.get("LATE_THREADS_SEED", "1"))


def nap(share: float) -> None:
    """Sleep, in this share of all cases."""
    drawn = _draw.random()
    if drawn < share:
        time.sleep(_draw.random() * NAP)
    if drawn < RARE:
        time.sleep(LONG_NAP)


def _napping(method: Callable[..., Any], share: float, *, first: bool = False) -> Callable[..., Any]:
    @wraps(method)
    def late(*args: Any, **options: Any) -> Any:
        if first:
            nap(share)
        given = method(*args, **options)
        if not first:
            nap(share)
        return given

    return late


def pytest_configure() -> None:
    """Make threads late from now on."""
    transport: Any = asyncio.selector_events._SelectorSocketTransport  # What servers of asyncio answer through.
    for owner, name, share in ((threading.Event, "set", 0.3), (queue.Queue, "put", 0.1), (transport, "write", 0.5)):
        setattr(owner, name, _napping(getattr(owner, name), share))
    thread: Any = threading.Thread
    thread.run = _napping(thread.run, 0.8, first=True)
