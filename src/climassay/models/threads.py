"""How many threads torch should use: found by a short measurement, because no rule is right.

On a machine shared with others, two threads on two busy cores can be several times slower than one, for each parallel
loop waits for the slower core; on a machine of one's own more threads are faster, up to some number.
"""

import os
import time
from collections.abc import Callable

from climassay.errors import InputError

THREADS_VARIABLE = "CLIMASSAY_THREADS"
_SECONDS_EACH = 0.15
_CLEARLY_SLOWER = 1.25
_chosen: int | None = None


def choose_threads(work: Callable[[], object]) -> int:
    """Set torch's number of threads for this process, by measurement at the first call.

    ``$CLIMASSAY_THREADS`` decides instead where it is set. Later calls in the same process do nothing.

    Args:
        work: A short piece of the work to come.

    Returns:
        The number of threads in use.

    Raises:
        InputError: ``$CLIMASSAY_THREADS`` is not a positive whole number.
    """
    global _chosen
    import torch

    if _chosen is None:
        _chosen = _threads_wanted() or _fastest(work, torch.set_num_threads)
    torch.set_num_threads(_chosen)
    return _chosen


def _threads_wanted() -> int | None:
    text = os.environ.get(THREADS_VARIABLE)
    if not text:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise InputError(f"{THREADS_VARIABLE} is {text!r}: set it to a whole number of threads, for example 1.")
    return int(text)


def _fastest(work: Callable[[], object], set_threads: Callable[[int], None]) -> int:
    """Try ever more threads as long as that is not clearly slower."""
    best, best_seconds = 1, float("inf")
    for threads in _candidates(_cores()):
        set_threads(threads)
        seconds = _seconds(work)
        if seconds < best_seconds:
            best, best_seconds = threads, seconds
        elif seconds > _CLEARLY_SLOWER * best_seconds:
            break
    return best


def _cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _candidates(cores: int) -> list[int]:
    """Powers of two up to the number of cores, and that number."""
    return sorted({1 << power for power in range(cores.bit_length()) if 1 << power <= cores} | {cores})


def _seconds(work: Callable[[], object]) -> float:
    """Mean time of the work after one run to warm up; the mean and not the best, for contention is what matters."""
    started = time.perf_counter()
    work()
    if time.perf_counter() - started > 10 * _SECONDS_EACH:
        return time.perf_counter() - started
    started, runs = time.perf_counter(), 0
    while time.perf_counter() - started < _SECONDS_EACH:
        work()
        runs += 1
    return (time.perf_counter() - started) / runs
