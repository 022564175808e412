from .agreement import AnnotatorAgreement as AnnotatorAgreement
from .files import (
    AnnotationFile as AnnotationFile,
    read_annotations as read_annotations,
    read_table as read_table,
    write_annotations as write_annotations,
    write_table as write_table,
)
from .labels import (
    ANNOTATION_REASONS as ANNOTATION_REASONS,
    AnnotationProgress as AnnotationProgress,
    AnnotationSettings as AnnotationSettings,
    Comment as Comment,
    FoundItem as FoundItem,
    ImportReport as ImportReport,
    AnnotationItem as AnnotationItem,
    ItemFilter as ItemFilter,
    Label as Label,
    Skip as Skip,
    check_label as check_label,
    content_key as content_key,
    is_rating as is_rating,
    is_rubric as is_rubric,
    label_fields as label_fields,
    label_from_fields as label_from_fields,
    decide_outcome as decide_outcome,
)
from .retraining import retrain as retrain
from .store import AnnotationStore as AnnotationStore
