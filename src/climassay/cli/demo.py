"""``climassay demo``."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from climassay.cli.output import JsonOption, print_json, progress_bar, stdout_console


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="HTML report to write.")] = Path("demo/report.html"),
    as_json: JsonOption = False,
) -> None:
    """Run the whole path on the bundled models and books: index, ask, evaluate, debate, report."""
    from rich.text import Text

    from climassay.demo import run_demo
    from climassay.evaluation import mcq_tables
    from climassay.models import load_model
    from climassay.models.encoder import load_encoder
    from climassay.reporting import as_rich
    from climassay.workspace import Workspace

    workspace = Workspace.open(output.parent / "workspace")
    with progress_bar(as_json) as progress:

        def show(name: str, total: int) -> Callable[[int], None]:
            task = progress.add_task(name, total=total)
            return lambda count: progress.advance(task, count)

        loading = show("Loading the bundled models", 2)
        encoder = load_encoder("local:minilm")
        loading(1)
        model = load_model("local:smollm2")
        loading(1)
        try:
            result = run_demo(workspace, output, model, encoder, show)
        finally:
            model.close()
    if as_json:
        print_json(
            {
                "report": result.report,
                "documents": result.documents,
                "passages": result.passages,
                "answers": [{"question": answer.question, "text": answer.text} for answer in result.answers],
                "claim": result.factcheck.claim.text,
                "verdict": result.factcheck.verdict.label,
                "accuracy": result.evaluation.scores.accuracy,
                "paired": result.evaluation.scores.paired,
            }
        )
        return
    console = stdout_console()
    for answer in result.answers:
        console.print(Text(f"\n{answer.question}", style="bold"))
        console.print(Text(answer.text))
        for source in answer.sources:
            console.print(Text(f"  [{source.number}] {source.citation}", style="dim"))
    verdict = result.factcheck.verdict
    console.print(Text(f"\n{result.factcheck.claim.text}", style="bold"))
    console.print(Text(f"Verdict after {len(result.factcheck.rounds)} rounds: {verdict.label or verdict.outcome}"))
    console.print()
    for table in mcq_tables(result.evaluation.scores):
        console.print(as_rich(table))
    console.print(Text(f"Report: {result.report}"))
