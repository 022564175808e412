"""What a language model can do for climassay: a ladder of three small protocols and the records they exchange.

A function asks for the lowest rung it needs::

    Generator      generate(requests)         -> list[Completion]     any chat API, any local model
    OptionScorer   option_logprobs(requests)  -> list[OptionScores]   models that give log-probabilities
    OpenWeights    harvest(requests, layers)  -> list[Activations]    models whose weights are at hand

Beside the ladder, a :class:`StreamingGenerator` shows its answers while it writes them.

Failures are values, not exceptions: a request that fails gives a :class:`Completion`, :class:`OptionScores` or
:class:`Activations` whose ``error`` says why, in its place in the list, so that it is recorded and counted. Only a
model that cannot work at all raises :class:`~climassay.errors.ModelError`.

A small model asked for a verdict favours some words whatever the claim: because they are frequent, or because they came
last in the instruction. Asked the same with a text that says nothing in place of claim and evidence, it shows this
preference alone; the quotient of the two (:func:`calibrate`) is what the content did.

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
    """One turn of a chat."""

    role: Role
    """Who speaks."""
    content: str
    """What is said, as plain text."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are drawn. Part of a request's identity."""

    max_tokens: int | None = 256
    """Upper limit of generated tokens; None means: as many as the request's schema can need, else 256 for a local
    model and a few thousand for a server. What a model thinks before it answers is not counted against it."""
    temperature: float = 0.0
    """0 takes the most probable token (greedy)."""
    top_p: float = 1.0
    """Nucleus mass."""
    seed: int = 0
    """Seed of the draw; the same request with another seed is another request."""
    stop: tuple[str, ...] = ()
    """Texts at which generation ends; not part of the completion."""


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """A chat to be continued by the assistant."""

    messages: tuple[Message, ...]
    """The chat so far; the last message is normally the user's."""
    sampling: Sampling = field(default_factory=Sampling)
    """How tokens are drawn."""
    schema: Mapping[str, Any] | None = None
    """JSON schema that the completion must satisfy; strings and arrays carry bounds (maxLength, maxItems)."""
    assistant_prefix: str = ""
    """Start of the assistant's answer that the model continues; not repeated in the completion's text."""


def object_schema(fields: Mapping[str, Any]) -> dict[str, Any]:
    """JSON schema of an object that has all of these fields and no others."""
    return {"type": "object", "properties": dict(fields), "required": list(fields), "additionalProperties": False}


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and money of one or many requests. Usages add up with ``+``."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    """Thoughts included."""
    requests: int = 0
    """Requests sent to the provider, retries included."""
    cost: float | None = None
    """In US dollars; None where no price is known."""
    reasoning_tokens: int = 0
    """Completion tokens that the model thought before it answered, and that are no part of its answers."""

    @property
    def tokens(self) -> str:
        """The tokens in words, for example ``508 prompt and 1,512 completion tokens (1,500 of them thought)``."""
        thought = f" ({self.reasoning_tokens:,} of them thought)" if self.reasoning_tokens else ""
        return f"{self.prompt_tokens:,} prompt and {self.completion_tokens:,} completion tokens{thought}"

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
    """What a model answered to a :class:`GenerationRequest`, or why it did not."""

    text: str
    """The assistant's text; empty when ``error`` is set."""
    finish_reason: FinishReason
    """``length`` means that the token limit cut the text."""
    usage: Usage = field(default_factory=Usage)
    error: str | None = None
    """One sentence; None when the request succeeded."""
    reasoning: str = ""
    """What the model thought before it answered, as far as a server sends it; no part of ``text``."""

    @classmethod
    def failed(cls, error: str, usage: Usage | None = None) -> "Completion":
        """A completion that records a failure."""
        return cls("", "error", usage or Usage(), error)


@dataclass(frozen=True, slots=True)
class OptionRequest:
    """A chat and the answers among which the model is to weigh."""

    messages: tuple[Message, ...]
    options: tuple[str, ...]
    """Texts the assistant's answer could consist of, one token or many, for example ``("a", "b", "c", "d")``."""
    assistant_prefix: str = ""
    """Start of the assistant's answer, before the option, for example ``"Answer: "``."""
    enumerable: bool = True
    """Whether a model that cannot be weighed may be shown the options as its only answers; False for texts whose
    likelihood is measured and that the prompt keeps back."""


@dataclass(frozen=True, slots=True)
class OptionScores:
    """Log-probabilities of the options of one :class:`OptionRequest`, or why there are none.

    Example: for options ``("yes", "no")`` and a model that gives "yes" probability 0.6 and "no" 0.3 after the prompt,
    ``logprobs == (-0.511, -1.204)``. They are log-probabilities of the texts, natural logarithm, and need not sum to 1.
    """

    logprobs: tuple[float, ...]
    """log P(option | prompt), summed over the option's tokens; finite; empty when ``error`` is set."""
    method: ScoringMethod = "exact"
    """``exact``: from the full distribution. ``greedy``: likewise, and each token of the only option is the most
    probable one, which only a :class:`~climassay.models.local.model.TextModel` tells. ``top_logprobs``: a server's
    list of likely tokens, options missing from it at the list's floor. ``constrained``: no log-probabilities at all;
    the server generated one of the options under an enumeration, which has 0, the others -100. ``generated``: likewise,
    with the option that a freely generated answer names."""
    usage: Usage = field(default_factory=Usage)
    error: str | None = None

    @classmethod
    def failed(cls, error: str, usage: Usage | None = None) -> "OptionScores":
        """Scores that record a failure."""
        return cls((), "exact", usage or Usage(), error)

    @property
    def is_named(self) -> bool:
        """Whether the model named an option in an answer, so that the numbers are no probabilities."""
        return self.method in ("constrained", "generated")

    @property
    def mass(self) -> float | None:
        """Probability of all options together, 0 to 1; None if the request failed or an option was named.

        For options of one token each it is the share of the next token's distribution that the options hold; for
        longer ones it is a lower bound of that. Below a half, the model would rather have written something else.
        """
        if self.error is not None or self.is_named:
            return None
        return min(1.0, math.fsum(map(math.exp, self.logprobs)))

    @property
    def best(self) -> int | None:
        """Index of the most probable option (the first of equals); None when the request failed."""
        return None if self.error is not None else max(range(len(self.logprobs)), key=self.logprobs.__getitem__)


@dataclass(frozen=True, slots=True)
class Activations:
    """Hidden states at the last token of each option of one :class:`OptionRequest`, or why there are none."""

    states: "NDArray[np.float32]"
    """Shape [options, layers, width], finite; layer -1 is the last one, after the final norm; [0, 0, 0] when ``error``
    is set."""
    logprobs: tuple[float, ...]
    """As in :class:`OptionScores`; they come free with the states."""
    tokens: int = 0
    """Tokens that a plain forward pass for each option (prompt and option) would compute, all options together; for
    two options what a two-pass loop costs. 0 where the failure came before tokenisation was done."""
    error: str | None = None
    """One sentence; None when the request succeeded."""

    @classmethod
    def failed(cls, error: str, tokens: int = 0) -> "Activations":
        """Activations that record a failure."""
        import numpy as np

        return cls(np.zeros((0, 0, 0), dtype=np.float32), (), tokens, error)


@dataclass(frozen=True, slots=True)
class Work:
    """What a model has computed. The difference of two readings is the cost of what was done between them."""

    passes: int
    """Forward passes."""
    tokens: int
    """Tokens that went through them; a token kept in a cache and used again counts once."""

    def __sub__(self, before: "Work") -> "Work":
        return Work(self.passes - before.passes, self.tokens - before.tokens)


MIN_OPTION_MASS = 0.5
"""Share of the next token's probability that the options must hold for their probabilities to tell the choice."""
CHARACTERS_PER_TOKEN = 3.5
"""What is assumed of models that do not count tokens; scientific English has 4 to 5: prompts rather end short."""
DEFAULT_WINDOW = 8192
"""Tokens, for models that do not tell their window."""

CompletionCallback = Callable[[int, Completion], None]
TextCallback = Callable[[int, str], None]
ScoresCallback = Callable[[int, OptionScores], None]
ActivationsCallback = Callable[[int, Activations], None]


@runtime_checkable
class Generator(Protocol):
    """Anything that continues chats."""

    @property
    def name(self) -> str:
        """As the user wrote it, for example ``local:smollm2``."""

    @property
    def fingerprint(self) -> str:
        """SHA-256 over all that decides what the model answers; part of every record's key."""

    def render(self, messages: Sequence[Message], assistant_prefix: str = "") -> str:
        """The prompt as the model receives it (after its chat template); part of every record's key."""

    def generate(
        self, requests: Sequence[GenerationRequest], *, on_result: CompletionCallback | None = None
    ) -> list[Completion]:
        """Answer every request, in order.

        Args:
            requests: Any number; batched or sent concurrently as the provider does best.
            on_result: Called with (index, completion) from the calling thread as soon as each is known, in any order.
        """

    def close(self) -> None:
        """Give back connections and memory; the model is not used afterwards."""


@runtime_checkable
class StreamingGenerator(Generator, Protocol):
    """A generator that shows its answers while it writes them."""

    def generate_stream(
        self,
        requests: Sequence[GenerationRequest],
        *,
        on_text: TextCallback,
        on_result: CompletionCallback | None = None,
    ) -> list[Completion]:
        """Answer every request, in order, as :meth:`generate` does and with the same completions.

        Args:
            requests: As for :meth:`generate`.
            on_text: Called with (index, text so far) from the calling thread; each text replaces the one before. It is
                empty again where what was shown is discarded, because that try failed and another follows. The text
                is a preview: only the completion counts. It may not be called at all, for example for an answer under
                a schema, for one that is known already, or by a server that does not stream.
            on_result: As for :meth:`generate`.
        """


@runtime_checkable
class OptionScorer(Generator, Protocol):
    """A generator that also gives log-probabilities of answers."""

    def option_logprobs(
        self, requests: Sequence[OptionRequest], *, on_result: ScoresCallback | None = None
    ) -> list[OptionScores]:
        """Weigh every request's options, in order; prompts that several requests share are computed once."""


def number_format(model: Generator) -> str:
    """What a local model computes in, for example ``float32``; empty for a server's, which is not known."""
    return str(getattr(model, "dtype", ""))


@runtime_checkable
class OpenWeights(OptionScorer, Protocol):
    """An option scorer whose hidden states can be read."""

    @property
    def layers(self) -> int:
        """Number of layers; hidden states are numbered from 0, the embeddings, to this number."""

    @property
    def dtype(self) -> str:
        """Number format, for example ``float32``; 16-bit results depend on what is batched together."""

    @property
    def token_budget(self) -> int:
        """Maximum number of tokens in one forward pass when a call does not say otherwise."""

    @property
    def work(self) -> Work:
        """Computed so far for options, hidden states and the prompts of generations, over the model's whole life."""

    def harvest(
        self,
        requests: Sequence[OptionRequest],
        *,
        layers: Sequence[int] = (-1,),
        token_budget: int | None = None,
        on_result: ActivationsCallback | None = None,
    ) -> list[Activations]:
        """Hidden states at the last token of every option, in order; what requests share is computed once.

        Args:
            requests: Any number.
            layers: Numbered as transformers does: 0 are the embeddings, 1 the first layer's output, and -1 the last
                layer's after the final norm.
            token_budget: Maximum number of tokens in one forward pass: bounds memory, changes results by rounding only.
            on_result: Called with (index, activations) from the calling thread as soon as each is known, in any order.

        Raises:
            ModelError: A layer does not exist.
        """


@runtime_checkable
class Windowed(Protocol):
    """A model that tells how much it can read."""

    @property
    def window(self) -> int:
        """Maximum number of tokens of prompt and answer together."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, without those of the chat template."""


@runtime_checkable
class Encoder(Protocol):
    """Anything that turns texts into unit vectors whose dot product is their similarity."""

    @property
    def name(self) -> str:
        """For example ``local:minilm``."""

    @property
    def fingerprint(self) -> str:
        """SHA-256 over weights, tokenizer and settings; a collection remembers it."""

    @property
    def width(self) -> int:
        """Number of dimensions."""

    def encode(
        self,
        texts: Sequence[str],
        *,
        role: EncoderRole = "passage",
        on_progress: Callable[[int], None] | None = None,
    ) -> "NDArray[np.float32]":
        """Unit vectors, shape [texts, width], rows in the order of ``texts``.

        Args:
            texts: Any number; sorted by length and batched inside.
            role: What the texts are: some models put another prompt before queries than before passages.
            on_progress: Called with the number of texts done since the last call.
        """


@runtime_checkable
class StreamingEncoder(Encoder, Protocol):
    """An encoder that works on several chunks of texts at the same time."""

    def encode_stream(
        self, chunks: Iterable[Sequence[str]], *, on_progress: Callable[[int], None] | None = None
    ) -> "Iterator[tuple[int, NDArray[np.float32]]]":
        """Vectors of chunks of passages, as they are known.

        Args:
            chunks: Any number, none of them empty; taken ahead of the results, as many as the encoder is good for.
            on_progress: Called with the number of texts done since the last call.

        Yields:
            Number of a chunk, from 0, and its unit vectors, shape [texts, width]; each chunk once, in any order.
        """


@runtime_checkable
class MultiWorkerModel(Protocol):
    """A model that is computed in several places, and is therefore given more at a time."""

    @property
    def requests_at_once(self) -> int:
        """Requests of one call that keep all places busy."""


@runtime_checkable
class ConcurrentModel(Generator, Protocol):
    """A model that answers calls of several threads at the same time, as a server does."""

    def cancel(self, threads: Collection[int]) -> None:
        """End the calls that these threads have under way: each raises KeyboardInterrupt there.

        Args:
            threads: Their numbers, as ``threading.get_ident`` gives them.
        """


def unwrapped(model: Any) -> Any:
    """The model itself, where it is wrapped, for example by the records."""
    while (inner := getattr(model, "wrapped", None)) is not None:
        model = inner
    return model


def window_of(model: Generator) -> int:
    """Maximum number of tokens that a model reads and writes together; :data:`DEFAULT_WINDOW` where it does not tell.

    A model that is wrapped, for example by the records, is looked through; a server may have stated its model's window.
    """
    told: int | None = getattr(unwrapped(model), "window", None)
    return told or DEFAULT_WINDOW


def token_count(model: Generator, text: str) -> int:
    """Tokens of a text; estimated from its length, rather too many, where the model does not count them."""
    if isinstance(model, Windowed):
        return model.count_tokens([text])[0]
    return int(len(text) / CHARACTERS_PER_TOKEN) + 1


def option_array(scores: Sequence[OptionScores]) -> "NDArray[np.float64]":
    """Log-probabilities as an array of shape [requests, options].

    Raises:
        ModelError: A request failed, or the requests have different numbers of options.
    """
    failed = [score.error for score in scores if score.error is not None]
    if failed:
        raise ModelError(f"{len(failed)} of {len(scores)} scoring requests failed, the first one because: {failed[0]}")
    if len({len(score.logprobs) for score in scores}) > 1:
        raise ModelError("The requests have different numbers of options, so their scores do not form one array.")
    import numpy as np  # here, for the help of a command shall not wait for it

    return np.array([score.logprobs for score in scores], dtype=np.float64)


BLANK = "N/A"
"""The text that says nothing where one has to do."""
PLACEHOLDERS = (BLANK, "[MASK]", "...")
"""Texts that say nothing. Zhao et al. have the empty text as the third, which a prompt with a list may not render."""


def content_free_correction(
    scorer: OptionScorer,
    build_request: Callable[[str], OptionRequest],
    placeholders: Sequence[str] = PLACEHOLDERS,
) -> tuple[float, ...] | None:
    """What a model answers to a prompt without content, as one log-probability an option.

    Args:
        scorer: The model; a recorded one is asked once.
        build_request: From a text that says nothing to the request with that text wherever content belongs.
        placeholders: Such texts.

    Returns:
        Log of the mean probability of each option, normalised over the options; for :func:`option_probabilities`. None
        where the model's answers are generated instead of scored.

    Raises:
        InputError: No placeholders.
        ModelError: None of the requests succeeded.
    """
    if not placeholders:
        raise InputError("A content-free correction needs at least one text that says nothing, for example N/A.")
    return correction_of(scorer.option_logprobs([build_request(text) for text in placeholders]))


def correction_of(scores: Sequence[OptionScores]) -> tuple[float, ...] | None:
    """The correction from the answers to prompts without content; see :func:`content_free_correction`.

    Raises:
        ModelError: None of the requests succeeded.
    """
    if any(score.is_named for score in scores):
        return None
    answered = [score.logprobs for score in scores if score.error is None]
    if not answered:
        raise ModelError(f"The content-free prompts could not be answered: {scores[0].error}")
    return mean_log_probabilities(answered)


def option_probabilities(
    scores: OptionScores, blank: "OptionScores | Sequence[float] | None" = None
) -> tuple[float, ...]:
    """Probabilities of a request's options, corrected by what the model answers without content.

    An answer that was generated instead of scored is not a distribution that a preference could be taken out of, and
    what a model writes about a prompt without content is no preference: there nothing is corrected.

    Args:
        scores: Without error.
        blank: The same options without content: scores, or their log-probabilities; None corrects nothing.

    Returns:
        One probability per option, summing to 1.

    Raises:
        ModelError: One of the two requests failed, and is needed.
    """
    if scores.error is not None:
        raise ModelError(scores.error)
    if scores.is_named or blank is None:
        return calibrate(scores.logprobs)
    if not isinstance(blank, OptionScores):
        return calibrate(scores.logprobs, blank)
    if blank.is_named:
        return calibrate(scores.logprobs)
    if blank.error is not None:
        raise ModelError(blank.error)
    return calibrate(scores.logprobs, blank.logprobs)


def mean_log_probabilities(logprobs: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Log of the mean of several answers' probabilities, each normalised over its options first.

    Args:
        logprobs: One row per answer, one log-probability an option.

    Raises:
        InputError: No rows, or rows of different length.
    """
    if len({len(row) for row in logprobs}) != 1:
        raise InputError("Content-free answers can be averaged only where there are some, all of the same options.")
    rows = [calibrate(row) for row in logprobs]
    means = (sum(column) / len(rows) for column in zip(*rows, strict=True))
    return tuple(math.log(max(mean, math.ulp(0.0))) for mean in means)


def calibrate(logprobs: Sequence[float], correction: Sequence[float] | None = None) -> tuple[float, ...]:
    """Probabilities of the options, relative to what the model answers without content.

    Example: a model gives ("true", "false") probabilities 0.6 and 0.3, and 0.8 and 0.1 where there is no claim. Here
    "true" is less likely than usual: ``0.6/0.8 = 0.75`` against ``0.3/0.1 = 3``, hence probabilities 0.2 and 0.8.

    Args:
        logprobs: Of the options, natural logarithm; they need not sum to 1.
        correction: Log-probabilities of the same options without content; None changes nothing.

    Returns:
        One probability per option, summing to 1.

    Raises:
        InputError: No options, a value that is not finite, or a correction of another length.
    """
    if correction is not None and len(correction) != len(logprobs):
        raise InputError(f"{len(logprobs)} options cannot be corrected by {len(correction)} content-free scores.")
    shifted = [score - base for score, base in zip(logprobs, correction or [0.0] * len(logprobs), strict=True)]
    if not shifted or not all(map(math.isfinite, shifted)):
        raise InputError("Probabilities need at least one option, and scores that are finite numbers.")
    # Subtracting the largest keeps exp() within range whatever the scores are.
    largest = max(shifted)
    weights = [math.exp(score - largest) for score in shifted]
    total = sum(weights)
    return tuple(weight / total for weight in weights)
