"""The full-text (BM25) index of a collection."""

from typing import Any

from climassay.corpus.collection_damage import DamagedCollectionError

TEXT_INDEX = "text_idx"
"""Name that LanceDB gives to the index of the column ``text``."""


def has_text_index(table: Any) -> bool:
    """Whether the table can be searched by words."""
    return any(index.name == TEXT_INDEX for index in table.list_indices())


def create_text_index(table: Any) -> None:
    """Index the words of all passages: English stems, no stop words, accents folded."""
    from lancedb.index import FTS

    table.create_index("text", config=FTS(language="English", stem=True, remove_stop_words=True, ascii_folding=True))


def ensure_text_index(table: Any) -> None:
    """Make the index where there is none, as after a kill between making a table and indexing it."""
    if has_text_index(table):
        return
    try:
        create_text_index(table)
    except DamagedCollectionError:
        # Another process may have been faster.
        if not has_text_index(table):
            raise


def outside_text_index(table: Any) -> int:
    """Number of passages that were stored since the index was last brought up to date; all, where there is none."""
    found = table.index_stats(TEXT_INDEX)
    return int(table.count_rows() if found is None else found.num_unindexed_rows)
