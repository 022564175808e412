"""Counting what a line has made: by stream, by book, by reason."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from climassay.generation.dataset_store import Placed
from climassay.generation.recipe import Stream

GRACE = 10
"""Drafts that a book may give before its yield is looked at."""
POOR = 0.25
"""A book that yields less than this part of what the stream yields on average is poor ..."""
POOR_SHARE = 0.5
"""... and is asked at most this part as often as the books on average."""


@dataclass(slots=True)
class BookCounts:
    """Drafts of one stream from one book."""

    accepted: int = 0
    following: int = 0
    """Number of its next seed passage; how many were tried."""


@dataclass(slots=True)
class StreamCounts:
    """Drafts of one kind and level."""

    asked: int = 0
    accepted: int = 0
    failed: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    """By the reason of the decision that stands."""
    books: dict[str, BookCounts] = field(default_factory=dict)

    def book(self, name: str) -> BookCounts:
        """What came from one book."""
        return self.books.setdefault(name, BookCounts())

    def needed(self, missing: int, most: int) -> int:
        """Drafts to be written for so many more accepted ones, going by the yield so far."""
        share = (self.accepted + 2) / (self.asked + 2)
        return min(most, math.ceil(missing / share))

    def neediest(self, books: Sequence[str], pending: Mapping[str, int]) -> str:
        """The book with the fewest accepted questions, those under way counted as accepted.

        A poor book, which would have to be asked without end to keep up with the others, is asked more rarely.
        """
        asked = {book: self.book(book).following + pending.get(book, 0) for book in books}
        mean = sum(asked.values()) / len(asked)

        def waits(book: str) -> bool:
            tried, accepted = self.book(book).following, self.book(book).accepted
            poor = tried >= GRACE and (accepted + 1) * self.asked < POOR * (self.accepted + 1) * tried
            return poor and asked[book] > POOR_SHARE * mean

        return min(books, key=lambda book: (waits(book), self.book(book).accepted + pending.get(book, 0), asked[book]))


class LineCounts:
    """All drafts of a dataset, counted."""

    def __init__(self) -> None:
        self._streams: dict[Stream, StreamCounts] = {}

    def __getitem__(self, stream: Stream) -> StreamCounts:
        return self._streams.setdefault(stream, StreamCounts())

    def __iter__(self) -> Iterator[Stream]:
        return iter(self._streams)

    def add(self, placed: Placed) -> None:
        """Count a draft."""
        counts = self[placed.stream]
        book = counts.book(placed.book)
        book.following = max(book.following, placed.number + 1)
        self._tally(counts, placed, 1)

    def remove(self, placed: Placed) -> None:
        """Take back the count of a draft that is made again; its seed passage stays used."""
        self._tally(self[placed.stream], placed, -1)

    @staticmethod
    def _tally(counts: StreamCounts, placed: Placed, one: int) -> None:
        counts.asked += one
        if placed.state == "accepted":
            counts.accepted += one
            counts.book(placed.book).accepted += one
        elif placed.state == "failed":
            counts.failed += one
        else:
            standing = placed.draft.rejection
            counts.rejected[standing.reason if standing else ""] += one
