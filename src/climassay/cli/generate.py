"""``climassay generate``: questions from collections, by a recipe."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from climassay.cli.generate_screen import checks, screen
from climassay.cli.model_options import (
    DeadlineOption,
    MaxOutputTokensOption,
    NoCacheOption,
    PromptsOption,
    ReasoningEffortOption,
    TimeoutOption,
)
from climassay.cli.option_groups import grouped
from climassay.cli.output import (
    JsonOption,
    WorkspaceOption,
    print_json,
    progress_bar,
    stderr_console,
    stdout_console,
    write_commented,
)
from climassay.cli.ray_option import RayOptions

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

    from climassay.generation.dataset_stats import DatasetStats
    from climassay.generation.line import LineReport
    from climassay.generation.line_counts import LineCounts
    from climassay.generation.recipe import Recipe, Stream
    from climassay.models.contract import Usage

DEFAULT_FILE = Path("recipe.toml")

app = typer.Typer(no_args_is_help=True, help="Make question benchmarks from collections of books.")
app.command(name="screen")(screen)
app.command(name="checks")(checks)


@app.command()
def init(
    file: Annotated[Path, typer.Argument(help="The file to write.")] = DEFAULT_FILE,
    as_json: JsonOption = False,
) -> None:
    """Write a recipe with every entry explained."""
    from climassay.generation.recipe import COMMENTED

    write_commented(file, COMMENTED, f"Wrote {file}; run it with: climassay generate run {file}", as_json)


@app.command()
@grouped
def run(
    file: Annotated[Path, typer.Argument(help="The recipe, see climassay generate init.")],
    estimate: Annotated[bool, typer.Option("--estimate", help="Say what it would take, and ask no model.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write an HTML report of the dataset.")] = None,
    prompts: PromptsOption = None,
    deadline: DeadlineOption = None,
    timeout: TimeoutOption = None,
    max_output_tokens: MaxOutputTokensOption = None,
    reasoning_effort: ReasoningEffortOption = None,
    no_cache: NoCacheOption = False,
    where: RayOptions = RayOptions(),
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make the questions of a recipe, unattended. Run it again to go on where it was interrupted, or to make more."""
    from climassay.generation.dataset_stats import dataset_stats
    from climassay.generation.dataset_store import DatasetStore
    from climassay.generation.line import run_line
    from climassay.generation.line_parts import open_parts
    from climassay.generation.recipe import load_recipe
    from climassay.records import Records
    from climassay.workspace import Workspace

    recipe, place = load_recipe(file), Workspace.open(workspace)
    options = {"timeout": timeout, "max_tokens": max_output_tokens, "reasoning_effort": reasoning_effort}
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    recipe = replace(recipe, writer=replace(recipe.writer, **given))
    if estimate:
        _estimate(recipe, place, prompts, as_json)
        return
    with Records(place.records_url) as records:
        store = DatasetStore(records)
        config = {"recipe": asdict(recipe), "prompts": prompts}
        with records.run("generate run", config, {"recipe": recipe.seed}) as entry:
            with (
                where.opened(quiet=as_json) as pool,
                open_parts(
                    recipe,
                    place,
                    records,
                    entry,
                    prompts=prompts,
                    deadline=deadline,
                    use_cache=not no_cache,
                    **({} if pool is None else {"load": pool.load_model}),
                ) as parts,
                progress_bar(as_json) as bars,
            ):
                report = run_line(recipe, parts, store, on_round=_Told(bars, recipe).on_round)
            stats = dataset_stats(recipe.name, store.placed(recipe.name))
            entry.save_results("streams", _stream_rows(report))
        if html:
            _write_report(recipe.name, stats, store, html)
        if as_json:
            print_json({"run": entry.id, **_report_data(report, stats)})
        else:
            _show(report, stats, entry.id)


def _estimate(recipe: "Recipe", place: Any, prompts: Path | None, as_json: bool) -> None:
    from climassay.generation.estimate import estimate_run, estimate_table
    from climassay.reporting import as_rich

    found = estimate_run(recipe, place, prompts=prompts)
    if as_json:
        print_json(found)
    else:
        stdout_console().print(as_rich(estimate_table(found)))


class _Told:
    """Progress of a line: a bar for each kind and level, and what became of the drafts so far."""

    def __init__(self, bars: "Bars", recipe: "Recipe") -> None:
        self._bars = bars
        self._tasks = {stream: bars.add_task(stream.name, total=number) for stream, number in recipe.wanted().items()}

    def on_round(self, counts: "LineCounts", usage: "Usage") -> None:
        left = 0
        for stream, task in self._tasks.items():
            one = counts[stream]
            total = self._bars.tasks[task].total or 0
            left += max(0, int(total) - one.accepted)
            worst = ", ".join(f"{reason} {number}" for reason, number in one.rejected.most_common(2) if number)
            words = f"{stream.name}: {one.asked} drafts" + (f", {one.failed} failed" if one.failed else "")
            self._bars.update(
                task, completed=min(total, one.accepted), description=f"{words}{'; out: ' + worst if worst else ''}"
            )
        made = sum(counts[stream].accepted for stream in self._tasks)
        if usage.cost is not None and made:
            self._bars.console.print(
                f"${usage.cost:.4f} so far in this run, about ${usage.cost / made * left:.4f} to come", highlight=False
            )


def _stream_rows(report: "LineReport") -> list[dict[str, Any]]:
    return [
        {
            "stream": stream.name,
            "wanted": wanted,
            "drafts": report.counts[stream].asked,
            "failed": report.counts[stream].failed,
            "accepted": report.counts[stream].accepted,
            "rejected": dict(+report.counts[stream].rejected),
            "ended": report.ended.get(stream),
        }
        for stream, wanted in report.wanted.items()
    ]


def _report_data(report: "LineReport", stats: "DatasetStats") -> dict[str, Any]:
    return {
        "dataset": report.dataset,
        "complete": report.complete,
        "streams": _stream_rows(report),
        "usage": report.usage,
        "sources": {book: counts.total() for book, counts in stats.books.items()},
    }


def _show(report: "LineReport", stats: "DatasetStats", run: str) -> None:
    from climassay.generation.dataset_stats import stats_tables
    from climassay.reporting import as_rich

    console, note = stdout_console(), stderr_console()
    for table in stats_tables(stats):
        console.print(as_rich(table))
    for stream, reason in report.ended.items():
        note.print(f"{stream.name} ended early: {reason}.", highlight=False)
    usage = report.usage
    cost = "" if usage.cost is None else f", ${usage.cost:.4f}"
    note.print(
        f"Run {run}: {usage.requests} requests, {usage.tokens}{cost}. "
        f"Look at it: climassay generate stats {report.dataset} --html report.html",
        highlight=False,
    )


def _write_report(name: str, stats: "DatasetStats", store: Any, html: Path) -> None:
    from climassay.generation.dataset_stats import dataset_report

    placed = list(store.placed(name))
    origins = [one.draft.origin for one in placed]
    made = {(one.model, f"fingerprint {one.fingerprint[:12]}", one.dtype) for one in origins}
    facts = [("model", ", ".join(filter(None, one))) for one in sorted(made)]
    dataset_report(stats, placed, facts).write(html)


@app.command()
def stats(
    dataset: Annotated[str, typer.Argument(help="Name of the dataset, see climassay generate list.")],
    html: Annotated[Path | None, typer.Option(help="Write an HTML report with every draft.")] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Yield, reasons for rejection, and how the questions spread over sources and levels."""
    from climassay.generation.dataset_stats import dataset_stats, stats_tables
    from climassay.generation.dataset_store import DatasetStore
    from climassay.records import Records
    from climassay.reporting import as_rich
    from climassay.workspace import Workspace

    with Records(Workspace.open(workspace).records_url) as records:
        store = DatasetStore(records)
        found = dataset_stats(dataset, store.placed(dataset))
        if html:
            _write_report(dataset, found, store, html)
    if as_json:
        print_json(_stats_data(found))
        return
    for table in stats_tables(found):
        stdout_console().print(as_rich(table))


def _stats_data(stats: "DatasetStats") -> dict[str, Any]:
    def by_stream(counts: "dict[Stream, Any]") -> dict[str, Any]:
        return {stream.name: value for stream, value in counts.items()}

    return {
        "dataset": stats.name,
        "accepted": stats.accepted,
        "streams": by_stream({stream: asdict(one) for stream, one in stats.streams.items()}),
        "rejected": [
            {"step": step, "reason": reason, "by_kind": dict(counts)}
            for (step, reason), counts in stats.reasons.items()
        ],
        "failures": dict(stats.failures),
        "sources": {book: by_stream(dict(counts)) for book, counts in stats.books.items()},
    }


@app.command(name="list")
def list_datasets(workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """The datasets of the workspace."""
    from climassay.generation.dataset_store import DatasetStore
    from climassay.records import Records
    from climassay.records.queries import iso_time
    from climassay.reporting import Table, as_rich
    from climassay.workspace import Workspace

    with Records(Workspace.open(workspace).records_url) as records:
        found = DatasetStore(records).list()
    if as_json:
        print_json([{**asdict(one), "made_at": iso_time(one.made_at)} for one in found])
        return
    states = ("accepted", "rejected", "failed")
    rows = [(one.name, iso_time(one.made_at), *(str(one.states.get(state, 0)) for state in states)) for one in found]
    stdout_console().print(as_rich(Table.of("Datasets", ("name", "begun", *states), rows, left=2)))


@app.command()
def export(
    dataset: Annotated[str, typer.Argument(help="Name of the dataset.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="JSON Lines, one draft a line.")],
    accepted: Annotated[bool, typer.Option("--accepted", help="Leave out what was rejected or failed.")] = False,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the drafts of a dataset to a file, with everything that was decided about them."""
    from climassay.generation.dataset_store import DatasetStore
    from climassay.generation.draft_files import write_drafts
    from climassay.records import Records
    from climassay.workspace import Workspace

    with Records(Workspace.open(workspace).records_url) as records:
        kept = [draft for draft in DatasetStore(records).drafts(dataset) if draft.usable or not accepted]
    write_drafts(output, kept)
    if as_json:
        print_json({"file": output, "drafts": len(kept)})
    else:
        stdout_console().print(f"Wrote {len(kept)} drafts to {output}", highlight=False)
