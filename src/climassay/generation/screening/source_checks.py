"""Does the answer rest on the passages: its numbers, units and words, and its meaning as models measure it?"""

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from climassay.corpus.sentences import split_sentences
from climassay.generation.draft import Decision, Draft
from climassay.generation.screening.check import check, content_words, right_answer
from climassay.grounding.quantities import foreign_quantities, quantities
from climassay.metrics import Entailment, RelationScorer
from climassay.models.contract import Encoder
from climassay.questions import KINDS

LEAST_SHARE, LEAST_SHARE_OF_CHOICES = 0.4, 0.25
"""Least share of the content words of question and right answer, or of a statement, that the passages must have.
What rests on its passages says it in other words, but shares their terms; docs/results/screening.md has the shares."""
FEWEST_WORDS = 3
"""Texts of fewer content words are not judged by their share."""
_KIND_OF_RATE = {"yr": "time", "d": "days", "K": "temperature"}


@check(
    "foreign quantity",
    KINDS,
    "Has a number or unit that the passages do not have (evolved levels: a unit that nothing given has).",
)
def _foreign_quantity(draft: Draft) -> str | None:
    """Numbers and units that are nowhere in the passages.

    A reasoning or hypothetical question brings assumptions of its own and asks for what follows from them: there only
    a unit of the answer that neither passages nor question have is foreign.
    """
    texts = [passage.text for passage in draft.passages]
    if not texts:
        return None
    question, answer = draft.wording.question, right_answer(draft)
    if draft.level == "base" or not draft.type.levels:
        found = foreign_quantities(draft.type.claim(draft.content), texts)
        return f"The passages do not have {', '.join(found)}." if found else None
    known = [quantity.unit for text in (*texts, question) for quantity in quantities(text) if quantity.unit]
    # What is counted per year or per kelvin may well be asked in years or kelvins.
    kinds = {_KIND_OF_RATE.get(unit.rate, "") for unit in known}
    foreign = [
        quantity.text
        for quantity in quantities(answer)
        if quantity.unit
        and quantity.unit.kind.partition(":")[0] not in kinds
        and not any(quantity.unit.is_kind_of(unit) for unit in known)
    ]
    return f"Neither passages nor question have the unit of {', '.join(foreign)}." if foreign else None


@check("unsupported answer", KINDS, "Shares too few words with the passages to rest on them.")
def _unsupported(draft: Draft) -> str | None:
    if draft.kind == "freeform" and not any(letter.isdigit() for letter in draft.wording.answer):
        said = set(content_words(draft.wording.answer))
        if said and not said & set(content_words(draft.context)):
            return "No word of the answer stands in the passages."
    wanted = set(content_words(draft.type.claim(draft.content)))
    known = set(content_words(draft.context))
    if len(wanted) < FEWEST_WORDS or not known:
        return None
    share = len(wanted & known) / len(wanted)
    if share >= (LEAST_SHARE_OF_CHOICES if draft.type.options and not draft.type.states else LEAST_SHARE):
        return None
    missing = sorted(wanted - known)[:4]
    return f"The passages have {share:.0%} of its words; they lack for example {', '.join(missing)}."


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


def off_topic(drafts: Sequence[Draft], encoder: Encoder) -> list[Decision | None]:
    """Rejections by the cosine to the nearest pair of neighbouring sentences of the passages, None for other drafts."""
    if not drafts:
        return []
    parts = []
    for draft in drafts:
        sentences = [split_sentences(passage.text) for passage in draft.passages]
        pairs = [" ".join(own[place : place + 2]) for own in sentences for place in range(max(1, len(own) - 1))]
        parts.append([pair for pair in pairs if pair])
    asked = encoder.encode([f"{draft.wording.question} {right_answer(draft)}".strip() for draft in drafts])
    vectors = encoder.encode([part for one in parts for part in one])
    found: list[Decision | None] = []
    for own, end, vector in zip(parts, accumulate(map(len, parts)), asked, strict=True):
        cosine = float(np.max(vectors[end - len(own) : end] @ vector, initial=-1.0))
        detail = f"The nearest part of the passages has a cosine of {cosine:.2f}, less than {LEAST_COSINE}."
        far = Decision("screen", "off topic", False, "off topic", detail, cosine)
        found.append(None if cosine >= LEAST_COSINE else far)
    return found


def not_entailed(drafts: Sequence[Draft], scorer: Entailment) -> list[Decision | None]:
    """Rejections by P(contradicts) where the scorer tells it, else by P(entails); None for drafts that pass.

    A draft for which the scorer gives no probability is undecided.
    """
    claims = {place: claim for place, draft in enumerate(drafts) if (claim := draft.type.claim(draft.content))}
    found: list[Decision | None] = [None] * len(drafts)
    if not claims:
        return found
    pairs = [(drafts[place].context, claim) for place, claim in claims.items()]
    scores: Sequence[float | None]
    if isinstance(scorer, RelationScorer):
        scores = [None if one is None else one.contradicts for one in scorer.relations(pairs)]
        sentence = "The passages contradict the answer with probability {:.2f}."
    else:
        scores = scorer.score(pairs)
        sentence = "The passages entail the answer with probability {:.2f} only."
    for place, score in zip(claims, scores, strict=True):
        if score is None:
            found[place] = Decision("screen", "not entailed", None, "failed call", "The scorer gave no probability.")
        elif score >= CONTRADICTED if isinstance(scorer, RelationScorer) else score < LEAST_ENTAILED:
            found[place] = Decision("screen", "not entailed", False, "not entailed", sentence.format(score), score)
    return found
