"""Debates as coroutines: many go on side by side, each as soon as what it asked is answered.

A step is a generator that yields what it needs to know (a tuple of :data:`Ask`) and is sent the answers, in order. What
it returns is its result. :func:`gather` lets several steps advance as one; :class:`Scheduler` advances the debates of a
run, each at its own pace, and :class:`RequestBatcher` answers what they ask at the same time in one call.

Requests to a model that takes several calls at a time (one behind a server) leave at once, each debate's from a thread.
Searches have threads as well. Beside them the calling thread advances debates and asks the models of this
machine, which get in one call whatever waits for them, so that their batches are full. No debate waits for another.
"""

import queue
import threading
from collections import deque
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Generic, TypeVar

import numpy as np

from climassay.corpus.documents import Hit, Passage, excerpt, split_sentences
from climassay.errors import ModelError
from climassay.factcheck.claims import latest_editions
from climassay.grounding import CollectionGroup
from climassay.models.contract import (
    Completion,
    ConcurrentModel,
    Encoder,
    GenerationRequest,
    OptionRequest,
    OptionScores,
    Usage,
    unwrapped,
)
from climassay.records import RecordedModel

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AskText:
    """Continue a chat; answered by a :class:`Completion`."""

    model: str
    """Name of the model."""
    request: GenerationRequest


@dataclass(frozen=True, slots=True)
class AskOptions:
    """Weigh options; answered by :class:`OptionScores`."""

    model: str
    request: OptionRequest
    blank: bool = False
    """A content-free prompt, the same for every claim: asked once a run."""


@dataclass(frozen=True, slots=True)
class AskPassages:
    """Search collections; answered by a tuple of :class:`Found`, best first."""

    collections: tuple[str, ...]
    query: str
    passages: int
    """At most so many."""
    excerpt_words: int = 0
    """Cut each passage to its sentences nearest to the query, of so many words in all; 0 keeps it whole."""
    rerank: bool = False
    """Take the best of four times as many, by their sentences nearest to the query."""
    latest_only: bool = False
    """Leave out documents of which the collection has a later edition."""
    min_cosine: float | None = None
    """Similarity below which a passage is not relevant; None takes the rule measured for the encoder."""


BEARS, ON_SUBJECT, ELSEWHERE = 2, 1, 0
"""Grades of a passage: it bears on the claim, is only on its subject, or is about something else."""


@dataclass(frozen=True, slots=True)
class Found:
    """A passage that a search found."""

    passage: Passage
    collection: str
    cosine: float | None
    excerpt: str
    """What is put before the model."""
    grade: int | None = None
    """:data:`BEARS`, :data:`ON_SUBJECT` or :data:`ELSEWHERE`; None: it was not graded."""


@dataclass(frozen=True, slots=True)
class AskEntailment:
    """Does a premise entail a statement? Answered by a probability, or None where that failed."""

    premise: str
    statement: str


Ask = AskText | AskOptions | AskPassages | AskEntailment
Steps = Generator[tuple[Ask, ...], list[Any], T]


def ask_text(model: str, request: GenerationRequest) -> Steps[Completion]:
    """One completion."""
    [answer] = yield (AskText(model, request),)
    assert isinstance(answer, Completion)
    return answer


def ask_options(asks: Sequence[AskOptions]) -> Steps[list[OptionScores]]:
    """Scores of several requests."""
    if not asks:
        return []
    return list((yield tuple(asks)))


def gather(steps: Sequence[Steps[T]]) -> Steps[list[T]]:
    """Advance several steps as one; what they ask at the same time is asked in one go.

    Returns:
        Their results, in order.
    """
    results: dict[int, T] = {}
    answers: dict[int, list[Any] | None] = dict.fromkeys(range(len(steps)))
    while True:
        waiting: dict[int, tuple[Ask, ...]] = {}
        for place, given in answers.items():
            try:
                waiting[place] = next(steps[place]) if given is None else steps[place].send(given)
            except StopIteration as end:
                results[place] = end.value
        if not waiting:
            return [results[place] for place in range(len(steps))]
        flat = iter((yield tuple(ask for asks in waiting.values() for ask in asks)))
        answers = {place: list(islice(flat, len(asks))) for place, asks in waiting.items()}


@dataclass(slots=True)
class Ledger:
    """What a debate has used so far."""

    usage: Usage = field(default_factory=Usage)
    failures: int = 0


def counted(steps: Steps[T], ledger: Ledger) -> Steps[T]:
    """The same steps, with usage and failures of what they ask added up.

    Tokens of content-free prompts are not counted: they are asked once a run, so that they belong to no debate.
    """
    answers: list[Any] = []
    try:
        asks = next(steps)
        while True:
            answers = yield asks
            for ask, answer in zip(asks, answers, strict=True):
                if not isinstance(answer, (Completion, OptionScores)):
                    ledger.failures += answer is None
                    continue
                ledger.failures += answer.error is not None
                if not (isinstance(ask, AskOptions) and ask.blank):
                    ledger.usage += answer.usage
            asks = steps.send(answers)
    except StopIteration as end:
        result: T = end.value
        return result


RERANK_FACTOR = 4
"""So many times as many passages are found as are kept when the best are chosen by their sentences."""
LATEST_FACTOR = 3
"""As many times as many where old editions will be left out."""
_BEST_SENTENCES = 2
"""Reranking takes the mean of so many nearest sentences."""


def search_all(
    asks: Sequence[AskPassages], collections: Mapping[str, CollectionGroup], latest_of: Callable[[str], frozenset[str]]
) -> list[tuple[Found, ...]]:
    """Answer searches, in order; queries of one collection are searched together.

    Several collections of one search take turns. ``latest_of`` gives the ids of the documents of a collection that are
    the latest of their kind.
    """
    results: dict[tuple[int, str], list[Found]] = {}
    for name in dict.fromkeys(name for ask in asks for name in ask.collections):
        places = [place for place, ask in enumerate(asks) if name in ask.collections]
        group = collections[name]
        alike: dict[tuple[Any, ...], list[int]] = {}
        for place in places:
            ask = asks[place]
            alike.setdefault((ask.passages, ask.min_cosine, ask.rerank, ask.latest_only), []).append(place)
        for (passages, limit, rerank, latest_only), together in alike.items():
            wanted = passages * (RERANK_FACTOR if rerank else 1) * (LATEST_FACTOR if latest_only else 1)
            queries = [asks[place].query for place in together]
            hits = group.search_many(queries, k=wanted, min_cosine="measured" if limit is None else limit)
            if latest_only:
                hits = [[hit for hit in some if hit.passage.document_id in latest_of(name)] for some in hits]
            chosen = cut_out([asks[place] for place in together], hits, group.encoder)
            for place, some in zip(together, chosen, strict=True):
                results[place, name] = [Found(hit.passage, name, hit.cosine, excerpt) for hit, excerpt in some]
    merged = []
    for place, ask in enumerate(asks):
        # The first of each collection, then the second of each and so on: their similarities need not compare.
        lists = [results[place, name] for name in ask.collections]
        ranked = [(rank, number, one) for number, some in enumerate(lists) for rank, one in enumerate(some)]
        ranked.sort(key=lambda entry: entry[:2])
        unique = {one.passage.id: one for _, _, one in reversed(ranked)}  # several collections may hold a passage
        merged.append(tuple(one for _, _, one in ranked if unique[one.passage.id] is one)[: ask.passages])
    return merged


def cut_out(
    asks: Sequence[AskPassages], hits: Sequence[Sequence[Hit]], encoder: Encoder
) -> list[list[tuple[Hit, str]]]:
    """Hits with their excerpts, reranked where that is asked for, at most as many as each search wants."""
    chosen: list[list[tuple[Hit, str]]] = []
    sentences = [[split_sentences(hit.passage.text) or [hit.passage.text] for hit in some] for some in hits]
    plain = [not (ask.rerank or ask.excerpt_words) for ask in asks]
    read = [some for some, whole in zip(sentences, plain, strict=True) if not whole]
    texts = [sentence for some in read for passage in some for sentence in passage]
    unique = list(dict.fromkeys(texts))
    vectors = dict(zip(unique, encoder.encode(unique), strict=True)) if unique else {}
    queries = encoder.encode([ask.query for ask in asks], role="query") if unique else np.zeros((len(asks), 0))
    for ask, query, some, parts, whole in zip(asks, queries, hits, sentences, plain, strict=True):
        if whole:
            chosen.append([(hit, hit.passage.text) for hit in some[: ask.passages]])
            continue
        near = [np.array([float(vectors[sentence] @ query) for sentence in passage]) for passage in parts]
        order = list(range(len(some)))
        if ask.rerank:
            order.sort(key=lambda place: -float(np.sort(near[place])[-_BEST_SENTENCES:].mean()))
        kept = order[: ask.passages]
        chosen.append([(some[place], excerpt(parts[place], near[place], ask.excerpt_words)) for place in kept])
    return chosen


EntailmentScorer = Callable[[Sequence[tuple[str, str]]], list[float | None]]


class RequestBatcher:
    """Answers what debates ask: requests that wait at the same time go to each model in one call.

    Args:
        models: By name, each behind the records.
        collections: By name, each a group of one.
        entailment: Scores pairs of premise and statement, where debates measure it.
    """

    def __init__(
        self,
        models: Mapping[str, RecordedModel],
        collections: Mapping[str, CollectionGroup],
        entailment: EntailmentScorer | None = None,
    ) -> None:
        self._models = models
        self._collections = collections
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
            (AskPassages, lambda asks: search_all(asks, self._collections, self._latest_of)),
            (AskOptions, self._weigh),
            (AskText, self._write),
            (
                AskEntailment,
                lambda asks: _given(self._entailment, "entailment")([(one.premise, one.statement) for one in asks]),
            ),
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

    def _latest_of(self, name: str) -> frozenset[str]:
        if name not in self._latest:
            [collection] = self._collections[name].collections
            self._latest[name] = latest_editions(collection.documents())
        return self._latest[name]


def _given(scorer: T | None, what: str) -> T:
    if scorer is None:
        raise ModelError(f"A debate asks for {what}, but nothing that provides it was loaded.")
    return scorer


Watch = Callable[[Sequence[Ask]], None]
MOST_THREADS = 256
"""Maximum number of calls in flight, each with any number of requests."""
SEARCHES = 2
"""Maximum number of searches in flight while requests are, each of one debate."""


@dataclass(slots=True)
class _Asked:
    """An ask under way, and who waits for it."""

    ask: Ask
    places: list[tuple[int, int]]
    """Numbers of debates, and of the ask within what each asks: equal requests of several debates are asked once."""


@dataclass(frozen=True, slots=True)
class _Call:
    """What is asked in one go."""

    asked: Sequence[_Asked]
    answers: Sequence[Any] = ()
    error: BaseException | None = None


@dataclass(slots=True)
class _Waiting:
    """A debate that waits."""

    asks: int
    answers: dict[int, Any] = field(default_factory=dict)


class Scheduler(Generic[T]):
    """Advances debates over an exchange; used once.

    Args:
        steps: The debates.
        exchange: Answers what they ask.
        concurrency: Maximum number of debates in flight; as one ends the next begins.
        on_result: Called with each result as it comes, in order of completion.
        watch: Called before anything is asked, with what will be; an exception of its own ends the debates there.
    """

    def __init__(
        self,
        steps: Sequence[Steps[T]],
        exchange: RequestBatcher,
        concurrency: int,
        on_result: Callable[[T], None] | None = None,
        watch: Watch | None = None,
    ) -> None:
        self._steps = steps
        self._exchange = exchange
        self._at_once = concurrency
        self._on_result = on_result
        self._watch = watch
        self._results: dict[int, T] = {}
        self._begun = 0
        self._ready: deque[tuple[int, list[Any] | None]] = deque()
        """Debates that can go on, with what they were waiting for."""
        self._waiting: dict[int, _Waiting] = {}
        self._here: list[_Asked] = []
        """For the calling thread."""
        self._searches: list[_Asked] = []
        """For the threads that search."""
        self._searching = 0
        self._requests: dict[str, _Asked] = {}
        """Under way in threads."""
        self._ended: queue.SimpleQueue[_Call] = queue.SimpleQueue()

    def run(self) -> list[T]:
        """Results of all debates, in order.

        Whatever ends this early (Ctrl-C, an error of a call or a callback) cancels the requests that are under way.
        """
        threads: set[int] = set()
        most = min(2 * self._at_once, MOST_THREADS) + SEARCHES
        pool = ThreadPoolExecutor(most, initializer=lambda: threads.add(threading.get_ident()))
        try:
            while len(self._results) < len(self._steps):
                self._go_on(pool)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            self._exchange.cancel(threads)
            raise
        finally:
            pool.shutdown()
        return [self._results[place] for place in range(len(self._steps))]

    def _go_on(self, pool: ThreadPoolExecutor) -> None:
        """Do what is most urgent: advance a debate, so that requests leave; search; ask; with nothing to do, wait."""
        while self._begun < len(self._steps) and len(self._waiting) + len(self._ready) < self._at_once:
            self._ready.append((self._begun, None))
            self._begun += 1
        if self._ready:
            self._advance(pool, *self._ready.popleft())
            return
        while self._searches and self._searching < (SEARCHES if self._requests else 1):
            # While requests are under way one debate's searches in a call, so that its requests leave soon.
            debate = self._searches[0].places[0][0] if self._requests else None
            chosen = [one for one in self._searches if debate is None or one.places[0][0] == debate]
            self._searches = self._searches[len(chosen) :]
            self._searching += 1
            self._send(pool, chosen)
        if self._here and not self._searching:
            here, self._here = self._here, []
            self._tell([one.ask for one in here])
            self._deliver(self._answered(here))
        else:
            self._deliver(self._ended.get())

    def _advance(self, pool: ThreadPoolExecutor, debate: int, answers: list[Any] | None) -> None:
        """Send a debate its answers; note or send what it asks next, or its result."""
        step = self._steps[debate]
        try:
            asks = next(step) if answers is None else step.send(answers)
        except StopIteration as end:
            self._results[debate] = end.value
            if self._on_result is not None:
                self._on_result(end.value)
            return
        if not asks:
            self._ready.append((debate, []))
            return
        self._waiting[debate] = _Waiting(len(asks))
        calls: dict[tuple[type[Ask], str], list[_Asked]] = {}
        for number, ask in enumerate(asks):
            model = self._exchange.concurrent_model(ask)
            if model is None:
                (self._searches if isinstance(ask, AskPassages) else self._here).append(_Asked(ask, [(debate, number)]))
            elif (known := self._requests.get(repr(ask))) is not None:
                known.places.append((debate, number))
            else:
                asked = self._requests[repr(ask)] = _Asked(ask, [(debate, number)])
                calls.setdefault((type(ask), model), []).append(asked)
        for call in calls.values():
            self._send(pool, call)

    def _send(self, pool: ThreadPoolExecutor, asked: Sequence[_Asked]) -> None:
        self._tell([one.ask for one in asked])
        pool.submit(lambda: self._ended.put(self._answered(asked)))

    def _answered(self, asked: Sequence[_Asked]) -> _Call:
        try:
            return _Call(asked, self._exchange.answer([one.ask for one in asked]))
        except BaseException as error:
            # Raised in the calling thread, where it is delivered.
            return _Call(asked, error=error)

    def _deliver(self, call: _Call) -> None:
        """Give answers to those who wait for them.

        Raises:
            BaseException: What ended the call.
        """
        if call.error is not None:
            raise call.error
        self._searching -= isinstance(call.asked[0].ask, AskPassages)
        for one, answer in zip(call.asked, call.answers, strict=True):
            self._requests.pop(repr(one.ask), None)
            for debate, number in one.places:
                waiting = self._waiting[debate]
                waiting.answers[number] = answer
                if len(waiting.answers) == waiting.asks:
                    del self._waiting[debate]
                    self._ready.append((debate, [waiting.answers[place] for place in range(waiting.asks)]))

    def _tell(self, asks: Sequence[Ask]) -> None:
        if self._watch is not None:
            self._watch(asks)
