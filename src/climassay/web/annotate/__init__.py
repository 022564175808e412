"""Annotation in the browser: experts label drafts, adjudicators settle conflicts, admins train validators on it.

Liu et al. 2025 (ClimaQA), section 4.3 and appendix A.5. See docs/annotation.md.
"""

from fastapi import APIRouter

from climassay.web.annotate import administration, deciding, labelling
from climassay.web.annotate.retraining import KIND, retrain_work
from climassay.web.place import Place

# The narrower addresses come first: a draft is never called conflicts or settings.
router = APIRouter(include_in_schema=False)
router.include_router(administration.router)
router.include_router(deciding.router)
router.include_router(labelling.router)


def register(place: Place) -> None:
    """Say how a validator is trained in the background."""
    place.jobs.register(KIND, retrain_work, "models")


__all__ = ["register", "router"]
