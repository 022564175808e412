"""What checking many claims will take, before any model is asked: a rehearsal with answers that cost nothing."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from climassay.factcheck.checking import Company
from climassay.factcheck.debate import Table, debate
from climassay.factcheck.exchange import Exchange
from climassay.factcheck.steps import Ask, AskHead, AskOptions, AskPassages, AskText, together
from climassay.factcheck.transcript import Claim
from climassay.models.contract import Completion, GenerationRequest, OptionRequest, OptionScorer, OptionScores

T = TypeVar("T")
SAMPLE = 8
"""Claims that are rehearsed."""
_TIMED = 6
"""Requests of each kind that are timed."""
_CHARACTERS_A_TOKEN = 4.0


@dataclass(frozen=True, slots=True)
class Estimate:
    """Requests and tokens of one round of debate on every claim.

    On top come follow-up rounds, likelihoods of what is held with high confidence, and the measuring of entailment.
    """

    claims: int
    requests: int
    prompt_tokens: int
    completion_tokens: int
    """At most: texts may end earlier."""
    seconds: float | None = None
    """None where it was not measured."""
    cost: float | None = None
    """In US dollars; None where no price is known."""


class _Rehearsal(Exchange):
    """Searches for real; every model answers something legal at once and is only counted."""

    def __init__(self, company: Company, text_tokens: int) -> None:
        super().__init__({}, company.collections)
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
            schema = ask.request.schema
            return Completion(json.dumps(_legal(schema, self._words)) if schema else self._words, "stop")
        return (0.3, 0.1, 0.5, 0.1) if isinstance(ask, AskHead) else 0.5


def _legal(schema: Mapping[str, Any], words: str) -> Any:
    """Something that satisfies a schema of ours."""
    if "enum" in schema:
        return schema["enum"][0]
    if schema["type"] == "object":
        return {name: _legal(part, words) for name, part in schema["properties"].items()}
    if schema["type"] == "array":
        return [_legal(schema["items"], words) for _ in range(schema.get("minItems", 0))]
    return words[: schema.get("maxLength")]


def rehearse(table: Table, company: Company, claims: Sequence[Claim], samples: int = 1) -> Estimate:
    """Count one round on a spread of the claims, and scale it to all.

    Args:
        table: Who debates.
        company: Models and collections; local models are timed on a few of the requests.
        claims: All of them, at least one.
        samples: Debates a claim.
    """
    sample = _spread(claims, SAMPLE)
    short = replace(table, settings=replace(table.settings, rounds=1, entailment=False))
    rehearsal = _Rehearsal(company, table.settings.text_tokens)
    steps = together([debate(claim, short) for claim in sample])
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
    completion_tokens = sum(_most(ask.request, table) for ask in rehearsal.texts)
    seconds = _seconds(rehearsal, company)
    return Estimate(
        len(claims),
        round(scale * len(prompts)),
        round(scale * prompt_tokens),
        round(scale * completion_tokens),
        None if seconds is None else scale * seconds,
        _cost(rehearsal, company, scale, table),
    )


def _spread(things: Sequence[T], most: int) -> list[T]:
    """At most so many, at even distances."""
    count = min(most, len(things))
    return [things[place * len(things) // count] for place in range(count)]


def _tokens(request: OptionRequest | GenerationRequest) -> int:
    characters = sum(len(message.content) for message in request.messages) + len(request.assistant_prefix)
    return round(characters / _CHARACTERS_A_TOKEN)


def _most(request: GenerationRequest, table: Table) -> int:
    return request.sampling.max_tokens or 3 * table.settings.text_tokens


def _seconds(rehearsal: _Rehearsal, company: Company) -> float | None:
    """Time of the rehearsed requests on the local models, from a few of them; None where a model is behind an API."""
    total = 0.0
    for name, model in company.models.items():
        if not name.startswith("local:") or not isinstance(model, OptionScorer):
            return None
        options = [ask.request for ask in rehearsal.options if ask.model == name]
        texts = [ask.request for ask in rehearsal.texts if ask.model == name]
        total += _timed(options, model.option_logprobs) + _timed(texts, model.generate)
    return total


def _timed(requests: Sequence[T], ask: Callable[[Sequence[T]], object]) -> float:
    """Seconds that all requests would take, from a spread of them; the first one only warms up."""
    if not requests:
        return 0.0
    timed = _spread(requests, _TIMED)
    ask(timed[:1])
    before = time.perf_counter()
    ask(timed)
    return (time.perf_counter() - before) * len(requests) / len(timed)


def _cost(rehearsal: _Rehearsal, company: Company, scale: float, table: Table) -> float | None:
    if not set(company.models) <= set(company.prices):
        return None
    total = 0.0
    for weighed in rehearsal.options:
        total += company.prices[weighed.model].cost(_tokens(weighed.request), 1)
    for written in rehearsal.texts:
        total += company.prices[written.model].cost(_tokens(written.request), _most(written.request, table))
    return scale * total
