"""``climassay doctor``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from climassay.cli.output import JsonOption, print_json, stdout_console

if TYPE_CHECKING:
    from rich.text import Text

    from climassay.doctor import Finding

_STYLES = {"ok": "green", "warning": "yellow", "missing": "yellow", "broken": "red"}


def doctor(
    online: Annotated[
        bool, typer.Option("--online", help="Also ask the server of openai: models; else no network is touched.")
    ] = False,
    workspace: Annotated[
        Path | None,
        typer.Option("--workspace", "-w", help="Folder to look into; it is not made.", envvar="CLIMASSAY_WORKSPACE"),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Say what is missing or broken on this machine and in this workspace, and how to get it.

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
        stdout_console().print(f"\n{_summary(findings, healthy)}", highlight=False)
    if not healthy:
        raise typer.Exit(1)


def _lines(finding: "Finding") -> "list[Text]":
    from rich.text import Text

    style = _STYLES[finding.level]
    lines = [Text.assemble((f"  {finding.level:<8}", style), f"{finding.name}: {finding.said}")]
    if finding.advice:
        lines.append(Text(f"          -> {finding.advice}", style="bold" if finding.stops else "dim"))
    return lines


def _summary(findings: "list[Finding]", healthy: bool) -> str:
    if not healthy:
        names = ", ".join(finding.name for finding in findings if finding.stops)
        return f"Something that is needed does not work: {names}."
    rest = sum(finding.level != "ok" for finding in findings)
    if not rest:
        return "All is well."
    return f"The main paths work; {rest} other {'thing is' if rest == 1 else 'things are'} named above."
