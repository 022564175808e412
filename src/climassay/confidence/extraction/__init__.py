"""Statements of assessment reports, with the level of confidence that their authors gave them."""

from climassay.confidence.extraction.extracting import documents_of_collection as documents_of_collection
from climassay.confidence.extraction.extracting import (
    extract as extract,
    mark_duplicates as mark_duplicates,
    normalise_words as normalise_words,
    split_report_sentences as split_report_sentences,
)
from climassay.confidence.extraction.review import CertaintyTerm as CertaintyTerm, extract_terms as extract_terms
from climassay.confidence.settings import ExtractOptions as ExtractOptions
