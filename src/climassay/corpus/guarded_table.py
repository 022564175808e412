"""LanceDB tables shared by processes: file locks, and errors that name the damaged collection."""

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from climassay.errors import ClimassayError, InputError

try:
    import fcntl
except ImportError:  # Windows: LanceDB's own conflict detection remains.
    fcntl = None  # type: ignore[assignment]

_NOT_FOUND = "not found"
"""Text that occurs in error messages about missing files."""
_PANICS = ("RustPanic", "PanicException")
"""Names of exceptions that LanceDB raises for unexpected damage; some do not derive from :class:`Exception`."""


@contextmanager
def reader_lock(path: Path | None) -> Iterator[None]:
    """Hold a shared lock while passages are read in batches, so that the table version in use is not deleted.

    Does nothing if ``path`` is None or cannot be written, or if the system has no file locks.
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
def exclude_readers(path: Path | None) -> Iterator[bool]:
    """Try to obtain an exclusive lock without waiting for readers; yield whether it was obtained.

    Yields False if a reader holds the lock or if the system has no file locks.
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
    """Hold an exclusive lock between processes; the system releases it if the process dies.

    Without it, concurrent inserts of the same keys during a compaction have produced duplicates, although LanceDB
    detects most write conflicts. Does nothing if ``path`` is None or the system has no file locks.
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


class DamagedCollectionError(InputError):
    """Error for a collection whose files are damaged or unreadable."""


class GuardedTable:
    """Proxy for a LanceDB table or query that converts the library's errors into :class:`DamagedCollectionError`.

    LanceDB reads files lazily, so that any call may fail because of damage, with errors of many types.
    """

    def __init__(self, inner: Any, name: str, address: str, reader_lock_file: Path | None = None) -> None:
        self._inner, self._name, self._address, self._reader_lock_file = inner, name, address, reader_lock_file

    def __getattr__(self, attribute: str) -> Any:
        value = self._guard(lambda: getattr(self._inner, attribute))
        if attribute == "to_batches":
            return lambda *arguments, **keywords: self._iterate_batches(lambda: value(*arguments, **keywords))
        return self._wrap(value) if callable(value) else value

    def search_words(self, words: str, where: str | None, limit: int, *, headings: bool = False) -> Any:
        """Search the full-text index by BM25.

        This makes one call to LanceDB's event loop. LanceDB's blocking search makes five calls and takes twice as long.

        Args:
            words: Query.
            where: SQL condition on the columns; None for no condition.
            limit: Maximum number of passages.
            headings: Search headings for all words of the query, instead of texts for any word.

        Returns:
            Arrow table with ids and BM25 scores (``_score``) of the passages.
        """
        from lancedb.background_loop import LOOP
        from lancedb.query import FullTextOperator, MatchQuery

        column, operator = ("headings", FullTextOperator.AND) if headings else ("text", FullTextOperator.OR)

        def search() -> Any:
            match = MatchQuery(words, column, operator=operator)
            query = self._inner._table.query().nearest_to_text(match).select(["id", "_score"])
            return LOOP.run((query if where is None else query.where(where)).limit(limit).to_arrow())

        return self._wrap(search)()

    def __len__(self) -> int:
        return int(self._guard(lambda: len(self._inner)))

    def _wrap(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            def read() -> Any:
                try:
                    return method(*arguments, **keywords)
                except (OSError, RuntimeError, ValueError) as error:
                    if _NOT_FOUND not in str(error).lower():
                        raise
                    # Another process has compacted the collection, so that there is a newer version to read.
                    return method(*arguments, **keywords)

            value = self._guard(read)
            result_type = type(value)
            # Tables and queries are wrapped again; results (Arrow tables, lists, numbers) are returned unchanged.
            if result_type.__module__.startswith("lancedb"):
                return GuardedTable(value, self._name, self._address, self._reader_lock_file)
            return value

        return call

    def _iterate_batches(self, begin: Callable[[], Any]) -> Iterator[Any]:
        with reader_lock(self._reader_lock_file):
            reader = self._guard(begin)
            while True:
                try:
                    batch = self._guard(reader.read_next_batch)
                except StopIteration:
                    return
                yield batch

    def _guard(self, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except (ClimassayError, AttributeError, StopIteration, TypeError):
            raise
        except (OSError, RuntimeError, ValueError) as error:
            raise_damage(error, self._name, self._address)
        except BaseException as error:
            if type(error).__name__ not in _PANICS:
                raise
            raise_damage(error, self._name, self._address)


def raise_damage(error: BaseException, name: str, address: str) -> NoReturn:
    """Convert a LanceDB error into an error with advice, and raise it.

    Raises:
        InputError: The disk is full.
        DamagedCollectionError: The collection is unreadable for any other reason.
    """
    message = (str(error).split(", /")[0].strip().splitlines() or [type(error).__name__])[0][:200]
    is_full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    if is_full or "No space left" in str(error) or "File too large" in str(error):
        raise InputError(
            f"The collection {name!r} in {address} cannot be written because the disk is full: free some "
            "space and run the "
            "command again."
        ) from error
    raise DamagedCollectionError(
        f"The collection {name!r} in {address} cannot be read ({message.rstrip('.')}): if it is damaged, delete "
        f"{name}.lance there and add its documents again."
    ) from error
