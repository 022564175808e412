"""Capabilities of a model behind a server, learned from its replies and stored in the workspace.

OpenAI-compatible servers differ in the parameters they accept: log-probabilities, JSON schemas, seeds, the name of the
token limit. Neither settings nor a list of models are needed: capabilities are learned from error replies
(:func:`rejected_parameters`) and from answers, such as an ignored schema or hidden reasoning tokens.
"""

import hashlib
import json
import logging
import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

from climassay.errors import InputError
from climassay.io import write_file
from climassay.models.contract import CHARACTERS_PER_TOKEN
from climassay.models.openai.replies import ErrorReply, Reply
from climassay.settings import parse_table, settings

log = logging.getLogger("climassay.models")

LogprobsSupport = Literal["given", "refused", "ignored"]
SchemaSupport = Literal["strict", "loose", "refused", "ignored"]
"""Support of JSON schemas by a server. ``strict``: answers are decoded under the schema. ``loose``: answers are JSON
that may violate it. ``refused``: schemas are rejected. ``ignored``: answers are prose."""

FILE_NAME = "model_capabilities.json"
"""File in the workspace with capabilities by base URL and model."""
REFUSAL_STATUSES = frozenset({400, 403, 404, 405, 422, 501})
"""HTTP statuses with which servers reject single parameters; some have other meanings as well."""
SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "logprobs": ("logprobs", "log_probs", "log probabilities", "responseLogprobs", "response_logprobs"),
    "top_logprobs": ("top_logprobs",),
    "response_format": (
        *("response_format", "response format", "json_schema", "json schema", "response_schema", "responseSchema"),
        *("structured output", "structured outputs", "guided_json", "output_format", "grammar", "Invalid schema"),
    ),
    "max_tokens": ("max_tokens", "max_output_tokens", "maxOutputTokens"),
    "max_completion_tokens": ("max_completion_tokens", "max_output_tokens", "maxOutputTokens"),
    "temperature": ("temperature",),
    "top_p": ("top_p", "topP"),
    "seed": ("seed",),
    "stop": ("stop", "stop_sequences", "stopSequences", "stop sequence"),
    "reasoning_effort": ("reasoning_effort", "reasoning effort", "reasoning", "thinking"),
    "stream": ("stream", "streaming"),
    "stream_options": ("stream_options", "streamOptions", "include_usage"),
    "continue_final_message": ("continue_final_message",),
    "add_generation_prompt": ("add_generation_prompt",),
}
"""Spellings of parameters in error replies, by parameter."""
_CONTINUATION_PARAMETERS = ("continue_final_message", "add_generation_prompt")
"""Parameters with which vLLM and SGLang continue the last message of the assistant."""
SYSTEM_ROLE = "system_role"
"""Name of the system role in lists of parameters that a server may reject."""
_SYSTEM_ROLE_REFUSAL = re.compile(
    r"\bsystem['\"]?\s+(?:role|messages?|prompts?|instructions?)\b|\bdeveloper (?:instruction|role)"
    r"|roles must alternate|only user and assistant roles|\brole.{0,20} not support ['\"]?system",
    re.IGNORECASE,
)
"""Pattern of an error about a chat template without a system role, such as the templates of Gemma and early Mistral."""
_OPTIONAL_PARAMETERS = (
    SYSTEM_ROLE,
    "seed",
    "temperature",
    "top_p",
    "stop",
    "reasoning_effort",
    "stream",
    "stream_options",
    *_CONTINUATION_PARAMETERS,
)
"""Parameters that can be omitted."""
_REFUSAL = re.compile(
    r"unsupported|not support|unknown|unrecogni[sz]ed|unexpected|not permitted|not allowed|extra|only the default|"
    r"invalid|must (?:be|contain|not)|not (?:available|enabled|implemented|accepted|compatible)|cannot|can't|disabled|"
    r"deprecated|forbidden|extra_forbidden|no longer|unavailable|does not accept|incompatible|ignored",
    re.IGNORECASE,
)
_SCHEMA_FAULT = re.compile(
    r"invalid (?:json )?schema|\bschema (?:is (?:not valid|invalid|too)|has|contains|produces|for)\b|in context=|"
    r"too (?:complex|many|deep)",
    re.IGNORECASE,
)
"""Pattern of an error about the content of one schema; other schemas may still be accepted."""
_LIMIT_PARAMETERS = frozenset({"max_tokens", "max_completion_tokens"})
_WINDOW = re.compile(
    r"(?:maximum context length(?: is| of)?|context (?:window|size|length)(?: is| of)?:?)\D{0,20}(\d+)"
)
_PROMPT_TOKENS = re.compile(r"(\d+) (?:tokens )?(?:in|from|of) the (?:messages|prompt|input)|(\d+) input tokens")
_OUTPUT_LIMIT = re.compile(r"(?:at most|less than or equal to|[<>]=?|maximum(?: value)?(?: of| is)?:?)\D{0,20}(\d+)")
_LIMIT_USED_UP = re.compile(r"higher max_|output limit was reached", re.IGNORECASE)
"""Pattern of an error stating that reasoning has used up the token limit."""
_TEMPLATE_TOKENS = 64
"""Upper estimate of the tokens that the chat template adds to a prompt."""
_MIN_TOKEN_LIMIT = 256
"""Minimum token limit to send, even if no tokens seem to be left after the prompt, whose length is only estimated."""
MAX_TOP_LOGPROBS = 20
_MAX_REFUSED_SCHEMAS = 3
"""Number of rejected schemas after which no schema is sent, if none was accepted."""
FIRST_REASONING_BUDGET = 8192
"""Number of tokens first added to the limit of an answer when the model is found to reason."""
MAX_REASONING_BUDGET = 131_072
MIN_CONTRADICTIONS = 3
"""Number of consecutive requests that must contradict a known capability before it is changed."""
_LOCK_SECONDS = 10


@settings
class Capabilities:
    """Known capabilities of a model behind a server; None and empty mean unknown."""

    logprobs: LogprobsSupport | None = None
    logprobs_status: int | None = None
    """HTTP status with which the server rejected log-probabilities."""
    top_logprobs: int = MAX_TOP_LOGPROBS
    """Maximum number of likely tokens that the server lists per position."""
    continues: bool | None = None
    """Whether the model continues the assistant's message at the end of a chat."""
    counts_cached: bool | None = None
    """Whether the server's prompt counts include cached tokens; tested only after a suspiciously low count."""
    schema_support: SchemaSupport | None = None
    refused_schemas: tuple[str, ...] = ()
    """Digests of schemas that were rejected for their content."""
    limits_items: bool = False
    """Whether the model has repeated the items of a list without end and the server accepts ``maxItems``."""
    repeats_itself: bool = False
    """Whether an answer has repeated itself up to its token limit."""
    token_limit: Literal["max_tokens", "max_completion_tokens"] | None = None
    """Name of the parameter that limits the answer."""
    accepted: tuple[str, ...] = ()
    """Parameters of requests that the server has answered."""
    dropped: tuple[str, ...] = ()
    """Parameters that are rejected and therefore omitted."""
    is_reasoning_model: bool | None = None
    """True if the model has produced reasoning tokens before an answer."""
    reasoning_budget: int = 0
    """Number of tokens added to the limit of an answer for reasoning."""
    window: int | None = None
    """Maximum number of tokens of prompt and answer, if the server states it."""
    max_output: int | None = None
    """Maximum token limit that the server accepts, if it has rejected a higher one."""
    learned_on: str = ""
    """Date of the last change, as ``2026-01-31`` (UTC)."""

    def offers_schema(self, schema: Mapping[str, Any]) -> bool:
        """Return whether a schema should be sent to the server."""
        return self.schema_support not in ("refused", "ignored") and schema_digest(schema) not in self.refused_schemas

    def describe(self) -> Iterator[tuple[str, str | None]]:
        """Yield a label and a description of each capability; the description is None if it is to be left out."""
        status = "" if self.logprobs_status is None else f" with {self.logprobs_status}"
        logprobs = {
            "given": "given, but of thoughts: options are named in an answer instead"
            if self.is_reasoning_model
            else f"given, {self.top_logprobs} a place",
            "refused": f"refused{status}; options are named in an answer instead",
            "ignored": "ignored; options are named in an answer instead",
        }
        schema = {
            "strict": "strict",
            "loose": "loose: answers are checked, and the schema stands in the prompt as well",
            "refused": "refused; the schema stands in the prompt instead",
            "ignored": "ignored; the schema stands in the prompt instead",
        }
        reasoning_descriptions = {
            True: f"yes; {self.reasoning_budget:,} tokens on top of each limit",
            False: "none seen",
            None: None,
        }
        accepted_options = [name for name in self.accepted if name not in ("max_tokens", "max_completion_tokens")]
        continuation = {
            True: "yes: options are weighed where the model goes on with the beginning of its answer",
            False: "no: options are weighed at the beginning of the answer",
            None: None,
        }
        token_counts = {
            True: None,
            False: "of what it does not have in its cache; shortened prompts are not seen",
            None: None,
        }
        yield "logprobs", logprobs[self.logprobs] if self.logprobs else "not known"
        yield "continues", continuation[self.continues]
        yield "counts", token_counts[self.counts_cached]
        yield "JSON schema", schema[self.schema_support] if self.schema_support else "not known"
        yield "limit", self.token_limit
        yield "takes", ", ".join(accepted_options) or None
        yield "refuses", ", ".join(self.dropped) or None
        yield "thinks", reasoning_descriptions[self.is_reasoning_model]
        yield "window", None if self.window is None else f"{self.window:,} tokens"
        yield "learnt on", self.learned_on or None


class CapabilityTracker:
    """Capabilities of one model, used and extended by a client. Used from one event loop only.

    Args:
        base_url: Normalised address of the server.
        model: Name of the model at the server.
        folder: Workspace to store them in; None keeps them in memory.
        provider: Name of the server in the user's configuration; used as key instead of the address, which may change.

    Attributes:
        capabilities: Capabilities known so far.
        fallbacks: Number of adapted requests, by missing capability.
    """

    def __init__(self, base_url: str, model: str, folder: Path | None = None, provider: str | None = None) -> None:
        self._server = base_url if provider is None else f"{provider}:"
        self._model = model
        self._file = None if folder is None else folder / FILE_NAME
        self.capabilities = Capabilities()
        entry: Any = None if self._file is None else self._find_entry(load_capabilities(self._file))
        names = {field.name for field in fields(Capabilities)}
        # An entry that does not fit, for example of a newer version, is ignored and learned again.
        with suppress(InputError, TypeError):
            self.capabilities = parse_table(
                Capabilities, {name: entry[name] for name in entry or () if name in names}, "", ""
            )
        self.fallbacks: Counter[str] = Counter()
        self._contradictions: Counter[str] = Counter()

    def adapt(
        self,
        payload: Mapping[str, Any],
        omitted_parameters: Collection[str] = (),
        *,
        reserve_reasoning: bool = True,
        token_limit: float = math.inf,
    ) -> dict[str, Any]:
        """Return a payload in the form that the server accepts.

        Args:
            payload: Request body; its ``max_tokens`` is the limit of the answer without reasoning.
            omitted_parameters: Parameters to omit as a trial.
            reserve_reasoning: Whether to add the reasoning budget to the limit.
            token_limit: Maximum token limit to send.
        """
        capabilities = self.capabilities
        omitted_names = {*capabilities.dropped, *omitted_parameters, "max_tokens"}
        if SYSTEM_ROLE in omitted_names:
            payload = {**payload, "messages": _without_system_role(payload["messages"])}
        if capabilities.is_reasoning_model:
            omitted_names.add("stop")  # Servers also stop reasoning; the client truncates answers itself.
        if "stream" in omitted_names:
            omitted_names.add("stream_options")
        adapted_payload = {name: value for name, value in payload.items() if name not in omitted_names}
        uses_new_name = capabilities.token_limit == "max_completion_tokens" or "max_tokens" in omitted_parameters
        name = "max_completion_tokens" if uses_new_name else "max_tokens"
        if name not in omitted_parameters:
            # Only reasoning models reject the old name, so reasoning is allowed for from the first request.
            reasoning_budget = (
                (capabilities.reasoning_budget or (FIRST_REASONING_BUDGET if uses_new_name else 0))
                if reserve_reasoning
                else 0
            )
            limits = [
                payload["max_tokens"] + reasoning_budget,
                token_limit,
                math.inf if capabilities.max_output is None else capabilities.max_output,
            ]
            if capabilities.window is not None:
                n_prompt_tokens = sum(len(message["content"]) for message in payload["messages"]) / CHARACTERS_PER_TOKEN
                limits.append(max(capabilities.window - n_prompt_tokens - _TEMPLATE_TOKENS, _MIN_TOKEN_LIMIT))
            adapted_payload[name] = int(min(limits))
        if "top_logprobs" in adapted_payload:
            adapted_payload["top_logprobs"] = capabilities.top_logprobs
        return adapted_payload

    def note_refusal(self, payload: Mapping[str, Any], error_reply: ErrorReply, omitted_parameters: set[str]) -> bool:
        """Adapt to the rejection of a request.

        Args:
            payload: Rejected payload.
            error_reply: Error reply of the server.
            omitted_parameters: Parameters omitted from this request so far; rejected ones are added. They are stored
                as rejected only after the request was answered without them.

        Returns:
            True if the request would now be sent differently.
        """
        names = rejected_parameters(payload, error_reply)
        limit_name = next((name for name in _LIMIT_PARAMETERS if name in payload), None)
        if "top_logprobs" in names:
            stated_numbers = [int(number) for number in re.findall(r"\d+", error_reply.message)]
            if candidates := [number for number in stated_numbers if 0 < number < payload["top_logprobs"]]:
                self._update(top_logprobs=max(candidates))
                return True
        if limit_name is not None and names & _LIMIT_PARAMETERS:
            stated_numbers = [int(number) for number in _OUTPUT_LIMIT.findall(error_reply.message)]
            if candidates := [number for number in stated_numbers if 0 < number < payload[limit_name]]:
                self._update(max_output=max(candidates))
                return True
            if limit_name == "max_completion_tokens" and "max_tokens" not in omitted_parameters:
                self._update(token_limit="max_tokens")
        if limit_name is not None and _LIMIT_USED_UP.search(error_reply.message):
            reasoning_budget = min(
                MAX_REASONING_BUDGET, max(FIRST_REASONING_BUDGET, 4 * self.capabilities.reasoning_budget)
            )
            if payload[limit_name] < reasoning_budget:
                self._update(reasoning_budget=reasoning_budget)
                return True
        new_omissions = (names & {*_OPTIONAL_PARAMETERS, limit_name} & payload.keys()) - omitted_parameters
        if payload["messages"][0]["role"] == "system" and _SYSTEM_ROLE_REFUSAL.search(error_reply.message):
            new_omissions = frozenset({SYSTEM_ROLE}) - omitted_parameters
        if not new_omissions.isdisjoint(_CONTINUATION_PARAMETERS):
            new_omissions |= payload.keys() & set(_CONTINUATION_PARAMETERS)  # neither makes sense without the other
        omitted_parameters |= new_omissions
        return bool(new_omissions)

    def note_context_error(self, payload: Mapping[str, Any], error_reply: ErrorReply) -> int | None:
        """Store the context window that an error reply states, and return the number of tokens that it leaves.

        Return None if the reply does not state the lengths of window and prompt, or if the limit of the answer's tokens
        need not be lowered or cannot be.
        """
        window, n_prompt_tokens = _WINDOW.search(error_reply.message), _PROMPT_TOKENS.search(error_reply.message)
        if window is None:
            return None
        self.note_window(int(window[1]))
        if n_prompt_tokens is None:
            return None
        n_available = int(window[1]) - int(n_prompt_tokens[1] or n_prompt_tokens[2])
        limit = next((payload[name] for name in _LIMIT_PARAMETERS if name in payload), 0)
        return n_available if 0 < n_available < limit else None

    def note_answer(self, payload: Mapping[str, Any], reply: Reply, omitted_parameters: Collection[str]) -> None:
        """Record which parameters a successful reply shows to be accepted or omitted, and whether the model reasons."""
        capabilities = self.capabilities
        changes: dict[str, Any] = {}
        for name in payload:
            self._contradictions.pop(name, None)
        candidates = set(omitted_parameters) & set(_OPTIONAL_PARAMETERS) - set(capabilities.dropped)
        if rejected_names := {name for name in candidates if self._confirm_change(name, name in capabilities.accepted)}:
            for name in sorted(rejected_names - set(_CONTINUATION_PARAMETERS)):
                self.fallbacks[name] += 1
                if name == SYSTEM_ROLE:
                    log.warning("The model has no system role; instructions are sent in the user's message.")
                    continue
                log.warning("The server does not accept the parameter %s; it is left out from now on.", name)
            changes["dropped"] = tuple(sorted({*capabilities.dropped, *rejected_names}))
        accepted_names = {
            *capabilities.accepted,
            *(name for name in (*_OPTIONAL_PARAMETERS, *_LIMIT_PARAMETERS) if name in payload),
        } - rejected_names
        if accepted_names != set(capabilities.accepted):
            changes["accepted"] = tuple(sorted(accepted_names))
        limit_name = next((name for name in _LIMIT_PARAMETERS if name in payload), capabilities.token_limit)
        if limit_name != capabilities.token_limit:
            changes["token_limit"] = limit_name
        if reply.reasoning_tokens and not capabilities.is_reasoning_model:
            changes["is_reasoning_model"] = True
        elif capabilities.is_reasoning_model is None and reply.text:
            changes["is_reasoning_model"] = False
        if reply.reasoning_tokens or changes.get("token_limit") == "max_completion_tokens":
            # Four times the longest reasoning so far, as a power of two so that it rarely changes.
            reasoning_budget = max(FIRST_REASONING_BUDGET, 1 << max(0, 4 * reply.reasoning_tokens - 1).bit_length())
            if min(reasoning_budget, MAX_REASONING_BUDGET) > capabilities.reasoning_budget:
                changes["reasoning_budget"] = min(reasoning_budget, MAX_REASONING_BUDGET)
        if changes:
            self._update(**changes)

    def note_uncounted_stream(self) -> None:
        """Disable streaming for a server that does not count the tokens of a stream."""
        if "stream" not in self.capabilities.dropped:
            self.fallbacks["stream"] += 1
            log.warning("The server does not count the tokens of a streamed answer; answers come whole from now on.")
            self._update(dropped=tuple(sorted({*self.capabilities.dropped, "stream"})))

    def raise_reasoning_budget(self, payload: Mapping[str, Any], answer_limit: int | None, reply: Reply) -> bool:
        """Raise the reasoning budget after reasoning has truncated an answer; return whether to send the request again.

        ``answer_limit`` is the limit of the answer without reasoning, or None.
        """
        limit = next((payload[name] for name in _LIMIT_PARAMETERS if name in payload), None)
        if limit is None or answer_limit is None or reply.finish_reason != "length":
            return False
        if reply.text and reply.completion_tokens - reply.reasoning_tokens >= answer_limit:
            return False  # The answer has used its whole limit.
        if (reply.text and not reply.reasoning_tokens) or limit == self.capabilities.max_output:
            return False
        previous_budget = limit - answer_limit
        reasoning_budget = min(MAX_REASONING_BUDGET, max(FIRST_REASONING_BUDGET, 4 * previous_budget))
        if reasoning_budget <= previous_budget:
            return False
        if reasoning_budget > self.capabilities.reasoning_budget:
            self._update(
                reasoning_budget=reasoning_budget, **({"is_reasoning_model": True} if reply.reasoning_tokens else {})
            )
        return True

    def note_logprobs(self, status: LogprobsSupport, http_status: int | None = None) -> None:
        """Store how a request for log-probabilities was handled.

        The status ``given`` is revoked only after :data:`MIN_CONTRADICTIONS` consecutive requests.
        """
        if status == "given":
            self._contradictions.pop("logprobs", None)
        elif not self._confirm_change("logprobs", self.capabilities.logprobs == "given"):
            return
        if (self.capabilities.logprobs, self.capabilities.logprobs_status) != (status, http_status):
            self._update(logprobs=status, logprobs_status=http_status)

    def note_continuation(self, continues: bool) -> None:
        """Store whether the model continues an assistant's turn; a change needs :data:`MIN_CONTRADICTIONS` requests."""
        if continues == self.capabilities.continues:
            self._contradictions.pop("continues", None)
        elif self._confirm_change("continues", self.capabilities.continues is not None):
            self._update(continues=continues)

    def note_cached_tokens(self, counts_cached: bool) -> None:
        """Store whether cached prompt tokens are counted."""
        self._update(counts_cached=counts_cached)

    def note_schema_support(self, status: SchemaSupport, schema: Mapping[str, Any]) -> None:
        """Store what a request with a schema has shown about the server's support of schemas.

        A looser status than the known one is stored after :data:`MIN_CONTRADICTIONS` consecutive requests; a stricter
        one is ignored.
        """
        known_status, order = self.capabilities.schema_support, get_args(SchemaSupport)
        if known_status is not None and order.index(status) <= order.index(known_status):
            self._contradictions.pop("response_format", None)
            self._contradictions.pop(schema_digest(schema), None)
        elif self._confirm_change("response_format", known_status is not None):
            self._update(schema_support=status)

    def note_refused_schema(self, schema: Mapping[str, Any], error_reply: ErrorReply) -> None:
        """Store that the server rejects all schemas or, if the content of this one is at fault, only this schema."""
        digest = schema_digest(schema)
        digests = tuple(sorted({*self.capabilities.refused_schemas, digest}))
        is_content_fault = _SCHEMA_FAULT.search(error_reply.message) is not None
        are_all_rejected = not is_content_fault and _mentions("response_format", error_reply)
        if are_all_rejected or (self.capabilities.schema_support is None and len(digests) >= _MAX_REFUSED_SCHEMAS):
            self.note_schema_support("refused", schema)
        elif digests != self.capabilities.refused_schemas and self._confirm_change(
            digest, self.capabilities.schema_support and not is_content_fault
        ):
            self._update(refused_schemas=digests)

    def note_item_limits(self, are_accepted: bool) -> None:
        """Store whether the server accepts schemas with ``maxItems``."""
        if are_accepted != self.capabilities.limits_items:
            self._update(limits_items=are_accepted)

    def note_loop(self) -> None:
        """Store that the model repeats itself up to its token limit."""
        if not self.capabilities.repeats_itself:
            self._update(repeats_itself=True)

    def note_window(self, window: int | None) -> None:
        """Store the context window that the server states."""
        if window is not None and window != self.capabilities.window:
            self._update(window=window)

    def forget(self) -> None:
        """Delete the known capabilities, also from the workspace."""
        self.capabilities = Capabilities()
        self._store(None)

    def _find_entry(self, capabilities_by_server: Mapping[str, dict[str, Any]]) -> Any:
        return capabilities_by_server.get(self._server, {}).get(self._model)

    def _confirm_change(self, name: str, is_opposite_known: object) -> bool:
        """Count a contradiction of a capability and return whether to change the capability.

        If the opposite is known (``is_opposite_known``), it is changed after :data:`MIN_CONTRADICTIONS` contradictions;
        otherwise at once.
        """
        self._contradictions[name] += 1
        return not is_opposite_known or self._contradictions[name] >= MIN_CONTRADICTIONS

    def _update(self, **changes: Any) -> None:
        changes["learned_on"] = datetime.now(UTC).date().isoformat()
        self.capabilities = replace(self.capabilities, **changes)
        self._store(changes)

    def _store(self, changes: Mapping[str, Any] | None) -> None:
        """Write changes to the workspace, or delete the entry if None, keeping other processes' changes."""
        if self._file is None:
            return
        from filelock import FileLock, Timeout

        # Capabilities that cannot be stored, for example in a read-only workspace, are learned again.
        with suppress(OSError, Timeout), FileLock(f"{self._file}.lock", timeout=_LOCK_SECONDS):
            capabilities_by_server = load_capabilities(self._file)
            entry = self._find_entry(capabilities_by_server)
            models = capabilities_by_server.setdefault(self._server, {})
            models[self._model] = {} if changes is None else {**(entry if isinstance(entry, dict) else {}), **changes}
            if not models[self._model]:
                del models[self._model]
            capabilities_by_server = {url: entries for url, entries in capabilities_by_server.items() if entries}
            write_file(
                self._file, json.dumps(capabilities_by_server, indent=1, sort_keys=True, ensure_ascii=False).encode()
            )


def _without_system_role(messages: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """Return the messages with the text of the system message placed before the text of the user's next message."""
    first_message, *later_messages = [dict(message) for message in messages]
    if first_message["role"] != "system":
        return [first_message, *later_messages]
    if not later_messages or later_messages[0]["role"] != "user":
        return [{"role": "user", "content": first_message["content"]}, *later_messages]
    return [
        {"role": "user", "content": f"{first_message['content']}\n\n{later_messages[0]['content']}"},
        *later_messages[1:],
    ]


def rejected_parameters(payload: Mapping[str, Any], error_reply: ErrorReply) -> frozenset[str]:
    """Return the parameters of a request that an error reply rejects.

    Args:
        payload: Request body.
        error_reply: Reply that names the parameter, or whose text contains names of parameters and a word such as
            "unsupported".

    Returns:
        Names of :data:`SPELLINGS`; empty if the error is about something else, such as the key or the prompt.
    """
    candidates = [name for name in SPELLINGS if name in payload]
    if error_reply.parameter:
        parameter_name = re.split(
            r"[.\[]", error_reply.parameter.removeprefix("body.").removeprefix("generation_config.")
        )[0]
        named_parameters = {
            name for name in candidates if parameter_name.lower() in {spelling.lower() for spelling in SPELLINGS[name]}
        }
        if named_parameters:
            return frozenset(named_parameters)
    # Nearly every error is an "invalid_request_error".
    text = f"{error_reply.message} {error_reply.code.replace('invalid', '')}"
    if not _REFUSAL.search(text) and not _OUTPUT_LIMIT.search(error_reply.message):
        return frozenset()
    return frozenset(name for name in candidates if _mentions(name, error_reply))


def schema_digest(schema: Mapping[str, Any]) -> str:
    """Return a short hash of a schema."""
    return hashlib.sha256(json.dumps(schema, sort_keys=True).encode()).hexdigest()[:16]


def _mentions(parameter: str, error_reply: ErrorReply) -> bool:
    text = f"{error_reply.message} {error_reply.parameter}"
    return any(
        re.search(rf"(?<!\w){re.escape(spelling)}(?!\w)", text, re.IGNORECASE) for spelling in SPELLINGS[parameter]
    )


def load_capabilities(file: Path) -> dict[str, dict[str, Any]]:
    """Return the stored capabilities by server and model; {} if the file is missing or malformed."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(data, dict):
        return {}
    return {url: dict(models) for url, models in data.items() if isinstance(models, dict)}
