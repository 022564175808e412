"""Fact-checks that were asked for, one by one, with their debates and with what people say about them.

A check is stored before its debate begins, under an id of its own that stays; what experts and readers say is added
beside it. Nothing is deleted, and a second word of the same person stands in place of the first, which is kept.
"""

import json
import os
import time
from collections.abc import Sequence
from typing import Any, get_args

import sqlalchemy as sa

from climassay.claim_identity import claim_id
from climassay.errors import InputError
from climassay.factcheck.check_tables import check_reviews, checks, current_reviews, metadata
from climassay.factcheck.configuration import DebateSettings, parse_settings, settings_tables
from climassay.factcheck.kept_check import (
    LONGEST_CLAIM,
    LONGEST_COMMENT,
    LONGEST_SOURCE,
    PAGE,
    AgreementShare,
    CheckList,
    CheckReview,
    CheckSummary,
    KeptCheck,
    Opinion,
    Reviewed,
    Wanted,
)
from climassay.factcheck.serialisation import as_data, from_data
from climassay.factcheck.transcript import Claim, Transcript
from climassay.records import Records
from climassay.records.requests import storable_text
from climassay.statistics.intervals import proportion


class KeptChecks:
    """The checks of one records database; its tables are made when they are first needed.

    Args:
        records: The open records.
    """

    def __init__(self, records: Records) -> None:
        self._database = records.database
        self._database.create_tables(metadata)

    def begin(self, claim: Claim, settings: DebateSettings, *, set_up: str, by: str | None = None) -> str:
        """Store a check that is to be made.

        Returns:
            Its id: ``c`` and twelve hexadecimal digits.

        Raises:
            InputError: The claim or its source is too long.
        """
        for text, most, what in ((claim.text, LONGEST_CLAIM, "claim"), (claim.source, LONGEST_SOURCE, "source")):
            if len(text) > most:
                raise InputError(f"The {what} has {len(text):,} characters, and the limit is {most:,}: shorten it.")
        row = {
            "id": "c" + os.urandom(6).hex(),
            "claim_id": claim.id,
            "claim": storable_text(claim.text),
            "source": storable_text(claim.source),
            "date": storable_text(claim.date),
            "by": by,
            "asked_at": time.time(),
            "state": "waiting",
            "set_up": set_up,
            "settings": json.dumps(settings_tables(settings), ensure_ascii=False),
        }
        self._database.write(lambda connection: connection.execute(checks.insert().values(row)))
        return str(row["id"])

    def reopen(self, check: str) -> None:
        """Let a check wait again that broke, was stopped or ended without a result; another one stays as it is."""
        fruitless = checks.c.state.in_(("failed", "stopped")) | (checks.c.outcome == "failed")
        names = ("job", "run", "outcome", "label", "error", "ended_at", "transcript")
        self._update(checks.c.id == check, fruitless, state="waiting", **dict.fromkeys(names))

    def give_to(self, check: str, job: str) -> None:
        """Note which job does the work."""
        self._update(checks.c.id == check, job=job)

    def finish(self, check: str, transcript: Transcript, *, run: str) -> None:
        """Store how a check ended; one that has ended already stays as it is, unless it had broken elsewhere."""
        written = json.dumps(as_data(transcript), ensure_ascii=False, allow_nan=False)
        self._end(
            check,
            ("waiting", "failed"),
            state="done",
            error=None,
            run=run,
            outcome=transcript.verdict.outcome,
            label=transcript.verdict.label,
            transcript=storable_text(written),
        )

    def fail(self, check: str, error: str) -> None:
        """Store that a check broke, and why, in one sentence."""
        self._end(check, ("waiting",), state="failed", error=storable_text(error))

    def stop(self, check: str, job: str | None = None) -> None:
        """Store that a person stopped a check.

        Args:
            check: Id of the check.
            job: Only if this job still does the work: a check may have been begun again before the job that was
                stopped comes to its end.
        """
        mine = () if job is None else (checks.c.job == job,)
        self._update(checks.c.id == check, checks.c.state == "waiting", *mine, state="stopped", ended_at=time.time())

    def _end(self, check: str, before: tuple[str, ...], **values: Any) -> None:
        self._update(checks.c.id == check, checks.c.state.in_(before), ended_at=time.time(), **values)

    def _update(self, *where: sa.ColumnElement[bool], **values: Any) -> None:
        self._database.write(lambda connection: connection.execute(checks.update().where(*where).values(values)))

    # ------------------------------------------------------------------------------------------------------ reading

    def get(self, check: str) -> KeptCheck:
        """A check with its debate.

        Raises:
            InputError: There is no check of that id, or what is stored is damaged.
        """
        query = _summaries(checks.c.settings, checks.c.transcript).where(checks.c.id == check)
        with self._database.read() as connection:
            row = connection.execute(query).mappings().first()
        if row is None:
            raise InputError(f"There is no check {check!r}.")
        settings = parse_settings(json.loads(row["settings"]), where=f"The check {check}")
        transcript = None if row["transcript"] is None else from_data(json.loads(row["transcript"]))
        return KeptCheck(_summary(row), settings, transcript)

    def __contains__(self, check: str) -> bool:
        """Whether there is a check of an id."""
        with self._database.read() as connection:
            return connection.execute(sa.select(checks.c.id).where(checks.c.id == check)).first() is not None

    def list(self, wanted: Wanted | None = None, page: int = 1) -> CheckList:
        """A page of the checks that fit, the newest first; a page beyond the last is empty."""
        query = _summaries().where(*_conditions(wanted or Wanted()))
        ordered = query.order_by(checks.c.asked_at.desc(), checks.c.id).limit(PAGE).offset((max(page, 1) - 1) * PAGE)
        with self._database.read() as connection:
            total = connection.execute(sa.select(sa.func.count()).select_from(query.subquery())).scalar_one()
            rows = connection.execute(ordered).mappings().all()
        return CheckList(tuple(_summary(row) for row in rows), total, max(page, 1))

    def newest(self, wanted: Wanted | None = None, *, most: int, after: str | None = None) -> "Sequence[CheckSummary]":
        """Checks that fit, the newest first; checks that begin meanwhile do not shift what comes behind another one.

        Args:
            wanted: Which ones.
            most: How many.
            after: Id of the check behind which the list begins.

        Raises:
            InputError: There is no check of that id.
        """
        query = _summaries().where(*_conditions(wanted or Wanted()))
        with self._database.read() as connection:
            if after is not None:
                at = connection.execute(sa.select(checks.c.asked_at).where(checks.c.id == after)).scalar_one_or_none()
                if at is None:
                    raise InputError(f"There is no check {after!r}.")
                query = query.where(sa.tuple_(-checks.c.asked_at, checks.c.id) > sa.tuple_(-at, after))
            ordered = query.order_by(checks.c.asked_at.desc(), checks.c.id).limit(most)
            return [_summary(row) for row in connection.execute(ordered).mappings()]

    def ids(self) -> "Sequence[str]":
        """Ids of all checks, the oldest first."""
        with self._database.read() as connection:
            return list(connection.execute(sa.select(checks.c.id).order_by(checks.c.asked_at, checks.c.id)).scalars())

    def verdicts(self) -> "Sequence[str]":
        """What checks have ended with: labels, and outcomes of those without one; each once, in alphabetical order."""
        query = sa.select(_ENDED_WITH).where(checks.c.outcome.is_not(None)).distinct()
        with self._database.read() as connection:
            return sorted(connection.execute(query).scalars())

    def of_runs(self, runs: Sequence[str]) -> dict[str, str]:
        """Ids of checks by the run that made them, where a run made one."""
        query = sa.select(checks.c.run, checks.c.id).where(checks.c.run.in_(runs))
        with self._database.read() as connection:
            return {row.run: row.id for row in connection.execute(query)}

    def under_way(self, claim: Claim, by: str | None, set_up: str) -> str | None:
        """A check of the same claim and set-up that the same person asked for and that has not ended; the oldest."""
        mine = checks.c.by.is_(None) if by is None else checks.c.by == by
        waiting = sa.and_(checks.c.set_up == set_up, checks.c.state == "waiting", mine)
        query = sa.select(checks.c.id, checks.c.claim).where(waiting).order_by(checks.c.asked_at)
        with self._database.read() as connection:
            rows = connection.execute(query).all()
        # By the text: ids that an earlier climassay stored are the same for claims that differ in a sign.
        return next((row.id for row in rows if claim_id(row.claim) == claim_id(storable_text(claim.text))), None)

    def without_job(self) -> "Sequence[str]":
        """Checks that wait and that no job was begun for, the oldest first: the process that took them was killed."""
        query = sa.select(checks.c.id).where(checks.c.state == "waiting", checks.c.job.is_(None))
        with self._database.read() as connection:
            return list(connection.execute(query.order_by(checks.c.asked_at)).scalars())

    def waiting(self) -> int:
        """How many checks have not ended."""
        query = sa.select(sa.func.count()).select_from(checks).where(checks.c.state == "waiting")
        with self._database.read() as connection:
            return int(connection.execute(query).scalar_one())

    # ------------------------------------------------------------------------------------------------------ merging

    def merge(self, other: "KeptChecks") -> tuple[int, int]:
        """Take in the checks of another workspace that have ended, and what people said about them.

        Returns:
            Checks that were not here before, and checks left out because they have not ended there.
        """
        ended = checks.c.state != "waiting"
        said = check_reviews.c.check.in_(sa.select(checks.c.id).where(ended))
        with other._database.read() as reading:
            rows = [dict(row) | {"job": None} for row in reading.execute(sa.select(checks).where(ended)).mappings()]
            waiting = int(reading.execute(sa.select(sa.func.count()).select_from(checks).where(~ended)).scalar_one())
            words = sa.select(check_reviews).where(said).order_by(check_reviews.c.number)
            reviews = [dict(row) for row in reading.execute(words).mappings()]
        for review in reviews:
            del review["number"]

        def work(connection: sa.Connection) -> int:
            known = set(connection.execute(sa.select(checks.c.id)).scalars())
            new = [row for row in rows if row["id"] not in known]
            self._database.insert_new(connection, checks, new)
            there = sa.select(check_reviews.c.check, check_reviews.c.by, check_reviews.c.made_at)
            told = {tuple(row) for row in connection.execute(there)}
            fresh = [one for one in reviews if (one["check"], one["by"], one["made_at"]) not in told]
            if fresh:
                connection.execute(check_reviews.insert(), fresh)
            return len(new)

        return self._database.write(work), waiting

    # ------------------------------------------------------------------------------------------------------ reviews

    def review(self, check: str, by: str, opinion: str, comment: str = "") -> None:
        """Add what a person says about a finished check; the same word a second time changes nothing.

        Args:
            check: Id of the check.
            by: Name of the account.
            opinion: One of :data:`Opinion`.
            comment: In the person's own words.

        Raises:
            InputError: There is no such check, it has not ended, or what is said does not fit.
        """
        said = storable_text(comment.strip())
        if opinion not in get_args(Opinion):
            raise InputError(f"An opinion on a check is {', '.join(get_args(Opinion))}, not {opinion!r}.")
        if len(said) > LONGEST_COMMENT:
            raise InputError(f"The comment has {len(said):,} characters, and the limit is {LONGEST_COMMENT:,}.")
        if opinion == "undecided" and not said:
            raise InputError("Say whether you agree, or write a comment.")
        row = {"check": check, "by": by, "opinion": opinion, "comment": said, "made_at": time.time()}
        mine = sa.and_(check_reviews.c.check == check, check_reviews.c.by == by)
        last = sa.select(check_reviews).where(mine).order_by(check_reviews.c.number.desc()).limit(1)

        def work(connection: sa.Connection) -> None:
            state = connection.execute(sa.select(checks.c.state).where(checks.c.id == check)).scalar_one_or_none()
            if state is None:
                raise InputError(f"There is no check {check!r}.")
            if state != "done":
                raise InputError("A check can be reviewed when its debate has ended.")
            before = connection.execute(last).mappings().first()
            if before is None or (before["opinion"], before["comment"]) != (opinion, said):
                connection.execute(check_reviews.insert().values(row))

        self._database.write(work)

    def reviews(self, check: str) -> "Sequence[CheckReview]":
        """What people said about a check, in order; earlier words of a person are kept."""
        query = sa.select(check_reviews).where(check_reviews.c.check == check).order_by(check_reviews.c.number)
        with self._database.read() as connection:
            rows = connection.execute(query).mappings().all()
        last = {row["by"]: row["number"] for row in rows}
        return [
            CheckReview(row["by"], row["opinion"], row["comment"], row["made_at"], last[row["by"]] == row["number"])
            for row in rows
        ]

    def agreement(self) -> AgreementShare:
        """How often people agree with the verdicts, with Wilson's interval."""
        counts = current_reviews().subquery()
        with self._database.read() as connection:
            rows = connection.execute(sa.select(counts.c.agree, counts.c.disagree)).all()
        agreed = sum(row.agree > row.disagree for row in rows)
        against = sum(row.agree < row.disagree for row in rows)
        divided = sum(row.agree == row.disagree and row.agree > 0 for row in rows)
        return AgreementShare(proportion(agreed, agreed + against) if agreed + against else None, divided)


_ENDED_WITH = sa.func.coalesce(checks.c.label, checks.c.outcome)


def _summaries(*more: sa.ColumnElement[Any]) -> sa.Select[Any]:
    """Rows of checks with the counts of their reviews."""
    counts = current_reviews().subquery("counts")
    shown = [column for column in checks.c if column.name not in ("settings", "transcript")]
    said = [sa.func.coalesce(counts.c[name], 0).label(name) for name in get_args(Opinion)]
    joined = checks.outerjoin(counts, counts.c.check == checks.c.id)
    return sa.select(*shown, *said, *more).select_from(joined)


def _conditions(wanted: Wanted) -> "Sequence[sa.ColumnElement[bool]]":
    text = sa.func.lower(checks.c.claim + "\n" + checks.c.source)
    found: list[sa.ColumnElement[bool]] = [
        text.contains(word, autoescape=True) for word in storable_text(wanted.words).lower().split()
    ]
    if wanted.verdict:
        found.append(_ENDED_WITH.in_([storable_text(wanted.verdict)]))
    if wanted.review:
        if wanted.review not in get_args(Reviewed):
            raise InputError(f"Checks are {', '.join(get_args(Reviewed))}, not {wanted.review!r}.")
        found.append(_holds(wanted.review))
    return found


def _holds(review: str) -> sa.ColumnElement[bool]:
    """Whether a check's reviewers hold so of it; as in :attr:`CheckSummary.reviewed`."""
    counts = current_reviews().subquery("held")
    agree, disagree = counts.c.agree, counts.c.disagree
    if review == "unreviewed":
        return checks.c.id.not_in(sa.select(counts.c.check))
    rule = {
        "agreed": agree > disagree,
        "disagreed": agree < disagree,
        "divided": sa.and_(agree == disagree, agree > 0),
        "commented": sa.and_(agree == 0, disagree == 0),
    }[review]
    return checks.c.id.in_(sa.select(counts.c.check).where(rule))


def _summary(row: sa.RowMapping) -> CheckSummary:
    names = ("id", "by", "asked_at", "ended_at", "state", "set_up", "job", "run", "outcome", "label", "error")
    values: dict[str, Any] = {name: row[name] for name in names}
    values.update((name, int(row[name])) for name in get_args(Opinion))
    return CheckSummary(claim=Claim(row["claim"], row["source"], row["date"]), **values)
