"""Whether a model works, what it is, and how fast it answers."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from climassay.errors import ModelError
from climassay.models.contract import (
    GenerationRequest,
    Generator,
    Message,
    OpenWeights,
    OptionRequest,
    OptionScorer,
    Sampling,
)
from climassay.models.registry import load_model

if TYPE_CHECKING:
    from climassay.models.openai_capabilities import Capabilities
    from climassay.models.openai_retry import RetryPolicy

_ANSWER_TOKENS = 64
_LONG_TEXT = "The ocean takes up heat and carbon from the air above it. " * 24


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """What :func:`check_model` found; None where it does not apply or is not known."""

    name: str
    fingerprint: str
    licence: str | None
    abilities: tuple[str, ...]
    """Of generate, option_logprobs and harvest."""
    device: str | None
    dtype: str | None
    threads: int | None
    load_seconds: float
    prompt: str
    answer: str
    capabilities: "Capabilities | None"
    """What the model behind a server can do."""
    prefill_tokens_per_second: float | None
    """Prompt tokens a local model reads in a second."""
    decode_tokens_per_second: float | None
    """Tokens of one answer that come in a second, a server's network and queue included."""


def check_model(
    name: str,
    *,
    prompt: str,
    base_url: str | None = None,
    device: str | None = None,
    dtype: str | None = None,
    adapter: str | None = None,
    folder: Path | None = None,
    again: bool = False,
    policy: "RetryPolicy | None" = None,
    reasoning_effort: str | None = None,
) -> ModelCheck:
    """Load a model and ask it one prompt; of a model behind a server, find out what it can do by two more.

    Args:
        name: As :func:`~climassay.models.load_model` takes it.
        prompt: What to ask.
        base_url: Server of an ``openai:`` model.
        device: Where a local model computes.
        dtype: What a local model computes with.
        adapter: Folder of a PEFT adapter for a local model.
        folder: The workspace in which it is kept what a server can do; None keeps nothing.
        again: Whether to forget first what is kept.
        policy: Deadlines and attempts of an ``openai:`` model.
        reasoning_effort: How much an ``openai:`` model is to think.

    Raises:
        ModelError: The model cannot be loaded or does not answer.
        InputError: The name or an option cannot be used.
    """
    started = time.perf_counter()
    model = load_model(
        name,
        base_url=base_url,
        device=device,
        dtype=dtype,
        adapter=adapter,
        folder=folder,
        policy=policy,
        reasoning_effort=reasoning_effort,
    )
    loaded = time.perf_counter() - started
    try:
        server: Any = model if hasattr(model, "capabilities") else None
        if again and server is not None:
            server.forget_capabilities()
        answer, decode_rate = _ask(model, prompt)
        return ModelCheck(
            name=model.name,
            fingerprint=model.fingerprint,
            licence=getattr(model, "licence", None),
            abilities=_abilities(model),
            device=getattr(model, "device", None),
            dtype=getattr(model, "dtype", None),
            threads=getattr(model, "threads", None),
            load_seconds=getattr(model, "load_seconds", loaded),
            prompt=prompt,
            answer=answer,
            capabilities=None if server is None else _learnt(server),
            prefill_tokens_per_second=_prefill_rate(model) if isinstance(model, OpenWeights) else None,
            decode_tokens_per_second=decode_rate,
        )
    finally:
        model.close()


def _learnt(model: Any) -> "Capabilities":
    """What a model behind a server can do, after it was asked to weigh, to answer under a schema, and for its window.

    What these requests give is not needed, and neither is it a failure of the model where one of them fails.
    """
    question = (Message("user", "Is ice colder than steam? Answer with one word, yes or no."),)
    model.option_logprobs([OptionRequest(question, ("yes", "no"))])
    fields = {"answer": {"type": "string", "enum": ["yes", "no"]}, "reason": {"type": "string", "maxLength": 200}}
    schema = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
    asked = (Message("user", "Is ice colder than steam? Say yes or no, and why."),)
    sampling = Sampling(max_tokens=None, temperature=0.5, top_p=0.9, stop=("\n\n\n\n",))
    model.generate([GenerationRequest(asked, sampling, schema)])
    model.ask_window()
    return cast("Capabilities", model.capabilities)


def _ask(model: Generator, prompt: str) -> tuple[str, float | None]:
    """The answer to a prompt, and the rate at which its tokens came; asked twice, the first time to warm up."""
    request = GenerationRequest((Message("user", prompt),), Sampling(max_tokens=_ANSWER_TOKENS))
    if isinstance(model, OpenWeights):
        model.generate([request])
    started = time.perf_counter()
    (completion,) = model.generate([request])
    seconds = time.perf_counter() - started
    if completion.error is not None:
        raise ModelError(f"{model.name} was loaded but did not answer: {completion.error}")
    tokens = completion.usage.completion_tokens
    return completion.text, tokens / seconds if tokens else None


def _prefill_rate(model: OpenWeights) -> float:
    request = OptionRequest((Message("user", _LONG_TEXT),), ("a",))
    started = time.perf_counter()
    (scores,) = model.option_logprobs([request])
    return scores.usage.prompt_tokens / (time.perf_counter() - started)


def _abilities(model: Generator) -> tuple[str, ...]:
    abilities = ["generate"]
    if isinstance(model, OptionScorer):
        abilities.append("option_logprobs")
    if isinstance(model, OpenWeights):
        abilities.append("harvest")
    return tuple(abilities)
