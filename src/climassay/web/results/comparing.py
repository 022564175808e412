"""Several runs side by side."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from climassay.errors import InputError
from climassay.evaluation.comparing import (
    comparison_figure,
    comparison_table,
    comparison_test_table,
)
from climassay.metrics.registry import METRICS
from climassay.reporting import Prose, Report, Section
from climassay.reporting.html import as_svg
from climassay.web.access import Reader
from climassay.web.failures import Missing
from climassay.web.pages import page
from climassay.web.place import Place, PlaceHere
from climassay.web.results.blocks import ShownBlock, ShownSection, figure_at, shown_sections, table_at
from climassay.web.results.comparisons import comparable_run, compared
from climassay.web.results.downloads import table_file
from climassay.web.results.files import as_file
from climassay.web.results.style import block_assets

router = APIRouter(include_in_schema=False)
MOST_RUNS = 8
Level = Literal["overall", "base", "reasoning", "hypothetical"]
RunsWanted = Annotated[list[str], Query(max_length=64)]


@router.get("/results/compare")
def show_comparison(
    request: Request,
    place: PlaceHere,
    _user: Reader,
    runs: RunsWanted = [],  # noqa: B006
    metric: str = "",
    level: Level = "overall",
) -> Response:
    """One metric of several runs, with paired tests on the questions that they share."""
    names = _names(runs)
    stored = [comparable_run(place, name) for name in names]
    metrics = [name for name in METRICS if any(name in one.metrics for one in stored)]
    chosen = metric if metric in metrics else next(iter(metrics), "")
    sections: tuple[ShownSection, ...] = ()
    if chosen:
        query = "?" + "&".join([f"runs={','.join(names)}", f"metric={chosen}", f"level={level}"])
        made = _report(place, names, chosen, level)
        sections = tuple(_with_query(one, query) for one in shown_sections(made, "/results/compare"))
    return page(
        request,
        "results/compare.html.j2",
        runs=names,
        experiments=[one.experiment for one in stored],
        metrics=[METRICS[name] for name in metrics],
        metric=chosen,
        level=level,
        levels=("overall", "base", "reasoning", "hypothetical"),
        sections=sections,
        **block_assets(),
    )


@router.get("/results/compare/tables/{number}.{form}")
def send_table(
    place: PlaceHere, _user: Reader, number: int, form: str, runs: RunsWanted, metric: str, level: Level = "overall"
) -> Response:
    """A table of a comparison."""
    table = table_at(_report(place, _names(runs), metric, level), number)
    if table is None:
        raise Missing(f"The comparison has no table with the number {number}.")
    return table_file(table, form, f"comparison-{metric}-{number}")


@router.get("/results/compare/figures/{number}.svg")
def send_figure(
    place: PlaceHere, _user: Reader, number: int, runs: RunsWanted, metric: str, level: Level = "overall"
) -> Response:
    """A figure of a comparison."""
    figure = figure_at(_report(place, _names(runs), metric, level), number)
    if figure is None:
        raise Missing(f"The comparison has no figure with the number {number}.")
    return as_file(as_svg(figure), f"comparison-{metric}.svg")


def _names(runs: list[str]) -> list[str]:
    """Ids of runs, given several times or with commas between them."""
    names = list(dict.fromkeys(name.strip() for entry in runs for name in entry.split(",") if name.strip()))
    if len(names) > MOST_RUNS:
        raise InputError(f"At most {MOST_RUNS} runs are compared at a time, not {len(names)}.")
    return names


def _report(place: Place, runs: list[str], metric: str, level: Level) -> Report:
    found = compared(place, runs, metric, level)
    figure, tests = comparison_figure(found), comparison_test_table(found)
    if figure is None:
        return Report("Comparison", "", (Section("Scores", (Prose("No run has a score in this metric and level."),)),))
    sections = [Section("Scores", (comparison_table(found), figure))]
    if tests is not None:
        sections.append(Section("Paired tests", (tests,)))
    elif len(runs) > 1:
        words = "These runs have no question in common, so that nothing can be tested question by question."
        sections.append(Section("Paired tests", (Prose(words),)))
    return Report("Comparison", "", tuple(sections))


def _with_query(section: ShownSection, query: str) -> ShownSection:
    blocks = tuple(
        ShownBlock(
            one.html, one.kind, one.title, tuple((form, address + query) for form, address in one.downloads), one.rows
        )
        for one in section.blocks
    )
    return ShownSection(section.id, section.heading, blocks)
