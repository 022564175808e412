"""Reading what chat-completion servers send, without trusting its shape."""

import json
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from climassay.models.contract import FinishReason

MOST_TOKENS = 2**53
"""A server that reports more tokens than this reports nonsense, which no database need hold."""


class BadReplyError(Exception):
    """The server's answer is not a chat completion; the message is one sentence."""


class Likely(NamedTuple):
    """A token the model might have said, and its natural log-probability."""

    token: str
    logprob: float


@dataclass(frozen=True, slots=True)
class Position:
    """One generated token and the likely tokens in its place."""

    chosen: Likely
    listed: tuple[Likely, ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """One chat completion."""

    text: str
    finish_reason: FinishReason
    prompt_tokens: int
    completion_tokens: int
    positions: tuple[Position, ...] = ()
    """Empty where the server gives no log-probabilities."""
    withheld: str | None = None
    """Why there is no text, in the server's words (content filter, refusal)."""


def parse_reply(body: bytes) -> Reply:
    """Read the body of a chat completion.

    Raises:
        BadReplyError: It is not JSON, or has no choice with a message.
    """
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        raise BadReplyError("The server's answer is not JSON (cut off or malformed).") from None
    try:
        choice = data["choices"][0]
        message = choice["message"]
        content = message.get("content")
        finish = choice.get("finish_reason")
    except (KeyError, IndexError, TypeError, AttributeError):
        raise BadReplyError(_shape_problem(data)) from None
    usage = data.get("usage")
    return Reply(
        _text_of(content),
        "length" if finish == "length" else "stop",
        _count(usage, "prompt_tokens"),
        _count(usage, "completion_tokens"),
        _positions(choice.get("logprobs")),
        _withheld(message, finish, content),
    )


def error_message(body: bytes) -> str:
    """The human part of an error body; its beginning where it is not the usual JSON."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        data = body.decode("utf-8", "replace")
    for key in ("error", "message", "detail"):
        if isinstance(data, dict) and data.get(key):
            data = data[key]
    text = data if isinstance(data, str) else json.dumps(data)
    text = " ".join(text.split())
    return text if len(text) <= 500 else text[:500] + "…"


def _shape_problem(data: Any) -> str:
    if isinstance(data, dict) and data.get("error"):
        return f"The server's answer is an error under status 200: {error_message(json.dumps(data).encode())}"
    if isinstance(data, dict) and data.get("choices") == []:
        return "The server's answer has no choices."
    return "The server's answer is JSON, but not a chat completion."


def _text_of(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(part for part in parts if isinstance(part, str))
    raise BadReplyError("The server's answer has a message whose content is not a text.")


def _withheld(message: dict[str, Any], finish: Any, content: Any) -> str | None:
    if finish == "content_filter":
        return "The server's content filter withheld the answer."
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal and not content:
        return f"The model refused: {refusal}"
    return None


def _count(usage: Any, name: str) -> int:
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if isinstance(value, int) and 0 < value < MOST_TOKENS else 0


def _positions(logprobs: Any) -> tuple[Position, ...]:
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(content, list):
        return ()
    try:
        return tuple(
            Position(_likely(entry), tuple(_likely(other) for other in entry.get("top_logprobs") or ()))
            for entry in content
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        raise BadReplyError("The server's answer has log-probabilities that cannot be read.") from None


def _likely(entry: Any) -> Likely:
    # Servers write -9999 or null for "next to impossible"; exp(-100) is that too, and adds up without trouble.
    given = entry["logprob"]
    logprob = -100.0 if given is None else max(-100.0, float(given))
    if math.isnan(logprob) or not isinstance(entry["token"], str):
        raise ValueError("not a token with a log-probability")
    return Likely(entry["token"], min(logprob, 0.0))
