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
from climassay.models.openai.capabilities import Capabilities, LearnedCapabilities
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
"""Version of the requests sent, part of the fingerprint; to be increased when the same request is sent differently."""


class OpenAIModel:
    """Generator and option scorer over chat completions.

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

    An answer to a truncated prompt fails (:func:`climassay.models.openai.prompt_length.is_shortened`).

    Args:
        name: Name of the model at the provider, with or without the provider's name and a colon.
        provider: ``openai``, or a provider of the user's configuration.
        base_url: URL of the API; by default ``$OPENAI_BASE_URL``, else OpenAI's. The API key is sent only to servers
            that the user has named, see :func:`climassay.models.servers.find_server`.
        api_key: API key; by default the one that is bound to the server's host.
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
        ceiling = DEFAULT_CONCURRENCY if concurrency is None else concurrency
        if ceiling < 1:
            raise ModelError(f"The concurrency is {ceiling}: it must be at least 1.")
        server = find_server(provider, base_url, api_key)
        self.base_url = server.base_url
        self._connection = Connection(server, ceiling, policy or RetryPolicy(), clock or Clock())
        self._limits = {"max_output_tokens": max_output_tokens, "reasoning_effort": reasoning_effort}
        configured = None if provider == OPENAI else provider
        self._learned = LearnedCapabilities(self.base_url, self._model, folder, configured)
        self._conversation = Conversation(
            self._model, self._connection, self._learned, price, max_output_tokens, reasoning_effort
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
        return MappingProxyType(Counter(self._learned.fallbacks))

    @property
    def capabilities(self) -> Capabilities:
        """Capabilities of the model that are known so far."""
        return self._learned.capabilities

    @property
    def window(self) -> int | None:
        """Context window in tokens (prompt and answer) if the server has stated it; see :meth:`ask_window`."""
        return self._learned.capabilities.window

    def ask_window(self) -> int | None:
        """Request the context window from the server, in the ways of vLLM, llama.cpp, Ollama, OpenRouter and others."""

        async def read_window(base_url: str) -> None:
            for address in (f"{base_url}/models", f"{base_url.removesuffix('/v1')}/api/ps"):
                self._learned.note_window(parse_window(await self._connection.read(address), self._model))

        self._connection.map(read_window, [self.base_url], None)
        return self.window

    def forget_capabilities(self) -> None:
        """Delete the known capabilities, also from the workspace, so that they are learned again."""
        self._learned.forget()

    def render(self, messages: Sequence[Message], assistant_prefix: str = "") -> str:
        """Return the messages as sent, in JSON; the server's chat template is unknown."""
        return json.dumps(chat_messages(messages, prefix=assistant_prefix), ensure_ascii=False)

    def generate(
        self, requests: Sequence[GenerationRequest], *, on_result: CompletionCallback | None = None
    ) -> list[Completion]:
        """Answer all requests, in order; see :class:`climassay.models.contract.Generator`.

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
        """Answer all requests as :meth:`generate` does, with previews; see ``contract.StreamingGenerator``.

        Requests ask for a stream with token counts. A server that rejects either, or does not count the tokens of a
        stream, gets requests without from then on. Requests with a schema are not streamed, since they may be retried.
        """
        return self._connection.map(self._conversation.complete, requests, on_result, on_text)

    def option_logprobs(
        self, requests: Sequence[OptionRequest], *, on_result: ScoresCallback | None = None
    ) -> list[OptionScores]:
        """Score options; see :class:`climassay.models.contract.OptionScorer`.

        Method ``top_logprobs`` is used if the server lists likely tokens and the options have at least half of their
        probability; see :func:`climassay.models.openai.option_scores.score_options`. Otherwise the option that an
        answer names gets 0 and the others -100: method ``constrained`` if the server decodes under an enumeration of
        the options, ``generated`` if it does not. An answer that names no option is a failure.

        Raises:
            ModelError: No request can succeed: the server is unreachable, or key or model name are wrong.
        """
        return self._connection.map(self._conversation.score_options_of, requests, on_result)

    def cancel(self, threads: Collection[int]) -> None:
        """Cancel the calls of some threads; see :class:`climassay.models.contract.ConcurrentModel`."""
        self._connection.cancel(threads)

    def close(self) -> None:
        """Close the connections and the client's thread."""
        self._connection.close()


HEAD_START = 5.0
"""Maximum seconds that the first request of a kind to an unknown server runs alone."""
MAX_SCHEMA_ATTEMPTS = 3
_LOOP = "The answer repeats itself until the token limit cuts it off."
DEFAULT_MAX_TOKENS = 4096
"""Token limit of an answer if the request sets none, as a safeguard against endless text."""
MAX_TOKENS_AFTER_LOOP = 1024
"""Token limit, before it is raised for an answer that needs more, once the model has repeated itself without end."""
_CONTINUE_PARAMETERS = {"continue_final_message": True, "add_generation_prompt": False}
"""Parameters with which vLLM and SGLang continue an assistant's message; llama.cpp needs none."""
_SEQUENCE_PROMPT = "Write the numbers from one to nine in words."
_SEQUENCE_START, _SEQUENCE_NEXT = "one, two, three, four, five,", r"\s+six\b"
"""Incomplete answer to that prompt, and a pattern of its continuation; a new message has no space before it."""


class Conversation:
    """Converts requests to payloads and replies to results. Used in the connection's event loop only."""

    def __init__(
        self,
        model: str,
        connection: Connection,
        learned: LearnedCapabilities,
        price: Price | None,
        max_output_tokens: int | None,
        reasoning_effort: str | None,
    ) -> None:
        self._model, self._connection, self._learned, self._price = model, connection, learned, price
        self._max_output_tokens, self._reasoning_effort = max_output_tokens, reasoning_effort
        self._first_done: dict[str, asyncio.Event] = {}

    async def complete(self, request: GenerationRequest, show: ShowText | None = None) -> Completion:
        """Answer a generation request; ``show`` receives the partial text unless there is a schema."""
        if request.schema is not None:
            async with self._first_alone("schema", lambda: self._learned.capabilities.schema_support is None):
                return await self._complete_schema(request, request.schema)
        messages = self._messages_without_prefix(request)
        async with self._first_alone("text", lambda: not self._learned.capabilities.accepted):
            payload = {"messages": messages, **self._parameters(request.sampling)}
            if show is None:
                outcome, usage = await self._ask(payload)
            else:
                payload |= {"stream": True, "stream_options": {"include_usage": True}}
                outcome, usage = await self._ask(payload, show=lambda text: show(_trim_answer(text, request)[0]))
        if outcome.reply is None:
            return Completion.failed(str(outcome.error), usage)
        if outcome.reply.withheld is not None:
            return Completion.failed(outcome.reply.withheld, usage)
        text, stopped = _trim_answer(outcome.reply.text, request)
        reason = "stop" if stopped else outcome.reply.finish_reason
        return Completion(text, reason, usage, reasoning=outcome.reply.thoughts)

    async def score_options_of(self, request: OptionRequest) -> OptionScores:
        """Score the options of a request."""
        if not request.options:
            return OptionScores.failed("The request has no options.")
        async with self._first_alone("options", lambda: self._learned.capabilities.logprobs is None):
            capabilities = self._learned.capabilities
            # The first token of a model that thinks is the first of its thoughts.
            if capabilities.logprobs is None or (
                capabilities.logprobs == "given" and not capabilities.is_reasoning_model
            ):
                return await self._score_by_logprobs(request)
        return await self._score_by_naming(request, Usage())

    @asynccontextmanager
    async def _first_alone(self, kind: str, is_unknown: Callable[[], bool]) -> AsyncIterator[None]:
        """Run the first request of a kind alone, so that other requests can use what it learns.

        Others wait until it has ended, but at most :data:`HEAD_START` seconds, since a model may think for minutes.
        """
        if (first := self._first_done.get(kind)) is not None or not is_unknown():
            if first is not None and is_unknown():
                with suppress(TimeoutError):
                    await asyncio.wait_for(first.wait(), HEAD_START)
            yield
            return
        first = self._first_done[kind] = asyncio.Event()
        try:
            yield
        finally:
            first.set()

    async def _complete_schema(self, request: GenerationRequest, schema: Mapping[str, Any]) -> Completion:
        """Answer a request with a schema, by constrained decoding or by instructions in the prompt.

        Every answer is validated. A truncated or invalid answer is requested again with its faults in the prompt. An
        answer that repeats itself until it is truncated is requested once more, with limits for lists and at most
        :data:`MAX_TOKENS_AFTER_LOOP` tokens, with which later requests without a limit of their own begin.
        """
        learned = self._learned
        usage = Usage()
        sampling = request.sampling
        if sampling.max_tokens is None and learned.capabilities.repeats_itself:
            sampling = replace(sampling, max_tokens=MAX_TOKENS_AFTER_LOOP)
        problem = ""
        refusal: ErrorReply | None = None
        n_attempts = 0
        has_looped = False
        learned.fallbacks.update(["assistant_prefix"] if request.assistant_prefix else [])
        while n_attempts < MAX_SCHEMA_ATTEMPTS:
            is_offered = refusal is None and learned.capabilities.offers_schema(schema)
            is_stated = not is_offered or learned.capabilities.schema_support == "loose" or bool(problem)
            if is_stated and not problem:
                learned.fallbacks["json_schema"] += 1
            addition = schema_instruction(schema, problem or None) if is_stated else ""
            limits_items = has_looped or learned.capabilities.limits_items
            payload = {
                "messages": chat_messages(request.messages, addition),
                **self._parameters(sampling),
                **({"response_format": response_format(schema, limits_items=limits_items)} if is_offered else {}),
            }
            outcome, attempt_usage = await self._ask(payload)
            usage += attempt_usage
            reply = outcome.reply
            if reply is None:
                if has_looped and outcome.refusal is not None:
                    return Completion.failed(_LOOP, usage)
                if limits_items and outcome.refusal is not None:
                    learned.note_item_limits(False)
                    continue
                if is_offered and outcome.refusal is not None:
                    refusal = outcome.refusal
                    continue
                return Completion.failed(str(outcome.error), usage)
            if refusal is not None:
                # Only now is it certain that the schema was refused and not the prompt.
                learned.note_refused_schema(schema, refusal)
            try:
                result = satisfying_json(reply.text, schema)
            except ValueError as error:
                if reply.withheld is not None:
                    return Completion.failed(reply.withheld, usage)
                n_attempts += int(is_stated or reply.finish_reason == "length")
                if reply.finish_reason == "length" and ends_in_loop(reply.text):
                    learned.note_loop()
                    if has_looped:
                        return Completion.failed(_LOOP, usage)
                    # More room would be filled in the same way, which takes minutes on a laptop.
                    problem, has_looped = "It repeated itself until the token limit: write every item once.", True
                    limit = min(sampling.max_tokens or DEFAULT_MAX_TOKENS, MAX_TOKENS_AFTER_LOOP)
                    sampling = replace(sampling, max_tokens=limit)
                    continue
                if reply.finish_reason == "length":
                    problem = "The token limit cut it off before its JSON was complete: write shorter texts."
                    sampling = replace(sampling, max_tokens=2 * (sampling.max_tokens or DEFAULT_MAX_TOKENS))
                    continue
                if is_offered and not problem:
                    learned.note_schema("ignored" if isinstance(error, NoJsonError) else "loose", schema)
                # In prose, because the schema was not seen: from here on it appears in the prompt.
                is_schema_unseen = not (is_stated or learned.capabilities.offers_schema(schema))
                problem = "" if is_schema_unseen else str(error)
                continue
            if is_offered and not problem:
                learned.note_schema("strict", schema)
            if is_offered and has_looped:
                learned.note_item_limits(True)
            if result not in reply.text:
                learned.fallbacks["json repaired"] += 1
            return Completion(result, reply.finish_reason, usage, reasoning=reply.thoughts)
        return Completion.failed(f"No answer in {MAX_SCHEMA_ATTEMPTS} satisfied the schema: {problem}", usage)

    async def _score_by_logprobs(self, request: OptionRequest) -> OptionScores:
        """Score options by the likely tokens at the position of the answer, or by naming if these do not decide."""
        learned, usage = self._learned, Usage()
        is_known = learned.capabilities.logprobs == "given"
        continues = False
        if is_known:
            continues, usage = await self._learn_continuation(request)
        outcome, attempt_usage = await self._ask_logprobs(request, use_prefix=continues)
        usage += attempt_usage
        reply = outcome.reply
        is_missing = outcome.refusal is not None if reply is None else not reply.positions and reply.withheld is None
        if is_known and is_missing:
            learned.fallbacks["logprobs asked again"] += 1
            outcome, attempt_usage = await self._ask_logprobs(request, use_prefix=False)
            usage += attempt_usage
            if continues and outcome.reply is not None and outcome.reply.positions:
                learned.note_continuation(False)
        elif not is_known and reply is not None and reply.positions and not learned.capabilities.is_reasoning_model:
            continues, attempt_usage = await self._learn_continuation(request)
            usage += attempt_usage
            if continues:
                outcome, attempt_usage = await self._ask_logprobs(request, use_prefix=True)
                usage += attempt_usage
        if outcome.reply is not None:
            if outcome.reply.positions or outcome.reply.withheld is None:
                learned.note_logprobs("given" if outcome.reply.positions else "ignored")
            scores = score_options(request.options, outcome.reply.positions)
            if scores is not None:
                return OptionScores(scores, "top_logprobs", usage)
        elif outcome.refusal is None:
            return OptionScores.failed(str(outcome.error), usage)
        scores_by_naming = await self._score_by_naming(request, usage)
        if outcome.refusal is not None and scores_by_naming.error is None:
            # Only now is it certain that the log-probabilities were refused and not the prompt.
            learned.note_logprobs("refused", outcome.status)
        return scores_by_naming

    async def _learn_continuation(self, request: OptionRequest) -> tuple[bool, Usage]:
        """Test whether the server continues an assistant's message, if the request begins one.

        The test message ends in the middle of a sequence. A server that continues it generates the next word, or
        returns the message with it, which exceeds the token limit of a new message.

        Returns:
            Whether the request's prefix can be sent, and the usage of the test.
        """
        learned, usage = self._learned, Usage()
        if not request.assistant_prefix:
            return False, usage
        async with self._first_alone("continuation", lambda: learned.capabilities.continues is None):
            if learned.capabilities.continues is None:
                messages = chat_messages((Message("user", _SEQUENCE_PROMPT),), prefix=_SEQUENCE_START)
                payload = {"messages": messages, "max_tokens": 4, "temperature": 0.0, **_CONTINUE_PARAMETERS}
                outcome, usage = await self._ask(payload, reasoning=False)
                if outcome.reply is not None:
                    text = outcome.reply.text
                    learned.note_continuation(
                        text.startswith(_SEQUENCE_START) or re.match(_SEQUENCE_NEXT, text) is not None
                    )
                elif outcome.refusal is not None:
                    learned.note_continuation(False)
        return bool(learned.capabilities.continues), usage

    async def _ask_logprobs(self, request: OptionRequest, *, use_prefix: bool) -> tuple[RequestOutcome, Usage]:
        """Request the likely tokens at the position of the answer, after the assistant prefix if ``use_prefix``."""
        prefix = request.assistant_prefix if use_prefix else ""
        payload = {
            "messages": chat_messages(request.messages, prefix=prefix)
            if prefix
            else self._messages_without_prefix(request),
            **(_CONTINUE_PARAMETERS if prefix else {}),
            "max_tokens": tokens_to_distinguish(request.options),
            "temperature": 0.0,
            "logprobs": True,
            "top_logprobs": self._learned.capabilities.top_logprobs,
        }
        return await self._ask(payload, reasoning=False)

    async def _score_by_naming(self, request: OptionRequest, usage: Usage) -> OptionScores:
        """Score options by the one that an answer names, decoded under an enumeration if possible."""
        learned = self._learned
        learned.fallbacks["logprobs"] += 1
        labels = [option.strip() for option in request.options]
        schema = object_schema({"answer": {"enum": labels}})
        payload = {"messages": self._messages_without_prefix(request), **self._parameters(Sampling(max_tokens=None))}
        outcome, refusal = RequestOutcome(0), None
        if len(set(labels)) == len(labels):
            async with self._first_alone("schema", lambda: learned.capabilities.schema_support is None):
                if learned.capabilities.schema_support in (None, "strict") and learned.capabilities.offers_schema(
                    schema
                ):
                    outcome, attempt_usage = await self._ask({**payload, "response_format": response_format(schema)})
                    usage, refusal = usage + attempt_usage, outcome.refusal
                    if outcome.reply is None and refusal is None:
                        return OptionScores.failed(str(outcome.error), usage)
                    if outcome.reply is not None and outcome.reply.withheld is None:
                        try:
                            answer = json.loads(satisfying_json(outcome.reply.text, schema))["answer"]
                        except NoJsonError:
                            if outcome.reply.finish_reason != "length":
                                learned.note_schema("ignored", schema)  # and the text is a free answer
                        except ValueError:
                            learned.note_schema("loose", schema)
                            outcome = RequestOutcome(0)
                        else:
                            learned.note_schema("strict", schema)
                            scores = generated_logprobs(labels.index(answer), request.options)
                            return OptionScores(scores, "constrained", usage)
        if outcome.reply is None:
            outcome, attempt_usage = await self._ask(payload)
            usage += attempt_usage
            if refusal is not None and outcome.reply is not None:
                learned.note_refused_schema(schema, refusal)
        return _scores_of_answer(outcome, request, usage)

    def _messages_without_prefix(self, request: OptionRequest | GenerationRequest) -> list[dict[str, str]]:
        self._learned.fallbacks.update(["assistant_prefix"] if request.assistant_prefix else [])
        return chat_messages(request.messages)

    def _parameters(self, sampling: Sampling) -> dict[str, Any]:
        """Return sampling parameters, omitting common defaults."""
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
        learned = self._learned
        if not is_shortened(messages, reply.read_tokens):
            return False
        async with self._first_alone("prompt length", lambda: learned.capabilities.counts_cached is None):
            if learned.capabilities.counts_cached is None:
                first, *later_messages = messages
                marked = {**first, "content": f"[{secrets.token_hex(8)}]\n{first['content']}"}
                payload = {"model": self._model, "messages": [marked, *later_messages], "max_tokens": 1}
                outcome = await self._connection.ask(learned.adapt(payload, reasoning=False))
                if outcome.reply is None:
                    return False
                is_truncated = is_shortened(messages, outcome.reply.read_tokens)
                learned.note_cached_count(is_truncated)
                if is_truncated:
                    log.warning("%s", shortened_error(messages, reply))
        if not learned.capabilities.counts_cached:
            return False
        learned.fallbacks["shortened prompt"] += 1
        return True

    async def _ask(
        self, payload: dict[str, Any], *, reasoning: bool = True, show: ShowText | None = None
    ) -> tuple[RequestOutcome, Usage]:
        """Send a payload until it is answered, omitting parameters that the server rejects.

        Args:
            payload: Request body without the model name.
            reasoning: Raise the token limit if reasoning has used it up.
            show: Receives the partial text of a stream.

        Returns:
            The outcome, and the usage of all attempts.
        """
        learned = self._learned
        payload = {"model": self._model, **payload}
        usage = Usage()
        tried: set[str] = set()
        token_limit = math.inf
        while True:
            sent = learned.adapt(payload, tried, reasoning=reasoning, token_limit=token_limit)
            outcome = await self._connection.ask(sent, show)
            reply, refusal = outcome.reply, outcome.refusal
            attempt_usage = Usage(requests=outcome.attempts)
            if reply is not None:
                prompt, completion = reply.prompt_tokens, reply.completion_tokens
                cost = None if self._price is None else self._price.cost(prompt, completion)
                attempt_usage = Usage(prompt, completion, outcome.attempts, cost, reply.reasoning_tokens)
            usage += attempt_usage
            if reply is not None:
                learned.note_answer(sent, reply, tried)
                is_stopped = "stop" in sent and reply.reasoning_tokens > 0 and not reply.text
                should_retry = reasoning and (
                    is_stopped or learned.raise_reasoning_budget(sent, payload["max_tokens"], reply)
                )
                if "stream" in sent and not (reply.prompt_tokens or reply.completion_tokens):
                    learned.note_uncounted_stream()
                if should_retry and show is not None:
                    show("")
                if not should_retry and await self._is_shortened(payload["messages"], reply):
                    return RequestOutcome(outcome.attempts, error=shortened_error(payload["messages"], reply)), usage
            elif refusal is None:
                return outcome, usage
            else:
                stated_limit = learned.parse_room(sent, refusal)
                token_limit = token_limit if stated_limit is None else stated_limit
                should_retry = stated_limit is not None or learned.note_refusal(sent, refusal, tried)
                if not should_retry and "stream" in sent:
                    # Whatever the words of the refusal: a whole answer may be had.
                    tried.add("stream")
            if (
                not (should_retry or refusal)
                or learned.adapt(payload, tried, reasoning=reasoning, token_limit=token_limit) == sent
            ):
                return outcome, usage


def chat_messages(messages: Sequence[Message], addition: str = "", *, prefix: str = "") -> list[dict[str, str]]:
    """Return messages as sent to a server.

    Args:
        messages: Chat messages.
        addition: Instruction, appended to the last message if it is the user's, otherwise sent as a message.
        prefix: Beginning of the assistant's answer, added as the last message.
    """
    sent = [{"role": message.role, "content": message.content} for message in messages]
    if addition and sent and sent[-1]["role"] == "user":
        sent[-1]["content"] = f"{sent[-1]['content']}\n\n{addition}"
    elif addition:
        sent.append({"role": "user", "content": addition})
    return [*sent, {"role": "assistant", "content": prefix}] if prefix else sent


def _scores_of_answer(outcome: RequestOutcome, request: OptionRequest, usage: Usage) -> OptionScores:
    """Score options by the one that a free answer names; the scores fail if it names none or several."""
    if outcome.reply is None:
        return OptionScores.failed(str(outcome.error), usage)
    if outcome.reply.withheld is not None:
        return OptionScores.failed(outcome.reply.withheld, usage)
    text = _without_prefix(outcome.reply.text, request.assistant_prefix)
    chosen = named_option(text, request.options, request.assistant_prefix)
    if chosen is not None:
        return OptionScores(generated_logprobs(chosen, request.options), "generated", usage)
    excerpt = " ".join(text.split())
    excerpt = excerpt if len(excerpt) <= 120 else excerpt[:120] + "…"
    error = f"The generated answer names none of the options, or several: {excerpt!r}."
    if outcome.reply.finish_reason == "length":
        error = f"The answer was cut off before it named an option (--max-output-tokens allows more): {excerpt!r}."
    return OptionScores((), "generated", usage, error)


def _trim_answer(text: str, request: GenerationRequest) -> tuple[str, bool]:
    """Return an answer without prefix and stop text, and whether a stop text ended it."""
    text = _without_prefix(text, request.assistant_prefix)
    # Not every server takes stops; the result is the same with all.
    end = min((text.find(stop) for stop in request.sampling.stop if stop and stop in text), default=None)
    return text[:end], end is not None


def _without_prefix(text: str, assistant_prefix: str) -> str:
    """Remove the assistant prefix from an answer that repeats it."""
    prefix, start = assistant_prefix.strip(), text.lstrip()
    return start[len(prefix) :].lstrip(" ") if prefix and start.startswith(prefix) else text
