"""``climassay evaluate``."""

from contextlib import ExitStack
from dataclasses import replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from climassay.cli.model_options import LoadingOptions, ModelOption
from climassay.cli.option_groups import grouped
from climassay.cli.output import JsonOption, WorkspaceOption, print_json, progress_bar, stderr_console, stdout_console
from climassay.cli.ray_option import RayOptions
from climassay.errors import InputError

if TYPE_CHECKING:
    from climassay.evaluation import Experiment, McqScores, Prediction, Scoring
    from climassay.questions import QuestionSet

app = typer.Typer(no_args_is_help=True, help="Measure a model on a benchmark.")


class ScoringChoice(StrEnum):
    """How an answer becomes a choice."""

    likelihood = "likelihood"
    letter = "letter"
    text = "text"
    text_sum = "text-sum"
    text_per_token = "text-per-token"
    text_per_byte = "text-per-byte"
    text_pmi = "text-pmi"


@app.callback()
def group() -> None:
    """Measure a model on a benchmark."""


@app.command()
@grouped
def mcq(
    file: Annotated[
        str,
        typer.Argument(help="Questions: climassay, ClimaQA or Pira tables (CSV, JSONL, Parquet, .gz); or 'primer'."),
    ],
    model: ModelOption = "local:smollm2",
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
    csv_file: Annotated[Path | None, typer.Option("--csv", help="Write the accuracy table as CSV.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write all tables as Markdown.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a self-contained HTML report.")] = None,
    predictions: Annotated[Path | None, typer.Option(help="Write every prediction (.jsonl, .csv, .xlsx).")] = None,
    loading: LoadingOptions = LoadingOptions(),
    where: RayOptions = RayOptions(),
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Accuracy on multiple-choice questions, by level and setting, with intervals, baselines and paired tests."""
    from climassay.evaluation import (
        BenchmarkSpec,
        EvaluationResources,
        ExperimentPlan,
        ModelSpec,
        Progress,
        Sources,
        TaskPrompts,
        make_setting,
        open_pool,
        parse_spec,
        run_experiment,
        score_mcq,
    )
    from climassay.evaluation.experiment_file import check_plan
    from climassay.evaluation.runner import answers_wanted
    from climassay.grounding import open_collections
    from climassay.primer import named_questions
    from climassay.records import Records
    from climassay.workspace import Workspace

    questions = named_questions(file)
    asked = replace(questions, questions=questions.of_kind("mcq")[:limit])
    if not asked.questions:
        raise InputError(f"{questions.name} has no multiple-choice question.")
    place = Workspace.open(workspace)
    plan = ExperimentPlan(
        name=questions.name,
        benchmarks=(BenchmarkSpec(questions.name, (file,)),),
        models=(ModelSpec(model, label=model),),
        settings=tuple(
            parse_spec(name, passages=passages, examples=examples, seed=seed) for name in setting or ["default"]
        ),
        tasks=("mcq",),
        scorings=cast("tuple[Scoring, ...]", tuple(one.value for one in scoring or [ScoringChoice.likelihood])),
        permutations=permutations,
        seed=seed,
    )
    check_plan(plan, "The command")
    sources = Sources(cache(lambda wanted: open_collections(place, wanted)), open_pool)
    for spec in plan.settings:
        make_setting(spec, sources)  # what is not there is told before a model is loaded
    templates = TaskPrompts.load(loading.prompts)
    with ExitStack() as stack:
        pool = stack.enter_context(where.opened(quiet=as_json))
        loaded = loading.load(model, place, quiet=as_json, pool=pool)
        stack.callback(loaded.close)
        with Records(place.records_url) as store, progress_bar(as_json) as bar:
            sets = {questions.name: asked}
            task = bar.add_task(f"Asking {model}", total=answers_wanted(plan, sets))
            done = run_experiment(
                plan,
                sets,
                EvaluationResources.of_model(loaded, sources),
                store,
                prompts=templates,
                use_cache=not loading.no_cache,
                progress=Progress(on_answer=lambda count: bar.advance(task, count)),
                command="evaluate mcq",
            )
    rows = [one for ones in done.predictions.values() for one in ones]
    scores = score_mcq(rows, seed=seed)
    _write_files(done, scores, rows, seed, csv_file, markdown, html, predictions)
    if as_json:
        print_json(
            {
                "run": done.run,
                "questions": questions.name,
                "questions_sha256": questions.sha256,
                "n": len(asked.questions),
                "skipped": questions.skipped,
                "model": model,
                "fingerprint": loaded.fingerprint,
                "settings": [one.label for one in plan.settings],
                "scorings": plan.scorings,
                "orders": permutations,
                "seed": seed,
                "scores": scores,
                "tally": done.tally,
                "dtype": done.cells[0].dtype,
                "n_predictions": len(rows),
            }
        )
    else:
        _show(questions, model, done, scores)


def _show(questions: "QuestionSet", model: str, done: "Experiment", scores: "McqScores") -> None:
    from climassay.evaluation import mcq_tables
    from climassay.reporting import as_rich

    console, note, tally = stdout_console(), stderr_console(), done.tally
    asked = len(done.questions[questions.name])
    console.print(f"{questions.name}: {asked} multiple-choice questions, {model}", highlight=False)
    for table in mcq_tables(scores):
        console.print(as_rich(table))
    if questions.skipped:
        note.print(f"{len(questions.skipped)} rows left out, the first: {questions.skipped[0]}", highlight=False)
    cost = "" if tally.usage.cost is None else f", ${tally.usage.cost:.4f}"
    note.print(
        f"Run {done.run}: {tally.hits} answers from the records, {tally.asked} asked ({tally.failed} failed), "
        f"{tally.usage.tokens}{cost}.",
        highlight=False,
    )


def _write_files(
    done: "Experiment",
    scores: "McqScores",
    rows: "list[Prediction]",
    seed: int,
    csv_file: Path | None,
    markdown: Path | None,
    html: Path | None,
    predictions: Path | None,
) -> None:
    from dataclasses import asdict

    from climassay.cli.output import write_text
    from climassay.evaluation import experiment_report, mcq_tables
    from climassay.reporting import as_markdown
    from climassay.reporting.results import write_rows, write_table

    if csv_file:
        write_table(csv_file, mcq_tables(scores)[0])
    if markdown:
        write_text(markdown, "\n".join(as_markdown(table) for table in mcq_tables(scores)))
    if html:
        write_text(html, experiment_report(done, seed=seed).to_html())
    if predictions:
        write_rows(predictions, map(asdict, rows))
