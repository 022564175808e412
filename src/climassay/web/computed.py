"""What is computed for a page, once for all who look at it, until its content changes."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")
KEPT = 256
"""Results that are kept; those that were not asked for the longest time go first."""


class Computed:
    """Results by what they were computed from; threads may share it."""

    def __init__(self, most: int = KEPT) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._made: OrderedDict[Hashable, Future[Any]] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """A result; who asks for it while it is computed waits for it, and an error is told to all of these.

        Args:
            key: Names the content that the result follows from.
            make: Computes it.
        """
        with self._lock:
            known = self._made.get(key)
            found: Future[T] = self._made.setdefault(key, Future())
            self._made.move_to_end(key)
            while len(self._made) > self._most:
                self._made.popitem(last=False)
        if known is None:
            try:
                found.set_result(make())
            except BaseException as error:
                found.set_exception(error)
                with self._lock:
                    self._made.pop(key, None)
        return found.result()
