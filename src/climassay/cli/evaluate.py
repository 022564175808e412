"""``climassay evaluate``: models measured on benchmarks, and what is done before and after."""

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from climassay.cli.model_options import LoadingOptions, ModelOption, ModelsOption, RayOptions, RequestOptions
from climassay.cli.option_groups import CommandGroup
from climassay.cli.output import (
    ResultOptions,
    WorkspaceOptions,
    add_init,
    print_json,
    stderr_console,
    stdout_console,
    write_text,
)
from climassay.errors import InputError

if TYPE_CHECKING:
    from climassay.api.experiments import Form

app = CommandGroup(no_args_is_help=True)


class ScoringChoice(StrEnum):
    """How an answer becomes a choice."""

    likelihood = "likelihood"
    letter = "letter"
    text = "text"
    text_sum = "text-sum"
    text_per_token = "text-per-token"
    text_per_byte = "text-per-byte"
    text_pmi = "text-pmi"


@app.command()
def mcq(
    file: Annotated[
        str,
        typer.Argument(help="Questions: climassay, ClimaQA or Pira tables (CSV, JSONL, Parquet, .gz); or 'primer'."),
    ],
    model: ModelsOption = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--setting",
            "-s",
            help="default, few-shot:POOL, rag:COLLECTION (rag:A+B for several), long-context:auto@COLLECTION "
            "(or DOCUMENT@COLLECTION) or context; repeat.",
        ),
    ] = None,
    scoring: Annotated[
        list[ScoringChoice] | None,
        typer.Option(
            help="likelihood (of the letters), letter (generated), or likelihood of the options' words: text (a "
            "character), text-sum, text-per-token, text-per-byte, text-pmi (less that without the question); repeat."
        ),
    ] = None,
    permutations: Annotated[
        int, typer.Option(min=1, help="Option orders a question; above 1, position bias is measured.")
    ] = 1,
    passages: Annotated[int, typer.Option("--passages", "-k", min=1, help="Passages a question in rag settings.")] = 3,
    examples: Annotated[int, typer.Option(min=1, help="Examples a prompt in few-shot settings.")] = 5,
    limit: Annotated[int | None, typer.Option(min=1, help="Ask only the first so many questions.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of option orders and resampling.")] = 0,
    predictions: Annotated[Path | None, typer.Option(help="Write every prediction (.jsonl, .csv, .xlsx).")] = None,
    loading: LoadingOptions = LoadingOptions(),
    where: RayOptions = RayOptions(),
    to: ResultOptions = ResultOptions(),
) -> None:
    """Measure accuracy on multiple-choice questions, with intervals, baselines and paired tests."""
    from climassay.api.benchmarks import evaluate_choices
    from climassay.models import DEFAULT_MODEL
    from climassay.reporting.results import write_rows

    with to.session(loading, where=where) as session:
        scored = evaluate_choices(
            file,
            models=model or [DEFAULT_MODEL],
            settings=setting or ("default",),
            scorings=[one.value for one in scoring or [ScoringChoice.likelihood]],
            permutations=permutations,
            passages=passages,
            examples=examples,
            limit=limit,
            seed=seed,
            workspace=session,
        )
    if predictions is not None:
        write_rows(predictions, scored.predictions)
    to.emit(scored)


add_init(app, "experiment.toml", "an experiment file", "evaluation.experiment_file", "evaluate run")


@app.command()
def run(
    file: Annotated[Path, typer.Argument(help="The experiment, see climassay evaluate init.")],
    limit: Annotated[
        int | None, typer.Option(min=1, help="Ask at most so many questions a task and benchmark, drawn by the seed.")
    ] = None,
    requests: RequestOptions = RequestOptions(),
    where: RayOptions = RayOptions(),
    to: ResultOptions = ResultOptions(),
) -> None:
    """Run an experiment: models x settings x tasks x benchmarks. Run it again to go on where it was interrupted."""
    from climassay.api.benchmarks import run_experiment_file

    with to.session(requests, where=where) as session:
        to.emit(run_experiment_file(file, limit=limit, workspace=session))


@app.command("lm-eval")
def lm_eval(
    tasks: Annotated[
        list[str], typer.Argument(metavar="TASK...", help="Tasks, groups, tags, patterns or YAML files of the harness.")
    ],
    include_path: Annotated[
        list[str] | None, typer.Option("--include-path", help="Folder with further tasks; repeat. Their code is run.")
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option("--model", "-m", help="local:, openai: or PROVIDER:MODEL; repeat.  [default: local:smollm2]"),
    ] = None,
    num_fewshot: Annotated[
        list[int] | None,
        typer.Option("--num-fewshot", min=0, help="Examples a prompt; repeat to compare. By default each task's own."),
    ] = None,
    chat_template: Annotated[
        bool, typer.Option("--chat-template", help="Put prompts into each model's chat template.")
    ] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Ask only the first so many samples of each task.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the draw of examples and of the resampling.")] = 0,
    loading: LoadingOptions = LoadingOptions(),
    to: ResultOptions = ResultOptions(),
) -> None:
    """Run tasks of lm-evaluation-harness, such as ClimateEval: recorded, resumable, with intervals and paired tests."""
    from climassay.api.benchmarks import evaluate_lm_eval
    from climassay.models import DEFAULT_MODEL

    with to.session(loading) as session:
        done = evaluate_lm_eval(
            tasks,
            models=model or DEFAULT_MODEL,
            include_path=include_path or (),
            num_fewshot=num_fewshot or (),
            chat_template=chat_template,
            limit=limit,
            seed=seed,
            workspace=session,
        )
    to.emit(done)


@app.command()
def inspect(
    tasks: Annotated[
        list[str],
        typer.Argument(
            metavar="TASK...", help="FILE.py@NAME, FILE.py for all of its tasks, or PACKAGE/NAME. Their code is run."
        ),
    ],
    model: ModelsOption = None,
    task_arg: Annotated[
        list[str] | None,
        typer.Option("--task-arg", "-T", metavar="NAME=VALUE", help="Argument of the tasks; repeat."),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="How often each sample is asked; by default as each task says.")
    ] = None,
    grader: Annotated[
        str | None,
        typer.Option(help="Model that grades where a task has answers graded; by default the model that is asked."),
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of tokens of an answer, if a task sets none.")
    ] = None,
    log_dir: Annotated[
        Path | None, typer.Option(help="Keep Inspect's own logs in this folder (inspect view --log-dir).")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Ask only the first so many samples of each task.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the resampling.")] = 0,
    loading: LoadingOptions = LoadingOptions(),
    to: ResultOptions = ResultOptions(),
) -> None:
    """Run tasks of Inspect: recorded, resumable, with intervals and paired tests."""
    from climassay.api.benchmarks import evaluate_inspect
    from climassay.models import DEFAULT_MODEL

    given = {}
    for one in task_arg or ():
        name, sign, value = one.partition("=")
        if not sign or not name.strip():
            raise InputError(f"{one!r} is no argument of a task: write NAME=VALUE, for example split=test.")
        try:
            given[name.strip()] = json.loads(value)
        except ValueError:
            given[name.strip()] = value
    with to.session(loading) as session:
        done = evaluate_inspect(
            tasks,
            models=model or DEFAULT_MODEL,
            task_args=given,
            epochs=epochs,
            grader=grader,
            max_tokens=max_tokens,
            log_dir=log_dir or "",
            limit=limit,
            seed=seed,
            workspace=session,
        )
    to.emit(done)


FORMS: "dict[str, Form]" = {".csv": "csv", ".xlsx": "csv", ".tex": "latex", ".html": "html", ".md": "markdown"}
"""Form of a file, by its ending; the workbook holds the table that a CSV file would."""
RunArgument = Annotated[str, typer.Argument(help="Id of a run of climassay evaluate run; see climassay records runs.")]
PublishedOption = Annotated[
    list[str] | None,
    typer.Option("--published", help="Show this model's published results beside ours ('all' for every one); repeat."),
]
PublishedSetOption = Annotated[
    Literal["gold", "silver"], typer.Option("--published-set", help="Published results on gold or silver.")
]
MetricOption = Annotated[
    list[str] | None,
    typer.Option("--metric", help="Compare cells in this metric; repeat. By default one or two a task."),
]
SeedOption = Annotated[int, typer.Option(help="Seed of the resampling.")]


@app.command()
def table(
    run: RunArgument,
    form: Annotated[
        Literal["screen", "markdown", "latex", "csv", "html"],
        typer.Option("--format", "-f", help="Form of the tables."),
    ] = "screen",
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--table", "-t", help="mcq-cloze, freeform, own-metrics, counts, settings, models or scores; repeat."
        ),
    ] = None,
    published: PublishedOption = None,
    published_set: PublishedSetOption = "gold",
    metric: MetricOption = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write to this file; its ending tells the form."),
    ] = None,
    seed: SeedOption = 0,
    to: WorkspaceOptions = WorkspaceOptions(),
) -> None:
    """Show the tables of an experiment: intervals, marks of the best, constant answers, counts and paired tests."""
    from climassay.api.experiments import experiment_tables
    from climassay.reporting import as_rich
    from climassay.reporting.results import write_table

    if output is not None and form == "screen":
        form = FORMS.get(output.suffix.lower(), form)
    with to.session() as session:
        found = experiment_tables(
            run,
            published=published or (),
            published_set=published_set,
            metrics=metric,
            seed=seed,
            workspace=session,
        )
    chosen = found.chosen(only or (), form)
    if output is not None and form == "csv":
        write_table(output, chosen[0][1])
    elif output is not None:
        write_text(output, found.written(only or (), form))
    if to.as_json:
        print_json(found.to_dict())
    elif output is None and form == "screen":
        console = stdout_console()
        for part in found.for_screen(only or (), console.width):
            console.print(as_rich(part))
    elif output is None:
        typer.echo(found.written(only or (), form), nl=False)


@app.command()
def report(
    run: RunArgument,
    html: Annotated[Path, typer.Option(help="File of the report.")],
    published: PublishedOption = None,
    published_set: PublishedSetOption = "gold",
    against: Annotated[
        list[str] | None,
        typer.Option(help="Report the overlap of the questions with this collection, file or folder; repeat."),
    ] = None,
    metric: MetricOption = None,
    seed: SeedOption = 0,
    to: WorkspaceOptions = WorkspaceOptions(),
) -> None:
    """Write an experiment as one page: tables, figures, calibration, tests, and every question with every answer."""
    from climassay.api.experiments import report_experiment

    with to.session() as session:
        page = report_experiment(
            run,
            published=published or (),
            published_set=published_set,
            against=against or (),
            metrics=metric,
            seed=seed,
            workspace=session,
        )
    write_text(html, page.page())
    if to.as_json:
        print_json({**page.to_dict(), "html": html})
    else:
        stderr_console().print(f"{' '.join(page.notes())} The report is in {html}.", highlight=False)


@app.command()
def plan(
    points: Annotated[
        list[float] | None,
        typer.Option("--points", "-d", help="Difference to be seen, in hundredths (per cent points); repeat."),
    ] = None,
    metric: Annotated[str, typer.Option(help="Metric, for example accuracy or factual_accuracy.")] = "accuracy",
    accuracy: Annotated[float | None, typer.Option(help="Share right of the first system.  [default: 0.8]")] = None,
    discordance: Annotated[
        float | None,
        typer.Option(help="Share of questions exactly one of two systems gets right; default: unrelated systems."),
    ] = None,
    deviation: Annotated[
        float | None, typer.Option(help="Standard deviation of scores (metrics that are means).  [default: 0.25]")
    ] = None,
    correlation: Annotated[
        float | None, typer.Option(help="Correlation of two systems' scores over questions.  [default: 0.5]")
    ] = None,
    run: Annotated[str | None, typer.Option(help="Estimate all this from an experiment.")] = None,
    power: Annotated[float, typer.Option(help="Probability of seeing the difference.")] = 0.8,
    alpha: Annotated[float, typer.Option(help="Two-sided level of significance.")] = 0.05,
    tests: Annotated[int, typer.Option(min=1, help="Tests to correct for: the level is divided by it.")] = 1,
    to: ResultOptions = ResultOptions(),
) -> None:
    """Compute how many questions are needed to see a difference between two systems."""
    from climassay.api.experiments import DEFAULT_POINTS, plan_questions

    given = {"accuracy": accuracy, "discordance": discordance, "deviation": deviation, "correlation": correlation}
    with to.session() as session:
        planned = plan_questions(
            [point / 100 for point in points or DEFAULT_POINTS],
            {name: value for name, value in given.items() if value is not None},
            metric=metric,
            run=run,
            power=power,
            alpha=alpha / tests,
            workspace=session,
        )
    to.emit(planned)


@app.command()
def contamination(
    questions: Annotated[str, typer.Argument(help="Test questions: a file, or 'primer'.")],
    against: Annotated[
        list[str], typer.Option(help="Collection, file or folder of training or retrieval texts; repeat.")
    ],
    n: Annotated[int, typer.Option("-n", help="Words that make a question touched.")] = 8,
    worst: Annotated[int, typer.Option(min=0, help="Questions with the longest runs to list.")] = 10,
    to: ResultOptions = ResultOptions(),
) -> None:
    """Count the test questions that share runs of words with texts that a model has read."""
    from climassay.api.experiments import find_contamination

    with to.session() as session:
        to.emit(find_contamination(questions, against, words=n, worst=worst, workspace=session))


@app.command()
def compare(
    first: Annotated[
        str, typer.Argument(help="Run (RUN:BENCHMARK where it has several), or published:gold, published:silver.")
    ],
    second: Annotated[str, typer.Argument(help="The same, for example the silver set's run.")],
    setting: Annotated[str, typer.Option(help="Setting in which models are compared.")] = "default",
    generator: Annotated[
        str | None, typer.Option(help="Model that wrote the questions: check whether metrics favour it.")
    ] = None,
    resamples: Annotated[int, typer.Option(min=1, help="Bootstrap samples of the rank correlations.")] = 500,
    seed: SeedOption = 0,
    to: ResultOptions = ResultOptions(),
) -> None:
    """Compare two benchmarks, such as gold and silver: do they rank the same models alike?"""
    from climassay.api.experiments import compare_benchmarks

    with to.session() as session:
        found = compare_benchmarks(
            first,
            second,
            setting=setting,
            generator=generator,
            resamples=resamples,
            seed=seed,
            workspace=session,
        )
    to.emit(found)


@app.command("judge-check")
def judge_check(
    file: Annotated[
        Path | None, typer.Argument(help="Answers with people's ratings (CSV, JSONL, Parquet, .gz).")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="Dataset of answers rated in the browser, in place of a file.")
    ] = None,
    model: ModelOption = "local:smollm2",
    label: Annotated[
        list[str] | None,
        typer.Option(
            help="Column of ratings and the dimension it rates, COLUMN:DIMENSION (style, clarity, language, tone, "
            "accuracy, specificity, completeness, uncertainty); repeat, also for several raters. By default the "
            "columns with these names."
        ),
    ] = None,
    question: Annotated[str, typer.Option(help="Column of the question, or of the source.")] = "question",
    answer: Annotated[str, typer.Option(help="Column of the answer.")] = "answer",
    group: Annotated[
        str | None, typer.Option(help="Column that tells which answers belong together; by default the question.")
    ] = None,
    lowest: Annotated[float, typer.Option(help="Lowest rating of the file.")] = 1,
    highest: Annotated[float, typer.Option(help="Highest rating of the file.")] = 5,
    limit: Annotated[int | None, typer.Option(min=1, help="Maximum number of groups, drawn by the seed.")] = None,
    pairs: Annotated[int, typer.Option(min=0, help="Maximum number of pairs compared in both orders.")] = 100,
    seed: SeedOption = 0,
    loading: LoadingOptions = LoadingOptions(),
    to: ResultOptions = ResultOptions(),
) -> None:
    """Check whether a judge of long answers can be relied on: agreement with people and itself, order, length, tone."""
    from climassay.api.long_answers import check_judge

    if (file is None) == (dataset is None):
        raise InputError("Name either a file of ratings or, with --dataset, answers that were rated in the browser.")
    labels = {column: dimension or column for column, _, dimension in (one.partition(":") for one in label or ())}
    with to.session(loading) as session:
        checked = check_judge(
            file or dataset or "",
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
    to.emit(checked)


@app.command()
def blind(
    run: RunArgument,
    dataset: Annotated[
        str | None,
        typer.Option(help="Name of a new dataset; people rate its answers in the browser (climassay serve)."),
    ] = None,
    pairs: Annotated[
        int, typer.Option(min=0, help="With --dataset: maximum number of pairs to compare, in place of single answers.")
    ] = 0,
    overlap: Annotated[int, typer.Option(min=1, max=20, help="With --dataset: people who rate each answer.")] = 2,
    seed: SeedOption = 0,
    to: ResultOptions = ResultOptions(),
) -> None:
    """Give out the long answers of an experiment for people to rate, without saying which model wrote what."""
    from climassay.api.long_answers import blind_answers

    with to.session() as session:
        to.emit(blind_answers(run, dataset=dataset, pairs=pairs, overlap=overlap, seed=seed, workspace=session))
