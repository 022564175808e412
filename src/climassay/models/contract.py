"""Protocols of language models, and the records that they exchange.

A function requires the simplest protocol it needs::

    Generator      generate(requests)         -> list[Completion]     any chat API, any local model
    OptionScorer   option_logprobs(requests)  -> list[OptionScores]   models that give log-probabilities
    OpenWeights    harvest(requests, layers)  -> list[Activations]    models with local weights

A :class:`StreamingGenerator` also shows partial answers.

Failures are values, not exceptions: a failed request returns a :class:`Completion`, :class:`OptionScores` or
:class:`Activations` with an ``error`` at its index in the list, so that it is recorded and counted. Only a model that
cannot work at all raises :class:`~climassay.errors.ModelError`.

A small model that chooses a verdict prefers some words whatever the claim, because they are frequent or last in the
instruction. The same request with a placeholder instead of claim and evidence measures this preference; the quotient of
the two (:func:`calibrate`) is the effect of the content.

References:
    Zhao et al. (2021), Calibrate Before Use, ICML, section 5 (contextual calibration): ``W = diag(p_cf)^-1, b = 0``,
    with ``p_cf`` the mean over the content-free texts "N/A", "[MASK]" and the empty text, normalised over the answers.
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from climassay.errors import InputError, ModelError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Role = Literal["system", "user", "assistant"]
FinishReason = Literal["stop", "length", "error"]
ScoringMethod = Literal["exact", "greedy", "top_logprobs", "constrained", "generated"]
EncoderRole = Literal["passage", "query"]


@dataclass(frozen=True, slots=True)
class Message:
    """Turn of a chat."""

    role: Role
    content: str
    """Plain text of the turn."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling parameters. They are part of the key under which an answer is recorded."""

    max_tokens: int | None = 256
    """Maximum number of generated tokens, excluding reasoning. None means 4,096 for a model behind a server. For a
    local model, it means the length of the longest answer under the schema, or 256 without a schema."""
    temperature: float = 0.0
    """Sampling temperature; 0 takes the most probable token (greedy)."""
    top_p: float = 1.0
    """Nucleus sampling: tokens are drawn from the smallest set of most probable tokens with at least this probability.
    """
    seed: int = 0
    """Random seed. The same request with another seed is a different request, which is answered and recorded anew."""
    stop: tuple[str, ...] = ()
    """Texts that end the generation; excluded from the completion."""


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """Request to continue a chat by an answer of the assistant."""

    messages: tuple[Message, ...]
    """Messages so far; the last one is usually the user's."""
    sampling: Sampling = field(default_factory=Sampling)
    schema: Mapping[str, Any] | None = None
    """JSON schema that the completion must satisfy; strings and arrays need bounds (maxLength, maxItems)."""
    assistant_prefix: str = ""
    """Beginning of the assistant's answer; not repeated in the completion."""


def object_schema(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of an object with exactly these fields."""
    return {"type": "object", "properties": dict(fields), "required": list(fields), "additionalProperties": False}


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts and cost of one or more requests; two usages can be added with ``+``."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    """Completion tokens, including reasoning."""
    requests: int = 0
    """Number of requests sent to the provider, including retries."""
    cost: float | None = None
    """Cost in US dollars; None if no price is known."""
    reasoning_tokens: int = 0
    """Completion tokens spent on reasoning, which is not part of the answers."""

    @property
    def tokens(self) -> str:
        """Token counts as text, for example ``508 prompt and 1,512 completion tokens (1,500 of them thought)``."""
        reasoning_note = f" ({self.reasoning_tokens:,} of them thought)" if self.reasoning_tokens else ""
        return f"{self.prompt_tokens:,} prompt and {self.completion_tokens:,} completion tokens{reasoning_note}"

    def __add__(self, other: "Usage") -> "Usage":
        costs = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.requests + other.requests,
            sum(costs) if costs else None,
            self.reasoning_tokens + other.reasoning_tokens,
        )


@dataclass(frozen=True, slots=True)
class Completion:
    """Answer to a :class:`GenerationRequest`, or the error."""

    text: str
    """Text of the assistant; empty if ``error`` is set."""
    finish_reason: FinishReason
    """Reason why the generation ended; ``length`` means that the token limit truncated the text."""
    usage: Usage = field(default_factory=Usage)
    error: str | None = None
    """Error in one sentence; None if the request succeeded."""
    reasoning: str = ""
    """Reasoning that precedes the answer, if the model writes or the server returns it; not part of ``text``."""

    @classmethod
    def failed(cls, error: str, usage: Usage | None = None) -> "Completion":
        """Return a completion that records a failure."""
        return cls("", "error", usage or Usage(), error)


@dataclass(frozen=True, slots=True)
class OptionRequest:
    """Chat, and the possible answers whose probabilities are requested."""

    messages: tuple[Message, ...]
    options: tuple[str, ...]
    """Possible texts of the assistant's answer, of one or more tokens, for example ``("a", "b", "c", "d")``."""
    assistant_prefix: str = ""
    """Beginning of the assistant's answer, which the option follows, for example ``"Answer: "``."""


@dataclass(frozen=True, slots=True)
class OptionScores:
    """Log-probabilities of the options of one :class:`OptionRequest`, or the error.

    Example: for options ``("yes", "no")`` with probabilities 0.6 and 0.3 after the prompt,
    ``logprobs == (-0.511, -1.204)``: natural logarithms, whose probabilities need not sum to 1.
    """

    logprobs: tuple[float, ...]
    """log P(option | prompt), summed over the option's tokens; finite; empty if ``error`` is set."""
    method: ScoringMethod = "exact"
    """Source of the log-probabilities. ``exact``: the model's full distribution. ``greedy``: the full distribution, and
    every token of the only option is the most probable one (:class:`~climassay.models.local.model.TextModel` only).
    ``top_logprobs``: a server's list of likely tokens; options that are not listed get an upper bound. ``constrained``:
    the option that the server generated under a schema gets 0, the others -100. ``generated``: the same for the option
    that a free answer names."""
    usage: Usage = field(default_factory=Usage)
    error: str | None = None

    @classmethod
    def failed(cls, error: str, usage: Usage | None = None) -> "OptionScores":
        """Return scores that record a failure."""
        return cls((), "exact", usage or Usage(), error)

    @property
    def is_named(self) -> bool:
        """True if the scores come from an answer that names an option, and are therefore not probabilities."""
        return self.method in ("constrained", "generated")

    @property
    def mass(self) -> float | None:
        """Total probability of the options, 0 to 1; None if the request failed or an option was named.

        This is the probability that the model's answer begins with one of the options. Below 0.5, it is more likely to
        write something else.
        """
        if self.error is not None or self.is_named:
            return None
        return min(1.0, math.fsum(map(math.exp, self.logprobs)))

    @property
    def best(self) -> int | None:
        """Index of the most probable option (the first of equals); None if the request failed."""
        return None if self.error is not None else max(range(len(self.logprobs)), key=self.logprobs.__getitem__)


@dataclass(frozen=True, slots=True)
class Activations:
    """Hidden states at the last token of each option of one :class:`OptionRequest`, or the error."""

    states: "NDArray[np.float32]"
    """Finite values, shape [options, layers, width]; layer -1 is the last one after the final norm. The shape is [0, 0,
    0] if ``error`` is set."""
    logprobs: tuple[float, ...]
    """Log-probabilities as in :class:`OptionScores`, computed in the same forward passes."""
    tokens: int = 0
    """Number of tokens that separate forward passes for all options, each with the prompt, would compute; 0 if
    tokenisation failed."""
    error: str | None = None
    """Error in one sentence; None if the request succeeded."""

    @classmethod
    def failed(cls, error: str, tokens: int = 0) -> "Activations":
        """Return activations that record a failure."""
        import numpy as np

        return cls(np.zeros((0, 0, 0), dtype=np.float32), (), tokens, error)


@dataclass(frozen=True, slots=True)
class Work:
    """Amount of computation since a model was loaded; the difference of two values is the computation between them."""

    passes: int
    tokens: int
    """Number of tokens computed; a cached token counts once."""

    def __sub__(self, earlier_work: "Work") -> "Work":
        return Work(self.passes - earlier_work.passes, self.tokens - earlier_work.tokens)


MIN_OPTION_MASS = 0.5
"""The probabilities of the options are used only if their total is at least this."""
CHARACTERS_PER_TOKEN = 3.5
"""Characters per token assumed for models that do not count tokens. English text has 4 to 5; the lower value makes it
unlikely that a prompt exceeds the context window."""
DEFAULT_WINDOW = 8192
"""Context length in tokens of models that do not state theirs."""

CompletionCallback = Callable[[int, Completion], None]
TextCallback = Callable[[int, str], None]
ScoresCallback = Callable[[int, OptionScores], None]
ActivationsCallback = Callable[[int, Activations], None]


@runtime_checkable
class Generator(Protocol):
    """Model that continues chats."""

    @property
    def name(self) -> str:
        """Name as written by the user, for example ``local:smollm2``."""

    @property
    def fingerprint(self) -> str:
        """SHA-256 of everything that determines the model's answers; part of every record's key."""

    def render(self, messages: Sequence[Message], assistant_prefix: str = "") -> str:
        """Return the prompt as the model receives it, with its chat template applied; part of every record's key."""

    def generate(
        self, requests: Sequence[GenerationRequest], *, on_result: CompletionCallback | None = None
    ) -> list[Completion]:
        """Return a completion for each request, in the order of the requests.

        Args:
            requests: Requests, which the provider batches or sends concurrently.
            on_result: Called in the calling thread with (index, completion) for each result, in any order.
        """

    def close(self) -> None:
        """Release connections and memory; the model cannot be used afterwards."""


@runtime_checkable
class StreamingGenerator(Generator, Protocol):
    """Generator that shows partial answers."""

    def generate_stream(
        self,
        requests: Sequence[GenerationRequest],
        *,
        on_text: TextCallback,
        on_result: CompletionCallback | None = None,
    ) -> list[Completion]:
        """Return the same completions as :meth:`generate`, and report partial answers.

        Args:
            requests: See :meth:`generate`.
            on_text: Called in the calling thread with (index, partial text); each text replaces the previous one. The
                text is empty if an attempt failed and is retried. It is not called for answers with a schema or from
                the cache, nor by servers that do not stream.
            on_result: See :meth:`generate`.
        """


@runtime_checkable
class OptionScorer(Generator, Protocol):
    """Generator that returns log-probabilities of answers."""

    def option_logprobs(
        self, requests: Sequence[OptionRequest], *, on_result: ScoresCallback | None = None
    ) -> list[OptionScores]:
        """Return the scores of each request's options, in the order of the requests.

        A prompt that several requests share is computed once.
        """


def number_format(model: Generator) -> str:
    """Return the number format of a local model, for example ``float32``; empty for a server."""
    return str(getattr(model, "dtype", ""))


@runtime_checkable
class OpenWeights(OptionScorer, Protocol):
    """Option scorer that also returns its hidden states."""

    @property
    def layers(self) -> int:
        """Number of layers; hidden states are numbered from 0 (embeddings) to this number."""

    @property
    def dtype(self) -> str:
        """Number format, for example ``float32``. In 16-bit formats, results depend slightly on the batch."""

    @property
    def token_budget(self) -> int:
        """Default maximum number of tokens per forward pass."""

    @property
    def work(self) -> Work:
        """Computation since the model was loaded, excluding generated tokens."""

    def harvest(
        self,
        requests: Sequence[OptionRequest],
        *,
        layers: Sequence[int] = (-1,),
        token_budget: int | None = None,
        on_result: ActivationsCallback | None = None,
    ) -> list[Activations]:
        """Return the hidden states at the last token of each option, in the order of the requests.

        Args:
            requests: Requests with options.
            layers: Layer numbers as in transformers: 0 for the embeddings, 1 for the first layer's output, -1 for the
                last layer's output after the final norm.
            token_budget: Maximum number of tokens per forward pass. It bounds the memory, and changes results by
                rounding only.
            on_result: Called in the calling thread with (index, activations) for each result, in any order.

        Raises:
            ModelError: A layer does not exist.
        """


@runtime_checkable
class Windowed(Protocol):
    """Model that states its context length."""

    @property
    def window(self) -> int:
        """Maximum number of tokens of prompt and answer together."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text, without the chat template."""


@runtime_checkable
class Encoder(Protocol):
    """Model that maps texts to unit vectors; the dot product of two vectors is the similarity of their texts."""

    @property
    def name(self) -> str:
        """Name, for example ``local:minilm``."""

    @property
    def fingerprint(self) -> str:
        """SHA-256 of weights, tokenizer and settings, stored with each collection."""

    @property
    def width(self) -> int:
        """Number of dimensions of the vectors."""

    def encode(
        self, texts: Sequence[str], *, role: EncoderRole = "passage", on_progress: Callable[[int], None] | None = None
    ) -> "NDArray[np.float32]":
        """Return unit vectors, shape [texts, width], in the order of ``texts``.

        Args:
            texts: Texts, which are sorted by length and batched internally.
            role: Role of the texts; some models use different prompts for queries and passages.
            on_progress: Called with the number of texts encoded since the last call.
        """


@runtime_checkable
class StreamingEncoder(Encoder, Protocol):
    """Encoder that processes several chunks of texts concurrently."""

    def encode_stream(
        self, chunks: Iterable[Sequence[str]], *, on_progress: Callable[[int], None] | None = None
    ) -> "Iterator[tuple[int, NDArray[np.float32]]]":
        """Encode chunks of passages, and yield each chunk's vectors when they are finished.

        Args:
            chunks: Non-empty chunks of texts. Several are taken from the iterable before the first is finished.
            on_progress: Called with the number of texts encoded since the last call.

        Yields:
            Index of a chunk and its unit vectors, shape [texts, width]; each chunk once, in any order.
        """


@runtime_checkable
class MultiWorkerModel(Protocol):
    """Model that is computed by several workers."""

    @property
    def requests_at_once(self) -> int:
        """Number of requests per call that keeps all workers busy."""


@runtime_checkable
class ConcurrentModel(Generator, Protocol):
    """Model that answers calls of several threads concurrently, as a server does."""

    def cancel(self, threads: Collection[int]) -> None:
        """Cancel the calls of the threads with these identifiers (``threading.get_ident``).

        The calls raise KeyboardInterrupt.
        """


def unwrap_model(model: Any) -> Any:
    """Return the innermost model, without wrappers such as the record cache."""
    while (wrapped_model := getattr(model, "wrapped", None)) is not None:
        model = wrapped_model
    return model


def stated_window(model: Generator) -> int | None:
    """Return the context length in tokens that a model, or the model in a wrapper, states; None if it states none."""
    window: int | None = getattr(unwrap_model(model), "window", None)
    return window


def window_of(model: Generator) -> int:
    """Return the context length of a model in tokens; :data:`DEFAULT_WINDOW` if it does not state one."""
    return stated_window(model) or DEFAULT_WINDOW


def token_count(model: Generator, text: str) -> int:
    """Return the number of tokens of a text, or an overestimate from its length if the model does not count tokens."""
    if isinstance(model, Windowed):
        return model.count_tokens([text])[0]
    return int(len(text) / CHARACTERS_PER_TOKEN) + 1


PLACEHOLDERS = ("N/A", "[MASK]", "...")
"""Texts that replace the content of a prompt. Zhao et al. use the empty text instead of "...", but it may be invalid in
a prompt with a list."""


def compute_correction(scores: Sequence[OptionScores]) -> tuple[float, ...] | None:
    """Return the logs of each option's mean probability over several prompts without content.

    Pass them to :func:`option_probabilities` as ``correction``. They are None if the model names options instead of
    scoring them.

    Raises:
        ModelError: None of the requests succeeded.
    """
    if any(score.is_named for score in scores):
        return None
    logprobs_by_placeholder = [score.logprobs for score in scores if score.error is None]
    if not logprobs_by_placeholder:
        raise ModelError(f"The content-free prompts could not be answered: {scores[0].error}")
    return mean_log_probabilities(logprobs_by_placeholder)


def option_probabilities(
    scores: OptionScores, correction: "OptionScores | Sequence[float] | None" = None
) -> tuple[float, ...]:
    """Return the probabilities of a request's options, corrected by their scores in a prompt without content.

    Options that were named in an answer instead of scored are not corrected.

    Args:
        scores: Scores of the request.
        correction: Scores or log-probabilities of the same options for a prompt without content, or None.

    Returns:
        One probability per option, summing to 1.

    Raises:
        ModelError: The request, or the one whose scores are the correction, failed.
    """
    if scores.error is not None:
        raise ModelError(scores.error)
    if scores.is_named or correction is None:
        return calibrate(scores.logprobs)
    if not isinstance(correction, OptionScores):
        return calibrate(scores.logprobs, correction)
    if correction.is_named:
        return calibrate(scores.logprobs)
    if correction.error is not None:
        raise ModelError(correction.error)
    return calibrate(scores.logprobs, correction.logprobs)


def mean_log_probabilities(logprobs: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Normalise each answer's probabilities over its options, and return the logs of their means over the answers.

    ``logprobs`` has a row per answer, with a log-probability per option.

    Raises:
        InputError: There are no rows, or rows of different length.
    """
    if len({len(row) for row in logprobs}) != 1:
        raise InputError("Content-free answers can be averaged only if there is at least one, all with equal options.")
    rows = [calibrate(row) for row in logprobs]
    means = (sum(column) / len(rows) for column in zip(*rows, strict=True))
    return tuple(math.log(max(mean, math.ulp(0.0))) for mean in means)


def calibrate(logprobs: Sequence[float], correction: Sequence[float] | None = None) -> tuple[float, ...]:
    """Return the probabilities of options relative to those of a prompt without content.

    Example: with a claim, ("true", "false") have probabilities 0.6 and 0.3; without it, 0.8 and 0.1. The quotients are
    ``0.6/0.8 = 0.75`` and ``0.3/0.1 = 3``, which are normalised to 0.2 and 0.8.

    Args:
        logprobs: Natural logarithms of the options' probabilities, which need not sum to 1.
        correction: Log-probabilities of the same options without content; None for no correction.

    Returns:
        One probability per option, summing to 1.

    Raises:
        InputError: There are no options, a value is not finite, or the correction has another length.
    """
    if correction is not None and len(correction) != len(logprobs):
        raise InputError(f"{len(logprobs)} options cannot be corrected by {len(correction)} content-free scores.")
    corrected_logprobs = [
        score - base_logprob for score, base_logprob in zip(logprobs, correction or [0.0] * len(logprobs), strict=True)
    ]
    if not corrected_logprobs or not all(map(math.isfinite, corrected_logprobs)):
        raise InputError("Probabilities need at least one option, and scores that are finite numbers.")
    # Subtracting the largest keeps exp() within range whatever the scores are.
    max_logprob = max(corrected_logprobs)
    weights = [math.exp(score - max_logprob) for score in corrected_logprobs]
    total = sum(weights)
    return tuple(weight / total for weight in weights)
