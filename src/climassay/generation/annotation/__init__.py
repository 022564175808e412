"""Annotation: what experts say about drafts, stored so that nothing acknowledged is lost or doubled.

Liu et al. 2025 (ClimaQA), section 4.3 and appendix A.5. See docs/annotation.md.
"""

from climassay.generation.annotation.agreement import Agreement, AnnotatorStatistics, PairAgreement
from climassay.generation.annotation.files import (
    AnnotationFile,
    read_annotations,
    read_table,
    write_annotations,
    write_table,
)
from climassay.generation.annotation.labels import (
    ANNOTATION_REASONS,
    AnnotationSettings,
    Comment,
    EditTexts,
    FoundItem,
    ImportedLabel,
    ImportedSkip,
    ImportReport,
    Item,
    ItemFilter,
    Label,
    Progress,
    QueueSummary,
    accepted_from,
    content_key,
    edit_texts,
    edited_wording,
    label_from_texts,
)
from climassay.generation.annotation.retraining import Retraining, retrain
from climassay.generation.annotation.store import AnnotationStore

__all__ = [
    "ANNOTATION_REASONS",
    "Agreement",
    "AnnotationFile",
    "AnnotationSettings",
    "AnnotationStore",
    "AnnotatorStatistics",
    "Comment",
    "EditTexts",
    "FoundItem",
    "ImportReport",
    "ImportedLabel",
    "ImportedSkip",
    "Item",
    "ItemFilter",
    "Label",
    "PairAgreement",
    "Progress",
    "QueueSummary",
    "Retraining",
    "accepted_from",
    "content_key",
    "edit_texts",
    "edited_wording",
    "label_from_texts",
    "read_annotations",
    "read_table",
    "retrain",
    "write_annotations",
    "write_table",
]  # fmt: skip
