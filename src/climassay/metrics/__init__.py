"""Measures of texts against each other: does one follow from the other?"""

from climassay.metrics.entailment import Entailment, PromptedEntailment, nearest_part

__all__ = ["Entailment", "PromptedEntailment", "nearest_part"]
