"""Long lists, page by page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar
from urllib.parse import urlencode

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Part(Generic[T]):
    """One page of a list."""

    entries: Sequence[T]
    number: int
    """From 1."""
    pages: int
    total: int
    """Entries of the whole list."""
    first: int
    """Number of the first entry shown; 0 where there is none."""
    address: str
    """Of the list, with its filters, ready for ``&page=2``."""

    @property
    def last(self) -> int:
        """Number of the last entry shown."""
        return self.first + len(self.entries) - 1 if self.entries else 0

    def at(self, number: int) -> str:
        """Address of another page."""
        return f"{self.address}page={number}"


def pages_of(total: int, size: int) -> int:
    """How many pages a list has, at least one."""
    return max(1, -(-total // size))


def within(wanted: int, total: int, size: int) -> int:
    """A page that exists: the one wanted, or the last."""
    return max(1, min(wanted, pages_of(total, size)))


def part_of(
    entries: Sequence[T], number: int, total: int, size: int, path: str, filters: Mapping[str, object]
) -> Part[T]:
    """A page whose entries are known.

    Args:
        entries: Those of the page.
        number: Of the page, from 1.
        total: Entries of all pages.
        size: Entries of a full page.
        path: Address of the list.
        filters: What narrows the list; those that are empty are left out of addresses.
    """
    query = urlencode([(name, str(value)) for name, value in filters.items() if value not in ("", False, None)])
    address = f"{path}?{query}&" if query else f"{path}?"
    first = (number - 1) * size + 1 if entries else 0
    return Part(entries, number, pages_of(total, size), total, first, address)


def cut(entries: Sequence[T], wanted: int, size: int, path: str, filters: Mapping[str, object]) -> Part[T]:
    """A page of a list that is all there."""
    number = within(wanted, len(entries), size)
    return part_of(entries[(number - 1) * size : number * size], number, len(entries), size, path, filters)
