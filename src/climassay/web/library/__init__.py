"""The library: collections, search, passages, and the documents that people add."""

from climassay.web.app_state import AppState
from climassay.web.library import uploads
from climassay.web.library.pages import router

__all__ = ["register", "router"]


def register(app: AppState) -> None:
    """Say how documents are added, and tidy what an earlier server left."""
    app.jobs.register(uploads.KIND, uploads.add_documents, "corpus")
    uploads.tidy(app)
