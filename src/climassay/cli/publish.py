"""``climassay publish``."""

import re
import tempfile
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from climassay.cli.model_options import PromptsOption
from climassay.cli.output import JsonOption, WorkspaceOption, print_json, stderr_console, stdout_console
from climassay.cli.publish_frameworks import take_over
from climassay.errors import InputError

if TYPE_CHECKING:
    from climassay.generation.draft import Draft
    from climassay.generation.publishing import PreparedDataset, PublishedDataset
    from climassay.integrations import PublishedBenchmark
    from climassay.questions import QuestionSet

_PRIMER = "primer"
_BENCHMARK = "benchmark.json"


class KindChoice(StrEnum):
    """A kind of question."""

    mcq = "mcq"
    freeform = "freeform"
    cloze = "cloze"


class TaskQuestions(StrEnum):
    """Which questions the tasks for other frameworks ask."""

    all = "all"
    test = "test"


def publish(
    dataset: Annotated[
        str,
        typer.Argument(
            help="A dataset of the workspace (climassay generate list), exported drafts (JSONL), a folder published "
            "before, questions in any known format (climassay, ClimaQA or Pira tables), or 'primer'."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to publish in.")],
    inspect: Annotated[bool, typer.Option("--inspect", help="Write tasks for Inspect.")] = False,
    lm_eval: Annotated[bool, typer.Option("--lm-eval", help="Write tasks for lm-evaluation-harness.")] = False,
    data_only: Annotated[bool, typer.Option("--data-only", help="Write no tasks for other frameworks.")] = False,
    name: Annotated[
        str | None, typer.Option(help="Of the dataset; begins the names of its tasks. By default the file's name.")
    ] = None,
    kind: Annotated[list[KindChoice] | None, typer.Option(help="Publish this kind only; repeat.")] = None,
    splits: Annotated[
        str, typer.Option(help="Train, dev and test: shares, or numbers of questions with one -1 for the rest.")
    ] = "0.8,0.1,0.1",
    licence: Annotated[str | None, typer.Option(help="Of the questions, as hubs spell it: cc-by-4.0.")] = None,
    canary: Annotated[bool, typer.Option("--canary/--no-canary", help="Carry a canary in the files.")] = True,
    tasks_on: Annotated[
        TaskQuestions | None,
        typer.Option(help="Questions of the tasks; by default those of the test split for drafts, else all."),
    ] = None,
    examples: Annotated[int, typer.Option(min=0, help="Worked examples in every prompt of the tasks.")] = 0,
    pool: Annotated[str, typer.Option(help="Question file of the examples, or 'primer'.")] = _PRIMER,
    seed: Annotated[int, typer.Option(help="Seed of the splits and of the draw of examples.")] = 0,
    prompts: PromptsOption = None,
    push: Annotated[str | None, typer.Option(metavar="OWNER/NAME", help="Upload to the Hugging Face hub.")] = None,
    private: Annotated[bool, typer.Option("--private", help="Make a new repository of the hub private.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace what another dataset left in the folder.")] = False,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Publish a dataset as a folder: tables, drafts, data card, and tasks for other frameworks.

    The tables are written as Parquet and JSON Lines, in climassay's columns and in ClimaQA's, with train, dev and test
    splits that share no passage. Tasks are written for the frameworks named, for both where none is.
    """
    from climassay.generation.publishing import SplitPlan, check_free, check_repository, prepare_dataset, push_dataset

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
        name=_name(dataset, name),
        plan=SplitPlan(_parts(splits), seed),
        kinds=[choice.value for choice in kind] if kind else ("mcq", "freeform", "cloze"),
        licence=licence,
        canary=canary,
    )
    check_free(output, prepared.facts.name, force=force)
    benchmark = None
    if data_only:
        _check_no_tasks(output, force)
    else:
        both = not (inspect or lm_eval)
        wanted = tasks_on or (TaskQuestions.test if isinstance(source, list) else TaskQuestions.all)
        settings = {"inspect": inspect or both, "lm_eval": lm_eval or both, "examples": examples, "pool": pool}
        settings |= {"seed": seed, "prompts": prompts, "force": force}
        benchmark = _write_tasks(prepared, output, wanted, settings)
    written = _write_data(prepared, output, force, benchmark is not None)
    skipped = () if isinstance(source, list) else source.skipped
    skipped += () if benchmark is None else benchmark.skipped
    address = None if push is None else push_dataset(output, push, private=private)
    if as_json:
        print_json({**_told(written, benchmark), "skipped": skipped, "pushed": address})
    else:
        _show(written, benchmark, address)
        if skipped:
            note = f"{len(skipped)} rows left out, the first: {skipped[0]}"
            stderr_console().print(note, highlight=False)


def _read(dataset: str, workspace: Path | None) -> "list[Draft] | QuestionSet":
    from climassay.generation import read_drafts
    from climassay.generation.publishing import read_dataset, read_dataset_questions, read_manifest
    from climassay.primer import gold_questions
    from climassay.questions import read_questions

    if dataset == _PRIMER:
        return gold_questions()
    path = Path(dataset)
    if path.is_dir():
        manifest = read_manifest(path)
        if manifest is not None and "drafts.jsonl" not in manifest["files"]:
            return read_dataset_questions(path)
        return read_dataset(path)
    if not path.exists() and (drafts := _of_workspace(dataset, workspace)) is not None:
        return drafts
    return list(read_drafts(path)) if _holds_drafts(path) else read_questions(dataset)


def _of_workspace(dataset: str, workspace: Path | None) -> "list[Draft] | None":
    """The drafts of a dataset that was generated; None where there is none of that name."""
    from climassay.generation.dataset_store import DatasetStore
    from climassay.records import Records
    from climassay.workspace import Workspace

    place = Workspace.open(workspace)
    if not place.has_records:
        return None
    with Records(place.records_url) as records:
        store = DatasetStore(records)
        return list(store.drafts(dataset)) if dataset in store else None


def _holds_drafts(path: Path) -> bool:
    """Whether a file's first line is a draft; one that cannot be read is left to the reader of questions."""
    from climassay.given_files import parse_json, read_lines

    try:
        first = parse_json(next((line for line in read_lines(path) if line.strip()), "null"))
    except (OSError, ValueError):
        return False
    return isinstance(first, dict) and {"wording", "passages", "origin", "decisions"} <= set(first)


def _name(dataset: str, name: str | None) -> str:
    if name is not None:
        return name
    if dataset == _PRIMER:
        return "climassay_primer"
    stem = Path(dataset.rstrip("*")).name.partition(".")[0].lower()
    return re.sub(r"[^a-z0-9]+", "_", stem).strip("_") or "benchmark"


def _parts(splits: str) -> tuple[float, float, float]:
    try:
        train, dev, test = (float(part) for part in splits.split(","))
    except ValueError:
        raise InputError(f"--splits takes three numbers, as 0.8,0.1,0.1 or -1,100,100, not {splits!r}.") from None
    return train, dev, test


def _check_no_tasks(output: Path, force: bool) -> None:
    if (output / _BENCHMARK).is_file() and not force:
        raise InputError(
            f"{output} has tasks for other frameworks, which --data-only would leave behind as they are: publish "
            "without it, or into another folder."
        )


def _write_tasks(
    prepared: "PreparedDataset", output: Path, wanted: TaskQuestions, settings: dict[str, Any]
) -> "PublishedBenchmark":
    from climassay.generation.publishing import read_manifest
    from climassay.integrations import publish_benchmark

    questions = prepared.questions("test") if wanted is TaskQuestions.test else ()
    if wanted is TaskQuestions.test and not questions:
        stderr_console().print("The test split is empty: the tasks ask all questions.", highlight=False)
    # The folder of a dataset that had no tasks so far is not foreign, though the tasks' writer does not know it.
    known = read_manifest(output) is not None and not (output / _BENCHMARK).is_file()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "questions.jsonl"
        file.write_text(_as_lines(questions or prepared.questions()), encoding="utf-8")
        return publish_benchmark(
            file, output, name=prepared.facts.name, **{**settings, "force": settings["force"] or known}
        )


def _as_lines(questions: Any) -> str:
    import json

    rows = [asdict(question) for question in questions]
    return "".join(json.dumps({**row, "passage": row.pop("context")}, ensure_ascii=False) + "\n" for row in rows)


def _write_data(prepared: "PreparedDataset", output: Path, force: bool, tasks: bool) -> "PublishedDataset":
    from climassay.generation.publishing import write_dataset

    if not tasks:
        return write_dataset(prepared, output, force=force)
    notes = take_over(output)
    return write_dataset(prepared, output, force=force, more=notes.text, configs=notes.configs)


def _told(written: "PublishedDataset", benchmark: "PublishedBenchmark | None") -> dict[str, Any]:
    told = {"folder": written.folder, "name": written.name} if benchmark is None else asdict(benchmark)
    return {**told, "dataset": asdict(written)}


def _show(written: "PublishedDataset", benchmark: "PublishedBenchmark | None", address: str | None) -> None:
    console, note = stdout_console(), stderr_console()
    words = "; ".join(
        f"{sum(counts.values())} {kind} ({', '.join(f'{count} {split}' for split, count in counts.items())})"
        for kind, counts in written.counts.items()
    )
    console.print(f"{written.name} in {written.folder}: {words}.", highlight=False)
    files = [*written.written]
    if benchmark is not None:
        counts = ", ".join(f"{count} {kind}" for kind, count in benchmark.counts.items())
        console.print(f"Tasks on {counts}; for {' and '.join(benchmark.parts)}.", highlight=False)
        files += [path for path in benchmark.written if path not in written.written]
    for path in sorted(files):
        console.print(f"  {path}", highlight=False)
    same = len(written.unchanged) + (0 if benchmark is None else len(set(benchmark.unchanged) - set(files)))
    note.print(f"{len(files)} files written, {same} were the same already.", highlight=False)
    if written.rejected:
        note.print(f"{written.rejected} rejected drafts are in drafts.jsonl only.", highlight=False)
    if written.waiting:
        note.print(f"{written.waiting} cloze statements are left out: they have no term yet.", highlight=False)
    if written.unlicensed:
        note.print(f"The licence is not known of: {', '.join(written.unlicensed)}.", highlight=False)
    removed = [*written.removed, *(benchmark.removed if benchmark is not None else ())]
    if removed:
        note.print(f"{len(removed)} files of the dataset that was there before are removed.", highlight=False)
    if address is not None:
        console.print(f"Uploaded to {address}", highlight=False)
