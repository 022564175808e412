"""All operations of the API, which the OpenAPI document describes."""

from fastapi import APIRouter

from climassay.web.api import annotation, checks, jobs, library, people, results

OPERATIONS = APIRouter()
for router in (people.router, library.router, checks.router, annotation.router, results.router, results.datasets):
    OPERATIONS.include_router(router)
OPERATIONS.include_router(jobs.router)
