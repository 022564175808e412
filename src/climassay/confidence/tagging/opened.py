"""A tagger with its measured accuracy, ready to be asked and shown."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from climassay.confidence.vocabulary import TAGS, Tag

if TYPE_CHECKING:
    from climassay.confidence.tagging.tagger import Tagger
    from climassay.models.contract import Encoder


@dataclass(frozen=True, slots=True)
class MeasuredAccuracy:
    """Share of right levels on statements that a tagger was not trained on."""

    value: float
    low: float
    high: float
    """Ends of the 95% interval."""
    items: int
    on: str
    """Statements that it was measured on, in words."""

    def __str__(self) -> str:
        return f"{self.value:.0%} [{self.low:.0%} to {self.high:.0%}] of {self.items:,} statements ({self.on})"


@dataclass(frozen=True, slots=True)
class OpenedTagger:
    """A tagger, ready to be asked."""

    tagger: "Tagger"
    accuracy: MeasuredAccuracy | None
    """Accuracy as measured before the tagger was saved; None if its file does not tell."""
    equal_accuracy: MeasuredAccuracy | None = None
    """The same if all levels are equally frequent, of answers for that."""
    shares: Sequence[float] | None = None
    """Shares of the levels among the training statements, which its probabilities are for."""


def open_tagger(path: Path | None = None, encoder: "Callable[[str], Encoder] | None" = None) -> OpenedTagger:
    """Open a tagger.

    Args:
        path: A file of ``climassay confidence tag train``; None takes the bundled one.
        encoder: Gives the encoder of a name that may be loaded already; by default it is loaded when needed.

    Raises:
        InputError: The file is missing or is not a tagger.
        ModelError: A model that the tagger reads is not there.
    """
    from climassay.confidence.tagging.tagger import BUNDLED_TAGGER, load_tagger

    tagger = load_tagger(BUNDLED_TAGGER if path is None else path)
    reads = tagger.provenance
    if encoder is not None and reads.encoder and not reads.model:
        tagger = tagger.with_models(encoder(reads.encoder))
    share, level = max(zip(tagger.shares, tagger.levels, strict=True))
    on = f"{reads.data}, sections it was not trained on"

    def accuracy(measure: str, on: str) -> MeasuredAccuracy | None:
        values = [reads.measured.get(name) for name in (measure, f"{measure}_low", f"{measure}_high", "n")]
        known = [value for value in values if value is not None and not math.isnan(value)]
        return (
            MeasuredAccuracy(known[0], known[1], known[2], round(known[3]), on) if len(known) == len(values) else None
        )

    return OpenedTagger(
        tagger,
        accuracy("accuracy", f"{on}; always to say {level} is right for {share:.0%}"),
        accuracy("equal_accuracy", f"{on}; chance is {1 / len(tagger.levels):.0%}"),
        tagger.shares,
    )


def levels_of(row: Sequence[float], levels: Sequence[Tag]) -> list[tuple[Tag, float]]:
    """Return the probability of each level, highest level first."""
    pairs = [(level, float(probability)) for level, probability in zip(levels, row, strict=True)]
    return sorted(pairs, key=lambda pair: -TAGS.index(pair[0]))
