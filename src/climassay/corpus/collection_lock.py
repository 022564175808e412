"""One writer at a time on a collection in a local folder."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: LanceDB's own conflict detection remains.
    fcntl = None  # type: ignore[assignment]


@contextmanager
def reading(path: Path | None) -> Iterator[None]:
    """Say that passages are read one after the other, so that the version they belong to is not removed meanwhile.

    Args:
        path: File for who reads; None where there is none (object storage).
    """
    if path is None or fcntl is None:
        yield
        return
    try:
        file = path.open("a")
    except OSError:  # Where nothing can be written, nothing is removed.
        yield
        return
    with file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield


@contextmanager
def no_reader(path: Path | None) -> Iterator[bool]:
    """Keep readers waiting, unless somebody reads.

    Args:
        path: As for :func:`reading`.

    Yields:
        Whether nobody reads; False where that cannot be known.
    """
    if path is None or fcntl is None:
        yield False
        return
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


@contextmanager
def write_lock(path: Path | None) -> Iterator[None]:
    """Hold a lock that other processes wait for; the system frees it when the process dies, however it dies.

    LanceDB detects most conflicting writes by itself, but three processes that inserted the same keys while others
    compacted the table have left duplicates; hence the lock wherever there is a file system to hold it.

    Args:
        path: Lock file, made when it is not there; None where there is nothing to lock (object storage).
    """
    if path is None or fcntl is None:
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)
