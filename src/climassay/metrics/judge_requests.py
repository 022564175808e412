"""Asking a judge for JSON: every request once, and once more where its answer breaks the schema."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from climassay.models.contract import GenerationRequest, Generator, Sampling
from climassay.prompts import RenderedPrompt

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
    found: list[T | JudgeFailure] = [JudgeFailure("Not asked.")] * len(requests)
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
                found[place] = JudgeFailure(completion.error)
                continue
            try:
                found[place] = requests[place].read(json.loads(completion.text))
            except (ValueError, KeyError, TypeError, AttributeError):
                found[place] = JudgeFailure(
                    f"The judge's answer is not of the form asked for: {completion.text[:80]!r}."
                )
        left = [place for place in left if isinstance(found[place], JudgeFailure)]
    return found
