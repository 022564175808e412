"""Factual accuracy of answers: as ClimaQA computes it, and as a strong model judges it that sees the question.

ClimaQA's score is the probability that an answer supports the reference. Its judge does not see the question, so that a
true sentence beside the point lands near the middle. The strong judge gives its reason and then one of four verdicts,
and an answer beside the point scores as a wrong one does. A judge is asked for JSON: every request once, and once more
where its answer breaks the schema.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, cast, get_args, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climassay.errors import InputError
from climassay.metrics.entailment import Entailment, supports
from climassay.metrics.registry import METRICS, Answered, Batch, Metric, Scorer, metric
from climassay.models.contract import GenerationRequest, Generator, Sampling
from climassay.prompts import Prompt, RenderedPrompt, load_prompt, profile_of

T = TypeVar("T")
ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class JudgeRequest(Generic[T]):
    """One question to a judge."""

    prompt: RenderedPrompt
    schema: Mapping[str, Any]
    read: Callable[[Mapping[str, Any]], T]
    """From the JSON object to what is kept; ValueError, KeyError or TypeError where it is not as asked for."""
    tokens: int
    """Room for the answer."""


@dataclass(frozen=True, slots=True)
class JudgeFailure:
    """In place of an answer that a judge did not give."""

    error: str
    """One sentence."""


def ask_json(
    requests: Sequence[JudgeRequest[T]], model: Generator, *, seed: int = 0, temperature: float = 0.0
) -> list[T | JudgeFailure]:
    """Ask a judge; an answer that fails or breaks the schema is asked for once more.

    Returns:
        What was read of each answer, in order; failures in their place.
    """
    result: list[T | JudgeFailure] = [JudgeFailure("Not asked.")] * len(requests)
    left = list(range(len(requests)))
    for attempt in range(ATTEMPTS):
        if not left:
            break
        asked = [
            GenerationRequest(
                requests[place].prompt.messages,
                Sampling(max_tokens=requests[place].tokens, seed=seed + attempt, temperature=temperature),
                schema=requests[place].schema,
                assistant_prefix=requests[place].prompt.assistant_prefix,
            )
            for place in left
        ]
        for place, completion in zip(left, model.generate(asked), strict=True):
            if completion.error is not None:
                result[place] = JudgeFailure(completion.error)
                continue
            try:
                result[place] = requests[place].read(json.loads(completion.text))
            except (ValueError, KeyError, TypeError, AttributeError):
                result[place] = JudgeFailure(
                    f"The judge's answer is not of the form asked for: {completion.text[:80]!r}."
                )
        left = [place for place in left if isinstance(result[place], JudgeFailure)]
    return result


JudgedVerdict = Literal["correct", "partly correct", "wrong", "beside the point"]
"""What an answer can be."""
SCORES: dict[JudgedVerdict, float] = {"correct": 1.0, "partly correct": 0.5, "wrong": 0.0, "beside the point": 0.0}
"""Score of each verdict; a mean is the share of answers that are right, with halves for those that partly are."""
_ROOM = 400
"""Tokens for two sentences of reason and the verdict."""
_VALUES = ("question", "reference", "answer")
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
    """What a judge says about one answer."""

    verdict: JudgedVerdict | None
    """None where the judge failed."""
    reason: str
    """In the judge's words; empty for an answer that is empty, and where the judge failed."""
    error: str | None = None

    @property
    def score(self) -> float | None:
        """From 0 to 1 by :data:`SCORES`; None where the judge failed."""
        return None if self.verdict is None else SCORES[self.verdict]


def judge_answers(
    items: Sequence[tuple[str, str, str]],
    model: Generator,
    *,
    prompt: Prompt | None = None,
) -> list[AnswerJudgement]:
    """Judge answers to questions, one call per answer; one that breaks the schema is asked once more.

    Args:
        items: Question, reference answer, and the answer to be judged.
        model: A strong model.
        prompt: Template with ``question``, ``reference`` and ``answer``; the built-in ``judged_accuracy`` by default.

    Returns:
        One judgement per item, in order; failures in their place. An empty answer is beside the point, and nobody is
        asked.

    Raises:
        InputError: A question or a reference is empty, or the model is a very small one, whose reasons and verdicts say
            nothing: factual accuracy reads the probabilities of such a judge instead.
    """
    if profile_of(model).scored:
        raise InputError(
            f"{model.name} is too small to give reasons and verdicts: use a strong model as the judge, or "
            "use this model to measure factual accuracy instead."
        )
    for place, (question, reference, _) in enumerate(items, start=1):
        if not question.strip() or not reference.strip():
            raise InputError(f"Answer {place} cannot be judged: it needs a question and a reference answer.")
    template = prompt or load_prompt("judged_accuracy")

    def read(data: Mapping[str, Any]) -> AnswerJudgement:
        if data["verdict"] not in SCORES or not isinstance(data["reason"], str):
            raise ValueError
        return AnswerJudgement(data["verdict"], data["reason"].strip())

    results = [AnswerJudgement("beside the point", "") if not answer.strip() else None for *_, answer in items]
    left = [place for place, one in enumerate(results) if one is None]
    requests: list[JudgeRequest[AnswerJudgement]] = [
        JudgeRequest(template.render(**dict(zip(_VALUES, items[place], strict=True))), _SCHEMA, read, _ROOM)
        for place in left
    ]
    answers = ask_json(requests, model)
    for place, said in zip(left, answers, strict=True):
        results[place] = AnswerJudgement(None, "", said.error) if isinstance(said, JudgeFailure) else said
    return [one for one in results if one is not None]


def judged_answers(scorer: Scorer, kind: str, items: Sequence[Answered | None]) -> list[AnswerJudgement | None]:
    """What a scorer's judge says about every answer; None without a judge, and for answers that failed (None)."""
    result: list[AnswerJudgement | None] = [None] * len(items)
    places = [place for place, item in enumerate(items) if item is not None]
    if scorer.judge is not None and any(one.name == "judged_accuracy" for one in scorer.metrics(kind)):
        asked = [item for item in items if item is not None]
        for place, judgement in zip(places, judge_answers(asked, scorer.judge), strict=True):
            result[place] = judgement
    return result


METRICS.add(
    "judged_accuracy",
    Metric(
        "judged_accuracy",
        "accuracy as judged",
        ("freeform",),
        tested=True,
        needs="judge",
        source=lambda scorer: "" if scorer.judge is None else scorer.judge.name,
    ),
    __name__,
)


TEMPERATURE = 5.0
"""The paper's T."""
CLIP = 1e-15
"""Probabilities are kept between this and 1 minus this: the logit of what a float can tell from 1 stays finite."""


@overload
def factual_accuracy(p_supports: float, temperature: float = TEMPERATURE) -> float: ...
@overload
def factual_accuracy(p_supports: ArrayLike, temperature: float = TEMPERATURE) -> NDArray[np.float64]: ...
def factual_accuracy(p_supports: ArrayLike, temperature: float = TEMPERATURE) -> float | NDArray[np.float64]:
    """The paper's score from the probability of SUPPORTS: ``sigmoid(logit(p) / T)``.

    It keeps the order of probabilities and their middle (0.5 to 0.5), and draws apart those near 0 and 1, among which
    most answers of a large judge lie: 0.99 becomes 0.715, 0.999999 becomes 0.941.

    Args:
        p_supports: P(SUPPORTS) / (P(SUPPORTS) + P(REFUTES)), one number or an array of any shape, 0 to 1.
        temperature: T; above 1 it draws scores to the middle. 1 gives ``p`` back.

    Returns:
        0 to 1, in the shape given. ``p`` is first clipped to 1e-15 from both ends, so that at T = 5 scores lie between
        0.0010 and 0.9990; where the judge's list of likely tokens lacks one of the two (log p = -100), the score is at
        this end.

    Raises:
        InputError: A probability outside 0 to 1 or no number, or a temperature that is not positive.

    References:
        ClimaQA, section 3.2.1. The paper prints l_s / (l_s + l_r) with "logit scores": read as probabilities, which is
        what its code's softmax over the two first tokens gives.

    Notes:
        A probability of one judge: scores of different judges are not comparable, and the share above 0.5, which does
        not depend on T, belongs beside every mean.
    """
    given = np.asarray(p_supports, dtype=np.float64)
    if not np.all((given >= 0) & (given <= 1)):
        raise InputError("Factual accuracy is a function of probabilities: numbers from 0 to 1.")
    if not (np.isfinite(temperature) and temperature > 0):
        raise InputError(f"The temperature of factual accuracy must be a positive number, not {temperature}.")
    clipped = np.clip(given, CLIP, 1 - CLIP)
    log_odds = np.log(clipped) - np.log1p(-clipped)
    scores = 1 / (1 + np.exp(-log_odds / temperature))
    return float(scores) if scores.ndim == 0 else scores


def factual_accuracies(
    references: Sequence[str], answers: Sequence[str], scorer: Entailment, temperature: float = TEMPERATURE
) -> list[float | None]:
    """Factual accuracy of each answer; the reference answer is the evidence, the answer is the claim.

    Returns:
        One score per answer; None where the judge failed. An empty answer scores 0: it supports nothing.

    Raises:
        InputError: Another number of answers than of references.
    """
    if len(references) != len(answers):
        raise InputError(f"{len(answers)} answers cannot be compared with {len(references)} references.")
    asked = [place for place, answer in enumerate(answers) if answer.strip()]
    shares = supports(scorer, [(references[place], answers[place]) for place in asked])
    result: list[float | None] = [0.0] * len(answers)
    for place, share in zip(asked, shares, strict=True):
        result[place] = None if share is None else factual_accuracy(share, temperature)
    return result


def scorer_name(scorer: Scorer) -> str:
    """The entailment scorer's name, for the notes of tables."""
    return "" if scorer.entailment is None else scorer.entailment.name


def _support(batch: Batch) -> list[float | None]:
    def compute() -> list[float | None]:
        assert batch.scorer.entailment is not None
        return supports(batch.scorer.entailment, list(zip(batch.references, batch.answers, strict=True)))

    return cast("list[float | None]", batch.once("support", compute))


@metric(
    "factual_accuracy",
    "factual accuracy",
    kinds=["freeform"],
    published="factual_accuracy",
    short="FA",
    tested=True,
    needs="entailment",
    source=scorer_name,
)
def _factual_accuracy_scores(batch: Batch) -> list[float | None]:
    temperature = batch.scorer.temperature
    return [None if share is None else factual_accuracy(share, temperature) for share in _support(batch)]


@metric("supported", "supported", kinds=["freeform"], binary=True, needs="entailment", source=scorer_name)
def _supported_scores(batch: Batch) -> list[float | None]:
    return [None if share is None else float(share > 0.5) for share in _support(batch)]
