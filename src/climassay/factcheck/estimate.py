"""Estimate of the requests, tokens, time and cost of debates, by a rehearsal that calls no model."""

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from climassay.factcheck.checking import DebateResources
from climassay.factcheck.debate.batcher import RequestBatcher
from climassay.factcheck.debate.requests import (
    Request,
    RequestGenerator,
    SearchRequest,
    TextRequest,
    gather,
    send_answers,
)
from climassay.factcheck.debate.rounds import debate
from climassay.factcheck.debate.setup import DebateSetup
from climassay.factcheck.transcript import Claim
from climassay.models.contract import Completion, GenerationRequest
from climassay.models.provider import is_served
from climassay.prompts import count_parameters
from climassay.reporting import counted
from climassay.reporting.results import Result

T = TypeVar("T")
MAX_REHEARSED_CLAIMS = 8
"""Maximum number of claims on which a round of debate is rehearsed."""
_CALLS_PER_FURTHER_ROUND = 2
"""Sequential model calls per further round: one for the advocates, who answer concurrently, and one for the
mediator."""
_MAX_TIMED_REQUESTS = 6
"""Maximum number of timed requests of each kind."""
_CHARACTERS_PER_TOKEN = 4.0
_CITATION = re.compile(r"\[\d+\]")


@dataclass(frozen=True, slots=True)
class DebateEstimate(Result):
    """Estimated cost of the first round of debate on all claims.

    It does not include further rounds or entailment.
    """

    claims: int
    requests: int
    sequential_calls: int
    """Maximum number of sequential model calls per claim."""
    further_rounds: int
    """Maximum number of further rounds."""
    prompt_tokens: int
    completion_tokens: int
    """Maximum number of completion tokens."""
    seconds: float | None = None
    """Estimated duration, from a few timed requests (local models) or earlier answers (servers); None if unknown."""
    cost: float | None = None
    """Cost in US dollars; None if a price is unknown."""

    def lines(self) -> Iterator[str]:
        """Yield the estimate as a sentence."""
        duration = "time unknown, as the records have no answer of this model"
        if self.seconds is not None:
            minutes, hours = self.seconds / 60, self.seconds / 3600
            duration = f"about {minutes:.0f} minutes" if minutes < 90 else f"about {hours:.1f} hours"
            duration = f"about {self.seconds:.0f} seconds" if self.seconds < 90 else duration
        cost = "cost unknown, as no price is given" if self.cost is None else f"at most about ${self.cost:.2f}"
        cost = "no cost (local model)" if self.cost == 0 else cost
        rounds_note = ""
        if self.further_rounds:
            rounds_note = (
                f", and at most {self.further_rounds} more with at most "
                f"{counted(_CALLS_PER_FURTHER_ROUND, 'more call')} one after the other in each"
            )
        yield (
            f"{counted(self.claims, 'claim')}, one round{rounds_note}. "
            f"The first round: {counted(self.requests, 'call')}, for each claim at most "
            f"{self.sequential_calls} one after the other; {self.prompt_tokens:,} prompt and up to "
            f"{self.completion_tokens:,} completion tokens; {cost}; {duration}. "
            "Answers that the records have are not asked again."
        )


def estimate_debate(
    setup: DebateSetup,
    resources: DebateResources,
    claims: Sequence[Claim],
    samples: int = 1,
    seconds_per_answer: Callable[[str], float | None] = lambda _: None,
    *,
    timed: bool = True,
) -> DebateEstimate:
    """Rehearse one round on evenly spaced claims and scale the result to all claims.

    Args:
        setup: Participants and settings.
        resources: Models and collections.
        claims: Claims to be debated.
        samples: Number of debates per claim.
        seconds_per_answer: Function that returns the mean duration of an answer by the name of a model behind a server;
            None if unknown.
        timed: Whether to time local models on a few requests; without timing, their duration is unknown.
    """
    rehearsed_claims = _evenly_spaced(claims, MAX_REHEARSED_CLAIMS)
    one_round_setup = replace(setup, settings=replace(setup.settings, rounds=1, entailment=False))
    batcher = _RehearsalBatcher(resources, setup.profile.text_tokens)
    n_calls: list[int] = []
    _run(gather([_count_calls(debate(claim, one_round_setup), n_calls) for claim in rehearsed_claims]), batcher)
    prompts = [request.model_request for request in batcher.requests]
    # The schema limits the reasoning and the explanation of an answer to ``text_tokens`` each.
    max_tokens = 3 * setup.profile.text_tokens
    seconds: float | None = 0.0
    for name, model in resources.models.items():
        model_requests = [request.model_request for request in batcher.requests if request.model == name]
        duration: float | None = None
        if timed and count_parameters(model) is not None:
            duration = _estimate_seconds(model_requests, model.generate)
        elif (mean := seconds_per_answer(name)) is not None:
            duration = mean * len(model_requests)
        seconds = None if seconds is None or duration is None else seconds + duration
    cost, prices = None, resources.prices
    if all(name in prices or not is_served(name) for name in resources.models):
        cost = sum(
            prices[request.model].cost(_count_tokens(request.model_request), max_tokens)
            for request in batcher.requests
            if request.model in prices
        )
    scale = samples * len(claims) / len(rehearsed_claims)
    return DebateEstimate(
        len(claims),
        round(scale * len(prompts)),
        max(n_calls),
        setup.settings.rounds - 1,
        round(scale * sum(map(_count_tokens, prompts))),
        round(scale * max_tokens * len(prompts)),
        None if seconds is None else scale * seconds,
        None if cost is None else scale * cost,
    )


# -------------------------------------------------------------------------------------------------------- rehearsal


class _RehearsalBatcher(RequestBatcher):
    """Batcher that runs searches, answers requests to models with any valid answer, and collects these requests."""

    def __init__(self, resources: DebateResources, text_tokens: int) -> None:
        super().__init__({}, resources.collections)
        self.requests: list[TextRequest] = []
        # All sentences differ, because repeated sentences are removed before other participants read them.
        self._text = " ".join(f"Point x{number} bears on the claim." for number in range(max(1, text_tokens // 8)))

    def answer(self, requests: Sequence[Request]) -> list[Any]:
        self.requests += [request for request in requests if isinstance(request, TextRequest)]
        results = iter(super().answer([request for request in requests if isinstance(request, SearchRequest)]))
        answers: list[Any] = []
        for request in requests:
            if isinstance(request, SearchRequest):
                answers.append(next(results))
            elif isinstance(request, TextRequest):
                schema, text = request.model_request.schema, self._text
                # An opinion that cites no passage would be withheld, and the mediator would not be called.
                citation = _CITATION.search(request.model_request.messages[-1].content)
                text = text if citation is None else f"The passage bears on the claim {citation[0]}. {text}"
                answers.append(Completion(json.dumps(_valid_value(schema, text)) if schema else text, "stop"))
            else:
                answers.append(0.5)
        return answers


def _run(generator: RequestGenerator[T], batcher: RequestBatcher) -> T:
    answers: list[Any] | None = None
    try:
        while True:
            answers = batcher.answer(send_answers(generator, answers))
    except StopIteration as end:
        result: T = end.value
        return result


def _count_calls(generator: RequestGenerator[T], n_calls: list[int]) -> RequestGenerator[T]:
    """Run a generator and append the number of its sequential model calls to ``n_calls``."""
    answers: list[Any] | None = None
    count = 0
    try:
        while True:
            requests = send_answers(generator, answers)
            count += any(isinstance(request, TextRequest) for request in requests)
            answers = yield requests
    except StopIteration as end:
        n_calls.append(count)
        result: T = end.value
        return result


def _valid_value(schema: Mapping[str, Any], text: str) -> Any:
    """Return a value that satisfies a JSON schema of the debate's prompts."""
    if "enum" in schema:
        return schema["enum"][0]
    if schema["type"] == "integer":
        return schema.get("minimum", 1)
    if schema["type"] == "object":
        return {name: _valid_value(part, text) for name, part in schema["properties"].items()}
    if schema["type"] == "array":
        return [_valid_value(schema["items"], text) for _ in range(schema.get("minItems", 0))]
    return text[: schema.get("maxLength")]


def _evenly_spaced(items: Sequence[T], max_items: int) -> list[T]:
    count = min(max_items, len(items))
    return [items[index * len(items) // count] for index in range(count)]


def _count_tokens(request: GenerationRequest) -> int:
    """Return the approximate number of tokens of a prompt."""
    n_characters = sum(len(message.content) for message in request.messages) + len(request.assistant_prefix)
    return round(n_characters / _CHARACTERS_PER_TOKEN)


def _estimate_seconds(requests: Sequence[T], send: Callable[[Sequence[T]], object]) -> float:
    """Return the estimated seconds for all requests, from a timed sample of them after a warm-up request."""
    if not requests:
        return 0.0
    timed_requests = _evenly_spaced(requests, _MAX_TIMED_REQUESTS)
    send(timed_requests[:1])
    start = time.perf_counter()
    send(timed_requests)
    return (time.perf_counter() - start) * len(requests) / len(timed_requests)
