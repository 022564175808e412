"""``climassay check`` and ``climassay factcheck``: debates on one claim or a file of claims; scores of verdicts."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from climassay.api import claims, evidence
from climassay.api import fallacies as fallacies_api
from climassay.cli.commands import PREDICTIONS_OPTION, add_command, add_init, api_command, make_rows_writer
from climassay.cli.options import (
    POSITIVE,
    JsonOption,
    LoadingOptions,
    ModelResultSetup,
    OutputOption,
    RayOptions,
    WorkspaceOption,
    WorkspaceOptions,
    bounded,
    given_values,
    open_session,
    options_for,
)
from climassay.cli.output import emit, print_note, stdout_console
from climassay.errors import InputError
from climassay.factcheck import saved_checks
from climassay.factcheck.configuration import (
    AdvocateSettings,
    CheckFilter,
    DebateSettings,
    MediatorSettings,
    advocates_from_names,
    load_settings,
)
from climassay.io import write_file
from climassay.primer import PRIMER_CLAIMS
from climassay.prompts import ProfileSettings

if TYPE_CHECKING:
    from climassay.factcheck import PastCheck
    from climassay.factcheck.debate.setup import DebateSetup
    from climassay.factcheck.estimate import DebateEstimate
    from climassay.factcheck.transcript import AdvocateOpinion, Claim

app = App(name="factcheck")
checks = App(name="checks", help="Fact-checks made in the browser, with their reviews.")
fallacies = App(
    name="fallacies",
    help='Name the fallacies of texts, or their contrarian claims: "TEXT", or FILE --text COLUMN.',
)
app.command(fallacies)
app.command(checks)


@dataclass(frozen=True, kw_only=True)
@options_for(
    AdvocateSettings,
    "rerank",
    "excerpt_words",
    passages=Parameter(name=("--passages", "-k")),
)
@options_for(MediatorSettings, "style", style=Parameter(name="--mediator"))
@options_for(ProfileSettings, "text_tokens")
@options_for(
    DebateSettings,
    "rounds",
    "scale",
    "split",
    "seed",
    "latest_only",
    "entailment",
    "leave_one_out",
    "max_output_tokens",
    "reasoning_effort",
    model=Parameter(name=("--model", "-m")),
    context_prefix=Parameter(name="--prefix", negative="--no-prefix"),
    check_claims=Parameter(name="--screen", negative="--no-screen"),
)
class DebateOptions(LoadingOptions, RayOptions):
    """Options for the participants and rules of a debate, which override the configuration file."""

    config: Path | None = None
    """TOML file that configures the debate; climassay factcheck init writes one."""
    collection: Annotated[tuple[str, ...], Parameter(alias="-c")] = ()
    """Add an advocate with this collection (A+B: with both collections; A=0.5: with authority 0.5); repeat."""
    plain: bool = False
    """Add an advocate that argues from the model's own knowledge, without passages."""
    adversary: tuple[str, ...] = ()
    """Add an adversarial advocate with this collection; repeat."""
    workspace: WorkspaceOption = None

    def settings(self) -> DebateSettings:
        """Return the settings from the configuration file, overridden by the options.

        Raises:
            InputError: The configuration is not valid, or the debate has no advocate.
        """
        file_settings = load_settings(self.config) if self.config else DebateSettings()
        advocates = file_settings.advocates
        if self.collection or self.plain or self.adversary:
            advocates = advocates_from_names(self.collection, plain=self.plain, adversaries=self.adversary)
        if not advocates:
            raise InputError(
                "The debate has no advocate: name a collection (--collection NAME), --plain, or a file (--config)."
            )
        advocate_options = given_values(self, AdvocateSettings)
        return replace(
            file_settings,
            **given_values(self, DebateSettings),
            advocates=tuple(replace(advocate, **advocate_options) for advocate in advocates),
            mediator=replace(file_settings.mediator, **given_values(self, MediatorSettings)),
            profile=replace(file_settings.profile, **given_values(self, ProfileSettings)),
        )


add_init(app, "debate.toml", "the configuration of a debate", "factcheck.configuration", "check CLAIM --config")


def check(
    claim: list[str],
    /,
    *,
    source: str = "",
    appearance: str = "",
    date: str = "",
    debate: Annotated[DebateOptions, Parameter(name="*")] = DebateOptions(),
    samples: Annotated[int, POSITIVE] = 1,
    force: bool = False,
    estimate: bool = False,
    dry_run: bool = False,
    output: OutputOption = (),
    claim_review: Path | None = None,
    url: str | None = None,
    publisher: str | None = None,
    as_json: JsonOption = False,
) -> None:
    """Check a claim in a debate of advocates, each with its own collection; a mediator gives a verdict with citations.

    Args:
        claim: Text of the claim, in quotes.
        source: Person or organisation that made the claim.
        appearance: Web address or name of the publication in which the claim appeared.
        date: Date or year of the claim.
        samples: Number of debates about the claim; with more than 1, the stability of the verdict is shown.
        force: Debate the claim even if it does not appear to be checkable.
        estimate: First show an estimate of the debate's duration and cost.
        dry_run: Only show the estimate, without calling a model.
        claim_review: Write a schema.org ClaimReview (JSON-LD); needs --url and --publisher.
        url: Address at which the fact-check will be published.
        publisher: Organisation that publishes the fact-check.
    """
    from climassay.factcheck import load_scale, make_claim
    from climassay.factcheck.claims import iso_date
    from climassay.factcheck.session_debates import estimate_debates

    if len(claim) > 1:
        raise InputError(f"Put the claim in quotes: it is followed by {claim[1]!r}.")
    if claim_review is not None and not (url and publisher):
        raise InputError("A ClaimReview needs --url (where the fact-check is published) and --publisher.")
    if claim_review is not None and claim_review.is_dir():
        raise InputError(f"{claim_review} is a folder: name a file.")
    dated_claim = make_claim(claim[0], source=source, date=iso_date(date), appearance=appearance)
    settings = debate.settings()
    with open_session(debate.workspace, debate, ray=debate) as session:
        if dry_run or estimate:
            estimated_debates = estimate_debates([dated_claim], settings, samples=samples, workspace=session)
            if dry_run:
                emit(estimated_debates, as_json)
                return
            _print_estimate(estimated_debates)
        printer = _DebatePrinter()
        callbacks: dict[str, Any] = {} if as_json else {"on_start": printer.start, "on_event": printer.event}
        transcript = claims.check_claim(
            dated_claim, settings=settings, samples=samples, force=force, workspace=session, **callbacks
        )
        # Files are written before JSON is printed, so that printed JSON means success.
        scale = load_scale(settings.scale)
        has_verdict = transcript.verdict.outcome == "verdict"
        if claim_review is not None and (as_json or has_verdict):
            from climassay.factcheck import claim_review as create_review

            review = create_review(transcript, url=str(url), author=str(publisher), scale=scale)
            write_file(claim_review, json.dumps(review, ensure_ascii=False, indent=2))
        emit(transcript, as_json, output, session=session)
        if transcript.verdict.outcome in ("not checkable", "not about climate"):
            print_note("To check the claim anyway, add --force.")
    if claim_review is not None and not has_verdict:
        raise InputError(f"{claim_review} was not written: without a verdict there is nothing to review.")


@app.command
def run(
    file: str,
    /,
    *,
    claim: str | None = None,
    truth: str | None = None,
    source: str | None = None,
    date: str | None = None,
    by: str | None = None,
    classes: Annotated[int | None, bounded(2)] = None,
    limit: Annotated[int | None, POSITIVE] = None,
    samples: Annotated[int, POSITIVE] = 1,
    debates: Annotated[int, POSITIVE] = 16,
    force: bool = False,
    estimate: Annotated[bool, Parameter(negative="--no-estimate")] = True,
    dry_run: bool = False,
    output: OutputOption = (),
    pages: Path | None = None,
    transcripts: Path | None = None,
    debate: Annotated[DebateOptions, Parameter(name="*")] = DebateOptions(),
    as_json: JsonOption = False,
) -> None:
    """Check all claims of a file, and score the verdicts if the file has published ones.

    Args:
        file: File of claims: CSV, JSONL, JSON or Parquet (also .gz); or primer:claims.
        claim: Column of the claims; by default claim, statement or text.
        truth: Column of published verdicts.
        source: Column of the people or organisations that made the claims.
        date: Column of the dates of the claims.
        by: Column by whose values the scores are broken down, for example the field of science; needs --truth.
        classes: Number of classes to which verdicts are merged when distributions are shown.
        limit: Maximum number of claims, drawn at random; by default all.
        samples: Number of debates per claim; with more than 1, the stability of verdicts is shown.
        debates: Number of claims that are debated concurrently.
        force: Also debate claims that do not appear to be checkable.
        estimate: First show an estimate of the debates' duration and cost.
        dry_run: Only show the estimate, without calling a model.
        pages: Folder to which a page about each claim is written.
        transcripts: Write every debate as JSON lines.
    """
    from climassay.factcheck import ClaimColumns, ClaimTable
    from climassay.factcheck.session_debates import estimate_debates

    if transcripts is not None and transcripts.is_dir():
        raise InputError(f"{transcripts} is a folder: name a file.")
    if pages is not None and pages.exists() and not pages.is_dir():
        raise InputError(f"{pages} is a file: name a folder for the pages.")
    if by is not None and truth is None and file != PRIMER_CLAIMS:
        raise InputError("Scores are broken down by --by only if --truth names the column of published verdicts.")
    table = ClaimTable.load(file, ClaimColumns(claim, truth, source, date, by))
    settings = debate.settings()
    with open_session(debate.workspace, debate, ray=debate) as session:
        if dry_run or (estimate and not as_json):
            sample = table.sample(limit, settings.seed)
            estimated_debates = estimate_debates(sample.claims, settings, samples=samples, workspace=session)
            if dry_run:
                emit(estimated_debates, as_json)
                return
            _print_estimate(estimated_debates)
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
            result = result.write_pages(pages, next((path for path in output if path.suffix == ".html"), None))
        if transcripts is not None:
            lines = [json.dumps(item.to_dict(), ensure_ascii=False, allow_nan=False) for item in result.transcripts]
            write_file(transcripts, "".join(line + "\n" for line in lines))
        emit(result, as_json, output, session=session)


add_command(
    app,
    "claims",
    claims.list_claims,
    model_options=LoadingOptions,
    document=Annotated[str, Parameter()],
    hint="Save the claims with --output claims.csv, strike some, and run: climassay factcheck run claims.csv",
)
add_command(
    app,
    "score",
    claims.score_verdicts,
    file=Annotated[Path, Parameter()],
    truth=Parameter(name="--truth"),
    predicted=Parameter(name="--predicted"),
)
add_command(
    app,
    "evidence",
    evidence.check_with_evidence,
    common_options=ModelResultSetup,
    writes={"predictions": (PREDICTIONS_OPTION, make_rows_writer(lambda result: result.to_dict()["predictions"]))},
    calibrated=Parameter(name="--calibrate", negative="--no-calibrate"),
)

_CLASSIFIER_OPTION = Annotated[
    Literal["fallacies", "claims"],
    Parameter(name="--subject", help="Twelve fallacies, or seventeen contrarian claims (CARDS)."),
]
_CLASSIFIER = Annotated[str, Parameter(name="model")]
fallacies.default(
    api_command(
        fallacies_api.name_fallacies,
        texts=Annotated[str, Parameter(name="TEXT|FILE", help="A text in quotes, or a table of them.")],
        classifier=_CLASSIFIER_OPTION,
        column=Parameter(name="--text"),
    )
)
add_command(
    fallacies,
    "apply",
    fallacies_api.name_fallacies,
    classifier=_CLASSIFIER,
    texts=Annotated[Path, Parameter(name="items", help="Table of texts.")],
    column=Annotated[str | None, Parameter(name="--text", help="Column of the texts; by default text.")],
    truth=None,
    seed=None,
)
add_command(
    fallacies,
    "evaluate",
    fallacies_api.evaluate_fallacies,
    classifier=_CLASSIFIER,
)
add_command(
    fallacies,
    "train",
    fallacies_api.train_fallacies,
    subject=_CLASSIFIER_OPTION,
    precision=bounded(0.01, 1),
)


@dataclass(frozen=True)
@options_for(CheckFilter)
class FilterOptions:
    """Options by which saved fact-checks are filtered."""

    def build(self) -> CheckFilter:
        """Return the filter with the conditions that the user gave."""
        return CheckFilter(**given_values(self, CheckFilter))


add_command(
    checks,
    "list",
    saved_checks.list_checks,
    checks_filter=FilterOptions,
    page=bounded(1, name="--page"),
)
add_command(checks, "show", saved_checks.show_check, common_options=WorkspaceOptions)
add_command(checks, "export", saved_checks.export_checks, common_options=WorkspaceOptions, checks_filter=FilterOptions)


_REASON_TEXTS = {
    "close verdicts": "the informed verdicts are close",
    "no change": "nobody changed a verdict",
    "mediator": "the mediator is satisfied",
    "round limit": "the limit of rounds is reached",
    "one informed advocate": "one advocate has information",
    "not enough information": "no advocate could judge the claim",
    "contrast": "the verdicts contrast",
    "uncertain": "the mediator is not certain",
}


def _print_estimate(estimate: "DebateEstimate") -> None:
    for line in estimate.lines():
        print_note(str(line))


class _DebatePrinter:
    """Printer of a debate: first the past checks of similar claims, then each step as it happens."""

    def __init__(self) -> None:
        self._console = stdout_console()
        self._participants = ""

    def start(self, debate_setup: "DebateSetup", past_checks: "Sequence[PastCheck]") -> None:
        """Print past checks of the same claim and of similar claims. Store the participants until the first event."""
        from rich.text import Text

        names = ", ".join(debate_setup.profiles)
        self._participants = f"Advocates: {names}; mediator: {debate_setup.mediator.style}\n"
        for check in past_checks:
            kind = "The same claim" if check.same else f"A similar claim ({check.similarity:.2f})"
            differences = {"numbers": check.differs_in_numbers, "a negation": check.differs_in_negation}
            difference_names = [word for word, is_different in differences.items() if is_different]
            note = f"; it differs in {' and '.join(difference_names)}" if difference_names else ""
            demonstration = ", a demonstration by a very small model" if check.demonstration else ""
            sentence = f"{kind} was checked on {check.when[:10]}: {check.verdict or check.outcome}{demonstration}"
            self._console.print(Text(f"{sentence} ({check.scale}, run {check.run}){note}"))
            if not check.same:
                self._console.print(Text(f"  {check.claim}", style="dim"))
        if past_checks:
            self._console.print()

    def event(self, claim: "Claim", event: Any) -> None:
        """Print an event of the debate: the parts of the claim, an opinion, a follow-up or a mediator's decision."""
        from rich.text import Text

        from climassay.factcheck.transcript import AdvocateOpinion, FollowUp, MediatorDecision

        print_line = self._console.print
        if isinstance(event, tuple):
            print_line(Text(f"Claim: {claim.text}", style="bold"))
            if len(event) > 1:
                for part in event:
                    print_line(Text(f"  {part.number}. {part.text}", style="dim"))
            print_line(Text(self._participants, style="dim"))
        elif isinstance(event, AdvocateOpinion):
            print_line(_format_opinion(event))
        elif isinstance(event, FollowUp):
            reply = _format_sentences(event.reply) or (event.error or "no reply")
            print_line(Text.assemble((f"{event.asker} asks {event.to}: ", "bold"), event.question))
            print_line(Text(f"  {event.to}: {reply}\n"))
        elif isinstance(event, MediatorDecision) and event.error is not None:
            print_line(Text(f"mediator failed: {event.error}\n", style="italic"))
        elif isinstance(event, MediatorDecision):
            step = "closes the debate" if event.closes else "opens another round"
            print_line(Text(f"mediator {step}: {_REASON_TEXTS[event.reason]}\n", style="italic"))


def _format_opinion(opinion: "AdvocateOpinion") -> Any:
    from rich.text import Text

    from climassay.factcheck.results.checked_claim import format_levels

    verdict = opinion.verdict or f"no opinion ({opinion.error})"
    change_note = " (changed)" if opinion.changed else ""
    text = Text.assemble((f"{opinion.advocate}, round {opinion.round}: ", "bold"), (verdict, "bold cyan"), change_note)
    if opinion.levels is not None:
        text.append(f"  {format_levels(opinion.levels)}", style="dim")
    if opinion.explanation:
        text.append(f"\n  {_format_sentences(opinion.explanation)}")
    return text.append("\n")


def _format_sentences(sentences: Sequence[Any]) -> str:
    from climassay.grounding import format_sentence

    return " ".join(format_sentence(sentence) for sentence in sentences)
