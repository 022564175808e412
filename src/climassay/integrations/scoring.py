"""Scores of one answer, the same in every framework: climassay's own parsers and metrics."""

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from climassay.evaluation import cloze_answer, expected_answer, freeform_answer, parse_letter
from climassay.questions import Kind, Question, option_letter

if TYPE_CHECKING:
    from climassay.metrics import Entailment

SCORES: Mapping[Kind, tuple[str, ...]] = {
    "mcq": ("accuracy",),
    "freeform": ("bleu_char", "bleu", "bert_score", "factual_accuracy", "supported"),
    "cloze": ("exact_match", "exact_match_normalised", "phrase_similarity"),
}
"""Names of the scores of each kind, as in the tables of ``climassay evaluate``."""
JUDGED = ("factual_accuracy", "supported")
"""Scores that an entailment scorer gives."""
BUNDLED_JUDGE = "bundled"
"""The entailment scorer that needs no download."""


def answer_of(question: Question, text: str) -> str:
    """What of a model's text is its answer: the letter (empty where it names none), first paragraph, first line."""
    if question.kind == "mcq":
        place = parse_letter(text, len(question.options))
        return "" if place is None else option_letter(place)
    return freeform_answer(text) if question.kind == "freeform" else cloze_answer(text)


def score_answer(
    question: Question, text: str, *, encoder: str | None = None, entailment: str | None = BUNDLED_JUDGE
) -> dict[str, float]:
    """Scores of what a model wrote after the start of its answer.

    Args:
        question: Of any kind.
        text: The model's text, as it came.
        encoder: For ``phrase_similarity``, as ``load_encoder`` takes it; the bundled one by default.
        entailment: For ``factual_accuracy`` and ``supported``, as ``load_entailment`` takes it; None leaves them out.

    Returns:
        By the names of :data:`SCORES`, each at most 1. An empty answer has 0 in all of them; a score whose own model
        failed is missing.
    """
    answer = answer_of(question, text)
    if question.kind == "mcq":
        return {"accuracy": float(bool(answer) and answer == expected_answer(question))}
    if not answer:
        left_out = JUDGED if question.kind == "freeform" and entailment is None else ()
        return {name: 0.0 for name in SCORES[question.kind] if name not in left_out}
    if question.kind == "cloze":
        return _score_cloze(question, answer, encoder)
    return _score_freeform(question, answer, entailment)


def _score_cloze(question: Question, answer: str, encoder: str | None) -> dict[str, float]:
    from climassay.metrics import exact_match, exact_match_normalised, phrase_similarity

    return {
        "exact_match": float(exact_match([question.answer], [answer])[0]),
        "exact_match_normalised": float(exact_match_normalised([question.answer], [answer])[0]),
        "phrase_similarity": phrase_similarity(question.question, question.answer, answer, encoder=encoder),
    }


def _score_freeform(question: Question, answer: str, entailment: str | None) -> dict[str, float]:
    from climassay.metrics import bert_score, bleu_each, character_bleu_each, factual_accuracy
    from climassay.metrics.entailment import supports

    references, answers = [question.answer], [answer]
    scores = {
        "bleu_char": character_bleu_each(references, answers)[0],
        "bleu": bleu_each(references, answers)[0],
        "bert_score": bert_score(references, answers).f1[0],
    }
    if entailment is not None:
        (share,) = supports(_judge(entailment), [(question.answer, answer)])
        if share is not None:
            scores |= {"factual_accuracy": factual_accuracy(share), "supported": float(share > 0.5)}
    return scores


@cache
def _judge(name: str) -> "Entailment":
    from climassay.metrics.entailment_loading import load_entailment

    return load_entailment(name)
