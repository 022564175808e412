"""Taggers as loaded from a file, with their measured accuracy."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from climassay.confidence.vocabulary import LEVELS, Level

if TYPE_CHECKING:
    from climassay.confidence.tagging.tagger import Tagger
    from climassay.models.contract import Encoder


@dataclass(frozen=True, slots=True)
class MeasuredAccuracy:
    """Accuracy of a tagger on held-out statements, with its 95% interval."""

    value: float
    low: float
    high: float
    """Upper end of the 95% interval."""
    items: int
    on: str
    """Description of the statements for which the accuracy was measured."""

    def __str__(self) -> str:
        return f"{self.value:.0%} [{self.low:.0%} to {self.high:.0%}] of {self.items:,} statements ({self.on})"


@dataclass(frozen=True, slots=True)
class OpenedTagger:
    """Loaded tagger with its measured accuracy."""

    tagger: "Tagger"
    accuracy: MeasuredAccuracy | None
    """Accuracy stored with the tagger; None if its file has none."""
    equal_accuracy: MeasuredAccuracy | None = None
    """Accuracy on statements among which all levels are equally frequent; None if unknown."""
    shares: Sequence[float] | None = None
    """Proportions of the levels in the training data, for which the probabilities are calibrated; None if unknown."""


def open_tagger(path: Path | None = None, encoder: "Callable[[str], Encoder] | None" = None) -> OpenedTagger:
    """Load a tagger with its measured accuracy.

    Args:
        path: File written by ``climassay confidence tag train``; None for the bundled tagger.
        encoder: Function that returns an encoder by name, for example one that is in memory; by default the encoder is
            loaded at first use.

    Raises:
        InputError: The file is missing or is not a tagger.
        ModelError: The encoder or language model that the tagger needs does not exist.
    """
    from climassay.confidence.tagging.tagger import BUNDLED_TAGGER, load_tagger

    tagger = load_tagger(BUNDLED_TAGGER if path is None else path)
    provenance = tagger.provenance
    if encoder is not None and provenance.encoder and not provenance.model:
        tagger = tagger.with_models(encoder(provenance.encoder))
    share, level = max(zip(tagger.shares, tagger.levels, strict=True))
    statement_source = f"{provenance.data}, sections it was not trained on"

    def read_accuracy(measure: str, statement_source: str) -> MeasuredAccuracy | None:
        values = [provenance.measured.get(name) for name in (measure, f"{measure}_low", f"{measure}_high", "n")]
        numbers = [value for value in values if value is not None and not math.isnan(value)]
        return (
            MeasuredAccuracy(numbers[0], numbers[1], numbers[2], round(numbers[3]), statement_source)
            if len(numbers) == len(values)
            else None
        )

    return OpenedTagger(
        tagger,
        read_accuracy("accuracy", f"{statement_source}; always to say {level} is right for {share:.0%}"),
        read_accuracy("equal_accuracy", f"{statement_source}; chance is {1 / len(tagger.levels):.0%}"),
        tagger.shares,
    )


def rank_levels(row: Sequence[float], levels: Sequence[Level]) -> list[tuple[Level, float]]:
    """Return pairs of level and probability for one statement, highest level first."""
    pairs = [(level, float(probability)) for level, probability in zip(levels, row, strict=True)]
    return sorted(pairs, key=lambda pair: -LEVELS.index(pair[0]))
