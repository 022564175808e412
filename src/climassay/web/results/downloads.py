"""Everything as a file: tables, figures, whole runs, reports, answers."""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from climassay.evaluation.results import COMMANDS
from climassay.records.database import Database
from climassay.records.queries import iterate_answers
from climassay.reporting import Report, Table, as_csv, as_latex, as_markdown
from climassay.reporting.html import as_svg
from climassay.web.access import Reader
from climassay.web.failures import Missing
from climassay.web.place import PlaceHere
from climassay.web.results.blocks import figure_at, table_at
from climassay.web.results.files import as_file, as_stream
from climassay.web.results.run_reports import experiment_page
from climassay.web.results.runs import Published, PublishedWanted, found_run, found_summary
from climassay.web.results.stored_run import StoredRun

router = APIRouter(include_in_schema=False)
ROWS_AT_ONCE = 1000
"""Stored rows in one piece of a run's JSON."""


def table_json(table: Table) -> str:
    """A table as JSON: its words, and a list of rows by heading with the cells as they are shown."""
    headings = [column.label for column in table.columns]
    marks = [
        {"row": row, "column": column, "marks": sorted(found)} for (row, column), found in sorted(table.marks.items())
    ]
    data = {"title": table.title, "note": table.note, "columns": headings, "rows": table.rows, "marks": marks}
    return json.dumps(data, ensure_ascii=False, indent=1)


_FORMS: dict[str, Callable[[Table], str]] = {
    "csv": as_csv,
    "md": as_markdown,
    "tex": as_latex,
    "json": table_json,
}


def table_file(table: Table, form: str, name: str) -> Response:
    """A table as a file.

    Raises:
        Missing: Tables have no such form.
    """
    if form not in _FORMS:
        raise Missing(f"Tables come as {', '.join(_FORMS)}, not as {form[:20]}.")
    return as_file(_FORMS[form](table), f"{name}.{form}")


@router.get("/results/{run}/tables/{number}.{form}")
def send_table(
    place: PlaceHere, _user: Reader, run: str, number: int, form: str, published: PublishedWanted = ""
) -> Response:
    """One table of a run's page."""
    table = table_at(found_run(place, run).report(published), number)
    if table is None:
        raise Missing(f"The run {run} has no table with the number {number}.")
    return table_file(table, form, f"{run}-{table.title}")


@router.get("/results/{run}/figures/{number}.svg")
def send_figure(place: PlaceHere, _user: Reader, run: str, number: int, published: PublishedWanted = "") -> Response:
    """One figure of a run's page."""
    figure = figure_at(found_run(place, run).report(published), number)
    if figure is None:
        raise Missing(f"The run {run} has no figure with the number {number}.")
    return as_file(as_svg(figure), f"{run}-{figure.title}.svg")


@router.get("/results/{run}/run.json")
def send_run(place: PlaceHere, _user: Reader, run: str) -> Response:
    """A whole run: summary, configuration, seeds, usage and every stored row."""
    return as_stream(_run_pieces(asdict(found_run(place, run).details)), f"{run}.json")


@router.get("/results/{run}/report.html")
def send_report(place: PlaceHere, _user: Reader, run: str, published: PublishedWanted = "") -> Response:
    """A run's report as one self-contained page, an experiment's with every answer."""
    return as_file(_whole_report(found_run(place, run), published).to_html(), f"{run}.html")


@router.get("/results/{run}/answers.jsonl")
def send_answers(place: PlaceHere, _user: Reader, run: str) -> Response:
    """Every request of a run with its answer, a line each."""
    found_summary(place, run)
    return as_stream(_answer_lines(place.database, run), f"{run}-answers.jsonl")


def _run_pieces(data: dict[str, Any]) -> Iterator[str]:
    """JSON in pieces: the tables of results by some rows at a time, for they are what is long."""
    results = data.pop("results")
    yield json.dumps(data, ensure_ascii=False)[:-1] + ', "results": {'
    for place, (name, rows) in enumerate(results.items()):
        yield (", " if place else "") + json.dumps(name) + ": ["
        for start in range(0, len(rows), ROWS_AT_ONCE):
            lines = (json.dumps(row, ensure_ascii=False) for row in rows[start : start + ROWS_AT_ONCE])
            yield (",\n" if start else "\n") + ",\n".join(lines)
        yield "]"
    yield "}}\n"


def _answer_lines(database: Database, run: str) -> Iterator[str]:
    for bundle in iterate_answers(database, run):
        yield "".join(json.dumps(asdict(answer), ensure_ascii=False) + "\n" for answer in bundle)


def _whole_report(stored: StoredRun, published: Published) -> Report:
    if stored.details.summary.command in COMMANDS and stored.experiment is not None:
        return experiment_page(stored, published, answers=True)
    report = stored.report(published)
    facts = (("Run", stored.id), ("Command", stored.details.summary.command))
    return Report(report.title, report.lead, report.sections, (*report.facts, *facts))
