"""Answering what debates ask: requests of all debates that wait at the same time go to each model in one call."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from climassay.errors import ModelError
from climassay.factcheck.dating import latest_editions
from climassay.factcheck.searching import search_all
from climassay.factcheck.steps import (
    Ask,
    AskEntailment,
    AskHead,
    AskOptions,
    AskPassages,
    AskText,
    Found,
)
from climassay.grounding import CollectionGroup
from climassay.models.contract import (
    Completion,
    ConcurrentModel,
    GenerationRequest,
    OptionRequest,
    OptionScores,
    unwrapped,
)


class Asked(Protocol):
    """A model behind the records."""

    def generate(self, requests: Sequence[GenerationRequest]) -> list[Completion]:
        """As in the contract of models."""

    def option_logprobs(self, requests: Sequence[OptionRequest]) -> list[OptionScores]:
        """As in the contract of models."""


HeadPredictor = Callable[[Sequence[tuple[str, Sequence[str]]]], list[tuple[float, ...] | None]]
EntailmentScorer = Callable[[Sequence[tuple[str, str]]], list[float | None]]


class Exchange:
    """Where debates get their answers.

    Args:
        models: By name, each behind the records.
        collections: By name, each a group of one.
        head: Applies the verdict head, where debates have one.
        entailment: Scores pairs of premise and statement, where debates measure it.
    """

    def __init__(
        self,
        models: Mapping[str, Asked],
        collections: Mapping[str, CollectionGroup],
        head: HeadPredictor | None = None,
        entailment: EntailmentScorer | None = None,
    ) -> None:
        self._models = models
        self._collections = collections
        self._head = head
        self._entailment = entailment
        self._blanks: dict[AskOptions, OptionScores] = {}
        self._latest: dict[str, frozenset[str]] = {}

    def concurrent_model(self, ask: Ask) -> str | None:
        """Name of the model that an ask goes to, where it takes calls of several threads; None for all other asks."""
        if not isinstance(ask, AskText | AskOptions):
            return None
        return ask.model if isinstance(unwrapped(self._models[ask.model]), ConcurrentModel) else None

    def cancel(self, threads: Collection[int]) -> None:
        """End the calls of some threads that are under way; see :class:`~climassay.models.contract.ConcurrentModel`."""
        for model in map(unwrapped, self._models.values()):
            if isinstance(model, ConcurrentModel):
                model.cancel(threads)

    def answer(self, asks: Sequence[Ask]) -> list[Any]:
        """Answers in the order of the asks; several threads may ask models that take calls of several."""
        answers: dict[int, Any] = {}
        ways: tuple[tuple[type[Ask], Callable[[Sequence[Any]], Sequence[Any]]], ...] = (
            (AskPassages, self._search),
            (AskHead, self._judge),
            (AskOptions, self._weigh),
            (AskText, self._write),
            (AskEntailment, self._entail),
        )
        for kind, give in ways:
            places = [place for place, ask in enumerate(asks) if isinstance(ask, kind)]
            if places:
                given = give([asks[place] for place in places])
                answers.update(zip(places, given, strict=True))
        return [answers[place] for place in range(len(asks))]

    def _write(self, asks: Sequence[AskText]) -> list[Completion]:
        answers: dict[int, Completion] = {}
        for name in dict.fromkeys(ask.model for ask in asks):
            places = [place for place, ask in enumerate(asks) if ask.model == name]
            given = self._models[name].generate([asks[place].request for place in places])
            answers.update(zip(places, given, strict=True))
        return [answers[place] for place in range(len(asks))]

    def _weigh(self, asks: Sequence[AskOptions]) -> list[OptionScores]:
        missing = [ask for ask in dict.fromkeys(asks) if ask not in self._blanks]
        known = dict(self._blanks)
        for name in dict.fromkeys(ask.model for ask in missing):
            own = [ask for ask in missing if ask.model == name]
            try:
                given = self._models[name].option_logprobs([ask.request for ask in own])
            except ModelError as error:
                given = [OptionScores.failed(str(error)) for _ in own]
            known.update(zip(own, given, strict=True))
        self._blanks.update((ask, known[ask]) for ask in missing if ask.blank and known[ask].error is None)
        return [known[ask] for ask in asks]

    def _search(self, asks: Sequence[AskPassages]) -> list[tuple[Found, ...]]:
        return search_all(asks, self._collections, self._latest_of)

    def _latest_of(self, name: str) -> frozenset[str]:
        if name not in self._latest:
            [collection] = self._collections[name].collections
            self._latest[name] = latest_editions(collection.documents())
        return self._latest[name]

    def _judge(self, asks: Sequence[AskHead]) -> list[tuple[float, ...] | None]:
        if self._head is None:
            raise ModelError("A debate asks for a verdict head, but none was loaded.")
        return self._head([(ask.claim, ask.evidence) for ask in asks])

    def _entail(self, asks: Sequence[AskEntailment]) -> list[float | None]:
        if self._entailment is None:
            raise ModelError("A debate asks for entailment, but nothing that measures it was loaded.")
        return self._entailment([(ask.premise, ask.statement) for ask in asks])
