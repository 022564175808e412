"""Factual accuracy: as ClimaQA computes it, and as judged by a model that sees the question.

ClimaQA's score is the probability that an answer supports the reference. Its judge does not see the question, so that a
true but irrelevant sentence scores near the middle. The judge that sees the question gives its reason and one of four
verdicts; an irrelevant answer scores like a wrong one. A judge is asked for JSON; a request is repeated once if the
answer does not match the schema.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, cast, get_args, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climassay.errors import InputError
from climassay.metrics.entailment import supports
from climassay.metrics.registry import METRICS, AnswerItem, Batch, Metric, Scorer, metric
from climassay.models.contract import GenerationRequest, Generator, Sampling
from climassay.prompts import Prompt, RenderedPrompt, load_prompt

T = TypeVar("T")
ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class JudgeRequest(Generic[T]):
    """Request to a judge for a JSON object."""

    prompt: RenderedPrompt
    schema: Mapping[str, Any]
    parse: Callable[[Mapping[str, Any]], T]
    """Function that converts the JSON object to a result. It raises ValueError, KeyError or TypeError if the object
    does not match the schema."""
    max_tokens: int
    """Maximum number of tokens of the answer."""


@dataclass(frozen=True, slots=True)
class JudgeFailure:
    """Failure of a judge, in place of its answer."""

    error: str
    """Description of the error, as a sentence."""


def ask_json(
    requests: Sequence[JudgeRequest[T]], model: Generator, *, seed: int = 0, temperature: float = 0.0
) -> list[T | JudgeFailure]:
    """Send requests to a judge. Repeat a request once if it fails or its answer does not match the schema.

    Returns:
        Results in the order of the requests, with failures in the place of missing results.
    """
    results: list[T | JudgeFailure] = [JudgeFailure("Not asked.")] * len(requests)
    for attempt in range(ATTEMPTS):
        pending_indices = [index for index, result in enumerate(results) if isinstance(result, JudgeFailure)]
        if not pending_indices:
            break
        generation_requests = [
            GenerationRequest(
                requests[index].prompt.messages,
                Sampling(max_tokens=requests[index].max_tokens, seed=seed + attempt, temperature=temperature),
                schema=requests[index].schema,
                assistant_prefix=requests[index].prompt.assistant_prefix,
            )
            for index in pending_indices
        ]
        for index, completion in zip(pending_indices, model.generate(generation_requests), strict=True):
            if completion.error is not None:
                results[index] = JudgeFailure(completion.error)
                continue
            try:
                results[index] = requests[index].parse(json.loads(completion.text))
            except (ValueError, KeyError, TypeError, AttributeError):
                results[index] = JudgeFailure(f"The judge's answer breaks the schema: {completion.text[:80]!r}.")
    return results


JudgedVerdict = Literal["correct", "partly correct", "wrong", "beside the point"]
"""Verdict of a judge on an answer."""
SCORES: dict[JudgedVerdict, float] = {"correct": 1.0, "partly correct": 0.5, "wrong": 0.0, "beside the point": 0.0}
"""Score of each verdict; the mean is the proportion of correct answers, where a partly correct answer counts as
half."""
_MAX_TOKENS = 400
"""Maximum number of tokens in a judgement, which consists of a reason of two sentences and a verdict."""
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
    """Reason for the verdict in the judge's words; empty if the answer is empty or the judge failed."""
    error: str | None = None

    @property
    def score(self) -> float | None:
        """Score of the verdict (:data:`SCORES`), from 0 to 1; None if the judge failed."""
        return None if self.verdict is None else SCORES[self.verdict]


def judge_answers(
    items: Sequence[tuple[str, str, str]],
    model: Generator,
    *,
    prompt: Prompt | None = None,
) -> list[AnswerJudgement]:
    """Judge answers against their reference answers, with a request for each answer (:func:`ask_json`).

    Args:
        items: Question, reference answer and answer of each item.
        model: Model that judges.
        prompt: Template with the values ``question``, ``reference`` and ``answer``; the built-in ``judged_accuracy`` by
            default.

    Returns:
        One judgement per item, in order. An empty answer is "beside the point", without a request.

    Raises:
        InputError: A question or a reference is empty.
    """
    for position, (question, reference, _) in enumerate(items, start=1):
        if not question.strip() or not reference.strip():
            raise InputError(f"Answer {position} cannot be judged: it needs a question and a reference answer.")
    template = prompt or load_prompt("judged_accuracy")

    def parse(data: Mapping[str, Any]) -> AnswerJudgement:
        if data["verdict"] not in SCORES or not isinstance(data["reason"], str):
            raise ValueError
        return AnswerJudgement(data["verdict"], data["reason"].strip())

    requests: list[JudgeRequest[AnswerJudgement]] = [
        JudgeRequest(
            template.render(question=question, reference=reference, answer=answer), _SCHEMA, parse, _MAX_TOKENS
        )
        for question, reference, answer in items
        if answer.strip()
    ]
    results = ask_json(requests, model)
    result_iterator = iter(results)
    judgements = []
    for *_, answer in items:
        result = next(result_iterator) if answer.strip() else AnswerJudgement("beside the point", "")
        judgements.append(AnswerJudgement(None, "", result.error) if isinstance(result, JudgeFailure) else result)
    return judgements


def judge_with_scorer(scorer: Scorer, kind: str, items: Sequence[AnswerItem | None]) -> list[AnswerJudgement | None]:
    """Judge answers with a scorer's judge; return None for items that are None, and for all items without a judge."""
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
"""Temperature T in the ClimaQA paper."""
CLIP = 1e-15
"""Minimum distance of clipped probabilities from 0 and 1, which keeps logits finite."""


@overload
def factual_accuracy(p_supports: float, temperature: float = TEMPERATURE) -> float: ...
@overload
def factual_accuracy(p_supports: ArrayLike, temperature: float = TEMPERATURE) -> NDArray[np.float64]: ...
def factual_accuracy(p_supports: ArrayLike, temperature: float = TEMPERATURE) -> float | NDArray[np.float64]:
    """Convert probabilities of SUPPORTS to the scores of the ClimaQA paper: ``sigmoid(logit(p) / T)``.

    The scores preserve the order of the probabilities, and 0.5 stays 0.5. They spread the probabilities near 0 and 1,
    where most answers of a large judge lie: 0.99 becomes 0.715, and 0.999999 becomes 0.941.

    Args:
        p_supports: P(SUPPORTS) / (P(SUPPORTS) + P(REFUTES)), from 0 to 1: a number, or an array of any shape.
        temperature: Temperature T; values above 1 move scores towards 0.5, and 1 returns ``p_supports``.

    Returns:
        Scores from 0 to 1, in the shape of the input. Probabilities are clipped to [1e-15, 1 - 1e-15], so that scores
        at T = 5 lie between 0.0010 and 0.9990. If one of the two words is missing in a judge's list of likely tokens
        (log p = -100), the score is one of these bounds.

    Raises:
        InputError: A probability is not a number from 0 to 1, or the temperature is not positive.

    References:
        ClimaQA, section 3.2.1. The paper prints l_s / (l_s + l_r) with "logit scores". Here, l_s and l_r are
        probabilities, because the paper's code applies a softmax over the first tokens of the two words.

    Notes:
        Scores of different judges cannot be compared. With a mean score, report the proportion of scores above 0.5,
        which does not depend on T.
    """
    probabilities = np.asarray(p_supports, dtype=np.float64)
    if not np.all((probabilities >= 0) & (probabilities <= 1)):
        raise InputError("Factual accuracy is a function of probabilities: numbers from 0 to 1.")
    if not (np.isfinite(temperature) and temperature > 0):
        raise InputError(f"The temperature of factual accuracy must be a positive number, not {temperature}.")
    clipped_probabilities = np.clip(probabilities, CLIP, 1 - CLIP)
    log_odds = np.log(clipped_probabilities) - np.log1p(-clipped_probabilities)
    scores = 1 / (1 + np.exp(-log_odds / temperature))
    return float(scores) if scores.ndim == 0 else scores


def scorer_name(scorer: Scorer) -> str:
    """Return the name of a scorer's entailment scorer, for the notes of tables; empty if it has none."""
    return "" if scorer.entailment is None else scorer.entailment.name


def _compute_support(batch: Batch) -> list[float | None]:
    def compute() -> list[float | None]:
        assert batch.scorer.entailment is not None
        return supports(batch.scorer.entailment, list(zip(batch.references, batch.answers, strict=True)))

    return cast("list[float | None]", batch.compute_once("support", compute))


@metric(
    "factual_accuracy",
    "factual accuracy",
    published="factual_accuracy",
    short="FA",
    tested=True,
    needs="entailment",
    source=scorer_name,
)
def _score_factual_accuracy(batch: Batch) -> list[float | None]:
    temperature = batch.scorer.temperature
    return [
        None if probability is None else factual_accuracy(probability, temperature)
        for probability in _compute_support(batch)
    ]


@metric("supported", "supported", binary=True, needs="entailment", source=scorer_name)
def _score_supported(batch: Batch) -> list[float | None]:
    return [None if probability is None else float(probability > 0.5) for probability in _compute_support(batch)]
