"""What a verdict head sees of a claim and a passage: a model's hidden states, an encoder's vectors, the words.

The model is asked whether the passage supports or refutes the claim, and its answer is made to end in each of three
ways. The states at these ends are a contrast: what claim and passage have in common is in all three, and what differs
is how each answer follows from them (Burns et al. 2023; Maiya 2024, with three answers instead of two).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError
from climassay.learning import ActivationStore, harvest
from climassay.learning.features import Progress, text_vectors
from climassay.models.contract import Encoder, OpenWeights, OptionRequest
from climassay.prompts import Prompt

FloatArray = NDArray[np.float64]
StateUse = Literal["contrast", "mean", "none"]
EncoderUse = Literal["vectors", "cosine", "none"]

PROMPT = "factcheck_head"
EVIDENCE_LABELS = ("REFUTES", "SUPPORTS", "NOT_ENOUGH_INFO")
"""What a passage does to a claim (Climate-FEVER's labels of evidence)."""
ANSWERS = (" refutes", " supports", " neither")
"""Ends of the model's answer, in the order of :data:`EVIDENCE_LABELS`."""

_NEGATION = re.compile(
    r"\b(?:no|not|never|none|nor|neither|without|cannot|false|myth|incorrect|wrong|contrary|however|although|despite)\b"
    r"|n['’]t\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_WORD = re.compile(r"\w{4,}")


@dataclass(frozen=True, slots=True)
class Reading:
    """Which features a head reads."""

    states: StateUse = "contrast"
    """``contrast``: how the states of "refutes" and "supports" differ from that of "neither"; ``mean``: their mean."""
    layers: tuple[int, ...] = ()
    """Whose states, side by side; numbered as in :meth:`OpenWeights.harvest`."""
    encoder: EncoderUse = "cosine"
    """``cosine``: of claim and passage; ``vectors``: also u, v, |u - v| and u * v (Conneau et al. 2017)."""

    def __post_init__(self) -> None:
        if (self.states == "none") != (not self.layers):
            raise InputError("A reading of hidden states names their layers, and one without states names none.")

    def __str__(self) -> str:
        parts = [] if self.states == "none" else [f"{self.states} of layer {'+'.join(map(str, self.layers))}"]
        return ", ".join([*parts, *([] if self.encoder == "none" else [self.encoder]), "words"])


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """What was read of pairs of a claim and a passage, once for all readings."""

    layers: tuple[int, ...]
    states: NDArray[np.float32]
    """Shape [pairs, answers, layers, width]; no layers where no model was read."""
    claims: FloatArray
    """Unit vectors of the claims, shape [pairs, width]; width 0 without an encoder."""
    passages: FloatArray
    words: FloatArray
    """Shape [pairs, features]: see :func:`word_features`."""
    failed: dict[int, str]
    """Why a pair could not be read, by its place."""

    def blocks(self, reading: Reading) -> list[FloatArray]:
        """Features of one reading, in blocks of one kind each; shape [pairs, features] each.

        Raises:
            InputError: The reading needs what was not read.
        """
        blocks: list[FloatArray] = []
        if reading.states != "none":
            if not set(reading.layers) <= set(self.layers):
                raise InputError(f"This reading needs layers {reading.layers}, and {self.layers} were read.")
            places = [self.layers.index(layer) for layer in reading.layers]
            states: FloatArray = self.states[:, :, places].astype(np.float64)
            states = states.mean(axis=1) if reading.states == "mean" else states[:, :2] - states[:, 2:]
            blocks.append(np.reshape(states, (len(states), -1)))
        if reading.encoder == "none":
            return [*blocks, self.words]
        if not self.claims.shape[1]:
            raise InputError("This reading compares vectors of claim and passage: it needs an encoder.")
        first, second = self.claims, self.passages
        if reading.encoder == "vectors":
            blocks.append(np.concatenate([first, second, np.abs(first - second), first * second], axis=1))
        return [*blocks, np.concatenate([self.words, np.sum(first * second, axis=1, keepdims=True)], axis=1)]

    def take(self, kept: NDArray[np.bool_]) -> "Material":
        """Only some of the pairs, none of which may have failed; ``kept`` has shape [pairs]."""
        return Material(
            self.layers, self.states[kept], self.claims[kept], self.passages[kept], self.words[kept], failed={}
        )


def read_pairs(
    pairs: Sequence[tuple[str, str]],
    prompt: Prompt,
    *,
    model: OpenWeights | None,
    layers: Sequence[int] = (),
    encoder: Encoder | None = None,
    store: ActivationStore | None = None,
    on_read: Progress | None = None,
) -> Material:
    """Read pairs of a claim and a passage.

    Args:
        pairs: Any number.
        prompt: Template with ``claim`` and ``passage``.
        model: Whose hidden states are read; None for none.
        layers: Which ones.
        encoder: For vectors; None for none.
        store: Where states are kept, so that nothing is computed twice.
        on_read: Called with the number of pairs whose states are known since the last call.

    Raises:
        InputError: The template cannot be filled in.
        ModelError: The model has no such layer.
    """
    states = np.zeros((len(pairs), len(ANSWERS), 0, 0), dtype=np.float32)
    failed: dict[int, str] = {}
    if model is not None and layers and pairs:
        rendered = [prompt.render(claim=claim, passage=passage) for claim, passage in pairs]
        requests = [OptionRequest(one.messages, ANSWERS, one.assistant_prefix) for one in rendered]
        found = harvest(model, requests, layers=tuple(layers), store=store, on_progress=on_read)
        states, failed = found.states, found.failed
    claims = passages = np.zeros((len(pairs), 0))
    if encoder is not None:
        claims, passages = (text_vectors([pair[side] for pair in pairs], encoder) for side in (0, 1))
    words = np.array([word_features(*pair) for pair in pairs], dtype=np.float64).reshape(len(pairs), -1)
    return Material(tuple(layers) if model is not None else (), states, claims, passages, words, failed)


def word_features(claim: str, passage: str) -> tuple[float, ...]:
    """What can be told from the words alone.

    Returns:
        Whether the claim has a negation, the passage has one, only one of them has; how many numbers they share and how
        many the claim has alone; and the share of the claim's words (of four letters or more) that the passage has.
    """
    negated, denied = (bool(_NEGATION.search(text)) for text in (claim, passage))
    numbers, given = (set(_NUMBER.findall(text)) for text in (claim, passage))
    words, others = (set(_WORD.findall(text.casefold())) for text in (claim, passage))
    overlap = len(words & others) / max(1, len(words))
    shared = float(len(numbers & given))
    return (float(negated), float(denied), float(negated != denied), shared, len(numbers) - shared, overlap)
