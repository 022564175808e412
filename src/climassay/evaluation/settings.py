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
from typing import TYPE_CHECKING, Literal, Protocol, cast, get_args

import numpy as np

from climassay.claim_identity import bare_words
from climassay.corpus.passages import join_passages
from climassay.corpus.search import SearchMode
from climassay.errors import InputError
from climassay.models.contract import Generator, Windowed, token_count, window_of
from climassay.primer import PRIMER, named_questions
from climassay.prompts import Prompt, RenderedPrompt, load_prompt
from climassay.questions import GAP, KINDS, TYPES, Kind, Question, option_letter
from climassay.records import RecordedModel
from climassay.tuning.data import ChatExample

if TYPE_CHECKING:
    from climassay.corpus.documents import Hit, Passage


Values = dict[str, object]
PRIMER_POOL = PRIMER


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

    @classmethod
    def load(cls, overrides: Path | None = None) -> "TaskPrompts":
        """The built-in templates, or the user's own of these names."""
        return cls({kind: load_prompt(kind, overrides) for kind in KINDS}, load_prompt("mcq_text", overrides))

    @property
    def mcq(self) -> Prompt:
        """That of multiple choice."""
        return self.by_kind["mcq"]

    def of(self, task: Kind, *, by_text: bool = False) -> Prompt:
        """The template in which a task's questions are put.

        Args:
            task: Kind of the questions.
            by_text: Whether options are scored by their texts, so that those with letters are not shown.
        """
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
        return self.of(question.kind).render(**values)


def lettered(options: Sequence[str]) -> list[dict[str, str]]:
    """Options as the templates read them: ``letter`` and ``text``."""
    return [{"letter": option_letter(place), "text": text} for place, text in enumerate(options)]


def expected_answer(question: Question) -> str:
    """What a perfect model writes: the option's letter, the freeform answer, the term, true or false."""
    return question.type.expected(question)


def example_values(question: Question, *, as_text: bool = False) -> Values:
    """A question with its answer as the templates read examples.

    Args:
        question: Of any kind.
        as_text: Multiple choice by the option's text instead of its letter, without the options.
    """
    if question.type.options and as_text:
        return {"question": question.question, "answer": question.answer}
    return {
        "question": question.question,
        "options": lettered(question.options),
        "answer": expected_answer(question),
    }


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
                f"{k} examples are wanted for {task}, but the pool {self.name} has {len(usable)} that are neither in"
                " the test nor made from its texts."
            )
        order = np.random.default_rng(seed).permutation(len(usable))[:k]
        return tuple(usable[int(place)] for place in order)


def open_pool(name: str) -> ExamplePool:
    """The pool of a name: ``primer``, or the path of a question file.

    Raises:
        InputError: The file cannot be read.
    """
    question_set = named_questions(name)
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
        gap = after_prefix(rendered.assistant_prefix)
        examples.append(ChatExample(rendered.messages, rendered.assistant_prefix, gap + expected_answer(question)))
    return examples


def after_prefix(prefix: str) -> str:
    """What stands between the start of an answer and the answer: ``Answer:`` is followed by a space."""
    return " " if prefix and not prefix[-1].isspace() else ""


SettingKind = Literal["default", "few-shot", "rag", "long-context", "context", "fine-tuned", "continued-pretraining"]
TUNED: tuple[SettingKind, ...] = ("fine-tuned", "continued-pretraining")
AUTO = "auto"


class Retriever(Protocol):
    """What settings need of the corpus."""

    def search_many(
        self, queries: Sequence[str], *, k: int, min_cosine: float | None = None, mode: SearchMode = "hybrid"
    ) -> "list[list[Hit]]":
        """Hits of every query, best first."""

    def document_passages(self, document: str) -> "list[Passage]":
        """All passages of a document, named by id, title or file name, in its order."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """What goes into one question's prompt."""

    passages: tuple[str, ...] = ()
    passage_ids: tuple[str, ...] = ()
    """Ids of the passages, so that a prediction says what the model has read."""
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
    """Try a small grid by validation loss."""


@dataclass(frozen=True, slots=True)
class SettingSpec:
    """A setting as it is asked for."""

    kind: SettingKind
    label: str
    """Its name in tables."""
    collections: tuple[str, ...] = ()
    """Searched for passages or for the document."""
    passages: int = 3
    """Most passages a question (``rag``)."""
    min_cosine: float | None = None
    """Leave out passages less similar than this (``rag``); None keeps all."""
    mode: SearchMode = "hybrid"
    """How passages are searched."""
    pool: str = PRIMER_POOL
    """Question file of the examples (``few-shot``), or ``primer``."""
    examples: int = 5
    """Examples a task (``few-shot``)."""
    seed: int = 0
    """Of the draw of examples."""
    document: str = AUTO
    """Title or file name of the document (``long-context``), or ``auto``."""
    window: int | None = None
    """Most tokens of a prompt (``long-context``); by default the model's own window."""
    adapter: str = ""
    """Name in the workspace, or folder, of an adapter that the model gets, in any setting."""
    training: Training | None = None
    """How the adapter is trained, where it is not there yet."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A named way of preparing questions."""

    name: str
    prepare: Callable[[Sequence[Question], Generator], list[Prepared]]
    """What each question's prompt gets; the model is only asked how many tokens it reads."""
    spec: SettingSpec = field(default_factory=lambda: SettingSpec("default", "default"))


@dataclass(frozen=True, slots=True)
class Sources:
    """Where settings find collections and pools of examples."""

    retriever: Callable[[tuple[str, ...]], Retriever]
    """Opens collections by name."""
    pool: Callable[[str], ExamplePool]
    """Reads a pool of examples by name."""


def parse_spec(text: str, *, passages: int = 3, examples: int = 5, seed: int = 0) -> SettingSpec:
    """The setting of a name as in the module's table.

    Args:
        text: The name.
        passages: Passages a question, for ``rag``.
        examples: Examples a task, for ``few-shot``.
        seed: Of the draw of examples.

    Raises:
        InputError: No such setting.
    """
    name, separator, rest = text.partition(":")
    if name not in get_args(SettingKind):
        raise InputError(f"There is no setting {text!r}: there are {', '.join(get_args(SettingKind))}.")
    kind = cast(SettingKind, name)
    if kind in ("default", "context") and separator:
        raise InputError(f"The setting {kind} takes nothing after it, got {text!r}.")
    if kind == "few-shot":
        return SettingSpec("few-shot", text, pool=rest or PRIMER_POOL, examples=examples, seed=seed)
    if kind == "rag":
        return SettingSpec("rag", text, collections=_names(rest, "rag:ipcc"), passages=passages)
    if kind == "long-context":
        document, at, names = rest.rpartition("@")
        names = names if at else ""
        return SettingSpec(
            "long-context", text, collections=_names(names, "long-context:auto@books"), document=document or AUTO
        )
    if kind in TUNED:
        return SettingSpec(kind, text, adapter=rest)
    return SettingSpec("context" if kind == "context" else "default", text)


def _names(text: str, example: str) -> tuple[str, ...]:
    names = tuple(name for name in text.split("+") if name)
    if not names:
        raise InputError(f"This setting needs the name of a collection, for example {example}.")
    return names


def make_setting(spec: SettingSpec, sources: Sources) -> Setting:
    """A setting that is ready to prepare questions.

    Raises:
        InputError: A number makes no sense, or a collection or pool is not there.
    """
    if spec.passages < 1 or spec.examples < 1:
        raise InputError(f"The setting {spec.label} needs at least one passage or example.")
    if spec.kind == "context":
        return Setting(spec.label, lambda questions, _: _own_context(questions), spec)
    if spec.kind == "few-shot":
        pool = sources.pool(spec.pool)
        return Setting(spec.label, lambda questions, _: _with_examples(questions, pool, spec), spec)
    if spec.kind == "rag":
        retriever = sources.retriever(spec.collections)
        return Setting(spec.label, lambda questions, _: _retrieved(questions, retriever, spec), spec)
    if spec.kind == "long-context":
        from climassay.evaluation.settings import with_documents

        retriever = sources.retriever(spec.collections)
        return Setting(spec.label, lambda questions, model: with_documents(questions, model, retriever, spec), spec)
    return Setting(spec.label, lambda questions, _: [Prepared() for _ in questions], spec)


def parse_setting(text: str, sources: Sources, *, k: int = 3, examples: int = 5, seed: int = 0) -> Setting:
    """:func:`parse_spec` and :func:`make_setting` in one.

    Args:
        text: The name.
        sources: Collections are opened for ``rag:`` and ``long-context:`` only, pools for ``few-shot`` only.
        k: Passages a question.
        examples: Examples a task.
        seed: Of the draw of examples.
    """
    return make_setting(parse_spec(text, passages=k, examples=examples, seed=seed), sources)


def _own_context(questions: Sequence[Question]) -> list[Prepared]:
    missing = sum(question.context is None for question in questions)
    if missing:
        raise InputError(f"The setting context needs every question's source text; {missing} of them have none.")
    return [Prepared((question.context or "",)) for question in questions]


def _with_examples(questions: Sequence[Question], pool: ExamplePool, spec: SettingSpec) -> list[Prepared]:
    kinds = dict.fromkeys(question.kind for question in questions)
    drawn = {kind: pool.draw(kind, spec.examples, seed=spec.seed, test=questions) for kind in kinds}
    return [Prepared(examples=drawn[question.kind]) for question in questions]


def _retrieved(questions: Sequence[Question], retriever: Retriever, spec: SettingSpec) -> list[Prepared]:
    found = retriever.search_many(
        [question.question for question in questions], k=spec.passages, min_cosine=spec.min_cosine, mode=spec.mode
    )
    return [Prepared(tuple(hit.passage.text for hit in hits), tuple(hit.passage.id for hit in hits)) for hits in found]


ROOM = 512
"""Tokens left for the question, its options, the instructions and the answer."""


def with_documents(
    questions: Sequence[Question], model: Generator, retriever: Retriever, spec: SettingSpec
) -> list[Prepared]:
    """Put a document before each question.

    A document that does not fit is cut to consecutive passages around the one that is most relevant to the question,
    grown to both sides; the note says how much of it was left.

    Args:
        questions: To be prepared.
        model: Tells window and tokens where it can (``Windowed``); else both are estimated.
        retriever: Finds the most relevant passage.
        spec: Of kind ``long-context``.

    Raises:
        InputError: A collection has no passage for a question or no such document, or the window holds no passage.
    """
    model = model.wrapped if isinstance(model, RecordedModel) else model
    room = _room(model, spec)
    count = cache(lambda text: token_count(model, text))
    pages = cache(retriever.document_passages)
    hits = retriever.search_many([question.question for question in questions], k=1)
    prepared = []
    for question, found in zip(questions, hits, strict=True):
        if not found and spec.document == AUTO:
            raise InputError(f"The collections {', '.join(spec.collections)} have no passage for {question.id}.")
        best = found[0].passage if found else None
        passages = pages(best.document_id if spec.document == AUTO and best is not None else spec.document)
        at = _place(passages, question, retriever, best)
        prepared.append(_cut(passages, at, room, [count(passage.text) for passage in passages]))
    return prepared


def _room(model: Generator, spec: SettingSpec) -> int:
    own = window_of(model)
    window = own if spec.window is None else spec.window
    if spec.window is not None and isinstance(model, Windowed) and window > own:
        raise InputError(f"A window of {window} tokens is asked for, but {model.name} reads at most {own}.")
    if window <= ROOM:
        raise InputError(f"A window of {window} tokens leaves no room: {ROOM} are kept for the question.")
    return window - ROOM


def _place(passages: "Sequence[Passage]", question: Question, retriever: Retriever, best: "Passage | None") -> int:
    """Where in the document the passage is that fits the question best."""
    places = {passage.id: place for place, passage in enumerate(passages)}
    if best is not None and best.id in places:
        return places[best.id]
    for hit in retriever.search_many([question.question], k=len(passages) + 100)[0]:
        if hit.passage.id in places:
            return places[hit.passage.id]
    return 0


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
