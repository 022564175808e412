"""BERTScore: how well the tokens of two texts match each other in the states of an encoder."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError
from climassay.metrics.answer_pairs import Candidates, References, answer_pairs
from climassay.metrics.registry import Batch, metric
from climassay.metrics.token_encoder import TokenEncoder, TokenVectors, token_encoder
from climassay.models.encoders.loading import BUNDLED_ENCODER


@dataclass(frozen=True, slots=True)
class BertScores:
    """Precision, recall and F1 of every item, in order."""

    precision: tuple[float, ...]
    """How well the candidate's tokens are found in the reference."""
    recall: tuple[float, ...]
    """How well the reference's tokens are found in the candidate."""
    f1: tuple[float, ...]
    """Their harmonic mean; what ClimaQA reports as BERTScore."""
    encoder: str
    """Name of the model; figures of different models cannot be compared."""
    layer: int
    """Layer of its states, counted from 1."""
    idf: bool
    """Whether rare tokens counted more."""
    baseline: tuple[float, float, float] | None
    """Precision, recall and F1 that were rescaled to 0."""

    @property
    def mean_f1(self) -> float:
        """Mean of :attr:`f1` over items."""
        return float(np.mean(self.f1))


def bert_score(
    references: References,
    candidates: Candidates,
    encoder: TokenEncoder | str = BUNDLED_ENCODER,
    *,
    layer: int | None = None,
    idf: bool = False,
    baseline: tuple[float, float, float] | None = None,
    match_special_tokens: bool = True,
) -> BertScores:
    """Precision, recall and F1 of greedily matched tokens.

    With unit vectors r of the reference's tokens and c of the candidate's, P = mean over c of max over r of c.r, R =
    mean over r of max over c of c.r, F1 = 2 P R / (P + R). Of several references an item takes the one with the
    highest F1.

    Args:
        references: One string an item, or several; two single strings are one item.
        candidates: One string an item.
        encoder: ``local:minilm`` (bundled), or ``local:`` and a transformers folder or hub id; ``local:roberta-large``
            is the default of BERTScore's authors and what ClimaQA used.
        layer: Layer of its states; by default the authors' choice for that model, else the last.
        idf: Weigh each token by its inverse document frequency among the references of this call,
            log((n + 1) / (k + 1)) for a token in k of n references.
        baseline: Precision, recall and F1 of unrelated texts, which are rescaled to 0: (x - b) / (1 - b). For
            ``local:roberta-large`` in English the authors publish (0.8315, 0.8315, 0.8312).
        match_special_tokens: Whether a token may find its match in the other text's start and end tokens, as in the
            authors' code; they have no weight of their own in any case. False leaves them out, as torchmetrics does.

    Returns:
        One precision, recall and F1 an item. -1 to 1, in practice 0 to 1 (with a baseline also below 0); an empty
        candidate has 0 in all three, before rescaling.

    Raises:
        InputError: The numbers differ, a reference is empty, the encoder's name or layer is wrong, or a baseline is 1
            or more.
        ModelError: The encoder cannot be loaded.

    Notes:
        - The range that matters is small and depends on the model: in ClimaQA's case study all answers, right, wrong
          and irrelevant, lie between 0.861 and 0.910 with ``roberta-large``. Look at differences, and name the model.
        - Statements that contradict each other in one word have nearly the same score.
        - ClimaQA saw it favour the model that wrote the references (section 5).
        - Why not torchmetrics: 1.9.0 sorts texts by length and does not sort the results back, so that candidates meet
          other items' references in a batch of unequal lengths; and an empty candidate gives NaN. Item by item the two
          agree (see the tests).

    References:
        Zhang et al. (2020), BERTScore, ICLR, section 3 (equations for P, R, F1, idf and rescaling).
    """
    if baseline is not None and not all(value < 1 for value in baseline):
        raise InputError(f"A baseline lies below 1, not at {max(baseline)}.")
    pairs = answer_pairs(references, candidates)
    model = token_encoder(encoder, layer) if isinstance(encoder, str) else encoder
    texts = list(dict.fromkeys(text for several, candidate in pairs for text in (*several, candidate)))
    encoded = dict(zip(texts, model.encode(texts), strict=True))
    weights = _document_frequencies([encoded[one] for several, _ in pairs for one in several]) if idf else None
    found = [
        max(
            (_match(encoded[one], encoded[candidate], weights, match_special_tokens) for one in several),
            key=lambda values: values[2],
        )
        for several, candidate in pairs
    ]
    if baseline is not None:
        found = [_rescaled(values, baseline) for values in found]
    precision, recall, f1 = zip(*found, strict=True)
    return BertScores(precision, recall, f1, model.name, model.layer, idf, baseline)


def _match(
    reference: TokenVectors, candidate: TokenVectors, idf: Mapping[int, float] | None, special: bool
) -> tuple[float, float, float]:
    """Precision, recall and F1 of one pair."""
    if reference.empty or candidate.empty:
        return 0.0, 0.0, 0.0
    similar = candidate.vectors.astype(np.float64) @ reference.vectors.T.astype(np.float64)
    own_c, own_r = ~candidate.special, ~reference.special
    precision = _weighted(similar[:, slice(None) if special else own_r].max(axis=1), _weights(candidate, idf))
    recall = _weighted(similar[slice(None) if special else own_c].max(axis=0), _weights(reference, idf))
    both = precision + recall
    return precision, recall, 2 * precision * recall / both if both > 0 else 0.0


def _weights(text: TokenVectors, idf: Mapping[int, float] | None) -> NDArray[np.float64]:
    """Weight of each token, 0 for special ones, shape [tokens]."""
    own = (~text.special).astype(np.float64)
    if idf is None:
        return own
    weights = own * np.array([idf.get(token, idf[_UNSEEN]) for token in text.ids])
    # Where every token is in every reference, all weights are 0: they then count alike.
    return weights if weights.any() else own


def _weighted(values: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    return float(np.clip(values @ weights / weights.sum(), -1.0, 1.0))


_UNSEEN = -1


def _document_frequencies(references: Sequence[TokenVectors]) -> dict[int, float]:
    """Inverse document frequency of every token; under ``_UNSEEN`` that of a token that no reference has."""
    n = len(references)
    holding = Counter(token for reference in references for token in set(reference.ids))
    return {_UNSEEN: math.log(n + 1), **{token: math.log((n + 1) / (k + 1)) for token, k in holding.items()}}


def _rescaled(values: tuple[float, float, float], baseline: tuple[float, float, float]) -> tuple[float, float, float]:
    precision, recall, f1 = ((value - zero) / (1 - zero) for value, zero in zip(values, baseline, strict=True))
    return precision, recall, f1


@metric(
    "bert_score",
    "BERTScore",
    kinds=["freeform"],
    published="bert_score",
    short="BERTScore",
    source=lambda scorer: scorer.bert_model,
)
def _bert_scores(batch: Batch) -> Sequence[float]:
    return bert_score(batch.references, batch.answers, encoder=batch.scorer.bert_model).f1
