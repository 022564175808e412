"""``climassay quickstart``, ``climassay demo`` and ``climassay doctor``: the first steps."""

import getpass
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from climassay.cli.options import (
    JsonOption,
    WorkspaceOption,
    print_json,
    shown_progress,
    stderr_console,
    stdout_console,
)
from climassay.errors import InputError, NoAnswerError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from climassay.doctor import Finding

SKIP = ("s", "skip")
_STYLES = {"ok": "green", "warning": "yellow", "missing": "yellow", "broken": "red"}
NEXT = (
    "climassay serve                     # the same in the browser: annotate, check claims, read results",
    "climassay doctor                    # is something missing?",
    "climassay evaluate init my.toml     # a whole experiment: models x settings x tasks",
    "climassay generate init recipe.toml # a whole benchmark from your own books",
)


def quickstart(
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Accept everything that is offered, without asking.")
    ] = False,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            "-m",
            help="local:smollm2, local:FOLDER_OR_HUB_ID, PROVIDER:MODEL or openai:MODEL, asked at $OPENAI_BASE_URL if "
            "that is set.",
        ),
    ] = "local:smollm2",
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Get started in six steps: add a document, ask, check a claim, make questions, annotate, evaluate.

    Press Enter to accept what is offered, s to skip a step. Run it again to continue where it stopped.
    """
    from dataclasses import asdict

    from climassay.quickstart import QuickstartContext, run_quickstart
    from climassay.workspace import Workspace

    if not yes and not sys.stdin.isatty():
        raise InputError("Nobody can answer here: run it in a terminal, or with --yes to accept every offer.")
    place = Workspace.open(workspace)
    console = stderr_console() if as_json else stdout_console()
    dialog = _Terminal(console, takes_offers=yes)
    dialog.say(f"Everything is kept in {place.root}. Enter takes what is offered, s skips a step, Ctrl-C leaves.")
    annotator = "quickstart --yes"  # nobody's name where nobody looks at the questions
    if not yes:
        try:
            annotator = getpass.getuser()
        except (KeyError, OSError):
            annotator = "me"
    context = QuickstartContext(place, model, annotator, shown_progress(as_json))
    try:
        outcomes = run_quickstart(context, dialog)
    finally:
        context.close()
    files = sorted(path for path in context.folder.glob("*") if path.is_file()) if context.folder.is_dir() else []
    if as_json:
        commands = [command.partition("#")[0].strip() for command in NEXT]
        steps = [asdict(outcome) for outcome in outcomes]
        print_json({"workspace": place.root, "steps": steps, "files": files, "next": commands})
    else:
        console.print("\nWhat there is now", style="bold")
        for outcome in outcomes:
            console.print(f"  {outcome.step:<10} {outcome.state}", highlight=False)
        for line in (*map(str, files), "", "Next:", *NEXT):
            console.print(f"  {line}", highlight=False)
    if failed := [outcome.step for outcome in outcomes if outcome.state == "failed"]:
        raise NoAnswerError(f"The model gave no answer in {', '.join(failed)}: run it again to go on there.")


class _Terminal:
    """Asks and tells on the terminal."""

    def __init__(self, console: "Console", *, takes_offers: bool) -> None:
        self._console, self._takes_offers = console, takes_offers

    @property
    def patient(self) -> bool:
        """Whether somebody is there to answer again."""
        return not self._takes_offers

    def say(self, text: str) -> None:
        """Print a text as it is."""
        self._console.print(text, highlight=False)

    def answer(self, question: str, offer: str) -> str | None:
        """What is typed, the offer where that is nothing, None where it is s."""
        if self._takes_offers:
            self.say(f"{question}: {offer}")
            return offer
        try:
            said = self._console.input(f"{question} [{offer}]: ", markup=False).strip()
        except EOFError:
            raise KeyboardInterrupt from None
        return None if said.lower() in SKIP else said or offer


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

    findings = []
    area = ""
    for finding in examine(workspace, online=online):
        findings.append(finding)
        if as_json:
            continue
        if finding.area != area:
            area = finding.area
            stdout_console().print(f"\n{area.capitalize()}", style="bold")
        for line in _lines(finding):
            stdout_console().print(line)
    healthy = is_healthy(findings)
    if as_json:
        print_json({"healthy": healthy, "findings": [asdict(finding) for finding in findings]})
    else:
        rest = sum(finding.level != "ok" for finding in findings)
        said = f"The main paths work; {rest} other {'thing is' if rest == 1 else 'things are'} named above."
        if not healthy:
            names = ", ".join(finding.name for finding in findings if finding.stops)
            said = f"Something that is needed does not work: {names}."
        stdout_console().print(f"\n{said if rest else 'All is well.'}", highlight=False)
    if not healthy:
        raise typer.Exit(1)


def _lines(finding: "Finding") -> "list[Text]":
    from rich.text import Text

    style = _STYLES[finding.level]
    lines = [Text.assemble((f"  {finding.level:<8}", style), f"{finding.name}: {finding.said}")]
    if finding.advice:
        lines.append(Text(f"          -> {finding.advice}", style="bold" if finding.stops else "dim"))
    return lines
