"""Operations on annotation: datasets, and export and import of labels as the files of the command line."""

from typing import Annotated, Any

from fastapi import Form, Query, UploadFile
from pydantic import Field
from starlette.responses import Response

from climassay.api.annotation import LabelFormat
from climassay.web.access import Annotator
from climassay.web.annotate.dataset_request import AdjudicatorRequest, ManagerRequest
from climassay.web.annotate.files import export_labels, import_labels
from climassay.web.annotate.views import annotation_store, may_annotate
from climassay.web.api.base import Data, Page, api_router
from climassay.web.app_state import App

router = api_router("/annotate/datasets", "annotation")


class QueueData(Data):
    """Dataset whose questions are annotated."""

    dataset: str = Field(examples=["clouds"])
    items: int
    """Number of questions."""
    open: int
    """Number of questions that need further labels."""
    settled: int
    """Number of questions whose outcome is settled."""
    conflicts: int
    """Number of questions whose labels disagree."""
    overlap: int
    """Number of labels that each question needs."""


class ImportData(Data):
    """Result of importing labels."""

    stored: int
    """Number of labels that were imported."""
    known: int
    """Number of labels in the file that had already been stored."""
    withdrawn: int
    """Number of stored labels that the file marks as withdrawn."""
    comments: int
    """Number of comments that were imported."""
    refused: list[str]
    """Sentences that say why labels or comments were not imported."""


@router.get("", response_model=Page[QueueData])
def list_annotated_datasets(app: App, user: Annotator) -> Any:
    """List the datasets that can be annotated, by name."""
    store = annotation_store(app)
    own_queues = (queue for queue in store.queues() if may_annotate(store, queue.dataset, user))
    queues = sorted(own_queues, key=lambda queue: queue.dataset)
    return {"items": [{name: getattr(queue, name) for name in QueueData.model_fields} for queue in queues]}


@router.get(
    "/{dataset}/export",
    response_class=Response,
    responses={
        200: {
            "description": "The file that `climassay annotate export` writes; a ZIP archive if it writes several.",
            "content": {name: {} for name in ("application/jsonl", "text/csv", "application/json", "application/zip")},
        }
    },
)
def export_dataset_labels(
    request: AdjudicatorRequest,
    format: Annotated[LabelFormat, Query(description="Format of the file; `jsonl` has everything.")] = "jsonl",
) -> Response:
    """Export the labels, skips, comments and settings of a dataset as a file."""
    return export_labels(request.app, request.dataset, format)


@router.post("/{dataset}/import", response_model=ImportData)
def import_dataset_labels(
    request: ManagerRequest, file: UploadFile, format: Annotated[LabelFormat, Form()] = "jsonl"
) -> Any:
    """Import labels from a file written by an export or by another labelling tool.

    Importing the same file again changes nothing.
    """
    result = import_labels(request.app, request.dataset, file, format)
    return {name: result[name] for name in ImportData.model_fields}
