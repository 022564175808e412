"""One writer at a time on a collection in a local folder."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: LanceDB's own conflict detection remains.
    fcntl = None  # type: ignore[assignment]


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
