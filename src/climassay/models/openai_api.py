"""Models behind an OpenAI-compatible server: OpenAI, Together, vLLM, Ollama, llama.cpp server and others."""

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
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
    ScoresCallback,
)
from climassay.models.openai_capabilities import Capabilities, Knowledge
from climassay.models.openai_connection import Connection
from climassay.models.openai_conversation import Conversation, effective_messages
from climassay.models.openai_prices import Price
from climassay.models.openai_replies import parse_window
from climassay.models.openai_retry import Clock, RetryPolicy
from climassay.models.servers import OPENAI, find_server

DEFAULT_CONCURRENCY = 64
PROTOCOL = 2
"""Part of the fingerprint: raised when what is sent for the same request changes."""


class OpenAIModel:
    """A generator and option scorer over chat completions.

    Requests run concurrently under an adaptive limit (:mod:`climassay.models.openai_limits`). Overload, time-outs,
    dropped connections, 5xx and malformed answers are tried again with exponential backoff and full jitter, or when
    the server's ``Retry-After`` says; what a server refuses for good (4xx) fails at once. Failures are values with one
    sentence.

    What the numbers of :meth:`option_logprobs` mean depends on what the server can do, which is found out with the
    first requests, kept in the workspace and shown by :attr:`capabilities`
    (:mod:`climassay.models.openai_capabilities`).

    Limits of the fingerprint: it covers the server, the model's name and this client's protocol, since a server does
    not show its weights. The server is known by its name in the user's configuration, so that it may move to another
    host or port, and by its base URL where it has no name there. If a server changes what it serves under a name, ask
    afresh (``--no-cache``).

    An ``assistant_prefix`` cannot be continued over chat completions in general, so it becomes an instruction at the
    end of the prompt, and a completion that repeats it is shortened by it.

    Args:
        name: Name of the model at the provider, with or without the provider's name and a colon.
        provider: ``openai``, or a provider of the user's configuration.
        base_url: Where ``chat/completions`` is; by default ``$OPENAI_BASE_URL``, else OpenAI's. No key goes to an
            address that the user has not named: see :func:`climassay.models.servers.find_server`.
        api_key: By default the one that is bound to the server's host; servers of one's own need none. It is sent to
            the server and appears nowhere else.
        concurrency: Requests under way at once, at most (64 by default); how many really are is found by trying.
        price: What tokens cost; None leaves the cost unknown.
        policy: Deadlines and attempts.
        max_output_tokens: Limit of every generated answer, in place of the requests' own; what a model thinks before
            it answers comes on top. Part of the fingerprint.
        reasoning_effort: How much a model is to think, in the provider's words (``low``, ``medium``, ``high``); left
            out, with a warning, where the server refuses it. Part of the fingerprint.
        folder: The workspace in which it is kept what the model can do; None keeps it for this client only.
        clock: Time; tests give their own.

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
        ceiling = DEFAULT_CONCURRENCY if concurrency is None else concurrency
        if ceiling < 1:
            raise ModelError(f"The concurrency is {ceiling}: at least one request must be under way.")
        server = find_server(provider, base_url, api_key)
        self.base_url = server.base_url
        self._connection = Connection(server, ceiling, policy or RetryPolicy(), clock or Clock())
        self._limits = {"max_output_tokens": max_output_tokens, "reasoning_effort": reasoning_effort}
        self._knowledge = Knowledge(self.base_url, self._model, folder, None if provider == OPENAI else provider)
        self._conversation = Conversation(
            self._model, self._connection, self._knowledge, price, max_output_tokens, reasoning_effort
        )

    def __repr__(self) -> str:
        return f"OpenAIModel({self.name!r}, base_url={self.base_url!r})"

    @property
    def name(self) -> str:
        """The provider and the model's name there, for example ``openai:gpt-4o-mini``."""
        return f"{self._provider}:{self._model}"

    @property
    def fingerprint(self) -> str:
        """SHA-256 over server, model name, limits and protocol of this client; see the limits above."""
        if self._provider == OPENAI:
            return self._fingerprint_at(self.base_url)
        return self._hashed({"provider": self._provider})

    @property
    def earlier_fingerprints(self) -> Mapping[str, str | None]:
        """Fingerprints under which earlier versions stored this model's answers: those with the server's address in it.

        They come with the name that the request must have been stored under: the server's address now is enough by
        itself (None); an address that the workspace knows from another day may have been another server's.
        """
        if self._provider == OPENAI:
            return {}
        earlier: dict[str, str | None] = {self._fingerprint_at(url): self.name for url in self._knowledge.addresses()}
        return earlier | {self._fingerprint_at(self.base_url): None}

    def _fingerprint_at(self, base_url: str) -> str:
        return self._hashed({"provider": "openai", "base_url": base_url})

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
        """Most tokens of prompt and answer together, where the server has told; see :meth:`ask_window`."""
        return self._knowledge.known.window

    def ask_window(self) -> int | None:
        """Ask the server for the model's window, in the ways of vLLM, llama.cpp, Ollama, OpenRouter and others."""

        async def asked(base_url: str) -> None:
            for address in (f"{base_url}/models", f"{base_url.removesuffix('/v1')}/api/ps"):
                self._knowledge.note_window(parse_window(await self._connection.read(address), self._model))

        self._connection.map(asked, [self.base_url], lambda _index, _none: None)
        return self.window

    def forget_capabilities(self) -> None:
        """Find out anew what the model can do."""
        self._knowledge.forget()

    def render(self, messages: Sequence[Message], assistant_prefix: str = "") -> str:
        """The messages as they are sent, as JSON; the server's chat template is not ours to see."""
        return json.dumps(effective_messages(messages, assistant_prefix), ensure_ascii=False)

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
        results: dict[int, Completion] = {}

        def keep(index: int, completion: Completion) -> None:
            results[index] = completion
            if on_result is not None:
                on_result(index, completion)

        self._connection.map(self._conversation.complete, requests, keep)
        return [results[index] for index in range(len(requests))]

    def option_logprobs(
        self, requests: Sequence[OptionRequest], *, on_result: ScoresCallback | None = None
    ) -> list[OptionScores]:
        """Weigh options; see :class:`climassay.models.contract.OptionScorer`.

        Method ``top_logprobs``, where the server lists likely tokens: see
        :func:`climassay.models.openai_options.score_options` for what the numbers mean. Method ``generated``, where it
        does not, or where its lists do not decide: an answer is generated, the option it names gets 0 and the others
        -100; that order is all there is in these numbers. An answer that names no option is a failure.

        Raises:
            ModelError: No request can succeed: nothing listens there, or the key or the model's name is wrong.
        """
        results: dict[int, OptionScores] = {}

        def keep(index: int, scores: OptionScores) -> None:
            results[index] = scores
            if on_result is not None:
                on_result(index, scores)

        self._connection.map(self._conversation.weigh, requests, keep)
        return [results[index] for index in range(len(requests))]

    def cancel(self, threads: Collection[int]) -> None:
        """End the calls that these threads have under way; see :class:`climassay.models.contract.ConcurrentModel`."""
        self._connection.cancel(threads)

    def close(self) -> None:
        """Close the connections and end the client's thread."""
        self._connection.close()
