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
    """Generate questions from passages of collections and screen them; a larger dataset continues a smaller one.

    Args:
        name: Name of the dataset in the workspace.
        collections: Names of collections to write from.
        mcq: Number of accepted multiple-choice questions to generate.
        freeform: Number of accepted freeform questions to generate.
        cloze: Number of accepted cloze statements to generate.
        recipe: Recipe of the dataset, or its file; a recipe replaces all other arguments except the name.
        model: Name of the model that writes the questions.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.
        on_progress: Called after every batch; by default progress bars are shown.

    Returns:
        Accepted drafts in their order, fewer than requested if too few are accepted; ``draft.as_question()`` converts
        one to a question.

    Raises:
        InputError: No question is requested, a collection does not exist, or the dataset was begun with another recipe.
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
        limited_recipe = _with_limits(limited_recipe, session)
        store = generation.DatasetStore(session.records)
        config = {"recipe": asdict(limited_recipe), "prompts": options.prompts}
        run = stack.enter_context(session.run("generate run", config, {"recipe": limited_recipe.seed}))
        with (
            generation.open_pipeline(
                limited_recipe,
                session.workspace,
                session.records,
                run,
                prompts=options.prompts,
                deadline=options.deadline,
                use_cache=not options.no_cache,
                **({} if session.pool is None else {"load": session.pool.load_model}),
            ) as parts,
            ExitStack() as progress_stack,
        ):
            done = generation.run_pipeline(
                limited_recipe,
                parts,
                store,
                on_progress=on_progress or _pipeline_bars(session, limited_recipe, progress_stack),
            )
        dataset = GeneratedDataset.of(store, name, pipeline=done, run=run.id)
        run.save_results("streams", dataset.streams())
        return dataset


def estimate_generation(recipe: "Recipe | Path | str", *, workspace: Place = None) -> Shown:
    """Estimate what a recipe would still take: requests, tokens and money; no model is asked.

    Args:
        recipe: The recipe, or its file.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The file cannot be read, or a collection does not exist.
    """
    from climassay.generation.estimating import estimate_run, estimate_table
    from climassay.generation.recipe import load_recipe

    loaded_recipe = load_recipe(Path(recipe)) if isinstance(recipe, (str, Path)) else recipe
    with Session.opened(workspace) as session:
        result = estimate_run(_with_limits(loaded_recipe, session), session.workspace, prompts=session.options.prompts)
    return Shown(result, (estimate_table(result),))


def _with_limits(recipe: "Recipe", session: Session) -> "Recipe":
    """Return the recipe with the limits of the session's options."""
    options = session.options
    writer = with_changes(
        recipe.writer,
        timeout=options.timeout,
        max_tokens=options.max_output_tokens,
        reasoning_effort=options.reasoning_effort,
    )
    return replace(recipe, writer=writer)


def _pipeline_bars(session: Session, recipe: "Recipe", stack: ExitStack) -> "PipelineProgress":
    """Start a progress bar per question stream, and return the function that updates counts and costs."""
    requested = recipe.requested()
    tasks = {
        stream: stack.enter_context(session.progress.task(stream.name, total=number))
        for stream, number in requested.items()
    }

    def show(counts: "PipelineCounts", usage: "Usage") -> None:
        n_missing = n_accepted = 0
        for stream, task in tasks.items():
            stream_counts, total = counts[stream], requested[stream]
            n_accepted += stream_counts.accepted
            n_missing += max(0, total - stream_counts.accepted)
            frequent = stream_counts.rejected.most_common(2)
            reasons = ", ".join(f"{reason} {number}" for reason, number in frequent if number)
            description = f"{stream.name}: {stream_counts.drafts} drafts"
            description += f", {stream_counts.failed} failed" if stream_counts.failed else ""
            description += f"; rejected: {reasons}" if reasons else ""
            task.update(completed=min(total, stream_counts.accepted), description=description)
        if usage.cost is not None and n_accepted:
            remaining = f"about ${usage.cost / n_accepted * n_missing:.4f} to come"
            session.progress.say(f"${usage.cost:.4f} so far in this run, {remaining}")

    return show


def screen(
    drafts: "str | Path | Sequence[Draft]",
    *,
    without: Sequence[str] = (),
    only: Sequence[str] = (),
    language: str = "en",
    encoder: str | None = None,
    entailment: str | None = None,
    consistency: str | None = None,
    orders: int = 4,
    min_agreement: float = 1.0,
    seed: int = 0,
    workspace: Place = None,
) -> "ScreenedDrafts":
    """Mark faulty questions with named checks, and show what each check stopped; nothing is removed.

    Args:
        drafts: Drafts (climassay generate), a question file with passages, or primer.
        without: Check to leave out, by name; repeat. See generate checks.
        only: Run only this check; repeat.
        language: Language that the questions should be in: en, de, fr, es, pt, it or nl.
        encoder: Encoder for the check “off topic”, for example local:minilm.
        entailment: Scorer for the check “not entailed”: prompted:MODEL, supports:MODEL or nli:MODEL.
        consistency: Model that answers the questions again from their passages (small models: multiple choice only).
        orders: Option orders per question, for --consistency.
        min_agreement: Minimum share of orders answered as marked, for --consistency.
        seed: Seed of option orders other than rotations.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The drafts cannot be read, or a check does not exist.
        ModelError: A model cannot be loaded.
    """
    from climassay.generation.dataset_results import ScreenedDrafts
    from climassay.generation.screening import answer_check
    from climassay.generation.screening import screen as screened
    from climassay.metrics import load_entailment
    from climassay.models.encoders import load_encoder

    name = "drafts"
    skipped: tuple[str, ...] = ()
    marked: Sequence[Draft]
    if isinstance(drafts, (str, Path)):
        name = str(drafts)
        marked, skipped = drafts_of(drafts)
    else:
        marked = drafts
    with Session.opened(workspace) as session:
        options = session.options

        marked = screened(
            marked,
            without=without,
            only=only or None,
            language=language,
            encoder=None if encoder is None else load_encoder(encoder),
            entailment=None if entailment is None else load_entailment(entailment, load=session.load),
        )
        if consistency is not None:
            from climassay.evaluation import TaskPrompts

            prompt = TaskPrompts.load(options.prompts).mcq
            model = session.model(consistency)
            config = {
                "model": model.name,
                "fingerprint": model.fingerprint,
                "orders": orders,
                "min_agreement": min_agreement,
                "prompts": {prompt.name: {"sha256": prompt.sha256, "origin": prompt.origin}},
            }
            with (
                session.run("generate screen", config, {"orders": seed}) as run,
                session.progress.task("Answering the questions") as task,
            ):
                consistency_check = answer_check(
                    session.recorded(model, run),
                    orders=orders,
                    min_agreement=min_agreement,
                    prompts=options.prompts,
                    seed=seed,
                )
                marked = consistency_check.check(marked, on_progress=lambda count: task.advance(count))
    return ScreenedDrafts(name, tuple(marked), tuple(skipped))


def drafts_of(file: str | Path) -> "tuple[list[Draft], tuple[str, ...]]":
    """Read the drafts of a draft file or question file, and the reasons for skipped rows.

    Raises:
        InputError: The name is neither a dataset nor a file of drafts.
    """
    from climassay.generation.draft import question_draft

    if str(file) != PRIMER and holds_drafts(Path(file)):
        return list(generation.read_drafts(Path(file))), ()
    result: QuestionSet = read_questions(str(file))
    return [question_draft(question) for question in result.questions], result.skipped


def holds_drafts(path: Path) -> bool:
    """Return whether the first line of a file is a draft; False if it cannot be read."""
    try:
        row = parse_json(next((line for line in read_lines(path) if line.strip()), "null"))
    except (OSError, ValueError):
        return False
    return isinstance(row, dict) and {"wording", "origin"} <= set(row)


def list_screening_checks() -> Shown:
    """List the screening checks: name, kinds of questions, and what each finds faulty."""
    from climassay.generation.screening import CHECKS, MODEL_CHECKS

    results = [
        (screening_check.name, list(screening_check.kinds), screening_check.description)
        for screening_check in CHECKS.values()
    ]
    results += [(name, list(KINDS), words) for name, words in MODEL_CHECKS.items()]
    records = [{"name": name, "kinds": kinds, "words": words} for name, kinds, words in results]
    return listing("Checks", records, {"name": "check", "kinds": "kinds", "words": "what is faulty"}, left=3)


def list_datasets(*, workspace: Place = None) -> Shown:
    """List the datasets of the workspace."""
    from climassay.records.queries import format_time

    with Session.opened(workspace) as session:
        result = generation.DatasetStore(session.records).list()
    records = [{**asdict(dataset), "made_at": format_time(dataset.made_at)} for dataset in result]
    states = ("accepted", "rejected", "failed")
    rows = [
        (dataset.name, format_time(dataset.made_at)[:19], *(str(dataset.states.get(state, 0)) for state in states))
        for dataset in result
    ]
    tables = (Table.of("Datasets", ("name", "begun (UTC)", *states), rows, left=2),) if rows else ()
    return Shown(records, tables, noted=() if rows else ("No datasets yet: write one with climassay generate run.",))


def dataset_statistics(dataset: str, *, workspace: Place = None) -> "Dataset":
    """Show yield, reasons for rejection, and the spread of questions over sources and levels.

    Args:
        dataset: Name of the dataset, see climassay generate list.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The dataset does not exist.
    """
    from climassay.generation.dataset_results import Dataset

    with Session.opened(workspace) as session:
        return Dataset.of(generation.DatasetStore(session.records), dataset)


def export_dataset(dataset: str, output: Path | str, *, accepted: bool = False, workspace: Place = None) -> Shown:
    """Write the drafts of a dataset to a file, with all decisions about them.

    Args:
        dataset: Name of the dataset, see climassay generate list.
        output: JSON Lines, one draft per line.
        accepted: Leave out rejected and failed drafts.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The dataset does not exist, or the file cannot be written.
    """
    output = Path(output)
    with Session.opened(workspace) as session:
        stored = generation.DatasetStore(session.records).drafts(dataset)
        exported = [draft for draft in stored if draft.usable or not accepted]
    generation.write_drafts(output, exported)
    return Shown(
        {"file": output, "drafts": len(exported)},
        printed_lines=(f"Wrote {counted(len(exported), 'draft')} to {output}",),
    )


_BENCHMARK = "benchmark.json"


@dataclass(frozen=True, slots=True)
class Publication(Result):
    """Published folder of a dataset."""

    dataset: "PublishedDataset"
    tasks: "PublishedBenchmark | None"
    skipped: tuple[str, ...] = ()
    """Skipped rows of the source, with the reasons."""
    address: str | None = None
    """Address of the uploaded dataset on the hub."""
    remarks: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the folder, name, counts and files."""
        data = {"folder": self.dataset.folder, "name": self.dataset.name} if self.tasks is None else asdict(self.tasks)
        return {**data, "dataset": asdict(self.dataset), "skipped": self.skipped, "pushed": self.address}

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per kind and split."""
        counted = self.dataset.counts
        return [
            {"kind": kind, "split": split, "questions": count}
            for kind, counts in counted.items()
            for split, count in counts.items()
        ]

    def _files(self) -> list[str]:
        more = () if self.tasks is None else self.tasks.written
        return sorted({*self.dataset.written, *more})

    def lines(self) -> Iterator[str]:
        """Return the sentences on the published rows and the new files."""
        words = "; ".join(
            f"{sum(counts.values())} {kind} ({', '.join(f'{count} {split}' for split, count in counts.items())})"
            for kind, counts in self.dataset.counts.items()
        )
        yield f"{self.dataset.name} in {self.dataset.folder}: {words}."
        if self.tasks is not None:
            counts = ", ".join(f"{count} {kind}" for kind, count in self.tasks.counts.items())
            yield f"Tasks on {counts}; for {' and '.join(self.tasks.parts)}."
        for path in self._files():
            yield f"  {path}"
        if self.address is not None:
            yield f"Uploaded to {self.address}"

    def notes(self) -> Iterator[str]:
        """Return the notes on unchanged, skipped, removed and unknown items."""
        yield from self.remarks
        written, files = self.dataset, self._files()
        same = len(written.unchanged) + (0 if self.tasks is None else len(set(self.tasks.unchanged) - set(files)))
        yield f"{counted(len(files), 'file')} written, {same} unchanged."
        if written.rejected:
            yield f"Only in drafts.jsonl: {counted(written.rejected, 'rejected draft')}."
        if written.without_term:
            yield f"Left out because they have no masked term: {counted(written.without_term, 'cloze statement')}."
        untested = [kind for kind, counts in written.counts.items() if not counts.get("test")]
        if untested:
            yield f"No {' and no '.join(untested)} question is in the test split: --splits 0,0,1 puts all into it."
        if written.unlicensed:
            yield f"The licence is not known of: {', '.join(written.unlicensed)}."
        removed = [*written.removed, *(self.tasks.removed if self.tasks is not None else ())]
        if removed:
            yield f"Removed {counted(len(removed), 'file')} of the dataset that was there before."
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
    """Publish a dataset as a folder: tables, drafts, a data card, and tasks for other frameworks.

    The tables are written as Parquet and JSON Lines, in climassay's columns and in ClimaQA's, with train, dev and test
    splits that share no passage. Tasks are written for the named frameworks, by default for both.

    Args:
        dataset: A dataset of the workspace (climassay generate list), exported drafts (JSONL), a folder published
            before, questions in any known format (climassay, ClimaQA or Pira tables), or 'primer'.
        output: Folder to publish in.
        inspect: Write tasks for Inspect.
        lm_eval: Write tasks for lm-evaluation-harness.
        data_only: Write no tasks for other frameworks.
        name: Name of the dataset; begins the names of its tasks. By default the file's name.
        kinds: Kind of question to publish, for example mcq; repeat. By default all.
        splits: Train, dev and test: shares, or numbers of questions with one -1 for the rest.
        licence: Licence of the questions, as hubs spell it: cc-by-4.0.
        canary: Put a canary string into the files.
        tasks_on: Questions of the tasks; by default those of the test split for drafts, else all.
        examples: Worked examples in every prompt of the tasks.
        pool: Question file that examples are taken from, or 'primer'.
        seed: Seed of the splits and of the choice of examples.
        push: Upload to the Hugging Face hub.
        private: Make a new repository on the hub private.
        force: Replace another dataset's files in the folder.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The dataset cannot be read, or the folder holds another one.
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
    unknown = next((kind for kind in kinds if kind not in KINDS), None)
    if unknown is not None:
        raise InputError(f"There is no kind {unknown!r} of questions: there are {', '.join(KINDS)}.")
    if data_only and (inspect or lm_eval):
        raise InputError(
            "--data-only leaves out the tasks that --inspect and --lm-eval ask for: give one or the other."
        )
    if push is not None:
        check_repository(push)
    source = _read(dataset, workspace)
    prepared = prepare_dataset(
        source,
        output,
        name=benchmark_name(dataset) if name is None else name,
        plan=SplitPlan(_parts(splits), seed),
        kinds=kinds,
        licence=licence,
        canary=canary,
    )
    check_target_folder(output, prepared.name, force=force)
    if inspect is None and lm_eval is None and not data_only:
        # Where nobody names a framework, types that none has tasks for are published without.
        inspect = lm_eval = any(TYPES[kind].in_climaqa for kind in prepared.kinds)
    tasks = None
    remarks: list[str] = []
    more: dict[str, Any] = {}
    if not (inspect or lm_eval):
        if (output / _BENCHMARK).is_file() and not force:
            raise InputError(
                f"{output} has tasks for other frameworks, which --data-only would leave behind as they are: publish "
                "without it, or into another folder."
            )
    else:
        task_splits = tasks_on or ("test" if isinstance(source, list) else "all")
        questions = prepared.questions("test") if task_splits == "test" else ()
        if task_splits == "test" and not questions:
            remarks.append("The test split is empty: the tasks ask all questions.")
        # The folder of a dataset that had no tasks so far is not foreign, though the tasks' writer does not know it.
        known = read_manifest(output) is not None and not (output / _BENCHMARK).is_file()
        with tempfile.TemporaryDirectory() as folder, Session.opened(workspace) as session:
            file = Path(folder) / "questions.jsonl"
            rows = map(asdict, questions or prepared.questions())
            file.write_text(to_json_lines({**row, "passage": row.pop("context")} for row in rows), encoding="utf-8")
            tasks = publish_benchmark(
                file,
                output,
                name=prepared.name,
                inspect=bool(inspect),
                lm_eval=bool(lm_eval),
                examples=examples,
                pool=pool,
                seed=seed,
                prompts=session.options.prompts,
                force=force or known,
            )
        more = _framework_notes(output)
    written = write_dataset(prepared, output, force=force, **more)
    skipped = () if isinstance(source, list) else source.skipped
    address = None if push is None else push_dataset(output, push, private=private)
    return Publication(written, tasks, (*skipped, *(() if tasks is None else tasks.skipped)), address, tuple(remarks))


def _read(dataset: str, workspace: Place) -> "list[Draft] | QuestionSet":
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
    return list(generation.read_drafts(path)) if holds_drafts(path) else read_questions(dataset)


def _parts(splits: str) -> tuple[float, float, float]:
    try:
        train, dev, test = (float(part) for part in splits.split(","))
    except ValueError:
        raise InputError(f"--splits takes three numbers, as 0.8,0.1,0.1 or -1,100,100, not {splits!r}.") from None
    return train, dev, test


_CARD = "README.md"
_HUB_TASKS = "eval.yaml"
_SUFFIX = "_prompts"
"""Suffix of the configurations that hold prompts; names without it belong to the dataset."""


def _framework_notes(folder: Path) -> dict[str, Any]:
    """Rename the configurations of a benchmark's card and of ``eval.yaml``, and return the text of the card.

    The dataset's card replaces the benchmark's. ``load_dataset(folder, "mcq")`` must return the questions, so the
    prompts that Inspect reads from a hub are renamed to ``mcq_prompts``.
    """
    import yaml

    _, head, body = (folder / _CARD).read_text(encoding="utf-8").split("---\n", 2)
    configs = tuple(
        {**config, "config_name": config["config_name"] + _SUFFIX} for config in yaml.safe_load(head)["configs"]
    )
    hub = folder / _HUB_TASKS
    if hub.is_file():
        data = yaml.safe_load(hub.read_text(encoding="utf-8"))
        for task in data["tasks"]:
            task["config"] += _SUFFIX
        write_file(hub, yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=120).encode())
    # The list of files and the sections on frameworks, one heading lower.
    parts = {part.partition("\n")[0]: part.partition("\n")[2] for part in body.split("\n## ")[1:]}
    listed = "\n".join(line for line in parts.pop("Files", "").split("\n") if line.startswith(("- ", "  ")))
    lower = "\n".join(f"### {heading}\n{text.rstrip()}\n" for heading, text in parts.items())
    return {"extra": f"## Tasks for other frameworks\n\n{listed}\n\n{lower}", "configs": configs}
