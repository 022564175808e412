"""Collections of documents: search, cited answers, and checks of texts sentence by sentence."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from climassay import corpus
from climassay.errors import InputError
from climassay.io import read_text
from climassay.models import DEFAULT_MODEL
from climassay.models.contract import Generator, Usage
from climassay.primer import book_path, question_paths
from climassay.prompts import ProfileSettings, load_prompt
from climassay.questions import PRIMER
from climassay.reporting import counted
from climassay.reporting.results import Shown
from climassay.session import Place, Session, one_or_several

if TYPE_CHECKING:
    from climassay.corpus.presentation import SearchResult
    from climassay.grounding import GroundedAnswer
    from climassay.grounding.text_check_result import TextCheck


MOST_REASONS = 3
"""Maximum number of unread files whose reasons an error names if there is nothing to add."""


def add_documents(
    collection: str,
    files: str | Path | Iterable[str | Path],
    *,
    workspace: Place = None,
    encoder: str | None = None,
    passage_size: int | None = None,
    passage_overlap: int | None = None,
    reading: "corpus.ReadOptions | None" = None,
    replace_older: bool = False,
    originals: bool = True,
    on_progress: "Callable[[corpus.AddProgress], None] | None" = None,
) -> "corpus.AddReport":
    """Add documents to a collection, creating it if needed.

    Documents that are already there are skipped, and an interrupted run continues where it stopped.

    Args:
        collection: Name of the collection.
        files: PDF, Word, HTML, Markdown, text, EPUB, CSV, JSONL or Parquet files, folders of them, or primer:BOOK.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.
        encoder: local:minilm (default), or local: and a sentence-transformers folder or hub id.
        passage_size: Length of a passage in characters; 2000 by default.
        passage_overlap: Maximum overlap of neighbouring passages in characters; 200 by default.
        reading: Columns of tables, and metadata of the documents.
        replace_older: Remove older versions of the documents added (same file and title).
        originals: Keep the files, so that citations lead to their pages.
        on_progress: Called after every batch of passages.

    Returns:
        Counts of added and existing documents; ``skipped`` names every unreadable file, with the reason.

    Raises:
        InputError: None of the files can be read, or the collection has another encoder.
        ModelError: The encoder cannot be found.

    Example:
        >>> added = add_documents("heat", "primer:physical_climate", workspace=folder)
        >>> [book.title for book in added.added]
        ['Principles of Physical Climate']
    """
    from climassay.corpus.collection_storage import check_name
    from climassay.corpus.presentation import show_addition_progress

    check_name(collection)
    listed = [files] if isinstance(files, (str, Path)) else list(files)
    skipped: list[corpus.Skipped] = []

    def documents() -> "Iterable[corpus.Document]":
        for result in corpus.read_all(map(_book_or_file, listed), reading):
            skipped.extend(result.skipped)
            yield from result.documents

    read = iter(documents())
    # Before anything is made: a mistyped file name leaves no empty collection behind.
    first = next(read, None)
    if first is None:
        reason = "; ".join(f"{skipped_file.source}: {skipped_file.reason}" for skipped_file in skipped[:MOST_REASONS])
        raise InputError(f"There is no document to add to {collection}{': ' + reason if reason else '.'}")
    with Session.opened(workspace) as session:
        opened = corpus.open_or_create(
            session.workspace,
            collection,
            encoder=encoder,
            passage_size=passage_size,
            passage_overlap=passage_overlap,
            **({} if session.pool is None else {"load": session.pool.load_encoder}),
        )
        with session.progress.task(collection) as task:
            show = on_progress or show_addition_progress(collection, task)
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
        threshold: Minimum cosine of a passage; by default the value measured for the encoder and the kind of query,
            None for no minimum.
        full: Show whole passages.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: A collection or the mode does not exist.

    Example:
        >>> [hit.passage.document for hit in search("heat", "greenhouse effect", k=1, workspace=folder)]
        ['Principles of Physical Climate']
    """
    from climassay.corpus.presentation import SearchResult
    from climassay.corpus.search import check_mode

    way, names = check_mode(mode), one_or_several(collections)
    with Session.opened(workspace) as session:
        group = session.collections(names)
        hits = group.search(query, k=k, mode=way, min_cosine=threshold)
        return SearchResult(names, query, way, threshold, tuple(hits), full)


def evaluate_search(
    collection: str,
    questions: str | Path | Iterable[str | Path],
    *,
    ks: Sequence[int] = (),
    modes: Sequence[str] = (),
    columns: "corpus.QuestionColumns | None" = None,
    within_group: bool = False,
    workspace: Place = None,
) -> "corpus.RetrievalReport":
    """Measure how well search finds the passages that answer questions: recall, mean reciprocal rank and nDCG.

    Args:
        collection: Name of the collection.
        questions: JSONL or CSV files with question and passage; primer, or primer:BOOK.
        ks: Depths of recall; by default 1, 3, 5 and 10.
        modes: hybrid, dense, bm25, rrf; by default all.
        columns: Columns of the files: question, passage, relevance (grades; 0 or nothing is not relevant), group (of
            questions, such as a report: intervals are computed over groups).
        within_group: Search for each question only in the report that its group names.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: A file cannot be read, or the collection or a mode does not exist.
    """
    from climassay.corpus.retrieval_evaluation import DEFAULT_KS
    from climassay.corpus.search import SEARCH_MODES, check_mode

    with Session.opened(workspace) as session:
        opened = corpus.Collection.open(session.workspace, collection)
        files = [path for file in one_or_several(questions) for path in _question_files(str(file))]
        read = [corpus.read_gold_questions(path, columns or corpus.QuestionColumns()) for path in files]
        chosen = tuple(check_mode(mode) for mode in modes) or SEARCH_MODES
        return corpus.evaluate_retrieval(
            opened,
            [question for pairs, _ in read for question in pairs],
            ks=tuple(ks) or DEFAULT_KS,
            modes=chosen,
            within_group=within_group,
            n_omitted_rows=sum(n_omitted_rows for _, n_omitted_rows in read),
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
        model: Model that writes the answer.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.
        passages: Number of passages shown to the model.
        threshold: Similarity below which a passage is not relevant.
        sentences: Maximum number of sentences of the answer.
        profile: Prompts for a small or a strong model; by default chosen by the model's size.
        on_progress: Called with each preview of the answer, which replaces the preview before: first the sources, then
            the complete sentences with valid citations. Marks of unsupported sentences come with the final answer.

    Raises:
        InputError: The question is empty, or a collection does not exist.
        ModelError: The model cannot be loaded.

    Example:
        >>> answer = ask("How should I boil an egg?", "heat", workspace=folder)
        >>> answer.enough_information
        False
        >>> print(answer.text)
        Not enough information.
    """
    from climassay.grounding import answer_question, format_sentence

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
                sentences = " ".join(map(format_sentence, answer.sentences))
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
            run.save_results("answer", [answer.to_dict()])
        return answer


def _book_or_file(name: str | Path) -> Path:
    if not str(name).startswith(f"{PRIMER}:"):
        return Path(name).expanduser()
    return book_path(str(name).removeprefix(f"{PRIMER}:"))


def _question_files(file: str) -> list[Path]:
    """Return the paths of a question file: ``primer`` names all primer questions, ``primer:BOOK`` those of one book."""
    if file != PRIMER and not file.startswith(f"{PRIMER}:"):
        return [Path(file).expanduser()]
    paths = {path.stem: path for path in question_paths()}
    if file == PRIMER:
        return list(paths.values())
    book = file.removeprefix(f"{PRIMER}:")
    if book not in paths:
        raise InputError(f"The primer has no questions on {book!r}: it has some on {', '.join(paths)}.")
    return [paths[book]]


def list_collections(*, workspace: Place = None) -> Shown:
    """List the collections; damaged ones are named on stderr, and the exit code is 2."""
    from climassay.corpus.collection import survey_collections
    from climassay.corpus.presentation import collections_table

    with Session.opened(workspace) as session:
        summaries, damaged = survey_collections(session.workspace)
        none = f"No collections yet in {session.workspace.root}: make one with `climassay corpus add NAME FILES`."
    tables = (collections_table(summaries),) if summaries else ()
    failed = InputError("\n".join(map(str, damaged))) if damaged else None
    return Shown(summaries, tables, noted=() if summaries or damaged else (none,), failed=failed)


def show_collection(name: str, passage: str | None = None, *, workspace: Place = None) -> Shown:
    """Show a collection's documents and settings, or one passage in full.

    Args:
        name: Name of the collection.
        passage: Id of a passage.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The collection or the passage does not exist.
    """
    from climassay.corpus.presentation import documents_table, passage_lines

    with Session.opened(workspace) as session:
        collection = corpus.Collection.open(session.workspace, name)
    if passage is not None:
        result = collection.passage(passage)
        return Shown(asdict(result) | {"citation": result.citation}, printed_lines=tuple(passage_lines(result)))
    documents, settings = collection.documents(), collection.settings
    with_originals = [document.id for document in documents if collection.originals.find(document.id) is not None]
    size = collection.originals.bytes_of(with_originals)
    originals = {"documents": with_originals, "bytes": size}
    data = {"name": name, "settings": settings, "documents": documents, "originals": originals}
    table = documents_table(name, settings, documents, len(with_originals), size)
    return Shown(data, (table,), [asdict(document) for document in documents])


def edit_document(
    name: str,
    document: str,
    *,
    title: str | None = None,
    author: str | None = None,
    date: str | None = None,
    workspace: Place = None,
) -> Shown:
    """Change a document's title, author or date, as shown in citations.

    Versions are identified by file name and title: after a change of the title, a newer version of the file counts as
    another document.

    Args:
        name: Name of the collection.
        document: Id, title or file name of the document.
        title: New title, in quotes.
        author: New author, a person or organisation; empty removes it.
        date: New date, a year or 2023-03-20; empty removes it.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The collection or the document does not exist, several documents have the name, no change is given,
            the title is empty, a text is too long, or the date is invalid.
    """
    if title is None and author is None and date is None:
        raise InputError("Say what is to be changed: --title, --author or --date.")
    with Session.opened(workspace) as session:
        edited = corpus.Collection.open(session.workspace, name).edit(document, title=title, author=author, date=date)
    details = ", ".join(filter(None, (edited.author, edited.title, edited.date)))
    return Shown({"collection": name, "edited": edited}, printed_lines=(f"{edited.id} is now: {details}.",))


def compact_collection(name: str, *, workspace: Place = None) -> Shown:
    """Join the files of small additions and remove old versions; searches find the same as before.

    Args:
        name: Name of the collection.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The collection does not exist.
    """
    with Session.opened(workspace) as session:
        joined = corpus.Collection.open(session.workspace, name).compact()
    before, after = joined.bytes_before / 1e6, joined.bytes_after / 1e6
    sentence = f"Compacted {name}: {after:,.1f} MB, {before:,.1f} MB before."
    return Shown({"collection": name, **asdict(joined)}, printed_lines=(sentence,))


def remove_documents(name: str, document: str | None = None, *, workspace: Place = None) -> Shown:
    """Remove a document from a collection, or the whole collection.

    Args:
        name: Name of the collection.
        document: Id or title of the document; None removes the collection.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The collection or the document does not exist.
    """
    from climassay.corpus.collection import remove_collection

    with Session.opened(workspace) as session:
        if document is None:
            remove_collection(session.workspace, name)
            return Shown({"removed": name}, printed_lines=(f"Removed the collection {name}.",))
        removed = corpus.Collection.open(session.workspace, name).remove(document)
    sentences = [
        f"Removed {item.title} ({item.id}, {counted(item.passages, 'passage')}) from {name}." for item in removed
    ]
    return Shown({"collection": name, "removed": removed}, printed_lines=sentences)


_PLAIN_SUFFIXES = (".txt", ".md", ".markdown", "")


def read_text_to_check(file: Path) -> str:
    """Read the text of a file: plain text and Markdown unchanged, the paragraphs of other formats.

    Raises:
        InputError: The file cannot be read or has no text.
    """
    if file.suffix.lower() in _PLAIN_SUFFIXES:
        try:
            return read_text(file)
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise InputError(f"{file} cannot be read: {reason}.") from None
    from climassay.corpus.readers.file_types import read

    # The checks of references look up the text's own list.
    result = read(file, corpus.ReadOptions(references=file.suffix.lower() != ".pdf"))
    if not result.documents:
        raise InputError(result.skipped[0].reason if result.skipped else f"{file} has no text to check.")
    return "\n".join(block.text for document in result.documents for block in document.blocks)


def check_text(
    text: str | Path,
    collections: str | Sequence[str],
    *,
    judge: Generator | str | None = None,
    passages: int = 5,
    network: bool = False,
    workspace: Place = None,
) -> "TextCheck":
    """Check a text sentence by sentence against similar passages of collections.

    The result has, for each sentence, the nearest passage, contradicting figures, different words and names, references
    that do not exist, and words that state more certainty than the passage. A sentence counts as supported only if the
    judge quotes the passage that supports it.

    Args:
        text: Text, Markdown, Word, HTML or PDF; - reads stdin.
        collections: Names of collections with which the text is compared.
        judge: Model that reads each sentence with its passages; without a judge, no sentence counts as supported.
        passages: Number of passages compared with each sentence.
        network: Look up whether DOIs and web addresses exist; otherwise the network is not used.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The text is empty or too long, or a collection does not exist.
        ModelError: The model cannot be loaded.
    """
    from climassay.confidence.overstatement import describe_overstatement
    from climassay.grounding.references import address_answers
    from climassay.grounding.support_judge import SupportJudge
    from climassay.grounding.text_check import MAX_TEXT_LENGTH, check_sentences, sentence_data
    from climassay.grounding.text_check_result import TextCheck

    if passages < 1:
        raise InputError(f"Compare at least one passage with each sentence, not {passages}.")
    name, words = (text.name, read_text_to_check(text)) if isinstance(text, Path) else ("text", text)
    if not words.strip() or len(words) > MAX_TEXT_LENGTH:
        raise InputError(
            f"A text to check has between 1 and {MAX_TEXT_LENGTH:,} characters, not {len(words.strip()):,}."
        )
    with Session.opened(workspace) as session:
        group = session.collections(collections)
        prompt = load_prompt("check_text", session.options.prompts)
        judge_model = None if judge is None else session.model(judge)
        config = {
            "text": words,
            "collections": one_or_several(collections),
            "judge": judge_model.name if judge_model else None,
            "passages": passages,
            "network": network,
            "prompt_sha256": prompt.sha256,
        }
        with session.run("check-text", config) as run, session.progress.task("Sentences") as task:
            support = None if judge_model is None else SupportJudge(session.recorded(judge_model, run), prompt)
            result = check_sentences(
                words,
                group,
                judge=support,
                overstated=describe_overstatement,
                ask=address_answers if network else None,
                k=passages,
                on_progress=task.advance,
            )
            run.save_results("sentences", [sentence_data(sentence) for sentence in result])
        usage = Usage() if support is None else support.usage
        return TextCheck(name, one_or_several(collections), result, judge_model.name if judge_model else "", usage)
