"""Fact-checks that were made in the browser: listed, shown and exported."""

import json
from pathlib import Path
from typing import Any

from climassay.errors import InputError
from climassay.factcheck.configuration import CheckFilter
from climassay.io import write_file
from climassay.reporting import Table, counted
from climassay.reporting.results import AssembledResult
from climassay.session import Place, Session

_MAX_CLAIM_CHARACTERS = 90
"""Maximum number of characters that a list of checks shows of each claim."""


def list_checks(checks_filter: CheckFilter | None = None, *, page: int = 1, workspace: Place = None) -> AssembledResult:
    """List fact-checks, newest first, and how often reviewers agree with their verdicts.

    Args:
        checks_filter: Conditions that the checks must meet (:class:`climassay.factcheck.CheckFilter`); all by default.
        page: Number of the page; each page has up to fifty checks.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The filter has an invalid review or date.
    """
    from climassay.factcheck.check_records import iso_time, summary_data
    from climassay.factcheck.check_store import CheckStore

    with Session.opened(workspace) as session:
        checks = CheckStore(session.records)
        checks_page, review_agreement = checks.list(checks_filter, page), checks.agreement()
    records = [summary_data(check) for check in checks_page.checks]
    data = {
        "total": checks_page.total,
        "page": checks_page.page,
        "pages": checks_page.pages,
        "checks": records,
        "reviews": review_agreement,
    }
    rows = []
    for check in checks_page.checks:
        claim = check.claim.text
        shortened_claim = claim if len(claim) <= _MAX_CLAIM_CHARACTERS else claim[:_MAX_CLAIM_CHARACTERS] + "…"
        outcome = f"{check.label or check.outcome or check.state}{' (demonstration)' if check.demonstration else ''}"
        rows.append(
            (check.id, iso_time(check.asked_at)[:10], shortened_claim, outcome, str(check.agree), str(check.disagree))
        )
    position = f"page {checks_page.page} of {checks_page.pages}"
    note = f"{counted(checks_page.total, 'check')} asked for in the browser, {position}."
    if not checks_page.total:
        note += " What commands have checked is among the runs: climassay records runs."
    if review_agreement.agreed is not None:
        agreement = review_agreement.agreed
        interval = f"{agreement.interval.low:.0%} to {agreement.interval.high:.0%}"
        note += f" People agree with {agreement.value:.0%} of {agreement.n} reviewed ({interval})."
    table = Table.of("", ("id", "asked", "claim", "ended with", "agree", "disagree"), rows, left_columns=4, note=note)
    return AssembledResult(data, (table,), records) if rows else AssembledResult(data, (), records, noted=(note,))


def show_check(check: str, *, workspace: Place = None) -> AssembledResult:
    """Show a fact-check with its verdict and its reviews.

    Args:
        check: Id of the check.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The check does not exist.
    """
    from climassay.factcheck.check_records import check_data, iso_time
    from climassay.factcheck.check_store import CheckStore
    from climassay.factcheck.results.checked_claim import verdict_lines
    from climassay.factcheck.scales import load_scale

    with Session.opened(workspace) as session:
        checks = CheckStore(session.records)
        stored_check, reviews = checks.get(check), checks.reviews(check)
    lines: list[Any] = [f"Claim: {stored_check.about.claim.text}"]
    if stored_check.transcript is None:
        reason = f": {stored_check.about.error}" if stored_check.about.error else ""
        lines.append(f"No result; the check is {stored_check.about.state}{reason}")
    else:
        lines += verdict_lines(stored_check.transcript, load_scale(stored_check.settings.scale))
    verbs = {"agree": "agrees", "disagree": "disagrees", "undecided": "comments"}
    for review in reviews:
        outdated_note = "" if review.current else " (changed since)"
        comment = f": {review.comment}" if review.comment else ""
        lines.append(f"{review.by} {verbs[review.opinion]}{outdated_note}, {iso_time(review.made_at)[:10]}{comment}")
    return AssembledResult(lambda: check_data(stored_check, reviews), printed_lines=lines)


def export_checks(
    file: Path | str, checks_filter: CheckFilter | None = None, *, workspace: Place = None
) -> AssembledResult:
    """Write fact-checks, with their debates and reviews, to a file; the oldest check comes first.

    Args:
        file: File to write (.jsonl), with one check per line.
        checks_filter: Conditions that the checks must meet (:class:`climassay.factcheck.CheckFilter`); all by default.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The file cannot be written, or the filter has an invalid review or date.
    """
    from climassay.factcheck.check_store import CheckStore

    file = Path(file)
    if file.suffix != ".jsonl":
        raise InputError(f"{file} must end in .jsonl: write one check per line.")
    if file.is_dir():
        raise InputError(f"{file} is a folder: name a file.")
    with Session.opened(workspace) as session:
        records = CheckStore(session.records).iterate(checks_filter, debates=True)
        lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in records][::-1]
    write_file(file, "".join(lines))
    return AssembledResult({"file": file, "checks": len(lines)}, noted=(f"{file} written: {len(lines)} checks.",))
