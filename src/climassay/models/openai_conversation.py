"""From one request of the contract to one answer: what is sent, what is tried instead, what is made of the replies."""

import asyncio
from collections.abc import Mapping
from typing import Any, Literal

from climassay.models.contract import Completion, GenerationRequest, OptionRequest, OptionScores, Sampling, Usage
from climassay.models.openai_abilities import Abilities
from climassay.models.openai_connection import Connection, Outcome
from climassay.models.openai_options import generated_logprobs, named_option, score_options, tokens_to_part
from climassay.models.openai_payloads import effective_messages, sampling_parameters, without_prefix
from climassay.models.openai_prices import Price
from climassay.models.openai_schema import response_format, satisfying_json, schema_instruction

SchemaVerdict = Literal["taken", "not taken", "failed"]
"""Whether a server decoded under a schema; ``failed`` says nothing about that."""

REFUSALS = frozenset({400, 422})
"""Statuses of a request that the server does not accept as it is."""
SCHEMA_TRIES = 3
CUT = "The token limit cut the answer before its JSON was complete:"
NAMING_TOKENS = 256
"""Room for an answer that names an option, thoughts included."""


class Conversation:
    """Turns requests into answers over one connection. Used in the connection's event loop only.

    Args:
        model: The model's name at the provider.
        connection: The way to the server.
        abilities: What is known of the server.
        price: What tokens cost, if known.
    """

    def __init__(self, model: str, connection: Connection, abilities: Abilities, price: Price | None) -> None:
        self._model = model
        self._connection = connection
        self._abilities = abilities
        self._price = price
        self._probing = asyncio.Lock()

    async def complete(self, request: GenerationRequest) -> Completion:
        """Answer a generation."""
        if request.schema is not None:
            return await self._complete_schema(request, request.schema)
        messages = effective_messages(request.messages, request.assistant_prefix)
        outcome = await self._ask({"messages": messages, **sampling_parameters(request.sampling, False)})
        usage = self._usage(outcome)
        if outcome.reply is None:
            return Completion.failed(str(outcome.error), usage)
        if outcome.reply.withheld is not None:
            return Completion.failed(outcome.reply.withheld, usage)
        text = without_prefix(outcome.reply.text, request.assistant_prefix)
        return Completion(text, outcome.reply.finish_reason, usage)

    async def weigh(self, request: OptionRequest) -> OptionScores:
        """Weigh the options of a request."""
        if not request.options:
            return OptionScores.failed("The request has no options.")
        usage = Usage()
        outcome = await self._likely_tokens(request)
        if outcome is not None:
            usage = self._usage(outcome)
            if outcome.reply is None:
                return OptionScores.failed(str(outcome.error), usage)
            scores = score_options(request.options, outcome.reply.positions)
            if scores is not None:
                return OptionScores(scores, "top_logprobs", usage)
        self._abilities.fallbacks["logprobs"] += 1
        return await self._weigh_by_generating(request, usage)

    async def _complete_schema(self, request: GenerationRequest, schema: Mapping[str, Any]) -> Completion:
        usage = Usage()
        if self._abilities.accepts_schema(schema):
            completion, verdict = await self._complete_enforced(request, schema)
            if verdict == "taken":
                self._abilities.note_schema(schema, accepted=True)
            if verdict != "not taken":
                return completion
            usage = completion.usage
        self._abilities.fallbacks["json_schema"] += 1
        return await self._complete_prompted(request, schema, usage)

    async def _complete_enforced(
        self, request: GenerationRequest, schema: Mapping[str, Any]
    ) -> tuple[Completion, SchemaVerdict]:
        """Let the server decode under the schema."""
        messages = effective_messages(request.messages, request.assistant_prefix)
        parameters = sampling_parameters(request.sampling, True)
        outcome = await self._ask({"messages": messages, **parameters, "response_format": response_format(schema)})
        usage, reply = self._usage(outcome), outcome.reply
        if reply is None:
            refused = outcome.status in REFUSALS
            return Completion.failed(str(outcome.error), usage), "not taken" if refused else "failed"
        try:
            return Completion(satisfying_json(reply.text, schema), reply.finish_reason, usage), "taken"
        except ValueError as problem:
            if reply.withheld is not None:
                return Completion.failed(reply.withheld, usage), "failed"
            if reply.finish_reason == "length":
                return Completion.failed(f"{CUT} {problem}", usage), "failed"
            return Completion.failed(str(problem), usage), "not taken"

    async def _complete_prompted(
        self, request: GenerationRequest, schema: Mapping[str, Any], usage: Usage
    ) -> Completion:
        """Put the schema into the prompt, check the answer, and ask again with what was wrong."""
        problem: str | None = None
        for _ in range(SCHEMA_TRIES):
            addition = schema_instruction(schema, problem)
            messages = effective_messages(request.messages, request.assistant_prefix, addition)
            outcome = await self._ask({"messages": messages, **sampling_parameters(request.sampling, True)})
            usage += self._usage(outcome)
            if outcome.reply is None:
                return Completion.failed(str(outcome.error), usage)
            # Only now is it certain that the schema was refused and not the prompt.
            self._abilities.note_schema(schema, accepted=False)
            try:
                return Completion(satisfying_json(outcome.reply.text, schema), outcome.reply.finish_reason, usage)
            except ValueError as error:
                problem = str(error)
        return Completion.failed(f"No answer in {SCHEMA_TRIES} satisfied the schema: {problem}", usage)

    async def _likely_tokens(self, request: OptionRequest) -> Outcome | None:
        """Ask for the likely tokens at the place of the answer; None where the server has no log-probabilities."""
        if self._abilities.logprobs is None:
            async with self._probing:
                if self._abilities.logprobs is None:
                    return await self._probe(request)
        if not self._abilities.logprobs:
            return None
        return await self._ask_likely(request)

    async def _probe(self, request: OptionRequest) -> Outcome | None:
        """The first scoring request, from which we learn whether the server gives log-probabilities."""
        outcome = await self._ask_likely(request)
        if outcome.reply is not None:
            self._abilities.logprobs = bool(outcome.reply.positions)
        elif outcome.status in REFUSALS and "logprob" in str(outcome.error).lower():
            self._abilities.logprobs = False
            return None
        return outcome

    async def _ask_likely(self, request: OptionRequest) -> Outcome:
        return await self._ask(
            {
                "messages": effective_messages(request.messages, request.assistant_prefix),
                "max_tokens": tokens_to_part(request.options),
                "temperature": 0.0,
                "logprobs": True,
                "top_logprobs": self._abilities.top_logprobs,
            }
        )

    async def _weigh_by_generating(self, request: OptionRequest, usage: Usage) -> OptionScores:
        messages = effective_messages(request.messages, request.assistant_prefix)
        sampling = Sampling(max_tokens=NAMING_TOKENS)
        outcome = await self._ask({"messages": messages, **sampling_parameters(sampling, False)})
        usage += self._usage(outcome)
        if outcome.reply is None:
            return OptionScores.failed(str(outcome.error), usage)
        if outcome.reply.withheld is not None:
            return OptionScores.failed(outcome.reply.withheld, usage)
        text = without_prefix(outcome.reply.text, request.assistant_prefix)
        chosen = named_option(text, request.options)
        if chosen is None:
            said = " ".join(text.split())
            said = said if len(said) <= 120 else said[:120] + "…"
            return OptionScores.failed(f"The generated answer names none of the options, or several: {said!r}.", usage)
        return OptionScores(generated_logprobs(chosen, request.options), "generated", usage)

    async def _ask(self, payload: dict[str, Any]) -> Outcome:
        """Send a payload; where the server refuses a parameter, learn that and send it without."""
        payload = {"model": self._model, **payload}
        attempts = 0
        while True:
            sent = self._abilities.adapt(payload)
            outcome = await self._connection.ask(sent)
            attempts += outcome.attempts
            if outcome.status in REFUSALS and (
                self._abilities.learn(sent, str(outcome.error)) or self._abilities.adapt(payload) != sent
            ):
                continue
            return Outcome(attempts, outcome.reply, outcome.error, outcome.status)

    def _usage(self, outcome: Outcome) -> Usage:
        if outcome.reply is None:
            return Usage(requests=outcome.attempts)
        prompt, completion = outcome.reply.prompt_tokens, outcome.reply.completion_tokens
        cost = None if self._price is None else self._price.cost(prompt, completion)
        return Usage(prompt, completion, outcome.attempts, cost)
