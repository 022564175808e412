"""Factual accuracy as a strong model judges it: it sees the question, gives its reason, and then one of four verdicts.

The score of ClimaQA (:mod:`climassay.metrics.factual_accuracy`) is the probability that an answer supports the
reference. Its judge does not see the question, so that a true sentence beside the point lands near the middle. Here
an answer that is beside the point scores as a wrong one does.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from climassay.errors import InputError
from climassay.metrics.registry import METRICS, Metric
from climassay.models.contract import Completion, GenerationRequest, Generator, Sampling
from climassay.models.profiles import profile_of
from climassay.prompts import Prompt, load_prompt

JudgedVerdict = Literal["correct", "partly correct", "wrong", "beside the point"]
"""What an answer can be."""
SCORES: dict[JudgedVerdict, float] = {"correct": 1.0, "partly correct": 0.5, "wrong": 0.0, "beside the point": 0.0}
"""Score of each verdict; a mean is the share of answers that are right, with halves for those that partly are."""
_ROOM = 400
"""Tokens for two sentences of reason and the verdict."""
_ATTEMPTS = 2
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
class Judgement:
    """What a judge says about one answer."""

    verdict: JudgedVerdict | None
    """None where the judge failed."""
    reason: str
    """In the judge's words; empty for an answer that is empty, and where the judge failed."""
    error: str | None = None
    """Why there is no verdict; None when there is one."""

    @property
    def score(self) -> float | None:
        """From 0 to 1 by :data:`SCORES`; None where the judge failed."""
        return None if self.verdict is None else SCORES[self.verdict]


def judge_answers(
    items: Sequence[tuple[str, str, str]],
    model: Generator,
    *,
    prompt: Prompt | None = None,
    max_tokens: int = _ROOM,
    on_result: Callable[[int], None] | None = None,
) -> list[Judgement]:
    """Judge answers to questions, one call an answer; one that breaks the schema is asked once more.

    Args:
        items: Question, reference answer, and the answer to be judged.
        model: A strong model.
        prompt: Template with ``question``, ``reference`` and ``answer``; the built-in ``judged_accuracy`` by default.
        max_tokens: Room for reason and verdict.
        on_result: Told the number of answers that were asked about, after each round.

    Returns:
        One judgement an item, in order; failures in their place. An empty answer is beside the point, and nobody is
        asked.

    Raises:
        InputError: A question or a reference is empty, or the model is a very small one, whose reasons and verdicts say
            nothing: factual accuracy reads the probabilities of such a judge instead.
    """
    if profile_of(model).scored:
        raise InputError(
            f"{model.name} is too small to give reasons and verdicts: take a strong model as the judge, or measure "
            "factual accuracy with it."
        )
    for place, (question, reference, _) in enumerate(items, start=1):
        if not question.strip() or not reference.strip():
            raise InputError(f"Answer {place} cannot be judged: it needs a question and a reference answer.")
    template = prompt or load_prompt("judged_accuracy")
    found = [Judgement("beside the point", "") if not answer.strip() else None for *_, answer in items]
    left = [place for place, one in enumerate(found) if one is None]
    for attempt in range(_ATTEMPTS):
        requests = []
        for place in left:
            question, reference, answer = items[place]
            rendered = template.render(question=question, reference=reference, answer=answer)
            sampling = Sampling(max_tokens=max_tokens, seed=attempt)
            requests.append(
                GenerationRequest(
                    rendered.messages, sampling, assistant_prefix=rendered.assistant_prefix, schema=_SCHEMA
                )
            )
        for place, completion in zip(left, model.generate(requests) if requests else (), strict=True):
            found[place] = _read(completion)
        if on_result is not None:
            on_result(len(left))
        left = [place for place in left if (one := found[place]) is not None and one.verdict is None]
    return [one for one in found if one is not None]


def _read(completion: Completion) -> Judgement:
    if completion.error is not None:
        return Judgement(None, "", completion.error)
    try:
        data = json.loads(completion.text)
    except ValueError:
        return Judgement(None, "", f"The judge's answer is no JSON: {completion.text[:80]!r}.")
    verdict = data.get("verdict") if isinstance(data, dict) else None
    reason = data.get("reason") if isinstance(data, dict) else None
    if verdict not in SCORES or not isinstance(reason, str):
        return Judgement(None, "", f"The judge's answer has no reason or no known verdict: {completion.text[:80]!r}.")
    return Judgement(verdict, reason.strip())


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
