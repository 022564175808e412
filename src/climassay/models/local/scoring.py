"""Log-probabilities and hidden states of given answers, all read in one pass over what the requests share."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from climassay.models.local.forest import common_length
from climassay.models.local.prompts import PromptFormat
from climassay.models.local.reading import Reader, Reading


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


@dataclass(slots=True)
class _Plan:
    """Which sequence to compute for each option of each request, and where to look."""

    owners: list[tuple[int, int]] = field(default_factory=list)
    """Request and option of each sequence."""
    sequences: list[tuple[int, ...]] = field(default_factory=list)
    wanted: list[range] = field(default_factory=list)
    """Positions whose next token is scored."""


def tokenise_options(prompts: PromptFormat, prompt: str, options: Sequence[str]) -> TokenisedOptions:
    """Tokenise each option together with the prompt.

    Args:
        prompts: The model's tokenizer.
        prompt: Rendered prompt.
        options: Texts that may follow it.

    Raises:
        ValueError: An option is empty or adds no token, or the request has no options.
    """
    if not options:
        raise ValueError("The request has no options.")
    alone, *together = prompts.encode_all([prompt, *(prompt + option for option in options)])
    if not alone:
        opening = prompts.tokenizer.bos_token_id
        opening = prompts.tokenizer.eos_token_id if opening is None else opening
        if opening is None:
            raise ValueError("The prompt is empty, and the model has no token to begin a text with.")
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
) -> Iterator[tuple[int, OptionReadings]]:
    """Compute the options of many requests.

    Args:
        reader: Of the model.
        requests: Tokenised options.
        layers: Hidden states wanted at the last token of each option.
        token_budget: Most tokens of one forward pass.

    Yields:
        Index and readings of a request as soon as all of it is known.
    """
    plan = _plan(requests, states=layers is not None)
    readings = [
        OptionReadings([0.0] * len(request.sequences), None, _places_of(request, layers is not None))
        for request in requests
    ]
    readings_at = reader.read(
        plan.sequences,
        plan.wanted,
        states=None if layers is None else [(len(sequence) - 1,) for sequence in plan.sequences],
        layers=layers or (),
        token_budget=token_budget,
    )
    for reading in readings_at:
        for index in _add(reading, plan, requests, readings):
            yield index, readings[index]


def _plan(requests: Sequence[TokenisedOptions], *, states: bool) -> _Plan:
    """The last token of an option need not be computed to know its own probability, only for its hidden state."""
    plan = _Plan()
    for index, request in enumerate(requests):
        for option, sequence in enumerate(request.sequences):
            used = sequence if states else sequence[:-1]
            plan.owners.append((index, option))
            plan.sequences.append(used)
            plan.wanted.append(range(request.start - 1, len(sequence) - 1))
    return plan


def _places_of(request: TokenisedOptions, states: bool) -> int:
    return sum(len(sequence) - request.start + states for sequence in request.sequences)


def _add(
    reading: Reading, plan: _Plan, requests: Sequence[TokenisedOptions], readings: Sequence[OptionReadings]
) -> list[int]:
    """Add one step's results; return the requests that are complete with them, each once."""
    done = []
    for place, logprob in zip(reading.places, _target_logprobs(reading, plan, requests), strict=True):
        request, option = plan.owners[place.sequence]
        readings[request].logprobs[option] += logprob
        readings[request].missing -= 1
        if readings[request].missing == 0:
            done.append(request)
    states = None if reading.states is None else reading.states.cpu().numpy()
    for place in reading.state_places:
        assert states is not None
        request, option = plan.owners[place.sequence]
        _keep_state(readings[request], option, states[place.row])
        readings[request].missing -= 1
        if readings[request].missing == 0:
            done.append(request)
    return done


def _target_logprobs(reading: Reading, plan: _Plan, requests: Sequence[TokenisedOptions]) -> list[float]:
    """Log-probability, for each place, of the token that follows it in its option."""
    targets = []
    for place in reading.places:
        request, option = plan.owners[place.sequence]
        targets.append(requests[request].sequences[option][place.position + 1])
    rows = torch.tensor([place.row for place in reading.places], dtype=torch.long, device=reading.logits.device)
    norms = reading.logits.logsumexp(dim=-1)
    following = torch.tensor(targets, dtype=torch.long, device=reading.logits.device)
    result: list[float] = (reading.logits[rows, following] - norms[rows]).tolist()
    return result


def _keep_state(known: OptionReadings, option: int, state: NDArray[np.float32]) -> None:
    if known.states is None:
        known.states = np.zeros((len(known.logprobs), *state.shape), dtype=np.float32)
    known.states[option] = state
