"""Publication of a dataset as a folder: its tables, its data card, and tasks for other frameworks."""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from climassay import generation
from climassay.errors import InputError
from climassay.generation.publishing import (
    PublishedDataset,
    SplitPlan,
    check_repository,
    check_target_folder,
    prepare_dataset,
    push_dataset,
    read_dataset,
    read_dataset_questions,
    read_manifest,
    to_json_lines,
    write_dataset,
)
from climassay.integrations.benchmark import benchmark_name
from climassay.integrations.publishing import MANIFEST, PublishedBenchmark, publish_benchmark
from climassay.io import write_file
from climassay.questions import KINDS, PRIMER, TYPES, Kind, QuestionSet, read_questions
from climassay.reporting import counted
from climassay.reporting.results import Result
from climassay.reporting.tables import skipped_note
from climassay.session import Session


@dataclass(frozen=True, slots=True)
class Publication(Result):
    """Result of publishing a dataset as a folder."""

    dataset: PublishedDataset
    tasks: PublishedBenchmark | None
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


def publish_dataset(
    dataset: str,
    output: Path,
    session: Session,
    *,
    has_inspect_tasks: bool | None,
    has_lm_eval_tasks: bool | None,
    data_only: bool,
    name: str | None,
    kinds: Sequence[Kind],
    splits: str,
    licence: str | None,
    canary: bool,
    task_split: Literal["all", "test"] | None,
    examples: int,
    pool: str,
    seed: int,
    repository: str | None,
    private: bool,
    force: bool,
) -> Publication:
    """Publish a dataset as a folder; see :func:`climassay.publish` for the arguments.

    Raises:
        InputError: The dataset cannot be read, an option is invalid, or the folder contains another dataset.
    """
    unknown_kind = next((kind for kind in kinds if kind not in KINDS), None)
    if unknown_kind is not None:
        raise InputError(f"There is no kind {unknown_kind!r} of questions: there are {', '.join(KINDS)}.")
    if data_only and (has_inspect_tasks or has_lm_eval_tasks):
        raise InputError(
            "--data-only leaves out the tasks that --inspect and --lm-eval ask for: give one or the other."
        )
    if repository is not None:
        check_repository(repository)
    source = _read_source(dataset, session)
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
    if has_inspect_tasks is None and has_lm_eval_tasks is None and not data_only:
        # Where nobody names a framework, types that none has tasks for are published without.
        has_inspect_tasks = has_lm_eval_tasks = any(TYPES[kind].in_climaqa for kind in dataset_to_write.kinds)
    tasks = None
    remarks: list[str] = []
    card_parts: dict[str, Any] = {}
    if not (has_inspect_tasks or has_lm_eval_tasks):
        if (output / MANIFEST).is_file() and not force:
            raise InputError(
                f"{output} has tasks for other frameworks, which --data-only would leave behind as they are: publish "
                "without it, or into another folder."
            )
    else:
        question_split = task_split or ("test" if isinstance(source, list) else "all")
        questions = dataset_to_write.questions("test") if question_split == "test" else ()
        if question_split == "test" and not questions:
            remarks.append("The test split is empty: the tasks ask all questions.")
        # The folder of a dataset that had no tasks so far is not foreign, though the tasks' writer does not know it.
        is_own_folder = read_manifest(output) is not None and not (output / MANIFEST).is_file()
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "questions.jsonl"
            rows = map(asdict, questions or dataset_to_write.questions())
            file.write_text(to_json_lines({**row, "passage": row.pop("context")} for row in rows), encoding="utf-8")
            tasks = publish_benchmark(
                file,
                output,
                name=dataset_to_write.name,
                inspect=bool(has_inspect_tasks),
                lm_eval=bool(has_lm_eval_tasks),
                examples=examples,
                pool=pool,
                seed=seed,
                prompts=session.options.prompts,
                force=force or is_own_folder,
            )
        card_parts = _prepare_card(output)
    publication_dataset = write_dataset(dataset_to_write, output, force=force, **card_parts)
    skip_reasons = () if isinstance(source, list) else source.skipped
    address = None if repository is None else push_dataset(output, repository, private=private)
    return Publication(
        publication_dataset, tasks, (*skip_reasons, *(() if tasks is None else tasks.skipped)), address, tuple(remarks)
    )


def _read_source(dataset: str, session: Session) -> list[generation.Draft] | QuestionSet:
    if dataset == PRIMER:
        return read_questions(dataset)
    path = Path(dataset)
    if path.is_dir():
        manifest = read_manifest(path)
        if manifest is not None and "drafts.jsonl" not in manifest.files:
            return read_dataset_questions(path)
        return read_dataset(path)
    if not path.exists() and session.workspace.has_records:
        store = generation.DatasetStore(session.records)
        if dataset in store:
            return list(store.drafts(dataset))
    return list(generation.read_drafts(path)) if generation.is_draft_file(path) else read_questions(dataset)


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
