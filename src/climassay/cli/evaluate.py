"""``climassay evaluate``: benchmarks of models, their planning and their reports; ``climassay metrics``: scores."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from climassay.api import benchmarks, experiments, scores
from climassay.api.records import failed_calls
from climassay.cli.commands import PREDICTIONS_OPTION, add_command, add_init, make_rows_writer
from climassay.cli.options import (
    NON_NEGATIVE,
    POSITIVE,
    LoadingOptions,
    ModelOption,
    ModelsOption,
    ReachOptions,
    RequestOptions,
    WorkspaceOptions,
    bounded,
)
from climassay.cli.output import print_json, print_note, stdout_console
from climassay.errors import InputError
from climassay.io import write_file
from climassay.reporting.results import write_table
from climassay.terminal import visible

if TYPE_CHECKING:
    from climassay.evaluation.table_result import Form

app = App(name="evaluate")
metrics = App(name="metrics")
entailment = App(name="entailment", help="Measure entailment scorers.")
metrics.command(entailment)

add_command(
    app,
    "mcq",
    benchmarks.evaluate_choices,
    model_options=LoadingOptions,
    ray=True,
    writes={"predictions": (PREDICTIONS_OPTION, make_rows_writer(lambda result: result.predictions))},
    models=ModelsOption,
    settings=Parameter(name=("--setting", "-s")),
    scorings=Annotated[list[str] | None, Parameter(name="--scoring")],
    permutations=POSITIVE,
    passages=bounded(1, alias="-k"),
    examples=POSITIVE,
)
add_init(app, "experiment.toml", "an experiment file", "evaluation.experiment_file", "evaluate run")
add_command(app, "run", benchmarks.run_experiment_file, model_options=RequestOptions, ray=True)
add_command(
    app,
    "lm-eval",
    benchmarks.evaluate_lm_eval,
    model_options=LoadingOptions,
    tasks=Annotated[list[str], Parameter(name="task")],
    models=ModelsOption,
    num_fewshot=NON_NEGATIVE,
)


@dataclass(frozen=True)
class TaskArguments:
    """Options for the arguments of tasks."""

    task_arg: Annotated[tuple[str, ...], Parameter(alias="-T")] = ()
    """Argument for the tasks as NAME=VALUE; repeat."""

    def build(self) -> dict[str, Any]:
        """Return the arguments by name; values that are valid JSON are parsed, others remain strings.

        Raises:
            InputError: An option is not of the form NAME=VALUE.
        """
        arguments: dict[str, Any] = {}
        for option in self.task_arg:
            name, equals, value = option.partition("=")
            if not equals or not name.strip():
                raise InputError(f"{option!r} is no argument of a task: write NAME=VALUE, for example split=test.")
            try:
                arguments[name.strip()] = json.loads(value)
            except ValueError:
                arguments[name.strip()] = value
        return arguments


add_command(
    app,
    "inspect",
    benchmarks.evaluate_inspect,
    model_options=LoadingOptions,
    tasks=Annotated[list[str], Parameter(name="task")],
    models=ModelsOption,
    task_args=TaskArguments,
    epochs=POSITIVE,
    max_tokens=POSITIVE,
    log_dir=Annotated[Path | None, Parameter()],
)
add_command(
    app,
    "contamination",
    experiments.find_contamination,
    against=Parameter(name="--against"),
    words=Parameter(alias="-n"),
    worst=NON_NEGATIVE,
)
add_command(app, "compare", experiments.compare_benchmarks, resamples=POSITIVE)
add_command(
    app,
    "blind",
    experiments.blind_answers,
    pairs=NON_NEGATIVE,
    overlap=bounded(1, 20),
)

FORMATS_BY_SUFFIX: "dict[str, Form]" = {
    ".csv": "csv",
    ".xlsx": "csv",
    ".tex": "latex",
    ".html": "html",
    ".md": "markdown",
}
"""Format of tables by suffix of the output file. Workbooks contain the same table as CSV files."""
PublishedOption = Annotated[
    list[str] | None,
    Parameter(
        name="--published", help="Show this model's published results beside ours ('all' for every one); repeat."
    ),
]
PublishedSetOption = Annotated[Literal["gold", "silver"], Parameter(help="Published results on gold or silver.")]
MetricOption = Annotated[
    list[str] | None,
    Parameter(name="--metric", help="Metric in which cells are compared; repeat. By default one or two per task."),
]


@app.command
def table(
    run: str,
    /,
    *,
    form: Annotated[
        Literal["screen", "markdown", "latex", "csv", "html"], Parameter(name=("--format", "-f"))
    ] = "screen",
    tables: Annotated[tuple[str, ...], Parameter(name=("--table", "-t"))] = (),
    published: PublishedOption = None,
    published_set: PublishedSetOption = "gold",
    metric: MetricOption = None,
    output: Annotated[Path | None, Parameter(alias="-o")] = None,
    seed: int = 0,
    common_options: Annotated[WorkspaceOptions, Parameter(name="*")] = WorkspaceOptions(),
) -> None:
    """Show the tables of an experiment, with intervals, marked best scores, constant baselines and paired tests.

    Args:
        run: Id of a run of climassay evaluate run; climassay records runs lists them.
        form: Format of the tables.
        tables: Table to show: mcq-cloze, freeform, own-metrics, counts, settings, models or scores; repeat.
        output: File to write; its suffix decides the format.
        seed: Seed of the resampling.
    """
    if output is not None and form == "screen":
        form = FORMATS_BY_SUFFIX.get(output.suffix.lower(), form)
    with common_options.open_session() as session:
        result = experiments.experiment_tables(
            run,
            published=published or (),
            published_set=published_set,
            metrics=metric,
            seed=seed,
            workspace=session,
        )
        failure_sentences = failed_calls(session.records, (run,))
    chosen_tables = result.select(tables, form)
    if output is not None and form == "csv":
        write_table(output, chosen_tables[0][1])
    elif output is not None:
        write_file(output, result.format_tables(tables, form))
    if common_options.as_json:
        print_json(result.to_dict())
    elif output is None and form == "screen":
        console = stdout_console()
        for block in result.for_screen(tables, console.width):
            console.print(block)
        for sentence in failure_sentences:
            print_note(sentence)
    elif output is None:
        text = result.format_tables(tables, form)
        sys.stdout.write(visible(text) if sys.stdout.isatty() else text)


add_command(
    app,
    "report",
    experiments.report_experiment,
    common_options=WorkspaceOptions,
    html=Annotated[Path, Parameter(name=("--output", "-o"))],
    published=PublishedOption,
    published_set=PublishedSetOption,
    metrics=MetricOption,
)


add_command(
    app,
    "plan",
    experiments.plan_questions,
    points=Parameter(name=("--points", "-d")),
    tests=POSITIVE,
)


@dataclass(frozen=True)
class RatingColumns:
    """Option for the columns of people's ratings."""

    label: tuple[str, ...] = ()
    """Column of ratings and the dimension that it rates, as COLUMN:DIMENSION (style, clarity, language, tone, accuracy,
    specificity, completeness, uncertainty); repeat for further dimensions or raters. By default, the columns named like
    the dimensions."""

    def build(self) -> dict[str, str]:
        """Return the dimensions by name of the column."""
        return {column: dimension or column for column, _, dimension in (name.partition(":") for name in self.label)}


@dataclass(frozen=True)
class RatingScale:
    """Options for the scale of people's ratings."""

    lowest: float = 1
    """Lowest possible rating."""
    highest: float = 5
    """Highest possible rating."""

    def build(self) -> tuple[float, float]:
        """Return the lowest and the highest possible rating."""
        return self.lowest, self.highest


add_command(
    app,
    "judge-check",
    experiments.check_judge,
    model_options=LoadingOptions,
    file=Annotated[Path | None, Parameter()],
    model=ModelOption,
    labels=RatingColumns,
    scale=RatingScale,
    pairs=NON_NEGATIVE,
)
add_command(
    metrics,
    "score",
    scores.score_answers,
    model_options=LoadingOptions,
    file=Annotated[Path, Parameter()],
    metrics=Parameter(name=("--metric", "-m")),
    window=Annotated[int, NON_NEGATIVE],
    judge=Annotated[str | None, Parameter()],
)
add_command(entailment, "evaluate", scores.evaluate_entailment, model_options=ReachOptions)
