"""Factual accuracy: as ClimaQA computes it, and as judged by a strong model that sees the question.

ClimaQA's score is the probability that an answer supports the reference. Its judge does not see the question, so that a
true but irrelevant sentence scores near the middle. The strong judge gives its reason and one of four verdicts; an
irrelevant answer scores like a wrong one. A judge is asked for JSON; a request is repeated once if the answer breaks
the
schema.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, cast, get_args, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climassay.errors import InputError
from climassay.metrics.entailment import supports
from climassay.metrics.registry import METRICS, Answered, Batch, Metric, Scorer, metric
from climassay.models.contract import GenerationRequest, Generator, Sampling
from climassay.prompts import Prompt, RenderedPrompt, load_prompt, profile_of

T = TypeVar("T")
ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class JudgeRequest(Generic[T]):
    """A request to a judge."""

    prompt: RenderedPrompt
    schema: Mapping[str, Any]
    read: Callable[[Mapping[str, Any]], T]
    """Parses the JSON object; raises ValueError, KeyError or TypeError if it breaks the schema."""
    max_tokens: int
    """Maximum number of tokens of the answer."""


@dataclass(frozen=True, slots=True)
class JudgeFailure:
    """Failure of a judge, in place of an answer."""

    error: str
    """Error as one sentence."""


def ask_json(
    requests: Sequence[JudgeRequest[T]], model: Generator, *, seed: int = 0, temperature: float = 0.0
) -> list[T | JudgeFailure]:
    """Ask a judge; repeat once each request that fails or whose answer breaks the schema.

    Returns:
        Parsed answers in order, with failures in their place.
    """
    results: list[T | JudgeFailure] = [JudgeFailure("Not asked.")] * len(requests)
    for attempt in range(ATTEMPTS):
        pending = [index for index, result in enumerate(results) if isinstance(result, JudgeFailure)]
        if not pending:
            break
        generation_requests = [
            GenerationRequest(
                requests[index].prompt.messages,
                Sampling(max_tokens=requests[index].max_tokens, seed=seed + attempt, temperature=temperature),
                schema=requests[index].schema,
                assistant_prefix=requests[index].prompt.assistant_prefix,
            )
            for index in pending
        ]
        for index, completion in zip(pending, model.generate(generation_requests), strict=True):
            if completion.error is not None:
                results[index] = JudgeFailure(completion.error)
                continue
            try:
                results[index] = requests[index].read(json.loads(completion.text))
            except (ValueError, KeyError, TypeError, AttributeError):
                results[index] = JudgeFailure(f"The judge's answer breaks the schema: {completion.text[:80]!r}.")
    return results


JudgedVerdict = Literal["correct", "partly correct", "wrong", "beside the point"]
"""Verdicts on an answer."""
SCORES: dict[JudgedVerdict, float] = {"correct": 1.0, "partly correct": 0.5, "wrong": 0.0, "beside the point": 0.0}
"""Score of each verdict; a mean is the share of correct answers, partly correct ones counted as a half."""
_MAX_TOKENS = 400
"""Maximum number of tokens of two sentences of reason and the verdict."""
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "reason": {"type": "string", "minLength": 1, "maxLength": 1200},
        "verdict": {"type": "string", "enum": list(get_args(JudgedVerdict))},
    },
    "required": ["reason", "verdict"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class AnswerJudgement:
    """Judgement of one answer."""

    verdict: JudgedVerdict | None
    """Verdict; None if the judge failed."""
    reason: str
    """Reason in the judge's words; empty if the answer is empty or the judge failed."""
    error: str | None = None

    @property
    def score(self) -> float | None:
        """Score from 0 to 1 by :data:`SCORES`; None if the judge failed."""
        return None if self.verdict is None else SCORES[self.verdict]


def judge_answers(
    items: Sequence[tuple[str, str, str]],
    model: Generator,
    *,
    prompt: Prompt | None = None,
) -> list[AnswerJudgement]:
    """Judge answers to questions with one request each, repeated once if the answer breaks the schema.

    Args:
        items: Question, reference answer and answer of each item.
        model: A strong model.
        prompt: Template with ``question``, ``reference`` and ``answer``; the built-in ``judged_accuracy`` by default.

    Returns:
        One judgement per item, in order. An empty answer is beside the point, without a request.

    Raises:
        InputError: A question or a reference is empty, or the model is a very small one, whose verdicts are worthless;
            use such a model for factual accuracy, which reads its probabilities.
    """
    if profile_of(model).scored:
        raise InputError(
            f"{model.name} is too small to give reasons and verdicts: use a strong model as the judge, or "
            "use this model to measure factual accuracy instead."
        )
    for number, (question, reference, _) in enumerate(items, start=1):
        if not question.strip() or not reference.strip():
            raise InputError(f"Answer {number} cannot be judged: it needs a question and a reference answer.")
    template = prompt or load_prompt("judged_accuracy")

    def read(data: Mapping[str, Any]) -> AnswerJudgement:
        if data["verdict"] not in SCORES or not isinstance(data["reason"], str):
            raise ValueError
        return AnswerJudgement(data["verdict"], data["reason"].strip())

    requests: list[JudgeRequest[AnswerJudgement]] = [
        JudgeRequest(template.render(question=question, reference=reference, answer=answer), _SCHEMA, read, _MAX_TOKENS)
        for question, reference, answer in items
        if answer.strip()
    ]
    replies = ask_json(requests, model)
    pending = iter(replies)
    judgements = []
    for *_, answer in items:
        reply = next(pending) if answer.strip() else AnswerJudgement("beside the point", "")
        judgements.append(AnswerJudgement(None, "", reply.error) if isinstance(reply, JudgeFailure) else reply)
    return judgements


def judged_answers(scorer: Scorer, kind: str, items: Sequence[Answered | None]) -> list[AnswerJudgement | None]:
    """Judge answers with a scorer's judge; None in place of failed answers (None), and everywhere without a judge."""
    if scorer.judge is None or all(metric.name != "judged_accuracy" for metric in scorer.metrics(kind)):
        return [None] * len(items)
    judgements = iter(judge_answers([item for item in items if item is not None], scorer.judge))
    return [None if item is None else next(judgements) for item in items]


METRICS.add(
    "judged_accuracy",
    Metric(
        "judged_accuracy",
        "accuracy as judged",
        tested=True,
        needs="judge",
        source=lambda scorer: "" if scorer.judge is None else scorer.judge.name,
    ),
    __name__,
)


TEMPERATURE = 5.0
"""Temperature T of the paper."""
CLIP = 1e-15
"""Minimum distance of a probability from 0 and 1, so that its logit is finite."""


@overload
def factual_accuracy(p_supports: float, temperature: float = TEMPERATURE) -> float: ...
@overload
def factual_accuracy(p_supports: ArrayLike, temperature: float = TEMPERATURE) -> NDArray[np.float64]: ...
def factual_accuracy(p_supports: ArrayLike, temperature: float = TEMPERATURE) -> float | NDArray[np.float64]:
    """Return the paper's score of the probability of SUPPORTS: ``sigmoid(logit(p) / T)``.

    The score keeps the order of probabilities and their middle (0.5 to 0.5). It spreads those near 0 and 1, among which
    most answers of a large judge lie: 0.99 becomes 0.715, 0.999999 becomes 0.941.

    Args:
        p_supports: P(SUPPORTS) / (P(SUPPORTS) + P(REFUTES)), one number or an array of any shape, 0 to 1.
        temperature: T; above 1 it moves scores to the middle, 1 returns ``p``.

    Returns:
        Scores from 0 to 1, in the shape of the input. ``p`` is first clipped to 1e-15 from both ends, so that at T = 5
        scores lie between 0.0010 and 0.9990; if the judge's list of likely tokens lacks one of the two (log p =
        -100), the
        score is at this end.

    Raises:
        InputError: A probability is outside of 0 to 1 or no number, or the temperature is not positive.

    References:
        ClimaQA, section 3.2.1. The paper prints l_s / (l_s + l_r) with "logit scores": read as probabilities, which is
        what its code's softmax over the two first tokens gives.

    Notes:
        Scores of different judges are not comparable. Report the share above 0.5, which does not depend on T, with
        every
        mean.
    """
    probabilities = np.asarray(p_supports, dtype=np.float64)
    if not np.all((probabilities >= 0) & (probabilities <= 1)):
        raise InputError("Factual accuracy is a function of probabilities: numbers from 0 to 1.")
    if not (np.isfinite(temperature) and temperature > 0):
        raise InputError(f"The temperature of factual accuracy must be a positive number, not {temperature}.")
    clipped = np.clip(probabilities, CLIP, 1 - CLIP)
    log_odds = np.log(clipped) - np.log1p(-clipped)
    scores = 1 / (1 + np.exp(-log_odds / temperature))
    return float(scores) if scores.ndim == 0 else scores


def scorer_name(scorer: Scorer) -> str:
    """Return the name of the entailment scorer, for the notes of tables."""
    return "" if scorer.entailment is None else scorer.entailment.name


def _support_probabilities(batch: Batch) -> list[float | None]:
    def compute() -> list[float | None]:
        assert batch.scorer.entailment is not None
        return supports(batch.scorer.entailment, list(zip(batch.references, batch.answers, strict=True)))

    return cast("list[float | None]", batch.once("support", compute))


@metric(
    "factual_accuracy",
    "factual accuracy",
    published="factual_accuracy",
    short="FA",
    tested=True,
    needs="entailment",
    source=scorer_name,
)
def _factual_accuracy_scores(batch: Batch) -> list[float | None]:
    temperature = batch.scorer.temperature
    return [None if share is None else factual_accuracy(share, temperature) for share in _support_probabilities(batch)]


@metric("supported", "supported", binary=True, needs="entailment", source=scorer_name)
def _supported_scores(batch: Batch) -> list[float | None]:
    return [None if share is None else float(share > 0.5) for share in _support_probabilities(batch)]
