"""The tagger that takes part in a check, with its measured accuracy."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from climassay.confidence.linting.tagger_rule import LevelTagger, MeasuredAccuracy

if TYPE_CHECKING:
    from collections.abc import Callable

    from climassay.confidence.tagging.tagger import Tagger
    from climassay.models.contract import Encoder


@dataclass(frozen=True, slots=True)
class OpenedTagger:
    """A tagger, ready to be asked."""

    tagger: LevelTagger
    accuracy: MeasuredAccuracy | None
    """As it was measured before the tagger was saved; None where its file does not tell."""
    equal_accuracy: MeasuredAccuracy | None = None
    """The same where all levels are equally frequent, of answers for that."""
    shares: Sequence[float] | None = None
    """Shares of the levels among what it was trained on, for which its probabilities are."""


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
    reads = tagger.provenance
    if encoder is not None and reads.encoder and not reads.model:
        tagger = tagger.with_models(encoder(reads.encoder))
    share, level = max(zip(tagger.shares, tagger.levels, strict=True))
    on = f"{reads.data}, sections it was not trained on"
    return OpenedTagger(
        tagger,
        _accuracy(tagger, "accuracy", f"{on}; always to say {level} is right for {share:.0%}"),
        _accuracy(tagger, "equal_accuracy", f"{on}; chance is {1 / len(tagger.levels):.0%}"),
        tagger.shares,
    )


def _accuracy(tagger: "Tagger", measure: str, on: str) -> MeasuredAccuracy | None:
    """From the figures that a tagger's file holds."""
    figures = tagger.provenance.measured
    wanted = [figures.get(name, math.nan) for name in (measure, f"{measure}_low", f"{measure}_high", "n")]
    if any(map(math.isnan, wanted)):
        return None
    value, low, high, items = wanted
    return MeasuredAccuracy(value, low, high, round(items), on)
