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
from climassay.models.json_answers import NoJsonError, ends_in_loop, satisfying_json
from climassay.models.openai.capabilities import Capabilities, CapabilityLearner
from climassay.models.openai.connection import Connection, RequestOutcome, ShowText
from climassay.models.openai.option_scores import generated_logprobs, named_option, score_options, tokens_to_distinguish
from climassay.models.openai.pacing import Clock, RetryPolicy
from climassay.models.openai.prompt_length import is_shortened, shortened_error
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
        self._learner = CapabilityLearner(self.base_url, self._model, folder, configured_provider)
        self._conversation = Conversation(
            self._model, self._connection, self._learner, price, max_output_tokens, reasoning_effort
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
        return MappingProxyType(Counter(self._learner.fallbacks))

    @property
    def capabilities(self) -> Capabilities:
        """Capabilities of the model that are known so far."""
        return self._learner.capabilities

    @property
    def window(self) -> int | None:
        """Context window in tokens (prompt and answer) if the server has stated it; see :meth:`query_window`."""
        return self._learner.capabilities.window

    def query_window(self) -> int | None:
        """Query the server for its context window and return it; None if it states none.

        Endpoints of vLLM, llama.cpp, Ollama, OpenRouter and others are tried.
        """

        async def read_window(base_url: str) -> None:
            for address in (f"{base_url}/models", f"{base_url.removesuffix('/v1')}/api/ps"):
                self._learner.note_window(parse_window(await self._connection.read(address), self._model))

        self._connection.map(read_window, [self.base_url], None)
        return self.window

    def forget_capabilities(self) -> None:
        """Delete the known capabilities, also from the workspace, so that they are learned again."""
        self._learner.forget()

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
        return self._connection.map(self._conversation.complete, requests, on_result)

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
        return self._connection.map(self._conversation.complete, requests, on_result, on_text)

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
        return self._connection.map(self._conversation.score_request, requests, on_result)

    def cancel(self, threads: Collection[int]) -> None:
        """Cancel the calls that some threads wait for; see :class:`climassay.models.contract.ConcurrentModel`."""
        self._connection.cancel(threads)

    def close(self) -> None:
        """Close the connections and the client's thread."""
        self._connection.close()


HEAD_START = 5.0
"""Maximum number of seconds for which other requests wait for the first request of its kind to an unknown server."""
MAX_SCHEMA_ATTEMPTS = 3
_LOOP_ERROR = "The answer repeats itself until the token limit cuts it off."
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
        learner: CapabilityLearner,
        price: Price | None,
        max_output_tokens: int | None,
        reasoning_effort: str | None,
    ) -> None:
        self._model, self._connection, self._learner, self._price = model, connection, learner, price
        self._max_output_tokens, self._reasoning_effort = max_output_tokens, reasoning_effort
        self._first_request_events: dict[str, asyncio.Event] = {}

    async def complete(self, request: GenerationRequest, show_text: ShowText | None = None) -> Completion:
        """Answer a generation request; ``show_text`` receives the partial text unless there is a schema."""
        if request.schema is not None:
            async with self._run_first_alone("schema", lambda: self._learner.capabilities.schema_support is None):
                return await self._complete_schema(request, request.schema)
        messages = self._messages_without_prefix(request)
        async with self._run_first_alone("text", lambda: not self._learner.capabilities.accepted):
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
        if outcome.reply.withheld is not None:
            return Completion.failed(outcome.reply.withheld, usage)
        text, has_stop_text = _trim_answer(outcome.reply.text, request)
        reason = "stop" if has_stop_text else outcome.reply.finish_reason
        return Completion(text, reason, usage, reasoning=outcome.reply.thoughts)

    async def score_request(self, request: OptionRequest) -> OptionScores:
        """Score the options of a request."""
        if not request.options:
            return OptionScores.failed("The request has no options.")
        async with self._run_first_alone("options", lambda: self._learner.capabilities.logprobs is None):
            capabilities = self._learner.capabilities
            # The first token of a model that thinks is the first of its thoughts.
            if capabilities.logprobs is None or (
                capabilities.logprobs == "given" and not capabilities.is_reasoning_model
            ):
                return await self._score_by_logprobs(request)
        return await self._score_by_naming(request, Usage())

    @asynccontextmanager
    async def _run_first_alone(self, kind: str, is_unknown: Callable[[], bool]) -> AsyncIterator[None]:
        """Run the first request of a kind alone, so that other requests can use the capabilities that it reveals.

        Other requests wait until it has ended, but at most :data:`HEAD_START` seconds, as a model may reason for
        minutes.
        """
        if (first_request_done := self._first_request_events.get(kind)) is not None or not is_unknown():
            if first_request_done is not None and is_unknown():
                with suppress(TimeoutError):
                    await asyncio.wait_for(first_request_done.wait(), HEAD_START)
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
        learner = self._learner
        usage = Usage()
        sampling = request.sampling
        if sampling.max_tokens is None and learner.capabilities.repeats_itself:
            sampling = replace(sampling, max_tokens=MAX_TOKENS_AFTER_LOOP)
        problem = ""
        refusal: ErrorReply | None = None
        n_attempts = 0
        has_looped = False
        learner.fallbacks.update(["assistant_prefix"] if request.assistant_prefix else [])
        while n_attempts < MAX_SCHEMA_ATTEMPTS:
            sends_schema = refusal is None and learner.capabilities.offers_schema(schema)
            adds_instruction = not sends_schema or learner.capabilities.schema_support == "loose" or bool(problem)
            if adds_instruction and not problem:
                learner.fallbacks["json_schema"] += 1
            addition = schema_instruction(schema, problem or None) if adds_instruction else ""
            limits_items = has_looped or learner.capabilities.limits_items
            payload = {
                "messages": chat_messages(request.messages, addition),
                **self._sampling_parameters(sampling),
                **({"response_format": response_format(schema, limits_items=limits_items)} if sends_schema else {}),
            }
            outcome, attempt_usage = await self._send(payload)
            usage += attempt_usage
            reply = outcome.reply
            if reply is None:
                if has_looped and outcome.refusal is not None:
                    return Completion.failed(_LOOP_ERROR, usage)
                if limits_items and outcome.refusal is not None:
                    learner.note_item_limits(False)
                    continue
                if sends_schema and outcome.refusal is not None:
                    refusal = outcome.refusal
                    continue
                return Completion.failed(str(outcome.error), usage)
            if refusal is not None:
                # Only now is it certain that the schema was refused and not the prompt.
                learner.note_refused_schema(schema, refusal)
            try:
                result = satisfying_json(reply.text, schema)
            except ValueError as error:
                if reply.withheld is not None:
                    return Completion.failed(reply.withheld, usage)
                n_attempts += int(adds_instruction or reply.finish_reason == "length")
                if reply.finish_reason == "length" and ends_in_loop(reply.text):
                    learner.note_loop()
                    if has_looped:
                        return Completion.failed(_LOOP_ERROR, usage)
                    # More room would be filled in the same way, which takes minutes on a laptop.
                    problem, has_looped = "It repeated itself until the token limit: write every item once.", True
                    limit = min(sampling.max_tokens or DEFAULT_MAX_TOKENS, MAX_TOKENS_AFTER_LOOP)
                    sampling = replace(sampling, max_tokens=limit)
                    continue
                if reply.finish_reason == "length":
                    problem = "The token limit cut it off before its JSON was complete: write shorter texts."
                    sampling = replace(sampling, max_tokens=2 * (sampling.max_tokens or DEFAULT_MAX_TOKENS))
                    continue
                if sends_schema and not problem:
                    learner.note_schema("ignored" if isinstance(error, NoJsonError) else "loose", schema)
                # In prose, because the schema was not seen: from here on it appears in the prompt.
                is_schema_unseen = not (adds_instruction or learner.capabilities.offers_schema(schema))
                problem = "" if is_schema_unseen else str(error)
                continue
            if sends_schema and not problem:
                learner.note_schema("strict", schema)
            if sends_schema and has_looped:
                learner.note_item_limits(True)
            if result not in reply.text:
                learner.fallbacks["json repaired"] += 1
            return Completion(result, reply.finish_reason, usage, reasoning=reply.thoughts)
        return Completion.failed(f"No answer in {MAX_SCHEMA_ATTEMPTS} satisfied the schema: {problem}", usage)

    async def _score_by_logprobs(self, request: OptionRequest) -> OptionScores:
        """Score options by the likely tokens of the answer's position, or else by the option that an answer names."""
        learner, usage = self._learner, Usage()
        is_known = learner.capabilities.logprobs == "given"
        continues = False
        if is_known:
            continues, usage = await self._learn_continuation(request)
        outcome, attempt_usage = await self._request_logprobs(request, use_prefix=continues)
        usage += attempt_usage
        reply = outcome.reply
        is_missing = outcome.refusal is not None if reply is None else not reply.positions and reply.withheld is None
        if is_known and is_missing:
            learner.fallbacks["logprobs asked again"] += 1
            outcome, attempt_usage = await self._request_logprobs(request, use_prefix=False)
            usage += attempt_usage
            if continues and outcome.reply is not None and outcome.reply.positions:
                learner.note_continuation(False)
        elif not is_known and reply is not None and reply.positions and not learner.capabilities.is_reasoning_model:
            continues, attempt_usage = await self._learn_continuation(request)
            usage += attempt_usage
            if continues:
                outcome, attempt_usage = await self._request_logprobs(request, use_prefix=True)
                usage += attempt_usage
        if outcome.reply is not None:
            if outcome.reply.positions or outcome.reply.withheld is None:
                learner.note_logprobs("given" if outcome.reply.positions else "ignored")
            scores = score_options(request.options, outcome.reply.positions)
            if scores is not None:
                return OptionScores(scores, "top_logprobs", usage)
        elif outcome.refusal is None:
            return OptionScores.failed(str(outcome.error), usage)
        scores_by_naming = await self._score_by_naming(request, usage)
        if outcome.refusal is not None and scores_by_naming.error is None:
            # Only now is it certain that the log-probabilities were refused and not the prompt.
            learner.note_logprobs("refused", outcome.status)
        return scores_by_naming

    async def _learn_continuation(self, request: OptionRequest) -> tuple[bool, Usage]:
        """Test whether the server continues an assistant's message, if the request has an assistant prefix.

        The test message ends in the middle of a sequence. A server that continues it generates the next word, or
        returns the message with it, which exceeds the token limit of a new message.

        Returns:
            Whether the request's prefix can be sent, and the usage of the test.
        """
        learner, usage = self._learner, Usage()
        if not request.assistant_prefix:
            return False, usage
        async with self._run_first_alone("continuation", lambda: learner.capabilities.continues is None):
            if learner.capabilities.continues is None:
                messages = chat_messages((Message("user", _SEQUENCE_PROMPT),), prefix=_SEQUENCE_START)
                payload = {"messages": messages, "max_tokens": 4, "temperature": 0.0, **_CONTINUE_PARAMETERS}
                outcome, usage = await self._send(payload, reserves_reasoning=False)
                if outcome.reply is not None:
                    text = outcome.reply.text
                    learner.note_continuation(
                        text.startswith(_SEQUENCE_START) or re.match(_SEQUENCE_NEXT, text) is not None
                    )
                elif outcome.refusal is not None:
                    learner.note_continuation(False)
        return bool(learner.capabilities.continues), usage

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
            "top_logprobs": self._learner.capabilities.top_logprobs,
        }
        return await self._send(payload, reserves_reasoning=False)

    async def _score_by_naming(self, request: OptionRequest, usage: Usage) -> OptionScores:
        """Score options by the option that the model's answer names, decoded under an enumeration if possible."""
        learner = self._learner
        learner.fallbacks["logprobs"] += 1
        labels = [option.strip() for option in request.options]
        schema = object_schema({"answer": {"enum": labels}})
        payload = {
            "messages": self._messages_without_prefix(request),
            **self._sampling_parameters(Sampling(max_tokens=None)),
        }
        outcome, refusal = RequestOutcome(0), None
        if len(set(labels)) == len(labels):
            async with self._run_first_alone("schema", lambda: learner.capabilities.schema_support is None):
                if learner.capabilities.schema_support in (None, "strict") and learner.capabilities.offers_schema(
                    schema
                ):
                    outcome, attempt_usage = await self._send({**payload, "response_format": response_format(schema)})
                    usage, refusal = usage + attempt_usage, outcome.refusal
                    if outcome.reply is None and refusal is None:
                        return OptionScores.failed(str(outcome.error), usage)
                    if outcome.reply is not None and outcome.reply.withheld is None:
                        try:
                            answer = json.loads(satisfying_json(outcome.reply.text, schema))["answer"]
                        except NoJsonError:
                            if outcome.reply.finish_reason != "length":
                                learner.note_schema("ignored", schema)  # and the text is a free answer
                        except ValueError:
                            learner.note_schema("loose", schema)
                            outcome = RequestOutcome(0)
                        else:
                            learner.note_schema("strict", schema)
                            scores = generated_logprobs(labels.index(answer), request.options)
                            return OptionScores(scores, "constrained", usage)
        if outcome.reply is None:
            outcome, attempt_usage = await self._send(payload)
            usage += attempt_usage
            if refusal is not None and outcome.reply is not None:
                learner.note_refused_schema(schema, refusal)
        return _score_answer(outcome, request, usage)

    def _messages_without_prefix(self, request: OptionRequest | GenerationRequest) -> list[dict[str, str]]:
        self._learner.fallbacks.update(["assistant_prefix"] if request.assistant_prefix else [])
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

    async def _is_shortened(self, messages: Sequence[Mapping[str, str]], reply: Reply) -> bool:
        """Return whether the server has truncated a prompt without an error.

        A server that does not count cached tokens reports few tokens as well. To distinguish the two, the prompt is
        sent once with a random beginning, which is in no cache.
        """
        learner = self._learner
        if not is_shortened(messages, reply.read_tokens):
            return False
        async with self._run_first_alone("prompt length", lambda: learner.capabilities.counts_cached is None):
            if learner.capabilities.counts_cached is None:
                first_message, *later_messages = messages
                marked_message = {**first_message, "content": f"[{secrets.token_hex(8)}]\n{first_message['content']}"}
                payload = {"model": self._model, "messages": [marked_message, *later_messages], "max_tokens": 1}
                outcome = await self._connection.ask(learner.adapt(payload, reserves_reasoning=False))
                if outcome.reply is None:
                    return False
                is_truncated = is_shortened(messages, outcome.reply.read_tokens)
                learner.note_cached_count(is_truncated)
                if is_truncated:
                    log.warning("%s", shortened_error(messages, reply))
        if not learner.capabilities.counts_cached:
            return False
        learner.fallbacks["shortened prompt"] += 1
        return True

    async def _send(
        self, payload: dict[str, Any], *, reserves_reasoning: bool = True, show_text: ShowText | None = None
    ) -> tuple[RequestOutcome, Usage]:
        """Send a payload until it is answered, omitting parameters that the server rejects.

        Return the outcome, and the usage of all attempts. If ``reserves_reasoning`` is True, the token limit is raised
        if reasoning has used it up.
        """
        learner = self._learner
        payload = {"model": self._model, **payload}
        usage = Usage()
        omitted_parameters: set[str] = set()
        token_limit = math.inf
        while True:
            adapted_payload = learner.adapt(
                payload, omitted_parameters, reserves_reasoning=reserves_reasoning, token_limit=token_limit
            )
            outcome = await self._connection.ask(adapted_payload, show_text)
            reply, refusal = outcome.reply, outcome.refusal
            attempt_usage = Usage(requests=outcome.attempts)
            if reply is not None:
                prompt, completion = reply.prompt_tokens, reply.completion_tokens
                cost = None if self._price is None else self._price.cost(prompt, completion)
                attempt_usage = Usage(prompt, completion, outcome.attempts, cost, reply.reasoning_tokens)
            usage += attempt_usage
            if reply is not None:
                learner.note_answer(adapted_payload, reply, omitted_parameters)
                is_stopped = "stop" in adapted_payload and reply.reasoning_tokens > 0 and not reply.text
                should_retry = reserves_reasoning and (
                    is_stopped or learner.raise_reasoning_budget(adapted_payload, payload["max_tokens"], reply)
                )
                if "stream" in adapted_payload and not (reply.prompt_tokens or reply.completion_tokens):
                    learner.note_uncounted_stream()
                if should_retry and show_text is not None:
                    show_text("")
                if not should_retry and await self._is_shortened(payload["messages"], reply):
                    return RequestOutcome(outcome.attempts, error=shortened_error(payload["messages"], reply)), usage
            elif refusal is None:
                return outcome, usage
            else:
                stated_limit = learner.parse_room(adapted_payload, refusal)
                token_limit = token_limit if stated_limit is None else stated_limit
                should_retry = stated_limit is not None or learner.note_refusal(
                    adapted_payload, refusal, omitted_parameters
                )
                if not should_retry and "stream" in adapted_payload:
                    # Whatever the words of the refusal: a whole answer may be had.
                    omitted_parameters.add("stream")
            if (
                not (should_retry or refusal)
                or learner.adapt(
                    payload, omitted_parameters, reserves_reasoning=reserves_reasoning, token_limit=token_limit
                )
                == adapted_payload
            ):
                return outcome, usage


def chat_messages(messages: Sequence[Message], addition: str = "", *, prefix: str = "") -> list[dict[str, str]]:
    """Return messages in the format of the API.

    Args:
        messages: Chat messages.
        addition: Instruction, appended to the last message if it is the user's, otherwise sent as a message.
        prefix: Beginning of the assistant's answer, added as the last message.
    """
    chat = [{"role": message.role, "content": message.content} for message in messages]
    if addition and chat and chat[-1]["role"] == "user":
        chat[-1]["content"] = f"{chat[-1]['content']}\n\n{addition}"
    elif addition:
        chat.append({"role": "user", "content": addition})
    return [*chat, {"role": "assistant", "content": prefix}] if prefix else chat


def _score_answer(outcome: RequestOutcome, request: OptionRequest, usage: Usage) -> OptionScores:
    """Score options by the option that a free answer names. Scoring fails if the answer names none or several."""
    if outcome.reply is None:
        return OptionScores.failed(str(outcome.error), usage)
    if outcome.reply.withheld is not None:
        return OptionScores.failed(outcome.reply.withheld, usage)
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
    # Not every server takes stops; the result is the same with all.
    end = min((text.find(stop) for stop in request.sampling.stop if stop and stop in text), default=None)
    return text[:end], end is not None


def _strip_prefix(text: str, assistant_prefix: str) -> str:
    prefix, stripped_text = assistant_prefix.strip(), text.lstrip()
    return stripped_text[len(prefix) :].lstrip(" ") if prefix and stripped_text.startswith(prefix) else text
