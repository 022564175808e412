"""The data of the pages for programs: JSON below ``/api/v1``, described by an OpenAPI document. See docs/api.md."""

from fastapi import APIRouter

from climassay.web.api import annotation, checks, jobs, library, openapi_page, people, results

OPERATIONS = APIRouter()
"""Everything that the document describes."""
for part in (people, library, checks, annotation, results):
    OPERATIONS.include_router(part.router)
OPERATIONS.include_router(results.datasets)
OPERATIONS.include_router(jobs.router)

router = APIRouter()
router.include_router(OPERATIONS)
router.include_router(openapi_page.router)
