"""The library: collections, search, passages, and the documents that people add."""

from fastapi import APIRouter

from climassay.web.library import adding, browsing, changing, searching
from climassay.web.place import Place

router = APIRouter()
# Searching and changing first: their addresses begin with words that are no names of collections.
for part in (searching, changing, browsing):
    router.include_router(part.router)


def register(place: Place) -> None:
    """Say how documents are added, and tidy what an earlier server left."""
    place.jobs.register(adding.KIND, adding.add_documents, "corpus")
    adding.tidy(place)
