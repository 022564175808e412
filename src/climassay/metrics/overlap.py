"""How far the tokens of an answer match those of a reference: BLEU by the tokens, BERTScore by their vectors.

BLEU is there as ClimaQA computes it (over characters) and as everybody else does (over words). BERTScore says how well
the tokens of two texts match each other in the states of an encoder.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError, MissingExtraError, ModelError
from climassay.metrics.registry import Batch, Candidates, Pair, References, answer_pairs, metric
from climassay.models.bundled import bundled_path, refuse_kernels
from climassay.models.encoders import BUNDLED_ENCODER, token_batches


def character_bleu(references: References, candidates: Candidates) -> float:
    """BLEU of all items together, whose n-grams are runs of 1 to 4 characters: the "BLEU" of ClimaQA's tables.

    BLEU = BP * (p1 p2 p3 p4)^(1/4). p_n is the share of the candidates' runs of n characters that also occur in a
    reference (each as often as there at most), counted over all items; 0 matches of n > 1 count as 0.1 (NLTK's
    smoothing method 1). BP = exp(1 - r/c) where the candidates have c characters in all, fewer than the references' r
    (of several references the nearest in length), else 1.

    The tables of the paper are means over questions: take the mean of :func:`character_bleu_each`. For one item both
    are the same.

    Returns:
        0 to 1; 0 where no character matches.

    Raises:
        InputError: The numbers differ, or a reference is empty.

    Notes:
        - Any two English texts share most of their letters: reference answers to different questions of the primer
          score 0.23 against each other (435 pairs, up to 0.38), and a right answer in other words may score no more.
          Never compare it with a BLEU from elsewhere: ClimaQA's ten case-study answers have 0.25 to 0.59 here and
          0.03 to 0.15 by :func:`bleu_each`.
        - A candidate of fewer than 4 characters that equals its reference does not reach 1: it has no run of 4, and
          the smoothing puts 0.1 in its place ("CO2" against "CO2" gives 0.56).
        - Case, spaces and typography count: ``CO<sub>2</sub>`` or a line break at the end change the third digit.

    References:
        Papineni et al. (2002), BLEU, ACL. Chen and Cherry (2014), WMT, smoothing 1. ClimaQA, section 3.2.1 and
        appendix A.2.3, whose figures need characters: ``corpus_bleu`` was handed strings where it expects lists of
        words.
    """
    return _character_bleu(answer_pairs(references, candidates))


def character_bleu_each(references: References, candidates: Candidates) -> list[float]:
    """:func:`character_bleu` of every item by itself, in order; ClimaQA's tables are the means of these."""
    return [_character_bleu([pair]) for pair in answer_pairs(references, candidates)]


def bleu(references: References, candidates: Candidates) -> float:
    """BLEU of all items together over words, by sacreBLEU with its default settings, on 0 to 1.

    BP * (p1 p2 p3 p4)^(1/4) as in :func:`character_bleu`, with words and punctuation marks of the tokenizer ``13a``
    for characters; sums of matches are taken over all items; an n without matches counts as half a match, a quarter,
    an eighth ... (smoothing ``exp``).

    Returns:
        0 to 1, sacreBLEU's figure divided by 100.

    Raises:
        InputError: The numbers differ, or a reference is empty.

    Notes:
        A measure of shared wording: a right answer in other words scores near 0. It favours the model that wrote the
        references (ClimaQA, section 5). Corpus BLEU is not the mean of the items' BLEU.

    References:
        Post (2018), A Call for Clarity in Reporting BLEU Scores, WMT. Name :func:`bleu_signature` beside the figure.
    """
    pairs = answer_pairs(references, candidates)
    most = max(len(several) for several, _ in pairs)
    # sacreBLEU takes one list for all first references, one for all second ones, and so on; None where there is none.
    streams = [[several[n] if n < len(several) else None for several, _ in pairs] for n in range(most)]
    return _share(_word_bleu().corpus_score([candidate for _, candidate in pairs], streams))


def bleu_each(references: References, candidates: Candidates) -> list[float]:
    """BLEU over words of every item by itself, on 0 to 1, in order.

    As sacreBLEU's sentence BLEU: n-grams longer than the candidate are left out (``effective_order``), or no candidate
    of fewer than four words could score well.

    Raises:
        InputError: The numbers differ, or a reference is empty.
    """
    scorer = _word_bleu(effective_order=True)
    return [
        _share(scorer.sentence_score(candidate, list(several)))
        for several, candidate in answer_pairs(references, candidates)
    ]


def bleu_signature(*, each: bool = False) -> str:
    """SacreBLEU's signature of :func:`bleu` (or :func:`bleu_each`) with one reference per item, to be reported."""
    scorer = _word_bleu(effective_order=each)
    scorer.corpus_score(["a"], [["a"]])
    return str(scorer.get_signature())


def _character_bleu(pairs: Sequence[Pair]) -> float:
    from nltk.translate.bleu_score import SmoothingFunction, corpus_bleu

    references, candidates = [list(several) for several, _ in pairs], [candidate for _, candidate in pairs]
    # NLTK iterates over what it takes for lists of words; of a string, that gives characters.
    return float(corpus_bleu(references, candidates, smoothing_function=SmoothingFunction().method1))


def _share(score: Any) -> float:
    """From sacreBLEU's 0 to 100, which rounding may exceed, to 0 to 1."""
    return min(1.0, float(score.score) / 100)


def _word_bleu(*, effective_order: bool = False) -> Any:
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(effective_order=effective_order)


metric(
    "bleu_char",
    "BLEU (characters)",
    kinds=["freeform"],
    published="bleu",
    short="BLEU",
    source=lambda _: "NLTK corpus_bleu over characters, smoothing 1",
    pooled=character_bleu,
)(lambda batch: character_bleu_each(batch.references, batch.answers))
metric(
    "bleu",
    "BLEU (words)",
    kinds=["freeform"],
    source=lambda _: f"sacreBLEU {bleu_signature(each=True)}",
    pooled=bleu,
)(lambda batch: bleu_each(batch.references, batch.answers))


_PREFIX = "local:"
_UNSEEN = -1
"""In place of a token that no reference has."""
_TOKEN_BUDGET = 8192
"""Padded tokens in a batch."""
_LONGEST = 512
"""Tokens of a text where a tokenizer names no limit of its own (it then names an absurdly large one)."""
_SPACE_FIRST = ("roberta", "gpt2")
"""Kinds of models whose tokenizers read the first word of a text otherwise than the others, unless a space leads.

BERTScore's authors put one there; under transformers 5 their library does not any more.
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
"""Layers that BERTScore's authors chose for models, by correlation with human judgement of translations (WMT16)."""


@dataclass(frozen=True, slots=True)
class TokenVectors:
    """The tokens of one text."""

    ids: tuple[int, ...]
    """Ids in the vocabulary, with the special tokens that the model wants."""
    special: NDArray[np.bool_]
    """Whether each token is special, shape [tokens]."""
    vectors: NDArray[np.float32]
    """Unit vectors, shape [tokens, width]."""

    @property
    def empty(self) -> bool:
        """Whether there is no token but special ones."""
        return bool(self.special.all())


class TokenEncoder:
    """A transformers encoder that gives a vector for every token; loaded when it is first used.

    It runs in float32 on the processor, or on the GPU where there is one. Texts beyond the model's length are cut.
    """

    def __init__(self, name: str, layer: int | None = None, *, batch_tokens: int = _TOKEN_BUDGET) -> None:
        """Prepare; nothing is loaded yet. Names and layers are those of :func:`bert_score`.

        Raises:
            InputError: The name has no ``local:``.
        """
        if not name.startswith(_PREFIX) or name == _PREFIX:
            raise InputError(f"{name!r} names no encoder: write local:minilm, or local: and a folder or a hub id.")
        self.name = name
        self._layer = layer
        self._batch_tokens = batch_tokens

    @cached_property
    def layer(self) -> int:
        """Number of the layer whose states are taken.

        Raises:
            InputError: The model has no such layer.
        """
        deepest = int(self._model.config.num_hidden_layers)
        chosen = self._layer if self._layer is not None else PUBLISHED_LAYERS.get(self.name.removeprefix(_PREFIX))
        if chosen is None:
            return deepest
        if not 1 <= chosen <= deepest:
            raise InputError(f"{self.name} has the layers 1 to {deepest}, not {chosen}.")
        return chosen

    def encode(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Token vectors of each text, in order; a text's vectors do not depend on the others beyond rounding."""
        import torch

        config, tokenizer = self._model.config, self._tokenizer
        # RoBERTa's positions begin after the padding's.
        places = int(getattr(config, "max_position_embeddings", _LONGEST)) - 2 * (config.model_type == "roberta")
        at_most = min(tokenizer.model_max_length, _LONGEST, places)
        rows: list[list[int]] = []
        for text in texts:
            plain = text.strip()
            if plain and config.model_type in _SPACE_FIRST:
                plain = f" {plain}"
            rows.append(tokenizer(plain, truncation=True, max_length=at_most)["input_ids"])
        encoded: list[TokenVectors | None] = [None] * len(rows)
        for batch in token_batches([len(row) for row in rows], self._batch_tokens):
            longest = max(len(rows[place]) for place in batch)
            ids = torch.full((len(batch), longest), tokenizer.pad_token_id or 0)
            mask = torch.zeros(len(batch), longest, dtype=torch.long)
            for line, place in enumerate(batch):
                ids[line, : len(rows[place])] = torch.tensor(rows[place])
                mask[line, : len(rows[place])] = 1
            with torch.inference_mode():
                device = self._model.device
                out = self._model(ids.to(device), attention_mask=mask.to(device), output_hidden_states=True)
                states: NDArray[np.float32] = out.hidden_states[self.layer].float().cpu().numpy()
            for line, place in enumerate(batch):
                own = rows[place]
                # A word that the vocabulary does not know is marked special by the tokenizer, but it is a word.
                special = np.isin(own, tokenizer.all_special_ids) & (np.asarray(own) != tokenizer.unk_token_id)
                vectors = states[line, : len(own)]
                vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
                encoded[place] = TokenVectors(tuple(own), special, vectors)
        return [one for one in encoded if one is not None]

    @cached_property
    def _tokenizer(self) -> Any:
        return self._load("AutoTokenizer")

    @cached_property
    def _model(self) -> Any:
        import torch

        model = self._load("AutoModel", dtype=torch.float32, use_safetensors=True)
        return model.to("cuda" if torch.cuda.is_available() else "cpu").eval()

    def _load(self, kind: str, **settings: Any) -> Any:
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
            # Without a word on it, transformers would ask on the terminal whether to run the code of a model.
            return getattr(transformers, kind).from_pretrained(str(folder), trust_remote_code=False, **settings)
        except Exception as error:
            # What transformers raises for a folder that is not one, or is damaged, belongs to no one family.
            raise ModelError(
                f"The encoder {self.name} is neither a transformers folder with safetensors weights here "
                f"nor such a model on the hub ({type(error).__name__}): check its name and the connection."
            ) from error


@cache
def token_encoder(name: str, layer: int | None = None) -> TokenEncoder:
    """The encoder of that name and layer, loaded once a process."""
    return TokenEncoder(name, layer)


@dataclass(frozen=True, slots=True)
class BertScores:
    """Precision, recall and F1 of every item, in order."""

    precision: tuple[float, ...]
    """How well the candidate's tokens are found in the reference."""
    recall: tuple[float, ...]
    """How well the reference's tokens are found in the candidate."""
    f1: tuple[float, ...]
    """Harmonic mean of precision and recall; what ClimaQA reports as BERTScore."""
    encoder: str
    """Name of the model; figures of different models cannot be compared."""
    layer: int
    """Layer of its states, counted from 1."""
    idf: bool
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
        references: One string per item, or several; two single strings are one item.
        candidates: One string per item.
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
        raise InputError(f"A baseline must be below 1, not {max(baseline)}.")
    pairs = answer_pairs(references, candidates)
    model = token_encoder(encoder, layer) if isinstance(encoder, str) else encoder
    texts = list(dict.fromkeys(text for several, candidate in pairs for text in (*several, candidate)))
    encoded = dict(zip(texts, model.encode(texts), strict=True))
    weights: dict[int, float] | None = None
    if idf:
        given = [encoded[one] for several, _ in pairs for one in several]
        n, holding = len(given), Counter(token for one in given for token in set(one.ids))
        weights = {token: math.log((n + 1) / (k + 1)) for token, k in holding.items()} | {_UNSEEN: math.log(n + 1)}
    results = [
        max(
            (_match(encoded[one], encoded[candidate], weights, match_special_tokens) for one in several),
            key=lambda values: values[2],
        )
        for several, candidate in pairs
    ]
    if baseline is not None:
        zeros = np.array(baseline)
        results = [tuple(row) for row in ((np.array(results) - zeros) / (1 - zeros)).tolist()]
    precision, recall, f1 = zip(*results, strict=True)
    return BertScores(precision, recall, f1, model.name, model.layer, idf, baseline)


def _match(
    reference: TokenVectors, candidate: TokenVectors, idf: Mapping[int, float] | None, special: bool
) -> tuple[float, float, float]:
    """Precision, recall and F1 of one pair."""
    if reference.empty or candidate.empty:
        return 0.0, 0.0, 0.0
    similar = candidate.vectors.astype(np.float64) @ reference.vectors.T.astype(np.float64)
    own_c, own_r = ~candidate.special, ~reference.special

    def mean(values: NDArray[np.float64], text: TokenVectors) -> float:
        """Mean over the tokens that are not special, rare ones weighing more where idf is given."""
        own = (~text.special).astype(np.float64)
        weights = own
        if idf is not None:
            weights = own * np.array([idf.get(token, idf[_UNSEEN]) for token in text.ids])
            # Where every token is in every reference, all weights are 0: they then count alike.
            weights = weights if weights.any() else own
        return float(np.clip(values @ weights / weights.sum(), -1.0, 1.0))

    precision = mean(similar[:, slice(None) if special else own_r].max(axis=1), candidate)
    recall = mean(similar[slice(None) if special else own_c].max(axis=0), reference)
    both = precision + recall
    return precision, recall, 2 * precision * recall / both if both > 0 else 0.0


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
