"""The part of a passage that is nearest to a query or a statement."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray


def excerpt(sentences: Sequence[str], nearness: NDArray[np.float64], words: int) -> str:
    """The sentences nearest to a query, in their order, of at most so many words in all; gaps are marked.

    Args:
        sentences: Of one passage, in order.
        nearness: Shape [sentences].
        words: Most words; 0 keeps all. The nearest sentence is always kept, cut where it alone is longer.
    """
    if not words:
        return " ".join(sentences)
    nearest = sentences[int(nearness.argmax())].split()
    if len(nearest) > words:
        return " ".join(nearest[:words]) + " ..."
    kept: set[int] = set()
    room = words
    for place in np.argsort(-nearness, kind="stable"):
        length = len(sentences[place].split())
        if length <= room:
            kept.add(int(place))
            room -= length
    places = sorted(kept)
    pieces = [sentences[places[0]]]
    for before, place in pairwise(places):
        pieces.append(("... " if place > before + 1 else "") + sentences[place])
    return " ".join(pieces)
