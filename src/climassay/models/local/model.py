"""A language model whose weights are on this machine: generates, weighs options and gives hidden states."""

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
from climassay.models.local.generation import Generation
from climassay.models.local.loading import DescribedModel, ModelInfo, PromptFormat, choose_threads, load_local
from climassay.models.local.network import Network, Reader
from climassay.models.local.prefix_tree import common_length

Result = TypeVar("Result", OptionScores, Activations)

BLOCK = 512
"""Requests that are tokenised and planned together; sorted by their text before, so little sharing is lost."""


@dataclass(frozen=True, slots=True)
class TokenisedOptions:
    """The options of one request as whole token sequences, prompt included.

    Prompt and option are tokenised together, for a tokenizer may merge across their border ("Answer: " and "a" become
    "Answer:" and " a"). Tokens are scored from the first place where any of the sequences leaves the prompt's own
    tokens, which is the border itself where nothing is merged. All options of a request are scored from the same
    place, so that their log-probabilities can be compared.
    """

    sequences: tuple[tuple[int, ...], ...]
    start: int
    """Position of the first scored token; at least 1."""

    @property
    def tokens(self) -> int:
        """Tokens of the prompt and of all options."""
        return self.start + sum(len(sequence) - self.start for sequence in self.sequences)

    @property
    def tokens_apart(self) -> int:
        """Tokens that a pass for each option, prompt and all, would compute."""
        return sum(map(len, self.sequences))


@dataclass(slots=True)
class OptionReadings:
    """What is known so far of one request's options."""

    logprobs: list[float]
    states: NDArray[np.float32] | None
    """Shape [options, layers, width]."""
    missing: int
    """Places still to be read."""
    greedy: bool = True
    """Whether every scored token is the most probable one; looked at only where it is asked for."""


def tokenise_options(prompts: PromptFormat, prompt: str, options: Sequence[str]) -> TokenisedOptions:
    """Tokenise each option together with the rendered prompt that it follows.

    Raises:
        ValueError: An option is empty or adds no token, or the request has no options.
    """
    if not options:
        raise ValueError("The request has no options.")
    alone, *together = prompts.encode_all([prompt, *(prompt + option for option in options)])
    if not alone:
        opening = prompts.opening_token
        if opening is None:
            raise ValueError("The prompt is empty, and the model has no beginning-of-text token.")
        alone, together = [opening], [[opening, *tokens] for tokens in together]
    start = max(1, min(common_length(alone, tokens) for tokens in together))
    for option, tokens in zip(options, together, strict=True):
        if len(tokens) <= start or not option:
            raise ValueError(f"The option {option!r} adds nothing to the prompt.")
    return TokenisedOptions(tuple(tuple(tokens) for tokens in together), start)


def read_options(
    reader: Reader,
    requests: Sequence[TokenisedOptions],
    *,
    layers: Sequence[int] | None = None,
    token_budget: int | None = None,
    greedy: bool = False,
) -> Iterator[tuple[int, OptionReadings]]:
    """Compute the options of many requests; give index and readings of each as soon as all of it is known.

    Args:
        reader: The model's.
        requests: Tokenised options.
        layers: Hidden states wanted at the last token of each option.
        token_budget: Maximum number of tokens in one forward pass.
        greedy: Whether to find out too if the scored tokens are the most probable ones.
    """
    owners = [(index, option) for index, request in enumerate(requests) for option in range(len(request.sequences))]
    whole = [requests[index].sequences[option] for index, option in owners]
    states = layers is not None
    readings = [
        OptionReadings(
            [0.0] * len(request.sequences),
            None,
            sum(len(sequence) - request.start + states for sequence in request.sequences),
        )
        for request in requests
    ]
    steps = reader.read(
        # The last token of an option need not be computed to know its own probability, only for its hidden state.
        whole if states else [sequence[:-1] for sequence in whole],
        [
            range(requests[index].start - 1, len(sequence) - 1)
            for (index, _), sequence in zip(owners, whole, strict=True)
        ],
        states=[(len(sequence) - 1,) for sequence in whole] if states else None,
        layers=layers or (),
        token_budget=token_budget,
    )
    for reading in steps:
        rows = torch.tensor([place.row for place in reading.places], dtype=torch.long, device=reading.logits.device)
        targets = [whole[place.sequence][place.position + 1] for place in reading.places]
        following = torch.tensor(targets, dtype=torch.long, device=reading.logits.device)
        norms = reading.logits.logsumexp(dim=-1)
        logprobs: list[float] = (reading.logits[rows, following] - norms[rows]).tolist()
        best = (reading.logits.argmax(dim=-1)[rows] == following).tolist() if greedy else [True] * len(logprobs)
        done = []
        for place, logprob, is_best in zip(reading.places, logprobs, best, strict=True):
            index, option = owners[place.sequence]
            known = readings[index]
            known.logprobs[option] += logprob
            known.greedy &= is_best
            known.missing -= 1
            if known.missing == 0:
                done.append(index)
        result = None if reading.states is None else reading.states.cpu().numpy()
        for place in reading.state_places:
            assert result is not None
            index, option = owners[place.sequence]
            known = readings[index]
            if known.states is None:
                known.states = np.zeros((len(known.logprobs), *result[place.row].shape), dtype=np.float32)
            known.states[option] = result[place.row]
            known.missing -= 1
            if known.missing == 0:
                done.append(index)
        yield from ((index, readings[index]) for index in done)


class LocalModel(DescribedModel):
    """A local model: the contract's :class:`~climassay.models.contract.OpenWeights`.

    Args:
        name: ``local:`` and a bundled name, a folder or a hub id; ``+adapter=FOLDER`` may follow.
        device, dtype, adapter: As for :func:`climassay.models.local.loading.load_local`.
        concurrency: Sequences generated side by side; by default as many as pay and fit into memory.
        max_output_tokens: Limit of every generated answer, in place of the requests' own.

    Raises:
        ModelError: The model cannot be found, verified or loaded.
        MissingExtraError: The packages for local models are not installed.
    """

    prompt_format = PromptFormat
    """How messages become the text and the tokens that the model receives."""

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
        self._worker: int | None = None
        loaded = load_local(name.removeprefix("local:"), device=device, dtype=dtype, adapter=adapter)
        self._max_output_tokens = max_output_tokens
        fingerprint = loaded.fingerprint
        if max_output_tokens is not None:
            fingerprint = hashlib.sha256(f"{fingerprint} max_output_tokens={max_output_tokens}".encode()).hexdigest()
        self.network = Network(loaded.model)
        self.reader = Reader(self.network)
        info = ModelInfo(
            fingerprint=fingerprint,
            prompts=self.prompt_format(loaded.tokenizer),
            window=self.network.context,
            layers=self.network.layers,
            dtype=loaded.dtype,
            device=loaded.device,
            token_budget=self.reader.pack,
            parameters=self.network.parameters,
            licence=loaded.licence,
            folder=loaded.folder,
        )
        super().__init__(name, info)
        # On a GPU the CPU's threads hardly matter.
        on_cpu = self.network.device.type == "cpu"
        tokens = [number % self.network.vocabulary for number in range(16)]
        self.threads = choose_threads(lambda: self.network.whole(tokens, [15])) if on_cpu else torch.get_num_threads()
        self._rows = concurrency
        self.load_seconds = loaded.seconds

    @cached_property
    def _generation(self) -> Generation:
        return Generation(self.network, self.reader, self.prompts, rows=self._rows)

    def generate(
        self, requests: Sequence[GenerationRequest], *, on_result: CompletionCallback | None = None
    ) -> list[Completion]:
        """Answer every request, in order; see the contract."""
        return self._generate(requests, on_result)

    def generate_stream(
        self,
        requests: Sequence[GenerationRequest],
        *,
        on_text: TextCallback,
        on_result: CompletionCallback | None = None,
    ) -> list[Completion]:
        """The same, with the text so far after every token; see the contract."""
        return self._generate(requests, on_result, on_text)

    def option_logprobs(
        self, requests: Sequence[OptionRequest], *, on_result: ScoresCallback | None = None
    ) -> list[OptionScores]:
        """Weigh every request's options, in order; beginnings that any of them share are computed once."""
        return self._read(requests, _scores, OptionScores.failed, on_result)

    @property
    def work(self) -> Work:
        """Computed so far for options, hidden states and the prompts of generations; generated tokens not counted."""
        return self.reader.work

    def harvest(
        self,
        requests: Sequence[OptionRequest],
        *,
        layers: Sequence[int] = (-1,),
        token_budget: int | None = None,
        on_result: ActivationsCallback | None = None,
    ) -> list[Activations]:
        """Hidden states at the last token of every option, float32 [options, layers, width]; see the contract.

        A request that cannot be computed, or whose states are not finite numbers, fails in its place.

        Raises:
            ModelError: A layer does not exist.
            InputError: The token budget is less than 1, or no layer is asked for.
        """
        if not layers:
            raise InputError("No layer is requested: name at least one, for example -1 for the last.")
        for layer in layers:
            if not -self.layers - 1 <= layer <= self.layers:
                raise ModelError(f"{self.name} has no layer {layer}: its hidden states are 0 to {self.layers}.")
        if token_budget is not None and token_budget < 1:
            raise InputError(f"The token budget is {token_budget}: give a positive number of tokens, for example 384.")
        return self._read(requests, _activations, Activations.failed, on_result, layers, token_budget)

    def close(self) -> None:
        """Give back the memory."""
        self.reader.release()
        if self.network.device.type == "cuda":
            torch.cuda.empty_cache()

    def _generate(
        self,
        requests: Sequence[GenerationRequest],
        on_result: CompletionCallback | None,
        on_text: TextCallback | None = None,
    ) -> list[Completion]:
        if (most := self._max_output_tokens) is not None:
            requests = [replace(one, sampling=replace(one.sampling, max_tokens=most)) for one in requests]
        with self._alone():
            return self._generation.run(requests, on_result=on_result, on_text=on_text)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One piece of work at a time: threads wait for each other, for all work shares one cache."""
        if self._worker == threading.get_ident():
            raise ModelError(
                f"{self.name} was called from within its own on_result callback: call it when the first "
                "call has returned."
            )
        with self._lock:
            self._worker = threading.get_ident()
            try:
                yield
            finally:
                self._worker = None

    def _read(
        self,
        requests: Sequence[OptionRequest],
        result_of: Callable[[OptionReadings, TokenisedOptions], Result],
        failed: Callable[[str], Result],
        on_result: Callable[[int, Result], None] | None,
        layers: Sequence[int] | None = None,
        token_budget: int | None = None,
    ) -> list[Result]:
        """Read the options of many requests; one that cannot be computed fails in its place.

        Requests are taken in the order of their texts, so that equal beginnings come together.
        """
        results: dict[int, Result] = {}

        def keep(index: int, result: Result) -> None:
            results[index] = result
            if on_result is not None:
                on_result(index, result)

        def text_of(index: int) -> tuple[str, ...]:
            return (*(turn.content for turn in requests[index].messages), requests[index].assistant_prefix)

        order = sorted(range(len(requests)), key=text_of)
        with self._alone():
            for start in range(0, len(order), BLOCK):
                tokenised: dict[int, TokenisedOptions] = {}
                for index in order[start : start + BLOCK]:
                    try:
                        tokenised[index] = self._tokenise(requests[index])
                    except (ModelError, ValueError) as error:
                        keep(index, failed(str(error)))
                indices, chosen = list(tokenised), list(tokenised.values())
                for place, known in read_options(self.reader, chosen, layers=layers, token_budget=token_budget):
                    keep(indices[place], result_of(known, chosen[place]))
        return [results[index] for index in range(len(requests))]

    def _tokenise(self, request: OptionRequest) -> TokenisedOptions:
        prompt = self.render(request.messages, request.assistant_prefix)
        options = tokenise_options(self.prompts, prompt, request.options)
        longest = max(map(len, options.sequences))
        if longest > self.window:
            raise ValueError(
                f"The prompt with its longest option has {longest} tokens, but the model accepts {self.window}."
            )
        return options


def _scores(known: OptionReadings, request: TokenisedOptions) -> OptionScores:
    usage = Usage(prompt_tokens=request.tokens, requests=1)
    if not np.isfinite(known.logprobs).all():
        return OptionScores.failed("The model gave a log-probability that is not a finite number.", usage)
    return OptionScores(tuple(known.logprobs), usage=usage)


def _activations(known: OptionReadings, request: TokenisedOptions) -> Activations:
    assert known.states is not None
    if not (np.isfinite(known.states).all() and np.isfinite(known.logprobs).all()):
        why = "The model gave a hidden state or a log-probability that is not a finite number."
        return Activations.failed(why, request.tokens_apart)
    return Activations(known.states, tuple(known.logprobs), request.tokens_apart)


class PlainText(PromptFormat):
    """Tokens of a text as the model's tokenizer makes them, control tokens included."""

    stops = ()

    @property
    def prefix_token(self) -> int:
        """What a text without a context is conditioned on.

        Raises:
            ModelError: The tokenizer has no beginning-of-text token.
        """
        if (opening := self.opening_token) is None:
            raise ModelError("The tokenizer has no beginning-of-text token.")
        return opening

    def render(self, messages: Sequence[Message], assistant_prefix: str = "") -> str:
        """The texts, one after the other; for no message at all the token that a text begins with."""
        if not messages:
            return str(self.tokenizer.decode([self.prefix_token]))
        return "".join(message.content for message in messages) + assistant_prefix

    def encode(self, text: str) -> list[int]:
        """Token ids; a text that begins with the first token is not given another."""
        begun = text.startswith(self.tokenizer.decode([self.prefix_token]))
        return self.encode_all([text])[0] if not begun else self.encode_rest(text)

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of many texts, each with the tokens that the tokenizer puts before a text."""
        return [list(tokens) for tokens in self.tokenizer(list(texts), return_attention_mask=False)["input_ids"]]

    def encode_rest(self, text: str) -> list[int]:
        """Token ids of a text that goes on from something else."""
        return list(self.tokenizer.encode(text, add_special_tokens=False))


class TextModel(LocalModel):
    """Continues texts and gives the log-probability of continuations.

    A request's messages are one text, its context. Its only option is the continuation; context and continuation are
    tokenised together and the first tokens, as many as the context has by itself, are not scored. Spaces at the end of
    the context count to the continuation. What does not fit into the window is cut off at the beginning. A request
    without messages asks for the whole text, in windows that follow each other if it is long.
    """

    prompt_format = PlainText
    prompts: PlainText

    def __init__(self, name: str, **options: Any) -> None:
        """Load a model, as :class:`~climassay.models.local.model.LocalModel` does."""
        super().__init__(name, **options)
        self.fingerprint = hashlib.sha256(f"{self.fingerprint} as text".encode()).hexdigest()

    def option_logprobs(
        self, requests: Sequence[OptionRequest], *, on_result: ScoresCallback | None = None
    ) -> list[OptionScores]:
        """Log-probability of each request's continuation, in order; beginnings that they share are computed once.

        Raises:
            ModelError: A request has several options.
        """
        results: dict[int, OptionScores] = {}

        def keep(index: int, scores: OptionScores) -> None:
            results[index] = scores
            if on_result is not None:
                on_result(index, scores)

        order = sorted(range(len(requests)), key=lambda index: [one.content for one in requests[index].messages])
        with self._alone():
            for start in range(0, len(order), BLOCK):
                windows: dict[int, list[TokenisedOptions]] = {}
                parts: dict[int, list[OptionReadings]] = {}
                for index in order[start : start + BLOCK]:
                    result = self._windows(requests[index])
                    if result and all(1 <= one.start < len(one.sequences[0]) for one in result):
                        windows[index], parts[index] = result, []
                    else:
                        why = "The continuation adds nothing to the context, or is longer than the window."
                        keep(index, OptionScores.failed(why))
                owners = [index for index, result in windows.items() for _ in result]
                every = [one for result in windows.values() for one in result]
                for place, known in read_options(self.reader, every, greedy=True):
                    index = owners[place]
                    parts[index].append(known)
                    if len(parts[index]) == len(windows[index]):
                        usage = Usage(prompt_tokens=sum(one.tokens for one in windows[index]), requests=1)
                        method: ScoringMethod = "greedy" if all(one.greedy for one in parts[index]) else "exact"
                        total = sum(one.logprobs[0] for one in parts[index])
                        keep(index, OptionScores((total,), method, usage))
        return [results[index] for index in range(len(requests))]

    def _windows(self, request: OptionRequest) -> list[TokenisedOptions]:
        """Tokens to compute, and from which position on they are scored; several only for a text without context."""
        if len(request.options) != 1:
            raise ModelError("A text is scored with one continuation at a time.")
        [continuation] = request.options
        context, first = self.render(request.messages, request.assistant_prefix), [self.prompts.prefix_token]
        if not request.messages:
            return self._in_windows(first + self.prompts.encode(continuation))
        if not context:
            rest = self.prompts.encode_rest(continuation)
            tokens, start = (rest if rest[:1] == first else first + rest), 1
        else:
            alone = self.prompts.encode(context.rstrip())
            tokens, start = alone + self.prompts.encode(context + continuation)[len(alone) :], len(alone)
        cut = max(0, len(tokens) - self.window - 1)
        return [TokenisedOptions((tuple(tokens[cut:]),), start - cut)]

    def _in_windows(self, tokens: list[int]) -> list[TokenisedOptions]:
        """Windows in which every token but the first is scored once.

        Each is as long as it may be, and the last one has as much before what it scores as fits.
        """
        windows = []
        for start in range(1, len(tokens), self.window):
            end = min(start + self.window, len(tokens))
            first = max(0, end - self.window - 1)
            windows.append(TokenisedOptions((tuple(tokens[first:end]),), start - first))
        return windows
