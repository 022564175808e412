"""What checking many claims will take, before any model is asked: a rehearsal with answers that cost nothing."""

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from climassay.factcheck.checking import DebateResources
from climassay.factcheck.debate.rounds import DebateSetup, debate
from climassay.factcheck.debate.scheduler import RequestBatcher
from climassay.factcheck.debate.steps import Ask, AskHead, AskOptions, AskPassages, AskText, Steps, gather
from climassay.factcheck.transcript import Claim
from climassay.models.contract import Completion, GenerationRequest, OptionRequest, OptionScorer, OptionScores
from climassay.models.profiles import parameters_of
from climassay.reporting import counted
from climassay.reporting.results import Result

T = TypeVar("T")
SAMPLE = 8
"""Claims that are rehearsed."""
FURTHER_SEQUENCE = 2
"""Calls in a further round by JSON: the advocates, side by side, and the mediator."""
_TIMED = 6
"""Requests of each kind that are timed."""
_CHARACTERS_A_TOKEN = 4.0
_PASSAGE = re.compile(r"\[\d+\]")


@dataclass(frozen=True, slots=True)
class Estimate(Result):
    """What one round of debate on every claim takes.

    On top come follow-up rounds, likelihoods of what is held with high confidence, and the measuring of entailment.
    """

    claims: int
    requests: int
    sequence: int
    """Calls that a claim has to wait for one after the other, at most; the others go side by side."""
    further_rounds: int
    """Rounds that may follow the first one."""
    further_sequence: int | None
    """Calls that a claim has to wait for in each of them, at most; None where verdicts are weighed by scores, as then
    it depends on the questions."""
    prompt_tokens: int
    completion_tokens: int
    """At most: texts may end earlier."""
    seconds: float | None = None
    """Measured on a few requests of local models, by earlier answers of others; None where there are none."""
    cost: float | None = None
    """In US dollars; None where no price is known."""

    def lines(self) -> Iterator[str]:
        """What it takes, in words."""
        wait = "time unknown, as the records have no answer of this model"
        if self.seconds is not None:
            minutes, hours = self.seconds / 60, self.seconds / 3600
            wait = f"about {minutes:.0f} minutes" if minutes < 90 else f"about {hours:.1f} hours"
            wait = f"about {self.seconds:.0f} seconds" if self.seconds < 90 else wait
        money = "cost unknown, as no price is given" if self.cost is None else f"at most about ${self.cost:.2f}"
        further = f", and at most {self.further_rounds} more" if self.further_rounds else ""
        if self.further_rounds and self.further_sequence is not None:
            further += f" with at most {counted(self.further_sequence, 'more call')} one after the other in each"
        yield (
            f"{counted(self.claims, 'claim')}, one round{further}. "
            f"The first round: {counted(self.requests, 'call')}, for each claim at most "
            f"{self.sequence} one after the other; {self.prompt_tokens:,} prompt and up to {self.completion_tokens:,} "
            f"completion tokens; {money}; {wait}. Answers that the records have are not asked again."
        )


class _DryRunBatcher(RequestBatcher):
    """Searches for real; every model answers something legal at once and is only counted."""

    def __init__(self, resources: DebateResources, text_tokens: int) -> None:
        super().__init__({}, resources.collections)
        self.options: list[AskOptions] = []
        self.texts: list[AskText] = []
        # No two sentences are the same: repeated ones would be taken out before others read them.
        self._words = " ".join(f"Point x{number} bears on the claim." for number in range(max(1, text_tokens // 8)))

    def answer(self, asks: Sequence[Ask]) -> list[Any]:
        self.options += [ask for ask in asks if isinstance(ask, AskOptions) and not ask.blank]
        self.texts += [ask for ask in asks if isinstance(ask, AskText)]
        found = iter(super().answer([ask for ask in asks if isinstance(ask, AskPassages)]))
        return [next(found) if isinstance(ask, AskPassages) else self._answer(ask) for ask in asks]

    def _answer(self, ask: Ask) -> Any:
        if isinstance(ask, AskOptions):
            return OptionScores(tuple(-float(place) for place in range(len(ask.request.options))))
        if isinstance(ask, AskText):
            schema, words = ask.request.schema, self._words
            # What nothing bears is withheld, and nobody would read it: the first passage is cited.
            passage = _PASSAGE.search(ask.request.messages[-1].content)
            words = words if passage is None else f"The passage bears on the claim {passage[0]}. {words}"
            return Completion(json.dumps(_legal(schema, words)) if schema else words, "stop")
        return (0.3, 0.1, 0.5, 0.1) if isinstance(ask, AskHead) else 0.5


def _waits(steps: Steps[T], waits: list[int]) -> Steps[T]:
    """The same steps; how often they wait for a model is added to the list when they end."""
    answers: list[Any] | None = None
    count = 0
    try:
        while True:
            asks = next(steps) if answers is None else steps.send(answers)
            count += any(isinstance(ask, AskOptions | AskText) for ask in asks)
            answers = yield asks
    except StopIteration as end:
        waits.append(count)
        result: T = end.value
        return result


def _legal(schema: Mapping[str, Any], words: str) -> Any:
    """Something that satisfies a schema of ours."""
    if "enum" in schema:
        return schema["enum"][0]
    if schema["type"] == "integer":
        return schema.get("minimum", 1)
    if schema["type"] == "object":
        return {name: _legal(part, words) for name, part in schema["properties"].items()}
    if schema["type"] == "array":
        return [_legal(schema["items"], words) for _ in range(schema.get("minItems", 0))]
    return words[: schema.get("maxLength")]


def estimate_debate(
    setup: DebateSetup,
    resources: DebateResources,
    claims: Sequence[Claim],
    samples: int = 1,
    pace: Callable[[str], float | None] = lambda _: None,
) -> Estimate:
    """Count one round on a spread of the claims, and scale it to all; local models are timed on a few requests.

    ``pace`` gives the seconds per answer of another model, by its name; None where that is not known.
    """
    sample = _spread(claims, SAMPLE)
    short = replace(setup, settings=replace(setup.settings, rounds=1, entailment=False))
    rehearsal = _DryRunBatcher(resources, setup.config.text_tokens)
    waits: list[int] = []
    steps = gather([_waits(debate(claim, short), waits) for claim in sample])
    answers: list[Any] | None = None
    try:
        while True:
            asks = next(steps) if answers is None else steps.send(answers)
            answers = rehearsal.answer(asks)
    except StopIteration:
        pass
    scale = samples * len(claims) / len(sample)
    prompts: list[OptionRequest | GenerationRequest] = [ask.request for ask in rehearsal.options]
    prompts += [ask.request for ask in rehearsal.texts]
    prompt_tokens = sum(_tokens(request) for request in prompts)
    completion_tokens = sum(_most(ask.request, setup) for ask in rehearsal.texts)
    seconds: float | None = 0.0
    for name, model in resources.models.items():
        options = [ask.request for ask in rehearsal.options if ask.model == name]
        texts = [ask.request for ask in rehearsal.texts if ask.model == name]
        if parameters_of(model) is not None and isinstance(model, OptionScorer):
            # Local models are asked a few of the requests.
            took: float | None = _timed(options, model.option_logprobs) + _timed(texts, model.generate)
        elif (each := pace(name)) is not None:
            took = each * (len(options) + len(texts))
        else:
            took = None
        seconds = None if seconds is None or took is None else seconds + took
    cost = None
    if set(resources.models) <= set(resources.prices):
        prices = resources.prices
        cost = sum(prices[ask.model].cost(_tokens(ask.request), 1) for ask in rehearsal.options)
        cost += sum(prices[ask.model].cost(_tokens(ask.request), _most(ask.request, setup)) for ask in rehearsal.texts)
    return Estimate(
        len(claims),
        round(scale * len(prompts)),
        max(waits),
        setup.settings.rounds - 1,
        FURTHER_SEQUENCE if setup.config.elicitation == "schema" else None,
        round(scale * prompt_tokens),
        round(scale * completion_tokens),
        None if seconds is None else scale * seconds,
        None if cost is None else scale * cost,
    )


def _spread(things: Sequence[T], most: int) -> list[T]:
    """At most so many, at even distances."""
    count = min(most, len(things))
    return [things[place * len(things) // count] for place in range(count)]


def _tokens(request: OptionRequest | GenerationRequest) -> int:
    characters = sum(len(message.content) for message in request.messages) + len(request.assistant_prefix)
    return round(characters / _CHARACTERS_A_TOKEN)


def _most(request: GenerationRequest, setup: DebateSetup) -> int:
    return request.sampling.max_tokens or 3 * setup.config.text_tokens


def _timed(requests: Sequence[T], ask: Callable[[Sequence[T]], object]) -> float:
    """Seconds that all requests would take, from a spread of them; the first one only warms up."""
    if not requests:
        return 0.0
    timed = _spread(requests, _TIMED)
    ask(timed[:1])
    before = time.perf_counter()
    ask(timed)
    return (time.perf_counter() - before) * len(requests) / len(timed)
