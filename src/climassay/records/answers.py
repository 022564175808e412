"""Answers between the contract of the models and the rows of the database."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from climassay.models.contract import Completion, FinishReason, OptionScores, ScoringMethod, Usage
from climassay.records.identity import Identity, Kind

Answer = Completion | OptionScores

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True, slots=True)
class AnsweredRequest:
    """One answer on its way into the database."""

    identity: Identity
    answer: Answer
    answered_at: float
    """Seconds since 1970, UTC."""


def storable_text(text: str) -> str:
    """The text without what databases cannot hold: NUL and lone surrogates become U+FFFD."""
    if "\x00" in text:
        text = text.replace("\x00", REPLACEMENT)
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def storable_answer(answer: Answer) -> Answer:
    """The answer in the form in which it can be stored and read back unchanged.

    A score that is not a finite number becomes a failure, since no table may carry NaN.
    """
    error = None if answer.error is None else storable_text(answer.error)
    if isinstance(answer, Completion):
        return replace(answer, text=storable_text(answer.text), error=error)
    if error is None and not all(map(math.isfinite, answer.logprobs)):
        return OptionScores.failed("The model returned a log-probability that is not a finite number.", answer.usage)
    return replace(answer, logprobs=tuple(map(float, answer.logprobs)), error=error)


def answer_columns(answer: Answer) -> dict[str, Any]:
    """The columns of ``answers`` that hold the answer itself."""
    columns: dict[str, Any] = {
        "text": None,
        "logprobs": None,
        "outcome": "error",
        "error": answer.error,
        "prompt_tokens": answer.usage.prompt_tokens,
        "completion_tokens": answer.usage.completion_tokens,
        "reasoning_tokens": answer.usage.reasoning_tokens,
        "attempts": answer.usage.requests,
        "cost": answer.usage.cost,
    }
    if answer.error is not None:
        return columns
    if isinstance(answer, Completion):
        return columns | {"text": answer.text, "outcome": answer.finish_reason}
    return columns | {"logprobs": json.dumps(answer.logprobs, allow_nan=False), "outcome": answer.method}


def answer_from_row(kind: Kind, row: Mapping[str, Any]) -> Answer:
    """Rebuild an answer without error from its row."""
    usage = Usage(row["prompt_tokens"], row["completion_tokens"], row["attempts"], row["cost"], row["reasoning_tokens"])
    if kind == "generate":
        return Completion(row["text"], cast(FinishReason, row["outcome"]), usage)
    return OptionScores(tuple(json.loads(row["logprobs"])), cast(ScoringMethod, row["outcome"]), usage)
