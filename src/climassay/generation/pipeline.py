"""The pipeline: drafts of all kinds and levels, batch by batch, until enough of each are accepted.

Every batch is planned from what is stored, made, decided upon and stored as a whole. What a killed run had asked is
served from the records, so the same batch comes out again; a longer run is the continuation of a shorter one. It is
opened from a recipe in a workspace: collections, models behind records, checks, validators, a masker.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

from climassay.corpus import Passage
from climassay.errors import InputError
from climassay.generation.dataset_store import DatasetStore, StoredDraft
from climassay.generation.draft import Decision, Draft, SourcePassage, draft_id, where
from climassay.generation.masking import STATISTICS, mask, open_masker
from climassay.generation.passages import ContextFinder, SeedSampler
from climassay.generation.recipe import Recipe, Stream
from climassay.generation.screening import (
    REPLACED,
    TERM_CHECKS,
    DuplicateFinder,
    Verification,
    answer_check,
    check_names,
    passage_fault,
    screen,
)
from climassay.generation.terms import read_glossary
from climassay.generation.writing import Assignment, Evolver, Examples, Writer
from climassay.grounding import open_collections
from climassay.metrics import Entailment
from climassay.models import load_model
from climassay.models.contract import (
    Completion,
    CompletionCallback,
    GenerationRequest,
    Generator,
    OptionScorer,
    Usage,
    token_count,
)
from climassay.models.openai.connection import retry_policy
from climassay.models.provider import is_served, load_as_set, model_price
from climassay.prompts import profile_of
from climassay.questions import KINDS, PRIMER, TYPES, Kind, Level, Question, read_questions
from climassay.records import RecordedModel, Records, Run
from climassay.reporting import Table, counted
from climassay.settings import located
from climassay.workspace import Workspace

GRACE = 10
"""Drafts that a book may give before its yield is looked at."""
POOR = 0.25
"""A book that yields less than this part of what the stream yields on average is poor ..."""
POOR_SHARE = 0.5
"""... and is asked at most this part as often as the books on average."""


@dataclass(slots=True)
class BookCounts:
    """Drafts of one stream from one book."""

    accepted: int = 0
    following: int = 0
    """Number of its next seed passage; how many were tried."""


@dataclass(slots=True)
class StreamCounts:
    """Drafts of one kind and level."""

    asked: int = 0
    accepted: int = 0
    failed: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    """By the reason of the decision that stands."""
    books: dict[str, BookCounts] = field(default_factory=dict)

    def book(self, name: str) -> BookCounts:
        """What came from one book."""
        return self.books.setdefault(name, BookCounts())

    def needed(self, missing: int, most: int) -> int:
        """Drafts to be written for so many more accepted ones, going by the yield so far."""
        share = (self.accepted + 2) / (self.asked + 2)
        return min(most, math.ceil(missing / share))

    def next_book(self, books: Sequence[str], pending: Mapping[str, int]) -> str:
        """The book with the fewest accepted questions, those under way counted as accepted.

        A poor book, which would have to be asked without end to keep up with the others, is asked more rarely.
        """
        asked = {book: self.book(book).following + pending.get(book, 0) for book in books}
        mean = sum(asked.values()) / len(asked)

        def waits(book: str) -> bool:
            tried, accepted = self.book(book).following, self.book(book).accepted
            poor = tried >= GRACE and (accepted + 1) * self.asked < POOR * (self.accepted + 1) * tried
            return poor and asked[book] > POOR_SHARE * mean

        return min(books, key=lambda book: (waits(book), self.book(book).accepted + pending.get(book, 0), asked[book]))


class PipelineCounts(dict[Stream, StreamCounts]):
    """All drafts of a dataset, counted; a stream without any has counts of 0."""

    def __missing__(self, stream: Stream) -> StreamCounts:
        return self.setdefault(stream, StreamCounts())

    def add(self, placed: StoredDraft) -> None:
        """Count a draft."""
        self._tally(placed, 1)
        book = self[placed.stream].book(placed.book)
        book.following = max(book.following, placed.number + 1)

    def remove(self, placed: StoredDraft) -> None:
        """Take back the count of a draft that is made again; its seed passage stays used."""
        self._tally(placed, -1)

    def _tally(self, placed: StoredDraft, one: int) -> None:
        counts = self[placed.stream]
        counts.asked += one
        if placed.state == "accepted":
            counts.accepted += one
            counts.book(placed.book).accepted += one
        elif placed.state == "failed":
            counts.failed += one
        else:
            standing = placed.draft.rejection
            counts.rejected[standing.reason if standing else ""] += one


_usable = attrgetter("usable")
DecisionStep = Callable[[Sequence[Draft]], list[Draft]]
"""A step that adds decisions to drafts: the same drafts come back, in the same order."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What the pipeline is made of."""

    books: Callable[[], Sequence[str]]
    """Document ids to write from."""
    seed: Callable[[str, str, int], Passage | None]
    """(name of the stream, book, number) -> seed passage; None where the book has no passage fit to write from."""
    contexts: Callable[[Sequence[Passage]], list[tuple[SourcePassage, ...]]]
    """Each seed passage with what was retrieved for it."""
    write: Callable[[Sequence[Assignment]], list[Draft]]
    evolve: Callable[[Sequence[Draft], Level, Sequence[int]], list[Draft]]
    """(base drafts, level, seeds) -> evolved drafts."""
    screen: DecisionStep
    later: tuple[DecisionStep, ...]
    """Steps after screening, in their order: self-consistency, validation, masking ..."""
    repeats: Callable[[Draft], str | None]
    """Id of the accepted draft that this one repeats; one that repeats none is remembered."""
    remember: Callable[[Sequence[Draft]], None]
    """Takes in drafts that were accepted by an earlier run, for :attr:`repeats`."""
    usage: Callable[[], Usage] = Usage
    """Asked so far in this run."""


@dataclass(frozen=True, slots=True)
class PipelineResult:
    """What a run of the pipeline came to."""

    dataset: str
    counts: PipelineCounts
    """Counts of the whole dataset, earlier runs included."""
    wanted: Mapping[Stream, int]
    ended: Mapping[Stream, str]
    """Why a stream ended short of what was wanted."""
    usage: Usage
    """Usage of this run."""

    @property
    def complete(self) -> bool:
        """Whether everything wanted is there."""
        return all(self.counts[stream].accepted >= number for stream, number in self.wanted.items())


PipelineProgress = Callable[[PipelineCounts, Usage], None]


def run_pipeline(
    recipe: Recipe, parts: Pipeline, store: DatasetStore, *, on_progress: PipelineProgress | None = None
) -> PipelineResult:
    """Write, screen, validate, mask and deduplicate until each stream has what the recipe wants.

    Drafts that failed in an earlier run are made again first.

    Raises:
        InputError: The dataset was begun with another recipe, or no book has a passage to write from.
        ModelError: A model cannot work at all.
    """
    store.begin(recipe.name, recipe.deciding())
    run = _Run(recipe, parts, store, recipe.wanted())
    failed, accepted = [], []
    for placed in store.placed(recipe.name):
        run.counts.add(placed)
        if placed.state == "failed":
            failed.append(placed)
        elif placed.state == "accepted":
            accepted.append(placed.draft)
    parts.remember(accepted)
    if not parts.books():
        raise InputError(
            f"The collections {', '.join(recipe.collections)} have no passage that questions could be written from."
        )
    progress = on_progress or (lambda _counts, _usage: None)
    progress(run.counts, parts.usage())
    for start in range(0, len(failed), recipe.batch):
        again = failed[start : start + recipe.batch]
        for placed in again:
            run.counts.remove(placed)
        run.make([(one.stream, one.book, one.number) for one in again])
        progress(run.counts, parts.usage())
        if run.ended:
            break
    while slots := run.plan():
        run.make(slots)
        progress(run.counts, parts.usage())
    return PipelineResult(recipe.name, run.counts, run.wanted, run.ended, parts.usage())


Slot = tuple[Stream, str, int]
"""Stream, book and number of a seed passage: decides a draft altogether."""


@dataclass(slots=True)
class _Run:
    """The state of a run."""

    recipe: Recipe
    parts: Pipeline
    store: DatasetStore
    wanted: Mapping[Stream, int]
    counts: PipelineCounts = field(default_factory=PipelineCounts)
    ended: dict[Stream, str] = field(default_factory=dict)
    barren: set[str] = field(default_factory=set)
    """Books without a passage that is fit to write from."""

    def plan(self) -> list[Slot]:
        """What is to be written next: for each stream as much as its yield so far makes necessary."""
        slots: list[Slot] = []
        for stream, wanted in self.wanted.items():
            counts = self.counts[stream]
            missing = wanted - counts.accepted
            reason = None if missing <= 0 else self._why_to_end(counts)
            if reason:
                self.ended[stream] = reason
            elif missing > 0 and stream not in self.ended:
                slots += self._seats(stream, counts.needed(missing, self.recipe.batch))
        return slots

    def _why_to_end(self, counts: StreamCounts) -> str | None:
        stop, cost, asked, accepted = self.recipe.stop, self.parts.usage().cost, counts.asked, counts.accepted
        if stop.cost is not None and cost is not None and cost >= stop.cost:
            return f"the budget of ${stop.cost:g} is spent"
        if stop.asked is not None and asked >= stop.asked:
            return f"{counted(asked, 'draft')} written, the most that the recipe allows"
        if asked >= stop.after and accepted < stop.min_yield * asked:
            return f"only {accepted} of {asked} drafts were accepted, below the least yield {stop.min_yield:g}"
        return None

    def _seats(self, stream: Stream, number: int) -> list[Slot]:
        """Seed passages of the books that have the fewest accepted questions of a stream."""
        counts = self.counts[stream]
        if self.recipe.stop.asked is not None:
            number = min(number, self.recipe.stop.asked - counts.asked)
        books = [book for book in self.parts.books() if book not in self.barren]
        pending: Counter[str] = Counter()
        slots: list[Slot] = []
        while books and len(slots) < number:
            book = counts.next_book(books, pending)
            at = counts.book(book).following + pending[book]
            if self.parts.seed(stream.name, book, at) is None:
                self.barren.add(book)
                books.remove(book)
                continue
            pending[book] += 1
            slots.append((stream, book, at))
        if not slots:
            self.ended[stream] = "no book has a passage fit to write from"
        return slots

    def make(self, slots: Sequence[Slot]) -> None:
        """Make the drafts of some slots, decide upon them, store and count them."""
        drafts = self._written(slots)
        for step in self.parts.later:
            drafts = where(_usable, step, drafts)
        for place, draft in enumerate(drafts):
            earlier = self.parts.repeats(draft) if draft.usable else None
            if earlier is not None:
                detail = f"It says the same as {earlier}."
                repeats = Decision("deduplicate", "near-duplicates", False, "near-duplicate", detail)
                drafts[place] = draft.decided(repeats)
        placed = [StoredDraft(draft, book, number) for draft, (_, book, number) in zip(drafts, slots, strict=True)]
        self.store.save(self.recipe.name, placed)
        for one in placed:
            self.counts.add(one)
        errors = [draft.error for draft in drafts if draft.error is not None]
        if drafts and len(errors) == len(drafts):
            # Nothing came out of a whole batch: the model is away, or cannot do this at all.
            for stream in {stream for stream, _, _ in slots}:
                self.ended[stream] = (
                    f"all of a batch failed ({counted(len(errors), 'draft')}), the first because: {errors[0]}"
                )

    def _written(self, slots: Sequence[Slot]) -> list[Draft]:
        """Drafts of some slots, written, screened and, where their level asks for it, evolved and screened again."""
        parts, recipe = self.parts, self.recipe
        seeds = [parts.seed(stream.name, book, number) for stream, book, number in slots]
        contexts = parts.contexts([passage for passage in seeds if passage is not None])
        assignments = [
            Assignment(
                draft_id(recipe.name, recipe.seed, stream.name, book, number),
                stream.kind,
                stream.level,
                passages,
                sampling_seed(recipe.seed, stream.name, book, number),
            )
            for (stream, book, number), passages in zip(slots, contexts, strict=True)
        ]
        written = zip(parts.write(assignments), assignments, strict=True)
        drafts = where(_usable, parts.screen, [replace(draft, level=asked.level) for draft, asked in written])
        for level in ("reasoning", "hypothetical"):
            places = [place for place, draft in enumerate(drafts) if draft.level == level and draft.usable]
            if places:
                sampling = [assignments[place].seed for place in places]
                evolved = parts.evolve([drafts[place] for place in places], level, sampling)
                for place, draft in zip(places, where(_usable, parts.screen, evolved), strict=True):
                    drafts[place] = draft
        return drafts


def sampling_seed(*parts: object) -> int:
    """A seed below 2**31 that these parts decide, on any machine."""
    digest = hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


Recording = Callable[[Generator], RecordedModel]
LoadModel = Callable[..., Generator]
"""Like :func:`climassay.models.load_model`."""


@dataclass(frozen=True, slots=True)
class WriterSetup:
    """What writes: where passages come from and who makes questions of them."""

    sampler: SeedSampler
    finder: ContextFinder
    writer: Writer
    evolver: Evolver


def open_writer(recipe: Recipe, workspace: Workspace, model: Generator, *, prompts: Path | None = None) -> WriterSetup:
    """What a recipe writes with.

    Raises:
        InputError: A collection, a prompt or a file of examples does not exist or does not fit.
    """
    group = open_collections(workspace, recipe.collections)
    spec, contexts = recipe.writer, recipe.contexts
    brief = profile_of(model, recipe.profile).brief if spec.brief is None else spec.brief
    manner: dict[str, Any] = {
        "subject": recipe.subject,
        "prompts": prompts,
        "examples": _examples(recipe),
        "temperature": spec.temperature,
        "max_tokens": spec.max_tokens or (400 if brief else 1000),
        "brief": brief,
    }

    def suitable(passage: Passage) -> str | None:
        return passage_fault(passage.text, recipe.screening.language, passage.headings)

    return WriterSetup(
        SeedSampler(group, seed=recipe.seed, suitable=suitable),
        ContextFinder(
            group,
            most=contexts.most,
            threshold=contexts.threshold,
            mode=contexts.mode,
            other_documents=contexts.other_documents,
            suitable=suitable,
        ),
        Writer(model, **manner, own_terms=not recipe.masker.use),
        Evolver(model, **manner),
    )


def _examples(recipe: Recipe) -> Examples:
    """The first examples of each kind and level that have a passage to be shown with.

    The writer shows those of level base, the evolver those of the level it is asked for.
    """
    name, shown = recipe.writer.examples, recipe.writer.shown
    if not name or not shown:
        return {}
    source = read_questions(name if name == PRIMER else located(recipe.folder, name))
    usable = [question for question in source.questions if question.context]
    if not usable:
        raise InputError(f"No question of {name} has the passage it was made from, so none can be shown as an example.")
    results: dict[Kind, list[Question]] = {kind: [] for kind in KINDS}
    taken: Counter[tuple[Kind, Level]] = Counter()
    for question in usable:
        # The writer takes questions without a level for base ones.
        taken[stream := (question.kind, question.level or "base")] += 1
        if taken[stream] <= shown:
            results[question.kind].append(question)
    return results


@contextmanager
def open_pipeline(
    recipe: Recipe,
    workspace: Workspace,
    records: Records,
    run: Run,
    *,
    prompts: Path | None = None,
    deadline: float | None = None,
    use_cache: bool = True,
    load: LoadModel = load_model,
) -> Iterator[Pipeline]:
    """Everything that a recipe names, opened, with every model behind records; closed at the end.

    After ``deadline`` seconds a request to a server has failed, retries included. ``load`` loads the models that write
    and those that answer the questions again.

    Raises:
        InputError: Something that the recipe names does not exist or does not fit.
        ModelError: A model cannot be loaded.
    """
    asked: list[RecordedModel] = []
    with ExitStack() as stack:

        def recorded(model: Generator) -> RecordedModel:
            stack.callback(model.close)
            asked.append(RecordedModel(model, records, run, use_cache=use_cache))
            return asked[-1]

        # What may be misspelt comes before what takes long to load.
        encoder = open_collections(workspace, recipe.collections).encoder
        shared: dict[str, Any] = {"policy": retry_policy(deadline), "folder": workspace.root}
        judging: LoadModel = partial(load_model, **shared)
        spec = recipe.screening
        unknown = sorted(set(spec.without) - set(check_names()))
        if unknown:
            raise InputError(f"There is no check {unknown[0]!r}: climassay generate checks lists them.")
        entailment = _entailment(recipe, recorded, judging) if spec.entailment else None
        model = recorded(load_as_set(recipe.writer.model, recipe.writer, workspace.root, deadline=deadline, load=load))
        answering = None
        if spec.consistency:
            answerer = model if spec.consistency == "writer" else recorded(load(spec.consistency, **shared))
            answering = answer_check(
                answerer,
                profile_of(answerer, recipe.profile),
                orders=spec.orders,
                needed=spec.needed,
                margin=spec.margin,
                prompts=prompts,
                subject=recipe.subject,
                seed=recipe.seed,
            )
        verifies = isinstance(answering, Verification)
        check = partial(
            screen,
            language=spec.language,
            encoder=encoder,
            entailment=entailment,
            without=(*spec.without, *(REPLACED if verifies else ())),
        )
        writing = open_writer(recipe, workspace, model, prompts=prompts)
        duplicates = DuplicateFinder(encoder, jaccard=spec.jaccard, cosine=spec.cosine)
        steps = [
            *((answering.check,) if answering else ()),
            *_validation(recipe, recorded, prompts, judging),
            *_masking(recipe, recorded, prompts, judging),
            # Statements whose term was chosen only now; what was verified before is not asked again.
            *((answering.check,) if answering and verifies and recipe.counts.cloze else ()),
        ]
        yield Pipeline(
            books=lambda: writing.sampler.books,
            seed=writing.sampler.passage,
            contexts=writing.finder.find,
            write=writing.writer.write,
            evolve=writing.evolver.evolve,
            screen=check,
            later=tuple(steps),
            repeats=duplicates.add,
            remember=duplicates.refill,
            usage=lambda: sum((one.tally.usage for one in asked), Usage()),
        )


def _entailment(recipe: Recipe, recorded: Recording, load: LoadModel) -> Entailment:
    """The scorer that the recipe names; one that asks a model asks it behind records."""
    from climassay.metrics.entailment import load_entailment, model_name

    spec = recipe.screening.entailment
    name, model = model_name(spec), None
    if name is not None:
        loaded = load(name)
        if not isinstance(loaded, OptionScorer):
            raise InputError(f"{name} gives no probabilities of answers: use another model as the judge.")
        model = recorded(loaded)
    return load_entailment(spec, model=model, profile=recipe.profile)


def _validation(recipe: Recipe, recorded: Recording, prompts: Path | None, load: LoadModel) -> Iterator[DecisionStep]:
    """The validators of the kinds that have one."""
    from climassay.generation.validation import ByKind, load_validator, validate

    results = {}
    for kind in ("mcq", "freeform"):
        if name := getattr(recipe.validator, kind):
            # Only what is prompted by its name can go through the records: a trained one needs the model itself.
            asked = (lambda model: recorded(load(model))) if name.startswith("prompted:") else load
            results[kind] = load_validator(
                located(recipe.folder, name),
                load=asked,
                prompts=prompts,
                subject=recipe.subject,
                profile=recipe.profile,
            )
    if results:
        yield partial(validate, validator=ByKind(results), threshold=recipe.validator.threshold)


def _masking(recipe: Recipe, recorded: Recording, prompts: Path | None, load: LoadModel) -> Iterator[DecisionStep]:
    """Yield the step that chooses the term of cloze statements and checks it; nothing if no cloze is requested."""
    if not recipe.counts.cloze:
        return
    spec, name = recipe.masker, recipe.masker.use or STATISTICS

    masker = open_masker(
        name,
        glossary=read_glossary(Path(located(recipe.folder, spec.glossary))) if spec.glossary else (),
        subject=recipe.subject,
        prompts=prompts,
        load=lambda model: recorded(load(model)),
        profile=recipe.profile,
    )
    checks = [name for name in TERM_CHECKS if name not in recipe.screening.without]
    check = partial(screen, only=checks, language=recipe.screening.language)

    def masked(drafts: Sequence[Draft]) -> list[Draft]:
        chosen = where(lambda one: one.type.gap and one.usable, check, mask(drafts, masker))
        # A statement without its term is not a question: it failed, and is made again by the next run.
        failed = (one.type.gap and one.usable and not one.wording.answer for one in chosen)
        error = "No term was chosen: the masker's model failed."
        return [replace(one, error=error) if bad else one for one, bad in zip(chosen, failed, strict=True)]

    yield masked


SAMPLE = 6
"""Prompts of a stream whose tokens are counted."""
ASSUMED_YIELD = 0.5
"""Accepted share of drafts where nothing was measured; the paper's was about 0.6 for multiple choice."""
MEASURED_FROM = 20
"""Drafts of a stream from which its own yield is used."""
ANSWER_TOKENS: dict[Kind, int] = dict.fromkeys(KINDS, 90) | {"mcq": 130, "cloze": 50}
"""Tokens of a written answer, as JSON."""
QUESTION_TOKENS = 150
"""Tokens of a multiple-choice question with its options and instructions, beside its passages."""
VERIFYING_TOKENS = 550
"""Tokens of a question with the instructions for verifying it, beside its passages."""
VERDICT_TOKENS = 120
"""Tokens of the verdict."""


@dataclass(frozen=True, slots=True)
class StreamEstimate:
    """What the questions still wanted of one kind and level would take."""

    stream: str
    wanted: int
    accepted: int
    """There already."""
    share: float
    """Yield that is reckoned with."""
    measured: bool
    """Whether the yield was measured on this dataset."""
    drafts: int
    requests: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    """US dollars; None where no price is known."""


class _Listening:
    """A model that notes what it is asked and answers nothing; for all else it is the model itself."""

    def __init__(self, model: Generator) -> None:
        self._model = model
        self.heard: list[GenerationRequest] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def generate(
        self, requests: Sequence[GenerationRequest], *, on_result: CompletionCallback | None = None
    ) -> list[Completion]:
        """Note the requests."""
        self.heard += requests
        answers = [Completion.failed("Only listening.") for _ in requests]
        for index, answer in enumerate(answers):
            if on_result is not None:
                on_result(index, answer)
        return answers


def estimate_run(recipe: Recipe, workspace: Workspace, *, prompts: Path | None = None) -> list[StreamEstimate]:
    """What a recipe would still take, one entry per stream.

    Prompts are those that the recipe would send for its first passages, counted by the model's own tokenizer where it
    has one. What validators and maskers compute is not in it.

    Raises:
        InputError: A collection or a prompt does not exist.
        ModelError: The model cannot be loaded.
    """
    with Records(workspace.records_url) as records:
        counts = PipelineCounts()
        store = DatasetStore(records)
        if recipe.name in store:
            for placed in store.placed(recipe.name):
                counts.add(placed)
    with closing(load_as_set(recipe.writer.model, recipe.writer, workspace.root)) as model:
        listening = _Listening(model)
        setup = open_writer(recipe, workspace, listening, prompts=prompts)
        spec, books = recipe.writer, setup.sampler.books
        price = model_price(spec.model, spec.price_in, spec.price_out, workspace.root)
        scored = profile_of(model, recipe.profile).scored
        results = []
        for stream, wanted in recipe.wanted().items():
            listening.heard.clear()
            numbers = range(SAMPLE if books else 0)
            seeds = [setup.sampler.passage(stream.name, books[number % len(books)], number) for number in numbers]
            passages = setup.finder.find([seed for seed in seeds if seed is not None])
            setup.writer.write(
                [Assignment(str(n), stream.kind, stream.level, shown, n) for n, shown in enumerate(passages)]
            )
            asked = [model.render(one.messages, one.assistant_prefix) for one in listening.heard]
            texts = ["\n\n".join(one.text for one in shown) for shown in passages]
            prompt, text = (
                sum(token_count(model, one) for one in own) / len(own) if own else 0.0 for own in (asked, texts)
            )
            one, answer = counts[stream], ANSWER_TOKENS[stream.kind]
            measured = one.asked >= MEASURED_FROM
            share = max(one.accepted, 0.5) / one.asked if measured else ASSUMED_YIELD
            drafts = round(max(0, wanted - one.accepted) / share)
            requests, prompt_tokens, completion_tokens = 1.0, prompt, float(answer)
            if stream.level != "base":
                requests, prompt_tokens, completion_tokens = 2.0, 2 * prompt + answer, 2.0 * answer
            if recipe.screening.consistency == "writer" and not scored:
                requests += 1
                prompt_tokens += text + VERIFYING_TOKENS
                completion_tokens += VERDICT_TOKENS
            elif TYPES[stream.kind].options and recipe.screening.consistency == "writer":
                orders = 1 if TYPES[stream.kind].fixed else recipe.screening.orders
                requests += orders
                prompt_tokens += orders * (text + QUESTION_TOKENS)
                completion_tokens += orders
            tokens = round(drafts * prompt_tokens), round(drafts * completion_tokens)
            cost = price.cost(*tokens) if price is not None else None if is_served(spec.model) else 0.0
            results.append(
                StreamEstimate(
                    stream.name, wanted, one.accepted, share, measured, drafts, round(drafts * requests), *tokens, cost
                )
            )
        return results


def estimate_table(estimates: Sequence[StreamEstimate]) -> Table:
    """The estimates and their sum."""

    def row(name: str, share: str, those: Sequence[StreamEstimate]) -> tuple[str, ...]:
        wanted, accepted = sum(one.wanted for one in those), sum(one.accepted for one in those)
        names = ("drafts", "requests", "prompt_tokens", "completion_tokens")
        numbers = (sum(getattr(one, name) for one in those) for name in names)
        costs = [one.cost for one in those if one.cost is not None]
        cost = f"{sum(costs):.2f}" if costs else "-"
        return (name, str(wanted), str(accepted), share, *(f"{number:,}" for number in numbers), cost)

    kinds = dict.fromkeys(one.stream.partition("/")[0] for one in estimates)
    rows = [
        row(one.stream, f"{100 * one.share:.0f}%" + ("" if one.measured else " (assumed)"), [one]) for one in estimates
    ]
    return Table.of(
        "What it would take",
        ("stream", "wanted", "there", "yield", "drafts", "requests", "prompt tokens", "answer tokens", "US dollars"),
        [*rows, row("all", "", estimates)],
        strong=(len(rows),),
        note=f"Prompt tokens are counted on {SAMPLE} prompts of each stream; answers are assumed to have "
        + ", ".join(f"{ANSWER_TOKENS[kind]} tokens ({kind})" for kind in kinds)
        + ". Validators and maskers are not included."
        + (" No cost: no price in the recipe or prices.toml." if all(one.cost is None for one in estimates) else ""),
    )
