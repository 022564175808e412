"""Statements of assessment reports, with the level of confidence that their authors gave them."""

from climassay.confidence.extraction.documents import documents_of_collection
from climassay.confidence.extraction.extracting import (
    ExtractOptions,
    extract,
    mark_duplicates,
    normalised,
    split_report_sentences,
)
from climassay.confidence.extraction.review import CertaintyTerm, extract_terms

__all__ = [
    "CertaintyTerm",
    "ExtractOptions",
    "documents_of_collection",
    "extract",
    "extract_terms",
    "mark_duplicates",
    "normalised",
    "split_report_sentences",
]
