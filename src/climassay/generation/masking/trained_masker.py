"""A masker that learned from experts which word of a statement they mask."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError
from climassay.folder_files import write_file
from climassay.generation.masking.candidates import Candidate, candidates
from climassay.generation.masking.choosing import Choice
from climassay.generation.masking.context_features import ReadsWords, bundled_reader, context_features
from climassay.generation.masking.statistics_masker import shares
from climassay.generation.masking.word_features import FEATURES, WordStatistics, word_features
from climassay.given_files import parse_json, read_text, reason

FORMAT = "climassay-masker"
VERSION = 1
IMPACT = "impact"

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class MaskerReading:
    """What a trained masker looks at, besides the features of words."""

    impact: bool = True
    """How the statement changes without the word (:func:`~.context_features.context_features`)."""
    vectors: bool = True
    """The word's vector in the statement."""

    @property
    def encodes(self) -> bool:
        """Whether an encoder is needed."""
        return self.impact or self.vectors


@dataclass(frozen=True, slots=True)
class MaskerProvenance:
    """Where a trained masker comes from."""

    data: str
    """Name of the expert choices."""
    statements: int
    """Expert choices it was fitted on."""
    regularisation: float
    encoder: str
    """Empty where it needs none."""
    held_out: Mapping[str, float]
    """``accuracy@1`` and ``accuracy@3``, each statement left out once; empty where they were not measured."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainedMasker:
    """A softmax over the words of a statement, linear in their features (conditional logit)."""

    weights: FloatArray
    """Shape [features]: those of words, then impact, then the vector, as :attr:`reading` says; for raw features."""
    reading: MaskerReading
    statistics: WordStatistics
    provenance: MaskerProvenance
    reader: ReadsWords | None = None
    """Encoder of tokens, where it needs one; the bundled one if None. Not saved."""

    @property
    def name(self) -> str:
        """As decisions name it."""
        return "trained"

    def choose(self, statements: Sequence[str]) -> list[Choice | None]:
        """The term of each statement, in order; None where no word can be masked.

        Raises:
            MissingExtraError: It reads an encoder, and the packages for that are not installed.
        """
        found = [candidates(statement) for statement in statements]
        places = [place for place, own in enumerate(found) if own]
        features = masker_features(
            [statements[place] for place in places],
            [found[place] for place in places],
            self.reading,
            self.statistics,
            self.reader,
        )
        chosen: list[Choice | None] = [None] * len(statements)
        for place, rows in zip(places, features, strict=True):
            scores = shares(rows @ self.weights)
            chosen[place] = Choice.of([(word.term, share) for word, share in zip(found[place], scores, strict=True)])
        return chosen


def masker_features(
    statements: Sequence[str],
    found: Sequence[Sequence[Candidate]],
    reading: MaskerReading,
    statistics: WordStatistics | None = None,
    reader: ReadsWords | None = None,
) -> list[FloatArray]:
    """Features of the candidates of each statement, shape [candidates, features] each."""
    plain = [word_features(statement, own, statistics) for statement, own in zip(statements, found, strict=True)]
    if not reading.encodes:
        return plain
    seen = context_features(statements, found, reader or bundled_reader())
    rows = []
    for words, (impact, vectors) in zip(plain, seen, strict=True):
        more = ([impact] if reading.impact else []) + ([vectors] if reading.vectors else [])
        rows.append(np.concatenate([words, *more], axis=1))
    return rows


def feature_blocks(reading: MaskerReading, width: int) -> list[int]:
    """Sizes of the blocks that lie side by side in ``width`` features: those of words with the impact, the vector."""
    plain = len(FEATURES) + int(reading.impact)
    return [plain, width - plain] if reading.vectors else [plain]


def save_masker(masker: TrainedMasker, path: Path) -> None:
    """Write a masker as JSON; the file appears whole or not at all, and is read back exactly.

    Raises:
        InputError: The file cannot be written.
    """
    row = {
        "format": FORMAT,
        "version": VERSION,
        "features": list(FEATURES),
        "reading": asdict(masker.reading),
        "weights": masker.weights.tolist(),
        "glossary": sorted(masker.statistics.glossary),
        "counts": dict(masker.statistics.counts),
        "provenance": asdict(masker.provenance),
    }
    write_file(path, (json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n").encode())


def load_masker(path: Path) -> TrainedMasker:
    """Read a masker that :func:`save_masker` wrote.

    Raises:
        InputError: The file is missing, damaged, not a masker, or of another version.
    """
    try:
        row = parse_json(read_text(path))
    except OSError as error:
        raise InputError(f"The masker {path} cannot be read: {reason(error)}.") from None
    except ValueError:
        raise InputError(f"{path} is no masker of climassay: it is not JSON.") from None
    if not isinstance(row, dict) or row.get("format") != FORMAT:
        raise InputError(f"{path} is no masker of climassay.")
    if row.get("version") != VERSION or row.get("features") != list(FEATURES):
        raise InputError(f"The masker {path} was trained by another version of climassay; train it again.")
    try:
        return _build(row)
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise InputError(f"The masker {path} is damaged ({error}); train it again.") from None


def _build(row: Mapping[str, Any]) -> TrainedMasker:
    weights = np.array(row["weights"], dtype=np.float64)
    reading = MaskerReading(**row["reading"])
    least = len(FEATURES) + int(reading.impact)
    fits = len(weights) > least if reading.vectors else len(weights) == least
    if weights.ndim != 1 or not np.isfinite(weights).all() or not fits:
        raise ValueError(f"it has {weights.size} weights")
    counts = {str(word): int(count) for word, count in row["counts"].items()}
    return TrainedMasker(
        weights, reading, WordStatistics(counts, frozenset(row["glossary"])), MaskerProvenance(**row["provenance"])
    )
