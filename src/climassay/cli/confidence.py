"""``climassay confidence``: the certainty that assessment reports state."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from climassay.api import confidence as api
from climassay.api import tagging
from climassay.api.records import with_failed_calls
from climassay.cli.corpus import chosen_columns
from climassay.cli.main import DefaultCommandGroup
from climassay.cli.options import (
    MODEL,
    CommandGroup,
    JsonOption,
    LoadingOptions,
    ModelOption,
    WorkspaceOption,
    WorkspaceOptions,
    check_files,
    emit,
    grouped,
    opened_session,
    print_json,
    rows_written,
)
from climassay.errors import InputError
from climassay.io import write_file
from climassay.reporting import as_csv

if TYPE_CHECKING:
    from climassay.api.confidence import TopicTrends


class _TagGroup(DefaultCommandGroup):
    default, first = "apply", ("bundled",)


tag = CommandGroup(
    cls=_TagGroup,
    no_args_is_help=True,
    help=(
        'Tag statements: climassay confidence tag "Sea level will rise for centuries." or FILE --text COLUMN; '
        "its options: climassay confidence tag apply --help."
    ),
)

app = CommandGroup(no_args_is_help=True)
app.add_typer(tag, name="tag")


def _extracted(
    report: Annotated[str | None, typer.Option(help='Report that the files belong to, for example "AR5 WG2".')] = None,
    cycle: Annotated[
        str | None, typer.Option(help="Assessment cycle, AR3 to AR6; by default read from the files.")
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option("--column", "-c", metavar="FIELD=COLUMN", help="Columns of tables, as for climassay corpus add."),
    ] = None,
    acronyms: Annotated[
        Literal["every", "first", "none"],
        typer.Option(help="Acronyms to spell out: all, the first of each in a sentence, or none."),
    ] = "every",
    ranges: Annotated[
        Literal["upper", "lower"],
        typer.Option(help='Level taken for "medium to high confidence": the upper or the lower end.'),
    ] = "upper",
    paragraph_tags: Annotated[
        Literal["found", "always", "never"],
        typer.Option(
            help="Tags behind a paragraph's last full stop: for the whole paragraph where a report means it so."
        ),
    ] = "found",
    untagged: Annotated[bool, typer.Option("--untagged", help="Also extract sentences without a level.")] = False,
    context: Annotated[int, typer.Option(help="Number of sentences kept before and after, in the same section.")] = 5,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            help="Divide sentences of several levels with this model, one request each: openai:MODEL (see --base-url), "
            "PROVIDER:MODEL or local:HUB_ID.",
        ),
    ] = None,
) -> dict[str, Any]:
    from climassay.confidence.extraction import ExtractOptions
    from climassay.corpus.documents import ReadOptions, TableColumns

    options = ExtractOptions(acronyms, context, untagged, ranges, paragraph_tags, report=report, cycle=cycle)
    reading = ReadOptions(columns=chosen_columns(columns or (), TableColumns))
    return {"options": options, "reading": reading, "model": model}


_TERMS = typer.Option(help="Write terms of likelihood, evidence and agreement, one a row (.csv, .xlsx or .jsonl).")
app.add_verb(
    "extract",
    api.extract_confidence,
    reach=LoadingOptions,
    parse=_extracted,
    writes={"terms": (_TERMS, rows_written(lambda result: result.term_rows()))},
    hint="Keep the statements with -o statements.jsonl, or look at them with -o review.html.",
    reports=Annotated[
        list[Path] | None,
        typer.Argument(metavar="REPORT", help="PDF, HTML, Word, Markdown, text, EPUB, tables of paragraphs; folders."),
    ],
    collections=Annotated[
        list[str] | None,
        typer.Option("--collection", help="Take the documents of a collection (may be given several times)."),
    ],
    model=None,
)


@app.command()
@grouped
def lint(
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Drafts: Markdown, plain text, HTML, Word (.docx) or PDF.", show_default=False),
    ] = None,
    rules: Annotated[
        str,
        typer.Option(help="Rules, separated by commas: only these; with a minus before each, all but these."),
    ] = "",
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            help="Also have a strong language model read every passage with words of certainty: openai:MODEL (see "
            "--base-url), PROVIDER:MODEL or local:HUB_ID.",
        ),
    ] = None,
    reach: LoadingOptions = LoadingOptions(),
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            callback=lambda files: check_files(files or ()),
            help="Save the findings too, as the ending says: .html shows them in the text, .csv, .xlsx, .jsonl, .json "
            "or .md; repeat.",
        ),
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
    exit_zero: Annotated[bool, typer.Option("--exit-zero", help="Exit with 0 even if there are findings.")] = False,
    list_rules: Annotated[
        bool, typer.Option("--list-rules", help="Explain all rules without checking anything.")
    ] = False,
) -> None:
    """Check a draft of an assessment report mechanically for how it states certainty.

    It names unknown and misspelt levels, words of other scales, likelihood beside a probability outside its range, and
    levels that are ambiguous. Places are paragraphs.

    Exit code: 0 nothing found, 1 something found, 2 a file or an option cannot be used.
    """
    from climassay.confidence.linting import presentation

    if list_rules:
        _explain_rules(as_json)
        return
    if not files:
        raise InputError("Name at least one file to check.")
    for file in output or ():
        if file.resolve() in {one.resolve() for one in files}:
            raise InputError(f"{file} is the draft itself: name another file.")
    with opened_session(workspace, reach, as_json=as_json) as session:
        result = api.lint_confidence(files, rules=rules, model=model, workspace=session)
        told = with_failed_calls(result, session.records) if session.records_of_runs else result
    for file in output or ():
        told.save(file)
        typer.echo(f"{file} written.", err=True)
    if as_json:
        emit(told, as_json)
    else:
        for line in (line for checked in result.drafts for line in presentation.text_lines(checked)):
            typer.echo(line)
        typer.echo("\n".join(told.notes()), err=True)
    if (failure := told.failure()) is not None:
        raise failure
    if any(checked.findings for checked in result.drafts) and not exit_zero:
        raise typer.Exit(1)


def _explain_rules(as_json: bool) -> None:
    from climassay.confidence.linting import RULES

    if as_json:
        print_json(
            [
                {"name": one.name, "severity": one.severity, "summary": one.summary, "reason": one.reason}
                | {"examples": [{"bad": bad, "good": good} for bad, good in one.examples]}
                for one in RULES.values()
            ]
        )
        return
    for rule in RULES.values():
        typer.echo(f"{rule.name} ({rule.severity}): {rule.summary}\n    {rule.reason}")
        for bad, good in rule.examples:
            typer.echo(f"    not:  {bad!r}\n    but:  {good!r}")


app.add_verb("diff", api.diff_confidence)


def _topics(
    wanted: Annotated[int, typer.Option("--topics", min=2, help="Number of topics.")] = 30,
    seed: Annotated[int, typer.Option(min=0, help="Seed of UMAP: the same data and seed give the same topics.")] = 0,
    min_cluster_size: Annotated[
        int,
        typer.Option("--min-cluster-size", min=2, help="Minimum number of statements in a cluster."),
    ] = 10,
    outliers: Annotated[
        Literal["assign", "leave"],
        typer.Option(help="Assign statements outside every cluster to the nearest topic, or to none."),
    ] = "assign",
    join: Annotated[
        Literal["embeddings", "words"], typer.Option(help="Merge clusters by their vectors or by their words.")
    ] = "embeddings",
    model: ModelOption = "local:smollm2",
    words_only: Annotated[
        bool, typer.Option("--words-only", help="Name topics by their words, without asking a model.")
    ] = False,
    output: Annotated[Path, typer.Option("--output", "-o", help="Write the topics as JSON.")] = Path("topics.json"),
) -> dict[str, Any]:
    from climassay.confidence.topics import TopicSettings

    settings = TopicSettings(wanted, seed, min_cluster_size, outliers, join)
    return {"settings": settings, "model": None if words_only else model, "output": output}


app.add_verb(
    "topics",
    api.find_topics,
    reach=LoadingOptions,
    to=WorkspaceOptions,
    parse=_topics,
    statements=typer.Argument(metavar="STATEMENTS"),
    **dict.fromkeys(("output", "model")),
)


def _write_tables(found: "TopicTrends", folder: Path) -> None:
    for name, table in found.all_tables().items():
        write_file(folder / f"{name}.csv", as_csv(table))


app.add_verb(
    "report",
    api.report_topics,
    writes={"tables": (typer.Option(help="Folder for all tables as CSV."), _write_tables)},
    statements=typer.Argument(metavar="STATEMENTS"),
    topics=typer.Argument(metavar="TOPICS"),
    by=Annotated[Literal["cycle", "working-group", "report"] | None, typer.Option()],
    tagger=typer.Option(metavar="FILE|bundled"),
    sample=typer.Option(min=1),
)


METHODS = typer.Option(
    "--method",
    help="Tagger to try, by name; repeat. 'mean states' and 'last states' read --model.  "
    "[default: all that read no model]",
)
_TEXT = {
    "text": typer.Argument(metavar="STATEMENT|FILE", help="A statement in quotes, or a table of them."),
    "column": typer.Option("--text"),
}
tag.add_verb("apply", tagging.tag_statements, tagger=Annotated[str, MODEL], **_TEXT)
tag.add_verb("train", tagging.train_tagger, methods=METHODS)


def _tested(
    model_file: Annotated[
        str,
        typer.Argument(
            metavar="MODEL|LABELS",
            help="A tagger's file, or bundled, to be tested on the LABELS that follow; or LABELS alone, on which "
            "taggers are cross-validated.",
        ),
    ],
    labels: Annotated[
        Path | None, typer.Argument(help="ClimateX's table (.tsv) or JSON lines of climassay confidence extract.")
    ] = None,
) -> dict[str, Any]:
    if labels is not None:
        return {"labels": labels, "tagger": model_file}
    if model_file == tagging.BUNDLED or Path(model_file).suffix == ".safetensors":
        raise InputError(f"Name the statements with known tags behind the tagger: evaluate {model_file} LABELS.")
    return {"labels": Path(model_file)}


_PREDICTIONS = typer.Option(
    help="Write the best tagger's held-out probabilities (.jsonl, .csv), for confidence report."
)
tag.add_verb(
    "evaluate",
    tagging.evaluate_tagger,
    parse=_tested,
    writes={"predictions": (_PREDICTIONS, rows_written(lambda result: result.rows()))},
    labels=None,
    tagger=None,
    methods=METHODS,
    split_by=typer.Option("--split-by"),
)
tag.add_verb(
    "insert",
    tagging.insert_statements,
    labelled=typer.Option(),
    train_items=typer.Option(min=8),
    context_sentences=typer.Option(min=0),
    **_TEXT,
)
