"""Annotation: what experts say about drafts, stored so that nothing acknowledged is lost or doubled.

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
        AnnotationSettings as AnnotationSettings,
        Comment as Comment,
        FoundItem as FoundItem,
        ImportedLabel as ImportedLabel,
        ImportedSkip as ImportedSkip,
        ImportReport as ImportReport,
        Item as Item,
        ItemFilter as ItemFilter,
        Label as Label,
        Progress as Progress,
        content_key as content_key,
        label_from_parts as label_from_parts,
        label_parts as label_parts,
    )
    from climassay.generation.annotation.store import retrain as retrain
    from climassay.generation.annotation.store import AnnotationStore as AnnotationStore

export_lazily(__name__)
