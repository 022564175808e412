"""Generation of question benchmarks: writing, screening, export and publication."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from climassay import generation
from climassay.models import DEFAULT_MODEL
from climassay.prompts import load_prompt
from climassay.questions import KINDS, PRIMER, Kind
from climassay.reporting import Table, counted
from climassay.reporting.results import AssembledResult, listing
from climassay.session import Place, Session, one_or_several
from climassay.settings import with_changes

if TYPE_CHECKING:
    from climassay.generation import Draft, Recipe
    from climassay.generation.dataset_results import Dataset, GeneratedDataset, ScreenedDrafts
    from climassay.generation.pipeline import PipelineCounts, PipelineProgress
    from climassay.generation.writing import AnswerProgress
    from climassay.integrations.dataset_publication import Publication
    from climassay.models.contract import Usage


def generate(
    name: str,
    collections: str | Sequence[str] = (),
    *,
    mcq: int = 0,
    freeform: int = 0,
    cloze: int = 0,
    recipe: "Recipe | Path | str | None" = None,
    model: str = DEFAULT_MODEL,
    workspace: Place = None,
    on_progress: "PipelineProgress | None" = None,
) -> "GeneratedDataset":
    """Generate questions from passages of collections, and screen them.

    If the dataset exists already, it is continued until it has the requested number of accepted questions.

    Args:
        name: Name of the dataset in the workspace.
        collections: Names of the collections from whose passages questions are written.
        mcq: Number of accepted multiple-choice questions to generate.
        freeform: Number of accepted freeform questions to generate.
        cloze: Number of accepted cloze statements to generate.
        recipe: Recipe of the dataset, or its file; it replaces all other arguments except the name.
        model: Name of the model that writes the questions.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.
        on_progress: Function that is called after every batch; by default progress bars are shown.

    Returns:
        Dataset of the accepted drafts, which are fewer than requested if too many are rejected; ``draft.as_question()``
        converts a draft to a question.

    Raises:
        InputError: No question is requested, a collection does not exist, or the dataset was created with another
            recipe.
        ModelError: The model cannot be loaded.

    Example:
        >>> drafts = generate("short", "heat", cloze=1, workspace=folder)
        >>> "<MASK>" in drafts[0].as_question().question
        True
    """
    from climassay.generation.dataset_results import GeneratedDataset

    if isinstance(recipe, (str, Path)):
        recipe = generation.load_recipe(Path(recipe))
    if recipe is None:
        counts = generation.CountSpec(mcq=mcq, freeform=freeform, cloze=cloze)
        recipe = generation.Recipe(name, one_or_several(collections), generation.WriterSpec(model), counts)
    limited_recipe = replace(recipe, name=name)
    generation.check_recipe(limited_recipe, name)
    with Session.opened(workspace) as session, ExitStack() as stack:
        options = session.options
        limited_recipe = _apply_limits(limited_recipe, session)
        store = generation.DatasetStore(session.records)
        config = {"recipe": asdict(limited_recipe), "prompts": options.prompts}
        run = stack.enter_context(session.run("generate run", config, {"recipe": limited_recipe.seed}))
        with (
            ExitStack() as progress_stack,
            generation.open_pipeline(
                limited_recipe,
                session.workspace,
                session.records,
                run,
                prompts=options.prompts,
                deadline=options.deadline,
                use_cache=not options.no_cache,
                on_answer=None if on_progress else _start_batch_bar(session, progress_stack),
                **({} if session.pool is None else {"load": session.pool.load_model}),
            ) as resources,
        ):
            pipeline = generation.run_pipeline(
                limited_recipe,
                resources,
                store,
                on_progress=on_progress or _start_progress_bars(session, limited_recipe, progress_stack),
            )
        dataset = GeneratedDataset.of(store, name, pipeline=pipeline, run=run.id)
        run.save_results("streams", dataset.streams())
        return dataset


def estimate_generation(recipe: "Recipe | Path | str", *, workspace: Place = None) -> AssembledResult:
    """Estimate the requests, tokens and cost that a recipe still needs, without calling a model.

    Args:
        recipe: Recipe of the dataset, or its file.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The file cannot be read, or a collection does not exist.
    """
    from climassay.generation.estimating import estimate_run, estimate_table
    from climassay.generation.recipe import load_recipe

    loaded_recipe = load_recipe(Path(recipe)) if isinstance(recipe, (str, Path)) else recipe
    with Session.opened(workspace) as session:
        cost_estimate = estimate_run(
            _apply_limits(loaded_recipe, session), session.workspace, prompts=session.options.prompts
        )
    return AssembledResult(cost_estimate, (estimate_table(cost_estimate),))


def _apply_limits(recipe: "Recipe", session: Session) -> "Recipe":
    """Return the recipe, with its writer's timeout, token limit and reasoning effort set as in the session."""
    writer = recipe.writer.limited_by(session.options)
    return replace(recipe, writer=with_changes(writer, max_tokens=session.options.max_output_tokens))


def _start_batch_bar(session: Session, stack: ExitStack) -> "AnswerProgress":
    """Start a progress bar for the drafts of a batch, and return a callback that updates it."""
    task = stack.enter_context(session.progress.task("Writing drafts"))

    def update_bar(n_answered: int, n_requests: int) -> None:
        description = f"Writing drafts: {n_answered} of {n_requests} of this batch"
        task.update(completed=n_answered, total=n_requests, description=description)

    return update_bar


def _start_progress_bars(session: Session, recipe: "Recipe", stack: ExitStack) -> "PipelineProgress":
    """Start a progress bar for each kind and level of questions; return a callback for the bars and the cost."""
    n_requested_by_stream = recipe.requested()
    tasks = {
        stream: stack.enter_context(session.progress.task(stream.name, total=n_requested))
        for stream, n_requested in n_requested_by_stream.items()
    }

    def update_bars(counts: "PipelineCounts", usage: "Usage") -> None:
        n_missing = n_accepted = 0
        for stream, task in tasks.items():
            stream_counts, total = counts[stream], n_requested_by_stream[stream]
            n_accepted += stream_counts.accepted
            n_missing += max(0, total - stream_counts.accepted)
            frequent_reasons = stream_counts.rejected.most_common(2)
            reasons = ", ".join(f"{reason} {n_requested}" for reason, n_requested in frequent_reasons if n_requested)
            description = f"{stream.name}: {stream_counts.drafts} drafts"
            description += f", {stream_counts.failed} failed" if stream_counts.failed else ""
            description += f"; rejected: {reasons}" if reasons else ""
            task.update(completed=min(total, stream_counts.accepted), description=description)
        if usage.cost is not None and n_accepted:
            remaining_cost = f"about ${usage.cost / n_accepted * n_missing:.4f} to come"
            session.progress.say(f"${usage.cost:.4f} so far in this run, {remaining_cost}")

    return update_bars


def screen(
    drafts: "str | Path | Sequence[Draft]",
    *,
    without: Sequence[str] = (),
    only: Sequence[str] = (),
    language: str = "en",
    encoder: str | None = None,
    entailment: str | None = None,
    consistency: str | None = None,
    workspace: Place = None,
) -> "ScreenedDrafts":
    """Mark the questions in which a check finds a fault, and count the faults by check; no question is removed.

    Args:
        drafts: Drafts written by ``climassay generate``, a question file with passages, or ``primer``.
        without: Name of a check to leave out; can be repeated. ``climassay generate checks`` lists the checks.
        only: Name of a check to run instead of all checks; can be repeated.
        language: Expected language of the questions: en, de, fr, es, pt, it or nl.
        encoder: Encoder for the check “off topic”, for example local:minilm.
        entailment: Scorer for the check “not entailed”: prompted:MODEL, supports:MODEL or nli:MODEL.
        consistency: Model that answers each question again from its passages and verifies it.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The drafts cannot be read, or a check does not exist.
        ModelError: A model cannot be loaded.
    """
    from climassay.generation.dataset_results import ScreenedDrafts
    from climassay.generation.screening import Verification
    from climassay.generation.screening import screen as run_checks
    from climassay.metrics import load_entailment
    from climassay.models.encoders import load_encoder

    name = "drafts"
    skip_reasons: tuple[str, ...] = ()
    screened_drafts: Sequence[Draft]
    if isinstance(drafts, (str, Path)):
        name = str(drafts)
        screened_drafts, skip_reasons = generation.read_drafts_or_questions(drafts)
    else:
        screened_drafts = drafts
    with Session.opened(workspace) as session:
        options = session.options

        screened_drafts = run_checks(
            screened_drafts,
            without=without,
            only=only or None,
            language=language,
            encoder=None if encoder is None else load_encoder(encoder),
            entailment=None if entailment is None else load_entailment(entailment, load=session.load),
        )
        if consistency is not None:
            prompt = load_prompt("verify", options.prompts)
            model = session.model(consistency)
            config = {
                "model": model.name,
                "fingerprint": model.fingerprint,
                "prompts": {prompt.name: {"sha256": prompt.sha256, "origin": prompt.origin}},
            }
            with (
                session.run("generate screen", config) as run,
                session.progress.task("Answering the questions") as task,
            ):
                verification = Verification(session.recorded(model, run), prompts=options.prompts)
                screened_drafts = verification.check(screened_drafts, on_progress=lambda count: task.advance(count))
    return ScreenedDrafts(name, tuple(screened_drafts), tuple(skip_reasons))


def list_screening_checks() -> AssembledResult:
    """List the screening checks with the kinds of questions that they check and the faults that they find."""
    from climassay.generation.screening import CHECKS, MODEL_CHECKS

    checks = [
        (screening_check.name, list(screening_check.kinds), screening_check.description)
        for screening_check in CHECKS.values()
    ]
    checks += [(name, list(KINDS), description) for name, description in MODEL_CHECKS.items()]
    records = [{"name": name, "kinds": kinds, "words": description} for name, kinds, description in checks]
    return listing("Checks", records, {"name": "check", "kinds": "kinds", "words": "what is faulty"}, left_columns=3)


def list_datasets(*, workspace: Place = None) -> AssembledResult:
    """List the generated datasets of the workspace."""
    from climassay.records.queries import format_time

    with Session.opened(workspace) as session:
        datasets = generation.DatasetStore(session.records).list()
    records = [{**asdict(dataset), "made_at": format_time(dataset.made_at)} for dataset in datasets]
    states = ("accepted", "rejected", "failed")
    rows = [
        (dataset.name, format_time(dataset.made_at)[:19], *(str(dataset.states.get(state, 0)) for state in states))
        for dataset in datasets
    ]
    tables = (Table.of("Datasets", ("name", "begun (UTC)", *states), rows, left_columns=2),) if rows else ()
    return AssembledResult(
        records, tables, noted=() if rows else ("No datasets yet: write one with climassay generate run.",)
    )


def dataset_statistics(dataset: str, *, workspace: Place = None) -> "Dataset":
    """Show a dataset's acceptance rates, reasons for rejection, and distribution over sources and levels.

    Args:
        dataset: Name of the dataset; ``climassay generate list`` lists them.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The dataset does not exist.
    """
    from climassay.generation.dataset_results import Dataset

    with Session.opened(workspace) as session:
        return Dataset.of(generation.DatasetStore(session.records), dataset)


def export_dataset(
    dataset: str, output: Path | str, *, accepted: bool = False, workspace: Place = None
) -> AssembledResult:
    """Write the drafts of a dataset, with all decisions on them, to a file.

    Args:
        dataset: Name of the dataset; ``climassay generate list`` lists them.
        output: File to write, in JSON Lines with one draft per line.
        accepted: Whether rejected and failed drafts are left out.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The dataset does not exist, or the file cannot be written.
    """
    output = Path(output)
    with Session.opened(workspace) as session:
        drafts = generation.DatasetStore(session.records).drafts(dataset)
        exported_drafts = [draft for draft in drafts if draft.usable or not accepted]
    generation.write_drafts(output, exported_drafts)
    return AssembledResult(
        {"file": output, "drafts": len(exported_drafts)},
        printed_lines=(f"Wrote {counted(len(exported_drafts), 'draft')} to {output}",),
    )


def publish(
    dataset: str,
    output: Path | str,
    *,
    inspect: bool | None = None,
    lm_eval: bool | None = None,
    data_only: bool = False,
    name: str | None = None,
    kinds: Sequence[Kind] = KINDS,
    splits: str = "0.8,0.1,0.1",
    licence: str | None = None,
    canary: bool = True,
    tasks_on: Literal["all", "test"] | None = None,
    examples: int = 0,
    pool: str = PRIMER,
    seed: int = 0,
    push: str | None = None,
    private: bool = False,
    force: bool = False,
    workspace: Place = None,
) -> "Publication":
    """Publish a dataset as a folder with tables, drafts, a data card, and tasks for other frameworks.

    Tables are written as Parquet and JSON Lines, with climassay's columns and with ClimaQA's. Their train, dev and test
    splits share no passage. Tasks are written for the frameworks that are named, by default for both.

    Args:
        dataset: Name of a dataset (``climassay generate list`` lists them), file of exported drafts (JSONL), folder of
            a publication, file of questions in a known format (climassay, ClimaQA or Pira), or ``primer``.
        output: Folder to write to.
        inspect: Whether to write tasks for Inspect.
        lm_eval: Whether to write tasks for lm-evaluation-harness.
        data_only: Whether to write no tasks for other frameworks.
        name: Name of the dataset, with which the names of its tasks begin; by default the file's name.
        kinds: Kind of question to publish, for example mcq; can be repeated. By default all kinds.
        splits: Proportions of the train, dev and test split, or their numbers of questions, with -1 for the rest.
        licence: Licence of the questions as a hub identifier, for example cc-by-4.0.
        canary: Whether to put a canary string into the files.
        tasks_on: Split whose questions the tasks ask; by default the test split for drafts, and all for questions.
        examples: Number of few-shot examples in each prompt of the tasks.
        pool: Question file from which the examples are taken, or ``primer``.
        seed: Random seed for the splits and the choice of examples.
        push: Repository on the Hugging Face hub (OWNER/NAME) to which the folder is uploaded.
        private: Whether a new repository on the hub is private.
        force: Whether to replace the files of another dataset in the folder.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The dataset cannot be read, an option is invalid, or the folder contains another dataset.
    """
    from climassay.integrations.dataset_publication import publish_dataset

    with Session.opened(workspace) as session:
        return publish_dataset(
            dataset,
            Path(output),
            session,
            has_inspect_tasks=inspect,
            has_lm_eval_tasks=lm_eval,
            data_only=data_only,
            name=name,
            kinds=kinds,
            splits=splits,
            licence=licence,
            canary=canary,
            task_split=tasks_on,
            examples=examples,
            pool=pool,
            seed=seed,
            repository=push,
            private=private,
            force=force,
        )
