"""Fact-checking of claims in debates, for single claims or a file, and scores of the verdicts."""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from climassay import factcheck
from climassay.errors import InputError, NoAnswerError
from climassay.factcheck.scales import load_scale
from climassay.io import find_column, parse_rows, read_bytes, require_column, write_file
from climassay.models import DEFAULT_MODEL, Generator
from climassay.primer import claims_path
from climassay.reporting import Table, counted
from climassay.reporting.results import Shown
from climassay.session import Place, Session, one_or_several

if TYPE_CHECKING:
    from climassay.factcheck import DebateResources, PastCheck
    from climassay.factcheck.checking import Checker, OnEvent
    from climassay.factcheck.claims import ClaimColumns
    from climassay.factcheck.debate.rounds import DebateSetup
    from climassay.factcheck.estimate import DebateEstimate
    from climassay.factcheck.transcript import Claim, Transcript

PRIMER_CLAIMS = "primer:claims"
"""Name of the bundled claims, usable in place of a file."""
_CLAIM_COLUMNS = ("claim", "statement", "text")
"""Default columns of the claim's text, in order of preference; upper and lower case are equal."""
MAX_PAST_CHECKS = 3
"""Maximum number of earlier checks of similar claims that a check comes with."""
_SHOWN_CHARACTERS = 90
"""Maximum number of characters of a claim in a list of checks."""


def check_claim(
    claim: "str | Claim",
    collections: str | Sequence[str] = (),
    *,
    adversaries: Sequence[str] = (),
    plain: bool = False,
    settings: "factcheck.DebateSettings | None" = None,
    model: Generator | str | None = None,
    samples: int = 1,
    workspace: Place = None,
    force: bool = False,
    on_event: "OnEvent | None" = None,
    on_start: "Callable[[DebateSetup, Sequence[PastCheck]], None] | None" = None,
) -> "factcheck.CheckedClaim":
    """Check a claim by a debate: an advocate for each collection, and a mediator who gives the verdict.

    Args:
        claim: Text of the claim, or a claim with its source and date.
        collections: Collections, with one advocate each; ``A+B`` is one advocate with two collections, ``A=0.5`` one
            with weight 0.5.
        adversaries: Collections of adversarial advocates, which argue the stance of their collection.
        plain: Whether to add an advocate without passages.
        settings: Settings of the debate; the other arguments override its advocates and models.
        model: Model of all participants; by default the models of the settings.
        samples: Number of debates; with more than 1, the stability of the verdict is measured.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.
        force: Whether to debate claims that do not look checkable or are not about climate, too.
        on_event: Called with the claim and each event of the debate.
        on_start: Called before the first request with the setup of the debate and earlier checks of similar claims.

    Returns:
        Transcript of the debate; its ``verdict`` has the label, its explanation and its citations.

    Raises:
        InputError: The claim is empty, the debate has no advocate, or a collection does not exist.
        ModelError: The model cannot be loaded.

    Example:
        >>> transcript = check_claim("Carbon dioxide absorbs infrared radiation.", "heat", workspace=folder)
        >>> transcript.verdict.outcome
        'verdict'
    """
    claim_record = factcheck.make_claim(claim) if isinstance(claim, str) else claim
    rules = _rules(settings, collections, adversaries, plain)
    with (
        Session.opened(workspace) as session,
        _checking(session, rules, model, "check", {"claim": claim_record.text, "samples": samples}) as (
            checker,
            resources,
        ),
    ):
        encoder, store = resources.encoder, session.records
        past = (
            ()
            if encoder is None
            else tuple(factcheck.find_past_checks(store, claim_record.text, encoder, limit=MAX_PAST_CHECKS))
        )
        if on_start is not None:
            on_start(checker.setup, past)
        [transcript] = checker.check(
            [claim_record], samples=samples, force=force, on_event=on_event or (lambda _claim, _event: None)
        )
        checker.keep([transcript])
        return replace(factcheck.CheckedClaim.of(transcript, checker.setup.scale), past=past)


def check_claims(
    claims: "str | Path | Sequence[str] | factcheck.ClaimTable",
    collections: str | Sequence[str] = (),
    *,
    columns: "ClaimColumns | None" = None,
    adversaries: Sequence[str] = (),
    plain: bool = False,
    settings: "factcheck.DebateSettings | None" = None,
    model: Generator | str | None = None,
    limit: int | None = None,
    samples: int = 1,
    classes: int | None = None,
    concurrency: int | None = None,
    workspace: Place = None,
    force: bool = False,
) -> "factcheck.CheckedClaims":
    """Check many claims, and score the verdicts if published verdicts are known.

    Args:
        claims: File of claims, ``primer:claims``, texts, or a table of claims.
        collections: Collections, with one advocate each; ``A+B`` is one advocate with two collections, ``A=0.5`` one
            with weight 0.5.
        columns: Columns of the file.
        adversaries: Collections of adversarial advocates, which argue the stance of their collection.
        plain: Whether to add an advocate without passages.
        settings: Settings of the debate; the other arguments override its advocates and models.
        model: Model of all participants; by default the models of the settings.
        limit: Number of claims drawn by the seed; all by default.
        samples: Number of debates for each claim.
        classes: Number of classes in which distributions are shown.
        concurrency: Number of claims debated concurrently.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.
        force: Whether to debate claims that do not look checkable or are not about climate, too.

    Raises:
        InputError: The claims cannot be read, the debate has no advocate, or a published verdict is not on the scale.
        ModelError: A model cannot be loaded.
    """
    from climassay.factcheck.checking import CONCURRENCY

    rules = _rules(settings, collections, adversaries, plain)
    name = Path(claims).name if isinstance(claims, (str, Path)) else "claims"
    table = sample_claims(claim_table(claims, columns), limit, rules.seed)
    scale = load_scale(rules.scale)
    # What could not be scored or shown is said before the debates, and not after them.
    scale.classes(classes)
    counts = scale.comparable_counts(verdict for verdict in table.verdicts if verdict is not None)
    if classes is not None and classes not in counts:
        raise InputError(f"The published verdicts can be compared in {counts[0]} classes at most, not in {classes}.")
    truths = {
        claim_record.id: verdict
        for claim_record, verdict in zip(table.claims, table.verdicts, strict=True)
        if verdict is not None
    }
    config = {"file": name, "claims": len(table.claims), "samples": samples}
    with (
        Session.opened(workspace) as session,
        _checking(session, rules, model, "factcheck run", config) as (checker, _),
        session.progress.task("Debating", total=len(table.claims)) as task,
        session.progress.task("Requests") as requests_task,
    ):
        finished: list[Transcript] = []

        def show_requests() -> None:
            """Show the number of answered requests and, after a first estimate, of all requests."""
            answered = sum(tally.hits + tally.sent for tally in checker.tallies.values())
            calls = checker.setup.calls_of_one_round
            n_waiting = len(table.claims) - len(finished)
            known = samples * sum(transcript.usage.requests for transcript in finished)
            total = None if calls is None else max(answered, known + n_waiting * calls * samples)
            requests_task.update(completed=answered, total=total)

        def on_done(transcript: "Transcript") -> None:
            finished.append(transcript)
            task.advance()
            show_requests()

        transcripts = checker.check(
            table.claims,
            samples=samples,
            concurrency=concurrency or CONCURRENCY,
            force=force,
            on_done=on_done,
            on_requests=lambda _: show_requests(),
        )
        checker.keep(transcripts, truths)
    setup = checker.setup
    models = {
        profile.model: ", ".join(filter(None, (profile.fingerprint, profile.dtype))) for profile in setup.profiles
    }
    mediator = f"{setup.mediator.style}, {setup.mediator.model}"
    return factcheck.CheckedClaims(
        name,
        tuple(factcheck.CheckedClaim.of(transcript, scale) for transcript in transcripts),
        factcheck.analyse(transcripts, truths, checker.setup.scale, classes=classes),
        checker.run,
        checker.tallies,
        table.skipped,
        (("Run", checker.run), ("Mediator", mediator), *((f"Model {name}", facts) for name, facts in models.items())),
    )


def claim_table(
    claims: "str | Path | Sequence[str] | factcheck.ClaimTable", columns: "ClaimColumns | None" = None
) -> "factcheck.ClaimTable":
    """Return the claims of a file, of the primer, or of a sequence as a table.

    Raises:
        InputError: The file cannot be read, or a claim is empty.
    """
    if isinstance(claims, factcheck.ClaimTable):
        return claims
    if isinstance(claims, (str, Path)):
        if str(claims) != PRIMER_CLAIMS:
            return factcheck.read_claims(Path(claims), columns)
        return factcheck.read_claims(claims_path(), factcheck.ClaimColumns(verdict="verdict"))
    claim_records = tuple(factcheck.make_claim(claim) for claim in claims)
    return factcheck.ClaimTable(claim_records, (None,) * len(claim_records), ())


def list_claims(
    document: Path | str,
    *,
    model: Generator | str = DEFAULT_MODEL,
    limit: int | None = None,
    workspace: Place = None,
) -> Shown:
    """List the claims that a document makes, for climassay factcheck run; a model reads it passage by passage.

    Each row has a claim and the sentences that make it. Rows with a word in the column strike are not checked: those
    that are not checkable or not about climate have one already.

    Args:
        document: PDF, Word, HTML (a saved web page), EPUB, Markdown or text.
        model: Strong model that lists the claims.
        limit: Maximum number of passages to read, from the beginning.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The document cannot be read.
        ModelError: The model cannot be loaded.
    """
    from climassay.corpus import read
    from climassay.factcheck.claim_listing import ClaimLister, claim_passages, listed_rows
    from climassay.prompts import load_prompt

    file = Path(document).expanduser()
    result = read(file)
    if not result.documents:
        raise InputError(result.skipped[0].reason if result.skipped else f"{file} has no text.")
    passages = claim_passages(result.documents)[:limit]
    with Session.opened(workspace) as session:
        reader = session.model(model)
        prompt = load_prompt("factcheck_claims", session.options.prompts)
        config = {"document": file.name, "passages": len(passages), "prompt_sha256": prompt.sha256}
        with (
            session.run("factcheck claims", config) as run,
            session.progress.task("Reading", total=len(passages)) as task,
        ):
            lister = ClaimLister(session.recorded(reader, run), prompt)
            claims = lister.list_claims(passages, task.advance)
            rows = listed_rows(claims, session.encoder())
            run.save_results("claims", rows)
    counts = {
        "passages": len(passages),
        "failed": lister.failed,
        "unknown": lister.unknown,
        "repeated": lister.repeated,
    }
    quoted = sum(claim.is_quoted for claim in claims)
    size = f"{counted(len(claims), 'claim')} in {counted(len(passages), 'passage')}"
    notes = [f"{size} of {file.name}, listed by {reader.name}."]
    if lister.failed:
        notes.append(f"{counted(lister.failed, 'passage')} without a usable answer ({lister.error}): run it again.")
    if lister.unknown:
        notes.append(f"{counted(lister.unknown, 'claim')} left out that name no sentence, or too many.")
    if lister.repeated:
        notes.append(f"{counted(lister.repeated, 'claim')} left out that an earlier row has.")
    if quoted:
        notes.append(f"{counted(quoted, 'claim')} in the document's own words, because the model's had another figure.")
    if struck := sum(bool(row["strike"]) for row in rows):
        notes.append(f"{counted(struck, 'claim')} struck beforehand: empty the cell in the column strike to check it.")
    cells = [(row["strike"], str(row["page"] or ""), row["claim"], row["sentences"]) for row in rows]
    table = Table.of(f"Claims of {file.name}", ("strike", "page", "claim", "sentences"), cells, left=4)
    failure = NoAnswerError(lister.error) if passages and lister.failed == len(passages) else None
    return Shown({"run": run.id, **counts, "claims": rows}, (table,), rows, noted=notes, failed=failure)


def sample_claims(table: "factcheck.ClaimTable", limit: int | None, seed: int) -> "factcheck.ClaimTable":
    """Draw ``limit`` claims of a table by the seed, and return them in their order."""
    if limit is None or limit >= len(table.claims):
        return table
    indices = sorted(random.Random(seed).sample(range(len(table.claims)), limit))
    return replace(
        table,
        claims=tuple(table.claims[index] for index in indices),
        verdicts=tuple(table.verdicts[index] for index in indices),
    )


def score_verdicts(
    file: str | Path,
    truth: str,
    predicted: str,
    *,
    scale: str = "climate-feedback",
    classes: int | None = None,
    claim: str | None = None,
    unknown: Literal["error", "wrong"] = "error",
    seed: int = 0,
) -> "factcheck.ScoredVerdicts":
    """Score verdicts against published ones: accuracy and averages, with intervals and the best constant answer.

    Args:
        file: Verdicts: CSV, TSV, JSON, JSONL or Parquet, also .gz.
        truth: Column of the true verdicts.
        predicted: Column of the predicted verdicts.
        scale: Scale: accuracy, climate-feedback, climate-fever, science-feedback, binary, or a .toml file of your own.
            Verdicts of another of these scales can be scored in 2 classes.
        classes: Number of classes to collapse the scale to (climate-feedback: 7, 5 or 2).
        claim: Column of the claims, for duplicates; claim, statement or text if there is one.
        unknown: Treatment of predictions that are not on the scale: stop (error), or count them as wrong.
        seed: Seed of the resampling.

    Raises:
        InputError: The file or a column cannot be used, or a verdict is not on the scale.
    """
    from climassay.factcheck.results.scoring import score_verdicts as scored

    path, verdict_scale = Path(file), factcheck.load_scale(scale)
    rows = list(parse_rows(path, read_bytes(path)))
    if not rows:
        raise InputError(f"{path} has no rows.")
    # Cells beyond the heading of a CSV file have no name.
    columns = list(dict.fromkeys(column for row in rows for column in row if column is not None))
    truth = require_column(path, columns, truth, "--truth")
    predicted = require_column(path, columns, predicted, "--predicted")
    further_columns = [column for column in columns if column not in (truth, predicted)]
    named = require_column(path, columns, claim, "--claim") if claim else find_column(further_columns, *_CLAIM_COLUMNS)

    def cells(name: str) -> list[Any]:
        return [row.get(name) for row in rows]

    scores = scored(
        cells(truth),
        cells(predicted),
        verdict_scale,
        classes=classes,
        claims=None if named is None else cells(named),
        unknown=unknown,
        seed=seed,
    )
    facts = (
        ("File", str(file)), ("Truth", truth), ("Predicted", predicted), ("Claims", named or "no column"),
        ("Scale", scale), ("Not of the scale", unknown), ("Seed", str(seed)),
    )  # fmt: skip
    return factcheck.ScoredVerdicts(scores, f"{predicted} in {path.name}", facts)


def _rules(
    settings: "factcheck.DebateSettings | None",
    collections: str | Sequence[str],
    adversaries: Sequence[str],
    plain: bool,
) -> "factcheck.DebateSettings":
    """Return the debate settings, with the advocates of the arguments if any are named."""
    base = settings or factcheck.DebateSettings(model=DEFAULT_MODEL)
    named = factcheck.advocates_from_names(one_or_several(collections), plain=plain, adversaries=adversaries)
    return replace(base, advocates=named or base.advocates)


@contextmanager
def _checking(
    session: Session,
    settings: "factcheck.DebateSettings",
    model: Generator | str | None,
    command: str,
    config: dict[str, Any],
) -> "Iterator[tuple[Checker, DebateResources]]":
    """Yield a checker, whose requests are recorded as one run, with its resources; a loaded model takes every role."""
    speaker = None if model is None else session.model(model)
    if speaker is not None:
        settings = replace(
            settings,
            model=speaker.name,
            mediator=replace(settings.mediator, model=""),
            advocates=tuple(replace(advocate, model="") for advocate in settings.advocates),
        )
    resources = session.debate(settings, speaker)
    with factcheck.open_checker(
        settings,
        resources,
        session.records,
        command=command,
        config=config,
        prompts=session.options.prompts,
        use_cache=not session.options.no_cache,
    ) as checker:
        yield checker, resources


def estimate_debates(
    claims: "Sequence[Claim]",
    settings: "factcheck.DebateSettings",
    *,
    model: Generator | None = None,
    samples: int = 1,
    workspace: Place = None,
) -> "DebateEstimate":
    """Estimate requests, tokens, cost and time of debates without asking a model.

    Args:
        claims: Claims to be debated.
        settings: Settings of the debate.
        model: Loaded model of all participants; by default the models of the settings.
        samples: Number of debates for each claim.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: A collection or the scale does not exist.
        ModelError: A model cannot be loaded.
    """
    from climassay.factcheck.checking import set_up_debate
    from climassay.factcheck.estimate import estimate_debate
    from climassay.records.queries import seconds_per_answer

    with Session.opened(workspace) as session:
        resources = session.debate(settings, model)
        with session.progress.status("Estimating ..."):
            setup = set_up_debate(settings, resources, session.options.prompts)
            database = session.records.database
            return estimate_debate(setup, resources, claims, samples, lambda model: seconds_per_answer(database, model))


def list_checks(
    checks_filter: "factcheck.CheckFilter | None" = None, *, page: int = 1, workspace: Place = None
) -> Shown:
    """List checks, newest first, and how often people agree with the verdicts.

    Args:
        checks_filter: Conditions that the checks must meet (:class:`climassay.factcheck.CheckFilter`); all by default.
        page: Page number; fifty checks a page, newest first.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The review or a day of the filter is invalid.
    """
    from climassay.factcheck.check_records import (
        iso_time,
        summary_data,
    )

    with Session.opened(workspace) as session:
        checks = factcheck.CheckStore(session.records)
        result, share = checks.list(checks_filter, page), checks.agreement()
    records = [summary_data(check) for check in result.checks]
    data = {"total": result.total, "page": result.page, "pages": result.pages, "checks": records, "reviews": share}
    rows = []
    for check in result.checks:
        claim = check.claim.text
        short = claim if len(claim) <= _SHOWN_CHARACTERS else claim[:_SHOWN_CHARACTERS] + "…"
        ended = f"{check.label or check.outcome or check.state}{' (demonstration)' if check.demonstration else ''}"
        rows.append((check.id, iso_time(check.asked_at)[:10], short, ended, str(check.agree), str(check.disagree)))
    note = f"{counted(result.total, 'check')} asked for in the browser, page {result.page} of {result.pages}."
    if not result.total:
        note += " What commands have checked is among the runs: climassay records runs."
    if share.agreed is not None:
        low, high = share.agreed.interval.low, share.agreed.interval.high
        agreed = f"{share.agreed.value:.0%} of {share.agreed.n} reviewed"
        note += f" People agree with {agreed} ({low:.0%} to {high:.0%})."
    table = Table.of("", ("id", "asked", "claim", "ended with", "agree", "disagree"), rows, left=4, note=note)
    return Shown(data, (table,), records) if rows else Shown(data, (), records, noted=(note,))


def show_check(check: str, *, workspace: Place = None) -> Shown:
    """Show a check with its verdict and its reviews.

    Args:
        check: Id of the check.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The check does not exist.
    """
    from climassay.factcheck.check_records import iso_time
    from climassay.factcheck.results.checked_claim import verdict_lines

    with Session.opened(workspace) as session:
        checks = factcheck.CheckStore(session.records)
        result, reviews = checks.get(check), checks.reviews(check)
    lines: list[Any] = [f"Claim: {result.about.claim.text}"]
    if result.transcript is None:
        reason = f": {result.about.error}" if result.about.error else ""
        lines.append(f"No result; the check is {result.about.state}{reason}")
    else:
        lines += verdict_lines(result.transcript, factcheck.load_scale(result.settings.scale))
    verbs = {"agree": "agrees", "disagree": "disagrees", "undecided": "comments"}
    for review in reviews:
        changed = "" if review.current else " (changed since)"
        comment = f": {review.comment}" if review.comment else ""
        lines.append(f"{review.by} {verbs[review.opinion]}{changed}, {iso_time(review.made_at)[:10]}{comment}")
    return Shown(lambda: factcheck.check_data(result, reviews), printed_lines=lines)


def export_checks(
    file: Path | str, checks_filter: "factcheck.CheckFilter | None" = None, *, workspace: Place = None
) -> Shown:
    """Write all checks, or those that match, oldest first, with their debates and reviews.

    Args:
        file: File to write: one check per line (.jsonl), with debate and reviews.
        checks_filter: Conditions that the checks must meet (:class:`climassay.factcheck.CheckFilter`).
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The file cannot be written, or the review or a day of the filter is invalid.
    """
    file = Path(file)
    if file.suffix != ".jsonl":
        raise InputError(f"{file} must end in .jsonl: write one check per line.")
    if file.is_dir():
        raise InputError(f"{file} is a folder: name a file.")
    with Session.opened(workspace) as session:
        result = factcheck.CheckStore(session.records).iterate(checks_filter, debates=True)
        lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in result][::-1]
    write_file(file, "".join(lines))
    return Shown({"file": file, "checks": len(lines)}, noted=(f"{file} written: {len(lines)} checks.",))
