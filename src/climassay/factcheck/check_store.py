"""Fact-checks that were asked for, one by one, with their debates and with what people say about them.

A check is stored before its debate begins, under an id of its own that stays; what experts and readers say is added
beside it. Nothing is deleted, and a second word of the same person appears in place of the first, which is kept.
:func:`find_past` looks for fact-checks of the same claim, or of a similar one, also among those of runs over files.
"""

import json
import os
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Literal, get_args

import sqlalchemy as sa

from climassay.claim_identity import claim_id, claim_key
from climassay.errors import InputError
from climassay.factcheck.configuration import CheckFilter, DebateSettings, Reviewed, parse_settings, settings_tables
from climassay.factcheck.transcript import Claim, Transcript, as_data, from_data
from climassay.grounding.quantities import foreign_quantities
from climassay.models.contract import Encoder
from climassay.models.encoders import cached_vectors
from climassay.records import Records, tables
from climassay.records.database import record_of
from climassay.records.store import storable_text
from climassay.statistics.intervals import Estimate, proportion

metadata = sa.MetaData()

checks = sa.Table(
    "checks",
    metadata,
    sa.Column("id", sa.String(16), primary_key=True),
    sa.Column("claim_id", sa.String(12), nullable=False),
    sa.Column("claim", sa.Text, nullable=False),
    sa.Column("source", sa.Text, nullable=False),
    sa.Column("date", sa.Text, nullable=False),
    sa.Column("by", sa.String(120)),
    sa.Column("asked_at", sa.Float, nullable=False),
    sa.Column("ended_at", sa.Float),
    sa.Column("state", sa.String(12), nullable=False),
    sa.Column("set_up", sa.String(120), nullable=False),
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
    sa.CheckConstraint("state IN ('waiting', 'done', 'failed', 'stopped')", name="known_check_state"),
    sa.Index("checks_by_time", "asked_at", "id"),
    sa.Index("checks_by_claim", "claim_id"),
    sa.Index("checks_by_run", "run"),
    sa.Index("checks_by_end", "label", "outcome", "asked_at"),
    sa.Index("checks_by_topic", "topic", "asked_at"),
    comment="One claim that somebody asked to have checked, with the debate once it has ended.",
)
check_collections = sa.Table(
    "check_collections",
    metadata,
    sa.Column("check", sa.String(16), sa.ForeignKey("checks.id"), primary_key=True),
    sa.Column("collection", sa.Text, primary_key=True),
    sa.Index("check_collections_by_name", "collection"),
    comment="The collections that a check's advocates read.",
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
    comment="What a person said about a finished check; the last word of each stands.",
)


def current_reviews(ids: Sequence[str] | None = None) -> sa.Select[tuple[str, int, int, int]]:
    """How many people hold what of each check that was reviewed, or of some; only the last word of each counts."""
    numbers = sa.select(sa.func.max(check_reviews.c.number)).group_by(check_reviews.c.check, check_reviews.c.by)
    if ids is not None:
        numbers = numbers.where(check_reviews.c.check.in_(ids))
    counts = [
        sa.func.sum(sa.case((check_reviews.c.opinion == opinion, 1), else_=0)).label(opinion)
        for opinion in ("agree", "disagree", "undecided")
    ]
    current = check_reviews.c.number.in_(numbers)
    return sa.select(check_reviews.c.check, *counts).where(current).group_by(check_reviews.c.check)


CheckState = Literal["waiting", "done", "failed", "stopped"]
"""``waiting`` until its debate has ended; ``failed`` where something broke, ``stopped`` where a person said so."""
Opinion = Literal["agree", "disagree", "undecided"]
LONGEST_CLAIM = 2000
LONGEST_SOURCE = 500
LONGEST_COMMENT = 4000
"""Characters."""
PAGE = 50
"""Checks on one page of a list."""


@dataclass(frozen=True, slots=True)
class CheckSummary:
    """A check without its debate, as lists show it."""

    id: str
    claim: Claim
    by: str | None
    """Name of the account; None for somebody without one, or the command line."""
    asked_at: float
    """Seconds since 1970-01-01 UTC."""
    ended_at: float | None
    state: CheckState
    set_up: str
    """Name of the debate's set-up."""
    job: str | None
    """Id of the job that does, or did, the work."""
    run: str | None
    """Id of the run in the records, once it has ended."""
    outcome: str | None
    """As in :class:`~climassay.factcheck.transcript.Verdict`; None before it has ended."""
    label: str | None
    """The verdict."""
    error: str | None
    """Why it failed."""
    agree: int = 0
    """People whose present word is that they agree."""
    disagree: int = 0
    undecided: int = 0
    topic: str | None = None
    """Contrarian claim that it makes, as in :mod:`climassay.factcheck.fallacies`; None where that is not known."""
    seconds: float | None = None
    """How long it was debated, without waiting for its turn; None before it has ended."""

    @property
    def reviewed(self) -> Reviewed:
        """What most of the reviewers hold."""
        if self.agree != self.disagree:
            return "agreed" if self.agree > self.disagree else "disagreed"
        return "divided" if self.agree else "commented" if self.undecided else "unreviewed"


@dataclass(frozen=True, slots=True)
class StoredCheck:
    """A check with its debate."""

    about: CheckSummary
    settings: DebateSettings
    """Who debates, and by which rules."""
    transcript: Transcript | None
    """None until it has ended, and where it was stopped or broke."""


@dataclass(frozen=True, slots=True)
class CheckReview:
    """What a person says about a finished check."""

    by: str
    """Name of the account."""
    opinion: Opinion
    comment: str
    made_at: float
    """Seconds since 1970-01-01 UTC."""
    current: bool
    """Whether it is the person's last word."""


@dataclass(frozen=True, slots=True)
class CheckList:
    """A page of a list of checks."""

    checks: tuple[CheckSummary, ...]
    total: int
    """On all pages."""
    page: int
    """From 1."""

    @property
    def pages(self) -> int:
        """At least 1."""
        return max(1, -(-self.total // PAGE))


@dataclass(frozen=True, slots=True)
class AgreementShare:
    """How often people agree with the verdicts of checks; a check counts once, however many reviewed it."""

    agreed: Estimate | None
    """Share of the checks with most reviewers for it, among those with a majority; None where there is none."""
    divided: int
    """Checks with as many for as against it, which are not counted."""


def summary_data(about: CheckSummary) -> dict[str, Any]:
    """A check without its debate as texts and numbers, for ``json.dumps``."""
    same = (
        "id", "state", "error", "outcome", "run", "set_up", "reviewed", "agree", "disagree", "undecided", "topic",
        "seconds",
    )  # fmt: skip
    return {name: getattr(about, name) for name in same} | {
        "claim": about.claim.text,
        "source": about.claim.source,
        "date": about.claim.date,
        "asked_by": about.by,
        "asked_at": iso_time(about.asked_at),
        "ended_at": None if about.ended_at is None else iso_time(about.ended_at),
        "verdict": about.label,
    }


def check_data(kept: StoredCheck, reviews: Sequence[CheckReview]) -> dict[str, Any]:
    """A check for a file: what was asked, how it ended, what people said, and the debate.

    Args:
        kept: The check.
        reviews: As :meth:`~climassay.factcheck.check_store.CheckStore.reviews` gives them.

    Returns:
        What ``json.dumps`` takes; ``transcript`` is what :func:`climassay.factcheck.from_data` reads, ``settings`` are
        the tables of a file that sets up a debate.
    """
    return {
        **summary_data(kept.about),
        "reviews": [review_data(one) for one in reviews],
        "settings": settings_tables(kept.settings),
        "transcript": None if kept.transcript is None else as_data(kept.transcript),
    }


def review_data(review: CheckReview) -> dict[str, Any]:
    """What a person said as texts, for ``json.dumps``."""
    said = {name: getattr(review, name) for name in ("by", "opinion", "comment", "current")}
    return said | {"at": iso_time(review.made_at)}


def check_lengths(claim: Claim) -> None:
    """See that a claim and its source are not too long to be kept.

    Raises:
        InputError: One is.
    """
    for text, most, what in ((claim.text, LONGEST_CLAIM, "claim"), (claim.source, LONGEST_SOURCE, "source")):
        if len(text) > most:
            raise InputError(f"The {what} has {len(text):,} characters, and the limit is {most:,}: shorten it.")


def iso_time(seconds: float) -> str:
    """Seconds since 1970 as ISO 8601, UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


class CheckStore:
    """Checks of one records database; its tables are made when they are first needed.

    A check is stored before its debate begins, under an id of its own that stays; nothing is deleted.

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
        check_lengths(claim)
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
            "model": settings.model,
            "advocates": len(settings.advocates),
        }
        names = {name for advocate in settings.advocates for name in advocate.collections}
        collections = [{"check": row["id"], "collection": name} for name in sorted(names)]

        def work(connection: sa.Connection) -> None:
            connection.execute(checks.insert().values(row))
            self._database.insert_new(connection, check_collections, collections)

        self._database.write(work)
        return str(row["id"])

    def reopen(self, check: str) -> None:
        """Let a check wait again that broke, was stopped or ended without a result; another one stays as it is."""
        fruitless = checks.c.state.in_(("failed", "stopped")) | (checks.c.outcome == "failed")
        names = ("job", "run", "outcome", "label", "error", "ended_at", "transcript", "topic", "seconds")
        self._update(checks.c.id == check, fruitless, state="waiting", **dict.fromkeys(names))

    def give_to(self, check: str, job: str) -> None:
        """Note which job does the work."""
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
        """Store how a check ended; one that has ended already stays as it is, unless it had broken elsewhere.

        Args:
            check: Its id.
            transcript: The debate.
            run: Id of the run that held it.
            topic: The contrarian claim that it makes, where that is known.
            seconds: How long it was debated.
        """
        written = json.dumps(as_data(transcript), ensure_ascii=False, allow_nan=False)
        values = {"outcome": transcript.verdict.outcome, "label": transcript.verdict.label, "run": run, "error": None}
        self._update(
            checks.c.id == check,
            checks.c.state.in_(("waiting", "failed")),
            state="done",
            ended_at=time.time(),
            transcript=storable_text(written),
            topic=topic,
            seconds=seconds,
            **values,
        )

    def fail(self, check: str, error: str) -> None:
        """Store that a check broke, and why, in one sentence."""
        waits = checks.c.state == "waiting"
        self._update(checks.c.id == check, waits, state="failed", ended_at=time.time(), error=storable_text(error))

    def stop(self, check: str, job: str | None = None) -> None:
        """Store that a person stopped a check.

        Args:
            check: Id of the check.
            job: Only if this job still does the work: a check may have been begun again before the job that was
                stopped comes to its end.
        """
        mine = () if job is None else (checks.c.job == job,)
        self._update(checks.c.id == check, checks.c.state == "waiting", *mine, state="stopped", ended_at=time.time())

    def _update(self, *where: sa.ColumnElement[bool], **values: Any) -> None:
        self._database.execute(checks.update().where(*where).values(values))

    # ------------------------------------------------------------------------------------------------------ reading

    def get(self, check: str) -> StoredCheck:
        """A check with its debate.

        Raises:
            InputError: There is no check of that id, or what is stored is damaged.
        """
        row = self._database.first(_summaries([check], checks.c.settings, checks.c.transcript))
        if row is None:
            raise InputError(f"There is no check {check!r}.")
        settings = parse_settings(json.loads(row.settings), where=f"The check {check}")
        transcript = None if row.transcript is None else from_data(json.loads(row.transcript))
        return StoredCheck(_summary(row), settings, transcript)

    def __contains__(self, check: str) -> bool:
        """Whether there is a check of an id."""
        return self._database.first(sa.select(checks.c.id).where(checks.c.id == check)) is not None

    def list(self, wanted: CheckFilter | None = None, page: int = 1) -> CheckList:
        """A page of the checks that fit, the newest first; a page beyond the last is empty."""
        query = sa.select(checks.c.id).where(*_conditions(wanted or CheckFilter()))
        ordered = query.order_by(*_NEWEST_FIRST).limit(PAGE).offset((max(page, 1) - 1) * PAGE)
        with self._database.read() as connection:
            total = connection.execute(sa.select(sa.func.count()).select_from(query.subquery())).scalar_one()
            result = _summaries(connection.execute(ordered).scalars().all())
            rows = connection.execute(result.order_by(*_NEWEST_FIRST)).all()
        return CheckList(tuple(_summary(row) for row in rows), total, max(page, 1))

    def newest(
        self, wanted: CheckFilter | None = None, *, most: int, after: str | None = None
    ) -> "Sequence[CheckSummary]":
        """Checks that fit, the newest first; checks that begin meanwhile do not shift what comes behind another one.

        Args:
            wanted: Which ones.
            most: How many.
            after: Id of the check behind which the list begins.

        Raises:
            InputError: There is no check of that id.
        """
        query = sa.select(checks.c.id).where(*_conditions(wanted or CheckFilter()))
        with self._database.read() as connection:
            if after is not None:
                at = connection.execute(sa.select(checks.c.asked_at).where(checks.c.id == after)).scalar_one_or_none()
                if at is None:
                    raise InputError(f"There is no check {after!r}.")
                behind = sa.or_(checks.c.asked_at < at, checks.c.id > after)
                query = query.where(checks.c.asked_at <= at, behind)
            ids = connection.execute(query.order_by(*_NEWEST_FIRST).limit(most)).scalars().all()
            result = _summaries(ids).order_by(*_NEWEST_FIRST)
            return [_summary(row) for row in connection.execute(result)]

    def each(self, wanted: CheckFilter | None = None, *, debates: bool) -> Iterator[dict[str, Any]]:
        """All checks that fit, the newest first, as data; they are read in parts.

        Args:
            wanted: Which ones.
            debates: Whether each is what :func:`check_data` gives, with debate and reviews; else what
                :func:`summary_data` gives, with the names of its collections.
        """
        most, after = (_WITH_DEBATES if debates else _WITHOUT_DEBATES), None
        while result := self.newest(wanted, most=most, after=after):
            ids = [one.id for one in result]
            if debates:
                columns = (checks.c.id, checks.c.settings, checks.c.transcript)
                kept = {row.id: row for row in self._database.rows(sa.select(*columns).where(checks.c.id.in_(ids)))}
                said = self._reviews(ids)
                for one in result:
                    settings, transcript = kept[one.id].settings, kept[one.id].transcript
                    yield {
                        **summary_data(one),
                        "reviews": [review_data(review) for review in said.get(one.id, ())],
                        "settings": json.loads(settings),
                        "transcript": None if transcript is None else json.loads(transcript),
                    }
            else:
                listed = check_collections.c
                query = sa.select(listed.check, listed.collection).where(listed.check.in_(ids)).order_by(*listed)
                names: dict[str, list[str]] = {}
                for row in self._database.rows(query):
                    names.setdefault(row.check, []).append(row.collection)
                yield from (summary_data(one) | {"collections": names.get(one.id, [])} for one in result)
            after = ids[-1]

    def verdicts(self) -> "Sequence[str]":
        """What checks have ended with: labels, and outcomes of those without one; each once, in alphabetical order."""
        query = sa.select(checks.c.label, checks.c.outcome).where(checks.c.outcome.is_not(None)).distinct()
        return sorted({row.label or row.outcome for row in self._database.rows(query)})

    def topics(self) -> "Sequence[str]":
        """The contrarian claims that checks were found to make, in order."""
        return self._each_once(checks.c.topic)

    def collections(self) -> "Sequence[str]":
        """Names of the collections that were read for checks, in alphabetical order."""
        return self._each_once(check_collections.c.collection)

    def reviewers(self) -> "Sequence[str]":
        """Names of the accounts that have reviewed checks, in alphabetical order."""
        return self._each_once(check_reviews.c.by)

    def _each_once(self, column: sa.Column[Any]) -> "Sequence[str]":
        query = sa.select(column).where(column.is_not(None)).distinct().order_by(column)
        return [row[0] for row in self._database.rows(query)]

    def durations(self, model: str, advocates: int) -> "Sequence[float]":
        """Seconds that the latest debates of a model with so many advocates took, fifty at most."""
        held = checks.c.outcome.in_(("verdict", "not enough information"))
        alike = sa.and_(checks.c.model == model, checks.c.advocates == advocates, checks.c.seconds.is_not(None), held)
        query = sa.select(checks.c.seconds).where(alike).order_by(checks.c.asked_at.desc()).limit(_DURATIONS)
        return [row.seconds for row in self._database.rows(query)]

    def of_runs(self, runs: Sequence[str]) -> dict[str, str]:
        """Ids of checks by the run that made them, where a run made one."""
        query = sa.select(checks.c.run, checks.c.id).where(checks.c.run.in_(runs))
        return {row.run: row.id for row in self._database.rows(query)}

    def under_way(self, claim: Claim, by: str, set_up: str) -> str | None:
        """A check of the same claim and set-up that the same person asked for and that has not ended; the oldest."""
        waiting = sa.and_(checks.c.set_up == set_up, checks.c.state == "waiting", checks.c.by == by)
        query = sa.select(checks.c.id, checks.c.claim).where(waiting).order_by(checks.c.asked_at)
        # By the text: ids that an earlier climassay stored are the same for claims that differ in a sign.
        wanted = claim_id(storable_text(claim.text))
        return next((row.id for row in self._database.rows(query) if claim_id(row.claim) == wanted), None)

    def without_job(self) -> "Sequence[str]":
        """Checks that wait and that no job was begun for, the oldest first: the process that took them was killed."""
        query = sa.select(checks.c.id).where(checks.c.state == "waiting", checks.c.job.is_(None))
        return [row.id for row in self._database.rows(query.order_by(checks.c.asked_at))]

    def waiting(self) -> int:
        """How many checks have not ended."""
        query = sa.select(sa.func.count()).select_from(checks).where(checks.c.state == "waiting")
        return int(self._database.scalar(query))

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
            raise InputError(f"An opinion on a check must be {', '.join(get_args(Opinion))}, not {opinion!r}.")
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
                raise InputError("A check can be reviewed only once its debate has ended.")
            before = connection.execute(last).mappings().first()
            if before is None or (before["opinion"], before["comment"]) != (opinion, said):
                connection.execute(check_reviews.insert().values(row))

        self._database.write(work)

    def reviews(self, check: str) -> "Sequence[CheckReview]":
        """What people said about a check, in order; earlier words of a person are kept."""
        return self._reviews([check]).get(check, [])

    def _reviews(self, ids: "Sequence[str]") -> "dict[str, Sequence[CheckReview]]":
        query = sa.select(check_reviews).where(check_reviews.c.check.in_(ids)).order_by(check_reviews.c.number)
        rows = self._database.rows(query)
        last = {(row.check, row.by): row.number for row in rows}
        results: dict[str, Any] = {}
        for row in rows:
            review = record_of(CheckReview, row, current=last[row.check, row.by] == row.number)
            results.setdefault(row.check, []).append(review)
        return results

    def agreement(self) -> AgreementShare:
        """How often people agree with the verdicts, with Wilson's interval."""
        counts = current_reviews().subquery()
        rows = [(row.agree, row.disagree) for row in self._database.rows(sa.select(counts.c.agree, counts.c.disagree))]
        agreed = sum(agree > disagree for agree, disagree in rows)
        against = sum(agree < disagree for agree, disagree in rows)
        divided = sum(agree == disagree and agree > 0 for agree, disagree in rows)
        return AgreementShare(proportion(agreed, agreed + against) if agreed + against else None, divided)


_NEWEST_FIRST = (checks.c.asked_at.desc(), checks.c.id)
_WITH_DEBATES, _WITHOUT_DEBATES = 10, 500
"""Checks that are read at a time; a debate may have a megabyte."""
_DURATIONS = 50


def _summaries(ids: "Sequence[str]", *more: sa.ColumnElement[Any]) -> sa.Select[Any]:
    """Rows of some checks with the counts of their reviews."""
    counts = current_reviews(ids).subquery("counts")
    shown = [column for column in checks.c if column.name not in ("settings", "transcript")]
    said = [sa.func.coalesce(counts.c[name], 0).label(name) for name in get_args(Opinion)]
    joined = checks.outerjoin(counts, counts.c.check == checks.c.id)
    return sa.select(*shown, *said, *more).select_from(joined).where(checks.c.id.in_(ids))


def _conditions(wanted: CheckFilter) -> "Sequence[sa.ColumnElement[bool]]":
    text = sa.func.lower(checks.c.claim + "\n" + checks.c.source)
    results: list[sa.ColumnElement[bool]] = [
        text.contains(word, autoescape=True) for word in storable_text(wanted.words).lower().split()
    ]
    if wanted.source:
        results.append(sa.func.lower(checks.c.source).contains(storable_text(wanted.source).lower(), autoescape=True))
    if wanted.topic:
        # A group's number is that of its claims before the point.
        group = checks.c.topic.startswith(storable_text(wanted.topic) + ".", autoescape=True)
        results.append(sa.or_(checks.c.topic == storable_text(wanted.topic), group))
    if wanted.since:
        results.append(checks.c.asked_at >= _day(wanted.since))
    if wanted.until:
        results.append(checks.c.asked_at < _day(wanted.until) + 86_400)
    for column, value in ((check_collections.c.collection, wanted.collection), (check_reviews.c.by, wanted.reviewer)):
        if value:
            results.append(checks.c.id.in_(sa.select(column.table.c.check).where(column == storable_text(value))))
    if wanted.verdict:
        ended = storable_text(wanted.verdict)
        without = sa.and_(checks.c.label.is_(None), checks.c.outcome == ended)
        results.append(sa.or_(checks.c.label == ended, without))
    if wanted.review:
        if wanted.review not in get_args(Reviewed):
            raise InputError(f"Checks are {', '.join(get_args(Reviewed))}, not {wanted.review!r}.")
        counts = current_reviews().subquery("held")
        agree, disagree = counts.c.agree, counts.c.disagree
        # The same rule as in CheckSummary.reviewed.
        rules = {
            "agreed": agree > disagree,
            "disagreed": agree < disagree,
            "divided": sa.and_(agree == disagree, agree > 0),
            "commented": sa.and_(agree == 0, disagree == 0),
        }
        if wanted.review == "unreviewed":
            results.append(checks.c.id.not_in(sa.select(counts.c.check)))
        else:
            results.append(checks.c.id.in_(sa.select(counts.c.check).where(rules[wanted.review])))
    return results


def _day(text: str) -> float:
    """When a day begins, in seconds since 1970.

    Raises:
        InputError: It is no day.
    """
    try:
        return datetime.combine(date.fromisoformat(text), datetime.min.time(), UTC).timestamp()
    except ValueError:
        raise InputError(f"{text!r} is not a date: write it like 2024-05-31.") from None


def _summary(row: sa.Row[Any]) -> CheckSummary:
    counts = {name: int(getattr(row, name)) for name in get_args(Opinion)}
    return record_of(CheckSummary, row, claim=Claim(row.claim, row.source, row.date), **counts)


TRANSCRIPTS = "transcript"
"""Table of results in which each debate is a row; see :mod:`climassay.factcheck.transcript`."""
SIMILAR = 0.75
"""Cosine of the bundled encoder from which a claim is shown as similar.

Of 30 pairs of a claim and its paraphrase 27 reach it, of the 31,878 pairs of different claims of Climate Feedback,
Skeptical Science and the primer 20 do, most of which are one myth in two forms. A negation or another number changes
the cosine little: similarity marks candidates, and what differs is shown beside it.
"""

_NEGATION = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|neither|nor|cannot|without|false|untrue|hoax|myth|stopped|fails?|hardly)\b|n['’]t\b"
    r"|\b(?:un|non)-?(?:related|natural|likely|affected|able)\b",
    re.IGNORECASE,
)
_OPPOSITES = tuple(
    (re.compile(rf"\b(?:{first})\b", re.IGNORECASE), re.compile(rf"\b(?:{second})\b", re.IGNORECASE))
    for first, second in (
        (
            r"increas\w*|ris(?:es?|en|ing)|rose|grow(?:s|n|ing|th)?|grew|gain(?:s|ed|ing)?|expand\w*|accelerat\w*|more|up",
            r"decreas\w*|declin\w*|fall(?:s|en|ing)?|fell|shr[iau]nk\w*|los(?:es?|t|ing)|decelerat\w*|slow\w*|less|fewer|down",
        ),
        (r"warm\w*|heat\w*|hot(?:ter|test)?", r"cool\w*|cold\w*|freez\w*"),
        (r"strong\w*|strengthen\w*|wors[et]\w*", r"weak\w*|better"),
        (r"high(?:er|est)?|above|faster", r"low(?:er|est)?|below|slower"),
        (r"before|precede\w*|leads?", r"after|follow\w*|lags?"),
        (r"good|beneficial|harmless|safe", r"bad|harmful|dangerous|harm\w*"),
    )
)


@dataclass(frozen=True, slots=True)
class PastCheck:
    """A debate in the records about the same or a similar claim."""

    run: str
    """Id of the run that holds it."""
    when: str
    """When the run began: ISO 8601, UTC."""
    claim: str
    verdict: str | None
    """Label; None where the debate ended without one."""
    outcome: str
    """As in :class:`~climassay.factcheck.transcript.Verdict`."""
    scale: str
    similarity: float
    """Cosine of the two claims; 1 for the same claim."""
    same: bool
    """The same text, but for case, spacing and quotation marks. A similar claim may say something else."""
    differs_in_numbers: bool
    """One of the two has a quantity that the other has not."""
    differs_in_negation: bool
    """Only one of the two holds a negation, or a word and its opposite stand against each other (rising, falling)."""


def find_past(
    store: Records, claim_text: str, encoder: Encoder, *, threshold: float = SIMILAR, most: int | None = None
) -> list[PastCheck]:
    """Debates in the records about the same claim or a similar one.

    Vectors of claims are kept in the cache folder, by fingerprint of the encoder. Debates that failed are left out.

    Args:
        store: The records of a workspace; they are only read.
        claim_text: What is to be checked.
        encoder: Compares claims.
        threshold: Cosine from which a claim is similar.
        most: Maximum number of checks returned; all by default.

    Returns:
        The same claim first, then the most similar ones; among equals the newest first.

    Notes:
        3000 transcripts of 107 kB take about one second; encoding 3000 claims that are not in the cache yet, 13 more.
    """
    results, runs = tables.results, tables.runs

    def picked(column: sa.Column[str], *paths: tuple[str, ...]) -> list[sa.ColumnElement[str]]:
        if store.database.is_sqlite:
            return [sa.func.json_extract(column, "$." + ".".join(path)) for path in paths]
        return [sa.cast(column, sa.JSON)[path].as_string() for path in paths]

    # Of checks that were asked for in the browser the claim and how it ended are kept by themselves; out of all other
    # transcripts, which are long, the database picks what is needed.
    fields = picked(results.c.row, ("claim", "text"), ("verdict", "label"), ("verdict", "outcome"), ("scale",))
    others = (
        sa.select(results.c.run, runs.c.started_at, *fields)
        .join(runs, runs.c.id == results.c.run)
        .where(results.c.name == TRANSCRIPTS)
        .order_by(results.c.id)
    )
    queries = [others]
    if store.database.has_table(checks):
        held = checks.c.outcome.is_not(None), checks.c.run.is_not(None)
        asked = sa.select(checks.c.run, runs.c.started_at, checks.c.claim, checks.c.label, checks.c.outcome)
        asked = asked.add_columns(*picked(checks.c.settings, ("scale",))).join(runs, runs.c.id == checks.c.run)
        queries = [asked.where(*held), others.where(results.c.run.not_in(sa.select(checks.c.run).where(*held)))]
    with store.database.read() as connection:
        rows = [tuple(row) for query in queries for row in connection.execute(query)]
    by_claim: dict[str, list[tuple[Any, ...]]] = {}
    for run, began, claim, verdict, outcome, scale in sorted(rows, key=lambda row: row[1]):
        if claim and outcome != "failed":
            by_claim.setdefault(claim, []).append((run, iso_time(began), claim, verdict, outcome, scale))
    if not by_claim:
        return []
    texts = list(by_claim)
    vectors = cached_vectors([claim_text, *texts], encoder, "past_checks")
    cosines = dict(zip(texts, (vectors[1:] @ vectors[0]).tolist(), strict=True))
    wanted = claim_key(claim_text)
    past = []
    for text, debates in by_claim.items():
        same = claim_key(text) == wanted
        if not same and cosines[text] < threshold:
            continue
        likeness: dict[str, Any] = {
            "similarity": 1.0 if same else min(1.0, cosines[text]),
            "same": same,
            "differs_in_numbers": not same
            and bool(foreign_quantities(claim_text, [text]) or foreign_quantities(text, [claim_text])),
            "differs_in_negation": not same and _differ_in_negation(claim_text, text),
        }
        past += [PastCheck(*one, **likeness) for one in debates]
    past.sort(key=lambda check: check.when, reverse=True)
    past.sort(key=lambda check: (not check.same, -check.similarity))
    return past[:most]


def _differ_in_negation(first: str, second: str) -> bool:
    if bool(_NEGATION.search(first)) != bool(_NEGATION.search(second)):
        return True
    words = [re.findall(r"\w+", text.lower()) for text in (first, second)]
    own, others = (" ".join(word for word in mine if word not in theirs) for mine, theirs in (words, words[::-1]))
    return any(
        (one.search(own) and other.search(others)) or (other.search(own) and one.search(others))
        for one, other in _OPPOSITES
    )
