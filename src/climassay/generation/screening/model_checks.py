"""Checks that ask a model: is the question about its passages, and do they entail the answer?"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from climassay.corpus.sentences import split_sentences
from climassay.generation.draft import Decision, Draft
from climassay.generation.screening.check import right_answer
from climassay.metrics import Entailment, RelationScorer
from climassay.models.contract import Encoder

LEAST_COSINE = 0.45
"""Least cosine between question with answer and the nearest part of the passages, for the bundled encoder."""
LEAST_ENTAILED = 0.5
"""Least P(passages entail the answer) for scorers that know two classes only."""
CONTRADICTED = 0.5
"""P(passages contradict the answer) from which it is faulty, for scorers that know three classes."""
MODEL_CHECKS: dict[str, str] = {
    "off topic": "Question and answer are far from everything in the passages (needs an encoder).",
    "not entailed": "The passages contradict the answer, or do not entail it (needs an entailment scorer).",
}


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """A check that looks at all drafts at once, since a model answers many questions faster than one by one."""

    name: str
    examine_all: Callable[[Sequence[Draft]], list[Decision | None]]
    """From written drafts to a rejection, an abstention (the call failed) or None, in their order."""


def topic_check(encoder: Encoder) -> ModelCheck:
    """``off topic``: the cosine to the nearest pair of neighbouring sentences of the passages."""

    def examine_all(drafts: Sequence[Draft]) -> list[Decision | None]:
        parts = [_parts(draft) for draft in drafts]
        if not drafts:
            return []
        asked = encoder.encode([f"{draft.wording.question} {right_answer(draft)}".strip() for draft in drafts])
        vectors = encoder.encode([part for one in parts for part in one])
        ends = list(accumulate(map(len, parts)))
        nearest = [
            float(np.max(vectors[end - len(one) : end] @ vector, initial=-1.0))
            for one, end, vector in zip(parts, ends, asked, strict=True)
        ]
        return [None if cosine >= LEAST_COSINE else _far(cosine) for cosine in nearest]

    return ModelCheck("off topic", examine_all)


def _parts(draft: Draft) -> list[str]:
    """Pairs of neighbouring sentences of every passage."""
    found = []
    for passage in draft.passages:
        sentences = split_sentences(passage.text)
        found += [" ".join(sentences[place : place + 2]) for place in range(max(1, len(sentences) - 1))]
    return [part for part in found if part]


def _far(cosine: float) -> Decision:
    detail = f"The nearest part of the passages has a cosine of {cosine:.2f}, less than {LEAST_COSINE}."
    return Decision("screen", "off topic", False, "off topic", detail, cosine)


def entailment_check(scorer: Entailment) -> ModelCheck:
    """``not entailed``: by P(contradicts) where the scorer tells it, else by P(entails)."""

    def examine_all(drafts: Sequence[Draft]) -> list[Decision | None]:
        claims = [(draft.context, draft.type.claim(draft.content)) for draft in drafts]
        places = [place for place, (_, claim) in enumerate(claims) if claim]
        found: list[Decision | None] = [None] * len(drafts)
        pairs = [claims[place] for place in places]
        if not pairs:
            return found
        if isinstance(scorer, RelationScorer):
            relations = scorer.relations(pairs)
            said = [_by_contradiction(None if one is None else one.contradicts) for one in relations]
        else:
            said = [_by_entailment(score) for score in scorer.score(pairs)]
        for place, decision in zip(places, said, strict=True):
            found[place] = decision
        return found

    return ModelCheck("not entailed", examine_all)


def _by_contradiction(probability: float | None) -> Decision | None:
    if probability is None:
        return _abstained()
    if probability < CONTRADICTED:
        return None
    detail = f"The passages contradict the answer with probability {probability:.2f}."
    return Decision("screen", "not entailed", False, "not entailed", detail, probability)


def _by_entailment(probability: float | None) -> Decision | None:
    if probability is None:
        return _abstained()
    if probability >= LEAST_ENTAILED:
        return None
    detail = f"The passages entail the answer with probability {probability:.2f} only."
    return Decision("screen", "not entailed", False, "not entailed", detail, probability)


def _abstained() -> Decision:
    return Decision("screen", "not entailed", None, "failed call", "The scorer gave no probability.")
