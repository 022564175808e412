"""Does a passage entail a statement: confirm it, rather than contradict it or leave it open?"""

import math
import re
from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from climassay.corpus.passages import excerpt
from climassay.corpus.sentences import split_sentences
from climassay.models.calibration import BLANK, option_probabilities
from climassay.models.contract import Encoder, OptionRequest, OptionScorer
from climassay.models.profiles import profile_of
from climassay.prompts import Prompt, load_prompt

RELATIONS = ("confirms", "contradicts", "leaves open")
"""What a passage does to a statement, in the order of the options."""
OPTIONS = (" confirms the statement", " contradicts the statement", " leaves the statement open")
"""How each relation is said after the prompt's "The passage"; parallel, so that none is favoured for its length."""
PREMISE_WORDS = 120
"""Maximum number of words of a premise that go into the prompt."""


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
        return [None if found is None else found.supports for found in scorer.relations(pairs)]
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
        found = prompted_shares(self._model, self._prompt, ("premise", "statement"), OPTIONS, pairs,
                                calibrated=self._calibrated, words=PREMISE_WORDS, encoder=self._encoder)  # fmt: skip
        return [None if shares is None else Relations(*shares) for shares in found]


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
    if blank is not None and blank.error is not None and blank.method != "generated":
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
