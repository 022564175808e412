"""Overlap of an answer's tokens with those of a reference: BLEU by n-grams, BERTScore by vectors.

BLEU is implemented as in ClimaQA (over characters) and as usual (over words). BERTScore measures how well the tokens of
two texts match in the hidden states of an encoder.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError, MissingExtraError, ModelError
from climassay.metrics.registry import Batch, Candidates, Pair, References, answer_pairs, metric
from climassay.models.bundled import bundled_path, refuse_kernels
from climassay.models.encoders import BUNDLED_ENCODER, token_batches


def character_bleu(references: References, candidates: Candidates) -> float:
    """Compute corpus BLEU over n-grams of 1 to 4 characters, the "BLEU" of ClimaQA's tables.

    BLEU = BP * (p1 p2 p3 p4)^(1/4). The precision p_n is the proportion of character n-grams of the candidates that
    also occur in a reference, over all items. An n-gram counts at most as often as it occurs in the reference. If no
    n-gram with n > 1 matches, the number of matches is set to 0.1 (NLTK's smoothing method 1). BP = exp(1 - r/c) if the
    number of characters of the candidates, c, is less than that of the references, r, else 1. Of several references,
    the one nearest in length counts.

    The paper's tables show means over questions, which are the means of :func:`character_bleu_each`.

    Returns:
        Score from 0 to 1; 0 if no character matches.

    Raises:
        InputError: The numbers of references and candidates differ, or a reference is empty.

    Notes:
        - Any two English texts share most of their letters. Reference answers to different questions of the primer
          score 0.23 against each other on average (435 pairs, at most 0.38), and a correct answer in other words may
          not score higher. Do not compare the score with BLEU from elsewhere: the ten answers of ClimaQA's case study
          have 0.25 to 0.59 here, and 0.03 to 0.15 by :func:`bleu_each`.
        - A candidate of fewer than 4 characters does not reach 1 even if it equals its reference, because it has no
          4-gram, for which the smoothing uses 0.1 ("CO2" against "CO2" gives 0.56).
        - Case, spaces and typography count: ``CO<sub>2</sub>`` or a final line break change the third digit.

    References:
        Papineni et al. (2002), BLEU, ACL. Chen and Cherry (2014), WMT, smoothing 1. ClimaQA, section 3.2.1 and
        appendix A.2.3; its scores are only reproduced with characters, as if ``corpus_bleu`` had been called with
        strings instead of lists of words.
    """
    return _compute_character_bleu(answer_pairs(references, candidates))


def character_bleu_each(references: References, candidates: Candidates) -> list[float]:
    """Return the :func:`character_bleu` of each item, in order; ClimaQA's tables show the means."""
    return [_compute_character_bleu([pair]) for pair in answer_pairs(references, candidates)]


def bleu(references: References, candidates: Candidates) -> float:
    """Compute corpus BLEU over words with sacreBLEU's default settings.

    The formula is that of :func:`character_bleu`, with the words and punctuation marks of the tokenizer ``13a`` instead
    of characters. Orders n without matches count as half a match, a quarter of a match and so on (smoothing ``exp``).

    Returns:
        Score from 0 to 1: sacreBLEU's score divided by 100.

    Raises:
        InputError: The numbers of references and candidates differ, or a reference is empty.

    Notes:
        BLEU measures how much wording candidate and reference share: a correct answer in other words scores near 0. It
        favours the model that wrote the references (ClimaQA, section 5). Corpus BLEU is not the mean of the items' BLEU
        scores.

    References:
        Post (2018), A Call for Clarity in Reporting BLEU Scores, WMT. Report :func:`bleu_signature` with the score.
    """
    pairs = answer_pairs(references, candidates)
    # sacreBLEU takes one list of all first references, one of all second ones, and so on, padded with None.
    reference_streams = [list(stream) for stream in zip_longest(*(item_references for item_references, _ in pairs))]
    return _to_proportion(_make_bleu().corpus_score([candidate for _, candidate in pairs], reference_streams))


def bleu_each(references: References, candidates: Candidates) -> list[float]:
    """Compute BLEU over words for each item, from 0 to 1, in order.

    As in sacreBLEU's sentence BLEU, n-grams longer than the candidate are ignored (``effective_order``). Otherwise, a
    candidate of fewer than four words could not score well.

    Raises:
        InputError: The numbers of references and candidates differ, or a reference is empty.
    """
    scorer = _make_bleu(effective_order=True)
    return [
        _to_proportion(scorer.sentence_score(candidate, list(item_references)))
        for item_references, candidate in answer_pairs(references, candidates)
    ]


def bleu_signature(*, each: bool = False) -> str:
    """Return sacreBLEU's signature of :func:`bleu`, or of :func:`bleu_each` if ``each``, for one reference per item."""
    scorer = _make_bleu(effective_order=each)
    scorer.corpus_score(["a"], [["a"]])
    return str(scorer.get_signature())


def _compute_character_bleu(pairs: Sequence[Pair]) -> float:
    from nltk.translate.bleu_score import SmoothingFunction, corpus_bleu

    references, candidates = [list(references) for references, _ in pairs], [candidate for _, candidate in pairs]
    # NLTK expects lists of words; iterating over a string gives characters.
    return float(corpus_bleu(references, candidates, smoothing_function=SmoothingFunction().method1))


def _to_proportion(score: Any) -> float:
    """Convert sacreBLEU's score from 0..100 to 0..1; a score that rounding makes larger than 100 gives 1."""
    return min(1.0, float(score.score) / 100)


def _make_bleu(*, effective_order: bool = False) -> Any:
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(effective_order=effective_order)


metric(
    "bleu_char",
    "BLEU (characters)",
    published="bleu",
    short="BLEU",
    source=lambda _: "NLTK corpus_bleu over characters, smoothing 1",
    pooled=character_bleu,
)(lambda batch: character_bleu_each(batch.references, batch.answers))
metric(
    "bleu",
    "BLEU (words)",
    source=lambda _: f"sacreBLEU {bleu_signature(each=True)}",
    pooled=bleu,
)(lambda batch: bleu_each(batch.references, batch.answers))


_PREFIX = "local:"
_TOKEN_BUDGET = 8192
"""Maximum number of tokens in a batch, padding included."""
_MAX_TOKENS = 512
"""Maximum number of tokens of a text for tokenizers without a limit, whose ``model_max_length`` is huge."""
_LEADING_SPACE_MODELS = ("roberta", "gpt2")
"""Model types whose texts get a leading space, because their tokenizers treat a word after a space differently.

The code of BERTScore's authors adds this space, too, but no longer does so under transformers 5.
"""

PUBLISHED_LAYERS = {
    "bert-base-uncased": 9,
    "bert-large-uncased": 18,
    "bert-base-multilingual-cased": 9,
    "roberta-base": 10,
    "roberta-large": 17,
    "roberta-large-mnli": 19,
    "distilbert-base-uncased": 5,
    "distilroberta-base": 5,
    "allenai/scibert_scivocab_uncased": 8,
    "microsoft/deberta-xlarge-mnli": 40,
}
"""Layer that BERTScore's authors chose by model, for its correlation with human ratings of translations (WMT16)."""


@dataclass(frozen=True, slots=True)
class TokenVectors:
    """Tokens of a text with their embeddings."""

    ids: tuple[int, ...]
    """Ids of the tokens in the vocabulary, including special tokens."""
    is_special: NDArray[np.bool_]
    """Whether each token is special, shape [tokens]."""
    vectors: NDArray[np.float32]
    """Unit vectors, shape [tokens, width]."""

    @property
    def is_empty(self) -> bool:
        """Whether all tokens are special."""
        return bool(self.is_special.all())


class TokenEncoder:
    """Transformers encoder that computes an embedding for every token. The model is loaded when first used.

    It runs in float32, on a GPU if there is one, else on the CPU. Texts are truncated to the model's maximum length.
    """

    def __init__(self, name: str, layer: int | None = None, *, batch_tokens: int = _TOKEN_BUDGET) -> None:
        """Initialise the encoder without loading it; ``name`` and ``layer`` are as in :func:`bert_score`.

        Raises:
            InputError: The name does not start with ``local:``.
        """
        if not name.startswith(_PREFIX) or name == _PREFIX:
            raise InputError(f"{name!r} names no encoder: write local:minilm, or local: and a folder or a hub id.")
        self.name = name
        self._layer = layer
        self._batch_tokens = batch_tokens

    @cached_property
    def layer(self) -> int:
        """Number of the layer whose hidden states are used as embeddings, counted from 1.

        Raises:
            InputError: The model lacks the layer.
        """
        n_layers = int(self._model.config.num_hidden_layers)
        layer = self._layer if self._layer is not None else PUBLISHED_LAYERS.get(self.name.removeprefix(_PREFIX))
        if layer is None:
            return n_layers
        if not 1 <= layer <= n_layers:
            raise InputError(f"{self.name} has the layers 1 to {n_layers}, not {layer}.")
        return layer

    def encode(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Compute the token embeddings of each text, in order; except for rounding, texts do not affect each other."""
        import torch

        config, tokenizer = self._model.config, self._tokenizer
        # RoBERTa's positions start after the padding's.
        n_positions = int(getattr(config, "max_position_embeddings", _MAX_TOKENS)) - 2 * (
            config.model_type == "roberta"
        )
        max_length = min(tokenizer.model_max_length, _MAX_TOKENS, n_positions)
        token_ids: list[list[int]] = []
        for text in texts:
            stripped_text = text.strip()
            if stripped_text and config.model_type in _LEADING_SPACE_MODELS:
                stripped_text = f" {stripped_text}"
            token_ids.append(tokenizer(stripped_text, truncation=True, max_length=max_length)["input_ids"])
        token_vectors: list[TokenVectors | None] = [None] * len(token_ids)
        for batch in token_batches([len(ids) for ids in token_ids], self._batch_tokens):
            max_n_tokens = max(len(token_ids[index]) for index in batch)
            ids = torch.full((len(batch), max_n_tokens), tokenizer.pad_token_id or 0)
            mask = torch.zeros(len(batch), max_n_tokens, dtype=torch.long)
            for row, index in enumerate(batch):
                ids[row, : len(token_ids[index])] = torch.tensor(token_ids[index])
                mask[row, : len(token_ids[index])] = 1
            with torch.inference_mode():
                device = self._model.device
                outputs = self._model(ids.to(device), attention_mask=mask.to(device), output_hidden_states=True)
                states: NDArray[np.float32] = outputs.hidden_states[self.layer].float().cpu().numpy()
            for row, index in enumerate(batch):
                text_ids = token_ids[index]
                # The tokenizer marks unknown words as special, but they are words.
                is_special = np.isin(text_ids, tokenizer.all_special_ids)
                is_special &= np.asarray(text_ids) != tokenizer.unk_token_id
                vectors = states[row, : len(text_ids)]
                vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
                token_vectors[index] = TokenVectors(tuple(text_ids), is_special, vectors)
        return [text for text in token_vectors if text is not None]

    @cached_property
    def _tokenizer(self) -> Any:
        return self._load_pretrained("AutoTokenizer")

    @cached_property
    def _model(self) -> Any:
        import torch

        model = self._load_pretrained("AutoModel", dtype=torch.float32, use_safetensors=True)
        return model.to("cuda" if torch.cuda.is_available() else "cpu").eval()

    def _load_pretrained(self, kind: str, **settings: Any) -> Any:
        try:
            import transformers
            from transformers.utils import logging
        except ImportError as error:
            raise MissingExtraError(
                f"BERTScore with {self.name} needs torch and transformers: run `pip install 'climassay[local]'`."
            ) from error
        logging.disable_progress_bar()
        is_bundled = self.name == BUNDLED_ENCODER
        folder = bundled_path("minilm") if is_bundled else Path(self.name.removeprefix(_PREFIX)).expanduser()
        refuse_kernels(folder)
        try:
            # By default transformers would ask on the terminal whether to run the code of a model.
            return getattr(transformers, kind).from_pretrained(str(folder), trust_remote_code=False, **settings)
        except Exception as error:
            # The exceptions of transformers for a missing or damaged folder have no common base class.
            raise ModelError(
                f"The encoder {self.name} is neither a transformers folder with safetensors weights here "
                f"nor such a model on the hub ({type(error).__name__}): check its name and the connection."
            ) from error


@cache
def token_encoder(name: str, layer: int | None = None) -> TokenEncoder:
    """Return the encoder with a name and layer. The encoder is created only once per process."""
    return TokenEncoder(name, layer)


@dataclass(frozen=True, slots=True)
class BertScores:
    """BERTScore's precision, recall and F1 of each item, in order."""

    precision: tuple[float, ...]
    """Mean similarity of the candidate's tokens to their best match in the reference, by item."""
    recall: tuple[float, ...]
    """Mean similarity of the reference's tokens to their best match in the candidate, by item."""
    f1: tuple[float, ...]
    """Harmonic mean of precision and recall by item, which ClimaQA reports as BERTScore."""
    encoder: str
    """Name of the model; scores of different models cannot be compared."""
    layer: int
    """Number of the layer whose hidden states are used, counted from 1."""


def bert_score(
    references: References,
    candidates: Candidates,
    encoder: TokenEncoder | str = BUNDLED_ENCODER,
    *,
    layer: int | None = None,
    match_special_tokens: bool = True,
) -> BertScores:
    """Compute BERTScore: precision, recall and F1 of greedily matched tokens.

    Let r and c be the unit vectors of the reference's and the candidate's tokens. Then P is the mean over c of the
    maximum over r of c.r, R is the mean over r of the maximum over c of c.r, and F1 = 2 P R / (P + R). Of several
    references, the one with the highest F1 counts.

    Args:
        references: One or several strings per item; a single string is the reference of a single item.
        candidates: One string per item; a single string is a single item.
        encoder: ``local:minilm`` (bundled), or ``local:`` followed by a transformers folder or hub id;
            ``local:roberta-large`` is the default of BERTScore's authors and the model of ClimaQA.
        layer: Layer whose hidden states are used; by default the authors' choice for the model, else the last layer.
        match_special_tokens: Whether tokens may match the other text's start and end tokens, as in the authors' code;
            these tokens never count themselves. torchmetrics excludes them.

    Returns:
        Precision, recall and F1 per item, from -1 to 1, in practice from 0 to 1. An empty candidate has 0 in all three.

    Raises:
        InputError: The numbers of references and candidates differ, a reference is empty, or the name or layer of the
            encoder is invalid.
        ModelError: The encoder cannot be loaded.

    Notes:
        - Scores vary little, and their range depends on the model: in ClimaQA's case study, all answers, whether
          correct, wrong or irrelevant, have 0.861 to 0.910 with ``roberta-large``. Compare differences, and name the
          model.
        - Statements that contradict each other in a single word have nearly the same score.
        - In ClimaQA, the metric favoured the model that wrote the references (section 5).
        - torchmetrics 1.9.0 sorts texts by length without restoring their order, so that candidates are compared with
          the references of other items, and an empty candidate gives NaN. For single items, its scores agree with
          these.

    References:
        Zhang et al. (2020), BERTScore, ICLR, section 3 (equations for P, R and F1).
    """
    pairs = answer_pairs(references, candidates)
    model = token_encoder(encoder, layer) if isinstance(encoder, str) else encoder
    texts = list(dict.fromkeys(text for item_references, candidate in pairs for text in (*item_references, candidate)))
    vectors_by_text = dict(zip(texts, model.encode(texts), strict=True))
    results = [
        max(
            (
                _match_tokens(vectors_by_text[reference], vectors_by_text[candidate], match_special_tokens)
                for reference in item_references
            ),
            key=lambda values: values[2],
        )
        for item_references, candidate in pairs
    ]
    precision, recall, f1 = zip(*results, strict=True)
    return BertScores(precision, recall, f1, model.name, model.layer)


def _match_tokens(reference: TokenVectors, candidate: TokenVectors, match_special: bool) -> tuple[float, float, float]:
    if reference.is_empty or candidate.is_empty:
        return 0.0, 0.0, 0.0
    similarities = candidate.vectors.astype(np.float64) @ reference.vectors.T.astype(np.float64)
    candidate_words, reference_words = ~candidate.is_special, ~reference.is_special

    def mean(values: NDArray[np.float64], is_word: NDArray[np.bool_]) -> float:
        return float(np.clip(values[is_word].mean(), -1.0, 1.0))

    precision = mean(similarities[:, slice(None) if match_special else reference_words].max(axis=1), candidate_words)
    recall = mean(similarities[slice(None) if match_special else candidate_words].max(axis=0), reference_words)
    total = precision + recall
    return precision, recall, 2 * precision * recall / total if total > 0 else 0.0


@metric(
    "bert_score",
    "BERTScore",
    published="bert_score",
    short="BERTScore",
    source=lambda scorer: scorer.bert_model,
)
def _score_bert(batch: Batch) -> Sequence[float]:
    return bert_score(batch.references, batch.answers, encoder=batch.scorer.bert_model).f1
