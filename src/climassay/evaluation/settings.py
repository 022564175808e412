"""Settings: the context and the examples that a model gets in addition to a question, and the prompts.

A setting is named on the command line by a short text, in an experiment file by a table of the same fields:

=========================  ============================================================================================
``default``                the question alone
``few-shot:POOL``          worked examples drawn by seed from a question file (``few-shot``: from the primer's)
``rag:C``                  the best passages of collection C (``rag:C+D`` of several), retrieved with the question
``long-context:D@C``       document D of collection C, by title or file name, truncated to the model's window
``long-context:auto@C``    the document of the collection that holds the passage most relevant to the question
``context``                the text the question was made from, if the file has it: the upper bound of retrieval
``fine-tuned``             the question alone, to a model fine-tuned on questions (adapter or training: experiment file)
``continued-pretraining``  the question alone, to a model trained further on passages (the same)
=========================  ============================================================================================

Any setting can use a model with an adapter: see :mod:`climassay.evaluation.tuned`.
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
from climassay.questions import CHOICE_KIND, GAP, KINDS, PRIMER, TYPES, Kind, Question, option_letter, read_questions
from climassay.records import RecordedModel
from climassay.registry import Registry
from climassay.settings import settings
from climassay.tuning.data import ChatExample

if TYPE_CHECKING:
    from climassay.corpus.documents import Hit, Passage


Values = dict[str, object]
AUTO = "auto"
RESERVED_TOKENS = 512
"""Number of tokens of the context window that are reserved for question, options, instructions and answer."""
MakeSetting = TypeVar("MakeSetting", bound="Callable[[SettingSpec, SourceLoaders], PrepareContexts]")


@dataclass(frozen=True, slots=True)
class TaskPrompts:
    """Prompt templates of all types of questions.

    All templates have the values ``question``, ``passages`` and ``examples``. Templates that show options also have
    ``options``, each with ``letter`` and ``text``. Templates for statements with a gap also have ``gap``, a mark that
    replaces ``<MASK>``, because small models copy ``<MASK>`` from the prompt.
    """

    by_kind: Mapping[Kind, Prompt]
    mcq_text: Prompt
    """Template for multiple-choice questions whose options are scored by their texts and not shown."""
    which_option: Prompt
    """Template for asking a model which of the ``options`` it chose in its earlier ``answer`` to the ``question``."""

    @classmethod
    def load(cls, overrides: Path | None = None) -> "TaskPrompts":
        """Load the built-in templates; templates of the same name in the folder ``overrides`` replace them."""
        by_kind = {kind: load_prompt(kind, overrides) for kind in KINDS}
        return cls(by_kind, load_prompt("mcq_text", overrides), load_prompt("which_option", overrides))

    @property
    def mcq(self) -> Prompt:
        """Template for multiple-choice questions."""
        return self.by_kind[CHOICE_KIND]

    def for_task(self, task: Kind, *, by_text: bool = False) -> Prompt:
        """Return the template for a task, without letters and options if ``by_text`` is set."""
        return self.mcq_text if by_text and TYPES[task].has_lettered_options else self.by_kind[task]

    def render(
        self, question: Question, passages: Sequence[str] = (), examples: Sequence[Values] = ()
    ) -> RenderedPrompt:
        """Render the prompt of a question, with its options in the order of the file."""
        values: Values = {"question": question.question, "passages": passages, "examples": examples}
        if question.type.has_options:
            values["options"] = with_letters(question.options)
        if question.type.has_gap:
            values["gap"] = GAP
        return self.for_task(question.kind).render(**values, **question.type.prompt_values(question))


def with_letters(options: Sequence[str]) -> list[dict[str, str]]:
    """Return options as mappings of ``letter`` and ``text``, for templates."""
    return [{"letter": option_letter(index), "text": text} for index, text in enumerate(options)]


def example_values(question: Question, *, as_text: bool = False) -> Values:
    """Return a question with its answer as a few-shot example for templates.

    ``as_text`` gives the text of the correct option instead of its letter, and leaves out the options.
    """
    if question.type.has_options and as_text:
        return {"question": question.question, "answer": question.answer}
    answer = question.type.expected_answer(question)
    return {"question": question.question, "options": with_letters(question.options), "answer": answer}


@dataclass(frozen=True, slots=True)
class ExamplePool:
    """Questions from which few-shot examples are drawn."""

    name: str
    questions: tuple[Question, ...]

    def draw(self, task: Kind, k: int, *, seed: int, test: Sequence[Question]) -> tuple[Question, ...]:
        """Draw examples of one kind, which serve all test questions.

        Questions with the same words as a test question are never drawn. Nor are questions with the same source text as
        a test question, because their answers may reveal its answer.

        Args:
            task: Kind of the examples.
            k: Number of examples.
            seed: Random seed of the selection and order.
            test: Test questions.

        Raises:
            InputError: The pool has too few suitable questions.
        """
        test_questions = {bare_words(question.question) for question in test}
        test_contexts = {bare_words(question.context) for question in test if question.context}
        suitable_questions = [
            question
            for question in self.questions
            if question.kind == task
            and bare_words(question.question) not in test_questions
            and not (question.context and bare_words(question.context) in test_contexts)
        ]
        if len(suitable_questions) < k:
            raise InputError(
                f"{k} examples are needed for {task}, but the pool {self.name} has {len(suitable_questions)} that are "
                "neither in the test nor made from its texts."
            )
        order = np.random.default_rng(seed).permutation(len(suitable_questions))[:k]
        return tuple(suitable_questions[int(index)] for index in order)


def open_pool(name: str) -> ExamplePool:
    """Open a pool of examples: ``primer``, or a question file.

    Raises:
        InputError: The file cannot be read.
    """
    question_set = read_questions(name)
    return ExamplePool(question_set.name, question_set.questions)


def chat_examples(
    questions: Sequence[Question], prompts: TaskPrompts | None = None, *, contexts: Mapping[str, str] | None = None
) -> list[ChatExample]:
    """Convert questions of any kinds to training examples with the prompts of the evaluation.

    Args:
        questions: Questions of any kinds.
        prompts: Templates; the built-in templates by default.
        contexts: Passage in the prompt by question id; by default prompts have no passage, as in the paper.
    """
    templates = prompts or TaskPrompts.load()
    passage_by_question = contexts or {}
    examples = []
    for question in questions:
        passages = (passage_by_question[question.id],) if question.id in passage_by_question else ()
        rendered_prompt = templates.render(question, passages)
        answer = after_prefix(rendered_prompt.assistant_prefix) + question.type.expected_answer(question)
        examples.append(ChatExample(rendered_prompt.messages, rendered_prompt.assistant_prefix, answer))
    return examples


def after_prefix(prefix: str) -> str:
    """Return the separator between an answer's prefix and the answer, such as a space after ``Answer:``."""
    return " " if prefix and not prefix[-1].isspace() else ""


class Retriever(Protocol):
    """Interface for retrieval that settings with passages need."""

    def search_many(
        self, queries: Sequence[str], *, k: int, min_cosine: Threshold = None, mode: SearchMode = "hybrid"
    ) -> "list[list[Hit]]":
        """Return the hits of each query, the most relevant first."""

    def document_passages(self, document: str) -> "list[Passage]":
        """Return all passages of a document in order; the document is named by id, title or file name."""


@dataclass(frozen=True, slots=True)
class PromptContext:
    """Passages and examples for the prompt of a question."""

    passages: tuple[str, ...] = ()
    passage_ids: tuple[str, ...] = ()
    examples: tuple[Question, ...] = ()
    """Few-shot examples of the question's kind."""
    note: str = ""
    """Note on which part of a document fits the context window; empty if nothing was truncated."""


@settings
class AdapterTraining:
    """Specification of the training of a setting's adapter; see :mod:`climassay.tuning`."""

    questions: str = ""
    """Question file with the training questions (``fine-tuned``)."""
    collections: tuple[str, ...] = ()
    """Collections with the training documents (``continued-pretraining``)."""
    validation: tuple[str, ...] = ()
    """Question files or collections for early stopping; if empty, part of the training data is held out."""
    source: tuple[str, ...] = ()
    """Collections of the source books of the test questions; must not overlap the training documents."""
    validate_on: Literal["held-out", "source"] = "held-out"
    """Data for early stopping: held-out, or source (the source books of the test questions, as in the paper; this leaks
    data and causes a warning)."""
    preset: str = ""
    """Name of a preset of hyper-parameters. Default: the preset for the model and task, if any."""
    settings: dict[str, object] = field(default_factory=dict)
    """Hyper-parameters that override those of the preset."""
    search: bool = False
    """Whether to search for the best hyper-parameters."""


@settings
class SettingSpec:
    """Specification of a setting, parsed from a short name or an experiment file."""

    kind: str
    """Name of the kind of setting in :data:`SETTINGS`."""
    label: str
    collections: tuple[str, ...] = ()
    """Collections from which passages (``rag``) or the document (``long-context``) are retrieved."""
    passages: int = 3
    """Maximum number of passages per question (``rag``)."""
    min_cosine: Threshold = None
    """Minimum cosine similarity of passages to the question (``rag``), or ``"measured"`` for the encoder's threshold in
    :mod:`climassay.corpus.relevance`; None for no minimum."""
    mode: SearchMode = "hybrid"
    pool: str = PRIMER
    """Question file of the examples (``few-shot``), or ``primer``."""
    examples: int = 5
    """Number of examples per prompt (``few-shot``)."""
    seed: int = 0
    """Random seed with which examples are drawn."""
    document: str = AUTO
    """Title or file name of the document (``long-context``), or ``auto`` for the most relevant document."""
    window: int | None = None
    """Maximum number of tokens of a prompt (``long-context``); by default the model's context window."""
    adapter: str = ""
    """Adapter for the model, as a name in the workspace or a folder; possible in any setting."""
    training: AdapterTraining | None = None
    """Specification of the training that creates the adapter if it does not exist yet."""


@dataclass(frozen=True, slots=True)
class SourceLoaders:
    """Functions that open the sources of settings: collections and pools of examples."""

    open_retriever: Callable[[tuple[str, ...]], Retriever]
    """Function that opens the collections with the given names as one retriever."""
    open_pool: Callable[[str], ExamplePool]


PrepareContexts = Callable[[Sequence[Question], Generator], list[PromptContext]]
"""Function that prepares passages and examples for questions. It may use the model's context window and tokenizer."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Setting that is ready to prepare the prompts of questions."""

    name: str
    prepare: PrepareContexts
    spec: SettingSpec = field(default_factory=lambda: SettingSpec("default", "default"))


@dataclass(frozen=True, slots=True)
class SettingType:
    """Kind of settings, with the functions that parse and prepare such settings."""

    prepare: Callable[[SettingSpec, SourceLoaders], PrepareContexts]
    parse_argument: Callable[[str], Mapping[str, Any]] | None = None
    """Function that parses the part of the short name after the colon into fields of :class:`SettingSpec`; None if the
    name takes no argument."""
    parameters: tuple[str, ...] = ()
    """Names of the parameters of :func:`parse_spec` that the kind uses: ``passages``, ``examples`` or ``seed``."""
    needs_adapter: bool = False
    """Whether settings of this kind need an adapter, named or trained."""


SETTINGS: Registry[SettingType] = Registry("setting", "climassay.settings", [__name__])
"""Kinds of settings by name; the name is the part before the colon in a setting such as ``few-shot:5``."""


def setting(name: str, **fields: Any) -> Callable[[MakeSetting], MakeSetting]:
    """Return a decorator that registers a function as a kind of setting; ``fields`` are passed to :class:`SettingType`.

    Example:
        >>> @setting("hint")
        ... def hint(spec, loaders):
        ...     return lambda questions, model: [PromptContext(("Think first.",)) for _ in questions]
    """

    def add(function: MakeSetting) -> MakeSetting:
        SETTINGS.add(name, SettingType(function, **fields), function.__module__)
        return function

    return add


def parse_spec(text: str, *, passages: int = 3, examples: int = 5, seed: int = 0) -> SettingSpec:
    """Parse the short name of a setting, as listed in the module's docstring.

    Args:
        text: Short name.
        passages: Number of passages per question, for ``rag``.
        examples: Number of examples per prompt, for ``few-shot``.
        seed: Random seed with which examples are drawn.

    Raises:
        InputError: The setting does not exist, or has an argument although it takes none.
    """
    name, separator, argument = text.partition(":")
    if name not in SETTINGS:
        raise InputError(f"There is no setting {text!r}: there are {', '.join(SETTINGS)}.")
    kind = SETTINGS[name]
    if kind.parse_argument is None and separator:
        raise InputError(f"The setting {name} takes no argument, got {text!r}.")
    parameters = {"passages": passages, "examples": examples, "seed": seed}
    fields: dict[str, Any] = {} if kind.parse_argument is None else dict(kind.parse_argument(argument))
    return SettingSpec(name, text, **fields | {name: parameters[name] for name in kind.parameters})


def make_setting(spec: SettingSpec, loaders: SourceLoaders) -> Setting:
    """Return the setting of a specification, ready to prepare questions.

    Raises:
        InputError: The number of passages or examples is below 1, or a collection or pool does not exist.
    """
    if spec.passages < 1 or spec.examples < 1:
        raise InputError(f"The setting {spec.label} needs at least one passage or example.")
    return Setting(spec.label, SETTINGS.find(spec.kind).prepare(spec, loaders), spec)


def _parse_collections(text: str, example: str) -> tuple[str, ...]:
    names = tuple(name for name in text.split("+") if name)
    if not names:
        raise InputError(f"This setting needs the name of a collection, for example {example}.")
    return names


@setting("default")
def _default(_spec: SettingSpec, _loaders: SourceLoaders) -> PrepareContexts:
    return lambda questions, _model: [PromptContext() for _ in questions]


@setting("few-shot", parse_argument=lambda argument: {"pool": argument or PRIMER}, parameters=("examples", "seed"))
def _few_shot(spec: SettingSpec, loaders: SourceLoaders) -> PrepareContexts:
    pool = loaders.open_pool(spec.pool)

    def prepare(questions: Sequence[Question], _model: Generator) -> list[PromptContext]:
        kinds = dict.fromkeys(question.kind for question in questions)
        examples_by_kind = {kind: pool.draw(kind, spec.examples, seed=spec.seed, test=questions) for kind in kinds}
        return [PromptContext(examples=examples_by_kind[question.kind]) for question in questions]

    return prepare


@setting(
    "rag",
    parse_argument=lambda argument: {"collections": _parse_collections(argument, "rag:ipcc")},
    parameters=("passages",),
)
def _rag(spec: SettingSpec, loaders: SourceLoaders) -> PrepareContexts:
    retriever = loaders.open_retriever(spec.collections)

    def prepare(questions: Sequence[Question], _model: Generator) -> list[PromptContext]:
        texts = [question.question for question in questions]
        hit_lists = retriever.search_many(texts, k=spec.passages, min_cosine=spec.min_cosine, mode=spec.mode)
        return [
            PromptContext(tuple(hit.passage.text for hit in hits), tuple(hit.passage.id for hit in hits))
            for hits in hit_lists
        ]

    return prepare


def _parse_document(argument: str) -> dict[str, Any]:
    document, separator, names = argument.rpartition("@")
    example = "long-context:auto@books"
    return {"collections": _parse_collections(names if separator else "", example), "document": document or AUTO}


@setting("long-context", parse_argument=_parse_document)
def _long_context(spec: SettingSpec, loaders: SourceLoaders) -> PrepareContexts:
    """PrepareContexts prompts with a document before each question; :func:`_fit_window` truncates it if necessary."""
    retriever = loaders.open_retriever(spec.collections)

    def prepare(questions: Sequence[Question], model: Generator) -> list[PromptContext]:
        model = model.wrapped if isinstance(model, RecordedModel) else model
        model_window = window_of(model)
        window = model_window if spec.window is None else spec.window
        if spec.window is not None and isinstance(model, Windowed) and window > model_window:
            raise InputError(f"The setting has a window of {window} tokens, but {model.name} reads {model_window}.")
        if window <= RESERVED_TOKENS:
            raise InputError(
                f"A window of {window} tokens is too small: {RESERVED_TOKENS} are reserved for the question."
            )
        count_tokens = cache(lambda text: token_count(model, text))
        document_passages = cache(retriever.document_passages)
        hit_lists = retriever.search_many([question.question for question in questions], k=1)
        contexts = []
        for question, hits in zip(questions, hit_lists, strict=True):
            if not hits and spec.document == AUTO:
                raise InputError(f"The collections {', '.join(spec.collections)} have no passage for {question.id}.")
            best_passage = hits[0].passage if hits else None
            document = best_passage.document_id if spec.document == AUTO and best_passage is not None else spec.document
            passages = document_passages(document)
            index_by_id = {passage.id: index for index, passage in enumerate(passages)}
            center = None if best_passage is None else index_by_id.get(best_passage.id)
            if center is None:
                hits = retriever.search_many([question.question], k=len(passages) + 100)[0]
                center = next((index_by_id[hit.passage.id] for hit in hits if hit.passage.id in index_by_id), 0)
            sizes = [count_tokens(passage.text) for passage in passages]
            contexts.append(_fit_window(passages, sizes, center, window - RESERVED_TOKENS))
        return contexts

    return prepare


def _fit_window(passages: "Sequence[Passage]", sizes: Sequence[int], center: int, max_tokens: int) -> PromptContext:
    """Return the consecutive passages around the central one that fit the window, and a note on omitted ones."""
    first_index, last_index, total = center, center, sizes[center]
    if total > max_tokens:
        raise InputError(
            f"The window holds {max_tokens} tokens of a document, but its passage {passages[center].id} has {total}."
        )
    while True:
        fits_before = first_index > 0 and total + sizes[first_index - 1] <= max_tokens
        fits_after = last_index + 1 < len(passages) and total + sizes[last_index + 1] <= max_tokens
        if not fits_before and not fits_after:
            break
        # The side with fewer passages grows first, so that the central passage stays in the middle.
        if fits_before and (not fits_after or center - first_index <= last_index - center):
            first_index -= 1
            total += sizes[first_index]
        else:
            last_index += 1
            total += sizes[last_index]
    selected_passages = passages[first_index : last_index + 1]
    note = ""
    if len(selected_passages) < len(passages):
        document = selected_passages[0].document
        note = f"{document}: passages {first_index + 1} to {last_index + 1} of {len(passages)} fit the window"
    text = join_passages([passage.text for passage in selected_passages])
    return PromptContext((text,), tuple(passage.id for passage in selected_passages), note=note)


@setting("context")
def _context(_spec: SettingSpec, _loaders: SourceLoaders) -> PrepareContexts:
    def prepare(questions: Sequence[Question], _model: Generator) -> list[PromptContext]:
        n_missing = sum(question.context is None for question in questions)
        if n_missing:
            raise InputError(f"The setting context needs every question's source text; {n_missing} of them lack it.")
        return [PromptContext((question.context or "",)) for question in questions]

    return prepare


for _name in ("fine-tuned", "continued-pretraining"):
    setting(_name, parse_argument=lambda argument: {"adapter": argument}, needs_adapter=True)(_default)
