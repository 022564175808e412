"""Read tables of items to judge, with one or several ratings per item, and recognise the tables of published data sets.

Each rating by another rater is a row (Newsroom: three rows per summary) or an entry of a list in one cell (SummEval:
one entry per expert). The label of an item is the mean of its ratings, as in the thesis.

References:
    Grusky et al. 2018, arXiv 1804.11283 (Newsroom); Fabbri et al. 2021, arXiv 2007.12626 (SummEval); Maiya 2024,
    section 4.1 and appendix A.
"""

import html
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from climassay.errors import InputError
from climassay.io import Row, parse_rows, read_bytes, require_column
from climassay.judging.preferences import Item
from climassay.reporting.tables import skipped_note

_TEXT_INDEX = "\0index"
"""Name of an added column with the index of a text in a cell that lists several texts. No column of a file can have
this name."""
_TAG = re.compile(r"</?(?:p|br|div|span|b|i|em|strong|a|li|ul|ol|h[1-6]|blockquote)\b[^<>]*>", re.IGNORECASE)
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class ItemColumns:
    """Columns of a table of items."""

    text: str = "text"
    id: str | None = None
    """Column of the identifiers; None numbers the items from 1."""
    context: str | None = None
    group: str | None = None
    label: str | None = None
    """Column of the ratings. ``expert_annotations.coherence`` stands for the field ``coherence`` of each entry in the
    lists of the column ``expert_annotations``, which have one entry per rater."""
    levels: tuple[tuple[str, ...], ...] = ()
    """Words used as labels, by level from low to high; a level may have several words. Rows with other words are
    skipped."""
    label_optional: bool = False
    """Whether rows without a valid label are kept as items without a label, instead of being skipped."""


@dataclass(frozen=True, slots=True)
class ItemTable:
    """Items of a file, the rows that were skipped, and the number of ratings per item."""

    items: tuple[Item, ...]
    skipped: tuple[str, ...]
    """Reasons for skipped rows, one clause each."""
    levels: tuple[str, ...] = ()
    """Names of the ordered labels, low to high, if labels are words; the label of an item is then an index into
    ``levels``."""
    file: str = ""
    """Path of the file, as the caller gave it."""
    raters: tuple[int, int] = (1, 1)
    """Minimum and maximum number of ratings of an item; its label is their mean."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on skipped rows and averaged ratings."""
        min_ratings, max_ratings = self.raters
        range_text = str(min_ratings) if min_ratings == max_ratings else f"{min_ratings} to {max_ratings}"
        averaging_note = f"Labels are means of {range_text} ratings per item."
        return (*skipped_note(self.skipped), *((averaging_note,) if max_ratings > 1 else ()))


@dataclass(frozen=True, slots=True)
class PublishedFormat:
    """Columns of a table of rated summaries, as its authors publish it."""

    columns: ItemColumns
    ratings: Mapping[str, str]
    """Column of the ratings, by aspect."""


PUBLISHED_FORMATS = {
    "Newsroom": PublishedFormat(
        ItemColumns("SystemSummary", "System", "ArticleText", "ArticleID"),
        {aspect: f"{aspect.title()}Rating" for aspect in ("coherence", "fluency", "informativeness", "relevance")},
    ),
    "SummEval": PublishedFormat(
        ItemColumns("decoded", "model_id", "text", "id"),
        {aspect: f"expert_annotations.{aspect}" for aspect in ("coherence", "consistency", "fluency", "relevance")},
    ),
    "SummEval, averaged": PublishedFormat(
        ItemColumns("machine_summaries", None, "text", "id"),
        {aspect: aspect for aspect in ("coherence", "consistency", "fluency", "relevance")},
    ),
    "PPairS": PublishedFormat(
        ItemColumns("summary", "summary_id", "article", "article_id"),
        {aspect: aspect for aspect in ("coherence", "consistency", "fluency", "informativeness", "relevance")},
    ),
}
"""Formats by name. ``Newsroom`` is its CSV file of human ratings. SummEval has two: its aligned and paired JSON lines,
and its table on the hub, with mean expert ratings and one row per article. The code of Maiya (2024) converts both data
sets to the last format."""


def published_columns(file: str | Path, label: str | None) -> ItemColumns | None:
    """Return the columns of a table in one of the published formats, or None if its format is another.

    Args:
        file: The table.
        label: Aspect whose ratings are the labels, or the name of a column.

    Raises:
        InputError: The file cannot be read, or it is SummEval's file without the articles.
    """
    path = Path(file)
    names = set(next(iter(parse_rows(path, read_bytes(path))), {}))
    for published_format in PUBLISHED_FORMATS.values():
        columns = published_format.columns
        if {columns.text, columns.id, columns.context, columns.group} - {None} <= names:
            return replace(columns, label=published_format.ratings.get(label or "", label))
    if {"decoded", "expert_annotations"} <= names:
        raise InputError(
            f"{file} is SummEval without its articles: pair it with CNN/DailyMail by the script of its authors "
            "(model_annotations.aligned.paired.jsonl), or name the columns yourself, with --text decoded."
        )
    return None


def parse_levels(text: str) -> tuple[tuple[str, ...], ...]:
    """Parse the ordered labels of a command-line option.

    Args:
        text: Levels from low to high, separated by commas; words of one level are separated by bars:
            ``inaccurate|incorrect,misleading,accurate|correct``.

    Raises:
        InputError: There are fewer than two levels, or a word appears twice.
    """
    levels = tuple(tuple(word.strip() for word in level.split("|") if word.strip()) for level in text.split(","))
    words = [word for level in levels for word in level]
    if len(levels) < 2 or not all(levels):
        raise InputError(f"{text!r} are not ordered labels: write low,medium,high (synonyms as low|poor,high|good).")
    if len(set(words)) < len(words):
        raise InputError(f"The labels {text!r} contain a word twice.")
    return levels


def read_items(file: str | Path, columns: ItemColumns, *, context_words: int | None = None) -> ItemTable:
    """Read items from CSV, TSV, JSON, JSON lines or Parquet, also gzipped.

    HTML tags and entities, which news corpora contain, are removed, and white space is normalised. Rows with the same
    text are ratings of one item by several raters. If a cell lists several texts, each becomes an item.

    Args:
        file: The table.
        columns: Columns to use.
        context_words: Maximum number of words of a context; longer contexts are truncated, unless this is None.

    Raises:
        InputError: The file cannot be read, a column does not exist, two texts have the same identifier, ratings that
            are words differ, a row lists more texts than ratings, or no item is left.
    """
    path = Path(file)
    rows = list(parse_rows(path, read_bytes(path)))
    if not rows:
        raise InputError(f"{path} holds no rows.")
    columns = _find_columns(path, rows, columns)
    skip_reasons: list[str] = []
    contexts: dict[str, str] = {}
    scales: dict[str, str] = {}
    items: dict[str, Item] = {}
    ratings: dict[str, list[float]] = {}
    for number, row in _iterate_rows_by_text(path, rows, columns):
        text = clean_text(_get_cell_text(row, columns.text))
        if not text:
            skip_reasons.append(f"row {number}: the column {columns.text!r} is empty")
            continue
        labels: list[float] = []
        try:
            labels = [_parse_label(cell, columns, scales) for cell in _get_ratings(row, columns.label)]
        except ValueError as error:
            if not columns.label_optional:
                skip_reasons.append(f"row {number}: {error}")
                continue
        raw_context = _get_cell_text(row, columns.context)
        if raw_context not in contexts:  # a source text is repeated for every one of its summaries
            contexts[raw_context] = " ".join(clean_text(raw_context).split(" ")[:context_words])
        group = _get_cell_text(row, columns.group).strip()
        if columns.group is not None and not group:  # else all such rows would be compared as one group
            skip_reasons.append(f"row {number}: the column {columns.group!r} is empty")
            continue
        item_id = "-".join(filter(None, (_get_cell_text(row, columns.id), row.get(_TEXT_INDEX, ""))))
        # Numbers that start anew in every group are usual; the group makes them unique.
        key = f"{group}/{item_id}" if item_id and group else item_id or str(number)
        item = Item(key, text, contexts[raw_context], group)
        if items.setdefault(key, item) != item:
            raise InputError(
                f"{path} has the item {key!r} twice, with different texts: choose another column for --item."
            )
        if key in ratings and not labels:
            skip_reasons.append(f"row {number}: the item {key!r} is in the table already")
        ratings.setdefault(key, []).extend(labels)
    if not items:
        raise InputError(f"{path} holds no usable item{f': {skip_reasons[0]}' if skip_reasons else ''}.")
    ambiguous_key = next((key for key, labels in ratings.items() if columns.levels and len(set(labels)) > 1), None)
    if ambiguous_key is not None:
        raise InputError(
            f"{path} has several labels of the item {ambiguous_key!r}, and words have no mean: keep one, or use "
            "numbers."
        )
    labelled_items = tuple(
        replace(item, label=sum(labels) / len(labels)) if (labels := ratings[key]) else item
        for key, item in items.items()
    )
    counts = [len(labels) for labels in ratings.values() if labels] or [1]
    names = tuple(level[0] for level in columns.levels)
    return ItemTable(labelled_items, tuple(skip_reasons), names, str(file), (min(counts), max(counts)))


def _iterate_rows_by_text(path: Path, rows: Sequence[Row], columns: ItemColumns) -> Iterator[tuple[int, Row]]:
    """Yield each row with its number from 1; if a cell lists several texts, yield its row once per text.

    Raises:
        InputError: A row lists more texts than ratings, or fewer.
    """
    for number, row in enumerate(rows, start=1):
        texts = row.get(columns.text)
        if not isinstance(texts, list):
            yield number, row
            continue
        lists = {columns.text: texts}
        if columns.label is not None:
            ratings = row.get(columns.label)
            lists[columns.label] = ratings if isinstance(ratings, list) else []
            if len(lists[columns.label]) != len(texts):
                counts = f"{len(texts)} texts and {len(lists[columns.label])} ratings"
                raise InputError(f"{path}, row {number}, lists {counts}.")
        for index in range(len(texts)):
            yield number, {**row, **{name: values[index] for name, values in lists.items()}, _TEXT_INDEX: str(index)}


def _find_columns(path: Path, rows: Sequence[Row], columns: ItemColumns) -> ItemColumns:
    """Return the columns with their names as the table spells them.

    For ratings in a list of entries, only the column of the list must exist.

    Raises:
        InputError: A column does not exist; the message lists those that do.
    """
    column_names = list(dict.fromkeys(name for row in rows[:50] for name in row))
    fields = ("text", "id", "context", "group", "label")
    name_by_field = {field: name for field in fields if (name := getattr(columns, field)) is not None}
    if name_by_field.get("label", "").split(".")[0] in column_names:
        del name_by_field["label"]
    column_by_field: dict[str, Any] = {
        field: require_column(path, column_names, name) for field, name in name_by_field.items()
    }
    return replace(columns, **column_by_field)


def clean_text(text: str) -> str:
    """Remove HTML tags, replace HTML entities by their characters, and collapse white space to single spaces."""
    if "<" in text or "&" in text:
        text = html.unescape(_TAG.sub(" ", text))
    return _SPACES.sub(" ", text).strip()


def _get_cell_text(row: Mapping[str, Any], column: str | None) -> str:
    value = None if column is None else row.get(column)
    # Parquet files made with pandas have NaN where a text is missing.
    is_missing = value is None or (isinstance(value, float) and math.isnan(value))
    return "" if is_missing else str(value)


def _get_ratings(row: Row, column: str | None) -> list[str]:
    """Return the ratings in a row as strings: a single cell or one cell per rater; [] if ``column`` is None.

    Raises:
        ValueError: There is no rating; the message is a clause for a longer error message.
    """
    if column is None:
        return []
    name, _, field = column.partition(".")
    if column in row or not field:
        cells = [_get_cell_text(row, column).strip()]
    else:
        entries = row.get(name)
        cells = [
            _get_cell_text(entry, field).strip()
            for entry in (entries if isinstance(entries, list) else [])
            if isinstance(entry, Mapping)
        ]
    if not any(cells):
        raise ValueError(f"the column {column!r} is empty")
    return [cell for cell in cells if cell]


def _parse_label(cell: str, columns: ItemColumns, scales: dict[str, str]) -> float:
    """Return the label in a cell: a number, or the index of a level.

    The scale of the column's first number is stored in ``scales``, and later numbers must have the same scale.

    Raises:
        ValueError: The label is not a number, on another scale, or not one of the levels; the message is a clause for a
            longer error message.
    """
    value, scale = parse_rating(cell)
    if columns.levels:
        casefolded_cell = cell.casefold()
        for matches in (
            lambda word: word == cell,
            lambda word: word.casefold() == casefolded_cell,
            lambda word: value is not None and parse_rating(word) == (value, scale),  # 1.0 and 1 are one label
        ):
            matching_levels = [level for level, words in enumerate(columns.levels) if any(map(matches, words))]
            if len(matching_levels) == 1:
                return float(matching_levels[0])
        raise ValueError(f"the label {cell!r} is not one of the levels")
    if value is None:
        raise ValueError(f"the label {cell!r} is not a number (labels that are words: name them with --levels)")
    if not math.isfinite(value):
        raise ValueError(f"the label {cell!r} is not a finite number")
    if scales.setdefault("scale", scale) != scale:
        raise ValueError(f"the label {cell!r} is on another scale than the labels before it")
    return value


_RATING = re.compile(
    r"(?P<number>[-+]?(?:\d+[.,]\d+|[.,]?\d+\.?)(?:e[-+]?\d+)?)\s*(?P<scale>%|(?:/|\bof\b)\s*\d+)?", re.I
)
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2},\d{3}")


def parse_rating(text: str) -> tuple[float | None, str]:
    """Parse a rating. Return the number (None if there is none) and the scale, such as ``%`` or ``/5``.

    Decimal commas, the minus sign U+2212, per cent signs, and a maximum after a slash or "of" are accepted. ``1,000``
    is ambiguous and therefore not parsed as a number.

    Example:
        ``"4/5"`` gives (4.0, "/5"), ``"80 %"`` gives (80.0, "%"), ``"4,5"`` gives (4.5, "").
    """
    normalised_text = unicodedata.normalize("NFKC", text).replace("\u2212", "-").strip()
    match = _RATING.fullmatch(normalised_text)
    if match is None or _THOUSANDS.fullmatch(match["number"]):
        try:
            return float(normalised_text), ""  # inf and nan
        except ValueError:
            return None, ""
    scale = re.sub(r"\s+|of", lambda part: "/" if part[0].lower() == "of" else "", match["scale"] or "", flags=re.I)
    return float(match["number"].replace(",", ".")), scale
