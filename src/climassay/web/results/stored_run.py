"""A run with everything that its pages show, the report of it, and the last runs that were read."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import sqlalchemy as sa

from climassay.errors import ClimassayError, InputError, RecordsError
from climassay.evaluation.results import COMMANDS, Experiment, Outcome, experiment_of
from climassay.evaluation.run_comparison import metrics_in
from climassay.evaluation.scores import ExperimentScores, score_experiment
from climassay.factcheck import Transcript, from_data
from climassay.grounding.answer import removed_note, truncated_note, unchecked_note
from climassay.questions import Question
from climassay.records import tables
from climassay.records.database import Database
from climassay.records.queries import RunDetails, RunSummary, require_run, run_details
from climassay.records.store import cached
from climassay.reporting import AnswerCard, Facts, Prose, Report, Section, Table, counted
from climassay.reporting.html import report_data, report_from_data
from climassay.web.app_state import AppState, ResultCache
from climassay.web.failures import Missing

MANY_ROWS = 4000
"""Number of stored rows of a run above which the content of its pages is cached in the records."""
KEPT_RUNS = 4
"""Runs that stay read; an experiment of 24,000 answers takes some 80 MB."""
MOST_ROWS = 500
"""Rows of a table of a run that no command of ours explains; the rest is in the downloads."""
LONGEST_VALUE = 600
"""Characters of a stored value that are shown; the whole is in the run's JSON."""


def count_rows(database: Database, run: str) -> int:
    """Return the number of stored result rows of a run."""
    query = sa.select(sa.func.count()).select_from(tables.results).where(tables.results.c.run == run)
    return int(database.scalar(query))


def answered_questions(experiment: Experiment | None) -> dict[tuple[str, str], Question]:
    """Return the questions that have an answer, by benchmark and id, in the order of the experiment."""
    if experiment is None:
        return {}
    answered = {(outcome.cell.benchmark, outcome.question) for outcome in experiment.outcomes}
    return {
        (name, question.id): question
        for name, questions in experiment.questions.items()
        for question in questions
        if (name, question.id) in answered
    }


class StoredRun:
    """A finished run; what is computed from its results is computed once."""

    def __init__(self, details: RunDetails) -> None:
        self.details = details
        self._computed = ResultCache()

    @property
    def id(self) -> str:
        """Id of the run."""
        return self.details.summary.id

    def report(self, published: str = "") -> Report:
        """What its page shows; see :func:`run_report`."""
        return self._computed.get(f"report {published}", lambda: run_report(self, published))

    @property
    def experiment(self) -> Experiment | None:
        """Its questions and answers, where it asked questions of a benchmark."""

        def read() -> Experiment | None:
            kept = "outcomes" in self.details.results
            try:
                return experiment_of(self.details) if kept and self.details.summary.command in COMMANDS else None
            except (KeyError, TypeError, ValueError, IndexError):  # damaged, or of somebody's own code
                return None

        return self._computed.get("experiment", read)

    @property
    def scores(self) -> ExperimentScores:
        """All numbers of its experiment; it must have one."""
        assert self.experiment is not None
        return self._computed.get("scores", partial(score_experiment, self.experiment))

    @property
    def outcomes(self) -> dict[tuple[str, str], list[Outcome]]:
        """Answers by benchmark and question."""

        def sorted_in() -> dict[tuple[str, str], list[Outcome]]:
            result: dict[tuple[str, str], list[Outcome]] = defaultdict(list)
            for outcome in self.experiment.outcomes if self.experiment else ():
                result[outcome.cell.benchmark, outcome.question].append(outcome)
            return dict(result)

        return self._computed.get("outcomes", sorted_in)

    @property
    def questions(self) -> dict[tuple[str, str], Question]:
        """Questions with an answer, by benchmark and id, in their order."""
        return self._computed.get("questions", lambda: answered_questions(self.experiment))

    @property
    def transcripts(self) -> tuple[Transcript, ...]:
        """Its fact-checks, in their order.

        Raises:
            InputError: One is damaged.
        """
        rows = self.details.results.get("transcript", ())
        return self._computed.get("transcripts", lambda: tuple(from_data(row) for row in rows))


def found_summary(app: AppState, run: str) -> RunSummary:
    """The run of an address; missing where there is none."""
    try:
        return require_run(app.database, run)
    except RecordsError:
        raise Missing(f"There is no run {run[:40]}.") from None


def found_run(app: AppState, run: str) -> StoredRun:
    """The run of an address, with its results; missing where there is none. One that goes on is read anew each time."""
    summary = found_summary(app, run)
    if summary.status == "running":
        return StoredRun(run_details(app.database, run))
    read: ResultCache = app.shared("results:runs", lambda: ResultCache(KEPT_RUNS))
    return read.get((run, summary.ended_at), lambda: StoredRun(run_details(app.database, run)))


def run_data(app: AppState, run: RunSummary, published: str = "", *, wait: bool = True) -> dict[str, Any] | None:
    """What the page of a run shows, computed once: of a large one that has ended it is kept with the records.

    Args:
        app: The server.
        run: Which run.
        published: As for :func:`run_report`.
        wait: Whether to compute what takes long; without it the answer may be None.

    Returns:
        ``report`` (as :func:`climassay.reporting.html.report_data` gives it), ``name``, ``metrics`` (of an experiment,
        else None), and how many ``questions`` and ``claims`` there are.
    """
    rows = count_rows(app.database, run.id)
    parts = ("run", run.id, rows, published)

    def make() -> dict[str, Any]:
        stored = found_run(app, run.id)
        experiment = stored.experiment
        return {
            "report": report_data(stored.report(published)),
            "name": experiment.name if experiment else "",
            "metrics": metrics_in([experiment]) if experiment else None,
            "questions": len(stored.questions),
            "claims": len(stored.details.results.get("transcript", ())),
        }

    if run.status == "running":
        return make() if wait or rows <= MANY_ROWS else None
    if rows <= MANY_ROWS:
        return app.computed.get(parts, make)
    if parts not in app.computed and not wait and cached(app.database, parts) is None:
        return None
    result: dict[str, Any] = app.computed.get(parts, lambda: cached(app.database, parts, make))
    return result


Maker = Callable[[StoredRun, str], Report]
"""Makes a report from a finished run; the text names the published results to show beside it, or is empty."""


def run_report(run: StoredRun, published: str = "") -> Report:
    """The report of a run: that of its command, and every stored table that this one does not show, as it is.

    Args:
        run: With everything kept about it.
        published: ``gold`` or ``silver``: the paper's results appear beside those of an experiment; else empty.
    """
    stored = run.details.results
    maker, used = next(
        (
            (maker, (needed, *others))
            for command, needed, maker, others in _MAKERS
            if needed in stored and command in ("", run.details.summary.command)
        ),
        (None, ()),
    )
    made = Report(_title(run.details), "", ())
    try:
        made = maker(run, published) if maker else made
    except (ClimassayError, KeyError, TypeError, ValueError) as error:
        # Results of another version, or of somebody's own code under a name of ours: shown as they are.
        words = Prose(f"These results cannot be shown in their usual form ({type(error).__name__}), so here they are.")
        made, used = Report(made.title, "", (Section("Stored results", (words,)),)), ()
    more = tuple(_plain_section(name, rows) for name, rows in stored.items() if name not in used)
    return Report(made.title, made.lead, (*made.sections, *more), made.facts)


def _title(details: RunDetails) -> str:
    return f"{details.summary.command}, {details.summary.id}"


def experiment_page(run: StoredRun, published: str, *, answers: bool = False) -> Report:
    """The report of an experiment.

    Args:
        run: One that kept an experiment.
        published: As for :func:`run_report`.
        answers: Whether it ends with every question and every answer.

    Raises:
        InputError: What the run kept is not an experiment.
    """
    from climassay.evaluation import experiment_report, published_scores

    experiment = run.experiment
    if experiment is None:
        raise InputError("The run has no readable experiment.")
    beside = published_scores("gold" if published == "gold" else "silver") if published else ()
    return experiment_report(experiment, scores=run.scores, published=beside, answers=answers)


def _factcheck(run: StoredRun, _published: str) -> Report:
    from climassay.factcheck import analyse, factcheck_report, load_scale, stored_truths

    details = run.details
    transcripts = run.transcripts
    truths = stored_truths(details.results.get("published", ()))
    pages: dict[str, str] = {}
    for number, transcript in enumerate(transcripts, start=1):
        pages.setdefault(transcript.claim.id, f"/results/{details.summary.id}/claims/{number}")
    scale = load_scale(str(details.config.get("scale", transcripts[0].scale)))
    file = str(details.config.get("file", "a claim"))
    return factcheck_report(analyse(transcripts, truths, scale), file=file, pages=pages)


def _judges(run: StoredRun, _published: str) -> Report:
    from climassay.judging.benchmark import judge_results_of
    from climassay.judging.report import judge_sections

    details = run.details
    results = judge_results_of(details)
    items = max((result.scores.n_items for result in results), default=0)
    title = f"{details.config.get('model', '?')} as a judge"
    return Report(title, f"{items} labelled items.", tuple(judge_sections(results)))


def _ranking(run: StoredRun, _published: str) -> Report:
    from climassay.judging.ranking import ranking_table

    details = run.details
    table = ranking_table(details.results["ranking"], quality=details.config.get("quality", "quality"), words=None)
    lead = f"{len(details.results['ranking'])} items, best first, as {details.config.get('model', '?')} judges them."
    return Report(_title(details), lead, (Section("Ranking", (table,)),))


def _labels(run: StoredRun, _published: str) -> Report:
    from climassay.judging.report import insertion_table

    details = run.details
    lead = f"{len(details.results['labels'])} new items between labelled ones."
    table = insertion_table(details.results["labels"], words=None)
    return Report(_title(details), lead, (Section("Labels", (table,)),))


def _answer(run: StoredRun, _published: str) -> Report:
    cards = []
    for row in run.details.results["answer"]:
        said = tuple((one["text"], tuple(one["citations"]), bool(one["in_house"])) for one in row["sentences"])
        sources = tuple((one["number"], one["citation"], one["passage"]["text"]) for one in row["sources"])
        # Runs of earlier versions tell neither of references nor of answers that were cut off.
        unchecked = unchecked_note(name for one in row["sentences"] for name in one.get("unchecked_references", ()))
        notes = (truncated_note(row.get("truncated", False)), removed_note(row["removed_citations"]), unchecked)
        note = " ".join(filter(None, notes))
        said = said or ((row["text"] or row["error"] or "", (), False),)
        cards.append(AnswerCard(row["question"], said, sources, note))
    model = run.details.config.get("model", "?")
    return Report("A cited answer", f"Written by {model}.", (Section("Answer", tuple(cards)),))


def _generation(run: StoredRun, _published: str) -> Report:
    details = run.details
    rows = details.results["streams"]
    columns = ("stream", "requested", "drafts", "failed", "accepted")
    cells = [(*(str(row[name]) for name in columns), row["ended"] or "-") for row in rows]
    table = Table.of("Drafts of this run", ["kind and level", *columns[1:], "ended"], cells)
    accepted = sum(row["accepted"] for row in rows)
    return Report(_title(details), f"{counted(accepted, 'question')} accepted.", (Section("Yield", (table,)),))


_EXPERIMENT = ("experiment", "cells", "questions", "passages", "metric_sources", "predictions")
_MAKERS: Sequence[tuple[str, str, Maker, tuple[str, ...]]] = (
    (
        "",
        "report",
        lambda run, _published: report_from_data(run.details.results["report"][0]),
        ("judges", "probe"),
    ),
    ("evaluate run", "outcomes", experiment_page, _EXPERIMENT),
    ("evaluate mcq", "outcomes", experiment_page, _EXPERIMENT),
    ("", "transcript", _factcheck, ("published",)),
    ("judge benchmark", "judges", _judges, ()),
    ("judge rank", "ranking", _ranking, ()),
    ("judge apply", "ranking", _ranking, ()),
    ("judge insert", "labels", _labels, ()),
    ("ask", "answer", _answer, ()),
    ("generate run", "streams", _generation, ()),
)
"""Command (empty for any), the stored table that decides, what shows it, and the other tables that it shows."""


def _plain_section(name: str, rows: Sequence[Mapping[str, Any]]) -> Section:
    """Stored rows as they are, at most so many: a column for every name that occurs."""
    heading = name.replace("_", " ").capitalize()
    if len(rows) == 1:
        return Section(heading, (Facts(tuple(flat_values(rows[0]))),))
    names = list(dict.fromkeys(one for row in rows for one in row))
    shown = [tuple(_words(row.get(one, "")) for one in names) for row in rows[:MOST_ROWS]]
    note = f"The first {MOST_ROWS} of {len(rows)} rows; all are in the downloads." if len(rows) > MOST_ROWS else ""
    return Section(heading, (Table.of(name, names, shown, note=note, left=len(names)),))


def flat_values(values: Mapping[str, Any], at: str = "") -> Iterator[tuple[str, str]]:
    """Names and values of nested data, names joined by dots; entries of a list of tables go by their numbers."""
    for name, value in values.items():
        if isinstance(value, list | tuple) and any(isinstance(entry, Mapping) for entry in value):
            value = {str(number): entry for number, entry in enumerate(value, start=1)}
        if isinstance(value, Mapping) and value:
            yield from flat_values(value, f"{at}{name}.")
        else:
            yield f"{at}{name}", _words(value)


def _words(value: Any) -> str:
    if value is None or value in ("", [], {}, ()):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple) and not any(isinstance(entry, Mapping) for entry in value):
        text = ", ".join(map(_words, value))
    else:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE] + " …"
