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
from climassay.models.json_answers import NoJsonError, satisfying_json
from climassay.models.openai.capabilities import Capabilities, LearnedCapabilities
from climassay.models.openai.connection import Clock, Connection, Outcome, RetryPolicy, ShowText
from climassay.models.openai.option_scores import generated_logprobs, named_option, score_options, tokens_to_distinguish
from climassay.models.openai.prompt_length import is_shortened, shortened_error
from climassay.models.openai.replies import ErrorReply, Reply, parse_window
from climassay.models.openai.schema import response_format, schema_instruction
from climassay.models.servers import OPENAI, Price, find_server

log = logging.getLogger("climassay.models")

DEFAULT_CONCURRENCY = 64
PROTOCOL = 2
"""Part of the fingerprint: raised when what is sent for the same request changes."""


class OpenAIModel:
    """A generator and option scorer over chat completions.

    Requests run concurrently under an adaptive limit (:mod:`climassay.models.openai.connection`). Overload, time-outs,
    dropped connections, 5xx and malformed answers are tried again with exponential backoff and full jitter, or when
    the server's ``Retry-After`` says; what a server refuses for good (4xx) fails at once. Failures are values with one
    sentence.

    What the numbers of :meth:`option_logprobs` mean depends on what the server can do, which is found out with the
    first requests, kept in the workspace and shown by :attr:`capabilities`
    (:mod:`climassay.models.openai.capabilities`).

    Limits of the fingerprint: it covers the server, the model's name and this client's protocol, since a server does
    not show its weights. The server is known by its name in the user's configuration, so that it may move to another
    host or port, and by its base URL where it has no name there. If a server changes what it serves under a name, ask
    afresh (``--no-cache``).

    An ``assistant_prefix`` is sent as the beginning of the assistant's message where options are weighed and the server
    goes on with such a message, which is found out once. Elsewhere it is left out (counted in :attr:`fallbacks`), and a
    completion that repeats it is shortened by it.

    An answer to a prompt of which the server reports far fewer tokens than it must have is a failure: some servers
    shorten prompts without an error (:func:`climassay.models.openai.prompt_length.is_shortened`).

    Args:
        name: Name of the model at the provider, with or without the provider's name and a colon.
        provider: ``openai``, or a provider of the user's configuration.
        base_url: Where ``chat/completions`` is; by default ``$OPENAI_BASE_URL``, else OpenAI's. No key goes to an
            address that the user has not named: see :func:`climassay.models.servers.find_server`.
        api_key: By default the one that is bound to the server's host. It is sent to the server and appears nowhere
            else.
        concurrency: Maximum number of requests in flight, 64 by default; how many really are is found by trying.
        clock: Time; tests give their own.
        price, policy, max_output_tokens, reasoning_effort, folder: As for :func:`climassay.models.load_model`. An
            effort that the server refuses is left out, with a warning.

    Raises:
        ModelError: The base URL is none, or a server that needs a key is asked without one.
        InputError: The provider's server is not known, or a key would travel unencrypted beyond this machine.
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
        """The provider and the model's name there, for example ``openai:gpt-4o-mini``."""
        ceiling = DEFAULT_CONCURRENCY if concurrency is None else concurrency
        if ceiling < 1:
            raise ModelError(f"The concurrency is {ceiling}: it must be at least 1.")
        server = find_server(provider, base_url, api_key)
        self.base_url = server.base_url
        self._connection = Connection(server, ceiling, policy or RetryPolicy(), clock or Clock())
        self._limits = {"max_output_tokens": max_output_tokens, "reasoning_effort": reasoning_effort}
        self._knowledge = LearnedCapabilities(
            self.base_url, self._model, folder, None if provider == OPENAI else provider
        )
        self._conversation = Conversation(
            self._model, self._connection, self._knowledge, price, max_output_tokens, reasoning_effort
        )

    def __repr__(self) -> str:
        return f"OpenAIModel({self.name!r}, base_url={self.base_url!r})"

    @property
    def fingerprint(self) -> str:
        """SHA-256 over server, model name, limits and protocol of this client; see the limits above."""
        if self._provider == OPENAI:
            return self._hashed({"provider": OPENAI, "base_url": self.base_url})
        return self._hashed({"provider": self._provider})

    def _hashed(self, server: Mapping[str, str]) -> str:
        identity: dict[str, Any] = {**server, "model": self._model, "protocol": PROTOCOL}
        identity |= {name: value for name, value in self._limits.items() if value is not None}
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()

    @property
    def fallbacks(self) -> Mapping[str, int]:
        """How often a request could not be made as it was meant to be, by what was missing at the server."""
        return MappingProxyType(Counter(self._knowledge.fallbacks))

    @property
    def capabilities(self) -> Capabilities:
        """What is known by now of what the model behind the server can do."""
        return self._knowledge.known

    @property
    def window(self) -> int | None:
        """Maximum tokens of prompt and answer together, where the server has stated it; see :meth:`ask_window`."""
        return self._knowledge.known.window

    def ask_window(self) -> int | None:
        """Ask the server for the model's window, in the ways of vLLM, llama.cpp, Ollama, OpenRouter and others."""

        async def asked(base_url: str) -> None:
            for address in (f"{base_url}/models", f"{base_url.removesuffix('/v1')}/api/ps"):
                self._knowledge.note_window(parse_window(await self._connection.read(address), self._model))

        self._connection.map(asked, [self.base_url], None)
        return self.window

    def forget_capabilities(self) -> None:
        """Find out anew what the model can do."""
        self._knowledge.forget()

    def render(self, messages: Sequence[Message], assistant_prefix: str = "") -> str:
        """The messages as they are sent, as JSON; the server's chat template is not ours to see."""
        return json.dumps(chat_messages(messages, continued=assistant_prefix), ensure_ascii=False)

    def generate(
        self, requests: Sequence[GenerationRequest], *, on_result: CompletionCallback | None = None
    ) -> list[Completion]:
        """Answer every request, in order; see :class:`climassay.models.contract.Generator`.

        A schema is given to the server as ``response_format``, and the answer is checked against it all the same.
        Where the server refuses or ignores it, the schema goes into the prompt (counted in :attr:`fallbacks`). An
        answer that is cut off or breaks the schema's structure is asked again with what was wrong, twice at most; one
        that is longer than the schema's upper bounds is kept.

        Raises:
            ModelError: No request can succeed: nothing listens there, or the key or the model's name is wrong.
        """
        return self._connection.map(self._conversation.complete, requests, on_result)

    def generate_stream(
        self,
        requests: Sequence[GenerationRequest],
        *,
        on_text: TextCallback,
        on_result: CompletionCallback | None = None,
    ) -> list[Completion]:
        """As :meth:`generate`, with the texts so far; see :class:`climassay.models.contract.StreamingGenerator`.

        Servers are asked for a stream with the usage in it. One that refuses either, or does not count a stream's
        tokens, is asked without from then on, and so is every request with a schema, whose answer may be asked again.

        Raises:
            ModelError: As for :meth:`generate`.
        """
        return self._connection.map(self._conversation.complete, requests, on_result, on_text)

    def option_logprobs(
        self, requests: Sequence[OptionRequest], *, on_result: ScoresCallback | None = None
    ) -> list[OptionScores]:
        """Weigh options; see :class:`climassay.models.contract.OptionScorer`.

        Method ``top_logprobs``, where the server lists likely tokens and the options hold at least half of their
        probability: see :func:`climassay.models.openai.option_scores.score_options` for what the numbers mean. Method
        ``constrained``, where they do not and the server decodes under an enumeration of the options; method
        ``generated``, where neither is possible: the option that the answer names gets 0 and the others -100; that
        order is all there is in these numbers. An answer that names no option is a failure.

        Raises:
            ModelError: No request can succeed: nothing listens there, or the key or the model's name is wrong.
        """
        return self._connection.map(self._conversation.weigh, requests, on_result)

    def cancel(self, threads: Collection[int]) -> None:
        """End the calls that these threads have under way; see :class:`climassay.models.contract.ConcurrentModel`."""
        self._connection.cancel(threads)

    def close(self) -> None:
        """Close the connections and end the client's thread."""
        self._connection.close()


HEAD_START = 5.0
"""Seconds that the first request of a kind to an unknown server has for itself, at most."""
SCHEMA_TRIES = 3
DEFAULT_MAX_TOKENS = 4096
"""Limit of an answer where the request sets none: a safeguard against endless text, not a means of style."""
_CONTINUED = {"continue_final_message": True, "add_generation_prompt": False}
"""Parameters with which vLLM and SGLang go on with an assistant's message; llama.cpp does so without."""
_SEQUENCE = "Write the numbers from one to nine in words."
_SEQUENCE_BEGUN, _SEQUENCE_NEXT = "one, two, three, four, five,", r"\s+six\b"
"""An answer to that which is not complete, and a pattern of its next word. A new message has no space before it."""


class Conversation:
    """Turns requests into answers over one connection. Used in the connection's event loop only."""

    def __init__(
        self,
        model: str,
        connection: Connection,
        knowledge: LearnedCapabilities,
        price: Price | None,
        max_output_tokens: int | None = None,
        reasoning_effort: str | None = None,
    ) -> None:
        self._model = model
        self._connection = connection
        self._knowledge = knowledge
        self._price = price
        self._max_output_tokens = max_output_tokens
        self._reasoning_effort = reasoning_effort
        self._first: dict[str, asyncio.Event] = {}

    async def complete(self, request: GenerationRequest, show: ShowText | None = None) -> Completion:
        """Answer a generation; ``show`` takes the text so far where it is written without a schema."""
        if request.schema is not None:
            async with self._alone("schema", lambda: self._knowledge.known.schema is None):
                return await self._complete_schema(request, request.schema)
        messages = self._unprefixed(request)
        async with self._alone("text", lambda: not self._knowledge.known.taken):
            payload = {"messages": messages, **self._parameters(request.sampling)}
            if show is None:
                outcome, usage = await self._ask(payload)
            else:
                payload |= {"stream": True, "stream_options": {"include_usage": True}}
                outcome, usage = await self._ask(payload, show=lambda text: show(answer_in(text, request)[0]))
        if outcome.reply is None:
            return Completion.failed(str(outcome.error), usage)
        if outcome.reply.withheld is not None:
            return Completion.failed(outcome.reply.withheld, usage)
        text, stopped = answer_in(outcome.reply.text, request)
        reason = "stop" if stopped else outcome.reply.finish_reason
        return Completion(text, reason, usage, reasoning=outcome.reply.thoughts)

    async def weigh(self, request: OptionRequest) -> OptionScores:
        """Weigh the options of a request."""
        if not request.options:
            return OptionScores.failed("The request has no options.")
        async with self._alone("options", lambda: self._knowledge.known.logprobs is None):
            known = self._knowledge.known
            # The first token of a model that thinks is the first of its thoughts.
            if known.logprobs is None or (known.logprobs == "given" and not known.thinks):
                return await self._weigh_by_logprobs(request)
        return await self._weigh_by_naming(request, Usage())

    @asynccontextmanager
    async def _alone(self, kind: str, unknown: Callable[[], bool]) -> AsyncIterator[None]:
        """Let the first request of a kind go alone, so that the others need not find out the same at a cost.

        They go together once it has ended, well or not, and in any case after :data:`HEAD_START` seconds: a model may
        think for minutes.
        """
        if (first := self._first.get(kind)) is not None or not unknown():
            if first is not None and unknown():
                with suppress(TimeoutError):
                    await asyncio.wait_for(first.wait(), HEAD_START)
            yield
            return
        first = self._first[kind] = asyncio.Event()
        try:
            yield
        finally:
            first.set()

    async def _complete_schema(self, request: GenerationRequest, schema: Mapping[str, Any]) -> Completion:
        """Let the server decode under the schema where it can, and put it into the prompt where it does not.

        Every answer is checked all the same. One that was cut off or breaks the schema is asked again with what was
        wrong with it.
        """
        knowledge = self._knowledge
        usage = Usage()
        sampling = request.sampling
        problem = ""
        refusal: ErrorReply | None = None
        tries = 0
        knowledge.fallbacks.update(["assistant_prefix"] if request.assistant_prefix else [])
        while tries < SCHEMA_TRIES:
            offered = refusal is None and knowledge.known.offers_schema(schema)
            stated = not offered or knowledge.known.schema == "loose" or bool(problem)
            if stated and not problem:
                knowledge.fallbacks["json_schema"] += 1
            addition = schema_instruction(schema, problem or None) if stated else ""
            payload = {
                "messages": chat_messages(request.messages, addition),
                **self._parameters(sampling),
                **({"response_format": response_format(schema)} if offered else {}),
            }
            outcome, spent = await self._ask(payload)
            usage += spent
            reply = outcome.reply
            if reply is None:
                if offered and outcome.refusal is not None:
                    refusal = outcome.refusal
                    continue
                return Completion.failed(str(outcome.error), usage)
            if refusal is not None:
                # Only now is it certain that the schema was refused and not the prompt.
                knowledge.note_refused_schema(schema, refusal)
            try:
                result = satisfying_json(reply.text, schema)
            except ValueError as error:
                if reply.withheld is not None:
                    return Completion.failed(reply.withheld, usage)
                tries += int(stated or reply.finish_reason == "length")
                if reply.finish_reason == "length":
                    problem = "The token limit cut it off before its JSON was complete: write shorter texts."
                    sampling = replace(sampling, max_tokens=2 * (sampling.max_tokens or DEFAULT_MAX_TOKENS))
                    continue
                if offered and not problem:
                    knowledge.note_schema("ignored" if isinstance(error, NoJsonError) else "loose", schema)
                # In prose, because the schema was not seen: from here on it appears in the prompt.
                unseen = not (stated or knowledge.known.offers_schema(schema))
                problem = "" if unseen else str(error)
                continue
            if offered and not problem:
                knowledge.note_schema("strict", schema)
            if result not in reply.text:
                knowledge.fallbacks["json repaired"] += 1
            return Completion(result, reply.finish_reason, usage, reasoning=reply.thoughts)
        return Completion.failed(f"No answer in {SCHEMA_TRIES} satisfied the schema: {problem}", usage)

    async def _weigh_by_logprobs(self, request: OptionRequest) -> OptionScores:
        """Scores from the likely tokens at the place of the answer, where they are to be had and decide."""
        knowledge, usage = self._knowledge, Usage()
        is_known = knowledge.known.logprobs == "given"
        continues = False
        if is_known:
            continues, usage = await self._learn_continuation(request)
        outcome, spent = await self._ask_logprobs(request, continued=continues)
        usage += spent
        reply = outcome.reply
        missing = outcome.refusal is not None if reply is None else not reply.positions and reply.withheld is None
        if is_known and missing:
            knowledge.fallbacks["logprobs asked again"] += 1
            outcome, spent = await self._ask_logprobs(request, continued=False)
            usage += spent
            if continues and outcome.reply is not None and outcome.reply.positions:
                knowledge.note_continuation(False)
        elif not is_known and reply is not None and reply.positions and not knowledge.known.thinks:
            continues, spent = await self._learn_continuation(request)
            usage += spent
            if continues:
                outcome, spent = await self._ask_logprobs(request, continued=True)
                usage += spent
        if outcome.reply is not None:
            if outcome.reply.positions or outcome.reply.withheld is None:
                knowledge.note_logprobs("given" if outcome.reply.positions else "ignored")
            scores = score_options(request.options, outcome.reply.positions)
            if scores is not None:
                return OptionScores(scores, "top_logprobs", usage)
        elif outcome.refusal is None:
            return OptionScores.failed(str(outcome.error), usage)
        named = await self._weigh_by_naming(request, usage)
        if outcome.refusal is not None and named.error is None:
            # Only now is it certain that the log-probabilities were refused and not the prompt.
            knowledge.note_logprobs("refused", outcome.status)
        return named

    async def _learn_continuation(self, request: OptionRequest) -> tuple[bool, Usage]:
        """Find out whether the server goes on with an assistant's message, if the request begins one.

        A message that ends in the middle of a sequence is sent. A server that goes on with it generates what comes
        next, or sends the whole of it back, which is longer than the limit allows a new message to be.

        Returns:
            Whether the request's beginning of an answer is sent as such, and the usage of finding out.
        """
        knowledge, usage = self._knowledge, Usage()
        if not request.assistant_prefix:
            return False, usage
        async with self._alone("continuation", lambda: knowledge.known.continues is None):
            if knowledge.known.continues is None:
                messages = chat_messages((Message("user", _SEQUENCE),), continued=_SEQUENCE_BEGUN)
                payload = {"messages": messages, "max_tokens": 4, "temperature": 0.0, **_CONTINUED}
                outcome, usage = await self._ask(payload, thoughts=False)
                if outcome.reply is not None:
                    text = outcome.reply.text
                    knowledge.note_continuation(
                        text.startswith(_SEQUENCE_BEGUN) or re.match(_SEQUENCE_NEXT, text) is not None
                    )
                elif outcome.refusal is not None:
                    knowledge.note_continuation(False)
        return bool(knowledge.known.continues), usage

    async def _ask_logprobs(self, request: OptionRequest, *, continued: bool) -> tuple[Outcome, Usage]:
        """Ask for the likely tokens at the place of the answer, after the request's beginning of it if continued."""
        prefix = request.assistant_prefix if continued else ""
        payload = {
            "messages": chat_messages(request.messages, continued=prefix) if prefix else self._unprefixed(request),
            **(_CONTINUED if prefix else {}),
            "max_tokens": tokens_to_distinguish(request.options),
            "temperature": 0.0,
            "logprobs": True,
            "top_logprobs": self._knowledge.known.top_logprobs,
        }
        return await self._ask(payload, thoughts=False)

    async def _weigh_by_naming(self, request: OptionRequest, usage: Usage) -> OptionScores:
        """The option that an answer names: one decoded under an enumeration of the options, else a free one."""
        knowledge = self._knowledge
        knowledge.fallbacks["logprobs"] += 1
        labels = [option.strip() for option in request.options]
        schema = object_schema({"answer": {"enum": labels}})
        payload = {"messages": self._unprefixed(request), **self._parameters(Sampling(max_tokens=None))}
        outcome, refusal = Outcome(0), None
        if request.enumerable and len(set(labels)) == len(labels):
            async with self._alone("schema", lambda: knowledge.known.schema is None):
                if knowledge.known.schema in (None, "strict") and knowledge.known.offers_schema(schema):
                    outcome, spent = await self._ask({**payload, "response_format": response_format(schema)})
                    usage, refusal = usage + spent, outcome.refusal
                    if outcome.reply is None and refusal is None:
                        return OptionScores.failed(str(outcome.error), usage)
                    if outcome.reply is not None and outcome.reply.withheld is None:
                        try:
                            answer = json.loads(satisfying_json(outcome.reply.text, schema))["answer"]
                        except NoJsonError:
                            if outcome.reply.finish_reason != "length":
                                knowledge.note_schema("ignored", schema)  # and the text is a free answer
                        except ValueError:
                            knowledge.note_schema("loose", schema)
                            outcome = Outcome(0)
                        else:
                            knowledge.note_schema("strict", schema)
                            scores = generated_logprobs(labels.index(answer), request.options)
                            return OptionScores(scores, "constrained", usage)
        if outcome.reply is None:
            outcome, spent = await self._ask(payload)
            usage += spent
            if refusal is not None and outcome.reply is not None:
                knowledge.note_refused_schema(schema, refusal)
        return named_scores(outcome, request, usage)

    def _unprefixed(self, request: OptionRequest | GenerationRequest) -> list[dict[str, str]]:
        """The messages of a request without its beginning of the answer; that this is left out is counted."""
        self._knowledge.fallbacks.update(["assistant_prefix"] if request.assistant_prefix else [])
        return chat_messages(request.messages)

    def _parameters(self, sampling: Sampling) -> dict[str, Any]:
        """The parameters that decide how tokens are drawn; what equals every server's default is left out."""
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
        """Check whether the server has left out a part of a prompt, which some do without an error.

        A server that counts only what it does not have in its cache reports few tokens as well. The two are told apart
        once, by sending the prompt with another beginning, which no cache has.
        """
        knowledge = self._knowledge
        if not is_shortened(messages, reply.read_tokens):
            return False
        async with self._alone("prompt length", lambda: knowledge.known.counts_cached is None):
            if knowledge.known.counts_cached is None:
                first, *others = messages
                marked = {**first, "content": f"[{secrets.token_hex(8)}]\n{first['content']}"}
                payload = {"model": self._model, "messages": [marked, *others], "max_tokens": 1}
                outcome = await self._connection.ask(knowledge.adapt(payload, thoughts=False))
                if outcome.reply is None:
                    return False
                counted = is_shortened(messages, outcome.reply.read_tokens)
                knowledge.note_cached_count(counted)
                if counted:
                    log.warning("%s", shortened_error(messages, reply))
        if not knowledge.known.counts_cached:
            return False
        knowledge.fallbacks["shortened prompt"] += 1
        return True

    async def _ask(
        self, payload: dict[str, Any], *, thoughts: bool = True, show: ShowText | None = None
    ) -> tuple[Outcome, Usage]:
        """Send a payload until it is answered; what the server refuses of it is learnt and left out.

        Args:
            payload: The body, without the model's name.
            thoughts: Give more room where thoughts have used up the limit.
            show: Takes the text so far, where the payload asks for a stream.

        Returns:
            What became of it, and the usage of all attempts.
        """
        knowledge = self._knowledge
        payload = {"model": self._model, **payload}
        usage = Usage()
        tried: set[str] = set()
        room = math.inf
        while True:
            sent = knowledge.adapt(payload, tried, thoughts=thoughts, room=room)
            outcome = await self._connection.ask(sent, show)
            reply, refusal = outcome.reply, outcome.refusal
            spent = Usage(requests=outcome.attempts)
            if reply is not None:
                prompt, completion = reply.prompt_tokens, reply.completion_tokens
                cost = None if self._price is None else self._price.cost(prompt, completion)
                spent = Usage(prompt, completion, outcome.attempts, cost, reply.reasoning_tokens)
            usage += spent
            if reply is not None:
                knowledge.note_answer(sent, reply, tried)
                stopped = "stop" in sent and reply.reasoning_tokens > 0 and not reply.text
                again = thoughts and (stopped or knowledge.give_more_room(sent, payload["max_tokens"], reply))
                if "stream" in sent and not (reply.prompt_tokens or reply.completion_tokens):
                    knowledge.note_uncounted_stream()
                if again and show is not None:
                    show("")
                if not again and await self._is_shortened(payload["messages"], reply):
                    return Outcome(outcome.attempts, error=shortened_error(payload["messages"], reply)), usage
            elif refusal is None:
                return outcome, usage
            else:
                told = knowledge.room_after(sent, refusal)
                room = room if told is None else told
                again = told is not None or knowledge.note_refusal(sent, refusal, tried)
                if not again and "stream" in sent:
                    # Whatever the words of the refusal: a whole answer may be had.
                    tried.add("stream")
            if not (again or refusal) or knowledge.adapt(payload, tried, thoughts=thoughts, room=room) == sent:
                return outcome, usage


def chat_messages(messages: Sequence[Message], addition: str = "", *, continued: str = "") -> list[dict[str, str]]:
    """Build the messages as they are sent.

    Args:
        messages: The chat.
        addition: An instruction, put at the end of the last message if that is the user's, else in one of its own.
        continued: The beginning of the assistant's answer, put into a message at the end.
    """
    sent = [{"role": message.role, "content": message.content} for message in messages]
    if addition and sent and sent[-1]["role"] == "user":
        sent[-1]["content"] = f"{sent[-1]['content']}\n\n{addition}"
    elif addition:
        sent.append({"role": "user", "content": addition})
    return [*sent, {"role": "assistant", "content": continued}] if continued else sent


def named_scores(outcome: Outcome, request: OptionRequest, usage: Usage) -> OptionScores:
    """Read the option that a freely generated answer names; an answer that names none is a failure."""
    if outcome.reply is None:
        return OptionScores.failed(str(outcome.error), usage)
    if outcome.reply.withheld is not None:
        return OptionScores.failed(outcome.reply.withheld, usage)
    text = without_prefix(outcome.reply.text, request.assistant_prefix)
    chosen = named_option(text, request.options, request.assistant_prefix)
    if chosen is not None:
        return OptionScores(generated_logprobs(chosen, request.options), "generated", usage)
    said = " ".join(text.split())
    said = said if len(said) <= 120 else said[:120] + "…"
    why = f"The generated answer names none of the options, or several: {said!r}."
    if outcome.reply.finish_reason == "length":
        why = f"The answer was cut off before it named an option (--max-output-tokens allows more): {said!r}."
    return OptionScores((), "generated", usage, why)


def answer_in(text: str, request: GenerationRequest) -> tuple[str, bool]:
    """The answer to a request in what a server wrote, and whether one of the request's stops ends it."""
    text = without_prefix(text, request.assistant_prefix)
    # Not every server takes stops; the result is the same with all.
    end = min((text.find(stop) for stop in request.sampling.stop if stop and stop in text), default=None)
    return text[:end], end is not None


def without_prefix(text: str, assistant_prefix: str) -> str:
    """The answer without the prefix, should the model have repeated it."""
    prefix = assistant_prefix.strip()
    start = text.lstrip()
    return start[len(prefix) :].lstrip(" ") if prefix and start.startswith(prefix) else text
