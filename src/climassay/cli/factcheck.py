"""``climassay factcheck``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from climassay.cli.debate_estimate import estimate_debates
from climassay.cli.factcheck_fallacies import app as fallacies
from climassay.cli.factcheck_options import DebateOptions, Room, opened
from climassay.cli.option_groups import DefaultCommandGroup, grouped
from climassay.cli.output import JsonOption, print_json, stderr_console, stdout_console, write_commented, write_text
from climassay.errors import InputError, ModelError

if TYPE_CHECKING:
    from climassay.factcheck.past_checks import PastCheck
    from climassay.factcheck.scales import Scale
    from climassay.factcheck.transcript import Claim, Transcript

INIT = "init"
DEFAULT_FILE = Path("debate.toml")


class _FactcheckGroup(DefaultCommandGroup):
    default = "check"


app = typer.Typer(
    cls=_FactcheckGroup,
    no_args_is_help=True,
    help=(
        'Check a claim by a debate: climassay factcheck "CLAIM" -c COLLECTION; its options: '
        "climassay factcheck check --help."
    ),
)
app.add_typer(fallacies, name="fallacies")


@app.command(_FactcheckGroup.default)
@grouped
def factcheck(
    debate: DebateOptions,
    claim: Annotated[str, typer.Argument(help="The claim, in quotes; or: init [FILE] to write a configuration.")],
    file: Annotated[Path | None, typer.Argument(help="Only with init: the file to write.", show_default=False)] = None,
    source: Annotated[str, typer.Option(help="Who said it, and where.")] = "",
    date: Annotated[str, typer.Option(help="When it was said: a date or a year.")] = "",
    samples: Annotated[int, typer.Option(min=1, help="Debates; above 1, the stability of the verdict is shown.")] = 1,
    force: Annotated[bool, typer.Option("--force", help="Debate it even if it looks not checkable.")] = False,
    estimate: Annotated[bool, typer.Option("--estimate", help="Say beforehand what it will take.")] = False,
    dry: Annotated[bool, typer.Option("--dry-run", "--dry", help="Only say what it would take.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write a page about the fact-check.")] = None,
    claim_review: Annotated[
        Path | None, typer.Option(help="Write a schema.org ClaimReview (JSON-LD); needs --url and --publisher.")
    ] = None,
    url: Annotated[str | None, typer.Option(help="Where the fact-check will be published.")] = None,
    publisher: Annotated[str | None, typer.Option(help="Organisation that publishes it.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Check a claim by a debate: advocates with a collection each, a mediator, and a verdict with citations."""
    if claim == INIT:
        _write_settings(file or DEFAULT_FILE, as_json)
        return
    if file is not None:
        raise InputError(f"The claim must stand in quotes: after it there is {str(file)!r}.")
    if claim_review is not None and not (url and publisher):
        raise InputError("A ClaimReview needs --url (where the fact-check is published) and --publisher.")
    for path in (html, claim_review):
        if path is not None and path.is_dir():
            raise InputError(f"{path} is a folder: name a file.")
    from climassay.factcheck.checking import make_claim, open_checker
    from climassay.factcheck.claims import iso_date

    made = make_claim(claim, source=source, date=iso_date(date))
    with opened(debate, quiet=as_json) as room:
        if dry or estimate:
            estimate_debates(room, [made], debate, samples, only=dry, as_json=as_json)
        if dry:
            return
        past = _past(room, made)
        with open_checker(
            room.settings,
            room.company,
            room.store,
            config={"claim": made.text, "samples": samples},
            prompts=debate.prompts,
            use_cache=not debate.no_cache,
        ) as checker:
            from climassay.cli.debate_output import teller

            if not as_json:
                _show_past(past)
            tell = _silent if as_json else teller(checker.table)
            [transcript] = checker.check([made], samples=samples, force=force, tell=tell)
            checker.keep([transcript])
    # Files first: what is printed as JSON says that all went well.
    scale = checker.table.scale
    if claim_review is not None and (as_json or transcript.verdict.outcome == "verdict"):
        _write_review(claim_review, transcript, scale, str(url), str(publisher))
    _finish(transcript, scale, past, html, as_json)
    if transcript.verdict.outcome == "failed":
        raise ModelError(f"There is no verdict, because a model call failed: {transcript.verdict.error}")
    if claim_review is not None and transcript.verdict.outcome != "verdict":
        raise InputError(f"{claim_review} was not written: without a verdict there is nothing to review.")


def _silent(claim: "Claim", event: Any) -> None:
    """Show nothing."""


def _write_settings(path: Path, as_json: bool) -> None:
    from climassay.factcheck.commented_settings import COMMENTED

    said = f"{path} written: edit it, then run climassay factcheck CLAIM --config {path}"
    write_commented(path, COMMENTED, said, as_json)


def _past(room: Room, claim: "Claim") -> "list[PastCheck]":
    from climassay.factcheck.past_checks import find_past

    if room.company.encoder is None:
        return []
    return find_past(room.store, claim.text, room.company.encoder, most=3)


def _show_past(past: "list[PastCheck]") -> None:
    from rich.text import Text

    console = stdout_console()
    for check in past:
        kind = "The same claim" if check.same else f"A similar claim ({check.similarity:.2f})"
        differs = [
            word
            for word, differs in (("numbers", check.differs_in_numbers), ("a negation", check.differs_in_negation))
            if differs
        ]
        note = f"; it differs in {' and '.join(differs)}" if differs else ""
        told = check.verdict or check.outcome
        console.print(Text(f"{kind} was checked on {check.when[:10]}: {told} ({check.scale}, run {check.run}){note}"))
        if not check.same:
            console.print(Text(f"  {check.claim}", style="dim"))
    if past:
        console.print()


def _finish(
    transcript: "Transcript", scale: "Scale", past: "list[PastCheck]", html: Path | None, as_json: bool
) -> None:
    from climassay.factcheck.page import factcheck_page
    from climassay.factcheck.serialisation import as_data

    if html:
        write_text(html, factcheck_page(transcript, scale))
    if as_json:
        from dataclasses import asdict

        print_json({**as_data(transcript), "past": [asdict(check) for check in past]})
        return
    from climassay.cli.debate_output import show_verdict

    show_verdict(transcript, scale)
    if html:
        stderr_console().print(f"{html} written.", highlight=False)


def _write_review(path: Path, transcript: "Transcript", scale: "Scale", url: str, publisher: str) -> None:
    import json

    from climassay.factcheck.claimreview import claim_review

    write_text(
        path, json.dumps(claim_review(transcript, url=url, author=publisher, scale=scale), ensure_ascii=False, indent=2)
    )
