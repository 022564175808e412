"""Parse replies of chat-completion servers without relying on their format."""

import json
import math
import re
import warnings
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from climassay.io import join_surrogates
from climassay.models.contract import FinishReason
from climassay.questions.thoughts import separate_thoughts

_UNPAIRED_SURROGATE_AT_END = re.compile("[\ud800-\udbff]$")
MAX_TOKENS = 2**53
"""Maximum plausible token count."""
REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking")
"""Message fields with reasoning (vLLM, DeepSeek, OpenRouter, Ollama)."""
COMPLETE_REASONS = frozenset(
    {"stop", "eos", "eos_token", "end_turn", "stop_sequence", "complete", "tool_calls", "tool_use", "function_call"}
)
"""Finish reasons of complete answers (OpenAI, Together, TGI, Anthropic, Cohere)."""
TRUNCATED_REASONS = frozenset({"length", "max_tokens", "model_length", "token_limit", "model_context_window_exceeded"})
"""Finish reasons of answers truncated by a limit (OpenAI, Gemini, Mistral, watsonx, Zhipu)."""
WITHHELD_REASONS = frozenset(
    {"content_filter", "content_filtered", "safety", "sensitive", "refusal", "recitation", "prohibited_content"}
    | {"blocklist", "spii", "guardrail_intervened", "error_toxic"}
)
"""Finish reasons of answers withheld by a filter (OpenAI, Gemini, Zhipu, Anthropic, Bedrock, Cohere)."""
WINDOW_FIELDS = ("max_model_len", "context_length", "context_window", "max_context_length")
"""Fields with the context window in a server's list of models."""
_MAX_SPECIAL_TOKENS = 16
"""Maximum number of completion tokens that do not belong to the text, such as end-of-text tokens."""
_MAX_DEPTH = 6


class BadReplyError(Exception):
    """Error for a reply that is not a complete chat completion; the message is one sentence.

    Attributes:
        error_reply: Error stated by the server in a response with status 200, or None.
    """

    def __init__(self, message: str, error_reply: "ErrorReply | None" = None) -> None:
        super().__init__(message)
        self.error_reply = error_reply


class TopLogprob(NamedTuple):
    """Candidate token and its natural log-probability."""

    token: str
    logprob: float


@dataclass(frozen=True, slots=True)
class Position:
    """Generated token and the likely tokens at its position."""

    chosen: TopLogprob
    top_logprobs: tuple[TopLogprob, ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """Chat completion."""

    text: str
    """Answer without reasoning."""
    finish_reason: FinishReason
    prompt_tokens: int
    completion_tokens: int
    """Completion tokens, including reasoning."""
    reasoning_tokens: int = 0
    """Reasoning tokens; estimated from text lengths if the server does not state them."""
    positions: tuple[Position, ...] = ()
    """Generated tokens with log-probabilities; empty without log-probabilities."""
    withholding_reason: str | None = None
    """Reason why the server withheld the text (content filter, refusal); None if it did not."""
    reasoning: str = ""
    """Reasoning before the answer, as far as the server sends it."""
    n_prompt_tokens_read: int = 0
    """Upper bound of the number of prompt tokens that the server has read: reported tokens plus separately reported
    cached tokens; 0 if unknown."""


@dataclass(frozen=True, slots=True)
class ErrorReply:
    """Error reply of a server."""

    message: str
    """Error message on one line, truncated if long."""
    parameter: str = ""
    """Parameter that the server names as the cause, or empty."""
    code: str = ""
    """Error code, for example ``unsupported_parameter``, or empty."""
    status: int | None = None
    """HTTP status stated in the body; some gateways answer with status 200 and state the error's status there."""
    wait: float | None = None
    """Seconds to wait before the next attempt, if the body states them."""

    @property
    def codes(self) -> frozenset[str]:
        """Error codes in lower case."""
        return frozenset(self.code.lower().split())


def parse_reply(body: bytes) -> Reply:
    """Parse the body of a chat completion.

    Raises:
        BadReplyError: The body is not JSON, or has no choice with a message.
    """
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        if page_title := _web_page_title(body.decode("utf-8", "replace")):
            message = (
                f'The server\'s answer is a web page ("{page_title}"): check the base URL, which usually ends in /v1.'
            )
            raise BadReplyError(message) from None
        raise BadReplyError("The server's answer is not JSON (cut off or malformed).") from None
    return _read_reply(data)


class StreamedReply:
    """Chat completion received as server-sent events.

    Attributes:
        done: True if the server has sent ``[DONE]``.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._parts: defaultdict[str, list[str]] = defaultdict(list)
        """Parts of the message's fields; joined only when needed, since joining takes time in proportion to a text."""
        self._finish: Any = None
        self._error: Any = None
        self._usage: Any = None
        self.done = False

    @property
    def text(self) -> str:
        """Answer so far, without reasoning."""
        # The first surrogate of the last character may have arrived without the second.
        content = "".join(self._parts["content"])
        return separate_thoughts(join_surrogates(_UNPAIRED_SURROGATE_AT_END.sub("", content))).answer

    def add(self, received: bytes) -> None:
        """Add received bytes, which may end anywhere.

        Raises:
            BadReplyError: An event is not JSON, or not a part of a chat completion.
        """
        # Split at line feeds only, since JSON may contain other line separators.
        self._buffer += received
        if b"\n" not in received:
            return
        *lines, self._buffer = self._buffer.split(b"\n")
        for line in lines:
            name, _, data = line.strip().partition(b":")
            if name == b"data" and not self.done:
                self._add_event(data.strip())

    def to_reply(self) -> Reply:
        """Return the complete reply, parsed as by :func:`parse_reply`.

        Raises:
            BadReplyError: The stream ended before the answer was complete.
        """
        self.add(b"\n")
        if not self.done and self._finish is None:
            raise BadReplyError("The server's answer broke off before it was complete.")
        message = {name: "".join(parts) for name, parts in self._parts.items() if parts}
        choice = {"message": message, "finish_reason": self._finish, "error": self._error}
        return _read_reply({"choices": [choice], "usage": self._usage})

    def _add_event(self, data: bytearray) -> None:
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
            delta, finish_reason = choices[0].get("delta") or {}, choices[0].get("finish_reason")
            parts = {name: delta.get(name) for name in ("content", "refusal", *REASONING_FIELDS)}
        except (AttributeError, KeyError, TypeError):
            raise _malformed_error(event) from None
        if event.get("error"):
            raise _malformed_error(event)
        parts["content"], reasoning = _split_content(parts["content"])
        parts[REASONING_FIELDS[0]] = f"{_flatten_text(parts[REASONING_FIELDS[0]])}{reasoning}"
        for name, part in parts.items():
            if isinstance(part, str):
                self._parts[name].append(part)
        self._finish = finish_reason or self._finish
        self._error = choices[0].get("error") or self._error
        self._usage = event.get("usage") or self._usage


def _read_reply(data: Any) -> Reply:
    try:
        choice = data["choices"][0]
        finish_reason = _parse_finish_reason(choice)
        # A choice may have no message if reasoning has used up the limit or a filter has withheld the answer.
        message = (
            (choice.get("message") or {})
            if finish_reason in TRUNCATED_REASONS | WITHHELD_REASONS
            else choice["message"]
        )
        content = message.get("content")
    except (KeyError, IndexError, TypeError, AttributeError):
        raise _malformed_error(data) from None
    answer, content_reasoning = _split_content(content)
    text, reasoning = separate_thoughts(_join_surrogates(answer))
    fields = (_flatten_text(message.get(name)) for name in (*REASONING_FIELDS, "reasoning_details"))
    reasoning = "\n".join(part for part in (next(filter(None, fields), ""), content_reasoning, reasoning) if part)
    reasoning = join_surrogates(reasoning)
    usage = data.get("usage")
    n_prompt, n_completion, n_reasoning = _parse_token_counts(usage, text, reasoning)
    refusal, withholding_reason = message.get("refusal"), None
    if finish_reason in WITHHELD_REASONS:
        withholding_reason = "The server's content filter withheld the answer."
    elif isinstance(refusal, str) and refusal and not content:
        withholding_reason = f"The model refused: {refusal}"
    elif finish_reason not in COMPLETE_REASONS | TRUNCATED_REASONS:
        raise _unfinished_error(finish_reason, choice.get("error"))
    return Reply(
        text,
        "length" if finish_reason in TRUNCATED_REASONS else "stop",
        n_prompt,
        n_completion,
        n_reasoning,
        _parse_positions(choice.get("logprobs")),
        withholding_reason,
        reasoning,
        _count_prompt_tokens_read(usage),
    )


def _join_surrogates(answer: str) -> str:
    """Join the surrogate halves of characters in an answer; log a warning about an unpaired half."""
    joined_text = join_surrogates(answer)
    if joined_text.count("\ufffd") > answer.count("\ufffd"):
        warnings.warn("A server sent half a character in an answer: it is kept as U+FFFD.", stacklevel=2)
    return joined_text


def _parse_finish_reason(choice: Any) -> str:
    """Return the finish reason in lower case, without details; ``stop`` if the server states none."""
    reason = choice.get("finish_reason", None if choice.get("error") else "stop")
    reason = reason.get("type") if isinstance(reason, dict) else reason  # SGLang
    return str(reason).partition(":")[0].strip().lower()


def _unfinished_error(finish_reason: str, error: Any) -> BadReplyError:
    error_reply = parse_error_reply(json.dumps({"error": error}).encode()) if error else None
    reason = "without a finish reason" if finish_reason == "none" else f"with the finish reason {finish_reason[:60]!r}"
    message = f"The server's answer is not complete: it ended {reason}"
    return BadReplyError(f"{message}, {error_reply.message}" if error_reply else f"{message}.", error_reply)


def parse_error_reply(body: bytes) -> ErrorReply:
    """Parse the body of an error in the forms of OpenAI, Azure, Anthropic, Gemini, FastAPI and others."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        text = body.decode("utf-8", "replace")
        message = _truncate_to_line(_web_page_title(text) or text)
        return ErrorReply(message, wait=parse_wait(message))
    codes: list[str] = []
    parameter, status, wait = "", None, None
    # The reason lies some levels down, as in {"error": {"message": {"detail": [{"loc": ["body", "seed"], ...}]}}}.
    for _ in range(_MAX_DEPTH):
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
        codes += [data[name] for name in ("code", "type", "status", "reason") if isinstance(data.get(name), str)]
        numbers = [int(data[name]) for name in ("code", "status") if re.fullmatch("[45]\\d\\d", str(data.get(name)))]
        status = status or next(iter(numbers), None)
        wait = _parse_field_wait(data) if wait is None else wait
        if isinstance(data.get("param"), str):
            parameter = data["param"]
        inner_value = next((data[key] for key in ("error", "message", "detail", "msg") if data.get(key)), None)
        if inner_value is None:
            break
        if isinstance(inner_value, str) and isinstance(data.get("message"), str):
            inner_value = data["message"]  # "error" is then a short name of the error's type
        data = inner_value
    message = _truncate_to_line(data if isinstance(data, str) else json.dumps(data))
    return ErrorReply(message, parameter, " ".join(codes), status, parse_wait(message) if wait is None else wait)


_UNIT_SECONDS = {"ms": 0.001, "mil": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(
    r"(?<!\d)(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)(?![a-z])",
    re.IGNORECASE,
)
_WAIT = re.compile(
    rf"\b(?:(?:try|retry|retrying)(?:\s+\w+){{0,3}}?\s+(?:in|after)|wait(?:\s+for)?|reset(?:s|ting)?\s+(?:in|after))\s+"
    rf"(?:about\s+|at\s+least\s+)?((?:{_DURATION.pattern}[\s,]*(?:and\s+)?)+)",
    re.IGNORECASE,
)


def parse_wait(text: str) -> float | None:
    """Return the seconds that a sentence asks to wait.

    Args:
        text: For example ``Please try again in 1m2.5s.`` or ``Retry after 6 seconds.``

    Returns:
        Seconds; None if the text states no time with a unit.
    """
    match = _WAIT.search(text)
    return None if match is None else parse_duration(match[1])


def parse_duration(text: str) -> float | None:
    """Parse a duration such as ``20s``, ``1m2.5s``, ``350ms`` or ``2 minutes``; None without a unit."""
    parts = _DURATION.findall(text)
    if not parts:
        return None
    units = [unit.lower() for _, unit in parts]
    scales = [_UNIT_SECONDS["ms" if unit.startswith(("ms", "mil")) else unit[0]] for unit in units]
    return math.fsum(float(number) * scale for (number, _), scale in zip(parts, scales, strict=True))


def _parse_field_wait(data: dict[str, Any]) -> float | None:
    """Return the seconds to wait from error fields: Google's RetryInfo, and fields named like Retry-After."""
    details = data.get("details")
    metadata = data.get("metadata")
    for part in (*(details if isinstance(details, list) else ()), data, metadata):
        if not isinstance(part, dict):
            continue
        if isinstance(part.get("retryDelay"), str):
            return parse_duration(part["retryDelay"])
        for name, scale in (("retry_after_ms", 0.001), ("retry_after", 1.0), ("retry_after_seconds", 1.0)):
            value = part.get(name)
            if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < MAX_TOKENS:
                return value * scale
    return None


def parse_window(body: bytes, model: str) -> int | None:
    """Return the context window of a model from a server's list of models; None if it is not stated.

    Lists come from ``/v1/models`` (vLLM, llama.cpp, OpenRouter, Groq, Mistral, Together) and Ollama's ``/api/ps``.
    """
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return None
    models = next((data[key] for key in ("data", "models") if isinstance(data, dict) and data.get(key)), data)
    entries = [entry for entry in models if isinstance(entry, dict)] if isinstance(models, list) else []
    model_entries = [entry for entry in entries if model in (entry.get("id"), entry.get("name"), entry.get("model"))]
    # llama.cpp serves one model under any name.
    for entry in model_entries or (entries if len(entries) == 1 and isinstance(entries[0].get("meta"), dict) else []):
        candidates = [entry.get(name) for name in WINDOW_FIELDS]
        metadata = entry.get("meta")
        candidates += [metadata.get("n_ctx"), metadata.get("n_ctx_train")] if isinstance(metadata, dict) else []
        for window in candidates:
            if isinstance(window, int) and 0 < window < MAX_TOKENS:
                return window
    return None


def _web_page_title(text: str) -> str:
    """Return the title or first words of an HTML page; empty for other text."""
    if not re.match(r"\s*<(!doctype html|html)", text, re.IGNORECASE):
        return ""
    match = re.search(r"<title[^>]*>(.*?)</title>", text, re.IGNORECASE | re.DOTALL)
    words = match[1] if match else re.sub(r"<[^>]*>", " ", text)
    return " ".join(words.split())[:200] or "without words"


def _truncate_to_line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 500 else text[:500] + "…"


def _parse_token_counts(usage: Any, text: str, reasoning: str) -> tuple[int, int, int]:
    """Return the numbers of prompt tokens, completion tokens including reasoning, and reasoning tokens.

    Most providers count reasoning as part of the completion; some only in the total, some separately.
    """
    n_prompt, n_completion = _parse_token_count(usage, "prompt_tokens"), _parse_token_count(usage, "completion_tokens")
    n_total = _parse_token_count(usage, "total_tokens")
    details = usage.get("completion_tokens_details") if isinstance(usage, dict) else None
    n_reasoning = _parse_token_count(details, "reasoning_tokens") or _parse_token_count(usage, "reasoning_tokens")
    n_uncounted = n_total - n_prompt - n_completion
    if n_prompt and n_completion and n_uncounted > 0:
        return n_prompt, n_completion + n_uncounted, n_reasoning or n_uncounted
    if n_prompt and not n_completion:
        n_completion = max(0, n_uncounted)  # counted in the total alone
    if n_reasoning > n_completion:
        return n_prompt, n_completion + n_reasoning, n_reasoning
    if not n_reasoning and reasoning:
        n_reasoning = round(n_completion * len(reasoning) / (len(reasoning) + len(text)))
    elif (
        not n_reasoning
        and n_completion > len(text.encode("utf-8", "replace")) + _MAX_SPECIAL_TOKENS
        and not text.lstrip().startswith(("{", "["))
    ):
        # A token has at least one byte, so tokens beyond the bytes of the text are reasoning. JSON is an exception,
        # since llama.cpp removes the white space that a small model has generated between its parts.
        n_reasoning = n_completion - len(text) // 4
    return n_prompt, n_completion, n_reasoning


def _count_prompt_tokens_read(usage: Any) -> int:
    """Return the prompt tokens reported, plus cached tokens that may be reported separately.

    The prompt tokens of OpenAI and vLLM include cached tokens; those of Anthropic and gateways to it do not.
    """
    n_prompt = _parse_token_count(usage, "prompt_tokens")
    details = usage.get("prompt_tokens_details") if isinstance(usage, dict) else None
    n_cached = max(_parse_token_count(details, "cached_tokens"), _parse_token_count(usage, "cache_read_input_tokens"))
    n_cache_written = max(
        _parse_token_count(details, "cache_write_tokens"), _parse_token_count(usage, "cache_creation_input_tokens")
    )
    return n_prompt + n_cached + n_cache_written if n_prompt else 0


def _malformed_error(data: Any) -> BadReplyError:
    if isinstance(data, dict) and data.get("error"):
        error_reply = parse_error_reply(json.dumps(data).encode())
        return BadReplyError(f"The server's answer is an error under status 200: {error_reply.message}", error_reply)
    if isinstance(data, dict) and data.get("choices") == []:
        return BadReplyError("The server's answer has no choices.")
    return BadReplyError("The server's answer is JSON, but not a chat completion.")


class _ContentTexts(NamedTuple):
    """Text and reasoning in the content of a message."""

    answer: str
    reasoning: str


def _split_content(content: Any) -> _ContentTexts:
    """Separate the content of a message into text and reasoning.

    Mistral, Anthropic and Gemini send it as a list of parts.
    """
    if content is None:
        return _ContentTexts("", "")
    if isinstance(content, str):
        return _ContentTexts(content, "")
    if not isinstance(content, list):
        raise BadReplyError("The server's answer has a message whose content is not a text.")
    parts = [part for part in content if isinstance(part, dict)]
    reasoning_flags = [
        bool(re.search("think|thought|reason", str(part.get("type")))) or part.get("thought") for part in parts
    ]
    answer = [part.get("text") for part, is_reasoning in zip(parts, reasoning_flags, strict=True) if not is_reasoning]
    reasoning = [_flatten_text(part) for part, is_reasoning in zip(parts, reasoning_flags, strict=True) if is_reasoning]
    return _ContentTexts("".join(text for text in answer if isinstance(text, str)), "\n".join(reasoning))


def _flatten_text(value: Any) -> str:
    """Join the texts nested in a reasoning field, without types, ids and signatures."""
    return "".join(_iterate_texts(value, _MAX_DEPTH))


def _iterate_texts(value: Any, max_depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif max_depth and isinstance(value, list):
        for part in value:
            yield from _iterate_texts(part, max_depth - 1)
    elif max_depth and isinstance(value, dict):
        for name in ("text", "thinking", "reasoning", "summary", "content"):
            yield from _iterate_texts(value.get(name), max_depth - 1)


def _parse_token_count(usage: Any, name: str) -> int:
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if isinstance(value, int) and 0 < value < MAX_TOKENS else 0


def _parse_positions(logprobs: Any) -> tuple[Position, ...]:
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(content, list):
        return ()
    try:
        return tuple(
            Position(_parse_likely_token(entry), tuple(map(_parse_likely_token, _list_likely_tokens(entry))))
            for entry in content
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        raise BadReplyError("The server's answer has log-probabilities that cannot be read.") from None


def _list_likely_tokens(entry: Any) -> list[Any]:
    """Return the likely tokens of a position as a list; older servers map tokens to log-probabilities."""
    top_logprobs = entry.get("top_logprobs") or []
    return (
        [{"token": token, "logprob": logprob} for token, logprob in top_logprobs.items()]
        if isinstance(top_logprobs, dict)
        else top_logprobs
    )


def _parse_likely_token(entry: Any) -> TopLogprob:
    # Servers write -9999 or null for a negligible probability; -100 stands for it in sums.
    value = entry["logprob"]
    logprob = -100.0 if value is None else max(-100.0, float(value))
    if math.isnan(logprob) or not isinstance(entry["token"], str):
        raise ValueError("not a token with a log-probability")
    return TopLogprob(entry["token"], min(logprob, 0.0))
