"""The data of the pages for programs: JSON below ``/api/v1``, described by an OpenAPI document. See docs/api.md."""

from fastapi import APIRouter

from climassay.web.api import openapi_page
from climassay.web.api.operations import OPERATIONS

__all__ = ["OPERATIONS", "router"]

router = APIRouter()
router.include_router(OPERATIONS)
router.include_router(openapi_page.router)
