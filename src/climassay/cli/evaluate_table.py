"""``climassay evaluate table`` and ``climassay evaluate report``: what came of an experiment."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from climassay.cli.output import (
    WIDE,
    JsonOption,
    WorkspaceOption,
    print_json,
    stderr_console,
    stdout_console,
    write_text,
)
from climassay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from climassay.evaluation.comparing import PublishedScore
    from climassay.evaluation.results import Experiment
    from climassay.evaluation.scores import ExperimentScores
    from climassay.evaluation.tables import NamedTable
    from climassay.reporting import Table

EVERY = "all"
SCORE_TABLES = ("mcq-cloze", "freeform", "own-metrics")
"""Tables that may be wider than a screen: one column a score."""


class Format(StrEnum):
    """How tables are written."""

    screen = "screen"
    markdown = "markdown"
    latex = "latex"
    csv = "csv"
    html = "html"


_FORMATS = {
    ".csv": Format.csv, ".xlsx": Format.csv, ".tex": Format.latex, ".html": Format.html, ".md": Format.markdown
}  # fmt: skip
"""Of a file, by its ending; the workbook holds the table that a CSV file would."""


class PublishedSet(StrEnum):
    """Which of the paper's benchmarks."""

    gold = "gold"
    silver = "silver"


RunArgument = Annotated[str, typer.Argument(help="Id of a run of climassay evaluate run; see climassay records runs.")]
PublishedOption = Annotated[
    list[str] | None,
    typer.Option("--published", help="Show this model's published results beside ours ('all' for every one); repeat."),
]
PublishedSetOption = Annotated[
    PublishedSet, typer.Option("--published-set", help="Published results on gold or silver.")
]
MetricOption = Annotated[
    list[str] | None,
    typer.Option("--metric", help="Compare cells in this metric; repeat. By default one or two a task."),
]
SeedOption = Annotated[int, typer.Option(help="Seed of the resampling.")]


def table(
    run: RunArgument,
    form: Annotated[Format, typer.Option("--format", "-f", help="Form of the tables.")] = Format.screen,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--table", "-t", help="mcq-cloze, freeform, own-metrics, counts, settings, models or scores; repeat."
        ),
    ] = None,
    published: PublishedOption = None,
    published_set: PublishedSetOption = PublishedSet.gold,
    metric: MetricOption = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write to this file; its ending tells the form."),
    ] = None,
    seed: SeedOption = 0,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tables of an experiment, with intervals, marks of the best, constant answers, counts and paired tests."""
    from climassay.evaluation.scores import score_experiment
    from climassay.evaluation.tables import experiment_tables
    from climassay.reporting.results import write_table

    if output is not None and form is Format.screen:
        form = _FORMATS.get(output.suffix.lower(), form)
    experiment = load_run(run, workspace)
    beside = _published(published, published_set)
    scores = score_experiment(experiment, tested=metric, seed=seed)
    tables = _chosen(experiment_tables(scores, beside), only, scores, beside, form)
    if output is not None and form is Format.csv:
        write_table(output, tables[0][1])
    elif output is not None:
        write_text(output, _written([one for _, one in tables], form, experiment))
    if as_json:
        print_json({"run": run, "name": experiment.name, **scores_data(scores), "published": list(beside)})
    elif output is None and form is Format.screen:
        _show(tables)
    elif output is None:
        typer.echo(_written([one for _, one in tables], form, experiment), nl=False)


def report(
    run: RunArgument,
    html: Annotated[Path, typer.Option(help="Where the report goes.")],
    published: PublishedOption = None,
    published_set: PublishedSetOption = PublishedSet.gold,
    against: Annotated[
        list[str] | None,
        typer.Option(help="Report the overlap of the questions with this collection, file or folder; repeat."),
    ] = None,
    metric: MetricOption = None,
    seed: SeedOption = 0,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """An experiment as one page: tables, figures, calibration, tests, and every question with every answer."""
    from climassay.cli.evaluate_study import read_texts
    from climassay.evaluation.contamination import contamination
    from climassay.evaluation.report import experiment_report
    from climassay.evaluation.scores import score_experiment

    experiment = load_run(run, workspace)
    scores = score_experiment(experiment, tested=metric, seed=seed)
    questions = [question for asked in experiment.questions.values() for question in asked]
    overlaps = [contamination(questions, read_texts(name, workspace), against=name) for name in against or []]
    page = experiment_report(
        experiment, scores=scores, published=_published(published, published_set), contamination=overlaps, seed=seed
    )
    write_text(html, page.to_html())
    if as_json:
        print_json({"run": run, "name": experiment.name, "html": html, **scores_data(scores)})
    else:
        stderr_console().print(f"{page.lead} The report is in {html}.", highlight=False)


def load_run(run: str, workspace: Path | None) -> "Experiment":
    """The experiment of a run in the workspace's records."""
    from climassay.evaluation.results import load_experiment
    from climassay.records import Records
    from climassay.workspace import Workspace

    with Records(Workspace.open(workspace).records_url) as store:
        return load_experiment(store, run)


def _published(models: "Sequence[str] | None", dataset: PublishedSet) -> "tuple[PublishedScore, ...]":
    from climassay.evaluation.comparing import published_scores

    if not models:
        return ()
    return published_scores(dataset.value, () if EVERY in models else models)


def scores_data(scores: "ExperimentScores") -> dict[str, object]:
    """The numbers of an experiment as ``--json`` prints them."""
    return {
        "scores": scores.scores,
        "constants": scores.constants,
        "counts": scores.counts,
        "tests": scores.tests,
    }


def _chosen(
    tables: "Sequence[NamedTable]",
    only: "Sequence[str] | None",
    scores: "ExperimentScores",
    published: "Sequence[PublishedScore]",
    form: Format,
) -> "list[tuple[str, Table]]":
    """The tables asked for, with their names; in CSV, which holds one table, by default that of all scores."""
    from climassay.evaluation.tables import score_rows

    wanted = only or (["scores"] if form is Format.csv else list(dict.fromkeys(one.name for one in tables)))
    found: list[tuple[str, Table]] = []
    for name in wanted:
        named = [score_rows(scores, published)] if name == "scores" else [t.table for t in tables if t.name == name]
        if not named:
            present = ", ".join([*dict.fromkeys(one.name for one in tables), "scores"])
            raise InputError(f"The experiment has no table {name!r}: it has {present}.")
        found += [(name, one) for one in named]
    if form is Format.csv and len(found) > 1:
        raise InputError("A CSV file holds one table: choose one with --table, or another format.")
    return found


def _show(tables: "Sequence[tuple[str, Table]]") -> None:
    from climassay.reporting import as_rich
    from climassay.reporting.tables import split_columns

    console = stdout_console()
    for name, one in tables:
        # A score with its interval takes some 14 columns; the levels of a metric are four scores.
        wide = 8 if console.width >= WIDE else 4
        for part in split_columns(one, 2, wide) if name in SCORE_TABLES else [one]:
            console.print(as_rich(part))


def _written(tables: "Sequence[Table]", form: Format, experiment: "Experiment") -> str:
    from climassay.reporting import Report, Section, as_csv, as_latex, as_markdown

    if form is Format.html:
        facts = (("Run", experiment.run),)
        lead = "Scores with 95% intervals, constant answers, counts and paired tests."
        return Report(f"Experiment {experiment.name}", lead, (Section("Tables", tuple(tables)),), facts).to_html()
    write = {Format.latex: as_latex, Format.csv: as_csv}.get(form, as_markdown)
    return "\n".join(write(one) for one in tables)
