from .collection import (
    AddProgress as AddProgress,
    AddReport as AddReport,
    Collection as Collection,
    CollectionSummary as CollectionSummary,
    list_collections as list_collections,
    open_or_create as open_or_create,
    remove_collection as remove_collection,
)
from .collection_storage import StoredDocument as StoredDocument
from .documents import (
    Block as Block,
    Document as Document,
    Hit as Hit,
    LeftOut as LeftOut,
    Passage as Passage,
    ReadOptions as ReadOptions,
    ReadResult as ReadResult,
    Skipped as Skipped,
    split_passages as split_passages,
)
from .readers.file_types import read as read, read_all as read_all
from .relevance import RELEVANCE as RELEVANCE, RelevanceRule as RelevanceRule, Threshold as Threshold
from .retrieval_evaluation import (
    LabelledQuestion as LabelledQuestion,
    QuestionColumns as QuestionColumns,
    RetrievalReport as RetrievalReport,
    evaluate_retrieval as evaluate_retrieval,
    read_judged as read_judged,
    read_labelled as read_labelled,
)
from .search import SearchMode as SearchMode
