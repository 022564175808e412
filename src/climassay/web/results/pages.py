"""Pages of results: runs, their tables and figures, fact-checks, comparisons, datasets, usage."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from functools import cache
from itertools import count
from typing import Annotated, Any, Literal, NamedTuple, cast, get_args
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from climassay.errors import InputError
from climassay.evaluation.results import COMMANDS
from climassay.evaluation.run_comparison import (
    RunComparison,
    compare_runs,
    comparison_figure,
    comparison_table,
    comparison_test_table,
)
from climassay.evaluation.tables import score_rows
from climassay.factcheck import Transcript, factcheck_page, load_scale, stored_truths
from climassay.factcheck.results.page import OUTCOME
from climassay.factcheck.scales import Scale
from climassay.generation.dataset_results import MAX_REPORTED_DRAFTS, dataset_report, dataset_stats
from climassay.generation.dataset_store import DatasetStore, StoredDraft
from climassay.metrics.registry import METRICS
from climassay.records.queries import (
    RunEntry,
    RunList,
    RunOrder,
    UsageGroup,
    UsageRow,
    list_run_entries,
    list_run_page,
    run_settings,
    usage_by,
    usage_by_model,
)
from climassay.records.recorded_answers import iterate_answers
from climassay.records.store import cached
from climassay.reporting import Prose, Report, Section, Table, as_csv, as_latex, as_markdown
from climassay.reporting.html import (
    FIGURES,
    Block,
    as_svg,
    block_script,
    block_style,
    render_block,
    report_data,
    report_from_data,
)
from climassay.web.access import Member, Reader
from climassay.web.app_state import App, AppState
from climassay.web.checks.moderation import hidden_runs, require_visible_run
from climassay.web.failures import Missing
from climassay.web.library.cache import library_of
from climassay.web.library.evidence import CitationLinks, check_values
from climassay.web.pages import PageNumber, Search, as_file, clamp_page, cut_page, page, part_of
from climassay.web.results.stored_run import (
    StoredRun,
    count_rows,
    experiment_page,
    find_run_summary,
    find_stored_run,
    flat_values,
    paper_scores,
    run_data,
)

router = APIRouter(include_in_schema=False, dependencies=[Depends(require_visible_run)])
_KEEP = {"Cache-Control": "public, max-age=31536000, immutable"}
PAGE = 50
MOST_LINES = 120
ROWS_AT_ONCE = 1000
"""Number of stored rows in one chunk of a run's JSON."""
MAX_RUNS = 8
MAX_OFFERED_RUNS = 50
"""Maximum number of runs that the comparison offers, besides the chosen ones."""
DRAFTS = 60
"""Maximum number of drafts on a page; a report contains more, and the dataset's export contains all."""
Published = Literal["", "gold", "silver"]
PublishedWanted = Annotated[Published, Query(description="Results of the paper to show beside an experiment's.")]
Show = Literal["", "tables", "figures"]
"""Part of a run's report that a page shows; empty for the overview."""
FEW_BLOCKS = 6
"""Maximum number of tables, figures and texts up to which an overview shows all of them."""
Level = Literal["overall", "base", "reasoning", "hypothetical"]
RunsWanted = Annotated[list[str], Query(max_length=64)]
COLUMNS: tuple[tuple[str, str, bool], ...] = (
    ("", "Run", False),
    ("command", "Command", False),
    ("status", "Status", False),
    ("started", "Started", False),
    ("", "Models", False),
    ("sent", "Requested", True),
    ("failed", "Failed", True),
    ("served", "From records", True),
    ("tokens", "Tokens", True),
    ("cost", "Cost", True),
)
"""Columns of the list of runs: name for sorting (empty if not sortable), heading, and whether it is a number."""


def table_json(table: Table) -> str:
    """Return a table as JSON: title, note, headings, rows and marks."""
    headings = [column.label for column in table.columns]
    data = {"title": table.title, "note": table.note, "columns": headings, "rows": table.rows}
    return json.dumps(data | {"marks": marks_of(table)}, ensure_ascii=False, indent=1)


def marks_of(table: Table) -> list[dict[str, Any]]:
    """Return the marked cells of a table, in order."""
    marks = sorted(table.marks.items())
    return [{"row": row, "column": column, "marks": sorted(result)} for (row, column), result in marks]


TABLE_FORMS: Mapping[str, Callable[[Table], str]] = {
    "csv": as_csv,
    "md": as_markdown,
    "tex": as_latex,
    "json": table_json,
}


class BlockView(NamedTuple):
    """A block of a report, rendered for a page."""

    html: Any
    """Escaped markup."""
    kind: Literal["table", "figure", ""] = ""
    title: str = ""
    files: Sequence[tuple[str, str]] = ()
    """Format and address of each file in which the block can be downloaded."""
    rows: int = 0


class SectionView(NamedTuple):
    """A section of a report, rendered for a page."""

    id: str
    heading: str
    blocks: Sequence[BlockView]


def section_views(report: Report, address: str, query: Mapping[str, str] | None = None) -> list[SectionView]:
    """Return sections with rendered blocks; blocks are numbered over the whole report.

    Args:
        report: Report to show.
        address: Address of the page; the addresses of its blocks' files begin with it.
        query: Passed on to these files.
    """
    end = "?" + urlencode(query, safe=",") if query else ""
    numbers = count(1)

    def view(block: Block, section: str) -> BlockView:
        number = next(numbers)
        html = render_block(block, section, number)
        if isinstance(block, Table):
            files = [(form, f"{address}/tables/{number}.{form}{end}") for form in TABLE_FORMS]
            return BlockView(html, "table", block.title, files, len(block.rows))
        if isinstance(block, FIGURES):
            return BlockView(html, "figure", block.title, [("svg", f"{address}/figures/{number}.svg{end}")])
        return BlockView(html)

    return [
        SectionView(f"s{index}", section.heading, [view(block, f"s{index}") for block in section.blocks])
        for index, section in enumerate(report.sections, start=1)
    ]


NamedReport = tuple[Report, str]
"""Report and the prefix of its file names."""


def block_files(
    router: APIRouter, address: str, *, figures: bool = True
) -> Callable[[Callable[..., NamedReport]], Callable[..., NamedReport]]:
    """Register routes that send each table and figure of a report as a file, below the address of its page.

    Args:
        router: Gets the routes; whoever may not have the report gets none of its blocks.
        address: Address of the page.
        figures: Whether it can have figures.
    """

    def add(report: Callable[..., NamedReport]) -> Callable[..., NamedReport]:
        def send_table(number: int, form: str, named: NamedReport = Depends(report)) -> Response:
            table = _block_at(named[0], number, Table, "table")
            if form not in TABLE_FORMS:
                raise Missing(f"Tables are available as {', '.join(TABLE_FORMS)}, not as {form[:20]}.")
            return as_file(TABLE_FORMS[form](table), f"{named[1]}-{table.title}.{form}")

        def send_figure(number: int, named: NamedReport = Depends(report)) -> Response:
            figure = _block_at(named[0], number, FIGURES, "figure")
            return as_file(as_svg(figure), f"{named[1]}-{figure.title}.svg")

        router.get(f"{address}/tables/{{number}}.{{form}}")(send_table)
        if figures:
            router.get(f"{address}/figures/{{number}}.svg")(send_figure)
        return report

    return add


def _block_at(report: Report, number: int, kind: Any, name: str) -> Any:
    blocks = [block for section in report.sections for block in section.blocks]
    if not 1 <= number <= len(blocks) or not isinstance(blocks[number - 1], kind):
        raise Missing(f"There is no {name} with the number {number} here.")
    return blocks[number - 1]


@router.get("/results/blocks.css")
def show_style() -> Response:
    """Send the style of tables and figures, which self-contained reports share."""
    return Response(block_style(), media_type="text/css", headers=_KEEP)


@router.get("/results/blocks.js")
def show_script() -> Response:
    """Send the script that filters answers."""
    return Response(block_script(), media_type="text/javascript", headers=_KEEP)


@cache
def block_assets() -> dict[str, Any]:
    """Return the addresses of style and script, which change with their content."""
    files = {"blocks_css": ("blocks.css", block_style()), "blocks_js": ("blocks.js", block_script())}
    return {
        name: f"/results/{file}?v={hashlib.sha256(text.encode()).hexdigest()[:12]}"
        for name, (file, text) in files.items()
    }


def register(app: AppState) -> None:
    """Create the tables of datasets, so that reading a page creates none."""
    dataset_store(app)


@router.get("/results/compare")
def show_comparison(
    request: Request,
    app: App,
    _user: Reader,
    runs: RunsWanted = [],  # noqa: B006
    metric: str = "",
    level: Level = "overall",
) -> Response:
    """Compare runs by one metric, with paired tests on the questions that they share."""
    names = _names(runs)
    stored = [_experiment_data(app, name) for name in names]
    metrics = [entry.name for entry in METRICS.ordered(name for entry in stored for name in entry["metrics"])]
    chosen = metric if metric in metrics else next(iter(metrics), "")
    query = {"runs": ",".join(names), "metric": chosen, "level": level}
    sections = section_views(_comparison(app, names, chosen, level), "/results/compare", query) if chosen else ()
    choices, older = _comparable_runs(app, names)
    return page(
        request,
        "results/compare.html.j2",
        runs=names,
        choices=choices,
        older=older,
        most_runs=MAX_RUNS,
        metrics=[METRICS[name] for name in metrics],
        metric=chosen,
        level=level,
        levels=get_args(Level),
        sections=sections,
        **block_assets(),
    )


@block_files(router, "/results/compare")
def comparison_blocks(
    app: App, _user: Reader, runs: RunsWanted, metric: str, level: Level = "overall"
) -> tuple[Report, str]:
    """Return the report of a comparison and the prefix of its file names."""
    return _comparison(app, _names(runs), metric, level), f"comparison-{metric}"


def _comparable_runs(app: AppState, chosen: Sequence[str]) -> tuple[list[RunEntry], bool]:
    """Return the newest runs that can be compared and the chosen ones, newest first, and whether there are others."""
    entries = {
        entry.summary.id: entry
        for command in COMMANDS
        for entry in list_run_entries(app.database, command=command, limit=MAX_OFFERED_RUNS + 1)
    }
    newest = sorted(entries.values(), key=lambda entry: entry.summary.started_at, reverse=True)
    offered = {entry.summary.id: entry for entry in newest[:MAX_OFFERED_RUNS]}
    for run in chosen:
        if run not in offered:
            offered |= {entry.summary.id: entry for entry in list_run_entries(app.database, run=run)}
    ordered = sorted(offered.values(), key=lambda entry: entry.summary.started_at, reverse=True)
    return ordered, len(newest) > MAX_OFFERED_RUNS


def _names(runs: list[str]) -> list[str]:
    """Return the ids of runs from parameters that may hold several ids separated by commas."""
    names = list(dict.fromkeys(name.strip() for entry in runs for name in entry.split(",") if name.strip()))
    if len(names) > MAX_RUNS:
        raise InputError(f"At most {MAX_RUNS} runs are compared at a time, not {len(names)}.")
    return names


def _comparison(app: AppState, runs: list[str], metric: str, level: Level) -> Report:
    """Return the report of a comparison; cached in the records once all runs have ended."""
    summaries = [find_run_summary(app, run) for run in runs]
    parts = ("comparison", *((entry.id, count_rows(app.database, entry.id)) for entry in summaries), metric, level)

    def make() -> dict[str, Any]:
        result = compared(app, runs, metric, level)
        figure, tests = comparison_figure(result), comparison_test_table(result)
        sections = [Section("Scores", (Prose("No run has a score in this metric and level."),))]
        if figure is not None:
            sections = [Section("Scores", (comparison_table(result), figure))]
            if tests is not None or len({entry.run for entry in result.scores}) > 1:
                words = "These runs have no question in common, so that nothing can be tested question by question."
                sections.append(Section("Paired tests", (tests or Prose(words),)))
        return report_data(Report("Comparison", "", tuple(sections)))

    going = any(entry.status == "running" for entry in summaries)
    return report_from_data(make() if going else app.computed.get(parts, lambda: cached(app.database, parts, make)))


def compared(app: AppState, names: Sequence[str], metric: str, level: str) -> RunComparison:
    """Return a comparison of runs by a metric, on the questions of a level.

    Raises:
        InputError: A run has no experiment, or the metric does not exist.
    """
    for name in names:
        _experiment_data(app, name)
    runs = [find_stored_run(app, name) for name in names]
    experiments = [run.experiment for run in runs if run.experiment is not None]
    key = ("compared", *((run.id, run.details.summary.ended_at) for run in runs), metric, level)
    return app.computed.get(key, lambda: compare_runs(experiments, metric, level=level))


def _experiment_data(app: AppState, name: str) -> dict[str, Any]:
    """Return the page data of a run that can be compared.

    Raises:
        InputError: It asked no questions of a benchmark.
    """
    data = run_data(app, find_run_summary(app, name))
    if data is None or data["metrics"] is None:
        raise InputError(f"The run {name} asked no benchmark questions, so it cannot be compared.")
    return data


@router.get("/results/datasets")
def show_datasets(request: Request, app: App, _user: Reader) -> Response:
    """Show all generated datasets."""
    return page(request, "results/datasets.html.j2", datasets=dataset_store(app).list())


@router.get("/results/datasets/{name}")
def show_dataset(request: Request, app: App, _user: Reader, name: str) -> Response:
    """Show the statistics of a dataset."""
    report = _dataset_report(app, name, limit=DRAFTS)
    return page(
        request,
        "results/dataset.html.j2",
        name=name,
        report=report,
        sections=section_views(report, f"/results/datasets/{name}"),
        **block_assets(),
    )


@block_files(router, "/results/datasets/{name}")
def dataset_blocks(app: App, _user: Reader, name: str) -> tuple[Report, str]:
    """Return the report of a dataset and the prefix of its file names."""
    return _dataset_report(app, name, limit=DRAFTS), name


@router.get("/results/datasets/{name}/report.html")
def send_dataset_report(app: App, _user: Reader, name: str) -> Response:
    """Download the report of a dataset as one self-contained page."""
    return as_file(_dataset_report(app, name).to_html(), f"{name}.html")


def _dataset_report(app: AppState, name: str, limit: int = MAX_REPORTED_DRAFTS) -> Report:
    drafts = placed_drafts(app, name)
    return dataset_report(dataset_stats(name, drafts), drafts, limit=limit)


def placed_drafts(app: AppState, dataset: str) -> list[StoredDraft]:
    """Return the drafts of a dataset with their states.

    Raises:
        Missing: There is no such dataset.
    """
    store = dataset_store(app)
    if dataset not in store:
        raise Missing(f"There is no dataset {dataset[:60]!r}.")
    return list(store.stored_drafts(dataset))


def dataset_store(app: AppState) -> DatasetStore:
    """Return the generated datasets of the workspace."""
    return app.shared("results:datasets", lambda: DatasetStore(app.records))


@router.get("/results")
def show_runs(
    request: Request,
    app: App,
    user: Reader,
    command: Search = "",
    text: Search = "",
    order: str = "started",
    direction: Literal["down", "up"] = "down",
    number: PageNumber = 1,
) -> Response:
    """Show the runs that match the filters, sorted and split into pages."""
    chosen = cast(RunOrder, order if order in get_args(RunOrder) else "started")
    filters: dict[str, Any] = {"command": command, "text": text.strip()}

    def listed(number: int) -> RunList:
        skip, descending = (number - 1) * PAGE, direction == "down"
        return list_run_page(
            app.database,
            **filters,
            order=chosen,
            descending=descending,
            limit=PAGE,
            offset=skip,
            excluded=hidden_runs(user),
        )

    result = listed(number)
    if number > clamp_page(number, result.total, PAGE):
        number = clamp_page(number, result.total, PAGE)
        result = listed(number)
    sorting = {"order": "" if chosen == "started" else chosen, "direction": "" if direction == "down" else direction}
    return page(
        request,
        "results/runs.html.j2",
        comparable=COMMANDS,
        part=part_of(result.lines, number, result.total, PAGE, "/results", {**filters, **sorting}),
        headings=part_of((), 1, 0, PAGE, "/results", filters),
        commands=result.commands,
        columns=COLUMNS,
        order=chosen,
        direction=direction,
        **filters,
    )


@router.get("/results/{run}")
def show_run(
    request: Request,
    app: App,
    _user: Reader,
    run: str,
    published: PublishedWanted = "",
    wait: bool = False,
    show: Show = "",
) -> Response:
    """Show a run: its results, tables or figures; the overview also shows its configuration and usage.

    Results that take long to compute are fetched by the script of the page, or by a link without scripts.
    """
    summary = find_run_summary(app, run)
    data = run_data(app, summary, published, wait=wait)
    config, seeds, error = run_settings(app.database, run)

    def is_prompt(name: str) -> bool:
        return (name.startswith("prompts.") and not name.endswith(".origin")) or name == "prompt_sha256"

    settings = [(name, value) for name, value in flat_values(config) if not is_prompt(name)]
    if len(settings) > MOST_LINES:
        settings[MOST_LINES:] = [("…", f"{len(settings) - MOST_LINES} more in the run's JSON")]
    # Name of the dataset that the run made.
    made_dataset = summary.command == "generate run" and isinstance(config.get("recipe"), dict)
    return page(
        request,
        "results/run.html.j2",
        run=summary,
        ready=data is not None,
        settings=settings,
        seeds=list(flat_values(seeds)),
        prompts=[(name.removeprefix("prompts."), value) for name, value in flat_values(config) if is_prompt(name)],
        dataset=config["recipe"].get("name", "") if made_dataset else "",
        error=error,
        usage=usage_by_model(app.database, run),
        **({"published": published, "show": show} if data is None else _result_values(run, data, published, show)),
        **block_assets(),
    )


@router.get("/results/{run}/results")
def show_results(
    request: Request, app: App, _user: Reader, run: str, published: PublishedWanted = "", show: Show = ""
) -> Response:
    """Return the part of the page of a run that shows its results."""
    summary = find_run_summary(app, run)
    data = run_data(app, summary, published)
    assert data is not None
    return page(request, "results/run_results.html.j2", run=summary, **_result_values(run, data, published, show))


def _result_values(run: str, data: dict[str, Any], published: Published, show: Show) -> dict[str, Any]:
    report = report_from_data(data["report"])
    sections = section_views(report, f"/results/{run}", {"published": published} if published else None)
    first_table = next((view for view in sections if any(block.kind == "table" for block in view.blocks)), None)
    if show or sum(len(section.blocks) for section in sections) > FEW_BLOCKS:
        # Of a long report the overview has the first section, that with the first table, and of the others what is
        # neither table nor figure.
        kinds = (show.removesuffix("s"),) if show else ("",)
        visible = (
            view._replace(
                blocks=[
                    block
                    for block in view.blocks
                    if block.kind in kinds or (not show and (index == 0 or view is first_table))
                ]
            )
            for index, view in enumerate(sections)
        )
        sections = [view for view in visible if view.blocks]
    if data["metrics"] is not None:
        # Scores come before the words about them.
        sections.sort(key=lambda view: first_table is None or view.id != first_table.id)
    counts = {"questions": data["questions"], "claims": data["claims"], "experiment": data["metrics"] is not None}
    return {"report": report, "sections": sections, "show": show, "published": published, **counts}


@block_files(router, "/results/{run}")
def run_blocks(app: App, _user: Reader, run: str, published: PublishedWanted = "") -> tuple[Report, str]:
    """Return the report of a run and the prefix of its file names."""
    data = run_data(app, find_run_summary(app, run), published)
    assert data is not None
    return report_from_data(data["report"]), run


@router.get("/results/{run}/run.json")
def send_run(app: App, _user: Reader, run: str) -> Response:
    """Download a run as JSON: summary, configuration, seeds, usage and every stored row."""
    data = asdict(find_stored_run(app, run).details)
    results = data.pop("results")

    def pieces() -> Iterator[str]:
        # The tables of results by some rows at a time, for they are what is long.
        yield json.dumps(data, ensure_ascii=False)[:-1] + ', "results": {'
        for index, (name, rows) in enumerate(results.items()):
            yield (", " if index else "") + json.dumps(name) + ": ["
            for start in range(0, len(rows), ROWS_AT_ONCE):
                lines = (json.dumps(row, ensure_ascii=False) for row in rows[start : start + ROWS_AT_ONCE])
                yield (",\n" if start else "\n") + ",\n".join(lines)
            yield "]"
        yield "}}\n"

    return as_file(pieces(), f"{run}.json")


@router.get("/results/{run}/report.html")
def send_report(app: App, _user: Reader, run: str, published: PublishedWanted = "") -> Response:
    """Download a run's report as one self-contained page; an experiment's holds every answer."""
    stored = find_stored_run(app, run)
    command = stored.details.summary.command
    if command in COMMANDS and stored.experiment is not None:
        report = experiment_page(stored, published, answers=True)
    else:
        base = stored.report(published)
        report = Report(
            base.title,
            base.lead,
            base.sections,
            (*base.facts, ("Run", run), ("Command", command)),
        )
    return as_file(report.to_html(), f"{run}.html")


@router.get("/results/{run}/scores.csv")
def send_scores(app: App, _user: Reader, run: str, published: PublishedWanted = "") -> Response:
    """Download the scores of an experiment, one per row, with value, interval and n as numbers."""
    stored = find_stored_run(app, run)
    if stored.experiment is None:
        raise Missing(f"The run {run} has no scores of questions.")
    return as_file(as_csv(score_rows(stored.scores, paper_scores(published))), f"{run}-scores.csv")


@router.get("/results/{run}/answers.jsonl")
def send_answers(app: App, _user: Reader, run: str) -> Response:
    """Download every request of a run with its answer, one per line."""
    find_run_summary(app, run)
    bundles = iterate_answers(app.database, run)
    lines = ("".join(json.dumps(asdict(answer), ensure_ascii=False) + "\n" for answer in bundle) for bundle in bundles)
    return as_file(lines, f"{run}-answers.jsonl")


@router.get("/results/{run}/claims")
def show_claims(
    request: Request, app: App, _user: Reader, run: str, text: Search = "", verdict: Search = "", number: PageNumber = 1
) -> Response:
    """Show the checked claims of a run with their verdicts."""
    stored = _checked(app, run)
    lines = _claim_lines(stored)
    words = text.strip().lower()
    fitting = [line for line in lines if words in line["text"].lower() and verdict in ("", line["verdict"])]
    filters: dict[str, Any] = {"text": text.strip(), "verdict": verdict}
    return page(
        request,
        "results/claims.html.j2",
        run=stored.details.summary,
        part=cut_page(fitting, number, PAGE, f"/results/{run}/claims", filters),
        verdicts=list(dict.fromkeys(line["verdict"] for line in lines)),
        with_published=any(line["published"] for line in lines),
        **filters,
        **block_assets(),
    )


@router.get("/results/{run}/claims/{number}.html")
def send_claim(app: App, _user: Reader, run: str, number: int) -> Response:
    """Download one fact-check as a self-contained page."""
    _, transcript, scale = _one_check(app, run, number)
    current = CitationLinks(library_of(app)).transcript(transcript)
    return as_file(factcheck_page(current, scale), f"{run}-claim-{number}.html")


@router.get("/results/{run}/claims/{number}")
def show_claim(request: Request, app: App, _user: Reader, run: str, number: int) -> Response:
    """Show one fact-check, from verdict to passages."""
    stored, transcript, scale = _one_check(app, run, number)
    return page(
        request,
        "results/claim.html.j2",
        run=stored.details.summary,
        number=number,
        last=len(stored.transcripts),
        published=_claim_lines(stored)[number - 1]["published"],
        **check_values(library_of(app), transcript, scale),
    )


def _checked(app: AppState, run: str) -> StoredRun:
    stored = find_stored_run(app, run)
    if "transcript" not in stored.details.results:
        raise Missing(f"The run {run} has no stored fact-checks.")
    return stored


def _one_check(app: AppState, run: str, number: int) -> tuple[StoredRun, Transcript, Scale]:
    stored = _checked(app, run)
    if not 1 <= number <= len(stored.transcripts):
        raise Missing(f"The run {run} has {len(stored.transcripts)} fact-checks, none with the number {number}.")
    transcript = stored.transcripts[number - 1]
    return stored, transcript, load_scale(str(stored.details.config.get("scale", transcript.scale)))


def _claim_lines(stored: StoredRun) -> list[dict[str, Any]]:
    """Return a row per claim with its verdict, or the outcome of its check without one."""
    published = stored_truths(stored.details.results.get("published", ()))
    return [
        {
            "number": number,
            "text": transcript.claim.text,
            "verdict": transcript.verdict.label or OUTCOME[transcript.verdict.outcome],
            "demonstration": transcript.demonstration,
            "published": published.get(transcript.claim.id, ""),
            "confidence": transcript.verdict.levels.confidence if transcript.verdict.levels else "",
            "rounds": len(transcript.rounds),
        }
        for number, transcript in enumerate(stored.transcripts, start=1)
    ]


@router.get("/usage")
def show_usage(request: Request, app: App, _user: Member) -> Response:
    """Show the usage of the whole workspace."""
    lines = usage_by(app.database, "command")
    names = [field.name for field in fields(UsageRow) if field.name not in ("name", "cost")]
    counts = {name: sum(getattr(line, name) for line in lines) for name in names}
    costs = [line.cost for line in lines if line.cost is not None]
    total = UsageRow(name="all", cost=sum(costs) if costs else None, **counts)
    return page(
        request,
        "results/usage.html.j2",
        total=total,
        sections=section_views(_usage_report(app), "/usage"),
        **block_assets(),
    )


@block_files(router, "/usage", figures=False)
def usage_blocks(app: App, _user: Member) -> tuple[Report, str]:
    """Return the tables of usage and the prefix of their file names."""
    return _usage_report(app), "usage"


def _usage_report(app: AppState) -> Report:
    counts = ("answers", "failed", "served", "attempts", "prompt_tokens", "completion_tokens", "reasoning_tokens")
    headings = [
        "requested",
        "failed",
        "from records",
        "share",
        "attempts",
        "prompt tokens",
        "completion tokens",
        "thought",
    ]
    note = (
        "requested: answers requested from models. from records: answers reused from earlier runs at no cost, and "
        "their share of all answers. attempts: requests, retries included. thought: completion tokens before the "
        "answers. cost: of answers whose price is known."
    )
    groups: tuple[UsageGroup, ...] = get_args(UsageGroup)
    sections = []
    for group in groups:
        rows = []
        for line in usage_by(app.database, group):
            cells = [f"{getattr(line, name):,}" for name in counts]
            rows.append((line.name, *cells[:3], f"{100 * line.cached:.1f}%", *cells[3:], line.formatted_cost))
        title, last = f"Tokens, cost and failures by {group}", note if group == groups[-1] else ""
        sections.append(Section(f"By {group}", (Table.of(title, [group, *headings, "cost"], rows, note=last),)))
    return Report("Usage", "", tuple(sections))
