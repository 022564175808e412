"""The tagger that takes part in a check, with its measured accuracy."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from climassay.confidence.linting.tagger_rule import LevelTagger, MeasuredAccuracy

if TYPE_CHECKING:
    from collections.abc import Callable

    from climassay.confidence.tagging.tagger import LinearTagger
    from climassay.models.contract import Encoder


@dataclass(frozen=True, slots=True)
class OpenedTagger:
    """A tagger, ready to be asked."""

    tagger: LevelTagger
    accuracy: MeasuredAccuracy | None
    """As it was measured before the tagger was saved; None where its file does not tell."""


def open_tagger(path: Path | None = None, encoder: "Callable[[str], Encoder] | None" = None) -> OpenedTagger:
    """Open a tagger.

    Args:
        path: A file of ``climassay confidence tag train``; None takes the bundled one.
        encoder: Gives the encoder of a name, where it may be loaded already; by default it is loaded when needed.

    Raises:
        InputError: The file is missing or is no tagger.
        ModelError: A model that the tagger reads is not there.
    """
    from climassay.confidence.tagging.tagger import BUNDLED_TAGGER, load_tagger

    tagger = load_tagger(BUNDLED_TAGGER if path is None else path)
    if encoder is not None and tagger.origins.encoder and not tagger.origins.model:
        tagger = tagger.with_readers(encoder(tagger.origins.encoder))
    return OpenedTagger(tagger, _accuracy(tagger))


def _accuracy(tagger: "LinearTagger") -> MeasuredAccuracy | None:
    """From a tagger's card: the accuracy on sections that it was not trained on, beside that of always one answer."""
    figures, card = tagger.card.figures, tagger.card
    wanted = [figures.get(name) for name in ("accuracy", "accuracy_low", "accuracy_high", "n")]
    value, low, high, items = (math.nan if one is None else one for one in wanted)
    if any(map(math.isnan, (value, low, high, items))):
        return None
    share, level = max(zip(card.shares, tagger.levels, strict=True))
    constant = f"{card.data}, sections it was not trained on; always to say {level} is right for {share:.0%}"
    return MeasuredAccuracy(value, low, high, round(items), constant)
