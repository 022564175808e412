"""Reading what chat-completion servers send, without trusting its shape."""

import json
import math
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

from climassay.models.contract import FinishReason

MOST_TOKENS = 2**53
"""A server that reports more tokens than this reports nonsense, which no database need hold."""
REASONING_FIELDS = ("reasoning_content", "reasoning")
"""Fields of a message in which servers (vLLM, DeepSeek, OpenRouter) send what was thought before the answer."""
WINDOW_FIELDS = ("max_model_len", "context_length", "context_window", "max_context_length")
"""Where entries in a server's list of models have the context window."""
_UNSEEN = 16
"""Tokens of a completion that may be no text: marks of beginning, end and turns."""
_LEVELS = 6


class BadReplyError(Exception):
    """The server's answer is not a chat completion; the message is one sentence."""


class TopLogprob(NamedTuple):
    """A token the model might have said, and its natural log-probability."""

    token: str
    logprob: float


@dataclass(frozen=True, slots=True)
class Position:
    """One generated token and the likely tokens in its place."""

    chosen: TopLogprob
    listed: tuple[TopLogprob, ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """One chat completion."""

    text: str
    finish_reason: FinishReason
    prompt_tokens: int
    completion_tokens: int
    """What was thought before the answer included."""
    reasoning_tokens: int = 0
    """Completion tokens that were thought; estimated from the lengths of texts where the server does not tell."""
    positions: tuple[Position, ...] = ()
    """Empty where the server gives no log-probabilities."""
    withheld: str | None = None
    """Why there is no text, in the server's words (content filter, refusal)."""


@dataclass(frozen=True, slots=True)
class ErrorReply:
    """What a server says about a request that it does not take."""

    message: str
    """The human part, on one line; its beginning where it is long."""
    parameter: str = ""
    """The parameter that the server names as its reason, as it writes it; empty where it names none."""
    code: str = ""
    """The server's words for the kind of error, for example ``unsupported_parameter``; empty where it has none."""


def parse_reply(body: bytes) -> Reply:
    """Read the body of a chat completion.

    Raises:
        BadReplyError: It is not JSON, or has no choice with a message.
    """
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        if page := _web_page(body.decode("utf-8", "replace")):
            why = f'The server\'s answer is a web page ("{page}"): check the base URL, which usually ends in /v1.'
            raise BadReplyError(why) from None
        raise BadReplyError("The server's answer is not JSON (cut off or malformed).") from None
    return _read_reply(data)


class StreamedReply:
    """A chat completion that arrives in pieces, as server-sent events.

    Attributes:
        done: Whether the server has said that nothing follows.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._message: dict[str, str] = {}
        self._finish: Any = None
        self._usage: Any = None
        self.done = False

    @property
    def text(self) -> str:
        """The answer so far, without what was thought before it."""
        return _without_thoughts(self._message.get("content", ""))[0]

    def add(self, received: bytes) -> None:
        """Take in what has arrived, wherever it was cut.

        Raises:
            BadReplyError: An event is not JSON, or is an error or something else than a piece of a chat completion.
        """
        # Lines end with line feeds alone: JSON may hold other characters that end lines elsewhere.
        *lines, self._rest = (self._rest + received).split(b"\n")
        for line in lines:
            name, _, data = line.strip().partition(b":")
            if name == b"data" and not self.done:
                self._take(data.strip())

    def whole(self) -> Reply:
        """The chat completion, read as :func:`parse_reply` reads one that comes whole.

        Raises:
            BadReplyError: The stream ended before the answer was complete.
        """
        self.add(b"\n")
        if not self.done and self._finish is None:
            raise BadReplyError("The server's answer broke off before it was complete.")
        choice = {"message": self._message, "finish_reason": self._finish}
        return _read_reply({"choices": [choice], "usage": self._usage})

    def _take(self, data: bytes) -> None:
        if data == b"[DONE]":
            self.done = True
            return
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):
            raise BadReplyError("A part of the server's answer is not JSON (cut off or malformed).") from None
        try:
            # The last event has the usage and no choice.
            choices = event.get("choices") or [{}]
            delta, finish = choices[0].get("delta") or {}, choices[0].get("finish_reason")
            parts = {name: delta.get(name) for name in ("content", "refusal", *REASONING_FIELDS)}
        except (AttributeError, KeyError, TypeError):
            raise BadReplyError(_shape_problem(event)) from None
        if event.get("error"):
            raise BadReplyError(_shape_problem(event))
        parts["content"] = _text_of(parts["content"])
        for name, part in parts.items():
            if isinstance(part, str):
                self._message[name] = self._message.get(name, "") + part
        self._finish = finish or self._finish
        self._usage = event.get("usage") or self._usage


def _read_reply(data: Any) -> Reply:
    try:
        choice = data["choices"][0]
        message = choice["message"]
        content = message.get("content")
        finish = choice.get("finish_reason")
    except (KeyError, IndexError, TypeError, AttributeError):
        raise BadReplyError(_shape_problem(data)) from None
    text, thoughts = _without_thoughts(_text_of(content))
    thoughts += "".join(part for part in map(message.get, REASONING_FIELDS) if isinstance(part, str))
    prompt, completion, reasoning = _token_counts(data.get("usage"), text, thoughts)
    refusal, withheld = message.get("refusal"), None
    if finish == "content_filter":
        withheld = "The server's content filter withheld the answer."
    elif isinstance(refusal, str) and refusal and not content:
        withheld = f"The model refused: {refusal}"
    reason: FinishReason = "length" if finish == "length" else "stop"
    return Reply(text, reason, prompt, completion, reasoning, _positions(choice.get("logprobs")), withheld)


def parse_error_reply(body: bytes) -> ErrorReply:
    """Read the body of an error, in the forms of OpenAI and Azure, Anthropic, Gemini (a list), FastAPI and others."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        text = body.decode("utf-8", "replace")
        return ErrorReply(_one_line(_web_page(text) or text))
    codes: list[str] = []
    parameter = ""
    # The reason lies some levels down, as in {"error": {"message": {"detail": [{"loc": ["body", "seed"], ...}]}}}.
    for _ in range(_LEVELS):
        if isinstance(data, list):
            if not data or not isinstance(data[0], dict):
                break
            if parts := [part for part in data if isinstance(part, dict) and isinstance(part.get("loc"), list)]:
                parameter = parameter or str(next((step for step in parts[0]["loc"] if step != "body"), ""))
                codes += [str(part.get("type", "")) for part in parts]
                data = "; ".join(
                    f"{'.'.join(map(str, part['loc']))}: {part.get('msg', part.get('type', ''))}" for part in parts
                )
                break
            data = data[0]
        if not isinstance(data, dict):
            break
        codes += [data[name] for name in ("code", "type", "status") if isinstance(data.get(name), str)]
        if isinstance(data.get("param"), str):
            parameter = data["param"]
        inner = next((data[key] for key in ("error", "message", "detail", "msg") if data.get(key)), None)
        if inner is None:
            break
        data = inner
    return ErrorReply(_one_line(data if isinstance(data, str) else json.dumps(data)), parameter, " ".join(codes))


def parse_window(body: bytes, model: str) -> int | None:
    """The context window of a model in a server's list of models; None where it does not tell.

    Lists are those of ``/v1/models`` (vLLM, llama.cpp, OpenRouter, Groq, Mistral, Together) and Ollama's ``/api/ps``.
    """
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return None
    models = next((data[key] for key in ("data", "models") if isinstance(data, dict) and data.get(key)), data)
    entries = [entry for entry in models if isinstance(entry, dict)] if isinstance(models, list) else []
    own = [entry for entry in entries if model in (entry.get("id"), entry.get("name"), entry.get("model"))]
    # llama.cpp serves one model under any name.
    for entry in own or (entries if len(entries) == 1 and isinstance(entries[0].get("meta"), dict) else []):
        told = [entry.get(name) for name in WINDOW_FIELDS]
        meta = entry.get("meta")
        told += [meta.get("n_ctx"), meta.get("n_ctx_train")] if isinstance(meta, dict) else []
        for window in told:
            if isinstance(window, int) and 0 < window < MOST_TOKENS:
                return window
    return None


def _web_page(text: str) -> str:
    """The title of a page of HTML, or its first words; empty for other texts."""
    if not re.match(r"\s*<(!doctype html|html)", text, re.IGNORECASE):
        return ""
    titled = re.search(r"<title[^>]*>(.*?)</title>", text, re.IGNORECASE | re.DOTALL)
    words = titled[1] if titled else re.sub(r"<[^>]*>", " ", text)
    return " ".join(words.split())[:200] or "without words"


def _one_line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 500 else text[:500] + "…"


def _without_thoughts(text: str) -> tuple[str, str]:
    """An answer without what the model thought aloud before it, and that."""
    thoughts, closed, answer = text.partition("</think>")
    # Some templates open the thoughts in the prompt, so that only their end is in the answer.
    if closed and "<think>" not in thoughts.lstrip().removeprefix("<think>"):
        return answer.lstrip(), thoughts.lstrip().removeprefix("<think>")
    opened = text.lstrip()
    return ("", opened.removeprefix("<think>")) if not closed and opened.startswith("<think>") else (text, "")


def _token_counts(usage: Any, text: str, thoughts: str) -> tuple[int, int, int]:
    """Tokens of prompt, of completion with thoughts, and of thoughts.

    Most providers count thoughts as part of the completion; some only in the total, some beside the completion.
    """
    prompt, completion = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
    total = _count(usage, "total_tokens")
    details = usage.get("completion_tokens_details") if isinstance(usage, dict) else None
    reasoning = _count(details, "reasoning_tokens") or _count(usage, "reasoning_tokens")
    beyond = total - prompt - completion
    if prompt and completion and beyond > 0:
        return prompt, completion + beyond, reasoning or beyond
    if reasoning > completion:
        return prompt, completion + reasoning, reasoning
    if not reasoning and thoughts:
        reasoning = round(completion * len(thoughts) / (len(thoughts) + len(text)))
    elif not reasoning and completion > len(text.encode("utf-8", "replace")) + _UNSEEN:
        # No token is shorter than a byte: what cannot have become text was thought.
        reasoning = completion - len(text) // 4
    return prompt, completion, reasoning


def _shape_problem(data: Any) -> str:
    if isinstance(data, dict) and data.get("error"):
        return (
            f"The server's answer is an error under status 200: {parse_error_reply(json.dumps(data).encode()).message}"
        )
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


def _likely(entry: Any) -> TopLogprob:
    # Servers write -9999 or null for "next to impossible"; exp(-100) is that too, and adds up without trouble.
    given = entry["logprob"]
    logprob = -100.0 if given is None else max(-100.0, float(given))
    if math.isnan(logprob) or not isinstance(entry["token"], str):
        raise ValueError("not a token with a log-probability")
    return TopLogprob(entry["token"], min(logprob, 0.0))
