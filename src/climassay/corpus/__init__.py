"""Read documents, split them into passages, keep them in collections, find them again."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from climassay.corpus.collection import (
        AddProgress,
        AddReport,
        Collection,
        CollectionSummary,
        list_collections,
        open_or_create,
        remove_collection,
    )
    from climassay.corpus.collection_rows import StoredDocument
    from climassay.corpus.documents import Block, Document, Hit, Passage, ReadOptions, ReadResult, Skipped
    from climassay.corpus.passages import split_passages
    from climassay.corpus.readers.file_types import read, read_all
    from climassay.corpus.retrieval_evaluation import (
        LabelledQuestion,
        QuestionColumns,
        RetrievalReport,
        evaluate_retrieval,
        read_judged,
        read_labelled,
    )
    from climassay.corpus.search import RELEVANCE_COSINE, SearchMode

_PLACES = {
    "collection": (
        *("AddProgress", "AddReport", "Collection", "CollectionSummary"),
        *("list_collections", "open_or_create", "remove_collection"),
    ),
    "collection_rows": ("StoredDocument",),
    "documents": ("Block", "Document", "Hit", "Passage", "ReadOptions", "ReadResult", "Skipped"),
    "passages": ("split_passages",),
    "readers.file_types": ("read", "read_all"),
    "retrieval_evaluation": (
        *("LabelledQuestion", "QuestionColumns", "RetrievalReport"),
        *("evaluate_retrieval", "read_judged", "read_labelled"),
    ),
    "search": ("RELEVANCE_COSINE", "SearchMode"),
}
_MODULE_OF = {name: module for module, names in _PLACES.items() for name in names}

__all__ = [
    "RELEVANCE_COSINE",
    "AddProgress",
    "AddReport",
    "Block",
    "Collection",
    "CollectionSummary",
    "Document",
    "Hit",
    "LabelledQuestion",
    "Passage",
    "QuestionColumns",
    "ReadOptions",
    "ReadResult",
    "RetrievalReport",
    "SearchMode",
    "Skipped",
    "StoredDocument",
    "evaluate_retrieval",
    "list_collections",
    "open_or_create",
    "read",
    "read_all",
    "read_judged",
    "read_labelled",
    "remove_collection",
    "split_passages",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: most commands need few of them, and none needs all."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
