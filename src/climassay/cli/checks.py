"""``climassay checks``: the fact-checks that were asked for in the browser, and what people said about them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from climassay.cli.output import JsonOption, WorkspaceOption, print_json, stderr_console, stdout_console, write_text
from climassay.errors import InputError

if TYPE_CHECKING:
    from climassay.factcheck.kept_check import CheckReview
    from climassay.factcheck.kept_checks import KeptChecks

app = typer.Typer(no_args_is_help=True, help="Fact-checks that were asked for in the browser, with their reviews.")
_SHOWN_CHARACTERS = 90


@app.callback()
def group() -> None:
    """Fact-checks that were asked for in the browser, with their reviews."""


@contextmanager
def _opened(workspace: Path | None) -> "Iterator[KeptChecks]":
    from climassay.factcheck import KeptChecks
    from climassay.records import Records
    from climassay.workspace import Workspace

    with Records(Workspace.open(workspace).records_url) as records:
        yield KeptChecks(records)


@app.command("list")
def list_checks(
    words: Annotated[str, typer.Option(help="Words that all stand in the claim or its source.")] = "",
    verdict: Annotated[str, typer.Option(help="Label of the verdict, or the outcome of a check without one.")] = "",
    review: Annotated[
        str, typer.Option(help="agreed, disagreed, divided, commented or unreviewed: what most reviewers say.")
    ] = "",
    page: Annotated[int, typer.Option(min=1, help="Fifty checks a page, the newest first.")] = 1,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """List checks, the newest first, and how often people agree with the verdicts."""
    from climassay.factcheck import Wanted
    from climassay.factcheck.kept_check import iso_time, summary_data

    with _opened(workspace) as checks:
        found = checks.list(Wanted(words, verdict, review), page)
        share = checks.agreement()
    if as_json:
        shown = [summary_data(one) for one in found.checks]
        print_json({"total": found.total, "page": found.page, "pages": found.pages, "checks": shown, "reviews": share})
        return
    from climassay.reporting import Table, as_rich

    rows = []
    for one in found.checks:
        asked = iso_time(one.asked_at)[:10]
        ended = one.label or one.outcome or one.state
        claim = one.claim.text
        short = claim if len(claim) <= _SHOWN_CHARACTERS else claim[:_SHOWN_CHARACTERS] + "…"
        rows.append((one.id, asked, short, ended, str(one.agree), str(one.disagree)))
    console = stdout_console()
    headings = ("id", "asked", "claim", "ended with", "agree", "disagree")
    console.print(as_rich(Table.of("", headings, rows, left=4)))
    console.print(f"{found.total} checks, page {found.page} of {found.pages}", style="dim")
    if share.agreed is not None:
        low, high = share.agreed.interval.low, share.agreed.interval.high
        told = f"People agree with {share.agreed.value:.0%} of {share.agreed.n} reviewed ({low:.0%} to {high:.0%})."
        console.print(told, highlight=False)


@app.command()
def show(
    check: Annotated[str, typer.Argument(help="Id of the check.")],
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a check with its verdict and its reviews."""
    from climassay.factcheck import check_data
    from climassay.factcheck.scales import load_scale

    with _opened(workspace) as checks:
        kept, reviews = checks.get(check), checks.reviews(check)
    if as_json:
        print_json(check_data(kept, reviews))
        return
    console = stdout_console()
    console.print(f"Claim: {kept.about.claim.text}", style="bold", highlight=False)
    if kept.transcript is None:
        reason = f": {kept.about.error}" if kept.about.error else ""
        console.print(f"No result; the check is {kept.about.state}{reason}", highlight=False)
    else:
        from climassay.cli.debate_output import show_verdict

        show_verdict(kept.transcript, load_scale(kept.settings.scale))
    _show_reviews(reviews)


def _show_reviews(reviews: "Sequence[CheckReview]") -> None:
    from climassay.factcheck.kept_check import iso_time

    told = {"agree": "agrees", "disagree": "disagrees", "undecided": "comments"}
    for one in reviews:
        changed = "" if one.current else " (changed since)"
        comment = f": {one.comment}" if one.comment else ""
        line = f"{one.by} {told[one.opinion]}{changed}, {iso_time(one.made_at)[:10]}{comment}"
        stdout_console().print(line, highlight=False)


@app.command()
def export(
    file: Annotated[Path, typer.Argument(help="File to write: one check a line (.jsonl), with debate and reviews.")],
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write all checks, the oldest first, with their debates and every review."""
    if file.suffix != ".jsonl":
        raise InputError(f"{file} must end in .jsonl: checks are written one a line.")
    if file.is_dir():
        raise InputError(f"{file} is a folder: name a file.")
    with _opened(workspace) as checks:
        ids = checks.ids()
        write_text(file, "".join(_line(checks, one) for one in ids))
    if as_json:
        print_json({"file": file, "checks": len(ids)})
    else:
        stderr_console().print(f"{file} written: {len(ids)} checks.", highlight=False)


def _line(checks: "KeptChecks", check: str) -> str:
    import json

    from climassay.factcheck import check_data

    return json.dumps(check_data(checks.get(check), checks.reviews(check)), ensure_ascii=False) + "\n"
