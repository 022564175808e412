"""``climassay confidence topics`` and ``report``: what statements are about, and how confident each topic sounds."""

from contextlib import ExitStack
from dataclasses import asdict, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from climassay.cli.model_options import LoadingOptions, ModelOption
from climassay.cli.option_groups import grouped
from climassay.cli.output import (
    JsonOption,
    WorkspaceOption,
    print_json,
    progress_bar,
    stderr_console,
    stdout_console,
    write_text,
)
from climassay.errors import InputError

if TYPE_CHECKING:
    from climassay.confidence.statement import Statement
    from climassay.confidence.topics import FittedTopics, NamedTopics, TopicModel, TopicSettings
    from climassay.confidence.trends import ColumnKind, Predictions, TrendAnalysis
    from climassay.models.contract import Encoder
    from climassay.reporting import Report


class Outliers(StrEnum):
    """What becomes of statements outside every cluster."""

    assign = "assign"
    leave = "leave"


class JoinedBy(StrEnum):
    """What clusters are joined by."""

    embeddings = "embeddings"
    words = "words"


class ComparedBy(StrEnum):
    """What scores are compared between."""

    cycle = "cycle"
    group = "working-group"
    report = "report"


StatementsArgument = Annotated[Path, typer.Argument(metavar="STATEMENTS", help="Made by climassay confidence extract.")]


@grouped
def topics(
    statements: StatementsArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="Write the topics as JSON.")] = Path("topics.json"),
    wanted: Annotated[int, typer.Option("--topics", min=2, help="Topics wanted.")] = 30,
    seed: Annotated[int, typer.Option(min=0, help="Of UMAP; the same data and seed give the same topics.")] = 0,
    least: Annotated[int, typer.Option(min=2, help="Statements of the smallest cluster, before joining.")] = 10,
    outliers: Annotated[
        Outliers, typer.Option(help="Give statements outside every cluster to the nearest topic, or to none.")
    ] = Outliers.assign,
    join: Annotated[JoinedBy, typer.Option(help="Join clusters by their vectors or by their words.")] = (
        JoinedBy.embeddings
    ),
    names: Annotated[
        Path | None,
        typer.Option(
            help="TOML file of names, made if it is not there; change names in it, and a later run keeps them."
        ),
    ] = None,
    place_untagged: Annotated[
        bool, typer.Option("--place-untagged", help="Give untagged statements the nearest topic too.")
    ] = False,
    model: ModelOption = "local:smollm2",
    words_only: Annotated[
        bool, typer.Option("--words-only", help="Name topics by their words, without asking a model.")
    ] = False,
    loading: LoadingOptions = LoadingOptions(),
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Group statements into named topics: BERTopic over statements with their context, joined to as many as wanted."""
    from climassay.confidence.statement import read_statements
    from climassay.confidence.topics import (
        TopicSettings,
        context_sentences,
        fit_topics,
        read_names,
        write_names,
        write_topics,
    )
    from climassay.models.encoders.loading import load_encoder

    earlier = read_names(names) if names else ()
    read = read_statements(statements)
    settings = TopicSettings(wanted, seed, least, outliers.value, join.value)
    encoder = load_encoder()
    with progress_bar(as_json) as progress:
        task = progress.add_task("sentences", total=len(context_sentences(read, place_untagged=place_untagged)))
        fitted = fit_topics(
            read,
            encoder,
            settings,
            place_untagged=place_untagged,
            on_progress=lambda done: progress.advance(task, done),
        )
    with ExitStack() as stack:
        asked = None
        if not words_only:
            asked = _NameModel(stack, model, loading, workspace, statements, settings, as_json)
        named = _named(fitted, read, encoder, earlier, asked, loading.prompts)
    write_topics(named.model, output)
    if names:
        write_names(names, named.named, named.unused)
    _show_topics(named, read, output, as_json)


class _NameModel:
    """A model whose proposals are recorded, open until its stack closes."""

    def __init__(
        self,
        stack: ExitStack,
        name: str,
        loading: LoadingOptions,
        workspace: Path | None,
        statements: Path,
        settings: "TopicSettings",
        quiet: bool,
    ) -> None:
        from climassay.records import RecordedModel, Records
        from climassay.workspace import Workspace

        place = Workspace.open(workspace)
        loaded = loading.load(name, place, quiet=quiet)
        stack.callback(loaded.close)
        store = stack.enter_context(Records(place.records_url))
        config = {"file": str(statements), "model": name, **asdict(settings)}
        self.run = stack.enter_context(store.run("confidence topics", config, {"topics": settings.seed}))
        self.model = RecordedModel(loaded, store, self.run, use_cache=not loading.no_cache)


def _named(
    fitted: "FittedTopics",
    statements: "list[Statement]",
    encoder: "Encoder",
    earlier: "tuple[object, ...]",
    asked: _NameModel | None,
    prompts: Path | None,
) -> "NamedTopics":
    from climassay.confidence.topics import NamedTopic, name_topics, report_table, topic_table
    from climassay.reporting import Report, Section
    from climassay.reporting.html import report_data

    known = cast("tuple[NamedTopic, ...]", earlier)
    generator = asked.model if asked else None
    named = name_topics(fitted, statements, encoder, earlier=known, generator=generator, prompts=prompts)
    if asked:
        tables = (topic_table(named.model), report_table(named.model, statements))
        lead = f"{len(named.model.topics)} topics of {len(statements)} statements."
        asked.run.save_results("report", [report_data(Report("Topics", lead, (Section("Topics", tables),)))])
    return named


def _show_topics(named: "NamedTopics", statements: "list[Statement]", output: Path, as_json: bool) -> None:
    from climassay.confidence.topics import report_table, topic_table
    from climassay.confidence.topics.topic import counts_by_report
    from climassay.reporting import as_rich

    if as_json:
        reports, counts = counts_by_report(named.model, statements)
        rows = [
            {
                **asdict(topic),
                "proposal": asdict(proposal) if proposal else None,
                "reports": {one: counts[topic.number, one] for one in reports},
            }
            for topic, proposal in zip(named.model.topics, named.proposals, strict=True)
        ]
        found = {"clusters": named.model.clusters, "outliers": named.model.outliers, "topics": rows}
        print_json({"file": output, **found, "unused_names": [one.name for one in named.unused]})
        return
    console = stdout_console()
    console.print(as_rich(topic_table(named.model)))
    console.print(as_rich(report_table(named.model, statements)))
    refused = [one for one in named.proposals if one is not None and one.fault]
    if refused:
        told = (
            f"{len(refused)} of {len(named.proposals)} proposed names did not tell their topic; its words stand there."
        )
        stderr_console().print(told, highlight=False)
    for one in named.unused:
        stderr_console().print(f"No topic has the statements of {one.name!r} any more.", highlight=False)


def report(
    statements: StatementsArgument,
    topics_file: Annotated[Path, typer.Argument(metavar="TOPICS", help="Made by climassay confidence topics.")],
    html: Annotated[Path | None, typer.Option(help="Write a self-contained HTML report.")] = None,
    tables: Annotated[Path | None, typer.Option(help="Folder for all tables as CSV.")] = None,
    by: Annotated[
        ComparedBy | None, typer.Option(help="By default cycles where there are several, else working groups.")
    ] = None,
    predictions: Annotated[
        Path | None,
        typer.Option(help="A tagger's probabilities (CSV or JSON lines: id and a column for each level), held out."),
    ] = None,
    tagger: Annotated[
        str | None, typer.Option(metavar="FILE|bundled", help="Tag the untagged statements that have a topic.")
    ] = None,
    sample: Annotated[
        int | None, typer.Option(min=1, help="With --tagger: tag this many untagged statements, drawn at random.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the intervals' resampling, and of --sample.")] = 0,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Score topics by cycle or working group, with intervals, tags, a map, and gaps that are no silence."""
    from climassay.confidence.statement import read_statements
    from climassay.confidence.topics import read_topics
    from climassay.confidence.trends import analyse_trends, read_predictions, trend_report
    from climassay.records import Records
    from climassay.reporting.html import report_data
    from climassay.workspace import Workspace

    if sample and not tagger:
        raise InputError("--sample says how many statements a tagger reads: give --tagger too.")
    files = {"predictions": predictions and str(predictions), "tagger": tagger, "sample": sample}
    config = {"statements": str(statements), "topics": str(topics_file), "by": by and by.value, **files}
    read, model = read_statements(statements), read_topics(topics_file)
    given = read_predictions(predictions) if predictions else None
    if tagger:
        given = _with_untagged(given, _tagged_by(tagger, read, model, sample, seed, as_json))
    kind = cast("ColumnKind | None", by.value.replace("-", " ") if by else None)
    with (
        Records(Workspace.open(workspace).records_url) as store,
        store.run("confidence report", config, {"intervals": seed}) as run,
    ):
        analysis = analyse_trends(read, model, by=kind, predictions=given, seed=seed)
        page = trend_report(analysis, source=statements.name, facts=(("run", run.id),))
        run.save_results("report", [report_data(page)])
    _show_report(analysis, page, run.id, html, tables, as_json)


def _with_untagged(held_out: "Predictions | None", tagged: "Predictions") -> "Predictions":
    """Held-out predictions of tagged statements beside a tagger's answers on untagged ones."""
    if held_out is None:
        return tagged
    if held_out.levels != tagged.levels:
        raise InputError(f"The tagger gives {', '.join(tagged.levels)}, the predictions {', '.join(held_out.levels)}.")
    return replace(tagged, probabilities={**held_out.probabilities, **tagged.probabilities})


def _tagged_by(
    tagger: str, statements: "list[Statement]", model: "TopicModel", sample: int | None, seed: int, quiet: bool
) -> "Predictions":
    """What a tagger says of the untagged statements that have a topic, with the errors that its card tells."""
    import numpy as np

    from climassay.confidence.tagging.tagger import BUNDLED_TAGGER, load_tagger
    from climassay.confidence.trends import Predictions

    loaded = load_tagger(BUNDLED_TAGGER if tagger == "bundled" else Path(tagger))
    untagged = [one for one in statements if one.tag is None and model.topic_of(one.id) is not None]
    if not untagged:
        raise InputError("No untagged statement has a topic: extract with --untagged, then topics --place-untagged.")
    if sample and sample < len(untagged):
        drawn = np.random.default_rng(seed).choice(len(untagged), sample, replace=False)
        untagged = [untagged[place] for place in sorted(drawn.tolist())]
    residuals, confusion = loaded.residuals, loaded.confusion
    if residuals is None and confusion is None:
        raise InputError(f"The tagger {tagger} does not tell how it errs: train it anew.")
    with progress_bar(quiet) as progress:
        task = progress.add_task("Tagging", total=len(untagged) * max(1, len(loaded.sources)))
        # Residuals are those of the natural mix; the table of errors is that of answers for equal shares of the levels.
        asked = loaded.for_mix(None if residuals is not None else (1.0,) * len(loaded.levels))
        found = asked.predict_proba(untagged, on_progress=lambda done: progress.advance(task, done))
    by_id = dict(zip((one.id for one in untagged), found, strict=True))
    return Predictions(loaded.levels, by_id, confusion if residuals is None else None, residuals)


def _show_report(
    analysis: "TrendAnalysis", page: "Report", run: str, html: Path | None, tables: Path | None, as_json: bool
) -> None:
    from climassay.confidence.trends import trend_data, trend_tables
    from climassay.confidence.trends.report import score_rows, summary
    from climassay.reporting import as_csv, as_rich

    found = trend_tables(analysis)
    if html:
        write_text(html, page.to_html())
    if tables:
        for name, table in {**found, "scores": score_rows(analysis)}.items():
            write_text(tables / f"{name}.csv", as_csv(table))
    if as_json:
        print_json({"run": run, **trend_data(analysis)})
        return
    console = stdout_console()
    for name in ("scores", "deviations", "changes", "untagged", "tagger"):
        if name in found:
            console.print(as_rich(found[name]))
    for sentence in summary(analysis):
        console.print(sentence, highlight=False)
