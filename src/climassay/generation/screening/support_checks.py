"""Checks that the passages support a question, by numbers, units and words or by a model."""

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from climassay.corpus.sentences import split_sentences
from climassay.generation.draft import Decision, Draft
from climassay.generation.screening.check import check, content_words, correct_answer
from climassay.grounding.quantities import find_foreign_quantities, find_quantities
from climassay.metrics import Entailment, RelationScorer
from climassay.models.contract import Encoder
from climassay.questions import KINDS

MIN_SUPPORT, MIN_SUPPORT_OF_CHOICES = 0.4, 0.25
"""Minimum proportion of a claim's content words that must occur in the passages, in general and for multiple choice.

The claim is a statement, or a question with its correct answer. Supported questions paraphrase their passages, but use
the same terms; see docs/results/screening.md.
"""
MIN_CONTENT_WORDS = 3
"""Minimum number of content words of a claim to which :data:`MIN_SUPPORT` applies."""
_KIND_OF_RATE = {"yr": "time", "d": "days", "K": "temperature"}


@check(
    "foreign quantity",
    KINDS,
    "Has a number or unit that the passages do not have (evolved levels: a unit of neither passages nor question).",
)
def _describe_foreign_quantity(draft: Draft) -> str | None:
    """Describe the numbers and units of a draft that do not occur in its passages.

    Questions of higher levels may make assumptions. In their answers, numbers are ignored, and units are reported if
    they occur neither in the passages nor in the question.
    """
    texts = [passage.text for passage in draft.passages]
    if not texts:
        return None
    question, answer = draft.wording.question, correct_answer(draft)
    if draft.level == "base" or not draft.type.has_levels:
        absent_quantities = find_foreign_quantities(draft.type.claim(draft.content), texts)
        return f"The passages do not have {', '.join(absent_quantities)}." if absent_quantities else None
    units = [quantity.unit for text in (*texts, question) for quantity in find_quantities(text) if quantity.unit]
    # A rate per year or per kelvin allows an answer in years or kelvins.
    kinds = {_KIND_OF_RATE.get(unit.rate, "") for unit in units}
    foreign_quantity_texts = [
        quantity.text
        for quantity in find_quantities(answer)
        if quantity.unit
        and quantity.unit.kind.partition(":")[0] not in kinds
        and not any(quantity.unit.is_kind_of(unit) for unit in units)
    ]
    return (
        f"Neither passages nor question have the unit of {', '.join(foreign_quantity_texts)}."
        if foreign_quantity_texts
        else None
    )


@check("unsupported answer", KINDS, "Shares too few words with the passages to be supported by them.")
def _describe_missing_support(draft: Draft) -> str | None:
    if draft.type.is_prose and not any(letter.isdigit() for letter in draft.wording.answer):
        answer_words = set(content_words(draft.wording.answer))
        if answer_words and not answer_words & set(content_words(draft.context)):
            return "The passages have no word of the answer."
    claim_words = set(content_words(draft.type.claim(draft.content)))
    context_words = set(content_words(draft.context))
    if len(claim_words) < MIN_CONTENT_WORDS or not context_words:
        return None
    support = len(claim_words & context_words) / len(claim_words)
    if support >= (MIN_SUPPORT_OF_CHOICES if draft.type.has_options and not draft.type.is_statement else MIN_SUPPORT):
        return None
    missing_words = sorted(claim_words - context_words)[:4]
    return f"The passages have {support:.0%} of its words; for example, they lack {', '.join(missing_words)}."


MIN_COSINE = 0.45
"""Minimum cosine similarity, by the bundled encoder, between question and answer and the most similar part of the
passages."""
MIN_ENTAILMENT = 0.5
"""Minimum probability that the passages entail the claim, for scorers of two classes."""
MAX_CONTRADICTION = 0.5
"""A draft is rejected if the probability that the passages contradict its claim is at least this value (scorers of
three classes only)."""
MODEL_CHECKS: dict[str, str] = {
    "off topic": "Question and answer are far from everything in the passages (needs an encoder).",
    "not entailed": "The passages contradict the answer, or do not entail it (needs an entailment scorer).",
}


def check_topic(drafts: Sequence[Draft], encoder: Encoder) -> list[Decision | None]:
    """Return for each draft a rejection if it is ``off topic``, else None.

    A draft is off topic if its question and answer are dissimilar to every two adjacent sentences of its passages.
    """
    if not drafts:
        return []
    parts = []
    for draft in drafts:
        pairs = []
        for passage in draft.passages:
            sentences = split_sentences(passage.text)
            pairs += [" ".join(sentences[start : start + 2]) for start in range(max(1, len(sentences) - 1))]
        parts.append([pair for pair in pairs if pair])
    draft_vectors = encoder.encode([f"{draft.wording.question} {correct_answer(draft)}".strip() for draft in drafts])
    part_vectors = encoder.encode([part for draft_parts in parts for part in draft_parts])
    results: list[Decision | None] = []
    for draft_parts, end, vector in zip(parts, accumulate(map(len, parts)), draft_vectors, strict=True):
        cosine = float(np.max(part_vectors[end - len(draft_parts) : end] @ vector, initial=-1.0))
        detail = f"The nearest part of the passages has a cosine of {cosine:.2f}, less than {MIN_COSINE}."
        rejection = Decision("screen", "off topic", False, "off topic", detail, cosine)
        results.append(None if cosine >= MIN_COSINE else rejection)
    return results


def check_entailment(drafts: Sequence[Draft], scorer: Entailment) -> list[Decision | None]:
    """Return for each draft a rejection if it is ``not entailed`` by its passages, else None.

    A scorer of three classes rejects drafts whose claims contradict the passages, a scorer of two classes drafts whose
    claims are not entailed. If the scorer gives no probability, the decision leaves the draft undecided.
    """
    claims = {index: claim for index, draft in enumerate(drafts) if (claim := draft.type.claim(draft.content))}
    results: list[Decision | None] = [None] * len(drafts)
    if not claims:
        return results
    pairs = [(drafts[index].context, claim) for index, claim in claims.items()]
    scores: Sequence[float | None]
    if isinstance(scorer, RelationScorer):
        relations = scorer.relations(pairs)
        scores = [None if relation is None else relation.contradicts for relation in relations]
        sentence = "The passages contradict the answer with probability {:.2f}."
    else:
        scores = scorer.score(pairs)
        sentence = "The passages entail the answer only with probability {:.2f}."
    for index, score in zip(claims, scores, strict=True):
        if score is None:
            results[index] = Decision("screen", "not entailed", None, "failed call", "The scorer gave no probability.")
        elif score >= MAX_CONTRADICTION if isinstance(scorer, RelationScorer) else score < MIN_ENTAILMENT:
            results[index] = Decision("screen", "not entailed", False, "not entailed", sentence.format(score), score)
    return results
