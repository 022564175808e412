"""``climassay demo`` and ``climassay doctor``: the first steps."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from climassay.cli.options import (
    JsonOption,
    print_json,
    shown_progress,
    stdout_console,
)

if TYPE_CHECKING:
    from rich.text import Text

    from climassay.doctor import Diagnosis

_STYLES = {"ok": "green", "warning": "yellow", "missing": "yellow", "broken": "red"}


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="HTML report to write.")] = Path("demo/report.html"),
    as_json: JsonOption = False,
) -> None:
    """Show what climassay does, on the bundled model and books: find, ask, evaluate, judge, check, report."""
    from climassay.workspace import Workspace

    console = stdout_console()

    def say(line: str) -> None:
        if not as_json:
            console.print(line, highlight=False)

    say("climassay shows what it does, with a very small model.")
    from climassay.demo import run_demo

    place = Workspace.open(output.parent / "workspace")
    steps = run_demo(place, output, say=say, progress=shown_progress(as_json))
    if as_json:
        print_json({"report": output, **{name: value for step in steps for name, value in step.data.items()}})
    else:
        say(f"\nReport: {output}")


def doctor(
    online: Annotated[
        bool,
        typer.Option("--online", help="Also contact the server of openai: models; otherwise the network is not used."),
    ] = False,
    workspace: Annotated[
        Path | None,
        typer.Option("--workspace", "-w", help="Folder to inspect; it is not created.", envvar="CLIMASSAY_WORKSPACE"),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Report what is missing or broken on this machine and in this workspace, and how to fix it.

    The exit code is 1 where something that the main paths need is missing or broken, else 0.
    """
    from dataclasses import asdict

    from climassay.doctor import examine, is_healthy

    diagnoses = []
    area = ""
    for diagnosis in examine(workspace, online=online):
        diagnoses.append(diagnosis)
        if as_json:
            continue
        if diagnosis.area != area:
            area = diagnosis.area
            stdout_console().print(f"\n{area.capitalize()}", style="bold")
        for line in _lines(diagnosis):
            stdout_console().print(line)
    healthy = is_healthy(diagnoses)
    if as_json:
        print_json({"healthy": healthy, "findings": [asdict(diagnosis) for diagnosis in diagnoses]})
    else:
        rest = sum(diagnosis.level != "ok" for diagnosis in diagnoses)
        said = f"The main paths work; {rest} other {'thing is' if rest == 1 else 'things are'} named above."
        if not healthy:
            names = ", ".join(diagnosis.name for diagnosis in diagnoses if diagnosis.is_blocking)
            said = f"Something that is needed does not work: {names}."
        stdout_console().print(f"\n{said if rest else 'All is well.'}", highlight=False)
    if not healthy:
        raise typer.Exit(1)


def _lines(diagnosis: "Diagnosis") -> "list[Text]":
    from rich.text import Text

    style = _STYLES[diagnosis.level]
    lines = [Text.assemble((f"  {diagnosis.level:<8}", style), f"{diagnosis.name}: {diagnosis.message}")]
    if diagnosis.advice:
        lines.append(Text(f"          -> {diagnosis.advice}", style="bold" if diagnosis.is_blocking else "dim"))
    return lines
