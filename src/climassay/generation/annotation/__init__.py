"""Annotation: experts' labels of drafts, stored so that no acknowledged label is lost or duplicated.

Liu et al. 2025 (ClimaQA), section 4.3 and appendix A.5. See docs/annotation.md.
"""

from typing import TYPE_CHECKING

from climassay.registry import export_lazily

if TYPE_CHECKING:
    from climassay.generation.annotation.agreement import Agreement as Agreement
    from climassay.generation.annotation.files import (
        AnnotationFile as AnnotationFile,
        read_annotations as read_annotations,
        read_table as read_table,
        write_annotations as write_annotations,
        write_table as write_table,
    )
    from climassay.generation.annotation.labels import (
        ANNOTATION_REASONS as ANNOTATION_REASONS,
        AnnotationProgress as AnnotationProgress,
        AnnotationSettings as AnnotationSettings,
        Comment as Comment,
        FoundItem as FoundItem,
        ImportReport as ImportReport,
        Item as Item,
        ItemFilter as ItemFilter,
        Label as Label,
        Skip as Skip,
        check_label as check_label,
        content_key as content_key,
        is_rating as is_rating,
        is_rubric as is_rubric,
        label_fields as label_fields,
        label_from_fields as label_from_fields,
        outcome_of as outcome_of,
    )
    from climassay.generation.annotation.retraining import retrain as retrain
    from climassay.generation.annotation.store import AnnotationStore as AnnotationStore

export_lazily(__name__)
