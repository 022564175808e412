"""Confidence stated in reports: extraction of statements, their topics, and checks of how drafts express certainty."""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from climassay.confidence.results import ComparedStatements, ExtractedStatements, FoundTopics, LintedDrafts, TopicTrends
from climassay.confidence.settings import TopicSettings
from climassay.confidence.statement import read_statements
from climassay.errors import InputError
from climassay.models import Generator
from climassay.prompts import load_prompt
from climassay.reporting import Report, Section
from climassay.reporting.html import report_data
from climassay.session import Place, Session, one_or_several

if TYPE_CHECKING:
    from climassay.confidence.extraction import ExtractOptions
    from climassay.confidence.statement import Statement
    from climassay.confidence.topics import TopicModel
    from climassay.confidence.trends import ColumnKind, Predictions
    from climassay.corpus import Document, Skipped
    from climassay.corpus.documents import ReadOptions


def extract_confidence(
    reports: str | Path | Iterable[str | Path] = (),
    *,
    collections: str | Sequence[str] = (),
    options: "ExtractOptions | None" = None,
    reading: "ReadOptions | None" = None,
    model: Generator | str | None = None,
    workspace: Place = None,
) -> ExtractedStatements:
    """Extract statements with their level of confidence, likelihood, evidence and agreement, and with their context.

    Save the result as .jsonl for other commands, or as .html to review the statements in a browser.

    Args:
        reports: Files of reports (PDF, HTML, Word, Markdown, text, EPUB, tables of paragraphs), or folders of them.
        collections: Collection from whose documents statements are extracted as well; can be repeated.
        options: Options of the extraction.
        reading: Options for reading the files, such as the columns of tables.
        model: Model that divides a sentence with several levels into the parts to which the levels apply; by default
            every level applies to the whole sentence.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: No file or collection is named, or none of the files can be read.
        ModelError: The model cannot be loaded.
    """
    from climassay.confidence.extraction import (
        ExtractOptions,
        documents_of_collection,
        extract,
        extract_terms,
        mark_duplicates,
    )
    from climassay.confidence.extraction.dividing import SentenceDivider
    from climassay.corpus import Collection
    from climassay.corpus.readers.file_types import find_files, read

    paths = one_or_several(reports)
    if not paths and not collections:
        raise InputError("Nothing to read: name the files of reports, or --collection.")
    files, extraction = find_files(paths), options or ExtractOptions()
    documents: list[Document] = []
    skipped_files: list[Skipped] = []
    with Session.opened(workspace) as session:
        with session.progress.task("Reading", total=len(files)) as task:
            for file in files:
                result = read(file, reading)
                documents += result.documents
                skipped_files += result.skipped
                task.advance()
        for name in one_or_several(collections):
            documents += documents_of_collection(Collection.open(session.workspace, name))
        if not documents:
            reason = f": {skipped_files[0].source}: {skipped_files[0].reason}" if skipped_files else "."
            raise InputError(f"Nothing was read{reason}")
        statements: list[Statement] = []
        divider = None
        with ExitStack() as stack:
            if model is not None:
                loaded_model, prompt = session.model(model), load_prompt("divide", session.options.prompts)
                config = {"files": [str(file) for file in files], "collections": one_or_several(collections)}
                config |= {"model": loaded_model.name, "prompt_sha256": prompt.sha256}
                run = stack.enter_context(session.run("confidence extract", config))
                divider = SentenceDivider(session.recorded(loaded_model, run), prompt)
            with session.progress.task("Extracting", total=len(documents)) as task:
                for document in documents:
                    statements += extract([document], extraction, divider)
                    task.advance()
    return ExtractedStatements(
        tuple(mark_duplicates(statements)),
        tuple(extract_terms(documents, extraction.report)),
        tuple(skipped_files),
        tuple(
            item.title
            for item in documents
            if item.id not in {result.document_id for result in statements if result.tag}
        ),
        divider,
    )


def lint_confidence(
    drafts: str | Path | Iterable[str | Path],
    *,
    rules: str = "",
    model: Generator | str | None = None,
    workspace: Place = None,
) -> LintedDrafts:
    """Check how drafts of an assessment report express certainty.

    Args:
        drafts: Files or texts; a string counts as a text if it contains a space and is not the name of a file.
        rules: Names of the rules to apply, separated by commas; a leading minus excludes a rule from all rules; ``all``
            applies every rule.
        model: Strong language model that also checks each passage with words of certainty.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: A file cannot be read, or a rule does not exist.
        ModelError: The model cannot be loaded.

    Example:
        >>> found = lint_confidence("Sea level will very likely rise (low confidence).")
        >>> [finding.rule for finding in found.drafts[0].findings]
        ['likelihood-low-confidence']
    """
    from climassay.confidence.linting import check, draft_of, read_draft, select_rules

    enabled_rules = select_rules(rules)
    # All files are opened before any is checked, so that a wrong name is reported at once.
    loaded_drafts = [
        draft_of(draft_file)
        if isinstance(draft_file, str) and " " in draft_file and not Path(draft_file).is_file()
        else read_draft(Path(draft_file))
        for draft_file in one_or_several(drafts)
    ]
    if model is None:
        return LintedDrafts(tuple(check(draft, enabled_rules) for draft in loaded_drafts))
    from climassay.confidence.linting.model_rule import ModelReader, select_passages

    with Session.opened(workspace) as session:
        loaded_model, prompt = session.model(model), load_prompt("lint", session.options.prompts)
        config = {
            "files": [document.name for document in loaded_drafts],
            "model": loaded_model.name,
            "prompt_sha256": prompt.sha256,
        }
        total = sum(len(select_passages(draft)) for draft in loaded_drafts)
        with session.run("confidence lint", config) as run, session.progress.task("Passages", total=total) as task:
            reader = ModelReader(session.recorded(loaded_model, run), prompt, task.advance)
            draft_checks = tuple(check(draft, (*enabled_rules, reader.rule)) for draft in loaded_drafts)
            result = LintedDrafts(draft_checks, reader)
            run.save_results("findings", result.rows())
    return result


def diff_confidence(old: Path | str, new: Path | str) -> ComparedStatements:
    """Compare two extractions, and list the statements that were added, removed or reworded, or whose level changed.

    Args:
        old: File of the earlier extraction, written by ``climassay confidence extract`` (.jsonl).
        new: File of the later extraction.

    Raises:
        InputError: A file cannot be read, or has no statements.
    """
    from climassay.confidence.difference import compare_statements

    extractions = []
    for file in (Path(old), Path(new)):
        extractions.append(read_statements(file))
        if not extractions[-1]:
            raise InputError(f"{file} has no statements to compare.")
    return ComparedStatements(str(old), str(new), tuple(compare_statements(*extractions)))


def find_topics(
    statements: Path | str,
    output: Path | str = "topics.json",
    *,
    settings: "TopicSettings | None" = None,
    names: Path | str | None = None,
    assign_untagged: bool = False,
    model: Generator | str | None = None,
    workspace: Place = None,
) -> FoundTopics:
    """Group statements with their contexts into named topics, as BERTopic does.

    Clusters are merged until as many topics remain as the settings request.

    Args:
        statements: File of statements, written by ``climassay confidence extract``.
        output: JSON file to which the topics are written.
        settings: Number of topics and settings of the clustering; by default those of :class:`TopicSettings`.
        names: TOML file of topic names, created if missing; later runs use the names that you edit in it.
        assign_untagged: Whether statements without a level are assigned to the nearest topic as well.
        model: Model that proposes the names; without one, topics are named by their most typical words.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: A file cannot be read or written.
        ModelError: The model cannot be loaded.
    """
    from climassay.confidence import topics
    from climassay.models.encoders import load_encoder

    statements, output = Path(statements), Path(output)
    settings = settings or TopicSettings()
    names = None if names is None else Path(names)
    saved_names = topics.read_names(names) if names else ()
    loaded_statements = read_statements(statements)
    encoder = load_encoder()
    with Session.opened(workspace) as session:
        total = len(topics.context_sentences(loaded_statements, assign_untagged=assign_untagged))
        with session.progress.task("Sentences", total=total) as task:
            topic_model = topics.fit_topics(
                loaded_statements, encoder, settings, assign_untagged=assign_untagged, on_progress=task.advance
            )
        if model is None:
            named_topics = topics.name_topics(topic_model, loaded_statements, encoder, earlier=saved_names)
        else:
            loaded_model = session.model(model)
            config = {"file": str(statements), "model": model if isinstance(model, str) else model.name}
            with session.run("confidence topics", {**config, **asdict(settings)}, {"topics": settings.seed}) as run:
                named_topics = topics.name_topics(
                    topic_model,
                    loaded_statements,
                    encoder,
                    earlier=saved_names,
                    generator=session.recorded(loaded_model, run),
                    prompts=session.options.prompts,
                )
                result = FoundTopics(named_topics, loaded_statements, output)
                introduction = f"{len(named_topics.model.topics)} topics of {len(loaded_statements)} statements."
                page = Report("Topics", introduction, (Section("Topics", tuple(result.tables())),))
                run.save_results("report", [report_data(page)])
    topics.write_topics(named_topics.model, output)
    if names:
        topics.write_names(names, named_topics.named, named_topics.unused)
    return FoundTopics(named_topics, loaded_statements, output)


def report_topics(
    statements: Path | str,
    topics: Path | str,
    *,
    by: str | None = None,
    predictions: Path | str | None = None,
    tagger: str | None = None,
    sample: int | None = None,
    seed: int = 0,
    workspace: Place = None,
) -> TopicTrends:
    """Report the confidence of each topic by cycle, working group or report, with intervals and a map.

    Args:
        statements: File of statements, written by ``climassay confidence extract``.
        topics: File of topics, written by ``climassay confidence topics``.
        by: Field by which statements are grouped in columns: cycle, working-group or report; by default cycle if there
            are several cycles, else working-group.
        predictions: File of a tagger's held-out probabilities (CSV or JSON lines) with an id and a column per level.
        tagger: Tagger that predicts the levels of untagged statements with a topic.
        sample: Number of untagged statements to draw at random for the tagger; by default all are tagged.
        seed: Random seed for the intervals and the sample of untagged statements.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: A file cannot be read, or no untagged statement has a topic.
    """
    from climassay.confidence.topics import read_topics
    from climassay.confidence.trends import analyse_trends, read_predictions, trend_report

    statements, topics = Path(statements), Path(topics)
    predictions = None if predictions is None else Path(predictions)
    if sample and not tagger:
        raise InputError("--sample says how many statements a tagger reads: give --tagger too.")
    files = {"predictions": predictions and str(predictions), "tagger": tagger, "sample": sample}
    column_name = None if by is None else by.replace(" ", "-")
    column_kind = cast("ColumnKind | None", column_name and column_name.replace("-", " "))
    config = {"statements": str(statements), "topics": str(topics), "by": column_name, **files}
    loaded_statements, model = read_statements(statements), read_topics(topics)
    level_probabilities = read_predictions(predictions) if predictions else None
    with Session.opened(workspace) as session:
        if tagger:
            tagger_predictions = _predict_levels(session, tagger, loaded_statements, model, sample, seed)
            if level_probabilities is not None:
                if level_probabilities.levels != tagger_predictions.levels:
                    raise InputError(
                        f"The tagger gives {', '.join(tagger_predictions.levels)}, "
                        f"the predictions {', '.join(level_probabilities.levels)}."
                    )
                tagger_predictions = replace(
                    tagger_predictions,
                    probabilities={**level_probabilities.probabilities, **tagger_predictions.probabilities},
                )
            level_probabilities = tagger_predictions
        with session.run("confidence report", config, {"intervals": seed}) as run:
            analysis = analyse_trends(
                loaded_statements, model, by=column_kind, predictions=level_probabilities, seed=seed
            )
            page = trend_report(analysis, source=statements.name, facts=(("run", run.id),))
            run.save_results("report", [report_data(page)])
    return TopicTrends(analysis, page, run.id)


def _predict_levels(
    session: Session, tagger: str, statements: "list[Statement]", model: "TopicModel", limit: int | None, seed: int
) -> "Predictions":
    """Predict the levels of the untagged statements with a topic; the result includes the tagger's known errors."""
    from climassay.confidence.tagging.tagger import BUNDLED_TAGGER, load_tagger
    from climassay.confidence.trends import Predictions
    from climassay.learning import sample

    loaded_tagger = load_tagger(BUNDLED_TAGGER if tagger == "bundled" else Path(tagger))
    untagged_statements = [
        statement for statement in statements if statement.tag is None and model.topic_of(statement.id) is not None
    ]
    if not untagged_statements:
        raise InputError("No untagged statement has a topic: extract with --untagged, then topics --assign-untagged.")
    untagged_statements = list(sample(untagged_statements, limit, seed))
    residuals, confusion = loaded_tagger.residuals, loaded_tagger.confusion
    if residuals is None and confusion is None:
        raise InputError(f"The tagger {tagger} has no record of its errors: train it again.")
    with session.progress.task("Tagging", total=len(untagged_statements) * max(1, len(loaded_tagger.sources))) as task:
        # Residuals are those of the natural mix; the table of errors is that of answers for equal shares of the levels.
        mixed_tagger = loaded_tagger.for_mix(None if residuals is not None else (1.0,) * len(loaded_tagger.levels))
        probabilities = mixed_tagger.predict_proba(untagged_statements, on_progress=task.advance)
    by_id = dict(zip((statement.id for statement in untagged_statements), probabilities, strict=True))
    return Predictions(loaded_tagger.levels, by_id, confusion if residuals is None else None, residuals)
