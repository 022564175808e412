"""Entry point ``inspect_ai``: importing it registers climassay's tasks, scorers and models with Inspect."""

from climassay.integrations.inspect.provider import provider
from climassay.integrations.inspect.tasks import answer_letter, cloze, cloze_scores, freeform, freeform_scores, mcq

__all__ = ["answer_letter", "cloze", "cloze_scores", "freeform", "freeform_scores", "mcq", "provider"]
