"""Requests and answers as the records know them: what makes a request the same request, and what is stored of both."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Protocol, cast, runtime_checkable

from climassay.models.contract import (
    Completion,
    FinishReason,
    GenerationRequest,
    Message,
    OptionRequest,
    OptionScores,
    ScoringMethod,
    Usage,
)

Kind = Literal["generate", "options"]


class Renderer(Protocol):
    """The part of a model that decides what a request is."""

    @property
    def name(self) -> str:
        """As the user wrote it; kept for the reader, not part of the key."""

    @property
    def fingerprint(self) -> str:
        """Over all that decides what the model answers."""

    def render(self, messages: Sequence[Message], assistant_prefix: str = "") -> str:
        """The prompt as the model receives it."""


@runtime_checkable
class HasEarlierFingerprints(Protocol):
    """A model whose answers may be stored under fingerprints that earlier versions gave it."""

    @property
    def earlier_fingerprints(self) -> Mapping[str, str | None]:
        """With each the name of the model that its requests must have; None for any."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A request as the records know it."""

    key: bytes
    """SHA-256 of the canonical JSON of ``[kind, fingerprint, prompt, settings]``."""
    kind: Kind
    model: str
    fingerprint: str
    prompt: str
    """The rendered prompt."""
    settings: str
    """Canonical JSON: schema and sampling of a generation, options of a scoring."""

    def key_under(self, fingerprint: str) -> bytes:
        """The key of the same request to a model of another fingerprint."""
        return text_digest(canonical_json([self.kind, fingerprint, self.prompt, self.settings]))


def canonical_json(value: Any) -> str:
    """JSON that is the same text for the same value: sorted keys, no spaces, ASCII, never NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def text_digest(text: str) -> bytes:
    """SHA-256 of a text; lone surrogates, which UTF-8 cannot carry, count as they are."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def generation_identity(model: Renderer, request: GenerationRequest) -> Identity:
    """Identity of a generation: fingerprint, rendered prompt, schema and all sampling settings."""
    return _identity("generate", model, request, {"sampling": asdict(request.sampling), "schema": request.schema})


def scoring_identity(model: Renderer, request: OptionRequest) -> Identity:
    """Identity of a scoring: fingerprint, rendered prompt and the options in their order."""
    return _identity("options", model, request, {"options": list(request.options)})


def _identity(kind: Kind, model: Renderer, request: GenerationRequest | OptionRequest, settings: Any) -> Identity:
    fingerprint = model.fingerprint
    prompt, stated = model.render(request.messages, request.assistant_prefix), canonical_json(settings)
    key = text_digest(canonical_json([kind, fingerprint, prompt, stated]))
    return Identity(key, kind, model.name, fingerprint, prompt, stated)


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
