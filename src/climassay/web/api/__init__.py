"""The data of the pages for programs: JSON below ``/api/v1``, described by an OpenAPI document. See docs/api.md."""

from fastapi import APIRouter

from climassay.web.api import (
    annotation,
    checks,
    datasets,
    exchange,
    jobs,
    library,
    people,
    reference,
    results,
)

OPERATIONS = APIRouter()
"""Everything that the document describes."""
for part in (people, library, checks, annotation, exchange, results, datasets, jobs):
    OPERATIONS.include_router(part.router)

router = APIRouter()
router.include_router(OPERATIONS)
router.include_router(reference.router)
