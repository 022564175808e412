"""Scores of one answer, the same in every framework: climassay's own parsers and metrics."""

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from climassay.evaluation import expected_answer
from climassay.metrics import sentence_encoder
from climassay.metrics.registry import METRICS, Answered, Scorer, metrics_for
from climassay.models.encoder import BUNDLED_ENCODER
from climassay.questions import KINDS, Kind, Question

if TYPE_CHECKING:
    from climassay.metrics import Entailment

SCORES: Mapping[Kind, tuple[str, ...]] = {
    kind: tuple(one.name for one in metrics_for(kind) if one.needs in ("", "entailment")) for kind in KINDS
}
"""Names of the scores of each kind, as in the tables of ``climassay evaluate``."""
JUDGED = tuple(name for name in SCORES["freeform"] if METRICS[name].needs)
"""Scores that an entailment scorer gives."""
BUNDLED_JUDGE = "bundled"
"""The entailment scorer that needs no download."""


def answer_of(question: Question, text: str) -> str:
    """What of a model's text is its answer: the letter (empty where it names none), first paragraph, first line."""
    if question.type.options:
        place = question.type.choice(text, len(question.options))
        return "" if place is None else question.type.labels(question.options)[place]
    return question.type.answer(text)


def score_answer(
    question: Question, text: str, *, encoder: str | None = None, entailment: str | None = BUNDLED_JUDGE
) -> dict[str, float]:
    """Scores of what a model wrote after the start of its answer.

    Args:
        question: A question of any kind.
        text: The model's text, as it came.
        encoder: For ``phrase_similarity``, as ``load_encoder`` takes it; the bundled one by default.
        entailment: For ``factual_accuracy`` and ``supported``, as ``load_entailment`` takes it; None leaves them out.

    Returns:
        By the names of :data:`SCORES`, each at most 1. An empty answer has 0 in all of them; a score whose own model
        failed is missing.
    """
    answer = answer_of(question, text)
    if question.type.options:
        return {"accuracy": float(bool(answer) and answer == expected_answer(question))}
    scorer = Scorer(
        sentence_encoder(encoder) if question.type.gap else BUNDLED_ENCODER,
        entailment=None if entailment is None or question.type.gap else _judge(entailment),
    )
    (scores,) = scorer.score(question.kind, [Answered(question.question, question.answer, answer)])
    return scores


@cache
def _judge(name: str) -> "Entailment":
    from climassay.metrics.entailment_loading import load_entailment

    return load_entailment(name)
