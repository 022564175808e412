"""Collections of documents: search, cited answers, and checks of texts sentence by sentence."""

import tempfile
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
from climassay.reporting.results import AssembledResult
from climassay.session import Place, Session, one_or_several

if TYPE_CHECKING:
    from climassay.corpus.presentation import SearchResult
    from climassay.grounding import GroundedAnswer
    from climassay.grounding.text_check_result import TextCheck


MAX_REASONS = 3
"""Maximum number of unreadable files that are listed in the error if no document can be added."""


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
    """Add documents to a collection, creating it if necessary.

    Documents that the collection already contains are skipped, so that a second call completes an interrupted one.

    Args:
        collection: Name of the collection.
        files: PDF, Word, HTML, Markdown, text, EPUB, CSV, JSONL or Parquet files, folders of them, web addresses
            (https://...), or primer:BOOK.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.
        encoder: Encoder of a new collection: local:minilm (default), or local: followed by the folder or hub id of a
            sentence-transformers model.
        passage_size: Maximum length of a passage in characters; 2000 by default.
        passage_overlap: Maximum overlap of neighbouring passages in characters; 200 by default.
        reading: Options for reading the files: columns of tables, and metadata of the documents.
        replace_older: Whether older versions of the added documents (same file name and title) are removed.
        originals: Whether the files are stored, so that citations can link to their pages.
        on_progress: Function that is called after every batch of passages.

    Returns:
        Report with the added and the existing documents; ``skipped`` names every unreadable file, with the reason.

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
    from climassay.corpus.readers.download import is_address, read_address

    check_name(collection)
    names = [files] if isinstance(files, (str, Path)) else list(files)
    skipped_files: list[corpus.Skipped] = []

    def documents(folder: Path) -> "Iterable[corpus.Document]":
        local_files = [_resolve_file(name) for name in names if not is_address(name)]
        downloads = (read_address(str(name), folder, reading) for name in names if is_address(name))
        for result in chain(corpus.read_all(local_files, reading), downloads):
            skipped_files.extend(result.skipped)
            yield from result.documents

    with tempfile.TemporaryDirectory(prefix="climassay") as folder:
        documents_to_add = iter(documents(Path(folder)))
        # Before anything is made: a mistyped file name leaves no empty collection behind.
        first_document = next(documents_to_add, None)
        if first_document is None:
            reasons = "; ".join(str(skipped_file).rstrip(".") for skipped_file in skipped_files[:MAX_REASONS])
            raise InputError(f"There is no document to add to {collection}{': ' + reasons if reasons else ''}.")
        with Session.opened(workspace) as session:
            target = corpus.open_or_create(
                session.workspace,
                collection,
                encoder=encoder,
                passage_size=passage_size,
                passage_overlap=passage_overlap,
                **({} if session.pool is None else {"load": session.pool.load_encoder}),
            )
            with session.progress.task(collection) as task:
                report_progress = on_progress or show_addition_progress(collection, task)
                report = target.add(
                    chain([first_document], documents_to_add),
                    replace=replace_older,
                    keep_originals=originals,
                    on_progress=report_progress,
                )
            return replace(report, collection=target.summary(), skipped=(*skipped_files, *report.skipped))


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
    """Search collections for passages, the most relevant first.

    Args:
        collections: Names of collections.
        query: Question or statement.
        k: Maximum number of hits.
        mode: Search method: ``hybrid``, ``dense``, ``bm25`` or ``rrf``.
        threshold: Minimum cosine similarity of a passage to the query; by default the value measured for the encoder
            and the kind of query. None for no minimum.
        full: Whether whole passages are shown.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: A collection or the mode does not exist.

    Example:
        >>> [hit.passage.document for hit in search("heat", "greenhouse effect", k=1, workspace=folder)]
        ['Principles of Physical Climate']
    """
    from climassay.corpus.presentation import SearchResult
    from climassay.corpus.search import check_mode

    search_mode, names = check_mode(mode), one_or_several(collections)
    with Session.opened(workspace) as session:
        group = session.collections(names)
        hits = group.search(query, k=k, mode=search_mode, min_cosine=threshold)
        return SearchResult(names, query, search_mode, threshold, tuple(hits), full)


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
    """Measure recall, mean reciprocal rank and nDCG of searches for the passages that answer questions.

    Args:
        collection: Name of the collection.
        questions: JSONL or CSV files with the columns question and passage; or ``primer`` or ``primer:BOOK``.
        ks: Numbers of hits at which recall is measured; by default 1, 3, 5 and 10.
        modes: Search methods to compare: hybrid, dense, bm25 and rrf; by default all.
        columns: Names of the files' columns: question; passage; relevance, a grade that is 0 or empty if the passage
            is not relevant; and group, such as the report, over which intervals are computed.
        within_group: Whether passages are searched for only in the document that the question's group names.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: A file cannot be read, or the collection or a mode does not exist.
    """
    from climassay.corpus.retrieval_evaluation import DEFAULT_KS
    from climassay.corpus.search import SEARCH_MODES, check_mode

    with Session.opened(workspace) as session:
        searched_collection = corpus.Collection.open(session.workspace, collection)
        files = [path for file in one_or_several(questions) for path in _find_question_files(str(file))]
        gold_files = [corpus.read_gold_questions(path, columns or corpus.QuestionColumns()) for path in files]
        search_modes = tuple(check_mode(mode) for mode in modes) or SEARCH_MODES
        return corpus.evaluate_retrieval(
            searched_collection,
            [question for pairs, _ in gold_files for question in pairs],
            ks=tuple(ks) or DEFAULT_KS,
            modes=search_modes,
            within_group=within_group,
            n_omitted_rows=sum(n_omitted_rows for _, n_omitted_rows in gold_files),
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
    """Answer a question from collections with numbered citations, or state that they do not contain the answer.

    In a terminal or notebook, the sentences of the answer are shown while they are written.

    Args:
        question: Question, in quotes on the command line.
        collections: Names of collections.
        model: Model that writes the answer.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.
        passages: Number of passages in the model's prompt.
        threshold: Minimum cosine similarity of a relevant passage; by default the value measured for the encoder.
        sentences: Maximum number of sentences of the answer.
        profile: Whether the prompts are those for a small or a strong model; by default the model's size decides.
        on_progress: Function that is called with each preview of the answer, which replaces the previous one. The
            first preview has only the sources, later ones the complete sentences with valid citations. Unsupported
            sentences are marked only in the final answer.

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
        generator = session.model(model)
        config = {
            "question": question,
            "collections": one_or_several(collections),
            "model": generator.name,
            "passages": passages,
            "threshold": threshold,
            "sentences": sentences,
            "profile": profile,
            "prompt_sha256": prompt.sha256,
        }
        with session.run("ask", config) as run, session.progress.preview() as show_preview:

            def report_progress(answer: "GroundedAnswer") -> None:
                sentences = " ".join(map(format_sentence, answer.sentences))
                if show_preview is not None:
                    show_preview(f"{sentences}\nStill being written and checked ..." if sentences else "")
                if on_progress is not None:
                    on_progress(answer)

            answer = answer_question(
                question,
                group,
                session.recorded(generator, run),
                k=passages,
                min_cosine=threshold,
                sentences=sentences,
                prompt=prompt,
                profile=ProfileSettings(profile),
                on_progress=report_progress if show_preview is not None or on_progress is not None else None,
            )
            run.save_results("answer", [answer.to_dict()])
        return answer


def _resolve_file(name: str | Path) -> Path:
    if not str(name).startswith(f"{PRIMER}:"):
        return Path(name).expanduser()
    return book_path(str(name).removeprefix(f"{PRIMER}:"))


def _find_question_files(file: str) -> list[Path]:
    """Return the question files that a name stands for: a path, ``primer``, or ``primer:BOOK`` for one book."""
    if file != PRIMER and not file.startswith(f"{PRIMER}:"):
        return [Path(file).expanduser()]
    path_by_book = {path.stem: path for path in question_paths()}
    if file == PRIMER:
        return list(path_by_book.values())
    book = file.removeprefix(f"{PRIMER}:")
    if book not in path_by_book:
        raise InputError(f"The primer has no questions on {book!r}: it has some on {', '.join(path_by_book)}.")
    return [path_by_book[book]]


def list_collections(*, workspace: Place = None) -> AssembledResult:
    """List the collections; damaged collections are reported as an error, with exit code 2."""
    from climassay.corpus.collection import survey_collections
    from climassay.corpus.presentation import collections_table

    with Session.opened(workspace) as session:
        summaries, damage_errors = survey_collections(session.workspace)
        empty_note = f"No collections yet in {session.workspace.root}: make one with `climassay corpus add NAME FILES`."
    tables = (collections_table(summaries),) if summaries else ()
    error = InputError("\n".join(map(str, damage_errors))) if damage_errors else None
    return AssembledResult(summaries, tables, noted=() if summaries or damage_errors else (empty_note,), failed=error)


def show_collection(name: str, passage: str | None = None, *, workspace: Place = None) -> AssembledResult:
    """Show the documents and settings of a collection, or a single passage in full.

    Args:
        name: Name of the collection.
        passage: Id of the passage to show.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The collection or the passage does not exist.
    """
    from climassay.corpus.presentation import documents_table, passage_lines

    with Session.opened(workspace) as session:
        collection = corpus.Collection.open(session.workspace, name)
    if passage is not None:
        full_passage = collection.passage(passage)
        return AssembledResult(
            asdict(full_passage) | {"citation": full_passage.citation},
            printed_lines=tuple(passage_lines(full_passage)),
        )
    documents, settings = collection.documents(), collection.settings
    ids_with_original = [document.id for document in documents if collection.originals.find(document.id) is not None]
    size = collection.originals.bytes_of(ids_with_original)
    originals_summary = {"documents": ids_with_original, "bytes": size}
    data = {"name": name, "settings": settings, "documents": documents, "originals": originals_summary}
    table = documents_table(name, settings, documents, len(ids_with_original), size)
    return AssembledResult(data, (table,), [asdict(document) for document in documents])


def edit_document(
    name: str,
    document: str,
    *,
    title: str | None = None,
    author: str | None = None,
    date: str | None = None,
    workspace: Place = None,
) -> AssembledResult:
    """Change the title, author or date of a document, which citations show.

    Versions of a document are recognised by file name and title. If you change the title, a newer version of the file
    therefore counts as another document.

    Args:
        name: Name of the collection.
        document: Id, title or file name of the document.
        title: New title, in quotes on the command line.
        author: New author, a person or an organisation; an empty text removes the author.
        date: New date, such as 2023 or 2023-03-20; an empty text removes the date.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The collection or the document does not exist, several documents have the name, nothing is to be
            changed, the title is empty, a text is too long, or the date is invalid.
    """
    if title is None and author is None and date is None:
        raise InputError("Say what is to be changed: --title, --author or --date.")
    with Session.opened(workspace) as session:
        edited_document = corpus.Collection.open(session.workspace, name).edit(
            document, title=title, author=author, date=date
        )
    details = ", ".join(filter(None, (edited_document.author, edited_document.title, edited_document.date)))
    return AssembledResult(
        {"collection": name, "edited": edited_document}, printed_lines=(f"{edited_document.id} is now: {details}.",)
    )


def compact_collection(name: str, *, workspace: Place = None) -> AssembledResult:
    """Merge a collection's many small files and delete its old versions; search results do not change.

    Args:
        name: Name of the collection.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The collection does not exist.
    """
    with Session.opened(workspace) as session:
        compaction = corpus.Collection.open(session.workspace, name).compact()
    size_before, size_after = compaction.bytes_before / 1e6, compaction.bytes_after / 1e6
    sentence = f"Compacted {name}: {size_after:,.1f} MB, {size_before:,.1f} MB before."
    return AssembledResult({"collection": name, **asdict(compaction)}, printed_lines=(sentence,))


def remove_documents(name: str, document: str | None = None, *, workspace: Place = None) -> AssembledResult:
    """Remove a document from a collection, or the whole collection.

    Args:
        name: Name of the collection.
        document: Id or title of the document; by default the whole collection is removed.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The collection or the document does not exist.
    """
    from climassay.corpus.collection import remove_collection

    with Session.opened(workspace) as session:
        if document is None:
            remove_collection(session.workspace, name)
            return AssembledResult({"removed": name}, printed_lines=(f"Removed the collection {name}.",))
        removed_documents = corpus.Collection.open(session.workspace, name).remove(document)
    sentences = [
        f"Removed {item.title} ({item.id}, {counted(item.passages, 'passage')}) from {name}."
        for item in removed_documents
    ]
    return AssembledResult({"collection": name, "removed": removed_documents}, printed_lines=sentences)


_PLAIN_SUFFIXES = (".txt", ".md", ".markdown", "")


def read_text_to_check(file: Path) -> str:
    """Read the text of a file: the whole text of plain text and Markdown, or the paragraphs of other formats.

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
    """Check a text sentence by sentence against similar passages in collections.

    For each sentence, the result has the most similar passage, contradicting numbers, differing words and names,
    references that do not exist, and words that express more certainty than the passage. A sentence counts as
    supported only if the judge quotes the passage that supports it.

    Args:
        text: File to check (text, Markdown, Word, HTML or PDF), or the text itself; on the command line, - stands for
            stdin.
        collections: Names of collections with which the text is compared.
        judge: Model that judges each sentence with its passages; without a judge, no sentence counts as supported.
        passages: Number of passages with which each sentence is compared.
        network: Whether to look up whether DOIs and web addresses exist; otherwise the network is not used.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The text is empty or too long, or a collection does not exist.
        ModelError: The model cannot be loaded.
    """
    from climassay.confidence.overstatement import describe_overstatement
    from climassay.grounding.references import check_address
    from climassay.grounding.support_judge import SupportJudge
    from climassay.grounding.text_check import MAX_TEXT_LENGTH, check_sentences, sentence_to_dict
    from climassay.grounding.text_check_result import TextCheck

    if passages < 1:
        raise InputError(f"Compare at least one passage with each sentence, not {passages}.")
    name, content = (text.name, read_text_to_check(text)) if isinstance(text, Path) else ("text", text)
    if not content.strip() or len(content) > MAX_TEXT_LENGTH:
        raise InputError(
            f"A text to check has between 1 and {MAX_TEXT_LENGTH:,} characters, not {len(content.strip()):,}."
        )
    with Session.opened(workspace) as session:
        group = session.collections(collections)
        prompt = load_prompt("check_text", session.options.prompts)
        judge_model = None if judge is None else session.model(judge)
        config = {
            "text": content,
            "collections": one_or_several(collections),
            "judge": judge_model.name if judge_model else None,
            "passages": passages,
            "network": network,
            "prompt_sha256": prompt.sha256,
        }
        with session.run("check-text", config) as run, session.progress.task("Sentences") as task:
            support_judge = None if judge_model is None else SupportJudge(session.recorded(judge_model, run), prompt)
            sentences = check_sentences(
                content,
                group,
                judge=support_judge,
                find_overstatement=describe_overstatement,
                address_exists=check_address if network else None,
                k=passages,
                on_progress=task.advance,
            )
            run.save_results("sentences", [sentence_to_dict(sentence) for sentence in sentences])
        usage = Usage() if support_judge is None else support_judge.usage
        return TextCheck(name, one_or_several(collections), sentences, judge_model.name if judge_model else "", usage)
