"""Results of corpus commands, as records, tables and lines of text."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from climassay.corpus.collection_storage import CollectionSettings, StoredDocument, distinct_titles
from climassay.corpus.documents import Hit, OmittedParts, Passage, Skipped
from climassay.corpus.relevance import Threshold
from climassay.errors import InputError
from climassay.progress import Task
from climassay.reporting.results import Result
from climassay.reporting.tables import Table, counted

MAX_LISTED = 20
"""Maximum number of documents, and of skipped files and pages, that are listed; for the others, only the number is
shown."""


@dataclass(frozen=True, slots=True)
class CollectionSummary:
    """Counts and settings of one collection."""

    name: str
    documents: int
    incomplete: int
    """Number of documents whose addition was interrupted."""
    passages: int
    settings: CollectionSettings


@dataclass(frozen=True, slots=True)
class AddProgress:
    """Progress of adding documents."""

    passages_done: int
    """Number of passages embedded so far."""
    passages_known: int
    """Number of passages to embed, from the documents read so far."""
    documents: int
    """Number of documents read so far."""


@dataclass(frozen=True, slots=True)
class Copy:
    """File whose content is already stored under another name."""

    source: str
    """Name of the file."""
    document: StoredDocument
    """Stored document with the same content."""


@dataclass(frozen=True, slots=True)
class AddReport(Result):
    """Result of adding documents."""

    added: tuple[StoredDocument, ...]
    """Documents whose addition this call completed."""
    already_there: tuple[StoredDocument, ...]
    """Documents whose content was already complete in the collection."""
    replaced: tuple[StoredDocument, ...]
    """Older versions that were removed because of the option ``replace``."""
    other_versions: tuple[StoredDocument, ...]
    """Other versions (same source and title, but other content) that remain in the collection."""
    passages: int
    """Number of passages embedded and stored by this call."""
    skipped: tuple[Skipped, ...]
    """Files and pages that could not be read, with the reason."""
    originals: int = 0
    """Number of original files stored for documents that were added or already in the collection."""
    collection: CollectionSummary | None = None
    """Summary of the collection after the call."""
    omitted_parts: dict[str, tuple[OmittedParts, ...]] = field(default_factory=dict)
    """Omitted parts of each document that was added or already in the collection, by document id."""
    copies: tuple[Copy, ...] = ()
    """Files that were not added because the collection contains their content under another name."""

    def failure(self) -> InputError | None:
        """Return an error if none of the documents contains text; otherwise None."""
        if self.added or self.already_there:
            return None
        name = self.collection.name if self.collection else "the collection"
        return InputError(f"None of the documents has any text, so nothing was added to {name}.")

    def lines(self) -> Iterator[str]:
        """Yield the lines printed in the terminal."""
        name, skipped_parts = self.collection.name if self.collection else "the collection", self.skipped
        for entry in self.added[:MAX_LISTED]:
            yield f"added     {entry.title} ({entry.id}, {counted(entry.passages, 'passage')})"
        if len(self.added) > MAX_LISTED:
            yield f"added     and {len(self.added) - MAX_LISTED:,} more"
        titles = {entry.id: entry.title for entry in (*self.added, *self.already_there)}
        for document, omitted_parts in list(self.omitted_parts.items())[:MAX_LISTED]:
            yield f"left out  of {titles.get(document, document)}: {', '.join(map(str, omitted_parts))}"
        if len(self.omitted_parts) > MAX_LISTED:
            yield f"left out  of {len(self.omitted_parts) - MAX_LISTED:,} more (--json lists all)"
        for entry in self.replaced:
            yield f"replaced  {entry.title} ({entry.id})"
        for entry in self.other_versions:
            yield (
                f"note      {name} also keeps another version of {entry.title} ({entry.id}): "
                f"`climassay corpus remove {name} {entry.id}` takes it out, adding with --replace does so at once"
            )
        for copy in self.copies[:MAX_LISTED]:
            entry = copy.document
            yield f"same      {copy.source}: already there as {entry.source} ({entry.title}, {entry.id})"
        if len(self.copies) > MAX_LISTED:
            yield f"same      and {len(self.copies) - MAX_LISTED:,} more (--json lists all)"
        read_sources = {item.source for item in (*self.added, *self.already_there)} | {
            item.source for item in self.copies
        }
        n_already_there = len({item.id for item in self.already_there}) + sum(
            item.document in self.added for item in self.copies
        )
        for item in skipped_parts[:MAX_LISTED]:
            yield f"{'in part' if item.source in read_sources else 'skipped':<9} {item}"
        if len(skipped_parts) > MAX_LISTED:
            yield f"skipped   and {len(skipped_parts) - MAX_LISTED:,} more (--json lists all)"
        n_skipped = sum(item.source not in read_sources for item in skipped_parts)
        yield (
            f"{name}: {counted(len(self.added), 'document')} added with {counted(self.passages, 'new passage')}, "
            f"{n_already_there:,} already there, {n_skipped:,} skipped"
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per document, with its state: added, already there, or replaced."""
        documents_by_state = {"added": self.added, "already there": self.already_there, "replaced": self.replaced}
        return [
            {
                **asdict(document),
                "state": state,
                "omitted_parts": ", ".join(map(str, self.omitted_parts.get(document.id, ()))),
            }
            for state, documents in documents_by_state.items()
            for document in documents
        ]


MAX_EXCERPT_CHARACTERS = 240
"""Maximum length of a passage in a list of hits, in characters."""


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
    return Table.of("", ["collection", "encoder", "documents", "passages"], rows, left_columns=2)


def documents_table(
    name: str, settings: CollectionSettings, documents: Sequence[StoredDocument], n_originals: int, n_bytes: int
) -> Table:
    """Return a table with one row per document.

    For interrupted additions, the row shows how many passages are stored.
    """
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
    return Table.of(name, ["id", "document", "report", "passages"], rows, note=note, left_columns=3)


def show_addition_progress(name: str, task: Task) -> Callable[[AddProgress], None]:
    """Return a callback that shows the progress of an addition in a progress bar, with passages per second."""
    start = time.monotonic()

    def update_task(state: AddProgress) -> None:
        nonlocal start
        if state.passages_done == 0:
            start = time.monotonic()
        seconds = time.monotonic() - start
        rate = f", {state.passages_done / seconds:.0f}/s" if state.passages_done and seconds > 0 else ""
        task.update(
            completed=state.passages_done,
            total=state.passages_known or None,
            description=f"{name}: {counted(state.documents, 'document')}, passages{rate}",
        )

    return update_task


@dataclass(frozen=True, slots=True)
class SearchResult(Result):
    """Passages found for a query, best first."""

    collections: tuple[str, ...]
    query: str
    mode: str
    min_cosine: Threshold
    """Minimum cosine of hits, ``"measured"`` for the encoder's relevance rule, or None for no minimum; see
    :mod:`climassay.corpus.relevance`.
    """
    hits: tuple[Hit, ...]
    full: bool = False
    """Whether to print whole passages instead of their beginnings."""

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __getitem__(self, index: int) -> Hit:
        return self.hits[index]

    def to_dict(self) -> dict[str, Any]:
        """Return query and hits, each with its citation, as JSON-serialisable values."""
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
        """Return a table with one row per hit: rank, score, citation and the beginning of the text."""
        rows = [
            (str(hit.rank), f"{hit.score:.4g}", hit.passage.citation, _make_excerpt(hit.passage.text))
            for hit in self.hits
        ]
        return (Table.of(self.query, ("rank", "score", "passage", "text"), rows, left_columns=4),)

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
            yield text if self.full else "   " + _make_excerpt(text)
            yield ""

    def notes(self) -> Iterator[str]:
        """Yield a note if no passage was found."""
        if not self.hits:
            explanation = ""
            if self.min_cosine == "measured":
                explanation = " (no passage has these words together or is similar enough; --all shows what is nearest)"
            elif self.min_cosine is not None:
                explanation = f" (nothing reaches a cosine of {self.min_cosine:g}; --all shows what is nearest)"
            yield f"Nothing relevant in {', '.join(self.collections)}{explanation}."


def passage_lines(passage: Passage) -> Iterator[str]:
    """Yield the lines of a whole passage: its citation, metadata and text."""
    yield passage.citation
    metadata = {"id": passage.id, "file": passage.source, "author": passage.author}
    metadata |= {"date": passage.date, "edition": passage.edition}
    yield "; ".join(f"{key} {value}" for key, value in (metadata | {"licence": passage.licence}).items() if value)
    yield ""
    yield passage.text


def _make_excerpt(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_EXCERPT_CHARACTERS else line[:MAX_EXCERPT_CHARACTERS].rsplit(" ", 1)[0] + " …"
