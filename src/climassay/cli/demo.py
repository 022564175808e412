"""``climassay demo``."""

from pathlib import Path
from typing import Annotated

import typer

from climassay.cli.output import JsonOption, print_json, progress_bar, stdout_console


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="HTML report to write.")] = Path("demo/report.html"),
    as_json: JsonOption = False,
) -> None:
    """Show what climassay does, on the bundled model and books: find, ask, evaluate, judge, check, report."""
    from collections.abc import Callable

    from climassay.workspace import Workspace

    console = stdout_console()

    def say(line: str) -> None:
        if not as_json:
            console.print(line, highlight=False)

    say("climassay shows what it does, with a very small model.")
    from climassay.demo import run_demo

    with progress_bar(as_json) as bars:

        def hide() -> None:
            for task in bars.task_ids:
                bars.update(task, visible=False)

        def progress(name: str, total: int | None) -> Callable[[int], None]:
            hide()
            bar = bars.add_task(name, total=total)
            return lambda count: bars.advance(bar, count)

        steps = run_demo(Workspace.open(output.parent / "workspace"), output, say=say, progress=progress)
        hide()
    if as_json:
        print_json({"report": output, **{name: value for step in steps for name, value in step.data.items()}})
    else:
        say(f"\nReport: {output}")
