"""``climassay confidence lint``: check how a text states its certainty."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from climassay.cli.output import JsonOption, print_json
from climassay.errors import InputError

if TYPE_CHECKING:
    from climassay.confidence.linting import Checked, Rule


class Form(StrEnum):
    """How findings are printed."""

    TEXT = "text"
    GITHUB = "github"
    SARIF = "sarif"


def lint(
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Drafts: Markdown, plain text, HTML, Word (.docx) or PDF.", show_default=False),
    ] = None,
    rules: Annotated[
        str,
        typer.Option(help="Rules, divided by commas: these alone; with a minus before each, all but these; or all."),
    ] = "",
    tagger: Annotated[
        str | None,
        typer.Option(help="Also name tags that this tagger would not give: its file, or default."),
    ] = None,
    certainty: Annotated[float, typer.Option(help="Least probability of the tagger's level.")] = 0.7,
    html: Annotated[Path | None, typer.Option("--html", help="Also write a page with findings in the text.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Of one Word file: a copy with the findings as comments.")
    ] = None,
    as_json: JsonOption = False,
    form: Annotated[Form, typer.Option("--format", help="How findings are printed.")] = Form.TEXT,
    exit_zero: Annotated[bool, typer.Option("--exit-zero", help="Exit with 0 in spite of findings.")] = False,
    list_rules: Annotated[bool, typer.Option("--list-rules", help="Explain all rules, and check nothing.")] = False,
) -> None:
    """Check a draft of an assessment report for how it states certainty.

    It names findings without a term of confidence or likelihood, words outside the calibrated vocabulary, likelihood
    and confidence that do not go together, tags that contradict themselves or their evidence. A comment
    <!-- climassay: ignore RULE --> silences a rule in its paragraph. Of Word files (.docx) places are
    paragraphs.

    Exit code: 0 nothing found, 1 something found, 2 a file or an option cannot be used.
    """
    from climassay.confidence.linting import check, chosen_rules, read_draft

    if list_rules:
        _tell_rules(as_json)
        return
    if not files:
        raise InputError("Name at least one file to check.")
    if as_json and form is not Form.TEXT:
        raise InputError("Choose --json or --format, not both.")
    if output is not None and (len(files) != 1 or {files[0].suffix.lower(), output.suffix.lower()} != {".docx"}):
        raise InputError("Comments are written into a copy of one Word file: lint draft.docx -o commented.docx.")
    chosen = chosen_rules(rules)
    accuracy = ""
    if tagger is not None:
        rule, accuracy = _with_tagger(tagger, certainty)
        chosen = (*chosen, rule)
    # All files are opened before any is checked, so that a wrong name is told at once.
    results = [check(draft, chosen) for draft in [read_draft(file) for file in files]]
    if html is not None:
        from climassay.confidence.linting.presentation import write_lint_page

        write_lint_page(results, html, accuracy)
    if output is not None:
        from climassay.confidence.linting.word_comments import write_comments

        write_comments(files[0], results[0], output)
    _print(results, form, as_json)
    if any(checked.findings for checked in results) and not exit_zero:
        raise typer.Exit(1)


def _with_tagger(name: str, certainty: float) -> "tuple[Rule, str]":
    from climassay.confidence.linting.tagger_rule import open_tagger, tagger_rule

    opened = open_tagger(None if name == "default" else Path(name))
    return tagger_rule(opened.tagger, opened.accuracy, certainty), str(opened.accuracy or "not measured")


def _print(results: "list[Checked]", form: Form, as_json: bool) -> None:
    from climassay.confidence.linting import presentation

    if as_json:
        print_json({"files": [presentation.data(checked) for checked in results]})
    elif form is Form.SARIF:
        print_json(presentation.sarif(results))
    else:
        lines = presentation.github_lines if form is Form.GITHUB else presentation.text_lines
        for checked in results:
            for line in lines(checked):
                typer.echo(line)
        typer.echo(_summary(results), err=True)


def _summary(results: "list[Checked]") -> str:
    """What was found, and for each file without findings, what that is worth."""
    found, words = sum(len(one.findings) for one in results), sum(one.draft.words for one in results)
    silenced = sum(one.silenced for one in results)
    said = f"{found:,} finding{'' if found == 1 else 's'} in {words:,} words"
    lines = [f"{said}, {silenced:,} silenced by comments." if silenced else f"{said}."]
    for one in results:
        if not one.findings or not one.examined.is_english:
            lines.append(f"{one.draft.name}: {one.conclusion}")
        lines.append(f"{one.draft.name}: {one.examined.looked_at}")
    limits = dict.fromkeys(limit for one in results for limit in one.examined.not_looked_at)
    return "\n".join([*lines, f"Not looked at: {'; '.join(limits)}."])


def _tell_rules(as_json: bool) -> None:
    from climassay.confidence.linting import RULES

    if as_json:
        print_json(
            [
                {"name": one.name, "severity": one.severity, "default": one.default, "summary": one.summary}
                | {"reason": one.reason, "examples": [{"bad": each.bad, "good": each.good} for each in one.examples]}
                for one in RULES.values()
            ]
        )
        return
    for rule in RULES.values():
        typer.echo(f"{rule.name} ({rule.severity}{'' if rule.default else ', off by default'}): {rule.summary}")
        typer.echo(f"    {rule.reason}")
        for example in rule.examples:
            typer.echo(f"    not:  {example.bad!r}\n    but:  {example.good!r}")
