"""Statements whose level can be told by their words, for tests of taggers without a language model."""

import numpy as np

from climassay.confidence.tagging.labelled import LEVELS, LabelledItem, TaggingItem
from topic_encoder import TopicEncoder

SIGNS = ("might perhaps", "suggests", "shows", "unequivocally")
"""One for each level."""
_THINGS = ("albedo", "cloud", "aerosol", "ocean", "carbon", "glacier")


def planted(count: int = 160, *, seed: int = 0, noise: float = 0.0) -> list[LabelledItem]:
    """Statements of all levels in turn, four a section, two sections a document; ``noise``: share of wrong signs."""
    generator = np.random.default_rng(seed)
    found = []
    for number in range(count):
        level = int(generator.integers(0, 4)) if generator.random() < noise else number % 4
        first, second = generator.choice(_THINGS, 2, replace=False)
        text = f"The record {SIGNS[level]} that {first} and {second} change in region number{number}."
        around = (f"This part is about {first}.",)
        section = f"section {number // 4}"
        item = TaggingItem(text, around, ("More work follows.",))
        found.append(LabelledItem(item, LEVELS[number % 4], "AR6 WG1", f"chapter {number // 8}", section, True))
    return found


def encoder() -> TopicEncoder:
    """Counts topics; knows nothing of signs."""
    return TopicEncoder()
