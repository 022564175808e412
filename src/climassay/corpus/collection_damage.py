"""Damage to the files of a collection, told in one sentence wherever the table is read or written."""

import errno
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from climassay.corpus.collection_lock import reading
from climassay.errors import ClimassayError, InputError

_GONE = "not found"
"""In the error of a file that is not there."""
_PANICS = ("RustPanic", "PanicException")
"""What the table's library raises where damage met it unprepared; not all of them are an :class:`Exception`."""


class DamagedCollectionError(InputError):
    """Files of a collection are damaged, or the library that reads them cannot."""


class GuardedTable:
    """A LanceDB table, or a part of a query on one, whose errors say which collection is damaged and what to do.

    The library reports damage where a file is first read, which may be in any of its calls, as errors of many types.

    Args:
        inner: The table or query.
        name: Of the collection.
        address: Where it lies.
        reading_file: File whose lock says that somebody reads, where there is one.
    """

    def __init__(self, inner: Any, name: str, address: str, reading_file: Path | None = None) -> None:
        self._inner, self._name, self._address, self._reading_file = inner, name, address, reading_file

    def __getattr__(self, attribute: str) -> Any:
        value = self._try(lambda: getattr(self._inner, attribute))
        if attribute == "to_batches":
            return lambda *arguments, **named: self._batches(lambda: value(*arguments, **named))
        return self._calling(value) if callable(value) else value

    def search_words(self, words: str, where: str | None, most: int) -> Any:
        """Ids and BM25 scores (``_score``) of the passages that share words with a query, as an Arrow table.

        The library's blocking search asks its thread five times for one query, this asks it once: half of the time.

        Args:
            words: The query.
            where: Condition on the passages looked at, in SQL.
            most: Passages.
        """
        from lancedb.background_loop import LOOP

        def search() -> Any:
            query = self._inner._table.query().nearest_to_text(words, columns=["text"]).select(["id", "_score"])
            return LOOP.run((query if where is None else query.where(where)).limit(most).to_arrow())

        return self._calling(search)()

    def __len__(self) -> int:
        return int(self._try(lambda: len(self._inner)))

    def _calling(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            def read() -> Any:
                try:
                    return method(*arguments, **named)
                except (OSError, RuntimeError, ValueError) as error:
                    if _GONE not in str(error).lower():
                        raise
                    # Another process has compacted the collection meanwhile: there is a newer version to be read.
                    return method(*arguments, **named)

            found = self._try(read)
            kind = type(found)
            # Queries are put together by calls on calls; answers (Arrow tables, lists, numbers) pass as they are.
            if kind.__module__.startswith("lancedb"):
                return GuardedTable(found, self._name, self._address, self._reading_file)
            return found

        return call

    def _batches(self, begin: Callable[[], Any]) -> Iterator[Any]:
        with reading(self._reading_file):
            reader = self._try(begin)
            while True:
                try:
                    batch = self._try(reader.read_next_batch)
                except StopIteration:
                    return
                yield batch

    def _try(self, work: Callable[[], Any]) -> Any:
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


def newest_version(folder: Path) -> int:
    """The number of a table's newest version, as the library noted it beside the manifests; 0 where it did not.

    Args:
        folder: Of the table.
    """
    try:
        noted = json.loads((folder / "_versions" / "latest_version_hint.json").read_bytes())
        return int(noted["version"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return 0


def raise_damage(error: BaseException, name: str, address: str) -> NoReturn:
    """Say that a collection cannot be used, and what to do about it.

    Raises:
        InputError: The disk is full.
        DamagedCollectionError: Anything else.
    """
    said = (str(error).split(", /")[0].strip().splitlines() or [type(error).__name__])[0][:200]
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    if full or "No space left" in str(error) or "File too large" in str(error):
        raise InputError(
            f"The collection {name!r} in {address} cannot be written because the disk is full: make room and run the "
            "command again."
        ) from error
    raise DamagedCollectionError(
        f"The collection {name!r} in {address} cannot be read ({said.rstrip('.')}): if it is damaged, delete "
        f"{name}.lance there and add its documents again."
    ) from error
