"""A run with everything that its pages show, read once and kept for the next reader."""

import hashlib
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import TypeVar, cast

import sqlalchemy as sa

from climassay.evaluation.comparing import metrics_in
from climassay.evaluation.results import COMMANDS, Experiment, Outcome, experiment_of
from climassay.evaluation.scores import ExperimentScores, score_experiment
from climassay.factcheck import Transcript, from_data
from climassay.questions import Question
from climassay.records import tables
from climassay.records.database import Database
from climassay.records.queries import RunDetails, require_run, run_details
from climassay.reporting import Report
from climassay.web.place import Place
from climassay.web.results.run_reports import run_report

T = TypeVar("T")
KEPT_RUNS = 4
"""Runs that stay read; an experiment of 24,000 answers takes some 80 MB."""
MANY_ROWS = 4000
"""Stored rows from which a page comes first and its results follow."""


class StoredRun:
    """A finished run; what is computed from its results is computed once.

    Attributes:
        details: Everything kept about it.
    """

    def __init__(self, details: RunDetails) -> None:
        self.details = details
        self._lock = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}
        self._made: dict[str, object] = {}

    @property
    def id(self) -> str:
        """Of the run."""
        return self.details.summary.id

    def report(self, published: str = "") -> Report:
        """What its page shows; see :func:`~climassay.web.results.run_reports.run_report`."""
        return self._once(f"report {published}", lambda: run_report(self, published))

    def has_report(self, published: str) -> bool:
        """Whether :meth:`report` was made before."""
        return f"report {published}" in self._made

    @property
    def experiment(self) -> Experiment | None:
        """Its questions and answers, where it asked questions of a benchmark."""
        return self._once("experiment", self._experiment)

    @property
    def digest(self) -> str:
        """SHA-256 of its experiment."""
        return self._once("digest", lambda: hashlib.sha256(repr(self.experiment).encode()).hexdigest())

    @property
    def metrics(self) -> tuple[str, ...]:
        """Metrics that its experiment has scores in, in the order of tables."""
        return self._once("metrics", lambda: tuple(metrics_in([self.experiment] if self.experiment else [])))

    @property
    def scores(self) -> ExperimentScores:
        """All numbers of its experiment; it must have one."""
        return self._once("scores", self._scores)

    @property
    def outcomes(self) -> dict[tuple[str, str], list[Outcome]]:
        """Answers by benchmark and question."""
        return self._once("outcomes", self._outcomes)

    @property
    def questions(self) -> dict[tuple[str, str], Question]:
        """Questions with an answer, by benchmark and id, in their order."""
        return self._once("questions", self._questions)

    @property
    def transcripts(self) -> tuple[Transcript, ...]:
        """Its fact-checks, in their order.

        Raises:
            InputError: One is damaged.
        """
        rows = self.details.results.get("transcript", ())
        return self._once("transcripts", lambda: tuple(from_data(row) for row in rows))

    def _experiment(self) -> Experiment | None:
        command, stored = self.details.summary.command, self.details.results
        kept = command in COMMANDS and not stored.keys().isdisjoint(("outcomes", "predictions"))
        try:
            return experiment_of(self.details) if kept else None
        except (KeyError, TypeError, ValueError, IndexError):  # damaged, or of somebody's own code under a name of ours
            return None

    def _scores(self) -> ExperimentScores:
        assert self.experiment is not None
        return score_experiment(self.experiment)

    def _outcomes(self) -> dict[tuple[str, str], list[Outcome]]:
        found: dict[tuple[str, str], list[Outcome]] = defaultdict(list)
        for outcome in self.experiment.outcomes if self.experiment else ():
            found[outcome.cell.benchmark, outcome.question].append(outcome)
        return dict(found)

    def _questions(self) -> dict[tuple[str, str], Question]:
        if self.experiment is None:
            return {}
        asked = self.experiment.questions.items()
        return {
            (name, one.id): one for name, questions in asked for one in questions if (name, one.id) in self.outcomes
        }

    def _once(self, name: str, make: Callable[[], T]) -> T:
        with self._lock:
            lock = self._locks.setdefault(name, threading.Lock())
        with lock:
            if name not in self._made:
                self._made[name] = make()
            return cast(T, self._made[name])


class RunShelf:
    """The runs that were read last."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._runs: OrderedDict[tuple[str, str], StoredRun] = OrderedDict()

    def get(self, run: str) -> StoredRun:
        """A run; one that still goes on is read anew each time.

        Raises:
            RecordsError: There is no such run.
        """
        summary = require_run(self._database, run)
        key = (run, summary.ended_at or "")
        with self._lock:
            if key in self._runs:
                self._runs.move_to_end(key)
                return self._runs[key]
        stored = StoredRun(run_details(self._database, run))
        if summary.status != "running":
            with self._lock:
                stored = self._runs.setdefault(key, stored)
                while len(self._runs) > KEPT_RUNS:
                    self._runs.popitem(last=False)
        return stored

    def is_ready(self, run: str, published: str = "") -> bool:
        """Whether the results of a run can be shown at once: they were computed before, or are few."""
        with self._lock:
            if any(name == run and stored.has_report(published) for (name, _), stored in self._runs.items()):
                return True
        return count_rows(self._database, run) <= MANY_ROWS


def count_rows(database: Database, run: str) -> int:
    """Rows of all tables that a run stored."""
    ours = sa.select(sa.func.count()).select_from(tables.results).where(tables.results.c.run == run)
    with database.read() as connection:
        return int(connection.execute(ours).scalar_one())


def shelf_of(place: Place) -> RunShelf:
    """The server's shelf of runs."""
    return place.shared("results:runs", lambda: RunShelf(place.database))
