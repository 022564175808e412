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
    """Return corpus BLEU over n-grams of 1 to 4 characters: the "BLEU" of ClimaQA's tables.

    BLEU = BP * (p1 p2 p3 p4)^(1/4). p_n is the share of the candidates' n-grams of characters that also occur in a
    reference (each at most as often as there), counted over all items; 0 matches of n > 1 count as 0.1 (NLTK's
    smoothing method 1). BP = exp(1 - r/c) if the candidates have fewer characters c than the references r (of several
    references the nearest in length), else 1.

    The tables of the paper are means over questions: use the mean of :func:`character_bleu_each`. For one item both are
    the same.

    Returns:
        0 to 1; 0 if no character matches.

    Raises:
        InputError: The numbers of references and candidates differ, or a reference is empty.

    Notes:
        - Any two English texts share most of their letters: reference answers to different questions of the primer
          score 0.23 against each other (435 pairs, up to 0.38), and a right answer in other words may score no more.
          Do not compare it with a BLEU from elsewhere: ClimaQA's ten case-study answers have 0.25 to 0.59 here and
          0.03 to 0.15 by :func:`bleu_each`.
        - A candidate of fewer than 4 characters that equals its reference does not reach 1: it has no 4-gram, for which
          the smoothing uses 0.1 ("CO2" against "CO2" gives 0.56).
        - Case, spaces and typography count: ``CO<sub>2</sub>`` or a line break at the end change the third digit.

    References:
        Papineni et al. (2002), BLEU, ACL. Chen and Cherry (2014), WMT, smoothing 1. ClimaQA, section 3.2.1 and
        appendix A.2.3, whose figures need characters: ``corpus_bleu`` was called with strings instead of lists of
        words.
    """
    return _character_bleu(answer_pairs(references, candidates))


def character_bleu_each(references: References, candidates: Candidates) -> list[float]:
    """Return :func:`character_bleu` of each item, in order; ClimaQA's tables are the means of these."""
    return [_character_bleu([pair]) for pair in answer_pairs(references, candidates)]


def bleu(references: References, candidates: Candidates) -> float:
    """Return corpus BLEU over words, by sacreBLEU with its default settings, from 0 to 1.

    BP * (p1 p2 p3 p4)^(1/4) as in :func:`character_bleu`, with words and punctuation marks of the tokenizer ``13a``
    instead of characters. An n without matches counts as half a match, a quarter, an eighth ... (smoothing ``exp``).

    Returns:
        0 to 1, sacreBLEU's figure divided by 100.

    Raises:
        InputError: The numbers of references and candidates differ, or a reference is empty.

    Notes:
        A measure of shared wording: a right answer in other words scores near 0. It favours the model that wrote the
        references (ClimaQA, section 5). Corpus BLEU is not the mean of the items' BLEU.

    References:
        Post (2018), A Call for Clarity in Reporting BLEU Scores, WMT. Report :func:`bleu_signature` with the figure.
    """
    pairs = answer_pairs(references, candidates)
    # sacreBLEU takes one list of all first references, one of all second ones, and so on, padded with None.
    streams = [list(stream) for stream in zip_longest(*(item_references for item_references, _ in pairs))]
    return _as_share(_word_bleu().corpus_score([candidate for _, candidate in pairs], streams))


def bleu_each(references: References, candidates: Candidates) -> list[float]:
    """Return BLEU over words of each item from 0 to 1, in order.

    As in sacreBLEU's sentence BLEU, n-grams longer than the candidate are ignored (``effective_order``); otherwise no
    candidate of fewer than four words could score well.

    Raises:
        InputError: The numbers of references and candidates differ, or a reference is empty.
    """
    scorer = _word_bleu(effective_order=True)
    return [
        _as_share(scorer.sentence_score(candidate, list(item_references)))
        for item_references, candidate in answer_pairs(references, candidates)
    ]


def bleu_signature(*, each: bool = False) -> str:
    """Return sacreBLEU's signature of :func:`bleu` (or :func:`bleu_each`) with one reference per item."""
    scorer = _word_bleu(effective_order=each)
    scorer.corpus_score(["a"], [["a"]])
    return str(scorer.get_signature())


def _character_bleu(pairs: Sequence[Pair]) -> float:
    from nltk.translate.bleu_score import SmoothingFunction, corpus_bleu

    references, candidates = [list(references) for references, _ in pairs], [candidate for _, candidate in pairs]
    # NLTK expects lists of words; iterating over a string gives characters.
    return float(corpus_bleu(references, candidates, smoothing_function=SmoothingFunction().method1))


def _as_share(score: Any) -> float:
    """Convert sacreBLEU's score from 0..100 to 0..1; rounding above 100 gives 1."""
    return min(1.0, float(score.score) / 100)


def _word_bleu(*, effective_order: bool = False) -> Any:
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
"""Maximum number of tokens of a text, for tokenizers without a limit (they name an absurdly large one)."""
_LEADING_SPACE_MODELS = ("roberta", "gpt2")
"""Model types that get a leading space, without which their tokenizers treat the first word unlike the others.

BERTScore's authors add the space; under transformers 5 their library no longer does.
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
"""Layers that BERTScore's authors chose by correlation with human judgement of translations (WMT16)."""


@dataclass(frozen=True, slots=True)
class TokenVectors:
    """Tokens of one text with their vectors."""

    ids: tuple[int, ...]
    """Ids in the vocabulary, including special tokens."""
    special: NDArray[np.bool_]
    """Whether each token is special, shape [tokens]."""
    vectors: NDArray[np.float32]
    """Unit vectors, shape [tokens, width]."""

    @property
    def empty(self) -> bool:
        """True if all tokens are special."""
        return bool(self.special.all())


class TokenEncoder:
    """A transformers encoder that returns a vector for every token, loaded when first used.

    It runs in float32 on the GPU if there is one, else on the CPU. Texts are truncated to the model's length.
    """

    def __init__(self, name: str, layer: int | None = None, *, batch_tokens: int = _TOKEN_BUDGET) -> None:
        """Initialise without loading. Names and layers are those of :func:`bert_score`.

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
        """Number of the layer whose hidden states are used.

        Raises:
            InputError: The model has no such layer.
        """
        deepest = int(self._model.config.num_hidden_layers)
        layer = self._layer if self._layer is not None else PUBLISHED_LAYERS.get(self.name.removeprefix(_PREFIX))
        if layer is None:
            return deepest
        if not 1 <= layer <= deepest:
            raise InputError(f"{self.name} has the layers 1 to {deepest}, not {layer}.")
        return layer

    def encode(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Return the token vectors of each text, in order; up to rounding, texts do not affect each other."""
        import torch

        config, tokenizer = self._model.config, self._tokenizer
        # RoBERTa's positions start after the padding's.
        n_positions = int(getattr(config, "max_position_embeddings", _MAX_TOKENS)) - 2 * (
            config.model_type == "roberta"
        )
        max_length = min(tokenizer.model_max_length, _MAX_TOKENS, n_positions)
        token_ids: list[list[int]] = []
        for text in texts:
            plain = text.strip()
            if plain and config.model_type in _LEADING_SPACE_MODELS:
                plain = f" {plain}"
            token_ids.append(tokenizer(plain, truncation=True, max_length=max_length)["input_ids"])
        encoded: list[TokenVectors | None] = [None] * len(token_ids)
        for batch in token_batches([len(ids) for ids in token_ids], self._batch_tokens):
            longest = max(len(token_ids[index]) for index in batch)
            ids = torch.full((len(batch), longest), tokenizer.pad_token_id or 0)
            mask = torch.zeros(len(batch), longest, dtype=torch.long)
            for row, index in enumerate(batch):
                ids[row, : len(token_ids[index])] = torch.tensor(token_ids[index])
                mask[row, : len(token_ids[index])] = 1
            with torch.inference_mode():
                device = self._model.device
                out = self._model(ids.to(device), attention_mask=mask.to(device), output_hidden_states=True)
                states: NDArray[np.float32] = out.hidden_states[self.layer].float().cpu().numpy()
            for row, index in enumerate(batch):
                text_ids = token_ids[index]
                # The tokenizer marks unknown words as special, but they are words.
                special = np.isin(text_ids, tokenizer.all_special_ids)
                special &= np.asarray(text_ids) != tokenizer.unk_token_id
                vectors = states[row, : len(text_ids)]
                vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
                encoded[index] = TokenVectors(tuple(text_ids), special, vectors)
        return [text for text in encoded if text is not None]

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
        bundled = self.name == BUNDLED_ENCODER
        folder = bundled_path("minilm") if bundled else Path(self.name.removeprefix(_PREFIX)).expanduser()
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
    """Return the encoder of a name and layer, loaded once per process."""
    return TokenEncoder(name, layer)


@dataclass(frozen=True, slots=True)
class BertScores:
    """Precision, recall and F1 of each item, in order."""

    precision: tuple[float, ...]
    """Similarity of the candidate's tokens to their best match in the reference."""
    recall: tuple[float, ...]
    """Similarity of the reference's tokens to their best match in the candidate."""
    f1: tuple[float, ...]
    """Harmonic mean of precision and recall; ClimaQA's BERTScore."""
    encoder: str
    """Name of the model; scores of different models are not comparable."""
    layer: int
    """Number of the layer of hidden states, counted from 1."""


def bert_score(
    references: References,
    candidates: Candidates,
    encoder: TokenEncoder | str = BUNDLED_ENCODER,
    *,
    layer: int | None = None,
    match_special_tokens: bool = True,
) -> BertScores:
    """Return precision, recall and F1 of greedily matched tokens.

    With unit vectors r of the reference's tokens and c of the candidate's, P = mean over c of max over r of c.r, R =
    mean over r of max over c of c.r, F1 = 2 P R / (P + R). Of several references, the one with the highest F1 counts.

    Args:
        references: One string per item, or several; two single strings are one item.
        candidates: One string per item.
        encoder: ``local:minilm`` (bundled), or ``local:`` and a transformers folder or hub id; ``local:roberta-large``
            is the default of BERTScore's authors and the model of ClimaQA.
        layer: Layer of hidden states; by default the authors' choice for that model, else the last.
        match_special_tokens: True lets tokens match the other text's start and end tokens, as in the authors' code;
            these have no weight of their own. False excludes them, as in torchmetrics.

    Returns:
        Precision, recall and F1 per item: -1 to 1, in practice 0 to 1. An empty candidate has 0 in all three.

    Raises:
        InputError: The numbers of references and candidates differ, a reference is empty, or the encoder's name or
            layer is wrong.
        ModelError: The encoder cannot be loaded.

    Notes:
        - The range that matters is small and depends on the model: in ClimaQA's case study all answers, right, wrong
          and irrelevant, lie between 0.861 and 0.910 with ``roberta-large``. Compare differences, and name the model.
        - Statements that contradict each other in one word have nearly the same score.
        - In ClimaQA it favoured the model that wrote the references (section 5).
        - torchmetrics 1.9.0 sorts texts by length without sorting the results back, so that candidates are compared
        with
          other items' references; an empty candidate gives NaN. Item by item the two agree (see the tests).

    References:
        Zhang et al. (2020), BERTScore, ICLR, section 3 (equations for P, R and F1).
    """
    pairs = answer_pairs(references, candidates)
    model = token_encoder(encoder, layer) if isinstance(encoder, str) else encoder
    texts = list(dict.fromkeys(text for item_references, candidate in pairs for text in (*item_references, candidate)))
    encoded = dict(zip(texts, model.encode(texts), strict=True))
    results = [
        max(
            (
                _match_tokens(encoded[reference], encoded[candidate], match_special_tokens)
                for reference in item_references
            ),
            key=lambda values: values[2],
        )
        for item_references, candidate in pairs
    ]
    precision, recall, f1 = zip(*results, strict=True)
    return BertScores(precision, recall, f1, model.name, model.layer)


def _match_tokens(reference: TokenVectors, candidate: TokenVectors, match_special: bool) -> tuple[float, float, float]:
    if reference.empty or candidate.empty:
        return 0.0, 0.0, 0.0
    similarities = candidate.vectors.astype(np.float64) @ reference.vectors.T.astype(np.float64)
    candidate_words, reference_words = ~candidate.special, ~reference.special

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
def _bert_scores(batch: Batch) -> Sequence[float]:
    return bert_score(batch.references, batch.answers, encoder=batch.scorer.bert_model).f1
