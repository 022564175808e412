"""The bundled entailment scorer: a regression on an encoder's vectors and on what rules see in the words."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from climassay.claim_identity import words_id
from climassay.errors import InputError
from climassay.learning.model_file import ModelFormat, checked_array
from climassay.metrics.entailment import RELATIONS, Relations, nearest_parts
from climassay.metrics.entailment_features import NAMES, PairFeatures, pair_features
from climassay.models.contract import Encoder

FloatArray = NDArray[np.float64]

FORMAT = ModelFormat("climassay-entailment-head", 1, "entailment head", "climassay metrics train-entailment")
BUNDLED_HEAD = Path(__file__).with_name("entailment_head.safetensors")
"""The head that comes with climassay; see docs/results/entailment.md."""


@dataclass(frozen=True, slots=True)
class HeadSource:
    """Where a head comes from."""

    encoder: str
    """Name of the encoder whose vectors it reads."""
    encoder_fingerprint: str
    data: str
    """Name of the training data."""
    data_sha256: str
    statements: int
    """Different statements trained on."""
    pairs: int
    """Labelled pairs trained on."""
    turned: int
    """Pairs made by rule that were added (:mod:`climassay.metrics.perturbations`)."""
    regularisation: float
    """C of the regression."""
    seed: int
    cross_validated: dict[str, float]
    """On pairs of statements not fitted on: ``two_class_auroc``, ``two_class_accuracy``, ``two_class_constant``,
    ``accuracy``, ``constant``, ``macro_f1``, ``log_loss``, and ``turned_auroc`` on pairs made by rule."""
    trained_on: tuple[str, ...] = ()
    """Ids of the statements' words (:func:`climassay.claim_identity.words_id`), so that nobody tests on them."""


@dataclass(frozen=True, slots=True, eq=False)
class EntailmentHead:
    """``softmax(features @ weights + bias)`` over the three relations."""

    weights: FloatArray
    """Shape [features, relations]: those that :data:`~climassay.metrics.entailment_features.NAMES` lists, and before
    them, where there are more, those of the vectors."""
    bias: FloatArray
    """Shape [relations]."""
    source: HeadSource

    def knows(self, statement: str) -> bool:
        """Whether a statement of these words was among the training data."""
        return words_id(statement) in self.source.trained_on

    @property
    def reads_vectors(self) -> bool:
        """Whether it reads the encoder's vectors, beside their cosines."""
        return len(self.weights) > len(NAMES)

    def probabilities(self, features: PairFeatures) -> FloatArray:
        """Of the relations, shape [pairs, 3]."""
        logits = (features.all if self.reads_vectors else features.named) @ self.weights + self.bias
        powers = np.exp(logits - logits.max(axis=1, keepdims=True, initial=-np.inf))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True), dtype=np.float64)


class HeadEntailment:
    """A head with its encoder, as a scorer of pairs; see :class:`~climassay.metrics.entailment.RelationScorer`.

    It needs no language model, no torch and no GPU. It knows nearness, shared words, negations, directions and numbers,
    and nothing of the world: a contradiction that shows in none of them is mostly not found.
    """

    def __init__(self, head: EntailmentHead, encoder: Encoder | None = None, *, name: str = "entailment head") -> None:
        """Prepare; nothing is encoded yet.

        Args:
            head: What was trained.
            encoder: The one it was trained with; loaded by its name if None.
            name: For reports.

        Raises:
            InputError: Another encoder than the head's.
        """
        self.name = name
        self.head = head
        self._given = encoder
        if encoder is not None:
            _check_encoder(head.source, encoder)

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder whose vectors the head reads."""
        if self._given is not None:
            return self._given
        from climassay.models.encoder import load_encoder

        encoder = load_encoder(self.head.source.encoder)
        _check_encoder(self.head.source, encoder)
        return encoder

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """P(premise confirms statement) of each pair; never None."""
        return [None if found is None else found.confirms for found in self.relations(pairs)]

    def relations(self, pairs: Sequence[tuple[str, str]]) -> list[Relations | None]:
        """Probabilities of the three relations of each pair, in order.

        Of a long premise the sentences nearest to the statement are read (:func:`nearest_parts`).
        """
        if not pairs:
            return []
        parts = nearest_parts(pairs, encoder=self.encoder)
        read = [(part, statement) for part, (_, statement) in zip(parts, pairs, strict=True)]
        return [Relations(*row) for row in self.head.probabilities(pair_features(read, self.encoder)).tolist()]


def save_head(head: EntailmentHead, path: Path) -> None:
    """Write a head as a safetensors file, its source as JSON in the header; replaced at once, whole.

    Raises:
        InputError: The file cannot be written.
        MissingExtraError: safetensors is not installed.
    """
    facts = {"relations": list(RELATIONS), "features": list(NAMES), "source": asdict(head.source)}
    FORMAT.save(path, {"weights": head.weights, "bias": head.bias}, facts)


def load_head(path: Path = BUNDLED_HEAD) -> EntailmentHead:
    """Read a head exactly as it was saved; the bundled one by default.

    Raises:
        InputError: The file is missing, damaged, no entailment head, or written by another version of climassay.
        MissingExtraError: safetensors is not installed.
    """
    return FORMAT.load(path, _build)


def _build(facts: dict[str, Any], arrays: dict[str, FloatArray]) -> EntailmentHead:
    if tuple(facts["features"]) != NAMES or tuple(facts["relations"]) != RELATIONS:
        raise ValueError("it reads other features than this version of climassay has")
    source = facts["source"]
    weights = checked_array("weights", arrays["weights"], (None, len(RELATIONS)))
    bias = checked_array("bias", arrays["bias"], (len(RELATIONS),))
    if len(weights) < len(NAMES):
        raise ValueError(f"weights has shape {weights.shape}")
    return EntailmentHead(weights, bias, HeadSource(**{**source, "trained_on": tuple(source["trained_on"])}))


def _check_encoder(source: HeadSource, given: Encoder) -> None:
    if given.fingerprint != source.encoder_fingerprint:
        raise InputError(
            f"This entailment head was trained on the encoder {source.encoder} ({source.encoder_fingerprint[:12]}) and"
            f" cannot read {given.name} ({given.fingerprint[:12]}): use that one, or train a head on this one."
        )
