"""What Inspect finds by the entry point ``inspect_ai``: importing the module registers everything in it."""

from climassay.integrations.inspect.provider import provider
from climassay.integrations.inspect.tasks import answer_letter, cloze, cloze_scores, freeform, freeform_scores, mcq

__all__ = ["answer_letter", "cloze", "cloze_scores", "freeform", "freeform_scores", "mcq", "provider"]
