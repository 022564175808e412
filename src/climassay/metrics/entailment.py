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
    BLANK,
    Encoder,
    Generator,
    OptionRequest,
    OptionScorer,
    option_probabilities,
)
from climassay.prompts import ProfileSettings, Prompt, load_prompt, profile_of

ENTAILED = 0.5
"""Minimum probability of entailment of a faithful citation; entailment is then likelier than all else together."""

RELATIONS = ("confirms", "contradicts", "leaves open")
"""Relations of a passage to a statement, in the order of the options."""
OPTIONS = (" confirms the statement", " contradicts the statement", " leaves the statement open")
"""Continuation of the prompt's "The passage" for each relation; parallel in wording, so that length favours none."""
PREMISE_WORDS = 120
"""Maximum number of words of a premise in the prompt."""
SUPPORT_OPTIONS = ("SUPPORTS", "REFUTES")
"""Answers of the paper's judge."""
EVIDENCE_WORDS = 400
"""Maximum number of words of an evidence in the prompt of the paper's judge; reference answers are shorter."""

_RELATION_INDEX = {"entailment": 0, "contradiction": 1, "neutral": 2, "supports": 0, "refutes": 1, "not enough info": 2}
"""Index in :data:`RELATIONS` of classifiers' labels, in lower case."""
_BATCH = 16


class Relations(NamedTuple):
    """Probabilities of a premise's relations to a statement, summing to 1, in the order of :data:`RELATIONS`."""

    confirms: float
    contradicts: float
    leaves_open: float

    @property
    def supports(self) -> float:
        """P(SUPPORTS) of SUPPORTS and REFUTES alone; a half if both are 0."""
        decided = self.confirms + self.contradicts
        return self.confirms / decided if decided > 0 else 0.5


class Entailment(Protocol):
    """Scorer of the entailment of statements by premises."""

    @property
    def name(self) -> str:
        """Name for reports."""

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """Return P(premise entails statement) for each pair of (premise, statement), in order; None if it failed."""


@runtime_checkable
class RelationScorer(Entailment, Protocol):
    """Entailment scorer that also distinguishes contradicted from undecided statements."""

    def relations(self, pairs: Sequence[tuple[str, str]]) -> list[Relations | None]:
        """Return probabilities of the relations for each pair of (premise, statement); None if it failed.

        ``relations(pairs)[i].confirms == score(pairs)[i]``.
        """


def supports(scorer: Entailment, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
    """Return P(SUPPORTS) rather than REFUTES of each pair of (premise, statement), in order; None if it failed.

    For a scorer without relations this is P(premise entails statement).
    """
    if isinstance(scorer, RelationScorer):
        return [None if result is None else result.supports for result in scorer.relations(pairs)]
    return scorer.score(pairs)


class PromptedEntailment:
    """Entailment scorer that prompts a language model and reads the probabilities of three answers.

    The prompt holds only the part of a premise that is nearest to the statement (:func:`nearest_parts`).

    ``calibrated`` divides the answers' probabilities by those for an empty premise and statement, and normalises: this
    removes the model's prior preference for an answer.

    The bundled model is unusable: on 300 evidence sentences of Climate-FEVER (75 support their claim) it finds the
    relation in 10.7% of the cases (95% interval 7.7 to 14.7; 25.0% without calibration, 20.4 to 30.2, where it always
    says "confirms"), a constant answer in 67.7%; its probability of support ranks no better than chance (AUROC 0.49,
    0.50 without calibration). Use a larger model.

    References:
        Zhao et al. (2021), Calibrate Before Use, ICML, section 5 (contextual calibration).
        Thorne et al. (2018), FEVER, NAACL (the three relations).
    """

    def __init__(
        self,
        model: OptionScorer,
        *,
        calibrated: bool | None = None,
        encoder: Encoder | None = None,
        prompt: Prompt | None = None,
    ) -> None:
        """Initialise without a request.

        Args:
            model: Model that gives the answers' probabilities.
            calibrated: True removes the model's prior preference; by default the model's profile decides.
            encoder: Encoder that finds the part of a long premise nearest to the statement; None compares words.
            prompt: Template with the values ``premise`` and ``statement``; the built-in ``entailment`` by default.
        """
        self.name = f"{model.name}, prompted"
        self._model = model
        self._calibrated = profile_of(model).calibrated if calibrated is None else calibrated
        self._encoder = encoder
        self._prompt = prompt or load_prompt("entailment")

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """Return P(premise entails statement) for each pair; see :class:`Entailment`."""
        return [None if shares is None else shares[0] for shares in self.relations(pairs)]

    def relations(self, pairs: Sequence[tuple[str, str]]) -> list[Relations | None]:
        """Return probabilities of the relations for each pair; see :class:`RelationScorer`."""
        result = prompted_shares(self._model, self._prompt, ("premise", "statement"), OPTIONS, pairs,
                                calibrated=self._calibrated, words=PREMISE_WORDS, encoder=self._encoder)  # fmt: skip
        return [None if shares is None else Relations(*shares) for shares in result]


class PromptedSupport:
    """The paper's judge: a model that answers SUPPORTS or REFUTES to an evidence and a claim.

    There is no third answer, so that a claim that the evidence leaves open goes to either side. The paper's judge
    (GPT-4o-mini) is right on 81% of Climate-FEVER's pairs; ``climassay metrics entailment evaluate`` measures any
    model.

    Notes:
        Probabilities are those of the complete words, which differ from those of their first tokens only if a model
        continues the first token in another way. If a server lists likely tokens only and lacks one of the two,
        that one
        has the list's floor (:mod:`climassay.models.openai.option_scores`) instead of the paper's -100; for a server
        without log-probabilities the missing word has -100.
    """

    def __init__(self, model: OptionScorer, *, calibrated: bool = False) -> None:
        """Initialise without a request.

        ``calibrated`` divides by the probabilities for a prompt without content (Zhao et al. 2021); the paper does not.
        """
        self.name = f"{model.name}, SUPPORTS or REFUTES"
        self._model = model
        self._prompt = load_prompt("factual_accuracy")
        self._calibrated = calibrated

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """Return P(SUPPORTS) for each pair of (evidence, claim); None if the request failed."""
        return [None if relations is None else relations[0] for relations in self.relations(pairs)]

    def relations(self, pairs: Sequence[tuple[str, str]]) -> list[Relations | None]:
        """Return probabilities of the relations; the third is 0."""
        relations = prompted_shares(self._model, self._prompt, ("evidence", "claim"), SUPPORT_OPTIONS, pairs,
                                calibrated=self._calibrated, words=EVIDENCE_WORDS, encoder=None)  # fmt: skip
        return [None if shares is None else Relations(shares[0], shares[1], 0.0) for shares in relations]


def prompted_shares(
    model: OptionScorer,
    prompt: Prompt,
    names: tuple[str, str],
    options: tuple[str, ...],
    pairs: Sequence[tuple[str, str]],
    *,
    calibrated: bool,
    words: int,
    encoder: Encoder | None,
) -> list[tuple[float, ...] | None]:
    """Return probabilities of the options for each pair of (premise, statement), in order; None if the request failed.

    Args:
        model: Model that gives the options' probabilities.
        prompt: Template.
        names: Names of premise and statement in the template.
        options: Answers.
        pairs: Pairs of (premise, statement).
        calibrated: True divides by the probabilities for a prompt without content (Zhao et al. 2021).
        words: Maximum number of words of a premise; of longer ones the part nearest to the statement is used.
        encoder: Encoder of :func:`nearest_parts`.
    """
    if not pairs:
        return []
    parts = nearest_parts(pairs, words=words, encoder=encoder)
    values = [(part, statement) for part, (_, statement) in zip(parts, pairs, strict=True)]
    requests = []
    for part, statement in [*[(BLANK, BLANK)] * calibrated, *values]:
        rendered = prompt.render(**{names[0]: part, names[1]: statement})
        requests.append(OptionRequest(rendered.messages, options, rendered.assistant_prefix))
    scores = model.option_logprobs(requests)
    blank = scores[0] if calibrated else None
    # If the content-free request failed, all requests count as failed: uncalibrated scores would not be comparable.
    # Generated answers are not calibrated.
    if blank is not None and blank.error is not None and not blank.is_named:
        return [None] * len(pairs)
    pair_scores = scores[1:] if calibrated else scores
    return [None if score.error is not None else option_probabilities(score, blank) for score in pair_scores]


def nearest_parts(
    pairs: Sequence[tuple[str, str]], *, words: int = PREMISE_WORDS, encoder: Encoder | None = None
) -> list[str]:
    """Return the sentences of each premise that are nearest to its statement, in the premise's order.

    Sentences are added from the most similar one on, as long as they fit. The most similar one is truncated to
    ``words`` if
    it is longer; gaps are marked. A premise that fits is returned unchanged. Every text is encoded once.

    Args:
        pairs: Pairs of (premise, statement).
        words: Maximum number of words of each part.
        encoder: Encoder for cosine similarity. None uses the statement's words in a sentence, weighted by inverse
            document frequency over the premise's sentences.
    """
    long_premises = {premise for premise, _ in pairs if len(premise.split()) > words}
    sentences = {premise: split_sentences(premise) for premise in sorted(long_premises)}
    if encoder is None:
        similarities = [_shared_words(sentences[p], s) if p in long_premises else None for p, s in pairs]
    else:
        texts = dict.fromkeys(
            text for premise, statement in pairs if premise in sentences for text in (*sentences[premise], statement)
        )
        index = {text: number for number, text in enumerate(texts)}
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


def _shared_words(sentences: Sequence[str], statement: str) -> NDArray[np.float64]:
    """Return the weight of the statement's words in each sentence, shape [sentences]."""
    bags = [set(re.findall(r"\w+", sentence.lower())) for sentence in sentences]
    weights = np.zeros(len(sentences))
    for word in sorted(set(re.findall(r"\w+", statement.lower()))):
        has_word = np.array([word in bag for bag in bags])
        weights[has_word] += math.log(1 + len(bags) / max(1, int(has_word.sum())))
    return weights


class ClassifierEntailment:
    """Sequence classifier of two texts, whose configuration names its labels.

    Weights are read from safetensors only, and code of a model is never run. A model with two labels (entailment or
    not)
    assigns the rest to "leaves open", because it does not distinguish contradictions.
    """

    def __init__(self, name: str, folder: Path) -> None:
        """Initialise; weights are loaded when first used."""
        self.name = name
        self._folder = folder

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """Return P(premise entails statement) of each pair; never None."""
        return [None if result is None else result.confirms for result in self.relations(pairs)]

    def relations(self, pairs: Sequence[tuple[str, str]]) -> list[Relations | None]:
        """Return probabilities of the relations of each pair, in order; long premises are truncated."""
        import torch

        network, tokenizer, relation_by_label = self._loaded
        relations: list[Relations | None] = [None] * len(pairs)
        order = sorted(range(len(pairs)), key=lambda index: len(pairs[index][0]) + len(pairs[index][1]))
        for start in range(0, len(order), _BATCH):
            batch = order[start : start + _BATCH]
            first, second = zip(*(pairs[index] for index in batch), strict=True)
            tokens = tokenizer(list(first), list(second), padding=True, truncation="longest_first", max_length=512,
                               return_tensors="pt")  # fmt: skip
            with torch.inference_mode():
                rows = network(**tokens.to(network.device)).logits.double().softmax(dim=1).tolist()
            for index, row in zip(batch, rows, strict=True):
                shares = [0.0, 0.0, 0.0]
                for label, probability in enumerate(row):
                    shares[relation_by_label[label]] += probability
                relations[index] = Relations(*shares)
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
            # What transformers raises for a damaged folder, or one that wants its own code run, is of no one family.
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
            raise ModelError(f"The classifier {self.name} cannot be loaded from {self._folder}: {reason}.") from error
        network.eval()
        return network, tokenizer, relation_by_label


def load_classifier(name: str) -> ClassifierEntailment:
    """Return a classifier by its folder or hub id; its weights are loaded when first used.

    Raises:
        ModelError: The model does not exist.
    """
    from climassay.models.local.loading import find_folder

    return ClassifierEntailment(f"nli:{name}", find_folder(name))


def relations_by_label(name: str, labels: Mapping[int, str]) -> dict[int, int]:
    """Return the index in :data:`~climassay.metrics.entailment.RELATIONS` of each label of a classifier.

    Raises:
        ModelError: The labels are not those of inference data, for example LABEL_0.
    """
    results = {}
    for index, label in labels.items():
        words = label.lower().replace("_", " ").strip()
        # "not entailment" of two-class models: whatever is not entailed.
        relation = 2 if words.startswith("not") else _RELATION_INDEX.get(words)
        if relation is None:
            raise ModelError(
                f"The classifier {name} calls its labels {', '.join(labels.values())}: entailment, contradiction and"
                " neutral are needed to know what they mean."
            )
        results[int(index)] = relation
    if 0 not in results.values():
        raise ModelError(f"The classifier {name} has no label for entailment.")
    return results


def load_entailment(
    name: str,
    *,
    model: OptionScorer | None = None,
    load: Callable[[str], Generator] = load_model,
    profile: ProfileSettings | None = None,
) -> RelationScorer:
    """Return the entailment scorer of a name.

    Args:
        name: One of

            - ``prompted:MODEL``: a model asked whether a passage confirms, contradicts or leaves open;
            - ``supports:MODEL``: the paper's judge, SUPPORTS or REFUTES;
            - ``nli:MODEL``: a cross-encoder trained on inference data, a folder or hub id.
        model: Used instead of loading ``MODEL``, for example one that is recorded.
        load: Function that loads a model by its name.
        profile: User's settings, which decide whether ``prompted:`` is calibrated.

    Raises:
        InputError: The name is not one of these, or the model gives no probabilities.
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
    loaded = load(model_id) if model is None else model
    if model is None and not isinstance(loaded, OptionScorer):
        raise InputError(f"{model_id} gives no probabilities of answers: use another model as entailment scorer.")
    scorer = cast(OptionScorer, loaded)
    if kind == "supports":
        return PromptedSupport(scorer)
    return PromptedEntailment(scorer, calibrated=profile_of(scorer, profile).calibrated)


def model_name(name: str) -> str | None:
    """Return the name of the language model that a scorer asks, or None if it asks none."""
    kind, _, model_id = name.partition(":")
    return model_id if kind in ("prompted", "supports") and model_id else None
