"""Statements to tag, as users name them: a text, a table, or a file of extracted statements."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from climassay.claim_identity import bare_words
from climassay.confidence.statement import read_statements
from climassay.confidence.tagging.labelled import LabelledItem, Taggable, TaggingItem
from climassay.confidence.vocabulary import LEVELS, Level
from climassay.errors import InputError
from climassay.learning.text_rows import is_table, read_text_rows
from climassay.session import one_or_several

_EXTRACTED_FIELDS = ("report", "document", "cycle", "working_group", "chapter", "page")
"""Fields of extracted statements that are copied to the results, besides id, text and level."""
_RESULT_FIELDS = ("statement", "tag", "probabilities", "equal_shares")


class StatementRow(NamedTuple):
    """A statement to tag, with the fields of its row."""

    item: Taggable
    fields: Mapping[str, Any]
    """All fields of the row by their names in the file; empty for a statement that was passed as text."""
    copied_fields: dict[str, Any]
    """Fields that are copied to the results, including ``statement``."""

    def level(self, column: str) -> Level | None:
        """Return the level in a column, spelt like ``very_high`` or ``High confidence``; None if there is none."""
        label = str(self.fields.get(column) or "").casefold().replace("_", " ").replace("-", " ")
        level_words = label.removesuffix("confidence").split()
        return next((level for level in LEVELS if level.split() == level_words), None)

    def value(self, column: str | None) -> str:
        """Return the cell of a column as text: ``unknown`` if the cell is empty, ``""`` if ``column`` is None."""
        return "" if column is None else str(self.fields.get(column) or "unknown")


def load_rows(
    text: str | Sequence[str], context: str, column: str | None, context_column: str | None
) -> list[StatementRow]:
    """Return the statements to tag; ``text`` is a statement, a table or a file of extracted statements, or several.

    Args:
        text: Statement or file; or several of these.
        context: Sentences around a statement given as text.
        column: Column of a table that contains the statements.
        context_column: Column of a table that contains their contexts.

    Raises:
        InputError: There is no statement, or a file cannot be read.
    """
    rows = [row for item in one_or_several(text) for row in _read_rows(item, context, column, context_column)]
    if not rows:
        raise InputError("There is nothing to tag: the list of statements is empty.")
    return rows


def _read_rows(text: str, context: str, column: str | None, context_column: str | None) -> list[StatementRow]:
    if column is None and context_column is None:
        if not text.strip():
            raise InputError("There is nothing to tag: give a statement in quotes, or a file and --text COLUMN.")
        if not is_table(text):
            return [StatementRow((text, context), {}, {"statement": text})]
        if Path(text).suffix == ".jsonl":
            try:
                statements = read_statements(Path(text))
            except InputError as error:
                hint = "Of other tables, name the column of the statements with --text COLUMN."
                raise InputError(f"{error} {hint}") from None
            if not statements:
                raise InputError(f"{text} has no statements.")
            return [
                StatementRow(
                    statement,
                    fields := asdict(statement),
                    {"id": statement.id, "statement": statement.text, "authors": statement.tag}
                    | {name: fields[name] for name in _EXTRACTED_FIELDS},
                )
                for statement in statements
            ]
    if column is None:
        raise InputError(f"{text} is a file: name the column of its statements with --text COLUMN.")
    results = []
    for row in read_text_rows(Path(text), column, context_column):
        # Columns named as those of the results keep their values under another name.
        other_columns = {
            f"{name} (file)" if name in _RESULT_FIELDS else name: value for name, value in row.remaining.items()
        }
        id_field = {"id": other_columns.pop("id")} if "id" in other_columns else {}
        copied_fields = {**id_field, "statement": row.text, **other_columns}
        results.append(StatementRow((row.text, row.other), row.remaining, copied_fields))
    return results


def select_unseen(
    statements: Sequence[StatementRow], truth: str, training_items: Sequence[LabelledItem]
) -> tuple[list[StatementRow], str]:
    """Return the statements with a level that are not among ``training_items``, and a note on the omitted ones.

    Raises:
        InputError: No statement has a level, or none is left.
    """
    labelled_rows = [row for row in statements if row.level(truth) is not None]
    if not labelled_rows:
        raise InputError(f"The column {truth!r} holds no level of confidence, such as {', '.join(LEVELS)}.")
    known_words = {bare_words(item.item.text) for item in training_items}
    unseen_rows = [row for row in labelled_rows if bare_words(TaggingItem.convert(row.item).text) not in known_words]
    if not unseen_rows:
        raise InputError("No statement is left to tag: the probe was trained on all of them or compares with them.")
    return unseen_rows, (
        f"Left out: {len(statements) - len(labelled_rows)} statements without a level, and "
        f"{len(labelled_rows) - len(unseen_rows)} that the probe was trained on or compares with."
    )
