"""Entailment scorers: does a passage confirm a statement, contradict it or leave it open?

A scorer is a prompted language model (``prompted:MODEL``, ``supports:MODEL``) or a cross-encoder trained on inference
data (``nli:MODEL``). climassay includes none and has no default: small ones are no better than a constant answer
(docs/results/entailment.md). :mod:`climassay.metrics.labelled_pairs` measures them.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from climassay.corpus.documents import excerpt
from climassay.corpus.sentences import split_sentences
from climassay.errors import InputError, MissingExtraError, ModelError
from climassay.models import load_model
from climassay.models.contract import (
    Encoder,
    Generator,
    OptionRequest,
    OptionScorer,
    option_probabilities,
    unwrap_model,
)
from climassay.prompts import Prompt, load_prompt

ENTAILED = 0.5
"""Minimum probability of entailment for a statement to count as entailed by the passage that it cites."""

RELATIONS = ("confirms", "contradicts", "leaves open")
"""Possible relations of a passage to a statement, in the order of :data:`OPTIONS`."""
OPTIONS = (" confirms the statement", " contradicts the statement", " leaves the statement open")
"""Continuation of the prompt's "The passage" for each relation. The wordings are parallel, so that none is favoured by
its length."""
PREMISE_WORDS = 120
"""Maximum number of words of a premise in the prompt."""
SUPPORT_OPTIONS = ("SUPPORTS", "REFUTES")
"""Answers between which the judge of the ClimaQA paper chooses."""
EVIDENCE_WORDS = 400
"""Maximum length, in words, of the evidence in the prompt of the paper's judge. Reference answers are shorter."""

_RELATION_INDEX = {"entailment": 0, "contradiction": 1, "neutral": 2, "supports": 0, "refutes": 1, "not enough info": 2}
"""Index in :data:`RELATIONS` by label of a classifier, in lower case."""
_BATCH_SIZE = 16


class Relations(NamedTuple):
    """Probabilities of a premise's relations to a statement, in the order of :data:`RELATIONS`; they sum to 1."""

    confirms: float
    contradicts: float
    leaves_open: float

    @property
    def supports(self) -> float:
        """Probability of SUPPORTS if only SUPPORTS and REFUTES are possible; one half if both probabilities are 0."""
        total = self.confirms + self.contradicts
        return self.confirms / total if total > 0 else 0.5


class Entailment(Protocol):
    """Scorer of whether premises entail statements."""

    @property
    def name(self) -> str:
        """Name of the scorer, for reports."""

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """Return P(premise entails statement) for each (premise, statement), in order; None if the request failed."""


@runtime_checkable
class RelationScorer(Entailment, Protocol):
    """Entailment scorer that also distinguishes contradicted from undecided statements."""

    def relations(self, pairs: Sequence[tuple[str, str]]) -> list[Relations | None]:
        """Return the probabilities of the relations for each (premise, statement); None if the request failed.

        ``relations(pairs)[i].confirms`` equals ``score(pairs)[i]``.
        """


def supports(scorer: Entailment, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
    """Return P(SUPPORTS), as opposed to REFUTES, for each (premise, statement), in order; None if the request failed.

    If the scorer does not distinguish relations, return P(premise entails statement).
    """
    if isinstance(scorer, RelationScorer):
        return [None if result is None else result.supports for result in scorer.relations(pairs)]
    return scorer.score(pairs)


class PromptedEntailment:
    """Entailment scorer that prompts a language model and uses its probabilities of three answers.

    The prompt contains only the part of a premise that is most similar to the statement (:func:`nearest_parts`).

    The bundled model is too weak for this (docs/results/entailment.md). Use a larger model.

    References:
        Thorne et al. (2018), FEVER, NAACL (the three relations).
    """

    def __init__(self, model: OptionScorer, *, encoder: Encoder | None = None) -> None:
        """Initialise the scorer; the model is not called yet.

        Args:
            model: Model that gives the probabilities of the answers.
            encoder: Encoder that finds the part of a long premise that is most similar to the statement; without one,
                words are compared.
        """
        self.name = f"{model.name}, prompted"
        self._model = model
        self._encoder = encoder
        self._prompt = load_prompt("entailment")

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """Return P(premise entails statement) for each (premise, statement), see :class:`Entailment`."""
        return [None if relations is None else relations.confirms for relations in self.relations(pairs)]

    def relations(self, pairs: Sequence[tuple[str, str]]) -> list[Relations | None]:
        """Return the probabilities of the relations for each (premise, statement), see :class:`RelationScorer`."""
        premises = nearest_parts(pairs, encoder=self._encoder)
        values = [
            {"premise": premise, "statement": statement}
            for premise, (_, statement) in zip(premises, pairs, strict=True)
        ]
        probabilities = _option_probabilities(self._model, self._prompt, OPTIONS, values)
        return [None if row is None else Relations(*row) for row in probabilities]


class PromptedSupport:
    """Judge of the ClimaQA paper: a model that answers SUPPORTS or REFUTES, given a claim and evidence.

    Because there is no third answer, a claim that the evidence leaves open may get either answer. The paper's model
    (GPT-4o-mini) is right on 81% of Climate-FEVER's pairs; ``climassay metrics entailment evaluate`` measures any
    model.

    Notes:
        The probabilities are those of the complete words. They differ from those of the words' first tokens only if a
        model may continue a first token differently. If a server lists only likely tokens, a word that is not listed
        gets the lowest log-probability of the list (:mod:`climassay.models.openai.option_scores`), and not -100 as in
        the paper. If a server gives no log-probabilities, the word that it did not answer gets -100.
    """

    def __init__(self, model: OptionScorer) -> None:
        """Initialise the scorer; the model is not called yet."""
        self.name = f"{model.name}, SUPPORTS or REFUTES"
        self._model = model
        self._prompt = load_prompt("factual_accuracy")

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """Return P(SUPPORTS) for each (evidence, claim), in order; None if the request failed."""
        return [None if relations is None else relations.confirms for relations in self.relations(pairs)]

    def relations(self, pairs: Sequence[tuple[str, str]]) -> list[Relations | None]:
        """Return the probabilities of the relations for each (evidence, claim); the third relation has 0."""
        parts = nearest_parts(pairs, words=EVIDENCE_WORDS)
        values = [{"evidence": part, "claim": claim} for part, (_, claim) in zip(parts, pairs, strict=True)]
        probabilities = _option_probabilities(self._model, self._prompt, SUPPORT_OPTIONS, values)
        return [None if row is None else Relations(row[0], row[1], 0.0) for row in probabilities]


def _option_probabilities(
    model: OptionScorer, prompt: Prompt, options: tuple[str, ...], values: Sequence[Mapping[str, str]]
) -> list[tuple[float, ...] | None]:
    """Return the probabilities of the options, which sum to 1, for each prompt; None if the request failed."""
    requests = []
    for prompt_values in values:
        rendered_prompt = prompt.render(**prompt_values)
        requests.append(OptionRequest(rendered_prompt.messages, options, rendered_prompt.assistant_prefix))
    scores = model.option_logprobs(requests) if requests else []
    return [None if score.error is not None else option_probabilities(score) for score in scores]


def nearest_parts(
    pairs: Sequence[tuple[str, str]], *, words: int = PREMISE_WORDS, encoder: Encoder | None = None
) -> list[str]:
    """Return the part of each premise that is most similar to its statement: whole sentences in their order.

    Sentences are selected in order of their similarity, as long as they fit. The most similar sentence is truncated if
    it is longer than ``words``. Gaps between sentences are marked. A premise that fits is returned unchanged. Every
    text is encoded once.

    Args:
        pairs: Pairs of (premise, statement).
        words: Maximum number of words of each part.
        encoder: Encoder for cosine similarity. Without one, the similarity of a sentence is the number of words that it
            shares with the statement, weighted by inverse document frequency over the premise's sentences.
    """
    long_premises = {premise for premise, _ in pairs if len(premise.split()) > words}
    sentences = {premise: split_sentences(premise) for premise in sorted(long_premises)}
    if encoder is None:
        similarities = [_weigh_shared_words(sentences[p], s) if p in long_premises else None for p, s in pairs]
    else:
        texts = dict.fromkeys(
            text for premise, statement in pairs if premise in sentences for text in (*sentences[premise], statement)
        )
        index = {text: index_ for index_, text in enumerate(texts)}
        vectors = encoder.encode(list(texts)).astype(np.float64)
        similarities = [
            vectors[[index[sentence] for sentence in sentences[premise]]] @ vectors[index[statement]]
            if premise in sentences
            else None
            for premise, statement in pairs
        ]
    return [
        premise if values is None else excerpt(sentences[premise], values, words)
        for (premise, _), values in zip(pairs, similarities, strict=True)
    ]


def _weigh_shared_words(sentences: Sequence[str], statement: str) -> NDArray[np.float64]:
    """Return the sum of the weights of the words that each sentence shares with the statement, shape [sentences]."""
    statement_words, *word_sets = (set(re.findall(r"\w+", text.lower())) for text in (statement, *sentences))
    weights = np.zeros(len(sentences))
    for word in sorted(statement_words):
        has_word = np.array([word in words for words in word_sets])
        weights[has_word] += math.log(1 + len(word_sets) / max(1, int(has_word.sum())))
    return weights


class ClassifierEntailment:
    """Entailment scorer that uses a transformers sequence classifier for text pairs.

    The classifier must have named labels.

    Weights are loaded from safetensors only, and a model's own code is never run. For a model with two labels,
    entailment or not, everything that is not entailed counts as "leaves open".
    """

    def __init__(self, name: str, folder: Path) -> None:
        """Initialise the classifier; its weights are loaded when first used."""
        self.name = name
        self._folder = folder

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """Return P(premise entails statement) for each (premise, statement), in order; never None."""
        return [None if relations is None else relations.confirms for relations in self.relations(pairs)]

    def relations(self, pairs: Sequence[tuple[str, str]]) -> list[Relations | None]:
        """Return the probabilities of the relations for each (premise, statement); long texts are truncated."""
        import torch

        network, tokenizer, relation_by_label = self._loaded
        relations: list[Relations | None] = [None] * len(pairs)
        order = sorted(range(len(pairs)), key=lambda index: len(pairs[index][0]) + len(pairs[index][1]))
        for start in range(0, len(order), _BATCH_SIZE):
            batch = order[start : start + _BATCH_SIZE]
            premises, statements = zip(*(pairs[index] for index in batch), strict=True)
            tokens = tokenizer(
                list(premises), list(statements), padding=True, truncation="longest_first", max_length=512,
                return_tensors="pt",
            )  # fmt: skip
            with torch.inference_mode():
                rows = network(**tokens.to(network.device)).logits.double().softmax(dim=1).tolist()
            for index, row in zip(batch, rows, strict=True):
                probabilities = [0.0, 0.0, 0.0]
                for label, probability in enumerate(row):
                    probabilities[relation_by_label[label]] += probability
                relations[index] = Relations(*probabilities)
        return relations

    @cached_property
    def _loaded(self) -> tuple[Any, Any, Mapping[int, int]]:
        try:
            from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer
        except ImportError as error:
            raise MissingExtraError(f"{self.name} needs transformers: pip install 'climassay[local]'.") from error
        try:
            config = AutoConfig.from_pretrained(self._folder, local_files_only=True, trust_remote_code=False)
            relation_by_label = relations_by_label(self.name, config.id2label)
            network = AutoModelForSequenceClassification.from_pretrained(
                self._folder, local_files_only=True, trust_remote_code=False, use_safetensors=True
            )
            tokenizer = AutoTokenizer.from_pretrained(self._folder, local_files_only=True, trust_remote_code=False)
        except ModelError:
            raise
        except Exception as error:
            # The exceptions of transformers for a damaged folder, or for one that needs code of its own, have no common
            # base class.
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
            raise ModelError(f"The classifier {self.name} cannot be loaded from {self._folder}: {reason}.") from error
        network.eval()
        return network, tokenizer, relation_by_label


def load_classifier(name: str) -> ClassifierEntailment:
    """Find a classifier by its folder or hub id; its weights are loaded when first used.

    Raises:
        ModelError: The model does not exist.
    """
    from climassay.models.local.loading import find_folder

    return ClassifierEntailment(f"nli:{name}", find_folder(name))


def relations_by_label(name: str, labels: Mapping[int, str]) -> dict[int, int]:
    """Return the index in :data:`~climassay.metrics.entailment.RELATIONS` of each of a classifier's labels, by id.

    Raises:
        ModelError: A label has another name than in natural-language inference, for example LABEL_0, or none means
            entailment.
    """
    results = {}
    for index, label in labels.items():
        label_name = label.lower().replace("_", " ").strip()
        # Two-class models call everything that is not entailed "not entailment".
        relation = 2 if label_name.startswith("not") else _RELATION_INDEX.get(label_name)
        if relation is None:
            raise ModelError(
                f"The classifier {name} calls its labels {', '.join(labels.values())}: entailment, contradiction and"
                " neutral are needed to know what they mean."
            )
        results[int(index)] = relation
    if 0 not in results.values():
        raise ModelError(f"The classifier {name} has no label for entailment.")
    return results


def load_entailment(name: str, *, load: Callable[[str], Generator] = load_model) -> RelationScorer:
    """Return the entailment scorer with a name.

    Args:
        name: One of

            - ``prompted:MODEL``: a model that is asked whether a passage confirms a statement, contradicts it or leaves
              it open;
            - ``supports:MODEL``: the judge of the ClimaQA paper, a model that answers SUPPORTS or REFUTES;
            - ``nli:MODEL``: a cross-encoder trained on natural-language inference, as a folder or hub id.
        load: Function that loads a model by its name; it may return a model whose answers are recorded.

    Raises:
        InputError: The name does not have one of these forms, or the model gives no probabilities of options.
        ModelError: The model cannot be loaded.
    """
    kind, _, model_id = name.partition(":")
    if kind == "nli" and model_id:
        return load_classifier(model_id)
    if kind not in ("prompted", "supports") or not model_id:
        raise InputError(
            f"{name!r} names no entailment scorer: write prompted:MODEL, supports:MODEL or nli:MODEL with the name of "
            "a model."
        )
    model = load(model_id)
    if not isinstance(unwrap_model(model), OptionScorer):
        raise InputError(f"{model_id} gives no probabilities of answers: use another model as entailment scorer.")
    scorer = cast(OptionScorer, model)
    return PromptedSupport(scorer) if kind == "supports" else PromptedEntailment(scorer)
