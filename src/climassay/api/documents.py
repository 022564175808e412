"""From documents to passages and cited answers."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from climassay.errors import InputError
from climassay.models import DEFAULT_MODEL, Generator
from climassay.reporting.results import Shown
from climassay.session import Place, Session, one_or_several

if TYPE_CHECKING:
    from climassay.corpus import (
        AddProgress,
        AddReport,
        Document,
        QuestionColumns,
        ReadOptions,
        RetrievalReport,
        Skipped,
    )
    from climassay.corpus.presentation import SearchResult
    from climassay.grounding import GroundedAnswer

PRIMER = "primer"
"""Names the bundled books and questions where a file can be named; ``primer:BOOK`` names one book."""
MOST_REASONS = 3
"""Files that could not be read whose reasons are given where there is nothing to add."""


def add_documents(
    collection: str,
    files: str | Path | Iterable[str | Path],
    *,
    workspace: Place = None,
    encoder: str | None = None,
    passage_size: int | None = None,
    passage_overlap: int | None = None,
    reading: "ReadOptions | None" = None,
    replace_older: bool = False,
    originals: bool = True,
    on_progress: "Callable[[AddProgress], None] | None" = None,
) -> "AddReport":
    """Add documents to a collection; it is made when it is not there. Run again, it goes on where it stopped.

    What is there already changes nothing, and an interrupted call goes on where it stopped.

    Args:
        collection: Its name.
        files: PDF, HTML, Markdown, text, EPUB, CSV, JSONL or Parquet files, folders of them, or primer:BOOK.
        workspace: Where the collection lies.
        encoder: local:minilm (default), or local: and a sentence-transformers folder or hub id.
        passage_size: Characters of a passage; by default 2000.
        passage_overlap: Maximum number of characters that neighbours share; by default 200.
        reading: Columns of tables, and what is known of the documents.
        replace_older: Take out older versions of the documents added (same file and title).
        originals: Keep the files, so that citations lead to their pages.
        on_progress: Told after every batch of passages.

    Returns:
        What was added and what was there; ``skipped`` names every file that could not be read, with the reason.

    Raises:
        InputError: None of the files can be read, or the collection has another encoder.
        ModelError: The encoder cannot be found.

    Example:
        >>> added = add_documents("heat", "primer:physical_climate", workspace=folder)
        >>> [book.title for book in added.added]
        ['Principles of Physical Climate']
    """
    from climassay.corpus import open_or_create, read_all
    from climassay.corpus.collection_storage import check_name
    from climassay.corpus.presentation import collection_progress

    check_name(collection)
    listed = [files] if isinstance(files, (str, Path)) else list(files)
    skipped: list[Skipped] = []

    def documents() -> "Iterable[Document]":
        for result in read_all(map(_book_or_file, listed), reading):
            skipped.extend(result.skipped)
            yield from result.documents

    read = iter(documents())
    # Before anything is made: a mistyped file name leaves no empty collection behind.
    first = next(read, None)
    if first is None:
        reason = "; ".join(f"{one.source}: {one.reason}" for one in skipped[:MOST_REASONS])
        raise InputError(f"There is no document to add to {collection}{': ' + reason if reason else '.'}")
    with Session.opened(workspace) as session:
        opened = open_or_create(
            session.workspace,
            collection,
            encoder=encoder,
            passage_size=passage_size,
            passage_overlap=passage_overlap,
            **({} if session.pool is None else {"load": session.pool.load_encoder}),
        )
        with session.progress.task(collection) as task:
            show = on_progress or collection_progress(collection, task)
            report = opened.add(chain([first], read), replace=replace_older, keep_originals=originals, on_progress=show)
        return replace(report, collection=opened.summary(), skipped=(*skipped, *report.skipped))


def search(
    collections: str | Sequence[str],
    query: str,
    *,
    k: int = 8,
    mode: str = "hybrid",
    threshold: float | Literal["measured"] | None = "measured",
    full: bool = False,
    workspace: Place = None,
) -> "SearchResult":
    """Find passages, the best first.

    Args:
        collections: Names of collections.
        query: A question or statement.
        k: Maximum number of hits.
        mode: ``hybrid``, ``dense``, ``bm25`` or ``rrf``.
        threshold: Cosine below which a passage is left out; by default the encoder's measured one, None for none.
        full: Show whole passages.
        workspace: Where the collections lie.

    Raises:
        InputError: There is no such collection or mode.

    Example:
        >>> [hit.passage.document for hit in search("heat", "greenhouse effect", k=1, workspace=folder)]
        ['Principles of Physical Climate']
    """
    from climassay.corpus.presentation import SearchResult
    from climassay.corpus.search import check_mode

    way, names = check_mode(mode), one_or_several(collections)
    with Session.opened(workspace) as session:
        group = session.collections(names)
        if threshold == "measured":
            hits = group.search(query, k=k, mode=way)
            limits = {one.relevance_threshold for one in group.collections}
            least = limits.pop() if len(limits) == 1 else None
        else:
            least = threshold
            [hits] = group.search_many([query], k=k, mode=way, min_cosine=least)
        return SearchResult(names, query, way, least, tuple(hits), full)


def evaluate_search(
    collection: str,
    questions: str | Path | Iterable[str | Path],
    *,
    ks: Sequence[int] = (),
    modes: Sequence[str] = (),
    columns: "QuestionColumns | None" = None,
    within_group: bool = False,
    workspace: Place = None,
) -> "RetrievalReport":
    """Measure how well search finds the passages that questions rest on: recall, mean reciprocal rank and nDCG.

    Args:
        collection: Its name.
        questions: JSONL or CSV files with question and passage; primer, or primer:BOOK.
        ks: Depths of recall; by default 1, 3, 5 and 10.
        modes: hybrid, dense, bm25, rrf; by default all.
        columns: Columns of the files: question, passage, relevance (grades; 0 or nothing is not relevant), group (what
            questions share, as a report: intervals are drawn over groups).
        within_group: Ask each question only in the report that its group names.
        workspace: Where the collection lies.

    Raises:
        InputError: A file cannot be read, or there is no such collection or mode.
    """
    from climassay.corpus import Collection, QuestionColumns, evaluate_retrieval, read_judged
    from climassay.corpus.retrieval_evaluation import DEFAULT_KS
    from climassay.corpus.search import SEARCH_MODES, check_mode

    with Session.opened(workspace) as session:
        opened = Collection.open(session.workspace, collection)
        files = [path for file in one_or_several(questions) for path in _question_files(str(file))]
        read = [read_judged(path, columns or QuestionColumns()) for path in files]
        chosen = tuple(check_mode(mode) for mode in modes) or SEARCH_MODES
        return evaluate_retrieval(
            opened,
            [question for pairs, _ in read for question in pairs],
            ks=tuple(ks) or DEFAULT_KS,
            modes=chosen,
            within_group=within_group,
            left_out=sum(left_out for _, left_out in read),
        )


def ask(
    question: str,
    collections: str | Sequence[str],
    *,
    model: Generator | str = DEFAULT_MODEL,
    workspace: Place = None,
    passages: int = 4,
    threshold: float | None = None,
    sentences: int = 3,
    profile: Literal["auto", "small", "strong"] = "auto",
    on_progress: "Callable[[GroundedAnswer], None] | None" = None,
) -> "GroundedAnswer":
    """Answer a question from your collections, with numbered citations, or say that they do not hold the answer.

    Terminals and notebooks show its sentences as they are written.

    Args:
        question: Your question, in quotes.
        collections: Names of collections.
        model: Who writes.
        workspace: Where collections and records lie.
        passages: Passages put before the model.
        threshold: Similarity below which a passage is not relevant.
        sentences: Maximum number of sentences of the answer.
        profile: Ask the model as a small or a strong one; by default its size decides.
        on_progress: Called with the answer as far as there is one: its sources, then the sentences that are complete,
            with citations that exist. Each replaces the one before; marks for what no source bears come at the end.

    Raises:
        InputError: The question is empty, or there is no such collection.
        ModelError: The model cannot be loaded.

    Example:
        >>> answer = ask("How should I boil an egg?", "heat", workspace=folder)
        >>> answer.enough_information
        False
        >>> print(answer.text)
        Not enough information.
    """
    from climassay.grounding import answer_data, answer_question, written
    from climassay.models.profiles import ProfileSettings
    from climassay.prompts import load_prompt

    with Session.opened(workspace) as session:
        group = session.collections(collections)
        prompt = load_prompt("ask", session.options.prompts)
        loaded = session.model(model)
        config = {
            "question": question,
            "collections": one_or_several(collections),
            "model": loaded.name,
            "passages": passages,
            "threshold": threshold,
            "sentences": sentences,
            "profile": profile,
            "prompt_sha256": prompt.sha256,
        }
        with session.run("ask", config) as run, session.progress.preview() as show:

            def tell(answer: "GroundedAnswer") -> None:
                sentences = " ".join(map(written, answer.sentences))
                if show is not None:
                    show(f"{sentences}\nStill being written and checked ..." if sentences else "")
                if on_progress is not None:
                    on_progress(answer)

            answer = answer_question(
                question,
                group,
                session.recorded(loaded, run),
                k=passages,
                min_cosine=threshold,
                sentences=sentences,
                prompt=prompt,
                profile=ProfileSettings(profile),
                on_progress=tell if show is not None or on_progress is not None else None,
            )
            run.save_results("answer", [answer_data(answer)])
        return answer


def _book_or_file(name: str | Path) -> Path:
    if not str(name).startswith(f"{PRIMER}:"):
        return Path(name).expanduser()
    from climassay.primer import book_path

    return book_path(str(name).removeprefix(f"{PRIMER}:"))


def _question_files(file: str) -> list[Path]:
    """The file itself, or the primer's: ``primer`` has all questions, ``primer:BOOK`` those on one book."""
    if file != PRIMER and not file.startswith(f"{PRIMER}:"):
        return [Path(file).expanduser()]
    from climassay.primer import question_paths

    paths = {path.stem: path for path in question_paths()}
    if file == PRIMER:
        return list(paths.values())
    book = file.removeprefix(f"{PRIMER}:")
    if book not in paths:
        raise InputError(f"The primer has no questions on {book!r}: it has some on {', '.join(paths)}.")
    return [paths[book]]


def list_collections(*, workspace: Place = None) -> "tuple[Shown, list[InputError]]":
    """The collections of a workspace, and what is wrong with damaged ones."""
    from climassay.corpus.collection import survey_collections
    from climassay.corpus.presentation import collections_table

    with Session.opened(workspace) as session:
        summaries, damaged = survey_collections(session.workspace)
        none = f"No collections yet in {session.workspace.root}: make one with `climassay corpus add NAME FILES`."
    tables = (collections_table(summaries),) if summaries else ()
    return Shown(summaries, tables, noted=() if summaries or damaged else (none,)), list(damaged)


def show_collection(name: str, passage: str | None = None, *, workspace: Place = None) -> Shown:
    """Show a collection's documents and settings, or one passage in full.

    Args:
        name: The collection.
        passage: Id of a passage.
        workspace: Where the collection lies.

    Raises:
        InputError: There is no such collection or passage.
    """
    from climassay.corpus import Collection
    from climassay.corpus.presentation import documents_table, passage_lines

    with Session.opened(workspace) as session:
        collection = Collection.open(session.workspace, name)
    if passage is not None:
        found = collection.passage(passage)
        return Shown(asdict(found) | {"citation": found.citation}, said=tuple(passage_lines(found)))
    documents, settings = collection.documents(), collection.settings
    kept = [one.id for one in documents if collection.originals.find(one.id) is not None]
    size = collection.originals.bytes_of(kept)
    originals = {"documents": kept, "bytes": size}
    data = {"name": name, "settings": settings, "documents": documents, "originals": originals}
    table = documents_table(name, settings, documents, len(kept), size)
    return Shown(data, (table,), [asdict(one) for one in documents])


def rename_document(name: str, document: str, title: str, *, workspace: Place = None) -> Shown:
    """Give a document another title, which citations show from now on.

    A newer version of its file counts as another document afterwards: versions are told by file name and title.

    Args:
        name: The collection.
        document: Id, title or file name of the document.
        title: Its new title, in quotes.
        workspace: Where the collection lies.

    Raises:
        InputError: There is no such collection or document, several documents go by that name, or the title is empty
            or too long.
    """
    from climassay.corpus import Collection

    with Session.opened(workspace) as session:
        renamed = Collection.open(session.workspace, name).rename(document, title)
    return Shown({"collection": name, "renamed": renamed}, said=(f"{renamed.id} is now called {renamed.title}.",))


def compact_collection(name: str, *, workspace: Place = None) -> Shown:
    """Join the files of small additions and remove old versions; searches find the same as before.

    Args:
        name: The collection.
        workspace: Where it lies.

    Raises:
        InputError: There is no such collection.
    """
    from climassay.corpus import Collection

    with Session.opened(workspace) as session:
        joined = Collection.open(session.workspace, name).compact()
    before, after = joined.bytes_before / 1e6, joined.bytes_after / 1e6
    said = f"Compacted {name}: {after:,.1f} MB, {before:,.1f} MB before."
    return Shown({"collection": name, **asdict(joined)}, said=(said,))


def remove_documents(name: str, document: str | None = None, *, workspace: Place = None) -> Shown:
    """Remove a document from a collection, or the whole collection.

    Args:
        name: The collection.
        document: Id or title of the document; None removes the collection.
        workspace: Where the collection lies.

    Raises:
        InputError: There is no such collection or document.
    """
    from climassay.corpus import Collection
    from climassay.corpus.collection import remove_collection

    with Session.opened(workspace) as session:
        if document is None:
            remove_collection(session.workspace, name)
            return Shown({"removed": name}, said=(f"Removed the collection {name}.",))
        gone = Collection.open(session.workspace, name).remove(document)
    said = [f"Removed {one.title} ({one.id}, {one.passages:,} passages) from {name}." for one in gone]
    return Shown({"collection": name, "removed": gone}, said=said)
