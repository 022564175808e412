"""From what a run kept to the report that its page shows, whatever command it was of."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from climassay.errors import ClimassayError, InputError
from climassay.grounding.answer import removed_note, unchecked_note
from climassay.records.queries import RunDetails
from climassay.reporting import AnswerCard, Facts, Prose, Report, Section, Table
from climassay.reporting.html import Block

if TYPE_CHECKING:
    from climassay.web.results.stored_run import StoredRun

MOST_ROWS = 500
"""Rows of a table of a run that no command of ours explains; the rest is in the downloads."""
LONGEST_CELL = 400
"""Characters of a value in such a table."""

Maker = Callable[["StoredRun", str], Report]
"""Makes a report from a finished run; the text names the published results to show beside it, or is empty."""


def run_report(run: "StoredRun", published: str = "") -> Report:
    """The report of a run: that of its command, and every stored table that this one does not show, as it is.

    Args:
        run: With everything kept about it.
        published: ``gold`` or ``silver``: the paper's results stand beside those of an experiment; else empty.
    """
    details = run.details
    stored = details.results
    maker, used = _maker(details)
    if maker is None:
        return Report(_title(details), "", tuple(_plain_section(name, rows) for name, rows in stored.items()))
    try:
        made = maker(run, published)
    except (ClimassayError, KeyError, TypeError, ValueError) as error:
        # Results of another version, or of somebody's own code under a name of ours: shown as they are.
        words = Prose(f"These results cannot be shown in their usual form ({type(error).__name__}), so here they are.")
        plain = (_plain_section(name, rows) for name, rows in stored.items())
        return Report(_title(details), "", (Section("Stored results", (words,)), *plain))
    more = tuple(_plain_section(name, rows) for name, rows in stored.items() if name not in used)
    return Report(made.title, made.lead, (*made.sections, *more), made.facts)


def _maker(details: RunDetails) -> tuple[Maker | None, frozenset[str]]:
    """What makes the report, and the stored tables that it shows."""
    for command, needed, maker, others in _MAKERS:
        if needed in details.results and (not command or details.summary.command == command):
            return maker, frozenset((needed, *others))
    return None, frozenset()


def _title(details: RunDetails) -> str:
    return f"{details.summary.command}, {details.summary.id}"


def _experiment(run: "StoredRun", published: str) -> Report:
    return experiment_page(run, published, answers=False)


def experiment_page(run: "StoredRun", published: str, *, answers: bool) -> Report:
    """The report of an experiment.

    Args:
        run: One that kept an experiment.
        published: As for :func:`run_report`.
        answers: Whether it ends with every question and every answer.

    Raises:
        InputError: What the run kept is no experiment.
    """
    from climassay.evaluation import experiment_report, published_scores

    experiment = run.experiment
    if experiment is None:
        raise InputError("The run keeps no experiment that can be read.")
    beside = published_scores("gold" if published == "gold" else "silver") if published else ()
    return experiment_report(experiment, scores=run.scores, published=beside, answers=answers)


def _factcheck(run: "StoredRun", _published: str) -> Report:
    from climassay.factcheck import analyse, factcheck_report, load_scale, stored_truths

    details = run.details
    transcripts = run.transcripts
    truths = stored_truths(details.results.get("published", ()), transcripts)
    pages: dict[str, str] = {}
    for number, transcript in enumerate(transcripts, start=1):
        pages.setdefault(transcript.claim.id, f"/results/{details.summary.id}/claims/{number}")
    scale = load_scale(str(details.config.get("scale", transcripts[0].scale)))
    file = str(details.config.get("file", "a claim"))
    return factcheck_report(analyse(transcripts, truths, scale), file=file, pages=pages)


def _judges(run: "StoredRun", _published: str) -> Report:
    from climassay.judging.benchmark import judge_results_of
    from climassay.judging.report import judge_sections

    details = run.details
    results = judge_results_of(details)
    items = max((result.scores.n_items for result in results), default=0)
    title = f"{details.config.get('model', '?')} as a judge"
    return Report(title, f"{items} labelled items.", tuple(judge_sections(results)))


def _ranking(run: "StoredRun", _published: str) -> Report:
    from climassay.judging.report import stored_ranking_table

    details = run.details
    lead = f"{len(details.results['ranking'])} items, best first, as {details.config.get('model', '?')} judges them."
    return Report(_title(details), lead, (Section("Ranking", (stored_ranking_table(details),)),))


def _labels(run: "StoredRun", _published: str) -> Report:
    from climassay.judging.report import stored_label_table

    details = run.details
    lead = f"{len(details.results['labels'])} new items between labelled ones."
    return Report(_title(details), lead, (Section("Labels", (stored_label_table(details),)),))


def _answer(run: "StoredRun", _published: str) -> Report:
    details = run.details
    cards = tuple(_answer_card(row) for row in details.results["answer"])
    return Report("A cited answer", f"Written by {details.config.get('model', '?')}.", (Section("Answer", cards),))


def _answer_card(row: Mapping[str, Any]) -> AnswerCard:
    said = tuple((one["text"], tuple(one["citations"]), bool(one["in_house"])) for one in row["sentences"])
    sources = tuple((one["number"], one["citation"], one["passage"]["text"]) for one in row["sources"])
    # Runs before references were read have none.
    unchecked = unchecked_note(name for one in row["sentences"] for name in one.get("unchecked_references", ()))
    note = " ".join(filter(None, (removed_note(row["removed_citations"]), unchecked)))
    return AnswerCard(row["question"], said or ((row["text"] or row["error"] or "", (), False),), sources, note)


def _generation(run: "StoredRun", _published: str) -> Report:
    details = run.details
    rows = details.results["streams"]
    table = Table.of(
        "Drafts of this run",
        ["kind and level", "wanted", "drafts", "failed", "accepted", "ended"],
        [
            (*(str(row[name]) for name in ("stream", "wanted", "drafts", "failed", "accepted")), row["ended"] or "-")
            for row in rows
        ],
    )
    accepted = sum(row["accepted"] for row in rows)
    return Report(_title(details), f"{accepted} questions accepted.", (Section("Yield", (table,)),))


def _stored_report(run: "StoredRun", _published: str) -> Report:
    from climassay.reporting.html import report_from_data

    details = run.details
    return report_from_data(details.results["report"][0])


_EXPERIMENT = ("experiment", "cells", "questions", "passages", "metric_sources", "predictions")
_MAKERS: Sequence[tuple[str, str, Maker, tuple[str, ...]]] = (
    ("", "report", _stored_report, ()),
    ("evaluate run", "outcomes", _experiment, _EXPERIMENT),
    ("evaluate mcq", "outcomes", _experiment, _EXPERIMENT),
    ("evaluate mcq", "predictions", _experiment, ("accuracy", "paired", "position", "questions")),
    ("", "transcript", _factcheck, ("published",)),
    ("judge benchmark", "judges", _judges, ()),
    ("judge rank", "ranking", _ranking, ()),
    ("judge insert", "labels", _labels, ()),
    ("ask", "answer", _answer, ()),
    ("generate run", "streams", _generation, ()),
)
"""Command (empty for any), the stored table that decides, what shows it, and the other tables that it shows."""


def _plain_section(name: str, rows: Sequence[Mapping[str, Any]]) -> Section:
    block: Block = Facts(_flat(rows[0])) if len(rows) == 1 else plain_table(name, rows)
    return Section(name.replace("_", " ").capitalize(), (block,))


def plain_table(name: str, rows: Sequence[Mapping[str, Any]], most: int = MOST_ROWS) -> Table:
    """Stored rows as they are: a column for every name that occurs.

    Args:
        name: Of the stored table.
        rows: Its rows.
        most: Rows shown.
    """
    headings = list(dict.fromkeys(heading for row in rows for heading in row))
    shown = [tuple(_words(row.get(heading, "")) for heading in headings) for row in rows[:most]]
    note = f"The first {most} of {len(rows)} rows; all are in the downloads." if len(rows) > most else ""
    return Table.of(name, headings, shown, note=note, left=len(headings))


def _flat(row: Mapping[str, Any], at: str = "") -> tuple[tuple[str, str], ...]:
    """Names and values of nested data, names joined by dots."""
    found: list[tuple[str, str]] = []
    for name, value in row.items():
        if isinstance(value, Mapping):
            found += _flat(value, f"{at}{name}.")
        else:
            found.append((f"{at}{name}", _words(value)))
    return tuple(found)


def _words(value: Any) -> str:
    import json

    if isinstance(value, float):
        return f"{value:.6g}"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST_CELL else text[:LONGEST_CELL] + " …"
