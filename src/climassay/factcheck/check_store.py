"""Fact-checks made in the browser, with their debates and the reviews of readers.

A check is stored before its debate starts, under a permanent id. A person's later review replaces the earlier one,
which remains stored. An adjudicator decides who may read a check, and may delete it with its debate and reviews.
"""

import json
import os
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from typing import Any, get_args

import sqlalchemy as sa

from climassay.errors import InputError
from climassay.factcheck.check_records import (
    MAX_COMMENT_LENGTH,
    PAGE_SIZE,
    VISIBILITIES,
    AgreementShare,
    CheckList,
    CheckReview,
    CheckSummary,
    Opinion,
    StoredCheck,
    Visibility,
    check_lengths,
    review_data,
    summary_data,
)
from climassay.factcheck.configuration import CheckFilter, DebateSettings, Reviewed, parse_settings, settings_tables
from climassay.factcheck.transcript import Claim, Transcript, as_data, from_data
from climassay.records import Records
from climassay.records.database import build_record
from climassay.records.identity import make_storable_text
from climassay.statistics.intervals import proportion

metadata = sa.MetaData()

checks = sa.Table(
    "checks",
    metadata,
    sa.Column("id", sa.String(16), primary_key=True),
    sa.Column("claim_id", sa.String(12), nullable=False),
    sa.Column("claim", sa.Text, nullable=False),
    sa.Column("source", sa.Text, nullable=False),
    sa.Column("date", sa.Text, nullable=False),
    sa.Column("appearance", sa.Text, nullable=False),
    sa.Column("by", sa.String(120)),
    sa.Column("asked_at", sa.Float, nullable=False),
    sa.Column("ended_at", sa.Float),
    sa.Column("state", sa.String(12), nullable=False),
    sa.Column("setup", sa.String(120), nullable=False),
    sa.Column("settings", sa.Text, nullable=False),
    sa.Column("job", sa.String(40)),
    sa.Column("run", sa.String(16)),
    sa.Column("outcome", sa.String(24)),
    sa.Column("label", sa.Text),
    sa.Column("error", sa.Text),
    sa.Column("transcript", sa.Text),
    sa.Column("model", sa.Text),
    sa.Column("advocates", sa.Integer),
    sa.Column("topic", sa.String(8)),
    sa.Column("seconds", sa.Float),
    sa.Column("demonstration", sa.Boolean, nullable=False),
    sa.Column("visibility", sa.String(12), nullable=False),
    sa.CheckConstraint("visibility IN ('unpublished', 'published', 'hidden')", name="known_check_visibility"),
    sa.CheckConstraint("state IN ('waiting', 'done', 'failed', 'stopped')", name="known_check_state"),
    sa.Index("checks_by_time", "asked_at", "id"),
    sa.Index("checks_by_claim", "claim_id"),
    sa.Index("checks_by_run", "run"),
    sa.Index("checks_by_end", "label", "outcome", "asked_at"),
    sa.Index("checks_by_topic", "topic", "asked_at"),
    comment="A claim submitted for checking, with its debate after that has ended.",
)
check_collections = sa.Table(
    "check_collections",
    metadata,
    sa.Column("check", sa.String(16), sa.ForeignKey("checks.id"), primary_key=True),
    sa.Column("collection", sa.Text, primary_key=True),
    sa.Index("check_collections_by_name", "collection"),
    comment="Collections of a check's advocates.",
)
check_reviews = sa.Table(
    "check_reviews",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("check", sa.String(16), sa.ForeignKey("checks.id"), nullable=False),
    sa.Column("by", sa.String(120), nullable=False),
    sa.Column("opinion", sa.String(12), nullable=False),
    sa.Column("comment", sa.Text, nullable=False),
    sa.Column("made_at", sa.Float, nullable=False),
    sa.CheckConstraint("opinion IN ('agree', 'disagree', 'undecided')", name="known_check_opinion"),
    sa.Index("reviews_by_check", "check", "by", "number"),
    comment="Reviews of finished checks; the last review of each person counts.",
)


def current_reviews(ids: Sequence[str] | None = None) -> sa.Select[tuple[str, int, int, int]]:
    """Return a query that counts the reviews of each check by opinion; only the latest review of each person counts.

    Args:
        ids: Ids of checks; all reviewed checks by default.
    """
    numbers = sa.select(sa.func.max(check_reviews.c.number)).group_by(check_reviews.c.check, check_reviews.c.by)
    if ids is not None:
        numbers = numbers.where(check_reviews.c.check.in_(ids))
    counts = [
        sa.func.sum(sa.case((check_reviews.c.opinion == opinion, 1), else_=0)).label(opinion)
        for opinion in get_args(Opinion)
    ]
    is_latest = check_reviews.c.number.in_(numbers)
    return sa.select(check_reviews.c.check, *counts).where(is_latest).group_by(check_reviews.c.check)


class CheckStore:
    """Store of checks in a records database; missing tables are created.

    Args:
        records: Open records.
    """

    def __init__(self, records: Records) -> None:
        self._database = records.database
        self._database.create_tables(metadata)

    def begin(self, claim: Claim, settings: DebateSettings, *, setup: str, by: str | None = None) -> str:
        """Store a new check.

        Args:
            claim: Claim to be checked.
            settings: Participants and rules.
            setup: Name of the setup.
            by: Name of the account.

        Returns:
            Id of the check: ``c`` and twelve hexadecimal digits.

        Raises:
            InputError: The claim or its source is too long.
        """
        check_lengths(claim)
        row = {
            "id": "c" + os.urandom(6).hex(),
            "claim_id": claim.id,
            "claim": make_storable_text(claim.text),
            "source": make_storable_text(claim.source),
            "date": make_storable_text(claim.date),
            "appearance": make_storable_text(claim.appearance),
            "by": by,
            "asked_at": time.time(),
            "state": "waiting",
            "setup": setup,
            "settings": json.dumps(settings_tables(settings), ensure_ascii=False),
            "model": settings.model,
            "advocates": len(settings.advocates),
            "demonstration": False,
            "visibility": "unpublished",
        }
        collection_names = {name for advocate in settings.advocates for name in advocate.collections}
        collections = [{"check": row["id"], "collection": name} for name in sorted(collection_names)]

        def write_rows(connection: sa.Connection) -> None:
            connection.execute(checks.insert().values(row))
            self._database.insert_new(connection, check_collections, collections)

        self._database.write(write_rows)
        return str(row["id"])

    def reopen(self, check: str) -> None:
        """Set a check back to ``waiting`` if it failed, was stopped or ended without a result; otherwise do nothing."""
        has_no_result = checks.c.state.in_(("failed", "stopped")) | (checks.c.outcome == "failed")
        field_names = ("job", "run", "outcome", "label", "error", "ended_at", "transcript", "topic", "seconds")
        self._update(
            checks.c.id == check, has_no_result, state="waiting", demonstration=False, **dict.fromkeys(field_names)
        )

    def assign_job(self, check: str, job: str) -> None:
        """Store the id of the job that runs a check's debate."""
        self._update(checks.c.id == check, job=job)

    def finish(
        self,
        check: str,
        transcript: Transcript,
        *,
        run: str,
        topic: str | None = None,
        seconds: float | None = None,
    ) -> None:
        """Store the result of a check if it is waiting or has failed; otherwise do nothing.

        Args:
            check: Id of the check.
            transcript: Transcript of the debate.
            run: Id of the debate's run.
            topic: CARDS code of the claim if it is a contrarian one; None if unknown.
            seconds: Duration of the debate; None if unknown.
        """
        text = json.dumps(as_data(transcript), ensure_ascii=False, allow_nan=False)
        values = {"outcome": transcript.verdict.outcome, "label": transcript.verdict.label, "run": run, "error": None}
        self._update(
            checks.c.id == check,
            checks.c.state.in_(("waiting", "failed")),
            state="done",
            ended_at=time.time(),
            transcript=make_storable_text(text),
            demonstration=transcript.demonstration,
            topic=topic,
            seconds=seconds,
            **values,
        )

    def fail(self, check: str, error: str) -> None:
        """Set the state of a waiting check to ``failed`` and store the error message."""
        is_waiting = checks.c.state == "waiting"
        self._update(
            checks.c.id == check, is_waiting, state="failed", ended_at=time.time(), error=make_storable_text(error)
        )

    def stop(self, check: str, job: str | None = None) -> None:
        """Set the state of a waiting check to ``stopped``.

        Args:
            check: Id of the check.
            job: Id of the stopped job. If another job now runs the debate, the check stays unchanged. None stops the
                check regardless of its job.
        """
        job_conditions = () if job is None else (checks.c.job == job,)
        self._update(
            checks.c.id == check, checks.c.state == "waiting", *job_conditions, state="stopped", ended_at=time.time()
        )

    def set_visibility(self, check: str, visibility: Visibility) -> None:
        """Set who may read a check."""
        self._update(checks.c.id == check, visibility=visibility)

    def delete(self, check: str) -> None:
        """Delete a check with its collections and reviews; its job and its run stay."""

        def delete_rows(connection: sa.Connection) -> None:
            for table in (check_reviews, check_collections):
                connection.execute(table.delete().where(table.c.check == check))
            connection.execute(checks.delete().where(checks.c.id == check))

        self._database.write(delete_rows)

    def _update(self, *where: sa.ColumnElement[bool], **values: Any) -> None:
        self._database.execute(checks.update().where(*where).values(values))

    # ------------------------------------------------------------------------------------------------------ reading

    def get(self, check: str) -> StoredCheck:
        """Return a check with its debate.

        Raises:
            InputError: There is no check with this id, or the stored check is damaged.
        """
        row = self._database.first(_summary_query([check], checks.c.settings, checks.c.transcript))
        if row is None:
            raise InputError(f"There is no check {check!r}.")
        settings = parse_settings(json.loads(row.settings), where=f"The check {check}")
        transcript = None if row.transcript is None else from_data(json.loads(row.transcript))
        return StoredCheck(_read_summary(row), settings, transcript)

    def __contains__(self, check: str) -> bool:
        """Return whether a check with this id exists."""
        return self._database.first(sa.select(checks.c.id).where(checks.c.id == check)) is not None

    def list(
        self,
        check_filter: CheckFilter | None = None,
        page: int = 1,
        visibilities: Sequence[Visibility] = VISIBILITIES,
    ) -> CheckList:
        """Return a page of the checks that match a filter, newest first; a page after the last one is empty."""
        query = sa.select(checks.c.id).where(*_filter_conditions(check_filter or CheckFilter(), visibilities))
        page_query = query.order_by(*_NEWEST_FIRST).limit(PAGE_SIZE).offset((max(page, 1) - 1) * PAGE_SIZE)
        with self._database.read() as connection:
            total = connection.execute(sa.select(sa.func.count()).select_from(query.subquery())).scalar_one()
            result = _summary_query(connection.execute(page_query).scalars().all())
            rows = connection.execute(result.order_by(*_NEWEST_FIRST)).all()
        return CheckList(tuple(_read_summary(row) for row in rows), total, max(page, 1))

    def newest(
        self,
        check_filter: CheckFilter | None = None,
        *,
        limit: int,
        after: str | None = None,
        visibilities: Sequence[Visibility] = VISIBILITIES,
    ) -> "Sequence[CheckSummary]":
        """Return the newest checks that match a filter, optionally only those listed after another check.

        Pagination is by id rather than by page number, so checks added in the meantime do not shift the results.

        Args:
            check_filter: Filter; None matches all checks.
            limit: Maximum number of checks.
            after: Id of the check after which the list starts.
            visibilities: Visibilities of the checks that may be returned.

        Raises:
            InputError: There is no check with the id ``after``.
        """
        query = sa.select(checks.c.id).where(*_filter_conditions(check_filter or CheckFilter(), visibilities))
        with self._database.read() as connection:
            if after is not None:
                asked_at = connection.execute(
                    sa.select(checks.c.asked_at).where(checks.c.id == after)
                ).scalar_one_or_none()
                if asked_at is None:
                    raise InputError(f"There is no check {after!r}.")
                query = query.where(
                    checks.c.asked_at <= asked_at, sa.or_(checks.c.asked_at < asked_at, checks.c.id > after)
                )
            ids = connection.execute(query.order_by(*_NEWEST_FIRST).limit(limit)).scalars().all()
            return [_read_summary(row) for row in connection.execute(_summary_query(ids).order_by(*_NEWEST_FIRST))]

    def iterate(
        self,
        check_filter: CheckFilter | None = None,
        visibilities: Sequence[Visibility] = VISIBILITIES,
        *,
        debates: bool,
    ) -> Iterator[dict[str, Any]]:
        """Yield all matching checks as JSON-serialisable values, newest first.

        Args:
            check_filter: Filter; None matches all checks.
            visibilities: Visibilities of the checks that may be yielded.
            debates: Whether to include debates and reviews, as :func:`check_data` does. Otherwise, the values are those
                of :func:`summary_data` and the names of the collections.
        """
        limit, last_id = (_CHECKS_PER_QUERY_WITH_DEBATES if debates else _CHECKS_PER_QUERY), None
        while summaries := self.newest(check_filter, limit=limit, after=last_id, visibilities=visibilities):
            ids = [summary.id for summary in summaries]
            if debates:
                columns = (checks.c.id, checks.c.settings, checks.c.transcript)
                rows = {row.id: row for row in self._database.rows(sa.select(*columns).where(checks.c.id.in_(ids)))}
                reviews = self._reviews(ids)
                for summary in summaries:
                    settings, transcript = rows[summary.id].settings, rows[summary.id].transcript
                    yield {
                        **summary_data(summary),
                        "reviews": [review_data(review) for review in reviews.get(summary.id, ())],
                        "settings": json.loads(settings),
                        "transcript": None if transcript is None else json.loads(transcript),
                    }
            else:
                collection_columns = check_collections.c
                query = sa.select(collection_columns.check, collection_columns.collection).where(
                    collection_columns.check.in_(ids)
                )
                names: dict[str, list[str]] = {}
                for row in self._database.rows(query.order_by(*collection_columns)):
                    names.setdefault(row.check, []).append(row.collection)
                yield from (summary_data(summary) | {"collections": names.get(summary.id, [])} for summary in summaries)
            last_id = ids[-1]

    def verdicts(self) -> "Sequence[str]":
        """Return the distinct verdict labels of all checks in alphabetical order.

        For a check without a label, the outcome is returned instead.
        """
        query = sa.select(checks.c.label, checks.c.outcome).where(checks.c.outcome.is_not(None)).distinct()
        return sorted({row.label or row.outcome for row in self._database.rows(query)})

    def topics(self) -> "Sequence[str]":
        """Return the distinct CARDS codes of the checked claims, in alphabetical order."""
        return self._distinct(checks.c.topic)

    def collections(self) -> "Sequence[str]":
        """Return the distinct names of the collections of all checks, in alphabetical order."""
        return self._distinct(check_collections.c.collection)

    def reviewers(self) -> "Sequence[str]":
        """Return the names of the accounts that have reviewed checks, in alphabetical order."""
        return self._distinct(check_reviews.c.by)

    def _distinct(self, column: sa.Column[Any]) -> "Sequence[str]":
        query = sa.select(column).where(column.is_not(None)).distinct().order_by(column)
        return [row[0] for row in self._database.rows(query)]

    def durations(self, model: str, advocates: int) -> "Sequence[float]":
        """Return the seconds taken by the latest debates (at most 50) with this model and number of advocates."""
        conditions = (
            checks.c.model == model,
            checks.c.advocates == advocates,
            checks.c.seconds.is_not(None),
            checks.c.outcome.in_(("verdict", "not enough information")),
        )
        query = sa.select(checks.c.seconds).where(*conditions).order_by(checks.c.asked_at.desc()).limit(_MAX_DURATIONS)
        return [row.seconds for row in self._database.rows(query)]

    def ids_by_run(self, runs: Sequence[str]) -> dict[str, str]:
        """Return a mapping from run ids to the ids of their checks; runs without a check are omitted."""
        query = sa.select(checks.c.run, checks.c.id).where(checks.c.run.in_(runs))
        return {row.run: row.id for row in self._database.rows(query)}

    def find_waiting(self, claim: Claim, by: str | None, setup: str) -> str | None:
        """Return the id of the oldest waiting check with this claim, account and setup; None if there is none."""
        conditions = (
            checks.c.claim_id == claim.id,
            checks.c.setup == setup,
            checks.c.state == "waiting",
            checks.c.by.is_(None) if by is None else checks.c.by == by,
        )
        row = self._database.first(sa.select(checks.c.id).where(*conditions).order_by(checks.c.asked_at))
        return None if row is None else str(row.id)

    def unassigned(self) -> "Sequence[str]":
        """Return the ids of waiting checks without a job, oldest first.

        A process that is killed leaves such checks behind.
        """
        query = sa.select(checks.c.id).where(checks.c.state == "waiting", checks.c.job.is_(None))
        return [row.id for row in self._database.rows(query.order_by(checks.c.asked_at))]

    def count_waiting(self) -> int:
        """Return the number of waiting checks."""
        query = sa.select(sa.func.count()).select_from(checks).where(checks.c.state == "waiting")
        return int(self._database.scalar(query))

    # ------------------------------------------------------------------------------------------------------ reviews

    def review(self, check: str, by: str, opinion: str, comment: str = "") -> None:
        """Add a person's review of a finished check, unless it repeats the person's last review.

        Args:
            check: Id of the check.
            by: Name of the account.
            opinion: One of :data:`Opinion`.
            comment: Comment; required if the opinion is ``undecided``.

        Raises:
            InputError: The check does not exist, it has not ended, the opinion is unknown, or the comment is missing or
                too long.
        """
        comment = make_storable_text(comment.strip())
        if opinion not in get_args(Opinion):
            raise InputError(f"An opinion on a check must be {', '.join(get_args(Opinion))}, not {opinion!r}.")
        if len(comment) > MAX_COMMENT_LENGTH:
            raise InputError(f"The comment has {len(comment):,} characters, and the limit is {MAX_COMMENT_LENGTH:,}.")
        if opinion == "undecided" and not comment:
            raise InputError("Say whether you agree, or write a comment.")
        row = {"check": check, "by": by, "opinion": opinion, "comment": comment, "made_at": time.time()}
        is_by_person = sa.and_(check_reviews.c.check == check, check_reviews.c.by == by)
        latest_review = sa.select(check_reviews).where(is_by_person).order_by(check_reviews.c.number.desc()).limit(1)

        def write_rows(connection: sa.Connection) -> None:
            state = connection.execute(sa.select(checks.c.state).where(checks.c.id == check)).scalar_one_or_none()
            if state is None:
                raise InputError(f"There is no check {check!r}.")
            if state != "done":
                raise InputError("A check can be reviewed only once its debate has ended.")
            previous_review = connection.execute(latest_review).mappings().first()
            previous_values = previous_review and (previous_review["opinion"], previous_review["comment"])
            if previous_values != (opinion, comment):
                connection.execute(check_reviews.insert().values(row))

        self._database.write(write_rows)

    def reviews(self, check: str) -> "Sequence[CheckReview]":
        """Return all reviews of a check, oldest first."""
        return self._reviews([check]).get(check, [])

    def _reviews(self, ids: "Sequence[str]") -> "dict[str, Sequence[CheckReview]]":
        query = sa.select(check_reviews).where(check_reviews.c.check.in_(ids)).order_by(check_reviews.c.number)
        rows = self._database.rows(query)
        latest_numbers = {(row.check, row.by): row.number for row in rows}
        results: dict[str, Any] = {}
        for row in rows:
            review = build_record(CheckReview, row, current=latest_numbers[row.check, row.by] == row.number)
            results.setdefault(row.check, []).append(review)
        return results

    def agreement(self) -> AgreementShare:
        """Return the proportion of checks whose reviewers agree with the verdict, with Wilson's interval."""
        counts = current_reviews().subquery()
        rows = [(row.agree, row.disagree) for row in self._database.rows(sa.select(counts.c.agree, counts.c.disagree))]
        n_agreed = sum(agree > disagree for agree, disagree in rows)
        n_disagreed = sum(agree < disagree for agree, disagree in rows)
        n_divided = sum(agree == disagree and agree > 0 for agree, disagree in rows)
        return AgreementShare(
            proportion(n_agreed, n_agreed + n_disagreed) if n_agreed + n_disagreed else None, n_divided
        )


_NEWEST_FIRST = (checks.c.asked_at.desc(), checks.c.id)
_CHECKS_PER_QUERY = 500
_CHECKS_PER_QUERY_WITH_DEBATES = 10
"""Number of checks per query if debates are included; a debate may take up a megabyte."""
_MAX_DURATIONS = 50


def _summary_query(ids: "Sequence[str]", *columns: sa.ColumnElement[Any]) -> sa.Select[Any]:
    """Return a query for checks with their review counts; ``columns`` adds large columns such as the transcript."""
    counts = current_reviews(ids).subquery("counts")
    short_columns = [column for column in checks.c if column.name not in ("settings", "transcript")]
    opinions = [sa.func.coalesce(counts.c[name], 0).label(name) for name in get_args(Opinion)]
    checks_with_counts = checks.outerjoin(counts, counts.c.check == checks.c.id)
    return sa.select(*short_columns, *opinions, *columns).select_from(checks_with_counts).where(checks.c.id.in_(ids))


def _filter_conditions(
    check_filter: CheckFilter, visibilities: "Sequence[Visibility]"
) -> "Sequence[sa.ColumnElement[bool]]":
    origin = sa.func.lower(checks.c.source + "\n" + checks.c.appearance)
    text = sa.func.lower(checks.c.claim) + "\n" + origin
    conditions: list[sa.ColumnElement[bool]] = [
        text.contains(word, autoescape=True) for word in make_storable_text(check_filter.words).lower().split()
    ]
    conditions.append(checks.c.visibility.in_(visibilities))
    if check_filter.visibility:
        conditions.append(checks.c.visibility == check_filter.visibility)
    if check_filter.source:
        conditions.append(origin.contains(make_storable_text(check_filter.source).lower(), autoescape=True))
    if check_filter.topic:
        # The code of a group is that of its claims before the point.
        group = checks.c.topic.startswith(make_storable_text(check_filter.topic) + ".", autoescape=True)
        conditions.append(sa.or_(checks.c.topic == make_storable_text(check_filter.topic), group))
    if check_filter.since:
        conditions.append(checks.c.asked_at >= _day_start(check_filter.since))
    if check_filter.until:
        conditions.append(checks.c.asked_at < _day_start(check_filter.until) + 86_400)
    for column, value in (
        (check_collections.c.collection, check_filter.collection),
        (check_reviews.c.by, check_filter.reviewer),
    ):
        if value:
            conditions.append(
                checks.c.id.in_(sa.select(column.table.c.check).where(column == make_storable_text(value)))
            )
    if check_filter.verdict:
        verdict = make_storable_text(check_filter.verdict)
        is_outcome = sa.and_(checks.c.label.is_(None), checks.c.outcome == verdict)
        conditions.append(sa.or_(checks.c.label == verdict, is_outcome))
    if check_filter.review:
        if check_filter.review not in get_args(Reviewed):
            raise InputError(f"Checks are {', '.join(get_args(Reviewed))}, not {check_filter.review!r}.")
        counts = current_reviews().subquery("reviewed")
        agree, disagree = counts.c.agree, counts.c.disagree
        # The same rule as in CheckSummary.reviewed.
        rules = {
            "agreed": agree > disagree,
            "disagreed": agree < disagree,
            "divided": sa.and_(agree == disagree, agree > 0),
            "commented": sa.and_(agree == 0, disagree == 0),
        }
        if check_filter.review == "unreviewed":
            conditions.append(checks.c.id.not_in(sa.select(counts.c.check)))
        else:
            conditions.append(checks.c.id.in_(sa.select(counts.c.check).where(rules[check_filter.review])))
    return conditions


def _day_start(text: str) -> float:
    """Return the time at which a day begins in UTC, in seconds since 1970-01-01.

    Raises:
        InputError: The text is not an ISO 8601 date.
    """
    try:
        return datetime.combine(date.fromisoformat(text), datetime.min.time(), UTC).timestamp()
    except ValueError:
        raise InputError(f"{text!r} is not a date: write it like 2024-05-31.") from None


def _read_summary(row: sa.Row[Any]) -> CheckSummary:
    counts = {name: int(getattr(row, name)) for name in get_args(Opinion)}
    return build_record(CheckSummary, row, claim=Claim(row.claim, row.source, row.date, row.appearance), **counts)
