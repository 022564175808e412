"""``climassay evaluate``."""

from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from climassay.cli.model_options import LoadingOptions, ModelOption
from climassay.cli.option_groups import grouped
from climassay.cli.output import JsonOption, WorkspaceOption, print_json, progress_bar, stderr_console, stdout_console
from climassay.cli.ray_option import RayOptions

if TYPE_CHECKING:
    from climassay.evaluation import McqEvaluation, Scoring
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
    predictions: Annotated[Path | None, typer.Option(help="Write every prediction as JSONL.")] = None,
    loading: LoadingOptions = LoadingOptions(),
    where: RayOptions = RayOptions(),
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Accuracy on multiple-choice questions, by level and setting, with intervals, baselines and paired tests."""
    from climassay.evaluation import Sources, TaskPrompts, evaluate_mcq, open_pool, parse_setting
    from climassay.grounding import open_collections
    from climassay.records import Records
    from climassay.workspace import Workspace

    question_set = _questions(file, limit)
    place = Workspace.open(workspace)
    names = setting or ["default"]
    sources = Sources(lambda wanted: open_collections(place, wanted), open_pool)
    settings = [parse_setting(name, sources, k=passages, examples=examples, seed=seed) for name in names]
    scorings = [choice.value for choice in scoring or [ScoringChoice.likelihood]]
    templates = TaskPrompts.load(loading.prompts)
    orders = sum(1 if choice.startswith("text") else permutations for choice in scorings)
    asked = len(question_set.of_kind("mcq")) * len(settings) * orders
    with ExitStack() as stack:
        pool = stack.enter_context(where.opened(quiet=as_json))
        loaded = loading.load(model, place, quiet=as_json, pool=pool)
        stack.callback(loaded.close)
        with Records(place.records_url) as store, progress_bar(as_json) as progress:
            task = progress.add_task(f"Asking {model}", total=asked)
            result = evaluate_mcq(
                question_set,
                loaded,
                settings,
                store,
                scorings=cast("list[Scoring]", scorings),
                orders=permutations,
                seed=seed,
                prompts=templates,
                use_cache=not loading.no_cache,
                on_progress=lambda count: progress.advance(task, count),
            )
    _write_files(result, csv_file, markdown, html, predictions)
    if as_json:
        print_json(_as_data(result))
    else:
        _show(result)


def _questions(file: str, limit: int | None) -> "QuestionSet":
    from dataclasses import replace

    from climassay.primer import named_questions

    question_set = named_questions(file)
    if limit is None:
        return question_set
    kept = question_set.of_kind("mcq")[:limit]
    return replace(question_set, questions=kept)


def _as_data(result: "McqEvaluation") -> dict[str, Any]:
    from dataclasses import asdict

    data = asdict(result)
    data["n_predictions"] = len(data.pop("predictions"))
    return data


def _show(result: "McqEvaluation") -> None:
    from climassay.evaluation import mcq_tables
    from climassay.reporting import as_rich

    console = stdout_console()
    console.print(f"{result.questions}: {result.n} multiple-choice questions, {result.model}", highlight=False)
    for table in mcq_tables(result.scores):
        console.print(as_rich(table))
    tally = result.tally
    note = stderr_console()
    if result.skipped:
        note.print(f"{len(result.skipped)} rows left out, the first: {result.skipped[0]}", highlight=False)
    cost = "" if tally.usage.cost is None else f", ${tally.usage.cost:.4f}"
    note.print(
        f"Run {result.run}: {tally.hits} answers from the records, {tally.asked} asked ({tally.failed} failed), "
        f"{tally.usage.tokens}{cost}.",
        highlight=False,
    )


def _write_files(
    result: "McqEvaluation", csv_file: Path | None, markdown: Path | None, html: Path | None, predictions: Path | None
) -> None:
    import json
    from dataclasses import asdict

    from climassay.cli.output import write_text
    from climassay.evaluation import mcq_report, mcq_tables
    from climassay.reporting import as_csv, as_markdown

    if csv_file:
        write_text(csv_file, as_csv(mcq_tables(result.scores)[0]))
    if markdown:
        write_text(markdown, "\n".join(as_markdown(table) for table in mcq_tables(result.scores)))
    if html:
        write_text(html, mcq_report(result).to_html())
    if predictions:
        lines = [json.dumps(asdict(row), ensure_ascii=False, allow_nan=False) for row in result.predictions]
        write_text(predictions, "".join(line + "\n" for line in lines))
