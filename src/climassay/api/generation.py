"""Generation of question benchmarks: writing, screening, export and publication."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from climassay import generation
from climassay.errors import InputError
from climassay.io import parse_json, read_lines, write_file
from climassay.models import DEFAULT_MODEL
from climassay.prompts import load_prompt
from climassay.questions import KINDS, PRIMER, TYPES, Kind, read_questions
from climassay.reporting import Table, counted
from climassay.reporting.results import Result, Shown, listing
from climassay.reporting.tables import skipped_note
from climassay.session import Place, Session, one_or_several
from climassay.settings import with_changes

if TYPE_CHECKING:
    from climassay.generation import Draft, Recipe
    from climassay.generation.dataset_results import Dataset, GeneratedDataset, ScreenedDrafts
    from climassay.generation.pipeline import PipelineCounts, PipelineProgress
    from climassay.generation.publishing import PublishedDataset
    from climassay.generation.writing import AnswerProgress
    from climassay.integrations import PublishedBenchmark
    from climassay.models.contract import Usage
    from climassay.questions import QuestionSet


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


def estimate_generation(recipe: "Recipe | Path | str", *, workspace: Place = None) -> Shown:
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
    return Shown(cost_estimate, (estimate_table(cost_estimate),))


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
        screened_drafts, skip_reasons = read_drafts_or_questions(drafts)
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


def read_drafts_or_questions(file: str | Path) -> "tuple[list[Draft], tuple[str, ...]]":
    """Read drafts from a file of drafts or questions; also return the reasons for skipped rows.

    Raises:
        InputError: The file cannot be read.
    """
    from climassay.generation.draft import question_draft

    if str(file) != PRIMER and is_draft_file(Path(file)):
        return list(generation.read_drafts(Path(file))), ()
    question_set: QuestionSet = read_questions(str(file))
    return [question_draft(question) for question in question_set.questions], question_set.skipped


def is_draft_file(path: Path) -> bool:
    """Return whether the first line of a file is a draft; False if the file cannot be read."""
    try:
        row = parse_json(next((line for line in read_lines(path) if line.strip()), "null"))
    except (OSError, ValueError):
        return False
    return isinstance(row, dict) and {"wording", "origin"} <= set(row)


def list_screening_checks() -> Shown:
    """List the screening checks with the kinds of questions that they check and the faults that they find."""
    from climassay.generation.screening import CHECKS, MODEL_CHECKS

    checks = [
        (screening_check.name, list(screening_check.kinds), screening_check.description)
        for screening_check in CHECKS.values()
    ]
    checks += [(name, list(KINDS), description) for name, description in MODEL_CHECKS.items()]
    records = [{"name": name, "kinds": kinds, "words": description} for name, kinds, description in checks]
    return listing("Checks", records, {"name": "check", "kinds": "kinds", "words": "what is faulty"}, left=3)


def list_datasets(*, workspace: Place = None) -> Shown:
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
    tables = (Table.of("Datasets", ("name", "begun (UTC)", *states), rows, left=2),) if rows else ()
    return Shown(records, tables, noted=() if rows else ("No datasets yet: write one with climassay generate run.",))


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


def export_dataset(dataset: str, output: Path | str, *, accepted: bool = False, workspace: Place = None) -> Shown:
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
    return Shown(
        {"file": output, "drafts": len(exported_drafts)},
        printed_lines=(f"Wrote {counted(len(exported_drafts), 'draft')} to {output}",),
    )


_BENCHMARK_FILE = "benchmark.json"


@dataclass(frozen=True, slots=True)
class Publication(Result):
    """Result of publishing a dataset as a folder."""

    dataset: "PublishedDataset"
    tasks: "PublishedBenchmark | None"
    skipped: tuple[str, ...] = ()
    """Sentences on the source's skipped rows, with the reasons."""
    address: str | None = None
    """Address of the dataset on the Hugging Face hub; None if it was not uploaded."""
    remarks: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return folder, name, counts and files of the publication as JSON-serialisable values."""
        data = {"folder": self.dataset.folder, "name": self.dataset.name} if self.tasks is None else asdict(self.tasks)
        return {**data, "dataset": asdict(self.dataset), "skipped": self.skipped, "pushed": self.address}

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each kind and split, with the number of questions."""
        counts_by_kind = self.dataset.counts
        return [
            {"kind": kind, "split": split, "questions": count}
            for kind, counts in counts_by_kind.items()
            for split, count in counts.items()
        ]

    def _list_files(self) -> list[str]:
        task_files = () if self.tasks is None else self.tasks.written
        return sorted({*self.dataset.written, *task_files})

    def lines(self) -> Iterator[str]:
        """Yield sentences on the published questions, and the paths of the files written."""
        summary = "; ".join(
            f"{sum(counts.values())} {kind} ({', '.join(f'{count} {split}' for split, count in counts.items())})"
            for kind, counts in self.dataset.counts.items()
        )
        yield f"{self.dataset.name} in {self.dataset.folder}: {summary}."
        if self.tasks is not None:
            counts = ", ".join(f"{count} {kind}" for kind, count in self.tasks.counts.items())
            yield f"Tasks on {counts}; for {' and '.join(self.tasks.parts)}."
        for path in self._list_files():
            yield f"  {path}"
        if self.address is not None:
            yield f"Uploaded to {self.address}"

    def notes(self) -> Iterator[str]:
        """Yield notes on unchanged and removed files, questions that are left out, and unknown licences."""
        yield from self.remarks
        dataset, files = self.dataset, self._list_files()
        n_unchanged = len(dataset.unchanged) + (
            0 if self.tasks is None else len(set(self.tasks.unchanged) - set(files))
        )
        yield f"{counted(len(files), 'file')} written, {n_unchanged} unchanged."
        if dataset.rejected:
            yield f"Only in drafts.jsonl: {counted(dataset.rejected, 'rejected draft')}."
        if dataset.without_term:
            yield f"Left out because they have no masked term: {counted(dataset.without_term, 'cloze statement')}."
        kinds_without_test = [kind for kind, counts in dataset.counts.items() if not counts.get("test")]
        if kinds_without_test:
            names = " and no ".join(kinds_without_test)
            yield f"No {names} question is in the test split: --splits 0,0,1 puts all into it."
        if dataset.unlicensed:
            yield f"The licence is not known of: {', '.join(dataset.unlicensed)}."
        removed_files = [*dataset.removed, *(self.tasks.removed if self.tasks is not None else ())]
        if removed_files:
            yield f"Removed {counted(len(removed_files), 'file')} of the dataset that was there before."
        yield from skipped_note(self.skipped)


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
) -> Publication:
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
    from climassay.generation.publishing import (
        SplitPlan,
        check_repository,
        check_target_folder,
        prepare_dataset,
        push_dataset,
        read_manifest,
        to_json_lines,
        write_dataset,
    )
    from climassay.integrations import publish_benchmark
    from climassay.integrations.benchmark import benchmark_name

    output = Path(output)
    unknown_kind = next((kind for kind in kinds if kind not in KINDS), None)
    if unknown_kind is not None:
        raise InputError(f"There is no kind {unknown_kind!r} of questions: there are {', '.join(KINDS)}.")
    if data_only and (inspect or lm_eval):
        raise InputError(
            "--data-only leaves out the tasks that --inspect and --lm-eval ask for: give one or the other."
        )
    if push is not None:
        check_repository(push)
    source = _read_source(dataset, workspace)
    dataset_to_write = prepare_dataset(
        source,
        output,
        name=benchmark_name(dataset) if name is None else name,
        plan=SplitPlan(_parse_splits(splits), seed),
        kinds=kinds,
        licence=licence,
        canary=canary,
    )
    check_target_folder(output, dataset_to_write.name, force=force)
    if inspect is None and lm_eval is None and not data_only:
        # Where nobody names a framework, types that none has tasks for are published without.
        inspect = lm_eval = any(TYPES[kind].in_climaqa for kind in dataset_to_write.kinds)
    tasks = None
    remarks: list[str] = []
    card_parts: dict[str, Any] = {}
    if not (inspect or lm_eval):
        if (output / _BENCHMARK_FILE).is_file() and not force:
            raise InputError(
                f"{output} has tasks for other frameworks, which --data-only would leave behind as they are: publish "
                "without it, or into another folder."
            )
    else:
        task_splits = tasks_on or ("test" if isinstance(source, list) else "all")
        questions = dataset_to_write.questions("test") if task_splits == "test" else ()
        if task_splits == "test" and not questions:
            remarks.append("The test split is empty: the tasks ask all questions.")
        # The folder of a dataset that had no tasks so far is not foreign, though the tasks' writer does not know it.
        is_own_folder = read_manifest(output) is not None and not (output / _BENCHMARK_FILE).is_file()
        with tempfile.TemporaryDirectory() as folder, Session.opened(workspace) as session:
            file = Path(folder) / "questions.jsonl"
            rows = map(asdict, questions or dataset_to_write.questions())
            file.write_text(to_json_lines({**row, "passage": row.pop("context")} for row in rows), encoding="utf-8")
            tasks = publish_benchmark(
                file,
                output,
                name=dataset_to_write.name,
                inspect=bool(inspect),
                lm_eval=bool(lm_eval),
                examples=examples,
                pool=pool,
                seed=seed,
                prompts=session.options.prompts,
                force=force or is_own_folder,
            )
        card_parts = _prepare_card(output)
    publication_dataset = write_dataset(dataset_to_write, output, force=force, **card_parts)
    skip_reasons = () if isinstance(source, list) else source.skipped
    address = None if push is None else push_dataset(output, push, private=private)
    return Publication(
        publication_dataset, tasks, (*skip_reasons, *(() if tasks is None else tasks.skipped)), address, tuple(remarks)
    )


def _read_source(dataset: str, workspace: Place) -> "list[Draft] | QuestionSet":
    from climassay.generation.publishing import read_dataset, read_dataset_questions, read_manifest

    if dataset == PRIMER:
        return read_questions(dataset)
    path = Path(dataset)
    if path.is_dir():
        manifest = read_manifest(path)
        if manifest is not None and "drafts.jsonl" not in manifest.files:
            return read_dataset_questions(path)
        return read_dataset(path)
    if not path.exists():
        with Session.opened(workspace) as session:
            if session.workspace.has_records and dataset in (store := generation.DatasetStore(session.records)):
                return list(store.drafts(dataset))
    return list(generation.read_drafts(path)) if is_draft_file(path) else read_questions(dataset)


def _parse_splits(splits: str) -> tuple[float, float, float]:
    try:
        train, dev, test = (float(number) for number in splits.split(","))
    except ValueError:
        raise InputError(f"--splits takes three numbers, as 0.8,0.1,0.1 or -1,100,100, not {splits!r}.") from None
    return train, dev, test


_CARD_FILE = "README.md"
_HUB_TASKS_FILE = "eval.yaml"
_PROMPTS_SUFFIX = "_prompts"
"""Name suffix of dataset configurations that contain prompts. Configurations that contain questions have no suffix."""


def _prepare_card(folder: Path) -> dict[str, Any]:
    """Rename the configurations of the benchmark, and return them with the text on its tasks, for the dataset's card.

    ``load_dataset(folder, "mcq")`` must return the dataset's questions. The configuration of the prompts, which Inspect
    loads from the hub, is therefore renamed to ``mcq_prompts``, also in ``eval.yaml``. The renamed configurations are
    returned as ``configs``, the text as ``extra``.
    """
    import yaml

    _, front_matter, body = (folder / _CARD_FILE).read_text(encoding="utf-8").split("---\n", 2)
    configs = tuple(
        {**config, "config_name": config["config_name"] + _PROMPTS_SUFFIX}
        for config in yaml.safe_load(front_matter)["configs"]
    )
    hub_file = folder / _HUB_TASKS_FILE
    if hub_file.is_file():
        data = yaml.safe_load(hub_file.read_text(encoding="utf-8"))
        for task in data["tasks"]:
            task["config"] += _PROMPTS_SUFFIX
        write_file(hub_file, yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=120).encode())
    # The list of files and the sections on frameworks, one heading lower.
    sections = {section.partition("\n")[0]: section.partition("\n")[2] for section in body.split("\n## ")[1:]}
    file_list = "\n".join(line for line in sections.pop("Files", "").split("\n") if line.startswith(("- ", "  ")))
    lowered_sections = "\n".join(f"### {heading}\n{text.rstrip()}\n" for heading, text in sections.items())
    return {"extra": f"## Tasks for other frameworks\n\n{file_list}\n\n{lowered_sections}", "configs": configs}
