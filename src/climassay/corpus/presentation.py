"""Collections and hits as tables and lines of text."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from climassay.corpus.collection import AddProgress, CollectionSummary
from climassay.corpus.collection_storage import CollectionSettings, StoredDocument, distinct_titles
from climassay.corpus.documents import Hit, Passage
from climassay.corpus.relevance import Threshold
from climassay.progress import Task
from climassay.reporting import counted
from climassay.reporting.results import Result
from climassay.reporting.tables import Table

EXCERPT = 240
"""Maximum number of characters of a passage in a list of hits."""


def collections_table(summaries: Sequence[CollectionSummary]) -> Table:
    """Return a table with one row per collection."""
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
    name: str, settings: CollectionSettings, documents: Sequence[StoredDocument], n_originals: int, n_bytes: int
) -> Table:
    """Return a table with one row per document; interrupted additions show their progress."""
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
        f"characters, {settings.passage_overlap} overlapping. Original files: {n_originals:,} of {len(documents):,} "
        f"kept, {n_bytes / 1e6:,.1f} MB."
    )
    return Table.of(name, ["id", "document", "report", "passages"], rows, note=note, left=3)


def collection_progress(name: str, task: Task) -> Callable[[AddProgress], None]:
    """Return a callback that shows the progress of an addition on a task, with passages per second."""
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
    """Passages found for a query, best first."""

    collections: tuple[str, ...]
    query: str
    mode: str
    min_cosine: Threshold
    """Minimum cosine; ``"measured"`` for the encoder's relevance rule (:mod:`climassay.corpus.relevance`), None for no
    limit."""
    hits: tuple[Hit, ...]
    full: bool = False
    """Print whole passages."""

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __getitem__(self, index: int) -> Hit:
        return self.hits[index]

    def to_dict(self) -> dict[str, Any]:
        """Return the query and its hits, each with its citation."""
        return {
            "collection": "+".join(self.collections),
            "query": self.query,
            "mode": self.mode,
            "min_cosine": self.min_cosine,
            "hits": [asdict(hit) | {"citation": hit.passage.citation} for hit in self.hits],
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per hit."""
        return [
            {"rank": hit.rank, "score": hit.score, "cosine": hit.cosine, "citation": hit.passage.citation,
             "passage": hit.passage.id, "text": hit.passage.text}
            for hit in self.hits
        ]  # fmt: skip

    def tables(self) -> tuple[Table, ...]:
        """Return a table of the hits with the beginnings of their texts."""
        rows = [
            (str(hit.rank), f"{hit.score:.4g}", hit.passage.citation, _excerpt(hit.passage.text)) for hit in self.hits
        ]
        return (Table.of(self.query, ("rank", "score", "passage", "text"), rows, left=4),)

    def terminal_tables(self, width: int) -> tuple[Table, ...]:  # noqa: ARG002
        """Return no tables, because :meth:`lines` prints the hits."""
        return ()

    def lines(self) -> Iterator[str]:
        """Yield each hit with its citation and the beginning of its text, or the whole text."""
        for hit in self.hits:
            text = hit.passage.text
            cosine = "" if hit.cosine is None else f", cosine {hit.cosine:.3f}"
            yield f"{hit.rank}. {hit.passage.citation}"
            yield f"   [{hit.passage.id}; score {hit.score:.4g}{cosine}]"
            yield text if self.full else "   " + _excerpt(text)
            yield ""

    def notes(self) -> Iterator[str]:
        """Yield a note if there are no hits."""
        if not self.hits:
            limit = ""
            if self.min_cosine == "measured":
                limit = " (no passage has these words together or is similar enough; --all shows what is nearest)"
            elif self.min_cosine is not None:
                limit = f" (nothing reaches a cosine of {self.min_cosine:g}; --all shows what is nearest)"
            yield f"Nothing relevant in {', '.join(self.collections)}{limit}."


def passage_lines(passage: Passage) -> Iterator[str]:
    """Yield a whole passage with its citation and metadata."""
    yield passage.citation
    facts = {"id": passage.id, "file": passage.source, "date": passage.date, "edition": passage.edition}
    yield "; ".join(f"{key} {value}" for key, value in (facts | {"licence": passage.licence}).items() if value)
    yield ""
    yield passage.text


def _excerpt(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= EXCERPT else line[:EXCERPT].rsplit(" ", 1)[0] + " …"
