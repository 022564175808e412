"""Everything that was computed: runs, their tables and figures, questions one by one, comparisons, usage."""

from fastapi import APIRouter

from climassay.web.place import Place
from climassay.web.results.claims import router as claims
from climassay.web.results.comparing import router as comparing
from climassay.web.results.datasets import dataset_store
from climassay.web.results.datasets import router as datasets
from climassay.web.results.downloads import router as downloads
from climassay.web.results.questions import router as questions
from climassay.web.results.runs import router as runs
from climassay.web.results.style import router as style
from climassay.web.results.usage import router as usage

router = APIRouter()
# Addresses of one word come before those of a run, whose id could be any word.
for part in (style, comparing, datasets, runs, downloads, questions, claims, usage):
    router.include_router(part)

__all__ = ["register", "router"]


def register(place: Place) -> None:
    """Make the tables that pages read, so that reading a page makes none."""
    dataset_store(place)
