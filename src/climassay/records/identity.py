"""Identity of requests, and answers as rows of the database."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Protocol, cast

import sqlalchemy as sa

from climassay.io import join_surrogates
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
from climassay.records import tables
from climassay.records.database import Database

Kind = Literal["generate", "options"]


class Renderer(Protocol):
    """Parts of a model that determine the identity of a request."""

    @property
    def name(self) -> str:
        """Name as the user wrote it; not part of the key."""

    @property
    def fingerprint(self) -> str:
        """Hash of everything that determines the model's answers."""

    def render(self, messages: Sequence[Message], assistant_prefix: str = "") -> str:
        """Return the prompt as the model receives it."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Identity of a request in the records."""

    key: bytes
    """SHA-256 of the canonical JSON of ``[kind, fingerprint, prompt, settings]``."""
    kind: Kind
    model: str
    fingerprint: str
    prompt: str
    """Rendered prompt."""
    settings: str
    """Canonical JSON of schema and sampling (for generation) or of the options (for option scoring)."""

    def key_for(self, fingerprint: str) -> bytes:
        """Return the key that this request would have for a model with another fingerprint."""
        return hash_text(canonical_json([self.kind, fingerprint, self.prompt, self.settings]))


def canonical_json(value: Any) -> str:
    """Serialise a value to ASCII JSON with sorted keys and without spaces; NaN is rejected."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def hash_text(text: str) -> bytes:
    """Return the SHA-256 hash of a text, which may contain lone surrogates."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def identify_generation(model: Renderer, request: GenerationRequest) -> Identity:
    """Return the identity of a generation request: fingerprint, rendered prompt, schema and sampling."""
    return _identify("generate", model, request, {"sampling": asdict(request.sampling), "schema": request.schema})


def identify_scoring(model: Renderer, request: OptionRequest) -> Identity:
    """Return the identity of an option scoring request: fingerprint, rendered prompt, and options in order."""
    return _identify("options", model, request, {"options": list(request.options)})


def _identify(kind: Kind, model: Renderer, request: GenerationRequest | OptionRequest, settings: Any) -> Identity:
    fingerprint = model.fingerprint
    prompt, settings_json = model.render(request.messages, request.assistant_prefix), canonical_json(settings)
    key = hash_text(canonical_json([kind, fingerprint, prompt, settings_json]))
    return Identity(key, kind, model.name, fingerprint, prompt, settings_json)


Answer = Completion | OptionScores

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True, slots=True)
class AnsweredRequest:
    """Request with its answer, ready to be stored."""

    identity: Identity
    answer: Answer
    answered_at: float
    """Time of the answer in seconds since 1970, UTC."""


def make_storable_text(text: str) -> str:
    """Replace NUL and lone surrogates, which databases cannot store, by U+FFFD."""
    return join_surrogates(text.replace("\x00", REPLACEMENT))


def make_storable_answer(answer: Answer) -> Answer:
    """Convert an answer to a form that can be stored and read back unchanged.

    Log-probabilities that are not finite turn the answer into a failure.
    """
    error = None if answer.error is None else make_storable_text(answer.error)
    if isinstance(answer, Completion):
        text, reasoning = make_storable_text(answer.text), make_storable_text(answer.reasoning)
        return replace(answer, text=text, error=error, reasoning=reasoning)
    if error is None and not all(map(math.isfinite, answer.logprobs)):
        return OptionScores.failed("The model returned a log-probability that is not a finite number.", answer.usage)
    return replace(answer, logprobs=tuple(map(float, answer.logprobs)), error=error)


def answer_columns(answer: Answer) -> dict[str, Any]:
    """Return the values of an answer by column of the table ``answers``."""
    columns: dict[str, Any] = {
        "text": None,
        "logprobs": None,
        "reasoning": None,
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
        return columns | {"text": answer.text, "reasoning": answer.reasoning or None, "outcome": answer.finish_reason}
    return columns | {"logprobs": json.dumps(answer.logprobs, allow_nan=False), "outcome": answer.method}


def build_answer(kind: Kind, row: Mapping[str, Any]) -> Answer:
    """Build the successful answer stored in a row of the table ``answers``."""
    usage = Usage(row["prompt_tokens"], row["completion_tokens"], row["attempts"], row["cost"], row["reasoning_tokens"])
    if kind == "generate":
        return Completion(row["text"], cast(FinishReason, row["outcome"]), usage, reasoning=row["reasoning"] or "")
    return OptionScores(tuple(json.loads(row["logprobs"])), cast(ScoringMethod, row["outcome"]), usage)


def insert_requests(database: Database, connection: sa.Connection, identities: Sequence[Identity]) -> None:
    """Insert those requests, and their texts, that are not in the database yet."""
    texts, requests = [], []
    for identity in identities:
        prompt, settings = hash_text(identity.prompt), hash_text(identity.settings)
        texts += [
            {"digest": prompt, "body": make_storable_text(identity.prompt)},
            {"digest": settings, "body": identity.settings},
        ]
        requests.append(
            {
                "key": identity.key,
                "kind": identity.kind,
                "model": identity.model,
                "fingerprint": identity.fingerprint,
                "prompt": prompt,
                "settings": settings,
            }
        )
    database.insert_new(connection, tables.texts, texts)
    database.insert_new(connection, tables.requests, requests)
