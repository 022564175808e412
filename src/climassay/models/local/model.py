"""Language model with local weights: generates, scores options and returns hidden states."""

import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from climassay.errors import InputError, ModelError
from climassay.models.contract import (
    Activations,
    ActivationsCallback,
    Completion,
    CompletionCallback,
    GenerationRequest,
    Message,
    OptionRequest,
    OptionScores,
    ScoresCallback,
    ScoringMethod,
    TextCallback,
    Usage,
    Work,
)
from climassay.models.local.cpu_settings import choose_threads
from climassay.models.local.generation import Generation
from climassay.models.local.loading import load_local
from climassay.models.local.network import Network
from climassay.models.local.prefix_tree import common_length
from climassay.models.local.prompt_format import DescribedModel, ModelInfo, PromptFormat
from climassay.models.local.reader import SequenceReader

RequestResult = TypeVar("RequestResult", OptionScores, Activations)

BLOCK_REQUESTS = 512
"""Number of requests tokenised together. Requests are first sorted by text, so that common prefixes are still shared.
"""


@dataclass(frozen=True, slots=True)
class TokenisedOptions:
    """Token sequences of one request: the prompt followed by each option.

    Prompt and option are tokenised together, since a tokenizer may merge characters across their boundary ("Answer: "
    and "a" become "Answer:" and " a"). Tokens are scored from the first position at which any sequence differs from the
    prompt's own tokens; without merges, this is the boundary. All options of a request are scored from the same
    position, so that their log-probabilities can be compared.
    """

    sequences: tuple[tuple[int, ...], ...]
    first_scored: int
    """Position of the first scored token; at least 1."""

    @property
    def tokens(self) -> int:
        """Number of tokens of the prompt and all options."""
        return self.first_scored + sum(len(sequence) - self.first_scored for sequence in self.sequences)

    @property
    def n_tokens_unshared(self) -> int:
        """Number of tokens if each option is computed in a separate pass, with the whole prompt."""
        return sum(map(len, self.sequences))


@dataclass(slots=True)
class OptionReadings:
    """Results of one request's options so far."""

    logprobs: list[float]
    states: NDArray[np.float32] | None
    """Hidden states, shape [options, layers, width]; None if none have been read."""
    n_missing: int
    """Number of positions still to be read."""
    is_greedy: bool = True
    """True if every scored token is the most probable token at its position, or if this was not checked."""


def tokenise_options(prompts: PromptFormat, prompt: str, options: Sequence[str]) -> TokenisedOptions:
    """Tokenise each option together with the rendered prompt before it.

    Raises:
        ValueError: An option is empty or adds no token, or the request has no options.
    """
    if not options:
        raise ValueError("The request has no options.")
    prompt_tokens, *sequences = prompts.encode_all([prompt, *(prompt + option for option in options)])
    if not prompt_tokens:
        opening_token = prompts.opening_token
        if opening_token is None:
            raise ValueError("The prompt is empty, and the model has no beginning-of-text token.")
        prompt_tokens, sequences = [opening_token], [[opening_token, *tokens] for tokens in sequences]
    first_scored = max(1, min(common_length(prompt_tokens, tokens) for tokens in sequences))
    for option, tokens in zip(options, sequences, strict=True):
        if len(tokens) <= first_scored or not option:
            raise ValueError(f"The option {option!r} adds nothing to the prompt.")
    return TokenisedOptions(tuple(tuple(tokens) for tokens in sequences), first_scored)


def read_options(
    reader: SequenceReader,
    requests: Sequence[TokenisedOptions],
    *,
    layers: Sequence[int] | None = None,
    token_budget: int | None = None,
    check_greedy: bool = False,
) -> Iterator[tuple[int, OptionReadings]]:
    """Compute the options of many requests; yield the index and the results of each request when they are complete.

    Args:
        reader: Reader of the model.
        requests: Tokenised options.
        layers: Layers whose hidden states at the last token of each option are read.
        token_budget: Maximum number of tokens in one forward pass.
        check_greedy: Whether to check if the scored tokens are the most probable ones.
    """
    request_options = [
        (index, option) for index, request in enumerate(requests) for option in range(len(request.sequences))
    ]
    sequences = [requests[index].sequences[option] for index, option in request_options]
    has_states = layers is not None
    readings = [
        OptionReadings(
            [0.0] * len(request.sequences),
            None,
            sum(len(sequence) - request.first_scored + has_states for sequence in request.sequences),
        )
        for request in requests
    ]
    readings_by_step = reader.read(
        # The last token of an option need not be computed to know its own probability, only for its hidden state.
        sequences if has_states else [sequence[:-1] for sequence in sequences],
        [
            range(requests[index].first_scored - 1, len(sequence) - 1)
            for (index, _), sequence in zip(request_options, sequences, strict=True)
        ],
        states=[(len(sequence) - 1,) for sequence in sequences] if has_states else None,
        layers=layers or (),
        token_budget=token_budget,
    )
    for reading in readings_by_step:
        rows = torch.tensor(
            [token_position.row for token_position in reading.positions], dtype=torch.long, device=reading.logits.device
        )
        target_tokens = [
            sequences[token_position.sequence][token_position.position + 1] for token_position in reading.positions
        ]
        next_tokens = torch.tensor(target_tokens, dtype=torch.long, device=reading.logits.device)
        log_normalisers = reading.logits.logsumexp(dim=-1)
        logprobs: list[float] = (reading.logits[rows, next_tokens] - log_normalisers[rows]).tolist()
        are_most_probable = (
            (reading.logits.argmax(dim=-1)[rows] == next_tokens).tolist() if check_greedy else [True] * len(logprobs)
        )
        complete_indices = []
        for token_position, logprob, is_most_probable in zip(
            reading.positions, logprobs, are_most_probable, strict=True
        ):
            index, option = request_options[token_position.sequence]
            request_readings = readings[index]
            request_readings.logprobs[option] += logprob
            request_readings.is_greedy &= is_most_probable
            request_readings.n_missing -= 1
            if request_readings.n_missing == 0:
                complete_indices.append(index)
        step_states = None if reading.states is None else reading.states.cpu().numpy()
        for token_position in reading.state_positions:
            assert step_states is not None
            index, option = request_options[token_position.sequence]
            request_readings = readings[index]
            if request_readings.states is None:
                request_readings.states = np.zeros(
                    (len(request_readings.logprobs), *step_states[token_position.row].shape), dtype=np.float32
                )
            request_readings.states[option] = step_states[token_position.row]
            request_readings.n_missing -= 1
            if request_readings.n_missing == 0:
                complete_indices.append(index)
        yield from ((index, readings[index]) for index in complete_indices)


class LocalModel(DescribedModel):
    """Model with weights on this machine; implements :class:`~climassay.models.contract.OpenWeights`.

    Args:
        name: ``local:`` and a bundled name, a folder or a hub id; ``+adapter=FOLDER`` may follow.
        device, dtype, adapter: See :func:`climassay.models.local.loading.load_local`.
        concurrency: Maximum number of sequences generated together; by default chosen by device and memory.
        max_output_tokens: Token limit of every answer, overriding the requests'.

    Raises:
        ModelError: The model cannot be found, verified or loaded.
        MissingExtraError: The packages for local models are not installed.
    """

    prompt_format = PromptFormat
    """Class that converts messages to the text and tokens that the model receives."""

    def __init__(
        self,
        name: str,
        *,
        device: str | None = None,
        dtype: str | None = None,
        adapter: str | None = None,
        concurrency: int | None = None,
        max_output_tokens: int | None = None,
    ) -> None:
        self._lock = threading.Lock()
        self._worker_thread: int | None = None
        loaded_model = load_local(name.removeprefix("local:"), device=device, dtype=dtype, adapter=adapter)
        self._max_output_tokens = max_output_tokens
        fingerprint = loaded_model.fingerprint
        if max_output_tokens is not None:
            fingerprint = hashlib.sha256(f"{fingerprint} max_output_tokens={max_output_tokens}".encode()).hexdigest()
        self.network = Network(loaded_model.model)
        self.reader = SequenceReader(self.network)
        info = ModelInfo(
            fingerprint=fingerprint,
            prompts=self.prompt_format(loaded_model.tokenizer),
            window=self.network.context,
            layers=self.network.layers,
            dtype=loaded_model.dtype,
            device=loaded_model.device,
            token_budget=self.reader.max_packed,
            parameters=self.network.parameters,
            licence=loaded_model.licence,
            folder=loaded_model.folder,
        )
        super().__init__(name, info)
        # On a GPU the CPU's threads hardly matter.
        is_on_cpu = self.network.device.type == "cpu"
        tokens = [number % self.network.vocabulary for number in range(16)]
        self.threads = (
            choose_threads(lambda: self.network.compute_sequence(tokens, [15]))
            if is_on_cpu
            else torch.get_num_threads()
        )
        self._max_rows = concurrency
        self.load_seconds = loaded_model.seconds

    @cached_property
    def _generation(self) -> Generation:
        return Generation(self.network, self.reader, self.prompts, rows=self._max_rows)

    def generate(
        self, requests: Sequence[GenerationRequest], *, on_result: CompletionCallback | None = None
    ) -> list[Completion]:
        """Return a completion for each request, in order; see :class:`climassay.models.contract.Generator`."""
        return self._generate(requests, on_result)

    def generate_stream(
        self,
        requests: Sequence[GenerationRequest],
        *,
        on_text: TextCallback,
        on_result: CompletionCallback | None = None,
    ) -> list[Completion]:
        """Return completions, with previews after each token; see ``contract.StreamingGenerator``."""
        return self._generate(requests, on_result, on_text)

    def option_logprobs(
        self, requests: Sequence[OptionRequest], *, on_result: ScoresCallback | None = None
    ) -> list[OptionScores]:
        """Return the scores of each request's options, in order; shared prefixes are computed once."""
        return self._read_requests(requests, _create_scores, OptionScores.failed, on_result)

    @property
    def work(self) -> Work:
        """Forward passes and tokens computed for options, hidden states and prompts, excluding generated tokens."""
        return self.reader.work

    def harvest(
        self,
        requests: Sequence[OptionRequest],
        *,
        layers: Sequence[int] = (-1,),
        token_budget: int | None = None,
        on_result: ActivationsCallback | None = None,
    ) -> list[Activations]:
        """Return hidden states at the last token of every option, float32 [options, layers, width].

        A request that cannot be computed, or whose states are not finite, returns failed activations.

        Raises:
            ModelError: A layer does not exist.
            InputError: The token budget is less than 1, or ``layers`` is empty.
        """
        if not layers:
            raise InputError("No layer is requested: name at least one, for example -1 for the last.")
        for layer in layers:
            if not -self.layers - 1 <= layer <= self.layers:
                raise ModelError(f"{self.name} has no layer {layer}: its hidden states are 0 to {self.layers}.")
        if token_budget is not None and token_budget < 1:
            raise InputError(f"The token budget is {token_budget}: give a positive number of tokens, for example 384.")
        return self._read_requests(requests, _create_activations, Activations.failed, on_result, layers, token_budget)

    def close(self) -> None:
        """Free memory."""
        self.reader.release()
        if self.network.device.type == "cuda":
            torch.cuda.empty_cache()

    def _generate(
        self,
        requests: Sequence[GenerationRequest],
        on_result: CompletionCallback | None,
        on_text: TextCallback | None = None,
    ) -> list[Completion]:
        if (max_tokens := self._max_output_tokens) is not None:
            requests = [
                replace(request, sampling=replace(request.sampling, max_tokens=max_tokens)) for request in requests
            ]
        with self._exclusive():
            return self._generation.run(requests, on_result=on_result, on_text=on_text)

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Hold the model's lock, since all computations share one cache."""
        if self._worker_thread == threading.get_ident():
            raise ModelError(
                f"{self.name} was called from within its own on_result callback: call it when the first "
                "call has returned."
            )
        with self._lock:
            self._worker_thread = threading.get_ident()
            try:
                yield
            finally:
                self._worker_thread = None

    def _read_requests(
        self,
        requests: Sequence[OptionRequest],
        create_result: Callable[[OptionReadings, TokenisedOptions], RequestResult],
        create_failure: Callable[[str], RequestResult],
        on_result: Callable[[int, RequestResult], None] | None,
        layers: Sequence[int] | None = None,
        token_budget: int | None = None,
    ) -> list[RequestResult]:
        """Compute the options of all requests, sorted by text so that common prefixes are adjacent."""
        results: dict[int, RequestResult] = {}

        def store(index: int, result: RequestResult) -> None:
            results[index] = result
            if on_result is not None:
                on_result(index, result)

        def join_texts(index: int) -> tuple[str, ...]:
            return (*(turn.content for turn in requests[index].messages), requests[index].assistant_prefix)

        order = sorted(range(len(requests)), key=join_texts)
        with self._exclusive():
            for start in range(0, len(order), BLOCK_REQUESTS):
                options_by_index: dict[int, TokenisedOptions] = {}
                for index in order[start : start + BLOCK_REQUESTS]:
                    try:
                        options_by_index[index] = self._tokenise_request(requests[index])
                    except (ModelError, ValueError) as error:
                        store(index, create_failure(str(error)))
                indices, tokenised_options = list(options_by_index), list(options_by_index.values())
                for option_index, request_readings in read_options(
                    self.reader, tokenised_options, layers=layers, token_budget=token_budget
                ):
                    store(indices[option_index], create_result(request_readings, tokenised_options[option_index]))
        return [results[index] for index in range(len(requests))]

    def _tokenise_request(self, request: OptionRequest) -> TokenisedOptions:
        prompt = self.render(request.messages, request.assistant_prefix)
        options = tokenise_options(self.prompts, prompt, request.options)
        max_length = max(map(len, options.sequences))
        if max_length > self.window:
            raise ValueError(
                f"The prompt with its longest option has {max_length} tokens, but the model accepts {self.window}."
            )
        return options


def _create_scores(readings: OptionReadings, request: TokenisedOptions) -> OptionScores:
    usage = Usage(prompt_tokens=request.tokens, requests=1)
    if not np.isfinite(readings.logprobs).all():
        return OptionScores.failed("The model gave a log-probability that is not a finite number.", usage)
    return OptionScores(tuple(readings.logprobs), usage=usage)


def _create_activations(readings: OptionReadings, request: TokenisedOptions) -> Activations:
    assert readings.states is not None
    if not (np.isfinite(readings.states).all() and np.isfinite(readings.logprobs).all()):
        error = "The model gave a hidden state or a log-probability that is not a finite number."
        return Activations.failed(error, request.n_tokens_unshared)
    return Activations(readings.states, tuple(readings.logprobs), request.n_tokens_unshared)


class PlainText(PromptFormat):
    """Prompt format without template or markup; control tokens in the text are tokenised as such."""

    stops = ()

    @property
    def prefix_token(self) -> int:
        """First token of a text without context.

        Raises:
            ModelError: The tokenizer has no beginning-of-text token.
        """
        if (token := self.opening_token) is None:
            raise ModelError("The tokenizer has no beginning-of-text token.")
        return token

    def render(self, messages: Sequence[Message], assistant_prefix: str = "") -> str:
        """Concatenate the messages; without messages, return the beginning-of-text token."""
        if not messages:
            return str(self.tokenizer.decode([self.prefix_token]))
        return "".join(message.content for message in messages) + assistant_prefix

    def encode(self, text: str) -> list[int]:
        """Tokenise a text, adding the beginning-of-text token unless the text starts with it."""
        has_prefix = text.startswith(self.tokenizer.decode([self.prefix_token]))
        return self.encode_all([text])[0] if not has_prefix else self.encode_continuation(text)

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokenise many texts, each with the tokenizer's prefix tokens."""
        return [list(tokens) for tokens in self.tokenizer(list(texts), return_attention_mask=False)["input_ids"]]

    def encode_continuation(self, text: str) -> list[int]:
        """Tokenise a text that continues another one, without special tokens."""
        return list(self.tokenizer.encode(text, add_special_tokens=False))


class TextModel(LocalModel):
    """Model of plain text that returns the log-probability of continuations.

    The messages of a request are its context, and its only option is the continuation. Both are tokenised together. If
    the context alone has n tokens, the first n tokens are not scored. Spaces at the end of the context belong to the
    continuation. Text beyond the window is truncated at the beginning. A request without messages scores its whole
    option, in consecutive windows if it is long.
    """

    prompt_format = PlainText
    prompts: PlainText

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self.fingerprint = hashlib.sha256(f"{self.fingerprint} as text".encode()).hexdigest()

    def option_logprobs(
        self, requests: Sequence[OptionRequest], *, on_result: ScoresCallback | None = None
    ) -> list[OptionScores]:
        """Return the log-probability of each request's continuation, in order; shared prefixes are computed once.

        Raises:
            ModelError: A request has more than one option.
        """
        results: dict[int, OptionScores] = {}

        def store(index: int, scores: OptionScores) -> None:
            results[index] = scores
            if on_result is not None:
                on_result(index, scores)

        order = sorted(range(len(requests)), key=lambda index: [window.content for window in requests[index].messages])
        with self._exclusive():
            for start in range(0, len(order), BLOCK_REQUESTS):
                windows: dict[int, list[TokenisedOptions]] = {}
                window_readings: dict[int, list[OptionReadings]] = {}
                for index in order[start : start + BLOCK_REQUESTS]:
                    request_windows = self._tokenise_windows(requests[index])
                    if request_windows and all(
                        1 <= window.first_scored < len(window.sequences[0]) for window in request_windows
                    ):
                        windows[index], window_readings[index] = request_windows, []
                    else:
                        error = "The continuation adds nothing to the context, or is longer than the window."
                        store(index, OptionScores.failed(error))
                request_indices = [index for index, request_windows in windows.items() for _ in request_windows]
                all_windows = [window for request_windows in windows.values() for window in request_windows]
                for window_index, readings in read_options(self.reader, all_windows, check_greedy=True):
                    index = request_indices[window_index]
                    window_readings[index].append(readings)
                    if len(window_readings[index]) == len(windows[index]):
                        usage = Usage(prompt_tokens=sum(window.tokens for window in windows[index]), requests=1)
                        method: ScoringMethod = (
                            "greedy" if all(window.is_greedy for window in window_readings[index]) else "exact"
                        )
                        logprob = sum(window.logprobs[0] for window in window_readings[index])
                        store(index, OptionScores((logprob,), method, usage))
        return [results[index] for index in range(len(requests))]

    def _tokenise_windows(self, request: OptionRequest) -> list[TokenisedOptions]:
        """Return the windows to compute, with their first scored positions.

        A request with context has only one window.
        """
        if len(request.options) != 1:
            raise ModelError("A text is scored with one continuation at a time.")
        [continuation] = request.options
        context, prefix = self.render(request.messages, request.assistant_prefix), [self.prompts.prefix_token]
        if not request.messages:
            return self._divide_into_windows(prefix + self.prompts.encode(continuation))
        if not context:
            continuation_tokens = self.prompts.encode_continuation(continuation)
            tokens, start = (
                (continuation_tokens if continuation_tokens[:1] == prefix else prefix + continuation_tokens),
                1,
            )
        else:
            context_tokens = self.prompts.encode(context.rstrip())
            tokens, start = (
                context_tokens + self.prompts.encode(context + continuation)[len(context_tokens) :],
                len(context_tokens),
            )
        n_truncated = max(0, len(tokens) - self.window - 1)
        return [TokenisedOptions((tuple(tokens[n_truncated:]),), start - n_truncated)]

    def _divide_into_windows(self, tokens: list[int]) -> list[TokenisedOptions]:
        """Divide tokens into windows in which every token but the first is scored once.

        All windows have the maximum length; the last one begins with tokens that are not scored again.
        """
        windows = []
        for start in range(1, len(tokens), self.window):
            end = min(start + self.window, len(tokens))
            first_token = max(0, end - self.window - 1)
            windows.append(TokenisedOptions((tuple(tokens[first_token:end]),), start - first_token))
        return windows
