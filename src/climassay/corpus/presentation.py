"""Collections, hits and retrieval scores as tables and lines of text."""

from collections.abc import Iterator, Sequence

from climassay.corpus.collection import CollectionSummary
from climassay.corpus.collection_adding import AddReport
from climassay.corpus.collection_documents import StoredDocument
from climassay.corpus.collection_rows import CollectionSettings
from climassay.corpus.documents import Hit, Passage, Skipped
from climassay.corpus.retrieval_evaluation import RetrievalReport
from climassay.reporting.tables import Table
from climassay.statistics import Interval

MOST_LISTED = 20
"""Skipped files and pages, and documents, that are told one by one; the rest is counted."""
EXCERPT = 240
"""Characters of a passage in a list of hits."""


def collections_table(summaries: Sequence[CollectionSummary]) -> Table:
    """One row a collection."""
    rows = [
        [
            summary.name,
            summary.settings.encoder,
            f"{summary.documents:,}" + (f" ({summary.incomplete} incomplete)" if summary.incomplete else ""),
            f"{summary.passages:,}",
        ]
        for summary in summaries
    ]
    return Table.of("", ["collection", "encoder", "documents", "passages"], rows, left=2)


def documents_table(name: str, settings: CollectionSettings, documents: Sequence[StoredDocument]) -> Table:
    """One row a document; a document whose adding was interrupted says how far it came."""
    rows = [
        [
            document.id,
            document.title,
            document.report or "",
            f"{document.passages:,}" if document.complete else f"{document.passages:,} of {document.expected:,}",
        ]
        for document in documents
    ]
    note = (
        f"Encoder {settings.encoder} ({settings.encoder_fingerprint[:12]}); passages of {settings.passage_size} "
        f"characters, {settings.passage_overlap} overlapping."
    )
    return Table.of(name, ["id", "document", "report", "passages"], rows, note=note, left=3)


def evaluation_table(report: RetrievalReport) -> Table:
    """One column a search mode; recall at each depth and mean reciprocal rank, with their intervals."""
    by_depth = zip(*(scores.recall for scores in report.modes), strict=True)
    rows = [
        [f"recall@{recalls[0].k}", *(_share(recall.recall, recall.interval) for recall in recalls)]
        for recalls in by_depth
    ]
    rows.append([f"MRR@{report.depth}", *(_share(scores.mrr.value, scores.mrr.interval) for scores in report.modes)])
    missing = len(report.not_in_collection)
    note = (
        f"n = {report.n} questions over {report.passages:,} passages; 95% intervals (recall: Wilson, MRR: bootstrap). "
        f"Found means that hits hold {report.share:.0%} of the gold passage's words in order."
    )
    if missing:
        note += f" {missing} gold passages are not in the collection and count as not found."
    headings = ["", *(scores.mode for scores in report.modes)]
    return Table.of(f"Retrieval from {report.collection}", headings, rows, note=note)


def added_lines(name: str, report: AddReport, skipped: Sequence[Skipped]) -> Iterator[str]:
    """What adding did, line by line."""
    for stored in report.added[:MOST_LISTED]:
        yield f"added     {stored.title} ({stored.id}, {stored.passages:,} passages)"
    if len(report.added) > MOST_LISTED:
        yield f"added     and {len(report.added) - MOST_LISTED:,} more"
    for stored in report.replaced:
        yield f"replaced  {stored.title} ({stored.id})"
    for stored in report.other_versions:
        yield (
            f"note      {name} also keeps another version of {stored.title} ({stored.id}): "
            f"`climassay corpus remove {name} {stored.id}` takes it out, adding with --replace does so at once"
        )
    for item in skipped[:MOST_LISTED]:
        yield f"skipped   {item.source}: {item.reason}"
    if len(skipped) > MOST_LISTED:
        yield f"skipped   and {len(skipped) - MOST_LISTED:,} more (--json lists all)"
    yield (
        f"{name}: {_count(len(report.added), 'document')} added with {_count(report.passages, 'new passage')}, "
        f"{len(report.already_there):,} already there, {len(skipped):,} skipped"
    )


def hit_lines(hits: Sequence[Hit], full: bool = False) -> Iterator[str]:
    """Each hit with its place and the beginning of its text, or all of it."""
    for hit in hits:
        text = hit.passage.text
        cosine = "" if hit.cosine is None else f", cosine {hit.cosine:.3f}"
        yield f"{hit.rank}. {hit.passage.citation}"
        yield f"   [{hit.passage.id}; score {hit.score:.4g}{cosine}]"
        yield text if full else "   " + _excerpt(text)
        yield ""


def passage_lines(passage: Passage) -> Iterator[str]:
    """A passage in full, with what is known of its place."""
    yield passage.citation
    told = {"id": passage.id, "file": passage.source, "date": passage.date, "edition": passage.edition}
    yield "; ".join(f"{key} {value}" for key, value in (told | {"licence": passage.licence}).items() if value)
    yield ""
    yield passage.text


def _excerpt(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= EXCERPT else line[:EXCERPT].rsplit(" ", 1)[0] + " …"


def _share(value: float, interval: Interval) -> str:
    return f"{value:.3f} [{interval.low:.3f}, {interval.high:.3f}]"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
