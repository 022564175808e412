"""The list of runs and the page of one."""

from typing import Annotated, Any, Literal, cast, get_args

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from climassay.errors import RecordsError
from climassay.records.queries import RunOrder, RunSummary, list_run_page, require_run, run_settings, usage_by_model
from climassay.web.access import Reader
from climassay.web.failures import Missing
from climassay.web.pages import page
from climassay.web.place import Place, PlaceHere
from climassay.web.results.blocks import shown_sections
from climassay.web.results.configuration import prompt_hashes, settings_lines
from climassay.web.results.paging import part_of, within
from climassay.web.results.stored_run import RunShelf, StoredRun, shelf_of
from climassay.web.results.style import block_assets

router = APIRouter(include_in_schema=False)
PAGE = 50
LONGEST_SEARCH = 200
Published = Literal["", "gold", "silver"]
PublishedWanted = Annotated[Published, Query(description="Results of the paper to show beside an experiment's.")]
PageNumber = Annotated[int, Query(alias="page", ge=1, le=10**6)]
Search = Annotated[str, Query(max_length=LONGEST_SEARCH)]
COLUMNS: tuple[tuple[str, str, bool], ...] = (
    ("", "Run", False),
    ("command", "Command", False),
    ("status", "Status", False),
    ("started", "Started (UTC)", False),
    ("", "Models", False),
    ("asked", "Asked", True),
    ("failed", "Failed", True),
    ("served", "From records", True),
    ("tokens", "Tokens", True),
    ("cost", "Cost", True),
)
"""Name for sorting (empty: not sorted by), heading, and whether it is a number."""


@router.get("/results")
def show_runs(
    request: Request,
    place: PlaceHere,
    _user: Reader,
    command: Search = "",
    text: Search = "",
    order: str = "started",
    direction: Literal["down", "up"] = "down",
    number: PageNumber = 1,
) -> Response:
    """All runs, filtered, sorted and paged."""
    chosen = cast(RunOrder, order if order in get_args(RunOrder) else "started")
    found = list_run_page(
        place.database,
        command=command,
        text=text.strip(),
        order=chosen,
        descending=direction == "down",
        most=PAGE,
        skip=(number - 1) * PAGE,
    )
    if number > within(number, found.total, PAGE):
        number = within(number, found.total, PAGE)
        found = list_run_page(
            place.database, command=command, text=text.strip(), order=chosen, descending=direction == "down",
            most=PAGE, skip=(number - 1) * PAGE,
        )  # fmt: skip
    filters: dict[str, Any] = {"command": command, "text": text.strip()}
    sorting = {"order": "" if chosen == "started" else chosen, "direction": "" if direction == "down" else direction}
    return page(
        request,
        "results/runs.html.j2",
        part=part_of(found.lines, number, found.total, PAGE, "/results", {**filters, **sorting}),
        headings=part_of((), 1, 0, PAGE, "/results", filters),
        commands=found.commands,
        columns=COLUMNS,
        order=chosen,
        direction=direction,
        **filters,
    )


@router.get("/results/{run}")
def show_run(
    request: Request,
    place: PlaceHere,
    _user: Reader,
    run: str,
    published: PublishedWanted = "",
    wait: bool = False,
) -> Response:
    """One run: what came of it, how it was set up, and what it used.

    Results that take long to compute follow the page: its script fetches them; without it a link does.
    """
    summary, shelf = found_summary(place, run), shelf_of(place)
    ready = wait or shelf.is_ready(run, published)
    config, seeds, error = run_settings(place.database, run)
    values: dict[str, Any] = _result_values(shelf.get(run), published) if ready else {"published": published}
    return page(
        request,
        "results/run.html.j2",
        run=summary,
        ready=ready,
        settings=settings_lines(config),
        seeds=settings_lines(seeds),
        prompts=prompt_hashes(config),
        dataset=_dataset(summary, config),
        error=error,
        usage=usage_by_model(place.database, run),
        **values,
        **block_assets(),
    )


@router.get("/results/{run}/results")
def show_results(
    request: Request, place: PlaceHere, _user: Reader, run: str, published: PublishedWanted = ""
) -> Response:
    """Only the results: the piece that the page of a run fetches."""
    stored = found_run(place, run)
    return page(request, "results/run_results.html.j2", run=stored.details.summary, **_result_values(stored, published))


def found_summary(place: Place, run: str) -> RunSummary:
    """The run of an address.

    Raises:
        Missing: There is none.
    """
    try:
        return require_run(place.database, run)
    except RecordsError:
        raise Missing(f"There is no run {run[:40]}.") from None


def found_run(place: Place, run: str) -> StoredRun:
    """The run of an address, with its results.

    Raises:
        Missing: There is none.
    """
    found_summary(place, run)
    shelf: RunShelf = shelf_of(place)
    return shelf.get(run)


def _result_values(stored: StoredRun, published: Published) -> dict[str, Any]:
    report = stored.report(published)
    return {
        "report": report,
        "sections": shown_sections(report, f"/results/{stored.id}", published),
        "experiment": stored.experiment,
        "questions": len(stored.questions),
        "claims": len(stored.details.results.get("transcript", ())),
        "published": published,
    }


def _dataset(summary: RunSummary, config: dict[str, Any]) -> str:
    """Name of the dataset that a run made; empty for runs that make none."""
    recipe = config.get("recipe")
    if summary.command != "generate run" or not isinstance(recipe, dict):
        return ""
    return str(recipe.get("name", ""))
