"""The texts that are judged, and the tables they come in."""

import html
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from climassay.errors import InputError
from climassay.questions.rows import parse_rows, read_bytes

_TAG = re.compile(r"</?(?:p|br|div|span|b|i|em|strong|a|li|ul|ol|h[1-6]|blockquote)\b[^<>]*>", re.IGNORECASE)
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Item:
    """One text to be judged."""

    id: str
    """Unique among the items."""
    text: str
    context: str = ""
    """What the text is judged against: the source of a summary, or the sentences around a statement."""
    group: str = ""
    """Items are compared within their group only, and folds never cut a group; empty: all items form one."""
    label: float | None = None
    """The expert's rating, more is better; None where nobody labelled the item."""


@dataclass(frozen=True, slots=True)
class ItemColumns:
    """Which columns of a table hold what."""

    text: str = "text"
    id: str | None = None
    """None: items are numbered from 1."""
    context: str | None = None
    group: str | None = None
    label: str | None = None
    levels: tuple[tuple[str, ...], ...] = ()
    """Labels that are words, from low to high; several words may share a level. Rows with other words are left out."""
    label_optional: bool = False
    """Keep rows whose label is missing or none of the levels, as items without a label."""


@dataclass(frozen=True, slots=True)
class ItemTable:
    """Items read from a file, and what was left out."""

    items: tuple[Item, ...]
    skipped: tuple[str, ...]
    """Why rows were left out, one sentence each."""
    levels: tuple[str, ...] = ()
    """Names of the ordered labels, low to high, where labels are words; an item's label is an index into them."""


def parse_levels(text: str) -> tuple[tuple[str, ...], ...]:
    """Read ordered labels as the command line takes them.

    Args:
        text: Levels from low to high between commas, words of one level between bars:
            ``inaccurate|incorrect,misleading,accurate|correct``.

    Raises:
        InputError: Fewer than two levels, or a word in two of them.
    """
    levels = tuple(tuple(word.strip() for word in level.split("|") if word.strip()) for level in text.split(","))
    words = [word for level in levels for word in level]
    if len(levels) < 2 or not all(levels):
        raise InputError(f"{text!r} are not ordered labels: write low,medium,high (synonyms as low|poor,high|good).")
    if len(set(words)) < len(words):
        raise InputError(f"The labels {text!r} name a word twice.")
    return levels


def read_items(file: str | Path, columns: ItemColumns, *, context_words: int | None = None) -> ItemTable:
    """Read items from CSV, TSV, JSON, JSON lines or Parquet, also gzipped.

    HTML tags and entities, which news corpora carry, are removed and white space is made single.

    Args:
        file: The table.
        columns: Which columns to use.
        context_words: Keep only so many words of each context.

    Raises:
        InputError: The file cannot be read, a column does not exist, an identifier appears twice, or nothing is left.
    """
    path = Path(file)
    rows = list(parse_rows(path, read_bytes(path)))
    if not rows:
        raise InputError(f"{path} holds no rows.")
    known = list(dict.fromkeys(name for row in rows[:50] for name in row))
    for name in (columns.text, columns.id, columns.context, columns.group, columns.label):
        if name is not None and name not in known:
            raise InputError(f"{path} has no column {name!r}: it has {', '.join(map(str, known))}.")
    names = [level[0] for level in columns.levels]
    items: list[Item] = []
    skipped: list[str] = []
    contexts: dict[str, str] = {}
    for number, row in enumerate(rows, start=1):
        text = clean_text(_cell(row, columns.text))
        if not text:
            skipped.append(f"row {number}: the column {columns.text!r} is empty")
            continue
        try:
            label = _label(row, columns)
        except ValueError as error:
            if not columns.label_optional:
                skipped.append(f"row {number}: {error}")
                continue
            label = None
        raw = _cell(row, columns.context)
        if raw not in contexts:  # a source text is repeated for every one of its summaries
            contexts[raw] = " ".join(clean_text(raw).split(" ")[:context_words])
        group = _cell(row, columns.group).strip()
        if columns.group is not None and not group:  # else all such rows would be compared as one group
            skipped.append(f"row {number}: the column {columns.group!r} is empty")
            continue
        own = _cell(row, columns.id)
        # Numbers that start anew in every group are usual; the group makes them unique.
        key = f"{group}/{own}" if own and group else own or str(number)
        items.append(Item(key, text, contexts[raw], group, label))
    if not items:
        raise InputError(f"{path} holds no item that can be used{f': {skipped[0]}' if skipped else ''}.")
    twice = next((one for one, count in Counter(item.id for item in items).items() if count > 1), None)
    if twice is not None:
        raise InputError(f"{path} has the item {twice!r} twice: choose another column for --item.")
    return ItemTable(tuple(items), tuple(skipped), tuple(names))


def clean_text(text: str) -> str:
    """Text without HTML tags and entities, white space made single."""
    if "<" in text or "&" in text:
        text = html.unescape(_TAG.sub(" ", text))
    return _SPACES.sub(" ", text).strip()


def by_group(groups: Sequence[str], members: Iterable[int]) -> dict[str, list[int]]:
    """Indices of items by their group, in the order given."""
    found: dict[str, list[int]] = {}
    for index in members:
        found.setdefault(groups[index], []).append(int(index))
    return found


def word_counts(items: Sequence[Item]) -> list[int]:
    """Number of words of each item, at least 1."""
    return [max(1, len(item.text.split())) for item in items]


def _cell(row: Mapping[str, Any], column: str | None) -> str:
    value = None if column is None else row.get(column)
    # Parquet files made with pandas have NaN where a text is missing.
    missing = value is None or (isinstance(value, float) and math.isnan(value))
    return "" if missing else str(value)


def _label(row: Mapping[str, Any], columns: ItemColumns) -> float | None:
    if columns.label is None:
        return None
    cell = _cell(row, columns.label).strip()
    if not cell:
        raise ValueError(f"the column {columns.label!r} is empty")
    value = _as_number(cell)
    if columns.levels:
        for place, words in enumerate(columns.levels):
            # 1.0 and 1 are one label.
            if cell in words or (value is not None and any(_as_number(word) == value for word in words)):
                return float(place)
        raise ValueError(f"the label {cell!r} is none of the levels")
    if value is None:
        raise ValueError(f"the label {cell!r} is not a number")
    if not math.isfinite(value):
        raise ValueError(f"the label {cell!r} is not a finite number")
    return value


def _as_number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None
