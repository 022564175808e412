"""What statements of reports are about, and how confident each topic sounds in cycle after cycle."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from climassay.errors import InputError
from climassay.models import DEFAULT_MODEL, Generator
from climassay.reporting import Report, Section, Table
from climassay.reporting.results import Result
from climassay.session import Place, Session

if TYPE_CHECKING:
    from climassay.confidence.statement import Statement
    from climassay.confidence.topics import NamedTopics, TopicModel, TopicSettings
    from climassay.confidence.trends import ColumnKind, Predictions, TrendAnalysis


@dataclass(frozen=True)
class FoundTopics(Result):
    """Statements in named topics."""

    named: "NamedTopics"
    statements: "Sequence[Statement]"
    file: Path

    def to_dict(self) -> dict[str, Any]:
        """Every topic with the name proposed and its statements by report."""
        from climassay.confidence.topics.topic import counts_by_report

        model = self.named.model
        reports, counts = counts_by_report(model, self.statements)
        rows = [
            {
                **asdict(topic),
                "proposal": asdict(proposal) if proposal else None,
                "reports": {one: counts[topic.number, one] for one in reports},
            }
            for topic, proposal in zip(model.topics, self.named.proposals, strict=True)
        ]
        found = {"clusters": model.clusters, "outliers": model.outliers, "topics": rows}
        return {"file": self.file, **found, "unused_names": [one.name for one in self.named.unused]}

    def tables(self) -> list[Table]:
        """Topics with their words, and their statements by report."""
        from climassay.confidence.topics import report_table, topic_table

        return [topic_table(self.named.model), report_table(self.named.model, self.statements)]

    def notes(self) -> list[str]:
        """Names that were refused, or that belong to no topic any more."""
        refused = sum(one is not None and bool(one.fault) for one in self.named.proposals)
        told = []
        if refused:
            count = len(self.named.proposals)
            told.append(
                f"{refused} of {count} proposed names did not describe their topic; its words are shown instead."
            )
        return [*told, *(f"No topic has the statements of {one.name!r} any more." for one in self.named.unused)]


def find_topics(
    statements: Path,
    output: Path,
    settings: "TopicSettings",
    *,
    names: Path | None = None,
    place_untagged: bool = False,
    model: Generator | str | None = DEFAULT_MODEL,
    workspace: Place = None,
) -> FoundTopics:
    """Group statements into named topics: BERTopic over statements with their context, joined to as many as wanted.

    Args:
        statements: JSON lines of ``confidence extract``.
        output: File of the topics.
        settings: How many, and how they are found.
        names: TOML file of names, made if it is not there; changed names in it are kept.
        place_untagged: Give untagged statements the nearest topic too.
        model: Proposes names; None names topics by their words.
        workspace: Where proposals are recorded.

    Raises:
        InputError: A file cannot be read or written.
        ModelError: The model cannot be loaded.
    """
    from climassay.confidence import topics
    from climassay.confidence.statement import read_statements
    from climassay.models.encoders import load_encoder
    from climassay.reporting.html import report_data

    earlier = topics.read_names(names) if names else ()
    read = read_statements(statements)
    encoder = load_encoder()
    with Session.opened(workspace) as session:
        total = len(topics.context_sentences(read, place_untagged=place_untagged))
        with session.progress.task("Sentences", total=total) as task:
            fitted = topics.fit_topics(read, encoder, settings, place_untagged=place_untagged, on_progress=task.advance)
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
                found = FoundTopics(named, read, output)
                lead = f"{len(named.model.topics)} topics of {len(read)} statements."
                page = Report("Topics", lead, (Section("Topics", tuple(found.tables())),))
                run.save_results("report", [report_data(page)])
    topics.write_topics(named.model, output)
    if names:
        topics.write_names(names, named.named, named.unused)
    return FoundTopics(named, read, output)


@dataclass(frozen=True)
class TopicTrends(Result):
    """How confident each topic sounds by cycle, working group or report."""

    analysis: "TrendAnalysis"
    page_report: Report
    run: str

    def to_dict(self) -> dict[str, Any]:
        """Everything."""
        from climassay.confidence.trends import trend_data

        return {"run": self.run, **trend_data(self.analysis)}

    def all_tables(self) -> dict[str, Table]:
        """Every table by its name, those that the screen leaves out included."""
        from climassay.confidence.trends import trend_tables
        from climassay.confidence.trends.report import score_rows

        return {**trend_tables(self.analysis), "scores": score_rows(self.analysis)}

    def tables(self) -> list[Table]:
        """Scores, deviations, changes, and what a tagger says of untagged statements."""
        from climassay.confidence.trends import trend_tables
        from climassay.confidence.trends.report import summary

        found = trend_tables(self.analysis)
        shown = [found[name] for name in ("scores", "deviations", "changes", "untagged", "tagger") if name in found]
        words = " ".join(summary(self.analysis))
        last = shown[-1]
        return [*shown[:-1], replace(last, note=" ".join(filter(None, (last.note, words))))]

    def report(self) -> Report:
        """Tables, figures and a map."""
        return self.page_report


def report_topics(
    statements: Path,
    topics: Path,
    *,
    by: "ColumnKind | None" = None,
    predictions: Path | None = None,
    tagger: str | None = None,
    sample: int | None = None,
    seed: int = 0,
    workspace: Place = None,
) -> TopicTrends:
    """Score topics by cycle or working group, with intervals, tags, a map, and why a topic is silent somewhere.

    Args:
        statements: JSON lines of ``confidence extract``.
        topics: File of :func:`find_topics`.
        by: What scores are compared between; by default cycles where there are several, else working groups.
        predictions: A tagger's held-out probabilities.
        tagger: Tags the untagged statements that have a topic: a file, or ``bundled``.
        sample: Untagged statements that it reads, drawn at random.
        seed: Seed of the resampling and of the sample.
        workspace: Where the report is recorded.

    Raises:
        InputError: A file cannot be read, or there is nothing for the tagger to read.
    """
    from climassay.confidence.statement import read_statements
    from climassay.confidence.topics import read_topics
    from climassay.confidence.trends import analyse_trends, read_predictions, trend_report
    from climassay.reporting.html import report_data

    if sample and not tagger:
        raise InputError("--sample says how many statements a tagger reads: give --tagger too.")
    files = {"predictions": predictions and str(predictions), "tagger": tagger, "sample": sample}
    named = None if by is None else by.replace(" ", "-")
    config = {"statements": str(statements), "topics": str(topics), "by": named, **files}
    read, model = read_statements(statements), read_topics(topics)
    given = read_predictions(predictions) if predictions else None
    with Session.opened(workspace) as session:
        if tagger:
            tagged = _tagged_by(session, tagger, read, model, sample, seed)
            if given is not None:
                if given.levels != tagged.levels:
                    raise InputError(
                        f"The tagger gives {', '.join(tagged.levels)}, the predictions {', '.join(given.levels)}."
                    )
                tagged = replace(tagged, probabilities={**given.probabilities, **tagged.probabilities})
            given = tagged
        with session.run("confidence report", config, {"intervals": seed}) as run:
            analysis = analyse_trends(read, model, by=by, predictions=given, seed=seed)
            page = trend_report(analysis, source=statements.name, facts=(("run", run.id),))
            run.save_results("report", [report_data(page)])
    return TopicTrends(analysis, page, run.id)


def _tagged_by(
    session: Session, tagger: str, statements: "list[Statement]", model: "TopicModel", sample: int | None, seed: int
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
    with session.progress.task("Tagging", total=len(untagged) * max(1, len(loaded.sources))) as task:
        # Residuals are those of the natural mix; the table of errors is that of answers for equal shares of the levels.
        asked = loaded.for_mix(None if residuals is not None else (1.0,) * len(loaded.levels))
        found = asked.predict_proba(untagged, on_progress=task.advance)
    by_id = dict(zip((one.id for one in untagged), found, strict=True))
    return Predictions(loaded.levels, by_id, confusion if residuals is None else None, residuals)
