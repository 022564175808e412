"""From one request of the contract to one answer: what is sent, what is tried instead, what is made of the replies."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

from climassay.models.contract import (
    Completion,
    FinishReason,
    GenerationRequest,
    Message,
    OptionRequest,
    OptionScores,
    Sampling,
    Usage,
)
from climassay.models.openai_capabilities import Knowledge
from climassay.models.openai_connection import Connection, Outcome
from climassay.models.openai_options import generated_logprobs, named_option, score_options, tokens_to_part
from climassay.models.openai_prices import Price
from climassay.models.openai_replies import Refusal
from climassay.models.openai_schema import NoJsonError, response_format, satisfying_json, schema_instruction

HEAD_START = 5.0
"""Seconds that the first request of a kind to an unknown server has for itself, at most."""
SCHEMA_TRIES = 3
DEFAULT_MAX_TOKENS = 4096
"""Limit of an answer where the request sets none: a safeguard against endless text, not a means of style."""


class Conversation:
    """Turns requests into answers over one connection. Used in the connection's event loop only.

    Args:
        model: The model's name at the provider.
        connection: The way to the server.
        knowledge: What is known of the model behind it.
        price: What tokens cost, if known.
        max_output_tokens: Limit of every generated answer, in place of the requests' own; thoughts come on top.
        reasoning_effort: Sent with every generation, for models that think.
    """

    def __init__(
        self,
        model: str,
        connection: Connection,
        knowledge: Knowledge,
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

    async def complete(self, request: GenerationRequest) -> Completion:
        """Answer a generation."""
        if request.schema is not None:
            async with self._alone("schema", lambda: self._knowledge.known.schema is None):
                return await self._complete_schema(request, request.schema)
        messages = effective_messages(request.messages, request.assistant_prefix)
        async with self._alone("text", lambda: not self._knowledge.known.taken):
            outcome, usage = await self._ask({"messages": messages, **self._parameters(request.sampling)})
        if outcome.reply is None:
            return Completion.failed(str(outcome.error), usage)
        if outcome.reply.withheld is not None:
            return Completion.failed(outcome.reply.withheld, usage)
        text = without_prefix(outcome.reply.text, request.assistant_prefix)
        return Completion(*_stopped(text, outcome.reply.finish_reason, request.sampling.stop), usage)

    async def weigh(self, request: OptionRequest) -> OptionScores:
        """Weigh the options of a request."""
        if not request.options:
            return OptionScores.failed("The request has no options.")
        async with self._alone("options", lambda: self._knowledge.known.logprobs is None):
            known = self._knowledge.known
            # The first token of a model that thinks is the first of its thoughts.
            if known.logprobs is None or (known.logprobs == "given" and not known.thinks):
                return await self._weigh_by_logprobs(request)
        return await self._weigh_by_generating(request, Usage())

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
        refusal: Refusal | None = None
        tries = 0
        while tries < SCHEMA_TRIES:
            offered = refusal is None and knowledge.known.offers_schema(schema)
            stated = not offered or knowledge.known.schema == "loose" or bool(problem)
            if stated and not problem:
                knowledge.fallbacks["json_schema"] += 1
            addition = schema_instruction(schema, problem or None) if stated else ""
            payload = {
                "messages": effective_messages(request.messages, request.assistant_prefix, addition),
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
                found = satisfying_json(reply.text, schema)
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
                # In prose, because the schema was not seen: from here on it stands in the prompt.
                unseen = not (stated or knowledge.known.offers_schema(schema))
                problem = "" if unseen else str(error)
                continue
            if offered and not problem:
                knowledge.note_schema("strict", schema)
            return Completion(found, reply.finish_reason, usage)
        return Completion.failed(f"No answer in {SCHEMA_TRIES} satisfied the schema: {problem}", usage)

    async def _weigh_by_logprobs(self, request: OptionRequest) -> OptionScores:
        """Scores from the likely tokens at the place of the answer, where they are to be had and decide."""
        knowledge = self._knowledge
        payload = {
            "messages": effective_messages(request.messages, request.assistant_prefix),
            "max_tokens": tokens_to_part(request.options),
            "temperature": 0.0,
            "logprobs": True,
            "top_logprobs": knowledge.known.top_logprobs,
        }
        outcome, usage = await self._ask(payload, thoughts=False)
        if knowledge.known.logprobs == "given" and _without_logprobs(outcome):
            knowledge.fallbacks["logprobs asked again"] += 1
            outcome, spent = await self._ask(payload, thoughts=False)
            usage += spent
        if outcome.reply is not None:
            if outcome.reply.positions or outcome.reply.withheld is None:
                knowledge.note_logprobs("given" if outcome.reply.positions else "ignored")
            scores = score_options(request.options, outcome.reply.positions)
            if scores is not None:
                return OptionScores(scores, "top_logprobs", usage)
        elif outcome.refusal is None:
            return OptionScores.failed(str(outcome.error), usage)
        named = await self._weigh_by_generating(request, usage)
        if outcome.refusal is not None and named.error is None:
            # Only now is it certain that the log-probabilities were refused and not the prompt.
            knowledge.note_logprobs("refused", outcome.status)
        return named

    async def _weigh_by_generating(self, request: OptionRequest, usage: Usage) -> OptionScores:
        """The option that a generated answer names."""
        self._knowledge.fallbacks["logprobs"] += 1
        messages = effective_messages(request.messages, request.assistant_prefix)
        outcome, spent = await self._ask({"messages": messages, **self._parameters(Sampling(max_tokens=None))})
        usage += spent
        if outcome.reply is None:
            return OptionScores.failed(str(outcome.error), usage)
        if outcome.reply.withheld is not None:
            return OptionScores.failed(outcome.reply.withheld, usage)
        text = without_prefix(outcome.reply.text, request.assistant_prefix)
        chosen = named_option(text, request.options)
        if chosen is None:
            said = " ".join(text.split())
            said = said if len(said) <= 120 else said[:120] + "…"
            why = f"The generated answer names none of the options, or several: {said!r}."
            return OptionScores((), "generated", usage, why)
        return OptionScores(generated_logprobs(chosen, request.options), "generated", usage)

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

    async def _ask(self, payload: dict[str, Any], *, thoughts: bool = True) -> tuple[Outcome, Usage]:
        """Send a payload until it is answered; what the server refuses of it is learnt and left out.

        Args:
            payload: The request's body, without the model.
            thoughts: Whether there is to be room for thoughts: more is given where they have used up the limit.

        Returns:
            What became of it, and what all attempts have used.
        """
        knowledge = self._knowledge
        payload = {"model": self._model, **payload}
        usage = Usage()
        tried: set[str] = set()
        room = math.inf
        while True:
            sent = knowledge.adapt(payload, tried, thoughts=thoughts, room=room)
            outcome = await self._connection.ask(sent)
            usage += self._usage(outcome)
            reply, refusal = outcome.reply, outcome.refusal
            if reply is not None:
                knowledge.note_answer(sent, reply, tried)
                stopped = "stop" in sent and reply.reasoning_tokens > 0 and not reply.text
                again = thoughts and (stopped or knowledge.give_more_room(sent, payload["max_tokens"], reply))
            elif refusal is None:
                return outcome, usage
            else:
                told = knowledge.room_after(sent, refusal)
                room = room if told is None else told
                again = told is not None or knowledge.note_refusal(sent, refusal, tried)
            if not (again or refusal) or knowledge.adapt(payload, tried, thoughts=thoughts, room=room) == sent:
                return outcome, usage

    def _usage(self, outcome: Outcome) -> Usage:
        reply = outcome.reply
        if reply is None:
            return Usage(requests=outcome.attempts)
        prompt, completion = reply.prompt_tokens, reply.completion_tokens
        cost = None if self._price is None else self._price.cost(prompt, completion)
        return Usage(prompt, completion, outcome.attempts, cost, reply.reasoning_tokens)


def _without_logprobs(outcome: Outcome) -> bool:
    """Whether log-probabilities were refused, or are missing in an answer that was not withheld."""
    if outcome.reply is None:
        return outcome.refusal is not None
    return not outcome.reply.positions and outcome.reply.withheld is None


def effective_messages(messages: Sequence[Message], assistant_prefix: str, addition: str = "") -> list[dict[str, str]]:
    """The messages as they are sent.

    Args:
        messages: The chat.
        assistant_prefix: Start of the answer, which becomes an instruction.
        addition: A further instruction.

    Returns:
        The chat with the instructions at the end of its last user message, or as one where the last is not the user's.
    """
    sent = [{"role": message.role, "content": message.content} for message in messages]
    instructions = [addition] if addition else []
    if assistant_prefix:
        start = f'Your answer already begins with "{assistant_prefix.strip()}"; write only what follows it.'
        instructions.append(start)
    if not instructions:
        return sent
    if sent and sent[-1]["role"] == "user":
        sent[-1]["content"] = "\n\n".join([sent[-1]["content"], *instructions])
    else:
        sent.append({"role": "user", "content": "\n\n".join(instructions)})
    return sent


def without_prefix(text: str, assistant_prefix: str) -> str:
    """The answer without the prefix, should the model have repeated it."""
    prefix = assistant_prefix.strip()
    start = text.lstrip()
    return start[len(prefix) :].lstrip(" ") if prefix and start.startswith(prefix) else text


def _stopped(text: str, reason: FinishReason, stop: Sequence[str]) -> tuple[str, FinishReason]:
    """The text up to the first stop, for servers that do not take stops: the result is the same with all."""
    end = min((text.find(one) for one in stop if one and one in text), default=None)
    return (text, reason) if end is None else (text[:end], "stop")
