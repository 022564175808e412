"""``climassay evaluate``: benchmarks of models, their planning and their reports; ``climassay metrics``: scores."""

import json
import sys
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
    ResultOptions,
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


@app.command
def inspect(
    tasks: Annotated[list[str], Parameter(name="task")],
    /,
    *,
    models: ModelsOption = None,
    task_arg: Annotated[tuple[str, ...], Parameter(alias="-T")] = (),
    epochs: Annotated[int | None, POSITIVE] = None,
    grader: str | None = None,
    max_tokens: Annotated[int | None, POSITIVE] = None,
    log_dir: Path | None = None,
    limit: Annotated[int | None, POSITIVE] = None,
    seed: Annotated[int, NON_NEGATIVE] = 0,
    options: Annotated[LoadingOptions, Parameter(name="*")] = LoadingOptions(),
    setup: Annotated[ResultOptions, Parameter(name="*")] = ResultOptions(),
) -> None:
    """Run Inspect tasks and report scores with intervals and paired tests.

    Every answer is stored. After an interruption, the same command requests only missing answers.

    Args:
        tasks: Task as FILE.py@NAME, FILE.py (all of its tasks) or PACKAGE/NAME. The code of tasks is executed.
        task_arg: Argument for the tasks as NAME=VALUE; repeat.
        epochs: Number of times each sample is run; by default the number that the task sets.
        grader: Model that grades answers if a task needs grading; by default the evaluated model itself.
        max_tokens: Maximum number of tokens of an answer if a task sets none.
        log_dir: Folder for Inspect's own logs, for inspect view --log-dir.
        limit: Maximum number of samples of each task, drawn at random.
        seed: Seed of the resampling.
    """
    with setup.session(options) as session:
        result = benchmarks.evaluate_inspect(
            tasks,
            **({} if models is None else {"models": models}),
            task_args=_parse_task_arguments(task_arg),
            epochs=epochs,
            grader=grader,
            max_tokens=max_tokens,
            log_dir=log_dir or "",
            limit=limit,
            seed=seed,
            workspace=session,
        )
        setup.emit(result, session)


def _parse_task_arguments(options: tuple[str, ...]) -> dict[str, Any]:
    """Parse NAME=VALUE options into a dictionary; values that are valid JSON are parsed, others remain strings.

    Raises:
        InputError: An option is not of the form NAME=VALUE.
    """
    arguments: dict[str, Any] = {}
    for option in options:
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
    setup: Annotated[WorkspaceOptions, Parameter(name="*")] = WorkspaceOptions(),
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
    with setup.session() as session:
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
    if setup.as_json:
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
    setup=WorkspaceOptions,
    html=Annotated[Path, Parameter(name=("--output", "-o"))],
    published=PublishedOption,
    published_set=PublishedSetOption,
    metrics=MetricOption,
)


@app.command
def plan(
    *,
    points: Annotated[tuple[float, ...], Parameter(name=("--points", "-d"))] = experiments.DEFAULT_POINTS,
    metric: str = "accuracy",
    run: str | None = None,
    accuracy: float | None = None,
    discordance: float | None = None,
    deviation: float | None = None,
    correlation: float | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
    tests: Annotated[int, POSITIVE] = 1,
    setup: Annotated[ResultOptions, Parameter(name="*")] = ResultOptions(),
) -> None:
    """Compute how many questions are needed to detect a difference between two systems.

    Args:
        points: Difference to detect, in percentage points; repeat.
        metric: Metric, for example accuracy or factual_accuracy.
        run: Run of an experiment from which the assumptions are estimated.
        accuracy: Accuracy of the first system; by default 0.8.
        discordance: Proportion of questions that exactly one of the systems answers correctly; by default that of
            independent systems.
        deviation: Standard deviation of scores over questions, for metrics other than accuracy; by default 0.25.
        correlation: Correlation between the two systems' scores over questions; by default 0.5.
        power: Probability of detecting the difference.
        alpha: Two-sided significance level.
        tests: Number of tests to correct for; the significance level is divided by it.
    """
    assumptions = {
        "accuracy": accuracy,
        "discordance": discordance,
        "deviation": deviation,
        "correlation": correlation,
    }
    with setup.session() as session:
        result = experiments.plan_questions(
            [point / 100 for point in points],
            {name: value for name, value in assumptions.items() if value is not None},
            metric=metric,
            run=run,
            power=power,
            alpha=alpha / tests,
            workspace=session,
        )
        setup.emit(result, session)


@app.command
def judge_check(
    file: Path | None = None,
    /,
    *,
    dataset: str | None = None,
    label: tuple[str, ...] = (),
    lowest: float = 1,
    highest: float = 5,
    question: str = "question",
    answer: str = "answer",
    group: str | None = None,
    model: ModelOption = "local:smollm2",
    limit: Annotated[int | None, POSITIVE] = None,
    pairs: Annotated[int, NON_NEGATIVE] = 100,
    seed: Annotated[int, NON_NEGATIVE] = 0,
    options: Annotated[LoadingOptions, Parameter(name="*")] = LoadingOptions(),
    setup: Annotated[ResultOptions, Parameter(name="*")] = ResultOptions(),
) -> None:
    """Check how reliable a judge of long answers is.

    It is tested for agreement with people and with itself, and for bias due to order, length and tone.

    Args:
        file: Table of answers with people's ratings (CSV, JSONL, Parquet; also .gz).
        dataset: Dataset of answers that were rated in the browser, instead of a file.
        label: Column of ratings and the dimension that it rates, as COLUMN:DIMENSION (style, clarity, language, tone,
            accuracy, specificity, completeness, uncertainty); repeat for further dimensions or raters. By default, the
            columns named like the dimensions.
        lowest: Lowest possible rating.
        highest: Highest possible rating.
        question: Column of the question, or of the source text, of each answer.
        answer: Column of the answers.
        group: Column that groups the answers that can be compared; by default the question.
        limit: Maximum number of groups, drawn at random.
        pairs: Maximum number of pairs that are compared in both orders.
        seed: Seed of random draws and resampling.
    """
    rated_answers = file if dataset is None else dataset
    if rated_answers is None or (file is not None and dataset is not None):
        raise InputError("Name either a file of ratings or, with --dataset, answers that were rated in the browser.")
    labels = {column: dimension or column for column, _, dimension in (option.partition(":") for option in label)}
    with setup.session(options) as session:
        result = experiments.check_judge(
            rated_answers,
            model=model,
            labels=labels,
            question=question,
            answer=answer,
            group=group,
            scale=(lowest, highest),
            limit=limit,
            pairs=pairs,
            seed=seed,
            workspace=session,
        )
        setup.emit(result, session)


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
