"""``climassay evaluate``: models measured on benchmarks, and what is done before and after; ``climassay metrics``."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Argument, Option

from climassay.api import benchmarks, experiments, scores
from climassay.api.records import failed_calls
from climassay.cli.main import WholeHelpGroup
from climassay.cli.options import (
    PREDICTIONS,
    CommandGroup,
    LoadingOptions,
    ModelOption,
    ModelsOption,
    ReachOptions,
    RequestOptions,
    WorkspaceOptions,
    print_json,
    rows_written,
    stderr_console,
    stdout_console,
)
from climassay.errors import InputError
from climassay.io import write_file
from climassay.reporting.results import write_table

if TYPE_CHECKING:
    from climassay.api.experiments import Form

app = CommandGroup(no_args_is_help=True)

app.add_verb(
    "mcq",
    benchmarks.evaluate_choices,
    reach=LoadingOptions,
    ray=True,
    writes={"predictions": (PREDICTIONS, rows_written(lambda result: result.predictions))},
    models=ModelsOption,
    settings=Option("--setting", "-s"),
    scorings=Annotated[list[str] | None, Option("--scoring")],
    permutations=Option(min=1),
    passages=Option("--passages", "-k", min=1),
    examples=Option(min=1),
)
app.add_init("experiment.toml", "an experiment file", "evaluation.experiment_file", "evaluate run")
app.add_verb("run", benchmarks.run_experiment_file, reach=RequestOptions, ray=True)
app.add_verb(
    "lm-eval",
    benchmarks.evaluate_lm_eval,
    reach=LoadingOptions,
    tasks=Argument(metavar="TASK"),
    models=ModelsOption,
    num_fewshot=Option(min=0),
)


def _task_arguments(
    task_arg: Annotated[
        list[str] | None,
        Option("--task-arg", "-T", metavar="NAME=VALUE", help="Argument of the tasks; repeat."),
    ] = None,
) -> dict[str, Any]:
    results = {}
    for one in task_arg or ():
        name, sign, value = one.partition("=")
        if not sign or not name.strip():
            raise InputError(f"{one!r} is no argument of a task: write NAME=VALUE, for example split=test.")
        try:
            results[name.strip()] = json.loads(value)
        except ValueError:  # it is the text itself
            results[name.strip()] = value
    return {"task_args": results}


app.add_verb(
    "inspect",
    benchmarks.evaluate_inspect,
    reach=LoadingOptions,
    parse=_task_arguments,
    tasks=Argument(metavar="TASK"),
    models=ModelsOption,
    task_args=None,
    epochs=Option(min=1),
    max_tokens=Option(min=1),
    log_dir=Annotated[Path | None, Option()],
)
app.add_verb(
    "contamination",
    experiments.find_contamination,
    against=Option(),
    words=Option("--words", "-n"),
    worst=Option(min=0),
)
app.add_verb("compare", experiments.compare_benchmarks, resamples=Option(min=1))
app.add_verb("blind", experiments.blind_answers, pairs=Option(min=0), overlap=Option(min=1, max=20))


FORMS: "dict[str, Form]" = {".csv": "csv", ".xlsx": "csv", ".tex": "latex", ".html": "html", ".md": "markdown"}
"""Form of a file, by its ending; the workbook holds the table that a CSV file would."""
RunArgument = Annotated[str, Argument(help="Id of a run of climassay evaluate run; see climassay records runs.")]
PublishedOption = Annotated[
    list[str] | None,
    Option("--published", help="Show this model's published results beside ours ('all' for every one); repeat."),
]
PublishedSetOption = Annotated[
    Literal["gold", "silver"], Option("--published-set", help="Published results on gold or silver.")
]
MetricOption = Annotated[
    list[str] | None,
    Option("--metric", help="Metric in which cells are compared; repeat. By default one or two per task."),
]
SeedOption = Annotated[int, Option(help="Seed of the resampling.")]


@app.command()
def table(
    run: RunArgument,
    form: Annotated[
        Literal["screen", "markdown", "latex", "csv", "html"],
        Option("--format", "-f", help="Format of the tables."),
    ] = "screen",
    only: Annotated[
        list[str] | None,
        Option("--table", "-t", help="mcq-cloze, freeform, own-metrics, counts, settings, models or scores; repeat."),
    ] = None,
    published: PublishedOption = None,
    published_set: PublishedSetOption = "gold",
    metric: MetricOption = None,
    output: Annotated[
        Path | None,
        Option("--output", "-o", help="File to write; its ending decides the format."),
    ] = None,
    seed: SeedOption = 0,
    to: WorkspaceOptions = WorkspaceOptions(),
) -> None:
    """Show an experiment's tables: intervals, the best marked, constant baselines, counts and paired tests."""
    if output is not None and form == "screen":
        form = FORMS.get(output.suffix.lower(), form)
    with to.session() as session:
        result = experiments.experiment_tables(
            run,
            published=published or (),
            published_set=published_set,
            metrics=metric,
            seed=seed,
            workspace=session,
        )
        failed = failed_calls(session.records, (run,))
    chosen = result.chosen(only or (), form)
    if output is not None and form == "csv":
        write_table(output, chosen[0][1])
    elif output is not None:
        write_file(output, result.written(only or (), form))
    if to.as_json:
        print_json(result.to_dict())
    elif output is None and form == "screen":
        console = stdout_console()
        for part in result.for_screen(only or (), console.width):
            console.print(part)
        for sentence in failed:
            stderr_console().print(sentence, highlight=False, soft_wrap=True)
    elif output is None:
        typer.echo(result.written(only or (), form), nl=False)


app.add_verb(
    "report",
    experiments.report_experiment,
    to=WorkspaceOptions,
    html=Annotated[Path, Option("--output", "-o")],
    published=PublishedOption,
    published_set=PublishedSetOption,
    metrics=MetricOption,
)


def _planned(
    points: Annotated[
        list[float] | None,
        Option("--points", "-d", help="Difference to detect, in percentage points; repeat."),
    ] = None,
    accuracy: Annotated[float | None, Option(help="Accuracy of the first system.  [default: 0.8]")] = None,
    discordance: Annotated[
        float | None,
        Option(help="Share of questions exactly one of two systems gets right; default: unrelated systems."),
    ] = None,
    deviation: Annotated[
        float | None, Option(help="Standard deviation of scores (metrics that are means).  [default: 0.25]")
    ] = None,
    correlation: Annotated[
        float | None, Option(help="Correlation of two systems' scores over questions.  [default: 0.5]")
    ] = None,
    alpha: Annotated[float, Option(help="Two-sided significance level.")] = 0.05,
    tests: Annotated[
        int, Option(min=1, help="Number of tests to correct for; the significance level is divided by it.")
    ] = 1,
) -> dict[str, Any]:
    given = {"accuracy": accuracy, "discordance": discordance, "deviation": deviation, "correlation": correlation}
    return {
        "differences": [point / 100 for point in points or experiments.DEFAULT_POINTS],
        "assumed": {name: value for name, value in given.items() if value is not None},
        "alpha": alpha / tests,
    }


app.add_verb("plan", experiments.plan_questions, parse=_planned, **dict.fromkeys(("differences", "assumed", "alpha")))


def _rated(
    file: Annotated[Path | None, Argument(help="Answers with people's ratings (CSV, JSONL, Parquet, .gz).")] = None,
    dataset: Annotated[str | None, Option(help="Dataset of answers rated in the browser, in place of a file.")] = None,
    label: Annotated[
        list[str] | None,
        Option(
            help="Column of ratings and the dimension it rates, COLUMN:DIMENSION (style, clarity, language, tone, "
            "accuracy, specificity, completeness, uncertainty); repeat, also for several raters. By default the "
            "columns with these names."
        ),
    ] = None,
    lowest: Annotated[float, Option(help="Lowest possible rating.")] = 1,
    highest: Annotated[float, Option(help="Highest possible rating.")] = 5,
) -> dict[str, Any]:
    if (file is None) == (dataset is None):
        raise InputError("Name either a file of ratings or, with --dataset, answers that were rated in the browser.")
    labels = {column: dimension or column for column, _, dimension in (one.partition(":") for one in label or ())}
    return {"file": file or dataset, "labels": labels, "scale": (lowest, highest)}


app.add_verb(
    "judge-check",
    experiments.check_judge,
    reach=LoadingOptions,
    parse=_rated,
    model=ModelOption,
    pairs=Option(min=0),
    **dict.fromkeys(("file", "labels", "scale")),
)


metrics = CommandGroup(no_args_is_help=True)
entailment = CommandGroup(no_args_is_help=True, help="Measure entailment scorers.")

metrics.add_verb(
    "score",
    scores.score_answers,
    reach=LoadingOptions,
    file=Annotated[Path, Argument()],
    metrics=Option("--metric", "-m"),
    window=Annotated[int, Option(min=0)],
    judge=Annotated[str | None, Option()],
)


entailment.add_verb("evaluate", scores.evaluate_entailment, reach=ReachOptions)
metrics.add_typer(entailment, name="entailment", cls=WholeHelpGroup)
