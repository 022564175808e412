"""``climassay evaluate init`` and ``climassay evaluate run``: an experiment from a file."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
    write_text,
)
from climassay.cli.ray_option import RayOptions

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

    from climassay.evaluation.results import Cell, Experiment
    from climassay.evaluation.runner import Progress
    from climassay.evaluation.scores import ExperimentScores

DEFAULT_FILE = Path("experiment.toml")


def init(
    file: Annotated[Path, typer.Argument(help="The file to write.")] = DEFAULT_FILE,
    as_json: JsonOption = False,
) -> None:
    """Write an experiment file with every entry explained."""
    from climassay.evaluation.experiment_file import COMMENTED

    write_commented(file, COMMENTED, f"Wrote {file}; run it with: climassay evaluate run {file}", as_json)


@grouped
def run(
    file: Annotated[Path, typer.Argument(help="The experiment, see climassay evaluate init.")],
    limit: Annotated[
        int | None, typer.Option(min=1, help="Ask at most so many questions a task and benchmark, drawn by the seed.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a self-contained HTML report with every answer.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write all tables as Markdown.")] = None,
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
    """Run an experiment: models x settings x tasks x benchmarks. Run it again to go on where it was interrupted."""
    from climassay.cli.evaluate_table import scores_data
    from climassay.evaluation import TaskPrompts, load_plan, open_resources, run_experiment, score_experiment
    from climassay.evaluation.experiment_file import with_limit
    from climassay.evaluation.runner import answers_wanted, read_benchmark
    from climassay.records import Records
    from climassay.workspace import Workspace

    plan = with_limit(load_plan(file), limit)
    options = {"timeout": timeout, "max_output_tokens": max_output_tokens, "reasoning_effort": reasoning_effort}
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    plan = replace(plan, models=tuple(replace(spec, **given) for spec in plan.models))
    if timeout is not None and (judge := plan.metrics.judge) is not None:
        plan = replace(plan, metrics=replace(plan.metrics, judge=replace(judge, timeout=timeout)))
    templates = TaskPrompts.load(prompts)
    sets = {spec.name: read_benchmark(spec, plan) for spec in plan.benchmarks}
    place = Workspace.open(workspace)
    with (
        Records(place.records_url) as store,
        where.opened(quiet=as_json) as pool,
        progress_bar(as_json) as bars,
    ):
        told = _Told(bars, answers_wanted(plan, sets))
        bench = open_resources(
            plan,
            place,
            prompts=templates,
            deadline=deadline,
            on_training=told.on_training,
            load=None if pool is None else pool.load_model,
        )
        experiment = run_experiment(
            plan, sets, bench, store, prompts=templates, use_cache=not no_cache, progress=told.progress()
        )
    scores = score_experiment(experiment)
    _write(experiment, scores, html, markdown)
    skipped = {name: one.skipped for name, one in sets.items() if one.skipped}
    if as_json:
        print_json({"run": experiment.run, "name": experiment.name, "skipped": skipped, **scores_data(scores)})
    else:
        _show(experiment, scores, skipped)


class _Told:
    """Progress of an experiment and of the trainings within it, as bars."""

    def __init__(self, bars: "Bars", total: int) -> None:
        self._bars = bars
        self._answers = bars.add_task("Asking", total=total)
        self._trainings: dict[str, Any] = {}

    def progress(self) -> "Progress":
        from climassay.evaluation.runner import Progress

        return Progress(self._on_cell, lambda count: self._bars.advance(self._answers, count))

    def on_training(self, name: str, step: int, steps: int, loss: float) -> None:
        if name not in self._trainings:
            self._trainings[name] = self._bars.add_task("", total=steps)
        text = f"Training {name}, validation loss {loss:.3f}"
        self._bars.update(self._trainings[name], description=text, completed=step, total=steps)

    def _on_cell(self, cell: "Cell", what: str) -> None:
        verb = "Scoring" if what == "scored" else "Asking"
        self._bars.update(self._answers, description=f"{verb} {cell.model}, {cell.setting}, {cell.task}")


def _write(experiment: "Experiment", scores: "ExperimentScores", html: Path | None, markdown: Path | None) -> None:
    from climassay.evaluation.report import experiment_report
    from climassay.evaluation.tables import experiment_tables
    from climassay.reporting import as_markdown

    if markdown:
        write_text(markdown, "\n".join(as_markdown(one.table) for one in experiment_tables(scores)))
    if html:
        write_text(html, experiment_report(experiment, scores=scores).to_html())


def _show(experiment: "Experiment", scores: "ExperimentScores", skipped: dict[str, tuple[str, ...]]) -> None:
    from climassay.evaluation.tables import experiment_tables
    from climassay.reporting import as_rich

    console, note = stdout_console(), stderr_console()
    for one in experiment_tables(scores):
        console.print(as_rich(one.table))
    for name, sentences in skipped.items():
        note.print(f"{name}: {len(sentences)} rows left out, the first: {sentences[0]}", highlight=False)
    for record in experiment.cells:
        for sentence in record.notes:
            note.print(f"{record.cell.model}, {record.cell.setting}, {record.cell.task}: {sentence}", highlight=False)
    asked = sum(record.asked for record in experiment.cells)
    failed = sum(record.failed for record in experiment.cells)
    note.print(
        f"Run {experiment.run}: {len(experiment.outcomes)} answers, {asked} asked now, {failed} failed. "
        f"Tables again: climassay evaluate table {experiment.run}",
        highlight=False,
    )
