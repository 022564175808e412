"""``climassay factcheck-run``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from climassay.cli.debate_estimate import estimate_debates
from climassay.cli.factcheck_options import DebateOptions, opened
from climassay.cli.option_groups import grouped
from climassay.cli.output import (
    JsonOption,
    print_json,
    progress_bar,
    stderr_console,
    stdout_console,
    write_text,
)
from climassay.errors import InputError

if TYPE_CHECKING:
    from climassay.factcheck.analysis import RunAnalysis
    from climassay.factcheck.checking import Checker
    from climassay.factcheck.claims import ClaimTable
    from climassay.factcheck.scales import Scale
    from climassay.factcheck.transcript import Transcript
    from climassay.reporting import Table

PRIMER = "primer:claims"
_MOST_LISTED = 30
"""Claims whose verdicts are listed on the terminal; more would push the scores out of sight."""


@grouped
def factcheck_run(
    debate: DebateOptions,
    file: Annotated[str, typer.Argument(help="Claims: CSV, JSONL, JSON or Parquet (.gz too); or primer:claims.")],
    claim: Annotated[str | None, typer.Option(help="Column of claims; claim, statement or text by default.")] = None,
    truth: Annotated[str | None, typer.Option(help="Column of published verdicts.")] = None,
    source: Annotated[str | None, typer.Option(help="Column of who said it.")] = None,
    date: Annotated[str | None, typer.Option(help="Column of when.")] = None,
    classes: Annotated[int | None, typer.Option(min=2, help="Classes to show distributions in.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Check a seeded sample of so many claims.")] = None,
    samples: Annotated[int, typer.Option(min=1, help="Debates a claim, for the stability of verdicts.")] = 1,
    at_once: Annotated[int, typer.Option(min=1, help="Claims debated side by side.")] = 16,
    force: Annotated[bool, typer.Option("--force", help="Debate claims that look not checkable, too.")] = False,
    estimate: Annotated[
        bool, typer.Option("--estimate/--no-estimate", help="Say beforehand what it will take.")
    ] = True,
    dry: Annotated[bool, typer.Option("--dry-run", "--dry", help="Only say what it would take.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write a report as HTML.")] = None,
    pages: Annotated[Path | None, typer.Option(help="Write a page about each claim into this folder.")] = None,
    transcripts: Annotated[Path | None, typer.Option(help="Write every debate as JSONL.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write the tables as Markdown.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Check all claims of a file, and score the verdicts where the file has published ones."""
    from climassay.factcheck.checking import open_checker
    from climassay.factcheck.scales import load_scale

    for path in (html, transcripts, markdown):
        if path is not None and path.is_dir():
            raise InputError(f"{path} is a folder: name a file.")
    if pages is not None and pages.exists() and not pages.is_dir():
        raise InputError(f"{pages} is a file: name a folder for the pages.")
    table = _claims(file, claim, truth, source, date, limit, debate.seed or 0)
    with opened(debate, quiet=as_json) as room:
        _check_scale(table, load_scale(room.settings.scale), classes)
        if dry or (estimate and not as_json):
            estimate_debates(room, table.claims, debate, samples, only=dry, as_json=as_json)
        if dry:
            return
        with (
            open_checker(
                room.settings,
                room.company,
                room.store,
                command="factcheck-run",
                config={"file": Path(file).name, "claims": len(table.claims), "samples": samples},
                prompts=debate.prompts,
                use_cache=not debate.no_cache,
            ) as checker,
            progress_bar(as_json) as progress,
        ):
            task = progress.add_task("Debating", total=len(table.claims))
            done = checker.check(
                table.claims,
                samples=samples,
                at_once=at_once,
                force=force,
                on_done=lambda _: progress.advance(task),
            )
            checker.keep(done, _truths(table))
    _finish(done, table, checker, file, classes, html, pages, transcripts, markdown, as_json)


def _claims(
    file: str, claim: str | None, truth: str | None, source: str | None, date: str | None, limit: int | None, seed: int
) -> "ClaimTable":
    import random
    from dataclasses import replace

    from climassay.factcheck.claims import ClaimColumns, read_claims
    from climassay.primer import claims_path

    if file == PRIMER:
        table = read_claims(claims_path(), ClaimColumns(verdict="verdict"))
    else:
        table = read_claims(Path(file), ClaimColumns(claim, truth, source, date))
    if limit is None or limit >= len(table.claims):
        return table
    places = sorted(random.Random(seed).sample(range(len(table.claims)), limit))
    return replace(
        table,
        claims=tuple(table.claims[place] for place in places),
        verdicts=tuple(table.verdicts[place] for place in places),
    )


def _check_scale(table: "ClaimTable", scale: "Scale", classes: int | None) -> None:
    """Say before the debates, and not after them, what could not be scored or shown."""
    scale.classes(classes)
    counts = scale.comparable_counts(verdict for verdict in table.verdicts if verdict is not None)
    if classes is not None and classes not in counts:
        raise InputError(f"The published verdicts can be compared in {counts[0]} classes at most, not in {classes}.")


def _truths(table: "ClaimTable") -> dict[str, str]:
    """Published verdicts by the claim's id."""
    return {one.id: verdict for one, verdict in zip(table.claims, table.verdicts, strict=True) if verdict is not None}


def _finish(
    done: "list[Transcript]",
    table: "ClaimTable",
    checker: "Checker",
    file: str,
    classes: int | None,
    html: Path | None,
    pages: Path | None,
    transcripts: Path | None,
    markdown: Path | None,
    as_json: bool,
) -> None:
    from climassay.factcheck.analysis import analyse, analysis_data
    from climassay.factcheck.page_words import DEMONSTRATION
    from climassay.factcheck.report import analysis_tables, factcheck_report
    from climassay.reporting import as_markdown, as_rich

    analysis = analyse(done, _truths(table), checker.table.scale, classes=classes)
    links = _write_pages(done, pages, html, checker)
    name = Path(file).name
    if html:
        write_text(html, factcheck_report(analysis, file=name, facts=_facts(checker), pages=links).to_html())
    if markdown:
        tables = [as_markdown(one) for one in analysis_tables(analysis)]
        write_text(markdown, "\n".join([*tables, *([f"{DEMONSTRATION}\n"] if analysis.demonstration else [])]))
    if transcripts:
        _write_transcripts(transcripts, done)
    if as_json:
        told = {"run": checker.run, "skipped": table.skipped, "tallies": checker.tallies}
        print_json({**told, "verdicts": [_verdict(one) for one in done], **analysis_data(analysis)})
        return
    console = stdout_console()
    if len(done) <= _MOST_LISTED:
        console.print(as_rich(_verdict_table(done)))
    for one in analysis_tables(analysis):
        console.print(as_rich(one))
    if analysis.demonstration:
        console.print(DEMONSTRATION, highlight=False)
    _show_totals(table, checker, analysis)


def _verdict(transcript: "Transcript") -> dict[str, str | None]:
    verdict = transcript.verdict
    return {
        "id": transcript.claim.id,
        "claim": transcript.claim.text,
        "outcome": verdict.outcome,
        "label": verdict.label,
        "confidence": verdict.levels.confidence if verdict.levels else None,
    }


def _verdict_table(done: "list[Transcript]") -> "Table":
    from climassay.reporting import Table

    found = [(_verdict(one), len(one.rounds)) for one in done]
    rows = [
        (str(one["claim"]), one["label"] or str(one["outcome"]), one["confidence"] or "-", str(rounds))
        for one, rounds in found
    ]
    return Table.of("Verdicts", ("claim", "verdict", "confidence", "rounds"), rows, left=3)


def _facts(checker: "Checker") -> list[tuple[str, str]]:
    models = {one.model: ", ".join(filter(None, (one.fingerprint, one.dtype))) for one in checker.table.profiles}
    mediator = f"{checker.table.mediator.style}, {checker.table.mediator.model}"
    return [
        ("Run", checker.run),
        ("Mediator", mediator),
        *((f"Model {name}", facts) for name, facts in models.items()),
    ]


def _write_pages(
    done: "list[Transcript]", folder: Path | None, html: Path | None, checker: "Checker"
) -> dict[str, str]:
    """Pages of the claims; their addresses as the report links them."""
    if folder is None:
        return {}
    from climassay.factcheck.page import factcheck_page

    for transcript in done:
        write_text(folder / f"{transcript.claim.id}.html", factcheck_page(transcript, checker.table.scale))
    if html is None:
        return {}
    import os

    start = os.path.relpath(folder, html.parent)
    return {transcript.claim.id: f"{start}/{transcript.claim.id}.html" for transcript in done}


def _write_transcripts(path: Path, done: "list[Transcript]") -> None:
    import json

    from climassay.factcheck.serialisation import as_data

    lines = [json.dumps(as_data(transcript), ensure_ascii=False, allow_nan=False) for transcript in done]
    write_text(path, "".join(line + "\n" for line in lines))


def _show_totals(table: "ClaimTable", checker: "Checker", analysis: "RunAnalysis") -> None:
    note = stderr_console()
    if table.skipped:
        note.print(f"{len(table.skipped)} rows left out, the first: {table.skipped[0]}.", highlight=False)
    for name, tally in checker.tallies.items():
        cost = "" if tally.usage.cost is None else f", ${tally.usage.cost:.4f}"
        note.print(
            f"Run {checker.run}, {name}: {tally.hits} answers from the records, {tally.asked} asked "
            f"({tally.failed} failed), {tally.usage.tokens}{cost}.",
            highlight=False,
        )
    if analysis.failures:
        note.print(f"{analysis.failures} model calls failed; run the same command again to ask them anew.")
