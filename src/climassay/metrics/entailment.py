"""Does a passage entail a statement: confirm it, rather than contradict it or leave it open? Scorers by name.

A scorer is a language model that is asked (``prompted:MODEL``, ``supports:MODEL``) or a cross-encoder trained on
inference data (``nli:MODEL``). None comes with climassay, and none is a default: small ones are no better than a
constant answer (docs/results/entailment.md). :mod:`climassay.metrics.labelled_pairs` measures them.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from climassay.corpus.documents import excerpt, split_sentences
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
"""Probability from which a citation counts as faithful: entailment is then likelier than all else together."""

RELATIONS = ("confirms", "contradicts", "leaves open")
"""What a passage does to a statement, in the order of the options."""
OPTIONS = (" confirms the statement", " contradicts the statement", " leaves the statement open")
"""How each relation is said after the prompt's "The passage"; parallel, so that none is favoured for its length."""
PREMISE_WORDS = 120
"""Maximum number of words of a premise that go into the prompt."""
SUPPORT_OPTIONS = ("SUPPORTS", "REFUTES")
"""Answers of the paper's judge."""
EVIDENCE_WORDS = 400
"""Maximum number of words of an evidence in the prompt of the paper's judge; reference answers are far shorter."""

_MEANINGS = {"entailment": 0, "contradiction": 1, "neutral": 2, "supports": 0, "refutes": 1, "not enough info": 2}
"""Labels of classifiers, in lower case, as indices in :data:`RELATIONS`."""
_BATCH = 16


class Relations(NamedTuple):
    """Probabilities of what a premise does to a statement, summing to 1; in the order of :data:`RELATIONS`."""

    confirms: float
    contradicts: float
    leaves_open: float

    @property
    def supports(self) -> float:
        """P(SUPPORTS) where only SUPPORTS and REFUTES are asked for; a half where the premise says nothing at all."""
        decided = self.confirms + self.contradicts
        return self.confirms / decided if decided > 0 else 0.5


class Entailment(Protocol):
    """Anything that tells how far premises entail statements."""

    @property
    def name(self) -> str:
        """Name for reports."""

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """P(premise entails statement) for each pair of (premise, statement), in order.

        Returns:
            0 to 1; None where the call failed.
        """


@runtime_checkable
class RelationScorer(Entailment, Protocol):
    """A scorer that also tells a contradiction from a premise that says nothing."""

    def relations(self, pairs: Sequence[tuple[str, str]]) -> list[Relations | None]:
        """Probabilities of the three relations for each pair of (premise, statement), in order; None where it failed.

        ``relations(pairs)[i].confirms == score(pairs)[i]``.
        """


def supports(scorer: Entailment, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
    """P(SUPPORTS) rather than REFUTES of each pair of (premise, statement), in order; None where the call failed.

    A scorer that does not tell contradictions from open questions gives its P(premise entails statement).
    """
    if isinstance(scorer, RelationScorer):
        return [None if result is None else result.supports for result in scorer.relations(pairs)]
    return scorer.score(pairs)


class PromptedEntailment:
    """Entailment as a question to a language model, answered by the probabilities of three answers.

    Only the part of a premise that is nearest to the statement is put before the model (:func:`nearest_parts`).

    With ``calibrated``, the answers' probabilities are divided by those that the model gives when premise and statement
    say nothing, and normalised: what it prefers before it has read anything is taken out.

    The bundled model cannot do it: on 300 evidence sentences of Climate-FEVER (75 support their claim) it finds the
    relation in 10.7% of the cases (95% interval 7.7 to 14.7; 25.0% without calibration, 20.4 to 30.2, where it always
    says "confirms"), a constant answer in 67.7%; its probability of support ranks no better than chance (AUROC 0.49,
    0.50 without calibration). Take a larger model.

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
        """Prepare; no model is asked yet.

        Args:
            model: Weighs the answers.
            calibrated: Whether to take out what the model prefers without content; by default as its profile says.
            encoder: Finds the part of a long premise that is nearest to the statement; None does it by shared words.
            prompt: Template of the question with the values ``premise`` and ``statement``; the built-in
                ``entailment`` by default.
        """
        self.name = f"{model.name}, prompted"
        self._model = model
        self._calibrated = profile_of(model).calibrated if calibrated is None else calibrated
        self._encoder = encoder
        self._prompt = prompt or load_prompt("entailment")

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """P(premise entails statement) for each pair; see :class:`Entailment`."""
        return [None if shares is None else shares[0] for shares in self.relations(pairs)]

    def relations(self, pairs: Sequence[tuple[str, str]]) -> list[Relations | None]:
        """Probabilities of the three relations for each pair; see :class:`RelationScorer`."""
        result = prompted_shares(self._model, self._prompt, ("premise", "statement"), OPTIONS, pairs,
                                calibrated=self._calibrated, words=PREMISE_WORDS, encoder=self._encoder)  # fmt: skip
        return [None if shares is None else Relations(*shares) for shares in result]


class PromptedSupport:
    """The paper's judge: a model that answers SUPPORTS or REFUTES to an evidence and a claim.

    There is no third answer, so that a claim the evidence says nothing about goes to either side. The paper's judge
    (GPT-4o-mini) is right on 81% of Climate-FEVER's pairs; ``climassay metrics entailment evaluate`` measures any.

    Notes:
        The model's probabilities are those of the whole words, which differ from those of their first tokens only where
        a model goes on otherwise after the first one. A server that lists likely tokens only, and not one of the two,
        counts it at the list's floor (:mod:`climassay.models.openai.option_scores`) instead of the paper's -100; of a
        server without log-probabilities the word that was not said has -100.
    """

    def __init__(self, model: OptionScorer, *, calibrated: bool = False) -> None:
        """Prepare; no model is asked yet.

        ``calibrated`` divides by what the model answers to a prompt without content (Zhao et al. 2021); the paper does
        not.
        """
        self.name = f"{model.name}, SUPPORTS or REFUTES"
        self._model = model
        self._prompt = load_prompt("factual_accuracy")
        self._calibrated = calibrated

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """P(SUPPORTS) for each pair of (evidence, claim); None where the call failed."""
        return [None if result is None else result[0] for result in self.relations(pairs)]

    def relations(self, pairs: Sequence[tuple[str, str]]) -> list[Relations | None]:
        """Probabilities of the three relations; the third is 0, for this judge always decides."""
        result = prompted_shares(self._model, self._prompt, ("evidence", "claim"), SUPPORT_OPTIONS, pairs,
                                calibrated=self._calibrated, words=EVIDENCE_WORDS, encoder=None)  # fmt: skip
        return [None if shares is None else Relations(shares[0], shares[1], 0.0) for shares in result]


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
    """Probabilities of the options for each pair of (premise, statement), in order; None where the call failed.

    ``names`` are what the template calls premise and statement. Premises are cut to the part of so many ``words`` that
    is nearest to the statement; ``calibrated`` divides by the probabilities of a prompt without content (Zhao et al.
    2021).
    """
    if not pairs:
        return []
    parts = nearest_parts(pairs, words=words, encoder=encoder)
    blanks = [(BLANK, BLANK)] * calibrated
    requests = []
    for part, statement in [*blanks, *((part, said) for part, (_, said) in zip(parts, pairs, strict=True))]:
        rendered = prompt.render(**{names[0]: part, names[1]: statement})
        requests.append(OptionRequest(rendered.messages, options, rendered.assistant_prefix))
    answers = model.option_logprobs(requests)
    blank = answers[0] if calibrated else None
    # Without the content-free answer nothing can be calibrated: an uncalibrated score among the others would not be
    # comparable, so all of them are failures. Answers that were generated are not calibrated at all.
    if blank is not None and blank.error is not None and not blank.is_named:
        return [None] * len(pairs)
    asked = answers[1:] if calibrated else answers
    return [None if one.error is not None else option_probabilities(one, blank) for one in asked]


def nearest_parts(
    pairs: Sequence[tuple[str, str]], *, words: int = PREMISE_WORDS, encoder: Encoder | None = None
) -> list[str]:
    """The sentences of each premise that are nearest to its statement, in the premise's order.

    Sentences are taken from the most similar one on, as long as they fit; the most similar one always, cut to ``words``
    where it alone is longer; gaps are marked. A premise that fits is returned as it is. Every text is encoded once.

    Args:
        pairs: Pairs of (premise, statement).
        words: Maximum number of words of each.
        encoder: Similarity is the cosine of its vectors; None: the share of the statement's words that a sentence has,
            words that occur in fewer sentences of the premise counting more (inverse document frequency).
    """
    long = {premise for premise, _ in pairs if len(premise.split()) > words}
    sentences = {premise: split_sentences(premise) for premise in sorted(long)}
    if encoder is None:
        nearness = [_shared_words(sentences[p], s) if p in long else None for p, s in pairs]
    else:
        texts = dict.fromkeys(
            text for premise, statement in pairs if premise in sentences for text in (*sentences[premise], statement)
        )
        places = {text: place for place, text in enumerate(texts)}
        vectors = encoder.encode(list(texts)).astype(np.float64)
        nearness = [
            vectors[[places[sentence] for sentence in sentences[premise]]] @ vectors[places[statement]]
            if premise in sentences
            else None
            for premise, statement in pairs
        ]
    return [
        premise if values is None else excerpt(sentences[premise], values, words)
        for (premise, _), values in zip(pairs, nearness, strict=True)
    ]


def _shared_words(sentences: Sequence[str], statement: str) -> NDArray[np.float64]:
    """Weight of the statement's words that each sentence has [sentences]."""
    bags = [set(re.findall(r"\w+", sentence.lower())) for sentence in sentences]
    nearness = np.zeros(len(sentences))
    for word in sorted(set(re.findall(r"\w+", statement.lower()))):
        has = np.array([word in bag for bag in bags])
        nearness[has] += math.log(1 + len(bags) / max(1, int(has.sum())))
    return nearness


class ClassifierEntailment:
    """A sequence classifier of two texts, its labels recognised by the names in its configuration.

    Weights are read from safetensors only, and code that comes with a model is never run. A model with two labels
    (entailment or not) gives what is not entailed to "leaves open": it does not tell contradictions.
    """

    def __init__(self, name: str, folder: Path) -> None:
        """Prepare; weights are loaded when first used."""
        self.name = name
        self._folder = folder

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """P(premise entails statement) of each pair; never None."""
        return [None if result is None else result.confirms for result in self.relations(pairs)]

    def relations(self, pairs: Sequence[tuple[str, str]]) -> list[Relations | None]:
        """Probabilities of the three relations of each pair, in order; a premise too long is cut at its end."""
        import torch

        network, tokenizer, places = self._loaded
        result: list[Relations | None] = [None] * len(pairs)
        order = sorted(range(len(pairs)), key=lambda place: len(pairs[place][0]) + len(pairs[place][1]))
        for start in range(0, len(order), _BATCH):
            batch = order[start : start + _BATCH]
            first, second = zip(*(pairs[place] for place in batch), strict=True)
            tokens = tokenizer(list(first), list(second), padding=True, truncation="longest_first", max_length=512,
                               return_tensors="pt")  # fmt: skip
            with torch.inference_mode():
                rows = network(**tokens.to(network.device)).logits.double().softmax(dim=1).tolist()
            for place, row in zip(batch, rows, strict=True):
                shares = [0.0, 0.0, 0.0]
                for label, probability in enumerate(row):
                    shares[places[label]] += probability
                result[place] = Relations(*shares)
        return result

    @cached_property
    def _loaded(self) -> tuple[Any, Any, Mapping[int, int]]:
        try:
            from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer
        except ImportError as error:
            raise MissingExtraError(f"{self.name} needs transformers: pip install 'climassay[local]'.") from error
        try:
            config = AutoConfig.from_pretrained(self._folder, local_files_only=True, trust_remote_code=False)
            places = label_places(self.name, config.id2label)
            network = AutoModelForSequenceClassification.from_pretrained(
                self._folder, local_files_only=True, trust_remote_code=False, use_safetensors=True
            )
            tokenizer = AutoTokenizer.from_pretrained(self._folder, local_files_only=True, trust_remote_code=False)
        except ModelError:
            raise
        except Exception as error:
            # What transformers raises for a damaged folder, or one that wants its own code run, is of no one family.
            said = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
            raise ModelError(f"The classifier {self.name} cannot be loaded from {self._folder}: {said}.") from error
        network.eval()
        return network, tokenizer, places


def load_classifier(name: str) -> ClassifierEntailment:
    """A classifier by its folder or hub id; its weights are loaded when first used.

    Raises:
        ModelError: There is no such model.
    """
    from climassay.models.local.loading import find_folder

    return ClassifierEntailment(f"nli:{name}", find_folder(name))


def label_places(name: str, labels: Mapping[int, str]) -> dict[int, int]:
    """For each label of a classifier its place in :data:`~climassay.metrics.entailment.RELATIONS`.

    Raises:
        ModelError: The labels are not those of inference data, for example LABEL_0.
    """
    results = {}
    for number, label in labels.items():
        said = label.lower().replace("_", " ").strip()
        # "not entailment" of two-class models: whatever is not entailed.
        place = 2 if said.startswith("not") else _MEANINGS.get(said)
        if place is None:
            raise ModelError(
                f"The classifier {name} calls its labels {', '.join(labels.values())}: entailment, contradiction and"
                " neutral are needed to know what they mean."
            )
        results[int(number)] = place
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
        load: From the name of a model to the model.
        profile: Whether ``prompted:`` is calibrated, if the user has set it.

    Raises:
        InputError: The name is not one of these, or the model gives no probabilities.
        ModelError: The model cannot be loaded.
    """
    kind, _, rest = name.partition(":")
    if kind == "nli" and rest:
        return load_classifier(rest)
    if kind not in ("prompted", "supports") or not rest:
        raise InputError(
            f"{name!r} names no entailment scorer: write prompted:MODEL, supports:MODEL or nli:MODEL with the name of "
            "a model."
        )
    loaded = load(rest) if model is None else model
    if model is None and not isinstance(loaded, OptionScorer):
        raise InputError(f"{rest} gives no probabilities of answers: use another model as entailment scorer.")
    scorer = cast(OptionScorer, loaded)
    if kind == "supports":
        return PromptedSupport(scorer)
    return PromptedEntailment(scorer, calibrated=profile_of(scorer, profile).calibrated)


def model_name(name: str) -> str | None:
    """Return the name of the language model that a scorer asks, or None if it asks none."""
    kind, _, rest = name.partition(":")
    return rest if kind in ("prompted", "supports") and rest else None
