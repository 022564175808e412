"""``climassay publish``."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from climassay.cli.model_options import PromptsOption
from climassay.cli.output import JsonOption, print_json, stderr_console, stdout_console

if TYPE_CHECKING:
    from climassay.integrations import PublishedBenchmark


class KindChoice(StrEnum):
    """A kind of question."""

    mcq = "mcq"
    freeform = "freeform"
    cloze = "cloze"


def publish(
    file: Annotated[
        str,
        typer.Argument(help="Questions: climassay, ClimaQA or Pira tables (CSV, JSONL, Parquet, .gz); or 'primer'."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the benchmark.")],
    inspect: Annotated[bool, typer.Option("--inspect", help="Write tasks for Inspect.")] = False,
    lm_eval: Annotated[bool, typer.Option("--lm-eval", help="Write tasks for lm-evaluation-harness.")] = False,
    name: Annotated[str | None, typer.Option(help="Begins the names of its tasks; by default the file's name.")] = None,
    kind: Annotated[list[KindChoice] | None, typer.Option(help="Publish this kind only; repeat.")] = None,
    examples: Annotated[int, typer.Option(min=0, help="Worked examples in every prompt.")] = 0,
    pool: Annotated[str, typer.Option(help="Question file of the examples, or 'primer'.")] = "primer",
    seed: Annotated[int, typer.Option(help="Seed of the draw of examples.")] = 0,
    prompts: PromptsOption = None,
    force: Annotated[bool, typer.Option("--force", help="Replace another benchmark in the folder.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write a benchmark as a folder for other frameworks (both where none is named): data, data card, tasks."""
    from climassay.integrations import publish_benchmark

    both = not (inspect or lm_eval)
    result = publish_benchmark(
        file,
        output,
        inspect=inspect or both,
        lm_eval=lm_eval or both,
        name=name,
        kinds=[choice.value for choice in kind] if kind else ("mcq", "freeform", "cloze"),
        examples=examples,
        pool=pool,
        seed=seed,
        prompts=prompts,
        force=force,
    )
    if as_json:
        print_json(result)
    else:
        _show(result)


def _show(result: "PublishedBenchmark") -> None:
    counts = ", ".join(f"{count} {kind}" for kind, count in result.counts.items())
    console = stdout_console()
    console.print(f"{result.name} in {result.folder}: {counts}; for {' and '.join(result.parts)}.", highlight=False)
    for path in result.written:
        console.print(f"  {path}", highlight=False)
    note = stderr_console()
    note.print(f"{len(result.written)} files written, {len(result.unchanged)} were the same already.", highlight=False)
    if result.removed:
        note.print(f"{len(result.removed)} files of the benchmark that was there before are removed.", highlight=False)
    if result.skipped:
        note.print(f"{len(result.skipped)} rows left out, the first: {result.skipped[0]}", highlight=False)
