"""What makes a request the same request: its key and the texts that the key stands for."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from climassay.models.contract import GenerationRequest, Message, OptionRequest

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
class KnownEarlier(Protocol):
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
    settings = {"sampling": asdict(request.sampling), "schema": request.schema}
    prompt = model.render(request.messages, request.assistant_prefix)
    return _identity("generate", model, prompt, canonical_json(settings))


def scoring_identity(model: Renderer, request: OptionRequest) -> Identity:
    """Identity of a scoring: fingerprint, rendered prompt and the options in their order."""
    prompt = model.render(request.messages, request.assistant_prefix)
    return _identity("options", model, prompt, canonical_json({"options": list(request.options)}))


def _identity(kind: Kind, model: Renderer, prompt: str, settings: str) -> Identity:
    fingerprint = model.fingerprint
    key = text_digest(canonical_json([kind, fingerprint, prompt, settings]))
    return Identity(key, kind, model.name, fingerprint, prompt, settings)
