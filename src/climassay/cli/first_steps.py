"""``climassay demo`` and ``climassay doctor``: the first steps."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from climassay.cli.options import JsonOption
from climassay.cli.output import print_json, progress_bars, stdout_console

if TYPE_CHECKING:
    from rich.text import Text

    from climassay.doctor import Diagnosis

_STYLES = {"ok": "green", "warning": "yellow", "missing": "yellow", "broken": "red"}


def demo(
    *,
    output: Annotated[Path, Parameter(alias="-o")] = Path("demo/report.html"),
    as_json: JsonOption = False,
) -> None:
    """Show what climassay does with the bundled model and books: find, ask, evaluate, judge, check, report.

    Args:
        output: HTML file to which the report is written.
    """
    from climassay.demo import run_demo
    from climassay.workspace import Workspace

    console = stdout_console()

    def print_line(line: str) -> None:
        if not as_json:
            console.print(line, highlight=False)

    print_line("climassay shows what it does, with a very small model.")
    workspace = Workspace.open(output.parent / "workspace")
    steps = run_demo(workspace, output, say=print_line, progress=progress_bars())
    if as_json:
        print_json({"report": output, **{name: value for step in steps for name, value in step.data.items()}})
    else:
        print_line(f"\nReport: {output}")


def doctor(
    *,
    online: bool = False,
    workspace: Annotated[Path | None, Parameter(alias="-w", env_var="CLIMASSAY_WORKSPACE")] = None,
    as_json: JsonOption = False,
) -> None:
    """Report what is missing or broken on this machine and in this workspace, and how to fix it.

    The exit code is 1 if something that the main commands need is missing or broken, otherwise 0.

    Args:
        online: Also contact the server of openai: models; otherwise the network is not used.
        workspace: Folder to inspect; it is not created.
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
        for line in _diagnosis_lines(diagnosis):
            stdout_console().print(line)
    is_everything_fine = is_healthy(diagnoses)
    if as_json:
        print_json({"healthy": is_everything_fine, "findings": [asdict(diagnosis) for diagnosis in diagnoses]})
    else:
        stdout_console().print(f"\n{_summary(diagnoses, is_everything_fine)}", highlight=False)
    if not is_everything_fine:
        sys.exit(1)


def _summary(diagnoses: "list[Diagnosis]", is_everything_fine: bool) -> str:
    if not is_everything_fine:
        return (
            f"Something that is needed does not work: {', '.join(item.name for item in diagnoses if item.is_blocking)}."
        )
    n_others = sum(diagnosis.level != "ok" for diagnosis in diagnoses)
    if n_others == 0:
        return "All is well."
    return f"The main paths work; {n_others} other {'thing is' if n_others == 1 else 'things are'} named above."


def _diagnosis_lines(diagnosis: "Diagnosis") -> "list[Text]":
    from rich.text import Text

    lines = [
        Text.assemble((f"  {diagnosis.level:<8}", _STYLES[diagnosis.level]), f"{diagnosis.name}: {diagnosis.message}")
    ]
    if diagnosis.advice:
        lines.append(Text(f"          -> {diagnosis.advice}", style="bold" if diagnosis.is_blocking else "dim"))
    return lines
