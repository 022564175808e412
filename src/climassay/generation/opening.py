"""Opening the pipeline of a recipe: collections, recorded models, checks, validators and a masker."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from climassay.corpus import Passage
from climassay.errors import InputError
from climassay.generation.draft import Draft, apply_where
from climassay.generation.masking import STATISTICS, mask, open_masker
from climassay.generation.passages import ContextFinder, SeedSampler
from climassay.generation.pipeline import DecisionStep, Pipeline
from climassay.generation.recipe import Recipe
from climassay.generation.screening import (
    REPLACED_CHECKS,
    TERM_CHECKS,
    DuplicateFinder,
    Verification,
    check_names,
    find_passage_fault,
    screen,
)
from climassay.generation.terms import read_glossary
from climassay.generation.writing import AnswerProgress, Evolver, Examples, Writer
from climassay.grounding import open_collections
from climassay.metrics import load_entailment
from climassay.models import ModelOptions, load_model
from climassay.models.contract import Generator, Usage
from climassay.questions import KINDS, PRIMER, Kind, Level, Question, read_questions
from climassay.records import RecordedModel, Records, Run
from climassay.settings import resolve_file
from climassay.workspace import Workspace

RecordModel = Callable[[Generator], RecordedModel]
"""Function that returns a model whose requests are recorded."""
LoadModel = Callable[..., Generator]
"""Function with the arguments and result of :func:`climassay.models.load_model`."""


@dataclass(frozen=True, slots=True)
class WriterSetup:
    """Everything needed to write drafts: sampler and finder of passages, writer and evolver of questions."""

    sampler: SeedSampler
    finder: ContextFinder
    writer: Writer
    evolver: Evolver


def open_writer(
    recipe: Recipe,
    workspace: Workspace,
    model: Generator,
    *,
    prompts: Path | None = None,
    on_answer: AnswerProgress | None = None,
) -> WriterSetup:
    """Open the collections, prompts and examples of a recipe.

    Raises:
        InputError: A collection, a prompt or the file of examples does not exist or is unsuitable.
    """
    group = open_collections(workspace, recipe.collections)
    spec, contexts = recipe.writer, recipe.contexts
    options: dict[str, Any] = {
        "subject": recipe.subject,
        "prompts": prompts,
        "examples": _writer_examples(recipe),
        "temperature": spec.temperature,
        "max_tokens": spec.max_tokens,
        "on_answer": on_answer,
    }

    def find_fault(passage: Passage) -> str | None:
        return find_passage_fault(passage.text, recipe.screening.language, passage.headings)

    finder = ContextFinder(
        group,
        max_passages=contexts.max_passages,
        threshold=contexts.threshold,
        mode=contexts.mode,
        other_documents=contexts.other_documents,
        find_fault=find_fault,
    )
    return WriterSetup(
        SeedSampler(group, seed=recipe.seed, find_fault=find_fault),
        finder,
        Writer(model, **options, names_masked_term=not recipe.masker.use),
        Evolver(model, **options),
    )


def _writer_examples(recipe: Recipe) -> Examples:
    """Return the first examples of each kind and level, by kind; examples without a context are skipped.

    Writers use the examples of level ``base``, and evolvers those of the level that they produce.
    """
    name, n_examples = recipe.writer.examples, recipe.writer.n_examples
    if not name or not n_examples:
        return {}
    source = read_questions(name if name == PRIMER else resolve_file(recipe.folder, name))
    usable_questions = [question for question in source.questions if question.context]
    if not usable_questions:
        raise InputError(f"No question of {name} has the passage it was made from, so none can be shown as an example.")
    results: dict[Kind, list[Question]] = {kind: [] for kind in KINDS}
    counts: Counter[tuple[Kind, Level]] = Counter()
    for question in usable_questions:
        stream = (question.kind, question.level or "base")
        counts[stream] += 1
        if counts[stream] <= n_examples:
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
    on_answer: AnswerProgress | None = None,
) -> Iterator[Pipeline]:
    """Yield the pipeline of a recipe, all of whose model calls are recorded, and close its resources afterwards.

    Args:
        recipe: Recipe of the dataset.
        workspace: Workspace with the collections.
        records: Records, already open.
        run: Run to which the requests belong.
        prompts: Folder of the user's own prompts.
        deadline: Seconds after which a request to a server fails, including retries.
        use_cache: Reuse recorded answers.
        load: Function that loads the models that write questions or answer them again.
        on_answer: Function that is called after each written draft of a batch.

    Raises:
        InputError: A collection, file, check or model of the recipe does not exist or is unsuitable.
        ModelError: A model cannot be loaded.
    """
    recorded_models: list[RecordedModel] = []
    with ExitStack() as stack:

        def record(model: Generator) -> RecordedModel:
            stack.callback(model.close)
            recorded_models.append(RecordedModel(model, records, run, use_cache=use_cache))
            return recorded_models[-1]

        # Names that may be misspelt are checked before models are loaded.
        encoder = open_collections(workspace, recipe.collections).encoder
        options = ModelOptions(deadline=deadline)
        load_judge: LoadModel = partial(load_model, options=options, folder=workspace.root)
        spec = recipe.screening
        unknown_checks = sorted(set(spec.without) - set(check_names()))
        if unknown_checks:
            raise InputError(f"There is no check {unknown_checks[0]!r}: climassay generate checks lists them.")
        entailment = None
        if spec.entailment:
            entailment = load_entailment(spec.entailment, load=lambda name: record(load_judge(name)))
        model = record(load(recipe.writer.model, recipe.writer.options(deadline=deadline), folder=workspace.root))
        verification = None
        if spec.consistency:
            verifier = model
            if spec.consistency != "writer":
                verifier = record(load(spec.consistency, options, folder=workspace.root))
            verification = Verification(verifier, subject=recipe.subject, prompts=prompts, seed=recipe.seed)
        screen_drafts = partial(
            screen,
            language=spec.language,
            encoder=encoder,
            entailment=entailment,
            without=(*spec.without, *(REPLACED_CHECKS if verification else ())),
        )
        setup = open_writer(recipe, workspace, model, prompts=prompts, on_answer=on_answer)
        duplicates = DuplicateFinder(encoder, jaccard=spec.jaccard, cosine=spec.cosine)
        steps = [
            *((verification.check,) if verification else ()),
            *_validation_steps(recipe, record, prompts, load_judge),
            *_masking_steps(recipe, record, prompts, load_judge),
            # Statements get their term only now; drafts that were verified before are not verified again.
            *((verification.check,) if verification and recipe.counts.cloze else ()),
        ]
        yield Pipeline(
            books=lambda: setup.sampler.books,
            seed=setup.sampler.passage,
            contexts=setup.finder.find,
            write=setup.writer.write,
            evolve=setup.evolver.evolve,
            screen=screen_drafts,
            later_steps=tuple(steps),
            find_duplicate=duplicates.add,
            add_accepted=duplicates.add_unchecked,
            usage=lambda: sum((recorded_model.tally.usage for recorded_model in recorded_models), Usage()),
        )


def _validation_steps(
    recipe: Recipe, record: RecordModel, prompts: Path | None, load: LoadModel
) -> Iterator[DecisionStep]:
    """Yield the validation step for kinds with a validator; yield nothing if no kind has a validator."""
    from climassay.generation.validation import ValidatorsByKind, load_validator, validate

    validators = {}
    for kind in KINDS:
        if name := getattr(recipe.validator, kind, ""):
            # A trained validator needs the model itself, so only prompted ones are recorded.
            load_validator_model = (lambda model: record(load(model))) if name.startswith("prompted:") else load
            validators[kind] = load_validator(
                resolve_file(recipe.folder, name), load=load_validator_model, prompts=prompts, subject=recipe.subject
            )
    if validators:
        yield partial(validate, validator=ValidatorsByKind(validators), threshold=recipe.validator.threshold)


def _masking_steps(
    recipe: Recipe, record: RecordModel, prompts: Path | None, load: LoadModel
) -> Iterator[DecisionStep]:
    """Yield the step that chooses and checks the terms of cloze statements; nothing if the recipe requests none."""
    if not recipe.counts.cloze:
        return
    spec = recipe.masker
    masker = open_masker(
        spec.use or STATISTICS,
        glossary=read_glossary(Path(resolve_file(recipe.folder, spec.glossary))) if spec.glossary else (),
        subject=recipe.subject,
        prompts=prompts,
        load=lambda model: record(load(model)),
    )
    checks = [name for name in TERM_CHECKS if name not in recipe.screening.without]
    check = partial(screen, only=checks, language=recipe.screening.language)

    def mask_and_check(drafts: Sequence[Draft]) -> list[Draft]:
        masked_drafts = apply_where(lambda draft: draft.type.has_gap and draft.usable, check, mask(drafts, masker))
        # A statement without a term is no question: it fails, and the next run writes it again.
        error = "No term was chosen: the masker's model failed."
        return [
            replace(draft, error=error) if draft.type.has_gap and draft.usable and not draft.wording.answer else draft
            for draft in masked_drafts
        ]

    yield mask_and_check
