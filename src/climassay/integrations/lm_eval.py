"""Write the YAML files for lm-evaluation-harness: a shared base, one file per task and level, and one group.

Every row of the data contains its rendered prompt. ``description``, ``doc_to_text`` and ``gen_prefix`` are names of
columns, whose values the harness inserts unchanged.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from climassay.integrations.benchmark import MAX_TOKENS, SCORES, Benchmark, question_from_row, score_answer
from climassay.questions import TYPES, Kind, Level

VERSION = 1
"""Version of the tasks, to be increased if the prompts or scores of the same questions change."""
BASE_FILE = "_base_yaml"
GROUP_FILE = "_group.yaml"
LOADER_FILE = "documents.py"
_LOADER_SOURCE = '''\
"""Loads the rows that a task's YAML file names, wherever this folder lies."""

from pathlib import Path

import datasets

HERE = Path(__file__).parent


def load(data_files, **_metadata):
    """The splits of a task; file names are relative to this folder."""
    files = {split: str(HERE / name) for split, name in data_files.items()}
    return datasets.load_dataset("json", data_files=files)
'''


@dataclass(frozen=True, slots=True)
class HarnessTask:
    """Task of the harness: the questions of one kind and level, with one way to answer."""

    name: str
    form: str
    """Kind of the questions, followed by ``_letter`` if the model generates the letter of an option."""
    kind: Kind
    level: Level | None
    rows: str
    """Name of the file of rows, without the folder."""

    @property
    def compares_options(self) -> bool:
        """Whether the harness compares the likelihoods of the options instead of generating text."""
        return TYPES[self.kind].has_options and self.form == self.kind

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the task's metrics in the harness."""
        return ("acc",) if self.compares_options else SCORES[self.kind]


def rows_file_name(kind: Kind, level: Level | None) -> str:
    """Return the name of the file that contains the rows of a kind and level."""
    return f"{kind}.jsonl" if level is None else f"{kind}_{level}.jsonl"


def harness_tasks(benchmark: Benchmark) -> list[HarnessTask]:
    """Return all tasks of a benchmark, ordered by form, then by level."""
    return [
        HarnessTask(
            "_".join(part for part in (benchmark.name, form, level) if part),
            form,
            kind,
            level,
            rows_file_name(kind, level),
        )
        for kind in benchmark.kinds
        for form in ((kind, f"{kind}_letter") if TYPES[kind].has_options else (kind,))
        for level in benchmark.levels(kind)
    ]


def harness_files(benchmark: Benchmark, rows: str) -> dict[str, str]:
    """Return the contents of the harness's files by file name.

    The group's scores are the means of each form over its levels, weighted by the numbers of questions. ``rows`` is the
    folder of the rows, relative to the harness's folder.
    """
    tasks, shots = harness_tasks(benchmark), benchmark.shots
    base_config = {
        "dataset_path": "json",
        "custom_dataset": _Function("documents.load"),
        "test_split": "test",
        "description": "system",
        "doc_to_text": "user",
        "gen_prefix": "prefix",
        "target_delimiter": "",
        "num_fewshot": 0,
        "metadata": {
            "version": VERSION,
            "benchmark": benchmark.name,
            "content_sha256": benchmark.content_sha256,
            "examples": shots.count if shots else 0,
        },
    }
    parts = []
    for form in dict.fromkeys(task.form for task in tasks):
        members = [task for task in tasks if task.form == form]
        parts.append(
            {
                # The harness would take a name that it already has for that task or group.
                "group": f"{benchmark.name}_{form}_mean",
                "task": [task.name for task in members],
                "aggregate_metric_list": [{"metric": name, "weight_by_size": True} for name in members[0].metrics],
            }
        )
    group = {"group": benchmark.name, "task": parts, "metadata": {"version": VERSION}}
    files = {BASE_FILE: _to_yaml(base_config), LOADER_FILE: _LOADER_SOURCE, GROUP_FILE: _to_yaml(group)}
    return files | {f"{task.name}.yaml": _to_yaml(_task_config(task, rows)) for task in tasks}


def _task_config(task: HarnessTask, rows: str) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "include": BASE_FILE,
        "task": task.name,
        "dataset_kwargs": {"data_files": {"test": f"{rows}/{task.rows}"}},
    }
    if task.compares_options:
        fields |= {"output_type": "multiple_choice", "doc_to_choice": "choices", "doc_to_target": "correct"}
    else:
        fields |= {
            "output_type": "generate_until",
            "doc_to_target": "target",
            "generation_kwargs": {"until": [], "do_sample": False, "max_gen_toks": MAX_TOKENS[task.kind]},
            "process_results": _Function("climassay.integrations.lm_eval.answer_scores"),
        }
    fields["metric_list"] = [{"metric": name, "aggregation": "mean", "higher_is_better": True} for name in task.metrics]
    return fields


class _Function(str):
    """Name of a Python function that the harness imports."""


def _to_yaml(data: Mapping[str, Any]) -> str:
    import yaml

    class Dumper(yaml.SafeDumper):
        """YAML dumper that writes a :class:`_Function` with the harness's tag."""

    Dumper.add_representer(_Function, lambda dumper, value: dumper.represent_scalar("!function", str(value)))
    return str(yaml.dump(dict(data), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120))


def answer_scores(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, float]:
    """Score a model's answer to a row's question; the harness calls this as ``process_results``."""
    return score_answer(question_from_row(doc), results[0])
