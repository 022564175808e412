"""``climassay confidence``: levels of confidence and likelihood in assessment reports."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from climassay.api import confidence as api
from climassay.api import tagging
from climassay.api.records import with_failed_calls
from climassay.cli.commands import add_command, api_command, make_rows_writer
from climassay.cli.corpus import ColumnOptions
from climassay.cli.options import (
    NON_NEGATIVE,
    POSITIVE,
    JsonOption,
    LoadingOptions,
    OutputOption,
    ResultOptions,
    WorkspaceOption,
    bounded,
    given_values,
    open_session,
    options_for,
)
from climassay.cli.output import emit, print_json, print_note
from climassay.confidence.settings import ExtractOptions, TopicSettings
from climassay.errors import InputError
from climassay.io import write_file
from climassay.reporting import as_csv
from climassay.reporting.results import write_rows
from climassay.terminal import visible

if TYPE_CHECKING:
    from climassay.confidence.results import TopicTrends

app = App(name="confidence")
tag = App(
    name="tag",
    help='Tag statements with their confidence: "Sea level will rise for centuries.", or FILE --text COLUMN.',
)
app.command(tag)
_MODEL_OPTION = Annotated[str | None, Parameter(alias="-m")]


@dataclass(frozen=True)
@options_for(ExtractOptions, untagged=Parameter(negative=()))
class ExtractionOptions:
    """Options for extracting statements."""

    def build(self) -> ExtractOptions:
        """Return the options of the extraction."""
        return ExtractOptions(**given_values(self, ExtractOptions))


_TERMS_OPTION = Parameter(help="Write the terms of likelihood, evidence and agreement (.csv, .xlsx or .jsonl).")
add_command(
    app,
    "extract",
    api.extract_confidence,
    model_options=LoadingOptions,
    writes={"terms": (_TERMS_OPTION, make_rows_writer(lambda result: result.term_rows()))},
    hint="Keep the statements with -o statements.jsonl, or look at them with -o review.html.",
    reports=Annotated[list[Path] | None, Parameter(name="report")],
    collections=Parameter(name="--collection"),
    options=ExtractionOptions,
    reading=ColumnOptions,
    model=_MODEL_OPTION,
)


@app.command
def lint(
    files: Annotated[list[Path] | None, Parameter(name="draft")] = None,
    /,
    *,
    rules: str = "",
    model: Annotated[str | None, Parameter(alias="-m")] = None,
    options: Annotated[LoadingOptions, Parameter(name="*")] = LoadingOptions(),
    output: OutputOption = (),
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
    exit_zero: bool = False,
    list_rules: bool = False,
) -> None:
    """Check the confidence language in drafts of an assessment report against rules.

    The rules find unknown and misspelt levels, words of other scales, likelihood terms beside a probability outside
    their range, and ambiguous levels. Each finding is shown with its paragraph.

    Exit code: 0 if there are no findings, 1 if there are, 2 if a file or an option cannot be used.

    Args:
        files: Drafts: Markdown, plain text, HTML, Word (.docx) or PDF.
        rules: Rules to apply, separated by commas; with a minus before each, the rules to leave out.
        model: Strong language model that also checks every passage with terms of certainty: openai:MODEL (see
            --base-url), PROVIDER:MODEL or local:HUB_ID.
        exit_zero: Exit with 0 even if there are findings.
        list_rules: Explain all rules without checking anything.
    """
    from climassay.confidence.linting import presentation

    if list_rules:
        _explain_rules(as_json)
        return
    if not files:
        raise InputError("Name at least one file to check.")
    for file in output:
        if file.resolve() in {draft.resolve() for draft in files}:
            raise InputError(f"{file} is the draft itself: name another file.")
    with open_session(workspace, options) as session:
        result = api.lint_confidence(files, rules=rules, model=model, workspace=session)
        full_result = with_failed_calls(result, session.records) if session.records_of_runs else result
    for file in output:
        full_result.save(file)
        print_note(f"{file} written.")
    if as_json:
        emit(full_result, as_json)
    else:
        for line in (line for draft in result.drafts for line in presentation.format_findings(draft)):
            print(visible(line))
        print(visible("\n".join(full_result.notes())), file=sys.stderr)
    if (failure := full_result.failure()) is not None:
        raise failure
    if any(draft.findings for draft in result.drafts) and not exit_zero:
        sys.exit(1)


def _explain_rules(as_json: bool) -> None:
    from climassay.confidence.linting import RULES

    if as_json:
        print_json(
            [
                {"name": rule.name, "severity": rule.severity, "summary": rule.summary, "reason": rule.reason}
                | {
                    "examples": [
                        {"bad": bad_example, "good": good_example} for bad_example, good_example in rule.examples
                    ]
                }
                for rule in RULES.values()
            ]
        )
        return
    for rule in RULES.values():
        print(f"{rule.name} ({rule.severity}): {rule.summary}\n    {rule.reason}")
        for bad_example, good_example in rule.examples:
            print(f"    not:  {bad_example!r}\n    but:  {good_example!r}")


add_command(app, "diff", api.diff_confidence)


@dataclass(frozen=True)
@options_for(TopicSettings, "topics", "seed", "min_cluster_size", "outliers", reduction=Parameter(name="--merge-by"))
class TopicOptions:
    """Options for clustering statements."""

    def build(self) -> TopicSettings:
        """Return the settings of the clustering."""
        return TopicSettings(**given_values(self, TopicSettings))


add_command(
    app,
    "topics",
    api.find_topics,
    model_options=LoadingOptions,
    output=Annotated[Path, Parameter(name=("--output", "-o"))],
    settings=TopicOptions,
    model=_MODEL_OPTION,
)


def _write_tables(trends: "TopicTrends", folder: Path) -> None:
    for name, table in trends.all_tables().items():
        write_file(folder / f"{name}.csv", as_csv(table))


add_command(
    app,
    "report",
    api.report_topics,
    writes={"tables": (Parameter(help="Folder for all tables as CSV."), _write_tables)},
    by=Annotated[Literal["cycle", "working-group", "report"] | None, Parameter()],
    sample=POSITIVE,
)

METHODS = Parameter(
    name="--method",
    help="Tagger to try, by name; repeat. 'mean states' and 'last states' read --model. By default all that read no "
    "model.",
)
_STATEMENTS: dict[str, Any] = {
    "text": Annotated[str, Parameter(name="STATEMENT|FILE", help="A statement in quotes, or a table of them.")],
    "column": Parameter(name="--text"),
}
tag.default(api_command(tagging.tag_statements, tagger=None, **_STATEMENTS))
add_command(tag, "apply", tagging.tag_statements, tagger=Annotated[str, Parameter(name="model")], **_STATEMENTS)
add_command(tag, "train", tagging.train_tagger, output=Parameter(name=("--output", "-o")), methods=METHODS)


@tag.command
def evaluate(
    tagger: Annotated[str, Parameter(name="MODEL|LABELS")],
    labels: Path | None = None,
    /,
    *,
    paragraphs: Path | None = None,
    methods: Annotated[tuple[str, ...], METHODS] = (),
    model: Annotated[str, Parameter(alias="-m")] = "local:smollm2",
    layer: int = 20,
    split_by: Literal["statement", "document"] = "statement",
    include_trained: bool = False,
    limit: Annotated[int | None, POSITIVE] = None,
    folds: Annotated[int, bounded(2)] = 5,
    seed: Annotated[int, NON_NEGATIVE] = 0,
    predictions: Path | None = None,
    common_options: Annotated[ResultOptions, Parameter(name="*")] = ResultOptions(),
) -> None:
    """Evaluate a trained tagger on statements with known tags, or cross-validate several kinds of taggers on them.

    Args:
        tagger: File of a trained tagger, or bundled, to evaluate on LABELS. A single argument is LABELS, on which
            taggers are cross-validated.
        labels: ClimateX's table (.tsv or .csv), or JSON lines of climassay confidence extract.
        paragraphs: File of the reports' paragraphs, in which the contexts of ClimateX's statements are found.
        model: Local model whose hidden states are used as features.
        layer: Layer whose hidden states are used as features.
        split_by: Unit that is never divided between training and test sets.
        include_trained: Also score statements from the tagger's training data.
        limit: Maximum number of statements, drawn at random; by default all.
        folds: Number of cross-validation folds.
        seed: Seed of samples, splits, folds and resampling.
        predictions: Write the best tagger's held-out probabilities (.jsonl, .csv) for climassay confidence report.
    """
    if labels is None and (tagger == tagging.BUNDLED or Path(tagger).suffix == ".safetensors"):
        raise InputError(f"Name the statements with known tags behind the tagger: evaluate {tagger} LABELS.")
    with common_options.open_session() as session:
        result = tagging.evaluate_tagger(
            Path(tagger) if labels is None else labels,
            None if labels is None else tagger,
            paragraphs=paragraphs,
            methods=methods,
            model=model,
            layer=layer,
            split_by=split_by,
            include_trained=include_trained,
            limit=limit,
            folds=folds,
            seed=seed,
            workspace=session,
        )
        if predictions is not None:
            write_rows(predictions, result.rows())
        common_options.print_result(result, session, written_files=[] if predictions is None else [predictions])


add_command(
    tag,
    "insert",
    tagging.insert_statements,
    labelled=Parameter(name="--anchors"),
    train_items=bounded(8),
    context_sentences=NON_NEGATIVE,
    limit=POSITIVE,
    **_STATEMENTS,
)
