"""Stated confidence: statements of reports, their topics, and checks of drafts for how they state certainty."""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from climassay.confidence.results import ComparedStatements, ExtractedStatements, FoundTopics, LintedDrafts, TopicTrends
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
    from climassay.confidence.topics import TopicModel, TopicSettings
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
    """Extract statements with their level of confidence, likelihood, evidence and agreement, and their context.

    Statements are saved as .jsonl for other commands, as .html for a page to review them.

    Args:
        reports: Files of reports, or folders of them.
        collections: Names of collections whose documents are read as well.
        options: Options of the extraction.
        reading: Options for reading the files, for example columns of tables.
        model: Model that divides each sentence with several levels into the parts that the levels are about, with one
            request; by default every level gets the whole sentence.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: There is nothing to read, or no file can be read.
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

    listed = one_or_several(reports)
    if not listed and not collections:
        raise InputError("Nothing to read: name the files of reports, or --collection.")
    files, extraction = find_files(listed), options or ExtractOptions()
    documents: list[Document] = []
    skipped: list[Skipped] = []
    with Session.opened(workspace) as session:
        with session.progress.task("Reading", total=len(files)) as task:
            for file in files:
                result = read(file, reading)
                documents += result.documents
                skipped += result.skipped
                task.advance()
        for name in one_or_several(collections):
            documents += documents_of_collection(Collection.open(session.workspace, name))
        if not documents:
            reason = f": {skipped[0].source}: {skipped[0].reason}" if skipped else "."
            raise InputError(f"Nothing was read{reason}")
        results: list[Statement] = []
        divider = None
        with ExitStack() as stack:
            if model is not None:
                loaded, prompt = session.model(model), load_prompt("divide", session.options.prompts)
                config = {"files": [str(file) for file in files], "collections": one_or_several(collections)}
                config |= {"model": loaded.name, "prompt_sha256": prompt.sha256}
                run = stack.enter_context(session.run("confidence extract", config))
                divider = SentenceDivider(session.recorded(loaded, run), prompt)
            with session.progress.task("Extracting", total=len(documents)) as task:
                for document in documents:
                    results += extract([document], extraction, divider)
                    task.advance()
    return ExtractedStatements(
        tuple(mark_duplicates(results)),
        tuple(extract_terms(documents, extraction.report)),
        tuple(skipped),
        tuple(
            item.title for item in documents if item.id not in {result.document_id for result in results if result.tag}
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
    """Check drafts of an assessment report for how they state certainty.

    Args:
        drafts: Files or texts; a string with a space that is not the name of a file is a text.
        rules: Names of rules, separated by commas: only these; with a minus before each, all but these; or ``all``.
        model: Also have a strong language model read every passage with words of certainty.
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

    chosen = select_rules(rules)
    # All files are opened before any is checked, so that a wrong name is reported at once.
    read = [
        draft_of(draft_file)
        if isinstance(draft_file, str) and " " in draft_file and not Path(draft_file).is_file()
        else read_draft(Path(draft_file))
        for draft_file in one_or_several(drafts)
    ]
    if model is None:
        return LintedDrafts(tuple(check(draft, chosen) for draft in read))
    from climassay.confidence.linting.model_rule import ModelReader, select_passages

    with Session.opened(workspace) as session:
        loaded, prompt = session.model(model), load_prompt("lint", session.options.prompts)
        config = {"files": [document.name for document in read], "model": loaded.name, "prompt_sha256": prompt.sha256}
        total = sum(len(select_passages(draft)) for draft in read)
        with session.run("confidence lint", config) as run, session.progress.task("Passages", total=total) as task:
            reader = ModelReader(session.recorded(loaded, run), prompt, task.advance)
            checked = tuple(check(draft, (*chosen, reader.rule)) for draft in read)
            result = LintedDrafts(checked, reader)
            run.save_results("findings", result.rows())
    return result


def diff_confidence(old: Path | str, new: Path | str) -> ComparedStatements:
    """Compare two extractions: statements added, removed, reworded, or with another level.

    Args:
        old: File of the earlier extraction, written by climassay confidence extract (.jsonl).
        new: File of the later extraction.

    Raises:
        InputError: A file cannot be read.
    """
    from climassay.confidence.difference import compare_statements

    old, new = Path(old), Path(new)
    changes = compare_statements(read_statements(old), read_statements(new))
    return ComparedStatements(str(old), str(new), tuple(changes))


def find_topics(
    statements: Path | str,
    output: Path | str,
    settings: "TopicSettings",
    *,
    names: Path | str | None = None,
    assign_untagged: bool = False,
    model: Generator | str | None = None,
    workspace: Place = None,
) -> FoundTopics:
    """Group statements with their context into named topics, as BERTopic does, merged to the number in the settings.

    Args:
        statements: File of statements, written by climassay confidence extract.
        output: File of the topics.
        settings: Number of topics, and settings of the clustering.
        names: TOML file of topic names, created if missing; later runs use names that you change in it.
        assign_untagged: Also assign untagged statements to the nearest topic.
        model: Model that proposes names; without one, topics are named by their words.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: A file cannot be read or written.
        ModelError: The model cannot be loaded.
    """
    from climassay.confidence import topics
    from climassay.models.encoders import load_encoder

    statements, output = Path(statements), Path(output)
    names = None if names is None else Path(names)
    earlier = topics.read_names(names) if names else ()
    read = read_statements(statements)
    encoder = load_encoder()
    with Session.opened(workspace) as session:
        total = len(topics.context_sentences(read, assign_untagged=assign_untagged))
        with session.progress.task("Sentences", total=total) as task:
            fitted = topics.fit_topics(
                read, encoder, settings, assign_untagged=assign_untagged, on_progress=task.advance
            )
        if model is None:
            named = topics.name_topics(fitted, read, encoder, earlier=earlier)
        else:
            loaded = session.model(model)
            config = {"file": str(statements), "model": model if isinstance(model, str) else model.name}
            with session.run("confidence topics", {**config, **asdict(settings)}, {"topics": settings.seed}) as run:
                named = topics.name_topics(
                    fitted,
                    read,
                    encoder,
                    earlier=earlier,
                    generator=session.recorded(loaded, run),
                    prompts=session.options.prompts,
                )
                result = FoundTopics(named, read, output)
                lead = f"{len(named.model.topics)} topics of {len(read)} statements."
                page = Report("Topics", lead, (Section("Topics", tuple(result.tables())),))
                run.save_results("report", [report_data(page)])
    topics.write_topics(named.model, output)
    if names:
        topics.write_names(names, named.named, named.unused)
    return FoundTopics(named, read, output)


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
    """Score topics by cycle or working group, with intervals, tags, a map, and reasons for gaps.

    Args:
        statements: File of statements, written by climassay confidence extract.
        topics: File of topics, written by climassay confidence topics.
        by: Columns to compare: cycle, working-group or report; by default cycles if there are several, else working
            groups.
        predictions: A tagger's probabilities (CSV or JSON lines: id and a column for each level), held out.
        tagger: Tag the untagged statements that have a topic.
        sample: Number of untagged statements that --tagger tags, drawn at random.
        seed: Seed of resampling for intervals, and of --sample.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: A file cannot be read, or there is nothing for the tagger to read.
    """
    from climassay.confidence.topics import read_topics
    from climassay.confidence.trends import analyse_trends, read_predictions, trend_report

    statements, topics = Path(statements), Path(topics)
    predictions = None if predictions is None else Path(predictions)
    if sample and not tagger:
        raise InputError("--sample says how many statements a tagger reads: give --tagger too.")
    files = {"predictions": predictions and str(predictions), "tagger": tagger, "sample": sample}
    named = None if by is None else by.replace(" ", "-")
    kind = cast("ColumnKind | None", named and named.replace("-", " "))
    config = {"statements": str(statements), "topics": str(topics), "by": named, **files}
    read, model = read_statements(statements), read_topics(topics)
    level_probabilities = read_predictions(predictions) if predictions else None
    with Session.opened(workspace) as session:
        if tagger:
            tagged = _tagged_by(session, tagger, read, model, sample, seed)
            if level_probabilities is not None:
                if level_probabilities.levels != tagged.levels:
                    raise InputError(
                        f"The tagger gives {', '.join(tagged.levels)}, "
                        f"the predictions {', '.join(level_probabilities.levels)}."
                    )
                tagged = replace(tagged, probabilities={**level_probabilities.probabilities, **tagged.probabilities})
            level_probabilities = tagged
        with session.run("confidence report", config, {"intervals": seed}) as run:
            analysis = analyse_trends(read, model, by=kind, predictions=level_probabilities, seed=seed)
            page = trend_report(analysis, source=statements.name, facts=(("run", run.id),))
            run.save_results("report", [report_data(page)])
    return TopicTrends(analysis, page, run.id)


def _tagged_by(
    session: Session, tagger: str, statements: "list[Statement]", model: "TopicModel", sample: int | None, seed: int
) -> "Predictions":
    """Return a tagger's probabilities for untagged statements with a topic, and the tagger's stored errors."""
    import numpy as np

    from climassay.confidence.tagging.tagger import BUNDLED_TAGGER, load_tagger
    from climassay.confidence.trends import Predictions

    loaded = load_tagger(BUNDLED_TAGGER if tagger == "bundled" else Path(tagger))
    untagged = [
        statement for statement in statements if statement.tag is None and model.topic_of(statement.id) is not None
    ]
    if not untagged:
        raise InputError("No untagged statement has a topic: extract with --untagged, then topics --assign-untagged.")
    if sample and sample < len(untagged):
        drawn = np.random.default_rng(seed).choice(len(untagged), sample, replace=False)
        untagged = [untagged[index] for index in sorted(drawn.tolist())]
    residuals, confusion = loaded.residuals, loaded.confusion
    if residuals is None and confusion is None:
        raise InputError(f"The tagger {tagger} has no record of its errors: train it again.")
    with session.progress.task("Tagging", total=len(untagged) * max(1, len(loaded.sources))) as task:
        # Residuals are those of the natural mix; the table of errors is that of answers for equal shares of the levels.
        mixed_tagger = loaded.for_mix(None if residuals is not None else (1.0,) * len(loaded.levels))
        result = mixed_tagger.predict_proba(untagged, on_progress=task.advance)
    by_id = dict(zip((statement.id for statement in untagged), result, strict=True))
    return Predictions(loaded.levels, by_id, confusion if residuals is None else None, residuals)
