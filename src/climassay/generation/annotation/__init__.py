"""Annotation: what experts say about drafts, stored so that nothing acknowledged is lost or doubled.

Liu et al. 2025 (ClimaQA), section 4.3 and appendix A.5. See docs/annotation.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from climassay.generation.annotation.agreement import Agreement, AnnotatorStatistics, PairAgreement
    from climassay.generation.annotation.edits import EditTexts, accepted_from, content_key, edit_texts, edited_wording
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
        Item,
        Label,
        Progress,
        QueueSummary,
    )
    from climassay.generation.annotation.retraining import Retraining, retrain
    from climassay.generation.annotation.store import AnnotationStore
    from climassay.generation.annotation.taking_in import GivenLabel, GivenSkip, TakenIn

_PLACES = {
    "agreement": ("Agreement", "AnnotatorStatistics", "PairAgreement"),
    "edits": ("EditTexts", "accepted_from", "content_key", "edit_texts", "edited_wording"),
    "files": ("AnnotationFile", "read_annotations", "read_table", "write_annotations", "write_table"),
    "labels": ("ANNOTATION_REASONS", "AnnotationSettings", "Item", "Label", "Progress", "QueueSummary"),
    "retraining": ("Retraining", "retrain"),
    "store": ("AnnotationStore",),
    "taking_in": ("GivenLabel", "GivenSkip", "TakenIn"),
}
_MODULE_OF = {name: module for module, names in _PLACES.items() for name in names}

__all__ = [
    "ANNOTATION_REASONS",
    "Agreement",
    "AnnotationFile",
    "AnnotationSettings",
    "AnnotationStore",
    "AnnotatorStatistics",
    "EditTexts",
    "GivenLabel",
    "GivenSkip",
    "Item",
    "Label",
    "PairAgreement",
    "Progress",
    "QueueSummary",
    "Retraining",
    "TakenIn",
    "accepted_from",
    "content_key",
    "edit_texts",
    "edited_wording",
    "read_annotations",
    "read_table",
    "retrain",
    "write_annotations",
    "write_table",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
