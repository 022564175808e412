"""A trained verdict head: from a claim and its passages to probabilities of Climate-FEVER's four verdicts.

Small models know more than they say: their answers to "does this support the claim?" are near chance where a linear
probe on their hidden states is not. A head works in two steps. Every passage is judged by itself: it refutes the claim,
supports it, or neither. Then Climate-FEVER's rule (both: disputed; one of them: that; none: not enough information) is
applied to the probabilities as if passages were independent, and a small regression corrects for that they are not.
Hence any number of passages will do.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from climassay.claim_identity import words_id
from climassay.errors import InputError
from climassay.factcheck.scales import CLIMATE_FEVER
from climassay.factcheck.verdict_reading import (
    EVIDENCE_LABELS,
    FloatArray,
    Material,
    Reading,
    read_pairs,
)
from climassay.learning import ActivationStore
from climassay.learning.model_file import ModelFormat, checked_array
from climassay.models.contract import Encoder, Generator, OpenWeights
from climassay.prompts import Prompt, load_prompt

VERDICT_LABELS = (*CLIMATE_FEVER.labels, CLIMATE_FEVER.nei)
"""REFUTES, DISPUTED, SUPPORTS, NOT_ENOUGH_INFO: the order of a head's probabilities."""
FORMAT = ModelFormat("climassay-verdict-head", 1, "verdict head", "climassay factcheck-head")

_FLOOR = 1e-4
"""Smallest probability whose logarithm the second step reads."""
_ARRAYS = ("evidence_weights", "evidence_bias", "verdict_weights", "verdict_bias", "shares")


@dataclass(frozen=True, slots=True)
class HeadProvenance:
    """Where a head comes from."""

    model: str
    """Name of the model whose states it reads; empty where it reads none."""
    fingerprint: str
    dtype: str
    """Number format the model computed in."""
    encoder: str
    """Name of the encoder; empty where it needs none."""
    encoder_fingerprint: str
    template: str
    template_sha256: str
    data: str
    """Name of the training data."""
    data_sha256: str
    claims: int
    """Training claims."""
    passages: int
    regularisation: float
    """C of the first step: prior variance of its logits (see :mod:`climassay.factcheck.verdict_head_training`)."""
    seed: int
    held_out: dict[str, float]
    """Cross-validated ``accuracy``, ``macro_f1`` and ``log_loss`` of the verdicts, ``passage_log_loss`` of the first
    step; the settings were chosen on the same folds, so a fresh test set may come out a little lower."""
    trained_on: tuple[str, ...] = ()
    """Ids of the training claims' words (:func:`~climassay.claim_identity.words_id`), so that nobody tests the head on
    them, or on the same words with other punctuation."""


@dataclass(frozen=True, slots=True, eq=False)
class VerdictHead:
    """A linear head on features of a claim and a passage, and one on what the passages say together."""

    reading: Reading
    evidence_weights: FloatArray
    """Shape [features, 3], for the features of :attr:`reading`, block after block."""
    evidence_bias: FloatArray
    """Shape [3]."""
    verdict_weights: FloatArray
    """Shape [4, 4], for the logarithms of :func:`rule_probabilities`."""
    verdict_bias: FloatArray
    """Shape [4]."""
    shares: FloatArray
    """Shape [4]: how frequent each verdict is in the training data."""
    balance: float
    """0: probabilities as for claims of which each verdict is as frequent as in training; 1: as if all four were
    equally frequent; between: in between. ``p_c / share_c ** balance``, normalised."""
    provenance: HeadProvenance

    @property
    def labels(self) -> tuple[str, ...]:
        """What :meth:`predict` gives probabilities of."""
        return VERDICT_LABELS

    def knows(self, claim: str) -> bool:
        """Whether a claim of these words was among the training data."""
        return words_id(claim) in self.provenance.trained_on

    def predict(
        self,
        model: Generator | None,
        claims: Sequence[tuple[str, Sequence[str]]],
        *,
        encoder: Encoder | None = None,
        store: ActivationStore | None = None,
        on_read: Callable[[int], None] | None = None,
    ) -> list[tuple[float, ...] | None]:
        """Probabilities of the verdicts; the most probable one is the head's verdict.

        Args:
            model: The model the head was trained on; None for a head that reads no states.
            claims: Each with its passages, any number of them; without any, there is not enough information.
            encoder: The encoder the head was trained with; loaded by its name if None.
            store: Where hidden states are kept.
            on_read: Called with the number of passages read since the last call.

        Returns:
            For each claim one probability a label of :data:`VERDICT_LABELS`, summing to 1; None where a passage could
            not be read.

        Raises:
            InputError: Another model or encoder than the head's.
        """
        read = self.predict_evidence(model, claims, encoder=encoder, store=store, on_read=on_read)
        return [None if passages is None else self.combine(passages) for passages in read]

    def predict_evidence(
        self,
        model: Generator | None,
        claims: Sequence[tuple[str, Sequence[str]]],
        *,
        encoder: Encoder | None = None,
        store: ActivationStore | None = None,
        on_read: Callable[[int], None] | None = None,
    ) -> list[tuple[tuple[float, ...], ...] | None]:
        """What each passage by itself does to its claim, as probabilities of :data:`EVIDENCE_LABELS`.

        Arguments and errors as :meth:`predict`.
        """
        pairs = [(claim, passage) for claim, passages in claims for passage in passages]
        material = self._read(model, pairs, encoder, store, on_read)
        probabilities = self.judge(material)
        found: list[tuple[tuple[float, ...], ...] | None] = []
        at = 0
        for _, passages in claims:
            places = range(at, at := at + len(passages))
            rows = probabilities[places.start : places.stop].tolist()
            found.append(None if material.failed.keys() & set(places) else tuple(map(tuple, rows)))
        return found

    def judge(self, material: Material) -> FloatArray:
        """First step: probabilities of :data:`EVIDENCE_LABELS`, shape [pairs, 3]; meaningless where reading failed.

        Raises:
            InputError: What was read has another number of features than the head was trained on.
        """
        features = np.concatenate(material.blocks(self.reading), axis=1)
        if features.shape[1] != len(self.evidence_weights):
            raise InputError(
                f"This verdict head reads {len(self.evidence_weights)} features, but there are {features.shape[1]}."
            )
        return softmax(features @ self.evidence_weights + self.evidence_bias)

    def combine(self, evidence: Sequence[Sequence[float]]) -> tuple[float, ...]:
        """Second step: from what the passages of one claim do to it to probabilities of the verdicts.

        Args:
            evidence: One row a passage, probabilities of :data:`EVIDENCE_LABELS`; the order of rows does not matter.
        """
        if not len(evidence):
            return (0.0, 0.0, 0.0, 1.0)
        features = verdict_features(evidence)
        plain = softmax(features @ self.verdict_weights + self.verdict_bias)
        return tuple(balanced(plain, self.shares, self.balance).tolist())

    def _read(
        self,
        model: Generator | None,
        pairs: Sequence[tuple[str, str]],
        encoder: Encoder | None,
        store: ActivationStore | None,
        on_read: Callable[[int], None] | None,
    ) -> Material:
        source, reads = self.provenance, self.reading
        weights = None
        if reads.states != "none":
            _check_same("model", source.model, source.fingerprint, model)
            if not isinstance(model, OpenWeights):
                raise InputError("A verdict head reads hidden states: give it a local: model, itself and not wrapped.")
            weights = model
        vectors = None
        if reads.encoder != "none":
            vectors = encoder or _load_encoder(source.encoder)
            _check_same("encoder", source.encoder, source.encoder_fingerprint, vectors)
        return read_pairs(
            pairs, self._prompt(), model=weights, layers=reads.layers, encoder=vectors, store=store, on_read=on_read
        )

    def _prompt(self) -> Prompt:
        prompt = load_prompt(self.provenance.template)
        if prompt.sha256 != self.provenance.template_sha256:
            raise InputError(
                f"This verdict head was trained with another text of the prompt {prompt.name} than this version of"
                " climassay has; train it again."
            )
        return prompt


def rule_probabilities(evidence: ArrayLike) -> FloatArray:
    """Climate-FEVER's rule on uncertain evidence, as if what passages say were independent.

    With ``n``, ``s`` and ``r`` a passage's probabilities of neither, support and refutation: not enough information is
    ``prod(n)``, supported ``prod(s + n) - prod(n)``, refuted ``prod(r + n) - prod(n)``, and disputed is the rest.

    Args:
        evidence: Shape [passages, 3], probabilities of :data:`EVIDENCE_LABELS`.

    Returns:
        Shape [4], in the order of :data:`VERDICT_LABELS`, summing to 1.

    References:
        Diggelmann et al. (2020), arXiv 2012.00614, section 3 (how a claim gets its label).
    """
    rows = np.asarray(evidence, dtype=np.float64).reshape(-1, len(EVIDENCE_LABELS))
    nothing = float(np.prod(rows[:, 2]))
    refuted = float(np.prod(rows[:, 0] + rows[:, 2])) - nothing
    supported = float(np.prod(rows[:, 1] + rows[:, 2])) - nothing
    return np.maximum([refuted, 1.0 - refuted - supported - nothing, supported, nothing], 0.0)


def verdict_features(evidence: ArrayLike) -> FloatArray:
    """What the second step reads of a claim's passages [passages, 3]: log rule probabilities, shape [4]."""
    return np.asarray(np.log(np.maximum(rule_probabilities(evidence), _FLOOR)), dtype=np.float64)


def balanced(probabilities: FloatArray, shares: FloatArray, balance: float) -> FloatArray:
    """``p / share ** balance``, normalised; shape as given, [..., labels]. See :attr:`VerdictHead.balance`."""
    weighted = probabilities / shares**balance
    return np.asarray(weighted / weighted.sum(axis=-1, keepdims=True), dtype=np.float64)


def softmax(logits: FloatArray) -> FloatArray:
    """Probabilities along the last axis, in the shape given."""
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True, initial=-np.inf))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True), dtype=np.float64)


def save_head(head: VerdictHead, path: Path) -> None:
    """Write a head as a safetensors file, everything but the arrays as JSON in its header; replaced at once, whole.

    Raises:
        InputError: The file cannot be written.
        MissingExtraError: safetensors is not installed.
    """
    facts = {
        "labels": list(VERDICT_LABELS),
        "evidence_labels": list(EVIDENCE_LABELS),
        "reading": asdict(head.reading),
        "balance": head.balance,
        "provenance": asdict(head.provenance),
    }
    FORMAT.save(path, {name: getattr(head, name) for name in _ARRAYS}, facts)


def load_head(path: Path) -> VerdictHead:
    """Read a head exactly as it was saved.

    Raises:
        InputError: The file is missing, damaged, not a verdict head, or written by a newer climassay.
        MissingExtraError: safetensors is not installed.
    """
    return FORMAT.load(path, _build)


def _build(facts: dict[str, Any], arrays: dict[str, FloatArray]) -> VerdictHead:
    if tuple(facts["labels"]) != VERDICT_LABELS or tuple(facts["evidence_labels"]) != EVIDENCE_LABELS:
        raise ValueError("its labels are others")
    kinds, verdicts = len(EVIDENCE_LABELS), len(VERDICT_LABELS)
    wanted = ((None, kinds), (kinds,), (verdicts, verdicts), (verdicts,), (verdicts,))
    given = {name: checked_array(name, arrays[name], shape) for name, shape in zip(_ARRAYS, wanted, strict=True)}
    if not 0 <= float(facts["balance"]) <= 1 or not (arrays["shares"] > 0).all():
        raise ValueError("balance or shares are not what they can be")
    reading = dict(facts["reading"])
    source = dict(facts["provenance"])
    source["trained_on"] = tuple(source["trained_on"])
    return VerdictHead(
        reading=Reading(**{**reading, "layers": tuple(reading["layers"])}),
        **given,
        balance=float(facts["balance"]),
        provenance=HeadProvenance(**source),
    )


def _check_same(kind: str, name: str, fingerprint: str, given: Generator | Encoder | None) -> None:
    if given is None:
        raise InputError(f"This verdict head needs the {kind} {name} that it was trained on.")
    if given.fingerprint != fingerprint:
        raise InputError(
            f"This verdict head was trained on the {kind} {name} ({fingerprint[:12]}) and cannot read {given.name}"
            f" ({given.fingerprint[:12]}): the weights or the number format (--dtype) differ; use that one, or train"
            " a head on this one."
        )


def _load_encoder(name: str) -> Encoder:
    from climassay.models.encoder import load_encoder

    return load_encoder(name)
