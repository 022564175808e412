"""The README of a published benchmark: a data card that hubs understand."""

from collections.abc import Mapping, Sequence
from typing import Any

from climassay.integrations.benchmark import Benchmark
from climassay.integrations.lm_eval.tasks import HarnessTask, harness_tasks
from climassay.integrations.scoring import SCORES
from climassay.questions import Kind

_KINDS: Mapping[Kind, str] = {
    "mcq": "multiple choice",
    "freeform": "freeform, answered in at most two sentences",
    "cloze": "cloze, filled with one scientific word",
}
_TASKS: Mapping[Kind, str] = {"mcq": "multiple-choice", "freeform": "question-answering", "cloze": "fill-mask"}


def data_card(benchmark: Benchmark, parts: Sequence[str], rows: Mapping[Kind, Sequence[str]]) -> str:
    """Text of the README.

    Args:
        benchmark: What is published.
        parts: Frameworks it is published for: ``inspect``, ``lm-eval``.
        rows: Files of prompts of each kind, relative to the folder.
    """
    sections = [
        _head(benchmark, rows),
        f"# {benchmark.name}\n\n{len(benchmark.questions)} questions on climate, published with climassay.\n",
        _table(benchmark),
        _content(benchmark),
    ]
    if "inspect" in parts:
        sections.append(_inspect(benchmark))
    if "lm-eval" in parts:
        sections.append(_harness(benchmark, harness_tasks(benchmark)))
    return "\n".join(sections)


def _head(benchmark: Benchmark, rows: Mapping[Kind, Sequence[str]]) -> str:
    import yaml

    configs: list[dict[str, Any]] = [
        {"config_name": kind, "data_files": [{"split": "test", "path": list(rows[kind])}]} for kind in benchmark.kinds
    ]
    head = {
        "pretty_name": benchmark.name,
        "language": ["en"],
        "tags": ["climate"],
        "task_categories": [_TASKS[kind] for kind in benchmark.kinds],
        "configs": configs,
    }
    return f"---\n{yaml.safe_dump(head, sort_keys=False, allow_unicode=True, width=120)}---\n"


def _table(benchmark: Benchmark) -> str:
    lines = ["| kind | level | questions | scores |", "|---|---|---|---|"]
    for kind in benchmark.kinds:
        for level in benchmark.levels(kind):
            count = sum(question.kind == kind and question.level == level for question in benchmark.questions)
            lines.append(f"| {_KINDS[kind]} | {level or '-'} | {count} | {', '.join(SCORES[kind])} |")
    return "\n".join(lines) + "\n"


def _content(benchmark: Benchmark) -> str:
    shots = benchmark.shots
    examples = (
        "Prompts have no worked examples."
        if shots is None
        else f"Every prompt has {shots.count} worked examples from {shots.pool.name} (seed {shots.seed})."
    )
    return f"""\
## Files

- `data/questions.jsonl`: the questions in climassay's format (`climassay evaluate mcq data/questions.jsonl`).
- `data/climaqa_*.jsonl`: the same as the tables of the published ClimaQA data set.
- `prompts/*.jsonl`: each question with its prompt filled in, what every framework sends. {examples}
- `benchmark.json`: what this folder holds; SHA-256 of questions and prompts
  `{benchmark.content_sha256}`.

Add a licence, where the questions come from and how they were checked before you put this on a hub.
"""


def _inspect(benchmark: Benchmark) -> str:
    kinds = ", ".join(f"`{kind}`" for kind in benchmark.kinds)
    return f"""\
## Inspect

```console
$ pip install 'climassay[inspect]'
$ inspect eval inspect_tasks.py@{benchmark.kinds[0]} --model climassay/local:smollm2
```

Tasks: {kinds}. From a hub, without climassay: `inspect eval hf/ORGANISATION/DATASET` (`eval.yaml`); it sends
the same prompts, and scores freeform and cloze answers with Inspect's own scorers. The chats end with the start of the
answer, which a provider must go on from.
"""


def _harness(benchmark: Benchmark, tasks: Sequence[HarnessTask]) -> str:
    names = "\n".join(f"- `{task.name}`: {', '.join(task.metrics)}" for task in tasks)
    return f"""\
## lm-evaluation-harness

```console
$ pip install 'climassay[lm-eval,local]'
$ lm_eval --include_path lm_eval --tasks {benchmark.name} --apply_chat_template --model hf \\
    --model_args pretrained=MODEL --output_path results
```

The group `{benchmark.name}` has these tasks; those with likelihoods need no climassay:

{names}
"""
