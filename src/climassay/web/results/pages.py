"""Pages of results: runs, their tables and figures, fact-checks, comparisons, datasets, usage."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from typing import Annotated, Any, Literal, cast, get_args

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
from climassay.factcheck import Transcript, factcheck_page, load_scale, read_truths
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
from climassay.records.store import cached_value
from climassay.reporting import Prose, Report, Section, Table, as_csv
from climassay.reporting.html import report_data, report_from_data
from climassay.web.access import Member, Reader
from climassay.web.app_state import App, AppState
from climassay.web.checks.moderation import hidden_runs, require_visible_run
from climassay.web.failures import NotFound
from climassay.web.library.cache import collection_cache
from climassay.web.library.evidence import CitationLinks, check_values
from climassay.web.pages import PageNumber, Search, as_file, clamp_page, make_part, page, slice_page
from climassay.web.results.blocks import block_assets, block_files, section_views
from climassay.web.results.stored_run import (
    StoredRun,
    count_rows,
    find_run_summary,
    find_stored_run,
    flat_values,
    paper_scores,
    run_data,
    run_experiment_report,
)

router = APIRouter(include_in_schema=False, dependencies=[Depends(require_visible_run)])
PAGE_SIZE = 50
MAX_SETTINGS = 120
ROWS_PER_CHUNK = 1000
"""Number of stored rows that are sent at a time when a run is downloaded as JSON."""
MAX_RUNS = 8
MAX_OFFERED_RUNS = 50
"""Maximum number of recent runs that the comparison page offers, in addition to the selected runs."""
MAX_DRAFTS = 60
"""Maximum number of drafts shown on a dataset's page; its report shows more, and its export contains all."""
Published = Literal["", "gold", "silver"]
PublishedQuery = Annotated[Published, Query(description="Results of the paper to show beside an experiment's.")]
ReportPart = Literal["", "tables", "figures"]
"""Part of a run's report that a page shows; empty for the overview."""
MAX_OVERVIEW_BLOCKS = 6
"""Maximum number of blocks for which a report is shown in full in the overview of a run."""
Level = Literal["overall", "base", "reasoning", "hypothetical"]
RunsQuery = Annotated[list[str], Query(max_length=64)]
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
"""Columns of the list of runs: key for sorting (empty if not sortable), heading, and whether values are numbers."""


def register(app: AppState) -> None:
    """Create the database tables of datasets at the start, so that no page has to create them."""
    dataset_store(app)


@router.get("/results/compare")
def show_comparison(
    request: Request,
    app: App,
    _user: Reader,
    runs: RunsQuery = [],  # noqa: B006
    metric: str = "",
    level: Level = "overall",
) -> Response:
    """Show a comparison of runs by one metric, with paired tests on the questions that they share."""
    run_ids = _parse_run_ids(runs)
    run_contents = [_require_experiment_data(app, name) for name in run_ids]
    metrics = [entry.name for entry in METRICS.ordered(name for entry in run_contents for name in entry["metrics"])]
    chosen_metric = metric if metric in metrics else next(iter(metrics), "")
    query = {"runs": ",".join(run_ids), "metric": chosen_metric, "level": level}
    sections = (
        section_views(_comparison_report(app, run_ids, chosen_metric, level), "/results/compare", query)
        if chosen_metric
        else ()
    )
    choices, has_older_runs = _comparable_runs(app, run_ids)
    return page(
        request,
        "results/compare.html.j2",
        runs=run_ids,
        choices=choices,
        has_older_runs=has_older_runs,
        most_runs=MAX_RUNS,
        metrics=[METRICS[name] for name in metrics],
        metric=chosen_metric,
        level=level,
        levels=get_args(Level),
        sections=sections,
        **block_assets(),
    )


@block_files(router, "/results/compare")
def comparison_blocks(
    app: App, _user: Reader, runs: RunsQuery, metric: str, level: Level = "overall"
) -> tuple[Report, str]:
    """Return the report of a comparison, and the prefix for the names of its files."""
    return _comparison_report(app, _parse_run_ids(runs), metric, level), f"comparison-{metric}"


def _comparable_runs(app: AppState, chosen_ids: Sequence[str]) -> tuple[list[RunEntry], bool]:
    """Return comparable runs, newest first, and whether older comparable runs are left out.

    The returned runs are the :data:`MAX_OFFERED_RUNS` newest ones and those with the given ids.
    """
    entries = {
        entry.summary.id: entry
        for command in COMMANDS
        for entry in list_run_entries(app.database, command=command, limit=MAX_OFFERED_RUNS + 1)
    }
    recent_entries = sorted(entries.values(), key=lambda entry: entry.summary.started_at, reverse=True)
    offered_entries = {entry.summary.id: entry for entry in recent_entries[:MAX_OFFERED_RUNS]}
    for run in chosen_ids:
        if run not in offered_entries:
            offered_entries |= {entry.summary.id: entry for entry in list_run_entries(app.database, run=run)}
    sorted_entries = sorted(offered_entries.values(), key=lambda entry: entry.summary.started_at, reverse=True)
    return sorted_entries, len(recent_entries) > MAX_OFFERED_RUNS


def _parse_run_ids(values: list[str]) -> list[str]:
    """Return the distinct run ids in the values of a query parameter. Each value may list several ids.

    Raises:
        InputError: There are more than :data:`MAX_RUNS` ids.
    """
    run_ids = list(dict.fromkeys(run_id.strip() for value in values for run_id in value.split(",") if run_id.strip()))
    if len(run_ids) > MAX_RUNS:
        raise InputError(f"At most {MAX_RUNS} runs are compared at a time, not {len(run_ids)}.")
    return run_ids


def _comparison_report(app: AppState, run_ids: list[str], metric: str, level: Level) -> Report:
    """Return the report of a comparison of runs.

    The report is cached in the records once all compared runs have ended.
    """
    summaries = [find_run_summary(app, run) for run in run_ids]
    cache_key = ("comparison", *((entry.id, count_rows(app.database, entry.id)) for entry in summaries), metric, level)

    def compute() -> dict[str, Any]:
        comparison = _compare_stored_runs(app, run_ids, metric, level)
        figure, tests = comparison_figure(comparison), comparison_test_table(comparison)
        sections = [Section("Scores", (Prose("No run has a score in this metric and level."),))]
        if figure is not None:
            sections = [Section("Scores", (comparison_table(comparison), figure))]
            if tests is not None or len({entry.run for entry in comparison.scores}) > 1:
                message = "These runs have no question in common, so that nothing can be tested question by question."
                sections.append(Section("Paired tests", (tests or Prose(message),)))
        return report_data(Report("Comparison", "", tuple(sections)))

    is_running = any(entry.status == "running" for entry in summaries)
    return report_from_data(
        compute() if is_running else app.computed.get(cache_key, lambda: cached_value(app.database, cache_key, compute))
    )


def _compare_stored_runs(app: AppState, run_ids: Sequence[str], metric: str, level: str) -> RunComparison:
    """Compare runs by a metric on the questions of a level of difficulty; the result is cached in memory.

    Raises:
        InputError: A run has no experiment, or the metric does not exist.
    """
    for run_id in run_ids:
        _require_experiment_data(app, run_id)
    runs = [find_stored_run(app, run_id) for run_id in run_ids]
    experiments = [run.experiment for run in runs if run.experiment is not None]
    key = ("compared", *((run.id, run.details.summary.ended_at) for run in runs), metric, level)
    return app.computed.get(key, lambda: compare_runs(experiments, metric, level=level))


def _require_experiment_data(app: AppState, run: str) -> dict[str, Any]:
    """Return the content of a run's page (see :func:`run_data`) for a run of an experiment.

    Raises:
        NotFound: The run does not exist.
        InputError: The run asked no benchmark questions.
    """
    data = run_data(app, find_run_summary(app, run))
    if data is None or data["metrics"] is None:
        raise InputError(f"The run {run} asked no benchmark questions, so it cannot be compared.")
    return data


@router.get("/results/datasets")
def show_datasets(request: Request, app: App, _user: Reader) -> Response:
    """Show all generated datasets."""
    return page(request, "results/datasets.html.j2", datasets=dataset_store(app).list())


@router.get("/results/datasets/{name}")
def show_dataset(request: Request, app: App, _user: Reader, name: str) -> Response:
    """Show the statistics of a dataset."""
    report = _dataset_report(app, name, limit=MAX_DRAFTS)
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
    """Return the report of a dataset, and the prefix for the names of its files."""
    return _dataset_report(app, name, limit=MAX_DRAFTS), name


@router.get("/results/datasets/{name}/report.html")
def send_dataset_report(app: App, _user: Reader, name: str) -> Response:
    """Send the report of a dataset as one self-contained HTML page."""
    return as_file(_dataset_report(app, name).to_html(), f"{name}.html")


def _dataset_report(app: AppState, name: str, limit: int = MAX_REPORTED_DRAFTS) -> Report:
    drafts = _load_drafts(app, name)
    return dataset_report(dataset_stats(name, drafts), drafts, limit=limit)


def _load_drafts(app: AppState, dataset: str) -> list[StoredDraft]:
    """Return all drafts of a dataset with their states.

    Raises:
        NotFound: The dataset does not exist.
    """
    store = dataset_store(app)
    if dataset not in store:
        raise NotFound(f"There is no dataset {dataset[:60]!r}.")
    return list(store.stored_drafts(dataset))


def dataset_store(app: AppState) -> DatasetStore:
    """Return the server's store of generated datasets."""
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
    """Show one page of the sorted list of runs that match the filters."""
    sort_column = cast(RunOrder, order if order in get_args(RunOrder) else "started")
    filters: dict[str, Any] = {"command": command, "text": text.strip()}

    def load_page(number: int) -> RunList:
        offset, descending = (number - 1) * PAGE_SIZE, direction == "down"
        return list_run_page(
            app.database,
            **filters,
            order=sort_column,
            descending=descending,
            limit=PAGE_SIZE,
            offset=offset,
            excluded=hidden_runs(user),
        )

    run_list = load_page(number)
    if number > clamp_page(number, run_list.total, PAGE_SIZE):
        number = clamp_page(number, run_list.total, PAGE_SIZE)
        run_list = load_page(number)
    sort_parameters = {
        "order": "" if sort_column == "started" else sort_column,
        "direction": "" if direction == "down" else direction,
    }
    return page(
        request,
        "results/runs.html.j2",
        comparable=COMMANDS,
        part=make_part(run_list.entries, number, run_list.total, PAGE_SIZE, "/results", {**filters, **sort_parameters}),
        headings=make_part((), 1, 0, PAGE_SIZE, "/results", filters),
        commands=run_list.commands,
        columns=COLUMNS,
        order=sort_column,
        direction=direction,
        **filters,
    )


@router.get("/results/{run}")
def show_run(
    request: Request,
    app: App,
    _user: Reader,
    run: str,
    published: PublishedQuery = "",
    wait: bool = False,
    show: ReportPart = "",
) -> Response:
    """Show a run: an overview with its configuration and usage, or all tables or all figures of its report.

    Results that take long to compute are left out of the first response. The page's script fetches them; without
    JavaScript, users follow a link.
    """
    summary = find_run_summary(app, run)
    data = run_data(app, summary, published, wait=wait)
    config, seeds, error = run_settings(app.database, run)

    def is_prompt(name: str) -> bool:
        return (name.startswith("prompts.") and not name.endswith(".origin")) or name == "prompt_sha256"

    settings = [(name, value) for name, value in flat_values(config) if not is_prompt(name)]
    if len(settings) > MAX_SETTINGS:
        settings[MAX_SETTINGS:] = [("…", f"{len(settings) - MAX_SETTINGS} more in the run's JSON")]
    is_generation = summary.command == "generate run" and isinstance(config.get("recipe"), dict)
    return page(
        request,
        "results/run.html.j2",
        run=summary,
        ready=data is not None,
        settings=settings,
        seeds=list(flat_values(seeds)),
        prompts=[(name.removeprefix("prompts."), value) for name, value in flat_values(config) if is_prompt(name)],
        dataset=config["recipe"].get("name", "") if is_generation else "",
        error=error,
        usage=usage_by_model(app.database, run),
        **({"published": published, "show": show} if data is None else _result_values(run, data, published, show)),
        **block_assets(),
    )


@router.get("/results/{run}/results")
def show_results(
    request: Request, app: App, _user: Reader, run: str, published: PublishedQuery = "", show: ReportPart = ""
) -> Response:
    """Return the HTML fragment with the results of a run, which the page's script fetches."""
    summary = find_run_summary(app, run)
    data = run_data(app, summary, published)
    assert data is not None
    return page(request, "results/run_results.html.j2", run=summary, **_result_values(run, data, published, show))


def _result_values(run: str, data: dict[str, Any], published: Published, report_part: ReportPart) -> dict[str, Any]:
    report = report_from_data(data["report"])
    sections = section_views(report, f"/results/{run}", {"published": published} if published else None)
    first_table = next((view for view in sections if any(block.kind == "table" for block in view.blocks)), None)
    if report_part or sum(len(section.blocks) for section in sections) > MAX_OVERVIEW_BLOCKS:
        # The overview of a long report shows its first section and the section with the first table completely, and the
        # other sections without tables and figures.
        kinds = (report_part.removesuffix("s"),) if report_part else ("",)
        shortened_sections = (
            view._replace(
                blocks=[
                    block
                    for block in view.blocks
                    if block.kind in kinds or (not report_part and (index == 0 or view is first_table))
                ]
            )
            for index, view in enumerate(sections)
        )
        sections = [view for view in shortened_sections if view.blocks]
    if data["metrics"] is not None:
        # The section with the scores comes first.
        sections.sort(key=lambda view: first_table is None or view.id != first_table.id)
    counts = {"questions": data["questions"], "claims": data["claims"], "experiment": data["metrics"] is not None}
    return {"report": report, "sections": sections, "show": report_part, "published": published, **counts}


@block_files(router, "/results/{run}")
def run_blocks(app: App, _user: Reader, run: str, published: PublishedQuery = "") -> tuple[Report, str]:
    """Return the report of a run, and the prefix for the names of its files."""
    data = run_data(app, find_run_summary(app, run), published)
    assert data is not None
    return report_from_data(data["report"]), run


@router.get("/results/{run}/run.json")
def send_run(app: App, _user: Reader, run: str) -> Response:
    """Send a run as JSON: summary, configuration, seeds, usage and every stored row."""
    data = asdict(find_stored_run(app, run).details)
    results = data.pop("results")

    def chunks() -> Iterator[str]:
        # Only the stored results can be large.
        yield json.dumps(data, ensure_ascii=False)[:-1] + ', "results": {'
        for index, (name, rows) in enumerate(results.items()):
            yield (", " if index else "") + json.dumps(name) + ": ["
            for start in range(0, len(rows), ROWS_PER_CHUNK):
                encoded_rows = (json.dumps(row, ensure_ascii=False) for row in rows[start : start + ROWS_PER_CHUNK])
                yield (",\n" if start else "\n") + ",\n".join(encoded_rows)
            yield "]"
        yield "}}\n"

    return as_file(chunks(), f"{run}.json")


@router.get("/results/{run}/report.html")
def send_report(app: App, _user: Reader, run: str, published: PublishedQuery = "") -> Response:
    """Send the report of a run as one self-contained HTML page. The report of an experiment includes all answers."""
    stored_run = find_stored_run(app, run)
    command = stored_run.details.summary.command
    if command in COMMANDS and stored_run.experiment is not None:
        report = run_experiment_report(stored_run, published, answers=True)
    else:
        stored_report = stored_run.report(published)
        report = Report(
            stored_report.title,
            stored_report.lead,
            stored_report.sections,
            (*stored_report.facts, ("Run", run), ("Command", command)),
        )
    return as_file(report.to_html(), f"{run}.html")


@router.get("/results/{run}/scores.csv")
def send_scores(app: App, _user: Reader, run: str, published: PublishedQuery = "") -> Response:
    """Send the scores of an experiment as CSV: a row per score, with numeric columns for value, interval and n."""
    stored_run = find_stored_run(app, run)
    if stored_run.experiment is None:
        raise NotFound(f"The run {run} has no scores of questions.")
    return as_file(as_csv(score_rows(stored_run.scores, paper_scores(published))), f"{run}-scores.csv")


@router.get("/results/{run}/answers.jsonl")
def send_answers(app: App, _user: Reader, run: str) -> Response:
    """Send every request of a run with its answer as JSON lines."""
    find_run_summary(app, run)
    batches = iterate_answers(app.database, run)
    chunks = ("".join(json.dumps(asdict(answer), ensure_ascii=False) + "\n" for answer in batch) for batch in batches)
    return as_file(chunks, f"{run}-answers.jsonl")


@router.get("/results/{run}/claims")
def show_claims(
    request: Request, app: App, _user: Reader, run: str, text: Search = "", verdict: Search = "", number: PageNumber = 1
) -> Response:
    """Show the checked claims of a run with their verdicts."""
    stored_run = _find_factcheck_run(app, run)
    rows = _claim_rows(stored_run)
    search_text = text.strip().lower()
    matching_rows = [row for row in rows if search_text in row["text"].lower() and verdict in ("", row["verdict"])]
    filters: dict[str, Any] = {"text": text.strip(), "verdict": verdict}
    return page(
        request,
        "results/claims.html.j2",
        run=stored_run.details.summary,
        part=slice_page(matching_rows, number, PAGE_SIZE, f"/results/{run}/claims", filters),
        verdicts=list(dict.fromkeys(row["verdict"] for row in rows)),
        with_published=any(row["published"] for row in rows),
        **filters,
        **block_assets(),
    )


@router.get("/results/{run}/claims/{number}.html")
def send_claim(app: App, _user: Reader, run: str, number: int) -> Response:
    """Send one fact-check as a self-contained HTML page."""
    _, transcript, scale = _find_factcheck(app, run, number)
    current_transcript = CitationLinks(collection_cache(app)).transcript(transcript)
    return as_file(factcheck_page(current_transcript, scale), f"{run}-claim-{number}.html")


@router.get("/results/{run}/claims/{number}")
def show_claim(request: Request, app: App, _user: Reader, run: str, number: int) -> Response:
    """Show one fact-check with its verdict, debate and passages."""
    stored_run, transcript, scale = _find_factcheck(app, run, number)
    return page(
        request,
        "results/claim.html.j2",
        run=stored_run.details.summary,
        number=number,
        last=len(stored_run.transcripts),
        published=_claim_rows(stored_run)[number - 1]["published"],
        **check_values(collection_cache(app), transcript, scale),
    )


def _find_factcheck_run(app: AppState, run: str) -> StoredRun:
    stored_run = find_stored_run(app, run)
    if "transcript" not in stored_run.details.results:
        raise NotFound(f"The run {run} has no stored fact-checks.")
    return stored_run


def _find_factcheck(app: AppState, run: str, number: int) -> tuple[StoredRun, Transcript, Scale]:
    run_with_checks = _find_factcheck_run(app, run)
    if not 1 <= number <= len(run_with_checks.transcripts):
        raise NotFound(
            f"The run {run} has {len(run_with_checks.transcripts)} fact-checks, none with the number {number}."
        )
    transcript = run_with_checks.transcripts[number - 1]
    return run_with_checks, transcript, load_scale(str(run_with_checks.details.config.get("scale", transcript.scale)))


def _claim_rows(stored_run: StoredRun) -> list[dict[str, Any]]:
    """Return a table row for each claim of a run; if a check has no verdict, its outcome takes the verdict's place."""
    published_verdicts = read_truths(stored_run.details.results.get("published", ()))
    return [
        {
            "number": number,
            "text": transcript.claim.text,
            "verdict": transcript.verdict.label or OUTCOME[transcript.verdict.outcome],
            "demonstration": transcript.demonstration,
            "published": published_verdicts.get(transcript.claim.id, ""),
            "confidence": transcript.verdict.levels.confidence if transcript.verdict.levels else "",
            "rounds": len(transcript.rounds),
        }
        for number, transcript in enumerate(stored_run.transcripts, start=1)
    ]


@router.get("/usage")
def show_usage(request: Request, app: App, _user: Member) -> Response:
    """Show the usage of the whole workspace."""
    usage_rows = usage_by(app.database, "command")
    count_names = [field.name for field in fields(UsageRow) if field.name not in ("name", "cost")]
    counts = {name: sum(getattr(row, name) for row in usage_rows) for name in count_names}
    costs = [row.cost for row in usage_rows if row.cost is not None]
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
    """Return the report of usage, and the prefix for the names of its files."""
    return _usage_report(app), "usage"


def _usage_report(app: AppState) -> Report:
    count_names = ("answers", "failed", "served", "attempts", "prompt_tokens", "completion_tokens", "reasoning_tokens")
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
        for usage in usage_by(app.database, group):
            cells = [f"{getattr(usage, name):,}" for name in count_names]
            rows.append(
                (usage.name, *cells[:3], f"{100 * usage.reused_fraction:.1f}%", *cells[3:], usage.formatted_cost)
            )
        title, table_note = f"Tokens, cost and failures by {group}", note if group == groups[-1] else ""
        sections.append(Section(f"By {group}", (Table.of(title, [group, *headings, "cost"], rows, note=table_note),)))
    return Report("Usage", "", tuple(sections))
