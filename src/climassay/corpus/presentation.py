"""Collections, hits and retrieval scores as tables and lines of text."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from climassay.corpus.collection import AddProgress, AddReport, CollectionSummary
from climassay.corpus.collection_rows import CollectionSettings, StoredDocument, distinct_titles
from climassay.corpus.documents import Hit, Passage
from climassay.corpus.retrieval_evaluation import RetrievalReport
from climassay.progress import Task
from climassay.reporting import counted
from climassay.reporting.results import Result
from climassay.reporting.tables import Table
from climassay.statistics import Estimate, Interval

MOST_LISTED = 20
"""Skipped files and pages, and documents, that are listed one by one; the rest is counted."""
EXCERPT = 240
"""Characters of a passage in a list of hits."""


def collections_table(summaries: Sequence[CollectionSummary]) -> Table:
    """One row per collection."""
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


def documents_table(
    name: str, settings: CollectionSettings, documents: Sequence[StoredDocument], kept: int, size: int
) -> Table:
    """One row per document; a document whose adding was interrupted says how far it came."""
    titles = distinct_titles(documents)
    rows = [
        [
            document.id,
            titles[document.id],
            document.report or "",
            f"{document.passages:,}" if document.complete else f"{document.passages:,} of {document.expected:,}",
        ]
        for document in documents
    ]
    note = (
        f"Encoder {settings.encoder} ({settings.encoder_fingerprint[:12]}); passages of {settings.passage_size} "
        f"characters, {settings.passage_overlap} overlapping. Original files: {kept:,} of {len(documents):,} kept, "
        f"{size / 1e6:,.1f} MB."
    )
    return Table.of(name, ["id", "document", "report", "passages"], rows, note=note, left=3)


def evaluation_table(report: RetrievalReport) -> Table:
    """One column per search mode; recall at each depth, mean reciprocal rank and nDCG, with intervals."""
    by_depth = zip(*(scores.recall for scores in report.modes), strict=True)
    rows = [
        [f"recall@{recalls[0].k}", *(_share(recall.recall, recall.interval) for recall in recalls)]
        for recalls in by_depth
    ]
    rows.append([f"MRR@{report.depth}", *(_share(scores.mrr.value, scores.mrr.interval) for scores in report.modes)])
    rows.append([f"nDCG@{report.depth}", *(_share(scores.ndcg.value, scores.ndcg.interval) for scores in report.modes)])
    by_mode = {one.mode: one for one in report.differences}
    if by_mode:
        compared = [by_mode.get(scores.mode) for scores in report.modes]
        for name, of in (("nDCG", "ndcg"), (f"recall@{report.depth}", "recall")):
            cells = [
                "best" if one is None else _difference(getattr(one, of), getattr(one, f"{of}_p")) for one in compared
            ]
            rows.append([f"{name} less {report.best}'s", *cells])
    missing = len(report.not_in_collection)
    drawn = "bootstrap" if report.groups is None else f"bootstrap over {report.groups} groups"
    recall = "Wilson" if report.groups is None and report.golds == report.n else drawn
    where = ", each asked within its own report" if report.within_group else ""
    note = (
        f"n = {report.n} questions with {report.golds} gold passages over {report.passages:,} passages{where}; 95% "
        f"intervals (recall: {recall}, others: {drawn}). nDCG takes grades as they are; p-values of differences: sign "
        f"flips, Holm, which need not agree with the bootstrap's intervals. Found means that hits hold "
        f"{report.share:.0%} of the gold passage's words in order."
    )
    if missing:
        note += f" {missing} gold passages are not in the collection and count as not found."
    if report.left_out:
        note += f" {counted(report.left_out, 'row')} of the files without a relevant passage left out."
    headings = ["", *(scores.mode for scores in report.modes)]
    return Table.of(f"Retrieval from {report.collection}", headings, rows, note=note)


def added_lines(report: AddReport) -> Iterator[str]:
    """What adding did, line by line."""
    name, skipped = report.collection.name if report.collection else "the collection", report.skipped
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
        f"{name}: {counted(len(report.added), 'document')} added with {counted(report.passages, 'new passage')}, "
        f"{len(report.already_there):,} already there, {len(skipped):,} skipped"
    )


def collection_progress(name: str, task: Task) -> Callable[[AddProgress], None]:
    """Shows on a task how far adding to a collection is, with the passages embedded a second."""
    start = time.monotonic()

    def show(state: AddProgress) -> None:
        nonlocal start
        if state.passages_done == 0:
            start = time.monotonic()
        spent = time.monotonic() - start
        rate = f", {state.passages_done / spent:.0f}/s" if state.passages_done and spent > 0 else ""
        task.update(
            completed=state.passages_done,
            total=state.passages_known or None,
            description=f"{name}: {counted(state.documents, 'document')}, passages{rate}",
        )

    return show


@dataclass(frozen=True, slots=True)
class SearchResult(Result):
    """Passages found for a query, the best first."""

    collections: tuple[str, ...]
    query: str
    mode: str
    min_cosine: float | None
    """Cosine below which passages were left out; None for no limit, or for one of each encoder's own."""
    hits: tuple[Hit, ...]
    full: bool = False
    """Show whole passages."""

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __getitem__(self, place: int) -> Hit:
        return self.hits[place]

    def to_dict(self) -> dict[str, Any]:
        """The query and its hits, each with its citation."""
        return {
            "collection": "+".join(self.collections),
            "query": self.query,
            "mode": self.mode,
            "min_cosine": self.min_cosine,
            "hits": [asdict(hit) | {"citation": hit.passage.citation} for hit in self.hits],
        }

    def rows(self) -> list[dict[str, Any]]:
        """A row per hit."""
        return [
            {"rank": hit.rank, "score": hit.score, "cosine": hit.cosine, "citation": hit.passage.citation,
             "passage": hit.passage.id, "text": hit.passage.text}
            for hit in self.hits
        ]  # fmt: skip

    def tables(self) -> tuple[Table, ...]:
        """The hits with the beginnings of their texts."""
        rows = [
            (str(hit.rank), f"{hit.score:.4g}", hit.passage.citation, _excerpt(hit.passage.text)) for hit in self.hits
        ]
        return (Table.of(self.query, ("rank", "score", "passage", "text"), rows, left=4),)

    def terminal_tables(self, width: int) -> tuple[Table, ...]:  # noqa: ARG002
        """None: the lines say it all."""
        return ()

    def lines(self) -> Iterator[str]:
        """Each hit with its place and the beginning of its text, or all of it."""
        for hit in self.hits:
            text = hit.passage.text
            cosine = "" if hit.cosine is None else f", cosine {hit.cosine:.3f}"
            yield f"{hit.rank}. {hit.passage.citation}"
            yield f"   [{hit.passage.id}; score {hit.score:.4g}{cosine}]"
            yield text if self.full else "   " + _excerpt(text)
            yield ""

    def notes(self) -> Iterator[str]:
        """What is said where nothing was found."""
        if not self.hits:
            limit = ""
            if self.min_cosine is not None:
                limit = f" (nothing reaches a cosine of {self.min_cosine:g}; --all shows what is nearest)"
            yield f"Nothing relevant in {', '.join(self.collections)}{limit}."


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


def _difference(gap: Estimate, p_value: float) -> str:
    return f"{gap.value:+.3f} [{gap.interval.low:+.3f}, {gap.interval.high:+.3f}] p = {p_value:.2g}"
