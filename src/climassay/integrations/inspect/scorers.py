"""Inspect scorers that parse and measure answers as climassay does."""

from inspect_ai.scorer import (
    CORRECT,
    INCORRECT,
    Score,
    Scorer,
    Target,
    accuracy,
    grouped,
    mean,
    scorer,
    stderr,
)
from inspect_ai.solver import TaskState

from climassay.errors import InputError
from climassay.integrations.inspect.samples import question_of
from climassay.integrations.scoring import BUNDLED_JUDGE, answer_of, score_answer
from climassay.questions import Question

LEVEL = "level"
"""Key of a sample's metadata by which scores are grouped; ``none`` where a question has no level."""


@scorer(metrics=[grouped(accuracy(), LEVEL), stderr()])
def answer_letter() -> Scorer:
    """Right or wrong by the option letter that the model wrote; an answer that names none is wrong."""

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001 - the protocol's name
        question = _question(state)
        text = state.output.completion
        letter = answer_of(question, text)
        right = score_answer(question, text)["accuracy"] == 1.0
        return Score(
            value=CORRECT if right else INCORRECT,
            answer=letter,
            explanation=text,
            reason=None if letter else "invalid_response_format",
        )

    return score


@scorer(metrics={"*": [grouped(mean(), LEVEL), stderr()]})
def cloze_scores(encoder: str | None = None) -> Scorer:
    """Exact match, raw and normalised, and phrase similarity of the word that the model wrote.

    Args:
        encoder: Of phrase similarity, as climassay names it (``local:minilm``, the bundled one, by default).
    """

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001 - the protocol's name
        question = _question(state)
        text = state.output.completion
        return _several(question, text, score_answer(question, text, encoder=encoder))

    return score


@scorer(metrics={"*": [grouped(mean(), LEVEL), stderr()]})
def freeform_scores(entailment: str | None = BUNDLED_JUDGE) -> Scorer:
    """BLEU over characters and words, BERTScore and factual accuracy of an answer in one or two sentences.

    Args:
        entailment: Judge of factual accuracy, as ``climassay metrics entailment evaluate`` names it; ``none`` leaves
            its scores out.
    """
    judge = None if entailment == "none" else entailment

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001 - the protocol's name
        question = _question(state)
        text = state.output.completion
        scores = score_answer(question, text, entailment=judge)
        if judge is not None and "factual_accuracy" not in scores:
            # Inspect wants the same keys of every sample: a judge that failed must not pass for a score.
            raise InputError(f"The judge {judge} gave no answer for {question.id}: run the sample again.")
        return _several(question, text, scores)

    return score


def _question(state: TaskState) -> Question:
    return question_of(state.metadata)


def _several(question: Question, text: str, scores: dict[str, float]) -> Score:
    return Score(value=dict(scores), answer=answer_of(question, text), explanation=text)
