"""``climassay corpus`` and ``climassay ask``: collections of documents, and what is found in them."""

import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from climassay.cli.model_options import LoadingOptions, ModelOption, ProfileOption, RayOptions
from climassay.cli.option_groups import CommandGroup, grouped
from climassay.cli.output import ResultOptions, WorkspaceOptions
from climassay.errors import InputError, ModelError

app = CommandGroup(no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(metavar="COLLECTION", help="Name of the collection.")]
ModeOption = Annotated[str, typer.Option("--mode", "-m", help="hybrid, dense, bm25 or rrf.")]


@app.command()
def add(
    name: NameArgument,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILES...",
            help="PDF, HTML, Markdown, text, EPUB, CSV, JSONL or Parquet files, folders of them, or primer:BOOK.",
        ),
    ],
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            "-c",
            metavar="FIELD=COLUMN",
            help="Content of a column of a table: text, document (may be given several times), title, report, chapter, "
            "headings, paragraph_id, page, url, date, edition or licence.",
        ),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of all documents added.")] = None,
    report: Annotated[str | None, typer.Option(help="Report or series they belong to.")] = None,
    url: Annotated[str | None, typer.Option(help="Their address.")] = None,
    date: Annotated[str | None, typer.Option(help="Their ISO date or year.")] = None,
    edition: Annotated[str | None, typer.Option(help="Their edition.")] = None,
    licence: Annotated[str | None, typer.Option(help="Their licence.")] = None,
    captions: Annotated[bool, typer.Option("--captions", help="Keep captions of figures and tables in PDFs.")] = False,
    references: Annotated[bool, typer.Option("--references", help="Keep lists of references in PDFs.")] = False,
    encoder: Annotated[
        str | None,
        typer.Option(help="local:minilm (default), or local: and a sentence-transformers folder or hub id."),
    ] = None,
    passage_size: Annotated[int | None, typer.Option(help="Characters of a passage [default: 2000].")] = None,
    passage_overlap: Annotated[
        int | None, typer.Option(help="Maximum number of characters that neighbours share [default: 200].")
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Take out older versions of the documents added (same file and title).")
    ] = False,
    originals: Annotated[
        bool, typer.Option("--originals/--no-originals", help="Keep the files, so that citations lead to their pages.")
    ] = True,
    where: RayOptions = RayOptions(),
    to: WorkspaceOptions = WorkspaceOptions(),
) -> None:
    """Add documents to a collection; it is made when it is not there. Run again, it goes on where it stopped."""
    from climassay.api.documents import add_documents
    from climassay.corpus import ReadOptions

    reading = ReadOptions(
        columns=table_columns(columns or []),
        title=title,
        report=report,
        url=url,
        date=date,
        edition=edition,
        licence=licence,
        captions=captions,
        references=references,
    )
    with to.session(where=where) as session:
        found = add_documents(
            name,
            files,
            workspace=session,
            encoder=encoder,
            passage_size=passage_size,
            passage_overlap=passage_overlap,
            reading=reading,
            replace_older=replace,
            originals=originals,
        )
    to.emit(found)
    if not (found.added or found.already_there):
        raise InputError(f"None of the documents has any text, so nothing was added to {name}.")


@app.command("list")
def list_(to: ResultOptions = ResultOptions()) -> None:
    """List the collections; damaged ones are named on stderr, and the exit code is 2."""
    from climassay.api.documents import list_collections

    with to.session() as session:
        found, damaged = list_collections(workspace=session)
    to.emit(found)
    for error in damaged[:-1]:
        typer.echo(f"climassay: {error}", err=True)
    if damaged:
        raise damaged[-1]


@app.command()
def search(
    name: NameArgument,
    query: Annotated[str, typer.Argument(help="A question or statement.")],
    k: Annotated[int, typer.Option("-k", min=1, max=1000, help="Maximum number of hits.")] = 8,
    mode: ModeOption = "hybrid",
    min_cosine: Annotated[
        float | None,
        typer.Option(help="Leave out passages of lower cosine [default: the encoder's measured threshold]."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Apply no threshold.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Print whole passages.")] = False,
    to: ResultOptions = ResultOptions(),
) -> None:
    """Find passages."""
    from climassay.api.documents import search

    threshold: Any = None if everything else "measured" if min_cosine is None else min_cosine
    with to.session() as session:
        found = search(name, query, k=k, mode=mode, threshold=threshold, full=full, workspace=session)
    to.emit(found)


@app.command()
def show(
    name: NameArgument,
    passage_id: Annotated[str | None, typer.Argument(metavar="[PASSAGE]", help="Id of a passage.")] = None,
    to: ResultOptions = ResultOptions(),
) -> None:
    """Show a collection's documents and settings, or one passage in full."""
    from climassay.api.documents import show_collection

    with to.session() as session:
        to.emit(show_collection(name, passage_id, workspace=session))


@app.command("compact")
def compact_collection(name: NameArgument, to: WorkspaceOptions = WorkspaceOptions()) -> None:
    """Join the files of small additions and remove old versions; searches find the same as before."""
    from climassay.api import documents

    with to.session() as session:
        to.emit(documents.compact_collection(name, workspace=session))


@app.command()
def rename(
    name: NameArgument,
    document: Annotated[str, typer.Argument(help="Id, title or file name of the document.")],
    title: Annotated[str, typer.Argument(help="Its new title, in quotes.")],
    to: WorkspaceOptions = WorkspaceOptions(),
) -> None:
    """Give a document another title, which citations show from now on."""
    from climassay.api.documents import rename_document

    with to.session() as session:
        to.emit(rename_document(name, document, title, workspace=session))


@app.command()
def remove(
    name: NameArgument,
    document: Annotated[
        str | None, typer.Argument(metavar="[DOCUMENT]", help="Id or title; without it the whole collection goes.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before removing a whole collection.")] = False,
    to: WorkspaceOptions = WorkspaceOptions(),
) -> None:
    """Remove a document from a collection, or the whole collection."""
    from climassay.api.documents import remove_documents
    from climassay.corpus import Collection

    with to.session() as session:
        if document is None:
            passages = len(Collection.open(session.workspace, name))
            if to.as_json and not yes:
                raise InputError(f"Removing the whole collection {name} with --json needs --yes.")
            if not yes:
                typer.confirm(f"Remove the collection {name} with its {passages:,} passages?", abort=True, err=True)
        to.emit(remove_documents(name, document, workspace=session))


@app.command()
def evaluate(
    name: NameArgument,
    questions: Annotated[
        list[str],
        typer.Argument(
            metavar="QUESTIONS...", help="JSONL or CSV files with question and passage; primer, or primer:BOOK."
        ),
    ],
    k: Annotated[list[int] | None, typer.Option("-k", help="Depths of recall [default: 1, 3, 5 and 10].")] = None,
    modes: Annotated[
        list[str] | None, typer.Option("--mode", "-m", help="hybrid, dense, bm25, rrf [default: all].")
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            metavar="FIELD=COLUMN",
            help="Columns of the files: question, passage, relevance (grades; 0 or nothing is not relevant), group "
            "(what questions share, as a report: intervals are drawn over groups).",
        ),
    ] = None,
    within_group: Annotated[
        bool, typer.Option("--within-group", help="Ask each question only in the report that its group names.")
    ] = False,
    to: ResultOptions = ResultOptions(),
) -> None:
    """Measure how well search finds the passages that questions rest on: recall, mean reciprocal rank and nDCG."""
    from climassay.api.documents import evaluate_search
    from climassay.corpus import QuestionColumns

    chosen = QuestionColumns(**chosen_columns(columns or [], QuestionColumns))
    with to.session() as session:
        found = evaluate_search(
            name,
            questions,
            ks=k or (),
            modes=modes or (),
            columns=chosen,
            within_group=within_group,
            workspace=session,
        )
    to.emit(found)


@grouped
def ask(
    question: Annotated[str, typer.Argument(help="Your question, in quotes.")],
    collection: Annotated[list[str], typer.Option("--collection", "-c", help="Collection to look in; repeat.")],
    model: ModelOption = "local:smollm2",
    passages: Annotated[int, typer.Option("--passages", "-k", min=1, help="Passages put before the model.")] = 4,
    threshold: Annotated[
        float | None, typer.Option(min=-1, max=1, help="Similarity below which a passage is not relevant.")
    ] = None,
    sentences: Annotated[int, typer.Option(min=1, help="Maximum number of sentences of the answer.")] = 3,
    profile: ProfileOption = None,
    loading: LoadingOptions = LoadingOptions(),
    to: ResultOptions = ResultOptions(),
) -> None:
    """Answer a question from your collections, with numbered citations, or say that they do not hold the answer."""
    from climassay.api.documents import ask

    with to.session(loading) as session:
        answer = ask(
            question,
            collection,
            model=model,
            workspace=session,
            passages=passages,
            threshold=threshold,
            sentences=sentences,
            profile=profile or "auto",
        )
    to.emit(answer)
    if answer.error is not None:
        raise ModelError(f"The model gave no answer: {answer.error}")


@grouped
def check_text(
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="Text, Markdown, Word, HTML or PDF; - reads stdin.")],
    collection: Annotated[list[str], typer.Option("--collection", "-c", help="Collection to look in; repeat.")],
    entailment: Annotated[
        str,
        typer.Option(help="Scorer: bundled, prompted:MODEL, supports:MODEL, nli:MODEL, or a trained head's file."),
    ] = "bundled",
    judge: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Model that judges support; by default none is asked.")
    ] = None,
    passages: Annotated[int, typer.Option("--passages", "-k", min=1, help="Passages looked at for each sentence.")] = 5,
    network: Annotated[
        bool, typer.Option("--network", help="Ask whether DOIs and web addresses exist; nothing is asked otherwise.")
    ] = False,
    loading: LoadingOptions = LoadingOptions(),
    to: ResultOptions = ResultOptions(),
) -> None:
    """Check a text sentence by sentence: what bears it, what contradicts it, what nothing bears.

    It also names references that point to nothing, quantities that differ, and words that are surer than the sources.
    """
    from climassay.api.text_checks import check_text

    text = sys.stdin.read() if file == "-" else Path(file)
    with to.session(loading) as session:
        found = check_text(
            text,
            collection,
            entailment=entailment,
            judge=judge,
            passages=passages,
            network=network,
            workspace=session,
        )
    to.emit(found)


def table_columns(given: Sequence[str]) -> Any:
    """Table columns of ``FIELD=COLUMN`` options.

    Raises:
        InputError: One is not of this form, or there is no such field.
    """
    from climassay.corpus.documents import TableColumns

    return TableColumns(**chosen_columns(given, TableColumns))


def chosen_columns(given: Sequence[str], kind: Any) -> dict[str, Any]:
    """Values of a dataclass of columns from ``FIELD=COLUMN`` options; ``document`` may have several.

    Raises:
        InputError: One is not of this form, or there is no such field.
    """
    known = [field.name for field in fields(kind)]
    chosen: dict[str, Any] = {}
    for text in given:
        field, equals, column = text.partition("=")
        if not equals or not column or field not in known:
            raise InputError(f"--column {text!r} is not FIELD=COLUMN with one of the fields {', '.join(known)}.")
        if field == "document":
            chosen[field] = (*chosen.get(field, ()), column)
        elif field in chosen:
            raise InputError(f"--column names two columns for {field}: {chosen[field]} and {column}.")
        else:
            chosen[field] = column
    return chosen
