"""Everything that was computed: runs, their tables and figures, questions one by one, comparisons, usage."""

from fastapi import APIRouter

from climassay.web.app_state import AppState
from climassay.web.results import blocks, pages, questions

router = APIRouter()
# Addresses of one word come before those of a run, whose id could be any word.
for part in (blocks, pages, questions):
    router.include_router(part.router)


def register(app: AppState) -> None:
    """Make the tables that pages read, so that reading a page makes none."""
    pages.dataset_store(app)
