"""Fact-checking of claims in debates, for single claims or a file, and scores of the verdicts."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from climassay import factcheck
from climassay.errors import InputError, NoAnswerError
from climassay.factcheck.scales import load_scale
from climassay.io import find_column, parse_rows, read_bytes, require_column
from climassay.models import DEFAULT_MODEL, Generator
from climassay.reporting import Table, counted
from climassay.reporting.results import AssembledResult
from climassay.session import Place, Session, one_or_several

if TYPE_CHECKING:
    from climassay.factcheck import PastCheck
    from climassay.factcheck.checking import OnEvent
    from climassay.factcheck.claims import ClaimColumns
    from climassay.factcheck.debate.setup import DebateSetup
    from climassay.factcheck.transcript import Claim, Transcript

MAX_PAST_CHECKS = 3
"""Maximum number of earlier checks of similar claims that accompany a check."""


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
        collections: Collections, each with an advocate of its own. ``A+B`` gives one advocate two collections;
            ``A=0.5`` gives the advocate the weight 0.5.
        adversaries: Collections with adversarial advocates, which defend the position of their collection.
        plain: Whether to add an advocate that answers without passages.
        settings: Settings of the debate; the arguments that name collections or a model override its advocates and
            models.
        model: Model of all participants; by default the models of the settings.
        samples: Number of debates; with more than 1, the stability of the verdict is measured.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.
        force: Whether to debate even claims that do not look checkable or are not about climate.
        on_event: Function that is called with the claim and each event of the debate.
        on_start: Function that is called before the first request, with the setup of the debate and earlier checks of
            similar claims.

    Returns:
        Transcript of the debate, whose ``verdict`` contains the label, the explanation and the citations.

    Raises:
        InputError: The claim is empty, the debate has no advocate, or a collection does not exist.
        ModelError: The model cannot be loaded.

    Example:
        >>> transcript = check_claim("Carbon dioxide absorbs infrared radiation.", "heat", workspace=folder)
        >>> transcript.verdict.outcome
        'not enough information'
    """
    from climassay.factcheck.session_debates import open_session_checker

    claim_record = factcheck.make_claim(claim) if isinstance(claim, str) else claim
    debate_settings = _add_advocates(settings, collections, adversaries, plain)
    config = {"claim": claim_record.text, "samples": samples}
    with (
        Session.opened(workspace) as session,
        open_session_checker(session, debate_settings, "check", config, model) as checker,
    ):
        encoder = checker.setup.encoder
        past_checks: tuple[PastCheck, ...] = ()
        if encoder is not None:
            past_checks = tuple(
                factcheck.find_past_checks(session.records, claim_record.text, encoder, limit=MAX_PAST_CHECKS)
            )
        if on_start is not None:
            on_start(checker.setup, past_checks)
        [transcript] = checker.check(
            [claim_record], samples=samples, force=force, on_event=on_event or (lambda _claim, _event: None)
        )
        checker.save_transcripts([transcript])
        return replace(factcheck.CheckedClaim.of(transcript, checker.setup.scale), past=past_checks)


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
        claims: File of claims, ``primer:claims``, a sequence of texts, or a table of claims.
        collections: Collections, each with an advocate of its own. ``A+B`` gives one advocate two collections;
            ``A=0.5`` gives the advocate the weight 0.5.
        columns: Names of the file's columns.
        adversaries: Collections with adversarial advocates, which defend the position of their collection.
        plain: Whether to add an advocate that answers without passages.
        settings: Settings of the debate; the arguments that name collections or a model override its advocates and
            models.
        model: Model of all participants; by default the models of the settings.
        limit: Number of claims to draw at random with the settings' seed; by default all are checked.
        samples: Number of debates for each claim.
        classes: Number of classes to which verdicts are collapsed in the distributions shown.
        concurrency: Number of claims debated concurrently.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.
        force: Whether to debate even claims that do not look checkable or are not about climate.

    Raises:
        InputError: The claims cannot be read, the debate has no advocate, a published verdict is not on the scale, or
            the scale cannot be collapsed to this number of classes.
        ModelError: A model cannot be loaded.
    """
    from climassay.factcheck.checking import CONCURRENCY
    from climassay.factcheck.session_debates import open_session_checker

    debate_settings = _add_advocates(settings, collections, adversaries, plain)
    name = Path(claims).name if isinstance(claims, (str, Path)) else "claims"
    table = factcheck.ClaimTable.load(claims, columns).sample(limit, debate_settings.seed)
    scale = load_scale(debate_settings.scale)
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
        open_session_checker(session, debate_settings, "factcheck run", config, model) as checker,
        session.progress.task("Debating", total=len(table.claims)) as task,
        session.progress.task("Requests") as requests_task,
    ):
        finished_transcripts: list[Transcript] = []

        def show_requests() -> None:
            """Show the number of answered requests and the estimated total number."""
            n_answered = sum(tally.hits + tally.sent for tally in checker.tallies.values())
            calls = checker.setup.n_calls_of_one_round
            n_waiting = len(table.claims) - len(finished_transcripts)
            n_finished_requests = samples * sum(transcript.usage.requests for transcript in finished_transcripts)
            total = max(n_answered, n_finished_requests + n_waiting * calls * samples)
            requests_task.update(completed=n_answered, total=total)

        def on_done(transcript: "Transcript") -> None:
            finished_transcripts.append(transcript)
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
        checker.save_transcripts(transcripts, truths)
    setup = checker.setup
    models = {
        profile.model: ", ".join(filter(None, (profile.fingerprint, profile.dtype)))
        for profile in setup.profiles.values()
    }
    mediator = f"{setup.mediator.style}, {setup.mediator.model}"
    return factcheck.CheckedClaims(
        name,
        tuple(factcheck.CheckedClaim.of(transcript, scale) for transcript in transcripts),
        factcheck.analyse(
            transcripts,
            truths,
            checker.setup.scale,
            classes=classes,
            group_column=table.group_column,
            groups={claim_record.id: group for claim_record, group in zip(table.claims, table.groups, strict=True)},
        ),
        checker.run_id,
        checker.tallies,
        table.skipped,
        (
            ("Run", checker.run_id),
            ("Mediator", mediator),
            *((f"Model {name}", facts) for name, facts in models.items()),
        ),
    )


def list_claims(
    document: Path | str,
    *,
    model: Generator | str = DEFAULT_MODEL,
    limit: int | None = None,
    workspace: Place = None,
) -> AssembledResult:
    """Have a model list the claims that a document makes, passage by passage, for ``climassay factcheck run``.

    Each row contains a claim and the sentences that make it. Rows with any text in the column strike are not checked
    later; claims that are not checkable or not about climate are struck in advance.

    Args:
        document: PDF, Word, HTML, EPUB, Markdown or text file, or the address of a web page or PDF (https://...).
        model: Strong model that lists the claims.
        limit: Maximum number of passages to read, from the beginning.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The document cannot be read.
        ModelError: The model cannot be loaded.
    """
    from climassay.corpus import read
    from climassay.corpus.readers.download import is_address, read_address
    from climassay.factcheck.claim_listing import ClaimLister, claim_passages, listed_rows
    from climassay.prompts import load_prompt

    with tempfile.TemporaryDirectory(prefix="climassay") as folder:
        result = (
            read_address(str(document), Path(folder)) if is_address(document) else read(Path(document).expanduser())
        )
    if not result.documents:
        raise InputError(result.skipped[0].reason if result.skipped else f"{document} has no text.")
    source = str(document) if is_address(document) else result.source
    passages = claim_passages(result.documents)[:limit]
    with Session.opened(workspace) as session:
        generator = session.model(model)
        prompt = load_prompt("factcheck_claims", session.options.prompts)
        config = {"document": source, "passages": len(passages), "prompt_sha256": prompt.sha256}
        with (
            session.run("factcheck claims", config) as run,
            session.progress.task("Reading", total=len(passages)) as task,
        ):
            lister = ClaimLister(session.recorded(generator, run), prompt)
            claims = lister.list_claims(passages, task.advance)
            rows = listed_rows(claims, session.encoder())
            run.save_results("claims", rows)
    counts = {
        "passages": len(passages),
        "failed": lister.n_failed,
        "unknown": lister.n_rejected,
        "repeated": lister.n_repeated,
    }
    notes = lister.notes(claims, f"{counted(len(passages), 'passage')} of {source}")
    if n_struck := sum(bool(row["strike"]) for row in rows):
        notes.append(
            f"{counted(n_struck, 'claim')} struck beforehand: empty the cell in the column strike to check it."
        )
    row_cells = [(row["strike"], str(row["page"] or ""), row["claim"], row["sentences"]) for row in rows]
    table = Table.of(f"Claims of {source}", ("strike", "page", "claim", "sentences"), row_cells, left_columns=4)
    failure = NoAnswerError(lister.error) if passages and lister.n_failed == len(passages) else None
    tables = (table,) if rows else ()
    return AssembledResult({"run": run.id, **counts, "claims": rows}, tables, rows, noted=notes, failed=failure)


def score_verdicts(
    file: str | Path,
    truth: str,
    predicted: str,
    *,
    scale: str = "climate-feedback",
    classes: int | None = None,
    claim: str | None = None,
    by: str | None = None,
    unknown: Literal["error", "wrong"] = "error",
    seed: int = 0,
) -> "factcheck.ScoredVerdicts":
    """Score predicted verdicts against true ones, with intervals and the majority-class baseline.

    Args:
        file: Table of verdicts (CSV, TSV, JSON, JSONL or Parquet, also gzipped).
        truth: Column of the true verdicts.
        predicted: Column of the predicted verdicts.
        scale: Scale of the verdicts: accuracy, climate-feedback, climate-fever, science-feedback, binary, or a .toml
            file of your own. With two classes, the verdicts may also be on another of these scales.
        classes: Number of classes to which the scale is collapsed (climate-feedback: 7, 5 or 2).
        claim: Column of the claims, so that repeated claims are resampled together; by default claim, statement or
            text if there is one.
        by: Column by whose values the scores are broken down, for example the field of science.
        unknown: Treatment of predictions that are not on the scale: stop with an error, or count them as wrong.
        seed: Seed of the resampling.

    Raises:
        InputError: The file or a column cannot be used, or a verdict is not on the scale.
    """
    from climassay.factcheck.claims import CLAIM_COLUMNS
    from climassay.factcheck.results.scoring import score_groups
    from climassay.factcheck.results.scoring import score_verdicts as compute_scores

    path, verdict_scale = Path(file), factcheck.load_scale(scale)
    rows = list(parse_rows(path, read_bytes(path)))
    if not rows:
        raise InputError(f"{path} has no rows.")
    # Cells beyond the heading of a CSV file have no name.
    columns = list(dict.fromkeys(column for row in rows for column in row if column is not None))
    truth = require_column(path, columns, truth, "--truth")
    predicted = require_column(path, columns, predicted, "--predicted")
    other_columns = [column for column in columns if column not in (truth, predicted)]
    claim_column = (
        require_column(path, columns, claim, "--claim") if claim else find_column(other_columns, *CLAIM_COLUMNS)
    )

    def cells(name: str) -> list[Any]:
        return [row.get(name) for row in rows]

    options: dict[str, Any] = {
        "classes": classes,
        "claims": None if claim_column is None else cells(claim_column),
        "unknown": unknown,
        "seed": seed,
    }
    scores = compute_scores(cells(truth), cells(predicted), verdict_scale, **options)
    by = None if by is None else require_column(path, columns, by, "--by")
    grouped_scores = (
        None if by is None else score_groups(by, cells(by), cells(truth), cells(predicted), verdict_scale, **options)
    )
    facts = (
        ("File", str(file)), ("Truth", truth), ("Predicted", predicted), ("Claims", claim_column or "no column"),
        ("Scale", scale), ("Not of the scale", unknown), ("Seed", str(seed)),
    )  # fmt: skip
    return factcheck.ScoredVerdicts(scores, f"{predicted} in {path.name}", facts, grouped_scores)


def _add_advocates(
    settings: "factcheck.DebateSettings | None",
    collections: str | Sequence[str],
    adversaries: Sequence[str],
    has_plain_advocate: bool,
) -> "factcheck.DebateSettings":
    """Return the debate settings; advocates named in the arguments replace the advocates in the settings."""
    debate_settings = settings or factcheck.DebateSettings(model=DEFAULT_MODEL)
    advocates = factcheck.advocates_from_names(
        one_or_several(collections), plain=has_plain_advocate, adversaries=adversaries
    )
    return replace(debate_settings, advocates=advocates or debate_settings.advocates)
