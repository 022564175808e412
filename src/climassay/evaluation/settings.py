"""Settings: what a model is given besides the question, and the prompts and examples that it is put in.

A setting is named on the command line by a short text, in an experiment file by a table of the same fields:

=========================  ============================================================================================
``default``                the question alone
``few-shot:POOL``          worked examples drawn by seed from a question file (``few-shot``: from the primer's)
``rag:C``                  the best passages of collection C (``rag:C+D`` of several), found with the question
``long-context:D@C``       document D of collection C, by title or file name, cut to the model's window
``long-context:auto@C``    the document of the collection that holds the passage most relevant to the question
``context``                the text the question was made from, where the file has it: the ceiling of retrieval
``fine-tuned``             the question alone, to a model fine-tuned on questions (adapter or training: experiment file)
``continued-pretraining``  the question alone, to a model trained further on passages (the same)
=========================  ============================================================================================

Any of them can be asked of a model with an adapter: see :mod:`climassay.evaluation.tuned`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import numpy as np

from climassay.claim_identity import bare_words
from climassay.corpus.documents import join_passages
from climassay.corpus.relevance import Threshold
from climassay.corpus.search import SearchMode
from climassay.errors import InputError
from climassay.models.contract import Generator, Windowed, token_count, window_of
from climassay.prompts import Prompt, RenderedPrompt, load_prompt
from climassay.questions import GAP, KINDS, PRIMER, TYPES, Kind, Question, option_letter, read_questions
from climassay.records import RecordedModel
from climassay.registry import Registry
from climassay.tuning.data import ChatExample

if TYPE_CHECKING:
    from climassay.corpus.documents import Hit, Passage


Values = dict[str, object]
AUTO = "auto"
ROOM = 512
"""Tokens left for the question, its options, the instructions and the answer."""
Making = TypeVar("Making", bound="Callable[[SettingSpec, Sources], Prepare]")


@dataclass(frozen=True, slots=True)
class TaskPrompts:
    """The templates of all types of questions.

    Each gets ``question``, ``passages`` and ``examples``; those of lettered options also ``options`` (``letter``,
    ``text``), those of statements with a gap also ``gap``, its mark. Small models copy ``<MASK>`` where they see it, so
    that it is better replaced.
    """

    by_kind: Mapping[Kind, Prompt]
    mcq_text: Prompt
    """For lettered options that are scored by their texts and not shown."""
    which_option: Prompt
    """Asks a model which of the ``options`` its ``answer`` to a ``question`` chose."""

    @classmethod
    def load(cls, overrides: Path | None = None) -> "TaskPrompts":
        """The built-in templates, or the user's own of these names."""
        by_kind = {kind: load_prompt(kind, overrides) for kind in KINDS}
        return cls(by_kind, load_prompt("mcq_text", overrides), load_prompt("which_option", overrides))

    @property
    def mcq(self) -> Prompt:
        """The template of multiple choice."""
        return self.by_kind["mcq"]

    def of(self, task: Kind, *, by_text: bool = False) -> Prompt:
        """The template of a task; ``by_text``: options are scored by their texts, so that letters are not shown."""
        return self.mcq_text if by_text and TYPES[task].options and not TYPES[task].fixed else self.by_kind[task]

    def render(
        self, question: Question, passages: Sequence[str] = (), examples: Sequence[Values] = ()
    ) -> RenderedPrompt:
        """One question as its task's prompt, options in the file's order."""
        values: Values = {"question": question.question, "passages": passages, "examples": examples}
        if question.type.options:
            values["options"] = lettered(question.options)
        if question.type.gap:
            values["gap"] = GAP
        return self.of(question.kind).render(**values, **question.type.values(question))


def lettered(options: Sequence[str]) -> list[dict[str, str]]:
    """Options as the templates read them: ``letter`` and ``text``."""
    return [{"letter": option_letter(place), "text": text} for place, text in enumerate(options)]


def example_values(question: Question, *, as_text: bool = False) -> Values:
    """A question with its answer as templates read examples; ``as_text``: choices by their text, not their letter."""
    if question.type.options and as_text:
        return {"question": question.question, "answer": question.answer}
    answer = question.type.expected(question)
    return {"question": question.question, "options": lettered(question.options), "answer": answer}


@dataclass(frozen=True, slots=True)
class ExamplePool:
    """Questions from which few-shot examples are drawn."""

    name: str
    questions: tuple[Question, ...]

    def draw(self, task: Kind, k: int, *, seed: int, test: Sequence[Question]) -> tuple[Question, ...]:
        """Examples of one task, the same for every question of the test.

        Questions that are in the test, by their words, are never drawn; neither are those made from a text that a
        question of the test was made from, for their answers may give it away.

        Args:
            task: Kind of the examples.
            k: How many.
            seed: Decides which, and their order.
            test: The questions that will be asked.

        Raises:
            InputError: The pool has too few.
        """
        asked = {bare_words(question.question) for question in test}
        read = {bare_words(question.context) for question in test if question.context}
        usable = [
            question
            for question in self.questions
            if question.kind == task
            and bare_words(question.question) not in asked
            and not (question.context and bare_words(question.context) in read)
        ]
        if len(usable) < k:
            raise InputError(
                f"{k} examples are needed for {task}, but the pool {self.name} has {len(usable)} that are neither in"
                " the test nor made from its texts."
            )
        order = np.random.default_rng(seed).permutation(len(usable))[:k]
        return tuple(usable[int(place)] for place in order)


def open_pool(name: str) -> ExamplePool:
    """The pool of a name: ``primer``, or the path of a question file.

    Raises:
        InputError: The file cannot be read.
    """
    question_set = read_questions(name)
    return ExamplePool(question_set.name, question_set.questions)


def chat_examples(
    questions: Sequence[Question], prompts: TaskPrompts | None = None, *, contexts: Mapping[str, str] | None = None
) -> list[ChatExample]:
    """Questions of all kinds as training examples, in the very prompts of the evaluation.

    Args:
        questions: Any kinds.
        prompts: Templates; the built-in ones by default.
        contexts: A passage for the prompt, by question id; by default none, as in the paper's fine-tuning.
    """
    templates = prompts or TaskPrompts.load()
    given = contexts or {}
    examples = []
    for question in questions:
        passages = (given[question.id],) if question.id in given else ()
        rendered = templates.render(question, passages)
        answer = after_prefix(rendered.assistant_prefix) + question.type.expected(question)
        examples.append(ChatExample(rendered.messages, rendered.assistant_prefix, answer))
    return examples


def after_prefix(prefix: str) -> str:
    """What appears between the start of an answer and the answer: ``Answer:`` is followed by a space."""
    return " " if prefix and not prefix[-1].isspace() else ""


class Retriever(Protocol):
    """What settings need of the corpus."""

    def search_many(
        self, queries: Sequence[str], *, k: int, min_cosine: Threshold = None, mode: SearchMode = "hybrid"
    ) -> "list[list[Hit]]":
        """Hits of every query, best first."""

    def document_passages(self, document: str) -> "list[Passage]":
        """All passages of a document, named by id, title or file name, in its order."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """What goes into one question's prompt."""

    passages: tuple[str, ...] = ()
    passage_ids: tuple[str, ...] = ()
    examples: tuple[Question, ...] = ()
    """Worked examples, of the question's kind."""
    note: str = ""
    """What was done to fit, for example how much of a document was cut."""


@dataclass(frozen=True, slots=True)
class Training:
    """How the adapter of a tuned setting is made; see :mod:`climassay.tuning`."""

    questions: str = ""
    """Question file to learn from (``fine-tuned``)."""
    collections: tuple[str, ...] = ()
    """Collections to learn from (``continued-pretraining``)."""
    validation: tuple[str, ...] = ()
    """Question files, or collections, on which training is stopped early; empty: a share of the training data."""
    source: tuple[str, ...] = ()
    """Collections of the books that the questions came from: checked to be apart from those to learn from."""
    validate_on: Literal["held-out", "source"] = "held-out"
    """``source`` validates on the books the questions came from, as the paper did, and says that this leaks."""
    preset: str = ""
    """Hyper-parameters; empty: those for the model, where there are some."""
    settings: dict[str, object] = field(default_factory=dict)
    """Hyper-parameters of its own, over those of the preset."""
    search: bool = False


@dataclass(frozen=True, slots=True)
class SettingSpec:
    """A setting as it is asked for."""

    kind: str
    """A name of :data:`SETTINGS`."""
    label: str
    collections: tuple[str, ...] = ()
    """Searched for passages or for the document."""
    passages: int = 3
    """Maximum number of passages per question (``rag``)."""
    min_cosine: Threshold = None
    """Leave out passages less similar than this, or with ``"measured"`` those that a search would not call relevant
    (:mod:`climassay.corpus.relevance`; ``rag``); None keeps all."""
    mode: SearchMode = "hybrid"
    pool: str = PRIMER
    """Question file of the examples (``few-shot``), or ``primer``."""
    examples: int = 5
    """Examples a task (``few-shot``)."""
    seed: int = 0
    """Seed of the draw of examples."""
    document: str = AUTO
    """Title or file name of the document (``long-context``), or ``auto``."""
    window: int | None = None
    """Maximum number of tokens of a prompt (``long-context``); by default the model's own window."""
    adapter: str = ""
    """Name in the workspace, or folder, of an adapter that the model gets, in any setting."""
    training: Training | None = None
    """How the adapter is trained, where it is not there yet."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Where settings find collections and pools of examples."""

    retriever: Callable[[tuple[str, ...]], Retriever]
    """Opens collections by name."""
    pool: Callable[[str], ExamplePool]


Prepare = Callable[[Sequence[Question], Generator], list[Prepared]]
"""What each question's prompt gets; the model is only asked how many tokens it reads."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A named way of preparing questions."""

    name: str
    prepare: Prepare
    spec: SettingSpec = field(default_factory=lambda: SettingSpec("default", "default"))


@dataclass(frozen=True, slots=True)
class SettingType:
    """How settings of one kind are read and prepared."""

    prepare: Callable[[SettingSpec, Sources], Prepare]
    read: Callable[[str], Mapping[str, Any]] | None = None
    """Fields of the specification from what follows the colon of the short name; None where nothing may."""
    takes: tuple[str, ...] = ()
    """Numbers that :func:`parse_spec` passes on: ``passages``, ``examples``, ``seed``."""
    tuned: bool = False
    """Whether it needs an adapter, named or trained."""


SETTINGS: Registry[SettingType] = Registry("setting", "climassay.settings", [__name__])
"""The kinds of settings, by the beginning of their short names."""


def setting(name: str, **more: Any) -> Callable[[Making], Making]:
    """Add a function as a kind of setting; ``more`` are the other fields of :class:`SettingType`.

    Example:
        >>> @setting("hint")
        ... def hint(spec, sources):
        ...     return lambda questions, model: [Prepared(("Think first.",)) for _ in questions]
    """

    def add(function: Making) -> Making:
        SETTINGS.add(name, SettingType(function, **more), function.__module__)
        return function

    return add


def parse_spec(text: str, *, passages: int = 3, examples: int = 5, seed: int = 0) -> SettingSpec:
    """The setting of a name as in the module's table.

    Args:
        text: The name.
        passages: Passages a question, for ``rag``.
        examples: Examples a task, for ``few-shot``.
        seed: Seed of the draw of examples.

    Raises:
        InputError: No such setting.
    """
    name, separator, rest = text.partition(":")
    if name not in SETTINGS:
        raise InputError(f"There is no setting {text!r}: there are {', '.join(SETTINGS)}.")
    kind = SETTINGS[name]
    if kind.read is None and separator:
        raise InputError(f"The setting {name} takes no argument, got {text!r}.")
    numbers = {"passages": passages, "examples": examples, "seed": seed}
    result: dict[str, Any] = {} if kind.read is None else dict(kind.read(rest))
    return SettingSpec(name, text, **result | {number: numbers[number] for number in kind.takes})


def make_setting(spec: SettingSpec, sources: Sources) -> Setting:
    """A setting that is ready to prepare questions.

    Raises:
        InputError: A number makes no sense, or a collection or pool is not there.
    """
    if spec.passages < 1 or spec.examples < 1:
        raise InputError(f"The setting {spec.label} needs at least one passage or example.")
    return Setting(spec.label, SETTINGS.find(spec.kind).prepare(spec, sources), spec)


def parse_setting(text: str, sources: Sources, *, k: int = 3, examples: int = 5, seed: int = 0) -> Setting:
    """:func:`parse_spec` and :func:`make_setting` in one.

    Args:
        text: The name.
        sources: Collections are opened for ``rag:`` and ``long-context:`` only, pools for ``few-shot`` only.
        k: Passages a question.
        examples: Examples a task.
        seed: Seed of the draw of examples.
    """
    return make_setting(parse_spec(text, passages=k, examples=examples, seed=seed), sources)


def _collections(text: str, example: str) -> tuple[str, ...]:
    names = tuple(name for name in text.split("+") if name)
    if not names:
        raise InputError(f"This setting needs the name of a collection, for example {example}.")
    return names


@setting("default")
def _alone(_spec: SettingSpec, _sources: Sources) -> Prepare:
    return lambda questions, _model: [Prepared() for _ in questions]


@setting("few-shot", read=lambda rest: {"pool": rest or PRIMER}, takes=("examples", "seed"))
def _few_shot(spec: SettingSpec, sources: Sources) -> Prepare:
    pool = sources.pool(spec.pool)

    def prepare(questions: Sequence[Question], _model: Generator) -> list[Prepared]:
        kinds = dict.fromkeys(question.kind for question in questions)
        drawn = {kind: pool.draw(kind, spec.examples, seed=spec.seed, test=questions) for kind in kinds}
        return [Prepared(examples=drawn[question.kind]) for question in questions]

    return prepare


@setting("rag", read=lambda rest: {"collections": _collections(rest, "rag:ipcc")}, takes=("passages",))
def _rag(spec: SettingSpec, sources: Sources) -> Prepare:
    retriever = sources.retriever(spec.collections)

    def prepare(questions: Sequence[Question], _model: Generator) -> list[Prepared]:
        texts = [question.question for question in questions]
        result = retriever.search_many(texts, k=spec.passages, min_cosine=spec.min_cosine, mode=spec.mode)
        return [
            Prepared(tuple(hit.passage.text for hit in hits), tuple(hit.passage.id for hit in hits)) for hits in result
        ]

    return prepare


def _document_of(rest: str) -> dict[str, Any]:
    document, at, names = rest.rpartition("@")
    example = "long-context:auto@books"
    return {"collections": _collections(names if at else "", example), "document": document or AUTO}


@setting("long-context", read=_document_of)
def _long_context(spec: SettingSpec, sources: Sources) -> Prepare:
    """Put a document before each question.

    A document that does not fit is cut to consecutive passages around the one that is most relevant to the question,
    grown to both sides; the note says how much of it was left.
    """
    retriever = sources.retriever(spec.collections)

    def prepare(questions: Sequence[Question], model: Generator) -> list[Prepared]:
        model = model.wrapped if isinstance(model, RecordedModel) else model
        own = window_of(model)
        window = own if spec.window is None else spec.window
        if spec.window is not None and isinstance(model, Windowed) and window > own:
            raise InputError(f"A window of {window} tokens is asked for, but {model.name} reads at most {own}.")
        if window <= ROOM:
            raise InputError(f"A window of {window} tokens leaves no room: {ROOM} are kept for the question.")
        count = cache(lambda text: token_count(model, text))
        pages = cache(retriever.document_passages)
        hits = retriever.search_many([question.question for question in questions], k=1)
        prepared = []
        for question, result in zip(questions, hits, strict=True):
            if not result and spec.document == AUTO:
                raise InputError(f"The collections {', '.join(spec.collections)} have no passage for {question.id}.")
            best = result[0].passage if result else None
            passages = pages(best.document_id if spec.document == AUTO and best is not None else spec.document)
            places = {passage.id: place for place, passage in enumerate(passages)}
            nearest = [] if best is None else [best.id]
            if not nearest or nearest[0] not in places:
                further = retriever.search_many([question.question], k=len(passages) + 100)[0]
                nearest = [hit.passage.id for hit in further if hit.passage.id in places]
            at = places[nearest[0]] if nearest else 0
            prepared.append(_cut(passages, at, window - ROOM, [count(passage.text) for passage in passages]))
        return prepared

    return prepare


def _cut(passages: "Sequence[Passage]", at: int, room: int, sizes: Sequence[int]) -> Prepared:
    """Consecutive passages around one of them, as many as fit."""
    first, last, used = at, at, sizes[at]
    if used > room:
        raise InputError(f"The window holds {room} tokens of a document, but its passage {passages[at].id} has {used}.")
    while True:
        before = first > 0 and used + sizes[first - 1] <= room
        after = last + 1 < len(passages) and used + sizes[last + 1] <= room
        if not before and not after:
            break
        # The side that has fewer passages so far grows first, so that the best one stays in the middle.
        if before and (not after or at - first <= last - at):
            first -= 1
            used += sizes[first]
        else:
            last += 1
            used += sizes[last]
    kept = passages[first : last + 1]
    cut = len(kept) < len(passages)
    note = f"{kept[0].document}: passages {first + 1} to {last + 1} of {len(passages)} fit the window" if cut else ""
    text = join_passages([passage.text for passage in kept])
    return Prepared((text,), tuple(passage.id for passage in kept), note=note)


@setting("context")
def _context(_spec: SettingSpec, _sources: Sources) -> Prepare:
    def prepare(questions: Sequence[Question], _model: Generator) -> list[Prepared]:
        missing = sum(question.context is None for question in questions)
        if missing:
            raise InputError(f"The setting context needs every question's source text; {missing} of them lack it.")
        return [Prepared((question.context or "",)) for question in questions]

    return prepare


for _name in ("fine-tuned", "continued-pretraining"):
    setting(_name, read=lambda rest: {"adapter": rest}, tuned=True)(_alone)
