"""A language model whose weights are on this machine."""

import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

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
    Usage,
    Work,
)
from climassay.models.local.generation import Generation
from climassay.models.local.loading import load_local
from climassay.models.local.network import Network
from climassay.models.local.prompts import PromptFormat
from climassay.models.local.reading import Reader
from climassay.models.local.scoring import OptionReadings, TokenisedOptions, read_options, tokenise_options
from climassay.models.threads import choose_threads

_BLOCK = 512
"""Requests that are tokenised and planned together; sorted by their text before, so little sharing is lost."""


class LocalModel:
    """Generates, weighs options and gives hidden states (the contract's ``OpenWeights``)."""

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
        """Load a model.

        Args:
            name: ``local:`` and a bundled name, a folder or a hub id; ``+adapter=FOLDER`` may follow.
            device: As torch names it; by default a GPU when there is one.
            dtype: ``float32``, ``bfloat16`` or ``float16``; by default bfloat16 on a GPU, and on a CPU where that is
                faster than float32.
            adapter: Folder of a PEFT adapter.
            concurrency: Sequences generated side by side; by default as many as pay and fit into memory.
            max_output_tokens: Limit of every generated answer, in place of the requests' own.

        Raises:
            ModelError: The model cannot be found, verified or loaded.
            MissingExtraError: The packages for local models are not installed.
        """
        self._name = name
        self._lock = threading.Lock()
        self._worker: int | None = None
        loaded = load_local(name.removeprefix("local:"), device=device, dtype=dtype, adapter=adapter)
        self.device, self.dtype = loaded.device, loaded.dtype
        self.licence, self.folder = loaded.licence, loaded.folder
        self._fingerprint = loaded.fingerprint
        self._max_output_tokens = max_output_tokens
        if max_output_tokens is not None:
            limited = f"{loaded.fingerprint} max_output_tokens={max_output_tokens}"
            self._fingerprint = hashlib.sha256(limited.encode()).hexdigest()
        self.parameters = sum(weights.numel() for weights in loaded.model.parameters())
        self.prompts = self.prompt_format(loaded.tokenizer)
        self.network = Network(loaded.model)
        self.reader = Reader(self.network)
        self.threads = self._settle_threads()
        self._generation = Generation(self.network, self.reader, self.prompts, rows=concurrency)
        self.load_seconds = loaded.seconds

    @property
    def name(self) -> str:
        """As the user wrote it."""
        return self._name

    @property
    def fingerprint(self) -> str:
        """SHA-256 over weights, settings, tokenizer, chat template, adapter, dtype and a limit of all answers."""
        return self._fingerprint

    def render(self, messages: Sequence[Message], assistant_prefix: str = "") -> str:
        """The prompt as the model receives it.

        Raises:
            ModelError: The model's chat template does not accept these messages.
        """
        return self.prompts.render(messages, assistant_prefix)

    @property
    def window(self) -> int:
        """Most tokens of prompt and answer together."""
        return self.network.context

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, without those of the chat template."""
        return [len(tokens) for tokens in self.prompts.encode_all(texts)]

    def generate(
        self, requests: Sequence[GenerationRequest], *, on_result: CompletionCallback | None = None
    ) -> list[Completion]:
        """Answer every request, in order; see the contract."""
        if (most := self._max_output_tokens) is not None:
            requests = [replace(one, sampling=replace(one.sampling, max_tokens=most)) for one in requests]
        with self._alone():
            return self._generation.run(requests, on_result=on_result)

    def option_logprobs(
        self, requests: Sequence[OptionRequest], *, on_result: ScoresCallback | None = None
    ) -> list[OptionScores]:
        """Weigh every request's options, in order; beginnings that any of them share are computed once."""
        results: dict[int, OptionScores] = {}

        def keep(index: int, scores: OptionScores) -> None:
            results[index] = scores
            if on_result is not None:
                on_result(index, scores)

        with self._alone():
            for block in self._blocks(requests):
                tokenised = self._tokenise(requests, block, lambda index, why: keep(index, OptionScores.failed(why)))
                indices = list(tokenised)
                for place, known in read_options(self.reader, list(tokenised.values())):
                    keep(indices[place], _scores(known, tokenised[indices[place]]))
        return [results[index] for index in range(len(requests))]

    @property
    def layers(self) -> int:
        """Number of layers."""
        return self.network.layers

    @property
    def token_budget(self) -> int:
        """Most tokens computed side by side in one forward pass; a shared beginning may take larger ones."""
        return self.reader.pack

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
        self._check_harvest(layers, token_budget)
        results: dict[int, Activations] = {}

        def keep(index: int, activations: Activations) -> None:
            results[index] = activations
            if on_result is not None:
                on_result(index, activations)

        with self._alone():
            for block in self._blocks(requests):
                tokenised = self._tokenise(requests, block, lambda index, why: keep(index, Activations.failed(why)))
                indices = list(tokenised)
                chosen = list(tokenised.values())
                for place, known in read_options(self.reader, chosen, layers=layers, token_budget=token_budget):
                    keep(indices[place], _activations(known, chosen[place]))
        return [results[index] for index in range(len(requests))]

    def close(self) -> None:
        """Give back the memory."""
        self.reader.release()
        if self.network.device.type == "cuda":
            import torch

            torch.cuda.empty_cache()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One piece of work at a time: threads wait for each other, for all work shares one cache."""
        if self._worker == threading.get_ident():
            raise ModelError(f"{self.name} was asked from within its own on_result: ask when the first call is done.")
        with self._lock:
            self._worker = threading.get_ident()
            try:
                yield
            finally:
                self._worker = None

    def _check_harvest(self, layers: Sequence[int], token_budget: int | None) -> None:
        if not layers:
            raise InputError("No layer is asked for: name at least one, for example -1 for the last.")
        for layer in layers:
            if not -self.network.layers - 1 <= layer <= self.network.layers:
                raise ModelError(f"{self.name} has no layer {layer}: its hidden states are 0 to {self.network.layers}.")
        if token_budget is not None and token_budget < 1:
            raise InputError(f"The token budget is {token_budget}: give a positive number of tokens, for example 384.")

    def _settle_threads(self) -> int:
        """Choose the number of threads by a few tokens' work; on a GPU the CPU's threads hardly matter."""
        import torch

        if self.network.device.type != "cpu":
            return torch.get_num_threads()
        tokens = [number % self.network.vocabulary for number in range(16)]
        return choose_threads(lambda: self.network.whole(tokens, [15]))

    def _blocks(self, requests: Sequence[OptionRequest]) -> Iterator[list[int]]:
        """Indices of requests in the order of their texts, so that equal beginnings come together."""
        order = sorted(
            range(len(requests)),
            key=lambda index: (*(turn.content for turn in requests[index].messages), requests[index].assistant_prefix),
        )
        for start in range(0, len(order), _BLOCK):
            yield order[start : start + _BLOCK]

    def _tokenise(
        self, requests: Sequence[OptionRequest], block: Sequence[int], on_failure: Callable[[int, str], None]
    ) -> dict[int, TokenisedOptions]:
        """Tokenised requests by index; those that cannot be computed are reported and left out."""
        tokenised = {}
        for index in block:
            request = requests[index]
            try:
                prompt = self.render(request.messages, request.assistant_prefix)
                options = tokenise_options(self.prompts, prompt, request.options)
            except (ModelError, ValueError) as error:
                on_failure(index, str(error))
                continue
            longest = max(map(len, options.sequences))
            if longest > self.network.context:
                on_failure(
                    index,
                    f"The prompt with its longest option has {longest} tokens, the model takes {self.network.context}.",
                )
                continue
            tokenised[index] = options
        return tokenised


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
