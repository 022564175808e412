"""Models behind an OpenAI-compatible server: OpenAI, Together, vLLM, Ollama, llama.cpp server and others."""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from urllib.parse import urlsplit, urlunsplit

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
from climassay.models.openai_abilities import Abilities
from climassay.models.openai_connection import Connection
from climassay.models.openai_conversation import Conversation
from climassay.models.openai_payloads import effective_messages
from climassay.models.openai_prices import Price
from climassay.models.openai_retry import Clock, RetryPolicy

PREFIX = "openai:"
DEFAULT_BASE_URL = "https://api.openai.com/v1"
KEY_VARIABLES = ("CLIMASSAY_API_KEY", "OPENAI_API_KEY")
DEFAULT_CONCURRENCY = 64
PROTOCOL = 1
"""Part of the fingerprint: raised when what is sent for the same request changes."""


class OpenAIModel:
    """A generator and option scorer over chat completions.

    Requests run concurrently under an adaptive limit (:mod:`climassay.models.openai_limits`). Overload, time-outs,
    dropped connections, 5xx and malformed answers are tried again with exponential backoff and full jitter, or when
    the server's ``Retry-After`` says; what a server refuses for good (4xx) fails at once. Failures are values with one
    sentence.

    What the numbers of :meth:`option_logprobs` mean depends on what the server can do, which is found out with the
    first request and remembered: see there.

    Limits of the fingerprint: it covers the base URL, the model's name and this client's protocol, since a server does
    not show its weights. If a server changes what it serves under a name, ask afresh (``--no-cache``).

    An ``assistant_prefix`` cannot be continued over chat completions in general, so it becomes an instruction at the
    end of the prompt, and a completion that repeats it is shortened by it.

    Args:
        name: Name of the model at the provider, with or without ``openai:``.
        base_url: Where ``chat/completions`` is; by default ``$OPENAI_BASE_URL``, else OpenAI's.
        api_key: By default ``$CLIMASSAY_API_KEY``, else ``$OPENAI_API_KEY``; servers of one's own need none. It is
            sent to the server and appears nowhere else.
        concurrency: Requests under way at once, at most (64 by default); how many really are is found by trying.
        price: What tokens cost; None leaves the cost unknown.
        policy: Deadlines and attempts.
        clock: Time; tests give their own.

    Raises:
        ModelError: The base URL is none, or OpenAI's server is asked without a key.
    """

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        concurrency: int | None = None,
        price: Price | None = None,
        policy: RetryPolicy | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._model = name.removeprefix(PREFIX)
        self.base_url = normalised_base_url(base_url or os.environ.get("OPENAI_BASE_URL") or DEFAULT_BASE_URL)
        ceiling = DEFAULT_CONCURRENCY if concurrency is None else concurrency
        if ceiling < 1:
            raise ModelError(f"The concurrency is {ceiling}: at least one request must be under way.")
        key = api_key_for(api_key, self.base_url)
        self._connection = Connection(self.base_url, key, ceiling, policy or RetryPolicy(), clock or Clock())
        self._abilities = Abilities()
        self._conversation = Conversation(self._model, self._connection, self._abilities, price)

    def __repr__(self) -> str:
        return f"OpenAIModel({self.name!r}, base_url={self.base_url!r})"

    @property
    def name(self) -> str:
        """``openai:`` and the model's name at the provider."""
        return PREFIX + self._model

    @property
    def fingerprint(self) -> str:
        """SHA-256 over provider, base URL, model name and protocol of this client; see the limits above."""
        identity = {"provider": "openai", "base_url": self.base_url, "model": self._model, "protocol": PROTOCOL}
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()

    @property
    def fallbacks(self) -> Mapping[str, int]:
        """How often a request could not be made as it was meant to be, by what was missing at the server."""
        return MappingProxyType(Counter(self._abilities.fallbacks))

    def render(self, messages: Sequence[Message], assistant_prefix: str = "") -> str:
        """The messages as they are sent, as JSON; the server's chat template is not ours to see."""
        return json.dumps(effective_messages(messages, assistant_prefix), ensure_ascii=False)

    def generate(
        self, requests: Sequence[GenerationRequest], *, on_result: CompletionCallback | None = None
    ) -> list[Completion]:
        """Answer every request, in order; see :class:`climassay.models.contract.Generator`.

        A schema is given to the server as ``response_format``, and the answer is checked against it all the same.
        Where the server refuses or ignores it, the schema goes into the prompt, and an answer that does not satisfy it
        is asked again with what was wrong, twice at most (counted in :attr:`fallbacks`).

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

    def close(self) -> None:
        """Close the connections and end the client's thread."""
        self._connection.close()


def normalised_base_url(url: str) -> str:
    """The URL in one form: lower-case host, no default port, no trailing slash, no user, query or fragment.

    Raises:
        ModelError: It is not an http or https URL.
    """
    try:
        parts = urlsplit(url.strip())
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        host, port, parts = "", None, urlsplit("")
    if parts.scheme not in ("http", "https") or not host:
        raise ModelError(
            "The base URL is not an http or https address: it should look like http://localhost:8000/v1 "
            "(a key belongs into OPENAI_API_KEY, not into the URL)."
        )
    host = f"[{host}]" if ":" in host else host
    default = {"http": 80, "https": 443}[parts.scheme]
    place = host if port in (None, default) else f"{host}:{port}"
    return urlunsplit((parts.scheme, place, parts.path.rstrip("/"), "", ""))


def api_key_for(given: str | None, base_url: str) -> str | None:
    """The key to send to a server: the given one, else the first of :data:`KEY_VARIABLES` that is set.

    Raises:
        ModelError: OpenAI's own server has none, or the key holds characters that no key has.
    """
    key = next((key for key in (given, *map(os.environ.get, KEY_VARIABLES)) if key and key.strip()), "").strip()
    if not key:
        if base_url == DEFAULT_BASE_URL:
            raise ModelError("OpenAI's server needs an API key: set OPENAI_API_KEY, or give another --base-url.")
        return None
    if not key.isascii() or not key.isprintable():
        raise ModelError("The API key holds characters that no key has: set OPENAI_API_KEY again.")
    return key
