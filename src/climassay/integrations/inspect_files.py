"""The files that bring a published benchmark to Inspect: ``eval.yaml`` for the hub, and a small task file.

This module does not import Inspect, so that a benchmark can be published without it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from climassay.integrations.asking import MAX_TOKENS
from climassay.integrations.benchmark import Benchmark
from climassay.questions import Kind, option_letter

_MARKS = r"\s*[*_`\"']*\s*"
_TASK_FILE = '''\
"""Tasks of this benchmark for Inspect: `inspect eval inspect_tasks.py --model MODEL`; needs climassay[inspect]."""

from pathlib import Path

from climassay.integrations.inspect.tasks import published_task
from inspect_ai import Task, task

HERE = Path(__file__).resolve().parent
'''
_TASK = '''

@task
def {kind}() -> Task:
    """{title} of the benchmark {name}."""
    return published_task(
        "{kind}",
        [
{rows}
        ],
    )
'''
_TITLES: dict[Kind, str] = {
    "mcq": "Multiple-choice questions",
    "freeform": "Freeform questions",
    "cloze": "Cloze statements",
}


def letter_pattern(options: int) -> str:
    """A regular expression that finds the letter of an answer as ``parse_letter`` does, for Inspect's ``pattern``.

    Exactly one of its groups takes part in a match; compare it with case ignored.

    Args:
        options: Number of options.
    """
    letter = f"[a-{option_letter(options - 1)}]"
    start = rf"{_MARKS}\(?\[?{{}}(?:[)\].:,*]|\s*\n|{_MARKS}\Z)"
    named = r"\b(?:answer|option|choice)\b(?:\s+is)?\s*:?\s*[(\[*]*{}\b(?!\w)"
    marked = r"\({}\)"
    taken, free = f"({letter})", f"(?:{letter})"
    # parse_letter tries the three in turn over the whole text, an alternation would take what comes first in it.
    later = rf"[\s\S]*?{named.format(taken)}|(?![\s\S]*?{named.format(free)})[\s\S]*?{marked.format(taken)}"
    return rf"\A(?:{start.format(taken)}|(?!{start.format(free)})(?:{later}))"


def hub_eval(benchmark: Benchmark) -> str:
    """The ``eval.yaml`` of a data set on the hub: the same prompts, scored by what Inspect itself has.

    Only built-in scorers may stand there: letters are found by :func:`letter_pattern`, freeform answers have the F1 of
    their words, cloze answers Inspect's ``exact``. The task file has climassay's own scores.
    """
    import yaml

    tasks = [
        {
            "id": kind,
            "config": kind,
            "split": "test",
            "field_spec": {"input": "messages", "target": "target", "metadata": ["id", "level"]},
            "solvers": [{"name": "generate", "args": {"max_tokens": MAX_TOKENS[kind], "temperature": 0.0}}],
            "scorers": [_hub_scorer(benchmark, kind)],
        }
        for kind in benchmark.kinds
    ]
    data = {"name": benchmark.name, "evaluation_framework": "inspect-ai", "tasks": tasks}
    return str(yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=120))


def _hub_scorer(benchmark: Benchmark, kind: Kind) -> dict[str, Any]:
    if kind == "mcq":
        most = max(len(question.options) for question in benchmark.questions if question.kind == "mcq")
        return {"name": "pattern", "args": {"pattern": letter_pattern(most)}}
    return {"name": "f1" if kind == "freeform" else "exact"}


def task_file(benchmark: Benchmark, rows: Mapping[Kind, Sequence[str]]) -> str:
    """Text of the Python file with the benchmark's tasks.

    Args:
        benchmark: What is published.
        rows: Files of prompts of each kind, relative to the task file's folder.
    """
    text = _TASK_FILE
    for kind in benchmark.kinds:
        paths = "\n".join(f'            HERE / "{file}",' for file in rows[kind])
        text += _TASK.format(kind=kind, title=_TITLES[kind], name=benchmark.name, rows=paths)
    return text
