"""Models behind an OpenAI-compatible server: OpenAI, Together, vLLM, Ollama, llama.cpp server and others."""

import asyncio
import hashlib
import json
import logging
import math
import re
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from climassay.errors import ModelError
from climassay.models.contract import (
    Completion,
    CompletionCallback,
    GenerationRequest,
    Message,
    OptionRequest,
    OptionScores,
    Sampling,
    ScoresCallback,
    TextCallback,
    Usage,
    object_schema,
)
from climassay.models.json_answers import NoJsonError, ends_in_loop, extract_valid_json
from climassay.models.openai.capabilities import Capabilities, CapabilityTracker
from climassay.models.openai.connection import Connection, RequestOutcome, ShowText
from climassay.models.openai.option_scores import generated_logprobs, named_option, score_options, tokens_to_distinguish
from climassay.models.openai.pacing import Clock, RetryPolicy
from climassay.models.openai.prompt_length import is_prompt_truncated, truncation_error
from climassay.models.openai.replies import ErrorReply, Reply, parse_window
from climassay.models.openai.schema import response_format, schema_instruction
from climassay.models.servers import OPENAI, Price, find_server

log = logging.getLogger("climassay.models")

DEFAULT_CONCURRENCY = 64
PROTOCOL = 2
"""Version of the request format, part of the fingerprint. Increase it when the same request is sent differently."""


class OpenAIModel:
    """Generator and option scorer that uses a server's chat completions.

    Requests run concurrently under an adaptive limit (:mod:`climassay.models.openai.connection`). Overload, time-outs,
    dropped connections, 5xx and malformed answers are retried with exponential backoff and full jitter, or after the
    server's ``Retry-After``; other 4xx errors fail at once. Failures are returned as values with an error sentence.

    Capabilities of the server (:mod:`climassay.models.openai.capabilities`) are learned from the first requests and
    stored in the workspace. They determine the meaning of :meth:`option_logprobs`.

    The fingerprint covers the server, the model name and the protocol version, since a server does not expose its
    weights. A configured provider counts by name, so that its host may change; other servers count by base URL. If a
    server changes the model behind a name, use ``--no-cache``.

    For options, an ``assistant_prefix`` is sent as the beginning of the assistant's message if the server continues
    such messages. Otherwise it is omitted (counted in :attr:`fallbacks`) and removed from completions that repeat it.

    A request fails if the server truncates its prompt (:func:`climassay.models.openai.prompt_length.is_shortened`).

    Args:
        name: Name of the model at the provider, with or without the provider's name and a colon.
        provider: ``openai``, or a provider of the user's configuration.
        base_url: URL of the API; by default ``$OPENAI_BASE_URL``, else OpenAI's. The API key is sent only to servers
            that the user has named, see :func:`climassay.models.servers.find_server`.
        api_key: API key; by default the key that is bound to the server's host.
        concurrency: Maximum number of requests in flight, 64 by default; the actual limit is adaptive.
        clock: Time source; replaced in tests.
        price, policy, max_output_tokens, reasoning_effort, folder: See :func:`climassay.models.load_model`. A reasoning
            effort that the server rejects is omitted, with a warning.

    Raises:
        ModelError: The base URL is invalid, or the server needs a key and none is set.
        InputError: The provider is unknown, or a key would be sent unencrypted to another machine.
    """

    def __init__(
        self,
        name: str,
        *,
        provider: str = OPENAI,
        base_url: str | None = None,
        api_key: str | None = None,
        concurrency: int | None = None,
        price: Price | None = None,
        policy: RetryPolicy | None = None,
        max_output_tokens: int | None = None,
        reasoning_effort: str | None = None,
        folder: Path | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._provider, self._model = provider, name.removeprefix(f"{provider}:")
        self.name = f"{provider}:{self._model}"
        """Provider and model name, for example ``openai:gpt-4o-mini``."""
        max_concurrency = DEFAULT_CONCURRENCY if concurrency is None else concurrency
        if max_concurrency < 1:
            raise ModelError(f"The concurrency is {max_concurrency}: it must be at least 1.")
        server = find_server(provider, base_url, api_key)
        self.base_url = server.base_url
        self._connection = Connection(server, max_concurrency, policy or RetryPolicy(), clock or Clock())
        self._limits = {"max_output_tokens": max_output_tokens, "reasoning_effort": reasoning_effort}
        configured_provider = None if provider == OPENAI else provider
        self._tracker = CapabilityTracker(self.base_url, self._model, folder, configured_provider)
        self._conversation = Conversation(
            self._model, self._connection, self._tracker, price, max_output_tokens, reasoning_effort
        )

    @property
    def fingerprint(self) -> str:
        """SHA-256 of server, model name, limits and protocol version."""
        identity: dict[str, Any] = {"provider": self._provider, "model": self._model, "protocol": PROTOCOL}
        identity |= {"base_url": self.base_url} if self._provider == OPENAI else {}
        identity |= {name: value for name, value in self._limits.items() if value is not None}
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()

    @property
    def fallbacks(self) -> Mapping[str, int]:
        """Number of requests that were adapted to the server, by missing capability."""
        return MappingProxyType(Counter(self._tracker.fallbacks))

    @property
    def capabilities(self) -> Capabilities:
        """Capabilities of the model that are known so far."""
        return self._tracker.capabilities

    @property
    def window(self) -> int | None:
        """Context window in tokens (prompt and answer) if the server has stated it; see :meth:`query_window`."""
        return self._tracker.capabilities.window

    def query_window(self) -> int | None:
        """Query the server for its context window and return it; None if it states none.

        Endpoints of vLLM, llama.cpp, Ollama, OpenRouter and others are tried.
        """

        async def read_window(base_url: str) -> None:
            for address in (f"{base_url}/models", f"{base_url.removesuffix('/v1')}/api/ps"):
                self._tracker.note_window(parse_window(await self._connection.read(address), self._model))

        self._connection.map_items(read_window, [self.base_url], None)
        return self.window

    def forget_capabilities(self) -> None:
        """Delete the known capabilities, also from the workspace, so that they are learned again."""
        self._tracker.forget()

    def render(self, messages: Sequence[Message], assistant_prefix: str = "") -> str:
        """Return the messages as sent, in JSON; the server's chat template is unknown."""
        return json.dumps(chat_messages(messages, prefix=assistant_prefix), ensure_ascii=False)

    def generate(
        self, requests: Sequence[GenerationRequest], *, on_result: CompletionCallback | None = None
    ) -> list[Completion]:
        """Return a completion for each request, in order; see :class:`climassay.models.contract.Generator`.

        A schema is sent as ``response_format``, and the answer is validated. If the server rejects or ignores it, the
        schema is added to the prompt (counted in :attr:`fallbacks`). A truncated or invalid answer is requested again,
        with its faults in the prompt, at most twice; exceeding upper bounds of the schema is not a fault.

        Raises:
            ModelError: No request can succeed: the server is unreachable, or key or model name are wrong.
        """
        return self._connection.map_items(self._conversation.complete, requests, on_result)

    def generate_stream(
        self,
        requests: Sequence[GenerationRequest],
        *,
        on_text: TextCallback,
        on_result: CompletionCallback | None = None,
    ) -> list[Completion]:
        """Return completions as :meth:`generate` does, with previews; see ``contract.StreamingGenerator``.

        Streams are requested with token counts. If a server rejects them, or does not count the tokens of a stream,
        later answers are requested without streaming. Requests with a schema are not streamed, since they may be
        retried.
        """
        return self._connection.map_items(self._conversation.complete, requests, on_result, on_text)

    def option_logprobs(
        self, requests: Sequence[OptionRequest], *, on_result: ScoresCallback | None = None
    ) -> list[OptionScores]:
        """Return the scores of each request's options, in order; see :class:`climassay.models.contract.OptionScorer`.

        Method ``top_logprobs`` is used if the server lists likely tokens and the options have at least half of their
        probability; see :func:`climassay.models.openai.option_scores.score_options`. Otherwise the option that an
        answer names gets 0 and the others -100: method ``constrained`` if the server decodes under an enumeration of
        the options, ``generated`` if it does not. An answer that names no option is a failure.

        Raises:
            ModelError: No request can succeed: the server is unreachable, or key or model name are wrong.
        """
        return self._connection.map_items(self._conversation.score_request, requests, on_result)

    def cancel(self, threads: Collection[int]) -> None:
        """Cancel the calls that some threads wait for; see :class:`climassay.models.contract.ConcurrentModel`."""
        self._connection.cancel(threads)

    def close(self) -> None:
        """Close the connections and the client's thread."""
        self._connection.close()


MAX_FIRST_REQUEST_SECONDS = 5.0
"""Maximum number of seconds for which other requests wait for the first request of its kind to an unknown server."""
MAX_SCHEMA_ATTEMPTS = 3
_REPETITION_ERROR = "The answer repeats itself until the token limit cuts it off."
DEFAULT_MAX_TOKENS = 4096
"""Token limit of an answer if the request sets none, as a safeguard against endless text."""
MAX_TOKENS_AFTER_LOOP = 2048
"""Initial token limit of an answer with a schema from a model that has repeated itself without end."""
_CONTINUE_PARAMETERS = {"continue_final_message": True, "add_generation_prompt": False}
"""Parameters with which vLLM and SGLang continue an assistant's message; llama.cpp needs none."""
_SEQUENCE_PROMPT = "Write the numbers from one to nine in words."
_SEQUENCE_START, _SEQUENCE_NEXT = "one, two, three, four, five,", r"\s+six\b"
"""Beginning of the answer to ``_SEQUENCE_PROMPT``, and a pattern of its continuation. The white space before "six" is
required, since a new message would not begin with it."""


class Conversation:
    """Converter of requests to payloads and of replies to results; used in the connection's event loop only."""

    def __init__(
        self,
        model: str,
        connection: Connection,
        tracker: CapabilityTracker,
        price: Price | None,
        max_output_tokens: int | None,
        reasoning_effort: str | None,
    ) -> None:
        self._model, self._connection, self._tracker, self._price = model, connection, tracker, price
        self._max_output_tokens, self._reasoning_effort = max_output_tokens, reasoning_effort
        self._first_request_events: dict[str, asyncio.Event] = {}

    async def complete(self, request: GenerationRequest, show_text: ShowText | None = None) -> Completion:
        """Answer a generation request; ``show_text`` receives the partial text unless there is a schema."""
        if request.schema is not None:
            async with self._wait_for_first_request(
                "schema", lambda: self._tracker.capabilities.schema_support is None
            ):
                return await self._complete_schema(request, request.schema)
        messages = self._messages_without_prefix(request)
        async with self._wait_for_first_request("text", lambda: not self._tracker.capabilities.accepted):
            payload = {"messages": messages, **self._sampling_parameters(request.sampling)}
            if show_text is None:
                outcome, usage = await self._send(payload)
            else:
                payload |= {"stream": True, "stream_options": {"include_usage": True}}
                outcome, usage = await self._send(
                    payload, show_text=lambda text: show_text(_trim_answer(text, request)[0])
                )
        if outcome.reply is None:
            return Completion.failed(str(outcome.error), usage)
        if outcome.reply.withholding_reason is not None:
            return Completion.failed(outcome.reply.withholding_reason, usage)
        text, has_stop_text = _trim_answer(outcome.reply.text, request)
        reason = "stop" if has_stop_text else outcome.reply.finish_reason
        return Completion(text, reason, usage, reasoning=outcome.reply.reasoning)

    async def score_request(self, request: OptionRequest) -> OptionScores:
        """Score the options of a request."""
        if not request.options:
            return OptionScores.failed("The request has no options.")
        async with self._wait_for_first_request("options", lambda: self._tracker.capabilities.logprobs is None):
            capabilities = self._tracker.capabilities
            # The first token of a reasoning model belongs to its reasoning.
            if capabilities.logprobs is None or (
                capabilities.logprobs == "given" and not capabilities.is_reasoning_model
            ):
                return await self._score_by_logprobs(request)
        return await self._score_by_answer(request, Usage())

    @asynccontextmanager
    async def _wait_for_first_request(self, kind: str, is_unknown: Callable[[], bool]) -> AsyncIterator[None]:
        """Let requests of a kind wait for the first one, so that they can use the capabilities that it reveals.

        They wait until it has ended, but at most :data:`MAX_FIRST_REQUEST_SECONDS`, as a model may reason for minutes.
        """
        if (first_request_done := self._first_request_events.get(kind)) is not None or not is_unknown():
            if first_request_done is not None and is_unknown():
                with suppress(TimeoutError):
                    await asyncio.wait_for(first_request_done.wait(), MAX_FIRST_REQUEST_SECONDS)
            yield
            return
        first_request_done = self._first_request_events[kind] = asyncio.Event()
        try:
            yield
        finally:
            first_request_done.set()

    async def _complete_schema(self, request: GenerationRequest, schema: Mapping[str, Any]) -> Completion:
        """Answer a request with a schema, by constrained decoding or by instructions in the prompt.

        Every answer is validated. A truncated or invalid answer is requested again with its faults in the prompt. An
        answer that repeats itself until it is truncated is requested once more, with limits for lists and at most
        :data:`MAX_TOKENS_AFTER_LOOP` tokens. Later requests that set no limit use this limit from the first attempt.
        """
        tracker = self._tracker
        usage = Usage()
        sampling = request.sampling
        if sampling.max_tokens is None and tracker.capabilities.repeats_itself:
            sampling = replace(sampling, max_tokens=MAX_TOKENS_AFTER_LOOP)
        fault = ""
        schema_error: ErrorReply | None = None
        n_attempts = 0
        has_repeated_itself = False
        tracker.fallbacks.update(["assistant_prefix"] if request.assistant_prefix else [])
        while n_attempts < MAX_SCHEMA_ATTEMPTS:
            send_schema = schema_error is None and tracker.capabilities.offers_schema(schema)
            add_instruction = not send_schema or tracker.capabilities.schema_support == "loose" or bool(fault)
            if add_instruction and not fault:
                tracker.fallbacks["json_schema"] += 1
            instruction = schema_instruction(schema, fault or None) if add_instruction else ""
            limits_items = has_repeated_itself or tracker.capabilities.limits_items
            payload = {
                "messages": chat_messages(request.messages, instruction),
                **self._sampling_parameters(sampling),
                **({"response_format": response_format(schema, limits_items=limits_items)} if send_schema else {}),
            }
            outcome, attempt_usage = await self._send(payload)
            usage += attempt_usage
            reply = outcome.reply
            if reply is None:
                if has_repeated_itself and outcome.error_reply is not None:
                    return Completion.failed(_REPETITION_ERROR, usage)
                if limits_items and outcome.error_reply is not None:
                    tracker.note_item_limits(False)
                    continue
                if send_schema and outcome.error_reply is not None:
                    schema_error = outcome.error_reply
                    continue
                return Completion.failed(str(outcome.error), usage)
            if schema_error is not None:
                # The answer without schema proves that the schema was rejected and not the prompt.
                tracker.note_refused_schema(schema, schema_error)
            try:
                result = extract_valid_json(reply.text, schema)
            except ValueError as error:
                if reply.withholding_reason is not None:
                    return Completion.failed(reply.withholding_reason, usage)
                n_attempts += int(add_instruction or reply.finish_reason == "length")
                if reply.finish_reason == "length" and ends_in_loop(reply.text):
                    tracker.note_loop()
                    if has_repeated_itself:
                        return Completion.failed(_REPETITION_ERROR, usage)
                    # A higher limit would be used up by repetitions as well, which takes minutes on a laptop.
                    fault, has_repeated_itself = (
                        "It repeated itself until the token limit: write every item once.",
                        True,
                    )
                    limit = min(sampling.max_tokens or DEFAULT_MAX_TOKENS, MAX_TOKENS_AFTER_LOOP)
                    sampling = replace(sampling, max_tokens=limit)
                    continue
                if reply.finish_reason == "length":
                    fault = "The token limit cut it off before its JSON was complete: write shorter texts."
                    sampling = replace(sampling, max_tokens=2 * (sampling.max_tokens or DEFAULT_MAX_TOKENS))
                    continue
                if send_schema and not fault:
                    tracker.note_schema_support("ignored" if isinstance(error, NoJsonError) else "loose", schema)
                # The answer is prose because the model has not seen the schema: the next prompt contains it.
                is_schema_unseen = not (add_instruction or tracker.capabilities.offers_schema(schema))
                fault = "" if is_schema_unseen else str(error)
                continue
            if send_schema and not fault:
                tracker.note_schema_support("strict", schema)
            if send_schema and has_repeated_itself:
                tracker.note_item_limits(True)
            if result not in reply.text:
                tracker.fallbacks["json repaired"] += 1
            return Completion(result, reply.finish_reason, usage, reasoning=reply.reasoning)
        return Completion.failed(f"No answer in {MAX_SCHEMA_ATTEMPTS} satisfied the schema: {fault}", usage)

    async def _score_by_logprobs(self, request: OptionRequest) -> OptionScores:
        """Score options by the likely tokens of the answer's position, or else by the option that an answer names."""
        tracker, usage = self._tracker, Usage()
        are_logprobs_known = tracker.capabilities.logprobs == "given"
        continues = False
        if are_logprobs_known:
            continues, usage = await self._test_continuation(request)
        outcome, attempt_usage = await self._request_logprobs(request, use_prefix=continues)
        usage += attempt_usage
        reply = outcome.reply
        are_logprobs_missing = (
            outcome.error_reply is not None
            if reply is None
            else not reply.positions and reply.withholding_reason is None
        )
        if are_logprobs_known and are_logprobs_missing:
            tracker.fallbacks["logprobs asked again"] += 1
            outcome, attempt_usage = await self._request_logprobs(request, use_prefix=False)
            usage += attempt_usage
            if continues and outcome.reply is not None and outcome.reply.positions:
                tracker.note_continuation(False)
        elif (
            not are_logprobs_known
            and reply is not None
            and reply.positions
            and not tracker.capabilities.is_reasoning_model
        ):
            continues, attempt_usage = await self._test_continuation(request)
            usage += attempt_usage
            if continues:
                outcome, attempt_usage = await self._request_logprobs(request, use_prefix=True)
                usage += attempt_usage
        if outcome.reply is not None:
            if outcome.reply.positions or outcome.reply.withholding_reason is None:
                tracker.note_logprobs("given" if outcome.reply.positions else "ignored")
            scores = score_options(request.options, outcome.reply.positions)
            if scores is not None:
                return OptionScores(scores, "top_logprobs", usage)
        elif outcome.error_reply is None:
            return OptionScores.failed(str(outcome.error), usage)
        scores_by_answer = await self._score_by_answer(request, usage)
        if outcome.error_reply is not None and scores_by_answer.error is None:
            # The answer without log-probabilities proves that these were rejected and not the prompt.
            tracker.note_logprobs("refused", outcome.status)
        return scores_by_answer

    async def _test_continuation(self, request: OptionRequest) -> tuple[bool, Usage]:
        """Test whether the server continues an assistant's message, if the request has an assistant prefix.

        The test message ends in the middle of a sequence. A server that continues it generates the next word, or
        returns the message with it, which exceeds the token limit of a new message.

        Returns:
            Whether the request's prefix can be sent, and the usage of the test.
        """
        tracker, usage = self._tracker, Usage()
        if not request.assistant_prefix:
            return False, usage
        async with self._wait_for_first_request("continuation", lambda: tracker.capabilities.continues is None):
            if tracker.capabilities.continues is None:
                messages = chat_messages((Message("user", _SEQUENCE_PROMPT),), prefix=_SEQUENCE_START)
                payload = {"messages": messages, "max_tokens": 4, "temperature": 0.0, **_CONTINUE_PARAMETERS}
                outcome, usage = await self._send(payload, reserve_reasoning=False)
                if outcome.reply is not None:
                    text = outcome.reply.text
                    tracker.note_continuation(
                        text.startswith(_SEQUENCE_START) or re.match(_SEQUENCE_NEXT, text) is not None
                    )
                elif outcome.error_reply is not None:
                    tracker.note_continuation(False)
        return bool(tracker.capabilities.continues), usage

    async def _request_logprobs(self, request: OptionRequest, *, use_prefix: bool) -> tuple[RequestOutcome, Usage]:
        """Request the likely tokens at the answer's position; ``use_prefix`` puts the assistant prefix before it."""
        prefix = request.assistant_prefix if use_prefix else ""
        payload = {
            "messages": chat_messages(request.messages, prefix=prefix)
            if prefix
            else self._messages_without_prefix(request),
            **(_CONTINUE_PARAMETERS if prefix else {}),
            "max_tokens": tokens_to_distinguish(request.options),
            "temperature": 0.0,
            "logprobs": True,
            "top_logprobs": self._tracker.capabilities.top_logprobs,
        }
        return await self._send(payload, reserve_reasoning=False)

    async def _score_by_answer(self, request: OptionRequest, usage: Usage) -> OptionScores:
        """Score options by the option that the model's answer names, decoded under an enumeration if possible."""
        tracker = self._tracker
        tracker.fallbacks["logprobs"] += 1
        labels = [option.strip() for option in request.options]
        schema = object_schema({"answer": {"enum": labels}})
        payload = {
            "messages": self._messages_without_prefix(request),
            **self._sampling_parameters(Sampling(max_tokens=None)),
        }
        outcome: RequestOutcome | None = None
        schema_error: ErrorReply | None = None
        if len(set(labels)) == len(labels):
            async with self._wait_for_first_request("schema", lambda: tracker.capabilities.schema_support is None):
                if tracker.capabilities.schema_support in (None, "strict") and tracker.capabilities.offers_schema(
                    schema
                ):
                    outcome, attempt_usage = await self._send({**payload, "response_format": response_format(schema)})
                    usage, schema_error = usage + attempt_usage, outcome.error_reply
                    if outcome.reply is None and schema_error is None:
                        return OptionScores.failed(str(outcome.error), usage)
                    if outcome.reply is not None and outcome.reply.withholding_reason is None:
                        try:
                            answer = json.loads(extract_valid_json(outcome.reply.text, schema))["answer"]
                        except NoJsonError:
                            if outcome.reply.finish_reason != "length":
                                tracker.note_schema_support("ignored", schema)  # and the text is a free answer
                        except ValueError:
                            tracker.note_schema_support("loose", schema)
                            outcome = None
                        else:
                            tracker.note_schema_support("strict", schema)
                            scores = generated_logprobs(labels.index(answer), request.options)
                            return OptionScores(scores, "constrained", usage)
        if outcome is None or outcome.reply is None:
            outcome, attempt_usage = await self._send(payload)
            usage += attempt_usage
            if schema_error is not None and outcome.reply is not None:
                tracker.note_refused_schema(schema, schema_error)
        return _score_answer(outcome, request, usage)

    def _messages_without_prefix(self, request: OptionRequest | GenerationRequest) -> list[dict[str, str]]:
        self._tracker.fallbacks.update(["assistant_prefix"] if request.assistant_prefix else [])
        return chat_messages(request.messages)

    def _sampling_parameters(self, sampling: Sampling) -> dict[str, Any]:
        """Return the sampling parameters of a request body, omitting default values."""
        parameters: dict[str, Any] = {
            "temperature": sampling.temperature,
            "seed": sampling.seed,
            "max_tokens": self._max_output_tokens or sampling.max_tokens or DEFAULT_MAX_TOKENS,
        }
        if sampling.top_p != 1.0:
            parameters["top_p"] = sampling.top_p
        if sampling.stop:
            parameters["stop"] = list(sampling.stop)
        if self._reasoning_effort is not None:
            parameters["reasoning_effort"] = self._reasoning_effort
        return parameters

    async def _is_prompt_truncated(self, messages: Sequence[Mapping[str, str]], reply: Reply) -> bool:
        """Return whether the server has truncated a prompt without an error.

        A server that does not count cached tokens reports few tokens as well. To distinguish the two, the prompt is
        sent once with a random beginning, which is in no cache.
        """
        tracker = self._tracker
        if not is_prompt_truncated(messages, reply.n_prompt_tokens_read):
            return False
        async with self._wait_for_first_request("prompt length", lambda: tracker.capabilities.counts_cached is None):
            if tracker.capabilities.counts_cached is None:
                first_message, *later_messages = messages
                marked_message = {**first_message, "content": f"[{secrets.token_hex(8)}]\n{first_message['content']}"}
                payload = {"model": self._model, "messages": [marked_message, *later_messages], "max_tokens": 1}
                outcome = await self._connection.send(tracker.adapt(payload, reserve_reasoning=False))
                if outcome.reply is None:
                    return False
                is_truncated = is_prompt_truncated(messages, outcome.reply.n_prompt_tokens_read)
                tracker.note_cached_tokens(is_truncated)
                if is_truncated:
                    log.warning("%s", truncation_error(messages, reply))
        if not tracker.capabilities.counts_cached:
            return False
        tracker.fallbacks["shortened prompt"] += 1
        return True

    async def _send(
        self, payload: dict[str, Any], *, reserve_reasoning: bool = True, show_text: ShowText | None = None
    ) -> tuple[RequestOutcome, Usage]:
        """Send a payload until it is answered, omitting parameters that the server rejects.

        Return the outcome, and the usage of all attempts. If ``reserve_reasoning`` is True, the token limit is raised
        if reasoning has used it up.
        """
        tracker = self._tracker
        payload = {"model": self._model, **payload}
        usage = Usage()
        omitted_parameters: set[str] = set()
        token_limit = math.inf
        while True:
            adapted_payload = tracker.adapt(
                payload, omitted_parameters, reserve_reasoning=reserve_reasoning, token_limit=token_limit
            )
            outcome = await self._connection.send(adapted_payload, show_text)
            reply, error_reply = outcome.reply, outcome.error_reply
            attempt_usage = Usage(requests=outcome.attempts)
            if reply is not None:
                prompt, completion = reply.prompt_tokens, reply.completion_tokens
                cost = None if self._price is None else self._price.cost(prompt, completion)
                attempt_usage = Usage(prompt, completion, outcome.attempts, cost, reply.reasoning_tokens)
            usage += attempt_usage
            if reply is not None:
                tracker.note_answer(adapted_payload, reply, omitted_parameters)
                is_reasoning_stopped = "stop" in adapted_payload and reply.reasoning_tokens > 0 and not reply.text
                should_retry = reserve_reasoning and (
                    is_reasoning_stopped
                    or tracker.raise_reasoning_budget(adapted_payload, payload["max_tokens"], reply)
                )
                if "stream" in adapted_payload and not (reply.prompt_tokens or reply.completion_tokens):
                    tracker.note_uncounted_stream()
                if should_retry and show_text is not None:
                    show_text("")
                if not should_retry and await self._is_prompt_truncated(payload["messages"], reply):
                    return RequestOutcome(outcome.attempts, error=truncation_error(payload["messages"], reply)), usage
            elif error_reply is None:
                return outcome, usage
            else:
                n_available = tracker.note_context_error(adapted_payload, error_reply)
                token_limit = token_limit if n_available is None else n_available
                should_retry = n_available is not None or tracker.note_refusal(
                    adapted_payload, error_reply, omitted_parameters
                )
                if not should_retry and "stream" in adapted_payload:
                    # Whatever the error says, the server may answer without streaming.
                    omitted_parameters.add("stream")
            if (
                not (should_retry or error_reply)
                or tracker.adapt(
                    payload, omitted_parameters, reserve_reasoning=reserve_reasoning, token_limit=token_limit
                )
                == adapted_payload
            ):
                return outcome, usage


def chat_messages(messages: Sequence[Message], instruction: str = "", *, prefix: str = "") -> list[dict[str, str]]:
    """Return messages in the format of the API.

    Args:
        messages: Chat messages.
        instruction: Instruction, appended to the last message if it is the user's, otherwise sent as a message.
        prefix: Beginning of the assistant's answer, added as the last message.
    """
    chat = [{"role": message.role, "content": message.content} for message in messages]
    if instruction and chat and chat[-1]["role"] == "user":
        chat[-1]["content"] = f"{chat[-1]['content']}\n\n{instruction}"
    elif instruction:
        chat.append({"role": "user", "content": instruction})
    return [*chat, {"role": "assistant", "content": prefix}] if prefix else chat


def _score_answer(outcome: RequestOutcome, request: OptionRequest, usage: Usage) -> OptionScores:
    """Give the option that a free-text answer names the whole probability.

    The scores are marked as failed if the answer names no option or several.
    """
    if outcome.reply is None:
        return OptionScores.failed(str(outcome.error), usage)
    if outcome.reply.withholding_reason is not None:
        return OptionScores.failed(outcome.reply.withholding_reason, usage)
    text = _strip_prefix(outcome.reply.text, request.assistant_prefix)
    option_index = named_option(text, request.options, request.assistant_prefix)
    if option_index is not None:
        return OptionScores(generated_logprobs(option_index, request.options), "generated", usage)
    excerpt = " ".join(text.split())
    excerpt = excerpt if len(excerpt) <= 120 else excerpt[:120] + "…"
    error = f"The generated answer names none of the options, or several: {excerpt!r}."
    if outcome.reply.finish_reason == "length":
        error = f"The answer was cut off before it named an option (--max-output-tokens allows more): {excerpt!r}."
    return OptionScores((), "generated", usage, error)


def _trim_answer(text: str, request: GenerationRequest) -> tuple[str, bool]:
    """Remove the assistant prefix and everything from the first stop text on; also return whether one was found."""
    text = _strip_prefix(text, request.assistant_prefix)
    # Not every server supports stop texts; removed here, they have the same effect with every server.
    end = min((text.find(stop) for stop in request.sampling.stop if stop and stop in text), default=None)
    return text[:end], end is not None


def _strip_prefix(text: str, assistant_prefix: str) -> str:
    prefix, stripped_text = assistant_prefix.strip(), text.lstrip()
    return stripped_text[len(prefix) :].lstrip(" ") if prefix and stripped_text.startswith(prefix) else text
