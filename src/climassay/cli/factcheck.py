"""``climassay check`` and ``climassay factcheck``: claims by debate, one or a file of them, and scores of verdicts."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from climassay.api import claims, evidence
from climassay.api import fallacies as api_fallacies
from climassay.cli.main import DefaultCommandGroup, WholeHelpGroup
from climassay.cli.options import (
    MODEL,
    PREDICTIONS,
    CommandGroup,
    FilesOption,
    JsonOption,
    LoadingOptions,
    ModelResultSetup,
    RayOptions,
    WorkspaceOption,
    WorkspaceOptions,
    emit,
    given,
    grouped,
    opened_session,
    rows_written,
    stderr_console,
    stdout_console,
    with_flags,
)
from climassay.errors import InputError
from climassay.factcheck.configuration import (
    AdvocateSettings,
    CheckFilter,
    DebateSettings,
    MediatorSettings,
    advocates_from_names,
    load_settings,
)
from climassay.io import write_file

if TYPE_CHECKING:
    from climassay.factcheck import PastCheck
    from climassay.factcheck.debate.rounds import DebateSetup
    from climassay.factcheck.estimate import DebateEstimate
    from climassay.factcheck.transcript import AdvocateOpinion, Claim


class _FallaciesGroup(DefaultCommandGroup):
    default = "find"


app = CommandGroup(no_args_is_help=True)
kept = CommandGroup(no_args_is_help=True, help="Fact-checks made in the browser, with their reviews.")
fallacies = CommandGroup(
    cls=_FallaciesGroup,
    no_args_is_help=True,
    help=(
        'Name the fallacies of texts, or their contrarian claims: climassay factcheck fallacies "TEXT" or FILE --text '
        "COLUMN; its options: climassay factcheck fallacies find --help."
    ),
)
app.add_typer(fallacies, name="fallacies")


@dataclass(frozen=True)
@with_flags(DebateSettings, AdvocateSettings, MediatorSettings)
class DebateOptions(LoadingOptions, RayOptions):
    """Who debates, and by which rules; what is named here overrides the configuration file."""

    config: Annotated[
        Path | None, typer.Option(help="TOML file of the debate: climassay factcheck init writes one.")
    ] = None
    collection: Annotated[
        list[str] | None,
        typer.Option(
            "--collection", "-c", help="An advocate with this collection (A+B: two; A=0.5: authority 0.5); repeat."
        ),
    ] = None
    plain: Annotated[
        bool,
        typer.Option("--plain", help="Add an advocate that argues from the model's own knowledge, without passages."),
    ] = False
    adversary: Annotated[
        list[str] | None, typer.Option(help="An adversarial advocate with this collection; repeat.")
    ] = None
    workspace: WorkspaceOption = None

    def settings(self) -> DebateSettings:
        """The debate.

        Raises:
            InputError: The configuration does not fit, or nobody debates.
        """
        base = load_settings(self.config) if self.config else DebateSettings()
        advocates = base.advocates
        if self.collection or self.plain or self.adversary:
            advocates = advocates_from_names(self.collection or (), plain=self.plain, adversaries=self.adversary or ())
        if not advocates:
            raise InputError(
                "The debate has no advocate: name a collection (--collection NAME), --plain, or a file (--config)."
            )
        limits = {"max_output_tokens": self.max_output_tokens, "reasoning_effort": self.reasoning_effort}
        set_limits: dict[str, Any] = {name: value for name, value in limits.items() if value is not None}
        own = given(self, AdvocateSettings)
        return replace(
            base,
            **given(self, DebateSettings),
            **set_limits,
            advocates=tuple(replace(advocate, **own) for advocate in advocates),
            mediator=replace(base.mediator, **given(self, MediatorSettings)),
        )


SamplesOption = Annotated[
    int, typer.Option(min=1, help="Number of debates per claim; with more than 1, stability is shown.")
]
ForceOption = Annotated[bool, typer.Option("--force", help="Debate claims that do not look checkable, too.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only say what it would take; no model is asked.")]


app.add_init("debate.toml", "the configuration of a debate", "factcheck.configuration", "check CLAIM --config")


@grouped
def check(
    debate: DebateOptions,
    claim: Annotated[list[str], typer.Argument(metavar="CLAIM", help="The claim, in quotes.")],
    source: Annotated[str, typer.Option(help="Who said it, and where.")] = "",
    date: Annotated[str, typer.Option(help="Date or year when it was said.")] = "",
    samples: SamplesOption = 1,
    force: ForceOption = False,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Say beforehand how long it will take and what it will cost.")
    ] = False,
    dry_run: DryRunOption = False,
    output: FilesOption = None,
    claim_review: Annotated[
        Path | None, typer.Option(help="Write a schema.org ClaimReview (JSON-LD); needs --url and --publisher.")
    ] = None,
    url: Annotated[str | None, typer.Option(help="Address where the fact-check will be published.")] = None,
    publisher: Annotated[str | None, typer.Option(help="Organisation that publishes it.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Check a claim in a debate: advocates, each with its own collection, a mediator, and a cited verdict."""
    from climassay.factcheck import find_past, load_scale, make_claim
    from climassay.factcheck.claims import iso_date

    if len(claim) > 1:
        raise InputError(f"Put the claim in quotes: it is followed by {claim[1]!r}.")
    if claim_review is not None and not (url and publisher):
        raise InputError("A ClaimReview needs --url (where the fact-check is published) and --publisher.")
    if claim_review is not None and claim_review.is_dir():
        raise InputError(f"{claim_review} is a folder: name a file.")
    made, settings = make_claim(claim[0], source=source, date=iso_date(date)), debate.settings()
    with opened_session(debate.workspace, debate, as_json=as_json, where=debate) as session:
        if dry_run or estimate:
            expected = claims.estimate_debates([made], settings, samples=samples, workspace=session)
            if dry_run:
                emit(expected, as_json)
                return
            _show_estimate(expected)
        company = session.debate(settings)
        past = tuple(find_past(session.records, made.text, company.encoder, limit=3)) if company.encoder else ()
        printer = _DebatePrinter(past)
        shown: dict[str, Any] = {} if as_json else {"on_start": printer.start, "on_event": printer.event}
        transcript = claims.check_claim(
            made, settings=settings, samples=samples, force=force, workspace=session, **shown
        )
        # Files first: what is printed as JSON says that all went well.
        scale = load_scale(settings.scale)
        reached = transcript.verdict.outcome == "verdict"
        if claim_review is not None and (as_json or reached):
            from climassay.factcheck import claim_review as reviewed

            review = reviewed(transcript, url=str(url), author=str(publisher), scale=scale)
            write_file(claim_review, json.dumps(review, ensure_ascii=False, indent=2))
        emit(replace(transcript, past=past), as_json, output, session=session)
    if claim_review is not None and not reached:
        raise InputError(f"{claim_review} was not written: without a verdict there is nothing to review.")


@app.command()
def run(
    debate: DebateOptions,
    file: Annotated[str, typer.Argument(help="Claims: CSV, JSONL, JSON or Parquet (.gz too); or primer:claims.")],
    claim: Annotated[
        str | None, typer.Option(help="Column of the claims; claim, statement or text by default.")
    ] = None,
    truth: Annotated[str | None, typer.Option(help="Column of published verdicts.")] = None,
    source: Annotated[str | None, typer.Option(help="Column that says who made the claim.")] = None,
    date: Annotated[str | None, typer.Option(help="Column of the dates.")] = None,
    classes: Annotated[
        int | None, typer.Option(min=2, help="Number of classes in which distributions are shown.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Number of claims drawn at random; all by default.")] = None,
    samples: SamplesOption = 1,
    debates: Annotated[int, typer.Option("--debates", min=1, help="Number of claims debated concurrently.")] = 16,
    force: ForceOption = False,
    estimate: Annotated[
        bool,
        typer.Option("--estimate/--no-estimate", help="Say beforehand how long it will take and what it will cost."),
    ] = True,
    dry_run: DryRunOption = False,
    output: FilesOption = None,
    pages: Annotated[Path | None, typer.Option(help="Write a page about each claim into this folder.")] = None,
    transcripts: Annotated[Path | None, typer.Option(help="Write every debate as JSONL.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Check all claims of a file, and score the verdicts where the file has published ones."""
    from climassay.factcheck import ClaimColumns

    if transcripts is not None and transcripts.is_dir():
        raise InputError(f"{transcripts} is a folder: name a file.")
    if pages is not None and pages.exists() and not pages.is_dir():
        raise InputError(f"{pages} is a file: name a folder for the pages.")
    table = claims.claim_table(file, ClaimColumns(claim, truth, source, date))
    settings = debate.settings()
    with opened_session(debate.workspace, debate, as_json=as_json, where=debate) as session:
        if dry_run or (estimate and not as_json):
            drawn = claims.sample_claims(table, limit, settings.seed)
            expected = claims.estimate_debates(drawn.claims, settings, samples=samples, workspace=session)
            if dry_run:
                emit(expected, as_json)
                return
            _show_estimate(expected)
        result = claims.check_claims(
            table,
            settings=settings,
            limit=limit,
            samples=samples,
            classes=classes,
            concurrency=debates,
            force=force,
            workspace=session,
        )
        result = replace(result, file=Path(file).name)
        if pages is not None:
            result = result.write_pages(pages, next((one for one in output or () if one.suffix == ".html"), None))
        if transcripts is not None:
            lines = [json.dumps(one.to_dict(), ensure_ascii=False, allow_nan=False) for one in result.transcripts]
            write_file(transcripts, "".join(line + "\n" for line in lines))
        emit(result, as_json, output, session=session)


app.add_verb(
    "score",
    claims.score_verdicts,
    file=Annotated[Path, typer.Argument()],
    truth=typer.Option(metavar="COLUMN"),
    predicted=typer.Option(metavar="COLUMN"),
    claim=typer.Option(metavar="COLUMN"),
)


_COLUMNS = {"claim": typer.Option(metavar="COLUMN"), "truth": typer.Option(metavar="COLUMN")}
app.add_verb(
    "evidence",
    evidence.check_with_evidence,
    to=ModelResultSetup,
    writes={"predictions": (PREDICTIONS, rows_written(lambda result: result.to_dict()["predictions"]))},
    calibrated=typer.Option("--calibrate/--no-calibrate"),
    **_COLUMNS,
)

_SUBJECT = typer.Option("--subject", help="Twelve fallacies, or seventeen contrarian claims (CARDS).")
SubjectOption = Annotated[Literal["fallacies", "claims"], _SUBJECT]
fallacies.add_verb(
    _FallaciesGroup.default,
    api_fallacies.name_fallacies,
    texts=Annotated[str, typer.Argument(metavar="TEXT|FILE", help="A text in quotes, or a table of them.")],
    classifier=SubjectOption,
    column=typer.Option("--text"),
)
fallacies.add_verb(
    "apply",
    api_fallacies.name_fallacies,
    classifier=Annotated[str, MODEL],
    texts=Annotated[Path, typer.Argument(metavar="ITEMS", help="Table of texts.")],
    column=Annotated[str | None, typer.Option("--text", help="Column of the texts; by default text.")],
    truth=None,
    seed=None,
)
fallacies.add_verb(
    "evaluate",
    api_fallacies.evaluate_fallacies,
    classifier=MODEL,
)
fallacies.add_verb(
    "train",
    api_fallacies.train_fallacies,
    subject=SubjectOption,
    precision=typer.Option(min=0.01, max=1),
)
app.add_typer(kept, name="kept", cls=WholeHelpGroup)


@dataclass(frozen=True)
@with_flags(CheckFilter)
class FilterOptions:
    """Which checks are meant."""

    def made(self) -> CheckFilter:
        """As the store takes them."""
        return CheckFilter(**given(self, CheckFilter))


kept.add_verb("list", claims.list_checks, wanted=FilterOptions, page=typer.Option(min=1))
kept.add_verb("show", claims.show_check, to=WorkspaceOptions)
kept.add_verb("export", claims.export_checks, to=WorkspaceOptions, wanted=FilterOptions)


_REASONS = {
    "close verdicts": "the informed verdicts are close",
    "no change": "nobody changed a verdict",
    "mediator": "the mediator is satisfied",
    "round limit": "the limit of rounds is reached",
    "one informed advocate": "one advocate has information",
    "not enough information": "no advocate could judge the claim",
    "contrast": "the verdicts contrast",
    "uncertain": "the mediator is not certain",
}


def _show_estimate(expected: "DebateEstimate") -> None:
    for line in expected.lines():
        stderr_console().print(line, highlight=False)


class _DebatePrinter:
    """Prints earlier checks, and then what happens in a debate as it happens."""

    def __init__(self, past: "Sequence[PastCheck]") -> None:
        self._past = past
        self._console = stdout_console()
        self._who = ""

    def start(self, table: "DebateSetup") -> None:
        """Who debates; first, what was found out earlier about the same claim or similar ones."""
        from rich.text import Text

        names = ", ".join(profile.name for profile in table.profiles)
        self._who = f"Advocates: {names}; mediator: {table.mediator.style}\n"
        for check in self._past:
            kind = "The same claim" if check.same else f"A similar claim ({check.similarity:.2f})"
            differences = {"numbers": check.differs_in_numbers, "a negation": check.differs_in_negation}
            differs = [word for word, there in differences.items() if there]
            note = f"; it differs in {' and '.join(differs)}" if differs else ""
            told = f"{kind} was checked on {check.when[:10]}: {check.verdict or check.outcome}"
            self._console.print(Text(f"{told} ({check.scale}, run {check.run}){note}"))
            if not check.same:
                self._console.print(Text(f"  {check.claim}", style="dim"))
        if self._past:
            self._console.print()

    def event(self, claim: "Claim", event: Any) -> None:
        """One step of the debate."""
        from rich.text import Text

        from climassay.factcheck.transcript import AdvocateOpinion, FollowUp, MediatorDecision

        show = self._console.print
        if isinstance(event, tuple):
            show(Text(f"Claim: {claim.text}", style="bold"))
            if len(event) > 1:
                for part in event:
                    show(Text(f"  {part.number}. {part.text}", style="dim"))
            show(Text(self._who, style="dim"))
        elif isinstance(event, AdvocateOpinion):
            show(_opinion(event))
        elif isinstance(event, FollowUp):
            reply = _written(event.reply) or (event.error or "no reply")
            show(Text.assemble((f"{event.asker} asks {event.to}: ", "bold"), event.question))
            show(Text(f"  {event.to}: {reply}\n"))
        elif isinstance(event, MediatorDecision) and event.error is not None:
            show(Text(f"mediator failed: {event.error}\n", style="italic"))
        elif isinstance(event, MediatorDecision):
            step = "closes the debate" if event.closes else "opens another round"
            show(Text(f"mediator {step}: {_REASONS[event.reason]}\n", style="italic"))


def _opinion(opinion: "AdvocateOpinion") -> Any:
    from rich.text import Text

    from climassay.factcheck.results.page import format_levels

    verdict = opinion.verdict or f"no opinion ({opinion.error})"
    changed = " (changed)" if opinion.changed else ""
    text = Text.assemble((f"{opinion.advocate}, round {opinion.round}: ", "bold"), (verdict, "bold cyan"), changed)
    if opinion.levels is not None:
        text.append(f"  {format_levels(opinion.levels)}", style="dim")
    if opinion.explanation:
        text.append(f"\n  {_written(opinion.explanation)}")
    return text.append("\n")


def _written(sentences: Sequence[Any]) -> str:
    from climassay.grounding import format_sentence

    return " ".join(format_sentence(sentence) for sentence in sentences)
