"""What Inspect finds by the entry point ``inspect_ai``: importing the module registers everything in it."""

from climassay.integrations.inspect.provider import ClimassayModel
from climassay.integrations.inspect.scorers import answer_letter, cloze_scores, freeform_scores
from climassay.integrations.inspect.tasks import cloze, freeform, mcq

__all__ = ["ClimassayModel", "answer_letter", "cloze", "cloze_scores", "freeform", "freeform_scores", "mcq"]
