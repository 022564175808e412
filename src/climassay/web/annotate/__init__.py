"""Annotation in the browser: experts label drafts, adjudicators settle conflicts, admins train validators on it.

Liu et al. 2025 (ClimaQA), section 4.3 and appendix A.5. See docs/annotation.md.
"""

from climassay.web.annotate.pages import router
from climassay.web.annotate.queue import KIND, retrain_work
from climassay.web.app_state import AppState

__all__ = ["register", "router"]


def register(app: AppState) -> None:
    """Say how a validator is trained in the background."""
    app.jobs.register(KIND, retrain_work, "models")
