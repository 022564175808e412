"""Publish a benchmark as a folder for a hub and for other frameworks."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from climassay import __version__
from climassay.errors import InputError
from climassay.generation.publishing import DatasetEntry, climaqa_row, to_json_lines
from climassay.integrations.benchmark import (
    ENTAILMENT_SCORES,
    FRAMEWORK_KINDS,
    MAX_TOKENS,
    SCORES,
    Benchmark,
    open_benchmark,
    to_prompt_row,
)
from climassay.integrations.lm_eval import harness_files, harness_tasks, rows_file_name
from climassay.io import parse_json, read_text, remove_files, write_files
from climassay.questions import PRIMER, TYPES, Kind, question_row
from climassay.questions.types import option_letter
from climassay.reporting import counted

Framework = Literal["inspect", "lm-eval"]
FRAMEWORKS: tuple[Framework, ...] = ("inspect", "lm-eval")
MANIFEST = "benchmark.json"
PROMPTS = "prompts"
HARNESS = "lm_eval"


@dataclass(frozen=True, slots=True)
class PublishedBenchmark:
    """Files and contents of a published folder."""

    folder: Path
    name: str
    content_sha256: str
    """SHA-256 of questions and prompts; see :attr:`Benchmark.content_sha256`."""
    counts: Mapping[Kind, int]
    parts: tuple[Framework, ...]
    """Frameworks for which the folder has tasks."""
    written: tuple[str, ...]
    """Paths of new and of changed files, relative to the folder."""
    unchanged: tuple[str, ...]
    removed: tuple[str, ...]
    """Paths of removed files, which belonged to the previous benchmark."""
    skipped: tuple[str, ...] = ()
    """Reasons for omitted rows of the source, one sentence per row."""


def publish_benchmark(
    file: str | Path = PRIMER,
    output: str | Path = "benchmark",
    *,
    inspect: bool = True,
    lm_eval: bool = True,
    name: str | None = None,
    kinds: Sequence[Kind] = FRAMEWORK_KINDS,
    examples: int = 0,
    pool: str = PRIMER,
    seed: int = 0,
    prompts: Path | None = None,
    force: bool = False,
) -> PublishedBenchmark:
    """Write a benchmark as a folder: data, a data card, and tasks for Inspect and lm-evaluation-harness.

    Files of an unchanged benchmark are not rewritten. If the folder already has tasks for a framework that
    is not requested now, these remain. Neither framework needs to be installed.

    ``inspect`` writes ``eval.yaml`` and ``inspect_tasks.py``, ``lm_eval`` the folder ``lm_eval`` for ``lm_eval
    --include_path``; ``force`` replaces another benchmark in the folder. The other arguments are those of
    :func:`open_benchmark`.

    Raises:
        InputError: The questions cannot be read; or ``force`` is False, and the folder contains another benchmark or
            other files.
    """
    benchmark = open_benchmark(file, name=name, kinds=kinds, examples=examples, pool=pool, seed=seed, prompts=prompts)
    folder = Path(output)
    previous_manifest = _load_manifest(folder)
    has_same_content = previous_manifest is not None and previous_manifest["content_sha256"] == benchmark.content_sha256
    if not force:
        _check_folder(folder, benchmark, previous_manifest)
    frameworks_to_write = {
        part for part, is_requested in zip(FRAMEWORKS, (inspect, lm_eval), strict=True) if is_requested
    }
    if has_same_content and previous_manifest is not None and previous_manifest["name"] == benchmark.name:
        frameworks_to_write |= set(previous_manifest["parts"])
    parts = tuple(part for part in FRAMEWORKS if part in frameworks_to_write)
    files = _render_files(benchmark, parts)
    written_paths, unchanged_paths = write_files(folder, {path: text.encode() for path, text in files.items()})
    removed_paths = remove_files(folder, set(previous_manifest["files"] if previous_manifest else ()) - set(files))
    return PublishedBenchmark(
        folder=folder,
        name=benchmark.name,
        content_sha256=benchmark.content_sha256,
        counts=_count_by_kind(benchmark),
        parts=parts,
        written=written_paths,
        unchanged=unchanged_paths,
        removed=removed_paths,
        skipped=benchmark.skipped,
    )


def _render_files(benchmark: Benchmark, parts: Sequence[Framework]) -> dict[str, str]:
    """Return the text of every file by path. The manifest is last, so that it exists only if all files were written."""
    rows = {
        kind: [f"{PROMPTS}/{rows_file_name(kind, level)}" for level in benchmark.levels(kind)]
        for kind in benchmark.kinds
    }
    files = {"README.md": data_card(benchmark, parts, rows)}
    files["data/questions.jsonl"] = to_json_lines(question_row(question) for question in benchmark.questions)
    for kind in benchmark.kinds:
        questions = [question for question in benchmark.questions if question.kind == kind]
        files[f"data/climaqa_{kind}.jsonl"] = to_json_lines(
            climaqa_row(DatasetEntry(question)) for question in questions
        )
        rendered_questions = benchmark.render(kind)
        for level, path in zip(benchmark.levels(kind), rows[kind], strict=True):
            files[path] = to_json_lines(to_prompt_row(row) for row in rendered_questions if row.question.level == level)
    if "inspect" in parts:
        files["eval.yaml"] = inspect_hub_config(benchmark)
        files["inspect_tasks.py"] = inspect_task_source(benchmark, rows)
    if "lm-eval" in parts:
        files |= {f"{HARNESS}/{path}": text for path, text in harness_files(benchmark, f"../{PROMPTS}").items()}
    manifest = {
        "name": benchmark.name,
        "content_sha256": benchmark.content_sha256,
        "questions": _count_by_kind(benchmark),
        "parts": list(parts),
        "prompts": {kind: benchmark.prompts.for_task(kind).sha256 for kind in benchmark.kinds},
        "climassay": __version__,
        "files": sorted([*files, MANIFEST]),
    }
    files[MANIFEST] = json.dumps(manifest, ensure_ascii=False, indent=2) + "\n"
    return files


def _count_by_kind(benchmark: Benchmark) -> dict[Kind, int]:
    return {kind: sum(question.kind == kind for question in benchmark.questions) for kind in benchmark.kinds}


def _load_manifest(folder: Path) -> dict[str, Any] | None:
    """Load the folder's manifest; return None if it is missing or malformed."""
    with suppress(OSError, ValueError, TypeError):
        result = parse_json(read_text(folder / MANIFEST))
        if {"name", "content_sha256", "parts", "files"} <= set(result):
            return dict(result)
    return None


def _check_folder(folder: Path, benchmark: Benchmark, previous_manifest: Mapping[str, Any] | None) -> None:
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file: name a folder for the benchmark.")
    if previous_manifest is None:
        if folder.is_dir() and any(folder.iterdir()):
            raise InputError(f"{folder} holds other files: name an empty folder, or use --replace to write into it.")
        return
    name, digest = previous_manifest["name"], previous_manifest["content_sha256"]
    if name != benchmark.name or digest != benchmark.content_sha256:
        raise InputError(
            f"{folder} holds another benchmark ({name}, {digest[:12]}): name another "
            "folder, or replace it with --replace."
        )


def data_card(benchmark: Benchmark, parts: Sequence[str], rows: Mapping[Kind, Sequence[str]]) -> str:
    """Return the README as text: a data card with the metadata that hubs read."""
    import yaml

    header = {
        "pretty_name": benchmark.name,
        "language": ["en"],
        "tags": ["climate"],
        "task_categories": [TYPES[kind].category for kind in benchmark.kinds],
        "configs": [
            {"config_name": kind, "data_files": [{"split": "test", "path": list(rows[kind])}]}
            for kind in benchmark.kinds
        ],
    }
    table = ["| kind | level | questions | scores |", "|---|---|---|---|"]
    for kind in benchmark.kinds:
        for level in benchmark.levels(kind):
            count = sum(question.kind == kind and question.level == level for question in benchmark.questions)
            table.append(f"| {TYPES[kind].plural} | {level or '-'} | {count} | {', '.join(SCORES[kind])} |")
    examples = "Prompts have no worked examples."
    if (shots := benchmark.shots) is not None:
        examples = f"Every prompt has {shots.count} worked examples from {shots.pool.name} (seed {shots.seed})."
    tasks = (f"- `{task.name}`: {', '.join(task.metrics)}" for task in harness_tasks(benchmark))
    number = counted(len(benchmark.questions), "question")
    sections = [
        f"---\n{yaml.safe_dump(header, sort_keys=False, allow_unicode=True, width=120)}---\n",
        f"# {benchmark.name}\n\n{number} on climate, published with climassay.\n",
        "\n".join(table) + "\n",
        _FILES.format(examples=examples, sha256=benchmark.content_sha256),
    ]
    if "inspect" in parts:
        kinds = ", ".join(f"`{kind}`" for kind in benchmark.kinds)
        sections.append(_INSPECT.format(first=benchmark.kinds[0], kinds=kinds))
    if "lm-eval" in parts:
        sections.append(_HARNESS.format(name=benchmark.name, tasks="\n".join(tasks)))
    return "\n".join(sections)


_FILES = """\
## Files

- `data/questions.jsonl`: the questions in climassay's format (`climassay evaluate mcq data/questions.jsonl`).
- `data/climaqa_*.jsonl`: the same as the tables of the published ClimaQA data set.
- `prompts/*.jsonl`: each question with its prompt filled in, what every framework sends. {examples}
- `benchmark.json`: what this folder holds; SHA-256 of questions and prompts
  `{sha256}`.

Add a licence, where the questions come from and how they were checked before you put this on a hub.
"""
_INSPECT = """\
## Inspect

```console
$ pip install 'climassay[inspect]'
$ inspect eval inspect_tasks.py@{first} --model climassay/local:smollm2
```

Tasks: {kinds}. From a hub, without climassay: `inspect eval hf/ORGANISATION/DATASET` (`eval.yaml`); it sends
the same prompts, and scores freeform and cloze answers with Inspect's own scorers. The chats end with the start of the
answer, which a provider must go on from.
"""
_HARNESS = """\
## lm-evaluation-harness

```console
$ pip install 'climassay[lm-eval,local]'
$ lm_eval --include_path lm_eval --tasks {name} --apply_chat_template --model hf \\
    --model_args pretrained=MODEL --output_path results
```

The group `{name}` has these tasks; those with likelihoods need no climassay:

{tasks}
"""


_TASK_FILE = '''\
"""Tasks of this benchmark for Inspect: `inspect eval inspect_tasks.py --model MODEL`; needs climassay[inspect]."""

from pathlib import Path

from climassay.integrations.inspect.tasks import published_task
from inspect_ai import Task, task

HERE = Path(__file__).resolve().parent
'''
_TASK = '''

@task
def {kind}({parameter}) -> Task:
    """{title} of the benchmark {name}."""
    return published_task(
        "{kind}",
        [
{rows}
        ],
{argument}    )
'''


def letter_pattern(options: int) -> str:
    """Return a regular expression, to be matched ignoring case, for the option letter in a simple answer.

    It matches an answer that is a letter, that begins with a label ("c) ..."), or that ends with "answer is" or
    "answer:" and a letter. Wherever it matches, :func:`.multiple_choice.answers.find_chosen_option` returns the same
    letter; that function recognises many more forms.

    Args:
        options: Number of options, lettered from ``a``.
    """
    letter = f"([a-{option_letter(options - 1)}])"
    margin = r"[\s*_`\"'()\[\]]{0,9}"
    no_other = rf"(?![\s\S]*(?<!\w)[a-{option_letter(options - 1)}](?!\w))"
    letter_only = rf"\A{margin}{letter}{margin}\.?{margin}\Z"
    label_first = rf"\A{margin}{letter}[).:][*\s]{no_other}"
    phrase_before = rf"\A[^\n]{{0,40}}\banswer{margin}(?:is|:){margin}{letter}{margin}\.?{margin}\Z"
    return f"{letter_only}|{label_first}|{phrase_before}"


def inspect_hub_config(benchmark: Benchmark) -> str:
    """Return the ``eval.yaml`` of a dataset on a hub, with the benchmark's prompts and Inspect's built-in scorers.

    Only built-in scorers are allowed there: :func:`letter_pattern` finds letters, freeform answers are scored by the F1
    score of their words, and cloze answers by ``exact``. The tasks of :func:`inspect_task_source`
    have climassay's own scores.
    """
    import yaml

    max_options = max((len(question.options) for question in benchmark.questions), default=0) or 1
    pattern = {"name": "pattern", "args": {"pattern": letter_pattern(max_options)}}
    tasks = [
        {
            "id": kind,
            "config": kind,
            "split": "test",
            "field_spec": {"input": "messages", "target": "target", "metadata": ["id", "level"]},
            "solvers": [{"name": "generate", "args": {"max_tokens": MAX_TOKENS[kind], "temperature": 0.0}}],
            "scorers": [pattern if TYPES[kind].has_options else {"name": "exact" if TYPES[kind].has_gap else "f1"}],
        }
        for kind in benchmark.kinds
    ]
    data = {"name": benchmark.name, "evaluation_framework": "inspect-ai", "tasks": tasks}
    return str(yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=120))


def inspect_task_source(benchmark: Benchmark, rows: Mapping[Kind, Sequence[str]]) -> str:
    """Return the Python source of the benchmark's Inspect tasks; ``rows`` are the names of the files of each kind."""
    text = _TASK_FILE
    for kind in benchmark.kinds:
        paths = "\n".join(f'            HERE / "{file}",' for file in rows[kind])
        is_judged = bool(ENTAILMENT_SCORES[kind])
        text += _TASK.format(
            kind=kind,
            title=TYPES[kind].plural.capitalize(),
            name=benchmark.name,
            rows=paths,
            parameter="entailment: str | None = None" if is_judged else "",
            argument="        entailment=entailment,\n" if is_judged else "",
        )
    return text
