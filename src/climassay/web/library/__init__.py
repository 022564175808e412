"""The library: collections, search, passages, and the documents that people add."""

from fastapi import APIRouter

from climassay.web.app_state import AppState
from climassay.web.library import evidence, pages, uploads

__all__ = ["register", "router"]

router = APIRouter()
router.include_router(pages.router)
router.include_router(evidence.router)


def register(app: AppState) -> None:
    """Say how documents are added, and tidy what an earlier server left."""
    app.jobs.register(uploads.KIND, uploads.add_documents, "corpus")
    uploads.tidy(app)
