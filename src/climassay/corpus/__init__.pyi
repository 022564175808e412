from .collection import (
    Collection as Collection,
    list_collections as list_collections,
    open_or_create as open_or_create,
    remove_collection as remove_collection,
)
from .collection_storage import StoredDocument as StoredDocument
from .documents import (
    Block as Block,
    Document as Document,
    Hit as Hit,
    OmittedParts as OmittedParts,
    Passage as Passage,
    ReadOptions as ReadOptions,
    ReadResult as ReadResult,
    Skipped as Skipped,
    split_passages as split_passages,
)
from .gold_texts import (
    LabelledQuestion as LabelledQuestion,
    QuestionColumns as QuestionColumns,
    read_gold_questions as read_gold_questions,
)
from .presentation import AddProgress as AddProgress, AddReport as AddReport, CollectionSummary as CollectionSummary
from .readers.file_types import read as read, read_all as read_all
from .relevance import RELEVANCE as RELEVANCE, RelevanceRule as RelevanceRule, Threshold as Threshold
from .retrieval_evaluation import RetrievalReport as RetrievalReport, evaluate_retrieval as evaluate_retrieval
from .search import SearchMode as SearchMode
