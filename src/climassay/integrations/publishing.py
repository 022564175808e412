"""Writing a benchmark as a folder that people can put on a hub and run with other frameworks."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from climassay import __version__
from climassay.errors import InputError
from climassay.integrations.benchmark import FRAMEWORK_KINDS, Benchmark, open_benchmark
from climassay.integrations.data_card import data_card
from climassay.integrations.inspect_files import hub_eval, task_file
from climassay.integrations.lm_eval.tasks import harness_files, rows_file
from climassay.integrations.rows import as_json_lines, climaqa_row, prompt_row, question_row
from climassay.io import parse_json, read_text, remove_files, write_files
from climassay.primer import PRIMER
from climassay.questions import Kind

Part = Literal["inspect", "lm-eval"]
PARTS: tuple[Part, ...] = ("inspect", "lm-eval")
MANIFEST = "benchmark.json"
PROMPTS = "prompts"
HARNESS = "lm_eval"


@dataclass(frozen=True, slots=True)
class PublishedBenchmark:
    """What was written."""

    folder: Path
    name: str
    content_sha256: str
    """Over questions and prompts; see :attr:`Benchmark.content_sha256`."""
    counts: Mapping[Kind, int]
    parts: tuple[Part, ...]
    """Frameworks that the folder can be used with."""
    written: tuple[str, ...]
    """Files that are new or other than before, relative to the folder."""
    unchanged: tuple[str, ...]
    removed: tuple[str, ...]
    """Files of the benchmark that was there before, with ``force``."""
    skipped: tuple[str, ...] = ()
    """One sentence for each row of the source that was left out."""


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

    Writing the same benchmark again changes nothing; a framework left out the second time stays. Neither framework
    needs to be installed.

    Args:
        file: ``primer``, or a question file in any known format.
        output: The folder; made where it is missing.
        inspect: Write ``eval.yaml`` and ``inspect_tasks.py``.
        lm_eval: Write the folder ``lm_eval`` for ``lm_eval --include_path``.
        name: Begins the names of its tasks; by default from the file's name.
        kinds: Publish these kinds of questions.
        examples: Worked examples in every prompt.
        pool: Where they are drawn from, never from the test.
        seed: Of the draw.
        prompts: Folder of templates that replace built-in ones.
        force: Replace another benchmark in the folder.

    Raises:
        InputError: The questions cannot be read, or the folder holds something else and ``force`` is not given.
    """
    benchmark = open_benchmark(file, name=name, kinds=kinds, examples=examples, pool=pool, seed=seed, prompts=prompts)
    folder = Path(output)
    before = _manifest(folder)
    same = before is not None and before["content_sha256"] == benchmark.content_sha256
    if not force:
        _check_free(folder, benchmark, before)
    wanted = {part for part, asked in zip(PARTS, (inspect, lm_eval), strict=True) if asked}
    if same and before is not None and before["name"] == benchmark.name:
        wanted |= set(before["parts"])
    parts = tuple(part for part in PARTS if part in wanted)
    files = _files(benchmark, parts)
    written, unchanged = write_files(folder, {path: text.encode() for path, text in files.items()})
    removed = remove_files(folder, set(before["files"] if before else ()) - set(files))
    return PublishedBenchmark(
        folder=folder,
        name=benchmark.name,
        content_sha256=benchmark.content_sha256,
        counts=_counts(benchmark),
        parts=parts,
        written=written,
        unchanged=unchanged,
        removed=removed,
        skipped=benchmark.skipped,
    )


def _files(benchmark: Benchmark, parts: Sequence[Part]) -> dict[str, str]:
    """Text of every file by its path; the manifest comes last, so that it tells of a folder that is whole."""
    rows = {
        kind: [f"{PROMPTS}/{rows_file(kind, level)}" for level in benchmark.levels(kind)] for kind in benchmark.kinds
    }
    files = {"README.md": data_card(benchmark, parts, rows)}
    files["data/questions.jsonl"] = as_json_lines(question_row(question) for question in benchmark.questions)
    for kind in benchmark.kinds:
        own = [question for question in benchmark.questions if question.kind == kind]
        files[f"data/climaqa_{kind}.jsonl"] = as_json_lines(climaqa_row(question) for question in own)
        posed = benchmark.posed(kind)
        for level, path in zip(benchmark.levels(kind), rows[kind], strict=True):
            files[path] = as_json_lines(prompt_row(row) for row in posed if row.question.level == level)
    if "inspect" in parts:
        files["eval.yaml"] = hub_eval(benchmark)
        files["inspect_tasks.py"] = task_file(benchmark, rows)
    if "lm-eval" in parts:
        files |= {f"{HARNESS}/{path}": text for path, text in harness_files(benchmark, f"../{PROMPTS}").items()}
    manifest = {
        "name": benchmark.name,
        "content_sha256": benchmark.content_sha256,
        "questions": _counts(benchmark),
        "parts": list(parts),
        "prompts": {kind: benchmark.prompts.of(kind).sha256 for kind in benchmark.kinds},
        "climassay": __version__,
        "files": sorted([*files, MANIFEST]),
    }
    files[MANIFEST] = json.dumps(manifest, ensure_ascii=False, indent=2) + "\n"
    return files


def _counts(benchmark: Benchmark) -> dict[Kind, int]:
    return {kind: sum(question.kind == kind for question in benchmark.questions) for kind in benchmark.kinds}


def _manifest(folder: Path) -> dict[str, Any] | None:
    """What the folder says it holds; None where it says nothing."""
    file = folder / MANIFEST
    if not file.is_file():
        return None
    try:
        found = parse_json(read_text(file))
        if {"name", "content_sha256", "parts", "files"} <= set(found):
            return dict(found)
    except (OSError, ValueError, TypeError):
        pass
    return None


def _check_free(folder: Path, benchmark: Benchmark, before: Mapping[str, Any] | None) -> None:
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file: name a folder for the benchmark.")
    if before is None:
        if folder.is_dir() and any(folder.iterdir()):
            raise InputError(f"{folder} holds other files: name an empty folder, or use --force to write into it.")
        return
    if before["name"] != benchmark.name or before["content_sha256"] != benchmark.content_sha256:
        raise InputError(
            f"{folder} holds another benchmark ({before['name']}, {before['content_sha256'][:12]}): name another "
            "folder, or replace it with --force."
        )
