"""Finished runs with their experiments, scores and reports, and a cache of the most recently loaded ones."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import sqlalchemy as sa

from climassay.errors import ClimassayError, InputError, RecordsError
from climassay.evaluation.paper_scores import PublishedScore, published_scores
from climassay.evaluation.results import COMMANDS, Experiment, Outcome, experiment_of
from climassay.evaluation.run_comparison import metrics_in
from climassay.evaluation.scores import ExperimentScores, score_experiment
from climassay.factcheck import Transcript, from_data
from climassay.grounding.answer import note_removed_citations, note_truncation, note_unchecked_references
from climassay.prompts import DEMONSTRATION
from climassay.questions import Question
from climassay.records import tables
from climassay.records.database import Database
from climassay.records.queries import RunDetails, RunSummary, require_run, run_details
from climassay.records.store import cached_value
from climassay.reporting import AnswerCard, Facts, Prose, Report, Section, Table, counted
from climassay.reporting.html import report_data, report_from_data
from climassay.web.app_state import AppState, ResultCache
from climassay.web.failures import NotFound

MANY_ROWS = 4000
"""The page content of a run with more stored result rows than this is cached in the records, not only in memory."""
MAX_LOADED_RUNS = 4
"""Maximum number of runs cached in memory; an experiment of 24,000 answers takes about 80 MB."""
MAX_PLAIN_ROWS = 500
"""Maximum number of rows shown of a stored table that no report uses; downloads contain every row."""
MAX_VALUE_LENGTH = 600
"""Length, in characters, to which displayed values are truncated. The run's JSON contains the full values."""


def count_rows(database: Database, run: str) -> int:
    """Return the number of stored result rows of a run."""
    query = sa.select(sa.func.count()).select_from(tables.results).where(tables.results.c.run == run)
    return int(database.scalar(query))


def answered_questions(experiment: Experiment | None) -> dict[tuple[str, str], Question]:
    """Return the experiment's questions that have an answer, by (benchmark, id) in order; {} without an experiment."""
    if experiment is None:
        return {}
    answered_keys = {(outcome.cell.benchmark, outcome.question) for outcome in experiment.outcomes}
    return {
        (name, question.id): question
        for name, questions in experiment.questions.items()
        for question in questions
        if (name, question.id) in answered_keys
    }


class StoredRun:
    """Run with its stored results; values that are computed from them are cached."""

    def __init__(self, details: RunDetails) -> None:
        self.details = details
        self._computed = ResultCache()

    @property
    def id(self) -> str:
        """Id of the run."""
        return self.details.summary.id

    def report(self, published: str = "") -> Report:
        """Return the cached report of the run; see :func:`run_report`."""
        return self._computed.get(f"report {published}", lambda: run_report(self, published))

    @property
    def experiment(self) -> Experiment | None:
        """Experiment of the run; None if the run evaluated no benchmark or its stored results are damaged."""

        def read() -> Experiment | None:
            if "outcomes" not in self.details.results or self.details.summary.command not in COMMANDS:
                return None
            try:
                return experiment_of(self.details)
            except (KeyError, TypeError, ValueError, IndexError):  # damaged, or written by a user's own code
                return None

        return self._computed.get("experiment", read)

    @property
    def scores(self) -> ExperimentScores:
        """Scores of the experiment; only for runs with an experiment."""
        assert self.experiment is not None
        return self._computed.get("scores", partial(score_experiment, self.experiment))

    @property
    def outcomes(self) -> dict[tuple[str, str], list[Outcome]]:
        """Outcomes by (benchmark, question id); empty without an experiment."""

        def group() -> dict[tuple[str, str], list[Outcome]]:
            outcomes_by_question: dict[tuple[str, str], list[Outcome]] = defaultdict(list)
            for outcome in self.experiment.outcomes if self.experiment else ():
                outcomes_by_question[outcome.cell.benchmark, outcome.question].append(outcome)
            return dict(outcomes_by_question)

        return self._computed.get("outcomes", group)

    @property
    def questions(self) -> dict[tuple[str, str], Question]:
        """Questions with an answer, by (benchmark, id), in the order of the experiment."""
        return self._computed.get("questions", lambda: answered_questions(self.experiment))

    @property
    def transcripts(self) -> tuple[Transcript, ...]:
        """Fact-checks of the run, in stored order.

        Raises:
            InputError: A stored fact-check is damaged.
        """
        rows = self.details.results.get("transcript", ())
        return self._computed.get("transcripts", lambda: tuple(from_data(row) for row in rows))


def find_run_summary(app: AppState, run: str) -> RunSummary:
    """Return the summary of a run, or raise NotFound if there is no run with the id."""
    try:
        return require_run(app.database, run)
    except RecordsError:
        raise NotFound(f"There is no run {run[:40]}.") from None


def find_stored_run(app: AppState, run: str) -> StoredRun:
    """Return a run with its results, or raise NotFound if there is no run with the id.

    Runs that have ended are cached in memory; a running one is read from the database at every call.
    """
    summary = find_run_summary(app, run)
    if summary.status == "running":
        return StoredRun(run_details(app.database, run))
    loaded_runs: ResultCache = app.shared("results:runs", lambda: ResultCache(MAX_LOADED_RUNS))
    return loaded_runs.get((run, summary.ended_at), lambda: StoredRun(run_details(app.database, run)))


def run_data(app: AppState, run: RunSummary, published: str = "", *, wait: bool = True) -> dict[str, Any] | None:
    """Return the content of a run's page as JSON-serialisable values.

    The content of a run that has ended is cached: in memory, and in the records too if the run has more than
    :data:`MANY_ROWS` rows.

    Args:
        app: State of the server.
        run: Summary of the run.
        published: Dataset of published results; see :func:`run_report`.
        wait: Whether to compute the content of a run with more than :data:`MANY_ROWS` rows; if False, return None for
            such a run.

    Returns:
        Dictionary with the ``report`` (see :func:`climassay.reporting.html.report_data`), the ``name`` of the
        experiment (empty if there is none), its ``metrics`` (None if there is none), and the numbers of ``questions``
        and ``claims``.
    """
    n_rows = count_rows(app.database, run.id)
    cache_key = ("run", run.id, n_rows, published)

    def compute() -> dict[str, Any]:
        stored_run = find_stored_run(app, run.id)
        experiment = stored_run.experiment
        return {
            "report": report_data(stored_run.report(published)),
            "name": experiment.name if experiment else "",
            "metrics": metrics_in([experiment]) if experiment else None,
            "questions": len(stored_run.questions),
            "claims": len(stored_run.details.results.get("transcript", ())),
        }

    if run.status == "running":
        return compute() if wait or n_rows <= MANY_ROWS else None
    if n_rows <= MANY_ROWS:
        return app.computed.get(cache_key, compute)
    if cache_key not in app.computed and not wait and cached_value(app.database, cache_key) is None:
        return None
    result: dict[str, Any] = app.computed.get(cache_key, lambda: cached_value(app.database, cache_key, compute))
    return result


ReportBuilder = Callable[[StoredRun, str], Report]
"""Function that builds the report of a run; its arguments are those of :func:`run_report`."""


def run_report(run: StoredRun, published: str = "") -> Report:
    """Build the report of a run and append a section for every stored table that the report does not use.

    If the stored results do not have the expected format, the report shows every table as it is stored.

    Args:
        run: Run with its stored results.
        published: Dataset (``gold`` or ``silver``) of the ClimaQA paper whose published results are added to the report
            of an experiment; empty to add none.
    """
    stored_tables = run.details.results
    builder, used_tables = next(
        (
            (builder, (main_table, *further_tables))
            for command, main_table, builder, further_tables in _REPORT_BUILDERS
            if main_table in stored_tables and command in ("", run.details.summary.command)
        ),
        (None, ()),
    )
    report = Report(_run_title(run.details), "", ())
    try:
        report = builder(run, published) if builder else report
    except (ClimassayError, KeyError, TypeError, ValueError) as error:
        # Results of another version, or of a user's own code under the name of one of our tables.
        message = Prose(
            f"These results cannot be shown in their usual form ({type(error).__name__}), so here they are."
        )
        report, used_tables = Report(report.title, "", (Section("Stored results", (message,)),)), ()
    plain_sections = tuple(
        _plain_section(name, rows) for name, rows in stored_tables.items() if name not in used_tables
    )
    return Report(report.title, report.lead, (*report.sections, *plain_sections), report.facts)


def _run_title(details: RunDetails) -> str:
    return f"{details.summary.command}, {details.summary.id}"


def run_experiment_report(run: StoredRun, published: str, *, answers: bool = False) -> Report:
    """Return the report of a run's experiment.

    Args:
        run: Run of an experiment.
        published: Dataset of published results; see :func:`run_report`.
        answers: Whether the report includes every question and answer.

    Raises:
        InputError: The run has no readable experiment.
    """
    from climassay.evaluation import experiment_report

    experiment = run.experiment
    if experiment is None:
        raise InputError("The run has no readable experiment.")
    return experiment_report(experiment, scores=run.scores, published=paper_scores(published), answers=answers)


def paper_scores(published: str) -> Sequence[PublishedScore]:
    """Return the ClimaQA paper's scores on ``gold`` or ``silver``; an empty sequence if ``published`` is empty."""
    return published_scores("gold" if published == "gold" else "silver") if published else ()


def _factcheck_report(run: StoredRun, _published: str) -> Report:
    from climassay.factcheck import analyse, factcheck_report, load_scale, read_truths

    details = run.details
    transcripts = run.transcripts
    truths = read_truths(details.results.get("published", ()))
    pages: dict[str, str] = {}
    for number, transcript in enumerate(transcripts, start=1):
        pages.setdefault(transcript.claim.id, f"/results/{details.summary.id}/claims/{number}")
    scale = load_scale(str(details.config.get("scale", transcripts[0].scale)))
    file = str(details.config.get("file", "a claim"))
    return factcheck_report(analyse(transcripts, truths, scale), file=file, pages=pages)


def _judges_report(run: StoredRun, _published: str) -> Report:
    from climassay.judging.benchmark import load_judge_results
    from climassay.judging.report import judge_sections

    details = run.details
    results = load_judge_results(details)
    n_items = max((result.scores.n_items for result in results), default=0)
    title = f"{details.config.get('model', '?')} as a judge"
    return Report(title, f"{n_items} labelled items.", tuple(judge_sections(results)))


def _ranking_report(run: StoredRun, _published: str) -> Report:
    from climassay.judging.ranking import ranking_table

    details = run.details
    table = ranking_table(details.results["ranking"], quality=details.config.get("quality", "quality"), words=None)
    introduction = (
        f"{len(details.results['ranking'])} items, best first, as {details.config.get('model', '?')} judges them."
    )
    return Report(_run_title(details), introduction, (Section("Ranking", (table,)),))


def _insertion_report(run: StoredRun, _published: str) -> Report:
    from climassay.judging.report import insertion_table

    details = run.details
    introduction = f"{len(details.results['labels'])} new items between labelled ones."
    table = insertion_table(details.results["labels"], words=None)
    return Report(_run_title(details), introduction, (Section("Labels", (table,)),))


def _answer_report(run: StoredRun, _published: str) -> Report:
    cards = []
    for row in run.details.results["answer"]:
        sentences = tuple(
            (sentence["text"], tuple(sentence["citations"]), bool(sentence["in_house"]))
            for sentence in row["sentences"]
        )
        sources = tuple((source["number"], source["citation"], source["passage"]["text"]) for source in row["sources"])
        # Runs of earlier versions store neither references nor whether an answer was truncated or a demonstration.
        reference_note = note_unchecked_references(
            name for sentence in row["sentences"] for name in sentence.get("unchecked_references", ())
        )
        notes = (
            DEMONSTRATION if row.get("demonstration") else "",
            note_truncation(row.get("truncated", False)),
            note_removed_citations(row["removed_citations"]),
            reference_note,
        )
        note = " ".join(filter(None, notes))
        sentences = sentences or ((row["text"] or row["error"] or "", (), False),)
        cards.append(AnswerCard(row["question"], sentences, sources, note))
    model = run.details.config.get("model", "?")
    return Report("A cited answer", f"Written by {model}.", (Section("Answer", tuple(cards)),))


def _generation_report(run: StoredRun, _published: str) -> Report:
    details = run.details
    rows = details.results["streams"]
    columns = ("stream", "requested", "drafts", "failed", "accepted")
    cells = [(*(str(row[name]) for name in columns), row["ended"] or "-") for row in rows]
    table = Table.of("Drafts of this run", ["kind and level", *columns[1:], "ended"], cells)
    n_accepted = sum(row["accepted"] for row in rows)
    return Report(_run_title(details), f"{counted(n_accepted, 'question')} accepted.", (Section("Yield", (table,)),))


_EXPERIMENT_TABLES = ("experiment", "cells", "questions", "passages", "metric_sources", "predictions")
_REPORT_BUILDERS: Sequence[tuple[str, str, ReportBuilder, tuple[str, ...]]] = (
    ("", "report", lambda run, _published: report_from_data(run.details.results["report"][0]), ("judges", "probe")),
    ("evaluate run", "outcomes", run_experiment_report, _EXPERIMENT_TABLES),
    ("evaluate mcq", "outcomes", run_experiment_report, _EXPERIMENT_TABLES),
    ("", "transcript", _factcheck_report, ("published",)),
    ("judge benchmark", "judges", _judges_report, ()),
    ("judge rank", "ranking", _ranking_report, ()),
    ("judge insert", "labels", _insertion_report, ()),
    ("ask", "answer", _answer_report, ()),
    ("generate run", "streams", _generation_report, ()),
)
"""Entries (command, required table, builder, optional tables) for building reports. An empty command matches all
commands."""


def _plain_section(name: str, rows: Sequence[Mapping[str, Any]]) -> Section:
    """Return a section with at most MAX_PLAIN_ROWS rows of a stored table, and a column for each key."""
    heading = name.replace("_", " ").capitalize()
    if len(rows) == 1:
        return Section(heading, (Facts(tuple(flat_values(rows[0]))),))
    columns = list(dict.fromkeys(column for row in rows for column in row))
    cells = [tuple(_format_value(row.get(column, "")) for column in columns) for row in rows[:MAX_PLAIN_ROWS]]
    note = (
        f"The first {MAX_PLAIN_ROWS} of {len(rows)} rows; all are in the downloads."
        if len(rows) > MAX_PLAIN_ROWS
        else ""
    )
    return Section(heading, (Table.of(name, columns, cells, note=note, left_columns=len(columns)),))


def flat_values(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Flatten nested data: yield pairs of a name and a formatted value, with the names of all levels joined by dots.

    If a list contains mappings, the numbers of its entries, from 1, serve as names.
    """
    for name, value in values.items():
        if isinstance(value, list | tuple) and any(isinstance(entry, Mapping) for entry in value):
            value = {str(number): entry for number, entry in enumerate(value, start=1)}
        if isinstance(value, Mapping) and value:
            yield from flat_values(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", _format_value(value)


def _format_value(value: Any) -> str:
    if value is None or value in ("", [], {}, ()):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple) and not any(isinstance(entry, Mapping) for entry in value):
        text = ", ".join(map(_format_value, value))
    else:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_VALUE_LENGTH else text[:MAX_VALUE_LENGTH] + " …"
